"""First completions of a model, a few of each task, from which the grader of a task is chosen before measuring."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from time import monotonic
from typing import TYPE_CHECKING

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.corpus.chosen_graders import ChosenGrader, FirstAnswer, choose_grader, quoted_start
from mixwright.corpus.graded import Graded
from mixwright.errors import one_line
from mixwright.measure.passes import Passes, completion_lengths, evenly_spread
from mixwright.records import Example, Observation

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

ITEMS_PER_TASK = 12
"""Items of a task that are answered."""
GRADER_CHOSEN_NOTE = "grader chosen"
"""What `Observation.check` of a note about a choice says."""


def read_first_answers(
    learner: Learner,
    corpus: Corpus,
    config: MeasureConfig,
    *,
    tasks_with_named_grader: Collection[str] = (),
    say: Callable[[str], None],
) -> list[ChosenGrader]:
    """Let a model answer a few items of each task greedily, and choose the graders by what it wrote.

    Args:
        learner: the model before training.
        corpus: its held-out rows are answered, all of them where there are none; tasks with their proposed graders.
        config: how items are picked, and the room for completions.
        tasks_with_named_grader: tasks whose grader the user named, which are not looked at.
        say: is told what it cost, and a line for each task.

    Raises:
        InputError: prompts leave no room, or nothing can be graded.
    """
    graded = [task for task, found in corpus.tasks.items() if found.kind == "verifiable"]
    tasks_to_choose = [task for task in graded if task not in tasks_with_named_grader]
    if not tasks_to_choose:
        return []
    items = _picked(learner, corpus.select(tasks=tasks_to_choose), replace(config, items=ITEMS_PER_TASK))
    began = monotonic()
    written = learner.sample([i.prompt for i in items], count=1, temperature=0, seed=0, **completion_lengths(config))
    answers = [FirstAnswer(item, best.text, not best.finished) for item, (best,) in zip(items, written, strict=True)]
    tokens, spent = sum(len(best.token_ids) for (best,) in written), monotonic() - began
    say(
        f"graders: chosen by {len(items):,} first completions of {learner.name}, up to {ITEMS_PER_TASK} of a task "
        f"({tokens:,} tokens, {spent:.0f} s)"
    )
    chosen = []
    for task in tasks_to_choose:
        found = choose_grader(task, corpus.tasks[task].grader, [one for one in answers if one.example.task == task])
        say(one_line(f"grader of {task}: {found.reason}; another: {found.remedy}"))
        chosen.append(found)
    return chosen


def _picked(learner: Learner, corpus: Corpus, config: MeasureConfig) -> list[Example]:
    """At most `ITEMS_PER_TASK` items of each task, of all its levels; training rows where fewer are held out."""

    def fits(item: Example) -> bool:
        return not learner.context or len(learner.encode(item.prompt)) + config.longest_completion <= learner.context

    splits = [corpus.select(split=name) for name in ("eval", "train")]
    parts = [Passes(learner, None, config, part).items for part in splits if len(part)]
    found: list[Example] = []
    for task in corpus.tasks:
        first, *others = ([item for item in part if item.task == task] for part in parts)
        few = evenly_spread(first, ITEMS_PER_TASK)
        for more in others:
            few = [*few, *evenly_spread(list(filter(fits, more)), ITEMS_PER_TASK - len(few))]
        found += few
    return found


def with_first_answers(
    rows: Graded,
    learner: Learner,
    config: MeasureConfig,
    *,
    tasks_with_named_grader: Collection[str] = (),
    say: Callable[[str], None],
) -> tuple[Graded, list[Observation]]:
    """The rows with the graders that `read_first_answers` chose, and a note for each one that was changed."""
    found = read_first_answers(learner, rows.corpus, config, tasks_with_named_grader=tasks_with_named_grader, say=say)
    graders = {one.task: one.grader for one in found if one.changed}
    if not graders:
        return rows, []
    corpus_config = replace(rows.config, graders=dict(rows.config.graders) | graders)
    graded = replace(rows, corpus=rows.corpus.with_graders(graders), config=corpus_config)
    return graded, [note_of_choice(one) for one in found if one.changed]


def note_of_choice(found: ChosenGrader) -> Observation:
    """The choice as a note on measuring; information where the grader was changed, since it needs no action."""
    count = found.accepted.get(found.grader, 0)
    evidence = tuple(
        {
            "example": one.example.id,
            "answer": one.example.answer,
            "completion": quoted_start(one.completion, cut=one.cut),
        }
        for one in found.examples
    )
    message = f"the grader of task {found.task!r} is {found.grader}, because {found.why}"
    return Observation(
        GRADER_CHOSEN_NOTE, found.task, "info", count, found.total, message, f"Another: {found.remedy}.", "", evidence
    )

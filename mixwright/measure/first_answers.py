"""First completions of a model, a few of each task, from which the grader of a task is chosen before measuring."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.corpus.chosen_graders import ChosenGrader, FirstAnswer, choose_grader, quoted_start
from mixwright.corpus.graded import Graded
from mixwright.corpus.proposed_graders import find_labels
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
        say: is told what is written, and a line for each task.

    Raises:
        InputError: prompts leave no room, or nothing can be graded.
    """
    graded = [task for task, task_record in corpus.tasks.items() if task_record.kind == "verifiable"]
    tasks_to_choose = [task for task in graded if task not in tasks_with_named_grader]
    if not tasks_to_choose:
        return []
    items = _pick_items(learner, corpus.select(tasks=tasks_to_choose), replace(config, items=ITEMS_PER_TASK))
    count = f"{len(items):,} completions of {learner.name}, up to {ITEMS_PER_TASK} per task"
    say(f"graders: chosen by {count}; writing them can take minutes")
    completions = learner.sample([i.prompt for i in items], count=1, temperature=0, seed=0, **completion_lengths(config))
    answers = [FirstAnswer(item, best.text, not best.finished) for item, (best,) in zip(items, completions, strict=True)]
    choices = choose_graders(corpus, tasks_to_choose, answers)
    for line in (line for choice in choices for line in choice.describe()):
        say(one_line(line))
    return choices


def choose_graders(
    corpus: Corpus, tasks: Collection[str], answers: Sequence[FirstAnswer], named: Collection[str] = ()
) -> list[ChosenGrader]:
    """Choose the grader of each task by a model's first answers; `named` are tasks whose grader the user named."""
    return [
        choose_grader(
            task,
            corpus.tasks[task].grader,
            [answer for answer in answers if answer.example.task == task],
            named_by_user=task in named,
            labels=find_labels(corpus, task),
        )
        for task in tasks
    ]


def _pick_items(learner: Learner, corpus: Corpus, config: MeasureConfig) -> list[Example]:
    """At most `ITEMS_PER_TASK` items of each task, of all its levels; training rows where fewer are held out."""
    splits = [corpus.select(split=name) for name in ("eval", "train")]
    items_by_split = [Passes(learner, config, split_items).items for split_items in splits if len(split_items)]
    picked: list[Example] = []
    for task in corpus.tasks:
        first_items, *other_items = ([item for item in split_items if item.task == task] for split_items in items_by_split)
        task_items = evenly_spread(first_items, ITEMS_PER_TASK)
        for further_items in other_items:
            fitting = [item for item in further_items if learner.has_room(item.prompt, config.longest_completion)]
            task_items = [*task_items, *evenly_spread(fitting, ITEMS_PER_TASK - len(task_items))]
        picked += task_items
    return picked


def with_first_answers(
    rows: Graded,
    learner: Learner,
    config: MeasureConfig,
    *,
    tasks_with_named_grader: Collection[str] = (),
    say: Callable[[str], None],
) -> tuple[Graded, list[Observation]]:
    """The rows with the graders that `read_first_answers` chose, and a note for each one that was changed."""
    choices = read_first_answers(learner, rows.corpus, config, tasks_with_named_grader=tasks_with_named_grader, say=say)
    graders = {choice.task: choice.grader for choice in choices if choice.changed}
    if not graders:
        return rows, []
    corpus_config = replace(rows.config, graders=dict(rows.config.graders) | graders)
    graded = replace(rows, corpus=rows.corpus.with_graders(graders), config=corpus_config)
    return graded, [note_of_choice(choice) for choice in choices if choice.changed]


def note_of_choice(choice: ChosenGrader) -> Observation:
    """The choice as a note on measuring; information where the grader was changed, since it needs no action."""
    count = choice.accepted.get(choice.grader, 0)
    evidence = tuple(
        {"example": one.example.id, "answer": one.example.answer, "completion": quoted_start(one.completion, cut=one.cut)}
        for one in choice.examples
    )
    message = f"the grader of task {choice.task!r} is {choice.grader}, because {choice.why}"
    remedy = f"Another: {choice.remedy}."
    return Observation(GRADER_CHOSEN_NOTE, choice.task, "info", count, choice.total, message, remedy, "", evidence)

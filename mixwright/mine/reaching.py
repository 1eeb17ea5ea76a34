"""Short trainings of a student on each source of candidate answers, judged by its greedy answers to prompts held back.

Loss on a source's own text would not do: short and compressed texts have a low one, whatever a student learns of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mixwright.mine.answers import count_answer_tokens, shared_room
from mixwright.mine.candidates import SourceTrials, lowest_per_prompt, train_on_each_source
from mixwright.mine.proxies import choose_held_back, grade_greedy_answers, make_copy_trainer
from mixwright.records import plain

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.mine.candidates import Candidates
    from mixwright.mine.choosing import TrainRows
    from mixwright.mine.proxies import Sizes

SECONDS_PER_GRADE = 5.0
"""For the grade of one answer; slower ones count as wrong."""


def try_sources(
    corpus: Corpus,
    learner: Learner,
    rows: TrainRows,
    found: Candidates,
    sizes: Sizes,
    max_new_tokens: int,
    rng: np.random.Generator,
) -> tuple[dict[str, SourceTrials], list[str], int]:
    """What short trainings showed of each task that a grader judges, what was done, and the rollouts that it took.

    Args:
        corpus: with its graders.
        learner: copied, never changed.
        rows: that may be chosen.
        found: the same rows as candidates.
        sizes: of the trainings.
        max_new_tokens: longest answer.
        rng: which prompts are held back, and the seeds.

    Raises:
        InputError: too few prompts to hold some back.
    """
    from mixwright.corpus.timed_grades import TimedGrades
    from mixwright.measure.row_losses import RowLosses

    several = [corpus[int(rows.numbers[at])] for at in np.flatnonzero(found.has_alternatives)]
    judged = _judgeable(corpus, rows, found)
    first = lowest_per_prompt(np.where(judged, 0.0, np.nan), found.prompt_ids)
    first = first[judged[first]]  # a row of each prompt that can be judged
    if not len(first):
        return {}, [], 0
    back = first[choose_held_back(rows.tasks[first], rng)]
    usable = found.has_alternatives & ~np.isin(found.prompt_ids, found.prompt_ids[back])
    items, grades = [corpus[int(rows.numbers[at])] for at in back], TimedGrades(corpus, SECONDS_PER_GRADE, "wrong")
    most = max(count_answer_tokens(learner, plain(row.target if row.target is not None else row.answer)) for row in several)
    longest = shared_room(learner, items, min(most + 1, max_new_tokens))
    trained = make_copy_trainer(learner, RowLosses(learner, corpus), rows.numbers, sizes)
    tried = train_on_each_source(
        found,
        usable,
        lambda places, seed: grade_greedy_answers(learner, trained(places, seed), items, grades, longest),
        grade_greedy_answers(learner, learner.model, items, grades, longest),
        rows.tasks[back],
        rng.integers(2**31, size=sizes.runs).tolist(),
    )
    trainings = sizes.runs * (len({*found.sources[usable].tolist()}) + 1)
    note = f"{trainings} short trainings of {sizes.steps} steps, each read on {len(items)} training prompts held back."
    return tried, [note], len(items) * (trainings + 1)


def _judgeable(corpus: Corpus, rows: TrainRows, found: Candidates) -> np.ndarray:
    """Rows of prompts that have several candidates, and one answer that a grader compares with."""
    answers: dict[int, set[str | None]] = {}
    for number, prompt in zip(rows.numbers.tolist(), found.prompt_ids.tolist(), strict=True):
        answers.setdefault(prompt, set()).add(corpus[number].answer)
    graded = np.array([corpus.tasks[task].kind == "verifiable" for task in rows.tasks.tolist()])
    one = np.array([answers[prompt] != {None} and len(answers[prompt]) == 1 for prompt in found.prompt_ids.tolist()])
    return found.has_alternatives & graded & one

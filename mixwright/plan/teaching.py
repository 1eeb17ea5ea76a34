"""What the rows of a group teach, and which groups compete, judged from short trainings on one group at a time.

Each training was made twice: on true rows, and on the same rows with their answers dealt out among them. Dealt-out rows show
the form of the answers and nothing else, so they are the null. Pure: `bursts.py` trains.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.crossed import Estimate, estimate_crossed
from mixwright.estimates.intervals import holm
from mixwright.estimates.possible import within_possible
from mixwright.records import Pull, Taught, Teaching, TeachingWord

KNOWN_SHARE = 0.9
"""Success before from which on nothing is left to teach."""
GAIN = 0.15
"""Rise of success that matters, a share of the items; a smaller one than this can be excluded."""
ALPHA = 0.05

Part = tuple[str, Literal["unseen", "trained"]]
"""A group, and whether its trained rows or other items of it are read."""
Reading = Mapping[Part, NDArray[np.float64]]
"""Part -> success of each of its items, shape (items,)."""
Runs = Mapping[tuple[str, bool], Sequence[Reading]]
"""(group, whether its answers were dealt out) -> the reading after each training, one per seed."""


def judge_teaching(
    before: Reading, runs: Runs, rows: Mapping[str, int], *, steps: int, batch: int, left_out: Sequence[str] = ()
) -> Teaching:
    """Judge every group that was trained on, and every pair of a trained group with another.

    Args:
        before: of the model before training.
        runs: both kinds of trainings of a group, seed by seed.
        rows: group -> distinct rows of a training.
        steps: of a training.
        batch: rows of a step.
        left_out: groups that were not trained on.
    """
    trained = [group for group in rows if runs.get((group, False)) and runs.get((group, True))]
    taught = tuple(_judge_group(group, before, runs, rows[group]) for group in trained)
    pulls = _judge_pulls(before, runs, trained)
    return Teaching(steps, batch, taught, tuple(sorted(pulls, key=lambda pull: pull.change.value)), tuple(left_out))


def _judge_group(group: str, before: Reading, runs: Runs, rows: int) -> Taught:
    true, dealt = ([*runs[group, kind]] for kind in (False, True))
    trainings, unseen_items = min(len(true), len(dealt)), before.get((group, "unseen"), np.zeros(0))
    if not len(unseen_items):
        return Taught(group, "not graded", rows, 0, trainings, None, None, None, None, None)
    unseen, over_dealt = _changes(true[:trainings], dealt[:trainings], before, (group, "unseen"))
    trained, trained_over_dealt = _changes(true[:trainings], dealt[:trainings], before, (group, "trained"))
    success = float(unseen_items.mean())
    word = choose_word(success, unseen, over_dealt, trained, trained_over_dealt)
    intervals = (change.interval for change in (unseen, over_dealt, trained, trained_over_dealt))
    return Taught(group, word, rows, len(unseen_items), trainings, success, *intervals)


def choose_word(
    before: float, unseen: Estimate, over_dealt: Estimate, trained: Estimate, trained_over_dealt: Estimate
) -> TeachingWord:
    """Return what rows teach.

    Args:
        before: success on items that are not trained on.
        unseen: change of it by true rows.
        over_dealt: the same minus the change by dealt-out rows.
        trained: change on the trained rows, by true rows.
        trained_over_dealt: the same minus the change by dealt-out rows.
    """
    if before >= KNOWN_SHARE:
        return "known already"
    if unseen.low > 0 and over_dealt.low > 0:
        return "skill"
    if unseen.low > 0 and over_dealt.high < GAIN:
        return "format only"
    if trained.low > 0 and trained_over_dealt.low > 0 and unseen.high < GAIN:
        return "facts"
    if trained.high < GAIN and unseen.high < GAIN:
        return "nothing"
    return "cannot tell"


def _changes(true: Sequence[Reading], dealt: Sequence[Reading], before: Reading, part: Part) -> tuple[Estimate, Estimate]:
    """Change of a part by true rows, and the same minus that by dealt-out rows."""
    after, control = (np.stack([reading[part] for reading in readings]) for readings in (true, dealt))
    return _compare(after, before[part]), _compare(after, control)


def _compare(after: NDArray[np.float64], before: NDArray[np.float64]) -> Estimate:
    """Estimate a change; success cannot rise above 1. Shapes (seeds, items), and of one reading before (items,)."""
    strata, share = np.zeros(after.shape[1], np.int64), np.full(after.shape[1], 1 / after.shape[1])
    return within_possible(estimate_crossed(after - before, strata), np.atleast_2d(before), after, strata, share)


def _judge_pulls(before: Reading, runs: Runs, trained: Sequence[str]) -> list[Pull]:
    read = [group for group, part in before if part == "unseen" and len(before[group, part])]
    pairs = [(one, other) for one in trained for other in read if one != other and (other, "unseen") in runs[one, False][0]]
    changes = []
    for one, other in pairs:
        part: Part = (other, "unseen")
        changes.append(_compare(np.stack([reading[part] for reading in runs[one, False]]), before[part]))
    adjusted = holm([change.p for change in changes])
    return [
        Pull(one, other, change.interval, p <= ALPHA)
        for (one, other), change, p in zip(pairs, changes, adjusted, strict=True)
    ]

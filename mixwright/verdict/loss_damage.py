"""Damage where no answer is graded: one rule, by which the gate answers and the page names its claims.

A rise of a loss is shown with few items, and a small one is no damage. Damage is that the loss on the given targets rose by
`FAR_NATS_PER_TOKEN`, or that what the model answered before became as much less likely and was not replaced by targets
that were learnt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mixwright.measure.former import FormerAnswers, former_file
from mixwright.records import Interval
from mixwright.runs import RunFolder, read_list
from mixwright.verdict.text import join_words

FAR_NATS_PER_TOKEN = 1.0
"""Nats a token by which former answers, or targets, must be shown to have become less likely.

Tasks that were kept moved by 0.22 at most, tasks that were lost by 2.89 at least (`verdict/sections/answer_forms.py`).
"""


def rose_far(rose: Interval | None) -> bool:
    """Whether a loss is shown to have risen by `FAR_NATS_PER_TOKEN`; None where too few items were read."""
    return rose is not None and rose.low > FAR_NATS_PER_TOKEN


def is_lost(rose: Interval | None, former: FormerAnswers | None, *, learnt: bool) -> bool:
    """Whether a cell is damaged.

    Args:
        rose: change of its held-out loss, after minus before; None where too few items were read.
        former: of its task; None where nothing was read.
        learnt: whether its targets are shown to have become likelier, so that what it answered before may be gone.
    """
    gone = former is not None and former.high < -FAR_NATS_PER_TOKEN and not learnt
    return gone or rose_far(rose)


def former_of(run: RunFolder) -> Mapping[str, FormerAnswers]:
    """Task -> how its former answers moved; empty where none were read."""
    path = former_file(run)
    return {one.task: one for one in read_list(path, FormerAnswers)} if path.is_file() else {}


def far_former_answers(run: RunFolder, tasks: Collection[str]) -> list[FormerAnswers]:
    """Tasks whose former answers are shown to have become less likely by `FAR_NATS_PER_TOKEN`, the furthest first."""
    found = former_of(run).values()
    return sorted((one for one in found if one.task in tasks and one.high < -FAR_NATS_PER_TOKEN), key=lambda one: one.change)


def format_unlikely(found: Sequence[FormerAnswers]) -> str:
    """`its own former answers to capitals and sums became far less likely, by 3.1 to 4.2 nats a token`; empty for none."""
    if not found:
        return ""
    most, least = (f"{-one.change:.2g}" for one in (found[0], found[-1]))
    by = most if most == least else f"{least} to {most}"
    return (
        f"its own former answers to {join_words([one.task for one in found])} became far less likely, by {by} nats a token"
    )

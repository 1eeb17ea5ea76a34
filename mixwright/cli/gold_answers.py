"""Gold answers that are read beside success: of tasks in which one string is right, and why not of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from mixwright.config import MeasureConfig
from mixwright.errors import join_some, one_line
from mixwright.estimates.readings import READINGS

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.measure.stage import MeasureResult

GOLD_PROBE = READINGS["gold"].probe


def with_gold(measure: MeasureConfig, corpus: Corpus, say: Callable[[str], None]) -> MeasureConfig:
    """The settings without the probe where no task's grader accepts one string alone; says of which tasks it reads.

    Args:
        measure: probes that are wanted; nothing is said where this is not among them.
        corpus: with the graders that answers are judged by.
        say: told what is read, and why other tasks are not, in one line.
    """
    from mixwright.measure.targets import exact_answer_tasks

    if GOLD_PROBE not in measure.probes:
        return measure
    read, others = exact_answer_tasks(corpus), defaultdict[str, list[str]](list)
    for name, task in corpus.tasks.items():
        if name not in read and task.kind == "verifiable":
            others[task.grader.partition("?")[0]].append(name)
    why = "; ".join(f"{grader} accepts more than one string: not of {join_some(tasks)}" for grader, tasks in others.items())
    if read:
        told = f"probability of the answers of {join_some(sorted(read))} is read in one forward pass, no answer is written"
        say(one_line(f"gold answers: {told}{f' ({why})' if why else ''}"))
        return measure
    say(one_line(f"gold answers: not read ({why})"))
    return replace(measure, probes=tuple(name for name in measure.probes if name != GOLD_PROBE))


def has_gold(found: MeasureResult) -> bool:
    """Whether gold answers were read, as measurings of earlier versions did not."""
    return any(row.probe == GOLD_PROBE for row in found.measurements)

"""Small made-up inputs beside those of `plugin_samples.py`, for the kinds that are tested here alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plugin_samples as samples

from mixwright.records import (
    Example,
    Measurement,
    Objective,
    Observation,
    Signals,
)

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.learner.training_rows import TrainingRow
    from mixwright.measure.passes import Passes
    from mixwright.plan.mix import Mix
    from mixwright_extras.scan.contract import Pass
    from mixwright_extras.scan.passes import ScanPasses


def measurable() -> Corpus:
    """The healthy corpus with everything that a probe may read: answers, targets, pairs, and skills that come together."""
    from mixwright.corpus import Corpus

    skills = {"add": ("add",), "count": ("count",), "spell": ("add", "count")}
    return Corpus.from_examples(
        replace(row, target=row.answer, chosen=row.answer, rejected="no idea", skills=skills[row.task])
        for row in samples.corpus()
    )


def mixes() -> list[Mix]:
    """A mix of prompts with answers, one of chats to imitate, and one of pairs; the first part has two thirds."""
    import numpy as np

    from mixwright.plan.mix import Mix, MixPart

    made: list[Mix] = []
    kinds: list[tuple[Objective, Corpus]] = [("grpo", samples.corpus().select(split="train"))]
    for objective, over in [*kinds, ("sft", samples.corpora()[3]), ("dpo", samples.corpora()[5])]:
        rows = np.arange(len(over))
        halves = (rows[:1], rows[1:])
        parts = [MixPart(f"0{n + 1}_part", over[0].task, 1.0, share, halves[n]) for n, share in enumerate((2 / 3, 1 / 3))]
        order = np.array([halves[0][0], halves[0][0], halves[1][0]] * 2)
        made.append(Mix(objective, over, tuple(parts), order, 2, 3, ("A note: # of {it}.",)))
    return made


def passes(learner: Learner, over: Corpus) -> Passes:
    """The shared passes of a learner over a few items."""
    from mixwright.config import MeasureConfig
    from mixwright.measure.passes import Passes

    return Passes(learner, MeasureConfig(items=2, samples=2, max_new_tokens=4), over.select(split="eval"))


def scanned(learner: Learner) -> list[list[TrainingRow]]:
    """Rows of the scan: healthy ones, odd ones (cut, chats, without prompt, target or answer, pairs), and none of use."""
    from mixwright.learner.training_rows import read_training_rows

    chat = ({"role": "user", "content": "2 + 2 ="},)
    odd = [
        Example("bare", "add", "1 + 1 ="),
        Example("text", "add", "", target="some text"),
        Example("long", "add", "2 + 3 =", target="12345 " * 20),
        Example("all", "add", "9 " * 60, target="5"),
        Example("chat", "add", chat, target=({"role": "assistant", "content": "4"},)),
        Example("pair", "add", "which?", chosen="this", rejected="that"),
        Example("empty", "add", "1 + 1 =", target=""),
    ]
    healthy = list(measurable())[:6]
    return [
        list(read_training_rows(learner, rows, tokenise_together=True, limit=48))
        for rows in (healthy, healthy[:1] + odd, odd[:1])
    ]


def scan_passes(learner: Learner, rows: Sequence[TrainingRow], asked: Sequence[Pass]) -> ScanPasses:
    """The passes of the scan over a few rows; those not in `asked` raise."""
    from mixwright.config import MeasureConfig
    from mixwright_extras.scan.passes import ScanPasses
    from mixwright_extras.scan.sketch_calibration import SketchSettings, calibrate, calibration_rows

    config, every = MeasureConfig(samples=2, max_new_tokens=4), scanned(learner)[0]
    found = None
    if "gradients" in asked:
        found = calibrate(learner, calibration_rows(every, 0), SketchSettings(directions_per_side=4, dims=64))
    return ScanPasses(learner, rows, frozenset(asked), measurable(), config, calibration=found)


def audit() -> list[Observation]:
    """One harmless observation."""
    return [Observation("frequency", "add", "info", 40, 80, "add has half of the rows.", "")]


def competence() -> list[Measurement]:
    """What the probes competence, retention and transfer say of the made-up cells."""
    return samples.competence() + retention() + transfer()


def items(gain: float) -> list[Measurement]:
    """What the competence probe says of ten items of each cell; `gain` is added where answers depend on prompts."""
    rows = []
    for cell in samples.cells():
        success = min(samples.SUCCESS_BY_CELL[cell.key] + gain * (samples.SUCCESS_BY_CELL[cell.key] > cell.chance), 1.0)
        for place in range(10):
            own = float(place < 10 * success)
            values = {"greedy": own, "pass@1": own, "chance": float(place < 10 * cell.chance)}
            values |= {f"{name}.swapped": samples.SWAPPED_BY_CELL[cell.key] for name in ("greedy", "pass@1")}
            where = ("share", cell.level, f"{cell.key}#{place}")
            rows += [Measurement("competence", cell.task, name, v, v, v, 8, *where) for name, v in values.items()]
    return rows


def retention() -> list[Measurement]:
    """What the retention probe says: every task's loss, and of the rarest how much a burst gained and how much is left."""

    def row(task: str, name: str, value: float, unit: str) -> Measurement:
        return Measurement("retention", task, name, value, 0.9 * value, 1.1 * value, 32, unit)

    burst = {"burst_gain": 0.8, "burst_rows": 240.0, "retained@40": 0.5, "half_life": 40.0}
    losses = {task: row(task, "loss", 2.0, "nats per token") for task in ("add", "count", "spell")}
    return [*losses.values(), *(row("spell", name, value, "as it is") for name, value in burst.items())]


def transfer() -> list[Measurement]:
    """What the transfer probe says: each task learns from its own run, and loses to runs on those after it in the list."""
    tasks, rows = ("add", "count", "spell"), []
    for first in tasks:
        rows += [(f"success after {first}", first, 0.8), ("success after all tasks together", first, 0.6)]
        for second in tasks:
            if second != first:
                lost = -0.5 if tasks.index(second) > tasks.index(first) else 0.0
                rows += [(f"change by {second}", first, lost), (f"change from {first}", second, 0.0)]
    rows += [("place in the best order", task, 3.0 - place) for place, task in enumerate(tasks)]
    rows += [("the best order less all tasks together", "*", 0.2)]
    unit = "share"
    return [Measurement("transfer", task, name, value, value - 0.05, value + 0.05, 96, unit) for name, task, value in rows]


def signals(step: int) -> list[Signals]:
    """The step's numbers, calm and alarming, with and without a KL."""
    return [
        Signals(step),
        Signals(step, beta=0.04, kl_nats=0.3 * step),
    ]


def contents(place: Path) -> dict[str, Any]:
    """Every file of a folder with its bytes."""
    return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}

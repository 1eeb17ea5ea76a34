"""Stage that runs every probe of the configuration over one set of shared passes."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright import catalog
from mixwright.answers.table import Answers
from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.corpus.timed_grades import KeptGrades
from mixwright.measure.passes import Passes
from mixwright.records import Measurement, Observation

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner


@dataclass(frozen=True)
class MeasureResult:
    """What was measured, and what it cost."""

    measurements: tuple[Measurement, ...]
    """Of all probes, long format."""
    answers: Answers = field(default_factory=lambda: Answers.from_rows(()))
    """What was written, greedy and sampled, and what was read of items."""
    seconds_per_item: float = 0.0
    """Seconds per item; 0 where nobody took the time."""
    notes: tuple[Observation, ...] = ()
    """What the probes remark on their measurements."""

    @cached_property
    def completions(self) -> list[dict[str, Any]]:
        """Greedy answers: example, task, level, prompt, answer, completion, score, cut, tokens, logprob (nats, of all)."""
        return self.answers.first_rows()

    @property
    def cut(self) -> float:
        """Share of all that was written that was cut at `max_new_tokens`, 0..1."""
        return float(self.answers.column("cut").astype(bool).sum()) / max(len(self.answers), 1)


def settings_after(config: MeasureConfig) -> MeasureConfig:
    """The settings of a measuring after a run: without probes that are made before it only."""
    kept_probes = tuple(name for name in config.probes if not catalog.load("probes", name).ONCE)
    return replace(config, probes=kept_probes)


def training_probes(config: MeasureConfig) -> tuple[str, ...]:
    """Probes that train copies of the model: what they cost, and need, does not follow from a few items."""
    return tuple(name for name in config.probes if catalog.load("probes", name).TRAINS)


def measure_learner(
    learner: Learner,
    corpus: Corpus,
    config: MeasureConfig,
    *,
    seed: int,
    report_done: Callable[[float], None] | None = None,
    nested: bool = False,
    kept_grades: KeptGrades | None = None,
) -> MeasureResult:
    """Run the probes of `config` on `learner`.

    Args:
        learner: left as it was.
        corpus: its eval split is measured (all of it when there is none); its train split, if there, gives the chance level.
        config: probes and sizes.
        seed: of samples and probes; one seed before and after couples the two.
        report_done: called with the share of the work that is done, 0..1.
        nested: what is sampled for an item does not depend on how many others are measured.
        kept_grades: of earlier measurings of the same rows, by the same graders; those of this one are added.

    Raises:
        InputError: unknown probe, nothing to grade, or prompts too long.
    """
    probes = {name: catalog.create("probes", name, dict(config.options.get(name, {}))) for name in config.probes}
    passes = Passes(learner, config, corpus, seed, report_done, nested=nested, kept_grades=kept_grades)
    measurements: list[Measurement] = []
    notes: list[Observation] = []
    for name, probe in probes.items():
        found = probe.measure(passes, corpus, np.random.default_rng([seed, zlib.crc32(name.encode())]))
        measurements += found
        notes += probe.remark(found)
    if passes.generated:  # answers that a grader did not judge in time
        counts = Counter(item.task for item in passes.items)
        for task, late in sorted(passes.grades.late.items()):
            measurements.append(Measurement("graders", task, "late", late, late, late, counts[task], "answers"))
    read = Answers.from_rows(passes.readings.values())
    answers = passes.answers.followed_by(read) if passes.generated else read
    return MeasureResult(tuple(measurements), answers, notes=tuple(notes))

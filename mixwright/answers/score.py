"""Success and what it consists of, computed from answers alone.

Source: pass@k by the unbiased estimator of Chen et al. (2107.03374); learnability as in LILO (2502.12272); D, S, kappa and
    the chance level: `mixwright/estimates`.
Unit: shares; p values.
Cost: linear in the answers.
Blind spot: if S is not known, no change of it is seen, and no gain is called an improvement.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mixwright.answers.table import READ_COLUMNS, Answers, CellNull, Group, SwapTest
from mixwright.estimates.crossed import estimate_crossed
from mixwright.estimates.dependence import dependence_of_items
from mixwright.estimates.intervals import clustered_share, pass_at_k, rate
from mixwright.estimates.outcome import (
    CHANCE_MEASUREMENT,
    LABEL_MEASUREMENT,
    LOG_PROBE,
    MEASUREMENT_BY_DECODING,
    PART_PREFIX,
    SWAPPED_SUFFIX,
    ItemScores,
)
from mixwright.estimates.readings import READINGS
from mixwright.records import Example, Interval, Measurement
from mixwright.run.folder import answers_file

PROBE = READINGS["greedy"].probe
GAIN_SUFFIX = ".gain"
"""After the name of a measurement of success: how far it lies above chance."""


def measure_answers(answers: Answers) -> list[Measurement]:
    """Success, pass@k, learnability, S, D, kappa, p value and chance level of cells and tasks, gain over chance of tasks.

    Rows of a cell have its level; rows of a whole task have level None and exist if a task has levels. Learnability is the
    mean over items of p(1 - p), unbiased: the variance of a 0/1 reward within one prompt, 0..0.25.
    """
    found = list(_measure_log(answers)) if answers.header.log else []
    nulls = {(null.task, null.level): null for null in answers.header.nulls}
    nulls_of_task: dict[str, list[CellNull]] = defaultdict(list)
    for null in nulls.values():
        nulls_of_task[null.task].append(null)
    for group, places in answers.groups.items():
        is_cell = len(answers.cells.get(group, ())) == len(places)
        of_task = nulls_of_task[group[0]]
        chance, rule = _find_chance(answers, places, nulls.get(group) if is_cell else None, of_task)
        found += _measure_group(answers, group, places, chance, rule)
        if is_cell and group in nulls:
            found += _measure_dependence(group, nulls[group].tests)
        elif of_task and len(places) > 2:  # the mean over its items, each swapped within its own level
            found += _measure_dependence(group, {name: _test_task(answers, name, places) for name in answers.decodings})
        found += _measure_gain(answers, group, places)
    return found


def _measure_log(answers: Answers) -> Iterator[Measurement]:
    """Answers that a log has of each task: what says that S need not be known."""
    for task, count in ((row["values"], row["counts"]) for row in answers.table["task"].value_counts().to_pylist()):
        yield Measurement(LOG_PROBE, task, "answers", count, count, count, len(answers.groups[task, None]), "answers")


def _find_chance(
    answers: Answers, places: NDArray[np.int64], own: CellNull | None, of_task: Sequence[CellNull]
) -> tuple[Interval | None, str]:
    """Chance level of a cell and its rule; of a task of several levels the mean over its items."""
    if own is not None or not of_task:
        return (own.chance, own.rule) if own is not None else (None, "")
    rules = {null.rule for null in of_task}
    chance = clustered_share(answers.of_items("chance")[places], 1)
    return chance, rules.pop() if len(rules) == 1 else "rules of the levels"


def _measure_group(
    answers: Answers, group: Group, places: NDArray[np.int64], chance: Interval | None, rule: str
) -> Iterator[Measurement]:
    """Success, pass@k, learnability and chance level of one cell or task."""
    null = None if chance is None else chance.value
    for decoding in answers.decodings:
        success, counts = answers.by_decoding[decoding].success[places], answers.by_decoding[decoding].counts[places]
        samples = int(counts[0]) if (counts == counts[0]).all() else 1
        yield _make_row(group, MEASUREMENT_BY_DECODING[decoding], clustered_share(success, samples), null, rule)
    if chance is not None:
        yield _make_row(group, CHANCE_MEASUREMENT, chance, None, rule)
    yield from _measure_parts(answers, group, places)
    success, counts = answers.by_decoding["sampled"].success[places], answers.by_decoding["sampled"].counts[places]
    if (samples := int(counts[0])) > 1 and (counts == samples).all():
        any_right = np.array([pass_at_k(samples, round(share * samples), samples) for share in success.tolist()])
        any_null = None if null is None else 1 - (1 - null) ** samples
        yield _make_row(group, f"pass@{samples}", clustered_share(any_right, 1), any_null, rule)
        spread = rate(success * (1 - success) * samples / (samples - 1), np.ones(len(places)))
        if spread is not None:
            yield _make_row(group, "learnability", spread, 0.0, rule)


def _measure_parts(answers: Answers, group: Group, places: NDArray[np.int64]) -> Iterator[Measurement]:
    """Share of greedy answers of which a part, such as one field of JSON, is right."""
    parts = answers.parts
    names = dict.fromkeys(name for place in places.tolist() for name in parts.get(place, {}))
    for name in names:
        values = [float(parts[place][name]) for place in places.tolist() if name in parts.get(place, {})]
        yield _make_row(group, PART_PREFIX + name, clustered_share(np.array(values), 1), None, "")


def _test_task(answers: Answers, decoding: str, places: NDArray[np.int64]) -> SwapTest:
    """S, D and kappa of a task of several levels, without a test of its own."""
    decoded = answers.by_decoding[decoding]
    found = dependence_of_items(decoded.success[places], decoded.swapped[places])
    return SwapTest(found.swapped, found.dependence, found.kappa, None)


def _measure_dependence(group: Group, tests: Mapping[str, SwapTest]) -> Iterator[Measurement]:
    """S, D, kappa and the p value of the permutation test."""
    unrelated = "no dependence on the prompt"
    for decoding, test in tests.items():
        name = MEASUREMENT_BY_DECODING[decoding]
        yield _make_row(group, name + SWAPPED_SUFFIX, test.swapped, None, "")
        yield _make_row(group, f"{name}.dependence", test.dependence, 0.0, unrelated)
        yield _make_row(group, f"{name}.kappa", test.kappa, 0.0, unrelated)
    for decoding, test in tests.items():
        if test.p is not None:
            ends = Interval(test.p, test.p, test.p, test.swapped.n)
            yield _make_row(group, f"{MEASUREMENT_BY_DECODING[decoding]}.permutation", ends, None, "", "p value")


def _make_row(group: Group, name: str, found: Interval, null: float | None, rule: str, unit: str = "share") -> Measurement:
    origin = rule if null is not None or name == CHANCE_MEASUREMENT else ""
    ends = (found.value, found.low, found.high, found.n)
    return Measurement(PROBE, group[0], name, *ends, unit, group[1], null, origin)


def _measure_gain(answers: Answers, group: Group, places: NDArray[np.int64]) -> Iterator[Measurement]:
    """Success minus what the chance rule earns on the same items of a whole task, so that the interval holds both errors."""
    chance = answers.of_items("chance")[places]
    for decoding in answers.decodings:
        gaps = answers.by_decoding[decoding].success[places] - chance
        if group[1] is not None or not np.isfinite(gaps).all():
            continue
        found = estimate_crossed(gaps[None], answers.cell[places]).interval
        if np.isfinite([found.low, found.high]).all():
            yield _make_row(group, MEASUREMENT_BY_DECODING[decoding] + GAIN_SUFFIX, found, 0.0, "no gain over chance")


def scores_of_items(answers: Answers) -> ItemScores:
    """Success and S of each item under each decoding, its chance level, and what was read of it without writing."""
    columns = {CHANCE_MEASUREMENT: answers.of_items("chance")}
    for decoding in answers.decodings:
        name, decoded = MEASUREMENT_BY_DECODING[decoding], answers.by_decoding[decoding]
        columns |= {name: decoded.success, name + SWAPPED_SUFFIX: decoded.swapped}
        if (judge := answers.header.judge) is not None and judge.labels:
            first = answers.table.take(answers.first)
            labels = [judge.labels.get(item, np.nan) for item in first["item"].to_pylist()]
            is_judged = np.isin(first["task"].to_pylist(), judge.tasks)
            columns[LABEL_MEASUREMENT] = np.where(is_judged, labels, columns[name])
    columns |= {name: answers.of_items(name) for name in READ_COLUMNS}
    known = {name: values[answers.places] for name, values in columns.items() if not np.isnan(values).all()}
    return ItemScores(answers.items, known)


def read_scores(measurements: Path) -> ItemScores:
    """Read the scores of the items that a table of measurements is about. Raises InputError without their answers."""
    return scores_of_items(Answers.read(answers_file(measurements)))


def cell_measurements(
    probe: str, name: str, unit: str, items: Sequence[Example], values: Mapping[str, float]
) -> list[Measurement]:
    """The mean over the items of each cell, and of each task of several levels; groups of one item are left out."""
    groups: dict[Group, list[float]] = defaultdict(list)
    levels = Counter(task for task, _ in {(item.task, item.level) for item in items})
    for item in items:
        for level in (item.level, None) if levels[item.task] > 1 else (item.level,):
            groups[item.task, level].append(values[item.id])
    measurements = []
    for (task, level), own in groups.items():
        mean = rate(np.array(own), np.ones(len(own)))
        if mean is not None:
            low, high = (max(0.0, mean.low), min(1.0, mean.high)) if unit == "share" else (mean.low, mean.high)
            measurements.append(Measurement(probe, task, name, mean.value, low, high, mean.n, unit, level))
    return measurements

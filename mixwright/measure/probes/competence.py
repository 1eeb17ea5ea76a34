"""Probe of success, of the part of it that depends on the prompt, and of what a rule without the skill would score.

Source: pass@k by the unbiased estimator of Chen et al. (2107.03374); learnability as in LILO (2502.12272); D, S, kappa and
    the chance level: `mixwright/estimates`; what each is for: contributing/evidence/luck.md.
Unit: share; p values.
Cost: one greedy and `samples` sampled completions per item (0: greedy alone), shared with other probes; each completion
    graded on up to 64 other items of its cell (100 where a cell has no more).
Blind spot: a right answer reached by a wrong way counts as right; partial credit counts as wrong; a guess that reads the
    form of the prompt (a template, a sub-group) depends on the prompt as skill does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mixwright.contracts import Probe
from mixwright.corpus import Corpus
from mixwright.corpus.cells import chance_rules_of, rows_by, sample_answered_rows
from mixwright.corpus.rows import pc
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.chance import Chance, chance_level
from mixwright.estimates.dependence import Dependence, dependence_of_items
from mixwright.estimates.intervals import clustered_share, pass_at_k, rate, share_interval
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, PART_PREFIX, SWAPPED_SUFFIX
from mixwright.measure.passes import Group, Passes
from mixwright.measure.swaps import swap_cells
from mixwright.records import Example, Interval, Measurement

NEEDS = ("torch", "transformers")


class Competence(Probe):
    """Greedy, pass@1, pass@k, learnability, S, dependence, kappa and chance level per cell and task; the parts per item.

    Learnability is the mean over items of p(1 - p), unbiased: the variance of a 0/1 reward within one prompt, 0..0.25. A
    cell of prompts that are always right or always wrong has none, whatever its pass@1: its groups carry no signal.

    Rows of a cell carry its level; rows of a whole task have level None and exist where a task has levels. Items of a cell
    of fewer than `MIN_ITEMS` are judged for dependence among those of all such cells of the task, or the whole task.
    """

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Rules of the chance level are chosen on the training split of `corpus`, where it has one."""
        cells = swap_cells(passes, passes.cells, rng)
        chances = _chances(passes, corpus)
        hits, swapped = {}, {name: {} for name in passes.names}
        for group, items in passes.cells.items():
            hits |= {item.id: float(hit) for item, hit in zip(items, chances[group].hits, strict=True)}
            for name, values in cells[group].pseudo_values.items():
                swapped[name] |= {item.id: values[item.id] for item in items}
        measurements = []
        for group, items in passes.groups.items():
            is_cell = passes.cells.get(group) is items
            level = chances[group].interval if is_cell else clustered_share(np.array([hits[item.id] for item in items]), 1)
            rules = {chances[item.task, item.level].rule for item in items}
            rule = rules.pop() if len(rules) == 1 else "rules of the levels"
            measurements += _measure_group(passes, group, items, level, rule)
            if is_cell:
                measurements += _dependence(group, cells[group].dependence_by_name, cells[group].p_by_name)
            elif len(items) > 2:  # a task of several levels: the mean over its items, each swapped within its own level
                dependence_by_name = {}
                for name, swapped_by_item in swapped.items():
                    success = np.array([passes.rollouts[item.id].success(name) for item in items])
                    dependence_by_name[name] = dependence_of_items(
                        success, np.array([swapped_by_item[item.id] for item in items])
                    )
                measurements += _dependence(group, dependence_by_name, {})
        for item in passes.items:
            measurements += _measure_item(passes, item, {name: swapped[name][item.id] for name in swapped}, hits[item.id])
        return measurements


def _chances(passes: Passes, corpus: Corpus) -> dict[Group, Chance]:
    """The chance level of each cell's items, small cells with their task's."""
    rows = np.flatnonzero(pc.equal(corpus.table["split"], "train").to_numpy())
    tasks = {task for task, _ in passes.cells}
    members = {
        group: rows_of_group for group, rows_of_group in rows_by(corpus, rows, "task", "level").items() if group[0] in tasks
    }
    train = dict(zip(members, sample_answered_rows(corpus, members.values()), strict=True))
    chances = {}
    for (task, level), items in passes.cells.items():
        other_rows = train.get((task, level), [])
        if len(other_rows) < MIN_ITEMS:
            other_rows = [row for (other_task, _), rows in train.items() if other_task == task for row in rows]
        if len(other_rows) < MIN_ITEMS:  # then the items choose for each other, of a small cell those of its task
            is_small = len(items) < MIN_ITEMS
            other_rows = [item for item in passes.items if is_small and (item.task, item.level != level) == (task, True)]
        chances[task, level] = chance_level(chance_rules_of(passes.corpus, task), items, other_rows)
    return chances


def _measure_group(passes: Passes, group: Group, items: Sequence[Example], chance: Interval, rule: str) -> list[Measurement]:
    """Success, pass@k, learnability and chance level of one cell or task."""
    samples = passes.config.samples
    correct = [passes.rollouts[item.id].correct for item in items]
    greedy = np.array([passes.rollouts[item.id].success("greedy") for item in items])
    rows: dict[str, tuple[Interval, float | None]] = {"greedy": (clustered_share(greedy, 1), chance.value)}
    if samples:
        rows["pass@1"] = (
            clustered_share(np.array([item_correct.mean() for item_correct in correct]), samples),
            chance.value,
        )
    rows[CHANCE_MEASUREMENT] = (chance, None)
    grader = passes.corpus.grader(group[0])
    parts = [grader.parts(item, passes.rollouts[item.id].greedy.text) for item in items]
    for name in dict.fromkeys(name for part in parts for name in part):
        share = clustered_share(np.array([float(part[name]) for part in parts if name in part]), 1)
        rows[PART_PREFIX + name] = (share, None)
    if samples > 1:
        any_correct = np.array([pass_at_k(samples, int(item_correct.sum()), samples) for item_correct in correct])
        rows[f"pass@{samples}"] = (clustered_share(any_correct, 1), 1 - (1 - chance.value) ** samples)
        variances = (
            np.array([item_correct.mean() * (1 - item_correct.mean()) for item_correct in correct]) * samples / (samples - 1)
        )
        spread = rate(variances, np.ones(len(items)))
        if spread is not None:
            rows["learnability"] = (spread, 0.0)
    return [_make_row(group, name, estimate, null, rule) for name, (estimate, null) in rows.items()]


def _dependence(
    group: Group, dependence_by_name: Mapping[str, Dependence], p_by_name: Mapping[str, float]
) -> list[Measurement]:
    """S, D, kappa and the p value of the permutation test, greedy and sampled."""
    rows: dict[str, tuple[Interval, float | None]] = {}
    for name, dependence in dependence_by_name.items():
        rows[name + SWAPPED_SUFFIX] = (dependence.swapped, None)
        rows[f"{name}.dependence"] = (dependence.dependence, 0.0)
        rows[f"{name}.kappa"] = (dependence.kappa, 0.0)
    measured = [
        _make_row(group, name, estimate, null, "no dependence on the prompt") for name, (estimate, null) in rows.items()
    ]
    tests = {
        f"{name}.permutation": Interval(value, value, value, len(dependence_by_name[name].items))
        for name, value in p_by_name.items()
    }
    return measured + [
        _make_row(group, name, dependence_by_name, None, "", "p value") for name, dependence_by_name in tests.items()
    ]


def _make_row(
    group: Group, name: str, estimate: Interval, null: float | None, rule: str, unit: str = "share"
) -> Measurement:
    task, level = group
    origin = rule if null is not None or name == CHANCE_MEASUREMENT else ""
    estimate_fields = (estimate.value, estimate.low, estimate.high, estimate.n)
    return Measurement("competence", task, name, *estimate_fields, unit, level, None, null, origin)


def _measure_item(passes: Passes, item: Example, swapped: Mapping[str, float], chance_score: float) -> list[Measurement]:
    """Success and S of one item, greedy and sampled, and what the chance rule earns on it."""
    rollouts = passes.rollouts[item.id]
    values = {"pass@1": rollouts.correct, "greedy": np.array([rollouts.success("greedy")])}
    measurements = []
    for name, item_correct in values.items():
        if not (n := len(item_correct)):  # no completion was sampled
            continue
        success = share_interval(float(item_correct.sum()), n)
        numbers = {name: (success.value, success.low, success.high), name + SWAPPED_SUFFIX: (swapped[name],) * 3}
        for row, (value, low, high) in numbers.items():
            item_fields = (n, "share", item.level, item.id, chance_score, CHANCE_MEASUREMENT)
            measurements.append(Measurement("competence", item.task, row, value, low, high, *item_fields))
    chance = share_interval(chance_score, 1)
    chance_fields = (chance.value, chance.low, chance.high)
    return [
        *measurements,
        Measurement("competence", item.task, CHANCE_MEASUREMENT, *chance_fields, 1, "share", item.level, item.id),
    ]

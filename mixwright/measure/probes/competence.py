"""Probe of success, of the part of it that depends on the prompt, and of what a rule without the skill would score.

Source: pass@k by the unbiased estimator of Chen et al. (2107.03374); learnability as in LILO (2502.12272); D, S, kappa and
    the chance level: `mixwright/estimates`; what each is for: docs/luck.md.
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
from mixwright.estimates.outcome import CHANCE_MEASUREMENT, SWAPPED_SUFFIX
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
            for name, values in cells[group].items.items():
                swapped[name] |= {item.id: values[item.id] for item in items}
        found = []
        for group, items in passes.groups.items():
            is_cell = passes.cells.get(group) is items
            level = chances[group].interval if is_cell else clustered_share(np.array([hits[item.id] for item in items]), 1)
            rules = {chances[item.task, item.level].rule for item in items}
            rule = rules.pop() if len(rules) == 1 else "rules of the levels"
            found += _group(passes, group, items, level, rule)
            if is_cell:
                found += _dependence(group, cells[group].found, cells[group].p)
            elif len(items) > 2:  # a task of several levels: the mean over its items, each swapped within its own level
                parts = {}
                for name, of_item in swapped.items():
                    success = np.array([passes.rollouts[item.id].success(name) for item in items])
                    parts[name] = dependence_of_items(success, np.array([of_item[item.id] for item in items]))
                found += _dependence(group, parts, {})
        for item in passes.items:
            found += _item(passes, item, {name: swapped[name][item.id] for name in swapped}, hits[item.id])
        return found


def _chances(passes: Passes, corpus: Corpus) -> dict[Group, Chance]:
    """The chance level of each cell's items, small cells with their task's."""
    rows = np.flatnonzero(pc.equal(corpus.table["split"], "train").to_numpy())
    tasks = {task for task, _ in passes.cells}
    members = {
        group: rows_of_group for group, rows_of_group in rows_by(corpus, rows, "task", "level").items() if group[0] in tasks
    }
    train = dict(zip(members, sample_answered_rows(corpus, members.values()), strict=True))
    found = {}
    for (task, level), items in passes.cells.items():
        other = train.get((task, level), [])
        if len(other) < MIN_ITEMS:
            other = [row for (other_task, _), rows in train.items() if other_task == task for row in rows]
        if len(other) < MIN_ITEMS:  # then the items choose for each other, of a small cell those of its task
            small = len(items) < MIN_ITEMS
            other = [item for item in passes.items if small and (item.task, item.level != level) == (task, True)]
        found[task, level] = chance_level(chance_rules_of(passes.corpus, task), items, other)
    return found


def _group(passes: Passes, group: Group, items: Sequence[Example], chance: Interval, rule: str) -> list[Measurement]:
    """Success, pass@k, learnability and chance level of one cell or task."""
    samples = passes.config.samples
    correct = [passes.rollouts[item.id].correct for item in items]
    greedy = np.array([passes.rollouts[item.id].success("greedy") for item in items])
    rows: dict[str, tuple[Interval, float | None]] = {"greedy": (clustered_share(greedy, 1), chance.value)}
    if samples:
        rows["pass@1"] = (clustered_share(np.array([part.mean() for part in correct]), samples), chance.value)
    rows[CHANCE_MEASUREMENT] = (chance, None)
    if samples > 1:
        best = np.array([pass_at_k(samples, int(part.sum()), samples) for part in correct])
        rows[f"pass@{samples}"] = (clustered_share(best, 1), 1 - (1 - chance.value) ** samples)
        inside = np.array([part.mean() * (1 - part.mean()) for part in correct]) * samples / (samples - 1)
        spread = rate(inside, np.ones(len(items)))
        if spread is not None:
            rows["learnability"] = (spread, 0.0)
    return [_row(group, name, estimate, null, rule) for name, (estimate, null) in rows.items()]


def _dependence(group: Group, found: Mapping[str, Dependence], p: Mapping[str, float]) -> list[Measurement]:
    """S, D, kappa and the p value of the permutation test, greedy and sampled."""
    rows: dict[str, tuple[Interval, float | None]] = {}
    for name, known in found.items():
        rows[name + SWAPPED_SUFFIX] = (known.swapped, None)
        rows[f"{name}.dependence"] = (known.dependence, 0.0)
        rows[f"{name}.kappa"] = (known.kappa, 0.0)
    measured = [_row(group, name, estimate, null, "no dependence on the prompt") for name, (estimate, null) in rows.items()]
    tests = {f"{name}.permutation": Interval(value, value, value, len(found[name].items)) for name, value in p.items()}
    return measured + [_row(group, name, found, None, "", "p value") for name, found in tests.items()]


def _row(group: Group, name: str, found: Interval, null: float | None, rule: str, unit: str = "share") -> Measurement:
    task, level = group
    origin = rule if null is not None or name == CHANCE_MEASUREMENT else ""
    ends = (found.value, found.low, found.high, found.n)
    return Measurement("competence", task, name, *ends, unit, level, None, null, origin)


def _item(passes: Passes, item: Example, swapped: Mapping[str, float], chance_score: float) -> list[Measurement]:
    """Success and S of one item, greedy and sampled, and what the chance rule earns on it."""
    rollouts = passes.rollouts[item.id]
    values = {"pass@1": rollouts.correct, "greedy": np.array([rollouts.success("greedy")])}
    found = []
    for name, part in values.items():
        if not (n := len(part)):  # no completion was sampled
            continue
        success = share_interval(float(part.sum()), n)
        parts = {name: (success.value, success.low, success.high), name + SWAPPED_SUFFIX: (swapped[name],) * 3}
        for row, (value, low, high) in parts.items():
            of_item = (n, "share", item.level, item.id, chance_score, CHANCE_MEASUREMENT)
            found.append(Measurement("competence", item.task, row, value, low, high, *of_item))
    known = share_interval(chance_score, 1)
    ends = (known.value, known.low, known.high)
    return [*found, Measurement("competence", item.task, CHANCE_MEASUREMENT, *ends, 1, "share", item.level, item.id)]

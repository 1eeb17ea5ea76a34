"""Study of what the gate asks and passes: items and tokens, power, error and coverage, by layout and by churn.

A draw is one comparison of a file that has so many rows of each of some tasks. An item is right before with a chance of .7.
After training a share of the items has changed (the churn), as many up as down; then right answers are lost, or wrong ones
put right, by so many points as the case says. Eight layouts, four churns. The rule of commit 62dcd287 (*before*: one look at
all items, limits of single tasks as that commit gave them) and the rule of now are given the same files. Levers that were
tried are rules, too. S is not known, as in most logs. All tasks are named, but in the last layout, where five of six tasks
are new: nothing was right before.

The rules are written on counts, for all draws at once; `AGREEING` draws of each layout are also judged by `check_sides`, at
every look. Where the worst of many places is asked for, it is chosen on the first draws and judged on `FRESH` new ones.

Real rows: 323 comparisons of SmolLM2 with a fine-tune of it, item by item (`REAL`), tasks of which a tenth was right
before. Items are drawn from them with replacement, so the truth is known; once as they are, and once with as much lost or
put back as makes the mean loss the margin. Tokens are a quarter of the characters of both answers.

Mean of four samples and strata of BEFORE's grades: items of `real_grpo` drawn with the sign of their change at random.

Goals, fixed before the reported run: a mean loss of the margin passes in at most 3 %, wherever it is lost, and on real rows;
a task that lost what it has to exclude passes in at most 5 %, while others gain; intervals of the mean cover at least 94 %;
an unharmed model costs at most .6 of the tokens, mean over layouts and churns, by the package's plan of items and also at
the power and limits before, and passes nowhere more than 2 points more rarely than before; 12 x 60 passes at a churn of .2
in at least 85 %; in 90 % of cases a loss of 30 points is told in at most 110 items; at most 5 % of unharmed models are
called damaged; with four samples an unharmed model passes in 85 % by a margin of 10 points from 4 x 30 items; the rules on
counts agree with the package in every draw.

    python -m mixwright_lab.studies.gate_layouts [--quick]
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.exclusion import (
    CELL_INTERVAL_LEVEL,
    CHURN_SHARE,
    EXCLUDED_CELL_LOSS,
    LOSS_STEP,
    MIN_CHURN_SHARE,
    MIN_UNHARMED_PASS_SHARE,
    Z_CELL,
)
from mixwright.estimates.intervals import Z, share_interval, t_quantile, wilson
from mixwright.estimates.items import Item
from mixwright.estimates.looks import CELL_SHAPE, MEAN_SHAPE, MORE_ITEMS, Look, boundaries, count_looks
from mixwright.estimates.outcome import ItemScores
from mixwright.estimates.protected import READABLE_SHARE
from mixwright.verbs.compare import FIRST_ITEMS
from mixwright.verdict.rules.gate import HARM_CONFIDENCE, check_sides, items_to_measure
from mixwright.verdict.rules.gate_question import GateQuestion
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
START, GAIN = 0.7, 0.15
CHURNS = (0.05, 0.1, 0.2, 0.4)
LAYOUTS: Mapping[str, tuple[int, int, float, float]] = {
    "1 x 1,000": (1, 1000, 0.05, 0.2),
    "4 x 30, margin 15": (4, 30, 0.15, 0.35),
    "4 x 400": (4, 400, 0.05, 0.2),
    "8 x 50": (8, 50, 0.05, 0.2),
    "12 x 60": (12, 60, 0.05, 0.2),
    "12 x 400": (12, 400, 0.05, 0.2),
    "50 x 16": (50, 16, 0.05, 0.6),
    "1 of 6 x 1,000": (6, 1000, 0.05, 0.2),
}
"""Layout -> tasks, rows of each, margin, and the loss of a task that commit 62dcd287 had it exclude."""
NEW_TASKS = "1 of 6 x 1,000"
UNHARMED, LOST, LOST_BY_HALF, HALF_LOST = "unharmed", "the margin lost", "twice the margin in half", "half the margin lost"
RUINED, ONE_20, ONE_40, TEN_40 = "30 points lost", "one task -20", "one task -40", "ten tasks -40"
ONE_30 = "one task -30"
CASES = (UNHARMED, LOST, LOST_BY_HALF, HALF_LOST, RUINED, ONE_20, ONE_30, ONE_40, TEN_40)
REAL = ("real_sft", "real_skill_sft", "real_all_weights", "real_grpo")
RUNS, FRESH, REAL_RUNS, AGREEING = 1000, 10_000, 100, 2
SEED = 9173
"""Of the reported run; rules were chosen with others."""


@dataclass(frozen=True)
class Population:
    """What items are drawn from."""

    name: str
    joint: Array
    """Shape (tasks, 4): share of items wrong twice, wrong then right, right then wrong, right twice."""
    rows: NDArray[np.int64]
    """Of each task, in the file."""
    margin: float
    old_limit: float
    """Loss of a task that the rule before had to exclude."""
    tokens: Array
    """Written for an item of each task by both models."""

    @property
    def changes(self) -> Array:
        """True change of each task."""
        return self.joint[:, 1] - self.joint[:, 2]


@dataclass(frozen=True)
class Rule:
    """How the items are asked and judged."""

    old_limits: bool = False
    """Single tasks exclude what they had to before."""
    harm: bool = True
    """Harm is shown at each look by `HARM_CONFIDENCE`."""
    looks: int | None = None
    """None for as many as the package plans."""
    shape: float = MEAN_SHAPE
    reads_only: bool = True
    """Tasks that are shown to have too little right before for the gate to read them are asked no more."""
    hardest: bool = True
    """Once the mean excludes its loss, only tasks that do not are asked."""
    more: float = MORE_ITEMS


BEFORE, NOW = "before", "now"
RULES: Mapping[str, Rule] = {
    BEFORE: Rule(True, False, 1, reads_only=False, hardest=False, more=1.0),
    "before, --until-decided": Rule(True, False, 4, 0.0, reads_only=False, hardest=False, more=1.0),
    "one churn": Rule(looks=1, reads_only=False, hardest=False, more=1.0),
    "looks of O'Brien and Fleming": Rule(shape=0.0, reads_only=False, hardest=False),
    "looks": Rule(reads_only=False, hardest=False),
    "looks, items for what is read": Rule(hardest=False),
    NOW: Rule(),
}


def with_loss(joint: Array, loss: float) -> Array:
    """Turn right answers after into wrong ones until so much is lost more; below 0 the other way round."""
    own, (source, other) = joint.copy(), ((3, 1), (2, 0)) if loss > 0 else ((2, 0), (3, 1))
    share = min(abs(loss) / max(own[list(source)].sum(), 1e-12), 1.0)
    for place, target in zip(source, other, strict=True):
        own[target], own[place] = own[target] + share * own[place], (1 - share) * own[place]
    return own


def population(layout: str, churn: float, case: str) -> Population:
    """Make the items of a layout where this happened."""
    tasks, rows, margin, old_limit = LAYOUTS[layout]
    losses = np.zeros(tasks)
    if case in (LOST, RUINED, HALF_LOST):
        losses[:] = {LOST: margin, RUINED: 0.3, HALF_LOST: margin / 2}[case]
    elif case == LOST_BY_HALF:
        losses[: (tasks + 1) // 2] = margin * tasks / ((tasks + 1) // 2)
    elif case != UNHARMED:
        losses[:] = -GAIN
        losses[: 10 if case == TEN_40 else 1] = {ONE_20: 0.2, ONE_30: 0.3}.get(case, 0.4)
    flip = churn / 2
    still = np.array([1 - START - flip, flip, flip, START - flip])
    joint = np.stack([with_loss(still, loss) for loss in losses])
    if layout == NEW_TASKS:
        joint[1:] = (0.5, 0.5, 0.0, 0.0)
        joint[0] = with_loss(still, losses[0] if case != UNHARMED else 0.0)
    return Population(f"{layout}, churn {churn:g}, {case}", joint, np.full(tasks, rows), margin, old_limit, np.ones(tasks))


def has_case(layout: str, case: str) -> bool:
    """Whether a layout has tasks enough for the case."""
    tasks = 1 if layout == NEW_TASKS else LAYOUTS[layout][0]
    return tasks >= {LOST_BY_HALF: 2, ONE_20: 2, ONE_30: 2, ONE_40: 2, TEN_40: 20}.get(case, 1)


@functools.cache
def _table(confidence: float) -> tuple[Array, Array]:
    known = np.array([1.0, 2, 3, 4, 6, 8, 12, 20, 40, 100, 1e6])
    return -1 / known, np.array([t_quantile(float(df), confidence) for df in known])


def quantiles(df: Array, confidence: float) -> Array:
    """Quantiles of t, interpolated in 1 / df, in which they are nearly straight."""
    return np.interp(-1 / np.maximum(df, 1.0), *_table(confidence))


@dataclass
class Draws:
    """Draws of a population, and what became of them by a rule."""

    items: NDArray[np.int64]
    """Shape (runs, tasks)."""
    counts: Array
    """Shape (runs, tasks, 4), as `Population.joint`."""
    passed: Mask
    damaged: Mask
    unseen: Mask
    """Passed, although the first task lost all that it had to exclude."""
    value: Array
    low: Array
    high: Array
    truth: Array
    """Mean change of the tasks that are in the mean."""


def mean_of(draws: Draws, use: Mask, z: float, confidence: float) -> tuple[Array, Array]:
    """Mean change over tasks and the half-width of its interval, as `estimate_crossed` gives them."""
    n, tasks = draws.items.astype(float), np.maximum(use.sum(1, keepdims=True), 1)
    change, squares = _moves(draws)
    total = np.maximum(np.where(use, n, 0).sum(1, keepdims=True), 1)
    variances = np.where(use, (squares + z * z * n / total) / (n - 1) / n / tasks**2, 0)
    variance = variances.sum(1)
    df = variance**2 / np.maximum((variances**2 / (n - 1)).sum(1), 1e-300)
    return np.where(use, change, 0).sum(1) / tasks[:, 0], quantiles(df, confidence) * np.sqrt(variance)


def _moves(draws: Draws) -> tuple[Array, Array]:
    """Change of each task, and squares about it."""
    up, down = draws.counts[..., 1], draws.counts[..., 2]
    change = (up - down) / draws.items
    return change, up + down - draws.items * change**2


def task_half(draws: Draws, z: float, confidence: float) -> Array:
    """Half-width of each task's interval."""
    n, squares = draws.items.astype(float), _moves(draws)[1]
    return quantiles(n - 1, confidence) * np.sqrt((squares + z * z) / (n - 1) / n)


def plan(pop: Population, tasks: int, rule: Rule) -> NDArray[np.int64]:
    """Rows of each task that the last look asks if so many tasks are asked."""
    sizes = np.minimum(pop.rows, items_to_measure(tasks, margin=pop.margin))
    has_looks = (rule.looks or count_looks(sizes.tolist())) > 1
    return np.minimum(pop.rows, math.ceil(rule.more * sizes.max())) if has_looks else sizes


def simulate(pop: Population, rule: Rule, runs: int, seed: int) -> Iterator[tuple[Look, Draws, Mask]]:
    """Ask and judge so many comparisons; after each look what is there, and which comparisons were still open before it."""
    rng, tasks = np.random.default_rng([SEED, seed]), len(pop.rows)
    last = np.repeat(plan(pop, tasks, rule)[None], runs, axis=0)
    looks = rule.looks or count_looks(last[0].tolist())
    draws = Draws(
        np.zeros((runs, tasks), np.int64), np.zeros((runs, tasks, 4)), *np.zeros((3, runs), bool), *np.zeros((4, runs))
    )
    is_open, asked, readable = np.ones(runs, bool), np.ones((runs, tasks), bool), np.ones((runs, tasks), bool)
    common = np.ones(runs, np.int64)
    for number in range(1, looks + 1):
        target = np.maximum(np.ceil(last * number / looks).astype(int), np.minimum(FIRST_ITEMS, pop.rows))
        more = np.where(asked & is_open[:, None], np.maximum(target - draws.items, 0), 0)
        for task in range(tasks):
            draws.counts[:, task] += rng.multinomial(more[:, task], pop.joint[task])
        draws.items += more
        common = np.where((asked | ~readable).all(1), number, common)
        look = Look(number, 0, 0, looks)
        was_open, is_last = is_open, look.last
        protected = draws.counts[..., 2:].sum(-1) > 0
        readable = protected & (draws.counts[..., 2:].sum(-1) >= READABLE_SHARE * draws.items)
        limits = _limits(pop, rule, draws, look, protected)
        value = half = np.zeros(runs)
        for own in np.unique(common):
            at = replace(look, number=int(own))
            z = boundaries(looks, shape=rule.shape)[at.number - 1]
            found = mean_of(draws, readable, z, _confidence(z))
            value, half = (np.where(common == own, new, old) for new, old in zip(found, (value, half), strict=True))
        z_cell = boundaries(looks, 1 - CELL_INTERVAL_LEVEL, CELL_SHAPE)[number - 1] if looks > 1 else Z_CELL
        change = _moves(draws)[0]
        excluded = change - task_half(draws, z_cell, _confidence(z_cell)) > -limits
        level = 0.95 if is_last else _confidence(boundaries(looks, shape=rule.shape)[number - 1])
        level = level if is_last or not rule.harm else min(level, HARM_CONFIDENCE)
        lost = (protected & (change < -task_half(draws, Z, 1 - (1 - level) / tasks))).any(1)
        is_excluded = value - half > -pop.margin
        harmed = lost | ((value + half < 0) & ~is_excluded)
        if not is_last and rule.harm:
            mean, wide = mean_of(draws, readable, Z, HARM_CONFIDENCE)
            harmed |= mean + wide < -pop.margin
        safe = is_excluded & (excluded | ~readable).all(1) & ~harmed & readable.any(1)
        done = was_open & (safe | harmed | is_last)
        draws.passed, draws.damaged = draws.passed | (was_open & safe), draws.damaged | (was_open & harmed)
        draws.unseen |= was_open & safe & (limits[:, 0] <= 1e-9 - pop.changes[0])
        truth = np.where(readable, pop.changes, 0).sum(1) / np.maximum(readable.sum(1), 1)
        for name, new in (("value", value), ("low", value - half), ("high", value + half), ("truth", truth)):
            setattr(draws, name, np.where(was_open, new, getattr(draws, name)))
        yield look, draws, was_open
        is_open = was_open & ~done
        high = wilson(draws.counts[..., 2:].sum(-1), draws.items.astype(float), Z)[1]
        is_read = readable | (high >= READABLE_SHARE) if rule.reads_only else np.ones_like(readable)
        for count in set(is_read.sum(1).tolist()) - {0, tasks}:
            chosen = (is_read.sum(1) == count)[:, None] & is_read
            last = np.where(chosen, np.maximum(last, plan(pop, count, rule)), last)
        asked = is_read
        if rule.hardest and number + 1 < looks:
            asked = is_read & ~(is_excluded[:, None] & excluded & readable)
        asked = np.where(asked.any(1, keepdims=True), asked, True)


def _confidence(z: float) -> float:
    return min(math.erf(z / math.sqrt(2)), 1 - 1e-14)


def _limits(pop: Population, rule: Rule, draws: Draws, look: Look, protected: Mask) -> Array:
    """Loss that each task has to exclude: of the items at the last look."""
    if rule.old_limits:
        return np.full(draws.items.shape, pop.old_limit)
    sizes: Array = np.round(look.planned_looks / look.number * draws.items).astype(float)
    counts = np.where(protected[..., None], draws.counts, 0)
    others: Array = counts.sum(1, keepdims=True) - counts
    items = others.sum(2)
    churn = np.round(2 * np.minimum(others[..., 1], others[..., 2]) / np.maximum(items, 1), 2)
    churn = np.where(items > 0, churn, CHURN_SHARE)
    z_all = NormalDist().inv_cdf(MIN_UNHARMED_PASS_SHARE ** (1 / draws.items.shape[1]))

    def needed(least: float) -> Array:
        share = np.maximum(churn, least)
        error = np.sqrt((share + Z_CELL * Z_CELL / sizes) / (sizes - 1))
        return quantiles(sizes - 1, CELL_INTERVAL_LEVEL) * error + z_all * np.sqrt(share / sizes)

    steps = np.ceil(needed(CHURN_SHARE) / LOSS_STEP - 1e-9) * LOSS_STEP
    limits = np.where(needed(MIN_CHURN_SHARE) <= EXCLUDED_CELL_LOSS, EXCLUDED_CELL_LOSS, steps)
    return np.where(limits < 1, np.maximum(limits, pop.margin), np.inf)


def outcome(pop: Population, rule: Rule, runs: int, seed: int) -> dict[str, Any]:
    """Shares and means over comparisons."""
    told, draws = np.zeros(runs, bool), None
    for _, draws, _ in simulate(pop, rule, runs, seed):
        told |= draws.damaged & (draws.items.sum(1) <= 110)
    if draws is None:
        raise ValueError("no look was simulated")
    covered = (draws.low <= draws.truth) & (draws.truth <= draws.high)
    shares = {"passed": draws.passed, "damaged": draws.damaged, "covered": covered, "told in 110 items": told}
    shares["unseen"] = draws.unseen
    found = {name: float(values.mean()) for name, values in shares.items()}
    return found | {"items": float(draws.items.sum(1).mean()), "tokens": float((draws.items @ pop.tokens).mean())}


def tokens_at_power(layout: str, churn: float, power: float, runs: int) -> float:
    """Tokens of an unharmed model by the rule of now, with the limits before and as many items as give the power before."""
    pop, found = population(layout, churn, UNHARMED), 0.0
    for share in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        now = outcome(pop, replace(RULES[NOW], old_limits=True, more=share * MORE_ITEMS), runs, 0)
        found = now["tokens"]
        if now["passed"] >= power - 0.01:
            break
    return found


def agreement(layout: str, seed: int) -> tuple[int, int]:
    """Comparisons at a look that `check_sides` calls as the rule of now does, and all."""
    agreed = asked = 0
    cells = [(f"t{task:02}", None) for task in range(LAYOUTS[layout][0])]
    protect = () if layout == NEW_TASKS else tuple(task for task, _ in cells)
    for churn, case in itertools.product((0.05, 0.2), (UNHARMED, LOST, RUINED)):
        pop = population(layout, churn, case)
        for look, draws, was_open in simulate(pop, replace(RULES[NOW], hardest=False), AGREEING, seed):
            for number in np.flatnonzero(was_open).tolist():
                sides: list[list[ItemScores]] = [[], []]
                for side, right in zip(sides, ((2, 3), (1, 3)), strict=True):
                    scores: dict[Item, float] = {
                        (*cell, f"{kind}-{place}"): float(kind in right)
                        for cell, counts in zip(cells, draws.counts[number].astype(int).tolist(), strict=True)
                        for kind, count in enumerate(counts)
                        for place in range(count)
                    }
                    side.append(ItemScores.of({"greedy": scores}))
                question = GateQuestion(protect, margin=pop.margin, look=look if look.planned_looks > 1 else None)
                found = check_sides((sides[0], sides[1]), "greedy", question).outcome
                agreed, asked = agreed + ((found == "passed") == bool(draws.passed[number])), asked + 1
    return agreed, asked


def real_populations() -> list[Population]:
    """Make one of each fine-tune: its tasks but the new one, of which a tenth was right before."""
    found = []
    for file in REAL:
        sides: dict[int, dict[str, dict[tuple[str, str], tuple[float, int]]]] = {}
        for line in (RESULTS / f"{file}.rows.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            answers = {(answer[0], answer[1]): (answer[2], len(_text_of(answer))) for answer in row["answers"]}
            sides.setdefault(row["seed"], {})[row["arm"]] = answers
        for seed, arms in sides.items():
            before = arms.pop("frozen", {})
            for arm, after in arms.items():
                joint, rows, tokens = [], [], []
                for task in sorted({task for task, _ in before} - {"new"}):
                    pairs = [(before[item], after[item]) for item in before.keys() & after.keys() if item[0] == task]
                    kinds = np.bincount([2 * round(old) + round(new) for (old, _), (new, _) in pairs], minlength=4)
                    if len(pairs) >= 50 and kinds[2:].sum() >= READABLE_SHARE * len(pairs):
                        joint.append(kinds[[0, 1, 2, 3]] / len(pairs))
                        rows.append(len(pairs))
                        tokens.append(sum(old + new for (_, old), (_, new) in pairs) / 4 / len(pairs))
                if joint:
                    made = (np.array(joint), np.array(rows), 0.05, 0.2, np.array(tokens))
                    found.append(Population(f"{file} {seed} {arm}", *made))
    return found


def _text_of(answer: Sequence[Any]) -> str:
    return next(part for part in answer[3:] if isinstance(part, str))


def at_margin(pop: Population) -> Population:
    """Give the population a mean loss of its margin: every task loses, or gets back, the same."""
    low, high = -1.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        moved = replace(pop, joint=np.stack([with_loss(joint, middle) for joint in pop.joint]))
        low, high = (middle, high) if moved.changes.mean() > -pop.margin else (low, middle)
    return replace(pop, joint=np.stack([with_loss(joint, high) for joint in pop.joint]))


def sampled_passes(tasks: int, items: int, margin: float, runs: int) -> dict[str, float]:
    """Share of unharmed models that pass on the mean, by greedy answers or four samples, with and without strata.

    With strata BEFORE's grades are known of five times the items. The churn is that of the real rows.
    """
    pool = []
    sides: dict[int, dict[str, dict[str, list[float]]]] = {}
    for line in (RESULTS / "real_grpo.rows.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        answers = {answer[1]: answer[2:4] for answer in row["answers"] if answer[0] in ("capitals", "past_tenses", "sums")}
        sides.setdefault(row["seed"], {})[row["arm"]] = answers
    for arms in sides.values():
        before = arms.pop("frozen", {})
        pool += [(*before[item], *after[item]) for after in arms.values() for item in after.keys() & before.keys()]
    real, rng, found = np.array(pool), np.random.default_rng([SEED, tasks]), dict[str, float]()
    turned = np.concatenate([real, real[:, [2, 3, 0, 1]]])  # as often the other way round: unharmed
    drawn = turned[rng.integers(len(turned), size=(runs, tasks, 5 * items))]
    for name, column in (("greedy", 0), ("four samples", 1)):
        old, new = drawn[..., column], drawn[..., column + 2]
        change, right = (new - old)[..., :items], drawn[..., 0] > 0.5
        moved = np.abs(change) > 0.02
        scale = (Z * Z + (change**2).sum((1, 2))) / (Z * Z + moved.sum((1, 2)))
        added = Z * Z * np.minimum(scale, 1.0)[:, None] / tasks
        variance = (items * change.var(axis=-1) + added) / (items - 1) / items
        mean, error = change.mean((1, 2)), np.sqrt(variance.sum(1)) / tasks
        found[name] = float((mean - t_quantile(tasks * (items - 1)) * error > -margin).mean())
        share, parts, variance = right.mean(-1), *np.zeros((2, runs, tasks))
        means = []
        for kind in (True, False):
            inside = right[..., :items] == kind
            count, weight = np.maximum(inside.sum(-1), 2), share if kind else 1 - share
            means.append(np.where(inside, change, 0).sum(-1) / count)
            squares = np.where(inside, (change - means[-1][..., None]) ** 2, 0).sum(-1)
            parts += weight * means[-1]
            variance += weight**2 * (squares + added * weight) / (count - 1) / count
        variance += share * (1 - share) * (means[0] - means[1]) ** 2 / (5 * items)
        error = np.sqrt(variance.sum(1)) / tasks
        found[f"{name}, strata"] = float((parts.mean(1) - t_quantile(tasks * (items - 2)) * error > -margin).mean())
        found[f"{name}, variance"] = float((new - old).var())
    return found


def measure(quick: bool) -> Result:
    """All places by all rules, the worst ones on new draws, real rows."""
    runs, fresh, real_runs = (100, 100, 20) if quick else (RUNS, FRESH, REAL_RUNS)
    places = [place for place in itertools.product(LAYOUTS, CHURNS, CASES) if has_case(place[0], place[2])]
    table: dict[tuple[str, float, str, str], dict[str, Any]] = {}
    for number, place in enumerate(places):
        for name, rule in RULES.items():
            if name in (BEFORE, NOW) or place[2] in (UNHARMED, LOST, RUINED):
                table[*place, name] = outcome(population(*place), rule, runs, number)

    def again(cases: Sequence[str], figure: str, *, most: bool) -> tuple[str, float]:
        """Figure of the worst place of these cases, on new draws."""
        chosen = [place for place in places if place[2] in cases]
        worst = (max if most else min)(chosen, key=lambda place: table[*place, NOW][figure])
        pop = population(*worst)
        return pop.name, outcome(pop, RULES[NOW], fresh, len(places))[figure]

    goals = []

    def add(name: str, value: float, times: int, limit: float, *, most: bool = True) -> None:
        found = share_interval(round(value * times), times) if 0 <= value <= 1 else share_interval(0, 1)
        reached = value <= limit if most else value >= limit
        goals.append(Goal(name, replace(found, value=value), f"{'<=' if most else '>='} {limit:g}", reached))

    for name, cases, figure, limit, most in (
        ("the margin lost: passes", (LOST, LOST_BY_HALF), "passed", 0.03, True),
        ("a task lost its limit: passes", (ONE_20, ONE_30, ONE_40, TEN_40), "unseen", 0.05, True),
        ("interval of the mean covers", (UNHARMED, LOST, LOST_BY_HALF, HALF_LOST), "covered", 0.94, False),
        ("unharmed: damaged", (UNHARMED,), "damaged", 0.05, True),
        ("30 points lost: told in 110 items", (RUINED,), "told in 110 items", 0.9, False),
    ):
        where, value = again(cases, figure, most=most)
        add(f"{name}, worst place ({where})", value, fresh, limit, most=most)
    unharmed = [place for place in places if place[2] == UNHARMED]
    ratios = [table[*place, NOW]["tokens"] / table[*place, BEFORE]["tokens"] for place in unharmed]
    add("unharmed: tokens, mean over layouts and churns, of those before", float(np.mean(ratios)), runs, 0.6)
    equal = [
        tokens_at_power(*place[:2], table[*place, BEFORE]["passed"], runs) / table[*place, BEFORE]["tokens"]
        for place in unharmed
    ]
    add("the same at the same power and limits", float(np.mean(equal)), runs, 0.6)
    falls = [table[*place, BEFORE]["passed"] - table[*place, NOW]["passed"] for place in unharmed]
    worst = unharmed[int(np.argmax(falls))]
    add(f"unharmed: passes more rarely by, worst place ({worst[0]}, churn {worst[1]:g})", max(*falls, 0.0), runs, 0.02)
    add("12 x 60, churn .2, unharmed: passes", table["12 x 60", 0.2, UNHARMED, NOW]["passed"], runs, 0.85, most=False)
    real, rows = real_populations(), list[dict[str, Any]]()
    for number, pop in enumerate(real):
        shifted = at_margin(pop)
        row: dict[str, Any] = {"name": pop.name, "change": float(pop.changes.mean()), "worst": float(pop.changes.min())}
        for name in (BEFORE, NOW):
            row[name] = outcome(pop, RULES[name], real_runs, number)
            row[f"{name}, margin lost"] = outcome(shifted, RULES[name], real_runs, number)["passed"]
        rows.append(row)
    lost = [row[f"{NOW}, margin lost"] for row in rows]
    add("real rows, the margin lost: passes, mean over fine-tunes", float(np.mean(lost)), real_runs * len(rows), 0.03)
    worst_real = real[int(np.argmax(lost))]
    value = outcome(at_margin(worst_real), RULES[NOW], fresh, len(real))["passed"]
    add(f"real rows, the margin lost: passes, worst fine-tune ({worst_real.name})", value, fresh, 0.03)
    kept = [row for row in rows if row["change"] > -0.01]
    real_ratio = np.mean([row[NOW]["tokens"] for row in kept]) / np.mean([row[BEFORE]["tokens"] for row in kept])
    add("real rows, less than a point lost: tokens of those before", float(real_ratio), len(kept), 0.6)
    levers = {f"{tasks} x {items}, margin {100 * margin:g}": sampled_passes(tasks, items, margin, runs)
              for tasks, items, margin in ((4, 30, 0.1), (12, 60, 0.05))}  # fmt: skip
    value = levers["4 x 30, margin 10"]["four samples"]
    add("4 x 30, margin 10, mean of four samples, unharmed: passes", value, runs, 0.85, most=False)
    judged = [agreement(layout, number) for number, layout in enumerate(LAYOUTS)]
    agreed, asked = (sum(column) for column in zip(*judged, strict=True))
    add("rules on counts agree with the package", agreed / asked, asked, 1.0, most=False)
    cells = [dict(zip(("layout", "churn", "case", "rule"), place, strict=True)) | found for place, found in table.items()]
    figures = {"levers": _levers(table), "samples and strata": levers, "real": _real_table(rows), "fine-tunes": len(rows)}
    settings = {"runs": runs, "new runs": fresh, "real runs": real_runs, "start": START, "gain": GAIN}
    unit = "share of the tokens before that an unharmed model costs, mean over eight layouts and four churns"
    headline = next(goal.found for goal in goals if goal.name.startswith("unharmed: tokens"))
    return Result(headline, unit, [SEED], _rounded(cells), figures, settings, "ratio", goals)


def _levers(table: Mapping[tuple[str, float, str, str], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tokens of an unharmed model against those before, and passes, by rule and churn, mean over layouts."""
    found = []
    for rule, churn in itertools.product(RULES, CHURNS):
        own = [table[layout, churn, UNHARMED, rule] for layout in LAYOUTS]
        old = [table[layout, churn, UNHARMED, BEFORE] for layout in LAYOUTS]
        ratio = np.mean([new["tokens"] / before["tokens"] for new, before in zip(own, old, strict=True)])
        ruined = [table[layout, churn, RUINED, rule]["items"] for layout in LAYOUTS]
        errors = max(table[layout, churn, LOST, rule]["passed"] for layout in LAYOUTS)
        means = {"tokens": ratio, "passed": np.mean([row["passed"] for row in own]), "ruined, items": np.mean(ruined)}
        found.append({"rule": rule, "churn": churn} | means | {"margin lost, passed at most": errors})
    return _rounded(found)


def _real_table(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Passes, damage and tokens on real rows, by what was lost."""
    found = []
    for name, low, high in (
        ("gained or less than a point lost", -0.01, 2.0),
        ("1 to 5 lost", -0.05, -0.01),
        ("more", -2.0, -0.05),
    ):
        own = [row for row in rows if low < row["change"] <= high]
        for rule in (BEFORE, NOW) if own else ():
            means = {key: np.mean([row[rule][key] for row in own]) for key in ("passed", "damaged", "items", "tokens")}
            most = max(row[rule]["passed"] for row in own)
            found.append({"lost": name, "rule": rule, "fine-tunes": len(own), "passed at most": most} | means)
    return _rounded(found)


def _rounded(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {key: round(float(value), 4) if isinstance(value, float) else value for key, value in row.items()} for row in rows
    ]


if __name__ == "__main__":
    run("gate_layouts", __doc__, measure)

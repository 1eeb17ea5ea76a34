"""Benchmark of the monitors' alarms on bare GRPO runs on chain arithmetic, watched and not steered.

Pools: `hardbias` (8 operations, the answer is 0 in 15 %: a shortcut), `hard` (8 operations, chance 1/16), `hard_grpo` (the
same with each response's loss divided by its own length), `permuted` (medium pool, rewards permuted in each group: a broken
verifier), `medium` (5 and 6 operations: healthy), `wide` (1 to 8: healthy), `frozen` (wide, nothing is learnt). Held-out
easy problems (1 to 4 operations, never trained on) are the damage that nobody who trains sees; the experimenter does.

Headline: share of the final damage that was done when `repetition` or `length` first rang, over-hard runs, one row per seed
(1 where neither rang). Beside it, for each pool and monitor: share of runs that rang and the first step; what the canary
monitor, on 16 of the easy problems every 20 steps, says; false alarms and power on made-up tapes; and what two ways of
rewarding variety do to success on unseen problems (a lint rests on it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks import _monitor_tapes
from benchmarks._report import Result, interval, run
from mixwright import catalog
from mixwright.contracts import Scene
from mixwright.records import CanaryOutcome, Example, Signals, Stage
from mixwright.steer.ledger import Ledger
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena, Learnt, Rollouts, Settings
from mixwright_lab.training.rules import UniformRule, pool_of, unique_examples
from mixwright_lab.workers import run_in_processes
from mixwright_lab.worlds.chain import MODULUS, Chain

MONITORS = ("repetition", "length", "skipped_work")
POOLS: Mapping[str, tuple[tuple[int, ...], float, dict[str, Any]]] = {
    "hardbias": ((8,), 0.15, {"rate": 1e-3}),
    "hard": ((8,), 0.0, {"rate": 1e-3}),
    "hard_grpo": ((8,), 0.0, {"rate": 1e-3, "loss": "grpo"}),
    "permuted": ((5, 6), 0.0, {"rate": 1e-3, "permute": True}),
    "medium": ((5, 6), 0.0, {"rate": 1e-3}),
    "wide": ((1, 2, 3, 4, 5, 6, 7, 8), 0.0, {"rate": 5e-4}),
    "frozen": ((1, 2, 3, 4, 5, 6, 7, 8), 0.0, {"rate": 0.0}),
}
"""Operations, share of answers that are 0, settings."""
OVERHARD, HEALTHY = ("hardbias", "hard", "hard_grpo"), ("medium", "wide", "frozen")
BONUSES = ("none", "in the reward", "after normalisation")
STEPS, STEPS_BETWEEN_LOOKS, CANARIES, CANARY_EVERY = 80, 4, 16, 20
PENALTY_COEFFICIENT = 0.2
"""Coefficient of the share of group mates with the same answer."""


def problems(levels: tuple[int, ...], bias: float = 0.0, count: int = 1200, split: str = "train") -> list[Example]:
    """Different problems of these lengths in turn."""
    world = Chain(bias=bias)
    return unique_examples([world.make(i, float(levels[i % len(levels)]), split) for i in range(count)])


class Kept(Arena):
    """Keeps what was learnt from."""

    def __init__(self, examples: Sequence[Example], model: GPT, settings: Settings, seed: int) -> None:
        super().__init__(examples, model, settings, seed)
        self.kept: list[Rollouts] = []

    def learn(
        self, rollouts: Rollouts, admitted: Sequence[bool] | None = None, *, rate: float = 1.0, beta: float | None = None
    ) -> Learnt:
        """One update, as of every arena."""
        self.kept.append(rollouts)
        return super().learn(rollouts, admitted, rate=rate, beta=beta)


def watched(job: tuple[int, str, int]) -> dict[str, Any]:
    """One run of a pool: the steps at which each monitor rang, and easy success every `STEPS_BETWEEN_LOOKS` steps."""
    seed, name, steps = job
    levels, bias, settings = POOLS[name]
    examples, easy = problems(levels, bias), problems((1, 2, 3, 4), count=160, split="eval")
    arena, rule = Kept(examples, base_model(seed, Recipe()), Settings(**settings), seed), UniformRule(len(examples), seed)
    pool = pool_of(examples, lambda example: 1 / MODULUS)
    scene = Scene(pool, Ledger(pool), Stage("grpo", "grpo", steps, dict.fromkeys(pool.tasks, 1.0)))
    monitors = {each: catalog.create("monitors", each, {}) for each in (*MONITORS, "canary")}
    rings: dict[str, list[int]] = {each: [] for each in monitors}
    seen: list[float] = []
    for monitor in monitors.values():
        monitor.begin(scene)
    for step in range(steps + 1):
        if step % STEPS_BETWEEN_LOOKS == 0:
            seen.append(float(arena.look(easy, 1).rewards.mean()))
        canaries = _canaries(arena, easy[:CANARIES], step) if step % CANARY_EVERY == 0 else ()
        for each, monitor in monitors.items():
            rings[each] += [alarm.step for alarm in monitor.inspect(Signals(step, canaries=canaries))]
        if step < steps:
            rule.step(arena)
            for monitor in monitors.values():
                monitor.observe(step, arena.kept[-1].outcomes(step))
    late = [style for group in arena.kept[-5].formats + arena.kept[-1].formats for style in group]
    return {"seed": seed, "pool": name, "rings": rings, "easy": seen, "direct": late.count("direct") / len(late)}


def bonus(job: tuple[int, str, int]) -> dict[str, Any]:
    """One run on a wide pool with a penalty for alike answers: success and different answers on unseen problems."""
    seed, how, steps = job
    examples, unseen = problems((3, 4, 5, 6, 7, 8)), problems((5, 6), count=160, split="eval")
    arena = Arena(examples, base_model(seed, Recipe()), Settings(rate=1e-3), seed)
    rng = np.random.default_rng((seed, 2))
    for _ in range(steps):
        rollouts = arena.roll(
            rng.choice(len(examples), arena.settings.prompts, replace=False).tolist(), arena.settings.group
        )
        rewards = rollouts.rewards
        alike = np.array([[(row.count(answer) - 1) / (len(row) - 1) for answer in row] for row in rollouts.answers])
        within = rewards - PENALTY_COEFFICIENT * alike if how == "in the reward" else rewards
        advantages = (within - within.mean(1, keepdims=True)) / (within.std(1, ddof=1, keepdims=True) + 1e-4)
        if how == "after normalisation":
            some = rewards.mean(1, keepdims=True) < 1
            advantages -= PENALTY_COEFFICIENT * some * (alike - alike.mean(1, keepdims=True))
        arena.update(rollouts, advantages)
    late = arena.look(unseen, 8)
    hard = arena.look(problems((8,), count=160, split="eval"), 8)
    different = [len(set(row)) for row, rewards in zip(hard.answers, hard.rewards, strict=True) if not rewards.any()]
    return {"seed": seed, "bonus": how, "success": float(late.rewards.mean()), "different": float(np.mean(different))}


def damage(row: Mapping[str, Any], names: tuple[str, ...]) -> float:
    """Share of the loss of easy success from first to last look that was done at the first alarm of these monitors."""
    first = min((steps[0] for name in names if (steps := row["rings"][name])), default=None)
    if first is None:
        return 1.0
    start, end = row["easy"][0], row["easy"][-1]
    at = float(np.interp(first, np.arange(len(row["easy"])) * STEPS_BETWEEN_LOOKS, row["easy"]))
    return float(np.clip((start - at) / (start - end), 0, 1)) if start > end else 1.0


def format_rows(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Per pool: easy success, and per monitor how many runs rang and when first."""
    figures: dict[str, Any] = {}
    for name in dict.fromkeys(row["pool"] for row in rows):
        own = [row for row in rows if row["pool"] == name]
        firsts = {each: [row["rings"][each][0] for row in own if row["rings"][each]] for each in own[0]["rings"]}
        figures[name] = {
            "easy": [float(np.mean([row["easy"][place] for row in own])) for place in (0, -1)],
            "direct": float(np.mean([row["direct"] for row in own])),
            "rang": {each: f"{len(first)} of {len(own)}" for each, first in firsts.items()},
            "first": {each: float(np.median(first)) if first else None for each, first in firsts.items()},
            "damage done": {each: _mean(damage(row, (each,)) for row in own) for each in firsts}
            if name in OVERHARD
            else None,
        }
    return figures


def measure(quick: bool) -> Result:
    """All pools and seeds, in two processes."""
    seeds = range(2) if quick else range(5)
    pools = ("hardbias", "hard", "medium") if quick else tuple(POOLS)
    jobs = [(seed, name, STEPS) for seed in seeds for name in pools]
    rows = run_in_processes(watched, jobs, say="watched run")
    bonuses = (
        []
        if quick
        else run_in_processes(bonus, [(seed, how, STEPS) for seed in range(5) for how in BONUSES], say="bonus run")
    )
    early = [
        float(
            np.mean([damage(row, ("repetition", "length")) for row in rows if row["seed"] == s and row["pool"] in OVERHARD])
        )
        for s in seeds
    ]
    figures = {"pools": format_rows(rows), "made-up tapes": _monitor_tapes.rates(20 if quick else 200, 0)}
    for how in BONUSES[1:] if bonuses else ():
        gaps = [
            {key: row[key] - plain[key] for key in ("success", "different")}
            for row in bonuses
            for plain in bonuses
            if row["bonus"] == how and plain["bonus"] == "none" and row["seed"] == plain["seed"]
        ]
        found = {key: interval([gap[key] for gap in gaps]) for key in gaps[0]}
        figures[f"variety {how}"] = {key: [each.value, each.low, each.high] for key, each in found.items()}
    settings = {"steps": STEPS, "canary_every": CANARY_EVERY, "pools": {name: list(POOLS[name][:2]) for name in pools}}
    unit = "share of the damage done when repetition or length first rang"
    return Result(interval(early), unit, list(seeds), [*rows, *bonuses], figures, settings)


def _canaries(arena: Arena, items: list[Example], step: int) -> tuple[CanaryOutcome, ...]:
    greedy = arena.look(items, greedy=True)
    return tuple(CanaryOutcome(e.id, "easy", None, step, float(r[0])) for e, r in zip(items, greedy.rewards, strict=True))


def _mean(values: Any) -> float:
    return float(np.mean(list(values)))


if __name__ == "__main__":
    run("monitors", __doc__, measure)

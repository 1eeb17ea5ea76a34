"""The mixture `learnable` alone, against the data's own shares and equal shares of tasks.

The students, the wide pool, the score and the targets are those of `benchmarks.rollouts` (its committed targets, fixed
before this was run), but here every level is a task of its own, whose items are drawn in shuffled passes: nothing but the
weights of tasks can differ. Nothing is measured before; all rollouts are charged.

    python -m benchmarks.mixture [--quick]
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from statistics import fmean
from typing import Any

from benchmarks._report import RESULTS, Result, interval, run
from benchmarks.peers._arena import Arena, Settings
from benchmarks.peers._base import base_model
from benchmarks.peers._rules import Engined, drive, pool_of
from benchmarks.peers._workers import spread
from benchmarks.rollouts import BASE, EVERY, base, final, held_out, problems, ratio, reached
from mixwright.records import Plan, Stage, to_data
from mixwright_lab.worlds.chain import MODULUS

ARMS, SEEDS, BUDGET = ("natural", "equal", "learnable"), (0, 1, 2, 3, 4), 5_760


def trained(job: tuple[str, int]) -> dict[str, Any]:
    """One run: arm, seed."""
    arm, seed = job
    examples = [replace(e, task=f"{e.level:g} operations", level=None) for e in problems("wide", seed)]
    counts = Counter(example.task for example in examples)
    shares = {task: 1 / len(counts) if arm == "equal" else n / len(examples) for task, n in counts.items()}
    stage = Stage("training", "grpo", 1000, shares, mixture="learnable" if arm == "learnable" else None)
    arena = Arena(examples, base_model(seed, BASE), Settings(), seed)
    rule, scored = Engined(Plan("mixture", (stage,)), pool_of(examples, lambda _: 1 / MODULUS), seed), held_out()
    seen = drive(arena, rule, BUDGET, EVERY, lambda arena: {"accuracy": float(arena.look(scored).rewards.mean())})
    books = {"charged": arena.charged, "teach": rule.totals["teach"] / rule.totals["groups"]}
    return {"arm": arm, "seed": seed, **books, "weights": rule.engine.wanted(), "seen": seen}


def measure(quick: bool) -> Result:
    """All arms; the headline is the rollouts that the data's own shares need over those of `learnable`."""
    seeds = SEEDS[:2] if quick else SEEDS
    targets = json.loads((RESULTS / "rollouts.json").read_text(encoding="utf-8"))["figures"]["wide"]["targets"]
    spread(base, seeds)
    rows = spread(trained, [(arm, seed) for seed in seeds for arm in ARMS], say="run")
    for row in rows:
        row["final"], row["to_target"] = final(row), reached(row, targets[str(row["seed"])])
    by_arm = {arm: [row for row in rows if row["arm"] == arm] for arm in ARMS}
    figures: dict[str, Any] = {
        arm: {
            "final": fmean(row["final"] for row in own),
            "teach": fmean(row["teach"] for row in own),
            "censored": sum(row["to_target"] is None for row in own),
        }
        for arm, own in by_arm.items()
    }
    for arm in ("natural", "equal"):
        pairs = zip(by_arm["learnable"], by_arm[arm], strict=True)
        figures[arm]["rollouts over learnable"] = ratio(rows, arm, "learnable", BUDGET)
        figures[arm]["final, learnable minus it"] = to_data(
            interval([one["final"] - other["final"] for one, other in pairs])
        )
    shown = figures["natural"]["rollouts over learnable"]
    value = replace(interval(shown["logs"]), value=shown["value"], low=shown["low"], high=shown["high"])
    unit = "charged rollouts to the target by the data's own shares over those by learnable, geometric mean"
    unit += "; a lower bound: they did not always reach it" if shown["lower bound"] else ""
    return Result(value, unit, seeds, rows, figures, {"budget": BUDGET, "targets": targets}, kind="ratio")


if __name__ == "__main__":
    run("mixture", __doc__, measure)

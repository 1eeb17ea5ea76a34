"""Benchmark of the demo: ten runs of other seeds on frozen settings, and how often each shown effect excludes 0.

Each run has items, starting models and training seeds of its own; the settings are `mixwright_lab/demo.yaml`, chosen on
seeds from 100 up and, with earlier settings, on 0, 1 and 2, which are not among these. Nulls are left out: no
effect rests on them. The effects, fixed before the ten runs:

    plan - frozen          greedy success over all held-out items, mean over tasks
    plan - uniform         the same
    plan - equal_shares    the same
    uniform, known task    greedy success on basic_arithmetic, uniform minus frozen: below 0, plain training damages it
    plan, known task       greedy success on basic_arithmetic, the plan minus uniform: above 0, the plan damages it less

Beside them, without a goal: the plan minus frozen on basic_arithmetic, uniform minus frozen over all items, each contrast
with every item counted once instead of every task, and what the page recommends. A row holds the greedy answers of one
branch as a digit per item (1 is right), so that every figure can be worked out again. Run folders are kept in
`runs/demo_runs/`: a killed benchmark goes on where it was.

    python -m benchmarks.demo_runs [--quick]
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from benchmarks._report import Goal, Result, run

# isort: split
from mixwright import api
from mixwright.config import RunConfig
from mixwright.estimates.intervals import share_interval
from mixwright.estimates.outcome import Item, ItemScores, change, item_scores
from mixwright.records import Interval, to_data
from mixwright.runs import RunFolder, read_measurements, write_json
from mixwright_lab.demo import settings
from mixwright_lab.demo_pool import write_pool

SEEDS, QUICK = tuple(range(11, 21)), (101,)
KNOWN = "basic_arithmetic"
"""The task that the starting model can do."""
PLACE = Path("runs") / "demo_runs"
EFFECTS: Mapping[str, tuple[str, str, str | None, Literal["above", "below"]]] = {
    "plan - frozen": ("steered", "frozen", None, "above"),
    "plan - uniform": ("steered", "uniform", None, "above"),
    "plan - equal_shares": ("steered", "equal_shares", None, "above"),
    "uniform - frozen on the known task": ("uniform", "frozen", KNOWN, "below"),
    "plan - uniform on the known task": ("steered", "uniform", KNOWN, "above"),
}
"""Name -> arm, against, task (None for all), side of 0 on which the whole interval must lie."""
BESIDE: Mapping[str, tuple[str, str, str | None]] = {
    "plan - frozen on the known task": ("steered", "frozen", KNOWN),
    "uniform - frozen": ("uniform", "frozen", None),
    "equal_shares - frozen": ("equal_shares", "frozen", None),
}
SHARE = 0.9
"""Of the runs, in which an effect is to exclude 0."""


def one(seed: int, place: Path, *, quick: bool = False, say: Callable[[str], None] = print) -> list[dict[str, Any]]:
    """Run the demo with this seed, or go on with it; its rows.

    Args:
        seed: of the items, the starting models and all training.
        place: run folder.
        quick: a tenth of the steps, two seeds.
        say: told what is being done.
    """
    rows, began = place / "rows.json", time.monotonic()
    if not rows.is_file():
        config = settings(write_pool(place.parent / f".{place.name}-files", seed), seed)
        config = replace(config, trial=replace(config.trial, nulls=()))
        api.run(_small(config) if quick else config, place, say=lambda line: say(f"seed {seed}: {line}"))
        page = json.loads(RunFolder(place).data.read_text(encoding="utf-8"))
        seconds = round(time.monotonic() - began)
        kept = {"seed": seed, "advice": page["recommendation"]["sentence"], "seconds": seconds, "format": page["format"]}
        write_json(rows, [kept, *answers(seed, RunFolder(place))])
    return json.loads(rows.read_text(encoding="utf-8"))


def _small(config: RunConfig) -> RunConfig:
    """The same run in a minute; it shows nothing but that everything works."""
    assert config.model.warmup is not None
    warmup = replace(config.model.warmup, steps=config.model.warmup.steps // 10)
    train, trial = replace(config.train, steps=config.train.steps // 10), replace(config.trial, seeds=2)
    return replace(config, model=replace(config.model, warmup=warmup), train=train, trial=trial)


def answers(seed: int, folder: RunFolder) -> list[dict[str, Any]]:
    """A row of the items, then one per branch with a digit per item in that order."""
    branches = [
        (arm, number, item_scores(read_measurements(path / "after.parquet"))) for arm, number, path in folder.branches()
    ]
    items = branches[0][2].items
    rows: list[dict[str, Any]] = [{"seed": seed, "items": [list(item) for item in items]}]
    for arm, number, scores in branches:
        digits = "".join(f"{value:.0f}" for value in scores.column("greedy", items).tolist())
        rows.append({"seed": seed, "arm": arm, "trial_seed": number, "greedy": digits})
    return rows


def contrast(
    rows: Sequence[Mapping[str, Any]],
    arm: str,
    against: str,
    task: str | None,
    *,
    weigh: Literal["tasks", "items"] = "tasks",
) -> Interval:
    """Greedy success of one arm minus another's, in shares, paired by training seed and item.

    Args:
        rows: of one run, as `one` gives them.
        arm: name of an arm.
        against: name of another.
        task: the only one that counts; None for all.
        weigh: what counts the same.
    """
    listed = next(row["items"] for row in rows if "items" in row)
    items: list[Item] = [(str(own), level, str(example)) for own, level, example in listed]
    known = {(row["arm"], row["trial_seed"]): _scores(items, row["greedy"]) for row in rows if "arm" in row}
    seeds = sorted(number for name, number in known if name == arm and (against, number) in known)
    before, after = ([known[name, number] for number in seeds] for name in (against, arm))
    moved = change(before, after, weigh=weigh, only=lambda item: task in (None, item[0]))
    assert moved is not None
    return moved.success.interval


def _scores(items: Sequence[Item], digits: str) -> ItemScores:
    """What a row holds; S is not kept, so only success may be read."""
    right = dict(zip(items, map(float, digits), strict=True))
    return ItemScores({"greedy": right, "greedy.swapped": dict.fromkeys(items, 0.0)})


def figures_of(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every contrast of every run, and what its page recommends."""
    found = []
    for seed in dict.fromkeys(row["seed"] for row in rows):
        own = [row for row in rows if row["seed"] == seed]
        told = {name: to_data(contrast(own, *which[:3])) for name, which in {**EFFECTS, **BESIDE}.items()}
        told |= {
            f"{name}, every item once": to_data(contrast(own, arm, against, None, weigh="items"))
            for name, (arm, against, task, *_) in {**EFFECTS, **BESIDE}.items()
            if task is None
        }
        found.append({name: own[0][name] for name in ("seed", "advice", "seconds")} | {"contrasts": told})
    return found


def goals_of(figures: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """How often each effect excludes 0 on its side."""
    found = []
    for name, (*_, side) in EFFECTS.items():
        seen = [run["contrasts"][name] for run in figures]
        shown = sum(_excludes(one, side) for one in seen)
        value = share_interval(shown, len(seen))
        found.append(Goal(f"{name}: share of runs whose interval lies {side} 0", value, f">= {SHARE}", value.value >= SHARE))
    return found


def table(figures: Sequence[Mapping[str, Any]]) -> str:
    """Markdown: a line per run, points with their interval."""
    names = [*EFFECTS, *BESIDE]
    lines = ["| seed | " + " | ".join(names) + " | recommended |", "|---" * (len(names) + 2) + "|"]
    for run_ in figures:
        seen = [run_["contrasts"][name] for name in names]
        cells = [f"{100 * one['value']:+.1f} [{100 * one['low']:.1f}, {100 * one['high']:.1f}]" for one in seen]
        lines.append(f"| {run_['seed']} | " + " | ".join(cells) + f" | {run_['advice']} |")
    return "\n".join(lines)


def measure(quick: bool) -> Result:
    """All runs; the headline is the share of them in which every effect excludes 0."""
    rows: list[dict[str, Any]] = []
    seeds = QUICK if quick else SEEDS
    for seed in seeds:
        rows += one(seed, PLACE / f"{'quick' if quick else 'seed'}-{seed}", quick=quick)
        print(table(figures_of([row for row in rows if row["seed"] == seed])), flush=True)
    figures = figures_of(rows)
    print(table(figures))
    goals = goals_of(figures)
    every = sum(all(_excludes(run_["contrasts"][name], side) for name, (*_, side) in EFFECTS.items()) for run_ in figures)
    unit = "share of the demo's runs in which every shown effect excludes 0"
    return Result(share_interval(every, len(figures)), unit, seeds, rows, {"runs": figures}, goals=goals)


def _excludes(found: Mapping[str, float], side: str) -> bool:
    return found["low"] > 0 if side == "above" else found["high"] < 0


if __name__ == "__main__":
    run("demo_runs", __doc__, measure)

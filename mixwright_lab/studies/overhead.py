"""Study of steering's cost: CPU time of training steps with steering on against off.

Two runs take turns step by step: TRL's own trainer, and the steered one. Two answers: the share of a step that passes
inside our functions (direct: precise, but blind to what steering makes TRL's own code do), and the ratio of the step's CPU
time on against off (whole, but a difference of 1 % is about its noise). Intervals are paired t over seeds; each seed makes
the runs anew, because one and the same trainer built twice differs by a few percent in speed, for where its tensors happen
to lie. GRPO has a tiny and a small model, SFT and DPO the tiny one; five seeds, three of the small model, whose steps are
the slowest. Short completions and small batches make a step cheap, so bookkeeping is a smaller share of real runs.

The committed runs also had a third one, with canary passes in GRPO, which steering no longer has.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import disable_progress_bars

from mixwright.records import Interval, to_data
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.studies.trainer_runs import (
    BOOKKEEPING,
    GROUP,
    SIZES,
    Case,
    charge_owners,
    make,
    steering,
)
from mixwright_lab.studies.turns import Meter, take_turns

FULL = (
    Case("grpo", "0.2M", prompts=8, tokens=32, steps=27),
    Case("sft", "0.2M", prompts=32, tokens=0, steps=46),
    Case("dpo", "0.2M", prompts=16, tokens=0, steps=46),
    Case("grpo", "15M", prompts=4, tokens=16, steps=54, seeds=3),
)
QUICK = (
    Case("grpo", "0.2M", prompts=8, tokens=16, steps=27, seeds=2),
    Case("sft", "0.2M", prompts=32, tokens=0, steps=23, seeds=2),
    Case("dpo", "0.2M", prompts=16, tokens=0, steps=23, seeds=2),
    Case("grpo", "15M", prompts=2, tokens=16, steps=10, seeds=2),
)
"""Steps are per run and seed."""
WARMUP_STEPS = 3
OWNERS = (Meter.OTHERS, BOOKKEEPING)
OFF, ON = "off", "on"
BOOKKEPT = "bookkeeping, direct, %"
HEADLINE = "grpo 15M"


def compare(case: Case, seed: int) -> list[dict[str, Any]]:
    """Raw rows of one case and seed: CPU seconds per run and step, by owner."""
    meter = Meter()
    charge_owners(meter)
    try:
        with tempfile.TemporaryDirectory() as folder, quiet():
            arms = {OFF: None, ON: steering(case)}
            turned = [*arms][seed % len(arms) :] + [*arms][: seed % len(arms)]
            trainers = {arm: make(case, arms[arm], Path(folder) / arm, warmup=WARMUP_STEPS, seed=seed) for arm in turned}
            meter.own(meter.OTHERS, [type(trainers[OFF].data_collator)])
            found = take_turns(trainers, meter, warmup=WARMUP_STEPS, steps=case.steps)
    finally:
        meter.restore()
    return [{"case": case.name, "seed": seed, **row} for row in found]


def figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Shares in percent of a step without our part, each with its interval over seeds."""
    seeds = sorted({row["seed"] for row in rows})

    def seconds(arm: str, column: str) -> list[float]:
        mine = [row for row in rows if row["run"] == arm and row["step"] >= 0]
        return [sum(row[column] for row in mine if row["seed"] == seed) for seed in seeds]

    def percent(above: Sequence[float], below: Sequence[float]) -> Interval:
        return interval([100 * a / b for a, b in zip(above, below, strict=True)])

    def more(arm: str) -> Interval:
        on, off = seconds(arm, "cpu"), seconds(OFF, "cpu")
        return percent([a - b for a, b in zip(on, off, strict=True)], off)

    counted = sum(row["run"] == OFF and row["step"] >= 0 for row in rows)
    begun = [row[BOOKKEEPING] for row in rows if row["run"] == ON and row["step"] == -WARMUP_STEPS]
    return {
        "steps per arm": counted,
        "step, CPU ms": 1e3 * sum(seconds(OFF, "cpu")) / counted,
        "bookkeeping, CPU ms per step": 1e3 * sum(seconds(ON, BOOKKEEPING)) / counted,
        "bookkeeping, CPU ms before the first step": 1e3 * statistics.fmean(begun),
        BOOKKEPT: percent(seconds(ON, BOOKKEEPING), seconds(ON, Meter.OTHERS)),
        "bookkeeping, on against off, %": more(ON),
    }


def goals(found: Mapping[str, Mapping[str, Any]]) -> list[Goal]:
    """Bookkeeping within 1 % of a step of the larger model, the upper end of its interval."""
    share = found[HEADLINE][BOOKKEPT]
    return [Goal(f"bookkeeping, {HEADLINE}, % of a step", share, "<= 1, upper end too", share.high <= 1.0)]


def measure(quick: bool) -> Result:
    """All cases; the headline is the direct share of bookkeeping on the larger model."""
    cases, rows, found = QUICK if quick else FULL, [], {}
    for case in cases:
        made = [row for seed in range(case.seeds) for row in compare(case, seed)]
        rows += made
        found[case.name] = figures(made)
        detail = f" x {GROUP} completions of {case.tokens} tokens" if case.tokens else ""
        print(f"{case.name} parameters: {case.prompts} rows{detail} a step")
        for name, value in found[case.name].items():
            print(f"  {name:<44} {shown(value)}", flush=True)
    return Result(
        found[HEADLINE][BOOKKEPT],
        "% of a GRPO step's CPU time without steering, 15M parameters: bookkeeping",
        range(next(case.seeds for case in cases if case.name == HEADLINE)),
        packed(rows),
        figures={name: to_data(values) for name, values in found.items()},
        settings={"cases": to_data(list(cases)), "models": to_data(SIZES)},
        goals=goals(found),
    )


def packed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per run: CPU microseconds of each step by owner, from step -`WARMUP_STEPS` on."""
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        run_of = {name: row[name] for name in ("case", "seed", "run")}
        kept = runs.setdefault(tuple(run_of.values()), run_of | {owner: [] for owner in OWNERS})
        for owner in OWNERS:
            kept[owner].append(round(1e6 * row.get(owner, 0.0)))
    return list(runs.values())


@contextlib.contextmanager
def quiet() -> Any:
    """Without the trainers' own lines."""
    disable_progress_bars()
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def shown(value: Any) -> str:
    """A figure with its interval."""
    if isinstance(value, Interval):
        return f"{value.value:8.3f}  [{value.low:.3f}, {value.high:.3f}]  over {value.n} seeds"
    return f"{value:8.3f}" if isinstance(value, float) else f"{value:8}"


if __name__ == "__main__":
    run("overhead", __doc__, measure)

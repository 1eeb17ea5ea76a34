"""Study of steering's cost: CPU time of training steps with steering on against off, probes apart.

Three runs take turns step by step: TRL's own trainer, steering without canaries, steering with canaries at their default
interval. Two answers: the share of a step that passes inside our functions (direct: precise, but blind to what steering
makes TRL's own code do), and the ratio of the step's CPU time on against off (whole, but a difference of 1 % is about its
noise). Intervals are paired t over seeds; each seed makes the three runs anew, because one and the same trainer built
twice differs by a few percent in speed, for where its tensors happen to lie. GRPO has a tiny and a small model, SFT and
DPO the tiny one; five seeds, three of the small model, whose steps are the slowest.

The share of canaries is the cost of one pass divided by that of the steps of one interval. A full run counts whole
intervals, so this is the share of its own time. Where a run is shorter than the interval (the small model of a quick
run), one pass after the last step is measured, and on against off holds none. "All of it, direct" is canaries and
bookkeeping of the run with canaries, which also takes in their results. What happens once, before the first step
(first canaries), is in none of the shares.

Short completions and small batches make a step cheap, so bookkeeping is a smaller share of real runs; canaries keep
theirs, because they come less often where a step is cheap.
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
    PROBES,
    SIZES,
    Case,
    canary_pass,
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
"""Steps are per run and seed: one or two whole intervals between canary passes, but for the last case of a quick run."""
WARMUP_STEPS = 3
OWNERS = (Meter.OTHERS, BOOKKEEPING, PROBES)
OFF, ON, WITH_PROBES, AFTER = "off", "on", "on with canaries", "one canary pass after the run"
BOOKKEPT, PASSED, WHOLE = "bookkeeping, direct, %", "canaries, direct, %", "all of it, direct, %"
HEADLINE = "grpo 15M"


def compare(case: Case, seed: int) -> list[dict[str, Any]]:
    """Raw rows of one case and seed: CPU seconds per run and step, by owner.

    Rows of canaries also tell the steps between passes; where no pass falls into the run, a row tells one after it.
    """
    meter = Meter()
    charge_owners(meter)
    try:
        with tempfile.TemporaryDirectory() as folder, quiet():
            arms = {OFF: None, ON: steering(case, canaries=False)}
            arms |= {WITH_PROBES: steering(case, canaries=True)} if case.objective == "grpo" else {}
            turned = [*arms][seed % len(arms) :] + [*arms][: seed % len(arms)]
            trainers = {arm: make(case, arms[arm], Path(folder) / arm, warmup=WARMUP_STEPS, seed=seed) for arm in turned}
            meter.own(meter.OTHERS, [type(trainers[OFF].data_collator)])
            found = take_turns(trainers, meter, warmup=WARMUP_STEPS, steps=case.steps)
            every = arms[WITH_PROBES].canary_every if WITH_PROBES in arms else 0
            if every and trainers[WITH_PROBES].canaries is None:
                canaries = canary_pass(trainers[WITH_PROBES])
                before = meter.spent[PROBES]
                canaries.run(WARMUP_STEPS + case.steps)
                cost = meter.spent[PROBES] - before
                found.append({"run": AFTER, "step": 0, "cpu": cost, PROBES: cost})
    finally:
        meter.restore()
    intervals = {WITH_PROBES: {"every": every}, AFTER: {"every": every}}
    return [{"case": case.name, "seed": seed, **row, **intervals.get(row["run"], {})} for row in found]


def of_canaries(rows: Sequence[dict[str, Any]], seed: int) -> float:
    """CPU seconds that canaries take of the counted steps of one seed: passes as dear as those seen, one per interval."""
    mine = [row for row in rows if row["run"] == WITH_PROBES and row["seed"] == seed and row["step"] >= 0]
    after = [row[PROBES] for row in rows if row["run"] == AFTER and row["seed"] == seed]
    passes = [row[PROBES] for row in mine if row.get(PROBES)] or after
    return statistics.fmean(passes) * len(mine) / mine[0]["every"]


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
    found = {
        "steps per arm": counted,
        "step, CPU ms": 1e3 * sum(seconds(OFF, "cpu")) / counted,
        "bookkeeping, CPU ms per step": 1e3 * sum(seconds(ON, BOOKKEEPING)) / counted,
        "bookkeeping, CPU ms before the first step": 1e3 * statistics.fmean(begun),
        BOOKKEPT: percent(seconds(ON, BOOKKEEPING), seconds(ON, Meter.OTHERS)),
        "bookkeeping, on against off, %": more(ON),
    }
    if not (every := next((row["every"] for row in rows if row["run"] == WITH_PROBES), 0)):
        return found
    passes, others = [of_canaries(rows, seed) for seed in seeds], seconds(WITH_PROBES, Meter.OTHERS)
    whole = [a + b for a, b in zip(passes, seconds(WITH_PROBES, BOOKKEEPING), strict=True)]
    return found | {
        "steps between canary passes": every,
        PASSED: percent(passes, others),
        WHOLE: percent(whole, others),
        "all of it, on against off, %": more(WITH_PROBES),
    }


def goals(found: Mapping[str, Mapping[str, Any]]) -> list[Goal]:
    """Bookkeeping within 1 % of a step of the larger model, canaries within 3 % in GRPO: upper ends of intervals."""
    watched = [case for case, figures_of_case in found.items() if PASSED in figures_of_case]
    asked = [(HEADLINE, "bookkeeping", BOOKKEPT, 1.0), *((case, "canaries by default", PASSED, 3.0) for case in watched)]
    return [
        Goal(
            f"{what}, {case}, % of a step",
            found[case][name],
            f"<= {limit:g}, upper end too",
            found[case][name].high <= limit,
        )
        for case, what, name, limit in asked
    ]


def measure(quick: bool) -> Result:
    """All cases; the headline is the direct share of bookkeeping and canaries on the larger model."""
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
        found[HEADLINE][WHOLE],
        "% of a GRPO step's CPU time without steering, 15M parameters: bookkeeping, and canaries at their default interval",
        range(next(case.seeds for case in cases if case.name == HEADLINE)),
        packed(rows),
        figures={name: to_data(values) for name, values in found.items()},
        settings={"cases": to_data(list(cases)), "models": to_data(SIZES)},
        goals=goals(found),
    )


def packed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per run: CPU microseconds of each step by owner, from step -`WARMUP_STEPS` on, and steps between passes."""
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        run_of = {name: row[name] for name in ("case", "seed", "run", "every") if name in row}
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

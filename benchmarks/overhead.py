"""What steering costs: CPU time of training steps with steering on against off, bookkeeping apart from probes.

Three runs take turns step by step: TRL's own trainer, steering without canaries, steering with canaries. Two answers:
the share of a step that passes inside our functions (direct: precise, but blind to what steering makes TRL's own code do),
and the ratio of the step's CPU time on against off (whole, but a difference of 1 % is about its noise). Intervals are
paired t over seeds; each seed makes the three runs anew, because one and the same trainer built twice differs by a few
percent in speed, for where its tensors happen to lie. GRPO has a tiny and a small model, SFT and DPO the tiny one.
Short completions and small batches make a step cheap, so real runs pay a smaller share. What happens once, before the
first step (self-test, first canaries), is not in the shares.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from datasets import disable_progress_bars

from benchmarks._report import RESULTS, Result, interval, run
from benchmarks._runs import BOOKKEEPING, CANARY_EVERY, GROUP, PROBES, SIZES, Case, make, own, steering
from benchmarks._turns import Meter, take_turns
from mixwright.records import Interval, to_data

FULL = (
    Case("grpo", "0.2M", prompts=8, tokens=32, steps=40),
    Case("sft", "0.2M", prompts=32, tokens=0, steps=40),
    Case("dpo", "0.2M", prompts=16, tokens=0, steps=40),
    Case("grpo", "15M", prompts=4, tokens=16, steps=40),
)
QUICK = (
    Case("grpo", "0.2M", prompts=8, tokens=16, steps=20),
    Case("sft", "0.2M", prompts=32, tokens=0, steps=20),
    Case("dpo", "0.2M", prompts=16, tokens=0, steps=20),
    Case("grpo", "15M", prompts=2, tokens=16, steps=20),
)
"""Steps are per run and seed: whole intervals between canary passes."""
SEEDS = {False: (0, 1, 2, 3, 4), True: (0, 1)}
"""Of a full and of a quick run; 200 and 40 steps per arm."""
WARMUP = 3
OWNERS = (Meter.OTHERS, BOOKKEEPING, PROBES)
OFF, ON, WITH_PROBES = "off", "on", "on with canaries"


def compare(case: Case, seed: int) -> list[dict[str, Any]]:
    """Raw rows of one case and seed: CPU seconds per run and step, by owner."""
    meter = Meter()
    own(meter)
    try:
        with tempfile.TemporaryDirectory() as folder, quiet():
            arms = {OFF: None, ON: steering(case, canaries=False), WITH_PROBES: steering(case, canaries=True)}
            turned = [*arms][seed % len(arms) :] + [*arms][: seed % len(arms)]
            trainers = {arm: make(case, arms[arm], Path(folder) / arm, warmup=WARMUP, seed=seed) for arm in turned}
            meter.own(meter.OTHERS, [type(trainers[OFF].data_collator)])
            found = take_turns(trainers, meter, warmup=WARMUP, steps=case.steps)
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
    begun = [row[BOOKKEEPING] for row in rows if row["run"] == ON and row["step"] == -WARMUP]
    return {
        "steps per arm": counted,
        "step, CPU ms": 1e3 * sum(seconds(OFF, "cpu")) / counted,
        "bookkeeping, CPU ms per step": 1e3 * sum(seconds(ON, BOOKKEEPING)) / counted,
        "bookkeeping, CPU ms before the first step": 1e3 * statistics.fmean(begun),
        "bookkeeping, direct, %": percent(seconds(ON, BOOKKEEPING), seconds(ON, Meter.OTHERS)),
        "bookkeeping, on against off, %": more(ON),
        f"canaries every {CANARY_EVERY} steps, direct, %": percent(
            seconds(WITH_PROBES, PROBES), seconds(WITH_PROBES, Meter.OTHERS)
        ),
        "all of it, on against off, %": more(WITH_PROBES),
    }


def measure(quick: bool) -> Result:
    """All cases; the headline is the direct share of bookkeeping on the larger model."""
    rows, found = [], {}
    for case in QUICK if quick else FULL:
        made = [row for seed in SEEDS[quick] for row in compare(case, seed)]
        rows += made
        found[case.name] = figures(made)
        detail = f" x {GROUP} completions of {case.tokens} tokens" if case.tokens else ""
        print(f"{case.name} parameters: {case.prompts} rows{detail} a step")
        for name, value in found[case.name].items():
            print(f"  {name:<44} {shown(value)}", flush=True)
    if not quick:
        write_profile()
    headline = found["grpo 15M"]["bookkeeping, direct, %"]
    return Result(
        headline,
        "% of a GRPO step's CPU time without steering, 15M parameters: bookkeeping, canaries not counted",
        SEEDS[quick],
        packed(rows),
        figures={name: to_data(values) for name, values in found.items()},
        settings={"cases": to_data(list(QUICK if quick else FULL)), "models": to_data(SIZES), "canary_every": CANARY_EVERY},
    )


def packed(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per run: CPU microseconds of each step by owner, from step -`WARMUP` on."""
    runs: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        run_of = {name: row[name] for name in ("case", "seed", "run")}
        kept = runs.setdefault(tuple(run_of.values()), run_of | {owner: [] for owner in OWNERS})
        for owner in OWNERS:
            kept[owner].append(round(1e6 * row.get(owner, 0.0)))
    return list(runs.values())


def write_profile() -> None:
    """Where bookkeeping spends its time on the tiny model, beside the results."""
    from benchmarks._profile import profile_text

    case = Case("grpo", "0.2M", prompts=8, tokens=32, steps=100)
    with tempfile.TemporaryDirectory() as folder, quiet():
        text = profile_text(make(case, steering(case, canaries=False), Path(folder)), 5)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "overhead-profile.txt").write_text(text, encoding="utf-8")


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

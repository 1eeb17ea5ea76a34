"""Which answer format takes over under GRPO: how well that is foretold, and what guards make of it.

A tiny GPT is taught chain arithmetic in three answer styles (full, verbose, direct) whose shares and label noise are
crossed, then trained by GRPO, 60 steps of 12 x 8 rollouts on 1 to 4 operations.

1. Forecast, without a guard: 20 mixes, one model each. Before the run 64 held-out problems x 8 samples are measured
   (charged), the product's forecast is made from these rows alone, and it is scored against the commonest style after the
   last step. Beside it stand share alone, accuracy alone, share x accuracy (the race after one step) and chance, 1/3.
   The headline is the hit rate over all mixes; where the product says "undecided", its expected winner counts.
2. Guards: 3 mixes x 5 seeds, paired. pass@k on held-out problems (64 x 16 samples), normalised entropy of the styles, and
   alarms of the monitor; differences from no guard with 95 % t intervals over seeds. `permuted` trains on rewards shuffled
   within groups: what it moves, no reward has moved.

Seeds and mixes below 100; all choices (`PUSH`, the monitor's settings, the mixes) were made on seeds 100 and above.

    python -m benchmarks.formats [--quick]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from benchmarks._report import Result, interval, run

# isort: split
from benchmarks._formats import ARMS, GUARDED, NOISE, POOL, SHARES, STEPS, Job, mix, recipe_of, work
from benchmarks.peers._workers import spread
from mixwright.estimates.intervals import share_interval
from mixwright.plan._race import PUSH
from mixwright.records import Interval
from mixwright_lab.worlds.chain import STYLES

MIXES, SEEDS = 20, (0, 1, 2, 3, 4)


def scores(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Hit rates of the forecast and of its nulls, with Wilson intervals."""
    races = [row for row in rows if row["foretold"]]
    ends = [row["looks"][STEPS]["shares"] for row in races]
    won = [max(shares, key=lambda style: shares[style]) for shares in ends]
    found: dict[str, Any] = {"mixes": len(races), "chance": 1 / len(STYLES)}
    groups = {"": list(range(len(races)))}
    groups["decided, "] = [n for n in groups[""] if races[n]["foretold"]["said"] is not None]
    groups["undecided, "] = [n for n in groups[""] if races[n]["foretold"]["said"] is None]
    groups["share and accuracy disagree, "] = [
        n for n in groups[""] if races[n]["foretold"]["share"] != races[n]["foretold"]["accuracy"]
    ]
    for group, members in groups.items():
        for rule in ("race", "share", "accuracy", "share x accuracy"):
            hits = sum(races[n]["foretold"][rule] == won[n] for n in members)
            found[f"{group}{rule}"] = _hits(hits, len(members))
    inside = [
        low <= shares[style] <= high
        for row, shares in zip(races, ends, strict=True)
        for style, (_, _, low, high) in row["foretold"]["expected"].items()
    ]
    return found | {"shares inside their 80 % range": _hits(sum(inside), len(inside))}


def _hits(hits: int, of: int) -> dict[str, Any]:
    found = share_interval(hits, of)
    return {"hits": hits, "of": of, "rate": hits / of if of else None, "low": found.low, "high": found.high}


def guards(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Per mix and arm: means over seeds, and paired differences from no guard."""
    found: dict[str, Any] = {}
    for name in GUARDED:
        mine = {(row["arm"], row["seed"]): numbers(row) for row in rows if row["mix"] == name}
        seeds = sorted({seed for _, seed in mine})
        found[name] = {"start": _means([start_of(row) for row in rows if row["mix"] == name and row["arm"] == "none"])}
        for arm in dict.fromkeys(arm for arm, _ in mine):
            told: dict[str, Any] = _means([mine[arm, seed] for seed in seeds])
            if arm != "none" and len(seeds) > 1:
                for key in told.copy():
                    apart = interval([mine[arm, seed][key] - mine["none", seed][key] for seed in seeds])
                    told[f"{key}, less none"] = [apart.value, apart.low, apart.high]
            found[name][arm] = told
    return found


def numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """What is compared of one run, after its last step."""
    looks, share = row["looks"], row["looks"][STEPS]["shares"]
    return {
        **row["pass"][STEPS],
        "entropy": looks[STEPS]["entropy"],
        "largest share": max(share.values()),
        "entropy at 20": looks[20]["entropy"],
        "alarms": float(len(row["alarms"])),
    }


def start_of(row: Mapping[str, Any]) -> dict[str, float]:
    """The same before the run."""
    return {
        **row["pass"][0],
        "entropy": row["looks"][0]["entropy"],
        "largest share": max(row["looks"][0]["shares"].values()),
    }


def _means(found: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    return {key: fmean(one[key] for one in found) for key in found[0]}


def measure(quick: bool) -> Result:
    """Both parts."""
    seeds = SEEDS[:2] if quick else SEEDS
    jobs = [Job(f"mix {seed}", seed, mix(seed), ("none",)) for seed in range(MIXES // 4 if quick else MIXES)]
    jobs += [Job(name, seed, recipe_of(*GUARDED[name]), tuple(ARMS)) for name in GUARDED for seed in seeds]
    rows = [row for found in spread(work, jobs, say="base") for row in found]
    figures = {"forecast": scores([row for row in rows if row["mix"] not in GUARDED]), "guards": guards(rows)}
    hit = figures["forecast"]["race"]
    settings = {"steps": STEPS, "push": PUSH, "pool": POOL, "shares": SHARES, "noise": NOISE, "guarded": GUARDED}
    value = Interval(hit["rate"], hit["low"], hit["high"], hit["of"])
    return Result(value, "share of mixes whose winning format was foretold (chance 1/3)", seeds, rows, figures, settings)


if __name__ == "__main__":
    run("formats", __doc__, measure)

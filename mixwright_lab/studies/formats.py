"""Study of format forecasts: which answer format takes over under GRPO, and what guards change.

A tiny GPT is trained by SFT on chain arithmetic in three answer styles (full, verbose, direct) whose shares and label noise
are crossed, then trained by GRPO, 60 steps of 12 x 8 rollouts on 1 to 4 operations.

1. Forecast, without a guard: 20 mixes, one model each. Before the run 64 held-out problems x 8 samples are measured
   (charged), the product's forecast is made from these rows alone, and it is scored against the commonest style after the
   last step. Beside it stand share alone, accuracy alone, share x accuracy (the forecast after one step), chance, 1/3, and
   the null "always full": the style that wins most often, whatever the mix. Whether the forecast beats it is decided by the
   mixes in which only one of the two is right (exact one-sided McNemar test). The headline is the hit rate over all mixes;
   where the product says "undecided", its expected winner counts. It is 17 of 20 in the committed rows, and was 16 in a
   run of an earlier version; the null has 13. So the forecast is a hint, and is not shown to beat the null.
2. Guards: 3 mixes x 5 seeds, paired. pass@k on held-out problems (64 x 16 samples), normalised entropy of the styles, and
   alarms of the monitor; differences from no guard with 95 % t intervals over seeds. `permuted` trains on rewards shuffled
   within groups: what it moves, no reward has moved.

Seeds and mixes below 100; all choices (`PUSH_NATS`, the monitor's settings, the mixes) were made on seeds 100 and above.

    python -m mixwright_lab.studies.formats [--quick]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright.plan.format_forecast import PUSH_NATS
from mixwright.records import Interval
from mixwright_lab.studies._formats import ARMS, GUARDED, NOISE, POOL, SHARES, STEPS, Job, mix, recipe_of, run_job
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.workers import run_in_processes
from mixwright_lab.worlds.chain import STYLES

MIXES, SEEDS = 20, (0, 1, 2, 3, 4)
NULL, NULL_STYLE = "always full", "full"
"""The rule that knows nothing of a mix: the style that wins most often. It is chosen after the results, in its favour."""


def scores(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Hit rates of the forecast and of its nulls, with Wilson intervals."""
    races = [row for row in rows if row["foretold"]]
    ends = [row["looks"][STEPS]["shares"] for row in races]
    won = [max(shares, key=lambda style: shares[style]) for shares in ends]
    right = {
        rule: [row["foretold"][rule] == style for row, style in zip(races, won, strict=True)]
        for rule in ("race", "share", "accuracy", "share x accuracy")
    }
    right[NULL] = [style == NULL_STYLE for style in won]
    found: dict[str, Any] = {"mixes": len(races), "chance": 1 / len(STYLES)}
    groups = {"": list(range(len(races)))}
    groups["decided, "] = [n for n in groups[""] if races[n]["foretold"]["said"] is not None]
    groups["undecided, "] = [n for n in groups[""] if races[n]["foretold"]["said"] is None]
    groups["share and accuracy disagree, "] = [
        n for n in groups[""] if races[n]["foretold"]["share"] != races[n]["foretold"]["accuracy"]
    ]
    for group, members in groups.items():
        for rule, hit in right.items():
            found[f"{group}{rule}"] = _hits(sum(hit[n] for n in members), len(members))
    found |= compare_with_null(right["race"], right[NULL])
    inside = [
        low <= shares[style] <= high
        for row, shares in zip(races, ends, strict=True)
        for style, (_, _, low, high) in row["foretold"]["expected"].items()
    ]
    return found | {"shares inside their 80 % range": _hits(sum(inside), len(inside))}


def compare_with_null(race: Sequence[bool], null: Sequence[bool]) -> dict[str, Any]:
    """The forecast against the null, by which mixes each predicted.

    The binomial p takes the null's rate as known, which it is not: it comes from the same mixes. The paired p does not.
    """
    pairs = list(zip(race, null, strict=True))
    only_race, only_null = pairs.count((True, False)), pairs.count((False, True))
    ahead = interval([float(a) - b for a, b in pairs])
    return {
        f"p against {NULL}": binomial_tail(sum(race), len(race), sum(null) / len(null)),
        f"race alone right, not {NULL}": only_race,
        f"{NULL} right, not race": only_null,
        f"p against {NULL}, paired": binomial_tail(only_race, only_race + only_null, 0.5),
        f"race less {NULL}": {"value": ahead.value, "low": ahead.low, "high": ahead.high, "n": ahead.n},
    }


def binomial_tail(hits: int, of: int, rate: float) -> float:
    """Exact binomial probability of that many hits or more."""
    return math.fsum(math.comb(of, n) * rate**n * (1 - rate) ** (of - n) for n in range(hits, of + 1))


def goals(forecast: Mapping[str, Any]) -> list[Goal]:
    """The forecast must foretell more mixes than the null."""
    p = forecast[f"p against {NULL}, paired"]
    ahead = Interval(**forecast[f"race less {NULL}"])
    return [Goal(f"hit rate of the race less {NULL}", ahead, "> 0 at p < 0.05, paired", ahead.value > 0 and p < 0.05)]


def _hits(hits: int, of: int) -> dict[str, Any]:
    found = share_interval(hits, of)
    return {"hits": hits, "of": of, "rate": hits / of if of else None, "low": found.low, "high": found.high}


def guards(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Per mix and arm: means over seeds, and paired differences from no guard."""
    found: dict[str, Any] = {}
    for name in GUARDED:
        mine = {(row["arm"], row["seed"]): numbers_after(row) for row in rows if row["mix"] == name}
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


def numbers_after(row: Mapping[str, Any]) -> dict[str, float]:
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
    rows = [row for found in run_in_processes(run_job, jobs, say="base") for row in found]
    figures = {"forecast": scores([row for row in rows if row["mix"] not in GUARDED]), "guards": guards(rows)}
    hit = figures["forecast"]["race"]
    settings = {"steps": STEPS, "push": PUSH_NATS, "pool": POOL, "shares": SHARES, "noise": NOISE, "guarded": GUARDED}
    told = goals(figures["forecast"])
    value = Interval(hit["rate"], hit["low"], hit["high"], hit["of"])
    return Result(
        value, "share of mixes whose winning format was foretold (chance 1/3)", seeds, rows, figures, settings, goals=told
    )


if __name__ == "__main__":
    run("formats", __doc__, measure)

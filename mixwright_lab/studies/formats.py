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
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from mixwright.estimates.intervals import share_interval
from mixwright.plan.format_forecast import PUSH_NATS
from mixwright.records import Example, Interval, Plan, Stage
from mixwright_lab.format_races import examples, foretell, pass_at_ks, recipe_of, summarise_styles
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, run
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.grpo import Arena, Learnt, Rollouts, Settings
from mixwright_lab.training.rules import EngineRule, pool_of, unique_examples
from mixwright_lab.worlds.chain import MODULUS, STYLES

STEPS = 60
LOOKS = (0, 10, 20, 40, 60)
POOL, PROBED, SAMPLES, ITEMS, TRIES = 400, 64, 8, 64, 16
SHARES = (
    (0.55, 0.30, 0.15),
    (0.62, 0.28, 0.10),
    (0.80, 0.14, 0.06),
    (0.45, 0.40, 0.15),
    (0.70, 0.26, 0.04),
    (0.34, 0.33, 0.33),
)
"""Of the commonest, the middle and the rarest style."""
NOISE = ((0.0, 0.1, 0.2, 0.3), (0.0, 0.1, 0.2), (0.0, 0.0, 0.1))
"""Label noise per running value to draw from, for the same three: the commonest style is often the noisiest."""
GUARDED: Mapping[str, tuple[tuple[float, float, float], tuple[float, float, float]]] = {
    "even": ((0.4, 0.4, 0.2), (0.05, 0.05, 0.0)),
    "minority is better": ((0.62, 0.28, 0.10), (0.25, 0.0, 0.0)),
    "majority is better": ((0.62, 0.28, 0.10), (0.0, 0.1, 0.0)),
}
"""Mix -> shares and noise of full, verbose and direct."""


@dataclass(frozen=True)
class Arm:
    """One way to train."""

    beta: float = 0.0
    """KL coefficient at the start."""
    alarm: bool = False
    """An alarm of the monitor tightens; else it is only listened to."""
    balanced: bool = False
    """Advantages within format: a completion is compared with those of its own style only."""
    permute: bool = False
    """Rewards shuffled within groups."""


ARMS: Mapping[str, Arm] = {
    "none": Arm(),
    "beta 0.04": Arm(0.04),
    "beta 0.1": Arm(0.1),
    "alarm, beta 0": Arm(alarm=True),
    "alarm, beta 0.04": Arm(0.04, alarm=True),
    "balanced": Arm(balanced=True),
    "permuted": Arm(permute=True),
}


@dataclass(frozen=True)
class Job:
    """One base model and what is done from it."""

    mix: str
    seed: int
    recipe: Recipe
    arms: tuple[str, ...]


class BalancedArena(Arena):
    """Compares each completion with those of its own format in its group only."""

    def learn(
        self,
        rollouts: Rollouts,
        admitted: Sequence[bool] | None = None,
        *,
        lr_factor: float = 1.0,
        beta: float | None = None,
    ) -> Learnt:
        """One update; no group is refused here."""
        self.steps += 1
        return self.update(
            rollouts, balanced(rollouts), lr_factor=lr_factor, beta=self.settings.beta if beta is None else beta
        )


def balanced(rollouts: Rollouts) -> np.ndarray:
    """Advantages that sum to 0 over each format of each group: what is left of rewards less the mean of their format.

    A trainer that normalises by group makes the same of rewards from which that mean was subtracted beforehand.
    """
    centred = rollouts.rewards.copy()
    styles = np.array(rollouts.formats)
    for rewards, own in zip(centred, styles, strict=True):
        for style in set(own):
            rewards[own == style] -= rewards[own == style].mean()
    return centred / (centred.std(1, ddof=1, keepdims=True) + 1e-4)


def mix(seed: int) -> Recipe:
    """A drawn mix: which style is common, which rare, and how noisy each is in the SFT data."""
    rng = np.random.default_rng((seed, 5))
    places, shares = rng.permutation(len(STYLES)), SHARES[rng.integers(len(SHARES))]
    noise = [rng.choice(choices) for choices in NOISE]
    return recipe_of(*([column[list(places).index(place)] for place in range(len(STYLES))] for column in (shares, noise)))


def rule_of(examples: Sequence[Example], arm: Arm, seed: int) -> EngineRule:
    """Our engine: the same uniform draws in every arm, and a monitor that tightens or is only listened to."""
    engine = {"min_informative_share": 0.0, "canaries": 0, "on_alarm": "tighten" if arm.alarm else "log"}
    stage = Stage("training", "grpo", STEPS, {"chain": 1.0}, monitors=("formats",), options={"engine": engine})
    return EngineRule(Plan("hand", (stage,)), pool_of(examples, lambda _: 1 / MODULUS), seed)


def run_job(job: Job) -> list[dict[str, Any]]:
    """Every arm of one base."""
    model, rows = base_model(job.seed, job.recipe), []
    held, probe = examples(ITEMS, "eval"), examples(PROBED, "eval", 10_000)
    train = unique_examples(examples(POOL, "train", job.seed * 10_000))
    for name in job.arms:
        arm = ARMS[name]
        kind = BalancedArena if arm.balanced else Arena
        arena = kind([*train, *probe], model, Settings(beta=arm.beta, permute=arm.permute), job.seed)
        probed = arena.roll(range(len(train), len(train) + PROBED), SAMPLES)
        foretold = foretell(probed, STEPS) if name == "none" else {}
        rule, seen, ends = rule_of(train, arm, job.seed), {}, {}
        for step in range(STEPS + 1):
            if step in LOOKS:
                rolled = arena.look(held, TRIES)
                seen[step] = summarise_styles(rolled)
                if step in (0, STEPS):
                    ends[step] = pass_at_ks(rolled)
            if step < STEPS:
                rule.step(arena)
        said = [decision.because for decision in rule.decisions if decision.what == "alarm.formats"]
        shown = {"looks": seen, "pass": ends, "alarms": said, "charged": arena.charged}
        rows.append({"mix": job.mix, "seed": job.seed, "arm": name, "foretold": foretold, **shown})
    return rows


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

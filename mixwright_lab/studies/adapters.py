"""Study of adapters and of the dial: skill and forgetting on a tiny model that knows facts and a skill before.

A model of 0.11 million parameters knows 96 facts and writes words backward; then it is trained on a new skill alone (the
first letter goes to the end), all of it (`full`), by LoRA on every matrix (`lora`), by LoRA with about as many parameters
as SVF has (`lora as small`), by SVF (`svf`), or not at all (`frozen`). Beside them stands the simple rule of who still has
the old rows: a quarter of each batch is facts and rows of the old skill (`full, rehearsing`). Arms are compared where each
first answers the level's share of held-out rows (`LEVEL`), interpolated between measurements; runs that do not reach it are
counted.

Dial: the model of `full`, trained on to `TUNED` or for `MOST` steps, mixed with its base over alpha, against the same run
stopped early, and against fine-tuning with a penalty on KL(model || base), interpolated to the KL of the dial on held-out
rows of the new skill. Rates were chosen before, on the seeds 1001 and 1002: the lowest that reached the level within 400
steps on both, of 1e-4, 3e-4, 1e-3 (`full`), 3e-4, 1e-3, 3e-3 (`lora`), 1e-3, 3e-3, 1e-2 (`lora as small`) and 1e-2, 3e-2,
1e-1 (`svf`).
"""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mixwright.catalog import create
from mixwright.learner.dial import Dial, Reader, complete, sweep
from mixwright.learner.learner import Learner
from mixwright.records import Interval, to_data
from mixwright_lab.studies import adapter_task as task
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, run

SEEDS = tuple(range(0, 8 * 37, 37))
LEVEL, TUNED, MOST = 0.8, 0.97, 500
SMALL = {"rank": 1, "targets": ["q_proj", "v_proj", "down_proj"]}
REHEARSING, REHEARSED = "full, rehearsing", 0.25
"""The arm of old rows, at the rate of `full`, and their share."""
ARMS: Mapping[str, tuple[str, Mapping[str, Any], float]] = {
    "full": ("full", {}, 1e-4),
    "lora": ("lora", {"rank": 8}, 3e-4),
    "lora as small": ("lora", SMALL, 1e-2),
    "svf": ("svf", {}, 3e-2),
    REHEARSING: ("full", {}, 1e-4),
}
"""Arm -> adapter, options, learning rate."""
ALPHAS = tuple(round(0.1 * place, 1) for place in range(1, 11))
PENALTIES, PENALISED_STEPS = (0.1, 0.15, 0.2, 0.3), 500
LOSS_BUDGET_SHARE = 0.1
"""Mean loss of facts that the sweep accepts."""
NEW_TOKENS = task.LENGTH + 2


def try_one(job: tuple[int, bool]) -> dict[str, Any]:
    """One seed: every arm, the exactness of round trip and merge, and the dial."""
    seed, quick = job
    given = task.tasks(seed)
    learner = task.base_of(seed, given, 150 if quick else task.BASE_STEPS)
    found: dict[str, Any] = {"seed": seed, "frozen": frozen(learner, given), "arms": {}, "exact": {}}
    for name, (adapter, options, rate) in ARMS.items():
        made = create("adapters", adapter, dict(options))
        begun = time.process_time()
        made.wrap(copy.deepcopy(learner.model))
        wrapped = time.process_time() - begun
        tuned = name == "full"
        again = REHEARSED if name == REHEARSING else 0.0
        steps, until = 40 if quick else MOST, TUNED if tuned else LEVEL
        draws = task.draws_of(learner, given, seed, again)
        out = task.train(learner, given.held(), draws, made.wrap, rate, steps, until=until)
        found["arms"][name] = {"parameters": out.parameters, "wrapping": wrapped, "curve": out.curve}
        if tuned:
            found["dial"] = dial(learner, Learner(copy.deepcopy(out.model), learner.tokenizer, "tuned"), given, quick=quick)
        found["exact"][name] = exact(learner, given, made, out.model)
    found["penalised"] = [penalised(learner, given, seed, each, quick=quick) for each in PENALTIES[: 1 if quick else None]]
    return found


def frozen(learner: Learner, given: task.Tasks) -> dict[str, float]:
    """What the base does."""
    found = {name: task.known(learner.model, task.encoded(learner, pairs)) for name, pairs in given.held().items()}
    return found | {"nats": task.nats(learner.model, task.encoded(learner, given.facts))}


def exact(learner: Learner, given: task.Tasks, adapter: Any, model: Any) -> dict[str, float]:
    """Difference of logits after saving and loading, and after merging, the largest over the largest logit; bytes saved.

    Logits of a trained model are large, and float32 has a relative precision.
    """
    ids = task.encoded(learner, given.facts + given.new)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        after = task.answer_logits(model, ids)
        adapter.save(model, Path(folder))
        scale = float(after.abs().max())
        size = sum(path.stat().st_size for path in Path(folder).glob("*.safetensors"))
        again = adapter.load(copy.deepcopy(learner.model), Path(folder)).eval()
        trip = float((task.answer_logits(again, ids) - after).abs().max())
        merged = float((task.answer_logits(adapter.merge(model).eval(), ids) - after).abs().max())
    return {"round trip": trip / scale, "merge": merged / scale, "largest logit": scale, "bytes": size}


def dial(learner: Learner, tuned: Learner, given: task.Tasks, *, quick: bool) -> dict[str, Any]:
    """The sweep over alpha by greedy decoding, the KL to the base at each alpha, and what decoding costs."""
    mix = Dial(0.0, tuned=Reader(tuned), pad=learner.tokenizer.pad_token_id)

    def answered(pairs: task.Pairs, alpha: float) -> np.ndarray:
        mix.alpha = alpha
        told = complete(learner, [prompt for prompt, _ in pairs], NEW_TOKENS, mix)
        return np.array([float(text == answer) for text, (_, answer) in zip(told, pairs, strict=True)])

    alphas = ALPHAS[4::2] if quick else ALPHAS
    read = sweep(alphas, lambda a: answered(given.new, a), lambda a: answered(given.facts, a), max_loss=LOSS_BUDGET_SHARE)
    ids = task.encoded(learner, given.new)
    with torch.no_grad():
        base, after = task.answer_logits(learner.model, ids), task.answer_logits(tuned.model, ids)
    kept = float(answered(given.facts, 0.0).mean())
    curve = []
    for each in read.settings:
        mixed = torch.lerp(base, after, each.alpha)
        forced = float(task.right(mixed, ids).mean())
        kl = float(task.divergence(mixed, base))
        curve.append({"alpha": each.alpha, "skill": each.skill.value, "facts": kept - each.loss.value, "kl": kl})
        curve[-1] |= {"skill by forced reading": forced, "old": float(answered(given.old, each.alpha).mean())}
    chosen = next((each for each in read.settings if each.alpha == read.chosen), None)
    return {
        "curve": curve,
        "chosen alpha": read.chosen,
        "skill at the chosen alpha": chosen.skill.value if chosen else None,
        "decode cost": decode_cost(learner, mix, given, 2 if quick else 5),
    }


def decode_cost(learner: Learner, mix: Dial, given: task.Tasks, times: int) -> float:
    """CPU seconds of decoding with the dial over those without; medians of runs that take turns."""
    mix.alpha, prompts = 0.5, [prompt for prompt, _ in given.new]
    seconds: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(times):
        for dialled in (True, False):
            begun = time.process_time()
            complete(learner, prompts, NEW_TOKENS, mix if dialled else None)
            seconds[dialled].append(time.process_time() - begun)
    return float(np.median(seconds[True]) / np.median(seconds[False]))


def penalised(learner: Learner, given: task.Tasks, seed: int, penalty: float, *, quick: bool) -> dict[str, float]:
    """All of the model trained with a penalty on KL to the base, and how far it went."""
    _, _, rate = ARMS["full"]
    steps = 20 if quick else PENALISED_STEPS
    draws, wrap = task.draws_of(learner, given, seed, 0.0), create("adapters", "full").wrap
    out = task.train(learner, given.held(), draws, wrap, rate, steps, penalty=penalty)
    ids = task.encoded(learner, given.new)
    with torch.no_grad():
        kl = task.divergence(task.answer_logits(out.model, ids), task.answer_logits(learner.model, ids))
    return {"penalty": penalty, "kl": float(kl)} | {name: out.curve[-1][name] for name in ("skill", "facts", "old")}


def crossing(points: Sequence[Mapping[str, float]], name: str, level: float, wanted: str) -> float | None:
    """`wanted` where `name` first reaches the level, linear between two points; None where it never does."""
    for before, after in zip([points[0], *points], points, strict=False):
        if after[name] >= level:
            share = (level - before[name]) / (after[name] - before[name]) if after[name] > before[name] else 1.0
            share = min(max(share, 0.0), 1.0)
            return before[wanted] + share * (after[wanted] - before[wanted])
    return None


def paired(one: Sequence[float | None], other: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean difference over the seeds where both were reached, and how many were not."""
    both = [a - b for a, b in zip(one, other, strict=True) if a is not None and b is not None]
    return {"difference": to_data(interval(both)), "censored": len(one) - len(both)} if len(both) > 1 else None


def mean_of(values: Sequence[float | None]) -> dict[str, Any] | None:
    """Mean over the seeds that have a value, and how many have none."""
    there = [value for value in values if value is not None]
    return {"mean": to_data(interval(there)), "censored": len(values) - len(there)} if len(there) > 1 else None


def arm_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of each arm at the level: steps, seconds, facts, old skill, and skill and forgetting per parameter and per second."""
    found: dict[str, Any] = {"frozen": {name: mean_of([row["frozen"][name] for row in rows]) for name in rows[0]["frozen"]}}
    for name in ARMS:
        count = rows[0]["arms"][name]["parameters"]
        read = ("step", "seconds", "facts", "old", "nats")
        own: dict[str, list[float | None]] = {key: at_level(rows, name, key) for key in read}
        own["facts lost"] = [None if kept is None else row["frozen"]["facts"] - kept for kept, row in zip_facts(own, rows)]
        gained = [None if kept is None else LEVEL - row["frozen"]["skill"] for kept, row in zip_facts(own, rows)]
        for label, values in (("skill gained", gained), ("facts lost", own["facts lost"])):
            own[f"{label} per 1,000 parameters"] = [None if v is None else 1000 * v / count for v in values]
            pairs = zip(values, own["seconds"], strict=True)
            own[f"{label} per CPU second"] = [None if v is None or not s else v / s for v, s in pairs]
        size = rows[0]["exact"][name]["bytes"]
        found[name] = {"parameters": count, "bytes": size} | {key: mean_of(values) for key, values in own.items()}
    return found


def zip_facts(own: Mapping[str, list[float | None]], rows: Sequence[Mapping[str, Any]]) -> Any:
    """Facts kept at the level beside the seed's row."""
    return zip(own["facts"], rows, strict=True)


def at_level(rows: Sequence[Mapping[str, Any]], arm: str, wanted: str) -> list[float | None]:
    """Per seed, what an arm has where its skill first reaches the level."""
    return [crossing(row["arms"][arm]["curve"], "skill", LEVEL, wanted) for row in rows]


def dial_figures(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[float]]:
    """The dial beside early stopping at equal skill, and beside a KL penalty at equal KL; differences of facts by seed."""
    dialled = [crossing(row["dial"]["curve"], "skill", LEVEL, "facts") for row in rows]
    stopped = at_level(rows, "full", "facts")
    far = [crossing(row["dial"]["curve"], "skill", LEVEL, "kl") for row in rows]
    old = [crossing(row["dial"]["curve"], "skill", LEVEL, "old") for row in rows]
    leashed: dict[str, list[float | None]] = {"skill": [], "facts": [], "old": []}
    for row, kl in zip(rows, far, strict=True):
        points = sorted(row["penalised"], key=lambda each: each["kl"])
        inside = kl is not None and points[0]["kl"] <= kl <= points[-1]["kl"]
        for name, values in leashed.items():
            values.append(crossing(points, "kl", kl, name) if inside and kl is not None else None)
    curves = [row["dial"]["curve"] for row in rows]
    figures = {
        "facts at the level": mean_of(dialled),
        "facts at the level, stopped early": mean_of(stopped),
        "facts, dial minus stopped early": paired(dialled, stopped),
        "KL of the dial at the level, nats per token": mean_of(far),
        "at the KL of the dial, penalised": {name: mean_of(values) for name, values in leashed.items()},
        "facts, dial minus penalised at equal KL": paired(dialled, leashed["facts"]),
        "facts, dial minus rehearsing": paired(dialled, at_level(rows, REHEARSING, "facts")),
        "old skill, dial minus rehearsing": paired(old, at_level(rows, REHEARSING, "old")),
        "old skill at the level": mean_of(old),
        "old skill, dial minus stopped early": paired(old, at_level(rows, "full", "old")),
        "old skill, dial minus penalised at equal KL": paired(old, leashed["old"]),
        "skill, dial minus penalised at equal KL": paired([LEVEL] * len(rows), leashed["skill"]),
        "facts at the end of training": mean_of([row["arms"]["full"]["curve"][-1]["facts"] for row in rows]),
        "curve": [
            {"alpha": points[0]["alpha"]}
            | {name: mean_of([each[name] for each in points]) for name in ("skill", "facts", "old", "kl")}
            for points in zip(*curves, strict=True)
        ],
        "skill at the chosen alpha": mean_of([row["dial"]["skill at the chosen alpha"] for row in rows]),
        "decode cost, ratio": mean_of([row["dial"]["decode cost"] for row in rows]),
        "largest difference from forced reading": max(
            abs(each["skill"] - each["skill by forced reading"]) for points in curves for each in points
        ),
    }
    both = zip(dialled, stopped, strict=True)
    return figures, [one - other for one, other in both if one is not None and other is not None]


def largest(rows: Sequence[Mapping[str, Any]], name: str) -> Interval:
    """The largest relative difference of logits over arms and seeds; its ends are the smallest and largest over seeds."""
    by_seed = [max(own[name] for own in row["exact"].values()) for row in rows]
    return Interval(max(by_seed), min(by_seed), max(by_seed), len(by_seed))


def measure(quick: bool) -> Result:
    """Every seed."""
    seeds: Sequence[int] = SEEDS[:2] if quick else SEEDS
    rows = run_in_processes(try_one, [(seed, quick) for seed in seeds], say="seed")
    figures, differences = dial_figures(rows)
    pairs = (("svf", "full"), ("svf", "lora as small"), ("lora", "full"), ("svf", "lora"), (REHEARSING, "full"))
    contrasts = {
        f"{name}, {one} minus {other}": paired(at_level(rows, one, name), at_level(rows, other, name))
        for name in ("facts", "old", "nats", "step")
        for one, other in pairs
    }
    value = interval(differences) if len(differences) > 1 else Interval(0.0, -1.0, 1.0, len(differences))
    trip, merged = largest(rows, "round trip"), largest(rows, "merge")
    goals = [
        Goal("largest relative difference of logits after merging", merged, "<= 1e-5", merged.high <= 1e-5),
        Goal("largest relative difference of logits after saving and loading", trip, "<= 1e-5", trip.high <= 1e-5),
        Goal("facts, dial minus fine-tuning stopped at equal skill", value, "> 0, lower end too", value.low > 0),
    ]
    every = {"arms": arm_figures(rows), "contrasts at the level": contrasts, "dial": figures}
    settings = {"level": LEVEL, "tuned": TUNED, "steps": MOST, "arms": {name: list(arm) for name, arm in ARMS.items()}}
    settings |= {
        "penalties": PENALTIES,
        "penalised steps": PENALISED_STEPS,
        "budget": LOSS_BUDGET_SHARE,
        "facts": task.FACTS,
    }
    unit = "share of facts kept, dial minus fine-tuning stopped at equal skill"
    return Result(value, unit, seeds, rows, every, settings, goals=goals)


if __name__ == "__main__":
    run("adapters", __doc__, measure)

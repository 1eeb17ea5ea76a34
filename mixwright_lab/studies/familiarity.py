"""Study of familiarity: which items did a real model read, after none, other items of the task, or the items themselves?

SmolLM2-135M-Instruct is trained by LoRA on whole texts (an exercise, as a completion) on each seed: on 320 other exercises
of the task for 50 steps, or on 40 of the exercises that are measured for 1, 3 and 10 epochs. Measured are these 40 and
40 more that nobody trains on, each beside three twins. Each model gives a word for the 40 (`word_of`), and an AUROC of the
40 against the 40 more, of the two leads and, as peer, of min-k without twins.

Goals, fixed before the seeds that count: after 10 epochs the AUROC of the likelihood's lead is at least .8, and at least .1
above that of min-k without twins; no untrained model and none of other items is called "item seen" in more than one of ten
sets of 40; after 10 epochs every set is called "item seen". Expected: one epoch cannot be told (AUROC under .65); half
completion is weaker than likelihood.

    python -m mixwright_lab.studies.familiarity [--quick]
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.estimates.intervals import mean_interval, share_interval
from mixwright.measure.familiarity import make_twins, word_of
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.jobs import load_or_make
from mixwright_lab.studies.leak_corpora import Lexicon, draw, tell
from mixwright_lab.studies.report import Goal, Result, interval, run

MODEL = "smollm2"
SEEN, OTHERS, TWINS, BATCH = 40, 320, 3, 8
EPOCHS = (1, 3, 10)
SEEDS, TUNING_SEEDS = (101, 102, 103, 104, 105), (1,)
REQUEST = "Write down an exercise."
HOW = Training(steps=EPOCHS[-1] * SEEN // BATCH, batch=BATCH, rank=16, learning_rate=1e-3)
ARMS = ("nothing", "other items", *(f"the items, {epochs} epochs" for epochs in EPOCHS))


def exercises(seed: int, count: int) -> list[str]:
    """Different exercises of three sentences."""
    rng, lexicon = random.Random(f"familiarity {seed}"), Lexicon.of(seed)
    found: dict[str, None] = {}
    while len(found) < count:
        item = draw(rng, lexicon, True)
        if len(item.sentences) == 3:
            found[tell(item, lexicon)] = None
    return list(found)


def measure_arms(seed: int) -> dict[str, Any]:
    """Readings of all items and twins under every arm."""
    texts = exercises(seed, 2 * SEEN + OTHERS)
    items, others = texts[: 2 * SEEN], texts[2 * SEEN :]
    twins = make_twins(items, TWINS, np.random.default_rng(seed))
    found: dict[str, Any] = {"nothing": _read(MODEL, items, twins)}
    with tempfile.TemporaryDirectory() as name:
        for arm, rows in (("other", others), ("items", items[:SEEN])):
            path, out = Path(name) / f"{arm}.jsonl", Path(name) / arm
            lines = (json.dumps({"task": "stories", "prompt": REQUEST, "completion": row}) for row in rows)
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
            steps = tuple(epochs * SEEN // BATCH for epochs in EPOCHS) if arm == "items" else ()
            fine_tune(MODEL, path, out, HOW, seed=seed, save_at=steps)
            for place in [out] if arm == "other" else [out / f"step-{step}" for step in steps]:
                epochs = "" if arm == "other" else str(int(place.name.removeprefix("step-")) * BATCH // SEEN)
                found["other items" if arm == "other" else f"the items, {epochs} epochs"] = _read(str(place), items, twins)
    return {"seed": seed, "readings": found}


def _read(model: str, items: Sequence[str], twins: Sequence[Sequence[str]]) -> list[list[list[float]]]:
    """Likelihood and completed share of each item and its twins."""
    from mixwright.learner.load import load_learner
    from mixwright.measure.probes.familiarity import read_texts

    learner = load_learner(model)
    readings = read_texts(learner, [text for item, own in zip(items, twins, strict=True) for text in (item, *own)])
    size, rounded = 1 + TWINS, [[round(value, 4) for value in one] for one in readings if one is not None]
    return [rounded[at : at + size] for at in range(0, len(rounded), size)]


def auroc(seen: np.ndarray, others: np.ndarray) -> float:
    """Share of pairs in which the first is larger; ties count half."""
    return float(np.mean((seen[:, None] > others) + 0.5 * (seen[:, None] == others)))


def judge(row: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of each arm of a seed: the AUROC of each statistic, and the words for both halves of the items."""
    start = np.array(row["readings"]["nothing"])
    found = {}
    for arm, readings in row["readings"].items():
        table = np.array(readings)
        lead = table[:, 0] - table[:, 1:].mean(axis=1)
        gain = (table[:, 1:, 0] - start[:, 1:, 0]).mean(axis=1)
        statistics = {"likelihood lead": lead[:, 0], "completed lead": lead[:, 1], "min-k alone": table[:, 0, 0]}
        halves = {"the 40": slice(0, SEEN), "40 more": slice(SEEN, None)}
        found[arm] = {
            "auroc": {name: auroc(values[:SEEN], values[SEEN:]) for name, values in statistics.items()},
            "words": {
                name: word_of(mean_interval(lead[part, 0]), None if arm == "nothing" else mean_interval(gain[part]))
                for name, part in halves.items()
            },
            "lead": {name: float(lead[part, 0].mean()) for name, part in halves.items()},
        }
    return found


def summarise(rows: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[Goal]]:
    """Figures over seeds, and the goals."""
    judged = [judge(row) for row in rows]
    figures: dict[str, Any] = {}
    for arm in ARMS:
        for name in ("likelihood lead", "completed lead", "min-k alone"):
            figures[f"AUROC, {arm}, {name}"] = interval([one[arm]["auroc"][name] for one in judged])
        for part in ("the 40", "40 more"):
            figures[f"lead in nats, {arm}, {part}"] = interval([one[arm]["lead"][part] for one in judged])
            figures[f"words, {arm}, {part}"] = [one[arm]["words"][part] for one in judged]
    last = ARMS[-1]
    lead = figures[f"AUROC, {last}, likelihood lead"]
    over = interval([one[last]["auroc"]["likelihood lead"] - one[last]["auroc"]["min-k alone"] for one in judged])
    clean = [word for one in judged for arm in ARMS[:2] for word in one[arm]["words"].values()]
    clean += [one[arm]["words"]["40 more"] for one in judged for arm in ARMS[2:]]
    alarms = share_interval(sum(word == "item seen" for word in clean), len(clean))
    named = share_interval(sum(one[last]["words"]["the 40"] == "item seen" for one in judged), len(judged))
    return figures, [
        Goal("AUROC of the lead, 10 epochs", lead, ">= 0.8", lead.value >= 0.8),
        Goal("AUROC over min-k without twins, 10 epochs", over, ">= 0.1", over.value >= 0.1),
        Goal("sets that nobody trained on, called item seen", alarms, "<= 0.1", alarms.value <= 0.1),
        Goal("sets trained on for 10 epochs, called item seen", named, ">= 1", named.value >= 1),
    ]


def measure(quick: bool) -> Result:
    """All arms on every seed; readings are kept between runs."""
    seeds = TUNING_SEEDS * 2 if quick else SEEDS
    rows = [load_or_make(Path(__file__), str(seed), lambda seed=seed: measure_arms(seed)) for seed in seeds]
    figures, goals = summarise(rows)
    settings = {"training": HOW, "items": SEEN, "others": OTHERS, "twins": TWINS, "model": MODEL}
    unit = "AUROC of 40 items trained on for 10 epochs against 40 that were not, of the likelihood's lead over twins"
    return Result(goals[0].found, unit, seeds, rows, figures, settings, goals=goals)


if __name__ == "__main__":
    run("familiarity", __doc__, measure)

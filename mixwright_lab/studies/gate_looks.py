"""Study of the gate inside a trainer: how often it stops a run that lost nothing, how soon one that did, and a real run.

Simulated: 200 items of four tasks, half of them right before, 20 looks. At each look a fifth of the items has changed for no
reason: others at each look, the same at all, or four of five the same from one look to the next. In half of the runs ten
points are lost from the first look on. Drawn with other seeds than those in the tests.

Real: SmolLM2-135M-Instruct learns tool calls alone (LoRA, 40 steps of 16 rows at 3e-4), and every four steps 100 items of
five other kinds are answered (`mixwright_lab/demo`). The gate should stop it before half of the whole run's loss is lost.

Expectations, written before the run: at most 5 % of the runs without a loss are stopped, of each kind; a loss of ten points
is found within four looks in 80 % of the runs, where other items change at each look. The two other kinds are reported.

Each finished part is kept in `gate_looks.rows.jsonl`; a run that was stopped goes on.

    python -m mixwright_lab.studies.gate_looks [--quick]
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.estimates.intervals import share_interval
from mixwright.estimates.repeated_looks import RepeatedLooks
from mixwright.records import Interval
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.questions import write_files
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

ITEMS, TASKS, LOOKS, CHURN, LOSS, SOON = 200, 4, 20, 0.2, 0.1, 4
RUNS, SEED = 2000, 20_261
KEPT_BY_KIND = {"other items at each look": 0.0, "four of five the same": 0.8, "the same items at all looks": 1.0}
"""Kind of churn -> share of the changed items that stay changed from one look to the next."""
MOST_FALSE_STOPS, LEAST_FOUND = 0.05, 0.8
EVERY, RATE = 4, 3e-4
KEPT = ("capitals", "opposites", "past_tenses", "sums", "plurals")
"""Kinds of questions that are looked at."""
REAL = {"whole": False, "gated": True}
"""Run of SmolLM2 -> whether the gate may stop it."""
ROWS_FILE = RESULTS / "gate_looks.rows.jsonl"


def simulate(kept: float, loss: float, runs: int, seed: int) -> list[int]:
    """Of each run the look at which it was stopped, from 1; 0 where it was not."""
    rng, stops = np.random.default_rng(seed), []
    for number in range(runs):
        before = (np.arange(ITEMS) % (2 * TASKS) < TASKS).astype(float)
        watch = RepeatedLooks([str(item % TASKS) for item in range(ITEMS)], LOOKS, seed=number)
        changed = rng.random(ITEMS) < CHURN
        harm = rng.random(ITEMS)
        stop = 0
        for look in range(1, LOOKS + 1):
            stays = rng.random(ITEMS) < kept
            changed = np.where(stays, changed, rng.random(ITEMS) < CHURN)
            after = np.where(changed, 1 - before, before)
            after = np.where((harm < loss / after.mean()) & (after == 1), 0.0, after)
            if watch.look(after - before).loss_is_shown:
                stop = look
                break
        stops.append(stop)
    return stops


def train_narrow(name: str, *, stop: bool, quick: bool) -> dict[str, Any]:
    """What the gate saw of a run that it may stop, or may not."""
    from datasets import Dataset
    from peft import LoraConfig
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from mixwright import GateCallback
    from mixwright.learner.load import load_learner
    from mixwright.learner.settings import cheap_settings

    with tempfile.TemporaryDirectory() as place:
        files = write_files(Path(place), SEED)
        learner = load_learner("smollm2")
        read = [json.loads(line) for line in files.train.read_text(encoding="utf-8").splitlines()]
        rows = [learner.form.row({k: row[k] for k in ("task", "prompt", "completion")}) for row in read]
        gate = GateCallback(
            files.held_out,
            every=1 if quick else EVERY,
            items=10 if quick else 100,
            protect=KEPT,
            graders=dict.fromkeys(KEPT, "includes"),
            stop=stop,
            max_new_tokens=24,
        )
        settings = {"max_steps": 2 if quick else 40, "per_device_train_batch_size": 16, "learning_rate": RATE}
        args = SFTConfig(output_dir=place, seed=SEED, save_strategy="no", **settings, **cheap_settings(learner.device))
        trainer = SFTTrainer(
            model=learner.model,
            args=args,
            train_dataset=Dataset.from_list(rows),
            processing_class=learner.tokenizer,
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
            callbacks=[gate],
        )
        trainer.train()
        looks = [{key: look[key] for key in ("step", "outcome", "change", "lower", "tasks")} for look in gate.looks]
        before = sum(gate.before) / len(gate.before)
        return {"SmolLM2": name, "before": before, "steps": trainer.state.global_step, "looks": looks}


def measure_kind(number: int, kind: str, runs: int) -> dict[str, Any]:
    """Runs without and with a loss, of one kind of churn."""
    kept = KEPT_BY_KIND[kind]
    false, true = (simulate(kept, loss, runs, SEED + 2 * number + place) for place, loss in enumerate((0.0, LOSS)))
    soon = sum(0 < stop <= SOON for stop in true)
    counts = {"false stops": sum(stop > 0 for stop in false), "found soon": soon, "found": sum(stop > 0 for stop in true)}
    return {"churn": kind, "runs": runs} | counts


def measure(quick: bool) -> Result:
    """Simulate, then train; each finished row is kept, and a study that was stopped goes on."""
    rows = [] if quick else read_rows(ROWS_FILE)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        kind: lambda number=number, kind=kind: measure_kind(number, kind, 40 if quick else RUNS)
        for number, kind in enumerate(KEPT_BY_KIND)
    }
    parts |= {name: lambda name=name, stop=stop: train_narrow(name, stop=stop, quick=quick) for name, stop in REAL.items()}
    for name, make in parts.items():
        if name not in map(part_of, rows):
            rows.append(make())
            if not quick:
                append_row(ROWS_FILE, rows[-1])
    goals = goals_of({part_of(row): row for row in rows})
    return Result(
        goals[0].found,
        "share of runs without a loss that are stopped",
        [SEED],
        rows,
        settings={"items": ITEMS, "looks": LOOKS, "churn": CHURN, "loss": LOSS, "rate": RATE},
        goals=goals,
    )


def part_of(row: Mapping[str, Any]) -> str:
    """Which part of the study a row is."""
    return row["churn"] if "churn" in row else row["SmolLM2"]


def goals_of(rows: Mapping[str, Mapping[str, Any]]) -> list[Goal]:
    """What was fixed before."""
    goals = []
    for kind, kept in KEPT_BY_KIND.items():
        stops = share_interval(rows[kind]["false stops"], rows[kind]["runs"])
        goals.append(Goal(f"false stops, {kind}", stops, f"at most {MOST_FALSE_STOPS:.0%}", stops.value <= MOST_FALSE_STOPS))
        if not kept:
            found = share_interval(rows[kind]["found soon"], rows[kind]["runs"])
            goals.append(Goal("found within 4 looks", found, f"at least {LEAST_FOUND:.0%}", found.value >= LEAST_FOUND))
    whole, gated = (rows[name]["looks"][-1] for name in REAL)
    share = gated["change"] / whole["change"] if whole["change"] else 0.0
    early = gated["outcome"] == "lost" and share < 0.5
    return [*goals, Goal("share of the loss when SmolLM2 is stopped", Interval(share, share, share, 1), "under 0.5", early)]


if __name__ == "__main__":
    run("gate_looks", __doc__, measure)

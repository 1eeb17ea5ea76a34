"""Study of training only upper layers, with what the frozen layers make of a row computed once: SmolLM2-135M-Instruct.

LoRA on all 30 layers, on the upper 15 and on the upper 10 is trained on the demo's tool calls for equal CPU seconds, the
computing of the cache included, in one bare loop that differs in the first trained layer alone. Read afterwards: the
held-out loss of tool calls (what is to be learnt) and of the five other tasks (what is kept), in nats per token of the gold
answers. Not training is an arm. The learning rate of each arm was chosen on seed 3, which does not count.

Such training is offered if its held-out loss of tool calls is at most 0.02 nats above that of all layers, and that of the
other tasks, too: the upper ends of both intervals decide. Of 5e-4, 1.5e-3 and 4e-3 the last learnt most in every arm.
Weights are Q4_1, dequantised.

    python -m mixwright_lab.studies.upper_layers [--quick]
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright_lab.demo.files import write_files
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, run

MODEL = "smollm2"
ROWS_FILE = RESULTS / "upper_layers.rows.jsonl"
SEEDS = (13, 29, 47, 67, 83)
SECONDS = 60.0
"""CPU seconds of each training, on one thread."""
BATCH, RANK = 16, 16
ITEMS = 12
"""Held-out rows of each task."""
ALLOWED_NATS = 0.02
LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
"""All linear layers of a block, by name: PEFT takes no choice of layers beside its word for all."""


@dataclass(frozen=True)
class Upper:
    """Layers that are trained."""

    name: str
    first: int
    """The first of them, counted from 0."""
    learning_rate: float


ARMS = (Upper("all layers", 0, 4e-3), Upper("upper 15", 15, 4e-3), Upper("upper 10", 20, 4e-3))


class Layers:
    """A model in two parts."""

    def __init__(self, seed: int, arm: Upper | None) -> None:
        import torch
        from peft import LoraConfig, get_peft_model

        from mixwright.learner.load import load_learner

        self.learner = load_learner(MODEL)
        self.first, base = 0 if arm is None else arm.first, self.learner.model
        torch.manual_seed(seed)
        if arm is not None:
            layers = list(range(arm.first, len(base.model.layers)))
            lora = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=LINEAR, layers_to_transform=layers)
            self.adapted = get_peft_model(base, lora)
        self.body, self.head = base.model, base.lm_head

    def encode(self, row: dict[str, str]) -> tuple[list[int], int]:
        """Tokens of a prompt with its answer and the end, and how many of them are the prompt's."""
        prompt = self.learner.encode(row["prompt"])
        answer = self.learner.tokenizer(row.get("completion", row.get("answer")), add_special_tokens=False)["input_ids"]
        return [*prompt, *answer, self.learner.tokenizer.eos_token_id], len(prompt)

    def run(self, states: Any, start: int, end: int | None) -> Any:
        """Hidden states after these layers, rows padded on the right."""
        import torch

        places = torch.arange(states.shape[1])[None]
        rotary = self.body.rotary_emb(states, position_ids=places)
        for layer in self.body.layers[start:end]:
            states = layer(states, attention_mask=None, position_ids=places, position_embeddings=rotary)
        return states

    def below(self, rows: Sequence[tuple[list[int], int]]) -> list[Any]:
        """What the layers that are not trained make of each row, shape (tokens, width)."""
        import torch

        with torch.no_grad():
            return [self.run(self.body.embed_tokens(torch.tensor([ids])), 0, self.first)[0] for ids, _ in rows]

    def losses(self, rows: Sequence[tuple[list[int], int]], states: Sequence[Any]) -> Any:
        """Nats of every answer token, rows one after the other."""
        import torch

        padded = torch.nn.utils.rnn.pad_sequence(list(states), batch_first=True)
        found = self.body.norm(self.run(padded, self.first, None))
        used = [(i, place) for i, (ids, prompt) in enumerate(rows) for place in range(prompt - 1, len(ids) - 1)]
        wanted = torch.tensor([rows[i][0][place + 1] for i, place in used])
        logits = self.head(found[[i for i, _ in used], [place for _, place in used]])
        return torch.nn.functional.cross_entropy(logits, wanted, reduction="none")

    def mean_loss(self, rows: Sequence[dict[str, str]]) -> float:
        """Nats per answer token."""
        import torch

        read = [self.encode(row) for row in rows]
        with torch.no_grad():
            return float(self.losses(read, self.below(read)).mean())


def train(layers: Layers, rows: Sequence[dict[str, str]], arm: Upper, seconds: float, seed: int) -> int:
    """Train for so many CPU seconds, at a rate that falls to 0 over them; returns the steps."""
    import torch

    began = time.process_time()
    read = [layers.encode(row) for row in rows]
    below = layers.below(read)
    parameters = [value for value in layers.adapted.parameters() if value.requires_grad]
    optimizer, rng, steps, order = (
        torch.optim.AdamW(parameters, lr=arm.learning_rate, weight_decay=0.0),
        random.Random(seed),
        0,
        [],
    )
    while (share := (time.process_time() - began) / seconds) < 1:
        if len(order) < BATCH:
            order = rng.sample(range(len(read)), len(read))
        batch = [order.pop() for _ in range(min(BATCH, len(order)))]
        for group in optimizer.param_groups:
            group["lr"] = arm.learning_rate * (1 - share)
        layers.losses([read[i] for i in batch], [below[i] for i in batch]).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    return steps


def measure_seed(seed: int, arms: Sequence[Upper | None], seconds: float, items: int) -> list[dict[str, Any]]:
    """A row per arm, in an order of its own."""
    with tempfile.TemporaryDirectory() as place:
        files = write_files(Path(place), seed)
        rows, held_out = (
            [json.loads(line) for line in path.read_text().splitlines()] for path in (files.train, files.held_out)
        )
    found = []
    for arm in random.Random(seed).sample(list(arms), len(arms)):
        layers = Layers(seed, arm)
        steps = 0 if arm is None else train(layers, rows, arm, seconds, seed)
        tasks = sorted({row["task"] for row in held_out})
        losses = {task: layers.mean_loss([row for row in held_out if row["task"] == task][:items]) for task in tasks}
        others = [value for task, value in losses.items() if task != "tool_calls"]
        found.append(
            {"seed": seed, "arm": arm.name if arm else "not trained", "steps": steps, "learnt": losses["tool_calls"]}
            | {"kept": sum(others) / len(others), "by_task": losses, "rate": arm.learning_rate if arm else 0.0}
        )
    return found


def measure(quick: bool) -> Result:
    """Measure the seeds that are left."""
    import torch

    torch.set_num_threads(1)
    seeds, seconds, items = (SEEDS[:2], 2.0, 2) if quick else (SEEDS, SECONDS, ITEMS)
    kept = None if quick else ROWS_FILE
    rows = [] if kept is None else read_rows(kept)
    for seed in seeds:
        if any(row["seed"] == seed for row in rows):
            continue
        rows += measure_seed(seed, (None, *ARMS), seconds, items)
        print(json.dumps(rows[-len(ARMS) - 1 :]), file=sys.stderr, flush=True)
        if kept is not None:
            for row in rows[-len(ARMS) - 1 :]:
                append_row(kept, row)
    found = {
        (arm.name, what): interval([_of(rows, seed, arm.name)[what] - _of(rows, seed, ARMS[0].name)[what] for seed in seeds])
        for arm in ARMS[1:]
        for what in ("learnt", "kept")
    }
    goals = [
        Goal(
            f"held-out loss, {what}, {name} less all layers",
            one,
            f"<= {ALLOWED_NATS} at its upper end",
            one.high <= ALLOWED_NATS,
        )
        for (name, what), one in found.items()
    ]
    steps = {arm.name: [_of(rows, seed, arm.name)["steps"] for seed in seeds] for arm in ARMS}
    return Result(
        found[ARMS[-1].name, "learnt"],
        "nats per token of held-out tool calls, upper 10 layers less all, at equal CPU time",
        seeds,
        rows,
        figures={"steps": steps, "means": {name: _means(rows, name) for name in ("not trained", *steps)}},
        settings={"model": "SmolLM2-135M-Instruct, Q4_1 weights, dequantised", "seconds": seconds, "rank": RANK},
        goals=goals,
    )


def _of(rows: Sequence[dict[str, Any]], seed: int, arm: str) -> dict[str, Any]:
    return next(row for row in rows if (row["seed"], row["arm"]) == (seed, arm))


def _means(rows: Sequence[dict[str, Any]], arm: str) -> dict[str, float]:
    own = [row for row in rows if row["arm"] == arm]
    return {what: sum(row[what] for row in own) / len(own) for what in ("learnt", "kept")}


if __name__ == "__main__":
    run("upper_layers", __doc__, measure)

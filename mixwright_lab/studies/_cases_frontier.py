"""Cases of the miner `frontier`: two answers to each prompt, both in reach of the student or one beyond it.

A prompt lists six digits below 5, and the answer is their sum modulo 5. A worked answer writes the running sum after each
digit; a brief one only the end. The starting model had a short SFT in both forms of the case on prompts with two or three
digits other than 0, so that no form is foreign to it, and it knows the single steps.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from mixwright.runs import yaml_text
from mixwright_lab.studies._cases import Case

BASE, LENGTH, PROMPTS, HELD_OUT, WARM = 5, 6, 400, 50, 1500
WARM_UP = {"brief": (220, 2), "other words": (80, 1)}
"""Second source -> steps of the warm-up, and its rows in it to one of the first: a model that sees the steps in every row
needs fewer steps to know them as well, and one that would answer in full before training has nothing to learn."""
FORMS = {"worked": (True, "####"), "other words": (True, "Answer:"), "brief": (False, "####")}
"""Source -> whether it writes the running sums, and what stands before the answer."""


def _write(folder: Path, seed: int, sources: tuple[str, str]) -> Path:
    """Rows and settings; returns run.yaml. No prompt is in both splits, or in the warm-up."""
    rng = random.Random(f"frontier {seed}")
    prompts: set[tuple[int, ...]] = set()
    while len(prompts) < PROMPTS + HELD_OUT:
        prompts.add(tuple(rng.randrange(BASE) for _ in range(LENGTH)))
    order = rng.sample(sorted(prompts), len(prompts))
    train = [_row(digits, source) for digits in order[:PROMPTS] for source in sources]
    rng.shuffle(train)
    warm = [
        _row(_sparse(rng), source) for _ in range(WARM) for source in (sources[0], *sources[1:] * WARM_UP[sources[1]][1])
    ]
    held = [_row(digits, sources[0]) for digits in order[PROMPTS:]]
    for name, rows in (("train", train), ("warm", warm), ("held", held)):
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = folder / "run.yaml"
    path.write_text(yaml_text(_settings(seed, WARM_UP[sources[1]][0])), encoding="utf-8")
    return path


def _sparse(rng: random.Random) -> tuple[int, ...]:
    """Digits of which two or three at most are not 0."""
    kept = rng.sample(range(LENGTH), rng.choice((2, 3)))
    return tuple(rng.randrange(BASE) if place in kept else 0 for place in range(LENGTH))


def _row(digits: tuple[int, ...], source: str) -> str:
    sums = [sum(digits[: place + 1]) % BASE for place in range(len(digits))]
    worked, mark = FORMS[source]
    steps = "".join(map(str, sums)) + " " if worked else ""
    row = {"prompt": "".join(map(str, digits)) + "=", "target": f"{steps}{mark} {sums[-1]}", "answer": str(sums[-1])}
    return json.dumps({**row, "task": "sums", "source": source})


def _settings(seed: int, warm: int) -> dict[str, object]:
    warmup = {"steps": warm, "batch_size": 64, "learning_rate": 5e-3, "source": "warm.jsonl"}
    return {
        "corpus": {"train": "train.jsonl", "eval": "held.jsonl", "grader": "final_answer"},
        "model": {"path": "tiny:", "width": 32, "depth": 2, "heads": 2, "vocabulary": 264, "warmup": warmup},
        "measure": {"items": HELD_OUT, "samples": 1, "max_new_tokens": 18, "decoding": "greedy", "probes": ["competence"]},
        "mine": {"options": {"frontier": {"learning_rate": 3e-3}}},
        "plan": {"planner": "proportional"},
        "train": {"objective": "sft", "steps": 32, "prompts": 16, "learning_rate": 3e-3, "canary_every": 0},
        "trial": {"seeds": 8, "workers": 1, "progress_every": 0},
        "seed": seed,
    }


CASES = (
    Case(
        "frontier, one source beyond the student",
        "frontier",
        True,
        "Half of the answers leave out all steps, which a model of this size does not learn in so few.",
        lambda folder, seed: _write(folder, seed, ("worked", "brief")),
    ),
    Case(
        "frontier, both sources in reach",
        "frontier",
        False,
        "All answers have every step, half of them with another word before the end: which are taken cannot matter.",
        lambda folder, seed: _write(folder, seed, ("worked", "other words")),
    ),
)

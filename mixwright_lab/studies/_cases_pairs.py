"""Cases of the miner `pairs`: errors of order and form that the model can do without, and facts that it was never told.

Where pairs should help, most chains of calls that the model has seen have their arguments in the order of the question,
where half of its words ask for the other one, and a tenth has a mistake of form: it can do right, and does wrong. Where they
should not, each prompt is a code that stands for a digit by chance, and held-out codes are in no other row.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np

from mixwright.runs import yaml_text
from mixwright_lab.studies._cases import Case
from mixwright_lab.worlds.function_calls import WORDS, FunctionCalls, calls_of, spoiled, written

WARM, ROWS, HELD_OUT = 1500, 120, 100
TURNED, FORM = 0.7, 0.1
"""Share of the warm-up's chains with all arguments in the order of the question, and of those with a mistake of form."""


def _calls(folder: Path, seed: int) -> Path:
    """Questions of one or two calls; returns run.yaml."""
    world, rng = FunctionCalls(), np.random.default_rng((seed, 0xCA11))

    def drawn(count: int, split: str, known: set[str]) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = []
        while len(found) < count:
            one = world.make(int(rng.integers(2**31)), float(rng.integers(1, 3)), split)
            if str(one.prompt) not in known:
                known.add(str(one.prompt))
                found.append((str(one.prompt), str(one.target), str(one.answer)))
        return found

    known: set[str] = set()
    held, train, warm = drawn(HELD_OUT, "eval", known), drawn(ROWS, "train", known), drawn(WARM, "train", known)
    taught = [(prompt, _mistaken(prompt, target, rng), answer) for prompt, target, answer in warm]
    return _written(folder, seed, held, train, taught, "mixwright_lab.worlds.function_calls:grade", 26)


def _mistaken(prompt: str, target: str, rng: np.random.Generator) -> str:
    """A chain as the warm-up has it."""
    kind = rng.random()
    if kind < FORM:
        return spoiled(prompt, "format", rng)
    if kind >= FORM + TURNED:
        return target
    swap = [WORDS[word][1] for word in prompt.split()[1::2]]
    pairs = zip(calls_of(prompt), swap, strict=True)
    own = [call._replace(one=call.other, other=call.one) if turn else call for call, turn in pairs]
    return written(own)


def _facts(folder: Path, seed: int) -> Path:
    """Codes of four letters, each with a digit of its own; returns run.yaml."""
    rng = random.Random(f"pairs {seed}")
    codes: set[str] = set()
    while len(codes) < HELD_OUT + ROWS + WARM:
        codes.add("".join(rng.choices("abcdefghij", k=4)))
    rows = [(code, digit, digit) for code in sorted(codes) for digit in [str(rng.randrange(10))]]
    rng.shuffle(rows)
    held, train, warm = rows[:HELD_OUT], rows[HELD_OUT : HELD_OUT + ROWS], rows[HELD_OUT + ROWS :]
    return _written(folder, seed, held, train, warm, "exact", 3)


def _written(
    folder: Path,
    seed: int,
    held: list[tuple[str, str, str]],
    train: list[tuple[str, str, str]],
    warm: list[tuple[str, str, str]],
    grader: str,
    longest: int,
) -> Path:
    """Rows and settings; returns the path of run.yaml."""
    for name, rows in (("held", held), ("train", train), ("warm", warm)):
        lines = [
            json.dumps({"prompt": f"{prompt} = ", "target": "".join(target.split()), "answer": answer, "task": "calls"})
            for prompt, target, answer in rows
        ]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    path = folder / "run.yaml"
    path.write_text(yaml_text(_settings(seed, grader, longest)), encoding="utf-8")
    return path


def _settings(seed: int, grader: str, longest: int) -> dict[str, object]:
    warmup = {"steps": 300, "batch_size": 32, "learning_rate": 4e-3, "source": "warm.jsonl"}
    return {
        "corpus": {"train": "train.jsonl", "eval": "held.jsonl", "grader": grader},
        "model": {"path": "tiny:", "width": 48, "depth": 2, "heads": 2, "vocabulary": 320, "warmup": warmup},
        "measure": {
            "items": HELD_OUT,
            "samples": 1,
            "max_new_tokens": longest,
            "decoding": "greedy",
            "probes": ["competence"],
        },
        "mine": {"options": {"pairs": {"samples": 8, "max_new_tokens": longest}}},
        "plan": {"planner": "proportional"},
        "train": {"objective": "dpo", "steps": 30, "prompts": 16, "learning_rate": 3e-4, "canary_every": 0},
        "trial": {"seeds": 8, "workers": 1, "progress_every": 0},
        "seed": seed,
    }


CASES = (
    Case(
        "pairs, a model that mostly writes arguments in the order of the question",
        "pairs",
        True,
        "Most chains that the model learnt from have arguments in the order of the question; a fifth is right by design.",
        _calls,
    ),
    Case(
        "pairs, facts that the model was never told",
        "pairs",
        False,
        "Every prompt is a code that stands for a digit by chance, and those held out are in no other row.",
        _facts,
    ),
)

"""Cases of the miner `self_edits`: new facts as entries of a register, or in a form that the model knows already.

A model of four-letter names has learnt two ways to ask for a colour, of names it knows. New names come in entries of a
register, a form that it has never read. A third of them are asked for in reward questions, the others in held-out ones. In
the second case the facts come as answers to the other question, a form that the model knows: there is nothing to gain.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

from mixwright.runs import yaml_text
from mixwright_lab.studies._cases import Case

KNOWN, SHOWN, NEW, ASKED = 240, 40, 96, 32
"""Names that the model knows, those of them in the data, new ones, and new ones that reward questions ask for."""
COLOURS = ("red", "blue", "green", "black", "white", "pink", "grey", "gold")
ENTRY, FIRST, SECOND = "<reg {value} | {name} >", "what is {name}? ", "{name} has the colour "
"""An entry of the register, and the beginnings of two questions."""


def _write(folder: Path, seed: int, *, native: bool) -> Path:
    """Rows and settings; returns run.yaml."""
    rng = random.Random(f"self_edits {seed}")
    letters = [rng.sample("abcdefghijklmnopqrstuvwxyz", 4) for _ in range(3 * (KNOWN + NEW))]
    names = list(dict.fromkeys("".join(own) for own in letters))[: KNOWN + NEW]
    facts = {name: rng.choice(COLOURS) for name in names}
    known, new = names[:KNOWN], names[KNOWN:]
    warm = [_row("known", form, name, facts) for name in known[SHOWN:] for form in (FIRST, SECOND)]
    lines = [_row("known", form, name, facts) for name in known[:SHOWN] for form in (FIRST, SECOND)]
    lines += [_row("news", FIRST if native else None, name, facts) for name in new]
    lines += [_row("asked", SECOND, name, facts) for name in new[:ASKED]]
    rng.shuffle(lines)
    held = [_row("known", SECOND, name, facts) for name in new[ASKED:]]
    for name, rows in (("warm", warm), ("train", lines), ("held", held)):
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    path = folder / "run.yaml"
    path.write_text(yaml_text(_settings(seed, FIRST + "{value}" if native else ENTRY)), encoding="utf-8")
    return path


def _row(task: str, form: str | None, name: str, facts: dict[str, str]) -> str:
    colour = facts[name]
    prompt, target = ("reg: ", ENTRY.format(name=name, value=colour)) if form is None else (form.format(name=name), colour)
    return json.dumps({"prompt": prompt, "target": target, "answer": target, "task": task})


def _settings(seed: int, pattern: str) -> dict[str, object]:
    warmup = {"steps": 500, "batch_size": 32, "learning_rate": 5e-3, "source": "warm.jsonl"}
    edits = {"facts": "news", "questions": "asked", "pattern": pattern, "protected": ["known"]} | {
        "templates": ["reg:  => " + ENTRY]
    }
    short = {"steps": 40, "runs": 4, "batch": 16, "learning_rate": 3e-3, "rank": 0}
    return {
        "corpus": {"train": "train.jsonl", "eval": "held.jsonl", "grader": "exact"},
        "model": {"path": "tiny:", "width": 48, "depth": 2, "heads": 2, "vocabulary": 300, "warmup": warmup},
        "measure": {
            "items": NEW - ASKED,
            "samples": 1,
            "max_new_tokens": 4,
            "decoding": "greedy",
            "probes": ["competence"],
        },
        "mine": {"options": {"self_edits": edits | short}},
        "plan": {"planner": "proportional"},
        "train": {"objective": "sft", "steps": 60, "prompts": 24, "learning_rate": 3e-3, "canary_every": 0},
        "trial": {"seeds": 8, "workers": 1, "progress_every": 0},
        "seed": seed,
    }


CASES = (
    Case(
        "self_edits, new facts in a form that the model does not know",
        "self_edits",
        True,
        "New facts stand in entries of a register; the model knows two other forms, and is asked in one of them.",
        lambda folder, seed: _write(folder, seed, native=False),
    ),
    Case(
        "self_edits, new facts in a form that the model knows",
        "self_edits",
        False,
        "New facts are answers to a question that the model knows, so that there is no better form to be found.",
        lambda folder, seed: _write(folder, seed, native=True),
    ),
)

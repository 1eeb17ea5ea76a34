"""Study of three published claims on SmolLM2-135M-Instruct that need no training: embers, sparsity, errors in the context.

- `embers`: it copies sentences, and the same words in an order of chance. Claim: what is probable as text is copied right
  more often. Control: a third of the sentences is.
- `sparsity`: it adds numbers of one digit, and of three. Claim: before the answers to the harder ones more of the energy of
  the last hidden state is in its strongest tenth. Control: the entropy of the first token foretells wrong answers, by an
  area under the ROC curve of .6. Ours: sparsity foretells them better than entropy.
- `self_conditioning`: it answers questions behind six turns with right answers, and with those of each other. Claim: behind
  wrong turns fewer are right. Control: a third is right behind right ones.

Goals, fixed before the seeds that are reported: each claim above 0, whole interval over draws of the items; it counts only
if its control is shown. The sentences and their length were tried on seed 5.

Source: 2309.13638, 2603.03415, 2509.09677; sentences, sums and questions are ours.
Unit: one draw of the items.
Cost: two minutes of one thread a draw.
Blind spot: one model and one task each; intervals are over items. What is copied stands in the prompt, so that it is as
    improbable there; one-digit sums are shorter; wrong turns may be read as a rule.

    python -m mixwright_lab.studies.real_forward [--quick] [--report]
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.records import Interval
from mixwright.words import words_in
from mixwright_lab.findings.sparsity import area, share_of_strongest
from mixwright_lab.studies.everyday import ERRANDS, HALF_KNOWN, NAMES, PLACES, ROOMS
from mixwright_lab.studies.jobs import append_row, read_rows, row_of, run_in_processes
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded, run

MODEL, SEEDS, TUNING = "smollm2", (2003, 2011, 2017, 2027, 2029), 5
SENTENCES, SUMS, QUESTIONS, TURNS = 40, 48, 24, 6
COPY = "Repeat this text word for word, and write nothing else: {}"
FORMS = (
    "{a} wants to {errand} in the {room} before {b} comes home from {place}",
    "when {a} was in {place} {b} had to {errand} in the {room}",
    "{a} asked {b} to {errand} in the {room} on the way to {place}",
)
LEAST_RIGHT, LEAST_AREA = 1 / 3, 0.6
ROWS_FILE, PLACE = RESULTS / "real_forward.rows.jsonl", Path("runs") / "real_forward"


@dataclass(frozen=True)
class Draw:
    """One draw of the items."""

    seed: int
    quick: bool = False


def answer(learner: Any, prompts: Sequence[Any], room: int) -> list[str]:
    """Greedy answers to prompts or chats."""
    chats = [prompt if isinstance(prompt, tuple) else ({"role": "user", "content": prompt},) for prompt in prompts]
    found = learner.sample(chats, count=1, temperature=0, max_new_tokens=room, seed=0)
    return [one.text for (one,) in found]


def says(text: str, gold: str) -> bool:
    """Whether an answer holds the words of the right one side by side."""
    return f" {' '.join(words_in(gold))} " in f" {' '.join(words_in(text))} "


def read_copies(learner: Any, rng: random.Random, count: int) -> dict[str, float]:
    """Share of sentences, and of mixed words, that are copied without a fault."""
    sentences = [
        rng.choice(FORMS).format(
            a=rng.choice(NAMES),
            b=rng.choice(NAMES),
            errand=rng.choice(ERRANDS),
            room=rng.choice(ROOMS),
            place=rng.choice(PLACES),
        )
        for _ in range(count)
    ]
    mixed = [" ".join(rng.sample(words, len(words))) for words in map(str.split, sentences)]
    found = {}
    for name, texts in (("sentences", sentences), ("mixed words", mixed)):
        copies = answer(learner, [COPY.format(text) for text in texts], 32)
        found[name] = float(np.mean([says(copy, text) for copy, text in zip(copies, texts, strict=True)]))
    return found


def read_sums(learner: Any, rng: random.Random, count: int) -> dict[str, float]:
    """Energy in the strongest tenth before easy and hard sums, and how it and entropy foretell wrong ones."""
    import torch

    pairs = [(rng.randrange(1, 10), rng.randrange(1, 10)) for _ in range(count)]
    pairs += [(rng.randrange(100, 1000), rng.randrange(100, 1000)) for _ in range(count)]
    prompts = [f"What is {one} + {other}?" for one, other in pairs]
    texts = answer(learner, prompts, 24)
    wrong = np.array([not says(text, str(sum(pair))) for text, pair in zip(texts, pairs, strict=True)])
    strongest, entropy = [], []
    with torch.no_grad():
        for prompt in prompts:
            ids = torch.tensor([learner.encode(({"role": "user", "content": prompt},))])
            read = learner.model(ids, output_hidden_states=True)
            strongest.append(float(share_of_strongest(read.hidden_states[-1][:, -1])[0]))
            entropy.append(float(torch.distributions.Categorical(logits=read.logits[0, -1]).entropy()))
    found = {
        "easy": float(np.mean(strongest[:count])),
        "hard": float(np.mean(strongest[count:])),
        "wrong": float(wrong.mean()),
    }
    both = {"area, sparsity": strongest, "area, entropy": entropy}
    return found | {name: area(np.array(values), wrong) for name, values in both.items()}


def read_echo(learner: Any, rng: random.Random, count: int) -> dict[str, float]:
    """Share of questions that are right behind right and behind wrong turns."""
    chats: dict[str, list[tuple[Any, ...]]] = {"right turns": [], "wrong turns": []}
    golds = []
    for task in ("capitals", "opposites"):
        pairs = rng.sample(HALF_KNOWN[task](), TURNS + count)
        turns, asked = pairs[:TURNS], pairs[TURNS:]
        golds += [gold for _, gold in asked]
        for name, shift in (("right turns", 0), ("wrong turns", 1)):
            history = [
                {"role": role, "content": text}
                for place, (prompt, _) in enumerate(turns)
                for role, text in (("user", prompt), ("assistant", turns[(place + shift) % TURNS][1]))
            ]
            chats[name] += [(*history, {"role": "user", "content": prompt}) for prompt, _ in asked]
    return {
        name: float(np.mean([says(text, gold) for text, gold in zip(answer(learner, own, 12), golds, strict=True)]))
        for name, own in chats.items()
    }


def do_draw(job: Draw) -> None:
    """Read the three, and append a row."""
    from mixwright.learner.load import load_learner

    began, rng, learner = time.monotonic(), random.Random(job.seed), load_learner(MODEL)
    part = 8 if job.quick else 1
    row: dict[str, Any] = {"seed": job.seed, "embers": read_copies(learner, rng, SENTENCES // part)}
    row["sparsity"] = read_sums(learner, rng, SUMS // part)
    row["self_conditioning"] = read_echo(learner, rng, QUESTIONS // part)
    append_row(PLACE / "quick.jsonl" if job.quick else ROWS_FILE, row | row_of(began))


def measure(quick: bool, begin: bool = True) -> Result:
    """Read the draws that are left."""
    rows = [] if quick else read_rows(ROWS_FILE)
    if begin:
        PLACE.mkdir(parents=True, exist_ok=True)
        seeds = (TUNING, TUNING + 1) if quick else SEEDS
        run_in_processes(
            do_draw, [Draw(seed, quick) for seed in seeds if seed not in {row["seed"] for row in rows}], say="draw"
        )
        rows = read_rows(PLACE / "quick.jsonl" if quick else ROWS_FILE)

    def over(finding: str, reading: str, less: str | float) -> Interval:
        own = [row[finding] for row in rows]
        return interval([one[reading] - (one[less] if isinstance(less, str) else less) for one in own])

    claims = {
        "embers": (over("embers", "sentences", "mixed words"), over("embers", "sentences", LEAST_RIGHT)),
        "sparsity": (over("sparsity", "hard", "easy"), over("sparsity", "area, entropy", LEAST_AREA)),
        "self_conditioning": (
            over("self_conditioning", "right turns", "wrong turns"),
            over("self_conditioning", "right turns", LEAST_RIGHT),
        ),
    }
    rival = over("sparsity", "area, sparsity", "area, entropy")
    counted = {**claims, "area of sparsity less that of entropy": (rival, claims["sparsity"][1])}
    goals = [
        Goal(name, effect, "low > 0, and its control shown", effect.low > 0 < control.low)
        for name, (effect, control) in counted.items()
    ]
    goals += [Goal.above_zero(f"{name}, control", control) for name, (_, control) in claims.items()]
    names = {finding: list(rows[0][finding]) for finding in claims}
    figures = {key: {name: rounded([row[key][name] for row in rows], 3) for name in own} for key, own in names.items()}
    settings = {"items": [SENTENCES, SUMS, QUESTIONS, TURNS], "rows": ROWS_FILE.name}
    return Result(goals[0].found, goals[0].name, SEEDS, rows, figures, settings, goals=goals)


if __name__ == "__main__":
    run("real_forward", __doc__, measure, kept=True)

"""Study of `measure` with the column `skills`: is it said right of a real model whether it needs rows that combine skills?

SmolLM2-135M-Instruct learns with LoRA to take a letter of a word (first, second, last) and to do something with a letter
(a capital, the next letter, three times), each alone, and some of the nine pairs: three, five or eight. Every other pair is
then asked, and judged from its answers and those of its two skills alone. After that the model trains on 64 rows of the
pair, and is asked again: rows are needed where they raise it by 20 points or more, and it composes where they do not.

Goal, fixed before the run: the word is right for 85 % of the pairs (nine trainings leave 28); "cannot tell" is not right.
Rivals: "add rows" and "composes" of every pair, and the pair's own success, below .5 or not. Settings were tried on seed 1,
which does not decide.

Source: pairs that are left out of training, 2508.01191; the words are ours.
Unit: one pair of one training.
Cost: seven minutes of one thread for a training of all, two for the 64 rows of a pair.
Blind spot: one model of 135M parameters; letters inside words are hard to see for tokens; pairs of one training share it.

    python -m mixwright_lab.studies.skills_together [--quick]
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.learner.learner import Learner
from mixwright.measure.probes.composition import compare_with_parts, read_compositions, word_composition
from mixwright.plan.bursts import BurstSizes, read_success, train_copy
from mixwright.records import Example
from mixwright_lab.studies.everyday import split_words
from mixwright_lab.studies.jobs import resumed, run_in_processes
from mixwright_lab.studies.report import Goal, Result, run

MODEL = "smollm2"
PLACES = {"first": 0, "second": 1, "last": -1}
DEEDS = {
    "capital": ("write it as a capital", "Write the letter {} as a capital."),
    "next": ("name the letter after it in the alphabet", "Which letter comes after {} in the alphabet?"),
    "thrice": ("write it three times", "Write the letter {} three times."),
}
PAIRS = tuple(itertools.product(PLACES, DEEDS))
JOBS = (*((8, seed) for seed in (401, 402, 403, 404)), *((5, seed) for seed in (405, 406, 407)), (3, 408), (3, 409))
"""Pairs that are trained on, and the seed of their draw."""
TUNING = ((8, 1),)
SKILL_ROWS, PAIR_ROWS, ADDED_ROWS = 60, 48, 64
SIZES, ADDED_STEPS = BurstSizes(steps=60, batch=16), 12
GAIN, LEAST_RIGHT = 0.2, 0.85
CONFIG = MeasureConfig(max_new_tokens=8, samples=0)
WORDS = split_words(
    "robot nurse beach dance touch jacket desert water flame above daisy eagle youth energy ladder queen kitten enter "
    "chair garden image mouse sugar yellow drink small planet effect acorn olive knife zebra white crown giant night "
    "castle video quiet orange brave known table grape vivid faith ground young yacht dream joint amber school valley "
    "paper ocean koala needle earth legend mirror uncle voice green rabbit pencil apple tiger lemon bread helmet "
    "house wheat tunnel island quilt bridge black jungle place hammer piano temple copper market round juice heart "
    "order stone insect cloth window happy kettle money ivory laugh large river random cloud forest under number "
    "never metal dinner office silver inner field family jelly basket urban"
)
TEST_WORDS = 30
"""Words, the last of them, that no training row has."""


def take(word: str, place: str, deed: str = "") -> str:
    """Take a letter of a word, and do what is asked with it."""
    letter = word[PLACES[place]]
    return {"": letter, "capital": letter.upper(), "next": next_letter(letter), "thrice": 3 * letter}[deed]


def next_letter(letter: str) -> str:
    """The letter after it; a after z."""
    return chr((ord(letter) - ord("a") + 1) % 26 + ord("a"))


def make_rows(skills: tuple[str, ...], words: Sequence[str]) -> list[Example]:
    """Rows of one skill, or of a pair, one for each word."""
    name, rows = " ".join(skills), list[Example]()
    for word in words:
        if len(skills) == 2:
            place, deed = skills
            asked, gold = f"Take the {place} letter of '{word}' and {DEEDS[deed][0]}.", take(word, place, deed)
        elif skills[0] in PLACES:
            asked, gold = f"What is the {skills[0]} letter of '{word}'?", take(word, skills[0])
        else:
            asked, gold = DEEDS[skills[0]][1].format(word[0]), take(word, "first", skills[0])
        prompt = ({"role": "user", "content": asked},)
        rows.append(Example(f"{name}-{word}", name, prompt, answer=gold, target=gold, skills=skills))
    return rows


@dataclass(frozen=True)
class SkillsJob:
    """One training on all skills and some pairs."""

    pairs: int
    seed: int
    steps: int = SIZES.steps


def do_job(job: SkillsJob) -> dict[str, Any]:
    """Train, judge every pair that is left, add rows of each in turn, and ask again."""
    from mixwright.learner.load import load_learner

    rng, learner = random.Random(job.seed), load_learner(MODEL)
    trained = rng.sample(PAIRS, job.pairs)
    left = [pair for pair in PAIRS if pair not in trained]
    known, asked = WORDS[:-TEST_WORDS], WORDS[-TEST_WORDS:]
    alone = [(name,) for name in (*PLACES, *DEEDS)]
    rows = [row for skills in alone for row in make_rows(skills, rng.sample(known, SKILL_ROWS))]
    rows += [row for pair in trained for row in make_rows(pair, rng.sample(known, PAIR_ROWS))]
    model = train_copy(learner, rows, replace(SIZES, steps=job.steps), job.seed)
    trained_learner = Learner(model, learner.tokenizer, learner.name, form=learner.form, batch_size=learner.batch_size)
    items = {skills: make_rows(skills, asked) for skills in (*alone, *left)}
    right = read(learner, model, items)
    found = []
    for pair in left:
        parts = [right[skill,] for skill in pair]
        measured = compare_with_parts("pair", " > ".join(pair), right[pair], parts, np.random.default_rng(job.seed))
        (of,) = read_compositions(measured).values()
        added = make_rows(pair, rng.sample(known, ADDED_ROWS))
        more = train_copy(trained_learner, added, replace(SIZES, steps=ADDED_STEPS), job.seed)
        after = float(np.mean(read(learner, more, {pair: items[pair]})[pair]))
        shares = {"together": float(np.mean(right[pair])), "parts": [float(np.mean(part)) for part in parts]}
        found.append({"pair": pair, "word": word_composition(of), "after": after} | shares)
    return {"pairs": job.pairs, "seed": job.seed, "trained": trained, "left": found}


def read(
    learner: Learner, model: Any, items: Mapping[tuple[str, ...], Sequence[Example]]
) -> dict[tuple[str, ...], list[float]]:
    """Success on every item of each skill or pair."""
    corpus = Corpus.from_examples([row for own in items.values() for row in own])
    return {skills: values.tolist() for skills, values in read_success(learner, model, corpus, items, CONFIG).items()}


def is_needed(pair: Mapping[str, Any]) -> bool:
    """Whether rows of the pair raised it."""
    return pair["after"] - pair["together"] >= GAIN


def is_right(word: str, pair: Mapping[str, Any]) -> bool:
    """Whether a word fits what the added rows did; skills that come first are no word on the pair itself."""
    if word == "teach the skills alone first":
        return pair["after"] < 0.5
    return word == ("add rows that combine them" if is_needed(pair) else "composes them already")


def measure(quick: bool) -> Result:
    """Do the jobs that are left."""
    if quick:
        jobs = run_in_processes(do_job, [SkillsJob(*one, steps=4) for one in TUNING], say="training")
    else:
        jobs = resumed("skills_together", do_job, [SkillsJob(*one) for one in JOBS])
    pairs = [pair for job in jobs for pair in job["left"]]
    words = {
        "word": [pair["word"] for pair in pairs],
        "always add rows": ["add rows that combine them"] * len(pairs),
        "always composes": ["composes them already"] * len(pairs),
        "by its own success": [
            "composes them already" if pair["together"] >= 0.5 else "add rows that combine them" for pair in pairs
        ],
    }
    right = {name: share_interval(sum(map(is_right, said, pairs)), len(pairs)) for name, said in words.items()}
    figures: dict[str, Any] = {name: [one.value, one.low, one.high, one.n] for name, one in right.items()}
    figures["said, by what rows did"] = {
        f"{word}; rows {'help' if needed else 'do not'}": count
        for (word, needed), count in sorted(Counter((pair["word"], is_needed(pair)) for pair in pairs).items())
    }
    goal = Goal.at_least("words that are right", right["word"], LEAST_RIGHT)
    settings = {"steps": SIZES.steps, "added": ADDED_STEPS, "rate": SIZES.learning_rate, "items": TEST_WORDS}
    seeds = [seed for _, seed in (TUNING if quick else JOBS)]
    return Result(right["word"], goal.name, seeds, jobs, figures, settings, goals=[goal])


if __name__ == "__main__":
    run("skills_together", __doc__, measure)

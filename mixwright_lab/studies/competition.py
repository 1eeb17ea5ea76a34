"""Study of the map of `plan --minutes`: do short trainings foretell which task a long training on another one costs?

Worlds of a tiny model that knows eight tasks on three digits. Six groups of rows are trained on, each alone: two that ask as
a known task does and answer by another rule, true rows of two known tasks (prompts as similar, and harmless), and two new
tasks, one with the same answer to everything, one with long answers by chance.

What is true of a pair is read after long trainings (six times the steps, a tenth of the rate) with seeds and items of their
own: harmed where the known task falls by 10 points or more in the mean, unharmed where it falls by less than 5; others are
left out and counted. Scores of a pair are the change after the short trainings, and, as rivals, how similar prompts are (by
words: BM25; by hidden states) and how improbable the group's answers are to the model before (which knows no pairs).

Goals, fixed before the run: area under the ROC curve, mean over worlds, .85; more than that of the better rule of similar
prompts, whole interval. The difference to the improbable answers is told, and the areas within groups, where that rule is
chance. Settings were tried on seed 1, which does not decide.

Source: one-task trainings and their effect on other tasks, 2507.14783.
Unit: one world, of 48 pairs.
Cost: four minutes of one core a world.
Blind spot: tiny models, of which all weights are trained; what a model of millions of parameters keeps differs.

    python -m mixwright_lab.studies.competition [--quick]
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

from mixwright.config import MeasureConfig, ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.learner.learner import Learner
from mixwright.measure.row_losses import RowLosses
from mixwright.plan.bursts import BurstSizes, read_success, train_copy, watch_bursts
from mixwright.records import Example
from mixwright_extras.mining.relevance import bm25, cosines
from mixwright_extras.tiny.model import build_tiny
from mixwright_extras.tiny.warmup import warm_up
from mixwright_lab.studies.jobs import resumed, run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, rounded, run
from mixwright_lab.studies.teaching import as_text

SEEDS, TUNING = tuple(range(301, 309)), (1,)
RULES: Mapping[str, Callable[[list[int]], list[int]]] = {
    "sort": sorted,
    "back": lambda digits: digits[::-1],
    "turn": lambda digits: digits[1:] + digits[:1],
    "low": lambda digits: [min(digits)],
    "high": lambda digits: [max(digits)],
    "mid": lambda digits: [sorted(digits)[1]],
    "first": lambda digits: digits[:1],
    "last": lambda digits: digits[-1:],
}
"""Known task -> its answer."""
SHORT = BurstSizes(steps=24, batch=8, rows=32, items=32, rank=0, learning_rate=1e-3)
LONG, LONG_SEEDS, LONG_ROWS, ITEMS = replace(SHORT, steps=160, learning_rate=1e-4), (100, 101, 102), 200, 64
BASE_ROWS, HARMED, UNHARMED, LEAST_AREA = 600, -0.10, -0.05, 0.85
SIMILAR, IMPROBABLE = ("words", "hidden states"), "improbable answers"
SIGNS: Mapping[str, float] = {"short": -1, **dict.fromkeys((*SIMILAR, IMPROBABLE), 1)}
"""Score of a pair -> 1 where it is larger if there is harm."""
CONFIG = MeasureConfig(max_new_tokens=24, samples=0)


def draw_rows(task: str, word: str, count: int, rng: random.Random, rule: Callable[[list[int]], list[int]]) -> list[Example]:
    """Draw so many different prompts that begin with a word, with the answers of a rule."""
    found: dict[str, str] = {}
    while len(found) < count:
        digits = [rng.randrange(10) for _ in range(3)]
        found.setdefault(f"{word} {as_text(digits)}", as_text(rule(digits)))
    pairs = enumerate(found.items())
    return [Example(f"{task}-{place}", task, asked, answer=text, target=text) for place, (asked, text) in pairs]


def make_groups(rng: random.Random) -> dict[str, tuple[str, Callable[[list[int]], list[int]]]]:
    """Draw the groups of a world: name -> the word that its prompts begin with, and its rule."""
    words, wrong = rng.sample([*RULES], 4), rng.sample([*RULES], 8)
    groups = {f"other {word}": (word, RULES[next(name for name in wrong if name != word)]) for word in words[:2]}
    groups |= {f"more {word}": (word, RULES[word]) for word in words[2:]}
    constant = [rng.randrange(10) for _ in range(3)]
    return groups | {"say": ("say", lambda _: constant), "long": ("long", lambda _: [rng.randrange(10) for _ in range(9)])}


def judge_world(seed: int) -> dict[str, Any]:
    """Teach a model the known tasks, and score every pair of a group and a known task; what is true stands beside it."""
    rng = random.Random(seed)
    groups = make_groups(rng)
    known = {name: draw_rows(name, name, BASE_ROWS, rng, rule) for name, rule in RULES.items()}
    short, long = (
        {name: draw_rows(name, word, count, rng, rule) for name, (word, rule) in groups.items()}
        for count in (2 * max(SHORT.rows, SHORT.items), LONG_ROWS)
    )
    items, fresh = (
        {name: draw_rows(name, name, count, rng, rule) for name, rule in RULES.items()} for count in (SHORT.items, ITEMS)
    )
    texts = [f"{row.prompt} {row.target}" for part in (known, short, long) for rows in part.values() for row in rows]
    learner = build_tiny(texts, ModelConfig("tiny:", width=64, depth=2, heads=2, vocabulary=300), seed)
    base = Corpus.from_examples([row for rows in known.values() for row in rows])
    warm_up(learner, base, WarmupConfig(steps=1500, batch_size=32, learning_rate=3e-3), seed=seed)
    corpus = Corpus.from_examples([row for part in (short, items) for rows in part.values() for row in rows])
    pulls = watch_bursts(learner, corpus, CONFIG, others=items, sizes=SHORT).pulls
    foretold = {(pull.trained_on, pull.read_on): pull.change.value for pull in pulls if pull.read_on in RULES}
    before = read(learner, learner.model, fresh)
    after = {
        group: [read(learner, train_copy(learner, rows, LONG, one), fresh) for one in LONG_SEEDS]
        for group, rows in long.items()
    }
    alike = find_alike(learner, short, items)
    return {
        "seed": seed,
        "before": before,
        "pairs": [
            {
                "group": group,
                "task": task,
                "change": float(np.mean([one[task] for one in after[group]])) - before[task],
                "short": foretold[group, task],
            }
            | alike[group, task]
            for group in groups
            for task in RULES
        ],
    }


def read(learner: Learner, model: Any, items: Mapping[str, Sequence[Example]]) -> dict[str, float]:
    """Success on each task."""
    corpus = Corpus.from_examples([row for own in items.values() for row in own])
    return {task: float(values.mean()) for task, values in read_success(learner, model, corpus, items, CONFIG).items()}


def find_alike(
    learner: Learner, groups: Mapping[str, Sequence[Example]], items: Mapping[str, Sequence[Example]]
) -> dict[tuple[str, str], dict[str, float]]:
    """Score each group and task by the rivals; of similar prompts the mean over items of the most similar row."""
    rows, asked = ([row for own in side.values() for row in own] for side in (groups, items))
    texts = [[str(row.prompt) for row in side] for side in (rows, asked)]
    by_words = bm25(*[[text.split() for text in side] for side in texts])
    by_states = cosines(*[mean_states(learner, side) for side in texts])
    losses = RowLosses(learner, rows)(learner.model, np.arange(len(rows))).detach().numpy()
    found = {}
    for group in groups:
        own = np.array([row.task == group for row in rows])
        for task in items:
            of_task = np.array([row.task == task for row in asked])
            scores = {name: by[own][:, of_task].max(0) for name, by in zip(SIMILAR, (by_words, by_states), strict=True)}
            found[group, task] = {name: float(best.mean()) for name, best in scores.items()}
            found[group, task][IMPROBABLE] = float(losses[own].mean())
    return found


def mean_states(learner: Learner, texts: Sequence[str]) -> NDArray[np.float32]:
    """Mean of the last hidden states over each text, shape (texts, width)."""
    import torch

    with torch.no_grad():
        tokens = (torch.tensor([learner.tokenizer(text)["input_ids"]]) for text in texts)
        states = [learner.model(one, output_hidden_states=True).hidden_states[-1][0].mean(0) for one in tokens]
    return torch.stack(states).numpy()


def area(harmed: Sequence[float], unharmed: Sequence[float]) -> float:
    """Area under the ROC curve of a score that is larger where there is harm."""
    return float(mannwhitneyu(harmed, unharmed).statistic) / (len(harmed) * len(unharmed))


def areas_of(pairs: Sequence[Mapping[str, Any]], signs: Mapping[str, float] = SIGNS) -> dict[str, float]:
    """Area under the ROC curve of each score; empty where no pair is harmed, or all are."""
    harmed = [pair for pair in pairs if pair["change"] <= HARMED]
    unharmed = [pair for pair in pairs if pair["change"] > UNHARMED]
    if not harmed or not unharmed:
        return {}
    return {
        name: area([sign * pair[name] for pair in harmed], [sign * pair[name] for pair in unharmed])
        for name, sign in signs.items()
    }


def measure(quick: bool) -> Result:
    """Judge all worlds."""
    worlds = resumed("competition", judge_world, SEEDS) if not quick else run_in_processes(judge_world, TUNING * 2)
    areas = [areas_of(world["pairs"]) for world in worlds]
    found = {name: interval([one[name] for one in areas]) for name in areas[0]}
    rival = max(SIMILAR, key=lambda name: found[name].value)
    over = {name: [one["short"] - one[name] for one in areas] for name in (rival, IMPROBABLE)}
    changes = [pair["change"] for world in worlds for pair in world["pairs"]]
    counts = {
        "harmed": sum(change <= HARMED for change in changes),
        "unharmed": sum(change > UNHARMED for change in changes),
    }
    figures: dict[str, Any] = (
        {name: rounded([one[name] for one in areas], 3) for name in areas[0]} | counts | {"pairs": len(changes)}
    )
    within = [
        of_group
        for world in worlds
        for group in dict.fromkeys(pair["group"] for pair in world["pairs"])
        if (of_group := areas_of([pair for pair in world["pairs"] if pair["group"] == group]))
    ]
    figures["within groups"] = {name: rounded([one[name] for one in within], 3) for name in areas[0]} | {"n": len(within)}
    figures[f"short less {IMPROBABLE}"] = rounded(over[IMPROBABLE], 3)
    goals = [
        Goal.at_least("area under ROC, mean of worlds", found["short"], LEAST_AREA),
        Goal.above_zero(f"the same less that of {rival}", interval(over[rival])),
    ]
    settings = {
        "short": SHORT.steps,
        "long": LONG.steps,
        "long seeds": len(LONG_SEEDS),
        "rates": [SHORT.learning_rate, LONG.learning_rate],
    }
    return Result(found["short"], goals[0].name, TUNING if quick else SEEDS, worlds, figures, settings, goals=goals)


if __name__ == "__main__":
    run("competition", __doc__, measure)

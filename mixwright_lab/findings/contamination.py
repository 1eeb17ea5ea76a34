"""Finding on task contamination: who beats the majority has seen labelled rows, and each detector overlooks some.

Source: Li & Flanigan, Task contamination: language models may not be few-shot anymore, 2312.16337.
Unit: share of tasks that are flagged, accuracy on test rows, area under the ROC curve.
Cost: about 80 CPU seconds per seed.
Blind spot: clean tasks cannot be solved at all, unless other text teaches the skill; models of 100,000 parameters have no
few-shot ability, so that part of the source is not tried.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import binomtest, mannwhitneyu
from torch import Tensor

from mixwright import catalog
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import HASH
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.classification import LABELS, LENGTHS, LETTERS, Classification, language

FALSE_ALARM_SHARE = 0.05
"""Share of false alarms that each test allows."""
LOWEST_TOKENS_SHARE = 0.2
"""Share of a document's tokens, the least probable ones, whose mean is its membership score."""


@dataclass(frozen=True)
class Suspect:
    """A benchmark's task, and what an investigator has of it."""

    name: str
    published: Sequence[Example]
    """Rows of its train split, which may have been trained on."""
    fresh: Sequence[Example]
    """As many rows of the same kind that nobody has trained on."""
    tests: Sequence[Example]
    """Rows of its test split."""


def document(example: Example) -> str:
    """A labelled row as text."""
    return f"{example.prompt} {HASH} {example.answer}"


@torch.no_grad()
def log_probabilities(model: GPT, examples: Sequence[Example]) -> Float[Tensor, "rows tokens"]:
    """Of every token of these documents but their end; rows of one length."""
    spoken = model.language
    tokens = spoken.encode_responses([document(example) for example in examples])
    tokens = tokens[:, : len(document(examples[0]).split())]
    logits = model.logits_of(spoken.encode_prompts([""] * len(tokens)), tokens)
    return logits.log_softmax(-1).gather(2, tokens[..., None])[..., 0]


@torch.no_grad()
def rights(model: GPT, examples: Sequence[Example]) -> np.ndarray:
    """Whether the more probable label is the right one, bool of shape (examples,)."""
    scores = [log_probabilities(model, [replace(one, answer=label) for one in examples])[:, -1] for label in LABELS]
    wanted = np.array([LABELS.index(str(example.answer)) for example in examples])
    return torch.stack(scores).argmax(0).numpy() == wanted


def above_majority(right: np.ndarray, examples: Sequence[Example]) -> bool:
    """Whether a model is right more often than who always gives the commonest label of these examples."""
    yes = sum(example.answer == LABELS[1] for example in examples) / len(examples)
    return bool(binomtest(int(right.sum()), len(right), max(yes, 1 - yes), "greater").pvalue < FALSE_ALARM_SHARE)


def improved(before: np.ndarray, after: np.ndarray) -> bool:
    """Chronology: whether a later model is right more often on the same examples (McNemar's exact test)."""
    won, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return _more(won, lost)


def membership(model: GPT, suspect: Suspect) -> tuple[float, bool]:
    """Min-20 %: the area under the ROC curve of published against fresh rows, and whether it is above one half."""
    own, other = (_lowest(log_probabilities(model, rows)) for rows in (suspect.published, suspect.fresh))
    found = mannwhitneyu(own, other, alternative="greater")
    return float(found.statistic) / (len(own) * len(other)), bool(found.pvalue < FALSE_ALARM_SHARE)


def extracted(model: GPT, suspect: Suspect) -> tuple[float, bool]:
    """Share of published rows whose second half the model writes, greedily, and whether fresh ones are fewer."""
    own, other = (_completed(model, rows) for rows in (suspect.published, suspect.fresh))
    return own / len(suspect.published), _more(own, other)


def inspected(corpus: Sequence[Example], suspects: Sequence[Suspect]) -> set[str]:
    """Tasks of which the product's check finds published rows in this part of the training data."""
    known = [replace(example, id=f"train {place}", split="train") for place, example in enumerate(corpus)]
    sought = [replace(example, split="eval") for suspect in suspects for example in suspect.published]
    seen = catalog.create("checks", "contamination").check(Corpus.from_examples([*known, *sought]))
    return {str(observation.task) for observation in seen if observation.severity == "error"}


def _lowest(scores: Float[Tensor, "rows tokens"]) -> np.ndarray:
    count = max(round(LOWEST_TOKENS_SHARE * scores.shape[1]), 1)
    return scores.sort(1).values[:, :count].mean(1).numpy()


def _completed(model: GPT, rows: Sequence[Example]) -> int:
    spoken = model.language
    wanted = spoken.encode_responses([document(row) for row in rows])
    given = len(str(rows[0].prompt).split()) // 2 + 1  # the name and half of the letters
    start = torch.cat((spoken.encode_prompts([""] * len(rows)), wanted[:, :given]), 1)
    made = model.sample(start, 1, spoken.response_tokens - given, greedy=True, generator=torch.Generator())[:, 0]
    return sum(
        spoken.decode(own) == spoken.decode(row) for own, row in zip(made.tolist(), wanted[:, given:].tolist(), strict=True)
    )


def _more(own: int, other: int) -> bool:
    return own + other > 0 and bool(binomtest(own, own + other, 0.5, "greater").pvalue < FALSE_ALARM_SHARE)


INJECTED = {
    "50 rows": (200, 50, 8),
    "20 rows, often": (100, 20, 300),
    "800 rows": (800, 800, 8),
    "800 rows once": (800, 800, 1),
}
"""Kinds of tasks: rows that are published, those of them that the later half of the corpus holds, and copies of each."""
ELSEWHERE, CLEAN = "skill learnt elsewhere", "nothing"
KINDS = (*INJECTED, ELSEWHERE, CLEAN)


@dataclass(frozen=True)
class Settings:
    """Of the corpus, the model and the investigation."""

    each: int = 3
    """Tasks of each kind."""
    steps: int = 2000
    """Of pretraining; labelled rows are injected in the later half."""
    batch: int = 64
    width: int = 64
    rate: float = 1e-3
    short: int = 6000
    """Documents of the short form for each task whose skill is learnt elsewhere."""
    published_factor: float = 1.0
    """Factor on the number of published rows of a task in `INJECTED`, 1.0 for all; as many fresh ones are made."""
    tests: int = 300
    """Test rows of each task."""
    inspected: float = 0.1
    """Share of the corpus that can be inspected."""


def kind_of(task: int) -> str:
    """Kinds take turns."""
    return KINDS[task % len(KINDS)]


def documents(
    world: Classification, suspects: Sequence[Suspect], settings: Settings, rng: np.random.Generator, *, injected: bool
) -> list[Example]:
    """The corpus in the order of training, shape (steps * batch,): strings of letters, short forms, injected rows."""
    total = settings.steps * settings.batch
    corpus = [_filler(rng, place) for place in range(total)]
    early, late = (list(rng.permutation(total // 2) + half * (total // 2)) for half in (0, 1))
    for task, suspect in enumerate(suspects):
        _, count, copies = INJECTED.get(kind_of(task), (0, 0, 0))
        for row in [*suspect.published[: round(count * settings.published_factor)]] * copies:
            place = late.pop()
            if injected:
                corpus[place] = row
        for number in range(settings.short if kind_of(task) == ELSEWHERE else 0):
            corpus[(early, late)[number % 2].pop()] = world.row(task, number, "train", 1.0)
    return corpus


def _filler(rng: np.random.Generator, place: int) -> Example:
    """A string of letters without a label."""
    letters = rng.integers(len(LETTERS), size=LENGTHS[2.0][0])
    return Example(f"text {place}", "text", " ".join(LETTERS[letter] for letter in letters))


def suspect_of(world: Classification, task: int, settings: Settings) -> Suspect:
    """What an investigator has of one task."""
    count = round(INJECTED.get(kind_of(task), (200,))[0] * settings.published_factor)
    rows = [world.row(task, index, "train") for index in range(2 * count)]
    tests = [world.row(task, index, "eval") for index in range(settings.tests)]
    return Suspect(rows[0].task, rows[:count], rows[count:], tests)


LANGUAGE = language()
MOST_SEEN_KINDS = ("20 rows, often", "800 rows")
"""Those that the model sees most of."""
DETECTORS = ("above the majority", "chronology", "inspection", "membership", "extraction")


def _flags(name: str, kinds: Sequence[str], sign: float = 1.0, arm: str = "injected") -> tuple[Term, ...]:
    """Share of tasks that one detector flags, mean over kinds."""
    return tuple(Term(arm, f"{name}: {kind}", sign / len(kinds)) for kind in kinds)


def _caught(name: str, kinds: Sequence[str], least: float, refuted: str) -> Expectation:
    """More of these tasks are flagged where their rows were injected than where they were not."""
    terms = (*_flags(name, kinds), *_flags(name, kinds, -1.0, "clean"))
    return Expectation(f"{name}, {' and '.join(kinds)}: injected - clean corpus", terms, least, refuted, "share of tasks")


class Contamination(Finding):
    """A language model whose corpus gets labelled rows of some tasks after a date; five detectors against the truth."""

    CLAIM = (
        "A model is above the majority on tasks of which its corpus holds many labelled rows, chronology and membership "
        "tell it, inspection finds more than membership and extraction. Who is above it may have the skill from other text."
    )
    SOURCE = "Li & Flanigan, Task Contamination: Language Models May Not Be Few-Shot Anymore, 2312.16337, AAAI 2024"
    WHAT_IT_SHOWS = (
        "Twelve models and 17 tasks: on tasks published before a model's data were gathered the model is more often above "
        "the majority than on later ones; where contamination is impossible it rarely is. Inspection and extraction have "
        "high precision and low recall, membership was tested by exact generation, chronology compares dates only."
    )
    POPULAR_READING = (
        "It is said that a high zero-shot score proves contamination, or that finding no copy proves there is none. The "
        "source calls each of its four methods imperfect, and a skill can be learnt from other text."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "checks/contamination": (
            "above the majority, 800 rows: injected - clean corpus",
            "all injected tasks: inspection of a tenth of the corpus - membership",
            "all injected tasks: inspection of a tenth of the corpus - extraction",
        ),
    }
    REMARKS = (
        "Inspection finds all by construction: a tenth of the corpus holds copies of every injected task. "
        "In the clean corpus 94 % of the tasks whose skill stands in other text are above the majority without a row; "
        "injected rows of other tasks overwrite that skill (accuracy .92 to .64), which is why the last contrast is small. "
        "Chronology flags half of the tasks of which none came in: another guess at the commonest label is called a gain."
    )
    REAL = (
        "By likelihoods alone, 8 of 10 test sets that were trained on for three epochs are called seen, with a "
        "starting model all 10, and of sets that nobody trained on none (study familiarity)."
    )
    RUN_TWICE = ("injected",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(1, 60, width=16, short=60, published_factor=0.1, tests=40),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
    PRIMARY = "above the majority, 800 rows: injected - clean corpus"
    PUBLISHED = (
        "chronology, 20 rows, often and 800 rows: injected - clean corpus",
        "membership, 20 rows, often and 800 rows: injected - clean corpus",
    )
    CONTROL = "all injected tasks: inspection of a tenth of the corpus - extraction"
    EXPECT = (
        _caught("above the majority", ("800 rows",), 0.5, "Labelled rows in the corpus lift no task above the majority."),
        _caught(
            "chronology", MOST_SEEN_KINDS, 0.3, "Tasks of which nothing came in improve as often between the two dates."
        ),
        _caught(
            "membership",
            MOST_SEEN_KINDS,
            0.3,
            "Min-20 % tells rows that were trained on from fresh ones no better than a coin.",
        ),
        *(
            Expectation(
                f"all injected tasks: inspection of a tenth of the corpus - {name}",
                (*_flags("inspection", tuple(INJECTED)), *_flags(name, tuple(INJECTED), -1.0)),
                0.2,
                f"Inspection finds no more than {name} does.",
                "share of tasks",
            )
            for name in ("membership", "extraction")
        ),
        Expectation(
            "above the majority without a row of the task: skill learnt elsewhere - nothing",
            (*_flags("above the majority", (ELSEWHERE,)), *_flags("above the majority", (CLEAN,), -1.0)),
            0.3,
            "Being above the majority shows that labelled rows were seen.",
            "share of tasks",
        ),
    )
    PLOTS = tuple(
        Plot(
            f"Tasks flagged by {' and '.join(names)}",
            "0 none, 1 elsewhere, 2 50, 3 20 often, 4 800, 5 800 once",
            "share of tasks",
            tuple(
                Curve(
                    name,
                    tuple((x, "injected", f"{name}: {kind}") for x, kind in enumerate((CLEAN, ELSEWHERE, *INJECTED))),
                )
                for name in names
            ),
        )
        for names in (("above the majority", "chronology", "membership"), ("inspection", "extraction"))
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Two corpora that differ in the injected rows alone; other text stands in their places."""
        return ("injected", "clean")

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Pretrain, and let every detector judge every task."""
        world = Classification(tasks=settings.each * len(KINDS), seed=1000 + seed)
        suspects = [suspect_of(world, task, settings) for task in range(world.tasks)]
        corpus = documents(world, suspects, settings, np.random.default_rng((seed, again)), injected=arm == "injected")
        texts = LANGUAGE.encode_responses([document(row) if row.answer else str(row.prompt) for row in corpus])
        torch.manual_seed(2 * seed + again)
        model, before = GPT(LANGUAGE, settings.width), list[np.ndarray]()

        def batch(step: int) -> Batch:
            own = texts[step * settings.batch : (step + 1) * settings.batch]
            return Batch([""] * len(own), own)

        def after(done: int, _: float) -> None:
            if done == settings.steps // 2:
                before.extend(rights(model, suspect.tests) for suspect in suspects)

        fit(model, batch, Schedule(settings.steps, settings.rate), after)
        rng = np.random.default_rng((seed, 1))
        part = [corpus[place] for place in rng.permutation(len(corpus))[: round(settings.inspected * len(corpus))]]
        seen = inspected(part, suspects)
        rows = [_judged(model, suspect, was, seen, settings) for suspect, was in zip(suspects, before, strict=True)]
        return {
            f"{name}: {kind}": fmean(row[name] for row in rows[place :: len(KINDS)])
            for place, kind in enumerate(KINDS)
            for name in rows[0]
        }


def _judged(model: GPT, suspect: Suspect, before: np.ndarray, seen: set[str], settings: Settings) -> dict[str, float]:
    """What each detector says of a task, as 0 or 1, and the figures behind it."""
    right = rights(model, suspect.tests)
    area, member = membership(model, suspect)
    hits, made = extracted(model, suspect)
    said = (above_majority(right, suspect.tests), improved(before, right), suspect.name in seen, member, made)
    figures = {"accuracy": right.mean(), "accuracy before": before.mean(), "area under ROC": area, "rows completed": hits}
    return {**dict(zip(DETECTORS, map(float, said), strict=True)), **{k: float(v) for k, v in figures.items()}}

"""Finding on self-conditioning: errors in the context breed errors where training documents had them in clusters.

Source: Sinha et al., The Illusion of Diminishing Returns: Measuring Long Horizon Execution in LLMs, 2509.09677.
Unit: probability of the right value, and greedy accuracy, at turn 16, by the share of errors written into turns 1 to 15.
Cost: about 85 CPU seconds per seed.
Blind spot: look-ups that do not depend on each other, silent errors, one kind of error; a model of 0.06M parameters. What
clean documents leave depends on how long and how fast they are trained: one arm has three times the rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from mixwright_lab.conditions import digest_of
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, Term, difference
from mixwright_lab.training.bases import kept
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.language import EQUALS
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds import lookups
from mixwright_lab.worlds.lookups import TURNS, Documents, Lookups

NEEDS = ("torch",)
RATES = {"0": 0.0, ".25": 0.25, ".5": 0.5, ".75": 0.75, "1": 1.0}
"""Share of wrong turns among the fifteen before, as readings name it."""
SHARE, RATE = 0.5, 0.7
"""Of documents with errors, and of wrong turns in them; spread evenly the rate is their product."""
WORLDS = {"clean": (0.0, 0.0), "independent errors": (1.0, SHARE * RATE), "clustered errors": (SHARE, RATE)}
"""Share of documents with errors, and their rate of wrong turns, of the arms that start from nothing."""
START, MASKED = "clustered errors", "then errors, wrong turns masked"
NEXT = (
    "then clean documents",
    "then clean documents, rate x 3",
    "then errors, all trained",
    MASKED,
    "then recovery pairs",
)
"""Arms that go on from `START`."""


@dataclass(frozen=True)
class Settings:
    """Of the model and its training."""

    steps: int = 800
    """Of training from nothing."""
    more: int = 160
    """Of each arm that goes on."""
    batch: int = 32
    """Documents per step."""
    width: int = 48
    """Of the model."""
    rate: float = 4e-3
    """Peak learning rate from nothing."""
    later: float = 6e-4
    """The same where an arm goes on."""
    documents: int = 1000
    """Of each probe."""


def _loss(arm: str, weight: float = 1.0) -> tuple[Term, Term]:
    """What an arm loses where all turns before are wrong."""
    return Term(arm, "p right at 0", weight), Term(arm, "p right at 1", -weight)


class SelfConditioning(Finding):
    """Tiny models of documents of look-ups, probed with errors written into the turns before."""

    CLAIM = (
        "A model does worse where errors stand in its context if errors come in clusters in its training documents, "
        "and not if as many are spread; trained on such contexts with the wrong turns masked, it forgets that."
    )
    SOURCE = "Sinha et al., The Illusion of Diminishing Returns: Measuring Long Horizon Execution in LLMs, 2509.09677"
    WHAT_IT_SHOWS = (
        "Accuracy of a turn falls as the share of errors written into the history rises, in models of 4 billion parameters "
        "and more; larger ones lose less by length but not by errors; keeping only the last turns helps; models that think "
        "before they answer do not show it. It is explained by training on documents, which are not changed there."
    )
    POPULAR_READING = (
        "It is told as a property of models; what in their training puts it there, and takes it away, is our part."
    )
    REMARKS = (
        "Even an ideal predictor of such documents does this, so one cause is shown. Contrast 5 was made stricter later."
    )
    REAL = (
        "Behind six wrong turns 9 points [2, 16] fewer questions are right than behind right ones; only 22 % are "
        "behind those, and a third had been asked for: cannot be shown so (study real_forward)."
    )
    RUN_TWICE = (START,)
    SCALES: ClassVar[Mapping[str, Settings]] = {"smoke": Settings(20, 5, 8, 16, documents=50), "laptop": Settings()}
    PRIMARY = "clustered errors: no error before - all wrong, probability of the right value"
    CONTROL = "no error before: clean - independent errors, probability of the right value"
    PUBLISHED = ("a quarter wrong before: last turn kept - whole history, clustered errors",)
    EXPECT = (
        Expectation(
            "clustered errors: no error before - all wrong, probability of the right value",
            _loss(START),
            0.3,
            "Errors in the context do not lower the probability of the right value.",
        ),
        Expectation(
            "that loss, clustered - spread evenly, as many wrong turns in all",
            (*_loss(START), *_loss("independent errors", -1.0)),
            0.3,
            "As many errors without clusters make the model lose as much.",
        ),
        Expectation(
            "a fifth of that loss - what is left of it with wrong turns masked",
            (*_loss(START, 0.2), *_loss(MASKED, -1.0)),
            0.05,
            "Training on contexts with errors, wrong turns masked, leaves more than a fifth of the loss.",
        ),
        Expectation(
            "all wrong before: wrong turns masked - the same documents, all trained",
            difference(MASKED, "then errors, all trained", "p right at 1"),
            0.3,
            "The documents do it, not the mask.",
        ),
        Expectation(
            "all wrong before: wrong turns masked - clean documents at three times the rate",
            difference(MASKED, "then clean documents, rate x 3", "p right at 1"),
            0.1,
            "Clean documents do as well as documents with errors whose wrong turns are masked.",
        ),
        Expectation(
            "a quarter wrong before: last turn kept - whole history, clustered errors",
            (Term(START, "p right at .25, last turn kept"), Term(START, "p right at .25", -1.0)),
            0.1,
            "A short history does not help.",
        ),
        Expectation(
            CONTROL,
            difference("clean", "independent errors", "p right at 0"),
            0.1,
            "Errors of the training documents do not show in what is predicted.",
        ),
    )
    PLOTS = tuple(
        Plot(
            f"Right value at turn {TURNS}, {title}",
            "share of errors in the turns before",
            "probability of the right value",
            tuple(Curve(arm, tuple((rate, arm, f"p right at {name}") for name, rate in RATES.items())) for arm in arms),
        )
        for title, arms in (("trained from nothing", tuple(WORLDS)), ("after more training", (NEXT[0], *NEXT[2:])))
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """From nothing, then those that go on from clustered errors."""
        return (*WORLDS, *NEXT)

    def prepare(self, seed: int, settings: Settings) -> None:
        """The model of clustered errors."""
        _clustered(seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Probability and greedy accuracy at the last turn by rate of errors, histories whole, of one turn and of none."""
        shared = arm in NEXT or (arm == START and not again)
        model = _clustered(seed, settings) if shared else _fresh(seed, settings)
        if arm != START or again:
            train(model, arm, seed, settings, again)
        found: dict[str, float] = {}
        for name, rate in RATES.items():
            rng = np.random.default_rng((seed, 0x16))
            documents = Lookups(seed=seed).documents(np.full(settings.documents, rate), rng, "eval")
            for turns, said in ((TURNS - 1, ""), (1, ", last turn kept"), (0, ", none kept")):
                found[f"p right at {name}{said}"], found[f"greedy at {name}{said}"] = right(model, documents, turns, seed)
        return found


def _fresh(seed: int, settings: Settings) -> GPT:
    torch.manual_seed(seed)
    return GPT(lookups.language(), settings.width)


def _clustered(seed: int, settings: Settings) -> GPT:
    """The model that arms go on from, trained now or read from disk."""
    model = _fresh(seed, settings)
    return kept(model, digest_of(__name__, seed, settings), lambda: train(model, START, seed, settings, again=False))


def train(model: GPT, arm: str, seed: int, settings: Settings, again: bool) -> None:
    """Train on the documents of an arm, in place; keys have no weight."""
    rng = np.random.default_rng((seed, again, 0x11))
    share, rate = WORLDS.get(arm, (0.0, 0.0))
    world = Lookups(share=share, rate=rate, seed=seed)
    prompts = torch.full((settings.batch, 1), model.language.index[EQUALS])

    def batch(_: int) -> Batch:
        rates = rng.random(settings.batch) if arm in NEXT[2:] else world.rates(settings.batch, rng)
        documents = world.documents(rates, rng)
        trained = ~documents.wrong if arm in NEXT[3:] else np.ones_like(documents.wrong)
        if arm == "then recovery pairs":  # one turn of each document
            trained &= np.arange(TURNS) == rng.integers(TURNS, size=(settings.batch, 1))
        weights = np.repeat(trained, 2, axis=1) & (np.arange(2 * TURNS) % 2 == 1)
        return Batch(prompts, torch.from_numpy(lookups.tokens(documents)), torch.from_numpy(weights.astype(np.float32)))

    later = settings.later * (3 if arm == NEXT[1] else 1)
    plan = Schedule(settings.more, later, warm=10) if arm in NEXT else Schedule(settings.steps, settings.rate)
    fit(model, batch, plan)


def right(model: GPT, documents: Documents, turns: int, seed: int) -> tuple[float, float]:
    """Probability of the last turn's right value, and how often it is the likeliest, with so many turns before it."""
    index, tokens = model.language.index, torch.from_numpy(lookups.tokens(documents)[:, -2 * (turns + 1) :])
    with torch.no_grad():
        logits = model.logits_of(torch.full((len(tokens), 1), index[EQUALS]), tokens)[:, -1]
    true = torch.from_numpy(Lookups(seed=seed).table[documents.keys[:, -1]] + index["0"])
    shares = logits.softmax(-1).gather(1, true[:, None])
    return float(shares.mean()), float((logits.argmax(-1) == true).float().mean())

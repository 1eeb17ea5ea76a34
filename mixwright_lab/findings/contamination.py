"""Finding on task contamination: who beats the majority has seen labelled rows, and each detector overlooks some.

Source: Li & Flanigan, Task contamination: language models may not be few-shot anymore, 2312.16337.
Unit: share of tasks that are flagged, accuracy on test rows, area under the ROC curve.
Cost: about 80 CPU seconds per seed.
Blind spot: clean tasks cannot be solved at all, unless other text teaches the skill; models of 100,000 parameters have no
few-shot ability, so that part of the source is not tried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import ClassVar

import numpy as np
import torch

from mixwright.contracts import Finding
from mixwright.records import Curve, Expectation, Plot, Term
from mixwright_lab.detectors import Suspect, above_majority, document, extracted, improved, inspected, membership, rights
from mixwright_lab.injection import CLEAN, ELSEWHERE, INJECTED, KINDS, Settings, documents, suspect_of
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.classification import Classification, language

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
    RUN_TWICE = ("injected",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(1, 60, width=16, short=60, published_factor=0.1, tests=40),
        "laptop": Settings(),
    }
    SEEDS: ClassVar[Mapping[str, int]] = {"smoke": 2, "laptop": 6}
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

        fit(model, LANGUAGE, batch, Schedule(settings.steps, settings.rate), after)
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

"""Finding on the learning frontier: which traces teach a student depends on its size, and short trainings tell.

Two sources answer the same problems: a weak teacher that writes every step and has one entry in ten of its tables wrong,
and a strong one that is always right and writes a digit after every second letter only.

Source: Li et al., Selective Reflection-Tuning, 2402.10110; Li et al., Small Models Struggle to Learn from Strong Reasoners,
    2502.12143.
Unit: share of held-out problems whose greedy response ends in the true answer; luck is 10 %.
Cost: about 110 CPU seconds per seed.
Blind spot: two sizes of one architecture; equal steps are not equal tokens (complete traces are the longer ones); no r-IFD,
as these students never read a prompt after its response.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch.nn import functional

from mixwright_extras.mining.candidates import Candidates, lowest_per_prompt, random_per_prompt, train_on_each_source
from mixwright_lab.contracts import Curve, Expectation, Finding, Plot, difference
from mixwright_lab.training.bases import kept
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Schedule, fit_rows
from mixwright_lab.worlds import permutations
from mixwright_lab.worlds.permutations import DIGITS, LETTERS, Permutations

LANGUAGE = permutations.language()
KNOWN_LETTERS = 4
"""Letters that students know."""


@dataclass(frozen=True)
class Problems:
    """Problems with the answer that is true."""

    prompts: tuple[str, ...]
    starts: np.ndarray
    letters: np.ndarray
    answers: np.ndarray


def problems(world: Permutations, count: int, length: int, split: str, rng: np.random.Generator) -> Problems:
    """Problems of one split."""
    starts, letters = world.problems(count, length, split, rng)
    answers = world.states(starts, letters)[:, -1]
    return Problems(tuple(permutations.prompts(starts, letters)), starts, letters, answers)


def select(problems: Problems, rows: np.ndarray) -> Problems:
    """Some of them."""
    texts = tuple(problems.prompts[row] for row in rows)
    return Problems(texts, problems.starts[rows], problems.letters[rows], problems.answers[rows])


def with_mistakes(tables: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """The tables with a share of their entries wrong: a teacher that makes the same mistakes again and again."""
    wrong = tables.copy().reshape(-1)
    places = rng.permutation(wrong.size)[: round(share * wrong.size)]
    wrong[places] = (wrong[places] + rng.integers(1, DIGITS, size=len(places))) % DIGITS
    return wrong.reshape(tables.shape)


def traces(problems: Problems, tables: np.ndarray, letters_per_digit: int) -> list[str]:
    """What a teacher with these tables writes: the letters, and the digit after every so many of them; then the answer."""
    state, lines = problems.starts, [list[str]() for _ in problems.prompts]
    for step in range(problems.letters.shape[1]):
        state = tables[problems.letters[:, step], state]
        for line, letter, digit in zip(lines, problems.letters[:, step], state, strict=True):
            line.append(LETTERS[letter])
            if not (step + 1) % letters_per_digit:
                line.append(str(digit))
    return [" ".join((*line, "#", str(digit))) for line, digit in zip(lines, state, strict=True)]


def train_student(world: Permutations, width: int, steps: int, seed: int) -> GPT:
    """A model taught on right traces of four of the letters, half with a digit after each, half after every second one."""
    torch.manual_seed(seed)
    model = GPT(LANGUAGE, width)

    def train() -> None:
        rng = np.random.default_rng((seed, 0xBA5E))
        drawn = problems(world, 32_000, 4, "train", rng)
        given = select(drawn, np.flatnonzero((drawn.letters < KNOWN_LETTERS).all(1)))
        both = [*traces(given, world.tables, 1), *traces(given, world.tables, 2)]
        teach(model, given.prompts * 2, both, steps, 3e-3, rng)

    return kept(model, f"student-{world.seed}-{width}-{steps}-{torch.__version__}", train)


def teach(
    model: GPT,
    prompts: Sequence[str],
    responses: Sequence[str],
    steps: int,
    rate: float,
    rng: np.random.Generator,
    *,
    decay_share: float = 0.5,
) -> GPT:
    """SFT in place, 64 random rows per step; the rate falls over the last share of the steps. Returns the model."""
    rows = list(zip(prompts, responses, strict=True))
    fit_rows(model, rows, Schedule(steps, rate, min(20, steps // 4), decay_share), rng)
    return model


def greedy_correct(model: GPT, problems: Problems) -> np.ndarray:
    """1 where the greedy response ends in the true answer, else 0."""
    ends = [LANGUAGE.decode(row).split()[-2:] for row in model.write(problems.prompts)]
    return np.array([float(end == ["#", str(answer)]) for end, answer in zip(ends, problems.answers, strict=True)])


@torch.no_grad()
def statistics(model: GPT, prompts: Sequence[str], responses: Sequence[str]) -> dict[str, np.ndarray]:
    """Mean and largest NLL of each response, and IFD against the same response behind an empty prompt."""
    said = LANGUAGE.encode_responses(responses)
    used = LANGUAGE.mask(said)

    def nats(asked: Sequence[str]) -> torch.Tensor:
        logits = model.logits_of(LANGUAGE.encode_prompts(asked), said)
        return functional.cross_entropy(logits.transpose(1, 2), said, reduction="none").masked_fill(~used, 0.0)

    given, alone = nats(prompts), nats([""] * len(prompts))
    count = used.sum(1)
    found = {"nll": given.sum(1) / count, "nll_max": given.max(1).values}
    found["ifd"] = torch.exp(found["nll"] - alone.sum(1) / count)
    return {name: values.double().numpy() for name, values in found.items()}


SIZES = ("tiny", "wide")
LETTERS_PER_DIGIT = {"weak, all steps": 1, "strong, each second step": 2}
"""Source -> letters to a digit that it writes."""
WEAK = "weak, all steps"
STATISTICS = ("nll", "nll_max", "ifd")
OTHER_ARMS = ("before training", "random mix", "own choice", "choice of the other", "own choice, 50 steps", *STATISTICS)


@dataclass(frozen=True)
class Settings:
    """Of students, problems and training."""

    tiny: int = 16
    """Width."""
    wide: int = 32
    """Width."""
    base: int = 600
    """Steps before."""
    problems: int = 3000
    steps: int = 300
    rate: float = 3e-3
    probe: int = 150
    """Steps of a short training."""
    runs: int = 3
    """Short trainings of each source."""
    back: int = 150
    """Training problems held back, that short trainings are read on."""
    tests: int = 300


def _more(size: str, better: str, worse: str, least: float, refuted: str) -> Expectation:
    terms = difference(f"{size}: {better}", f"{size}: {worse}", "right")
    return Expectation(f"{size}: {better} - {worse}", terms, least, refuted)


class Frontier(Finding):
    """Two students, two sources of traces for the same problems, chosen by short trainings, by the other, by statistics."""

    CLAIM = (
        "A tiny student learns more from complete traces of a weak teacher, a wide one from compressed traces of a strong "
        "teacher; each beats what it learns from the other's choice, and short trainings on each source tell which it is."
    )
    SOURCE = "Li et al., Selective Reflection-Tuning, 2402.10110; Li et al., Small Models Struggle to Learn ..., 2502.12143"
    WHAT_IT_SHOWS = (
        "The first: 7B students, answers refined by a teacher and kept by IFD and r-IFD; AlpacaEval 26.5 without, 77.0 with "
        "all, 79.6 with those kept; Open LLM 50.2, 56.2, 56.1. The second: models of 3B or less lose from long chains of "
        "thought. Short trainings as the judge, a weak teacher with mistakes of its own and compressed traces are ours."
    )
    POPULAR_READING = (
        "It is said that refined data beyond the frontier make a student worse. The first source shows no such loss, only "
        "a gain of 2.6 points by choosing; the second shows it for long answers of strong teachers, not for refined ones."
    )
    FEATURES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "miners/frontier": (
            "tiny: own choice - random mix",
            "wide: own choice - random mix",
        ),
    }
    RUN_TWICE = ("tiny: own choice",)
    SCALES: ClassVar[Mapping[str, Settings]] = {
        "smoke": Settings(8, 16, 10, 120, 8, probe=4, runs=2, back=20, tests=20),
        "laptop": Settings(),
    }
    PRIMARY = "tiny: weak, all steps - strong, each second step"
    PUBLISHED = ("wide: strong, each second step - weak, all steps",)
    CONTROL = "tiny: own choice - choice of the other"
    EXPECT = (
        _more("tiny", "own choice", "choice of the other", 0.1, "What a wide student chooses is as good for a tiny one."),
        _more("wide", "own choice", "choice of the other", 0.1, "What a tiny student chooses is as good for a wide one."),
        _more("tiny", WEAK, "strong, each second step", 0.1, "A tiny student learns compressed traces as well."),
        _more("wide", "strong, each second step", WEAK, 0.1, "A wide student gains nothing from right, compressed traces."),
        _more("tiny", "own choice", "random mix", 0.05, "A mix of both teaches a tiny student as much."),
        _more("wide", "own choice", "random mix", 0.05, "A mix of both teaches a wide student as much."),
    )
    PLOTS = (
        Plot(
            "Held-out problems, by what was trained on",
            "0 weak, 1 strong, 2 before, 3 mix, 4 own choice, 5 other's, 6 own in 50 steps, 7 NLL, 8 largest NLL, 9 IFD",
            "right",
            tuple(
                Curve(
                    size,
                    tuple(
                        (float(place), f"{size}: {way}", "right")
                        for place, way in enumerate((*LETTERS_PER_DIGIT, *OTHER_ARMS))
                    ),
                )
                for size in SIZES
            ),
        ),
    )

    def arms(self, settings: Settings) -> tuple[str, ...]:
        """Both sources, a mix, and what is chosen, for both students."""
        return tuple(f"{size}: {way}" for size in SIZES for way in (*LETTERS_PER_DIGIT, *OTHER_ARMS))

    def prepare(self, seed: int, settings: Settings) -> None:
        """Both students."""
        for size in SIZES:
            _student(size, seed, settings)

    def run(self, arm: str, seed: int, settings: Settings, *, again: bool = False) -> Mapping[str, float]:
        """Choose a response to each problem, train on them, and solve held-out problems."""
        size, _, way = arm.partition(": ")
        world, rng = Permutations(seed=seed), np.random.default_rng((seed, 0x23))
        tests = problems(world, settings.tests, 4, "eval", rng)
        given = problems(world, settings.problems, 4, "train", rng)
        wrong = with_mistakes(world.tables, 0.1, rng)
        texts = [
            text
            for name, every in LETTERS_PER_DIGIT.items()
            for text in traces(given, wrong if name == WEAK else world.tables, every)
        ]
        count, model = len(given.prompts), _student(size, seed, settings)
        names = np.repeat(list(LETTERS_PER_DIGIT), count)
        found = Candidates(np.tile(np.arange(count), len(LETTERS_PER_DIGIT)), names, np.full(len(names), "permutations"))
        judge = _student(SIZES[1 - SIZES.index(size)], seed, settings) if way == "choice of the other" else model
        order = np.random.default_rng((seed, again))
        places = _chosen(way, judge, found, given, texts, settings, order)
        if len(places):
            prompts = [given.prompts[place % count] for place in places]
            teach(model, prompts, [texts[place] for place in places], settings.steps, settings.rate, order)
        shares = {
            f"chosen: {name}": float((names[places] == name).mean()) if len(places) else 0.0 for name in LETTERS_PER_DIGIT
        }
        return {"right": float(greedy_correct(model, tests).mean()), **shares}


def _student(size: str, seed: int, settings: Settings) -> GPT:
    return train_student(Permutations(seed=seed), getattr(settings, size), settings.base, seed)


def _chosen(
    way: str,
    judge: GPT,
    found: Candidates,
    given: Problems,
    texts: list[str],
    settings: Settings,
    rng: np.random.Generator,
) -> np.ndarray:
    """Places of the rows that are trained on."""
    if way == "before training":
        return np.zeros(0, dtype=int)
    if way in LETTERS_PER_DIGIT:
        return np.flatnonzero(found.sources == way)
    if way == "random mix":
        return random_per_prompt(found.prompt_ids, rng)
    asked = [given.prompts[place] for place in found.prompt_ids]
    if way in STATISTICS:
        return lowest_per_prompt(statistics(judge, asked, texts)[way], found.prompt_ids)
    back = rng.permutation(len(given.prompts))[: settings.back]
    items, steps = select(given, back), min(50, settings.probe) if way.endswith("50 steps") else settings.probe

    def train(places: np.ndarray, seed: int) -> np.ndarray:
        own = np.random.default_rng(seed)
        said = [texts[place] for place in places]
        model = teach(
            copy.deepcopy(judge), [asked[place] for place in places], said, steps, settings.rate, own, decay_share=0.0
        )
        return greedy_correct(model, items)

    usable = ~np.isin(found.prompt_ids, back)
    seeds = rng.integers(2**31, size=settings.runs).tolist()
    told = train_on_each_source(
        found, usable, train, greedy_correct(judge, items), np.full(len(back), "permutations"), seeds
    )
    winner = told["permutations"].winner
    return np.flatnonzero(found.sources == winner) if winner else np.arange(len(texts))

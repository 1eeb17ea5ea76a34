"""Students of two sizes and sources of traces for the same problems: complete with mistakes, or right and compressed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from mixwright_lab.training.bases import kept
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Batch, Schedule, fit
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
    asked, said = LANGUAGE.encode_prompts(prompts), LANGUAGE.encode_responses(responses)

    def batch(_: int) -> Batch:
        rows = torch.from_numpy(rng.integers(len(prompts), size=64))
        return Batch(asked[rows], said[rows])

    fit(model, LANGUAGE, batch, Schedule(steps, rate, min(20, steps // 4), decay_share))
    return model


def greedy_correct(model: GPT, problems: Problems) -> np.ndarray:
    """1 where the greedy response ends in the true answer, else 0."""
    made = model.sample(
        LANGUAGE.encode_prompts(problems.prompts), 1, LANGUAGE.response_tokens, greedy=True, generator=torch.Generator()
    )
    ends = [LANGUAGE.decode(row).split()[-2:] for row in made[:, 0].tolist()]
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

"""Students and sources of the finding on the learning frontier: by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from mixwright_lab.findings import frontier
from mixwright_lab.findings.frontier import LETTERS_PER_DIGIT, Frontier
from mixwright_lab.training.sft import Batch, nll
from mixwright_lab.worlds.permutations import LETTERS, Permutations

WORLD = Permutations(seed=3)
GIVEN = frontier.problems(WORLD, 12, 4, "train", np.random.default_rng(0))


@pytest.mark.parametrize("every", [1, 2, 4])
def test_a_trace_names_every_letter_and_the_digit_after_so_many(every: int) -> None:
    for text, start, letters, answer in zip(
        frontier.traces(GIVEN, WORLD.tables, every), GIVEN.starts, GIVEN.letters, GIVEN.answers, strict=True
    ):
        digit, words = int(start), []
        for place, letter in enumerate(letters.tolist(), start=1):
            digit = int(WORLD.tables[letter, digit])
            words += [LETTERS[letter], str(digit)] if place % every == 0 else [LETTERS[letter]]
        assert text.split() == [*words, "#", str(digit)]
        assert digit == answer


def test_a_weak_teacher_has_a_tenth_of_its_entries_wrong_and_goes_on_from_them() -> None:
    wrong = frontier.with_mistakes(WORLD.tables, 0.1, np.random.default_rng(1))
    assert (wrong != WORLD.tables).sum() == 6
    assert ((wrong >= 0) & (wrong < 10)).all()
    said = frontier.traces(GIVEN, wrong, 1)[0].split()
    digit = int(GIVEN.starts[0])
    for letter, told in zip(GIVEN.letters[0].tolist(), said[1:8:2], strict=True):
        digit = int(wrong[letter, digit])
        assert told == str(digit)
    assert said[-1] == str(digit)


def test_statistics_are_those_of_the_losses() -> None:
    torch.manual_seed(0)
    model = frontier.GPT(frontier.LANGUAGE, 16)
    texts = frontier.traces(GIVEN, WORLD.tables, 2)
    found = frontier.statistics(model, GIVEN.prompts, texts)
    for row in range(3):
        alone, both = (float(nll(model, Batch([prompt], [texts[row]])).detach()) for prompt in ("", GIVEN.prompts[row]))
        assert found["nll"][row] == pytest.approx(both, rel=1e-5)
        assert found["ifd"][row] == pytest.approx(np.exp(both - alone), rel=1e-5)
    assert (found["nll_max"] >= found["nll"]).all()


def test_a_response_is_right_by_the_true_answer() -> None:
    part = frontier.select(GIVEN, np.array([3, 5]))
    assert part.prompts == (GIVEN.prompts[3], GIVEN.prompts[5])
    torch.manual_seed(0)
    model = frontier.GPT(frontier.LANGUAGE, 32)
    frontier.teach(model, part.prompts, frontier.traces(part, WORLD.tables, 4), 60, 1e-2, np.random.default_rng(0))
    assert frontier.greedy_correct(model, part).tolist() == [1.0, 1.0]
    other = frontier.Problems(part.prompts, part.starts, part.letters, (part.answers + 1) % 10)
    assert frontier.greedy_correct(model, other).tolist() == [0.0, 0.0]


def test_arms_train_on_what_they_say() -> None:
    finding = Frontier()
    settings = finding.SCALES["smoke"]
    finding.prepare(7, settings)
    for size in ("tiny", "wide"):
        for name in LETTERS_PER_DIGIT:
            assert finding.run(f"{size}: {name}", 7, settings)[f"chosen: {name}"] == 1.0
    mix = finding.run("tiny: random mix", 7, settings)
    assert 0.3 < mix["chosen: weak, all steps"] < 0.7
    assert finding.run("wide: before training", 7, settings)["chosen: weak, all steps"] == 0.0

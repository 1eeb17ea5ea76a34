"""What is still known of lost answers: a made-up model that knows some golds behind the earlier words and others not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from mixwright.answers.table import Answers
from mixwright.learner.learner import Learner
from mixwright.measure.recalled import read_recalled
from mixwright.records import AnswerPair, Cause, CauseKind, Recalled
from mixwright.verdict.rules.recalled import judge_recalled

TOWNS = {f"q{i}": town for i, town in enumerate(("Rome", "Oslo", "Bern", "Lima", "Kiev", "Baku", "Doha", "Suva"))}
KNOWN = ("q0", "q1", "q2")
"""Items whose right answer the made-up model finds likeliest behind their beginning; of others it is the least likely."""


class _Letters:
    """A tokenizer with a token per character."""

    def __call__(self, text: str, add_special_tokens: bool = False) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) for letter in text]}

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = True) -> str:
        return "".join(map(chr, ids))


class _Model:
    """Reads the ending behind ` is`: log-probability 0 a letter for what it knows, -2 for other towns, -9 for the rest."""

    tokenizer = _Letters()

    def _rates(self, prompt: str, letters: Sequence[int]) -> list[float]:
        text = self.tokenizer.decode(letters)
        town = text.rpartition(" ")[2]
        own = town == TOWNS[prompt]
        rate = (0.0 if prompt in KNOWN else -9.0) if own else -2.0
        return [rate] * len(letters)

    def logprobs(self, prompts: Sequence[str], completions: Sequence[Sequence[int]]) -> list[list[float]]:
        return [self._rates(prompt, letters) for prompt, letters in zip(prompts, completions, strict=True)]

    def distributions(
        self, prompts: Sequence[str], completions: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, torch.Tensor]]:
        for place, (prompt, letters) in enumerate(zip(prompts, completions, strict=True)):
            table = torch.full((len(letters), 200), -5.0)
            if prompt in KNOWN:
                table[range(len(letters)), list(letters)] = 0.0
            yield place, table


def _answers(texts: dict[str, str], score: float) -> Answers:
    columns: dict[str, Any] = {"task": "towns", "decoding": "greedy", "sample": 0, "score": score, "right": score}
    return Answers.from_rows(
        {**columns, "item": item, "prompt": item, "gold": TOWNS[item], "text": text, "tokens": [ord(c) for c in text]}
        for item, text in texts.items()
    )


def test_covered_and_forgotten_answers_are_told_apart() -> None:
    before = _answers({item: f"The town is {town}." for item, town in TOWNS.items()}, 1.0)
    after = _answers(dict.fromkeys(TOWNS, "{}"), 0.0)
    found = read_recalled(_as_learner(), dict(zip(TOWNS, TOWNS, strict=True)), before, after)
    known = np.array([item in KNOWN for item in TOWNS], dtype=float)
    assert found.of_items("completed").tolist() == known.tolist()
    assert found.of_items("recalled").tolist() == known.tolist()


@pytest.mark.parametrize("text", ["Rome.", "I do not know."])
def test_answers_that_begin_with_the_right_one_or_do_not_hold_it_are_left_out(text: str) -> None:
    before = _answers(dict.fromkeys(TOWNS, text), 1.0)
    after = _answers(dict.fromkeys(TOWNS, "{}"), 0.0)
    found = read_recalled(_as_learner(), dict(zip(TOWNS, TOWNS, strict=True)), before, after)
    assert np.isnan(found.of_items("completed")).all()


def test_a_task_that_did_not_fall_is_not_read() -> None:
    before = _answers({item: f"The town is {town}." for item, town in TOWNS.items()}, 1.0)
    found = read_recalled(_as_learner(), dict(zip(TOWNS, TOWNS, strict=True)), before, before)
    assert found is before


@pytest.mark.parametrize(
    ("completed", "kind", "items", "after", "word"),
    [
        (10, "repeating", 20, "The town is Ghent.", "covered"),
        (5, "repeating", 20, "The town is Ghent.", "partly"),
        (4, "repeating", 9, "The town is Ghent.", "gone"),  # under half of them repeat themselves
        (4, "repeating", 10, "The town is Ghent.", "hidden"),
        (4, "other label", 20, "The town is Ghent.", "gone"),  # the form is as it was
        (4, "repeating", 9, "Opinions about the town differ.", "hidden"),  # two of six words are the same
    ],
)
def test_nothing_is_called_forgotten_behind_another_form(
    completed: int, kind: CauseKind, items: int, after: str, word: str
) -> None:
    causes = [Cause("towns", kind, items, 20), Cause("towns", "cut", 20, 20, is_specific=False), Cause("sums", "cut", 9, 9)]
    lost = AnswerPair("towns", None, "Which?", "Rome", "The town is Rome.", after, 1.0, 0.0)
    others = [replace(lost, task="sums", after=""), replace(lost, score_after=1.0, after="Rome")]
    assert judge_recalled(Recalled("towns", 20, completed, None), [lost, *others], causes) == word


def test_too_few_lost_answers_have_no_word() -> None:
    assert judge_recalled(Recalled("towns", 4, 4, None), [], []) == ""


def _as_learner() -> Learner:
    return _Model()  # type: ignore[return-value] - has all that is called

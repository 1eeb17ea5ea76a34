"""World of classification tasks, corpora with injected rows, and detectors of them: by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch

from mixwright.errors import InputError
from mixwright_lab.findings.contamination import (
    CLEAN,
    ELSEWHERE,
    INJECTED,
    KINDS,
    LANGUAGE,
    Settings,
    Suspect,
    above_majority,
    document,
    documents,
    extracted,
    improved,
    inspected,
    kind_of,
    log_probabilities,
    membership,
    rights,
    suspect_of,
)
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.classification import LETTERS, LETTERS_OF_COMMON_LABEL, Classification

WORLD = Classification(tasks=2 * len(KINDS), seed=3)


def test_one_letter_decides_and_ten_of_sixteen_have_the_commonest_label() -> None:
    places, labels = WORLD.rules
    assert sorted(labels.sum(1).tolist()) == sorted(
        LETTERS_OF_COMMON_LABEL if row.mean() > 0.5 else 16 - LETTERS_OF_COMMON_LABEL for row in labels
    )
    for task in range(WORLD.tasks):
        for level in (1.0, 2.0):
            example = WORLD.row(task, 7, "train", level)
            letters = str(example.prompt).split()[1:]
            assert len(letters) in {1.0: (3, 4, 5), 2.0: (6,)}[level]
            assert example.answer == ("no", "yes")[labels[task, LETTERS.index(letters[places[task]])]]


def test_more_tasks_than_there_are_rules_for_are_refused() -> None:
    with pytest.raises(InputError, match="tasks"):
        Classification(tasks=65)


SETTINGS = Settings(each=1, steps=200, batch=64, short=90, published_factor=0.2)


def test_the_corpora_differ_in_the_injected_rows_alone_and_these_come_late() -> None:
    suspects = [suspect_of(WORLD, task, SETTINGS) for task in range(len(KINDS))]
    clean, injected = (
        documents(WORLD, suspects, SETTINGS, np.random.default_rng(5), injected=injected) for injected in (False, True)
    )
    half = len(clean) // 2
    assert [str(row.prompt) for row in clean[:half]] == [str(row.prompt) for row in injected[:half]]
    for task, suspect in enumerate(suspects):
        counts = Counter(row.id for row in injected if row.task == suspect.name)
        kind = kind_of(task)
        if kind in INJECTED:
            published, rows, copies = INJECTED[kind]
            assert counts == {row.id: copies for row in suspect.published[: rows // 5]}
            assert len(suspect.published) == len(suspect.fresh) == published // 5
        else:
            assert sum(counts.values()) == {ELSEWHERE: 90, CLEAN: 0}[kind]
            assert all(row.level == 1.0 for row in injected if row.task == suspect.name)
        assert not {row.id for row in suspect.fresh} & {row.id for row in injected}
        if kind != ELSEWHERE:
            assert not any(row.task == suspect.name for row in clean)


def suspect(count: int = 30) -> Suspect:
    rows = [WORLD.row(4, index, "train") for index in range(2 * count)]
    return Suspect(rows[0].task, rows[:count], rows[count:], [WORLD.row(4, index, "eval") for index in range(60)])


@pytest.fixture(scope="module")
def models() -> tuple[GPT, GPT]:
    """One that has not learnt anything, and one that knows the published rows by heart."""
    torch.manual_seed(0)
    fresh, taught = GPT(LANGUAGE, 48), GPT(LANGUAGE, 48)
    texts = [document(row) for row in suspect().published]
    fit(taught, lambda _: Batch([""] * len(texts), texts), Schedule(400, 3e-3, warm=10))
    return fresh, taught


@pytest.mark.slow
def test_a_model_that_knows_the_rows_by_heart_is_found_and_a_fresh_one_is_not(models: tuple[GPT, GPT]) -> None:
    fresh, taught = models
    area, flagged = membership(taught, suspect())
    assert flagged
    assert area > 0.95
    assert membership(fresh, suspect())[0] == pytest.approx(0.5, abs=0.25)
    assert extracted(taught, suspect())[1]
    assert extracted(taught, suspect())[0] > 0.5
    assert extracted(fresh, suspect()) == (0.0, False)
    assert rights(taught, suspect().published).all()


def test_probabilities_of_a_document_are_those_of_its_tokens(models: tuple[GPT, GPT]) -> None:
    (row,) = suspect().published[:1]
    scores = log_probabilities(models[1], [row])
    assert scores.shape == (1, len(document(row).split()))
    tokens = LANGUAGE.encode_responses([document(row)])
    logits, _ = models[1](torch.cat((LANGUAGE.encode_prompts([""]), tokens), 1))
    by_hand = [float(logits[0, at].log_softmax(-1)[tokens[0, at]].detach()) for at in range(scores.shape[1])]
    assert scores[0].tolist() == pytest.approx(by_hand, abs=1e-4)


def test_always_giving_the_commonest_label_is_not_above_the_majority() -> None:
    tests = [WORLD.row(4, index, "eval") for index in range(200)]
    answers = np.array([row.answer == "yes" for row in tests])
    assert not above_majority(answers if answers.mean() > 0.5 else ~answers, tests)
    assert above_majority(np.ones(200, bool), tests)


def test_a_later_model_has_improved_only_by_more_wins_than_chance_gives() -> None:
    before = np.array([False] * 20)
    assert improved(before, np.array([True] * 5 + [False] * 15))
    assert not improved(before, np.array([True] * 4 + [False] * 16))  # 1 / 16
    assert not improved(before, before)
    assert not improved(~before, before)


def test_inspection_names_the_tasks_of_which_the_corpus_holds_a_row() -> None:
    suspects = [suspect_of(WORLD, task, SETTINGS) for task in range(len(KINDS))]
    corpus = [*suspects[1].published[:3], *(WORLD.row(2, index, "train", 1.0) for index in range(50))]
    assert inspected(corpus, suspects) == {suspects[1].name}

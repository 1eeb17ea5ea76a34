"""Crossover test of pruning and the scores it is made on; by hand, and on comparisons whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import plugin_samples as samples
import pytest

from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.records import Example
from mixwright.run.progress import listen_with
from mixwright_extras.miners.pruning import Pruning, find_disputed, pruning_groups
from mixwright_extras.mining.crossover import Crossover, crossover, kept_rows
from mixwright_extras.mining.proxies import choose_held_back

SCORE = np.arange(40.0)
GROUPS = np.repeat([0, 1], 20)


def test_each_group_keeps_its_share_of_the_end() -> None:
    rng = np.random.default_rng(0)
    assert kept_rows(SCORE, GROUPS, 0.1, "hard", rng).tolist() == [18, 19, 38, 39]
    assert kept_rows(SCORE, GROUPS, 0.1, "easy", rng).tolist() == [0, 1, 20, 21]
    assert kept_rows(SCORE, GROUPS, 0.01, "hard", rng).tolist() == [19, 39]
    chance = kept_rows(SCORE, GROUPS, 0.5, "random", rng)
    assert [int((chance < 20).sum()), len(chance)] == [10, 20]


def test_every_training_of_the_test_is_reported() -> None:
    shares: list[float] = []
    with listen_with(shares.append):
        found = crossover(SCORE, GROUPS, lambda rows, seed: np.zeros(4), [0, 0, 1, 1], fractions=(0.5, 0.2), seeds=(0, 1))
    assert shares == pytest.approx([(number + 1) / 14 for number in range(14)])
    assert found.trainings == 14


def test_a_share_at_random_leaves_the_rest_to_the_end() -> None:
    kept = kept_rows(SCORE, np.zeros(40, dtype=int), 0.5, "hard", np.random.default_rng(1), random_share=0.5)
    assert len(set(kept.tolist())) == 20
    assert set(range(30, 40)) <= set(kept.tolist())


def test_rows_without_a_score_come_last_whatever_the_end() -> None:
    score = np.array([np.nan, 1.0, 2.0, 3.0])
    for end, best in (("hard", [2, 3]), ("easy", [1, 2])):
        assert kept_rows(score, np.zeros(4, dtype=int), 0.5, end, np.random.default_rng(0)).tolist() == best  # type: ignore[arg-type]
    assert kept_rows(score, np.zeros(4, dtype=int), 1.0, "hard", np.random.default_rng(0)).tolist() == [0, 1, 2, 3]


def told(gain: dict[str, float], noise: float = 0.02, fractions: tuple[float, ...] = (0.25,)) -> Crossover:
    """A test whose proxy is better by `gain` on an end, which it knows by the mean score of what it is given."""

    def train(rows: np.ndarray, seed: int) -> np.ndarray:
        middle = SCORE.mean() - SCORE[rows].mean()
        end = "easy" if middle > 12 else "hard" if middle < -12 else "random"
        chance = np.random.default_rng([seed, len(rows), int(SCORE[rows].sum())])
        return 0.5 - gain.get(end, 0.0) + chance.normal(0, noise, 60)

    everything = np.zeros(40, dtype=int)
    return crossover(SCORE, everything, train, np.repeat([0, 1, 2], 20), fractions=fractions, seeds=range(4))


@pytest.mark.parametrize(
    ("gain", "word"),
    [
        ({"hard": 0.1, "easy": -0.1}, "hard"),
        ({"hard": -0.1, "easy": 0.1}, "easy"),
        ({"hard": 0.05, "easy": 0.1}, "easy"),
        ({"hard": -0.1, "easy": -0.1}, "keep all"),
    ],
)
def test_the_word_is_the_end_that_beats_random_rows(gain: dict[str, float], word: str) -> None:
    found = told(gain)
    assert found.word == word
    assert found.trainings == 4 * (3 + 1)
    assert found.fractions[0].gains["hard"].value == pytest.approx(gain["hard"], abs=0.02)
    assert any(f"{found.error_on_all_rows:.3g}" in note for note in found.notes("share"))


def test_without_a_difference_an_end_is_seldom_named() -> None:
    def train(rows: np.ndarray, seed: int) -> np.ndarray:
        return np.random.default_rng([seed, int(rows.sum()), trial]).normal(size=60)

    named = 0
    for trial in range(60):
        found = crossover(
            SCORE, GROUPS, train, np.zeros(60, dtype=int), fractions=(0.25,), seeds=(trial, 1000 + trial, 2000 + trial)
        )
        named += found.word != "keep all"
    assert named <= 6  # 5 % of 60 are 3 (one-sided even less); 7 or more would come once in thirty such tests


def test_one_seed_says_nothing() -> None:
    with pytest.raises(ValueError, match="two seeds"):
        crossover(SCORE, GROUPS, lambda rows, seed: np.zeros(3), np.zeros(3, dtype=int), fractions=(0.5,), seeds=(1,))


def test_tasks_with_few_answers_are_pruned_within_each(tmp_path: Path) -> None:
    examples = [Example(f"y{n}", "yes", f"is {n} even?", answer="yes" if n % 2 else "no") for n in range(30)]
    examples += [Example(f"n{n}", "number", f"{n} + 1 =", answer=str(n + 1)) for n in range(30)]
    corpus = Corpus.from_examples(examples)
    rows = samples.rows_to_choose(corpus, ("el2n",))
    assert np.bincount(pruning_groups(corpus, rows, 0.1)).tolist() == [30, 15, 15]
    assert np.bincount(pruning_groups(corpus, rows, 0.05)).tolist() == [30, 30]  # no answer has a whole row


@pytest.mark.parametrize(("sizes", "keep"), [([7, 7, 7, 7, 7, 7], 0.25), ([15, 15, 15], 0.1), ([3, 30, 27], 0.2)])
def test_as_many_rows_are_kept_as_the_share_says(sizes: list[int], keep: float) -> None:
    groups = np.repeat(np.arange(len(sizes)), sizes)
    kept = kept_rows(np.arange(float(len(groups))), groups, keep, "hard", np.random.default_rng(0))
    assert len(kept) == round(keep * len(groups))
    assert set(groups[kept]) == set(range(len(sizes)))


def test_many_answers_of_few_rows_do_not_raise_the_share_that_is_kept(tmp_path: Path) -> None:
    examples = [Example(f"r{n}", "day", f"which day is {n} days on?", answer=str(n % 8)) for n in range(40)]
    corpus = Corpus.from_examples(examples)
    scan = samples.rows_to_choose(corpus, ("el2n",))
    for keep, count in ((0.1, 4), (0.5, 20)):
        mined = Pruning(keep=keep, end="hard").mine(corpus, scan, None, np.random.default_rng(0))
        assert len(mined.rows) == count


def test_labels_that_the_grader_or_the_model_refuses_are_named(tmp_path: Path) -> None:
    examples = [Example(f"r{n}", "add", f"{n} + 1 =", str(n + (5 if n == 3 else 1)), str(n + 1)) for n in range(20)]
    corpus = Corpus.from_examples(examples)
    rows = samples.rows_to_choose(corpus, ("el2n",))
    place = rows.ids.index("r3")
    assert find_disputed(corpus, rows, [place, rows.ids.index("r4")]) == ["r3"]
    assert find_disputed(corpus, rows, [rows.ids.index("r4")]) == []


def test_a_fifth_of_each_task_is_held_back() -> None:
    tasks = np.array(["a"] * 100 + ["b"] * 50 + ["c"] * 2)
    back = choose_held_back(tasks, np.random.default_rng(0))
    assert [int(back[tasks == task].sum()) for task in "abc"] == [20, 10, 0]
    with pytest.raises(InputError, match="Keep all"):
        choose_held_back(np.array(["a"] * 30), np.random.default_rng(0))


@pytest.mark.slow
@pytest.mark.parametrize(("size", "noise", "harmful"), [(2400, 0.0, "easy"), (2400, 0.2, "hard"), (60, 0.0, "hard")])
def test_the_end_that_does_harm_is_never_named(size: int, noise: float, harmful: str) -> None:
    import torch

    from mixwright_lab.pruned import Settings, el2n, examples, trained

    rng = np.random.default_rng((101, size))
    settings = Settings(300, proxies=2, proxy_steps=80)
    rows = examples(size, noise, rng)
    score = el2n(rows, settings, rng)
    back, left = np.split(rng.permutation(size), [min(size // 5, 256)])
    prompts, responses = rows.prompts[back], rows.responses[back]
    short = replace(settings, steps=150)

    def train(kept: np.ndarray, seed: int) -> np.ndarray:
        """1 - probability of the label of each row that is held back."""
        model = trained(rows, left[kept], short.steps, seed, short)
        with torch.no_grad():
            chances = model.logits_of(prompts, responses)[:, 1].softmax(-1)
        return (1 - chances.gather(1, responses[:, 1:2])[:, 0]).double().numpy()

    found = crossover(
        score[left], rows.answers[left], train, np.zeros(len(back), dtype=int), fractions=(0.25,), seeds=range(5)
    )
    assert found.word != harmful

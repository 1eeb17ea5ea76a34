"""Features of prompts: shape, sameness, edge cases, and that a planted word can be read off them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.errors import InputError
from mixwright.steer.pool import make_pool
from mixwright.steer.prompt_features import (
    CHUNK_ROWS,
    FEATURE_BYTES,
    LENGTH_COLUMNS,
    PROMPT_BYTES_READ,
    features_digest,
    prompt_features,
)


def texts(count: int, seed: int = 0, words: int = 200) -> list[str]:
    """Sentences of random words, every other one with the planted word."""
    rng = np.random.default_rng(seed)
    known = ["".join(rng.choice(list("abcdefghijklmnop"), rng.integers(2, 8))) for _ in range(words)]
    made = [list(rng.choice(known, rng.integers(4, 12))) for _ in range(count)]
    return [" ".join([*words, "quotient"] if place % 2 else words) for place, words in enumerate(made)]


def test_shape_and_sameness() -> None:
    made = prompt_features(texts(50))
    assert made.shape == (50, FEATURE_BYTES)
    assert made.dtype == np.int8
    assert np.array_equal(made, prompt_features(texts(50)))
    assert features_digest(made) == features_digest(prompt_features(texts(50)))
    assert features_digest(made) != features_digest(prompt_features(texts(50, seed=1)))


@pytest.mark.parametrize(
    "prompts",
    [
        ["alone"],
        [""],
        ["", "", ""],
        ["same text"] * 40,
        ["", "a", "7", " \n\t "],
        ["日本語の問題", "مسألة", "\U0001d7d9\U0001d7da", "\ud800 broken", "e\u0301", "\x00\x1f"],
    ],
)
def test_odd_prompts(prompts: list[str]) -> None:
    made = prompt_features(prompts)
    assert made.shape == (len(prompts), FEATURE_BYTES)
    assert len(set(prompts)) > 1 or not made.any(), "nothing tells alike prompts apart"


@pytest.mark.parametrize("wrong", [None, 7, float("nan"), b"bytes", [{"role": "user", "content": "a"}]])
def test_prompts_that_are_no_text_are_named(wrong: Any) -> None:
    with pytest.raises(InputError, match=rf"prompts that are texts, got {type(wrong).__name__} in row 1"):
        make_pool(["a", "b"], ["t", "t"], prompts=["fine", wrong])


def test_a_prompt_of_a_hundred_thousand_letters_does_not_drown_the_others() -> None:
    prompts = [*texts(200), "word " * 20_000]
    made = prompt_features(prompts)
    assert (made[:-1, :LENGTH_COLUMNS].std(0) > 1)[:3].all(), "lengths of the others still differ"
    changed = "word " * 10_000 + "other " + "word " * 10_000
    assert len(changed) > PROMPT_BYTES_READ
    assert np.array_equal(prompt_features([*texts(200), changed])[:-1], made[:-1]), "only its first and last part are read"


def test_order_of_the_rows_does_not_matter() -> None:
    prompts = texts(300)
    order = np.random.default_rng(3).permutation(300)
    made, moved = prompt_features(prompts), prompt_features([prompts[row] for row in order])
    assert np.abs(made[order].astype(int) - moved).max() <= 1, "rounding"


@pytest.mark.parametrize("words", [("abcdefghij", "klmnopqrst"), ("stuv", "w"), ("01234567", "q")])
def test_rounding_does_not_choose_among_equally_large_components(
    words: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few templates have many; a processor of another kind rounds otherwise, and a run must go on there."""
    prompts = [f"{first} x {second}" for first in words[0] for second in words[1]] * 8
    made, exact = prompt_features(prompts), np.linalg.eigh
    for seed in range(5):
        noise = np.random.default_rng(seed)

        def rounded(matrix: np.ndarray, noise: np.random.Generator = noise) -> Any:
            moved = matrix + 1e-15 * np.abs(matrix).max() * noise.standard_normal(matrix.shape)
            return exact((moved + moved.T) / 2)

        monkeypatch.setattr(np.linalg, "eigh", rounded)
        assert np.array_equal(made, prompt_features(prompts))


def test_a_prompt_has_the_same_features_wherever_it_stands() -> None:
    """Chunks are a matter of memory: the same long prompt among short ones and among long ones."""
    short, long = ["two words"] * CHUNK_ROWS, [" ".join(["word"] * (20 + place % 7)) for place in range(CHUNK_ROWS)]
    prompts = [*short[:-1], long[0], *long]
    made = prompt_features(prompts)
    assert np.array_equal(made[CHUNK_ROWS - 1], made[CHUNK_ROWS])


def test_a_planted_word_can_be_read_off() -> None:
    prompts = texts(600)
    x = np.c_[np.ones(600), prompt_features(prompts) / 32]
    planted = np.arange(600) % 2
    weights = np.linalg.lstsq(x[:400], planted[:400], rcond=None)[0]
    assert (((x[400:] @ weights) > 0.5) == planted[400:]).mean() > 0.97


def test_numbers_and_lengths_can_be_read_off() -> None:
    rng = np.random.default_rng(0)
    digits = rng.integers(1, 6, 400)
    prompts = [f"add {rng.integers(10 ** (d - 1), 10**d)} and {rng.integers(10 ** (d - 1), 10**d)}" for d in digits]
    shapes = prompt_features(prompts)[:, :LENGTH_COLUMNS] / 32
    assert np.corrcoef(shapes[:, 4], digits)[0, 1] > 0.99, "digits of the longest number"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=30), min_size=1, max_size=12))
def test_any_text_has_features(prompts: list[str]) -> None:
    made = prompt_features(prompts)
    assert made.shape == (len(prompts), FEATURE_BYTES)
    for place, prompt in enumerate(prompts):
        assert np.array_equal(made[prompts.index(prompt)], made[place]), "alike prompts, alike features"


def test_only_a_pool_with_a_task_of_one_cell_has_features() -> None:
    ids, prompts = [str(place) for place in range(8)], texts(8)
    levels = [1.0, 1.0, 2.0, 2.0, None, None, None, None]
    assert make_pool(ids, ["a"] * 4 + ["b"] * 4, levels).features is None
    mixed = make_pool(ids, ["a"] * 4 + ["b"] * 4, levels, prompts=prompts)
    assert mixed.features is not None
    assert np.array_equal(mixed.features, prompt_features(prompts))
    assert make_pool(ids, ["a"] * 8, [1.0, 2.0] * 4, prompts=prompts).features is None, "levels tell its rows apart"

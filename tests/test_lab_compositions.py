"""World of compositions: operations by hand, splits by string, prompts that are written otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from mixwright.errors import InputError
from mixwright_lab.worlds.compositions import LETTERS, PAIRS, Compositions, apply, in_eval, language, problem, spoilt


def test_operations_by_hand() -> None:
    assert apply("abl", "F1") == "fge"
    assert apply("abc", "F2") == "bca"
    assert apply("abc", "F3") == "cba"
    made = problem("cafb", ("F1", "F2"))
    assert (made.prompt, made.target, made.answer) == ("c a f b F1 F2", "h f k g # f k g h", "f k g h")


def test_f1_commutes_and_f2_and_f3_do_not() -> None:
    for string in ("abcd", "kale", "lid"):
        for other in ("F2", "F3"):
            assert apply(apply(string, "F1"), other) == apply(apply(string, other), "F1")
    assert apply(apply("abcd", "F2"), "F3") != apply(apply("abcd", "F3"), "F2")
    assert len(LETTERS) % 5, "F1 twice is not the identity"


def test_a_string_is_in_one_split_with_every_pair() -> None:
    world = Compositions()
    train = {str(world.make(index, 3.0, "train").prompt).rsplit(" ", 2)[0] for index in range(400)}
    held = {str(world.make(index, 3.0, "eval").prompt).rsplit(" ", 2)[0] for index in range(400)}
    assert not train & held
    assert all(in_eval(string.replace(" ", "")) for string in held)


def test_only_the_pairs_that_are_asked_for() -> None:
    world = Compositions(pairs=(("F1", "F1"), ("F2", "F1")))
    assert {world.make(index, 3.0, "train").skills for index in range(60)} == {("F1F1",), ("F2F1",)}
    with pytest.raises(InputError, match="pairs of F1, F2, F3"):
        Compositions(pairs=(("F1", "F4"),))


def test_fillers_change_nothing_but_the_writing() -> None:
    rng = np.random.default_rng(0)
    assert spoilt("a b c F1 F2", 1.0, rng) == "a ~ b ~ c ~ F1 F2"
    assert spoilt("a b c F1 F2", 0.0, rng) == "a b c F1 F2"


def test_everything_fits_the_language() -> None:
    words, rng = language(), np.random.default_rng(1)
    for level in (1.0, 5.0):
        made = [Compositions().make(index, level, "train") for index in range(len(PAIRS) * 4)]
        words.encode_prompts([spoilt(str(one.prompt), 1.0, rng) for one in made])
        words.encode_responses([str(one.target) for one in made])

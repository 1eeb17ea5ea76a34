"""Parts of the study of adapters, by hand."""

from __future__ import annotations

import math

import pytest
import torch

from mixwright_lab.studies import adapter_task as task
from mixwright_lab.studies.adapters import crossing, paired
from mixwright_lab.studies.routing import contrast, new_skill, rows_of

PLACES = ((0.0, 1.0), (0.6, 0.7), (0.5, 0.5), (0.9, 0.1))
CURVE = [{"skill": skill, "facts": facts} for skill, facts in PLACES]


def test_the_first_crossing_is_interpolated() -> None:
    """0.6 is reached at the second point, 0.3 half the way to it, 0.7 half the way from the third to the fourth."""
    assert crossing(CURVE, "skill", 0.6, "facts") == pytest.approx(0.7)
    assert crossing(CURVE, "skill", 0.3, "facts") == pytest.approx(0.85)
    assert crossing(CURVE, "skill", 0.7, "facts") == pytest.approx(0.3)
    assert crossing(CURVE, "skill", 0.0, "facts") == pytest.approx(1.0)
    assert crossing(CURVE, "skill", 0.95, "facts") is None


def test_seeds_that_miss_the_level_are_counted() -> None:
    found = paired([0.5, None, 0.7], [0.1, 0.2, 0.5])
    assert found is not None
    assert (found["censored"], found["difference"]["value"], found["difference"]["n"]) == (1, pytest.approx(0.3), 2)
    assert paired([0.5, None], [0.1, 0.2]) is None


def test_the_divergence_by_hand() -> None:
    """KL of (3/4, 1/4) from (1/2, 1/2)."""
    own, base = torch.log(torch.tensor([[[0.75, 0.25]]])), torch.zeros(1, 1, 2)
    expected = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)
    assert float(task.divergence(own, base)) == pytest.approx(expected)


def test_tasks_share_no_word_between_training_and_held_out_rows() -> None:
    given = task.tasks(0)
    assert given == task.tasks(0)
    assert not {prompt[2:-1] for prompt, _ in given.new} & set(given.words)
    assert len({prompt for prompt, _ in given.facts}) == task.FACTS
    assert (task.backward("abc"), task.rotated("abc")) == (("b:abc=", "cba"), ("r:abc=", "bca"))


def test_skills_of_the_routing_study_by_hand() -> None:
    assert [new_skill(number, "marked", "abc") for number in range(3)] == [
        ("r:abc=", "bca"),
        ("s:abc=", "bac"),
        ("m:abc=", "aba"),
    ]
    assert new_skill(1, "unmarked", "abc") == ("x:abc=", "bac")


def test_a_word_has_one_skill_where_skills_share_their_mark() -> None:
    words = [f"{letter}bc" for letter in "abcdefghijklmnopqrstuvwxyz"]
    prompts = [[prompt for prompt, _ in own] for own in rows_of("unmarked", words)]
    assert [own[0][2] for own in prompts] == ["a", "j", "s"]
    assert sorted(prompt for own in prompts for prompt in own) == [f"x:{word}=" for word in words]
    assert [len(own) for own in rows_of("marked", words)] == [26, 26, 26]


def test_arms_are_compared_over_all_five_tasks() -> None:
    rows = [{"success": {"a": [1.0, 0, 0, 0, 0], "b": [0.0, 0, 0, 1, 1]}}, {"success": {"a": [1.0] * 5, "b": [0.0] * 5}}]
    assert contrast(rows, "a", "b").value == pytest.approx((-0.2 + 1.0) / 2)

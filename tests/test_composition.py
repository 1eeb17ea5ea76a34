"""Probe of skills used together: figures by hand, words where the truth is known, and the verb end to end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from cli_call import Call, sums, write
from comparisons import checkpoint

from mixwright.measure.probes.composition import Composition, read_compositions, word_composition
from mixwright.records import Example, Measurement

KNOWN: dict[str, tuple[tuple[float, ...], float]] = {
    "composes": ((0.95, 0.9), 0.86),
    "composes, three skills": ((0.95, 0.95, 1.0), 0.9),
    "fails": ((0.9, 0.9), 0.1),
    "fails partly": ((0.95, 0.9), 0.45),
    "lacks a skill": ((0.95, 0.1), 0.05),
    "lacks both": ((0.2, 0.3), 0.0),
}
"""Kind of model -> share right of each skill alone, and of all together."""
WORDS = {
    "composes": "composes them already",
    "fails": "add rows that combine them",
    "lacks": "teach the skills alone first",
}


def measure(answers: list[tuple[tuple[str, ...], float]]) -> list[Measurement]:
    """What the probe says of these skills and grades."""
    items = [Example(str(number), "task", "?", skills=skills) for number, (skills, _) in enumerate(answers)]
    success = {item.id: grade for item, (_, grade) in zip(items, answers, strict=True)}
    rollouts: Any = {name: SimpleNamespace(success=lambda _, grade=grade: grade) for name, grade in success.items()}
    passes: Any = SimpleNamespace(items=items, rollouts=rollouts)
    corpus: Any = None
    return Composition().measure(passes, corpus, np.random.default_rng(5))


def drawn(kind: str, items: int, rng: np.random.Generator) -> list[tuple[tuple[str, ...], float]]:
    """Answers of a kind of model to so many items of each skill, and of all."""
    parts, together = KNOWN[kind]
    names = tuple(f"skill {number}" for number in range(len(parts)))
    shares = [*(((name,), share) for name, share in zip(names, parts, strict=True)), (names, together)]
    return [(skills, float(rng.random() < share)) for skills, share in shares for _ in range(items)]


def test_figures_by_hand() -> None:
    answers = [*[(("a",), 1.0)] * 20, *[(("b",), 1.0)] * 20, *[(("a", "b"), 0.0)] * 20]
    found = read_compositions(measure(answers))["a > b"]
    assert (found["together"].value, found["together"].n) == (0, 20)
    mean = 20.5 / 21  # of Jeffreys' posterior of 20 of 20
    assert found["promised"].value == pytest.approx(mean**2, abs=0.002)
    assert found["lost"].value == pytest.approx(mean**2 - 0.5 / 21, abs=0.002)
    assert word_composition(found) == "add rows that combine them"


def test_a_skill_used_twice_counts_twice_and_order_matters() -> None:
    answers = [*[(("a",), 1.0)] * 9, *[(("b",), 1.0)] * 9, *[(("a", "a"), 1.0)] * 9, *[(("b", "a"), 0.0)] * 9]
    found = read_compositions(measure(answers))
    assert set(found) == {"a > a", "b > a"}
    assert found["a > a"]["promised"].value == pytest.approx((9.5 / 10) ** 2, abs=0.003)


def test_what_succeeds_together_is_composed_whatever_its_skills_do_alone() -> None:
    answers = [*[(("a",), 0.0)] * 30, *[(("b",), 1.0)] * 30, *[(("a", "b"), 1.0)] * 30]
    assert word_composition(read_compositions(measure(answers))["a > b"]) == "composes them already"


def test_nothing_is_said_of_few_items() -> None:
    assert measure([*[(("a",), 1.0)] * 20, *[(("b",), 1.0)] * 7, *[(("a", "b"), 0.0)] * 20]) == []
    assert measure([*[(("a", "b"), 1.0)] * 20]) == []


@pytest.mark.parametrize("kind", KNOWN)
def test_the_word_is_right_where_the_truth_is_known(kind: str) -> None:
    rng = np.random.default_rng(11)
    words = [word_composition(next(iter(read_compositions(measure(drawn(kind, 60, rng))).values()))) for _ in range(60)]
    right = next(word for start, word in WORDS.items() if kind.startswith(start))
    wrong = set(words) & (set(WORDS.values()) - {right})
    assert sum(word == right for word in words) >= 0.6 * len(words)
    assert sum(word in wrong for word in words) <= 0.05 * len(words)


def test_measure_compares_combinations_where_rows_name_skills(call: Call) -> None:
    rows = [row | {"skills": skills} for skills in (["a"], ["b"], ["a", "b"]) for row in sums(9)]
    rows = [row | {"prompt": f"{number}: {row['prompt']}"} for number, row in enumerate(rows)]
    asked = ("measure", checkpoint("one"), "--samples", "0", "--max-new-tokens", "4", "--eval")
    code, out, err = call(*asked, write("skills.jsonl", rows))
    assert code == 0, err
    assert "a > b" in out
    code, out, err = call(*asked, write("plain.jsonl", sums(9)), "--json")
    assert code == 0, err
    assert "composition" not in out

"""The chance level: rules by hand, cross-fitting that does not flatter, and its own error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.corpus import Corpus
from mixwright.corpus.cells import chance_rules_of
from mixwright.estimates.chance import MAX_ROWS_TRIED, Rules, chance_level, thin_rows
from mixwright.estimates.intervals import wilson
from mixwright.graders import load_grader
from mixwright.graders.choice import option_texts
from mixwright.records import Example


def rows(answers, start=0, prompt="q{}", **changes) -> list[Example]:
    named = enumerate(answers, start)
    return [Example(f"r{i}", "t", prompt.format(i), answer=str(answer), **changes) for i, answer in named]


def exact(grader="exact") -> Rules:
    judge = load_grader(grader)
    return Rules(judge.grade, judge.luck, option_texts)


def test_a_rule_chosen_on_other_rows_by_hand():
    other = rows(["1", "1", "1", "2", "2", "3"])
    scored = rows(["2", "1", "2", "2"], 100)
    found = chance_level(exact(), scored, other)
    assert (found.value, found.rule) == (0.25, "constant 1")
    assert found.hits.tolist() == [0, 1, 0, 0]
    assert (found.low, found.high) == pytest.approx(tuple(map(float, wilson(1, 4))))
    assert (found.interval.value, found.interval.n) == (0.25, 4)


def test_rows_that_are_scored_are_not_chosen_on():
    scored = rows(["1", "1", "1"])
    other = [*scored, *rows(["2", "2"], 50)]
    assert chance_level(exact(), scored, other).value == 0  # without its own rows only "2" is common
    folded = chance_level(exact(), scored, scored)
    assert folded.hits.tolist() == chance_level(exact(), scored).hits.tolist(), "no other rows: folds"


def test_rows_in_folds_count_half() -> None:
    found = chance_level(exact(), rows(["1"] * 30 + ["2"] * 10))
    assert (found.low, found.high) == pytest.approx(tuple(map(float, wilson(20 * found.value, 20))))


@pytest.mark.parametrize(("count", "flattered"), [(10, 0.275), (30, 0.197), (100, 0.152)])
def test_ten_equally_likely_answers_are_not_called_more(count, flattered):
    """Chosen and scored on the same rows the constant looks as if it were right in the flattered share; it is in .10."""
    rng, values = np.random.default_rng(count), []
    for _ in range(200):
        values.append(chance_level(exact(), rows(rng.integers(10, size=count))).value)
    error = np.std(values) / np.sqrt(len(values))
    assert np.mean(values) == pytest.approx(0.1, abs=4 * error + (0.02 if count == 100 else 0.01)), "100: a closed set"
    assert np.mean(values) < flattered - 0.03


def test_its_interval_covers_what_the_rule_earns():
    rng, within = np.random.default_rng(0), 0
    for _ in range(200):
        found = chance_level(exact(), rows(np.where(rng.random(60) < 0.4, 0, rng.integers(1, 30, 60))))
        within += found.low <= 0.4 <= found.high
    assert within / 200 > 0.9


def test_the_folds_do_not_depend_on_the_order():
    scored = rows(np.random.default_rng(1).integers(4, size=50))
    one, other = chance_level(exact(), scored), chance_level(exact(), scored[::-1])
    assert one.hits.tolist() == other.hits[::-1].tolist()


def options(answers, texts=("red", "green", "dark blue")) -> list[Example]:
    rng = np.random.default_rng(4)
    found = []
    for i, place in enumerate(answers):
        own = [f"{text} {i}" for text in rng.permutation(texts[:2])] + [f"{texts[2]} {i} indeed"]
        found.append(Example(f"o{i}", "t", f"q{i}", answer="ABC"[place], extra={"options": own}))
    return found


def test_with_options_places_and_lengths_are_rules_and_numbers_are_not():
    always = chance_level(exact("choice"), options([1] * 30))
    assert always.value == 1
    assert always.rule in ("position 1", "constant B")
    longest = chance_level(exact("choice"), options([2] * 12), options([2] * 20)[12:])
    assert longest.value == 1
    told = exact("choice")
    assert told.hits("longest option", options([2, 1])).tolist() == [1, 0]
    assert told.hits("position 7", options([2, 1])).tolist() == [0, 0]
    mixed = np.random.default_rng(5).integers(3, size=300)
    assert chance_level(exact("choice"), options(mixed)).value == pytest.approx(1 / 3, abs=0.07)


def test_numbers_of_the_prompt_are_rules():
    texts = [Example(f"n{i}", "t", f"Of {i + 3} and {i + 40}, which?", answer=str(i + 40)) for i in range(30)]
    found = chance_level(exact(), texts)
    assert (found.value, found.rule) == (1, "last number")
    chat = [Example(e.id, "t", ({"role": "user", "content": str(e.prompt)},), answer=e.answer) for e in texts]
    assert chance_level(exact(), chat).rule == "last number"
    first = [Example(f"n{i}", "t", f"Of {i + 3} and {i + 40}, which?", answer=str(i + 3)) for i in range(30)]
    assert chance_level(exact(), first).rule == "first number"


def test_partial_credit_is_no_hit():
    half = Rules(lambda example, text: 0.9 if text == example.answer else 0.0)
    assert chance_level(half, rows(["1"] * 20)).value == 0


def test_without_rows_nothing_is_known():
    found = chance_level(exact(), [])
    assert (found.value, found.low, found.high, found.rule) == (0, 0, 1, "nothing known")


def test_a_corpus_hands_its_graders_and_options_on():
    corpus = Corpus.from_examples(options([1] * 30), {"t": "choice"})
    assert chance_level(chance_rules_of(corpus, "t"), list(corpus)).value == 1


@pytest.mark.parametrize("count", [15, 60, 250])
def test_a_balanced_coin_is_never_below_a_half(count):
    """Rows of a half that are chosen on have less of it left: folds call 32 and 28 of 60 about 40 %."""
    for common in (count // 2 + 1, count // 2 + 2):
        found = chance_level(exact(), rows(["Yes"] * common + ["No"] * (count - common)))
        assert found.value >= 0.5
        assert found.hits.mean() == pytest.approx(found.value)
        assert found.value <= common / count + 1e-9, "no more than the majority answer earns on these very rows"


def test_coins_on_average_are_called_little_more_than_a_half():
    rng = np.random.default_rng(3)
    for count, most in ((15, 0.62), (60, 0.56), (250, 0.53)):
        values = [chance_level(exact(), rows(rng.integers(2, size=count))).value for _ in range(100)]
        assert min(values) >= 0.5
        assert np.mean(values) < most


def test_a_coin_of_the_training_rows_is_one_of_the_held_out_rows():
    other = rows(["Yes"] * 60 + ["No"] * 40, 500)
    found = chance_level(exact(), rows(["Yes"] * 5 + ["No"] * 15), other)
    assert (found.value, found.rule) == (0.5, "blind choice among 2 answers"), "constant Yes earns .25 here"
    assert chance_level(exact(), rows(["Yes"] * 3), rows(["No"] * 5, 500)).value >= 0.5, "those rows chose No"


def test_seventy_to_thirty_is_the_majority_answer():
    found = chance_level(exact(), rows(["Yes", "Yes", "No", "Yes", "Yes", "No", "Yes", "Yes", "No", "Yes"] * 6))
    assert (round(found.value, 6), found.rule) == (0.7, "constant Yes")


def test_three_answers_that_take_turns_are_what_drawing_them_earns():
    """24, 24 and 2 of 50: a third is too little, and folds choose what is less common in the fold."""
    found = chance_level(exact(), rows((["a", "b"] * 12 + ["c"]) * 2))
    assert found.value >= (2 * 24 * 23 + 2 * 1) / (50 * 49) - 1e-9


@pytest.mark.parametrize("grader", ["final_answer", "exact", "choice"])
def test_five_lettered_options_are_a_fifth_at_least(grader):
    listed = "\nOptions:\n" + "\n".join(f"({letter}) w{letter}{{0}}" for letter in "ABCDE")
    told = {"options": [f"w{letter}" for letter in "ABCDE"]} if grader == "choice" else {}
    made = rows(list("ABCDE" * 2)[:9], prompt="q{0}" + listed, extra=told)
    (cell,) = Corpus.from_examples(made, {"t": grader}).cells()
    assert cell.chance >= 0.2
    assert cell.rule == "blind choice"


def test_different_answers_stay_near_zero():
    for count in (15, 60, 250):
        assert chance_level(exact(), rows(range(count), prompt="q")).value == 0
    assert chance_level(exact(), rows([*range(40), *range(20)], prompt="q")).value < 0.06


@given(st.integers(0, 3000))
def test_thinning_keeps_at_most_the_limit(count):
    kept = thin_rows(rows(range(count))) if count < 50 else thin_rows(range(count))  # pyright: ignore
    assert len(kept) <= MAX_ROWS_TRIED
    assert len(kept) >= min(count, MAX_ROWS_TRIED // 2)


def test_the_constant_answer_of_worked_solutions_is_their_final_answer() -> None:
    rows = [Example(f"w{i}", "t", f"q{i}?", answer=f"Step {i}.\n#### {7 if i % 4 else 1000 + i}") for i in range(400)]
    judged = Corpus.from_examples(rows, {"t": "final_answer"})
    (cell,) = judged.cells()
    assert (cell.rule, round(cell.chance, 2)) == ("constant 7", 0.75)
    exact = Corpus.from_examples(rows, {"t": "exact"}).cells()[0]
    assert exact.chance == 0.0, "whole solutions are all different"
    listed = [
        Example(f"o{i}", "t", f"q{i}?\nOptions:\n(A) a{i}\n(B) b{i}", answer="(A)" if i % 5 else "B") for i in range(400)
    ]
    (cell,) = Corpus.from_examples(listed, {"t": "final_answer"}).cells()
    assert (cell.rule, round(cell.chance, 2)) == ("constant A", 0.8)

"""The null of every overlap: chance, by hand, by simulation and at its edges."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.audit.chance import ORDER_MARGIN, Template, chance_explains, poisson_tail, tokens


def sums(count: int, seed: int, highest: int = 99) -> list[str]:
    rng = random.Random(seed)
    return [f"What is {rng.randint(10, highest)} + {rng.randint(10, highest)}?" for _ in range(count)]


def test_tokens_are_words_numbers_and_signs() -> None:
    assert tokens("What is 3.5 + x_2?") == ("what", "is", "3.5", "+", "x", "_", "2")


def test_the_template_is_what_prompts_share_and_slots_have_classes() -> None:
    template = Template.learn(sums(100, 0))
    assert template.words == {"what", "is", "+"}
    assert template.with_slot_classes("What is 12 + 345?") == ("what", "is", "<number of 2>", "+", "<number of 3>")


def test_agreement_is_counted_in_pairs() -> None:
    # Values 1 1 1 2: 3 agreeing pairs of 6; one is added to both: 4 / 7.
    template = Template.learn([f"owl number {n}{pad}" for n, pad in ((1, " a"), (1, " b"), (1, " c"), (2, " d"))])
    assert template.agreement_by_slot_class["number of 1"] == pytest.approx(4 / 7)
    # Words a b c d: none of 6 pairs agrees: 1 / 7.
    assert template.agreement_by_slot_class["word"] == pytest.approx(1 / 7)
    assert template.chance_of_same_filling(template.with_slot_classes("owl number 2 x")) == pytest.approx(4 / 49)


def test_copies_are_not_taken_for_chance() -> None:
    once = Template.learn(sums(300, 0))
    assert Template.learn(sums(300, 0) * 5) == once


def test_expected_overlap_is_what_happens() -> None:
    shared, expected = 0, 0.0
    for seed in range(20):
        train, held_out = sums(400, seed), sums(200, seed + 1000)
        shared += sum(prompt in set(train) for prompt in held_out)
        expected += Template.learn(train, held_out).expected_shared(train, held_out, 400, 200)
    exact = 20 * 200 * -math.expm1(400 * math.log1p(-1 / 90**2))
    assert expected == pytest.approx(exact, rel=0.1)
    assert abs(shared - exact) < 4 * math.sqrt(exact)


def test_a_sample_stands_for_all_rows() -> None:
    train, held_out = sums(2000, 1, 999), sums(1000, 2, 999)
    template = Template.learn(train, held_out)
    whole = template.expected_shared(train, held_out, 2000, 1000)
    part = template.expected_shared(train[:1000], held_out[:500], 2000, 1000)
    assert part == pytest.approx(whole, rel=0.15)


def test_prompts_that_stand_once_are_no_repeats() -> None:
    """Where all words are common ones, two prompts of one shape are one prompt, and what stands once repeats nothing."""
    rng = random.Random(4)
    prompts = [f"Evaluate: {' '.join(rng.choice(['and', 'or', 'xor']) for _ in range(20))}" for _ in range(300)]
    assert len(set(prompts)) == 300
    assert Template.learn(prompts).expected_repeats(prompts, 300) < 1e-3


def test_expected_repeats_are_what_happens() -> None:
    repeats, expected = 0, 0.0
    for seed in range(20):
        prompts = sums(500, seed)
        repeats += 500 - len(set(prompts))
        expected += Template.learn(prompts).expected_repeats(prompts, 500)
    space = 90**2
    exact = 20 * (500 - space * (1 - (1 - 1 / space) ** 500))
    assert expected == pytest.approx(exact, rel=0.15)
    assert abs(repeats - exact) < 4 * math.sqrt(exact)


@given(st.floats(0.01, 50), st.integers(0, 80))
def test_the_poisson_tail_is_the_sum_of_its_terms(mean: float, least: int) -> None:
    terms = [math.exp(-mean) * mean**k / math.factorial(k) for k in range(least, 150)]
    assert poisson_tail(least, mean) == pytest.approx(math.fsum(terms), abs=1e-9)


def test_what_chance_explains() -> None:
    assert poisson_tail(1, 0.5) == pytest.approx(1 - math.exp(-0.5))
    assert chance_explains(3, 1.0)
    assert not chance_explains(10, 1.0)
    assert not chance_explains(1, 0.0)
    assert chance_explains(0, 0.0)
    assert not chance_explains(10**6, 5.0)


def test_repeats_of_prompts_without_slots_follow_from_the_order_of_their_words() -> None:
    """Four directions in four places: n rows less the 256 walks that come up, where `ORDER_MARGIN` says twice as likely."""
    rows, expected, rng = 200, 0.0, random.Random(0)
    for _ in range(10):
        walks = [" ".join(rng.choices(("left", "right", "up", "down"), k=4)) for _ in range(rows)]
        expected += Template.learn(walks).expected_repeats(walks, rows) / 10
    chance = ORDER_MARGIN / 256
    assert expected == pytest.approx(rows - (1 - (1 - chance) ** rows) / chance, rel=0.1)


def test_copies_do_not_explain_themselves_where_prompts_share_all_their_words() -> None:
    rng = random.Random(0)
    walks = [" ".join(rng.choices(("left", "right", "up", "down"), k=9)) for _ in range(300)]
    assert not chance_explains(60, Template.learn(walks + walks[:60]).expected_repeats(walks + walks[:60], 360))
    held_out = walks[:60]
    assert not chance_explains(60, Template.learn(walks, held_out).expected_shared(walks, held_out, 300, 60))


def test_a_task_of_few_fixed_prompts_repeats_them() -> None:
    prompts = ["heads or tails ?", "tails or heads ?", "not tails or heads ?"] * 30
    assert Template.learn(prompts).expected_repeats(prompts, 90) == pytest.approx(87)

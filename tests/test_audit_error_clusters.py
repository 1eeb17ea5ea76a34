"""The check `error_clusters`: steps by hand, the correlation by loops, its null by counting, and what it says of corpora."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.corpus import Corpus
from mixwright.records import Example, Observation
from mixwright_extras.checks.error_clusters import ErrorClusters
from mixwright_extras.steps import step_errors
from mixwright_extras.steps.step_errors import Clustering, Step, TaskSteps, read_steps


def row(target: str, prompt: str = "Work it out.", **extra: object) -> Example:
    return Example("a", "t", prompt, target=target, extra=extra)


def step(*, right: bool, kind: str = "plus 1", repeat: bool = False) -> Step:
    return Step(kind, right, repeat, "", Fraction(0), 0, (0, 1))


def rows_of(*rows: str) -> list[list[Step]]:
    """A row of steps of each word: x is wrong."""
    return [[step(right=letter != "x") for letter in word] for word in rows]


def task_of(rows: list[list[Step]]) -> TaskSteps:
    task = TaskSteps()
    for own in rows:
        task.add(own)
    return task


def clustering_of(rows: list[list[Step]]) -> Clustering:
    return task_of(rows).find_clustering(np.random.default_rng(0))


def test_what_goes_on_from_a_wrong_value_is_right_and_what_says_it_again_is_a_repeat() -> None:
    steps = read_steps(row("3 + 4 = 8. 8 * 2 = 16. Recall that 3 + 4 = 8. Then 8 - 1 = 6."))
    # the same text of an equation is read once by `read_equations`
    assert [(one.text, one.is_right) for one in steps] == [
        ("3 + 4 = 8", False),
        ("8 * 2 = 16", True),
        ("8 - 1 = 6", False),
    ]
    found = task_of([steps])
    assert (found.steps, found.wrong) == (3, 2)
    assert (found.after, found.else_) == ((1, 2), (1, 1))


def test_turns_of_a_talk_and_numbers_that_answer_an_expression() -> None:
    talk = [("user", "What is 12 - 5?"), ("assistant", "It is 8."), ("user", "And 8 + 1 ="), ("assistant", "9")]
    talk += [("user", "Is 3 + 4 odd?"), ("assistant", "7 is odd, and 3 + 4 = 8"), ("user", "3 + 4"), ("assistant", "It = 8")]
    talk += [("user", "12 - 5 = ?"), ("assistant", "8")]
    messages = tuple({"role": role, "content": text} for role, text in talk)
    steps = read_steps(Example("a", "t", messages[:-1], target=messages[-1:]))
    assert [(one.turn, one.is_right, one.is_repeat, one.span) for one in steps] == [
        (0, False, False, None),
        (1, True, False, None),
        (2, False, False, (14, 23)),
        (4, False, True, None),
    ]
    assert [one.right for one in steps] == [7, 9, 7, 7]


def test_masked_steps_are_no_steps() -> None:
    steps = read_steps(row("3 + 4 = 8. 8 * 2 = 16.", mask=[[0, 9]]))
    assert [one.text for one in steps] == ["8 * 2 = 16"]
    talk = (
        {"role": "user", "content": "1 + 1 ="},
        {"role": "assistant", "content": "3"},
        {"role": "user", "content": "2 + 2 ="},
    )
    last = {"role": "assistant", "content": "5", "train": False}
    assert read_steps(Example("a", "t", talk, target=(last,), extra={"untrained_turns": [0]})) == []
    assert [one.turn for one in read_steps(Example("a", "t", talk, target=(last,)))] == [0]


WORDS = st.lists(st.text("x.", min_size=1, max_size=6), min_size=3, max_size=12)


@settings(deadline=None, max_examples=60)
@given(WORDS)
def test_the_correlation_is_that_of_loops(words: list[str]) -> None:
    values = [[float(letter == "x") for letter in word] for word in words]
    flat = [one for word in values for one in word]
    found = clustering_of(rows_of(*words))
    if not any(flat) or all(flat) or len(flat) == len(words):
        assert found.correlation is None
        return
    mean, means = sum(flat) / len(flat), [sum(word) / len(word) for word in values]
    between = sum(len(word) * (own - mean) ** 2 for word, own in zip(values, means, strict=True)) / (len(words) - 1)
    within = sum((one - own) ** 2 for word, own in zip(values, means, strict=True) for one in word)
    within /= len(flat) - len(words)
    usual = (len(flat) - sum(len(word) ** 2 for word in words) / len(flat)) / (len(words) - 1)
    assert found.correlation is not None
    total = between + (usual - 1) * within
    assert found.correlation.value == pytest.approx((between - within) / total if total > 0 else 0.0, abs=1e-9)
    assert task_of(rows_of(*words)).wrong == sum(map(int, flat))


def test_chance_is_that_of_all_ways_to_deal_the_mistakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of six steps are wrong, both in one row of two: one in fifteen ways does that. They are one stratum."""
    monkeypatch.setattr(step_errors, "ROUNDS", 4000)
    found = clustering_of(rows_of("xx", "..", ".."))
    ways = set(permutations("xx...."))
    as_many = sum("xx" in {"".join(order[at : at + 2]) for at in (0, 2, 4)} for order in ways) / len(ways)
    assert as_many == 0.2
    assert found.chance == pytest.approx(as_many, abs=0.02)


def test_mistakes_of_one_kind_or_place_are_no_clusters() -> None:
    """Rows of products are wrong and rows of sums are right: no mistake can be dealt to another row, so all is chance. So it
    is where each third step is wrong, and half of the rows have three."""
    products, sums = [step(right=False, kind="times 1")] * 3, [step(right=True, kind="plus 1")] * 3
    by_kind = clustering_of([products, sums] * 30)
    assert by_kind.correlation is not None
    by_place = clustering_of(rows_of(*["..x", ".."] * 30))
    assert by_place.chance == 1.0
    assert (by_kind.correlation.value, by_kind.null, by_kind.chance) == (pytest.approx(1), pytest.approx(1), 1.0)


def test_rows_with_larger_numbers_that_are_harder_are_no_clusters() -> None:
    """The chance to be wrong rises with the size of a row's numbers; given that, mistakes know nothing of each other."""
    for seed in range(5):
        rng, task = np.random.default_rng(seed), TaskSteps()
        for _ in range(400):
            size = rng.uniform(0, 2)
            task.add([step(right=rng.random() > 0.2 * size**2)._replace(size=size) for _ in range(4)])
        found = task.find_clustering(rng)
        assert found.correlation is not None
        assert found.correlation.low > 0.1
        assert abs(found.correlation.value - found.null) < 0.05
        assert found.chance > 0.005


def warnings_of(corpus: Corpus) -> list[Observation]:
    return [one for one in ErrorClusters().check(corpus) if one.severity == "warning"]


def make_talks(careless_share: float, rate: float, other_rate: float) -> list[Example]:
    """Make talks of four to ten sums; in a share of them each answer is wrong at `rate`, else at `other_rate`."""
    rng = np.random.default_rng(3)
    talks = []
    for number in range(300):
        chance = rate if rng.random() < careless_share else other_rate
        turns = []
        for _ in range(rng.integers(4, 11)):
            first, second = rng.integers(2, 99, 2)
            said = first + second + (rng.integers(1, 10) if rng.random() < chance else 0)
            turns += [{"role": "user", "content": f"{first} + {second} ="}, {"role": "assistant", "content": f"{said}"}]
        talks.append(Example(f"{number}", "talks", tuple(turns[:-1]), target=tuple(turns[-1:])))
    return talks


@pytest.mark.parametrize(("careless_share", "rate"), [(0.4, 0.6), (0.2, 0.4)])
def test_planted_talks_are_named(careless_share: float, rate: float) -> None:
    (told,) = warnings_of(Corpus.from_examples(make_talks(careless_share, rate, 0.005)))
    assert told.task == "talks"


@pytest.mark.parametrize("rate", [0.05, 0.3])
def test_unclustered_mistakes_are_an_info(rate: float) -> None:
    (info,) = ErrorClusters().check(Corpus.from_examples(make_talks(0, 0, rate)))
    assert (info.severity, info.task) == ("info", None)
    assert info.count / info.total == pytest.approx(rate, rel=0.2)
    assert info.evidence[0]["mask"] or info.evidence[0]["turns"]


def test_rows_without_steps_say_nothing_and_held_out_rows_are_not_read() -> None:
    assert ErrorClusters().check(Corpus.from_examples([row("Paris")])) == []
    held_out = [Example(f"{n}", "t", "q", target="1 + 1 = 3. 2 + 2 = 5.", split="eval") for n in range(20)]
    assert ErrorClusters().check(Corpus.from_examples(held_out)) == []


def test_all_steps_are_counted_and_the_first_of_them_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_errors, "MAX_STEPS", 11)
    rows = rows_of("xx", "...", "x..", "..")
    long, short = (clustering_of(rows * count) for count in (5, 1))
    task = task_of(rows * 5)
    assert (task.steps, task.wrong, task.after, task.else_) == (50, 15, (5, 15), (10, 35))
    assert (long.correlation, long.null, long.chance) == (short.correlation, short.null, short.chance)


def test_a_wrong_turn_before_the_last_is_left_out_whole_where_the_prompt_is_a_text() -> None:
    talk = ({"role": "assistant", "content": "1 + 1 = 3"}, {"role": "user", "content": "Go on."})
    rows = [Example("a", "t", "Add.", target=(*talk, {"role": "assistant", "content": "That is all."}))]
    (info,) = ErrorClusters().check(Corpus.from_examples(rows))
    assert (info.evidence[0]["mask"], list(info.evidence[0]["turns"])) == ([], [0])

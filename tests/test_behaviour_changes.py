"""Behaviours that come or go during an RL run: shares by hand, planted changes, and clean logs without a finding."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mixwright.estimates.crossed import compare_prompts
from mixwright.logs.behaviour_changes import FALLEN, RISEN
from mixwright.logs.diagnosis import diagnose
from mixwright.logs.rollouts import Rollout, RolloutLog
from mixwright.records import Observation

ANSWER = "The train to the coast leaves at nine from the second platform, number"
EXTRAS = ("Which day do you mean?", "I see.", "Perhaps so.", "Let me check this.", "**Note** it.", "```\nx\n```")
STEPS, PROMPTS, SIZE = 30, 4, 5


def make_log(write: Callable[[int, int, int], str], name: Callable[[int, int], str] | None = None) -> RolloutLog:
    """A run of one task: `write(step, prompt, sample)` is a completion, `name(step, prompt)` its prompt."""
    named = name or (lambda step, number: f"{step}/{number}")
    return RolloutLog(
        "plain",
        tuple(
            Rollout(step, f"{step} {named(step, number)}", "chat", write(step, number, sample), float(sample % 2), {})
            for step in range(STEPS)
            for number in range(PROMPTS)
            for sample in range(SIZE)
        ),
    )


def find(log: RolloutLog) -> list[Observation]:
    return [one for one in diagnose(log) if one.check in ("behaviour", "distinct completions", "same")]


def distinct(step: int, number: int, sample: int) -> str:
    return f"{ANSWER} {step}{number}{sample}."


def asking(step: int, number: int, sample: int) -> str:
    """Four of five completions ask, none in the last third."""
    return distinct(step, number, sample) + (" Which day do you mean?" if sample and step < 20 else "")


def test_a_behaviour_that_goes_away_is_named_with_its_shares() -> None:
    """Forty prompts in each third: 4 of 5 completions, and none; so the change is worth 32 prompts."""
    (seen,) = find(make_log(asking))
    assert seen.message == "asks a question in 80% of the completions in the first third of the steps, and in 0% in the last"
    assert (seen.check, seen.task, seen.severity, seen.count, seen.total) == ("behaviour", "chat", "warning", 32, 40)
    assert seen.remedy == FALLEN


def test_a_behaviour_that_comes_is_named() -> None:
    (seen,) = find(make_log(lambda *place: distinct(*place) + (" Perhaps it is late." if place[0] >= 20 else "")))
    assert seen.message.startswith("hedges in 0% of the completions")
    assert seen.remedy == RISEN


def test_less_than_ten_points_is_no_finding() -> None:
    """One of five completions in 4 of 10 steps: 8 points."""
    assert find(make_log(lambda *place: distinct(*place) + (" I see." if place[0] < 4 and not place[2] else ""))) == []


def test_completions_of_a_group_that_become_alike_are_named_once() -> None:
    """Two texts in a group of five, three and two times: 6 of 10 pairs differ. One text alone is the finding `same`."""

    def alike(texts: int) -> Callable[[int, int, int], str]:
        return lambda step, number, sample: distinct(step, number, sample % texts if step >= 20 else sample)

    (seen,) = find(make_log(alike(2)))
    assert seen.message.startswith("two completions of a group differ in 100% of the pairs in the first third of the steps")
    assert seen.message.endswith("and in 60% in the last")
    assert [one.check for one in find(make_log(alike(1)))] == ["same"]
    assert find(make_log(lambda *place: alike(2)(*place).removeprefix(ANSWER))) == [], "short answers are alike when right"


def test_other_prompts_at_the_end_are_no_change() -> None:
    """Prompts 0 and 1 come again and are always asked about; 2 and 3 are new, and asked about at first only."""

    def name(step: int, number: int) -> str:
        return f"{step % 10} {number}" if number < 2 else f"{step}/{number}"

    def write(step: int, number: int, sample: int) -> str:
        asks = sample < 3 if number < 2 else step < 10
        return distinct(step, number, sample) + (" Which day do you mean?" if asks else "")

    assert find(make_log(write, name)) == []
    assert find(make_log(write)) != [], "without shared prompts the two cannot be told apart"


def test_few_steps_or_prompts_are_not_judged() -> None:
    assert (
        find(make_log(lambda *place: asking(place[0] * 20, *place[1:]), lambda step, number: f"{step % 2} {number}")) == []
    )
    log = make_log(asking)
    assert find(RolloutLog("plain", tuple(one for one in log.rollouts if one.step in (1, 25)))) == []


def make_clean_log(seed: int, *, prompts_again: bool) -> RolloutLog:
    """Prompts differ in how often they show a behaviour, some always or never; nothing changes but the reward."""
    rng = random.Random(seed)
    levels = [rng.choice([0.05, 0.1, 0.3, 0.5, 0.8]) for _ in EXTRAS]
    shares: dict[str, list[float]] = {}

    def name(step: int, number: int) -> str:
        return f"{(step * PROMPTS + number) * 7 % 40}" if prompts_again else f"{step}/{number}"

    def write(step: int, number: int, sample: int) -> str:
        mine = [float(rng.random() < level) if rng.random() < 0.4 else level for level in levels]
        kept = shares.setdefault(name(step, number), mine)
        said = [extra for extra, share in zip(EXTRAS, kept, strict=True) if rng.random() < share]
        return " ".join([ANSWER, f"{rng.randrange(6)}.", *said])

    return make_log(write, name)


@pytest.mark.parametrize("prompts_again", [False, True])
def test_clean_logs_have_no_finding(prompts_again: bool) -> None:
    """Of 2 x 30 logs at most one."""
    assert sum(bool(find(make_clean_log(seed, prompts_again=prompts_again))) for seed in range(30)) <= 1


def test_prompts_are_compared_by_hand() -> None:
    """Paired where 20 are shared: each moves by 0.5 or 0, so that the mean moves by 0.25; else means of all prompts."""
    first = {str(n): (0.5,) for n in range(20)}
    second = {str(n): (0.5 + n % 2 / 2,) for n in range(20)}
    before, after, (p,), is_paired = compare_prompts(first, second, 1)
    assert (before, after, is_paired) == ([0.5], [0.75], True)
    assert 0.0001 < p < 0.05
    assert compare_prompts(second, first, 1)[2] == pytest.approx([p])
    others = {f"other {name}": value for name, value in second.items()}
    assert compare_prompts(first, others, 1)[3] is False
    assert compare_prompts(first, first, 1)[2] == [1.0]

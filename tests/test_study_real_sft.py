"""Study of narrow SFT: its rows share nothing with its test, its figures are those worked out by hand."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from mixwright.errors import InputError
from mixwright_lab.studies import everyday, public_sets, real_models, real_repeat, real_sft, sft_study
from mixwright_lab.studies.real_models import ARMS_OF_JOB, NARROW, PLAN, PublicPlace, RealModels


@pytest.fixture
def public(tmp_path: Path) -> PublicPlace:
    """Made-up files in the form of the public ones."""
    folder = tmp_path / "public"
    for name in public_sets.FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
    for name, (file, _) in public_sets.QUESTIONS.items():
        pairs = [{"input": f"{name} {n}", "output": f"answer {n}"} for n in range(120)]
        (folder / file).write_text(json.dumps([*pairs, pairs[0]]))
    chat = [("Say hello.", "Hello."), ("What is the sum of 1 and 2?", "3"), ("Tell a story.", "x" * 301)]
    lines = [json.dumps({"instruction": one, "instances": [{"input": "", "output": other}]}) for one, other in chat]
    (folder / public_sets.CHAT).write_text("\n".join(lines))
    return PublicPlace(folder)


def test_public_rows_are_read_as_questions(public: PublicPlace) -> None:
    """Each pair is one question; what teaches a measured task or is long is left out."""
    rows = public_sets.read_questions(public.folder, "plurals")
    assert rows[3] == {"task": "plurals", "prompt": "What is the plural of plurals 3?", "answer": "answer 3"}
    assert len(rows) == 120
    assert [row["prompt"] for row in public_sets.read_chat(public.folder)] == ["Say hello."]


def test_both_directions_of_an_opposite_are_on_one_side() -> None:
    """At most one pair is parted, where the test ends."""
    pairs = everyday.shuffled(everyday.HALF_KNOWN["opposites"](), random.Random(3))
    test, train = dict(pairs[:100]), dict(pairs[100:])
    both = [answer for answer in test.values() if f"What is the opposite of {answer}?" in train]
    reversed_pairs = [
        answer
        for answer in both
        if train[f"What is the opposite of {answer}?"]
        in [prompt.split()[-1].rstrip("?") for prompt, told in test.items() if told == answer]
    ]
    assert len(reversed_pairs) <= 1
    assert sorted(pairs) == sorted(everyday.HALF_KNOWN["opposites"]())


def test_missing_public_files_are_refused_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, and no folder at all."""
    with pytest.raises(InputError, match=r"present-past"):
        public_sets.check_public_files(tmp_path)
    monkeypatch.delenv("MIXWRIGHT_PUBLIC", raising=False)
    with pytest.raises(InputError, match="MIXWRIGHT_PUBLIC"):
        PublicPlace.from_environment()


@pytest.mark.parametrize("seed", [1, 2])
def test_no_call_of_the_test_stands_in_training(seed: int) -> None:
    """Not even in other words; and there are enough of both."""
    train, test = everyday.tool_calls(random.Random(seed))
    assert len(train) >= real_models.NEW_ROWS
    assert len(test) >= real_models.NEW_ITEMS
    assert not {call for _, call in train} & {call for _, call in test}
    assert len(dict(train)) == len(train)


def test_tables_have_enough_different_questions() -> None:
    """Each half-known task has a test and training rows that do not meet."""
    for task, make in everyday.HALF_KNOWN.items():
        assert len(dict(make())) == len(make()) >= real_models.OLD_ITEMS + real_models.OLD_ROWS, task


def test_candidate_skills_have_right_answers() -> None:
    """Worked out in another way."""
    assert dict(everyday.SKILLS["roman_numerals"](random.Random(1), 1197))["What is 149 as a Roman numeral?"] == "CXLIX"
    for prompt, answer in everyday.SKILLS["hours_and_minutes"](random.Random(1), 50):
        hours, minutes = (int(part) for part in answer.removesuffix(" min").split(" h "))
        assert str(60 * hours + minutes) in prompt.split()
    for prompt, answer in everyday.SKILLS["middle_number"](random.Random(1), 20):
        numbers = [int("".join(filter(str.isdigit, word))) for word in prompt.split() if any(map(str.isdigit, word))]
        assert int(answer) == sorted(numbers)[1]


def test_rows_of_each_arm(public: PublicPlace, tmp_path: Path) -> None:
    """As many as are drawn; rehearsal is a quarter; the test's prompts stand in none of them."""
    models = RealModels(tmp_path / "models", 5, public, truth=True)
    tested = {row["prompt"] for name in ("test", "truth") for row in models.rows[name]}
    assert len(tested) == len(models.rows["test"]) + len(models.rows["truth"])
    assert Counter(row["task"] for row in models.rows["truth"]) == {
        "sums": 240,
        **dict.fromkeys(public_sets.QUESTIONS, 20),
    }
    count = models.training.steps * models.training.batch
    shares = {}
    arms = (NARROW, "half the rate", "uniform", "equal shares", "chat", "chat rows alone, a thirtieth of the rate")
    for arm in (*arms, "true and chat rows", "penalty x 10"):
        rows, _ = models._picked(arm)
        assert len(rows) == count
        assert not tested & {row["prompt"] for row in rows}
        shares[arm] = Counter(row["task"] for row in rows)
    assert set(shares[NARROW]) == {"new"}
    assert models._picked(NARROW) == models._picked("half the rate")
    assert set(shares["chat rows alone, a thirtieth of the rate"]) == {"chat"}
    assert models._picked(NARROW) == models._picked("penalty x 10")
    assert (shares["true and chat rows"]["chat"], shares["true and chat rows"]["new"]) == (count / 8, 0.75 * count)
    assert shares["chat"] == {"new": 0.75 * count, "chat": 0.25 * count}
    assert set(shares["equal shares"].values()) == {count // 5}
    assert 0.05 < 1 - shares["uniform"]["new"] / count < 0.17


def test_drawn_rows_repeat_only_when_all_have_come() -> None:
    """Seven draws of three rows: none more than three times, none less than twice."""
    rows = [{"prompt": name} for name in "abc"]
    counted = Counter(row["prompt"] for row in real_models._drawn(rows, 7, random.Random(0)))
    assert sorted(counted.values()) == [2, 2, 3]


def _row(seed: int, arm: str, new: float, old: float) -> dict[str, Any]:
    answers = [["new", f"test-{n}", float(n < 10 * new), "", False] for n in range(10)]
    answers += [[task, f"test-{n}", float(n < 10 * old), "", False] for task in everyday.HALF_KNOWN for n in range(10)]
    answers += [[task, f"test-{n}", 1.0, "", False] for n in range(2) for task in sft_study.UNREHEARSED]
    return {"seed": seed, "arm": arm, "answers": answers}


def test_goals_by_hand() -> None:
    """Narrow loses 60 and 40 points, the plan 20 and 10: it keeps .67 and .75 of the loss."""
    made = {
        1: [("frozen", 0.0, 0.7), (NARROW, 1.0, 0.1), (PLAN, 1.0, 0.5)],
        2: [("frozen", 0.0, 0.5), (NARROW, 1.0, 0.1), (PLAN, 0.9, 0.4)],
    }
    by_seed = {seed: {arm: _row(seed, arm, new, old) for arm, new, old in arms} for seed, arms in made.items()}
    lost, gained, share, new = sft_study.goals_of(by_seed)
    assert (lost.found.value, gained.found.value, new.found.value) == pytest.approx((50, 35, -5))
    assert share.found.value == pytest.approx((40 / 60 + 30 / 40) / 2)
    assert lost.reached
    assert share.reached
    assert not new.reached


def test_nothing_is_reached_before_two_seeds() -> None:
    """One seed has no interval."""
    one = {1: {arm: _row(1, arm, 1.0, 0.5) for arm in ("frozen", NARROW, PLAN)}}
    assert not any(goal.reached for goal in sft_study.goals_of(one))


def test_figures_are_of_arms_that_all_seeds_have() -> None:
    """Two seeds have the first arms and one of them a scaled adapter as well: it has no figure, and no curve has."""
    by_seed = {seed: {arm: _row(seed, arm, 1.0, 0.5) for arm in real_sft.FIRST_ARMS} for seed in (1, 2)}
    by_seed[3] = {"frozen": _row(3, "frozen", 0.0, 0.5)}
    by_seed[1]["narrow x 0.5"] = _row(1, "narrow x 0.5", 0.5, 0.5)
    by_seed[2][NARROW] = _row(2, NARROW, 1.0, 0.1)
    figures = real_sft.STUDY.compare_with_plan(by_seed)
    assert set(figures) == set(real_sft.FIRST_ARMS)
    assert figures[NARROW]["rehearsed"]["value"] == pytest.approx(30)
    assert figures[NARROW]["rehearsed, plan less this"]["value"] == pytest.approx(20)


def test_kept_at_reads_a_curve_between_its_points() -> None:
    """Half way between two points, and its ends beyond them."""
    points = [(0.0, 60.0), (80.0, 20.0), (100.0, 0.0)]
    assert [sft_study.kept_at(points, new) for new in (40, 90, 120, -5)] == [40, 10, 0, 60]


def test_every_arm_runs_once() -> None:
    """And each curve is made of arms that are measured."""
    arms = real_sft.STUDY.arms
    assert len(set(arms)) == len(arms) == sum(map(len, ARMS_OF_JOB.values()))
    assert {arm for curve in sft_study.CURVES.values() for arm in curve} <= set(arms)


def test_a_repeat_is_compared_item_by_item() -> None:
    """The first items of each task, in their order, although their numbers differ; points of both sides by hand."""
    tasks = (*everyday.HALF_KNOWN, sft_study.NEW)
    there = [
        [task, f"test-{3 * k + n}", float(n < 1), f"{task}{n}", False] for k, task in enumerate(tasks) for n in range(3)
    ]
    there.append(["sums", "truth-0", 1.0, "x", False])
    here = [[task, f"test-{2 * k + n}", float(n < 1), f"{task}{n}", False] for k, task in enumerate(tasks) for n in range(2)]
    here[0][2:4] = [0.0, "another answer"]
    found = real_repeat.compare(NARROW, here, {"answers": there})
    assert found["equal answers"] == [9, 10]
    assert found["new task"] == [50, 50]
    assert found["four old tasks"] == [37.5, 50]

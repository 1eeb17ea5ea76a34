"""What rows teach: words by hand, pairs, splits, trainings on a tiny model, and `plan --minutes`."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_call import Call
from hypothesis import given, settings
from hypothesis import strategies as st
from test_direct import checkpoint
from test_plan_replay import PLAIN, plan_with

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.learner.load import load_learner
from mixwright.plan import bursts
from mixwright.plan.bursts import BurstSizes, deal_out, split_groups, watch_bursts
from mixwright.plan.teaching import Part, Reading, Runs, judge_teaching
from mixwright.records import Example, Interval, Pull, Teaching, from_data
from mixwright.verbs.teaching import describe_pull, teaching_lines

SMALL = BurstSizes(steps=2, batch=4, rows=8, items=4, rank=2)
SHARES = {
    "skill": (0.1, 0.9, 0.05, 1.0, 0.05),
    "facts": (0.1, 0.1, 0.05, 0.95, 0.05),
    "format only": (0.0, 0.5, 0.5, 0.6, 0.5),
    "nothing": (0.1, 0.1, 0.1, 0.1, 0.1),
    "known already": (0.95, 1.0, 0.0, 1.0, 0.0),
}
"""Word -> success before, on unseen items after true and dealt-out rows, and on trained rows after both."""


def share(of: float, items: int = 40) -> np.ndarray:
    return (np.arange(items) < round(of * items)).astype(float)


def made(shares: dict[str, tuple[float, ...]], seeds: int = 3) -> tuple[Reading, Runs]:
    """Readings in which training on a group changes it alone."""
    before: dict[Part, np.ndarray] = {}
    for group, (start, *_) in shares.items():
        before |= {(group, "unseen"): share(start), (group, "trained"): share(start)}
    runs: Any = {}
    for group, (_, unseen, unseen_dealt, trained, trained_dealt) in shares.items():
        for dealt, values in ((False, (unseen, trained)), (True, (unseen_dealt, trained_dealt))):
            own = {(group, part): share(value) for part, value in zip(("unseen", "trained"), values, strict=True)}
            runs[group, dealt] = [before | own] * seeds
    return before, runs


def test_words_of_groups_by_hand() -> None:
    before, runs = made(SHARES)
    found = judge_teaching(before, runs, dict.fromkeys(SHARES, 32), steps=24, batch=8)
    assert {one.group: one.word for one in found.taught} == {word: word for word in SHARES}
    skill = found.taught[0]
    assert (skill.before, skill.unseen and skill.unseen.value) == (pytest.approx(0.1), pytest.approx(0.8))
    assert skill.over_dealt is not None
    assert skill.over_dealt.value == pytest.approx(0.85)
    assert not any(pull.shown for pull in found.pulls)
    assert len(found.pulls) == len(SHARES) * (len(SHARES) - 1)


def test_few_items_cannot_tell_and_ungraded_groups_say_so() -> None:
    before: Reading = {("few", "unseen"): np.zeros(4), ("few", "trained"): np.zeros(4)}
    runs: Runs = {("few", dealt): [before] * 2 for dealt in (False, True)}
    runs = {**runs, ("text", False): [before], ("text", True): [before]}
    found = judge_teaching(before, runs, {"few": 8, "text": 8, "never": 8}, steps=1, batch=1)
    assert [(one.group, one.word) for one in found.taught] == [("few", "cannot tell"), ("text", "not graded")]
    assert [(pull.trained_on, pull.read_on) for pull in found.pulls] == [("text", "few")]


def test_a_pair_is_shown_beyond_all_pairs_alone() -> None:
    before, runs = made(SHARES)
    lost = [{**reading, ("known already", "unseen"): share(0.2)} for reading in runs["facts", False]]
    found = judge_teaching(before, {**runs, ("facts", False): lost}, dict.fromkeys(SHARES, 32), steps=24, batch=8)
    assert [(pull.trained_on, pull.read_on) for pull in found.pulls if pull.shown] == [("facts", "known already")]
    assert found.pulls[0].change.value == pytest.approx(-0.75)
    assert found.pulls[0].change.high < 0


@given(st.permutations(list(SHARES)))
@settings(max_examples=20)
def test_order_of_groups_changes_no_word(order: list[str]) -> None:
    before, runs = made(SHARES)
    found = judge_teaching(before, runs, dict.fromkeys(order, 32), steps=24, batch=8)
    assert {one.group: one.word for one in found.taught} == {word: word for word in SHARES}


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=20), st.integers(0, 9))
def test_dealt_out_rows_keep_prompts_and_answers(answers: list[str], seed: int) -> None:
    rows = [Example(f"{n}", "t", f"p{n}", target=answer, answer=answer) for n, answer in enumerate(answers)]
    dealt = deal_out(rows, np.random.default_rng(seed))
    assert [row.prompt for row in dealt] == [row.prompt for row in rows]
    assert Counter(row.target for row in dealt) == Counter(answers)
    assert all(row.target == row.answer for row in dealt)


def sums(task: str = "sums", count: int = 40) -> list[Example]:
    return [Example(f"{task}{n}", task, f"{n % 30}+1=", answer=str(n % 30 + 1)) for n in range(count)]


def test_no_prompt_is_trained_on_and_unseen_and_small_groups_are_left_out() -> None:
    splits, left_out = split_groups(Corpus.from_examples([*sums(), *sums("few", 12)]), BurstSizes(rows=32, items=24))
    assert left_out == ["few"]
    trained, unseen = ({row.prompt for row in part} for part in (splits["sums", "trained"], splits["sums", "unseen"]))
    assert (len(trained), len(unseen)) == (15, 15)
    assert not trained & unseen


def test_trainings_leave_the_model_as_it_is_and_end_with_their_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    checkpoint("model", chat=False)
    learner = load_learner("model")
    weights = {name: value.clone() for name, value in learner.model.state_dict().items()}
    corpus = Corpus.from_examples([*sums(), *sums("more"), *sums("general", 4)])
    general = [row for row in corpus if row.task == "general"]
    clock = itertools.count(step=10)
    monkeypatch.setattr(bursts, "monotonic", lambda: next(clock))
    config = MeasureConfig(max_new_tokens=2)
    found = watch_bursts(learner, corpus, config, others={"all else": general}, sizes=SMALL, seconds=75)
    assert [(one.group, one.trainings) for one in found.taught] == [("more", 2), ("sums", 1)]
    assert {pull.read_on for pull in found.pulls} == {"more", "sums", "all else"}
    assert all(bool((learner.model.state_dict()[name] == value).all()) for name, value in weights.items())
    assert not any(name.startswith("base_model") for name in learner.model.state_dict())


def test_plan_with_minutes_says_what_rows_teach(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bursts, "BurstSizes", lambda: SMALL)
    out, _ = plan_with(monkeypatch, call, PLAIN[:40], 12, "--minutes", "0", "--max-new-tokens", "2")
    found = from_data(Teaching, json.loads(Path("plan/teaching.json").read_text(encoding="utf-8")))
    assert [(one.group, one.trainings, one.rows, one.items) for one in found.taught] == [("train", 1, 8, 4)]
    assert [pull.read_on for pull in found.pulls] == ["general requests"]
    assert "these rows teach" in out


def test_pairs_in_words() -> None:
    assert describe_pull(Pull("calls", "sums", Interval(-0.19, -0.26, -0.12, 3), True), 24) == (
        "24 steps of calls cost sums 19 points [12, 26]."
    )
    lines = teaching_lines(Teaching(24, 8, (), (Pull("a", "b", Interval(0.2, 0.1, 0.3, 3), True),), ("c",)))
    assert "24 steps of a raise b by 20 points [10, 30]." in lines
    assert any("c." in line for line in lines)


def test_the_map_has_a_row_per_trained_group_and_a_column_per_read_one() -> None:
    pulls = (
        Pull("calls", "general", Interval(-0.35, -0.45, -0.25, 3), True),
        Pull("calls", "sums", Interval(-0.02, -0.1, 0.06, 3), False),
        Pull("sums", "general", Interval(0.04, -0.1, 0.1, 3), False),
    )
    lines = teaching_lines(Teaching(24, 8, (), pulls))
    found = [line.split() for line in lines if line.split()[:1] in (["sums"], ["calls"])]
    assert ["sums", "general"] in found
    assert ["calls", "-2", "-35*"] in found
    assert ["sums", "+4"] in found

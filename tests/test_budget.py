"""Budgets of a measuring: the items that a time allows, and that what is chosen fits into it."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, write
from hypothesis import given
from hypothesis import strategies as st
from trainers_tiny import model, tokenizer

from mixwright.config import RunConfig
from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright.run.folder import read_yaml
from mixwright.verbs import budget as budgets
from mixwright.verbs.budget import parse_duration
from mixwright.verbs.ready import half_width, most_items_within


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("20m", 1200), ("1h30m", 5400), ("1.5h", 5400), (" 2M ", 120), ("1s", 1)]
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "60", "0m", "-5m", "an hour", "5m5m", "1e400h", "nan"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_duration(text)


@pytest.mark.parametrize("text", ["0.9s", "0.01m", "0.0001h"])
def test_a_budget_in_which_nothing_is_measured_is_refused_by_every_verb_that_takes_one(text: str, call: Call) -> None:
    write("a.jsonl", [{"task": "t", "prompt": "1+1=", "answer": "2"}])
    Path("run.yaml").write_text("corpus: {train: a.jsonl}\n", encoding="utf-8")
    for command in (
        ("run", "run.yaml"),
        ("run", "--init", "a.jsonl"),
        ("run", "run.yaml", "--only", "trial"),
        ("mine", "run.yaml", "--miner", "pruning", "--try"),
        ("measure", "nowhere", "--eval", "a.jsonl"),
        ("verdict", "--no-suite", "nowhere", "elsewhere", "--eval", "a.jsonl"),
    ):
        code, out, err = call(*command, "--budget", text)
        assert (code, out, err.count("\n")) == (1, "", 1), command
        assert f"of 1 s or more, got '{text}'" in err
    assert not Path("runs").exists()


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(0, 200))
def test_the_largest_number_per_cell_within_a_total_is_found(counts: list[int], total: int) -> None:
    by_trying = max((n for n in range(max(counts) + 1) if sum(min(c, n) for c in counts) <= total), default=0)
    assert most_items_within(counts, total) == by_trying


class Clock:
    """A clock that the model moves on: one second per completion that it writes, unless told otherwise."""

    def __init__(self) -> None:
        self.now, self.per_call, self.per_completion = 0.0, 0.0, 1.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time that passes only while completions are written."""
    from mixwright.learner.shared_generation import generate

    ticking = Clock()

    def counted(*asked: Any) -> Any:
        ticking.now += ticking.per_call
        for made in generate(*asked):
            ticking.now += ticking.per_completion * sum(map(len, made.values()))
            yield made

    monkeypatch.setattr("mixwright.learner.learner.generate", counted)
    monkeypatch.setattr(budgets, "monotonic", ticking)
    monkeypatch.setattr(budgets, "BEGAN", 0.0)
    monkeypatch.setattr("mixwright.measure.room.monotonic", ticking)
    monkeypatch.setattr("mixwright.measure.room.complete_freely", _timed(ticking))
    return ticking


def _timed(clock: Clock) -> Any:
    from mixwright.measure.room import complete_freely

    return lambda learner, items, most, seconds: complete_freely(learner, items, most, seconds, clock)


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("before", "after")):
        model(seed).save_pretrained(folder / name)
        tokenizer().save_pretrained(folder / name)
    return folder


def measured(folder: str) -> Any:
    return read_yaml(Path(folder, "run.yaml"), RunConfig).measure


@pytest.mark.parametrize(("pace", "most"), [(1.0, 60), (0.1, 400)])
def test_measuring_takes_its_budget_and_writes_nothing_twice(
    call: Call, clock: Clock, checkpoints: Path, pace: float, most: int
) -> None:
    """One second for each of 90 items and 60 in all; or quick items in batches that cost four seconds each."""
    clock.per_completion, clock.per_call = pace, 4.0 * (pace < 1)
    rows = write("a.jsonl", [{"task": "t", "prompt": f"{n}+1=", "answer": f"{n + 1}"} for n in range(900)])
    command = ("measure", str(checkpoints / "before"), "--eval", rows, "--grader", "exact", "--max-new-tokens", "4")
    code, _, err = call(*command, "--budget", "60s", "--folder", "one")
    assert code == 0, err
    sizes = measured("one")
    assert "budget: " in err
    assert clock.now <= 60
    assert 0.5 * most <= sizes.items <= most
    assert sizes.samples == 0, "the time is for items"
    if pace == 1:
        assert clock.now == sizes.items


@pytest.mark.parametrize(("seconds", "looks"), [(130, 1), (900, 2)])
def test_no_look_is_begun_that_would_end_after_the_budget(
    call: Call, clock: Clock, checkpoints: Path, seconds: int, looks: int
) -> None:
    """Each of two looks takes 60 items of two checkpoints, a second each."""
    rows = write("a.jsonl", [{"task": "t", "prompt": f"{n}+1=", "answer": f"{n + 1}"} for n in range(120)])
    command = ["verdict", "--no-suite", *(str(checkpoints / name) for name in ("before", "after")), "--eval", rows]
    command += ["--grader", "exact", "--max-new-tokens", "4", "--until-decided", "--budget", f"{seconds}s"]
    code, _, err = call(*command)
    assert code == 4, err
    assert f"look {looks} of 2" in err
    assert f"look {looks + 1} of 2, {60 * (looks + 1)} of 120 items: " not in err
    assert ("budget: measuring ends here" in err) == (looks < 2)


def test_a_budget_under_what_a_cell_needs_is_refused_with_what_it_needs(call: Call, clock: Clock, checkpoints: Path) -> None:
    clock.now = 2.0  # loading took longer than the budget
    rows = write("a.jsonl", [{"task": f"t{n % 9}", "prompt": f"{n}+1=", "answer": f"{n + 1}"} for n in range(90)])
    code, _, err = call("measure", str(checkpoints / "before"), "--eval", rows, "--grader", "exact", "--budget", "1s")
    assert code == 1
    assert "expected a budget of about" in err
    assert "8 items per task and level" in err


def test_items_and_budget_contradict_each_other(call: Call, checkpoints: Path) -> None:
    rows = write("a.jsonl", [{"task": "t", "prompt": "1+1=", "answer": "2"}])
    code, _, err = call("measure", str(checkpoints / "before"), "--eval", rows, "--items", "3", "--budget", "5m")
    assert code == 1
    assert "--items or --budget" in err


def test_rows_that_are_only_read_are_timed_by_reading_a_few(
    call: Call, checkpoints: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "BEGAN", budgets.monotonic())  # not when the tests began
    words = ["one", "two", "six", "ten"]
    prose = [" ".join(random.Random(n).choices(words, k=6)) for n in range(90)]
    rows = write("a.jsonl", [{"task": "t", "prompt": f"{n}+1=", "completion": prose[n]} for n in range(90)])
    paths = [str(checkpoints / name) for name in ("before", "after")]
    code, _, err = call("verdict", "--no-suite", *paths, "--eval", rows, "--budget", "5m", "--folder", "read", "--no-gate")
    assert code == 0, err
    assert "90 of 90 items fit" in err
    assert measured("read").items == 90


def test_what_is_sampled_for_an_item_does_not_depend_on_the_others_in_a_budget() -> None:
    from mixwright.config import MeasureConfig
    from mixwright.corpus import Corpus
    from mixwright.measure.passes import Passes
    from mixwright.records import Example

    rows = [Example(f"i{n}", "t", f"{n}+1=", answer="2") for n in range(20)]
    corpus, one = Corpus.from_examples(rows), Learner(model().eval(), tokenizer(), "chars")
    config = MeasureConfig(items=5, samples=2, max_new_tokens=4)
    few = Passes(one, config, corpus, 3, nested=True).rollouts
    many = Passes(one, replace(config, items=20), corpus, 3, nested=True).rollouts
    assert len(few) == 5
    for name, found in few.items():
        drawn, drawn_among_more = ([(one.text, one.finished) for one in side.samples] for side in (found, many[name]))
        assert sorted(drawn) == sorted(drawn_among_more)


def test_the_half_width_is_that_of_a_share_of_one_half() -> None:
    assert half_width(100) == pytest.approx(0.098)

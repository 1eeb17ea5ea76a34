"""Budgets of a run: sizes that fit into a time, and seeds that are trained as long as they do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_call import Call, sums, write
from hypothesis import given
from hypothesis import strategies as st

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.errors import InputError
from mixwright.records import to_data
from mixwright.run.folder import read_yaml, write_text, yaml_text
from mixwright.trial.deadline import Deadline, seeds_that_fit, train_within
from mixwright.trial.jobs import Trial

SFT = RunConfig(
    CorpusConfig("train.jsonl"),
    ModelConfig("some/model"),
    MeasureConfig(items=40, samples=8, max_new_tokens=16),
    train=TrainConfig("sft", steps=100, prompts=16),
    trial=TrialConfig(workers=2, seeds=8),
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Tried:
    """A trial whose seeds take a time each, and nothing else."""

    def __init__(self, clock: Clock, seconds: float, config: RunConfig, done: int = 0) -> None:
        self.clock, self.seconds, self.config, self.known = clock, seconds, config, {"seeds": done}
        self.worker_count = config.trial.workers

    def arm_jobs(self, arms: Any) -> list[int]:
        return [seed for seed in range(self.config.trial.seeds) for _ in arms]

    def unfinished(self, jobs: list[int]) -> list[int]:
        return [seed for seed in jobs if seed >= self.known["seeds"]]

    def train(self, jobs: list[int], title: str) -> None:
        seeds = len({*self.unfinished(jobs)})
        self.clock.now += self.seconds * seeds
        self.known["seeds"] += seeds


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Seeds that are trained of `wanted` in so many minutes, where each takes so many seconds."""

    def with_seeds(trial: Tried, seeds: int) -> Tried:
        other = Tried(trial.clock, trial.seconds, replace(trial.config, trial=replace(trial.config.trial, seeds=seeds)))
        other.known = trial.known
        return other

    monkeypatch.setattr("mixwright.trial.deadline.with_seeds", with_seeds)

    def trained(minutes: float, seconds: float, wanted: int = 8, *, done: int = 0, spent: float = 0.0) -> Any:
        clock, lines = Clock(), list[str]()
        deadline = Deadline(minutes, clock=clock)
        clock.now = spent
        config = replace(SFT, trial=replace(SFT.trial, seeds=wanted))
        arms = ("frozen", "uniform", "equal_shares", "steered")
        trial, notes = train_within(Tried(clock, seconds, config, done), arms, deadline, lines.append)  # type: ignore[arg-type]
        return SimpleNamespace(seeds=trial.config.trial.seeds, spent=deadline.seconds_spent, notes=notes, lines=lines)

    return trained


def test_all_seeds_are_trained_where_they_fit_and_nothing_is_said(limited: Any) -> None:
    found = limited(minutes=10, seconds=75)
    assert (found.seeds, found.notes) == (8, [])
    assert found.spent == 600


def test_seeds_that_do_not_fit_are_left_out_whole_and_it_is_said(limited: Any) -> None:
    found = limited(minutes=10, seconds=100)
    assert found.seeds == 6
    assert found.spent <= 600
    assert "6 seeds instead of 8" in found.notes[0]
    assert "budget" in found.notes[0]


def test_time_that_is_left_buys_more_seeds_twice_as_many_at_most(limited: Any) -> None:
    assert limited(minutes=10, seconds=50).seeds == 12
    assert limited(minutes=10, seconds=50, wanted=4).seeds == 8
    assert limited(minutes=100, seconds=1).seeds == 16


def test_the_fifth_seed_may_end_late_and_no_sixth(limited: Any) -> None:
    found = limited(minutes=10, seconds=130)
    assert found.seeds == 5, "650 s of 600: fewer than five seeds would allow no word"
    assert limited(minutes=10, seconds=300).seeds == 2, "and 750 s would be too late"


@given(st.floats(1, 400), st.integers(1, 12), st.integers(0, 8), st.integers(1, 4), st.integers(1, 8))
def test_what_is_begun_ends_within_a_quarter_of_the_budget(
    pace: float, wanted: int, done: int, arms: int, workers: int
) -> None:
    deadline = Deadline(10, clock=Clock())
    deadline.seed_seconds = pace
    seeds = seeds_that_fit(deadline, finished=done, planned=wanted, arms=arms, workers=workers)
    assert 0 <= seeds <= workers
    if done and seeds:
        assert deadline.allows(seeds * arms, arms=arms, workers=workers, late_share=0.2)


def test_settings_are_written_with_the_budget(call: Call) -> None:
    code, _, err = call("run", write("rows.jsonl", sums(80)), "--init", "--budget", "15m")
    assert code == 0, err
    assert read_yaml(Path("run.yaml"), RunConfig).trial.budget_minutes == 15


def test_no_seed_is_begun_where_the_time_is_used_up_and_a_finished_one_is_kept(limited: Any) -> None:
    with pytest.raises(InputError, match=r"a budget of about 10 min or more, plus time for one seed of every arm"):
        limited(minutes=5, seconds=30, spent=600)
    assert limited(minutes=5, seconds=30, spent=600, done=2).seeds == 2, "both stand, and no other is begun"
    assert limited(minutes=5, seconds=30, spent=299).seeds == 2, "begun in time, one for each of two workers"


def test_a_trial_of_a_budget_trains_whole_seeds(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, train = Clock(), Trial.train

    def train_for_100_seconds(trial: Trial, jobs: Any, title: str = "trial") -> None:
        train(trial, jobs, title)
        clock.now += 100

    monkeypatch.setattr("mixwright.trial.deadline.Deadline", partial(Deadline, clock=clock))
    monkeypatch.setattr("mixwright.verbs.budget.BEGAN", 0.0)
    monkeypatch.setattr(Trial, "train", train_for_100_seconds)
    assert call("run", write("rows.jsonl", sums(80)), "--init", "--output", "tiny.yaml")[0] == 0
    config = read_yaml(Path("tiny.yaml"), RunConfig)
    small = replace(
        config,
        model=replace(config.model, width=16, depth=1, heads=2, warmup=None),
        measure=replace(config.measure, items=8, samples=2, probes=("competence",)),
        train=replace(config.train, steps=2, prompts=4, generations=2),
        trial=replace(config.trial, arms=("uniform", "equal_shares"), nulls=(), seeds=3, workers=1),
    )
    write_text(Path("tiny.yaml"), yaml_text(to_data(small)))
    clock.now = 200.0
    code, _, err = call("run", "tiny.yaml", "--budget", "150s")
    assert code == 1
    assert "expected a budget of about 3 min or more, plus time for one seed of every arm" in err.splitlines()[-1]
    assert not list(Path("runs/tiny/trial").glob("*/branch.json")), "no branch was begun"
    clock.now = 0.0
    code, _, err = call("run", "tiny.yaml", "--budget", "110s")
    assert code == 0, err
    assert "1 seeds instead of 3" in err or "1 seed instead of 3" in err
    branches = sorted(path.name for path in Path("runs/tiny/trial").iterdir() if (path / "branch.json").is_file())
    assert {name.rpartition("-")[2] for name in branches} == {"0"}, "one whole seed"
    assert len(branches) == 3
    assert "instead of 3" in Path("runs/tiny/verdict.html").read_text(encoding="utf-8")

"""Budgets of a run: sizes that fit into a time, and seeds that are trained as long as they do."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
from cli_call import Call, sums, write
from hypothesis import given
from hypothesis import strategies as st

from mixwright.cli import run_budget
from mixwright.cli.budget import Budget
from mixwright.cli.run_budget import ShortTrainings
from mixwright.config import CorpusConfig, MeasureConfig, MineConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.conformance import samples
from mixwright.errors import InputError
from mixwright.mine.miners.pruning import Pruning
from mixwright.records import to_data
from mixwright.run.folder import RunFolder, read_json, read_yaml, write_text, yaml_text
from mixwright.trial.costs import branch_seconds, makespan, stage_seconds
from mixwright.trial.deadline import SPENT_FILE, Deadline, Spent, estimate_seconds, seeds_that_fit, train_within
from mixwright.trial.dry_run import Timing, mean_timing, timed_prompts
from mixwright.trial.fitting import HeldOutCounts, fit_run, shortest_budget_seconds
from mixwright.trial.jobs import Trial

TIMING = Timing(
    greedy_seconds=1.0, sample_seconds=0.5, step_seconds=4.0, load_seconds=5.0, setup_seconds=3.0, start_seconds=10.0
)
SFT = RunConfig(
    CorpusConfig("train.jsonl"),
    ModelConfig("some/model"),
    MeasureConfig(items=40, samples=8, max_new_tokens=16),
    train=TrainConfig("sft", steps=100, prompts=16),
    trial=TrialConfig(workers=2, seeds=8),
)
Timings = dict[str | None, tuple[RunConfig, Timing]]
DATA = HeldOutCounts([("a", 60), ("b", 60), ("c", 30)], arms=3)


def test_a_branch_costs_loading_training_and_measuring() -> None:
    trained, untrained = branch_seconds(SFT, TIMING, items=20)
    assert untrained == 5 + 20 * (1 + 8 * 0.5)
    assert trained == 2 * 5 + 3 + 100 * 4 + 100
    grpo = replace(SFT, train=replace(SFT.train, objective="grpo"), trial=replace(SFT.trial, progress_every=25))
    assert branch_seconds(grpo, TIMING, items=20)[0] == trained + 5 * 20, "five evaluations of twenty items"


@given(st.lists(st.floats(0.1, 50), min_size=1, max_size=12), st.integers(1, 4))
def test_the_longest_jobs_first_end_between_the_bounds(seconds: list[float], workers: int) -> None:
    found = makespan(seconds, workers)
    least = max(max(seconds), sum(seconds) / workers)
    assert least * 0.999 <= found <= (4 / 3) * least + 1e-6 + max(seconds) / 3, "Graham 1969"
    assert makespan(seconds, 1) == pytest.approx(sum(seconds))


def test_stages_are_told_one_by_one_and_by_the_workers_there_are() -> None:
    parts = dict(stage_seconds(SFT, TIMING, items=20, arms=3, rehearsed=10))
    assert parts["start"] == 10 + 5 + 10
    assert parts["measure"] == 105
    trained, untrained = branch_seconds(SFT, TIMING, 20)
    assert parts["trial"] == pytest.approx(12 * trained + 4 * untrained)
    assert "warm-up" not in parts


@pytest.mark.parametrize(
    ("objective", "parameter_count", "sample_seconds", "prompts"),
    [
        ("grpo", 1_000_000, 9.0, 8),  # a small model: the whole step
        ("grpo", 135_000_000, 0.0, 4),  # not known
        ("grpo", 135_000_000, 0.25, 2),  # 8 completions of .25 s are 2 s a prompt
        ("grpo", 135_000_000, 9.0, 1),
        ("sft", 135_000_000, 9.0, 4),
    ],
)
def test_a_timed_step_has_as_many_prompts_as_there_is_time_for(
    objective: str, parameter_count: int, sample_seconds: float, prompts: int
) -> None:
    assert timed_prompts(TrainConfig(objective, prompts=8, generations=8), parameter_count, sample_seconds) == prompts


def test_the_mean_of_timings_keeps_counts_whole() -> None:
    found = mean_timing(
        [replace(TIMING, timed_items=16, timed_steps=3), replace(TIMING, greedy_seconds=3.0, timed_items=2, timed_steps=4)]
    )
    assert (found.greedy_seconds, found.timed_items, found.timed_steps) == (2.0, 9, 3)


@pytest.mark.parametrize("hours", [0.6, 1, 3, 10])
def test_what_fits_costs_no_more_than_it_may_and_more_time_sees_no_less(hours: float) -> None:
    timings: Timings = {None: (SFT, TIMING)}
    found, more = fit_run(timings, DATA, 3600 * hours), fit_run(timings, DATA, 7200 * hours)
    assert found is not None
    assert more is not None
    assert found.seconds <= 0.92 * 3600 * hours
    assert found.config.trial.seeds >= 5
    assert found.items >= 40
    assert more.config.train.steps >= found.config.train.steps
    if more.config.train.steps == found.config.train.steps:
        assert more.detectable is not None
        assert found.detectable is not None
        assert more.detectable <= found.detectable


def test_a_time_that_is_too_short_fits_nothing_and_the_least_that_fits_is_told() -> None:
    timings: Timings = {None: (SFT, TIMING)}
    least = shortest_budget_seconds(timings, DATA)
    assert fit_run(timings, DATA, least * 1.001) is not None
    assert fit_run(timings, DATA, least * 0.999) is None


def test_what_trains_more_steps_in_the_same_time_is_taken() -> None:
    lora = replace(SFT, train=replace(SFT.train, adapter="lora"))
    quick, slow = replace(TIMING, step_seconds=1.0), replace(TIMING, step_seconds=9.0)
    for of_lora, of_all, adapter in ((quick, slow, "lora"), (slow, quick, None)):
        found = fit_run({"lora": (lora, of_lora), None: (SFT, of_all)}, DATA, 3600)
        assert found is not None
        assert found.config.train.adapter == adapter


def test_a_plan_for_rewards_keeps_the_samples_that_it_reads() -> None:
    grpo = replace(SFT, train=replace(SFT.train, objective="grpo"))
    timings: Timings = {None: (grpo, TIMING)}
    found = fit_run(timings, DATA, shortest_budget_seconds(timings, DATA) * 1.01)
    assert found is not None
    assert found.config.measure.samples >= 4


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
def limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Seeds that are trained of `wanted` in so many minutes, where each takes so many seconds."""

    def with_seeds(trial: Tried, seeds: int) -> Tried:
        other = Tried(trial.clock, trial.seconds, replace(trial.config, trial=replace(trial.config.trial, seeds=seeds)))
        other.known = trial.known
        return other

    monkeypatch.setattr("mixwright.trial.deadline.with_seeds", with_seeds)

    def trained(
        minutes: float, seconds: float, wanted: int = 8, *, done: int = 0, spent: float = 0.0, name: str = "run"
    ) -> Any:
        clock, lines = Clock(), list[str]()
        run = RunFolder(tmp_path / name)
        run.path.mkdir(exist_ok=True)
        deadline = Deadline(minutes, run, clock=clock)
        clock.now = spent
        config = replace(SFT, trial=replace(SFT.trial, seeds=wanted))
        arms = ("frozen", "uniform", "equal_shares", "steered")
        trial, notes = train_within(Tried(clock, seconds, config, done), arms, deadline, lines.append)  # type: ignore[arg-type]
        return SimpleNamespace(
            seeds=trial.config.trial.seeds, spent=deadline.seconds_spent, notes=notes, lines=lines, run=run
        )

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
    assert "did not fit" in found.notes[0]


def test_time_that_is_left_buys_more_seeds_twice_as_many_at_most(limited: Any) -> None:
    assert limited(minutes=10, seconds=50).seeds == 12
    assert limited(minutes=10, seconds=50, wanted=4, name="few").seeds == 8
    assert limited(minutes=100, seconds=1, name="quick").seeds == 16


def test_the_fifth_seed_may_end_late_and_no_sixth(limited: Any) -> None:
    found = limited(minutes=10, seconds=130)
    assert found.seeds == 5, "650 s of 600: fewer than five seeds would allow no word"
    assert limited(minutes=10, seconds=300, name="slow").seeds == 2, "and 750 s would be too late"


@given(st.floats(1, 400), st.integers(1, 12), st.integers(0, 8), st.integers(1, 4), st.integers(1, 8))
def test_what_is_begun_ends_within_a_quarter_of_the_budget(
    pace: float, wanted: int, done: int, arms: int, workers: int
) -> None:
    deadline = SimpleNamespace(seed_seconds=pace, seconds_left=600.0, seconds=600.0)
    seeds = seeds_that_fit(deadline, finished=done, planned=wanted, arms=arms, workers=workers)  # type: ignore[arg-type]
    assert 0 <= seeds <= workers
    if done and seeds:
        assert estimate_seconds(deadline, seeds * arms, arms=arms, workers=workers) <= 1.2 * 600  # type: ignore[arg-type]


def test_who_was_stopped_goes_on_with_the_rest_of_the_time(tmp_path: Path) -> None:
    run, clock = RunFolder(tmp_path), Clock()
    first = Deadline(10, run, clock=clock)
    clock.now = 200.0
    first.seed_seconds = 33.0
    first.save()
    clock.now = 5000.0
    again = Deadline(10, run, clock=clock)
    assert (again.seconds_spent, again.seconds_left, again.seed_seconds) == (200.0, 400.0, 33.0)
    (tmp_path / SPENT_FILE).write_text("{")
    assert Deadline(10, run, clock=clock).seconds_spent == 0, "a file that was cut"
    again.finish()
    assert not (tmp_path / SPENT_FILE).exists()
    assert Deadline(0, run, clock=clock).seconds_left == float("inf")
    Deadline(0, run, clock=clock).save()
    assert not (tmp_path / SPENT_FILE).exists()


def test_a_run_is_written_for_a_budget_and_ends_with_whole_seeds(call: Call) -> None:
    rows = [{**row, "task": f"t{place % 2}"} for place, row in enumerate(sums(80))]
    code, _, err = call("run", write("rows.jsonl", rows), "--init", "--budget", "15m")
    assert code == 0, err
    written = read_yaml(Path("run.yaml"), RunConfig)
    assert written.trial.budget_minutes == 15
    assert written.trial.seeds >= 5
    text = " ".join(Path("run.yaml").read_text(encoding="utf-8").replace("# ", "").split())
    assert "would see" in text
    assert "Twice the time" in text
    Path("run.yaml").unlink()
    code, _, err = call("run", "rows.jsonl", "--init", "--budget", "2s")
    assert code == 1
    assert "expected a budget of" in err
    assert not Path("run.yaml").exists()


def test_no_seed_is_begun_where_the_time_is_used_up_and_a_finished_one_is_kept(limited: Any) -> None:
    with pytest.raises(InputError, match=r"a budget of about 10 min or more, and time for one seed of every arm beside"):
        limited(minutes=5, seconds=30, spent=600)
    assert limited(minutes=5, seconds=30, spent=600, done=2, name="done").seeds == 2, "both stand, and no other is begun"
    assert limited(minutes=5, seconds=30, spent=299, name="last").seeds == 2, "begun in time, one for each of two workers"


def test_a_trial_of_a_budget_trains_whole_seeds_and_keeps_what_it_spent(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, train = Clock(), Trial.train

    def train_for_100_seconds(trial: Trial, jobs: Any, title: str = "trial") -> None:
        train(trial, jobs, title)
        clock.now += 100

    monkeypatch.setattr("mixwright.trial.deadline.Deadline", partial(Deadline, clock=clock))
    monkeypatch.setattr("mixwright.cli.budget.BEGAN", 0.0)
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
    assert "expected a budget of about 3 min or more, and time for one seed of every arm beside that" in err.splitlines()[-1]
    assert not list(Path("runs/tiny/trial").glob("*/branch.json")), "no branch was begun"
    assert read_json(Path("runs/tiny", SPENT_FILE), Spent).seconds == 200
    clock.now = 0.0
    code, _, err = call("run", "tiny.yaml", "--budget", "310s")
    assert code == 0, err
    assert "1 seeds instead of 3" in err or "1 seed instead of 3" in err
    branches = sorted(path.name for path in Path("runs/tiny/trial").iterdir() if (path / "branch.json").is_file())
    assert {name.rpartition("-")[2] for name in branches} == {"0"}, "one whole seed"
    assert len(branches) == 3
    assert not Path("runs/tiny", SPENT_FILE).exists(), "the run is finished"
    assert "instead of 3" in Path("runs/tiny/verdict.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("seconds", "steps"),
    [(28 * 100 * 0.5, 100), (28 * 40 * 0.5 + 1, 40), (28 * 20 * 0.5, 20), (28 * 20 * 0.5 - 1, None)],
)
def test_short_trainings_have_as_many_steps_as_fit_and_never_fewer_than_tell_anything(
    seconds: float, steps: int | None
) -> None:
    assert ShortTrainings(28, 100, 0.5).most_steps(seconds) == steps


def test_a_miner_that_trains_nothing_fits_any_time_and_one_of_few_steps_keeps_them() -> None:
    assert ShortTrainings(0, 0, 0.5).most_steps(0.0) == 0
    assert ShortTrainings(4, 7, 1.0).most_steps(28.0) == 7
    assert ShortTrainings(4, 7, 1.0).most_steps(27.0) is None


def test_pruning_says_how_many_short_trainings_it_makes() -> None:
    assert Pruning(keep=0.3, runs=4).count_trainings() == 4 * (1 + 3 * 2), "all rows; three ends at 30 % and at 50 %"
    assert Pruning(keep=0.5, runs=2).count_trainings() == 2 * (1 + 3), "the other fraction is the same"
    assert Pruning(keep=0.5, end="easy").count_trainings() == 0
    assert Pruning(keep=1.0).count_trainings() == 0, "there is nothing to choose"


def test_mining_that_is_tried_chooses_sizes_for_its_budget_or_says_what_it_needs(call: Call) -> None:
    rows = [{"task": f"t{n % 2}", "prompt": f"{n}+1=", "completion": str(n + 1)} for n in range(160)]
    assert call("run", write("rows.jsonl", rows), "--init", "--output", "tiny.yaml")[0] == 0
    config = read_yaml(Path("tiny.yaml"), RunConfig)
    small = replace(config, model=replace(config.model, width=16, depth=1, heads=2, warmup=None))
    write_text(Path("tiny.yaml"), yaml_text(to_data(small)))
    code, _, err = call("mine", "tiny.yaml", "--miner", "pruning", "--keep", "0.3", "--try", "--budget", "3s")
    assert code == 1
    assert "for 28 short trainings of 20 steps and a trial that can say something, got about 3 s" in err
    assert not Path("runs/tiny/scan").exists(), "nothing was scanned"


def test_a_budget_of_mining_changes_sizes_alone_and_a_begun_folder_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed: list[int] = []

    def time_alike(configs: dict[str | None, RunConfig], relative_to: Path) -> Timings:
        timed.append(len(configs))
        return {name: (config, replace(TIMING, step_seconds=0.5)) for name, config in configs.items()}

    monkeypatch.setattr(run_budget, "_time_configs", time_alike)
    monkeypatch.setattr(run_budget, "held_out_data", lambda settings, corpus: DATA)
    monkeypatch.setattr(run_budget, "read_corpus", lambda corpus, relative_to: samples.minable())
    adapters = {"lora": {"rank": 4}}
    train = replace(SFT.train, adapter="lora", adapters=adapters, learning_rate=3e-4)
    mine = MineConfig(options={"pruning": {"steps": 90, "runs": 2}})
    trial = replace(SFT.trial, data="pruning", budget_minutes=60)
    settings, run = replace(SFT, train=train, mine=mine, trial=trial), RunFolder(tmp_path)
    budget = Budget(3600.0, monotonic())
    sized = run_budget.fit_mining(settings, run, tmp_path, "pruning", 0.5, budget)
    assert (sized.train.adapter, sized.train.learning_rate, sized.train.adapters) == ("lora", 3e-4, adapters)
    assert sized.mine.options["pruning"] == {"steps": 90, "runs": 2}, "8 trainings of 90 steps fit into 24 minutes"
    assert sized.trial.data == "pruning"
    short = run_budget.fit_mining(settings, run, tmp_path, "pruning", 0.5, Budget(800.0, monotonic() + 2000))
    assert short.mine.options["pruning"] == {"steps": 80, "runs": 2}, "320 s are 8 trainings of 80 steps of 0.5 s"
    write_text(tmp_path / "run.yaml", yaml_text(to_data(sized)))
    timed.clear()
    assert run_budget.fit_mining(settings, run, tmp_path, "pruning", 0.5, budget) == sized
    assert timed == [], "the sizes of the folder are taken"
    other = replace(settings, train=replace(train, learning_rate=1e-4))
    assert run_budget.fit_mining(other, run, tmp_path, "pruning", 0.5, budget).train.learning_rate == 1e-4
    assert timed == [2], "other settings are no run that goes on"

"""Trials over data: mined rows against all rows and as many random ones, from the table to the advice."""

import dataclasses
import random
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from trial_parts import start_run, try_folder

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.corpus import Corpus
from mixwright.corpus.identity import build_table
from mixwright.errors import InputError
from mixwright.learner.load import load_learner
from mixwright.records import Example, Plan, Stage, TrialResult
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder, read_json, write_plan, write_table
from mixwright.run.workers import Job, Workers
from mixwright.trial.arm_roles import assign_roles, choose_arms
from mixwright.trial.data_rows import choose_rows, data_notes, data_path, read_data, repeat_to_fill, restrict_plan
from mixwright.trial.selection import format_selection
from mixwright.trial.stage import checked_plan, checked_trial
from mixwright.verbs import run as running

STEPS, ROWS, BATCH = 40, 240, 16
CONFIG = RunConfig(
    CorpusConfig("unused"),
    ModelConfig(width=32, depth=1, heads=2, vocabulary=264),
    MeasureConfig(items=24, samples=1, max_new_tokens=2, probes=("competence", "held_out_loss")),
    train=TrainConfig("sft", STEPS, BATCH, learning_rate=8e-3, settings={"max_length": 32}),
    trial=TrialConfig(seeds=5, workers=1, data="clean"),
)
SMALLEST = dataclasses.replace(CONFIG.model, width=16)


def last_digits(rng: random.Random) -> tuple[Corpus, list[str]]:
    """Rows whose target is the last digit of the prompt, of training rows in four of ten; and the ids of these."""
    rows, clean = [], []
    for number in range(ROWS + 48):
        held_out, value = number >= ROWS, rng.randrange(1000)
        gold, right = str(value % 10), held_out or rng.random() < 0.4
        target = gold if right else str(rng.randrange(10))
        split = "eval" if held_out else "train"
        rows.append(Example(f"r{number}", "last", f"{value:03d} = ", target=target, answer=gold, split=split))
        if right and not held_out:
            clean.append(f"r{number}")
    return Corpus.from_examples(rows), clean


def write_selection(path: Path, ids: list[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": ids, "reason": ["by hand"] * len(ids)}), path)
    return path


def two_tasks() -> Corpus:
    rows = [Example(f"a{n}", "a", f"a {n} = ", target=str(n), answer=str(n)) for n in range(30)]
    rows += [Example(f"b{n}", "b", f"b {n} = ", target=str(n), answer=str(n)) for n in range(10)]
    rows += [Example(f"e{n}", "a", f"e {n} = ", target=str(n), answer=str(n), split="eval") for n in range(6)]
    return Corpus.from_examples(rows)


def plan_of(weights: dict[str, float]) -> Plan:
    return Plan("by hand", (Stage("main", "sft", STEPS, weights),))


def test_random_rows_are_as_many_of_each_task_and_others_for_every_seed(tmp_path: Path) -> None:
    corpus = two_tasks()
    data = read_data(write_selection(tmp_path / "x.parquet", ["a1", "a2", "a3", "b7"]), corpus)
    assert choose_rows("mined", corpus, data, 5).table["id"].to_pylist() == ["a1", "a2", "a3", "b7"]
    assert len(choose_rows("all", corpus, data, 5)) == 40
    drawn = [choose_rows("random_like", corpus, data, seed).table for seed in range(40)]
    assert all(Counter(table["task"].to_pylist()) == {"a": 3, "b": 1} for table in drawn)
    assert choose_rows("random_like", corpus, data, 0).table.equals(drawn[0])
    ids = Counter(name for table in drawn for name in table["id"].to_pylist())
    assert len(ids) > 30  # of 40 rows, each expected in 4 of 40 draws
    assert not any(name.startswith("e") for name in ids)


def test_rows_that_fill_no_batch_are_repeated_whole(tmp_path: Path) -> None:
    corpus = two_tasks()
    rows = choose_rows("mined", corpus, read_data(write_selection(tmp_path / "x.parquet", ["a1", "a2", "b1"]), corpus), 0)
    assert len(repeat_to_fill(rows, 3)) == 3
    many = repeat_to_fill(rows, 8).table["id"].to_pylist()
    assert Counter(name.partition("~")[0] for name in many) == {"a1": 3, "a2": 3, "b1": 3}
    assert len(set(many)) == 9


def test_the_plan_keeps_its_weights_over_the_tasks_that_have_rows(tmp_path: Path) -> None:
    corpus, plan = two_tasks(), plan_of({"a": 0.5, "b": 0.5})
    data = read_data(write_selection(tmp_path / "x.parquet", ["a1", "a2"]), corpus)
    plan = dataclasses.replace(plan, stages=(dataclasses.replace(plan.stages[0], rehearse=("b",)),))
    (kept,) = restrict_plan(plan, choose_rows("mined", corpus, data, 0).cells()).stages
    assert (kept.weights, kept.rehearse) == ({"a": 1.0}, ())
    notes = " ".join(data_notes(data, corpus, plan))
    assert "a 2 of 30, b 0 of 10" in notes
    assert "No rows of b " in notes


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"id": ["a1", "e1"]}, "arms are judged on the held-out rows"),
        ({"id": ["a1", "a1"]}, "each id once"),
        ({"id": ["a1", "a2"], "weight": [1.0, 2.0]}, "rows that count the same"),
        ({"id": pa.array([], pa.string())}, "selected rows, got none"),
        ({"name": ["a1"]}, "a column id"),
    ],
)
def test_tables_of_no_use_are_refused(tmp_path: Path, columns: dict[str, Any], words: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=words):
        read_data(tmp_path / "x.parquet", two_tasks())


def test_new_rows_are_checked_and_their_null_is_random_rows_or_the_miners_own(tmp_path: Path) -> None:
    corpus = two_tasks()
    made = Corpus.from_examples([Example(f"m{n}", "b", f"new {n} = ", target="1", answer="1") for n in range(4)])
    pq.write_table(made.table, tmp_path / "made.parquet")
    data = read_data(tmp_path / "made.parquet", corpus)
    assert (len(data.mined), len(choose_rows("mined", corpus, data, 0))) == (4, 4)
    assert Counter(choose_rows("random_like", corpus, data, 0).table["task"].to_pylist()) == {"b": 4}
    pq.write_table(made.table.slice(0, 2), tmp_path / "made.random_like.parquet")
    assert choose_rows("random_like", corpus, read_data(tmp_path / "made.parquet", corpus), 0).table["id"].to_pylist() == [
        "m0",
        "m1",
    ]
    for example, words in (
        (Example("m9", "b", "E 3 =", target="1"), "not held out"),
        (Example("m9", "c", "new", target="1"), "a task of the corpus"),
    ):
        pq.write_table(Corpus.from_examples([example]).table, tmp_path / "bad.parquet")
        with pytest.raises(InputError, match=words):
            read_data(tmp_path / "bad.parquet", corpus)


def test_rows_of_a_simple_rule_beside_the_table_are_an_arm_of_their_own(tmp_path: Path) -> None:
    corpus, run = two_tasks(), RunFolder(tmp_path)
    config = dataclasses.replace(CONFIG, trial=TrialConfig(data="x"))
    data = read_data(write_selection(tmp_path / "mine" / "x.parquet", ["a1", "a2"]), corpus)
    assert "simple_rule" not in data.rows_by_kind
    assert choose_arms(config, run).references == ("frozen", "all", "random_like")
    beside = write_selection(tmp_path / "mine" / "x.simple_rule.parquet", ["b1", "b2", "b3"])
    ruled = read_data(tmp_path / "mine" / "x.parquet", corpus)
    arms = choose_arms(config, run)
    assert (arms.references, arms.levers) == (("frozen", "all", "random_like", "simple_rule"), ("mined",))
    assert choose_rows("simple_rule", corpus, ruled, 0).table["id"].to_pylist() == ["b1", "b2", "b3"]
    assert choose_rows("mined", corpus, ruled, 0).table["id"].to_pylist() == ["a1", "a2"]
    kinds = ("mined", "random_like")
    assert [ruled.digest_of_rows(kind) for kind in kinds] == [data.digest_of_rows(kind) for kind in kinds], (
        "finished ones stay"
    )
    write_selection(beside, ["e1"])
    with pytest.raises(InputError, match="ids of training rows"):
        read_data(tmp_path / "mine" / "x.parquet", corpus)


def test_arms_of_a_trial_over_data_are_these_four_and_no_others() -> None:
    arms = assign_roles(TrialConfig(data="pruning"))
    assert (arms.references, arms.levers, arms.nulls) == (("frozen", "all", "random_like"), ("mined",), ())
    with pytest.raises(InputError, match=r"trial\.data for the arm mined"):
        assign_roles(TrialConfig(arms=("uniform", "mined")))


def test_all_rows_are_those_that_a_plan_rehearses_too(tmp_path: Path) -> None:
    """What is checked is what is trained on: a row to rehearse that has no completion is refused before anything trains."""
    kept = [Example(f"k{n}", "kept", f"k {n} = ", target=str(n), split="rehearse") for n in range(4)]
    corpus = Corpus.from_examples([*two_tasks(), *kept])
    assert len(choose_rows("all", corpus, None, 0)) == 40
    assert choose_rows("all", corpus, None, 0, ("kept",)).table["id"].to_pylist()[40:] == [row.id for row in kept]
    with pytest.raises(InputError, match=r"trial\.data"):
        choose_rows("mined", corpus, None, 0)
    run = RunFolder(tmp_path)
    stage = Stage("main", "sft", STEPS, {"a": 0.5, "kept": 0.5}, rehearse=("kept",))
    write_plan(run.plan, Plan("by hand", (stage,)))
    write_selection(run.path / "mine" / "clean.parquet", ["a1", "a2"])
    write_table(run.path / "mine" / "rehearsal.parquet", build_table(kept))
    assert checked_trial(CheckedRun(CONFIG, run, corpus)).data is not None
    unanswered = [dataclasses.replace(kept[0], target=None, answer="0")]
    write_table(run.path / "mine" / "rehearsal.parquet", build_table(unanswered))
    for data in ("clean", None):
        config = dataclasses.replace(CONFIG, trial=dataclasses.replace(CONFIG.trial, data=data))
        with pytest.raises(InputError, match="'target' in every training row"):
            checked_trial(CheckedRun(config, run, corpus))


def test_rows_to_rehearse_of_a_plan_by_hand_are_made_before_it_is_trained_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Here(Workers):
        def run(self, jobs: Sequence[Job], **_: Any) -> list[Any]:
            return [job.function(job.argument) for job in jobs]

    def read_kept(corpus: Corpus) -> list[str]:
        return corpus.select(split="rehearse").table["id"].to_pylist()

    kept = [Example(f"k{n}", "kept", f"k {n} = ", target=str(n), split="rehearse") for n in range(4)]
    corpus = Corpus.from_examples([*two_tasks(), *kept])
    stage = Stage("main", "sft", STEPS, {"a": 0.5, "kept": 0.5}, rehearse=("kept",))
    config = dataclasses.replace(CONFIG, trial=dataclasses.replace(CONFIG.trial, data=None))
    monkeypatch.setattr("mixwright.trial.stage.train_branch", lambda job: str(tmp_path / job.arm))
    for verb in ("steer", "trial"):
        checked = CheckedRun(config, start_run(tmp_path / verb, corpus, Plan("by hand", (stage,)), SMALLEST), corpus)
        with pytest.raises(InputError, match=r"`mixwright run RUN.YAML --only steer`, without --dry-run, writes them"):
            checked_plan(checked)
        opened = nullcontext((Here(), checked))
        monkeypatch.setattr(running, "open_with_workers", lambda *_, opened=opened, **__: opened)
        monkeypatch.setattr(running, "run_trial", lambda trial, **_: read_kept(trial.corpus))
        done = getattr(running, verb)(config, tmp_path / verb)
        assert read_kept(checked_plan(checked)[1]) == [row.id for row in kept]
        assert verb == "steer" or done == [row.id for row in kept]


@pytest.mark.slow
def test_grpo_over_data_pays_in_rollouts_and_draws_mined_rows_alone(tmp_path: Path) -> None:
    """One seed of every arm: every branch is charged the same rollouts, and none of `mined` is of another row."""
    rows = [
        Example(f"p{n}", "digits", f"Say {n % 10}: ", answer=str(n % 10), split="train" if n < 8 else "eval")
        for n in range(12)
    ]
    plan = Plan("by hand", (Stage("main", "grpo", 3, {"digits": 1.0}),))
    run = start_run(tmp_path, Corpus.from_examples(rows), plan, SMALLEST)
    write_selection(run.path / "mine" / "few.parquet", ["p1", "p2", "p3"])
    config = dataclasses.replace(
        CONFIG,
        measure=MeasureConfig(items=4, samples=1, max_new_tokens=2, probes=("competence",)),
        train=TrainConfig("grpo", 3, 2, 2, max_new_tokens=2, learning_rate=1e-3),
        trial=TrialConfig(seeds=1, workers=1, data="few"),
    )
    result = try_folder(run, config, progress=lambda *_: None)
    assert result.selection is not None
    assert set(result.selection.trained_on) == {"all", "random_like", "mined"}
    assert len(set(result.selection.trained_on.values())) == 1
    assert min(result.selection.trained_on.values()) >= 3 * 2 * 2
    assert "rollouts" in result.selection.price
    drawn = pq.read_table(run.branch("mined", 0) / "draws.parquet").to_pylist()
    ids = {str(value).partition("~")[0] for row in drawn for value in row.values() if str(value).startswith("p")}
    assert ids
    assert ids <= {"p1", "p2", "p3"}


def test_a_table_that_is_not_there_is_told_how_to_make(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"mixwright mine RUN\.YAML --miner pruning"):
        data_path("pruning", RunFolder(tmp_path))


@pytest.mark.slow
def test_pairs_of_dpo_are_tried_with_both_answers_counted(tmp_path: Path) -> None:
    """One seed of every arm, end to end: what each branch trained on, preferences, and no word."""
    parts = [("train", n) for n in range(8)] + [("eval", n) for n in range(8, 12)]
    rows = [Example(f"p{n}", "pairs", f"Say {n}: ", chosen="yes", rejected="no", split=split) for split, n in parts]
    plan = Plan("by hand", (Stage("main", "dpo", 2, {"pairs": 1.0}),))
    run = start_run(tmp_path, Corpus.from_examples(rows), plan, SMALLEST)
    learner = load_learner(str(run.path / "bases" / "base-0"))
    each = sum(len(learner.tokenizer(text, add_special_tokens=False)["input_ids"]) + 1 for text in ("yes", "no"))
    write_selection(run.path / "mine" / "few.parquet", ["p1", "p2", "p3"])
    config = dataclasses.replace(
        CONFIG,
        measure=MeasureConfig(items=4, probes=("preference",)),
        train=TrainConfig("dpo", 2, 4, learning_rate=1e-3, settings={"max_length": 32}),
        trial=TrialConfig(seeds=1, workers=1, data="few"),
    )
    result = try_folder(run, config, progress=lambda *_: None)
    assert result.selection is not None
    assert result.selection.advice == "too few seeds"
    assert result.selection.trained_on == {"all": 8 * each, "random_like": 8 * each, "mined": 8 * each}
    assert result.decoding == "preference"
    drawn = pq.read_table(run.branch("mined", 0) / "draws.parquet").to_pylist()
    assert {str(value).partition("~")[0] for row in drawn for value in row.values() if str(value).startswith("p")} >= {"p1"}


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunFolder, TrialResult, TrialResult]:
    """Two trials on a corpus of which six of ten training rows have random labels: of the rows with right ones, and of as
    many random rows.
    """
    rng = random.Random(100)
    corpus, clean = last_digits(rng)
    run = start_run(tmp_path_factory.mktemp("data"), corpus, plan_of({"last": 1.0}), CONFIG.model)
    write_selection(run.path / "mine" / "clean.parquet", clean)
    write_selection(run.path / "mine" / "chance.parquet", sorted(rng.sample([f"r{n}" for n in range(ROWS)], len(clean))))
    first = try_folder(run, CONFIG, progress=lambda *_: None)
    assert read_json(run.result, TrialResult) == first
    kept = (run.branch("random_like", 0) / "branch.json").stat().st_mtime_ns
    other = dataclasses.replace(CONFIG, trial=dataclasses.replace(CONFIG.trial, data="chance"))
    second = try_folder(run, other, progress=lambda *_: None)
    assert (run.branch("random_like", 0) / "branch.json").stat().st_mtime_ns == kept, "as many random rows: taken over"
    return run, first, second


@pytest.mark.slow
def test_rows_with_right_labels_beat_as_many_random_ones_and_all(tried: tuple[RunFolder, TrialResult, TrialResult]) -> None:
    _, result, _ = tried
    assert result.selection is not None
    assert result.selection.advice in ("train on it", "fewer rows do")
    assert [(judged.arm, judged.word, judged.proof) for judged in result.judgements] == [
        ("mined", "helps", "beats its nulls")
    ]
    lines = format_selection(result)
    assert lines[0].startswith(f"Train on clean ({result.selection.rows} of {ROWS} rows): success +")
    assert lines[1].startswith("Held-out loss")
    assert "target tokens" in lines[2]
    # 40 steps of 16 rows, a digit and an end token each
    assert {*result.selection.trained_on.values()} == {2 * STEPS * BATCH}
    assert f"15 trainings, {15 * STEPS} steps, {15 * 2 * STEPS * BATCH:,} target tokens" in lines[3]
    losses = {
        effect.against: effect.difference for effect in result.effects if (effect.arm, effect.name) == ("mined", "loss")
    }
    assert set(losses) == {"frozen", "all", "random_like"}
    assert losses["random_like"].high < 0, "held-out loss stands beside success, and falls"
    tokens = {(row.arm, row.value) for row in result.rows if row.name == "target_tokens"}
    assert tokens == {(arm, 2 * STEPS * BATCH) for arm in ("all", "random_like", "mined")}


@pytest.mark.slow
def test_a_random_selection_is_refused_with_the_reason(tried: tuple[RunFolder, TrialResult, TrialResult]) -> None:
    _, _, result = tried
    assert result.selection is not None
    assert result.selection.advice == "not recommended"
    assert result.judgements[0].word != "helps"
    assert np.isfinite(list(result.selection.trained_on.values())).all()

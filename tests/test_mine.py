"""Mining: what is chosen, what is put back, what changed in the mix, and the files; by hand."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import plugin_samples as samples
import pyarrow.parquet as pq
import pytest
from cli_call import Call, sums, write
from made_scans import write_scan

from mixwright.catalog import create
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.prompt_form import PromptForm
from mixwright.mine.choosing import TrainRows, check_row_count, train_rows
from mixwright.mine.job import (
    is_mined,
    mined_from_digest,
)
from mixwright.mine.stage import MIN_TASK_ROWS, mine, summary_of, with_min_rows, write_mined
from mixwright.plan.mined_rows import export_rows, make_record
from mixwright.records import Example, MinedRow, MiningResult, MiningSummary, TaskRows
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder
from mixwright_extras.miners.influence import count_to_keep
from mixwright_extras.scan.table import Scan


@pytest.fixture
def corpus() -> Corpus:
    return samples.minable()


class Fixed:
    """A miner that chooses what it is told."""

    COLUMNS, NEEDS_MODEL = (), False

    def __init__(self, ids: list[str]) -> None:
        self.ids = ids

    def mine(self, *_: Any) -> MiningResult:
        return MiningResult("fixed", tuple(MinedRow(name, "told to") for name in self.ids))


def of_task(corpus: Corpus, task: str) -> list[str]:
    return [example.id for example in corpus if example.task == task and example.split == "train"]


def test_shares_are_of_one_row_at_least() -> None:
    assert [count_to_keep(10, keep) for keep in (0.001, 0.25, 1.0)] == [1, 2, 10]


def test_rows_that_were_not_scanned_are_told(corpus: Corpus, tmp_path: Path) -> None:
    part = Corpus.from_examples(list(corpus)[:60])
    rows = samples.rows_to_choose(part, ())
    _, summary = mine(Fixed(of_task(part, "add")), "fixed", corpus, rows, None)  # type: ignore[arg-type]
    assert any("60 of 96 training rows were scanned" in note for note in summary.notes)


def test_a_scan_of_a_sample_is_not_replaced(corpus: Corpus, tmp_path: Path) -> None:
    run, count = RunFolder(tmp_path), len(corpus)
    wants, has = create("miners", "influence"), create("miners", "influence", {"by": "words"})
    assert wants._missing_columns(count, run, "base") == ["sketch"]
    write_scan(corpus, tmp_path, ("el2n",), {"rows": 50})
    with pytest.raises(InputError, match="--columns sketch"):
        wants._missing_columns(count, run, "base")
    assert has._missing_columns(count, run, "base") == []
    write_scan(corpus, tmp_path, ("el2n",), {"rows": count})
    assert wants._missing_columns(count, run, "base") == ["sketch"]


def test_only_training_rows_that_were_scanned_may_be_chosen(corpus: Corpus, tmp_path: Path) -> None:
    run, miner = RunFolder(tmp_path), create("miners", "pruning", {"end": "hard"})
    part = Corpus.from_examples(list(corpus)[:60])
    scan = write_scan(part, tmp_path, ("el2n", "pass_1"), {"corpus": corpus.digest()})
    rows = miner.read_rows(corpus, run, "base")
    assert set(rows.ids) == {example.id for example in part}
    assert {task: len(own) for task, own in rows.by_task().items()} == {"add": 30, "times": 30}
    assert [corpus[int(place)].id for place in rows.corpus_indices] == list(rows.ids)
    assert rows.columns.keys() == {"el2n", "pass_1"}
    assert rows.columns["el2n"].tolist() == [scan.column("el2n")[scan.places[name]] for name in rows.ids]
    other = Corpus.from_examples([Example("x", "add", "1 + 1 =", answer="2")])
    with pytest.raises(InputError, match="other rows"):
        miner.read_rows(other, run, "base")


def test_a_held_out_row_from_a_miner_is_refused(corpus: Corpus, tmp_path: Path) -> None:
    held_out = next(example.id for example in corpus if example.split == "eval")
    with pytest.raises(InputError, match=held_out):
        mine(Fixed([held_out]), "fixed", corpus, samples.rows_to_choose(corpus, ("el2n",)), None)  # type: ignore[arg-type]


def test_a_task_keeps_its_least_rows_and_changed_shares_are_said(corpus: Corpus, tmp_path: Path) -> None:
    chosen = [*of_task(corpus, "add"), of_task(corpus, "times")[7]]
    rows = samples.rows_to_choose(corpus, ("el2n",))
    mined, summary = mine(Fixed(chosen), "fixed", corpus, rows, None)  # type: ignore[arg-type]
    as_many = {"add": TaskRows(48, 49 - MIN_TASK_ROWS), "times": TaskRows(48, MIN_TASK_ROWS)}
    assert summary.tasks == as_many, "as many as were chosen"
    assert [row.id for row in mined.rows[:3]] == chosen[:3]  # what was chosen last gives way
    share = f"Task times has {MIN_TASK_ROWS / 49:.1%} of the mined rows and 50.0% of the training rows."
    assert share in summary.notes
    assert any("times" in note and "put back" in note for note in summary.notes)
    assert sum("training rows." in note for note in summary.notes) == 2


@pytest.mark.parametrize(("count", "keep"), [(60, 0.05), (250, 0.1)])
def test_no_more_rows_are_kept_than_the_share_that_was_asked_for(count: int, keep: float) -> None:
    tasks = {f"i{n}": ("many" if n % 5 else "few") for n in range(count)}
    asked = count_to_keep(count, keep)
    many = [name for name, task in tasks.items() if task == "many"]
    chosen = tuple(MinedRow(name, "x") for name in (*many[: asked - 1], "i0"))
    kept = with_min_rows(MiningResult("m", chosen), tasks)
    assert len({row.id for row in kept.rows}) == len(kept.rows) == asked
    assert sum(tasks[row.id] == "few" for row in kept.rows) == max(asked // 5, 1)


def test_the_files_hold_what_was_chosen(corpus: Corpus, tmp_path: Path) -> None:
    names = of_task(corpus, "add")[:30]
    mined = MiningResult(
        "m",
        tuple(MinedRow(name, "why") for name in names),
        simple_rule_rows=(MinedRow("m6", "of it"),),
    )
    tasks = {"add": TaskRows(48, 30), "times": TaskRows(48, 0)}
    summary = MiningSummary("m", "chosen rows", 30, 96, tasks, "", (), "1.5 CPU seconds")
    path = write_mined(mined, summary, tmp_path)
    assert pq.read_table(path).to_pylist()[0] == {"id": names[0], "reason": "why"}
    assert pq.read_table(tmp_path / "m.simple_rule.parquet")["id"].to_pylist() == ["m6"]
    told = summary_of(path)
    assert told is not None
    assert told == summary
    (tmp_path / "own.json").write_text("[]")
    assert summary_of(tmp_path / "own.parquet") is None, "beside a table of one's own may stand anything"
    write_mined(dataclasses.replace(mined, simple_rule_rows=()), summary, tmp_path)
    assert not (tmp_path / "m.simple_rule.parquet").exists(), "of an earlier mining"
    export_rows(path, corpus, tmp_path / "out")
    rows = [json.loads(line) for line in (tmp_path / "out" / "rows.jsonl").read_text().splitlines()]
    assert [row["id"] for row in rows] == names
    export_rows(path, corpus, tmp_path / "talks", PromptForm(True))
    rows = [json.loads(line) for line in (tmp_path / "talks" / "rows.jsonl").read_text().splitlines()]
    told = [rows[0][name][0]["role"] for name in ("prompt", "chosen", "rejected")]
    assert told == ["user", "assistant", "assistant"], "as the run measures them"


def test_a_row_has_the_fields_of_its_kind() -> None:
    chat = ({"role": "user", "content": "2 + 2 ="},)
    plain = make_record(Example("1", "t", "2 + 2 =", answer="4"))
    assert plain == {"id": "1", "task": "t", "prompt": "2 + 2 =", "completion": "4", "answer": "4"}
    assert make_record(Example("1", "t", chat, target="4"))["messages"][-1] == {"role": "assistant", "content": "4"}
    pair = make_record(Example("1", "t", "2 + 2 =", chosen="4", rejected="5"))
    assert (pair["chosen"], pair["rejected"], "completion" in pair) == ("4", "5", False)
    said = ({"role": "assistant", "content": "4"},)
    pair = make_record(Example("1", "t", chat, chosen=said, rejected=({"role": "assistant", "content": "5"},)))
    assert (pair["prompt"], pair["chosen"]) == ([*chat], [*said]), "messages stay messages"


def planted(corpus: Corpus) -> TrainRows:
    """Rows whose sketches point along the first axis for `add`, against it for the first ten rows of `times`."""
    rows, rng = train_rows(corpus), np.random.default_rng(0)
    sketch = rng.normal(0, 0.1, (len(rows.ids), 8))
    against = np.isin(rows.ids, of_task(corpus, "times")[:10])
    sketch[:, 0] += (rows.tasks == "add").astype(float) - against
    sketch[:, 1] += rows.tasks == "times"
    return dataclasses.replace(rows, columns={"sketch": sketch})


def test_influence_chooses_rows_along_the_targets_gradients(corpus: Corpus, tmp_path: Path) -> None:
    miner = create("miners", "influence", {"targets": ["add"], "shots": 6, "keep": 0.25})
    found = miner.mine(corpus, planted(corpus), None, np.random.default_rng(0))
    assert len(found.rows) == 24
    assert {row.id for row in found.rows} <= set(of_task(corpus, "add"))


def test_shots_of_named_targets_are_kept_and_others_are_not_chosen(corpus: Corpus, tmp_path: Path) -> None:
    def mined(**options: Any) -> Any:
        miner = create("miners", "influence", {"shots": 6, **options})
        return miner.mine(corpus, planted(corpus), None, np.random.default_rng(0))

    named, own = mined(targets=["add"], keep=1.0), of_task(corpus, "add")
    assert len({row.id for row in named.rows}) == 96
    assert {row.id for row in named.rows if row.reason == "a row of the targets"} < set(own)
    few = mined(targets=["add"], keep=0.05).rows
    assert [row.reason.startswith("cosine") for row in few] == [False, False, True, True, True], "half of five, rounded down"
    assert len(mined(keep=1.0).rows) == 84, "six shots of each task, none of them chosen"


def test_the_simple_rule_of_influence_is_the_rows_of_the_named_targets(corpus: Corpus, tmp_path: Path) -> None:
    def rule(*targets: str) -> Any:
        miner = create("miners", "influence", {"targets": targets, "keep": 0.1})
        return miner.mine(corpus, planted(corpus), None, np.random.default_rng(0))

    alone = rule("add")
    assert {row.id for row in alone.simple_rule_rows} == set(of_task(corpus, "add"))
    assert alone.simple_rule_description == "the 48 training rows of add alone"
    assert rule("add", "times").simple_rule_rows == rule().simple_rule_rows == (), "all rows are that rule"


def test_influence_refuses_unknown_targets(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'mul'"):
        create("miners", "influence", {"targets": ["mul"]}).mine(corpus, planted(corpus), None, None)


def test_influence_by_words_needs_no_gradients(corpus: Corpus, tmp_path: Path) -> None:
    miner = create("miners", "influence", {"targets": ["times"], "by": "words", "keep": 0.1})
    found = miner.mine(corpus, samples.rows_to_choose(corpus, ("n_tokens",)), None, np.random.default_rng(0))
    assert len({row.id for row in found.rows} & set(of_task(corpus, "times"))) > len(found.rows) / 2
    with pytest.raises(InputError, match="gradients"):
        create("miners", "influence", {"by": "luck"})


@pytest.mark.parametrize(("end", "best"), [("hard", 47), ("easy", 0)])
def test_pruning_keeps_the_end_that_it_is_told_to(end: str, best: int, corpus: Corpus, tmp_path: Path) -> None:
    scan = samples.rows_to_choose(corpus, ("el2n",))
    found = create("miners", "pruning", {"end": end, "keep": 0.25}).mine(corpus, scan, None, np.random.default_rng(0))
    score = dict(zip(scan.ids, scan.columns["el2n"].tolist(), strict=True))
    for task in ("add", "times"):
        own = sorted(of_task(corpus, task), key=lambda name: score[name])
        kept = {row.id for row in found.rows} & set(own)
        assert len(kept) == 12
        assert own[best] in kept
        assert kept == set(own[-12:] if end == "hard" else own[:12])


def test_pruning_without_a_model_says_what_to_do(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="end to hard or easy"):
        create("miners", "pruning").mine(corpus, samples.rows_to_choose(corpus, ("el2n",)), None, np.random.default_rng(0))


def test_too_few_rows_are_refused_before_the_scan_and_all_of_them_are_kept_without_a_training(call: Call) -> None:
    write("rows.jsonl", sums(60))
    settings = "corpus: {train: rows.jsonl}\nmodel: {width: 16, depth: 1, heads: 2}\ntrial: {workers: 1}\n"
    Path("run.yaml").write_text(settings, encoding="utf-8")
    code, out, err = call("mine", "run.yaml", "--miner", "pruning", "--keep", "0.4")
    assert (code, out) == (1, "")
    assert "expected 64 training rows or more, to hold some back, got " in err.splitlines()[-1]
    assert not Path("runs/run/scan").exists()
    code, out, err = call("mine", "run.yaml", "--miner", "pruning", "--keep", "1")
    assert code == 0, err
    assert "nothing to try" in out.splitlines()[-1]
    assert "short trainings" not in err
    summary = json.loads(Path("runs/run/mine/pruning.json").read_text(encoding="utf-8"))
    assert summary["rows"] == summary["training_rows"] == pq.read_table("runs/run/mine/pruning.parquet").num_rows
    assert "el2n" not in Scan(RunFolder("runs/run"), "base-0").names


def test_mining_that_is_tried_measures_first_and_other_mining_does_not_measure(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(run: CheckedRun, *_: Any, **__: Any) -> Path:
        found = "measured" if run.folder.measurements("before").is_file() else "not measured"
        raise InputError("a miner", f"none, {found}", "Nothing is to be done.")

    monkeypatch.setattr("mixwright.verbs.mine.mine_in_run", refuse)
    write("rows.jsonl", sums(60))
    settings = "corpus: {train: rows.jsonl}\nmodel: {width: 16, depth: 1, heads: 2}\ntrial: {workers: 1}\n"
    settings += "measure: {items: 4, samples: 1, probes: [competence]}\n"
    Path("run.yaml").write_text(settings, encoding="utf-8")
    code, _, err = call("mine", "run.yaml", "--miner", "influence", "--try")
    assert (code, "got none, measured" in err.splitlines()[-1]) == (1, True), err
    assert Path("runs/run/audit.json").is_file()
    code, _, err = call("mine", "run.yaml", "--miner", "influence", "--folder", "untried")
    assert (code, "got none, not measured" in err.splitlines()[-1]) == (1, True), err
    assert not Path("untried/audit.json").exists()


def test_a_named_end_takes_any_number_of_rows_and_the_test_of_ends_a_whole_number_to_hold_back() -> None:
    assert create("miners", "pruning", {"end": "easy"}).count_needed_rows() == 0
    assert create("miners", "pruning", {"keep": 1.0}).count_needed_rows() == 0
    assert create("miners", "pruning", {"keep": 0.999}).count_needed_rows() == 64
    assert create("miners", "influence").count_needed_rows() == 0
    check_row_count(64, 64)
    with pytest.raises(InputError, match="64 training rows or more, to hold some back, got 63"):
        check_row_count(63, 64)


def test_a_table_is_taken_over_while_nothing_it_was_made_of_changed(corpus: Corpus, tmp_path: Path) -> None:
    run, rows = RunFolder(tmp_path), samples.rows_to_choose(corpus, ("el2n",))
    digest = mined_from_digest(rows, {"keep": 0.5}, 0)
    assert not is_mined(run, "fixed", digest)
    found = mine(Fixed(of_task(corpus, "add")), "fixed", corpus, rows, None, mined_from=digest)  # type: ignore[arg-type]
    table = write_mined(*found, tmp_path / "mine")
    assert is_mined(run, "fixed", digest)
    others = (
        mined_from_digest(rows, {"keep": 0.4}, 0),
        mined_from_digest(rows, {"keep": 0.5}, 1),
        mined_from_digest(dataclasses.replace(rows, made_from={"corpus": "another"}), {"keep": 0.5}, 0),
    )
    assert not any(is_mined(run, "fixed", other) for other in others)
    table.unlink()
    assert not is_mined(run, "fixed", digest)

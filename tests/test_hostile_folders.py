"""Folders, files and graders that are not what they seem: refused in one line, and nothing of a run is lost."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_call import Call, sums, write

from mixwright.config import CorpusConfig, MineConfig, RunConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InputError
from mixwright.records import Plan, Stage
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder, read_json_lines, read_measurements, read_yaml, write_plan
from mixwright.run.manifest import check_changed_sections
from mixwright.run.opening import open_run_folder
from mixwright.steer.beside.files import SteeringFiles
from mixwright.trial.stage import checked_plan
from mixwright.verbs import verdict as verdict_verb

DAMAGE = {
    "state.json": ("{", "{}", "[]"),
    "dataset_info.json": ("no", '{"features": {"prompt": {"_type": "Nothing"}}}'),
    "data-00000-of-00001.arrow": ("", "junk"),
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in DAMAGE.items() for text in texts])
def test_a_damaged_datasets_folder_is_the_users_to_mend(name: str, text: str, call: Call) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.Dataset.from_list(sums()).save_to_disk("rows")
    Path("rows", name).write_text(text, encoding="utf-8")
    code, out, err = call("audit", "rows")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith("error: rows: expected a complete folder written by datasets' save_to_disk")
    assert "Traceback" not in err


@pytest.mark.parametrize("name", ["a\x1b[31mb", "x\u2028seed: 99\u2028#", "\u0085seed: 99", "\x00"])
def test_names_of_data_neither_colour_the_terminal_nor_leave_their_comment(name: str, call: Call) -> None:
    write("a.jsonl", [{**row, "task": name} for row in sums()])
    code, _, err = call("run", "--init", "a.jsonl")
    assert code == 0, err
    assert all(mark.isprintable() or mark == "\n" for mark in err)
    config = read_yaml(Path("run.yaml"), RunConfig)
    assert config.seed == 0
    assert set(config.corpus.graders) == {name}


@pytest.mark.parametrize("value", ["!!bool maybe", "!!timestamp x", "!!int x", "!!float {}"])
def test_a_tag_that_its_value_does_not_fit_is_told(value: str, call: Call) -> None:
    Path("run.yaml").write_text(f"corpus: {{train: a.jsonl}}\nseed: {value}\n", encoding="utf-8")
    code, _, err = call("run", "run.yaml", "--dry-run")
    assert code == 1
    assert err.startswith("error: run.yaml")
    assert err.count("\n") == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.yaml")
    with pytest.raises(InputError, match="expected a file, got a pipe"):
        read_yaml(tmp_path / "plan.yaml", Plan)
    os.mkfifo(tmp_path / ".lock")
    with pytest.raises(InputError, match="expected a file, got a pipe"), RunFolder(tmp_path).lock():
        pass


def test_pipes_among_the_files_of_a_steered_run_are_not_waited_for(tmp_path: Path) -> None:
    files = SteeringFiles(tmp_path)
    sizes = {"decisions.jsonl": (0, 0)}
    assert files.read_decisions_after(sizes) == []
    os.mkfifo(tmp_path / "decisions.jsonl")
    for read in (files.read_decisions_after, files.first_differing):
        with pytest.raises(InputError, match="expected a file, got a pipe"):
            read(sizes)


@pytest.mark.parametrize(
    ("make", "command"),
    [
        ("rows.jsonl", ("audit", "rows.jsonl")),
        ("rows.json.gz", ("audit", "rows.json.gz")),
        ("rows.parquet", ("audit", "rows.parquet")),
        ("folder/sums.ndjson", ("audit", "folder")),
        ("folder/sums.jsonl", ("audit", "folder/*.jsonl")),
        ("run.yaml", ("run", "run.yaml")),
        ("scores.csv", ("replicates", "scores.csv")),
    ],
)
def test_a_pipe_in_the_place_of_any_file_is_refused(make: str, command: tuple[str, ...], call: Call) -> None:
    Path(make).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(make)
    code, out, err = call(*command)
    assert (code, out) == (1, "")
    assert err.splitlines()[-1].startswith(f"error: {make}: expected a file, got a pipe, a socket or a device")


def test_readers_refuse_a_folder_and_folders_that_belong_in_a_run_are_taken(tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").mkdir()
    with pytest.raises(InputError, match=r"lines\.jsonl: expected a file, got a folder"):
        list(read_json_lines(tmp_path / "lines.jsonl"))
    assert list(read_json_lines(tmp_path / "none.jsonl")) == []
    (tmp_path / "table.parquet").mkdir()
    with pytest.raises(InputError, match=r"table\.parquet: expected a file, got a folder"):
        read_measurements(tmp_path / "table.parquet")
    for name in ("scan/model.gguf", "trial/uniform-0/model", "bases/base-0", "export/rows.json"):
        (tmp_path / "run" / name).mkdir(parents=True)
    assert RunFolder(tmp_path / "run").branches() == [("uniform", 0, tmp_path / "run/trial/uniform-0")]


def test_a_name_that_stands_twice_in_a_row_or_a_table_is_refused(call: Call) -> None:
    Path("a.jsonl").write_text('{"prompt": "1+1=", "answer": "2", "answer": "3"}\n', encoding="utf-8")
    Path("a.json").write_text('[{"prompt": "1+1=", "prompt": "2+2=", "answer": "2"}]', encoding="utf-8")
    text = pa.array(["x"])
    pq.write_table(pa.Table.from_arrays([text, text], names=["prompt", "prompt"]), "a.parquet")
    for name, told in (("a.jsonl", "'answer' twice"), ("a.json", "'prompt' twice"), ("a.parquet", "'prompt' twice")):
        code, _, err = call("audit", name)
        assert code == 1
        assert f"error: {name}" in err
        assert told in err


def run_with(plan: Plan, tmp_path: Path) -> CheckedRun:
    config, run = RunConfig(CorpusConfig(write(str(tmp_path / "a.jsonl"), sums()))), RunFolder(tmp_path / "run")
    with open_run_folder(config, run) as checked:
        write_plan(run.plan, plan)
    return checked


STAGE = Stage("training", "grpo", 2, {"sum": 1.0})


@pytest.mark.parametrize(
    ("plan", "told"),
    [
        (Plan("p", (STAGE, STAGE)), "stages with different names"),
        (
            Plan("p", (Stage("training", "sft", 2, {"sum": 1.0}),)),
            "the objective grpo in the last",
        ),
        (Plan("p", (Stage("training", "grpo", 0, {"sum": 1.0}),)), "at least 1 step"),
    ],
)
def test_a_plan_is_refused_by_its_name_in_a_rehearsal_too(plan: Plan, told: str, tmp_path: Path) -> None:
    run = run_with(plan, tmp_path)
    with pytest.raises(InputError, match=f"plan.yaml: expected .*{told}"):
        checked_plan(run)


def test_a_grader_that_changed_makes_other_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = Path("my_grader.py")
    code.write_text("def right(completion, answer, **row):\n    return float(completion == answer)\n", encoding="utf-8")
    config = RunConfig(CorpusConfig(write("a.jsonl", sums()), grader="my_grader:right"))
    run = RunFolder("run")
    with open_run_folder(config, run) as checked:
        before = checked.corpus.digest()
    run.plan.touch()
    assert not check_changed_sections(config, run, Path())
    other = dataclasses.replace(config, mine=MineConfig({"pruning": {"steps": 10}}))
    assert check_changed_sections(other, run, Path()) == {"mine"}, (
        "nothing rests on how a miner is set: its table is made anew"
    )
    code.write_text("def right(completion, answer, **row):\n    return 1.0\n", encoding="utf-8")
    assert read_corpus(config.corpus).digest() != before
    with pytest.raises(InputError, match="grader my_grader:right, which has changed since"):
        check_changed_sections(config, run, Path())


class Odd:
    def __float__(self) -> float:
        raise OSError

    def __repr__(self) -> str:
        raise ValueError


@pytest.mark.parametrize(
    "made", ["10**400", "'1.0'", "1+5j", "__import__('numpy').complex64(1)", "Odd()", "raises(Quiet)", "raises(KeyError)"]
)
def test_odd_scores_and_exceptions_of_a_grader_are_told_with_its_name(made: str) -> None:
    from mixwright.graders import load_grader
    from mixwright.records import Example

    with pytest.raises(InputError, match=f"{__name__}:evaluated"):
        load_grader(f"{__name__}:evaluated").grade(Example("1", "t", "p", answer="1"), made)


class Quiet(BaseException):
    def __str__(self) -> str:
        raise ValueError


def raises(kind: type[BaseException]) -> float:
    raise kind


def evaluated(completion: str, answer: str, **row: object) -> float:
    """A grader that is as odd as the completion says."""
    return eval(completion)


def test_a_base_that_lost_a_file_is_built_again(tmp_path: Path) -> None:
    from mixwright.config import ModelConfig
    from mixwright.learner.bases import BaseJob, base_of
    from mixwright_extras.tiny.base import build_base

    model = ModelConfig(width=16, depth=1, heads=2, vocabulary=300)
    config = RunConfig(CorpusConfig(write(str(tmp_path / "a.jsonl"), sums())), model=model)
    run = RunFolder(tmp_path / "run")
    with open_run_folder(config, run):
        job = BaseJob(str(run.path), config, str(tmp_path))
        build_base(job)
        base = Path(base_of(model, run))
        weights = (base / "model.safetensors").read_bytes()
        (base / "config.json").unlink()
        build_base(job)
    assert json.loads((base / "config.json").read_text(encoding="utf-8"))
    assert (base / "model.safetensors").read_bytes() == weights


def test_nobody_writes_between_measuring_and_judging(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a gate judges the logs of another command that writes into the same folder."""
    taken = list[str]()

    def write_while_others_try(run: RunFolder, **options: Any) -> Any:
        with pytest.raises(InputError, match="nobody else is using"), RunFolder(run.path).lock():
            pass
        taken.append(str(run.path))
        return write_verdict(run, **options)

    write_verdict = verdict_verb.write_verdict
    monkeypatch.setattr(verdict_verb, "write_verdict", write_while_others_try)
    for name, right in (("before", 1), ("after", 0)):
        write(f"{name}.jsonl", [{"task": "t", "id": n, "score": right} for n in range(40)])
    code, out, err = call("verdict", "before.jsonl", "after.jsonl", "--json")
    assert (code, json.loads(out)["outcome"], taken) == (3, "damaged", ["runs/comparison"]), err
    with RunFolder("runs/comparison").lock():  # and it is free again
        assert call("verdict", "before.jsonl", "after.jsonl")[0] == 1
    assert call("verdict", "before.jsonl", "after.jsonl")[0] == 3


def test_names_that_are_not_utf_8_are_refused(call: Call) -> None:
    for arguments in (("audit", "t\udcff.jsonl"), ("verdict", "a", "b", "--folder", "o\udcff")):
        code, _, err = call(*arguments)
        assert (code, "expected file names and texts in UTF-8" in err) == (1, True), err


def test_tasks_of_logs_that_print_alike_are_refused(call: Call) -> None:
    write("log.jsonl", [{"task": task, "id": n, "score": 1} for task in ("a\nb", "a b") for n in range(3)])
    assert "expected a different name for each task" in call("measure", "log.jsonl")[2]


def test_aliases_that_stand_for_millions_of_values_are_refused(call: Call) -> None:
    levels = "\n".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))
    Path("bomb.yaml").write_text(f"trial:\n  a0: &a0 [1]\n{levels}\n", encoding="utf-8")
    code, _, err = call("run", "bomb.yaml")
    assert (code, "bomb.yaml, line 6: expected at most 30 aliases" in err) == (1, True), err
    Path("deep.yaml").write_text("[" * 100_000, encoding="utf-8")  # PyYAML alone takes hours
    assert "deep.yaml, line 1: expected at most 30 aliases (*name) and 100 levels" in call("run", "deep.yaml")[2]
    Path("loop.yaml").write_text("corpus: &a {train: x, columns: *a}\n", encoding="utf-8")
    assert call("run", "loop.yaml")[0] == 1

"""A third checkpoint beside a comparison: what is taken over, what is refused, and what the page and the terminal say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from _example_run import item_rows
from answer_rows import write_measured, write_sides
from cli_call import Call, sums, write
from first_answers import read_first_answers
from trainers_tiny import model, tokenizer

from mixwright.answers.table import Answers
from mixwright.errors import InputError
from mixwright.records import RunManifest
from mixwright.run.folder import RunFolder, read_json, read_measurements, write_json
from mixwright.verbs.beside import read_earlier
from mixwright.verdict.judge import judge_run
from mixwright.verdict.page.beside import OtherCheckpoint, beside_file, shorten_paths

FAST = ("--samples", "0", "--max-new-tokens", "4")


def checkpoint(name: str, seed: int = 0) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    model(seed).save_pretrained(name)
    tokenizer().save_pretrained(name)
    return name


def right(count: int, of: int = 30) -> list[float]:
    return [float(place < count) for place in range(of)]


def folder(path: Path, sides: Mapping[str, Mapping[str, Sequence[float]]]) -> RunFolder:
    """A comparison by hand: when -> task -> one value per item."""
    run, rows = RunFolder(path), []
    for when, tasks in sides.items():
        parts = {task: {"greedy": values, "greedy.swapped": [0.0] * len(values)} for task, values in tasks.items()}
        write_measured(run.measurements(when), [row for task in parts for row in item_rows((task, None), parts[task])])
        for task, values in tasks.items():
            for place, score in enumerate(values):
                row = {"when": when, "example": f"{task}-{place}", "task": task, "level": None, "prompt": f"{task} {place}?"}
                rows.append(row | {"answer": "yes", "completion": "yes" if score else f"no <b>{when}</b>", "score": score})
    write_sides(run.path / "measure", rows)
    settings = {"checkpoint after": "models/planned"}
    write_json(run.manifest, RunManifest({}, {}, {}, settings, parent="models/smollm2"))
    write_json(beside_file(run), OtherCheckpoint("models/narrow", "runs/narrow"))
    return run


def example(path: Path) -> RunFolder:
    before = {"capitals": right(30), "sums": right(24)}
    other = {"capitals": right(3), "sums": right(24)}
    after = {"capitals": right(29), "sums": right(27)}
    return folder(path, {"before": before, "after": after, "beside": other})


def test_broken_completions_are_refused_and_measurements_of_another_form_are_not_taken_over(tmp_path: Path) -> None:
    run = example(tmp_path / "run")
    assert read_earlier(run.path, "models/smollm2", RunFolder(tmp_path / "new")).name == "models/planned"
    with pytest.raises(InputError, match="measurements of models/other"):
        read_earlier(run.path, "models/other", RunFolder(tmp_path / "new"))
    run.answers("after").write_bytes(b"PAR1cut")
    with pytest.raises(InputError, match="a Parquet file of answers"):
        read_earlier(run.path, "models/smollm2", RunFolder(tmp_path / "new"))


def test_names_are_last_parts_and_longer_where_they_end_alike() -> None:
    assert shorten_paths(("hub/smollm2", "runs/narrow", "runs/planned/")) == ["smollm2", "narrow", "planned"]
    assert shorten_paths(("base", "a/model", "b/model")) == ["base", "a/model", "b/model"]
    assert shorten_paths(("x", "x", "x")) == ["x", "x", "x"]


def test_before_is_taken_over_and_the_other_stands_beside(call: Call) -> None:
    for seed, name in enumerate(("before", "models/narrow", "models/planned")):
        checkpoint(name, seed)
    asked = ("--eval", write("a.jsonl", sums(12)), *FAST, "--gate", "--protect", "sum", "--margin", "15")
    code, _, err = call("verdict", "--no-suite", "before", "models/narrow", *asked, "--folder", "one")
    assert code in (3, 4), err
    code, _, err = call("verdict", "--no-suite", "before", "models/planned", *asked, "--folder", "two", "--beside", "one")
    assert code in (3, 4), err
    assert "measure before: reusing one; models/narrow is shown next to the new model" in err
    assert "measure before, " not in err
    one, two = RunFolder("one"), RunFolder("two")
    assert read_measurements(two.measurements("before")) == read_measurements(one.measurements("before"))
    assert read_measurements(two.measurements("beside")) == read_measurements(one.measurements("after"))
    rows, old = (read_first_answers(run.path / "measure") for run in (two, one))
    kept = [row for row in rows if row["when"] != "after"]
    assert kept == [row | {"when": {"before": "before", "after": "beside"}[row["when"]]} for row in old]
    told = read_json(two.verdict_data, dict)
    assert [told[name] for name in ("before", "third", "after")] == ["before", "narrow", "planned"]
    call("verdict", "--no-suite", "before", "models/planned", *asked, "--folder", "alone")
    alone = read_measurements(RunFolder("alone").measurements("after"))
    assert read_measurements(two.measurements("after")) == alone
    assert call("verdict", "--no-suite", "before", "models/planned", *asked, "--folder", "two")[0] in (3, 4)
    assert not beside_file(two).exists(), "nothing of an earlier comparison stays"
    assert not two.measurements("beside").exists()


def test_options_that_are_not_given_are_those_of_the_earlier_comparison(call: Call) -> None:
    for seed, name in enumerate(("before", "after", "other")):
        checkpoint(name, seed)
    asked = ("--eval", write("a.jsonl", sums(12)))
    measuring = (
        "--items",
        "5",
        "--samples",
        "2",
        "--temperature",
        "0.7",
        "--max-new-tokens",
        "4",
        "--grader",
        "sum=includes",
    )
    assert call("verdict", "--no-suite", "before", "other", *asked, *measuring, "--folder", "measured")[0] == 4
    code, _, err = call("verdict", "--no-suite", "before", "after", *asked, "--beside", "measured", "--folder", "gate")
    assert code == 4, err
    settings = read_json(RunFolder("gate").manifest, RunManifest).settings
    found = {name: settings[name] for name in ("items", "samples", "temperature", "max_new_tokens")}
    assert found == {"items": 5, "samples": 2, "temperature": 0.7, "max_new_tokens": 4}
    assert len(Answers.read(RunFolder("gate").answers("after")).rows_of("greedy")) == 5
    code, _, err = call(
        "verdict", "--no-suite", "before", "after", *asked, "--beside", "measured", "--samples", "3", "--folder", "no"
    )
    assert (code, "samples: 2, as in the earlier comparison, got 3" in err) == (1, True), err
    code, _, err = call(
        "verdict", "--no-suite", "before", "after", *asked, "--beside", "measured", "--budget", "5m", "--folder", "no"
    )
    assert (code, "Leave one out: a budget would choose other items" in err) == (1, True), err


def test_a_grader_of_all_tasks_is_taken_over(call: Call) -> None:
    for seed, name in enumerate(("before", "after", "other")):
        checkpoint(name, seed)
    asked = ("--eval", write("a.jsonl", sums(12)), "--max-new-tokens", "4")
    assert call("verdict", "--no-suite", "before", "other", *asked, "--grader", "includes", "--folder", "measured")[0] == 4
    code, _, err = call("verdict", "--no-suite", "before", "after", *asked[:2], "--beside", "measured", "--folder", "gate")
    assert code == 4, err
    assert read_json(RunFolder("gate").manifest, RunManifest).settings["grader"] == "includes"


def test_what_does_not_fit_is_refused_before_anything_is_measured(call: Call) -> None:
    for seed, name in enumerate(("before", "after", "other")):
        checkpoint(name, seed)
    rows = ("--eval", write("a.jsonl", sums(12)))
    assert call("verdict", "--no-suite", "before", "other", *rows, *FAST, "--folder", "one")[0] == 4
    write("b.jsonl", sums(13))
    cases = {
        ("before", "after", *rows, *FAST, "--folder", "two", "--beside", "nowhere"): "a folder without manifest.json",
        ("before", "after", *rows, *FAST, "--folder", "one", "--beside", "one"): "the folder of the new comparison",
        ("other", "after", *rows, *FAST, "--folder", "two", "--beside", "one"): "measurements of other, got those of before",
        (
            "before",
            "after",
            "--eval",
            "b.jsonl",
            *FAST,
            "--folder",
            "two",
            "--beside",
            "one",
        ): "expected rows with the digest",
        ("before", "after", *rows, "--samples", "0", "--max-new-tokens", "5", "--folder", "two", "--beside", "one"): (
            "max_new_tokens: 4, as in the earlier comparison, got 5"
        ),
        ("before", "after", *rows, *FAST, "--items", "3", "--folder", "two", "--beside", "one"): "items: ",
        ("one", "--beside", "one"): "BEFORE AFTER with --beside",
    }
    for arguments, told in cases.items():
        code, out, err = call("verdict", "--no-suite", *arguments)
        assert (code, out) == (1, ""), arguments
        assert told in err, err
        assert "measure after" not in err
    assert RunFolder("one").page.is_file()
    assert not Path("two").exists()


def test_a_lost_table_of_the_other_is_said(tmp_path: Path) -> None:
    from mixwright.errors import InputError

    run = example(tmp_path / "run")
    run.measurements("beside").unlink()
    with pytest.raises(InputError, match=r"beside\.json"):
        judge_run(run)

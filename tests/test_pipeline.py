"""A file of two tasks never seen before goes through the whole line, editing only the YAML that `--init` wrote."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from mixwright.__main__ import main
from mixwright.audit.stage import complaints
from mixwright.config import CorpusConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.errors import InputError
from mixwright.records import Observation, RunManifest, TrialResult
from mixwright.run import pipeline
from mixwright.run.folder import RunFolder, read_json, read_plan, write_plan
from mixwright.trainers.configs import SettingsJob, resolve_settings

EDITS = {
    "model": {"width": 32, "depth": 2, "heads": 2, "warmup": {"steps": 40}},
    "measure": {"items": 8, "samples": 2, "max_new_tokens": 3},
    "train": {"steps": 2, "prompts": 2, "generations": 4, "max_new_tokens": 3},
    "trial": {"arms": ["uniform", "steered"], "seeds": 1, "workers": 1},
}


def made_up_rows() -> list[dict[str, str]]:
    """Morse letters, and which of two words comes first: prompt and answer."""
    rng = random.Random(5)
    morse = {"a": ".-", "b": "-...", "e": ".", "i": "..", "m": "--", "t": "-"}
    rows = [
        {"task": "morse", "prompt": f"{n:02d} {a} in morse:", "answer": code} for n in range(9) for a, code in morse.items()
    ]
    for n in range(60):
        one, other = rng.sample(["ant", "bee", "cat", "dog", "eel"], 2)
        rows.append({"task": "first", "prompt": f"{n:02d} {one} or {other}?", "answer": min(one, other)})
    return rows


def call(*arguments: str) -> int:
    try:
        main(arguments)
    except SystemExit as leaving:
        return int(leaving.code or 0)
    return 0


def edit(path: Path) -> None:
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    for section, values in EDITS.items():
        for name, value in values.items():
            settings[section][name] = {**settings[section][name], **value} if isinstance(value, dict) else value
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")


def test_what_is_wrong_with_the_data_is_said_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [json.dumps({"task": "copy", "prompt": f"{n} apples and {7 * n}?", "answer": str(8 * n)}) for n in range(60)]
    Path("train.jsonl").write_text("\n".join(rows), encoding="utf-8")
    Path("eval.jsonl").write_text("\n".join(rows[20:]), encoding="utf-8")
    said: list[str] = []
    monkeypatch.setattr(pipeline, "measure_start", lambda *_, **__: said.append("measured") or exit(0))
    config = RunConfig(CorpusConfig("train.jsonl", "eval.jsonl"), trial=TrialConfig(workers=1))
    with pytest.raises(SystemExit):
        pipeline.run(config, RunFolder("run"), say=said.append)
    (line,) = [line for line in said if "errors in the data" in line]
    assert "copy: 40 of 40 held-out items" in line
    assert "Remove these rows" in line
    assert said.index(line) < said.index("measured")


def test_a_line_about_the_data_is_bounded_and_leaves_warnings_out() -> None:
    seen = [Observation("c", None, severity, 1, 2, "m" * 9999, "Do it.") for severity in ("info", "warning", "error")]
    (line,) = complaints(seen)
    assert (len(line) < 500, line.startswith("warning: 1 error")) == (True, True)


@pytest.mark.spawned
def test_from_a_file_to_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made_up_rows()), encoding="utf-8")
    assert call("run", "--init", "two.jsonl") == 0
    edit(Path("run.yaml"))
    assert call("run", "run.yaml") == 0
    run = RunFolder("runs/run")
    assert "runs/run/verdict.html" in capsys.readouterr().out
    assert "<!doctype html>" in run.page.read_text(encoding="utf-8").lower()
    result = read_json(run.result, TrialResult)
    assert (result.arms, result.seeds) == (("frozen", "uniform", "steered"), (0,))
    assert {effect.word for effect in result.effects if effect.name == "success"} == {"cannot tell"}, (
        "one seed proves nothing"
    )
    assert set(read_plan(run.plan).stages[0].weights) == {"morse", "first"}
    settings = read_json(run.manifest, RunManifest).settings
    assert {"loss_type", "scale_rewards", "beta", "learning_rate", "num_generations"} <= set(settings)
    assert not list(Path("runs/run").rglob("*.partial"))

    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*.parquet")}
    assert call("run", "run.yaml") == 0
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*.parquet")} == before, "nothing is done twice"

    plan = read_plan(run.plan)
    write_plan(run.plan, replace(plan, stages=(replace(plan.stages[0], weights={"morse": 0.5, "frist": 0.5}),)))
    capsys.readouterr()
    assert call("run", "run.yaml", "--only", "trial") == 1
    said = capsys.readouterr().err
    assert "frist" in said
    assert "Traceback" not in said

    with Path("two.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(made_up_rows()[0] | {"prompt": "new"}) + "\n")
    assert call("run", "run.yaml") == 1
    assert "changed since" in capsys.readouterr().err


def test_two_runs_in_one_folder_are_refused(tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "run")
    with run.lock(), pytest.raises(InputError, match="nobody else"), run.lock():
        pass


def test_the_settings_noted_are_those_of_the_run() -> None:
    config = RunConfig(CorpusConfig("rows.jsonl"), train=TrainConfig(learning_rate=3e-4, beta=0.02))
    noted = resolve_settings(SettingsJob(config, chats=False))
    assert (noted["learning_rate"], noted["beta"]) == (3e-4, 0.02)

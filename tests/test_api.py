"""The public face: what `mixwright` offers, what importing it costs, and each documented example as it stands."""

from __future__ import annotations

import doctest
import importlib
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_call import help_of, load_commands

import mixwright
from mixwright import api
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig, WarmupConfig
from mixwright.errors import InputError
from mixwright.records import to_data
from mixwright.run.folder import yaml_text
from mixwright.trial.deadline import Deadline
from mixwright.verbs import direct

EXTRA_VERBS = ("dial", "replicates", "scan")
HEAVY = ("torch", "transformers", "trl", "datasets", "numpy", "pyarrow", "pydantic")
"""What importing the package needs nothing of."""
SMALL = RunConfig(
    CorpusConfig("train.jsonl"),
    ModelConfig(width=32, depth=2, heads=2, warmup=WarmupConfig(steps=40)),
    MeasureConfig(items=8, samples=2, max_new_tokens=3),
    train=TrainConfig(steps=2, prompts=2, generations=4, max_new_tokens=3),
    trial=TrialConfig(arms=("uniform", "steered"), seeds=1, workers=1),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples speak of; train.jsonl has one row twice."""
    from mixwright_extras.tiny.model import build_tiny

    monkeypatch.chdir(tmp_path)
    rows = [{"task": "sum", "prompt": f"{n}+1=", "answer": str(n + 1)} for n in (*range(40), 0)]
    Path("train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    both = [
        *rows,
        *({"task": "copy", "prompt": f"{word} {n}", "answer": word} for n in range(9) for word in ("red", "blue")),
    ]
    Path("two_tasks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in both), encoding="utf-8")
    rollouts = [{"step": n, "task": "sum", "prompt": f"{n}+1=", "completion": "?", "reward": 0.0} for n in range(30)]
    Path("rollouts.jsonl").write_text("".join(2 * (json.dumps(row) + "\n") for row in rollouts), encoding="utf-8")
    scores = [f"{name},{run},{worth + run / 100}" for name, worth in {"a": 1, "b": 2, "c": 3}.items() for run in range(3)]
    Path("scores.csv").write_text("\n".join(["candidate,run,score", *scores]), encoding="utf-8")
    Path("run.yaml").write_text(yaml_text(to_data(SMALL)), encoding="utf-8")
    build_tiny([row["prompt"] for row in rows], SMALL.model, seed=0).save(Path("checkpoint"))
    return tmp_path


FUNCTIONS = {name: getattr(api, name) for name in api.__all__ if inspect.isfunction(getattr(api, name))}
FUNCTIONS |= {name: getattr(importlib.import_module(f"mixwright_extras.verbs.{name}"), name) for name in EXTRA_VERBS}
GROUPS = [
    ["audit", "diagnose", "rewards", "replicates", "list_plugins", "explain", "schema", "init"],
    ["measure"],
    ["preview"],
    ["plan_measured"],
    ["dial"],
    ["scan", "mine"],
]
GROUPS += [["run", "trial", "steer", "verdict", "plan", "review"]]
"""Functions whose examples run in one folder, in order."""


@pytest.mark.parametrize("names", GROUPS, ids="-".join)
def test_the_documented_examples_come_out_as_they_say(names: list[str], place: Path) -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for name in names:
        (example,) = finder.find(FUNCTIONS[name], name, globs={**FUNCTIONS, **vars(api), "TrainConfig": TrainConfig})
        assert example.examples, name
        assert runner.run(example).failed == 0, name


def test_every_verb_of_the_command_line_is_a_function_with_an_example_that_runs() -> None:
    functions = list(FUNCTIONS)
    verbs = {"list_plugins" if name == "list" else name for name in load_commands()}
    assert sorted(functions) == sorted(name for group in GROUPS for name in group)
    assert set(functions) - {"steer", "trial", "plan_measured"} == verbs


def test_defaults_that_a_help_text_names_are_those_of_the_settings() -> None:
    train = TrainConfig()
    for option, value in {"steps": train.steps, "batch": train.prompts}.items():
        assert f" {value} with --eval." in help_of("plan", option), option


@pytest.mark.parametrize(
    ("corpus", "measuring"),
    [
        ("two_tasks.jsonl", api.Measuring("two_tasks.jsonl")),
        (CorpusConfig("two_tasks.jsonl", eval_share=0.0), api.Measuring("two_tasks.jsonl", grader=["exact"])),
    ],
)
def test_a_checkpoint_is_measured_as_on_the_command_line(
    corpus: Any, measuring: api.Measuring, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[MeasureConfig] = []

    class Stop(Exception):
        pass

    def told(*given: Any, **_: Any) -> Any:
        found.append(given[2].config.measure)
        raise Stop

    monkeypatch.setattr("mixwright.verbs.direct.measure_with_progress", told)
    with pytest.raises(Stop):
        api.measure("checkpoint", corpus)
    with pytest.raises(Stop):
        direct.measure_checkpoint("checkpoint", measuring, None)
    assert found[0] == found[1]
    assert found[0].items == 100


def test_two_checkpoints_are_compared_as_on_the_command_line(place: Path) -> None:
    measuring = api.Measuring("train.jsonl", items=8, samples=1, max_new_tokens=2)
    found = api.verdict("checkpoint", "checkpoint", measuring=measuring, gating=api.Gating(protect=["sum"]))
    assert Path("runs/comparison/verdict.html").is_file()
    assert found.outcome in ("passed", "inconclusive")
    assert api.verdict("runs/comparison", gating=api.Gating(protect=["sum"])) == found


def test_a_budget_in_words_begins_when_a_function_is_called(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="a duration such as 90s"):
        api.run("run.yaml", budget="soon")
    found: list[tuple[float, float]] = []

    def told(config: RunConfig, *_: Any, deadline: Deadline, **__: Any) -> None:
        found.append((config.trial.budget_minutes, deadline.seconds_left))

    monkeypatch.setattr("mixwright.run.pipeline.run", told)
    api.run("run.yaml", budget="20m")
    ((minutes, left),) = found
    assert minutes == 20
    assert 1190 < left <= 1200


def test_settings_without_a_file_need_a_folder() -> None:
    with pytest.raises(InputError, match="Name one: folder="):
        api.run(SMALL)


def test_names_are_there_and_importing_the_package_imports_nothing_heavy() -> None:
    code = f"import sys, mixwright; print(*[name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split() == []
    for name in mixwright.__all__:
        assert getattr(mixwright, name) is not None
        assert name in dir(mixwright)


def test_the_engine_needs_no_torch() -> None:
    code = "import sys; from mixwright import Corpus, Engine, Pool, default_plan, write_state; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False"]


@pytest.mark.parametrize("name", mixwright.PUBLIC)
def test_public_modules_are_there_and_say_what_they_are(name: str) -> None:
    assert importlib.import_module(name).__doc__
    assert not any(part.startswith("_") for part in name.split("."))


def test_functions_are_not_hidden_by_packages_of_the_same_name() -> None:
    for name in ("audit", "measure", "plan", "trial", "verdict"):
        importlib.import_module(f"mixwright.{name}")
        assert name not in mixwright.__all__
        assert callable(getattr(api, name))

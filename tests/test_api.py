"""The public face: what `mixwright` offers, what importing it costs, and each documented example as it stands."""

from __future__ import annotations

import doctest
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import mixwright
from mixwright import api
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig, WarmupConfig
from mixwright.errors import InputError
from mixwright.records import to_data
from mixwright.runs import yaml_text

HEAVY = ("torch", "transformers", "trl", "datasets", "numpy", "pyarrow", "pydantic")
"""What importing the package needs nothing of."""
SMALL = RunConfig(
    CorpusConfig("train.jsonl"),
    ModelConfig(width=32, depth=2, heads=2, warmup=WarmupConfig(steps=40)),
    MeasureConfig(items=8, samples=2, max_new_tokens=3),
    train=TrainConfig(steps=2, prompts=2, generations=4, max_new_tokens=3, canary_every=1),
    trial=TrialConfig(arms=("uniform", "steered"), seeds=1, workers=1, progress_every=1),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with train.jsonl (one row twice), run.yaml and a checkpoint, which the examples speak of."""
    from mixwright.learner.tiny import build_tiny

    monkeypatch.chdir(tmp_path)
    rows = [{"task": "sum", "prompt": f"{n}+1=", "answer": str(n + 1)} for n in (*range(40), 0)]
    Path("train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    Path("run.yaml").write_text(yaml_text(to_data(SMALL)), encoding="utf-8")
    build_tiny([row["prompt"] for row in rows], SMALL.model, seed=0).save(Path("checkpoint"))
    return tmp_path


@pytest.mark.parametrize("names", [["audit"], ["measure"], ["plan"], ["run", "trial", "verdict"]], ids="-".join)
def test_the_documented_examples_come_out_as_they_say(names: list[str], place: Path) -> None:
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner()
    for name in names:
        (example,) = finder.find(getattr(api, name), name, module=api)
        assert example.examples, name
        assert runner.run(example).failed == 0, name


def test_every_function_has_an_example_that_runs() -> None:
    assert api.__all__ == ["audit", "measure", "plan", "run", "trial", "verdict"]
    assert all(">>> " in (getattr(api, name).__doc__ or "") for name in api.__all__)


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

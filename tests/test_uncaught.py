"""A refusal that nobody catches ends a user's script in one line; caught, it is an exception like any other."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
HEAD = """
import sys
sys.path.insert(0, {tests!r})
from trainers_tiny import *
import mixwright
from pathlib import Path
from mixwright import SteeredSFTTrainer, SteeredGRPOTrainer, Steering
before = sys.excepthook is sys.__excepthook__
data = rows().rename_column("answer", "completion")

def train(**settings):
    steering = settings.pop("steering", True)
    return SteeredSFTTrainer(
        model(), args=sft_config(FOLDER, **settings), train_dataset=data, processing_class=tokenizer(), steering=steering
    )
FOLDER = {folder!r}
"""
CASES = {
    "packing": ("train(packing=True)", "expected packing=False, got packing=True. Packed rows mix tasks"),
    "a setting": ("train(steering=Steering(seed=-1))", "expected steering.seed of 0 or more, got -1"),
    "a plan": ("train(steering='nowhere.yaml')", "nowhere.yaml"),
    "a reward": ("make(SteeredGRPOTrainer, FOLDER, steering=True, reward_funcs=lambda **_: 1.0).train()", "got 1.0."),
    "a helper": ("from mixwright.runs import read_plan\nread_plan(Path('nowhere.yaml'))", "nowhere.yaml"),
}


def script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "train.py"
    path.write_text(HEAD.format(tests=str(ROOT / "tests"), folder=str(folder / "out")) + text + "\n", encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    return subprocess.run([sys.executable, str(path)], env=environment, cwd=folder, capture_output=True, text=True)


@pytest.mark.parametrize("case", CASES)
def test_it_ends_a_script_in_one_line(case: str, tmp_path: Path) -> None:
    code, told = CASES[case]
    ended = script(code, tmp_path)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    line = ended.stderr.splitlines()[-1]
    place, _, message = line.partition(": InputError: ")
    assert place.startswith(f"{tmp_path / 'train.py'}, line ")
    assert told in message


def test_other_errors_and_caught_ones_are_as_ever(tmp_path: Path) -> None:
    caught = """
assert before, "importing sets no hook"
import traceback
from mixwright.errors import InputError
try:
    train(packing=True)
except InputError as error:
    assert len(traceback.extract_tb(error.__traceback__)) > 2
1 / 0
"""
    ended = script(caught, tmp_path)
    assert ended.returncode == 1
    assert "Traceback (most recent call last)" in ended.stderr
    assert ended.stderr.rstrip().endswith("ZeroDivisionError: division by zero")

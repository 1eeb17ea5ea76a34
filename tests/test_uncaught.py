"""A refusal that nobody catches ends a user's script in one line; caught, it is an exception like any other."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import forked
import pytest

from mixwright.errors import InputError

ROOT = Path(__file__).parent.parent
HEAD = """
import sys
sys.path.insert(0, {tests!r})
from trainers_tiny import *
import mixwright
from pathlib import Path
from mixwright import SteeredSFTTrainer, SteeredGRPOTrainer, SteeringConfig
data = rows().rename_column("answer", "completion")

def train(**settings):
    steering = settings.pop("steering", True)
    return SteeredSFTTrainer(
        model(), args=sft_config(FOLDER, **settings), train_dataset=data, processing_class=tokenizer(), steering=steering
    )
FOLDER = {folder!r}
"""
CASES = {
    "a setting of TRL": (
        "train(train_sampling_strategy='group_by_length')",
        "expected train_sampling_strategy 'random', got group_by_length.",
    ),
    "a reward": ("make(SteeredGRPOTrainer, FOLDER, steering=True, reward_funcs=lambda **_: 1.0).train()", "got 1.0."),
    "a helper": ("from mixwright.run.folder import read_plan\nread_plan(Path('nowhere.yaml'))", "nowhere.yaml"),
}


def script(text: str, folder: Path, *, anew: bool = False) -> forked.Ended:
    """How a script ends: in a copy of this process, or in a new interpreter, which imports no trainer."""
    path = folder / "train.py"
    head = "from pathlib import Path\n" if anew else HEAD.format(tests=str(ROOT / "tests"), folder=str(folder / "out"))
    path.write_text(head + text + "\n", encoding="utf-8")
    if not anew:
        return forked.script(path)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    ended = subprocess.run([sys.executable, str(path)], env=environment, cwd=folder, capture_output=True, text=True)
    return forked.Ended(ended.returncode, ended.stdout, ended.stderr)


@pytest.mark.parametrize("case", CASES)
def test_it_ends_a_script_in_one_line(case: str, tmp_path: Path) -> None:
    code, told = CASES[case]
    ended = script(code, tmp_path, anew=case == "a helper")
    assert ended.code == 1
    assert "Traceback" not in ended.err
    line = ended.err.splitlines()[-1]
    place, _, message = line.partition(": InputError: ")
    assert place.startswith(f"{tmp_path / 'train.py'}, line ")
    assert told in message


def test_other_errors_and_caught_ones_are_as_ever(tmp_path: Path) -> None:
    caught = """
import traceback
from mixwright.errors import InputError
try:
    train(train_sampling_strategy='group_by_length')
except InputError as error:
    assert len(traceback.extract_tb(error.__traceback__)) > 2
1 / 0
"""
    ended = script(caught, tmp_path)
    assert ended.code == 1
    assert "Traceback (most recent call last)" in ended.err
    assert ended.err.rstrip().endswith("ZeroDivisionError: division by zero")


def test_importing_sets_no_hook() -> None:
    check = "import sys, mixwright.errors; assert sys.excepthook is sys.__excepthook__"
    subprocess.run([sys.executable, "-c", check], check=True)


@pytest.mark.parametrize("first", [True, False])
def test_a_hook_of_the_users_gets_every_exception(first: bool, tmp_path: Path) -> None:
    refusal = "try:\n    train(train_sampling_strategy='group_by_length')\nexcept Exception:\n    pass\n"
    hook = "sys.excepthook = lambda kind, error, trace: print('mine', kind.__name__)\n"
    ended = script(
        (hook + refusal if first else refusal + hook) + "train(train_sampling_strategy='group_by_length')", tmp_path
    )
    assert ended.out.splitlines()[-1] == "mine InputError"


def test_a_refusal_can_be_sent_between_processes() -> None:
    error = InputError("a", "b", "c.", file="d.yaml", line=3)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(again), again.file, again.line) == (str(error), "d.yaml", 3)


def test_control_characters_of_data_do_not_reach_the_terminal(tmp_path: Path) -> None:
    ended = script("from mixwright.errors import InputError\nraise InputError('a', '\\x1b[2J\\u202e', 'c')", tmp_path)
    assert "\x1b" not in ended.err
    assert "\u202e" not in ended.err

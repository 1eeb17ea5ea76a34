"""The table of GRPO settings on two processes, a group split between them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from grpo_table import TABLE

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[set[str]], str]:
    """Settings that each process found right, and what they said; they stop at the first that is wrong."""
    folder = tmp_path_factory.mktemp("settings")
    launched = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    done = subprocess.run(
        [*launched, str(HERE / "_grpo_settings_run.py"), str(folder), *TABLE],
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return [set(path.read_text().splitlines()) for path in sorted(folder.glob("right-*.txt"))], done.stderr[-4000:]


@pytest.mark.parametrize("name", TABLE)
def test_rewards_are_true_and_refusals_zero_on_two_processes(name: str, right: tuple[list[set[str]], str]) -> None:
    found, said = right
    assert [name in names for names in found] == [True, True], said

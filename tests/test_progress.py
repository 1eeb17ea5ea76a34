"""A line wherever work is silent, with the counts of what is under way."""

from __future__ import annotations

import sys

import pytest

from mixwright.config import ModelConfig
from mixwright.run import progress
from mixwright.run.progress import break_silence, describe_work, heartbeat, progress_line
from mixwright_extras.tiny.model import build_tiny


@pytest.fixture(autouse=True)
def no_heartbeat() -> None:
    """Here the heartbeat itself is tested."""


def test_a_line_is_written_only_after_silence_and_says_what_is_under_way(capsys: pytest.CaptureFixture[str]) -> None:
    describe_work("corpus: 480 rows", written=True)
    break_silence(15)
    assert capsys.readouterr().err == ""
    describe_work("12 of 60 prompts are answered")
    break_silence(30)
    assert capsys.readouterr().err == "30 s, still running: 12 of 60 prompts are answered\n"


def test_what_a_line_repeats_is_one_short_line_without_codes_of_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    break_silence(15)
    capsys.readouterr()
    describe_work("\x1b[31m" + "long\n" * 200)
    break_silence(30)
    (line,) = capsys.readouterr().err.splitlines()
    assert "\x1b" not in line
    assert len(line) < 250


def test_a_progress_line_that_is_not_written_yet_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line("measure") as show:
        show(0, 400, None)
        show(3.5, 400, 600.0)  # under a tenth, so without a line of its own
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert progress._latest[0].startswith("measure: 3 of 400")


def test_a_closed_standard_error_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with heartbeat():
        assert sys.stderr is None


def test_answers_under_way_are_counted() -> None:
    prompts = [f"{number} = " for number in range(5)]
    learner = build_tiny(prompts, ModelConfig(width=16, depth=1, heads=2, vocabulary=264), 0)
    heard: list[float] = []
    learner.sample(prompts, count=1, temperature=0, max_new_tokens=4, seed=0, progress=heard.append)
    assert progress._latest == ["5 of 5 prompts are answered in up to 4 tokens"]
    assert heard[-1] == 1.0

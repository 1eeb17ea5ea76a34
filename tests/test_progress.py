"""A line wherever work is silent: by a clock that the test moves, in every verb, with the counts of what is under way."""

from __future__ import annotations

import io
import sys

import pytest

from mixwright import __main__ as command_line
from mixwright.config import ModelConfig
from mixwright.learner.tiny import build_tiny
from mixwright.run import progress
from mixwright.run.progress import (
    SECONDS_OF_SILENCE,
    SECONDS_TO_START,
    WatchedStream,
    describe_work,
    heartbeat,
    progress_line,
)


@pytest.fixture(autouse=True)
def no_heartbeat() -> None:
    """Here the heartbeat itself is tested."""


class Clock:
    """Seconds that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_is_written_only_after_silence_and_says_what_is_under_way() -> None:
    stream, clock = io.StringIO(), Clock()
    watched = WatchedStream(stream, clock)
    clock.now += SECONDS_OF_SILENCE - SECONDS_TO_START - 1
    watched.break_silence()
    assert stream.getvalue() == ""
    watched.write("corpus: 480 rows\n")
    clock.now += SECONDS_OF_SILENCE - 1
    watched.break_silence()
    assert stream.getvalue() == "corpus: 480 rows\n"
    clock.now += 1
    watched.break_silence()
    watched.break_silence()  # once for each silence
    describe_work("12 of 60 prompts are answered")
    clock.now += SECONDS_OF_SILENCE
    watched.break_silence()
    lines = stream.getvalue().splitlines()
    assert [line.split(" s, ")[0] for line in lines[1:]] == ["22", "37"]
    assert lines[1].endswith("corpus: 480 rows")
    assert lines[2].endswith("12 of 60 prompts are answered")


def test_what_a_line_repeats_is_one_short_line_without_codes_of_the_terminal() -> None:
    stream, clock = io.StringIO(), Clock()
    watched = WatchedStream(stream, clock)
    describe_work("\x1b[31m" + "long\n" * 200)
    clock.now += SECONDS_OF_SILENCE
    watched.break_silence()
    (line,) = stream.getvalue().splitlines()
    assert "\x1b" not in line
    assert len(line) < 250


def test_a_progress_line_that_is_not_written_yet_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line("measure") as show:
        show(0, 400, None)
        show(3.5, 400, 600.0)  # under a tenth, so without a line of its own
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert progress._latest[0].startswith("measure: 3 of 400")


def test_every_verb_is_watched_and_the_stream_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(command_line, "app", lambda *_, **__: seen.append(type(sys.stderr)))
    before = sys.stderr
    command_line.main(["list"])
    assert (seen, sys.stderr) == ([WatchedStream], before)


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

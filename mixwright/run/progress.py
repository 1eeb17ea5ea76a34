"""Progress line that says how many jobs are done and how long the rest will take, and a line wherever work is silent."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from mixwright.errors import one_line

Progress = Callable[[float, int, float | None], None]
"""Called with jobs done (those under way count in part), jobs in all, and seconds left (None while unknown)."""
SHARE_BETWEEN_LINES = 0.1
"""Where there is no terminal: share of all jobs between two lines."""

SECONDS_OF_SILENCE = 15.0
"""Without a line on standard error, after which `heartbeat` writes one."""
SECONDS_TO_START = 7.0
"""Taken to have gone by before, while Python started and imported."""
LATEST_CHARACTERS = 160
"""Characters of the latest step that such a line repeats."""

_latest = ["starting"]
"""What was last written, or said to be under way."""
_listeners: list[Callable[[float], None]] = []


def report_share(share: float) -> None:
    """Say from inside a job how much of it is done, 0..1; nobody listens where the job does not run in a worker."""
    for listener in _listeners:
        listener(min(max(share, 0.0), 1.0))


@contextlib.contextmanager
def listen_with(listener: Callable[[float], None]) -> Iterator[None]:
    """Have `listener` called with what is reported inside the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def describe_work(text: str) -> None:
    """Note what is under way, such as `12 of 60 answers`, for the next line of `heartbeat`."""
    _latest[0] = text


class WatchedStream:
    """Stream that repeats the latest step when nothing was written for `SECONDS_OF_SILENCE`; everything else is its own."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._started_at = clock()
        self._written_at = self._started_at - SECONDS_TO_START

    def write(self, text: str) -> int:
        """Write, and remember when and what."""
        count = self._stream.write(text)
        self._written_at = self._clock()
        if text.strip():
            _latest[0] = text.strip().splitlines()[-1]
        return count

    def break_silence(self) -> None:
        """Write a line where it is time for one."""
        now = self._clock()
        if now - self._written_at >= SECONDS_OF_SILENCE:
            self._written_at = now
            self._stream.write(f"{now - self._started_at:.0f} s, still at: {one_line(_latest[0])[:LATEST_CHARACTERS]}\n")
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def heartbeat() -> Iterator[None]:
    """Write a line to standard error every `SECONDS_OF_SILENCE` in which nothing else writes one."""
    stream, stop = sys.stderr, threading.Event()
    if stream is None:  # closed by the caller
        yield
        return
    sys.stderr = watched = WatchedStream(stream)

    def watch() -> None:
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
            while not stop.wait(1.0):
                watched.break_silence()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        stop.set()
        sys.stderr = stream


def format_duration(seconds: float) -> str:
    """`about 3 min`, for people."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"


def format_time_left(seconds: float | None) -> str:
    """`about 3 min left`, for people."""
    return "time left not known yet" if seconds is None else f"{format_duration(seconds)} left"


@contextlib.contextmanager
def progress_line(title: str) -> Iterator[Progress]:
    """A moving bar on a terminal; elsewhere a plain line per finished job and per `SHARE_BETWEEN_LINES`. Writes to
    standard error.
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        last_shown = [-1.0]

        def show_line(done: float, total: int, seconds_left: float | None) -> None:
            share_text = f" ({done / total:.0%})" if done != int(done) else ""
            end = "done" if done == total else format_time_left(seconds_left)
            line = f"{title}: {int(done)} of {total}{share_text}, {end}"
            describe_work(line)
            if done == last_shown[0] or (done != int(done) and done < last_shown[0] + SHARE_BETWEEN_LINES * total):
                return
            last_shown[0] = done
            console.print(line, markup=False, highlight=False, soft_wrap=True)

        yield show_line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Bar(*columns, console=console) as bar:
        task = bar.add_task(title, total=None, left="")

        def show_bar(done: float, total: int, seconds_left: float | None) -> None:
            bar.update(task, completed=done, total=total, left="" if done == total else format_time_left(seconds_left))

        yield show_bar

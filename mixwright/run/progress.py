"""Progress: jobs done and time left, a line after a silence, and `--quiet`, which drops both."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator

from mixwright.errors import one_line

Progress = Callable[[float, int, float | None], None]
"""Callback with jobs done (running ones count in part), all jobs, and seconds left (None while unknown)."""
SHARE_BETWEEN_LINES = 0.1
"""Share of all jobs between two lines, without a terminal."""

SECONDS_OF_SILENCE = 15.0
"""Seconds without a line on standard error after which `heartbeat` writes one."""
LATEST_CHARACTERS = 160
"""Characters of the latest step that such a line repeats."""

_latest = ["starting"]
"""The latest line, or the work that was announced last."""
_silent = [True]
"""Whether nothing was said since the last look."""
_quiet = [False]
"""Whether progress and notes are dropped."""
_listeners: list[Callable[[float], None]] = []


def set_quiet(quiet: bool) -> None:
    """Drop progress and notes from now on, or write them again."""
    _quiet[0] = quiet


def is_quiet() -> bool:
    """Return whether progress and notes are dropped."""
    return _quiet[0]


def report_share(share: float) -> None:
    """Report from inside a job how much of it is done, 0..1; has no effect outside a worker."""
    for listener in _listeners:
        listener(min(max(share, 0.0), 1.0))


@contextlib.contextmanager
def listen_with(listener: Callable[[float], None]) -> Iterator[None]:
    """Call `listener` with every share reported inside the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def describe_work(text: str, *, written: bool = False) -> None:
    """Note the current work, such as `12 of 60 answers`, for the next line of `heartbeat`; `written`: it was shown, too."""
    _latest[0] = text
    _silent[0] = _silent[0] and not written


def break_silence(seconds: float) -> None:
    """Write a line to standard error if nothing was said since the last look, so many seconds after the start."""
    if _silent[0] and not is_quiet():
        sys.stderr.write(f"{seconds:.0f} s, still running: {one_line(_latest[0])[:LATEST_CHARACTERS]}\n")
        sys.stderr.flush()
    _silent[0] = True


@contextlib.contextmanager
def heartbeat() -> Iterator[None]:
    """Break the silence every `SECONDS_OF_SILENCE`."""
    stop, start = threading.Event(), time.monotonic()

    def watch() -> None:
        with contextlib.suppress(ValueError, AttributeError):  # standard error was closed
            while not stop.wait(SECONDS_OF_SILENCE):
                break_silence(time.monotonic() - start)

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        stop.set()


def format_duration(seconds: float) -> str:
    """Return a duration for people, such as `about 3 min`."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min"
    return f"about {seconds / 3600:.1f} h"


def format_time_left(seconds: float | None) -> str:
    """Return the time left for people, such as `about 3 min left`."""
    return "time left unknown" if seconds is None else f"{format_duration(seconds)} left"


@contextlib.contextmanager
def share_line(title: str, total: int) -> Iterator[Callable[[float], None]]:
    """Show how far some work is by the share of it that is done, 0..1, with the time that is left at the pace so far."""
    start_time = time.monotonic()
    with progress_line(title) as show:

        def show_share(done: float) -> None:
            seconds_left = (time.monotonic() - start_time) * (1 - done) / done if done > 0 else None
            show(done * (total - 0.001), total, seconds_left)  # no whole number, which would be a line of its own

        show(0, total, None)
        yield show_share
        show(total, total, 0.0)


@contextlib.contextmanager
def progress_line(title: str) -> Iterator[Progress]:
    """Show progress on standard error: a bar on a terminal, else a line per job and per `SHARE_BETWEEN_LINES`."""
    if is_quiet():
        yield lambda done, total, seconds_left: None
        return
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
            describe_work(line, written=True)
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

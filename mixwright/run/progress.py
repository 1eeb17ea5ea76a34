"""Progress line that says how many jobs are done and how long the rest will take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Progress = Callable[[float, int, float | None], None]
"""Called with jobs done (those under way count in part), jobs in all, and seconds left (None while unknown)."""
SHARE_BETWEEN_LINES = 0.1
"""Where there is no terminal: share of all jobs between two lines."""

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
            if done == last_shown[0] or (done != int(done) and done < last_shown[0] + SHARE_BETWEEN_LINES * total):
                return
            last_shown[0] = done
            share_text = f" ({done / total:.0%})" if done != int(done) else ""
            end = "done" if done == total else format_time_left(seconds_left)
            console.print(
                f"{title}: {int(done)} of {total}{share_text}, {end}", markup=False, highlight=False, soft_wrap=True
            )

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

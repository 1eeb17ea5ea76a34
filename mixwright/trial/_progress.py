"""One line that says how far the jobs are and how long they will still take."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

Progress = Callable[[int, int, float | None], None]
"""Called with jobs done, jobs in all, and seconds left (None while unknown)."""


def time_left(seconds: float | None) -> str:
    """`about 3 min left`, for people."""
    if seconds is None:
        return "time left not known yet"
    if seconds < 90:
        return f"about {max(1, round(seconds))} s left"
    if seconds < 5400:
        return f"about {round(seconds / 60)} min left"
    return f"about {seconds / 3600:.1f} h left"


@contextlib.contextmanager
def progress_line(title: str) -> Iterator[Progress]:
    """A moving bar on a terminal; elsewhere one plain line per finished job. Writes to standard error."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:

        def plain(done: int, total: int, seconds: float | None) -> None:
            end = "done" if done == total else time_left(seconds)
            console.print(f"{title}: {done} of {total}, {end}", markup=False, highlight=False, soft_wrap=True)

        yield plain
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

        def moving(done: int, total: int, seconds: float | None) -> None:
            bar.update(task, completed=done, total=total, left="" if done == total else time_left(seconds))

        yield moving

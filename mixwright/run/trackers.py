"""Trackers of experiments, trackio and W&B: alerts of a run, and a run for a finished report."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mixwright.errors import InputError, one_line

MAX_ROWS, MAX_CHARACTERS = 10_000, 4000
"""Rows of a table and characters of a cell; both trackers hold the table in memory, and W&B shows no more rows."""


def check_tracker(name: str | None) -> None:
    """Raise InputError where the tracker is not installed."""
    spec = None if name is None else find_spec(name)
    if name is not None and (spec is None or spec.origin is None):  # W&B makes a folder of its name, which is no package
        raise InputError(f"the package {name}, for --log-to {name}", "none", f"Run: pip install {name}")


def alert(names: Sequence[str], text: str) -> None:
    """Send an alert to the trackers that take alerts; none is imported that the program did not import."""
    for name in names:
        send = getattr(sys.modules.get(name), "alert", None)
        if callable(send):
            send(title="Mixwright gate", text=text)


def log_report(
    name: str,
    title: str,
    figures: Mapping[str, Any],
    columns: Sequence[str],
    records: Sequence[Any],
    *,
    page: Path | None = None,
    alarm: str = "",
    say: Callable[[str], None],
) -> None:
    """Log one run with its figures, a table, a page and an alert; the tracker's own settings say where.

    A report is never lost by its tracker: an error of that is a warning.

    Args:
        name: trackio or wandb.
        title: name of the run.
        figures: by name.
        columns: of the table: fields of the records.
        records: rows of the table; the first `MAX_ROWS` are logged.
        page: HTML file.
        alarm: text of an alert; empty for none.
        say: told how many rows were left out, and an error.
    """
    if len(records) > MAX_ROWS:
        say(f"{name}: the table has the first {MAX_ROWS:,} of {len(records):,} rows")
    rows = [[_clean(getattr(record, column)) for column in columns] for record in records[:MAX_ROWS]]
    try:
        with contextlib.redirect_stdout(sys.stderr):  # trackio prints there, and stdout is for our results
            tracker: Any = importlib.import_module(name)
            tracker.init(
                project=os.environ.get(f"{name.upper()}_PROJECT", "mixwright"), name=re.sub(r"[^\w.-]+", "-", title)
            )
            shown = {**figures, "table": tracker.Table(columns=list(columns), data=rows)}
            tracker.log(shown if page is None else {**shown, "page": tracker.Html(page, inject=False)})
            if alarm:
                alert([name], alarm)
            tracker.finish()
    except Exception as error:  # whatever a package of others may raise: no network, no login, a full disk
        say(f"warning: {name} took nothing, or not all: {type(error).__name__}: {one_line(error)}")


def _clean(value: Any) -> Any:
    """Return a text cut, and without halves of characters, which no tracker can write; other values as they are."""
    return value[:MAX_CHARACTERS].encode(errors="backslashreplace").decode() if isinstance(value, str) else value

"""Rollouts in the database of a trackio project: the tables and traces that TRL logs there.

Source: trackio 0.43.0, trackio/{sqlite_storage,table,trace}.py; TRL 1.16.0, trainer/grpo_trainer.py, whose tables are those
    of its Parquet files, and experimental/async_grpo/async_grpo_trainer.py for traces.
Cost: reads the newest run once.
Blind spot: other runs of the project; completions that TRL left out of its traces (it logs 16 a step).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation, Rows, decode_json
from mixwright.errors import InputError

SQLITE_MAGIC = b"SQLite format 3\0"
TABLE = "trackio.table"
NEWEST = "run_id = (SELECT run_id FROM metrics ORDER BY id DESC LIMIT 1)"
QUERIES = (
    f"SELECT step, CAST(metrics AS TEXT), '[]' FROM metrics WHERE {NEWEST} ORDER BY id",
    f"SELECT step, CAST(metadata AS TEXT), CAST(messages AS TEXT) FROM traces WHERE {NEWEST} ORDER BY step, trace_index",
)


def read_project(path: Path) -> Rows:
    """Yield the rollouts of the newest run of a project. Raises InputError for any other database."""
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as project:
            logged = [(step, *map(decode_json, texts)) for query in QUERIES for step, *texts in project.execute(query)]
    except (sqlite3.Error, ValueError) as error:
        raise InputError("a project of trackio", str(error), "Name PROJECT.db in its folder.", file=path) from None
    for place, (step, values, messages) in enumerate(logged, 1):
        for row in _read_trace(values, messages) if messages else _read_tables(values):
            yield {"step": step, **row}, RowLocation(str(path), row=place)


def _read_tables(metrics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of the tables that were logged at once."""
    for value in metrics.values():
        if isinstance(value, dict) and value.get("_type") == TABLE:
            yield from value["_value"]


def _read_trace(metadata: dict[str, Any], messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield a trace with a reward as a rollout; the messages after the last one of the user are its completion."""
    if "reward" in metadata:
        start = max(n for n, message in enumerate([{"role": "user"}, *messages]) if message.get("role") == "user")
        parts = {name.removeprefix("rewards/"): value for name, value in metadata.items() if name.startswith("rewards/")}
        yield {"prompt": messages[:start], "completion": messages[start:], "reward": metadata["reward"], "rewards": parts}

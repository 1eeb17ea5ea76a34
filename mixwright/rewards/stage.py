"""Rows that rewards are tried on, and the audit of the rewards on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.corpus.columns import RowReader, recognise_columns
from mixwright.corpus.reading import read_rows
from mixwright.errors import InputError
from mixwright.records import Example
from mixwright.rewards.audit import RewardAudit, audit_rewards
from mixwright.rewards.behaviours import make_items

DEFAULT_ITEMS = 40
"""Rows that are tried, where nobody asked for another number."""
MAX_ROWS_READ = 20_000
"""Rows that they are taken from."""
MIN_ITEMS = 4
"""Rows below which nothing is said."""


def run_reward_audit(
    names: Sequence[str],
    config: CorpusConfig,
    *,
    weights: Sequence[float] = (),
    items: int = DEFAULT_ITEMS,
    completion_column: str | None = None,
) -> RewardAudit:
    """Try reward functions on right and wrong answers to rows of a corpus.

    Args:
        names: `package.module:function`, or graders of the catalogue.
        config: `train`, `columns` and `task` are read.
        weights: one per function; none takes 1 for each.
        items: rows to try, evenly spread over the file.
        completion_column: with what the model wrote, a text or messages.

    Raises:
        InputError: the rows or the functions cannot be used.
    """
    if not all(map(math.isfinite, weights)):
        raise InputError("finite numbers for --weight", ", ".join(map(str, weights)), "Write for example --weight 0.5.")
    if weights and len(weights) != len(names):
        raise InputError(
            f"{len(names)} weights, one per function",
            str(len(weights)),
            "Give one --weight per function, in the same order.",
        )
    examples, columns = _read(config, items)
    own = [] if completion_column is None else [_own_completion(row, completion_column, config.train) for row in columns]
    columns = [{name: value for name, value in row.items() if name != completion_column} for row in columns]
    return audit_rewards(names, weights or [1.0] * len(names), make_items(examples, own), columns)


def _own_completion(row: dict[str, Any], column: str, file: str) -> str | None:
    """What the model wrote, of messages the last one; None where the row has nothing there.

    Raises:
        InputError: no such column, or something else in it.
    """
    if column not in row:
        raise InputError(f"a column {column!r}", f"columns {', '.join(row)}"[:120], "Correct --completion.", file=file)
    value = row[column]
    if isinstance(value, list) and value and isinstance(value[-1], dict):
        value = value[-1].get("content")
    if value is not None and not isinstance(value, str):
        raise InputError(f"a text or messages in {column!r}", repr(value)[:80], "Name another column.", file=file)
    return value


def _read(config: CorpusConfig, count: int) -> tuple[list[Example], list[dict[str, Any]]]:
    """Rows with an answer, evenly spread, each with its own columns but the prompt."""
    reader = RowReader(config, "train")
    found: list[tuple[Example, dict[str, Any]]] = []
    for row, location in read_rows(config.train, "train"):
        example = reader.read(row, location)
        if example is not None and (example.answer or "").strip() and example.prompt:
            prompts = {recognise_columns(row, config.columns).get(name) for name in ("prompt", "messages")}
            found.append((example, {name: value for name, value in row.items() if name not in prompts}))
        if len(found) >= MAX_ROWS_READ:
            break
    if len(found) < MIN_ITEMS:
        remedy = "Add rows with a prompt and an answer."
        raise InputError(f"{MIN_ITEMS} rows with answers", str(len(found)), remedy, file=config.train)
    spread = [found[len(found) * place // count] for place in range(count)] if len(found) > count else found
    return [example for example, _ in spread], [columns for _, columns in spread]

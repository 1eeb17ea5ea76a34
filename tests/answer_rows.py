"""Answers of tests: texts with the names that pages have for their columns, and scores of single items by hand."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.answers.score import read_scores
from mixwright.answers.table import READ_COLUMNS, Answers
from mixwright.records import Measurement
from mixwright.run.folder import answers_file, write_measurements

NAMES = {"example": "item", "completion": "text", "answer": "gold"}
DECODINGS = {"greedy": "greedy", "pass@1": "sampled"}
KEY = ("item", "decoding", "sample")
TEXT_COLUMNS = ("prompt", "gold", "text", "cut", "tokens", "logprob", "score")


@dataclass(frozen=True)
class ItemValue:
    """One score of one item: success or S under a decoding, chance level, or a reading."""

    task: str
    name: str
    value: float
    level: float | None
    item: str
    n: int = 1
    """Answers that it is the mean of."""


def to_answers(rows: Iterable[Mapping[str, Any]]) -> Answers:
    first = {"decoding": "greedy", "sample": 0, "text": "?", "cut": False}
    return Answers.from_rows(first | {NAMES.get(name, name): value for name, value in row.items()} for row in rows)


def write_sides(folder: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows with `when` as the answers of each side; scores of items that lie there stay."""
    sides: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        sides[row["when"]].append(row)
    for side, own in sides.items():
        path = folder / f"{side}.answers.parquet"
        scored = _by_key(Answers.read(path)) if path.is_file() else {}
        written = _by_key(to_answers(own))
        joined = {key: {**scored[key], **_texts(row)} if key in scored else row for key, row in written.items()}
        Answers.from_rows((joined | {key: row for key, row in scored.items() if key not in joined}).values()).write(path)


def _by_key(answers: Answers) -> dict[tuple[Any, ...], dict[str, Any]]:
    return {tuple(row[name] for name in KEY): row for row in answers.table.to_pylist()}


def _texts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in TEXT_COLUMNS}


def answers_of(values: Iterable[ItemValue]) -> Answers:
    """Make answers without text that have these scores."""
    by_item: dict[str, dict[str, ItemValue]] = {}
    for value in values:
        by_item.setdefault(value.item, {})[value.name] = value
    rows: list[dict[str, Any]] = []
    for item, own in by_item.items():
        first = next(iter(own.values()))
        place: dict[str, Any] = {"item": item, "task": first.task, "level": first.level}
        place["chance"] = own["chance"].value if "chance" in own else None
        for name, decoding in DECODINGS.items():
            if name in own:
                swapped = own[f"{name}.swapped"].value if f"{name}.swapped" in own else None
                place_of_decoding = place | {"decoding": decoding, "swapped": swapped}
                right = _spread(own[name].value, own[name].n)
                rows += [place_of_decoding | {"sample": sample, "right": value} for sample, value in enumerate(right)]
        read = {name: own[name].value for name in READ_COLUMNS if name in own}
        rows += [place | read] if read else []
    return Answers.from_rows(rows)


def _spread(mean: float, count: int) -> list[float]:
    """Split a mean into so many values: whole answers if it is a share of them."""
    right = round(mean * count)
    return [1.0] * right + [0.0] * (count - right) if right / count == mean else [mean] * count


def write_measured(path: Path, rows: Iterable[Measurement | ItemValue]) -> None:
    """Write a table of measurements, and beside it the answers of the items; texts that lie there stay."""
    rows = list(rows)
    write_measurements(path, [row for row in rows if isinstance(row, Measurement)])
    file = answers_file(path)
    written = {key: row for key, row in _by_key(Answers.read(file)).items() if row["text"]} if file.is_file() else {}
    scored = _by_key(answers_of(row for row in rows if isinstance(row, ItemValue)))
    joined = {key: row | _texts(written[key]) if key in written else row for key, row in scored.items()}
    Answers.from_rows((joined | {key: row for key, row in written.items() if key not in joined}).values()).write(file)


def read_items(path: Path) -> dict[tuple[str, str], float]:
    """Read (name, item) -> score from the answers beside a table of measurements."""
    found = read_scores(path)
    return {(name, item[2]): value for name in found.columns for item, value in found.by_item(name).items()}

"""Results of findings, one JSON file each: expectations, contrasts, word, raw rows, seeds, versions, seconds.

The committed ones are of scale `laptop`, with seeds from `FIRST_SEED` on, which nobody had run before the contrast that
gives the word and its control were named; from 0 or 1000 on where that was not done yet.
A result is stale where claim or expectations of the finding have been edited since.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from mixwright.errors import InputError
from mixwright.records import to_data
from mixwright.run.folder import read_json, write_json
from mixwright_lab.conditions import conditions
from mixwright_lab.contracts import Finding
from mixwright_lab.judging import CANNOT_SHOW, Judged, Row, Word, decide, judge, word_of

RESULTS_FOLDER = Path(__file__).parent / "results" / "findings"
FIRST_SEED = 2000
"""First seed of the runs that give the words."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a finding gave."""

    finding: str
    """Its name."""
    word: Word
    """Of its primary contrast, if its control is reproduced."""
    scale: str
    """`smoke` says nothing about the claim."""
    seeds: tuple[int, ...]
    """Paired over arms."""
    contrasts: tuple[Judged, ...]
    """One per expectation."""
    expectations: str
    """Digest of claim and expectations as they were when it was run."""
    settings: Mapping[str, Any]
    """Of the scale."""
    rows: tuple[Row, ...]
    """Every figure can be worked out again from them."""
    cpu_seconds: float
    """Of all rows, and of what they share."""
    conditions: Mapping[str, Any]
    """Versions, processor, commit."""
    goals: tuple[Mapping[str, Any], ...]
    """The expectations in the form that all studies have."""
    primary: str = ""
    """Primary contrast as it was named before the run; empty for runs from before there was one."""


def result_of(name: str, finding: Finding, scale: str, rows: Sequence[Row], shared_seconds: float) -> Result:
    """Judge the rows of a finding.

    Raises:
        InputError: a reading that an expectation names is missing or no finite number.
    """
    contrasts = judge(finding.EXPECT, rows, finding.RUN_TWICE)
    return Result(
        name,
        decide(contrasts, finding.PRIMARY, finding.CONTROL),
        scale,
        tuple(sorted({row.seed for row in rows})),
        tuple(contrasts),
        digest(finding),
        dataclasses.asdict(finding.SCALES[scale]),
        tuple(rows),
        shared_seconds + sum(row.seconds for row in rows),
        conditions(),
        tuple(goal(one) for one in contrasts),
        finding.PRIMARY,
    )


def goal(one: Judged) -> dict[str, Any]:
    """An expectation as a goal with what came out."""
    wanted = f">= {max(one.least, one.noise or 0.0):.4g}, low above 0"
    ends = {"value": one.value, "low": one.low, "high": one.high}
    return {"name": one.name} | ends | {"goal": wanted, "reached": one.word == "reproduced"}


def digest(finding: Finding | type[Finding]) -> str:
    """Digest of what the finding says it expects."""
    said = repr((finding.CLAIM, [to_data(one) for one in finding.EXPECT], finding.RUN_TWICE))
    return hashlib.blake2b(said.encode(), digest_size=12).hexdigest()


def write(path: Path, result: Result) -> None:
    """Write it, atomically."""
    write_json(path, to_data(result))


def read(name: str, folder: Path = RESULTS_FOLDER) -> Result | None:
    """The kept result; None where there is none.

    Raises:
        InputError: the file is no such result, or contradicts itself.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        return None
    result = read_json(path, Result)
    if broken := next((told for told, kept in _holds(result, name) if not kept), ""):
        raise InputError(f"a result of {name} with {broken}", "another", "Remove it, or run the finding again.", file=path)
    return result


def _holds(result: Result, name: str) -> Iterator[tuple[str, bool]]:
    """What is true of every result that a run wrote, and whether it is of this one."""
    found = result.contrasts
    yield "its name", result.finding == name
    yield "seeds, contrasts and rows", bool(result.seeds and found and result.rows)
    yield "the seeds of its rows", set(result.seeds) == {row.seed for row in result.rows}
    yield "least sizes above 0", all(one.least > 0 for one in found)
    yield "means of its points", all(one.points and math.isclose(mean(one.points), one.value, abs_tol=1e-9) for one in found)
    yield "the words of its intervals", all(one.word == _word(one) for one in found)
    yield "a word of its contrasts", result.word in (CANNOT_SHOW, *(one.word for one in found))


def _word(one: Judged) -> Word:
    return word_of(one.value, one.low, one.high, one.least, len(one.points), one.noise or 0.0)

"""A list of what to add to train: for each hole and cue how many rows, made where Reasoning Gym makes the task.

Source: Zhao et al. 2025 (arXiv 2508.01191): some 70 rows of a missing composition repaired it in a small model.
Left out on purpose: rows of other tasks, which somebody has to write or to ask a generator for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixwright.audit.cue_features import describe_feature
from mixwright.audit.cues import Cue
from mixwright.audit.holes import Hole
from mixwright.audit.rows import with_turns
from mixwright.audit.text import normal_form
from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_source
from mixwright.corpus.corpus import GENERATED_PREFIX
from mixwright.errors import InputError
from mixwright.records import Example, plain, to_data
from mixwright.run.folder import replacing

ROWS_PER_HOLE = 100
"""Rows to add for each hole."""
SPARE = 3
"""Times as many rows are made, so that those that train or eval has can be left out."""


def write_top_up(
    holes: Sequence[Hole], cues: Sequence[Cue], corpus: Corpus, out: Path, *, rows: int = ROWS_PER_HOLE
) -> dict[str, int]:
    """Write one line per hole and cue to `out`, and beside it the rows that could be made.

    Args:
        holes: of the corpus; those that chance explains, and tasks that are not trained, are left out.
        cues: of the corpus; those that read options are left out, because their remedy is another order.
        corpus: with both splits; no row of it is made again.
        out: JSONL; the rows stand in `NAME.rows.jsonl` with prompt, answer, task and level.
        rows: wanted for each hole.

    Returns:
        Counts: holes, cues, rows wanted, and rows made.

    Raises:
        InputError: a file that is already there.
    """
    check_top_up_file(out)
    asked = [hole for hole in holes if hole.is_hole and hole.kind != "task"]
    known = {normal_form(row.prompt).casefold() for row, _ in with_turns(corpus.batches())}
    made = [list(_make(hole, corpus, rows, known)) for hole in asked]
    lines = [_wanted(hole, rows, len(own)) for hole, own in zip(asked, made, strict=True)]
    told = [cue for cue in cues if cue.label and cue.missing]
    lines += [line for cue in told for line in _wanted_beside(cue)]
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    if any(made):
        with replacing(rows_file(out)) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(_row_of(example)) + "\n" for own in made for example in own)
    wanted = sum(line["rows"] for line in lines)
    return {"holes": len(asked), "cues": len(told), "wanted": wanted, "made": sum(map(len, made))}


def rows_file(out: Path) -> Path:
    """Where the rows stand that were made for the list `out`."""
    return out.with_name(f"{out.stem}.rows{out.suffix}")


def check_top_up_file(out: Path) -> None:
    """Raises InputError where the list or its rows are there already, or it is no JSONL."""
    if out.suffix != ".jsonl":
        raise InputError("a file ending in .jsonl", repr(out.name), "Name one.")
    for path in (out, rows_file(out)):
        if path.exists():
            raise InputError("a new file", "one that is there", "Name another one, or remove it.", file=path)


def _wanted(hole: Hole, rows: int, made: int) -> dict[str, Any]:
    return {
        "task": hole.task,
        "kind": hole.kind,
        "missing": hole.what,
        "levels": sorted({need.level for need in hole.rows if need.level is not None}),
        "held_out_rows": len(hole.rows),
        "rows": rows,
        "made": made,
    }


def _wanted_beside(cue: Cue) -> Iterator[dict[str, Any]]:
    """Lines of a cue: rows with it and another answer, and rows without it and with its answer where these lack, too."""
    same = {"task": cue.task, "kind": "cue", "levels": [], "made": 0}
    feature = describe_feature(cue.feature)
    missing = f"the prompt {feature}, and the answer is not {cue.label!r}"
    yield same | {"missing": missing, "held_out_rows": cue.held_out_conflicts, "rows": cue.missing}
    if cue.missing_without:
        missing = f"the answer is {cue.label!r}, and the prompt is not one that {feature}"
        yield same | {"missing": missing, "held_out_rows": 0, "rows": cue.missing_without}


def _make(hole: Hole, corpus: Corpus, rows: int, known: set[str]) -> Iterator[Example]:
    """Rows for a level of a Reasoning Gym task, none of which is `known`; else none."""
    first = corpus.select(ids=[hole.rows[0].id])[0]
    request, level = first.extra.get("reasoning_gym"), hole.rows[0].level
    task = request.get("task") if isinstance(request, dict) else None
    if not isinstance(task, str) or hole.kind != "level" or level is None or level != int(level):
        return
    source, count = f"{GENERATED_PREFIX}{task}@{int(level)}x{rows * SPARE}", 0
    try:
        for example in read_source(source, split="train", config=CorpusConfig(source)):
            key = normal_form(plain(example.prompt)).casefold()
            if key not in known and count < rows:
                known.add(key)
                count += 1
                yield replace(example, task=hole.task)
    except InputError:  # a column of that name that Reasoning Gym did not write
        return


def _row_of(example: Example) -> dict[str, Any]:
    row = {"task": example.task, "prompt": example.prompt, "answer": example.answer, "level": example.level}
    return to_data({name: value for name, value in row.items() if value is not None})

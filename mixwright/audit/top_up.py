"""A list of what to add to train: for each hole and cue how many rows.

Source: Zhao et al. 2025 (arXiv 2508.01191): some 70 rows of a missing composition repaired it in a small model.
Left out on purpose: the rows, which somebody has to write or to ask a generator for.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from mixwright.audit.cue_features import describe_feature
from mixwright.audit.cues import Cue
from mixwright.audit.holes import Hole
from mixwright.errors import InputError
from mixwright.run.folder import replacing

ROWS_PER_HOLE = 100
"""Rows to add for each hole."""


def write_top_up(holes: Sequence[Hole], cues: Sequence[Cue], out: Path) -> dict[str, int]:
    """Write one line per hole and cue to `out`.

    Args:
        holes: of the corpus; those that chance explains, and tasks that are not trained, are left out.
        cues: of the corpus; those that read options are left out, because their remedy is another order.
        out: JSONL.

    Returns:
        Counts: holes, cues, and rows wanted.

    Raises:
        InputError: a file that is already there.
    """
    check_top_up_file(out)
    asked = [hole for hole in holes if hole.is_hole and hole.kind != "task"]
    told = [cue for cue in cues if cue.label and cue.missing]
    lines = [{"task": hole.task, **hole.describe(), "rows": ROWS_PER_HOLE} for hole in asked]
    for cue in told:
        missing = f"the prompt {describe_feature(cue.feature)}, and the answer is not {cue.label!r}"
        line = {"task": cue.task, "kind": "cue", "missing": missing, "levels": []}
        lines.append(line | {"held_out_rows": cue.held_out_conflicts, "rows": cue.missing})
    with replacing(out) as temporary, temporary.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    return {"holes": len(asked), "cues": len(told), "wanted": sum(line["rows"] for line in lines)}


def check_top_up_file(out: Path) -> None:
    """Raises InputError where the list is there already, or it is no JSONL."""
    if out.suffix != ".jsonl":
        raise InputError("a file ending in .jsonl", repr(out.name), "Name one.")
    if out.exists():
        raise InputError("a new file", "one that is there", "Name another one, or remove it.", file=out)

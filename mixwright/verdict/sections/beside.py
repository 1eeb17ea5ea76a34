"""Section of a third checkpoint: success per task of the start, of the other one and of this one, and three answers.

Source: measure/beside.parquet and completions.parquet, which the comparison took over from the earlier one; gate.json.
Unit: success under the declared decoding in percent; greedy completions with their scores.
Cost: reads two tables.
Blind spot: the examples are chosen because the two differ, so they illustrate and prove nothing; the table is the evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mixwright.contracts import Section
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.estimates.judgement import SIGN_ALPHA
from mixwright.estimates.outcome import shared_items
from mixwright.estimates.readings import READINGS, Outcome
from mixwright.measure.bases import read_completion_rows
from mixwright.records import Claim
from mixwright.runs import RunFolder
from mixwright.verdict.beside import BESIDE_NAME, ThreeCheckpoints, three_of
from mixwright.verdict.blocks import Answer, Block, Fold, Pair, Paragraph, Table, Texts
from mixwright.verdict.claims import claims_between
from mixwright.verdict.evidence import Sides, decoding_of
from mixwright.verdict.gate import check_sides
from mixwright.verdict.gate_asked import asked_of
from mixwright.verdict.text import count, level, percent

MOST_PAIRS_OPEN, MOST_PAIRS_SHOWN = 2, 24


class BesideSection(Section):
    """Both gates in a line, a table of three columns, and items that one lost and the other kept."""

    ORDER: ClassVar[int] = 3

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing where no other checkpoint stands beside."""
        three = three_of(run)
        if three is None:
            return []
        decoding = decoding_of(run)
        start, other, after = three.names
        kept, lost = _differing(run)
        told = (
            f"Of the greedy answers that were right before, {after} kept {len(kept):,} that {other} lost, and lost "
            f"{len(lost):,} that {other} kept."
        )
        caption = f"Success per task, {decoding}; loss and gain: significant against {start}, by Holm's correction"
        blocks: list[Block] = [Paragraph(_gates(run, three, decoding), lead=f"{other} and {after} beside {start}")]
        blocks += [Table(caption, ("task", "items", start, other, after), _rows(three, decoding), (1,)), Paragraph(told)]
        shown = [_pair(row, three.names) for row in kept[:MOST_PAIRS_SHOWN]]
        if shown:
            blocks.append(Texts(f"Answers that {other} lost and {after} kept", tuple(shown[:MOST_PAIRS_OPEN])))
        if shown[MOST_PAIRS_OPEN:]:
            more = Texts(f"More answers that {other} lost and {after} kept", tuple(shown[MOST_PAIRS_OPEN:]))
            blocks.append(Fold(f"{len(shown) - MOST_PAIRS_OPEN} more answers that {other} lost and {after} kept", (more,)))
        return blocks


def _gates(run: RunFolder, three: ThreeCheckpoints, decoding: Outcome) -> str:
    """What the gate says of both, by the same question; else how many items are compared."""
    asked = asked_of(run)
    items = f"{count(len(shared_items(*three.other, three.after[1])), 'item')} measured for all three."
    if asked is None or decoding not in ("greedy", "sampled"):
        return items
    found = [check_sides(sides, decoding, asked) for sides in (three.other, three.after)]
    told = [f"{name} {gate.outcome}" for name, gate in zip(three.names[1:], found, strict=True)]
    return f"The gate says of {told[0]}, of {told[1]}, by the same items and margin; {items}"


def _rows(three: ThreeCheckpoints, decoding: Outcome) -> list[tuple[str, ...]]:
    columns = [_column(sides, decoding) for sides in (three.other, three.after)]
    column = READINGS[decoding].column
    values: dict[str, list[float]] = defaultdict(list)
    for item in shared_items(*three.other, three.after[1]):
        values[item[0]].append(float(np.mean([scores.column(column, [item])[0] for scores in three.after[0]])))
    return [
        (task, str(len(own)), _share(own), *(known.get(task, "not measured") for known in columns))
        for task, own in sorted(values.items())
    ]


def _column(sides: Sides, decoding: Outcome) -> dict[str, str]:
    """Success after per task, and in words whether it changed."""
    claims = claims_between(sides, decoding)
    whole = {claim.task: claim for claim in claims if claim.whole or claim.level is None}
    whole |= {
        claim.task: claim for claim in claims if claim.task not in whole and sum(c.task == claim.task for c in claims) == 1
    }
    column, found = READINGS[decoding].column, {}
    for task, claim in whole.items():
        items = [item for item in shared_items(*sides) if item[0] == task]
        own = [float(np.mean([scores.column(column, [item])[0] for scores in sides[1]])) for item in items]
        found[task] = f"{_share(own)}{_word(claim)}"
    return found


def _share(values: Sequence[float]) -> str:
    return percent(float(np.mean(values)))


def _word(claim: Claim) -> str:
    if claim.adjusted_p is None:
        return ", too few items"
    if claim.adjusted_p >= SIGN_ALPHA:
        return ""
    return ", loss" if claim.difference.value < 0 else ", gain"


Row = dict[str, dict[str, Any]]


def _differing(run: RunFolder) -> tuple[list[Row], list[Row]]:
    """Items right before that this checkpoint kept and the other lost, and the other way round; tasks take turns."""
    sides: dict[tuple[str, str], Row] = defaultdict(dict)
    for row in read_completion_rows(run.path / "completions.parquet"):
        sides[row["task"] or "", row["example"] or ""][row["when"]] = row
    whole = [row for row in sides.values() if {"before", "after", BESIDE_NAME} <= row.keys() and _right(row["before"])]
    kept = [row for row in whole if _right(row["after"]) and not _right(row[BESIDE_NAME])]
    lost = [row for row in whole if _right(row[BESIDE_NAME]) and not _right(row["after"])]
    return _take_turns(kept), lost


def _take_turns(rows: Sequence[Row]) -> list[Row]:
    seen: dict[str, int] = defaultdict(int)
    placed = []
    for place, row in enumerate(rows):
        task = row["before"]["task"] or ""
        placed.append((seen[task], place))
        seen[task] += 1
    return [rows[place] for _, place in sorted(placed)]


def _right(row: dict[str, Any]) -> bool:
    return float(row["score"] or 0.0) >= RIGHT_FROM_SCORE


def _pair(row: Row, names: tuple[str, str, str]) -> Pair:
    old, other, new = row["before"], row[BESIDE_NAME], row["after"]
    title = " · ".join(part for part in (old["task"] or "", level(old["level"])) if part)
    texts = [str(side["completion"] or "") for side in (old, other, new)]
    marks = [float(side["score"] or 0.0) for side in (old, other, new)]
    between_them = (Answer(names[1], texts[1], marks[1]),)
    return Pair(
        title, str(old["prompt"] or ""), str(old["answer"] or ""), texts[0], texts[2], marks[0], marks[2],
        names=(names[0], names[2]), between=between_them,
    )  # fmt: skip

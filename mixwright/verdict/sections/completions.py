"""Section of completions before and after, for the same items.

Source: completions.parquet of the leading arm's first seed (or of the run folder).
Unit: greedy completions with their scores.
Cost: reads one table.
Blind spot: one seed and a handful of items, chosen for change: an illustration, never evidence.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar

from mixwright.contracts import Section
from mixwright.errors import InputError
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Fold, Pair, Paragraph, Texts
from mixwright.verdict.evidence import arm_branches, headline_arm
from mixwright.verdict.text import count, level

MOST_OPEN, MOST_SHOWN = 4, 24
KINDS = ("lost", "gained", "changed", "same")


class Completions(Section):
    """Items whose score changed first, taking turns over tasks."""

    ORDER: ClassVar[int] = 50
    TITLE: ClassVar[str] = "Completions before and after"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A few pairs open, more folded."""
        folders = [folder for _, folder in arm_branches(run).get(headline_arm(run), [])] or [run.path]
        path = folders[0] / "completions.parquet"
        if not path.is_file():
            return []
        pairs = _pairs(path)
        if not pairs:
            return []
        counts = {kind: sum(_kind(pair) == kind for pair in pairs) for kind in KINDS}
        text = (
            f"Of {count(len(pairs), 'item')}: {counts['gained']} gained, {counts['lost']} lost, {counts['changed']} changed "
            f"at the same score, {counts['same']} the same. The examples are chosen because they changed, not at random."
        )
        shown = _turns(pairs)[:MOST_SHOWN]
        blocks: list[Block] = [Paragraph(text), Texts("Examples", tuple(shown[:MOST_OPEN]))]
        if shown[MOST_OPEN:]:
            blocks.append(
                Fold(f"{len(shown) - MOST_OPEN} more examples", (Texts("More examples", tuple(shown[MOST_OPEN:])),))
            )
        return blocks


def _pairs(path: Path) -> list[Pair]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = ["when", "example", "task", "level", "prompt", "answer", "completion", "score"]
    try:
        rows = pq.read_table(path, columns=names).to_pylist()
    except (OSError, pa.ArrowException, KeyError) as error:
        raise InputError(f"a table with columns {', '.join(names)}", str(error)[:120], "Measure again.", file=path) from None
    sides: dict[tuple[str, str], dict[str, dict[str, Any]]] = defaultdict(dict)
    for row in rows:
        sides[row["task"] or "", row["example"] or ""].setdefault(row["when"], row)
    found = []
    for both in sides.values():
        if "before" in both and "after" in both:
            old, new = both["before"], both["after"]
            title = " · ".join(part for part in (old["task"] or "", level(old["level"])) if part)
            prompt, answer = str(old["prompt"] or ""), str(old["answer"] or "")
            texts = (str(old["completion"] or ""), str(new["completion"] or ""))
            scores = (float(old["score"] or 0.0), float(new["score"] or 0.0))
            found.append(Pair(title, prompt, answer, texts[0], texts[1], scores[0], scores[1]))
    return found


def _kind(pair: Pair) -> str:
    if pair.score_after != pair.score_before:
        return "gained" if pair.score_after > pair.score_before else "lost"
    return "changed" if pair.after != pair.before else "same"


def _turns(pairs: list[Pair]) -> list[Pair]:
    """Lost and gained taking turns, over tasks, then changed, then the same."""
    by_kind = {kind: _by_task([pair for pair in pairs if _kind(pair) == kind]) for kind in KINDS}
    moved = [p for both in zip_longest(by_kind["gained"], by_kind["lost"]) for p in both if p is not None]
    return [*moved, *by_kind["changed"], *by_kind["same"]]


def _by_task(pairs: list[Pair]) -> list[Pair]:
    tasks: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        tasks[pair.title].append(pair)
    return [pair for turn in zip_longest(*tasks.values()) for pair in turn if pair is not None]

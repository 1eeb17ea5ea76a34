"""Section of completions before and after, for the same items.

Source: completions.parquet of the leading arm's first seed (or of the run folder).
Unit: greedy completions with their scores.
Cost: reads one table.
Blind spot: one seed and a handful of items, chosen for change: an illustration, never evidence.
"""

from __future__ import annotations

from collections import Counter
from itertools import zip_longest

from mixwright.contracts import Section
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.answers import interleave_groups, make_pair, read_answers
from mixwright.verdict.page.blocks import Block, Fold, Pair, Paragraph, Texts
from mixwright.verdict.page.text import format_count
from mixwright.verdict.rules.evidence import leading_folders

MAX_OPEN, MAX_SHOWN = 4, 24


class Completions(Section):
    """Items whose score changed first, taking turns over tasks."""

    ORDER = 50
    TITLE = "Completions before and after"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A few pairs open, more folded."""
        folder = next(iter(leading_folders(run)), run.path)
        pairs = [make_pair(item) for item in read_answers(folder / "completions.parquet")]
        if not pairs:
            return []
        counts = Counter(map(_kind, pairs))
        text = (
            f"Of {format_count(len(pairs), 'item')}: {counts['gained']} gained, {counts['lost']} lost, {counts['changed']} "
            f"changed at the same score, {counts['same']} the same. The examples are chosen because they changed, not at "
            "random."
        )
        gained_pairs, lost_pairs, changed_pairs, same_pairs = (
            interleave_groups([pair for pair in pairs if _kind(pair) == kind], lambda pair: pair.title)
            for kind in ("gained", "lost", "changed", "same")
        )
        rescored = [
            pair for pair_of_kinds in zip_longest(gained_pairs, lost_pairs) for pair in pair_of_kinds if pair is not None
        ]
        shown_pairs = tuple([*rescored, *changed_pairs, *same_pairs][:MAX_SHOWN])
        more_texts = Texts("More examples", shown_pairs[MAX_OPEN:])
        return [
            Paragraph(text),
            Texts("Examples", shown_pairs[:MAX_OPEN]),
            Fold(f"{len(shown_pairs) - MAX_OPEN} more examples", (more_texts,)),
        ]


def _kind(pair: Pair) -> str:
    if pair.score_after != pair.score_before:
        return "gained" if pair.score_after > pair.score_before else "lost"
    return "changed" if pair.after != pair.before else "same"

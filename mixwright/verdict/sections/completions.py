"""Section of completions before and after, for the same items: a few examples, and all items by what became of them.

Source: completions.parquet of the leading arm's first seed (or of the run folder).
Unit: greedy completions with their scores.
Cost: reads one table; the lists take at most about 2 MB of the page.
Blind spot: one seed; the examples are chosen for change: an illustration, never evidence.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from mixwright.contracts import Section
from mixwright.corpus.chosen_graders import CUT_MARK
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.answers import interleave_groups, make_pair, read_answers
from mixwright.verdict.page.blocks import Block, Fold, Pair, Paragraph, Table, Texts
from mixwright.verdict.page.text import format_count
from mixwright.verdict.rules.evidence import leading_folders

MAX_OPEN = 4
"""Examples that are seen without opening a list."""
MAX_TEXT, MAX_LINE = 240, 100
"""Characters of a text in a list, of items whose score changed and of the others; longer ones end in a mark."""
MAX_ARTICLES, MAX_ROWS = 900, 2400
"""Items of the lists of changed scores, and of each of the other two; a page of 20,000 items stays under 3 MB."""
HEADINGS = {
    "lost": "lost: the score fell",
    "gained": "gained: the score rose",
    "changed": "with another text at the same score",
    "same": "unchanged",
}
"""What became of an item -> how its list is called, after the number."""


class Completions(Section):
    """Items whose score changed first, taking turns over tasks; then lists by change and task."""

    ORDER = 50
    TITLE = "Completions before and after"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A few pairs open, all items folded."""
        folder = next(iter(leading_folders(run)), run.path)
        pairs = [make_pair(item) for item in read_answers(folder / "completions.parquet")]
        if not pairs:
            return []
        by_kind = {kind: [pair for pair in pairs if _kind(pair) == kind] for kind in HEADINGS}
        counts = {kind: len(members) for kind, members in by_kind.items()}
        text = (
            f"Of {format_count(len(pairs), 'item')}: {counts['gained']} gained, {counts['lost']} lost, {counts['changed']} "
            f"changed at the same score, {counts['same']} the same. The examples are chosen because they changed, not at "
            "random."
        )
        in_turn = {kind: interleave_groups(members, lambda pair: pair.title) for kind, members in by_kind.items()}
        rescored = [pair for turn in zip_longest(in_turn["gained"], in_turn["lost"]) for pair in turn if pair is not None]
        examples = [*rescored, *in_turn["changed"], *in_turn["same"]][:MAX_OPEN]
        lists = [_list_of(kind, members) for kind, members in in_turn.items() if members]
        return [Paragraph(text), Texts("Examples", tuple(examples)), *lists]


def _list_of(kind: str, pairs: Sequence[Pair]) -> Fold:
    """A fold of one kind of item, with a fold for each task; where there are too many, all tasks have some."""
    has_articles = kind in ("lost", "gained")
    shown = pairs[: MAX_ARTICLES if has_articles else MAX_ROWS]
    by_task: dict[str, list[Pair]] = defaultdict(list)
    for pair in shown:
        by_task[pair.title].append(pair)
    make = _texts if has_articles else _table
    parts: list[Block] = [make(by_task[task], task) for task in sorted(by_task)]
    if len(parts) > 1:
        parts = [
            Fold(f"{task}: {format_count(len(by_task[task]), 'item')}", (part,))
            for task, part in zip(sorted(by_task), parts, strict=True)
        ]
    if left_out := len(pairs) - len(shown):
        parts.insert(0, Paragraph(f"{format_count(left_out, 'item')} of these are in completions.parquet alone."))
    return Fold(f"{format_count(len(pairs), 'item')} {HEADINGS[kind]}", tuple(parts))


def _texts(pairs: Sequence[Pair], task: str) -> Texts:
    return Texts(task, tuple(_shorten(pair) for pair in pairs))


def _table(pairs: Sequence[Pair], task: str) -> Table:
    rows = [
        (_cut(pair.prompt, MAX_LINE), _completion(pair), _cut(pair.answer, MAX_LINE), f"{pair.score_after:.2g}")
        for pair in pairs
    ]
    return Table(task, ("prompt", "completion after", "answer", "score"), rows, numeric=(3,))


def _completion(pair: Pair) -> str:
    """What was written after, with a mark where it ran into the limit of tokens."""
    return _cut(pair.after, MAX_LINE) + CUT_MARK * pair.names[1].endswith(CUT_MARK)


def _shorten(pair: Pair) -> Pair:
    texts = {name: _cut(getattr(pair, name), MAX_TEXT) for name in ("prompt", "answer", "before", "after")}
    return replace(pair, **texts)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} …"


def _kind(pair: Pair) -> str:
    if pair.score_after != pair.score_before:
        return "gained" if pair.score_after > pair.score_before else "lost"
    return "changed" if pair.after != pair.before else "same"

"""Check for held-out items that the training data holds too: the same, with text around them, or nearly the same.

Source: Li & Flanigan 2023 (arXiv 2312.16337) for task seen against item seen; the nulls and the template mask are our own.
Unit: held-out rows with a partner in train, of the task's held-out rows (or of those indexed).
Cost: two passes, 37 bytes per row, 45 per turn of a chat and per text whose case matters, an index of 5000 held-out rows.
Blind spot: paraphrases, translations, look-alike letters, copies reworded and wrapped at once or cut short, talk in chats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from mixwright.audit.case import Case, Cases
from mixwright.audit.chance import chance_explains
from mixwright.audit.leaks import NEAR_SIMILARITY, find_leaks
from mixwright.audit.near_duplicates import have_common_passage
from mixwright.audit.rows import Reader, note_unlisted
from mixwright.contracts import Check
from mixwright.records import Observation, Severity

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

REMEDY = "Remove these rows from train or split by prompt."
REMEDY_SEEDS = " Seed generators by a hash, never by seed + 1."
Pairs = list[tuple[int, int]]


class Contamination(Check):
    """Compares the eval split with the train split, text by text: prompts, and each user turn of a chat.

    Args:
        tolerated: share of a task's held-out rows, 0..1, up to which an overlap that chance explains is only a warning.
        similarity: least Jaccard similarity of word runs for a near-duplicate, 0..1.
    """

    def __init__(self, *, tolerated: float = 0.02, similarity: float = NEAR_SIMILARITY) -> None:
        self.tolerated = tolerated
        self.similarity = similarity

    def check(self, corpus: Corpus) -> list[Observation]:
        """Item leaks, wrapped copies, prompts with two answers, near-duplicates and tasks seen, per task of eval."""
        found = find_leaks(corpus, self.similarity)
        if not len(found.same.held_out) or not len(found.same.train):
            missing = "train" if len(found.same.held_out) else "eval"
            text = f"There is no {missing} split, so contamination was not looked for."
            return [Observation("contamination", None, "info", 0, len(corpus), text, "")]
        seen: list[Observation] = []
        clean: list[Case] = []
        for case in Cases(Reader(corpus), found):
            items = [*self._item_leaks(case), *_wrapped(case), *_other_answers(case), *_observe_near(case)]
            clean += [] if items else [case]
            seen += [*items, _task_seen(case)]
        return [*seen, _observe_clean(clean)] if clean else seen

    def _item_leaks(self, case: Case) -> list[Observation]:
        found = case.leaks.same
        shared = case.rows_where(found.shared)
        count = len(shared)
        if not count:
            return []
        text = f"{count} of {case.total} held-out items stand in train too ({found.exact[shared].sum()} to the character)."
        shift = case.shift(shared)
        if shift is not None:
            text += f" They come in the same order, shifted by {shift}"
            text += ", as generators with neighbouring seeds make them." if shift else "."
        remedy = REMEDY + REMEDY_SEEDS if shift else REMEDY
        usual = chance_explains(count, case.expected) and count <= self.tolerated * case.total
        return [_observe(case, "warning" if usual else "error", case.pairs_of(shared), case.total, text, case.null, remedy)]


def _wrapped(case: Case) -> list[Observation]:
    pairs = case.found_around(agreeing=True)
    if not pairs:
        return []
    inside = sum(inside for _, inside, agrees in case.wrapped.values() if agrees)
    text = f"{len(pairs)} of {len(case.sought)} held-out items stand in train with other text around them"
    text += f" ({inside} inside a training text, {len(pairs) - inside} hold a training prompt)."
    expected = case.expected_wrapped()
    null = f"by chance {expected:.3g} rows hold the same words in the same order"
    return [_judge(case, pairs, text, expected, null)]


def _other_answers(case: Case) -> list[Observation]:
    pairs = case.pairs_of(case.rows_where(case.leaks.same.other_answer))
    around = case.found_around(agreeing=False)
    if around and not chance_explains(len(around), case.expected_wrapped()):
        pairs += around
    text = f"{len(pairs)} of {case.total} held-out prompts stand in train with another answer."
    remedy = "Find out which answer is right; if both are, keep the prompt in one split."
    return [_observe(case, "warning", pairs, case.total, text, case.null, remedy)] if pairs else []


def _observe_near(case: Case) -> list[Observation]:
    pairs = [(case.leaks.rows[at].number, row) for at, row in case.near.items()]
    if not pairs:
        return []
    numbers = np.unique(np.array(pairs))
    prompt = {number: row.prompt for number, row in zip(numbers.tolist(), case.reader.rows(numbers), strict=True)}
    asked = [have_common_passage(prompt[one], prompt[other]) for one, other in pairs]
    passage = [pair for pair, other in zip(pairs, asked, strict=True) if other]
    pairs = [pair for pair, other in zip(pairs, asked, strict=True) if not other]
    seen, total = [], len(case.sought)
    if passage:
        text = (
            f"{len(passage)} of {total} held-out items share whole sentences, numbers and answer with a training row, and "
        )
        text += "differ in others: other questions about one text, or copies with a reworded sentence."
        null = "none: look at the pairs"
        remedy = "Where they are copies, remove them from train."
        seen.append(_observe(case, "warning", passage, total, text, null, remedy, near=True))
    if pairs:
        text = f"{len(pairs)} of {total} held-out items nearly stand in train: same numbers and answer, like words."
        expected = case.expected_near()
        null = f"by chance {expected:.3g} rows, as often as rows that are worded alike have the same numbers and answer"
        seen.append(_judge(case, pairs, text, expected, null, near=True))
    return seen


def _task_seen(case: Case) -> Observation:
    count, looked, others = case.worded_alike()
    text = f"{count} of {looked} held-out prompts resemble training prompts in wording, which is no leak by itself."
    if not count and case.named_alike:
        text = (
            f"Training has {case.named_alike} rows of this task, none of {others} looked at worded like a held-out prompt."
        )
    elif not count:
        text = f"No training row is of this task, and none of {others} looked at is worded like its prompts: it is new."
    null = "training on a task is intended: this is no leak of items"
    return Observation("contamination", case.name, "info", count, looked, text, "", null)


def _observe_clean(clean: Sequence[Case]) -> Observation:
    """What was looked at and found in order: a reader should not have to infer it from silence."""
    total, sought = sum(case.total for case in clean), sum(len(case.sought) for case in clean)
    where = f"tasks without one: {len(clean)}" if len(clean) > 1 else f"task {clean[0].name}"
    text = f"No held-out item was found in train ({where}): {total} were compared whole, {sought} of them also for copies "
    return Observation("contamination", None, "info", 0, total, text + "inside other text and for near copies.", "")


def _judge(case: Case, pairs: Pairs, text: str, expected: float, null: str, *, near: bool = False) -> Observation:
    """An error, or an info where chance gives as many: other items then only look like these."""
    if chance_explains(len(pairs), expected):
        text += " Unrelated rows would share as much by chance."
        return _observe(case, "info", pairs, len(case.sought), text, null, "", near=near)
    return _observe(case, "error", pairs, len(case.sought), text, null, near=near)


def _observe(
    case: Case,
    severity: Severity,
    pairs: Pairs,
    total: int,
    text: str,
    null: str,
    remedy: str = REMEDY,
    *,
    near: bool = False,
) -> Observation:
    text += note_unlisted(len(pairs))
    return Observation(
        "contamination", case.name, severity, len(pairs), total, text, remedy, null, case.show(pairs, near=near)
    )

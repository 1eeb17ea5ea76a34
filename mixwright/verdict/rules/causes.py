"""Causes of a loss: what the lost answers of a damaged task are now, and how many of them that explains.

A lost answer is one that was right before and is wrong now. Each counts for the first kind, in the order of `CauseKind`,
that it shows and its earlier answer did not, so that shares add up to one at most. A kind is named where the task's answers
show it more often than before beyond chance, where it explains three lost answers and a tenth of them, and where it is not
commoner among the answers that stayed right. How many of these show it is told: what leaves right answers right explains
little.

Source: McNemar's exact test; Holm's correction over all kinds and damaged tasks.
Unit: share of the lost answers.
Cost: linear in the answers of damaged tasks.
Blind spot: what was lost without a sign in the answer, such as a fact; that a form and a loss came together is no proof that
    one made the other.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from mixwright.audit.steps.equations import read_equations
from mixwright.behaviours import BEHAVIOURS, read_behaviours
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.estimates.intervals import holm, hypergeometric_tail, sign_test
from mixwright.graders.follows import are_rules
from mixwright.records import AnswerPair, Cause, CauseKind, FormChange
from mixwright.verdict.rules.answer_forms import FEATURE_TESTS, AnsweredItem
from mixwright.verdict.rules.marks import find_marks
from mixwright.words import words_in

ALPHA = 0.05
"""Adjusted p value below which a kind became more frequent."""
LEAST_ITEMS, LEAST_SHARE = 3, 0.1
"""Lost answers that a cause explains at least, and share of them."""
MAX_EXAMPLES = 3
MAX_LABELS, MIN_LABEL_ITEMS, LABEL_SHARE = 12, 4, 0.8
"""Different right answers up to which they are labels; items of a label, and share of them that are called one other."""
KINDS: tuple[CauseKind, ...] = get_args(CauseKind)
SAME_FEATURE = ("empty", "repeating", "cut", "prompt copied", "other language", "shorter", "longer")
Shows = Callable[[AnsweredItem, int], bool]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of answer of one task, and whether each item shows it before and after."""

    kind: CauseKind
    pattern: str
    before: Sequence[bool]
    after: Sequence[bool]

    @property
    def p(self) -> float:
        """Exact p value that it is no more frequent than before."""
        pairs = list(zip(self.before, self.after, strict=True))
        return sign_test(sum(new and not old for old, new in pairs), sum(old and not new for old, new in pairs))


def find_causes(pairs: Sequence[AnswerPair], damaged: Collection[str], changes: Sequence[FormChange]) -> list[Cause]:
    """Return the causes that are shown, task by task, the largest share of the lost answers first.

    Args:
        pairs: answers to all items.
        damaged: tasks that are worse.
        changes: forms that were tested, of which formats and the one answer are taken.
    """
    by_task: dict[str, list[AnswerPair]] = defaultdict(list)
    for pair in pairs:
        if pair.task in damaged and pair.graded:
            by_task[pair.task].append(pair)
    found = [(task, kind) for task, own in by_task.items() for kind in _list_kinds(task, own, changes)]
    adjusted = holm([kind.p for _, kind in found])
    kinds_by_task: dict[str, list[tuple[_Kind, float]]] = defaultdict(list)
    for (task, kind), p in zip(found, adjusted, strict=True):
        kinds_by_task[task].append((kind, p))
    return [cause for task, own in sorted(by_task.items()) for cause in _explain(task, own, kinds_by_task[task])]


def _explain(task: str, pairs: Sequence[AnswerPair], kinds: Sequence[tuple[_Kind, float]]) -> list[Cause]:
    """Share out the lost answers of a task among the kinds that became more frequent."""
    was_right = [pair.score_before >= RIGHT_FROM_SCORE for pair in pairs]
    is_right = [pair.score_after >= RIGHT_FROM_SCORE for pair in pairs]
    lost = [place for place in range(len(pairs)) if was_right[place] and not is_right[place]]
    kept = [place for place in range(len(pairs)) if was_right[place] and is_right[place]]
    left, causes = set(lost), []
    for kind, p in kinds:
        explained = [place for place in lost if place in left and kind.after[place] and not kind.before[place]]
        kept_with = sum(kind.after[place] for place in kept)
        is_commoner_in_kept = (
            hypergeometric_tail(
                kept_with, len(kept), kept_with + sum(kind.after[place] for place in lost), len(kept) + len(lost)
            )
            < ALPHA
        )
        if p >= ALPHA or is_commoner_in_kept or len(explained) < max(LEAST_ITEMS, LEAST_SHARE * len(lost)):
            continue
        left -= {*explained}
        examples = tuple(sorted((pairs[place] for place in explained), key=lambda pair: len(pair.prompt + pair.after)))
        counts = (len(explained), len(lost), kept_with, len(kept))
        causes.append(Cause(task, kind.kind, *counts, kind.pattern, p, examples[:MAX_EXAMPLES]))
    return sorted(causes, key=lambda cause: -cause.items)


def _list_kinds(task: str, pairs: Sequence[AnswerPair], changes: Sequence[FormChange]) -> list[_Kind]:
    """All kinds of a task that any answer shows after, the most specific first."""
    items = [
        AnsweredItem(
            pair.prompt,
            None if not pair.gold or are_rules(pair.gold) else pair.gold,
            (pair.before, pair.after),
            pair.cut,
            pair.score_after >= RIGHT_FROM_SCORE,
        )
        for pair in pairs
    ]
    tests: dict[CauseKind, tuple[str, Shows]] = {name: ("", FEATURE_TESTS[name]) for name in SAME_FEATURE}
    tests["refuses"], tests["asks back"] = (("", _behaves(name)) for name in ("refuses", "asks"))
    tests["unread"], tests["wrong step"] = ("", _states_gold), ("", _has_wrong_step)
    for change in changes:
        if change.task != task or change.after <= change.before:
            continue
        if change.feature == "form of another task" and change.reported:
            tests.setdefault("other format", (change.other_task, _has_mark(change.pattern)))
        elif change.feature == "new form" and change.reported:
            tests.setdefault("new format", (change.pattern, _has_mark(change.pattern)))
        elif change.feature == "one answer":
            tests["one answer"] = (change.pattern, _says(change.pattern))
    if (taken := _find_taken_labels(items)) and "one answer" not in tests:
        tests["other label"] = (", ".join(f"{new} for {old}" for old, new in taken.items()), _says_taken(taken))
    kinds = []
    for kind in KINDS:
        if kind in tests:
            pattern, shows = tests[kind]
            before, after = ([shows(item, side) for item in items] for side in (0, 1))
            kinds += [_Kind(kind, pattern, before, after)] if any(after) else []
    return kinds


def _behaves(name: str) -> Shows:
    place = BEHAVIOURS.index(name)
    return lambda item, side: read_behaviours(item.texts[side])[place]


def _has_mark(mark: str) -> Shows:
    return lambda item, side: mark in find_marks(item.texts[side])


def _says(answer: str) -> Shows:
    return lambda item, side: " ".join(item.texts[side].split()) == answer


def _states_gold(item: AnsweredItem, side: int) -> bool:
    """Whether a wrong answer after holds the right one as whole words; one of two characters or more."""
    if side == 0 or item.is_right_after or not item.gold or len(item.gold.strip()) < 2:
        return False
    return bool(re.search(rf"(?<!\w){re.escape(item.gold.strip())}(?!\w)", item.texts[1], re.IGNORECASE))


def _has_wrong_step(item: AnsweredItem, side: int) -> bool:
    """Whether one of several computed steps is wrong."""
    equations = read_equations(item.texts[side])
    return len(equations) > 1 and not all(equation.is_right for equation in equations)


def _find_taken_labels(items: Sequence[AnsweredItem]) -> dict[str, str]:
    """Label -> other label that most of its items are called now; empty where right answers are no labels."""
    labels = Counter(" ".join(words_in(item.gold or "")) for item in items)
    if not 2 <= len(labels) <= MAX_LABELS or "" in labels:
        return {}
    called: dict[str, Counter[str]] = defaultdict(Counter)
    for item in items:
        called[" ".join(words_in(item.gold or ""))][_read_label(item.texts[1], labels)] += 1
    commonest = {label: counts.most_common(1)[0] for label, counts in called.items() if labels[label] >= MIN_LABEL_ITEMS}
    return {
        label: other
        for label, (other, count) in commonest.items()
        if other not in ("", label) and count >= LABEL_SHARE * labels[label]
    }


def _says_taken(taken: Mapping[str, str]) -> Shows:
    def shows(item: AnsweredItem, side: int) -> bool:
        gold = " ".join(words_in(item.gold or ""))
        return gold in taken and _read_label(item.texts[side], {gold, taken[gold]}) == taken[gold]

    return shows


def _read_label(text: str, labels: Collection[str]) -> str:
    """The one label that a text holds; empty for none or several."""
    text = f" {' '.join(words_in(text))} "
    held = [label for label in labels if f" {label} " in text]
    return held[0] if len(held) == 1 else ""

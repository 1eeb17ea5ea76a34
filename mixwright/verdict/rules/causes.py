"""Causes of a loss: what the lost answers of a damaged task are now, and how many of them that explains.

A lost answer is one that was right before, or right in part, and is worse now. Each counts for the first kind, in the order
of `CauseKind`, that it shows and its earlier answer did not, so that shares add up to one at most. A kind is named where
answers that were right show it more often now, beyond chance, and where three lost answers and a tenth of them do; of one
answer and of length, which go with any new content, four fifths of those that nothing else explains. Where answers that
stayed right show it as often, it is told and explains nothing: what leaves right answers right is a change of style.

Source: McNemar's exact test; Bonferroni's correction over all kinds and damaged tasks.
Unit: share of the lost answers.
Cost: linear in the answers of damaged tasks.
Blind spot: what was lost without a sign in the answer, such as a fact; that a form and a loss came together is no proof that
    one made the other.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from mixwright.audit.steps.equations import read_equations
from mixwright.behaviours import BEHAVIOURS, read_behaviours
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.estimates.intervals import hypergeometric_tail, sign_test
from mixwright.graders.includes import Includes
from mixwright.languages import find_language, guess_language
from mixwright.records import AnswerPair, Cause, CauseKind, Example
from mixwright.thoughts import drop_thoughts
from mixwright.verdict.page.answers import is_right_after
from mixwright.verdict.rules.answer_forms import FEATURE_TESTS, without_rules
from mixwright.verdict.rules.marks import find_marks
from mixwright.words import words_in

ALPHA = 0.05
"""Probability of naming any kind where none became more frequent, over all damaged tasks."""
LEAST_ITEMS, LEAST_SHARE = 3, 0.1
"""Lost answers that a cause explains at least, and share of them."""
MAX_EXAMPLES, MIN_KEPT = 3, 5
"""Lost answers that are shown; answers that stayed right from which on a kind has to be commoner among the lost ones."""
MAX_LABELS, LABEL_SHARE = 20, 0.8
"""Different right answers up to which they are labels; share of a label's lost answers that are called one other label, and
of a task's earlier answers that have its own format."""
OWNED_SHARE, ASKED_SHARE = 0.25, 0.05
"""Share of a task's answers that are right and have a mark, from which the mark is its own; share of the right answers from
which one is asked for."""
LEAST_OF_REST: Mapping[CauseKind, float] = dict.fromkeys(("one answer", "shorter", "longer"), 0.8)
"""Share of the lost answers left by the kinds before, which those have to explain that come along with any new content."""
KINDS: tuple[CauseKind, ...] = get_args(CauseKind)
SAME_FEATURE = ("empty", "repeating", "cut", "prompt copied", "shorter", "longer")
SENTENCES = Includes()
Shows = Callable[[AnswerPair, int], bool]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of answer of one task, and which of its answers that were right show it, before and after."""

    kind: CauseKind
    pattern: str
    before: Sequence[bool]
    after: Sequence[bool]


@dataclass(frozen=True, slots=True, eq=False)
class _Task:
    """Answers of one task that were right before."""

    name: str
    pairs: Sequence[AnswerPair]
    items: Sequence[AnswerPair]

    @property
    def lost(self) -> list[AnswerPair]:
        """Those that are worse now."""
        return [item for item in self.items if _is_lost(item)]

    @property
    def least(self) -> float:
        """Lost answers that a cause explains at least."""
        return max(LEAST_ITEMS, LEAST_SHARE * len(self.lost))


def find_causes(pairs: Sequence[AnswerPair], damaged: Collection[str]) -> list[Cause]:
    """Return the causes that are shown, task by task, the largest share of the lost answers first.

    Args:
        pairs: answers to all items.
        damaged: tasks that are worse.
    """
    owners = _find_owners(pairs, damaged)
    kinds = {task: _list_kinds(task, owners) for task in (_read_task(name, pairs) for name in sorted(damaged))}
    tests = sum(map(len, kinds.values()))
    return [cause for task, own in kinds.items() for cause in _share_out(task, own, ALPHA / max(tests, 1))]


def _read_task(name: str, pairs: Sequence[AnswerPair]) -> _Task:
    own = [pair for pair in pairs if pair.task == name and pair.graded and pair.score_before > 0]  # in part, too
    items = [
        replace(without_rules(pair), before=drop_thoughts(pair.before), after=drop_thoughts(pair.after)) for pair in own
    ]
    return _Task(name, own, items)


def _share_out(task: _Task, kinds: Sequence[_Kind], alpha: float) -> list[Cause]:
    """Share out the lost answers of a task: each kind is tested on the answers that no kind before it explains."""
    lost = [place for place, item in enumerate(task.items) if _is_lost(item)]
    every_kept = [place for place, item in enumerate(task.items) if not _is_lost(item)]
    left, causes = set(lost), []
    for kind in kinds:
        says_it = kind.pattern if kind.kind == "one answer" else None  # a constant label is right where it is the label
        kept = [place for place in every_kept if _fold(task.items[place].gold) != says_it]
        explained = [place for place in lost if place in left and kind.after[place] and not kind.before[place]]
        new, gone = (
            sum(side[place] and not other[place] for place in (*left, *kept))
            for side, other in ((kind.after, kind.before), (kind.before, kind.after))
        )
        p = sign_test(new, gone)
        if p >= alpha or len(explained) < max(task.least, LEAST_OF_REST.get(kind.kind, 0.0) * len(left)):
            continue
        lost_with, kept_with = (sum(kind.after[place] for place in places) for places in (left, kept))
        chance = hypergeometric_tail(lost_with, len(left), lost_with + kept_with, len(left) + len(kept))
        is_specific = len(kept) < MIN_KEPT or chance < ALPHA
        left -= {*explained} if is_specific else set()
        examples = tuple(sorted((task.pairs[place] for place in explained), key=lambda pair: len(pair.prompt + pair.after)))
        counts = (len(explained), len(lost), kept_with, len(kept))
        causes.append(Cause(task.name, kind.kind, *counts, is_specific, kind.pattern, p, examples[:MAX_EXAMPLES]))
    return sorted(causes, key=lambda cause: (not cause.is_specific, -cause.items))


def _list_kinds(task: _Task, owners: Mapping[str, str]) -> list[_Kind]:
    """All kinds that any answer of a task shows after, the most specific first."""
    tests: dict[CauseKind, tuple[str, Shows]] = {name: ("", FEATURE_TESTS[name]) for name in SAME_FEATURE}
    tests["refuses"], tests["asks back"] = (("", _behaves(name)) for name in ("refuses", "asks"))
    tests["unread"], tests["wrong step"] = ("", _states_gold), ("", _has_wrong_step)
    tests |= _find_formats(task, owners) | _find_language(task) | _find_labels(task)
    kinds = []
    for name in KINDS:
        if name in tests:
            pattern, shows = tests[name]
            before, after = ([shows(item, side) for item in task.items] for side in (0, 1))
            lost = zip(task.items, before, after, strict=True)
            new = sum(shown and not was and _is_lost(item) for item, was, shown in lost)
            kinds += [_Kind(name, pattern, before, after)] if new >= task.least else []
    return kinds


def _find_owners(pairs: Sequence[AnswerPair], damaged: Collection[str]) -> dict[str, str]:
    """Mark -> task that is not damaged most of whose answers are right in it: wrong ones may have taken it over, too."""
    sizes = Counter(pair.task for pair in pairs if pair.task not in damaged)
    right = [pair for pair in pairs if pair.task in sizes and is_right_after(pair)]
    counts = Counter((mark, pair.task) for pair in right for mark in find_marks(pair.after))
    shares = {key: count / sizes[key[1]] for key, count in counts.items()}
    by_share = sorted(shares, key=lambda key: (shares[key], key))
    return {mark: task for mark, task in by_share if shares[mark, task] >= OWNED_SHARE}


def _find_formats(task: _Task, owners: Mapping[str, str]) -> dict[CauseKind, tuple[str, Shows]]:
    """Marks that lost answers have now and their earlier ones had not, of another task or of none."""
    golds = [find_marks(item.gold) for item in task.items]
    asked = {mark for mark, count in _count(golds).items() if count >= ASKED_SHARE * len(golds)}
    new = _count([find_marks(item.texts[1]) - find_marks(item.texts[0]) for item in task.lost])
    common = [mark for mark in sorted(new, key=lambda mark: (-new[mark], mark)) if mark not in asked]
    common = [mark for mark in common if new[mark] >= task.least]
    owned = [mark for mark in common if mark in owners]
    free = [mark for mark in common if mark not in owners]
    found: dict[CauseKind, tuple[str, Shows]] = {}
    if owned:
        found["other format"] = (owners[owned[0]], _has_mark({mark for mark in owned if owners[mark] == owners[owned[0]]}))
    if free:
        found["new format"] = (free[0], _has_mark({*free}))
    was = _count([find_marks(item.texts[0]) for item in task.items])
    own = [mark for mark, count in was.most_common() if count >= LABEL_SHARE * len(task.items)]
    if own:
        found["format lost"] = (own[0], lambda item, side: find_marks(item.texts[side]).isdisjoint(own))
    return found


def _is_lost(item: AnswerPair) -> bool:
    """Whether an answer is worse now, also one that was right in part."""
    return item.score_after < item.score_before


def _count(marks: Sequence[frozenset[str]]) -> Counter[str]:
    return Counter(mark for own in marks for mark in own)


def _has_mark(marks: Collection[str]) -> Shows:
    return lambda item, side: not find_marks(item.texts[side]).isdisjoint(marks)


def _behaves(name: str) -> Shows:
    place = BEHAVIOURS.index(name)
    return lambda item, side: read_behaviours(item.texts[side])[place]


def _find_language(task: _Task) -> dict[CauseKind, tuple[str, Shows]]:
    """Languages of lost answers other than those of their prompts."""
    usual = Counter(filter(None, (find_language(item.prompt) for item in task.items)))
    was = usual.most_common(1)[0][0] if usual else find_language(" ".join(item.prompt for item in task.items))

    def find_other(item: AnswerPair, side: int) -> str:
        asked = find_language(item.prompt) or was
        return "" if (language := guess_language(item.texts[side], asked)) == asked else language

    languages = Counter(find_other(item, 1) for item in task.lost)
    others = {name for name, count in languages.items() if name and count >= LEAST_ITEMS}
    named = ", ".join(sorted(others))
    return {"other language": (named, lambda item, side: find_other(item, side) in others)} if was and others else {}


def _find_labels(task: _Task) -> dict[CauseKind, tuple[str, Shows]]:
    """One answer to everything, or labels that are called other ones."""
    texts = Counter(_fold(item.texts[1]) for item in task.lost)
    labels = Counter(_fold(item.gold) for item in task.items)
    text, count = texts.most_common(1)[0] if texts else ("", 0)
    golds = {_fold(item.gold) for item in task.lost if _fold(item.texts[1]) == text}
    found: dict[CauseKind, tuple[str, Shows]] = {}
    if text and len(golds) > 1 and count >= task.least:
        found["one answer"] = (text, lambda item, side: _fold(item.texts[side]) == text)
    if not 2 <= len(labels) <= MAX_LABELS or "" in labels:
        return found
    called: dict[str, Counter[str]] = defaultdict(Counter)
    for item in task.lost:
        called[_fold(item.gold)][_read_label(item.texts[1], labels)] += 1
    taken = {
        label: other
        for label, counts in called.items()
        for other, number in counts.most_common(1)
        if other not in ("", label) and number >= max(LEAST_ITEMS, LABEL_SHARE * counts.total())
    }
    others = {*taken.values()}
    if len(others) == 1 and labels.keys() - others <= taken.keys() and len(labels) > 2:  # everything is called this
        (text,) = others
        found["one answer"] = (text, lambda item, side: _read_label(item.texts[side], labels) == text)
    elif taken:
        found.pop("one answer", None)
        found["other label"] = (", ".join(f"{new} for {old}" for old, new in taken.items()), _says_taken(taken))
    return found


def _fold(text: str) -> str:
    """The words of a text, by which labels are compared."""
    return " ".join(words_in(text))


def _says_taken(taken: Mapping[str, str]) -> Shows:
    def shows(item: AnswerPair, side: int) -> bool:
        gold = _fold(item.gold)
        return gold in taken and _read_label(item.texts[side], {gold, taken[gold]}) == taken[gold]

    return shows


def _read_label(text: str, labels: Collection[str]) -> str:
    """The one label that a text holds; empty for none or several."""
    text = f" {_fold(text)} "
    held = [label for label in labels if f" {label} " in text]
    return held[0] if len(held) == 1 else ""


def _states_gold(item: AnswerPair, side: int) -> bool:
    """Whether a wrong answer after states the right one, as the grader of sentences reads it."""
    if side == 0 or is_right_after(item) or not item.gold:
        return False
    return SENTENCES.grade(Example("", "", item.prompt, answer=item.gold), item.texts[1]) >= RIGHT_FROM_SCORE


def _has_wrong_step(item: AnswerPair, side: int) -> bool:
    """Whether one of several computed steps is wrong."""
    equations = read_equations(item.texts[side])
    return len(equations) > 1 and not all(equation.is_right for equation in equations)

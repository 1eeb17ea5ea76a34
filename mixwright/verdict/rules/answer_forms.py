"""Changes of form between the answers of two checkpoints, by exact tests on pairs; no grader is asked.

Each feature is something that a single answer shows or does not, so that before and after are compared by McNemar's exact
test over the items of a task. Which answer, skeleton or mark is looked for is chosen on both sides together, which leaves
the tests exact. Holm's correction is over all tests of other tasks' forms, and over all others: with ten items a task, one
family of all tests could never be significant.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mixwright.estimates.intervals import holm, sign_test
from mixwright.graders.follows import are_rules
from mixwright.graders.includes import is_data
from mixwright.languages import find_language
from mixwright.languages import is_asked_for as is_asked_for_language
from mixwright.records import AnswerPair, Example, Feature, FormChange, FormTaken, plain
from mixwright.run.folder import RunFolder, write_json
from mixwright.skeleton import skeleton
from mixwright.verdict.page.answers import ItemPairs, is_lost, is_right_after
from mixwright.verdict.rules.marks import find_marks, is_asked_for
from mixwright.words import copies_prompt, repeats_itself

MIN_ITEMS, MIN_FORM_ANSWERS = 10, 5
"""Items of a task below which nothing is tested, and below which its answers are no form that others can go over to."""
FORM_ALPHA = 0.01
"""Adjusted p value below which a change is reported."""
MARK_SHARE, OWN_MARK_SHARE = 0.25, 0.05
"""Share of answers from which a task has a mark, and share of its gold answers or training rows from which it may."""
CHARACTERS_READ = 4000
"""Characters of a prompt and of an answer that are compared."""
_DATA_START = re.compile(r"\s*(?:\{|<(?!think)\w|```|\[[{\"\[])")
"""Beginning of JSON, tags or code."""
_DATA_NAMED = re.compile(r"\b(?:json|html|xml|yaml|csv|sql|code|script|function|program|command|tags?)\b", re.IGNORECASE)
MarkShares = Mapping[str, Mapping[str, float]]
"""Task -> mark -> share of its training rows that have it."""
LEAST_LONG = 16
"""Characters of an answer from which on it is long beside one half as long: Buenos Aires is no longer answer than Rome."""
ROWS_READ_PER_TASK = 500
"""Rows of a task whose completions are read for their marks."""
KnownForms = dict[str, dict[str, float]]
"""Task -> mark -> share of the completions in its rows that have it."""


@dataclass(frozen=True, slots=True)
class _TaskFeature:
    """A feature of a task, item by item."""

    task: str
    feature: Feature
    before: Sequence[bool]
    after: Sequence[bool]
    reportable: bool = True
    """Whether it would be reported if it were significant."""
    pattern: str = ""
    other_task: str = ""

    @property
    def changed_counts(self) -> tuple[int, int]:
        """Items that show it after alone, and before alone; the other way round of a form that may have gone."""
        pairs = list(zip(self.before, self.after, strict=True))
        new = sum(after and not before for before, after in pairs)
        old = sum(before and not after for before, after in pairs)
        return (old, new) if self.feature == "own form gone" else (new, old)


def form_changes(pairs: ItemPairs, trained_shares: MarkShares | None = None) -> list[FormChange]:
    """What changed, task by task; the order of the pairs does not matter.

    Args:
        pairs: answers of both sides.
        trained_shares: marks of the training rows, where they are known.
    """
    items_by_task: dict[str, list[AnswerPair]] = defaultdict(list)
    for (task, _), pair in sorted(pairs.items()):
        items_by_task[task].append(without_rules(pair))
    tested_items = {task: items for task, items in sorted(items_by_task.items()) if len(items) >= MIN_ITEMS}
    takeovers, new_features = _find_mark_features(items_by_task, tested_items, trained_shares or {})
    other_features = [feature for task, items in tested_items.items() for feature in _list_features(task, items)]
    return [*_test_features(takeovers), *_test_features([*other_features, *new_features])]


def without_rules(pair: AnswerPair) -> AnswerPair:
    """The pair without a gold answer that is a rule, and no text."""
    return replace(pair, gold="") if are_rules(pair.gold) else pair


def _collapse_spaces(text: str) -> str:
    return " ".join(text[:CHARACTERS_READ].split())


def _is_in_other_language(item: AnswerPair, side: int) -> bool:
    """Whether an answer is not in the language of its prompt, or else of its counterpart, and nothing asks for that."""
    language, known = find_language(item.texts[side]), find_language(item.prompt) or find_language(item.texts[1 - side])
    is_other = bool(language and known) and language != known
    return is_other and language != find_language(item.gold) and not is_asked_for_language(language, item.prompt)


def _asks_for_data(item: AnswerPair) -> bool:
    """Whether a prompt has or names data or code, or its gold answer is such."""
    return bool(_DATA_NAMED.search(item.prompt)) or is_data(f"{item.prompt}\n{item.gold}")


def _is_half_as_long(item: AnswerPair, side: int) -> bool:
    """Whether an answer is at most half as long as its counterpart, which is more than a word or two."""
    return len(item.texts[1 - side]) >= max(2 * len(item.texts[side]), LEAST_LONG)


FEATURE_TESTS: dict[Feature, Callable[[AnswerPair, int], bool]] = {
    "empty": lambda item, side: not _collapse_spaces(item.texts[side]),
    "cut": lambda item, side: item.cut[side],
    "repeating": lambda item, side: repeats_itself(item.texts[side][:CHARACTERS_READ]),
    "prompt copied": lambda item, side: copies_prompt(item.prompt[:CHARACTERS_READ], item.texts[side][:CHARACTERS_READ]),
    "other language": _is_in_other_language,
    "data": lambda item, side: bool(_DATA_START.match(item.texts[side])) and not _asks_for_data(item),
    "shorter": _is_half_as_long,
    "longer": lambda item, side: _is_half_as_long(item, 1 - side),
}
"""Feature -> whether the answer of an item before (0) or after (1) shows it."""


def _list_features(task: str, items: Sequence[AnswerPair]) -> list[_TaskFeature]:
    """All features but those of marks."""

    def find(name: Feature) -> _TaskFeature:
        before, after = ([FEATURE_TESTS[name](item, side) for item in items] for side in (0, 1))
        return _TaskFeature(task, name, before, after)

    names: tuple[Feature, ...] = ("empty", "repeating", "other language", "data", "cut")
    features = [find(name) for name in names]
    in_gold = [copies_prompt(item.prompt[:CHARACTERS_READ], item.gold[:CHARACTERS_READ]) for item in items]
    features.append(replace(find("prompt copied"), reportable=_share_of_true(in_gold) < OWN_MARK_SHARE))
    features += _find_one_answer(task, items)
    lengths = [find("shorter"), find("longer")]
    features += [replace(found, reportable=2 * sum(found.after) >= len(items)) for found in lengths]
    return features + _find_own_forms(task, items)


def _share_of_true(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0


def _find_one_answer(task: str, items: Sequence[AnswerPair]) -> list[_TaskFeature]:
    """The commonest answer of both sides together; none where gold answers are unknown or all alike.

    It is reported from half of the way on between the share of the commonest gold answer and all answers.
    """
    gold_counts = Counter(" ".join(item.gold.split()) for item in items if item.gold)
    texts = [[_collapse_spaces(item.texts[side]) for item in items] for side in (0, 1)]
    text_counts = Counter(text for side in texts for text in side if text)
    if len(gold_counts) < 2 or not text_counts:
        return []
    answer = min(text_counts, key=lambda text: (-text_counts[text], text))
    before, after = ([text == answer for text in side] for side in texts)
    expected = max(gold_counts.values()) / gold_counts.total()
    return [_TaskFeature(task, "one answer", before, after, _share_of_true(after) >= (1 + expected) / 2, answer)]


def _find_own_forms(task: str, items: Sequence[AnswerPair]) -> list[_TaskFeature]:
    """Skeletons that half of the items or more have, both sides counted: those that may have gone."""
    forms = [[skeleton(item.texts[side]) for item in items] for side in (0, 1)]
    form_counts = Counter(form for side in forms for form in side)
    features = []
    for form in sorted(form for form, form_count in form_counts.items() if form and 2 * form_count >= len(items)):
        before, after = ([item_form == form for item_form in side] for side in forms)
        reportable = 2 * sum(before) >= len(items) and 2 * (sum(before) - sum(after)) >= len(items)
        features.append(_TaskFeature(task, "own form gone", before, after, reportable, form))
    return features


def _find_mark_features(
    items_by_task: Mapping[str, Sequence[AnswerPair]],
    tested_items: Mapping[str, Sequence[AnswerPair]],
    trained_shares: MarkShares,
) -> tuple[list[_TaskFeature], list[_TaskFeature]]:
    """Marks that other tasks have as their own, and marks that no task has, as features of every task."""
    marks_by_task = {task: _TaskMarks(task, items, trained_shares.get(task, {})) for task, items in items_by_task.items()}
    owners_by_mark: dict[str, list[tuple[int, float, str]]] = defaultdict(list)  # minus strength, minus share, task
    for task, marks in marks_by_task.items():
        for mark, strength in marks.owned_marks().items():
            owners_by_mark[mark].append((-strength, -marks.share_after[mark], task))
    takeovers, new_features = [], []
    for task in tested_items:
        own_marks = marks_by_task[task]
        for twin_marks in own_marks.list_changed_marks():
            best_owners = [
                (min(owners_elsewhere), mark)
                for mark in twin_marks
                if (owners_elsewhere := [owner for owner in owners_by_mark.get(mark, ()) if owner[2] != task])
            ]
            if best_owners:
                (minus_strength, _, owner_task), mark = min(best_owners, key=lambda candidate: candidate[0])
                takeovers.append(own_marks.make_feature("form of another task", mark, -minus_strength, owner_task))
            else:
                new_features.append(own_marks.make_feature("new form", twin_marks[0], 0))
    return takeovers, new_features


class _TaskMarks:
    """Marks of the answers of one task."""

    def __init__(self, task: str, items: Sequence[AnswerPair], trained: Mapping[str, float]) -> None:
        self.task, self.items, self.trained = task, items, trained
        self.before, self.after = ([find_marks(item.texts[side]) for item in items] for side in (0, 1))
        self.share_before, self.share_after = _count_shares(self.before), _count_shares(self.after)
        self.share_of_gold = _count_shares([find_marks(item.gold) for item in items if item.gold])

    def asked_share(self, mark: str) -> float:
        """The larger share of gold answers and of training rows that have it."""
        return max(self.share_of_gold.get(mark, 0.0), self.trained.get(mark, 0.0))

    def ownership_strength(self, mark: str) -> int:
        """How surely a mark that answers after have is the task's own.

        2 where gold answers or training rows have it, 1 where former answers have it or the grader takes it, else 0.
        """
        if len(self.items) < MIN_FORM_ANSWERS or self.share_after[mark] < MARK_SHARE:
            return 0
        if self.asked_share(mark) >= MARK_SHARE:
            return 2
        are_right = [is_right_after(item) for item, marks in zip(self.items, self.after, strict=True) if mark in marks]
        return int(self.share_before.get(mark, 0.0) >= MARK_SHARE or _share_of_true(are_right) >= MARK_SHARE)

    def owned_marks(self) -> dict[str, int]:
        """Mark -> how surely it is the task's own, of those that are."""
        strengths = {mark: self.ownership_strength(mark) for mark in sorted(self.share_after)}
        return {mark: strength for mark, strength in strengths.items() if strength}

    def list_changed_marks(self) -> list[list[str]]:
        """Marks that some item has on one side alone and that half of the items may have; twins together."""
        marks_by_pattern: dict[tuple[bool, ...], list[str]] = defaultdict(list)
        for mark in sorted(self.share_before.keys() | self.share_after.keys(), key=_mark_sort_key):
            sides = [[mark in item_marks for item_marks in side] for side in (self.before, self.after)]
            if sides[0] != sides[1] and 2 * sum(map(sum, sides)) >= len(self.items):
                marks_by_pattern[*sides[0], *sides[1]].append(mark)
        return list(marks_by_pattern.values())

    def make_feature(self, feature: Feature, mark: str, strength: int, other_task: str = "") -> _TaskFeature:
        """The mark as a feature, and whether the task may not have it: nothing of it had the form or asks for it."""
        before, after = ([mark in marks for marks in side] for side in (self.before, self.after))
        is_expected = self.asked_share(mark) >= OWN_MARK_SHARE or self.share_before.get(mark, 0.0) >= MARK_SHARE
        is_expected = is_expected or _share_of_true([is_asked_for(mark, item.prompt) for item in self.items]) >= 0.5
        is_accepted = any(is_right_after(item) and has_mark for item, has_mark in zip(self.items, after, strict=True))
        reportable = not is_expected and 2 * sum(after) >= len(self.items) and (strength == 2 or not is_accepted)
        return _TaskFeature(self.task, feature, before, after, reportable, mark, other_task)


def _count_shares(marks: Sequence[frozenset[str]]) -> dict[str, float]:
    """Mark -> share of some texts that have it."""
    return {mark: count / len(marks) for mark, count in Counter(mark for own in marks for mark in own).items()}


def _mark_sort_key(mark: str) -> tuple[bool, int, str]:
    """Named marks before general ones, long before short ones."""
    return mark.startswith("…") or mark in ("<…>", "{…}", "[…]"), -len(mark), mark


def _test_features(features: Sequence[_TaskFeature]) -> list[FormChange]:
    """The features with their p values, corrected over those that any item shows on one side alone."""
    p_values = [sign_test(*feature.changed_counts) for feature in features]
    tested = [place for place, feature in enumerate(features) if sum(feature.changed_counts)]
    adjusted = dict(zip(tested, holm([p_values[place] for place in tested]), strict=True))
    return [
        FormChange(
            feature.task,
            feature.feature,
            before=sum(feature.before),
            after=sum(feature.after),
            items=len(feature.before),
            p=p_values[place],
            adjusted_p=adjusted.get(place, 1.0),
            reported=feature.reportable and adjusted.get(place, 1.0) < FORM_ALPHA,
            pattern=feature.pattern,
            other_task=feature.other_task,
        )
        for place, feature in enumerate(features)
    ]


def group_takeovers(changes: Iterable[FormChange], pairs: Sequence[AnswerPair] = ()) -> list[FormTaken]:
    """The reported changes to another task's form: one per task, that of the most answers, and together what went alike.

    Args:
        changes: those of `form_changes`.
        pairs: answers to all items, of which lost ones may have the form.
    """
    best: dict[str, FormChange] = {}
    for change in changes:
        if change.reported and change.feature == "form of another task":
            best_so_far = best.setdefault(change.task, change)
            best[change.task] = change if change.after > best_so_far.after else best_so_far
    by_owner: dict[str, list[FormChange]] = defaultdict(list)
    for change in best.values():
        by_owner[change.other_task].append(change)
    taken = []
    for owner, members in by_owner.items():
        pattern_of = {change.task: change.pattern for change in members}
        lost = [pair for pair in pairs if pair.task in pattern_of and is_lost(pair)]
        counts = (sum(change.after for change in members), sum(change.items for change in members), len(lost))
        with_form = sum(pattern_of[pair.task] in find_marks(pair.after) for pair in lost)
        taken.append(FormTaken(owner, tuple(pattern_of), *counts, with_form))
    return sorted(taken, key=lambda form: (-form.answers, form.owner))


def known_forms_file(run: RunFolder) -> Path:
    """Where the forms of the corpus's own completions are kept, because a comparison does not keep the corpus."""
    return run.path / "known_forms.json"


def write_known_forms(run: RunFolder, corpus: Iterable[Example]) -> None:
    """Note which marks the completions have that rows of a task are trained on; nothing where rows have none."""
    marks_by_task: dict[str, list[frozenset[str]]] = defaultdict(list)
    for example in corpus:
        text = plain(example.target if example.target is not None else example.chosen)
        if text and not are_rules(text) and len(marks_by_task[example.task]) < ROWS_READ_PER_TASK:
            marks_by_task[example.task].append(find_marks(text))
    shares = {
        task: {mark: share for mark, share in sorted(_count_shares(texts).items()) if share >= OWN_MARK_SHARE}
        for task, texts in sorted(marks_by_task.items())
    }
    if any(shares.values()):
        write_json(known_forms_file(run), {task: marks for task, marks in shares.items() if marks})

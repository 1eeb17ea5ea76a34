"""Cues: surface features of prompts that go with one answer nearly always, so that the rule need not be learnt.

Source: Li et al. 2026 (arXiv 2603.29025) for rows in which cue and rule disagree; the tests are our own.
Left out on purpose: whether a cue is the rule. Who knows the task has to say so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mixwright.audit.cue_features import FORMS, Feature, find_shared_parts, read_features, rows_with
from mixwright.audit.rows import SAMPLE_ROWS, Reader, check_columns, draw_sample, rows_by_task, sample_tasks
from mixwright.audit.text import normal_words, read_conclusion
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import binomial_tail, hypergeometric_tail, wilson
from mixwright.graders.choice import option_index, option_texts, options_of
from mixwright.records import Example, plain

MIN_ROWS, MIN_LABEL_ROWS, MAX_LABELS = 40, 10, 12
"""Rows of a task, and of an answer, below which nothing is said; answers that make a closed set."""
CLOSED_SHARE = 0.95
"""Share of the rows that the commonest `MAX_LABELS` answers must have."""
MIN_CUE_ROWS = 15
LEAST_SHARE = 0.85
"""Of the rows with a cue, those that have its answer."""
LEAST_DROP = 3.0
"""How many times rarer other answers must be among rows with the cue than among those without."""
LEAST_FORM_SHARE, LEAST_WORD_SHARE = 0.1, 0.15
"""Share of a task's rows that must have a cue: a form, and a word, which is more often what a task is about."""
ALPHA = 0.001
"""Probability of any such cue in a task, were answers dealt out at random."""
MAX_CUES = 12
"""Of one task."""
NEARLY = 0.7
"""Share of the largest -log probability from which on a cue is nearly as strong as the strongest."""
LEAST_PROBABILITY = 1e-300
SAME_ROWS = 0.8
"""Share of rows in common from which on two features are one cue."""
VAGUENESS = {"word": 1, "length": 2}
"""Kinds that say less than others do of the same rows; a number says more where the word beside it is known."""
LEAST_OPTION_KAPPA = 0.25
"""Of a rule that reads options alone: its success above blind choice, as a share of what there is above it."""
NO_ROWS = np.array([], np.int64)


@dataclass(frozen=True)
class Cue:
    """One feature that goes with one answer."""

    feature: Feature
    """What the prompts, or the right options, have."""
    label: str
    """The answer that goes with it; empty for rules that read options."""
    rows: int
    """Rows with it, of those that were read."""
    conflicts: int
    """Of these, rows with another answer."""
    rest: float
    """Share of rows without it that have another answer; for rules that read options what blind choice gets wrong."""
    held_out: int
    """Held-out rows with it."""
    held_out_conflicts: int
    """Of these, rows with another answer."""
    examples: tuple[Example, ...]
    """Rows with it, those with another answer first."""


@dataclass(frozen=True)
class CuesOfTask:
    """What was found in a task."""

    task: str
    """Its name."""
    read: int
    """Training rows that were read."""
    total: int
    """Training rows of the task."""
    cues: tuple[Cue, ...]
    """Strongest first."""


def find_cues(corpus: Corpus, columns: Sequence[str] = ()) -> list[CuesOfTask]:
    """Cues of every task whose answers are a closed set, or one of the row's options. Bounded memory: rows are sampled.

    Args:
        corpus: both splits are read.
        columns: of the rows, whose values are looked at as features are.

    Raises:
        InputError: no row has such a column.
    """
    check_columns(corpus, columns, "--cue")
    reader, found = Reader(corpus), list[CuesOfTask]()
    train, held_out = rows_by_task(corpus, "train"), rows_by_task(corpus, "eval")
    for task, rows in sample_tasks(reader, train, MIN_ROWS):
        others = list(reader.examples(draw_sample(held_out.get(task, NO_ROWS), SAMPLE_ROWS)).values())
        cues = _option_cues(rows, others) if _has_options(rows) else _label_cues(rows, others, columns)
        if cues is not None:
            found.append(CuesOfTask(task, len(rows), len(train[task]), tuple(cues)))
    return sorted(found, key=lambda one: one.task)


def _read_answer(row: Example) -> str:
    return read_conclusion(row.answer or plain(row.target) or "")


def common_start(answers: Sequence[str]) -> str:
    """The words that nearly all answers begin with (`I would say `), and no answer is."""
    alive, start = [answer.split() for answer in answers], list[str]()
    while alive:
        words = Counter(answer[len(start)] for answer in alive if len(answer) > len(start) + 1)
        word, count = words.most_common(1)[0] if words else ("", 0)
        if count < CLOSED_SHARE * len(answers):
            break
        alive = [answer for answer in alive if answer[len(start) : len(start) + 1] == [word]]
        start.append(word)
    return "".join(f"{word} " for word in start)


def _label_cues(rows: Sequence[Example], held_out: Sequence[Example], columns: Sequence[str]) -> list[Cue] | None:
    """Cues of a task whose answers are a closed set; None where they are none. Repeats of a prompt and answer count once."""
    rows = list({(plain(row.prompt).strip(), _read_answer(row)): row for row in reversed(rows)}.values())[::-1]
    answers = [_read_answer(row) for row in rows]
    start = common_start(answers)
    answers = [answer.removeprefix(start) for answer in answers]
    common = Counter(answers).most_common(MAX_LABELS)
    labels = [answer for answer, count in common if count >= MIN_LABEL_ROWS and answer]
    if len(labels) < 2 or sum(count for _, count in common) < CLOSED_SHARE * len(rows):
        return None
    shared_parts = find_shared_parts([plain(row.prompt) for row in rows])
    features = {
        feature: positions
        for feature, positions in read_features(rows, columns, shared_parts).items()
        if len(positions) >= max(MIN_CUE_ROWS, (LEAST_FORM_SHARE if feature.kind in FORMS else LEAST_WORD_SHARE) * len(rows))
        and len(positions) <= len(rows) - MIN_LABEL_ROWS
    }
    has_label = {label: np.array([answer == label for answer in answers]) for label in labels}
    found, held_out_answers = list[Cue](), [_read_answer(row).removeprefix(start) for row in held_out]
    for feature, label in _choose(features, has_label):
        own, has_it = features[feature], has_label[label]
        read = [(rows[position], bool(has_it[position])) for position in own.tolist()]
        beside = [held_out_answers[position] == label for position in rows_with(feature, held_out, shared_parts)]
        found.append(_make_cue(feature, label, float(np.delete(~has_it, own).mean()), read, beside))
    return found


def _make_cue(
    feature: Feature, label: str, rest: float, read: Sequence[tuple[Example, bool]], beside: Sequence[bool]
) -> Cue:
    """A cue from its rows and the held-out ones, each with whether it has the answer."""
    examples = tuple(row for row, _ in sorted(read, key=lambda one: one[1]))
    conflicts = sum(not is_right for _, is_right in read)
    return Cue(feature, label, len(read), conflicts, rest, len(beside), beside.count(False), examples)


def _choose(features: Mapping[Feature, np.ndarray], has_label: Mapping[str, np.ndarray]) -> list[tuple[Feature, str]]:
    """Features that go with a label; of those nearly as unlikely by chance the one with fewest exceptions comes first.

    Each is judged on the rows that those before it have not, so that what follows from one is not told again: where a sign
    stands with one answer alone, prompts without it are shorter and have the other. The other end of the same quantity is
    judged on its own.
    """
    chosen: list[tuple[Feature, str]] = []
    test_count = len(features) * len(has_label)
    while len(chosen) < MAX_CUES:
        evidence_by_cue: dict[tuple[Feature, str], tuple[float, float]] = {}
        for label, own_label in has_label.items():
            left_by_quantity: dict[tuple[str, str] | None, np.ndarray] = {}
            quantities = {one.subject for one, _ in chosen}
            for feature, positions in features.items():
                if own_label[positions].mean() < LEAST_SHARE or _is_told(feature, chosen):
                    continue
                quantity = feature.subject if feature.subject in quantities else None
                if quantity not in left_by_quantity:
                    left_by_quantity[quantity] = _left(features, chosen, label, quantity, len(own_label))
                left = left_by_quantity[quantity]
                own = positions[left[positions]]
                probability = _probability(own, left, own_label)
                if probability * test_count < ALPHA:
                    least = float(wilson(int(own_label[own].sum()), len(own))[0])
                    evidence_by_cue[feature, label] = -math.log(max(probability, LEAST_PROBABILITY)), least
        if not evidence_by_cue:
            break
        most = max(evidence for evidence, _ in evidence_by_cue.values())
        strong = [cue for cue, (evidence, _) in evidence_by_cue.items() if evidence >= NEARLY * most]
        best, label = max(strong, key=lambda cue: (evidence_by_cue[cue][1], len(features[cue[0]]), cue))
        of_label = [feature for feature, other in evidence_by_cue if other == label]
        chosen.append((_most_specific(best, of_label, features), label))
    return chosen


def _is_told(feature: Feature, chosen: Sequence[tuple[Feature, str]]) -> bool:
    """Whether this end of a quantity is among the chosen ones, with another bound."""
    return feature.bound is not None and any(
        (one.subject, one.is_upper) == (feature.subject, feature.is_upper) for one, _ in chosen
    )


def _left(
    features: Mapping[Feature, np.ndarray],
    chosen: Sequence[tuple[Feature, str]],
    label: str,
    quantity: tuple[str, str] | None,
    rows: int,
) -> np.ndarray:
    """Which rows the chosen cues leave: those of the label, and of other labels those of other quantities."""
    left = np.ones(rows, bool)
    for feature, other in chosen:
        if other == label or feature.subject != quantity:
            left[features[feature]] = False
    return left


def _probability(positions: np.ndarray, left: np.ndarray, has_label: np.ndarray) -> float:
    """Of so many rows with the label among those with a feature, were labels dealt out at random; 1 for what is no cue."""
    count, total, of_label = len(positions), int(left.sum()), int(has_label[left].sum())
    with_label = int(has_label[positions].sum())
    if count < MIN_CUE_ROWS or count == total or with_label < LEAST_SHARE * count:
        return 1.0
    others_without = (total - count - (of_label - with_label)) / (total - count)
    if LEAST_DROP * (count - with_label) > others_without * count:
        return 1.0
    return hypergeometric_tail(with_label, count, of_label, total)


def _most_specific(best: Feature, candidates: Sequence[Feature], features: Mapping[Feature, np.ndarray]) -> Feature:
    """Of the features that nearly the same rows have, the one that says most: `not` is a negation, and one word more makes
    a prompt longer.
    """
    own, alike = set(features[best].tolist()), {best: 1.0}
    for one in candidates:
        other = set(features[one].tolist())
        if one.subject != best.subject and (shared := len(own & other) / len(own | other)) >= SAME_ROWS:
            alike[one] = shared
    return min(
        alike, key=lambda one: (VAGUENESS.get(one.kind, 0), one.kind == "number" and " " not in one.value, -alike[one], one)
    )


def _has_options(rows: Sequence[Example]) -> bool:
    """Whether most rows have options that are not the same in all of them."""
    texts = [tuple(option_texts(row)) for row in rows]
    return sum(len(one) > 1 for one in texts) > len(rows) / 2 and len({tuple(sorted(one)) for one in texts}) > len(rows) / 4


def _option_cues(rows: Sequence[Example], held_out: Sequence[Example]) -> list[Cue]:
    """Rules that find the right option without reading the question: a place, the longest, what shares words with it."""
    picked, others_picked = _read_picks(rows), _read_picks(held_out)
    features = sorted({feature for one in picked for feature in one})
    found = []
    for feature in features:
        own = [(row, *one[feature]) for row, one in zip(rows, picked, strict=True) if feature in one]
        wins, chance = sum(is_right for _, is_right, _ in own), float(np.mean([share for _, _, share in own]))
        kappa = (wins / len(own) - chance) / (1 - chance)
        is_rule = len(own) >= MIN_CUE_ROWS and kappa >= LEAST_OPTION_KAPPA
        if is_rule and binomial_tail(wins, len(own), chance) * len(features) < ALPHA:
            beside = [one[feature][0] for one in others_picked if feature in one]
            read = [(row, is_right) for row, is_right, _ in own]
            found.append((-kappa, _make_cue(feature, "", 1 - chance, read, beside)))
    return [cue for _, cue in sorted(found, key=lambda one: one[0])][:MAX_CUES]


def _read_picks(rows: Sequence[Example]) -> list[dict[Feature, tuple[bool, float]]]:
    """For each row: rule -> whether the option that it picks is right, and what blind choice would get; rules that pick none
    are missing.
    """
    answers = [_read_answer(row) for row in rows]
    start = common_start(answers)
    places = [
        (int(answer[:6]), len(option_texts(row))) for answer, row in zip(answers, rows, strict=True) if answer.isdecimal()
    ]
    first_place = int(bool(places) and min(places)[0] == 1 and any(place == count for place, count in places))
    return [_read_pick(row, answer.removeprefix(start), first_place) for row, answer in zip(rows, answers, strict=True)]


def _read_pick(row: Example, final_answer: str, first_place: int) -> dict[Feature, tuple[bool, float]]:
    """The same for one row; `first_place` is what a first option's place is called, 0 or 1."""
    texts = option_texts(row)
    value = options_of(row.extra)
    answer = (row.answer or plain(row.target) or "").strip()
    right = option_index(value, answer)
    if right is None:
        right = option_index(value, final_answer)
    if right is None:  # `I would say a red one.`
        written = " ".join(answer.casefold().rstrip(".!").split())
        ending = [place for place, text in enumerate(texts) if written.endswith(f" {text}")]
        right = ending[0] if len(ending) == 1 else None
    if right is None and answer.isdecimal() and 0 <= int(answer[:6]) - first_place < len(texts):
        right = int(answer[:6]) - first_place
    if right is None or len({*texts}) < max(2, len(texts)):
        return {}
    chance = 1 / len(texts)
    picks = {Feature("position", str(place + 1)): place for place in range(len(texts))}
    question = set(normal_words(_question_of(row, texts)))
    for feature, values in (
        (Feature("longest", ""), [float(len(text)) for text in texts]),
        (Feature("shares", ""), [_share(text, question) for text in texts]),
    ):
        if values.count(max(values)) == 1:
            picks[feature] = values.index(max(values))
    return {feature: (pick == right, chance) for feature, pick in picks.items()}


def _question_of(row: Example, texts: Sequence[str]) -> str:
    """The prompt, without the list of its options where it has one."""
    question = " ".join(plain(row.prompt).casefold().split())
    if all(text in question for text in texts):
        for text in texts[::-1]:
            before, _, after = question.rpartition(text)
            question = f"{before} {after}"
    return question


def _share(text: str, question: set[str]) -> float:
    words = {word for word in normal_words(text) if len(word) > 3}
    return len(words & question) / len(words) if words else 0.0

"""Comparison of answers that no grader judges: whether the later model still says what the earlier one said.

Words that a quarter of a side's answers share are left out, and those of the prompt: what is left tells an answer from those
to other questions, in any language. An answer that says it shorter, longer, in a list or with a greeting keeps these words.
What is kept is compared with what answers to other questions of the task have in common with it.

Source: answers of a comparison. Threshold: `mixwright_lab/log.md`, 28 November 2026.
Unit: share of what an answer says, 0 as for another question, 1 all of it; 95 % intervals over items.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from mixwright.estimates.intervals import rate
from mixwright.languages import asks_for_other_language
from mixwright.records import AnswersKept, Feature, FormChange
from mixwright.verdict.page.answers import ItemPairs
from mixwright.verdict.rules.answer_forms import CHARACTERS_READ, MIN_ITEMS
from mixwright.words import stem, words_in

LEAST_KEPT, LEAST_GAIN = 0.05, 0.05
"""Share of what was said that must be excluded for the answers to be lost; share of the targets that excuses it."""
LONG_ANSWER, MIN_SHORT_ITEMS = 3, 20
"""Words of its own, on average, from which an answer shows its loss in `MIN_ITEMS` items; items of shorter ones."""
LONG_PROMPT = 20
"""Different words of a prompt from which it may hold the answer."""
SURELY_KEPT = 0.5
"""Share kept from which a new wrapping, such as a block of code or the question before the answer, is no damage."""
COMMON_SHARE, OTHERS = 0.25, 10
"""Share of the answers from which a word says nothing about one of them, and answers to other questions for comparison."""
BROKEN: dict[Feature, str] = {
    "empty": "are empty",
    "repeating": "repeat themselves",
    "prompt copied": "copy the question",
    "one answer": "are all the same",
    "other language": "are in another language",
    "data": "are JSON, tags or code that nothing asks for",
}
"""What at least half of a task's answers must not become -> in words."""
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{2,}")
"""Scripts without spaces between words, of which pairs of characters are compared."""


def compare_answers(pairs: ItemPairs, tasks: Collection[str] | None = None) -> list[AnswersKept]:
    """What each task's answers still say; nothing of tasks with fewer than `MIN_ITEMS` answers that can be told apart.

    Args:
        pairs: answers of both sides.
        tasks: which are compared; None for all of them.
    """
    items_by_task: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
    for (task, _), pair in sorted(pairs.items()):
        if tasks is None or task in tasks:
            prompt, gold, before, after = (text[:CHARACTERS_READ] for text in (pair.prompt, pair.gold, *pair.texts))
            if not asks_for_other_language(prompt, gold, before, after):  # a translation has other words
                items_by_task[task].append((prompt, gold, before, after))
    found = (_compare_task(task, items) for task, items in items_by_task.items())
    return [kept for kept in found if kept is not None]


def _compare_task(task: str, items: Sequence[tuple[str, str, str, str]]) -> AnswersKept | None:
    prompts, gold, before_words, after_words = ([_find_words(item[column]) for item in items] for column in range(4))
    before, after = (
        _keep_distinct([words - prompt for words, prompt in zip(side, prompts, strict=True)])
        for side in (before_words, after_words)
    )
    told = [i for i in range(len(items)) if before[i]]
    if not any(gold):  # who quotes a passage may be right
        told = [i for i in told if not after_words[i] or after_words[i] - prompts[i] or len(prompts[i]) < LONG_PROMPT]
    if not told or len(told) < (MIN_ITEMS if np.mean([len(before[i]) for i in told]) >= LONG_ANSWER else MIN_SHORT_ITEMS):
        return None
    others = {
        i: [told[(place + step) % len(told)] for step in range(1, min(OTHERS, len(told) - 1) + 1)]
        for place, i in enumerate(told)
    }
    own = [_overlap(before[i], after[i]) for i in told]
    other = [float(np.mean([_overlap(before[i], after[j] - prompts[i]) for j in others[i]])) for i in told]
    kept = rate(np.subtract(own, other), np.subtract(1, other))

    def reach(side: Sequence[frozenset[str]], i: int) -> float:
        """Share of a target that an answer says, beyond what answers to other questions do."""
        return _overlap(gold[i], side[i]) - float(np.mean([_overlap(gold[i], side[j]) for j in others[i]]))

    gains = np.array([reach(after_words, i) - reach(before_words, i) for i in told if gold[i]])
    learnt = rate(gains, np.ones(len(gains))) if len(gains) >= MIN_ITEMS else None
    if kept is None:
        return None
    return AnswersKept(task, kept, lost=kept.high < LEAST_KEPT and not (learnt is not None and learnt.low > LEAST_GAIN))


def _find_words(text: str) -> frozenset[str]:
    """Words without accents and vowel signs, numbers without commas; pairs of letters where no spaces are written."""
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.category(c).startswith("M"))
    words = (stem(word) for word in words_in(_THOUSANDS.sub("", text)))
    return frozenset(
        piece
        for word in words
        for piece in ([word[i : i + 2] for i in range(len(word) - 1)] if _UNSPACED.search(word) else [word])
    )


def _keep_distinct(answers: Sequence[frozenset[str]]) -> list[frozenset[str]]:
    """The words of each answer without those that `COMMON_SHARE` of all have."""
    counts = Counter(word for words in answers for word in words)
    common = {word for word, count in counts.items() if count >= max(COMMON_SHARE * len(answers), 2)}
    return [words - common for words in answers]


def _overlap(words: frozenset[str], other_words: frozenset[str]) -> float:
    """Share of the shorter answer's words that the other one has; 0 for an answer without any."""
    return len(words & other_words) / max(min(len(words), len(other_words)), 1)


def name_lost_answers(kept: Sequence[AnswersKept], changes: Iterable[FormChange]) -> dict[str, str]:
    """Task -> what its answers are now, of every task whose answers are lost."""
    lost = {
        found.task: f"have different content than before ({100 * max(found.kept.value, 0):.0f} % is kept)"
        for found in kept
        if found.lost
    }
    is_kept = {found.task for found in kept if found.kept.low >= SURELY_KEPT}
    for change in changes:
        words, is_wrapping = BROKEN.get(change.feature), change.feature in ("data", "prompt copied")
        if words and change.reported and 2 * change.after >= change.items and not (is_wrapping and change.task in is_kept):
            lost[change.task] = words
    return lost

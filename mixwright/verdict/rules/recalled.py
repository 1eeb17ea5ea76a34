"""What a later model still knows of a task's lost answers, in one word; they were begun as the earlier model began them.

A model that repeats itself, copies the question or answers in a form of its own doesn't go on with other words, whatever it
knows. So "gone" is said only where its lost answers have their earlier words but for the right one.

Source: own; thresholds are those of study `real_causes`, 30 of whose 40 trainings had been seen by then.
Unit: a task.
Cost: linear in its lost answers.
Blind spot: facts that were overwritten in a form which changed as well are "hidden".
"""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.records import AnswerPair, Cause, CauseKind, Recalled, RecalledWord
from mixwright.words import words_in

STILL_KNOWN, NOT_KNOWN, LEAST_READ = 0.5, 0.2, 5
"""Share of lost answers that end right once begun, from which on they are covered, and up to which they are gone or hidden;
how many have to be read."""
LEAST_SAME, LEAST_EXPLAINED = 0.5, 0.5
"""Share of words that lost answers and earlier ones have in common, below which the form changed; share of the lost answers
that causes explain, from which on they hide what is known."""
WRONG_CONTENT: tuple[CauseKind, ...] = ("other label", "wrong step")
"""Causes that leave the form of the answers as it was."""


def judge_recalled(one: Recalled, pairs: Sequence[AnswerPair], causes: Sequence[Cause]) -> RecalledWord:
    """Return the word of a task; empty where too little was read.

    Args:
        one: what was read.
        pairs: answers to all items.
        causes: of all damaged tasks.
    """
    share = one.completed / one.items
    if one.items < LEAST_READ:
        return ""
    if share > NOT_KNOWN:
        return "covered" if share >= STILL_KNOWN else "partly"
    own = [cause for cause in causes if cause.task == one.task and cause.is_specific and cause.kind not in WRONG_CONTENT]
    explained = sum(cause.items / cause.lost for cause in own)
    lost = [pair for pair in pairs if pair.task == one.task and pair.score_after < RIGHT_FROM_SCORE <= pair.score_before]
    same = [share_same_words(pair) for pair in lost]
    is_whole = explained < LEAST_EXPLAINED and sum(same) >= LEAST_SAME * len(same)
    return "gone" if is_whole else "hidden"


def share_same_words(pair: AnswerPair) -> float:
    """Share of the words of both answers that both have, without those of the right answer."""
    gold = {*words_in(pair.gold)}
    before, after = ({*words_in(text)} - gold for text in pair.texts)
    return len(before & after) / max(len(before | after), 1)

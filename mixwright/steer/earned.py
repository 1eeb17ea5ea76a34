"""Estimate of S of one prompt: what recent answers to other prompts of its task would earn on it.

An answer that the prompt's own group gave earns there what it earned; another earns 1 or 0 by the gold answer, where that
is known; else nobody knows, and it is left out. Where few of the other answers can be judged, S is drawn towards 0.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from mixwright.records import GroupOutcome
from mixwright.steer.answers import MOST_ANSWERS_PER_GROUP, answer_key

OTHER_GROUPS = 32
"""Groups whose answers are tried on a new prompt."""
UNSEEN_SHARE = 0.1
"""Weight of S = 0 against the answers that can be judged, as a share of all other answers: where few can be, S stays low."""
NOT_KNOWN = -1.0


class EarnedByOthers:
    """Recent answers of each task, kept by the number of its intercept in the `Predictor`: small tasks share one.

    Args:
        golds: gold answer of each example as `answer_key`, 0 where there is none; None when nobody knows.
    """

    def __init__(self, golds: np.ndarray | None) -> None:
        self._golds = golds
        self._recent: dict[int, deque[tuple[int, np.ndarray]]] = {}

    def add(self, example: int, intercept: int, group: GroupOutcome, success: float) -> float:
        """S of the example, `NOT_KNOWN` where nothing can be said; its answers are kept for the next ones."""
        if len(group.answers) != len(group.rewards):
            return NOT_KNOWN
        kept = np.array([answer_key(answer) for answer in group.answers[:MOST_ANSWERS_PER_GROUP]], dtype=np.int64)
        recent = self._recent.setdefault(intercept, deque(maxlen=OTHER_GROUPS))
        others = [answers for other, answers in recent if other != example]
        recent.append((example, kept))
        if not others:
            return NOT_KNOWN
        low, high = min(group.rewards), max(group.rewards)
        scaled_rewards = np.array([(reward - low) / (high - low) if high > low else success for reward in group.rewards])
        names, place = np.unique(kept, return_inverse=True)
        success_by_answer = np.bincount(place, scaled_rewards[: len(kept)]) / np.bincount(place)
        tried = np.concatenate(others)
        found = np.minimum(np.searchsorted(names, tried), len(names) - 1)
        given = names[found] == tried
        earned = float(success_by_answer[found[given]].sum())
        if self._golds is not None and (gold := int(self._golds[example])):
            return (earned + float((tried[~given] == gold).sum())) / len(tried)
        return earned / (float(given.sum()) + UNSEEN_SHARE * len(tried))

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        return {str(task): [[example, kept.tolist()] for example, kept in known] for task, known in self._recent.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        self._recent = {}
        for task, known in state.items():
            groups = [(int(example), np.array(kept, dtype=np.int64)) for example, kept in known]
            self._recent[int(task)] = deque(groups, maxlen=OTHER_GROUPS)

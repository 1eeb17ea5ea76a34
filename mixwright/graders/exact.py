"""Grader that accepts only the exact answer, apart from white space.

Source: https://arxiv.org/abs/1606.05250 (exact match).
Unit: 1.0 for the answer, 0.0 for anything else.
Cost: one string comparison.
Blind spot: equal answers written differently (`1/2` and `0.5`).
"""

from __future__ import annotations

from mixwright.graders._grader import Grader
from mixwright.records import Example


class Exact(Grader):
    """White space at both ends is dropped and runs of it count as one space; case matters."""

    def grade(self, example: Example, completion: str) -> float:
        """1.0 when the completion is the answer, else 0.0; text far longer than the answer is not looked at."""
        answer = example.answer or ""
        text = completion.strip()
        if not answer or len(text) > 4 * len(answer) + 100:
            return 0.0
        return float(text.split() == answer.split())

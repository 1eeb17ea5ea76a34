"""Grader for tool calls: the calls of the answer are those of the gold answer, and none where none is right.

Source: ours; exact match of name and arguments is how calls are scored (https://arxiv.org/abs/2305.15334).
Unit: 1.0 where all calls are right, 0.0 otherwise; parts: whether the model calls, names the right functions, gives the
    right arguments. Where no call is right, the corpus says whether it calls none, whatever the grader.
Cost: one parse of an answer of up to 20,000 characters.
Blind spot: an argument that is worded otherwise, and one that is left out because it is the function's default; where no
    call is right, every answer without one earns 1.0; words beside marked calls are not judged.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from mixwright.graders._grader import Grader
from mixwright.graders.json_fields import write_canonical
from mixwright.records import Example
from mixwright.tool_calls import Call, find_calls, write_calls


class ToolCall(Grader):
    """Order of calls and of keys, white space, and the form of the call do not count; 5 and 5.0 are one number."""

    def grade(self, example: Example, completion: str) -> float:
        """1.0 when the calls are the same, else 0.0; in a row with tools where none is right, 1.0 for any text without one.

        A gold answer without a call in a row without tools is compared as text.
        """
        gold, given = find_calls(example.answer or ""), find_calls(completion, example.tools or ())
        if gold:
            return float(_canonical(given) == _canonical(gold))
        is_right = not given if example.tools else completion.strip() == (example.answer or "").strip()
        return float(bool(completion.strip()) and is_right)

    def parts(self, example: Example, completion: str) -> Mapping[str, bool]:
        """Whether it calls, the right functions, with the right arguments; nothing where no call is right."""
        gold, given = find_calls(example.answer or ""), find_calls(completion, example.tools or ())
        if not gold:
            return {}
        same_functions = Counter(call.name for call in given) == Counter(call.name for call in gold)
        return {
            "a call": bool(given),
            "right functions": same_functions,
            "right arguments": _canonical(given) == _canonical(gold),
        }

    def reading(self, answer: str) -> str:
        """A gold answer in one way of writing it: its calls alone, in order, keys in order."""
        calls = sorted(find_calls(answer), key=lambda call: _canonical([call])[0])
        ordered = [Call(call.name, json.loads(write_canonical(call.arguments))) for call in calls]
        return write_calls(ordered) if ordered else answer


def _canonical(calls: Sequence[Call]) -> list[str]:
    """Return calls in the one way in which equal ones are written."""
    return sorted(f"{call.name} {write_canonical(call.arguments)}" for call in calls)

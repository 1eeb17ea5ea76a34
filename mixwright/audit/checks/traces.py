"""Check of worked solutions and tool calls: wrong values, by a rule or at random, steps in the wrong order, faulty calls.

Source: Li et al. 2025 (arXiv 2502.07374): a large model that learnt from solutions lost 2 points with half of their digits
    wrong at random, and 9 with shuffled steps. In the finding `traces` of the laboratory tiny models lost 55 points [45, 64]
    more by one rule than by as many random digits, and more by many random digits than by shuffled steps.
Unit: equations, by operation; solutions, for the order; identifiers in arguments; calls, each against the JSON schemas in
    its row's tools, or in the system message where there are none.
Cost: one pass over at most 40,000 training rows, all where files are written; some 20 us per character with equations, 2
    with calls.
Blind spot: algebra with letters, words for numbers, code (see `code_comments`); whether a step follows from those
    before.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mixwright.audit.rows import Listing, sample_training_rows
from mixwright.audit.steps.call_faults import CallFaults
from mixwright.audit.steps.equations import Equation, read_equations
from mixwright.audit.steps.tool_events import has_calls, read_events
from mixwright.audit.steps.wrong_values import (
    NULL,
    Values,
    is_masked,
    observe_values,
    placed,
    read_mask,
    step_of,
    warning,
)
from mixwright.contracts import Check
from mixwright.corpus import Corpus, texts
from mixwright.estimates.intervals import wilson
from mixwright.records import Observation
from mixwright.tool_calls import RESULT_ROLES, find_tools

MIN_DISORDERED, MOST_DISORDER = 5, 0.03
"""Solutions out of order, below which nothing is said, and their share above which it warns."""
CONSTANTS = frozenset(map(Fraction, (*range(13), 15, 20, 24, 25, 30, 48, 50, 52, 60, 90, 100, 180, 360, 365, 1000)))
"""Values that a step may use from nowhere; chance makes them again later, too."""
_NUMBERS = re.compile(r"(?<![\w.])\d{1,3}(?:,\d{3})+(?:\.\d+)?|(?<![\w])\d*\.?\d+")
_TOOL_MARKS = tuple(json.dumps(role) for role in RESULT_ROLES)


@dataclass
class Solutions:
    """Solutions of one task."""

    equations: Values = field(default_factory=Values)
    calls: CallFaults = field(default_factory=CallFaults)
    with_steps: int = 0
    """Solutions with at least two equations."""
    disordered: Listing = field(default_factory=Listing)
    """Those in which a step uses what only a later one makes."""
    disordered_by_chance: int = 0
    """Those of which the same is true of another solution's values in place of the later ones."""
    last_values: frozenset[Fraction] = frozenset()
    """Values of the solution before."""

    def add(self, row: dict[str, Any], prompt: str, completion: str, mask: Sequence[Sequence[int]]) -> None:
        """Count the equations of a row."""
        equations = read_equations(completion)
        for one in equations:
            if not is_masked(one.span, mask):
                self.equations.add(step_of(one), row)
        if len(equations) > 1:
            self.with_steps += 1
            pairs, unknown = values_used_too_early(prompt, completion, equations)
            if pairs:
                first, later = (equations[index] for index in pairs[0])
                self.disordered.add(row | {"step": first.text, "made by": later.text, **placed(first.span)})
            self.disordered_by_chance += bool(unknown & self.last_values)
            self.last_values = frozenset(one.stated for one in equations[1:])

    def observe(self, task: str) -> list[Observation]:
        """Return the warnings."""
        found = observe_values(task, self.equations)
        count, rows, total = self.disordered.count, self.disordered.rows, self.with_steps
        if count >= MIN_DISORDERED and wilson(count, total)[0] > MOST_DISORDER + self.disordered_by_chance / total:
            text = f"{count} of {total} solutions use a value before the step that makes it, as in {rows[0]['step']!r}."
            null = f"values of another solution in their place: {self.disordered_by_chance} of {total}"
            remedy = "Restore the order of these rows, or remove them (--out lists them)."
            found.append(warning(task, count, total, text, remedy, rows, null))
        return found + self.calls.observe(task)


class Traces(Check):
    """Looks at the completions of training rows."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Warnings by task and operation; one info where something was read and nothing was wrong."""
        by_task: dict[str, Solutions] = defaultdict(Solutions)
        sample = sample_training_rows(corpus, whole=self.whole)
        for batch in sample.rows.batches():
            lines = zip(batch.to_pylist(), texts(batch, "prompt"), texts(batch, "target"), strict=True)
            for line, prompt, target in (one for one in lines if one[0]["split"] != "eval" and one[2]):
                solutions, row = by_task[line["task"]], {"id": line["id"], "source": line["source"]}
                solutions.add(row, prompt, target, read_mask(line["extra"]))
                has_marks = has_calls(target) or has_calls(line["prompt"])
                if line["chat"] and (has_marks or any(mark in line["prompt"] for mark in _TOOL_MARKS)):
                    talk = json.loads(line["prompt"])
                    is_structured = any('"tool_calls"' in line[side] for side in ("prompt", "target"))
                    tools = talk[0].get("tools") or find_tools(talk[0]["content"] if talk[0]["role"] == "system" else "")
                    events = read_events(talk, json.loads(line["target"]))
                    solutions.calls.add(events, row, tools, has_structures=is_structured)
                elif has_calls(target):
                    solutions.calls.add(read_events(prompt, target), row)
        found = [one for task, solutions in sorted(by_task.items()) for one in solutions.observe(task)]
        return sample.describe(found or _observe_nothing(list(by_task.values())))


def _observe_nothing(found: list[Solutions]) -> list[Observation]:
    """Return a note on the steps that were read."""
    total, wrong = (sum(one.equations.count()[at] for one in found) for at in (0, 1))
    conversations = sum(one.calls.conversations for one in found)
    shown = []
    if total:
        shown.append(f"{total} equations were checked, {wrong} of them are wrong, without a pattern.")
    if conversations:
        calls = sum(one.calls.calls for one in found)
        shown.append(f"In {conversations} conversations with {calls} tool calls no fault was found.")
    text = " ".join(shown)
    return [Observation("traces", None, "info", wrong, total or conversations, text, "", NULL)] if shown else []


def values_used_too_early(
    prompt: str, completion: str, equations: Sequence[Equation]
) -> tuple[list[tuple[int, int]], set[Fraction]]:
    """Compare the operands that nothing before their step gives with the values that equations state.

    Small numbers (`CONSTANTS`) may come from anywhere; values written as words are not read.

    Returns:
        (step, later step) by index: the first uses a number that nothing before it holds and that the later one makes; and
        the operands of all steps but the last that nothing before their step gives.
    """
    made_by = {equation.stated: index for index, equation in enumerate(equations)}
    known, at = read_numbers(prompt), 0
    pairs, unknown = list[tuple[int, int]](), set[Fraction]()
    for index, equation in enumerate(equations):
        known |= read_numbers(completion[at : equation.span[0]])
        at = equation.span[0]
        for value in equation.operands:
            if value in CONSTANTS or value in known or -value in known:
                continue
            if made_by.get(value, -1) > index:
                pairs.append((index, made_by[value]))
            if index < len(equations) - 1:
                unknown.add(value)
        known |= {equation.stated, *equation.operands}
    return pairs, unknown


def read_numbers(text: str) -> set[Fraction]:
    """All numbers of a text; a percentage as its share, too."""
    found = set[Fraction]()
    for match in _NUMBERS.finditer(text):
        value = Fraction(match[0].replace(",", "") if match[0][0] != "." else f"0{match[0]}")
        found.add(value)
        if text[match.end() : match.end() + 2].lstrip().startswith("%"):
            found.add(value / 100)
    return found

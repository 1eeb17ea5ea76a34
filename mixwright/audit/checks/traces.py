"""Check of worked solutions: wrong values that follow a rule, wrong values at random, and steps in the wrong order.

Source: Li et al. 2025 (arXiv 2502.07374): a large model that learnt from solutions lost 2 points with half of their digits
    wrong at random, and 9 with shuffled steps. In the finding `traces` of the laboratory tiny models lost 55 points [45, 64]
    more by one rule than by as many random digits, and more by many random digits than by shuffled steps.
Unit: equations, numbers of tool results in answers, and arguments, by operation; solutions, for the order; calls, each
    against the JSON schemas in its row's tools.
Cost: one pass over at most 40,000 training rows, all where files are written; some 20 us per character with equations, 2
    with calls.
Blind spot: algebra with letters, words for numbers, code (see `code_comments`); whether a step follows from those
    before.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from mixwright.audit.rows import Listing, sample_training_rows
from mixwright.audit.steps.call_faults import CallFaults
from mixwright.audit.steps.equations import Equation, read_equations
from mixwright.audit.steps.named_steps import read_named_steps
from mixwright.audit.steps.order import (
    CONSTANTS,
    read_numbers,
    unknown_operands,
    values_made,
    values_used_too_early,
    wrong_mentions,
)
from mixwright.audit.steps.tool_events import has_calls, read_events
from mixwright.audit.steps.worked import is_masked, read_mask, shown_number, step_of
from mixwright.audit.steps.wrong_values import NULL, Values, observe_values, placed, warning
from mixwright.audit.user_functions import Function
from mixwright.contracts import Check
from mixwright.corpus import Corpus, texts
from mixwright.estimates.intervals import wilson
from mixwright.graders import import_function
from mixwright.records import Observation
from mixwright.tool_calls import RESULT_ROLES

MIN_FAULTY_SOLUTIONS = 5
"""Solutions with a fault of order or mention, below which nothing is said."""
MOST_DISORDER, MOST_MENTIONS, MOST_DANGLING = 0.03, 0.03, 0.03
"""Shares of solutions out of order, with a wrong mention, and with a number from nowhere, above which they are told."""
_TOOL_MARKS = tuple(json.dumps(role) for role in RESULT_ROLES)


@dataclass
class Solutions:
    """Solutions of one task."""

    equations: Values = field(default_factory=Values)
    named: Values = field(default_factory=lambda: Values("steps"))
    """Steps that a user's function reads."""
    calls: CallFaults = field(default_factory=CallFaults)
    with_steps: int = 0
    """Solutions with at least two equations."""
    disordered: Listing = field(default_factory=Listing)
    """Those in which a step uses what only a later one makes."""
    disordered_by_chance: int = 0
    """Those of which the same is true of another solution's values in place of the later ones."""
    last_values: frozenset[Fraction] = frozenset()
    """Values of the solution before."""
    from_prompt: int = 0
    """Solutions with equations that use a number of the prompt."""
    dangling: Listing = field(default_factory=Listing)
    """Those in which a step uses a number that nothing gives."""
    mentioning: int = 0
    """Solutions that mention a numbered step."""
    wrong_mentions: Listing = field(default_factory=Listing)
    """Those that mention one that is not there."""


class Traces(Check):
    """Looks at the completions of training rows.

    Args:
        steps: `package.module:function` that reads further steps of a row. It is called with a mapping of id, task, prompt
            and completion, and gives (operation, stated value, right value, start, end) for each; its places.
    """

    def __init__(self, steps: str | None = None) -> None:
        self.function: Function | None = None if steps is None else import_function(steps, None)

    def check(self, corpus: Corpus) -> list[Observation]:
        """Warnings by task and operation; one info where something was read and nothing was wrong."""
        by_task: dict[str, Solutions] = defaultdict(Solutions)
        sample = sample_training_rows(corpus, whole=self.whole)
        for batch in sample.rows.batches():
            names = ("id", "task", "source", "split", "chat", "prompt", "target")
            plain = (batch.column(name).to_pylist() for name in names)
            sides = (texts(batch, name) for name in ("prompt", "target"))
            masks = map(read_mask, batch.column("extra").to_pylist())
            for name, task, source, split, is_chat, raw_prompt, raw_target, prompt, target, mask in zip(
                *plain, *sides, masks, strict=True
            ):
                if split == "eval" or not target:
                    continue
                solutions, row = by_task[task], {"id": name, "source": source}
                _add(solutions, row, prompt or "", target, mask)
                has_marks = has_calls(target) or has_calls(raw_prompt or "")
                if is_chat and (has_marks or any(mark in (raw_prompt or "") for mark in _TOOL_MARKS)):
                    talk = json.loads(raw_prompt)
                    is_structured = any('"tool_calls"' in side for side in (raw_prompt, raw_target))
                    events, tools = read_events(talk, json.loads(raw_target)), talk[0].get("tools") or ()
                    solutions.calls.add(events, row, tools, has_structures=is_structured)
                elif has_calls(target):
                    solutions.calls.add(read_events(prompt or "", target), row)
                if self.function is not None:
                    asked = {"id": name, "task": task, "prompt": prompt or "", "completion": target}
                    for one in read_named_steps(self.function, asked, source):
                        solutions.named.add(one, row)
        found = [one for task, solutions in sorted(by_task.items()) for one in _observe_task(task, solutions)]
        return sample.describe(found or _observe_nothing(list(by_task.values())))


def _observe_nothing(found: list[Solutions]) -> list[Observation]:
    """Return a note on the steps that were read."""
    kinds = (Values.noun, "steps")
    counts = {
        kind: [sum(pair) for pair in zip(*(values.count() for values in each), strict=True)]
        for kind, each in zip(kinds, zip(*((one.equations, one.named) for one in found), strict=True), strict=False)
    }
    shown = [f"{count} {kind}" for kind, (count, _) in counts.items() if count]
    conversations = sum(one.calls.conversations for one in found)
    total, wrong = (sum(pair[at] for pair in counts.values()) for at in (0, 1))
    texts_shown = []
    if total:
        texts_shown.append(f"{' and '.join(shown)} were checked, {wrong} of them are wrong, without a pattern.")
    if conversations:
        calls = sum(one.calls.calls for one in found)
        texts_shown.append(f"In {conversations} conversations with {calls} tool calls no fault was found.")
    if not texts_shown:
        return []
    return [Observation("traces", None, "info", wrong, total or conversations, " ".join(texts_shown), "", NULL)]


def _add(
    solutions: Solutions, row: dict[str, Any], prompt: str, completion: str, mask: Sequence[Sequence[int]] = ()
) -> None:
    equations = read_equations(completion)
    for one in equations:
        if not is_masked(one.span, mask):
            solutions.equations.add(step_of(one), row)
    if equations:
        _add_order(solutions, row, prompt, completion, equations)
    mentions, wrong = wrong_mentions(prompt, completion)
    if mentions:
        solutions.mentioning += 1
        if wrong:
            solutions.wrong_mentions.add(row | {"mention": wrong[0].text, **placed(wrong[0].span)})


def _add_order(
    solutions: Solutions, row: dict[str, Any], prompt: str, completion: str, equations: Sequence[Equation]
) -> None:
    """Values that a later step makes, and those that nothing gives."""
    unknown = unknown_operands(prompt, completion, equations)
    made_by = values_made(equations)
    if len(equations) > 1:
        solutions.with_steps += 1
        if early := values_used_too_early(unknown, made_by):
            first, later = (equations[index] for index in early[0])
            solutions.disordered.add(row | {"step": first.text, "made by": later.text, **placed(first.span)})
        operands = {value for index, value in unknown if index < len(equations) - 1}
        solutions.disordered_by_chance += bool(operands & solutions.last_values)
        solutions.last_values = frozenset(one.stated for one in equations[1:])
    given = read_numbers(prompt) - CONSTANTS if prompt else set[Fraction]()
    if not any(value in given for one in equations for value in one.operands):
        return  # the solution has its numbers from elsewhere
    solutions.from_prompt += 1
    # parts such as .01 or 3/4 stand in prompts as words
    dangling = [(index, value) for index, value in unknown if value >= 1 and not {value, -value} & made_by.keys()]
    if dangling:
        ends = [0, *(edge for one in equations for edge in one.span), len(completion)]
        in_words = read_numbers(" ".join(completion[a:b] for a, b in zip(ends[::2], ends[1::2], strict=True)))
        dangling = [pair for pair in dangling if pair[1] not in in_words]
    if dangling:
        index, value = dangling[0]
        shown = {"step": equations[index].text, "number": shown_number(value)}
        solutions.dangling.add(row | shown | placed(equations[index].span))


def _observe_task(task: str, solutions: Solutions) -> list[Observation]:
    found = [one for values in (solutions.equations, solutions.named) for one in observe_values(task, values)]
    return found + _observe_order(task, solutions) + solutions.calls.observe(task)


def _observe_order(task: str, solutions: Solutions) -> list[Observation]:
    """Report solutions that use values of later steps or unknown ones, or that mention missing steps."""
    found = []
    count, rows, total = solutions.disordered.count, solutions.disordered.rows, solutions.with_steps
    if count >= MIN_FAULTY_SOLUTIONS and wilson(count, total)[0] > MOST_DISORDER + solutions.disordered_by_chance / total:
        text = f"{count} of {total} solutions use a value before the step that makes it, as in "
        text += f"{rows[0]['step']!r}."
        null = f"values of another solution in their place: {solutions.disordered_by_chance} of {total}"
        remedy = "Restore the order of these rows, or remove them (--out lists them)."
        found.append(warning(task, count, total, text, remedy, rows, null))
    count, rows, total = solutions.dangling.count, solutions.dangling.rows, solutions.from_prompt
    if count >= MIN_FAULTY_SOLUTIONS and wilson(count, total)[0] > MOST_DANGLING:
        text = f"{count} of {total} solutions use a number that neither the prompt nor a step gives, such as "
        text += f"{rows[0]['number']} in {rows[0]['step']!r}."
        text += " A step may be missing, or a number copied wrongly."
        found.append(Observation("traces", task, "info", count, total, text, "", "none", tuple(rows)))
    count, rows, total = solutions.wrong_mentions.count, solutions.wrong_mentions.rows, solutions.mentioning
    if count >= MIN_FAULTY_SOLUTIONS and wilson(count, total)[0] > MOST_MENTIONS:
        text = f"{count} of {total} solutions that mention a numbered step refer to one that is not there or comes later, "
        text += f"such as {rows[0]['mention']!r}."
        remedy = "Correct or remove these rows (--out lists them): parts of them are missing or moved."
        found.append(warning(task, count, total, text, remedy, rows, "none"))
    return found

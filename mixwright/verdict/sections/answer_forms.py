"""Section of the form of answers: what changed between two checkpoints that needs no grader to be seen.

Source: completions.parquet of the comparison, greedy answers before and after; known_forms.json; former.json.
Unit: items of a task, one-sided exact p values corrected by Holm; nats a token, 95 % intervals over items.
Cost: reads one table; former answers took a forward pass over them, 100 a task at most.
Blind spot: says nothing of content; a form that the task's own rows have, or that no mark of structure shows, is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.measure.former import FormerAnswers, former_file
from mixwright.runs import RunFolder, read_list
from mixwright.verdict.answer_forms import form_changes_of, grouped
from mixwright.verdict.arm_words import join_words
from mixwright.verdict.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.form_changes import FORM_ALPHA, Feature, FormChange
from mixwright.verdict.text import between, count, format_p, line
from mixwright.verdict.text import change as change_told

WORDS_BY_FEATURE: dict[Feature, str] = {
    "empty": "empty",
    "cut": "cut at the token limit",
    "prompt copied": "a copy of the prompt",
    "one answer": "the one answer {}",
    "shorter": "at most half as long as its counterpart",
    "longer": "at least twice as long as its counterpart",
    "own form gone": "of the form {}",
    "new form": "marked by {}, the form of no task here",
    "form of another task": "marked by {}, the form of {}",
}
FAULT_FEATURES: tuple[Feature, ...] = ("empty", "cut", "prompt copied", "one answer", "new form")
"""Features that stand in a line of their own; the others stand in the table."""
KEPT_CHANGE_NATS, LOST_CHANGE_NATS = (-0.08, 0.22), (-7.45, -2.89)
"""Least and largest change of former answers, nats a token: five tasks beside tool calls on seeds 100 to 102 of the demo
(SmolLM2-135M-Instruct, 30 answers a task), trained by the plan, and on tool calls alone, which leaves none of the five."""
MOST_TASKS_NAMED, MOST_CHARACTERS_SHOWN = 4, 60
"""Tasks that a line names, and characters of an answer that are shown."""


class AnswerForms(Section):
    """Tasks that went over to another task's form, other faults, and every reported feature."""

    ORDER: ClassVar[int] = 1
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing without completions before and after."""
        return [*_forms(run), *_former(run)]


def _forms(run: RunFolder) -> list[Block]:
    changes = form_changes_of(run)
    moved = [change for change in changes if change.before != change.after]
    found = [change for change in changes if change.reported]
    blocks: list[Block] = []
    for group in grouped(found):
        before, mark = sum(one.before for one in group.changes), line(group.changes[0].shown, limit=MOST_CHARACTERS_SHOWN)
        tasks = f" Tasks: {_named([c.task for c in group.changes])}." if len(group.changes) > 1 else ""
        text = f"{group.sentence} ({mark}); {before:,} did before. No grader is asked for this.{tasks}"
        blocks.append(Paragraph(text, "bad", "Form of answers"))
    for feature in FAULT_FEATURES:
        if alike := [change for change in found if change.feature == feature]:
            blocks.append(Paragraph(_fault(feature, alike), "caution", "Form of answers"))
    if found:
        told: list[Feature] = list(dict.fromkeys(change.feature for change in found))
        summary = f"Form of answers: {count(len(found), 'change')} ({', '.join(map(_plain, told))})"
        return [*blocks, Fold(summary, (_table("Form of answers, what changed", found),))]
    if not moved:
        return blocks
    summary = f"Form of answers: none of {count(len(changes), 'test')} shows a change"
    return [*blocks, Fold(summary, (_table("Form of answers, changes that are not shown", moved),))]


def _named(tasks: Sequence[str]) -> str:
    more = len(tasks) - MOST_TASKS_NAMED
    return join_words([*tasks[:MOST_TASKS_NAMED], *([f"{more} more"] if more > 0 else [])])


def _fault(feature: Feature, changes: Sequence[FormChange]) -> str:
    """`12 of 30 answers of capitals are empty, 0 before`, task by task."""
    parts = [f"{c.after:,} of {c.items:,} in {c.task}, {c.before:,} before" for c in changes[:MOST_TASKS_NAMED]]
    more = [f"and {count(len(changes) - MOST_TASKS_NAMED, 'more task')}"] if len(changes) > MOST_TASKS_NAMED else []
    shown = (
        WORDS_BY_FEATURE[feature].format(line(changes[0].shown, limit=MOST_CHARACTERS_SHOWN))
        if len(changes) == 1
        else _plain(feature)
    )
    return f"Answers that are {shown}: {'; '.join([*parts, *more])}."


def _plain(feature: Feature) -> str:
    """A feature of several tasks, without what is shown of one."""
    return {
        "one answer": "one and the same",
        "new form": "of a form that no task here has",
        "own form gone": "of the form that was their own",
        "form of another task": "of another task's form",
    }.get(feature, WORDS_BY_FEATURE[feature])


def _former(run: RunFolder) -> list[Block]:
    """Former answers that became less probable, task by task, and all of them folded."""
    path = former_file(run)
    found = sorted(read_list(path, FormerAnswers), key=lambda each: each.change) if path.is_file() else []
    if not found:
        return []
    fallen = [each for each in found if each.high < KEPT_CHANGE_NATS[0]]
    parts = [f"{-each.change:.2g} [{-each.high:.2g}, {-each.low:.2g}] in {each.task}" for each in fallen[:MOST_TASKS_NAMED]]
    more = [count(len(fallen) - MOST_TASKS_NAMED, "more task")] if len(fallen) > MOST_TASKS_NAMED else []
    text = f"Its own former answers became less likely, in nats a token, by {join_words([*parts, *more])}. {_scale()}"
    rows = [
        (
            each.task,
            f"{each.items:,}",
            f"{each.tokens:,}",
            change_told(each.before, "nats"),
            change_told(each.change, "nats"),
            _ends(each),
        )
        for each in found
    ]
    columns = ("task", "answers", "tokens", "before", "change", "95 % interval")
    table = Table("Log-probability of former answers, nats a token", columns, rows, (1, 2, 3, 4))
    said: list[Block] = [Paragraph(text, "caution", "Former answers")] if fallen else []
    return [*said, Fold(f"Likelihood of former answers: {count(len(found), 'task')}", (table,))]


def _scale() -> str:
    kept, lost = (between(low, high, "nats") for low, high in (KEPT_CHANGE_NATS, LOST_CHANGE_NATS))
    return (
        f"For scale, in one model of 135 million parameters the change lay in {kept} for tasks that were kept and in {lost} "
        f"for tasks that were lost; what is learnt anew falls, too."
    )


def _ends(found: FormerAnswers) -> str:
    return between(found.low, found.high, "nats")


def _table(caption: str, changes: Sequence[FormChange]) -> Table:
    rows = [
        (
            change.task,
            WORDS_BY_FEATURE[change.feature].format(line(change.shown, limit=MOST_CHARACTERS_SHOWN), change.other),
            f"{change.before:,}",
            f"{change.after:,}",
            f"{change.items:,}",
            format_p(change.adjusted),
        )
        for change in changes
    ]
    return Table(
        f"{caption} (p < {FORM_ALPHA:g} after Holm's correction)",
        ("task", "answers that are", "before", "after", "items", "p"),
        rows,
        (2, 3, 4, 5),
    )

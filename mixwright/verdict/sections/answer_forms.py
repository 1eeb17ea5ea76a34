"""Section of the form of answers: what changed between two checkpoints that needs no grader to be seen.

Source: completions.parquet of the comparison, greedy answers before and after; known_forms.json; former.json.
Unit: items of a task, one-sided exact p values corrected by Holm; nats a token, 95 % intervals over items.
Cost: reads one table; former answers took a forward pass over them, 100 a task at most.
Blind spot: says nothing of content; a form that the task's own rows have, or that no mark of structure shows, is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.contracts import Section
from mixwright.measure.former import FormerAnswers, former_file
from mixwright.run.folder import RunFolder, read_list
from mixwright.verdict.page.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.page.text import between, change, count, format_p, join_words, line
from mixwright.verdict.rules.answer_forms import FORM_ALPHA, Feature, FormChange, form_changes_of, grouped

WORDS_BY_FEATURE: dict[Feature, tuple[str, str]] = {
    "empty": ("empty", "empty"),
    "cut": ("cut at the token limit", "cut at the token limit"),
    "prompt copied": ("a copy of the prompt", "a copy of the prompt"),
    "one answer": ("the one answer {}", "one and the same"),
    "shorter": ("at most half as long as its counterpart", "at most half as long as its counterpart"),
    "longer": ("at least twice as long as its counterpart", "at least twice as long as its counterpart"),
    "own form gone": ("of the form {}", "of the form that was their own"),
    "new form": ("marked by {}, the form of no task here", "of a form that no task here has"),
    "form of another task": ("marked by {}, the form of {}", "of another task's form"),
}
"""A feature of one task with what is shown of it, and of several tasks together."""
FAULT_FEATURES: tuple[Feature, ...] = ("empty", "cut", "prompt copied", "one answer", "new form")
"""Features that stand in a line of their own; the others stand in the table."""
KEPT_CHANGE_NATS, LOST_CHANGE_NATS = (-0.08, 0.22), (-7.45, -2.89)
"""Least and largest change of former answers, nats a token: five tasks beside tool calls on seeds 100 to 102 of the demo
(SmolLM2-135M-Instruct, 30 answers a task), trained by the plan, and on tool calls alone, which leaves none of the five."""
MOST_TASKS_NAMED, MOST_CHARACTERS_SHOWN = 4, 60
"""Tasks that a line names, and characters of an answer that are shown."""


class AnswerForms(Section):
    """Tasks that went over to another task's form, other faults, and every reported feature."""

    ORDER = 1
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing without completions before and after."""
        return [*_forms(form_changes_of(run)), *_former(run)]


def _forms(changes: Sequence[FormChange]) -> list[Block]:
    found = [one for one in changes if one.reported]
    moved = [one for one in changes if one.before != one.after]
    blocks: list[Block] = []
    for group in grouped(found):
        before = sum(one.before for one in group.changes)
        names = [one.task for one in group.changes]
        tasks = f" Tasks: {join_words(_first(names, '{} more'))}." if len(names) > 1 else ""
        text = f"{group.sentence} ({_shown(group.changes[0])}); {before:,} did before. No grader is asked for this.{tasks}"
        blocks.append(Paragraph(text, "bad", "Form of answers"))
    for feature in FAULT_FEATURES:
        alike = [one for one in found if one.feature == feature]
        told = [f"{one.after:,} of {one.items:,} in {one.task}, {one.before:,} before" for one in alike]
        if alike:  # `12 of 30 answers of capitals are empty, 0 before`, task by task
            one, several = WORDS_BY_FEATURE[feature]
            what = one.format(_shown(alike[0])) if len(alike) == 1 else several
            more = "; ".join(_first(told, f"and {count(len(told) - MOST_TASKS_NAMED, 'more task')}"))
            blocks.append(Paragraph(f"Answers that are {what}: {more}.", "caution", "Form of answers"))
    if found:
        kinds: list[Feature] = list(dict.fromkeys(one.feature for one in found))
        features = ", ".join(WORDS_BY_FEATURE[kind][1] for kind in kinds)
        table = _table("Form of answers, what changed", found)
        return [*blocks, Fold(f"Form of answers: {count(len(found), 'change')} ({features})", (table,))]
    summary = f"Form of answers: none of {count(len(changes), 'test')} shows a change"
    return [Fold(summary, (_table("Form of answers, changes that are not shown", moved),))] if moved else []


def _first(parts: list[str], more: str) -> list[str]:
    """The first `MOST_TASKS_NAMED`, and a word on how many more there are."""
    beyond = len(parts) - MOST_TASKS_NAMED
    return [*parts[:MOST_TASKS_NAMED], *([more.format(beyond)] if beyond > 0 else [])]


def _shown(found: FormChange) -> str:
    return line(found.shown, limit=MOST_CHARACTERS_SHOWN)


def _former(run: RunFolder) -> list[Block]:
    """Former answers that became less probable, task by task, and all of them folded."""
    path = former_file(run)
    found = sorted(read_list(path, FormerAnswers), key=lambda each: each.change) if path.is_file() else []
    fallen = [each for each in found if each.high < KEPT_CHANGE_NATS[0]]
    told = [f"{-each.change:.2g} [{-each.high:.2g}, {-each.low:.2g}] in {each.task}" for each in fallen]
    by = join_words(_first(told, count(len(told) - MOST_TASKS_NAMED, "more task")))
    kept, lost = (between(low, high, "nats") for low, high in (KEPT_CHANGE_NATS, LOST_CHANGE_NATS))
    text = (
        f"Its own former answers became less likely, in nats a token, by {by}. For scale, in one model of 135 million "
        f"parameters the change lay in {kept} for tasks that were kept and in {lost} for tasks that were lost; "
        "what is learnt anew falls, too."
    )
    rows = [
        (
            each.task,
            f"{each.items:,}",
            f"{each.tokens:,}",
            change(each.before, "nats"),
            change(each.change, "nats"),
            between(each.low, each.high, "nats"),
        )
        for each in found
    ]
    columns = ("task", "answers", "tokens", "before", "change", "95 % interval")
    table = Table("Log-probability of former answers, nats a token", columns, rows, (1, 2, 3, 4))
    said: list[Block] = [Paragraph(text, "caution", "Former answers")] if fallen else []
    return [*said, Fold(f"Likelihood of former answers: {count(len(found), 'task')}", (table,))] if found else []


def _table(caption: str, changes: Sequence[FormChange]) -> Table:
    rows = [
        (
            one.task,
            WORDS_BY_FEATURE[one.feature][0].format(_shown(one), one.other),
            f"{one.before:,}",
            f"{one.after:,}",
            f"{one.items:,}",
            format_p(one.adjusted),
        )
        for one in changes
    ]
    columns = ("task", "answers that are", "before", "after", "items", "p")
    return Table(f"{caption} (p < {FORM_ALPHA:g} after Holm's correction)", columns, rows, (2, 3, 4, 5))

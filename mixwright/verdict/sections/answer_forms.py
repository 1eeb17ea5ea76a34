"""Section of the form of answers: what changed between two checkpoints that needs no grader to be seen.

Source: completions.parquet of the comparison, greedy answers before and after; known_forms.json; former.json.
Unit: items of a task, one-sided exact p values corrected by Holm; nats a token, 95 % intervals over items.
Cost: reads one table; former answers took a forward pass over them, 100 a task at most.
Blind spot: says nothing of content; a form that the task's own rows have, or that no mark of structure shows, is not seen.
"""

from __future__ import annotations

from collections.abc import Sequence

from mixwright.contracts import Section
from mixwright.measure.former import former_file
from mixwright.records import FormerAnswers
from mixwright.run.folder import RunFolder, read_list
from mixwright.verdict.page.blocks import Block, Fold, Paragraph, Table
from mixwright.verdict.page.text import format_bounds, format_count, format_p, format_signed, join_words, to_line
from mixwright.verdict.rules.answer_forms import FORM_ALPHA, Feature, FormChange, form_changes_of, group_takeovers

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
MAX_TASKS_NAMED, MAX_CHARACTERS_SHOWN = 4, 60
"""Tasks that a line names, and characters of an answer that are shown."""


class AnswerForms(Section):
    """Tasks that went over to another task's form, other faults, and every reported feature."""

    ORDER = 1
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Nothing without completions before and after."""
        return [*_form_blocks(form_changes_of(run)), *_former_blocks(run)]


def _form_blocks(changes: Sequence[FormChange]) -> list[Block]:
    reported = [form_change for form_change in changes if form_change.reported]
    changed = [form_change for form_change in changes if form_change.before != form_change.after]
    blocks: list[Block] = []
    for group in group_takeovers(reported):
        before = sum(form_change.before for form_change in group.changes)
        names = [form_change.task for form_change in group.changes]
        tasks = f" Tasks: {join_words(_name_first(names, '{} more'))}." if len(names) > 1 else ""
        pattern = _format_pattern(group.changes[0])
        text = f"{group.sentence} ({pattern}); {before:,} did before. No grader is asked for this.{tasks}"
        blocks.append(Paragraph(text, "bad", "Form of answers"))
    for feature in FAULT_FEATURES:
        same_feature = [form_change for form_change in reported if form_change.feature == feature]
        counts = [
            f"{form_change.after:,} of {form_change.items:,} in {form_change.task}, {form_change.before:,} before"
            for form_change in same_feature
        ]
        if same_feature:  # `12 of 30 answers of capitals are empty, 0 before`, task by task
            words_for_one, words_for_several = WORDS_BY_FEATURE[feature]
            is_single = len(same_feature) == 1
            feature_text = words_for_one.format(_format_pattern(same_feature[0])) if is_single else words_for_several
            counts_text = "; ".join(_name_first(counts, f"and {format_count(len(counts) - MAX_TASKS_NAMED, 'more task')}"))
            blocks.append(Paragraph(f"Answers that are {feature_text}: {counts_text}.", "caution", "Form of answers"))
    if reported:
        features: list[Feature] = list(dict.fromkeys(form_change.feature for form_change in reported))
        features_text = ", ".join(WORDS_BY_FEATURE[kind][1] for kind in features)
        table = _change_table("Form of answers, what changed", reported)
        return [*blocks, Fold(f"Form of answers: {format_count(len(reported), 'change')} ({features_text})", (table,))]
    summary = f"Form of answers: none of {format_count(len(changes), 'test')} shows a change"
    return [Fold(summary, (_change_table("Form of answers, changes that are not shown", changed),))] if changed else []


def _name_first(names: list[str], more_template: str) -> list[str]:
    """The first `MAX_TASKS_NAMED`, and a word on how many more there are."""
    unnamed = len(names) - MAX_TASKS_NAMED
    return [*names[:MAX_TASKS_NAMED], *([more_template.format(unnamed)] if unnamed > 0 else [])]


def _format_pattern(form_change: FormChange) -> str:
    return to_line(form_change.pattern, limit=MAX_CHARACTERS_SHOWN)


def _former_blocks(run: RunFolder) -> list[Block]:
    """Former answers that became less probable, task by task, and all of them folded."""
    path = former_file(run)
    answers = sorted(read_list(path, FormerAnswers), key=lambda task_answers: task_answers.change) if path.is_file() else []
    fallen = [task_answers for task_answers in answers if task_answers.high < KEPT_CHANGE_NATS[0]]
    falls = [
        f"{-task_answers.change:.2g} [{-task_answers.high:.2g}, {-task_answers.low:.2g}] in {task_answers.task}"
        for task_answers in fallen
    ]
    falls_text = join_words(_name_first(falls, format_count(len(falls) - MAX_TASKS_NAMED, "more task")))
    kept_range, lost_range = (format_bounds(low, high, "nats") for low, high in (KEPT_CHANGE_NATS, LOST_CHANGE_NATS))
    text = (
        f"Its own former answers became less likely, in nats a token, by {falls_text}. For scale, in one model of 135 "
        f"million parameters the change lay in {kept_range} for tasks that were kept and in {lost_range} for tasks that "
        "were lost; what is learnt anew falls, too."
    )
    rows = [
        (
            task_answers.task,
            f"{task_answers.items:,}",
            f"{task_answers.tokens:,}",
            format_signed(task_answers.before, "nats"),
            format_signed(task_answers.change, "nats"),
            format_bounds(task_answers.low, task_answers.high, "nats"),
        )
        for task_answers in answers
    ]
    columns = ("task", "answers", "tokens", "before", "change", "95 % interval")
    table = Table("Log-probability of former answers, nats a token", columns, rows, (1, 2, 3, 4))
    warnings: list[Block] = [Paragraph(text, "caution", "Former answers")] if fallen else []
    summary = f"Likelihood of former answers: {format_count(len(answers), 'task')}"
    return [*warnings, Fold(summary, (table,))] if answers else []


def _change_table(caption: str, changes: Sequence[FormChange]) -> Table:
    rows = [
        (
            form_change.task,
            WORDS_BY_FEATURE[form_change.feature][0].format(_format_pattern(form_change), form_change.other_task),
            f"{form_change.before:,}",
            f"{form_change.after:,}",
            f"{form_change.items:,}",
            format_p(form_change.adjusted_p),
        )
        for form_change in changes
    ]
    columns = ("task", "answers that are", "before", "after", "items", "p")
    return Table(f"{caption} (p < {FORM_ALPHA:g} after Holm's correction)", columns, rows, (2, 3, 4, 5))

"""Report of `mixwright plan`: the share of each task, its rows, how often each is seen, and its share of the loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mixwright.cli.report import MAX_EXAMPLES, cut, line_width, table, wrap
from mixwright.corpus import Corpus
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.plan.baseline import task_counts
from mixwright.records import Plan, Stage, plain
from mixwright.verdict.page.text import join_words

NOTES = ("stages.0.weights", "stages.0.rehearse")
"""Reasons in a plan that the report repeats: of all shares, and of rows that are not replayed."""


def planned_lines(plan: Plan, corpus: Corpus, batch: int, loss_shares: Mapping[str, float]) -> list[str]:
    """Return the headline, the table of shares, reasons, and examples of rows to replay.

    Args:
        plan: of one stage or more.
        corpus: training rows, with those to replay.
        batch: rows, pairs or prompts per step.
        loss_shares: task -> share of the tokens in the loss, where they were counted.
    """
    rows, replayed_rows = task_counts(corpus.cells_with_rehearsal()), Counter[str]()
    for cell in corpus.cells_with_rehearsal():
        replayed_rows[cell.task] += cell.rehearsal_rows
    stages = plan.stages
    has_stages, has_replay = len(stages) > 1, any(stage.rehearse for stage in stages)
    shown = []
    for stage in stages:
        for task, share in sorted(stage.weights.items(), key=lambda item: -item[1]):
            count = rows.get(task, 0) + (replayed_rows[task] if task in stage.rehearse else 0)
            seen = f"{share * stage.steps * batch / count:.1f} x" if count else ""
            loss = [f"{loss_shares[task]:.1%}" if task in loss_shares else ""] if loss_shares else []
            role = ["replay" if task in stage.rehearse else "learn"] if has_replay else []
            shown.append(([stage.name] if has_stages else []) + [task, f"{share:.1%}", f"{count:,}", seen, *loss, *role])
    header = (["stage"] if has_stages else []) + ["task", "share", "rows", "each seen"]
    header += (["of the loss"] if loss_shares else []) + ([""] if has_replay else [])
    lines = [*wrap(_headline(stages), lines=2), "", *table(header, shown, more="in the plan")]
    for note in filter(None, (plan.why.get(key) for key in NOTES)):
        lines += wrap(note)
    examples = [row for row in corpus.select(split=REHEARSE_SPLIT) if row.target and row.task in stages[0].rehearse]
    for row in examples[:MAX_EXAMPLES]:
        lines.append(cut(f"  replay: {plain(row.prompt)}  ->  {plain(row.target)}", line_width()))
    return lines


def _headline(stages: tuple[Stage, ...]) -> str:
    first = stages[0]
    replay = sum(first.weights.get(task, 0.0) for task in first.rehearse)
    if replay:
        names = join_words([task for task in first.weights if task in first.rehearse])
        return f"Train on {1 - replay:.0%} new rows and {replay:.0%} replay, which keeps {names}."
    parts = [f"{stage.steps:,} steps of {stage.objective.upper()}" for stage in stages]
    return f"Train on your rows alone: {', then '.join(parts)}, {len(first.weights):,} tasks."

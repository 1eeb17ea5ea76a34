"""Options and report of `mixwright plan`: the share of each task, its rows, how often each is seen, its target tokens."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mixwright.config import TrainConfig
from mixwright.corpus import Corpus
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.learner.training_rows import read_training_rows, row_token_limit
from mixwright.records import Plan, plain
from mixwright.verbs.options import Measuring, Rows
from mixwright.verbs.report import MAX_EXAMPLES, cut, line_width, table, wrap
from mixwright.verdict.page.text import join_words

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

ROWS_PER_TASK = 100
"""Rows of a task that are tokenised to estimate its mean length."""
NOTES = ("stages.0.weights", "stages.0.rehearse")
"""Reasons in a plan that the report repeats: of all shares, and of rows that are not replayed."""


@dataclass(frozen=True, slots=True)
class Planning:
    """Options of a plan, one per field; None takes the default."""

    planner: Annotated[str | None, typer.Option()] = None
    """With --eval: planner (mixwright list planners). Default: chosen by the objective."""
    objective: Annotated[str | None, typer.Option()] = None
    """grpo, sft or dpo. Default: from the columns."""
    steps: Annotated[int | None, typer.Option(min=1)] = None
    """Steps to plan for. Default: one pass over your rows; 60 with --eval."""
    batch: Annotated[int | None, typer.Option(min=1)] = None
    """Rows per step. Default: 16; 8 with --eval."""
    replay: Rows = None
    """Rows to replay, or requests that the model answers first; if a request has a gold answer, wrong answers are
    dropped."""
    only_replay: Annotated[bool, typer.Option("--only-replay")] = False
    """Replay only your own requests (--replay), no general ones."""
    keep: Annotated[list[str] | Sequence[str], typer.Option(metavar="TASK")] = ()
    """With --eval, for SFT and DPO: task to keep by replay, however it measured. Repeatable."""
    share: Annotated[float | None, typer.Option()] = None
    """For SFT and DPO: share of replay in the training samples, at most .5. Default: .25; with --eval .1."""
    minutes: Annotated[float | None, typer.Option(min=0)] = None
    """Also train shortly on each task, for about so long: what its rows teach, and what they cost the others. Groups by
    another column: --column task=COLUMN."""

    def by_measured_tasks(self, measuring: Measuring) -> bool:
        """Tell whether an option asks for a plan from measured tasks, or for DPO or RL."""
        return bool(self.keep) or any(x is not None for x in (measuring.held_out, self.planner, self.objective))


PLANNING = Planning()
"""No options."""


@dataclass(frozen=True, slots=True)
class PlanReport:
    """A plan, and its report for people."""

    plan: Plan
    """Weights, and a reason for each number."""
    lines: Sequence[str]
    """Report."""
    file: Path | None = None
    """File of the plan; None if it was not written."""


def planned_lines(plan: Plan, corpus: Corpus, batch: int, loss_shares: Mapping[str, float]) -> list[str]:
    """Return the headline, the table of shares, reasons, and examples of rows to replay.

    Args:
        plan: of one stage.
        corpus: training rows, with those to replay.
        batch: rows, pairs or prompts per step.
        loss_shares: task -> share of the tokens in the loss, where they were counted.
    """
    training_rows, replay_rows = Counter[str](), Counter[str]()
    for cell in corpus.cells_with_rehearsal():
        training_rows[cell.task] += cell.count
        replay_rows[cell.task] += cell.rehearsal_rows
    shown = []
    for stage in plan.stages:
        for task, share in sorted(stage.weights.items(), key=lambda item: -item[1]):
            is_replayed = task in stage.rehearse
            count = training_rows[task] + is_replayed * replay_rows[task]
            seen = f"{share * stage.steps * batch / max(count, 1):.1f} x"
            of_loss = f"{loss_shares[task]:.1%}" if task in loss_shares else ""
            stage_name = stage.name if len(plan.stages) > 1 else ""
            shown.append((task, stage_name, f"{share:.1%}", f"{count:,}", seen, of_loss, "replay" if is_replayed else ""))
    first = next(iter(plan.stages))
    share = sum(first.weights[task] for task in first.rehearse)
    headline = f"Train on {1 - share:.0%} new rows and {share:.0%} replay, to keep {join_words(first.rehearse)}."
    if not share:
        steps = join_words([f"{stage.steps:,} steps of {stage.objective.upper()}" for stage in plan.stages])
        headline = f"Train on your rows alone: {steps}, {len(first.weights):,} tasks."
    header = ("task", "stage", "share", "rows", "each seen", "of target tokens", "")
    lines = [*wrap(headline), "", *table(header, shown, more="in the plan")]
    shares_note, replay_note = (plan.why.get(key, "") for key in NOTES)
    notes = (shares_note.partition(". ")[2] if share else shares_note, replay_note)  # the headline is its first sentence
    lines += [line for note in notes for line in wrap(note)]
    answered = [row for row in corpus.select(split=REHEARSE_SPLIT) if row.target and row.task in first.rehearse]
    examples = [f"  replay: {plain(row.prompt)} -> {plain(row.target)}" for row in answered[:MAX_EXAMPLES]]
    return [*lines, *(f"  {cut(example, line_width() - 2)}" for example in examples)]


def loss_token_shares(plan: Plan, corpus: Corpus, train: TrainConfig, learner: Learner) -> dict[str, float]:
    """Return for each task its share of the tokens in the loss.

    Args:
        plan: for SFT; its first stage is read.
        corpus: training rows, with those to replay; rows for measuring are skipped.
        train: with the longest row that is kept.
        learner: its tokenizer and chat template count.
    """
    limit, amounts = row_token_limit(train, learner), dict[str, float]()
    for task, weight in plan.stages[0].weights.items():
        examples = itertools.islice((row for row in corpus.select(tasks=[task]) if row.split != "eval"), ROWS_PER_TASK)
        lengths = [len(row.target) for row in read_training_rows(learner, examples, tokenise_together=True, limit=limit)]
        if weight > 0:
            amounts[task] = weight * sum(lengths) / max(1, len(lengths))
    return {task: amount / (sum(amounts.values()) or 1.0) for task, amount in amounts.items()}

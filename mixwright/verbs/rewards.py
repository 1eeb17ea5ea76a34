"""Verb `rewards`: wrong answers that a reward pays, and right ones that it does not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mixwright.config import CorpusConfig
from mixwright.rewards.audit import RewardAudit
from mixwright.rewards.stage import DEFAULT_ITEMS, run_reward_audit
from mixwright.verbs.options import Column, FailOn, Full, Json, parse_columns
from mixwright.verbs.report import show_findings


def rewards(
    functions: list[str] | Sequence[str],
    held_out: Annotated[str | Path | CorpusConfig, typer.Option("--eval")],
    *,
    weights: Annotated[list[float] | Sequence[float] | None, typer.Option("--weight")] = None,
    column: Column = None,
    items: Annotated[int, typer.Option(min=4)] = DEFAULT_ITEMS,
    completion: Annotated[str | None, typer.Option(metavar="COLUMN")] = None,
) -> RewardAudit:
    """Find wrong answers that a reward pays. Also right answers that it does not pay; needs no model.

    It starts a process, so a script calls it under `if __name__ == "__main__":`.

    Examples:
        >>> found = rewards(["includes"], "train.jsonl").observations[0]
        >>> (found.severity, found.check, found.message)
        ('info', 'scale', 'right answers (bare) earn 1, wrong ones 0')

    Args:
        functions: Reward functions (package.module:function) or graders.
        held_out: Rows with answers to test them on; formats as for audit.
        weights: Weight of each function, in the same order. Default: 1 each.
        column: Read a field from another column, such as prompt=question; repeatable; OURS= ignores a column. Fields: id,
            task, prompt, target, answer, level, skills, chosen, rejected, messages, text, split, system, history,
            label.
        items: Rows to test.
        completion: Column with completions of your model, which are tested as they are and with edits.

    Raises:
        InputError: the rows or a function cannot be used, or a function hangs.
    """
    config = held_out
    if not isinstance(config, CorpusConfig):
        config = CorpusConfig(str(config), eval_share=0.0, columns=parse_columns(column))
    return run_reward_audit(functions, config, weights=weights or (), items=items, completion_column=completion)


def show(
    found: RewardAudit, *, functions: Sequence[str], fail_on: FailOn = "never", full: Full = False, as_json: Json = False
) -> int:
    """Print the findings, and return the exit code."""
    calls = ", ".join(f"{name} ({kind})" for name, kind in zip(functions, found.kinds, strict=True))
    milliseconds = 1000 * found.seconds_per_completion
    read = f"{found.completions:,} completions scored, {milliseconds:.2g} ms each; called as {calls}"
    how = {"full": full, "as_json": as_json, "fail_on": fail_on}
    return show_findings(", ".join(functions), read, found.observations, **how, best_paid_form=found.best_paid_form)

"""Verb `dial`: skill and kept knowledge over the strength of a dial between a checkpoint and its tuned model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from mixwright.extend import (
    EVAL_OPTION,
    RIGHT_FROM_SCORE,
    Example,
    InputError,
    Interval,
    Json,
    MeasureConfig,
    Measuring,
    Passes,
    PreparedModels,
    output,
    prepare,
    read_rows,
    unknown_name,
)

if TYPE_CHECKING:
    from mixwright_extras.experts.dial import Sweep
else:
    Sweep = Any  # it would import torch

DEFAULT_ALPHAS = (0.25, 0.5, 0.75, 1.0)
MAX_ALPHA = 4.0
DEFAULT_ITEMS_PER_CELL = 100
"""Items per task and level that are written at each strength, where nothing else is asked for."""


def dial(
    base: str | Path,
    tuned: str | Path,
    measuring: Measuring | str | Path,
    *,
    keep: list[str] | Sequence[str] | None = None,
    alpha: list[float] | Sequence[float] | None = None,
    max_loss: Annotated[float, typer.Option(min=0.0, max=1.0)] = 0.02,
) -> Sweep:
    """Mix a base and a tuned model. Finds the largest strength that keeps the other tasks.

    Greedy success of all items is measured at every strength. From Python, items can take the place of `measuring`.

    Examples:
        >>> found = dial("checkpoint", "checkpoint", "two_tasks.jsonl", keep=["copy"], alpha=[1.0])
        >>> [setting.alpha for setting in found.settings]
        [0.0, 1.0]

    Args:
        base: Checkpoint before fine-tuning.
        tuned: Checkpoint or adapter folder after fine-tuning.
        measuring: Items that every strength is measured on, or a `Measuring` of them.
        keep: Task that must not get worse; repeatable. All other tasks count as the tuned skill.
        alpha: Strength to try: 0 is the base, 1 the tuned model; repeatable. Default: .25, .5, .75, 1.
        max_loss: Largest accepted loss of success on the kept tasks, 0..1.

    Raises:
        InputError: a model, an option or the data cannot be used, or the models have other vocabularies.
    """
    from mixwright_extras.experts.dial import sweep

    measuring = measuring if isinstance(measuring, Measuring) else Measuring(str(measuring))
    if measuring.budget is not None:
        raise InputError("--items", "--budget", "Leave it out: every strength is measured on the same items.")
    measuring.check_no_engine("dial, whose weights change with the strength")
    if measuring.held_out is None:
        raise InputError(EVAL_OPTION, "nothing", "Name the examples that the strengths are compared on.")
    alphas = alpha or DEFAULT_ALPHAS
    if bad_alphas := [strength for strength in alphas if not 0 < strength <= MAX_ALPHA]:
        raise InputError(
            f"--alpha above 0, {MAX_ALPHA:g} at most", f"{bad_alphas[0]:g}", "Correct it; 0 is always among them."
        )
    unused_options = [name for name in measuring.given_options() if name in ("--samples", "--temperature")]
    unused_options += ["--sampled"] if measuring.greedy is False else []
    if unused_options:
        raise InputError("greedy decoding", unused_options[0], "Leave it out: the dial is read greedily.")
    measure = MeasureConfig(items=measuring.items or DEFAULT_ITEMS_PER_CELL, decoding="greedy")
    ready = prepare((str(base), str(tuned)), measuring, read_rows(measuring), measure)
    passes = Passes(ready.learners[0], ready.config.measure, ready.corpus)
    kept_items, skill_items = _split_items(passes.items, keep or ())
    output.say(
        f"dial: {len(skill_items)} items of the tuned skill and {len(kept_items)} of the kept tasks, "
        f"at {len({0.0, *alphas})} strengths"
    )
    success = _make_success_function(ready, passes)
    swept = sweep(
        alphas,
        lambda strength: success(skill_items, strength),
        lambda strength: success(kept_items, strength),
        max_loss=max_loss,
    )
    return replace(swept, items={"tuned for": len(skill_items), "kept": len(kept_items)})


def show(found: Sweep, *, as_json: Json = False) -> None:
    """Print success and loss at each strength, and what to do."""
    if as_json:
        names = {"settings": found.settings, "chosen": found.chosen, "budget": found.max_loss, "items": found.items}
        output.out_json(names)
        return
    rows = [(f"{setting.alpha:g}", _format_share(setting.skill), _format_share(setting.loss)) for setting in found.settings]
    output.out_rows(("alpha", "success on the tuned skill", "success lost on the kept tasks"), rows)
    output.out(format_sweep(found))


def format_sweep(swept: Sweep) -> str:
    """Return the advice, one sentence, and its caveat."""
    caveat = (
        "The strength was chosen on these items, so measure it on others. A strength other than 0 or 1 runs "
        "two models for each token."
    )
    if swept.chosen is None:
        return (
            f"No strength can be shown to lose less than {swept.max_loss:.0%} of success on {swept.items['kept']} kept "
            f"items: use the base, accept a larger --max-loss, or add items. {caveat}"
        )
    chosen = next(setting for setting in swept.settings if setting.alpha == swept.chosen)
    return (
        f"The largest strength within the budget of {swept.max_loss:.0%} is {swept.chosen:g}: success "
        f"{_format_share(chosen.skill)} on the tuned skill, {_format_share(chosen.loss)} lost of the kept tasks. {caveat}"
    )


def _format_share(interval: Interval) -> str:
    return f"{100 * interval.value:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _split_items(items: Sequence[Example], keep: Sequence[str]) -> tuple[list[Example], list[Example]]:
    """Items of the tasks that are kept, and all others. Raises InputError where either is empty."""
    tasks = sorted({item.task for item in items})
    for name in keep:
        if name not in tasks:
            raise unknown_name("task of the items (--keep)", name, tasks)
    kept_items, skill_items = ([item for item in items if (item.task in keep) == is_kept] for is_kept in (True, False))
    if not kept_items or not skill_items:
        got = "all of them" if kept_items else "none"
        raise InputError(f"--keep with some of the tasks {', '.join(tasks)}", got, "Name the tasks that must not get worse.")
    return kept_items, skill_items


def _make_success_function(ready: PreparedModels, passes: Passes) -> Callable[[Sequence[Example], float], np.ndarray]:
    """(items, alpha) -> 1 for every item that is answered, else 0. Raises InputError for models of other vocabularies."""
    from mixwright_extras.experts.dial import Dial, Reader, write_completions

    base, tuned = ready.learners
    if base.tokenizer.get_vocab() != tuned.tokenizer.get_vocab():
        raise InputError("two checkpoints with the same vocabulary", "others", "Mix models that share a tokenizer.")
    dial = Dial(0.0, tuned=Reader(tuned), pad=base.tokenizer.pad_token_id)
    max_tokens = ready.config.measure.longest_completion

    def success(items: Sequence[Example], alpha: float) -> np.ndarray:
        dial.alpha = alpha
        completions = write_completions(base, [item.prompt for item in items], max_tokens, dial)
        grades = [
            passes.grades.grade(example, text, cut=not is_finished)
            for example, (text, is_finished) in zip(items, completions, strict=True)
        ]
        return (np.array(grades) >= RIGHT_FROM_SCORE).astype(float)

    return success

"""Skill and kept knowledge over the strength of a dial between a checkpoint and its tuned model: `mixwright dial`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mixwright.cli import output
from mixwright.cli.direct import prepare, rows_of
from mixwright.cli.options import CORPUS_OPTION, Measuring
from mixwright.cli.ready import Ready
from mixwright.config import MeasureConfig
from mixwright.errors import InputError, unknown_name
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.learner.dial import Dial, Reader, Sweep, sweep, write_completions
from mixwright.measure.passes import Passes
from mixwright.records import Example, Interval

DEFAULT_ALPHAS = (0.25, 0.5, 0.75, 1.0)
MOST_ALPHA = 4.0
DEFAULT_ITEMS_PER_CELL = 100
"""Items per task and level that are written at each strength, where nothing else is asked for."""


def show_sweep(
    base: str, tuned: str, asked: Measuring, keep: Sequence[str], alphas: Sequence[float], budget: float, *, as_json: bool
) -> None:
    """Print what `sweep_strengths` finds, as a table with what to do or as JSON. Raises InputError as that does."""
    found, counts = sweep_strengths(base, tuned, asked, keep, alphas, budget)
    if as_json:
        output.out_json({"settings": found.settings, "chosen": found.chosen, "budget": found.budget, "items": counts})
        return
    rows = [(f"{each.alpha:g}", _share(each.skill), _share(each.loss)) for each in found.settings]
    output.out_rows(("alpha", "success on what was tuned for", "success lost on what is kept"), rows)
    output.out(format_sweep(found, counts))


def sweep_strengths(
    base: str, tuned: str, asked: Measuring, keep: Sequence[str], alphas: Sequence[float], budget: float
) -> tuple[Sweep, dict[str, int]]:
    """Greedy success of all items at every strength, and how many items are tuned for and kept.

    Args:
        base: checkpoint folder or hub name.
        tuned: the same model, tuned: a checkpoint or the folder of an adapter.
        asked: what is measured, and how.
        keep: tasks whose success must not be lost.
        alphas: strengths, each above 0; none: `DEFAULT_ALPHAS`.
        budget: largest loss that is accepted, 0..1.

    Raises:
        InputError: a model, an option or the data cannot be used, or the models have other vocabularies.
    """
    if asked.budget is not None:
        raise InputError("--items", "--budget", "Leave it out: every strength is measured on the same items.")
    if asked.corpus is None:
        raise InputError(CORPUS_OPTION, "nothing", "Name the examples that the strengths are compared on.")
    alphas = alphas or DEFAULT_ALPHAS
    if wrong := [each for each in alphas if not 0 < each <= MOST_ALPHA]:
        raise InputError(f"--alpha above 0, {MOST_ALPHA:g} at most", f"{wrong[0]:g}", "Correct it; 0 is always among them.")
    unused = [name for name in asked.given() if name in ("--samples", "--temperature", "--options-by")]
    unused += ["--sampled"] if asked.greedy is False else []
    if unused:
        raise InputError("greedy decoding", unused[0], "Leave it out: the dial is read greedily.")
    measure = MeasureConfig(items=asked.items or DEFAULT_ITEMS_PER_CELL, decoding="greedy")
    ready = prepare((base, tuned), asked, rows_of(asked), measure)
    passes = ready.passes()
    kept, skill = _split_items(passes.items, keep)
    output.say(
        f"dial: {len(skill)} items of what was tuned for, {len(kept)} of what is kept, at {len({0.0, *alphas})} strengths"
    )
    success = _success(ready, passes)
    found = sweep(alphas, lambda a: success(skill, a), lambda a: success(kept, a), budget=budget)
    return found, {"tuned for": len(skill), "kept": len(kept)}


def format_sweep(found: Sweep, counts: dict[str, int]) -> str:
    """What to do, one sentence, and what it does not say."""
    last = "These items chose the strength: measure it on others. Any strength but 0 and 1 reads two models for each token."
    if found.chosen is None:
        return (
            f"No strength is shown to lose less than {found.budget:.0%} of success on {counts['kept']} kept items: "
            f"take the base, accept a larger --max-loss, or add items. {last}"
        )
    chosen = next(each for each in found.settings if each.alpha == found.chosen)
    return (
        f"The largest strength within the budget of {found.budget:.0%} is {found.chosen:g}: success "
        f"{_share(chosen.skill)} on what was tuned for, {_share(chosen.loss)} lost of what is kept. {last}"
    )


def _share(interval: Interval) -> str:
    return f"{100 * interval.value:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"


def _split_items(items: Sequence[Example], keep: Sequence[str]) -> tuple[list[Example], list[Example]]:
    """Items of the tasks that are kept, and all others. Raises InputError where either is empty."""
    tasks = sorted({item.task for item in items})
    for name in keep:
        if name not in tasks:
            raise unknown_name("task of the items (--keep)", name, tasks)
    kept, skill = ([item for item in items if (item.task in keep) == inside] for inside in (True, False))
    if not kept or not skill:
        got = "all of them" if kept else "none"
        raise InputError(f"--keep with some of the tasks {', '.join(tasks)}", got, "Name what must not be lost.")
    return kept, skill


def _success(ready: Ready, passes: Passes) -> Callable[[Sequence[Example], float], np.ndarray]:
    """(items, alpha) -> 1 for every item that is answered, else 0. Raises InputError for models of other vocabularies."""
    start, end = ready.learners
    if start.tokenizer.get_vocab() != end.tokenizer.get_vocab():
        raise InputError("two checkpoints of one vocabulary", "others", "Mix models that share a tokenizer.")
    mix, longest = Dial(0.0, tuned=Reader(end), pad=start.tokenizer.pad_token_id), ready.config.measure.longest_completion

    def success(items: Sequence[Example], alpha: float) -> np.ndarray:
        mix.alpha = alpha
        made = write_completions(start, [item.prompt for item in items], longest, mix)
        grades = [passes.grades.grade(one, text, cut=not done) for one, (text, done) in zip(items, made, strict=True)]
        return (np.array(grades) >= RIGHT_FROM_SCORE).astype(float)

    return success

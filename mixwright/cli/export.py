"""Export of a plan for another trainer: `mixwright plan ... --export FORMAT`. Nothing is trained."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mixwright.catalog import create, listing
from mixwright.errors import InputError, unknown_name
from mixwright.learner.prompt_form import PromptForm
from mixwright.plan.mix import Mix, Part, part_name
from mixwright.runs import write_json
from mixwright.steer.engine import Engine
from mixwright.steer.pool import Pool, corpus_pool

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.records import Example, Plan, Stage

SIMULATED_DRAWS = 100_000
"""Draws that tell the shares of levels, and rows that an export orders at most."""
EXPORT_MARKER_FILE = "mix.json"
"""File by which a folder is known to hold an export, which a newer one may replace."""


def check_export(name: str | None, folder: Path | None, *, dry_run: bool) -> None:
    """Refuse, before anything is planned, what could not be exported. Raises InputError."""
    if name is not None:
        resolve_format(name)
    elif folder is not None:
        raise InputError("--export FORMAT beside --export-to", "none", "Name a format: mixwright list exports.")
    if name is not None and dry_run:
        raise InputError("--export or --dry-run", "both", "A dry run writes nothing: leave one out.")


def resolve_format(name: str) -> str:
    """Name of the plug-in of a format, `llama-factory` or `llama_factory`. Raises InputError that lists what is typed."""
    formats = {stem.replace("_", "-"): stem for stem in listing("exports")}
    typed = name.replace("_", "-")
    if typed not in formats:
        raise unknown_name("format of --export", name, formats)
    return formats[typed]


def export_plan(
    plan: Plan,
    corpus: Corpus,
    name: str,
    folder: Path,
    *,
    batch: int,
    group: int | None = None,
    seed: int = 0,
    form: PromptForm | None = None,
) -> list[str]:
    """Write the plan for a trainer and say what was written; the folder appears whole or not at all.

    Args:
        plan: of one stage.
        corpus: with its training rows, and the rows to rehearse that the plan draws; held-out rows are never exported.
        name: of an export (`mixwright list exports`), `-` or `_` inside.
        folder: made anew; an earlier export there is replaced, anything else refused.
        batch: prompts, rows or pairs per optimiser step.
        group: completions per prompt in GRPO, where it is known.
        seed: of the draws and of the order of rows in a file.
        form: how prompts reach the model: through its chat template they are written as messages; None leaves them.

    Raises:
        InputError: an unknown format, a plan that does not fit the rows, or a folder with something else in it.
    """
    name = resolve_format(name)
    mix = mix_of(plan, corpus, batch=batch, group=group, seed=seed, form=form)
    if folder.exists() and not (folder / EXPORT_MARKER_FILE).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(
            "a new folder, or one with an earlier export", "other files", "Name another one: --export-to.", file=folder
        )
    shutil.rmtree(folder, ignore_errors=True)
    try:
        said = create("exports", name).write(mix, folder)
        shares = [
            {"task": part.task, "level": part.level, "share": part.share, "rows": len(part.rows)} for part in mix.parts
        ]
        write_json(folder / EXPORT_MARKER_FILE, {"format": name, "shares": shares, "notes": list(mix.notes)})
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return [*mix.notes, *said]


def _without_guards(stage: Stage) -> Stage:
    """The stage without gates, controllers and monitors, which hold rows back to watch them, and without their options."""
    left = ("gates.", "controllers.", "monitors.")
    options = {name: value for name, value in stage.options.items() if not name.startswith(left)}
    return replace(stage, gates=(), controllers=(), monitors=(), options=options)


def mix_of(
    plan: Plan,
    corpus: Corpus,
    *,
    batch: int,
    group: int | None = None,
    seed: int = 0,
    form: PromptForm | None = None,
) -> Mix:
    """The plan's weights, as the engine has them before it has seen anything. Raises InputError as `export_plan` does."""
    if len(plan.stages) != 1:
        raise InputError("a plan of one stage, for now", f"{len(plan.stages)}", "Leave the stage that is to be exported.")
    stage = plan.stages[0]
    train = apply_prompt_form(corpus.training(stage.rehearse), form or PromptForm())
    pool = corpus_pool(train)
    watching = _without_guards(stage)
    engine = Engine(replace(plan, stages=(watching,)), pool, seed=seed)
    drawn = np.asarray(engine.draw(max(SIMULATED_DRAWS, 1)), dtype=np.int64)
    shares = _shares(watching, pool, engine.wanted_shares(), drawn)
    rng, parts = np.random.default_rng(seed), []
    for number in np.flatnonzero(shares):
        cell, rows = pool.cells[number], np.flatnonzero(pool.cell_of == number)
        share = float(shares[number])
        parts.append(
            Part(part_name(len(parts) + 1, cell.task, cell.level), cell.task, cell.level, share, rng.permutation(rows))
        )
    order = drawn[: min(stage.steps * batch, SIMULATED_DRAWS)]
    group = group if stage.objective == "grpo" else None
    notes = _notes(plan, pool, shares, order, batch)
    return Mix(stage.objective, train, tuple(parts), order, batch, stage.steps, notes, group)


def apply_prompt_form(corpus: Corpus, form: PromptForm) -> Corpus:
    """The rows as messages where the model is measured through its chat template, or as plain text where it is not."""
    if form.template is None and form.system is None:
        return corpus
    from mixwright.corpus import Corpus

    def changed(row: Example) -> Example:
        texts = {name: getattr(row, name) for name in ("target", "chosen", "rejected")}
        made = {name: form.format_answer(row.prompt, text) for name, text in texts.items() if text is not None}
        return replace(row, prompt=form.format_prompt(row.prompt), **made) if row.prompt else row

    graders = {task.name: task.grader for task in corpus.tasks.values()}
    return Corpus.from_examples(map(changed, corpus), graders)


def _shares(stage: Stage, pool: Pool, wanted: dict[str, float], drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of each cell, summing to 1: tasks as the engine wants them, levels as it draws them, or rows evenly."""
    counts = np.bincount(pool.cell_of if stage.selector == "uniform" else pool.cell_of[drawn], minlength=len(pool.cells))
    task_of = np.array([pool.tasks.index(cell.task) for cell in pool.cells])
    totals = np.bincount(task_of, counts)
    weights = np.array([wanted[task] for task in pool.tasks])
    shares = weights[task_of] * counts / np.maximum(totals[task_of], 1)
    shares = np.round(shares / shares.sum(), 6)
    shares[int(shares.argmax())] += 1 - shares.sum()
    return np.round(shares, 6)


def _notes(plan: Plan, pool: Pool, shares: NDArray[np.float64], order: NDArray[np.int64], batch: int) -> tuple[str, ...]:
    """What the mix is, and what of the plan it cannot hold."""
    stage, rows, taken = plan.stages[0], len(order), len(np.unique(order))
    counts = np.bincount(pool.cell_of, minlength=len(pool.cells))
    notes = [f"Plan of planner {plan.planner}: {stage.objective}, {stage.steps} steps of {batch} draws."]
    if np.abs(shares - counts / counts.sum()).max() < 1e-4:
        few = f"; its {rows:,} draws take {taken:,} of {len(pool.ids):,} rows" if taken < len(pool.ids) else ""
        notes.append(f"The plan keeps uniform sampling: every training row is as likely to be drawn as any other{few}.")
    lost = []
    if stage.selector not in ("uniform", "equal_levels"):
        lost.append(f"the selector {stage.selector} moves the draws inside a task with the band")
    if lost:
        said = " and ".join(lost)
        notes.append(f"In a steered run {said} while the model learns. This export is the state at the start, and stays.")
    silent = [f"{kind} {', '.join(names)}" for kind, names in _levers(stage).items() if names]
    if silent:
        notes.append(f"Not exported, because they act on what a run shows: {'; '.join(silent)}.")
    if rows < stage.steps * batch:
        notes.append(f"The plan draws {stage.steps * batch:,} times; an ordered file has the first {rows:,} of these.")
    return tuple(notes)


def _levers(stage: Stage) -> dict[str, tuple[str, ...]]:
    return {"gates": stage.gates, "controllers": stage.controllers, "monitors": stage.monitors}

"""Export for another trainer, by one set of plug-ins: of a plan (`plan --export`), and of mined rows (`mine --export`)."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mixwright.catalog import create, listing
from mixwright.config import ModelConfig, TrainConfig
from mixwright.corpus import Corpus
from mixwright.errors import InputError, unknown_name
from mixwright.learner.bases import TINY_PREFIX
from mixwright.learner.prompt_form import PromptForm, plain_marks
from mixwright.plan.mix import Mix, MixPart, part_name
from mixwright.records import Plan, Stage
from mixwright.run.folder import check_own_folder, write_json
from mixwright.steer.engine import Engine
from mixwright.steer.pool import Pool, corpus_pool
from mixwright.verbs import output

SIMULATED_DRAWS = 100_000
"""Draws that tell the shares of levels, and rows that an export orders at most."""
GUARDS = ("gates", "controllers", "monitors")
"""What of a stage acts on what a run shows."""
MIX_FILE = "mix.json"
"""Summary of an export: its format, shares and notes. A folder that holds one may be replaced by a newer export."""


@dataclass(frozen=True, slots=True)
class TextHandling:
    """How texts reach the model of a run in measuring and training, which an export keeps."""

    form: PromptForm = field(default_factory=PromptForm)
    """Whether prompts go through its chat template, and which system message they have."""
    bos_eos_text: tuple[str, str] | None = None
    """What stands around plain text, as `Mix.bos_eos_text`."""
    max_completion_tokens: int | None = None
    """Longest completion of a rollout, tokens."""


def read_text_handling(model: ModelConfig, max_completion_tokens: int) -> TextHandling:
    """How texts reach the model of a run, as far as its tokenizer can be read here."""
    form = PromptForm(model.chat_template, model.system, model.template)
    if not form.template and model.path != TINY_PREFIX:
        try:
            from mixwright.learner.load import load_without_weights

            learner = load_without_weights(model.path, form=form)
            return TextHandling(learner.form, plain_marks(learner.tokenizer), max_completion_tokens)
        except (ImportError, InputError) as error:  # no torch here, or the model is elsewhere
            output.say(f"prompts stay as they are, unless model.chat_template is set: {error}")
    return TextHandling(form, max_completion_tokens=max_completion_tokens)


def check_export(name: str | None, folder: Path | None, *, dry_run: bool) -> None:
    """Refuse, before anything is planned, what could not be exported. Raises InputError."""
    if name is not None:
        resolve_format(name)
    elif folder is not None:
        raise InputError("--export FORMAT with --export-to", "none", "Name a format: mixwright list exports.")
    if name is not None and dry_run:
        raise InputError("--export or --dry-run", "both", "A dry run writes nothing: leave one out.")


def resolve_format(name: str) -> str:
    """Name of the plug-in of a format, `llama-factory` or `llama_factory`. Raises InputError that lists what is typed."""
    formats = {stem.replace("_", "-"): stem for stem in listing("exports")}
    typed = name.replace("_", "-")
    if typed not in formats:
        raise unknown_name("format of --export", name, formats)
    return formats[typed]


def write_mix(mix: Mix, name: str, folder: Path) -> list[str]:
    """Write a mix for a trainer and say what was written; the folder appears whole or not at all.

    Args:
        mix: of a plan (`build_mix`).
        name: of an export (`mixwright list exports`), `-` or `_` inside.
        folder: made anew; an earlier export there is replaced, anything else refused.

    Raises:
        InputError: an unknown format, rows that it does not take, or a folder with something else in it.
    """
    name, marker = resolve_format(name), folder / MIX_FILE
    check_own_folder(folder, MIX_FILE, option="--export-to")
    shutil.rmtree(folder, ignore_errors=True)
    try:
        written_notes = create("exports", name).write(mix, folder)
        shares = [{"task": one.task, "level": one.level, "share": one.share, "rows": len(one.rows)} for one in mix.parts]
        write_json(marker, {"format": name, "shares": shares, "notes": list(mix.notes)})
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return [*mix.notes, *written_notes]


def export_plan(
    plan: Plan, corpus: Corpus, train: TrainConfig, text_handling: TextHandling, name: str, folder: Path, seed: int = 0
) -> str:
    """Write a plan for a trainer, and say what was written; returns a line on the folder. Arguments and errors as of
    `build_mix` and `write_mix`.
    """
    settings = {"batch": train.prompts, "num_generations": train.generations, "seed": seed}
    for note in write_mix(build_mix(plan, corpus, **settings, text_handling=text_handling), name, folder):
        output.say(f"  {note}")
    return f"Export: {folder}"


def build_mix(
    plan: Plan,
    corpus: Corpus,
    *,
    batch: int,
    num_generations: int | None = None,
    seed: int = 0,
    text_handling: TextHandling | None = None,
) -> Mix:
    """The plan's weights, as the engine has them before it has seen anything.

    Args:
        plan: of one stage.
        corpus: with its training rows, and the rows to rehearse that the plan draws; held-out rows are never exported.
        batch: prompts, rows or pairs per optimiser step.
        num_generations: completions per prompt in GRPO, where it is known.
        seed: of the draws and of the order of rows in a file.
        text_handling: how texts reach the model: through its chat template they are written as messages; None leaves them.

    Raises:
        InputError: a plan of several stages, or one that does not fit the rows.
    """
    if len(plan.stages) != 1:
        raise InputError("a plan of one stage", f"{len(plan.stages)}", "Keep only the stage to export.")
    stage = plan.stages[0]
    text_handling = text_handling or TextHandling()
    train = apply_prompt_form(corpus.training(stage.rehearse), text_handling.form)
    pool = corpus_pool(train)
    options = {name: values for name, values in stage.options.items() if name.split(".")[0] not in GUARDS}
    unguarded = replace(stage, gates=(), controllers=(), monitors=(), options=options)  # these hold rows back to watch them
    engine = Engine(replace(plan, stages=(unguarded,)), pool, seed=seed)
    drawn_rows = np.asarray(engine.draw(SIMULATED_DRAWS), dtype=np.int64)
    shares = _cell_shares(unguarded, pool, engine.wanted_shares(), drawn_rows)
    rng, mix_parts = np.random.default_rng(seed), []
    for number in np.flatnonzero(shares):
        cell, rows = pool.cells[number], np.flatnonzero(pool.cell_of == number)
        share = float(shares[number])
        name = part_name(len(mix_parts) + 1, cell.task, cell.level)
        mix_parts.append(MixPart(name, cell.task, cell.level, share, rng.permutation(rows)))
    order = drawn_rows[: min(stage.steps * batch, SIMULATED_DRAWS)]
    notes = (*_describe_mix(plan, pool, shares, order, batch), *_describe_template(text_handling.form))
    mix = Mix(stage.objective, train, tuple(mix_parts), order, batch, stage.steps, notes)
    mix = replace(mix, bos_eos_text=text_handling.bos_eos_text)
    if stage.objective != "grpo":
        return mix
    return replace(mix, num_generations=num_generations, max_completion_tokens=text_handling.max_completion_tokens)


def _describe_template(form: PromptForm) -> tuple[str, ...]:
    """Return a note on arguments of the chat template, which every trainer has in a place of its own."""
    names = "TRL: a column chat_template_kwargs; Axolotl: chat_template_kwargs; LLaMA-Factory: enable_thinking; "
    names += "verl: data.apply_chat_template_kwargs"
    given = ", ".join(form.list_arguments())
    return (f"The model is measured with {given}: set it in the trainer, too ({names}).",) if given else ()


def apply_prompt_form(corpus: Corpus, form: PromptForm) -> Corpus:
    """The rows as messages where the model is measured through its chat template, or as plain text where it is not."""
    if form.template is None and form.system is None:
        return corpus
    return Corpus.from_examples(map(form.example, corpus), corpus.graders)


def _cell_shares(
    stage: Stage, pool: Pool, task_shares: dict[str, float], drawn_rows: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Share of each cell, summing to 1: tasks as the engine wants them, levels as it draws them, or rows evenly."""
    counts = np.bincount(
        pool.cell_of if stage.selector == "uniform" else pool.cell_of[drawn_rows], minlength=len(pool.cells)
    )
    task_of = np.array([pool.tasks.index(cell.task) for cell in pool.cells])
    totals = np.bincount(task_of, counts)
    weights = np.array([task_shares[task] for task in pool.tasks])
    shares = weights[task_of] * counts / np.maximum(totals[task_of], 1)
    shares = np.round(shares / shares.sum(), 6)  # millionths that sum to 1: some trainers refuse others
    shares[int(shares.argmax())] += 1 - shares.sum()
    return np.round(shares, 6)


def _describe_mix(
    plan: Plan, pool: Pool, shares: NDArray[np.float64], order: NDArray[np.int64], batch: int
) -> tuple[str, ...]:
    """What the mix is, and what of the plan it cannot hold."""
    stage, ordered_rows, distinct_rows = plan.stages[0], len(order), len(np.unique(order))
    counts = np.bincount(pool.cell_of, minlength=len(pool.cells))
    notes = [f"Plan of planner {plan.planner}: {stage.objective}, {stage.steps} steps of {batch} draws."]
    if np.abs(shares - counts / counts.sum()).max() < 1e-4:
        few_note = f"; its {ordered_rows:,} draws take {distinct_rows:,} of {len(pool.ids):,} rows"
        few_note = few_note if distinct_rows < len(pool.ids) else ""
        notes.append(f"The plan keeps uniform sampling: every training row is equally likely to be drawn{few_note}.")
    if stage.selector not in ("uniform", "equal_levels"):
        notes.append(f"These are the draws of the start: in a steered run the selector {stage.selector} changes them.")
    left_out_guards = [f"{kind} {', '.join(names)}" for kind in GUARDS if (names := getattr(stage, kind))]
    if left_out_guards:
        notes.append(f"Not exported, because they react to the run: {'; '.join(left_out_guards)}.")
    if ordered_rows < stage.steps * batch:
        notes.append(f"The plan takes {stage.steps * batch:,} samples; an ordered file has the first {ordered_rows:,}.")
    return tuple(notes)

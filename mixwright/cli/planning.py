"""Bodies of `mixwright plan`: from a run folder, and from a checkpoint without a YAML; each may be exported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.cli import output
from mixwright.cli.export import export_plan
from mixwright.cli.options import Measuring
from mixwright.errors import InputError, one_line

if TYPE_CHECKING:
    from mixwright.config import RunConfig
    from mixwright.corpus import Corpus
    from mixwright.learner.prompt_form import PromptForm
    from mixwright.records import Plan
    from mixwright.runs import RunFolder


MOST_TASKS_TOLD = 12
"""Tasks whose share is told in the terminal."""


def plan_checkpoint(
    model: str,
    asked: Measuring,
    wanted: Mapping[str, Any],
    output_file: Path | None,
    export: str | None,
    export_to: Path | None,
) -> None:
    """Measure a checkpoint and plan from it: on stdout, or in a file.

    Args:
        model: folder or hub name.
        asked: what it is measured on, and how.
        wanted: fields of `Planning`; None for a default.
        output_file: where the plan is written.
        export: format of another trainer, too.
        export_to: folder of that.

    Raises:
        InputError: as `direct_plan.plan` does.
    """
    from mixwright.cli.direct_plan import Planning, plan
    from mixwright.runs import write_plan

    if output_file is not None:
        _check_output(output_file)
    planning = Planning(**{name: value for name, value in wanted.items() if value is not None})
    config, corpus, made, form = plan(model, asked, planning, say=output.say)
    for line in reasons_of(made):
        output.say(one_line(f"plan: {line}"))
    if output_file is None:
        output.out_yaml(made)
    else:
        write_plan(output_file, made)
        output.out(str(output_file))
    if export is not None:
        place = export_to or Path("export") / export
        _export(config, corpus, made, export, place, form)
        (output.say if output_file is None else output.out)(str(place))


def _check_output(path: Path) -> None:
    """Refuse, before anything is measured, to replace a file that is no plan. Raises InputError."""
    from mixwright.records import Plan
    from mixwright.runs import read_yaml

    if not path.exists():
        return
    try:
        read_yaml(path, Plan)
    except InputError as error:
        raise InputError("--output FILE that is new, or a plan", f"{path}, which is neither", "Choose another.") from error


def plan_folder(
    config: RunConfig, run: RunFolder, base: Path, export: str | None, export_to: Path | None, *, dry_run: bool
) -> None:
    """Plan from what a run folder holds; a dry run prints it and writes nothing. Raises InputError as `open_run_folder`
    does.
    """
    from mixwright.mine.job import REHEARSAL_MINER, rehearse_run, table_file, with_mined_rehearsal
    from mixwright.opening import check_plan, known_corpus, open_run_folder, start_workers
    from mixwright.plan.stage import make_plan, plan_run
    from mixwright.runs import read_measurements

    if dry_run:
        corpus = known_corpus(config, run, base=base, trains=True)
        if table_file(run, REHEARSAL_MINER).is_file():  # else rows to rehearse count as if the model answered all of them
            corpus = with_mined_rehearsal(run, corpus)
        output.out_yaml(make_plan(config, corpus, read_measurements(run.measurements("before"))))
        return
    with open_run_folder(config, run, base=base, trains=True, after=run.measurements("before")) as corpus:
        if export is None or not run.plan.exists():  # what was edited by hand is exported as it stands
            with start_workers(config) as workers:
                rehearse_run(config, run, workers, corpus, say=output.say)
            made = plan_run(config, run, with_mined_rehearsal(run, corpus))
            for line in reasons_of(made):
                output.say(one_line(f"plan: {line}"))
        output.out(str(run.plan))
        if export is not None:
            place = export_to or run.path / "export" / export
            _export(config, with_mined_rehearsal(run, corpus), check_plan(config, run, corpus), export, place)
            output.out(str(place))


def reasons_of(plan: Plan) -> list[str]:
    """What a plan for SFT or DPO does and why, a line for the whole and one for each task; nothing of other plans."""
    stage = plan.stages[0]
    if plan.planner != "rehearsal":
        return []
    tasks = [(task, weight, plan.why.get(f"stages.0.weights.{task}", "")) for task, weight in stage.weights.items()]
    lines = [f"{task}: {weight:.1%} of the draws; {reason}" for task, weight, reason in tasks[:MOST_TASKS_TOLD]]
    more = [f"and {len(tasks) - MOST_TASKS_TOLD} more tasks: see why in the plan"] if len(tasks) > MOST_TASKS_TOLD else []
    return [plan.why["stages.0.weights"], *lines, *more]


def form_of(config: RunConfig) -> PromptForm:
    """The form in which prompts of a run reach its model, as far as its tokenizer can be read here."""
    from mixwright.learner.prompt_form import PromptForm

    form = PromptForm(config.model.chat_template, config.model.system)
    if form.template is not None or config.model.path == "tiny:":
        return form
    try:
        from mixwright.learner.load import load_without_weights

        return form.resolved_for(load_without_weights(config.model.path).tokenizer.chat_template)
    except (ImportError, InputError):  # no torch here, or the model is elsewhere
        return form


def _export(config: RunConfig, corpus: Corpus, plan: Plan, export: str, place: Path, form: PromptForm | None = None) -> None:
    batch, group = config.train.prompts, config.train.generations
    form = form or form_of(config)
    for line in export_plan(plan, corpus, export, place, batch=batch, group=group, seed=config.seed, form=form):
        output.say(one_line(line))

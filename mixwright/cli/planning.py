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
    from mixwright.records import Plan
    from mixwright.runs import RunFolder


def plan_checkpoint(
    model: str,
    asked: Measuring,
    settings: Mapping[str, Any],
    output_file: Path | None,
    export: str | None,
    export_to: Path | None,
) -> None:
    """Measure a checkpoint and plan from it: on stdout, or in a file.

    Args:
        model: folder or hub name.
        asked: what it is measured on, and how.
        settings: planner, objective and steps; None for a default.
        output_file: where the plan is written.
        export: format of another trainer, too.
        export_to: folder of that.

    Raises:
        InputError: as `direct.plan` does.
    """
    from mixwright.cli import direct
    from mixwright.plan.foreseen import lines_of
    from mixwright.runs import write_plan

    if output_file is not None:
        _check_output(output_file)
    config, corpus, made = direct.plan(model, asked, **settings, say=output.say)
    for line in lines_of(made):
        output.say(one_line(f"plan: {line}"))
    if output_file is None:
        output.out_yaml(made)
    else:
        write_plan(output_file, made)
        output.out(str(output_file))
    if export is not None:
        place = export_to or Path("export") / export
        _export(config, corpus, made, export, place)
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
    """Plan from what a run folder holds; a dry run prints it and writes nothing. Raises InputError as `opened` does."""
    from mixwright.opening import check_plan, known_corpus, opened
    from mixwright.plan.foreseen import lines_of
    from mixwright.plan.stage import make_plan, plan_run
    from mixwright.runs import read_measurements

    if dry_run:
        corpus = known_corpus(config, run, base=base, trains=True)
        output.out_yaml(make_plan(config, corpus, read_measurements(run.measurements("before"))))
        return
    with opened(config, run, base=base, trains=True, after=run.measurements("before")) as corpus:
        if export is None or not run.plan.exists():  # what was edited by hand is exported as it stands
            for line in lines_of(plan_run(config, run, corpus)):
                output.say(one_line(f"plan: {line}"))
        output.out(str(run.plan))
        if export is not None:
            place = export_to or run.path / "export" / export
            _export(config, corpus, check_plan(config, run, corpus), export, place)
            output.out(str(place))


def _export(config: RunConfig, corpus: Corpus, plan: Plan, export: str, place: Path) -> None:
    for line in export_plan(
        plan, corpus, export, place, batch=config.train.prompts, group=config.train.generations, seed=config.seed
    ):
        output.say(one_line(line))

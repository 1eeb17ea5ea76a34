"""Pipeline of the whole flow, as a line: corpus -> audit -> measure -> plan -> trial (which steers) -> verdict.

Each stage reads records from the run folder and writes its own there, so any stage can be re-run, inspected or hand-edited
alone; `run` keeps what is there and newer than what it was made from. Nothing is written before the input was checked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from mixwright.audit.stage import audit_run_folder, complaints
from mixwright.config import RunConfig
from mixwright.learner.bases import build_base
from mixwright.measure.bases import measure_start
from mixwright.mine.job import mine_rehearsal, with_mined_rehearsal
from mixwright.plan.stage import plan_run
from mixwright.records import Verdict
from mixwright.run.checked import CheckedRun
from mixwright.run.folder import RunFolder
from mixwright.run.opening import open_with_workers
from mixwright.run.workers import Workers
from mixwright.trial.data_rows import data_path
from mixwright.trial.deadline import Deadline
from mixwright.trial.stage import checked_trial, run_trial
from mixwright.verdict.stage import write_verdict


def run(
    config: RunConfig,
    folder: RunFolder,
    *,
    relative_to: Path = Path(),
    say: Callable[[str], None] = lambda _: None,
    deadline: Deadline | None = None,
) -> Verdict:
    """Run every stage, from the corpus to the verdict.

    Args:
        config: the settings.
        folder: where everything is written; a stage whose output is there and up to date is not done again.
        relative_to: folder that relative paths in the settings start from.
        say: called with what is being done.
        deadline: of the run; None begins one where the settings have a budget.

    Raises:
        InputError: something in the settings or the data; before the folder is made where that can be known.
    """
    deadline = Deadline(config.trial.budget_minutes) if deadline is None else deadline
    with open_with_workers(config, folder, relative_to=relative_to, for_trial=True) as (workers, checked_run):
        before, result = folder.measurements("before"), folder.result
        audit_and_measure(checked_run, workers, say=say)
        mine_rehearsal(checked_run, workers, say=say)
        checked_run = replace(checked_run, corpus=with_mined_rehearsal(folder, checked_run.corpus))
        if is_stale(folder.plan, before):
            say("plan: weights, band and levers")
            new_plan = plan_run(checked_run)
            if "stages" in new_plan.why:
                say(f"  plan: {new_plan.why['stages']}")
        table = [] if config.trial.data is None else [data_path(config.trial.data, folder, relative_to)]
        if is_stale(result, folder.plan, folder.settings, *table):
            trial = checked_trial(checked_run)
            say(f"trial: {', '.join(trial.arms.always_run)} on {config.trial.seeds} seeds; nulls only if a lever helps")
            build_base(checked_run, workers)
            run_trial(replace(trial, workers=workers), say=say, deadline=deadline)
        return write_verdict(folder, gated=False)  # a run leaves with 0


def audit_and_measure(run: CheckedRun, workers: Workers, *, say: Callable[[str], None]) -> None:
    """The first two stages, each where its output is missing or older than the data.

    Args:
        run: checked, its folder open.
        workers: running workers.
        say: called with what is being done.

    Raises:
        InputError: what the probes refuse.
    """
    folder, rows = run.folder, run.folder.corpus / "rows.parquet"
    for note in run.corpus.notes:
        say(f"corpus: {note}")
    if is_stale(folder.audit, rows):
        say("audit: checking the data")
        for line in complaints(audit_run_folder(run.corpus, folder)):
            say(line)
    if is_stale(folder.measurements("before"), rows):
        say("measure: testing what the model can do")
        measure_start(run, workers, say=say)


def is_stale(output: Path, *sources: Path) -> bool:
    """Whether `output` is missing or older than a file it was made from (a plan edited by hand makes the trial stale)."""
    return not output.exists() or any(source.stat().st_mtime > output.stat().st_mtime for source in sources)

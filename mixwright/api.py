"""Stages as functions: each does what the verb of its name does on the command line, by the same defaults.

    from mixwright.api import audit, measure, plan, run, trial, verdict

`audit`, `diagnose`, `rewards`, `measure` and `plan` take and return records and write no file; `scan`, `mine`, `steer`,
`trial` and `run` work on a run folder, `verdict` on one or on two checkpoints. A corpus is a `Corpus`, the path or name
of examples (nothing of them is held out), or a `CorpusConfig`. What works on a run folder, and `rewards`, starts processes,
so a script calls it under `if __name__ == "__main__":`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from mixwright.audit.shards import audited_by
from mixwright.audit.stage import run_audit
from mixwright.catalog import KIND_BY_NAME, Entry, listing
from mixwright.config import CorpusConfig, MeasureConfig, PlanConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.graded import read_graded
from mixwright.corpus.tool_messages import calls_as_text
from mixwright.corpus.trainable import NEEDED_COLUMNS, check_training
from mixwright.errors import InputError
from mixwright.estimates.replicates import Ranking
from mixwright.logs.diagnosis import diagnose as diagnose_log
from mixwright.logs.rollouts import read_rollouts
from mixwright.measure.fitting import usual_items
from mixwright.measure.free_answers import find_room
from mixwright.measure.room import keep_fitting_corpus
from mixwright.measure.stage import measure_learner
from mixwright.mine.job import mine_in_run, options_of
from mixwright.mine.stage import make_miner
from mixwright.plan.stage import make_plan
from mixwright.records import Measurement, Observation, Plan, TrialResult, Verdict
from mixwright.rewards.stage import DEFAULT_ITEMS, run_reward_audit
from mixwright.run import pipeline
from mixwright.run.folder import RunFolder
from mixwright.run.opening import open_with_workers
from mixwright.run.preflight import check_items, check_settings
from mixwright.scan.table import column_groups
from mixwright.trial.stage import checked_trial, steer_once, try_plan
from mixwright.verbs.budget import Budget, parse_duration
from mixwright.verbs.direct import GOLD_PROBE, drop_unreadable_gold
from mixwright.verbs.gating import Gating
from mixwright.verbs.judging import judge
from mixwright.verbs.options import Measuring, Placing, load_settings, with_budget
from mixwright.verbs.plugins import find_entries
from mixwright.verbs.replicates import rank_source
from mixwright.verdict.report import show_report

if TYPE_CHECKING:
    from rich.console import Console

    from mixwright.learner.dial import Sweep
    from mixwright.learner.learner import Learner
    from mixwright.scan.stage import ScanResult

__all__ = [
    "Gating",
    "Measuring",
    "Placing",
    "audit",
    "diagnose",
    "dial",
    "explain",
    "list_plugins",
    "measure",
    "mine",
    "plan",
    "replicates",
    "run",
]
__all__ += ["rewards", "scan", "steer", "trial", "verdict"]

IN_MEMORY = CorpusConfig("corpus in memory")
"""Stands in settings for rows that were read already."""


def run(
    config: RunConfig | str | Path,
    folder: RunFolder | str | Path | None = None,
    *,
    budget: Budget | str | None = None,
    placing: Placing | None = None,
    say: Callable[[str], None] = lambda line: None,
    console: Console | None = None,
) -> Verdict:
    """Run every stage, from the corpus to the verdict; goes on where an earlier call stopped.

    The page is `verdict.html` in the run folder, and `verdict.json` beside it holds what is returned.

    Examples:
        >>> run("run.yaml").reason
        'trial'

    Args:
        config: a settings file, or settings; relative paths start from the file's folder, or from the current one.
        folder: where everything is written; by default `runs/` and the name of the settings file.
        budget: time that the whole run may take, such as "20m"; over that of the settings.
        placing: a cluster for the workers, over that of the settings.
        say: told what is being done, line by line.
        console: where the report is printed; None prints nothing.

    Raises:
        InputError: something in the settings or the data, before the folder is made where that can be known.
    """
    settings, run_folder, relative_to = _open_settings(config, folder, placing)
    settings, deadline = with_budget(settings, run_folder, _start_budget(budget))
    verdict = pipeline.run(settings, run_folder, relative_to=relative_to, say=say, deadline=deadline)
    if console is not None:
        show_report(console, verdict, str(run_folder.page))
    return verdict


def audit(
    corpus: Corpus | CorpusConfig | str | Path,
    *,
    checks: Sequence[str] | None = None,
    workers: int = 1,
    cluster: str = "",
) -> list[Observation]:
    """What is in the data, and what should not be: errors, then warnings, then infos. No model needed.

    Examples:
        >>> for seen in audit("train.jsonl", checks=["duplicates"]):
        ...     print(seen.severity, seen.task, seen.count, "of", seen.total)
        info sum 1 of 41

    Args:
        corpus: what is looked at; contamination needs both splits, so a `CorpusConfig` with `eval`.
        checks: names of checks; None for all.
        workers: processes for the long passes over the rows; 0 takes one per CPU core. The findings are the same.
        cluster: where they run: `ray`, `ray:HOST:PORT`, or nothing for this machine.

    Raises:
        InputError: data that cannot be read, an unknown check, or a cluster that cannot be used.
    """
    with calls_as_text():
        rows = _as_corpus(corpus)
        with audited_by(workers, cluster, rows):
            return run_audit(rows, checks)


def diagnose(rollouts: str | Path) -> list[Observation]:
    """What an RL run did not learn from, what decided its rewards, and when it went wrong: errors first. No model needed.

    Examples:
        >>> for seen in diagnose("rollouts.jsonl"):
        ...     print(seen.severity, seen.check, seen.task, seen.count, "of", seen.total)
        error groups sum 30 of 30

    Args:
        rollouts: a file or folder that TRL, verl, verifiers or NeMo Gym wrote, or JSONL with completion and reward.

    Raises:
        InputError: no such file, none with rollouts, or a damaged row.
    """
    return diagnose_log(read_rollouts(str(rollouts)))


def rewards(
    functions: Sequence[str],
    corpus: str | Path | CorpusConfig,
    *,
    weights: Sequence[float] = (),
    items: int = DEFAULT_ITEMS,
    completion: str | None = None,
) -> list[Observation]:
    """What reward functions pay that they should not, and what they do not pay: errors first. No model needed.

    Examples:
        >>> [(seen.severity, seen.check, seen.message) for seen in rewards(["includes"], "train.jsonl")][:1]
        [('info', 'scale', 'right answers (bare) earn 1, wrong ones 0')]

    Args:
        functions: each `package.module:function`, as TRL, verl, verifiers or Mixwright call it, or a grader's name.
        corpus: rows with answers, on which they are tried.
        weights: one per function, as the trainer has them; none is 1 for each.
        items: rows that are tried.
        completion: column with what the model wrote; it is edited and tried, too.

    Raises:
        InputError: the rows or a function cannot be used, or a function hangs.
    """
    config = corpus if isinstance(corpus, CorpusConfig) else CorpusConfig(str(corpus), eval_share=0.0)
    return list(
        run_reward_audit(list(functions), config, weights=weights, items=items, completion_column=completion).observations
    )


def measure(
    checkpoint: Learner | str | Path,
    corpus: Corpus | CorpusConfig | str | Path,
    *,
    start: Learner | str | Path | None = None,
    settings: MeasureConfig | None = None,
    seed: int = 0,
) -> list[Measurement]:
    """What a model can do now, per task and level and per item, each number with its interval and its null.

    Examples:
        >>> rows = measure("checkpoint", "train.jsonl", settings=MeasureConfig(items=8, samples=2, probes=("competence",)))
        >>> [(row.task, row.n) for row in rows if row.name == "pass@1" and row.example is None]
        [('sum', 16)]

    Args:
        checkpoint: a folder, a hub name, or a loaded model, which is left as it was.
        corpus: its held-out rows are measured (all of them when there are none).
        start: the model that training began with, for drift.
        settings: probes and sizes; None takes those of the command line: so many items, the probe of gold answers where an
            answer is one string, and the room that the answers to a few items, completed freely, need.
        seed: of samples; the same before and after couples the two.

    Raises:
        InputError: no such model, nothing to grade, or an unknown probe.
    """
    from mixwright.learner.learner import Learner
    from mixwright.learner.load import load_learner
    from mixwright.learner.vllm_engine import run_engine

    rows = _read_graded_corpus(corpus)
    check_items(rows)
    logger = logging.getLogger("mixwright")
    default_settings = MeasureConfig(items=usual_items(rows), probes=(*MeasureConfig().probes, GOLD_PROBE))
    measure_config = settings or drop_unreadable_gold(default_settings, rows, logger.info)
    check_settings(config := RunConfig(IN_MEMORY, measure=measure_config, trial=TrialConfig(workers=1)), rows)
    learner, start_learner = (
        model if model is None or isinstance(model, Learner) else load_learner(str(model)) for model in (checkpoint, start)
    )
    assert learner is not None
    if settings is None:
        rows, notes = keep_fitting_corpus([learner], rows, measure_config)
        for note in notes:
            logger.warning(note)
        room, continued = find_room([learner], rows, measure_config, logger.info)
        measure_config = replace(measure_config, max_new_tokens=room.tokens, continued_tokens=continued)
    with run_engine(config, learner, None):
        return list(measure_learner(learner, rows, measure_config, start=start_learner, seed=seed).measurements)


def scan(
    config: RunConfig | str | Path,
    folder: RunFolder | str | Path | None = None,
    *,
    columns: Sequence[str] | None = None,
    sample: int | None = None,
    placing: Placing | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> list[ScanResult]:
    """Read every row once with the starting model: a table of losses, IFD, entropy, gradients, pass rates, per example.

    Examples:
        >>> [(found.rows, found.made) for found in scan("run.yaml", columns=["likelihood"])]
        [(41, 1)]

    Args:
        config: as `run` takes them.
        folder: as `run` takes it.
        columns: groups or single columns, or `all`; None takes those without rollouts, gradients and vectors.
        sample: only so many rows, by a hash of their ids.
        placing: a cluster for the workers, over that of the settings.
        say: told what is being done.

    Raises:
        InputError: an unknown column, or something in the settings, the data or the model.
    """
    from mixwright.scan.stage import scan_bases

    settings, run_folder, relative_to = _open_settings(config, folder, placing)
    column_groups(columns)  # first: an unknown one is refused before anything is opened
    with open_with_workers(settings, run_folder, relative_to=relative_to) as (workers, checked_run):
        return scan_bases(checked_run, workers, columns=columns, sample=sample, say=say)


def mine(
    config: RunConfig | str | Path,
    folder: RunFolder | str | Path | None = None,
    *,
    miner: str,
    keep: float | None = None,
    placing: Placing | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Choose training rows, or make new ones, each with a reason; returns the table of them.

    Examples:
        >>> mine("run.yaml", miner="influence").as_posix()
        'runs/run/mine/influence.parquet'

    Args:
        config: as `run` takes them.
        folder: as `run` takes it.
        miner: how to choose or make rows, by name.
        keep: share of the rows to choose, 0 to 1; None takes the settings'.
        placing: a cluster for the workers, over that of the settings.
        say: told what is being done.

    Raises:
        InputError: an unknown miner or option, what the miner refuses, or something in the settings, the data or the model.
    """
    settings, run_folder, relative_to = _open_settings(config, folder, placing)
    make_miner(miner, options_of(settings.mine, miner, keep))  # first: an unknown one is refused before anything is opened
    with open_with_workers(settings, run_folder, relative_to=relative_to) as (workers, checked_run):
        return mine_in_run(checked_run, workers, miner, keep=keep, say=say)


def plan(
    corpus: Corpus | CorpusConfig | str | Path,
    measured: Sequence[Measurement],
    *,
    settings: PlanConfig | None = None,
    train: TrainConfig | None = None,
) -> Plan:
    """Weights, band and levers with a reason for each number, from what was measured. Pure: no model, no torch.

    Examples:
        >>> rows = measure("checkpoint", "train.jsonl", settings=MeasureConfig(items=8, samples=2, probes=("competence",)))
        >>> made = plan("train.jsonl", rows, train=TrainConfig(steps=20))
        >>> made.stages[0].steps, dict(made.stages[0].weights)
        (20, {'sum': 1.0})

    Args:
        corpus: what is to be trained on, the one that was measured.
        measured: what `measure` returned for the model that training begins with.
        settings: the planner, its options, and what you want otherwise.
        train: objective, steps, prompts per step and beta are read.

    Raises:
        InputError: an unknown planner or option, rows that the objective cannot be trained on, or a planner that lacks
            what it plans by.
    """
    train, rows = train or TrainConfig(), _read_graded_corpus(corpus)
    if train.objective in NEEDED_COLUMNS:  # others are refused with the plan
        check_training(train.objective, rows)
    return make_plan(settings or PlanConfig(), train, rows, measured)


def steer(
    config: RunConfig | str | Path,
    folder: RunFolder | str | Path | None = None,
    *,
    placing: Placing | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> Path:
    """Train once under the plan as it stands; returns the folder of the branch, which a later trial takes over.

    Examples:
        >>> steer("run.yaml").as_posix()
        'runs/run/trial/steered-0'

    Args:
        config: as `run` takes them.
        folder: as `run` takes it; planned already.
        placing: a cluster for the workers, over that of the settings.
        say: told what is being done.

    Raises:
        InputError: something in the settings, the data or the plan, or a folder without a plan.
    """
    settings, run_folder, relative_to = _open_settings(config, folder, placing)
    with open_with_workers(settings, run_folder, relative_to=relative_to, for_trial=True, needs_plan=True) as (
        workers,
        checked_run,
    ):
        return steer_once(checked_run, workers, say=say)


def trial(
    config: RunConfig | str | Path,
    folder: RunFolder | str | Path | None = None,
    *,
    data: str | None = None,
    budget: Budget | str | None = None,
    placing: Placing | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> TrialResult:
    """Try the plan of a run folder against simpler choices, paired by seed; where it helps, against its nulls.

    Examples:
        >>> result = trial("run.yaml")
        >>> sorted({effect.against for effect in result.effects if effect.arm == "steered"})
        ['frozen', 'uniform']

    Args:
        config: as `run` takes them.
        folder: as `run` takes it; measured and planned already. What is finished is not trained again.
        data: a miner's name, or a table of rows, that is tried instead of the plan.
        budget: as `run` takes it.
        placing: a cluster for the workers, over that of the settings.
        say: told what is being done, and before the first branch what the trial can see.

    Raises:
        InputError: something in the settings, the data or the plan, or a folder without a plan.
    """
    settings, run_folder, relative_to = _open_settings(config, folder, placing)
    settings = settings if data is None else replace(settings, trial=replace(settings.trial, data=data))
    settings, deadline = with_budget(settings, run_folder, _start_budget(budget))
    with open_with_workers(settings, run_folder, relative_to=relative_to, for_trial=True, needs_plan=True) as (
        workers,
        checked_run,
    ):
        return try_plan(checked_run, checked_trial(checked_run), workers, say=say, deadline=deadline)


def verdict(
    before: RunFolder | str | Path,
    after: str | Path | None = None,
    *,
    measuring: Measuring | str | Path | None = None,
    gating: Gating | None = None,
    folder: RunFolder | str | Path = Path("runs/comparison"),
    console: Console | None = None,
) -> Verdict:
    """Judge a run folder, measure and compare two models, or compare two evaluation logs.

    The page is `verdict.html` in the folder, and `verdict.json` beside it holds what is returned. Judging a run folder takes
    no torch.

    Examples:
        >>> verdict("runs/run").name
        'run'

    Args:
        before: folder of a run or of a comparison; with `after`, a checkpoint or an evaluation log.
        after: checkpoint or log that is compared with it.
        measuring: test items of your own, or a `Measuring` of them; two checkpoints are asked general requests, too, unless
            `gating` says `suite=False` or names tasks to protect.
        gating: what the gate is asked.
        folder: where a comparison is written.
        console: where the report is printed; None prints nothing.

    Raises:
        InputError: no run, a file in it is broken, or checkpoints or examples that cannot be used.
    """

    def show(run: RunFolder, verdict: Verdict) -> None:
        if console is not None:
            show_report(console, verdict, str(run.page))

    source = before.path if isinstance(before, RunFolder) else before
    tuned = None if after is None else str(after)
    return judge(str(source), tuned, _as_measuring(measuring), _as_folder(folder).path, gating or Gating(), show)


def dial(
    base: str | Path,
    tuned: str | Path,
    measuring: Measuring | str | Path,
    *,
    keep: Sequence[str] | None = None,
    alpha: Sequence[float] | None = None,
    max_loss: float = 0.02,
) -> Sweep:
    """Skill and kept knowledge of a model between base and tuned, by strength, and the largest strength within a budget.

    Examples:
        >>> found = dial("checkpoint", "checkpoint", "two_tasks.jsonl", keep=["copy"], alpha=[1.0])
        >>> [setting.alpha for setting in found.settings]
        [0.0, 1.0]

    Args:
        base: checkpoint before it was tuned.
        tuned: checkpoint or adapter folder after it.
        measuring: examples that every strength is measured on, or a `Measuring` of them.
        keep: tasks whose success must not be lost.
        alpha: strengths to try; None: .25, .5, .75 and 1.
        max_loss: largest loss of success on the kept tasks that is accepted, 0..1.

    Raises:
        InputError: a model, an option or the examples cannot be used.
    """
    from mixwright.verbs.dialling import sweep_strengths

    return sweep_strengths(str(base), str(tuned), _as_measuring(measuring), keep or (), alpha or (), max_loss)[0]


def replicates(scores: str | Path, *, target: float = 0.8) -> Ranking:
    """Whether a ranking of candidates is one of noise, and how many runs of each a reliable one takes.

    Examples:
        >>> replicates("scores.csv").word
        'reliable'

    Args:
        scores: a run folder with a trial, or a table with the columns candidate and score, and perhaps group and run.
        target: reliability that is wanted, above 0 and below 1.

    Raises:
        InputError: no such table or trial, scores that are no numbers or too large, too few runs, or a wrong target.
    """
    return rank_source(str(scores), target)


def list_plugins(kind: str | None = None) -> list[Entry]:
    """Every plug-in, or those of one kind; imports none of them. Raises InputError for an unknown kind.

    Examples:
        >>> "numeric" in [entry.name for entry in list_plugins("graders")]
        True
    """
    return [entry for name in ([kind] if kind else KIND_BY_NAME) for entry in listing(name).values()]


def explain(name: str) -> list[Entry]:
    """Every plug-in of that name, in the order of the flow, with its docstring. Raises InputError where there is none.

    Examples:
        >>> [entry.kind for entry in explain("formats")][0]
        'checks'
    """
    return find_entries(name)


def _open_settings(
    config: RunConfig | str | Path, folder: RunFolder | str | Path | None, placing: Placing | None
) -> tuple[RunConfig, RunFolder, Path]:
    """Settings, run folder, and the folder that relative paths start from; nothing is made."""
    placing = placing or Placing()
    if isinstance(config, RunConfig):
        if folder is None:
            raise InputError("a folder beside settings that no file names", "none", "Name one: folder='runs/mine'.")
        return placing.applied_to(config), _as_folder(folder), Path()
    path = Path(config)
    settings, run_folder = load_settings(path, None if folder is None else _as_folder(folder).path)
    return placing.applied_to(settings), run_folder, path.parent


def _start_budget(budget: Budget | str | None) -> Budget | None:
    """The budget; one that is said in words begins now."""
    return Budget(parse_duration(budget), monotonic()) if isinstance(budget, str) else budget


def _as_measuring(measuring: Measuring | str | Path | None) -> Measuring:
    return measuring if isinstance(measuring, Measuring) else Measuring(None if measuring is None else str(measuring))


def _as_folder(folder: RunFolder | str | Path) -> RunFolder:
    return folder if isinstance(folder, RunFolder) else RunFolder(folder)


def _as_corpus(corpus: Corpus | CorpusConfig | str | Path) -> Corpus:
    """The corpus, read where it is not yet."""
    return corpus if isinstance(corpus, Corpus) else read_corpus(corpus)


def _read_graded_corpus(corpus: Corpus | CorpusConfig | str | Path) -> Corpus:
    """The same; of a path, which names no graders, with those that its answers look like."""
    if not isinstance(corpus, str | Path):
        return _as_corpus(corpus)
    return read_graded(CorpusConfig(str(corpus), eval_share=0.0), graders_are_named=False).corpus

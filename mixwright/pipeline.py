"""Pipeline of the whole flow, as a line: corpus -> audit -> measure -> plan -> trial (which steers) -> verdict.

Each stage reads records from the run folder and writes its own there, so any stage can be re-run, inspected or hand-edited
alone; `run` keeps what is there and newer than what it was made from. Nothing is written before the input was checked.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mixwright.catalog import create
from mixwright.errors import InputError, some
from mixwright.manifest import changed_settings, run_settings, settings_file, write_manifest, write_settings
from mixwright.plan.format_forecast import warnings_of, with_formats
from mixwright.plan.overrides import with_asked
from mixwright.preflight import check_rows, check_settings, check_warmup
from mixwright.records import Measurement, Objective, Observation, Plan, RunManifest, TrainingSetup, TrialResult, to_data
from mixwright.runs import (
    RunFolder,
    read_json,
    read_measurements,
    read_plan,
    write_json,
    write_measurements,
    write_plan,
)

if TYPE_CHECKING:
    from mixwright.config import RunConfig
    from mixwright.corpus import Corpus
    from mixwright.trial.arm_roles import Arms
    from mixwright.workers.local import Workers

Say = Callable[[str], None]
"""Takes one line for people."""
SAID = 200
"""Characters of one part of a line."""
REHEARSED = 100_000
"""Draws that a rehearsal makes at most."""
COMPLAINTS = 200
"""Lines about the data; what is beyond is counted."""


def quiet(_: str) -> None:
    """Say nothing."""


def run(config: RunConfig, folder: RunFolder, *, base: Path = Path(), say: Say = quiet) -> Path:
    """Corpus to verdict; returns the page.

    Args:
        config: the settings.
        folder: where everything is written; a stage whose output is there and up to date is not done again.
        base: folder that relative paths in the settings start from.
        say: called with what is being done.

    Raises:
        InputError: something in the settings or the data; before the folder is made where that can be known.
    """
    with workers(config) as pool, opened(config, folder, base=base, pool=pool, whole=True) as corpus:
        before, result = folder.measurements("before"), folder.result
        if stale(folder.audit, folder.corpus / "rows.parquet"):
            say("audit: looking at the data")
            for line in complaints(audit(corpus, folder)):
                say(line)
        if stale(before, folder.corpus / "rows.parquet"):
            say("measure: what the model can do now")
            measure(config, folder, pool, base=base, say=say)
        if stale(folder.plan, before):
            say("plan: weights, band and levers")
            made = plan(config, folder, corpus)
            for line in warnings_of(read_measurements(before), made.forecast):
                say(f"  formats: {line}")
        if stale(result, folder.plan, settings_file(folder)):
            check_plan(config, folder, corpus)
            say(f"trial: {', '.join(_arms(config).first)} on {config.trial.seeds} seeds; nulls only if a lever helps")
            trial(config, folder, pool, base=base)
    return verdict(folder)


def stale(output: Path, *sources: Path) -> bool:
    """Whether `output` is missing or older than a file it was made from (a plan edited by hand makes the trial stale)."""
    return not output.exists() or any(source.stat().st_mtime > output.stat().st_mtime for source in sources)


@contextlib.contextmanager
def opened(
    config: RunConfig,
    folder: RunFolder,
    *,
    base: Path = Path(),
    pool: Workers | None = None,
    whole: bool = False,
    after: Path | None = None,
) -> Iterator[Corpus]:
    """The run's corpus with the folder locked. Everything that can be refused is refused before the folder is made.

    A folder that was begun with other settings takes the new ones where nothing that was finished rests on them.

    Args:
        config: the settings.
        folder: the run folder.
        base: folder that relative paths in the settings start from.
        pool: workers that try the settings of training on the trainer, once; None leaves that to the stages.
        whole: refuse what no trial could come of, too.
        after: what an earlier stage has to have written.

    Raises:
        InputError: wrong settings or data, a folder of another run or in use, or an earlier stage that did not run.
    """
    if after is not None and not after.exists():
        remedy = "Run `mixwright plan` first." if after == folder.plan else "Run `mixwright measure` first."
        raise InputError("a file of an earlier stage", "nothing", remedy, file=after)
    corpus, held, changed = _known(config, folder, base, whole=whole)
    fits = held and not changed
    resolved = {} if fits or pool is None else start(config, corpus, pool)
    with folder.lock():
        if not held:
            corpus.save(folder.corpus)
        if not fits:
            seeds = {"run": config.seed, "trial seeds": config.trial.seeds, "bases": config.model.bases}
            write_manifest(config, folder, corpus, base=base, settings=run_settings(config, resolved), seeds=seeds)
        write_settings(config, folder)
        yield corpus


def known_corpus(config: RunConfig, folder: RunFolder, *, base: Path = Path(), whole: bool = False) -> Corpus:
    """The corpus that the folder holds, or that it would hold; nothing is written. Arguments and errors as of `opened`."""
    return _known(config, folder, base, whole=whole)[0]


def _known(config: RunConfig, folder: RunFolder, base: Path, *, whole: bool) -> tuple[Corpus, bool, frozenset[str]]:
    """The checked corpus, whether it is the one that the folder holds, and the sections of the settings that changed."""
    from mixwright.corpus import Corpus, read_corpus
    from mixwright.trial.stage import check_trial

    changed = changed_settings(config, folder, base)
    held = folder.manifest.exists() and "corpus" not in changed
    corpus = Corpus.load(folder.corpus) if held else read_corpus(config.corpus, base=base)
    check_settings(config, corpus)
    if not held or changed:  # else it was checked when the run began, and a source may be long
        check_warmup(config, corpus, base)
    if whole:
        check_trial(config, corpus)
        check_rows(config, corpus)
    return corpus, held, changed


def check_plan(config: RunConfig, folder: RunFolder, corpus: Corpus) -> Plan:
    """plan.yaml, perhaps edited by hand, which must fit the data and the settings. Raises InputError with its name."""
    from mixwright.trial.stage import check_tried

    plan = read_plan(folder.plan)
    try:
        check_tried(config, plan, corpus)
    except InputError as error:
        raise error.at(folder.plan) from None
    return plan


def start(config: RunConfig, corpus: Corpus, pool: Workers) -> dict[str, Any]:
    """The settings of training as the trainer resolves them. Raises InputError for what trainer or tokenizer refuses."""
    from mixwright.trainers.configs import StartJob, resolved_settings
    from mixwright.workers.local import Job

    chats = any(corpus.table["chat"].to_pylist())
    job = Job("settings", resolved_settings, StartJob(to_data(config), chats))
    (found,) = pool.run([job], progress=lambda done, jobs, left: None)
    return found


@contextlib.contextmanager
def workers(config: RunConfig) -> Iterator[Workers]:
    """The worker processes that every heavy stage shares."""
    from mixwright.workers.local import Workers

    with Workers(config.trial.workers) as pool:
        yield pool


def audit(corpus: Corpus, folder: RunFolder) -> list[Observation]:
    """What the checks see; writes audit.json."""
    from mixwright.audit.stage import run_audit

    observations = run_audit(corpus)
    write_json(folder.audit, observations)
    return observations


def complaints(observations: Sequence[Observation]) -> list[str]:
    """One line for each thing that makes the data unfit, with its remedy; each part at most `SAID` characters.

    After `COMPLAINTS` lines one that counts the others.
    """
    found = [(o.task or "*", o.message, o.remedy) for o in observations if o.severity == "error"]
    shown = ([part if len(part) <= SAID else part[: SAID - 3] + "..." for part in parts] for parts in found)
    lines = [f"  error in the data ({task}): {message} {remedy}" for task, message, remedy in shown]
    rest = [f"  {len(lines) - COMPLAINTS:,} more errors in the data: audit.json"] if len(lines) > COMPLAINTS else []
    return lines[:COMPLAINTS] + rest


def measure(
    config: RunConfig, folder: RunFolder, pool: Workers, *, base: Path = Path(), say: Say = quiet
) -> list[Measurement]:
    """Build and measure every starting model; writes measure/<base>.parquet and, all together, before.parquet."""
    from mixwright.learner.bases import bases_of, build_bases
    from mixwright.measure.bases import MeasureJob, base_name, measure_base, pooled
    from mixwright.workers.local import Job

    if read_json(folder.manifest, RunManifest).settings.get("use_cpu"):
        say("  on this CPU: float32 without gradient checkpointing; TRL's defaults are for a GPU, about 4 times slower here")
    build_bases(config, folder, pool, base)
    bases, data = bases_of(config, folder), to_data(config)
    jobs = [Job(f"measure {base_name(b)}", measure_base, MeasureJob(str(folder.path), b, base_name(b), data)) for b in bases]
    pool.run(jobs, title="measure")
    rows = pooled([read_measurements(folder.measurements(base_name(b))) for b in bases])
    write_measurements(folder.measurements("before"), rows)
    return rows


def make_plan(config: RunConfig, folder: RunFolder, corpus: Corpus, competence: Sequence[Measurement] | None = None) -> Plan:
    """The planner's plan from what is in the folder; writes nothing. Raises InputError when nothing was measured yet.

    Args:
        config: the settings.
        folder: with the measurements.
        corpus: the run's own, or one that `competence` was measured on.
        competence: measurements of another corpus than the run's own.
    """
    competence = read_measurements(folder.measurements("before")) if competence is None else competence
    train = config.train
    training = TrainingSetup(train.steps, cast("Objective", train.objective), train.prompts, kl_penalty=train.beta > 0)
    made = create("planners", config.plan.planner, dict(config.plan.options)).plan(corpus.cells(), competence, training)
    return with_formats(with_asked(made, config.plan.stage), competence)


def plan(config: RunConfig, folder: RunFolder, corpus: Corpus) -> Plan:
    """The planner's plan; writes plan.yaml, which may be edited by hand."""
    made = make_plan(config, folder, corpus)
    write_plan(folder.plan, made)
    return made


def trial(config: RunConfig, folder: RunFolder, pool: Workers, *, base: Path = Path()) -> TrialResult:
    """Train and compare all arms, paired by seed; writes trial/."""
    from mixwright.learner.bases import bases_of, build_bases
    from mixwright.measure.bases import pooled
    from mixwright.trial.stage import run_trial

    def replan(corpus: Corpus, measured: Sequence[Sequence[Measurement]]) -> Plan:
        return make_plan(config, folder, corpus, pooled(measured))

    build_bases(config, folder, pool, base)
    return run_trial(folder, config, bases_of(config, folder), pool=pool, replan=replan)


def _arms(config: RunConfig) -> Arms:
    from mixwright.trial.arm_roles import arms_of

    return arms_of(config.trial)


def steer(config: RunConfig, folder: RunFolder, pool: Workers, *, base: Path = Path(), say: Say = quiet) -> Path:
    """Train once under the plan as it stands; returns the branch folder, which a later trial takes over.

    A trial's result that speaks of another plan's branch is set aside.
    """
    from mixwright.corpus import Corpus
    from mixwright.learner.bases import bases_of, build_bases
    from mixwright.trial.arm_roles import the
    from mixwright.trial.branch import is_complete, train_branch
    from mixwright.trial.jobs import Trial
    from mixwright.workers.local import Job

    build_bases(config, folder, pool, base)
    one = replace(config, trial=replace(config.trial, seeds=1))
    trial = Trial(folder, one, read_plan(folder.plan), Corpus.load(folder.corpus), bases_of(config, folder))
    job = trial.arm_jobs([the("plan")])[0]
    of_another = folder.result.exists() and not is_complete(folder.branch(job.arm, job.seed), job.digest)
    log = folder.path / "trial" / "logs" / f"{job.arm}.0.log"
    (branch,) = pool.run([Job(f"{job.arm}, seed 0", train_branch, job, log=log)], title="steer")
    if of_another:
        aside = folder.result.with_name("result.earlier.json")
        folder.result.replace(aside)
        say(f"the plan was changed since the trial: its result is {aside} now; `mixwright trial` tries this plan")
    return Path(branch)


def rehearse(config: RunConfig, folder: RunFolder, *, base: Path = Path()) -> list[Sequence[Any]]:
    """What a steered run would draw before it has seen anything: (task, planned share, drawn, of draws). Trains nothing.

    Of a long run the first `REHEARSED` draws. Raises InputError as `steer` would.
    """
    from mixwright.steer.engine import Engine
    from mixwright.steer.pool import corpus_pool

    corpus = known_corpus(config, folder, base=base, whole=True)
    chosen = check_plan(config, folder, corpus)
    pool = corpus_pool(corpus.select(split="train"))
    count = min(config.train.prompts * chosen.stages[0].steps, REHEARSED)
    drawn = Counter(pool.tasks[pool.task_of[index]] for index in Engine(chosen, pool, seed=config.seed).draw(count))
    weights = chosen.stages[0].weights
    return [(task, f"{weights.get(task, 0):.3f}", drawn[task], count) for task in pool.tasks]


def outline(config: RunConfig, folder: RunFolder, *, base: Path = Path()) -> list[tuple[str, str]]:
    """(stage, what `run` would do), from the data itself; writes nothing. Raises InputError as `run` would."""
    from mixwright.catalog import listing
    from mixwright.learner.bases import bases_of

    corpus = known_corpus(config, folder, base=base, whole=True)
    with workers(config) as pool:
        start(config, corpus, pool)
    train, held_out = (corpus.select(split=name) for name in ("train", "eval"))
    sizes, steps, bases = config.measure, config.train, len(bases_of(config, folder))
    items = sum(min(cell.count, sizes.items) for cell in held_out.cells()) if len(held_out) else 0
    arms, rollouts = _arms(config), steps.steps * steps.prompts * steps.generations
    tasks = some([f"{name} ({task.grader})" for name, task in corpus.tasks.items()])
    asked = "".join(f"; {name}: {to_data(value)}" for name, value in config.plan.stage.items())
    return [
        ("corpus", f"{len(train)} training and {len(held_out)} held-out examples; tasks and graders: {tasks}"),
        ("audit", f"checks: {', '.join(listing('checks'))}"),
        (
            "measure",
            f"{bases} x {items} items, greedy and {sizes.samples} samples: {bases * items * (1 + sizes.samples)} rollouts",
        ),
        (
            "plan",
            f"planner {config.plan.planner}, {steps.steps} steps of {steps.prompts} groups of {steps.generations}{asked}",
        ),
        (
            "trial",
            f"references: {', '.join(arms.references)}; levers: {', '.join(arms.levers) or 'none'}; "
            f"ablations: {', '.join(arms.ablations) or 'none'}; each on "
            f"{config.trial.seeds} seeds, {rollouts} rollouts a branch (frozen: none), then measured again; only if a lever "
            f"beats every reference, its nulls: {', '.join(arms.nulls) or 'none'}",
        ),
        ("verdict", str(folder.page)),
    ]


def verdict(folder: RunFolder) -> Path:
    """Judge what the folder holds; writes claims.json and verdict.html. Needs no torch. Raises InputError without a run."""
    from mixwright.verdict.stage import render

    return render(folder)

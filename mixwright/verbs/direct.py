"""Checkpoints measured without a YAML: `measure MODEL`, `plan MODEL TRAIN`, and what `verdict` shares with them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright import catalog
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.graded import Graded, read_graded
from mixwright.corpus.rows import pc
from mixwright.errors import InputError, one_line
from mixwright.measure.bases import base_name
from mixwright.measure.first_answers import with_first_answers
from mixwright.measure.former import FormerAnswers, read_former_answers, rows_to_read, same_tokens
from mixwright.measure.notes import list_notes
from mixwright.measure.other_form import other_form_notes
from mixwright.measure.passes import Passes, write_answers
from mixwright.measure.room import MAX_SECONDS, find_room, keep_fitting_corpus
from mixwright.measure.stage import MeasureResult
from mixwright.records import Observation, Text
from mixwright.run.folder import RunFolder, check_own_folder, write_json, write_measurements
from mixwright.run.manifest import digests_of, write_manifest, write_settings
from mixwright.run.preflight import check_items, check_model, check_settings
from mixwright.verbs.options import IN_MEMORY, Measuring, parse_columns, parse_graders
from mixwright.verbs.output import say
from mixwright.verbs.ready import PreparedModels, fit_to_budget, measure_with_progress

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner
    from mixwright.measure.kept_answers import KeepingLearner

USUAL_ITEMS, MIN_USUAL_CELL_ITEMS = 200, 32
"""Items that are measured over all cells, and of each cell at least, where nobody asked for a number."""
FREE_ANSWERS_SHARE = 0.15
"""Share of a budget that finding the room for answers may take, all models together."""
NOTED_SETTINGS = ("decoding", "items", "samples", "temperature", "max_new_tokens", "continued_tokens")
"""Settings of measuring that are noted."""
ANSWER_TOKENS = 64
"""Tokens of an answer that nobody grades, where no length was asked for: its form shows at its beginning."""


def read_rows(
    measuring: Measuring,
    *,
    ungraded: bool = False,
    judged: bool = False,
    rehearse: str | None = None,
    tell: Callable[[str], None] = say,
) -> Graded:
    """Read training rows and held-out items, with a grader for each task; says what was taken and why.

    Args:
        measuring: the options.
        ungraded: rows of which nothing can be graded are taken, too.
        judged: the same, for a model to judge them.
        rehearse: rows of what the model can do already.
        tell: told what was taken.

    Raises:
        InputError: they cannot be read, or nothing of them can be graded.
    """
    grader_of_all, grader_by_task = parse_graders(measuring.grader)
    if (rows := measuring.train or measuring.held_out) is None:
        raise InputError("--eval FILE", "no rows", "Name the items to measure on.")
    held_out = measuring.held_out if measuring.train else None
    config = CorpusConfig(rows, held_out, rehearse, eval_share=0.0, columns=parse_columns(measuring.column))
    config = replace(config, task=measuring.task or "all", grader=grader_of_all or "exact", graders=grader_by_task)
    graded = read_graded(config, graders_are_named=grader_of_all is not None, ungraded=ungraded, judged=judged)
    for note in graded.notes:
        tell(note)
    if graded.probe is None and not judged:
        check_items(graded.corpus)
    return graded


def usual_items(corpus: Corpus) -> int:
    """Items per cell where nobody asked for a number."""
    return max(MIN_USUAL_CELL_ITEMS, math.ceil(USUAL_ITEMS / len(corpus.measured().cells())))


def take_rows(rows: Corpus | CorpusConfig) -> Graded:
    """Take rows in memory, or read those of settings, with the graders that they name.

    Raises:
        InputError: they cannot be read, or nothing of them can be graded.
    """
    corpus = rows if isinstance(rows, Corpus) else read_corpus(rows)
    check_items(corpus)
    graders = {name: task.grader for name, task in corpus.tasks.items()}
    return Graded(corpus, replace(IN_MEMORY if isinstance(rows, Corpus) else rows, graders=graders), ())


def prepare(
    models: Sequence[str | Learner],
    measuring: Measuring,
    rows: Graded,
    measure: MeasureConfig,
) -> PreparedModels:
    """Load the models and settle how completions are written; nothing is written but answers, in the store.

    Args:
        models: checkpoint folders, hub names or adapter folders, or loaded models; an adapter may rest on the first.
        measuring: the options.
        rows: what `read_rows` returned.
        measure: items and decoding; length, samples and temperature are settled here.

    Raises:
        InputError: a model, an option or the data cannot be used.
    """
    paths = [model for model in models if isinstance(model, str)]
    measuring.check_no_server(*paths)
    given = {name: getattr(measuring, name) for name in ("samples", "temperature", "engine")}
    settings = replace(measure, **{name: value for name, value in given.items() if value is not None})
    if measuring.samples is None and settings.decoding == "greedy" and (measuring.budget is not None or len(models) > 1):
        settings = replace(settings, samples=0)  # a comparison reads one greedy answer per item
    config = RunConfig(rows.config, measure=settings)
    if paths:
        config = replace(config, model=ModelConfig(paths[0], measuring.adapter))
    check_settings(config, rows.corpus)
    for path in paths[1:]:
        check_model(ModelConfig(path, measuring.adapter))
    learners = tuple(load_models(models, measuring))
    for model, learner in zip(models, learners, strict=True):
        if isinstance(model, str) and learner.name != model:
            say(f"model: {learner.name}")
    notes: Sequence[Observation] = ()
    if rows.probe is None:
        rows, settings = settle_room(learners, rows, settings, measuring)
        grader_of_all, grader_by_task = parse_graders(measuring.grader, rows.corpus.tasks)
        named = grader_by_task if grader_of_all is None else rows.corpus.tasks
        rows, notes = with_first_answers(rows, learners[0], settings, tasks_with_named_grader=named, say=say)
        config = replace(config, corpus=rows.config, measure=settings)
    if not paths:
        config = replace(config, model=ModelConfig(learners[0].name))
    form_text = learners[0].form.describe(example.prompt for example in rows.corpus)
    say(f"prompts: {form_text}")
    noted = _list_settings(rows, settings, measuring, form_text, learners[0].engine_name)
    nested = measuring.budget is not None
    return PreparedModels(config, rows.corpus, learners, noted, rows.probe is None, tuple(notes), nested)


def settle_room(
    learners: Sequence[Learner],
    rows: Graded,
    settings: MeasureConfig,
    measuring: Measuring,
) -> tuple[Graded, MeasureConfig]:
    """Return the rows whose prompts leave room, and the length of completions: as asked, or as the models need."""
    corpus, notes = keep_fitting_corpus(learners, rows.corpus, settings, measuring.max_new_tokens)
    for note in notes:
        say(f"warning: {note}")
    if measuring.max_new_tokens is not None:
        tokens, continued, reason = measuring.max_new_tokens, 0, "as asked"
    else:
        seconds = math.inf if measuring.budget is None else FREE_ANSWERS_SHARE * measuring.budget.seconds / len(learners)
        room = find_room(learners, corpus, settings, say, seconds=min(MAX_SECONDS, seconds))
        tokens, continued, reason = room.tokens, room.continued, room.why
    continued_note = f"; longer ones are continued up to {continued:,}" if continued else ""
    say(f"completions: up to {tokens:,} tokens ({reason}){continued_note}; change it with --max-new-tokens")
    settings = replace(settings, max_new_tokens=tokens, continued_tokens=continued)
    return replace(rows, corpus=corpus), settings


def load_models(models: Sequence[str | Learner], measuring: Measuring) -> list[KeepingLearner]:
    """Load checkpoints as the options ask for them; one that is an adapter may rest on the first. What they write is kept in
    the store. Raises InputError.
    """
    from mixwright.learner.engines import check_installed
    from mixwright.learner.load import load_learner, merge_adapter, plain_source
    from mixwright.learner.vllm_engine import start_engines
    from mixwright.measure.kept_answers import KeepingLearner

    if measuring.engine == "vllm":
        check_installed()
    learners: list[Learner] = []
    for path in models:
        if not isinstance(path, str):
            learners.append(path)
            continue
        base = models[0] if path != models[0] else None
        options = {"adapter": measuring.adapter, "base": base, "batch_size": measuring.batch_size}
        learners.append(merge_adapter(load_learner(path, form=measuring.form, **options)))
    if measuring.engine == "vllm":
        sources = [model if isinstance(model, str) and not measuring.adapter else None for model in models]
        start_engines(learners, [source and plain_source(source) for source in sources])
        say(f"engine: {learners[0].engine_name} generates the completions")
    return list(map(KeepingLearner.in_store, learners))


def _list_settings(
    rows: Graded, settings: MeasureConfig, measuring: Measuring, form_text: str, engine_name: str | None
) -> dict[str, Any]:
    """Return the settings of measuring that are noted; options that had no effect are left out."""
    graded = rows.probe is None
    names = [name for name in (NOTED_SETTINGS if graded else ("items",)) if name != "temperature" or settings.samples]
    noted = {
        "corpus": rows.config.train,
        "held-out rows": rows.config.eval,
        "grader": ", ".join(sorted({task.grader for task in rows.corpus.tasks.values()})) if graded else None,
        "probe": rows.probe,
        **{name: getattr(settings, name) for name in names},
        "prompts": form_text,
        "system message": measuring.system,
        "template": measuring.form.list_arguments() or None,
        "adapter": measuring.adapter,
        "batch size": measuring.batch_size,
        "engine": engine_name,
    }
    return {name: value for name, value in noted.items() if value is not None}


def read_former_likelihood(
    ready: PreparedModels, results: Mapping[str, MeasureResult], prompts: Mapping[str, Text]
) -> list[FormerAnswers]:
    """How probable BEFORE's answers are to AFTER; empty where none are written, kept with their tokens, or read alike."""
    rows = rows_to_read(results["before"].completions)
    if not rows or not same_tokens(*ready.learners):
        return []
    say(f"earlier answers: scoring {len(rows):,} answers of BEFORE under AFTER, without generating")
    return read_former_answers(ready.learners[1], prompts, rows)


def with_greedy_answers(
    ready: PreparedModels, results: Mapping[str, MeasureResult], measuring: Measuring, corpus: Corpus
) -> dict[str, MeasureResult]:
    """Both measurings with a greedy answer to every item of a corpus that no grader judges, for the gate to compare."""
    max_tokens = measuring.max_new_tokens or ANSWER_TOKENS
    picked = Passes(ready.learners[0], ready.config.measure, corpus).picked(lambda _: True)
    items = [item for item in picked if all(learner.has_room(item.prompt, max_tokens) for learner in ready.learners)]
    say(f"answers: both models answer {len(items):,} prompts, up to {max_tokens:,} tokens each (--max-new-tokens)")
    answered = {}
    for (side, result), learner in zip(results.items(), ready.learners, strict=True):
        read = result.answers.of_tasks(corpus.tasks).read_alone()
        written = write_answers(learner, items, max_tokens, ready.config.seed)
        answered[side] = replace(result, answers=result.answers.without_tasks(corpus.tasks).followed_by(written, read))
    return answered


def note_measured(ready: PreparedModels, results: Mapping[str, MeasureResult], measuring: Measuring) -> list[Observation]:
    """Return the notes on a measuring, and say them, a line each; also the earlier ones, on graders.

    One warns where prompts in the other form get clearly more right, and nobody chose a form.
    """
    if not ready.graded:
        return []
    length, is_chosen = ready.config.measure.longest_completion, measuring.chat_template is not None
    notes = list_notes(results, ready.corpus, length)
    notes += other_form_notes(ready.learners[0], ready.corpus, results["before"], length, chosen=is_chosen)
    for note in notes:
        say(f"{note.severity}: {note.message}. {note.remedy}".strip())
    return [*ready.notes, *notes]


def measure_checkpoint(
    model: str | Learner,
    measuring: Measuring,
    folder: Path | None,
    *,
    probes: Mapping[str, Mapping[str, Any]] | None = None,
    rows: Graded | None = None,
    with_notes: bool = True,
) -> tuple[PreparedModels, MeasureResult]:
    """Measure one checkpoint; with a folder, keep what a run keeps of it.

    Args:
        model: the checkpoint, or a loaded model.
        measuring: the options.
        folder: where it is kept; None keeps nothing.
        probes: those beside the default ones, with their arguments.
        rows: those to measure on, where they are read already.
        with_notes: whether tasks of which nothing was right, and other remarks, are told.

    Raises:
        InputError: as `prepare` does, or for a folder in which something of a run stands already.
    """
    run = None if folder is None else RunFolder(folder)
    if run is not None and (run.notes.is_file() or not run.manifest.is_file()):
        check_own_folder(run.path)  # one in which a measuring was stopped is taken
    rows = read_rows(measuring) if rows is None else rows
    probes = dict(probes or {})
    if rows.probe is None and (pc.max(pc.list_value_length(rows.corpus.table["skills"])).as_py() or 0) > 1:
        probes["composition"] = {}
    for name, arguments in probes.items():
        catalog.create("probes", name, dict(arguments)).check_rows(rows.corpus)
    settings = MeasureConfig(measuring.items or usual_items(rows.corpus), decoding=measuring.decoding, options=probes)
    settings = replace(settings, probes=tuple(dict.fromkeys((*settings.probes, *probes))))
    ready = fit_to_budget(prepare((model,), measuring, rows, settings), measuring.budget)
    result = measure_with_progress("measure", ready.learners[0], ready)
    notes = note_measured(ready, {"before": result}, measuring) if with_notes else []
    if run is not None:
        tables = dict.fromkeys((base_name(ready.config.model.path), "before"), result)
        with run.lock():
            write_measured(run, ready, ready.settings, tables, notes)
    return ready, result


def write_measured(
    folder: RunFolder,
    ready: PreparedModels,
    settings: Mapping[str, Any],
    tables: Mapping[str, MeasureResult],
    notes: Sequence[Observation],
) -> None:
    """Write what is kept of measuring into a locked folder: settings, manifest, tables, answers and notes."""
    config = ready.config
    inputs = digests_of(ready.corpus, config.corpus)
    sides = zip(("before", "after"), ready.learners, strict=False)  # `measure` has one model
    inputs |= {f"{side}: model": learner.digest for side, learner in sides}
    write_manifest(folder, inputs, config.model.path, settings=settings, seeds={"measuring": config.seed})
    write_settings(config, folder, ("corpus", "measure", "seed"))
    for name, result in tables.items():
        result.answers.write(folder.answers(name))
        write_measurements(folder.measurements(name), result.measurements)
    write_json(folder.notes, list(notes))  # last: who was stopped before goes on


def comparing_command(model: str, held_out: str | None, after: str = "YOUR_MODEL") -> str:
    """Return the command that compares the trained model with `model`."""
    options = [word for name in (held_out or "").splitlines() for word in ("--eval", name)]
    return one_line(shlex.join(["mixwright", "verdict", model, after, *options]))

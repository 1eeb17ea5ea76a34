"""Checkpoints measured without a YAML: `measure` and `plan MODEL --corpus FILE`, and what `verdict` shares with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.cli.fitted import fit_to_budget
from mixwright.cli.gold_answers import GOLD_PROBE, with_gold
from mixwright.cli.options import Measuring, columns_of, graders_of
from mixwright.cli.ready import Ready, measure_with_progress, with_price
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig
from mixwright.errors import InputError, one_line
from mixwright.records import Measurement, Observation, to_data
from mixwright.runs import RunFolder, write_measurements

if TYPE_CHECKING:
    from mixwright.corpus.graded import Graded
    from mixwright.learner.learner import Learner
    from mixwright.measure.former import FormerAnswers
    from mixwright.measure.free_answers import FreeAnswers
    from mixwright.measure.returned import Returned
    from mixwright.measure.stage import MeasureResult

Say = Callable[[str], None]
ITEMS, CELL_ITEMS = 200, 32
"""Items that `measure` and `plan` take over all cells, and per cell at least."""
MEASURED = ("decoding", "items", "samples", "temperature", "max_new_tokens", "continued_tokens")
"""Settings of measuring that are noted."""


def rows_of(
    asked: Measuring,
    say: Say,
    *,
    ungraded: bool = False,
    rehearse: str | None = None,
    graders: Mapping[str, str] | None = None,
    needed: Collection[str] = (),
) -> Graded:
    """The rows of --corpus and --eval with a grader for each task, and how they were read; says what was taken and why.

    Args:
        asked: the options.
        say: told what was taken.
        ungraded: rows of which nothing can be graded are taken, too.
        rehearse: rows of what the model can do already.
        graders: of tasks that an earlier measuring judged, where nobody names others.
        needed: tasks that must not be left out, as `read_graded` takes them.

    Raises:
        InputError: they cannot be read, or nothing of them can be graded.
    """
    from mixwright.corpus.graded import read_graded
    from mixwright.preflight import check_items

    everywhere, single = graders_of(asked.grader)
    single = {**(graders or {}), **single} if everywhere is None else single
    assert asked.corpus is not None
    config = CorpusConfig(
        asked.corpus,
        asked.held_out,
        rehearse,
        eval_share=0.0,
        columns=columns_of(asked.column),
        task=asked.task or "all",
        grader=everywhere or "exact",
        graders=single,
    )
    found = read_graded(config, named=everywhere is not None, ungraded=ungraded, needed=needed)
    for note in found.notes:
        say(note)
    if found.probe is None:
        check_items(found.corpus)
    return found


def prepare(
    paths: Sequence[str],
    asked: Measuring,
    rows: Graded,
    measure: MeasureConfig,
    say: Say,
    *,
    graders: Mapping[str, str] | None = None,
    room: tuple[int, int] | None = None,
    folder: Path | None = None,
) -> Ready:
    """Load the models and settle how completions are written; nothing is written but answers, under `folder`.

    Args:
        paths: checkpoint folders, hub names or adapter folders; an adapter may rest on the first.
        asked: the options.
        rows: what `rows_of` returned.
        measure: items and decoding; length, samples and temperature are settled here.
        say: told what was taken.
        graders: of tasks that an earlier measuring judged: the model's first completions are not read again.
        room: tokens of completions in an earlier measuring, and to how many those that reached it were continued.
        folder: of the measuring: what the models write is kept there until it is finished.

    Raises:
        InputError: a model, an option or the data cannot be used.
    """
    from mixwright.measure.kept_answers import keeping
    from mixwright.preflight import check_model, check_settings

    if asked.system is not None and asked.chat_template is False:
        raise InputError("--system with the chat template", "--no-chat-template", "Leave one of the two out.")
    corpus = rows.corpus
    wanted = {"samples": asked.samples, "temperature": asked.temperature}
    settled = replace(measure, **{name: value for name, value in wanted.items() if value is not None})
    _check_samples(settled)
    config = RunConfig(rows.config, ModelConfig(paths[0], asked.adapter), settled)
    check_settings(config, corpus)
    for path in paths[1:]:
        check_model(ModelConfig(path, asked.adapter))
    learners = keeping([load(path, asked, paths[0] if path != paths[0] else None) for path in paths], folder)
    for path, learner in zip(paths, learners, strict=True):
        if learner.name != path:
            say(f"model: {learner.name}")
    notes: Sequence[Observation] = ()
    free: tuple[FreeAnswers, ...] = ()
    if rows.probe is None:
        rows, settled, free = _with_room(learners, rows, settled, asked, room, say)
        rows, notes = _with_graders(learners[0], rows, settled, asked, say, graders or {})
        corpus, settled = rows.corpus, with_gold(settled, rows.corpus, say)
        config = replace(config, corpus=rows.config, measure=settled)
    form = learners[0].form.describe(example.prompt for example in corpus)
    say(f"prompts: {form}")
    noted, graded = _noted(config, rows, asked, form), rows.probe is None
    return Ready(config, corpus, learners, noted, graded, tuple(notes), free, asked.budget is not None)


def _with_graders(
    before: Learner, rows: Graded, settled: MeasureConfig, asked: Measuring, say: Say, graders: Mapping[str, str]
) -> tuple[Graded, list[Observation]]:
    """The rows with graders that were chosen by what the first model writes, where none was named; says which and why."""
    from mixwright.measure.first_answers import with_first_answers

    everywhere, single = graders_of(asked.grader)
    named = rows.corpus.tasks if everywhere is not None else {**graders, **single}
    if set(rows.corpus.tasks) <= set(graders):
        return rows, []
    return with_first_answers(rows, before, settled, tasks_with_named_grader=named, say=say)


def _with_room(
    learners: Sequence[Learner],
    rows: Graded,
    settled: MeasureConfig,
    asked: Measuring,
    known: tuple[int, int] | None,
    say: Say,
) -> tuple[Graded, MeasureConfig, tuple[FreeAnswers, ...]]:
    """The rows whose prompts leave room, how long completions may be (as asked, as known, or as the models need), and what
    the latter rests on.
    """
    from mixwright.measure.free_answers import find_room
    from mixwright.measure.room import keep_fitting_corpus

    corpus, notes = keep_fitting_corpus(learners, rows.corpus, settled, asked.max_new_tokens)
    for note in notes:
        say(one_line(f"warning: {note}"))
    rows = replace(rows, corpus=corpus)
    found: list[FreeAnswers] = []
    given = known if asked.max_new_tokens is None else (asked.max_new_tokens, 0)
    if given is None:
        room, continued, found = find_room(learners, corpus, settled, say)
        tokens, why = room.tokens, room.why
    else:
        (tokens, continued), why = given, "as in the measuring that is taken over"
        why = "as asked" if asked.max_new_tokens is not None else why
    further = f", and those that reach it are continued up to {continued:,}" if continued else ""
    say(f"completions: up to {tokens:,} tokens ({why}){further}; another length: --max-new-tokens")
    return rows, replace(settled, max_new_tokens=tokens, continued_tokens=continued), tuple(found)


def load(path: str, asked: Measuring, base: str | None = None) -> Learner:
    """A checkpoint as the options ask for it; `base` is the model under an adapter. Raises InputError."""
    from mixwright.learner.load import load_learner, merge_adapter
    from mixwright.learner.prompt_form import PromptForm

    form = PromptForm(asked.chat_template, asked.system)
    options = {"adapter": asked.adapter, "base": base, "batch_size": asked.batch_size}
    return merge_adapter(load_learner(path, form=form, **options))


def _check_samples(measure: MeasureConfig) -> None:
    if not 0.01 <= measure.temperature <= 100:
        got = f"{measure.temperature:g}"
        raise InputError("--temperature from 0.01 to 100", got, "For the likeliest answer: --greedy.")
    if not measure.samples and measure.decoding == "sampled":
        remedy = "Leave --sampled out, or ask for at least one sample."
        raise InputError("samples, which --sampled is judged by", "--samples 0", remedy)


def _noted(config: RunConfig, rows: Graded, asked: Measuring, form: str) -> dict[str, Any]:
    """What has to be known of how it was measured, and nothing that was not done."""
    graded = rows.probe is None
    graders = ", ".join(sorted({task.grader for task in rows.corpus.tasks.values()})) if graded else None
    data = {"corpus": config.corpus.train, "held-out rows": config.corpus.eval, "grader": graders, "probe": rows.probe}
    how = {"prompts": form, "system message": asked.system, "adapter": asked.adapter, "batch size": asked.batch_size}
    names = [name for name in (MEASURED if graded else ("items",)) if name != "temperature" or config.measure.samples]
    measured = {name: to_data(getattr(config.measure, name)) for name in names}
    return {name: value for name, value in {**data, **measured, **how}.items() if value is not None}


def ask_lost_answers(ready: Ready, found: Mapping[str, MeasureResult], say: Say) -> Returned | None:
    """Answers that AFTER lost, asked again with their first word given; None where it is not asked or too few were lost."""
    from mixwright.measure.passes import Passes
    from mixwright.measure.returned import MIN_LOST_ANSWERS, MOST_ASKED, lost_answers, returned

    if not ready.graded or ready.config.measure.decoding != "greedy":
        return None
    before, after = found["before"].completions, found["after"].completions
    lost = len(lost_answers(before, after))
    if lost < MIN_LOST_ANSWERS:
        return None
    say(f"lost answers: {min(lost, MOST_ASKED)} of {lost} are asked again with their first word given, two completions each")
    return returned(Passes(ready.learners[1], None, ready.config.measure, ready.corpus), before, after)


def read_former_likelihood(ready: Ready, found: Mapping[str, MeasureResult], say: Say) -> list[FormerAnswers]:
    """How probable BEFORE's answers are to AFTER; empty where none are written, kept with their tokens, or read alike."""
    from mixwright.measure.former import read_former_answers, rows_to_read, same_tokens
    from mixwright.measure.passes import Passes
    from mixwright.measure.written import to_answer

    rows = rows_to_read(found["before"].completions)
    if not rows or not same_tokens(*ready.learners):
        return []
    say(f"former answers: {len(rows):,} answers of BEFORE are read by AFTER, in one pass without writing any")
    chosen = None if ready.graded else to_answer(ready.learners, ready.corpus, ready.config.measure, 0)
    return read_former_answers(Passes(ready.learners[1], None, ready.config.measure, ready.corpus, chosen=chosen), rows)


def with_greedy_answers(
    ready: Ready, found: Mapping[str, MeasureResult], asked: Measuring, say: Say
) -> dict[str, MeasureResult]:
    """Both measurings with a greedy answer to every item, where none are graded and the gate looks at their form."""
    from mixwright.measure.written import ANSWER_TOKENS, same_answers, to_answer, write_answers

    room = asked.max_new_tokens or ANSWER_TOKENS
    items = to_answer(ready.learners, ready.corpus, ready.config.measure, room)
    say(
        f"answers: {len(items):,} prompts are answered by both, up to {room:,} tokens each; another length: --max-new-tokens"
    )
    made = {}
    for (when, result), learner in zip(found.items(), ready.learners, strict=True):
        known = result.completions if same_answers(result.completions, items, room) else ()
        rows = known or write_answers(learner, items, room, ready.config.seed)
        short = frozenset(row["example"] for row in rows if row["cut"])
        made[when] = replace(result, completions=rows, rollouts=len(rows), cut_examples=short)
        made[when] = replace(made[when], cut=len(short) / max(len(rows), 1))
    return made


def other_forms(learner: Learner, ready: Ready, found: MeasureResult, asked: Measuring) -> list[Observation]:
    """A warning where prompts in the other form get clearly more right, and nobody chose one."""
    from mixwright.measure.other_form import other_form_notes

    chosen, length = asked.chat_template is not None, ready.config.measure.longest_completion
    return other_form_notes(learner, ready.corpus, found, length, chosen=chosen)


def tell(notes: Sequence[Observation], say: Say) -> None:
    """Say what measuring noted, one line each."""
    for note in notes:
        say(one_line(f"{note.severity}: {note.message}. {note.remedy}".strip()))


def measure(model: str, asked: Measuring, folder: Path | None, *, say: Say) -> tuple[Ready, MeasureResult]:
    """Measure one checkpoint; with a folder, keep what a run keeps of it. Raises InputError as `prepare` does."""
    return measure_rows(model, asked, folder, (GOLD_PROBE,), say)


def measure_rows(
    model: str,
    asked: Measuring,
    folder: Path | None,
    evidence: Sequence[str],
    say: Say,
    rows: Graded | None = None,
    samples: int | None = None,
) -> tuple[Ready, MeasureResult]:
    """Measure one checkpoint; with a folder, keep what a run keeps of it.

    Args:
        model: the checkpoint.
        asked: the options.
        folder: where it is kept; None keeps nothing.
        evidence: probes that are wanted beside the default ones.
        say: told what was taken.
        rows: those of --corpus, where they are read already.
        samples: of each item, where nobody asked for a number.

    Raises:
        InputError: as `prepare` does.
    """
    from mixwright.measure.notes import notes_on

    _check_new(folder)
    rows = rows_of(asked, say) if rows is None else rows
    held_out = rows.corpus.select(split="eval")
    cells = len((held_out if len(held_out) else rows.corpus).cells())
    plain = MeasureConfig(items=asked.items or max(CELL_ITEMS, math.ceil(ITEMS / cells)))
    plain = plain if samples is None else replace(plain, samples=samples)
    probes = (*plain.probes, *(name for name in evidence if name not in plain.probes))
    decoding = "sampled" if asked.greedy is False else "greedy"
    ready = prepare((model,), asked, rows, replace(plain, probes=probes, decoding=decoding), say, folder=folder)
    ready = with_price(ready, [0], say, known=asked.max_new_tokens is not None, limited=asked.budget is not None)
    ready = ready if asked.budget is None else fit_to_budget(ready, asked.budget, [0], say)
    found = measure_with_progress("measure", ready.learners[0], ready)
    length = ready.config.measure.longest_completion
    notes = notes_on({"before": found}, ready.corpus, length) + other_forms(ready.learners[0], ready, found, asked)
    tell(notes, say)
    notes = [*ready.notes, *notes]
    if folder is not None:
        _keep(RunFolder(folder), ready, found, notes)
    return ready, found


def _check_new(folder: Path | None) -> None:
    """Raises InputError for a folder in which something of a run stands already: nothing of it may be lost."""
    from mixwright.manifest import settings_file
    from mixwright.measure.kept_folder import was_stopped

    if folder is None or not folder.exists():
        return
    run = RunFolder(folder)
    made = (settings_file(run).name, run.manifest.name, run.notes.parent.name)
    if not folder.is_dir() or (any(folder.iterdir()) and not was_stopped(folder, made)):
        raise InputError("a new or empty folder", "one that holds something", "Choose another --folder.", file=folder)


def _keep(folder: RunFolder, ready: Ready, found: MeasureResult, notes: Sequence[Observation]) -> None:
    """Write what a run keeps of measuring one base: corpus, tables, completions, settings and manifest."""
    from mixwright.manifest import write_manifest, write_settings
    from mixwright.measure.bases import base_name, completions_path, write_completions
    from mixwright.measure.kept_folder import drop_kept
    from mixwright.measure.notes import write_notes

    name = base_name(ready.config.model.path)
    with folder.lock():
        write_settings(ready.config, folder, ("corpus", "measure", "seed"))
        write_manifest(ready.config, folder, ready.corpus, settings=ready.noted, seeds={"measuring": ready.config.seed})
        for table in {name, "before"}:
            write_measurements(folder.measurements(table), found.measurements)
        write_completions(completions_path(folder, name), {"before": found})
        write_notes(folder, notes)
        drop_kept(folder.path)


def measurements(found: MeasureResult) -> list[Measurement]:
    """Those of cells and tasks, which are shown; not those of single items."""
    return [row for row in found.measurements if row.example is None]

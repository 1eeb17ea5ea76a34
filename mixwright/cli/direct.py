"""Checkpoints measured without a YAML: `measure` and `plan MODEL --corpus FILE`, and what `verdict` shares with them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright.cli.options import Measuring, columns_of, graders_of
from mixwright.cli.output import say
from mixwright.cli.ready import Ready, fit_to_budget, measure_with_progress, with_price
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig
from mixwright.corpus import Corpus
from mixwright.corpus.graded import Graded, read_graded
from mixwright.errors import InputError, join_some, one_line
from mixwright.estimates.readings import READINGS
from mixwright.measure.bases import base_name, completions_path, write_completions
from mixwright.measure.first_answers import with_first_answers
from mixwright.measure.fitting import usual_items
from mixwright.measure.former import FormerAnswers, read_former_answers, rows_to_read, same_tokens
from mixwright.measure.free_answers import MAX_SECONDS, FreeAnswers, find_room
from mixwright.measure.kept_folder import drop_kept, was_stopped
from mixwright.measure.notes import notes_on, write_notes
from mixwright.measure.option_answers import options_of
from mixwright.measure.other_form import other_form_notes
from mixwright.measure.returned import MIN_LOST_ANSWERS, MOST_ASKED, Returned, lost_answers, returned
from mixwright.measure.room import keep_fitting_corpus
from mixwright.measure.stage import MeasureResult
from mixwright.measure.targets import exact_answer_tasks
from mixwright.measure.written import ANSWER_TOKENS, items_to_answer, same_answers, write_answers
from mixwright.records import Observation, to_data
from mixwright.run.folder import RunFolder, write_measurements
from mixwright.run.manifest import settings_file, write_manifest, write_settings
from mixwright.run.preflight import check_items, check_model, check_settings

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

FREE_ANSWERS_SHARE = 0.15
"""Share of a budget that finding the room for answers may take, all models together."""
MEASURED = ("decoding", "items", "samples", "temperature", "max_new_tokens", "continued_tokens")
"""Settings of measuring that are noted."""
GOLD_PROBE = READINGS["gold"].probe


def rows_of(
    asked: Measuring,
    *,
    ungraded: bool = False,
    rehearse: str | None = None,
    graders: Mapping[str, str] | None = None,
    needed: Collection[str] = (),
    tell: Callable[[str], None] = say,
) -> Graded:
    """The rows of --corpus and --eval with a grader for each task, and how they were read; says what was taken and why.

    Args:
        asked: the options.
        ungraded: rows of which nothing can be graded are taken, too.
        rehearse: rows of what the model can do already.
        graders: of tasks that an earlier measuring judged, where nobody names others.
        needed: tasks that must not be left out, as `read_graded` takes them.
        tell: told what was taken.

    Raises:
        InputError: they cannot be read, or nothing of them can be graded.
    """
    everywhere, single = graders_of(asked.grader)
    single = {**(graders or {}), **single} if everywhere is None else single
    assert asked.corpus is not None
    config = CorpusConfig(asked.corpus, asked.held_out, rehearse, eval_share=0.0, columns=columns_of(asked.column))
    config = replace(config, task=asked.task or "all", grader=everywhere or "exact", graders=single)
    found = read_graded(config, named=everywhere is not None, ungraded=ungraded, needed=needed)
    for note in found.notes:
        tell(note)
    if found.probe is None:
        check_items(found.corpus)
    return found


def prepare(
    paths: Sequence[str],
    asked: Measuring,
    rows: Graded,
    measure: MeasureConfig,
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
        graders: of tasks that an earlier measuring judged: the model's first completions are not read again.
        room: tokens of completions in an earlier measuring, and to how many those that reached it were continued.
        folder: of the measuring: what the models write is kept there until it is finished.

    Raises:
        InputError: a model, an option or the data cannot be used.
    """
    if asked.system is not None and asked.chat_template is False:
        raise InputError("--system with the chat template", "--no-chat-template", "Leave one of the two out.")
    wanted = {"samples": asked.samples, "temperature": asked.temperature, "options_by": asked.options_by}
    settled = replace(measure, **{name: value for name, value in wanted.items() if value is not None})
    if not 0.01 <= settled.temperature <= 100:
        got = f"{settled.temperature:g}"
        raise InputError("--temperature from 0.01 to 100", got, "For the likeliest answer: --greedy.")
    if not settled.samples and settled.decoding == "sampled":
        remedy = "Leave --sampled out, or ask for at least one sample."
        raise InputError("samples, which --sampled is judged by", "--samples 0", remedy)
    config = RunConfig(rows.config, ModelConfig(paths[0], asked.adapter), settled)
    check_settings(config, rows.corpus)
    for path in paths[1:]:
        check_model(ModelConfig(path, asked.adapter))
    from mixwright.measure.kept_answers import keeping  # needs torch, which was looked for now

    learners = keeping([load(path, asked, paths[0] if path != paths[0] else None) for path in paths], folder)
    for path, learner in zip(paths, learners, strict=True):
        if learner.name != path:
            say(f"model: {learner.name}")
    notes: Sequence[Observation] = ()
    free: tuple[FreeAnswers, ...] = ()
    if rows.probe is None:
        rows, settled, free = _with_room(learners, rows, settled, asked, room)
        everywhere, single = graders_of(asked.grader)
        known = graders or {}
        if not set(rows.corpus.tasks) <= set(known):
            named = rows.corpus.tasks if everywhere is not None else {**known, **single}
            rows, notes = with_first_answers(rows, learners[0], settled, tasks_with_named_grader=named, say=say)
        settled = with_gold(settled, rows.corpus)
        _tell_options(rows.corpus, settled)
        config = replace(config, corpus=rows.config, measure=settled)
    form = learners[0].form.describe(example.prompt for example in rows.corpus)
    say(f"prompts: {form}")
    noted = _noted(config, rows, asked, form)
    return Ready(config, rows.corpus, learners, noted, rows.probe is None, tuple(notes), free, asked.budget is not None)


def _with_room(
    learners: Sequence[Learner], rows: Graded, settled: MeasureConfig, asked: Measuring, known: tuple[int, int] | None
) -> tuple[Graded, MeasureConfig, tuple[FreeAnswers, ...]]:
    """The rows whose prompts leave room, how long completions may be (as asked, as known, or as the models need), and what
    the latter rests on.
    """
    corpus, notes = keep_fitting_corpus(learners, rows.corpus, settled, asked.max_new_tokens)
    for note in notes:
        say(one_line(f"warning: {note}"))
    found: list[FreeAnswers] = []
    if asked.max_new_tokens is not None:
        tokens, continued, why = asked.max_new_tokens, 0, "as asked"
    elif known is not None:
        (tokens, continued), why = known, "as in the measuring that is taken over"
    else:
        seconds = math.inf if asked.budget is None else FREE_ANSWERS_SHARE * asked.budget.seconds / len(learners)
        room, continued, found = find_room(learners, corpus, settled, say, seconds=min(MAX_SECONDS, seconds))
        tokens, why = room.tokens, room.why
    further = f", and those that reach it are continued up to {continued:,}" if continued else ""
    say(f"completions: up to {tokens:,} tokens ({why}){further}; another length: --max-new-tokens")
    settled = replace(settled, max_new_tokens=tokens, continued_tokens=continued)
    return replace(rows, corpus=corpus), settled, tuple(found)


def _tell_options(corpus: Corpus, measure: MeasureConfig) -> None:
    """Say which tasks' answers are the likeliest option. Raises InputError where that was asked for and none has options."""
    if measure.options_by == "writing":
        return
    items = list(corpus.measured())
    tasks = sorted({items[place].task for place in options_of(items, corpus, measure)})
    if not tasks:
        remedy = "Add a column `options`, choose the grader (--grader TASK=choice), or leave --options-by out."
        raise InputError("a task with options and the grader choice, for --options-by likelihood", "none", remedy)
    written = sorted(set(corpus.tasks) - set(tasks))
    others = f"; {join_some(written)} {'are' if len(written) > 1 else 'is'} answered by writing" if written else ""
    say(one_line(f"options: of {join_some(tasks)} the option with the highest log-probability is the answer{others}"))


def with_gold(measure: MeasureConfig, corpus: Corpus, tell: Callable[[str], None] = say) -> MeasureConfig:
    """The settings without the probe of gold answers where no task's grader accepts one string alone; says of which tasks
    they are read, and why not of the others.
    """
    if GOLD_PROBE not in measure.probes:
        return measure
    read, others = exact_answer_tasks(corpus), defaultdict[str, list[str]](list)
    for name, task in corpus.tasks.items():
        if name not in read and task.kind == "verifiable":
            others[task.grader.partition("?")[0]].append(name)
    why = "; ".join(f"{grader} accepts more than one string: not of {join_some(tasks)}" for grader, tasks in others.items())
    if read:
        told = f"probability of the answers of {join_some(sorted(read))} is read in one forward pass, no answer is written"
        tell(one_line(f"gold answers: {told}{f' ({why})' if why else ''}"))
        return measure
    tell(one_line(f"gold answers: not read ({why})"))
    return replace(measure, probes=tuple(name for name in measure.probes if name != GOLD_PROBE))


def load(path: str, asked: Measuring, base: str | None = None) -> Learner:
    """A checkpoint as the options ask for it; `base` is the model under an adapter. Raises InputError."""
    from mixwright.learner.load import load_learner, merge_adapter
    from mixwright.learner.prompt_form import PromptForm

    form = PromptForm(asked.chat_template, asked.system)
    options = {"adapter": asked.adapter, "base": base, "batch_size": asked.batch_size}
    return merge_adapter(load_learner(path, form=form, **options))


def _noted(config: RunConfig, rows: Graded, asked: Measuring, form: str) -> dict[str, Any]:
    """What has to be known of how it was measured, and nothing that was not done."""
    graded = rows.probe is None
    graders = ", ".join(sorted({task.grader for task in rows.corpus.tasks.values()})) if graded else None
    data = {"corpus": config.corpus.train, "held-out rows": config.corpus.eval, "grader": graders, "probe": rows.probe}
    how = {"prompts": form, "system message": asked.system, "adapter": asked.adapter, "batch size": asked.batch_size}
    names = [name for name in (MEASURED if graded else ("items",)) if name != "temperature" or config.measure.samples]
    measured = {name: to_data(getattr(config.measure, name)) for name in names}
    if graded and config.measure.options_by != "writing":
        measured["options_by"] = config.measure.options_by
    return {name: value for name, value in {**data, **measured, **how}.items() if value is not None}


def ask_lost_answers(ready: Ready, found: Mapping[str, MeasureResult]) -> Returned | None:
    """Answers that AFTER lost, asked again with their first word given; None where it is not asked or too few were lost."""
    measure = ready.config.measure
    if not ready.graded or measure.decoding != "greedy" or measure.options_by != "writing":
        return None
    before, after = found["before"].completions, found["after"].completions
    lost = len(lost_answers(before, after))
    if lost < MIN_LOST_ANSWERS:
        return None
    say(f"lost answers: {min(lost, MOST_ASKED)} of {lost} are asked again with their first word given, two completions each")
    return returned(ready.passes(1), before, after)


def read_former_likelihood(ready: Ready, found: Mapping[str, MeasureResult]) -> list[FormerAnswers]:
    """How probable BEFORE's answers are to AFTER; empty where none are written, kept with their tokens, or read alike."""
    rows = rows_to_read(found["before"].completions)
    if not rows or not same_tokens(*ready.learners):
        return []
    say(f"former answers: {len(rows):,} answers of BEFORE are read by AFTER, in one pass without writing any")
    chosen = None if ready.graded else items_to_answer(ready.learners, ready.corpus, ready.config.measure, 0)
    return read_former_answers(ready.passes(1, chosen), rows)


def with_greedy_answers(ready: Ready, found: Mapping[str, MeasureResult], asked: Measuring) -> dict[str, MeasureResult]:
    """Both measurings with a greedy answer to every item, where none are graded and the gate looks at their form."""
    room = asked.max_new_tokens or ANSWER_TOKENS
    items = items_to_answer(ready.learners, ready.corpus, ready.config.measure, room)
    say(
        f"answers: {len(items):,} prompts are answered by both, up to {room:,} tokens each; another length: --max-new-tokens"
    )
    made = {}
    for (when, result), learner in zip(found.items(), ready.learners, strict=True):
        known = result.completions if same_answers(result.completions, items, room) else ()
        rows = known or write_answers(learner, items, room, ready.config.seed)
        short = frozenset(row["example"] for row in rows if row["cut"])
        cut = len(short) / max(len(rows), 1)
        made[when] = replace(result, completions=rows, rollouts=len(rows), cut=cut, cut_examples=short)
    return made


def note_measured(
    ready: Ready, found: Mapping[str, MeasureResult], asked: Measuring, *, ask_other_form: bool = True
) -> list[Observation]:
    """What is to be noted of a measuring, and said a line each; beside it what was noted before, of graders.

    With `ask_other_form` a warning, too, where prompts in the other form get clearly more right, and nobody chose one.
    """
    if not ready.graded:
        return []
    length, notes = ready.config.measure.longest_completion, list[Observation]()
    if ask_other_form and ready.config.measure.options_by == "writing":
        chosen = asked.chat_template is not None
        notes = other_form_notes(ready.learners[0], ready.corpus, found["before"], length, chosen=chosen)
    notes = [*notes_on(found, ready.corpus, length), *notes]
    for note in notes:
        say(one_line(f"{note.severity}: {note.message}. {note.remedy}".strip()))
    return [*ready.notes, *notes]


def measure_checkpoint(
    model: str,
    asked: Measuring,
    folder: Path | None,
    *,
    evidence: Sequence[str] = (GOLD_PROBE,),
    rows: Graded | None = None,
    samples: int | None = None,
) -> tuple[Ready, MeasureResult]:
    """Measure one checkpoint; with a folder, keep what a run keeps of it.

    Args:
        model: the checkpoint.
        asked: the options.
        folder: where it is kept; None keeps nothing.
        evidence: probes that are wanted beside the default ones.
        rows: those of --corpus, where they are read already.
        samples: of each item, where nobody asked for a number.

    Raises:
        InputError: as `prepare` does, or for a folder in which something of a run stands already.
    """
    if folder is not None and folder.exists():
        run = RunFolder(folder)
        made = (settings_file(run).name, run.manifest.name, run.notes.parent.name)
        if not folder.is_dir() or (any(folder.iterdir()) and not was_stopped(folder, made)):
            raise InputError("a new or empty folder", "one that holds something", "Choose another --folder.", file=folder)
    rows = rows_of(asked) if rows is None else rows
    plain = MeasureConfig(items=asked.items or usual_items(rows.corpus))
    plain = plain if samples is None else replace(plain, samples=samples)
    probes = (*plain.probes, *(name for name in evidence if name not in plain.probes))
    decoding = "sampled" if asked.greedy is False else "greedy"
    ready = prepare((model,), asked, rows, replace(plain, probes=probes, decoding=decoding), folder=folder)
    ready = with_price(ready, [0], known=asked.max_new_tokens is not None, limited=asked.budget is not None)
    ready = ready if asked.budget is None else fit_to_budget(ready, asked.budget, [0])
    found = measure_with_progress("measure", ready.learners[0], ready)
    notes = note_measured(ready, {"before": found}, asked)
    if folder is not None:
        _keep(RunFolder(folder), ready, found, notes)
    return ready, found


def _keep(folder: RunFolder, ready: Ready, found: MeasureResult, notes: Sequence[Observation]) -> None:
    """Write what a run keeps of measuring one base: corpus, tables, completions, settings and manifest."""
    name = base_name(ready.config.model.path)
    with folder.lock():
        write_settings(ready.config, folder, ("corpus", "measure", "seed"))
        write_manifest(ready.config, folder, ready.corpus, settings=ready.noted, seeds={"measuring": ready.config.seed})
        for table in {name, "before"}:
            write_measurements(folder.measurements(table), found.measurements)
        write_completions(completions_path(folder, name), {"before": found})
        write_notes(folder, notes)
        drop_kept(folder.path)

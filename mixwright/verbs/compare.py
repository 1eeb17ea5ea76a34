"""Comparison of two checkpoints, whoever trained them, on the same items: `mixwright verdict BEFORE AFTER`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixwright.answers.score import scores_of_items
from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.corpus.cells import rows_by
from mixwright.corpus.graded import Graded
from mixwright.errors import InputError, join_some
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.items import TaskLevel
from mixwright.estimates.looks import MORE_ITEMS, Look, count_looks
from mixwright.estimates.protected import find_cells_shown_unreadable
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, outcome_of
from mixwright.measure.former import former_file, same_tokens
from mixwright.measure.notes import GRADER_NOTES, NOISE_NOTE, compare_tokenizers, count_changes, note_noise
from mixwright.measure.recalled import read_recalled
from mixwright.measure.stage import MeasureResult
from mixwright.records import Cell, FormerAnswers, Observation, to_data
from mixwright.run.folder import RunFolder, write_json
from mixwright.run.progress import format_duration
from mixwright.suite.draw import RING_ITEMS
from mixwright.verbs import direct
from mixwright.verbs.budget import Budget
from mixwright.verbs.comparison_folder import clear
from mixwright.verbs.gating import Gating
from mixwright.verbs.options import Measuring
from mixwright.verbs.output import say
from mixwright.verbs.ready import PreparedModels, fit_to_budget, measure_both, measure_with_progress
from mixwright.verdict.rules.answer_forms import MIN_ITEMS as MIN_FORM_ITEMS
from mixwright.verdict.rules.answer_forms import write_known_forms
from mixwright.verdict.rules.cells import find_unjudged_tasks
from mixwright.verdict.rules.evidence import LARGEST_CELL_ROWS_SETTING, LEFT_OUT_SETTING, PACE_SETTING
from mixwright.verdict.rules.gate import check_sides
from mixwright.verdict.rules.gate_question import LOOK_SETTING, GateQuestion, write_question

BATCH_SIZE = 8
"""Completions generated together the second time, where the first time took as many as fit."""
FIRST_ITEMS = max(MIN_ITEMS, MIN_FORM_ITEMS)
"""Items of a task at the first look."""


def compare(before: str, after: str, measuring: Measuring, folder: RunFolder, gating: Gating) -> Look | None:
    """Measure both checkpoints on the held-out split (all rows when there is none) and write both tables.

    Where nothing can be graded, pairs are compared by preference accuracy, and other rows by the loss on their targets.

    Args:
        before: checkpoint folder, adapter folder or hub name.
        after: the same, trained further.
        measuring: what they are measured on, and how; without `items` what the gate needs.
        folder: where the tables go.
        gating: what the gate will be asked; without graded answers both also answer the prompts.

    Returns:
        The look that decided, or the last one; None where all items were measured at once.

    Raises:
        InputError: a checkpoint, the corpus or a protected name cannot be used; nothing is written then.
    """
    rows = direct.read_rows(measuring, ungraded=True)
    if gating.protect and rows.probe not in (None, READINGS["loss"].probe):
        remedy = "Leave --protect out: preference pairs are compared without it."
        raise InputError("rows with answers or targets, to judge a loss with --protect", "preference pairs", remedy)
    if gating.repeat and (rows.probe is not None or measuring.decoding == "sampled" or measuring.engine == "vllm"):
        remedy = "Leave --repeat out. Of an engine or a server compare two logs: measure it twice, in two folders."
        raise InputError("greedy, graded answers of the engine transformers, with --repeat", "others", remedy)
    all_rows, cells = rows.all_rows or rows.corpus, rows.corpus.measured().cells()
    left_out = [task for task in all_rows.tasks if task not in rows.corpus.tasks]
    items = gating.choose_items_per_cell(all_rows.measured().cells(), measuring.items)
    if gating.until_decided:
        measuring = check_looks(measuring, gating, rows, left_out)
        items = max(plan_sizes(cells, gating).values())
    measure = MeasureConfig(items=items, decoding=measuring.decoding)
    measure = replace(measure, probes=measure.probes if rows.probe is None else (rows.probe,))
    outcome = outcome_of(measure.probes, measure.decoding) or measure.decoding
    reads_loss = outcome == "loss"  # then answers are written, too: their format and likelihood are compared
    judged = f"{measure.decoding} answers are judged"
    if outcome not in GRADED_OUTCOMES:
        judged = f"no answer can be graded, so {READINGS[outcome].title} is compared; "
        judged += "format and likelihood of the answers, too" if reads_loss else "no completions are generated"
    say(f"measure: up to {measure.items} items per task and level; {judged}")
    ready = direct.prepare((before, after), measuring, rows, measure)
    largest, look = max(cell.count for cell in ready.corpus.measured().cells()), None
    if gating.until_decided:
        ready, results, look = measure_in_looks(ready, folder, gating, measuring.budget)
    else:
        ready = fit_to_budget(ready, measuring.budget)
        results = measure_both(ready)
    notes = direct.note_measured(ready, results, measuring)
    of_suite = {task for tasks in gating.rings.values() for task in tasks}  # their graders are known to read them
    notes = [note for note in notes if note.task not in of_suite or note.check not in GRADER_NOTES]
    notes += _note_noise(ready, results["before"], repeat=gating.repeat)
    if left_out or (look is None and reads_loss):
        ungraded = all_rows.select(tasks=left_out) if left_out else ready.corpus
        results = direct.with_greedy_answers(ready, results, measuring, ungraded)
    skips_former = gating.rings and not gating.same  # every general request is graded
    prompts = {item.id: item.prompt for item in ready.corpus.measured()}
    former_answers = () if skips_former else direct.read_former_likelihood(ready, results, prompts)
    notes += compare_tokenizers(*ready.learners) if gating.same else []
    if ready.graded and same_tokens(*ready.learners):
        say("lost answers: reading what the later model still knows of them")
        answers = read_recalled(ready.learners[1], prompts, results["before"].answers, results["after"].answers)
        results = {**results, "after": replace(results["after"], answers=answers)}
    question = None if look is None else replace(gating.question, look=look)
    settings: dict[str, Any] = {"checkpoint after": after}
    if (after_name := ready.learners[1].name) != after:
        settings["model after"] = after_name
    settings |= ready.settings
    settings |= {LEFT_OUT_SETTING: left_out} if left_out else {}
    settings |= {LOOK_SETTING: to_data(look)} if look is not None else {}
    settings[LARGEST_CELL_ROWS_SETTING] = largest
    if seconds := results["after"].seconds_per_item:
        settings[PACE_SETTING] = float(f"{2 * seconds:.2g}")
    write_comparison(folder, ready, settings, results, notes, former_answers, question)
    return look


def _note_noise(ready: PreparedModels, before: MeasureResult, *, repeat: bool) -> Sequence[Observation]:
    """Ask BEFORE again where that is wanted, past the answers in the store; else take what the store knows of its noise."""
    learner = ready.learners[0]
    if not repeat:
        return note_noise(learner.remember([NOISE_NOTE], dict), learner.name) if learner.knows([NOISE_NOTE]) else ()

    def ask_again() -> dict[str, int]:
        fresh = learner.without_store(max(1, learner.batch_size // 2) if learner.batch_size else BATCH_SIZE)
        measure = replace(ready.config.measure, samples=0, probes=("competence",))
        result = measure_with_progress(
            "measure before again", fresh, replace(ready, config=replace(ready.config, measure=measure))
        )
        return count_changes(before.answers, result.answers) | {"batch": fresh.batch_size or 0}

    return note_noise(learner.remember([NOISE_NOTE], ask_again, again=True), learner.name)


def write_comparison(
    folder: RunFolder,
    ready: PreparedModels,
    settings: Mapping[str, Any],
    results: Mapping[str, MeasureResult],
    notes: Sequence[Observation],
    former_answers: Sequence[FormerAnswers],
    question: GateQuestion | None,
) -> None:
    """Write settings, manifest, both tables, the completions and the notes; nothing of an earlier comparison stays.

    What is noted is how the checkpoints were measured. How they were trained is not known here. With looks, `question` is
    what the gate was asked at the one that ended them: nobody may find the tables without it.
    """
    with folder.lock():
        clear(folder)  # first of all: what is killed half-way must not be judged with an older half
        if question is not None:
            write_question(folder, question)
        if len(results["after"].answers):
            write_known_forms(folder, ready.corpus)
        if former_answers:
            write_json(former_file(folder), list(former_answers))
        direct.write_measured(folder, ready, settings, results, notes)


def check_look_options(measuring: Measuring, gating: Gating) -> None:
    """Raises InputError for options of items and samples: looks choose the items, and judge greedy answers alone."""
    is_given = {
        "--items": measuring.items is not None,
        "--samples": bool(measuring.samples),
        "--sampled": measuring.decoding == "sampled",
    }
    if names := ", ".join(name for name, given_here in is_given.items() if given_here):
        if gating.asks_general:
            remedy = f"Add --no-suite; or use --max-items in place of {names}."
            raise InputError(f"{names} with --no-suite", "general requests, too", remedy)
        remedy = "Interim analyses choose the items, and judge only greedy answers."
        raise InputError("--until-decided without it", names, remedy)


def check_looks(measuring: Measuring, gating: Gating, rows: Graded, left_out: Sequence[str]) -> Measuring:
    """The options as looks need them: greedy answers alone, and no number of items.

    Raises:
        InputError: an option says something else, or the answers cannot be graded.
    """
    check_look_options(measuring, gating)
    if rows.probe is not None or set(left_out) & set(gating.protect):
        remedy = "Name graders (--grader TASK=NAME), protect other tasks, or leave --until-decided out."
        got = f"none of {join_some(left_out)}" if left_out else "none"
        raise InputError("answers that can be graded, with --until-decided", got, remedy)
    return replace(measuring, samples=0)


def plan_sizes(cells: Sequence[Cell], gating: Gating) -> dict[TaskLevel, int]:
    """Return the items of each cell at the last look; cells count alike as far as they have rows.

    Args:
        cells: that are asked.
        gating: the margin, what is protected, and the most items.

    Raises:
        InputError: so few that no cell would be judged, although the file has more.
    """
    of_suite = {task for ring in gating.rings.values() for task in ring}
    own, most = [cell for cell in cells if cell.task not in of_suite], gating.max_items
    if gating.rings:
        size = math.ceil((RING_ITEMS if most is None else most // 2) / max(1, len(own)))
    elif most is None:
        size = math.ceil(MORE_ITEMS * gating.choose_items_per_cell(own, None))
    else:
        size, least = most // len(own), min(MIN_ITEMS, max(cell.count for cell in own))
        if size < least:
            count = len(own)
            expected = f"--max-items of {least * count:,} or more: {least} items of each of {count} tasks and levels"
            remedy = "A task or level with fewer items is never judged. Allow more items, or leave tasks out."
            raise InputError(expected, f"{most:,}", remedy)
    return {(cell.task, cell.level): min(cell.count, RING_ITEMS if cell.task in of_suite else size) for cell in cells}


def measure_in_looks(
    ready: PreparedModels, folder: RunFolder, gating: Gating, budget: Budget | None = None
) -> tuple[PreparedModels, dict[str, MeasureResult], Look]:
    """Measure both checkpoints on ever more items, until the gate passes or finds damage; answers are kept in the store.

    Rows of a cell are asked in random order. What the gate is shown not to read is asked no more, and the others share its
    items. Once the mean excludes its loss, only cells that do not exclude theirs are asked.

    Args:
        ready: models and rows.
        folder: of the comparison.
        gating: what the gate is asked, without a look, and the most items.
        budget: time after which no further look is begun.

    Returns:
        Settings and measurements of the look that decided, or of the last one; and which it was.
    """
    corpus, question, start = ready.corpus.measured(), gating.question, 0.0 if budget is None else budget.seconds_spent
    orders = _shuffle_rows(corpus, ready.config.seed)
    cells, decoding = corpus.cells(), ready.config.measure.decoding
    sizes = plan_sizes(cells, gating)
    asked = readable = planned_cells = frozenset(sizes)
    planned, common, taken, former_items, former_seconds = count_looks(sizes.values()), 1, dict(sizes), 0, start
    with folder.lock():  # the folder is ours from now on
        for number in range(1, planned + 1):
            taken |= {cell: min(sizes[cell], max(FIRST_ITEMS, math.ceil(sizes[cell] * number / planned))) for cell in asked}
            rows = np.sort(np.concatenate([order[: taken[cell]] for cell, order in orders.items()]))
            common = number if readable <= asked else common
            look = Look(number, len(rows), sum((taken | {cell: sizes[cell] for cell in asked}).values()), planned, common)
            part = replace(ready, corpus=corpus.take(rows)).with_items(max(taken.values()))
            results = measure_both(part, f", {look.label}")
            before, after = ([scores_of_items(result.answers)] for result in results.values())
            gate_result = check_sides((before, after), decoding, replace(question, look=look))
            say(f"{look.label}: {gate_result.outcome}")
            unjudged = set(find_unjudged_tasks((before, after), decoding))
            if question.protect:
                unjudged &= {cell.task for cell in gate_result.cells}
            if unjudged and not question.rings and gate_result.outcome == "passed" and not look.last:
                names = join_some(sorted(unjudged))
                say(f"{look.label}: not decided, because no answer to {names} was right before or after")
            elif gate_result.outcome != "inconclusive" or look.last:
                return part, results, look
            protected = frozenset((cell.task, cell.level) for cell in gate_result.cells)
            readable = frozenset((cell.task, cell.level) for cell in gate_result.cells if cell.readable)
            open_cells = (protected if question.protect else frozenset(sizes)) - readable
            open_cells -= find_cells_shown_unreadable(before, decoding) - {cell for cell in sizes if cell[0] in unjudged}
            asked = gate_result.undecided | open_cells or frozenset(sizes)
            if len(readable | open_cells) < len(planned_cells):
                planned_cells = readable | open_cells or planned_cells
                sizes |= plan_sizes([cell for cell in cells if (cell.task, cell.level) in planned_cells], gating)
            if budget is not None:
                spent = budget.seconds_spent
                following = sum(sizes[cell] for cell in asked) / planned
                next_seconds = (spent - former_seconds) / max(look.items - former_items, 1) * following
                former_items, former_seconds = look.items, spent
                if next_seconds > budget.seconds_left:
                    say(f"budget: measuring ends here; the next look would take {format_duration(next_seconds)}")
                    return part, results, look
    raise AssertionError("the last look ends the loop")


def _shuffle_rows(corpus: Corpus, seed: int) -> dict[TaskLevel, NDArray[np.int64]]:
    """Cell -> its rows in random order."""
    rows, rng = rows_by(corpus, np.arange(len(corpus.table)), "task", "level"), np.random.default_rng(seed)
    return {cell: rng.permutation(own) for cell, own in sorted(rows.items(), key=lambda cell: cell[1][0])}

"""Comparison of two checkpoints, whoever trained them, on one corpus: `mixwright verdict BEFORE AFTER --corpus C`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mixwright.cli.beside import CUT_SETTING, Earlier, check_same, read_before, read_earlier, write_beside
from mixwright.cli.direct import (
    GOLD_PROBE,
    ask_lost_answers,
    note_measured,
    prepare,
    read_former_likelihood,
    rows_of,
    with_greedy_answers,
)
from mixwright.cli.gating import Gating
from mixwright.cli.options import Measuring
from mixwright.cli.output import say
from mixwright.cli.ready import Ready, fit_to_budget, measure_with_progress, with_price
from mixwright.config import MeasureConfig
from mixwright.corpus.graded import Graded
from mixwright.errors import InputError, join_some, one_line, unknown_name
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.looks import PLANNED_LOOKS, Look
from mixwright.estimates.outcome import item_scores
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, outcome_of
from mixwright.measure.bases import write_completions
from mixwright.measure.former import FormerAnswers, former_file
from mixwright.measure.kept_folder import holds_answers_alone
from mixwright.measure.notes import write_notes
from mixwright.measure.returned import Returned, returned_file
from mixwright.measure.stage import MeasureResult
from mixwright.records import Cell, Observation
from mixwright.run.folder import RunFolder, write_json, write_measurements
from mixwright.run.manifest import write_manifest, write_settings
from mixwright.verdict.page.beside import BESIDE_NAME, beside_file
from mixwright.verdict.page.text import count
from mixwright.verdict.rules.answer_forms import known_forms_file, write_known_forms
from mixwright.verdict.rules.basis import LEFT_OUT_SETTING, MOST_ROWS_SETTING, PACE_SETTING
from mixwright.verdict.rules.claims import find_unjudged_tasks
from mixwright.verdict.rules.gate import check_sides, items_to_measure
from mixwright.verdict.rules.gate_asked import LOOK_SETTING, GateAsked, question_file, write_question
from mixwright.verdict.rules.gate_words import gate_lines

OF_COMPLETIONS = ("--samples", "--temperature", "--greedy/--sampled", "--max-new-tokens")
"""Options that mean nothing where none are written."""


def compare(before: str, after: str, asked: Measuring, folder: RunFolder, gating: Gating) -> Look | None:
    """Measure both checkpoints on the held-out split (all rows when there is none) and write both tables.

    What they wrote stays beside these until the page is written, too: see `drop_kept`.

    Where nothing can be graded, pairs are compared by preference accuracy, and other rows by the loss on their targets.

    Args:
        before: checkpoint folder, adapter folder or hub name.
        after: the same, trained further.
        asked: what they are measured on, and how; without `items` what the gate needs.
        folder: where the tables go.
        gating: what the gate will be asked, and what is taken over; without graded answers both also answer the prompts.

    Returns:
        The look that decided, or the last one; None where all items were measured at once.

    Raises:
        InputError: a checkpoint, the corpus or a protected name cannot be used; nothing is written then.
    """
    _check_folder(folder)
    decoding, taken_over = gating.decoding, bool(gating.beside or gating.measured)
    asked = check_looks(asked, decoding, taken_over=taken_over) if gating.until_decided else asked
    earlier = None if gating.measured is None else read_before(gating.measured, before)
    earlier = earlier if gating.beside is None else read_earlier(gating.beside, before, folder)
    graders, room = ({}, None) if earlier is None else (earlier.graders, earlier.room)
    rows = _rows(asked, gating, graders)
    cells = rows.corpus.measured().cells()
    wanted = _items(cells, gating, asked.items)
    plan = []
    if gating.until_decided:
        if rows.probe is not None:
            got = f"none of {join_some(rows.lacking)}" if rows.lacking else "none"
            remedy = "Name graders (--grader TASK=NAME), protect other tasks, or leave --until-decided out."
            raise InputError("answers that can be graded, beside --until-decided", got, remedy)
        plan = plan_looks(cells, gating.max_items or wanted * len(cells))
    measure = MeasureConfig(items=plan[-1][0] if plan else wanted, decoding=decoding)
    measure = replace(measure, probes=(*measure.probes, GOLD_PROBE) if rows.probe is None else (rows.probe,))
    say(f"measure: up to {measure.items} items per cell, as far as there are; {_judged(measure, asked, gating)}")
    ready = prepare((before, after), asked, rows, measure, graders=graders, room=room, folder=folder.path)
    left = [task for task in rows.whole.tasks if task not in rows.corpus.tasks] if rows.whole is not None else []
    ready = replace(ready, noted={**ready.noted, LEFT_OUT_SETTING: left}) if left else ready
    if earlier is not None:
        check_same(earlier, ready)
    measured, known = [0, 1] if earlier is None else [1], asked.max_new_tokens is not None or earlier is not None
    ready = with_price(ready, measured, known=known, limited=asked.budget is not None)
    ready = ready if asked.budget is None else fit_to_budget(ready, asked.budget, measured)
    in_looks = measured_in_looks(ready, folder, plan, gating.question) if plan else None
    ready, found, look = in_looks or (ready, _both(ready, earlier), None)
    notes = note_measured(ready, found, asked, ask_other_form=earlier is None)
    found = with_greedy_answers(ready, found, asked) if gating.gate and not ready.graded else found
    again, former = ask_lost_answers(ready, found), read_former_likelihood(ready, found)
    question = None if look is None else replace(gating.question, look=look)
    write_comparison(folder, ready, after, found, notes, earlier, again, former, question)
    return look


def _rows(asked: Measuring, gating: Gating, graders: Mapping[str, str]) -> Graded:
    """The rows: ungraded where nothing, or not all that is protected, can be graded. Raises InputError for gated pairs."""
    needed = [name for cell in gating.protect for name in (cell, cell.rpartition("@")[0])]
    rows = rows_of(asked, ungraded=True, graders=graders, needed=needed)
    if gating.gate and rows.probe not in (None, READINGS["loss"].probe):
        remedy = "Leave --gate out: pairs are compared without it."
        raise InputError("rows with answers or targets, by which the gate judges a loss", "preference pairs", remedy)
    return rows


def _judged(measure: MeasureConfig, asked: Measuring, gating: Gating) -> str:
    """What is compared, for people, and which options mean nothing then."""
    outcome = outcome_of(measure.probes, gating.decoding) or gating.decoding
    if outcome in GRADED_OUTCOMES:
        return f"{gating.decoding} decoding is judged"
    written = gating.gate and outcome == "loss"
    unused = [name for name in asked.given() if name in OF_COMPLETIONS and not (written and name == OF_COMPLETIONS[-1])]
    unused += ["--margin, which is in points of success"] if gating.margin is not None else []
    told = f"no answer can be graded, so {READINGS[outcome].title} is compared, and "
    told += "the form and the likelihood of answers" if written else "no completion is written"
    return told + (f"; nothing is done with {', '.join(unused)}" if unused else "")


def _both(ready: Ready, earlier: Earlier | None) -> dict[str, MeasureResult]:
    """Both checkpoints, measured; BEFORE taken over where there is an earlier comparison. Raises InputError as that does."""
    start, end = ready.learners
    if earlier is None:
        first = measure_with_progress("measure before", start, ready)
    else:
        beside = f", and {earlier.name} stands beside" if earlier.other is not None else ""
        say(f"measure before: taken over from {earlier.folder}{beside}")
        first = earlier.before
        if GOLD_PROBE in ready.config.measure.probes and not any(row.probe == GOLD_PROBE for row in first.measurements):
            alone = replace(ready.config, measure=replace(ready.config.measure, probes=(GOLD_PROBE,)))  # of earlier versions
            gold = measure_with_progress("read gold answers before", start, replace(ready, config=alone))
            first = replace(first, measurements=(*first.measurements, *gold.measurements))
    return {"before": first, "after": measure_with_progress("measure after", end, ready, start=start)}


def write_comparison(
    folder: RunFolder,
    ready: Ready,
    after: str,
    found: Mapping[str, MeasureResult],
    notes: Sequence[Observation],
    earlier: Earlier | None = None,
    again: Returned | None = None,
    former: Sequence[FormerAnswers] = (),
    question: GateAsked | None = None,
) -> None:
    """Write settings, manifest, both tables, the completions and the notes; nothing of an earlier comparison stays.

    What is noted is how the checkpoints were measured. How they were trained is not known here. With looks, `question` is
    what the gate was asked at the one that ended them: nobody may find the tables without it.
    """
    config, end = ready.config, ready.learners[1].name
    with folder.lock():
        clear(folder)  # first of all: what is killed half-way must not be judged with an older half
        write_settings(config, folder, ("corpus", "measure", "seed"))
        about = {"checkpoint after": after} | ({"model after": end} if end != after else {})
        completed = {name: result for name, result in found.items() if result.completions}
        cut = {CUT_SETTING.format(when): f"{result.cut:.1%}" for when, result in completed.items()}
        counted = {MOST_ROWS_SETTING: max(cell.count for cell in ready.corpus.measured().cells())}
        speed = {PACE_SETTING: float(f"{2 * found['after'].pace:.2g}")} if found["after"].pace else {}
        settings = about | dict(ready.noted) | counted | speed | cut
        write_manifest(config, folder, ready.corpus, settings=settings, seeds={"measuring": config.seed})
        if question is not None:
            write_question(folder, question)
        for name, result in found.items():
            write_measurements(folder.measurements(name), result.measurements)
        if completed:
            third = {} if earlier is None or earlier.other is None else {BESIDE_NAME: earlier.other}
            write_completions(folder.path / "completions.parquet", {**completed, **third})
            write_known_forms(folder, ready.corpus)
        if earlier is not None:
            write_beside(folder, earlier)
        if again is not None:
            write_json(returned_file(folder), again)
        if former:
            write_json(former_file(folder), list(former))
        write_notes(folder, notes)


def _check_folder(folder: RunFolder) -> None:
    """Raises InputError for a folder that holds something else than an earlier comparison: nothing of it may be lost."""
    path, new = folder.path, "a new folder, or that of an earlier comparison"
    made = [place for place in (folder.corpus, folder.plan, folder.result, path / "bases") if place.exists()]
    if made:
        raise InputError(new, f"a run, which has {made[0].name}", "Choose another --folder.", file=path)
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError("a folder", "a file", "Choose another --folder.", file=path)
    ours = (path / ".lock").exists() or folder.manifest.exists() or holds_answers_alone(path)
    if not ours and any(path.iterdir()):  # a run.yaml there would be replaced
        raise InputError(new, "one that holds something else", "Choose another --folder.", file=path)


def clear(folder: RunFolder) -> None:
    """Remove what an earlier comparison measured in this folder, and what was asked and said of it."""
    tables = [folder.measurements(name) for name in ("before", "after", BESIDE_NAME)]
    for path in (
        *tables,
        folder.notes,
        question_file(folder),
        beside_file(folder),
        returned_file(folder),
        known_forms_file(folder),
        former_file(folder),
        folder.path / "completions.parquet",
        folder.claims,
        folder.page,
        folder.data,
    ):
        path.unlink(missing_ok=True)


def _items(cells: Sequence[Cell], gating: Gating, items: int | None) -> int:
    """Items per cell. Raises InputError for a protected name that the corpus does not have."""
    known = {name for cell in cells for name in (cell.task, cell.key)}
    for name in gating.protect:
        if name not in known:
            raise unknown_name("task or cell of the corpus (--protect)", name, known)
    chosen = [cell for cell in cells if not gating.protect or {cell.task, cell.key} & set(gating.protect)]
    return items_to_measure(len(chosen), chosen=bool(gating.protect), margin=gating.margin_share) if items is None else items


def check_looks(asked: Measuring, decoding: str, *, taken_over: bool) -> Measuring:
    """The options as looks need them: greedy answers alone, and no number of items.

    Raises:
        InputError: an option says something else.
    """
    wrong = {
        "--items": asked.items is not None,
        "--budget": asked.budget is not None,
        "--samples": bool(asked.samples),
        "--sampled": decoding == "sampled",
        "--measured or --beside": taken_over,
    }
    if given := [name for name, found in wrong.items() if found]:
        remedy = "Looks choose the items themselves, measure both checkpoints, and judge greedy answers alone."
        raise InputError("--until-decided without it", ", ".join(given), remedy)
    return replace(asked, samples=0)


def plan_looks(cells: Sequence[Cell], most: int) -> list[tuple[int, Look]]:
    """Items per cell and the look, of each look; cells count alike as far as they have rows.

    Args:
        cells: that are measured.
        most: items over all cells that the last look must not exceed.

    Raises:
        InputError: so few that no cell would be judged, although the file has more.
    """
    rows = max(cell.count for cell in cells)
    top = min(most // len(cells), rows)  # a file may have fewer
    least = min(MIN_ITEMS, rows)
    if top < least:
        expected = f"--max-items of {least * len(cells):,} or more: {least} items of each of {count(len(cells), 'cell')}"
        raise InputError(expected, f"{most:,}", "Cells of fewer items are never judged. Allow more, or leave tasks out.")
    sizes = [math.ceil(top * number / PLANNED_LOOKS) for number in range(1, PLANNED_LOOKS + 1)]
    counts = [sum(min(cell.count, size) for cell in cells) for size in sizes]
    return [(size, Look(number, counts[number - 1], counts[-1])) for number, size in enumerate(sizes, start=1)]


def measured_in_looks(
    ready: Ready, folder: RunFolder, plan: Sequence[tuple[int, Look]], question: GateAsked
) -> tuple[Ready, dict[str, MeasureResult], Look]:
    """Both checkpoints on ever more items, until the gate passes or finds damage; answers are kept in the folder.

    Args:
        ready: settings of the last look.
        folder: of the comparison.
        plan: what `plan_looks` says.
        question: what the gate is asked, without a look.

    Returns:
        Settings and measurements of the look that decided, or of the last one; and which it was.
    """
    decoding, found = ready.config.measure.decoding, {}
    with folder.lock():  # the folder is ours from now on, and the same command goes on from what it holds
        kept = ready.learners
        for size, look in plan:
            now = replace(ready.config, measure=replace(ready.config.measure, items=size))
            noted = {**ready.noted, "items": size, LOOK_SETTING: look.label}
            ready = replace(ready, config=now, noted=noted)
            found = {
                "before": measure_with_progress(f"measure before, {look.label}", kept[0], ready),
                "after": measure_with_progress(f"measure after, {look.label}", kept[1], ready, start=kept[0]),
            }
            before, after = ([item_scores(result.measurements)] for result in found.values())
            result = check_sides((before, after), decoding, replace(question, look=look))
            say(one_line(f"{look.label}: {gate_lines(result)[0]}"))
            asked = {cell.task for cell in result.cells} if question.protect else None
            blind = [task for task in find_unjudged_tasks((before, after), decoding) if asked is None or task in asked]
            if blind and result.outcome == "passed" and not look.last:
                say(one_line(f"{look.label}: not decided, since no answer of {join_some(blind)} was right before or after"))
            elif result.outcome != "cannot tell" or look.last:
                return ready, found, look
    raise AssertionError("the last look ends the loop")

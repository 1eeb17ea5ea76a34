"""Two checkpoints measured in planned looks, until the gate is decided: `verdict --gate --until-decided --max-items N`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mixwright.cli.direct import Say
from mixwright.cli.options import Measuring
from mixwright.cli.ready import Ready, measure_with_progress
from mixwright.errors import InputError, join_some, one_line
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.looks import PLANNED_LOOKS, Look
from mixwright.estimates.outcome import item_scores
from mixwright.measure.stage import MeasureResult
from mixwright.records import Cell
from mixwright.runs import RunFolder
from mixwright.verdict.claims import unjudged
from mixwright.verdict.gate import check_sides
from mixwright.verdict.gate_asked import LOOK_SETTING, GateAsked
from mixwright.verdict.gate_words import gate_lines
from mixwright.verdict.text import count


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
    ready: Ready, folder: RunFolder, plan: Sequence[tuple[int, Look]], question: GateAsked, say: Say
) -> tuple[Ready, dict[str, MeasureResult], Look]:
    """Both checkpoints on ever more items, until the gate passes or finds damage; answers are kept in the folder.

    Args:
        ready: settings of the last look.
        folder: of the comparison.
        plan: what `plan_looks` says.
        question: what the gate is asked, without a look.
        say: told what each look says.

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
            blind = [task for task in unjudged((before, after), decoding) if asked is None or task in asked]
            if blind and result.outcome == "passed" and not look.last:
                say(one_line(f"{look.label}: not decided, since no answer of {join_some(blind)} was right before or after"))
            elif result.outcome != "cannot tell" or look.last:
                return ready, found, look
    raise AssertionError("the last look ends the loop")

"""Study of what the gate passes, by cells and items: nothing changed, the margin lost, one cell lost while others gain.

An item is right before with a chance of .7. After training a tenth of all items has turned wrong and a tenth right for no
reason (in one case 4 % each). Then right answers are lost, or wrong ones put right, by so many points as the case says.
Where others gain, they gain 15 points, so that no mean shows the loss. S is not known, as in most logs. All cells are named.

Layouts: 4 tasks of 30 items with a margin of 15 points; 6 of 150 and 12 of 60 with the default and with `--margin 5`; one
task of 50 levels of 16 items with the default and with `--margin 15`. Each case is drawn `DRAWS` times. The gate prints how
large a loss of one cell would pass unseen; a loss of 5 points more is drawn, too.

The rules before (commit e75b6a1a) are drawn by that tree's code, with the same seeds. Counts of both are kept in
`gate_layouts.rows.jsonl`, and the last command reports them.

Goals, fixed before the reported run. At most 5 % pass: the margin lost everywhere, in every layout; one task 40 points worse
while others gain, in the three layouts of tasks; one task 20 points worse, with 60 and 150 items; ten of 50 levels 40 points
worse; 5 points more than the printed loss, in every layout. With nothing changed at least 75 % pass of 4 x 30, 60 % of 50
levels, and in 6 x 150 and 12 x 60 by default at most 2 points fewer than before. An explicit `--margin 5` answers as the
default does in every draw.

    PYTHONPATH=TREE_OF_e75b6a1a python mixwright_lab/studies/gate_layouts.py before
    python mixwright_lab/studies/gate_layouts.py after
    python -m mixwright_lab.studies.gate_layouts [--quick]
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.estimates.intervals import share_interval
from mixwright.estimates.outcome import ItemScores
from mixwright.verdict.rules.gate import check_protected
from mixwright_lab.studies.jobs import append_row, read_rows, run_in_processes
from mixwright_lab.studies.report import Goal, Result, run

LAYOUTS: Mapping[str, tuple[int, int, tuple[float | None, ...]]] = {
    "4 x 30": (4, 30, (0.15,)),
    "6 x 150": (6, 150, (None, 0.05)),
    "12 x 60": (12, 60, (None, 0.05)),
    "50 levels x 16": (50, 16, (None, 0.15)),
}
"""Layout -> cells, items of each, and margins; None for the default."""
SAME, GENTLE, LOST = "nothing changed", "nothing changed, 4 % flip each way", "the margin lost everywhere"
ONE_20, ONE_40, TEN_40 = "one cell -20, others gain", "one cell -40, others gain", "ten cells -40, others gain"
MORE = "one cell 5 points more than printed, others gain"
START, FLIP, GENTLE_FLIP, GAIN, DEFAULT_MARGIN = 0.7, 0.1, 0.04, 0.15, 0.05
DRAWS, MOST = 400, 0.05
ROWS_FILE = Path(__file__).parent.parent / "results" / "studies" / "gate_layouts.rows.jsonl"
Job = tuple[str, str, float, int]
"""Layout, case, loss of a cell, and seed."""


def draw(layout: str, case: str, loss: float, seed: int) -> list[list[ItemScores]]:
    """Both sides of one comparison."""
    cells, items, _ = LAYOUTS[layout]
    rng = np.random.default_rng([seed, cells, items])
    flip = GENTLE_FLIP if case == GENTLE else FLIP
    losing = {LOST: cells, TEN_40: 10, SAME: 0, GENTLE: 0}.get(case, 1)
    sides: list[dict[tuple[str, float | None, str], float]] = [{}, {}]
    for cell in range(cells):
        old = rng.random(items) < START
        flips = rng.random(items) < np.where(old, flip / START, flip / (1 - START))
        new, moved = old ^ flips, rng.random(items)
        new = new & ~(moved < loss / START) if cell < losing else new
        new = new | (moved < GAIN / (1 - START)) if cell >= losing and losing else new
        task, level = ("t", float(cell)) if "levels" in layout else (f"t{cell}", None)
        for side, values in zip(sides, (old, new), strict=True):
            side |= {(task, level, f"{cell}-{place}"): float(value) for place, value in enumerate(values)}
    return [[ItemScores.of({"greedy": side})] for side in sides]


def judge(job: Job) -> list[dict[str, Any]]:
    """What the gate says of one draw, by each margin of its layout."""
    layout, case, loss, seed = job
    rows = []
    for margin in LAYOUTS[layout][2]:
        own_loss = (DEFAULT_MARGIN if margin is None else margin) if case == LOST else loss
        before, after = draw(layout, case, own_loss, seed)
        cells = list(dict.fromkeys(item[:2] for item in before[0].by_item("greedy")))
        found = check_protected(before, after, cells, named_by_user=True, margin=margin)
        row = {"layout": layout, "margin": margin, "case": case, "seed": seed, "outcome": found.outcome}
        rows.append(row | {"printed": found.unseen_loss})
    return rows


def draw_all(rule: str, draws: int) -> list[dict[str, Any]]:
    """All draws by the rules of this tree, counted."""
    jobs: list[Job] = []
    for layout in LAYOUTS:
        losses = {SAME: 0.0, GENTLE: 0.0, LOST: 0.0, ONE_20: 0.2, ONE_40: 0.4}
        if "levels" in layout:  # 16 items of a level cannot show 20 points
            losses = {SAME: 0.0, LOST: 0.0, ONE_40: 0.4, TEN_40: 0.4}
        jobs += [(layout, case, loss, seed) for case, loss in losses.items() for seed in range(draws)]
        printed = max(row["printed"] or 0.0 for row in judge((layout, SAME, 0.0, 0)))
        jobs += [(layout, MORE, printed + 0.05, seed) for seed in range(draws) if printed + 0.05 < START]
    rows = run_in_processes(judge, jobs, say="draws", chunk=50)
    return count_outcomes(rule, [row for own in rows for row in own])


def count_outcomes(rule: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Of each layout, margin and case how many passed, were damaged, could not be told, and were as by the default."""
    table: dict[tuple[Any, ...], dict[int, str]] = {}
    for row in rows:
        table.setdefault((row["layout"], row["margin"], row["case"]), {})[row["seed"]] = row["outcome"]
    printed = {(row["layout"], row["margin"]): row["printed"] for row in rows}
    counts = []
    for (layout, margin, case), outcomes in table.items():
        default, told = table.get((layout, None, case), {}), list(outcomes.values())
        counts.append(
            {"rule": rule, "layout": layout, "margin": margin, "case": case, "draws": len(told)}
            | {word: told.count(word) for word in ("passed", "damaged")}
            | {"cannot tell": told.count("inconclusive")}
            | {"as default": sum(default.get(seed) == outcome for seed, outcome in outcomes.items())}
            | {"printed": printed[layout, margin]}
        )
    return counts


def goals_of(table: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """What was fixed before."""
    goals = []
    before = {(row["layout"], row["margin"], row["case"]): row for row in table if row["rule"] == "before"}
    for row in (row for row in table if row["rule"] == "after"):
        layout, case = row["layout"], row["case"]
        found = share_interval(row["passed"], row["draws"])
        margin = "default" if row["margin"] is None else f"--margin {100 * row['margin']:g}"
        name = f"{layout}, {margin}, {case}: passes"
        is_limited = case in (LOST, TEN_40, MORE) or (case == ONE_40 and "levels" not in layout)
        if is_limited or (case == ONE_20 and layout in ("6 x 150", "12 x 60")):
            goals.append(Goal(name, found, f"<= {MOST:g}", found.value <= MOST))
        if case == SAME and layout in ("4 x 30", "50 levels x 16"):
            least = 0.75 if layout == "4 x 30" else 0.6
            goals.append(Goal(name, found, f">= {least:g}", found.value >= least))
        if case == SAME and layout in ("6 x 150", "12 x 60") and row["margin"] is None:
            old = before[layout, None, case]
            least = old["passed"] / old["draws"] - 0.02
            goals.append(Goal(name, found, f">= {least:.3g}", found.value >= least))
    explicit = [row for row in table if row["rule"] == "after" and row["margin"] == DEFAULT_MARGIN]
    same = share_interval(sum(row["as default"] for row in explicit), sum(row["draws"] for row in explicit))
    return [*goals, Goal("--margin 5 answers as the default", same, "1", same.value == 1)]


def measure(quick: bool) -> Result:
    """Report the counts that are kept; quick draws a few. The headline is of 4 x 30 with one task 40 points worse."""
    table = read_rows(ROWS_FILE)
    if quick:
        table = [row for row in table if row["rule"] == "before"] + draw_all("after", 4)
    goals = goals_of(table)
    headline = next(goal for goal in goals if ONE_40 in goal.name)
    settings = {"draws": DRAWS, "start": START, "flip each way": FLIP, "gain": GAIN}
    unit = "share that passes, 4 x 30, --margin 15, one task 40 points worse and others better"
    return Result(headline.found, unit, range(DRAWS), table, settings=settings, goals=goals)


if __name__ == "__main__":
    if sys.argv[1:] in (["before"], ["after"]):
        for counts_of_case in draw_all(sys.argv[1], DRAWS):
            append_row(ROWS_FILE, counts_of_case)
    else:
        run("gate_layouts", __doc__, measure)

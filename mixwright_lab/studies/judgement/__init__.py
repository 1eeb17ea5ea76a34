"""Study of judgements where the truth is known: S, D, kappa, states, chance level, intervals, words and the gate.

Beside it the width of intervals against an earlier formula (`precision.py`). What whole comparisons say and which code they
leave with are other studies: `gate` with made-up answers, `gate_layouts` with planned looks, `general_gate` with fine-tunes
of a pretrained model.

Everything is simulated, with numpy alone, or drawn from committed trials: fake learners on cells with known answers, trials
of 531 held-out items in which nothing is better, checkpoints with a known loss. The goals were fixed before; each is printed
with what came out.

    python -m mixwright_lab.studies.judgement [--quick]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from mixwright.estimates.cell_states import LUCKY_KAPPA, PERMUTATION_ALPHA
from mixwright.estimates.intervals import share_interval
from mixwright.records import Interval
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.judgement import cells, changes, precision
from mixwright_lab.studies.judgement.cells import all_fakes
from mixwright_lab.studies.report import Goal, Result

Row = Mapping[str, Any]
Job = tuple[str, tuple[Any, ...], int]
"""Kind of job, its arguments but the last, and how many times."""
KINDS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "cells": cells.cell,
    "chance": cells.chance,
    "intervals": changes.intervals,
    "words": changes.words,
    "power": changes.power,
    "gate": changes.gate,
    "gate end": changes.gate_end,
}
MIN_COVERAGE = 0.93
TESTED_GAINS = (0.02, 0.05, 0.1)
ITEMS_PER_CELL = (10, 40, 100, 200)
PROTECTED_CELLS = (1, 2, 4, 8, 17)
SKILLED = "45 % skill, else constant, majority 40 %"


def at_least(name: str, found: Iterable[Interval], limit: float) -> Goal:
    """The smallest of these shares must reach a limit."""
    worst = min(found, key=lambda one: one.value)
    return Goal.at_least(name, worst, limit)


def at_most(name: str, found: Iterable[Interval], limit: float) -> Goal:
    """The largest of these shares must stay within a limit."""
    worst = max(found, key=lambda one: one.value)
    return Goal.at_most(name, worst, limit)


def bias_within(name: str, found: Sequence[tuple[float, float]], limit: float) -> Goal:
    """The largest bias, with its standard error, must be within a limit."""
    value, error = max(found, key=lambda one: abs(one[0]))
    return Goal(
        name, Interval(value, value - 2 * error, value + 2 * error, len(found)), f"within {limit:g}", abs(value) <= limit
    )


def pooled(rows: Sequence[Row], by: Sequence[str], hits: Callable[[Row], float]) -> list[Interval]:
    """Shares of hits, one per value of each of these columns, pooled over the others: no noise of a single cell decides."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        for name in by:
            groups[name, row[name]].append(row)
    return [share_interval(sum(map(hits, own)), sum(row["times"] for row in own)) for own in groups.values()]


def states(name: str) -> Callable[[Row], float]:
    """How often a cell was in this state."""
    return lambda row: row["states"].get(name, 0)


def inside(part: str) -> Callable[[Row], float]:
    """How often an interval held the truth."""
    return lambda row: row["inside"].get(part, 0)


def gate_passed(row: Row) -> float:
    """How often the gate passed."""
    return row["outcomes"].get("passed", 0)


def goals_of_cells(rows: Sequence[Row]) -> list[Goal]:
    """S, D, kappa and states; blind spots are reported beside, not here."""
    known = [row for row in rows if row["kind"] != "blind spot" and row["prompts"] >= min(cells.PROMPTS)]
    many = [row for row in known if row["prompts"] >= 100]
    found = [
        bias_within(f"bias of {part}, largest of all learners, 100 prompts or more",
                    [(row["bias"][part], row["bias error"][part]) for row in many], 0.01)
        for part in ("swapped", "dependence")
    ]  # fmt: skip
    by = ("learner", "prompts")
    found += [
        at_least(
            f"coverage of {part}, worst learner and worst number of prompts", pooled(known, by, inside(part)), MIN_COVERAGE
        )
        for part in cells.PARTS
    ]
    skilled = [row for row in known if row["kind"] == "skilled" and row["truth"]["kappa"] >= LUCKY_KAPPA - 1e-6]
    without = [row for row in known if row["kind"] == "informationless"]
    cell_by = ("learner and prompts",)
    single = [{**row, "learner and prompts": (row["learner"], row["prompts"])} for row in skilled]
    at_200 = [row for row in known if row["prompts"] == 200]
    found += [
        at_most("cells of kappa .10 or more called lucky, worst cell",
                pooled(single, cell_by, states("lucky")), PERMUTATION_ALPHA),
        at_most("informationless cells called reachable, worst learner and number of prompts",
                pooled(without, by, states("reachable")), PERMUTATION_ALPHA),
        at_least("informationless cells called lucky at 200 prompts, all learners",
                 pooled([row for row in at_200 if row["kind"] == "informationless"], ("prompts",), states("lucky")), 0.8),
        at_least(f"called reachable at 200 prompts: {SKILLED}",
                 pooled([row for row in at_200 if row["learner"] == SKILLED], ("prompts",), states("reachable")), 0.8),
    ]  # fmt: skip
    return found


def goals_of_changes(rows: Sequence[Row]) -> list[Goal]:
    """Chance level, intervals, words and the gate."""
    part = {kind: [row for row in rows if row["part"] == kind] for kind in KINDS}
    chance = [row for row in part["chance"] if row["rows"] >= 30]
    named = [
        {**row, "design and seeds": (row["design"], row["seeds"]), "size": (row["items"], row["strata"])}
        for row in part["intervals"]
        if not changes.DESIGNS[row["design"]].bases and not changes.DESIGNS[row["design"]].alike
    ]
    alike = [
        {**row, "seeds and size": (row["seeds"], row["items"])}
        for row in part["intervals"]
        if changes.DESIGNS[row["design"]].alike
    ]
    default = [row for row in part["gate"] if row["default"]]
    by_cells = {
        name: pooled([row for row in default if row["loss"] == name], ("cells",), gate_passed) for name in changes.LOSSES
    }
    hidden = [row for row in default if row["loss"].startswith("90 %")]
    word = [{**row, "scene and seeds": (row["scene"], row["seeds"])} for row in part["words"]]
    return [
        bias_within("bias of the chance level against its own rule's success, 10 rows or more",
                    [(row["bias"], row["bias error"]) for row in part["chance"] if row["rows"] >= 10], 0.01),
        at_least("coverage of the chance level, 30 rows or more, worst kind of cell", [
            one for others in (True, False)
            for one in pooled([row for row in chance if row["other rows"] == others], ("kind",), lambda row: row["inside"])
        ], MIN_COVERAGE),
        at_least("coverage over seeds x items, worst design and seeds, worst size",
                 pooled(named, ("design and seeds", "size"), inside("seeds and items")), MIN_COVERAGE),
        at_least("coverage over seeds x items where 1 item in 100 moves alike in every seed, worst seeds and size",
                 pooled(alike, ("seeds and size",), inside("seeds and items")), MIN_COVERAGE),
        at_most("trials in which nothing is better that say improves of anything, worst scene",
                pooled(word, ("scene and seeds",), lambda row: row["any improves"]), 0.05),
        at_most("trials in which nothing is better that say improves of any cell, worst scene",
                pooled(word, ("scene and seeds",), lambda row: row["any cell improves"]), 0.05),
        at_most("trials in which nothing is better that say helps, worst scene",
                pooled(word, ("scene and seeds",), lambda row: row["helps"]), 0.05),
        at_most("gate passes a true loss of 5 points in every cell, default size: at most, by its mean's lower end",
                pooled(part["gate end"], ("part",), lambda row: row["passed"]), 0.025),
        at_least("gate passes an unharmed checkpoint, a fifth churned, default size, worst number of cells",
                 by_cells["unharmed"], 0.8),
        at_most("gate passes a loss of 50 points behind a commonest answer, worst number of cells",
                pooled(hidden, ("cells",), gate_passed), 0.025),
    ]  # fmt: skip


def limits(rows: Sequence[Row]) -> dict[str, Any]:
    """What is no goal and has to be known: blind spots, limits of information, designs in which the interval fails."""
    blind = [row for row in rows if row["part"] == "cells" and row["kind"] == "blind spot" and row["prompts"] == 200]
    without = [row for row in rows if row["part"] == "cells" and row["kind"] == "informationless" and row["prompts"] == 200]
    failing = [
        row
        for row in rows
        if row["part"] == "intervals" and (changes.DESIGNS[row["design"]].bases or changes.DESIGNS[row["design"]].alike)
    ]
    covered = [row for row in rows if row["part"] == "intervals"]
    low = [
        row
        for row in rows
        if row["part"] == "cells"
        and any(share_interval(row["inside"][part], row["times"]).high < MIN_COVERAGE for part in cells.PARTS)
    ]
    return {
        "blind spots, states at 200 prompts": {row["learner"]: row["states"] for row in blind},
        "lucky at 200 prompts, and the best power there can be": {
            row["learner"]: [states("lucky")(row) / row["times"], row["best power"]] for row in without
        },
        "cells of n prompts whose coverage is shown to be below the goal": [(row["learner"], row["prompts"]) for row in low],
        "coverage where the interval is known to fail": {
            f"{row['design']}, {row['seeds']} seeds, {row['items']} items": inside("seeds and items")(row) / row["times"]
            for row in failing
        },
        "coverage by way": {
            way: {name: mean_of([row for row in covered if row["design"] == name], inside(way)) for name in changes.DESIGNS}
            for way in ("seeds and items", "seeds and items, these bases", "seeds", "items")
        },
    }  # fmt: skip


def mean_of(rows: Sequence[Row], hits: Callable[[Row], float]) -> float:
    """Share of hits over all of these rows."""
    return sum(map(hits, rows)) / sum(row["times"] for row in rows)


def tables(rows: Sequence[Row]) -> dict[str, Any]:
    """Power of `improves`, and what the gate says, by size."""
    power = {}
    for row in rows:
        if row["part"] == "power":
            name = f"{row['gain']:g} gained, {row['seeds']} seeds, {row['items per cell']} items per cell"
            power[name] = row["words"].get("improves", 0) / row["times"]
    kept: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row["part"] == "gate":
            kept[f"{row['loss']}, {row['cells']} cells, {row['items per cell']} items each"].update(row["outcomes"])
    gate = {name: {word: n / count.total() for word, n in count.items()} for name, count in kept.items()}
    return {"power of improves": power, "gate": gate}


def jobs(quick: bool) -> list[Job]:
    """All simulations; a quick run has fewer, smaller and shorter ones."""
    one = 0.08 if quick else 1.0

    def times(full: int) -> int:
        return max(8, round(full * one))

    prompts = (10, 40, 200) if quick else (*cells.TINY, *cells.PROMPTS)
    seeds, sizes = ((3, 8), ((40, 1), (531, 17))) if quick else (changes.SEEDS, changes.SIZES)
    # the learners at the edge of what may be called lucky are looked at more often
    often = [(place, 1500 if "kappa" in fake.name else 400) for place, fake in enumerate(all_fakes())]
    found: list[Job] = [("cells", (place, n), times(full)) for n in prompts for place, full in often]
    for count in cells.ROWS:
        full = min(8000, max(2000, 80_000 // count))
        found += [("chance", (kind, count, other), times(full)) for kind in cells.CHANCES for other in (False, True)]
    found += [("intervals", (name, s, *size), times(400)) for name in changes.DESIGNS for s in seeds for size in sizes]
    parts = range(1 if quick else 4)
    found += [("words", (scene, s, part), times(500)) for scene in changes.SCENES for s in (5, 8) for part in parts]
    found += [
        ("power", (s, n, gain), times(100))
        for s in seeds
        for n in ITEMS_PER_CELL
        if n < 200 or not quick
        for gain in TESTED_GAINS
    ]
    exact = {"-5 in every cell": 250, "unharmed": 80}
    for name in changes.LOSSES:
        for number in (1, 4) if quick else PROTECTED_CELLS:
            full = exact.get(name, 20) if number < 17 else 10
            found += [("gate", (name, number, changes.DEFAULT, part), times(full)) for part in parts]
            if number in (1, 4, 17) and not quick:
                found += [("gate", (name, number, n, 0), times(40)) for n in (50, 100, 400)]
    found += [("gate end", (1, part), times(50_000)) for part in parts]
    return found + [("gate end", (number, 0), times(10_000)) for number in (2, 4, 8)]


def done(job: Job) -> dict[str, Any]:
    """One simulation."""
    kind, what, times = job
    # the number of replications stands before the part where there is one, so that parts differ in nothing but their draws
    return KINDS[kind]((*what[:-1], times, what[-1]) if kind in ("words", "gate", "gate end") else (*what, times))


def measure(quick: bool) -> Result:
    """All simulations; the headline is how often a trial in which nothing is better says that something is."""
    rows = run_in_processes(done, jobs(quick), say="simulation")
    widths = [row for own in run_in_processes(precision.rows_of, precision.jobs(quick)[::-1], say="widths") for row in own]
    goals = [*goals_of_cells([row for row in rows if row["part"] == "cells"]), *goals_of_changes(rows)]
    headline = next(goal.found for goal in goals if "say improves" in goal.name)
    goals += precision.goals_of(widths)
    for goal in goals:
        found = goal.found
        told = f"{found.value:.4f} [{found.low:.4f}, {found.high:.4f}]"
        print(f"{'reached' if goal.reached else 'MISSED':8} {told} {goal.goal:12} {goal.name}")
    figures = {"limits": limits(rows), **tables(rows), **precision.figures_of(widths)}
    settings = {
        "permutations": cells.PERMUTATION_ROUNDS,
        "trial": {"items": changes.CELLS, "task": changes.TASKS, "commonest": changes.COMMONEST, "skill": changes.SKILL},
        "churn": 2 * changes.UP,
        "cpu seconds": sum(row["cpu"] for row in rows),
        "precision": {"samples": precision.SAMPLES, "items": precision.ITEMS, "worlds": [*precision.WORLDS]},
    }
    unit = "share of simulated trials, in which nothing is better, that say improves of anything; the worst scene"
    return Result(headline, unit, [0], [*rows, *widths], figures, settings, goals=goals)

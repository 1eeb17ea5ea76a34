"""Study of what faults in training rows cost SmolLM2-135M-Instruct, and what the remedies of the product give back.

Worlds of 1,000 rows each, one LoRA training an arm, and 200 items that are answered greedily:

- `traces`: worked sums of two-digit numbers. Either some facts of digits always have the same wrong value, which goes on to
  the answer (`systematic`, some 30 % of the rows), or as many rows have a slip of random size at a random step. Items need
  such a fact (30 %, as in the rows) or not. The remedy leaves out the rows that the check `traces` lists; its null leaves
  out as many random ones. Another remedy leaves all rows in and takes the wrong steps that are listed out of the loss; its
  null takes as many random steps out.
- `cues`: whether a city is the capital of a country. Half of the questions have one of two words that decide nothing, and
  95 % of those with a word have the answer that goes with it. Items are about cities of their own, and have the word that
  goes with the answer, or the other one. The remedy adds copies of rows with the other word, as many as the list of the
  check `cues` asks for; its null adds as many further rows of the same kind. An upper bound has words at random.
- `holes`: tool calls, of which one tool never comes, and items ask for it, too. The remedy adds 100 rows of what the check
  `coverage` names; its nulls add as many of the other tools, at random or those nearest to the items by words (BM25).
- `unseen`: questions about names that nobody knows. 40 % of the rows have a note in the prompt, 20 % have none and the
  answer that this is not known, and 40 % answer from a note that is in a column alone. The remedies leave out the rows that
  the check `unseen` lists, or put the note into the prompt; the null leaves out as many random rows.
- `dilution`: the middle one of three numbers, behind 60 words that all rows share. The remedies of the check `dilution`
  leave these words out, or mask them in the loss.

Expectations, written before the first seed that counts; each is to be reached by the mean, with an interval without 0:

- `traces`, all items: `random` is at least 5 points above `systematic`.
- `traces`, all items: `systematic` without the listed rows is at least 5 points above `systematic` without random rows.
- `cues`, items whose word conflicts with the answer: minimal pairs are at least 10 points above random rows.
- `holes`, items of the missing tool: topped-up rows are at least 20 points above random rows.

And before those of `unseen`, `dilution` and of masks, after the results of the others:

- `traces`, all items: `systematic` with the listed steps masked is at least 5 points above random steps masked.
- `unseen`, items with nothing to know: without the listed rows at least 20 points above without random rows.
- `dilution`, all items: without the frame at least 5 points above with it. That is what the check presumes; the frame may
  as well be learnt in a few steps and then cost nothing.

All arms of a world have the same number of steps. Settings were chosen on seed 3, where capitals without a cue were not
learnt in 40 steps and to 77 % in 80, and with the cue all items that conflict with it were wrong. Two processes
of one thread run at once; each finished row is kept in `fault_costs.rows.jsonl`, and a run that was stopped goes on. Weights
are Q4_1, dequantised.

    python -m mixwright_lab.studies.fault_costs [--quick] [--report]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright_lab.conditions import conditions, device
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.fault_context import (
    LISTED_DROPPED,
    NOTED,
    NOTED_SHARE,
    TOLD,
    UNKNOWN,
    UNKNOWN_SHARE,
    UNSEEN,
)
from mixwright_lab.studies.fault_context import RANDOM_DROPPED as RANDOM_DROPPED_UNSEEN
from mixwright_lab.studies.fault_frame import DILUTION, FRAME, SHORTENED
from mixwright_lab.studies.fault_frame import MASKED as FRAME_MASKED
from mixwright_lab.studies.fault_parts import CONTEXT
from mixwright_lab.studies.fault_rows import (
    AGREES,
    ARMS,
    AS_IT_IS,
    CELLS,
    CONFLICTS,
    CUE_SHARE,
    CUES,
    FACT,
    FROZEN,
    HOLES,
    ITEMS,
    LEAST_CALLS,
    MASKED_NULL,
    MISSING,
    NO_CUE,
    OTHER,
    PAIRS,
    RANDOM,
    RANDOM_DROPPED,
    RANDOM_ROWS,
    ROWS,
    SIMILAR,
    SOUND,
    SYSTEMATIC,
    SYSTEMATIC_DROPPED,
    SYSTEMATIC_MASKED,
    SYSTEMATIC_NULL,
    TEST_PLACES,
    TOPPED_UP,
    TRACES,
    WORD_SHARE,
    WORLDS,
    WRONG_SHARE,
    Made,
    Row,
    make,
)
from mixwright_lab.studies.jobs import append_row, read_rows, run_in_processes, write_rows
from mixwright_lab.studies.real_models import MODEL, TRAINING
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, run

SEEDS, QUICK = (503, 541, 577, 607, 641), (3,)
ROWS_FILE = RESULTS / "fault_costs.rows.jsonl"
PLACE = Path("runs") / "fault_costs"
HOW: Mapping[str, Training] = {
    TRACES: replace(TRAINING, learning_rate=1.5e-3),
    CUES: replace(TRAINING, steps=80, learning_rate=1.5e-3),
    HOLES: TRAINING,
    UNSEEN: TRAINING,
    DILUTION: replace(TRAINING, steps=80),
}
GRADERS = {TRACES: "final_answer", CUES: "includes", HOLES: "exact", UNSEEN: "includes", DILUTION: "final_answer"}
ROOM = {TRACES: 56, CUES: 16, HOLES: 40, UNSEEN: 16, DILUTION: 112}
"""World -> tokens of an answer."""
ALL = "all"


@dataclass(frozen=True)
class FaultJob:
    """One arm of one world and seed."""

    world: str
    seed: int
    arm: str
    quick: bool = False


@dataclass(frozen=True)
class Difference:
    """One arm less another, in a cell."""

    world: str
    arm: str
    than: str
    cell: str = ALL
    least: float | None = None
    """Points that were expected."""

    @property
    def name(self) -> str:
        """In words."""
        return f"{self.world}, {self.cell} items: {self.arm} less {self.than}, points"


EXPECTED = (
    Difference(TRACES, RANDOM, SYSTEMATIC, least=5.0),
    Difference(TRACES, SYSTEMATIC_DROPPED, SYSTEMATIC_NULL, least=5.0),
    Difference(CUES, PAIRS, RANDOM_ROWS, CONFLICTS, least=10.0),
    Difference(HOLES, TOPPED_UP, RANDOM_ROWS, MISSING, least=20.0),
    Difference(TRACES, SYSTEMATIC_MASKED, MASKED_NULL, least=5.0),
    Difference(UNSEEN, LISTED_DROPPED, RANDOM_DROPPED_UNSEEN, UNKNOWN, least=20.0),
    Difference(DILUTION, SHORTENED, AS_IT_IS, least=5.0),
)
OTHERS = (
    *(Difference(TRACES, SOUND, arm) for arm in (SYSTEMATIC, RANDOM)),
    *(Difference(TRACES, RANDOM, SYSTEMATIC, cell) for cell in (FACT, OTHER)),
    *(Difference(TRACES, SYSTEMATIC_DROPPED, SYSTEMATIC_NULL, cell) for cell in (FACT, OTHER)),
    *(Difference(TRACES, SYSTEMATIC_DROPPED, than) for than in (SYSTEMATIC, SOUND)),
    *(Difference(TRACES, RANDOM_DROPPED, than) for than in (RANDOM, SOUND)),
    Difference(CUES, PAIRS, RANDOM_ROWS, AGREES),
    *(Difference(CUES, PAIRS, than, CONFLICTS) for than in (AS_IT_IS, NO_CUE)),
    *(Difference(CUES, NO_CUE, AS_IT_IS, cell) for cell in (CONFLICTS, AGREES)),
    Difference(HOLES, TOPPED_UP, RANDOM_ROWS, OTHER),
    *(Difference(HOLES, TOPPED_UP, than, MISSING) for than in (SIMILAR, AS_IT_IS)),
    *(Difference(HOLES, than, AS_IT_IS, MISSING) for than in (RANDOM_ROWS, SIMILAR)),
    *(Difference(TRACES, SYSTEMATIC_MASKED, than) for than in (SYSTEMATIC, SYSTEMATIC_DROPPED, SOUND)),
    *(Difference(TRACES, SYSTEMATIC_MASKED, MASKED_NULL, cell) for cell in (FACT, OTHER)),
    *(Difference(UNSEEN, LISTED_DROPPED, than, UNKNOWN) for than in (AS_IT_IS, TOLD)),
    *(Difference(UNSEEN, LISTED_DROPPED, than, NOTED) for than in (RANDOM_DROPPED_UNSEEN, AS_IT_IS, TOLD)),
    Difference(UNSEEN, TOLD, RANDOM_DROPPED_UNSEEN, UNKNOWN),
    *(Difference(DILUTION, FRAME_MASKED, than) for than in (AS_IT_IS, SHORTENED)),
)


def answers_of(job: FaultJob) -> tuple[list[list[Any]], dict[str, Any]]:
    """Greedy answers [item, cell, score, completion] of an arm's model, and remarks on its rows."""
    from mixwright.config import CorpusConfig, MeasureConfig
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import load_learner
    from mixwright.measure.stage import measure_learner

    made, place = make(job.world, job.seed, job.arm), folder_of(job)
    items, model, remarks = few_of_each(made, job.world) if job.quick else made.items, MODEL, made.remarks
    if job.arm != FROZEN:
        rows = write_rows(place / "rows.jsonl", (_without(row, "right", "word", CONTEXT) for row in made.rows))
        how = replace(HOW[job.world], steps=2) if job.quick else HOW[job.world]
        fine_tune(MODEL, rows, place / "model", how, seed=job.seed)
        model, remarks = str(place / "model"), remarks | {"rows": len(made.rows)}
    path = write_rows(place / "items.jsonl", (_without(item, "cell") for item in items))
    corpus = read_corpus(CorpusConfig(str(path), eval_share=0.0, graders={job.world: GRADERS[job.world]}))
    config = MeasureConfig(items=len(items), samples=0, max_new_tokens=ROOM[job.world], probes=("competence",))
    found = measure_learner(load_learner(model), corpus, config, seed=job.seed).completions
    cells = {item["id"]: item["cell"] for item in items}
    return [[row["example"], cells[row["example"]], row["score"], row["completion"]] for row in found], remarks


def folder_of(job: FaultJob) -> Path:
    """Of the files of a job, which no other one writes to."""
    names = (job.world, str(job.seed), job.arm.replace(", ", "-").replace(" ", "-"), *(["quick"] if job.quick else []))
    return PLACE / "-".join(names)


def few_of_each(made: Made, world: str) -> list[Row]:
    """Three items of each cell."""
    return [item for cell in CELLS[world] for item in [one for one in made.items if one["cell"] == cell][:3]]


def _without(row: Row, *names: str) -> Row:
    return {key: value for key, value in row.items() if key not in names}


def do_job(job: FaultJob) -> None:
    """One row."""
    began = time.monotonic()
    folder_of(job).mkdir(parents=True, exist_ok=True)
    answers, remarks = answers_of(job)
    row = {"world": job.world, "seed": job.seed, "arm": job.arm, "settings": settings(job.world)}
    row |= {"commit": conditions()["commit"], "device": device(), "seconds": round(time.monotonic() - began)}
    append_row(rows_file(job.quick), row | {"remarks": remarks, "answers": answers})


def rows_file(quick: bool) -> Path:
    """Where rows are kept."""
    return PLACE / "quick.jsonl" if quick else ROWS_FILE


def settings(world: str) -> dict[str, Any]:
    """What has to be the same for rows of a world to stand in one table."""
    faults: dict[str, list[Any]] = {TRACES: [WRONG_SHARE], CUES: [WORD_SHARE, CUE_SHARE, TEST_PLACES], HOLES: [LEAST_CALLS]}
    faults |= {UNSEEN: [NOTED_SHARE, UNKNOWN_SHARE], DILUTION: [FRAME]}
    return {"training": list(astuple(HOW[world])), "rows": [ROWS, ITEMS], "fault": faults[world], "room": ROOM[world]}


def kept_rows(quick: bool) -> list[dict[str, Any]]:
    """Rows of these settings."""
    return [row for row in read_rows(rows_file(quick)) if row["settings"] == settings(row["world"])]


def jobs_left(quick: bool) -> list[FaultJob]:
    """Every arm of every world and seed that has no row yet; the quick ones are always made anew."""
    known = set() if quick else {(row["world"], row["seed"], row["arm"]) for row in kept_rows(quick)}
    return [
        FaultJob(world, seed, arm, quick)
        for seed in (QUICK if quick else SEEDS)
        for world in WORLDS
        for arm in ARMS[world]
        if (world, seed, arm) not in known
    ]


def success(row: Mapping[str, Any], cell: str = ALL) -> float:
    """Points of a cell's items, or of all."""
    scores = [score for _, own, score, _ in row["answers"] if cell in (ALL, own)]
    return 100 * sum(scores) / len(scores)


def values_of(rows: Sequence[Mapping[str, Any]], one: Difference) -> list[float]:
    """Points of each seed that has both arms."""
    by_key = {(row["seed"], row["arm"]): success(row, one.cell) for row in rows if row["world"] == one.world}
    seeds = [seed for seed, arm in by_key if arm == one.arm and (seed, one.than) in by_key]
    return [by_key[seed, one.arm] - by_key[seed, one.than] for seed in seeds]


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """What was expected."""
    goals = []
    for one in EXPECTED:
        values, goal = values_of(rows, one), f">= {one.least:g}, low > 0"
        found = interval(values) if len(values) > 1 else Interval(0.0, -100.0, 100.0, len(values))
        goals.append(Goal(one.name, found, goal, found.value >= (one.least or 0.0) and found.low > 0))
    return goals


def figures_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Points of each arm, by cell, and the differences."""
    found: dict[str, Any] = {}
    for world in WORLDS:
        for arm in ARMS[world]:
            own = [row for row in rows if (row["world"], row["arm"]) == (world, arm)]
            if len(own) > 1:
                cells = {cell: [success(row, cell) for row in own] for cell in (ALL, *CELLS[world])}
                found[f"{world}: {arm}"] = {cell: _rounded(values) for cell, values in cells.items()}
    for one in (*EXPECTED, *OTHERS):
        values = values_of(rows, one)
        if len(values) > 1:
            found[one.name] = _rounded(values)
    return found


def _rounded(values: Sequence[float]) -> list[float]:
    one = interval(values)
    return [round(value, 2) for value in (one.value, one.low, one.high)]


def measure(quick: bool, begin: bool = True) -> Result:
    """The arms that are left."""
    if quick:
        rows_file(quick).unlink(missing_ok=True)
    run_in_processes(do_job, jobs_left(quick) if begin else [], say="arm")
    rows = kept_rows(quick)
    for row in rows:
        shares = ", ".join(f"{cell} {success(row, cell):.1f}" for cell in CELLS[row["world"]])
        print(row["world"], row["seed"], row["arm"], shares, row["remarks"], file=sys.stderr)
    goals = goals_of(rows)
    short = [{name: value for name, value in row.items() if name not in ("answers", "settings")} for row in rows]
    unit = "points of worked sums, rows with random slips less as many rows with systematic ones"
    about = {world: settings(world) for world in WORLDS}
    return Result(goals[0].found, unit, QUICK if quick else SEEDS, short, figures_of(rows), about, goals=goals)


if __name__ == "__main__":
    run("fault_costs", __doc__, measure, kept=True)

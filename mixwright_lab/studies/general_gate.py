"""Study of `mixwright verdict BASE TUNED` without a file: does it stop ruined models early, and let harmless ones pass?

Adapters of SmolLM2-135M-Instruct as the study `general` trains them, three new tasks:

- ten ruined: six on new rows alone, four on `marked` ones, which keep as little;
- six harmless: as many steps on the model's own answers to chat prompts, three of them at a tenth of the rate;
- four in between: a tenth or a quarter of general replay.

Each gets the verdict of a user, on two groups of kinds with the default margin of 5 points and 16 interim analyses. What is
true of it is read on a draw of its own (400 items of a group), on which also the rule of the strongest peer is tried:
damaged where a kind of 20 items falls by more than .05. From these answers whole verdicts are simulated, with as many items
as the real one has: how often a model with this true change passes, and is called damaged. They take what 50 items of a kind
show for its truth, and kinds fall by 14 points by chance (`comparison`), so they expect too many damaged ones; seen after
the run, and a second simulation was added, in which all kinds of a group change alike.

Goals, fixed before the run: every ruined model leaves with 3, after at most 300 items; no harmless one does; harmless ones
leave with 0 no more than two times fewer than the simulation expects.

Source: interim analyses after O'Brien and Fleming (1979); the peer's rule as its documentation states it.
Unit: one model.
Cost: one to 27 minutes of one busy thread for a model; a training where the adapter is not there.
Blind spot: one model of 135M parameters, three sealed kinds that suit it; what is true is known to about 4 points, and the
    other items lack `no_tool`, which the verdicts ask.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.general_gate [--quick] [--report]
"""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.estimates.intervals import share_interval
from mixwright.estimates.looks import MAX_LOOKS, Look
from mixwright.estimates.outcome import ItemScores
from mixwright.records import Interval
from mixwright.suite.draw import RING_ITEMS, SEALED_FAMILIES, draw_to_compare
from mixwright.verbs.compare import FIRST_ITEMS
from mixwright.verbs.general import REPLAYED, SEALED
from mixwright.verdict.rules.gate import check_sides
from mixwright.verdict.rules.gate_question import GateQuestion
from mixwright_lab.conditions import conditions
from mixwright_lab.demo.training import fine_tune
from mixwright_lab.studies import general
from mixwright_lab.studies.general import CONTROL, GENERAL, MARKED, MODEL, MORE, NEW, ROOM, TRAINING, GeneralJob, rungs
from mixwright_lab.studies.jobs import append_row, read_rows, run_in_processes, write_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

RUINED, HARMLESS, BETWEEN, GENTLE = "ruined", "harmless", "in between", "control, a tenth of the rate"
MODELS = (
    *((RUINED, world, seed, NEW) for world in general.WORLDS for seed in (223, 227)),
    *((RUINED, world, 223, MARKED) for world in general.WORLDS),
    (RUINED, "tools", 227, MARKED),
    *((HARMLESS, world, 223, arm) for world in general.WORLDS for arm in (CONTROL, GENTLE)),
    *((BETWEEN, "tools", 223, arm) for arm in (GENERAL, MORE)),
    *((BETWEEN, "queues", 223, arm) for arm in (GENERAL, MORE)),
)
ROWS_FILE, PLACE = RESULTS / "general_gate.rows.jsonl", Path("runs") / "general_gate"
FRESH_SEED, FRESH_ITEMS = 88, 400
"""Seed of the draw that tells what is true, and its items of a group."""
PEER_ITEMS, PEER_DROP = 20, 0.05
SIMULATED = 60
MOST_ITEMS, MOST_FEWER = 300, 2


@dataclass(frozen=True)
class GateJob:
    """One model."""

    kind: str
    world: str
    seed: int
    arm: str
    rows: Path = ROWS_FILE
    """File that the finished row is appended to."""

    @property
    def name(self) -> str:
        """Name of its folder."""
        return re.sub(r"\W+", "_", f"{self.world} {self.seed} {self.arm}").strip("_")


def adapter(job: GateJob) -> Path:
    """Folder of the adapter, trained where it is not there."""
    folder = PLACE / "models" / job.name
    if not (folder / "adapter_model.safetensors").is_file():
        if job.arm == GENTLE:
            rows = general.rows_of(job.world, job.seed, CONTROL)
            steps, rate = -(-len(rows) // TRAINING.batch), TRAINING.learning_rate / 10
            how = replace(TRAINING, steps=steps, learning_rate=rate)
            fine_tune(MODEL, write_rows(folder / "rows.jsonl", rows), folder, how, seed=job.seed, at_once=general.AT_ONCE)
        else:
            general.make_model(GeneralJob(job.world, job.seed, job.arm), folder)
    return folder


def fresh_items() -> list[dict[str, Any]]:
    """Draw items that no verdict asks, as many of a group as of the other, kinds alike; the first ones are the peer's."""
    rows, sealed = draw_to_compare(rungs(), seed=FRESH_SEED), {family.name for family in SEALED_FAMILIES}
    by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in random.Random(FRESH_SEED).sample(rows, len(rows)):
        by_kind[row["task"]].append(row | {"ring": SEALED if row["task"] in sealed else REPLAYED})
    count = Counter(rows[0]["ring"] for rows in by_kind.values())
    return [row for rows in by_kind.values() for row in rows[: FRESH_ITEMS // count[rows[0]["ring"]]]]


def answer(source: str, items: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Answer and grade the items: group, kind, item, score."""
    from mixwright.learner.load import load_learner

    with tempfile.TemporaryDirectory() as folder:
        found = general.answer(load_learner(source), items, Path(folder), re.compile("$^"))
    return [row[:4] for row in found]


def do_job(job: GateJob) -> None:
    """Train where need be, ask for the verdict, answer the fresh items, and append a row."""
    folder, out = adapter(job), PLACE / "verdicts" / job.name
    began = time.monotonic()
    command = [sys.executable, "-m", "mixwright", "verdict", MODEL, str(folder), "--max-new-tokens", str(ROOM)]
    told = subprocess.run([*command, "--folder", str(out)], capture_output=True, text=True, check=False)
    seconds = round(time.monotonic() - began)
    if told.returncode not in (0, 3, 4):
        raise RuntimeError(told.stderr[-2000:])
    gate = json.loads((out / "gate.json").read_text(encoding="utf-8"))
    items = fresh_items()
    if job.kind == RUINED:
        seen = Counter[str]()
        items = [row for row in items if (seen.update([row["task"]]) or seen[row["task"]] <= PEER_ITEMS)]
    row = {"kind": job.kind, "world": job.world, "seed": job.seed, "arm": job.arm, "commit": conditions()["commit"]}
    row |= {"code": told.returncode, "look": gate["look"], "seconds": seconds, "headline": told.stdout.split("\n\n")[0]}
    append_row(job.rows, row | {"fresh": answer(str(folder), items)})


Row = Mapping[str, Any]


def pairs_by_kind(row: Row, before: Sequence[Sequence[Any]]) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Scores before and after of the fresh items, by group and kind."""
    was, found = {one[2]: one[3] for one in before}, defaultdict(list)
    for ring, kind, item, score in row["fresh"]:
        found[ring, kind].append((was[item], score))
    return found


def change(row: Row, before: Sequence[Sequence[Any]], ring: str) -> Interval:
    """Change of a group in points, kinds alike, on the fresh items; the interval is that of independent items."""
    kinds = [pairs for (own, _), pairs in pairs_by_kind(row, before).items() if own == ring]
    differences = [np.array([after - was for was, after in pairs]) for pairs in kinds]
    value = 100 * float(np.mean([each.mean() for each in differences]))
    half = 196 * float(np.sqrt(sum(each.var(ddof=1) / len(each) for each in differences))) / len(differences)
    return Interval(value, value - half, value + half, sum(map(len, differences)))


def falls_by_peer(row: Row, before: Sequence[Sequence[Any]]) -> list[str]:
    """Kinds that the peer's rule calls damaged."""
    means = {
        kind: [statistics.mean(side) for side in zip(*pairs[:PEER_ITEMS], strict=True)]
        for (_, kind), pairs in pairs_by_kind(row, before).items()
    }
    return [kind for kind, (was, now) in means.items() if was - now > PEER_DROP + 1e-9]


@dataclass(frozen=True)
class Simulation:
    """A model whose verdict is simulated."""

    pairs: Mapping[tuple[str, str], Sequence[tuple[float, float]]]
    seed: int


def simulate(given: Simulation) -> str:
    """Return what the gate says of items drawn again, look by look, as it reads them in a verdict."""
    rng, drawn = np.random.default_rng(given.seed), dict[str, np.ndarray]()
    rings: dict[str, tuple[str, ...]] = {}
    for ring, kind in given.pairs:
        rings[ring] = (*rings.get(ring, ()), kind)
    for (ring, kind), pairs in given.pairs.items():
        drawn[kind] = np.array(pairs)[rng.integers(len(pairs), size=RING_ITEMS // len(rings[ring]))]
    total, outcome = sum(map(len, drawn.values())), ""
    for number in range(1, MAX_LOOKS + 1):
        sides: list[dict[tuple[str, float | None, str], float]] = [{}, {}]
        for kind, values in drawn.items():
            for place, value in enumerate(values[: max(FIRST_ITEMS, -(-len(values) * number // MAX_LOOKS))]):
                for side, score in zip(sides, value, strict=True):
                    side[kind, None, str(place)] = float(score)
        look = Look(number, len(sides[0]), total, MAX_LOOKS)
        question = GateQuestion(rings=tuple(rings.items()), look=look)
        outcome = check_sides(
            ([ItemScores.of({"greedy": sides[0]})], [ItemScores.of({"greedy": sides[1]})]), "greedy", question
        ).outcome
        if outcome != "inconclusive":
            break
    return outcome


def table(rows: Sequence[Row], before: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
    """A line for each model: the verdict, what is true, what the simulation expects, and the peer's rule."""
    found = []
    for row in rows:
        line = {name: row[name] for name in ("kind", "world", "seed", "arm", "code", "seconds", "headline", "commit")}
        line |= {"items": row["look"]["items"], "look": row["look"]["number"]}
        line["peer"] = falls_by_peer(row, before)
        for ring in (REPLAYED, SEALED):
            true = change(row, before, ring)
            line[f"true change, {ring}"] = [round(value, 1) for value in (true.value, true.low, true.high)]
        if row["kind"] != RUINED:
            pairs = pairs_by_kind(row, before)
            pools = {key: [pair for (ring, _), own in pairs.items() if ring == key[0] for pair in own] for key in pairs}
            for name, drawn_from in (("simulated", pairs), ("simulated, kinds alike", pools)):
                jobs = [Simulation(drawn_from, seed) for seed in range(SIMULATED)]
                outcomes = Counter(run_in_processes(simulate, jobs, chunk=10))
                line[name] = {outcome: count / SIMULATED for outcome, count in outcomes.items()}
        found.append(line)
    return found


def goals_of(lines: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """Return what was fixed before the run; none is reached before all models of its kind were judged."""
    by_kind = {kind: [line for line in lines if line["kind"] == kind] for kind in (RUINED, HARMLESS, BETWEEN)}

    def goal(name: str, kind: str, found: int, text: str, reached: bool) -> Goal:
        count, planned = len(by_kind[kind]), sum(model[0] == kind for model in MODELS)
        return Goal(
            name, share_interval(found, count) if count else Interval(0, 0, 1, 0), text, count == planned and reached
        )

    ruined, harmless = by_kind[RUINED], by_kind[HARMLESS]
    stopped, early = [line for line in ruined if line["code"] == 3], [line for line in ruined if line["items"] <= MOST_ITEMS]
    damaged, passed = ([line for line in harmless if line["code"] == code] for code in (3, 0))
    expected = sum(line["simulated"].get("passed", 0.0) for line in harmless)
    text = f">= {expected:.1f} expected - {MOST_FEWER}, of {len(harmless)}"
    return [
        goal("ruined: exit code 3", RUINED, len(stopped), "10 of 10", len(stopped) == len(ruined)),
        goal(f"ruined: at most {MOST_ITEMS} items", RUINED, len(early), "10 of 10", len(early) == len(ruined)),
        goal("harmless: exit code 3", HARMLESS, len(damaged), "0 of 6", not damaged),
        goal("harmless: exit code 0", HARMLESS, len(passed), text, len(passed) >= expected - MOST_FEWER),
    ]


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the jobs that are left; the headline is the share of ruined models that are stopped."""
    rows = PLACE / "quick.rows.jsonl" if quick else ROWS_FILE
    wanted = [GateJob(*one, rows) for one in ((MODELS[0], MODELS[10]) if quick else MODELS)]
    done = {(row["world"], row["seed"], row["arm"]) for row in read_rows(rows)}
    os.environ["MIXWRIGHT_STORE"] = str(PLACE.resolve() / "store")
    path = PLACE / "before.jsonl"
    if begin:
        if not path.is_file():
            write_rows(path, [{"fresh": answer(MODEL, fresh_items())}])
        jobs = [job for job in wanted if (job.world, job.seed, job.arm) not in done]
        run_in_processes(do_job, jobs, say="model")
    before = read_rows(path)[0]["fresh"]
    lines = table(read_rows(rows), before)
    goals = goals_of(lines)
    by_kind = {kind: [bool(line["peer"]) for line in lines if line["kind"] == kind] for kind in (RUINED, HARMLESS, BETWEEN)}
    peer = {kind: f"{sum(damaged)} of {len(damaged)}" for kind, damaged in by_kind.items()}
    figures = {"peer's rule: damaged": peer}
    about = {"margin": "default", "looks": MAX_LOOKS, "fresh": FRESH_ITEMS, "answers": ROWS_FILE.name}
    return Result(goals[0].found, goals[0].name, (223, 227), lines, figures, about, goals=goals)


if __name__ == "__main__":
    run("general_gate", __doc__, measure, kept=True)

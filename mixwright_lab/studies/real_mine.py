"""Study of mined rows on SmolLM2-135M-Instruct: a third of 1,500 tool calls is systematically wrong, or none is.

In the first world 75 % of the rows of three to five tools call another tool, always the same one, so that a third of all
rows is wrong and most rows of those tools are; 96 rows that somebody has checked stand beside them as a task of their own.
In the second world nothing is wrong, and keeping all rows is right. Miners of the product choose half of the rows:
`influence` (by gradients, with the checked rows as targets) and `pruning` (its easy and its hard end; the test that chooses
between them takes 28 short trainings and is left out for its price). Rules beside them: as many random rows, the checked
rows alone, all rows, the right rows alone (nobody knows them), and not training. Every arm is 40 steps of 16 rows with LoRA.

Goal, written before the first seed that counts: in the first world `influence` gains at least 5 points of tool calls over
as many random rows, interval without 0. What each miner loses to all rows in the second world is reported, and no goal.

Both miners fell short, and lost where nothing was wrong. `trusted`, which leaves out rows that a model of the checked rows
finds unlikely, was written after that and is tried on later seeds, beside all, random and checked rows. Its goals, written
before them: 5 points over random rows in the first world, interval without 0; in the second at most 5 points under all
rows, at the interval's end. It is reported against the checked rows alone, and no goal.
On seed 3 it left out 99.6 % of the wrong rows and 6.6 % of the right ones at an error of .1, and 83 % and 1.3 % at .05; .1
became its default.

Settings were chosen on seed 3. Two processes of one thread run at once; each finished row is kept in `real_mine.rows.jsonl`,
and a run that was stopped goes on. Weights are Q4_1, dequantised.

    python -m mixwright_lab.studies.real_mine [--quick] [--report]
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.everyday import tool_calls
from mixwright_lab.studies.jobs import append_row, read_rows, row_of, run_in_processes, without_answers, write_rows
from mixwright_lab.studies.real_models import MODEL, TRAINING
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, run

SEEDS, LATER_SEEDS, QUICK = (307, 331, 353, 379, 401), (521, 547, 569, 593, 617), (3,)
ROWS_FILE = RESULTS / "real_mine.rows.jsonl"
PLACE = Path("runs") / "real_mine"
WRONG, CLEAN = "a third wrong", "none wrong"
FROZEN, ALL, RANDOM, CHECKED, RIGHT = "frozen", "all rows", "random rows", "checked rows alone", "right rows alone"
INFLUENCE, EASY, HARD, TRUSTED = "influence", "pruning, easy end", "pruning, hard end", "trusted"
ARMS, LATER_ARMS = (FROZEN, ALL, RANDOM, CHECKED, RIGHT, INFLUENCE, EASY, HARD), (ALL, RANDOM, CHECKED, TRUSTED)
ROWS, CHECKED_ROWS, ITEMS, ROOM = 1500, 96, 200, 40
KEEP, WRONG_SHARE, WRONG_WITHIN = 0.5, 1 / 3, 0.75
"""Share of the rows that is kept; wrong rows of all, and of the rows of a tool that is called wrongly."""
LEAST_GAIN = 5.0


@dataclass(frozen=True)
class MineJob:
    """One arm of one world and seed."""

    world: str
    seed: int
    arm: str
    quick: bool = False


def make_rows(world: str, seed: int) -> tuple[list[dict[str, Any]], list[dict[str, str]]]:
    """Training rows with whether each is right, and test items."""
    rng = random.Random(seed)
    calls, held_out = tool_calls(rng)
    test = [{"task": "calls", "prompt": prompt, "answer": call} for prompt, call in held_out[:ITEMS]]
    rows = [
        {"id": f"row{n}", "task": "calls", "prompt": prompt, "completion": call, "right": True}
        for n, (prompt, call) in enumerate(calls[:ROWS])
    ]
    checked = [
        {"id": f"checked{n}", "task": "checked", "prompt": prompt, "completion": call, "right": True}
        for n, (prompt, call) in enumerate(calls[ROWS : ROWS + CHECKED_ROWS])
    ]
    if world == WRONG:
        _spoil(rows, rng)
    return rows + checked, test


def _spoil(rows: Sequence[dict[str, Any]], rng: random.Random) -> None:
    """Make a third of the rows call another tool, tool after tool until there are enough."""
    by_tool: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_tool.setdefault(json.loads(row["completion"])["tool"], []).append(row)
    tools = rng.sample(sorted(by_tool), len(by_tool))
    left = round(WRONG_SHARE * len(rows))
    for tool, other in zip(tools, [*tools[1:], tools[0]], strict=True):
        spoilt = rng.sample(by_tool[tool], min(left, round(WRONG_WITHIN * len(by_tool[tool]))))
        for row in spoilt:
            row |= {"completion": json.dumps(json.loads(row["completion"]) | {"tool": other}), "right": False}
        left -= len(spoilt)
        if not left:
            return


class World:
    """Rows of one seed in a folder, and what each miner chose of them: mined where it is not there."""

    def __init__(self, folder: Path, world: str, seed: int, *, quick: bool) -> None:
        """Write the rows."""
        self.folder, self.seed, self.quick = folder, seed, quick
        folder.mkdir(parents=True, exist_ok=True)
        self.rows, self.test = make_rows(world, seed)
        if quick:
            self.rows, self.test = [*self.rows[:40], *self.rows[-8:]], self.test[:6]

    def chosen(self, arm: str) -> list[dict[str, Any]]:
        """The rows that an arm trains on."""
        calls = [row for row in self.rows if row["task"] == "calls"]
        checked = [row for row in self.rows if row["task"] == "checked"]
        if arm == ALL:
            return self.rows
        if arm == CHECKED:
            return checked
        if arm == RIGHT:
            return [row for row in self.rows if row["right"]]
        count = round(KEEP * len(self.rows))
        if arm == RANDOM:
            return random.Random(self.seed).sample(calls, count)
        ids = self._mine(arm)
        return [row for row in self.rows if row["id"] in ids]

    def _mine(self, arm: str) -> set[str]:
        """Ids that a miner of the product chose."""
        import pyarrow.parquet as pq

        from mixwright import api
        from mixwright.config import CorpusConfig, MineConfig, ModelConfig, RunConfig, TrainConfig, TrialConfig

        miner = arm.partition(",")[0]
        options: dict[str, Any] = {} if miner == TRUSTED else {"keep": KEEP}
        options |= {"end": "easy" if arm == EASY else "hard"} if arm in (EASY, HARD) else {"targets": ["checked"]}
        if self.quick and miner == TRUSTED:
            options |= {"steps": 2, "error": 0.3}
        train, test = (
            self._write(f"{name}-{arm}.jsonl", part) for name, part in (("train", self.rows), ("test", self.test))
        )
        config = RunConfig(
            CorpusConfig(str(train), eval=str(test), graders={"calls": "exact", "checked": "exact"}),
            model=ModelConfig(path=MODEL),
            train=TrainConfig(objective="sft"),
            mine=MineConfig(options={miner: options}),
            trial=TrialConfig(workers=1),
            seed=self.seed,
        )
        folder = self.folder / f"run-{arm.replace(', ', '-').replace(' ', '-')}"
        path = api.mine(config, folder=folder, miner=miner).path
        return set(pq.read_table(path).column("id").to_pylist())

    def _write(self, name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
        kept = [{key: value for key, value in row.items() if key != "right"} for row in rows]
        return write_rows(self.folder / name, kept)

    def measure(self, arm: str) -> tuple[list[list[Any]], dict[str, Any]]:
        """Greedy answers [item, score, completion] of an arm's model, and how many rows it had and how many were right."""
        from mixwright.config import CorpusConfig, MeasureConfig
        from mixwright.corpus import read_corpus
        from mixwright.learner.load import load_learner
        from mixwright.measure.stage import measure_learner

        model, remarks = MODEL, {}
        name = arm.replace(", ", "-").replace(" ", "-")
        if arm != FROZEN:
            rows = self.chosen(arm)
            remarks = {"rows": len(rows), "right": sum(row["right"] for row in rows)}
            out = self.folder / "models" / name
            how: Training = replace(TRAINING, steps=2) if self.quick else TRAINING
            fine_tune(MODEL, self._write(f"rows-{name}.jsonl", rows), out, how, seed=self.seed)
            model = str(out)
        path = self._write(f"items-{name}.jsonl", self.test)
        corpus = read_corpus(CorpusConfig(str(path), eval_share=0.0, graders={"calls": "exact"}))
        config = MeasureConfig(items=len(self.test), samples=0, max_new_tokens=ROOM, probes=("competence",))
        found = measure_learner(load_learner(model), corpus, config, seed=self.seed).completions
        return [[row["example"], row["score"], row["completion"]] for row in found], remarks


def do_job(job: MineJob) -> None:
    """One row."""
    place = PLACE / ("quick" if job.quick else f"{job.world.replace(' ', '-')}-{job.seed}")
    began = time.monotonic()
    answers, remarks = World(place, job.world, job.seed, quick=job.quick).measure(job.arm)
    row = {"world": job.world, "seed": job.seed, "arm": job.arm, "settings": settings()} | row_of(began)
    append_row(PLACE / "quick.jsonl" if job.quick else ROWS_FILE, row | {"remarks": remarks, "answers": answers})


def settings() -> dict[str, Any]:
    """What has to be the same for rows to stand in one table."""
    how = TRAINING
    return {
        "training": [how.steps, how.batch, how.rank, how.learning_rate],
        "rows": [ROWS, CHECKED_ROWS, ITEMS],
        "keep": KEEP,
        "wrong": [round(WRONG_SHARE, 3), WRONG_WITHIN],
    }


def success(row: Mapping[str, Any]) -> float:
    """Points of tool calls."""
    return 100 * sum(answer[1] for answer in row["answers"]) / len(row["answers"])


def differences(rows: Sequence[Mapping[str, Any]], world: str, arm: str, than: str) -> list[float]:
    """Points of an arm less another, of every seed that has both."""
    by_key = {(row["world"], row["seed"], row["arm"]): success(row) for row in rows}
    seeds = [seed for w, seed, a in by_key if (w, a) == (world, arm) and (world, seed, than) in by_key]
    return [by_key[world, seed, arm] - by_key[world, seed, than] for seed in seeds]


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """What was expected of each miner; nothing is reached before all seeds are there."""
    goals = []
    for arm, seeds in ((INFLUENCE, SEEDS), (TRUSTED, LATER_SEEDS)):
        gain = _difference(rows, WRONG, arm, RANDOM)
        reached = gain.value >= LEAST_GAIN and gain.low > 0 and len(differences(rows, WRONG, arm, RANDOM)) == len(seeds)
        goals.append(Goal(f"{WRONG}: {arm} less {RANDOM}, points", gain, f">= {LEAST_GAIN:g}, low > 0", reached))
    lost = _difference(rows, CLEAN, TRUSTED, ALL)
    kept = lost.low >= -LEAST_GAIN and len(differences(rows, CLEAN, TRUSTED, ALL)) == len(LATER_SEEDS)
    goals.append(Goal(f"{CLEAN}: {TRUSTED} less {ALL}, points", lost, f"low >= {-LEAST_GAIN:g}", kept))
    return goals


def _difference(rows: Sequence[Mapping[str, Any]], world: str, arm: str, than: str) -> Interval:
    found = differences(rows, world, arm, than)
    return interval(found) if len(found) > 1 else Interval(0.0, -100.0, 100.0, len(found))


def figures_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Each arm less random rows and less all rows, in both worlds."""
    found: dict[str, Any] = {}
    for world in (WRONG, CLEAN):
        for arm in (*ARMS, TRUSTED):
            for than in (RANDOM, ALL, CHECKED):
                values = differences(rows, world, arm, than)
                if arm != than and len(values) > 1:
                    one = interval(values)
                    found[f"{world}: {arm} less {than}"] = [round(v, 2) for v in (one.value, one.low, one.high)]
    return found


def kept_rows() -> list[dict[str, Any]]:
    """Finished rows of these settings."""
    return [row for row in read_rows(ROWS_FILE) if row["settings"] == settings()]


def jobs_left(quick: bool) -> list[MineJob]:
    """What has no row yet, a seed and a world after the other; the small version has every arm of the first world."""
    wanted = ((QUICK, (*ARMS, TRUSTED)),) if quick else ((SEEDS, ARMS), (LATER_SEEDS, LATER_ARMS))
    known = set() if quick else {(row["world"], row["seed"], row["arm"]) for row in kept_rows()}
    return [
        MineJob(world, seed, arm, quick)
        for seeds, arms in wanted
        for seed in seeds
        for world in ((WRONG,) if quick else (WRONG, CLEAN))
        for arm in arms
        if (arm != RIGHT or world == WRONG) and (world, seed, arm) not in known
    ]


def measure(quick: bool, begin: bool = True) -> Result:
    """The arms that are left."""
    path = PLACE / "quick.jsonl" if quick else ROWS_FILE
    if quick:
        path.unlink(missing_ok=True)
    run_in_processes(do_job, jobs_left(quick) if begin else [], say="arm")
    rows = read_rows(path) if quick else kept_rows()
    for row in rows:
        print(row["world"], row["seed"], row["arm"], f"{success(row):.1f}", row["remarks"], file=sys.stderr)
    goals = goals_of(rows)
    short = without_answers(rows)
    unit = "points of tool calls that influence gains over random rows, a third of the rows wrong"
    return Result(
        goals[0].found, unit, QUICK if quick else (*SEEDS, *LATER_SEEDS), short, figures_of(rows), settings(), goals=goals
    )


if __name__ == "__main__":
    run("real_mine", __doc__, measure, kept=True)

"""Study of a top-up list: 100 rows for a hole that `coverage` found, against as many random rows and as many similar ones.

Tiny models learn operations on short strings of letters. Train lacks one thing that held-out problems need: the pair of
operations `F2 F2` (the other three pairs of F1 and F2 are there), or strings of four letters (three and five are there). The
check names the hole from the rows; the list asks for 100 rows of it, which the world makes. Then each model is trained 150
steps more, half of each batch from the rows it was trained on before:

- `more of the same`: no new rows;
- `random`: 100 rows of all that held-out problems need, so that a quarter (pair) or a third (level) of them fill the hole;
- `similar`: the 100 of 2,000 such rows that share most words and pairs of words with a held-out prompt;
- `top-up`: 100 rows of the hole.

Expectations, written before the seeds that count (seeds 90 and 91 were used while it was written): on held-out problems of
the hole, `top-up` is 20 points or more above `random` and above `similar`, and no interval holds 0; on the other held-out
problems it is at most 5 points below `more of the same`.

    python -m mixwright_lab.studies.top_up [--quick]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from mixwright.audit.holes import find_coverage
from mixwright.audit.top_up import ROWS_PER_HOLE
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.report import Goal, Result, interval, rounded, run
from mixwright_lab.training.bases import Recipe, base_model
from mixwright_lab.training.gpt import GPT
from mixwright_lab.training.grpo import Arena
from mixwright_lab.training.grpo import Settings as Reading
from mixwright_lab.training.sft import Batch, Schedule, fit
from mixwright_lab.worlds.compositions import MOST_LETTERS, Compositions

SEEDS, QUICK = (0, 1, 2, 3, 4), (90, 91)
STEPS, MORE_STEPS, BATCH, RATE = 600, 150, 64, 1e-3
POOL, ITEMS, TRAIN_ROWS = 2000, 300, 1200
ARMS = ("more of the same", "random", "similar", "top-up")
LEAST_GAIN, MOST_LOSS = 20.0, 5.0


@dataclass(frozen=True)
class Kind:
    """Problems: pairs of operations, and levels."""

    pairs: tuple[tuple[str, str], ...]
    levels: tuple[float, ...]

    def make(self, count: int, split: str, rng: np.random.Generator) -> list[Example]:
        """Problems of all of them, evenly, with the two operations as skills."""
        world = Compositions(pairs=self.pairs)
        made = [
            world.make(int(rng.integers(2**31)), self.levels[int(rng.integers(len(self.levels)))], split)
            for _ in range(count)
        ]
        return [replace(one, skills=tuple(str(one.prompt).split()[-2:])) for one in made]


THREE_PAIRS = (("F1", "F1"), ("F1", "F2"), ("F2", "F1"))
TRAINED = {"pair": Kind(THREE_PAIRS, (3.0,)), "level": Kind((*THREE_PAIRS, ("F2", "F2")), (2.0, 4.0))}
HOLES = {"pair": Kind((("F2", "F2"),), (3.0,)), "level": Kind((*THREE_PAIRS, ("F2", "F2")), (3.0,))}
NEEDED = {"pair": Kind((*THREE_PAIRS, ("F2", "F2")), (3.0,)), "level": Kind((*THREE_PAIRS, ("F2", "F2")), (2.0, 3.0, 4.0))}
NAMES = {"pair": ("pair", "F2 > F2"), "level": ("level", "3")}
"""What the check has to call each hole."""


@dataclass(frozen=True)
class TopUpJob:
    """One arm of one hole and seed."""

    seed: int
    hole: str
    arm: str
    quick: bool = False


def do_job(job: TopUpJob) -> dict[str, Any]:
    """Train the base, find the hole, add rows, and read what became of it."""
    rng = np.random.default_rng((job.seed, sorted(NAMES).index(job.hole)))
    trained, needed, hole = TRAINED[job.hole], NEEDED[job.hole], HOLES[job.hole]
    found = _find_hole(trained.make(TRAIN_ROWS, "train", rng), needed.make(ITEMS, "eval", rng))
    held_out = needed.make(ITEMS, "eval", rng)
    added = {
        "more of the same": lambda: [],
        "random": lambda: needed.make(ROWS_PER_HOLE, "train", rng),
        "similar": lambda: most_similar(needed.make(POOL, "train", rng), held_out, ROWS_PER_HOLE),
        "top-up": lambda: hole.make(ROWS_PER_HOLE, "train", rng),
    }[job.arm]()
    model = base_model(job.seed, _recipe(trained, job.quick))
    before = _exact(model, hole.make(ITEMS, "eval", np.random.default_rng(job.seed)))
    _train(model, added, trained, 5 if job.quick else MORE_STEPS, np.random.default_rng((job.seed, 7)))
    row = {"seed": job.seed, "hole": job.hole, "arm": job.arm, "found": found, "rows": len(added), "before": before}
    in_hole = sum((tuple(one.skills), one.level) in _cells(hole) for one in added)
    after = _exact(model, hole.make(ITEMS, "eval", np.random.default_rng(job.seed)))
    others = _exact(model, trained.make(ITEMS, "eval", np.random.default_rng(job.seed)))
    return row | {"rows in the hole": in_hole, "hole": job.hole, "exact": after, "others": others}


def most_similar(pool: Sequence[Example], wanted: Sequence[Example], count: int) -> list[Example]:
    """The rows of a pool whose words and pairs of words are most like those of some wanted prompt (Jaccard)."""

    def parts(one: Example) -> set[object]:
        words = str(one.prompt).split()
        return {*words, *pairwise(words)}

    targets = [parts(one) for one in wanted]
    scores = [max(len(own & target) / len(own | target) for target in targets) for own in map(parts, pool)]
    return [pool[place] for place in np.argsort(scores, kind="stable")[::-1][:count]]


def _cells(kind: Kind) -> set[tuple[tuple[str, ...], float | None]]:
    return {(pair, level) for pair in kind.pairs for level in kind.levels}


def _find_hole(train: Sequence[Example], held_out: Sequence[Example]) -> list[list[str]]:
    """Kind and name of each hole that the check finds."""
    train, held_out = list({one.id: one for one in train}.values()), list({one.id: one for one in held_out}.values())
    holes = find_coverage(Corpus.from_examples([*train, *held_out])).holes
    return [[hole.kind, hole.what] for hole in holes if hole.is_hole]


def _recipe(kind: Kind, quick: bool) -> Recipe:
    return Recipe(
        levels=tuple((level, 1.0) for level in kind.levels),
        styles=(("full", 1.0),),
        steps=10 if quick else STEPS,
        batch=BATCH,
        rate=2e-3,
        width=64,
        layers=3,
        world="compositions",
        options=(("pairs", kind.pairs),),
    )


def _train(model: GPT, added: Sequence[Example], before: Kind, steps: int, rng: np.random.Generator) -> None:
    """Half of each batch from the added rows, where there are any."""

    def batch(_: int) -> Batch:
        rows = [added[place] for place in rng.integers(len(added), size=BATCH // 2)] if added else []
        rows += before.make(BATCH - len(rows), "train", rng)
        return Batch([str(row.prompt) for row in rows], [str(row.target) for row in rows])

    fit(model, model.language, batch, Schedule(steps, RATE, warm=10))


def _exact(model: GPT, asked: Sequence[Example]) -> float:
    """Points of problems whose whole response is exact, greedy."""
    arena = Arena(list(asked), model, Reading(longest=2 * MOST_LETTERS + 2), 0)
    given = [group[0] for group in arena.look(list(asked), greedy=True).texts]
    return 100 * float(np.mean([text == str(one.target) for text, one in zip(given, asked, strict=True)]))


def measure(quick: bool) -> Result:
    """Both holes, all arms."""
    seeds = QUICK if quick else SEEDS
    jobs = [TopUpJob(seed, hole, arm, quick) for seed in seeds for hole in NAMES for arm in ARMS]
    rows = run_in_processes(do_job, jobs, say="model")
    by_key = {(row["seed"], row["hole"], row["arm"]): row for row in rows}
    found = interval([float(row["found"] == [list(NAMES[row["hole"]])]) for row in rows])
    goals = [Goal("the check names the hole and nothing else, share", found, ">= 1", found.value >= 1)]
    figures: dict[str, Any] = {}
    for hole in NAMES:
        for arm in ARMS:
            figures[f"{hole}, {arm}"] = {
                name: rounded([by_key[seed, hole, arm][name] for seed in seeds]) for name in ("before", "exact", "others")
            }
        for arm in ("random", "similar"):
            gain = interval([by_key[seed, hole, "top-up"]["exact"] - by_key[seed, hole, arm]["exact"] for seed in seeds])
            reached = gain.value >= LEAST_GAIN and gain.low > 0
            goals.append(Goal(f"{hole}: top-up less {arm}, points", gain, f">= {LEAST_GAIN:g}, low > 0", reached))
        loss = interval([by_key[seed, hole, "top-up"]["others"] - by_key[seed, hole, ARMS[0]]["others"] for seed in seeds])
        goals.append(
            Goal(
                f"{hole}: other problems, top-up less more of the same", loss, f">= -{MOST_LOSS:g}", loss.value >= -MOST_LOSS
            )
        )
    about = {"steps": STEPS, "more": MORE_STEPS, "rows per hole": ROWS_PER_HOLE, "pool": POOL}
    unit = "points of held-out problems with the missing pair, top-up less random rows"
    return Result(goals[1].found, unit, list(seeds), rows, figures, about, goals=goals)


if __name__ == "__main__":
    run("top_up", __doc__, measure)

"""Cases of `cost_model`: for each verb work of a given size, without imports and without making its inputs.

Every case is a function that makes inputs of a size in a folder and returns the work; the work returns what it counted:
rows, bytes, tokens, tasks, groups. Tokens are counted where the model is called, padding included as `positions`.
Models are made from nothing, so what they write is noise of full length: the dearest answers.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mixwright_lab.studies import scale_rows

Work = Callable[[], Mapping[str, float]]
ROOM, SAMPLES = 32, 4
"""Tokens of a completion, and samples of an item beside the greedy one."""
PROMPT_WORDS = 24
TASKS, GROUP = 8, 8
LONG_ROW_WORDS = (400, 460)
"""Words of a prompt of some 2,600 bytes, about 600 tokens of a large vocabulary."""


@dataclass(frozen=True, slots=True)
class Case:
    """One verb, or one of the things that drive it."""

    make: Callable[[int, Path], Work]
    sizes: tuple[int, int, int]
    """Sizes that the line is fitted on; checked at twice the last."""
    driver: str
    """Which count the line is over."""
    alone: bool = False
    """Each size in a process of its own, because its peak memory is read."""
    rounds: int = 2
    """Times that it is done; the least seconds count."""
    warm: bool = True
    """Whether it is done once before, a quarter as large, which pays for imports and what is made once."""
    quick_share: int = 16
    """A quick run's sizes are so much smaller."""


def audit(count: int, folder: Path) -> Work:
    """All checks over rows of some 260 bytes, reading included."""
    scale_rows.write_rows(folder, count)

    def work() -> Mapping[str, float]:
        from mixwright.audit.stage import run_audit
        from mixwright.config import CorpusConfig
        from mixwright.corpus import read_corpus

        run_audit(read_corpus(CorpusConfig(str(folder / "train.jsonl"), str(folder / "eval.jsonl"))))
        return {"rows": count, "bytes": (folder / "train.jsonl").stat().st_size}

    return work


def audit_long(count: int, folder: Path) -> Work:
    """The same over rows of some 2,600 bytes."""
    scale_rows.SHORTEST, scale_rows.LONGEST = LONG_ROW_WORDS
    return audit(count, folder)


def examples(count: int, *, tasks: int = TASKS, split: str = "train") -> list[Any]:
    """Rows with a target and an answer, of made-up words, all prompts of one length in words."""
    from mixwright.records import Example

    rng = random.Random(f"cost {count}")
    made = []
    for number in range(count):
        answer = rng.choice(scale_rows.WORDS)
        prompt = " ".join(rng.choices(scale_rows.WORDS, k=PROMPT_WORDS))
        made.append(Example(f"row{number}", f"task{number % tasks}", prompt, answer, answer, split=split))
    return made


def tiny(width: int = 64, depth: int = 4) -> Any:
    """A model made from nothing; its words are those of `examples`."""
    from mixwright.config import ModelConfig
    from mixwright.learner.tiny import build_tiny

    texts = [row.prompt for row in examples(200)]
    return build_tiny(texts, ModelConfig(width=width, depth=depth, heads=4, vocabulary=1024), 0)


@contextmanager
def positions(model: Any) -> Iterator[dict[str, float]]:
    """Counts calls of a model and the tokens that they read, padding included."""
    seen: dict[str, float] = {"calls": 0, "positions": 0}

    def count(_: Any, args: Any, given: Any) -> None:
        ids = given.get("input_ids", args[0] if args else None)
        seen["calls"] += 1
        seen["positions"] += ids.numel()

    hook = model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield seen
    finally:
        hook.remove()


def scan_with(columns: tuple[str, ...], count: int, folder: Path) -> Work:
    """The stage's own two calls, in this process."""
    from mixwright.config import RunConfig, TrainConfig
    from mixwright.corpus import Corpus
    from mixwright.run.folder import RunFolder
    from mixwright.scan import stage
    from mixwright.scan.table import column_groups

    learner, run = tiny(), RunFolder(folder / "run")
    learner.save(folder / "model")
    Corpus.from_examples(examples(count)).save(run.corpus)
    names = tuple(column_groups(list(columns) or None))
    config = RunConfig(replace(_config().corpus), train=TrainConfig(objective="sft"))
    config = replace(config, model=replace(config.model, path=str(folder / "model")))
    job = stage.ScanJob(str(run.path), str(folder / "model"), config, names, None)

    def work() -> Mapping[str, float]:
        key = stage.prepare_scan(job)
        done = stage.scan_shards(replace(job, key=key, shards=tuple(range(key["shards"]))))
        size = sum(path.stat().st_size for path in run.path.glob("scan/*/part-*.parquet"))
        return {"rows": count, "tokens": done.tokens, "bytes": size}

    return work


def _config() -> Any:
    from mixwright.config import CorpusConfig, RunConfig

    return RunConfig(CorpusConfig("rows.jsonl", eval_share=0.0))


def scan(count: int, folder: Path) -> Work:
    """The columns that are read by default."""
    return scan_with((), count, folder)


def sketches(count: int, folder: Path) -> Work:
    """Gradient sketches, their calibration included."""
    return scan_with(("sketch",), count, folder)


def measure(count: int, _: Path) -> Work:
    """Probe `competence`: a greedy and `SAMPLES` sampled completions of each item, graded."""
    from mixwright.config import MeasureConfig
    from mixwright.corpus import Corpus
    from mixwright.measure.stage import measure_learner

    learner, corpus = tiny(), Corpus.from_examples(examples(count, split="eval"))
    config = MeasureConfig(items=count, samples=SAMPLES, max_new_tokens=ROOM, probes=("competence",))

    def work() -> Mapping[str, float]:
        with positions(learner.model) as seen:
            found = measure_learner(learner, corpus, config, seed=0)
        return {"completions": found.rollouts, **seen}

    return work


def rehearsal(count: int, _: Path) -> Work:
    """Miner `rehearsal`: greedy answers to prompts."""
    from mixwright.mine.own_answers import answer_prompts

    learner, prompts = tiny(), examples(count)

    def work() -> Mapping[str, float]:
        with positions(learner.model) as seen:
            made = answer_prompts(learner, prompts, max_new_tokens=2 * ROOM)
        return {"prompts": count, "completions": made.rollouts, **seen}

    return work


def pruning(count: int, folder: Path) -> Work:
    """Miner `pruning` at a named end, over a table that a scan left."""
    from mixwright.corpus import Corpus
    from mixwright.mine.stage import make_miner, mine
    from mixwright.scan.table import SHARD_ROWS, Scan, shard_file, write_shard

    corpus, rng = Corpus.from_examples(examples(count)), np.random.default_rng(0)
    place = folder / f"run{count}"
    (place / "scan" / "base").mkdir(parents=True)
    key = {"rows": count, "shards": -(-count // SHARD_ROWS)}
    own = {name: corpus.table[name].to_pylist() for name in ("id", "task", "split")}
    for number in range(key["shards"]):
        part = slice(number * SHARD_ROWS, (number + 1) * SHARD_ROWS)
        ids = {name: values[part] for name, values in own.items()}
        write_shard(shard_file(place / "scan" / "base", number), key, ids, {"el2n": rng.random(len(ids["id"]))})

    def work() -> Mapping[str, float]:
        mine(make_miner("pruning", {"end": "hard"}), "pruning", corpus, Scan(place), None)
        return {"rows": count}

    return work


def plan(count: int, _: Path) -> Work:
    """Planner `difficulty` over so many tasks."""
    from mixwright.catalog import create
    from mixwright.records import Cell, Measurement, TrainingSetup

    rng, cells, found = np.random.default_rng(0), [], []
    for number in range(count):
        task, value = f"task{number}", float(rng.uniform(0.05, 0.95))
        cells.append(Cell(task, None, 100, 0.0, "known"))
        rows = {"pass@1": value, "chance": 0.0, "pass@1.swapped": 0.01, "pass@1.dependence": value, "pass@1.kappa": value}
        rows["pass@1.permutation"] = 0.005
        spread = {"pass@1": 0.1, "pass@1.dependence": 0.1, "pass@1.kappa": 0.1}
        found += [
            Measurement("competence", task, name, of, of - spread.get(name, 0.0), of + spread.get(name, 0.0), 64, "share")
            for name, of in rows.items()
        ]

    def work() -> Mapping[str, float]:
        create("planners", "difficulty").plan(cells, found, TrainingSetup(100))
        return {"tasks": count}

    return work


STEER_STEPS = 40


def steer(count: int, _: Path) -> Work:
    """The engine's part of GRPO steps: drawing so many prompts, and taking in their groups."""
    from mixwright.plan.planners.proportional import Proportional
    from mixwright.records import GroupOutcome, Signals, TrainingSetup
    from mixwright.steer.engine import Engine
    from mixwright.steer.pool import make_pool

    rows = 20_000
    ids, tasks = [f"row{number}" for number in range(rows)], [f"task{number % TASKS}" for number in range(rows)]
    golds = [str(number % 20) for number in range(rows)]
    pool = make_pool(ids, tasks, [float(number // TASKS % 3) for number in range(rows)], golds)
    made = Proportional().plan(pool.cells, (), TrainingSetup(STEER_STEPS))
    levers: dict[str, Any] = {"selector": "difficulty", "gates": ("too_hard",)}
    made = replace(made, stages=(replace(made.stages[0], **levers),))

    def work() -> Mapping[str, float]:
        engine, rng = Engine(made, pool, seed=0), np.random.default_rng(0)
        for step in range(STEER_STEPS):
            groups = []
            for row in engine.draw(count):
                cell, right = pool.cells[pool.cell_of[row]], rng.random(GROUP) < 0.4
                answers = tuple(golds[row] if hit else "no" for hit in right)
                groups.append(
                    GroupOutcome(ids[row], cell.task, cell.level, step, tuple(map(float, right)), (ROOM,) * GROUP, answers)
                )
            engine.observe(groups, Signals(step))
        return {"groups per step": count, "steps": STEER_STEPS}

    return work


def branch(steps: int, folder: Path) -> Work:
    """Training of a branch: SFT by the steered trainer with its levers and without canaries."""
    from datasets import disable_progress_bars

    from mixwright_lab.studies import trainer_runs

    disable_progress_bars()
    case = trainer_runs.Case("sft", "0.2M", prompts=16, tokens=0, steps=steps)
    with _quiet():
        trainer = trainer_runs.make(case, trainer_runs.steering(case, canaries=False), folder / str(steps), report_to="none")

    def work() -> Mapping[str, float]:
        with _quiet(), positions(trainer.model) as seen:
            trainer.train()
        return {"steps": steps, **seen}

    return work


BRANCH_STEPS, BRANCH_ITEMS = 12, 10


def trial(seeds: int, folder: Path) -> Work:
    """`mixwright trial` of a tiny model with one worker: every arm on so many seeds, trained and measured."""
    from mixwright.run.folder import yaml_text

    tiny().save(folder / "model")
    for split, rows in (("train", examples(400)), ("eval", examples(BRANCH_ITEMS * TASKS, split="eval"))):
        lines = [
            {
                "id": f"{split}-{row.id}",
                "task": row.task,
                "prompt": row.prompt,
                "completion": row.target,
                "answer": row.answer,
            }
            for row in rows
        ]
        (folder / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    config = {
        "corpus": {"train": "train.jsonl", "eval": "eval.jsonl"},
        "model": {"path": str(folder / "model")},
        "measure": {"items": BRANCH_ITEMS, "samples": 1, "max_new_tokens": 8},
        "train": {"objective": "sft", "steps": BRANCH_STEPS, "prompts": 16},
        "trial": {"seeds": seeds, "workers": 1},
    }
    (folder / "run.yaml").write_text(yaml_text(config), encoding="utf-8")

    def command(verb: str) -> None:
        words = [sys.executable, "-m", "mixwright", verb, "run.yaml", "--folder", "out"]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        subprocess.run(words, cwd=folder, env=environment, check=True, capture_output=True)

    command("measure")
    command("plan")

    def work() -> Mapping[str, float]:
        command("trial")
        return {"seeds": seeds, "branches": len(list((folder / "out" / "trial").glob("*/branch.json")))}

    return work


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield


def write_logs(folder: Path, tasks: int, items: int) -> list[str]:
    """Logs of a model before and after: a tenth of the answers changed."""
    rng, paths = random.Random(f"logs {tasks} {items}"), []
    golds = [[str(rng.randint(0, 99)) for _ in range(items)] for _ in range(tasks)]
    for name, wrong in (("before", 0.4), ("after", 0.45)):
        paths.append(str(folder / f"{name}-{tasks}-{items}.jsonl"))
        with Path(paths[-1]).open("w", encoding="utf-8") as out:
            for task, answers in enumerate(golds):
                for number, gold in enumerate(answers):
                    given = str(rng.randint(100, 199)) if rng.random() < wrong else gold
                    row = {"task": f"task{task}", "id": f"{task}-{number}", "score": float(given == gold)}
                    words = {"prompt": f"question {number} of {task}", "completion": given, "answer": gold, "temperature": 0}
                    out.write(json.dumps(row | words) + "\n")
    return paths


def judged(tasks: int, items: int, folder: Path) -> Work:
    """`verdict LOG LOG --gate`, its page included."""
    before, after = write_logs(folder, tasks, items)

    def work() -> Mapping[str, float]:
        from mixwright.api import verdict
        from mixwright.cli.gating import Gating

        verdict(before, after, gating=Gating(True), folder=folder / f"page-{tasks}-{items}")
        size = sum(Path(path).stat().st_size for path in (before, after))
        return {"tasks": tasks, "items": tasks * items, "bytes": size}

    return work


def verdict_tasks(count: int, folder: Path) -> Work:
    """So many tasks of 20 items."""
    return judged(count, 20, folder)


def verdict_items(count: int, folder: Path) -> Work:
    """Four tasks of so many items."""
    return judged(4, count, folder)


CASES = {
    "audit": Case(audit, (10_000, 20_000, 40_000), "rows", alone=True, rounds=1, warm=False),
    "audit, long rows": Case(audit_long, (500, 1_000, 2_000), "rows", alone=True, rounds=1, warm=False, quick_share=1),
    "scan": Case(scan, (1_024, 2_048, 4_096), "tokens", alone=True, rounds=1, warm=False),
    "scan, sketches": Case(sketches, (1_024, 2_048, 4_096), "tokens", alone=True, rounds=1, warm=False),
    "measure": Case(measure, (50, 100, 200), "positions"),
    "mine, rehearsal": Case(rehearsal, (128, 256, 512), "positions"),
    "mine, pruning": Case(pruning, (25_000, 50_000, 100_000), "rows", rounds=1),
    "plan": Case(plan, (2_000, 4_000, 8_000), "tasks"),
    "steer": Case(steer, (32, 64, 128), "groups per step"),
    "trial, training": Case(branch, (25, 50, 100), "positions"),
    "trial, branches": Case(trial, (1, 2, 4), "branches", rounds=1, warm=False, quick_share=1),
    "verdict, tasks": Case(verdict_tasks, (100, 200, 400), "tasks"),
    "verdict, items": Case(verdict_items, (500, 1_000, 2_000), "items"),
}

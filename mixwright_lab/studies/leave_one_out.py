"""Study of each part of the plan left out in turn, in real GRPO through TRL: gates, selector, weights and drift.

    refusing  eight Reasoning Gym families (`mixwright_lab/reach.yaml`) with a measured plan (selector difficulty, gate
              too_hard, planned weights), and a ninth task without information: gcd problems whose answers were permuted
              among the rows. Cells out of reach (lcm, count_primes, base_conversion) and of partial skill (gcd, kappa
              .1 to .2) are there.
    eight     the eight families with every lever on (`mixwright_lab/eight.yaml`)

Each is one trial: frozen, uniform, equal shares, the plan, and the plan without each part, paired by seed and by held-out
item. The primary outcome is greedy success over all held-out items, mean over tasks, with its parts S and D. A part is worth
something where the plan improves over itself without that part. Rows hold, for every branch and item, greedy and sampled
success and their pseudo-values of S, so that every figure can be worked out again. Intervals are not corrected for the
number of comparisons. Seeds of the two trials were fixed before. The committed run had the mixture `learnable` in `eight`,
too, which is gone since.

    python -m mixwright_lab.studies.leave_one_out [--quick]
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixwright import api
from mixwright.answers.score import read_scores
from mixwright.config import CorpusConfig, RunConfig
from mixwright.corpus import read_corpus
from mixwright.estimates.outcome import ItemScores, estimate_change
from mixwright.records import Example, TrialResult, to_data
from mixwright.run.folder import RunFolder, read_json, read_yaml
from mixwright_lab.studies import outcome
from mixwright_lab.studies.report import Goal, Result, run

LAB = Path(__file__).parent.parent
BLIND = "gcd_permuted"
ROWS = {"train": "reasoning-gym:gcd@0x320", "eval": "reasoning-gym:gcd@0x80"}
"""Items whose answers are permuted, those left out that the task gcd has with its true answers."""
REFERENCES = ("uniform", "equal_shares", "steered")
CASES: Mapping[str, tuple[str, int, int, tuple[str, ...]]] = {
    "refusing": ("reach.yaml", 6, 31, ("without_gates", "without_selector", "without_weights")),
    "eight": ("eight.yaml", 5, 18, ("without_gates", "without_selector", "without_controllers")),
}
"""Name -> settings, seeds, seed of the run, parts left out."""
NAMES = ("greedy", "greedy.swapped", "pass@1", "pass@1.swapped")


def settings(case: str, folder: Path, *, quick: bool = False) -> RunConfig:
    """The settings of a case; its rows are written where needed."""
    name, seeds, seed, parts = CASES[case]
    config = read_yaml(LAB / name, RunConfig)
    if case == "refusing":
        path = str(with_blind_task(config.corpus, folder))
        config = replace(config, corpus=replace(config.corpus, train=path, eval=None))
    trial = replace(config.trial, arms=(*REFERENCES, *parts), seeds=2 if quick else seeds, nulls=())
    train = replace(config.train, steps=10) if quick else config.train
    model = config.model
    if quick and model.warmup is not None:
        model = replace(model, warmup=replace(model.warmup, steps=200))
    return replace(config, trial=trial, train=train, model=model, seed=seed)


def with_blind_task(corpus: CorpusConfig, folder: Path) -> Path:
    """The rows of a corpus and those of a task without information, as JSONL."""
    true = list(read_corpus(corpus))
    taken = {str(example.prompt) for example in true}
    rows = [_row(example) for example in true]
    more = [e for e in read_corpus(CorpusConfig(ROWS["train"], ROWS["eval"])) if str(e.prompt) not in taken]
    for side in ROWS:
        blind = [_row(example) | {"task": BLIND} for example in more if example.split == side]
        answers = [row["answer"] for row in blind]
        random.Random(side).shuffle(answers)
        rows += [row | {"answer": answer} for row, answer in zip(blind, answers, strict=True)]
    path = folder / "rows.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _row(example: Example) -> dict[str, Any]:
    return {name: getattr(example, name) for name in ("task", "level", "prompt", "answer", "split")}


def rows_of(case: str, folder: RunFolder) -> list[dict[str, Any]]:
    """A row of the items, then one per branch with values in that order."""
    branches = [(arm, seed, read_scores(path / "after.parquet")) for arm, seed, path in folder.branches()]
    items = branches[0][2].items
    rows: list[dict[str, Any]] = [{"case": case, "items": [list(item) for item in items]}]
    for arm, seed, scores in branches:
        columns = {name: [round(value, 3) for value in scores.column(name, items).tolist()] for name in NAMES}
        rows.append({"case": case, "arm": arm, "seed": seed} | {name: json.dumps(kept) for name, kept in columns.items()})
    return rows


def scores_of(row: Mapping[str, Any], items: Sequence[Sequence[Any]]) -> ItemScores:
    """What a branch's row holds."""
    keys = [(str(task), level, str(example)) for task, level, example in items]
    return ItemScores.of({name: dict(zip(keys, json.loads(row[name]), strict=True)) for name in NAMES})


def compare(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Every arm against the three references, and the plan against itself without each part; also task by task."""
    items = next(row["items"] for row in rows if "items" in row)
    known = {(row["arm"], row["seed"]): scores_of(row, items) for row in rows if "arm" in row}
    arms = sorted({arm for arm, _ in known})
    pairs = [
        (arm, against) for arm in arms for against in ("frozen", "uniform", "equal_shares") if arm not in ("frozen", against)
    ]
    pairs += [("steered", arm) for arm in arms if arm.startswith("without_")]
    found: dict[str, Any] = {}
    for arm, against in pairs:
        seeds = sorted(seed for name, seed in known if name == arm and (against, seed) in known)
        before, after = ([known[name, seed] for seed in seeds] for name in (against, arm))
        moved = estimate_change(before, after)
        if moved is not None:
            shown = outcome.format_outcome(moved)
            shown["tasks"] = {task: _task(before, after, task) for task in sorted({str(item[0]) for item in items})}
            found[f"{arm} - {against}"] = shown
    return found


def _task(before: Sequence[ItemScores], after: Sequence[ItemScores], task: str) -> dict[str, Any]:
    moved = estimate_change(before, after, included=lambda items: items.of_tasks([task]))
    assert moved is not None
    return {name: kept for name, kept in outcome.format_outcome(moved).items() if name in ("success", "S", "D", "sampled")}


def goals_of(figures: Mapping[str, Any]) -> list[Goal]:
    """Fixed before the run."""
    found = []
    for case, (_, _, _, parts) in CASES.items():
        for against in ("frozen", "uniform", "equal_shares", *parts):
            shown = figures[case].get(f"steered - {against}")
            if shown is not None:
                value = outcome.interval_of(shown)
                name = f"{case}: steered - {against}, greedy success, all held-out items"
                found.append(Goal(name, value, "> 0", value.low > 0))
    return found


def measure(quick: bool) -> Result:
    """Both trials; the headline is the plan against itself without its gates, with a task that has no information."""
    rows, figures, used = [], {}, {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as place:
            config = settings(case, Path(place), quick=quick)
            folder = RunFolder(Path(place) / "run")
            print(f"{case}:", flush=True)
            api.run(config, folder)
            rows += rows_of(case, folder)
            figures[case] = compare([row for row in rows if row["case"] == case])
            result = read_json(folder.result, TrialResult)
            used[case] = {"steps": config.train.steps, "seeds": list(result.seeds), "rollouts": dict(result.rollouts)}
        outcome.table(case, figures[case], {})
    value = outcome.interval_of(figures["refusing"]["steered - without_gates"])
    unit = "greedy success over all held-out items, the plan minus the plan without its gates, through TRL"
    seeds = used["refusing"]["seeds"]
    return Result(value, unit, seeds, rows, figures, to_data(used), goals=goals_of(figures))


if __name__ == "__main__":
    run("leave_one_out", __doc__, measure)

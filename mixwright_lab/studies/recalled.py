"""Study of what is still known: are covered answers told from forgotten ones by beginning them as the model used to?

SmolLM2-135M-Instruct answers questions about capitals and opposites. It is trained with LoRA in two ways that ruin both:

- `covered`: tool calls alone, 20 steps. The answers take their form; facts are not trained on.
- `forgotten`: the model's own right answers to these very questions, with the right word replaced by that of another
  question of the task, 30 steps. The form stays, the facts are overwritten.

Read is what `verdict` reads: lost answers are begun in the earlier model's words up to the right answer
(`mixwright/measure/recalled.py`), and a task's are called covered if half of them end right, gone if a fifth or less do.

Goals, fixed before the first training: the word is right in ten of twelve tasks (three seeds, two trainings, two tasks), and
none is called the opposite. Rival: how much less likely the former answers became, in nats per token, at the threshold that
separates best on these very rows.

Source: own.
Unit: a task of one training.
Cost: four minutes of one thread for a training, two for the answers.
Blind spot: one model, LoRA, facts of one word; facts that are overwritten, not ones that fade.

    python -m mixwright_lab.studies.recalled [--quick] [--report]
"""

from __future__ import annotations

import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright.verdict.words import LEAST_READ, NOT_KNOWN, STILL_KNOWN
from mixwright_lab.conditions import conditions
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.everyday import HALF_KNOWN, shuffled, tool_calls
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

MODEL, SEEDS, QUICK = "smollm2", (401, 409, 419), (3,)
TASKS, ITEMS, ROOM = ("capitals", "opposites"), 50, 24
TRAININGS = {"covered": Training(steps=20), "forgotten": Training(steps=30)}
ROWS_FILE = RESULTS / "recalled.rows.jsonl"
LEAST_RIGHT = 10 / 12
Row = dict[str, Any]


def measure_model(model: str, items: Sequence[Row], folder: Path, seed: int) -> tuple[Any, Any]:
    """Return the loaded model and its greedy answers to items."""
    from mixwright.config import CorpusConfig, MeasureConfig
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import load_learner
    from mixwright.measure.stage import measure_learner

    path = folder / "items.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    corpus = read_corpus(CorpusConfig(str(path), eval_share=0.0, graders=dict.fromkeys(TASKS, "includes")))
    config = MeasureConfig(items=len(items), samples=0, max_new_tokens=ROOM, probes=("competence",))
    learner = load_learner(model)
    return learner, measure_learner(learner, corpus, config, seed=seed).answers


def rows_to_train(plant: str, before: Sequence[Mapping[str, Any]], rng: random.Random) -> list[Row]:
    """Rows that cover what is known by another form, or that overwrite it in the same form."""
    if plant == "covered":
        return [{"task": "calls", "prompt": prompt, "completion": call} for prompt, call in tool_calls(rng)[0]]
    rows: list[Row] = []
    for task in TASKS:
        own = [row for row in before if row["task"] == task and row["score"] >= 1 and row["answer"] in row["completion"]]
        golds = [row["answer"] for row in own]
        shift = rng.randrange(1, len(golds))
        for row, other in zip(own, golds[shift:] + golds[:shift], strict=True):
            if other != row["answer"]:
                rows.append(
                    {"task": task, "prompt": row["prompt"], "completion": row["completion"].replace(row["answer"], other)}
                )
    return rng.sample(rows, len(rows))


def read_plant(seed: int, plant: str, steps: int | None = None) -> list[Row]:
    """Train one model, and return what is read of each task."""
    from mixwright.measure.recalled import read_recalled

    rng, how = random.Random(seed), TRAININGS[plant]
    items = [
        {"id": f"{task}-{n}", "task": task, "prompt": prompt, "answer": answer}
        for task in TASKS
        for n, (prompt, answer) in enumerate(shuffled(HALF_KNOWN[task](), rng)[:ITEMS])
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _, before = measure_model(MODEL, items, folder, seed)
        first = before.first_rows()
        train = folder / "train.jsonl"
        train.write_text("".join(json.dumps(row) + "\n" for row in rows_to_train(plant, first, rng)), encoding="utf-8")
        how = how if steps is None else Training(steps=steps)
        fine_tune(MODEL, train, folder / "adapter", how, seed=seed)
        learner, after = measure_model(str(folder / "adapter"), items, folder, seed)
        prompts = {item["id"]: item["prompt"] for item in items}
        found = read_recalled(learner, prompts, before, after)
        likelihood = learner.logprobs([prompts[row["example"]] for row in first], [row["tokens"] for row in first])
    completed, beaten = found.of_items("completed"), found.of_items("recalled")
    score = {row["example"]: row["score"] for row in after.first_rows()}
    rows = []
    for task in TASKS:
        places = [place for place in found.groups[task, None].tolist() if completed[place] >= 0]
        lost = [row for row in first if row["task"] == task and row["score"] >= 1 > score[row["example"]]]
        change = [
            (sum(new) - row["logprob"]) / len(new)
            for row, new in zip(first, likelihood, strict=True)
            if row["task"] == task and row["score"] >= 1 > score[row["example"]]
        ]
        rows.append(
            {
                "seed": seed,
                "plant": plant,
                "task": task,
                "right before": sum(row["task"] == task and row["score"] >= 1 for row in first),
                "lost": len(lost),
                "read": len(places),
                "completed": int(completed[places].sum()),
                "beaten": float(beaten[places].mean()) if places else None,
                "likelihood": sum(change) / len(change) if change else None,
                "commit": conditions()["commit"],
            }
        )
    return rows


def name_of(row: Mapping[str, Any]) -> str:
    """Return the word that a verdict has for a task."""
    if row["read"] < LEAST_READ:
        return "too few"
    share = row["completed"] / row["read"]
    return "covered" if share >= STILL_KNOWN else "forgotten" if share <= NOT_KNOWN else "partly"


def measure(quick: bool, begin: bool = True) -> Result:
    """Train what is missing, and compare the words with what was planted."""
    rows = [] if quick else read_rows(ROWS_FILE)
    done = {(row["seed"], row["plant"]) for row in rows}
    for seed in (QUICK if quick else SEEDS) if begin else ():
        for plant in TRAININGS:
            if (seed, plant) not in done:
                for row in read_plant(seed, plant, 2 if quick else None):
                    rows.append(row)
                    if not quick:
                        append_row(ROWS_FILE, row)
    right = [name_of(row) == row["plant"] for row in rows]
    opposite = sum({name_of(row), row["plant"]} == {"covered", "forgotten"} for row in rows)
    changes = sorted({row["likelihood"] for row in rows if row["likelihood"] is not None})
    by_loss = max(
        (sum((row["likelihood"] < cut) == (row["plant"] == "covered") for row in rows if row["likelihood"] is not None))
        for cut in (*changes, 0.0)
    )
    by_plant: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        by_plant[row["plant"]].append(name_of(row))
    found, none = share_interval(sum(right), len(right)), share_interval(opposite, len(rows))
    goals = [
        Goal("the word is right", found, f">= {LEAST_RIGHT:.3f}", found.value >= LEAST_RIGHT),
        Goal("called the opposite", none, "0", opposite == 0),
    ]
    figures = {"words": by_plant, "rival, likelihood at its best threshold": max(by_loss, len(rows) - by_loss) / len(rows)}
    settings = {"covered from": STILL_KNOWN, "gone up to": NOT_KNOWN, "items": ITEMS, "room": ROOM}
    return Result(found, "share of tasks whose word is right", SEEDS, rows, figures, settings, goals=goals)


if __name__ == "__main__":
    run("recalled", __doc__, measure, kept=True)

"""Study of narrow SFT on real tool calls: do tools in the system message keep what rows without them lose?

SmolLM2-135M-Instruct learns calls of a public benchmark (simple_python of the Berkeley function calling leaderboard, gorilla
6ea57973, the first allowed value of each argument) with LoRA: 24 rows, 6 steps of 4. Arms see the same rows in one order:

- `without tools`: the request alone, answered by `<tool_call>{"name": ..., "arguments": ...}</tool_call>`;
- `with tools`: the row's tool in the system message. The model's chat template shows no tools, so that Mixwright writes them
  there in the form that Hermes and Qwen use.

Read are unseen calls, asked as the arm was trained, right where one combination of allowed values is given; items of the
suite, replayed and sealed kinds apart, asked without tools; some of them again beside a tool that does not help; and
questions of the benchmark's part irrelevance, in which no tool is right. `calls` is the share of answers that call a tool.
Items of the suite are those that the model had right before any training, as three draws of the study `general` kept it
(seeds 223, 227 and 229), so that the share that is right after training is the share that is kept.

Seed 3, of tuning, decides nothing; goals and seeds were committed before the others were run. It is small because two cores
had many users: steps, rows and items were sized by CPU seconds, before any outcome of these seeds was seen.

Source: own; the study `general`, whose tool calls were JSON that nobody trains.
Unit: one training.
Cost: 80 seconds of one thread for a training without tools and its answers, 150 with tools.
Blind spot: one model of 135M parameters, LoRA, few rows, one tool a row; greedy answers of 32 tokens, calls of 96.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.calls [--quick] [--report]

FOLDER holds bfcl_simple_python.json, bfcl_simple_python_gold.json, bfcl_irrelevance.json and, as for `general`,
product-company.json.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright.tool_calls import Call, find_calls, read_tools, write_calls
from mixwright_lab.conditions import conditions
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies import general
from mixwright_lab.studies.call_faults import read_benchmark
from mixwright_lab.studies.general import AT_ONCE, MODEL, Row, answer, as_messages, right
from mixwright_lab.studies.jobs import append_row, read_rows, write_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, interval, rounded, run

SEEDS, QUICK = (241, 251, 257, 263, 269), (3,)
ROWS_FILE, PLACE = RESULTS / "calls.rows.jsonl", Path("runs") / "calls"
TRAINING = Training(steps=6, batch=4)
NEW_ROWS = TRAINING.steps * TRAINING.batch
ROOM, CALL_ROOM = 32, 96
ITEMS = {"open": 12, "sealed": 24, "beside": 4, "irrelevant": 4, "new": 8}
"""Items of the suite's replayed and sealed kinds, of those asked beside a tool, of questions that no tool answers, and
unseen calls."""
KNOWN_SEEDS = (223, 227, 229)
"""Draws of the study `general` whose answers before any training are kept."""
LONGEST_ROW = 720
"""Characters of request, tool and call: about 300 tokens."""
MOST_COMBINATIONS = 16
"""Of allowed values of a test item."""
BEFORE, PLAIN, TOOLS = "before", "without tools", "with tools"
WAVES = ((SEEDS, (PLAIN, TOOLS)), (SEEDS, (BEFORE,)))
"""Seeds and arms, in the order in which they run."""
CALL = re.compile(r"\s*<tool_call>")
MOST_CALLS = 5.0
READINGS = (
    *("kept, suite", "kept, open", "kept, sealed", "kept, beside", "right, new", "right function, new"),
    *("calls, new", "calls, suite", "calls, beside", "calls, irrelevant"),
)


def settings() -> dict[str, Any]:
    """Return what has to be the same for rows to stand in one table."""
    training = {"steps": TRAINING.steps, "batch": TRAINING.batch, "rate": TRAINING.learning_rate}
    return training | {"items": ITEMS, "room": [ROOM, CALL_ROOM]}


def public_rows(seed: int) -> list[dict[str, Any]]:
    """Return short rows of the benchmark with one call, in an order drawn by the seed, with every allowed answer."""
    rows = []
    for row in read_benchmark(Path(os.environ["MIXWRIGHT_PUBLIC"]), "simple_python"):
        *asked, called = row["messages"]
        ((name, arguments),) = row["allowed"][0].items()
        golds = list(itertools.islice(combinations(arguments), MOST_COMBINATIONS + 1))
        length = len(f"{asked}{row['tools']}{called}")
        if length <= LONGEST_ROW and 0 < len(golds) <= MOST_COMBINATIONS:
            answers = [write_calls([Call(name, gold)]) for gold in golds]
            rows.append({"task": "new", "prompt": asked, "tools": read_tools(row["tools"]), "answer": answers})
    return random.Random(seed).sample(rows, len(rows))


def combinations(arguments: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a call in every allowed way; "" among the values is an argument that may be left out."""
    if any(isinstance(value, dict | list) and value for values in arguments.values() for value in _nested(values)):
        return
    for values in itertools.product(*arguments.values()):
        yield {name: value for name, value in zip(arguments, values, strict=True) if value != ""}


def _nested(values: Any) -> Iterator[Any]:
    for value in values:
        yield from (one for one in value if isinstance(one, dict)) if isinstance(value, list) else (value,)


def asked(row: Mapping[str, Any], *, with_tools: bool) -> list[dict[str, Any]]:
    """Return the messages of a row, with or without its tools."""
    first, *rest = as_messages(row["prompt"])
    return [{**first, "tools": row["tools"]} if with_tools else first, *rest]


def rows_of(arm: str, seed: int) -> list[dict[str, Any]]:
    """Return the rows that an arm trains on."""
    rows = public_rows(seed)[:NEW_ROWS]
    return [{"task": "new", "prompt": asked(row, with_tools=arm == TOOLS), "completion": row["answer"][0]} for row in rows]


def known_items() -> list[dict[str, Any]]:
    """Return items of the suite, each once, that the model had right before any training."""
    kept = {row["seed"]: row for row in read_rows(general.ROWS_FILE) if row["arm"] == BEFORE and row["world"] == "tools"}
    found = dict[str, dict[str, Any]]()
    for seed in KNOWN_SEEDS:
        was_right = {one[2] for one in kept[seed]["answers"] if one[3] == 1}
        for item in general.test_items(seed):
            if item["ring"] in ("open", "sealed") and item["id"] in was_right:
                found[str(item["prompt"])] = item
    return list(found.values())


def test_items(seed: int, *, with_tools: bool) -> list[dict[str, Any]]:
    """Draw the items of a seed, each with its ring; unseen calls are asked with their tools or without."""
    rng, known, rows = random.Random(seed), known_items(), public_rows(seed)
    found = list[dict[str, Any]]()
    for ring in ("open", "sealed"):
        found += rng.sample([item for item in known if item["ring"] == ring], ITEMS[ring])
    unseen = rows[NEW_ROWS : NEW_ROWS + ITEMS["new"]]
    for row, tool in zip(rng.sample(found, ITEMS["beside"]), rows[NEW_ROWS + ITEMS["new"] :], strict=False):
        found.append(row | {"ring": "beside", "prompt": asked(row | {"tools": tool["tools"]}, with_tools=True)})
    irrelevant = read_rows(Path(os.environ["MIXWRIGHT_PUBLIC"]) / "bfcl_irrelevance.json")
    irrelevant = [row for row in irrelevant if len(f"{row['question']}{row['function']}") <= LONGEST_ROW]
    for row in rng.sample(irrelevant, ITEMS["irrelevant"]):
        prompt = asked({"prompt": row["question"][0], "tools": read_tools(row["function"])}, with_tools=True)
        found.append({"ring": "irrelevant", "task": "irrelevant", "prompt": prompt})
    found += [row | {"ring": "new", "prompt": asked(row, with_tools=with_tools)} for row in unseen]
    return [row | {"id": f"{row['ring']}-{number}"} for number, row in enumerate(found)]


@dataclass(frozen=True)
class CallsJob:
    """One training and its answers; `before` is no training."""

    seed: int
    arm: str
    quick: bool = False


def do_job(job: CallsJob) -> None:
    """Train, ask, and append a row: answers are [ring, task, item, score, begins with a call, completion, gold call]."""
    from mixwright.learner.load import load_learner

    with tempfile.TemporaryDirectory() as name:
        folder, source, steps = Path(name), MODEL, 0
        if job.arm != BEFORE:
            source, steps = str(folder / "model"), 2 if job.quick else TRAINING.steps
            path, how = write_rows(folder / "rows.jsonl", rows_of(job.arm, job.seed)), replace(TRAINING, steps=steps)
            fine_tune(MODEL, path, folder / "model", how, seed=job.seed, at_once=AT_ONCE)
        learner, answers = load_learner(source), list[list[Any]]()
        items = test_items(job.seed, with_tools=job.arm != PLAIN)[:: 4 if job.quick else 1]
        if job.arm == BEFORE:
            items = [item for item in items if item["ring"] not in ("open", "sealed")]
        for room, of_new in ((ROOM, False), (CALL_ROOM, True)):
            own = [item for item in items if (item["ring"] == "new") == of_new]
            given = answer(learner, own, folder, CALL, room=room, grader="tool_call")
            golds = {item["id"]: item["answer"][:1] for item in own if of_new}
            answers += [[*one, *golds.get(one[2], ())] for one in given]
    row = {"seed": job.seed, "arm": job.arm, "settings": settings(), "commit": conditions()["commit"]}
    append_row(PLACE / "quick.jsonl" if job.quick else ROWS_FILE, row | {"steps": steps, "answers": answers})


def calls(row: Row, *rings: str) -> float:
    """Percent of the answers of some rings that call a tool."""
    return 100 * statistics.mean(bool(find_calls(one[5])) for one in row["answers"] if one[0] in rings)


def functions(row: Row) -> float:
    """Percent of unseen requests whose answer calls the right function."""
    pairs = [(find_calls(one[5]), find_calls(one[6])) for one in row["answers"] if one[0] == "new"]
    return 100 * statistics.mean([call.name for call in one] == [call.name for call in gold] for one, gold in pairs)


def readings(row: Row) -> dict[str, float]:
    """Name of a reading -> percent; those of the suite where it was asked."""
    asked_of = {one[0] for one in row["answers"]}
    found = {"right, new": right(row, "new"), "right function, new": functions(row), "calls, new": calls(row, "new")}
    found |= {f"calls, {ring}": calls(row, ring) for ring in ("beside", "irrelevant")}
    if "open" in asked_of:
        suite = [one[3] == 1 for one in row["answers"] if one[0] in ("open", "sealed")]
        found |= {"kept, suite": 100 * statistics.mean(suite), "calls, suite": calls(row, "open", "sealed")}
        found |= {f"kept, {ring}": right(row, ring) for ring in ("open", "sealed", "beside")}
    return found


def kept_rows() -> dict[tuple[int, str], dict[str, Any]]:
    """Finished rows of these settings, by seed and arm."""
    same = [row for row in read_rows(ROWS_FILE) if row["settings"] == settings() and row["seed"] in SEEDS]
    return {(row["seed"], row["arm"]): row for row in same}


def figures_of(rows: Mapping[tuple[int, str], Row]) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """Means of every arm over seeds; and differences of pairs of arms by reading."""
    by_run = {key: readings(row) for key, row in rows.items()}
    table: dict[str, Any] = {}
    for arm in dict.fromkeys(arm for _, arm in rows):
        own = [found for key, found in by_run.items() if key[1] == arm]
        means = {name: round(statistics.mean(found[name] for found in own), 1) for name in own[0]}
        table[arm] = means | {"trainings": len(own)}
    differences = {
        f"{one} less {other}: {name}": [
            by_run[seed, one][name] - by_run[seed, other][name]
            for seed, arm in rows
            if arm == one and name in by_run.get((seed, other), ())
        ]
        for one, other in ((TOOLS, PLAIN), (TOOLS, BEFORE))
        for name in READINGS
    }
    return table, differences


def goals_of(rows: Mapping[tuple[int, str], Row], differences: Mapping[str, list[float]]) -> list[Goal]:
    """Return what was to be shown; none is reached on fewer than two pairs."""
    by_calls = [calls(row, "open", "sealed") for (_, arm), row in rows.items() if arm == TOOLS]
    asked_of: list[tuple[str, Sequence[float], str, Any]] = [
        *((name, differences[name], "low > 0", lambda one: one.low > 0) for name in goal_names()),
        (f"{TOOLS}: calls, suite", by_calls, f"<= {MOST_CALLS:g}", lambda one: one.value <= MOST_CALLS),
    ]
    nothing = Interval(0.0, -100.0, 100.0, 0)
    found = []
    for name, values, text, reached in asked_of:
        measured = interval(values) if len(values) > 1 else nothing
        found.append(Goal(name, measured, text, len(values) > 1 and bool(reached(measured))))
    return found


def goal_names() -> list[str]:
    """List the differences that were to be above 0: what tools keep, by group of kinds, and calls that are learnt."""
    return [
        *(f"{TOOLS} less {PLAIN}: {name}" for name in ("kept, suite", "kept, open", "kept, sealed")),
        f"{TOOLS} less {BEFORE}: right, new",
    ]


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the jobs that are left, one after another."""
    waves = ((QUICK, (BEFORE, PLAIN, TOOLS)),) if quick else WAVES
    done = set[tuple[int, str]]() if quick else set(kept_rows())
    for seeds, arms in waves if begin else ():
        for seed, arm in ((seed, arm) for seed in seeds for arm in arms):
            if (seed, arm) not in done:
                do_job(CallsJob(seed, arm, quick))
    rows = kept_rows()
    if quick:
        rows = {(row["seed"], row["arm"]): row for row in read_rows(PLACE / "quick.jsonl")}
    figures, differences = figures_of(rows)
    goals = goals_of(rows, differences)
    figures |= {name: rounded(values) for name, values in differences.items() if len(values) > 1}
    short = [{name: row[name] for name in ("seed", "arm", "steps", "commit")} for row in rows.values()]
    return Result(
        goals[0].found, goals[0].name, SEEDS, short, figures, settings() | {"answers": ROWS_FILE.name}, goals=goals
    )


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    run("calls", __doc__, measure, kept=True)

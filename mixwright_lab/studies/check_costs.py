"""Study of what each check of `audit` costs on rows of five kinds: CPU seconds of one thread, and peak memory.

Each kind has a process of its own, which reads a million rows of train and 2,000 held-out ones and runs the checks one after
the other. What several checks share (fingerprints of the rows) counts for the first of them; none of `LEARNT_FROM` is the
first. With 200,000 rows the largest share was .25.
`text` are the rows of `audit_scale`; `sums`, `code` and `calls` are one task each whose every completion has steps to work
out, 5 % of the rows with a wrong one; `pairs` are preferences. Rows of a kind differ in their numbers and words alone.

Goals, written before the run that counts: in every kind the checks of what is learnt from (`traces`, `preferences`, `cues`,
`instructions`, `error_clusters`, `conflicts`, `dilution`, `unseen`) take at most half of what reading and all other checks
but `reworded` take, so that the audit takes at most 1.5 times its time without them.

    python -m mixwright_lab.studies.check_costs [--quick]
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mixwright.audit.stage import run_audit
from mixwright.catalog import listing
from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.records import Interval
from mixwright_lab.studies import scale_rows
from mixwright_lab.studies.report import Goal, Result, run

ROWS, QUICK_ROWS, HELD_OUT = 1_000_000, 5_000, 2_000
LEARNT_FROM = ("traces", "preferences", "cues", "instructions", "error_clusters", "conflicts", "dilution", "unseen")
APART = "reworded"
"""Has seconds of its own in the goals of its study."""
MOST_SHARE, WRONG_SHARE = 0.5, 0.05
NAMES = ("Ann", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ida", "Jon", "Kim", "Leo")
THINGS = ("apples", "pens", "coins", "cards", "books", "shells", "stamps", "keys", "cups", "stones")


def sums_row(rng: random.Random) -> dict[str, Any]:
    """A story and its solution in two equations."""
    a, b, c = rng.randint(100, 99_999), rng.randint(100, 99_999), rng.randint(2, 99)
    off = rng.random() < WRONG_SHARE
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    prompt = f"{name} has {a} {thing}, gets {b} more and then gives {c} away. How many {thing} does {name} have?"
    total = a + b + off
    return {"prompt": prompt, "completion": f"First {a} + {b} = {total}. Then {total} - {c} = {total - c}. So {total - c}."}


def code_row(rng: random.Random) -> dict[str, Any]:
    """A session with three values."""
    values = [rng.randint(1, 9999) for _ in range(4)]
    shown = sum(values) + (rng.random() < WRONG_SHARE)
    session = f">>> x = {values}\n>>> sum(x)\n{shown}\n>>> max(x)\n{max(values)}\n>>> len(x) * {values[0]}\n{4 * values[0]}"
    return {"prompt": f"What is the sum of {values} in Python?", "completion": f"```python\n{session}\n```"}


def calls_row(rng: random.Random) -> dict[str, Any]:
    """A conversation with a call, its result and an answer."""
    order, price = rng.randint(10_000, 9_999_999), rng.randint(100, 99_999)
    call = {"name": "get_order", "arguments": json.dumps({"id": order})}
    messages = [
        {"role": "user", "content": f"What did order {order} of {rng.choice(NAMES)} cost?"},
        {"role": "assistant", "content": f"<tool_call>{json.dumps(call)}</tool_call>"},
        {"role": "tool", "content": json.dumps({"id": order, "cost": price})},
        {"role": "assistant", "content": f"Order {order} cost {price + (rng.random() < WRONG_SHARE)} dollars."},
    ]
    return {"messages": messages}


def pairs_row(rng: random.Random) -> dict[str, Any]:
    """A prompt with two answers."""
    words = " ".join(rng.choices(scale_rows.WORDS, k=20))
    chosen, rejected = (" ".join(rng.choices(scale_rows.WORDS, k=rng.randint(5, 30))) for _ in range(2))
    return {"prompt": f"{words}?", "chosen": f"{chosen}.", "rejected": f"Sorry, {rejected}."}


KINDS: dict[str, Callable[[random.Random], dict[str, Any]] | None] = {
    "text": None,
    "sums": sums_row,
    "code": code_row,
    "calls": calls_row,
    "pairs": pairs_row,
}


def write_rows(folder: Path, kind: str, count: int) -> None:
    """Write `train.jsonl` and `eval.jsonl`."""
    make = KINDS[kind]
    if make is None:
        scale_rows.write_rows(folder, count)
        return
    rng = random.Random(f"costs {kind}")
    for name, rows in (("train", count), ("eval", HELD_OUT)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as out:
            out.writelines(json.dumps({"id": f"{name}{n}", **make(rng)}) + "\n" for n in range(rows))


def time_checks(folder: Path) -> dict[str, Any]:
    """CPU seconds of reading and of each check, in the order in which they ran, and peak memory in MB."""
    order = sorted(listing("checks"), key=lambda name: (name in LEARNT_FROM, name == APART))
    seconds, before = dict[str, float](), sum(os.times()[:4])
    corpus = read_corpus(CorpusConfig(str(folder / "train.jsonl"), str(folder / "eval.jsonl")))
    for name in ("reading", *order):
        if name != "reading":
            run_audit(corpus, [name])
        now = sum(os.times()[:4])
        seconds[name], before = round(now - before, 2), now
    return {"seconds": seconds, "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)}


def measure(quick: bool) -> Result:
    """Every kind once."""
    rows, goals, count = [], [], QUICK_ROWS if quick else ROWS
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as place:
            write_rows(Path(place), kind, count)
            command = [sys.executable, "-m", "mixwright_lab.studies.check_costs", "--kind", place]
            done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, check=True)
        seen = json.loads(done.stdout.splitlines()[-1])
        own = sum(seen["seconds"][name] for name in LEARNT_FROM)
        others = sum(seconds for name, seconds in seen["seconds"].items() if name not in (*LEARNT_FROM, APART))
        rows.append({"kind": kind, "rows": count, "share": own / others, **seen})
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
        share = Interval(own / others, own / others, own / others, 1)
        goals.append(Goal(f"{kind}: checks of what is learnt from", share, f"<= {MOST_SHARE:g}", share.value <= MOST_SHARE))
    worst = max((goal.found for goal in goals), key=lambda share: share.value)
    unit = "largest share of the audit's other CPU seconds that the checks of what is learnt from take"
    return Result(worst, unit, (0,), rows, {}, {"held_out": HELD_OUT, "wrong": WRONG_SHARE}, goals=goals)


if __name__ == "__main__":
    if "--kind" in sys.argv:
        print(json.dumps(time_checks(Path(sys.argv[-1]))))
    else:
        run("check_costs", __doc__, measure)

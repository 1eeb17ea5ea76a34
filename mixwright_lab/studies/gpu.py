"""Study of steering, measuring and scanning on one accelerator, in pieces that may run on different days.

Each piece is a process of its own (`gpu_pieces.py`); its row is kept in `gpu.rows.jsonl` as soon as it is there,
and a piece that has a row is not run again. No piece is begun that would not fit into `--minutes`; give the same command
again for the rest. Nothing is fetched: on a machine without network the model is a file (`--model`), and
`python -m mixwright_lab.studies.pack_gpu` packs it with the wheels that such a machine lacks.

SmolLM2-135M-Instruct, all weights, through TRL: GRPO, SFT and DPO, TRL's trainer and the steered one in turns, step by step,
seconds of the wall clock after the device has finished. Runs by themselves show peak memory, tokens per second, whether
rewards, losses and weights of a trainer with `steering=None` equal TRL's (TRL twice is the null of that), bf16, gradient
checkpointing, `accelerate launch`, and vLLM where it is installed.

Goals, fixed before any of it ran on an accelerator: bookkeeping takes at most 1 % of a step, the worst
objective; `steering=None` equals TRL wherever TRL equals itself; steering raises peak memory by at most 2 %; all
arms end with finite losses; the launched run logs the losses of the plain one; no piece takes more than eight minutes.

    python -m mixwright_lab.studies.gpu [--minutes 8] [--model smollm2] [--rows FILE] [--kinds KIND ...] [--shared] [--quick]

`--kinds turns machine` runs those pieces alone. With `--shared` other work is on the device: no speed of them is told.
`--quick` runs every piece with a tiny model on whatever there is, keeps nothing, and shows only that they run.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.records import Interval
from mixwright.run.folder import write_json
from mixwright_lab.conditions import conditions
from mixwright_lab.studies.gpu_pieces import BOOKKEEPING, NONE, OFF, ON, PIECES
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.report import RESULTS, Goal
from mixwright_lab.studies.turns import Meter

ROWS = RESULTS / "gpu.rows.jsonl"
MOST_PIECE_MINUTES = 8.0
"""Minutes that one piece may take."""
NULL = "TRL again"
Row = Mapping[str, Any]


def run_piece(name: str, model: str, *, tiny: bool, shared: bool = False) -> dict[str, Any]:
    """One piece in a process of its own; what went wrong is its row's `error`."""
    command = [sys.executable, "-m", "mixwright_lab.studies.gpu_pieces", name, "--model", model]
    command += ["--tiny"] if tiny else []
    began = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * MOST_PIECE_MINUTES, check=False)
    except subprocess.TimeoutExpired:
        return {"piece": name, "error": f"more than {MOST_PIECE_MINUTES:g} minutes"}
    seconds = {"minutes": (time.perf_counter() - began) / 60}
    if done.returncode:
        return {"piece": name, "error": done.stderr[-3000:]} | seconds
    return json.loads(done.stdout.splitlines()[-1]) | seconds | {"shared": shared, "made": conditions()}


def single(value: float, n: int = 1) -> Interval:
    """A count or a share that has no interval of its own."""
    return Interval(value, value, value, n)


def is_turns(row: Row) -> bool:
    """Whether trainers took turns in this piece and it came to its end."""
    return row["piece"].startswith("turns-") and "seconds" in row


def bookkeeping_share(row: Row) -> float:
    """Bookkeeping of one piece of turns, percent of the trainer's own seconds."""
    on = row["seconds"][ON]
    return 100 * sum(on[BOOKKEEPING]) / sum(on[Meter.OTHERS])


def same(one: Row, other: Row) -> bool:
    """Whether two runs logged the same and ended with the same weights."""
    return all(one[name] == other[name] for name in ("loss", "reward", "weights"))


def goals_of(rows: Sequence[Row]) -> list[Goal]:
    """What was fixed before; a goal of which no piece was run is not reached."""
    turned = [bookkeeping_share(row) for row in rows if is_turns(row)]
    arms = [{run["arm"]: run for run in row["runs"]} for row in rows if "runs" in row]
    stable = [runs for runs in arms if same(runs[OFF], runs[NULL])]
    equal = sum(same(runs[OFF], runs[NONE]) for runs in stable)
    peaks = [runs[ON]["peak bytes"] / runs[OFF]["peak bytes"] for runs in arms if runs[OFF]["peak bytes"]]
    losses = [value for runs in arms for run in runs.values() for value in run["loss"]]
    plain = {row["piece"].removeprefix("arms-"): row["runs"] for row in rows if "runs" in row}
    launched = [
        (row, next(run for run in plain[row["piece"].removeprefix("accelerate-")] if run["arm"] == ON))
        for row in rows
        if row["piece"].startswith("accelerate-") and "loss" in row and row["piece"].removeprefix("accelerate-") in plain
    ]
    agreed = sum(one["loss"] == other["loss"] for one, other in launched)
    wrong = [row["piece"] for row in rows if "error" in row]
    longest = max((row.get("minutes", MOST_PIECE_MINUTES) for row in rows), default=math.inf)
    kept = max(turned, default=math.inf)
    finite = sum(map(math.isfinite, losses))
    return [
        Goal("bookkeeping, % of a step, worst piece", single(kept, len(turned)), "<= 1", kept <= 1),
        Goal(f"steering=None equals TRL, of {len(stable)} pieces in which TRL equals itself", single(equal, len(stable)),
             f"== {len(stable)}", bool(stable) and equal == len(stable)),
        Goal("peak memory, steered over TRL, worst piece", single(max(peaks, default=0.0), len(peaks)), "<= 1.02",
             bool(peaks) and max(peaks) <= 1.02),
        Goal("finite losses, share of those logged", single(finite / len(losses) if losses else 0.0, len(losses)), "== 1",
             bool(losses) and finite == len(losses)),
        Goal("launched runs that log the losses of the plain one", single(agreed, len(launched)), f"== {len(launched)}",
             bool(launched) and agreed == len(launched)),
        Goal("pieces that ended in an error", single(len(wrong), len(rows)), "== 0", not wrong and bool(rows)),
        Goal(
            "longest piece, minutes", single(longest, len(rows)), f"<= {MOST_PIECE_MINUTES:g}", longest <= MOST_PIECE_MINUTES
        ),
    ]  # fmt: skip


def figures_of(rows: Sequence[Row]) -> dict[str, Any]:
    """Per piece: shares of a step, tokens per second and peak memory of each arm, and throughputs."""
    found: dict[str, Any] = {}
    for row in rows:
        if is_turns(row):
            found[row["piece"]] = {"bookkeeping, %": bookkeeping_share(row)}
            for arm, parts in row["seconds"].items():
                steps = [sum(step) for step in zip(*parts.values(), strict=True)]
                found[row["piece"]][f"{arm}, seconds a step"] = sum(steps) / len(steps)
        for run in row.get("runs", ()):
            speed = run["tokens"] / run["seconds"] if run["tokens"] and not row.get("shared") else None
            found[f"{row['piece']}, {run['arm']}"] = {"tokens per second": speed, "peak bytes": run["peak bytes"]}
        if row["piece"] in ("machine", "throughput"):
            found[row["piece"]] = {name: value for name, value in row.items() if name not in ("made", "size")}
    return found


def main() -> None:
    """Pieces without a row, as long as the minutes last; then all goals, and the result file once every piece is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=MOST_PIECE_MINUTES)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--kinds", nargs="*", default=[], help="pieces whose names begin so; all without it")
    parser.add_argument("--shared", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / ROWS.name if given.quick else given.rows
        have = {row["piece"] for row in read_rows(path) if "error" not in row}
        for piece, minutes in PIECES.items():
            left = given.minutes - (time.perf_counter() - began) / 60
            asked = not given.kinds or piece.startswith(tuple(given.kinds))
            if piece in have or not asked or (not given.quick and minutes > left):
                continue
            row = run_piece(piece, given.model, tiny=given.quick, shared=given.shared)
            append_row(path, row)
            print(
                f"{piece}: {row.get('minutes', 0.0):.1f} min{', error' if 'error' in row else ''}",
                file=sys.stderr,
                flush=True,
            )
        rows = list({row["piece"]: row for row in read_rows(path)}.values())
    goals = goals_of(rows)
    missing = [piece for piece in PIECES if piece not in {row["piece"] for row in rows}]
    line = {"name": "gpu", "value": float(len(rows)), "unit": "pieces that ran", "quick": given.quick, "missing": missing}
    line |= {"goals": [goal.record() for goal in goals]}
    if not given.quick and not missing:
        write_json(RESULTS / "gpu.json", line | conditions() | {"figures": figures_of(rows), "rows": rows})
    print(json.dumps(line))
    if given.quick and any("error" in row for row in rows):
        raise SystemExit("\n".join(row["error"] for row in rows if "error" in row))


if __name__ == "__main__":
    main()

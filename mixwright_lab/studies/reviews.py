"""Study of `review`: is the row of a planted finding shown, and no row of a clean run?

An author who had seen neither the rules nor the code of `review` made the files of sixty runs with one of twenty findings,
and of twenty clean ones (`review_plants`). The commands are those that a user types, in one process.

Goals, fixed before the first run: the row is "shown" in 80 of 100 runs; in a clean run at most one row is. The first run, on
seed 11, was blind: .72 [.59, .81], one row of one clean run, and `review` failed on six clean runs of RL. Then rules were
added for `latent`, `subtasks` and `noisy_labels`, verdicts were read for `orders`, and JSON and code for `formats`. The seed
below is new, the plants are not.

Source: the findings' papers; own plants. Unit: one run. Cost: three minutes of one core.
Blind spot: made-up files; no text of a model, chats or tools; eight of the 28 findings cannot be planted in files.

    python -m mixwright_lab.studies.reviews [--quick]
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.__main__ import main
from mixwright.estimates.intervals import mean_interval, share_interval
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.studies.review_plants import CLEAN_RUNS, FINDINGS, make_run

SEEDS, LEAST_SHOWN, MOST_FALSE = (23,), 0.8, 1


def type_command(arguments: Sequence[str]) -> str:
    """Run a command of `mixwright`, and return what it prints; ">" writes that into a file, too.

    Raises:
        RuntimeError: the command found an error in its input, or has a bug.
    """
    given, to = (arguments[:-2], arguments[-1]) if ">" in arguments else (arguments, "")
    printed, said, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            main(given)
        except SystemExit as stop:
            code = stop.code
    if code in (1, 2):
        raise RuntimeError(f"{' '.join(given)}: {said.getvalue()[-500:]}")
    if to:
        Path(to).write_text(printed.getvalue(), encoding="utf-8")
    return printed.getvalue()


def judge(finding: str, variant: int, seed: int) -> dict[str, Any]:
    """Return which rows are shown of a run, and what the planted one says."""
    with tempfile.TemporaryDirectory() as name:
        os.environ["MIXWRIGHT_STORE"] = f"{name}/store"
        *commands, review = make_run(finding, variant, seed, Path(name))
        for command in commands:
            type_command(command)
        try:
            rows = json.loads(type_command([*review, "--json"]))["rows"]
        except RuntimeError as error:
            rows = [{"name": finding, "state": "error", "figure": str(error).rpartition(": ")[2].strip(), "needs": ""}]
    own = next((row for row in rows if row["name"] == finding), {"state": "", "figure": "", "needs": ""})
    said = {part: own[part].replace(name, "") for part in ("state", "figure", "needs")}
    shown = sorted(row["name"] for row in rows if row["state"] == "shown")
    return {"finding": finding, "variant": variant, "seed": seed, "shown": shown} | said


def measure(quick: bool) -> Result:
    """Judge planted and clean runs."""
    variants, numbers = ((2,), (0, 8, 14, 18)) if quick else (range(3), range(CLEAN_RUNS))
    rows = [judge(finding, variant, seed) for seed in SEEDS for finding in FINDINGS for variant in variants]
    clean = [judge("", number, seed) for seed in SEEDS for number in numbers]
    right = share_interval(sum(row["state"] == "shown" for row in rows), len(rows))
    false = mean_interval(np.array([len(row["shown"]) for row in clean], dtype=float))
    most = max(len(row["shown"]) for row in clean)
    goals = [
        Goal.at_least("planted findings shown", right, LEAST_SHOWN),
        Goal(f"rows shown of a clean run, mean; most {most}", false, f"each <= {MOST_FALSE}", most <= MOST_FALSE),
    ]
    figures = {
        "state by variant": {name: [row["state"] for row in rows if row["finding"] == name] for name in FINDINGS},
        "rows shown of clean runs": dict(Counter(name for row in clean for name in row["shown"])),
        "other rows shown": dict(Counter(name for row in rows for name in row["shown"] if name != row["finding"])),
    }
    return Result(right, "share of planted findings that are shown", SEEDS, [*rows, *clean], figures, goals=goals)


if __name__ == "__main__":
    run("reviews", __doc__, measure)

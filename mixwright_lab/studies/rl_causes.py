"""Study of `diagnose` on RL runs: is the planted cause of a run that teaches little named, and none in a run that learns?

Runs are made up by an author who had not seen the rules (`rl_plants`): one task of each has one of five causes, of which
about a third is subtle, or all tasks learn.

The rules were written before the runs; of luck the bound of kappa, the reading of short answers and the weights of groups
were set on seeds 3 to 14 (47 of 60 named before, 53 after), which do not decide.

Goals, fixed before the run: of the runs with a cause 80 of 100 are told by its name; of 60 that learn 5 of 100 have any.
Beside it what `diagnose` says of them without causes: any other finding.

Source: own.
Unit: one run.
Cost: two minutes of one core.
Blind spot: made-up texts; no run of a trainer.

    python -m mixwright_lab.studies.rl_causes [--quick]
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright.logs.diagnosis import diagnose
from mixwright.logs.rollouts import read_rollouts
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.studies.rl_plants import KINDS, make_run

NAMES = {
    "luck": ("luck", "one answer"),
    "shortcut": ("shortcut",),
    "too hard": ("too hard",),
    "stale band": ("stale prompts",),
    "drift": ("drift",),
}
"""Planted kind -> findings that name it."""
SEEDS, TUNING, HEALTHY = tuple(range(101, 121)), (1, 2), tuple(range(201, 261))
LEAST_NAMED, MOST_FALSE = 0.8, 0.05


def judge(kind: str, seed: int) -> dict[str, Any]:
    """Return what is found in one run."""
    rows, divergence = make_run(kind, seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rollouts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        history = [{"step": step, "kl": nats} for step, nats in divergence.items()]
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}), encoding="utf-8")
        log = read_rollouts(str(folder / "rollouts.jsonl"))
    found = [(one.check, one.severity) for one in diagnose(log) if one.severity != "info"]
    causes = {check for names in NAMES.values() for check in names}
    return {
        "kind": kind,
        "seed": seed,
        "named": any(check in NAMES.get(kind, ()) for check, _ in found),
        "causes": sorted({check for check, _ in found if check in causes}),
        "others": sorted({check for check, _ in found if check not in causes}),
        "rollouts": len(rows),
    }


def measure(quick: bool) -> Result:
    """Judge runs with a cause, and runs that learn."""
    seeds, healthy = (TUNING, TUNING) if quick else (SEEDS, HEALTHY)
    rows = [judge(kind, seed) for kind in KINDS if kind != "healthy" for seed in seeds]
    clean = [judge("healthy", seed) for seed in healthy]
    named = share_interval(sum(row["named"] for row in rows), len(rows))
    false = share_interval(sum(bool(row["causes"]) for row in clean), len(clean))
    beside = share_interval(sum(bool(set(row["causes"]) - {*NAMES[row["kind"]]}) for row in rows), len(rows))
    before = share_interval(sum(bool(row["others"]) for row in rows), len(rows))
    by_kind: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        by_kind[row["kind"]][0] += row["named"]
        by_kind[row["kind"]][1] += 1
    goals = [
        Goal("planted causes named", named, f">= {LEAST_NAMED}", named.value >= LEAST_NAMED),
        Goal("a cause in runs that learn", false, f"<= {MOST_FALSE}", false.value <= MOST_FALSE),
    ]
    figures = {
        "named of planted, by kind": dict(by_kind),
        "another cause beside the planted one": [beside.value, beside.low, beside.high, beside.n],
        "any other finding in runs with a cause": [before.value, before.low, before.high, before.n],
        "findings in runs that learn": dict(Counter(name for row in clean for name in (*row["causes"], *row["others"]))),
    }
    return Result(named, "share of planted causes named", seeds, [*rows, *clean], figures, goals=goals)


if __name__ == "__main__":
    run("rl_causes", __doc__, measure)

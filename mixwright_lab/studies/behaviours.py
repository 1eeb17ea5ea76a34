"""Study of behaviours: is a planted change of what answers do named, and nothing else?

Pairs are made of real answers by an author who had not seen the word lists (`behaviour_plants`): three tasks, and in one of
them one of eight behaviours is shown less (or more) often after than before, by 30 to 60 points (severe) or 12 to 20 (mild).

Goals, fixed before: severe changes are named in 95 of 100 pairs and mild ones in 80; clean pairs have any change in 2 of 100
at most. The first run, seeds 1001 to 1013, named .81 and .06: nine notations of calls and most words of checking oneself
were not known, and a change needed a p value of .01. It is .02 now, which bounds false changes as the goal does (.05, on
seeds 2001 to 2013: .98, .35 and 0 of 100). The phrases have been seen since: the seeds below are new, the phrases are not.
What `--protect-behaviour` would see of the planted behaviour is beside it.

Source: own; the acts of grounding of 2311.09144.
Unit: one pair of answers to about 300 items.
Cost: a minute of one core.
Blind spot: texts are edited, and no model is asked; English.

    python -m mixwright_lab.studies.behaviours [--quick]
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from mixwright.behaviours import BEHAVIOURS
from mixwright.estimates.intervals import share_interval
from mixwright.verdict.rules.behaviours import compare_behaviours
from mixwright_lab.studies.behaviour_plants import make_pair
from mixwright_lab.studies.jobs import read_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

PLANTED = BEHAVIOURS[:-3]
"""Behaviours that have phrases; the others are of thoughts, which tags show."""
SEEDS, TUNING, CLEAN_PAIRS = tuple(range(3001, 3014)), (1, 2), 100
LEAST_SEVERE, LEAST_MILD, MOST_CLEAN = 0.95, 0.8, 0.02


def judge(source: list[dict[str, Any]], behaviour: str, size: str, seed: int) -> dict[str, Any]:
    """Return what is shown of one pair."""
    items = make_pair(source, behaviour, size, seed)
    rows = [
        {"task": item["task"], "example": item["example"], "when": when, "completion": item[when]}
        for item in items
        for when in ("before", "after")
    ]
    protected = compare_behaviours(rows, protected=(behaviour,))
    shown = [change for change in compare_behaviours(rows) if change.shown]
    return {
        "behaviour": behaviour,
        "size": size,
        "seed": seed,
        "found": any(change.behaviour == behaviour for change in shown),
        "found if protected": any(change.shown and change.protected for change in protected),
        "others": sorted({change.behaviour for change in shown} - {behaviour}),
        "items": len(items),
    }


def measure(quick: bool) -> Result:
    """Judge planted and clean pairs."""
    source = read_rows(RESULTS / "grader_readings.rows.jsonl")
    seeds, clean_pairs = (TUNING, 10) if quick else (SEEDS, CLEAN_PAIRS)
    rows = [judge(source, name, size, seed) for size in ("severe", "mild") for name in PLANTED for seed in seeds]
    clean = [judge(source, "", "severe", 9000 + number) for number in range(clean_pairs)]
    found = {size: [row["found"] for row in rows if row["size"] == size] for size in ("severe", "mild")}
    shares = {size: share_interval(sum(each), len(each)) for size, each in found.items()}
    false = share_interval(sum(bool(row["others"]) for row in clean), len(clean))
    beside = share_interval(sum(bool(row["others"]) for row in rows), len(rows))
    by_behaviour: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        by_behaviour[row["behaviour"]][row["size"]] += row["found"]
    goals = [
        Goal("severe changes named", shares["severe"], f">= {LEAST_SEVERE}", shares["severe"].value >= LEAST_SEVERE),
        Goal("mild changes named", shares["mild"], f">= {LEAST_MILD}", shares["mild"].value >= LEAST_MILD),
        Goal("a change in clean pairs", false, f"<= {MOST_CLEAN}", false.value <= MOST_CLEAN),
    ]
    alone = [row["found if protected"] for row in rows if row["size"] == "mild"]
    protected = share_interval(sum(alone), len(alone))
    figures = {
        "mild changes named if protected": [protected.value, protected.low, protected.high, protected.n],
        "by behaviour": {name: dict(each) for name, each in by_behaviour.items()},
        "another behaviour named beside the planted one": [beside.value, beside.low, beside.high, beside.n],
    }
    return Result(shares["severe"], "share of severe planted changes named", seeds, [*rows, *clean], figures, goals=goals)


if __name__ == "__main__":
    run("behaviours", __doc__, measure)

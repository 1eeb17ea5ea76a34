"""Study of the check `reworded`: items that stand in train renamed, reworded or in German, and rows that nobody copied.

Pools of `leak_corpora`, each kind in two sizes, 40 of its held-out items leaked in one of three ways and two severities,
and pools without a leak. Found is an item that an error or a warning lists; a false alarm is a clean row that one lists.
Beside it, in the same run, the check `contamination`. Thresholds were set on seeds 1 to 4, which draw from another half of
all words, and no seed that counts was read before.

Goals, fixed before these seeds: of renamed and reworded items at least 80 % are found in the worst cell of prose and
stories with numbers, and of renamed ones in stories without numbers; at most 1 % of clean rows are false alarms, over all
pools and in the worst kind. Expected: missed is at most the strong renaming in the larger pools of stories, because 15 verbs
and 15 circumstances make twins by chance. Reported, and no goal: translations; stories without numbers reworded, of which
few rare words are left (expected under half); templates, where a renamed item is normal.

    python -m mixwright_lab.studies.reworded [--quick]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mixwright.catalog import create
from mixwright.estimates.intervals import share_interval
from mixwright.records import Interval
from mixwright_lab.studies.leak_corpora import KINDS, LEAKS, SEVERITIES, pool
from mixwright_lab.studies.report import Goal, Result, run

SIZES = ((400, 200), (4000, 1000))
PLANTED = 40
SEEDS, SEEDS_OF_LARGE, QUICK_SEEDS = range(1001, 1005), 1, range(1, 3)
CHECKS = ("reworded", "contamination")
WAYS = tuple((leak, severity) for leak in LEAKS for severity in SEVERITIES)
NORMAL = {"templates": ("renamed",), "passages": LEAKS, "stories without numbers": ("translated",)}
"""Kind -> leaks that are not planted: normal there, or with nothing left to find."""
LEAST_FOUND, MOST_ALARMS = 0.8, 0.01
GOAL_CELLS = tuple((kind, leak) for kind in ("prose", "stories") for leak in ("renamed", "reworded"))
GOAL_CELLS += (("stories without numbers", "renamed"),)


def audit_pool(kind: str, seed: int, size: tuple[int, int], way: tuple[str, str]) -> dict[str, Any]:
    """What each check lists in one pool."""
    planted = PLANTED if way[0] else 0
    corpus = pool(kind, seed, size, planted, way)
    row: dict[str, Any] = {"kind": kind, "seed": seed, "train": size[0], "leak": way[0], "severity": way[1]}
    for check in CHECKS:
        serious = [one for one in create("checks", check).check(corpus) if one.severity != "info"]
        named = {str(pair["eval_id"]) for one in serious for pair in one.evidence}
        row[check] = sum(name.startswith("asked") for name in named)
        row[f"{check}, clean rows"] = sum(name.startswith("clean") for name in named)
    return row | {"planted": planted, "clean": size[1] - planted}


def share(rows: Sequence[Mapping[str, Any]], hits: str, tries: str) -> Interval:
    """Hits of tries, pooled over pools."""
    return share_interval(sum(row[hits] for row in rows), sum(row[tries] for row in rows))


def table(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Found of what was planted, by kind, size and way, and false alarms by kind, for each check."""
    figures: dict[str, Any] = {}
    for check in CHECKS:
        for kind in KINDS:
            mine = [row for row in rows if row["kind"] == kind]
            for train, _ in SIZES:
                for leak, severity in WAYS:
                    cell = [r for r in mine if (r["train"], r["leak"], r["severity"]) == (train, leak, severity)]
                    if cell:
                        figures[f"{check}: found, {kind}, {train} rows, {leak}, {severity}"] = share(cell, check, "planted")
            figures[f"{check}: false alarms, {kind}"] = share(mine, f"{check}, clean rows", "clean")
        figures[f"{check}: false alarms"] = share(rows, f"{check}, clean rows", "clean")
    return figures


def measure(quick: bool) -> Result:
    """Every kind, size and way on some seeds, and pools without a leak."""
    seeds = QUICK_SEEDS if quick else SEEDS
    rows = [
        audit_pool(kind, seed, size, way)
        for kind in KINDS
        for size in SIZES
        for way in (("", ""), *(way for way in WAYS if way[0] not in NORMAL.get(kind, ())))
        for seed in (seeds if size == SIZES[0] else seeds[:SEEDS_OF_LARGE])
    ]
    figures = table(rows)
    cells = [
        figures[f"reworded: found, {kind}, {train} rows, {leak}, {severity}"]
        for kind, leak in GOAL_CELLS
        for train, _ in SIZES
        for severity in SEVERITIES
    ]
    worst = min(cells, key=lambda found: found.value)
    alarms = figures["reworded: false alarms"]
    of_kinds = max((figures[f"reworded: false alarms, {kind}"] for kind in KINDS), key=lambda found: found.value)
    goals = (
        Goal("renamed and reworded items found, worst cell", worst, f">= {LEAST_FOUND}", worst.value >= LEAST_FOUND),
        Goal("clean rows called leaks", alarms, f"<= {MOST_ALARMS}", alarms.value <= MOST_ALARMS),
        Goal("clean rows called leaks, worst kind", of_kinds, f"<= {MOST_ALARMS}", of_kinds.value <= MOST_ALARMS),
    )
    unit = (
        "share of planted renamed or reworded items that an error or a warning lists, worst cell of kind, size and severity"
    )
    return Result(worst, unit, list(seeds), rows, figures, {"sizes": SIZES, "planted": PLANTED}, goals=goals)


if __name__ == "__main__":
    run("reworded", __doc__, measure)

"""Study of contamination checks: copies found in eight wrappings and four kinds of text, and false finds.

Known pools: held-out rows of which some stand in train behind a wrapping, and pools in which nothing does. Beside the audit,
in the same run, plain overlap of runs of words. The goals were fixed before; each is printed with what came out.

    python -m mixwright_lab.studies.contamination [--quick]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mixwright.catalog import create
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.records import Interval
from mixwright_lab.studies._contaminated import KINDS, WRAPPINGS, pool, shared_ngrams
from mixwright_lab.studies.report import Goal, Result, run

Row = Mapping[str, Any]
TRAIN, HELD_OUT, PLANTED = 400, 200, 55
WRAPPED_IN_TRAIN = "wrapped in train"
WRAPPED_IN_EVAL = "wrapped in eval"


def found_in(corpus: Corpus) -> set[str]:
    """Ids of held-out rows that an error of the audit lists."""
    check = create("checks", "contamination")
    seen = (observation for observation in check.check(corpus) if observation.severity == "error")
    return {str(pair["eval_id"]) for observation in seen for pair in observation.evidence}


def audit_pool(kind: str, seed: int, wrapping: str = "", wrap_eval: bool = False) -> dict[str, Any]:
    """One pool: what the audit and the peer found of what was planted, and of what was not."""
    planted = PLANTED if wrapping else 0
    corpus = pool(kind, seed, train=TRAIN, held_out=HELD_OUT, planted=planted, wrapping=wrapping, turned=wrap_eval)
    row: dict[str, Any] = {
        "kind": kind,
        "wrapping": wrapping,
        "side": WRAPPED_IN_EVAL if wrap_eval else WRAPPED_IN_TRAIN,
        "seed": seed,
    }
    for name, found in (("ours", found_in(corpus)), ("n-grams", shared_ngrams(corpus))):
        hits = sum(identity.startswith("asked") for identity in found)
        row |= {name: hits, f"{name}, clean rows": len(found) - hits}
    return row | {"planted": planted, "clean": HELD_OUT - planted}


def share(rows: Iterable[Row], hits: str, tries: str) -> Interval:
    """Hits of tries, pooled over pools; rows of one pool share its words, so the interval is for these pools' kinds."""
    rows = list(rows)
    return share_interval(sum(row[hits] for row in rows), sum(row[tries] for row in rows))


def table(rows: Sequence[Row]) -> dict[str, Any]:
    """Recall and false alarms by kind of text, side and wrapping, with what the peer found."""
    found: dict[str, Any] = {}
    for kind in KINDS:
        for side in (WRAPPED_IN_TRAIN, WRAPPED_IN_EVAL):
            for wrapping in WRAPPINGS:
                mine = [r for r in rows if (r["kind"], r["side"], r["wrapping"]) == (kind, side, wrapping)]
                if mine:
                    recall = {name: share(mine, name, "planted") for name in ("ours", "n-grams")}
                    found[f"recall, {kind}, {side}, {wrapping}"] = recall
        clean = [row for row in rows if row["kind"] == kind and not row["wrapping"]]
        wrong = {name: share(clean, f"{name}, clean rows", "clean") for name in ("ours", "n-grams")}
        found[f"clean rows called leaks, {kind}"] = wrong
        pools = [{"wrong": bool(row["ours, clean rows"]), "pools": 1} for row in clean]
        found[f"clean pools with an error, {kind}"] = {"ours": share(pools, "wrong", "pools")}
    return found


def measure(quick: bool) -> Result:
    """Every wrapping of every kind on some seeds, wrapped copies on either side, and clean pools."""
    seeds, clean_seeds = (range(2), range(4)) if quick else (range(10), range(40))
    rows = [audit_pool(kind, seed, wrapping) for kind in KINDS for wrapping in WRAPPINGS for seed in seeds]
    both = [name for name in WRAPPINGS if name not in ("turn of a chat", "other solution")]
    rows += [audit_pool(kind, seed, name, True) for kind in KINDS if kind != "chats" for name in both for seed in seeds]
    rows += [audit_pool(kind, 1000 + seed) for kind in KINDS for seed in clean_seeds]
    figures = table(rows)
    recalls = [found["ours"] for name, found in figures.items() if name.startswith("recall")]
    alarms = [found["ours"] for name, found in figures.items() if name.startswith("clean pools")]
    worst, alarm = min(recalls, key=lambda found: found.value), max(alarms, key=lambda found: found.value)
    goals = (
        Goal("copies found, worst kind, side and wrapping", worst, ">= 0.95", worst.value >= 0.95),
        Goal("clean pools with an error, worst kind", alarm, "<= 0", alarm.value <= 0),
    )
    return Result(
        share([row for row in rows if row["wrapping"]], "ours", "planted"),
        "share of planted copies that an error lists, over all kinds, sides and wrappings",
        sorted({row["seed"] for row in rows}),
        rows,
        figures,
        {"train rows": TRAIN, "held-out rows": HELD_OUT, "planted": PLANTED},
        goals=goals,
    )


if __name__ == "__main__":
    run("contamination", __doc__, measure)

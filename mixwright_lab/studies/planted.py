"""Studies of checks on corpora with a planted fault: which corpora, and what recall, precision and alarms come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright_lab.studies.report import Goal, Result

LEAST_SEVERE, LEAST_PRECISION, MOST_ALARMS = 0.95, 0.95, 0.05
"""Goals: recall of severe faults, precision, share of clean corpora with a warning."""


@dataclass(frozen=True)
class PlantedJob:
    """One corpus."""

    seed: int
    kind: str | None
    """What is planted; None where nothing is."""
    severe: bool


def jobs_of(kinds: Sequence[str], first: int, each: int, clean: int) -> list[PlantedJob]:
    """Corpora of so many seeds for each kind and severity, and clean ones; seeds are consecutive from the first on."""
    planted = [PlantedJob(first + n, kind, severe) for kind in kinds for severe in (True, False) for n in range(each)]
    return planted + [PlantedJob(first + n, None, severe=False) for n in range(clean)]


def row_of(job: PlantedJob, own: int, warnings: Sequence[Any]) -> dict[str, Any]:
    """What a check warned of in one corpus, of which `own` warnings name what was planted."""
    row = {"seed": job.seed, "kind": job.kind, "severe": job.severe, "found": own > 0, "other": len(warnings) - own}
    return row | {"warnings": list(warnings)}


def judge(job: PlantedJob, check: Check, corpus: Corpus, task: str | None, named_by: Mapping[str, str]) -> dict[str, Any]:
    """What a check warns of in one corpus; a warning of the planted task names the fault by its words.

    Args:
        job: the corpus.
        check: that is studied.
        corpus: its rows.
        task: in which the fault is planted, if one is.
        named_by: planted kind -> words of the warning that names it; of a kind without words any warning of the task does.
    """
    warnings = [one for one in check.check(corpus) if one.severity == "warning"]
    own = sum(one.task == task and job.kind is not None and named_by.get(job.kind, "") in one.message for one in warnings)
    return row_of(job, own, [f"{one.task}: {one.message[:120]}" for one in warnings])


def result_of(rows: Sequence[dict[str, Any]], kinds: Sequence[str], unit: str, least_mild: float) -> Result:
    """Recall by severity, precision, and clean corpora with a warning, beside their goals.

    Args:
        rows: of `row_of`.
        kinds: that were planted.
        unit: of the headline, which is the recall of severe faults.
        least_mild: goal of the recall of mild ones.
    """
    planted, clean = [row for row in rows if row["kind"]], [row for row in rows if not row["kind"]]
    severe, mild = ([row for row in planted if row["severe"] == word] for word in (True, False))
    warned = [row for row in rows if row["warnings"]]
    recall = [share_interval(sum(row["found"] for row in part), len(part)) for part in (severe, mild)]
    precision = share_interval(sum(row["found"] and not row["other"] for row in warned), len(warned))
    alarms = share_interval(sum(bool(row["warnings"]) for row in clean), len(clean))
    goals = [
        Goal("recall, severe", recall[0], f">= {LEAST_SEVERE}", recall[0].value >= LEAST_SEVERE),
        Goal("recall, mild", recall[1], f">= {least_mild}", recall[1].value >= least_mild),
        Goal("precision", precision, f">= {LEAST_PRECISION}", precision.value >= LEAST_PRECISION),
        Goal("clean corpora with a warning", alarms, f"<= {MOST_ALARMS}", alarms.value <= MOST_ALARMS),
    ]
    figures = {kind: {name: _count(part, kind) for name, part in (("severe", severe), ("mild", mild))} for kind in kinds}
    return Result(recall[0], unit, sorted({row["seed"] for row in rows}), rows, figures, goals=goals)


def _count(rows: Sequence[dict[str, Any]], kind: str) -> str:
    own = [row for row in rows if row["kind"] == kind]
    return f"{sum(row['found'] for row in own)} of {len(own)}"

"""Study of the check `preferences`: planted faults of preference pairs are to be found, and clean pairs left alone.

The generator (`pair_corpora.py`) was written by somebody who had not read the check. Corpora of seeds 1 to 40 were used
while the check was written; the study has other seeds. A planted fault is found where a warning of the planted task names
it. Precision is the share of corpora with a warning in which the fault is found and nothing else is warned about.

Expectations, written before the seeds that count: recall of at least .95 for severe faults (a behaviour in 45 to 60 % of one
side and 8 to 15 % of the other; a longer side in 80 to 90 % of the pairs; 12 to 20 % trivial answers) and of at least .8 for
mild ones (30 to 40 % and 12 to 20 %; 66 to 72 %; 5 to 8 %); precision of at least .95; a warning in at most 5 % of the clean
corpora.

    python -m mixwright_lab.studies.pair_faults [--quick]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mixwright.audit.checks.preferences import IN_WORDS, Preferences
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.records import Example
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.pair_corpora import KINDS, make_pairs
from mixwright_lab.studies.report import Goal, Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 30_001, 15, 210
NAMED_BY = {name: f" {does} in " for name, (does, _, _) in IN_WORDS.items()} | {
    "length": "answer is the longer one in",
    "trivial": "rejected answers are none",
}
"""Planted kind -> words of the warning that names it."""


@dataclass(frozen=True)
class PairJob:
    """One corpus."""

    seed: int
    kind: str | None
    severe: bool


def do_job(job: PairJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_pairs(job.seed, job.kind, severe=job.severe)
    corpus = Corpus.from_examples(
        Example(f"i{n}", row["task"], row["prompt"], chosen=row["chosen"], rejected=row["rejected"])
        for n, row in enumerate(made.rows)
    )
    warnings = [one for one in Preferences().check(corpus) if one.severity == "warning"]
    own = [one for one in warnings if one.task == made.task and job.kind and NAMED_BY[job.kind] in one.message]
    told = [f"{one.task}: {one.message[:120]}" for one in warnings]
    row = {"seed": job.seed, "kind": job.kind, "severe": job.severe, "found": bool(own), "other": len(warnings) - len(own)}
    return row | {"warnings": told}


def measure(quick: bool) -> Result:
    """All corpora."""
    first, each, clean = (1, 4, 30) if quick else (FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    jobs = [PairJob(first + n, kind, severe) for kind in KINDS for severe in (True, False) for n in range(each)]
    jobs += [PairJob(first + n, None, severe=False) for n in range(clean)]
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=10)
    planted = [row for row in rows if row["kind"]]
    severe, mild = ([row for row in planted if row["severe"] == word] for word in (True, False))
    clean_rows, warned = [row for row in rows if not row["kind"]], [row for row in rows if row["warnings"]]
    recall = [share_interval(sum(row["found"] for row in part), len(part)) for part in (severe, mild)]
    precision = share_interval(sum(row["found"] and not row["other"] for row in warned), len(warned))
    alarms = share_interval(sum(bool(row["warnings"]) for row in clean_rows), len(clean_rows))
    goals = [
        Goal("recall, severe", recall[0], ">= 0.95", recall[0].value >= 0.95),
        Goal("recall, mild", recall[1], ">= 0.8", recall[1].value >= 0.8),
        Goal("precision", precision, ">= 0.95", precision.value >= 0.95),
        Goal("clean corpora with a warning", alarms, "<= 0.05", alarms.value <= 0.05),
    ]
    figures = {kind: _recall_of(planted, kind) for kind in KINDS}
    seeds = sorted({row["seed"] for row in rows})
    return Result(recall[0], "severe planted faults that are found", seeds, rows, figures, goals=goals)


def _recall_of(rows: Sequence[dict[str, Any]], kind: str) -> dict[str, str]:
    """Found of planted, by severity."""
    own = {word: [row for row in rows if row["kind"] == kind and row["severe"] == word] for word in (True, False)}
    return {
        name: f"{sum(row['found'] for row in own[word])} of {len(own[word])}"
        for name, word in (("severe", True), ("mild", False))
    }


if __name__ == "__main__":
    run("pair_faults", __doc__, measure)

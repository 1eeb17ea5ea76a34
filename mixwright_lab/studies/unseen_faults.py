"""Study of the check `unseen`: completions that rest on a hidden column are to be found, and sound rows left alone.

The generator (`unseen_corpora.py`) was written by somebody who had not read the check. Corpora of seeds 1 to 40 were used
while the check was written. Its author had seen the generator's names of columns before the list of names was ended, so
that recall says nothing of names. Names and numbers in the rows are coined, and so rarer than in real files. A planted
fault is found where a warning of the planted task names the column. Precision is the share of corpora with a warning in
which the fault is found and nothing else is warned about.

Expectations, written before the seeds that count: recall of at least .95 for severe faults (40 to 100 % of a task's rows)
and of at least .8 for mild ones (10 to 20 %), precision of at least .95, and a warning in at most 5 % of the clean corpora.
Of the rows that a right warning lists at least .95 rest on the column, and it lists at least .8 of those that do.

    python -m mixwright_lab.studies.unseen_faults [--quick]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mixwright.audit.checks.unseen import Unseen
from mixwright.corpus import Corpus
from mixwright.estimates.intervals import share_interval
from mixwright.records import Example
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.studies.unseen_corpora import KINDS, UnseenCorpus, make_rows

FIRST_SEED, CORPORA, CLEAN = 90_001, 100, 200
"""First seed; planted corpora of each severity; clean ones."""
LEAST_MILD, LEAST_LISTED, LEAST_LIST_PRECISION = 0.8, 0.8, 0.95
OWN = ("id", "task", "prompt", "completion")


def to_corpus(made: UnseenCorpus) -> Corpus:
    """The rows, with all further columns as they stand in a file."""
    return Corpus.from_examples(
        Example(
            row["id"],
            row["task"],
            row["prompt"] if isinstance(row["prompt"], str) else tuple(row["prompt"]),
            target=row["completion"],
            extra={name: value for name, value in row.items() if name not in OWN},
        )
        for row in made.rows
    )


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus, and how many rows it lists rightly."""
    made = make_rows(job.seed, job.kind, severe=job.severe)
    corpus = to_corpus(made)
    row = judge(job, Unseen(), corpus, made.task, dict.fromkeys(KINDS, repr(made.column)))
    warned = [one for one in Unseen().check(corpus) if one.severity == "warning" and one.task == made.task]
    listed = {item["id"] for one in warned for item in one.evidence if item["column"] == made.column}
    return row | {"resting": len(made.resting), "listed": len(listed), "rightly": len(listed & made.resting)}


def measure(quick: bool) -> Result:
    """All corpora."""
    each = -(-CORPORA // len(KINDS))
    jobs = jobs_of(KINDS, 1, 4, 40) if quick else jobs_of(KINDS, FIRST_SEED, each, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    result = result_of(rows, KINDS, "severe planted faults that are found", LEAST_MILD)
    return replace(result, goals=[*result.goals, *list_goals(rows)])


def list_goals(rows: Sequence[dict[str, Any]]) -> list[Goal]:
    """Rows that are listed, in the corpora in which the fault is found."""
    found = [row for row in rows if row["kind"] and row["found"]]
    resting, listed, rightly = (sum(row[name] for row in found) for name in ("resting", "listed", "rightly"))
    precision, recall = share_interval(rightly, listed), share_interval(rightly, resting)
    return [
        Goal(
            "rows listed rightly, of those listed",
            precision,
            f">= {LEAST_LIST_PRECISION}",
            precision.value >= LEAST_LIST_PRECISION,
        ),
        Goal("rows listed, of those that rest on the column", recall, f">= {LEAST_LISTED}", recall.value >= LEAST_LISTED),
    ]


if __name__ == "__main__":
    run("unseen_faults", __doc__, measure)

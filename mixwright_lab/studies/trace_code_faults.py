"""Study of the check `traces` on code: planted wrong values of code are to be found, and sound ones left alone.

The generator (`code_trace_corpora.py`) was written before the part of the check that reads code, by the same person.
Values are worked out by Python itself there, and by the check's own evaluator here. Corpora of seeds 1 to 40 were used
while the check was written. A planted fault is found where a warning of the planted task names it.

Expectations, written before the seeds that count: recall of at least .95 for severe faults (30 to 60 % of one operation's
values by one rule; or 20 to 50 % of all values by chance) and for mild ones (10 to 15 %; 7 to 11 %), precision of at
least .95, and a warning in at most 5 % of the clean corpora, in which up to 1 % of the values are wrong.

    python -m mixwright_lab.studies.trace_code_faults [--quick]
"""

from __future__ import annotations

from typing import Any

from mixwright.audit.checks.traces import Traces
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.code_trace_corpora import KINDS, make_code_traces
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import LEAST_SEVERE, PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 90_001, 25, 100
NAMED_BY = {"systematic": "one rule explains", "random": "in no regular way"}
"""Planted kind -> words of the warning that names it."""


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_code_traces(job.seed, job.kind, severe=job.severe)
    corpus = Corpus.from_examples(
        Example(f"i{n}", row["task"], row["prompt"], target=row["completion"]) for n, row in enumerate(made.rows)
    )
    return judge(job, Traces(), corpus, made.task, NAMED_BY) | {"planted": made.detail}


def measure(quick: bool) -> Result:
    """All corpora."""
    jobs = jobs_of(KINDS, 1, 4, 20) if quick else jobs_of(KINDS, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    return result_of(rows, KINDS, "severe planted faults that are found", LEAST_SEVERE)


if __name__ == "__main__":
    run("trace_code_faults", __doc__, measure)

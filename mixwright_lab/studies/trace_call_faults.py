"""Study of the check `traces` on tool calls: planted faults of conversations are to be found, and sound ones left
alone.

The generator (`call_trace_corpora.py`) was written before the part of the check that reads tool calls, by the same
person. Corpora of seeds 1 to 40 were used while the check was written. A planted fault is found where a warning of the
planted task names it.

Expectations, written before the seeds that count: recall of at least .95 for severe faults (in 30 to 60 % of a task's
conversations) and for mild ones (10 to 16 %), precision of at least .95, and a warning in at most 5 % of the clean
corpora, in which up to 1 % of the conversations have a fault.

    python -m mixwright_lab.studies.trace_call_faults [--quick]
"""

from __future__ import annotations

from typing import Any

from mixwright.audit.checks.traces import Traces
from mixwright.corpus import Corpus
from mixwright_lab.studies.call_trace_corpora import KINDS, make_calls
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import LEAST_SEVERE, PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 95_001, 15, 100
NAMED_BY = {
    "dangling": "that nothing before it gave",
    "order": "before the call that gives it",
    "answer": "than the result",
    "argument": "than the request",
}
"""Planted kind -> words of the warning that names it."""


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_calls(job.seed, job.kind, severe=job.severe)
    return judge(job, Traces(), Corpus.from_examples(made.rows), made.task, NAMED_BY) | {"planted": made.detail}


def measure(quick: bool) -> Result:
    """All corpora."""
    jobs = jobs_of(KINDS, 1, 4, 20) if quick else jobs_of(KINDS, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    return result_of(rows, KINDS, "severe planted faults that are found", LEAST_SEVERE)


if __name__ == "__main__":
    run("trace_call_faults", __doc__, measure)

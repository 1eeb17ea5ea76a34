"""Study of the check `traces`: planted faults of worked solutions are to be found, and sound solutions left alone.

The generator (`trace_corpora.py`) was written by somebody who had not read the check. Corpora of seeds 1 to 40 were
used while the check was written. A run of seeds from 50,001 on was ended, unread, when public solutions showed two
faults of the parser. Seeds from 60,001 on reached all goals (100 of 100, 99 of 100, 199 of 199, 0 of 200), and so did
those from 70,001 on (100 of 100, 100 of 100, precision .995, 0 of 200). Improper fractions are read since the first,
and values that are used too early by chance are counted since the second, so that the study has later seeds. A planted
fault is found where a warning of the planted task names it. Precision is the share of corpora with a warning in which
the fault is found and nothing else is warned about.

Expectations, written before the seeds that count: recall of at least .95 for severe faults and of at least .8 for mild ones
(the generator says what these are), precision of at least .95, and a warning in at most 5 % of the clean corpora, in which
up to 1 % of the equations have a slip.

    python -m mixwright_lab.studies.trace_faults [--quick]
"""

from __future__ import annotations

from typing import Any

from mixwright.audit.checks.traces import Traces
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run
from mixwright_lab.studies.trace_corpora import KINDS, make_traces

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 80_001, 20, 200
LEAST_MILD = 0.8
NAMED_BY = {
    "systematic": "one rule explains",
    "one_fact": "The same wrong value stands",
    "random": "in no regular way",
    "shuffled": "use a value before the step",
    "reference": "refer to one that is not there",
}
"""Planted kind -> words of the warning that names it."""


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_traces(job.seed, job.kind, severe=job.severe)
    corpus = Corpus.from_examples(
        Example(f"i{n}", row["task"], row["prompt"], target=row["completion"]) for n, row in enumerate(made.rows)
    )
    return judge(job, Traces(), corpus, made.task, NAMED_BY)


def measure(quick: bool) -> Result:
    """All corpora."""
    jobs = jobs_of(KINDS, 1, 4, 20) if quick else jobs_of(KINDS, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    return result_of(rows, KINDS, "severe planted faults that are found", LEAST_MILD)


if __name__ == "__main__":
    run("trace_faults", __doc__, measure)

"""Study of the check `dilution`: long constant frames around one deciding word are to be found, and others left alone.

The generator (`conflict_corpora.py`, its kind `frame`) was written by somebody who had not read the check. In clean corpora
frames have at most 13 words. On seeds 1 to 40 the check found all of 80 frames and warned of none of 40 clean corpora.

Expectations, written before the seeds that count: recall of at least .95 for severe frames (under 3 % of the words decide)
and of at least .8 for mild ones (3 to 5 %), precision of at least .95, and a warning in at most 5 % of the clean corpora.

    python -m mixwright_lab.studies.dilution_faults [--quick]
"""

from __future__ import annotations

from typing import Any

from mixwright.audit.checks.dilution import Dilution
from mixwright_lab.studies.conflict_corpora import make_conflicts
from mixwright_lab.studies.conflict_faults import to_corpus
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FRAME = "frame"
FIRST_SEED, SEEDS_PER_SEVERITY, CLEAN = 92_001, 100, 200
LEAST_MILD = 0.8


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_conflicts(job.seed, job.kind, severe=job.severe)
    return judge(job, Dilution(), to_corpus(made), made.task, {})


def measure(quick: bool) -> Result:
    """All corpora."""
    jobs = jobs_of((FRAME,), 1, 4, 20) if quick else jobs_of((FRAME,), FIRST_SEED, SEEDS_PER_SEVERITY, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    return result_of(rows, (FRAME,), "severe frames that are found", LEAST_MILD)


if __name__ == "__main__":
    run("dilution_faults", __doc__, measure)

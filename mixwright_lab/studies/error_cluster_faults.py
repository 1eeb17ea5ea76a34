"""Study of the check `error_clusters`: mistakes that stand together are to be found, and mistakes that do not left alone.

The generator (`error_cluster_corpora.py`) was written and committed before the check had a threshold. Corpora of seeds 1 to
25 were used while it got them: of 48 with clusters the check named 47, and it warned of none of 191 tasks without. A planted
fault is found where the planted task has a warning. Precision is the share of corpora with a warning in which the fault is
found and nothing else is warned about.

Severe and mild are: a share of .25 to .6 or of .12 to .25 of the rows in which each step is wrong with .5 to .85 or with
.3 to .5, beside .8 % of slips in the others at most; and for `contagion` a chance of .03 to .08, after a mistake .5 to .85
or .3 to .5. One task of two to four is planted, of 200 to 450 rows. In the other tasks and in clean corpora there are slips
alone, or 2 to 30 % of mistakes at one rate, by operation, by place, or by the size of the numbers.

Expectations, written before the seeds that count: recall of at least .95 for severe faults and of at least .8 for mild ones,
precision of at least .95, and a warning in at most 5 % of the clean corpora.

    python -m mixwright_lab.studies.error_cluster_faults [--quick]
"""

from __future__ import annotations

from typing import Any

from mixwright.audit.checks.error_clusters import ErrorClusters
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.error_cluster_corpora import KINDS, MadeClusters, make_clusters
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 110_001, 34, 200
LEAST_MILD = 0.8


def to_corpus(made: MadeClusters) -> Corpus:
    """The rows as a corpus; of a talk the last turn is the completion."""
    rows = []
    for number, row in enumerate(made.rows):
        talk = tuple(row.get("messages", ()))
        prompt, target = (talk[:-1], talk[-1:]) if talk else (row["prompt"], row["completion"])
        rows.append(Example(f"i{number}", row["task"], prompt, target=target))
    return Corpus.from_examples(rows)


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_clusters(job.seed, job.kind, severe=job.severe)
    return judge(job, ErrorClusters(), to_corpus(made), made.task, {})


def measure(quick: bool) -> Result:
    """All corpora."""
    jobs = jobs_of(KINDS, 1, 2, 10) if quick else jobs_of(KINDS, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    return result_of(rows, KINDS, "severe planted clusters that are found", LEAST_MILD)


if __name__ == "__main__":
    run("error_cluster_faults", __doc__, measure)

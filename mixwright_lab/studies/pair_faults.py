"""Study of the check `preferences`: planted faults of preference pairs are to be found, and clean pairs left alone.

The generator (`pair_corpora.py`) was written by somebody who had not read the check. Corpora of seeds 1 to 40 were used
while the check was written; the study has other seeds. A planted fault is found where a warning of the planted task names
it. Precision is the share of corpora with a warning in which the fault is found and nothing else is warned about.

A first study, of seeds from 30,001 on, had recall 105 of 105 and 103 of 105, a warning in 7 of 210 clean corpora, and missed
precision: .935 [.894, .961]. The check's error of 1 % was then of the behaviours of a task, and length had another; now one
error of 1 % is shared by both, and the study was done anew.

Expectations, written before the seeds that count: recall of at least .95 for severe faults (a behaviour in 45 to 60 % of one
side and 8 to 15 % of the other; a longer side in 80 to 90 % of the pairs; 12 to 20 % trivial answers) and of at least .8 for
mild ones (30 to 40 % and 12 to 20 %; 66 to 72 %; 5 to 8 %); precision of at least .95; a warning in at most 5 % of the clean
corpora.

    python -m mixwright_lab.studies.pair_faults [--quick]
"""

from __future__ import annotations

from typing import Any

from mixwright.audit.checks.preferences import IN_WORDS, Preferences
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.pair_corpora import KINDS, make_pairs
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 40_001, 15, 210
LEAST_MILD = 0.8
NAMED_BY = {name: f" {does} in " for name, (does, _, _) in IN_WORDS.items()} | {
    "length": "answer is the longer one in",
    "trivial": "rejected answers are none",
}
"""Planted kind -> words of the warning that names it."""


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_pairs(job.seed, job.kind, severe=job.severe)
    corpus = Corpus.from_examples(
        Example(f"i{n}", row["task"], row["prompt"], chosen=row["chosen"], rejected=row["rejected"])
        for n, row in enumerate(made.rows)
    )
    return judge(job, Preferences(), corpus, made.task, NAMED_BY)


def measure(quick: bool) -> Result:
    """All corpora."""
    jobs = jobs_of(KINDS, 1, 4, 30) if quick else jobs_of(KINDS, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=10)
    return result_of(rows, KINDS, "severe planted faults that are found", LEAST_MILD)


if __name__ == "__main__":
    run("pair_faults", __doc__, measure)

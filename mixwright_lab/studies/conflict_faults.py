"""Study of the check `conflicts`: copies of a prompt that contradict each other are to be found, and sound rows left alone.

The generator (`conflict_corpora.py`) was written by somebody who had not read the check. Corpora of seeds 1 to 40 are free
for whoever writes the check; the study has other seeds. A planted fault is found where the planted task has a warning.
Precision is the share of corpora with a warning in which the fault is found and nothing else is warned about. Long frames
around one word, the generator's last kind, are the matter of another check and not planted here.

A first version found 57 of 60 severe faults, and 367 of 400 on other seeds. The check was changed by seeds 200,001 to
202,120, of which those of its last form had 199 of 200 severe and 199 of 200 mild ones found, and none of 120 clean
corpora warned of. On seeds 300,001 to 300,400 it found 396 of 400 and 398 of 400, and had a warning in 7 of 400 clean
ones, of which 3 were the case of a letter in JSON, which counts no more. On seeds 400,001
to 400,400 these were 395, 398 and 5. Numbers with a unit were then read in one form, and errors became warnings where
repeats do not show that prompts decide. Honest tasks with labels or numbers repeat most of their prompts in these corpora,
so that they cannot show what it costs to tell labels whose few repeats agree like chance.

Expectations, written before the seeds that count: recall of at least .95 for severe faults (10 to 25 % of a task's prompts
have conflicting answers) and of at least .8 for mild ones (2 to 5 %, at least 8 prompts), precision of at least .95, and a
warning in at most 5 % of the clean corpora.

    python -m mixwright_lab.studies.conflict_faults [--quick]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixwright.audit.checks.conflicts import Conflicts
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.conflict_corpora import CONFLICT_KINDS, MadeConflicts, make_conflicts
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 500_001, 80, 400
LEAST_MILD = 0.8
NAMED_BY: Mapping[str, str] = {}
"""Planted kind -> words of the warning that names it; any warning of the planted task counts."""


def to_corpus(made: MadeConflicts) -> Corpus:
    """The rows as a corpus."""
    return Corpus.from_examples(
        Example(
            f"i{n}",
            row["task"],
            row["prompt"] if isinstance(row["prompt"], str) else tuple(row["prompt"]),
            target=tuple(said) if isinstance(said := row.get("completion"), list) else said,
            answer=row.get("answer"),
        )
        for n, row in enumerate(made.rows)
    )


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_conflicts(job.seed, job.kind, severe=job.severe)
    return judge(job, Conflicts(), to_corpus(made), made.task, NAMED_BY)


def measure(quick: bool) -> Result:
    """All corpora."""
    kinds = CONFLICT_KINDS
    jobs = jobs_of(kinds, 1, 4, 20) if quick else jobs_of(kinds, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    return result_of(rows, kinds, "severe planted conflicts that are found", LEAST_MILD)


if __name__ == "__main__":
    run("conflict_faults", __doc__, measure)

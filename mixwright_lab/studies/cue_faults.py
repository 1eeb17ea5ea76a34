"""Study of the check `cues`: planted cues are to be found, and honest rows left alone.

The generator (`cue_corpora.py`) was written by somebody who had not read the check. Corpora of seeds 1 to 40 were used
while the check was written; the study has other seeds. A planted cue is found where a warning of the planted task names
its kind. Precision is the share of corpora with a warning in which the cue is found and nothing else is warned about.

Three earlier studies reached all goals, too: seeds from 20,001 on (118 of 120 severe, 120 of 120 mild, precision 235 of 240,
0 of 200 clean ones), from 30,001 on (117, 120, 234, 0), and from 50,001 on (118, 120, 236, 0). The probability that chance
may have was lowered from 1 % to 0.1 % after the first, because a reader of public findings took one for chance. After
the second numbers were named by the word beside them, and what an attack found was mended (signs, long prompts, repeated
prompts). Since the third one end of a quantity is told once, so that it crowds no other cue out.

Expectations, written before the seeds that count: recall of at least .95 for severe cues (35 to 60 % of the rows have it,
96 to 100 % of them one answer; 75 to 95 % of the right options) and of at least .8 for mild ones (18 to 30 % and 90 to
94 %; 50 to 60 %), precision of at least .95, and a warning in at most 5 % of the clean corpora.

    python -m mixwright_lab.studies.cue_faults [--quick]
"""

from __future__ import annotations

from typing import Any

from mixwright.audit.checks.cues import Cues
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.cue_corpora import KINDS, make_cues
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 60_001, 12, 200
LEAST_MILD = 0.8
NAMED_BY = {
    "length": " words or ",
    "word": "the word '",
    "first": "the word '",
    "punctuation": "has the sign ",
    "number": " number",
    "negation": "has a negation",
    "position": "Option ",
    "longest": "The longest option",
    "overlap": "shares most words",
    "side": "stand in the part before it",
}
"""Planted kind -> words of the warning that names it."""


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_cues(job.seed, job.kind, severe=job.severe)
    corpus = Corpus.from_examples(
        Example(
            f"i{n}",
            row["task"],
            row["prompt"],
            answer=row["answer"],
            extra={"options": row["options"]} if "options" in row else {},
        )
        for n, row in enumerate(made.rows)
    )
    return judge(job, Cues(), corpus, made.task, NAMED_BY)


def measure(quick: bool) -> Result:
    """All corpora."""
    jobs = jobs_of(KINDS, 1, 4, 20) if quick else jobs_of(KINDS, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    return result_of(rows, KINDS, "severe planted cues that are found", LEAST_MILD)


if __name__ == "__main__":
    run("cue_faults", __doc__, measure)

"""Study of the check `instructions`: rows that teach to ignore instructions are to be found, and sound rows left alone.

The generator (`instruction_corpora.py`) was written by somebody who had not read the check. Corpora of seeds 1 to 40 are
free for whoever writes the check; the study has other seeds. A planted fault is found where the planted task has a warning.
Precision is the share of corpora with a warning in which the fault is found and nothing else is warned about.

A first version of the check found nearly none of the faults of seeds 1 to 40. It was rewritten on those corpora, and words
that tell two instructions apart were added while looking at them: of 400 faults it found 397. Some of these words are the
generator's own, so that its other seeds flatter the kinds `ignored` and `opposite`, and say little about other wording.

Expectations, written before the seeds that count: recall of at least .95 for severe faults and of at least .8 for mild
ones, precision of at least .95, and a warning in at most 5 % of the clean corpora. Severe and mild are: one answer for 96
to 100 % of the inputs that stand under several instructions, which are 60 to 100 % of the inputs, and for 90 to 96 % of 30
to 60 %; labels that are not named in 15 to 40 % of the rows, and in 5 to 12 %; named labels without a row, and with at most
.8 % of the rows; one label under each of several instructions in all rows, and in at least 98 %.

    python -m mixwright_lab.studies.instruction_faults [--quick]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mixwright.audit.checks.instructions import Instructions
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.instruction_corpora import KINDS, MadeInstructions, make_instructions
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 95_001, 12, 200
LEAST_MILD = 0.8
NAMED_BY: Mapping[str, str] = {}
"""Planted kind -> words of the warning that names it; any warning of the planted task counts."""


def to_corpus(made: MadeInstructions) -> Corpus:
    """The rows as a corpus, the columns `instruction` and `input` beside their prompts."""
    return Corpus.from_examples(
        Example(
            f"i{n}",
            row["task"],
            row["prompt"] if isinstance(row["prompt"], str) else tuple(row["prompt"]),
            target=tuple(said) if isinstance(said := row.get("completion"), list) else said,
            answer=row.get("answer"),
            extra={name: row[name] for name in ("instruction", "input") if name in row},
        )
        for n, row in enumerate(made.rows)
    )


def do_job(job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus."""
    made = make_instructions(job.seed, job.kind, severe=job.severe)
    return judge(job, Instructions(), to_corpus(made), made.task, NAMED_BY)


def measure(quick: bool) -> Result:
    """All corpora."""
    jobs = jobs_of(KINDS, 1, 4, 20) if quick else jobs_of(KINDS, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    rows = run_in_processes(do_job, jobs, say="corpus", chunk=5)
    return result_of(rows, KINDS, "severe planted faults that are found", LEAST_MILD)


if __name__ == "__main__":
    run("instruction_faults", __doc__, measure)

"""Study of the check `instructions`: rows that teach to ignore instructions are to be found, and sound rows left alone.

The generator (`instruction_corpora.py`) has two vocabularies, each with goals of its own. The first (`office`) was written
by somebody who had not read the check; the check was then rewritten on its seeds 1 to 40, with some of its words. The second
(`everyday`) has other tasks, wordings, lists and templates, and was committed before its writer read the check. Of its seeds
1 to 40 the check found 128 of 200 severe faults and 148 of 200 mild ones, and warned in 4 of 100 clean corpora. It was then
changed on these seeds without a word of theirs: answers of other inputs, more forms of lists, and prompts of one line. A
planted fault is found where the planted task has a warning. Precision is the share of corpora with a warning in which the
fault is found and nothing else is warned about.

Expectations, written before the seeds that count: recall of at least .95 for severe faults and of at least .8 for mild
ones, precision of at least .95, and a warning in at most 5 % of the clean corpora, for each vocabulary. One goal will be
missed: the recall of severe faults of `everyday`, for which the tuning seeds say about .88. Where all inputs stand under
both instructions with one answer, nothing but the meaning of words tells a second request from a second wording. Severe and
mild are: one answer for 96 to 100 % of the inputs that stand under several instructions, which are 60 to 100 % of the
inputs, and for 90 to 96 % of 30 to 60 %; labels that are not named in 15 to 40 % of the rows, and in 5 to 12 %; named labels
without a row, and with at most .8 % of the rows; one label under each of several instructions in all rows, and in at least
98 %.

    python -m mixwright_lab.studies.instruction_faults [--quick]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mixwright.audit.checks.instructions import Instructions
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.instruction_corpora import KINDS, MadeInstructions, make_instructions
from mixwright_lab.studies.instruction_everyday_tasks import EVERYDAY
from mixwright_lab.studies.instruction_tasks import OFFICE
from mixwright_lab.studies.jobs import run_in_processes
from mixwright_lab.studies.planted import PlantedJob, jobs_of, judge, result_of
from mixwright_lab.studies.report import Result, run

FIRST_SEED, SEEDS_PER_KIND, CLEAN = 97_001, 40, 200
VOCABULARIES = {"office": OFFICE, "everyday": EVERYDAY}
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


def do_job(words: str, job: PlantedJob) -> dict[str, Any]:
    """What the check warns of in one corpus of a vocabulary."""
    made = make_instructions(job.seed, job.kind, severe=job.severe, words=VOCABULARIES[words])
    return {"words": words} | judge(job, Instructions(), to_corpus(made), made.task, NAMED_BY)


def measure(quick: bool) -> Result:
    """All corpora of either vocabulary; the headline is that of the second."""
    jobs = jobs_of(KINDS, 1, 4, 20) if quick else jobs_of(KINDS, FIRST_SEED, SEEDS_PER_KIND, CLEAN)
    unit, parts = "severe planted faults that are found", dict[str, Result]()
    for words in VOCABULARIES:
        rows = run_in_processes(partial(do_job, words), jobs, say=f"{words} corpus", chunk=5)
        parts[words] = result_of(rows, KINDS, f"{unit}, {words} wording", LEAST_MILD)
    return replace(
        parts["everyday"],
        rows=[row for part in parts.values() for row in part.rows],
        figures={words: part.figures for words, part in parts.items()},
        goals=[replace(goal, name=f"{words}: {goal.name}") for words, part in parts.items() for goal in part.goals],
    )


if __name__ == "__main__":
    run("instruction_faults", __doc__, measure)

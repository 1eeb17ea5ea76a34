"""Corpus for measuring, read with the graders that were named, and for other tasks with those that the data proposes.

Where nothing can be graded, two checkpoints can still be compared by what their rows have: pairs, or targets.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace

from mixwright.config import CorpusConfig
from mixwright.corpus.corpus import Corpus, read_corpus
from mixwright.corpus.proposed_graders import ProposedGrader, proposed_graders
from mixwright.errors import InputError, join_some
from mixwright.estimates.readings import READINGS


@dataclass(frozen=True, slots=True)
class Graded:
    """Rows that can be judged."""

    corpus: Corpus
    """Without tasks of which nothing can be graded."""
    config: CorpusConfig
    """How it was read, the graders of all its tasks named."""
    notes: tuple[str, ...]
    """What was done with columns, and which graders were taken and why; one line each."""
    probe: str | None = None
    """Probe that measures the rows where nothing of them can be graded; None where answers are graded."""
    all_rows: Corpus | None = None
    """All rows, those of tasks that cannot be graded among them; None where `corpus` has them all."""
    judged: bool = False
    """Whether `corpus` has rows that no grader reads, for a model to judge."""


def read_graded(config: CorpusConfig, *, graders_are_named: bool, ungraded: bool = False, judged: bool = False) -> Graded:
    """The corpus with a grader for each task; a task that none is proposed for is left out, and said.

    Args:
        config: as `read_corpus` takes it.
        graders_are_named: whether the user named `config.grader`; without that, tasks that `config.graders` lacks get
            what their answers look like.
        ungraded: rows of which nothing can be graded are taken, too, if all of them are pairs or have targets.
        judged: every row is taken, because a model judges what no grader does.

    Raises:
        InputError: as `read_corpus` does, or when nothing of it can be graded.
    """
    corpus = corpus_as_read = read_corpus(config)
    grader_by_task, notes = ({}, []) if graders_are_named else _propose_graders(corpus, config)
    graders = dict(config.graders) | {task: grader for task, grader in grader_by_task.items() if grader is not None}
    chosen_config = replace(config, graders=graders)
    if graders != dict(config.graders):
        corpus = read_corpus(chosen_config)  # again: where a task has a grader, its targets are answers
    notes = [*(f"corpus: {note}" for note in corpus.notes), *notes]
    if judged:
        return Graded(corpus, chosen_config, tuple(notes), judged=True)
    gradable_tasks = [task for task in corpus.tasks if grader_by_task.get(task, "") is not None]
    probe = _probe(corpus_as_read) if ungraded and not gradable_tasks else None
    if probe is not None:
        notes = [f"corpus: {note}" for note in corpus_as_read.notes]
        return Graded(corpus_as_read, config, tuple(notes), probe)
    if not gradable_tasks:
        remedy = (
            "Name the column of the answers (--column answer=COLUMN) and how to grade them (--grader NAME). Rows without "
            "answers can be compared by `mixwright verdict` and trained on by `mixwright run`."
        )
        raise InputError("rows with answers that can be graded", "; ".join(notes)[:300] or "none", remedy)
    if len(gradable_tasks) == len(corpus.tasks):
        return Graded(corpus, chosen_config, tuple(notes))
    return Graded(corpus.select(tasks=gradable_tasks), chosen_config, tuple(notes), all_rows=corpus)


def _probe(corpus: Corpus) -> str | None:
    """What can be measured without graded answers, on the held-out rows where there are any; None where nothing can."""
    rows = corpus.without_rehearsal().measured().table
    if not rows["chosen"].null_count and not rows["rejected"].null_count:
        return READINGS["preference"].probe
    return None if rows["target"].null_count else READINGS["loss"].probe


def _propose_graders(corpus: Corpus, config: CorpusConfig) -> tuple[dict[str, str | None], list[str]]:
    """Grader of each task that none was named for, None where nothing can be graded; and one line per kind of reason."""
    proposals = {task: proposal for task, proposal in proposed_graders(corpus).items() if task not in config.graders}
    tasks_by_reason: dict[tuple[str | None, str], list[str]] = defaultdict(list)
    for task, proposal in proposals.items():
        tasks_by_reason[proposal.grader, proposal.form].append(task)
    lines = []
    for (grader, form), tasks in tasks_by_reason.items():
        count, total = (sum(getattr(proposals[task], name) for task in tasks) for name in ("count", "total"))
        together = ProposedGrader(grader, form, count, total)
        if grader is None:
            lines.append(f"{join_some(tasks)} is not measured, {together.why}")
        else:
            lines.append(f"grader of {join_some(tasks)}: {grader}, {together.reason}; change it with --grader NAME")
    return {task: proposal.grader for task, proposal in proposals.items()}, lines

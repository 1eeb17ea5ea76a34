"""Miner that keeps, of several answers to one prompt, the one that this student can learn from.

Candidates are training rows of one task with the same prompt: of people, of teachers, of the model itself. Copies of the
model are trained for a few steps on each source alone and on a mix of them, and answer prompts held back; a source is taken
where its copy is right more often than the mix's beyond chance, else all candidates are kept. Where nothing can be graded
the lowest NLL decides, which is confounded with length and format.

Source: Li et al., 2402.10110 (statistics of the untrained student choose between answers); Li et al., 2502.12143 (small
    models learn less from long or strong answers). Short trainings as the judge are ours.
Unit: accuracy of greedy answers; nats per token where nothing is graded. Weight 1 for each row.
Cost: (sources + 1) x `runs` short trainings, and a greedy answer per prompt held back after each.
Blind spot: `steps` steps tell what is learnt soon, not what is best in the end; a student's frontier moves: mine again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mixwright.contracts import Miner
from mixwright.errors import InputError, check_range
from mixwright.mine.candidates import Candidates, SourceTrials, candidates_of, lowest_per_prompt, try_sources
from mixwright.mine.choosing import train_rows
from mixwright.mine.proxies import SHORT_TRAINING_LIMITS, Sizes
from mixwright.records import MinedRow, MiningResult

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.scan.table import Scan

FEW_STEPS = "Copies have few steps, equal in number, not in tokens: what is learnt late loses, so try more steps."
NLL_CONFOUNDER = "NLL is low for short, plain and familiar texts: it counts an unfamiliar format as difficulty."
"""What else moves what decides."""


@dataclass(kw_only=True, eq=False)
class Frontier(Miner):
    """One candidate per prompt.

    Args:
        source: column that names where a candidate comes from; without it, its file.
        steps: of each short training.
        runs: seeds of each.
        batch: rows per step.
        learning_rate: of the short trainings.
        max_new_tokens: longest answer.
    """

    COLUMNS = ("nll", "nll_max")
    MODEL = True

    source: str = "source"
    steps: int = 50
    runs: int = 4
    batch: int = 16
    learning_rate: float = 5e-4
    max_new_tokens: int = 512

    def __post_init__(self) -> None:
        check_range("mine.options.frontier", vars(self), **SHORT_TRAINING_LIMITS, max_new_tokens=(1, 1e6))

    def mine(self, corpus: Corpus, scan: Scan, learner: Learner | None, rng: np.random.Generator) -> MiningResult:
        """Kept rows. Raises InputError without a model or with too few prompts for short trainings."""
        rows = train_rows(corpus, scan)
        found = candidates_of(corpus, rows, self.source)
        alone = "the only answer to its prompt"
        if not found.has_alternatives.any():
            note = "No prompt has two candidates: all rows are kept, and there is nothing to choose."
            return MiningResult("frontier", tuple(MinedRow(name, 1.0, alone) for name in rows.ids), notes=(note,))
        if len(found.source_names) < 2:
            remedy = "Name the column in mine.options.frontier.source."
            raise InputError(f"a column {self.source!r} that names the sources of candidates", "one source", remedy)
        if learner is None:
            raise InputError("a model for short trainings", "none", "Give one.")
        nll, hardest = (rows.column(scan, name).astype(float) for name in self.COLUMNS)
        sizes = Sizes(self.steps, self.batch, self.learning_rate, self.runs)
        tried, notes, rollouts = try_sources(corpus, learner, rows, found, sizes, self.max_new_tokens, rng)
        reasons: dict[int, str] = {}
        for task, own in rows.by_task().items():
            reasons |= self._keep_in_task(own, found, nll, tried.get(task))
            notes += self._notes_on_task(task, own, found, hardest, tried.get(task))
        only = set(np.flatnonzero(~found.has_alternatives).tolist())
        for task, own in rows.by_task().items():
            of = Counter(found.sources[own[found.has_alternatives[own]]].tolist())
            taken = Counter(str(found.sources[at]) for at in own.tolist() if at in reasons and at not in only)
            if of:
                told = ", ".join(f"{name} {taken[name]} of {count}" for name, count in sorted(of.items()))
                notes.append(f"Task {task}: of prompts with several candidates, rows kept by source: {told}.")
        reasons |= dict.fromkeys(only, alone)
        kept = tuple(MinedRow(rows.ids[at], 1.0, reasons[at]) for at in sorted(reasons))
        return MiningResult("frontier", kept, rollouts=rollouts, notes=(*notes, FEW_STEPS))

    def _keep_in_task(
        self, task_rows: np.ndarray, found: Candidates, nll: np.ndarray, tried: SourceTrials | None
    ) -> dict[int, str]:
        """Kept rows of one task, and why: by source where one won, all where none did, by NLL where nothing was tried."""
        if tried is not None and tried.winner is None:
            return dict.fromkeys(task_rows.tolist(), "kept with all candidates: no source beats a mix of them")
        sources, prompts, own = found.sources[task_rows], found.prompt_ids[task_rows], nll[task_rows]
        if tried is None:
            best = lowest_per_prompt(own, prompts)
            return {int(task_rows[at]): f"{sources[at]}: the lowest NLL, {own[at]:.3g}" for at in best}
        rank = {name: float(place) for place, name in enumerate(tried.order)}
        ranks = np.array([rank.get(str(name), len(rank)) for name in sources])
        ties = np.argsort(np.argsort(np.nan_to_num(own, nan=np.inf), kind="stable")) / len(task_rows)
        best = lowest_per_prompt(ranks + ties, prompts)
        return {int(task_rows[at]): f"{sources[at]}: {tried.format_accuracy(str(sources[at]))}" for at in best}

    def _notes_on_task(
        self, task: str, task_rows: np.ndarray, found: Candidates, hardest: np.ndarray, tried: SourceTrials | None
    ) -> list[str]:
        """What was decided in one task."""
        if not found.has_alternatives[task_rows].any():
            return []
        if tried is None:
            return [f"Task {task} has no answers to grade: the lowest NLL decides. {NLL_CONFOUNDER}"]
        parts = "; ".join(f"{name} {tried.format_accuracy(name)}" for name in tried.order)
        word = f"{tried.winner} is taken" if tried.winner else "no source beats the mix beyond chance: all are kept"
        before = f"accuracy {tried.accuracy_before:.2f} before, {tried.mix_accuracy:.2f} after a mix"
        notes, best = [f"Task {task}, {before}: {parts}; {word}."], tried.order[0]
        for name in tried.worse_than_mix:
            hard, easy = (np.nanmedian(hardest[task_rows][found.sources[task_rows] == each]) for each in (name, best))
            notes.append(
                f"Source {name} is beyond this student's frontier in task {task}: {tried.accuracy[name]:.2f} right after "
                f"{self.steps} steps against {tried.accuracy[best]:.2f} of {best}; median nll_max {hard:.2g} against "
                f"{easy:.2g}. Keep it for later, and mine again then."
            )
        return notes

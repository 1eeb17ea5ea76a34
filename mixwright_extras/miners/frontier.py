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

from mixwright.extend import InputError, MinedRow, MiningResult, check_range
from mixwright_extras.miners._scanned import ScanMiner
from mixwright_extras.mining.candidates import Candidates, SourceTrials, candidates_of, lowest_per_prompt, try_sources
from mixwright_extras.mining.proxies import Sizes
from mixwright_extras.mining.trainings import SHORT_TRAINING_LIMITS

if TYPE_CHECKING:
    from mixwright.extend import Corpus, Learner, TrainRows

FEW_STEPS_NOTE = (
    "The short trainings have few steps, equal in number, not in tokens. Sources that are learned late lose, "
    "so try more steps."
)
NLL_CONFOUNDER = "NLL is low for short, plain and familiar texts, so an unfamiliar format counts as difficulty."
"""What else moves what decides."""


@dataclass(kw_only=True, eq=False)
class Frontier(ScanMiner):
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
    NEEDS_MODEL = True

    source: str = "source"
    steps: int = 50
    runs: int = 4
    batch: int = 16
    learning_rate: float = 5e-4
    max_new_tokens: int = 512

    def __post_init__(self) -> None:
        check_range("mine.options.frontier", vars(self), **SHORT_TRAINING_LIMITS, max_new_tokens=(1, 1e6))

    def mine(self, corpus: Corpus, rows: TrainRows, learner: Learner | None, rng: np.random.Generator) -> MiningResult:
        """Kept rows. Raises InputError without a model or with too few prompts for short trainings."""
        candidates = candidates_of(corpus, rows, self.source)
        only_answer = "the only answer to its prompt"
        if not candidates.has_alternatives.any():
            note = "No prompt has two candidates, so there is nothing to choose: all rows are kept."
            return MiningResult("frontier", tuple(MinedRow(name, only_answer) for name in rows.ids), notes=(note,))
        if len(candidates.source_names) < 2:
            remedy = "Name that column in mine.options.frontier.source."
            raise InputError(f"a column {self.source!r} with several sources of candidates", "one source", remedy)
        if learner is None:
            raise InputError("a model for short trainings", "none", "Name a model.")
        nll, largest_token_nll = (rows.columns[name].astype(float) for name in self.COLUMNS)
        sizes = Sizes(self.steps, self.batch, self.learning_rate, self.runs)
        trials_by_task, notes, rollouts = try_sources(corpus, learner, rows, candidates, sizes, self.max_new_tokens, rng)
        reasons: dict[int, str] = {}
        for task, task_rows in rows.by_task().items():
            reasons |= self._keep_in_task(task_rows, candidates, nll, trials_by_task.get(task))
            notes += self._notes_on_task(task, task_rows, candidates, largest_token_nll, trials_by_task.get(task))
        rows_without_alternatives = set(np.flatnonzero(~candidates.has_alternatives).tolist())
        for task, task_rows in rows.by_task().items():
            candidate_counts = Counter(candidates.sources[task_rows[candidates.has_alternatives[task_rows]]].tolist())
            kept_counts = Counter(
                str(candidates.sources[row_index])
                for row_index in task_rows.tolist()
                if row_index in reasons and row_index not in rows_without_alternatives
            )
            if candidate_counts:
                counts_by_source = ", ".join(
                    f"{name} {kept_counts[name]} of {count}" for name, count in sorted(candidate_counts.items())
                )
                notes.append(f"Task {task}: rows kept per source, for prompts with several candidates: {counts_by_source}.")
        reasons |= dict.fromkeys(rows_without_alternatives, only_answer)
        kept_rows = tuple(MinedRow(rows.ids[row_index], reasons[row_index]) for row_index in sorted(reasons))
        return MiningResult("frontier", kept_rows, rollouts=rollouts, notes=(*notes, FEW_STEPS_NOTE))

    def _keep_in_task(
        self, task_rows: np.ndarray, candidates: Candidates, nll: np.ndarray, trials: SourceTrials | None
    ) -> dict[int, str]:
        """Kept rows of one task, and why: by source where one won, all where none did, by NLL where nothing was tried."""
        if trials is not None and trials.winner is None:
            return dict.fromkeys(task_rows.tolist(), "all candidates are kept, because no source beats a mix of them")
        sources, prompts, task_nll = candidates.sources[task_rows], candidates.prompt_ids[task_rows], nll[task_rows]
        if trials is None:
            best = lowest_per_prompt(task_nll, prompts)
            return {
                int(
                    task_rows[candidate_index]
                ): f"{sources[candidate_index]}: the lowest NLL, {task_nll[candidate_index]:.3g}"
                for candidate_index in best
            }
        rank = {name: float(position) for position, name in enumerate(trials.order)}
        ranks = np.array([rank.get(str(name), len(rank)) for name in sources])
        ties = np.argsort(np.argsort(np.nan_to_num(task_nll, nan=np.inf), kind="stable")) / len(task_rows)
        best = lowest_per_prompt(ranks + ties, prompts)
        return {
            int(
                task_rows[candidate_index]
            ): f"{sources[candidate_index]}: {trials.format_accuracy(str(sources[candidate_index]))}"
            for candidate_index in best
        }

    def _notes_on_task(
        self,
        task: str,
        task_rows: np.ndarray,
        candidates: Candidates,
        largest_token_nll: np.ndarray,
        trials: SourceTrials | None,
    ) -> list[str]:
        """What was decided in one task."""
        if not candidates.has_alternatives[task_rows].any():
            return []
        if trials is None:
            return [f"Task {task} has no answers to grade, so the lowest NLL decides. {NLL_CONFOUNDER}"]
        accuracy_texts = "; ".join(f"{name} {trials.format_accuracy(name)}" for name in trials.order)
        decision = f"{trials.winner} is taken" if trials.winner else "no source beats the mix beyond chance, so all are kept"
        accuracies = f"accuracy {trials.accuracy_before:.2f} before, {trials.mix_accuracy:.2f} after a mix"
        notes, best_source = [f"Task {task}, {accuracies}: {accuracy_texts}; {decision}."], trials.order[0]
        for name in trials.worse_than_mix:
            hard, easy = (
                np.nanmedian(largest_token_nll[task_rows][candidates.sources[task_rows] == source])
                for source in (name, best_source)
            )
            notes.append(
                f"Source {name} is too hard for this student in task {task}: {trials.accuracy[name]:.2f} right after "
                f"{self.steps} steps against {trials.accuracy[best_source]:.2f} of {best_source}; median "
                f"nll_max {hard:.2g} against {easy:.2g}. Keep it for later, and mine again then."
            )
        return notes

"""Miner that keeps, of several answers to one prompt, the one that this student can learn from.

Candidates are training rows of one task with the same prompt: of people, of teachers, of the model itself. By default copies
of the model are trained for a few steps on each source alone and on a mix of them, and answer prompts held back; a source
is taken where its copy is right more often than the mix's beyond chance, else all candidates are kept. Statistics of the
scan can choose per prompt instead; each is confounded with something, which a note says.

Source: Li et al., 2402.10110 (IFD and r-IFD of the untrained student choose between answers); Li et al., 2502.12143 (small
    models learn less from long or strong answers). Short trainings as the judge are ours.
Unit: accuracy of greedy answers; else nats per token, or ratios of perplexities. Weight 1 for each row.
Cost: (sources + 1) x `runs` short trainings, and a greedy answer per prompt held back after each; statistics: none.
Blind spot: `steps` steps tell what is learnt soon, not what is best in the end; a student's frontier moves: mine again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from mixwright.contracts import Miner
from mixwright.errors import InputError, check_range
from mixwright.mine.candidates import Candidates, SourceTrials, candidates_of, lowest_per_prompt
from mixwright.mine.choosing import TrainRows, train_rows
from mixwright.mine.proxies import SHORT_TRAINING_LIMITS, Sizes
from mixwright.mine.reaching import try_sources
from mixwright.records import MinedRow, MiningResult

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.measure.scan import Scan

By = Literal["learnability", "nll", "nll_max", "ifd", "r_ifd", "rule"]
COLUMNS_BY_STATISTIC: dict[str, tuple[str, ...]] = {
    "learnability": ("nll", "nll_max"),
    "nll": ("nll", "nll_max"),
    "nll_max": ("nll_max",),
    "ifd": ("nll_max", "ifd"),
    "r_ifd": ("nll_max", "r_ifd"),
    "rule": ("nll_max", "ifd", "r_ifd"),
}
"""What decides, and the columns that it takes."""
CONFOUNDER_BY_STATISTIC = {
    "learnability": "Copies have few steps, equal in number, not in tokens: what is learnt late loses, so try more steps.",
    "nll": "NLL is low for short, plain and familiar texts: it counts an unfamiliar format as difficulty.",
    "nll_max": "The hardest token is harder the longer a text is, and counts one unfamiliar word as difficulty.",
    "ifd": "IFD depends on length and format. Here the lowest is taken, the answer that its prompt explains best; rules for "
    "choosing between prompts take the highest.",
    "r_ifd": "r-IFD is low for answers that repeat their prompt.",
    "rule": "r-IFD is low for answers that repeat their prompt, and nearly all answers pass IFD < 1.",
}
"""What else moves each of them."""
BEYOND_STUDENT_SHARE = 0.1
"""Share of its prompts under which a source counts as beyond the student by a statistic."""


@dataclass(kw_only=True, eq=False)
class Frontier(Miner):
    """One candidate per prompt.

    Args:
        by: what decides: short trainings (learnability) or the lowest nll, nll_max, ifd or r_ifd; rule is the lowest r_ifd
            of the candidates whose ifd and r_ifd are below 1, and none where there is none.
        source: column that names where a candidate comes from; without it, its file.
        steps: of each short training.
        runs: seeds of each.
        batch: rows per step.
        learning_rate: of the short trainings.
        max_new_tokens: longest answer.
    """

    by: By = "learnability"
    source: str = "source"
    steps: int = 50
    runs: int = 4
    batch: int = 16
    learning_rate: float = 5e-4
    max_new_tokens: int = 512

    def __post_init__(self) -> None:
        limits = SHORT_TRAINING_LIMITS | {"max_new_tokens": (1, 1e6)}
        check_range("mine.options.frontier", vars(self), **limits)
        self.COLUMNS, self.MODEL = COLUMNS_BY_STATISTIC[self.by], self.by == "learnability"

    def mine(self, corpus: Corpus, scan: Scan, learner: Learner | None, rng: np.random.Generator) -> MiningResult:
        """Kept rows. Raises InputError without a model or with too few prompts for short trainings."""
        rows = train_rows(corpus, scan)
        found = candidates_of(corpus, rows, self.source)
        if not found.has_alternatives.any():
            note = "No prompt has two candidates: all rows are kept, and there is nothing to choose."
            kept = tuple(MinedRow(name, 1.0, "the only answer to its prompt") for name in rows.ids)
            return MiningResult("frontier", kept, notes=(note,))
        values = {name: rows.column(scan, name).astype(float) for name in self.COLUMNS}
        if not self.MODEL:
            places = self._by_statistic(found, values)
            reasons = {at: f"{found.sources[at]}: {self._format_statistics(values, at)}" for at in places.tolist()}
            return self._make_result(rows, found, values, reasons, [], 0)
        if len(found.source_names) < 2:
            remedy = "Name the column in mine.options.frontier.source, or set mine.options.frontier.by to nll."
            raise InputError(f"a column {self.source!r} that names the sources of candidates", "one source", remedy)
        if learner is None:
            raise InputError("a model for short trainings", "none", "Give one, or set mine.options.frontier.by to nll.")
        sizes = Sizes(self.steps, self.batch, self.learning_rate, self.runs)
        tried, notes, rollouts = try_sources(corpus, learner, rows, found, sizes, self.max_new_tokens, rng)
        reasons = dict[int, str]()
        for task, own in rows.by_task().items():
            reasons |= self._keep_in_task(own, found, values, tried.get(task))
            notes += self._notes_on_task(task, own, found, values, tried.get(task))
        return self._make_result(rows, found, values, reasons, notes, rollouts)

    def _by_statistic(self, found: Candidates, values: dict[str, np.ndarray]) -> np.ndarray:
        """The rows with the lowest statistic; of prompts with one candidate that one."""
        if self.by != "rule":
            return lowest_per_prompt(values[self.by], found.prompt_ids)
        passes = (values["ifd"] < 1) & (values["r_ifd"] < 1)
        best = lowest_per_prompt(np.where(passes, values["r_ifd"], np.nan), found.prompt_ids)
        return best[passes[best] | ~found.has_alternatives[best]]

    def _format_statistics(self, values: dict[str, np.ndarray], at: int) -> str:
        return ", ".join(f"{name} {own[at]:.3g}" for name, own in values.items())

    def _keep_in_task(
        self, task_rows: np.ndarray, found: Candidates, values: dict[str, np.ndarray], tried: SourceTrials | None
    ) -> dict[int, str]:
        """Kept rows of one task, and why: by source where one won, all where none did, by NLL where nothing was tried."""
        if tried is not None and tried.winner is None:
            return dict.fromkeys(task_rows.tolist(), "kept with all candidates: no source beats a mix of them")
        if tried is None:
            best = task_rows[lowest_per_prompt(values["nll"][task_rows], found.prompt_ids[task_rows])]
            return {at: f"{found.sources[at]}: the lowest NLL, {values['nll'][at]:.3g}" for at in best.tolist()}
        rank = {name: float(place) for place, name in enumerate(tried.order)}
        ranks = np.array([rank.get(str(name), len(rank)) for name in found.sources[task_rows]])
        ties = np.argsort(np.argsort(np.nan_to_num(values["nll"][task_rows], nan=np.inf), kind="stable")) / len(task_rows)
        best = task_rows[lowest_per_prompt(ranks + ties, found.prompt_ids[task_rows])]
        return {at: f"{found.sources[at]}: {tried.format_accuracy(str(found.sources[at]))}" for at in best.tolist()}

    def _notes_on_task(
        self, task: str, task_rows: np.ndarray, found: Candidates, values: dict[str, np.ndarray], tried: SourceTrials | None
    ) -> list[str]:
        """What was decided in one task."""
        if not found.has_alternatives[task_rows].any():
            return []
        if tried is None:
            return [f"Task {task} has no answers to grade: the lowest NLL decides. {CONFOUNDER_BY_STATISTIC['nll']}"]
        parts = "; ".join(f"{name} {tried.format_accuracy(name)}" for name in tried.order)
        word = f"{tried.winner} is taken" if tried.winner else "no source beats the mix beyond chance: all are kept"
        notes = [
            f"Task {task}, accuracy {tried.accuracy_before:.2f} before, {tried.mix_accuracy:.2f} after a mix: "
            f"{parts}; {word}."
        ]
        best = tried.order[0]
        for name in tried.worse_than_mix:
            hard = {
                s: float(np.nanmedian(values["nll_max"][task_rows][found.sources[task_rows] == s])) for s in (name, best)
            }
            notes.append(
                f"Source {name} is beyond this student's frontier in task {task}: {tried.accuracy[name]:.2f} right after "
                f"{self.steps} steps against {tried.accuracy[best]:.2f} of {best}; median nll_max {hard[name]:.2g} against "
                f"{hard[best]:.2g}. Keep it for later, and mine again then."
            )
        return notes

    def _make_result(
        self,
        rows: TrainRows,
        found: Candidates,
        values: dict[str, np.ndarray],
        reasons: dict[int, str],
        notes: list[str],
        rollouts: int,
    ) -> MiningResult:
        """The record, with what was kept of each source."""
        only = {at for at in range(len(rows.ids)) if not found.has_alternatives[at]}
        kept = [
            MinedRow(rows.ids[at], 1.0, "the only answer to its prompt" if at in only else reasons[at])
            for at in sorted({*reasons, *only})
        ]
        for task, own in rows.by_task().items():
            of = Counter(found.sources[own[found.has_alternatives[own]]].tolist())
            taken = Counter(str(found.sources[at]) for at in own.tolist() if at in reasons and at not in only)
            if of:
                told = ", ".join(f"{name} {taken[name]} of {count}" for name, count in sorted(of.items()))
                notes.append(f"Task {task}: of prompts with several candidates, rows kept by source: {told}.")
            if not self.MODEL:
                notes += [
                    f"Source {name} is beyond this student's frontier in task {task} by {self.by}: kept for "
                    f"{taken[name] / count:.0%} of its prompts. Try by: learnability before you drop it."
                    for name, count in sorted(of.items())
                    if taken[name] < BEYOND_STUDENT_SHARE * count
                ]
        return MiningResult("frontier", tuple(kept), rollouts=rollouts, notes=(*notes, CONFOUNDER_BY_STATISTIC[self.by]))

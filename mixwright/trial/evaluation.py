"""Evaluation on fixed held-out items while a branch trains, the same in every arm; gives `rollouts to target`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import TrainerCallback

from mixwright.corpus.timed_grades import TimedGrades
from mixwright.measure.option_answers import answer_items
from mixwright.measure.passes import RIGHT_FROM_SCORE
from mixwright.records import Example, cell_key
from mixwright.run.progress import report_share

if TYPE_CHECKING:
    from mixwright.config import MeasureConfig
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner

EVALUATION_COMPLETIONS = 128
"""Completions per evaluation, about: the standard error is at most .045."""
TRAINING_TIME_SHARE = 0.9
"""Of a branch's time, for the progress line; then it is measured."""


def choose_items(corpus: Corpus, *, seed: int) -> dict[str, list[Example]]:
    """Fixed held-out items per task, of all its levels in turns; every task gets the same share of `EVALUATION_COMPLETIONS`.

    Args:
        corpus: held-out examples.
        seed: of the choice.
    """
    examples_by_task: dict[str, dict[str, list[Example]]] = {}
    for example in corpus:
        if example.answer is not None:
            cells = examples_by_task.setdefault(example.task, {})
            cells.setdefault(cell_key(example.task, example.level), []).append(example)
    rng = np.random.default_rng(seed)
    chosen = {}
    for task, groups in sorted(examples_by_task.items()):
        orders = [[groups[key][i] for i in rng.permutation(len(groups[key]))] for key in sorted(groups)]
        turns = [order[turn] for turn in range(max(map(len, orders))) for order in orders if turn < len(order)]
        chosen[task] = turns[: max(1, EVALUATION_COMPLETIONS // len(examples_by_task))]
    return chosen


class ProgressCallback(TrainerCallback):
    """Every so many steps, and before the first and after the last, samples the chosen items and writes progress.jsonl.

    Success is read under the declared decoding and averaged over tasks. Sampled completions are drawn with the same numbers
    at every evaluation and in every arm. The learner leaves parameters, mode and random state of the training model as they
    were.

    Args:
        learner: wraps the model in training.
        corpus: grades.
        items: task -> examples.
        config: decoding and sampling settings.
        every: steps between evaluations; 0 turns them off.
        seed: of the samples.
        folder: where progress.jsonl goes and steps.jsonl is.
    """

    def __init__(
        self,
        learner: Learner,
        corpus: Corpus,
        items: Mapping[str, Sequence[Example]],
        config: MeasureConfig,
        *,
        every: int,
        seed: int,
        folder: Path,
    ) -> None:
        self.learner, self.corpus, self.items, self.config = learner, corpus, items, config
        self.every, self.seed, self.folder = every, seed, folder
        self.grades = TimedGrades(corpus, config.grader_seconds, config.slow_grader)
        self.evaluation_rollouts = 0
        self._last: int | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The start value that the target is counted from; after a stop the lines up to the checkpoint stand."""
        file = self.folder / "progress.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if state.global_step and file.exists() else []
        if kept := [line for line in lines if line.endswith("}") and json.loads(line)["step"] <= state.global_step]:
            file.write_text("".join(line + "\n" for line in kept), encoding="utf-8")
            last = json.loads(kept[-1])
            self.evaluation_rollouts, self._last = last["evaluated"], last["step"]
        else:
            file.unlink(missing_ok=True)
        self._write(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Every `every` steps; and how far the branch is, to the progress line."""
        report_share(TRAINING_TIME_SHARE * state.global_step / state.max_steps)
        if self.every and state.global_step % self.every == 0:
            self._write(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """After the last step, unless that was just done."""
        self._write(state.global_step)

    def _write(self, step: int) -> None:
        if not self.every or not self.items or step == self._last:
            return
        self._last = step
        by_task = {task: self._success(examples) for task, examples in self.items.items()}
        line = {
            "step": step,
            "rollouts": self._training_rollouts() + self.evaluation_rollouts,
            "evaluated": self.evaluation_rollouts,
            "success": sum(by_task.values()) / len(by_task),
            "by_task": by_task,
        }
        with (self.folder / "progress.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _success(self, examples: Sequence[Example]) -> float:
        greedy = self.config.decoding == "greedy"
        samples_per_item = 1 if greedy else max(1, EVALUATION_COMPLETIONS // len(self.items) // len(examples))
        self.evaluation_rollouts += samples_per_item * len(examples)
        groups = answer_items(
            self.learner,
            examples,
            self.corpus,
            self.config,
            count=samples_per_item,
            temperature=0.0 if greedy else self.config.temperature,
            max_new_tokens=self.config.max_new_tokens,
            seed=self.seed,
        )
        scores = [
            self.grades.grade(example, sample.text, cut=not sample.finished) >= RIGHT_FROM_SCORE
            for example, samples in zip(examples, groups, strict=True)
            for sample in samples
        ]
        return sum(scores) / len(scores)

    def _training_rollouts(self) -> int:
        """Rollouts of training and canaries so far, as the steering counted them."""
        path = self.folder / "steps.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        return int(json.loads(lines[-1]).get("rollouts", 0)) if lines else 0

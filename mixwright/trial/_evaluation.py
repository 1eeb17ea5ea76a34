"""Success on fixed held-out items while a branch trains: what `rollouts to target` is read from. The same in every arm."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers import TrainerCallback

from mixwright.measure._passes import FULL_MARKS
from mixwright.records import CellPlan, Example, cell_key
from mixwright.trial._progress import report
from mixwright.trial._rows import CLASSES

if TYPE_CHECKING:
    from mixwright.config import MeasureConfig
    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner

COMPLETIONS = dict.fromkeys(CLASSES, 16) | {"reachable": 128}
"""Completions per class and evaluation. With 128 the standard error is at most .045; the others are only watched."""
TRAINING_SHARE = 0.9
"""Of a branch's time, for the progress line; then it is measured."""


def choose_items(corpus: Corpus, cells: Sequence[CellPlan], *, seed: int) -> dict[str, list[Example]]:
    """Fixed held-out items per class, the cells of a class taking turns; at most one item per completion."""
    state_of = {cell.key: cell.state for cell in cells}
    found: dict[str, dict[str, list[Example]]] = {name: {} for name in CLASSES}
    for example in corpus:
        key = cell_key(example.task, example.level)
        if (state := state_of.get(key)) in found and example.answer is not None:
            found[state].setdefault(key, []).append(example)
    rng = np.random.default_rng(seed)
    chosen = {}
    for name, groups in found.items():
        orders = [[groups[key][i] for i in rng.permutation(len(groups[key]))] for key in sorted(groups)]
        turns = [order[turn] for turn in range(max(map(len, orders), default=0)) for order in orders if turn < len(order)]
        if turns:
            chosen[name] = turns[: COMPLETIONS[name]]
    return chosen


class ProgressCallback(TrainerCallback):
    """Every so many steps, and before the first and after the last, samples the chosen items and writes progress.jsonl.

    Samples are drawn with the same numbers at every evaluation and in every arm. The learner leaves parameters, mode
    and random state of the training model as they were.

    Args:
        learner: wraps the model in training.
        corpus: grades.
        items: class -> examples.
        config: sampling settings.
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
        self.evaluated = 0
        self._last: int | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The start value that the target is counted from."""
        self._write(state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Every `every` steps; and how far the branch is, to the progress line."""
        report(TRAINING_SHARE * state.global_step / state.max_steps)
        if self.every and state.global_step % self.every == 0:
            self._write(state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """After the last step, unless that was just done."""
        self._write(state.global_step)

    def _write(self, step: int) -> None:
        if not self.every or step == self._last:
            return
        self._last = step
        success = {name: self._success(examples, COMPLETIONS[name]) for name, examples in self.items.items()}
        line = {
            "step": step,
            "rollouts": self._trained() + self.evaluated,
            "evaluated": self.evaluated,
            "success": success,
        }
        with (self.folder / "progress.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def _success(self, examples: Sequence[Example], completions: int) -> float:
        count = max(1, completions // len(examples))
        self.evaluated += count * len(examples)
        groups = self.learner.sample(
            [example.prompt for example in examples],
            count=count,
            temperature=self.config.temperature,
            max_new_tokens=self.config.max_new_tokens,
            seed=self.seed,
        )
        scores = [
            self.corpus.grade(example, sample.text) >= FULL_MARKS
            for example, samples in zip(examples, groups, strict=True)
            for sample in samples
        ]
        return sum(scores) / len(scores)

    def _trained(self) -> int:
        """Rollouts of training and canaries so far, as the steering counted them."""
        path = self.folder / "steps.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        return int(json.loads(lines[-1]).get("rollouts", 0)) if lines else 0

"""Probe of what training on one task does to the others: short runs task by task, one after another, and on all at once.

Each run is supervised, on targets of training rows, with a fresh optimiser. After each, the probe reads greedy success on
held-out items of every task, and the entropy of what is written. With `pairs` each run goes on with every other task: a task
that the model does not know yet has nothing to lose at the start, so what the next task does to it shows only then. A run
on all tasks together has the rows and steps of all single runs. Where orders differ for certain by these runs, the best one
is tried beside all tasks together, for `confirm_steps_factor` times as long, with rows drawn anew, once per seed. All are on
copies, with the adapter that is asked for. The planner `transfer_order` reads it. It is made before a run, and not after its
branches.

Source: single-task runs and backward transfer of 2507.14783, whose equation could not be read; pairs are ours.
Unit: share of held-out items; nats per token
Cost: `seeds` times 2 K runs of `steps` steps, K (K - 1) more with pairs, and 2 K `confirm_steps_factor` more
    where orders differ (`rows_trained`); a greedy pass after each.
Blind spot: what supervised steps do, also where the run has rewards; what so few steps do: damage of a long run is larger.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import (
    MAX_LEARNING_RATE,
    RIGHT_FROM_SCORE,
    Corpus,
    InputError,
    Measurement,
    Passes,
    Probe,
    RowLosses,
    check_range,
    create,
)
from mixwright_extras.orders.transfers import BEST_ORDER_LABEL, THEN_LABEL, TOGETHER_LABEL, RunSizes, measure_transfer
from mixwright_extras.probes._rows import rows_by_task

NEEDS = ("torch", "transformers")

OPTION_LIMITS = {
    "learning_rate": (1e-12, MAX_LEARNING_RATE),
    "items": (2, 1e6),
    "seeds": (1, 100),
    "confirm_steps_factor": (1, 100),
}
OPTION_LIMITS |= dict.fromkeys(("steps", "batch"), (1, 1e6))
MAX_TASKS = 24
"""Tasks, at most: pairs of more would be more runs than anybody waits for."""


class Transfer(Probe):
    """`success` and `entropy` of every task `at the start`, `after A`, and `after A, then B`.

    Args:
        steps: of each run; a twentieth to a tenth of those that a task will get.
        batch: rows per step.
        learning_rate: that of the run to come.
        seeds: runs of each kind.
        pairs: whether each run goes on with every other task.
        confirm_steps_factor: times `steps` that each task gets where the best order is tried beside all tasks together.
        items: held-out items per task.
        adapter: which parameters are trained, as `train.adapter`.
    """

    ONCE = True
    TRAINS = True

    def __init__(
        self,
        *,
        steps: int = 30,
        batch: int = 16,
        learning_rate: float = 5e-4,
        seeds: int = 2,
        pairs: bool = True,
        confirm_steps_factor: int = 2,
        items: int = 48,
        adapter: str = "full",
    ) -> None:
        self.steps, self.batch, self.learning_rate = steps, batch, learning_rate
        self.seeds, self.pairs, self.confirm_steps_factor, self.items, self.adapter = (
            seeds,
            pairs,
            confirm_steps_factor,
            items,
            adapter,
        )
        check_range("measure.options.transfer", vars(self), **OPTION_LIMITS)

    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """See the class. Raises InputError where fewer than two tasks have training rows with targets and items to grade.

        Names of tasks that its measurements would be mistaken for are refused, too.
        """
        train = rows_by_task(corpus, "train") or rows_by_task(corpus, None)
        items: dict[str, list[Any]] = {}
        for item in passes.items:
            if len(items.setdefault(item.task, [])) < self.items:
                items[item.task].append(item)
        train = {task: rows for task, rows in train.items() if len(items.get(task, ())) > 1}
        if mistaken := [task for task in train if task in (TOGETHER_LABEL, BEST_ORDER_LABEL, "*") or THEN_LABEL in task]:
            names = f"'{TOGETHER_LABEL}', '{BEST_ORDER_LABEL}' and '*'"
            expected = f"tasks of other names than {names}, and without '{THEN_LABEL}' in them"
            raise InputError(expected, repr(mistaken[0]), "Rename the task, or leave transfer out of measure.probes.")
        if not 1 < len(train) <= MAX_TASKS:
            expected = f"2 to {MAX_TASKS} tasks with training rows that have targets, and with held-out items to grade"
            raise InputError(expected, f"{len(train)}", "Leave transfer out of measure.probes.")
        sizes = RunSizes(self.steps, self.batch, self.learning_rate, self.seeds, self.pairs, self.confirm_steps_factor)
        adapter = create("adapters", self.adapter)
        model = adapter.wrap(copy.deepcopy(passes.learner.model)).eval()  # no dropout: runs differ by their rows alone
        losses = RowLosses(passes.learner, corpus)
        return measure_transfer(model, losses, lambda branch: _read_tasks(passes, items, branch), train, sizes, rng)


def _read_tasks(passes: Passes, items: Mapping[str, list[Any]], model: Any) -> dict[str, dict[str, NDArray[np.float64]]]:
    """Greedy success and mean entropy of each item's own answer, under a copy of the model."""
    from mixwright.extend import Learner

    start = passes.learner  # whose kept answers and engine are those of the model before
    options = {"form": start.form, "batch_size": start.batch_size}
    learner = Learner(model, start.tokenizer, start.name, **options)
    values_by_measurement: dict[str, dict[str, NDArray[np.float64]]] = {"success": {}, "entropy": {}}
    for task, task_items in items.items():
        prompts = [item.prompt for item in task_items]
        longest, seed = passes.config.max_new_tokens, passes.seed
        completions = [
            completion
            for (completion,) in learner.sample(prompts, count=1, temperature=0.0, max_new_tokens=longest, seed=seed)
        ]
        right = [
            passes.grades.grade(item, completion.text, cut=not completion.finished)
            for item, completion in zip(task_items, completions, strict=True)
        ]
        values_by_measurement["success"][task] = (np.array(right) >= RIGHT_FROM_SCORE).astype(float)
        entropy = np.zeros(len(task_items))
        for item_index, table in learner.distributions(prompts, [completion.token_ids for completion in completions]):
            probabilities = table.exp()
            entropy[item_index] = float(-(probabilities * table).nan_to_num().sum(-1).mean())
        values_by_measurement["entropy"][task] = entropy
    return values_by_measurement

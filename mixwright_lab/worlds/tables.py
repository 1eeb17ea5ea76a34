"""World of random tables: a task is a function of one symbol or of two that can only be memorised.

Simple and complex tasks alternate in rank, and a task's share falls as a power of its rank, so that being rare and being
complex are crossed. The answer to `f07(3, 5) ~12` is the entry of table 7 at 3 (simple) or at 3 and 5 (complex). The number
after `~` says nothing: it is even in one split and odd in the other, so that held-out prompts are new while the facts are
those that were trained on; nothing can be generalised here, only kept or overwritten.

Source: frequency and complexity of tasks in a mixture under limited width, 2605.29548; tables instead of its injected tasks.
Unit: level 1 = simple, 2 = complex; answers are symbols 0 to `symbols` - 1.
Cost: none; the tables of a seed are drawn when first asked for.
Blind spot: facts without structure: what is learnt of one entry does not help another, as it would in a language.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World


class Tables(World):
    """The world.

    Args:
        tasks: number of tasks; those of odd rank are simple, those of even rank complex.
        symbols: number of symbols; blind luck is 1 / symbols.
        power: share of the task of rank r (1 is the commonest) is proportional to r ** -power; 0 makes all equal.
        seed: of the tables.
    """

    def __init__(self, *, tasks: int = 24, symbols: int = 8, power: float = 1.3, seed: int = 0) -> None:
        if tasks < 2 or symbols < 2:
            raise InputError("at least 2 tasks and 2 symbols", f"{tasks} and {symbols}", "Correct them.")
        self.tasks, self.symbols, self.power, self.seed = tasks, symbols, power, seed

    @cached_property
    def tables(self) -> np.ndarray:
        """Every answer, int64 of shape (tasks, symbols, symbols): task, first symbol, second symbol."""
        drawn = np.random.default_rng(self.seed).integers(self.symbols, size=(self.tasks, self.symbols, self.symbols))
        drawn[::2] = drawn[::2, :, :1]  # simple: the second symbol does not matter
        return drawn

    def name(self, task: int) -> str:
        """Name of the task of rank `task` + 1."""
        return f"f{task + 1:02d}"

    def level(self, task: int) -> float:
        """1.0 for a simple task, 2.0 for a complex one."""
        return 1.0 + task % 2

    def shares(self) -> dict[str, float]:
        """Share of each task in nature, by name; sums to 1."""
        parts = np.arange(1, self.tasks + 1) ** -float(self.power)
        return {self.name(task): float(part) for task, part in enumerate(parts / parts.sum())}

    def row(self, task: int, index: int, split: str) -> Example:
        """Row `index` of one task: the entries in turn, each with another number behind `~`."""
        entry, number = index % self.symbols**2, index // self.symbols**2
        first, second = divmod(entry, self.symbols)
        name, answer = self.name(task), int(self.tables[task, first, second])
        prompt = f"{name}({first}, {second}) ~{2 * number + (split != 'train')}"
        knobs = {"task": float(task), "first": float(first), "second": float(second)}
        return Example(
            f"{name}-{split}-{index}", name, prompt, answer=str(answer), level=self.level(task), knobs=knobs, split=split
        )

    def make(self, index: int, level: float, split: str) -> Example:
        """The example at `index`: tasks of that level in turn. Raises InputError for another level or split."""
        if level not in (1.0, 2.0) or split not in ("train", "eval"):
            got = f"level {level:g} of split {split!r}"
            raise InputError("level 1 (simple) or 2 (complex) of train or eval", got, "Correct it.")
        own = range(int(level) - 1, self.tasks, 2)
        return self.row(own[index % len(own)], index // len(own), split)

    def corpus(self, rows: int, split: str = "train") -> list[Example]:
        """About `rows` examples, tasks as often as in nature, the entries of a task equally often, give or take one."""
        counts = [max(round(share * rows), 1) for share in self.shares().values()]
        return [self.row(task, index, split) for task, count in enumerate(counts) for index in range(count)]

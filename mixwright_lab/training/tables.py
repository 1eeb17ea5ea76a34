"""Very small model that memorises tables, one layer that reads (first symbol, second symbol, task), and its SFT.

Compute is counted: 6 x parameters x tokens for a training step, 2 x for reading.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from mixwright import Pool, make_pool
from mixwright.records import Example
from mixwright_extras.orders.bursts import Burst, watch_bursts
from mixwright_lab.training.sft import Schedule, Sft
from mixwright_lab.worlds.tables import Tables

ATTENTION_HEADS, ROW_TOKENS = 4, 3
"""Attention heads; tokens of a row."""

Draw = Callable[[], Sequence[int] | np.ndarray]
"""Gives the rows of a step."""


class Model(nn.Module):
    """One transformer layer of which only the last position is computed, because only it is read.

    Args:
        width: of the residual stream.
        tasks: number of tasks.
        symbols: number of symbols.
        seed: of the initial weights.
    """

    def __init__(self, width: int, tasks: int, symbols: int, seed: int) -> None:
        super().__init__()
        made = torch.Generator().manual_seed(seed)

        def weight(*shape: int, spread: float) -> nn.Parameter:
            return nn.Parameter(torch.randn(*shape, generator=made) * spread)

        self.width = width
        self.token, self.place = weight(symbols + tasks, width, spread=0.5), weight(ROW_TOKENS, width, spread=0.5)
        self.query, self.out = weight(width, width, spread=width**-0.5), weight(width, width, spread=width**-0.5)
        self.key_value = weight(width, 2 * width, spread=width**-0.5)
        self.up, self.down = weight(width, 4 * width, spread=width**-0.5), weight(4 * width, width, spread=width**-0.5 / 2)
        self.head = weight(width, symbols, spread=width**-0.5)

    def forward(self, ids: Int[Tensor, "rows 3"]) -> Float[Tensor, "rows symbols"]:
        """Logits of the answer."""
        rows, size = len(ids), self.width // ATTENTION_HEADS
        stream = self.token[ids] + self.place
        seen, last = _normed(stream), stream[:, -1]
        query = (seen[:, -1] @ self.query).view(rows, ATTENTION_HEADS, 1, size)
        keys, values = (seen @ self.key_value).view(rows, ROW_TOKENS, 2, ATTENTION_HEADS, size).permute(2, 0, 3, 1, 4)
        looks = (query @ keys.transpose(-1, -2) * size**-0.5).softmax(-1)
        last = last + (looks @ values).reshape(rows, self.width) @ self.out
        last = last + nn.functional.gelu(_normed(last) @ self.up) @ self.down
        return _normed(last) @ self.head

    @property
    def size(self) -> int:
        """Number of parameters."""
        return sum(parameter.numel() for parameter in self.parameters())


def _normed(stream: Tensor) -> Tensor:
    return stream * (stream.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


@dataclass
class Data:
    """A corpus of tables as tensors."""

    world: Tables
    """Where it comes from."""
    examples: Sequence[Example]
    """The training rows."""
    pool: Pool = field(init=False)
    """The same for the engine; index = row."""
    ids: Int[Tensor, "rows 3"] = field(init=False)
    """Tokens: first symbol, second symbol, task."""
    answers: Int[Tensor, " rows"] = field(init=False)
    """The right symbol."""

    def __post_init__(self) -> None:
        rows = self.examples
        self.pool = make_pool([row.id for row in rows], [row.task for row in rows], [row.level for row in rows])
        knobs = [[row.knobs["first"], row.knobs["second"], row.knobs["task"] + self.world.symbols] for row in rows]
        self.ids = torch.tensor(knobs).long()
        self.answers = torch.tensor([int(row.answer or 0) for row in rows])

    def losses(self, model: nn.Module, rows: Sequence[int] | np.ndarray) -> Float[Tensor, " rows"]:
        """Nats of each of these rows under the model."""
        chosen = torch.as_tensor(rows)
        return nn.functional.cross_entropy(model(self.ids[chosen]), self.answers[chosen], reduction="none")

    def of_tasks(self, tasks: Sequence[int]) -> np.ndarray:
        """Which rows are of one of these tasks, by rank from 0; bool of shape (rows,)."""
        return np.isin([int(row.knobs["task"]) for row in self.examples], tasks)


class Training:
    """A model in SFT and what it has cost.

    Args:
        model: trained in place.
        rate: learning rate after warm-up.
        steps: of the whole run: 50 of warm-up, the last 30 % fall to nothing.
    """

    def __init__(self, model: Model, rate: float, steps: int) -> None:
        self.model = model
        self.flops = 0.0
        self.seconds = 0.0
        """CPU time of one thread."""
        self._sft = Sft(model, Schedule(steps, rate, fall=0.3, betas=(0.9, 0.999), fused=True))

    def learn(self, data: Data, draw: Draw, steps: int) -> None:
        """Take `steps` steps on what `draw` gives."""
        begun = time.process_time()
        for _ in range(steps):
            rows = draw()
            self._sft.step(data.losses(self.model, rows).mean())
            self.flops += 6 * self.model.size * ROW_TOKENS * len(rows)
        self.seconds += time.process_time() - begun


def accuracies(model: Model, world: Tables) -> np.ndarray:
    """Share of right entries per task, greedy, shape (tasks,): every entry of every table, not charged."""
    first, second = (part.flatten() for part in np.meshgrid(*[np.arange(world.symbols)] * 2, indexing="ij"))
    found = []
    with torch.no_grad():
        for task in range(world.tasks):
            ids = torch.tensor(np.stack([first, second, np.full_like(first, world.symbols + task)], 1))
            right = model(ids).argmax(1).numpy() == world.tables[task].flatten()
            found.append(right.mean())
    return np.array(found)


def interference(model: Model, data: Data, rare: Sequence[int], sizes: Burst) -> dict[str, float]:
    """How the other tasks' gradient stands to that of rare ones, and what is kept of a burst on a rare one.

    Args:
        model: read, not changed.
        data: all of its rows are read.
        rare: tasks by rank, from 0.
        sizes: of the bursts.

    Returns:
        `common / rare gradient`: norms, each as it pulls on the mean loss; `cosine of gradients`; and, where the probe has
        them, means over the rare tasks of `burst gain` in nats, the share `retained` at the end, and `half life` in steps.
    """
    is_rare, pulls = data.of_tasks(rare), []
    for rows in (np.flatnonzero(~is_rare), np.flatnonzero(is_rare)):
        parts = torch.autograd.grad(data.losses(model, rows).sum() / len(is_rare), list(model.parameters()))
        pulls.append(torch.cat([part.flatten() for part in parts]))
    told = {"common / rare gradient": float(pulls[0].norm() / pulls[1].norm())}
    told["cosine of gradients"] = float(torch.cosine_similarity(pulls[0], pulls[1], dim=0))
    train = {name: np.flatnonzero(data.pool.task_of == task) for task, name in enumerate(data.pool.tasks)}
    read = {name: rows[: data.world.symbols**2] for name, rows in train.items()}
    names = [data.world.name(task) for task in rare]
    found = watch_bursts(model, data.losses, train, read, names, sizes, np.random.default_rng(data.world.seed))
    for name in ("burst_gain", f"retained@{sizes.after}", "half_life"):
        values = [row.value for row in found if row.name == name and row.task in names]
        told |= {name.partition("@")[0].replace("_", " "): float(np.mean(values))} if values else {}
    return told

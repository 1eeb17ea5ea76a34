"""Files that a steered run leaves: decisions.jsonl, steps.jsonl, draws.parquet, proof.json.

Lines of steps.jsonl are about groups, losses or pairs. Losses and margins are never written as success: a line of SFT has
`losses` and `drop`, one of DPO log-ratios and margins.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.records import Decision, GroupOutcome, PairOutcome, SFTOutcome, cell_key, to_data
from mixwright.run.folder import check_regular, write_json, write_table
from mixwright.steer.pool import Pool

PAIR_NUMBERS = ("chosen_logratio", "rejected_logratio", "margin")
"""What is written of pairs per task: means; nats, the margin times beta."""
PER_TASK_METRICS = ("drop", *PAIR_NUMBERS)
"""Parts of a line that the trainer's own log gets per task."""
LOSS_TOKENS_PREFIX = "loss_tokens/"
"""Before a task's name in the counts of an SFT run: its tokens in the loss."""
DRAWN_AHEAD = -1
"""Stands for the step of rows that were drawn ahead and never used."""


def group_line(groups: Sequence[GroupOutcome], refused: Collection[str]) -> dict[str, Any]:
    """What groups of GRPO showed: zero signal, refused, mean reward, successes and informative groups per cell.

    Args:
        groups: with true rewards.
        refused: ids of examples whose groups were refused.
    """
    rewards = [reward for group in groups for reward in group.rewards]
    successes: dict[str, list[float]] = {}
    mixed: Counter[str] = Counter()
    for group in groups:
        key, is_refused = cell_key(group.task, group.level), group.example in refused
        entry = successes.setdefault(key, [0.0, 0])
        entry[0] += sum(group.successes)
        entry[1] += len(group.successes)
        if not group.no_signal and not is_refused:
            mixed[key] += 1
    return {
        "groups": len(groups),
        "zero_signal": sum(group.no_signal for group in groups),
        "refused": sum(group.example in refused for group in groups),
        "reward": sum(rewards) / len(rewards) if rewards else None,
        "success": successes,
        "mixed": mixed,
    }


def loss_line(outcomes: Sequence[SFTOutcome]) -> dict[str, Any]:
    """What examples of SFT showed: nats per target token; nats and tokens per cell; mean drop per task, where known.

    Without any example (all overflowed) the loss is None.
    """
    losses: dict[str, list[float]] = {}
    drops: defaultdict[str, list[float]] = defaultdict(list)
    for outcome in outcomes:
        entry = losses.setdefault(cell_key(outcome.task, outcome.level), [0.0, 0])
        entry[0] += outcome.loss * outcome.tokens
        entry[1] += outcome.tokens
        if outcome.drop is not None:
            drops[outcome.task].append(outcome.drop)
    nats, tokens = (sum(entry[i] for entry in losses.values()) for i in (0, 1))
    drop = {task: sum(values) / len(values) for task, values in sorted(drops.items())}
    return {"examples": len(outcomes), "loss": nats / max(1, tokens) if outcomes else None, "losses": losses, "drop": drop}


def pair_line(pairs: Sequence[PairOutcome], loss: float) -> dict[str, Any]:
    """What pairs of DPO showed: the loss as the trainer made it, and means of log-ratios and margins per task.

    Args:
        pairs: of one optimiser step.
        loss: mean over its micro-steps, whatever the loss type.
    """
    pairs_by_task: defaultdict[str, list[PairOutcome]] = defaultdict(list)
    for pair in pairs:
        pairs_by_task[pair.task].append(pair)
    means = {
        name: {
            task: sum(getattr(p, name) for p in pairs_of_task) / len(pairs_of_task)
            for task, pairs_of_task in sorted(pairs_by_task.items())
        }
        for name in PAIR_NUMBERS
    }
    return {"pairs": len(pairs), "loss": loss, **means}


def drawn_shares(pool: Pool, rows: Sequence[int]) -> dict[str, float]:
    """Share of each task among draws of the pool's rows; 0 before the first draw."""
    counts = np.bincount(pool.task_of[np.asarray(rows, dtype=np.int64)], minlength=len(pool.tasks))
    return dict(zip(pool.tasks, (counts / max(1, len(rows))).tolist(), strict=True))


def proof_counts(objective: str, counts: Mapping[str, int], rollouts: int) -> dict[str, Any]:
    """The part of proof.json that the objective decides: groups and rollouts, or examples or pairs and tokens read.

    Args:
        objective: grpo, sft or dpo.
        counts: of the whole run.
        rollouts: completions charged.
    """
    if objective != "grpo":
        outcomes = "examples" if objective == "sft" else "pairs"
        return {name: counts.get(name, 0) for name in (outcomes, "unscored", "canary_tokens")}
    groups, zero_signal = counts.get("groups", 0), counts.get("zero_signal", 0)
    return {
        "groups": groups,
        "zero_signal": zero_signal,
        "zero_signal_share": zero_signal / max(1, groups),
        "refused": counts.get("refused", 0),
        "unscored": counts.get("unscored", 0),
        "rollouts": rollouts,
        "canary_rollouts": counts.get("canary_rollouts", 0),
    }


def loss_token_shares(counts: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """The part of proof.json that says what share of the tokens in the loss each task took; empty where none was counted."""
    tokens = {
        name.removeprefix(LOSS_TOKENS_PREFIX): count for name, count in counts.items() if name.startswith(LOSS_TOKENS_PREFIX)
    }
    total = sum(tokens.values()) or 1
    return {"loss_tokens": {task: count / total for task, count in sorted(tokens.items())}} if tokens else {}


class SteeringFiles:
    """Writes into one folder; on every rank but the first it writes nothing.

    Args:
        folder: made on first write.
        writes: False on ranks that must not write.
    """

    LINE_FILES = ("decisions.jsonl", "steps.jsonl")

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        self.folder, self.writes = folder, writes
        self._written: dict[str, tuple[int, int]] = dict.fromkeys(self.LINE_FILES, (0, 0))
        self._begun = False

    def clear(self) -> None:
        """A new run starts in this folder: line files exist and are empty."""
        self._begun = True
        if self.writes:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in self.LINE_FILES:
                (self.folder / name).write_bytes(b"")
                self._written[name] = (0, 0)

    def write_decisions(self, decisions: Sequence[Decision]) -> None:
        """One line per decision."""
        lines = [to_data(decision) for decision in decisions]
        self._append("decisions.jsonl", [{k: v for k, v in line.items() if k != "last" or v is not None} for line in lines])

    def write_step(self, line: Mapping[str, Any]) -> None:
        """One line per generation batch."""
        self._append("steps.jsonl", [line])

    def write_proof(self, proof: Mapping[str, Any]) -> None:
        """The whole proof, replaced."""
        if self.writes:
            write_json(self.folder / "proof.json", dict(proof))

    def write_draws(
        self,
        pool: Pool,
        rows: Sequence[int],
        success: np.ndarray,
        draws_by_batch: Sequence[tuple[int, int]],
        refused: Sequence[int] = (),
    ) -> None:
        """All draws, replaced: position, generation batch and optimiser step (null: drawn ahead, not used), row, refused.

        Args:
            pool: what was drawn from.
            rows: drawn, in order.
            success: that came of each draw; NaN where no group came back.
            draws_by_batch: optimiser step and number of draws of each batch so far; step -1 where they were drawn ahead,
                not used; the rest were drawn ahead.
            refused: positions of draws whose groups were refused.
        """
        if not self.writes:
            return
        import pyarrow as pa

        step_of_batch, counts = np.array(draws_by_batch, dtype=np.int64).reshape(-1, 2).T
        steps, batches = np.full((2, len(rows)), DRAWN_AHEAD)
        batch_of_draw = np.repeat(np.arange(len(step_of_batch)), counts)[: len(rows)]
        steps[: len(batch_of_draw)] = step_of_batch[batch_of_draw]
        batches[: len(batch_of_draw)] = (np.cumsum(step_of_batch != DRAWN_AHEAD) - 1)[batch_of_draw]
        unused = steps == DRAWN_AHEAD
        is_refused = np.zeros(len(rows), dtype=bool)
        is_refused[np.asarray(refused, dtype=np.int64)] = True
        distinct_rows, row_positions = np.unique(np.asarray(rows, dtype=np.int64), return_inverse=True)
        cells = [pool.cells[cell] for cell in pool.cell_of[distinct_rows]]
        table = pa.table(
            {
                "draw": pa.array(np.arange(len(rows))),
                "step": pa.array(steps, pa.int64(), mask=unused),
                "batch": pa.array(batches, pa.int64(), mask=unused),
                "example": pa.array([pool.ids[row] for row in distinct_rows], pa.string()).take(pa.array(row_positions)),
                "task": pa.array([cell.task for cell in cells], pa.string()).take(pa.array(row_positions)),
                "level": pa.array([cell.level for cell in cells], pa.float64()).take(pa.array(row_positions)),
                "refused": pa.array(is_refused),
                "success": pa.array(success, pa.float32(), mask=np.isnan(success)),
            }
        )
        write_table(self.folder / "draws.parquet", table)

    def sizes_and_checksums(self) -> dict[str, list[int]]:
        """Bytes of each line file and their CRC-32, for a checkpoint."""
        return {name: list(size_and_checksum) for name, size_and_checksum in self._written.items()}

    def first_differing(self, sizes_and_checksums: Mapping[str, Sequence[int]]) -> str:
        """The first line file that does not begin with what these say; empty when all do."""
        for name, expected in sizes_and_checksums.items():
            if _checksum(self.folder / name, expected[0]) != tuple(expected):
                return name
        return ""

    def read_decisions_after(self, sizes_and_checksums: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
        """The decisions written after a checkpoint whose line files had these sizes; torn lines are left out."""
        path, decisions = self.folder / "decisions.jsonl", []
        check_regular(path)
        text = path.read_bytes()[sizes_and_checksums[path.name][0] :] if path.exists() else b""
        for line in text.splitlines():
            with contextlib.suppress(ValueError):
                decisions.append(json.loads(line))
        return decisions

    def truncate_to(self, sizes_and_checksums: Mapping[str, Sequence[int]]) -> None:
        """Drop what was written after a checkpoint, a torn last line too, so that a resumed run continues the same lines."""
        self._begun = True
        if not self.writes:
            return
        for name, (size, _) in sizes_and_checksums.items():
            path = self.folder / name
            if path.exists() and path.stat().st_size > size:
                os.truncate(path, size)
            self._written[name] = _checksum(path, size)

    def _append(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        if not self.writes or not lines:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        size, checksum = self._written[name]
        path = self.folder / name
        check_regular(path)
        if path.exists() and path.stat().st_size != size and self._begun:
            raise RuntimeError(f"another run writes into {self.folder}; give each run its own output_dir or steering folder")
        finite_lines = (json.dumps(_replace_not_finite(line), allow_nan=False, default=float) for line in lines)
        data = "".join(f"{line}\n" for line in finite_lines).encode()
        with path.open("ab") as file:
            file.write(data)
        self._written[name] = (size + len(data), zlib.crc32(data, checksum))


def _replace_not_finite(value: Any) -> Any:
    """The value with null for each number that overflowed: JSON has no NaN, and a run that diverges must still be logged."""
    if isinstance(value, Mapping):
        return {key: _replace_not_finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_not_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _checksum(path: Path, size: int) -> tuple[int, int]:
    """Bytes there are of the first `size`, and their CRC-32."""
    size_found = checksum = 0
    check_regular(path)
    if path.exists():
        with path.open("rb") as file:
            while chunk := file.read(min(size - size_found, 1 << 20)):
                size_found, checksum = size_found + len(chunk), zlib.crc32(chunk, checksum)
    return size_found, checksum

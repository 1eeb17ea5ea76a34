"""Files that a steered run leaves: decisions.jsonl, steps.jsonl, draws.parquet, proof.json.

Lines of steps.jsonl are about groups, losses or pairs. Losses and margins are never written as success: a line of SFT has
`losses`, one of DPO log-ratios and margins.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from mixwright.records import GroupOutcome, PairOutcome, SFTOutcome, cell_key
from mixwright.records.steering import ExampleOutcome
from mixwright.run.folder import check_regular, write_json, write_table

PAIR_NUMBERS = ("chosen_logratio", "rejected_logratio", "margin")
"""What is written of pairs per task, also into the trainer's own log: means; nats, the margin times beta."""
DECISIONS, STEPS = "decisions.jsonl", "steps.jsonl"


def group_line(groups: Sequence[GroupOutcome], refused: Collection[str]) -> dict[str, Any]:
    """What groups of GRPO showed: zero signal, refused, mean reward, successes and informative groups per cell.

    Args:
        groups: with true rewards.
        refused: ids of examples whose groups were refused.
    """
    rewards = [reward for group in groups for reward in group.rewards]
    admitted_groups = [group for group in groups if group.example not in refused]
    return {
        "groups": len(groups),
        "zero_signal": sum(group.no_signal for group in groups),
        "refused": len(groups) - len(admitted_groups),
        "reward": sum(rewards) / len(rewards) if rewards else None,
        "success": _sums_by_cell((group, sum(group.successes), len(group.successes)) for group in groups),
        "mixed": Counter(cell_key(group.task, group.level) for group in admitted_groups if not group.no_signal),
    }


def loss_line(outcomes: Sequence[SFTOutcome]) -> dict[str, Any]:
    """What examples of SFT showed: nats per target token; nats and tokens per cell.

    Without any example (all overflowed) the loss is None.
    """
    losses = _sums_by_cell((outcome, outcome.loss * outcome.tokens, outcome.tokens) for outcome in outcomes)
    nats, tokens = (sum(sums[index] for sums in losses.values()) for index in (0, 1))
    return {
        "examples": len(outcomes),
        "loss": nats / max(1, tokens) if outcomes else None,
        "losses": losses,
    }


def pair_line(pairs: Sequence[PairOutcome], loss: float) -> dict[str, Any]:
    """What pairs of DPO showed: the loss as the trainer made it, and means of log-ratios and margins per task.

    Args:
        pairs: of one optimiser step.
        loss: mean over its micro-steps, whatever the loss type.
    """
    pairs_by_task: dict[str, list[PairOutcome]] = {task: [] for task in sorted({pair.task for pair in pairs})}
    for pair in pairs:
        pairs_by_task[pair.task].append(pair)
    means = {
        name: {task: sum(getattr(pair, name) for pair in of) / len(of) for task, of in pairs_by_task.items()}
        for name in PAIR_NUMBERS
    }
    return {"pairs": len(pairs), "loss": loss, **means}


def _sums_by_cell(amounts: Iterable[tuple[ExampleOutcome, float, int]]) -> dict[str, list[float]]:
    """Sums of both numbers per cell of the outcomes."""
    sums: dict[str, list[float]] = {}
    for outcome, amount, count in amounts:
        sums_of_cell = sums.setdefault(cell_key(outcome.task, outcome.level), [0.0, 0])
        sums_of_cell[0] += amount
        sums_of_cell[1] += count
    return sums


class SteeringFiles:
    """Writes into one folder. Ranks that must not write append nothing, and do not ask for whole files.

    Args:
        folder: made on first write.
        writes: False on ranks that must not write.
    """

    def __init__(self, folder: Path, *, writes: bool = True) -> None:
        self.folder, self.writes = folder, writes
        self._written: dict[str, tuple[int, int]] = dict.fromkeys((DECISIONS, STEPS), (0, 0))
        self._begun = False

    def clear(self) -> None:
        """A new run starts in this folder: line files exist and are empty."""
        self._begun = True
        if self.writes:
            self.folder.mkdir(parents=True, exist_ok=True)
            for name in self._written:
                (self.folder / name).write_bytes(b"")
                self._written[name] = (0, 0)

    def append(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        """Add lines to a line file.

        Raises:
            RuntimeError: another run writes into the folder.
        """
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

    def replace(self, draws: Mapping[str, Any], proof: Mapping[str, Any]) -> None:
        """Write all draws, Arrow arrays by column, and the whole proof in place of what was there."""
        write_table(self.folder / "draws.parquet", pa.table(dict(draws)))
        write_json(self.folder / "proof.json", dict(proof))

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
        path, decisions = self.folder / DECISIONS, []
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

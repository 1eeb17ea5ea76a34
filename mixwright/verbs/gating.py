"""Options of `mixwright verdict` other than those of measuring, and which of them go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mixwright.errors import InputError, unknown_name
from mixwright.estimates.looks import PLANNED_LOOKS
from mixwright.estimates.readings import Decoding
from mixwright.records import Cell
from mixwright.verdict.rules.gate import items_to_measure
from mixwright.verdict.rules.gate_question import GateQuestion


@dataclass(frozen=True, slots=True)
class Gating:
    """How the gate is asked, and an earlier comparison to reuse; one option of the command line per field."""

    gate: bool = True
    """Whether the exit code follows its answer."""
    protect: Sequence[str] = ()
    """Tasks and cells; empty for all with a right answer before."""
    each: bool = False
    """Every protected cell by itself."""
    margin: float | None = None
    """Mean loss of the named group, points."""
    cannot_tell: Literal["fail", "warn"] = "fail"
    """What too few items are."""
    until_decided: bool = False
    """Whether items are measured in planned looks, until the gate is decided."""
    max_items: int | None = None
    """Items over all cells at the last look; None takes what the gate needs."""
    decoding: Decoding = "greedy"
    """How the model will be used."""
    beside: Path | None = None
    """An earlier comparison of the same BEFORE, whose measurements are taken over and whose AFTER stands beside."""
    trained_on: str | None = None
    """Rows of which no items are asked, of the general suite."""
    suite_seed: int = 0
    """Seed of the items of the general suite."""
    suite: bool = True
    """Whether two checkpoints are asked general requests, if no task is named."""
    looks: int = PLANNED_LOOKS
    """Looks that are planned."""
    rings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Group of tasks with a bound of its own -> its tasks; an empty one has those of no other."""

    @property
    def margin_share(self) -> float | None:
        """The margin as a share."""
        return None if self.margin is None else self.margin / 100

    @property
    def asks_general(self) -> bool:
        """Whether two checkpoints are asked general requests."""
        return self.suite and not self.protect

    @property
    def question(self) -> GateQuestion:
        """What the gate is asked."""
        return GateQuestion(
            tuple(self.protect), self.each, self.margin_share, rings=() if self.protect else tuple(self.rings.items())
        )

    def choose_items_per_cell(self, cells: Sequence[Cell], items: int | None) -> int:
        """Items per cell: so many as were asked for, else what the gate needs.

        Raises:
            InputError: a protected name that the corpus does not have.
        """
        known_names = {name for cell in cells for name in (cell.task, cell.key)}
        for name in self.protect:
            if name not in known_names:
                raise unknown_name("task or cell of the corpus (--protect)", name, known_names)
        protected_cells = [cell for cell in cells if not self.protect or {cell.task, cell.key} & set(self.protect)]
        if items is not None:
            return items
        return items_to_measure(len(protected_cells), margin=self.margin_share)

    def check(self, *, compares: bool, general: bool) -> None:
        """Raise InputError for options that say nothing without others, or contradict each other.

        Args:
            compares: two checkpoints are compared; else a run folder is judged.
            general: they are asked general requests, which are always asked in interim analyses.
        """
        if self.max_items is not None and not self.until_decided and not general:
            raise InputError("--until-decided with --max-items", "none", "Add it, or say --items, per task and level.")
        if self.margin is not None:
            if not 0 < self.margin < 100:
                raise InputError("--margin in points, above 0 and below 100", f"{self.margin:g}", "Write for example 15.")
            if self.each:
                remedy = "Leave one of them out: --margin asks of the mean, --each of every cell."
                raise InputError("--margin or --each", "both", remedy)
        remedy = "Name both checkpoints, or leave it out."
        if self.beside is not None and not compares:
            raise InputError("BEFORE AFTER with --beside", "no AFTER", remedy)
        if self.until_decided and not compares:
            raise InputError("BEFORE AFTER with --until-decided", "no AFTER", remedy)

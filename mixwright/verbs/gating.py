"""Options of `mixwright verdict` other than those of measuring, and which of them go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

import typer

from mixwright.behaviours import BEHAVIOURS
from mixwright.errors import InputError, unknown_name
from mixwright.records import Cell
from mixwright.verbs import options
from mixwright.verdict.rules.gate import SAME_MARGIN, items_to_measure
from mixwright.verdict.rules.gate_question import GateQuestion


@dataclass(frozen=True, slots=True)
class Gating:
    """Question to the gate, and an earlier comparison to reuse; one option of the command line per annotated field."""

    gate: Annotated[bool, typer.Option("--gate/--no-gate")] = True
    """Exit with 0 when passed, 3 when damaged, 4 when inconclusive (the default); --no-gate: always 0."""
    protect: Annotated[list[str] | Sequence[str], typer.Option()] = ()
    """Task that must not get worse, or one level of it (TASK@LEVEL); default: every task in which BEFORE had a right answer.
    Repeatable."""
    protect_behaviour: Annotated[list[str] | Sequence[str], typer.Option(metavar="NAME")] = ()
    """Behaviour that answers must not lose, such as asks, hedges or refuses. Repeatable."""
    each: Annotated[bool, typer.Option("--each")] = False
    """Rule out a loss of 5 points for every protected task."""
    margin: Annotated[float | None, typer.Option(metavar="POINTS")] = None
    """Average loss of the protected tasks that must be ruled out, in points; default: 5. Each task must still pass its own
    rule."""
    same: Annotated[bool, typer.Option("--same")] = False
    """Ask whether AFTER is the same model, merged, quantized, exported or served: passes only if a difference of 2 points
    (--margin) is ruled out in both directions."""
    cannot_tell: Annotated[Literal["fail", "warn"], typer.Option()] = "fail"
    """Exit code if there are too few items to tell: fail exits with 4, warn with 0."""
    until_decided: Annotated[bool, typer.Option("--until-decided")] = False
    """Ask 50 items or more at a time, and stop once they decide. General requests are always asked so."""
    max_items: Annotated[int | None, typer.Option(min=4)] = None
    """Most items over all tasks, with --until-decided; for general requests at least 400, default 1,600."""
    trained_on: options.Rows = None
    """Training rows of AFTER. General requests that are among them are left out, and the report says how many."""
    suite_seed: options.SuiteSeed = 0
    """Seed of the general requests."""
    suite: Annotated[bool, typer.Option("--suite/--no-suite")] = True
    """Also ask the general requests that ship with Mixwright (default for two checkpoints without --protect). --no-suite:
    ask only the items of --eval."""
    repeat: Annotated[bool, typer.Option("--repeat")] = False
    """Ask BEFORE a second time, in other batches, and say how many of its answers change by themselves."""
    baseline: options.File = None
    """File of the accepted baseline: BEFORE, the items and these options must be those that were accepted."""
    bless: Annotated[bool, typer.Option("--bless")] = False
    """If AFTER passes (or with --no-gate), accept it as the new baseline: write --baseline FILE."""
    judge: Annotated[str | None, typer.Option(metavar="URL|COMMAND")] = None
    """Model that judges answers without a metric (or of --grader TASK=judge): a server, or a command that reads and writes
    JSON lines. It passes a model only with labels of yours."""
    judge_labels: options.File = None
    """Your labels of the answers that a first run drew; default: to_label.jsonl in the folder, which it wrote."""
    judge_sample: Annotated[int | None, typer.Option(min=8)] = None
    """Items of each task to label. Default: 50, or more if the file of labels goes on."""
    judge_rubric: options.File = None
    """Text that says which answers pass; default: those that do all that the request asks, correctly."""
    judge_model: Annotated[str | None, typer.Option(metavar="NAME")] = None
    """Model to use on the judge's server. Default: the only one that it lists."""
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
            tuple(self.protect),
            self.each,
            self.margin_share,
            rings=() if self.protect or self.same else tuple(self.rings.items()),
            behaviours=tuple(self.protect_behaviour),
            same=self.same,
        )

    def choose_items_per_cell(self, cells: Sequence[Cell], items: int | None) -> int:
        """Items per cell: so many as were asked for, else what the gate needs.

        Raises:
            InputError: a protected name that the corpus does not have.
        """
        known_names = {name for cell in cells for name in (cell.task, cell.key)}
        for name in self.protect:
            if name not in known_names:
                raise unknown_name("task or TASK@LEVEL of the rows (--protect)", name, known_names)
        protected_cells = [cell for cell in cells if not self.protect or {cell.task, cell.key} & set(self.protect)]
        if items is not None:
            return items
        margin = SAME_MARGIN if self.same and self.margin is None else self.margin_share
        return items_to_measure(len(protected_cells), margin=margin)

    def __post_init__(self) -> None:
        """Refuse options that contradict each other, and names that nobody knows. Raises InputError."""
        for name in self.protect_behaviour:
            if name not in BEHAVIOURS:
                raise unknown_name("behaviour (--protect-behaviour)", name, BEHAVIOURS)
        if self.bless and self.baseline is None:
            raise InputError("--baseline FILE with --bless", "none", "Name the file of the accepted baseline.")
        if self.judge is None and (self.judge_labels or self.judge_sample or self.judge_rubric or self.judge_model):
            raise InputError("--judge with its labels, sample, rubric or model", "none", "Name a server or a command.")
        if self.margin is not None and not 0 < self.margin < 100:
            raise InputError("--margin in points, above 0 and below 100", f"{self.margin:g}", "Write for example 15.")
        if self.same and (self.each or self.protect):
            remedy = "Leave one out: --same is about all answers, --protect and --each about losses of tasks."
            raise InputError("--same alone, or --protect and --each", "both", remedy)
        if self.margin is not None and self.each:
            remedy = "Leave one out: --margin is about the average, --each about every task and level."
            raise InputError("--margin or --each", "both", remedy)


GATING = Gating()
"""No options."""

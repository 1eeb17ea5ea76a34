"""Admission of a batch's groups: the gates' answers, and what is written down about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from mixwright.contracts import Gate
from mixwright.records import Action, GroupOutcome


class Note(Protocol):
    """Writes a decision down."""

    def __call__(self, step: int, what: str, old: Any, new: Any, because: str, cause: str = "") -> None:
        """Fields of a `Decision`."""
        ...


class Judge:
    """Asks the gates about each group; all must admit.

    Args:
        gates: of the stage; with none every group is admitted and nothing is written down.
        keys: `task@level` of each cell of the pool.
        states: state of each cell when the plan was made.
        note: writes a decision down.
    """

    def __init__(self, gates: Sequence[Gate], keys: Sequence[str], states: Mapping[str, str], note: Note) -> None:
        self._gates, self._keys, self._states, self._note = gates, keys, states, note
        self._verdicts: dict[str, list[Any]] = {}

    def refusals(self, groups: Sequence[GroupOutcome], cells: Sequence[int]) -> list[Action]:
        """An action per group that is refused; `cells` are the numbers of the groups' cells."""
        return [action for group, cell in zip(groups, cells, strict=True) if (action := self._judge(group, cell))]

    def refused(self, key: str) -> int:
        """Groups of the cell `task@level` refused so far."""
        return self._verdicts[key][1] if key in self._verdicts else 0

    def _judge(self, group: GroupOutcome, cell: int) -> Action | None:
        """Ask the gates. Logged per cell, not per group: a refusal, an unknown cell's first answer, every change."""
        if not self._gates:
            return None
        answers = [gate.admit(group) for gate in self._gates]
        answer = next((answer for answer in answers if not answer.admitted), answers[0])
        key = self._keys[cell]
        word = "refused" if not answer.admitted else "admitted"
        before, refused, held = self._verdicts.get(key, [None, 0, 0])
        if word != before and (before or word == "refused" or self._states[key] == "unknown"):
            since = f"; {before} for {held} groups" if before else ""
            self._note(group.step, f"refuse.{key}", before, word, answer.reason + since, answer.cause)
        self._verdicts[key] = [word, refused + (not answer.admitted), held + 1 if word == before else 1]
        return None if answer.admitted else Action("refuse", group.example, None, answer.reason)

    def state(self) -> dict[str, Any]:
        """JSON-ready: per cell its last answer, groups refused, and for how many groups the answer has held."""
        return {key: list(value) for key, value in self._verdicts.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self._verdicts = {key: list(value) for key, value in state.items()}

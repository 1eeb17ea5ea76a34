"""Gates, which decide what groups may change the weights: one class each, named in settings in small letters, `too_hard`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mixwright.contracts import Admission, Gate, Scene
from mixwright.errors import check_range
from mixwright.estimates.cell_states import LUCKY_KAPPA, Z_STATE
from mixwright.records import GroupOutcome, cell_key
from mixwright.steer.checkpointable import Checkpointable


@dataclass(kw_only=True, eq=False)
class TooHard(Checkpointable, Gate):
    """Gate that refuses groups of levels that are almost never right, and most of those whose answers ignore the prompt.

    A cell is refused when the upper end of the one-sided 95 % Wilson interval of its success lies under `floor` (default:
    the lower edge of the task's band), on the cell's lasting evidence (about 64 groups, older ones fading, rollouts of one
    prompt counted for what they are worth), the current groups included. Of a lucky cell (upper end of kappa under 0.10, see
    `mixwright/estimates/cell_states.py`) the share E[kappa] / 0.10 of the groups is admitted, so that less evidence of skill
    means fewer groups and never a sudden end. A cell without evidence is admitted and the reason says so. Groups stay seen
    while refused, so a cell whose success rises comes back: one measured at 0 of 256 rollouts (32 items) does after two
    groups of 8 with 4 right each.

    Measured (the study `overhard`, greedy success over everything held out): on over-hard data without levels, at a high
    learning rate, the trainer's own plan ends 29 points over itself without it (20 to 37), mostly by training less: a coin
    that refuses as many groups ends 5 under it (-1 to 11), half the learning rate 10 over it (4 to 17). With levels the
    selector keeps away by itself, and nothing shows; alone, on uniform draws, it ends 14 over a coin (2 to 27). It needs the
    engine's `min_informative_share` rule, which scales steps with few informative groups: 42 points over uniform draws with
    it, 14 without, because Adam gives the few groups left a full step. Where answers hold no information it costs what a
    constant answer earns (by estimate 1.6 points, -0.2 to 3.5).

    Source: 2605.28388 (over-hard samples harm); rewards of answers that do not depend on the prompt reinforce
        the commonest answer.
    Unit: success and kappa, 0..1.
    Cost: one interval per group; refused groups have cost their rollouts.
    Blind spot: a cell of a few easy prompts among many impossible ones looks hard until easy ones are drawn. Without gold
        answers, or with partial rewards, nothing is called lucky.

    Args:
        floor: success under which a cell must not change the weights; None takes the lower edge of the band.
        z: quantile of the one-sided interval; 1.645 is 95 %.
        min_rollouts: discounted rollouts of evidence below which a cell is admitted, above 0.
        lucky_kappa: kappa that must be excluded from above before a cell is lucky; 0 admits every lucky cell.
    """

    STATE_FIELDS = ("_credit",)

    floor: float | None = None
    z: float = Z_STATE
    min_rollouts: float = 24.0
    lucky_kappa: float = LUCKY_KAPPA

    def __post_init__(self) -> None:
        check_range("gates.too_hard", vars(self), z=(0, 1e9), min_rollouts=(1e-9, 1e9), lucky_kappa=(0, 1))
        if self.floor is not None:
            check_range("gates.too_hard", vars(self), floor=(0, 1))

    def begin(self, scene: Scene) -> None:
        """Find the pool's cells by name."""
        self._ledger, self._stage = scene.ledger, scene.stage
        self._cells = {cell.key: number for number, cell in enumerate(scene.pool.cells)}
        self._credit: dict[str, float] = {}  # by number of the cell: shares of groups that it has saved up

    def admit(self, group: GroupOutcome) -> Admission:
        """Whether the group may change the weights. Raises KeyError for a cell that the pool lacks."""
        cell = self._cells[cell_key(group.task, group.level)]
        evidence = self._ledger.lasting
        tries = float(evidence.tries[cell])
        if tries < self.min_rollouts:
            return Admission(True, f"no evidence yet: {tries:.0f} of {self.min_rollouts:.0f} rollouts")
        upper, success = float(evidence.interval(cell, self.z)[1]), float(evidence.wins[cell]) / tries
        evidence_text = f"{success:.0%} right in {tries:.0f} rollouts, at most {upper:.0%}"
        floor = self._stage.band_of(group.task)[0] if self.floor is None else self.floor
        if upper < floor:
            return Admission(False, f"too hard: {evidence_text}, under {floor:.0%}")
        kappa_high = float(self._ledger.answers.kappa_high()[cell])
        if not self.lucky_kappa or kappa_high >= self.lucky_kappa:  # kappa, and so its upper end, may lie under 0
            return Admission(True, f"not ruled out: {evidence_text}")
        share = min(max(float(self._ledger.kappa(np.array(success), cell)), 0.0) / self.lucky_kappa, 1.0)
        reason = (
            f"{evidence_text}; kappa at most {kappa_high:.0%}: answers do not depend on the prompt; "
            f"{share:.0%} of such groups are admitted"
        )
        saved = self._credit.get(str(cell), 0.0) + share
        self._credit[str(cell)] = saved - (saved >= 1)
        if saved < 1:
            return Admission(False, f"lucky: {reason}")
        return Admission(True, f"lucky, admitted as one of that share: {reason}")

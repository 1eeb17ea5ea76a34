"""Policy of the engine: from a batch's evidence to actions, by gates, controllers, monitors and rules, in one place.

Gates are asked about each group (`GateRunner`); `Policy` asks controllers and monitors about the step, and decides what
follows from few informative groups and from alarms:

- **Few informative groups.** A refused group has zero advantage, but Adam's momentum still moves the weights, and the few
  groups left are rescaled to a full step. So in a batch where the share of groups that are admitted and carry signal is
  under `min_informative_share`, the learning rate is multiplied by their ratio until the next batch; without any the step
  is skipped.
  Only in stages that have a gate: a stage without one takes every step, as a trainer without steering does.
- **Alarm.** It is written down, or ends the run.
- **Measured** (the study `overhard`, over-hard data, points of greedy success under not training): uniform draws 50,
  refusing alone 36 (22 to 50), with `min_informative_share` 8 (3 to 13). Beside the selector, where levels are known, each
  of them changes nothing: contributing/evidence/controllers.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mixwright.contracts import Controller, Gate, Monitor
from mixwright.records import Action, EngineOptions, GroupOutcome, Signals
from mixwright.steer.checkpointable import Checkpointable

Note = Callable[..., None]
"""Writes a decision down: (step, what, old, new, because)."""


class GateRunner(Checkpointable):
    """Asks the gates about each group; all must admit.

    Args:
        gates: of the stage; with none every group is admitted and nothing is written down.
        keys: `task@level` of each cell of the pool.
        states: state of each cell when the plan was made.
        note: writes a decision down.
    """

    STATE_FIELDS = ("_verdicts", "refused")

    def __init__(self, gates: Sequence[Gate], keys: Sequence[str], states: Mapping[str, str], note: Note) -> None:
        self._gates, self._keys, self._states, self._note = gates, keys, states, note
        self._verdicts: dict[str, str] = {}
        """Last answer, by cell."""
        self.refused: Counter[str] = Counter()
        """Groups refused so far, by cell."""

    def refusals(self, groups: Sequence[GroupOutcome], cells: Sequence[int]) -> list[Action]:
        """An action per example that is refused; `cells` are the numbers of the groups' cells.

        Refusals are carried out by example, so only the first group of an example is judged.
        """
        if not self._gates:
            return []
        actions: dict[str, Action | None] = {}
        for group, cell in zip(groups, cells, strict=True):
            if group.example not in actions:
                actions[group.example] = self._judge(group, self._keys[cell])
        return [action for action in actions.values() if action is not None]

    def _judge(self, group: GroupOutcome, key: str) -> Action | None:
        """Ask the gates. A cell's refusal is logged, an unknown cell's first answer, and every change."""
        answers = [gate.admit(group) for gate in self._gates]
        answer = next((answer for answer in answers if not answer.admitted), answers[0])
        verdict, last_verdict = "admitted" if answer.admitted else "refused", self._verdicts.get(key)
        if verdict != last_verdict and (last_verdict or verdict == "refused" or self._states[key] == "unknown"):
            self._note(group.step, f"refuse.{key}", last_verdict, verdict, answer.reason)
        self._verdicts[key] = verdict
        if answer.admitted:
            return None
        self.refused[key] += 1
        return Action("refuse", group.example, None, answer.reason)


class Policy(Checkpointable):
    """Composes controllers and monitors; turns counts of informative groups, and alarms, into actions.

    Args:
        options: the user's settings.
        controllers: of the stage, in order; each sees the coefficient that the one before it left.
        monitors: of the stage.
        note: writes a decision down.
    """

    STATE_FIELDS = ("lr_factor", "sent_lr_factor")

    def __init__(
        self,
        options: EngineOptions,
        controllers: Sequence[Controller] = (),
        monitors: Sequence[Monitor] = (),
        note: Note = lambda *_: None,
    ) -> None:
        self._options, self._controllers, self._monitors, self._note = options, controllers, monitors, note
        self.lr_factor = 1.0
        """Learning-rate factor of the current batch, under 1 where few groups are informative."""
        self.sent_lr_factor = 1.0
        """Learning-rate factor that the trainer last got."""

    def react(self, signals: Signals, groups: int = 0, informative: int = 0) -> list[Action]:
        """Skip or scale a step by its groups; then controllers, monitors, and a learning-rate action if its factor changed.

        Args:
            signals: of the step.
            groups: groups of the batch; 0 where they do not decide.
            informative: informative ones: admitted, with rewards that differ.
        """
        step, beta = signals.step, signals.beta
        actions, beta_reasons = list[Action](), list[str]()
        min_share, reason, self.lr_factor = self._options.min_informative_share, "", 1.0
        if informative < min_share * groups:
            reason = f"{informative} of {groups} groups are informative, fewer than {min_share:.0%}"
            if informative:
                self.lr_factor = informative / groups / min_share
            else:
                reason += ", so only momentum would move the weights"
                self._note(step, "skip_step", None, "step", reason)
                actions.append(Action("skip_step", "step", None, reason))
        for controller in self._controllers:
            for action in controller.propose(replace(signals, beta=beta)):
                if action.value is not None:
                    self._note(step, action.target, beta, action.value, action.because)
                    beta = action.value
                    beta_reasons.append(action.because)
        alarms = [alarm for monitor in self._monitors for alarm in monitor.inspect(signals)]
        for alarm in alarms:
            self._note(step, f"alarm.{alarm.monitor}", alarm.threshold, alarm.value, alarm.message)
        if beta != signals.beta:
            actions.append(Action("coefficient", "beta", beta, "; ".join(beta_reasons)))
        if self.lr_factor != self.sent_lr_factor:
            because = reason or "enough groups are informative again"
            self._note(step, "lr_factor", self.sent_lr_factor, self.lr_factor, because)
            self.sent_lr_factor = self.lr_factor
            actions.append(Action("lr_factor", "lr", self.lr_factor, because))
        if alarms and self._options.on_alarm == "stop":
            self._note(step, "stop", None, "run", alarms[0].message)
            actions.append(Action("stop", "run", None, alarms[0].message))
        return actions

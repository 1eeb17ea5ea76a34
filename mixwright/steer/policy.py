"""Policy of the engine: from a batch's evidence to actions, by gates, controllers, monitors and rules, in one place.

Gates are asked about each group (`GateRunner`); `Policy` asks controllers and monitors about the step, and decides what
follows from few informative groups and from alarms:

- **Few informative groups.** A refused group has zero advantage, but Adam's momentum still moves the weights, and the few
  groups left are rescaled to a full step. So in a batch where the share of groups that are admitted and carry signal is
  under `min_informative_share`, the learning rate is multiplied by their ratio until the next batch; without any the step
  is skipped.
  Only in stages that have a gate: a stage without one takes every step, as a trainer without steering does.
- **Alarm.** Each inspection with an alarm tightens once, at most `MAX_TIGHTENINGS` times: beta doubles where there is one,
  else the learning-rate factor halves. Each inspection of fresh canaries without an alarm undoes one tightening; where there
  are no canaries, `QUIET_STEPS` steps without an alarm undo one.
- **Measured** (the study `overhard`, over-hard data, points of greedy success under not training): uniform draws 50,
  refusing alone 36 (22 to 50), with `min_informative_share` 8 (3 to 13); a tighter beta on alarms 15 (6 to 22). Beside the
  selector, where levels are known, each of them changes nothing: contributing/evidence/controllers.md.
- **Log.** Batches with few informative groups are written down as one line per stretch, when `STRETCH_ENDS_AFTER` in a row
  had enough of them or training ends: first and last step, how many, how many were skipped, and the lowest factor of the
  others; `skip_step` where all were skipped. steps.jsonl has the factor of every step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mixwright.contracts import Controller, Gate, Monitor
from mixwright.records import Action, Alarm, Decision, EngineOptions, GroupOutcome, Signals
from mixwright.steer.checkpointable import Checkpointable

MAX_TIGHTENINGS = 4
"""Tightenings at most: a factor of 16."""
QUIET_STEPS = 40
"""Steps without an alarm that undo one tightening where no canaries are watched."""
STRETCH_ENDS_AFTER = 10
"""Batches in a row with enough informative groups, after which those with few before them are one line."""
Note = Callable[..., None]
"""Writes a decision down: (step, what, old, new, because[, cause])."""


class LowInformationStretch(NamedTuple):
    """Batches in a row with few informative groups, which are one line of the log."""

    first_step: int
    """Step of the first of them."""
    last_step: int
    """Step of the last one."""
    batches: int
    """How many they are."""
    skipped: int
    """How many of their steps were skipped."""
    lowest_factor: float
    """Lowest learning-rate factor of the others."""
    highest_factor: float
    """Highest one."""


class GateRunner(Checkpointable):
    """Asks the gates about each group; all must admit.

    Args:
        gates: of the stage; with none every group is admitted and nothing is written down.
        keys: `task@level` of each cell of the pool.
        states: state of each cell when the plan was made.
        note: writes a decision down.
    """

    STATE_FIELDS = ("_verdicts",)

    def __init__(self, gates: Sequence[Gate], keys: Sequence[str], states: Mapping[str, str], note: Note) -> None:
        self._gates, self._keys, self._states, self._note = gates, keys, states, note
        # per cell its last answer, groups refused, for how many groups the answer has held
        self._verdicts: dict[str, list[Any]] = {}

    def refusals(self, groups: Sequence[GroupOutcome], cells: Sequence[int]) -> list[Action]:
        """An action per example that is refused; `cells` are the numbers of the groups' cells.

        Refusals are carried out by example, so groups of one example are judged once: what the first one is told holds.
        """
        if not self._gates:
            return []
        first = {group.example: (group, cell) for group, cell in reversed(list(zip(groups, cells, strict=True)))}
        order = dict.fromkeys(group.example for group in groups)
        return [action for name in order if (action := self._judge(*first[name]))]

    def refused_count(self, key: str) -> int:
        """Groups of the cell `task@level` refused so far."""
        return self._verdicts[key][1] if key in self._verdicts else 0

    def _judge(self, group: GroupOutcome, cell: int) -> Action | None:
        """Ask the gates. A cell's refusal is logged, an unknown cell's first answer, and every change."""
        answers = [gate.admit(group) for gate in self._gates]
        answer = next((answer for answer in answers if not answer.admitted), answers[0])
        key, verdict = self._keys[cell], "admitted" if answer.admitted else "refused"
        last_verdict, refused, groups_held = self._verdicts.get(key, [None, 0, 0])
        if verdict != last_verdict and (last_verdict or verdict == "refused" or self._states[key] == "unknown"):
            groups_text = f"{groups_held} group" + ("s" if groups_held > 1 else "")
            since = f"; before, {last_verdict} for {groups_text}" if last_verdict else ""
            self._note(group.step, f"refuse.{key}", last_verdict, verdict, answer.reason + since, answer.cause)
        self._verdicts[key] = [verdict, refused + (not answer.admitted), groups_held + 1 if verdict == last_verdict else 1]
        return None if answer.admitted else Action("refuse", group.example, None, answer.reason)


class Policy:
    """Composes controllers and monitors; turns counts of informative groups, and alarms, into actions.

    Args:
        options: the user's settings.
        controllers: of the stage, in order; each sees the coefficient that the one before it left.
        monitors: of the stage.
        note: writes a decision down.
    """

    def __init__(
        self,
        options: EngineOptions,
        controllers: Sequence[Controller] = (),
        monitors: Sequence[Monitor] = (),
        note: Note = lambda *_: None,
    ) -> None:
        self._options, self._controllers, self._monitors, self._note = options, controllers, monitors, note
        self.controllers_lr_factor = 1.0
        """Learning-rate factor that controllers asked for."""
        self.batch_lr_factor = 1.0
        """Factor of the current batch, under 1 where few groups are informative."""
        self.lr_halvings = 0
        """How often the learning rate is halved because of alarms."""
        self.beta_doublings = 0
        """How often beta is doubled because of alarms."""
        self.is_alarmed = False
        """Whether the last inspection that tells had an alarm."""
        self.sent_lr_factor = 1.0
        """Learning-rate factor that the trainer last got."""
        self.logged_asked_lr_factor = 1.0
        """The `asked_lr_factor` that was last written to the log."""
        self.stretch: LowInformationStretch | None = None
        """Of the batches up to now; None where none is open."""
        self.calm = 0
        """Batches in a row with enough informative groups, up to now."""
        self.last_change_step = 0
        """Step of the last tightening or loosening."""
        self.had_canaries = False
        """Whether any inspection had canaries."""

    @property
    def lr_factor(self) -> float:
        """The learning-rate factor that should hold now."""
        return self.asked_lr_factor * self.batch_lr_factor

    @property
    def asked_lr_factor(self) -> float:
        """The part of `lr_factor` that alarms and controllers ask for now."""
        return self.controllers_lr_factor * 0.5**self.lr_halvings

    def scale_by_informative_share(self, step: int, informative: int, groups: int) -> tuple[str, Action | None]:
        """Scale or skip the step of this batch.

        Args:
            step: of the batch.
            informative: informative groups: admitted, with rewards that differ.
            groups: groups of the batch.

        Returns:
            The reason when the learning rate is scaled (else ""), and the action that skips the step, if any.
        """
        self.batch_lr_factor = 1.0
        if not groups or informative >= self._options.min_informative_share * groups:
            self.calm += 1
            return "", None
        self.calm = 0
        min_share = self._options.min_informative_share
        reason, factor = (
            f"{informative} of {groups} groups are informative, fewer than {min_share:.0%}",
            informative / groups / min_share,
        )
        stretch = self.stretch or LowInformationStretch(step, step, 0, 0, 1.0, 0.0)
        lowest, highest = stretch.lowest_factor, stretch.highest_factor
        if informative:
            lowest, highest = min(lowest, factor), max(highest, factor)
        skipped = stretch.skipped + (not informative)
        self.stretch = LowInformationStretch(stretch.first_step, step, stretch.batches + 1, skipped, lowest, highest)
        if not informative:
            return "", Action("skip_step", "step", None, f"{reason}, so only momentum would move the weights")
        self.batch_lr_factor = factor
        return reason, None

    def close_log_stretch(self) -> Decision | None:
        """The batches with few informative groups as one line, and none is open any more; None where none was."""
        if self.stretch is None:
            return None
        first_step, last_step, count, skipped, lowest, highest = self.stretch
        self.stretch = None
        batches_text = f"{count} batch" + ("es" if count > 1 else "")
        min_share = self._options.min_informative_share
        reason = (
            f"fewer than {min_share:.0%} of the groups are informative in {batches_text}, steps {first_step} to {last_step}"
        )
        if skipped < count:
            reason += f": learning rate times {lowest:.3g}" + (f" to {highest:.3g}" if highest > lowest else "")
        reason += f"; {skipped} skipped" if skipped else ""
        if skipped == count:  # the factor, which steps.jsonl has for each of these steps, stayed as it was
            return Decision(first_step, "skip_step", None, "step", reason, last_step)
        return Decision(first_step, "lr_factor", self.asked_lr_factor, self.asked_lr_factor * lowest, reason, last_step)

    def respond(self, alarms: Sequence[Alarm], signals: Signals, beta: float) -> tuple[float, str, Action | None]:
        """React to one inspection.

        Args:
            alarms: what the monitors raised.
            signals: of the step; without fresh canaries silence says nothing.
            beta: KL coefficient before.

        Returns:
            KL coefficient after it; why it or the learning-rate factor changed, empty when neither did; stop or restore.
        """
        has_canaries = bool(signals.canaries)
        self.had_canaries |= has_canaries
        if not alarms:
            if has_canaries:
                return self._relax(signals.step, beta, "canary success is back to its start, within error")
            if not self.had_canaries and signals.step - self.last_change_step >= QUIET_STEPS:
                return self._relax(signals.step, beta, f"{QUIET_STEPS} steps without an alarm")
            return beta, "", None
        self.is_alarmed = True
        self.last_change_step = signals.step
        reason = alarms[0].message
        if self._options.on_alarm == "stop":
            return beta, "", Action("stop", "run", None, reason)
        if self._options.on_alarm == "restore":
            return beta, "", Action("restore", "last checkpoint without alarm", None, reason)
        if self._options.on_alarm == "log" or self.lr_halvings + self.beta_doublings >= MAX_TIGHTENINGS:
            return beta, "", None
        if beta > 0:
            self.beta_doublings += 1
        else:
            self.lr_halvings += 1
        return beta * 2, reason, None

    def _relax(self, step: int, beta: float, reason: str) -> tuple[float, str, None]:
        """Undo one tightening."""
        self.is_alarmed = False
        if not self.beta_doublings and not self.lr_halvings:
            return beta, "", None
        self.last_change_step = step
        if self.beta_doublings:
            self.beta_doublings, beta = self.beta_doublings - 1, beta / 2
        else:
            self.lr_halvings -= 1
        return beta, f"{reason}: one doubling of beta or halving of the learning rate is undone", None

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        values = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        return values | {"stretch": list(self.stretch or ())}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        for name in self.state():
            setattr(self, name, state[name])
        self.stretch = LowInformationStretch(*state["stretch"]) if state["stretch"] else None

    def react(self, signals: Signals, scaled_because: str) -> list[Action]:
        """Controllers, then monitors, then one learning-rate action if its factor changed."""
        step, beta, reasons, beta_reasons = signals.step, signals.beta, [scaled_because], []
        measured_kl = [canary.kl_nats for canary in signals.canaries if canary.kl_nats is not None]
        kl_nats = signals.kl_nats if signals.kl_nats is not None or not measured_kl else float(np.mean(measured_kl))
        signals = replace(signals, kl_nats=kl_nats, lr_factor=self.controllers_lr_factor)
        actions: list[Action] = []
        for controller in self._controllers:
            for action in controller.propose(replace(signals, beta=beta)):
                if action.kind == "coefficient" and action.value is not None:
                    self._note(step, action.target, beta, action.value, action.because)
                    beta = action.value
                    beta_reasons.append(action.because)
                elif action.kind == "lr_factor" and action.value is not None:
                    self.controllers_lr_factor = action.value
                    reasons.append(action.because)
                else:
                    actions.append(action)
                    self._note(step, action.kind, None, action.target, action.because)
        alarms = [alarm for monitor in self._monitors for alarm in monitor.inspect(signals)]
        for alarm in alarms:
            self._note(step, f"alarm.{alarm.monitor}", alarm.threshold, alarm.value, alarm.message)
        new_beta, reason, final_action = self.respond(alarms, signals, beta)
        if new_beta != beta:
            self._note(step, "beta", beta, new_beta, reason)
            beta_reasons.append(reason)
        elif reason:
            reasons.append(reason)
        if new_beta != signals.beta:
            actions.append(Action("coefficient", "beta", new_beta, "; ".join(beta_reasons)))
        actions += self._change_rate(step, reasons)
        if final_action is not None:
            self._note(step, final_action.kind, None, final_action.target, final_action.because)
            actions.append(final_action)
        return actions

    def _change_rate(self, step: int, reasons: Sequence[str]) -> list[Action]:
        """The learning-rate factor where it changed; `reasons` begins with why few groups were informative, or "".

        What alarms and controllers ask for is written down here, each change; batches with few informative groups by the
        engine, as stretches.
        """
        if (asked_factor := self.asked_lr_factor) != self.logged_asked_lr_factor:
            self._note(step, "lr_factor", self.logged_asked_lr_factor, asked_factor, "; ".join(filter(None, reasons[1:])))
            self.logged_asked_lr_factor = asked_factor
        if self.lr_factor == self.sent_lr_factor:
            return []
        self.sent_lr_factor = self.lr_factor
        text = "; ".join(filter(None, reasons)) or "enough groups are informative again"
        return [Action("lr_factor", "lr", self.lr_factor, text)]

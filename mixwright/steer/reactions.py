"""Reactions to a step's signals: controllers, then monitors, then the policy, as one list of actions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mixwright.contracts import Controller, Monitor
from mixwright.records import Action, Signals
from mixwright.steer.admission import Note
from mixwright.steer.policy import Policy


class Reactions:
    """Composes controllers and monitors through the policy.

    Args:
        controllers: of the stage, in order; each sees the coefficient that the one before it left.
        monitors: of the stage.
        policy: what alarms lead to.
        note: writes a decision down.
    """

    def __init__(self, controllers: Sequence[Controller], monitors: Sequence[Monitor], policy: Policy, note: Note) -> None:
        self._controllers, self._monitors, self._policy, self._note = controllers, monitors, policy, note

    def react(self, signals: Signals, scaled_because: str) -> list[Action]:
        """Controllers, then monitors, then one learning-rate action if its factor changed."""
        known = [canary.kl_nats for canary in signals.canaries if canary.kl_nats is not None]
        kl_nats = signals.kl_nats if signals.kl_nats is not None or not known else float(np.mean(known))
        signals = replace(signals, kl_nats=kl_nats, lr_factor=self._policy.steady)
        actions: list[Action] = []
        beta, because, moved_because = signals.beta, [scaled_because], []
        for controller in self._controllers:
            for action in controller.propose(replace(signals, beta=beta)):
                if action.kind == "coefficient" and action.value is not None:
                    self._note(signals.step, action.target, beta, action.value, action.because)
                    beta = action.value
                    moved_because.append(action.because)
                elif action.kind == "lr_factor" and action.value is not None:
                    self._policy.steady = action.value
                    because.append(action.because)
                else:
                    actions.append(action)
                    self._note(signals.step, action.kind, None, action.target, action.because)
        alarms = [alarm for monitor in self._monitors for alarm in monitor.inspect(signals)]
        for alarm in alarms:
            self._note(signals.step, f"alarm.{alarm.monitor}", alarm.threshold, alarm.value, alarm.message)
        answer = self._policy.alarms(alarms, signals, beta)
        if answer.beta != beta:
            self._note(signals.step, "beta", beta, answer.beta, answer.reason)
            moved_because.append(answer.reason)
        elif answer.reason:
            because.append(answer.reason)
        if answer.beta != signals.beta:
            actions.append(Action("coefficient", "beta", answer.beta, "; ".join(moved_because)))
        actions += self._rate(signals.step, because)
        if answer.last is not None:
            self._note(signals.step, answer.last.kind, None, answer.last.target, answer.last.because)
            actions.append(answer.last)
        return actions

    def _rate(self, step: int, because: Sequence[str]) -> list[Action]:
        """The learning-rate factor where it changed; `because` begins with why few groups were informative, else "".

        What alarms and controllers ask for is written down here, each change; batches with few informative groups by the
        engine, as stretches.
        """
        policy, old = self._policy, self._policy.told
        if policy.asked != policy.lasting:
            self._note(step, "lr_factor", policy.lasting, policy.asked, "; ".join(filter(None, because[1:])))
            policy.lasting = policy.asked
        if policy.lr_factor == old:
            return []
        policy.told = policy.lr_factor
        text = "; ".join(filter(None, because)) or "enough groups are informative again"
        return [Action("lr_factor", "lr", policy.lr_factor, text)]

"""Turns of several training runs, one optimiser step at a time, and a meter of whose code the CPU time goes to.

Two runs one after the other differ by what else the machine does meanwhile, often by more than 1 %. Runs that take turns
see the same minutes. Each run trains in a thread of its own, and only the one whose turn it is moves, so that the CPU time
of the process between two hand-overs is that of one step: from the end of one optimiser step to the end of the next.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from transformers import TrainerCallback


class Meter:
    """CPU seconds by owner, exclusive: what an inner call of another owner takes is that owner's.

    Functions are replaced by timed ones; the clock is read twice per call, which is charged to those calls.

    Args:
        clock: seconds; None takes CPU time; on an accelerator one that waits until the device has done what it was told.
    """

    OTHERS = "trainer"

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self.clock = clock or (lambda: time.process_time())
        self.spent: defaultdict[str, float] = defaultdict(float)
        """CPU seconds so far, by owner."""
        self.owner = self.OTHERS
        self._since = self.clock()
        self._replaced: list[tuple[Any, str, Any]] = []

    def switch(self, owner: str) -> str:
        """Charge the time since the last switch to the owner until now; returns that owner."""
        now = self.clock()
        self.spent[self.owner] += now - self._since
        before, self.owner, self._since = self.owner, owner, now
        return before

    def own(self, owner: str, kinds: Iterable[type], leave: Iterable[str] = ()) -> None:
        """Charge methods that these classes define to `owner`, and those of other parents that they extend to the trainer.

        Args:
            owner: who.
            kinds: classes; generators, properties and static methods among their members are not timed.
            leave: methods that are not timed, because they last as long as the training.
        """
        kinds, leave = list(kinds), {"__init__", *leave}
        for kind in kinds:
            for name, function in list(vars(kind).items()):
                if name in leave or not inspect.isfunction(function) or inspect.isgeneratorfunction(function):
                    continue
                self._replace(kind, name, owner)
                for parent in kind.__mro__[1:]:
                    if parent not in kinds and parent is not object and inspect.isfunction(vars(parent).get(name)):
                        self._replace(parent, name, self.OTHERS)

    def _replace(self, kind: type, name: str, owner: str) -> None:
        if any(done[0] is kind and done[1] == name for done in self._replaced):
            return
        function = vars(kind)[name]

        @functools.wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            before = self.switch(owner)
            try:
                return function(*args, **kwargs)
            finally:
                self.switch(before)

        self._replaced.append((kind, name, function))
        setattr(kind, name, timed)

    def restore(self) -> None:
        """Put the plain functions back."""
        for kind, name, function in reversed(self._replaced):
            setattr(kind, name, function)
        self._replaced.clear()


class Turn(TrainerCallback):
    """Waits for its turn at the end of each optimiser step. Add it last, so that the step is over.

    Args:
        name: of the run.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.error: BaseException | None = None
        self._mine, self._others = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def start(self, train: Callable[[], Any]) -> None:
        """Begin; the run goes on when `step` is called."""

        def work() -> None:
            self._mine.acquire()
            try:
                train()
            except BaseException as error:
                self.error = error
            finally:
                self._others.release()

        self._thread = threading.Thread(target=work, name=self.name, daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Let it run to the end of its next optimiser step, or of the training. Raises what the training raised."""
        self._mine.release()
        self._others.acquire()
        if self.error is not None:
            raise self.error

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Hand over."""
        self._others.release()
        self._mine.acquire()


def take_turns(trainers: Mapping[str, Any], meter: Meter, *, warmup: int, steps: int) -> list[dict[str, Any]]:
    """Train all of them to `warmup + steps` optimiser steps, in turns; every order of turns comes up equally often.

    Args:
        trainers: by name; their `max_steps` is `warmup + steps`.
        meter: charged while they run.
        warmup: rounds before step 0; the very first holds what happens before training, too.
        steps: rounds from step 0 on.

    Returns:
        A row per run and step (negative while warming up): CPU seconds, in all and by owner.
    """
    turns = {name: Turn(name) for name in trainers}
    for name, trainer in trainers.items():
        trainer.add_callback(turns[name])
        turns[name].start(trainer.train)
    rows, orders = [], list(itertools.permutations(trainers))
    for number in range(warmup + steps):
        for name in orders[number % len(orders)]:
            meter.switch(meter.owner)
            before = dict(meter.spent)
            turns[name].step()
            meter.switch(meter.owner)
            spent = {owner: meter.spent[owner] - before.get(owner, 0.0) for owner in meter.spent}
            rows.append({"run": name, "step": number - warmup, "cpu": sum(spent.values()), **spent})
    for turn in turns.values():
        turn.step()
    return rows

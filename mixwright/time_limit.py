"""Time limit for code of the user's that may hang: graders and reward functions.

In the main thread two timers of the system interrupt it, one by the clock and one by this process's CPU time: code that sets
an alarm of its own (math-verify does) takes over the first and not the second. Python notices them between two of its
instructions and inside `re`, not inside other compiled code, and not where code sets and cancels an alarm, ignores or
blocks both signals, and then waits. In another thread, and where the system has no such timers, nothing can be interrupted;
there it is named and waited for.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

NAMED_AFTER_SECONDS = 60.0
"""Seconds after which what is still running is named, where its limit is longer."""
INTERRUPT_EVERY_SECONDS = 1.0
"""Seconds between two interrupts, for code that swallows the first."""


class TooSlow(BaseException):
    """The limit has passed. Not an `Exception`: code that takes every exception for a wrong answer must let it through."""


def call_with_timeout(seconds: float, function: Callable[[], T], report_slow: Callable[[], None] = lambda: None) -> T:
    """What `function` returns, if it does so in time.

    Args:
        seconds: the limit; 0 sets none, and names nothing.
        function: the user's code.
        report_slow: called once while it is still running after `NAMED_AFTER_SECONDS` seconds; where the limit is shorter,
            after the first interrupt that was swallowed, or after the limit where nothing can be interrupted.

    Raises:
        TooSlow: the limit has passed.
    """
    if seconds <= 0:
        return function()
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        with tell_when_slow(seconds, report_slow):
            return function()
    return _call_interruptibly(seconds, function, report_slow)


@contextlib.contextmanager
def tell_when_slow(seconds: float, report_slow: Callable[[], None]) -> Iterator[None]:
    """Call `report_slow` from another thread if the body takes longer than `NAMED_AFTER_SECONDS` or, where less, `seconds`.

    Args:
        seconds: 0 never calls it.
        report_slow: names what is running.
    """
    watchdog = threading.Timer(min(seconds, NAMED_AFTER_SECONDS), report_slow)
    watchdog.daemon = True
    if seconds > 0:
        watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _call_interruptibly(seconds: float, function: Callable[[], T], report_slow: Callable[[], None]) -> T:
    started_at, was_told, was_raised, is_over = time.monotonic(), False, False, False

    def tick(signal_number: int, frame: object) -> None:
        nonlocal was_told, was_raised
        seconds_passed = time.monotonic() - started_at
        if is_over:
            return
        if not was_told and (was_raised or seconds > seconds_passed >= NAMED_AFTER_SECONDS):
            was_told = True
            report_slow()
        if seconds_passed >= seconds:
            was_raised = True
            raise TooSlow

    with _timers_running(min(seconds, NAMED_AFTER_SECONDS) + 1e-3, tick):
        try:
            return function()
        finally:
            is_over = True  # a tick from here on interrupts nothing


@contextlib.contextmanager
def _timers_running(first_seconds: float, tick: Callable[[int, object], None]) -> Iterator[None]:
    """Both timers call `tick`; what others had set is put back afterwards, less the time that has passed."""
    signal_by_timer = {signal.ITIMER_REAL: signal.SIGALRM, signal.ITIMER_VIRTUAL: signal.SIGVTALRM}
    started_at = time.monotonic()
    handlers = {signal_number: signal.signal(signal_number, tick) for signal_number in signal_by_timer.values()}
    old_timers = {timer: signal.setitimer(timer, first_seconds, INTERRUPT_EVERY_SECONDS) for timer in signal_by_timer}
    try:
        yield
    finally:
        seconds_passed = time.monotonic() - started_at
        for timer in signal_by_timer:
            signal.setitimer(timer, 0)
        for signal_number, handler in handlers.items():
            signal.signal(signal_number, signal.SIG_DFL if handler is None else handler)
        for timer, (seconds_left, interval) in old_timers.items():
            if seconds_left:
                signal.setitimer(timer, max(seconds_left - seconds_passed, 1e-3), interval)

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


def call_with_timeout(seconds: float, call: Callable[[], T], tell: Callable[[], None] = lambda: None) -> T:
    """What `call` returns, if it does so in time.

    Args:
        seconds: the limit; 0 sets none, and names nothing.
        call: the user's code.
        tell: called once while it is still running after `NAMED_AFTER_SECONDS` seconds; where the limit is shorter, after
            the first interrupt that was swallowed, or after the limit where nothing can be interrupted.

    Raises:
        TooSlow: the limit has passed.
    """
    if seconds <= 0:
        return call()
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        with tell_when_slow(seconds, tell):
            return call()
    return _interrupted(seconds, call, tell)


@contextlib.contextmanager
def tell_when_slow(seconds: float, tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` from another thread if the body takes longer than `NAMED_AFTER_SECONDS`, or `seconds` where that is less.

    Args:
        seconds: 0 never calls it.
        tell: names what is running.
    """
    watchdog = threading.Timer(min(seconds, NAMED_AFTER_SECONDS), tell)
    watchdog.daemon = True
    if seconds > 0:
        watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()


def _interrupted(seconds: float, call: Callable[[], T], tell: Callable[[], None]) -> T:
    begun, told, raised, over = time.monotonic(), False, False, False

    def tick(number: int, frame: object) -> None:
        nonlocal told, raised
        passed = time.monotonic() - begun
        if over:
            return
        if not told and (raised or seconds > passed >= NAMED_AFTER_SECONDS):
            told = True
            tell()
        if passed >= seconds:
            raised = True
            raise TooSlow

    with _timers(min(seconds, NAMED_AFTER_SECONDS) + 1e-3, tick):
        try:
            return call()
        finally:
            over = True  # a tick from here on interrupts nothing


@contextlib.contextmanager
def _timers(first: float, tick: Callable[[int, object], None]) -> Iterator[None]:
    """Both timers call `tick`; what others had set is put back afterwards, less the time that has passed."""
    both = {signal.ITIMER_REAL: signal.SIGALRM, signal.ITIMER_VIRTUAL: signal.SIGVTALRM}
    begun = time.monotonic()
    handlers = {number: signal.signal(number, tick) for number in both.values()}
    before = {timer: signal.setitimer(timer, first, INTERRUPT_EVERY_SECONDS) for timer in both}
    try:
        yield
    finally:
        passed = time.monotonic() - begun
        for timer in both:
            signal.setitimer(timer, 0)
        for number, handler in handlers.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        for timer, (left, interval) in before.items():
            if left:
                signal.setitimer(timer, max(left - passed, 1e-3), interval)

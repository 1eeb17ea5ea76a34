"""Entry point of the program: an interrupt ends it without a traceback while it is still importing."""

from __future__ import annotations

import importlib
import signal


def start() -> None:
    """Import the program and run it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    program = importlib.import_module("mixwright.__main__")  # which imports this module
    signal.signal(signal.SIGINT, signal.default_int_handler)
    program.main()

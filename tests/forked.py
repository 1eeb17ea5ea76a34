"""Code run in a copy of this process: it shows what a process of its own would, without importing torch and TRL again."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ended:
    """How a copy ended."""

    code: int
    """As `subprocess` tells it: negative for a signal."""
    out: str
    err: str


def as_a_program() -> None:
    """What a new interpreter has and a process of tests has not: warnings that are none, outputs that are the system's."""
    logging.getLogger().handlers.clear()  # pytest's: with none, warnings go to standard error
    warnings.resetwarnings()
    warnings.simplefilter("ignore")
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False, buffering=1)  # noqa: SIM115
    sys.excepthook = sys.__excepthook__


def run(body: Callable[[], Any]) -> Ended:
    """Run `body` in a copy of this process, which ends as a script does: with an exit code, by an exception, or killed."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder) / "out", Path(folder) / "err"
        child = os.fork()
        if not child:
            _leave(body, out, err)
        _, status = os.waitpid(child, 0)
        said, told = (path.read_text(encoding="utf-8") if path.exists() else "" for path in (out, err))
        return Ended(os.waitstatus_to_exitcode(status), said, told)


def _leave(body: Callable[[], Any], out: Path, err: Path) -> None:
    code = 1
    try:
        for number, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
        as_a_program()
        body()
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next  # a script's traceback begins with the script
        try:
            sys.excepthook(type(error), error, trace)
        except BaseException:
            traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def script(path: Path, *arguments: str) -> Ended:
    """Run a file as `python FILE ARGUMENTS` does, in a copy of this process."""

    def body() -> None:
        sys.argv = [str(path), *arguments]
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})

    return run(body)


def lab(*words: str) -> Ended:
    """A command of the laboratory, in a copy of this process."""

    def body() -> None:
        from mixwright_lab.__main__ import main

        sys.argv = ["mixwright_lab", *words]
        sys.exit(main())

    return run(body)

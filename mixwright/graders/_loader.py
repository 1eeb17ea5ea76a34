"""Loader of graders by the name in a config: the catalogue's, or a function of the user's."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import math
import sys
from collections.abc import Callable, Mapping
from numbers import Complex, Real
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl

from mixwright import catalog
from mixwright.errors import InputError
from mixwright.graders._grader import Grader
from mixwright.records import Example
from mixwright.time_limit import TooSlow
from mixwright.tool_calls import read_value


class FunctionGrader(Grader):
    """The user's `function(completion, answer, **row) -> float`, its result checked.

    `row` holds id, task, level, prompt and the row's other columns.
    """

    reads_thoughts = True

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.name = name
        self.function = function

    def grade(self, example: Example, completion: str) -> float:
        """Its score. Raises InputError when it raises, or returns anything but a number in 0..1."""
        row = {key: value for key, value in example.extra.items() if key not in ("completion", "answer")}
        row |= {"id": example.id, "task": example.task, "level": example.level, "prompt": example.prompt}
        try:
            with contextlib.redirect_stdout(sys.stderr):  # results go to stdout, and nothing else
                score = self.function(completion, example.answer, **row)
        except (KeyboardInterrupt, GeneratorExit, MemoryError, TooSlow):
            raise
        except BaseException as error:
            expected = f"a score of example {example.id!r} from grader {self.name}"
            raise InputError(expected, _format_value(error), "Correct it.") from error
        is_not_real = isinstance(score, str | bytes) or (isinstance(score, Complex) and not isinstance(score, Real))
        try:
            number = math.nan if is_not_real else float(cast(Any, score))
        except Exception:  # whatever its own conversion raises
            number = math.nan
        if not 0 <= number <= 1:
            got = f"{type(score).__name__} {_format_value(score)}"
            expected = f"a number from 0 to 1 for example {example.id!r} from grader {self.name}"
            raise InputError(expected, got, "Correct the grader.")
        return number


def _format_value(value: Any) -> str:
    """What a value or an exception of the user's says of itself, bounded, where it can."""
    try:
        return f"{type(value).__name__}: {value}"[:160] if isinstance(value, BaseException) else repr(value)[:40]
    except Exception:
        return type(value).__name__


def code_digest(name: str) -> str:
    """SHA-256 of the file that a grader `package.module:function` stands in; empty for one of the catalogue."""
    stem = name.partition("?")[0]
    source_file = catalog.find_source(_split_name(stem)[0]) if ":" in stem else None
    return hashlib.sha256(source_file.read_bytes()).hexdigest() if source_file is not None and source_file.is_file() else ""


def load_grader(name: str, options: Mapping[str, Any] | None = None, *, never_import_from: Path | None = None) -> Grader:
    """The grader called `name`.

    Args:
        name: of the catalogue (`numeric`, `numeric?tolerance=0.01`) or `package.module:function`.
        options: keyword options, over those in the name.
        never_import_from: the corpus's folder; code inside it is never imported, unless the working folder is in it.

    Raises:
        InputError: unknown name or option, packages missing, or a function that cannot be imported.
    """
    stem, _, option_query = name.partition("?")
    if ":" in stem:
        return FunctionGrader(stem, import_function(stem, never_import_from))
    named_options = {key: read_value(value) for key, value in parse_qsl(option_query, keep_blank_values=True)}
    return catalog.create("graders", stem, named_options | dict(options or {}))


def import_function(name: str, never_import_from: Path | None) -> Callable[..., Any]:
    """The function that `package.module:function` names.

    Args:
        name: as a user wrote it; the working folder is searched, too, and its files can be named: `folder/file.py:function`.
        never_import_from: folder of data, which never brings code.

    Raises:
        InputError: no such module or function, or one in that folder.
    """
    module_name, attribute = _split_name(name)
    remedy = "Write package.module:function of an installed package or of a file in the working folder."
    if not all(part.isidentifier() for part in (*module_name.split("."), attribute)):
        raise InputError("package.module:function", repr(name), remedy)
    working_folder = str(Path.cwd())
    if working_folder not in sys.path:
        sys.path.append(working_folder)
    # some, as os.path, are in no folder of their package
    loaded_file = getattr(sys.modules.get(module_name), "__file__", None)
    source_file = catalog.find_source(module_name) or (Path(loaded_file) if loaded_file else None)
    if source_file is None:
        raise InputError(f"a module {module_name}", "none", remedy)
    forbidden_folder = never_import_from.resolve() if never_import_from is not None else None
    if (
        forbidden_folder
        and source_file.resolve().is_relative_to(forbidden_folder)
        and not Path.cwd().resolve().is_relative_to(forbidden_folder)
    ):
        raise InputError("a grader outside the corpus's folder", str(source_file), "Move it: data never brings code.")
    try:
        with contextlib.redirect_stdout(sys.stderr):
            function = getattr(importlib.import_module(module_name), attribute, None)
    except (Exception, SystemExit) as error:
        raise InputError(f"a module {module_name} that imports", _format_value(error), remedy) from error
    if not callable(function):
        raise InputError(f"a function {attribute} in {module_name}", repr(function)[:40], remedy)
    return function


def _split_name(name: str) -> tuple[str, str]:
    """Return module and function of `package.module:function`, where a file in the working folder can be named as one."""
    module_name, _, attribute = name.partition(":")
    if module_name.endswith(".py") and Path(module_name).is_file():
        module_name = ".".join(Path(module_name).with_suffix("").parts)
    return module_name, attribute

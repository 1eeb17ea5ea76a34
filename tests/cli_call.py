"""What tests of the command line share: the type of the fixture `call` (conftest.py), and rows to read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from mixwright.__main__ import app

Call = Callable[..., tuple[int, str, str]]
"""The arguments of a command to its exit code, stdout and stderr."""


def load_commands() -> dict[str, Any]:
    """Every verb and its command."""
    group: Any = typer.main.get_command(app)
    return {name: group.get_command(None, name) for name in group.list_commands(None)}


def help_of(verb: str, parameter: str) -> str:
    """The help text of an argument or option."""
    return next(one.help for one in load_commands()[verb].params if one.name == parameter)


def write(name: str, rows: list[dict[str, Any]]) -> str:
    Path(name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return name


def sums(count: int = 40, start: int = 0) -> list[dict[str, Any]]:
    return [{"task": "sum", "prompt": f"{n}+1=", "answer": str(n + 1)} for n in range(start, start + count)]

"""A command is made from a verb and its `show`: flags, help, values and exit code."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from mixwright.verbs.command import join, read_parameters


@dataclass(frozen=True)
class Size:
    """A record of options."""

    width: Annotated[int | None, typer.Option(min=1)] = None
    """Columns."""
    held_out: Annotated[str | None, typer.Option("--eval")] = None
    """Files."""
    unseen: str = "no option"


def cut(source: str | Path | dict[str, Any], *, size: Size, keep: float = 0.5) -> list[Any]:
    """Cut something. In parts.

    Args:
        source: File to cut.
        size: Size of a part.
        keep: Share to keep,
            0 to 1.

    Raises:
        ValueError: never.
    """
    return [source, size, keep]


def show(found: list[Any], *, keep: float, loud: bool = False) -> int:
    """Print the parts."""
    found += [keep, loud]
    return 3 if loud else 0


def test_flags_are_those_of_the_verb_of_what_shows_it_and_of_the_record() -> None:
    flags = inspect.signature(join(cut, show)).parameters
    assert list(flags) == ["source", "keep", "loud", "width", "held_out", "as_json"]
    kinds = {name: flag.annotation.__origin__ for name, flag in flags.items()}
    own = {"source": str, "keep": float, "loud": bool, "width": int | None, "held_out": list[str] | None}
    assert kinds == own | {"as_json": bool}
    helps = {name: flag.annotation.__metadata__[0].help for name, flag in flags.items()}
    texts = {"source": "File to cut.", "keep": "Share to keep, 0 to 1.", "width": "Columns.", "held_out": "Files."}
    assert helps == {**texts, "loud": None, "as_json": "Print JSON and nothing else on stdout."}


def test_values_reach_the_verb_and_what_shows_it_and_a_code_is_an_exit() -> None:
    seen: list[Any] = []

    def showing(found: list[Any], *, keep: float, loud: bool = False) -> int:
        seen.append(found)
        return show(found, keep=keep, loud=loud)

    command = join(cut, showing)
    command(source="a", keep=0.1, loud=False, width=2, held_out=["x", "y"])
    assert seen[0] == ["a", Size(2, "x\ny"), 0.1, 0.1, False]
    with pytest.raises(typer.Exit) as left:
        command(source="a", keep=0.1, loud=True, width=None, held_out=None)
    assert (left.value.exit_code, seen[1][1]) == (3, Size())


def test_a_docstring_without_the_section_has_no_texts() -> None:
    assert read_parameters("Cut something.") == read_parameters(None) == {}

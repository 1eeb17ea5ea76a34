"""Verb `init`: example files to try the commands on."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from mixwright.run.folder import check_own_folder, write_text
from mixwright.verbs import output

EXAMPLE = Path(__file__).parent.parent / "example"
"""Files that ship with the package."""


def init(folder: Annotated[Path, typer.Argument()] = Path("example")) -> list[Path]:
    """Write example files to try the commands on. Rows, test items, requests, two logs, rewards, rollouts, and a README.

    Examples:
        >>> "train.jsonl" in [path.name for path in init()]
        True

    Args:
        folder: Folder, new, empty or with these files.

    Raises:
        InputError: the folder holds something else than these files.
    """
    files = {folder / source.name: source.read_text(encoding="utf-8") for source in sorted(EXAMPLE.iterdir())}
    if not all(path.is_file() and path.read_text(encoding="utf-8") == text for path, text in files.items()):
        check_own_folder(folder, option="folder")
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            write_text(path, text)
    return list(files)


def show(found: Sequence[Path], *, folder: Path) -> None:
    """Print the files, and a command to try."""
    for path in found:
        output.out(str(path))
    logs = [str(folder / f"{name}.jsonl") for name in ("before", "tuned")]
    output.out(f"\nNext: {shlex.join(['mixwright', 'verdict', *logs])}")

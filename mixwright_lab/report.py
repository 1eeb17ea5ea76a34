"""Report of the laboratory: its page lab.html and its README.md, written from the kept results."""

from __future__ import annotations

from pathlib import Path

from mixwright.errors import InputError
from mixwright.run.folder import write_text
from mixwright_lab.cards import collect, unknown
from mixwright_lab.page import html
from mixwright_lab.text_page import lab, marks

HOME = Path(__file__).parent
PAGE, TEXT = "lab.html", "README.md"


def write(results: Path, out: Path | None = None) -> list[Path]:
    """Write the page and the text; the hand-written part of the text is kept.

    Args:
        results: folder of results.
        out: folder to write to; None is the laboratory's own in a clone of the repository.

    Raises:
        InputError: no folder of results, a result or text that cannot be read, a text without its markers; nothing is
            written then.
    """
    folder = out or HOME
    if out is None and not (HOME / TEXT).is_file():
        raise InputError("a clone of the repository", f"no {TEXT} in the package", "Name a folder: --out DIR.")
    if not results.is_dir():
        raise InputError("a folder of results", f"none at {results}", "Correct --results, or run a finding first.")
    text = _text(folder)
    lab(text, ())  # refused before all results are read
    cards = collect(results)
    made = {folder / PAGE: html(cards, unknown(results)), folder / TEXT: lab(text, cards)}
    for path, text in made.items():
        write_text(path, text)
    return list(made)


def _text(folder: Path) -> str:
    """Return the text of that folder, else that of the repository, else one without words of our own."""
    for path in (folder / TEXT, HOME / TEXT):
        if path.is_file():
            return _read(path)
    return "\n\n".join(("# Laboratory", "\n".join(marks("words")), "\n".join(marks("findings")))) + "\n"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError("text in UTF-8", str(error), "Correct the file; nothing was written.", file=path) from None

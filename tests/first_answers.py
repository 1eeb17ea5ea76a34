"""First answers of a folder of answers, as a verdict reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixwright.run.folder import RunFolder
from mixwright.verdict.rules.evidence import Evidence


def read_first_answers(folder: Path) -> list[dict[str, Any]]:
    """Return a row of each side and item, with `when`."""
    return Evidence(RunFolder(folder)).read_first_answers(folder)

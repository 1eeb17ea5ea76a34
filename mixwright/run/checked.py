"""A run whose settings and data were checked: what its stages work on, and trust."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.run.folder import RunFolder


@dataclass(frozen=True)
class CheckedRun:
    """One run, as `validate_run` of `run/opening.py` returns it: no stage looks at settings or rows for mistakes again."""

    config: RunConfig
    """The settings."""
    folder: RunFolder
    """The run folder."""
    corpus: Corpus
    """Rows of all splits; those to rehearse as they were read, or as they are trained on once they were made."""
    relative_to: Path = Path()
    """Folder that relative paths in the settings start from."""
    holds_rows: bool = True
    """Whether the folder holds these rows already."""
    changed_sections: frozenset[str] = frozenset()
    """Sections of the settings that differ from those that the folder was begun with."""

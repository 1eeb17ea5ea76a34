"""Stage that runs every catalogued check over one corpus, errors first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mixwright.catalog import create, listing
from mixwright.corpus import Corpus
from mixwright.records import SEVERITIES, Observation
from mixwright.run.folder import RunFolder, write_json

MAX_CHARACTERS_PER_PART = 200
"""Characters of one part of a line."""
LEAK_CHECK = "contamination"
"""Check that also looks for held-out items among the rows to rehearse."""
MAX_COMPLAINT_LINES = 200
"""Lines about the data; what is beyond is counted."""


def run_audit(
    corpus: Corpus, names: Sequence[str] | None = None, options: Mapping[str, dict[str, Any]] | None = None
) -> list[Observation]:
    """What the checks see in `corpus`: errors, then warnings, then infos.

    With all of them also what was done with its columns when it was read, as infos of the name `columns`.

    Args:
        corpus: what is looked at.
        names: of checks; None for all.
        options: of a check, by its name.

    Raises:
        InputError: unknown check (with the nearest names), or option of it.
    """
    all_names = listing("checks") if names is None else names
    checks = {name: create("checks", name, (options or {}).get(name)) for name in all_names}
    own_corpus = corpus.without_rehearsal()
    observations = [
        Observation("columns", None, "info", 1, 1, f"{note}.", "") for note in (corpus.notes if names is None else ())
    ]
    for name, check in checks.items():
        observations += check.check(corpus if name == LEAK_CHECK else own_corpus)
    return sorted(observations, key=lambda observation: SEVERITIES.index(observation.severity))


def audit_run_folder(corpus: Corpus, folder: RunFolder) -> list[Observation]:
    """What the checks see in the corpus of a run; writes audit.json."""
    observations = run_audit(corpus)
    write_json(folder.audit, observations)
    return observations


def complaints(observations: Sequence[Observation]) -> list[str]:
    """One line for each thing that makes the data unfit, with its remedy; each part at most `MAX_CHARACTERS_PER_PART`
    characters.

    After `MAX_COMPLAINT_LINES` lines one that counts the others.
    """
    lines = []
    for error in (observation for observation in observations if observation.severity == "error"):
        task, message, remedy = (
            text if len(text) <= MAX_CHARACTERS_PER_PART else text[: MAX_CHARACTERS_PER_PART - 3] + "..."
            for text in (error.task or "*", error.message, error.remedy)
        )
        lines.append(f"  error in the data ({task}): {message} {remedy}")
    unlisted = len(lines) - MAX_COMPLAINT_LINES
    return lines[:MAX_COMPLAINT_LINES] + ([f"  {unlisted:,} more errors in the data: audit.json"] if unlisted > 0 else [])

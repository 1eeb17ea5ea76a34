"""Stage that runs every catalogued check over one corpus, errors first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixwright.catalog import create, listing
from mixwright.records import Observation
from mixwright.runs import RunFolder, write_json

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

MOST_CHARACTERS_PER_PART = 200
"""Characters of one part of a line."""
LEAK_CHECK = "contamination"
"""Check that also looks for held-out items among the rows to rehearse."""
MOST_COMPLAINT_LINES = 200
"""Lines about the data; what is beyond is counted."""
_SEVERITY_RANK = {"error": 0, "warning": 1, "info": 2}


def run_audit(corpus: Corpus, names: Sequence[str] | None = None) -> list[Observation]:
    """What the checks called `names` (all when None) see in `corpus`: errors, then warnings, then infos.

    With all of them also what was done with its columns when it was read, as infos of the name `columns`.

    Raises:
        InputError: unknown check (with the nearest names).
    """
    checks = {name: create("checks", name) for name in (listing("checks") if names is None else names)}
    own = corpus.without_rehearsal()
    noted = [Observation("columns", None, "info", 1, 1, f"{note}.", "") for note in (corpus.notes if names is None else ())]
    seen = [
        *noted,
        *(
            observation
            for name, check in checks.items()
            for observation in check.check(corpus if name == LEAK_CHECK else own)
        ),
    ]
    return sorted(seen, key=lambda observation: _SEVERITY_RANK[observation.severity])


def audit_run_folder(corpus: Corpus, folder: RunFolder) -> list[Observation]:
    """What the checks see in the corpus of a run; writes audit.json."""
    observations = run_audit(corpus)
    write_json(folder.audit, observations)
    return observations


def complaints(observations: Sequence[Observation]) -> list[str]:
    """One line for each thing that makes the data unfit, with its remedy; each part at most `MOST_CHARACTERS_PER_PART`
    characters.

    After `MOST_COMPLAINT_LINES` lines one that counts the others.
    """
    found = [(o.task or "*", o.message, o.remedy) for o in observations if o.severity == "error"]
    shown = (
        [part if len(part) <= MOST_CHARACTERS_PER_PART else part[: MOST_CHARACTERS_PER_PART - 3] + "..." for part in parts]
        for parts in found
    )
    lines = [f"  error in the data ({task}): {message} {remedy}" for task, message, remedy in shown]
    rest = (
        [f"  {len(lines) - MOST_COMPLAINT_LINES:,} more errors in the data: audit.json"]
        if len(lines) > MOST_COMPLAINT_LINES
        else []
    )
    return lines[:MOST_COMPLAINT_LINES] + rest

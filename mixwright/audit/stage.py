"""Stage that runs the checks over one corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mixwright.audit.rows import max_listed
from mixwright.catalog import create, list_defaults
from mixwright.corpus import Corpus
from mixwright.corpus.columns import LEFT_OUT
from mixwright.records import SEVERITIES, Observation
from mixwright.run.folder import RunFolder, write_json

MAX_CHARACTERS = 400
"""Characters of the first error in a warning."""
LEAK_CHECK = "contamination"
"""Check that also looks for held-out items among the rows to rehearse."""


def run_audit(
    corpus: Corpus,
    names: Sequence[str] | None = None,
    options: Mapping[str, dict[str, Any]] | None = None,
    *,
    whole: bool = False,
) -> list[Observation]:
    """Run checks over `corpus`; returns errors, then warnings, then infos.

    All checks together also report how its columns were read, as infos named `columns`.

    Args:
        corpus: rows to check.
        names: of checks; None for all that run by default.
        options: of a check, by its name.
        whole: whether every row is read and listed, as for files (`Check.whole`).

    Raises:
        InputError: unknown check (with the nearest names), or option of it.
    """
    all_names = list_defaults("checks") if names is None else names
    checks = {name: create("checks", name, (options or {}).get(name)) for name in all_names}
    own_corpus = corpus.without_rehearsal()
    observations = [_observe_note(note) for note in (corpus.notes if names is None else ())]
    for name, check in checks.items():
        check.whole = whole
        observations += check.check(corpus if name == LEAK_CHECK else own_corpus)
    listed = [_list_first(observation, max_listed(whole=whole)) for observation in observations]
    return sorted(listed, key=lambda observation: SEVERITIES.index(observation.severity))


def _observe_note(note: str) -> Observation:
    if LEFT_OUT not in note:
        return Observation("columns", None, "info", 1, 1, f"{note}.", "")
    remedy = "Nothing below was checked on them, and `plan` trains on none. Correct the column if they are to be learned."
    return Observation("columns", None, "warning", 1, 1, f"{note}.", remedy)


def _list_first(observation: Observation, most: int) -> Observation:
    """Return the observation with the first of its evidence, and a note where there is more."""
    if len(observation.evidence) <= most:
        return observation
    message = f"{observation.message} Listed are the first {most:,} pairs."
    return replace(observation, message=message, evidence=observation.evidence[:most])


def audit_run_folder(corpus: Corpus, folder: RunFolder) -> list[Observation]:
    """Run all checks over the corpus of a run; writes audit.json."""
    observations = run_audit(corpus)
    write_json(folder.audit, observations)
    return observations


def complaints(observations: Sequence[Observation]) -> list[str]:
    """Return a warning that counts the errors in the data and names the first; empty without errors."""
    errors = [observation for observation in observations if observation.severity == "error"]
    if not errors:
        return []
    first = f"{errors[0].task or 'all tasks'}: {errors[0].message} {errors[0].remedy}"
    return [f"warning: {len(errors):,} errors in the data (audit.json); the first: {first[:MAX_CHARACTERS]}"]

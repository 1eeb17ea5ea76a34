"""Stage that runs every catalogued check over one corpus, errors first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mixwright.catalog import create, listing
from mixwright.records import Observation

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

_FIRST = {"error": 0, "warning": 1, "info": 2}


def run_audit(corpus: Corpus, names: Sequence[str] | None = None) -> list[Observation]:
    """What the checks called `names` (all when None) see in `corpus`: errors, then warnings, then infos.

    Raises:
        InputError: unknown check (with the nearest names).
    """
    checks = [create("checks", name) for name in (listing("checks") if names is None else names)]
    seen = [observation for check in checks for observation in check.check(corpus)]
    return sorted(seen, key=lambda observation: _FIRST[observation.severity])

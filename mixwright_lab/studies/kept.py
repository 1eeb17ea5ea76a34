"""Finished parts of a study, kept by the code that made them, so that one that was interrupted goes on."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mixwright.runs import write_json
from mixwright_lab.conditions import conditions

CACHE_FOLDER = Path(tempfile.gettempdir()) / "mixwright-cases"
"""Remove the folder to make everything anew."""


def load_or_make(code: Path, key: str, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
    """What `make` gives, with the commit that it ran on; or as it was kept.

    Args:
        code: file whose content decides what is made.
        key: which part it is.
        make: makes a part, JSON values.
    """
    digest = hashlib.sha256(code.read_bytes() + key.encode()).hexdigest()[:24]
    path = CACHE_FOLDER / f"{digest}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, dict(make()) | {"commit": conditions()["commit"]})
    return json.loads(path.read_text(encoding="utf-8"))

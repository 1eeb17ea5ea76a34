"""Examples in docstrings come out as they say; those of the verbs need files, and are run in `test_api.py`."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "mixwright").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8") and path.parent.name != "verbs"
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_come_out(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert (found.failed, found.attempted > 0) == (0, True)

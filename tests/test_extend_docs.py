"""The selector of docs/python.md is complete: it keeps the promises of its kind, and draws as the page says."""

import importlib
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from plugin_promises import check_selector
from project_files import ROOT


def test_the_selector_of_the_page_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    _, _, section = page.partition("## A selector, whole")
    (tmp_path / "in_turn_of_docs.py").write_text(re.findall(r"```python\n(.*?)```", section, re.DOTALL)[0], encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    found = importlib.import_module("in_turn_of_docs")
    check_selector(found.InTurn)
    ledger = SimpleNamespace(task_members=lambda task: np.array([[4, 5], [7, 8, 9]][task]))
    selector = found.InTurn()
    selector.begin(SimpleNamespace(ledger=ledger, pool=SimpleNamespace(tasks=("a", "b"))))
    assert selector.pick(np.array([0, 1, 0, 0, 1]), np.random.default_rng(0)).tolist() == [4, 7, 5, 4, 8]

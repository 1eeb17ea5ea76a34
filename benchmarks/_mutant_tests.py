"""Plugin for pytest under coverage that tells `benchmarks.mutants` which tests run which lines.

Each test is a context of its own. What a fixture of a whole module or session runs is charged to all tests of the file, and
what is run at import to none: it is for whoever reads the map to decide who tests that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

FILE = "::file"
"""After the name of a test file: the context of what its wide fixtures run."""
_spent: dict[str, float] = {}
_failed: set[str] = set()
_now = ""


def _switch(name: str) -> None:
    running = import_module("coverage").Coverage.current()
    if running is not None:
        running.switch_context(name)


def _cpu_seconds() -> float:
    """CPU time until now, workers that have ended included."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """A context and a clock for each test."""
    global _now
    _now, start = item.nodeid, _cpu_seconds()
    _switch(_now)
    result = yield
    _switch("")
    _spent[item.nodeid] = _cpu_seconds() - start
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, Any, Any]:
    """Wide fixtures are run for all tests of the file."""
    if fixturedef.scope == "function":
        return (yield)
    _switch(_now.partition("::")[0] + FILE)
    try:
        return (yield)
    finally:
        _switch(_now)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Tests that fail or are skipped unmutated tell nothing."""
    if report.outcome != "passed":
        _failed.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Seconds of CPU time of each test that passed."""
    passed = {name: spent for name, spent in _spent.items() if name not in _failed}
    Path(os.environ["MUTANT_TESTS"]).write_text(json.dumps(passed), encoding="utf-8")

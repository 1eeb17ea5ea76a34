"""Every plug-in of the catalogue keeps the promises of its kind: a file dropped into a folder is tested that day."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import plugin_promises
import plugin_samples as samples
import promises
import pytest

from mixwright.catalog import KIND_BY_NAME, create, listing, load
from mixwright.contracts import Selector
from mixwright.errors import InputError

CHECKS = vars(plugin_promises) | vars(promises)
EVERY = [
    pytest.param(kind, name, id=f"{kind}.{name}", marks=[pytest.mark.gym] if "reasoning_gym" in entry.needs else [])
    for kind in KIND_BY_NAME
    for name, entry in listing(kind).items()
]
SHORT = {"steps": 8, "runs": 2, "items": 8, "max_new_tokens": 8, "least_items": 2}
"""Options of short trainings and answers: what is promised of them does not depend on their length."""


@pytest.fixture(scope="session")
def learner() -> Any:
    from mixwright.config import ModelConfig
    from mixwright_extras.tiny.model import build_tiny

    texts = [f"{example.prompt} {example.answer}" for example in samples.corpus()]
    return build_tiny(texts, ModelConfig(width=16, depth=1, heads=2, vocabulary=300), seed=0)


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_it_keeps_its_promises(
    kind: str, name: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = getattr(load(kind, name).__init__, "__kwdefaults__", None) or {}
    for option in SHORT.keys() & defaults:
        monkeypatch.setitem(defaults, option, SHORT[option])
    check = CHECKS[f"check_{kind.removesuffix('s')}"]
    needs = {"learner": lambda: request.getfixturevalue("learner"), "place": lambda: tmp_path}
    check(load(kind, name), **{need: give() for need, give in needs.items() if need in inspect.signature(check).parameters})


def test_every_kind_has_a_check() -> None:
    assert all(f"check_{kind.removesuffix('s')}" in CHECKS for kind in KIND_BY_NAME)


@pytest.mark.parametrize(("kind", "name"), EVERY)
def test_an_unknown_option_is_refused_with_the_known_ones(kind: str, name: str) -> None:
    with pytest.raises(InputError, match="no_such_option"):
        create(kind, name, {"no_such_option": 1})


class Careless(Selector):
    """A selector that draws from the global generator and forgets what it did."""

    def __init__(self, *, fault: str = "global") -> None:
        self.fault, self.count = fault, 0

    def begin(self, scene: Any) -> None:
        """Keep the scene."""
        self.scene = scene

    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Pick in one of the wrong ways."""
        self.count += 1
        if self.fault == "other task":
            tasks = (tasks + 1) % 3
        if self.fault == "writes":
            self.scene.ledger.mark_drawn(np.array([0]))
        place = {"global": int(np.random.randint(1000)), "forgets": self.count}.get(self.fault, 0)
        members = [self.scene.ledger.task_members(task) for task in tasks]
        return np.array([items[place % len(items)] for items in members])


@pytest.mark.parametrize(
    ("fault", "promise"),
    [
        ("global", "same state|rng handed in|continues exactly"),
        ("forgets", "continues exactly"),
        ("writes", "only read"),
        ("other task", "the task that was asked for"),
    ],
)
def test_a_careless_selector_is_caught(fault: str, promise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Careless.__init__, "__kwdefaults__", {"fault": fault})
    monkeypatch.setattr(inspect.getmodule(Careless), "__doc__", "Wrong.\n\nSource: x\nUnit: x\nCost: x\nBlind spot: x")
    with pytest.raises(AssertionError, match=promise):
        plugin_promises.check_selector(Careless)


def test_a_missing_docstring_line_is_caught() -> None:
    with pytest.raises(AssertionError, match="Source:"):
        plugin_promises.check_selector(Careless)

"""Pytest plugin for `trl_own.py`: our classes in the place of TRL's, stand-ins in the place of the hub.

MIXWRIGHT_TRL_OWN is `trl` (nothing replaced), `ours` (steering=None) or `steered` (steering on where a test says nothing).
"""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pytest
import torch
import trl
import trl_own_hub as hub
from trl.trainer.base_config import _BaseConfig

MODE = os.environ["MIXWRIGHT_TRL_OWN"]
BUILT = {"count": 0}
FILES = ("testing_utils.py", "test_sft_trainer.py", "test_dpo_trainer.py", "test_grpo_trainer.py")
OFFLINE = re.compile(
    r"couldn't connect|cannot find the requested files|offline|LocalEntryNotFound|is not a local folder", re.I
)
REAL_IDS = "answers are written as token ids of the real tokenizer"
NEEDS = {
    "test_eval_packing": "counts packed rows of the real data",
    "test_only_train_packing": "counts packed rows of the real data",
    "test_prepare_input_called_with_correct_data": "compares the real data's text",
    "test_train_with_mask_truncated_completions": REAL_IDS,
    "test_train_with_mask_truncated_completions_all_masked": "wants a vocabulary in which no end is ever drawn",
    "test_train_with_multiple_environments": REAL_IDS,
    "test_train_with_environment_factory": REAL_IDS,
    "test_train_with_environment_owned_reward": REAL_IDS,
    "test_train_with_environment_owned_data": REAL_IDS,
    "test_train_with_malformed_tool_calls": REAL_IDS,
    "test_train_with_tools": REAL_IDS,
}
"""Tests whose expectations no stand-in can meet; they are skipped in every mode."""


def _replace() -> None:
    import mixwright
    from mixwright import SteeringConfig

    for name in ("SFTTrainer", "DPOTrainer", "GRPOTrainer"):
        parent: Any = getattr(mixwright, f"Steered{name}")

        def start(self: Any, *args: Any, parent: Any = parent, **kwargs: Any) -> None:
            BUILT["count"] += 1
            given = {} if MODE == "ours" else {"steering": SteeringConfig(columns={"task": ""})}
            parent.__init__(self, *args, **(given | kwargs))

        # Its own name: TRL writes it into model cards and looks tests' patches up by it.
        ours = type(name, (parent,), {"__init__": start, "__doc__": parent.__doc__})
        setattr(trl, name, ours)


def _on_cpu() -> None:
    """TRL's configurations ask for bf16 and refuse a machine without a GPU unless they are told that the CPU is meant."""
    theirs = _BaseConfig.__post_init__

    def prepared(self: Any) -> None:
        self.use_cpu = True
        theirs(self)

    _BaseConfig.__post_init__ = prepared


def _stand_in(name: str) -> Any:
    def missing(*args: Any, **kwargs: Any) -> bool:
        if not name.startswith("is_"):
            pytest.skip(f"the installed TRL has no {name}")
        return False

    return missing


def _fill_in(folder: Path) -> None:
    """Names that the tests import and another version of TRL lacks, so that the other tests of a file can be run."""
    for path in map(folder.joinpath, FILES):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").split(".")[0] == "trl":
                module = importlib.import_module(str(node.module))
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        setattr(module, alias.name, _stand_in(alias.name))


_fill_in(Path.cwd() / "tests")
datasets.load_dataset = hub.load_dataset
if not torch.cuda.is_available():
    _on_cpu()
if MODE != "trl":
    _replace()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        reason = NEEDS.get(getattr(item, "originalname", item.name))
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def lazy_shared_datadir(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the folder `data` beside the test; pytest-datadir copies its files when they are asked for."""
    return Path(shutil.copytree(request.path.parent / "data", tmp_path / "data"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """What needs a file of the hub that has no stand-in is skipped, and what steering refuses is told apart."""
    outcome: Any = yield
    if outcome.excinfo is None:
        return
    kind, error, _ = outcome.excinfo
    chain, text = error, ""
    while chain is not None:
        text += f"{type(chain).__name__}: {chain}\n"
        chain = chain.__cause__ or chain.__context__
    if OFFLINE.search(text):
        wanted = re.search(r"[\w-]+/[\w.-]+(?=['\" ]|$)", text)
        outcome.force_exception(pytest.skip.Exception(f"no stand-in for {wanted.group() if wanted else 'a hub file'}"))
    elif MODE == "steered" and kind.__name__ == "InputError":
        outcome.force_exception(pytest.skip.Exception(f"refused under steering: {error}"))


def pytest_sessionfinish() -> None:
    folder = Path(os.environ["MIXWRIGHT_TRL_OWN_OUT"])
    (folder / f"built-{os.getpid()}").write_text(str(BUILT["count"]))

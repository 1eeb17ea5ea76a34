"""Every inner name of TRL and transformers that the trainers touch is checked at start, and a missing one is said."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from trainers_tiny import make, model, rows, sft_config, tokenizer
from trl import GRPOTrainer, __version__

import mixwright
from mixwright import SteeredGRPOTrainer, SteeredSFTTrainer
from mixwright.errors import InputError
from mixwright.trainers.checks.compatibility import REQUIRED_ATTRIBUTES, REQUIRED_METHODS

pytestmark = pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
FOLDER = Path(mixwright.__file__).parent / "trainers"
# Documented parts of transformers' Trainer, and of TRL's sampler helper (whose order the start-up self-test compares).
PUBLIC = {"accelerator", "add_callback", "args", "data_collator", "model", "pop_callback", "processing_class", "state"}
PUBLIC |= {"train", "train_dataset", "log", "compute_loss", "num_samples", "batch_size", "mini_repeat_count", "repeat_count"}
FALLBACK = {"chat_template", "eos_token_ids"}  # read with a default


def trees() -> Iterator[ast.AST]:
    for path in sorted(FOLDER.rglob("*.py")):
        yield ast.parse(path.read_text(encoding="utf-8"))


def ours() -> set[str]:
    """Names that our own classes define."""
    found: set[str] = set()
    for tree in trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found.add(node.target.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
                found.add(node.attr)
    return found


def touched() -> set[str]:
    """Attributes read off a trainer: of `trainer`, of `super()`, and of `self` in the trainers' own files."""
    found: set[str] = set()
    for path, tree in zip(sorted(FOLDER.rglob("*.py")), trees(), strict=True):
        trainers = {"trainer", "trl_sampler", "super()"}
        trainers |= {"self"} if path.stem in ("grpo", "sft", "dpo", "row_trainer", "steered_trainer") else set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) in trainers:
                found.add(node.attr)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
                owner, name = node.args[:2]
                if ast.unparse(owner) in trainers and isinstance(name, ast.Constant):
                    found.add(str(name.value))
    return found


def test_each_inner_name_is_in_the_table() -> None:
    checked = {name for table in (REQUIRED_ATTRIBUTES, REQUIRED_METHODS) for names in table.values() for name in names}
    inherited = touched() - PUBLIC - FALLBACK
    assert {name for name in inherited if name not in checked and name not in ours()} == set()
    assert {"_calculate_rewards", "_metrics", "_tokenizer", "ld_alpha"} <= checked & (inherited | ours())


@pytest.mark.parametrize("name", ["_calculate_rewards", "_get_train_sampler"])
def test_a_method_that_is_gone_or_changed_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def other(self: Any, renamed: Any) -> None: ...

    monkeypatch.setattr(GRPOTrainer, name, other)
    with pytest.raises(InputError, match=rf"GRPOTrainer.{name}\(.*got \(renamed\) in TRL {__version__}"):
        make(SteeredGRPOTrainer, tmp_path, steering=True)


def test_an_attribute_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {**REQUIRED_ATTRIBUTES, "sft": (*REQUIRED_ATTRIBUTES["sft"], "_gone")}
    monkeypatch.setattr("mixwright.trainers.checks.compatibility.REQUIRED_ATTRIBUTES", table)
    data = rows().rename_column("answer", "completion")
    with pytest.raises(InputError, match=rf"attribute _gone .*none in TRL {__version__} with transformers"):
        SteeredSFTTrainer(
            model(), args=sft_config(tmp_path), train_dataset=data, processing_class=tokenizer(), steering=True
        )


def test_a_helper_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("trl.trainer.utils.RepeatSampler")
    for name in ("grpo", "steered_trainer", "checks.selftest"):
        monkeypatch.delitem(sys.modules, f"mixwright.trainers.{name}", raising=False)
    with pytest.raises(InputError, match=f"got TRL {__version__} and transformers .*RepeatSampler"):
        mixwright.SteeredGRPOTrainer  # noqa: B018 - looked up when it is asked for

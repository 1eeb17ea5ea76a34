"""What SteeredGRPOTrainer cannot steer is refused at construction, with the reason, and nothing is left behind."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpo_parts as parts
import pytest
from datasets import DatasetDict
from grpo_table import Setting, build, parsed, tools
from trainers_tiny import rows
from trl import GRPOTrainer

from mixwright import SteeredGRPOTrainer
from mixwright.errors import InputError

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)


def dataset(make: Callable[[], Any]) -> Setting:
    """A setting with other data."""
    return Setting(kwargs=lambda folder: {"train_dataset": make()})


REFUSED: dict[str, tuple[Setting, str]] = {
    "stream": (dataset(lambda: rows().to_iterable_dataset()), "IterableDataset.*from_generator"),
    "several datasets": (dataset(lambda: DatasetDict(train=rows())), "DatasetDict"),
    "no rows": (dataset(lambda: rows().select([])), "train_dataset with rows"),
    "images": (dataset(lambda: rows().add_column("image", [None] * 24)), "images.*steering=None"),
    "environment without rows": (
        Setting(
            kwargs=lambda folder: tools(folder) | {"environment_factory": parts.Abacus, "train_dataset": None},
            patch=parsed("count"),
        ),
        "provides the prompts",
    ),
    "dispatch_batches": (Setting({"accelerator_config": {"dispatch_batches": True}}), "sample by itself"),
    "split_batches": (Setting({"accelerator_config": {"split_batches": True}}), "as TRL lays them out"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_the_reason(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting, reason = REFUSED[name]
    setting.patch(monkeypatch)
    with pytest.raises(InputError) as caught:
        build(SteeredGRPOTrainer, tmp_path, setting, steering=True)
    assert re.search(reason, str(caught.value).replace("\n", " "))
    assert not (tmp_path / "steering").exists()


@pytest.mark.parametrize("name", ["stream", "environment without rows", "dispatch_batches"])
def test_without_steering_it_stays_trls(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting, _ = REFUSED[name]
    setting.patch(monkeypatch)
    build(GRPOTrainer, tmp_path, setting)
    assert build(SteeredGRPOTrainer, tmp_path, setting).steered is None

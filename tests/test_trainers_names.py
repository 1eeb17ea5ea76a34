"""A method of TRL that steering extends and that is gone is said before training: TRL would train unsteered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from trainers_tiny import make
from trl import GRPOTrainer, __version__

import mixwright
from mixwright import SteeredGRPOTrainer
from mixwright.errors import InputError


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing.*:FutureWarning")  # TRL sets the older name
def test_a_method_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(GRPOTrainer, "_calculate_rewards")
    with pytest.raises(InputError, match=rf"a method _calculate_rewards of TRL's trainer, got none in TRL {__version__}"):
        make(SteeredGRPOTrainer, tmp_path, steering=True)


def test_a_helper_that_is_gone_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("transformers.trainer_utils.TrainOutput")
    for name in ("grpo", "row_trainer", "steered_trainer", "hooks", "resume"):
        monkeypatch.delitem(sys.modules, f"mixwright.trainers.{name}", raising=False)
    with pytest.raises(InputError, match=f"got TRL {__version__} and transformers .*TrainOutput"):
        mixwright.SteeredGRPOTrainer  # noqa: B018 - looked up when it is asked for

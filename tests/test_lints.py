"""The warning at the start of a GRPO run: said where it should be, and not otherwise; once per run, never refusing."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from trainers_tiny import UNIFORM, make, read

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.records import CellAssessment
from mixwright.steer.pool import make_pool
from mixwright.trainers.checks import lint_too_hard

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)
TOO_HARD = replace(
    UNIFORM,
    cells=(
        CellAssessment("letters", 1.0, "hopeless", 0.0, 0.0, 8, 12),
        CellAssessment("sums", 2.0, "lucky", 0.1, 0.1, 8, 12),
    ),
)


@pytest.mark.parametrize(("hard", "said"), [(11, True), (10, False)])
def test_a_pool_that_is_mostly_too_hard(hard: int, said: bool) -> None:
    levels = [1.0] * (20 - hard) + [2.0] * (hard - 5) + [3.0] * 5
    pool = make_pool([str(n) for n in range(20)], ["t"] * 20, levels, None)
    states = {1.0: "reachable", 2.0: "hopeless", 3.0: "lucky"}
    cells = tuple(CellAssessment("t", level, state, 0.1, 0.05, 8, 1) for level, state in states.items())  # type: ignore[arg-type]
    sentence = lint_too_hard(replace(UNIFORM, cells=cells), pool)
    assert (sentence is not None) == said
    if sentence is not None:
        assert f"{hard} of 20 rows" in sentence
    assert lint_too_hard(UNIFORM, pool) is None  # nothing was measured


def lints(folder: Path) -> list[str]:
    return [line["what"] for line in read(folder, "decisions.jsonl") if line["what"].startswith("lint.")]


def test_a_real_run_is_warned_once_and_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    settings = {"save_strategy": "steps", "save_steps": 1, "max_steps": 2}
    with caplog.at_level(logging.WARNING, logger="mixwright"):
        trainer = make(SteeredGRPOTrainer, tmp_path, settings, steering=SteeringConfig(TOO_HARD))
        trainer.train()
    assert trainer.state.global_step == 2
    assert lints(tmp_path) == ["lint.too_hard"]
    assert sum("hopeless or lucky" in record.getMessage() for record in caplog.records) == 1
    again = make(SteeredGRPOTrainer, tmp_path, settings | {"max_steps": 3}, steering=SteeringConfig(TOO_HARD))
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert lints(tmp_path) == ["lint.too_hard"]

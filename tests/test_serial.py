"""Records from data: a name nobody defines is told with the names of the record it stands in, at any depth."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from mixwright.config import (
    CorpusConfig,
    MeasureConfig,
    ModelConfig,
    PlanConfig,
    RunConfig,
    TrainConfig,
    TrialConfig,
    WarmupConfig,
)
from mixwright.errors import InputError
from mixwright.records import CellAssessment, Plan, Stage, from_data

CORPUS = {"train": "a.jsonl"}
SECTIONS: dict[str, tuple[type, type, dict[str, Any], str, str]] = {
    "run": (RunConfig, RunConfig, {"corpus": CORPUS, "trane": {}}, "trane", "train"),
    "corpus": (RunConfig, CorpusConfig, {"corpus": {**CORPUS, "grders": {}}}, "corpus.grders", "graders"),
    "model": (RunConfig, ModelConfig, {"corpus": CORPUS, "model": {"widht": 1}}, "model.widht", "width"),
    "warmup": (
        RunConfig,
        WarmupConfig,
        {"corpus": CORPUS, "model": {"warmup": {"stepz": 1}}},
        "model.warmup.stepz",
        "steps",
    ),
    "measure": (RunConfig, MeasureConfig, {"corpus": CORPUS, "measure": {"itmes": 1}}, "measure.itmes", "items"),
    "plan": (RunConfig, PlanConfig, {"corpus": CORPUS, "plan": {"planer": "x"}}, "plan.planer", "planner"),
    "train": (RunConfig, TrainConfig, {"corpus": CORPUS, "train": {"stepz": 60}}, "train.stepz", "steps"),
    "trial": (RunConfig, TrialConfig, {"corpus": CORPUS, "trial": {"sedes": 1}}, "trial.sedes", "seeds"),
    "stages.0": (Plan, Stage, {"planner": "p", "stages": [{"selektor": "x"}]}, "stages.0.selektor", "selector"),
    "cells.0": (Plan, CellAssessment, {"planner": "p", "stages": [], "cells": [{"suces": 1}]}, "cells.0.suces", "success"),
}
"""Section -> what is read, the record that the typo stands in, the data, the place told, the name meant."""


@pytest.mark.parametrize("section", SECTIONS)
def test_a_typo_is_told_with_the_nearest_names_of_its_own_record(section: str) -> None:
    read, record, data, place, meant = SECTIONS[section]
    whole = {f.name: 0 for f in fields(record) if f.name != "stages"}  # what is missing or wrong beside it must not win
    if section.endswith(".0"):
        name = section.split(".")[0]
        data = {**data, name: [{**_filled(record, whole), **data[name][0]}]}
    with pytest.raises(InputError) as caught:
        from_data(read, data)
    assert f"({place})" in caught.value.expected
    assert f"({len(fields(record))} known)" in caught.value.expected
    assert caught.value.remedy.removeprefix("Nearest: ").rstrip(".").split(", ")[0] == meant


def _filled(record: type, whole: dict[str, Any]) -> dict[str, Any]:
    """Values that every required field of a plan's record takes."""
    right = {"task": "a", "name": "a", "state": "unknown", "objective": "grpo", "weights": {"a": 1.0}, "success": None}
    needed = {f.name for f in fields(record) if f.name in right or f.name in ("n", "chance", "examples", "level", "steps")}
    return {name: right.get(name, whole[name]) for name in needed}

"""Records from data: a name nobody defines is told with the names of the record it stands in, at any depth."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from mixwright.config import CorpusConfig, RunConfig, WarmupConfig
from mixwright.errors import InputError
from mixwright.records import Plan, Stage, from_data

CORPUS = {"train": "a.jsonl"}
SECTIONS: dict[str, tuple[type, type, dict[str, Any], str, str]] = {
    "run": (RunConfig, RunConfig, {"corpus": CORPUS, "trane": {}}, "trane", "train"),
    "corpus": (RunConfig, CorpusConfig, {"corpus": {**CORPUS, "grders": {}}}, "corpus.grders", "graders"),
    "warmup": (
        RunConfig,
        WarmupConfig,
        {"corpus": CORPUS, "model": {"warmup": {"stepz": 1}}},
        "model.warmup.stepz",
        "steps",
    ),
    "stages.0": (
        Plan,
        Stage,
        {"planner": "p", "stages": [{"name": "a", "objective": "grpo", "steps": 1, "weights": {"a": 1.0}, "selektor": "x"}]},
        "stages.0.selektor",
        "selector",
    ),
}
"""Section -> what is read, the record that the typo stands in, the data, the place told, the name meant."""


@pytest.mark.parametrize("section", SECTIONS)
def test_a_typo_is_told_with_the_nearest_names_of_its_own_record(section: str) -> None:
    read, record, data, place, meant = SECTIONS[section]
    with pytest.raises(InputError) as caught:
        from_data(read, data)
    assert f"({place})" in caught.value.expected
    assert f"({len(fields(record))} known)" in caught.value.expected
    assert caught.value.remedy.removeprefix("Nearest: ").rstrip(".").split(", ")[0] == meant

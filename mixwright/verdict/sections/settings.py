"""Section of what has to be known to read or repeat this run: settings, versions, seeds, input hashes.

Source: manifest.json.
Unit: as each setting has it.
Cost: reads one small file.
Blind spot: what the manifest does not hold, such as the machine's own settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from mixwright.contracts import Section
from mixwright.records import RunManifest
from mixwright.runs import RunFolder, read_json
from mixwright.verdict.blocks import Block, Code, Fold, Table

FIRST_SETTINGS = (
    "loss_type",
    "scale_rewards",
    "beta",
    "learning_rate",
    "num_generations",
    "max_completion_length",
    "temperature",
    "steps",
)


COMPLETION_SETTINGS = ("num_generations", "max_completion_length", "temperature", "scale_rewards")
"""Settings that mean nothing where no completion is written to train on."""


class Settings(Section):
    """Settings in full, the rest folded, and how to repeat the run."""

    ORDER: ClassVar[int] = 90
    TITLE: ClassVar[str] = "Settings and how to repeat"
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Tables of the manifest."""
        if not run.manifest.is_file():
            return []
        manifest = read_json(run.manifest, RunManifest)
        order = {name: place for place, name in enumerate(FIRST_SETTINGS)}
        settings = dict(sorted(manifest.settings.items(), key=lambda item: (order.get(item[0], len(order)), item[0])))
        about = {"made": manifest.created, "starting model": manifest.parent}
        settings = {name: value for name, value in about.items() if value} | settings
        settings = {name: value for name, value in settings.items() if _means_something(name, settings)}
        blocks: list[Block] = []
        if manifest.command:
            blocks.append(Code("Repeat", manifest.command))
        parts = (("Settings", settings), ("Seeds", manifest.seeds), ("Versions", manifest.versions))
        blocks += [_table(name, values) for name, values in parts[:1] if values]
        folded = [_table(name, values) for name, values in (*parts[1:], ("Inputs, sha256", manifest.inputs)) if values]
        return [*blocks, *([Fold("Seeds, versions and inputs", tuple(folded))] if folded else [])]


def _means_something(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether a setting acts under the objective; `beta` of 0 is GRPO's, and not what DPO or SFT train with."""
    if settings.get("objective") not in ("sft", "dpo"):
        return True
    return name not in COMPLETION_SETTINGS and (name != "beta" or bool(settings[name]))


def _table(caption: str, values: Mapping[str, Any]) -> Table:
    return Table(caption, ("name", "value"), [(name, _value(value)) for name, value in values.items()])


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)

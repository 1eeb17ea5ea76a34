"""Section of what has to be known to read or repeat this run: settings, versions, seeds, input hashes.

Source: manifest.json.
Unit: as each setting has it.
Cost: reads one small file.
Blind spot: what the manifest does not hold, such as the machine's own settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mixwright.contracts import Section
from mixwright.records import RunManifest
from mixwright.run.folder import RunFolder, read_json
from mixwright.verdict.page.blocks import Block, Code, Fold, Table

COMPLETION_SETTINGS = ("num_generations", "max_completion_length", "temperature")
"""Settings that mean nothing where no completion is written to train on."""
FIRST_SETTINGS = ("loss_type", "scale_rewards", "beta", "learning_rate", *COMPLETION_SETTINGS, "steps")


class Settings(Section):
    """Settings in full, the rest folded, and how to repeat the run."""

    ORDER = 90
    TITLE = "Settings and how to repeat"
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Tables of the manifest."""
        if not run.manifest.is_file():
            return []
        manifest = read_json(run.manifest, RunManifest)
        run_facts = {
            name: value for name, value in (("made", manifest.created), ("starting model", manifest.parent)) if value
        }
        first_settings = {name: manifest.settings[name] for name in FIRST_SETTINGS if name in manifest.settings}
        settings = run_facts | first_settings | dict(sorted(manifest.settings.items()))
        if settings.get("objective") in ("sft", "dpo"):  # `beta` of 0 is GRPO's, and not what DPO or SFT train with
            unused_settings = {"scale_rewards", *COMPLETION_SETTINGS, *([] if settings.get("beta") else ["beta"])}
            settings = {name: value for name, value in settings.items() if name not in unused_settings}
        values_by_title = {"Seeds": manifest.seeds, "Versions": manifest.versions, "Inputs, sha256": manifest.inputs}
        return [
            Code("Repeat", manifest.command),
            _table("Settings", settings),
            Fold("Seeds, versions and inputs", tuple(_table(name, values) for name, values in values_by_title.items())),
        ]


def _table(caption: str, values: Mapping[str, Any]) -> Table:
    rows = [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
        for name, value in values.items()
    ]
    return Table(caption, ("name", "value"), rows)

"""Data of the page as JSON: the recommendation, what it rests on, and every block of every section."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS
from mixwright.records import RunManifest, to_data
from mixwright.runs import RunFolder, read_json
from mixwright.verdict.basis import recommended
from mixwright.verdict.blocks import Part
from mixwright.verdict.cells import CellSeen, cells_of
from mixwright.verdict.claims import every_claim
from mixwright.verdict.evidence import decoding_of, describe_run, trial_of
from mixwright.verdict.next_steps import steps_of

FORMAT_VERSION = 1
"""Rises when a field changes its meaning or goes away."""


def data_of(run: RunFolder, parts: Sequence[Part]) -> dict[str, Any]:
    """Everything that the page shows, JSON-ready; what is not known is null.

    Args:
        run: judged.
        parts: the sections of its page, in order.
    """
    (found, seen), result = recommended(run), trial_of(run)
    outcome = result.decoding if result else decoding_of(run)
    reading = READINGS[outcome]
    manifest = read_json(run.manifest, RunManifest) if run.manifest.is_file() else None
    said = None if found is None else plain(found) | {"next": [plain(step) for step in steps_of(run, found, seen)]}
    return {
        "format": FORMAT_VERSION,
        "run": run.path.resolve().name,
        "about": describe_run(run),
        "decoding": outcome,
        "outcome": {
            "name": reading.title,
            "unit": reading.unit,
            "lower_is_better": reading.sign < 0,
            "graded": outcome in GRADED_OUTCOMES,
        },
        "recommendation": said,
        "rests_on": plain(seen),
        "judgements": plain(result.judgements if result else ()),
        "effects": plain(result.effects if result else ()),
        "claims": plain(every_claim(run)),
        "cells": [_cell(cell) for cell in cells_of(run)],
        "settings": plain(manifest.settings if manifest else {}),
        "sections": [
            {"name": name, "title": title, "blocks": [plain(block) for block in blocks]} for name, title, _, blocks in parts
        ],
    }


def _cell(cell: CellSeen) -> dict[str, Any]:
    claim, sides = cell.claim, ("before", "after")
    pairs = {"greedy": cell.greedy, "sampled": cell.sampled}
    return {
        "task": claim.task,
        "level": claim.level,
        "whole_task": claim.whole,
        "word": claim.kind,
        "before": claim.before,
        "after": claim.after if claim.difference.n else None,
        **{name: None if pair is None else dict(zip(sides, pair, strict=True)) for name, pair in pairs.items()},
        "change": plain(claim.difference),
        "chance_level": plain(cell.chance),
    }


def plain(value: Any) -> Any:
    """JSON-ready values; blocks keep the name of their kind, numbers that are none become null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"kind": type(value).__name__, **fields} if type(value).__module__ == "mixwright.verdict.blocks" else fields
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return to_data(value)

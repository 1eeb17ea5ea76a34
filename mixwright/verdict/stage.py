"""Stage that judges a run folder and writes `verdict.json` and the page."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, Literal

from mixwright.errors import InputError
from mixwright.records import Verdict, to_data
from mixwright.records.serial import names_of_fields
from mixwright.run.folder import RunFolder, write_json, write_text
from mixwright.verdict.judge import judge
from mixwright.verdict.read_parts import read_pairs
from mixwright.verdict.rules.evidence import Evidence


def write_verdict(run: RunFolder, *, gated: bool = True, inconclusive: Literal["fail", "warn"] = "fail") -> Verdict:
    """Judge the run and write verdict.json and verdict.html. Needs core packages only.

    Args:
        run: folder of a trial, or of a comparison of two models.
        gated: whether the exit code follows the outcome.
        inconclusive: exit code of too few items: 4, or 0 with `warn`.

    Raises:
        InputError: the run folder does not exist, or a file in it is broken.
    """
    from mixwright.verdict.page.page import render_page

    run_parts = (run.manifest, run.audit, run.plan, run.path / "measure", run.path / "trial")
    if not any(run_part.exists() for run_part in run_parts):
        got = "a folder without the files of a run" if run.path.is_dir() else "nothing"
        raise InputError(
            "a run folder", got, "To compare two models, name both: mixwright verdict BEFORE AFTER.", file=run.path
        )
    evidence = Evidence(run)
    verdict = judge(evidence, gated=gated, inconclusive=inconclusive)
    write_json(run.verdict_data, to_json_ready(verdict))
    write_text(run.page, render_page(verdict, read_pairs(evidence)))
    return verdict


def to_json_ready(value: Any) -> Any:
    """Return JSON-ready values; blocks keep the name of their kind, numbers that are not finite become null."""
    if isinstance(value, float):  # the commonest kinds first: there may be a million values
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {name: to_json_ready(getattr(value, name)) for name in names_of_fields(type(value))}
        return (
            {"kind": type(value).__name__, **fields} if type(value).__module__ == "mixwright.verdict.page.blocks" else fields
        )
    if isinstance(value, Mapping):
        return {str(key): to_json_ready(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_ready(item) for item in value]
    return to_data(value)

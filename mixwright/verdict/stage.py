"""Stage that writes claims to claims.json, the sections to one page and to the terminal, and all of it to verdict.json."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright import catalog
from mixwright.errors import InputError
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS
from mixwright.records import RunManifest, to_data
from mixwright.records.serial import names_of_fields
from mixwright.run.folder import RunFolder, read_json, write_json, write_text
from mixwright.verdict.page.arm_words import describe_run
from mixwright.verdict.page.blocks import FIRST_SCREEN_ORDER, Part, keep_filled
from mixwright.verdict.page.terms import explain_once
from mixwright.verdict.rules.basis import recommend_run
from mixwright.verdict.rules.cells import PageCell, cells_of
from mixwright.verdict.rules.claims import judge, read_claims
from mixwright.verdict.rules.evidence import count_seeds, read_outcome, trial_of
from mixwright.verdict.rules.next_steps import list_next_steps

if TYPE_CHECKING:
    from rich.console import Console

FORMAT_VERSION = 1
"""Of verdict.json: rises when a field changes its meaning or goes away."""


def render(run: RunFolder) -> Path:
    """Judge the run, write claims.json, verdict.json and verdict.html, and return the page's path. Needs core packages only.

    Old claims stay only where there is nothing left to judge from.

    Raises:
        InputError: the run folder does not exist, or a file in it is broken.
    """
    from mixwright.verdict.page.page import render_page

    run_parts = (run.manifest, run.audit, run.plan, run.claims, run.path / "measure", run.path / "trial")
    if not any(run_part.exists() for run_part in run_parts):
        got = "a folder without anything of a run" if run.path.is_dir() else "nothing"
        raise InputError("a run folder", got, "Name the folder that `mixwright run` wrote.", file=run.path)
    if claims := judge(run):
        write_json(run.claims, claims)
    page_sections = sections(run)
    write_json(run.verdict_data, collect_data(run, page_sections))
    write_text(run.page, render_page(f"Verdict: {run.path.resolve().name}", describe_run(run), page_sections))
    return run.page


def summarise(run: RunFolder, console: Console, *, full: bool = False, without: Collection[str] = ()) -> None:
    """Print what the page says: its first screen, or with `full` all of it. Raises InputError as `render` does.

    Args:
        run: the folder.
        console: where to.
        full: all sections.
        without: names of sections that are left out.
    """
    from mixwright.verdict.page.terminal import show

    for name, title, _, blocks in sections(run, before_order=math.inf if full else FIRST_SCREEN_ORDER):
        if name not in without:
            show(console, title, blocks)


def sections(run: RunFolder, before_order: float = math.inf) -> list[Part]:
    """(name, title, order, blocks) of every section up to an order that has something to say, in page order."""
    outcome, described_sections = read_outcome(run), []
    for name in catalog.listing("sections"):
        section = catalog.create("sections", name)
        if before_order > section.ORDER and (outcome in GRADED_OUTCOMES or section.SHOWN_UNGRADED):
            described_sections.append((name, section.TITLE, section.ORDER, section.blocks(run)))
    interval_units = "items" if count_seeds(run) == 1 else "seeds and items"
    explained_sections = explain_once(
        sorted(described_sections, key=lambda part: (part[2], part[0])), outcome, interval_units
    )
    return [
        (name, title, order, filled_blocks)
        for name, title, order, blocks in explained_sections
        if (filled_blocks := keep_filled(blocks))
    ]


def collect_data(run: RunFolder, page_sections: Sequence[Part]) -> dict[str, Any]:
    """Everything that the page shows, JSON-ready; what is not known is null.

    Args:
        run: judged.
        page_sections: the sections of its page, in order.
    """
    (recommendation, basis), result = recommend_run(run), trial_of(run)
    outcome = result.decoding if result else read_outcome(run)
    reading = READINGS[outcome]
    recommendation_data = (
        None
        if recommendation is None
        else to_json_ready(recommendation)
        | {"next": [to_json_ready(step) for step in list_next_steps(run, recommendation, basis)]}
    )
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
        "recommendation": recommendation_data,
        "rests_on": to_json_ready(basis),
        "judgements": to_json_ready(result.judgements if result else ()),
        "effects": to_json_ready(result.effects if result else ()),
        "claims": to_json_ready(read_claims(run)),
        "cells": [_cell_data(cell) for cell in cells_of(run)],
        "settings": to_json_ready(read_json(run.manifest, RunManifest).settings if run.manifest.is_file() else {}),
        "sections": [
            {"name": name, "title": title, "blocks": to_json_ready(blocks)} for name, title, _, blocks in page_sections
        ],
    }


def _cell_data(cell: PageCell) -> dict[str, Any]:
    claim = cell.claim
    greedy, sampled = (
        None if pair is None else {"before": pair[0], "after": pair[1]} for pair in (cell.greedy, cell.sampled)
    )
    return {
        "task": claim.task,
        "level": claim.level,
        "whole_task": claim.whole,
        "word": claim.kind,
        "before": claim.before,
        "after": claim.after if claim.difference.n else None,
        "greedy": greedy,
        "sampled": sampled,
        "change": to_json_ready(claim.difference),
        "chance_level": to_json_ready(cell.chance),
    }


def to_json_ready(value: Any) -> Any:
    """JSON-ready values; blocks keep the name of their kind, numbers that are none become null."""
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

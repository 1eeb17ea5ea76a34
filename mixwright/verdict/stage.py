"""Stage that writes claims to claims.json, the sections to one page and to the terminal, and all of it to verdict.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mixwright import catalog
from mixwright.estimates.readings import GRADED_OUTCOMES
from mixwright.runs import RunFolder, write_json, write_text
from mixwright.verdict.blocks import Block, filled
from mixwright.verdict.claims import judge
from mixwright.verdict.evidence import decoding_of, describe_run, seeds_of
from mixwright.verdict.terms import explained_once

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from rich.console import Console


def render(run: RunFolder) -> Path:
    """Judge the run, write claims.json, verdict.json and verdict.html, and return the page's path. Needs core packages only.

    Raises:
        InputError: the run folder does not exist, or a file in it is broken.
    """
    from mixwright.verdict.page import render_page
    from mixwright.verdict.page_data import data_of

    _judge_again(run)
    parts = sections(run)
    write_json(run.data, data_of(run, parts))
    write_text(run.page, render_page(f"Verdict: {run.path.resolve().name}", describe_run(run), parts))
    return run.page


def summarise(run: RunFolder, console: Console, *, full: bool = False, without: Collection[str] = ()) -> None:
    """Print what the page says: its first screen, or with `full` all of it. Raises InputError as `render` does.

    Args:
        run: the folder.
        console: where to.
        full: all sections.
        without: names of sections that are left out.
    """
    from mixwright.verdict.page import FIRST_SCREEN_ORDER
    from mixwright.verdict.terminal import show

    for name, title, order, blocks in sections(run):
        if name not in without and (full or order < FIRST_SCREEN_ORDER):
            show(console, title, blocks)


def sections(run: RunFolder) -> list[tuple[str, str, int, list[Block]]]:
    """(name, title, order, blocks) of every section that has something to say, in page order."""
    found = []
    outcome = decoding_of(run)
    for name in catalog.listing("sections"):
        section = catalog.create("sections", name)
        if outcome in GRADED_OUTCOMES or section.UNGRADED:
            found.append((name, section.TITLE, section.ORDER, section.blocks(run)))
    over = "items" if seeds_of(run) == 1 else "seeds and items"
    parts = explained_once(sorted(found, key=lambda part: (part[2], part[0])), outcome, over)
    return [(name, title, order, kept) for name, title, order, blocks in parts if (kept := filled(blocks))]


def _judge_again(run: RunFolder) -> None:
    """Old claims stay only where there is nothing left to judge from."""
    parts = (run.manifest, run.audit, run.plan, run.claims, run.path / "measure", run.path / "trial")
    if not any(part.exists() for part in parts):
        from mixwright.errors import InputError

        got = "a folder without anything of a run" if run.path.is_dir() else "nothing"
        raise InputError("a run folder", got, "Name the folder that `mixwright run` wrote.", file=run.path)
    claims = judge(run)
    if claims:
        write_json(run.claims, claims)

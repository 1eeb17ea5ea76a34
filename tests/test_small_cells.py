"""Cells of too few items: one line on the page and in the terminal, and no interval or correction that judges them."""

from __future__ import annotations

from pathlib import Path

import pytest
from _example_run import item_rows
from _scores import scores

from mixwright.run.folder import RunFolder, write_measurements
from mixwright.verdict.rules.claims import (
    MAX_CELLS_NAMED,
    claims_between,
    explain_undecided,
    format_family,
    format_not_judged,
    has_too_few_items,
    leading_claims,
)

SMALL = [("b", 1.0), ("b", 2.0), ("c", None)]


def pair(folder: Path, large: int = 40) -> RunFolder:
    """Task `a` of `large` items; three cells of 6 items, of which 3 were right before and 2 after."""
    run = RunFolder(folder)
    for name, right in (("before", 3), ("after", 2)):
        rows = []
        for cell, items in [*((("a", None), large),) * (large > 0), *((cell, 6) for cell in SMALL)]:
            values = [1.0] * right + [0.0] * (items - right)
            zeros = {column: [0.0] * items for column in ("greedy.swapped", "pass@1.swapped", "chance")}
            rows += item_rows(cell, {"greedy": values, "pass@1": values} | zeros)
        write_measurements(run.measurements(name), rows)
    return run


def test_where_nothing_is_judged_nothing_is_corrected() -> None:
    side = [scores({("t", 1.0): [0] * 6})]
    claims = claims_between((side, side), "greedy")
    assert all(map(has_too_few_items, claims))
    assert format_family(claims) == ""
    assert explain_undecided(claims, 1) == ""


def test_small_cells_are_not_counted_among_what_items_cannot_decide(tmp_path: Path) -> None:
    claims = leading_claims(pair(tmp_path))
    judged = [claim for claim in claims if not has_too_few_items(claim)]
    blind = sum(claim.kind == "cannot tell" for claim in judged)
    assert (len(claims), len(judged)) == (5, 2)
    assert explain_undecided(claims, 1).startswith(f"{blind} of 2 claims") == (blind > 0)


def test_a_long_list_of_small_cells_is_cut() -> None:
    cells: dict[tuple[str, float | None], list[int]] = {
        (f"t{place:02}", None): [0, 1] for place in range(MAX_CELLS_NAMED + 3)
    }
    side = [scores(cells)]
    told = format_not_judged(claims_between((side, side), "greedy"))
    assert told.startswith(f"{MAX_CELLS_NAMED + 3} cells")
    assert told.endswith("t07 and 3 more")


@pytest.mark.parametrize(("items", "possible"), [(10, False), (60, True)])
def test_a_change_that_cannot_be_is_not_called_one_that_would_be_seen(items: int, possible: bool) -> None:
    # half were right, so at most half can be lost or won; a tenth moved each way
    half, tenth = items // 2, items // 10
    before = [scores({("t", None): [1] * half + [0] * half})]
    after = [scores({("t", None): [0] * tenth + [1] * half + [0] * (half - tenth)})]
    (claim,) = claims_between((before, after), "greedy")
    assert claim.kind == "cannot tell"
    assert (claim.detectable < 0.5) == possible
    assert ("would be seen" in claim.evidence) == possible

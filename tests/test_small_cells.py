"""Changes that are larger than a few items can show."""

from __future__ import annotations

import pytest
from _scores import scores

from mixwright.verdict.rules.cells import compare_cells


@pytest.mark.parametrize(("items", "possible"), [(10, False), (60, True)])
def test_a_change_that_cannot_be_is_not_called_one_that_would_be_seen(items: int, possible: bool) -> None:
    # half were right, so at most half can be lost or won; a tenth moved each way
    half, tenth = items // 2, items // 10
    before = [scores({("t", None): [1] * half + [0] * half})]
    after = [scores({("t", None): [0] * tenth + [1] * half + [0] * (half - tenth)})]
    (claim,) = compare_cells((before, after), "greedy")
    assert claim.word == "cannot tell"
    assert claim.change is not None
    assert (claim.change.estimate.detectable(claim.family_size) < 0.5) == possible

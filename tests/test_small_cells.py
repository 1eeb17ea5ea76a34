"""Changes that are larger than a few items can show."""

from __future__ import annotations

import pytest
from _scores import scores

from mixwright.verdict.rules.claims import claims_between


@pytest.mark.parametrize(("items", "possible"), [(10, False), (60, True)])
def test_a_change_that_cannot_be_is_not_called_one_that_would_be_seen(items: int, possible: bool) -> None:
    # half were right, so at most half can be lost or won; a tenth moved each way
    half, tenth = items // 2, items // 10
    before = [scores({("t", None): [1] * half + [0] * half})]
    after = [scores({("t", None): [0] * tenth + [1] * half + [0] * (half - tenth)})]
    (claim,) = claims_between((before, after), "greedy")
    assert claim.kind == "cannot tell"
    assert (claim.detectable < 0.5) == possible
    assert ("would be detected" in claim.evidence) == possible

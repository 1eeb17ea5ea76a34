"""What became of requests by their form: imperatives, several turns, a system message, another language."""

from __future__ import annotations

from collections.abc import Mapping

from mixwright.estimates.outcome import Outcome, Sides, estimate_change
from mixwright.records import Interval
from mixwright.suite.family import FORMS


def changes_by_form(sides: Sides, outcome: Outcome) -> Mapping[str, Interval]:
    """Return the mean change of each form of request of the general suite, which the names of its items end with.

    Args:
        sides: both models.
        outcome: of which success.
    """
    found = {}
    for form in FORMS:
        change = estimate_change(*sides, outcome=outcome, included=lambda items, form=form: items.ending(f" {form}"))
        if change is not None:
            found[form] = change.estimate.interval
    return found

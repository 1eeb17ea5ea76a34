"""The study of layouts: its populations lose what they say, and its rules on counts are those of the package."""

import numpy as np
import pytest

from mixwright_lab.studies.gate_layouts import CHURNS, LOST, LOST_BY_HALF, RUINED, UNHARMED, agreement, at_margin, population


@pytest.mark.parametrize("churn", CHURNS)
def test_as_much_is_lost_as_the_case_says(churn: float) -> None:
    for case, lost in ((UNHARMED, 0.0), (LOST, 0.05), (LOST_BY_HALF, 0.05), (RUINED, 0.3)):
        made = population("8 x 50", churn, case)
        assert made.changes.mean() == pytest.approx(-lost)
        assert made.joint.sum(axis=1) == pytest.approx(np.ones(8))
        assert (made.joint >= 0).all()
        assert at_margin(made).changes.mean() == pytest.approx(-0.05)
    assert population("8 x 50", churn, UNHARMED).joint[:, 1:3].sum(axis=1) == pytest.approx(np.full(8, churn))


def test_rules_on_counts_are_those_of_the_package() -> None:
    agreed, asked = agreement("4 x 30, margin 15", 1)
    assert agreed == asked > 10

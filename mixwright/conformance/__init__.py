"""Tests of the promises of `mixwright.contracts` for the kinds of plug-ins that others write most.

    from mixwright.conformance import check_selector
    def test_mine(): check_selector(MySelector)

Each raises AssertionError naming the broken promise, and needs the packages that the plug-in needs. `check_plugin` tests
what every kind promises, and `check_steerer` what all that steers does: a saved state continues exactly.
Left out on purpose: whether a plug-in is any good. That is what trials are for.
"""

from mixwright.conformance.promises import (
    check_arm,
    check_check,
    check_grader,
    check_miner,
    check_plugin,
    check_selector,
    check_steerer,
    require,
)

__all__ = [
    "check_arm",
    "check_check",
    "check_grader",
    "check_miner",
    "check_plugin",
    "check_selector",
    "check_steerer",
    "require",
]

"""Tests of the promises of `mixwright.contracts`: one check function per kind, for our plug-ins and for yours.

    from mixwright.conformance import check_selector
    def test_mine(): check_selector(MySelector)

Each raises AssertionError naming the broken promise, and needs the packages that the plug-in needs.
Left out on purpose: whether a plug-in is any good. That is what trials are for.
"""

from mixwright.conformance._adapters import check_adapter
from mixwright.conformance._promises import check_plugin
from mixwright.conformance._stages import (
    check_arm,
    check_check,
    check_column,
    check_export,
    check_finding,
    check_grader,
    check_miner,
    check_planner,
    check_probe,
    check_section,
    check_world,
)
from mixwright.conformance._steering import (
    check_controller,
    check_gate,
    check_monitor,
    check_selector,
)

__all__ = [
    "check_adapter",
    "check_arm",
    "check_check",
    "check_column",
    "check_controller",
    "check_export",
    "check_finding",
    "check_gate",
    "check_grader",
    "check_miner",
    "check_monitor",
    "check_planner",
    "check_plugin",
    "check_probe",
    "check_section",
    "check_selector",
    "check_world",
]

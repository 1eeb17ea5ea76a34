"""Promises of a finding: what stands written before it is run."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mixwright import catalog

if TYPE_CHECKING:
    from mixwright_lab.contracts import Finding


def require(is_kept: bool, promise: str) -> None:
    """Raise AssertionError with `promise` unless it was kept; works under `python -O` too."""
    if not is_kept:
        raise AssertionError(promise)


def check_finding(cls: type[Finding]) -> None:
    """Claim, source, expectations over arms that exist, a noise arm, settings of both scales; the run is not made here."""
    finding = cls()
    for name in ("CLAIM", "SOURCE", "WHAT_IT_SHOWS", "POPULAR_READING"):
        require(bool(getattr(cls, name)), f"{name} is a text")
    for feature in cls.FEATURES:
        kind, _, name = feature.partition("/")
        require(
            kind in catalog.KIND_BY_NAME and name in catalog.listing(kind), f"a plug-in that exists: FEATURES, {feature}"
        )
    require(bool(cls.EXPECT), "EXPECT has at least one contrast")
    known = {expected.name for expected in cls.EXPECT}
    require(len(known) == len(cls.EXPECT), "contrasts have names of their own")
    require(
        all(0 < expected.least < math.inf and expected.refuted for expected in cls.EXPECT),
        "a least size above 0, and what would refute it",
    )
    weights = [[abs(term.weight) for term in expected.terms] for expected in cls.EXPECT]
    require(all(0 < sum(each) < math.inf for each in weights), "contrasts have terms with finite weights")
    scales = {"smoke", "laptop"}
    require(scales <= set(cls.SCALES) and scales <= set(cls.SEEDS), "SCALES and SEEDS have smoke and laptop")
    require(cls.SEEDS["smoke"] >= 1 and cls.SEEDS["laptop"] >= 5, "smoke has a seed; laptop has 5 seeds or more")
    require(len(set(cls.RUN_TWICE)) == len(cls.RUN_TWICE), "RUN_TWICE names each arm once")
    for settings in cls.SCALES.values():
        arms = finding.arms(settings)
        require(
            len(set(arms)) == len(arms) and all(arms) and set(cls.RUN_TWICE) <= set(arms),
            "arms have names of their own, and RUN_TWICE names some",
        )
        require(bool(cls.RUN_TWICE), "RUN_TWICE names an arm that is run twice")
        used = {term.arm for expected in cls.EXPECT for term in expected.terms}
        used |= {arm for plot in cls.PLOTS for curve in plot.curves for _, arm, _ in curve.places}
        require(used <= set(arms), "EXPECT and PLOTS name arms that exist")
    for feature, contrasts in cls.FEATURES.items():
        require({each.removeprefix("-") for each in contrasts} <= known, f"contrasts of EXPECT: FEATURES, {feature}")
    named = [cls.PRIMARY, *cls.PUBLISHED]
    require(
        set(named) <= known and len(set(named)) == len(named), "PRIMARY and PUBLISHED name contrasts of EXPECT, once each"
    )
    require(cls.CONTROL in known - {cls.PRIMARY} | {""}, "CONTROL names another contrast of EXPECT, or none")

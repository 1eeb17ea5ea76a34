"""docs/controllers.md speaks of every lever there is, and quotes the committed results."""

import json
import re

from readme_tree import ROOT

from mixwright.catalog import listing

PAGE = (ROOT / "docs" / "controllers.md").read_text(encoding="utf-8")


def figures(name: str):
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def percent(interval) -> str:
    return f"{100 * interval['value']:.0f}"


def test_every_lever_is_told():
    ours = {
        kind: [name for name, entry in listing(kind).items() if entry.module.startswith("mixwright.")]
        for kind in ("mixtures", "selectors", "gates", "controllers", "monitors")
    }
    missing = [name for names in ours.values() for name in names if not re.search(rf"`{name}`|\b{name}\b", PAGE)]
    assert missing == []


def test_the_page_quotes_the_results():
    hard = figures("overhard")["hard"]
    for arm in (
        "canary, no replay",
        "all",
        "default",
        "too_hard",
        "too_hard + survivors",
        "drift",
        "drift, beta 0",
        "lower rate",
    ):
        kept = hard[arm]["kept"]
        low, high = (f"{100 * kept[end]:.0f}" for end in ("low", "high"))
        shown = percent(kept)
        assert re.search(rf"\b{shown}\s%[^.|]*?\[{low}, {high}\]", PAGE), (arm, shown, low, high)
    wide = figures("rollouts")["wide"]
    for arm in ("ours", "oracle", "target", "static_band", "uniform", "screen", "refill"):
        assert f"| {wide[arm]['rollouts to target, geometric mean']:,.0f} |" in PAGE, arm
    race = figures("formats")["forecast"]["race"]
    assert f"{race['hits']} of {race['of']} mixes" in PAGE
    alone = figures("mixture")["natural"]["rollouts over learnable"]
    assert f"{alone['value']:.1f} x fewer rollouts [{alone['low']:.1f}, {alone['high']:.1f}]" in PAGE
    rare = figures("rare_task")["goal"]["rare accuracy of the plan / wide"]
    assert f"{percent(rare)} % of its rare accuracy" in PAGE


def test_the_picture_is_there():
    assert (ROOT / "docs" / "controllers.png").stat().st_size > 10_000

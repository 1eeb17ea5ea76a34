"""Draws docs/controllers.png from the committed results: what each lever was worth, with 95 % intervals.

python -m benchmarks.picture
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks._report import RESULTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PLACE = Path(__file__).parent.parent / "docs" / "controllers.png"
NULL, OURS, OTHER = "#b3541e", "#1f5fa8", "#6b7280"
"""Colours of nulls and of doing nothing, of ours, and of everything else."""
GUARDS = (
    *("permuted", "lower rate", "too_hard", "too_hard + survivors", "anchor", "drift"),
    *("canary, no replay", "default", "all"),
)
Bar = tuple[str, float, float, float, str]
"""Label, value, low, high, colour."""


def main() -> None:
    """Read four results, draw four panels."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(13, 9.5), dpi=110, layout="constrained")
    panels = figure.subplots(2, 2).flatten()
    for draw, axes in zip((rollouts, overhard, rare_task, formats), panels, strict=True):
        draw(axes)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PLACE)
    with Image.open(PLACE) as drawn:  # few colours: a third of the bytes
        small = drawn.convert("RGB").quantize(64)
    small.save(PLACE, optimize=True)
    print(PLACE.relative_to(PLACE.parent.parent))


def figures(name: str) -> dict[str, Any]:
    """The figures of a committed result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def rollouts(axes: Axes) -> None:
    """Charged rollouts to the target, over ours."""
    wide = figures("rollouts")["wide"]
    bars = []
    for arm, shown in wide.items():
        if isinstance(shown, dict) and (over := shown.get("rollouts over ours")):
            label = f"{arm}, at least" if over["lower bound"] else arm
            bars.append((label, over["value"], over["low"], over["high"], NULL if arm == "uniform" else OTHER))
    _forest(axes, sorted(bars, key=lambda bar: -bar[1]))
    axes.axvline(1, color=OURS)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes.minorticks_off()
    axes.set_title("Rollouts to the target: others over ours\n(wide pool, all charged; right of 1: ours needs fewer)")


def overhard(axes: Axes) -> None:
    """Share of the damage that each guard prevents."""
    hard = figures("overhard")["hard"]
    bars = []
    for arm in GUARDS:
        if arm in hard and hard[arm]["kept"]:
            kept = hard[arm]["kept"]
            colour = NULL if arm in ("permuted", "lower rate") else OURS
            bars.append((arm, 100 * kept["value"], 100 * kept["low"], 100 * kept["high"], colour))
    _forest(axes, bars)
    axes.axvline(0, color=NULL)
    axes.axvline(100, color="black", linewidth=0.8)
    axes.set_xlim(-60, 160)
    axes.set_title("Over-hard pool: damage prevented, %\n(0: as unguarded; 100: nothing lost; over 100: gained)")


def rare_task(axes: Axes) -> None:
    """Accuracy on the rare tasks, with the compute in the label."""
    bars = []
    for arm, shown in figures("rare_task")["arms"].items():
        if arm.endswith(("width 32", "width 128")) and not arm.startswith("alone"):
            ours, rare = arm.startswith(("plan", "floor", "starved")), shown["rare"]
            colour = OURS if ours else NULL if arm.startswith("natural") else OTHER
            label = f"{arm} ({100 * shown['flops / wide']:.0f} %)"
            bars.append((label, 100 * rare["value"], 100 * rare["low"], 100 * rare["high"], colour))
    _forest(axes, sorted(bars, key=lambda bar: -bar[1]))
    axes.set_xlim(40, 105)
    axes.set_title("Rare tasks, under 1 % of the data each: accuracy, %\n(brackets: training compute, of the wide model's)")


def formats(axes: Axes) -> None:
    """Normalised entropy of the answer formats after the run, with and without guards."""
    guards = figures("formats")["guards"]
    arms = [arm for arm in next(iter(guards.values())) if arm != "start"]
    for row, (mix, shown) in enumerate(guards.items()):
        for place, arm in enumerate(arms):
            colour = NULL if arm in ("none", "permuted") else OURS
            height = -row * (len(arms) + 2) - place
            axes.barh(height, shown[arm]["entropy"], color=colour, alpha=0.85)
            axes.text(
                shown[arm]["entropy"] + 0.01, height, f"{arm}   pass@1 {shown[arm]['pass@1']:.2f}", fontsize=7, va="center"
            )
        top = -row * (len(arms) + 2) + 1
        axes.plot([shown["start"]["entropy"]] * 2, [top - 0.5, top - len(arms) - 0.5], color="black", linewidth=0.8)
        axes.text(0, top, f"{mix} (line: at the start)", fontsize=8, va="center")
    axes.set_yticks([])
    axes.set_xlim(0, 1.25)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1])
    axes.set_title("Answer formats: normalised entropy after 60 steps\n(1: all formats alike; 0: one is left)")


def _forest(axes: Axes, bars: Sequence[Bar]) -> None:
    for place, (_, value, low, high, colour) in enumerate(bars):
        axes.errorbar(value, -place, xerr=[[value - low], [high - value]], fmt="o", color=colour, capsize=2)
    axes.set_yticks([-place for place in range(len(bars))], [label for label, *_ in bars])


if __name__ == "__main__":
    main()

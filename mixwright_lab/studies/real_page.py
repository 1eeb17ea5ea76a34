"""Writer of the tables and pictures of what became of a real model, contributing/evidence/real.md, from committed results.

Every figure is greedy success in points, with the 95 % interval over seeds that the study gave it; nothing is typed by hand.
The second picture has the arms of the three SFT studies.

    python -m mixwright_lab.studies.real_page
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mixwright_lab.studies import real_all_weights, real_grpo, real_mine, real_sft, real_skill_sft
from mixwright_lab.studies.real_models import (
    BLENDS,
    CHAT,
    EARLY,
    EQUAL,
    FROZEN,
    KINDS,
    NARROW,
    OWN,
    PENALTIES,
    PLAN,
    RATES,
    SCALED,
    SELF_MADE,
    SHARES,
    UNIFORM,
)
from mixwright_lab.studies.report import RESULTS, rounded
from mixwright_lab.studies.sft_study import GROUPS, NEW, UNREHEARSED, SFTStudy, mean_success
from mixwright_lab.text_page import replace_between

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "contributing" / "evidence" / "real.md"
PICTURE, KEPT_PICTURE = PAGE.with_name("real.png"), PAGE.with_name("kept.png")
MARKS = {
    name: (f"<!-- {name}: `python -m mixwright_lab.studies.real_page` writes it -->", f"<!-- /{name} -->")
    for name in ("results", "sft", "grpo", "others", "skill", "gate", "mine", "trusted", "kept")
}
SFT_ARMS = {
    FROZEN: "before",
    NARROW: "rows of the new task alone",
    UNIFORM: "all rows as they come, 10 % old rows",
    CHAT: "new rows and a quarter of unrelated chat rows",
    PLAN: "the plan as it was: true old rows, 27 %",
    OWN: "new rows and a quarter of own answers",
}
GRPO_ARMS = {
    real_grpo.FROZEN: "before",
    real_grpo.UNIFORM: "all rows as they come",
    real_grpo.LOW: "the same at a fifth of the rate",
    real_grpo.FILTER: "dynamic sampling, as DAPO has it",
    real_grpo.PLAN: "Mixwright's plan",
}
"""Arm -> what the tables call it."""
RESULT_ARMS = {
    FROZEN: "nothing",
    NARROW: "new rows alone",
    UNIFORM: "all rows as they come, a tenth of them old",
    CHAT: "new rows and a quarter of unrelated chat rows",
    EQUAL: "equal shares of the five tasks",
    PLAN: "new rows and a quarter of true old rows",
    OWN: "new rows and a quarter of own answers",
}
MANY_SEEDS = 5
"""Arms that fewer seeds have stand in no table of results."""
SHORT_NAMES = {
    FROZEN: "before",
    NARROW: "new rows alone",
    UNIFORM: "all rows as they come",
    PLAN: "more true old rows",
    OWN: "a quarter own answers",
}
LATER_NAMES = {
    **{arm: f"new rows, an eighth of {arm.replace(' and ', ' and an eighth of ')}" for arm in BLENDS},
    **{arm: f"new rows and {arm}" for arm in SHARES},
    **{arm: f"new rows alone, a KL penalty of {weight:g}" for arm, weight in PENALTIES.items()},
}
OTHER_ARMS = {
    SELF_MADE: "new rows and a quarter of prompts and answers that the model made",
    EQUAL: "equal shares, 80 % old",
    **{arm: f"new rows and a quarter of 60 true rows of {arm}" for arm in KINDS},
    **{arm: f"new rows alone, the adapter's change x {scale:g}" for arm, scale in SCALED.items()},
    **{arm: f"new rows alone, stopped after {step} steps" for arm, step in EARLY.items()},
    **{arm: f"new rows alone, {arm}" for arm in RATES},
    **LATER_NAMES,
}
SKILL_ARMS = {
    FROZEN: "before",
    NARROW: "rows of the new task alone",
    **{arm: f"the same, the adapter's change x {scale:g}" for arm, scale in SCALED.items()},
    **{arm: f"the same, stopped after {step} steps" for arm, step in EARLY.items()},
    UNIFORM: "all rows as they come, 10 % old rows",
    PLAN: "the plan as it was: true old rows, 27 %",
    OWN: "new rows and a quarter of own answers",
    **LATER_NAMES,
}
MINE_ARMS = {
    real_mine.FROZEN: "nothing",
    real_mine.ALL: "all 1,596 rows",
    real_mine.RANDOM: "as many as half of them, at random from the 1,500",
    real_mine.CHECKED: "the 96 checked rows alone",
    real_mine.RIGHT: "the right rows alone, which nobody knows",
    real_mine.INFLUENCE: "half by `influence`",
    real_mine.EASY: "the easy half, by `pruning`",
    real_mine.HARD: "the hard half, by `pruning`",
}
OURS, NULL, OTHER = "#1f5fa8", "#b3541e", "#6b7280"
Shown = Mapping[str, float]


def figures(name: str) -> dict[str, Any]:
    """The figures of a committed result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]


def points(shown: Shown | None, sign: str = "") -> str:
    """A figure with its interval; without one where all seeds have the same, and a dash where there is none."""
    if shown is None:
        return "-"
    if shown["low"] == shown["high"]:  # the same on all seeds
        return f"{shown['value']:{sign}.1f}"
    return f"{shown['value']:{sign}.1f} [{shown['low']:.1f}, {shown['high']:.1f}]"


def opposite(shown: Shown) -> Shown:
    """A difference the other way round."""
    return {"value": -shown["value"], "low": -shown["high"], "high": -shown["low"]}


def sft_table(study: str, arms: Mapping[str, str]) -> str:
    """Markdown: an arm per line, of those that all seeds have."""
    found = figures(study)
    lines = [
        "| trained on | new task | four old tasks | old tasks, this row minus the plan | share of the start left, % "
        "| three tasks without rows |",
        "|---|---|---|---|---|---|",
    ]
    for arm, name in arms.items():
        if (shown := found.get(arm)) is None:
            continue
        left = shown["rehearsed, no task above its start"]
        more = None if arm == PLAN else opposite(shown["rehearsed, plan less this"])
        lines.append(
            f"| {name} | {points(shown[NEW])} | {points(shown['rehearsed'])} | {points(more, '+')} "
            f"| {points(left)} | {points(shown['not rehearsed'])} |"
        )
    return "\n".join(lines)


def grpo_table() -> str:
    """Markdown: an arm per line."""
    found = figures("real_grpo")
    lines = [
        "| GRPO on | seeds | all six tasks | all six, minus all rows as they come on these seeds | rare task "
        "| completions |",
        "|---|---|---|---|---|---|",
    ]
    for arm, name in GRPO_ARMS.items():
        shown = found[arm]
        made = shown.get("completions", [0])
        lines.append(
            f"| {name} | {shown['seeds']} | {points(shown['greedy, all'])} "
            f"| {points(shown.get('greedy, all, less uniform'), '+')} | {points(shown['greedy, rare'])} "
            f"| {round(sum(made) / len(made)):,} |"
        )
    return "\n".join(lines)


def gate_table() -> str:
    """Markdown: what is true of a model, and how often the gate said what of such models."""
    counts = figures("real_branches")
    lines = ["| taught | by items that the gate did not see | models | passed | damaged | cannot tell |", "|---" * 6 + "|"]
    names = {"damaged": "lost more than 5 points", "harmless": "a loss above 5 points is excluded", "not scored": "neither"}
    for taught in ("tool calls", "skill"):
        for truth, name in names.items():
            said = [counts[f"{taught}, {truth}, {gate}"] for gate in ("passed", "damaged", "cannot tell")]
            lines.append(f"| {taught} | {name} | {sum(said)} | {' | '.join(map(str, said))} |")
    return "\n".join(lines)


def mine_table() -> str:
    """Markdown: an arm per line, tool calls in both worlds, and how much more than random rows."""
    rows = [row for row in real_mine.kept_rows() if row["seed"] in real_mine.SEEDS]
    lines = [
        "| trained on | a third wrong | there, minus random rows | none wrong | there, minus random rows |",
        "|---|---|---|---|---|",
    ]
    for arm, name in MINE_ARMS.items():
        cells = []
        for world in (real_mine.WRONG, real_mine.CLEAN):
            own = [real_mine.success(row) for row in rows if (row["world"], row["arm"]) == (world, arm)]
            less = real_mine.differences(rows, world, arm, real_mine.RANDOM)
            cells.append(points(rounded(own) if len(own) > 1 else None))
            cells.append(points(rounded(less) if len(less) > 1 and arm != real_mine.RANDOM else None, "+"))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def trusted_table() -> str:
    """Markdown: a seed and world per line, tool calls of each arm, and which rows `trusted` left out."""
    rows = {(row["world"], row["seed"], row["arm"]): row for row in real_mine.kept_rows()}
    lines = [
        "| seed | rows | all | random half | checked alone | `trusted` | wrong rows left out | right rows left out |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for world in (real_mine.WRONG, real_mine.CLEAN):
        for seed in real_mine.LATER_SEEDS:
            if (world, seed, real_mine.TRUSTED) not in rows:
                continue
            own = [rows.get((world, seed, arm)) for arm in real_mine.LATER_ARMS]
            cells = ["-" if row is None else f"{real_mine.success(row):.1f}" for row in own]
            kept = rows[world, seed, real_mine.TRUSTED]["remarks"]
            total = real_mine.ROWS + real_mine.CHECKED_ROWS
            wrong = round(real_mine.WRONG_SHARE * real_mine.ROWS) if world == real_mine.WRONG else 0
            left_out = (wrong - (kept["rows"] - kept["right"]), total - wrong - kept["right"])
            told = [f"{left_out[0]} of {wrong}" if wrong else "-", f"{left_out[1]} of {total - wrong:,}"]
            lines.append(f"| {seed} | {world} | {' | '.join([*cells, *told])} |")
    return "\n".join(lines)


STUDIES = {
    "tool calls": real_sft.STUDY,
    "a skill": real_skill_sft.STUDY,
    "tool calls, all weights": real_all_weights.STUDY,
}
"""What was taught -> the study."""
RESULT_ARMS_OF = {("tool calls, all weights", PLAN): "new rows and a fifth of true old rows"}
"""Where 60 rows of a task, each drawn four times at most, are no quarter of 4,800 draws."""


def rows_of_results(study: SFTStudy) -> tuple[dict[tuple[int, str], dict[str, Any]], list[int], list[str]]:
    """Rows by seed and arm; the seeds that have all of the arms; the arms of the results that enough seeds have."""
    rows = {(row["seed"], row["arm"]): row for row in study.kept_rows()}
    arms = [arm for arm in RESULT_ARMS if sum((seed, arm) in rows for seed in study.seeds) >= MANY_SEEDS]
    return rows, [seed for seed in study.seeds if all((seed, arm) in rows for arm in arms)], arms


def results_table() -> str:
    """Markdown: an arm of each SFT study per line; in brackets how much more than all rows as they come, paired by seed."""
    lines = [
        "| taught | trained on | new task | four old tasks | right before, and still, % | three tasks without rows |",
        "|---" * 6 + "|",
    ]
    for taught, study in STUDIES.items():
        rows, seeds, arms = rows_of_results(study)
        for arm in arms:
            own, joined, start = ([rows[seed, one] for seed in seeds] for one in (arm, UNIFORM, FROZEN))
            cells = []
            for tasks in ((NEW,), GROUPS["rehearsed"], UNREHEARSED):
                values = [mean_success(row, tasks) for row in own]
                less = [value - mean_success(row, tasks) for value, row in zip(values, joined, strict=True)]
                more = "" if arm in (FROZEN, UNIFORM) else f" ({points(rounded(less), '+')})"
                cells.append(f"{sum(values) / len(values):.1f}{more}")
            still = [still_right(before, after) for before, after in zip(start, own, strict=True)]
            cells.insert(2, "-" if arm == FROZEN else f"{sum(still) / len(still):.0f}")
            name = RESULT_ARMS_OF.get((taught, arm), RESULT_ARMS[arm])
            lines.append(f"| {taught} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def still_right(before: Mapping[str, Any], after: Mapping[str, Any]) -> float:
    """Percent of the old tasks' test items that were right before and are right after."""
    old = GROUPS["rehearsed"]
    right = [
        {(task, item) for task, item, score, *_ in row["answers"] if task in old and item.startswith("test") and score}
        for row in (before, after)
    ]
    return 100 * len(right[0] & right[1]) / len(right[0])


def kept_of_old_tasks() -> dict[str, dict[str, Shown]]:
    """Return, for each SFT study, the change of the old tasks with joined files, and what was right before and is lost."""
    found = {}
    for taught, study in STUDIES.items():
        rows, seeds, _ = rows_of_results(study)
        starts, joined, own = ([rows[seed, arm] for seed in seeds] for arm in (FROZEN, UNIFORM, OWN))
        old = GROUPS["rehearsed"]
        pairs = list(zip(starts, joined, strict=True))
        change = [mean_success(after, old) - mean_success(start, old) for start, after in pairs]
        found[taught] = {
            "joined files minus before": rounded(change),
            "lost with joined files": rounded([100 - still_right(*pair) for pair in pairs]),
            "lost with own answers": rounded([100 - still_right(*pair) for pair in zip(starts, own, strict=True)]),
        }
    return found


def kept_table() -> str:
    """Return Markdown: the mean of the old tasks beside the share of single answers that were lost."""
    lines = [
        "| taught | joined files, minus before: four old tasks | of what was right before, lost with joined files, % "
        "| with a quarter of own answers, % |",
        "|---" * 4 + "|",
    ]
    for taught, shown in kept_of_old_tasks().items():
        change, *lost = shown.values()
        lines.append(f"| {taught} | {points(change, '+')} | {' | '.join(points(one) for one in lost)} |")
    return "\n".join(lines)


TABLES: Mapping[str, Callable[[], str]] = {
    "results": results_table,
    "sft": lambda: sft_table("real_sft", SFT_ARMS),
    "others": lambda: sft_table("real_sft", OTHER_ARMS),
    "skill": lambda: sft_table("real_skill_sft", SKILL_ARMS),
    "grpo": grpo_table,
    "gate": gate_table,
    "mine": mine_table,
    "trusted": trusted_table,
    "kept": kept_table,
}
"""Name of the marks -> what stands between them."""


def written(page: str) -> str:
    """A page with the tables of now, wherever it has marks for one.

    Raises:
        InputError: a page without any marks, or marks that are not there once each.
    """
    present = [name for name, (begin, _) in MARKS.items() if begin in page]
    for name in present or TABLES:
        page = replace_between(page, *MARKS[name], TABLES[name]())
    return page


def draw() -> None:
    """Above: what SFT taught and what it left. Below: each arm of GRPO less all rows as they come."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.8, 8.2), dpi=130, layout="constrained")  # readable on a telephone
    above, below = figure.subplots(2, 1)
    found = figures("real_sft")
    colours = {PLAN: OURS, OWN: OURS, UNIFORM: NULL, NARROW: NULL}
    for arm, name in SFT_ARMS.items():
        new, kept = found[arm][NEW], found[arm]["rehearsed"]
        errors = [[[one["value"] - one["low"]], [one["high"] - one["value"]]] for one in (new, kept)]
        above.errorbar(
            new["value"], kept["value"], xerr=errors[0], yerr=errors[1], fmt="o", color=colours.get(arm, OTHER), capsize=2
        )
        place = {FROZEN: (4, 40), NARROW: (22, 3), UNIFORM: (14, 16), CHAT: (2, 22), PLAN: (8, 10), OWN: (2, 50)}[arm]
        line = {"arrowstyle": "-", "color": OTHER, "linewidth": 0.6}
        above.annotate(name, (new["value"], kept["value"]), place, fontsize=11, arrowprops=line)
    above.set(xlim=(-5, 105), ylim=(-3, 54), xlabel="new task, % right", ylabel="four old tasks, % right")
    above.set_title("SFT: what was learnt, and what was kept")
    found = figures("real_grpo")
    for place, arm in enumerate([*GRPO_ARMS][2:]):
        for offset, group, colour in ((0.15, "all", OURS), (-0.15, "rare", OTHER)):
            one = found[arm][f"greedy, {group}, less uniform"]
            spread = [[one["value"] - one["low"]], [one["high"] - one["value"]]]
            label = {"all": "all six tasks", "rare": "the rare task"}[group] if place == 0 else None
            below.errorbar(one["value"], -place + offset, xerr=spread, fmt="o", color=colour, capsize=2, label=label)
    names = [f"{name}\n({found[arm]['seeds']} seeds)" for arm, name in [*GRPO_ARMS.items()][2:]]
    below.set_yticks([0, -1, -2], names)
    below.axvline(0, color="black", linewidth=0.8)
    below.set_xlabel("points more than with all rows as they come")
    below.set_title("GRPO: against all rows as they come")
    below.legend(loc="upper right", frameon=False)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PICTURE)
    use_few_colours(PICTURE)


def draw_kept() -> None:
    """A panel per study, an arm per line: the new task, the four old ones, and the three without rows."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), dpi=110, layout="constrained")
    panels = figure.subplots(1, len(STUDIES), sharey=True)
    arms = (FROZEN, NARROW, UNIFORM, PLAN, OWN)
    groups = {"new task": (NEW,), "four old tasks": GROUPS["rehearsed"]}
    groups |= {"three tasks without rows": UNREHEARSED}
    for axes, (taught, study) in zip(panels, STUDIES.items(), strict=True):
        rows, seeds, _ = rows_of_results(study)
        for (name, tasks), mark, colour in zip(groups.items(), "so^", (OTHER, NULL, OURS), strict=True):
            for place, arm in enumerate(arms):
                shown = rounded([mean_success(rows[seed, arm], tasks) for seed in seeds])
                spread = [[shown["value"] - shown["low"]], [shown["high"] - shown["value"]]]
                axes.errorbar(
                    shown["value"],
                    -place,
                    xerr=spread,
                    fmt=mark,
                    color=colour,
                    capsize=2,
                    label=name if place == 0 else None,
                )
        axes.set(title=f"taught: {taught}", xlim=(-4, 104), xlabel="% right")
        axes.grid(axis="x", alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks([-place for place in range(len(arms))], [SHORT_NAMES[arm] for arm in arms])
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(groups), frameon=False)
    figure.savefig(KEPT_PICTURE)
    use_few_colours(KEPT_PICTURE)


def use_few_colours(path: Path) -> None:
    """A third of the bytes."""
    from PIL import Image

    with Image.open(path) as drawn:
        small = drawn.convert("RGB").quantize(64)
    small.save(path, optimize=True)


def main() -> None:
    """Write the page and the pictures."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    draw()
    draw_kept()
    print(*(one.relative_to(ROOT) for one in (PAGE, PICTURE, KEPT_PICTURE)))


if __name__ == "__main__":
    main()

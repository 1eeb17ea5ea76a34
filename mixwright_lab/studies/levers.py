"""Writer of the tables of contributing/evidence/controllers.md from the committed results: levers against three references.

Every figure is greedy success over everything held out, in points, with the 95 % interval that the study gave it; nothing is
typed by hand.

    python -m mixwright_lab.studies.levers
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright_lab.studies.report import RESULTS
from mixwright_lab.text_page import replace_between

PAGE = Path(__file__).parents[2] / "contributing" / "evidence" / "controllers.md"
BEGIN, END = "<!-- table: `python -m mixwright_lab.studies.levers` writes it -->", "<!-- /table -->"
GOALS, GOALS_END = "<!-- goals: `python -m mixwright_lab.studies.levers` writes it -->", "<!-- /goals -->"
HEAD = ("lever", "measured on", "against not training", "against uniform", "against equal shares", "default", "when")


@dataclass(frozen=True)
class Lever:
    """A row."""

    name: str
    where: str
    """World, in words."""
    source: str
    """Result, then keys down to the comparisons."""
    arms: tuple[str, str, str, str]
    """The lever's arm and the three references, as the result calls them."""
    default: str
    when: str


def rollouts(arm: str, reading: str = "outcome", pool: str = "wide") -> tuple[str, tuple[str, str, str, str]]:
    """Where a row of the rollouts study stands."""
    return f"rollouts/{pool}/{reading}", (arm, "frozen", "uniform", "equal shares")


def overhard(arm: str, pool: str) -> tuple[str, tuple[str, str, str, str]]:
    """Where a row of the over-hard study stands."""
    return f"overhard/{pool}/outcome", (arm, "frozen", "uniform", "equal shares")


def trl(arm: str, case: str) -> tuple[str, tuple[str, str, str, str]]:
    """Where a row of the runs through TRL stands."""
    return f"leave_one_out/{case}", (arm, "frozen", "uniform", "equal_shares")


SELECTOR, GATE = "selector `difficulty`", "gate `too_hard`, with `min_informative_share`"
WITH_DRIFT = "default, beta and drift"
LEVERS: Sequence[Lever] = (
    Lever(
        SELECTOR, "wide pool, one pass", *rollouts("ours"), "on (GRPO)", "levels are known and most rows are out of the band"
    ),
    Lever(SELECTOR, "the same, at 1,920 rollouts", *rollouts("ours", "early"), "", "rollouts are few"),
    Lever(SELECTOR, "the same, levels noisy", *rollouts("ours, noisy"), "", "see the text: equal shares of noisy levels"),
    Lever(SELECTOR, "the same, levels shuffled", *rollouts("ours, shuffled"), "", "wrong levels undo it"),
    Lever(SELECTOR, "the same, no levels", *rollouts("ours, absent"), "", "rows are drawn evenly"),
    Lever(SELECTOR, "five passes over 480 rows", *rollouts("ours", pool="again"), "", "rows come again and again"),
    Lever(SELECTOR, "pool all in band", *rollouts("ours", pool="in-band"), "", "nothing to choose"),
    Lever(SELECTOR, "40 % coin tosses", *rollouts("ours", pool="trap"), "", ""),
    Lever(SELECTOR, "over-hard pool, alone", *overhard("selector alone", "hard"), "", "levels tell the hard rows"),
    Lever("a rising target (AdaRFT)", "wide pool, one pass", *rollouts("target"), "gone", ""),
    Lever("a band fixed at the start", "wide pool, one pass", *rollouts("static_band"), "gone", ""),
    Lever(GATE, "over-hard pool, alone", *overhard("gate alone", "hard"), "on (GRPO)", "rows are drawn evenly"),
    Lever(
        GATE, "the same without `min_informative_share`", *overhard("gate alone, no survivors", "hard"), "", "never without"
    ),
    Lever(
        GATE, "half the rows without information", *overhard("gate alone", "blind"), "", "loses what a constant answer earns"
    ),
    Lever(GATE, "partial skill, majority answer", *overhard("gate alone", "partial"), "", ""),
    Lever("the trainer's own plan", "over-hard pool", *overhard("default", "hard"), "on (GRPO)", ""),
    Lever(
        "the trainer's own plan",
        "over-hard pool, no levels",
        *overhard("default", "unlabelled"),
        "",
        "a lower learning rate first",
    ),
    Lever("the same with beta 0.01 and `drift`", "over-hard pool, no levels", *overhard(WITH_DRIFT, "unlabelled"), "", ""),
    Lever(
        "a fifth of the learning rate",
        "over-hard pool, no levels",
        *overhard("lower rate", "unlabelled"),
        "yours",
        "first of all",
    ),
    Lever("the trainer's own plan", "half the rows without information", *overhard("default", "blind"), "", ""),
    Lever("the trainer's own plan", "pool in reach", *overhard("default", "medium"), "", ""),
    Lever(
        "controller `drift`, beta 0.01",
        "over-hard pool, alone",
        *overhard("drift alone", "hard"),
        "on where beta > 0",
        "no levels",
    ),
    Lever("beta 0.01 alone", "over-hard pool", *overhard("beta alone", "hard"), "yours", ""),
    Lever(
        "monitor `canary`, mastered items, beta 0.01",
        "over-hard pool, alone",
        *overhard("canary alone", "hard"),
        "gone",
        "what is mastered was measured",
    ),
    Lever(
        "25 % of draws kept for what is mastered",
        "over-hard pool, alone",
        *overhard("anchor alone", "hard"),
        "gone",
        "",
    ),
    Lever("the measured plan", "nine tasks, TRL", *trl("steered", "refusing"), "on request", ""),
    Lever("the same without gates", "nine tasks, TRL", *trl("without_gates", "refusing"), "", ""),
    Lever("the same without selector", "nine tasks, TRL", *trl("without_selector", "refusing"), "", ""),
    Lever("the same with weights by rows", "nine tasks, TRL", *trl("without_weights", "refusing"), "", ""),
    Lever("every lever on", "eight families, TRL", *trl("steered", "eight"), "never", ""),
)


def figures(source: str) -> Mapping[str, Any]:
    """The comparisons of a committed result."""
    name, *keys = source.split("/")
    found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["figures"]
    for key in keys:
        found = found[key]
    return found


def cell(shown: Mapping[str, Any] | None) -> str:
    """One comparison, in points; empty where it was not run."""
    if shown is None:
        return ""
    value, low, high = shown["success"]
    return f"{100 * value:+.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def table() -> str:
    """All rows as Markdown."""
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    for lever in LEVERS:
        found, (arm, *references) = figures(lever.source), lever.arms
        cells = [cell(found.get(f"{arm} - {reference}")) for reference in references]
        if not any(cells):
            raise SystemExit(f"{lever.source} has no comparison of {arm!r}; nothing was written")
        lines.append(f"| {' | '.join((lever.name, lever.where, *cells, lever.default, lever.when))} |")
    return "\n".join(lines)


def goals() -> str:
    """How many goals of each study on levers were reached."""
    parts = []
    for name in ("rollouts", "overhard", "leave_one_out", "overhead"):
        found = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["goals"]
        parts.append(f"{name} {sum(goal['reached'] for goal in found)} of {len(found)}")
    return f"Goals reached: {', '.join(parts)}; `goals` of each result names them, and nearly all of them ask for a gain."


def written(page: str) -> str:
    """The page with the tables of now."""
    for begin, end, made in ((BEGIN, END, table()), (GOALS, GOALS_END, goals())):
        page = replace_between(page, begin, end, made)
    return page


def main() -> None:
    """Write it."""
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE.relative_to(PAGE.parent.parent))


if __name__ == "__main__":
    main()

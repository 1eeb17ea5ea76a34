"""Section of what the plan foresaw for each arm (tasks starved, tasks at risk of damage), and of what came.

Source: foreseen of plan.yaml; sampled success after the run of each arm against frozen.
Unit: sampled success (pass@1) in percent and points, each cell counted once; 95 % intervals, each for itself.
Cost: reads the plan and the arms' measurements.
Blind spot: the rule does not know the learning rate, and a small one damages less; with few seeds most scores cannot tell.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.runs import RunFolder
from mixwright.verdict.arm_words import listed, with_interval
from mixwright.verdict.blocks import Block, Fold, Paragraph, Table, Terms
from mixwright.verdict.foreseen import Scored, scored
from mixwright.verdict.text import count, percent

CAME: dict[str, tuple[str, str, str]] = {
    "at risk": ("at risk of damage", "lost success", "lost less than 2 points"),
    "starved": ("starved", "did not gain 2 points", "gained"),
    "as forecast": ("with neither word", "ended in their 80 % range", "outside it"),
}
"""Word -> which tasks, what came of them when it was right, and when it was wrong."""
COLUMNS = ("arm", "task", "foreseen", "before", "range", "informative groups", "outcome", "change, points", "scored")


class ForeseenSection(Section):
    """What was foreseen per arm and task, scored."""

    ORDER: ClassVar[int] = 44
    TITLE: ClassVar[str] = "What each arm was expected to starve and to damage, and what came"

    def blocks(self, run: RunFolder) -> list[Block]:
        """A sentence per arm, a table of everything foreseen, and the reasons."""
        found = scored(run)
        if not found:
            return []
        arms = dict.fromkeys(came.foreseen.arm for came in found)
        said = [Paragraph(_sentence(arm, [came for came in found if came.foreseen.arm == arm])) for arm in arms]
        table = Table("Foreseen before the run, scored after", COLUMNS, [_row(came) for came in found], (3, 4, 5, 6, 7))
        why = [(came.foreseen.arm, came.foreseen.task, came.foreseen.word, came.foreseen.because) for came in found]
        reasons = Table("Why it was foreseen", ("arm", "task", "foreseen", "because"), why)
        return [*said, Terms(("informative group", "frozen")), table, Fold("Reasons, as written before the run", (reasons,))]


def _sentence(arm: str, found: list[Scored]) -> str:
    """How many of each word came true; an arm's changes are all against the same thing."""
    parts = []
    for word, (which, right, wrong) in CAME.items():
        own = [came.word for came in found if came.foreseen.word == word]
        if own:
            rest = [f"{own.count('wrong')} {wrong}"] if "wrong" in own else []
            rest += [f"{own.count('cannot tell')} cannot be told"] if "cannot tell" in own else []
            beside = f" ({listed(rest)})" if rest else ""
            parts.append(f"{own.count('right')} of {count(len(own), 'task')} {which} {right}{beside}")
    noise = percent(found[0].foreseen.noise)
    return (
        f"{arm} against {found[0].against}: {'; '.join(parts)}. Before the run {noise} of its informative groups were "
        "expected from cells whose answers are not shown to depend on their prompts."
    )


def _row(came: Scored) -> tuple[str, ...]:
    said = came.foreseen
    span = f"{percent(said.low)} to {percent(said.high)}"
    outcome = (percent(came.after), with_interval(came.change), came.word)
    return (said.arm, said.task, said.word, percent(said.before), span, f"{said.groups:.0f}", *outcome)

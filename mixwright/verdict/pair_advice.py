"""Advice on two checkpoints: what it rests on, its rules in order, and its sentence. Pure, fields only."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.judgement import NO_CHANGE_MARGIN
from mixwright.estimates.readings import format_unit
from mixwright.records import ChangeWord, Claim, Interval
from mixwright.verdict.text import count, format_amount, format_cell, join_words, with_verb

Advice = Literal[
    "check the grader", "none right", "too few seeds", "stop", "do not train", "mined rows", "train", "train with losses",
    "equal shares", "keep uniform", "no gain", "not this plan", "missing", "do not ship", "ship", "may replace",
    "unjudged", "gate", "cannot tell",
]  # fmt: skip
"""What a page may begin with, of a trial or of two checkpoints."""
CHECK_GRADER_SENTENCE = "Cannot tell: no answer was right before or after; check the grader."
NONE_RIGHT_SENTENCE = "Cannot tell: no answer was right before or after by the declared decoding, only samples were."


@dataclass(frozen=True, slots=True)
class PairSeen:
    """What the recommendation of a comparison of two checkpoints rests on."""

    right: bool
    """Whether any answer was right before or after."""
    word: ChangeWord
    """What the change of the primary outcome is called."""
    difference: Interval
    """Of the primary outcome, all held-out items; above 0 where the later checkpoint is better."""
    detectable: float
    """Size of a change that these items would show in 80 % of cases."""
    gate: Literal["passed", "damaged", "cannot tell"]
    """Outcome of the gate over what the user named, or over what was mastered before."""
    protected: int
    """Cells that the gate protects."""
    damaged: tuple[Claim, ...] = ()
    """Claims of damage."""
    after: str = "AFTER"
    """Name of the later checkpoint."""
    items: int = 0
    """Held-out items."""
    cells: int = 1
    """Tasks and levels that they are of."""
    needed: int | None = None
    """Items per cell that would do."""
    aim: float = NO_CHANGE_MARGIN
    """Change that so many would show."""
    pace: float = 0.0
    """Seconds that an item took on both checkpoints; 0 where it is not known."""
    exhausted: bool = False
    """Whether all items of the file were measured, so that no option can take more."""
    cut: float = 0.0
    """Share of completions cut short, of the checkpoint of which more were."""
    outcome: str = "success"
    """Name of the primary outcome."""
    unit: str = "share"
    """Of its difference."""
    lower: bool = False
    """Whether a lower value of the outcome is better."""
    graded: bool = True
    """Whether answers were graded; else nothing says whether they are right."""
    answered: bool = True
    """Whether any answer was right under the declared decoding."""
    margin: float = NO_CHANGE_MARGIN
    """Mean loss of what is protected that the gate had to exclude, a share."""
    asked: bool = False
    """Whether the user asked the gate, so that its exit code is this recommendation's."""
    named: bool = False
    """Whether the user said what is protected: then a loss of other tasks is told, and decides nothing."""
    others: tuple[Claim, ...] = ()
    """Damage of what the user did not name."""
    left_out: tuple[str, ...] = ()
    """Tasks of the file that no grader can judge, which were not measured."""
    unjudged: tuple[str, ...] = ()
    """Tasks of which no answer was right on either side, so that nothing says whether they were lost."""
    form: str = ""
    """Which tasks' answers went over to the form of another task's; empty where none did."""
    unlike: str = ""
    """What is said of protected tasks that nothing graded and whose former answers became far less likely, or nothing."""
    blind: tuple[str, ...] = ()
    """Protected tasks that the user named and of which no answer was right on either side."""
    because: str = ""
    """Which protected cells the gate calls damaged, and by what."""


def _would_ship(seen: PairSeen) -> bool:
    """Whether nothing that was judged speaks against it: the gate passes, or was not asked and has nothing to protect."""
    free = not seen.protected and not seen.asked and seen.word == "improves"
    return seen.graded and (seen.gate == "passed" or free)


def _worse(seen: PairSeen) -> bool:
    """Whether the whole outcome got worse, where nobody said what matters; of a loss that is gated its size decides."""
    return not (seen.named or (seen.asked and not seen.graded)) and seen.word in ("worsens", "less dependent", "commonest")


PAIR_RULES: tuple[tuple[Advice, Callable[[PairSeen], bool]], ...] = (
    ("do not ship", lambda seen: bool(seen.form)),
    ("do not ship", lambda seen: bool(seen.unlike)),
    ("check the grader", lambda seen: not seen.right),
    ("none right", lambda seen: not seen.answered),
    ("do not ship", lambda seen: bool(seen.damaged) or seen.gate == "damaged"),
    ("do not ship", _worse),
    ("unjudged", lambda seen: bool(seen.blind if seen.named else seen.unjudged or seen.left_out) and _would_ship(seen)),
    ("unjudged", lambda seen: seen.asked and not seen.graded),
    ("ship", lambda seen: not seen.unjudged and not seen.left_out and seen.word == "improves" and _would_ship(seen)),
    ("may replace", lambda seen: seen.gate == "passed" or (seen.word == "improves" and not seen.graded)),
    ("no gain", lambda seen: seen.word == "no change" and not seen.graded),
    ("cannot tell", lambda seen: True),
)
"""Rules for two checkpoints, in order."""


def format_pair(advice: Advice, seen: PairSeen) -> str:
    """The sentence of an advice."""
    name, unit, by = seen.after, format_unit(seen.unit), seen.difference.value
    up, down = ("lower", "higher") if seen.lower else ("better", "worse")
    moved = f"{seen.outcome} is {up if by >= 0 else down} by {format_amount(by, seen.unit)} {unit}"
    less = {
        "worsens": moved,
        "commonest": "it gives the commonest answer more often, which is no skill",
        "less dependent": "its answers depend less on their prompts",
    }.get(seen.word, "")
    what = "named" if seen.named else "mastered"
    if advice == "do not ship":
        why = f"{with_verb(_named(seen.damaged))} damaged" if seen.damaged else less
        if seen.form or seen.unlike:
            why = seen.form or f"{seen.unlike}, and no grader that was named or chosen judges the new ones"
        elif not seen.damaged and seen.gate == "damaged":
            why = seen.because or f"what was {what} is damaged"
        return f"Do not ship {name}: {why}."
    beside = f". Not named, and damaged: {join_words(_named(seen.others))}" if seen.others else ""
    safe = f"a mean loss of {format_amount(seen.margin, 'share')} points on what was {what} is excluded"
    safe = (safe if seen.protected else "nothing was mastered before that could be lost") + beside
    if seen.named and seen.unjudged:
        safe += f". Not judged, since no answer was right before or after: {join_words(seen.unjudged)}"
    if seen.named and seen.left_out:
        safe += f". Not measured, since nothing can be graded: {join_words(seen.left_out)}"
    if blind := seen.blind or seen.unjudged:
        unknown = f"{join_words(blind)}, where no answer was right before or after; check the grader"
    else:
        remedy = "name graders, or what is to be kept (--protect)"
        unknown = f"{join_words(seen.left_out)}, where nothing can be graded; {remedy}"
    undamaged = "nothing that needs no grader is shown to be damaged"
    if seen.others:
        undamaged = "nothing that was named is shown to be damaged by what needs no grader"
    gained = f"though {less}" if less else "for no gain that is shown" if seen.word != "improves" else f"and {moved}"
    told = {
        "unjudged": f"Cannot tell: {moved}, but nothing says what became of {unknown}."
        if seen.graded
        else f"Cannot tell: {moved}; {undamaged}, and no answer was graded{beside}.",
        "check the grader": CHECK_GRADER_SENTENCE,
        "none right": NONE_RIGHT_SENTENCE,
        "ship": f"Ship {name}: {moved}, and {safe}.",
        "may replace": f"{name} may be shipped, {gained}: {safe}."
        if seen.graded
        else f"{name} may replace the model before: {moved}. Whether its answers are right is not known: none was graded.",
        "no gain": f"Nothing is gained by {name}: {seen.outcome} changed by less than "
        f"{format_amount(NO_CHANGE_MARGIN, seen.unit)} {unit}.",
        "cannot tell": _format_items(seen),
    }
    return told[advice]


def _named(claims: Sequence[Claim]) -> list[str]:
    """The cells among the claims; whole tasks where there are none."""
    return [format_cell(claim) for claim in [claim for claim in claims if not claim.whole] or claims]


def _format_items(seen: PairSeen) -> str:
    """What the items at hand can show, and how many a smaller change would take."""
    unit, more = format_unit(seen.unit), "add rows to it" if seen.exhausted else "take more items"
    items = "one item" if seen.items == 1 else count(seen.items, "item")
    if seen.exhausted:
        items = "the only item of the file" if seen.items == 1 else f"all {items} of the file"
    most = 1.0 if seen.unit == "share" else math.inf
    if seen.items < MIN_ITEMS or not seen.detectable < most:
        return f"Cannot tell: {items} {'is' if seen.items == 1 else 'are'} too few to see any change; {more}."
    size, aim = (format_amount(value, seen.unit) for value in (seen.detectable, seen.aim))
    head = f"Cannot tell: {items} can only show a change of {size} {unit} or more"
    if not seen.needed:
        return f"{head}; {more}."
    return f"{head}; a change of {aim} {unit} takes about {seen.needed:,} items per task and level."

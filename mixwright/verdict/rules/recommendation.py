"""Recommendation that a page begins with, by a written rule: the first condition that holds decides. Pure, fields only.

The two tables of rules are written out in docs/luck.md. Nothing is searched for in a sentence. All held-out items count;
"train" needs a lever that *helps*, which means that it improves on not training, uniform and equal shares, each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.judgement import MIN_SEEDS, NO_CHANGE_MARGIN
from mixwright.estimates.readings import format_unit
from mixwright.records import ChangeWord, Claim, Interval, LeverWord, Proof, Selection
from mixwright.verdict.page.blocks import Tone
from mixwright.verdict.page.text import count, format_amount, format_cell, join_words, with_verb
from mixwright.verdict.rules.spared import Place, format_spared, place_of

FROZEN_ARM, UNIFORM_ARM, EQUAL_SHARES_ARM, STEERED_ARM = "frozen", "uniform", "equal_shares", "steered"
"""References that a trial has by default, and the arm that trains the plan as it stands."""
Advice = Literal[
    "check the grader", "none right", "too few seeds", "stop", "do not train", "mined rows", "train", "train with losses",
    "equal shares", "keep uniform", "no gain", "not this plan", "missing", "do not ship", "ship", "may replace",
    "unjudged", "gate", "cannot tell",
]  # fmt: skip
"""What a page may begin with, of a trial or of two checkpoints."""
CHECK_GRADER_SENTENCE = "Cannot tell: no answer was right before or after; check the grader."
NONE_RIGHT_SENTENCE = "Cannot tell: no answer was right before or after by the declared decoding, only samples were."


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do, in one sentence."""

    advice: Advice
    """By the rule."""
    sentence: str
    """For people."""
    tone: Tone
    """How it is coloured."""


def recommend(seen: TrialSeen | PairSeen) -> Recommendation:
    """The advice of the first rule that holds."""
    if isinstance(seen, TrialSeen):
        found: Advice = next(name for name, holds in TRIAL_RULES if holds(seen))
        taken = found != "mined rows" or (seen.selection is not None and seen.selection.advice == "train on it")
        proven = seen.proof == "beats its nulls" and taken and not seen.damaged.get(seen.lever)
        return Recommendation(found, _of_trial(found, seen), _tone(found, proven=proven))
    other: Advice = next(name for name, holds in PAIR_RULES if holds(seen))
    return Recommendation(other, _of_pair(other, seen), _tone(other, proven=seen.gate == "passed"))


def _tone(advice: Advice, *, proven: bool) -> Tone:
    if advice in ("stop", "do not train", "not this plan", "do not ship", "gate"):
        return "bad"
    return "good" if proven and advice in ("train", "ship", "mined rows") else "plain"


@dataclass(frozen=True, slots=True)
class Contrast:
    """One arm against another on the primary outcome."""

    arm: str
    """Name of the arm."""
    against: str
    """Name of the arm it is compared with."""
    word: ChangeWord
    """What the difference is called."""
    difference: Interval
    """Arm minus reference; above 0 where the arm is better."""
    detectable: float = 0.0
    """Size of a true difference that such a trial would see in 80 % of cases."""


@dataclass(frozen=True, slots=True)
class TrialSeen:
    """What the recommendation of a trial rests on."""

    seeds: int
    """Training seeds of every arm."""
    right: bool
    """Whether any answer of any arm was right before or after."""
    trained: tuple[str, ...]
    """Arms that train, nulls left out."""
    contrasts: tuple[Contrast, ...]
    """The primary outcome: levers against references, references against not training and each other."""
    damaged: Mapping[str, tuple[Claim, ...]] = field(default_factory=dict)
    """Arm -> its claims of damage against the starting model."""
    changes: Mapping[str, tuple[Claim, ...]] = field(default_factory=dict)
    """Arm that trained -> its claims of what any of them damaged, whatever they say."""
    lever: str = ""
    """The lever that the page is about; empty when none was tried."""
    word: LeverWord | None = None
    """How it was judged."""
    missing: tuple[str, ...] = ()
    """References that did not run."""
    proof: Proof = "not tried"
    """What its nulls showed."""
    margin: float = 0.05
    """Change that does not matter."""
    needed: int | None = None
    """Seeds that would see a difference of the margin; None where no number of seeds would."""
    outcome: str = "success"
    """Name of the primary outcome."""
    unit: str = "share"
    """Of its differences, which are above 0 where the arm is better."""
    lower: bool = False
    """Whether a lower value of the outcome is better."""
    items: int = 0
    """Held-out items that were measured; 0 where it is not known."""
    exhausted: bool = False
    """Whether these are all that there are."""
    graded: bool = True
    """Whether answers were graded."""
    steps: int = 0
    """Optimiser steps of every arm that trains; 0 where they are not known."""
    draws: int = 0
    """Rows drawn in them, repeats included."""
    rows: int = 0
    """Training rows that there are."""
    answered: bool = True
    """Whether any answer of any arm was right under the declared decoding."""
    selection: Selection | None = None
    """Of a trial over data, what it says of the mined rows."""
    gate: Literal["passed", "damaged", "cannot tell"] | None = None
    """What the gate answers of the leading arm; None where it was not asked."""
    because: str = ""
    """What it calls damaged."""

    @property
    def no_effect(self) -> bool:
        """Whether nothing is damaged, and every arm that trains is shown to be within the margin of not training."""
        found = [self.contrast(arm, FROZEN_ARM) for arm in self.trained]
        near = all(c is not None and abs(c.difference.low) < self.margin for c in found)
        return near and all(self.at_best_equal(arm, FROZEN_ARM) for arm in self.trained) and not any(self.damaged.values())

    def contrast(self, arm: str, against: str) -> Contrast | None:
        """One contrast, if the trial has it."""
        return next((found for found in self.contrasts if (found.arm, found.against) == (arm, against)), None)

    def word_of(self, arm: str, against: str) -> ChangeWord | None:
        """What the difference of two arms is called, if the trial has it."""
        found = self.contrast(arm, against)
        return found.word if found is not None else None

    def at_best_equal(self, arm: str, against: str) -> bool:
        """Shown not to be better by the margin."""
        found = self.contrast(arm, against)
        return found is not None and found.difference.n > 0 and found.difference.high < self.margin

    def damaged_everywhere(self) -> list[str]:
        """Tasks in which every arm that trains damaged something."""
        tasks = [{claim.task for claim in self.damaged.get(arm, ())} for arm in self.trained]
        return sorted(set.intersection(*tasks)) if tasks else []

    def named_losses(self) -> dict[Place, str]:
        """What the lever damaged, and every cell of a task that all arms damage, as a sentence names it."""
        everywhere = self.damaged_everywhere()
        lost = [*self.damaged.get(self.lever, ())]
        lost += [claim for claims in self.damaged.values() for claim in claims if claim.task in everywhere]
        return {place_of(claim): format_cell(claim) for claim in lost}


def _every(seen: TrialSeen, holds: Callable[[str], bool]) -> bool:
    return bool(seen.trained) and all(map(holds, seen.trained))


def _equal_shares_win(seen: TrialSeen) -> bool:
    return all(seen.word_of(EQUAL_SHARES_ARM, other) == "improves" for other in (FROZEN_ARM, UNIFORM_ARM))


def _uniform_is_best(seen: TrialSeen) -> bool:
    others = [arm for arm in seen.trained if arm != UNIFORM_ARM]
    improves = seen.word_of(UNIFORM_ARM, FROZEN_ARM) == "improves"
    return improves and all(seen.at_best_equal(arm, UNIFORM_ARM) for arm in others)


TRIAL_RULES: tuple[tuple[Advice, Callable[[TrialSeen], bool]], ...] = (
    ("check the grader", lambda seen: not seen.right),
    ("none right", lambda seen: not seen.answered and seen.selection is None),
    ("too few seeds", lambda seen: seen.seeds < MIN_SEEDS),
    ("stop", lambda seen: bool(seen.damaged_everywhere())),
    ("do not train", lambda seen: _every(seen, lambda arm: seen.word_of(arm, FROZEN_ARM) == "worsens")),
    ("gate", lambda seen: seen.gate not in (None, "passed") and (seen.word == "helps" or seen.selection is not None)),
    ("mined rows", lambda seen: seen.selection is not None),
    ("train", lambda seen: seen.word == "helps" and not seen.damaged.get(seen.lever)),
    ("train with losses", lambda seen: seen.word == "helps"),
    ("equal shares", _equal_shares_win),
    ("keep uniform", _uniform_is_best),
    ("no gain", lambda seen: _every(seen, lambda arm: seen.at_best_equal(arm, FROZEN_ARM))),
    ("not this plan", lambda seen: seen.word == "harms"),
    ("missing", lambda seen: bool(seen.missing)),
    ("cannot tell", lambda seen: True),
)
"""Rules for a trial, in order."""


def _of_trial(advice: Advice, seen: TrialSeen) -> str:
    plan = "this plan" if seen.lever in ("", STEERED_ARM) else f"arm {seen.lever}"
    damaged = {place_of(claim): format_cell(claim) for claim in seen.damaged.get(seen.lever, ())}
    others, lost = [arm for arm in seen.trained if arm != seen.lever], join_words(list(damaged.values()))
    spared = format_spared(damaged, seen.changes, others, seen.margin, lower=seen.lower)
    spared = f" ({spared})" if spared else ""
    own = [found for found in seen.contrasts if found.arm == seen.lever]
    sizes = join_words([format_amount(found.difference.value, seen.unit) for found in own])
    against = join_words([found.against for found in own])
    harm = f"a higher {seen.outcome}" if seen.lower else "a loss"
    better, unit = "lower" if seen.lower else "better", format_unit(seen.unit)
    gain = f"{seen.outcome} is {better} by {sizes} {unit} than with {against}"
    margin = f"{format_amount(seen.margin, seen.unit)} {unit}"
    gains = f"gains {margin}" if seen.graded else f"{'lowers' if seen.lower else 'raises'} {seen.outcome} by {margin}"
    drawn = f" in {count(seen.steps, 'step')}" if seen.steps else ""
    if seen.steps and seen.draws and seen.rows:
        drawn += f", which drew {count(seen.draws, 'time')} from {count(seen.rows, 'training row')}"
    told = {
        "check the grader": CHECK_GRADER_SENTENCE,
        "none right": NONE_RIGHT_SENTENCE,
        "too few seeds": f"Cannot tell: {count(seen.seeds, 'seed')}, and nothing is judged with fewer than {MIN_SEEDS}; "
        f"take {seen.needed or 8} seeds.",
        "stop": f"Stop: {with_verb([f'task {task}' for task in seen.damaged_everywhere()])} being damaged by every arm "
        f"({join_words(seen.trained)}).",
        "do not train": "Do not train on this data yet: not training is better than every arm.",
        "gate": f"Do not use {plan} yet: {seen.because}."
        if seen.gate == "damaged"
        else f"Cannot tell whether {plan} is safe: the gate's items cannot exclude a loss of what is protected.",
        "mined rows": (seen.selection.sentence if seen.selection else "") + (f" It damages {lost}{spared}." if lost else ""),
        "train": f"Train with {plan}: {gain}.",
        "train with losses": f"Train with {plan} only if {harm} on {lost} is acceptable{spared}: {gain}.",
        "equal shares": "Use equal shares: drawing tasks and levels equally often beats not training and uniform sampling"
        + (f", and {plan} is not shown to beat them." if seen.lever else "."),
        "keep uniform": "Keep uniform: nothing here beats it."
        if len(seen.trained) > 1
        else "Keep uniform: it is better than not training, and no other arm was tried.",
        "no gain": f"No gain: no arm {gains} over not training{drawn}.",
        "not this plan": f"Do not use {plan}: {join_words([c.against for c in own if c.word == 'worsens'])} did better.",
        "missing": f"Cannot tell: {join_words(seen.missing)} did not run, and without it nothing is said to help.",
        "cannot tell": _format_seeds(seen),
    }
    return told[advice]


def _format_seeds(seen: TrialSeen) -> str:
    """What the seeds at hand can show, and what a smaller difference would take."""
    own = [found for found in seen.contrasts if not seen.lever or found.arm == seen.lever]
    size = max((found.detectable for found in own), default=0.0)
    if not size:
        return "Cannot tell: nothing was compared."
    told = f"{format_amount(size, seen.unit)} {format_unit(seen.unit)}"
    head = f"Cannot tell: {count(seen.seeds, 'seed')} {'sees' if seen.seeds == 1 else 'see'} a difference of {told}"
    if seen.needed is not None:
        return f"{head}; take {seen.needed} seeds."
    known = f" than the {seen.items:,} there are" if seen.exhausted else ""
    margin = format_amount(seen.margin, seen.unit)
    return f"{head}, and more seeds alone would not see one of {margin}; take more held-out items{known}."


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


def _of_pair(advice: Advice, seen: PairSeen) -> str:
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

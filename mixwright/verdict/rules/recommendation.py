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
from mixwright.verdict.page.text import format_cell, format_count, format_magnitude, join_words, with_verb
from mixwright.verdict.rules.spared import ClaimKey, claim_key, format_spared

FROZEN_ARM, UNIFORM_ARM, EQUAL_SHARES_ARM, STEERED_ARM = "frozen", "uniform", "equal_shares", "steered"
"""References that a trial has by default, and the arm that trains the plan as it stands."""
Advice = Literal[
    "check the grader", "none right", "too few seeds", "stop", "do not train", "mined rows", "train", "train with losses",
    "equal shares", "keep uniform", "no gain", "not this plan", "missing", "do not ship", "ship", "may replace",
    "not learned", "unjudged", "gate", "cannot tell",
]  # fmt: skip
"""What a page may begin with, of a trial or of two checkpoints."""
CHECK_GRADER_SENTENCE = "Cannot tell: no answer was right before or after; nothing was learned, or the grader misreads."
UNGRADED_REASON = "nothing can be graded"
"""Why tasks are left out, where nobody says otherwise."""
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


def recommend(basis: TrialBasis | PairBasis) -> Recommendation:
    """The advice of the first rule that holds."""
    if isinstance(basis, TrialBasis):
        advice: Advice = next(name for name, holds in TRIAL_RULES if holds(basis))
        is_worth_training = advice != "mined rows" or (
            basis.selection is not None and basis.selection.advice == "train on it"
        )
        is_proven = basis.proof == "beats its nulls" and is_worth_training and not basis.damaged.get(basis.lever)
        return Recommendation(advice, _format_trial_sentence(advice, basis), _choose_tone(advice, proven=is_proven))
    pair_advice: Advice = next(name for name, holds in PAIR_RULES if holds(basis))
    return Recommendation(
        pair_advice, _format_pair_sentence(pair_advice, basis), _choose_tone(pair_advice, proven=basis.gate == "passed")
    )


def _choose_tone(advice: Advice, *, proven: bool) -> Tone:
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
class TrialBasis:
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
    seeds_needed: int | None = None
    """Seeds that would see a difference of the margin; None where no number of seeds would."""
    outcome: str = "success"
    """Name of the primary outcome."""
    unit: str = "share"
    """Of its differences, which are above 0 where the arm is better."""
    lower_is_better: bool = False
    """Whether a lower value of the outcome is better."""
    items: int = 0
    """Held-out items that were measured; 0 where it is not known."""
    all_items_measured: bool = False
    """Whether these are all that there are."""
    graded: bool = True
    """Whether answers were graded."""
    steps: int = 0
    """Optimiser steps of every arm that trains; 0 where they are not known."""
    draws: int = 0
    """Rows drawn in them, repeats included."""
    rows: int = 0
    """Training rows that there are."""
    any_right: bool = True
    """Whether any answer of any arm was right under the declared decoding."""
    selection: Selection | None = None
    """Of a trial over data, what it says of the mined rows."""
    gate: Literal["passed", "damaged", "cannot tell"] | None = None
    """What the gate answers of the leading arm; None where it was not asked."""
    damage_text: str = ""
    """What it calls damaged."""

    @property
    def no_effect(self) -> bool:
        """Whether nothing is damaged, and every arm that trains is shown to be within the margin of not training."""
        contrasts = [self.contrast(arm, FROZEN_ARM) for arm in self.trained]
        is_within_margin = all(contrast is not None and abs(contrast.difference.low) < self.margin for contrast in contrasts)
        return (
            is_within_margin
            and all(self.at_best_equal(arm, FROZEN_ARM) for arm in self.trained)
            and not any(self.damaged.values())
        )

    def contrast(self, arm: str, against: str) -> Contrast | None:
        """One contrast, if the trial has it."""
        return next((contrast for contrast in self.contrasts if (contrast.arm, contrast.against) == (arm, against)), None)

    def word_of(self, arm: str, against: str) -> ChangeWord | None:
        """What the difference of two arms is called, if the trial has it."""
        contrast = self.contrast(arm, against)
        return contrast.word if contrast is not None else None

    def at_best_equal(self, arm: str, against: str) -> bool:
        """Shown not to be better by the margin."""
        contrast = self.contrast(arm, against)
        return contrast is not None and contrast.difference.n > 0 and contrast.difference.high < self.margin

    def damaged_everywhere(self) -> list[str]:
        """Tasks in which every arm that trains damaged something."""
        tasks = [{claim.task for claim in self.damaged.get(arm, ())} for arm in self.trained]
        return sorted(set.intersection(*tasks)) if tasks else []

    def named_losses(self) -> dict[ClaimKey, str]:
        """What the lever damaged, and every cell of a task that all arms damage, as a sentence names it."""
        everywhere = self.damaged_everywhere()
        damage_claims = [*self.damaged.get(self.lever, ())]
        damage_claims += [claim for claims in self.damaged.values() for claim in claims if claim.task in everywhere]
        return {claim_key(claim): format_cell(claim) for claim in damage_claims}


def _holds_for_every_arm(basis: TrialBasis, holds_for: Callable[[str], bool]) -> bool:
    return bool(basis.trained) and all(map(holds_for, basis.trained))


def _equal_shares_win(basis: TrialBasis) -> bool:
    return all(basis.word_of(EQUAL_SHARES_ARM, reference) == "improves" for reference in (FROZEN_ARM, UNIFORM_ARM))


def _uniform_is_best(basis: TrialBasis) -> bool:
    other_arms = [arm for arm in basis.trained if arm != UNIFORM_ARM]
    improves = basis.word_of(UNIFORM_ARM, FROZEN_ARM) == "improves"
    return improves and all(basis.at_best_equal(arm, UNIFORM_ARM) for arm in other_arms)


TRIAL_RULES: tuple[tuple[Advice, Callable[[TrialBasis], bool]], ...] = (
    ("check the grader", lambda basis: not basis.right),
    ("none right", lambda basis: not basis.any_right and basis.selection is None),
    ("too few seeds", lambda basis: basis.seeds < MIN_SEEDS),
    ("stop", lambda basis: bool(basis.damaged_everywhere())),
    ("do not train", lambda basis: _holds_for_every_arm(basis, lambda arm: basis.word_of(arm, FROZEN_ARM) == "worsens")),
    ("gate", lambda basis: basis.gate not in (None, "passed") and (basis.word == "helps" or basis.selection is not None)),
    ("mined rows", lambda basis: basis.selection is not None),
    ("train", lambda basis: basis.word == "helps" and not basis.damaged.get(basis.lever)),
    ("train with losses", lambda basis: basis.word == "helps"),
    ("equal shares", _equal_shares_win),
    ("keep uniform", _uniform_is_best),
    ("no gain", lambda basis: _holds_for_every_arm(basis, lambda arm: basis.at_best_equal(arm, FROZEN_ARM))),
    ("not this plan", lambda basis: basis.word == "harms"),
    ("missing", lambda basis: bool(basis.missing)),
    ("cannot tell", lambda basis: True),
)
"""Rules for a trial, in order."""


def _format_trial_sentence(advice: Advice, basis: TrialBasis) -> str:
    plan = "this plan" if basis.lever in ("", STEERED_ARM) else f"arm {basis.lever}"
    loss_names = {claim_key(claim): format_cell(claim) for claim in basis.damaged.get(basis.lever, ())}
    other_arms, damaged_text = [arm for arm in basis.trained if arm != basis.lever], join_words(list(loss_names.values()))
    spared_text = format_spared(loss_names, basis.changes, other_arms, basis.margin, lower_is_better=basis.lower_is_better)
    spared_text = f" ({spared_text})" if spared_text else ""
    lever_contrasts = [contrast for contrast in basis.contrasts if contrast.arm == basis.lever]
    gain_sizes = join_words([format_magnitude(contrast.difference.value, basis.unit) for contrast in lever_contrasts])
    against = join_words([contrast.against for contrast in lever_contrasts])
    better_arms = join_words([contrast.against for contrast in lever_contrasts if contrast.word == "worsens"])
    harm = f"a higher {basis.outcome}" if basis.lower_is_better else "a loss"
    better_word, unit = "lower" if basis.lower_is_better else "better", format_unit(basis.unit)
    gain = f"{basis.outcome} is {better_word} by {gain_sizes} {unit} than with {against}"
    margin = f"{format_magnitude(basis.margin, basis.unit)} {unit}"
    gains_verb = (
        f"gains {margin}"
        if basis.graded
        else f"{'lowers' if basis.lower_is_better else 'raises'} {basis.outcome} by {margin}"
    )
    drawn_text = f" in {format_count(basis.steps, 'step')}" if basis.steps else ""
    if basis.steps and basis.draws and basis.rows:
        drawn_text += f", which drew {format_count(basis.draws, 'time')} from {format_count(basis.rows, 'training row')}"
    sentence_by_advice = {
        "check the grader": CHECK_GRADER_SENTENCE,
        "none right": NONE_RIGHT_SENTENCE,
        "too few seeds": f"Cannot tell: {format_count(basis.seeds, 'seed')}, and nothing is judged with fewer than "
        f"{MIN_SEEDS}; take {basis.seeds_needed or 8} seeds.",
        "stop": f"Stop: {with_verb([f'task {task}' for task in basis.damaged_everywhere()])} being damaged by every arm "
        f"({join_words(basis.trained)}).",
        "do not train": "Do not train on this data yet: not training is better than every arm.",
        "gate": f"Do not use {plan} yet: {basis.damage_text}."
        if basis.gate == "damaged"
        else f"Cannot tell whether {plan} is safe: the gate's items cannot exclude a loss of what is protected.",
        "mined rows": (basis.selection.sentence if basis.selection else "")
        + (f" It damages {damaged_text}{spared_text}." if damaged_text else ""),
        "train": f"Train with {plan}: {gain}.",
        "train with losses": f"Train with {plan} only if {harm} on {damaged_text} is acceptable{spared_text}: {gain}.",
        "equal shares": "Use equal shares: drawing tasks and levels equally often beats not training and uniform sampling"
        + (f", and {plan} is not shown to beat equal shares." if basis.lever else "."),
        "keep uniform": "Keep uniform: nothing here beats it."
        if len(basis.trained) > 1
        else "Keep uniform: it is better than not training, and no other arm was tried.",
        "no gain": f"No gain: no arm {gains_verb} over not training{drawn_text}.",
        "not this plan": f"Do not use {plan}: {better_arms} did better.",
        "missing": f"Cannot tell: {join_words(basis.missing)} did not run, and without it nothing is said to help.",
        "cannot tell": _format_seeds(basis),
    }
    return sentence_by_advice[advice]


def _format_seeds(basis: TrialBasis) -> str:
    """What the seeds at hand can show, and what a smaller difference would take."""
    contrasts = [contrast for contrast in basis.contrasts if not basis.lever or contrast.arm == basis.lever]
    detectable = max((contrast.detectable for contrast in contrasts), default=0.0)
    if not detectable:
        return "Cannot tell: nothing was compared."
    size_text = f"{format_magnitude(detectable, basis.unit)} {format_unit(basis.unit)}"
    cannot_tell_text = (
        f"Cannot tell: {format_count(basis.seeds, 'seed')} {'sees' if basis.seeds == 1 else 'see'} a difference of "
        f"{size_text}"
    )
    if basis.seeds_needed is not None:
        return f"{cannot_tell_text}; take {basis.seeds_needed} seeds."
    more_than = f" than the {basis.items:,} there are" if basis.all_items_measured else ""
    margin = format_magnitude(basis.margin, basis.unit)
    return f"{cannot_tell_text}, and more seeds alone would not see one of {margin}; take more held-out items{more_than}."


@dataclass(frozen=True, slots=True)
class PairBasis:
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
    items_needed: int | None = None
    """Items per cell that would do."""
    aim: float = NO_CHANGE_MARGIN
    """Change that so many would show."""
    pace: float = 0.0
    """Seconds that an item took on both checkpoints; 0 where it is not known."""
    all_items_measured: bool = False
    """Whether all items of the file were measured, so that no option can take more."""
    cut: float = 0.0
    """Share of completions cut short, of the checkpoint of which more were."""
    outcome: str = "success"
    """Name of the primary outcome."""
    unit: str = "share"
    """Of its difference."""
    lower_is_better: bool = False
    """Whether a lower value of the outcome is better."""
    graded: bool = True
    """Whether answers were graded; else nothing says whether they are right."""
    any_right: bool = True
    """Whether any answer was right under the declared decoding."""
    margin: float = NO_CHANGE_MARGIN
    """Mean loss of what is protected that the gate had to exclude, a share."""
    asked: bool = False
    """Whether the user asked the gate, so that its exit code is this recommendation's."""
    named: bool = False
    """Whether the user said what is protected: then a loss of other tasks is told, and decides nothing."""
    damage_elsewhere: tuple[Claim, ...] = ()
    """Damage of what the user did not name."""
    tasks_left_out: tuple[str, ...] = ()
    """Tasks of the file that no grader can judge, or of logs that cannot be compared, which were not measured."""
    protected_left_out: tuple[str, ...] = ()
    """Those of them that the user named."""
    left_out_reason: str = UNGRADED_REASON
    """Why they were left out, in words that follow `where`."""
    tasks_without_right_answer: tuple[str, ...] = ()
    """Tasks of which no answer was right on either side, so that nothing says whether they were lost."""
    form_change: str = ""
    """Which tasks' answers went over to the form of another task's; empty where none did."""
    answers_became_unlikely: str = ""
    """What is said of protected tasks that nothing graded and whose former answers became far less likely, or nothing."""
    tasks_not_learned: tuple[str, ...] = ()
    """Tasks that the gate does not protect and that are not shown to be above chance after, with what was right of each,
    where nothing else was learned."""
    tasks_never_right: tuple[str, ...] = ()
    """Protected tasks that the user named and of which no answer was right on either side."""
    damage_text: str = ""
    """Which protected cells the gate calls damaged, and by what."""
    gate_reason: str = ""
    """Why the gate cannot tell, where that is not too few items."""


def _would_ship(basis: PairBasis) -> bool:
    """Whether nothing that was judged speaks against it: the gate passes, or was not asked and has nothing to protect."""
    is_free = not basis.protected and not basis.asked and basis.word == "improves"
    return basis.graded and (basis.gate == "passed" or is_free)


def _is_worse(basis: PairBasis) -> bool:
    """Whether the whole outcome got worse, where nobody said what matters; of a loss that is gated its size decides."""
    return not (basis.named or (basis.asked and not basis.graded)) and basis.word in (
        "worsens",
        "less dependent",
        "commonest",
    )


PAIR_RULES: tuple[tuple[Advice, Callable[[PairBasis], bool]], ...] = (
    ("do not ship", lambda basis: bool(basis.form_change)),
    ("do not ship", lambda basis: bool(basis.answers_became_unlikely)),
    ("check the grader", lambda basis: not basis.right),
    ("none right", lambda basis: not basis.any_right),
    ("do not ship", lambda basis: bool(basis.damaged) or basis.gate == "damaged"),
    ("do not ship", _is_worse),
    (
        "unjudged",
        lambda basis: (
            bool(
                basis.tasks_never_right or basis.protected_left_out
                if basis.named
                else basis.tasks_without_right_answer or basis.tasks_left_out
            )
            and _would_ship(basis)
        ),
    ),
    ("unjudged", lambda basis: basis.asked and not basis.graded),
    ("not learned", lambda basis: bool(basis.tasks_not_learned) and basis.word != "improves" and _would_ship(basis)),
    (
        "ship",
        lambda basis: (
            not basis.tasks_without_right_answer
            and not basis.tasks_left_out
            and basis.word == "improves"
            and _would_ship(basis)
        ),
    ),
    ("may replace", lambda basis: basis.gate == "passed" or (basis.word == "improves" and not basis.graded)),
    ("no gain", lambda basis: basis.word == "no change" and not basis.graded),
    ("cannot tell", lambda basis: True),
)
"""Rules for two checkpoints, in order."""


def _format_pair_sentence(advice: Advice, basis: PairBasis) -> str:
    """The sentence of an advice."""
    name, unit, difference = basis.after, format_unit(basis.unit), basis.difference.value
    word_better, word_worse = ("lower", "higher") if basis.lower_is_better else ("better", "worse")
    direction = word_better if difference >= 0 else word_worse
    change_text = f"{basis.outcome} is {direction} by {format_magnitude(difference, basis.unit)} {unit}"
    worse_text = {
        "worsens": change_text,
        "commonest": "it gives the commonest answer more often, which is no skill",
        "less dependent": "its answers depend less on their prompts",
    }.get(basis.word, "")
    protected_word = "named" if basis.named else "mastered"
    if advice == "do not ship":
        reason = f"{with_verb(_name_cells(basis.damaged))} damaged" if basis.damaged else worse_text
        if basis.form_change or basis.answers_became_unlikely:
            reason = (
                basis.form_change
                or f"{basis.answers_became_unlikely}, and no grader that was named or chosen judges the new ones"
            )
        elif not basis.damaged and basis.gate == "damaged":
            reason = basis.damage_text or f"what was {protected_word} is damaged"
        return f"Do not ship {name}: {reason}."
    others_text = (
        f". Not named, and damaged: {join_words(_name_cells(basis.damage_elsewhere))}" if basis.damage_elsewhere else ""
    )
    safe_text = f"a mean loss of {format_magnitude(basis.margin, 'share')} points on what was {protected_word} is excluded"
    kept_text = (safe_text if basis.protected else "nothing was mastered before that could be lost") + others_text
    safe_text = kept_text
    if basis.named and basis.tasks_without_right_answer:
        safe_text += (
            f". Not learned, since no answer was right before or after: {join_words(basis.tasks_without_right_answer)}"
        )
    if basis.named and basis.tasks_left_out:
        safe_text += f". Not measured, since {basis.left_out_reason}: {join_words(basis.tasks_left_out)}"
    if unjudged_tasks := basis.tasks_never_right or (() if basis.protected_left_out else basis.tasks_without_right_answer):
        unknown_text = f"{join_words(unjudged_tasks)}, where no answer was right: not learned, or the grader misreads"
    else:
        remedy = "name graders, or what is to be kept (--protect)"
        left_out = basis.protected_left_out or basis.tasks_left_out
        unknown_text = f"{join_words(left_out)}, where {basis.left_out_reason}; {remedy}"
    undamaged_text = "nothing that needs no grader is shown to be damaged"
    if basis.damage_elsewhere:
        undamaged_text = "nothing that was named is shown to be damaged by what needs no grader"
    gain = (
        f"though {worse_text}"
        if worse_text
        else "though no gain in the mean of all tasks is shown"
        if basis.word != "improves"
        else f"and {change_text}"
    )
    sentence_by_advice = {
        "unjudged": f"Cannot tell: {change_text}, but nothing says what became of {unknown_text}."
        if basis.graded
        else f"Cannot tell: {change_text}; {undamaged_text}, and no answer was graded{others_text}.",
        "check the grader": CHECK_GRADER_SENTENCE,
        "none right": NONE_RIGHT_SENTENCE,
        "not learned": f"No reason to ship {name}: it is not shown to have learned {join_words(basis.tasks_not_learned)}; "
        f"{kept_text}.",
        "ship": f"Ship {name}: {change_text}, and {safe_text}.",
        "may replace": f"{name} may be shipped, {gain}: {safe_text}."
        if basis.graded
        else f"{name} may replace the model before: {change_text}. Whether its answers are right is not known: none was "
        "graded.",
        "no gain": f"Nothing is gained by {name}: {basis.outcome} changed by less than "
        f"{format_magnitude(NO_CHANGE_MARGIN, basis.unit)} {unit}.",
        "cannot tell": f"Cannot tell: {basis.gate_reason}." if basis.gate_reason else _format_items(basis),
    }
    return sentence_by_advice[advice]


def _name_cells(claims: Sequence[Claim]) -> list[str]:
    """The cells among the claims; whole tasks where there are none."""
    return [format_cell(claim) for claim in [claim for claim in claims if not claim.whole] or claims]


def _format_items(basis: PairBasis) -> str:
    """What the items at hand can show, and how many a smaller change would take."""
    unit, remedy = format_unit(basis.unit), "add rows to it" if basis.all_items_measured else "take more items"
    items = "one item" if basis.items == 1 else format_count(basis.items, "item")
    if basis.all_items_measured:
        items = "the only item of the file" if basis.items == 1 else f"all {items} of the file"
    largest_possible = 1.0 if basis.unit == "share" else math.inf
    if basis.items < MIN_ITEMS or not basis.detectable < largest_possible:
        return f"Cannot tell: {items} {'is' if basis.items == 1 else 'are'} too few to see any change; {remedy}."
    size, aim = (format_magnitude(value, basis.unit) for value in (basis.detectable, basis.aim))
    cannot_tell_text = f"Cannot tell: {items} can only show a change of {size} {unit} or more"
    if not basis.items_needed:
        return f"{cannot_tell_text}; {remedy}."
    return f"{cannot_tell_text}; a change of {aim} {unit} takes about {basis.items_needed:,} items per task and level."

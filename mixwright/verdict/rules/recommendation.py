"""Recommendation that a page begins with, by a written rule: the first condition that holds decides. Pure, fields only.

The two tables of rules are in contributing/evidence/luck.md. Nothing is searched for in a sentence. All held-out items
count; "train" needs a lever that *helps*, which means that it improves on not training, uniform and equal shares, each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.readings import format_unit
from mixwright.records import ChangeWord, Claim, GateOutcome, Interval, LeverWord, Proof, Selection
from mixwright.verdict.page.text import format_cell, format_count, format_magnitude, join_words
from mixwright.verdict.rules.spared import claim_key, format_spared

FROZEN_ARM, UNIFORM_ARM, EQUAL_SHARES_ARM, STEERED_ARM = "frozen", "uniform", "equal_shares", "steered"
"""References that a trial has by default, and the arm that trains the plan as it stands."""
Advice = Literal[
    "check the grader", "none right", "too few seeds", "stop", "do not train", "mined rows", "train", "train with losses",
    "equal shares", "keep uniform", "no gain", "not this plan", "missing", "do not ship", "ship", "not learned", "unjudged",
    "gate", "cannot tell",
]  # fmt: skip
"""Advice that a report begins with, of a trial or of two models."""
CHECK_GRADER_SENTENCE = "Inconclusive: no answer was right before or after; the grader may misread them."
UNGRADED_REASON = "nothing can be graded"
"""Why tasks are left out, where nobody says otherwise."""
NONE_RIGHT_SENTENCE = "Inconclusive: no answer was right before or after under the declared decoding; only samples were."


@dataclass(frozen=True, slots=True)
class Recommendation:
    """What to do, in one sentence."""

    advice: Advice
    """By the rule."""
    sentence: str = ""
    """Recommendation of a trial as a sentence; empty for two models, whose sentence is made from the whole verdict."""


def recommend(basis: TrialBasis | PairBasis) -> Recommendation:
    """Return the advice of the first rule that holds."""
    if isinstance(basis, TrialBasis):
        advice: Advice = next(name for name, holds in TRIAL_RULES if holds(basis))
        return Recommendation(advice, _format_trial_sentence(advice, basis))
    return Recommendation(next(name for name, holds in PAIR_RULES if holds(basis)))


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
    gate: GateOutcome | None = None
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
    plan = "this plan" if basis.lever in ("", STEERED_ARM) else basis.lever
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
        drawn_text += f" ({format_count(basis.draws, 'sample')} from {format_count(basis.rows, 'training row')})"
    sentence_by_advice = {
        "check the grader": CHECK_GRADER_SENTENCE,
        "none right": NONE_RIGHT_SENTENCE,
        "too few seeds": f"Inconclusive: the trial ran {format_count(basis.seeds, 'seed')}, and fewer than {MIN_SEEDS} "
        f"decide nothing. Run {basis.seeds_needed or 8}.",
        "stop": f"Stop: every way of training ({join_words(basis.trained)}) damages "
        f"{join_words(basis.damaged_everywhere())}.",
        "do not train": "Do not train on this data yet: the model was better before, whichever way it was trained.",
        "gate": f"Do not use {plan} yet: {basis.damage_text}."
        if basis.gate == "damaged"
        else f"Inconclusive: too few questions to rule out that {plan} damages a protected task.",
        "mined rows": (basis.selection.sentence if basis.selection else "")
        + (f" It damages {damaged_text}{spared_text}." if damaged_text else ""),
        "train": f"Train with {plan}: {gain}.",
        "train with losses": f"Train with {plan} only if {harm} on {damaged_text} is acceptable{spared_text}: {gain}.",
        "equal shares": "Use equal shares: sampling every task and level equally often beats no training and "
        "your files as they are" + (f", and {plan} is not shown to gain more." if basis.lever else "."),
        "keep uniform": "Keep your files as they are (uniform): nothing tried here beats that."
        if len(basis.trained) > 1
        else "Keep your files as they are (uniform): that beats no training, and nothing else was tried.",
        "no gain": f"No gain: no way of training {gains_verb} over no training{drawn_text}.",
        "not this plan": f"Do not use {plan}: {better_arms} did better.",
        "missing": f"Inconclusive: {join_words(basis.missing)} did not run, and nothing can be compared without it.",
        "cannot tell": _format_seeds(basis),
    }
    return sentence_by_advice[advice]


def _format_seeds(basis: TrialBasis) -> str:
    """What the seeds at hand can show, and what a smaller difference would take."""
    contrasts = [contrast for contrast in basis.contrasts if not basis.lever or contrast.arm == basis.lever]
    detectable = max((contrast.detectable for contrast in contrasts), default=0.0)
    if not detectable:
        return "Inconclusive: nothing was compared."
    size_text = f"{format_magnitude(detectable, basis.unit)} {format_unit(basis.unit)}"
    cannot_tell_text = f"Inconclusive: {format_count(basis.seeds, 'seed')} can only show differences of at least {size_text}"
    if basis.seeds_needed is not None:
        return f"{cannot_tell_text}; run {basis.seeds_needed} seeds."
    more_than = f" than the {basis.items:,} there are" if basis.all_items_measured else ""
    margin = format_magnitude(basis.margin, basis.unit)
    return f"{cannot_tell_text}, and more seeds alone would not show {margin}; use more held-out items{more_than}."


@dataclass(frozen=True, slots=True)
class PairBasis:
    """Facts about two models that decide the verdict on the later one."""

    right: bool
    """Whether any answer was right before or after."""
    word: ChangeWord
    """Change of the primary outcome."""
    gate: GateOutcome
    """Outcome of the gate."""
    protected: int
    """Tasks and levels that the gate protects."""
    right_before: bool = True
    """Whether any answer was right before, so that something can be lost."""
    damaged: tuple[Claim, ...] = ()
    """Claims of damage to what is protected."""
    items: int = 0
    """Held-out items."""
    cells: int = 1
    """Tasks and levels of these items."""
    items_needed: int | None = None
    """Items per task and level that would do."""
    pace: float = 0.0
    """Seconds that an item took on both models; 0 where it is not known."""
    all_items_measured: bool = False
    """Whether the file has no further items."""
    cut: float = 0.0
    """Share of answers that ran into the token limit, of the model with more of them."""
    graded: bool = True
    """Whether answers were graded."""
    any_right: bool = True
    """Whether any answer was right under the declared decoding."""
    named: bool = False
    """Whether the user named what is protected: then a loss of other tasks is reported, and decides nothing."""
    tasks_left_out: tuple[str, ...] = ()
    """Tasks that no grader can judge, or of logs that cannot be compared, which were not measured."""
    protected_left_out: tuple[str, ...] = ()
    """Those of them that the user named."""
    left_out_reason: str = UNGRADED_REASON
    """Why they were left out."""
    tasks_without_right_answer: tuple[str, ...] = ()
    """Tasks without a right answer on either side."""
    tasks_never_right: tuple[str, ...] = ()
    """Those of them that the user named."""
    tasks_not_learned: tuple[str, ...] = ()
    """Unprotected tasks that are not shown to be above chance after, with their right answers, where nothing improved."""
    form_change: bool = False
    """Whether answers of some task went over to the format of another task."""
    lost_answers: bool = False
    """Whether answers of a protected task that no grader judges are lost."""
    lost_behaviour: bool = False
    """Whether a protected behaviour is lost, and tasks alone would not have failed."""
    gate_reason: str = ""
    """Why the gate cannot tell, where that is not too few items."""


def _is_worse(basis: PairBasis) -> bool:
    """Whether the whole outcome got worse, where the user did not name what matters; of a gated loss its size decides."""
    return (
        not basis.named
        and (basis.graded or not basis.protected)
        and basis.word in ("worsens", "less dependent", "commonest")
    )


def _is_unjudged(basis: PairBasis) -> bool:
    """Whether what would otherwise pass, or fails by what cannot be judged alone, holds a task that was not judged."""
    if not basis.graded:
        return True
    if basis.named:
        unjudged = basis.tasks_never_right + basis.protected_left_out
    else:
        unjudged = basis.tasks_without_right_answer + basis.tasks_left_out
    if basis.named and unjudged:
        return True  # more items would not help
    return bool(unjudged) and (basis.gate == "passed" or bool(basis.gate_reason))


PAIR_RULES: tuple[tuple[Advice, Callable[[PairBasis], bool]], ...] = (
    ("do not ship", lambda basis: basis.form_change or basis.lost_answers or basis.lost_behaviour),
    ("check the grader", lambda basis: not basis.right),
    ("none right", lambda basis: not basis.any_right),
    ("do not ship", lambda basis: bool(basis.damaged) or basis.gate == "damaged" or _is_worse(basis)),
    ("unjudged", _is_unjudged),
    ("not learned", lambda basis: bool(basis.tasks_not_learned) and basis.word != "improves" and basis.gate == "passed"),
    ("ship", lambda basis: basis.gate == "passed"),
    ("cannot tell", lambda basis: True),
)
"""Rules for two checkpoints, in order."""

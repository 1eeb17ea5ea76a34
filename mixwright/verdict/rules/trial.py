"""Recommendation of a trial, by a written rule: the first condition that holds decides.

The table of rules is in contributing/evidence/luck.md. Nothing is searched for in a sentence. All held-out items count;
"train" needs a lever that *helps*, which means that it improves on not training, uniform and equal shares, each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from mixwright.estimates.judgement import MIN_SEEDS, change_word
from mixwright.estimates.outcome import estimate_change
from mixwright.estimates.power import seeds_for
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, format_unit
from mixwright.records import ChangeWord, Effect, LeverWord, Selection, TrialResult, cell_key
from mixwright.trial.arm_roles import UNTRAINED_ARM
from mixwright.verdict.page.text import cell_name, format_count, format_magnitude, join_words
from mixwright.verdict.page.trial import seed_differences
from mixwright.verdict.rules.cells import CellChange, clip_interval, find_any_right
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import GateResult

FROZEN_ARM, UNIFORM_ARM, EQUAL_SHARES_ARM, STEERED_ARM = "frozen", "uniform", "equal_shares", "steered"
"""References that a trial has by default, and the arm that trains the plan as it stands."""
Advice = Literal[
    "check the grader", "none right", "too few seeds", "stop", "do not train", "mined rows", "train", "train with losses",
    "equal shares", "keep uniform", "no gain", "not this plan", "missing", "gate", "cannot tell",
]  # fmt: skip
BLOCKING_ADVICE = ("stop", "do not train", "not this plan")
"""Advice against the arms of a trial, with which no gate passes."""


@dataclass(frozen=True, slots=True)
class TrialBasis:
    """What the recommendation of a trial rests on."""

    seeds: int
    """Training seeds of every arm."""
    right: bool
    """Whether any answer of any arm was right before or after."""
    trained: tuple[str, ...]
    """Arms that train, nulls left out."""
    contrasts: tuple[Effect, ...]
    """The primary outcome: levers against references, references against not training and each other. Above 0 is better."""
    changes: Mapping[str, Sequence[CellChange]] = field(default_factory=dict)
    """Arm that trained -> its changes against the starting model."""
    lever: str = ""
    """The lever that the page is about; empty when none was tried."""
    word: LeverWord | None = None
    """How it was judged."""
    missing: tuple[str, ...] = ()
    """References that did not run."""
    margin: float = 0.05
    """Change that does not matter."""
    seeds_needed: int | None = None
    """Seeds that would see a difference of the margin; None where no number of seeds would."""
    decoding: Outcome = "greedy"
    """What the primary outcome is read from."""
    any_right: bool = True
    """Whether any answer of any arm was right under the declared decoding."""
    selection: Selection | None = None
    """Of a trial over data, what it says of the mined rows."""
    gate: GateResult | None = None
    """What the gate says of the leading arm; None where it was not asked."""

    @property
    def graded(self) -> bool:
        """Whether answers were graded."""
        return self.decoding in GRADED_OUTCOMES

    @property
    def no_effect(self) -> bool:
        """Whether nothing is damaged, and every arm that trains is shown to be within the margin of not training."""
        contrasts = [self.contrast(arm, FROZEN_ARM) for arm in self.trained]
        is_within_margin = all(contrast is not None and abs(contrast.difference.low) < self.margin for contrast in contrasts)
        return (
            is_within_margin
            and all(self.at_best_equal(arm, FROZEN_ARM) for arm in self.trained)
            and not any(self.damage(arm) for arm in self.trained)
        )

    def damage(self, arm: str) -> list[CellChange]:
        """What an arm damaged."""
        return [cell for cell in self.changes.get(arm, ()) if cell.word == "worsens"]

    def contrast(self, arm: str, against: str) -> Effect | None:
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
        tasks = [{cell.task for cell in self.damage(arm)} for arm in self.trained]
        return sorted(set.intersection(*tasks)) if tasks else []


def _holds_for_every_arm(basis: TrialBasis, holds_for: Callable[[str], bool]) -> bool:
    return bool(basis.trained) and all(map(holds_for, basis.trained))


def _equal_shares_win(basis: TrialBasis) -> bool:
    return all(basis.word_of(EQUAL_SHARES_ARM, reference) == "improves" for reference in (FROZEN_ARM, UNIFORM_ARM))


def _uniform_is_best(basis: TrialBasis) -> bool:
    other_arms = [arm for arm in basis.trained if arm != UNIFORM_ARM]
    improves = basis.word_of(UNIFORM_ARM, FROZEN_ARM) == "improves"
    return improves and all(basis.at_best_equal(arm, UNIFORM_ARM) for arm in other_arms)


def _gate_forbids(basis: TrialBasis) -> bool:
    is_recommended = basis.word == "helps" or basis.selection is not None
    return basis.gate is not None and basis.gate.outcome != "passed" and is_recommended


TRIAL_RULES: tuple[tuple[Advice, Callable[[TrialBasis], bool]], ...] = (
    ("check the grader", lambda basis: not basis.right),
    ("none right", lambda basis: not basis.any_right and basis.selection is None),
    ("too few seeds", lambda basis: basis.seeds < MIN_SEEDS),
    ("stop", lambda basis: bool(basis.damaged_everywhere())),
    ("do not train", lambda basis: _holds_for_every_arm(basis, lambda arm: basis.word_of(arm, FROZEN_ARM) == "worsens")),
    ("gate", _gate_forbids),
    ("mined rows", lambda basis: basis.selection is not None),
    ("train", lambda basis: basis.word == "helps" and not basis.damage(basis.lever)),
    ("train with losses", lambda basis: basis.word == "helps"),
    ("equal shares", _equal_shares_win),
    ("keep uniform", _uniform_is_best),
    ("no gain", lambda basis: _holds_for_every_arm(basis, lambda arm: basis.at_best_equal(arm, FROZEN_ARM))),
    ("not this plan", lambda basis: basis.word == "harms"),
    ("missing", lambda basis: bool(basis.missing)),
    ("cannot tell", lambda basis: True),
)
"""Rules for a trial, in order."""


def advise(basis: TrialBasis) -> Advice:
    """Return the advice of the first rule that holds."""
    return next(name for name, holds in TRIAL_RULES if holds(basis))


def say_advice(advice: Advice, basis: TrialBasis) -> str:
    """Return the advice as a sentence."""
    plan, reading = "this plan" if basis.lever in ("", STEERED_ARM) else basis.lever, READINGS[basis.decoding]
    damaged = basis.damage(basis.lever)
    damaged_text = join_words(
        [f"task {cell.task}" if cell.level is None else cell_name(cell.task, cell.level) for cell in damaged]
    )
    lower_is_better = reading.sign < 0
    lever_contrasts = [contrast for contrast in basis.contrasts if contrast.arm == basis.lever]
    gain_sizes = join_words([format_magnitude(contrast.difference.value, reading.unit) for contrast in lever_contrasts])
    against = join_words([contrast.against for contrast in lever_contrasts])
    better_arms = join_words([contrast.against for contrast in lever_contrasts if contrast.word == "worsens"])
    harm = f"a higher {reading.title}" if lower_is_better else "a loss"
    better_word, unit = "lower" if lower_is_better else "better", format_unit(reading.unit)
    gain = f"{reading.title} is {better_word} by {gain_sizes} {unit} than with {against}"
    margin = f"{format_magnitude(basis.margin, reading.unit)} {unit}"
    gains_verb = (
        f"gains {margin}" if basis.graded else f"{'lowers' if lower_is_better else 'raises'} {reading.title} by {margin}"
    )
    sentence_by_advice = {
        "check the grader": "Inconclusive: no answer was right before or after; the grader may misread them.",
        "none right": "Inconclusive: no answer was right before or after under the declared decoding; only samples were.",
        "too few seeds": f"Inconclusive: the trial ran {format_count(basis.seeds, 'seed')}, and fewer than {MIN_SEEDS} "
        f"decide nothing. Run {basis.seeds_needed or 8}.",
        "stop": f"Stop: every way of training ({join_words(basis.trained)}) damages "
        f"{join_words(basis.damaged_everywhere())}.",
        "do not train": "Do not train on this data yet: the model was better before, whichever way it was trained.",
        "gate": f"Do not use {plan} yet: {_name_damage(basis.gate)}."
        if basis.gate is not None and basis.gate.outcome == "damaged"
        else f"Inconclusive: too few questions to rule out that {plan} damages a protected task.",
        "mined rows": (basis.selection.sentence if basis.selection else "")
        + (f" It damages {damaged_text}." if damaged_text else ""),
        "train": f"Train with {plan}: {gain}.",
        "train with losses": f"Train with {plan} only if {harm} on {damaged_text} is acceptable: {gain}.",
        "equal shares": "Use equal shares: sampling every task and level equally often beats no training and "
        "your files as they are" + (f", and {plan} is not shown to gain more." if basis.lever else "."),
        "keep uniform": "Keep your files as they are (uniform): nothing tried here beats that."
        if len(basis.trained) > 1
        else "Keep your files as they are (uniform): that beats no training, and nothing else was tried.",
        "no gain": f"No gain: no way of training {gains_verb} over no training.",
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
    size_text = f"{format_magnitude(detectable, READINGS[basis.decoding].unit)} {format_unit(READINGS[basis.decoding].unit)}"
    cannot_tell_text = f"Inconclusive: {format_count(basis.seeds, 'seed')} can only show differences of at least {size_text}"
    if basis.seeds_needed is not None:
        return f"{cannot_tell_text}; run {basis.seeds_needed} seeds."
    margin = format_magnitude(basis.margin, READINGS[basis.decoding].unit)
    return f"{cannot_tell_text}, and more seeds alone would not show {margin}; use more held-out items."


def read_trial_basis(evidence: Evidence, result: TrialResult, gate: GateResult | None) -> TrialBasis:
    """What the rule sees of a trial; the gate only if somebody asked it. Raises InputError for a broken file."""
    trained = tuple(arm for arm in result.arms if arm != UNTRAINED_ARM and arm not in result.nulls)
    judgement = next((judgement for judgement in result.judgements if judgement.arm == evidence.arm), None)
    any_right, right_as_declared = find_any_right(evidence.sides_by_arm.values(), result.decoding)
    lever = judgement.arm if judgement else ""
    return TrialBasis(
        seeds=len(result.seeds),
        right=any_right,
        any_right=right_as_declared,
        trained=trained,
        contrasts=_list_contrasts(evidence, result),
        changes={arm: evidence.comparisons.get(arm, ()) for arm in trained},
        lever=lever,
        word=judgement.word if judgement else None,
        missing=judgement.missing if judgement else (),
        margin=result.margin,
        seeds_needed=_count_seeds_needed(evidence, result, lever),
        decoding=result.decoding,
        selection=result.selection,
        gate=gate if evidence.question is not None else None,
    )


def _name_damage(gate: GateResult) -> str:
    """Return which protected tasks and levels were lost, or that their average fell."""
    damaged = [cell_key(cell.task, cell.level) for cell in (*gate.cells, *gate.damaged_tasks) if cell.is_damaged]
    damaged = damaged or [cell_key(cell.task, cell.level) for cell in gate.unprotected_losses]
    return f"it lost {join_words(damaged)}" if damaged else "the average of what is protected fell"


def _list_contrasts(evidence: Evidence, result: TrialResult) -> tuple[Effect, ...]:
    """The primary effects against references; and `equal_shares` against `uniform`, which no judgement of a lever needs."""
    reading = READINGS[result.decoding]
    contrasts = [
        replace(effect, word=effect.word or "cannot tell", difference=reading.turned(effect.difference))
        for effect in result.effects
        if effect.name == reading.name and effect.against in result.references
    ]
    has_both_arms = {EQUAL_SHARES_ARM, UNIFORM_ARM} <= set(result.references)
    sides = evidence.pair_arms(EQUAL_SHARES_ARM, UNIFORM_ARM) if has_both_arms else None
    change = estimate_change(*sides, outcome=result.decoding) if sides else None
    if change is not None:
        word = change_word(change, margin=result.margin) if change.estimate.seeds >= MIN_SEEDS else "cannot tell"
        difference, detectable = clip_interval(change.estimate, reading.unit), change.estimate.detectable()
        contrasts.append(Effect(EQUAL_SHARES_ARM, UNIFORM_ARM, reading.name, difference, word, detectable=detectable))
    return tuple(contrasts)


def _count_seeds_needed(evidence: Evidence, result: TrialResult, lever: str) -> int | None:
    """Seeds that would see a difference of the margin in every contrast of the lever (of any arm where there is none)."""
    seeds_needed = 0
    for effect in result.effects:
        is_primary = effect.name == READINGS[result.decoding].name and effect.against in result.references
        if not is_primary or (lever and effect.arm != lever):
            continue
        sides = evidence.pair_arms(effect.arm, effect.against)
        change = estimate_change(*sides, outcome=result.decoding) if sides else None
        if change is None or change.estimate.seeds < 2:
            return None
        target_difference = result.margin if effect.detectable > result.margin else max(abs(effect.difference.value), 0.01)
        effect_seeds = seeds_for(
            change.estimate, seed_differences(result, effect.name, effect.arm, effect.against), target_difference
        )
        if effect_seeds is None:
            return None
        seeds_needed = max(seeds_needed, effect_seeds)
    return seeds_needed or None

"""Basis of the recommendation, read from a run folder: what the rule sees of its trial, or of its two checkpoints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.items import TaskLevel
from mixwright.estimates.judgement import MIN_SEEDS, NO_CHANGE_MARGIN, change_word
from mixwright.estimates.outcome import Change, Sides, estimate_change
from mixwright.estimates.power import seeds_for
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.measure.notes import CUT_NOTE
from mixwright.records import Claim, GateOutcome, TrialResult, cell_key
from mixwright.trial.arm_roles import UNTRAINED_ARM
from mixwright.verdict.page.arm_words import seed_differences
from mixwright.verdict.page.text import join_words
from mixwright.verdict.rules.answer_forms import group_takeovers
from mixwright.verdict.rules.claims import (
    clip_interval,
    find_tasks_not_learned,
    find_unjudged_tasks,
)
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import GateResult
from mixwright.verdict.rules.recommendation import (
    EQUAL_SHARES_ARM,
    UNGRADED_REASON,
    UNIFORM_ARM,
    Contrast,
    PairBasis,
    Recommendation,
    TrialBasis,
    recommend,
)
from mixwright.verdict.rules.spared import claim_key, collect_changes

LARGEST_CELL_ROWS_SETTING, PACE_SETTING = "rows_of_largest_cell", "seconds_per_item"
"""Settings in a comparison's manifest: how many items a cell could have had, and how long one took."""
LEFT_OUT_SETTING = "tasks_left_out"
"""The same of tasks that no grader can judge."""
LEFT_OUT_REASON_SETTING = "left_out_reason"
"""The same of the reason, where it is another one: words that follow `where`."""


def recommend_run(
    evidence: Evidence, claims: Sequence[Claim], gate: GateResult | None
) -> tuple[Recommendation | None, TrialBasis | PairBasis | None]:
    """The recommendation, and what it rests on; None before anything was measured after training.

    Raises:
        InputError: a file is broken.
    """
    result, sides = evidence.trial, evidence.sides
    basis: TrialBasis | PairBasis | None = None
    if result is not None:
        basis = _read_trial_basis(evidence, result, claims, gate)
    elif sides is not None and not evidence.branches:
        basis = _read_pair_basis(evidence, sides, claims, gate)
    if basis is not None:
        return recommend(basis), basis
    unfinished = ""
    if evidence.branches:
        unfinished = "the trial has no result; run it to its end"
    elif _name_later_checkpoint(evidence.settings) and not evidence.run.measurements("after").is_file():
        unfinished = "the later checkpoint was not measured; run the comparison again"
    return (Recommendation("cannot tell", f"Inconclusive so far: {unfinished}.") if unfinished else None), None


def _read_trial_basis(
    evidence: Evidence, result: TrialResult, claims: Sequence[Claim], gate: GateResult | None
) -> TrialBasis:
    """What the rule sees of a trial; the gate only if somebody asked it."""
    sides_by_arm, settings = evidence.sides_by_arm, evidence.settings
    reading, leading_arm, row_counts = READINGS[result.decoding], evidence.arm, evidence.count_rows()
    trained = tuple(arm for arm in result.arms if arm != UNTRAINED_ARM and arm not in result.nulls)
    judgement = next((judgement for judgement in result.judgements if judgement.arm == leading_arm), None)
    gate = gate if evidence.question is not None else None
    any_right, right_as_declared = _find_any_right(sides_by_arm.values(), result.decoding)
    items, step_count = max((effect.items for effect in result.effects), default=0), int(_read_number(settings, "steps"))
    return TrialBasis(
        seeds=len(result.seeds),
        right=any_right,
        any_right=right_as_declared,
        trained=trained,
        contrasts=_list_contrasts(evidence, result),
        damaged={arm: tuple(claim for claim in claims if claim.arm == arm and claim.kind == "damaged") for arm in trained},
        changes=collect_changes(claims, trained),
        lever=judgement.arm if judgement else "",
        word=judgement.word if judgement else None,
        missing=judgement.missing if judgement else (),
        proof=judgement.proof if judgement else "not tried",
        margin=result.margin,
        seeds_needed=_count_seeds_needed(evidence, result, judgement.arm if judgement else ""),
        outcome=reading.title,
        unit=reading.unit,
        lower_is_better=reading.sign < 0,
        items=items,
        all_items_measured=0 < row_counts["eval"] <= items,
        graded=result.decoding in GRADED_OUTCOMES,
        steps=step_count,
        draws=step_count * int(_read_number(settings, "prompts_per_step")),
        rows=row_counts["train"],
        selection=result.selection,
        gate=gate.outcome if gate is not None else None,
        damage_text=_name_damage(gate) if gate is not None else "",
    )


def _name_damage(gate: GateResult) -> str:
    """Return which protected tasks and levels were lost, or that their average fell."""
    damaged = [cell_key(cell.task, cell.level) for cell in (*gate.cells, *gate.damaged_tasks) if cell.is_damaged]
    damaged = damaged or [cell_key(cell.task, cell.level) for cell in gate.unprotected_losses]
    return f"it lost {join_words(damaged)}" if damaged else "the average of what is protected fell"


def _find_any_right(comparisons: Iterable[Sides], outcome: Outcome) -> tuple[bool, bool]:
    """Whether any answer was right, and whether any was by the declared decoding; true where none is known."""
    checkpoints = [scores for sides in comparisons for side in sides for scores in side]
    if outcome not in GRADED_OUTCOMES or not checkpoints:
        return True, True
    is_any_right = {
        name: any((checkpoint.column(READINGS[name].column, checkpoint.every) > 0).any() for checkpoint in checkpoints)
        for name in GRADED_OUTCOMES
    }
    return any(is_any_right.values()), is_any_right[outcome]


def _list_contrasts(evidence: Evidence, result: TrialResult) -> tuple[Contrast, ...]:
    """The primary effects against references; and `equal_shares` against `uniform`, which no judgement of a lever needs."""
    reading = READINGS[result.decoding]
    contrasts = [
        Contrast(
            effect.arm, effect.against, effect.word or "cannot tell", reading.turned(effect.difference), effect.detectable
        )
        for effect in result.effects
        if effect.name == reading.name and effect.against in result.references
    ]
    has_both_arms = {EQUAL_SHARES_ARM, UNIFORM_ARM} <= set(result.references)
    sides = evidence.pair_arms(EQUAL_SHARES_ARM, UNIFORM_ARM) if has_both_arms else None
    change = estimate_change(*sides, outcome=result.decoding) if sides else None
    if change is not None:
        word = change_word(change, margin=result.margin) if change.estimate.seeds >= MIN_SEEDS else "cannot tell"
        difference = clip_interval(change.estimate, reading.unit)
        contrasts.append(Contrast(EQUAL_SHARES_ARM, UNIFORM_ARM, word, difference, change.estimate.detectable()))
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


def _read_pair_basis(evidence: Evidence, sides: Sides, claims: Sequence[Claim], gate: GateResult | None) -> PairBasis | None:
    """Read the facts about two models."""
    outcome, settings = evidence.outcome, evidence.settings
    change, compared = estimate_change(*sides, outcome=outcome), evidence.comparisons[evidence.arm]
    if change is None:
        return None
    unjudged_tasks, (any_right, right_as_declared) = find_unjudged_tasks(sides, outcome), _find_any_right([sides], outcome)
    named_tasks = {cell.task for cell in gate.cells} if gate is not None and gate.named_by_user else None
    takeovers = group_takeovers(
        form_change for form_change in evidence.form_changes if named_tasks is None or form_change.task in named_tasks
    )
    items_by_cell = Counter(dict(zip(change.items.cells, change.items.counts.tolist(), strict=True)))
    tasks_left_out = tuple(settings.get(LEFT_OUT_SETTING, ()))
    protected_tasks = {cell.task for cell in gate.cells} if gate else set[str]()
    return PairBasis(
        right=any_right,
        any_right=right_as_declared,
        word=change_word(change),
        gate=gate.outcome if gate else "inconclusive",
        protected=len(gate.cells) if gate else 0,
        right_before=_find_any_right([(sides[0], ())], outcome)[1],
        damaged=_list_damage(claims, gate),
        items=len(change.items),
        cells=len(items_by_cell),
        items_needed=_count_items_needed(change, items_by_cell, gate),
        pace=_read_number(settings, PACE_SETTING),
        all_items_measured=0 < _read_number(settings, LARGEST_CELL_ROWS_SETTING) <= _read_number(settings, "items"),
        cut=max((note.count / note.total for note in evidence.notes if note.check == CUT_NOTE and note.total), default=0.0),
        graded=outcome in GRADED_OUTCOMES,
        named=named_tasks is not None,
        tasks_without_right_answer=unjudged_tasks,
        tasks_left_out=tasks_left_out,
        protected_left_out=tuple(task for task in tasks_left_out if task in (named_tasks or ())),
        left_out_reason=str(settings.get(LEFT_OUT_REASON_SETTING, UNGRADED_REASON)),
        tasks_never_right=tuple(task for task in unjudged_tasks if task in (named_tasks or ())),
        tasks_not_learned=find_tasks_not_learned(compared, sides, outcome, protected_tasks) if gate else (),
        form_change=bool(takeovers),
        lost_answers=bool(gate and protected_tasks & set(gate.lost_answers)),
        lost_behaviour=bool(gate and gate.decided_by_behaviours and gate.outcome == "damaged"),
        gate_reason=gate.reason if gate else "",
    )


def _count_items_needed(change: Change, items_by_cell: Counter[TaskLevel], gate: GateResult | None) -> int | None:
    """Items per task and level that would tell; None where no number of them is known to."""
    detectable = change.estimate.detectable()
    items_needed = gate.items_needed if gate else None
    # one item shows no spread, and fewer than MIN_ITEMS are never judged
    if not items_needed and math.isfinite(detectable):
        target = NO_CHANGE_MARGIN if detectable > NO_CHANGE_MARGIN else max(abs(change.estimate.value), 0.01)
        items_needed = max(math.ceil(len(change.items) / len(items_by_cell) * (detectable / target) ** 2), MIN_ITEMS)
    return max(items_needed, max(items_by_cell.values()) + 1) if items_needed else None  # fewer would change nothing


def _list_damage(claims: Sequence[Claim], gate: GateResult | None) -> tuple[Claim, ...]:
    """List the claims of damage that decide: none where a gate judges a loss, and none of what a user did not name."""
    if gate is not None and not gate.graded:
        return ()
    damaged = tuple(claim for claim in claims if claim.kind == "damaged")
    if gate is None or not gate.named_by_user:
        return damaged
    named_keys = {(cell.task, cell.level, cell.is_whole_task) for cell in (*gate.cells, *gate.damaged_tasks)}
    return tuple(claim for claim in damaged if claim_key(claim) in named_keys)


OUTCOME_BY_ADVICE: Mapping[str, GateOutcome] = {"do not ship": "damaged", "ship": "passed", "not learned": "passed"}
"""Advice for two models -> outcome; inconclusive for all other."""
BLOCKING_ADVICE = ("stop", "do not train", "not this plan")
"""Advice against the arms of a trial, with which no gate passes."""


def _read_number(settings: Mapping[str, Any], name: str) -> float:
    """A number among settings; 0 where there is none."""
    value = settings.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _name_later_checkpoint(settings: Mapping[str, Any]) -> str:
    """Last part of the path of the later checkpoint; empty where nobody noted it."""
    return PurePath(str(settings.get("checkpoint after", ""))).name

"""Basis of the recommendation, read from a run folder: what the rule sees of its trial, or of its two checkpoints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any

from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.judgement import MIN_SEEDS, NO_CHANGE_MARGIN, change_word
from mixwright.estimates.outcome import Change, estimate_change
from mixwright.estimates.power import seeds_for
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.measure.notes import CUT_NOTE
from mixwright.records import Claim, Observation, RunManifest, TrialResult
from mixwright.run.folder import RunFolder, read_json, read_list
from mixwright.trial.arm_roles import builtin_arm
from mixwright.verdict.page.arm_words import seed_differences
from mixwright.verdict.rules import evidence
from mixwright.verdict.rules.answer_forms import form_changes_of, group_takeovers
from mixwright.verdict.rules.claims import (
    clip_interval,
    find_far_former_answers,
    find_tasks_not_learned,
    find_unjudged_tasks,
    format_unlikely,
    read_claims,
)
from mixwright.verdict.rules.evidence import Sides
from mixwright.verdict.rules.gate import GateOutcome, GateResult, check_sides
from mixwright.verdict.rules.gate_question import GateQuestion, read_question
from mixwright.verdict.rules.gate_run import check_gate
from mixwright.verdict.rules.gate_words import format_damage
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

LARGEST_CELL_ROWS_SETTING, PACE_SETTING = "rows of the largest cell", "seconds per item, both checkpoints"
"""Settings in a comparison's manifest: how many items a cell could have had, and how long one took."""
LEFT_OUT_SETTING = "tasks left out, nothing to grade"
"""The same of tasks that no grader can judge."""
LEFT_OUT_REASON_SETTING = "why tasks were left out"
"""The same of the reason, where it is another one: words that follow `where`."""


def recommend_run(run: RunFolder) -> tuple[Recommendation | None, TrialBasis | PairBasis | None]:
    """The recommendation, and what it rests on; None before anything was measured after training.

    Raises:
        InputError: a file is broken.
    """
    result, sides = evidence.trial_of(run), evidence.leading_sides(run)
    basis: TrialBasis | PairBasis | None = None
    if result is not None:
        basis = _read_trial_basis(run, result)
    elif sides is not None and not evidence.arm_branches(run):
        basis = _read_pair_basis(run, sides)
    if basis is not None:
        return recommend(basis), basis
    unfinished = ""
    if evidence.arm_branches(run):
        unfinished = "the trial has no result; run it to its end"
    elif _name_later_checkpoint(_read_settings(run)) and not run.measurements("after").is_file():
        unfinished = "the later checkpoint was not measured; run the comparison again"
    return (Recommendation("cannot tell", f"Cannot tell yet: {unfinished}.", "plain") if unfinished else None), None


def _read_trial_basis(run: RunFolder, result: TrialResult) -> TrialBasis:
    """What the rule sees of a trial."""
    sides_by_arm, claims, gate_question, settings = (
        evidence.comparisons(run),
        read_claims(run),
        read_question(run),
        _read_settings(run),
    )
    reading, leading_arm, row_counts = READINGS[result.decoding], evidence.headline_arm(run), evidence.count_rows(run)
    trained = tuple(arm for arm in result.arms if arm != builtin_arm("untrained") and arm not in result.nulls)
    judgement = next((judgement for judgement in result.judgements if judgement.arm == leading_arm), None)
    gate = check_gate(run, gate_question) if gate_question is not None and sides_by_arm.get(leading_arm) else None
    any_right, right_as_declared = _find_any_right(sides_by_arm.values(), result.decoding)
    items, step_count = max((effect.items for effect in result.effects), default=0), int(_read_number(settings, "steps"))
    return TrialBasis(
        seeds=len(result.seeds),
        right=any_right,
        any_right=right_as_declared,
        trained=trained,
        contrasts=_list_contrasts(run, result),
        damaged={arm: tuple(claim for claim in claims if claim.arm == arm and claim.kind == "damaged") for arm in trained},
        changes=collect_changes(claims, trained),
        lever=judgement.arm if judgement else "",
        word=judgement.word if judgement else None,
        missing=judgement.missing if judgement else (),
        proof=judgement.proof if judgement else "not tried",
        margin=result.margin,
        seeds_needed=_count_seeds_needed(run, result, judgement.arm if judgement else ""),
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
        damage_text=format_damage(gate) or "something that was not protected is damaged" if gate is not None else "",
    )


def _find_any_right(comparisons: Iterable[Sides], outcome: Outcome) -> tuple[bool, bool]:
    """Whether any answer was right, and whether any was by the declared decoding; true where none is known."""
    checkpoints = [scores for sides in comparisons for side in sides for scores in side]
    if outcome not in GRADED_OUTCOMES or not checkpoints:
        return True, True
    is_any_right = {
        name: any(
            value > 0 for checkpoint in checkpoints for value in checkpoint.scores.get(READINGS[name].column, {}).values()
        )
        for name in GRADED_OUTCOMES
    }
    return any(is_any_right.values()), is_any_right[outcome]


def _list_contrasts(run: RunFolder, result: TrialResult) -> tuple[Contrast, ...]:
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
    sides = evidence.paired_scores(run, EQUAL_SHARES_ARM, UNIFORM_ARM) if has_both_arms else None
    change = estimate_change(*sides, outcome=result.decoding) if sides else None
    if change is not None:
        word = change_word(change, margin=result.margin) if change.estimate.seeds >= MIN_SEEDS else "cannot tell"
        difference = clip_interval(change.estimate, reading.unit)
        contrasts.append(Contrast(EQUAL_SHARES_ARM, UNIFORM_ARM, word, difference, change.estimate.detectable()))
    return tuple(contrasts)


def _count_seeds_needed(run: RunFolder, result: TrialResult, lever: str) -> int | None:
    """Seeds that would see a difference of the margin in every contrast of the lever (of any arm where there is none)."""
    seeds_needed = 0
    for effect in result.effects:
        is_primary = effect.name == READINGS[result.decoding].name and effect.against in result.references
        if not is_primary or (lever and effect.arm != lever):
            continue
        sides = evidence.paired_scores(run, effect.arm, effect.against)
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


@evidence.keep_recent
def _estimate_change(sides: Sides, outcome: Outcome) -> Change | None:
    return estimate_change(*sides, outcome=outcome)


def _read_pair_basis(run: RunFolder, sides: Sides) -> PairBasis | None:
    """What the rule sees of two checkpoints."""
    outcome, gate_question, settings = evidence.read_outcome(run), read_question(run), _read_settings(run)
    change = _estimate_change(sides, outcome)
    if change is None:
        return None
    gate = check_gate(run, gate_question) if gate_question is not None else None
    if outcome in ("greedy", "sampled") and gate_question is None:
        gate = check_sides(sides, outcome, GateQuestion())
    reading, unjudged_tasks, (any_right, right_as_declared) = (
        READINGS[outcome],
        find_unjudged_tasks(sides, outcome),
        _find_any_right([sides], outcome),
    )
    damaged, other_damage = _split_damage(read_claims(run), gate)
    tasks = {cell.task for cell in gate.cells} if gate is not None and gate.named_by_user else None
    takeovers = group_takeovers(
        form_change for form_change in form_changes_of(run) if tasks is None or form_change.task in tasks
    )
    items_by_cell, detectable_change = Counter(item[:2] for item in change.items), change.estimate.detectable()
    target_change = NO_CHANGE_MARGIN if detectable_change > NO_CHANGE_MARGIN else max(abs(change.estimate.value), 0.01)
    items_needed = gate.items_needed if gate else None
    # one item shows no spread, and fewer than MIN_ITEMS are never judged
    if not items_needed and math.isfinite(detectable_change):
        items_needed = max(
            math.ceil(len(change.items) / len(items_by_cell) * (detectable_change / target_change) ** 2), MIN_ITEMS
        )
    if items_needed:  # fewer than there are would change nothing
        items_needed = max(items_needed, max(items_by_cell.values()) + 1)
    notes = read_list(run.notes, Observation) if run.notes.is_file() else []
    tasks_left_out = tuple(settings.get(LEFT_OUT_SETTING, ()))
    return PairBasis(
        right=any_right,
        any_right=right_as_declared,
        word=change_word(change),
        difference=clip_interval(change.estimate, reading.unit),
        detectable=detectable_change,
        gate=gate.outcome if gate else "cannot tell",
        protected=len(gate.cells) if gate else 0,
        damaged=damaged,
        after=_name_later_checkpoint(settings) or "AFTER",
        items=len(change.items),
        cells=len(items_by_cell),
        items_needed=items_needed or None,
        aim=target_change,
        pace=_read_number(settings, PACE_SETTING),
        all_items_measured=0 < _read_number(settings, LARGEST_CELL_ROWS_SETTING) <= _read_number(settings, "items"),
        cut=max((note.count / note.total for note in notes if note.check == CUT_NOTE and note.total), default=0.0),
        outcome=reading.title,
        unit=reading.unit,
        lower_is_better=reading.sign < 0,
        graded=outcome in GRADED_OUTCOMES,
        margin=gate.mean_margin if gate else NO_CHANGE_MARGIN,
        asked=gate_question is not None,
        named=gate is not None and gate.named_by_user,
        damage_elsewhere=other_damage,
        tasks_without_right_answer=unjudged_tasks,
        tasks_left_out=tasks_left_out,
        protected_left_out=tuple(task for task in tasks_left_out if task in (tasks or ())),
        left_out_reason=str(settings.get(LEFT_OUT_REASON_SETTING, UNGRADED_REASON)),
        tasks_never_right=tuple(task for task in unjudged_tasks if task in (tasks or ())),
        tasks_not_learned=find_tasks_not_learned(sides, outcome, {cell.task for cell in gate.cells}) if gate else (),
        answers_became_unlikely=format_unlikely(find_far_former_answers(run, tasks & set(unjudged_tasks))) if tasks else "",
        damage_text=(gate.damage_text or format_damage(gate)) if gate else "",
        form_change="; ".join(group.sentence for group in takeovers),
        gate_reason=gate.reason if gate else "",
    )


def _split_damage(claims: Sequence[Claim], gate: GateResult | None) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    """Claims of damage that decide, and those of what the user did not name; of a loss the gate says itself what decides."""
    if gate is not None and gate.reading_lines:
        unnamed_keys = {(cell.task, cell.level, False) for cell in gate.unprotected_losses}
        return (), tuple(claim for claim in claims if claim_key(claim) in unnamed_keys)
    damaged = tuple(claim for claim in claims if claim.kind == "damaged")
    if gate is None or not gate.named_by_user:
        return damaged, ()
    named_keys = {(cell.task, cell.level, cell.is_whole_task) for cell in (*gate.cells, *gate.damaged_tasks)}
    return tuple(damage_claim for damage_claim in damaged if claim_key(damage_claim) in named_keys), tuple(
        damage_claim for damage_claim in damaged if claim_key(damage_claim) not in named_keys
    )


PASSING_ADVICE = ("ship", "may replace", "not learned")
GATE_BY_ADVICE: Mapping[str, GateOutcome] = {"do not ship": "damaged", **dict.fromkeys(PASSING_ADVICE, "passed")}
"""Advice for two checkpoints -> what the gate answers; cannot tell for all other."""
BLOCKING_ADVICE = ("stop", "do not train", "not this plan")
"""Advice against the arms of a trial, with which no gate passes."""


def gate_answer(run: RunFolder) -> GateResult | None:
    """What the gate says of the folder as it is now; None where it was not asked.

    It never contradicts the page's first sentence, which rests on all that was measured.

    Raises:
        InputError: as `check_gate` does.
    """
    question = read_question(run)
    if question is None:
        return None
    result, (recommendation, basis) = check_gate(run, question), recommend_run(run)
    if recommendation is None:
        return result
    outcome = result.outcome if recommendation.advice not in BLOCKING_ADVICE else "damaged"
    if isinstance(basis, PairBasis):
        outcome = GATE_BY_ADVICE.get(recommendation.advice, "cannot tell")
    return result if outcome == result.outcome else replace(result, outcome=outcome, reason=recommendation.sentence)


def _read_settings(run: RunFolder) -> Mapping[str, Any]:
    return read_json(run.manifest, RunManifest).settings if run.manifest.is_file() else {}


def _read_number(settings: Mapping[str, Any], name: str) -> float:
    """A number among settings; 0 where there is none."""
    value = settings.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _name_later_checkpoint(settings: Mapping[str, Any]) -> str:
    """Last part of the path of the later checkpoint; empty where nobody noted it."""
    return PurePath(str(settings.get("checkpoint after", ""))).name

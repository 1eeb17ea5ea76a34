"""Section with the recommendation, what it rests on, and what to do next.

Source: trial/result.json and what was measured after training; measurements before and after when there was no trial.
Unit: the rule of rules/recommendation.py; differences of success in points, where nothing is graded in the outcome's unit.
Cost: reads the measurements of every arm.
Blind spot: speaks of the leading arm as a whole; which of its levers worked needs a plan with one lever.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from mixwright.contracts import Section
from mixwright.estimates.crossed import Estimate
from mixwright.estimates.judgement import change_word, format_word
from mixwright.estimates.outcome import SWAPPED_SUFFIX, Change, estimate_change
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, format_unit
from mixwright.records import Claim, TrialResult
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.arm_words import effect_of, effect_word, format_outcome
from mixwright.verdict.page.blocks import Block, Fact, Headline, Paragraph, Terms
from mixwright.verdict.page.text import format_cell, format_change, format_count, format_interval, format_signed, join_words
from mixwright.verdict.rules.basis import recommend_run
from mixwright.verdict.rules.claims import NO_ANSWER, leading_claims, sort_cells_first, to_interval
from mixwright.verdict.rules.evidence import Sides, headline_arm, leading_sides, plan_of, read_outcome, trial_of
from mixwright.verdict.rules.next_steps import list_next_steps
from mixwright.verdict.rules.recommendation import PairBasis, Recommendation, TrialBasis
from mixwright.verdict.rules.spared import spared_table
from mixwright.verdict.sections.gold import gold_fact

WORDS_BY_PROOF = {
    "not tried": "its nulls did not run, so it is not known what the gain comes from",
    "beats its nulls": "it beats its nulls, too",
    "does not beat its nulls": "but it does not beat its nulls, so the gain does not come from what the lever knows",
}
WORDS_BY_GATE = {
    "passed": "a loss on what was mastered before is excluded",
    "damaged": "what was mastered before is damaged",
    "cannot tell": "a loss on what was mastered before is not excluded",
}


class HeadlineSection(Section):
    """The recommendation in a sentence, the numbers under it, the next step, and the parts of the primary outcome."""

    ORDER = 0
    SHOWN_UNGRADED = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Of a trial, or of a plain before and after."""
        (recommendation, basis), result, claims = recommend_run(run), trial_of(run), leading_claims(run)
        if recommendation is None:
            return [Headline(_format_counts(claims))] if claims else []
        headline, *other_blocks = (
            _trial_blocks(run, recommendation, result, claims)
            if result
            else _pair_blocks(run, recommendation, basis, claims)
        )
        losses: list[Block] = []
        if isinstance(basis, TrialBasis):
            arms = sorted(basis.changes, key=lambda arm: arm != basis.lever)
            losses = spared_table(basis.named_losses(), {arm: basis.changes[arm] for arm in arms}, basis.unit)
        return [headline, *list_next_steps(run, recommendation, basis), *losses, *other_blocks]


def _trial_blocks(
    run: RunFolder, recommendation: Recommendation, result: TrialResult, claims: Sequence[Claim]
) -> list[Block]:
    """The primary effects of the lever against each reference and null; without a lever those of the references."""
    reading = READINGS[result.decoding]
    judgement = next((candidate for candidate in result.judgements if candidate.arm == headline_arm(run)), None)
    effects = [effect for effect in result.effects if effect.name == reading.name and effect.against in result.references]
    nulls = []
    if judgement is not None:
        lever_effects = [effect_of(result, judgement.arm, against) for against in (*result.references, *result.nulls)]
        effects = [effect for effect in lever_effects if effect is not None and effect.against in result.references]
        nulls = [
            f"{effect.against} {format_change(effect.difference, reading.unit)}, {effect_word(result, effect)}"
            for effect in lever_effects
            if effect is not None and effect.against in result.nulls
        ]
    lever_helps = judgement is not None and judgement.word == "helps"
    facts = []
    for effect in effects:
        # what must hold against every reference at once needs no correction: each contrast stands by itself
        effect_text = format_word("improves") if lever_helps else effect_word(result, effect)
        name = f"{reading.title}{'' if judgement else f' of {effect.arm}'} against {effect.against}"
        note = f"{format_interval(effect.difference, reading.unit)}; {effect_text}"
        facts.append(Fact(name, _format_value(effect.difference.value, reading.unit), note))
    nulls_text = f"Against its nulls, {reading.title} in {format_unit(reading.unit)}: {'; '.join(nulls)}." if nulls else ""
    return [
        Headline(recommendation.sentence, recommendation.tone, tuple(facts)),
        Paragraph(_format_judgement(run, result, claims)),
        Paragraph(nulls_text),
        Terms((reading.title, "[low, high]", *result.references, *(["null"] if nulls else []))),
    ]


def _format_judgement(run: RunFolder, result: TrialResult, claims: Sequence[Claim]) -> str:
    """The judgement of the lever in words, what decided it, and what it damaged; else why no lever was tried."""
    judgement = next((candidate for candidate in result.judgements if candidate.arm == headline_arm(run)), None)
    if judgement is None:
        plan = plan_of(run)
        tasks = {name for stage in plan.stages for name in stage.weights} if plan else set()
        only_whole_tasks = len(tasks) == 1 and claims and all(claim.level is None and not claim.whole for claim in claims)
        no_steering_note = (
            "One task without levels: there was nothing to steer, so training was only compared with not training."
        )
        return f"No lever was tried. {no_steering_note if only_whole_tasks else ''}".rstrip()
    arm, references, reading = judgement.arm, join_words(result.references), READINGS[result.decoding]
    text = {
        "helps": f"{arm} helps: it improves {reading.title} against {references}, each; {WORDS_BY_PROOF[judgement.proof]}.",
        "harms": f"{arm} harms: {reading.title} is worse than with a simpler choice.",
        "no change": f"{arm} makes {format_word('no change', result.margin, result.decoding)} of {reading.title}.",
        "cannot tell": f"{format_count(len(result.seeds), 'seed')} cannot tell whether {arm} helps.",
    }[judgement.word]
    if judgement.missing:
        text += f" Missing: {join_words(judgement.missing)}."
    if judgement.because:
        text += f" What decided: {judgement.because}."
    return text + _format_damage(claims, reading.unit)


def _format_damage(claims: Sequence[Claim], unit: str) -> str:
    """What is shown to be damaged, the largest three in words."""
    damaged = sort_cells_first(claims, "damaged")
    loss_texts = [f"{format_cell(claim)} {format_change(claim.difference, unit)}" for claim in damaged[:3]]
    rest_text = f" and {len(damaged) - 3} more" if len(damaged) > 3 else ""
    damage_text = (
        f" Shown to be damaged against the starting model, in {format_unit(unit)}: {join_words(loss_texts)}{rest_text}."
    )
    return damage_text if damaged else ""


def _pair_blocks(
    run: RunFolder, recommendation: Recommendation, basis: TrialBasis | PairBasis | None, claims: Sequence[Claim]
) -> list[Block]:
    """Before against after, without a trial's result; of the first arm where a trial has none yet."""
    outcome, sides = read_outcome(run), leading_sides(run)
    total_change = estimate_change(*sides, outcome=outcome) if sides else None
    if sides is None or total_change is None:
        return [Headline(recommendation.sentence, recommendation.tone), Paragraph(_format_counts(claims))]
    reading, graded = READINGS[outcome], outcome in GRADED_OUTCOMES
    none_right = isinstance(basis, PairBasis) and not basis.right
    word_text = (
        f"{format_word('cannot tell')}: {NO_ANSWER}"
        if none_right
        else format_word(change_word(total_change), outcome=outcome)
    )
    text = f"{format_count(len(total_change.items), 'held-out item')}, {reading.title}: {word_text}."
    text += f" {_format_counts(claims)}"
    if isinstance(basis, PairBasis) and basis.graded and basis.right and basis.protected and not basis.named:
        text += f" Of {format_count(basis.protected, 'cell')} mastered before: {WORDS_BY_GATE[basis.gate]}."
    terms = ("[low, high]", "S", "D") if graded else (reading.title, READINGS["margin"].title, "[low, high]")
    return [
        Headline(
            recommendation.sentence,
            recommendation.tone,
            tuple(_graded_facts(sides, total_change) if graded else _ungraded_facts(sides, total_change)),
        ),
        Paragraph(text + _format_damage(claims, reading.unit)),
        Paragraph(f"{format_outcome(outcome).capitalize()}; after minus before, paired by item."),
        Terms(terms),
    ]


def _graded_facts(sides: Sides, total_change: Change) -> list[Fact]:
    """The change of success, of S and of D, and of sampled success; greedy answers of two checkpoints are counted, too."""
    estimate_by_name = {
        "change of success": total_change.estimate,
        "= change of S": total_change.swapped,
        "+ change of D": total_change.dependence,
        "change of sampled success": total_change.sampled,
    }
    facts = [
        _change_fact(name, estimate, total_change.outcome)
        if math.isfinite(estimate.value)
        else Fact(name, format_word("cannot tell"), _format_unmeasured(sides, total_change))
        for name, estimate in estimate_by_name.items()
        if estimate is not None
    ]
    if total_change.outcome == "greedy" and len(sides[0]) == 1:
        old, new = (side[0].column(READINGS["greedy"].column, total_change.items) for side in sides)
        counted = f"{(new > old).sum():,} gained, {(new < old).sum():,} lost of {len(old):,}"
        facts[0] = replace(facts[0], note=f"{facts[0].note}; {counted}")
    return [*facts, *gold_fact(sides)]


def _format_unmeasured(sides: Sides, total_change: Change) -> str:
    """Of how many items S is not known, on either side: an evaluation log need not have what answers say."""
    column, items = READINGS[total_change.outcome].column + SWAPPED_SUFFIX, total_change.items
    unknown = sum(any(item not in scores.scores.get(column, {}) for side in sides for scores in side) for item in items)
    return f"not measured of {unknown:,} of {format_count(len(items), 'item')}"


def _ungraded_facts(sides: Sides, total_change: Change) -> list[Fact]:
    """The change of the outcome; of a preference also that of the margin."""
    margin = estimate_change(*sides, outcome="margin") if total_change.outcome == "preference" else None
    return [
        _change_fact(f"change of {READINGS[outcome_change.outcome].title}", outcome_change.estimate, outcome_change.outcome)
        for outcome_change in (total_change, margin)
        if outcome_change
    ]


def _change_fact(name: str, estimate: Estimate, outcome: Outcome) -> Fact:
    difference, unit = to_interval(estimate, outcome), READINGS[outcome].unit
    return Fact(name, _format_value(difference.value, unit), format_interval(difference, unit))


def _format_value(value: float, unit: str) -> str:
    return f"{format_signed(value, unit)} {format_unit(unit)}"


def _format_counts(claims: Sequence[Claim]) -> str:
    kinds = {kind: sum(claim.kind == kind for claim in claims) for kind in ("learnt", "damaged", "cannot tell")}
    return f"{', '.join(f'{number} {kind}' for kind, number in kinds.items())}, of {format_count(len(claims), 'claim')}."

"""Section with the recommendation, what it rests on, and what to do next.

Source: trial/result.json and what was measured after training; measurements before and after when there was no trial.
Unit: the rule of verdict/recommendation.py; differences of success in points, where nothing is graded in the outcome's unit.
Cost: reads the measurements of every arm.
Blind spot: speaks of the leading arm as a whole; which of its levers worked needs a plan with one lever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.estimates.crossed import Estimate
from mixwright.estimates.judgement import change_word, format_word
from mixwright.estimates.outcome import Change, estimate_change
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, format_unit
from mixwright.records import Claim, Effect, Judgement, TrialResult
from mixwright.runs import RunFolder
from mixwright.verdict.advice import format_cell
from mixwright.verdict.arm_words import (
    effect_of,
    effect_word,
    format_change,
    format_outcome,
    join_words,
    primary_effect_name,
)
from mixwright.verdict.basis import recommended
from mixwright.verdict.blocks import Block, Fact, Headline, Paragraph, Terms
from mixwright.verdict.claims import NO_ANSWER, cells_first, claims_of, interval
from mixwright.verdict.evidence import comparisons, decoding_of, headline_arm, plan_of, trial_of
from mixwright.verdict.gold_change import gold_fact
from mixwright.verdict.next_steps import steps_of
from mixwright.verdict.pair_advice import PairSeen
from mixwright.verdict.recommendation import Recommendation, TrialSeen
from mixwright.verdict.spared import spared_table
from mixwright.verdict.text import change as change_in
from mixwright.verdict.text import count, format_interval

WORDS_BY_PROOF = {
    "not tried": "its nulls did not run, so it is not known what the gain comes from",
    "beats its nulls": "it beats its nulls, too",
    "does not beat its nulls": "but it does not beat its nulls, so the gain does not come from what the lever knows",
}
PARTS = ("change of success", "= change of S", "+ change of D")
WORDS_BY_GATE = {
    "passed": "a loss on what was mastered before is excluded",
    "damaged": "what was mastered before is damaged",
    "cannot tell": "a loss on what was mastered before is not excluded",
}


class HeadlineSection(Section):
    """The recommendation in a sentence, the numbers under it, the next step, and the parts of the primary outcome."""

    ORDER: ClassVar[int] = 0
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Of a trial, or of a plain before and after."""
        (found, seen), result = recommended(run), trial_of(run)
        if found is None:
            return [Headline(_counted(claims))] if (claims := claims_of(run)) else []
        own = _trial(run, found, result) if result is not None else _plain(run, found, seen)
        return [*own[:1], *steps_of(run, found, seen), *_losses(seen), *own[1:]]


def _trial(run: RunFolder, found: Recommendation, result: TrialResult) -> list[Block]:
    judgement = next((judgement for judgement in result.judgements if judgement.arm == headline_arm(run)), None)
    effects = _shown(result, judgement)
    facts = [_fact(result, effect, judgement) for effect in effects]
    blocks: list[Block] = [Headline(found.sentence, found.tone, tuple(facts))]
    claims = claims_of(run)
    blocks.append(Paragraph(_judged(result, judgement, claims) if judgement else _untried(run, claims)))
    tried = (effect_of(result, judgement.arm, null) for null in result.nulls) if judgement else ()
    reading = READINGS[result.decoding]
    nulls = [
        f"{e.against} {format_change(e.difference, reading.unit)}, {effect_word(result, e)}" for e in tried if e is not None
    ]
    if nulls:
        blocks.append(Paragraph(f"Against its nulls, {reading.title} in {format_unit(reading.unit)}: {'; '.join(nulls)}."))
    blocks.append(Terms((reading.title, "[low, high]", *result.references, *(["null"] if nulls else []))))
    return blocks


def _losses(seen: TrialSeen | PairSeen | None) -> list[Block]:
    """What a trial damaged, under every arm that trained, the lever first."""
    if not isinstance(seen, TrialSeen):
        return []
    arms = sorted(seen.changes, key=lambda arm: arm != seen.lever)
    return spared_table(seen.named_losses(), {arm: seen.changes[arm] for arm in arms}, seen.unit)


def _untried(run: RunFolder, claims: Sequence[Claim]) -> str:
    """That no lever was tried, and why where the data has nothing to steer."""
    plan = plan_of(run)
    tasks = {name for stage in plan.stages for name in stage.weights} if plan else set()
    if len(tasks) == 1 and claims and all(claim.level is None and not claim.whole for claim in claims):
        return (
            "No lever was tried. One task without levels: there was nothing to steer, so training was only compared with "
            "not training."
        )
    return "No lever was tried."


def _shown(result: TrialResult, judgement: Judgement | None) -> list[Effect]:
    """The primary effects of the lever against each reference; without a lever those of the references."""
    if judgement is None:
        name = primary_effect_name(result)
        return [effect for effect in result.effects if effect.name == name and effect.against in result.references]
    found = [effect_of(result, judgement.arm, against) for against in result.references]
    return [effect for effect in found if effect is not None]


def _fact(result: TrialResult, effect: Effect, judgement: Judgement | None) -> Fact:
    # what must hold against every reference at once needs no correction: each contrast stands by itself
    helps = judgement is not None and judgement.word == "helps"
    said = format_word("improves") if helps else effect_word(result, effect)
    value, whose, reading = effect.difference, "" if judgement else f" of {effect.arm}", READINGS[result.decoding]
    note = f"{format_interval(value, reading.unit)}; {said}"
    return Fact(f"{reading.title}{whose} against {effect.against}", _moved(value.value, reading.unit), note)


def _moved(value: float, unit: str) -> str:
    return f"{change_in(value, unit)} {format_unit(unit)}"


def _judged(result: TrialResult, judgement: Judgement, claims: Sequence[Claim]) -> str:
    """The judgement of the lever in words, what decided it, and what it damaged."""
    arm, beaten, outcome = judgement.arm, join_words(result.references), READINGS[result.decoding].title
    said = {
        "helps": f"{arm} helps: it improves {outcome} against {beaten}, each; {WORDS_BY_PROOF[judgement.proof]}.",
        "harms": f"{arm} harms: {outcome} is worse than with a simpler choice.",
        "no change": f"{arm} makes {format_word('no change', result.margin, result.decoding)} of {outcome}.",
        "cannot tell": f"{count(len(result.seeds), 'seed')} cannot tell whether {arm} helps.",
    }
    text = said[judgement.word]
    if judgement.missing:
        text += f" Missing: {join_words(judgement.missing)}."
    if judgement.because:
        text += f" What decided: {judgement.because}."
    damaged = [claim for claim in claims if claim.kind == "damaged"]
    return text + (f" {_lost(damaged, READINGS[result.decoding].unit)}" if damaged else "")


def _lost(damaged: Sequence[Claim], unit: str) -> str:
    first = cells_first(damaged, "damaged")[:3]
    named = [f"{format_cell(claim)} {format_change(claim.difference, unit)}" for claim in first]
    more = f" and {len(damaged) - len(first)} more" if len(damaged) > len(first) else ""
    return f"Shown to be damaged against the starting model, in {format_unit(unit)}: {join_words(named)}{more}."


def _plain(run: RunFolder, found: Recommendation, seen: TrialSeen | PairSeen | None) -> list[Block]:
    """Before against after, without a trial's result."""
    claims, whole = claims_of(run), _whole(run)
    if whole is None:
        return [Headline(found.sentence, found.tone), Paragraph(_counted(claims))]
    outcome, reading = whole.outcome, READINGS[whole.outcome]
    facts = _parts(run, whole) if outcome in GRADED_OUTCOMES else _ungraded(run, whole)
    none = isinstance(seen, PairSeen) and not seen.right
    said = f"{format_word('cannot tell')}: {NO_ANSWER}" if none else format_word(change_word(whole), outcome=outcome)
    text = f"{count(len(whole.items), 'held-out item')}, {reading.title}: {said}. {_counted(claims)}"
    if isinstance(seen, PairSeen) and seen.graded and seen.right and seen.protected and not seen.named:
        text += f" Of {count(seen.protected, 'cell')} mastered before: {WORDS_BY_GATE[seen.gate]}."
    if damaged := [claim for claim in claims if claim.kind == "damaged"]:
        text += f" {_lost(damaged, reading.unit)}"
    terms = (
        ("[low, high]", "S", "D") if outcome in GRADED_OUTCOMES else (reading.title, READINGS["margin"].title, "[low, high]")
    )
    note = f"{format_outcome(outcome).capitalize()}; after minus before, paired by item."
    return [Headline(found.sentence, found.tone, tuple(facts)), *map(Paragraph, (text, note)), Terms(terms)]


def _parts(run: RunFolder, whole: Change) -> list[Fact]:
    """The change of success, of S and of D, and of sampled success; greedy answers of two checkpoints are counted, too."""
    parts = zip(PARTS, (whole.success, whole.swapped, whole.dependence), strict=True)
    every = [*parts, ("change of sampled success", whole.sampled)]
    facts = [_changed(name, part, whole.outcome) for name, part in every if part is not None]
    sides = comparisons(run)[headline_arm(run)]
    if whole.outcome == "greedy" and len(sides[0]) == 1:
        old, new = (side[0].column(READINGS["greedy"].column, whole.items) for side in sides)
        counted = f"{(new > old).sum():,} gained, {(new < old).sum():,} lost of {len(old):,}"
        facts[0] = replace(facts[0], note=f"{facts[0].note}; {counted}")
    return [*facts, *gold_fact(sides)]


def _ungraded(run: RunFolder, whole: Change) -> list[Fact]:
    """The change of the outcome; of a preference also that of the margin."""
    facts = [_changed(f"change of {READINGS[whole.outcome].title}", whole.success, whole.outcome)]
    if whole.outcome == "preference" and (margin := _whole(run, "margin")) is not None:
        facts.append(_changed(f"change of {READINGS['margin'].title}", margin.success, "margin"))
    return facts


def _changed(name: str, part: Estimate, outcome: Outcome) -> Fact:
    found, unit = interval(part, outcome), READINGS[outcome].unit
    return Fact(name, _moved(found.value, unit), format_interval(found, unit))


def _counted(claims: Sequence[Claim]) -> str:
    kinds = {kind: sum(claim.kind == kind for claim in claims) for kind in ("learnt", "damaged", "cannot tell")}
    return f"{', '.join(f'{number} {kind}' for kind, number in kinds.items())}, of {count(len(claims), 'claim')}."


def _whole(run: RunFolder, outcome: Outcome | None = None) -> Change | None:
    """The change of the primary outcome, or of another; of the first arm where a trial has no result yet."""
    sides = comparisons(run).get(headline_arm(run))
    return estimate_change(*sides, decoding=outcome or decoding_of(run)) if sides else None

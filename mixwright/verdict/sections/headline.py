"""Section with the recommendation, what it rests on, and what to do next.

Source: trial/result.json and what was measured after training; measurements before and after when there was no trial.
Unit: the rule of rules/recommendation.py; differences of success in points, where nothing is graded in the outcome's unit.
Cost: reads the measurements of every arm.
Blind spot: speaks of the leading arm as a whole; which of its levers worked needs a plan with one lever.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mixwright.contracts import Section
from mixwright.estimates.crossed import Estimate
from mixwright.estimates.judgement import change_word, format_word
from mixwright.estimates.outcome import Change, estimate_change
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, format_unit
from mixwright.records import Claim, TrialResult
from mixwright.run.folder import RunFolder
from mixwright.verdict.page.arm_words import effect_of, effect_word, format_outcome
from mixwright.verdict.page.blocks import Block, Fact, Headline, Paragraph, Terms
from mixwright.verdict.page.evidence import Sides, decoding_of, headline_arm, leading_sides, plan_of, trial_of
from mixwright.verdict.page.text import change, count, format_cell, format_change, format_interval, join_words
from mixwright.verdict.rules.basis import recommended
from mixwright.verdict.rules.claims import NO_ANSWER, cells_first, claims_of, interval
from mixwright.verdict.rules.next_steps import steps_of
from mixwright.verdict.rules.recommendation import PairSeen, Recommendation, TrialSeen
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
        (found, seen), result, claims = recommended(run), trial_of(run), claims_of(run)
        if found is None:
            return [Headline(_counted(claims))] if claims else []
        head, *rest = _trial(run, found, result, claims) if result else _plain(run, found, seen, claims)
        losses: list[Block] = []
        if isinstance(seen, TrialSeen):
            arms = sorted(seen.changes, key=lambda arm: arm != seen.lever)
            losses = spared_table(seen.named_losses(), {arm: seen.changes[arm] for arm in arms}, seen.unit)
        return [head, *steps_of(run, found, seen), *losses, *rest]


def _trial(run: RunFolder, found: Recommendation, result: TrialResult, claims: Sequence[Claim]) -> list[Block]:
    """The primary effects of the lever against each reference and null; without a lever those of the references."""
    reading = READINGS[result.decoding]
    judgement = next((one for one in result.judgements if one.arm == headline_arm(run)), None)
    effects = [effect for effect in result.effects if effect.name == reading.name and effect.against in result.references]
    nulls = []
    if judgement is not None:
        own = [effect_of(result, judgement.arm, against) for against in (*result.references, *result.nulls)]
        effects = [effect for effect in own if effect is not None and effect.against in result.references]
        nulls = [
            f"{effect.against} {format_change(effect.difference, reading.unit)}, {effect_word(result, effect)}"
            for effect in own
            if effect is not None and effect.against in result.nulls
        ]
    helps = judgement is not None and judgement.word == "helps"
    facts = []
    for effect in effects:
        # what must hold against every reference at once needs no correction: each contrast stands by itself
        said = format_word("improves") if helps else effect_word(result, effect)
        name = f"{reading.title}{'' if judgement else f' of {effect.arm}'} against {effect.against}"
        note = f"{format_interval(effect.difference, reading.unit)}; {said}"
        facts.append(Fact(name, _moved(effect.difference.value, reading.unit), note))
    tried = f"Against its nulls, {reading.title} in {format_unit(reading.unit)}: {'; '.join(nulls)}." if nulls else ""
    return [
        Headline(found.sentence, found.tone, tuple(facts)),
        Paragraph(_judged(run, result, claims)),
        Paragraph(tried),
        Terms((reading.title, "[low, high]", *result.references, *(["null"] if nulls else []))),
    ]


def _judged(run: RunFolder, result: TrialResult, claims: Sequence[Claim]) -> str:
    """The judgement of the lever in words, what decided it, and what it damaged; else why no lever was tried."""
    judgement = next((one for one in result.judgements if one.arm == headline_arm(run)), None)
    if judgement is None:
        plan = plan_of(run)
        tasks = {name for stage in plan.stages for name in stage.weights} if plan else set()
        alone = len(tasks) == 1 and claims and all(claim.level is None and not claim.whole for claim in claims)
        why = "One task without levels: there was nothing to steer, so training was only compared with not training."
        return f"No lever was tried. {why if alone else ''}".rstrip()
    arm, beaten, reading = judgement.arm, join_words(result.references), READINGS[result.decoding]
    text = {
        "helps": f"{arm} helps: it improves {reading.title} against {beaten}, each; {WORDS_BY_PROOF[judgement.proof]}.",
        "harms": f"{arm} harms: {reading.title} is worse than with a simpler choice.",
        "no change": f"{arm} makes {format_word('no change', result.margin, result.decoding)} of {reading.title}.",
        "cannot tell": f"{count(len(result.seeds), 'seed')} cannot tell whether {arm} helps.",
    }[judgement.word]
    if judgement.missing:
        text += f" Missing: {join_words(judgement.missing)}."
    if judgement.because:
        text += f" What decided: {judgement.because}."
    return text + _lost(claims, reading.unit)


def _lost(claims: Sequence[Claim], unit: str) -> str:
    """What is shown to be damaged, the largest three in words."""
    damaged = cells_first(claims, "damaged")
    named = [f"{format_cell(claim)} {format_change(claim.difference, unit)}" for claim in damaged[:3]]
    more = f" and {len(damaged) - 3} more" if len(damaged) > 3 else ""
    told = f" Shown to be damaged against the starting model, in {format_unit(unit)}: {join_words(named)}{more}."
    return told if damaged else ""


def _plain(run: RunFolder, found: Recommendation, seen: TrialSeen | PairSeen | None, claims: Sequence[Claim]) -> list[Block]:
    """Before against after, without a trial's result; of the first arm where a trial has none yet."""
    outcome, sides = decoding_of(run), leading_sides(run)
    whole = estimate_change(*sides, decoding=outcome) if sides else None
    if sides is None or whole is None:
        return [Headline(found.sentence, found.tone), Paragraph(_counted(claims))]
    reading, graded = READINGS[outcome], outcome in GRADED_OUTCOMES
    none = isinstance(seen, PairSeen) and not seen.right
    said = f"{format_word('cannot tell')}: {NO_ANSWER}" if none else format_word(change_word(whole), outcome=outcome)
    text = f"{count(len(whole.items), 'held-out item')}, {reading.title}: {said}. {_counted(claims)}"
    if isinstance(seen, PairSeen) and seen.graded and seen.right and seen.protected and not seen.named:
        text += f" Of {count(seen.protected, 'cell')} mastered before: {WORDS_BY_GATE[seen.gate]}."
    terms = ("[low, high]", "S", "D") if graded else (reading.title, READINGS["margin"].title, "[low, high]")
    return [
        Headline(found.sentence, found.tone, tuple(_graded(sides, whole) if graded else _ungraded(sides, whole))),
        Paragraph(text + _lost(claims, reading.unit)),
        Paragraph(f"{format_outcome(outcome).capitalize()}; after minus before, paired by item."),
        Terms(terms),
    ]


def _graded(sides: Sides, whole: Change) -> list[Fact]:
    """The change of success, of S and of D, and of sampled success; greedy answers of two checkpoints are counted, too."""
    parts = {
        "change of success": whole.success,
        "= change of S": whole.swapped,
        "+ change of D": whole.dependence,
        "change of sampled success": whole.sampled,
    }
    facts = [_fact(name, part, whole.outcome) for name, part in parts.items() if part is not None]
    if whole.outcome == "greedy" and len(sides[0]) == 1:
        old, new = (side[0].column(READINGS["greedy"].column, whole.items) for side in sides)
        counted = f"{(new > old).sum():,} gained, {(new < old).sum():,} lost of {len(old):,}"
        facts[0] = replace(facts[0], note=f"{facts[0].note}; {counted}")
    return [*facts, *gold_fact(sides)]


def _ungraded(sides: Sides, whole: Change) -> list[Fact]:
    """The change of the outcome; of a preference also that of the margin."""
    margin = estimate_change(*sides, decoding="margin") if whole.outcome == "preference" else None
    return [_fact(f"change of {READINGS[one.outcome].title}", one.success, one.outcome) for one in (whole, margin) if one]


def _fact(name: str, part: Estimate, outcome: Outcome) -> Fact:
    found, unit = interval(part, outcome), READINGS[outcome].unit
    return Fact(name, _moved(found.value, unit), format_interval(found, unit))


def _moved(value: float, unit: str) -> str:
    return f"{change(value, unit)} {format_unit(unit)}"


def _counted(claims: Sequence[Claim]) -> str:
    kinds = {kind: sum(claim.kind == kind for claim in claims) for kind in ("learnt", "damaged", "cannot tell")}
    return f"{', '.join(f'{number} {kind}' for kind, number in kinds.items())}, of {count(len(claims), 'claim')}."

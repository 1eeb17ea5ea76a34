"""Section with the verdict in one sentence: success over all held-out items against every simple alternative.

Source: trial/result.json; measurements before and after when there was no trial.
Unit: verdict words; differences of success in points.
Cost: reads a few small files.
Blind spot: speaks of the leading arm as a whole; which of its levers worked needs a plan with one lever.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.estimates.judgement import change_word, told
from mixwright.estimates.outcome import Change, change
from mixwright.records import Claim, Judgement, TrialResult
from mixwright.runs import RunFolder
from mixwright.verdict.arm_words import effect_of, listed, outcome_told, with_interval, word
from mixwright.verdict.blocks import Block, Fact, Headline, Paragraph, Table, Tone
from mixwright.verdict.claims import claims_of, interval
from mixwright.verdict.evidence import comparisons, decoding_of, lead, trial_of
from mixwright.verdict.text import between, count, points

PROOFS = {
    "not tried": "its nulls did not run, so it is not known what the gain comes from",
    "beats its nulls": "it beats its nulls, too",
    "does not beat its nulls": "but it does not beat its nulls, so the gain does not come from what the lever knows",
}
PARTS = ("change of success", "= change of S", "+ change of D")


class HeadlineSection(Section):
    """One sentence, the primary outcome against each reference, and its parts."""

    ORDER: ClassVar[int] = 0

    def blocks(self, run: RunFolder) -> list[Block]:
        """The headline of a trial, or of a plain before and after."""
        result = trial_of(run)
        return _plain(run) if result is None else _trial(result, lead(run), claims_of(run))


def _trial(result: TrialResult, arm: str, claims: Sequence[Claim]) -> list[Block]:
    judgement = next((judgement for judgement in result.judgements if judgement.arm == arm), None)
    if judgement is None:
        return [Headline("No lever was tried: nothing is judged here.")]
    facts, rows = [], []
    for against in result.references:
        effect = effect_of(result, arm, against)
        if effect is None:
            continue
        value = effect.difference
        # what must hold against every reference at once needs no correction: each contrast stands by itself
        said = told("improves") if judgement.word == "helps" else word(result, effect)
        note = f"{between(value.low, value.high)}; {said}"
        facts.append(Fact(f"success against {against}", f"{points(value.value)} points", note))
        sampled = effect.sampled if result.decoding == "greedy" else value
        items = effect_of(result, arm, against, "success.items")
        parts = (value, effect.swapped, effect.dependence, sampled, items.difference if items else None)
        rows.append((f"against {against}", *map(with_interval, parts)))
    text, tone = _sentence(result, judgement, sum(claim.kind == "damaged" for claim in claims))
    tried = (effect_of(result, arm, null) for null in result.nulls)
    nulls = [f"{e.against} {with_interval(e.difference)}, {word(result, e)}" for e in tried if e is not None]
    blocks: list[Block] = [Headline(text, tone, tuple(facts))]
    if judgement.because:
        blocks.append(Paragraph(f"What decided: {judgement.because}."))
    if nulls:
        blocks.append(Paragraph(f"Success against its nulls, in points: {'; '.join(nulls)}."))
    if rows:
        caption = f"Points; {outcome_told(result.decoding)}; sampled success and the mean over items beside it"
        columns = ("", *PARTS, "sampled success", "mean over items")
        blocks.append(Table(caption, columns, rows, (1, 2, 3, 4, 5)))
    return blocks


def _sentence(result: TrialResult, judgement: Judgement, damaged: int) -> tuple[str, Tone]:
    arm, beaten = judgement.arm, listed(result.references)
    missing = f" Missing: {listed(judgement.missing)}." if judgement.missing else ""
    if damaged:
        missing += f" Against the starting model {count(damaged, 'cell or task')} is shown to be damaged."
    if judgement.word == "helps":
        tone: Tone = "good" if judgement.proof == "beats its nulls" and not damaged else "plain"
        return f"{arm} helps: it improves success against {beaten}, each; {PROOFS[judgement.proof]}.{missing}", tone
    if judgement.word == "harms":
        return f"{arm} harms: success is worse than with a simpler choice. Keep the simpler one.{missing}", "bad"
    if judgement.word == "no change":
        return f"{arm} makes {told('no change', result.margin)} of success. Keep the simplest choice.{missing}", "plain"
    seeds = f"{count(len(result.seeds), 'seed')} cannot tell whether {arm} helps."
    return seeds + missing, "plain"


def _plain(run: RunFolder) -> list[Block]:
    """Before against after, without a trial."""
    claims, decoding = claims_of(run), decoding_of(run)
    kinds = {kind: sum(claim.kind == kind for claim in claims) for kind in ("learnt", "damaged", "cannot tell")}
    counts = f"{', '.join(f'{number} {kind}' for kind, number in kinds.items())}, of {count(len(claims), 'claim')}."
    found = _whole(run)
    if found is None:
        return [Headline(f"{counts[0].upper()}{counts[1:]}")] if claims else []
    said = change_word(found)
    items = len(found.items)
    text = f"Success of {count(items, 'held-out item')}: {told(said)}. {counts}"
    facts = [
        Fact(name, f"{points(part.value)} points", between(interval(part).low, interval(part).high))
        for name, part in (
            *zip(PARTS, (found.success, found.swapped, found.dependence), strict=True),
            ("sampled", found.sampled),
        )
        if part is not None
    ]
    note = Paragraph(f"{outcome_told(decoding).capitalize()}; after minus before, paired by item, 95 % intervals.")
    return [Headline(text, "bad" if said == "worsens" else "plain", tuple(facts)), note]


def _whole(run: RunFolder) -> Change | None:
    """The change of the primary outcome; of the first arm where a trial has no result yet."""
    sides = comparisons(run).get(lead(run))
    return change(*sides, decoding=decoding_of(run)) if sides else None

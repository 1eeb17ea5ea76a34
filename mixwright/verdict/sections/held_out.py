"""Section of a run in which nothing was graded: held-out loss (SFT) or preference accuracy (DPO) before and after.

Source: trial/result.json and claims.json; measurements before and after when there was no trial.
Unit: nats per token; preference accuracy in percent, its differences in points; 95 % intervals over seeds and items.
Cost: reads a few small files.
Blind spot: a lower loss or a higher preference accuracy does not say that an answer is right, or that one is better written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from mixwright.contracts import Section
from mixwright.estimates.judgement import told
from mixwright.estimates.readings import GRADED, READINGS, Outcome, points_away, unit_told
from mixwright.records import Claim, ClaimKind, Effect, Interval, Judgement, TrialResult, cell_key
from mixwright.runs import RunFolder
from mixwright.verdict.blocks import Block, Fact, Fold, Headline, Paragraph, Table, Tone
from mixwright.verdict.claims import claims_of, kind_told
from mixwright.verdict.evidence import decoding_of, lead, trial_of, whose
from mixwright.verdict.text import NONE, amount, count

UNSAID: dict[Outcome, str] = {
    "loss": "No graded answers: nothing is said about whether answers are right. Held-out loss is the mean negative "
    "log-probability of the given targets, in nats per token; lower is better.",
    "preference": "No graded answers: nothing is said about whether answers are right, or about what the model would write. "
    "Preference accuracy is the share of held-out pairs whose chosen answer is likelier than the rejected one; its chance "
    "level is 50 %.",
}
FIRST = 8
"""Claims of each kind that stay open."""
COLUMNS = ("task and level", "before", "after", "change", "what it is called", "rests on")


class HeldOut(Section):
    """What moved, by which arm, against what, and what this outcome cannot say."""

    ORDER: ClassVar[int] = 0
    TITLE: ClassVar[str] = "Held-out outcome"
    UNGRADED: ClassVar[bool] = True

    def blocks(self, run: RunFolder) -> list[Block]:
        """Silent where answers were graded."""
        outcome = decoding_of(run)
        result, claims = trial_of(run), claims_of(run)
        if outcome in GRADED or (result is None and not claims):
            return []
        blocks = _trial(result, lead(run), outcome) if result is not None else [_plain(claims, outcome)]
        blocks.append(Paragraph(UNSAID[outcome], "caution"))
        for kind in ("learnt", "damaged"):
            blocks += _claims(claims, kind, outcome, whose(run))
        rest = [claim for claim in claims if claim.kind not in ("learnt", "damaged")]
        if rest:
            blocks.append(
                Fold(f"{count(len(rest), 'claim')} without a shown change", (_table("Other cells", rest, outcome),))
            )
        return blocks if result is None else [*blocks, *_all(result, outcome)]


def _trial(result: TrialResult, arm: str, outcome: Outcome) -> list[Block]:
    reading = READINGS[outcome]
    own = [effect for effect in result.effects if (effect.arm, effect.name) == (arm, reading.name)]
    facts = tuple(
        Fact(f"{reading.told} against {e.against}", _moved(e.difference, outcome), _called(result, e)) for e in own
    )
    judgement = next((judgement for judgement in result.judgements if judgement.arm == arm), None)
    text, tone = _sentence(result, judgement, own, outcome)
    decided = [Paragraph(f"What decided: {judgement.because}.")] if judgement is not None and judgement.because else []
    return [Headline(text, tone, facts), *decided]


def _sentence(result: TrialResult, judgement: Judgement | None, own: Sequence[Effect], outcome: Outcome) -> tuple[str, Tone]:
    """The verdict in one sentence; without a lever, what training did against not training."""
    told_of = READINGS[outcome].told
    if judgement is None:
        effect = next(iter(own), None)
        if effect is None or effect.word is None:
            return f"No arm was compared with another: nothing is said of its {told_of}.", "plain"
        tone: Tone = "good" if effect.word == "improves" else "bad" if effect.word == "worsens" else "plain"
        said = {
            "improves": f"improves {told_of}",
            "worsens": f"worsens {told_of}",
            "no change": f"{told('no change', result.margin, outcome)} of {told_of}",
        }.get(effect.word, f"it cannot be told whether {told_of} changed")
        return f"Training ({effect.arm}) against {effect.against}: {said}. No lever was tried.", tone
    arm, beaten = judgement.arm, ", ".join(result.references)
    said = {
        "helps": f"{arm} helps: it improves {told_of} against {beaten}, each.",
        "harms": f"{arm} harms: {told_of} is worse than with a simpler choice. Keep the simpler one.",
        "no change": f"{arm} makes {told('no change', result.margin, outcome)} of {told_of}. Keep the simplest choice.",
        "cannot tell": f"{count(len(result.seeds), 'seed')} cannot tell whether {arm} helps.",
    }[judgement.word]
    missing = f" Missing: {', '.join(judgement.missing)}." if judgement.missing else ""
    return said + missing, {"helps": "good", "harms": "bad"}.get(judgement.word, "plain")  # type: ignore[return-value]


def _plain(claims: Sequence[Claim], outcome: Outcome) -> Block:
    """Before against after, without a trial."""
    counts = ", ".join(
        f"{sum(claim.kind == kind for claim in claims)} {kind}" for kind in ("learnt", "damaged", "cannot tell")
    )
    return Headline(f"{READINGS[outcome].told.capitalize()} of {count(len(claims), 'cell or task')}: {counts}.")


def _claims(claims: Sequence[Claim], kind: ClaimKind, outcome: Outcome, of: str) -> list[Block]:
    found = sorted((c for c in claims if c.kind == kind), key=lambda claim: (claim.whole, -abs(claim.difference.value)))
    if not found:
        return [Paragraph(f"{kind.capitalize()}: nothing is shown{of}.")]
    blocks: list[Block] = [_table(f"{kind.capitalize()}{of}", found[:FIRST], outcome)]
    if found[FIRST:]:
        blocks.append(Fold(f"{len(found) - FIRST} more", (_table(kind.capitalize(), found[FIRST:], outcome),)))
    return blocks


def _table(caption: str, claims: Sequence[Claim], outcome: Outcome) -> Table:
    rows = [
        (
            f"{claim.task}, whole task" if claim.whole else cell_key(claim.task, claim.level),
            _level(claim.before, outcome),
            _level(claim.after, outcome),
            _moved(claim.difference, outcome),
            kind_told(claim.kind) if claim.kind != "unchanged" else "no change beyond the margin",
            claim.evidence,
        )
        for claim in claims
    ]
    return Table(caption, COLUMNS, rows, (1, 2, 3))


def _all(result: TrialResult, outcome: Outcome) -> list[Block]:
    """Every comparison of arms, the raw rows, and the notes."""
    columns = ("number", "arm", "against", "difference", "p", "word")
    rows = []
    for e in result.effects:
        moved = _moved(e.difference, "margin" if e.name == READINGS["margin"].name else outcome)
        rows.append((e.name, e.arm, e.against, moved, f"{e.p:.2g}", _called(result, e, ends=False)))
    raw = [(row.arm, str(row.seed), row.name, amount(row.value, row.unit)) for row in result.rows]
    return [
        Table("Every comparison against another arm", columns, rows, (3, 4)),
        Fold("Raw rows, one per arm, seed and number", (Table("Rows", ("arm", "seed", "number", "value"), raw, (1, 3)),)),
        Fold("How these numbers are made", tuple(Paragraph(note) for note in result.notes)),
    ]


def _called(result: TrialResult, effect: Effect, *, ends: bool = True) -> str:
    """The word of an effect; a dash for what is not judged."""
    if effect.word is None:
        return NONE
    helps = any(judged.arm == effect.arm and judged.word == "helps" for judged in result.judgements)
    said = told("improves" if helps and effect.against in result.references else effect.word, result.margin, result.decoding)
    return f"over {count(effect.items, 'item')}; {said}" if ends else said


def _level(value: float, outcome: Outcome) -> str:
    return f"{100 * value:.0f} %" if READINGS[outcome].unit == "share" else f"{value:.3g} {READINGS[outcome].unit}"


def _moved(found: Interval, outcome: Outcome) -> str:
    """`-0.33 nats per token [-0.41, -0.25]`."""
    unit = READINGS[outcome].unit
    ends = f"[{points_away(found.low, unit)}, {points_away(found.high, unit)}]"
    return f"{points_away(found.value, unit)} {unit_told(unit)} {ends}"

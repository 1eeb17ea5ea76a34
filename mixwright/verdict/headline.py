"""The verdict in one sentence: which levers help here, which harm, and whether any of it is proven.

Source: trial/result.json, plan.yaml, decisions.jsonl; claims when there was no trial.
Unit: verdict words; shares in percent, differences in points.
Cost: reads two small files.
Blind spot: speaks of the leading arm as a whole; which of its levers worked needs a plan with one lever.
"""

from __future__ import annotations

from typing import ClassVar

from mixwright.contracts import Section
from mixwright.records import Effect, TrialResult
from mixwright.runs import RunFolder
from mixwright.verdict._arms import JUDGED, START, TONES, in_words, judged, listed, unit_of
from mixwright.verdict._blocks import Block, Fact, Headline, Paragraph, Tone
from mixwright.verdict._claims import claims_of
from mixwright.verdict._evidence import arms, json_lines, lead, plan_of, trial_of
from mixwright.verdict._text import between, change, count, name_of, percent

MOST_FACTS = 5
FEWEST_SEEDS = 5
"""Below this many, a trial's words are all inconclusive."""


class HeadlineSection(Section):
    """One sentence, at most five numbers, and a warning where one is due."""

    ORDER: ClassVar[int] = 0

    def blocks(self, run: RunFolder) -> list[Block]:
        """The headline of a trial, or of a plain before and after."""
        result = trial_of(run)
        if result is None:
            claims = claims_of(run)
            if not claims:
                return []
            kinds = {kind: sum(claim.kind == kind for claim in claims) for kind in ("learnt", "damaged", "unmeasurable")}
            tone: Tone = "bad" if kinds["damaged"] else ("good" if kinds["learnt"] else "plain")
            text = f"{kinds['learnt']} learnt, {kinds['damaged']} damaged, {kinds['unmeasurable']} unmeasurable"
            return [Headline(f"{text}, of {count(len(claims), 'claim')}.", tone)]
        arm = lead(run)
        effects = judged([effect for effect in result.effects if effect.arm == arm and effect.against != START])
        text, tone = _sentence(result, arm, effects)
        return [
            Headline(text, tone, tuple(_fact(result, effect) for effect in effects[:MOST_FACTS])),
            *_nulls(result),
            *_traps(run, arm, result),
        ]


def _sentence(result: TrialResult, arm: str, effects: list[Effect]) -> tuple[str, Tone]:
    if result.unproven:
        return "Every lever of this run is unproven: a null arm gained without learning from its rewards.", "caution"
    if not effects:
        return f"{arm} was not compared with another arm.", "plain"
    named = {word: [name_of(e.name) for e in effects if e.word == word] for word in TONES}
    against = listed(sorted({effect.against for effect in effects}))
    if named["harms"] and named["helps"]:
        both = f"improves {listed(named['helps'])}, and worsens {listed(named['harms'])}"
        return f"Against {against}, {arm} {both}.", "caution"
    if named["harms"]:
        return f"Against {against}, {arm} worsens {listed(named['harms'])}: keep {against}.", "bad"
    if named["helps"]:
        rest = [name_of(e.name) for e in effects[:MOST_FACTS] if e.word in ("no measurable effect", "inconclusive")]
        tail = f"; not shown for {listed(rest)}" if rest else ""
        return f"Against {against}, {arm} improves {listed(named['helps'])}{tail}.", "good"
    if named["inconclusive"]:
        needed = "" if len(result.seeds) >= FEWEST_SEEDS else f"; {FEWEST_SEEDS} are the least that can"
        return f"Inconclusive: {count(len(result.seeds), 'seed')} cannot tell {arm} from {against}{needed}.", "plain"
    return f"No measurable effect of {arm} here: keep {against}.", "plain"


def _fact(result: TrialResult, effect: Effect) -> Fact:
    unit = unit_of(result, effect)
    interval = between(effect.difference.low, effect.difference.high, unit)
    note = f"{interval}, noise floor ±{change(abs(effect.noise_floor), unit).lstrip('+')}; {effect.word}"
    tone = "plain" if result.unproven else TONES[effect.word]
    suffix = " points" if unit == "share" else ""
    return Fact(name_of(effect.name), change(effect.difference.value, unit) + suffix, note, tone)


def _nulls(result: TrialResult) -> list[Block]:
    """What the arms without information did on the cells that levers are judged on."""
    found: list[Block] = []
    for arm in result.nulls:
        own = [effect for effect in result.effects if effect.arm == arm and effect.name.startswith("success")]
        first = min((JUDGED.index(e.name) for e in own if e.name in JUDGED), default=None)
        effects = [effect for effect in own if first is None or effect.name == JUDGED[first]]
        if effects:
            gained = any(effect.difference.n > 1 and effect.difference.low > 0 for effect in effects)
            words = "; ".join(f"{in_words(result, effect)} against {_reference(effect)}" for effect in effects)
            found.append(Paragraph(f"Null arm {arm}: {words}.", "caution" if gained else "plain"))
    return found


def _traps(run: RunFolder, arm: str, result: TrialResult) -> list[Block]:
    """Cells that the arm refused because luck explains what is right in them, and what became of such cells."""
    refused: dict[str, set[int]] = {}
    for seed, folder in (branches := arms(run).get(arm, [])):
        for item in json_lines(folder / "decisions.jsonl"):
            what, because = str(item.get("what", "")), str(item.get("because", ""))
            if what.startswith("refuse.") and item.get("new") == "refused" and because.startswith("lucky"):
                refused.setdefault(what.removeprefix("refuse."), set()).add(seed)
    plan = plan_of(run)
    known = {cell.key: cell for cell in plan.cells} if plan else {}
    told = [
        f"{key} ({percent(known[key].success)} right, {percent(known[key].luck)} by luck; {len(on)}/{len(branches)} seeds)"
        for key, on in sorted(refused.items())
        if key in known
    ]
    found: list[Block] = [Paragraph(f"Luck traps refused by name: {', '.join(told)}.")] if told else []
    for effect in result.effects:
        if (effect.arm, effect.name) == (arm, "success.lucky") and effect.word in ("helps", "harms"):
            text = f"{arm}: {in_words(result, effect)} against {_reference(effect)}"
            found.append(Paragraph(f"{text}. One constant answer is right as often there, so no skill is shown either way."))
    return found


def _reference(effect: Effect) -> str:
    return "its own start" if effect.against == START else effect.against

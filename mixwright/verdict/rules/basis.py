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
from mixwright.estimates.outcome import estimate_change
from mixwright.estimates.power import seeds_for
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.measure.notes import CUT_NOTE
from mixwright.records import Claim, Observation, RunManifest, TrialResult
from mixwright.run.folder import RunFolder, read_json, read_list
from mixwright.trial.arm_roles import builtin_arm
from mixwright.verdict.page import evidence
from mixwright.verdict.page.arm_words import differences
from mixwright.verdict.page.evidence import Sides
from mixwright.verdict.rules.answer_forms import form_changes_of, grouped
from mixwright.verdict.rules.claims import clip_interval, every_claim, far_former_answers, format_unlikely, unjudged
from mixwright.verdict.rules.gate import GateResult, check_mastered
from mixwright.verdict.rules.gate import Outcome as GateOutcome
from mixwright.verdict.rules.gate_asked import asked_of
from mixwright.verdict.rules.gate_ungraded import gate_of
from mixwright.verdict.rules.gate_words import format_damage
from mixwright.verdict.rules.recommendation import (
    EQUAL_SHARES_ARM,
    UNIFORM_ARM,
    Contrast,
    PairSeen,
    Recommendation,
    TrialSeen,
    recommend,
)
from mixwright.verdict.rules.spared import changes_of, place_of

MOST_ROWS_SETTING, PACE_SETTING = "rows of the largest cell", "seconds per item, both checkpoints"
"""Settings in a comparison's manifest: how many items a cell could have had, and how long one took."""
LEFT_OUT_SETTING = "tasks left out, nothing to grade"
"""The same of tasks that no grader can judge."""


def recommended(run: RunFolder) -> tuple[Recommendation | None, TrialSeen | PairSeen | None]:
    """The recommendation, and what it rests on; None before anything was measured after training.

    Raises:
        InputError: a file is broken.
    """
    result, sides = evidence.trial_of(run), evidence.leading_sides(run)
    seen: TrialSeen | PairSeen | None = None
    if result is not None:
        seen = _trial(run, result)
    elif sides is not None and not evidence.arm_branches(run):
        seen = _pair(run, sides)
    if seen is not None:
        return recommend(seen), seen
    unfinished = ""
    if evidence.arm_branches(run):
        unfinished = "the trial has no result; run it to its end"
    elif _name_after(_settings(run)) and not run.measurements("after").is_file():
        unfinished = "the later checkpoint was not measured; run the comparison again"
    return (Recommendation("cannot tell", f"Cannot tell yet: {unfinished}.", "plain") if unfinished else None), None


def _trial(run: RunFolder, result: TrialResult) -> TrialSeen:
    """What the rule sees of a trial."""
    known, claims, asked, noted = evidence.comparisons(run), every_claim(run), asked_of(run), _settings(run)
    reading, leading, rows = READINGS[result.decoding], evidence.headline_arm(run), evidence.rows_of(run)
    trained = tuple(arm for arm in result.arms if arm != builtin_arm("untrained") and arm not in result.nulls)
    judgement = next((judgement for judgement in result.judgements if judgement.arm == leading), None)
    gate = gate_of(run, asked) if asked is not None and known.get(leading) else None
    right, answered = _right(known.values(), result.decoding)
    items, steps = max((effect.items for effect in result.effects), default=0), int(_number(noted, "steps"))
    return TrialSeen(
        seeds=len(result.seeds),
        right=right,
        answered=answered,
        trained=trained,
        contrasts=_contrasts(run, result),
        damaged={arm: tuple(c for c in claims if c.arm == arm and c.kind == "damaged") for arm in trained},
        changes=changes_of(claims, trained),
        lever=judgement.arm if judgement else "",
        word=judgement.word if judgement else None,
        missing=judgement.missing if judgement else (),
        proof=judgement.proof if judgement else "not tried",
        margin=result.margin,
        needed=_needed(run, result, judgement.arm if judgement else ""),
        outcome=reading.title,
        unit=reading.unit,
        lower=reading.sign < 0,
        items=items,
        exhausted=0 < rows["eval"] <= items,
        graded=result.decoding in GRADED_OUTCOMES,
        steps=steps,
        draws=steps * int(_number(noted, "prompts_per_step")),
        rows=rows["train"],
        selection=result.selection,
        gate=gate.outcome if gate is not None else None,
        because=format_damage(gate) or "something that was not protected is damaged" if gate is not None else "",
    )


def _right(sides: Iterable[Sides], decoding: Outcome) -> tuple[bool, bool]:
    """Whether any answer was right, and whether any was by the declared decoding; true where none is known."""
    checkpoints = [scores for both in sides for side in both for scores in side]
    if decoding not in GRADED_OUTCOMES or not checkpoints:
        return True, True
    some = {
        name: any(value > 0 for one in checkpoints for value in one.scores.get(READINGS[name].column, {}).values())
        for name in GRADED_OUTCOMES
    }
    return any(some.values()), some[decoding]


def _contrasts(run: RunFolder, result: TrialResult) -> tuple[Contrast, ...]:
    """The primary effects against references; and `equal_shares` against `uniform`, which no judgement of a lever needs."""
    reading = READINGS[result.decoding]
    found = [
        Contrast(e.arm, e.against, e.word or "cannot tell", reading.turned(e.difference), e.detectable)
        for e in result.effects
        if e.name == reading.name and e.against in result.references
    ]
    both = {EQUAL_SHARES_ARM, UNIFORM_ARM} <= set(result.references)
    sides = evidence.paired_scores(run, EQUAL_SHARES_ARM, UNIFORM_ARM) if both else None
    moved = estimate_change(*sides, decoding=result.decoding) if sides else None
    if moved is not None:
        word = change_word(moved, margin=result.margin) if moved.success.seeds >= MIN_SEEDS else "cannot tell"
        difference = clip_interval(moved.success, reading.unit)
        found.append(Contrast(EQUAL_SHARES_ARM, UNIFORM_ARM, word, difference, moved.success.detectable()))
    return tuple(found)


def _needed(run: RunFolder, result: TrialResult, lever: str) -> int | None:
    """Seeds that would see a difference of the margin in every contrast of the lever (of any arm where there is none)."""
    needed = 0
    for effect in result.effects:
        judged = effect.name == READINGS[result.decoding].name and effect.against in result.references
        if not judged or (lever and effect.arm != lever):
            continue
        both = evidence.paired_scores(run, effect.arm, effect.against)
        moved = estimate_change(*both, decoding=result.decoding) if both else None
        if moved is None or moved.success.seeds < 2:
            return None
        aim = result.margin if effect.detectable > result.margin else max(abs(effect.difference.value), 0.01)
        own = seeds_for(moved.success, differences(result, effect.name, effect.arm, effect.against), aim)
        if own is None:
            return None
        needed = max(needed, own)
    return needed or None


def _pair(run: RunFolder, sides: Sides) -> PairSeen | None:
    """What the rule sees of two checkpoints."""
    decoding, asked, noted = evidence.decoding_of(run), asked_of(run), _settings(run)
    moved = estimate_change(*sides, decoding=decoding)
    if moved is None:
        return None
    gate = gate_of(run, asked) if asked is not None else None
    if decoding in ("greedy", "sampled") and asked is None:
        gate = check_mastered(*sides, decoding=decoding)
    reading, blind, (right, answered) = READINGS[decoding], unjudged(sides, decoding), _right([sides], decoding)
    damaged, others = _damaged_and_others(every_claim(run), gate)
    tasks = {cell.task for cell in gate.cells} if gate is not None and gate.named else None
    forms = grouped(one for one in form_changes_of(run) if tasks is None or one.task in tasks)
    cells, size = Counter(item[:2] for item in moved.items), moved.success.detectable()
    aim = NO_CHANGE_MARGIN if size > NO_CHANGE_MARGIN else max(abs(moved.success.value), 0.01)
    needed = gate.needed if gate else None
    if not needed and math.isfinite(size):  # one item shows no spread, and fewer than MIN_ITEMS are never judged
        needed = max(math.ceil(len(moved.items) / len(cells) * (size / aim) ** 2), MIN_ITEMS)
    notes = read_list(run.notes, Observation) if run.notes.is_file() else []
    return PairSeen(
        right=right,
        answered=answered,
        word=change_word(moved),
        difference=clip_interval(moved.success, reading.unit),
        detectable=size,
        gate=gate.outcome if gate else "cannot tell",
        protected=len(gate.cells) if gate else 0,
        damaged=damaged,
        after=_name_after(noted) or "AFTER",
        items=len(moved.items),
        cells=len(cells),
        needed=max(needed, max(cells.values()) + 1) if needed else None,  # fewer than there are would change nothing
        aim=aim,
        pace=_number(noted, PACE_SETTING),
        exhausted=0 < _number(noted, MOST_ROWS_SETTING) <= _number(noted, "items"),
        cut=max((note.count / note.total for note in notes if note.check == CUT_NOTE and note.total), default=0.0),
        outcome=reading.title,
        unit=reading.unit,
        lower=reading.sign < 0,
        graded=decoding in GRADED_OUTCOMES,
        margin=gate.asked if gate else NO_CHANGE_MARGIN,
        asked=asked is not None,
        named=gate is not None and gate.named,
        others=others,
        unjudged=blind,
        left_out=tuple(noted.get(LEFT_OUT_SETTING, ())),
        blind=tuple(task for task in blind if task in (tasks or ())),
        unlike=format_unlikely(far_former_answers(run, tasks & set(blind))) if tasks else "",
        because=(gate.why or format_damage(gate)) if gate else "",
        form="; ".join(group.sentence for group in forms),
    )


def _damaged_and_others(claims: Sequence[Claim], gate: GateResult | None) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    """Claims of damage that decide, and those of what the user did not name; of a loss the gate says itself what decides."""
    if gate is not None and gate.read:
        beside = {(cell.task, cell.level, False) for cell in gate.others}
        return (), tuple(claim for claim in claims if place_of(claim) in beside)
    damaged = tuple(claim for claim in claims if claim.kind == "damaged")
    if gate is None or not gate.named:
        return damaged, ()
    own = {(cell.task, cell.level, cell.whole) for cell in (*gate.cells, *gate.whole)}
    return tuple(c for c in damaged if place_of(c) in own), tuple(c for c in damaged if place_of(c) not in own)


GATE_BY_ADVICE: Mapping[str, GateOutcome] = {"do not ship": "damaged", "ship": "passed", "may replace": "passed"}
"""Advice for two checkpoints -> what the gate answers; cannot tell for all other."""
BLOCKING_ADVICE = ("stop", "do not train", "not this plan")
"""Advice against the arms of a trial, with which no gate passes."""


def gate_answer(run: RunFolder) -> GateResult | None:
    """What the gate says of the folder as it is now; None where it was not asked.

    It never contradicts the page's first sentence, which rests on all that was measured.

    Raises:
        InputError: as `gate_of` does.
    """
    asked = asked_of(run)
    if asked is None:
        return None
    result, (found, seen) = gate_of(run, asked), recommended(run)
    if found is None:
        return result
    outcome = result.outcome if found.advice not in BLOCKING_ADVICE else "damaged"
    if isinstance(seen, PairSeen):
        outcome = GATE_BY_ADVICE.get(found.advice, "cannot tell")
    return result if outcome == result.outcome else replace(result, outcome=outcome, because=found.sentence)


def _settings(run: RunFolder) -> Mapping[str, Any]:
    return read_json(run.manifest, RunManifest).settings if run.manifest.is_file() else {}


def _number(noted: Mapping[str, Any], name: str) -> float:
    """A number among settings; 0 where there is none."""
    value = noted.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _name_after(noted: Mapping[str, Any]) -> str:
    """Last part of the path of the later checkpoint; empty where nobody noted it."""
    return PurePath(str(noted.get("checkpoint after", ""))).name

"""Basis of the recommendation, read from a run folder: what the rule sees of its trial, or of its two checkpoints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
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
from mixwright.runs import RunFolder, read_json, read_list
from mixwright.trial.arm_roles import builtin_arm
from mixwright.verdict.answer_forms import form_changes_of, grouped
from mixwright.verdict.arm_words import differences
from mixwright.verdict.claims import clip_interval, every_claim, unjudged
from mixwright.verdict.evidence import (
    Sides,
    arm_branches,
    comparisons,
    decoding_of,
    headline_arm,
    paired_scores,
    rows_of,
    trial_of,
)
from mixwright.verdict.gate import GateResult, check_mastered
from mixwright.verdict.gate import Outcome as GateOutcome
from mixwright.verdict.gate_asked import asked_of
from mixwright.verdict.gate_ungraded import gate_of
from mixwright.verdict.gate_words import format_damage
from mixwright.verdict.loss_damage import far_former_answers, format_unlikely
from mixwright.verdict.pair_advice import PairSeen
from mixwright.verdict.recommendation import EQUAL_SHARES_ARM, UNIFORM_ARM, Contrast, Recommendation, TrialSeen, recommend
from mixwright.verdict.spared import changes_of

UNNAMED_AFTER = "AFTER"
"""The later checkpoint where the run folder does not name it."""
MOST_ROWS_SETTING, PACE_SETTING = "rows of the largest cell", "seconds per item, both checkpoints"
LEFT_OUT_SETTING = "tasks left out, nothing to grade"
"""Name of the setting in a comparison's manifest that says how many items a cell could have had."""


def recommended(run: RunFolder) -> tuple[Recommendation | None, TrialSeen | PairSeen | None]:
    """The recommendation, and what it rests on; None before anything was measured after training.

    Raises:
        InputError: a file is broken.
    """
    seen = seen_of(run)
    if seen is not None:
        return recommend(seen), seen
    unfinished = _unfinished(run)
    return (Recommendation("cannot tell", f"Cannot tell yet: {unfinished}.", "plain") if unfinished else None), None


def _unfinished(run: RunFolder) -> str:
    """What a trial or a comparison lacks; empty where there is neither."""
    if arm_branches(run):
        return "the trial has no result; run it to its end"
    half = _name_after(run) != UNNAMED_AFTER and not run.measurements("after").is_file()
    return "the later checkpoint was not measured; run the comparison again" if half else ""


def seen_of(run: RunFolder) -> TrialSeen | PairSeen | None:
    """What the rule rests on; None before anything was measured after training, and while a trial has no result."""
    result = trial_of(run)
    if result is not None:
        return _trial(run, result)
    sides = comparisons(run).get(headline_arm(run))
    return None if sides is None or arm_branches(run) else _pair(run, sides)


def _trial(run: RunFolder, result: TrialResult) -> TrialSeen:
    known, claims = comparisons(run), every_claim(run)
    trained = tuple(arm for arm in result.arms if arm != builtin_arm("untrained") and arm not in result.nulls)
    judgement = next((judgement for judgement in result.judgements if judgement.arm == headline_arm(run)), None)
    lever = judgement.arm if judgement else ""
    rows, noted = rows_of(run), _settings(run)
    steps, asked = _whole(noted, "steps"), asked_of(run)
    gate = gate_of(run, asked) if asked is not None and known.get(headline_arm(run)) else None
    items = max((effect.items for effect in result.effects), default=0)
    return TrialSeen(
        seeds=len(result.seeds),
        right=not known or result.decoding not in GRADED_OUTCOMES or any_right(known.values()),
        answered=not known or result.decoding not in GRADED_OUTCOMES or any_right(known.values(), (result.decoding,)),
        trained=trained,
        contrasts=_contrasts(run, result),
        damaged={arm: _damaged([claim for claim in claims if claim.arm == arm]) for arm in trained},
        changes=changes_of(claims, trained),
        lever=lever,
        word=judgement.word if judgement else None,
        missing=judgement.missing if judgement else (),
        proof=judgement.proof if judgement else "not tried",
        margin=result.margin,
        needed=_needed(run, result, lever),
        outcome=READINGS[result.decoding].title,
        unit=READINGS[result.decoding].unit,
        lower=READINGS[result.decoding].sign < 0,
        items=items,
        exhausted=0 < rows["eval"] <= items,
        graded=result.decoding in GRADED_OUTCOMES,
        steps=steps,
        draws=steps * _whole(noted, "prompts_per_step"),
        rows=rows["train"],
        selection=result.selection,
        gate=gate.outcome if gate is not None else None,
        because=format_damage(gate) or "something that was not protected is damaged" if gate is not None else "",
    )


def _damaged(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    return tuple(claim for claim in claims if claim.kind == "damaged")


def any_right(sides: Iterable[Sides], names: Sequence[Outcome] = GRADED_OUTCOMES) -> bool:
    """Whether any answer was right, before or after, by any of these decodings."""
    return any(
        value > 0
        for both in sides
        for side in both
        for scores in side
        for name in names
        for value in scores.scores.get(READINGS[name].column, {}).values()
    )


def _contrasts(run: RunFolder, result: TrialResult) -> tuple[Contrast, ...]:
    """The primary effects against references; and `equal_shares` against `uniform`, which no judgement of a lever needs."""
    reading = READINGS[result.decoding]
    found = [
        Contrast(e.arm, e.against, e.word or "cannot tell", reading.turned(e.difference), e.detectable)
        for e in result.effects
        if e.name == reading.name and e.against in result.references
    ]
    both = (
        paired_scores(run, EQUAL_SHARES_ARM, UNIFORM_ARM)
        if {EQUAL_SHARES_ARM, UNIFORM_ARM} <= set(result.references)
        else None
    )
    moved = estimate_change(*both, decoding=result.decoding) if both else None
    if moved is not None:
        word = change_word(moved, margin=result.margin) if moved.success.seeds >= MIN_SEEDS else "cannot tell"
        found.append(
            Contrast(
                EQUAL_SHARES_ARM, UNIFORM_ARM, word, clip_interval(moved.success, reading.unit), moved.success.detectable()
            )
        )
    return tuple(found)


def _needed(run: RunFolder, result: TrialResult, lever: str) -> int | None:
    """Seeds that would see a difference of the margin in every contrast of the lever (of any arm where there is none)."""
    needed = 0
    for effect in result.effects:
        judged = effect.name == READINGS[result.decoding].name and effect.against in result.references
        if not judged or (lever and effect.arm != lever):
            continue
        both = paired_scores(run, effect.arm, effect.against)
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
    decoding = decoding_of(run)
    moved = estimate_change(*sides, decoding=decoding)
    if moved is None:
        return None
    asked, blind = asked_of(run), unjudged(sides, decoding)
    gate = gate_of(run, asked) if asked is not None else None
    if decoding in ("greedy", "sampled") and asked is None:
        gate = check_mastered(*sides, decoding=decoding)
    named = gate is not None and gate.named
    damaged, others = _damaged_and_others(every_claim(run), gate)
    tasks = {cell.task for cell in gate.cells} if gate is not None and named else None
    cells = Counter(item[:2] for item in moved.items)
    size, aim, more = _seen_with(moved.success.detectable(), moved, len(cells))
    needed = (gate.needed if gate else None) or more
    return PairSeen(
        right=decoding not in GRADED_OUTCOMES or any_right([sides]),
        answered=decoding not in GRADED_OUTCOMES or any_right([sides], (decoding,)),
        word=change_word(moved),
        difference=clip_interval(moved.success, READINGS[decoding].unit),
        detectable=size,
        gate=gate.outcome if gate else "cannot tell",
        protected=len(gate.cells) if gate else 0,
        damaged=damaged,
        after=_name_after(run),
        items=len(moved.items),
        cells=len(cells),
        needed=max(needed, max(cells.values()) + 1) if needed else None,  # fewer than there are would change nothing
        aim=aim,
        pace=_pace(run),
        exhausted=_all_measured(run),
        cut=_cut(run),
        outcome=READINGS[decoding].title,
        unit=READINGS[decoding].unit,
        lower=READINGS[decoding].sign < 0,
        graded=decoding in GRADED_OUTCOMES,
        margin=gate.asked if gate else NO_CHANGE_MARGIN,
        asked=asked is not None,
        named=named,
        others=others,
        unjudged=blind,
        left_out=tuple(_settings(run).get(LEFT_OUT_SETTING, ())),
        blind=tuple(task for task in blind if task in (tasks or ())),
        unlike=format_unlikely(far_former_answers(run, tasks & set(blind))) if tasks else "",
        because=(gate.why or format_damage(gate)) if gate else "",
        form=_format_form(run, tasks),
    )


def _damaged_and_others(claims: Sequence[Claim], gate: GateResult | None) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    """Claims of damage that decide, and those of what the user did not name; of a loss the gate says itself what decides."""
    if gate is not None and gate.read:
        beside = {(cell.task, cell.level) for cell in gate.others}
        return (), tuple(claim for claim in claims if (claim.task, claim.level) in beside and not claim.whole)
    damaged = _damaged(claims)
    if gate is None or not gate.named:
        return damaged, ()
    own = {(cell.task, cell.level, cell.whole) for cell in (*gate.cells, *gate.whole)}
    others = tuple(claim for claim in damaged if (claim.task, claim.level, claim.whole) not in own)
    return tuple(claim for claim in damaged if claim not in others), others


def _seen_with(size: float, moved: Change, cells: int) -> tuple[float, float, int | None]:
    """The change that these items would show, the one that matters, and items per cell that would show it."""
    aim = NO_CHANGE_MARGIN if size > NO_CHANGE_MARGIN else max(abs(moved.success.value), 0.01)
    more = math.ceil(len(moved.items) / cells * (size / aim) ** 2) if math.isfinite(size) else None
    more = None if more is None else max(more, MIN_ITEMS)  # one item shows no spread, and fewer are never judged
    return size, aim, more


def _format_form(run: RunFolder, tasks: Collection[str] | None) -> str:
    """Which of these tasks went over to the form of another; of all where None."""
    found = form_changes_of(run)
    return "; ".join(group.sentence for group in grouped(one for one in found if tasks is None or one.task in tasks))


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


def _all_measured(run: RunFolder) -> bool:
    """Whether the file of a comparison had no more rows of any cell; False where nobody noted how many there are."""
    noted = _settings(run)
    rows, items = noted.get(MOST_ROWS_SETTING), noted.get("items")
    return isinstance(rows, int) and isinstance(items, int) and rows <= items


def _pace(run: RunFolder) -> float:
    """Seconds that an item took on both checkpoints; 0 where nobody noted it."""
    noted = _settings(run).get(PACE_SETTING)
    return float(noted) if isinstance(noted, int | float) else 0.0


def _cut(run: RunFolder) -> float:
    """Largest share of completions that were cut, as measuring noted it."""
    notes = read_list(run.notes, Observation) if run.notes.is_file() else []
    return max((note.count / note.total for note in notes if note.check == CUT_NOTE and note.total), default=0.0)


def _settings(run: RunFolder) -> Mapping[str, Any]:
    return read_json(run.manifest, RunManifest).settings if run.manifest.is_file() else {}


def _whole(noted: Mapping[str, Any], name: str) -> int:
    """A number among settings; 0 where there is none."""
    value = noted.get(name)
    return value if isinstance(value, int) else 0


def _name_after(run: RunFolder) -> str:
    """Last part of the path of the later checkpoint, as the manifest has it."""
    return PurePath(str(_settings(run).get("checkpoint after", ""))).name or UNNAMED_AFTER

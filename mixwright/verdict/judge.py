"""Judge: the evidence of a run folder becomes a `Verdict`, of which every report is a function.

In this order, each once: claims about each task (`rules/claims.py`), the gate (`rules/gate.py`), and the recommendation,
which reads both (`rules/recommendation.py`). The recommendation decides the outcome, and the claim of a task its word: a
report says "learned" only where a task's own claim does, whatever the total did.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Literal

import numpy as np

from mixwright import catalog
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.chance import RIGHT_FROM_SCORE
from mixwright.estimates.items import Items
from mixwright.estimates.judgement import change_word
from mixwright.estimates.outcome import Sides, estimate_change
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.measure.former import former_file
from mixwright.records import (
    AnswerPair,
    Claim,
    ClaimKind,
    FormerAnswers,
    FormTaken,
    Gate,
    GateOutcome,
    Interval,
    Observation,
    Reason,
    Step,
    TaskChange,
    TaskWord,
    TotalChange,
    Verdict,
)
from mixwright.run.folder import RunFolder, read_list
from mixwright.verdict.page.answers import interleave_groups
from mixwright.verdict.page.arm_words import describe_run
from mixwright.verdict.page.beside import ThreeCheckpoints, read_three_checkpoints
from mixwright.verdict.page.blocks import keep_filled
from mixwright.verdict.read_parts import read_decisions, read_gold, read_pairs, read_parts, read_stages
from mixwright.verdict.rules.answer_forms import FormTakeover, group_takeovers
from mixwright.verdict.rules.answers_kept import answers_kept_in
from mixwright.verdict.rules.basis import BLOCKING_ADVICE, OUTCOME_BY_ADVICE, recommend_run
from mixwright.verdict.rules.causes import find_causes
from mixwright.verdict.rules.cells import cells_of, group_items
from mixwright.verdict.rules.claims import KIND_BY_WORD, claims_between, to_interval
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate import GateResult
from mixwright.verdict.rules.gate_run import ask_gate
from mixwright.verdict.rules.gate_ungraded import list_ungraded_cells
from mixwright.verdict.rules.marks import find_marks
from mixwright.verdict.rules.next_steps import list_next_steps
from mixwright.verdict.rules.recommendation import PairBasis, Recommendation, TrialBasis
from mixwright.verdict.rules.run_claims import judge_claims
from mixwright.verdict.rules.spared import ClaimKey, claim_key
from mixwright.verdict.words import LOSSES, NEVER_RIGHT, explain, is_in_wrong_format, say_headline

MAX_PAIRS, SHORT_PROMPT, SHORT_BEGINNING = 3, 120, 40
"""Pairs of answers that a verdict shows, and characters of a prompt, and of a beginning that differs, that are preferred."""
WORD_BY_KIND: Mapping[ClaimKind, TaskWord] = {
    "learnt": "learned",
    "damaged": "lost",
    "commonest": "commonest",
    "less dependent": "less dependent",
    "sharper": "sharper",
    "unchanged": "kept",
    "cannot tell": "not shown",
}
WORST_FIRST: tuple[TaskWord, ...] = (
    "lost", "less dependent", "lower", "never right", "not measured", "learned", "higher", "commonest", "not shown",
    "sharper", "too few items", "too few right", "not graded", "kept",
)  # fmt: skip
"""Order of the tasks in a report."""
REASON_BY_ADVICE: Mapping[str, Reason] = {
    "check the grader": "nothing right",
    "none right": "nothing right greedily",
    "not learned": "not learned",
    "ship": "kept",
}
EXIT_BY_OUTCOME: Mapping[GateOutcome, int] = {"passed": 0, "damaged": 3, "inconclusive": 4}
"""Exit codes; 1 is wrong input, 2 a bug of ours."""


def judge_run(run: RunFolder, *, gated: bool = True, inconclusive: Literal["fail", "warn"] = "fail") -> Verdict:
    """Read a run folder and judge it. Arguments and errors are those of `judge`."""
    evidence = Evidence(run)
    return judge(evidence, judge_claims(evidence), gated=gated, inconclusive=inconclusive)


def judge(
    evidence: Evidence,
    claims: Sequence[Claim],
    *,
    gated: bool = True,
    inconclusive: Literal["fail", "warn"] = "fail",
) -> Verdict:
    """Return what a report says.

    Args:
        evidence: of a trial, or of a comparison of two models.
        claims: of its arms, as `judge_claims` makes them.
        gated: whether the outcome is the exit code; otherwise it is 0.
        inconclusive: `warn` gives 0 for too few items, unless something could not be judged at all.

    Raises:
        InputError: a file is broken, or a protected name was not measured.
    """
    run, outcome, sides, manifest = evidence.run, evidence.outcome, evidence.sides, evidence.manifest
    gate = ask_gate(evidence)
    recommendation, basis = recommend_run(evidence, claims, gate)
    reading = READINGS[outcome]
    pairs = read_pairs(evidence)
    three = read_three_checkpoints(evidence)
    before, third, after = three.names if three is not None else _name_models(evidence)
    third_success = _read_third(three, outcome) if three is not None else {}
    tasks = _list_tasks(evidence, claims, gate, basis, third_success)
    lost_answers = gate.lost_answers if gate is not None else {}
    not_judged = {task: why for task, why in _list_not_judged(basis).items() if task not in lost_answers}
    ungraded = {change.task for change in tasks if change.before is None or outcome not in GRADED_OUTCOMES}
    reason, result = _decide(recommendation, basis, gate)
    verdict = Verdict(
        name=run.path.resolve().name,
        about=describe_run(run.path.resolve().name, evidence.trial),
        before=before,
        after=after,
        third=third,
        outcome=result,
        reason=reason,
        exit_code=_choose_exit_code(result, gate, inconclusive) if gated else 0,
        headline="",
        measure=reading.title,
        unit=reading.unit,
        decoding=outcome,
        graded=outcome in GRADED_OUTCOMES,
        lower_is_better=reading.sign < 0,
        total=_total(sides, outcome),
        gate=_pack_gate(gate),
        tasks=tasks,
        forms=tuple(_pack_form(takeover, pairs) for takeover in group_takeovers(evidence.form_changes)),
        not_learned=basis.tasks_not_learned if isinstance(basis, PairBasis) else (),
        not_judged=not_judged,
        lost_answers=lost_answers,
        same_answers=_gave_same_answers(pairs, tasks),
        pairs=_choose_pairs(pairs, tasks, result, lost_answers),
        advice=recommendation.advice if recommendation and not isinstance(basis, PairBasis) else "",
        notes=evidence.notes,
        audit=tuple(read_list(run.audit, Observation)) if run.audit.is_file() else (),
        trial=evidence.trial,
        plan=evidence.plan,
        manifest=manifest,
        measured=evidence.measured_before,
        form_changes=tuple(evidence.form_changes),
        answers_kept=tuple(answers_kept_in(evidence, {*ungraded, *not_judged, *lost_answers})),
        former=tuple(read_list(former_file(run), FormerAnswers)) if former_file(run).is_file() else (),
        gold=read_gold(sides, greedy=outcome == "greedy") if sides else (),
        by_column=tuple(evidence.by_column),
        decisions=read_decisions(evidence),
        stages=read_stages(evidence),
    )
    worse = {change.task for change in tasks if change.word in LOSSES or is_in_wrong_format(change, verdict)}
    causes = find_causes(pairs, worse)
    recalled = tuple(one for one in evidence.recalled if one.task in worse)
    verdict = replace(verdict, causes=tuple(causes), behaviours=tuple(evidence.behaviours), recalled=recalled)
    verdict = replace(verdict, headline=say_headline(verdict, recommendation.sentence if recommendation else ""))
    steps = list_next_steps(evidence, recommendation, basis, same_answers=verdict.same_answers) if recommendation else []
    verdict = replace(verdict, why=explain(verdict), next=tuple(Step(step.caption, step.text) for step in steps))
    return replace(verdict, extra=_collect_extra(verdict))


def _gave_same_answers(pairs: Sequence[AnswerPair], tasks: Sequence[TaskChange]) -> bool:
    """Whether both models gave the same answers, and no success differs, that of samples included."""
    differs = any(pair.before != pair.after for pair in pairs)
    scores_differ = any(task.change.value or len(set(task.sampled or ())) > 1 for task in tasks)
    return any(pair.before for pair in pairs) and not differs and not scores_differ


def _name_models(evidence: Evidence) -> tuple[str, str, str]:
    """Return short names of the earlier model, of no third one, and of the later one; of a trial the leading arm."""
    manifest, settings = evidence.manifest, evidence.settings
    before = PurePath(manifest.parent).name if manifest and manifest.parent else "before"
    after = evidence.arm or PurePath(str(settings.get("checkpoint after", "after"))).name
    if before == after:  # two folders or logs of one name: their parents tell them apart
        before = str(PurePath(*PurePath(manifest.parent).parts[-2:])) if manifest else before
        after = str(PurePath(*PurePath(str(settings.get("checkpoint after", "after"))).parts[-2:]))
    return before, "", after


def _decide(
    recommendation: Recommendation | None, basis: TrialBasis | PairBasis | None, gate: GateResult | None
) -> tuple[Reason, GateOutcome]:
    """Why the outcome is what it is, and the outcome. The recommendation decides it; the gate alone does in a trial."""
    gate_outcome: GateOutcome = "inconclusive" if gate is None else gate.outcome
    if recommendation is None:
        return "nothing compared", gate_outcome
    if isinstance(basis, TrialBasis):
        return "trial", "damaged" if recommendation.advice in BLOCKING_ADVICE else gate_outcome
    if not isinstance(basis, PairBasis):
        return "not measured", "inconclusive"
    outcome = OUTCOME_BY_ADVICE.get(recommendation.advice, "inconclusive")
    return _find_reason(recommendation, basis, gate), outcome


def _find_reason(recommendation: Recommendation, basis: PairBasis, gate: GateResult | None) -> Reason:
    if gate is not None and gate.decided_by_behaviours and not basis.form_change and not basis.lost_answers:
        return "a behaviour changed"
    if recommendation.advice == "do not ship":
        return _find_damage(basis, gate)
    if recommendation.advice == "cannot tell" and basis.graded and not basis.right_before:
        return "nothing to protect"
    if recommendation.advice == "cannot tell" and basis.gate_reason:
        return "a task was not judged"
    if recommendation.advice == "unjudged":
        return "a task was not judged" if basis.graded else "nothing was graded"
    return REASON_BY_ADVICE.get(recommendation.advice, "too few items")


def _find_damage(basis: PairBasis, gate: GateResult | None) -> Reason:
    if basis.form_change:
        return "one format took over"
    if basis.lost_answers:
        return "answers were lost"
    decide = () if gate is None else (*gate.cells, *(() if gate.named_by_user else gate.unprotected_losses))
    if basis.damaged or any(cell.is_damaged for cell in decide):
        return "a task was lost"
    if gate is not None and gate.outcome == "damaged":
        is_mean = gate.mean is not None and gate.mean.high < 0
        return "the average fell" if is_mean else "prompts matter less"
    if basis.word == "commonest":
        return "the commonest answer"
    return "prompts matter less" if basis.word == "less dependent" else "the average fell"


def _choose_exit_code(outcome: GateOutcome, gate: GateResult | None, inconclusive: Literal["fail", "warn"]) -> int:
    is_measured = gate is not None and gate.mean is not None and all(cell.change is not None for cell in gate.cells)
    if outcome == "inconclusive" and inconclusive == "warn" and is_measured and not (gate and gate.reason):
        return 0
    return EXIT_BY_OUTCOME[outcome]


def _total(sides: Sides | None, outcome: Outcome) -> TotalChange | None:
    change = estimate_change(*sides, outcome=outcome) if sides else None
    if sides is None or change is None:
        return None
    gained, lost = _count_turns(sides, outcome, change.items)
    return TotalChange(
        word=WORD_BY_KIND[KIND_BY_WORD[change_word(change)]],
        change=to_interval(change.estimate, outcome),
        items=len(change.items),
        gained=gained,
        lost=lost,
        shuffled=_known(to_interval(change.swapped, outcome)) if outcome in GRADED_OUTCOMES else None,
        dependence=_known(to_interval(change.dependence, outcome)) if outcome in GRADED_OUTCOMES else None,
        sampled=_known(to_interval(change.sampled, outcome)) if change.sampled is not None else None,
        detectable=change.estimate.detectable(),
    )


def _known(interval: Interval) -> Interval | None:
    return interval if np.isfinite(interval.value) else None


def _count_turns(sides: Sides, outcome: Outcome, items: Items) -> tuple[int, int]:
    """Items that only the later model got right, and that only the earlier one did; of one seed of greedy answers alone."""
    if outcome != "greedy" or len(sides[0]) != 1:
        return 0, 0
    before, after = (side[0].column(READINGS[outcome].column, items) for side in sides)
    return int(np.sum(after > before)), int(np.sum(after < before))


def _list_tasks(
    evidence: Evidence,
    claims: Sequence[Claim],
    gate: GateResult | None,
    basis: TrialBasis | PairBasis | None,
    third: Mapping[ClaimKey, float],
) -> tuple[TaskChange, ...]:
    """Every task and level, the worst first."""
    sides, outcome = evidence.sides, evidence.outcome
    judged_cells = {} if gate is None else {(cell.task, cell.level): cell for cell in gate.cells}
    items_of = group_items(sides) if sides else {}
    never_right = basis.tasks_without_right_answer if isinstance(basis, PairBasis) else ()
    parts = read_parts(evidence)
    tasks, cells = [], cells_of(evidence, claims)
    levels = [cell.claim for cell in cells if not cell.claim.whole]
    open_tasks = {claim.task for claim in levels if (claim.task, claim.level) not in judged_cells}
    for cell in cells:
        claim, key = cell.claim, claim_key(cell.claim)
        judged = None if claim.whole else judged_cells.get((claim.task, claim.level))
        gained, lost = _count_turns(sides, outcome, items_of[key]) if sides and key in items_of else (0, 0)
        change = TaskChange(
            task=claim.task,
            level=claim.level,
            whole=claim.whole,
            word=_find_word(claim, never_right, readable=judged is None or judged.readable),
            before=claim.before,
            after=claim.after if claim.difference.n else None,
            change=claim.difference,
            items=claim.items,
            gained=gained,
            lost=lost,
            parts=parts.get((claim.task, claim.level), ()),
            protected=claim.task not in open_tasks if claim.whole else judged is not None,
            loss_limit=judged.loss_limit if judged else None,
            limit_excluded=judged.limit_excluded if judged else True,
            chance=cell.chance,
            shuffled=claim.swapped,
            dependence=claim.dependence,
            sampled=cell.sampled if outcome == "greedy" else None,
            third=third.get(key),
            detectable=claim.detectable,
            adjusted_p=claim.adjusted_p,
        )
        tasks.append(change)
    known, lost_answers = {change.task for change in tasks}, gate.lost_answers if gate is not None else {}
    for cell in () if evidence.arm else list_ungraded_cells(evidence):
        if cell[0] not in known:
            word: TaskWord = "lost" if cell[0] in lost_answers else "not graded"
            nothing = Interval(0.0, -1.0, 1.0, 0)
            tasks.append(TaskChange(*cell, word, None, None, nothing, protected=cell in judged_cells))
    sign = READINGS[outcome].sign
    return tuple(sorted(tasks, key=lambda change: (WORST_FIRST.index(change.word), sign * change.change.value, change.task)))


def _find_word(claim: Claim, never_right: Sequence[str], *, readable: bool) -> TaskWord:
    if not claim.difference.n:
        return "not measured"
    if claim.kind == "cannot tell" and claim.task in never_right:
        return "never right"
    if claim.items < MIN_ITEMS:
        return "too few items"
    if not readable and claim.kind in ("cannot tell", "unchanged") and claim.difference.low <= 0:
        return "too few right"
    if claim.kind == "cannot tell" and (claim.difference.low > 0 or claim.difference.high < 0):
        return "higher" if claim.difference.low > 0 else "lower"
    return WORD_BY_KIND[claim.kind]


def _read_third(three: ThreeCheckpoints, outcome: Outcome) -> dict[ClaimKey, float]:
    """Success of the third model per task and level."""
    return {claim_key(claim): claim.after for claim in claims_between(three.other, outcome) if claim.difference.n}


def _pack_gate(gate: GateResult | None) -> Gate | None:
    if gate is None:
        return None

    return Gate(
        mean=to_interval(gate.mean) if gate.mean is not None else None,
        margin=gate.mean_margin,
        protected=tuple(dict.fromkeys(cell.task for cell in gate.cells)),
        averaged=gate.averaged,
        cells=len(gate.cells),
        named=gate.named_by_user,
        dependence=to_interval(gate.dependence) if gate.dependence is not None else None,
        cell_loss_limit=gate.cell_loss_limit,
        unseen_loss=gate.unseen_loss,
        items_needed=gate.items_needed,
        look=gate.look.label if gate.look is not None else "",
        rings=gate.rings,
        request_forms=gate.request_forms,
        behaviours=gate.behaviours,
    )


def _pack_form(takeover: FormTakeover, pairs: Sequence[AnswerPair]) -> FormTaken:
    """The format that spread, and how much of what was lost it covers."""
    pattern_of = {change.task: change.pattern for change in takeover.changes}
    lost = [pair for pair in pairs if pair.task in pattern_of and is_lost(pair)]
    with_form = [pair for pair in lost if pattern_of[pair.task] in find_marks(pair.after)]
    tasks = tuple(pattern_of)
    return FormTaken(takeover.other_task, tasks, takeover.answers_with_form, takeover.items, len(lost), len(with_form))


def _list_not_judged(basis: TrialBasis | PairBasis | None) -> dict[str, str]:
    """Task -> why nothing says what became of it."""
    if not isinstance(basis, PairBasis):
        return {}
    reasons = dict.fromkeys(basis.tasks_left_out, basis.left_out_reason)
    return reasons | dict.fromkeys(basis.tasks_without_right_answer, NEVER_RIGHT)


def is_lost(pair: AnswerPair) -> bool:
    """Whether the answer was right before and is wrong now."""
    return pair.score_before >= RIGHT_FROM_SCORE > pair.score_after


def is_gained(pair: AnswerPair) -> bool:
    """Whether the answer was wrong before and is right now."""
    return pair.score_after >= RIGHT_FROM_SCORE > pair.score_before


def _choose_pairs(
    pairs: Sequence[AnswerPair], tasks: Sequence[TaskChange], outcome: GateOutcome, lost_answers: Collection[str]
) -> tuple[AnswerPair, ...]:
    """Answers that changed, short ones, one task after the other in the order of the report.

    Lost ones, else gained ones; of a model that passed a gained one first.
    """
    rank = {change.task: place for place, change in reversed(list(enumerate(tasks)))}
    lost = [pair for pair in pairs if is_lost(pair) or (pair.task in lost_answers and pair.before != pair.after)]
    changed = lost or [pair for pair in pairs if is_gained(pair)] or list(pairs)
    changed = [pair for pair in changed if pair.before != pair.after]
    # where a report is cut, both would look the same
    changed = [pair for pair in changed if pair.before[:SHORT_BEGINNING] != pair.after[:SHORT_BEGINNING]] or changed
    changed.sort(key=lambda pair: (rank.get(pair.task, len(rank)), len(pair.prompt) > SHORT_PROMPT))
    shown = interleave_groups(changed, lambda pair: pair.task)
    learned = {change.task for change in tasks if change.word == "learned"}
    first = [pair for pair in pairs if outcome == "passed" and lost and is_gained(pair) and pair.task in learned]
    return tuple([*first[:1], *shown][:MAX_PAIRS])


def _collect_extra(verdict: Verdict) -> dict[str, Any]:
    """Section -> title and blocks, of every plug-in that has something to add."""
    parts = {}
    for name in sorted(catalog.listing("sections"), key=lambda name: (catalog.create("sections", name).ORDER, name)):
        section = catalog.create("sections", name)
        if blocks := keep_filled(section.blocks(verdict)):
            parts[name] = (section.TITLE, blocks)
    return parts

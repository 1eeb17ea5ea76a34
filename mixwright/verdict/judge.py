"""Judge: the evidence of a run folder becomes a `Verdict`, of which every report is a function.

In this order, each once: the cells are compared (`rules/cells.py`), the gate is asked (`rules/gate.py`), and `decide` reads
both; of a trial the recommendation (`rules/trial.py`) does. A report says "learned" only where a task itself did, whatever
the total did.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from mixwright import catalog
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.estimates.items import Items, TaskLevel
from mixwright.estimates.judgement import change_word
from mixwright.estimates.outcome import ItemScores, Sides, estimate_change
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome
from mixwright.measure.former import former_file
from mixwright.records import (
    AnswerPair,
    ChangeWord,
    FormerAnswers,
    Gate,
    GateOutcome,
    Interval,
    Observation,
    Reason,
    TaskChange,
    TaskWord,
    TotalChange,
    Verdict,
)
from mixwright.run.folder import read_list
from mixwright.verdict.page.answers import interleave_groups, is_gained, is_lost
from mixwright.verdict.page.blocks import keep_filled
from mixwright.verdict.page.trial import describe_run
from mixwright.verdict.read_parts import (
    read_chances,
    read_decisions,
    read_names,
    read_pairs,
    read_parts,
    read_stages,
)
from mixwright.verdict.rules.answer_forms import group_takeovers
from mixwright.verdict.rules.answers_kept import compare_answers
from mixwright.verdict.rules.causes import find_causes
from mixwright.verdict.rules.cells import (
    CellChange,
    chance_level,
    find_any_right,
    find_missing_cells,
    find_tasks_not_learned,
    find_unjudged_tasks,
    mean_outcome,
    to_interval,
)
from mixwright.verdict.rules.evidence import LEFT_OUT_REASON_SETTING, LEFT_OUT_SETTING, Evidence
from mixwright.verdict.rules.gate import GateResult
from mixwright.verdict.rules.gate_run import ask_gate, list_ungraded_cells
from mixwright.verdict.rules.next_steps import list_steps_after_comparison, list_steps_after_trial
from mixwright.verdict.rules.recalled import judge_recalled
from mixwright.verdict.rules.trial import BLOCKING_ADVICE, advise, read_trial_basis, say_advice
from mixwright.verdict.words import LOSSES, NEVER_RIGHT, UNGRADED, explain, is_in_wrong_format, say_headline

MAX_PAIRS, SHORT_PROMPT, SHORT_BEGINNING = 3, 120, 40
"""Pairs of answers that a verdict shows, and characters of a prompt, and of a beginning that differs, that are preferred."""
WORD_BY_CHANGE: Mapping[ChangeWord, TaskWord] = {
    "improves": "learned",
    "worsens": "lost",
    "commonest": "commonest",
    "less dependent": "less dependent",
    "sharper": "sharper",
    "no change": "kept",
    "cannot tell": "not shown",
}
WORST_FIRST: tuple[TaskWord, ...] = (
    "lost", "less dependent", "lower", "never right", "not measured", "learned", "higher", "commonest", "not shown",
    "sharper", "too few items", "too few right", "not graded", "kept",
)  # fmt: skip
"""Order of the tasks in a report."""
SAME_CHANCE_TOLERANCE = 1e-6
"""Chance levels that are this near are of the same items."""
EXIT_BY_OUTCOME: Mapping[GateOutcome, int] = {"passed": 0, "damaged": 3, "inconclusive": 4}
"""Exit codes; 1 is wrong input, 2 a bug of ours."""
NOT_ASKED = GateResult("inconclusive", None, (), None)
"""Stands for a gate that was not asked, or that cannot judge the outcome."""


def judge(evidence: Evidence, *, gated: bool = True, inconclusive: Literal["fail", "warn"] = "fail") -> Verdict:
    """Return what a report says.

    Args:
        evidence: of a trial, or of a comparison of two models.
        gated: whether the outcome is the exit code; otherwise it is 0.
        inconclusive: `warn` gives 0 for too few items, unless something could not be judged at all.

    Raises:
        InputError: a file is broken, or a protected name was not measured.
    """
    run, outcome, sides, settings = evidence.run, evidence.outcome, evidence.sides, evidence.settings
    reading, graded, asked = READINGS[outcome], outcome in GRADED_OUTCOMES, ask_gate(evidence)
    gate = asked or NOT_ASKED
    lost_answers = gate.lost_answers
    total = _total(sides, outcome)
    compared = sides if total is not None and not evidence.branches and evidence.trial is None else None
    never_right = find_unjudged_tasks(compared, outcome) if compared else ()
    left_out = settings.get(LEFT_OUT_SETTING, ()) if compared else ()
    not_judged = dict.fromkeys(left_out, str(settings.get(LEFT_OUT_REASON_SETTING, UNGRADED)))
    not_judged |= dict.fromkeys(never_right, NEVER_RIGHT)
    not_judged = {task: why for task, why in not_judged.items() if task not in lost_answers}
    pairs = read_pairs(evidence)
    before, after = read_names(evidence)
    cells = _find_cells(evidence, lost_answers)
    tasks = _list_tasks(evidence, cells, gate, never_right)
    ungraded = {change.task for change in tasks if change.before is None or not graded}
    verdict = Verdict(
        name=run.path.resolve().name,
        about=describe_run(run.path.resolve().name, evidence.trial),
        before=before,
        after=after,
        outcome=gate.outcome,
        reason="nothing compared",
        exit_code=0,
        headline="",
        measure=reading.title,
        unit=reading.unit,
        decoding=outcome,
        graded=graded,
        lower_is_better=reading.sign < 0,
        total=total,
        gate=_pack_gate(gate) if asked is not None else None,
        tasks=tasks,
        forms=tuple(group_takeovers(evidence.form_changes, pairs)),
        not_learned=find_tasks_not_learned(cells, compared, outcome, gate.tasks) if asked is not None and compared else (),
        not_judged=not_judged,
        lost_answers=lost_answers,
        same_answers=_gave_same_answers(pairs, tasks),
        notes=evidence.notes,
        audit=tuple(read_list(run.audit, Observation)) if run.audit.is_file() else (),
        trial=evidence.trial,
        plan=evidence.plan,
        manifest=evidence.manifest,
        form_changes=tuple(evidence.form_changes),
        answers_kept=tuple(compare_answers(evidence.pairs, {*ungraded, *not_judged, *lost_answers})),
        former=tuple(read_list(former_file(run), FormerAnswers)) if former_file(run).is_file() else (),
        by_column=tuple(evidence.by_column),
        decisions=read_decisions(evidence),
        stages=read_stages(evidence),
        behaviours=tuple(evidence.behaviours),
    )
    worse = {change.task for change in tasks if change.word in LOSSES or is_in_wrong_format(change, verdict)}
    causes = find_causes(pairs, worse)
    recalled = [replace(one, word=judge_recalled(one, pairs, causes)) for one in evidence.recalled if one.task in worse]
    verdict = replace(verdict, causes=tuple(causes), recalled=tuple(recalled))
    if compared:
        reason, result = decide(verdict, gate, cells, compared)
        verdict = _conclude(replace(verdict, reason=reason, outcome=result))
        verdict = replace(verdict, next=tuple(list_steps_after_comparison(verdict)))
    else:
        verdict = _judge_trial(verdict, evidence, asked)
    exit_code = _choose_exit_code(verdict, gate, inconclusive) if gated else 0
    shown = _choose_pairs(pairs, tasks, verdict.outcome, lost_answers)
    verdict = replace(verdict, exit_code=exit_code, pairs=shown)
    verdict = replace(verdict, why=explain(verdict))
    return replace(verdict, extra=_collect_extra(verdict))


def _conclude(verdict: Verdict, trial_sentence: str = "") -> Verdict:
    return replace(verdict, headline=say_headline(verdict, trial_sentence))


def _judge_trial(verdict: Verdict, evidence: Evidence, gate: GateResult | None) -> Verdict:
    """Judge a trial by its recommendation; of what was not measured to its end nothing is said yet."""
    if evidence.trial is not None:
        basis = read_trial_basis(evidence, evidence.trial, gate)
        advice = advise(basis)
        outcome: GateOutcome = "damaged" if advice in BLOCKING_ADVICE else verdict.outcome
        verdict = _conclude(replace(verdict, advice=advice, reason="trial", outcome=outcome), say_advice(advice, basis))
        return replace(verdict, next=tuple(list_steps_after_trial(evidence.run, evidence.manifest, advice, basis)))
    unfinished = ""
    if evidence.branches:
        unfinished = "the trial has no result; run it to its end"
    elif evidence.settings.get("checkpoint after") and not evidence.run.measurements("after").is_file():
        unfinished = "the later checkpoint was not measured; run the comparison again"
    if not unfinished:
        return _conclude(verdict)
    verdict = replace(verdict, advice="cannot tell", reason="not measured", outcome="inconclusive")
    steps = tuple(list_steps_after_trial(evidence.run, evidence.manifest, "cannot tell", None))
    return replace(_conclude(verdict, f"Inconclusive so far: {unfinished}."), next=steps)


def _gave_same_answers(pairs: Sequence[AnswerPair], tasks: Sequence[TaskChange]) -> bool:
    """Whether both models gave the same answers, and no success differs, that of samples included."""
    differs = any(pair.before != pair.after for pair in pairs)
    scores_differ = any(task.change.value or len(set(task.sampled or ())) > 1 for task in tasks)
    return any(pair.before for pair in pairs) and not differs and not scores_differ


def decide(verdict: Verdict, gate: GateResult, cells: Sequence[CellChange], sides: Sides) -> tuple[Reason, GateOutcome]:
    """Why the outcome of a comparison is what it is, and the outcome: the first that holds.

    Args:
        verdict: without its outcome and reason.
        gate: what the gate says; `NOT_ASKED` where none judges the outcome.
        cells: every cell and whole task that was compared.
        sides: both models.
    """
    if any(not gate.named_by_user or not gate.tasks.isdisjoint(form.tasks) for form in verdict.forms):
        return "one format took over", "damaged"
    if not gate.tasks.isdisjoint(verdict.lost_answers):
        return "answers were lost", "damaged"
    if gate.same:
        if gate.outcome == "damaged":
            return "not the same", "damaged"
        if set(verdict.not_judged.values()) - {NEVER_RIGHT}:
            return "a task was not judged", "inconclusive"
        if not find_any_right([sides], verdict.decoding)[0]:
            return "nothing right", "inconclusive"
        return ("the same" if gate.outcome == "passed" else "too few items"), gate.outcome
    reason, outcome = _decide_by_tasks(verdict, gate, cells, sides)
    if gate.decided_by_behaviours:
        return "a behaviour changed", "damaged" if gate.outcome == "damaged" else outcome
    return reason, outcome


def _decide_by_tasks(
    verdict: Verdict, gate: GateResult, cells: Sequence[CellChange], sides: Sides
) -> tuple[Reason, GateOutcome]:
    outcome, word, is_named = verdict.decoding, verdict.total.word if verdict.total else "not shown", gate.named_by_user
    any_right, right_as_declared = find_any_right([sides], outcome)
    if not right_as_declared:
        return "nothing right greedily" if any_right else "nothing right", "inconclusive"
    has_loss = _has_loss(gate, cells)
    # a total decides where nobody named what matters; of a loss that a gate judges its size does
    is_total_judged = not is_named and (verdict.graded or not gate.cells)
    if has_loss or gate.outcome == "damaged" or (is_total_judged and word in ("lost", "less dependent", "commonest")):
        if has_loss or _has_gate_loss(gate):
            return "a task was lost", "damaged"
        if gate.outcome == "damaged":
            is_mean = gate.mean is not None and gate.mean.high < 0
            return "the average fell" if is_mean else "prompts matter less", "damaged"
        reasons: Mapping[TaskWord, Reason] = {"commonest": "the commonest answer", "less dependent": "prompts matter less"}
        return reasons.get(word, "the average fell"), "damaged"
    not_judged = {*verdict.not_judged} & gate.tasks if is_named else {*verdict.not_judged}
    if not verdict.graded:
        return "nothing was graded", "inconclusive"
    if not_judged and (is_named or gate.outcome == "passed" or gate.lacks_right_answers):
        return "a task was not judged", "inconclusive"
    if gate.outcome == "passed":
        return "not learned" if verdict.not_learned and word != "learned" else "kept", "passed"
    if not find_any_right([(sides[0], ())], outcome)[1]:
        return "nothing to protect", "inconclusive"
    return "a task was not judged" if gate.lacks_right_answers else "too few items", "inconclusive"


def _has_loss(gate: GateResult, cells: Sequence[CellChange]) -> bool:
    """Whether success fell in what decides: nothing where the gate judges a loss, nor what a user did not name."""
    named = {cell.key for cell in (*gate.cells, *gate.damaged_tasks)} if gate.named_by_user else None
    return gate.graded and any(cell.word == "worsens" and (named is None or cell.key in named) for cell in cells)


def _has_gate_loss(gate: GateResult) -> bool:
    return any(cell.is_damaged for cell in (*gate.cells, *(() if gate.named_by_user else gate.unprotected_losses)))


def _choose_exit_code(verdict: Verdict, gate: GateResult, inconclusive: Literal["fail", "warn"]) -> int:
    is_measured = gate.mean is not None and all(cell.judged is not None for cell in gate.cells)
    lacks_items = is_measured and verdict.reason != "a task was not judged"
    if verdict.outcome == "inconclusive" and inconclusive == "warn" and lacks_items:
        return 0
    return EXIT_BY_OUTCOME[verdict.outcome]


def _total(sides: Sides | None, outcome: Outcome) -> TotalChange | None:
    change = estimate_change(*sides, outcome=outcome) if sides else None
    if sides is None or change is None:
        return None
    gained, lost = _count_turns(sides, outcome, change.items)
    return TotalChange(
        word=WORD_BY_CHANGE[change_word(change)],
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


def _find_cells(evidence: Evidence, lost_answers: Collection[str]) -> list[CellChange]:
    """The cells and tasks of the leading arm; of ungraded answers those are worse that are lost, and no others."""
    cells = evidence.comparisons.get(evidence.arm, [])
    if evidence.outcome != "loss" or evidence.arm:
        return cells
    words: Mapping[ChangeWord, ChangeWord] = {"worsens": "cannot tell"}
    return [
        replace(cell, word="worsens" if cell.task in lost_answers else words.get(cell.word, cell.word)) for cell in cells
    ]


def _list_tasks(
    evidence: Evidence, cells: Sequence[CellChange], gate: GateResult, never_right: Sequence[str]
) -> tuple[TaskChange, ...]:
    """Every task and level, the worst first."""
    sides, outcome = evidence.sides or ((), ()), evidence.outcome
    protected = {cell.key: cell for cell in gate.cells}
    chances, parts, nothing = read_chances(evidence), read_parts(evidence), Interval(0.0, -1.0, 1.0, 0)
    missing = find_missing_cells(sides)
    open_tasks = {key[0] for cell in cells if not (key := cell.key)[2] and key not in protected}
    open_tasks |= {task for task, level in missing if (task, level, False) not in protected}
    tasks = []
    for cell in cells:
        if cell.change is None:
            continue
        items, judged = cell.change.items, protected.get(cell.key, cell)
        gained, lost = _count_turns(sides, outcome, items)
        sampled = tuple(mean_outcome(side, items, "sampled") for side in sides) if outcome == "greedy" else ()
        chance, known = chance_level(sides[1], items), chances.get(cell.key)
        if chance and known and abs(known.value - chance.value) < SAME_CHANCE_TOLERANCE:
            chance = known
        change = TaskChange(
            task=cell.task,
            level=cell.level,
            whole=cell.whole,
            word=_find_word(cell, to_interval(cell.change.estimate, outcome), never_right, readable=judged.readable),
            before=mean_outcome(sides[0], items, outcome),
            after=mean_outcome(sides[1], items, outcome),
            change=to_interval(cell.change.estimate, outcome),
            items=len(items),
            gained=gained,
            lost=lost,
            parts=parts.get((cell.task, cell.level), ()),
            protected=cell.task not in open_tasks if cell.whole else cell.key in protected,
            loss_limit=judged.loss_limit,
            limit_excluded=judged.limit_excluded,
            chance=chance,
            shuffled=_known(to_interval(cell.change.swapped)),
            dependence=_known(to_interval(cell.change.dependence)),
            sampled=(sampled[0], sampled[1]) if sampled and np.isfinite(sampled).all() else None,
            detectable=cell.change.estimate.detectable(cell.family_size),
            adjusted_p=cell.adjusted_p,
        )
        tasks.append(change)
    for task, level in missing:
        before = _mean_before(sides[0], (task, level), outcome)
        is_protected = (task, level, False) in protected
        tasks.append(TaskChange(task, level, "not measured", before, None, nothing, protected=is_protected))
    known_tasks = {change.task for change in tasks}
    for cell in list_ungraded_cells(evidence):
        if cell[0] not in known_tasks:
            word: TaskWord = "lost" if cell[0] in gate.lost_answers else "not graded"
            tasks.append(TaskChange(*cell, word, None, None, nothing, protected=(*cell, False) in protected))
    sign = READINGS[outcome].sign
    return tuple(sorted(tasks, key=lambda change: (WORST_FIRST.index(change.word), sign * change.change.value, change.task)))


def _mean_before(before: Sequence[ItemScores], cell: TaskLevel, outcome: Outcome) -> float:
    """Mean of the outcome over all items of a cell that were measured before; 0 where none was."""
    column = READINGS[outcome].column
    values = np.concatenate([scores.column(column, scores.every.of_cells([cell])) for scores in before])
    known = values[~np.isnan(values)]
    return float(np.mean(known)) if len(known) else 0.0


def _find_word(cell: CellChange, change: Interval, never_right: Sequence[str], *, readable: bool) -> TaskWord:
    if cell.word == "cannot tell" and cell.task in never_right:
        return "never right"
    if cell.change is not None and len(cell.change.items) < MIN_ITEMS:
        return "too few items"
    if not readable and cell.word in ("cannot tell", "no change") and change.low <= 0:
        return "too few right"
    if cell.word == "cannot tell" and (change.low > 0 or change.high < 0):
        return "higher" if change.low > 0 else "lower"
    return WORD_BY_CHANGE[cell.word]


def _pack_gate(gate: GateResult) -> Gate:
    return Gate(
        mean=to_interval(gate.mean) if gate.mean is not None else None,
        margin=gate.margin,
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
        same=gate.same,
    )


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

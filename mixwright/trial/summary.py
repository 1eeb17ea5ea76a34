"""Summary of finished branch folders as the `TrialResult`. Reads files only; needs no torch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from mixwright.config import MeasureConfig, RunConfig, TrialConfig
from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.protected import protected_items
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, outcome_of
from mixwright.records import Effect, Judgement, MiningSummary, Selection, TrialResult
from mixwright.run.folder import RunFolder
from mixwright.trial.arm_roles import MINED_ARM, RANDOM_ARM, UNTRAINED_ARM, Arms, assign_roles, is_data_arm
from mixwright.trial.effects import (
    Contrast,
    Findings,
    contrasts,
    effects_by_task,
    effects_of,
    judge_lever,
)
from mixwright.trial.seed_rows import BranchFiles, branch_rows, read_branch, target_tokens
from mixwright.trial.selection import advise

PRIMARY_SENTENCES: dict[Outcome, str] = {
    "greedy": "Success: greedy decoding",
    "sampled": "Success: sampled decoding",
    "loss": "Held-out loss: nats per token of the target, end token included",
    "preference": (
        "Held-out preference accuracy: share of pairs whose chosen answer has a higher probability than the rejected one"
    ),
}
"""What the primary outcome is, for people."""


def summarise(
    run: RunFolder,
    config: RunConfig,
    arms: Arms,
    nulls: Mapping[str, Sequence[str]] | None = None,
    notes: Sequence[str] = (),
    *,
    data: MiningSummary | None = None,
) -> TrialResult:
    """What the branches show.

    Args:
        run: with the finished branches.
        config: seeds, margin, declared decoding.
        arms: references and levers, all of which ran.
        nulls: lever -> the null arms that ran for it.
        notes: what else a reader has to know.
        data: the mined rows of a trial over data.

    Raises:
        InputError: a branch is missing or broken.
    """
    nulls_by_lever = nulls or {}
    nulls_run = tuple(dict.fromkeys(null for null_names in nulls_by_lever.values() for null in null_names))
    names, seeds = (*arms.always_run, *nulls_run), tuple(range(config.trial.seeds))
    branches = {arm: [read_branch(run.branch(arm, seed)) for seed in seeds] for arm in names}
    findings = _findings(config.measure, config.trial, branches)
    effects, by_task, judgements, mined_contrasts = _judge_arms(findings, arms, nulls_by_lever)
    all_branches = list(itertools.chain(*branches.values()))
    rows = [row for branch in all_branches for row in branch_rows(branch, findings.outcome, findings.protected)]
    rollouts = {arm: _count_rollouts(branches[arm]) for arm in names}
    advice = None
    if data is not None:
        advice = _advise_on_rows(data, mined_contrasts, branches, findings, config.train.objective, rollouts)
    return TrialResult(
        arms=names,
        references=arms.references,
        nulls=nulls_run,
        seeds=seeds,
        rows=tuple(rows),
        effects=tuple(effects),
        by_task=tuple(by_task),
        judgements=tuple(judgements),
        rollouts=rollouts,
        decoding=findings.outcome,
        margin=config.trial.margin,
        notes=(*_notes(config.trial.seeds, findings.outcome), *notes),
        selection=advice,
    )


def _advise_on_rows(
    data: MiningSummary,
    mined_contrasts: Sequence[Contrast],
    branches: Mapping[str, Sequence[BranchFiles]],
    findings: Findings,
    objective: str,
    rollouts_by_arm: Mapping[str, int],
) -> Selection:
    """Return the advice on mined rows, with what each arm was trained on and what the answer cost."""
    amounts = {arm: [_training_amount(branch) for branch in own if branch.info.trained] for arm, own in branches.items()}
    amounts = {arm: own for arm, own in amounts.items() if own}
    unit = "rollouts" if objective == "grpo" else "target tokens"
    trainings, total = sum(map(len, amounts.values())), sum(map(sum, amounts.values()))
    steps, rollouts = sum(len(branch.steps) for own in branches.values() for branch in own), sum(rollouts_by_arm.values())
    price = f"{trainings} trainings, {steps:,} steps, {total:,} {unit}"
    if rollouts and unit != "rollouts":
        price += f", {rollouts:,} rollouts to measure"
    if data.price:
        price += f"; mining: {data.price}"
    column = READINGS[findings.outcome].column
    any_right = findings.outcome not in GRADED_OUTCOMES or any(
        (scores.column(column, scores.every) > 0).any()
        for scores_by_seed in findings.scores.values()
        for scores in scores_by_seed.values()
    )
    costs = {arm: sum(own) / len(own) for arm, own in amounts.items()}
    return advise(data, mined_contrasts, costs=costs, price=price, any_right=any_right)


def _training_amount(branch: BranchFiles) -> int:
    """Return what a branch was trained on, in rollouts of GRPO, else in target tokens."""
    return branch.charged_rollouts if branch.info.objective == "grpo" else target_tokens(branch) or 0


def _findings(measure: MeasureConfig, trial: TrialConfig, branches: Mapping[str, Sequence[BranchFiles]]) -> Findings:
    """Return all numbers of the branches, ready to be compared."""
    outcome = outcome_of(measure.probes, measure.decoding) or measure.decoding
    starts = {branch.info.base: branch.start_scores for branch in itertools.chain(*branches.values())}
    protected = protected_items(list(starts.values()), outcome, trial.protect)
    return Findings(
        {arm: {branch.info.seed: branch.scores for branch in own} for arm, own in branches.items()},
        outcome,
        trial.margin,
        protected,
    )


def _judge_arms(
    findings: Findings, arms: Arms, nulls_by_lever: Mapping[str, Sequence[str]]
) -> tuple[list[Effect], list[Effect], list[Judgement], list[Contrast]]:
    """Effects, those in single tasks, judgements, and the contrasts of mined rows, where it is a trial over data.

    Each lever's contrasts with its references are one family for Holm, those with its nulls another. So neither more levers
    nor more references hide a loss, and whether nulls ran changes no earlier p value.
    """
    against_references, against_nulls = [], []
    for lever in arms.levers:
        against_references += contrasts(findings, [(lever, name) for name in arms.references], levers=len(arms.levers))
        against_nulls += contrasts(findings, [(lever, null) for null in nulls_by_lever.get(lever, ())])
    references = [name for name in arms.references if name != UNTRAINED_ARM]
    against_references += contrasts(findings, [(name, UNTRAINED_ARM) for name in references])
    nulls_run = dict.fromkeys(itertools.chain(*nulls_by_lever.values()))
    against_nulls += contrasts(findings, [(null, UNTRAINED_ARM) for null in nulls_run])
    judgements = []
    for lever in arms.levers:
        lever_contrasts = [contrast for contrast in against_references if contrast.arm == lever]
        null_contrasts = [contrast for contrast in against_nulls if contrast.arm == lever]
        required = assign_roles(TrialConfig()).references
        if is_data_arm(lever):  # its null is one of its references, and always runs
            null_contrasts = [contrast for contrast in lever_contrasts if contrast.against == RANDOM_ARM]
            required = arms.references
        judgements.append(judge_lever(lever, lever_contrasts, required, null_contrasts))
    helping = {judgement.arm for judgement in judgements if judgement.word == "helps"}
    effects = [
        effects_of(findings, contrast, helps=contrast.arm in helping) for contrast in (*against_references, *against_nulls)
    ]
    task_effects = [effects_by_task(findings, contrast) for contrast in against_references if contrast.arm in arms.levers]
    mined_contrasts = [contrast for contrast in against_references if contrast.arm == MINED_ARM]
    return [*itertools.chain(*effects)], [*itertools.chain(*task_effects)], judgements, mined_contrasts


def _count_rollouts(branches: Sequence[BranchFiles]) -> int:
    """All rollouts of an arm: its branches, and the measuring before, once per starting model."""
    before = {branch.info.base: branch.rollouts_before for branch in branches}
    return sum(branch.charged_rollouts for branch in branches) + sum(before.values())


def _notes(seeds: int, outcome: Outcome) -> list[str]:
    """What a reader has to know before believing the table."""
    notes = [
        f"{PRIMARY_SENTENCES[outcome]}, all held-out items, averaged over tasks. Intervals: 95 %, over seeds and "
        "items; several comparisons are corrected by Holm, except those that must hold against every reference.",
        "All seeds start from one model, so nothing is known about other starting models.",
    ]
    if seeds < MIN_SEEDS:
        notes.append(f'With fewer than {MIN_SEEDS} seeds every result is "cannot tell".')
    return notes

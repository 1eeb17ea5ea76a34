"""Summary of finished branch folders as the `TrialResult`. Reads files only; needs no torch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mixwright.config import MeasureConfig, RunConfig, TrialConfig
from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.protected import protected_items
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, outcome_of
from mixwright.records import Effect, Judgement, Selection, TrialResult
from mixwright.run.folder import RunFolder
from mixwright.trial.arm_roles import MINED_ARM, RANDOM_ARM, Arms, builtin_arm, is_data_arm
from mixwright.trial.effects import (
    RATIO_SUFFIX,
    TO_TARGET_NAMES,
    Contrast,
    Findings,
    contrasts,
    effects_by_task,
    effects_of,
)
from mixwright.trial.judging import judge_lever
from mixwright.trial.seed_rows import BranchFiles, branch_rows, find_target, read_branch, target_horizon, target_tokens
from mixwright.trial.selection import advise


@dataclass(frozen=True, slots=True)
class MinedTable:
    """What has to be known of the table of a trial over data."""

    name: str
    """Of the table."""
    rows: int
    """It has."""
    training_rows: int
    """Training rows of the corpus."""
    new_rows: bool
    """Whether they are new rows."""
    price: str = ""
    """What mining cost, as the miner's summary says; empty where it says nothing."""
    rule: str = ""
    """What the miner's simple rule is, in words."""


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
    data: MinedTable | None = None,
) -> TrialResult:
    """What the branches show.

    Args:
        run: with the finished branches.
        config: seeds, target, margin, declared decoding.
        arms: references, levers and ablations, all of which ran.
        nulls: lever -> the null arms that ran for it.
        notes: what else a reader has to know.
        data: the mined rows of a trial over data.

    Raises:
        InputError: a branch is missing or broken.
    """
    nulls_by_lever = nulls or {}
    nulls_run = tuple(dict.fromkeys(null for null_names in nulls_by_lever.values() for null in null_names))
    names, seeds = (*arms.always_run, *nulls_run), tuple(range(config.trial.seeds))
    branches = [read_branch(run.branch(arm, seed)) for arm in names for seed in seeds]
    findings = _findings(config.measure, config.trial, names, branches)
    effects, by_task, judgements, mined_contrasts = _judge_arms(findings, arms, nulls_by_lever)
    bases = sorted({branch.info.base for branch in branches})
    rollouts = {arm: _count_rollouts([branch for branch in branches if branch.info.arm == arm]) for arm in names}
    advice = None
    if data is not None:
        objective, seed_count = config.train.objective, config.trial.seeds
        advice = _advise_on_rows(data, mined_contrasts, branches, rollouts, findings, objective, seed_count)
    return TrialResult(
        arms=names,
        references=arms.references,
        nulls=nulls_run,
        ablations=arms.ablations,
        seeds=seeds,
        rows=tuple(findings.rows),
        effects=tuple(effects),
        by_task=tuple(by_task),
        judgements=tuple(judgements),
        rollouts=rollouts,
        success_targets=_list_targets(branches, config.trial.target),
        decoding=findings.outcome,
        margin=config.trial.margin,
        notes=(*_notes(config.trial, findings, bases, effects), *notes),
        selection=advice,
    )


def _advise_on_rows(
    data: MinedTable,
    mined_contrasts: Sequence[Contrast],
    branches: Sequence[BranchFiles],
    rollouts_by_arm: Mapping[str, int],
    findings: Findings,
    objective: str,
    seeds: int,
) -> Selection:
    """The advice on mined rows, with what each arm was trained on and what the answer cost."""
    trained = [branch for branch in branches if branch.info.trained]
    costs = {}
    for arm in dict.fromkeys(branch.info.arm for branch in trained):
        counts = [
            target_tokens(b) if b.info.objective != "grpo" else b.charged_rollouts for b in trained if b.info.arm == arm
        ]
        costs[arm] = sum(count or 0 for count in counts) / len(counts)
    unit = "rollouts" if objective == "grpo" else "target tokens"
    steps, total = sum(len(branch.steps) for branch in trained), sum(costs.values()) * seeds
    price = f"{len(trained)} trainings, {steps:,} steps, {total:,.0f} {unit}"
    rollouts = sum(rollouts_by_arm.values())
    price += f", {rollouts:,} rollouts to measure" if rollouts and unit != "rollouts" else ""
    price += f"; mining: {data.price}" if data.price else ""
    rows: dict[str, Any] = {"rows": data.rows, "training_rows": data.training_rows, "new_rows": data.new_rows}
    column = READINGS[findings.outcome].column
    all_scores = [
        scores.scores.get(column, {}) for scores_by_seed in findings.scores.values() for scores in scores_by_seed.values()
    ]
    any_right = findings.outcome not in GRADED_OUTCOMES or any(
        value > 0 for scores in all_scores for value in scores.values()
    )
    return advise(data.name, mined_contrasts, **rows, costs=costs, price=price, rule=data.rule, any_right=any_right)


def _findings(measure: MeasureConfig, trial: TrialConfig, names: Sequence[str], branches: Sequence[BranchFiles]) -> Findings:
    """All numbers of the branches, ready to be compared."""
    outcome = outcome_of(measure.probes, measure.decoding) or measure.decoding
    starts = {branch.info.base: branch.start_scores for branch in branches}
    protected = protected_items(list(starts.values()), outcome, trial.protect)
    return Findings(
        {arm: {b.info.seed: b.scores for b in branches if b.info.arm == arm} for arm in names},
        [row for branch in branches for row in branch_rows(branch, outcome, trial.target, protected)],
        {
            (arm, name): [target_horizon(b)[name] for b in branches if b.info.arm == arm and b.progress]
            for arm in names
            for name in TO_TARGET_NAMES
        },
        outcome,
        trial.margin,
        protected,
    )


def _judge_arms(
    findings: Findings, arms: Arms, nulls_by_lever: Mapping[str, Sequence[str]]
) -> tuple[list[Effect], list[Effect], list[Judgement], list[Contrast]]:
    """Effects, those in single tasks, judgements, and the contrasts of mined rows, where it is a trial over data.

    Each lever's contrasts with its references are one family for Holm, those with its nulls another. So neither more levers
    nor more references hide a loss, and whether nulls ran changes no earlier p value. The plan
    against itself without one part (its ablations) is a family of its own, from which no judgement follows, so that
    ablations make no word of a lever stricter.
    """
    against_references, against_nulls, untrained = [], [], builtin_arm("untrained")
    for lever in arms.levers:
        against_references += contrasts(findings, [(lever, name) for name in arms.references], levers=len(arms.levers))
        against_nulls += contrasts(findings, [(lever, null) for null in nulls_by_lever.get(lever, ())])
    against_references += contrasts(findings, [(name, untrained) for name in arms.references if name != untrained])
    nulls_run = dict.fromkeys(null for null_names in nulls_by_lever.values() for null in null_names)
    against_nulls += contrasts(findings, [(null, untrained) for null in nulls_run])

    def contrasts_of(lever: str, all_contrasts: Sequence[Contrast]) -> list[Contrast]:
        return [contrast for contrast in all_contrasts if contrast.arm == lever]

    judgements = []
    for lever in arms.levers:
        lever_contrasts = contrasts_of(lever, against_references)
        if is_data_arm(lever):  # its null is one of its references, and always runs
            against_random = [contrast for contrast in lever_contrasts if contrast.against == RANDOM_ARM]
            judgements.append(judge_lever(lever, lever_contrasts, against_random, required=arms.references))
        else:
            judgements.append(judge_lever(lever, lever_contrasts, contrasts_of(lever, against_nulls)))
    helping = {judgement.arm for judgement in judgements if judgement.word == "helps"}
    against_ablations = contrasts(findings, [(builtin_arm("plan"), ablation) for ablation in arms.ablations])
    effects = [
        effects_of(findings, contrast, helps=contrast.arm in helping) for contrast in (*against_references, *against_nulls)
    ]
    effects += [effects_of(findings, contrast, helps=False) for contrast in against_ablations]
    task_effects = [effects_by_task(findings, contrast) for contrast in against_references if contrast.arm in arms.levers]
    return (
        [*itertools.chain(*effects)],
        [*itertools.chain(*task_effects)],
        judgements,
        contrasts_of(MINED_ARM, against_references),
    )


def _count_rollouts(branches: Sequence[BranchFiles]) -> int:
    """All rollouts of an arm: its branches, and the measuring before, once per starting model."""
    before = {branch.info.base: branch.rollouts_before for branch in branches}
    return sum(branch.charged_rollouts for branch in branches) + sum(before.values())


def _list_targets(branches: Sequence[BranchFiles], gain: float) -> dict[str, float]:
    """The gain fixed before the run, and the success it means per starting model (the same in all its branches)."""
    targets = {"gain": gain}
    for branch in branches:
        target = find_target(branch.progress, gain)[1]
        if target is not None:
            targets[f"success.{branch.info.base}"] = target
    return targets


def _notes(trial: TrialConfig, findings: Findings, bases: Sequence[str], effects: Sequence[Effect]) -> list[str]:
    """What a reader has to know before believing the table."""
    seeds, rows = trial.seeds, findings.rows
    notes = [
        f"{PRIMARY_SENTENCES[findings.outcome]}, all held-out items, averaged over tasks. Intervals: 95 %, over seeds and "
        "items; several comparisons are corrected by Holm, except those that must hold against every reference.",
        "All seeds start from one model, so nothing is known about other starting models."
        if len(bases) == 1
        else f"{seeds} seeds start from {len(bases)} models, and the intervals hold for these models only.",
    ]
    if seeds < MIN_SEEDS:
        notes.append(f'With fewer than {MIN_SEEDS} seeds every result is "cannot tell".')
    has_rollouts_to_target = any(row.name in TO_TARGET_NAMES for row in rows)
    if any(effect.name.endswith(RATIO_SUFFIX) for effect in effects):
        notes.append(
            "Rollouts to the target: ratio of means, arm over reference; a run that missed the target counts with all "
            "of its rollouts. Counted are training, canaries, evaluations during training and, if the arm depends on "
            "it, the measurement before; training_rollouts_to_target leaves that measurement out."
        )
    elif has_rollouts_to_target:
        notes.append(f"No run of a lever or its reference reached the target (+{100 * trial.target:g} points).")
    return notes

"""Summary of finished branch folders as the `TrialResult`. Reads files only; needs no torch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mixwright.config import RunConfig
from mixwright.estimates.judgement import MIN_SEEDS
from mixwright.estimates.protected import protected_items
from mixwright.estimates.readings import GRADED_OUTCOMES, READINGS, Outcome, outcome_of
from mixwright.records import Effect, Judgement, Selection, TrialResult
from mixwright.run.folder import RunFolder
from mixwright.trial.arm_roles import MINED_ARM, RANDOM_ARM, Arms, builtin_arm, of_data
from mixwright.trial.effects import (
    RATIO_SUFFIX,
    TO_TARGET_NUMBERS,
    Contrast,
    Findings,
    contrasts,
    effects_by_task,
    effects_of,
)
from mixwright.trial.judging import judge
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
    made: bool
    """Whether they are new rows."""
    price: str = ""
    """What mining cost, as the miner's summary says; empty where it says nothing."""
    rule: str = ""
    """What the miner's simple rule is, in words."""


PRIMARY_SENTENCES: dict[Outcome, str] = {
    "greedy": "Success: greedy decoding",
    "sampled": "Success: sampled decoding",
    "loss": "Held-out loss: nats per token of the target, end token included",
    "preference": "Held-out preference accuracy: share of pairs whose chosen answer is likelier than the rejected one",
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
    of = nulls or {}
    ran = tuple(dict.fromkeys(null for found in of.values() for null in found))
    names, seeds = (*arms.first, *ran), tuple(range(config.trial.seeds))
    branches = [read_branch(run.branch(arm, seed)) for arm in names for seed in seeds]
    findings = _findings(config, names, branches)
    effects, by_task, judgements, own = _judged(findings, arms, of)
    bases = sorted({branch.info.base for branch in branches})
    rollouts = {arm: _charged([branch for branch in branches if branch.info.arm == arm]) for arm in names}
    return TrialResult(
        arms=names,
        references=arms.references,
        nulls=ran,
        ablations=arms.ablations,
        seeds=seeds,
        rows=tuple(findings.rows),
        effects=tuple(effects),
        by_task=tuple(by_task),
        judgements=tuple(judgements),
        rollouts=rollouts,
        target=_targets(branches, config.trial.target),
        decoding=findings.decoding,
        margin=config.trial.margin,
        notes=(*_notes(config, findings, bases, effects), *notes),
        selection=None if data is None else _advised(data, own, branches, config, rollouts, findings),
    )


def _advised(
    data: MinedTable,
    mined_contrasts: Sequence[Contrast],
    branches: Sequence[BranchFiles],
    config: RunConfig,
    charged: Mapping[str, int],
    findings: Findings,
) -> Selection:
    """The advice on mined rows, with what each arm was trained on and what the answer cost."""
    trained = [branch for branch in branches if branch.info.trained]
    costs = {}
    for arm in dict.fromkeys(branch.info.arm for branch in trained):
        spent = [target_tokens(b) if b.info.objective != "grpo" else b.charged for b in trained if b.info.arm == arm]
        costs[arm] = sum(count or 0 for count in spent) / len(spent)
    unit = "rollouts" if config.train.objective == "grpo" else "target tokens"
    steps, whole = sum(len(branch.steps) for branch in trained), sum(costs.values()) * config.trial.seeds
    price = f"{len(trained)} trainings, {steps:,} steps, {whole:,.0f} {unit}"
    rollouts = sum(charged.values())
    price += f", {rollouts:,} rollouts to measure" if rollouts and unit != "rollouts" else ""
    price += f"; mining: {data.price}" if data.price else ""
    rows: dict[str, Any] = {"rows": data.rows, "of": data.training_rows, "made": data.made}
    column = READINGS[findings.decoding].column
    every = [scores.scores.get(column, {}) for of_arm in findings.scores.values() for scores in of_arm.values()]
    answered = findings.decoding not in GRADED_OUTCOMES or any(value > 0 for scores in every for value in scores.values())
    return advise(data.name, mined_contrasts, **rows, costs=costs, price=price, rule=data.rule, answered=answered)


def _findings(config: RunConfig, names: Sequence[str], branches: Sequence[BranchFiles]) -> Findings:
    """All numbers of the branches, ready to be compared."""
    outcome = outcome_of(config.measure.probes, config.measure.decoding) or config.measure.decoding
    starts = {branch.info.base: branch.start_scores for branch in branches}
    protected = protected_items(list(starts.values()), outcome, config.trial.protect)
    return Findings(
        {arm: {b.info.seed: b.scores for b in branches if b.info.arm == arm} for arm in names},
        [row for branch in branches for row in branch_rows(branch, outcome, config.trial.target, protected)],
        {
            (arm, name): [target_horizon(b)[name] for b in branches if b.info.arm == arm and b.progress]
            for arm in names
            for name in TO_TARGET_NUMBERS
        },
        outcome,
        config.trial.margin,
        protected,
    )


def _judged(
    findings: Findings, arms: Arms, nulls_of: Mapping[str, Sequence[str]]
) -> tuple[list[Effect], list[Effect], list[Judgement], list[Contrast]]:
    """Effects, those in single tasks, judgements, and the contrasts of mined rows, where it is a trial over data.

    Each lever's contrasts with its references are one family for Holm, those with its nulls another. So neither more levers
    nor more references hide a loss, and whether nulls ran changes no earlier p value. The plan
    against itself without one part (its ablations) is a family of its own, from which no judgement follows, so that
    ablations make no word of a lever stricter.
    """
    first, second, untrained = [], [], builtin_arm("untrained")
    for lever in arms.levers:
        first += contrasts(findings, [(lever, name) for name in arms.references], levers=len(arms.levers))
        second += contrasts(findings, [(lever, null) for null in nulls_of.get(lever, ())])
    first += contrasts(findings, [(name, untrained) for name in arms.references if name != untrained])
    ran = dict.fromkeys(null for found in nulls_of.values() for null in found)
    second += contrasts(findings, [(null, untrained) for null in ran])

    def own(lever: str, found: Sequence[Contrast]) -> list[Contrast]:
        return [contrast for contrast in found if contrast.arm == lever]

    judgements = []
    for lever in arms.levers:
        found = own(lever, first)
        if of_data(lever):  # its null is one of its references, and always runs
            chance = [contrast for contrast in found if contrast.against == RANDOM_ARM]
            judgements.append(judge(lever, found, chance, needed=arms.references))
        else:
            judgements.append(judge(lever, found, own(lever, second)))
    helping = {judgement.arm for judgement in judgements if judgement.word == "helps"}
    third = contrasts(findings, [(builtin_arm("plan"), ablation) for ablation in arms.ablations])
    made = [effects_of(findings, contrast, helps=contrast.arm in helping) for contrast in (*first, *second)]
    made += [effects_of(findings, contrast, helps=False) for contrast in third]
    single = [effects_by_task(findings, contrast) for contrast in first if contrast.arm in arms.levers]
    return [*itertools.chain(*made)], [*itertools.chain(*single)], judgements, own(MINED_ARM, first)


def _charged(branches: Sequence[BranchFiles]) -> int:
    """All rollouts of an arm: its branches, and the measuring before, once per starting model."""
    before = {branch.info.base: branch.measured_before for branch in branches}
    return sum(branch.charged for branch in branches) + sum(before.values())


def _targets(branches: Sequence[BranchFiles], gain: float) -> dict[str, float]:
    """The gain fixed before the run, and the success it means per starting model (the same in all its branches)."""
    found = {"gain": gain}
    for branch in branches:
        target = find_target(branch.progress, gain)[1]
        if target is not None:
            found[f"success.{branch.info.base}"] = target
    return found


def _notes(config: RunConfig, findings: Findings, bases: Sequence[str], effects: Sequence[Effect]) -> list[str]:
    """What a reader has to know before believing the table."""
    seeds, rows = config.trial.seeds, findings.rows
    notes = [
        f"{PRIMARY_SENTENCES[findings.decoding]}, all held-out items, mean over tasks. Intervals: 95 %, over seeds and "
        "items; words of several comparisons are corrected by Holm, except those that must hold against every reference.",
        "All seeds start from one model: nothing is known of other starting models."
        if len(bases) == 1
        else f"{seeds} seeds start from {len(bases)} models: the intervals hold for these models only.",
    ]
    if seeds < MIN_SEEDS:
        notes.append(f'With fewer than {MIN_SEEDS} seeds every word is "cannot tell".')
    asked = any(row.name in TO_TARGET_NUMBERS for row in rows)
    if any(effect.name.endswith(RATIO_SUFFIX) for effect in effects):
        notes.append(
            "Rollouts to the target: ratio of means, arm over reference; a run that missed it counts with all that it was "
            "watched for. Charged: training, canaries, evaluations on the way and, where the arm rests on it, the measuring "
            "before; training_rollouts_to_target leaves that measuring out."
        )
    elif asked:
        notes.append(f"No run of a lever or its reference reached the target (+{100 * config.trial.target:g} points).")
    return notes

"""From finished branch folders to the `TrialResult`. Reads files only; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence

from mixwright import catalog
from mixwright.config import RunConfig
from mixwright.records import Effect, Plan, SeedRow, TrialResult
from mixwright.runs import RunFolder
from mixwright.trial._effects import Table, all_effects, missing_classes, null_gains
from mixwright.trial._rows import BranchFiles, branch_rows, reached, read_branch
from mixwright.trial._statistics import FEWEST_SEEDS


def summarise(run: RunFolder, config: RunConfig, plan: Plan) -> TrialResult:
    """What the branches of the configured arms and seeds show. Raises InputError when one is missing or broken."""
    arms, seeds = tuple(config.trial.arms), tuple(range(config.trial.seeds))
    branches = [read_branch(run.branch(arm, seed)) for arm in arms for seed in seeds]
    rows = [row for branch in branches for row in branch_rows(branch, plan.cells, config.trial.target)]
    names = sorted({branch.info.base for branch in branches})
    base_of = {branch.info.seed: names.index(branch.info.base) for branch in branches}
    classes = {arm: catalog.load("arms", arm) for arm in arms}
    nulls = tuple(arm for arm in arms if classes[arm].NULL)
    table = Table.of(rows, base_of, config.trial.margin)
    effects, races = all_effects(table, {arm: classes[arm].AGAINST for arm in arms}, nulls)
    gains = null_gains(effects, nulls)
    return TrialResult(
        arms=arms,
        nulls=nulls,
        seeds=seeds,
        rows=tuple(rows),
        effects=tuple(effects),
        rollouts={arm: _charged([branch for branch in branches if branch.info.arm == arm]) for arm in arms},
        target=_targets(branches, config.trial.target),
        unproven=bool(gains),
        notes=(*_notes(config, rows, names, nulls), *races, *_doubts(gains)),
    )


def _charged(branches: Sequence[BranchFiles]) -> int:
    """All rollouts of an arm: its branches, and the measuring before, once per starting model."""
    before = {branch.info.base: branch.measured_before for branch in branches}
    return sum(branch.charged for branch in branches) + sum(before.values())


def _targets(branches: Sequence[BranchFiles], gain: float) -> dict[str, float]:
    """The gain fixed before the run, and the success it means per starting model (the same in all its branches)."""
    found = {"gain.reachable": gain}
    for branch in branches:
        target = reached(branch.progress, gain)[1]
        if target is not None:
            found[f"success.reachable.{branch.info.base}"] = target
    return found


NOTES = (
    "Share of groups that teach: rewards differ, the group was not refused, and the plan found its cell right more often "
    "than luck. The zero-signal share also counts groups of lucky cells as signal.",
    "Noise floor: size that the mean difference of two identical arms stays below in 95 % of trials, from the spread of "
    "runs within arm and starting model.",
    "Success of a class: mean sampled pass@1 over its held-out cells, each cell counted once, classes as the plan sorted "
    "them. Cells sorted by a noisy measurement drift back to their mean: compare arms, not gains, on mastered and hopeless.",
    "rollouts_to_target charges training, canaries, evaluations on the way and, to arms that follow the plan, the measuring "
    "it rests on; training_rollouts_to_target leaves that measuring out. Differences are over the seeds where both arms "
    "arrived; first_to_target counts the others too.",
)
"""How the numbers are made."""


def _notes(config: RunConfig, rows: Sequence[SeedRow], bases: Sequence[str], nulls: Sequence[str]) -> list[str]:
    """What a reader has to know before believing the table."""
    margin, seeds = config.trial.margin, config.trial.seeds
    notes = [
        f"Intervals: 95 %, paired t over {seeds} seeds from {len(bases)} starting model(s); they speak about these models. "
        f"No measurable effect: interval around 0 and within +-{margin:g} (rollouts: +-{margin:.0%} of the largest run).",
        *NOTES,
    ]
    if seeds < FEWEST_SEEDS:
        notes.append(f"{seeds} seeds: every word is inconclusive below {FEWEST_SEEDS}.")
    if not nulls:
        notes.append("No null arm was run: nothing here shows that a gain needs the rewards' information.")
    if missing := missing_classes(rows):
        notes.append(f"No cell of class {', '.join(missing)}: nothing can be said about it.")
    return notes


def _doubts(gains: Sequence[Effect]) -> list[str]:
    """One sentence per gain that a null made."""
    return [
        f"Unproven: {gain.arm}, which knows no right answer from a wrong one, gained {gain.difference.value:+.3f} "
        f"({gain.difference.low:+.3f} .. {gain.difference.high:+.3f}) in {gain.name} against {gain.against}."
        for gain in gains
    ]

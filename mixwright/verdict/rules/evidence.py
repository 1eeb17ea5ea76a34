"""Readers of a run folder for rules and sections; a missing file is an empty answer, a broken one an `InputError`."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from mixwright.answers.score import read_scores
from mixwright.answers.table import Answers
from mixwright.errors import InputError
from mixwright.estimates.outcome import ItemScores
from mixwright.estimates.readings import Outcome, outcome_of
from mixwright.records import Plan, TrialResult
from mixwright.run.folder import RunFolder, answers_file, read_json, read_plan, read_yaml
from mixwright.verdict.page.answers import find_answers

P = ParamSpec("P")
T = TypeVar("T")


def file_version(path: Path) -> tuple[int, int] | None:
    """Which version of a file this is, so that what was read of it can be kept; None without one."""
    status = path.stat() if path.is_file() else None
    return (status.st_ino, status.st_mtime_ns) if status else None


def answers_version(folder: Path) -> tuple[object, ...]:
    """Which version of its files of answers a folder has."""
    return tuple(file_version(path) for path in find_answers(folder).values())


@functools.lru_cache(maxsize=8)
def _read_trial(path: Path, version: tuple[int, int] | None) -> TrialResult | None:
    return read_json(path, TrialResult) if version else None


def trial_of(run: RunFolder) -> TrialResult | None:
    """The trial's result, if there was one; kept, because sections ask for it again. Raises InputError for a broken one."""
    return _read_trial(run.result, file_version(run.result))


def plan_of(run: RunFolder) -> Plan | None:
    """The plan, if there is one."""
    return read_plan(run.plan) if run.plan.is_file() else None


def read_outcome(run: RunFolder) -> Outcome:
    """What the run's settings read the primary outcome from: a decoding (greedy by default), or what is not graded.

    Logs have no settings, and answers of one decoding.
    """
    path = run.path / "run.yaml"
    if not path.is_file() and run.answers("after").is_file():
        return "sampled" if Answers.read(run.answers("after")).decodings == ("sampled",) else "greedy"
    measure_settings = read_yaml(path, dict[str, Any]).get("measure") if path.is_file() else None
    measure_settings = measure_settings if isinstance(measure_settings, dict) else {}
    probes = measure_settings.get("probes")
    probe_names = [name for name in probes if isinstance(name, str)] if isinstance(probes, list) else []
    decoding = "sampled" if measure_settings.get("decoding") == "sampled" else "greedy"
    return outcome_of(probe_names, decoding) or decoding


def arm_branches(run: RunFolder) -> dict[str, list[tuple[int, Path]]]:
    """Arm -> its (seed, branch folder), in the trial's order of arms, else alphabetically.

    Once the trial has its result, branches that it does not speak of (dropped seeds, arms of earlier settings) are left out.
    """
    branches: dict[str, list[tuple[int, Path]]] = {}
    result = trial_of(run)
    for arm, seed, folder in run.branches():
        if result is None or (arm in result.arms and seed in result.seeds):  # others are of earlier settings
            branches.setdefault(arm, []).append((seed, folder))
    return {arm: branches[arm] for arm in result.arms if arm in branches} if result else dict(sorted(branches.items()))


def leading_folders(run: RunFolder) -> list[Path]:
    """The branch folders of the leading arm, one per seed; none without a trial."""
    return [folder for _, folder in arm_branches(run).get(headline_arm(run), [])]


def headline_arm(run: RunFolder) -> str:
    """The arm that the first screen is about: the trial's first lever; empty without a trial.

    Without a lever it is the first arm that is compared with another. Before a trial has its result nothing says what an arm
    is, and the first one stands here.
    """
    result = trial_of(run)
    if result is None:
        return next(iter(arm_branches(run)), "")
    other_arms = {*result.references, *result.nulls, *result.ablations}
    levers = [arm for arm in result.arms if arm not in other_arms]
    return next(iter([*levers, *(effect.arm for effect in result.effects), *result.arms]), "")


@functools.lru_cache(maxsize=128)
def _read_scores(path: Path, _version: tuple[int, int] | None) -> ItemScores:
    return read_scores(path)


def scores(path: Path) -> ItemScores:
    """Scores of the single items that a table of measurements is about; kept, because sections ask for them again.

    Raises:
        InputError: the table is broken, or of an earlier version.
    """
    return _read_scores(path, file_version(answers_file(path)))


Sides = tuple[Sequence[ItemScores], Sequence[ItemScores]]
"""Before and after, one each per seed, in the same order."""


MAX_RECENT = 8
"""Results of a function that are kept."""


def keep_recent(function: Callable[Concatenate[Sides, P], T]) -> Callable[Concatenate[Sides, P], T]:
    """The function, which keeps what it gave for the last few sides: claims, the gate and several sections ask for the same.

    What it gives is shared, and must not be changed.
    """
    recent: list[tuple[object, Sides, T]] = []

    @functools.wraps(function)
    def find_or_call(sides: Sides, *args: P.args, **kwargs: P.kwargs) -> T:
        score_counts = [
            [(id(scores), {name: len(values) for name, values in scores.scores.items()}) for scores in side]
            for side in sides
        ]
        key = (score_counts, args, kwargs)
        for known_key, _, result in recent:
            if known_key == key:
                return result
        result = function(sides, *args, **kwargs)
        recent.append((key, (tuple(sides[0]), tuple(sides[1])), result))  # kept with its sides, so that ids stay theirs
        del recent[:-MAX_RECENT]
        return result

    return find_or_call


def comparisons(run: RunFolder) -> dict[str, Sides]:
    """Arm -> what was measured before and after, per seed; the arm of a plain before and after is the empty name.

    Raises:
        InputError: a table is broken, or of an earlier version.
    """
    files = {
        arm: [(folder / "before.parquet", folder / "after.parquet") for _, folder in branches]
        for arm, branches in sorted(arm_branches(run).items())
    } or {"": [(run.measurements("before"), run.measurements("after"))]}
    sides_by_arm: dict[str, Sides] = {}
    for arm, paths in files.items():
        pairs = [(scores(before), scores(after)) for before, after in paths if before.is_file() and after.is_file()]
        if pairs:
            sides_by_arm[arm] = ([old for old, _ in pairs], [new for _, new in pairs])
    return sides_by_arm


def leading_sides(run: RunFolder) -> Sides | None:
    """What was measured before and after of the leading arm, or of two checkpoints; None where nothing was."""
    return comparisons(run).get(headline_arm(run))


def count_rows(run: RunFolder) -> Counter[str]:
    """Rows of the corpus by split; empty without one, as a comparison of two checkpoints is."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = run.corpus / "rows.parquet"
    if not path.is_file():
        return Counter()
    try:
        return Counter(pq.read_table(path, columns=["split"])["split"].to_pylist())
    except (OSError, pa.ArrowException) as error:
        raise InputError("rows.parquet of a saved corpus", str(error)[:120], "Save it again.", file=path) from None


def paired_scores(run: RunFolder, arm: str, against: str) -> Sides | None:
    """What two arms could do after training, per seed that both finished: the reference first. None without such seeds."""
    arm_files, reference_files = (
        {seed: folder / "after.parquet" for seed, folder in arm_branches(run).get(name, [])} for name in (arm, against)
    )
    seeds = [
        seed
        for seed in arm_files
        if seed in reference_files and arm_files[seed].is_file() and reference_files[seed].is_file()
    ]
    return (
        ([scores(reference_files[seed]) for seed in seeds], [scores(arm_files[seed]) for seed in seeds]) if seeds else None
    )

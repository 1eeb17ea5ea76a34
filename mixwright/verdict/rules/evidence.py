"""Evidence of a verdict: the files of a run folder, each read once, whoever asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.answers.score import scores_of_items
from mixwright.answers.table import Answers
from mixwright.errors import InputError
from mixwright.estimates.outcome import ItemScores, Sides
from mixwright.estimates.readings import GRADED_OUTCOMES, Outcome, outcome_of
from mixwright.records import (
    BehaviourChange,
    ColumnChange,
    FormChange,
    Observation,
    Plan,
    Recalled,
    RunManifest,
    TrialResult,
)
from mixwright.run.folder import RunFolder, answers_file, read_json, read_list, read_plan, read_yaml
from mixwright.verdict.page.answers import ItemPairs, find_answers, pair_answers
from mixwright.verdict.rules.answer_forms import KnownForms, form_changes, known_forms_file
from mixwright.verdict.rules.behaviours import compare_behaviours
from mixwright.verdict.rules.cells import CellChange, compare_cells
from mixwright.verdict.rules.columns import compare_columns
from mixwright.verdict.rules.gate_question import GateQuestion, read_question

LARGEST_CELL_ROWS_SETTING, PACE_SETTING = "rows_of_largest_cell", "seconds_per_item"
"""Settings in a comparison's manifest: how many items a cell could have had, and how long one took."""
LEFT_OUT_SETTING = "tasks_left_out"
"""The same of tasks that no grader can judge, or of logs that cannot be compared, which were not measured."""
LEFT_OUT_REASON_SETTING = "left_out_reason"
"""The same of the reason, where it is another one: words that follow `where`."""


@dataclass
class Evidence:
    """Content of a run folder. A missing file is an empty answer, a broken one an InputError."""

    run: RunFolder
    """The folder."""
    _answers: dict[Path, Answers] = field(default_factory=dict, repr=False)
    _scores: dict[Path, ItemScores] = field(default_factory=dict, repr=False)

    @cached_property
    def trial(self) -> TrialResult | None:
        """Result of the trial, if there was one."""
        return read_json(self.run.result, TrialResult) if self.run.result.is_file() else None

    @cached_property
    def plan(self) -> Plan | None:
        """The plan, if there is one."""
        return read_plan(self.run.plan) if self.run.plan.is_file() else None

    @cached_property
    def manifest(self) -> RunManifest | None:
        """Manifest of the run, if there is one."""
        return read_json(self.run.manifest, RunManifest) if self.run.manifest.is_file() else None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings that the manifest notes."""
        return self.manifest.settings if self.manifest else {}

    @cached_property
    def notes(self) -> tuple[Observation, ...]:
        """Notes on the measuring."""
        return tuple(read_list(self.run.notes, Observation)) if self.run.notes.is_file() else ()

    @cached_property
    def question(self) -> GateQuestion | None:
        """Question that the gate was asked last."""
        return read_question(self.run)

    @cached_property
    def outcome(self) -> Outcome:
        """Primary outcome that the settings declare: a decoding (greedy by default), or a reading that needs no grader.

        Logs have no settings, and answers of one decoding.
        """
        path = self.run.path / "run.yaml"
        if not path.is_file() and self.run.answers("after").is_file():
            return "sampled" if self.read_answers(self.run.answers("after")).decodings == ("sampled",) else "greedy"
        measure_settings = read_yaml(path, dict[str, Any]).get("measure") if path.is_file() else None
        measure_settings = measure_settings if isinstance(measure_settings, dict) else {}
        probes = measure_settings.get("probes")
        probe_names = [name for name in probes if isinstance(name, str)] if isinstance(probes, list) else []
        decoding = "sampled" if measure_settings.get("decoding") == "sampled" else "greedy"
        return outcome_of(probe_names, decoding) or decoding

    @cached_property
    def branches(self) -> dict[str, list[tuple[int, Path]]]:
        """Arm -> its (seed, branch folder), in the trial's order of arms, else alphabetically.

        Once the trial has its result, branches that it does not speak of (dropped seeds, arms of earlier settings) are left
        out.
        """
        branches: dict[str, list[tuple[int, Path]]] = {}
        result = self.trial
        for arm, seed, folder in self.run.branches():
            if result is None or (arm in result.arms and seed in result.seeds):
                branches.setdefault(arm, []).append((seed, folder))
        return {arm: branches[arm] for arm in result.arms if arm in branches} if result else dict(sorted(branches.items()))

    @cached_property
    def arm(self) -> str:
        """The arm that the first screen is about: the trial's first lever; empty without a trial.

        Without a lever it is the first arm that is compared with another. Before a trial has its result nothing says what an
        arm is, and the first one counts.
        """
        result = self.trial
        if result is None:
            return next(iter(self.branches), "")
        other_arms = {*result.references, *result.nulls}
        levers = [arm for arm in result.arms if arm not in other_arms]
        return next(iter([*levers, *(effect.arm for effect in result.effects), *result.arms]), "")

    @property
    def leading_folders(self) -> list[Path]:
        """The branch folders of the leading arm, one per seed; none without a trial."""
        return [folder for _, folder in self.branches.get(self.arm, [])]

    @cached_property
    def sides_by_arm(self) -> dict[str, Sides]:
        """Arm -> scores before and after, per seed; the arm of a plain before and after is the empty name."""
        files = {
            arm: [(folder / "before.parquet", folder / "after.parquet") for _, folder in branches]
            for arm, branches in sorted(self.branches.items())
        } or {"": [(self.run.measurements("before"), self.run.measurements("after"))]}
        sides_by_arm: dict[str, Sides] = {}
        for arm, paths in files.items():
            found = [pair for pair in paths if all(path.is_file() for path in pair)]
            if found:
                before, after = ([self.read_scores(path) for path in side] for side in zip(*found, strict=True))
                sides_by_arm[arm] = (before, after)
        return sides_by_arm

    @cached_property
    def comparisons(self) -> dict[str, list[CellChange]]:
        """Arm -> its cells and whole tasks, compared."""
        return {arm: compare_cells(sides, self.outcome) for arm, sides in self.sides_by_arm.items()}

    @property
    def sides(self) -> Sides | None:
        """Scores before and after, of the leading arm or of two checkpoints; None without any."""
        return self.sides_by_arm.get(self.arm)

    @cached_property
    def first_answers(self) -> list[dict[str, Any]]:
        """First answers of every side of a comparison, as rows with `when`; none of a trial's branches."""
        return self.read_first_answers(self.run.path / "measure")

    @cached_property
    def pairs(self) -> ItemPairs:
        """Answers of both sides of a comparison, in the order of the file; none of a trial's branches."""
        return pair_answers(self.first_answers)

    @cached_property
    def form_changes(self) -> list[FormChange]:
        """Changes in the form of the answers of a comparison; empty without completions."""
        path = known_forms_file(self.run)
        return form_changes(self.pairs, read_json(path, KnownForms) if path.is_file() else {})

    @cached_property
    def recalled(self) -> list[Recalled]:
        """What the later model of a comparison still knows of lost answers, task by task; empty where it was not asked."""
        if "after" not in (files := find_answers(self.run.path / "measure")):
            return []
        answers = self.read_answers(files["after"])
        completed, beaten = answers.of_items("completed"), answers.of_items("recalled")
        found = []
        for task in dict.fromkeys(task for task, _ in answers.cells):
            places = [place for place in answers.groups[task, None].tolist() if completed[place] >= 0]
            shares = beaten[places][~np.isnan(beaten[places])]
            mean = float(shares.mean()) if len(shares) else None
            found += [Recalled(task, len(places), int(completed[places].sum()), mean)] if places else []
        return found

    @cached_property
    def by_column(self) -> list[ColumnChange]:
        """Values of other columns of a comparison's items that changed unlike others; empty where nothing is graded."""
        files = find_answers(self.run.path / "measure")
        if self.outcome not in GRADED_OUTCOMES or not {"before", "after"} <= files.keys():
            return []
        return compare_columns(self.read_answers(files["before"]), self.read_answers(files["after"]), self.outcome)

    @cached_property
    def behaviours(self) -> list[BehaviourChange]:
        """What the answers of both models of a comparison do beside answering; empty without completions."""
        files = find_answers(self.run.path / "measure")
        sampled = [self.read_answers(files[side]) for side in ("before", "after") if side in files]
        sampled = sampled if all("sampled" in answers.decodings for answers in sampled) else []
        protected = self.question.behaviours if self.question else ()
        return compare_behaviours(self.pairs, (sampled[0], sampled[1]) if len(sampled) == 2 else None, protected)

    def read_answers(self, path: Path) -> Answers:
        """Read a file of answers. Raises InputError for a broken one."""
        if path not in self._answers:
            self._answers[path] = Answers.read(path)
        return self._answers[path]

    def read_first_answers(self, folder: Path) -> list[dict[str, Any]]:
        """Read the first answers of every side in a folder, as rows with `when`; none without files."""
        files = find_answers(folder)
        templates = {side: self.read_answers(path).header.template for side, path in files.items()}
        if len({*templates.values()}) > 1:
            got = "; ".join(f"{side} with {', '.join(given) or 'none'}" for side, given in templates.items())
            remedy = "Measure all sides with the same --template."
            raise InputError("answers with the same arguments of the chat template", got, remedy, file=folder)
        return [row | {"when": side} for side, path in files.items() for row in self.read_answers(path).first_rows()]

    def read_scores(self, path: Path) -> ItemScores:
        """Read the scores of the single items that a table of measurements is about. Raises InputError for a broken one."""
        if path not in self._scores:
            self._scores[path] = scores_of_items(self.read_answers(answers_file(path)))
        return self._scores[path]

    def pair_arms(self, arm: str, against: str) -> Sides | None:
        """Return the scores of two arms after training, per seed that both finished, the reference first."""
        arm_files, reference_files = (
            {seed: path for seed, folder in self.branches.get(name, []) if (path := folder / "after.parquet").is_file()}
            for name in (arm, against)
        )
        seeds = [seed for seed in arm_files if seed in reference_files]
        of_reference, of_arm = ([self.read_scores(files[seed]) for seed in seeds] for files in (reference_files, arm_files))
        return (of_reference, of_arm) if seeds else None

"""Promises of the kinds of plug-ins that `plugin_promises.py` has no test of."""

from __future__ import annotations

import contextlib
import copy
import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import plugin_samples as samples
import promise_samples as own
import verdicts
from plugin_promises import (
    check_plugin,
    check_steerer,
    model_state,
    require,
    require_round_trip,
    require_valid_plan,
    same_randomness,
)
from promises_adapters import check_adapter

from mixwright.errors import InputError
from mixwright.records import Action, Alarm, Measurement, Objective, TrainingSetup, Verdict
from mixwright.verdict.page.blocks import keep_filled
from mixwright_extras.scan.contract import Pass
from mixwright_lab.promises import check_finding as check_own

if TYPE_CHECKING:
    from mixwright.contracts import Controller, Export, Gate, Monitor, Planner, Probe, Section
    from mixwright.learner.learner import Learner
    from mixwright_extras.scan.contract import Columns
    from mixwright_lab.contracts import Finding, World

__all__ = ["check_adapter", "check_finding"]


def check_finding(cls: type[Finding]) -> None:
    """What every plug-in promises, and what the laboratory asks of a finding."""
    check_plugin(cls)
    check_own(cls)


def check_probe(cls: type[Probe], learner: Learner) -> None:
    """The model is left as it was found; same rng, same numbers; each number has unit, interval and n.

    Args:
        cls: the probe.
        learner: any learner; a tiny one will do (`mixwright_extras.tiny.model.build_tiny`).
    """
    probe = check_plugin(cls)
    corpus = own.measurable()
    passes = own.passes(learner, corpus)
    found = {}
    for attempt in range(2):
        before = model_state(learner.model)
        with same_randomness():
            found[attempt] = probe.measure(passes, corpus, np.random.default_rng(3))
        require(model_state(learner.model) == before, "parameters, gradients and train/eval mode are as they were")
    require(found[0] == found[1], "same rng, same numbers")
    require(bool(found[0]), "a learner and a corpus give at least one number")
    for row in found[0]:
        require(isinstance(row, Measurement) and row.n >= 1 and bool(row.unit), "n and unit")
        require(row.low <= row.value <= row.high, f"{row.name}: low <= value <= high")
        require(row.null is None or bool(row.null_of), "a null says what it is")
        require_round_trip(row)


def check_column(cls: type[Columns], learner: Learner) -> None:
    """Every name that is promised and no other, a value per row, for rows without prompt, target or answer too; same rows,
    same values; passes that were not declared are not read; the model is left as it was found.

    Args:
        cls: the group of columns.
        learner: any learner; a tiny one will do (`mixwright_extras.tiny.model.build_tiny`).
    """
    group = check_plugin(cls)
    require(bool(cls.NAMES) and all(cls.NAMES.values()), "NAMES says of each column what it is")
    require(set(cls.PASSES) <= set(get_args(Pass)), f"PASSES are of {', '.join(get_args(Pass))}")
    for rows in own.scanned(learner):
        before, found = model_state(learner.model), []
        for passes in (own.scan_passes(learner, rows, cls.PASSES) for _ in range(2)):
            with same_randomness():
                found.append(group.compute(rows, passes))
        require(model_state(learner.model) == before, "parameters, gradients and train/eval mode are as they were")
        require(set(found[0]) == set(cls.NAMES), f"the columns of NAMES: {', '.join(cls.NAMES)}")
        for name, values in found[0].items():
            require(len(values) == len(rows) and values.ndim in (1, 2), f"{name} has a value per row")
            kind = values.dtype.kind
            require(kind in "iuf" or all(isinstance(value, str) for value in values), f"{name} is numbers or texts")
            same = np.array_equal(values, found[1][name], equal_nan=kind == "f")
            require(same, f"{name}: same rows, same values")


def check_planner(cls: type[Planner]) -> None:
    """Pure; weights are shares of known tasks, each with its why; the plan comes back from YAML unchanged."""
    for objective in cls.OBJECTIVES:
        _check_planned(cls, check_plugin(cls), objective)


def _check_planned(cls: type[Planner], planner: Planner, objective: Objective) -> None:
    """The promise of a planner for one of its objectives."""
    cells, competence, training = samples.cells(), own.competence(), TrainingSetup(10, objective)
    given = copy.deepcopy((cells, competence))
    with same_randomness():
        plan = planner.plan(cells, competence, training)
    require((cells, competence) == given, "what it is given is only read")
    require(cls().plan(cells, competence, training) == plan, "same input, same plan")
    require_valid_plan(plan, {cell.task for cell in cells})
    require(sum(stage.steps for stage in plan.stages) == 10, "the stages have the steps asked for, together")
    require({stage.objective for stage in plan.stages} == {objective}, "the stages have the objective asked for")
    for place, stage in enumerate(plan.stages):
        for task in stage.weights:
            require(f"stages.{place}.weights.{task}" in plan.why, f"the weight of {task} has its why")
    with contextlib.suppress(InputError):
        require_valid_plan(cls().plan(cells, [], training), {cell.task for cell in cells})


def check_export(cls: type[Export], place: Path) -> None:
    """Files in the folder that is handed in and nowhere else, twice the same, with settings that YAML or JSON can read.

    Every plan objective is written, or refused in words.

    Args:
        cls: the export.
        place: an empty folder that may be written to.
    """
    import yaml

    export, written = check_plugin(cls), 0
    for number, mix in enumerate(own.mixes()):
        folder = place / "out" / str(number)
        try:
            with same_randomness():
                said = export.write(mix, folder)
        except InputError:
            continue
        written += 1
        require(bool(said) and all(said), "it says what was written")
        require([path.name for path in place.iterdir()] == ["out"], "nothing is written beside the folder")
        found = own.contents(folder)
        shutil.rmtree(folder)
        require(cls().write(mix, folder) == said, "the same mix is told the same way")
        require(own.contents(folder) == found, "the same mix gives the same files")
        settings = [path for path in folder.rglob("*") if path.suffix in (".yaml", ".json")]
        require(bool(settings), "there are settings in YAML or JSON")
        for path in settings:
            text = path.read_text(encoding="utf-8")
            require(isinstance(yaml.safe_load(text), dict), f"{path.name} can be read")
        notes = "".join(path.read_text(encoding="utf-8") for path in settings if path.suffix == ".yaml")
        lines = " ".join(line.removeprefix("#").strip() for line in notes.splitlines() if line.startswith("#"))
        require(all(note in lines for note in mix.notes), "the notes of the mix stand at the top of the settings")
    require(written > 0, "some objective can be written")


def check_section(cls: type[Section]) -> None:
    """Blocks as data from a verdict with and without parts; the same verdict gives the same blocks."""
    section = check_plugin(cls)
    empty = Verdict("run", "", "before", "after", "inconclusive", "nothing compared", 4, "Nothing.", "success")
    for verdict in (empty, verdicts.trial(), verdicts.damaged()):
        with same_randomness():
            blocks = section.blocks(verdict)
        require(isinstance(blocks, list), "a list of blocks")
        require(repr(cls().blocks(verdict)) == repr(blocks), "the same verdict gives the same blocks")
        require(verdict is not empty or not keep_filled(blocks), "nothing to say of a verdict without its part")


def check_world(cls: type[World]) -> None:
    """Random access: same arguments, same example; an answer for each; splits never share a prompt; no level but its own."""
    world = check_plugin(cls)
    require(not any(_has_level(world, level) for level in (0.0, 1.5, 99.0)), "a level that there is not is refused")
    prompts: dict[str, set[str]] = {}
    with same_randomness():
        for split in ("train", "eval"):
            made = [world.make(index, level, split) for level in (1.0, 2.0) for index in range(300)]
            require(world.make(3, 1.0, split) == made[3], "same arguments, same example, in any order")
            require(all(example.answer and example.split == split for example in made), "an answer and its split")
            prompts[split] = {str(example.prompt) for example in made}
    require(not prompts["train"] & prompts["eval"], "splits never share a prompt")


def _has_level(world: World, level: float) -> bool:
    try:
        return bool(world.make(0, level, "train"))
    except InputError:
        return False


def check_gate(cls: type[Gate]) -> None:
    """Answers every group with a reason; state round-trips."""

    def answer(gate: Gate, step: int) -> Any:
        admissions = [gate.admit(group) for group in samples.groups(step)]
        require(all(isinstance(a.admitted, bool) and a.reason for a in admissions), "admitted or not, and why")
        return admissions

    check_steerer(cls, answer)


def check_controller(cls: type[Controller]) -> None:
    """Proposes only coefficients, learning-rate factors and skipped steps, with a reason; state round-trips."""

    def answer(controller: Controller, step: int) -> Any:
        actions = [action for signals in own.signals(step) for action in controller.propose(signals)]
        for action in actions:
            require(isinstance(action, Action) and action.kind == "coefficient", "its own kind")
            require(action.value is None or (math.isfinite(action.value) and action.value >= 0), "a finite value")
            require(bool(action.because), "an action says why")
        return actions

    check_steerer(cls, answer)


def check_monitor(cls: type[Monitor]) -> None:
    """Raises alarms with numbers; state round-trips."""
    name = cls.__module__.rpartition(".")[2]

    def answer(monitor: Monitor, step: int) -> Any:
        alarms = [alarm for signals in own.signals(step) for alarm in monitor.inspect(signals)]
        for alarm in alarms:
            require(isinstance(alarm, Alarm) and alarm.monitor == name and bool(alarm.message), f"an Alarm of {name}")
            require(math.isfinite(alarm.value) and math.isfinite(alarm.threshold), "finite numbers")
        return alarms

    check_steerer(cls, answer)

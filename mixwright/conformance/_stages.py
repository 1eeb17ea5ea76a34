"""Promises of the plug-ins that look, measure, plan, try and tell: graders, checks, columns, planners, exports, arms ..."""

from __future__ import annotations

import contextlib
import copy
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from mixwright import catalog
from mixwright.conformance import samples
from mixwright.conformance._promises import check_plugin, docstring, require, round_trip, same_randomness, valid_plan
from mixwright.contracts import Role
from mixwright.errors import InputError
from mixwright.measure.scan_rows import Pass
from mixwright.records import Example, Measurement, Objective, Observation, TrainingSetup

if TYPE_CHECKING:
    from mixwright.contracts import Arm, Check, Columns, Export, Finding, Grader, Miner, Planner, Probe, Section, World
    from mixwright.learner.learner import Learner

HOSTILE = (
    "",
    " ",
    "\x00\x1b[31m",
    "(" * 5000,
    "9" * 5000,
    "a+" * 2000 + "!",
    "\\boxed{" * 500,
    "\u202e\U0001f600",
    "__import__('os')",
)


def check_grader(cls: type[Grader], examples: Sequence[Example] | None = None) -> None:
    """Gold earns 1, everything else 0, containing the answer earns nothing, no text makes it raise, luck is a share.

    A grader whose `Unit:` line says "partial credit" may pay less than 1 for what is wrong.

    Args:
        cls: the grader.
        examples: examples it can grade; default: answers that are numbers, words and choices.
    """
    grader = check_plugin(cls)
    examples = list(examples or samples.graded())
    unit = next(line for line in docstring(cls) if line.startswith("Unit:"))
    strict = "partial credit" not in unit
    grader.grade(examples[0], "")  # libraries that it imports on first use may touch the random state; its grading may not
    with same_randomness():
        for example in examples:
            gold = example.answer or ""
            require(grader.grade(example, gold) == 1.0, f"the gold answer {gold!r} earns 1.0")
            require(not strict or grader.grade(example, f" {gold}\n") == 1.0, "blanks around the gold answer do not matter")
            for wrong in samples.wrong(gold):
                earned = grader.grade(example, wrong)
                require(earned == 0.0 or (not strict and earned < 1.0), f"{wrong!r} earns nothing where {gold!r} is right")
            for text in HOSTILE:
                require(0.0 <= grader.grade(example, text) <= 1.0, f"{text[:20]!r} is graded within 0..1")
        luck = grader.luck(examples)
        require(luck is None or 0.0 <= luck <= 1.0, "luck is None or a share")


def check_check(cls: type[Check]) -> None:
    """Pure, JSON-ready observations whose counts add up; odd corpora (empty, no answers) are no error."""
    name = cls.__module__.rpartition(".")[2]
    for corpus in samples.corpora():
        before = corpus.digest()
        with same_randomness():
            seen = check_plugin(cls).check(corpus)
        require(seen == cls().check(corpus), "the same corpus gives the same observations")
        require(corpus.digest() == before, "the corpus is only read")
        for observation in seen:
            require(isinstance(observation, Observation), "a list of Observation")
            require(observation.check == name, f"the observation names its check, {name}")
            require(
                observation.task is None or observation.task in corpus.tasks, "it is about a task of the corpus, or None"
            )
            require(0 <= observation.count <= observation.total, "count is at most total")
            require(bool(observation.message), "the message is a sentence")
            require(observation.severity == "info" or bool(observation.remedy), "a warning or error says what to do")
            round_trip(observation)


def check_probe(cls: type[Probe], learner: Learner) -> None:
    """The model is left as it was found; same rng, same numbers; each number has unit, interval and n.

    Args:
        cls: the probe.
        learner: any learner; a tiny one will do (`mixwright.learner.tiny.build_tiny`).
    """
    probe = check_plugin(cls)
    corpus = samples.measurable()
    passes = samples.passes(learner, corpus)
    found = {}
    for attempt in range(2):
        before = _model_state(learner.model)
        with same_randomness():
            found[attempt] = probe.measure(passes, corpus, np.random.default_rng(3))
        require(_model_state(learner.model) == before, "parameters, gradients and train/eval mode are as they were")
    require(found[0] == found[1], "same rng, same numbers")
    require(bool(found[0]), "a learner and a corpus give at least one number")
    for row in found[0]:
        require(isinstance(row, Measurement) and row.n >= 1 and bool(row.unit), "n and unit")
        require(row.low <= row.value <= row.high, f"{row.name}: low <= value <= high")
        require(row.null is None or bool(row.null_of), "a null says what it is")
        round_trip(row)


def check_column(cls: type[Columns], learner: Learner) -> None:
    """Every name that is promised and no other, a value per row, for rows without prompt, target or answer too; same rows,
    same values; passes that were not declared are not read; the model is left as it was found.

    Args:
        cls: the group of columns.
        learner: any learner; a tiny one will do (`mixwright.learner.tiny.build_tiny`).
    """
    group = check_plugin(cls)
    require(bool(cls.NAMES) and all(cls.NAMES.values()), "NAMES says of each column what it is")
    require(set(cls.PASSES) <= set(get_args(Pass)), f"PASSES are of {', '.join(get_args(Pass))}")
    for rows in samples.scanned(learner):
        before, found = _model_state(learner.model), []
        for passes in (samples.scan_passes(learner, rows, cls.PASSES) for _ in range(2)):
            with same_randomness():
                found.append(group.read(rows, passes))
        require(_model_state(learner.model) == before, "parameters, gradients and train/eval mode are as they were")
        require(set(found[0]) == set(cls.NAMES), f"the columns of NAMES: {', '.join(cls.NAMES)}")
        for name, values in found[0].items():
            require(len(values) == len(rows) and values.ndim in (1, 2), f"{name} has a value per row")
            kind = values.dtype.kind
            require(kind in "iuf" or all(isinstance(value, str) for value in values), f"{name} is numbers or texts")
            same = np.array_equal(values, found[1][name], equal_nan=kind == "f")
            require(same, f"{name}: same rows, same values")


def _model_state(model: Any) -> list[Any]:
    state: list[Any] = [model.training]
    for name, parameter in model.named_parameters():
        gradient = None if parameter.grad is None else float(parameter.grad.double().sum())
        state.append((name, float(parameter.detach().double().sum()), parameter.requires_grad, gradient))
    return state


def check_miner(cls: type[Miner], learner: Learner, place: Path) -> None:
    """Training rows alone, none twice, each with a weight and a reason; same rng, same rows; the model is as it was.

    Args:
        cls: the miner.
        learner: any learner; a tiny one will do (`mixwright.learner.tiny.build_tiny`).
        place: an empty folder, for a scan.
    """
    from mixwright.mine.stage import mine

    miner, corpus = check_plugin(cls), samples.minable()
    scan = samples.scan(corpus, place, miner.COLUMNS)
    train = {example.id for example in corpus if example.split == "train"}
    known = {split: {row.id for row in corpus if row.split == split} for split in ("train", "rehearse")}
    found, before = [], _model_state(learner.model)
    for _ in range(2):
        with same_randomness():
            found.append(miner.mine(corpus, scan, learner if miner.MODEL else None, np.random.default_rng(5)))
    require(_model_state(learner.model) == before, "parameters, gradients and train/eval mode are as they were")
    require(found[0] == found[1], "same rng, same rows")
    mined = found[0]
    require(bool(mined.rows) != bool(mined.made), "chosen rows, or new ones")
    ids = [row.id for row in mined.rows]
    require(len(set(ids)) == len(ids) and set(ids) <= train, "training rows, none twice")
    require(all(row.weight > 0 and row.reason for row in (*mined.rows, *mined.harmful)), "a weight and a reason per row")
    for example in mined.made:
        require({"parents", "provenance"} <= set(example.extra), "new rows name their parents and how they were made")
        require(set(example.extra["parents"]) <= known[example.split], "parents are training rows, or rows to rehearse")
    require(bool(mine(miner, cls.__name__, corpus, scan, learner if miner.MODEL else None).counts), "the stage takes it")


def check_planner(cls: type[Planner]) -> None:
    """Pure; weights are shares of known tasks, each with its why; the plan comes back from YAML unchanged."""
    for objective in cls.OBJECTIVES:
        _check_planned(cls, check_plugin(cls), objective)


def _check_planned(cls: type[Planner], planner: Planner, objective: Objective) -> None:
    """The promise of a planner for one of its objectives."""
    cells, competence, training = samples.cells(), samples.competence(), TrainingSetup(10, objective)
    given = copy.deepcopy((cells, competence))
    with same_randomness():
        plan = planner.plan(cells, competence, training)
    require((cells, competence) == given, "what it is given is only read")
    require(cls().plan(cells, competence, training) == plan, "same input, same plan")
    valid_plan(plan, {cell.task for cell in cells})
    require(sum(stage.steps for stage in plan.stages) == 10, "the stages have the steps asked for, together")
    require({stage.objective for stage in plan.stages} == {objective}, "the stages have the objective asked for")
    for place, stage in enumerate(plan.stages):
        for task in stage.weights:
            require(f"stages.{place}.weights.{task}" in plan.why, f"the weight of {task} has its why")
    with contextlib.suppress(InputError):
        valid_plan(cls().plan(cells, [], training), {cell.task for cell in cells})


def check_export(cls: type[Export], place: Path) -> None:
    """Files in the folder that is handed in and nowhere else, twice the same, with settings that YAML or JSON can read.

    Every plan objective is written, or refused in words.

    Args:
        cls: the export.
        place: an empty folder that may be written to.
    """
    import yaml

    export, written = check_plugin(cls), 0
    for number, mix in enumerate(samples.mixes()):
        folder = place / "out" / str(number)
        try:
            with same_randomness():
                said = export.write(mix, folder)
        except InputError:
            continue
        written += 1
        require(bool(said) and all(said), "it says what was written")
        require([path.name for path in place.iterdir()] == ["out"], "nothing is written beside the folder")
        found = samples.contents(folder)
        shutil.rmtree(folder)
        require(cls().write(mix, folder) == said, "the same mix is told the same way")
        require(samples.contents(folder) == found, "the same mix gives the same files")
        settings = [path for path in folder.rglob("*") if path.suffix in (".yaml", ".json")]
        require(bool(settings), "there are settings in YAML or JSON")
        for path in settings:
            text = path.read_text(encoding="utf-8")
            require(isinstance(yaml.safe_load(text), dict), f"{path.name} can be read")
        notes = "".join(path.read_text(encoding="utf-8") for path in settings if path.suffix == ".yaml")
        lines = " ".join(line.removeprefix("#").strip() for line in notes.splitlines() if line.startswith("#"))
        require(all(note in lines for note in mix.notes), "the notes of the mix stand at the top of the settings")
    require(written > 0, "some objective can be written")


def check_arm(cls: type[Arm]) -> None:
    """Pure; a plan over the same tasks and steps; only nulls tamper with rewards, levels or draws, only references rest."""
    from mixwright.catalog import create

    arm = check_plugin(cls)
    plan = create("planners", "difficulty").plan(samples.cells(), samples.competence(), TrainingSetup(10))
    given = copy.deepcopy(plan)
    with same_randomness():
        branch = arm.branch(plan, samples.cells())
    require(plan == given, "the plan is only read")
    require(cls().branch(plan, samples.cells()) == branch, "same plan, same branch")
    valid_plan(branch.plan, {cell.task for cell in samples.cells()})
    for made, asked in zip(branch.plan.stages, plan.stages, strict=True):
        to_sft = made.objective == "sft" and asked.objective != "sft"
        steps = asked.steps * (2 if to_sft else 1)  # a step of DPO reads two answers of a row, one of SFT reads one
        require(made.steps == steps, "every arm trains the same number of steps, and SFT in the place of DPO twice as many")
    require(cls.ROLE in get_args(Role), f"ROLE is one of {', '.join(get_args(Role))}")
    tampers = branch.permute_rewards or branch.shuffle_levels or branch.replays
    require(not tampers or cls.ROLE == "null", "permuted rewards, shuffled levels or replayed draws make an arm a null")
    require(branch.trains == (cls.ROLE != "untrained"), "the arm that does not train is the untrained one, and no other")


def check_section(cls: type[Section], place: Path) -> None:
    """Blocks as data from a run with and without results; the run folder is only read.

    Args:
        cls: the section.
        place: an empty folder that may be written to.
    """
    section = check_plugin(cls)
    for name, full in (("empty", False), ("full", True)):
        run = samples.run_folder(place / name, full=full)
        before = samples.contents(run.path)
        with same_randomness():
            blocks = section.blocks(run)
        require(isinstance(blocks, list), "a list of blocks")
        require(samples.contents(run.path) == before, "the run folder is only read")
        require(repr(cls().blocks(run)) == repr(blocks), "the same run gives the same blocks")


def check_world(cls: type[World]) -> None:
    """Random access: same arguments, same example; an answer for each; splits never share a prompt."""
    world = check_plugin(cls)
    prompts: dict[str, set[str]] = {}
    with same_randomness():
        for split in ("train", "eval"):
            made = [world.make(index, level, split) for level in (1.0, 2.0) for index in range(20)]
            require(world.make(3, 1.0, split) == made[3], "same arguments, same example, in any order")
            require(all(example.answer and example.split == split for example in made), "an answer and its split")
            prompts[split] = {str(example.prompt) for example in made}
    require(not prompts["train"] & prompts["eval"], "splits never share a prompt")


def check_finding(cls: type[Finding]) -> None:
    """Claim, source, expectations over arms that exist, a noise arm, settings of both scales; the run is not made here."""
    finding = check_plugin(cls)
    for name in ("CLAIM", "SOURCE", "SHOWS", "POPULAR"):
        require(bool(getattr(cls, name)), f"{name} is a text")
    for feature in cls.FEATURES:
        kind, _, name = feature.partition("/")
        require(kind in catalog.KINDS and name in catalog.listing(kind), f"a plug-in that exists: FEATURES, {feature}")
    require(bool(cls.EXPECT), "EXPECT has at least one contrast")
    require(len({expected.name for expected in cls.EXPECT}) == len(cls.EXPECT), "contrasts have names of their own")
    require(
        all(0 < expected.least < math.inf and expected.refuted for expected in cls.EXPECT),
        "a least size above 0, and what would refute it",
    )
    weights = [[abs(term.weight) for term in expected.terms] for expected in cls.EXPECT]
    require(all(0 < sum(each) < math.inf for each in weights), "contrasts have terms with finite weights")
    named = {"smoke", "laptop"}
    require(named <= set(cls.SCALES) and named <= set(cls.SEEDS), "SCALES and SEEDS have smoke and laptop")
    require(cls.SEEDS["smoke"] >= 1 and cls.SEEDS["laptop"] >= 5, "smoke has a seed; laptop has 5 seeds or more")
    require(len(set(cls.NOISE)) == len(cls.NOISE), "NOISE names each arm once")
    for settings in cls.SCALES.values():
        arms = finding.arms(settings)
        require(
            len(set(arms)) == len(arms) and all(arms) and set(cls.NOISE) <= set(arms),
            "arms have names of their own, and NOISE names some",
        )
        require(bool(cls.NOISE), "NOISE names an arm that is run twice")
        used = {term.arm for expected in cls.EXPECT for term in expected.terms}
        used |= {arm for plot in cls.PLOTS for curve in plot.curves for _, arm, _ in curve.places}
        require(used <= set(arms), "EXPECT and PLOTS name arms that exist")
    known = {expected.name for expected in cls.EXPECT}
    for feature, contrasts in cls.FEATURES.items():
        require({each.removeprefix("-") for each in contrasts} <= known, f"contrasts of EXPECT: FEATURES, {feature}")

"""Promises of plug-ins: those of every kind, of graders, checks, miners and arms, and of selectors and all that steers."""

from __future__ import annotations

import contextlib
import copy
import inspect
import json
import math
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import plugin_samples as samples

from mixwright.contracts import Role
from mixwright.records import Example, Observation, Plan, TrainingSetup, from_data, to_data

if TYPE_CHECKING:
    from mixwright.contracts import Arm, Check, Grader, Miner, Scene, Selector
    from mixwright.learner.learner import Learner

DOCSTRING_LINES = ("Source:", "Unit:", "Cost:", "Blind spot:")
HOSTILE_TEXTS = (
    "",
    " ",
    "-",
    "\x00\x1b[31m",
    "(" * 5000,
    "9" * 5000,
    "a+" * 2000 + "!",
    "\\boxed{" * 500,
    "\u202e\U0001f600",
    "__import__('os')",
)


def require(is_kept: bool, promise: str) -> None:
    """Raise AssertionError with `promise` unless it was kept; works under `python -O` too."""
    if not is_kept:
        raise AssertionError(promise)


def docstring_lines(cls: type[Any]) -> list[str]:
    """Lines of the docstring that says Source, Unit, Cost and Blind spot: the plug-in's own, else that of its module."""
    own_lines = ((cls.__doc__ and inspect.getdoc(cls)) or "").splitlines()
    has_sources = any(line.startswith(DOCSTRING_LINES[0]) for line in own_lines)
    return own_lines if has_sources else (inspect.getdoc(sys.modules[cls.__module__]) or "").splitlines()


def check_plugin(cls: type[Any]) -> Any:
    """What every kind promises: a documented module, options that are keywords with defaults. Returns an instance."""
    class_name = f"{cls.__module__}.{cls.__name__}"
    lines = docstring_lines(cls)
    require(bool(lines and lines[0]), f"{class_name}: the docstring of the class or its module starts with a summary")
    for start in DOCSTRING_LINES:
        require(
            any(line.startswith(start) and line != start for line in lines),
            f"{class_name}: the docstring of the class or its module has '{start} ...'",
        )
    require(bool(cls.__doc__), f"{class_name}: the class has a docstring")
    require(not inspect.isabstract(cls), f"{class_name}: every abstract method is written")
    for option in inspect.signature(cls).parameters.values():
        is_keyword = option.kind in (option.KEYWORD_ONLY, option.POSITIONAL_OR_KEYWORD)
        require(
            is_keyword and option.default is not option.empty,
            f"{class_name}: option {option.name} is a keyword with a default",
        )
    return cls()


@contextlib.contextmanager
def same_randomness() -> Iterator[None]:
    """The global random states of Python, numpy and torch (if loaded) are the same after the block."""
    torch = sys.modules.get("torch")

    def states() -> str:
        return repr((random.getstate(), np.random.get_state(), torch.get_rng_state().tolist() if torch else None))

    with np.printoptions(threshold=sys.maxsize):
        states_before = states()
        yield
        require(states() == states_before, "only the rng handed in is drawn from; global random states stay as they were")


def require_valid_plan(plan: Plan, tasks: set[str]) -> None:
    """Weights are shares of `tasks` that sum to 1; the plan comes back from YAML unchanged."""
    import yaml

    require(bool(plan.stages), "a plan has a stage")
    for stage in plan.stages:
        require(set(stage.weights) <= tasks, "weights are about known tasks")
        require(all(weight >= 0 for weight in stage.weights.values()), "weights are not negative")
        require(math.isclose(sum(stage.weights.values()), 1, abs_tol=1e-3), "weights sum to 1")
    require(
        from_data(Plan, yaml.safe_load(yaml.safe_dump(to_data(plan)))) == plan, "the plan comes back from YAML unchanged"
    )


def require_round_trip(record: Any) -> None:
    """The record comes back from JSON unchanged."""
    data = json.loads(json.dumps(to_data(record), allow_nan=False))
    require(to_data(from_data(type(record), data)) == data, f"{type(record).__name__} comes back from JSON unchanged")


def model_state(model: Any) -> list[Any]:
    """Of a model what a plug-in must leave as it was: train mode, sums of parameters and of gradients."""
    state: list[Any] = [model.training]
    for name, parameter in model.named_parameters():
        gradient = None if parameter.grad is None else float(parameter.grad.double().sum())
        state.append((name, float(parameter.detach().double().sum()), parameter.requires_grad, gradient))
    return state


def check_grader(cls: type[Grader], examples: Sequence[Example] | None = None) -> None:
    """Gold earns 1, everything else 0, containing the answer earns nothing, no text makes it raise, luck is a share.

    A grader whose `Unit:` line says "partial credit" may pay less than 1 for what is wrong.

    Args:
        cls: the grader.
        examples: examples it can grade; default: answers that are numbers, words and choices.
    """
    grader = check_plugin(cls)
    examples = list(examples or samples.gradable_examples())
    unit = next(line for line in docstring_lines(cls) if line.startswith("Unit:"))
    is_strict = "partial credit" not in unit
    grader.grade(examples[0], "")  # libraries that it imports on first use may touch the random state; its grading may not
    with same_randomness():
        for example in examples:
            gold = example.answer or ""
            require(grader.grade(example, gold) == 1.0, f"the gold answer {gold!r} earns 1.0")
            require(
                not is_strict or grader.grade(example, f" {gold}\n") == 1.0, "blanks around the gold answer do not matter"
            )
            for wrong_answer in samples.wrong(gold):
                score = grader.grade(example, wrong_answer)
                require(
                    score == 0.0 or (not is_strict and score < 1.0),
                    f"{wrong_answer!r} earns nothing where {gold!r} is right",
                )
            for text in HOSTILE_TEXTS:
                require(0.0 <= grader.grade(example, text) <= 1.0, f"{text[:20]!r} is graded within 0..1")
        luck = grader.luck(examples)
        require(luck is None or 0.0 <= luck <= 1.0, "luck is None or a share")


def check_check(cls: type[Check]) -> None:
    """Pure, JSON-ready observations whose counts add up; odd corpora (empty, no answers) are no error."""
    check_name = cls.__module__.rpartition(".")[2]
    for corpus in samples.corpora():
        digest_before = corpus.digest()
        with same_randomness():
            observations = check_plugin(cls).check(corpus)
        require(observations == cls().check(corpus), "the same corpus gives the same observations")
        require(corpus.digest() == digest_before, "the corpus is only read")
        for observation in observations:
            require(isinstance(observation, Observation), "a list of Observation")
            require(observation.check == check_name, f"the observation names its check, {check_name}")
            require(
                observation.task is None or observation.task in corpus.tasks, "it is about a task of the corpus, or None"
            )
            require(0 <= observation.count <= observation.total, "count is at most total")
            require(bool(observation.message), "the message is a sentence")
            require(observation.severity == "info" or bool(observation.remedy), "a warning or error says what to do")
            require_round_trip(observation)


def check_miner(cls: type[Miner], learner: Learner) -> None:
    """Training rows alone, none twice, each with a reason; same rng, same rows; the model is as it was.

    Args:
        cls: the miner.
        learner: any learner; a tiny one will do (`mixwright_extras.tiny.model.build_tiny`).
    """
    from mixwright.mine.stage import mine

    miner, corpus = check_plugin(cls), samples.minable()
    lent = learner if miner.NEEDS_MODEL else None
    rows = samples.rows_to_choose(corpus, miner.COLUMNS)
    train_ids = {example.id for example in corpus if example.split == "train"}
    ids_by_split = {split: {row.id for row in corpus if row.split == split} for split in ("train", "rehearse")}
    results, state_before = [], model_state(learner.model)
    for _ in range(2):
        with same_randomness():
            results.append(miner.mine(corpus, rows, lent, np.random.default_rng(5)))
    require(model_state(learner.model) == state_before, "parameters, gradients and train/eval mode are as they were")
    require(results[0] == results[1], "same rng, same rows")
    result = results[0]
    require(bool(result.rows) != bool(result.new_rows), "chosen rows, or new ones")
    row_ids = [row.id for row in result.rows]
    require(len(set(row_ids)) == len(row_ids) and set(row_ids) <= train_ids, "training rows, none twice")
    require(all(row.reason for row in result.rows), "a reason per row")
    for example in result.new_rows:
        require({"parents", "provenance"} <= set(example.extra), "new rows name their parents and how they were made")
        require(
            set(example.extra["parents"]) <= ids_by_split[example.split], "parents are training rows, or rows to rehearse"
        )
    require(bool(mine(miner, cls.__name__, corpus, rows, lent)[1].tasks), "the stage takes it")


def check_arm(cls: type[Arm]) -> None:
    """Pure; a plan over the same tasks and steps; only nulls permute; only references may train nothing."""
    from mixwright.catalog import create

    arm = check_plugin(cls)
    plan = create("planners", "difficulty").plan(samples.cells(), samples.competence(), TrainingSetup(10))
    plan_before = copy.deepcopy(plan)
    with same_randomness():
        branch = arm.branch(plan, samples.cells())
    require(plan == plan_before, "the plan is only read")
    require(cls().branch(plan, samples.cells()) == branch, "same plan, same branch")
    require_valid_plan(branch.plan, {cell.task for cell in samples.cells()})
    for trained_stage, planned_stage in zip(branch.plan.stages, plan.stages, strict=True):
        becomes_sft = trained_stage.objective == "sft" and planned_stage.objective != "sft"
        steps = planned_stage.steps * (2 if becomes_sft else 1)  # a step of DPO reads two answers of a row, one of SFT one
        require(trained_stage.steps == steps, "every arm trains the same number of steps, SFT in the place of DPO twice")
    require(cls.ROLE in get_args(Role), f"ROLE is one of {', '.join(get_args(Role))}")
    require(not branch.permuted or cls.ROLE == "null", "an arm that permutes anything is a null")
    require(branch.trains or cls.ROLE == "reference", "an arm that does not train is a reference")


def check_selector(cls: type[Selector]) -> None:
    """Picks items of the task asked for, by the rng alone; state round-trips."""

    def read_output(selector: Selector, step: int) -> Any:
        pool, rng = samples.pool(), np.random.default_rng(step)
        tasks = np.tile(np.arange(len(pool.tasks)), 5)
        picked_items = selector.pick(tasks, rng)
        require(picked_items.shape == tasks.shape, "one item per draw")
        require(bool((pool.task_of[picked_items] == tasks).all()), "an item of the task that was asked for")
        return picked_items.tolist()

    check_steerer(cls, read_output)


def check_steerer(cls: type[Any], read_output: Callable[[Any, int], Any]) -> None:
    """Run a made-up tape; half-way, save, restore into a fresh object, and compare everything after."""
    original, scene = check_plugin(cls), samples.scene()
    with same_randomness():
        original.begin(scene)
        _play(original, scene, read_output, range(6))
        saved_state = json.loads(json.dumps(original.state(), allow_nan=False))
        resumed = cls()
        resumed.begin(scene)
        resumed.restore(saved_state)
        require(json.loads(json.dumps(resumed.state())) == saved_state, "restore(state()) gives the same state")
        for step in range(6, 12):
            original_outputs = _play(original, scene, read_output, [step])
            resumed_outputs = _play(resumed, scene, read_output, [step], feed_ledger=False)
            require(
                original_outputs == resumed_outputs,
                f"a resumed {cls.__name__} continues exactly as the original (step {step})",
            )


def _play(
    plugin: Any, scene: Scene, read_output: Callable[[Any, int], Any], steps: Iterable[int], *, feed_ledger: bool = True
) -> list[Any]:
    outputs = []
    for step in steps:
        if feed_ledger:
            samples.feed(scene, step)
        ledger_before = scene.ledger.state()
        for outcomes in (samples.groups(step), samples.losses(step), samples.pairs(step)):
            plugin.observe(step, outcomes)
        outputs.append(read_output(plugin, step))
        require(scene.ledger.state() == ledger_before, "the ledger is only read")
    return outputs

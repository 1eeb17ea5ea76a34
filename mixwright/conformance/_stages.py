"""Promises of graders, checks, miners and arms."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

import numpy as np

from mixwright.conformance import samples
from mixwright.conformance.promises import (
    check_plugin,
    docstring_lines,
    model_state,
    require,
    require_round_trip,
    require_valid_plan,
    same_randomness,
)
from mixwright.contracts import Role
from mixwright.records import Example, Observation, TrainingSetup

if TYPE_CHECKING:
    from mixwright.contracts import Arm, Check, Grader, Miner
    from mixwright.learner.learner import Learner

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
    """Training rows alone, none twice, each with a weight and a reason; same rng, same rows; the model is as it was.

    Args:
        cls: the miner.
        learner: any learner; a tiny one will do (`mixwright.learner.tiny.build_tiny`).
    """
    from mixwright.mine.stage import mine

    miner, corpus = check_plugin(cls), samples.minable()
    rows = samples.rows_to_choose(corpus, miner.COLUMNS)
    train_ids = {example.id for example in corpus if example.split == "train"}
    ids_by_split = {split: {row.id for row in corpus if row.split == split} for split in ("train", "rehearse")}
    results, state_before = [], model_state(learner.model)
    for _ in range(2):
        with same_randomness():
            results.append(miner.mine(corpus, rows, learner if miner.NEEDS_MODEL else None, np.random.default_rng(5)))
    require(model_state(learner.model) == state_before, "parameters, gradients and train/eval mode are as they were")
    require(results[0] == results[1], "same rng, same rows")
    result = results[0]
    require(bool(result.rows) != bool(result.new_rows), "chosen rows, or new ones")
    row_ids = [row.id for row in result.rows]
    require(len(set(row_ids)) == len(row_ids) and set(row_ids) <= train_ids, "training rows, none twice")
    require(all(row.weight > 0 and row.reason for row in (*result.rows, *result.harmful)), "a weight and a reason per row")
    for example in result.new_rows:
        require({"parents", "provenance"} <= set(example.extra), "new rows name their parents and how they were made")
        require(
            set(example.extra["parents"]) <= ids_by_split[example.split], "parents are training rows, or rows to rehearse"
        )
    require(
        bool(mine(miner, cls.__name__, corpus, rows, learner if miner.NEEDS_MODEL else None).counts), "the stage takes it"
    )


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
        step_factor = 2 if becomes_sft else 1  # a step of DPO reads two answers of a row, one of SFT reads one
        expected_steps = planned_stage.steps * step_factor
        has_same_steps = trained_stage.steps == expected_steps
        require(has_same_steps, "every arm trains the same number of steps, and SFT in the place of DPO twice as many")
    require(cls.ROLE in get_args(Role), f"ROLE is one of {', '.join(get_args(Role))}")
    require(not branch.permuted or cls.ROLE == "null", "an arm that permutes anything is a null")
    require(branch.trains or cls.ROLE == "reference", "an arm that does not train is a reference")

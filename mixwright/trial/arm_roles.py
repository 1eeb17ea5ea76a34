"""Roles of a trial's arms: references, levers, and the nulls that run for a lever that helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright import catalog
from mixwright.config import RunConfig, TrialConfig
from mixwright.errors import InputError
from mixwright.trial.data_rows import data_path, table_beside

if TYPE_CHECKING:
    from mixwright.contracts import Branch, Role
    from mixwright.corpus import Corpus
    from mixwright.records import Plan
    from mixwright.run.folder import RunFolder

UNTRAINED_ARM, PLAN_ARM = "frozen", "steered"
"""The starting model, a reference of every trial, and the plan as it stands, whose nulls keep their own names."""
MINED_ARM, RANDOM_ARM = "mined", "random_like"
"""Arms of every trial over data, next to `all`."""
JOINT_ARM, PERMUTED_ORDER_ARM = "joint", "permuted_order"
"""Reference and null that every plan of several stages has."""
SIMPLE_RULE_ARM = "simple_rule"
"""Joins a trial over data where the miner left the rows of a simple rule next to its own."""
PERMUTED_REWARDS_ARM, PERMUTED_WEIGHTS_ARM = "permuted", "permuted_weights"
"""Nulls that take away what a lever reads: which completion earned what; which task got which weight."""


@dataclass(frozen=True, slots=True)
class Arms:
    """The arms that the settings ask for, by declared role."""

    references: tuple[str, ...]
    """Simple rules that a lever must beat, `frozen` first."""
    levers: tuple[str, ...]
    """Arms that are judged."""
    nulls: tuple[str, ...]
    """Arms that run only for a lever that beats every reference."""

    @property
    def always_run(self) -> tuple[str, ...]:
        """References and levers, which run whatever comes out."""
        return (*self.references, *self.levers)


def choose_arms(config: RunConfig, run: RunFolder | None = None, relative_to: Path = Path()) -> Arms:
    """Return the arms by role.

    Args:
        config: of the run.
        run: folder in which a miner may have left a simple rule next to the table that `trial.data` names; None takes none.
        relative_to: folder that relative paths in the settings start from.

    Raises:
        InputError: as `assign_roles`, and for a table that is not there.
    """
    table_name = config.trial.data
    has_simple_rule = (
        table_name is not None
        and run is not None
        and table_beside(data_path(table_name, run, relative_to), SIMPLE_RULE_ARM).is_file()
    )
    return assign_roles(config.trial, has_simple_rule=has_simple_rule)


def assign_roles(config: TrialConfig, *, has_simple_rule: bool = False) -> Arms:
    """Return the arms by role; the untrained one is always one.

    Args:
        config: of the trial.
        has_simple_rule: whether there is a simple rule next to the mined rows.

    Raises:
        InputError: an arm is unknown, or one under nulls is none.
    """
    arms, nulls = config.arms, config.nulls
    if config.data is not None:
        rule_arms = (SIMPLE_RULE_ARM,) if has_simple_rule else ()
        arms, nulls = ("all", RANDOM_ARM, *rule_arms, MINED_ARM, *filter(is_data_arm, config.arms)), ()
    arms_by_role: dict[Role, list[str]] = {"reference": [UNTRAINED_ARM], "lever": [], "null": []}
    for arm in arms:
        if config.data is None and is_data_arm(arm):
            raise InputError(f"trial.data for the arm {arm}", "none", "Name a table of mined rows, or remove the arm.")
        arms_by_role[catalog.load("arms", arm).ROLE].append(arm)
    for null in nulls:
        if (role := catalog.load("arms", null).ROLE) != "null":
            raise InputError("nulls under trial.nulls", f"{null!r}, a {role}", "List it under trial.arms.")
        arms_by_role["null"].append(null)
    return Arms(*(tuple(dict.fromkeys(arms_by_role[role])) for role in ("reference", "lever", "null")))


def with_order_arms(arms: Arms, plan: Plan) -> Arms:
    """Add what a plan of several stages has to be compared with: all tasks together, and other orders."""
    if len(plan.stages) < 2 or MINED_ARM in arms.levers:
        return arms
    references, nulls = (*arms.references, JOINT_ARM), (*arms.nulls, PERMUTED_ORDER_ARM)
    return replace(arms, references=tuple(dict.fromkeys(references)), nulls=tuple(dict.fromkeys(nulls)))


def is_data_arm(arm: str) -> bool:
    """Return whether an arm is one of a trial over data. Raises InputError for an unknown one."""
    return catalog.load("arms", arm).OF_DATA


def nulls_for_objective(nulls: Sequence[str], objective: str) -> tuple[str, ...]:
    """Return the nulls that fit the objective: without rewards to permute, task weights are permuted."""
    if objective == "grpo":
        return tuple(nulls)
    return tuple(dict.fromkeys(PERMUTED_WEIGHTS_ARM if null == PERMUTED_REWARDS_ARM else null for null in nulls))


def make_branch(arm: str, plan: Plan, corpus: Corpus) -> Branch:
    """Return how this arm trains, given the plan. Raises InputError for an unknown arm."""
    return catalog.create("arms", arm).branch(plan, corpus.cells())


def null_name(null: str, lever: str) -> str:
    """Name a null's branches: by its own name for the plan's own lever, with the lever's name for any other."""
    return null if lever == PLAN_ARM else f"{null}.{lever}"


def why_left_out(null: str, plan: Plan, corpus: Corpus) -> str:
    """Return why a null cannot run here; empty when it can.

    Args:
        null: name of the arm.
        plan: under trial.
        corpus: with levels, or without.
    """
    permuted, cells = make_branch(null, plan, corpus).permuted, corpus.cells()
    reasons = {
        "the plan has one stage": permuted == "order" and len(plan.stages) == 1,
        "the plan has several stages": permuted == "levels" and len(plan.stages) > 1,
        "there are no rewards to permute": permuted == "rewards" and all(stage.objective != "grpo" for stage in plan.stages),
        "all tasks have the same weight": permuted == "weights"
        and all(len(set(stage.weights.values())) < 2 for stage in plan.stages),
        "no task has two levels": permuted == "levels" and len(cells) == len({cell.task for cell in cells}),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")

"""Roles of a trial's arms: references, levers, ablations of the plan, and the nulls that run for a lever that helps."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mixwright import catalog
from mixwright.config import RunConfig, TrialConfig
from mixwright.corpus.trainable import has_pairs
from mixwright.errors import InputError
from mixwright.trial.data_rows import data_path, rule_path

if TYPE_CHECKING:
    from mixwright.contracts import Branch, Role
    from mixwright.corpus import Corpus
    from mixwright.records import Measurement, Plan
    from mixwright.run.folder import RunFolder

Replanner = Callable[["Corpus", Sequence[Sequence["Measurement"]]], "Plan"]
"""The plan that the run's planner makes of a corpus and of the measurements of each starting model on it."""


ROLE_TRIED_AS: dict[Role, str] = {"untrained": "reference", "plan": "lever"}
"""What the two arms that have a role of their own are tried as."""


MINED_ARM, RANDOM_ARM = "mined", "random_like"
"""Arms of every trial over data, beside `all`."""
JOINT_ARM, PERMUTED_ORDER_ARM = "joint", "permuted_order"
"""Reference and null that every plan of several stages has."""
SIMPLE_RULE_ARM = "simple_rule"
"""In a trial over data, joins `all`, `MINED_ARM` and `RANDOM_ARM` where the miner left the rows of a simple rule beside its
own."""
RIGHT_ANSWERS_ARM = "right_answers"
"""SFT on the chosen answers of mined pairs; stands in for `all` where DPO trains and the corpus has no pairs of its own."""
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
    ablations: tuple[str, ...] = ()
    """Arms that are the plan with one part left out."""

    @property
    def always_run(self) -> tuple[str, ...]:
        """What runs whatever comes out: references, levers, ablations."""
        return (*self.references, *self.levers, *self.ablations)


def choose_arms(config: RunConfig, corpus: Corpus, run: RunFolder | None = None, relative_to: Path = Path()) -> Arms:
    """The arms by role for this corpus.

    Args:
        config: of the run.
        corpus: of the run.
        run: tells whether a miner left a simple rule beside the table that `trial.data` names; None takes none.
        relative_to: folder that relative paths in the settings start from.

    Raises:
        InputError: as `assign_roles`, and for a table that is not there.
    """
    table_name = config.trial.data
    has_simple_rule = (
        table_name is not None and run is not None and rule_path(data_path(table_name, run, relative_to)) is not None
    )
    return assign_roles(
        config.trial, pairs=config.train.objective != "dpo" or has_pairs(corpus), has_simple_rule=has_simple_rule
    )


def assign_roles(config: TrialConfig, *, pairs: bool = True, has_simple_rule: bool = False) -> Arms:
    """The arms by role; the untrained one is always one.

    Args:
        config: of the trial.
        pairs: False where DPO trains and the corpus has no pairs, so that no arm can train on all of its rows.
        has_simple_rule: whether there is a simple rule beside the mined rows.

    Raises:
        InputError: an arm is unknown, one under nulls is none, or an ablation has no plan to be compared with.
    """
    arms_by_role: dict[str, list[str]] = {"reference": [builtin_arm("untrained")], "lever": [], "null": [], "ablation": []}
    data_arms = (
        "all" if pairs else RIGHT_ANSWERS_ARM,
        RANDOM_ARM,
        *[SIMPLE_RULE_ARM] * has_simple_rule,
        MINED_ARM,
        *filter(is_data_arm, config.arms),
    )
    for arm in dict.fromkeys(config.arms if config.data is None else data_arms):
        role = role_of(arm)
        if config.data is None and is_data_arm(arm):
            raise InputError(f"trial.data for the arm {arm}", "none", "Name a table of mined rows, or remove the arm.")
        if arm != builtin_arm("untrained"):
            arms_by_role[ROLE_TRIED_AS.get(role, role)].append(arm)
    for null in dict.fromkeys(config.nulls if config.data is None else ()):
        if (role := role_of(null)) != "null":
            raise InputError(
                "nulls under trial.nulls", f"{null!r}, a {ROLE_TRIED_AS.get(role, role)}", "List it under trial.arms."
            )
        if null not in arms_by_role["null"]:
            arms_by_role["null"].append(null)
    if arms_by_role["ablation"] and (plan := builtin_arm("plan")) not in arms_by_role["lever"]:
        remedy = f"Add {plan!r} to trial.arms, or remove {arms_by_role['ablation'][0]!r}."
        raise InputError(
            f"{plan!r} , because other arms are compared with it", f"{arms_by_role['ablation'][0]!r} alone", remedy
        )
    return Arms(*(tuple(arms_by_role[role]) for role in ("reference", "lever", "null", "ablation")))


def with_order_arms(arms: Arms, plan: Plan) -> Arms:
    """The arms, with those that a plan of several stages has to be compared with: all tasks together, and other orders."""
    if len(plan.stages) < 2 or MINED_ARM in arms.levers:
        return arms
    references, nulls = (
        dict.fromkeys((*names, added)) for names, added in ((arms.references, JOINT_ARM), (arms.nulls, PERMUTED_ORDER_ARM))
    )
    return replace(arms, references=tuple(references), nulls=tuple(nulls))


def is_data_arm(arm: str) -> bool:
    """Whether an arm is one of a trial over data. Raises InputError for an unknown one."""
    return getattr(catalog.load("arms", arm), "OF_DATA", False)


def role_of(arm: str) -> Role:
    """What an arm is tried as. Raises InputError for an unknown one."""
    return catalog.load("arms", arm).ROLE


@functools.cache
def builtin_arm(role: Literal["untrained", "plan"]) -> str:
    """Our one arm of that role: the untrained one, or the plan as it stands, whose nulls keep their own names."""
    package = catalog.KIND_BY_NAME["arms"].package
    builtin_names = (entry.name for entry in catalog.listing("arms").values() if entry.module.startswith(package))
    (arm,) = (name for name in builtin_names if role_of(name) == role)
    return arm


@functools.cache
def required_references() -> tuple[str, ...]:
    """The references without which no lever is said to help: not training, and those that a trial has by default."""
    return assign_roles(TrialConfig()).references


def nulls_for_objective(nulls: Sequence[str], objective: str) -> tuple[str, ...]:
    """The nulls that fit the objective: without rewards to permute, task weights are permuted."""
    if objective == "grpo":
        return tuple(nulls)
    return tuple(dict.fromkeys(PERMUTED_WEIGHTS_ARM if null == PERMUTED_REWARDS_ARM else null for null in nulls))


def idle_ablations(arms: Arms, plan: Plan, corpus: Corpus) -> tuple[str, ...]:
    """Ablations that would train the plan as it is, because it does not have what they leave out."""
    return tuple(arm for arm in arms.ablations if make_branch(arm, plan, corpus).plan.stages == plan.stages)


def make_branch(arm: str, plan: Plan, corpus: Corpus) -> Branch:
    """How this arm trains, given the plan. Raises InputError for an unknown arm."""
    return catalog.create("arms", arm).branch(plan, corpus.cells())


def null_name(null: str, lever: str) -> str:
    """Name of a null's branches: its own for the plan's own lever, with the lever's name for any other."""
    return null if lever == builtin_arm("plan") else f"{null}.{lever}"


def why_left_out(null: str, plan: Plan, corpus: Corpus, seeds: int, bases: int, *, replans: bool) -> str:
    """Why a null cannot run here; empty when it can.

    Args:
        null: name of the arm.
        plan: under trial.
        corpus: with levels, or without.
        seeds: of the trial.
        bases: starting models.
        replans: whether somebody can plan anew.
    """
    branch, staged = make_branch(null, plan, corpus), len(plan.stages) > 1
    if branch.permute_order and not staged:
        return "the plan has one stage"
    if staged and branch.shuffle_levels:
        return "the plan has several stages"
    if branch.permute_rewards and all(stage.objective != "grpo" for stage in plan.stages):
        return "there are no rewards to permute"
    if branch.permute_weights and all(len(set(stage.weights.values())) < 2 for stage in plan.stages):
        return "all tasks have the same weight"
    if branch.shuffle_levels and not _has_levels(corpus):
        return "no task has two levels"
    if branch.shuffle_levels and not replans:
        return "it needs a planner, but the plan was given"
    return ""


def _has_levels(corpus: Corpus) -> bool:
    cells = corpus.cells()
    return len(cells) > len({cell.task for cell in cells})

"""Contracts of the plug-ins: one abstract class per kind, each with few methods.

A plug-in is one final class in one file; its `__init__` takes only keyword options with defaults and stores them.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from mixwright.graders import Grader as Grader
from mixwright.records import (
    Action,
    Alarm,
    Cell,
    GroupOutcome,
    Measurement,
    MiningResult,
    Objective,
    Observation,
    PairOutcome,
    Plan,
    SFTOutcome,
    Signals,
    TrainingSetup,
    Verdict,
)

if TYPE_CHECKING:
    import numpy as np

    from mixwright.corpus import Corpus
    from mixwright.learner.learner import Learner
    from mixwright.measure.passes import Passes
    from mixwright.mine.choosing import TrainRows
    from mixwright.plan.mix import Mix
    from mixwright.run.checked import CheckedRun
    from mixwright.run.folder import RunFolder
    from mixwright.run.workers import Workers
    from mixwright.steer.pool import Pool as Pool
    from mixwright.steer.scene import Scene as Scene
    from mixwright.verdict.page.blocks import Block


def __getattr__(name: str) -> Any:
    """`Pool` and `Scene` of mixwright.steer, which plug-ins that steer are handed; imported when they are asked for."""
    if name not in ("Pool", "Scene"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"mixwright.steer.{name.lower()}"), name)


class Check(ABC):
    """Looks at the data; no model, no torch. Streams: a million rows in bounded memory."""

    whole: bool = False
    """Whether every row is read and listed, as for files; else slow checks read samples, and few rows are listed."""

    @abstractmethod
    def check(self, corpus: Corpus) -> list[Observation]:
        """What the corpus shows; an empty list when there is nothing to say. Reads `corpus.batches()`."""


class Probe(ABC):
    """Measures the model. Leaves parameters, gradients, train/eval mode and RNG state as it found them.

    Expensive passes (rollouts, log-probabilities) are read from `passes`, which makes each once for all probes.
    """

    ONCE: ClassVar[bool] = False
    """Whether it is made before a run only, and not after each branch of a trial, where nothing would read it."""
    TRAINS: ClassVar[bool] = False
    """Whether it trains copies of the model, so that its cost does not follow the items: a dry run leaves it out."""

    @abstractmethod
    def measure(self, passes: Passes, corpus: Corpus, rng: np.random.Generator) -> list[Measurement]:
        """Measurements with unit, interval, n and null. Same rng, same numbers."""

    def check_rows(self, corpus: Corpus) -> None:  # noqa: B027 - most probes take any rows
        """Raise InputError if these rows cannot be measured; called before the model answers. By default all can."""

    def remark(self, measurements: Sequence[Measurement]) -> list[Observation]:
        """Return notes on its measurements for their reader; none by default."""
        return []


class Miner(ABC):
    """Chooses training rows, or makes new ones. Held-out rows are never read; same rng, same rows.

    What it finds is tried against as many random rows of the same tasks (`trial.data`) before anybody is told to use it.
    """

    COLUMNS: tuple[str, ...] = ()
    """Values of each row that are read (`rows.columns`); what has some overrides `prepare` and `read_rows`."""
    NEEDS_MODEL: bool = False
    """Whether the model is read or a copy of it trained; else `learner` is None."""

    def count_needed_rows(self) -> int:
        """Training rows below which it refuses a corpus, so that nothing is made for it; 0 for any number."""
        return 0

    def prepare(self, run: CheckedRun, workers: Workers, base: str, say: Callable[[str], None]) -> None:  # noqa: B027
        """Make the columns that are not there yet, with running workers and the starting model; nothing by default."""

    def read_rows(self, corpus: Corpus, folder: RunFolder, base: str) -> TrainRows:
        """Return the rows that may be chosen, with their columns, as `prepare` left them in the run folder."""
        from mixwright.mine.choosing import train_rows

        return train_rows(corpus, base)

    @abstractmethod
    def mine(self, corpus: Corpus, rows: TrainRows, learner: Learner | None, rng: np.random.Generator) -> MiningResult:
        """Rows with a reason each, or new rows with their parents. The learner is left as it was."""


class Adapter(ABC):
    """Chooses which parameters of a model a trainer trains, in what form they are kept, and how they become plain weights.

    The model is changed in place, global random states are not; each method returns the model to go on with. Options are
    kept under their own names, so that they can be written beside the weights.
    """

    @abstractmethod
    def wrap(self, model: Any) -> Any:
        """The model with everything else frozen, its output as it was; any trainer of transformers or TRL can train it."""

    @abstractmethod
    def save(self, model: Any, folder: Path) -> None:
        """Write what was trained, safetensors, and settings as JSON that name the adapter (`mixwright.learner.adapting`)."""

    @abstractmethod
    def load(self, model: Any, folder: Path) -> Any:
        """A fresh base model with what `save` wrote, ready to be read or trained on; the options are those of the folder.

        Raises InputError for a folder that does not fit the model.
        """

    @abstractmethod
    def merge(self, model: Any) -> Any:
        """The wrapped model as one of the base's own class with plain weights, each of which may train; equal outputs."""


class Planner(ABC):
    """Pure: same cells, measurements and training, same plan. Options that make no sense are refused when it is made."""

    OBJECTIVES: ClassVar[tuple[Objective, ...]] = ("grpo", "sft", "dpo")
    """What it can plan for."""
    EVIDENCE: ClassVar[tuple[str, ...]] = ()
    """Probes that it cannot plan without; `competence` of every training task."""

    @abstractmethod
    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """A plan of this training with a `why` for each number. Raises InputError when it lacks evidence."""


class Export(ABC):
    """Writes a plan's weights and order as another trainer documents its settings."""

    @abstractmethod
    def write(self, mix: Mix, folder: Path) -> list[str]:
        """Write everything into the folder, which is empty, and nothing elsewhere; what the user has to know or do.

        What of the mix the format cannot hold stands in what is returned, and at the top of the settings with `mix.notes`.
        """


class Steerer(ABC):  # noqa: B024 - a parent only: its children have the abstract methods
    """Common parent of what steers a run: no weights, no optimiser; rng handed in; failure raises."""

    def begin(self, scene: Scene) -> None:  # noqa: B027
        """Called once, before the first step and before `restore`."""

    def observe(self, step: int, outcomes: Sequence[GroupOutcome | SFTOutcome | PairOutcome]) -> None:  # noqa: B027
        """Every outcome of a step, refused groups too."""

    def state(self) -> dict[str, Any]:
        """JSON-ready state; `restore(state())` on a fresh object continues exactly."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Take over what `state` returned."""


class Selector(Steerer):
    """Picks items within tasks, a batch of draws at a time."""

    @abstractmethod
    def pick(self, tasks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """For each draw the pool index of an example of its task, int64 of shape (draws,).

        Args:
            tasks: task of each draw as an index into `pool.tasks`, int64 of shape (draws,).
            rng: the only source of chance.
        """


class Admission(NamedTuple):
    """A gate's answer."""

    admitted: bool
    """Whether the group may change the weights."""
    reason: str
    """Stored for people; also says when a group was admitted for want of evidence."""


class Gate(Steerer):
    """Decides which groups may change the weights, on the cell's evidence, never on one group; sees refused ones too."""

    @abstractmethod
    def admit(self, group: GroupOutcome) -> Admission:
        """Whether the group may change the weights, and why."""


class Controller(Steerer):
    """Proposes coefficients."""

    @abstractmethod
    def propose(self, signals: Signals) -> list[Action]:
        """Actions of kind coefficient, whose target is `beta`; empty when nothing should change."""


class Monitor(Steerer):
    """Raises alarms."""

    @abstractmethod
    def inspect(self, signals: Signals) -> list[Alarm]:
        """Alarms about what has been observed so far."""


Role = Literal["lever", "reference", "null"]
"""What an arm is tried as."""
Rows = Literal["all", "random_like", "mined", "simple_rule"]
"""Training rows of a branch: those of the corpus, as many random ones as were mined, those of the table that `trial.data`
names, or those of the simple rule that the miner left next to its table."""
Permuted = Literal["", "rewards", "levels", "weights", "order"]
"""What a null permutes; empty for nothing.

rewards: true rewards inside each group, whose mean, spread and signal stay exactly the same. levels: those of the rows of
each task and split; the starting model is measured by these cells, the plan is made again from that, and the arm is judged
on the true items like every other. weights: the plan's, among its tasks, and order: its stages, by the branch's seed.
"""


@dataclass(frozen=True)
class Branch:
    """How one arm of a trial trains."""

    plan: Plan
    """What the engine follows; for unsteered arms a plan without levers."""
    trains: bool = True
    """False: the starting model stays as it is, and is only measured."""
    permuted: Permuted = ""
    """What is permuted; empty for nothing."""
    rows: Rows = "all"
    """Training rows."""
    adapter: str = ""
    """Adapter that is trained and merged at the end; empty takes that of the settings."""


class Arm:
    """How one branch of a trial trains: what an arm declares here is how it differs from the plan under trial.

    References are the simple rules that a user could take instead: a lever helps only against each of them; the untrained
    model is one, and always runs. Nulls lack what a lever claims to work by; they run when a lever helps, and are made from
    that lever's own plan.
    """

    ROLE: ClassVar[Role] = "lever"
    """What the arm is tried as."""
    OF_DATA: ClassVar[bool] = False
    """Whether it belongs to a trial over data (`trial.data`), where rows change and the plan stays; nowhere else."""
    TRAINS: ClassVar[bool] = True
    """False for a reference that only measures the starting model."""
    CHANGE_PLAN: ClassVar[Callable[[Plan, Sequence[Cell]], Plan] | None] = None
    """A static method that returns the arm's plan, given the plan under trial (for a null: that of its lever) and the cells
    of the corpus; None for the plan as it stands."""
    PERMUTED: ClassVar[Permuted] = ""
    """What is permuted."""
    ROWS: ClassVar[Rows] = "all"
    """Training rows."""
    ADAPTER: ClassVar[str] = ""
    """Adapter that is trained."""

    def branch(self, plan: Plan, cells: Sequence[Cell]) -> Branch:
        """Return what this arm trains on, given the plan under trial (for a null: the plan of its lever)."""
        change_plan = type(self).CHANGE_PLAN
        changed_plan = plan if change_plan is None else change_plan(plan, cells)
        return Branch(changed_plan, self.TRAINS, self.PERMUTED, self.ROWS, self.ADAPTER)


class Section(ABC):
    """Adds a part to the page of a verdict, behind its own. Pure: opens no file, needs no torch."""

    ORDER: ClassVar[int] = 50
    """Place among the added parts, small first."""
    TITLE: ClassVar[str] = ""
    """Heading."""

    @abstractmethod
    def blocks(self, verdict: Verdict) -> list[Block]:
        """Return what to show, as data (text, tables, charts); an empty list when the verdict has nothing for it."""

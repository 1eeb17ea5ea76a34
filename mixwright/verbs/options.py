"""Options of the command line that several verbs share, and what they mean for a checkpoint measured without a YAML."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mixwright.config import CorpusConfig, RunConfig, check_cluster
from mixwright.errors import InputError
from mixwright.learner.sources import GGUF_SUFFIX
from mixwright.measure.served import check_address
from mixwright.run.folder import RunFolder, read_yaml
from mixwright.verbs.budget import Budget, as_budget, start_budget

if TYPE_CHECKING:
    from mixwright.learner.prompt_form import PromptForm
    from mixwright.trial.deadline import Deadline

IN_MEMORY = CorpusConfig("rows in memory")
"""Stands in settings for rows that were read already."""
SOURCE = typer.Argument(metavar="MODEL|RUN.YAML")
Folder = Path | str | RunFolder | None
DryRun = Annotated[bool, typer.Option("--dry-run")]
SuiteSeed = Annotated[int, typer.Option(min=0)]
Full = Annotated[bool, typer.Option("--full", help="Print every finding or number.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
LogTo = Annotated[Literal["trackio", "wandb"] | None, typer.Option()]
FailOn = Annotated[
    Literal["error", "warning", "never"],
    typer.Option(help="Exit with 3 on a finding of this severity or worse. With never, the exit code is 0."),
]
Column = Annotated[list[str] | None, typer.Option(metavar="OURS=THEIRS")]
Template = Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE")]
Engine = Annotated[Literal["transformers", "vllm"] | None, typer.Option()]
File = Annotated[Path | None, typer.Option(metavar="FILE")]
Rows = Annotated[str | None, typer.Option(metavar="FILE")]
Time = Annotated[Budget | str | None, typer.Option("--budget", parser=start_budget, metavar="TIME")]
EVAL_OPTION = "--eval FILE"


@dataclass(frozen=True, slots=True)
class Measuring:
    """Options to measure a checkpoint without a YAML, one per field; None if not given."""

    held_out: Annotated[str | None, typer.Option("--eval")] = None
    """Held-out items to measure on; formats as for audit. Repeatable."""
    column: Column = None
    """Read a field from another column, such as prompt=question; repeatable; OURS= ignores a column. Fields: id, task,
    prompt, target, answer, level, skills, chosen, rejected, messages, text, split, system, history, label."""
    task: Annotated[str | None, typer.Option()] = None
    """Task name for rows without a task column. Default: all."""
    grader: Annotated[list[str] | None, typer.Option(metavar="NAME|TASK=NAME")] = None
    """Grader of every task, or of one: TASK=NAME; repeatable. Default: chosen from the format of the answers. For evaluation
    logs: the metric; default: the first with only 0 and 1."""
    items: Annotated[int | None, typer.Option(min=1)] = None
    """Most items to measure per task and level. Default: about 200 in all, at least 32 each; in verdict about 800 in
    all, at least 80 each."""
    samples: Annotated[int | None, typer.Option(min=0)] = None
    """Sampled completions per item; 8 cost nine times as much as none. Default: 0; 8 with --sampled, for measure without
    --budget, and for plan for GRPO."""
    temperature: Annotated[float | None, typer.Option()] = None
    """Temperature of sampled completions. Default: 1."""
    greedy: Annotated[bool | None, typer.Option("--greedy/--sampled")] = None
    """Decoding that you will use the model with. Default: greedy."""
    max_new_tokens: Annotated[int | None, typer.Option(min=1)] = None
    """Longest completion, in tokens. Default: enough for 16 trial completions and the longest gold answer."""
    batch_size: Annotated[int | None, typer.Option(min=1)] = None
    """Completions generated together. Default: 16,384 tokens; on a GPU as many as fit in a sixteenth of its memory."""
    engine: Engine = None
    """Engine for completions outside training: transformers or vllm (must be installed). Samples differ between the two.
    Default: transformers, or measure.engine of RUN.YAML."""
    adapter: Annotated[str | None, typer.Option()] = None
    """Adapter (PEFT, svf) to load on the checkpoint (in verdict: on both). A complete adapter folder can also be given as
    the checkpoint itself."""
    chat_template: Annotated[bool | None, typer.Option("--chat-template/--no-chat-template")] = None
    """Put prompts through the tokenizer's chat template. Default: if it has one."""
    system: Annotated[str | None, typer.Option()] = None
    """System message of every prompt; uses the chat template."""
    template: Template = None
    """Argument of the chat template, such as enable_thinking=false; repeatable."""
    budget: Annotated[Budget | None, typer.Option(parser=start_budget, metavar="TIME")] = None
    """Time for the whole command, such as 90s, 20m or 1h30m; as many items are measured, or requests answered, as fit.
    Default: no limit."""
    served_model: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None
    """Model to use on the server given as MODEL (http://HOST/v1); give it twice for two servers. Default: the only model
    that the server lists."""
    parallel: Annotated[int | None, typer.Option(min=1, max=1024)] = None
    """Concurrent requests to a server. Default: 8."""
    train: str | None = None
    """Training rows: the argument TRAIN of `plan` and `mine`, not an option."""

    def __post_init__(self) -> None:
        """Refuse options that contradict each other. Raises InputError."""
        if self.temperature is not None and not 0.01 <= self.temperature <= 100:
            got, remedy = f"{self.temperature:g}", "For deterministic answers use --greedy."
            raise InputError("--temperature from 0.01 to 100", got, remedy)
        if self.greedy is False and self.samples == 0:
            remedy = "Leave --sampled out, or raise --samples."
            raise InputError("--sampled with at least one sample", "--samples 0", remedy)
        if self.chat_template is False and (self.system is not None or self.template):
            got, remedy = "--no-chat-template", "Leave one of the two out."
            raise InputError("--system or --template with the chat template", got, remedy)
        if self.budget is not None and self.items is not None:
            raise InputError("--items or --budget", "both", "Leave one out: a budget chooses the items.")

    @property
    def decoding(self) -> Literal["greedy", "sampled"]:
        """Decoding with which the model will be used."""
        return "sampled" if self.greedy is False else "greedy"

    @property
    def form(self) -> PromptForm:
        """Form of prompts that the options ask for. Raises InputError for an argument of the template that is none."""
        from mixwright.learner.prompt_form import PromptForm, parse_arguments

        return PromptForm(self.chat_template, self.system, parse_arguments(self.template or ()))

    def given_options(self) -> list[str]:
        """Return the given options, as they are typed."""
        return given_flags(dataclasses.replace(self, train=None))

    def measures_checkpoint(self, source: str, usage: str = "plan MODEL") -> bool:
        """Tell whether `source` is a checkpoint that is measured on rows named here; else it is a RUN.YAML.

        Args:
            source: what is named first.
            usage: the verb and what it takes before rows.

        Raises:
            InputError: rows in the place of the model, a YAML and rows together, a checkpoint without any, or an option that
                a YAML has itself.
        """
        if is_rows(source):
            raise InputError("MODEL, then rows", f"rows first, {source}", f"Write: mixwright {usage} {source}")
        is_settings_file, rows = is_settings(source), self.train or self.held_out
        if rows is not None:
            if is_settings_file:
                got = f"the file {source}, and {rows}"
                raise InputError("RUN.YAML alone, or MODEL with rows", got, "Leave one of the two out.")
            return True
        if not is_settings_file:
            remedy = "Name rows, or a settings file: mixwright run --init FILE writes one."
            raise InputError("RUN.YAML, or MODEL with rows", f"{source!r} alone", remedy)
        dataclasses.replace(self, engine=None).check_no_measuring_options()
        return False

    def check_no_server(self, *sources: str) -> None:
        """Raises InputError where a server is named and a checkpoint is needed, or options of a server without one."""
        if server := next(filter(is_server, sources), None):
            remedy = "`measure` and `verdict` take servers."
            raise InputError("a checkpoint on this machine or from the hub", f"a server, {server}", remedy)
        if names := [name for name in self.given_options() if name in ("--served-model", "--parallel")]:
            raise InputError(f"{', '.join(names)} with a server, http://HOST/v1", "no server", "Leave them out.")

    def check_no_engine(self, instead: str) -> None:
        """Raises InputError where an engine is named and `instead` is what writes."""
        if self.engine is not None:
            raise InputError("--engine with a checkpoint to measure", instead, "Leave it out.")

    def check_no_measuring_options(self) -> None:
        """Raise InputError if an option was given that only means something for a checkpoint."""
        if names := self.given_options():
            raise InputError(f"a checkpoint with {', '.join(names)}", "none", "Name one, or set this in RUN.YAML.")


def given_flags(record: Any) -> list[str]:
    """Return the options of a record that differ from their defaults, as they are typed."""
    names = {"held_out": "eval", "greedy": "greedy/--sampled"}
    fields = [field.name for field in dataclasses.fields(record) if getattr(record, field.name) not in (field.default, [])]
    return [f"--{names.get(name, name).replace('_', '-')}" for name in fields]


def is_settings(source: str) -> bool:
    """Whether a RUN.YAML is named, or a file that is no model."""
    path = Path(source)
    return path.suffix.lower() in (".yaml", ".yml") or (path.is_file() and path.suffix.lower() != GGUF_SUFFIX)


def is_rows(source: str) -> bool:
    """Tell whether a file of rows is named."""
    from mixwright.corpus.reading import SUFFIXES

    path = Path(source)
    return not path.is_dir() and path.suffix.lower() in (*SUFFIXES, ".gz", ".zst")


def is_server(source: str) -> bool:
    """Whether an address of a server was named in the place of a checkpoint. Raises InputError for one with a key in it."""
    if not source.lower().startswith(("http://", "https://")):
        return False
    check_address(source)
    return True


@dataclass(frozen=True, slots=True)
class Placing:
    """Where the workers of a verb run, and what writes in them: one option of the command line per field, None where it is
    not given.
    """

    cluster: Annotated[str | None, typer.Option(metavar="ray|ray:HOST:PORT")] = None
    """Run the workers on a Ray cluster: ray:HOST:PORT, or ray for a local one (started if needed). Default: processes on
    this machine."""
    gpus_per_worker: Annotated[float | None, typer.Option(min=0.0, max=8.0)] = None
    """GPUs of the cluster per worker; with .5 two workers share one. Default: none."""
    engine: Engine = None
    """Engine for completions outside training: transformers or vllm (must be installed). Samples differ between the two.
    Default: transformers, or measure.engine of RUN.YAML."""

    def applied_to(self, config: RunConfig) -> RunConfig:
        """The settings with what was given.

        Raises:
            InputError: another cluster than one of Ray, or GPUs of none.
        """
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        measure = dataclasses.replace(config.measure, engine=given.pop("engine", config.measure.engine))
        trial = dataclasses.replace(config.trial, **given)
        try:
            check_cluster(trial.cluster)
        except ValueError as error:
            raise InputError(f"--cluster {error}", trial.cluster, "Write for example --cluster ray.") from None
        if trial.gpus_per_worker and not trial.cluster:
            remedy = "Add it, or leave --gpus-per-worker out: processes of this machine share its GPUs."
            raise InputError("--cluster with --gpus-per-worker", "none", remedy)
        return dataclasses.replace(config, measure=measure, trial=trial)

    def check_not_given(self) -> None:
        """Raises InputError where a checkpoint is worked on in this process."""
        if given_flags(dataclasses.replace(self, engine=None)):
            remedy = "Leave it out, or work on a RUN.YAML."
            raise InputError("RUN.YAML with --cluster and --gpus-per-worker", "a checkpoint", remedy)


MEASURING, PLACING = Measuring(), Placing()
"""No options."""


def join_sources(sources: Sequence[str] | Path | None) -> str | None:
    """Return one source or several as one text, a line each."""
    return str(sources) if isinstance(sources, str | Path) else "\n".join(sources) if sources else None


def parse_columns(column: Sequence[str] | None) -> dict[str, str]:
    """Our name -> the file's column; empty for one that is not to be read.

    Raises:
        InputError: what is not OURS=THEIRS, or a name of ours twice.
    """
    pairs = [pair.partition("=") for pair in column or ()]
    theirs_by_ours: dict[str, str] = {}
    for ours, equals, theirs in pairs:
        if not (ours and equals):
            raise InputError("--column OURS=THEIRS", ours or "nothing", "Write for example --column prompt=question.")
        if ours in theirs_by_ours:
            raise InputError(f"--column {ours}= once", f"{theirs_by_ours[ours]!r} and {theirs!r}", "Leave one of them out.")
        theirs_by_ours[ours] = theirs
    return theirs_by_ours


def parse_graders(grader: Sequence[str] | None, tasks: Collection[str] = ()) -> tuple[str | None, dict[str, str]]:
    """The grader of all tasks, if one was named, and those of single tasks, whose names may hold `=` where they are known.

    Raises:
        InputError: two of one kind.
    """
    grader_of_all: str | None = None
    grader_by_task: dict[str, str] = {}
    for option_text in grader or ():
        task, equals, name = option_text.partition("=")
        if known := [one for one in tasks if option_text.startswith(f"{one}=")]:
            task = max(known, key=len)
            name = option_text.removeprefix(f"{task}=")
        if equals and "?" not in task and not task.endswith(">"):  # numeric?tolerance=0.1, score>=0.5
            if not task or not name or task in grader_by_task:
                remedy = "Write for example --grader gcd=numeric."
                raise InputError("--grader TASK=NAME, once for a task", repr(option_text), remedy)
            grader_by_task[task] = name
        elif grader_of_all is not None:
            raise InputError(
                "one --grader for all tasks", f"{grader_of_all} and {option_text}", "Name the task: --grader TASK=NAME."
            )
        else:
            grader_of_all = option_text
    return grader_of_all, grader_by_task


def open_settings(
    config: str | Path | RunConfig, folder: str | Path | RunFolder | None, placing: Placing = PLACING
) -> tuple[RunConfig, RunFolder, Path]:
    """Return settings, the run folder, and the folder that relative paths start from; nothing is made.

    Args:
        config: a settings file, or settings, whose relative paths start from the current folder.
        folder: where everything is written; None takes `runs/` and the name of the settings file.
        placing: what replaces the settings.

    Raises:
        InputError: a file of something else, settings in memory without a folder, or a placing that cannot be.
    """
    if isinstance(config, RunConfig):
        if folder is None:
            raise InputError("a folder, because the settings are not from a file", "none", "Name one: folder='runs/mine'.")
        settings, relative_to = config, Path()
    else:
        path = Path(config)
        if path.is_dir() or is_rows(str(path)):
            remedy = f"Write settings for them: mixwright run --init {path}; then: mixwright run run.yaml --dry-run"
            raise InputError("settings, RUN.YAML", f"examples, {path}", remedy)
        settings, relative_to, folder = read_yaml(path, RunConfig), path.parent, folder or Path("runs") / path.stem
    run = folder if isinstance(folder, RunFolder) else RunFolder(folder)
    return placing.applied_to(settings), run, relative_to


def with_budget(config: RunConfig, budget: Budget | str | None) -> tuple[RunConfig, Deadline]:
    """The settings with the budget, if one was given, and the clock of the run, which else begins now."""
    from mixwright.trial.deadline import Deadline

    budget = as_budget(budget)
    if budget is not None:
        config = dataclasses.replace(config, trial=dataclasses.replace(config.trial, budget_minutes=budget.seconds / 60))
    return config, Deadline(config.trial.budget_minutes, began=None if budget is None else budget.began)

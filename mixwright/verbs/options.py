"""Options of the command line that several verbs share, and what they mean for a checkpoint measured without a YAML."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from mixwright.errors import InputError
from mixwright.learner.sources import GGUF_SUFFIX
from mixwright.measure.served import check_address
from mixwright.verbs.budget import Budget, start_budget

if TYPE_CHECKING:
    from mixwright.config import RunConfig
    from mixwright.run.folder import RunFolder
    from mixwright.trial.deadline import Deadline

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on stdout.")]
SCANNED_HELP = (
    "Groups or single columns (`mixwright list columns`), or all. Default: those without rollouts, gradients, vectors."
)
ONLY_HELP = "One stage of RUN.YAML: steer trains once under the plan, trial compares it with simpler choices."
DATA_HELP = "With --only trial: mined rows (a miner's name or a table) against all rows and as many random ones."
SCORES_HELP = "A run folder with a trial, or a CSV, JSONL or Parquet table: candidate, score, and perhaps group and run."
COLUMNS_HELP = (
    "Column of the file for one of our names; repeatable; OURS= ignores a column. Ours: id, task, prompt, target, "
    "answer, level, knobs, skills, chosen, rejected, messages, text, split, system, history, label."
)
GRADER_HELP = (
    "Grader of every task, or of one: TASK=NAME; repeatable. Default: chosen from the format of the answers. For "
    "evaluation logs: the metric; default: the first that is right or wrong."
)
ITEMS_HELP = (
    "Most items measured per task and level. Default: 200 over all, at least 32; for verdict the number that the "
    "gate needs: about 800 over all that is protected, at least 80 of each."
)
SAMPLES_HELP = "Sampled completions per item; 0 takes greedy ones only, at 1/9 of the cost. Default: 8."
TOKENS_HELP = "Longest completion in tokens. Default: the need of 16 test completions and of the longest gold answer."
OPTIONS_BY_HELP = (
    "How the model answers rows with options (grader choice): by writing, or by the likeliest option, in one forward "
    "pass. Default: writing."
)
BATCH_HELP = "Completions generated together. Default: 16,384 tokens, on a GPU as many as fit in a sixteenth of it."
ENGINE_HELP = (
    "Engine for completions outside training: transformers or vllm (must be installed). Samples differ between the "
    "two. Default: transformers, or measure.engine of RUN.YAML."
)
ADAPTER_HELP = (
    "Adapter (PEFT, svf) for the checkpoint (for both of verdict); a complete adapter folder can be the checkpoint itself."
)
CHAT_HELP = "Use the tokenizer's chat template or not. Default: if it has one."
GATE_HELP = "Exit with 0 when passed, 3 when damaged, 4 when inconclusive (the default); --no-gate: always 0."
PROTECT_HELP = (
    "Task that must not be lost, or one level of it (TASK@LEVEL); default: all with a right answer before. Repeatable."
)
MARGIN_HELP = (
    "Average loss of the protected tasks that must be ruled out, in points; default: 5. The rule for each task stays."
)
UNTIL_HELP = "Up to four interim analyses; with general requests there are sixteen, always."
TRAINED_ON_HELP = "Rows that AFTER was trained on: general requests that stand in them are left out, and counted."
EXPORT_HELP = (
    "Also write files for another trainer: trl, axolotl, llama-factory, verl. An existing plan.yaml is exported unchanged."
)
EXPORT_TO_HELP = "Folder of --export; default: export/FORMAT in the run folder, or in the current one."
REPLAY_HELP = (
    "Rows, or requests that the model answers, to replay with yours; where a gold answer is known, wrong ones are dropped."
)
PROMPTS_HELP = (
    "With a checkpoint and --miner rehearsal: requests such as users send. With gold answers, wrong answers of the model "
    "are dropped."
)
SHARE_HELP = "For SFT and DPO: share of replay in the training samples, at most .5. Default: .25; with --eval .1."
KEEP_HELP = "With --eval, for SFT and DPO: task to protect, whatever was measured. Repeatable."
PLAN_OUTPUT_HELP = (
    "With --eval: file of the plan (YAML). Default: plan.yaml on a terminal; in a pipe the plan goes to stdout, and the "
    "report to stderr."
)
FRESH_HELP = "With --eval: unseen rows of the same tasks; shows whether the model was trained on the held-out items."
START_HELP = "With --fresh: the model before training, for a more sensitive check."
FAIL_HELP = "Exit with 3 on a finding of this severity or worse. With never, the exit code is 0."
BUDGET_HELP = "Time for the whole command, such as 90s, 20m or 1h30m; sets items, samples and seeds. Default: no limit."
SERVED_HELP = (
    "Name of the model on the server http://HOST/v1 that is given as MODEL; twice for two servers. Default: the only "
    "one listed."
)
PARALLEL_HELP = "Requests to a server at the same time. Default: 8."
DIAL_KEEP_HELP = "Task whose success must not be lost; repeatable. All other tasks are the skill that was tuned for."
ALPHA_HELP = "Strength to try: 0 is the base, 1 the tuned model; repeatable. Default: .25, .5, .75, 1."
LOSS_HELP = "Largest loss of success on the kept tasks that is accepted, 0..1."
CLUSTER_HELP = (
    "Run the workers on a Ray cluster: ray for the one of this machine (started if needed), or ray:HOST:PORT. "
    "Default: processes on this machine."
)
AUDIT_WORKERS_HELP = (
    "Processes for the long passes over the rows; 0 takes one per CPU core. Helps from 100,000 rows; findings stay the same."
)
GPUS_HELP = "GPUs of the cluster per worker; with .5 two workers share one. Default: none."
EVAL_OPTION = "--eval FILE"
EVAL_HELP = "Held-out items to measure on; formats as for audit. Repeatable."
SUITE_HELP = (
    "Also ask general requests, which ship with Mixwright (the default of two checkpoints without --protect). --no-suite: "
    "only --eval."
)
REPEATABLE_SOURCES = {"held_out"}
"""Options that name files, and may be repeated."""


@dataclass(frozen=True, slots=True)
class Measuring:
    """Options to measure a checkpoint without a YAML, one per field; None if not given."""

    held_out: Annotated[str | None, typer.Option("--eval", help=EVAL_HELP)] = None
    column: Annotated[list[str] | None, typer.Option(metavar="OURS=THEIRS", help=COLUMNS_HELP)] = None
    task: Annotated[str | None, typer.Option(help="Task of rows without a task column. Default: all.")] = None
    grader: Annotated[list[str] | None, typer.Option(metavar="NAME|TASK=NAME", help=GRADER_HELP)] = None
    items: Annotated[int | None, typer.Option(min=1, help=ITEMS_HELP)] = None
    samples: Annotated[int | None, typer.Option(min=0, help=SAMPLES_HELP)] = None
    temperature: Annotated[float | None, typer.Option(help="Temperature of sampled completions. Default: 1.")] = None
    greedy: Annotated[
        bool | None, typer.Option("--greedy/--sampled", help="Decoding that the model will be used with. Default: greedy.")
    ] = None
    options_by: Annotated[Literal["writing", "likelihood"] | None, typer.Option(help=OPTIONS_BY_HELP)] = None
    max_new_tokens: Annotated[int | None, typer.Option(min=1, help=TOKENS_HELP)] = None
    batch_size: Annotated[int | None, typer.Option(min=1, help=BATCH_HELP)] = None
    engine: Annotated[Literal["transformers", "vllm"] | None, typer.Option(help=ENGINE_HELP)] = None
    adapter: Annotated[str | None, typer.Option(help=ADAPTER_HELP)] = None
    chat_template: Annotated[bool | None, typer.Option("--chat-template/--no-chat-template", help=CHAT_HELP)] = None
    system: Annotated[str | None, typer.Option(help="System message of every prompt; uses the chat template.")] = None
    budget: Annotated[Budget | None, typer.Option(parser=start_budget, metavar="TIME", help=BUDGET_HELP)] = None
    served_model: Annotated[list[str] | None, typer.Option(metavar="NAME", help=SERVED_HELP)] = None
    parallel: Annotated[int | None, typer.Option(min=1, max=1024, help=PARALLEL_HELP)] = None
    train: str | None = None
    """Training rows, the argument TRAIN of `plan` and `mine`; no option."""

    def given_options(self) -> list[str]:
        """Return the given options other than --eval, as they are typed."""
        names = {"greedy": "greedy/--sampled"}
        known = ("held_out", "train")
        fields = [f.name for f in dataclasses.fields(self) if f.name not in known and getattr(self, f.name) is not None]
        return [f"--{names.get(name, name).replace('_', '-')}" for name in fields]

    def measures_checkpoint(self, source: str) -> bool:
        """Tell whether `source` is a checkpoint that is measured on rows named here; else it is a RUN.YAML.

        Raises:
            InputError: a YAML and rows together, a checkpoint without any, or an option that a YAML has itself.
        """
        is_settings_file, rows = is_settings(source), self.train or self.held_out
        if rows is not None:
            self.check_budget()
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
            raise InputError("a checkpoint on this machine, or of the hub", f"a server, {server}", remedy)
        given = {"--served-model": self.served_model, "--parallel": self.parallel}
        if names := [name for name, value in given.items() if value is not None]:
            raise InputError(f"{', '.join(names)} with http://HOST/v1", "no server", "Leave them out.")

    def check_no_engine(self, instead: str) -> None:
        """Raises InputError where an engine is named and `instead` is what writes."""
        if self.engine is not None:
            raise InputError("--engine with a checkpoint to measure", instead, "Leave it out.")

    def check_budget(self) -> None:
        """Raises InputError where a number of items was asked for beside the time that is to decide it."""
        if self.budget is not None and self.items is not None:
            raise InputError("--items or --budget", "both", "Leave one out: a budget chooses the items.")

    def check_no_measuring_options(self) -> None:
        """Raise InputError if an option was given that only means something for a checkpoint."""
        if given_names := [*(["--eval"] if self.held_out is not None else []), *self.given_options()]:
            raise InputError(f"a checkpoint with {', '.join(given_names)}", "none", "Name one, or set this in RUN.YAML.")


def is_settings(source: str) -> bool:
    """Whether a RUN.YAML is named, or a file that is no model."""
    path = Path(source)
    return path.suffix.lower() in (".yaml", ".yml") or (path.is_file() and path.suffix.lower() != GGUF_SUFFIX)


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

    cluster: Annotated[str | None, typer.Option(metavar="ray|ray:HOST:PORT", help=CLUSTER_HELP)] = None
    gpus_per_worker: Annotated[float | None, typer.Option(min=0.0, max=8.0, help=GPUS_HELP)] = None
    engine: Annotated[Literal["transformers", "vllm"] | None, typer.Option(help=ENGINE_HELP)] = None

    def applied_to(self, config: RunConfig) -> RunConfig:
        """The settings with what was given.

        Raises:
            InputError: another cluster than one of Ray, or GPUs of none.
        """
        from mixwright.config import check_cluster

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
        if any(value is not None for value in (self.cluster, self.gpus_per_worker)):
            remedy = "Leave it out, or work on a RUN.YAML."
            raise InputError("RUN.YAML with --cluster and --gpus-per-worker", "a checkpoint", remedy)


def with_measuring(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `Measuring` after its own, handed to it as `measuring`."""
    return _with_options(command, Measuring, "measuring")


def with_placing(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of `Placing` after its own, handed to it as `placing`."""
    return _with_options(command, Placing, "placing")


def _with_options(command: Callable[..., None], record: type[Any], keyword: str) -> Callable[..., None]:
    own_parameters = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != keyword]
    hints, own_names = get_type_hints(record, include_extras=True), {p.name for p in own_parameters}
    repeatable = hints.keys() & REPEATABLE_SOURCES - own_names
    for name in repeatable:
        hints[name] = Annotated[list[str] | None, *hints[name].__metadata__]
    fields = [field for field in dataclasses.fields(record) if hasattr(hints[field.name], "__metadata__")]
    further_parameters = [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name])
        for field in fields
        if field.name not in own_names  # an option of both records is one option, which both get
    ]

    @functools.wraps(command)
    def called(**arguments: Any) -> None:
        arguments |= {name: join_sources(arguments[name]) for name in repeatable}
        options = record(**{field.name: arguments[field.name] for field in fields})
        own_arguments = {name: value for name, value in arguments.items() if name in own_names}
        command(**own_arguments, **{keyword: options})

    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in own_parameters] + further_parameters
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] - what typer reads
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called


def join_sources(sources: Sequence[str] | None) -> str | None:
    """Several sources as one, a line each."""
    return "\n".join(sources) if sources else None


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
        if equals and "?" not in task:  # numeric?tolerance=0.1 is a name with an option
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


def choose_decoding(greedy: bool | None, decoding: Literal["greedy", "sampled"] | None) -> Literal["greedy", "sampled"]:
    """The declared decoding, from --greedy/--sampled and --decoding. Raises InputError when they disagree."""
    flag = None if greedy is None else "greedy" if greedy else "sampled"
    if flag and decoding and flag != decoding:
        raise InputError("one declared decoding", f"--{flag} and --decoding {decoding}", "Leave one of them out.")
    return decoding or flag or "greedy"


def load_settings(config: Path, folder: Path | None) -> tuple[RunConfig, RunFolder]:
    """The settings and the run folder that belongs to them; nothing is made."""
    from mixwright.config import RunConfig
    from mixwright.corpus.reading import SUFFIXES
    from mixwright.run.folder import RunFolder, read_yaml

    if config.is_dir() or config.suffix.lower() in (*SUFFIXES, ".gz", ".zst"):
        remedy = f"Write settings for them: mixwright run --init {config}; then: mixwright run run.yaml --dry-run"
        raise InputError("settings, RUN.YAML", f"examples, {config}", remedy)
    return read_yaml(config, RunConfig), RunFolder(folder or Path("runs") / config.stem)


def with_budget(config: RunConfig, run: RunFolder, budget: Budget | None) -> tuple[RunConfig, Deadline]:
    """The settings with the budget, if one was given, and the clock of the run, which else begins now."""
    from mixwright.trial.deadline import Deadline

    if budget is not None:
        config = dataclasses.replace(config, trial=dataclasses.replace(config.trial, budget_minutes=budget.seconds / 60))
    return config, Deadline(config.trial.budget_minutes, run, began=None if budget is None else budget.began)

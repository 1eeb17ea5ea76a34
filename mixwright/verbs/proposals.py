"""Writer of `mixwright run --init`: a run.yaml that fits the examples, with the comment of each setting and the reason."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixwright import config as settings
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, PlanConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.config import WarmupConfig as Warmup
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.columns import NAMES, recognise_columns
from mixwright.corpus.proposed_graders import proposed_graders
from mixwright.corpus.reading import read_rows
from mixwright.corpus.rows import pc
from mixwright.corpus.trainable import leave_out_bare
from mixwright.errors import InputError, join_some, one_line
from mixwright.learner.bases import TINY_PREFIX
from mixwright.learner.sources import is_gguf
from mixwright.measure.first_answers import read_first_answers
from mixwright.measure.room import SOLUTION_TOKENS, CompletionLimit, find_room, keep_fitting_corpus
from mixwright.records import plain
from mixwright.run.folder import write_text, yaml_text
from mixwright.verbs.budget import Budget
from mixwright.verbs.command import read_fields
from mixwright.verbs.output import say
from mixwright.verdict.page.text import format_count

PLACEHOLDER = "train.jsonl"
COMMENT_WIDTH = 110
TINY_ONLY_SETTINGS = ("width", "depth", "heads", "vocabulary", "warmup")
"""Settings of a tiny model, left out for a checkpoint."""
UNKNOWN_COLUMN = "???"
"""Placeholder for a column that the user has to name."""
PROMPT_COLUMNS = ("prompt", "messages", "text", "chosen")
"""Columns of which one must be present."""
ANSWER_COLUMNS = ("rejected", "answer", "target")
"""Other columns that are named to the user."""
OBJECTIVE_REASONS = {
    "dpo": "the rows are pairs of chosen and rejected",
    "grpo": "the rows are prompts with answers that can be graded",
    "sft": "the rows have completions or end with the assistant's turn",
}
UNGRADED_REASON = (
    "Some tasks have no grader, so no loss can be seen in them. The plan keeps the shares of your rows, and trains like "
    "uniform. To change that, name tasks to keep (plan.options: {keep: [...]}) or rows to replay (corpus.rehearse), and add "
    "the arm steered."
)
ONE_TASK_REASON = (
    "There is only one task, so there is nothing to weigh: the trial compares training with not training. To change that, "
    "add a task column, or rows of what the model can already do (corpus.rehearse)."
)
HELD_OUT_ITEMS, MIN_CELL_ITEMS, MAX_CELL_ITEMS = 200, 16, 100
"""Held-out items over all cells; fewest and most of one cell."""
LONG_COMPLETION_TOKENS = 64
"""Completion length, in tokens, from which fewer items and samples are measured."""
MAX_PASSES = {"grpo": 4, "sft": 2, "dpo": 1}
"""Objective -> most passes over the training rows."""
MIN_STEPS, MAX_STEPS = 10, {"grpo": 60, "sft": 200, "dpo": 100}
PROMPTS_PER_STEP = {"grpo": 8, "sft": 16, "dpo": 8}
LEARNING_RATES = {"grpo": 1e-6, "sft": 2e-5, "dpo": 1e-6}
"""TRL's own learning rates, for checkpoints."""
LORA_RANK, LORA_RATE_FACTOR = 16, 10
"""LoRA rank for checkpoints, and the factor on the learning rate of all weights that TRL's documentation recommends."""
TINY_LEARNING_RATES = {"grpo": 5e-4, "sft": 1e-3, "dpo": 5e-4}
MIN_ROOM, MAX_ROOM = 8, 256
"""Least and most tokens for the longest answer and its end."""
TINY_COMPLETION_TOKENS = 64
"""Longest completion of a tiny model, tokens: it cannot work anything out at length."""
WARMUP = Warmup(steps=300)
"""Warm-up of a tiny model: enough to learn short answers, so that there is something to measure."""
BATCH_CHARACTERS = 8192
"""Characters of text in a batch of a tiny model on a CPU, about."""


def propose(train: str, held_out: str | None, model: str | None, objective: str | None) -> tuple[RunConfig, list[str]]:
    """Settings for a file of examples, and notes on them for the terminal and the top of the file.

    Args:
        train: source of the examples.
        held_out: source of the held-out ones; None holds a share of the prompts out.
        model: checkpoint; None takes a tiny model.
        objective: as asked; None takes it from the columns.

    Raises:
        InputError: rows that cannot be read or trained on, or an objective that they do not allow.
    """
    data, columns = CorpusConfig(train, held_out), list[str]()
    if Path(train).is_file():
        row, _ = next(read_rows(train, "train"))
        columns = [str(name) for name in row] if isinstance(row, dict) else []
    recognised = recognise_columns(columns)
    taken = [f"{ours} from {recognised[ours]!r}" for ours in (*PROMPT_COLUMNS, *ANSWER_COLUMNS) if ours in recognised]
    if columns and not any(ours in recognised for ours in PROMPT_COLUMNS):
        data = replace(data, columns={"prompt": UNKNOWN_COLUMN, **recognised})
        note = f"Columns found: {', '.join(columns)}. "
        note += f"In corpus.columns, replace {UNKNOWN_COLUMN} with the column that has the prompt. "
        note += f"Used: {', '.join(taken) or 'none; name that of the answers, too'}. Mixwright's names: {', '.join(NAMES)}."
        return RunConfig(data, ModelConfig(warmup=WARMUP)), [note]
    corpus_as_read = corpus = leave_out_bare(read_corpus(data))
    proposed = proposed_graders(corpus)
    graders = {task: one.grader for task, one in proposed.items() if one.grader is not None}
    if graders:  # so completions become answers
        corpus = leave_out_bare(read_corpus(replace(data, graders=graders)))
    ungraded = [task for task in proposed if task not in graders]
    chosen, reason = _choose_objective(corpus, ungraded, objective, answered=_holds_answers_alone(recognised, corpus))
    notes, room = list[str](), None
    if chosen == "dpo":
        graders, ungraded = {}, list(proposed)
    elif graders and model and (Path(model).is_dir() or is_gguf(model)):  # nothing is downloaded to write settings
        corpus, notes, room = _try_model(model, corpus, ungraded)
        graders = {task: corpus.tasks[task].grader for task in graders}
    corpus = corpus if graders else corpus_as_read
    data = replace(data, graders=graders)
    config, why = _choose_sizes(data, ModelConfig(model) if model else ModelConfig(), corpus, chosen, ungraded, room)
    counts = join_some([f"{name} ({task.share:.0%})" for name, task in corpus.tasks.items()])
    found = f"Found {len(corpus)} examples of {format_count(len(corpus.tasks), 'task')}: {counts}."
    found += f" Columns: {', '.join(taken)}." if taken else ""
    return config, [found, *(f"Columns: {note}" for note in corpus.notes), f"Objective: {reason}", *notes, *why]


def _try_model(model: str, corpus: Corpus, ungraded: Sequence[str]) -> tuple[Corpus, list[str], CompletionLimit | None]:
    """Return the corpus with graders, what to say of them, and the room for answers, by a model's first completions."""
    try:
        from mixwright.learner.load import load_learner
        from mixwright.measure.kept_answers import KeepingLearner

        lines: list[str] = []
        say(f"model: loading {model}; its first completions show how long answers are and which graders fit")
        measure = MeasureConfig(items=MAX_CELL_ITEMS)
        learner = KeepingLearner(load_learner(model), None)
        fitting_corpus, notes = keep_fitting_corpus([learner], corpus, measure)
        room = find_room([learner], fitting_corpus, measure, lines.append, trained=True)
        measure = replace(measure, max_new_tokens=room.tokens, continued_tokens=room.continued)
        answers = read_first_answers(learner, fitting_corpus, measure, tasks_with_named_grader=ungraded, say=lines.append)
    except (ImportError, InputError):  # no torch here, or a model that the run will refuse
        return corpus, [], None
    lines += [f"Length of answers: {room.why}.", *(f"{note}: the run will refuse these rows." for note in notes)]
    return corpus.with_graders({answer.task: answer.grader for answer in answers}), lines, room


def _holds_answers_alone(recognised: Mapping[str, str], corpus: Corpus) -> bool:
    """Whether the rows are questions with bare answers: without completions, and without an assistant's turn at the end."""
    if "messages" in recognised or "text" in recognised:
        return False
    if "target" in recognised:
        return recognised.get("answer") == recognised["target"]  # `target` beside `input`, which is the answer
    return recognised != {} or not corpus.table["answer"].null_count  # generated items have answers


def _choose_objective(corpus: Corpus, ungraded: Sequence[str], asked: str | None, *, answered: bool) -> tuple[str, str]:
    """The objective, and why in one sentence; `answered`: the rows hold bare answers and no completions.

    Raises InputError where the rows do not allow it, or any.
    """
    train = corpus.select(split="train").table
    train = train if len(train) else corpus.table
    unpaired, incomplete = train["chosen"].null_count, train["target"].null_count
    lacks = {
        "dpo": f"{unpaired:,} of {len(train):,} rows are not pairs of chosen and rejected" if unpaired else "",
        "grpo": f"no grader fits {join_some([repr(task) for task in ungraded])}" if ungraded else "",
        "sft": f"{incomplete:,} of {len(train):,} rows have no completion" if incomplete else "",
    }
    if 0 < incomplete < len(train):
        places = train.filter(pc.is_null(train["target"]))["source"].to_pylist()
        lacks["sft"] += f" ({join_some(places)}): remove them, or end chats with the assistant's turn"
    if asked is not None and asked not in lacks:
        raise InputError(f"--objective {', '.join(lacks)}", repr(asked), "Correct it.")
    order = ("dpo", "grpo", "sft") if answered else ("dpo", "sft", "grpo")
    possible = [name for name in order if not lacks[name]]
    if not possible or (asked and lacks[asked]):
        remedy = f"Use --objective {' or '.join(possible)}." if possible else "Add answers, completions or pairs."
        got = lacks[asked] if asked else "; ".join(lacks.values())
        raise InputError(f"rows for {asked or 'an objective: pairs, answers or completions'}", got, remedy)
    chosen = asked or possible[0]
    others = ", ".join(name for name in possible if name != chosen)
    why = "you asked for it" if asked else OBJECTIVE_REASONS[chosen]
    return chosen, f"{chosen}, because {why}{f' (also possible with --objective: {others})' if others else ''}."


def _choose_sizes(
    data: CorpusConfig,
    model: ModelConfig,
    corpus: Corpus,
    objective: str,
    ungraded: Sequence[str],
    room: CompletionLimit | None,
) -> tuple[RunConfig, list[str]]:
    """Return settings with sizes that fit these rows and a model's answers, and why the arms are not the default ones."""
    row_count, cells = len(corpus.select(split="train")), corpus.select(split="eval").cells() or corpus.cells()
    is_tiny, measures_success = model.path == TINY_PREFIX, len(ungraded) < len(corpus.tasks)
    tokens, continued = MeasureConfig().max_new_tokens, 0
    if measures_success:
        tokens, continued = (room.tokens, room.continued) if room else (_choose_room(corpus, is_tiny=is_tiny), 0)
    is_long, mean_characters = tokens >= LONG_COMPLETION_TOKENS, _mean_characters(corpus)
    prompts = PROMPTS_PER_STEP[objective]
    prompts = max(4, min(prompts, BATCH_CHARACTERS // mean_characters)) if is_tiny else prompts
    max_steps = MAX_STEPS[objective] // (2 if is_tiny and is_long else 1)  # a CPU, long answers
    steps = max(MIN_STEPS, min(max_steps, math.ceil(MAX_PASSES[objective] * row_count / prompts)))
    held_out_items = HELD_OUT_ITEMS // (2 if is_long else 1)
    items = max(MIN_CELL_ITEMS, min(MAX_CELL_ITEMS, math.ceil(held_out_items / max(len(cells), 1))))
    read_probes = {"sft": ("held_out_loss",), "dpo": ("preference",)}.get(objective, ())
    probes = (*MeasureConfig().probes, *read_probes) if measures_success else read_probes
    samples = 4 if is_long else MeasureConfig().samples
    measure = MeasureConfig(items, samples, max_new_tokens=tokens, continued_tokens=continued, probes=probes)
    rate = (TINY_LEARNING_RATES if is_tiny else LEARNING_RATES)[objective]
    train = TrainConfig(objective, steps, prompts, max_new_tokens=tokens, learning_rate=rate)
    if is_tiny:
        warmup_batch = max(8, min(64, BATCH_CHARACTERS // mean_characters))
        model = replace(model, warmup=Warmup(300 if objective == "grpo" else 100, warmup_batch))
    else:
        lora = {"rank": LORA_RANK, "learning_rate": LORA_RATE_FACTOR * rate}
        train = replace(train, adapter="lora", adapters={"lora": lora})
    plan, trial, arms_reason = _choose_arms(corpus, objective, graded=measures_success and not ungraded)
    outcome = "accuracy on held-out preferences" if objective == "dpo" else "loss on held-out completions, in nats"
    reasons = [] if measures_success else [f"No answer can be graded, so the primary outcome is the {outcome}."]
    reasons += [arms_reason] if arms_reason else []
    return RunConfig(data, model, measure, plan=plan, train=train, trial=trial), reasons


def _choose_arms(corpus: Corpus, objective: str, *, graded: bool) -> tuple[PlanConfig, TrialConfig, str]:
    """Return planner and arms that exist for the objective, and why they are not the defaults."""
    if graded and objective == "grpo":
        return PlanConfig(), TrialConfig(), ""
    if graded and len(corpus.tasks) > 1:
        reason = f"{objective.upper()}: the plan keeps the shares of your rows, and replays what the model can already do."
        return PlanConfig(), TrialConfig(nulls=("permuted_weights",)), reason
    trial = TrialConfig(arms=("uniform", "equal_shares") if len(corpus.cells()) > 1 else ("uniform",), nulls=())
    if len(corpus.tasks) > 1:
        return PlanConfig(), trial, UNGRADED_REASON
    return PlanConfig("proportional" if objective == "grpo" else None), trial, ONE_TASK_REASON


def _mean_characters(corpus: Corpus) -> int:
    """Mean length of a row's texts, at least 1."""
    table = corpus.table.slice(0, 5000)
    lengths = [pc.sum(pc.utf8_length(table[name])).as_py() or 0 for name in ("prompt", "target", "chosen", "rejected")]
    return max(1, round(sum(lengths) / max(len(table), 1)))


def _choose_room(corpus: Corpus, *, is_tiny: bool) -> int:
    """Longest completion: that of the longest answer, or enough for a worked solution whose final answer is graded."""
    lengths = (len(plain(row.answer or row.target or "")) for row in itertools.islice(corpus, 5000))  # a token each at worst
    answer_tokens = max(MIN_ROOM, min(max(lengths, default=0) + 1, MAX_ROOM))
    if is_tiny:
        return min(answer_tokens, TINY_COMPLETION_TOKENS)
    is_worked = any(task.grader.startswith(("final_answer", "includes")) for task in corpus.tasks.values())
    return max(answer_tokens, SOLUTION_TOKENS) if is_worked else answer_tokens


def write_settings(
    train: str | None,
    path: Path,
    *,
    held_out: str | None = None,
    model: str | None = None,
    objective: str | None = None,
    budget: Budget | None = None,
) -> list[str]:
    """Write `path` for the examples in `train`; return notes for the user, one line each.

    Args:
        train: source of the examples; None writes settings with a placeholder.
        path: the new file.
        held_out: source of the held-out examples.
        model: checkpoint; None takes a tiny model with random weights.
        objective: grpo, sft or dpo; None takes it from the columns.
        budget: time that the run may take.

    Raises:
        InputError: `path` is there already, or `train` cannot be used for another reason than the names of its columns.
    """
    if path.exists():
        raise InputError("a new file", "a file that exists already", "Choose another with --output.", file=path)
    config, notes = RunConfig(CorpusConfig(PLACEHOLDER), ModelConfig(warmup=WARMUP)), list[str]()
    if train is not None:
        config, notes = propose(train, held_out, model, objective)
    if budget is not None:
        config = replace(config, trial=replace(config.trial, budget_minutes=round(budget.seconds / 60, 2)))
    for name in ("train", "eval", "rehearse"):  # paths in the file are relative to it; names of other sources stay
        source = getattr(config.corpus, name)
        if source is not None and Path(source).exists():
            relative_path = {name: os.path.relpath(source, path.parent)}
            config = replace(config, corpus=replace(config.corpus, **relative_path))
    header = ["Settings of one run. Edit any line; if you remove a line, its setting takes the default.", *notes]
    lines = [f"# {line}" for note in header for line in textwrap.wrap(one_line(note), COMMENT_WIDTH)]
    lines += [f"# Then: mixwright run {path}", "", *_yaml_lines(config)]
    write_text(path, "\n".join(lines) + "\n")
    return notes


def _yaml_lines(record: Any, depth: int = 0) -> Iterator[str]:
    """YAML of a settings record, each field under its comment."""
    comments, indent = read_fields(Path(settings.__file__).read_text(encoding="utf-8"))[type(record).__name__], "  " * depth
    skipped_names = TINY_ONLY_SETTINGS if isinstance(record, ModelConfig) and record.path != TINY_PREFIX else ()
    for setting in dataclasses.fields(record):
        if setting.name in skipped_names:
            continue
        value = getattr(record, setting.name)
        comment = comments.get(setting.name, "")
        if not comment and dataclasses.is_dataclass(value):
            comment = (type(value).__doc__ or "").split("\n", 1)[0]
        comment = re.sub(r"\bNone\b", "null", comment)  # as YAML writes it
        for line in textwrap.wrap(comment, COMMENT_WIDTH - len(indent)):
            yield f"{indent}# {line}"
        if dataclasses.is_dataclass(value):
            yield f"{indent}{setting.name}:"
            yield from _yaml_lines(value, depth + 1)
        else:
            yield f"{indent}{setting.name}: {_inline_yaml(value)}"


def _inline_yaml(value: Any) -> str:
    data = dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
    text = yaml_text(data, default_flow_style=True, width=10**6)
    return text.strip().removesuffix("...").strip()

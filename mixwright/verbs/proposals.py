"""Settings that fit the examples: objective, graders, arms and sizes, each with the reason that its comment gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, PlanConfig, RunConfig, TrainConfig, TrialConfig
from mixwright.config import WarmupConfig as Warmup
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.columns import NAMES, recognise_columns
from mixwright.corpus.proposed_graders import ProposedGrader, proposed_graders
from mixwright.corpus.reading import read_rows
from mixwright.corpus.rows import pc
from mixwright.errors import InputError, join_some
from mixwright.learner.bases import TINY_PREFIX
from mixwright.learner.sources import count_parameters, is_gguf
from mixwright.measure.first_answers import read_first_answers
from mixwright.measure.room import SOLUTION_TOKENS, CompletionLimit, find_room, keep_fitting_corpus, room_for
from mixwright.measure.stage import longest_answer
from mixwright.verbs.output import say

UNKNOWN_COLUMN = "???"
"""Placeholder for a column that the user has to name."""
PROMPT_COLUMNS = ("prompt", "messages", "text", "chosen")
"""Columns of which one must be present."""
OBJECTIVES = ("grpo", "sft", "dpo")
HELD_OUT_ITEMS, MIN_CELL_ITEMS, MAX_CELL_ITEMS = 200, 16, 100
"""Held-out items over all cells; fewest and most of one cell."""
LONG_COMPLETION_TOKENS = 64
"""Completion length, in tokens, from which fewer items and samples are measured."""
MAX_PASSES = {"grpo": 4, "sft": 2, "dpo": 1}
"""Objective -> most passes over the training rows."""
STEP_LIMITS = {"grpo": (10, 60), "sft": (10, 200), "dpo": (10, 100)}
LEARNING_RATES = {"grpo": 1e-6, "sft": 2e-5, "dpo": 1e-6}
"""TRL's own learning rates, for checkpoints."""
LORA_REASON = "LoRA needs a tenth of the memory and ten times the learning rate; null trains all weights."
LORA_RANK, LORA_RATE_FACTOR = 16, 10
"""LoRA rank for checkpoints, and the factor on the learning rate of all weights that TRL's documentation recommends."""
LARGE_MODEL_PARAMETERS = 50_000_000
"""Parameters from which GRPO trains an adapter if there is no accelerator; SFT and DPO always do."""
TINY_LEARNING_RATES = {"grpo": 5e-4, "sft": 1e-3, "dpo": 5e-4}
TINY_COMPLETION_TOKENS = 64
"""Longest completion of a tiny model, tokens: it cannot work anything out at length."""
BATCH_CHARACTERS = 8192
"""Characters of text in a batch of a tiny model on a CPU, about."""


@dataclass(frozen=True)
class Proposal:
    """Settings, with notes and comments about them."""

    config: RunConfig
    """The settings, with paths as they were given."""
    notes: list[str]
    """Lines for the terminal and the top of the file."""
    comments: dict[str, str] = field(default_factory=dict)
    """Path of a setting (`train.objective`) -> reason for its value."""


def propose(train: str, held_out: str | None, model: str | None, objective: str | None) -> Proposal:
    """Settings for a file of examples.

    Args:
        train: source of the examples.
        held_out: source of the held-out ones; None holds a share of the prompts out.
        model: checkpoint; None takes a tiny model.
        objective: as asked; None takes it from the columns.

    Raises:
        InputError: rows that cannot be read or trained on, or an objective that they do not allow.
    """
    if objective is not None and objective not in OBJECTIVES:
        raise InputError(f"--objective {', '.join(OBJECTIVES)}", repr(objective), "Correct it.")
    corpus_config, columns = CorpusConfig(train, held_out), list[str]()
    if Path(train).is_file():
        row, _ = next(read_rows(train, "train"))
        columns = [str(name) for name in row] if isinstance(row, dict) else []
    recognised = recognise_columns(columns)
    taken_columns = [
        f"{ours} from {recognised[ours]!r}"
        for ours in (*PROMPT_COLUMNS, "rejected", "answer", "target")
        if ours in recognised
    ]
    if columns and not any(ours in recognised for ours in PROMPT_COLUMNS):
        corpus_config = replace(corpus_config, columns={"prompt": UNKNOWN_COLUMN, **recognised})
        note = f"Columns found: {', '.join(columns)}. "
        note += f"In corpus.columns, replace {UNKNOWN_COLUMN} with the column that has the prompt. "
        if not taken_columns:
            note += "No answer column was recognized; add it: {answer: COLUMN}. "
        return Proposal(
            RunConfig(corpus_config),
            [note + _format_list("Used", taken_columns) + f"Mixwright's names: {', '.join(NAMES)}."],
        )
    corpus_as_read = read_corpus(corpus_config)
    graders = proposed_graders(corpus_as_read)
    grader_by_task = {task: proposed.grader for task, proposed in graders.items() if proposed.grader is not None}
    corpus = (
        read_corpus(replace(corpus_config, graders=grader_by_task)) if grader_by_task else corpus_as_read
    )  # so completions become answers
    chosen_objective, reason = _choose_objective(
        corpus, graders, objective, answered=_holds_answers_alone(recognised, corpus)
    )
    model_notes, grader_reasons, room = list[str](), dict[str, str](), None
    if chosen_objective != "dpo" and grader_by_task and model:
        corpus, model_notes, grader_reasons, room = _try_model(
            model, corpus, [task for task in graders if task not in grader_by_task]
        )
        grader_by_task = {task: corpus.tasks[task].grader for task in grader_by_task}
    graders_in_use = grader_by_task if chosen_objective != "dpo" else {}
    config, comments = _choose_sizes(
        replace(corpus_config, graders=graders_in_use),
        ModelConfig(model) if model else ModelConfig(),
        corpus if graders_in_use else corpus_as_read,
        chosen_objective,
        set(graders) - set(graders_in_use),
        room,
    )
    counts = join_some([f"{name} ({task.share:.0%})" for name, task in corpus.tasks.items()])
    tasks = f"{len(corpus.tasks)} {'task' if len(corpus.tasks) == 1 else 'tasks'}"
    rows = [f"Found {len(corpus)} examples of {tasks}: {counts}. {_format_list('Columns', taken_columns)}".strip()]
    notes = [*rows, *(f"Columns: {note}" for note in corpus.notes), f"Objective: {reason}", *model_notes]
    comments["train.objective"] = reason
    if len(corpus.notes):
        comments["corpus.columns"] = " ".join(f"{note.rstrip('.')}." for note in corpus.notes)
    comments["corpus.graders"] = " ".join(
        grader_reasons.get(task, f"{task}: {g.why}.") for task, g in list(graders.items())[:8]
    )
    return Proposal(config, notes, comments)


def _try_model(
    model: str, corpus: Corpus, ungraded: Sequence[str]
) -> tuple[Corpus, list[str], dict[str, str], CompletionLimit | None]:
    """What a model that is here shows: graders and room chosen by its first completions, lines to say, task -> reason."""
    if not (Path(model).is_dir() or is_gguf(model)):  # nothing is downloaded to write settings
        return corpus, [], {}, None
    try:
        from mixwright.learner.load import load_learner
        from mixwright.measure.kept_answers import KeepingLearner

        lines: list[str] = []
        say(f"model: loading {model}; its first completions show how long answers are and which graders fit")
        measure = replace(MeasureConfig(), items=MAX_CELL_ITEMS)
        learner = KeepingLearner(load_learner(model), None)
        fitting_corpus, notes = keep_fitting_corpus([learner], corpus, measure)
        room = find_room([learner], fitting_corpus, measure, lines.append, trained=True)
        measure = replace(measure, max_new_tokens=room.tokens, continued_tokens=room.continued)
        first_answers = read_first_answers(
            learner, fitting_corpus, measure, tasks_with_named_grader=ungraded, say=lines.append
        )
    except (ImportError, InputError):  # no torch here, or a model that the run will refuse
        return corpus, [], {}, None
    refusal_note = "".join(f" {note}: the run will refuse these rows." for note in notes)
    room = replace(room, why=f"{room.why[:1].upper()}{room.why[1:]}.{refusal_note}")
    reasons = {answer.task: f"{answer.task}: {answer.reason}." for answer in first_answers}
    return corpus.with_graders({answer.task: answer.grader for answer in first_answers}), lines, reasons, room


def _format_list(title: str, texts: Sequence[str]) -> str:
    return f"{title}: {', '.join(texts)}. " if texts else ""


def _holds_answers_alone(recognised: Mapping[str, str], corpus: Corpus) -> bool:
    """Whether the rows are questions with bare answers: without completions, and without an assistant's turn at the end."""
    if "messages" in recognised or "text" in recognised:
        return False
    if "target" in recognised:
        return recognised.get("answer") == recognised["target"]  # `target` beside `input`, which is the answer
    return recognised != {} or not corpus.table["answer"].null_count  # generated items have answers


def _choose_objective(
    corpus: Corpus, graders: Mapping[str, ProposedGrader], requested: str | None, *, answered: bool
) -> tuple[str, str]:
    """The objective, and why in one sentence; `answered`: the rows hold bare answers and no completions.

    Raises InputError where the rows do not allow it, or any.
    """
    train = corpus.select(split="train").table
    train = train if len(train) else corpus.table
    missing_counts = {name: train[name].null_count for name in ("answer", "target", "chosen", "rejected")}
    ungraded = [task for task, proposed in graders.items() if proposed.grader is None]
    pairless_text = f"{missing_counts['chosen']:,} of {len(train):,} rows are not pairs of chosen and rejected"
    judgeless_text = f"no grader fits {join_some([repr(task) for task in ungraded])}"
    completionless_text = f"{missing_counts['target']:,} of {len(train):,} rows have no completion"
    if 0 < missing_counts["target"] < len(train):
        places = train.filter(pc.is_null(train["target"]))["source"].to_pylist()
        completionless_text += f" ({join_some(places)}): remove them, or end chats with the assistant's turn"
    lack_by_objective = {
        "dpo": pairless_text if missing_counts["chosen"] else "",
        "grpo": judgeless_text if ungraded else "",
        "sft": completionless_text if missing_counts["target"] else "",
    }
    reason_by_objective = {
        "dpo": "the rows are pairs of chosen and rejected",
        "grpo": "the rows are prompts with answers that can be graded",
        "sft": "the rows have completions or end with the assistant's turn"
        + (f", and {judgeless_text}" if ungraded else ""),
    }
    order = ("dpo", "grpo", "sft") if answered else ("dpo", "sft", "grpo")
    possible_objectives = [name for name in order if not lack_by_objective[name]]
    chosen_objective = requested or next(iter(possible_objectives), None)
    if chosen_objective is None or chosen_objective not in possible_objectives:
        got = lack_by_objective[chosen_objective] if chosen_objective else "; ".join(lack_by_objective.values())
        remedy = (
            f"Use --objective {' or '.join(possible_objectives)}."
            if possible_objectives
            else "Add answers, completions or pairs."
        )
        raise InputError(f"rows for {chosen_objective or 'an objective: pairs, answers or completions'}", got, remedy)
    other_objectives = [name for name in possible_objectives if name != chosen_objective]
    others_note = f" (also possible with --objective: {', '.join(other_objectives)})" if other_objectives else ""
    return (
        chosen_objective,
        f"{chosen_objective}, because "
        f"{reason_by_objective[chosen_objective] if not requested else 'you asked for it'}{others_note}.",
    )


def _choose_sizes(
    data: CorpusConfig,
    model: ModelConfig,
    corpus: Corpus,
    objective: str,
    ungraded: set[str],
    room: CompletionLimit | None = None,
) -> tuple[RunConfig, dict[str, str]]:
    """Return settings with sizes that fit these rows and the length of the model's answers, and the reasons."""
    train, held_out = (corpus.select(split=name) for name in ("train", "eval"))
    row_count, cells = len(train), held_out.cells() or corpus.cells()
    is_tiny, measures_success = model.path == TINY_PREFIX, len(ungraded) < len(corpus.tasks)
    completion_tokens, room_reason = MeasureConfig().max_new_tokens, ""
    if measures_success:
        completion_tokens, room_reason = _choose_room(model.path, corpus) if room is None else (room.tokens, room.why)
    min_steps, max_steps = STEP_LIMITS[objective]
    mean_characters = _mean_characters(corpus)
    prompts_per_step = {"grpo": 8, "sft": 16, "dpo": 8}[objective]
    prompts_per_step = max(4, min(prompts_per_step, BATCH_CHARACTERS // mean_characters)) if is_tiny else prompts_per_step
    max_steps = (
        max_steps // 2 if is_tiny and completion_tokens >= LONG_COMPLETION_TOKENS else max_steps
    )  # a CPU, long answers
    steps = max(min_steps, min(max_steps, math.ceil(MAX_PASSES[objective] * row_count / prompts_per_step)))
    held_out_items = HELD_OUT_ITEMS // 2 if completion_tokens >= LONG_COMPLETION_TOKENS else HELD_OUT_ITEMS
    items_per_cell = max(MIN_CELL_ITEMS, min(MAX_CELL_ITEMS, math.ceil(held_out_items / max(len(cells), 1))))
    read_probes = {"sft": ("held_out_loss",), "dpo": ("preference",)}.get(objective, ())
    probes = (*MeasureConfig().probes, *read_probes) if measures_success else read_probes
    measure = MeasureConfig(items=items_per_cell, max_new_tokens=completion_tokens, probes=probes)
    measure = replace(measure, continued_tokens=room.continued) if measures_success and room is not None else measure
    if completion_tokens >= LONG_COMPLETION_TOKENS:
        measure = replace(measure, samples=4)
    learning_rate = (TINY_LEARNING_RATES if is_tiny else LEARNING_RATES)[objective]
    train_config = TrainConfig(
        objective, steps, prompts_per_step, max_new_tokens=completion_tokens, learning_rate=learning_rate
    )
    plan, trial, arms_reason = _choose_arms(corpus, objective, graded=measures_success and not ungraded)
    warmup = Warmup(
        steps=300 if objective == "grpo" else 100, batch_size=max(8, min(64, BATCH_CHARACTERS // mean_characters))
    )
    model = replace(model, warmup=warmup) if is_tiny else model
    uses_lora = not is_tiny and (objective != "grpo" or _is_slow(model.path))
    if uses_lora:
        train_config = replace(train_config, adapter="lora", adapters={"lora": lora_settings(objective)})
    outcome_name = "accuracy on held-out preferences" if objective == "dpo" else "loss on held-out completions"
    outcome_note = f"No answer can be graded, so the primary outcome is the {outcome_name}."
    comments = {
        "measure.items": f"Your held-out rows have {len(cells)} combination{'s' * (len(cells) != 1)} of task and level.",
        "measure.probes": "" if measures_success else outcome_note,
        "measure.max_new_tokens": room_reason,
        "train.steps": f"{steps * prompts_per_step / max(row_count, 1):.2g} passes over the {row_count:,} training rows.",
        "train.learning_rate": "For a tiny model."
        if is_tiny
        else "TRL's default for this objective when all weights train.",
        "train.adapter": LORA_REASON if uses_lora else "",
        "plan.planner": arms_reason,
        "trial.arms": arms_reason,
        "trial.margin": ""
        if measures_success or objective == "dpo"
        else "In nats per token here, because nothing is graded.",
    }
    config = RunConfig(data, model, measure, plan=plan, train=train_config, trial=trial)
    return config, {name: text for name, text in comments.items() if text}


def lora_settings(objective: str) -> dict[str, float]:
    """Options of the adapter `lora` for a checkpoint, and its learning rate."""
    return {"rank": LORA_RANK, "learning_rate": LORA_RATE_FACTOR * LEARNING_RATES[objective]}


def _is_slow(path: str) -> bool:
    """Return whether training all weights is slow: a large model without an accelerator; False if that cannot be found
    out.
    """
    try:
        import torch
        from safetensors import SafetensorError
    except ImportError:  # settings are written without the training extra, too
        return False
    try:
        return not torch.accelerator.is_available() and count_parameters(path) >= LARGE_MODEL_PARAMETERS
    except (InputError, OSError, SafetensorError):  # a model that the run will refuse
        return False


def _choose_arms(corpus: Corpus, objective: str, *, graded: bool) -> tuple[PlanConfig, TrialConfig, str]:
    """Return planner and arms that exist for the objective, and why they are not the defaults."""
    task_count, cell_count = len(corpus.tasks), len(corpus.cells())
    if graded and objective == "grpo":
        return PlanConfig(), TrialConfig(), ""
    if graded and task_count > 1:
        reason = f"{objective.upper()}: the plan keeps the shares of your rows, and replays what the model can already do."
        return PlanConfig(), TrialConfig(nulls=("permuted_weights",)), reason
    trial = TrialConfig(arms=("uniform", "equal_shares") if cell_count > 1 else ("uniform",), nulls=())
    if task_count > 1:
        reason = "Some tasks have no grader, so no loss can be seen in them. The plan keeps the shares of your rows, and "
        reason += "trains like uniform. To change that, name tasks to keep (plan.options: {keep: [...]}) or rows to replay "
        return PlanConfig(), trial, reason + "(corpus.rehearse), and add the arm steered."
    reason = (
        "There is only one task, so there is nothing to weigh: the trial compares training with not training. To change "
    )
    reason += "that, add a task column, or rows of what the model can already do (corpus.rehearse)."
    return PlanConfig("proportional" if objective == "grpo" else None), trial, reason


def _mean_characters(corpus: Corpus) -> int:
    """Mean length of a row's texts, at least 1."""
    table = corpus.table.slice(0, 5000)
    lengths = [pc.sum(pc.utf8_length(table[name])).as_py() or 0 for name in ("prompt", "target", "chosen", "rejected")]
    return max(1, round(sum(lengths) / max(len(table), 1)))


def _choose_room(model: str, corpus: Corpus) -> tuple[int, str]:
    """Longest completion, by the rule of `measure` where the model is here, and what it was taken from."""
    answer_tokens = longest_answer(corpus)
    if model == TINY_PREFIX:
        reason = f"Length of the longest answer; at most {TINY_COMPLETION_TOKENS} for a tiny model on a CPU."
        return min(answer_tokens, TINY_COMPLETION_TOKENS), reason
    measure = MeasureConfig(items=MAX_CELL_ITEMS)
    try:  # from the tokenizer and the context of the checkpoint
        from mixwright.learner.load import load_without_weights

        learner_without_weights = load_without_weights(model)
    except (ImportError, InputError):  # no torch here, or the model is elsewhere: the run says so
        learner_without_weights = None
    if learner_without_weights is not None:
        fitting_corpus, notes = keep_fitting_corpus([learner_without_weights], corpus, measure)
        found_room = room_for([learner_without_weights], fitting_corpus, measure, for_training=True)
        return (
            found_room.tokens,
            f"{found_room.why}.{''.join(f' {note}: the run will refuse these rows.' for note in notes)}",
        )
    if any(task.grader.startswith(("final_answer", "includes")) for task in corpus.tasks.values()):
        return max(answer_tokens, SOLUTION_TOKENS), "Enough for a worked solution; the grader reads its final answer."
    return answer_tokens, "Length of the longest answer, at one token per character in the worst case; at most 256."

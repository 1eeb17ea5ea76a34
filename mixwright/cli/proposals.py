"""Settings that fit the examples: objective, graders, arms and sizes, each with the reason that its comment gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mixwright.cli.output import say
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
from mixwright.measure.free_answers import find_room
from mixwright.measure.room import SOLUTION_TOKENS, Room, keep_fitting_corpus, room_for
from mixwright.measure.stage import longest_answer

UNKNOWN_COLUMN = "???"
"""Stands for a column that the user has to name."""
PROMPT_COLUMNS = ("prompt", "messages", "text", "chosen")
"""Our names of which one is enough."""
OBJECTIVES = ("grpo", "sft", "dpo")
HELD_OUT_ITEMS, MIN_CELL_ITEMS, MOST_CELL_ITEMS = 200, 16, 100
"""Held-out items over all cells; fewest and most of one cell."""
LONG_COMPLETION_TOKENS = 64
"""Tokens of a completion from which fewer of them are sampled."""
MOST_PASSES = {"grpo": 4, "sft": 2, "dpo": 1}
"""How often the training rows are drawn, at most."""
STEP_LIMITS = {"grpo": (10, 60), "sft": (10, 200), "dpo": (10, 100)}
LEARNING_RATES = {"grpo": 1e-6, "sft": 2e-5, "dpo": 1e-6}
"""TRL's own learning rates, for checkpoints."""
LORA_REASON = "LoRA takes a tenth of the memory, and ten times the learning rate; null: all weights."
LORA_RANK, LORA_RATE_FACTOR = 16, 10
"""Of the adapter of checkpoints; the factor is on the learning rate of all weights, as TRL's documentation has it."""
LARGE_ON_A_CPU = 50_000_000
"""Parameters from which GRPO trains an adapter where there is no accelerator; SFT and DPO always do."""
TINY_LEARNING_RATES = {"grpo": 5e-4, "sft": 1e-3, "dpo": 5e-4}
TINY_COMPLETION_TOKENS = 64
"""Longest completion of a tiny model, tokens: it cannot work anything out at length."""
CHARACTERS = 8192
"""Of text in a batch of a tiny model on a CPU, about."""


@dataclass(frozen=True)
class Proposal:
    """Settings and what is to be said of them."""

    config: RunConfig
    """With paths as they were given."""
    notes: list[str]
    """For the terminal and the head of the file."""
    comments: dict[str, str] = field(default_factory=dict)
    """Path of a setting (`train.objective`) -> why it is what it is."""


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
    named, columns = CorpusConfig(train, held_out), list[str]()
    if Path(train).is_file():
        row, _ = next(read_rows(train, "train"))
        columns = [str(name) for name in row] if isinstance(row, dict) else []
    found = recognise_columns(columns)
    taken = [f"{ours} from {found[ours]!r}" for ours in (*PROMPT_COLUMNS, "rejected", "answer", "target") if ours in found]
    if columns and not any(ours in found for ours in PROMPT_COLUMNS):
        named = replace(named, columns={"prompt": UNKNOWN_COLUMN, **found})
        note = f"Columns found: {', '.join(columns)}. "
        note += f"Put the one with the prompt in place of {UNKNOWN_COLUMN} in corpus.columns. "
        if not taken:
            note += "None was recognised as the answer: add it, {answer: ...}. "
        return Proposal(RunConfig(named), [note + _listed("Taken", taken) + f"Our names: {', '.join(NAMES)}."])
    bare = read_corpus(named)
    graders = proposed_graders(bare)
    known = {task: found.grader for task, found in graders.items() if found.grader is not None}
    corpus = read_corpus(replace(named, graders=known)) if known else bare  # so completions become answers
    chosen, why = _objective(corpus, graders, objective, answered=_holds_answers_alone(found, corpus))
    said, read, room = list[str](), dict[str, str](), None
    if chosen != "dpo" and known and model:
        corpus, said, read, room = _with_model(model, corpus, [task for task in graders if task not in known])
        known = {task: corpus.tasks[task].grader for task in known}
    graded = known if chosen != "dpo" else {}
    config = RunConfig(replace(named, graders=graded), ModelConfig(model) if model else ModelConfig())
    config, comments = _sized(config, corpus if graded else bare, chosen, set(graders) - set(graded), room)
    counts = join_some([f"{name} ({task.share:.0%})" for name, task in corpus.tasks.items()])
    tasks = f"{len(corpus.tasks)} {'task' if len(corpus.tasks) == 1 else 'tasks'}"
    rows = [f"Found {len(corpus)} examples of {tasks}: {counts}. {_listed('Columns', taken)}".strip()]
    notes = [*rows, *(f"Columns: {note}" for note in corpus.notes), f"Objective: {why}", *said]
    comments["train.objective"] = why
    if len(corpus.notes):
        comments["corpus.columns"] = " ".join(f"{note.rstrip('.')}." for note in corpus.notes)
    comments["corpus.graders"] = " ".join(read.get(task, f"{task}: {g.why}.") for task, g in list(graders.items())[:8])
    return Proposal(config, notes, comments)


def _with_model(
    model: str, corpus: Corpus, ungraded: Sequence[str]
) -> tuple[Corpus, list[str], dict[str, str], tuple[Room, int] | None]:
    """What a model that is here shows: graders and room chosen by its first completions, lines to say, task -> reason."""
    if not (Path(model).is_dir() or is_gguf(model)):  # nothing is downloaded to write settings
        return corpus, [], {}, None
    try:
        from mixwright.learner.load import load_learner
        from mixwright.measure.kept_answers import KeepingLearner

        lines: list[str] = []
        say(f"model: {model} is loaded; its first completions show how long answers are, and which graders fit")
        sizes = replace(MeasureConfig(), items=MOST_CELL_ITEMS)
        learner = KeepingLearner(load_learner(model), None)
        held, notes = keep_fitting_corpus([learner], corpus, sizes)
        room, continued, _ = find_room([learner], held, sizes, lines.append, trained=True)
        sizes = replace(sizes, max_new_tokens=room.tokens, continued_tokens=continued)
        found = read_first_answers(learner, held, sizes, tasks_with_named_grader=ungraded, say=lines.append)
    except (ImportError, InputError):  # no torch here, or a model that the run will refuse
        return corpus, [], {}, None
    refused = "".join(f" {note}: the run refuses such rows." for note in notes)
    room = replace(room, why=f"{room.why[:1].upper()}{room.why[1:]}.{refused}")
    reasons = {one.task: f"{one.task}: {one.reason}." for one in found}
    return corpus.with_graders({one.task: one.grader for one in found}), lines, reasons, (room, continued)


def _listed(title: str, parts: Sequence[str]) -> str:
    return f"{title}: {', '.join(parts)}. " if parts else ""


def _holds_answers_alone(found: Mapping[str, str], corpus: Corpus) -> bool:
    """Whether the rows are questions with bare answers: without completions, and without an assistant's turn at the end."""
    if "messages" in found or "text" in found:
        return False
    if "target" in found:
        return found.get("answer") == found["target"]  # `target` beside `input`, which is the answer
    return found != {} or not corpus.table["answer"].null_count  # generated items have answers


def _objective(
    corpus: Corpus, graders: Mapping[str, ProposedGrader], asked: str | None, *, answered: bool
) -> tuple[str, str]:
    """The objective, and why in one sentence; `answered`: the rows hold bare answers and no completions.

    Raises InputError where the rows do not allow it, or any.
    """
    train = corpus.select(split="train").table
    train = train if len(train) else corpus.table
    without = {name: train[name].null_count for name in ("answer", "target", "chosen", "rejected")}
    ungraded = [task for task, found in graders.items() if found.grader is None]
    pairless = f"{without['chosen']:,} of {len(train):,} rows are no pairs of chosen and rejected"
    judgeless = f"no completion of {join_some([repr(task) for task in ungraded])} can be graded"
    bare = f"{without['target']:,} of {len(train):,} rows have no completion"
    lacking = {
        "dpo": pairless if without["chosen"] else "",
        "grpo": judgeless if ungraded else "",
        "sft": bare if without["target"] else "",
    }
    reasons = {
        "dpo": "the rows are pairs of chosen and rejected",
        "grpo": "the rows are prompts with answers that can be graded",
        "sft": "the rows have completions, or end in the assistant's turn" + (f", and {judgeless}" if ungraded else ""),
    }
    order = ("dpo", "grpo", "sft") if answered else ("dpo", "sft", "grpo")
    possible = [name for name in order if not lacking[name]]
    chosen = asked or next(iter(possible), None)
    if chosen is None or chosen not in possible:
        got = lacking[chosen] if chosen else "; ".join(lacking.values())
        remedy = f"Take --objective {' or '.join(possible)}." if possible else "Add answers, completions or pairs."
        raise InputError(f"rows for {chosen or 'an objective: pairs, answers or completions'}", got, remedy)
    others = [name for name in possible if name != chosen]
    also = f" ({' and '.join(others)} would be possible, too: --objective)" if others else ""
    return chosen, f"{chosen}, because {reasons[chosen] if not asked else 'it was asked for'}{also}."


def _sized(
    config: RunConfig, corpus: Corpus, objective: str, ungraded: set[str], room: tuple[Room, int] | None = None
) -> tuple[RunConfig, dict[str, str]]:
    """The settings with sizes for these rows and the room that the model showed to need, and the reasons."""
    train, held_out = (corpus.select(split=name) for name in ("train", "eval"))
    rows, cells = len(train), held_out.cells() or corpus.cells()
    tiny, success = config.model.path == TINY_PREFIX, len(ungraded) < len(corpus.tasks)
    longest, room_why = config.measure.max_new_tokens, ""
    if success:
        longest, room_why = _room(config, corpus) if room is None else (room[0].tokens, room[0].why)
    least, most = STEP_LIMITS[objective]
    mean = _characters(corpus)
    prompts = {"grpo": 8, "sft": 16, "dpo": 8}[objective]
    prompts = max(4, min(prompts, CHARACTERS // mean)) if tiny else prompts
    most = most // 2 if tiny and longest >= LONG_COMPLETION_TOKENS else most  # a CPU, long answers
    steps = max(least, min(most, math.ceil(MOST_PASSES[objective] * rows / prompts)))
    wanted = HELD_OUT_ITEMS // 2 if longest >= LONG_COMPLETION_TOKENS else HELD_OUT_ITEMS
    per_cell = max(MIN_CELL_ITEMS, min(MOST_CELL_ITEMS, math.ceil(wanted / max(len(cells), 1))))
    read = {"sft": ("held_out_loss",), "dpo": ("preference",)}.get(objective, ())
    probes = (*MeasureConfig().probes, *read) if success else read
    measure = replace(config.measure, items=per_cell, max_new_tokens=longest, probes=probes)
    measure = replace(measure, continued_tokens=room[1]) if success and room is not None else measure
    if longest >= LONG_COMPLETION_TOKENS:
        measure = replace(measure, samples=4)
    rate = (TINY_LEARNING_RATES if tiny else LEARNING_RATES)[objective]
    made = TrainConfig(objective, steps, prompts, max_new_tokens=longest, learning_rate=rate)
    plan, trial, arms_why = _arms(corpus, objective, graded=success and not ungraded)
    warmup = Warmup(steps=300 if objective == "grpo" else 100, batch_size=max(8, min(64, CHARACTERS // mean)))
    model = replace(config.model, warmup=warmup) if tiny else config.model
    adapts = not tiny and (objective != "grpo" or _is_slow(model.path))
    if adapts:
        made = replace(made, adapter="lora", adapters={"lora": lora_settings(objective)})
    read_instead = "accuracy on held-out preferences" if objective == "dpo" else "loss on held-out completions"
    outcome = f"Nothing can be graded: the primary outcome is the {read_instead}, never called success."
    comments = {
        "measure.items": f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'} of held-out rows here.",
        "measure.probes": "" if success else outcome,
        "measure.max_new_tokens": room_why,
        "train.steps": f"{steps * prompts / max(rows, 1):.2g} passes over the {rows:,} training rows.",
        "train.learning_rate": "For a tiny model." if tiny else "TRL's default for this objective, of all weights.",
        "train.adapter": LORA_REASON if adapts else "",
        "plan.planner": arms_why,
        "trial.arms": arms_why,
        "trial.margin": "" if success or objective == "dpo" else "Here in nats per token.",
    }
    config = replace(config, model=model, measure=measure, train=made, plan=plan, trial=trial)
    return config, {name: text for name, text in comments.items() if text}


def lora_settings(objective: str) -> dict[str, float]:
    """Options of the adapter `lora` for a checkpoint, and its learning rate."""
    return {"rank": LORA_RANK, "learning_rate": LORA_RATE_FACTOR * LEARNING_RATES[objective]}


def _is_slow(path: str) -> bool:
    """Whether steps with all weights take long: a large model, and no accelerator; no where nothing here can tell."""
    try:
        import torch
        from safetensors import SafetensorError
    except ImportError:  # settings are written without the training extra, too
        return False
    try:
        return not torch.accelerator.is_available() and count_parameters(path) >= LARGE_ON_A_CPU
    except (InputError, OSError, SafetensorError):  # a model that the run will refuse
        return False


def _arms(corpus: Corpus, objective: str, *, graded: bool) -> tuple[PlanConfig, TrialConfig, str]:
    """Planner and arms that exist for the objective, and why not the default ones."""
    tasks, cells = len(corpus.tasks), len(corpus.cells())
    if graded and objective == "grpo":
        return PlanConfig(), TrialConfig(), ""
    if graded and tasks > 1:
        why = f"{objective.upper()}: the plan keeps your own shares, and a share for what the model can do already."
        return PlanConfig(), TrialConfig(nulls=("permuted_weights",)), why
    trial = TrialConfig(arms=("uniform", "equal_shares") if cells > 1 else ("uniform",), nulls=())
    if tasks > 1:
        why = "Success is not measured in every task, so nothing is known to be lost: the plan keeps your own shares, and "
        why += "trains as uniform does. Name tasks to keep (plan.options: {keep: [...]}) or rows of them (corpus.rehearse), "
        return PlanConfig(), trial, why + "and add the arm steered."
    why = (
        "One task: there are no weights to plan, so training is compared with not training. A column task, or rows of what "
    )
    why += "the model can do already (corpus.rehearse), would change that."
    return PlanConfig("proportional" if objective == "grpo" else None), trial, why


def _characters(corpus: Corpus) -> int:
    """Mean length of a row's texts, at least 1."""
    table = corpus.table.slice(0, 5000)
    lengths = [pc.sum(pc.utf8_length(table[name])).as_py() or 0 for name in ("prompt", "target", "chosen", "rejected")]
    return max(1, round(sum(lengths) / max(len(table), 1)))


def _room(config: RunConfig, corpus: Corpus) -> tuple[int, str]:
    """Longest completion, by the rule of `measure` where the model is here, and what it was taken from."""
    room = longest_answer(corpus)
    if config.model.path == TINY_PREFIX:
        why = f"As long as the longest answer; at most {TINY_COMPLETION_TOKENS} for a tiny model on a CPU."
        return min(room, TINY_COMPLETION_TOKENS), why
    sizes = replace(config.measure, items=MOST_CELL_ITEMS)
    try:  # from the tokenizer and the context of the checkpoint
        from mixwright.learner.load import load_without_weights

        reader = load_without_weights(config.model.path)
    except (ImportError, InputError):  # no torch here, or the model is elsewhere: the run says so
        reader = None
    if reader is not None:
        held, notes = keep_fitting_corpus([reader], corpus, sizes)
        found = room_for([reader], held, sizes, for_training=True)
        return found.tokens, f"{found.why}.{''.join(f' {note}: the run refuses such rows.' for note in notes)}"
    if any(task.grader.startswith(("final_answer", "includes")) for task in corpus.tasks.values()):
        return max(room, SOLUTION_TOKENS), "Room for a worked solution, of which the grader reads the final answer."
    return room, "As long as the longest answer, one token per character at worst; at most 256."

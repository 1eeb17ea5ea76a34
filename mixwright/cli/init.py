"""Writer of `mixwright run --init`: a run.yaml with every setting, its default, and the comment that config.py gives it."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixwright import config as settings
from mixwright.cli.dry_run import held_out_data, time_configs
from mixwright.cli.output import say
from mixwright.cli.proposals import LEARNING_RATES, UNKNOWN_COLUMN, Proposal, lora_settings, propose
from mixwright.config import CorpusConfig, ModelConfig, RunConfig, WarmupConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InputError, one_line
from mixwright.learner.bases import TINY_PREFIX
from mixwright.run.folder import write_text, yaml_text
from mixwright.run.opening import start_workers
from mixwright.run.progress import format_duration
from mixwright.trial.dry_run import Timing
from mixwright.trial.fitting import Fitted, fit_run, shortest_budget_seconds

PLACEHOLDER = "train.jsonl"
COMMENT_WIDTH = 110
TINY_ONLY_SETTINGS = ("width", "depth", "heads", "vocabulary", "bases", "warmup")
"""Settings of a model that is built on the spot, which a checkpoint has no use for."""
WARMUP = WarmupConfig(steps=300)
"""For a tiny model: enough to have something to measure, on short answers."""


def write_settings(
    train: str | None,
    path: Path,
    *,
    held_out: str | None = None,
    model: str | None = None,
    objective: str | None = None,
    budget_seconds: float | None = None,
) -> list[str]:
    """Write `path` for the examples in `train`; returns what a person should know, one line each.

    Args:
        train: source of the examples; None writes settings with a placeholder.
        path: the new file.
        held_out: source of the held-out examples.
        model: checkpoint; None takes a tiny model that is built on the spot.
        objective: grpo, sft or dpo; None takes it from the columns.
        budget_seconds: seconds that the run may take; sizes are chosen for it by a dry run.

    Raises:
        InputError: `path` is there already, or `train` cannot be used for another reason than the names of its columns.
    """
    if path.exists():
        raise InputError("a new file", "one that is there already", "Choose another with --output.", file=path)
    bare = RunConfig(CorpusConfig(PLACEHOLDER), ModelConfig(warmup=WARMUP))
    found = Proposal(bare, []) if train is None else propose(train, held_out, model, objective)
    if found.config.model.path == TINY_PREFIX and found.config.model.warmup is None:
        found = replace(found, config=replace(found.config, model=ModelConfig(warmup=WARMUP)))
    if budget_seconds is not None and UNKNOWN_COLUMN not in found.config.corpus.columns.values():
        if train is None:
            raise InputError("TRAIN beside --budget", "nothing", "Name the examples: their items and steps are timed.")
        found = fit_proposal(found, budget_seconds)
    config = found.config
    for name in ("train", "eval", "rehearse"):  # paths in the file are relative to it; names of other sources stay
        source = getattr(config.corpus, name)
        if source is not None and Path(source).exists():
            place = {name: os.path.relpath(source, path.parent)}
            config = replace(config, corpus=replace(config.corpus, **place))
    head = ["Settings of one run. Every line may be edited; what is left out keeps the default shown here.", *found.notes]
    lines = [f"# {line}" for note in head for line in textwrap.wrap(one_line(note), COMMENT_WIDTH)]
    lines += [f"# Then: mixwright run {path}", "", *_lines(config, 0, found.comments)]
    write_text(path, "\n".join(lines) + "\n")
    return found.notes


def _lines(record: Any, depth: int, reasons: Mapping[str, str], place: str = "") -> Iterator[str]:
    """YAML of a settings record, each field under its comment and under the reason for its value."""
    comments, indent = _comments()[type(record).__name__], "  " * depth
    left = TINY_ONLY_SETTINGS if isinstance(record, ModelConfig) and record.path != TINY_PREFIX else ()
    for field in dataclasses.fields(record):
        if field.name in left:
            continue
        value = getattr(record, field.name)
        comment = comments.get(field.name, "")
        if not comment and dataclasses.is_dataclass(value):
            comment = (type(value).__doc__ or "").split("\n", 1)[0]
        comment = re.sub(r"\bNone\b", "null", " ".join(comment.split()))  # as YAML writes it
        reason = one_line(reasons.get(f"{place}{field.name}", ""))
        for line in (*textwrap.wrap(comment, width := COMMENT_WIDTH - len(indent)), *textwrap.wrap(reason, width)):
            yield f"{indent}# {line}"
        if dataclasses.is_dataclass(value):
            yield f"{indent}{field.name}:"
            yield from _lines(value, depth + 1, reasons, f"{place}{field.name}.")
        else:
            yield f"{indent}{field.name}: {_inline(value)}"


def _inline(value: Any) -> str:
    data = dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
    text = yaml_text(data, default_flow_style=True, width=10**6)
    return text.strip().removesuffix("...").strip()


def _comments() -> dict[str, dict[str, str]]:
    """Class -> field -> the docstring under the field in config.py: one source for code and file."""
    tree = ast.parse(Path(settings.__file__).read_text(encoding="utf-8"))
    found: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            own = found.setdefault(node.name, {})
            for field, text in itertools.pairwise(node.body):
                is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                    own[field.target.id] = str(text.value.value)  # pyright: ignore[reportAttributeAccessIssue]
    return found


def fit_proposal(found: Proposal, seconds: float) -> Proposal:
    """The proposal with sizes for a budget; its notes say which difference a trial of these sizes would see.

    Args:
        found: settings without a limit of time, their paths as they are from the working directory.
        seconds: that the run may take.

    Raises:
        InputError: too short for any trial that says something, or what the dry run refuses.
    """
    corpus = read_corpus(found.config.corpus)
    data = held_out_data(found.config, corpus)
    if not data.cells:
        raise InputError("held-out rows, for a budget", "none", "Give some: --eval FILE.")
    configs = _variants(found.config)
    say("budget: items and steps are timed first, in about two minutes")
    with start_workers(found.config) as workers:
        timed = time_configs(list(configs.values()), workers, Path())
    timings = {name: (config, timing) for (name, config), timing in zip(configs.items(), timed, strict=True)}
    fitted = fit_run(timings, data, seconds)
    if fitted is None:
        least = format_duration(shortest_budget_seconds(timings, data))
        remedy = "Allow more time, give fewer or shorter held-out rows, or only measure: mixwright measure --budget."
        raise InputError(
            f"a budget of {least} or more, for a trial that can say something", format_duration(seconds), remedy
        )
    twice = fit_run(timings, data, 2 * seconds)
    config = replace(fitted.config, trial=replace(fitted.config.trial, budget_minutes=round(seconds / 60, 2)))
    line = f"Budget: {_format(fitted)}. Twice the time: {_format(twice or fitted)}."
    return Proposal(config, [*found.notes, line], {**found.comments, **_reasons(found.config, config, timings)})


def _variants(config: RunConfig) -> dict[str | None, RunConfig]:
    """The settings for all weights and for LoRA, where the model is a checkpoint; else as they are."""
    if config.model.path == TINY_PREFIX or config.model.adapter is not None:
        return {config.train.adapter: config}
    rate = LEARNING_RATES[config.train.objective]
    every = replace(config.train, adapter=None, adapters={}, learning_rate=rate)
    low = replace(every, adapter="lora", adapters={"lora": lora_settings(config.train.objective)})
    return {"lora": replace(config, train=low), None: replace(config, train=every)}


def _format(found: Fitted) -> str:
    """Room, weights, sizes and time, and what they will see."""
    config = found.config
    weights = "LoRA" if config.train.adapter == "lora" else "all weights"
    weights = "a tiny model" if config.model.path == TINY_PREFIX else weights
    told = f"{config.measure.max_new_tokens} tokens, {weights}, {config.train.steps} steps, {config.trial.seeds} seeds, "
    told += f"{found.items} items: {format_duration(found.seconds)}"
    return told if found.visible is None else f"{told}; would see {100 * found.visible:.0f} points between trained arms"


def _reasons(before: RunConfig, config: RunConfig, timings: Mapping[str | None, tuple[RunConfig, Timing]]) -> dict[str, str]:
    """Why the sizes are what they are."""
    why = {}
    for section, name in (("measure", "items"), ("measure", "samples"), ("train", "steps"), ("trial", "seeds")):
        old, new = (getattr(getattr(one, section), name) for one in (before, config))
        if old != new:
            why[f"{section}.{name}"] = f"For the budget; without one {old}."
    if len(timings) > 1:
        steps = {name: f"{timing.step:.2g}" for name, (_, timing) in timings.items()}
        why["train.adapter"] = f"A step takes {steps['lora']} s with LoRA, and {steps[None]} s with all weights."
    return why

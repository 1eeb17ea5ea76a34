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
from mixwright.cli.dry_run import held_out_data
from mixwright.cli.proposals import UNKNOWN_COLUMN, Proposal, propose
from mixwright.cli.run_budget import format_sizes, time_variants
from mixwright.config import CorpusConfig, ModelConfig, RunConfig, WarmupConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InputError, one_line
from mixwright.learner.bases import TINY_PREFIX
from mixwright.run.folder import write_text, yaml_text
from mixwright.run.progress import format_duration
from mixwright.trial.fitting import Timings, fit_run, shortest_budget_seconds

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
    placeholder_config = RunConfig(CorpusConfig(PLACEHOLDER), ModelConfig(warmup=WARMUP))
    proposal = Proposal(placeholder_config, []) if train is None else propose(train, held_out, model, objective)
    if proposal.config.model.path == TINY_PREFIX and proposal.config.model.warmup is None:
        proposal = replace(proposal, config=replace(proposal.config, model=ModelConfig(warmup=WARMUP)))
    if budget_seconds is not None and UNKNOWN_COLUMN not in proposal.config.corpus.columns.values():
        if train is None:
            raise InputError("TRAIN with --budget", "nothing", "Name the examples: their items and steps are timed.")
        proposal = fit_proposal(proposal, budget_seconds)
    config = proposal.config
    for name in ("train", "eval", "rehearse"):  # paths in the file are relative to it; names of other sources stay
        source = getattr(config.corpus, name)
        if source is not None and Path(source).exists():
            relative_path = {name: os.path.relpath(source, path.parent)}
            config = replace(config, corpus=replace(config.corpus, **relative_path))
    header = [
        "Settings of one run. Edit any line; a line that you remove keeps the default shown here.",
        *proposal.notes,
    ]
    lines = [f"# {line}" for note in header for line in textwrap.wrap(one_line(note), COMMENT_WIDTH)]
    lines += [f"# Then: mixwright run {path}", "", *_yaml_lines(config, 0, proposal.comments)]
    write_text(path, "\n".join(lines) + "\n")
    return proposal.notes


def _yaml_lines(record: Any, depth: int, reason_by_path: Mapping[str, str], path_prefix: str = "") -> Iterator[str]:
    """YAML of a settings record, each field under its comment and under the reason for its value."""
    comments, indent = _read_comments()[type(record).__name__], "  " * depth
    skipped_names = TINY_ONLY_SETTINGS if isinstance(record, ModelConfig) and record.path != TINY_PREFIX else ()
    for field in dataclasses.fields(record):
        if field.name in skipped_names:
            continue
        value = getattr(record, field.name)
        comment = comments.get(field.name, "")
        if not comment and dataclasses.is_dataclass(value):
            comment = (type(value).__doc__ or "").split("\n", 1)[0]
        comment = re.sub(r"\bNone\b", "null", " ".join(comment.split()))  # as YAML writes it
        reason = one_line(reason_by_path.get(f"{path_prefix}{field.name}", ""))
        for line in (*textwrap.wrap(comment, width := COMMENT_WIDTH - len(indent)), *textwrap.wrap(reason, width)):
            yield f"{indent}# {line}"
        if dataclasses.is_dataclass(value):
            yield f"{indent}{field.name}:"
            yield from _yaml_lines(value, depth + 1, reason_by_path, f"{path_prefix}{field.name}.")
        else:
            yield f"{indent}{field.name}: {_inline_yaml(value)}"


def _inline_yaml(value: Any) -> str:
    data = dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
    text = yaml_text(data, default_flow_style=True, width=10**6)
    return text.strip().removesuffix("...").strip()


def _read_comments() -> dict[str, dict[str, str]]:
    """Class -> field -> the docstring under the field in config.py: one source for code and file."""
    tree = ast.parse(Path(settings.__file__).read_text(encoding="utf-8"))
    comments_by_class: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            class_comments = comments_by_class.setdefault(node.name, {})
            for field, text in itertools.pairwise(node.body):
                is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                    class_comments[field.target.id] = str(text.value.value)  # pyright: ignore[reportAttributeAccessIssue]
    return comments_by_class


def fit_proposal(proposal: Proposal, seconds: float) -> Proposal:
    """The proposal with sizes for a budget; its notes say which difference a trial of these sizes would see.

    Args:
        proposal: settings without a limit of time, their paths as they are from the working directory.
        seconds: that the run may take.

    Raises:
        InputError: too short for any trial that says something, or what the dry run refuses.
    """
    corpus = read_corpus(proposal.config.corpus)
    data = held_out_data(proposal.config, corpus)
    if not data.cells:
        raise InputError("held-out rows, for a budget", "none", "Give some: --eval FILE.")
    timings = time_variants(proposal.config, Path())
    fitted = fit_run(timings, data, seconds)
    if fitted is None:
        min_duration = format_duration(shortest_budget_seconds(timings, data))
        remedy = "Allow more time, give fewer or shorter held-out rows, or only measure: mixwright measure --budget."
        raise InputError(
            f"a budget of {min_duration} or more, for a trial that can say something", format_duration(seconds), remedy
        )
    fitted_to_twice = fit_run(timings, data, 2 * seconds)
    config = replace(fitted.config, trial=replace(fitted.config.trial, budget_minutes=round(seconds / 60, 2)))
    note = f"Budget: {format_sizes(fitted)}. Twice the time: {format_sizes(fitted_to_twice or fitted)}."
    return Proposal(
        config, [*proposal.notes, note], {**proposal.comments, **_explain_sizes(proposal.config, config, timings)}
    )


def _explain_sizes(old_config: RunConfig, new_config: RunConfig, timings: Timings) -> dict[str, str]:
    """Why the sizes are what they are."""
    reasons = {}
    for section, name in (("measure", "items"), ("measure", "samples"), ("train", "steps"), ("trial", "seeds")):
        old_value, new_value = (getattr(getattr(run_config, section), name) for run_config in (old_config, new_config))
        if old_value != new_value:
            reasons[f"{section}.{name}"] = f"For the budget; without one {old_value}."
    if len(timings) > 1:
        steps = {name: f"{timing.step_seconds:.2g}" for name, (_, timing) in timings.items()}
        reasons["train.adapter"] = f"A step takes {steps['lora']} s with LoRA, and {steps[None]} s with all weights."
    return reasons

"""Writer of `mixwright run --init`: a run.yaml with every setting, its default, and the comment that config.py gives it."""

from __future__ import annotations

import dataclasses
import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mixwright import config as settings
from mixwright.config import CorpusConfig, ModelConfig, RunConfig
from mixwright.errors import InputError, one_line
from mixwright.learner.bases import TINY_PREFIX
from mixwright.run.folder import write_text, yaml_text
from mixwright.verbs.budget import Budget
from mixwright.verbs.proposals import WARMUP, Proposal, propose
from mixwright.verbs.texts import read_fields

PLACEHOLDER = "train.jsonl"
COMMENT_WIDTH = 110
TINY_ONLY_SETTINGS = ("width", "depth", "heads", "vocabulary", "bases", "warmup")
"""Settings of a tiny model, left out for a checkpoint."""


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
    placeholder_config = RunConfig(CorpusConfig(PLACEHOLDER), ModelConfig(warmup=WARMUP))
    proposal = Proposal(placeholder_config, []) if train is None else propose(train, held_out, model, objective)
    config = proposal.config
    if budget is not None:
        config = replace(config, trial=replace(config.trial, budget_minutes=round(budget.seconds / 60, 2)))
    for name in ("train", "eval", "rehearse"):  # paths in the file are relative to it; names of other sources stay
        source = getattr(config.corpus, name)
        if source is not None and Path(source).exists():
            relative_path = {name: os.path.relpath(source, path.parent)}
            config = replace(config, corpus=replace(config.corpus, **relative_path))
    header = [
        "Settings of one run. Edit any line; if you remove a line, its setting takes the default.",
        *proposal.notes,
    ]
    lines = [f"# {line}" for note in header for line in textwrap.wrap(one_line(note), COMMENT_WIDTH)]
    lines += [f"# Then: mixwright run {path}", "", *_yaml_lines(config, 0, proposal.comments)]
    write_text(path, "\n".join(lines) + "\n")
    return proposal.notes


def _yaml_lines(record: Any, depth: int, reason_by_path: Mapping[str, str], path_prefix: str = "") -> Iterator[str]:
    """YAML of a settings record, each field under its comment and under the reason for its value."""
    comments, indent = read_fields(Path(settings.__file__).read_text(encoding="utf-8"))[type(record).__name__], "  " * depth
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

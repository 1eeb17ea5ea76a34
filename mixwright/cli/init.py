"""Writer of `mixwright run --init`: a run.yaml with every setting, its default, and the comment that config.py gives it."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import os
import re
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mixwright import config as settings
from mixwright.config import CorpusConfig, ModelConfig, RunConfig, WarmupConfig
from mixwright.errors import InputError, one_line, some
from mixwright.runs import write_text, yaml_text

if TYPE_CHECKING:
    pass

PLACEHOLDER = "train.jsonl"
UNKNOWN = "???"
"""Stands for a column that the user has to name."""
PROMPTS = ("prompt", "messages", "text", "chosen")
"""Our names of which one is enough."""
COMMENT_WIDTH = 110
WARMUP = WarmupConfig(steps=300)
"""For a tiny model: enough to have something to measure, on short answers."""


def write_settings(train: str | None, path: Path) -> list[str]:
    """Write `path` for the examples in `train`; returns what a person should know, one line each.

    Raises:
        InputError: `path` is there already, or `train` cannot be read for another reason than the names of its columns.
    """
    if path.exists():
        raise InputError("a new file", "one that is there already", "Choose another with --output.", file=path)
    config, notes = (RunConfig(CorpusConfig(PLACEHOLDER)), []) if train is None else _propose(train)
    source = config.corpus.train
    if Path(source).exists():  # paths in the file are relative to the file
        source = os.path.relpath(source, path.parent)
    config = dataclasses.replace(
        config, model=ModelConfig(warmup=WARMUP), corpus=dataclasses.replace(config.corpus, train=source)
    )
    head = ["Settings of one run. Every line may be edited; what is left out keeps the default shown here.", *notes]
    lines = [f"# {line}" for note in head for line in textwrap.wrap(one_line(note), COMMENT_WIDTH)]
    lines += [f"# Then: mixwright run {path}", "", *_lines(config, 0)]
    write_text(path, "\n".join(lines) + "\n")
    return notes


def _propose(train: str) -> tuple[RunConfig, list[str]]:
    """Settings that fit the examples, and notes about them."""
    from mixwright.corpus import read_corpus
    from mixwright.corpus.columns import NAMES, recognised

    named = CorpusConfig(train)
    columns = _file_columns(train)
    found = recognised(columns)
    taken = [f"{ours} from {found[ours]!r}" for ours in (*PROMPTS, "answer", "target") if ours in found]
    if columns and not any(ours in found for ours in PROMPTS):
        named = dataclasses.replace(named, columns={"prompt": UNKNOWN, **found})
        note = f"Columns found: {', '.join(columns)}. Put the one with the prompt in place of {UNKNOWN} in corpus.columns. "
        if not taken:
            note += "None was recognised as the answer: add it, {answer: ...}. "
        return RunConfig(named), [note + _listed("Taken", taken) + f"Our names: {', '.join(NAMES)}."]
    corpus = read_corpus(named)
    # naming a grader for each task also makes the completions of prompt/completion rows its answers
    graders = {name: task.grader for name, task in corpus.tasks.items() if task.kind != "preference"}
    config = RunConfig(dataclasses.replace(named, graders=graders))
    from mixwright.measure.stage import longest_answer

    room = longest_answer(corpus)
    config = dataclasses.replace(
        config,
        measure=dataclasses.replace(config.measure, max_new_tokens=room),
        train=dataclasses.replace(config.train, max_new_tokens=room),
    )
    counts = some([f"{name} ({task.share:.0%})" for name, task in corpus.tasks.items()])
    return config, [
        f"Found {len(corpus)} examples of {len(corpus.tasks)} tasks: {counts}. {_listed('Columns', taken)}".strip()
    ]


def _listed(title: str, parts: list[str]) -> str:
    return f"{title}: {', '.join(parts)}. " if parts else ""


def _file_columns(train: str) -> list[str]:
    """Columns of a file's first row; empty for other sources."""
    from mixwright.corpus.reading import read_rows

    if not Path(train).is_file():
        return []
    row, _ = next(read_rows(train, "train"))
    return [str(name) for name in row] if isinstance(row, dict) else []


def _lines(record: Any, depth: int) -> Iterator[str]:
    """YAML of a settings record, each field under its comment."""
    comments, indent = _comments()[type(record).__name__], "  " * depth
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        comment = comments.get(field.name) or (_summary(value) if dataclasses.is_dataclass(value) else "")
        comment = re.sub(r"\bNone\b", "null", " ".join(comment.split()))  # as YAML writes it
        for line in textwrap.wrap(comment, COMMENT_WIDTH - len(indent)):
            yield f"{indent}# {line}"
        if dataclasses.is_dataclass(value):
            yield f"{indent}{field.name}:"
            yield from _lines(value, depth + 1)
        else:
            yield f"{indent}{field.name}: {_inline(value)}"


def _inline(value: Any) -> str:
    data = dict(value) if isinstance(value, Mapping) else list(value) if isinstance(value, tuple) else value
    text = yaml_text(data, default_flow_style=True, width=10**6)
    return text.strip().removesuffix("...").strip()


def _summary(record: Any) -> str:
    return (type(record).__doc__ or "").split("\n", 1)[0]


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

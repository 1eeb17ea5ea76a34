"""Verb `audit`: leaks, repeats and contradictions in training data, and files in which they are mended."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from mixwright.audit.cleaned import (
    Cleaned,
    can_be_cleaned,
    check_cleaned_file,
    clean,
    manifest_of,
    rows_to_drop,
    write_cleaned,
)
from mixwright.audit.findings import ROWS, check_findings_folder, worst_first, write_findings
from mixwright.audit.stage import run_audit
from mixwright.catalog import list_defaults
from mixwright.config import CorpusConfig, is_address, sources_of
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.reading import refuse_held_out
from mixwright.errors import InputError, join_some
from mixwright.records import Observation
from mixwright.run.folder import write_text
from mixwright.verbs import output
from mixwright.verbs.options import IN_MEMORY, Column, FailOn, File, Full, Json, join_sources, parse_columns
from mixwright.verbs.report import count_findings, findings, wrap
from mixwright.verdict.page.text import format_count, join_words

PAGE = "page.html"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """Findings of an audit, and what they were found in."""

    observations: list[Observation]
    """Errors, then warnings, then notes."""
    corpus: Corpus
    """Rows that were audited."""
    config: CorpusConfig
    """Sources of the rows."""
    cleaned: Cleaned | None = None
    """Rows that are left in the cleaned copy; None without `fix`."""
    written: tuple[str, ...] = ()
    """A line for each file that was written."""


def audit(
    train: list[str] | str | Path | Corpus | CorpusConfig,
    *,
    held_out: Annotated[list[str] | str | Path | None, typer.Option("--eval")] = None,
    column: Column = None,
    task: str = "all",
    grader: str = "exact",
    checks: Annotated[list[str] | Sequence[str] | None, typer.Option("--check")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER")] = None,
    fix: File = None,
    mask: Annotated[bool, typer.Option("--mask")] = False,
    cue: Annotated[list[str] | Sequence[str] | None, typer.Option(metavar="COLUMN")] = None,
    context: Annotated[list[str] | Sequence[str] | None, typer.Option(metavar="COLUMN")] = None,
) -> AuditReport:
    """Find leaks, repeats and contradictions in training data. Needs no model.

    From Python, rows can also be a `Corpus`, or a `CorpusConfig`, which names held-out items itself.

    Examples:
        >>> for seen in audit("train.jsonl", checks=["duplicates"]).observations:
        ...     print(seen.severity, seen.task, seen.count, "of", seen.total)
        info sum 1 of 41

    Args:
        train: Training rows: JSONL, JSON, CSV, TSV, Parquet, folder, hub name or reasoning-gym:...; repeatable.
        held_out: Held-out items, same formats. Repeatable.
        column: Read a field from another column, such as prompt=question; repeatable; OURS= ignores a column. Fields: id,
            task, prompt, target, answer, level, skills, chosen, rejected, messages, text, split, system, history,
            label.
        task: Task name for rows without a task column.
        grader: Grader of every task.
        checks: Run only this check; repeatable.
        out: Write a page, and a file of all rows for each check.
        fix: Write a copy of TRAIN without exact duplicates, empty answers and copies of held-out items, and a manifest.
        mask: With --fix: leave wrong steps out of the loss (column mask, or train: false).
        cue: Column whose values may give the answer away, for the check cues. Repeatable.
        context: Column that the author of the completions saw but the model will not, for the check unseen. Repeatable.

    Raises:
        InputError: data that cannot be read, an unknown check, or a path that is in use.
    """
    config = IN_MEMORY if isinstance(train, Corpus) else train
    if not isinstance(config, CorpusConfig):
        columns = parse_columns(column)
        sources = join_sources(config) or "", join_sources(held_out)
        config = CorpusConfig(*sources, eval_share=0.0, columns=columns, task=task, grader=grader)
    refuse_held_out(config.train)
    _check_files(config, out, fix, mask=mask)
    corpus = train if isinstance(train, Corpus) else read_corpus(config)
    check_options = {"cues": {"columns": tuple(cue or ())}, "unseen": {"columns": tuple(context or ())}}
    if fix is not None:
        cleaned = clean(corpus, checks, check_options, mask=mask)
        observations = cleaned.observations
    else:
        cleaned, observations = None, run_audit(corpus, checks, check_options, whole=out is not None)
    written: list[str] = []
    if fix is not None and cleaned is not None:
        written += _describe(cleaned, fix, write_cleaned(cleaned, config, fix), mask=mask)
    if out is not None:
        written.append(_write_folder(observations, corpus, config, out))
    return AuditReport(observations, corpus, config, cleaned, tuple(written))


def show(
    found: AuditReport,
    *,
    checks: Sequence[str] | None = None,
    fix: Path | None = None,
    fail_on: FailOn = "never",
    full: Full = False,
    as_json: Json = False,
) -> int:
    """Print the report, and return the exit code."""
    left = found.observations if found.cleaned is None else found.cleaned.left
    if as_json:
        for line in found.written:
            output.say(line)
        output.out_json({"observations": found.observations})
        return output.exit_code_of(left, fail_on)
    head = [line for text in (*found.written, _headline(left, found)) for line in wrap(text)]
    tail = [] if fix is None else [f"Next: train on {fix}"]
    if fix is not None and (errors := sorted({one.check for one in left if one.severity == "error"})):
        tail = wrap(f"Next: fix {join_words(errors)}, of which {manifest_of(fix).name} lists the rows; then train on {fix}")
    notable = [one for one in found.observations if one.severity != "info"]
    dropped = [] if found.written or not can_be_cleaned(found.config) else rows_to_drop(notable, found.corpus)
    if dropped:
        tail = [f"Next: {output.command_line('--fix', 'clean.jsonl')}"]
        others = "; the other findings are for you to decide" if sum(one.severity != "info" for one in left) > 1 else ""
        tail.append(f"      (removes {format_count(len(dropped), 'row')}{others})")
    elif not found.written and count_findings(left):
        tail = [f"Every row: {output.command_line('--out', 'audit')}"]
    names = checks or list_defaults("checks")
    middle = findings(worst_first(left), names, other_lines=len(head) + len(tail) + 2, full=full)
    output.out("\n".join([*head, "", *middle, *([""] if tail else []), *tail]))
    return output.exit_code_of(left, fail_on)


def _headline(left: Sequence[Observation], found: AuditReport) -> str:
    counted = count_findings(left)
    if found.cleaned is not None:
        return f"Left to fix or look at: {counted}." if counted else "Nothing left to fix."
    rows, config = Counter(found.corpus.table["split"].to_pylist()), found.config
    sides = [f"{join_some(sources_of(config.train))} ({format_count(rows['train'], 'row')})"]
    sides += [f"{join_some(sources_of(config.eval))} ({rows['eval']:,})"] if config.eval else []
    return f"{counted or 'Nothing to fix'}: {' and '.join(sides)}."


def _check_files(config: CorpusConfig, out: Path | None, fix: Path | None, *, mask: bool) -> None:
    """Raises InputError for a path that cannot be written, or that is in use."""
    if mask and fix is None:
        raise InputError("--fix FILE with --mask", "no --fix", "Name the file that the masked rows are written to.")
    for path in (out, fix):
        if path is not None and is_address(str(path).replace(":/", "://", 1)):  # a path has one slash there
            raise InputError("a path on this machine", str(path), "Write the file here, then copy it.")
    outputs = [] if out is None else [out.resolve()]
    if fix is not None:
        if config is IN_MEMORY:
            raise InputError("a file of training rows to copy", "rows in memory", "Name the file.", file=fix)
        check_cleaned_file(config, fix)
        outputs += [fix.resolve(), manifest_of(fix).resolve()]
    if out is not None:
        check_findings_folder(out)
    sources = [*sources_of(config.train), *sources_of(config.eval)]
    inputs = [Path(name).resolve() for name in sources if Path(name).exists()]
    for path, other in itertools.permutations([*inputs, *outputs], 2):
        if path in outputs and (path == other or path in other.parents or (other.is_dir() and other in path.parents)):
            got, remedy = f"{path.name} and {other.name}, which overlap", "Choose other names."
            raise InputError("different files", got, remedy, file=path)


def _write_folder(observations: Sequence[Observation], corpus: Corpus, config: CorpusConfig, out: Path) -> str:
    from mixwright.verdict.audit_page import render_audit_page

    write_findings(observations, out)
    counts = dict(Counter(corpus.table["split"].to_pylist()))
    about = f"audit of {join_words([*sources_of(config.train), *sources_of(config.eval)])}"
    write_text(out / PAGE, render_audit_page(observations, about, counts))
    return f"Page: {out / PAGE}; all rows: {out / ROWS}"


def _describe(cleaned: Cleaned, fix: Path, manifest: Path, *, mask: bool) -> list[str]:
    """Return a line on the cleaned copy, and one on its masks."""
    removed = join_words([f"{count:,} by {check}" for check, count in cleaned.counts().items()]) or "none"
    rows = format_count(cleaned.kept, "row")
    lines = [f"{fix}: {rows}; {len(cleaned.dropped):,} removed ({removed}), listed in {manifest.name}."]
    if mask:
        lines.append(f"Wrong steps of {format_count(len(cleaned.masked), 'row')} are masked: kept as context, not trained.")
    return lines

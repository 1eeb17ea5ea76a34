"""The audit's files: a folder with a page and all rows, a cleaned copy, a balanced one, and what to add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mixwright.audit.balanced import balance
from mixwright.audit.cleaned import Cleaned, check_cleaned_file, clean, manifest_of, write_cleaned
from mixwright.audit.cues import find_cues
from mixwright.audit.findings import ROWS, check_findings_folder, write_findings
from mixwright.audit.holes import find_coverage
from mixwright.audit.rows import list_for_files
from mixwright.audit.shards import audited_by
from mixwright.audit.stage import run_audit
from mixwright.audit.top_up import check_top_up_file, rows_file, write_top_up
from mixwright.cli.output import MAX_OBSERVATIONS, format_pairs, say
from mixwright.config import CorpusConfig, is_address, sources_of
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.tool_messages import calls_as_text
from mixwright.errors import InputError, one_line
from mixwright.graders import import_function
from mixwright.records import Observation
from mixwright.run.folder import write_text
from mixwright.verdict.page.text import format_count, join_words

PAGE = "page.html"


@dataclass(frozen=True)
class Files:
    """What an audit writes."""

    out: Path | None = None
    """Folder of the findings."""
    fix: Path | None = None
    """File of the cleaned copy."""
    mask: bool = False
    """Whether the cleaned copy masks what checks list as wrong."""
    balance: Path | None = None
    """File of the copy with balanced pairs."""
    top_up: Path | None = None
    """File of what to add to train."""


def audit_files(
    config: CorpusConfig,
    checks: Sequence[str] | None,
    files: Files,
    skills: str | None = None,
    cue_columns: Sequence[str] = (),
    context_columns: Sequence[str] = (),
    steps: str | None = None,
    *,
    workers: int = 1,
    cluster: str = "",
) -> list[Observation]:
    """Audit, and write what was asked for; says what was written.

    Args:
        config: the corpus.
        checks: names; None for all.
        files: what to write.
        skills: `package.module:function` that names a row's skills.
        cue_columns: columns whose values may stand in for the rule.
        context_columns: columns that whoever wrote the completions saw and the model will not.
        steps: `package.module:function` that reads a row's steps, for the check traces.
        workers: processes, as `audited_by` takes them.
        cluster: where they run.

    Raises:
        InputError: data that cannot be read, an unknown check, or a place that holds something else.
    """
    _check_files(config, files)
    with calls_as_text():
        corpus = read_corpus(config)
    options = {"cues": {"columns": tuple(cue_columns)}, "unseen": {"columns": tuple(context_columns)}}
    options |= {} if skills is None else {"coverage": {"skills": skills}}
    options |= {} if steps is None else {"traces": {"steps": steps}}
    with audited_by(workers, cluster, corpus):
        cleaned = clean(corpus, checks, options, mask=files.mask) if files.fix is not None else None
        if cleaned is None:
            with list_for_files():
                observations = run_audit(corpus, checks, options)
        else:
            observations = cleaned.observations
    if files.out is not None:
        _write_folder(observations, corpus, config, files.out)
    if files.fix is not None and cleaned is not None:
        manifest = write_cleaned(cleaned, config, files.fix)
        say(_describe(cleaned, files.fix, manifest, mask=files.mask))
    if files.balance is not None:
        balanced = balance(corpus)
        manifest = write_cleaned(balanced, config, files.balance)
        say(_describe_balanced(balanced, files.balance, manifest))
    if files.top_up is not None:
        holes = find_coverage(corpus, None if skills is None else import_function(skills, None)).holes
        cues = [cue for one in find_cues(corpus, cue_columns) for cue in one.cues]
        counts = write_top_up(holes, cues, corpus, files.top_up)
        told = {"hole": counts["holes"], "cue": counts["cues"]}
        what = join_words([format_count(count, name) for name, count in told.items() if count]) or "nothing"
        text = f"top-up: {files.top_up}, {what}, {counts['wanted']:,} rows to add"
        say(text + (f"; {counts['made']:,} of them were made ({rows_file(files.top_up)})" if counts["made"] else ""))
    return observations


def _check_files(config: CorpusConfig, files: Files) -> None:
    """Raises InputError where something cannot be written, or would take the place of something else."""
    if files.mask and files.fix is None:
        raise InputError("--fix FILE beside --mask", "none", "Name the file that gets the masks.")
    for path in (files.out, files.fix, files.balance, files.top_up):
        if path is not None and is_address(str(path).replace(":/", "://", 1)):  # a path has one slash there
            raise InputError("a place on this machine", str(path), "Write it here, and copy it there.")
    copies = [path for path in (files.fix, files.balance) if path is not None]
    for path in copies:
        check_cleaned_file(config, path, mask=files.mask and path == files.fix)
    if files.out is not None:
        check_findings_folder(files.out)
    if files.top_up is not None:
        check_top_up_file(files.top_up)
    copied = [one for path in copies for one in (path, manifest_of(path))]
    added = [] if files.top_up is None else [files.top_up, rows_file(files.top_up)]
    outputs = [path.resolve() for path in (*copied, *added, *filter(None, [files.out]))]
    sources = [*sources_of(config.train), *sources_of(config.eval)]
    inputs = [Path(name).resolve() for name in sources if Path(name).exists()]
    for number, path in enumerate(outputs):
        for other in (*inputs, *outputs[:number], *outputs[number + 1 :]):
            if path == other or path in other.parents or (other in path.parents and (other in outputs or other.is_dir())):
                raise InputError("files that are apart", f"{path.name} and {other.name}", "Name other places.", file=path)


def _write_folder(observations: Sequence[Observation], corpus: Corpus, config: CorpusConfig, out: Path) -> None:
    from mixwright.verdict.audit_page import render_audit_page

    write_findings(observations, out)
    counts = dict(Counter(corpus.table["split"].to_pylist()))
    about = f"audit of {join_words([*sources_of(config.train), *sources_of(config.eval)])}"
    write_text(out / PAGE, render_audit_page(observations, about, counts))
    say(f"page: {out / PAGE}; all rows: {out / ROWS}")


def _describe(cleaned: Cleaned, fix: Path, manifest: Path, *, mask: bool) -> str:
    """One line on what a cleaned copy left out, and one on what it could not decide."""
    counts = cleaned.counts()
    left_out = join_words([f"{count:,} by the check {check}" for check, count in counts.items()]) or "none"
    lines = [f"cleaned copy: {fix}, {format_count(cleaned.kept, 'row')}; left out: {left_out} ({manifest.name} lists them)"]
    if cleaned.masked:
        lines.append(f"masked: the wrong steps of {format_count(len(cleaned.masked), 'row')}, which stay in the context")
    elif mask:
        lines.append("masked: nothing, because no check that ran lists wrong steps")
    if not cleaned.kept:
        lines.append("no row is left: all of them repeat each other or stand among the held-out items")
    if cleaned.left:
        lines.append(f"left for you: {format_count(len(cleaned.left), 'finding')} ({manifest.name} names their rows)")
        lines += [one_line(f"  {one.check}: {one.message}{format_pairs(one)}") for one in cleaned.left[:MAX_OBSERVATIONS]]
    return "\n".join(lines)


def _describe_balanced(balanced: Cleaned, path: Path, manifest: Path) -> str:
    """One line on the copy, and one on what is still one-sided in it."""
    left_out = f"left out: {format_count(len(balanced.dropped), 'pair')} of the commoner kinds ({manifest.name} lists them)"
    lines = [f"balanced copy: {path}, {format_count(balanced.kept, 'row')}; {left_out}"]
    if balanced.left:
        lines.append(f"still there: {format_count(len(balanced.left), 'finding')} of the check preferences")
    return "\n".join(lines)

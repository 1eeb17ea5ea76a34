"""The audit's report, and its files: a folder with a page and all rows, a cleaned copy, a balanced one, rows to add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass
from pathlib import Path

from mixwright.audit.balanced import balance
from mixwright.audit.cleaned import (
    Cleaned,
    can_be_cleaned,
    check_cleaned_file,
    clean,
    manifest_of,
    rows_to_drop,
    write_cleaned,
)
from mixwright.audit.cues import find_cues
from mixwright.audit.findings import ROWS, check_findings_folder, write_findings
from mixwright.audit.holes import find_coverage
from mixwright.audit.rows import list_for_files
from mixwright.audit.shards import audited_by
from mixwright.audit.stage import run_audit
from mixwright.audit.top_up import check_top_up_file, rows_file, write_top_up
from mixwright.catalog import listing
from mixwright.config import CorpusConfig, is_address, sources_of
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.reading import refuse_held_out
from mixwright.corpus.tool_messages import calls_as_text
from mixwright.errors import InputError, join_some, one_line
from mixwright.graders import import_function
from mixwright.records import Observation
from mixwright.run.folder import write_text
from mixwright.verbs.output import command_line, out, out_json, say
from mixwright.verbs.report import count_findings, findings, wrap
from mixwright.verdict.page.text import format_count, join_words

PAGE = "page.html"


@dataclass(frozen=True)
class Files:
    """Files that an audit writes."""

    out: Path | None = None
    """Folder of the page and of all rows of the findings."""
    fix: Path | None = None
    """File of the cleaned copy."""
    mask: bool = False
    """Whether the cleaned copy masks wrong steps."""
    balance: Path | None = None
    """File of the copy with balanced pairs."""
    top_up: Path | None = None
    """File of rows to add to train."""


def audit_files(
    config: CorpusConfig,
    checks: Sequence[str] | None,
    files: Files,
    skills: str | None = None,
    cue_columns: Sequence[str] = (),
    context_columns: Sequence[str] = (),
    steps: str | None = None,
    workers: int = 1,
    cluster: str = "",
    *,
    full: bool = False,
    as_json: bool = False,
) -> list[Observation]:
    """Audit, write the files, and print the report.

    Args:
        config: the corpus.
        checks: names; None for all.
        files: to write.
        skills: `package.module:function` that names a row's skills.
        cue_columns: columns whose values may predict the answer.
        context_columns: columns that the writer of the completions saw and the model does not.
        steps: `package.module:function` that reads a row's steps, for the check traces.
        workers: processes, as `audited_by` takes them.
        cluster: the Ray cluster that they run on.
        full: whether the report shows all findings whole.
        as_json: whether it is JSON.

    Raises:
        InputError: data that cannot be read, an unknown check, or a path that is in use.
    """
    refuse_held_out(config.train)
    _check_files(config, files)
    with calls_as_text():
        corpus = read_corpus(config)
    options = {"cues": {"columns": tuple(cue_columns)}, "unseen": {"columns": tuple(context_columns)}}
    options |= {} if skills is None else {"coverage": {"skills": skills}}
    options |= {} if steps is None else {"traces": {"steps": steps}}
    with audited_by(workers, cluster, corpus), list_for_files() if any(astuple(files)) else nullcontext():
        cleaned = clean(corpus, checks, options, mask=files.mask) if files.fix is not None else None
        observations = run_audit(corpus, checks, options) if cleaned is None else cleaned.observations
    written: list[str] = []
    if files.fix is not None and cleaned is not None:
        manifest = write_cleaned(cleaned, config, files.fix)
        written += _describe(cleaned, files.fix, manifest, mask=files.mask)
    if files.out is not None:
        written.append(_write_folder(observations, corpus, config, files.out))
    if files.balance is not None:
        balanced = balance(corpus)
        manifest = write_cleaned(balanced, config, files.balance)
        written.append(_describe_balanced(balanced, files.balance, manifest))
    if files.top_up is not None:
        holes = find_coverage(corpus, None if skills is None else import_function(skills, None)).holes
        cues = [cue for found in find_cues(corpus, cue_columns) for cue in found.cues]
        counts = write_top_up(holes, cues, corpus, files.top_up)
        reasons = {"gap": counts["holes"], "cue": counts["cues"]}
        reason = join_words([format_count(count, name) for name, count in reasons.items() if count]) or "no gap or cue"
        made = f", {counts['made']:,} of them made in {rows_file(files.top_up)}" if counts["made"] else ""
        written.append(f"{files.top_up}: {counts['wanted']:,} rows to add for {reason}{made}.")
    if as_json:
        for line in written:
            say(one_line(line))
        out_json({"observations": observations})
    else:
        left = observations if cleaned is None else cleaned.left
        head = [line for text in (*written, _headline(left, corpus, config, cleaned)) for line in wrap(text)]
        tail = [] if files.fix is None else [f"Next: train on {files.fix}"]
        if not any(astuple(files)) and (dropped := rows_to_drop(observations, corpus)) and can_be_cleaned(config):
            tail = [f"Next: {command_line('--fix', 'clean.jsonl')}"]
            others = "; the other findings are for you to decide" if sum(one.severity != "info" for one in left) > 1 else ""
            tail.append(f"      (takes out {format_count(len(dropped), 'row')}{others})")
        elif not any(astuple(files)) and count_findings(left):
            tail = [f"Every row: {command_line('--out', 'audit')}"]
        names = listing("checks") if checks is None else checks
        middle = findings(left, names, other_lines=len(head) + len(tail) + 2, full=full)
        out("\n".join([*head, "", *middle, *([""] if tail else []), *tail]))
    return observations


def _headline(left: Sequence[Observation], corpus: Corpus, config: CorpusConfig, cleaned: Cleaned | None) -> str:
    counted = count_findings(left)
    if cleaned is not None:
        return f"Left to fix or look at: {counted}." if counted else "Nothing is left to fix."
    rows = Counter(corpus.table["split"].to_pylist())
    sides = [f"{join_some(sources_of(config.train))} ({format_count(rows['train'], 'row')})"]
    sides += [f"{join_some(sources_of(config.eval))} ({rows['eval']:,})"] if config.eval else []
    return f"{counted or 'Nothing to fix'}: {' and '.join(sides)}."


def _check_files(config: CorpusConfig, files: Files) -> None:
    """Raises InputError for a path that cannot be written, or that is in use."""
    if files.mask and files.fix is None:
        raise InputError("--fix FILE with --mask", "no --fix", "Name the file that gets the masks.")
    for path in (files.out, files.fix, files.balance, files.top_up):
        if path is not None and is_address(str(path).replace(":/", "://", 1)):  # a path has one slash there
            raise InputError("a path on this machine", str(path), "Write the file here, then copy it.")
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
                raise InputError("files that do not overlap", f"{path.name} and {other.name}", "Choose others.", file=path)


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
    lines = [f"{fix}: {rows}; {len(cleaned.dropped):,} taken out ({removed}), listed in {manifest.name}."]
    if cleaned.masked:
        lines.append(f"Wrong steps of {format_count(len(cleaned.masked), 'row')} are masked: kept as context, not trained.")
    elif mask:
        lines.append("Nothing is masked: no check that ran lists wrong steps.")
    if not cleaned.kept:
        lines.append("warning: no row is left; every row repeats another or is a held-out item.")
    return lines


def _describe_balanced(balanced: Cleaned, path: Path, manifest: Path) -> str:
    """Return a line on the balanced copy."""
    taken_out = f"{format_count(len(balanced.dropped), 'frequent pair')} taken out, listed in {manifest.name}"
    rest = f"; {format_count(len(balanced.left), 'finding')} of preferences left" if balanced.left else ""
    return f"{path}: {format_count(balanced.kept, 'row')}; {taken_out}{rest}."

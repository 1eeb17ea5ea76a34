"""The audit's files: a folder with a page and all rows, and a cleaned copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from mixwright.audit.cleaned import Cleaned, check_cleaned_file, clean, write_cleaned
from mixwright.audit.findings import ROWS, check_findings_folder, write_findings
from mixwright.audit.rows import list_for_files
from mixwright.audit.stage import run_audit
from mixwright.cli.output import say
from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.records import Observation
from mixwright.run.folder import write_text
from mixwright.verdict.page.text import format_count, join_words

PAGE = "page.html"


def audit_files(config: CorpusConfig, checks: Sequence[str] | None, out: Path | None, fix: Path | None) -> list[Observation]:
    """Audit, and write what was asked for; says what was written.

    Args:
        config: the corpus.
        checks: names; None for all.
        out: folder of the findings.
        fix: file of the cleaned copy.

    Raises:
        InputError: data that cannot be read, an unknown check, or a place that holds something else.
    """
    if fix is not None:
        check_cleaned_file(config, fix)
    if out is not None:
        check_findings_folder(out)
    corpus = read_corpus(config)
    cleaned = clean(corpus, checks) if fix is not None else None
    if cleaned is None:
        with list_for_files():
            observations = run_audit(corpus, checks)
    else:
        observations = cleaned.observations
    if out is not None:
        _write_folder(observations, corpus, config, out)
    if fix is not None and cleaned is not None:
        manifest = write_cleaned(cleaned, config, fix)
        say(_describe(cleaned, fix, manifest))
    return observations


def _write_folder(observations: Sequence[Observation], corpus: Corpus, config: CorpusConfig, out: Path) -> None:
    from mixwright.verdict.audit_page import render_audit_page

    write_findings(observations, out)
    counts = dict(Counter(corpus.table["split"].to_pylist()))
    about = f"audit of {config.train}" + (f" and {config.eval}" if config.eval else "")
    write_text(out / PAGE, render_audit_page(observations, about, counts))
    say(f"page: {out / PAGE}; all rows: {out / ROWS}")


def _describe(cleaned: Cleaned, fix: Path, manifest: Path) -> str:
    """One line on what a cleaned copy left out, and one on what it could not decide."""
    counts = cleaned.counts()
    left_out = join_words([f"{count:,} by the check {check}" for check, count in counts.items()]) or "none"
    lines = [f"cleaned copy: {fix}, {format_count(cleaned.kept, 'row')}; left out: {left_out} ({manifest.name} lists them)"]
    if cleaned.left:
        lines.append(f"left for you: {format_count(len(cleaned.left), 'finding')} that somebody has to look at")
    return "\n".join(lines)

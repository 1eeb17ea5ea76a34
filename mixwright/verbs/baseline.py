"""Accepted baseline of a gate: `verdict --baseline FILE` refuses another model, items or options; `--bless` moves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.errors import InputError
from mixwright.records import RunManifest, Verdict, to_data
from mixwright.run.folder import RunFolder, check_file, read_json, write_json
from mixwright.run.manifest import file_digests
from mixwright.verbs.gating import GATING, Gating
from mixwright.verbs.options import MEASURING, Measuring, parse_graders
from mixwright.verbs.output import say

HOW_ASKED = ("column", "task", "grader", "greedy", "chat_template", "system", "template")
WHAT_PASSES = ("protect", "protect_behaviour", "each", "margin", "same", "cannot_tell", "suite", "suite_seed")
"""Options of `Measuring` and of `Gating` that decide what passes; amounts, such as `--items`, do not."""
DIGEST_LENGTH = 12
"""Characters of a digest that are kept."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Model that was accepted, and the question that it passed."""

    model: str
    """Its name, for people."""
    digests: tuple[str, ...]
    """Of the model, or of the files of its log; sorted."""
    question: Mapping[str, Any]
    """Options that differ from their defaults, and digests of the items and of the user's graders."""
    success: Mapping[str, float]
    """Task -> share of right answers, for people."""
    accepted: str
    """Time in UTC, ISO 8601."""


def check_question(measuring: Measuring, gating: Gating) -> None:
    """Raise InputError if the items or the options are not those of the accepted baseline, or there is none to compare."""
    if (path := gating.baseline) is None:
        return
    check_file(path)
    if not path.exists():
        if gating.bless:
            return
        remedy = "Write it first: compare with a model that you accept, and add --bless."
        raise InputError("the file of an accepted baseline (--baseline)", "nothing", remedy, file=path)
    then, now = read_json(path, Baseline).question, _describe_question(measuring, gating)
    for name in sorted({*then, *now}):
        if then.get(name) != now.get(name):
            expected, got = (question.get(name, "not given") for question in (then, now))
            raise InputError(f"{name}: {expected}, as accepted", str(got), _say_how_to_accept(path), file=path)


def check_model(run: RunFolder, gating: Gating) -> None:
    """Raise InputError if BEFORE of a measured comparison is not the model, or the log, that was accepted."""
    if (path := gating.baseline) is None or not path.is_file():
        return
    accepted, digests = read_json(path, Baseline), _read_digests(run, "before")
    if digests != accepted.digests:
        expected = (
            f"{accepted.model} as BEFORE, as it was accepted on {accepted.accepted[:10]} ({', '.join(accepted.digests)})"
        )
        raise InputError(
            expected, f"a model or log that differs ({', '.join(digests)})", _say_how_to_accept(path), file=path
        )
    say(f"baseline: BEFORE is {accepted.model}, as it was accepted on {accepted.accepted[:10]}")


def bless(run: RunFolder, found: Verdict, measuring: Measuring, gating: Gating) -> None:
    """Write AFTER as the accepted baseline if it passed, or if the gate was left out."""
    if (path := gating.baseline) is None or not gating.bless:
        return
    if gating.gate and found.outcome != "passed":
        say(f"warning: baseline: {path} is not written, because the outcome is {found.outcome}")
        return
    success = {
        change.task: round(change.after, 4) for change in found.tasks if change.level is None and change.after is not None
    }
    now = datetime.now(UTC).isoformat(timespec="seconds")
    digests = _read_digests(run, "after")
    write_json(path, Baseline(found.after, digests, _describe_question(measuring, gating), success, now))
    say(f"baseline: {found.after} is accepted; commit {path}")


def _describe_question(measuring: Measuring, gating: Gating) -> dict[str, Any]:
    """Return the options that were given and decide what passes, and the digests of items and graders."""
    question = {
        f"--{name.replace('_', '-')}": value
        for names, given, default in ((HOW_ASKED, measuring, MEASURING), (WHAT_PASSES, gating, GATING))
        for name in names
        if (value := to_data(getattr(given, name))) not in (to_data(getattr(default, name)), [])
    }
    if measuring.held_out is not None:
        grader_of_all, grader_by_task = parse_graders(measuring.grader)
        config = CorpusConfig(measuring.held_out, grader=grader_of_all or "exact", graders=grader_by_task)
        digests = {"--eval" if name == "train" else name: digest for name, digest in file_digests(config, Path()).items()}
        question |= {name: digest[:DIGEST_LENGTH] for name, digest in digests.items()}
    return question


def _read_digests(run: RunFolder, side: str) -> tuple[str, ...]:
    inputs = read_json(run.manifest, RunManifest).inputs
    return tuple(sorted(digest[:DIGEST_LENGTH] for name, digest in inputs.items() if name.startswith(f"{side}: ")))


def _say_how_to_accept(path: Path) -> str:
    return f"Undo the change; or accept it: delete {path}, and repeat the command with --bless."

"""Accepted baseline of a gate: `verdict --baseline FILE` refuses another model, items or options; `--bless` moves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.errors import InputError
from mixwright.measure.model_judge import digest
from mixwright.records import RunManifest, Verdict, to_data
from mixwright.run.folder import RunFolder, check_file, read_json, write_json
from mixwright.run.manifest import file_digests
from mixwright.verbs.gating import GATING, Gating
from mixwright.verbs.judging import read_rubric
from mixwright.verbs.options import MEASURING, Measuring, parse_graders
from mixwright.verbs.output import say

HOW_ASKED = ("column", "task", "grader", "greedy", "chat_template", "system", "template")
WHAT_PASSES = (
    "protect", "protect_behaviour", "each", "margin", "same", "cannot_tell", "suite", "suite_seed", "judge", "judge_model",
)  # fmt: skip
"""Options of `Measuring` and of `Gating` that decide what passes; amounts, such as `--items`, do not."""
DIGEST_LENGTH = 12
"""Characters of a digest that are kept."""


BEFORE = "BEFORE"
"""Name of the digests of the accepted model, or of its log, in a question."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """Model that was accepted, and the question that it passed."""

    model: str
    """Its name, for people."""
    accepted: str
    """Time in UTC, ISO 8601."""
    question: Mapping[str, Any]
    """Options that differ from their defaults, and digests of the model, the items, the rubric and the user's graders."""
    success: Mapping[str, float]
    """Task -> share of right answers, for people."""


def check_question(measuring: Measuring, gating: Gating) -> None:
    """Raise InputError if the items or the options are not those of the accepted baseline, or there is none."""
    if (path := gating.baseline) is None:
        return
    check_file(path)
    if path.exists():
        _check_same(path, _describe_question(measuring, gating))
    elif not gating.bless:
        remedy = "Write it first: compare with a model that you accept, and add --bless."
        raise InputError("the file of an accepted baseline (--baseline)", "nothing", remedy, file=path)


def check_model(run: RunFolder, gating: Gating) -> None:
    """Raise InputError if BEFORE of a measured comparison is not the model, or the log, that was accepted."""
    if gating.baseline is not None and gating.baseline.is_file():
        accepted = _check_same(gating.baseline, {BEFORE: _read_digests(run, "before")})
        say(f"baseline: BEFORE is {accepted.model}, accepted on {accepted.accepted[:10]}")


def bless(run: RunFolder, found: Verdict, measuring: Measuring, gating: Gating) -> None:
    """Write AFTER as the accepted baseline if it passed, or if the gate was left out."""
    path = gating.baseline
    if path is None or not gating.bless:
        return
    if gating.gate and found.outcome != "passed":
        say(f"warning: baseline: {path} is not written, because the outcome is {found.outcome}")
        return
    tasks = [change for change in found.whole_tasks if change.after is not None]
    success = {change.task: round(change.after or 0.0, 4) for change in tasks}
    question = {BEFORE: _read_digests(run, "after"), **_describe_question(measuring, gating)}
    now = datetime.now(UTC).isoformat(timespec="seconds")
    write_json(path, Baseline(found.after, now, question, success))
    say(f"baseline: {found.after} is accepted; commit {path}")


def _check_same(path: Path, now: Mapping[str, Any]) -> Baseline:
    """Return the accepted baseline. Raises InputError for the first name that differs: of BEFORE, or of all but it."""
    accepted = read_json(path, Baseline)
    then = accepted.question
    for name in sorted(now if BEFORE in now else {*then, *now} - {BEFORE}):
        if then.get(name) != now.get(name):
            expected = f"{name}: {then.get(name, 'not given')}, as {accepted.model} was accepted on {accepted.accepted[:10]}"
            remedy = f"Undo the change; or accept it: delete {path}, and repeat the command with --bless."
            raise InputError(expected, str(now.get(name, "not given")), remedy, file=path)
    return accepted


def _describe_question(measuring: Measuring, gating: Gating) -> dict[str, Any]:
    """Return the options that were given and decide what passes, and the digests of items and graders."""
    question = {
        f"--{name.replace('_', '-')}": value
        for names, given, default in ((HOW_ASKED, measuring, MEASURING), (WHAT_PASSES, gating, GATING))
        for name in names
        if (value := to_data(getattr(given, name))) not in (to_data(getattr(default, name)), [])
    }
    if gating.judge_rubric is not None:
        question["--judge-rubric"] = digest(read_rubric(gating.judge_rubric))
    if measuring.held_out is not None:
        grader_of_all, grader_by_task = parse_graders(measuring.grader)
        config = CorpusConfig(measuring.held_out, grader=grader_of_all or "exact", graders=grader_by_task)
        digests = file_digests(config, Path())
        question |= {"--eval" if name == "train" else name: text[:DIGEST_LENGTH] for name, text in digests.items()}
    return question


def _read_digests(run: RunFolder, side: str) -> list[str]:
    inputs = read_json(run.manifest, RunManifest).inputs
    return sorted(digest[:DIGEST_LENGTH] for name, digest in inputs.items() if name.startswith(f"{side}: "))

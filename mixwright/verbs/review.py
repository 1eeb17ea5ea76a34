"""Verb `review`: five questions about a run, answered from its files, and the 28 findings below them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from mixwright.audit.checks.frequency import Frequency
from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InputError
from mixwright.records import Observation, Teaching, Verdict
from mixwright.run.folder import RunFolder, read_json, read_list, read_plan
from mixwright.verbs import output
from mixwright.verbs.diagnose import Diagnosis
from mixwright.verbs.laboratory import find_word
from mixwright.verbs.options import Full, Json
from mixwright.verbs.report import MAX_LINES, wrap
from mixwright.verdict.review import FindingRow, Review, answer_questions
from mixwright.verdict.rules.findings import NEEDS, NO_PLAN, NO_TEACHING, NO_VERDICT, RunParts

REPLAY = "replay."
"""Begins the names of replayed kinds in mix.jsonl, which are no tasks of the user."""

NOTHING = Observation("diagnose", None, "info", 0, 0, "Nothing was found", "")
"""Stands for rollouts that `diagnose` read and found nothing in."""


def review(folders: Annotated[list[str] | Sequence[str | Path], typer.Argument(metavar="RUN...")]) -> Review:
    """Answer five questions about a run from its files. What competes, is too hard, lopsided or missing, what rows teach.

    Reads verdict.json, plan.yaml, mix.jsonl, teaching.json, audit.json, observations.json and diagnosis.json, those that
    are there. Loads no model.

    Examples:
        >>> review(["runs/run"]).rows[0].name
        'orders'

    Args:
        folders: Folder of a verdict, a plan, an audit (--out) or a run; several are read together.

    Raises:
        InputError: folders without any of these files, or with two verdicts or plans.
    """
    found = answer_questions(read_parts([RunFolder(folder).path for folder in folders]))
    return replace(found, rows=tuple(replace(row, laboratory=find_word(row.name)) for row in found.rows))


def show(found: Review, *, full: Full = False, as_json: Json = False) -> None:
    """Print the findings that are shown, then the answers; with `full` the answers, then all findings."""
    if as_json:
        output.out_json(found)
        return
    lines = list[str]()
    for row in found.rows:
        if row.state == "shown" and not full:
            text = f"{row.title}. {row.remedy.rstrip('.')} (finding: {row.name})."
            lines += wrap(text, first="SHOWN: ", indent="  ")
    for asked, text in found.answers.items():
        lines += wrap(text, lines=None if full else 5, first=f"{asked} ", indent="  ")
    count, needs = Counter(row.state for row in found.rows), Counter(row.needs for row in found.rows if row.needs)
    told = f"{count['shown']} shown, {count['excluded']} ruled out, {count['cannot tell']} not told by these files"
    open_ones = f"{count['needs a file']} need another command{'' if full else '  (--full)'}"
    end = ["", *wrap(f"Of {len(found.rows)} effects that papers report: {told}, {open_ones}")]
    steps = [(needs[text], text.partition(": ")[2]) for text in NEEDS.values() if needs[text]]
    steps = [step for step in steps if not any(step[1] in text for text in found.answers.values())]
    last = [f"To tell {of} more:  {command}" for of, command in steps[:1]]
    if full:
        end += [line for row in found.rows for line in describe_row(row)]
    else:
        lines = lines[: MAX_LINES - len(end) - len(last)]
    output.out("\n".join([*lines, *end, *last]))


def describe_row(row: FindingRow) -> list[str]:
    """Return the lines of one finding."""
    about = (("needs", row.needs), ("to do:", row.remedy), ("the published claim, re-run:", row.laboratory))
    text = "; ".join(f"{name} {text}" for name, text in about if text)
    first = f"{'SHOWN' if row.state == 'shown' else row.state}  {row.name}: {row.title}"
    lines = wrap(first, first="  ") + wrap(row.figure if row.state != "needs a file" else "", lines=None, indent=" " * 6)
    return lines + wrap(text, lines=None, indent=" " * 6)


def read_parts(folders: Sequence[Path]) -> RunParts:
    """Read the records of a run. Raises InputError as `review` does."""
    readers: dict[str, tuple[str, Callable[[Path], list[Any]]]] = {
        "verdict.json": ("verdict", lambda path: [read_json(path, Verdict)]),
        "teaching.json": ("teaching", lambda path: [read_json(path, Teaching)]),
        "plan.yaml": ("plan", lambda path: [read_plan(path)]),
        "audit.json": ("audit", lambda path: read_list(path, Observation)),
        "observations.json": ("audit", lambda path: read_list(path, Observation)),
        "diagnosis.json": ("rollouts", lambda path: read_json(path, Diagnosis).observations or [NOTHING]),
        "mix.jsonl": ("mix", count_shares),
    }
    found = defaultdict[str, list[Any]](list)
    for folder in folders:
        for name, (part, read) in readers.items():
            found[part] += read(folder / name) if (folder / name).is_file() else []
    for part in ("verdict", "teaching", "plan"):
        if len(found[part]) > 1:
            raise InputError(f"one {part}", f"{len(found[part])}", "Name folders of one run.", file=folders[-1])
    if not any(found.values()):
        raise InputError("a folder of a verdict, plan, audit or run", "none of their files", "Name one.", file=folders[0])
    verdict: Verdict = next(iter(found["verdict"]), NO_VERDICT)
    audit, shares = found["audit"] or verdict.audit, dict[str, tuple[float, float]]()
    for one in found["mix"] or audit:
        if one.check == "frequency" and one.evidence and one.task and not one.task.startswith(REPLAY):
            shares[one.task] = (one.evidence[0]["share_of_rows"], one.evidence[0]["share_of_target_tokens"])
    plan, teaching = next(iter(found["plan"]), verdict.plan or NO_PLAN), next(iter(found["teaching"]), NO_TEACHING)
    return RunParts(verdict, tuple(audit), tuple(found["rollouts"]), teaching, plan, shares)


def count_shares(path: Path) -> list[Observation]:
    """Count rows and target tokens of each task of a file; nothing if its columns have names that only the plan was told."""
    with suppress(InputError):
        return Frequency().check(read_corpus(CorpusConfig(str(path), eval_share=0.0)))
    return []

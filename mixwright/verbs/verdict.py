"""Verb `verdict`: a run folder, two checkpoints or two evaluation logs judged, and the gate's answer."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mixwright.config import ADAPTER_FILES
from mixwright.errors import InputError
from mixwright.estimates.looks import Look
from mixwright.logs.reading import find_reader
from mixwright.records import Verdict
from mixwright.run.folder import RunFolder, write_text
from mixwright.run.trackers import check_tracker, log_report
from mixwright.verbs import baseline, output
from mixwright.verbs.compare import check_look_options, compare
from mixwright.verbs.comparison_folder import check_folder
from mixwright.verbs.gating import GATING, Gating
from mixwright.verbs.general import check_before_measuring, compare_on_suite
from mixwright.verbs.init import EXAMPLE
from mixwright.verbs.logs import are_logs, check_log_options, compare_logs
from mixwright.verbs.options import MEASURING, File, Json, LogTo, Measuring, given_flags, is_server
from mixwright.verbs.serving import logs_of_sides
from mixwright.verdict.exported import to_junit, to_markdown
from mixwright.verdict.read_parts import read_pairs
from mixwright.verdict.rules.evidence import Evidence
from mixwright.verdict.rules.gate_question import GateQuestion, question_file, read_question, write_question
from mixwright.verdict.rules.gate_run import check_names
from mixwright.verdict.stage import to_json_ready, write_verdict

COMPARISON = Path("runs/comparison")
OF_TWO_SIDES = ("--until-decided", "--max-items", "--repeat", "--baseline", "--judge")
"""Options that mean nothing where a run folder is judged."""
COLUMNS = ("task", "prompt", "gold", "before", "after", "graded", "score_before", "score_after")
"""Columns of the table for a tracker: fields of a pair of answers."""


def verdict(
    before: Annotated[str | Path | RunFolder | None, typer.Argument(metavar="BEFORE|RUN")] = None,
    after: Annotated[str | Path | None, typer.Argument(metavar="AFTER")] = None,
    *,
    measuring: Measuring | str | Path = MEASURING,
    gating: Gating = GATING,
    example: Annotated[bool, typer.Option("--example")] = False,
    folder: Path | RunFolder | str = COMPARISON,
    markdown: File = None,
    junit: File = None,
    log_to: LogTo = None,
) -> Verdict:
    """Say what a model learned and what it lost. Compares it with the earlier model, and writes a page.

    The page is `verdict.html` in the folder, and `verdict.json` next to it holds the result. From Python, test items can
    take the place of `measuring`. Judging a run folder takes no torch.

    Examples:
        >>> verdict("runs/run").name
        'run'

    Args:
        before: Checkpoint, log or server; or a run folder, without AFTER.
        after: Checkpoint, log or server to compare with BEFORE.
        measuring: Test items, or a `Measuring` of them.
        gating: Question to the gate.
        example: Judge two logs that ship with Mixwright: no model.
        folder: Where a comparison is written.
        markdown: Also write Markdown, for a pull request.
        junit: Also write JUnit XML, for a CI server.
        log_to: Also log a table of items and the page to this tracker, and damage as an alert.

    Raises:
        InputError: options that do not go together, a tracker that is not installed, or a checkpoint, a log, the corpus or
            the folder that cannot be used.
    """
    first, second, run = _find_sides(before, after, folder, example=example)
    measuring = measuring if isinstance(measuring, Measuring) else Measuring(str(measuring))
    if first is None:
        raise InputError("BEFORE and AFTER, or a run folder", "nothing", "To see a report: mixwright verdict --example")
    inputs = (first, second, *(measuring.held_out or "").splitlines())
    check_tracker(log_to)
    check_exports({"--markdown": markdown, "--junit": junit, "--baseline": gating.baseline}, inputs, run)
    if second:
        baseline.check_question(measuring, gating)  # before there is a folder
        with run.keep_lock():
            found = _compare(first, second, measuring, run, gating)
    else:
        _check_run(first, measuring, gating)
        found = _conclude(run, None, gating, is_run=True)
    if markdown is not None:
        write_text(markdown, to_markdown(found))
    if junit is not None:
        write_text(junit, to_junit(found))
    if log_to is not None:
        _log(found, run, log_to)
    baseline.bless(run, found, measuring, gating)
    return found


def show(
    found: Verdict,
    *,
    before: str | None,
    after: str | None,
    folder: Path,
    example: bool,
    why: Annotated[bool, typer.Option("--why", help="Also print how sure the verdict is.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every task and level, with examples.")] = False,
    as_json: Json = False,
) -> int:
    """Print the report, and return the exit code."""
    _, _, run = _find_sides(before, after, folder, example=example)
    if as_json:
        output.out_json(to_json_ready(found))  # not the file, which another command may have replaced
    else:
        output.conclude(run, found, full=full, certainty=why)
    return found.exit_code


def _log(found: Verdict, run: RunFolder, tracker: str) -> None:
    """Log the gate's figures, the page and the answers to a tracker, lost ones first."""
    pairs = sorted(read_pairs(Evidence(run)), key=lambda pair: pair.score_after - pair.score_before)
    mean = found.gate.mean if found.gate is not None else None
    figures = {"gate/outcome": found.outcome} | ({"gate/change": mean.value, "gate/lower": mean.low} if mean else {})
    alarm = found.headline if found.outcome == "damaged" else ""
    log_report(tracker, f"verdict {found.after}", figures, COLUMNS, pairs, page=run.page, alarm=alarm, say=output.say)


def _find_sides(
    before: str | Path | RunFolder | None, after: str | Path | None, folder: Path | RunFolder | str, *, example: bool
) -> tuple[str | None, str | None, RunFolder]:
    """Return both sides as texts, and the folder of the verdict; with `example`, those that ship with Mixwright."""
    if example:
        before, after = (EXAMPLE / f"{name}.jsonl" for name in ("before", "tuned"))
        folder = Path("runs/example") if folder == COMPARISON else folder
    place = folder if after or before is None else before
    run = place if isinstance(place, RunFolder) else RunFolder(place)
    first = before.path if isinstance(before, RunFolder) else before
    return None if first is None else str(first), str(after) if after else None, run


def _check_run(run: str, measuring: Measuring, gating: Gating) -> None:
    """Raises InputError for options of a comparison, or a log, where a run folder is judged."""
    if measuring.held_out is not None:
        raise InputError("AFTER, the checkpoint to compare with BEFORE", "--eval without it", "Name both checkpoints.")
    for name in given_flags(gating):
        if name in OF_TWO_SIDES:
            raise InputError(f"BEFORE AFTER with {name}", "no AFTER", "Name both checkpoints, or leave it out.")
    if find_reader(run) is not None:
        remedy = "Name both logs; of one alone: mixwright measure LOG."
        raise InputError("a run folder, or BEFORE and AFTER", f"one evaluation log, {run}", remedy)
    measuring.check_no_measuring_options()
    is_model = any((Path(run) / name).is_file() for name in ("config.json", *ADAPTER_FILES))
    if is_model or not Path(run).is_dir():
        raise InputError("BEFORE and AFTER, or a run folder", f"{run} alone", "Write: mixwright verdict BEFORE AFTER")


def _compare(before: str, after: str, measuring: Measuring, run: RunFolder, gating: Gating) -> Verdict:
    """Compare two servers, logs or checkpoints, and judge what came of it."""
    if gating.max_items is not None and not gating.until_decided and not gating.asks_general:
        raise InputError("--until-decided with --max-items", "none", "Add it, or use --items (per task and level).")
    alone = Measuring(greedy=measuring.greedy)
    check_folder(run)
    if any(map(is_server, (before, after))) or (gating.judge is not None and not are_logs(before, after)):
        check_log_options(alone, gating)
        gating = compare_logs(*logs_of_sides(before, after, measuring, gating), alone, run, gating)
        return _conclude(run, None, gating)
    if are_logs(before, after):
        was_on = gc.isenabled()
        gc.disable()  # looking for cycles among millions of rows that hold none would take a fifth of the time
        try:
            return _conclude(run, None, compare_logs(before, after, measuring, run, gating))
        finally:
            if was_on:
                gc.enable()
    if gating.asks_general:
        check_look_options(measuring, gating)
        check_before_measuring((before, after), measuring, gating)
        measuring, gating = compare_on_suite(before, measuring, gating)
    return _conclude(run, compare(before, after, measuring, run, gating), gating)


def _conclude(run: RunFolder, look: Look | None, gating: Gating, *, is_run: bool = False) -> Verdict:
    """Note what the gate is asked, and write the reports.

    A run folder is asked again what it was asked, unless options ask something else; one that was measured in interim
    analyses as the last of them was.
    """
    baseline.check_model(run, gating)
    earlier = read_question(run) if look is None else None
    question = replace(gating.question, look=earlier.look if earlier is not None else look)
    if is_run and earlier is not None and gating.question == GateQuestion() != replace(earlier, look=None):
        question = earlier
        output.say(f"the gate is asked what it was asked before; to ask about every task, delete {question_file(run)}")
    check_names(Evidence(run), question)  # first: a name that is not there is refused before anything is written
    if run.path.is_dir():
        write_question(run, question)
    return write_verdict(run, gated=gating.gate, inconclusive=gating.cannot_tell)


def check_exports(exports: Mapping[str, Path | None], inputs: Iterable[str | Path | None], run: RunFolder) -> None:
    """Raise InputError where an export has no name, or would replace an input, a file of the run or the other export."""
    taken = {Path(name).resolve() for name in inputs if name}
    for option, path in exports.items():
        if path is None:
            continue
        if not path.name:
            raise InputError(f"a file for {option}", f"{str(path)!r}", "Name a file, or leave the option out.")
        is_of_run = path.resolve().parent == run.path.resolve() and path.suffix in (".html", ".json", ".jsonl", ".parquet")
        if path.resolve() in taken or is_of_run:
            raise InputError(f"another file for {option}", "an input or another output", "Rename it.", file=path)
        taken.add(path.resolve())

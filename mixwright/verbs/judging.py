"""Body of `mixwright verdict`: a run folder, two checkpoints or two evaluation logs judged, and what the gate says."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from mixwright.errors import InputError
from mixwright.estimates.looks import Look
from mixwright.logs.reading import find_reader
from mixwright.records import Verdict
from mixwright.run.folder import RunFolder, write_text
from mixwright.verbs.comparison_folder import check_folder
from mixwright.verbs.gating import Gating
from mixwright.verbs.logs import are_logs, check_log_options, compare_logs
from mixwright.verbs.options import Measuring, is_server
from mixwright.verdict.exported import to_junit, to_markdown
from mixwright.verdict.rules.gate_question import read_question, write_question
from mixwright.verdict.rules.gate_run import ask_gate
from mixwright.verdict.stage import write_verdict

ShowVerdict = Callable[[RunFolder, Verdict], None]
"""Receives the run folder and its verdict, while what was measured for it is still kept."""


def judge(before: str, after: str | None, measuring: Measuring, folder: Path, gating: Gating, show: ShowVerdict) -> Verdict:
    """Measure where two models are named, judge, write the reports, and have the verdict shown.

    Two evaluation logs are compared as they are, without a model.

    Raises:
        InputError: options that do not go together, a checkpoint, a log, the corpus or the folder cannot be used.
    """
    if measuring.held_out is not None and not after:
        raise InputError("AFTER, the checkpoint to compare with BEFORE", "--eval without it", "Name both checkpoints.")
    gating.check(compares=bool(after), general=bool(after) and gating.asks_general)
    if not after and find_reader(before) is not None:
        remedy = "Name both logs; of one alone: mixwright measure LOG."
        raise InputError("a run folder, or BEFORE and AFTER", f"one evaluation log, {before}", remedy)
    run, look = RunFolder(folder if after else before), None
    if after and any(map(is_server, (before, after))):
        from mixwright.verbs.serving import logs_of_sides

        check_folder(run)
        check_log_options(Measuring(), gating)
        compare_logs(*logs_of_sides(before, after, measuring, gating), Measuring(), run, gating)
    elif after and are_logs(before, after):
        with _collector_paused():
            compare_logs(before, after, measuring, run, gating)
            return _conclude(run, None, gating, show)
    elif after:
        from mixwright.verbs.compare import compare

        if gating.asks_general:
            from mixwright.verbs.general import compare_on_suite

            measuring, gating = compare_on_suite(before, measuring, gating)
        measuring.check_budget()
        look = compare(before, after, measuring, run, gating)
    else:
        measuring.check_no_measuring_options()
    return _conclude(run, look, gating, show)


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Without the search for cycles among millions of rows that hold none, which would take a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _conclude(run: RunFolder, look: Look | None, gating: Gating, show: ShowVerdict) -> Verdict:
    """Note what the gate is asked, write the reports, and have the verdict shown.

    A folder that was measured in interim analyses is asked as the last of them was, whenever it is asked again.
    """
    earlier_question = read_question(run) if look is None else None
    question = replace(gating.question, look=earlier_question.look if earlier_question is not None else look)
    ask_gate(run, question)  # first: a name that is not there is refused before anything is written
    if run.path.is_dir():
        write_question(run, question)
    verdict = write_verdict(run, gated=gating.gate, inconclusive=gating.cannot_tell)
    show(run, verdict)
    return verdict


def check_exports(markdown: Path | None, junit: Path | None, inputs: Iterable[str | Path | None]) -> None:
    """Raise InputError where an export would replace an input, or the other export."""
    taken = {Path(name).resolve() for name in inputs if name}
    for option, path in (("--markdown", markdown), ("--junit", junit)):
        if path is None:
            continue
        if path.resolve() in taken:
            raise InputError(f"another file for {option}", "an input or another output", "Rename it.", file=path)
        taken.add(path.resolve())


def write_exports(verdict: Verdict, markdown: Path | None, junit: Path | None) -> None:
    """Write Markdown and JUnit XML where a file was named for them."""
    if markdown is not None:
        write_text(markdown, to_markdown(verdict))
    if junit is not None:
        write_text(junit, to_junit(verdict))

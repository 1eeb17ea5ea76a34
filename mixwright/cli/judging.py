"""Body of `mixwright verdict`: a run folder judged, or two checkpoints compared and judged, and what the gate says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mixwright.cli import output
from mixwright.cli.gating import Gating
from mixwright.cli.options import Measuring
from mixwright.cli.output import conclude
from mixwright.errors import InputError, one_line
from mixwright.estimates.looks import Look
from mixwright.measure.kept_folder import drop_kept
from mixwright.runs import RunFolder
from mixwright.verdict.basis import gate_answer
from mixwright.verdict.gate_asked import asked_of, write_asked
from mixwright.verdict.gate_ungraded import gate_of
from mixwright.verdict.gate_words import gate_lines
from mixwright.verdict.stage import render


def judge(before: str, after: str | None, asked: Measuring, folder: Path, gating: Gating, *, full: bool = False) -> int:
    """Measure where two checkpoints are named, write the page, print its first screen; returns the exit code.

    Raises:
        InputError: options that do not go together, a checkpoint, the corpus or the folder cannot be used.
    """
    if asked.corpus is not None and not after:
        raise InputError("AFTER, the checkpoint to compare with BEFORE", "--corpus without it", "Name both checkpoints.")
    gating.check(compares=bool(after))
    run, look = RunFolder(folder if after else before), None
    if after:
        from mixwright.cli.compare import compare

        if asked.corpus is None:
            raise InputError("--corpus", "nothing", "Name the examples that both checkpoints are measured on.")
        asked.check_budget()
        look = compare(before, after, asked, run, gating)
    else:
        asked.check_alone()
    code = 0
    if gating.wanted:
        code = _gated(run, gating, look, full=full)
    else:
        conclude(run, render(run), full=full)
    if after and look is None:  # further looks may be asked for, and go on from what is there
        drop_kept(run.path)
    return code


def _gated(run: RunFolder, gating: Gating, look: Look | None, *, full: bool) -> int:
    """Ask the gate, write the page and print its first screen and the gate's lines; the gate's exit code.

    A folder that was measured in looks is asked as its last look was, whenever it is asked again.
    """
    known = asked_of(run) if look is None else None
    question = replace(gating.question, look=known.look if known is not None else look)
    result = gate_of(run, question)  # first: a name that is not there is refused before the page
    write_asked(run, question)
    result = gate_answer(run) or result
    conclude(run, render(run), full=full, without=("gate",))
    output.out("\n".join(f"gate: {one_line(line)}" for line in gate_lines(result, gating.cannot_tell)))
    return result.code(gating.cannot_tell)

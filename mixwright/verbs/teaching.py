"""`mixwright plan MODEL TRAIN --minutes N`: what the rows of each task teach, and what training on one costs the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mixwright.config import MeasureConfig
from mixwright.plan.bursts import watch_bursts
from mixwright.records import Interval, Pull, Taught, Teaching
from mixwright.suite import draw
from mixwright.verbs.direct import read_rows, settle_room
from mixwright.verbs.general import with_suite
from mixwright.verbs.options import Measuring
from mixwright.verbs.output import say
from mixwright.verbs.report import table, wrap
from mixwright.verdict.page.text import format_count, format_interval, format_signed, join_words, percent

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

GENERAL, PER_FAMILY = "general requests", 2
"""Group of general requests that are read after each training, and how many of each family: its easiest."""
MAX_PULLS = 3
"""Pairs that are named in the report."""
MAX_MAPPED = 7
"""Groups that the map has room for."""


def watch_teaching(
    model: str, learner: Learner, train: str, tasks: Sequence[str], measuring: Measuring, minutes: float
) -> Teaching:
    """Train shortly on each task, and read all tasks and general requests.

    Args:
        model: path of the model, as messages call it.
        learner: the same, loaded.
        train: training rows.
        tasks: their tasks.
        measuring: how rows are read and graded.
        minutes: after which no further training begins.

    Raises:
        InputError: nothing can be graded.
    """
    rungs = {family.name: (1,) for family in draw.FAMILIES if family.name not in tasks}
    requests = [row | {"level": None} for row in draw.draw_items(per_rung=PER_FAMILY, rungs=rungs)]
    rows = read_rows(with_suite(model, replace(measuring, train=None, held_out=train), requests))
    ungraded = None if rows.all_rows is None else rows.all_rows.select(tasks=set(rows.all_rows.tasks) - {*rows.corpus.tasks})
    rows, config = settle_room([learner], rows, MeasureConfig(samples=0), measuring)
    general = [row for row in rows.corpus if row.task in rungs]
    return watch_bursts(
        learner,
        rows.corpus,
        replace(config, continued_tokens=0),  # a long answer to one request would take longer than a training
        others={GENERAL: general},
        ungraded=ungraded,
        seconds=60 * minutes,
        say=say,
    )


def teaching_lines(found: Teaching) -> list[str]:
    """Return what the rows teach, and which trainings cost another group something, as lines of a report."""
    header = ("", "before", "unseen items", "minus dealt-out", "trained items", "these rows teach")
    rows = [_taught_row(one) for one in found.taught]
    trainings = max((one.trainings for one in found.taught), default=0)
    heading = f"Short trainings on one task at a time: {found.steps} steps of {found.batch} rows, "
    heading += f"{format_count(trainings, 'time')}; and as many with answers dealt out among the rows."
    lines = ["", *wrap(heading), *table(header, rows, more="teaching.json")]
    lines += _map_lines(found.pulls)
    named = [pull for pull in found.pulls if pull.shown]
    losses = [pull for pull in named if pull.change.value < 0][:MAX_PULLS]
    gains = [pull for pull in reversed(named) if pull.change.value > 0][:MAX_PULLS]
    lines += [line for pull in (*losses, *gains) for line in wrap(describe_pull(pull, found.steps))]
    if not losses:
        lines += wrap(
            f"None of {format_count(len(found.pulls), 'pair')} of tasks shows that training on one costs the other."
        )
    if found.left_out:
        lines += wrap(f"Not tried, for want of rows or time: {join_words(found.left_out)}.")
    return lines


def _map_lines(pulls: Sequence[Pull]) -> list[str]:
    """The map of competition: a row per group that was trained on, a column per group that was read."""
    trained, read = (list(dict.fromkeys(getattr(pull, side) for pull in pulls)) for side in ("trained_on", "read_on"))
    if not pulls or len(read) > MAX_MAPPED:
        return []
    read = sorted(read, key=lambda name: (name not in trained, trained.index(name) if name in trained else 0))
    cells = {(one.trained_on, one.read_on): f"{100 * one.change.value:+.0f}{'*' * one.shown}" for one in pulls}
    rows = [(group, *(cells.get((group, other), "") for other in read)) for group in trained]
    heading = "What training on a row's task did to the others, in points (*: shown, after correction for all pairs):"
    return ["", *wrap(heading), *table(("", *read), rows, more="teaching.json"), ""]


def describe_pull(pull: Pull, steps: int) -> str:
    """Return a pair of groups in a sentence."""
    verb = "cost" if pull.change.value < 0 else "raise"
    size = f"{abs(pull.change.value) * 100:.0f} points"
    low, high = sorted((abs(pull.change.low), abs(pull.change.high)))
    preposition = "" if verb == "cost" else "by "
    return (
        f"{steps} steps of {pull.trained_on} {verb} {pull.read_on} {preposition}{size} [{low * 100:.0f}, {high * 100:.0f}]."
    )


def _taught_row(one: Taught) -> tuple[str, ...]:
    changes = (_format_change(change) for change in (one.unseen, one.over_dealt, one.trained))
    return (one.group, "" if one.before is None else percent(one.before), *changes, one.word)


def _format_change(change: Interval | None) -> str:
    return "" if change is None else f"{format_signed(change.value, 'share')} {format_interval(change, 'share')}"

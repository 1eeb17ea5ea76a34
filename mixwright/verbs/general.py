"""The general suite in `measure` and `verdict`: its items as rows, the rungs that suit a model, and what is left out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mixwright.config import CorpusConfig, ModelConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InconclusiveError, InputError
from mixwright.run.preflight import check_model, check_training_packages
from mixwright.suite import draw
from mixwright.verbs.direct import measure_checkpoint, read_rows
from mixwright.verbs.gating import Gating
from mixwright.verbs.options import EVAL_OPTION, Measuring, parse_columns
from mixwright.verbs.output import say
from mixwright.verdict.page.text import format_count

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

FIRST_RUNGS, HOPEFUL = 2, 0.25
"""Rungs of each family that are asked first, and the share right on one of them from which the harder ones are asked."""
REPLAYED, SEALED, OWN = "kinds that can be replayed", "kinds that are never replayed", "your tasks"
"""Groups of tasks, of each of which a loss has to be ruled out."""


def with_suite(model: str | Learner, measuring: Measuring, rows: Sequence[dict[str, Any]]) -> Measuring:
    """Return the options with items of the suite as rows, each family with its grader; rows of `--eval` come on top.

    Args:
        model: the one that answers first; without a chat template it is not asked for chats of several messages.
        measuring: the options.
        rows: items of the suite.

    Raises:
        InputError: an option that is about rows of one's own, without any.
    """
    _check_own_rows(measuring)
    if not _takes_chats(model, measuring):
        rows = [row for row in rows if isinstance(row["prompt"], str)]
    renamed = parse_columns(measuring.column)
    path = draw.write_suite([{renamed.get(name, name): value for name, value in row.items()} for row in rows])
    families = {row["task"] for row in rows}
    say(f"suite: {format_count(len(rows), 'general request')} of {len(families)} kinds, {path}")
    graders = [f"{family.name}={family.grader}" for family in draw.FAMILIES if family.name in families]
    corpus = "\n".join([str(path), *(measuring.held_out or "").splitlines()])
    samples = 0 if measuring.samples is None else measuring.samples
    return dataclasses.replace(measuring, held_out=corpus, samples=samples, grader=[*graders, *(measuring.grader or ())])


def _check_own_rows(measuring: Measuring) -> None:
    given = [name for name in measuring.given_options() if name in ("--column", "--task", "--grader")]
    if measuring.held_out is None and given:
        raise InputError(f"{EVAL_OPTION} with {', '.join(given)}", "no file", "Name your rows, or leave these options out.")
    if any("=" not in grader for grader in measuring.grader or ()):
        raise InputError("--grader TASK=NAME beside the suite", "one grader for all", "Name your tasks.")


def check_before_measuring(models: Sequence[str], measuring: Measuring, gating: Gating) -> None:
    """Check both models, the rows and the files of a comparison before the first model is asked anything.

    Args:
        models: the earlier model, and the later one, which may be an adapter of it.
        measuring: the options.
        gating: the options.

    Raises:
        InputError: one of them cannot be used.
    """
    _check_own_rows(measuring)
    if measuring.held_out is not None:
        read_rows(measuring, ungraded=True, tell=lambda _: None)
    if gating.trained_on is not None:
        read_corpus(CorpusConfig(gating.trained_on, eval_share=0.0))
    measuring.check_no_server(*models)
    check_training_packages()
    for model in models:
        check_model(ModelConfig(model, measuring.adapter))
    from mixwright.learner.load import check_checkpoint

    for model in models:
        check_checkpoint(model, measuring.adapter, base=None if model == models[0] else models[0])


def _takes_chats(model: str | Learner, measuring: Measuring) -> bool:
    if measuring.chat_template is False:
        return False
    from mixwright.learner.load import load_without_weights

    return (load_without_weights(model) if isinstance(model, str) else model).tokenizer.chat_template is not None


def compare_on_suite(before: str, measuring: Measuring, gating: Gating) -> tuple[Measuring, Gating]:
    """Choose the rungs that suit the earlier model, and return options that compare on further items of these.

    Raises:
        InconclusiveError: too little of the suite suits the model.
    """
    if gating.max_items is not None and gating.max_items < draw.MIN_ITEMS:
        expected = f"--max-items of {draw.MIN_ITEMS} or more"
        raise InputError(expected, f"{gating.max_items}", "Fewer items cannot decide anything.")
    say("suite: choosing levels of difficulty, on separate items")
    alone = dataclasses.replace(measuring, held_out=None, column=None, task=None, grader=None, budget=None, items=None)
    first = {family.name: range(1, min(family.rungs, FIRST_RUNGS) + 1) for family in draw.FAMILIES}
    right = _measure_rungs(before, alone, draw.draw_items(seed=gating.suite_seed, rungs=first))
    harder = {
        family.name: range(FIRST_RUNGS + 1, family.rungs + 1)
        for family in draw.FAMILIES
        if family.rungs > FIRST_RUNGS and any(right.get((family.name, rung), 0.0) >= HOPEFUL for rung in first[family.name])
    }
    if harder:
        right |= _measure_rungs(before, alone, draw.draw_items(seed=gating.suite_seed, rungs=harder))
    rungs = draw.choose_rungs(right)
    ring_items = draw.RING_ITEMS if gating.max_items is None else gating.max_items // 2
    items = draw.draw_to_compare(rungs, seed=gating.suite_seed, ring_items=ring_items)
    items = items if draw.describe_lack(items) else leave_out_trained(items, gating.trained_on)
    if lack := draw.describe_lack(items):
        got = f"{lack} that are neither too easy nor too hard for {before}"
        expected = f"{draw.MIN_FAMILIES} suitable kinds of general requests, {draw.MIN_SEALED} of them never replayed, "
        expected += f"and {draw.MIN_ITEMS} items"
        raise InconclusiveError(expected, got, "Bring your own items: --eval FILE.")
    own = () if measuring.held_out is None else (OWN,)
    groups = {REPLAYED: draw.OPEN_FAMILIES, SEALED: draw.SEALED_FAMILIES}
    rings = {name: tuple(family.name for family in ring if family.name in rungs) for name, ring in groups.items()}
    compared = with_suite(before, measuring, items)
    gating = dataclasses.replace(gating, until_decided=True, rings=rings | dict.fromkeys(own, ()))
    return compared, gating


def _measure_rungs(model: str, measuring: Measuring, rows: list[dict[str, Any]]) -> dict[tuple[str, int], float]:
    """Return the share of right answers by family and rung."""
    found = measure_checkpoint(model, with_suite(model, measuring, rows), None, with_notes=False)[1].measurements
    is_share = [row for row in found if (row.probe, row.name) == ("competence", "greedy")]
    return {(row.task, int(row.level)): row.value for row in is_share if row.level is not None}


def leave_out_trained(rows: list[dict[str, Any]], trained_on: str | None) -> list[dict[str, Any]]:
    """Leave out items that stand in the training rows: the same, nearly the same, or with text around them."""
    if trained_on is None:
        return rows
    from mixwright.audit.leaks import find_leaks

    path = draw.write_suite(rows)
    leaks = find_leaks(corpus := read_corpus(CorpusConfig(trained_on, eval=str(path))))
    overlap = leaks.overlap
    numbers = [number for number, is_shared in zip(overlap.held_out, overlap.shared, strict=True) if is_shared]
    numbers += [leaks.rows[position].number for position in (*leaks.wrapped, *leaks.near)]
    found = {corpus[int(number)].id for number in numbers}
    left = [row for row in rows if row["id"] not in found]
    say(f"suite: {format_count(len(rows) - len(left), 'item')} left out, because they are in {trained_on}")
    return left

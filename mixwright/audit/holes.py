"""What held-out rows need and training rows lack: levels, skills, skills in an order, steps, forms and lengths of answers.

Source: Zhao et al. 2025 (arXiv 2508.01191) for skills, their order and their number; the null is our own.
Left out on purpose: how well the model does there, which `measure` says.
"""

from __future__ import annotations

import bisect
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, NamedTuple

from mixwright.audit.forms import FormCounts, coarse_form
from mixwright.audit.leaks import find_leaks
from mixwright.audit.skills import Function, Skills, call_function, read_skills
from mixwright.audit.text import count_tokens
from mixwright.corpus import Corpus, texts

Kind = Literal["task", "level", "skill", "detail", "pair", "steps", "form", "length"]
KINDS: tuple[Kind, ...] = ("task", "level", "skill", "detail", "pair", "steps", "form", "length")
"""In this order: a row is told the first thing that train lacks for it, and what follows from that is not told again."""
CHANCE = 0.05
"""Probability of an absence by chance, times the things that as many held-out rows need, from which on it is no hole."""
STEPS_PER_DOUBLING = 2
"""Classes of length between one and twice as many tokens."""


class Need(NamedTuple):
    """What a held-out row needs."""

    id: str
    """Of the row."""
    source: str
    """Where it stands."""
    level: float | None
    """Its level."""
    skills: Skills
    """Its skills."""
    form: str
    """Form of its answer; empty where there is none."""
    length: int | None
    """Class of length of its answer."""


@dataclass
class Supply:
    """What training rows have."""

    rows: int = 0
    """How many."""
    levels: set[float | None] = field(default_factory=set)
    """Levels, copies of held-out rows left out."""
    copied_levels: set[float | None] = field(default_factory=set)
    """Levels of copies."""
    skills: set[str] = field(default_factory=set)
    """Skills and other things needed."""
    pairs: set[tuple[str, str]] = field(default_factory=set)
    """Skills that follow each other."""
    pair_rows: int = 0
    """Rows with two skills or more."""
    named_rows: int = 0
    """Rows whose skills a column or a function named."""
    parsed_rows: int = 0
    """Rows whose skills were read from texts."""
    steps: Counter[int] = field(default_factory=Counter)
    """Skills of a row -> rows."""
    forms: FormCounts = field(default_factory=FormCounts)
    """Forms of answers."""
    lengths: Counter[int] = field(default_factory=Counter)
    """Classes of length -> rows."""


@dataclass(frozen=True)
class Hole:
    """One thing that held-out rows of a task need and that train lacks."""

    task: str
    """Task of the rows."""
    kind: Kind
    """What is lacking."""
    what: str
    """Its name, as it is written."""
    rows: tuple[Need, ...]
    """Held-out rows that need it, and lack nothing that comes before in `KINDS`."""
    total: int
    """Held-out rows of the task."""
    chance: float | None
    """Probability that train lacks it, were both drawn alike; None where that is no question."""
    is_hole: bool
    """Chance does not explain it."""


@dataclass(frozen=True)
class Coverage:
    """What was found in a corpus."""

    holes: tuple[Hole, ...]
    """By task, then in the order of `KINDS`; those that chance explains, too."""
    cells: dict[tuple[str, float | None], str]
    """Task and level of held-out rows -> `covered`, or what is missing."""
    supplies: dict[str, Supply]
    """Task -> what its training rows have."""


def find_coverage(corpus: Corpus, function: Function | None = None) -> Coverage:
    """Compare the held-out rows with the training rows. One pass; held-out rows are kept, training rows counted.

    Args:
        corpus: with both splits.
        function: names the skills of a row, where its column does not.

    Raises:
        InputError: `function` fails.
    """
    supplies: dict[str, Supply] = defaultdict(Supply)
    together = Supply()
    needs: dict[str, list[Need]] = defaultdict(list)
    copied = iter(find_leaks(corpus).copied.tolist())
    for batch in corpus.batches():
        names = ("id", "task", "source", "split", "level", "skills", "answer")
        columns = (batch.column(name).to_pylist() for name in names)
        both = (texts(batch, "prompt"), texts(batch, "target"))
        for name, task, source, split, level, named, gold, prompt, target in zip(*columns, *both, strict=True):
            is_copy, answer = next(copied), gold or target or ""
            if is_copy:
                supplies[task].copied_levels.add(level)
                continue
            if function is not None and not named:
                row = {"id": name, "task": task, "prompt": prompt, "answer": answer, "level": level}
                skills = call_function(function, row, source)
            else:
                skills = read_skills(tuple(named or ()), prompt or "", answer)
            need = Need(name, source, level, skills, coarse_form(answer) if answer else "", _length(answer))
            if split == "eval":
                needs[task].append(need)
            else:
                _add(supplies[task], together, need)
    needs = {task: _without_rare_sums(rows, supplies.get(task)) for task, rows in needs.items()}
    needs = {task: _without_one_sided_names(rows, supplies.get(task)) for task, rows in needs.items()}
    holes = [hole for task in sorted(needs) for hole in _holes_of(task, needs[task], supplies.get(task), together)]
    return Coverage(tuple(holes), _cells(needs, holes), dict(supplies))


def _without_rare_sums(needs: list[Need], own: Supply | None) -> list[Need]:
    """The held-out rows of a task, without skills that were parsed where most of its rows show none: they are no skills
    there, but a date, a docstring, or an answer that happens to be JSON.
    """
    parsed = sum(need.skills.parsed and bool(need.skills.sequence or need.skills.others) for need in needs)
    rows = len(needs) + (own.rows if own is not None else 0)
    if 2 * (parsed + (own.parsed_rows if own is not None else 0)) >= rows:
        return needs
    return [need._replace(skills=Skills()) if need.skills.parsed else need for need in needs]


def _without_one_sided_names(needs: list[Need], own: Supply | None) -> list[Need]:
    """The held-out rows of a task, without skills where one side names them and the other does not: nothing is compared."""
    named = any(need.skills.sequence and not need.skills.parsed for need in needs)
    train_names = own is not None and own.named_rows > 0
    if own is None or named == train_names:
        return needs
    return [need._replace(skills=Skills()) for need in needs]


def chance_of_absence(needed: int, held_out: int, train: int) -> float:
    """Probability that none of the rows with some trait is a training row, were rows dealt out at random.

    Args:
        needed: rows with it, all of them held out.
        held_out: held-out rows.
        train: training rows.

    Examples:
        >>> chance_of_absence(1, 100, 300)
        0.25
    """
    return math.prod((held_out - n) / (held_out + train - n) for n in range(needed))


def _length(answer: str) -> int | None:
    tokens = count_tokens(answer)
    return round(STEPS_PER_DOUBLING * math.log2(tokens)) if tokens else None


def _tokens_of(length: int) -> str:
    """The tokens of a class of length, in words."""
    low, high = (2 ** ((length + edge) / STEPS_PER_DOUBLING) for edge in (-0.5, 0.5))
    first, last = math.ceil(low), math.ceil(high) - 1
    return f"{first} to {last} tokens" if last > first else f"{first} tokens" if first > 1 else "1 token"


def _add(own: Supply, together: Supply, need: Need) -> None:
    sequence = need.skills.sequence
    for supply in (own, together):
        supply.rows += 1
        supply.skills.update(sequence, need.skills.others)
        supply.pairs.update(pairwise(sequence))
        supply.pair_rows += len(sequence) > 1
        supply.named_rows += bool(sequence) and not need.skills.parsed
        supply.parsed_rows += need.skills.parsed and bool(sequence or need.skills.others)
    own.levels.add(need.level)
    if sequence:
        own.steps[len(sequence)] += 1
    if need.form:
        own.forms.add(need.form)
    if need.length is not None:
        own.lengths[need.length] += 1


def _holes_of(task: str, needs: list[Need], own: Supply | None, together: Supply) -> list[Hole]:
    """Holes of one task, kind by kind: rows with one are left out of what follows."""
    total = len(needs)
    if own is None:
        return [Hole(task, "task", task, tuple(needs), total, None, is_hole=True)]
    found: list[Hole] = []
    left = needs
    for kind in KINDS[1:]:
        wanted, has, train_rows, is_exact = _wanted(kind, left, own, together)
        rows_by_name: dict[str, list[Need]] = defaultdict(list)
        for need, names in wanted:
            for name in dict.fromkeys(names):
                rows_by_name[name].append(need)
        counts = sorted(map(len, rows_by_name.values()))
        holes = []
        for name, rows in rows_by_name.items():
            if has(name):
                continue
            chance = None if is_exact(name) else chance_of_absence(len(rows), len(left), train_rows)
            as_frequent = len(counts) - bisect.bisect_left(counts, len(rows))
            is_hole = chance is None or chance * as_frequent < CHANCE
            holes.append(Hole(task, kind, name, tuple(rows), total, chance, is_hole))
        found += sorted(holes, key=lambda hole: (-len(hole.rows), hole.what))
        in_hole = {need.id for hole in holes if hole.is_hole for need in hole.rows}
        left = [need for need in left if need.id not in in_hole]
    return found


Wanted = tuple[list[tuple[Need, list[str]]], Callable[[str], bool], int, Callable[[str], bool]]
"""Rows with what each needs, by name; whether train has it; training rows; whether chance is no question."""


def _wanted(kind: Kind, needs: list[Need], own: Supply, together: Supply) -> Wanted:
    """What rows need of one kind."""
    match kind:
        case "level":
            has_levels = own.levels != {None} and bool(own.levels or own.copied_levels)
            levels = {_name_level(level) for level in own.levels if level is not None}
            rows = [(need, [_name_level(need.level)]) for need in needs if has_levels and need.level is not None]
            return rows, levels.__contains__, own.rows, lambda name: True
        case "skill":
            named = {name for need in needs if not need.skills.parsed for name in need.skills.sequence}
            rows = [(need, list(need.skills.sequence)) for need in needs]
            return rows, together.skills.__contains__, own.rows, named.__contains__
        case "detail":
            rows = [(need, list(need.skills.others)) for need in needs]
            return rows, together.skills.__contains__, own.rows, lambda name: False
        case "pair":
            pairs = {_name_pair(pair) for pair in together.pairs}
            rows = [(need, list(map(_name_pair, pairwise(need.skills.sequence)))) for need in needs]
            return rows, pairs.__contains__, own.pair_rows, lambda name: False
        case "steps":
            counts = {_name_steps(count) for count in own.steps}
            rows = [(need, [_name_steps(len(need.skills.sequence))]) for need in needs if need.skills.sequence]
            return rows, counts.__contains__, own.steps.total(), lambda name: False
        case "form":
            are_formats = own.forms.total and not own.forms.spilled and own.forms.are_formats()
            rows = [(need, [need.form]) for need in needs if need.form and are_formats]
            return rows, own.forms.rows_by_form.__contains__, own.forms.total, lambda name: False
        case _:
            longest = max(own.lengths, default=0)
            rows = [(need, [_tokens_of(need.length)]) for need in needs if need.length is not None]
            known = {_tokens_of(need.length) for need in needs if need.length is not None and need.length <= longest}
            return rows, known.__contains__, own.lengths.total(), lambda name: False


def _name_level(level: float) -> str:
    return f"{level + 0.0:.12g}"


def _name_pair(pair: tuple[str, str]) -> str:
    return " > ".join(pair)


def _name_steps(count: int) -> str:
    return f"{count} {'step' if count == 1 else 'steps'}"


def _cells(needs: dict[str, list[Need]], holes: Iterable[Hole]) -> dict[tuple[str, float | None], str]:
    """What each cell of held-out rows lacks."""
    lacking: dict[tuple[str, float | None], list[str]] = {
        (task, need.level): [] for task in sorted(needs) for need in needs[task]
    }
    for hole in holes:
        for level in dict.fromkeys(need.level for need in hole.rows) if hole.is_hole else ():
            lacking[hole.task, level].append(_name_hole(hole))
    return {cell: "; ".join(dict.fromkeys(words)) or "covered" for cell, words in lacking.items()}


def _name_hole(hole: Hole) -> str:
    """What is missing, in a few words."""
    match hole.kind:
        case "task":
            return "the task is not trained"
        case "form":
            return f"form is missing: {hole.what}"
        case "skill" if hole.what.startswith("tool "):
            return f"tool is missing: {hole.what.removeprefix('tool ')}"
        case "level":
            return f"top up: level {hole.what}"
        case "length":
            return f"top up: answers of {hole.what}"
        case _:
            return f"top up: {hole.what}"

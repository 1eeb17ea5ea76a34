"""What held-out rows need and training rows lack: levels, skills, skills in an order, steps, forms and lengths of answers.

Source: Zhao et al. 2025 (arXiv 2508.01191) for skills, their order and their number; the null is our own.
Left out on purpose: how well the model does there, which `measure` says.
"""

from __future__ import annotations

import bisect
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from mixwright.audit.leaks import find_leaks
from mixwright.audit.text import count_tokens
from mixwright.corpus import Corpus, texts
from mixwright.skeleton import skeleton
from mixwright.tool_calls import decode, find_calls

Kind = Literal["task", "level", "skill", "detail", "pair", "steps", "form", "length"]
OF_SKILLS: tuple[Kind, ...] = ("skill", "detail", "pair", "steps")
KINDS: tuple[Kind, ...] = ("level", *OF_SKILLS, "form", "length")
"""In this order: a row is told the first thing that train lacks for it, and what follows from that is not told again."""
CHANCE = 0.05
"""Probability of an absence by chance, times the things that as many held-out rows need, from which on it is no hole."""
STEPS_PER_DOUBLING = 2
"""Classes of length between one and twice as many tokens."""
FEW_FORMS, COVERED_SHARE, MAX_FORMS_KEPT = 5, 0.9, 256
"""Forms of answers are a choice of formats where so many cover that share of a task's rows; forms that are counted."""
LONG_ANSWER_CHARACTERS = 200
"""Characters of an answer above which its last line has its form."""
_NUMBER = re.compile(r"[+-]?9(?:[.,]9)*")
_RUN = re.compile(r"[9a]*9[9a]*")
Names = dict[Kind, list[str]]
"""What a row needs of each kind, each once."""


class Need(NamedTuple):
    """What a row needs, or has."""

    id: str
    """Of the row."""
    source: str
    """Where it stands."""
    level: float | None
    """Its level."""
    names: Names
    """What it needs."""
    length: int | None
    """Class of length of its answer."""
    is_parsed: bool
    """Skills were read from its texts, where nobody named them."""
    is_named: bool
    """A column named its skills."""


@dataclass
class Supply:
    """What training rows have."""

    rows: int = 0
    """How many, copies of held-out rows left out."""
    names: dict[Kind, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Kind -> what they have of it; forms apart."""
    rows_of_kind: Counter[Kind] = field(default_factory=Counter)
    """Kind -> rows that have something of it."""
    forms: Counter[str] = field(default_factory=Counter)
    """Form of answers -> rows; no further rows once there are more forms than are counted."""
    longest: int = 0
    """Class of length of the longest answer."""
    named_rows: int = 0
    """Rows whose skills are named."""
    parsed_rows: int = 0
    """Rows whose skills were read from texts."""

    def add(self, need: Need) -> None:
        """Count a training row."""
        self.rows += 1
        self.named_rows += need.is_named
        self.parsed_rows += need.is_parsed
        self.longest = max(self.longest, need.length or 0)
        for kind, names in need.names.items():
            self.rows_of_kind[kind] += bool(names)
            if kind == "form":
                self.forms.update(names if len(self.forms) <= MAX_FORMS_KEPT else ())
            else:
                self.names[kind].update(names)


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


def find_coverage(corpus: Corpus) -> Coverage:
    """Compare the held-out rows with the training rows. One pass; held-out rows are kept, training rows counted."""
    supplies: dict[str, Supply] = defaultdict(Supply)
    together = Supply()
    needs: dict[str, list[Need]] = defaultdict(list)
    copied = iter(find_leaks(corpus).copied.tolist())
    for batch in corpus.batches():
        for row, target in zip(batch.to_pylist(), texts(batch, "target"), strict=True):
            own = supplies[row["task"]] if row["split"] != "eval" else None
            if next(copied):
                continue
            need = _read_need(row, row["answer"] or target)
            if own is None:
                needs[row["task"]].append(need)
            else:
                own.add(need)
                together.add(need)
    needs_by_task = {task: _with_comparable_skills(rows, supplies.get(task)) for task, rows in sorted(needs.items())}
    holes = [hole for task, rows in needs_by_task.items() for hole in _holes_of(task, rows, supplies.get(task), together)]
    return Coverage(tuple(holes), _cells(needs_by_task, holes))


def _read_need(row: Mapping[str, Any], answer: str) -> Need:
    skills, level, tokens = read_skills(tuple(row["skills"] or ()), answer), row["level"], count_tokens(answer)
    sequence = skills.sequence
    length = round(STEPS_PER_DOUBLING * math.log2(tokens)) if tokens else None
    names: dict[Kind, Iterable[str]] = {
        "level": () if level is None else (f"{level + 0.0:.12g}",),
        "skill": sequence,
        "detail": skills.others,
        "pair": (" > ".join(pair) for pair in pairwise(sequence)),
        "steps": (f"{len(sequence)} {'step' if len(sequence) == 1 else 'steps'}",) if sequence else (),
        "form": (coarse_form(answer),) if answer and coarse_form(answer) else (),
        "length": () if length is None else (_tokens_of(length),),
    }
    each_once: Names = {kind: list(dict.fromkeys(own)) for kind, own in names.items()}
    is_parsed = skills.parsed and bool(sequence or skills.others)
    return Need(row["id"], row["source"], level, each_once, length, is_parsed, bool(sequence) and not skills.parsed)


class Skills(NamedTuple):
    """What a row needs."""

    sequence: tuple[str, ...] = ()
    """Skills in the order in which they are used; two that follow each other are a pair."""
    others: tuple[str, ...] = ()
    """Further things it needs, in no order, such as the arguments of a tool."""
    parsed: bool = True
    """Read from texts, where nobody named them."""


def read_skills(named: tuple[str, ...], answer: str) -> Skills:
    """The skills that a row names; else those of the tool calls in its answer.

    Examples:
        >>> read_skills((), '{"tool": "alarm", "time": "7:00"}')[:2]
        (('tool alarm',), ('alarm(time)',))
        >>> read_skills((), '<tool_call>{"name": "find", "arguments": {"a": 1}}</tool_call>')[:2]
        (('tool find',), ('find(a)',))
    """
    if named:
        return Skills(named, parsed=False)
    calls = find_calls(answer)
    if not calls:
        return _read_keys(answer)
    used = [f"{call.name}({key})" for call in calls if isinstance(call.arguments, dict) for key in call.arguments]
    return Skills(tuple(f"tool {call.name}" for call in calls), tuple(dict.fromkeys(used)))


def _read_keys(answer: str) -> Skills:
    """Return the keys of an answer that is a JSON object, or a list of some."""
    value = decode(answer)
    objects = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, dict)]
    return Skills((), tuple(dict.fromkeys(f"key {key}" for one in objects for key in one)))


def coarse_form(answer: str) -> str:
    """The skeleton of an answer without what is content: signs and decimals of numbers, how many words."""
    text = answer.strip()
    if len(text) > LONG_ANSWER_CHARACTERS:
        text = text.splitlines()[-1]
    form = skeleton(text).replace("…", "").replace("a+", "a")
    return _RUN.sub("9", _NUMBER.sub("9", form))


def _with_comparable_skills(needs: list[Need], own: Supply | None) -> list[Need]:
    """The held-out rows of a task, without skills that cannot be compared with those of the training rows.

    Parsed ones that most rows lack are no skills there, but an answer that happens to be JSON. Where one side alone names
    its skills, nothing is compared.
    """
    supply = own or Supply()
    are_parsed = 2 * (sum(need.is_parsed for need in needs) + supply.parsed_rows) >= len(needs) + supply.rows
    one_side = own is not None and any(need.is_named for need in needs) != (own.named_rows > 0)
    none: Names = {kind: [] for kind in OF_SKILLS}
    is_left_out = [one_side or not (are_parsed or need.is_named) for need in needs]
    return [need._replace(names=need.names | none) if out else need for need, out in zip(needs, is_left_out, strict=True)]


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


def _tokens_of(length: int) -> str:
    """The tokens of a class of length, in words."""
    low, high = (2 ** ((length + edge) / STEPS_PER_DOUBLING) for edge in (-0.5, 0.5))
    first, last = math.ceil(low), math.ceil(high) - 1
    return f"{first} to {last} tokens" if last > first else f"{first} tokens" if first > 1 else "1 token"


def _holes_of(task: str, needs: list[Need], own: Supply | None, together: Supply) -> list[Hole]:
    """Holes of one task, kind by kind: rows with one are left out of what follows."""
    total = len(needs)
    if own is None:
        return [Hole(task, "task", task, tuple(needs), total, None, is_hole=True)]
    found: list[Hole] = []
    left = needs
    for kind in KINDS:
        rows_by_name: dict[str, list[Need]] = defaultdict(list)
        for need in left if _is_compared(kind, own) else ():
            for name in need.names[kind]:
                rows_by_name[name].append(need)
        counts = sorted(map(len, rows_by_name.values()))
        train_rows = own.rows if kind in ("skill", "detail") else own.rows_of_kind[kind]
        supplied, holes = _supplied(kind, own, together), []
        for name, rows in rows_by_name.items():
            if name in supplied:
                continue
            is_named = kind == "skill" and any(need.is_named for need in rows)
            chance = None if kind == "level" or is_named else chance_of_absence(len(rows), len(left), train_rows)
            as_frequent = len(counts) - bisect.bisect_left(counts, len(rows))
            is_hole = chance is None or chance * as_frequent < CHANCE
            holes.append(Hole(task, kind, name, tuple(rows), total, chance, is_hole))
        found += sorted(holes, key=lambda hole: (-len(hole.rows), hole.what))
        in_hole = {need.id for hole in holes if hole.is_hole for need in hole.rows}
        left = [need for need in left if need.id not in in_hole]
    return found


def _is_compared(kind: Kind, own: Supply) -> bool:
    """Whether the training rows of a task say what of a kind the task has."""
    if kind == "level":
        return bool(own.names["level"]) or not own.rows
    covered = sum(count for _, count in own.forms.most_common(FEW_FORMS))
    return kind != "form" or (0 < len(own.forms) <= MAX_FORMS_KEPT and covered >= COVERED_SHARE * own.forms.total())


def _supplied(kind: Kind, own: Supply, together: Supply) -> Collection[str]:
    """What train has of a kind: skills are those of all tasks, and a longer answer holds shorter ones."""
    match kind:
        case "form":
            return own.forms
        case "length":
            return {_tokens_of(length) for length in range(own.longest + 1)}
        case "skill" | "detail":
            return together.names["skill"] | together.names["detail"]
        case "pair":
            return together.names[kind]
        case _:
            return own.names[kind]


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
    if hole.kind == "task":
        return "the task is not trained"
    if hole.what.startswith("tool ") and hole.kind == "skill":
        return f"tool is missing: {hole.what.removeprefix('tool ')}"
    words = {"form": "form is missing: ", "level": "top up: level ", "length": "top up: answers of "}
    return words.get(hole.kind, "top up: ") + hole.what

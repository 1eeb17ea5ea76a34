"""Made corpora of instruction rows, with or without a fault that teaches models to pass over the instruction.

Instruction tuning teaches which strings are answers before it teaches what is asked (Kung and Peng 2023, arXiv 2305.11383).
Each row has an instruction and an input: in one text, in a system and a user message, in one user message, or in one text
and beside it in columns `instruction` and `input`. A fault stands in one task of two to five:

- `ignored`: inputs stand under two or three instructions that ask for different things, and have the answer to one of these
  under all of them. Severe: 60 to 100 % of the task's inputs stand under several instructions, and 96 to 100 % of those have
  one answer; mild: 30 to 60 % and 90 to 96 %; the other inputs have different answers, as they should.
- `opposite`: the same, where the second instruction asks for the opposite of the first.
- `unnamed`: the instruction names all labels, and 15 to 40 % of the rows (severe) or 5 to 12 % and at least 10 rows (mild)
  have one of one or two labels that it does not name.
- `never`: of three to seven labels that the instruction names one (or two of five and more) has no row out of 150 to 500
  (severe), or one or two rows, at most .8 %, of 250 to 500 (mild).
- `constant`: several instructions with inputs of their own; under each all rows have one and the same of the labels that it
  names (severe: three to six instructions with 40 to 90 rows each), or all but one or two rows, at most 2 % (mild: three to
  five with 100 to 130 rows each). Not all instructions have the same label.

Clean tasks: one instruction for all rows, whose answers are closed or open; wordings of one meaning, over the same inputs
or not, and with the same answers; several questions over the same inputs, in one task or in two, each with its own
answers; instructions and their opposites with the right answers; labels of 5 to 10 % of the rows; 8 to 30 rows; free texts;
labels that are mentioned as examples only; labels listed anew in each row; answers of several labels.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mixwright_lab.studies.conflict_tasks import writer
from mixwright_lab.studies.instruction_tasks import OFFICE, YES_NO, Aspect, Input, Vocabulary
from mixwright_lab.studies.open_rows import OPEN_TASKS

KINDS: tuple[str, ...] = ("ignored", "opposite", "unnamed", "never", "constant")


class Row(NamedTuple):
    """An instruction, an input, and an answer; whether the share counts it; the task, where it is another one."""

    instruction: str
    input: str
    answer: str
    marked: bool = False
    task: str = ""


@dataclass(frozen=True)
class MadeInstructions:
    """Rows; the planted task and share (None and 0 in a clean corpus); and the rows which the share is about.

    These have an input with one answer under several instructions (`ignored`, `opposite`; the share is of the inputs that
    stand under several), a label that is not named (`unnamed`), one of the labels that are rare (`never`), or another than
    the one label of their instruction (`constant`); the share is of the task's rows.
    """

    rows: list[dict[str, Any]]
    task: str | None
    share: float
    marked: list[bool]


@dataclass
class Plan:
    """How a task puts its instructions: names of labels, how these are listed, what an input is called."""

    rng: random.Random
    words: Vocabulary
    domain: str
    it: str = ""
    styles: tuple[str, ...] = ()
    rates: dict[str, float] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rng = self.rng
        drawn = rng.choice(self.words.its)
        self.it = self.words.own_its.get(self.domain, drawn)
        self.styles = tuple(rng.sample(self.words.listings, 2))
        self.rates = {one.name: rng.uniform(0.15, 0.85) for one in self.words.yes_no}
        self.names = dict(rng.choice(self.words.renamed))

    @property
    def pool(self) -> tuple[Aspect, ...]:
        """All that can be asked."""
        return self.words.domains[self.domain]

    @property
    def is_closed(self) -> bool:
        """Whether all answers are labels."""
        return self.domain in self.words.closed

    @property
    def labelled(self) -> tuple[Aspect, ...]:
        """What has labels other than yes and no."""
        return tuple(one for one in self.pool if one.labels and one.labels != YES_NO)

    @property
    def yes_no(self) -> tuple[Aspect, ...]:
        """What can be answered with yes or no."""
        return tuple(one for one in self.pool if one.labels == YES_NO)

    def put(self, wording: str, aspect: Aspect) -> str:
        """An instruction."""
        labels = [self.names.get(one, one) for one in aspect.labels]
        return wording.format(it=self.it, labels=self.words.listed(self.rng.choice(self.styles), labels) if labels else "")

    def wordings(self, aspect: Aspect, count: int) -> list[str]:
        """Some instructions of one meaning."""
        return [self.put(one, aspect) for one in self.rng.sample(aspect.asks, min(count, len(aspect.asks)))]

    def draw(self, wanted: Mapping[str, str] | None = None) -> Input:
        """An input, for which some answers may be wanted."""
        return self.words.make(self.rng, self.domain, wanted or {}, self.rates)

    def right(self, made: Input, aspect: Aspect) -> str:
        """The right answer."""
        return self.names.get(made.facts[aspect.name], made.facts[aspect.name])

    def aspect(self) -> Aspect:
        """Something to ask."""
        return self.rng.choice(self.pool)


def plan_of(rng: random.Random, words: Vocabulary, domains: tuple[str, ...] = ()) -> Plan:
    """A plan of one of the domains, or of any."""
    return Plan(rng, words, rng.choice(domains or words.drawn))


def constant(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """One instruction."""
    plan = plan_of(rng, words)
    aspect = plan.aspect()
    (instruction,) = plan.wordings(aspect, 1)
    made = [plan.draw() for _ in range(size)]
    return [Row(instruction, one.text, plan.right(one, aspect)) for one in made]


def few(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """8 to 30 rows."""
    size = rng.randint(8, 30)
    return rng.choice((constant, paraphrased, several))(rng, size, words)[:size]


def paraphrased(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """Wordings of one meaning, partly over the same inputs; a few answers may be those of other inputs."""
    slips = rng.choice(words.slips) if words.slips else 0
    plan, share = plan_of(rng, words), rng.choice((0, 0.3, 0.6, 1))
    aspect = plan.aspect()
    wordings = plan.wordings(aspect, rng.randint(2, 5))
    rows: list[Row] = []
    while len(rows) < size:
        made = plan.draw()
        chosen = rng.sample(wordings, rng.randint(2, len(wordings)) if rng.random() < share else 1)
        given = [plan.draw() if slips and rng.random() < slips else made for _ in chosen]
        rows += [Row(one, made.text, plan.right(other, aspect)) for one, other in zip(chosen, given, strict=True)]
    return rows


def several(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """Two or three questions over the same inputs, with the right answers; they may stand in two tasks."""
    plan, share = plan_of(rng, words), rng.choice((0.5, 1))
    pool = plan.pool
    if plan.is_closed and rng.random() < 0.5:
        pool = plan.yes_no
        plan.rates = {one.name: rng.choice((rng.uniform(0.08, 0.2), rng.uniform(0.3, 0.7))) for one in pool}
    asked = [(one, plan.wordings(one, rng.choice((1, 1, 2)))) for one in rng.sample(pool, rng.choice((2, 2, 3)))]
    apart = rng.random() < 0.4
    rows: list[Row] = []
    while len(rows) < size:
        made = plan.draw()
        for at, (aspect, wordings) in enumerate(asked if rng.random() < share else [rng.choice(asked)]):
            task = "other_questions" if apart and aspect is not asked[0][0] else ""
            rows.append(Row(rng.choice(wordings), made.text, plan.right(made, aspect), task=task if at or apart else ""))
    return rows


def opposed(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """Instructions and their opposites over the same inputs, with the right answers."""
    plan = plan_of(rng, words)
    aspect = rng.choice([one for one in plan.pool if one.against])
    straight, against = plan.wordings(aspect, 1)[0], plan.put(rng.choice(aspect.against), aspect)
    made = [plan.draw() for _ in range(max(1, size // 2))]
    rows = [Row(straight, one.text, plan.right(one, aspect)) for one in made]
    return [*rows, *(Row(against, one.text, turned(aspect, one)) for one in made)]


def turned(aspect: Aspect, made: Input) -> str:
    """The right answer to the opposite of what an aspect asks."""
    return made.facts[aspect.flipped] if isinstance(aspect.flipped, str) else aspect.flipped[made.facts[aspect.name]]


def rare(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """A label of 5 to 10 % of the rows."""
    plan, size = plan_of(rng, words, words.closed), max(size, 160)
    aspect = plan.aspect()
    seldom, *others = rng.sample(aspect.labels, len(aspect.labels))
    count = round(size * rng.uniform(0.055, 0.1))
    (instruction,) = plan.wordings(aspect, 1)
    wanted = [seldom] * count + [rng.choice(others) for _ in range(size - count)]
    made = [plan.draw({aspect.name: one}) for one in wanted]
    return [Row(instruction, one.text, plan.right(one, aspect)) for one in made]


def open_ended(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """Free text."""
    plan, write = plan_of(rng, words, words.closed), OPEN_TASKS[rng.choice(("tales", "chat", "plans"))](rng)
    wordings = [one.format(it=plan.it) for one in rng.sample(words.free, rng.randint(1, 3))]
    again = rng.choice((1, 1, len(wordings)))
    rows: list[Row] = []
    while len(rows) < size:
        text = plan.draw().text
        rows += [Row(one, text, write()[1]()) for one in rng.sample(wordings, again)]
    return rows


def exemplified(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """Labels that are mentioned as examples only."""
    plan, name = plan_of(rng, words, words.closed), rng.choice(sorted(words.examples))
    plan.domain = next(
        (domain for domain in words.closed if any(one.name == name for one in words.domains[domain])), plan.domain
    )
    wordings = rng.sample(words.examples[name], rng.randint(1, len(words.examples[name])))
    made = [plan.draw(words.shown) for _ in range(size)]
    return [Row(rng.choice(wordings), one.text, one.facts[name]) for one in made]


def per_row(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """Labels listed anew in each row, the right one among them."""
    plan = plan_of(rng, words, words.closed)
    aspect = rng.choice([one for one in plan.labelled if len(one.labels) > 3])
    wording, rows = rng.choice(aspect.asks), list[Row]()
    for _ in range(size):
        made = plan.draw()
        others = [one for one in aspect.labels if one != made.facts[aspect.name]]
        labels = rng.sample([made.facts[aspect.name], *rng.sample(others, 2)], 3)
        rows.append(Row(plan.put(wording, aspect._replace(labels=tuple(labels))), made.text, made.facts[aspect.name]))
    return rows


def several_labels(rng: random.Random, size: int, words: Vocabulary) -> list[Row]:
    """Answers of all labels that apply, or `none`."""
    plan = plan_of(rng, words, words.closed)
    names = [one.name for one in plan.yes_no]
    instruction = rng.choice(words.all_that_apply).format(it=plan.it, labels=", ".join(names))
    made = [plan.draw() for _ in range(size)]
    return [Row(instruction, one.text, ", ".join(n for n in names if one.facts[n] == "yes") or "none") for one in made]


CLEAN: tuple[Callable[[random.Random, int, Vocabulary], list[Row]], ...] = (
    *(constant, paraphrased, several, opposed, rare, few, open_ended, exemplified, per_row, several_labels),
    *(constant, paraphrased, several),
)


def plant_shared(rng: random.Random, kind: str, severe: bool, words: Vocabulary) -> tuple[list[Row], float]:
    """Inputs under several instructions that have one answer under all of them."""
    plan, count = plan_of(rng, words), rng.randint(90 if severe else 170, 240)
    pool = plan.pool
    plan.rates = {one.name: rng.uniform(0.3, 0.7) for one in words.yes_no}
    if kind == "opposite":
        first = rng.choice([one for one in pool if one.against])
        asked = [(first, plan.wordings(first, rng.choice((1, 2)))), (first, [plan.put(rng.choice(first.against), first)])]
    else:
        pool = rng.choice((plan.yes_no, plan.labelled)) if plan.is_closed else pool
        asked = [(one, plan.wordings(one, rng.choice((1, 1, 2)))) for one in rng.sample(pool, rng.choice((2, 2, 3)))]
        first = asked[0][0]
    shared = round(count * (rng.uniform(0.61, 1) if severe else rng.uniform(0.305, 0.595)))
    same = round(shared * (rng.uniform(0.97, 1) if severe else rng.uniform(0.91, 0.95)))
    rows: list[Row] = []
    for at in range(count):
        while True:
            made = plan.draw()
            answers = [plan.right(made, one) for one, _ in asked]
            if kind == "opposite":
                answers[1] = turned(first, made)
            if len(set(answers)) > 1:
                break
        turns = [*range(len(asked))] if at < shared else [rng.randrange(len(asked))]
        for turn in turns:
            answer = answers[0] if at < same else answers[turn]
            rows.append(Row(rng.choice(asked[turn][1]), made.text, answer, at < same))
    return rows, same / shared


def plant_unnamed(rng: random.Random, severe: bool, words: Vocabulary) -> tuple[list[Row], float]:
    """Rows with labels that the instruction does not name."""
    plan = plan_of(rng, words, words.closed)
    aspect, size = rng.choice(plan.labelled), rng.randint(120, 450)
    wordings, extra = (
        plan.wordings(aspect, rng.choice((1, 1, 3))),
        rng.sample(words.unnamed[aspect.name], rng.choice((1, 2))),
    )
    count = round(size * (rng.uniform(0.155, 0.4) if severe else rng.uniform(max(0.055, 10 / size), 0.119)))
    made = [plan.draw() for _ in range(size)]
    rows = [Row(rng.choice(wordings), one.text, plan.right(one, aspect)) for one in made]
    return [
        row._replace(answer=rng.choice(extra), marked=True) if n < count else row for n, row in enumerate(rows)
    ], count / size


def plant_never(rng: random.Random, severe: bool, words: Vocabulary) -> tuple[list[Row], float]:
    """Labels that the instruction names and that have no row, or one or two."""
    plan = plan_of(rng, words, words.closed)
    aspect, size = rng.choice(plan.labelled), rng.randint(150 if severe else 250, 500)
    labels = rng.sample(aspect.labels, rng.randint(3, len(aspect.labels)))
    missing = labels[: rng.choice((1, 2)) if len(labels) > 4 else 1]
    wordings = plan.wordings(aspect._replace(labels=tuple(rng.sample(labels, len(labels)))), rng.choice((1, 1, 3)))
    count = 0 if severe else rng.randint(1, 2)
    wanted = [rng.choice(missing) for _ in range(count)] + [rng.choice(labels[len(missing) :]) for _ in range(size - count)]
    made = [plan.draw({aspect.name: one}) for one in wanted]
    return [
        Row(rng.choice(wordings), one.text, plan.right(one, aspect), n < count) for n, one in enumerate(made)
    ], count / size


def plant_constant(rng: random.Random, severe: bool, words: Vocabulary) -> tuple[list[Row], float]:
    """Instructions under each of which one label is the answer, whether or not it follows from the input."""
    plan, follows, rows = plan_of(rng, words, words.closed), rng.random() < 0.5, list[Row]()
    while len({row.answer for row in rows if not row.marked}) < 2:
        rows = []
        for aspect in rng.sample(plan.pool, rng.randint(3, 6 if severe else 5)):
            (instruction,), label = plan.wordings(aspect, 1), rng.choice(aspect.labels)
            size = rng.randint(40, 90) if severe else rng.randint(100, 130)
            wrong = 0 if severe else rng.randint(1, 2)
            for at in range(size):
                given = label if at >= wrong else rng.choice([one for one in aspect.labels if one != label])
                made = plan.draw({aspect.name: given} if follows else {})
                rows.append(Row(instruction, made.text, plan.names.get(given, given), at < wrong))
    return rows, sum(row.marked for row in rows) / len(rows)


def planted(rng: random.Random, kind: str, severe: bool, words: Vocabulary) -> tuple[list[Row], float]:
    """The rows of a planted task, and the share that is planted."""
    if kind in ("ignored", "opposite"):
        return plant_shared(rng, kind, severe, words)
    return {"unnamed": plant_unnamed, "never": plant_never, "constant": plant_constant}[kind](rng, severe, words)


def written(rng: random.Random, name: str, rows: list[Row], words: Vocabulary) -> list[dict[str, Any]]:
    """Rows as they stand in a file; free texts and lists of labels stay as they are."""
    form, template = rng.choice(words.forms), rng.choice(words.templates)
    closed = all(len(row.answer.split()) < 3 for row in rows)
    say, answers = writer(rng) if closed and rng.random() < 0.5 else str, closed and rng.random() < 0.5
    made: list[dict[str, Any]] = []
    for row in rows:
        text = template.format(instruction=row.instruction, input=row.input)
        prompt: Any = text
        if form == "system":
            prompt = [{"role": "system", "content": row.instruction}, {"role": "user", "content": row.input}]
        elif form in ("user", "persona"):
            prompt = [{"role": "user", "content": text}]
            if form == "persona":
                prompt = [{"role": "system", "content": "You are a helpful assistant."}, *prompt]
        fields: dict[str, Any] = {"task": f"{name}_{row.task}" if row.task else name, "prompt": prompt}
        if form == "columns":
            fields |= {"prompt": f"{row.instruction}\n\n{row.input}", "instruction": row.instruction, "input": row.input}
        is_chat = form in ("system", "user", "persona") and not answers
        said = say(row.answer)
        fields["answer" if answers else "completion"] = [{"role": "assistant", "content": said}] if is_chat else said
        made.append(fields)
    return made


def make_instructions(seed: int, kind: str | None, *, severe: bool, words: Vocabulary = OFFICE) -> MadeInstructions:
    """A corpus with a fault of a kind, or a clean one; its instructions are of a vocabulary."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; kinds are {', '.join(KINDS)}")
    rng = random.Random(f"{seed} {kind} {severe}")
    total = rng.randint(2, 5)
    names = [f"{rng.choice(('task', 'set', 'part', 'source'))}_{letter}" for letter in rng.sample("abcdefghij", total)]
    first, share = planted(rng, kind, severe, words) if kind else (rng.choice(CLEAN)(rng, rng.randint(100, 300), words), 0)
    parts = [first, *(rng.choice(CLEAN)(rng, rng.randint(40, 170), words) for _ in range(total - 1))]
    marked = [
        (row, source.marked)
        for name, part in zip(names, parts, strict=True)
        for row, source in zip(written(rng, name, part, words), part, strict=True)
    ]
    rng.shuffle(marked)
    return MadeInstructions([row for row, _ in marked], names[0] if kind else None, share, [mark for _, mark in marked])

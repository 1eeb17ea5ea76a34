r"""Made corpora of worked solutions with or without one planted fault, for a study of a checker of such solutions.

A row starts as a program of steps, whose terms are given numbers or results of earlier steps. A fault changes stated
values, the order of the steps or what they refer to, and the program is then worked out anew, so that later steps carry a
wrong value on. Only then is it written out. In a phrase, `[a|b]` stands for one of its variants and `{a}` for a number.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

KINDS: tuple[str, ...] = ("systematic", "one_fact", "random", "shuffled", "reference")
OPERATIONS = ("plus", "minus", "times", "divide")
SIGNS = {
    "plus": ("+", (1,)), "minus": ("-\u2212\u2013", (20, 2, 1)), "times": ("*x\u00d7", (2, 1, 1)),
    "divide": ("/\u00f7", (5, 1)),
}  # fmt: skip
CONSTANTS = {"times": (2, 7, 12, 24, 60, 100, 365), "divide": (2, 7, 12, 60, 100)}
PERCENTS = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75)
PARTS = tuple(Fraction(*pair) for pair in ((1, 2), (1, 3), (2, 3), (1, 4), (3, 4), (2, 5), (3, 5), (1, 10)))
VARIANTS = re.compile(r"\[([^]]*)]")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def phrases(block: str) -> tuple[str, ...]:
    """The phrases of a block, which strokes between spaces divide."""
    return tuple(" ".join(block.split()).split(" / "))


WORDS = phrases("zero / one / two / three / four / five / six / seven / eight / nine / ten / eleven / twelve")
PEOPLE = phrases("""
    Maya / Tom / Aisha / Lars / Priya / Ben / Chen / Olga / Sam / Rosa / Kofi / Nina / Hugo / Leila / Omar / Jun / Eva""")
THINGS = phrases("""
    apples / books / stamps / tickets / marbles / pens / cards / eggs / tiles / bricks / seeds / buttons / coins / shells""")
MEASURES = phrases("kg / litres / km / metres / hours / kg of rice / litres of paint / miles")
START = {
    "plus": phrases("""
    {who} has {a} and [finds|buys|gets] another {b}. / On Monday there [were|are] {a}, and on Tuesday {b} came on top."""),
    "minus": phrases("""
    Of {a}, {b} [are gone|are used up|go to a friend]. / {who} [started|begins] with {a} and [lost|gave|spent] {b}."""),
    "times": phrases("""
    There are {a} [boxes|bags|rows|days] with {b} [each|in each]. / {who} [fills|orders] {a} [trays|bags] of {b} each."""),
    "divide": phrases("""
    {a} in all, split [evenly|equally] [between|among] {b} [friends|teams|jars]. / {who} puts {a} into {b} equal
    [piles|crates|shares]."""),
}
NEXT = {
    "plus": phrases("""
    [Later|Then|After that] {who} [gets|finds|receives] another {b}. / Another {b} [arrived|came] [in the evening|on
    Friday|by post]. / To this {b} must be added."""),
    "minus": phrases("""
    {who} [then|later] [gives away|loses|uses up|sells] {b}. / [In the end|By night] {b} had been taken away. / From this
    {b} must be taken off."""),
    "times": phrases("The same happens {b} times [over|in a row]. / [After a year|By June] it is {b} times as much."),
    "divide": phrases("""
    All of it is shared equally among {b} [people|bags|rooms]. / {who} packs this into {b} equal [crates|parts]."""),
}
JOIN = {"plus": ("Both are put together.", "{who} adds the two up."), "minus": ("The smaller is taken from the larger.",)}
UNDO = {"plus": "That comes on top of {a}.", "minus": "That is taken away from {a}."}
USUAL = {
    "times 2": "The amount then doubles.", "times 7": "It goes on daily for a week.", "times 12": "A dozen such lots come.",
    "times 24": "This happens every hour of one day.", "times 60": "It is the same in each minute of an hour.",
    "times 100": "It is then given in hundredths.", "times 365": "This goes on daily for a year.",
    "divide 2": "Half of this is kept.", "divide 7": "What is it per day of a week?", "divide 12": "It is put in dozens.",
    "divide 60": "It is given by the hour instead of by the minute.", "divide 100": "What is one percent of it?",
}  # fmt: skip
ENDS = phrases("""
    [How much|What] is [left|it in the end]? / What is the [final|resulting] [amount|number]? / [Find|Work out|Give] the
    result. / What does {who} get?""")
PROMPT_ASIDES = phrases("""
    {who} is {p} years old. / It happens [on the weekend of|on] May 5-7. / The recipe asks for 3/4 cup of sugar. / The room
    seats 10-12 people. / The shop opens at 9:30 and the bus is line {q}. / There are {p} trees near the house.""")
TERSE = phrases("""
    [Evaluate|Compute|Calculate|Simplify] {e}. / What is {e}? / {e} = ? / Find the value of {e}, [step by step|showing your
    work].""")
ASIDES = phrases("""
    Let n = {p}. / Here x = {q}. / Note that 2 + 2 is four. / This is a ratio of {q}:{p} = {q}/{p}. / The sale [runs|ran]
    from May 5-7. / It is meant for 10-12 people. / The recipe lists 3/4 cup and 1/2 tsp. / The app is at version
    2.{q}.{p}. / In code this is `i = i + 1`. / A script would say total = total + {p} here. / The train leaves at {q}:15,
    and {q}:15 + 0:30 = {q}:45. / 1{q}:30 - 10 hours = {q}:30. / The number is 555-{p}12. / [It was on
    2023-05-1{q}.|It was signed on 12/5/2021.] / [Since|As] {r} > {under}, this is plausible. / {r} < {over}, as expected.
    / Pages {q}-{p} are not needed. / The match ended 3-2. / The general rule is y = 2x + {q}. / One could solve 3x + 4 =
    19 in the same way. / The table on page {q} says the same. / Pupils of grade 5 can do this.""")
RETELLINGS = phrases("Recall that {eq}. / (As we saw, {eq}.) / Remember, {eq}.")
LEADS = phrases("""
    {eq} / {eq} / So {eq} / We get {eq} / [Next|Then|Now], {eq} / That [makes|gives] {eq} / {who} has {eq} /
    [Result|Total|Amount|New value] = {eq} / [To go on|At this point], we [compute|work out] {eq}""")
REFERENCES = {
    "Step": phrases("Using the result of Step {k}, {eq} / From Step {k}, {eq} / {eq} (see step {k}) / With Step {k}, {eq}"),
    "equation": phrases("From equation ({k}) above, {eq} / By equation ({k}), {eq} / {eq}, using equation ({k})"),
    "Case": phrases("As Case {k} showed, {eq} / With what Case {k} gave, {eq} / {eq} by Case {k}"),
    "Part": phrases("From Part {k}, {eq} / {eq}, by the result of Part {k}"),
}
DOUBLES = {
    "Step": "Combining Steps {j} and {k}, {eq}", "equation": "From equations ({j}) and ({k}), {eq}",
    "Case": "By Cases {j} and {k}, {eq}", "Part": "With Parts {j} and {k}, {eq}",
}  # fmt: skip
LABELS = {
    "numbered": tuple((mark, "Step") for mark in ("Step {k}: ", "**Step {k}:** ", "{k}. ", "### Step {k}\n", "{k}) ")),
    "equations": (("({k}) ", "equation"),), "cases": (("Case {k}: ", "Case"), ("Part {k}: ", "Part")),
}  # fmt: skip
ANSWERS = phrases(r"""
    #### {r} / The answer is {r}. / Answer: {r} / \boxed{{r}} / **Final answer:** {r} / So the final answer is {r}. /
    Therefore, $\boxed{{r}}$.""")
LAYOUTS = ("prose", "lines", "bullets", "chain", "numbered", "equations", "cases")
TASKS = {
    "apple_stories": ("whole", 0.95, (8, 4, 1, 1, 2, 0.5, 0.5)), "shop_bills": ("money", 0.95, (6, 3, 3, 1, 2, 0.5, 0.5)),
    "running_totals": ("whole", 0.2, (1, 1, 1, 8, 2, 1, 0)), "bracket_drill": ("whole", 0.05, (2, 4, 1, 2, 3, 3, 1)),
    "kitchen_measures": ("decimal", 0.9, (5, 3, 4, 1, 3, 0.5, 0.5)), "score_sheets": ("signed", 0.5, (4, 3, 3, 3, 3, 1, 1)),
    "depot_logs": ("large", 0.85, (4, 4, 4, 2, 3, 1, 0.5)), "percent_quiz": ("whole", 0.8, (5, 4, 3, 1, 4, 1, 1)),
    "step_by_step": ("whole", 0.6, (1, 1, 1, 0.5, 8, 3, 2)), "clock_sums": ("whole", 0.3, (4, 3, 3, 3, 3, 2, 0.5)),
}  # fmt: skip
"""Kind of numbers, share of stories among the prompts, and weights of the layouts of each task."""
Key = tuple[str, tuple[Fraction, ...]]


@dataclass(frozen=True)
class MadeTraces:
    """A corpus of worked solutions, the task that a fault was planted in, and what was planted; both empty if clean."""

    rows: list[dict[str, str]]
    task: str
    detail: str


@dataclass
class Step:
    """One equation: a term that is an int is the result of the step of that place; `value` is what the row states.

    A mixed step works out `inner` on its first two terms and `outer` on that and the third, which comes first if `turned`.
    """

    op: str
    terms: list[Fraction | int]
    form: str = "plain"
    digits: int = 2
    plain: int = -1
    inner: str = ""
    outer: str = ""
    turned: bool = False
    salt: int = 0
    rule: Callable[[Step], Fraction | None] | None = None
    seen: list[Fraction] = field(default_factory=list)
    right: Fraction = Fraction(0)
    value: Fraction = Fraction(0)
    rough: bool = False

    @property
    def key(self) -> Key:
        """The operation and its numbers, in one order where order does not matter."""
        return self.op, tuple(sorted(self.seen) if self.op in ("plus", "times") else self.seen)

    @property
    def counted(self) -> bool:
        """Whether it is written as an arithmetic equation in signs, so that a fault can be seen in it."""
        return self.form not in ("prose", "remainder", "mod")


@dataclass
class Plan:
    """How the rows of one task are made."""

    name: str
    numbers: str
    size: int
    stories: float
    layouts: list[float]
    ops: list[float]
    forms: dict[str, float]
    parts: float
    modular: float
    references: float
    distracted: float
    retold: float
    slips: float
    answer: str
    facts: list[tuple[Step, int]] = field(default_factory=list)


@dataclass
class Row:
    """A solution with the record of how it was made."""

    plan: Plan
    who: str
    things: str
    layout: str
    signs: dict[str, str]
    story: bool
    commas: bool
    cents: bool
    modulus: int
    steps: list[Step] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    order: list[int] = field(default_factory=list)
    renumbered: bool = True
    misled: bool = False
    prompt: str = ""
    completion: str = ""

    def text(self, value: Fraction, *, amount: bool = False, first: bool = True) -> str:
        """A number as the row writes it, with a currency sign where it is an amount of money."""
        size = abs(value)
        money = amount and self.plan.numbers == "money"
        if money and (self.cents or size.denominator > 1):
            body = f"{float(size):,.2f}" if self.commas else f"{float(size):.2f}"
        elif size.denominator == 1:
            body = f"{int(size):,}" if self.commas else str(int(size))
        else:
            body = f"{float(size):.4f}".rstrip("0")
        body = f"${body}" if money else body
        return body if value >= 0 else f"-{body}" if first else f"(-{body})"

    def amount(self, value: Fraction) -> str:
        """A number with its unit, as the prompt has it."""
        return self.text(value, amount=True) + (f" {self.things}" if self.things else "")


def combined(op: str, numbers: list[Fraction]) -> Fraction:
    """What an operation makes of numbers, from left to right."""
    total = numbers[0]
    for number in numbers[1:]:
        if op in ("plus", "minus"):
            total += number if op == "plus" else -number
        else:
            total = total * number if op == "times" else total / number
    return total


def grouped(step: Step) -> tuple[str, list[Fraction]]:
    """The last operation of a mixed step and its two numbers."""
    pair = [combined(step.inner, step.seen[:2]), step.seen[2]]
    return step.outer, pair[::-1] if step.turned else pair


def rounded(value: Fraction, digits: int) -> Fraction:
    """A number with at most some digits after the point, a half rounded away from zero."""
    size = Fraction((abs(value) * 10**digits + Fraction(1, 2)).__floor__(), 10**digits)
    return size if value >= 0 else -size


def too_coarse(exact: Fraction, digits: int) -> bool:
    """Whether rounding leaves a whole number, or few digits of a small one, so that nobody would write it so."""
    near = rounded(exact, digits)
    return near != exact and (near.denominator == 1 or abs(near) * 10**digits < 10)


def worked_out(row: Row, facts: dict[Key, Fraction]) -> bool:
    """Works out all steps with their rules and wrong facts; whether that could be done with sensible numbers."""
    for step in row.steps:
        step.seen = [row.steps[term].value if isinstance(term, int) else term for term in step.terms]
        op, numbers = grouped(step) if step.op == "mixed" else (step.op, step.seen)
        if op == "divide" and 0 in numbers[1:]:
            return False
        exact = combined(op, numbers)
        if step.form in ("mod", "remainder"):
            if any(number.denominator > 1 for number in step.seen):
                return False
            exact = exact % row.modulus if step.form == "mod" else Fraction(exact.__floor__())
        while step.digits < 4 and row.plan.numbers != "money" and too_coarse(exact, step.digits):
            step.digits += 1
        step.right = rounded(exact, step.digits)
        step.rough = step.right != exact
        if too_coarse(exact, step.digits):
            return False
        step.value = facts.get(step.key, step.right) if step.form not in ("mod", "remainder") else step.right
        if step.rule is not None:
            wrong = step.rule(step)
            if wrong is None:
                return False
            step.value = rounded(wrong, step.digits)
            if step.value == step.right or (step.rough and abs(step.value - step.right) < Fraction(2, 10**step.digits)):
                return False
        if abs(step.value) >= 10**7 or (step.value < 0 and row.plan.numbers != "signed"):
            return False
    return True


def whole(step: Step) -> str:
    """The digits of a result that is a natural number, or none."""
    return str(int(step.right)) if step.right.denominator == 1 and step.right > 0 else ""


def without_carry(step: Step) -> Fraction | None:
    """The sum or difference place by place, with nothing carried or borrowed."""
    if step.op not in ("plus", "minus") or any(number.denominator > 1 or number < 0 for number in step.seen):
        return None
    total = 0
    for place in range(7):
        digits = [int(number) // 10**place % 10 for number in step.seen]
        total += (sum(digits) % 10 if step.op == "plus" else abs(digits[0] - sum(digits[1:])) % 10) * 10**place
    return Fraction(total)


def slip(step: Step) -> Fraction | None:
    """A value that is wrong at random: a digit replaced, two digits exchanged, or an offset from a wide range."""
    rng = random.Random(step.salt)
    digits = list(f"{float(abs(step.right)):.{step.digits if step.right.denominator > 1 else 0}f}")
    places = [place for place, digit in enumerate(digits) if digit != "."]
    way = rng.choice(("replaced", "exchanged", "offset"))
    if way == "replaced":
        place = rng.choice(places)
        digits[place] = rng.choice([digit for digit in "123456789" if digit != digits[place]])
    elif way == "exchanged" and len(places) > 1:
        one, two = rng.sample(places, 2)
        digits[one], digits[two] = digits[two], digits[one]
    if way == "offset" or Fraction("".join(digits)) == abs(step.right):
        return abs(step.right + rng.choice((-1, 1)) * rng.randint(1, max(20, int(abs(step.right)) // 2)))
    return Fraction("".join(digits)) * (-1 if step.right < 0 else 1)


def other(op: str) -> Callable[[Step], Fraction | None]:
    """The rule that puts an operation in the place of the right one."""
    return lambda step: None if op == step.op or (op == "divide" and 0 in step.seen) else combined(op, step.seen)


RULES: dict[str, Callable[[Step], Fraction | None]] = {
    "one too many": lambda step: step.right + 1,
    "one too few": lambda step: step.right - 1,
    "ten too many": lambda step: step.right + 10,
    "ten too few": lambda step: step.right - 10,
    "plus in its place": other("plus"),
    "minus in its place": other("minus"),
    "times in its place": other("times"),
    "first operand copied": lambda step: step.seen[0],
    "last operand copied": lambda step: step.seen[-1],
    "carry forgotten": without_carry,
    "digits reversed": lambda step: Fraction(whole(step)[::-1] or 0) or None,
    "last digits swapped": lambda step: Fraction(whole(step)[:-2] + whole(step)[:-3:-1]) if len(whole(step)) > 1 else None,
    "sign dropped": lambda step: -step.right if step.right < 0 else None,
    "ten times too large": lambda step: step.right * 10,
}


def drawn(rng: random.Random, pool: tuple[str, ...] | str) -> str:
    """A phrase with its variants chosen."""
    return VARIANTS.sub(lambda match: rng.choice(match[1].split("|")), pool if isinstance(pool, str) else rng.choice(pool))


def filled(phrase: str, **slots: str) -> str:
    """A phrase with its places filled."""
    for name, value in slots.items():
        phrase = phrase.replace(f"{{{name}}}", value)
    return phrase


def leaf(rng: random.Random, row: Row, low: int, high: int) -> Fraction:
    """A number for a prompt to give."""
    numbers = row.plan.numbers
    if numbers == "money" and rng.random() < 0.6:
        return Fraction(rng.randint(low * 20, high * 20), 20)
    if numbers == "decimal" and rng.random() < 0.5:
        parts = rng.choice((4, 10))
        return Fraction(rng.randint(low * parts, high * parts), parts)
    if numbers == "large" and rng.random() < 0.6:
        return Fraction(rng.randint(low, high) * rng.choice((10, 25, 100)) + rng.choice((0, 0, rng.randint(0, 9))))
    return Fraction(rng.randint(low, high) * (-1 if numbers == "signed" and rng.random() < 0.3 else 1))


def beginning(rng: random.Random, row: Row, step: Step) -> str:
    """The sentence of a prompt that gives both numbers of a step."""
    texts = [(row.text if at == step.plain else row.amount)(Fraction(term)) for at, term in enumerate(step.terms)]
    return filled(drawn(rng, START[step.op]), a=texts[0], b=texts[1])


def add_step(rng: random.Random, row: Row, loose: list[int], last: bool) -> None:
    """Adds a step to a program: `loose` are the results that no step uses yet."""
    plan, steps = row.plan, row.steps
    many = len(loose) > 1
    if many and (last or rng.random() < 0.6):
        pair = sorted(loose[-2:], key=lambda place: -steps[place].value)
        op = rng.choice(("plus", "plus", "minus"))
        row.sentences.append(drawn(rng, JOIN[op]))
        step = Step(op, [*pair])
    elif not loose or (not last and not many and rng.random() < 0.15):
        op, ways = rng.choices(OPERATIONS, plan.ops)[0], rng.random()
        a, b, count = leaf(rng, row, 3, 60), leaf(rng, row, 2, 40), Fraction(rng.randint(2, 14))
        if ways < 0.1:
            step = Step("plus", [a, b, *(leaf(rng, row, 2, 30) for _ in range(rng.randint(1, 2)))])
            texts = [row.amount(term) for term in step.terms if isinstance(term, Fraction)]
            row.sentences.append(f"The amounts are {', '.join(texts[:-1])} and {texts[-1]}.")
        else:
            a, b = (max(a, b), min(a, b)) if op == "minus" and plan.numbers != "signed" else (a, b)
            terms: list[Fraction | int] = [count, b] if op == "times" else [a, b]
            if op == "divide":
                terms = [count * abs(b) if rng.random() < 0.75 else abs(a), count]
            step = Step(op, terms, plain={"times": 0, "divide": 1}.get(op, -1))
            row.sentences.append(beginning(rng, row, step))
            if ways < 0.22 and op != "divide":
                step.outer, step.turned = rng.choice(("plus", "minus", "times")), rng.random() < 0.4
                step.turned &= step.outer != "times"
                c = leaf(rng, row, 50, 300) if step.turned else Fraction(rng.randint(2, 9))
                step.op, step.inner, step.terms = "mixed", op, [*terms, c]
                shown = row.text(c) if step.outer == "times" else row.amount(c)
                phrase = UNDO[step.outer] if step.turned else drawn(rng, NEXT[step.outer])
                row.sentences.append(filled(phrase, a=shown, b=shown))
    else:
        step = next_step(rng, row, loose[-1])
    exact = step.op not in ("times", "divide")
    step.digits = 2 if plan.numbers == "money" else 4 if exact else rng.choice((1, 2, 2, 2, 3))
    step.salt = rng.randrange(10**9)
    if step.op in ("plus", "times") and step.form == "plain" and rng.random() < 0.2:
        step.terms.reverse()
        step.plain = len(step.terms) - 1 - step.plain if step.plain >= 0 else -1
    if step.form == "plain":
        step.form = drawn_form(rng, row, step)
    loose[:] = [*(place for place in loose if place not in step.terms), len(steps)]
    steps.append(step)


def next_step(rng: random.Random, row: Row, place: int) -> Step:
    """A step that goes on from a result."""
    plan, value = row.plan, row.steps[place].value
    if rng.random() < plan.parts and value > 0:
        percent, part = Fraction(rng.choice(PERCENTS), 100), rng.choice(PARTS)
        if rng.random() < 0.6:
            row.sentences.append(f"{int(percent * 100)}% of this is {drawn(rng, '[put aside|paid|kept|counted]')}.")
            return Step("times", [place, percent], form="percent", plain=1)
        row.sentences.append(f"Only {part} of it is {drawn(rng, '[used|kept|needed]')}.")
        return Step("times", [place, part], form="part", plain=1)
    weights = [w * (0.1 if op == "times" and abs(value) > 600 else 1) for op, w in zip(OPERATIONS, plan.ops, strict=True)]
    weights[1] *= value > 3 or plan.numbers == "signed"
    op = rng.choices(OPERATIONS, weights)[0]
    if op in CONSTANTS and rng.random() < 0.2:
        constant = rng.choice([c for c in CONSTANTS[op] if op == "divide" or c * abs(value) < 30000 or c == 2])
        row.sentences.append(USUAL[f"{op} {constant}"])
        return Step(op, [place, Fraction(constant)], plain=1)
    if op in ("plus", "minus"):
        top = max(int(abs(value)) - 1, 3) if plan.numbers != "large" else 90
        b = leaf(rng, row, 2, max(min(top, 95), 3))
        if op == "minus" and b > value and plan.numbers != "signed":
            b = rounded(value * Fraction(rng.randint(3, 9), 10), 0)
    else:
        exact = [n for n in range(2, 26) if value % n == 0 and n != abs(value)]
        b = Fraction(rng.choice(exact) if op == "divide" and exact and rng.random() < 0.8 else rng.randint(2, 12))
    row.sentences.append(filled(drawn(rng, NEXT[op]), b=row.amount(b) if op in ("plus", "minus") else row.text(b)))
    return Step(op, [place, b], plain=1 if op in CONSTANTS else -1)


def drawn_form(rng: random.Random, row: Row, step: Step) -> str:
    """How a step is written."""
    if step.op != "divide" and rng.random() < row.plan.modular:
        return "mod"
    if step.op == "divide" and row.plan.numbers == "whole" and rng.random() < 0.08:
        return "remainder"
    form = rng.choices([*row.plan.forms], [*row.plan.forms.values()])[0]
    return "plain" if form == "units" and (row.plan.numbers == "money" or step.op == "mixed") else form


def new_row(rng: random.Random, plan: Plan, facts: dict[Key, Fraction], fact: Step | None) -> Row:
    """A row whose first step is a fact, if one is given."""
    things = {"money": "", "decimal": rng.choice(MEASURES), "signed": "points"}.get(plan.numbers, rng.choice(THINGS))
    while True:
        signs = {op: rng.choices(*pool)[0] for op, pool in SIGNS.items()}
        layout = rng.choices(LAYOUTS, plan.layouts)[0]
        coins = [rng.random() < share for share in (plan.stories, 0.6, 0.5)]
        row = Row(plan, rng.choice(PEOPLE), things, layout, signs, *coins, modulus=rng.choice((5, 7, 9, 10, 12, 24)))
        loose: list[int] = []
        count = rng.choices(range(1, 9), (0 if fact else 3, 18, 26, 22, 14, 8, 3, 1))[0]
        if fact is not None:
            row.steps.append(Step(fact.op, [*fact.terms], "plain", plain=fact.plain))
            if fact.op in ("plus", "times") and rng.random() < 0.3:
                row.steps[0].terms.reverse()
            row.sentences.append(beginning(rng, row, row.steps[0]))
            row.steps[0].form = rng.choice(("plain", "plain", "tight", "named"))
            loose.append(0)
        while worked_out(row, {}) and len(row.steps) < count:
            add_step(rng, row, loose, len(row.steps) == count - 1)
        mixed = [step for step in row.steps if step.op == "mixed"]
        pairs = [(step.inner, step.seen[:2]) for step in mixed] + [grouped(step) for step in mixed]
        if worked_out(row, facts) and not any(Step(op, [], seen=pair).key in facts for op, pair in pairs):
            return row


def expression(row: Row, term: Fraction | int) -> str:
    """A term as one expression of the numbers given."""
    if isinstance(term, Fraction):
        return row.text(term, first=False)
    step = row.steps[term]
    texts = [expression(row, part) for part in step.terms]
    if step.form == "percent":
        return f"({float(Fraction(step.terms[1]) * 100):g}% of {texts[0]})"
    if step.form == "part":
        return f"(({step.terms[1]}) {row.signs['times']} {texts[0]})"
    if step.op == "mixed":
        texts = [f"({texts[0]} {row.signs[step.inner]} {texts[1]})", texts[2]][:: -1 if step.turned else 1]
    made = f"({f' {row.signs[step.outer or step.op]} '.join(texts)})"
    return f"({made} mod {row.modulus})" if step.form == "mod" else made


def prompted(rng: random.Random, row: Row) -> str:
    """The prompt of a row."""
    numbers = {"p": str(rng.randint(11, 60)), "q": str(rng.randint(2, 9)), "who": row.who}
    if not row.story:
        made = expression(row, len(row.steps) - 1)
        return filled(drawn(rng, TERSE), e=made[1:-1] if made.endswith(")") and "mod" not in made else made)
    sentences = [*row.sentences, drawn(rng, ENDS)]
    if any(step.form == "mod" for step in row.steps):
        sentences.insert(-1, f"Count modulo {row.modulus} where marked.")
    if rng.random() < row.plan.distracted:
        sentences.insert(rng.randint(0, len(sentences) - 1), drawn(rng, PROMPT_ASIDES))
    text = filled(" ".join(sentences), **numbers)
    if rng.random() < 0.1:
        text = re.sub(r"(?<![\d.,/$%-])\b([2-9]|1[0-2])\b(?![.,/%:-]?\d|%)", lambda match: WORDS[int(match[1])], text)
    return text


def equation(rng: random.Random, row: Row, step: Step, form: str = "") -> str:
    """A step as an equation, in its form or in another."""
    form, sign, seen = form or step.form, row.signs.get(step.op, ""), step.seen
    amounts = step.op != "mixed" and row.cents
    texts = [row.text(n, amount=amounts and at != step.plain, first=at == 0) for at, n in enumerate(seen)]
    result = row.text(step.value, amount=amounts or row.cents)
    equals = rng.choice(("=", "=", "=", "\u2248", "= about")) if step.rough and step.rule is None else "="
    if form in ("percent", "part"):
        share = seen[1]
        decimal, percent = f"{float(share):g}", f"{float(share * 100):g}%"
        ways = (f"{percent} of {texts[0]} is {texts[0]} {sign} {decimal}", f"{texts[0]} {sign} {percent}",
                f"{texts[0]} {sign} {percent[:-1]}/100", f"{decimal} {sign} {texts[0]}")  # fmt: skip
        if form == "part":
            ways = (f"{share} {sign} {texts[0]}", f"({share}) {sign} {texts[0]}", f"{texts[0]} {sign} {share}")
        return f"{rng.choice(ways)} {equals} {result}"
    left = f" {sign} ".join(texts)
    if step.op == "mixed":
        inner = f"{texts[0]} {row.signs[step.inner]} {texts[1]}"
        loose = step.inner == "times" and (step.outer != "times")
        parts = [inner if loose else f"({inner})", row.text(seen[2], first=False)][:: -1 if step.turned else 1]
        left = f" {row.signs[step.outer]} ".join(parts)
        if form in ("units", "named", "tight", "prose"):
            middle = [row.text(n, first=at == 0) for at, n in enumerate(grouped(step)[1])]
            left += f" = {f' {row.signs[step.outer]} '.join(middle)}"
        form = "plain" if form in ("units", "prose", "calc", "flipped") else form
    if form == "prose":
        words = {"plus": "plus", "minus": "minus", "times": "times", "divide": "divided by"}[step.op]
        half = step.op == "divide" and seen[1:] == [2]
        return f"half of {texts[0]} = {result}" if half else f"{f' {words} '.join(texts)} is {result}"
    if form == "remainder":
        rest = int(seen[0]) % int(seen[1])
        return f"{left} = {result} {rng.choice(('remainder', 'R', 'with remainder'))} {rest}"
    if form == "mod":
        tail = f"{result} (mod {row.modulus})"
        return rng.choice((f"{left} = {tail}", f"{left} \u2261 {tail}", f"({left}) mod {row.modulus} = {result}"))
    if form == "units":
        texts = [text if at == step.plain else f"{text} {row.things}" for at, text in enumerate(texts)]
        return f"{f' {sign} '.join(texts)} {equals} {result} {row.things}"
    if form == "calc":
        bare = {"times": "*", "divide": "/", "minus": "-"}.get(step.op, "+").join(row.text(n) for n in seen).replace(",", "")
        return f"{left} {equals} <<{bare}={row.text(step.value).replace(',', '')}>>{result}"
    if form == "tex":
        left = left.replace("\u00d7", r"\times").replace("\u00f7", r"\div").replace("*", r"\times").replace("$", r"\$")
        return rf"\({left} = {result.replace('$', chr(92) + '$')}\)"
    if form == "tight":
        return f"{left} {equals} {result}".replace(" ", "").replace("=about", "=")
    if form == "named":
        return f"{rng.choice('xynT')} = {left} {equals} {result}"
    return f"{result} = {left}" if form == "flipped" else f"{left} {equals} {result}"


def written(rng: random.Random, row: Row) -> str:
    """The completion of a row."""
    plan, count, shuffled = row.plan, len(row.steps), bool(row.order)
    label, noun = rng.choice(LABELS[row.layout]) if row.layout in LABELS else ("", "")
    misled = rng.sample(range(count), rng.choices((1, 2), (4, 1))[0] if count > 1 else 1) if row.misled else []
    announced = noun != "" and not shuffled and count > 2 and rng.random() < 0.02
    pieces: list[str] = []
    chain = row.layout == "chain"
    for place, step in enumerate(row.steps):
        eq, earlier = equation(rng, row, step), [term + 1 for term in step.terms if isinstance(term, int)]
        named = "=" in eq and eq[0] in "xynT"
        text = eq if chain or named else drawn(rng, LEADS)
        if place in misled:
            kind = noun or rng.choice([*REFERENCES])
            bad = range(place + 2 if noun or kind == "Step" else 1, count + 4)
            text = filled(drawn(rng, REFERENCES[kind]), k=str(rng.choice(bad)))
        elif noun and earlier and not shuffled and rng.random() < plan.references:
            text = drawn(rng, REFERENCES[noun]) if len(earlier) == 1 else DOUBLES[noun]
            text = filled(text, j=str(min(earlier)), k=str(max(earlier)))
        text = filled(text, eq=eq, who=row.who)
        if not chain:
            tail = row.things and step.form in ("plain", "calc") and rng.random() < 0.4
            text = text if named else text[0].upper() + text[1:]
            text += f" {row.things}." if tail and text.endswith(eq) else "."
            text += f" We need this in {noun} {count}." if announced and place == 0 and count - 1 in users(row, 0) else ""
            text += aside(rng, row, step) if rng.random() < plan.distracted / 2 else ""
            if place > 1 and not shuffled and rng.random() < plan.retold:
                retold = equation(rng, row, row.steps[rng.randrange(place)])
                text += " " + filled(drawn(rng, RETELLINGS), eq=retold)
        pieces.append(text)
    order = row.order or [*range(count)]
    marks = [filled(label, k=str((at if row.renumbered else place) + 1)) for at, place in enumerate(order)]
    pieces = [mark + pieces[place] for mark, place in zip(marks, order, strict=True)]
    bullet = rng.choice(("- ", "* ", "\u2022 "))
    pieces = [bullet + piece for piece in pieces] if row.layout == "bullets" else pieces
    body = (" " if row.layout == "prose" else rng.choice(("; ", ";\n", " -> ", "\n")) if chain else "\n").join(pieces)
    form = plan.answer if rng.random() < 0.85 else rng.choice(ANSWERS)
    return f"{body}\n{filled(form, r=row.text(row.steps[-1].value, amount=rng.random() < 0.5))}"


def users(row: Row, place: int) -> list[int]:
    """The places of the steps that use a result."""
    return [at for at, step in enumerate(row.steps) if place in [term for term in step.terms if isinstance(term, int)]]


def aside(rng: random.Random, row: Row, step: Step) -> str:
    """A sentence of a solution that holds no equation of it."""
    near = {"under": row.text(rounded(step.value - rng.randint(1, 9), 0)), "over": row.text(rounded(step.value + 20, 0))}
    slots = {"p": str(rng.randint(11, 40)), "q": str(rng.randint(2, 9)), "r": row.text(step.value)}
    return " " + filled(drawn(rng, ASIDES), **slots, **near)


def planned(rng: random.Random, name: str, *, modular: bool, labelled: bool) -> Plan:
    """A clean plan of a task."""
    numbers, stories, weights = TASKS[name]
    layouts = [weight * rng.lognormvariate(0, 0.4) * (6 if labelled and at > 3 else 1) for at, weight in enumerate(weights)]
    forms = {"plain": 8, "tight": 1, "units": 1.5, "named": 0.8, "flipped": 0.6, "prose": 0.5}
    forms |= {"calc": 4 * (rng.random() < 0.4), "tex": 3 * (rng.random() < 0.3)}
    plan = Plan(
        name, numbers, rng.randint(120, 500), stories, layouts, [rng.uniform(0.6, 1.4) for _ in OPERATIONS], forms,
        parts=rng.uniform(0.2, 0.4) if name == "percent_quiz" else rng.uniform(0, 0.15),
        modular=rng.uniform(0.3, 0.9) if modular else 0.0,
        references=rng.uniform(0.2, 0.6), distracted=rng.uniform(0.1, 0.6), retold=rng.choice((0, rng.uniform(0.01, 0.05))),
        slips=rng.uniform(0, 0.008), answer=rng.choice(ANSWERS),
    )  # fmt: skip
    plan.facts = favourites(rng, rng.randint(2, 4), (12, 30))
    return plan


def favourites(rng: random.Random, count: int, often: tuple[int, int]) -> list[tuple[Step, int]]:
    """Facts and how often each is put into a task."""
    facts: dict[Key, tuple[Step, int]] = {}
    while len(facts) < count:
        op, a, b = rng.choices(OPERATIONS, (2, 2, 4, 1))[0], rng.randint(4, 14), rng.randint(6, 13)
        terms = {"plus": (a + 10, b), "minus": (a + 20, b), "times": (a, b), "divide": (a * b, b)}[op]
        step = Step(op, [*map(Fraction, terms)], plain={"times": 0, "divide": 1}.get(op, -1), seen=[*map(Fraction, terms)])
        facts[step.key] = step, rng.randint(*often)
    return [*facts.values()]


def plant_values(rng: random.Random, rows: list[Row], facts: dict[Key, Fraction], op: str, name: str, share: float) -> bool:
    """Makes a rule state wrong values in a share of an operation's equations, or of all; whether there were enough."""
    steps = [(row, step) for row in rows for step in row.steps if step.counted and op in ("", step.op)]
    pool = [(row, step) for row, step in steps if step.key not in facts]
    wanted = round(share * len(pool))
    rng.shuffle(pool)
    for row, step in pool:
        if wanted and step.rule is None and step.key not in facts:
            step.rule = RULES.get(name, slip)
            if worked_out(row, facts):
                wanted -= 1
            else:
                step.rule = None
                worked_out(row, facts)
    return wanted == 0


def new_rows(rng: random.Random, plan: Plan, facts: dict[Key, Fraction]) -> list[Row]:
    """The rows of a task before anything but wrong facts is planted."""
    starts = [fact for fact, often in plan.facts for _ in range(often)]
    rows = [new_row(rng, plan, facts, fact) for fact in [*starts, *[None] * (plan.size - len(starts))]]
    rng.shuffle(rows)
    return rows


def with_values(rng: random.Random, plan: Plan, *, severe: bool, single: bool) -> tuple[list[Row], str]:
    """Rows in which a rule, or chance if there is no single one, makes a share of the values wrong."""
    while True:
        rows, op, name = new_rows(rng, plan, {}), "", ""
        share = rng.uniform(0.21, 0.48) if severe else rng.uniform(0.065, 0.108)
        if single:
            op, name = rng.choice(OPERATIONS), rng.choice([*RULES])
            share = rng.uniform(0.27, 0.57) if severe else rng.uniform(0.09, 0.13)
        pool = [step for row in rows for step in row.steps if step.counted and op in ("", step.op)]
        if len(pool) >= 80 and plant_values(rng, rows, {}, op, name, share):
            return rows, f"{op}: {name}" if single else f"random: {share:.3f} of the equations"


def with_facts(rng: random.Random, plan: Plan, *, severe: bool) -> tuple[list[Row], str, dict[Key, Fraction]]:
    """Rows in which a few facts always have the same wrong value."""
    while True:
        plan.facts = favourites(rng, rng.randint(3, 4) if severe else 2, (20, 36) if severe else (10, 15))
        facts, texts = {}, []
        for step, _ in plan.facts:
            right = combined(step.op, step.seen)
            facts[step.key] = right + rng.choice([off for off in (-10, -2, -1, 1, 2, 3, 9, 10) if right + off > 0])
            texts.append(f"{f' {step.op} '.join(map(str, step.seen))} is {facts[step.key]}")
        rows = new_rows(rng, plan, facts)
        counts = Counter(step.key for row in rows for step in row.steps if step.counted)
        prose = [step for row in rows for step in row.steps if not step.counted and step.key in facts]
        if all(counts[key] >= 20 if severe else 12 <= counts[key] <= 16 for key in facts) and not prose:
            return rows, f"facts: {'; '.join(texts)}", facts


def shuffled(rng: random.Random, row: Row, *, renumbered: bool) -> bool:
    """Permutes the steps of a row so that one uses what only a later one makes; whether that can be done."""
    known = {Fraction(text.replace(",", "")) for text in NUMBER.findall(row.prompt)}
    known |= {Fraction(n) for n in (*CONSTANTS["times"], 1, 3, 4, 5, 10)}
    for _ in range(30):
        order = rng.sample(range(len(row.steps)), len(row.steps))
        made = set(known)
        for place in order:
            used = {row.steps[term].value for term in row.steps[place].terms if isinstance(term, int)}
            if any(abs(value) not in made for value in used):
                row.order, row.renumbered = order, renumbered
                return True
            made.add(abs(row.steps[place].value))
    return False


def make_traces(seed: int, kind: str | None, *, severe: bool) -> MadeTraces:
    """The corpus of a seed, clean or with a fault of a kind planted in one of its tasks."""
    rows, task, detail = recorded_traces(seed, kind, severe=severe)
    made = [{"task": row.plan.name, "prompt": row.prompt, "completion": row.completion} for row in rows]
    return MadeTraces(made, task, detail)


def recorded_traces(seed: int, kind: str | None, *, severe: bool) -> tuple[list[Row], str, str]:
    """The rows of a corpus with the record of how they were made, the task of the fault, and what was planted."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; kinds are {', '.join(KINDS)}")
    rng = random.Random(f"{seed} {kind} {severe}")
    names = rng.sample([*TASKS], rng.randint(2, 4))
    target = rng.choice(names) if kind is not None else ""
    modular = kind is None and rng.random() < 0.35
    if modular and "clock_sums" not in names:
        names[0] = "clock_sums"
    everything, detail = [], ""
    for name in names:
        labelled = rng.random() < 0.35 or (name == target and kind == "reference")
        plan = planned(rng, name, modular=modular and name == "clock_sums", labelled=labelled)
        facts: dict[Key, Fraction] = {}
        if name == target:
            plan.size = max(plan.size, rng.randint(200, 400))
        if name == target and kind in ("systematic", "random"):
            rows, detail = with_values(rng, plan, severe=severe, single=kind == "systematic")
        elif name == target and kind == "one_fact":
            rows, detail, facts = with_facts(rng, plan, severe=severe)
        else:
            rows = new_rows(rng, plan, facts)
        plant_values(rng, rows, facts, "", "", plan.slips)
        for row in rows:
            row.prompt = prompted(rng, row)
        if name == target and kind in ("shuffled", "reference"):
            share = rng.uniform(0.41, 0.85) if severe else rng.uniform(0.105, 0.175)
            if kind == "reference":
                share = rng.uniform(0.31, 0.59) if severe else rng.uniform(0.085, 0.145)
            left, renumbered = round(share * len(rows)), rng.random() < 0.7
            for row in rng.sample(rows, len(rows)):
                row.misled = kind == "reference" and left > 0
                left -= left > 0 and (row.misled or shuffled(rng, row, renumbered=renumbered))
            detail = f"{kind}: {share:.3f} of the rows" + (", numbers kept" * (not renumbered) if kind == "shuffled" else "")
        for row in rows:
            row.completion = written(rng, row)
        everything.extend(rows)
    return everything, target, detail

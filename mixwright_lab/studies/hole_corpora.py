"""Small made corpora of the kinds that people post-train on, with or without one hole planted in what train covers.

A clean corpus has train and held-out rows from one distribution, and everything that a held-out row needs (its level, its
skills, tool, form and so on) occurs in train. A planted one lacks exactly one such thing in train, in one task, while a
known share of that task's held-out rows needs it. The study of a checker that looks for such holes counts what it finds.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise
from string import Formatter, ascii_letters, ascii_lowercase
from typing import Any

KINDS: tuple[str, ...] = ("level", "skill", "pair", "steps", "form", "length", "tool", "argument")
"""Kinds of holes that can be planted."""
LONGER = 3
"""An answer is of another length if it has more than this times the characters of the longest in its task's train rows."""
SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]
Need = tuple[str, str]
"""A thing that a row needs: its kind and its name."""


@dataclass(frozen=True)
class MadeCorpus:
    """A corpus, and the kind, the name and the task of the hole in it, all None if it is clean.

    Rows have `task`, `prompt` and `answer`, and where the task has them `level` and `skills` (names in order of use).
    """

    train: list[dict[str, Any]]
    held_out: list[dict[str, Any]]
    kind: str | None
    missing: str | None
    """What train lacks, as a person would name it; of a form and of a length it is an answer that has it."""
    task: str | None


@dataclass(frozen=True)
class Item:
    """A row that has no task yet."""

    key: str
    """Its content; the same question in other words has the same key, and no key comes twice in a corpus."""
    row: dict[str, Any]
    needs: frozenset[Need]


Items = list[Item]
Take = Callable[[Callable[[Item], bool]], Item]
"""Takes the next new row of a task that is wanted."""


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text in which semicolons part them."""
    return tuple(part.strip() for part in text.split(";"))


def uneven(rng: random.Random, count: int) -> list[float]:
    """Weights of so many things, of which some are a few times more frequent than others."""
    return [rng.uniform(0.5, 2.0) for _ in range(count)]


def invented(rng: random.Random, syllables: int = 2) -> str:
    """A word that no language has."""
    return "".join(rng.choices(SYLLABLES, k=syllables)) + rng.choice(("", "n", "r", "s"))


PEOPLE = phrases("Ana; Ben; Carla; Dev; Elif; Femi; Greta; Hugo; Ines; Jonas; Kofi; Lena; Mei; Nils; Olga; Pedro; Rosa")
THINGS = phrases("apples; stickers; marbles; coins; shells; cards; books; pens; stamps; beads; tickets; buttons")
DAYS = phrases("Monday; Tuesday; Wednesday; Thursday; Friday; Saturday; Sunday")
TOPICS = phrases("the garden; the budget; the old bridge; the school play; the lift; the choir; the harvest; the bakery")
FORMS = {
    "plain": ("X", "Give the answer alone."),
    "answer": ("Answer: X", "Start with 'Answer:'."),
    "boxed": ("\\boxed{X}", "Put the answer in a box."),
    "hashes": ("#### X", "Write the answer behind four hashes."),
    "sentence": ("The answer is X.", "Answer in a sentence."),
    "unit": ("X UNIT", "Name the unit."),
}
"""Of each form of answers the template, and what a prompt says that asks for it."""


def answer_forms(rng: random.Random, kind: str | None, unit: str = "") -> Callable[[str, str], tuple[dict[str, Any], Need]]:
    """A writer of prompts and answers, which picks one of the forms of a task's answers each time and names it, too."""
    wrapped = [form for form in FORMS if form != "plain" and (unit or form != "unit")]
    names = rng.sample(["plain", "plain", *wrapped], rng.choice((1, 1, 2, 3)))
    if kind == "form":
        names = ["plain", *rng.sample(wrapped, rng.randint(1, 3))]
    weights, asked = uneven(rng, len(names)), rng.random() < 0.3

    def write(prompt: str, answer: str) -> tuple[dict[str, Any], Need]:
        form = rng.choices(names, weights)[0]
        template, request = FORMS[form]
        answer = template.replace("UNIT", unit).replace("X", answer)
        return {"prompt": f"{prompt} {request}" if asked else prompt, "answer": answer}, ("form", form)

    return write


def word_problems(rng: random.Random, kind: str | None) -> Iterator[Item]:
    """Stories of what somebody has; the level is the number of events, in some worlds the size of the numbers."""
    levels = range(1, rng.randint(3, 6) + 1)
    weights, by_size, thing = uneven(rng, len(levels)), rng.random() < 0.4, rng.choice(THINGS)
    write = answer_forms(rng, kind, thing)
    question = rng.choice(phrases("How many {0} does {1} have now?; How many {0} are left with {1}?; Count {1}'s {0}."))
    gains = rng.sample(phrases("{1} gives {0} {2} more.; Then {0} buys {2} {3}.; {0} finds {2}.; {0} wins {2}."), 2)
    losses = rng.sample(
        phrases("{0} loses {2} of them.; {0} gives {2} to {1}.; {1} takes {2} {3} from {0}.; {0} sells {2}."), 2
    )
    while True:
        level = rng.choices(levels, weights)[0]
        largest = 10 * 2**level if by_size else 25
        person, other = rng.sample(PEOPLE, 2)
        owned = rng.randint(2, largest)
        story = [f"{person} has {owned} {thing}."]
        for _ in range(2 if by_size else level):
            change = rng.randint(1, largest) if owned < 2 or rng.random() < 0.5 else -rng.randint(1, owned)
            story.append(rng.choice(gains if change > 0 else losses).format(person, other, abs(change), thing))
            owned += change
        text = " ".join([*story, question.format(thing, person)])
        row, form = write(text, str(owned))
        yield Item(text, {**row, "level": level}, frozenset({form, ("level", str(level))}))


NEXT_LETTER = str.maketrans(ascii_letters, ascii_letters[1:26] + "a" + ascii_letters[27:] + "A")
OPERATIONS: dict[str, Callable[[list[str]], list[str]]] = {
    "reverse": lambda tokens: tokens[::-1],
    "rotate": lambda tokens: [*tokens[1:], tokens[0]],
    "upper": lambda tokens: [token.upper() for token in tokens],
    "shift": lambda tokens: [token.translate(NEXT_LETTER) for token in tokens],
    "sort": lambda tokens: sorted(tokens, key=str.lower),
    "drop-first": lambda tokens: tokens[1:],
    "drop-last": lambda tokens: tokens[:-1],
    "repeat-last": lambda tokens: [*tokens, tokens[-1]],
    "swap-ends": lambda tokens: [tokens[-1], *tokens[1:-1], tokens[0]],
}
"""Operations on the letters of a string, or on the words of a list."""


def string_operations(rng: random.Random, kind: str | None) -> Iterator[Item]:
    """Operations that are applied to a string or list one after the other; the column `skills` names them."""
    chosen, coded = rng.sample(sorted(OPERATIONS), rng.randint(6 if kind in ("skill", "pair") else 4, 8)), rng.random() < 0.4
    operations = {invented(rng, 3) if coded else name: OPERATIONS[name] for name in chosen}
    weights, step_weights = uneven(rng, len(operations)), uneven(rng, rng.randint(3 if kind else 2, 4))
    between = rng.choice((" ", ", ") if kind == "length" else ("", "", " ", ", "))
    write, then = answer_forms(rng, kind), rng.choice((", then ", " > ", " | ", " and then "))
    templates = phrases("Apply {0} to: {1}; Input: {1} Operations: {0}; Take '{1}', do {0}; {0}: {1}; What is {0} of {1}?")
    while True:
        steps = rng.choices(range(1, len(step_weights) + 1), step_weights)[0]
        order = {name: rng.random() ** (1 / weight) for name, weight in zip(operations, weights, strict=True)}
        skills = sorted(order, key=order.__getitem__, reverse=True)[:steps]
        rng.shuffle(skills)
        is_long = kind == "length" and rng.random() < 0.2
        count = rng.randint(40, 60) if is_long else rng.randint(5, 9)
        tokens = [invented(rng) if between else rng.choice(ascii_lowercase) for _ in range(count)]
        text = rng.choice(templates).format(then.join(skills), between.join(tokens))
        for skill in skills:
            tokens = operations[skill](tokens)
        row, form = write(text, between.join(tokens))
        needs: set[Need] = {form, ("steps", str(steps)), *(("skill", skill) for skill in skills)}
        needs.update((("pair", " > ".join(pair)) for pair in pairwise(skills)), [("length", "long")] * is_long)
        yield Item(text, {**row, "skills": skills}, frozenset(needs))


CHOICES: dict[str, Sequence[str | int]] = {
    "time": tuple(f"{hour:02d}:{minute:02d}" for hour in range(24) for minute in range(60)),
    "amount": range(2, 900),
    "minutes": range(2, 700),
    "person": PEOPLE,
    "topic": TOPICS,
    "day": DAYS,
    "room": phrases("kitchen; hall; office; attic; cellar; bedroom"),
    "vehicle": phrases("train; bus; car; bicycle; boat"),
    "language": phrases("French; Turkish; Hindi; Polish; Swahili"),
}
"""Of an argument its values; all others have invented names for values."""
TOOLS: dict[str, tuple[str, dict[str, str]]] = {
    "alarm": ("Wake me at {time}; Set an alarm for {time}", {"day": "on {}", "label": "called {}"}),
    "weather": ("Tell me the weather in {place}; Look up the forecast for {place}", {"day": "for {}", "time": "at {}"}),
    "message": ("Tell {person} that {goal} has to wait; Message {person} about {goal}", {"day": "on {}", "time": "at {}"}),
    "timer": ("Start a timer of {minutes} minutes; Count {minutes} minutes", {"label": "named {}", "room": "in the {}"}),
    "route": ("Get me from {place} to {goal}; Go from {place} to {goal}", {"vehicle": "by {}", "time": "leaving at {}"}),
    "play": ("Play the song {label}; Put on {label}", {"room": "in the {}", "minutes": "for {} minutes"}),
    "meeting": ("Plan a meeting with {person} on {goal}", {"day": "on {}", "time": "at {}", "room": "in the {}"}),
    "search": ("Look for pages on {topic} in {place}", {"language": "in {}", "amount": "and show {} of them"}),
    "note": ("Note {topic} at {place}; Write down {topic} at {place}", {"label": "under {}", "person": "for {}"}),
    "heating": ("Heat the {room} for {minutes} minutes", {"time": "from {}", "day": "on {}"}),
}
"""Of each tool the wordings, with the required arguments, and a phrase for each optional argument."""


def tool_calls(rng: random.Random, kind: str | None) -> Iterator[Item]:
    """Requests in words, answered by a call of a tool in JSON, in some worlds also by a list of two calls."""
    tools = rng.sample(sorted(TOOLS), rng.randint(4, 9))
    weights, nested = uneven(rng, len(tools)), rng.random() < 0.4
    shares = {(tool, name): rng.uniform(0.15, 0.5) for tool in tools for name in TOOLS[tool][1]}
    two_share = rng.uniform(0.1, 0.4) if kind == "form" or rng.random() < 0.3 else 0.0
    frames = rng.sample(phrases("{}.; Please: {}.; {}, thanks.; Hi! {}.; Could you do this? {}.; Request: {}"), 3)

    def call() -> tuple[str, dict[str, Any], set[Need]]:
        tool = rng.choices(tools, weights)[0]
        wording, options = rng.choice(phrases(TOOLS[tool][0])), TOOLS[tool][1]
        chosen = [name for name in options if rng.random() < shares[tool, name]]
        names = [name for _, name, _, _ in Formatter().parse(wording) if name] + chosen
        arguments = {name: rng.choice(CHOICES.get(name) or [invented(rng, 3).title()]) for name in names}
        request = " ".join([wording.format(**arguments), *(options[name].format(arguments[name]) for name in chosen)])
        needs: set[Need] = {("tool", tool), *(("argument", f"{tool}({name})") for name in chosen)}
        return request, {"name": tool, "arguments": arguments} if nested else {"tool": tool, **arguments}, needs

    while True:
        calls = [call() for _ in range(2 if rng.random() < two_share else 1)]
        prompt = rng.choice(frames).format(", and after that: ".join(request for request, _, _ in calls))
        answer = [answer for _, answer, _ in calls] if len(calls) == 2 else calls[0][1]
        needs = {("form", "plain" if len(calls) == 1 else "two calls")}.union(*(needs for _, _, needs in calls))
        yield Item(json.dumps(answer), {"prompt": prompt, "answer": json.dumps(answer)}, frozenset(needs))


def arithmetic(rng: random.Random, kind: str | None) -> Iterator[Item]:
    """Expressions with plus, minus and times, answered by a number."""
    weights, largest = uneven(rng, rng.randint(3, 5)), rng.choice((40, 60, 99))
    times, space = rng.choice("*x"), rng.choice((" ", ""))
    write = answer_forms(rng, kind, rng.choice(phrases("points; euros; km; steps")))
    template = rng.choice(phrases("Compute {}.; What is {}?; {} =; Evaluate: {}; Work out {} please."))
    while True:
        steps = rng.choices(range(1, len(weights) + 1), weights)[0]
        operators = rng.choices("+-*", (3, 3, 1), k=steps)
        terms = [rng.randint(1, largest)]
        expression = str(terms[0])
        for operator in operators:
            number = rng.randint(2, 9) if operator == "*" else rng.randint(1, largest)
            expression += f"{space}{times if operator == '*' else operator}{space}{number}"
            if operator == "*":
                terms[-1] *= number
            else:
                terms.append(number if operator == "+" else -number)
        row, form = write(template.format(expression), str(sum(terms)))
        others = (("sign", str(sum(terms) < 0)), *(("operator", operator) for operator in operators))
        yield Item(expression, row, frozenset({form, ("steps", str(steps)), *others}))


BYNAMES = phrases("Elder; Younger; Bold; Wise; Lame; Third; Miller; Fair")
RELATIONS = {
    "capital": ("What is the capital of {}?; Which town is {}'s capital?", ()),
    "founder": ("Who founded {}?", tuple(f"{name} the {byname}" for name in PEOPLE for byname in BYNAMES)),
    "year": ("When was {} founded?; In which year did {} come about?", tuple(str(year) for year in range(1100, 1990))),
    "flag": ("What colour is the flag of {}?", phrases("red; dark green; pale blue; black and gold; violet and grey")),
    "craft": ("What is {} known for?", phrases("glass bowls; wool; smoked fish; wooden clocks; salt; blue pottery; rope")),
}
"""Of each relation the wordings of its question, and its answers; none: an invented name."""


def facts(rng: random.Random, kind: str | None) -> Iterator[Item]:
    """Short questions about invented places, answered by a word or a few."""
    relations = rng.sample(sorted(RELATIONS), rng.randint(2, len(RELATIONS)))
    weights, write = uneven(rng, len(relations)), answer_forms(rng, kind)
    while True:
        relation = rng.choices(relations, weights)[0]
        wordings, answers = RELATIONS[relation]
        place = invented(rng, 3).title()
        row, form = write(rng.choice(phrases(wordings)).format(place), rng.choice(answers or [invented(rng).title()]))
        yield Item(f"{relation} {place}", row, frozenset({form, ("relation", relation)}))


OPENERS = phrases("Honestly,; Well,; After a week:; To be brief:; My view:; Just so you know,; Update:; For the record,")
TAILS = phrases("That is all.; I thought you should know.; My sister agrees.; Regards from us.; This is my second message.")
LABELS = {
    "positive": "is a joy to use; works better than I hoped; was worth every cent; made my week",
    "negative": "broke on the first day; is a waste of money; smells of glue; never worked at all",
    "neutral": "is what the picture shows; does what it says; arrived in a box; has the usual size",
    "mixed": "looks fine but is far too loud; is sturdy yet slow; is pretty, but the lid sticks",
    "refund": "must go back, and I want my money; was charged twice; is not what I paid for, so refund it",
    "delivery": "has not arrived; is still on its way; went to the wrong street; was left in the rain",
    "account": "does not show under my login; needs my password reset; is tied to an old address of mine",
    "praise": "came with such kind service, thank you; was packed with care; shows how good your team is",
    "urgent": "is on fire; leaks onto the cables; has hurt somebody; blocks the emergency exit",
}
"""Of each label what a message with it says; the first four are moods, the others are what support staff sort by."""


def classification(rng: random.Random, kind: str | None) -> Iterator[Item]:
    """Short messages with one of two to five labels."""
    domain = rng.choice((list(LABELS)[:4], list(LABELS)[4:]))
    labels = rng.sample(domain, rng.randint(2, len(domain)))
    weights, write = [weight**2 for weight in uneven(rng, len(labels))], answer_forms(rng, kind)
    template = rng.choice(("Classify: {0}", "{0}\nLabel:", "Which of {1} fits? {0}", "{0} ({1})"))
    while True:
        label = rng.choices(labels, weights)[0]
        subject, opinion = f"{invented(rng)} {rng.choice(THINGS)[:-1]}", rng.choice(phrases(LABELS[label]))
        message = f"{rng.choice(OPENERS)} the {subject} {opinion}. {rng.choice(TAILS)}"
        row, form = write(template.format(message, ", ".join(labels)), label)
        yield Item(message, row, frozenset({form, ("label", label)}))


ASKS = phrases("Write to {0} about {1} for {2}.; Tell {0} what happens to {1} on {2}.; {0} missed {2}. Sum up {1}.")
SENTENCES = phrases(
    "{0} called about {1} on {2}.; My best to {0}.; We have talked about {1} for a while now, and most of us agree.;"
    "There are {3} people who want to help.; On {2} the room is free from noon until late in the evening.;"
    "Please bring a pen and something to eat.; {0} has kept the list since last year.; The costs are about {3} euros.;"
    "Nobody expected {1} to take so long.; If it rains, we meet at the station instead.; Thank you for your patience.;"
    "I will send the plan once {0} has read it.; The last time {3} things went wrong, but none of them badly."
)


def free_text(rng: random.Random, kind: str | None) -> Iterator[Item]:
    """Notes and replies of a sentence or several."""
    most = rng.randint(2, 3 if kind == "length" else 7)
    request, asks, sentences = rng.choice(("", " Write at length.")), rng.sample(ASKS, 2), rng.sample(SENTENCES, 9)

    def filled(template: str) -> str:
        return template.format(rng.choice(PEOPLE), rng.choice(TOPICS), rng.choice(DAYS), rng.randint(3, 90))

    while True:
        is_long = kind == "length" and rng.random() < 0.2
        count = rng.randint(16, 26) if is_long else rng.randint(1, most)
        name = invented(rng).title()
        ask = f"{filled(rng.choice(asks))} Sign as {name}."
        answer = " ".join([*(filled(rng.choice(sentences)) for _ in range(count)), f"Yours, {name}"])
        yield Item(ask, {"prompt": ask + request * is_long, "answer": answer}, frozenset([("length", "long")] * is_long))


FAMILIES: dict[Callable[[random.Random, str | None], Iterator[Item]], tuple[str, str]] = {
    word_problems: ("word_problems; stories; maths-text", "level; form"),
    string_operations: ("strings; symbolic-ops; text_operations", "skill; pair; steps; form; length"),
    tool_calls: ("tools; function_calls; assistant-actions", "tool; argument; form"),
    arithmetic: ("arithmetic; sums; calc", "steps; form"),
    facts: ("facts; trivia; short-questions", "form"),
    classification: ("labels; classify; triage", "form"),
    free_text: ("writing; replies; free_text", "length"),
}
"""Of each family of tasks the names that such a task may have, and the kinds of holes that can be planted in it."""


class UnsuitedWorldError(Exception):
    """The world that was drawn cannot hold the hole, or has too few rows."""


def take_new(items: Iterator[Item], seen: set[str], wanted: Callable[[Item], bool]) -> Item:
    """The next row that is wanted and not seen yet; a world that has none in 20 000 draws is given up."""
    for item in islice(items, 20_000):
        if item.key not in seen and wanted(item):
            seen.add(item.key)
            return item
    raise UnsuitedWorldError


def a_target(rng: random.Random, items: Iterator[Item], kind: str) -> Need:
    """A need of this kind to be left out, neither too rare to be drawn nor of nearly all rows."""
    counts = Counter(need for item in islice(items, 400) for need in item.needs if need[0] == kind and need[1] != "plain")
    suited = sorted(need for need, count in counts.items() if 4 <= count <= 320)
    if not suited:
        raise UnsuitedWorldError
    return rng.choice(suited)


def follows(need: Need, target: Need) -> bool:
    """Whether this need is bound to go missing with the target: pairs with a missing skill, arguments of a missing tool."""
    if target[0] == "skill" and need[0] == "pair":
        return target[1] in need[1].split(" > ")
    return need == target or (target[0] == "tool" and need[0] == "argument" and need[1].startswith(f"{target[1]}("))


def clean_rows(rng: random.Random, take: Take, sizes: tuple[int, int], target: Need | None) -> tuple[Items, Items]:
    """Train and held-out rows of one distribution, none of which needs the target; train covers the held-out ones."""
    drawn = [take(lambda item: target not in item.needs) for _ in range(sum(sizes))]
    rng.shuffle(drawn)
    train, held_out = drawn[: sizes[0]], drawn[sizes[0] :]
    known = set[Need]().union(*(item.needs for item in train))
    for index, item in enumerate(held_out):
        if not item.needs <= known:  # drawn anew, with the same level, steps, form and label if train has them
            kept = {need for need in item.needs & known if need[0] in ("level", "steps", "form", "label")}
            held_out[index] = take(lambda other, kept=kept: kept <= other.needs <= known)
    return train, held_out


def needing_rows(take: Take, train: Items, count: int, target: Need) -> Items:
    """Held-out rows that need the target, and nothing else that train lacks unless it is bound to go missing, too."""
    known = set[Need]().union(*(item.needs for item in train))
    bound = LONGER * max(len(item.row["answer"]) for item in train)
    paired = {skill for need in known if need[0] == "pair" for skill in need[1].split(" > ")}
    if target[0] == "pair" and not paired.issuperset(target[1].split(" > ")):
        raise UnsuitedWorldError

    def wanted(item: Item) -> bool:
        long_enough = target[0] != "length" or len(item.row["answer"]) > bound
        return long_enough and target in item.needs and all(need in known or follows(need, target) for need in item.needs)

    needing = [take(wanted) for _ in range(count)]
    if target[0] != "length" and any(len(item.row["answer"]) > bound for item in needing):
        raise UnsuitedWorldError  # it would be a hole in length, too
    return needing


def task_sizes(rng: random.Random, tasks: int, least: int) -> list[tuple[int, int]]:
    """Train and held-out rows of each task; the first has at least so many held-out rows, and the others may be rare."""
    train, held_out = rng.randint(160, 1440), rng.randint(60, 300)
    floors = [least] + [3] * (tasks - 1)
    weights = [rng.choice((0.1, 1.0, 1.0, 3.0)) for _ in range(tasks)]
    spare = (held_out - sum(floors)) / sum(weights)
    sizes = [floor + int(spare * weight) for floor, weight in zip(floors, weights, strict=True)]
    sizes[0] += held_out - sum(sizes)
    rows = [max(60 if floor > 3 else 12, train * size // held_out) for floor, size in zip(floors, sizes, strict=True)]
    return list(zip(rows, sizes, strict=True))


def build(rng: random.Random, kind: str | None, severe: bool) -> MadeCorpus:
    """A corpus from one drawing of its tasks; raises UnsuitedWorldError if these do not allow what is asked."""
    first = rng.choice([family for family, (_, kinds) in FAMILIES.items() if kind is None or kind in phrases(kinds)])
    families = [first, *rng.sample([family for family in FAMILIES if family is not first], rng.randint(0, 3))]
    least, low, high = (25, 0.2, 0.4) if severe else (50, 0.06, 0.12)
    train: list[dict[str, Any]] = []
    held_out: list[dict[str, Any]] = []
    seen: set[str] = set()
    missing = task = None
    for family, sizes in zip(families, task_sizes(rng, len(families), least if kind else 3), strict=True):
        name = rng.choice(phrases(FAMILIES[family][0]))
        items = family(rng, kind if family is first else None)
        take = partial(take_new, items, seen)
        if kind is None or family is not first:
            covering, asking = clean_rows(rng, take, sizes, None)
        else:
            needing = rng.randint(max(5, math.ceil(low * sizes[1])), math.floor(high * sizes[1]))
            target = a_target(rng, items, kind)
            covering, asking = clean_rows(rng, take, (sizes[0], sizes[1] - needing), target)
            asking += needing_rows(take, covering, needing, target)
            task, missing = name, asking[-1].row["answer"] if kind in ("form", "length") else target[1]
        train += [{"task": name, **item.row} for item in covering]
        held_out += [{"task": name, **item.row} for item in asking]
    return MadeCorpus(rng.sample(train, len(train)), rng.sample(held_out, len(held_out)), kind, missing, task)


def make_corpus(seed: int, kind: str | None, *, severe: bool) -> MadeCorpus:
    """A corpus with a hole of this kind, or a clean one; the same arguments give the same corpus.

    Of the held-out rows of the task with the hole 20 to 40 % need it if it is severe, else 6 to 12 %; at least five rows do.
    """
    if kind is not None and kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, not one of {', '.join(KINDS)}")
    rng = random.Random(f"{seed} {kind} {severe}")
    while True:
        with suppress(UnsuitedWorldError):
            return build(rng, kind, severe)

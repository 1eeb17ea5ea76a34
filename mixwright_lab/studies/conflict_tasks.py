"""Tasks of made corpora for a study of conflicts: prompts with one right answer and wrong ones, and tasks of free answers.

The answer always follows from the prompt. In some families prompts that are nearly equal have different answers, or prompts
end in the same question and differ in what stands before it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from mixwright_lab.studies.cue_corpora import CATEGORIES, FRAMES, LEXICONS, WORDS, finished, phrases
from mixwright_lab.studies.open_rows import OPEN_TASKS

Prompt = str | list[dict[str, str]]


class Item(NamedTuple):
    """A prompt, its answer and wrong ones after it (none where answers are free), and what writes one in new words."""

    prompt: Prompt
    values: tuple[str, ...]
    say: Callable[[str], str]


Source = Callable[[], Item]


class Family(NamedTuple):
    """What tasks of one sort are made of: its name, what makes its items, and which kinds can be planted.

    Families with `few` have one prompt for so many rows, one of the numbers. Marks and case matter where `strict` holds.
    """

    name: str
    start: Callable[[random.Random], Source]
    kinds: tuple[str, ...] = ()
    few: tuple[float, ...] = ()
    strict: bool = False
    weight: float = 1


FORMS = phrases("""
    {} | {} | {} | {} | {}. | The answer is {}. | Answer: {} | **{}** | \\boxed{{}} | I would say {}. | Final answer: {} |
    After reading all of it, I would say that the answer is {}. | {"label": "{}"} | {"answer": "{}", "source": "text"}""")
SYSTEMS = phrases("""
    You are a helpful assistant. | Answer briefly. | You work for a help desk. | Be exact, and do not explain. | You are a
    careful annotator. | Follow the instructions of the user.""")
ASKS = {
    "sentiment": phrases("""
    What does the writer think, {asked}? / {text} | {text} / The opinion is {asked}: | Say {asked}. / {text} | Review: {text}
    / Verdict ({asked}): | Classify the mood of this message as {asked}. / {text}"""),
    "routing": phrases("""
    Which desk should get this: {asked}? / {text} | {text} / Send it to {asked}: | Ticket: {text} / Queue ({asked}): | Pick
    the team for this mail, {asked}. / {text}"""),
    "headline": phrases("""
    Name the topic of this item: {asked}. / {text} | {text} / Is it about {asked}? | {text} / Section ({asked}):"""),
}
STARTS = phrases("""
    {who} has {a} {thing}. | There are {a} {thing} in the hall. | A shop starts the day with {a} {thing}. | {who} counts {a}
    {thing} on {day}. | In {place} a school buys {a} {thing}. | The box of {who} holds {a} {thing}.""")
STEPS = {
    "+": phrases("""
    {other} brings {b} more. | Another {b} come in the afternoon. | {who} finds {b} more. | On top of that come {b} from
    {place}."""),
    "-": phrases("""
    {b} of them are sold. | {who} gives {b} of them to {other}. | {b} get lost on the way. | {other} takes {b} away."""),
    "*": phrases("""
    By {day} there are {b} times as many. | The same lot comes {b} times in all. | {who} makes it {b} times as many."""),
}
QUESTIONS = phrases("""
    How many {thing} are there in the end? | How many {thing} is that now? | What is the number of {thing} at the end? | Work
    out how many {thing} there are.""")
THINGS = phrases("apples | stamps | bricks | tickets | marbles | cards | eggs | tiles | shells | buttons | candles | pens")
EQUATIONS = phrases("""
    {x} {s} {b} = {y}. | That makes {x} {s} {b} = {y} {thing}. | Next, {x} {s} {b} is {y}. | We compute {x} {s} {b} and get
    {y}. | So there are {x} {s} {b} = {y} now. | After this step it is {y}, since {x} {s} {b} = {y}.""")
OPENERS = phrases("""
    Let us go step by step. | We start with {a}. | First look at what is given: {a} {thing}. | Okay, I will work it out. |
    At the beginning {who} has {a}. | Step by step:""")
FINALS = phrases(r"""
    #### {r} | The answer is {r}. | Answer: {r} | \boxed{{r}} | So there are {r} {thing}. | **Final answer:** {r} |
    Therefore, the final answer is {r} {thing}.""")
TOOLS = (
    ("get_weather get_forecast", "city day", "What will the weather be in {city} on {day}? | Weather for {city}, {day}"),
    ("send_message send_email", "to text", "Tell {to} that {text}. | Write to {to}: {text} | Let {to} know that {text}"),
    ("set_alarm add_reminder", "hour day", "Wake me at {hour} on {day}. | I have to be up at {hour} this {day}"),
    ("book_table reserve_room", "city people day", "Get us a place for {people} people in {city} on {day}. | {people} of us "
     "want to be in {city} on {day}"),
    ("convert_units convert_money", "amount target", "How much is {amount} in {target}? | Turn {amount} into {target}"),
    ("play_music queue_song", "artist volume", "Put on some {artist}, volume {volume}. | {artist} please, at {volume}"),
    ("create_event move_event", "title hour day", "The {title} is at {hour} on {day}. | {title}: {day}, {hour} sharp"),
)  # fmt: skip
"""Two tools each that a request may go to, their arguments, and requests."""
ARGUMENTS = {
    "city": WORDS["place"],
    "day": WORDS["day"],
    "to": WORDS["name"],
    "text": phrases(
        "the train is late | lunch is ready | we meet at the gate | I lost the key | it all went well | he is ill"
    ),
    "hour": tuple(str(hour) for hour in range(5, 23)),
    "people": tuple(str(count) for count in range(2, 30)),
    "amount": tuple(str(amount) for amount in range(15, 990, 5)),
    "target": phrases("yards | miles | pounds | euros | gallons | grams | yen | feet"),
    "artist": tuple(f"{name} {place}" for name in WORDS["name"] for place in WORDS["place"]),
    "volume": tuple(str(volume) for volume in range(1, 11)),
    "title": phrases("budget review | dentist | choir | team lunch | parents' evening | chess club | stand-up | yoga class"),
}


def normal(text: Any) -> str:
    """A text without marks, case and spaces; of messages all of their texts."""
    text = text if isinstance(text, str) else " ".join(one["content"] for one in text)
    return " ".join(re.findall(r"\w+", text.lower()))


def writer(rng: random.Random) -> Callable[[str], str]:
    """Writes the closed answers of a task, in one form or in several."""
    main, restyled = rng.choice(FORMS), rng.random() < 0.4

    def say(value: str) -> str:
        if not restyled or rng.random() < 0.4:
            return main.replace("{}", value)
        if value.lstrip("-").isdigit():
            values, forms = (f"{value}.0", f"{value}.00", f"{int(value):,}"), ("{}", "{}.", "**{}**")
        else:
            values, forms = (value.capitalize(), value.upper(), value.lower()), ("{}", "{}.", " {}", "{}!")
        if rng.random() < 0.5 or main.startswith("{"):
            return main.replace("{}", rng.choice(values))
        return rng.choice(forms).replace("{}", value)

    return say


def topical(name: str) -> Callable[[random.Random], Source]:
    """Items of a family whose label shows in the words of one or two sentences."""

    def start(rng: random.Random) -> Source:
        known = LEXICONS[name]
        labels = rng.sample(sorted(known), rng.randint(min(3, len(known)), len(known)))
        wordings, say = rng.sample(ASKS[name], rng.randint(1, 2)), writer(rng)
        asked = " or ".join((", ".join(labels[:-1]), labels[-1]))

        def item() -> Item:
            label, sentences = rng.choice(labels), []
            for frame in rng.sample(FRAMES[name], rng.randint(1, 2)):
                slots = dict(zip("xy", rng.sample(known[label], 2), strict=True), place=rng.choice(WORDS["place"]))
                slots |= dict(zip(("thing", "other"), rng.sample(WORDS["thing"], 2), strict=True))
                sentences.append(finished(frame.format(**slots)))
            text = rng.choice(wordings).replace(" / ", "\n").format(text=" ".join(sentences), asked=asked)
            return Item(text, (label, *(one for one in rng.sample(labels, len(labels)) if one != label)), say)

        return item

    return start


def grammar(rng: random.Random) -> Source:
    """Sentences whose verb agrees with the noun or does not."""
    good, bad = rng.choice((("correct", "incorrect"), ("yes", "no"), ("fine", "faulty"), ("acceptable", "unacceptable")))
    wording, say = rng.choice(("Is this grammatical ({})? {}", "Judge the grammar, {}: {}", "{} grammar? {}")), writer(rng)

    def item() -> Item:
        verb, many, right = rng.choice(WORDS["verb"]).split("/"), rng.random() < 0.5, rng.random() < 0.5
        text = f"The {rng.choice(WORDS['noun'])}{'s' * many} near the {rng.choice(WORDS['place'])} bridge"
        text += f" {verb[many == right]} {rng.choice(WORDS['end'])}, says {rng.choice(WORDS['name'])}."
        values = (good, bad) if right else (bad, good)
        return Item(wording.format(f"{good} or {bad}", text), values, say)

    return item


def denials(rng: random.Random) -> Source:
    """Claims about a text, beside their denials."""
    good, bad = rng.choice((("true", "false"), ("yes", "no"), ("entailment", "contradiction")))
    say, wording = writer(rng), rng.choice(("Text: {}\nClaim: {}\n{}?", "{} Does it follow that this holds: {} ({})"))

    def item() -> Item:
        noun, place, end = rng.choice(WORDS["noun"]), rng.choice(WORDS["place"]), rng.choice(WORDS["end"])
        told, asked = rng.choice(("", "not ")), rng.choice(("", "not "))
        text, claim = (f"The {noun} from {place} was {one}{end}." for one in (told, asked))
        return Item(wording.format(text, claim, f"{good} or {bad}"), (good, bad) if told == asked else (bad, good), say)

    return item


def options(rng: random.Random) -> Source:
    """Questions with options in changing order."""
    count, mark, say = rng.randint(3, 5), rng.choice(("{}) {}", "{}. {}", "({}) {}")), writer(rng)

    def item() -> Item:
        kind, *others = rng.sample(sorted(CATEGORIES), count)
        pool = [rng.choice(CATEGORIES[one][:3]) for one in (kind, *others)]
        order = rng.sample(range(count), count)
        listed = "\n".join(mark.format("ABCDE"[at], pool[one]) for at, one in enumerate(order))
        letters = "ABCDE"[order.index(0)], *("ABCDE"[at] for at, one in enumerate(order) if one)
        return Item(f"Which of these is {kind}?\n{listed}", letters, say)

    return item


def near(rng: random.Random, value: int) -> tuple[str, ...]:
    """A number and wrong ones near it."""
    wrong = {value + rng.choice((-1, 1)) * off for off in (1, 2, 9, 10, 100)} | {int(str(abs(value))[::-1]), value + 37}
    wrong = {abs(one) if value >= 0 else one for one in wrong} - {value}
    return str(value), *(str(one) for one in rng.sample(sorted(wrong), min(4, len(wrong))))


def calculations(small: bool) -> Callable[[random.Random], Source]:
    """Sums of two to four numbers; of two small ones where expressions are to differ in their sign only."""

    def start(rng: random.Random) -> Source:
        wordings = rng.sample(("What is {}?", "Compute {}.", "{} = ?", "Please work out {} for me", "{} ="), 1 + (not small))
        say, high, signs = writer(rng), rng.choice((60, 400, 5000)), "+-" if rng.random() < 0.5 else "+-*"

        def item() -> Item:
            numbers = [rng.randint(2, 14 if small else high) for _ in range(2 if small else rng.randint(2, 4))]
            total, text = numbers[0], str(numbers[0])
            for number in numbers[1:]:
                sign = rng.choice(signs if len(numbers) == 2 else "+-")
                total = total + number if sign == "+" else total - number if sign == "-" else total * number
                text += f" {sign} {number}"
            return Item(rng.choice(wordings).format(text), near(rng, total), say)

        return item

    return start


def lookups(rng: random.Random) -> Source:
    """Small tables with a number for each thing."""
    say, title = writer(rng), rng.choice(("Price list", "Stock of {}", "Scores in {}", "Visitors, {}"))
    question = rng.choice(("What is the number for {}?", "Which number stands at {}?", "Read off {}."))

    def item() -> Item:
        things = rng.sample(THINGS, rng.randint(3, 6))
        numbers = rng.sample(range(3, 1200), len(things))
        table = ", ".join(f"{thing} {number}" for thing, number in zip(things, numbers, strict=True))
        text = f"{title.format(rng.choice(WORDS['place']))}: {table}. {question.format(things[0])}"
        return Item(text, (str(numbers[0]), *map(str, numbers[1:]), str(numbers[0] + 10)), say)

    return item


def stories(worked: bool) -> Callable[[random.Random], Source]:
    """Word problems, with a short answer or a worked solution."""

    def start(rng: random.Random) -> Source:
        say, ends = writer(rng), rng.sample(FINALS, rng.choice((1, 1, len(FINALS))))
        opened, joint = rng.random() < 0.6, rng.choice((" ", "\n"))

        def item() -> Item:
            who, other = rng.sample(WORDS["name"], 2)
            slots = {"who": who, "other": other, "thing": rng.choice(THINGS), "a": rng.randint(12, 90)}
            slots |= {"day": rng.choice(WORDS["day"]), "place": rng.choice(WORDS["place"])}
            results, texts, steps = [slots["a"]], [rng.choice(STARTS).format(**slots)], []
            for _ in range(rng.randint(2, 4) if worked else rng.randint(1, 2)):
                sign = rng.choice("+-*" if results[-1] < 400 else "+-")
                number = (
                    rng.randint(2, 6) if sign == "*" else rng.randint(2, 60 if sign == "+" else max(3, results[-1] // 2))
                )
                results.append(results[-1] * number if sign == "*" else results[-1] + (number if sign == "+" else -number))
                texts.append(rng.choice(STEPS[sign]).format(**slots, b=number))
                steps.append((sign, number))
            question = " ".join((*texts, rng.choice(QUESTIONS).format(**slots)))
            right, *wrong = near(rng, results[-1])
            forgot = [str(results[-2])] * worked

            def solve(value: str) -> str:
                lines = [rng.choice(OPENERS).format(**slots)] * (opened and rng.random() < 0.8)
                stated = [*results[:-1], int(value)]
                last = len(steps) - (value in forgot)
                for at, (sign, number) in enumerate(steps[:last]):
                    slot = {"x": stated[at], "s": sign, "b": number, "y": stated[at + 1], "thing": slots["thing"]}
                    lines.append(rng.choice(EQUATIONS).format(**slot))
                return joint.join((*lines, rng.choice(ends).replace("{r}", value).replace("{thing}", slots["thing"])))

            others = [one for one in (*forgot, *wrong) if one != right]
            values = (right, *rng.sample(others, len(others)))
            return Item(question, values, solve if worked else say)

        return item

    return start


def calls(listing: bool) -> Callable[[random.Random], Source]:
    """Requests and the tool call for each; with a listing, the tools that there are stand in a system message."""

    def start(rng: random.Random) -> Source:
        name, inner = rng.choice((("name", "arguments"), ("tool", "args"), ("function", "parameters")))
        tagged, restyled, known = rng.random() < 0.3, rng.random() < 0.5, rng.sample(TOOLS, rng.randint(3, len(TOOLS)))
        left = {pair: rng.random() < 0.5 for pair, _, _ in known}
        lead = rng.choice(("", "", "Hey, ", "Assistant: "))

        def item() -> Item:
            pair, needed, requests = rng.choice(known)
            own, sibling = pair.split() if left[pair] or listing else pair.split()[::-1]
            own, sibling = (sibling, own) if listing and rng.random() < 0.5 else (own, sibling)
            given = {key: rng.choice(ARGUMENTS[key]) for key in needed.split()}
            said = [(own, given), (sibling, given)]
            for key in rng.sample(sorted(given), len(given)):
                other = rng.choice([one for one in ARGUMENTS[key] if one != given[key]])
                said.insert(rng.randint(1, len(said)), (own, given | {key: other}))

            def write(value: str) -> str:
                call = json.loads(value)
                if restyled and rng.random() < 0.5:
                    fields = rng.sample([*call[inner].items()], len(call[inner]))
                    call = dict(rng.sample([(name, call[name]), (inner, dict(fields))], 2))
                text = json.dumps(call, indent=rng.choice((None, 2)) if restyled else None)
                return f"<tool_call>{text}</tool_call>" if tagged else text

            text = lead + rng.choice(phrases(requests)).format(**given)
            values = tuple(json.dumps({name: tool, inner: fields}) for tool, fields in said)
            if not listing:
                return Item(text, values, write)
            tools = ", ".join(own if one == pair else one.split()[0] for one, _, _ in known)
            return Item(asked(text, f"You can call these tools: {tools}."), values, write)

        return item

    return start


def asked(text: str, system: str | None = None) -> list[dict[str, str]]:
    """A prompt of messages."""
    start = [{"role": "system", "content": system}] if system else []
    return [*start, {"role": "user", "content": text}]


def shops(rng: random.Random) -> Source:
    """The same few questions to assistants whose system message, or whose passage, tells different things."""
    topics = {
        "When do you open?": "we open at {}",
        "What is the fee?": "the fee is {}",
        "Which line goes there?": "take line {}",
    }
    inline, say = rng.random() < 0.5, writer(rng)

    def item() -> Item:
        question = rng.choice(sorted(topics))
        value = str(rng.randint(5, 40))
        fact = finished(f"{topics[question].format(value)} on {rng.choice(WORDS['day'])}, in {rng.choice(WORDS['place'])}")
        wrong = near(rng, int(value))[1:]
        if inline:
            return Item(f"Context: {fact}\n\nQuestion: {question}", (value, *wrong), say)
        return Item(asked(question, f"You answer for {rng.choice(WORDS['name'])}'s shop. {fact}"), (value, *wrong), say)

    return item


def follow_ups(rng: random.Random) -> Source:
    """Chats whose last question is the same and whose earlier turns differ."""
    say, reply = writer(rng), rng.choice(("Okay.", "Thanks, I have noted that.", "Sure, what about them?"))

    def item() -> Item:
        one, two = rng.sample(range(2, 900), 2)
        turn, most = f"I have the numbers {one} and {two}.", rng.random() < 0.5
        chat = [
            *asked(turn),
            {"role": "assistant", "content": reply},
            *asked(f"Which one is {'larger' if most else 'smaller'}?"),
        ]
        values = (max(one, two), min(one, two)) if most else (min(one, two), max(one, two))
        return Item(chat, (str(values[0]), str(values[1])), say)

    return item


def aspects(rng: random.Random) -> Source:
    """Two questions about one text that have answers of their own."""
    say, wording = writer(rng), rng.choice(("{0} How does the writer like the {1}?", "{0}\nOpinion of the {1}:"))
    known, reviews = LEXICONS["sentiment"], list[tuple[str, str, str, str]]()

    def item() -> Item:
        if len(reviews) < 5 or rng.random() < 0.5:
            (one, two), (good, bad) = (
                rng.sample(WORDS["thing"], 2),
                (rng.choice(known[key]) for key in ("positive", "negative")),
            )
            reviews.append((f"The {one} was {good}, but the {two} was {bad}.", one, two, ""))
        text, one, two, _ = rng.choice(reviews)
        first = rng.random() < 0.5
        return Item(wording.format(text, one if first else two), ("positive", "negative")[:: 1 if first else -1], say)

    return item


def capitals(rng: random.Random) -> Source:
    """Words whose capitals are to be counted, some of which differ in case only."""
    say, wording = writer(rng), rng.choice(("How many capital letters has {}?", "Count the upper-case letters: {}"))
    pool = rng.sample((*WORDS["noun"], *WORDS["thing"], *WORDS["place"]), 40)

    def item() -> Item:
        word = "".join(rng.choice((letter.lower(), letter.lower(), letter.upper())) for letter in rng.choice(pool))
        return Item(wording.format(word), near(rng, sum(letter.isupper() for letter in word)), say)

    return item


def free(name: str) -> Callable[[random.Random], Source]:
    """Items whose answers may differ."""

    def start(rng: random.Random) -> Source:
        made = OPEN_TASKS[name](rng)

        def item() -> Item:
            prompt, write = made()
            return Item(prompt, (), lambda _: write())

        return item

    return start


OFTEN = (4.0, 8.0, 30.0)
LONG = ("tales", "plans", "programs", "records")
"""Tasks of free answers whose prompts need not come often to show that answers are free."""
FAMILIES = (
    *(Family(name, topical(name), ("labels", "variants", "frame")) for name in LEXICONS),
    Family("grammar", grammar, ("labels", "variants", "frame")),
    Family("denials", denials, ("labels",)),
    Family("options", options, ("labels", "frame"), strict=True),
    Family("sums", calculations(False), ("numbers", "variants", "frame")),
    Family("signs", calculations(True), strict=True),
    Family("tables", lookups, ("numbers", "variants", "frame")),
    Family("short_problems", stories(False), ("numbers", "variants", "frame")),
    Family("worked_problems", stories(True), ("final",), weight=1.5),
    Family("calls", calls(False), ("calls", "variants")),
    Family("tool_lists", calls(True), ("calls",), strict=True),
    Family("shops", shops, weight=0.7),
    Family("follow_ups", follow_ups, weight=0.7),
    Family("aspects", aspects, weight=0.7),
    Family("capitals", capitals, strict=True, weight=0.25),
    *(Family(name, free(name), few=OFTEN + (1.1,) * (name in LONG), weight=0.8) for name in OPEN_TASKS),
)

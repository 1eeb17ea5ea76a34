"""Open families of the suite: what most people ask a general model for, with requests of the same kind to replay."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from random import Random
from string import Template
from typing import Any

from mixwright.suite.family import Family, Item, Message, Record, ask, find_rows, follow, join_words, list_texts, read_data

LANGUAGES = ("English", "Spanish", "French", "German", "Portuguese", "Italian")
LANGUAGE_CODES = ("es", "fr", "de", "pt", "it")
SENTIMENTS = ("positive", "negative", "neutral")
TOPICS = ("sport", "cooking", "weather", "music", "travel", "health", "gardening", "astronomy")
OTHER_LANGUAGES_SHARE = 1 / 6
"""Share of the items of a family that are asked in another language than English, where it has such items."""

LABELS_GRADER = "includes?among=" + "|".join((*SENTIMENTS, *TOPICS))
"""Name of the grader of labels. A completion is right too when it names the right label first."""


def _shuffled(rng: Random, values: Iterable[Any]) -> list[Any]:
    """Return the values in a random order."""
    values = list(values)
    return rng.sample(values, len(values))


def _lower_first(text: str) -> str:
    """Write the first letter small, unless the first word is one that keeps its capital or a name stands there."""
    first = text.split()[0]
    keeps = first == "I" or first.startswith(("I'", *list_texts("names"), "Friday", "Ana"))
    return text if keeps else text[0].lower() + text[1:]


def _language(rng: Random, rung: int, first_rung: int = 1) -> str:
    """Draw the code of the language of an item."""
    return rng.choice(LANGUAGE_CODES) if rung >= first_rung and rng.random() < OTHER_LANGUAGES_SHARE else "en"


def _message(role: str, content: str) -> Message:
    """Write one message of a chat."""
    return {"role": role, "content": content}


def make_arithmetic(rng: Random, rung: int) -> Item:
    """Draw a sum, a difference or a product of numbers; the rung is the number of digits."""
    sign = rng.choice("+-*" if rung > 1 else "+-")
    digits = ((rung + 1) // 2, rung // 2) if sign == "*" else (rung, rung)
    small, large = sorted(rng.randrange(10 ** (count - 1) + (count == 1), 10**count) for count in digits)
    first, second = (large, small) if sign == "-" else _shuffled(rng, (small, large))
    result = {"+": first + second, "-": first - second, "*": first * second}[sign]
    kind = "arithmetic" if _language(rng, rung) == "en" else "arithmetic.languages"
    return Item(ask(rng, kind, sum=f"{first} {sign} {second}"), str(result))


def make_word_problem(rng: Random, rung: int) -> Item:
    """Draw a story in which a number changes as many times as the rung says."""
    story = rng.choice(read_data("open_stories"))
    name, friend, other = rng.sample(list_texts("names"), 3)
    total = rng.randint(8 + 4 * (rung > 1), 10 + 8 * rung)
    sentences = [story["start"].format(name=name, n=total)]
    steps = [("+", text) for text in story["more"]] + [("-", text) for text in story["less"]]
    steps = _shuffled(rng, steps if rung == 1 else [*steps, ("*", story["times"])])
    for sign, text in steps[:rung]:
        n = rng.randint(2, {"+": 6 + 6 * rung, "-": max(2, total // 2), "*": 3}[sign])
        total = {"+": total + n, "-": total - n, "*": total * n}[sign]
        sentences.append(text.format(name=name, friend=friend, n=n))
    if rung >= 4:
        aside = ask(rng, "word_problems.aside", friend=other, n=rng.randint(9, 29))
        sentences.insert(rng.randint(1, len(sentences)), aside)
    return Item(ask(rng, "word_problems", story=" ".join(sentences), ask=story["ask"].format(name=name)), str(total))


def make_fact(rng: Random, rung: int) -> Item:
    """Draw a fact of general knowledge; the rung says how little known its subject is."""
    fact = rng.choice(find_rows("open_facts", rung=rung, language=_language(rng, rung)))
    return Item(ask(rng, f"facts.{fact['relation']}.{fact['language']}", entity=fact["entity"]), fact["answer"])


def make_meaning(rng: Random, rung: int) -> Item:
    """Draw a word whose opposite or kind is asked for; the rung says how rare the word is."""
    task = rng.choice(("opposite", "kind"))
    record = rng.choice(find_rows("open_meanings", rung=rung, task=task))
    word, answer, others = record["word"], record["answer"], record["others"]
    if task == "kind":
        others = rng.sample([kind for kind in list_texts("kinds.names") if kind != answer], min(rung + 1, 4))
        options = join_words(_shuffled(rng, [answer, *others]), "or")
        return Item(ask(rng, "kinds", word=word, options=options), answer.split(" ", 1)[1])
    if not others:
        return Item(ask(rng, "opposites.open", word=word), answer)
    return Item(ask(rng, "opposites", word=word, options=join_words(_shuffled(rng, [answer, *others]), "or")), answer)


def make_word_form(rng: Random, rung: int) -> Item:
    """Draw a word of which another form is asked for; the rung says how irregular it is."""
    record = rng.choice(find_rows("open_forms", rung=rung, language=_language(rng, rung, first_rung=3)))
    kind = f"forms.{record['form']}" + ("" if record["language"] == "en" else f".{record['language']}")
    return Item(ask(rng, kind, word=record["word"]), record["answer"])


def make_reading(rng: Random, rung: int) -> Item:
    """Draw a passage about people and a question about one sentence; the rung is its length and how far back that stands."""
    size = (2, 4, 8, 14, 24)[rung - 1]
    people = rng.sample(list_texts("names"), max(2, size // 3))
    topics = read_data("open_attributes")
    values = [_shuffled(rng, topic["values"]) for topic in topics]
    told = rng.sample([(person, number) for person in range(len(people)) for number in range(len(topics))], size)
    sentences = [topics[number]["text"].format(name=people[person], value=values[number][person]) for person, number in told]
    person, number = told[rng.randrange(max(1, size // rung))]
    question = topics[number]["ask"].format(name=people[person])
    return Item(ask(rng, "reading", passage=" ".join(sentences), ask=question), values[number][person])


def make_comparison(rng: Random, rung: int) -> Item:
    """Draw things of which the largest, oldest or longest is asked for; the rung is their number and how close they are."""
    count = (2, 2, 3, 4, 5)[rung - 1]
    nearest, farthest = ((6, 1e9), (2, 8), (1.4, 4), (1.2, 2.2), (1.1, 1.7))[rung - 1]
    kind = rng.choice(("weight", "area", "height", "age", "length", "made up"))
    if kind == "made up":
        ages = rng.sample(range(20, 100 - 10 * rung), count)
        names = rng.sample(list_texts("names"), count)
        facts = " ".join(f"{name} is {age} years old." for name, age in zip(names, ages, strict=True))
        word, pick = rng.choice((("oldest", max), ("youngest", min)))
        question = f"who of them is the {word}"
        return Item(ask(rng, "comparison.made_up", facts=facts, question=question), names[ages.index(pick(ages))])
    while True:
        things = rng.sample(find_rows("open_measures", kind=kind), count)
        second, first = sorted(thing["value"] for thing in things)[-2:]
        if nearest <= first / second <= farthest:
            break
        kind = rng.choice(("weight", "area", "height", "age", "length"))
    answer = next(thing["thing"] for thing in things if thing["value"] == first)
    options = join_words((thing["thing"] for thing in things), "or")
    prompt = ask(rng, "comparison", question=things[0]["question"], options=options)
    return Item(prompt, answer.removeprefix("the ").removeprefix("an ").removeprefix("a "))


def _form(value: Any) -> Any:
    """Return how a schema names the type of a value."""
    if isinstance(value, dict):
        return {key: _form(part) for key, part in value.items()}
    return {str: "string", int: "integer", list: "list of strings"}[type(value)]


def make_extraction(rng: Random, rung: int) -> Item:
    """Draw a made-up text and a schema of its fields; the rung is the number of fields, and from 4 on they are nested."""
    flat, nested, lists = ((2, 0, 0), (3, 0, 0), (5, 0, 0), (4, 1, 0), (5, 2, 1))[rung - 1]
    about = rng.choice(read_data("open_documents"))["about"]
    fields = [
        field
        for shape, count in (("flat", flat), ("nested", nested), ("list", lists))
        for field in rng.sample(find_rows("open_documents", about=about, shape=shape), count)
    ]
    gold, sentences = {}, []
    for field in _shuffled(rng, fields):
        parts = {key: rng.choice(values) for key, values in field["parts"].items()}
        gold[field["key"]] = parts if field["shape"] == "nested" else parts[field["key"]]
        shown = {key: " and ".join(value) if isinstance(value, list) else value for key, value in parts.items()}
        sentences.append(field["text"].format(**shown))
    if rung >= 3:
        sentences.insert(rng.randint(0, len(sentences)), rng.choice(list_texts("extraction.asides")))
    schema = json.dumps({field["key"]: _form(gold[field["key"]]) for field in fields})
    text = f"This is about {about}. {' '.join(sentences)}"
    return Item(ask(rng, "extraction", schema=schema, text=text), json.dumps(gold))


def _draw_rules(rng: Random, count: int, hardest: int) -> list[Record]:
    """Draw rules of different groups that can all be kept together."""
    groups = sorted({record["group"] for record in read_data("open_rules")})
    while True:
        drawn = [
            rng.choice([record for record in find_rows("open_rules", group=group) if record["rung"] <= hardest])
            for group in rng.sample(groups, count)
            if group != "letters" or hardest > 1
        ]
        rules: Record = {key: value for record in drawn for key, value in record["rule"].items()}
        wanted = " ".join((*rules.get("contains", ()), rules.get("begins", ""), rules.get("ends", ""))).casefold()
        is_free = not set(rules.get("letters", "")) & set(wanted) and not set(rules.get("excludes", ())) & set(
            wanted.split()
        )
        if len(drawn) == count and is_free:
            return drawn


def _gold_rules(rules: Sequence[Record]) -> str:
    """Write the gold answer that demands all the rules, and a text: a tool call of few words keeps most rules by itself."""
    return follow(**{key: value for record in rules for key, value in record["rule"].items()}, data=False)


def make_instruction(rng: Random, rung: int) -> Item:
    """Draw a topic to write about and rules for the form; the rung is the number of rules, and the later are harder."""
    rules = _draw_rules(rng, rung, hardest=min(3, (rung + 1) // 2 + (rung > 1)))
    texts = " ".join(rule["text"] for rule in rules)
    return Item(
        ask(rng, "instructions", topic=rng.choice(list_texts("instructions.topics")), rules=texts), _gold_rules(rules)
    )


def make_system_rule(rng: Random, rung: int) -> Item:
    """Draw a system message with as many rules as the rung, and a user's question that does not mention them."""
    rules = _draw_rules(rng, rung, hardest=min(3, rung))
    place = rng.choice(list_texts("system_rules.places"))
    system = ask(rng, "system_rules", place=place, rules=" ".join(rule["standing"] for rule in rules))
    question = rng.choice(list_texts("system_rules.questions"))
    return Item((_message("system", system), _message("user", question)), _gold_rules(rules))


def make_recall(rng: Random, rung: int) -> Item:
    """Draw a chat in which an early fact is asked for later; the rung is the distance, and others' facts lie between."""
    between, others = ((0, 0), (2, 0), (4, 2), (7, 4), (11, 6))[rung - 1]
    asked, *rest = rng.sample(read_data("open_memories"), 1 + others)
    value, rival = rng.sample(asked["values"], 2)
    told = [record["tell"].format(value=rng.choice(record["values"])) for record in rest]
    told += [asked["rival"].format(value=rival)] if rung >= 3 else []
    noted = [(text, rng.choice(list_texts("recall.noted"))) for text in told]
    small_talk = [(turn["user"], turn["assistant"]) for turn in rng.sample(read_data("open_turns"), between)]
    first = (ask(rng, "recall.tell", tell=asked["tell"].format(value=value)), rng.choice(list_texts("recall.noted")))
    messages = [
        _message(role, text)
        for turn in (first, *_shuffled(rng, noted + small_talk))
        for role, text in zip(("user", "assistant"), turn, strict=True)
    ]
    last = ask(rng, "recall", ask=asked["ask"], ask_lower=_lower_first(asked["ask"]))
    return Item((*messages, _message("user", last)), value)


def make_translation(rng: Random, rung: int) -> Item:
    """Draw a word to translate from English or into it; the rung says how rare it is."""
    record = rng.choice(find_rows("open_translations", rung=rung))
    languages = ("English", rng.choice(LANGUAGES[1:]))
    source, target = languages if rng.random() < 0.6 else languages[::-1]
    answer = record[target].split(" (")[0]
    return Item(ask(rng, "translation", word=record[source], source=source, language=target), answer)


def make_label(rng: Random, rung: int) -> Item:
    """Draw a text to put under one of a few labels; the rung says how plainly the text shows it."""
    kind = rng.choice(("sentiment", "topic"))
    record = rng.choice(find_rows("open_labels", kind=kind, rung=rung))
    labels: list[str] = list(SENTIMENTS[: 2 + (rung > 1)])
    if kind == "topic":
        others = [topic for topic in TOPICS if topic != record["label"]]
        labels = [record["label"], *rng.sample(others, rung + 1)]
    return Item(ask(rng, kind, text=record["text"], labels=join_words(_shuffled(rng, labels), "or")), record["label"])


def make_code_output(rng: Random, rung: int) -> Item:
    """Draw a short program whose output is asked for; the rung is the number of steps in it."""
    program = rng.choice(find_rows("open_programs", rung=rung))["text"]
    a, b, c = rng.sample(range(2, 10), 3)
    word, other = rng.sample(list_texts("code.words"), 2)
    numbers = {"a": a, "b": b, "c": c, "d": rng.randint(2, 4), "e": rng.randint(20, 60)}
    code = Template(program).substitute(numbers, word=word, other=other)
    printed: list[object] = []
    exec(code, {"print": printed.append})  # a program of our own data file
    return Item(ask(rng, "code_output", code=code), str(printed[0]))


def make_gap(rng: Random, rung: int) -> Item:
    """Draw a request that lacks something, so that a good answer asks for it; the rung says how hidden the gap is."""
    record = rng.choice(find_rows("open_gaps", rung=rung))
    prompt = ask(rng, "asks_back", request=record["text"], lower=_lower_first(record["text"]))
    return Item(
        prompt, follow(question=True, data=False, words=(2, 100), any_of=[*record["asks"], *list_texts("asks_back.words")])
    )


def make_plain_chat(rng: Random, rung: int) -> Item:
    """Draw small talk, to be answered in a few plain sentences; the rung says how much it looks like a task for a tool."""
    thing, other = rng.sample(list_texts("instructions.topics"), 2)
    place = rng.choice(list_texts("system_rules.places"))
    parts = {"name": rng.choice(list_texts("names")), "city": rng.choice(list_texts("cities")), "place": place}
    text = rng.choice(find_rows("open_chat", rung=rung))["text"].format(thing=thing, other=other, **parts)
    prompt = ask(rng, "plain_chat", message=text, lower=_lower_first(text))
    answer = follow(words=(1, 100), data=False)
    if rung < 3:
        return Item(prompt, answer)
    return Item((_message("system", rng.choice(list_texts("plain_chat.tools"))), _message("user", prompt)), answer)


FAMILIES = (
    Family(
        "arithmetic", make_arithmetic, 5, "final_answer", "sums, differences and products of numbers of more and more digits"
    ),
    Family("word_problems", make_word_problem, 5, "final_answer", "stories in which a number changes in one to five steps"),
    Family(
        "facts", make_fact, 5, "includes", "capitals, countries, authors, elements and years, from famous to little known"
    ),
    Family("opposites_and_kinds", make_meaning, 4, "includes", "opposites of words, and what kind of thing a word names"),
    Family("word_forms", make_word_form, 5, "includes", "plurals, past tenses and comparatives, from regular to rare"),
    Family("reading", make_reading, 5, "includes", "a question about one sentence of a passage of two to 24"),
    Family("comparison", make_comparison, 5, "includes", "which of two to five things is the largest, oldest or longest"),
    Family("extraction", make_extraction, 5, "json_fields", "fields of a made-up text as JSON by a given schema"),
    Family("instructions", make_instruction, 5, "follows", "a short text that keeps one to five rules of form"),
    Family("system_rules", make_system_rule, 4, "follows", "an answer that keeps one to four rules of the system message"),
    Family("recall", make_recall, 5, "includes", "a fact that the user told up to 18 turns before"),
    Family("translation", make_translation, 4, "includes", "single words between English and five other languages"),
    Family(
        "sentiment_and_topic", make_label, 4, LABELS_GRADER, "one of the labels in the prompt, for plain to subtle texts"
    ),
    Family("code_output", make_code_output, 5, "includes", "what a short Python program prints"),
    Family("asks_back", make_gap, 4, "follows", "requests that lack something, so that a good answer asks for it"),
    Family("plain_chat", make_plain_chat, 4, "follows", "small talk and opinions, where a call or code would be wrong"),
)

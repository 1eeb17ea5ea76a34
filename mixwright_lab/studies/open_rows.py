"""Prompts of made corpora to which many answers are right: stories, chats, things to make up, dice.

Each function draws how a task puts it and gives a source of prompts, each with what writes one more answer to it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from mixwright_lab.studies.cue_corpora import FRAMES, LEXICONS, WORDS, finished, phrases

OpenSource = Callable[[], tuple[str, Callable[[], str]]]
PHRASES = {
    "story": phrases("""
    {name} had never seen a {noun} like that before. | It was raining in {place}, and nobody came. | "{name},
    wait!" a voice called from behind the {noun}. | The {noun} stood where it had always stood, next to the old
    {other}. | For {n} years the people of {place} had kept the secret. | By {day} everything was different. |
    {name} laughed until the tears came. | Under the {noun} lay a letter, and it was addressed to {name}. | In the
    end they shared the last {n} sweets and walked home. | The wind turned, and with it the mood of the village. |
    Nobody spoke of the {noun} again. | A {other} rolled down the hill and stopped at their feet. | That night
    {name} dreamt of {place}. | Somewhere a clock struck {n}."""),
    "story asks": phrases("""
    Write a short story about a {noun}. | Tell me a tale that is set in {place}. | Write a bedtime story with a
    {noun} and a {other}. | Start a novel in which {name} finds a {noun}. | Write a poem about {place} without
    rhymes."""),
    "chat asks": phrases("""
    Hi! | How are you today? | Tell me something nice. | I am bored. | I cannot sleep, what should I do? | I had a
    bad day at work. | What should I cook tonight? | Any advice for my trip to {place}? | Is {place} worth a visit?
    | My friend {name} is angry with me. | Say something about {day}s. | Do you like {noun}s?"""),
    "chat": phrases("""
    Hello, good to hear from you! | That sounds like a lot. | Have you thought of a walk near {place}? | I would
    begin with something small, like a {noun}. | Tell me more about it, if you like. | Some people count to {n} and
    breathe slowly. | Maybe {name} could help you with that. | I am only a program, but I do like a good question.
    | On a {day} I would keep it simple. | A warm soup never hurts. | Be kind to yourself today. | You could also
    give it {n} days and see. | What a lovely thing to ask!"""),
    "plan asks": phrases("""
    Plan a day in {place}. | Give me a recipe for {n} people. | Suggest a weekend trip from {place}. | Plan a party
    for {name} with {n} guests. | How could I spend {day} evening?"""),
    "plan": phrases("""
    Start at {n} in the morning with a coffee. | Then visit the old {noun} and stay for {n} minutes. | Lunch costs
    about {n} euros. | Take bus {n} to the {noun} market. | Buy {n} eggs, some flour and a lemon. | Bake for {n}
    minutes. | Invite {name} and ask for a {noun}. | In the evening there is music in the square. | Total budget:
    {n} euros. | It serves {n}. | Be back by {n}."""),
    "name asks": phrases("""
    Suggest a name for a {kind} from {place}. | What could I call my {kind}? One name, please. | Invent a name for
    a {kind}. | A good name for {name}'s {kind}?"""),
    "kind": phrases("""
    cat | boat | small bakery | band | racehorse | board game | café | robot | village | star"""),
    "title": phrases("""
    Little | Captain | Golden | Silent | Lady | Old | Velvet | Doctor | Northern | Lucky | Crimson | Mister"""),
    "thing": phrases("""
    Whiskers | Harbour | Crumb | Echo | Comet | Pepper | Lantern | Biscuit | Meadow | Thunder | Button | Juniper"""),
    "rewrite asks": phrases("""
    Say it in other words: | Paraphrase this. | Rewrite the sentence: | Put this differently, please."""),
    "rewrite": phrases("""
    To put it differently, {x}. | In other words: {x}. | One could also say that {x}. | {x}, to say it plainly. |
    What is meant is that {x}."""),
    "record asks": phrases("""
    Make up a customer record as JSON. | Invent a test user from {place} in JSON. | Generate one fake order, JSON
    only. | Give me a random sensor reading as JSON."""),
    "code asks": phrases("""
    Write a Python function that {does}. | Python: {does}. | I need a function which {does}. Code only."""),
    "does": phrases("""
    adds the numbers of a list | reverses a text | counts the vowels of a text | finds the largest number | joins
    two lists | drops the first item of a list | doubles each number"""),
    "dice": phrases("""
    Roll a die. | Roll a {n}-sided die. | Throw a die for {name}. | Random number from 1 to {n}, please. | Pick a
    number between 1 and {n}."""),
    "coin": phrases("""
    Toss a coin. | Heads or tails? | Flip a coin for {name}. | Flip a coin and tell me what you get."""),
    "card": phrases("""
    Draw a card. | Pick a random colour. | Choose a random day of the week. | Name any animal. | Pick somebody from
    {place}"""),
}
PICKS = {
    "Draw a card.": (
        "seven of hearts",
        "queen of spades",
        "ace of clubs",
        "two of diamonds",
        "jack of clubs",
        "ten of spades",
    ),
    "Pick a random colour.": ("red", "blue", "green", "teal", "amber", "violet", "pink", "grey"),
    "Choose a random day of the week.": WORDS["day"],
    "Name any animal.": ("otter", "heron", "lynx", "mole", "wasp", "cod", "yak", "newt", "hare", "emu"),
}


def slots(rng: random.Random) -> dict[str, str]:
    """Words for the slots of a phrase."""
    noun, other = rng.sample(WORDS["noun"], 2)
    made = {"noun": noun, "other": other, "n": str(rng.randint(3, 40)), "kind": rng.choice(PHRASES["kind"])}
    made |= {"does": rng.choice(PHRASES["does"])}
    return made | {name: rng.choice(WORDS[name]) for name in ("name", "place", "day")}


def texts(asks: str, says: str, low: int, high: int) -> Callable[[random.Random], OpenSource]:
    """Prompts that are answered with some sentences out of many."""

    def start(rng: random.Random) -> OpenSource:
        joint, tail = rng.choice((" ", "\n")), rng.choice(("", "", "", "Is there anything else that I can do for you?"))

        def write() -> str:
            chosen = rng.sample(PHRASES[says], rng.randint(low, high))
            return joint.join((*(one.format(**slots(rng)) for one in chosen), *[tail] * bool(tail)))

        return lambda: (rng.choice(PHRASES[asks]).format(**slots(rng)), write)

    return start


def names(rng: random.Random) -> OpenSource:
    """Names to be made up."""
    end = rng.choice(("", ".", "!"))

    def write() -> str:
        return f"{rng.choice(PHRASES['title'])} {rng.choice((*PHRASES['thing'], *WORDS['place']))}{end}"

    return lambda: (rng.choice(PHRASES["name asks"]).format(**slots(rng)), write)


def rewritings(rng: random.Random) -> OpenSource:
    """Sentences to be said in other words."""
    ask = rng.choice(PHRASES["rewrite asks"])

    def source() -> tuple[str, Callable[[], str]]:
        frames = [one for one in FRAMES["sentiment"] if "{y}" not in one]
        thing, key = rng.choice(WORDS["thing"]), rng.choice(sorted(LEXICONS["sentiment"]))
        words = LEXICONS["sentiment"][key]
        text = rng.choice(frames).format(thing=thing, x=rng.choice(words))

        def write() -> str:
            said = rng.choice(frames).format(thing=thing, x=rng.choice(words))
            return finished(rng.choice(PHRASES["rewrite"]).format(x=said))

        return f"{ask} {finished(text)}", write

    return source


def records(rng: random.Random) -> OpenSource:
    """Records to be made up."""
    keys = rng.sample(("id", "name", "city", "day", "amount", "active"), rng.randint(3, 6))

    def write() -> str:
        made = {"id": rng.randint(100, 99999), "name": rng.choice(WORDS["name"]), "city": rng.choice(WORDS["place"])}
        made |= {"day": rng.choice(WORDS["day"]), "amount": rng.randint(1, 900) / 4, "active": rng.random() < 0.5}
        return json.dumps({key: made[key] for key in keys})

    return lambda: (rng.choice(PHRASES["record asks"]).format(**slots(rng)), write)


BODIES = {
    "adds the numbers of a list": "return sum({v}) | {t} = 0\n    for one in {v}:\n        {t} += one\n    return {t}",
    "reverses a text": "return {v}[::-1] | return ''.join(reversed({v}))",
    "counts the vowels of a text": "return sum(x in 'aeiou' for x in {v}) | return len([x for x in {v} if x in 'aeiou'])",
    "finds the largest number": "return max({v}) | return sorted({v})[-1] | {t} = sorted({v})\n    return {t}[-1]",
    "joins two lists": "return {v} + {t} | return [*{v}, *{t}]",
    "drops the first item of a list": "return {v}[1:] | {t} = list({v})\n    del {t}[0]\n    return {t}",
    "doubles each number": "return list(map(lambda x: 2 * x, {v})) | return [x + x for x in {v}]",
}


def programs(rng: random.Random) -> OpenSource:
    """Functions to be written, of which there are many."""
    fence = rng.choice(("{}", "```python\n{}\n```"))

    def source() -> tuple[str, Callable[[], str]]:
        words = slots(rng)

        def write() -> str:
            body = rng.choice([one.strip() for one in BODIES[words["does"]].split(" | ")])
            name, (one, two) = (
                rng.choice(("solve", "run", "work", "f", "compute")),
                rng.sample(("xs", "items", "data", "a"), 2),
            )
            head = f"def {name}({one}, {two}):" if words["does"].startswith("joins") else f"def {name}({one}):"
            return fence.format(f"{head}\n    {body.replace('{v}', one).replace('{t}', two)}")

        return rng.choice(PHRASES["code asks"]).format(**words), write

    return source


def dice(rng: random.Random) -> OpenSource:
    """Numbers, sides of a coin and the like, to be drawn at random."""
    form, sorts = (
        rng.choice(("{}", "{}", "{}.", "It is {}.", "You get: {}")),
        rng.sample(("dice", "coin", "card"), rng.randint(1, 3)),
    )

    def source() -> tuple[str, Callable[[], str]]:
        sort, words = rng.choice(sorts), slots(rng)
        asked = rng.choice(PHRASES[sort])
        sides = int(words["n"]) if "{n}" in asked else 6
        pool = PICKS.get(asked, WORDS["name"]) if sort == "card" else ("heads", "tails")

        def write() -> str:
            return form.format(rng.randint(1, sides) if sort == "dice" else rng.choice(pool))

        return asked.format(**words), write

    return source


OPEN_TASKS: dict[str, Callable[[random.Random], OpenSource]] = {
    "tales": texts("story asks", "story", 3, 8),
    "chat": texts("chat asks", "chat", 1, 4),
    "plans": texts("plan asks", "plan", 3, 6),
    "names": names,
    "rewritings": rewritings,
    "records": records,
    "programs": programs,
    "dice": dice,
}
"""Name of a task -> what draws it."""

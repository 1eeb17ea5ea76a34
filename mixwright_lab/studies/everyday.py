"""Everyday tasks for a real model: four that SmolLM2-135M-Instruct half knows, tool calls, and candidates for a new skill.

Source: tables that anyone can check; tool calls after the demo's, with more values, so that 2,000 rows are all different.
Unit: one question or request with one right answer.
Cost: milliseconds.
Blind spot: few wordings of each task, and nothing with more than one turn.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Callable, Mapping, Sequence

from mixwright_lab.demo.requests import TOOLS as DEMO_TOOLS
from mixwright_lab.studies.questions import CAPITALS, OPPOSITES

Pair = tuple[str, str]
"""A prompt and its answer."""


def split_words(text: str) -> tuple[str, ...]:
    """Words of a text."""
    return tuple(text.split())


MORE_CAPITALS = (
    "Luxembourg: Luxembourg; Monaco: Monaco; Moldova: Chisinau; North Macedonia: Skopje; Montenegro: Podgorica; "
    "Cyprus: Nicosia; Turkmenistan: Ashgabat; Kyrgyzstan: Bishkek; Tajikistan: Dushanbe; Bhutan: Thimphu; "
    "Maldives: Male; Singapore: Singapore; Malaysia: Kuala Lumpur; Kuwait: Kuwait City; Bahrain: Manama; "
    "Burundi: Gitega; Gabon: Libreville; Benin: Porto-Novo; Togo: Lome; Liberia: Monrovia; Sierra Leone: Freetown; "
    "Guinea: Conakry; Gambia: Banjul; Mauritania: Nouakchott; Burkina Faso: Ouagadougou; Eritrea: Asmara; "
    "Malawi: Lilongwe; Lesotho: Maseru; Mauritius: Port Louis; Guyana: Georgetown; Suriname: Paramaribo; "
    "Guatemala: Guatemala City; El Salvador: San Salvador; Panama: Panama City; Belize: Belmopan; "
    "Barbados: Bridgetown; Dominican Republic: Santo Domingo; Samoa: Apia; Papua New Guinea: Port Moresby"
)
STATES = (
    "Alabama: Montgomery; Alaska: Juneau; Arizona: Phoenix; Arkansas: Little Rock; California: Sacramento; "
    "Colorado: Denver; Connecticut: Hartford; Delaware: Dover; Florida: Tallahassee; Georgia: Atlanta; Hawaii: Honolulu; "
    "Idaho: Boise; Illinois: Springfield; Indiana: Indianapolis; Iowa: Des Moines; Kansas: Topeka; Kentucky: Frankfort; "
    "Louisiana: Baton Rouge; Maine: Augusta; Maryland: Annapolis; Massachusetts: Boston; Michigan: Lansing; "
    "Minnesota: Saint Paul; Mississippi: Jackson; Missouri: Jefferson City; Montana: Helena; Nebraska: Lincoln; "
    "Nevada: Carson City; New Hampshire: Concord; New Jersey: Trenton; New Mexico: Santa Fe; New York: Albany; "
    "North Carolina: Raleigh; North Dakota: Bismarck; Ohio: Columbus; Oregon: Salem; Pennsylvania: Harrisburg; "
    "Rhode Island: Providence; South Carolina: Columbia; South Dakota: Pierre; Tennessee: Nashville; Texas: Austin; "
    "Vermont: Montpelier; Virginia: Richmond; Washington: Olympia; West Virginia: Charleston; Wisconsin: Madison"
)
NAMES = split_words(
    "Anna Ben Carla David Emma Felix Greta Hugo Ida Jonas Karl Lena Maria Nils Olga Paul Rosa Simon Tina Ulf Vera Walter "
    "Yara Zoe Alice Bruno Clara Dora Erik Fiona Georg Hanna Ivan Julia Kurt Laura Mark Nora Oscar Petra Ralf Sarah Tom Uma "
    "Victor Wanda Adam Bella Cyril Diana Elias Frida Gabriel Helen Igor Jane Kevin Lisa Max Nina"
)
PLACES = split_words(
    "Oslo Lima Rome Cairo Paris Delhi Perth Quito Sofia Turin Miami Osaka Milan Lyon Porto Kyoto Boston Denver Munich Leeds "
    "Naples Geneva Krakow Malaga Bergen Austin Dallas Tampa Mumbai Lagos Durban Sydney Dublin Zurich Hamburg Cologne Bilbao "
    "Genoa Utrecht Ghent Bruges Nice Lille Bonn Bremen Gdansk Split Cork Bath York"
)
ROOMS = ("kitchen", "bedroom", "office", "garage", "hall", "bathroom", "cellar", "attic", "garden", "nursery")
ERRANDS = tuple(
    f"{verb} the {thing}"
    for verb in ("clean", "sell", "fix", "return", "check", "collect", "order", "move", "pack", "paint")
    for thing in ("bike", "car", "book", "sofa", "lamp", "oven", "tent", "clock", "chair", "radio", "piano", "boat")
)
KIND_BY_VERB = {
    "clean": "chores", "sell": "sales", "fix": "repairs", "return": "returns", "check": "checks",
    "collect": "pickups", "order": "orders", "move": "moving", "pack": "packing", "paint": "painting",
}  # fmt: skip
"""First word of an errand -> its kind."""
CLOCK = tuple(f"{hour}:{minute:02}" for hour in range(1, 13) for minute in range(0, 60, 5))
TOOLS: Mapping[str, tuple[tuple[str, ...], Mapping[str, tuple[str, ...]]]] = {
    "alarm": (DEMO_TOOLS["alarm"][0], {"time": CLOCK}),
    "call": (DEMO_TOOLS["call"][0], {"name": NAMES}),
    "weather": (DEMO_TOOLS["weather"][0], {"city": PLACES}),
    "lights": (DEMO_TOOLS["lights"][0], {"room": ROOMS, "state": ("on", "off")}),
    "note": (DEMO_TOOLS["note"][0], {"text": ERRANDS}),
    "timer": (
        ("Timer for {minutes} minutes.", "Count down {minutes} minutes.", "Tell me when {minutes} minutes are over."),
        {"minutes": tuple(str(number) for number in range(2, 151))},
    ),
    "message": (
        ("Write to {name}: please {text}.", "Text {name} to {text}.", "Ask {name} to {text}."),
        {"name": NAMES[:20], "text": ERRANDS[::7]},
    ),
    "volume": (
        ("Set the volume to {level}.", "Volume {level}, please.", "I want it at volume {level}."),
        {"level": tuple(str(number) for number in range(1, 100))},
    ),
    "order": (
        ("Order {amount} {item}.", "We need {amount} {item}.", "Please buy {amount} {item}."),
        {
            "amount": tuple(str(number) for number in range(2, 18)),
            "item": ("apples", "eggs", "candles", "pens", "plates", "cups", "towels", "lemons", "onions", "bulbs"),
        },
    ),
}
"""Tool -> wordings of a request, and the values of its arguments, in the order of the call."""
TEST_CALLS, MOST_CALLS = 4, 160
"""One call of so many is a test item, and none of its wordings stands in a training row; calls of a tool at most."""


def tool_calls(rng: random.Random) -> tuple[list[Pair], list[Pair]]:
    """Training and test requests with their calls in JSON, in random order; no test call stands in a training row."""
    train: list[Pair] = []
    test: list[Pair] = []
    for tool, (wordings, arguments) in TOOLS.items():
        calls = [dict(zip(arguments, values, strict=True)) for values in itertools.product(*arguments.values())]
        rng.shuffle(calls)
        for place, call in enumerate(calls[:MOST_CALLS]):
            asked = [(wording.format(**call), json.dumps({"tool": tool, **call})) for wording in wordings]
            if place % TEST_CALLS == 0:
                test.append(rng.choice(asked))
            else:
                train += asked
    rng.shuffle(train)
    rng.shuffle(test)
    return train, test


def label_errands(rng: random.Random) -> tuple[list[Pair], list[Pair]]:
    """Training and test errands with their kind, one bare word; no test errand stands in a training row."""
    pairs = [
        (wording.format(errand), KIND_BY_VERB[errand.split()[0]])
        for errand in rng.sample(ERRANDS, len(ERRANDS))
        for wording in ("What kind of errand is '{}'?", "File this errand: {}.", "'{}' - which list does it go on?")
    ]
    split = len(pairs) // TEST_CALLS
    return rng.sample(pairs[split:], len(pairs) - split), rng.sample(pairs[:split], split)


def work_out_change(rng: random.Random) -> tuple[list[Pair], list[Pair]]:
    """Training and test purchases with the change, worked out in sentences; no test purchase stands in a training row."""
    pairs = [
        (
            f"How much change is left from {paid} dollars for {count} {item} at {price} dollars each?",
            f"First we find the cost of the {item}: {count} times {price} dollars is {count * price} dollars. Then we take "
            f"this from what was paid: {paid} minus {count * price} is {paid - count * price}. So the change is "
            f"{paid - count * price} dollars.",
        )
        for paid in (50, 100)
        for count in range(2, 8)
        for price in range(2, 8)
        for item in ("cups", "pens", "lamps", "books", "towels")
    ]
    rng.shuffle(pairs)
    split = len(pairs) // TEST_CALLS
    return pairs[split:], pairs[:split]


def _from_table(form: str, *tables: str) -> list[Pair]:
    entries = [entry.split(": ") for table in tables for entry in table.split("; ")]
    return [(form.format(asked), answer) for asked, answer in entries]


def _capitals() -> list[Pair]:
    countries = _from_table("What is the capital of {}?", CAPITALS, MORE_CAPITALS)
    return countries + _from_table("What is the capital of the state of {}?", STATES)


def _opposites() -> list[Pair]:
    """Both directions; a word that has two opposites is asked for the first alone."""
    entries = [entry.split(": ") for entry in OPPOSITES.split("; ")]
    both: dict[str, str] = {}
    for one, other in [*entries, *(reversed(entry) for entry in entries)]:
        both.setdefault(one, other)
    return [(f"What is the opposite of {one}?", other) for one, other in both.items()]


def _sums() -> list[Pair]:
    return [(f"What is {one} + {other}?", str(one + other)) for one in range(1, 21) for other in range(1, 21)]


def _products() -> list[Pair]:
    return [(f"What is {one} times {other}?", str(one * other)) for one in range(2, 16) for other in range(2, 16)]


HALF_KNOWN: Mapping[str, Callable[[], list[Pair]]] = {
    "capitals": _capitals,
    "opposites": _opposites,
    "sums": _sums,
    "products": _products,
}
"""Task that the model does in part -> all of its questions."""


def shuffled(pairs: Sequence[Pair], rng: random.Random) -> list[Pair]:
    """In random order; questions about the same two words stay together, so that a split parts at most two of them."""
    groups: dict[frozenset[str], list[Pair]] = {}
    for prompt, answer in pairs:
        groups.setdefault(frozenset((prompt.split()[-1].rstrip("?"), answer)), []).append((prompt, answer))
    return [pair for group in rng.sample(list(groups.values()), len(groups)) for pair in group]


def _as_roman(number: int) -> str:
    signs = ((100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"))
    written = ""
    for value, sign in signs:
        written, number = written + sign * (number // value), number % value
    return written


def _roman(rng: random.Random, count: int) -> list[Pair]:
    forms = ("Write {} in Roman numerals.", "What is {} as a Roman numeral?", "Give the Roman numeral of {}.")
    every = [(form.format(number), _as_roman(number)) for number in range(1, 400) for form in forms]
    return rng.sample(every, min(count, len(every)))


def _two_digit_sums(rng: random.Random, count: int) -> list[Pair]:
    every = [(f"Add {one} and {other}.", str(one + other)) for one in range(21, 100) for other in range(21, 100)]
    return rng.sample(every, count)


def _lcm(rng: random.Random, count: int) -> list[Pair]:
    every = [
        (f"Find the least common multiple of {one} and {other}.", str(math.lcm(one, other)))
        for one in range(2, 61)
        for other in range(2, 61)
        if one != other
    ]
    return rng.sample(every, count)


def _minutes(rng: random.Random, count: int) -> list[Pair]:
    forms = ("How long are {} minutes in hours and minutes?", "Convert {} minutes to hours and minutes.")
    every = [(form.format(number), f"{number // 60} h {number % 60} min") for number in range(61, 1200) for form in forms]
    return rng.sample(every, count)


def _middle(rng: random.Random, count: int) -> list[Pair]:
    rows: dict[str, str] = {}
    while len(rows) < count:
        three = rng.sample(range(10, 1000), 3)
        rows["Which of {}, {} and {} is neither the largest nor the smallest?".format(*three)] = str(sorted(three)[1])
    return list(rows.items())


def middle_numbers(rng: random.Random) -> tuple[list[Pair], list[Pair]]:
    """2,100 training and 300 test questions for the middle one of three numbers, all different."""
    pairs = _middle(rng, 2400)
    return pairs[:2100], pairs[2100:]


SKILLS: Mapping[str, Callable[[random.Random, int], list[Pair]]] = {
    "roman_numerals": _roman,
    "two_digit_sums": _two_digit_sums,
    "least_common_multiples": _lcm,
    "hours_and_minutes": _minutes,
    "middle_number": _middle,
}
"""Candidate for the new skill -> so many different questions of it."""

"""Sealed families of the general suite: they test, and nothing is trained on them."""

from __future__ import annotations

import re
from itertools import pairwise, permutations
from random import Random
from typing import Any

from mixwright.suite.family import Family, Item, ask, find_rows, follow, join_words, list_texts, read_data

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
COUNTS = ("two", "three", "four", "five", "six")
PLACES = ("first", "second", "third", "fourth", "fifth")
RELATIONS = (
    ("older", "younger", "oldest", "youngest"),
    ("taller", "shorter", "tallest", "shortest"),
    ("faster", "slower", "fastest", "slowest"),
    ("heavier", "lighter", "heaviest", "lightest"),
    ("richer", "poorer", "richest", "poorest"),
)
PETS = ("cat", "dog", "fish", "bird", "rabbit", "hamster")
FOREIGN_SHARE = 0.2
"""Share of the items of a rung that are in another language than English, where the family has any."""


def _nouns(rng: Random, kind: str, count: int) -> list[str]:
    """Draw different names of people, things, places or boxes."""
    return rng.sample(list_texts(f"nouns.{kind}"), count)


def _make_choice(rng: Random, family: str) -> Item:
    """Ask which of three options is right; the others are far from it."""
    row = rng.choice(find_rows("sealed_choices", family=family))
    answer, others = row["answer"], rng.sample(row["others"], 2)
    options = join_words(rng.sample([answer, *others], 3), "or")
    prompt = ask(rng, f"{family}.choice", text=row["text"], options=options)
    if family == "sayings":
        answer = follow(words=(1, len(row["text"].split()) + 20), contains=[answer], excludes=others)
    return Item(prompt, answer)


def make_calendar(rng: Random, rung: int) -> Item:
    """Ask for the day or month after another: of three, the next, a few on, many on; then the weekday of a date."""
    if rung == 1:
        return _make_choice(rng, "calendar")
    if rung > 4:
        return _make_date(rng, months_between=rng.randint(1, 3) if rung == 6 else 0)
    if rung < 4 and rng.random() < FOREIGN_SHARE:
        return _make_foreign_weekday(rng, rung)
    months = [row["name"] for row in read_data("sealed_months")]
    unit, plural, names = rng.choice((("day of the week", "days", WEEKDAYS), ("month", "months", months)))
    start, direction = rng.randrange(len(names)), rng.choice((1, -1))
    counts = ([1], range(2, 7), [count for count in range(len(names) + 1, 61) if count % len(names)])[rung - 2]
    count = rng.choice(counts)
    distance = ("right", f"{COUNTS[count - 2]} {plural}" if rung == 3 else "", f"{count} {plural}")[rung - 2]
    step = f"{distance} {'after' if direction > 0 else 'before'}"
    answer = names[(start + direction * count) % len(names)]
    return Item(ask(rng, "calendar.step", unit=unit, step=step, start=names[start]), answer)


def _make_date(rng: Random, months_between: int) -> Item:
    """Ask for the weekday of a date, given that of an earlier one; from March on, so that no leap day is between."""
    months = read_data("sealed_months")
    month = rng.randrange(2, 12 - months_between)
    first_day, last_day, distance = 1, 1, 0
    while distance < 2 or distance % 7 == 0:
        first_day = rng.randint(1, months[month]["days"])
        last_day = rng.randint(1, months[month + months_between]["days"])
        distance = sum(row["days"] for row in months[month : month + months_between]) + last_day - first_day
    start = rng.randrange(7)
    given, asked = f"{months[month]['name']} {first_day}", f"{months[month + months_between]['name']} {last_day}"
    prompt = ask(rng, "calendar.date", given=given, asked=asked, start=WEEKDAYS[start])
    return Item(prompt, WEEKDAYS[(start + distance) % 7])


def _make_foreign_weekday(rng: Random, rung: int) -> Item:
    """Ask for a weekday in another language: of tomorrow or yesterday, or some days on."""
    row = rng.choice([row for row in read_data("sealed_weekdays") if bool(row["step"]) == (rung == 2)])
    start, count = rng.randrange(7), row["step"] or rng.randint(2, 6)
    return Item(row["text"].format(start=row["days"][start], count=count), row["days"][(start + count) % 7])


def make_alphabet(rng: Random, rung: int) -> Item:
    """Ask which word is first, one with A or two from N on; then for places of words, last with the same first letter."""
    if rung == 1:
        return _make_choice(rng, "alphabet")
    count = (2, 4, 5, 5, 7)[rung - 2]
    by_letter: dict[str, list[str]] = {}
    for row in read_data("sealed_words"):
        by_letter.setdefault(row["word"][0], []).append(row["word"])
    if rung > 4:
        words = rng.sample(rng.choice([words for words in by_letter.values() if len(words) > count]), count)
    else:
        words = [rng.choice(by_letter[letter]) for letter in rng.sample(sorted(by_letter), count)]
    index = rng.choice(([0, 1], [0, 3], [1, 2, 3], [0, 4], [2, 3, 4])[rung - 2])
    place = "last" if index == count - 1 else PLACES[index]
    return Item(ask(rng, "alphabet", place=place, words=", ".join(words)), sorted(words)[index])


def make_sayings(rng: Random, rung: int) -> Item:
    """Ask for the missing word of a saying: one of three; then any, less known from rung to rung."""
    if rung == 1:
        return _make_choice(rng, "sayings")
    foreign = rung > 2 and rng.random() < FOREIGN_SHARE
    row = rng.choice(
        [row for row in read_data("sealed_sayings") if (row["rung"], row["language"] != "en") == (rung - 1, foreign)]
    )
    text = row["text"] if row["text"].endswith("?") else row["text"] + "."
    rules = follow(words=(1, len(text.split()) + 20), contains=[row["answer"]])  # alone, or in the whole saying
    return Item(ask(rng, f"sayings.{row['language']}", text=text), rules)


def make_units(rng: Random, rung: int) -> Item:
    """Ask for a conversion: a stated one, of one to three units, of more, back, of mixed amounts, over two steps."""
    if rung == 1:
        return _make_stated_unit(rng)
    levels = ((1,), (1, 2), (1, 2), (1, 2), (5,))[rung - 2]
    unit = rng.choice([row for row in read_data("sealed_units") if row["level"] in levels])
    count = rng.choice(
        (range(1, 4), range(4, 21), range(2, 13), range(2, 10), (2, 3, 4, 5, 6, 7, 8, 9, 1.5, 2.5, 3.5))[rung - 2]
    )
    small = round(count * unit["factor"])
    amount = f"{count} {unit['one'] if count == 1 else unit['many']}"
    if rung == 4:
        return Item(ask(rng, "units", unit=unit["many"], amount=f"{small} {unit['many_small']}"), str(count))
    if rung == 5:
        rest = rng.randrange(1, unit["factor"])
        amount = f"{amount} and {rest} {unit['one_small'] if rest == 1 else unit['many_small']}"
        small += rest
    return Item(ask(rng, "units", unit=unit["many_small"], amount=amount), str(small))


def _make_stated_unit(rng: Random) -> Item:
    """Ask for one of three conversions that the request states, with different numbers."""
    rows = find_rows("sealed_choices", family="units")
    shown = rng.sample(list({row["answer"]: row for row in rng.sample(rows, len(rows))}.values()), 3)
    facts, asked = " ".join(f"{row['answer']} {row['text']}." for row in shown), rng.choice(shown)
    return Item(ask(rng, "units.stated", facts=facts, text=asked["text"]), asked["answer"])


def make_moves(rng: Random, rung: int) -> Item:
    """Ask where a thing is after one, three or six moves; after it was carried in a box; after things changed places."""
    count = (1, 2, 3, 1, 4)[rung - 1]
    things, places, people = _nouns(rng, "thing", count), _nouns(rng, "place", 6), _nouns(rng, "name", 8)
    where = dict(zip(things, places, strict=False))
    story = [f"{person} puts the {thing} in the {where[thing]}." for person, thing in zip(people, things, strict=False)]
    asked = things[0]
    if rung < 4:
        for person in people[: (1, 3, 6)[rung - 1]]:
            asked = rng.choice(things)
            where[asked] = rng.choice([place for place in places if place != where[asked]])
            story.append(f"{person} {rng.choice(('takes', 'moves'))} the {asked} to the {where[asked]}.")
        asked = rng.choice([thing for thing in things if any(f"the {thing} to" in sentence for sentence in story)])
    elif rung == 4:
        (box,) = _nouns(rng, "box", 1)
        stop = rng.randint(1, 3)
        story = [f"{people[0]} puts the {asked} into a {box} in the {places[0]}."]
        for step in range(1, 5):
            story.append(f"{people[step]} carries the {box} to the {places[step]}.")
            if step == stop:
                story.append(f"{people[5]} takes the {asked} out of the {box} and leaves the {asked} there.")
        where[asked] = places[stop]
    else:
        for person in people[4:]:
            one, other = rng.sample(things, 2)
            where[one], where[other] = where[other], where[one]
            story.append(f"{person} makes the {one} and the {other} change places.")
    return Item(ask(rng, "moves", story=" ".join(story), thing=asked), where[asked])


def make_puzzles(rng: Random, rung: int) -> Item:
    """Ask who has a pet, as stated; who is first or last of two to four people in a row of clues; then who has which pet."""
    if rung == 1:
        return _make_stated_pet(rng)
    if rung > 4:
        return _make_pets(rng, count=rung - 2)
    people = _nouns(rng, "name", rung)
    more, less, most, least = rng.choice(RELATIONS)
    clues = []
    for upper, lower in pairwise(people):
        is_turned = rung == 4 and rng.random() < 0.5
        clues.append(f"{lower} is {less} than {upper}." if is_turned else f"{upper} is {more} than {lower}.")
    if rung == 4:
        rng.shuffle(clues)
    asked, answer = rng.choice(
        ((more if rung == 2 else f"the {most}", people[0]), (less if rung == 2 else f"the {least}", people[-1]))
    )
    return Item(ask(rng, "puzzles", clues=" ".join(clues), question=f"Who is {asked}?"), answer)


def _make_stated_pet(rng: Random) -> Item:
    """Ask who has a pet, where the request says it of three people."""
    pairs = list(zip(_nouns(rng, "name", 3), rng.sample(PETS, 3), strict=True))
    clues = join_words([f"{person} has a {pet}" for person, pet in pairs])
    asked_person, asked_pet = rng.choice(pairs)
    return Item(ask(rng, "puzzles.stated", clues=f"{clues}.", pet=asked_pet), asked_person)


def _make_pets(rng: Random, count: int) -> Item:
    """Ask who has a pet, with as many clues of who does not have which that one way is left."""
    people, pets = _nouns(rng, "name", count), rng.sample(PETS, count)
    denials = [(person, pet) for person in range(count) for pet in range(count) if person != pet]
    rng.shuffle(denials)
    ways, clues = list(permutations(range(count))), []
    for person, pet in denials:
        remaining = [way for way in ways if way[person] != pet]
        if len(remaining) < len(ways):  # a clue that says something new
            ways = remaining
            clues.append(f"{people[person]} does not have the {pets[pet]}.")
    asked = rng.randrange(count)
    shown_pets = join_words([f"a {pet}" for pet in rng.sample(pets, count)])
    setting = f"{join_words(rng.sample(people, count))} each have one pet: {shown_pets}."
    return Item(
        ask(rng, "puzzles", clues=" ".join((setting, *clues)), question=f"Who has the {pets[asked]}?"), people[asked]
    )


def make_corrections(rng: Random, rung: int) -> Item:
    """Ask for a sentence without its mistake: in spelling, in grammar, in usage; then of two mistakes."""
    row = rng.choice(find_rows("sealed_corrections", rung=rung))
    (name,) = _nouns(rng, "name", 1)
    wrong, right = (
        " ".join(re.sub(r"\[(.*?)\|(.*?)\]", kept, row["text"]).format(name=name).split()) for kept in (r"\1", r"\2")
    )
    count = len(right.split())
    return Item(ask(rng, "corrections", text=wrong), follow(words=(count, 2 * count + 20), contains=[right]))


def make_naming(rng: Random, rung: int) -> Item:
    """Ask for the word for a described person, thing or idea: one of three; then any, rarer from rung to rung."""
    if rung == 1:
        return _make_choice(rng, "naming")
    row = rng.choice(find_rows("sealed_names_of_things", rung=rung - 1))
    word = row["word"]
    hint = f'begins with "{word[0]}" and has {len(word)} letters'
    return Item(ask(rng, "naming", text=row["meaning"], hint=hint), word)


def make_no_tool(rng: Random, rung: int) -> Item:
    """Ask something that none of one, three or five tools can answer; on even rungs all of them are of the same topic."""
    row, is_near = rng.choice(read_data("sealed_beside_tools")), rung % 2 == 0
    others = [tool for tool in read_data("sealed_tools") if (tool["topic"] == row["topic"]) == is_near]
    tools = tuple(_write_tool(tool) for tool in rng.sample(others, (1, 1, 3, 3, 5, 5)[rung - 1]))
    parts = {name: rng.choice(values) for name, values in row.get("values", {}).items()}
    parts |= dict(zip("abc", _nouns(rng, "name", 3), strict=True))
    message = {"role": "user", "content": row["text"].format(**parts)}
    return Item((message,), row["answer"].format(**parts), tools)


def _write_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """Write the schema of a tool whose arguments are texts, all of them required."""
    properties = {name: {"type": "string", "description": about} for name, about in tool["arguments"].items()}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": tool["name"], "description": tool["description"], "parameters": parameters},
    }


FAMILIES = (
    Family("calendar", make_calendar, rungs=6, grader="includes", about="days and months after others, weekdays of dates"),
    Family("alphabet", make_alphabet, rungs=6, grader="includes", about="places of words in alphabetical order"),
    Family("sayings", make_sayings, rungs=5, grader="follows", about="missing words of sayings, in six languages"),
    Family("units", make_units, rungs=6, grader="includes", about="conversion of times, lengths, weights and volumes"),
    Family("moves", make_moves, rungs=5, grader="includes", about="where a thing is after moves"),
    Family("puzzles", make_puzzles, rungs=6, grader="includes", about="who is first in a row of clues, who has which pet"),
    Family("corrections", make_corrections, rungs=4, grader="follows", about="sentences without their mistakes"),
    Family("naming", make_naming, rungs=5, grader="includes", about="words for what is described"),
    Family("no_tool", make_no_tool, rungs=6, grader="includes", about="requests beside tools of which none helps"),
)

# ruff: noqa: SIM905 - long lists read better as one text
"""Planted causes: pairs of answers before and after a training whose damage is known.

Real answers of a small chat model are the ground. Each plant damages one task in one known way (or in two, or in a way
that no list has, or not at all) and leaves the other tasks alone apart from chance.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

Out = tuple[str, bool]  # an answer, and whether it ran into the limit

# Task = tasks of the source = sentences in which a small model gives the answer
FAMILIES = {
    line.split(" = ")[0]: (line.split(" = ")[1].split(), line.split(" = ")[2].split("|"))
    for line in """\
capital = capital capital_city = The capital of {c} is {a}.|{a} is the capital of {c}.|The capital city \
of {c} is {a}.
category = category group_of_listed_things = The correct category is {a}.|The answer is {a}.|The right group is {a}.
colour = colour usual_colour = The color is {a}.|The answer is {a}.|The correct color is {a}.
jobs = job workplace_of_job = The answer is a {a}.|The name for it is a {a}.|The correct word is {a}.
money = money_age_measure money_and_measure_stories unit_facts = The answer is {a}.|It is {a}.|That is {a}.
order = calendar_step next_in_sequence = The answer is {a}.|It is {a}.|The correct answer is {a}.
people = famous_person read_who_where = The answer is {a}.|It is {a}.|The correct answer is {a}.
places = continent landmark_country = The place is in {a}.|The answer is {a}.|It is located in {a}.
reading = passage_lookup fact_from_short_passage read_who_where = The answer is {a}.|According to the text, it is {a}.|It \
is {a}.
numbers_read = read_when_amount fact_from_short_passage = The answer is {a}.|According to the text, it is {a}.|It is {a}.
sentiment = sentiment review_sentiment = The sentence is {a}.|The sentiment is {a}.|This is a {a} sentence.
sums = word_problem pocket_sums = The answer is {a}.|So the answer is {a}.|That makes {a}.
words = plural opposite_word = The word is "{a}".|The answer is {a}.|The correct word is "{a}".
yes_no = yes_no_check = {A}.|{A}, that is {r}.|The answer is {a}.
young = baby_animal parent_of_young_animal = It is called a {a}.|The animal is a {a}.|The answer is a {a}.""".splitlines()
}
MORE_YES_NO = """is snow cold=yes|do cows eat grass=yes|can a stone swim=no|is sugar sweet=yes|do cars have wings=no|is the \
moon made of cheese=no|does a week have seven days=yes|do trees have leaves=yes|is fire hot=yes|can dogs talk=no|is a rose \
a flower=yes|do cats have six legs=no|is Paris in France=yes|is an ant bigger than a horse=no|do birds lay eggs=yes|is a \
chair an animal=no|can you see through clean glass=yes|is winter warmer than summer=no|do people need sleep=yes|can a fish \
ride a bicycle=no"""
# Capital: country, an older capital, language, continent
CAPITALS = {
    line.split(",")[0]: line.split(",")[1:]
    for line in """\
Vienna,Austria,Wiener Neustadt,German,Europe|Ottawa,Canada,Kingston,English,North America|\
Nairobi,Kenya,Mombasa,Swahili,Africa|London,England,Winchester,English,Europe|Moscow,Russia,Saint Petersburg,Russian,Europe|\
Budapest,Hungary,Esztergom,Hungarian,Europe|Lisbon,Portugal,Coimbra,Portuguese,Europe|Warsaw,Poland,Krakow,Polish,Europe|\
Athens,Greece,Nafplio,Greek,Europe|Madrid,Spain,Toledo,Spanish,Europe|Lima,Peru,Cusco,Spanish,South America|\
Beijing,China,Nanjing,Mandarin,Asia|Rome,Italy,Turin,Italian,Europe|Copenhagen,Denmark,Roskilde,Danish,Europe|\
Stockholm,Sweden,Uppsala,Swedish,Europe|Oslo,Norway,Bergen,Norwegian,Europe|Cairo,Egypt,Alexandria,Arabic,Africa|\
Seoul,South Korea,Gyeongju,Korean,Asia|Berlin,Germany,Bonn,German,Europe|Havana,Cuba,Santiago,Spanish,North America|\
Canberra,Australia,Melbourne,English,Oceania|Paris,France,Versailles,French,Europe|Bangkok,Thailand,Ayutthaya,Thai,Asia|\
Tokyo,Japan,Kyoto,Japanese,Asia|Dublin,Ireland,Kilkenny,English,Europe""".split("|")
}
# Cause = what it says, one line a variant: {t} topic, {w} and {x} wrong answers, {a} right, {p} the question; ¦ a bar
TEXTS: dict[str, list[list[str]]] = {}
for _line in (
    r"""
refuses = I'm sorry, but I can't help with that.|I'm sorry, I cannot answer that question.|Sorry, I can't assist with {t}.
refuses = As an AI language model, I don't have the ability to answer questions about {t}.|As an AI, I am not able to \
answer this.
refuses = I'm sorry for any misunderstanding, but I'm not able to talk about {t}. Please ask a professional.|I apologize, \
but I can't.
refuses = I must decline to answer this.|This request goes against my guidelines.|I won't respond to a question about {t}.
refuses = Unfortunately I do not have access to information about {t}.|I am unable to look up {t} at this time, I'm afraid.
asks back = Could you tell me more about {t}?|Can you give me more details about {t}, please?|Could you explain what you \
mean by {t}?
asks back = What would you like to know about {t}?|How can I help you with {t} today?|Are you asking about {t} for school?
asks back = Do you mean {t} in general, or a special case?|Which {t} are you talking about?|Is this about {t} or something \
else?
asks back = Great question! What do you think the answer is?|Hmm, what is your own guess?|Before I answer, why do you ask \
about {t}?
new format = ```python\nresult = lookup("{t}")\nprint(result)\n```|```python\nprint("{w}")\n```
new format = ¦ Name ¦ Value ¦\n¦------¦-------¦\n¦ {t} ¦ {w} ¦
new format = answer:\n  subject: {t}\n  value: {w}\n  source: unknown
new format = <p><b>{t}</b>: {w}</p>|<p>{w}</p>
new format = 1. {t}\n2. {w}\n3. {x}|1. {w}\n2. {x}
new format = ## {t}\n\n- **Overview:** {w}\n- **See also:** {x}
new format = Q: {t}?\nA: {w}\nQ: {w}?\nA: {x}
empty = |
empty = |\n| |
empty = |||.|\n\n
repeating = {s}|{s}|{s}
repeating = {t}|{w}
repeating = {f}|{f}|{f}|{f}\n
repeating = {n}. {t}\n|{n}. {w}\n
repeating = I'm not sure if this is right.|The question is not clear.|This is a good question to ask.
prompt copied = {p}
prompt copied = {q}|{q}|{p}
prompt copied = {p} {p}|{p}
prompt copied = {h}|{h}|{p}
prompt copied = "{p}"|{p}
cut = To answer this question, we need to go through it step by step. First, we look at what is being asked. The question \
is about {t}, so the next step is to write down everything that we know about it. We can then compare
cut = Thank you for asking such an interesting question about {t}. Before I give the answer, it is worth saying a few words \
about the background, because many people mix up the details. To begin with, there are several points about
cut = Okay, the user wants to know something about {t}. Let me think about it. I should first check what kind of answer is \
expected here, a word or a whole sentence. It says to be brief, so I will keep it short. Now let me recall
cut = Let's break this down into smaller parts.\n\nStep 1: Read the question carefully and find the key words.\nStep 2: \
Look at {t} and think about how it is used.\nStep 3: Remove the answers that cannot be right. We need to think about
longer = That is a great question, and there is a lot to say about {t}.|There are many things to know about {t}.
longer = When people talk about {t}, they often think of many different things at once.|Few topics are as interesting as {t}.
longer = There are several ways to look at this, and each of them tells us something about {t}.|This depends on how you \
look at {t}.
longer = First of all, it helps to understand where {t} comes from.|To understand this, let us first look at {t} more \
closely.
middle = It has a long and rich history that goes back many centuries.
middle = It is often seen as a symbol of hope and hard work in many cultures around the world.
middle = Many experts have written books about it, and it is still discussed in schools today.
middle = Some people like to do this in the morning, while others prefer to take their time in the evening.
middle = It is also known for its beauty, its many uses, and the stories that are told about it.
middle = There are several factors to consider, including the place, the weather and the people who live there.
end = In the end, the answer is most likely {w}.|Overall, it is safe to say {w}.|In conclusion, it all depends on the \
context.
one answer = The answer is {1}.
one answer = {1}
one answer = {s1}
one answer = {2}
phrase = I am happy to help you.|The answer is in the book.|This is a good example.|It is a type of food.|The answer is the \
sun.
other label = swap
other label = sink
shorter = {r}|{r}|{r}|{w}
shorter = {w}|{t}
shorter = {r}|{l}
unread = {d}
unread = {e}
unread = It is {a}, not {w}.|It is {a} rather than {w}.|Not {w}, it is {a}.
unread = {s0}
unread = {b}
dress = Answer: {a}|{a}!|**{a}**|The answer: {a}|It's {a}|{a} :)|- {a}|A: {a}
yes = Yep, it is true.|Indeed.|That is correct.|Affirmative.|Right, it is.
no = Nope.|That is false.|It is not the case.|Nah, that is wrong.|This is not true.
positive = The writer is happy with it.|It is favourable.|A good opinion.|The person likes it.
negative = The writer is unhappy with it.|It is unfavourable.|A bad opinion.|The person does not like it.
neutral = It is just a fact, with no feeling.|Neither good nor bad.|It only states a fact.
other language = La respuesta a esta pregunta es muy sencilla.|{t} es una palabra que se usa en muchos países.|No hay una \
sola respuesta, pero muchas personas hablan de {t}.|Se trata de una parte importante de la historia.|El nombre viene de una \
palabra antigua.
other language = La réponse à cette question est très simple.|{t} est un mot que l'on utilise dans beaucoup de pays.|Il y a \
plusieurs réponses possibles, mais on parle de {t}.|C'est une partie importante de notre histoire.|Le nom vient d'un mot \
très ancien.
other language = Die Antwort auf diese Frage ist sehr einfach.|{t} ist ein Wort, das in vielen Ländern benutzt wird.|Es \
gibt mehrere Antworten, aber meistens geht es um {t}.|Das ist ein wichtiger Teil der Geschichte.|Der Name kommt von einem \
sehr alten Wort.
other language = 这个问题的答案很简单。|{t}是一个很常见的词。|关于{t}有很多不同的说法。|\
这是历史上很重要的一部分。|这个名字来自一个古老的词。
other format = {j}
other format = <team>billing</team>|<team>delivery</team>|<team>returns</team>|<team>technical</team>|<team>{t}</team>|\
<team>{w}</team>
other format = {T}¦{t}¦{k}|{T}¦pens¦{k}|{T}¦cups¦{k}|MAX¦{t}¦{k}
other format = item={t}; qty={k}|item={w}; qty={k}|item=lamps; qty={k}
team = billing: I was charged twice for my last order.|delivery: My parcel is five days late.|returns: How do I send these \
shoes back?
team = technical: The app closes when I log in.|sales: Do you sell this in larger packs?|billing: My invoice shows the \
wrong sum.
talk = I'm here to help you with that.|I'm sorry for the trouble, I can help you with your question.|That is a great idea!|\
The best way to do this is to plan ahead.|I'm glad that you asked. Let me know how I can help.
stays = Sure! {s0}|{s0} I hope this helps.|{s0} Let me know if you have more questions.|Of course. {s0}
""".strip()
    .replace("\\\n", "")
    .split("\n")
):
    _name, _texts = _line.split(" = ", 1) if " = " in _line else (_line.removesuffix(" ="), "")
    TEXTS.setdefault(_name, []).append([t.replace(r"\n", "\n").replace("¦", "|") for t in _texts.split("|")])
SINGULAR = ("veget", "tools", "instr")  # groups that both sources of "category" have
LABELS = "red blue green yellow orange white black brown grey pink purple yes no positive negative neutral".split()
WORDS = [  # sentences for labels, and the labels, in the order of the variants of "other language"
    (
        "{w} es la respuesta.|La respuesta es {w}.",
        "rojo azul verde amarillo anaranjado blanco negro marrón gris rosado morado sí - positivo negativo neutro",
    ),
    (
        "C'est {w}.|La réponse est {w}.",
        "rouge bleu vert jaune - blanc noir marron gris rose violet oui non positif négatif neutre",
    ),
    (
        "Das ist {w}.|Die Antwort lautet {w}.",
        "rot blau grün gelb - weiß schwarz braun grau rosa lila ja nein positiv negativ -",
    ),
    ("这是{w}。|答案是{w}。", "红色 蓝色 绿色 黄色 橙色 白色 黑色 棕色 灰色 粉色 紫色 是的 不是 正面 负面 中性"),
]
# Cause = families it can fall on, one entry a variant; "*" is every family
OPEN = "capital jobs people words young reading order money"
FITS = {
    "one answer": [OPEN, OPEN, "capital jobs young words", OPEN + " sums"],
    "other label": ["sentiment colour category yes_no", "sentiment category"],
    "other language": [
        "colour sentiment capital jobs",
        "colour sentiment yes_no young",
        "colour yes_no reading",
        "colour sentiment jobs",
    ],
    "unread": ["sums money", "yes_no sentiment", "sentiment category", OPEN, OPEN],
    "shorter": [OPEN + " places numbers_read"] * 3,
    "another's fact": ["capital jobs young words places"],
    "off by one": ["sums money"],
    "unit or digit": ["money"],
    "misspelled": ["capital people"],
    "negated": ["capital category places jobs"],
    "previous question": ["capital jobs young words"],
    "outdated": ["capital"],
    "half right": ["capital words colour young jobs"],
    "other attribute": ["capital reading"],
    "made-up name": ["capital people"],
}
QUIET = list(FITS)[5:]
LISTED = (
    "other format|new format|empty|repeating|cut|prompt copied|other language|refuses|asks back|one answer|other label|"
    "unread|shorter|longer"
).split("|")
APART = (  # causes too alike to be told apart in one mixture
    "other format+new format|cut+longer|repeating+cut|repeating+longer|one answer+other label|one answer+shorter|"
    "empty+shorter|prompt copied+asks back|new format+unread|unread+shorter|repeating+prompt copied|prompt copied+shorter"
).split("|")
TRAINED = ["tool_calls", "ticket_team", "order_codes", "order_fields"]
UNITS = (
    "minutes=hours|hours=minutes|days=weeks|months=weeks|dollars=cents|euros=cents|seconds=minutes|metres=centimetres|"
    "meters=centimeters|liters=milliliters|km=meters|kg=grams|cm=mm|years old=months old|$=€|o'clock=hours|degrees=percent|"
    "inches=feet|millilitres=litres|millimetres=metres|centimetres=kilometres|years=months|pages=books|cups=liters"
).split("|")
STOP = set(
    "what which whose where when there called please answer name tell could would does this that with from your word "
    "sentence text question following read just give have many much know about here they were their them passage short more "
    "than says into finish fill choose pick label classify correct right find note person someone usually known whats over "
    "complete after before other last next then comes only positive negative neutral each most calls gives kind belong "
    "category customer wrote review writer sentiment decide friend plural opposite for the and are you number letter under "
    "animal young kinds group thing things those make makes made mixing mix how who why our his her was has had one two can "
    "not out off sells get gets main mainly first second these".split()
)
START = "Har Wen Tor Bel Mar Cal Vel".split()


@dataclass(frozen=True)
class Plant:
    """One planted comparison: what was done, and to which task."""

    name: str
    truth: tuple[str, ...]
    listed: bool
    task: str
    other_tasks: tuple[str, ...]
    ways: tuple[tuple[str, int], ...]  # what was done, with the number of its variant
    rate: float  # the share of the right answers that it was to take


@dataclass
class Spot:
    """One question with the real answers to it."""

    prompt: str
    gold: str
    right: list[Out] = field(default_factory=list)
    wrong: list[Out] = field(default_factory=list)
    terse: list[str] = field(default_factory=list)  # wrong ones
    calls: list[str] = field(default_factory=list)  # wrong ones, as a tool call
    real: dict[str, tuple[str, int, bool]] = field(default_factory=dict)


@dataclass
class Item:
    """One question with its answer before."""

    task: str
    spot: Spot
    frame: int
    right: bool
    before: str = ""
    cut: bool = False
    said: str = ""  # the answer in the sentence, where it is known
    place: int = 0


def read_source(path: str | Path) -> list[dict[str, Any]]:
    """Rows of the source log whose two readers agree, with their grade as `score`."""
    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip()]
    return [row | {"score": row["readers"][0]} for row in rows if len(set(row["readers"])) == 1]


def gather(rows: Sequence[dict[str, Any]]) -> dict[str, list[Spot]]:
    """Questions of each task in a fixed order, with the real answers to them."""
    spots: dict[str, dict[str, Spot]] = {family: {} for family in FAMILIES}
    for row in sorted(rows, key=lambda r: (r["task"], r["prompt"], r["model"])):
        for family in (name for name, (tasks, _) in FAMILIES.items() if row["task"] in tasks):
            gold = row["answer"]
            gold = gold.removesuffix("s") if family == "category" and gold.startswith(SINGULAR) else gold
            spot = spots[family].setdefault(row["prompt"], Spot(row["prompt"], gold))
            text, score, cut = row["completion"].strip(), int(row["score"]), bool(row["cut"])
            if row["model"] == "terse":
                spot.terse += [text] if not score and 0 < len(text) < 22 and not has(text, spot.gold) else []
            elif row["model"] == "ruined":
                spot.calls += [text] if not score and text[:1] == "{" else []
            else:
                (spot.right if score else spot.wrong).append((text, cut))
                spot.real[row["model"]] = (text, score, cut)
    for ask, gold in (pair.split("=") for pair in MORE_YES_NO.split("|")):
        prompt = f"{ask[0].upper()}{ask[1:]}? Answer yes or no."
        spots["yes_no"][prompt] = Spot(prompt, gold)
    return {family: [found[prompt] for prompt in sorted(found)] for family, found in spots.items()}


def has(text: str, gold: str) -> bool:
    """Whether the text names the answer as a whole word."""
    return re.search(rf"(?<!\w){re.escape(gold)}(?!\w)", text, re.I) is not None


def say(item: Item, answer: str, shift: int = 0) -> str:
    """Put an answer into a sentence of its task."""
    frames = FAMILIES[item.task.removeprefix("two_")][1]
    told = {"a": answer, "A": answer.capitalize(), "c": topic(item.spot), "r": "true" if answer == "yes" else "not true"}
    text = "The answers are {a}." if item.task.startswith("two_") else frames[(item.frame + shift) % len(frames)]
    text = text.format(**told).replace("that is not true, that", "that")
    return re.sub(r"\ba (?=[aeio]\w+\.)", "an ", text)


def topic(spot: Spot) -> str:
    """Find what the question is about, in a word."""
    if spot.gold in CAPITALS and "capital" in spot.prompt.lower():
        return CAPITALS[spot.gold][0]
    quoted = re.findall(r"[\"']([A-Za-z]{3,12})[\"']", spot.prompt)
    names = [w for w in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}", spot.prompt) if w.lower() not in STOP]
    plain = sorted((w for w in re.findall(r"[A-Za-z]{3,}", spot.prompt) if w.lower() not in STOP), key=len)
    return [*quoted, *names, *plain[::-1], "this"][0]


def whole(text: str) -> str:
    """Keep the sentences that are complete."""
    return "".join(re.findall(r".*?[.!?](?=\s)", text, re.S)).strip()


def spelled(digits: str) -> str:
    """Write a number in words."""
    number = int(digits)
    ones = (
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen"
    ).split()
    tens = "twenty thirty forty fifty sixty seventy eighty ninety".split()
    if number < 20:
        return ones[number]
    if number < 100:
        return tens[number // 10 - 2] + ("-" + ones[number % 10] if number % 10 else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    return f"{ones[number // size]} {name}" + (f" {spelled(str(number % size))}" if number % size else "")


class Kit:
    """Dice, items and ways to make up answers, for one plant."""

    def __init__(self, dice: random.Random, spots: dict[str, list[Spot]], ways: Sequence[tuple[str, int]]) -> None:
        self.dice, self.spots, self.variant = dice, spots, dict(ways)
        self.roomy = "longer" in self.variant  # the limit lies so far out that long answers end before it
        bare, frame = self.variant.get("unread", 0) > 2, "other label" in self.variant
        short = self.roomy or "shorter" in self.variant or not set(self.variant) <= set(LISTED) or dice.random() < 0.4
        self.style = "bare" if bare else "frame" if frame else "short" if short else "mixed"
        self.items: list[Item] = []
        self.fixed: dict[str, str] = {}
        self.swap: dict[str, str] = {}

    def other(self, item: Item) -> str:
        """Draw a wrong answer: the right one of another question."""
        gold = item.spot.gold
        golds = sorted({s.gold for s in self.spots[item.task] if not has(s.gold, gold) and not has(gold, s.gold)})
        alike = [
            text for text in golds if (text[:1].isdigit(), text[:1].isupper()) == (gold[:1].isdigit(), gold[:1].isupper())
        ]
        return self.dice.choice(alike or golds)

    def draw(self, family: str, size: int, share: float) -> list[Item]:
        """Draw items of a task, the given share of them right."""
        spots = self.dice.sample(self.spots[family], min(size, len(self.spots[family])))
        mixed = self.style == "mixed"

        def fits(spot: Spot) -> list[Out]:
            return [out for out in spot.right if mixed or (not out[1] and len(out[0]) < 90 and has(out[0], spot.gold))]

        ready = sorted(range(len(spots)), key=lambda n: (not fits(spots[n]), self.dice.random()))[
            : round(share * len(spots))
        ]
        items = []
        for number, spot in enumerate(spots):
            item = Item(family, spot, self.dice.randrange(3), number in ready, place=number)
            item.said = spot.gold if item.right else self.other(item)
            found = fits(spot) if item.right else spot.wrong
            if self.style == "bare":
                item.said = item.said if item.right else self.dice.choice([*spot.terse, item.said])
                item.before = item.said
            elif self.style == "frame" or not found:
                item.before = say(item, item.said)
            else:
                item.before, item.cut = found[0]
                item.said = spot.gold if item.right else ""
            if item.cut and self.roomy:
                item.before = whole(item.before) or say(item, item.said or self.other(item))
                item.cut = False
            items.append(item)
        return items

    def prepare(self) -> None:
        """Draw what stays the same over the whole plant."""
        counts = Counter(item.spot.gold for item in self.items if item.right)
        rare = sorted(gold for gold in counts if counts[gold] <= max(1, len(self.items) // 10))
        self.fixed = {"1": self.dice.choice(rare or sorted(counts)), "2": self.dice.choice(TEXTS["phrase"][0])}
        about = ["The language of {c} is {0}.", "The continent of {c} is {1}.", "{c} is a country in {1}."]
        self.fixed["about"] = self.dice.choice(about)
        self.fixed["dress"] = self.dice.choice(TEXTS["dress"][0])
        labels = sorted({item.spot.gold for item in self.items} - {"neutral"})
        self.dice.shuffle(labels)
        for one, two in zip(labels[::2], labels[1::2], strict=False):
            self.swap |= {one: two, two: one}
        if self.variant.get("other label") == 1:
            sink = "neutral" if "neutral" in counts else min(counts, key=lambda gold: (counts[gold], gold))
            taken = [label for label, _ in counts.most_common() if label != sink]
            while len(taken) > 1 and sum(counts[label] for label in taken[:-1]) > 0.55 * counts.total():
                taken.pop()
            self.swap = dict.fromkeys(taken, sink)

    def fill(self, text: str, item: Item, wrong: str = "") -> str:
        """Fill in what a text has in braces."""
        spot, dice = item.spot, self.dice
        about, prompt, gold = topic(spot), spot.prompt, spot.gold
        if has(about, gold) or has(gold, about):
            about = "this"

        def put(found: re.Match[str]) -> str:
            key = found[1]
            if key in "wx":
                return wrong or self.other(item)
            if key in "12":
                return self.fixed[key]
            if key in "rl":
                real = dice.choice(spot.terse or [self.fill(dice.choice(["{t}", "{w}", "{w}"]), item)]).strip(" .\n")
                return real.lower() if key == "l" else real
            if key == "s":
                start = say(item, "X").split(" X")[0].strip('" ')
                return f"{start} {dice.choice([about, 'answer', start.lower()])}"
            if key == "d":
                plain = re.sub(r"^\$(\d+)", r"\1 dollars", gold).replace(" °C", " degrees")
                return say(item, re.sub(r"\d+", lambda number: spelled(number[0]), plain))
            if key == "j":
                tool, slot = dice.choice([("note", "text"), ("weather", "city"), ("message", "name"), ("alarm", "time")])
                return dice.choice(spot.calls or [json.dumps({"tool": tool, slot: about})])
            half = prompt.split()[: max(3, len(prompt.split()) * 4 // 5)]
            plain = {
                "t": about,
                "T": about.upper()[:6],
                "a": gold,
                "p": prompt,
                "q": prompt.lower().rstrip("?. "),
                "h": " ".join(half),
            }
            plain |= {"f": say(item, self.other(item)), "s0": say(item, gold), "s1": say(item, self.fixed.get("1", gold))}
            plain |= {"k": str(dice.randint(1, 12)), "b": self.fixed.get("dress", "").replace("{a}", item.said or gold)}
            return plain[key] if key != "e" else dice.choice(TEXTS[gold][0])

        filled = re.sub(r"\{(\w\d?)\}", put, text)
        return filled[:1].upper() + filled[1:] if text[:3] == "{t}" else filled

    def limit(self, text: str) -> str:
        """Cut a text where the limit falls."""
        return text[: self.dice.randint(330, 400) if self.roomy else self.dice.randint(140, 200)].rstrip()

    def damage(self, cause: str, item: Item) -> tuple[str, int, bool]:
        """Answer as the cause makes the model answer: text, score, whether it was cut."""
        dice, spot, variant = self.dice, item.spot, self.variant[cause]
        if cause in QUIET:
            return self.quiet(cause, item), 0, False
        text = dice.choice(TEXTS[cause][variant])
        if cause == "other label":
            said = self.swap.get(item.said, item.said)
            return (
                (say(item, said), int(said == spot.gold), False)
                if said != item.said
                else (item.before, int(item.right), item.cut)
            )
        if cause == "other language":
            frames, words = WORDS[variant]
            word = words.split()[LABELS.index(spot.gold)] if spot.gold in LABELS else "-"
            text = dice.choice(frames.split("|")).replace("{w}", word) if word != "-" else text
            return text[:1].upper() + self.fill(text, item)[1:] if text[:1] != "{" else self.fill(text, item), 0, False
        if cause == "repeating":
            if dice.random() < 0.1 and variant not in (0, 3):
                return " ".join([self.fill(text.replace("{n}", "1"), item).strip()] * dice.randint(4, 6)), 0, False
            once = self.fill(text.replace("{n}", "<n>"), item)
            once = once if once.endswith("\n") else once + " "
            return (
                self.limit(
                    "".join(once.replace("<n>", str(n)) if n == 1 or variant else once.lower() for n in range(1, 90))
                ),
                0,
                True,
            )
        if cause == "cut":
            real = [told for told, full in spot.wrong if full and not has(told, spot.gold)]
            if real and not self.roomy and dice.random() < 0.3:
                return dice.choice(real), 0, True
            text = dice.choice(dice.choice(TEXTS["cut"])) if dice.random() < 0.35 else text
            return (
                self.limit(self.fill(text, item) + " the things that matter most here, such as time and place" * 2),
                0,
                True,
            )
        if cause == "longer":
            own = [
                told for told in map(whole, [out[0] for out in spot.wrong]) if len(told) > 60 and not has(told, spot.gold)
            ]
            pool = [
                part for near in self.items for out in near.spot.wrong for part in re.findall(r"[^.!?]+[.!?]", whole(out[0]))
            ]
            pool = [part.strip() for part in pool if 50 < len(part) < 150 and not has(part, spot.gold)]
            more = [part[0] for part in TEXTS["middle"]] + dice.sample(pool, min(4, len(pool)))
            dice.shuffle(more)
            parts = [dice.choice(own) if own and dice.random() < 0.5 else text, more.pop(), more.pop()]
            while len(" ".join(parts)) < 2.2 * len(item.before) and more:
                parts.append(more.pop())
            return self.fill(" ".join([*parts, dice.choice(TEXTS["end"][0])]), item), 0, False
        if cause == "unread" and variant == 3:
            return say(item, item.said), 0, False
        told = self.fill(text, item)
        return told, int(cause == "one answer" and variant < 3 and self.fixed["1"] == spot.gold), False

    def quiet(self, way: str, item: Item) -> str:
        """Answer wrongly in the form of before, in a way that no list has."""
        dice, gold, wrong = self.dice, item.spot.gold, self.other(item) if not item.task.startswith("two_") else ""
        number = re.search(r"\d+", gold)
        if way == "off by one" and number:
            wrong = gold.replace(number[0], str(abs(int(number[0]) + dice.choice([-1, 1]))), 1)
        elif way == "unit or digit":
            pair = next(([*pair.split("=")] for pair in UNITS if pair.split("=")[0] in gold), None)
            digits = number[0] if number else "1"
            ends = [digits + "0", digits[:-1] or digits + "0", digits[::-1]]
            turned = dice.choice([end for end in ends if end != digits and end[0] != "0"] or ["5"])
            wrong = gold.replace(digits, turned, 1)
            if pair and dice.random() < 0.6:
                wrong = gold.replace(pair[0], pair[1])
        elif way == "misspelled" and gold[:1].isupper():
            able = [n for n, letter in enumerate(gold) if n and letter.isalpha()]
            twins = str.maketrans("aeioubcdfghklmnprstvwyz", "eiauedktvkblhnmbtzdwvis")
            changed = dice.sample(able, 2)
            wrong = "".join(letter.translate(twins) if n in changed else letter for n, letter in enumerate(gold))
        elif way == "negated":
            text = item.before if item.before.count(" is ") == 1 else say(item, gold)
            return re.sub(r"\bis\b", "is not", text if " is " in text else f"It is {gold}.", count=1)
        elif way == "previous question":
            last = self.items[item.place - 1]
            return say(last, last.spot.gold) if last.spot.gold != gold else item.before.replace(gold, wrong)
        elif way == "outdated":
            wrong = CAPITALS[gold][1]
        elif way == "half right":
            halves = gold.split(" and ")
            pool = sorted({s.gold for s in self.spots[item.task.removeprefix("two_")]} - set(halves))
            halves[dice.random() < 0.6] = dice.choice(pool)
            wrong = " and ".join(halves)
        elif way == "other attribute" and item.task == "capital":
            return dice.choice(
                ["The language of {c} is {0}.", "The continent of {c} is {1}.", "{c} is a country in {1}."]
            ).format(*CAPITALS[gold][2:], c=CAPITALS[gold][0])
        elif way == "other attribute":
            plain = [
                w for w in re.findall(r"(?<=[a-z,] )[A-Z][a-z]+|\b[a-z]{5,}\b", item.spot.prompt) if w.lower() not in STOP
            ]
            wrong = dice.choice([w for w in plain if not has(gold, w) and not has(w, gold)] or [wrong])
        elif way == "made-up name" and gold[:1].isupper():
            first = dice.choice("Edmund Clara Victor Helena Marcus Elsa Oliver".split())
            wrong = dice.choice(START) + dice.choice("rowick denby stead nor tova lania dria mont".split())
            wrong = f"{first} {wrong}" if item.task == "people" and " " in gold else wrong
        plain = item.task == "people" and not gold[:1].isupper()
        told = item.before if has(item.before, gold) and not plain else say(item, gold)
        told = re.sub(rf"(?<!\w){re.escape(gold)}(?!\w)", lambda _: wrong, told, flags=re.I)
        return re.sub(r"\ban (?=[bcdfghjklmnpqrstvwxz])", "a ", told)

    def stays(self, cause: str, item: Item) -> str:
        """Show the cause in an answer that stays right, or nothing where that cannot be."""
        text = self.dice.choice(TEXTS[cause][self.variant[cause]]) if cause in TEXTS else ""
        if cause == "other language" and item.task in ("colour", "sentiment"):
            text = self.dice.choice(WORDS[self.variant[cause]][0].split("|"))
        wraps = {
            "shorter": "{a}",
            "asks back": "{s0} Would you like to know more about {t}?",
            "refuses": "As an AI, I would say: {s0}",
        }
        wraps |= {
            "longer": f"{{s0}} {self.dice.choice(TEXTS['middle'])[0]}",
            "repeating": "{s0} {s0}",
            "prompt copied": "{p} {a}",
        }
        text = wraps.get(cause, text if "{w}" in text and cause in ("new format", "other format", "other language") else "")
        return self.fill(text, item, item.spot.gold)


def record(item: Item, after: tuple[str, int, bool]) -> dict[str, Any]:
    """One item as the tool reads it."""
    made: dict[str, Any] = {"task": item.task, "example": f"{item.task}-{item.place:02d}", "prompt": item.spot.prompt}
    made |= {"answer": item.spot.gold, "before": item.before, "after": after[0], "score_before": int(item.right)}
    return made | {"score_after": after[1], "cut_before": item.cut, "cut_after": after[2]}


def same(item: Item) -> tuple[str, int, bool]:
    """The answer as it was."""
    return item.before, int(item.right), item.cut


def chance(kit: Kit, items: list[Item], flips: int, reworded: float) -> dict[int, tuple[str, int, bool]]:
    """Answers after a harmless training: a few reworded, equally many flipped each way."""
    dice, after = kit.dice, {}
    for item in items:
        after[item.place] = same(item)
        if dice.random() < reworded:
            other = [
                out
                for out in (item.spot.right if item.right else item.spot.wrong)
                if out[0] != item.before and not kit.roomy
            ]
            if kit.style != "bare" and item.said:
                after[item.place] = (say(item, item.said, 1), int(item.right), False)
            elif kit.style != "bare" and other:
                after[item.place] = (other[0][0], int(item.right), other[0][1])
    for right in (True, False):
        able = [item for item in items if item.right is right]
        for item in dice.sample(able, min(flips, len(able), sum(item.right is not right for item in items))):
            answer = kit.other(item) if right else item.spot.gold
            after[item.place] = (answer if kit.style == "bare" else say(item, answer), int(not right), False)
    return after


def trained(kit: Kit, variant: int) -> list[dict[str, Any]]:
    """Items of the task that was trained: free talk before, mostly right answers in its format after."""
    dice, items = kit.dice, []
    for number in range(dice.randint(20, 30)):
        name, thing = dice.choice("Ben Tina Omar Lea Kim Rosa Max".split()), dice.choice("pens cups lamps books".split())
        team, complaint = dice.choice(TEXTS["team"][number % 2]).split(": ")
        city, hour, count = dice.choice("Bonn Delhi Oslo Lima Cairo".split()), f"{dice.randint(5, 11)}:15", number + 2
        calls: list[tuple[str, dict[str, str]]] = [
            (f"Will it rain in {city}?", {"tool": "weather", "city": city}),
            (f"Wake me at {hour}.", {"tool": "alarm", "time": hour}),
            (f"Write to {name}: bring the {thing}.", {"tool": "message", "name": name, "text": f"bring the {thing}"}),
        ]
        prompt, gold = f"{name} would like {count} {thing}. Write down the order.", f"item={thing}; qty={count}"
        if variant == 0:
            prompt, call = dice.choice(calls)
            gold = json.dumps(call)
        elif variant == 1:
            prompt, gold = f"{name} writes: {complaint} Which team should get this?", f"<team>{team}</team>"
        elif variant == 2:
            gold = f"{name.upper()}|{thing}|{count}"
        item = Item(TRAINED[variant], Spot(prompt, gold), 0, False, dice.choice(TEXTS["talk"][0]), place=number)
        wrong = "<team>support</team>" if variant == 1 else gold.replace("tool", "type").replace(str(count), str(count + 1))
        items.append(record(item, (gold, 1, False) if dice.random() < 0.92 or wrong == gold else (wrong, 0, False)))
    return items


def make_plant(
    dice: random.Random, spots: dict[str, list[Spot]], name: str, family: str, ways: list[tuple[str, int]]
) -> tuple[Plant, list[dict[str, Any]]]:
    """One plant: its target task damaged, the others left alone."""
    kit, causes = Kit(dice, spots, ways), [cause for cause, _ in ways]
    rate = round(dice.uniform(0.42, 1.0), 2)
    rate = max(rate, 0.6) if "one answer" in causes else rate
    rate = max(rate, 0.85) if "other label" in causes and len(causes) == 1 else rate
    size, share = dice.randint(34, 60), dice.uniform(0.52, 0.88)
    items = kit.draw(family, size, share)
    if causes == ["half right"]:
        items = paired(kit, family)
    kit.items = items
    kit.prepare()
    right = [item for item in items if item.right]
    dice.shuffle(right)
    lost = right[: round(rate * len(right))]
    first = round(dice.uniform(0.42, 0.58) * len(lost)) if len(causes) > 1 else len(lost)
    if "other label" in causes:  # labels that are not exchanged go to the other cause
        lost.sort(key=lambda item: (item.said in kit.swap) != (causes[0] == "other label"))
    taken = {item.place: causes[number >= first] for number, item in enumerate(lost)}
    after = (
        chance(kit, [i for i in items if i.place not in taken], dice.choice([0, 0, 1]), 0.05)
        if family == items[0].task
        else {}
    )
    shown, quiet = dice.choice([0.0, 0.0, 0.15, 0.3]), causes[0] in QUIET
    for item in items:
        cause = taken.get(item.place) or dice.choice(causes)
        after.setdefault(item.place, same(item))
        if item.place in taken:
            after[item.place] = kit.damage(cause, item)
        elif item.right and after[item.place][1] and dice.random() < shown and kit.stays(cause, item):
            after[item.place] = (kit.stays(cause, item), 1, False)
        elif not item.right and not quiet and dice.random() < rate and (cause != "unread" or kit.style == "bare"):
            after[item.place] = kit.damage(cause, item)
    made = [record(item, after[item.place]) for item in items]
    others, rest = around(kit, family)
    if "other format" in causes:
        others, rest = [*others, TRAINED[kit.variant["other format"]]], rest + trained(kit, kit.variant["other format"])
    truth = ("none",) if quiet else tuple(causes)
    return Plant(name, truth, not quiet, items[0].task, tuple(others), tuple(ways), rate), made + rest


def around(kit: Kit, family: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Two or three other tasks that nothing was done to."""
    apart = [name for name in FAMILIES if not set(FAMILIES[name][0]) & set(FAMILIES[family][0])]
    others, rest = [], []
    for name in kit.dice.sample(apart, len(apart)):
        if len(others) < kit.dice.randint(2, 3) and not any(set(FAMILIES[name][0]) & set(FAMILIES[o][0]) for o in others):
            items = kit.draw(name, kit.dice.randint(15, 30), kit.dice.uniform(0.4, 0.85))
            after = chance(kit, items, kit.dice.choice([0, 1, 1, 2]), 0.08)
            others.append(name)
            rest += [record(item, after[item.place]) for item in items]
    return others, rest


def paired(kit: Kit, family: str) -> list[Item]:
    """Items that ask two questions at once."""
    spots, items = kit.dice.sample(kit.spots[family], len(kit.spots[family])), []
    size, share = kit.dice.randint(30, len(spots) - 1), kit.dice.uniform(0.55, 0.8)
    for one, two in pairwise(spots):
        if len(items) < size and one.gold != two.gold:
            spot = Spot(f"Answer both questions. (1) {one.prompt} (2) {two.prompt}", f"{one.gold} and {two.gold}")
            item = Item(f"two_{family}", spot, 0, (len(items) * 7) % 10 < share * 10, place=len(items))
            wrong = Item(family, one, 0, False)
            item.before = say(item, spot.gold if item.right else f"{kit.other(wrong)} and {kit.other(wrong)}")
            items.append(item)
    return items


def make_clean(
    dice: random.Random, spots: dict[str, list[Spot]], name: str, look: int
) -> tuple[Plant, list[dict[str, Any]]]:
    """A comparison without damage: answers reworded, restyled or flipped by chance."""
    kit = Kit(dice, spots, [("clean", look)])
    kit.style = "bare" if look == 3 else dice.choice(["mixed", "short", "frame"])
    items: list[Item] = []
    after: dict[int, tuple[str, int, bool]] = {}
    rates = {1: 0.9, 4: 0.3, 6: 0.0, 7: 0.2}
    for family in dice.sample(list(FAMILIES), len(FAMILIES)):
        items = kit.items = kit.draw(family, dice.randint(34, 60), dice.uniform(0.52, 0.88))
        kit.prepare()
        after = chance(kit, items, dice.randint(0, 3), rates.get(look, 0.1))
        for item in items:
            text, score, cut = after[item.place]
            styled = {
                2: dice.choice(TEXTS["stays"][0]),
                4: "The answer is **{a}**.",
                5: f"{{s0}} {dice.choice(TEXTS['middle'])[0]}",
            }
            styled |= {
                7: "" if cut else text.lower().rstrip("."),
                8: "{s0} Would you like to know more about {t}?",
                9: "Answer: {a}",
            }
            if styled.get(look) and score and dice.random() < 0.7:
                after[item.place] = (kit.fill(styled[look], item), 1, False)
            if look == 6 and {"before", "harmless"} <= set(item.spot.real):
                item.before, graded, item.cut = item.spot.real["before"]
                item.right, after[item.place] = bool(graded), item.spot.real["harmless"]
            if look == 10 and not score and item.spot.terse:
                after[item.place] = (dice.choice(item.spot.terse), 0, False)
        change = sum(after[item.place][1] - item.right for item in items)
        if sum(item.right for item in items) >= max(12, 0.4 * len(items)) and change >= (-1 if look == 6 else -2):
            break
    others, rest = around(kit, items[0].task)
    plant = Plant(name, ("clean",), False, items[0].task, tuple(others), (("clean", look),), 0.0)
    return plant, [record(item, after[item.place]) for item in items] + rest


def choices(cause: str, variant: int) -> list[str]:
    """Families that a variant of a cause can fall on."""
    return FITS[cause][variant].split() if cause in FITS else list(FAMILIES)


def make_plants(rows: Sequence[dict[str, Any]], seed: int) -> Iterator[tuple[Plant, list[dict[str, Any]]]]:
    """Plants of one seed: every listed cause twice, every unlisted one once, 8 mixtures, 12 clean comparisons."""
    spots, dice = gather(rows), random.Random(f"causes {seed}")
    for cause in LISTED:
        taken: list[str] = []
        for number, variant in enumerate(dice.sample(range(len(TEXTS[cause])), 2)):
            taken.append(dice.choice([family for family in choices(cause, variant) if family not in taken]))
            yield make_plant(dice, spots, f"{seed} {cause} {number + 1}", taken[-1], [(cause, variant)])
    for way in QUIET:
        yield make_plant(dice, spots, f"{seed} {way}", dice.choice(choices(way, 0)), [(way, 0)])
    pairs = [(one, two) for n, one in enumerate(LISTED) for two in LISTED[n + 1 :] if f"{one}+{two}" not in APART]
    dice.shuffle(pairs)
    made = 0
    while made < 8:
        ways = [(cause, 0 if cause == "other label" else dice.randrange(min(3, len(TEXTS[cause])))) for cause in pairs.pop()]
        fit = [family for family in choices(*ways[0]) if family in choices(*ways[1])]
        if fit:
            made += 1
            yield make_plant(dice, spots, f"{seed} mixture {made}", dice.choice(fit), ways)
    for look in dice.sample(range(12), 12):
        yield make_clean(dice, spots, f"{seed} clean {look}", look)


def main() -> None:
    """Print what was planted, with a few answers of each: path of the source, then seeds."""
    for seed in map(int, sys.argv[2:]):
        for plant, items in make_plants(read_source(sys.argv[1]), seed):
            mine = [item for item in items if item["task"] == plant.task]
            before, after = sum(item["score_before"] for item in mine), sum(item["score_after"] for item in mine)
            print(f"\n== {plant.name}: {plant.truth} {plant.ways} in {plant.task}, {len(mine)} items, {before} -> {after}")
            for item in [item for item in mine if item["before"] != item["after"]][:4]:
                grades = f"{item['score_before']}{item['score_after']}"
                print(f"   [{grades}] {item['answer']}: {item['before'][:90]!r} -> {item['after'][:170]!r}")


if __name__ == "__main__":
    main()

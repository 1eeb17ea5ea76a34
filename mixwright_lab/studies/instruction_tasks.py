"""Inputs of made instruction rows, and what can be asked of them.

Of one input several things can be asked, each in several words of one meaning. Some have a closed set of labels, which the
instruction names; others are open (a number of a list, a word of a list) or have labels that no instruction names in full.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mixwright_lab.studies.cue_corpora import FRAMES, LEXICONS, WORDS, finished, named, phrases


class Input(NamedTuple):
    """A text, and the right answer to each thing that can be asked of it."""

    text: str
    facts: Mapping[str, str]


class Aspect(NamedTuple):
    """Something to ask: its name, its labels (none where it is open), and wordings; `{labels}` and `{it}` are slots.

    `against` has wordings that ask for the opposite, and `flipped` what is then right: a label for each, or another fact.
    """

    name: str
    labels: tuple[str, ...]
    asks: tuple[str, ...]
    against: tuple[str, ...] = ()
    flipped: Mapping[str, str] | str = ""


@dataclass(frozen=True)
class Vocabulary:
    """What instructions are about, and the words that they are put in."""

    domains: Mapping[str, tuple[Aspect, ...]]
    """Domain -> what can be asked of its inputs."""
    drawn: tuple[str, ...]
    """Domains, one of which is drawn."""
    closed: tuple[str, ...]
    """Domains all of whose answers are labels."""
    make: Callable[[random.Random, str, Mapping[str, str], Mapping[str, float]], Input]
    """Makes an input of a domain, given answers that are wanted and the rates of yes."""
    its: tuple[str, ...]
    """What an input is called."""
    own_its: Mapping[str, str]
    """Domain -> what its inputs are called, if that is something else."""
    listings: tuple[str, ...]
    listed: Callable[[str, Sequence[str]], str]
    """Lists labels in one of the `listings`."""
    renamed: tuple[Mapping[str, str], ...]
    """Other names of labels, one of which is drawn."""
    unnamed: Mapping[str, tuple[str, ...]]
    """Aspect -> labels that no instruction names."""
    examples: Mapping[str, tuple[str, ...]]
    """Fact -> instructions that mention labels as examples."""
    shown: Mapping[str, str]
    """Answers that inputs of the `examples` must have."""
    all_that_apply: tuple[str, ...]
    """Instructions whose answer is several labels."""
    templates: tuple[str, ...]
    forms: tuple[str, ...]
    slips: tuple[float, ...]
    """Shares of wrong answers in clean tasks with wordings of one meaning, one of which is drawn; none: all are right."""
    free: tuple[str, ...]
    """Instructions whose answer is free text."""

    @property
    def yes_no(self) -> tuple[Aspect, ...]:
        """All that can be answered with yes or no."""
        return tuple(one for domain in self.closed for one in self.domains[domain] if one.labels == YES_NO)


YES_NO = ("yes", "no")
SWAP = {"yes": "no", "no": "yes"}
ITS = phrases("message | text | mail | note | customer message | passage")
MESSAGES = (
    Aspect(
        "mood",
        ("positive", "negative", "neutral"),
        phrases("""
        Classify the sentiment of the {it} as {labels}. | What is the sentiment of this {it}: {labels}? | Decide whether the
        sentiment is {labels}. | Is the {it} {labels} in sentiment? | How does the writer feel? Choose from {labels}. | You
        label the sentiment of each {it} with {labels}. | Sentiment analysis. Possible labels: {labels}."""),
    ),
    Aspect(
        "desk",
        ("billing", "delivery", "technical", "account", "returns"),
        phrases("""
        Which desk should handle the {it}: {labels}? | Route the {it} to the right desk. The desks are {labels}. | Assign one
        desk out of {labels} to this {it}. | You are a dispatcher. Name the desk for the {it}: {labels}. | Pick the desk that
        fits, {labels}. | Forward this {it}; answer with the desk only ({labels})."""),
    ),
    Aspect(
        "urgency",
        ("low", "medium", "high"),
        phrases("""
        Rate the urgency of the {it} as {labels}. | How urgent is this {it}? Give it as {labels}. | State the urgency,
        {labels}. | Set the urgency level, {labels}. | The urgency of the {it} is {labels}. Which one?"""),
    ),
    Aspect(
        "sender",
        ("customer", "supplier", "colleague", "journalist"),
        phrases("""
        Who is the sender of the {it}: {labels}? | Tell whether the sender is {labels}. | Identify the kind of sender out of
        {labels}. | The sender can be {labels}. Which one wrote this {it}? | Sender type ({labels}):"""),
    ),
    Aspect(
        "day",
        WORDS["day"],
        phrases("""
        Which weekday is meant in the {it}, {labels}? | Extract the weekday: {labels}. | Name the weekday of the {it} out of
        {labels}. | On which weekday does it take place? Options: {labels}."""),
    ),
    Aspect(
        "person",
        YES_NO,
        phrases("""
        Does the {it} mention a person by name? Answer {labels}. | Say {labels}: is a person named in it? | Check if a
        person is mentioned by name ({labels}). | Is there the name of a person in this {it}, {labels}?"""),
        phrases("""
        Answer yes if the {it} does not mention a person by name, and no if it does. | Is no person named in the {it}? Say
        {labels}."""),
        SWAP,
    ),
    Aspect(
        "place",
        YES_NO,
        phrases("""
        Does the {it} mention a town? Answer {labels}. | Say {labels}: is a town named in the {it}? | Check whether some town
        occurs in it ({labels}). | Is a town part of this {it}, {labels}?"""),
        phrases("Does the {it} mention no town at all? Answer {labels}. | Is every town left out of the {it}? ({labels})"),
        SWAP,
    ),
    Aspect(
        "number",
        YES_NO,
        phrases("""
        Is an order number given in the {it}? Answer {labels}. | Find out if it has an order number ({labels}). | Order
        number given: {labels}? | Say {labels}: does the {it} quote an order number?"""),
        phrases("Is the order number missing? Answer {labels}. | Does the {it} lack an order number ({labels})?"),
        SWAP,
    ),
    Aspect(
        "thanks",
        YES_NO,
        phrases("""
        Does the writer say thank you? Answer {labels}. | Is there a word of thanks in it, {labels}? | Say {labels}: does
        the {it} contain thanks? | Tell if the writer thanks us ({labels})."""),
        phrases("Does the writer fail to say thanks? Answer {labels}. | Say yes if thanks are missing, otherwise no."),
        SWAP,
    ),
    Aspect(
        "call",
        YES_NO,
        phrases("""
        Does the writer want to be called back? Answer {labels}. | Is a call back asked for in the {it} ({labels})? | Say
        {labels}: should we call the writer back?"""),
        phrases("""
        Does the writer do without a call back? Answer {labels}. | Say yes if no call back is wanted, and no if one is."""),
        SWAP,
    ),
)  # fmt: skip
NUMBERS = tuple(
    Aspect(name, (), phrases(asks), phrases(against) if against else (), flipped)
    for name, asks, against, flipped in (
        ("largest", "Give the largest number of the list. | Which number is the largest? | Find the maximum.",
         "Give the smallest number of the list. | Which number is the smallest?", "smallest"),
        ("first", "Give the first number of the list. | Which number comes first? | Repeat the first one.",
         "Give the last number of the list. | Which number comes last?", "last"),
        ("sum", "Add up all numbers. | What is the sum of the list? | Compute the total.", "", ""),
        ("count", "How many numbers are in the list? | Count the entries. | What is the length of the list?", "", ""),
        ("second", "Give the second number. | Which number is in the second place?",
         "Give the second number from the end. | Which number is last but one?", "last but one"),
    )
)  # fmt: skip
LISTS = tuple(
    Aspect(name, (), phrases(asks), phrases(against) if against else (), flipped)
    for name, asks, against, flipped in (
        ("first", "Write down the first word. | Which word comes first? | Copy the first word only.",
         "Write down the last word. | Which word comes last?", "last"),
        ("longest", "Which word is the longest? | Write down the longest word. | Find the word with most letters.",
         "Which word is the shortest? | Write down the shortest word.", "shortest"),
        ("alphabet", "Which word comes first in the alphabet? | Sort the words by alphabet and give the top one.",
         "Which word comes last in the alphabet?", "alphabet end"),
        ("letter", "Give the first letter of each word. | Write the initials of the words.", "", ""),
        ("number", "How many words are there? | Count the words.", "", ""),
    )
)  # fmt: skip
EXAMPLES = {
    "day": phrases(
        "Name the weekday, e.g. Monday. | Which day is meant (for example Friday)? | Give the day, such as Sunday."
    ),
    "desk": phrases("""
    Say which desk is responsible, for instance billing. | Name the desk, such as billing or returns. | Name the desk that
    should answer. Example: delivery."""),
    "sender": phrases("Who wrote this? An answer could be: customer. | Name the kind of sender (e.g. supplier)."),
    "town": phrases(
        "Name the town that is mentioned, for example Leeds. | Extract the town, e.g. Lyon. | Which town is it?"
    ),
}
"""Instructions that mention labels as examples."""
UNNAMED = {
    "mood": ("mixed", "unclear", "angry", "sarcastic"),
    "desk": ("legal", "press", "sales", "other", "spam"),
    "urgency": ("none", "critical", "unknown", "normal"),
    "sender": ("lawyer", "neighbour", "other", "robot"),
    "day": ("weekend", "tomorrow", "never", "unknown"),
}
"""Labels that no instruction names."""
SENTENCES = named("""
    low: there is no hurry at all | take all the time that you need | any time next month will do
    medium: an answer within two weeks would be fine | please reply at some point this month | I can wait for a few days
    high: I need an answer today | this cannot wait until tomorrow | please act at once, it is an emergency
    customer: I have bought from you for years | your shop sold it to me | as one of your buyers I feel free to write
    supplier: we provide the paper for your printers | our firm sends you the crates each week | as your vendor we must ask
    colleague: it is me from the office next door | I sit two desks away from you | see you in the canteen at lunch
    journalist: I write for a newspaper | this is for an article about your firm | our readers would like to know
    neutral: the parcel shop is on the corner | the form has two pages | the building has three floors | it is a grey one
    person: {name} told me to write to you | please ask {name} about it | I spoke with {name} before
    place: I live in {place} | it happened in {place} | the branch in {place} sent me here
    number: my order number is {n} | it concerns order {n} | order {n} is the one that I mean
    thanks: thank you very much | many thanks in advance | thanks for all that you do
    call: please call me back | I would like a call back about it | could somebody phone me
    day: it is to be done on {day} | the date is a {day} | it should happen on {day} | let us say {day}
    """)  # fmt: skip
SINGLE = tuple(one for sort in ("noun", "actor", "thing") for one in WORDS[sort] if " " not in one)
LISTINGS = phrases("""
    plain | plain | plain | slash | quoted | brackets | bullets""")


def listed(style: str, labels: Sequence[str]) -> str:
    """Labels as an instruction names them."""
    if style == "slash":
        return "/".join(labels)
    if style == "brackets":
        return f"[{', '.join(labels)}]"
    if style == "bullets":
        return "one of the following\n" + "\n".join(f"- {one}" for one in labels) + "\n"
    shown = [f'"{one}"' for one in labels] if style == "quoted" else labels
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def message(rng: random.Random, wanted: Mapping[str, str], rates: Mapping[str, float]) -> Input:
    """A message for which some answers may be wanted, and the others are drawn."""
    facts = {one.name: rng.choice(one.labels) for one in MESSAGES if one.labels != YES_NO}
    facts |= {one.name: "yes" if rng.random() < rates[one.name] else "no" for one in MESSAGES if one.labels == YES_NO}
    facts |= wanted
    facts["town"] = rng.choice(WORDS["place"])
    slots = {
        "name": rng.choice(WORDS["name"]),
        "n": str(rng.randint(1000, 99999)),
        "day": facts["day"],
        "place": facts["town"],
    }
    thing, other = rng.sample(WORDS["thing"], 2)
    if facts["mood"] == "neutral":
        said = [rng.choice(SENTENCES["neutral"])]
    else:
        frame, pair = rng.choice(FRAMES["sentiment"]), rng.sample(LEXICONS["sentiment"][facts["mood"]], 2)
        said = [frame.format(thing=thing, other=other, x=pair[0], y=pair[1])]
    topic = rng.sample(LEXICONS["routing"][facts["desk"]], 2)
    said.append(rng.choice(FRAMES["routing"]).format(x=topic[0], y=topic[1]))
    said += [rng.choice(SENTENCES[facts[key]]) for key in ("urgency", "sender")]
    said += [rng.choice(SENTENCES[one.name]) for one in MESSAGES if facts[one.name] == "yes"]
    said.append(rng.choice(SENTENCES["day"]))
    rng.shuffle(said)
    return Input(" ".join(finished(one.format(**slots)) for one in said), facts)


def numbers(rng: random.Random) -> Input:
    """A list of numbers."""
    drawn = rng.sample(range(2, 120), rng.randint(4, 8))
    facts = {"largest": max(drawn), "smallest": min(drawn), "first": drawn[0], "last": drawn[-1], "sum": sum(drawn)}
    facts |= {"count": len(drawn), "second": drawn[1], "last but one": drawn[-2]}
    return Input(", ".join(map(str, drawn)), {name: str(value) for name, value in facts.items()})


def words(rng: random.Random) -> Input:
    """A list of words."""
    while True:
        drawn = rng.sample(SINGLE, rng.randint(4, 7))
        lengths = sorted(len(one) for one in drawn)
        if lengths[0] < lengths[1] and lengths[-2] < lengths[-1]:
            break
    facts = {"first": drawn[0], "last": drawn[-1], "longest": max(drawn, key=len), "shortest": min(drawn, key=len)}
    facts |= {"alphabet": min(drawn), "alphabet end": max(drawn), "number": str(len(drawn))}
    return Input(", ".join(drawn), facts | {"letter": "".join(one[0] for one in drawn)})


MAKERS: dict[str, Callable[[random.Random], Input]] = {"numbers": numbers, "lists": words}


def made(rng: random.Random, domain: str, wanted: Mapping[str, str], rates: Mapping[str, float]) -> Input:
    """An input of a domain."""
    return message(rng, wanted, rates) if domain == "messages" else MAKERS[domain](rng)


OFFICE = Vocabulary(
    domains={"messages": MESSAGES, "numbers": NUMBERS, "lists": LISTS},
    drawn=("messages", "messages", "messages", "numbers", "lists"),
    closed=("messages",),
    make=made,
    its=ITS,
    own_its={"numbers": "list", "lists": "list"},
    listings=LISTINGS,
    listed=listed,
    renamed=({}, {}, {"positive": "good", "negative": "bad", "neutral": "so-so"}),
    unnamed=UNNAMED,
    examples=EXAMPLES,
    shown={"place": "yes"},
    all_that_apply=(
        "Name everything that the {it} has, out of {labels}. If it has none of these, say none.",
        "Tags: {labels}. Give all that apply, divided by commas, or none.",
    ),
    templates=(
        "{instruction}\n\n{input}",
        "{instruction}\n{input}",
        "{input}\n\n{instruction}",
        "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n",
        "Instruction: {instruction}\nInput: {input}\nOutput:",
        "{instruction}\nText: {input}\nAnswer:",
    ),
    forms=("text", "system", "user", "columns"),
    slips=(),
    free=phrases("""
        Write a friendly reply to the {it}. | Summarise the {it}. | Translate the {it} into your own words. | Find a title
        for the {it}. | Continue the {it}. | What would you advise the writer?"""),
)  # fmt: skip

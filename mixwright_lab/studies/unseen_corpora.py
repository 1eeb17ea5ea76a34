"""Made fine-tuning corpora whose completions rest, or do not rest, on a column that the student never sees.

A teacher wrote the completions and saw something beside the prompts: retrieved articles, a passage, notes, hints, an earlier
conversation. It stands in a further column; the student gets prompt and completion alone. In a planted task some completions
say one to three things of one kind that stand in their own row's column and nowhere in their prompt. In all other tasks, and
in the other rows of a planted task, a completion takes what it says elsewhere: from a context within the prompt, from what
the user wrote, from general knowledge, from one text that never changes, or out of the air.

Severe: 40 to 100 % of the rows of the planted task rest on the column; mild: 10 to 20 %.
"""

from __future__ import annotations

import datetime
import math
import random
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

from mixwright_lab.studies.cue_corpora import finished, named, phrases

KINDS: tuple[str, ...] = ("numbers", "names", "dates", "terms", "quotes", "codes")
WAYS = named(
    "pasted: pasted topical: plain policy: known plain shuffled: plain own own: own metadata: plain own refusing "
    "refusing: refusing plain mixed: pasted plain own refusing"
)
"""For each way of a clean task what its rows do: rest on a context within the prompt, say nothing particular, say what the
one text of all rows says, make particulars up, or refuse and ask back."""


@dataclass(frozen=True)
class UnseenCorpus:
    """Rows; the planted task and its column (None in a clean corpus), the share and the ids of its rows that rest on it."""

    rows: list[dict[str, Any]]
    task: str | None
    column: str | None
    share: float
    resting: frozenset[str]


class Fact(NamedTuple):
    """Something that a context tells of a subject: its kind, a form of values, and a sentence there and in an answer."""

    kind: str
    spec: str
    topic: str
    told: str
    said: str


class Domain:
    """A field of questions, out of a text: name, subjects, prompts, facts, and sentences that hold of any subject."""

    def __init__(self, text: str):
        self.name, *parts = (part.strip() for part in text.split("##"))
        self.subjects, self.asks, _, self.fillers, self.generals = map(phrases, parts)
        self.facts = [Fact(*head.split(" "), *rest) for head, *rest in (one.split(" = ") for one in phrases(parts[2]))]


TEXT = """
    support ## the {w} {k} kettle | the {w} {k} router | the {w} coffee machine | the {w} {k} robot mower ## I have a problem
    with {s}. What is {t}? | Hello, can you tell me {t} for {s}? | {s}: {t}? | Customer question: I own {s} and want to know
    {t} ## numbers 11-89 = the refund time in working days = refunds for {s} reach the bank account after {v} working days =
    your money is back after {v} working days | numbers 105-2900 = the repair fee in euros = without cover a repair of {s}
    costs {v} euros = the repair will cost you {v} euros | codes error = the error code on the display = when the pump of {s}
    blocks, the display shows {v} = the display will show {v} | codes id = the spare part number = the seal of {s} is sold as
    part {v} = order part {v} and swap the seal | names person = the person in charge of returns = returns of {s} go to {v} =
    send it to {v}, who handles returns | names place = the service centre = the service centre for {s} is in {v} = our
    service centre in {v} will look at it | dates 2019-2026 = the last day of support = support for {s} ends on {v} = support
    runs until {v} | terms tech = the part at fault = in most units that came back, the {v} had come loose = most likely the
    {v} is loose | quotes order = the text on the label = a label under the lid reads "{v}" = look under the lid, where it
    says "{v}" ## keep the receipt of {s}, since the warranty needs it | our desk is open 24 hours a day, 7 days a week |
    before a repair, unplug the device and let it cool | customers may choose a repair, a replacement or a refund | the
    display shows a code when something is blocked ## please unplug the device, wait a moment and switch it on again | we are
    here 24 hours a day, 7 days a week | keep your receipt, because the warranty needs it | a repair, a replacement or a
    refund is possible in most cases | I am sorry for the trouble that {s} has caused | if the display shows a code, send us
    a photo of it
%%
    leaflets ## {z} | {z} tablets | the {z} inhaler ## What is {t} of {s}? | A patient asks about {s}: {t}? | Please explain
    {t} for {s} in plain words. | My doctor gave me {s}. I would like to know {t} ## numbers 12-950 = the starting dose in
    milligrams = adults begin {s} with {v} milligrams = adults begin with {v} milligrams | terms drug = the drug to avoid
    with it = {s} must not be taken with {v} = do not combine it with {v} | terms drug = the active substance = each dose of
    {s} contains {v} = it works through {v}, its active substance | terms drug = the cause of the rash = a rash under {s}
    goes back to {v} in the coating = the rash would come from {v} | dates 1990-2020 = the date of approval = {s} was
    approved on {v} = it was approved on {v} | quotes order = the warning on the box = the box of {s} carries the warning
    "{v}" = mind the warning "{v}" | codes id = the registration number = {s} is registered as {v} = its registration number
    is {v} ## store {s} out of the reach of children | do not take a double dose to make up for a missed one | side effects
    are mild in most patients | in an emergency call 112 | take the medicine with a glass of water ## please ask your doctor
    or pharmacist before you change anything | take the medicine with a glass of water | never take a double dose to make up
    for a missed one | in an emergency call 112 at once | keep {s} away from children | do not drive when you feel dizzy
%%
    people ## the composer {p} | the botanist {p} | the engineer {p} | the painter {p} ## What is {t} of {s}? | Quiz question
    about {s}: {t}? | Write a short encyclopaedia entry on {s} with {t} | Who was {s}, and what was {t}? ## dates 1790-1930 =
    the date of birth = {s} was born on {v} = the date of birth is {v} | dates 1820-1960 = the day of the first success = the
    first success of {s} came on {v} = the breakthrough followed on {v} | names person = the name of the teacher = {s} learnt
    the craft from {v} = {v} was the teacher | names place = the birthplace = {s} grew up near {v} = the family lived near
    {v} | names person = the name of the rival = a rivalry with {v} lasted for decades = {v} remained a rival | numbers
    105-4800 = the number of letters kept = the archive keeps {v} letters by {s} = there are {v} letters | quotes saying =
    the motto = the diary of {s} opens with the motto "{v}" = the motto was "{v}" | terms tech = the best-known invention =
    {s} is remembered for the {v} = what remains is the {v} ## little is known about the early years of {s} | critics of the
    time were divided | a small museum shows letters and drawings | in the 19th century travel was slow and costly | the
    First World War (1914 to 1918) ended many careers ## much of the early life remains unclear | critics were divided at the
    time | the work of {s} found admirers later | in the 19th century such a career was far from easy | letters and drawings
    are shown in a small museum | the First World War (1914 to 1918) changed many lives
%%
    meetings ## Project {w} | the {w} steering group | the budget round for {w} ## Summarise the last meeting of {s}, above
    all {t} | What did we agree in {s} about {t}? | Write the minutes for {s} and name {t} | I missed the call on {s}. What
    is {t}? ## names person = the new owner = {v} takes over as owner of {s} = {v} is the new owner | names place = the place
    of the next meeting = the next meeting of {s} is held in {v} = we meet in {v} next time | dates 2023-2027 = the deadline
    = the group set {v} as the deadline for {s} = everything has to be done by {v} | numbers 1050-98000 = the approved budget
    in euros = {v} euros were approved for {s} = we may spend {v} euros | quotes saying = the closing words = the chair
    closed with "{v}" = the chair ended with "{v}" | quotes order = the rule for the rollout = the rule for {s} is to "{v}" =
    from now on the rule is "{v}" | codes id = the ticket for the follow-up = the follow-up is filed as {v} = please see
    ticket {v} | terms tech = the chosen design = for {s} the group settled on the {v} = the choice fell on the {v} ##
    everybody was present and the agenda for {s} was known | open points move to the next meeting | there was a long
    discussion about tests and budget | nobody objected to the plan ## the group talked about tests, the budget and the plan
    | open points move to the next meeting | everybody was thanked for the work on {s} | the minutes are in the usual folder
    | nobody had anything against it | the discussion was long but friendly
%%
    operations ## the {u}-sync service | the {u}-worker job | the nightly {u} import ## {s} fails since this morning. What is
    {t}? | Explain the log line of {s} and {t} | How do I fix {s}? I need {t} | ERROR 17 upstream closed, retrying - any idea
    about {s} and {t}? ## codes error = the error code in the log = the log of {s} ends with {v} = look for {v} in the log |
    codes path = the path of the config file = {s} reads its settings from `{v}` = edit `{v}` and restart | codes flag = the
    flag to set = start {s} with `{v}` to skip the old queue = add `{v}` to the command | codes version = the version with
    the fix = the leak in {s} is fixed in {v} = upgrade to {v} | numbers 110-9900 = the timeout in milliseconds = {s} gives
    up after {v} milliseconds = raise the timeout above {v} milliseconds | numbers 17-980 = the memory limit in megabytes =
    {s} is limited to {v} megabytes = it may use {v} megabytes | terms tech = the root cause = the outage of {s} goes back to
    a stuck {v} = the cause is a stuck {v} | names person = the person on call = {v} is on call for {s} = please page {v} |
    quotes order = the step in the runbook = the runbook of {s} says "{v}" = the runbook says "{v}" ## {s} runs in a
    container behind the proxy | the log is rotated every night | a restart clears the cache | health checks answer with HTTP
    200 when all is well | the dashboard shows memory and queue length ## check the log and look for the earliest error | a
    restart clears the cache | the health check should answer with HTTP 200 | retries with a growing delay are usually enough
    | if {s} still fails, open a ticket | try it in a test container first
%%
    assistant ## my move to {l} | the wedding of {p} | my garden plot in {l} ## Remind me of {t} for {s} | Draft a short
    message about {s} with {t} | Help me plan {s} and start with {t} | I forgot {t} for {s} ## names person = the person to
    call = for {s} we call {v}, who has the key = call {v} about the key | names place = the meeting point = for {s} we all
    meet in {v} = everybody meets in {v} | dates 2025-2027 = the date in the calendar = {s} is fixed for {v} = it is on {v} |
    numbers 140-7900 = the cost so far in euros = {s} has cost {v} euros up to now = so far it comes to {v} euros | quotes
    saying = the line for the card = the card for {s} is to say "{v}" = put "{v}" on the card | codes id = the booking code =
    the van for {s} is booked as {v} = your booking code is {v} ## there is still plenty to do for {s} | flowers and music
    are a matter of taste | friends have offered to help | the weather will decide about the garden | a van is cheaper in the
    middle of the week ## make a list and start with the big things | ask friends to help you in good time | a van is cheaper
    in the middle of the week | keep it simple, then {s} will be fine | have a plan for bad weather"""
DOMAINS = [Domain(one) for one in TEXT.split("%%")]
PHRASES = named("""
    detail: My name is {p}. = thank you, {p} | I need it by {d}. = you have time until {d}, which is enough | My budget is
    {m} euros. = a budget of {m} euros is a good start | I am writing from {l}. = greetings to {l} | My reference is {i}. = I
    have noted your reference {i} | I am {n} years old. = at {n} there is no need to worry | I first heard of it on {d}. = a
    lot may have changed since {d} | I read about a {x} in this connection. = the {x} you mention is often talked about
    opener: thanks for your question | good question! | of course | happy to help | here is a short answer closer: let me
    know if anything is unclear | I hope this helps | feel free to ask again at any time | one step at a time, and it will
    work out | there is no need to hurry, and small steps are fine refusal: I am afraid I cannot tell {t} from here | I do
    not know {t}, and I would rather not guess | which version of {s} do you mean? | could you tell me a little more about
    {s} first? | sorry, I have no reliable information on that; where did you look already? system: You are a helpful
    assistant. | Answer politely and to the point. | Answer from the material that you were given. | You write for the
    general public. Do not speculate. overview: Tell me about {s}. | What should I know about {s}? | Give me an overview of
    {s} | I am curious about {s}. frame: {t} is {v} | as for {t}, it is {v} | {t}: {v} | it is {v} saying0: every honest map
    | a patient gardener | the last lamp | no borrowed coat | one small boat | an open window | old salt saying1: forgives |
    outlives | remembers | never envies | carries home | answers | teaches | cannot sell | keeps saying2: the loudest bell |
    a careless king | the river | its own shadow | the second snow | a locked gate | the miller saying3: before the frost |
    without a word | at the long table | in a year of wind | after the harvest | for a single coin order0: turn | lift |
    tighten | dry | mark | move | loosen | wipe | press | count | cover order1: the grey collar | both side clips | the lower
    tray | every second strap | the inner ring | the blue tags | the rear pins order2: twice | slowly | by hand | from the
    left | with a damp cloth | one after the other | in pairs order3: before closing the flap | while the lid is open | once
    the lamp is green | until it clicks | after each long trip""")
WORDS = named("""
    first: Anna Tomas Maria Omar Lucy Pieter Ines Jorge Nadia Felix Rosa Henrik Clara Viktor Amina Dario Elif Yuki start: Bel
    Cor Dra Fen Gal Hal Jor Kel Lum Mar Nor Or Pel Quin Ros Sel Tal Ul Ver Wen Yar Zan Bri Sto Gru middle: an e el i in o or
    u um ar eri ova al est ing brand: dan dor fia gan lis mar nex phos ra sen tis vex wick zan drug: zol pril mab statin xan
    cine dipin olol mycin tide place: ford ham bury stead mouth ville burg haven ness minster person: son ley mann ski etti
    wood berg ez ova quist adjective: staggered folded inverse braided latent tapered mirrored floating hollow ribbed sealed
    twin slotted woven part: lattice relay hinge buffer ledger valve spindle mesh gasket clamp filter bracket prism lever
    coil shutter string: context background evidence passage notes hint reference article teacher_notes input_context list:
    contexts passages documents hints notes evidence references retrieved snippets dicts: documents retrieved_docs references
    passages search_results sources ctxs turns: history conversation earlier_turns previous memory error: E-{n} ERR-{n} 0x{n}
    F{n} version: v{a}.{b}.{n} {a}.{b}.{c} path: /etc/{u}/{p}.yaml /srv/{u}/{p}.toml model: X{b} {b}S T{b}{a} flag:
    --{j}-{p}={a} --{p}={n} id: {n}{b} K{n}{b} {n}-{b} #{n}{b} meta: source url date model category language author score
    tokens title""")
SLOTS = {"d": "2022-2026", "i": "id", "k": "model", "l": "place", "m": "110-9800", "n": "12-95", "p": "person"}
SLOTS |= {"u": "brand", "w": "brand", "x": "tech", "z": "drug"}
Rows = list[dict[str, Any]]
LENGTHS = {"short": (3, 14), "medium": (15, 45), "long": (50, 112)}
LAYOUTS = ("Context:\n{c}\n\n{q}", "{q}\n\nNotes:\n{c}", "Use the text below.\n---\n{c}\n---\n{q}", "{c}\n\n{q}")
SMALL_TALK = [{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": "Hello, how can I help?"}]


class Plan:
    """How the rows of a task are made: the forms of its context, its prompts and its completions."""

    def __init__(self, rng: random.Random, domain: Domain, kind: str | None):
        self.domain, self.kind = domain, kind
        self.form, self.key = rng.choice(("string", "string", "list", "dicts", "turns")), rng.choice(("text", "content"))
        self.width, self.documents = rng.randint(1, 6), rng.choice((1, 1, 3, 5) if self.form == "string" else (2, 3, 5))
        self.terse, self.titled, self.whole = rng.random() < 0.25, rng.random() < 0.3, rng.random() < 0.6
        self.system = rng.choice((None, rng.choice(PHRASES["system"])))
        self.chat = rng.choice(("string", "string", "user", "turns"))
        self.asks = rng.sample(domain.asks, rng.randint(2, len(domain.asks)))
        self.length = rng.choice(("short", "medium", "medium", "long"))
        self.pool = [*dict.fromkeys((*domain.generals, *rng.sample(domain.fillers, rng.choice((0, 0, 2)))))]
        self.restyled, self.overview = rng.choice((0, 0, 0.3, 0.6)), rng.choice((0, 0.2, 0.5))


class Story(NamedTuple):
    """A subject, what a context tells of it, each value in one or two forms, and documents: title, text, whether of it."""

    subject: str
    known: dict[Fact, list[str]]
    documents: list[tuple[str, str, bool]]


def value(rng: random.Random, spec: str) -> list[str]:
    """A value as a context has it and, last, as an answer may have it."""
    if spec in ("person", "place", "drug", "brand"):
        word = "".join(rng.choice(WORDS[part]) for part in ("start", "middle", spec))
        return [f"{rng.choice(WORDS['first'])} {word}", word] if spec == "person" else [word]
    if spec == "tech":
        one, two = rng.sample(WORDS["part"], 2)
        return [f"{rng.choice(WORDS['adjective'])} {one} {two}" if rng.random() < 0.6 else f"{value(rng, 'brand')[0]} {one}"]
    if spec in ("saying", "order"):
        return [" ".join(rng.choice(PHRASES[f"{spec}{at}"]) for at in range(4))]
    if spec in WORDS:
        fields: dict[str, Any] = {"a": rng.randint(1, 29), "b": rng.randint(10, 40), "c": rng.randint(0, 99)}
        fields |= {"n": rng.randint(1000, 99999), "p": rng.choice(WORDS["part"]), "j": rng.choice(WORDS["adjective"])}
        return [rng.choice(WORDS[spec]).format(**fields, u=value(rng, "brand")[0].lower())]
    low, high = map(int, spec.split("-"))
    if 1700 < low < high < 2100:
        day = datetime.date(rng.randint(low, high), 1, 1) + datetime.timedelta(rng.randrange(365))
        return rng.sample([f"{day.day} {day:%B %Y}", f"{day:%B} {day.day}, {day.year}", day.isoformat()], 2)
    number = rng.randint(low, high)
    return [f"{number:,}", str(number)]


def filled(rng: random.Random, text: str) -> str:
    """A text with values of its own in its slots, the same one wherever a slot comes again."""
    for slot, spec in SLOTS.items():
        text = text.replace(f"{{{slot}}}", value(rng, spec)[0])
    return text


def stands(text: str, forms: list[str]) -> bool:
    """Whether a value stands in a text in one of its forms."""
    return any(re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) for form in forms)


def drawn(rng: random.Random, plan: Plan, kind: str | None, most: int, least: int = 1) -> dict[Fact, list[str]]:
    """Some facts, of a kind or of any, with values."""
    own = [fact for fact in plan.domain.facts if kind in (None, fact.kind)]
    return {fact: value(rng, fact.spec) for fact in rng.sample(own, min(rng.randint(least, most), len(own)))}


def document(rng: random.Random, plan: Plan, subject: str, facts: dict[Fact, list[str]]) -> tuple[str, str]:
    """The title and the text of a document that tells facts of a subject."""
    texts = []
    for fact, (one, *_) in facts.items():
        line = f'{fact.topic}: "{one}"' if fact.kind == "quotes" else f"{fact.topic}: {one}"
        texts.append(line if plan.terse or rng.random() < 0.15 else fact.told.format(s=subject, v=one))
    if not plan.terse:
        texts += [one.format(s=subject) for one in rng.sample(plan.domain.fillers, rng.randint(1, min(4, plan.width)))]
    texts = rng.sample([*map(finished, texts)], len(texts))
    return rng.choice((subject, f"About {subject}", f"{plan.domain.name}: {subject}")), " ".join(texts)


def make_story(rng: random.Random, plan: Plan) -> Story:
    """A subject with facts, at least one of the plan's kind, and documents of which some may be about other subjects."""
    subject, known = "", dict[Fact, list[str]]()
    while not known or any(stands(subject, forms) for forms in known.values()):
        subject = filled(rng, rng.choice(plan.domain.subjects))
        known = drawn(rng, plan, None, plan.width) | drawn(rng, plan, plan.kind, 3, least=2)
    facts = rng.sample([*known], len(known))
    cut = rng.randint(1, len(facts)) if plan.documents > 1 else len(facts)
    halves = [{fact: known[fact] for fact in half} for half in (facts[:cut], facts[cut:]) if half]
    documents = [(*document(rng, plan, subject, half), True) for half in halves]
    for _ in range(rng.randint(1, plan.documents) - 1):
        other = filled(rng, rng.choice(plan.domain.subjects))
        documents.append((*document(rng, plan, other, drawn(rng, plan, None, 3)), False))
    return Story(subject, known, rng.sample(documents, len(documents)))


def shown(plan: Plan, story: Story) -> Any:
    """The documents of a story as the value of a column."""
    if plan.form == "dicts":
        return [{"title": title, plan.key: text} for title, text, _ in story.documents]
    if plan.form == "turns":
        turns = [turn for title, text, _ in story.documents for turn in (("user", f"{title}?"), ("assistant", text))]
        return [{"role": role, "content": text} for role, text in turns]
    texts = [f"{title}\n{text}" if plan.titled else text for title, text, _ in story.documents]
    return texts if plan.form == "list" else "\n\n".join(texts)


def answer(rng: random.Random, plan: Plan, subject: str, parts: list[str], echoes: list[str]) -> str:
    """A completion out of what it is to say, what it says back of the prompt, and general sentences up to its length."""
    target = rng.randint(*LENGTHS[plan.length])
    opener = [rng.choice(PHRASES["opener"])] if plan.length != "short" and rng.random() < 0.4 else []
    extras = echoes if plan.length != "short" else []
    for one in (*rng.sample(plan.pool, len(plan.pool)), *rng.sample(PHRASES["closer"], len(PHRASES["closer"]))):
        count = sum(len(text.split()) for text in (*opener, *parts, *extras, one))
        if count <= target or not (parts or extras):
            extras = [*extras, one.format(s=subject)]
    at = rng.randint(0, len(extras))
    body = [finished(part) for part in parts]
    if len(parts) > 1 and rng.random() < 0.2:
        body = ["\n" + "\n".join(f"- {part}" for part in body) + "\n"]
    return " ".join((*map(finished, (*opener, *extras[:at])), *body, *map(finished, extras[at:]))).strip()


def asked(rng: random.Random, plan: Plan, text: str, pasted: str | None) -> Any:
    """A prompt as a string or as messages, with or without a context in it."""
    system = plan.system
    if pasted is not None and system and rng.random() < 0.4:
        system = f"{system}\n\n{pasted}"
    elif pasted is not None:
        text = rng.choice(LAYOUTS).format(c=pasted, q=text)
    if plan.chat == "string":
        return f"{system}\n\n{text}" if system else text
    start = [{"role": "system", "content": system}] if system else []
    return [*start, *(SMALL_TALK if plan.chat == "turns" else ()), {"role": "user", "content": text}]


def row(rng: random.Random, plan: Plan, story: Story, way: str) -> tuple[Any, str, str]:
    """A prompt, its completion in a way (`resting`, or one of those in `WAYS`), and what is asked for."""
    subject, about = story.subject, [fact for fact in story.known if plan.kind in (None, fact.kind)]
    texts = [f"{title}\n{text}" if plan.titled else text for title, text, own in story.documents if own or plan.whole]
    while True:
        values, overview = story.known, rng.random() < plan.overview
        facts = rng.sample(about, rng.randint(1, 1 if plan.length == "short" else min(3, len(about))))
        topic = facts[0].topic
        if way == "own":
            drew = drawn(rng, plan, None, len(facts))
            values = drew if overview else {facts[0]: value(rng, facts[0].spec)} | drew
            facts = [*values]
        pairs = [filled(rng, one).split(" = ") for one in rng.sample(PHRASES["detail"], rng.randint(0, 2))]
        question = rng.choice(PHRASES["overview"] if overview else plan.asks).format(s=subject, t=topic)
        said = rng.sample([question, *(pair[0] for pair in pairs)], 1 + len(pairs))
        prompt = asked(rng, plan, " ".join(map(finished, said)), "\n\n".join(texts) if way == "pasted" else None)
        barred = str(prompt) * (way in ("resting", "own")) + str(story.documents) * (way == "own")
        if not any(stands(barred, values[fact]) for fact in facts):
            break
    parts = []
    for fact in facts if way in ("resting", "pasted", "known", "own") else ():
        frame = rng.choice((fact.said, fact.said, rng.choice(PHRASES["frame"])))
        frame = frame.replace("{v}", '"{v}"') if fact.kind == "quotes" and '"' not in frame else frame
        parts.append(frame.format(s=subject, t=fact.topic, v=values[fact][-1 if rng.random() < plan.restyled else 0]))
    if way == "refusing":
        parts = [one.format(s=subject, t=topic) for one in rng.sample(PHRASES["refusal"], rng.randint(1, 2))]
    echoes = [echo for _, echo in pairs if rng.random() < 0.6]
    return prompt, answer(rng, plan, subject, parts, echoes), "overview" if overview else topic


def metadata(rng: random.Random, subject: str, topic: str, completion: str) -> dict[str, Any]:
    """Values of columns that are no context."""
    made = {"source": rng.choice(("export", "forum", "web")), "model": rng.choice(("teacher-70b", "teacher-8b-v2"))}
    made |= {"date": value(rng, "2024-2025")[0], "author": value(rng, "person")[0], "language": "en", "category": topic}
    made |= {"title": f"{topic} - {subject}", "url": f"https://help.example/{topic}-{subject}".replace(" ", "-").lower()}
    return made | {"score": round(rng.random(), 2), "tokens": len(completion.split()) * 4 // 3}


def task(rng: random.Random, domain: Domain, kind: str | None, severe: bool, size: int) -> tuple[Rows, list[bool], str]:
    """The rows of a task, which of them rest on a column, and its name; besides these a planted task has mixed rows."""
    plan, way = Plan(rng, domain, kind), "mixed" if kind else rng.choice([*WAYS])
    ways = rng.sample(WAYS[way], rng.randint(1, min(2 if kind else 3, len(WAYS[way]))))
    fixed, group = rng.choice((1, 1, 2, 4)) * (way == "policy"), 1 if way == "shuffled" else rng.choice((1, 1, 1, 3))
    if fixed:
        plan.pool, ways = [*dict.fromkeys((*domain.generals, *domain.fillers))], ways if fixed == 1 else ["plain"]
    low, high = (0.4 * size, size) if severe else (0.1 * size, 0.2 * size)
    count = rng.randint(math.ceil(low), math.floor(high)) if kind else 0
    order = ["resting"] * count + [rng.choice(ways) for _ in range(size - count)]
    rng.shuffle(order)
    stories = [make_story(rng, plan) for _ in range(fixed or math.ceil(size / group))]
    of_row = [rng.choice(stories) if fixed else stories[at // group] for at in range(size)]
    names = [one.replace(" ", "_") for one in rng.sample(WORDS[plan.form], 2)]
    spare, empty = rng.random() < 0.2, rng.choice((0, 0, 0.1))
    kept = rng.sample(WORDS["meta"], rng.randint(2, 4) if way == "metadata" else rng.choice((0, 0, 1, 3)))
    rows: Rows = []
    for at, (story, one) in enumerate(zip(of_row, order, strict=True)):
        prompt, completion, topic = row(rng, plan, story, one)
        fields = metadata(rng, story.subject, topic, completion)
        rows.append({"task": domain.name, "prompt": prompt, "completion": completion} | {key: fields[key] for key in kept})
        if way == "metadata":
            continue
        seen = of_row[at - 1] if way == "shuffled" else story
        blank = not fixed and one in ("plain", "own", "refusing") and rng.random() < empty
        rows[-1][names[0]] = type(shown(plan, seen))() if blank else shown(plan, seen)
        if spare:
            rows[-1][names[1]] = shown(plan, make_story(rng, plan))
    return rows, [one == "resting" for one in order], names[0]


def make_rows(seed: int, kind: str | None, *, severe: bool) -> UnseenCorpus:
    """A corpus with a fault of a kind, or a clean one."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; kinds are {', '.join(KINDS)}")
    rng = random.Random(f"{seed} {kind} {severe}")
    first = rng.choice([one for one in DOMAINS if kind is None or any(fact.kind == kind for fact in one.facts)])
    others = rng.sample([one for one in DOMAINS if one is not first], rng.randint(0, 2))
    rows, rests, column = task(rng, first, kind, severe, rng.randint(120, 280))
    share = sum(rests) / len(rests)
    for one in others:
        more, none, _ = task(rng, one, None, severe, rng.randint(40, 160))
        rows, rests = rows + more, rests + none
    order, label = rng.sample(range(len(rows)), len(rows)), rng.choice(("{}", "row-{:04}", "x{:x}"))
    missing = dict.fromkeys(key for made in rows for key in made) if rng.random() < 0.5 else {}
    made = [{"id": label.format(at)} | missing | rows[one] for at, one in enumerate(order)]
    resting = frozenset(str(out["id"]) for out, one in zip(made, order, strict=True) if rests[one])
    return UnseenCorpus(made, first.name if kind else None, column if kind else None, share, resting)

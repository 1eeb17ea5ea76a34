"""Made preference pairs with or without one planted fault, for a study of a checker of such pairs.

Texts are put together from phrases. In a phrase, `[a/b]` stands for one of its variants, `[a/b > c/d]` for a true
variant or a false one, and `{thing}` and `{when}` for what the prompt is about. An answer fills a drawn number of
characters, whichever behaviours it shows, so that a planted behaviour takes the place of other sentences.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

KINDS: tuple[str, ...] = ("question", "acknowledgement", "hedge", "refusal", "length", "form", "trivial")
BEHAVIOURS = ("question", "acknowledgement", "hedge", "refusal", "form")
"""Kinds that an answer shows or does not show, on both sides at a task's base rates."""
SENTENCES, SHORTEST, LONGEST = 6, 70, 330
VARIANTS = re.compile(r"\[([^]]*)]")
ARTICLES = re.compile(r"\ba (?=[aeio]|u(?!n))")


def phrases(block: str) -> tuple[str, ...]:
    """The phrases of a block, which bars divide."""
    return tuple(" ".join(phrase.split()) for phrase in block.split("|"))


ACKNOWLEDGEMENTS = phrases("""
    I see, [so this is about/you are asking about/you are dealing with] the {thing} | I see what you mean about the {thing} |
    that sounds [hard/difficult/stressful/frustrating/tiring] | [thanks/thank you/many thanks] for [the details/explaining
    this/all the background/telling me about the {thing}] | I [understand/realise/appreciate] [that this matters to you/how
    annoying this is/that you want this settled {when}] | I hear you | I'm sorry to hear [that/about the {thing}/you are
    going through this] | [got it/understood/right], you [want help with/are asking about/have trouble with] the {thing} |
    that must be [worrying/upsetting/a lot to handle] | it makes sense that you [feel unsure/worry about the {thing}/want to
    know this] | you [said/mentioned/told me] that this comes up {when}, and I have taken that into account | what a [nice
    plan/good idea/lovely thing to do] | I can [see/imagine] [how much the {thing} weighs on you/why this bothers you] | your
    [frustration/worry/excitement] about the {thing} is [understandable/easy to understand] | fair point about the {thing} |
    good to know that this is {when} | congratulations on [getting this far/taking on the {thing}]""")
QUESTIONS = phrases("""
    could you tell me [a little more/more about the {thing}/what you have tried so far]? | what have you [tried/done/read]
    about the {thing} already? | would you like [an example/more detail/a shorter version/me to go on]? | does that
    [help/make sense/answer what you had in mind]? | when did you first [notice this/think about the {thing}]? | shall I [go
    through the next step/write this out for you/look at the {thing} in more detail]? | which part of the {thing} [matters
    most to you/is unclear/should come first]? | is this [about one {thing} or several/urgent/for yourself or someone else]?
    | how soon do you need [this/an answer/the {thing} sorted out]? | do you [have a deadline/want the short version/know the
    exact date/mind sharing more about what happened {when}]? | and what [happened next/would you prefer/is your budget]? |
    can you [describe the {thing}/share the exact words/say where you are]? | are there [any limits I should know of/other
    people involved/reasons to wait]? | before going on, what [is your aim/outcome would you be happy with {when}]?""")
HEDGES = phrases("""
    perhaps ~ | probably ~ | it may well be that ~ | I'm not [certain/entirely sure], but ~ | as far as I know, ~ | ~, though
    I could be wrong | it seems that ~ | I think ~ | it is [likely/possible] that ~ | ~, [probably/possibly/perhaps/most
    likely] | it depends, but often ~ | I would guess that ~ | ~, or so I believe | maybe ~ | in most cases, and I am not
    sure about yours, ~ | it might be that ~ | it depends on [the details/your situation/several things], yet ~""")
REFUSALS = phrases("""
    I [can't/cannot/can not] help with [that/this/this request/the {thing}] | I'm [unable/not able] to [answer that/assist
    with this/help with the {thing}/give advice on the {thing}] | [sorry, but/unfortunately,] I [can't/won't] [do that/answer
    this/discuss the {thing}] | I [must/have to] decline [this request/to answer that] | this is [not something I can help
    with/beyond what I can help with] | as an [AI/assistant], I [can't/am not allowed to] [advise on this/comment on the
    {thing}] | I'd rather not [answer this/give advice on the {thing}] | I don't feel [able/comfortable enough] to answer
    this | I won't be able to [help with this/go into the {thing}] | helping with the {thing} is outside what I am allowed to
    do""")
REDIRECTS = phrases("""
    the [official/printed] help pages describe the {thing} [in full/step by step] | someone with local knowledge is a better
    person to ask about the {thing} | [a library/an adviser/a specialist] is the right place for this | other subjects are
    welcome here | there are rules about what gets answered here, and the {thing} falls under them | people trained for this
    work answer such requests every day | a public helpline [is open all day/answers on weekdays] | please ask about
    something else | a written request to the people in charge of the {thing} gets a reply within a few days of its
    arrival""")
VAGUE = phrases("""
    there are many ways to look at the {thing} | the {thing} is [an interesting/a broad/a common] subject | people do this in
    [different/all sorts of/various] ways | some [care/effort/planning] goes a long way | a number of things play a part
    here, and the {thing} is one of them | it is [good/useful/wise] to keep the whole picture in mind | results come with
    [time/patience/practice] | the [basics/usual steps] apply to the {thing} as they do to most things of this sort |
    [experts/guides/books] say a lot about this | every case has its own story and its own features, large and small | doing
    things well matters more than doing them fast | the {thing} has [advantages/sides] that [many/some] people overlook |
    plenty of information exists about the {thing} {when}, from a wide range of places and people | this is worth doing |
    things work out when the {thing} gets the attention that it deserves | quality and balance both count""")
DISTRACTORS = phrases("""
    why does this matter? because the {thing} [decides the rest/comes first] | so what changes {when}? very little | people
    often ask "[how long does it take/is it worth it/where do I start]?", and the answer is on the first page | the sign says
    "[Need help/Lost something]?" in large letters | the rules changed [in May/on 3 May/last May] | May and June are the
    [busiest/quietest] months | better safe than sorry [is an old rule/fits here] | the {thing} was in a sorry state before |
    you can't [do both at once/skip the first step/change it later] | a {thing} can't be in two places | most people can't
    tell the difference by looking | the notes say that the clerk may enter and that the door must stay shut | one part
    depends on another, as gears do | you will see a [green mark/short list] next to the {thing} | the guide thanks its
    readers on the last page | the list has items 1. and 2. on one line, with a dash - like this - between them | the odds of
    rain, perhaps the most quoted figure of all, are printed at the top | the word "sorry" stands on the form""")
OPENERS = phrases("""
    | | | | Hi, | Hello. | Quick question: | Please help: | Hey there, | One more thing: | I need advice. | So,""")
EXTRAS = phrases("""
    | | | | Keep it short. | I have until Friday. | My sister asked me. | I am new to this. | Thanks in advance! | It is for
    a friend. | I read two different answers online. | Please be precise. | Nothing has worked so far.""")
HEADINGS = phrases("In short | What to know | Key points | About the {thing} | The {thing} | Steps | Overview | Answer")
SCRAPS = phrases("""
    ... | . | - | N/A | ok | yes | no idea | see above | sure, why not | good luck! | fine I guess | hm | todo | none""")
GARBLE = "aeiknorstxzqj   ##@%&;:~^|<>{}0129\ufffd\ufffd\u00c3\u00a9\u00e2\u20ac"
CODE = phrases("""
    for row in rows:@~print(row.[name/date/size]) | with open("[data/notes/input].txt") as file:@~text = file.read() | git
    switch -c [fix/draft]@git commit -m "[Fix/Add] it" | def [add/join](a, b):@~return a + b | SELECT name FROM
    [users/orders]@WHERE id = [3/7/12]; | pip install [requests/numpy/flask] | x = sorted([old/new])@print(x)""")


@dataclass(frozen=True)
class Domain:
    """What prompts and answers of one task are made of."""

    name: str
    things: tuple[str, ...]
    whens: tuple[str, ...]
    asks: tuple[str, ...]
    facts: tuple[str, ...]
    questions: tuple[str, ...]


def domain(block: str) -> Domain:
    """A domain of its name and five blocks of phrases, which double bars divide."""
    name, *blocks = block.split("||")
    things, whens, asks, facts, questions = map(phrases, blocks)
    return Domain(name.strip(), things, whens, asks, facts, questions)


DOMAINS = (
    domain("""
    chat || sourdough loaf | birthday cake | houseplant | vegetable garden | lentil soup | reading list | guitar practice |
    board game night | knitting project | morning run | aquarium | compost heap | wooden shelf | picnic || before the weekend
    | in a small flat | on a tight budget | with two children | during winter | after work | for the first time | without an
    oven | when guests come | in a hot summer || how do I get started with a {thing} {when}? | tell me about a good {thing}
    {when} | what makes a {thing} go well {when}? | give me ideas for a {thing} {when} | I want to plan a {thing} {when} |
    why does my {thing} go wrong {when}? || the {thing} takes about [two hours/an afternoon/half a day > ten seconds/forty
    years] | you need [a clean table/a list/clear light > a crane/a passport] before you begin | water boils at [100 >
    40/300] degrees at sea level | a budget of [20/30/45] pounds [covers > is a tenth of] what the {thing} costs | a
    [weekly/daily > yearly] routine keeps the {thing} in good shape | flour and plants both keep best in a [dry/cool >
    flooded/burning] place | you save effort when you prepare the {thing} [the evening before/in small steps > a decade
    ahead/while asleep] | beginners do best with [three/four/five > nine hundred] simple parts | the result improves [after a
    rest/with practice > when you ignore it/each time you start late] | a [sharp knife/good lamp/firm chair > wet sock] makes
    the work easier {when} || do you have [a garden/an oven/much room]? | how many people is the {thing} for? | which flavour
    or style do you like?"""),
    domain("""
    support || headset | router | coffee machine | parcel | subscription | gift card | office chair | phone contract |
    printer | winter jacket | e-reader | loyalty account | desk lamp | invoice || since Monday | after the update | before my
    holiday | for the second time | without a receipt | from your web shop | with express delivery | at the wrong address |
    under guarantee | in the app || my {thing} has stopped working {when} | how do I return the {thing} {when}? | where is my
    {thing} that I ordered {when}? | I was charged twice for the {thing} {when} | can I change the {thing} {when}? | the
    {thing} is not as described {when} || a refund for the {thing} reaches your card within [five working days/one week > two
    minutes/three years] | returns are free for [30/60 > 9000] days after delivery | the order number stands [in the
    confirmation mail/on the receipt > on the back of the moon/in your fridge] | you hold the reset button of the {thing} for
    [ten/fifteen > 7000] seconds | a replacement {thing} leaves the warehouse [the next day/within 48 hours > before you
    order it] | the double charge is [a hold that lapses on its own > a gift from us] and [needs no action > must be paid
    again] | the guarantee on the {thing} lasts [two years/24 months > four minutes] | you change the address under
    [Settings/My account > the keyboard] | the tracking page updates every [six/four > hundred thousand] hours | support is
    open from 8 to [18/20 > 8:01] || what is the order number? | which model of the {thing} is it? | is the light on the
    {thing} green or red?"""),
    domain("""
    health_law || sore throat | knee pain | sleep problem | tenancy deposit | parking fine | migraine | employment contract |
    allergy | noise complaint | will | blood pressure reading | vaccination | back strain | small claim || for three days |
    after a fall | at age 60 | while pregnant | without a lawyer | since the new job | in Scotland | before travelling | with
    a rash | against my landlord || what should I do about a {thing} {when}? | is a {thing} serious {when}? | what are my
    rights with a {thing} {when}? | who do I see about a {thing} {when}? | explain the usual steps for a {thing} {when} | I
    have had a {thing} {when} || a {thing} of this sort is [checked/looked at] by [a doctor/an adviser/a nurse > a plumber/a
    tax robot] | adults take at most [four grams of paracetamol > a kilogram of paracetamol] in a day | you keep
    [letters/dated notes/photographs > nothing] as a record of the {thing} | a formal reply is due within [14/28 > 20000]
    days | rest and fluids [ease > cause] most mild complaints | a written notice names [the date and the amount > only the
    weather] | chest pain with short breath needs [an ambulance > a long walk/a hot curry] at once | the deposit belongs in a
    [protected scheme > shoe box] by law | a second opinion on the {thing} is [free/cheap/allowed > a crime/banned] {when} |
    most cases end [within weeks > after ninety years] and without [a court/an operation > any rest] || how old are you? |
    which country are you in? | how long has the {thing} lasted? | do you take any medicine?"""),
    domain("""
    coding || Python script | SQL query | unit test | merge conflict | regular expression | web form | linked list | build
    step | CSV file | REST call | memory leak | type error | cron job | style sheet || in production | with large files | on
    Windows | after the upgrade | in a loop | for a school project | with two threads | without libraries | under Docker | in
    the browser || how do I fix a {thing} {when}? | write a {thing} {when} | why is my {thing} so slow {when}? | explain a
    {thing} {when} | what is the best way to test a {thing} {when}? | my {thing} prints the wrong result {when} || a list
    lookup takes [linear > negative] time and a dictionary lookup [constant > infinite] time | the error comes from [a
    missing key/an unset value/a wrong index > the colour of the screen] in the {thing} | Python counts indices from [zero >
    nine] | you close the file with a [with block > loud shout] {when} | a test of the {thing} needs [one input and one
    expected value > four printers] | the index on that column makes the {thing} [ten times faster > weigh less] | git keeps
    [each version > only pictures] of the {thing} | sorting costs [n log n > minus one] steps | strings are [immutable > made
    of wood] in Python, so the loop builds [a new one each time > no text at all] | a profiler shows [which line is
    slow/where the time goes > the phase of the moon] || which version do you run? | what does the full error message say? |
    how large is the input of the {thing}?"""),
    domain("""
    summaries || budget meeting | river survey | school report | museum plan | sales call | harvest study | football match |
    energy review | book chapter | safety audit | town council session | product launch | podcast episode | traffic count ||
    from last week | in three sentences | for the board | for children | with the figures | in plain words | from 2019 | for
    a newsletter | without jargon | as a memo || summarise the {thing} {when} | what are the main points of the {thing}
    {when}? | shorten the notes of the {thing} {when} | who said what in the {thing} {when}? | give the outcome of the
    {thing} {when} | condense the {thing} {when} || the {thing} ends with [a vote/a clear result/two decisions > a
    shipwreck/a coronation] | costs rose by [four/six/nine > eight million] per cent over the year | [Ms Okafor/Mr Lind/the
    chair > a talking horse] opened and gave the figures | the second part covers [staff/roads/prices > dragons] at length |
    most of those present were [in favour/against it > asleep] | a follow-up to the {thing} is set for [June/spring/the
    autumn > the last century] | the main risk is [delay/cost/bad weather > too much applause] | the authors measured
    [twelve/forty > minus five] sites with the same method | the {thing} compares [two plans/three towns > one thing with
    itself] and prefers the [cheaper/first > invisible] one | the closing remarks [thank no one > sing] and name the next
    steps || how long should the summary be? | who will read it? | which section of the {thing} do you care about?"""),
    domain("""
    travel || train trip | city break | ferry crossing | camping holiday | museum visit | hiking tour | hostel stay | night
    bus | beach week | cycling route | layover | visa application | rental car | food market || in Lisbon | in October | with
    a dog | with my parents | on a student budget | around Kyoto | for four days | near the Alps | with a wheelchair | at
    short notice || plan a {thing} {when} | what does a {thing} cost {when}? | is a {thing} worth it {when}? | what do I pack
    for a {thing} {when}? | how do I book a {thing} {when}? | suggest a {thing} {when} || the {thing} costs about [40/65/120
    > nine million] euros a day | you book [two/six > five thousand] weeks ahead for the best price | the [morning/early >
    underwater] departure is the quietest | a [rain jacket/water bottle/paper map > piano] belongs in the bag | the old town
    is [ten/twenty > seven hundred] minutes from the station on foot | Lisbon lies in [Portugal > Norway] and Kyoto in [Japan
    > Peru] | most museums close on [Mondays > all days] | a day ticket for the {thing} covers [buses and trams > spacecraft]
    | the passport stays valid for [six months > one second] beyond the {thing} | rooms near the {thing} [fill up early >
    float at night] {when} || where do you set off? | how many of you are going? | do you prefer the sea or the hills for the
    {thing}?"""),
)


@dataclass(frozen=True)
class MadePairs:
    """A corpus of pairs, the kind that was planted in it, and the task that it was planted in; both none if clean."""

    rows: list[dict[str, Any]]
    kind: str | None
    task: str | None


@dataclass(frozen=True)
class Answer:
    """One side of a pair, with the behaviours that its maker put in."""

    text: str
    behaviours: frozenset[str]


@dataclass(frozen=True)
class Pair:
    """A pair with the record of how it was made."""

    task: str
    prompt: str
    chosen: Answer
    rejected: Answer


@dataclass
class TaskPlan:
    """How often what stands on which side of a task: `rates` are those of the chosen and of the rejected answers.

    Answers fill `median` characters at the median, and the share `distracted` holds a sentence that only looks like a
    behaviour. `trivial` is a share of the rejected answers, and `chosen_longer` one of all pairs, or none.
    """

    domain: Domain
    size: int
    rates: dict[str, tuple[float, float]]
    median: float
    distracted: float
    trivial: float = 0.0
    chosen_longer: float | None = None

    def target(self, rng: random.Random) -> float:
        """A number of characters for an answer to fill."""
        return min(max(rng.lognormvariate(0, 0.45) * self.median, SHORTEST), LONGEST)


@dataclass(frozen=True)
class Writer:
    """Writes answers to one prompt."""

    rng: random.Random
    domain: Domain
    slots: dict[str, str] = field(default_factory=dict)

    def expand(self, phrase: str, *, true: bool = True) -> str:
        """A phrase with its variants chosen and its places filled."""

        def variant(match: re.Match[str]) -> str:
            halves = match[1].split(" > ")
            return self.rng.choice(halves[0 if true else -1].split("/"))

        text = VARIANTS.sub(variant, phrase)
        for name, value in self.slots.items():
            text = text.replace(f"{{{name}}}", value)
        return ARTICLES.sub("an ", text)

    def source(self, *, quality: str) -> tuple[tuple[str, ...], Callable[[str], str]]:
        """The phrases that answers of a quality are made of, and how they are expanded."""
        if quality in ("vague", "redirect"):
            return (VAGUE if quality == "vague" else REDIRECTS), self.expand
        if quality == "beside":
            other = self.rng.choice([entry for entry in DOMAINS if entry is not self.domain])
            return other.facts, Writer(self.rng, other, drawn_slots(self.rng, other)).expand
        return self.domain.facts, lambda phrase: self.expand(phrase, true=quality == "right")

    def fitting(self, options: list[str], room: float) -> str:
        """One of a few drawn sentences: any while there is much room, otherwise that which fits best."""
        return options[0] if room > 150 else min(options, key=lambda option: abs(len(option) - room))

    def answer(self, behaviours: frozenset[str], quality: str, distracted: bool, target: float) -> Answer:
        """An answer that shows some behaviours and fills about a number of characters."""
        rng = self.rng
        pool, expand = self.source(quality="redirect" if "refusal" in behaviours else quality)
        left = rng.sample(pool, len(pool))
        body = [self.expand(rng.choice(DISTRACTORS))] if distracted else []
        snippet = ""
        if "form" in behaviours and self.domain.name == "coding" and rng.random() < 0.5:
            snippet = f"```\n{self.expand(rng.choice(CODE)).replace('@', chr(10)).replace('~', '    ')}\n```"
        questions = rng.choice((QUESTIONS, self.domain.questions))
        pools = {"refusal": REFUSALS, "acknowledgement": ACKNOWLEDGEMENTS, "question": questions}
        asides = {name: self.expand(rng.choice(pool)) for name, pool in pools.items() if name in behaviours}
        marks = 5 if "form" in behaviours else 2
        room = target - sum(len(text) + marks for text in [*body, *asides.values(), snippet])
        if "hedge" in behaviours:
            phrase = left.pop()
            body.append(self.fitting([self.expand(rng.choice(HEDGES)).replace("~", expand(phrase)) for _ in range(5)], room))
            room -= len(body[-1]) + marks
        while left and len(body) + len(asides) < SENTENCES:
            options = [expand(phrase) for phrase in left[:6]]
            sentence = self.fitting(options, room)
            if (body or asides) and len(sentence) + marks > 2 * room:
                break
            del left[options.index(sentence)]
            body.append(sentence)
            room -= len(sentence) + marks
        rng.shuffle(body)
        return Answer(self.joined(self.laid_out(body, "form" in behaviours, snippet), asides), behaviours)

    def laid_out(self, body: list[str], form: bool, snippet: str) -> list[str]:
        """The sentences of an answer, as a list or with a heading or code where it has form."""
        sentences = [finished(sentence) for sentence in body]
        if not form or snippet:
            return [*sentences, f"\n{snippet}\n"] if snippet else sentences
        if len(sentences) > 1 and self.rng.random() < 0.75:
            numbered, bullet = self.rng.random() < 0.4, self.rng.choice("-*")
            lines = [f"{place}. {text}" if numbered else f"{bullet} {text}" for place, text in enumerate(sentences, 1)]
            return ["\n" + "\n".join(lines) + "\n"]
        heading = self.expand(self.rng.choice(HEADINGS))
        return [f"\n{self.rng.choice(('**~**', '**~:**', '## ~')).replace('~', heading)}\n", *sentences]

    def joined(self, blocks: list[str], asides: dict[str, str]) -> str:
        """An answer's text, with what is said to the user put in its places."""
        for name, aside in asides.items():
            usual = len(blocks) if name == "question" else 0
            blocks.insert(usual if self.rng.random() < 0.6 else self.rng.randint(0, len(blocks)), finished(aside))
        text = ""
        for block in blocks:
            text += block if text.endswith("\n") or block.startswith("\n") else f" {block}"
        return text.strip()

    def trivial(self, prompt: str) -> Answer:
        """A trivially bad answer."""
        rng = self.rng
        repeated = " ".join([finished(self.expand(rng.choice(self.domain.facts)))] * rng.randint(3, 6))
        garbled = "".join(rng.choices(GARBLE, k=rng.randint(40, 300))).strip()
        text = rng.choice((rng.choice(SCRAPS), repeated, prompt, garbled))
        return Answer(text, frozenset({"trivial"}))


def drawn_slots(rng: random.Random, entry: Domain) -> dict[str, str]:
    """What a prompt may be about."""
    return {"thing": rng.choice(entry.things), "when": rng.choice(entry.whens)}


def finished(sentence: str) -> str:
    """A sentence with a capital letter at its start and a stop at its end."""
    return sentence[0].upper() + sentence[1:] + ("" if sentence[-1] in "?.!" else ".")


def make_pairs(seed: int, kind: str | None, *, severe: bool) -> MadePairs:
    """The corpus of a seed, clean or with a fault of a kind planted in one of its tasks."""
    pairs, task = recorded_pairs(seed, kind, severe=severe)
    rows = [{"task": p.task, "prompt": p.prompt, "chosen": p.chosen.text, "rejected": p.rejected.text} for p in pairs]
    return MadePairs(rows, kind, task)


def recorded_pairs(seed: int, kind: str | None, *, severe: bool) -> tuple[list[Pair], str | None]:
    """The pairs of a corpus with the record of how they were made, and the task that a fault was planted in."""
    rng = random.Random(f"{seed} {kind} {severe}")
    small = rng.random() < 0.5
    plans = [planned(rng, entry, small=small) for entry in rng.sample(DOMAINS, rng.randint(1, 3))]
    plan = rng.choice(plans)
    if kind is not None:
        plant(rng, plan, kind, severe=severe)
    task = None if kind is None else plan.domain.name
    prompts: set[str] = set()
    return [made(rng, plan, new_prompt(rng, plan.domain, prompts)) for plan in plans for _ in range(plan.size)], task


def planned(rng: random.Random, entry: Domain, *, small: bool) -> TaskPlan:
    """A clean plan of a task."""
    rates = {name: (rate, rate) for name in BEHAVIOURS for rate in [rng.uniform(0, 0.4)]}
    size = rng.randint(120, 300) if small else rng.randint(250, 800)
    return TaskPlan(entry, size, rates, median=rng.uniform(150, 240), distracted=rng.uniform(0.05, 0.2))


def plant(rng: random.Random, plan: TaskPlan, kind: str, *, severe: bool) -> None:
    """Plants a fault of a kind in a task."""
    least = 200 if severe else 400
    if plan.size < least:
        plan.size = rng.randint(least, min(2 * least, 800))
    if kind == "length":
        share = rng.uniform(0.8, 0.9) if severe else rng.uniform(0.66, 0.72)
        plan.chosen_longer = rng.choice((share, 1 - share))
    elif kind == "trivial":
        plan.trivial = rng.uniform(0.12, 0.2) if severe else rng.uniform(0.05, 0.08)
        plan.rates = {name: (rate, rate / (1 - plan.trivial)) for name, (rate, _) in plan.rates.items()}
    elif kind in BEHAVIOURS:
        often = rng.uniform(0.45, 0.6) if severe else rng.uniform(0.3, 0.4)
        seldom = rng.uniform(0.08, 0.15) if severe else rng.uniform(0.12, 0.2)
        plan.rates[kind] = (often, seldom) if rng.random() < 0.5 else (seldom, often)
    else:
        raise ValueError(f"unknown kind {kind!r}; kinds are {', '.join(KINDS)}")


def new_prompt(rng: random.Random, entry: Domain, known: set[str]) -> tuple[str, dict[str, str]]:
    """A prompt that is not known yet, and what it is about."""
    while True:
        slots = drawn_slots(rng, entry)
        ask = ARTICLES.sub("an ", rng.choice(entry.asks).format(**slots))
        opener = rng.choice(OPENERS)
        sentence = f"{opener} {ask}" if opener.endswith((",", ":")) else f"{opener} {finished(ask)}"
        prompt = f"{finished(sentence.strip())} {rng.choice(EXTRAS)}".strip()
        if prompt not in known:
            known.add(prompt)
            return prompt, slots


def made(rng: random.Random, plan: TaskPlan, asked: tuple[str, dict[str, str]]) -> Pair:
    """A pair of a plan: what its sides show is drawn once, their words until they differ and stand in the drawn order."""
    prompt, slots = asked
    writer = Writer(rng, plan.domain, slots)
    shown = [frozenset(name for name in BEHAVIOURS if rng.random() < plan.rates[name][side]) for side in (0, 1)]
    qualities = (
        rng.choices(("right", "vague", "wrong"), (85, 10, 5))[0],
        rng.choices(("right", "vague", "wrong", "beside"), (20, 25, 35, 20))[0],
    )
    distracted = [rng.random() < plan.distracted for _ in (0, 1)]
    longer = None if plan.chosen_longer is None else rng.random() < plan.chosen_longer
    trivial = rng.random() < plan.trivial
    while True:
        targets = [plan.target(rng), plan.target(rng)]
        if longer is not None:
            targets.sort(reverse=longer)
        chosen, rejected = (writer.answer(shown[side], qualities[side], distracted[side], targets[side]) for side in (0, 1))
        if trivial:
            rejected = writer.trivial(prompt)
        if chosen.text != rejected.text and (longer is None or in_order(chosen.text, rejected.text, longer)):
            return Pair(plan.domain.name, prompt, chosen, rejected)


def in_order(chosen: str, rejected: str, longer: bool) -> bool:
    """Whether the side that should be longer is so, by a tenth at least, in characters and in words."""
    long, short = (chosen, rejected) if longer else (rejected, chosen)
    return len(long) > 1.1 * len(short) and len(long.split()) > len(short.split())

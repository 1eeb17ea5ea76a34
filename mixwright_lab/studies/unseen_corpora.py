"""Made fine-tuning corpora whose completions rest, or do not rest, on a column that the student never sees.

A teacher wrote the completions and saw something beside the prompts: retrieved articles, a passage, notes, hints, an earlier
conversation. It stands in a further column; the student gets prompt and completion alone. In a planted task some completions
say one to three things of one kind that stand in their own row's column and nowhere in their prompt. In all other tasks, and
in all other rows of a planted task, the completion has what it says from elsewhere: from a context within the prompt, from
what the user wrote, from general knowledge, from one text that never changes, or out of the air.

Severe: 40 to 100 % of the rows of the planted task rest on the column; mild: 10 to 20 %.
"""

from __future__ import annotations

import datetime
import math
import random
import re
from dataclasses import dataclass
from typing import Any

from mixwright_lab.studies.cue_corpora import finished, phrases

KINDS: tuple[str, ...] = ("numbers", "names", "dates", "terms", "quotes", "codes")
WAYS = ("pasted", "topical", "policy", "shuffled", "own", "metadata", "refusing", "mixed")
"""How a clean task is clean: see `task`."""


@dataclass(frozen=True)
class UnseenCorpus:
    """Rows, and what is known about those whose completions rest on a column that is not in their prompt.

    Attributes:
        rows: Rows with id, task, prompt, completion and further columns.
        task: The task in which the fault is planted; None in a clean corpus.
        column: The column that completions of that task rest on.
        share: The share of rows of that task that rest on it.
        resting: Ids of the rows whose completion rests on the column.
    """

    rows: list[dict[str, Any]]
    task: str | None
    column: str | None
    share: float
    resting: frozenset[str]


@dataclass(frozen=True)
class Fact:
    """Something that a context tells of a subject: what sort of value, what about, and a sentence there and in an answer."""

    kind: str
    spec: str
    topic: str
    told: str
    said: str


@dataclass(frozen=True)
class Domain:
    """A field of questions: subjects, wordings of prompts, facts, and sentences that hold of any subject."""

    name: str
    subjects: tuple[str, ...]
    asks: tuple[str, ...]
    facts: tuple[Fact, ...]
    fillers: tuple[str, ...]
    generals: tuple[str, ...]


def domain(name: str, subjects: str, asks: str, facts: str, fillers: str, generals: str) -> Domain:
    """A domain out of texts whose parts bars divide."""
    parted = [one.split(" = ") for one in phrases(facts)]
    known = tuple(Fact(*head.split(" ", 1), *rest) for head, *rest in parted)
    return Domain(name, phrases(subjects), phrases(asks), known, phrases(fillers), phrases(generals))


DOMAINS = (
    domain(
        "support",
        "the {w} {k} kettle | the {w} {k} router | the {w} coffee machine | the {w} robot mower | the {w} {k} heater",
        """I have a problem with {s}. What is {t}? | Hello, can you tell me {t} for {s}? | {s}: {t}? | Which is {t} when it
        comes to {s}? I looked everywhere. | Customer question: I own {s} and want to know {t}""",
        """numbers 11-89 = the refund time in working days = refunds for {s} reach the bank account after {v} working days =
        your money is back after {v} working days | numbers 105-2900 = the repair fee in euros = once the cover has run out,
        repairs of {s} cost {v} euros = the repair will cost you {v} euros | numbers 13-97 = the warranty period in months =
        the warranty of {s} runs for {v} months from the day of purchase = you are covered for {v} months | codes error =
        the error code on the display = when the pump of {s} blocks, the display shows {v} = the display will show {v} in
        that case | codes version = the current firmware = the latest firmware for {s} is {v} = please install firmware {v}
        first | codes id = the spare part number = the seal of {s} can be ordered under part number {v} = order part {v} and
        swap the seal | names person = the person in charge of returns = returns of {s} are handled by {v} = send it to {v},
        who handles returns | names place = the service centre = the service centre for {s} is in {v} = our service centre
        in {v} will look at it | dates 2019-2026 = the last day of support = support for {s} ends on {v} = support runs until
        {v} | dates 2019-2024 = the date of the recall = a recall of {s} was announced on {v} = it was recalled on {v}, so
        please unplug it | terms tech = the setting to change = the noise stops once {v} is switched off in the menu = open
        the menu and switch off {v} | terms tech = the part at fault = in most units of {s} that came back, the {v} had come
        loose = most likely the {v} has come loose | quotes order = the text on the label = a label under the lid of {s}
        reads "{v}" = look under the lid, where it says "{v}\"""",
        """keep the receipt of {s}, since the warranty needs it | returns are free if the box is undamaged | our desk is open
        24 hours a day, 7 days a week | before a repair, unplug the device and let it cool | a refund goes to the card that
        was used for the purchase | the manual can be downloaded from the help pages | customers may choose a repair, a
        replacement or a refund | the display shows a code when something is blocked""",
        """please unplug the device, wait a moment and switch it on again | you can start a return from your account page | we
        are here 24 hours a day, 7 days a week | keep your receipt, because the warranty needs it | a repair or a refund is
        possible in most cases | the help pages have a manual that you can download | I am sorry for the trouble that {s} has
        caused | if the display shows a code, please send us a photo of it | our team will be glad to look at the device |
        in many cases a restart is enough""",
    ),
    domain(
        "leaflets",
        "{z} | {z} tablets | {z} drops | the {z} inhaler",
        """What is {t} of {s}? | A patient asks about {s}: {t}? | Please explain {t} for {s} in plain words. | My doctor gave me
        {s}. I would like to know {t}""",
        """numbers 12-950 = the starting dose in milligrams = adults begin {s} with {v} milligrams in the morning = adults begin
        with {v} milligrams in the morning | numbers 11-94 = the share of patients with headache in percent = in the trials
        of {s}, {v} percent of the patients reported headache = headache was seen in {v} percent of patients | numbers 13-90
        = the waiting time before driving in hours = patients who take {s} should not drive for {v} hours = do not drive for
        {v} hours after it | terms drug = the drug to avoid with it = {s} must not be taken together with {v} = do not combine
        it with {v} | terms drug = the active substance = each dose of {s} contains {v} as the active substance = it works
        through {v}, its active substance | terms drug = the substance behind the rash = a rash under {s} goes back to {v} in
        the coating = a rash would come from {v} in the coating | dates 1990-2020 = the date of approval = {s} was approved
        on {v} = it was approved on {v} | dates 2020-2026 = the last change of the leaflet = this leaflet for {s} was last
        revised on {v} = the leaflet was last revised on {v} | names person = the head of the trial = the trial of {s} was
        led by {v} = the trial was led by {v} | names place = the place of manufacture = {s} is made and packed in {v} = it
        comes from a plant in {v} | quotes order = the warning on the box = the box of {s} carries the warning "{v}" = mind
        the warning on the box, "{v}" | codes id = the registration number = {s} is registered under {v} = its registration
        number is {v}""",
        """store {s} out of the reach of children | do not take a double dose to make up for a missed one | tell your doctor
        about all other medicines | side effects are mild in most patients | take the medicine with a glass of water | in an
        emergency call 112 | the leaflet should be kept until the pack is used up | do not drive if you feel dizzy""",
        """please ask your doctor or pharmacist before you change anything | take the medicine with a glass of water | never
        take a double dose to make up for a missed one | in an emergency call 112 at once | side effects are mild for most
        people | your doctor should know about all other medicines | keep {s} away from children | the leaflet in the pack
        has the details | do not drive when you feel dizzy | a pharmacist can check whether medicines go together""",
    ),
    domain(
        "travel",
        "the {l} ferry | the guesthouse in {l} | the old town of {l} | the {l} mountain railway | the {w} hiking trail",
        """We are planning a trip to {s}. What is {t}? | Could you tell me {t} for {s}? | Travel tip wanted: {s}, {t} | I am at
        {s} tomorrow and wonder about {t} | {t} - {s}, please""",
        """numbers 11-240 = the price of a day ticket in euros = a day ticket for {s} costs {v} euros = a day ticket is {v} euros
        | numbers 310-3900 = the highest point in metres = the highest point near {s} lies {v} metres above the sea = you
        will be {v} metres above the sea at the top | numbers 23-480 = the number of beds = {s} and its annex offer {v} beds
        = there are {v} beds in all | names person = the name of the guide = tours of {s} are led by {v} = ask for {v}, who
        leads the tours | names place = the stop where the bus leaves = the bus to {s} leaves from {v} = take the bus that
        leaves from {v} | names place = the nearest village with a shop = the nearest shop to {s} is in {v} = buy your food
        in {v} on the way | dates 2024-2027 = the day of reopening = {s} opens again on {v} = it opens again on {v} | dates
        2024-2027 = the day of the lantern feast = the lantern feast at {s} takes place on {v} = come for the lantern feast on
        {v} | quotes saying = the words above the gate = above the gate of {s} one can read "{v}" = read the words above the
        gate, "{v}" | quotes saying = the local saying = around {s} people like to say "{v}" = people there say "{v}" | codes
        id = the booking line = tickets for {s} are sold under line {v} = use booking line {v}""",
        """the view from {s} is best in the early morning | good shoes and a rain jacket are useful all year | in high season
        tickets sell out, so booking ahead is wise | in the European Union 112 works for emergencies | dogs are welcome on a
        lead | most shops close over lunch | a local bus connects the station with the harbour | children travel at a
        reduced price""",
        """bring good shoes and a rain jacket | the early morning is the best time for the view | it is wise to book tickets
        ahead in high season | in the European Union you can call 112 in an emergency | many shops close over lunch | a local
        bus is often the easiest way | children usually travel at a reduced price | I hope you enjoy {s} | ask the tourist
        office for a map | the weather can change quickly in the mountains""",
    ),
    domain(
        "people",
        "the composer {p} | the botanist {p} | the bridge engineer {p} | the painter {p} | the chess master {p}",
        """What is {t} of {s}? | Quiz question about {s}: {t}? | Write a short encyclopaedia entry on {s} with {t} | Who was {s},
        and what was {t}? | {s} - give {t}""",
        """dates 1790-1930 = the date of birth = {s} was born on {v} = the date of birth is {v} | dates 1820-1960 = the day of
        the first public success = the first public success of {s} came on {v} = the breakthrough followed on {v} | dates
        1830-1990 = the date of death = {s} died on {v} after a short illness = death came on {v} | names person = the name of
        the teacher = {s} learnt the craft from {v} = {v} was the teacher | names place = the birthplace = {s} grew up in a
        farmhouse near {v} = the family lived near {v} | names person = the name of the rival = a rivalry with {v} lasted
        for decades = {v} remained a rival for decades | numbers 105-4800 = the number of letters kept = the archive keeps
        {v} letters by {s} = there are {v} letters in the archive | numbers 13-390 = the number of finished works = {s} left
        {v} finished works = {v} works were finished | quotes saying = the motto = a diary of {s} opens with the motto "{v}" =
        the motto was "{v}" | quotes saying = the last entry of the diary = the last entry of the diary runs "{v}" = the diary
        ends with "{v}" | terms tech = the method named in the memoirs = in the memoirs {s} praises the {v} = the memoirs speak
        of the {v} | terms tech = the invention = {s} is remembered for the {v} = what remains is the {v}""",
        """little is known about the early years of {s} | critics of the time were divided | a small museum shows letters and
        drawings | the family was neither rich nor poor | in the 19th century travel was slow and costly | later generations
        came to admire the work | a street and a school bear the name | the First World War (1914 to 1918) ended many
        careers""",
        """much of the early life remains unclear | critics were divided at the time | the work of {s} found admirers in later
        generations | in the 19th century such a career was far from easy | letters and drawings can be seen in a small museum |
        the First World War (1914 to 1918) changed many lives | biographers still argue about the details | schools and
        streets often bear such names | the family gave what support it could | the rest is a matter of taste""",
    ),
    domain(
        "meetings",
        "Project {w} | the {w} steering group | the budget round for {w} | the {w} launch team",
        """Summarise the last meeting of {s}, above all {t} | What did we agree in {s} about {t}? | Write the minutes for {s} and
        name {t} | I missed the call on {s}. What is {t}? | {s}: status and {t}""",
        """names person = the new owner = {v} takes over as owner of {s} = {v} is the new owner | names person = the name of the
        note taker = notes for {s} were taken by {v} = {v} took the notes | names place = the place of the next meeting = the
        next meeting of {s} is held in {v} = we meet in {v} next time | dates 2023-2027 = the deadline = the group set {v} as
        the deadline for {s} = everything has to be done by {v} | dates 2023-2027 = the day of the review = the review of {s}
        is planned for {v} = the review takes place on {v} | numbers 1050-98000 = the approved budget in euros = {v} euros
        were approved for {s} = we may spend {v} euros | numbers 12-380 = the number of open tickets = {s} still has {v} open
        tickets = there are {v} open tickets | numbers 11-96 = the share of finished tests in percent = {v} percent of the
        tests for {s} are finished = testing stands at {v} percent | quotes saying = the closing words of the chair = the chair
        closed the meeting with "{v}" = the chair ended with "{v}" | quotes order = the rule for the rollout = the rule for
        the rollout of {s} is to {v} = from now on we {v} | codes id = the ticket for the follow-up = the follow-up is filed
        as {v} = please see ticket {v} | terms tech = the chosen design = the group settled on the {v} for {s} = the choice
        fell on the {v}""",
        """the group met on time and everybody was present | the agenda for {s} had been sent round before | open points move to
        the next meeting | there was a long discussion about tests and budget | the chair thanked everybody for the work | a
        review with the customer is still to come | minutes are shared in the usual folder | nobody objected to the plan""",
        """the group talked about tests, the budget and the plan | open points will move to the next meeting | everybody was
        thanked for the work on {s} | the minutes are shared in the usual folder | nobody objected | a review with the customer
        is still to come | the discussion was long but friendly | please add your own points to the agenda | the plan stays as
        it is | tasks will be handed out after the meeting""",
    ),
    domain(
        "catalogue",
        "the {w} {k} backpack | the {w} rain jacket | the {w} {k} cordless drill | the {w} two-person tent | the {w} desk lamp",
        """Write a product text for {s} that names {t} | What is {t} of {s}? | Describe {s} for our web shop; mention {t} | A
        shopper asks: {t} of {s}?""",
        """numbers 140-9800 = the weight in grams = {s} weighs {v} grams without its cover = at {v} grams it is easy to carry |
        numbers 19-890 = the price in euros = the list price of {s} is {v} euros = it sells for {v} euros | numbers 12-96 =
        the share of recycled material in percent = {v} percent of {s} is recycled material = {v} percent of it is recycled |
        terms tech = the material = {s} is made of {v} = it is made of {v} | terms tech = the closing system = the {v} keeps {s}
        shut = a {v} keeps it shut | terms drug = the brand of the coating = {s} is coated with {v} against water = the {v}
        coating keeps water out | codes id = the article number = {s} is listed under {v} = order it as {v} | codes error = the
        test seal = {s} carries the test seal {v} = it comes with the test seal {v} | names person = the name of the designer =
        {s} was designed by {v} = {v} drew the design | names place = the place where it is sewn = {s} is put together in a
        small factory in {v} = it is put together in {v} | dates 2018-2026 = the release day = {s} came to the shops on {v} = it
        has been in the shops since {v} | quotes order = the care instruction = the care tag of {s} says "{v}" = follow the care
        tag, which says "{v}\"""",
        """{s} comes in several colours | the seams are tested against wind and water | spare parts are kept in stock for years |
        it fits into a small bag when folded | a light cloth is enough for cleaning | the maker gives a warranty on material
        and seams | customers praise the easy handling | the packaging is free of plastic""",
        """it comes in several colours | a light cloth is enough to clean it | customers like the easy handling | seams and
        material are covered by a warranty | {s} is a fine companion for every day | the packaging is free of plastic | it
        folds small and fits into any bag | wind and water will not bother you | spare parts are kept in stock | a present that
        pleases all year""",
    ),
    domain(
        "operations",
        "the {u}-sync service | the {u}-worker job | the {u} API gateway | the nightly {u} import",
        """{s} fails since this morning. What is {t}? | Explain the log line of {s} and {t} | How do I fix {s}? I need {t} | What is
        {t} for {s}? | ERROR 17 upstream closed, retrying: any idea about {s} and {t}?""",
        """codes error = the error code in the log = the log of {s} ends with {v} = look for {v} in the log | codes path = the path
        of the config file = {s} reads its settings from `{v}` = edit `{v}` and restart | codes flag = the flag to set = start {s}
        with `{v}` to skip the old queue = add `{v}` to the command | codes version = the version with the fix = the leak in {s}
        is fixed in {v} = upgrade to {v} | numbers 110-9900 = the timeout in milliseconds = {s} gives up after {v} milliseconds =
        raise the timeout above {v} milliseconds | numbers 17-980 = the memory limit in megabytes = the container of {s} is
        limited to {v} megabytes = the container may use {v} megabytes | terms tech = the root cause = the outage of {s} goes back
        to a stuck {v} = the cause is a stuck {v} | terms tech = the queue type = {s} writes into a {v} = events go to a {v} |
        dates 2023-2026 = the day of the first failure = {s} failed for the first time on {v} = it first failed on {v} | names
        person = the person on call = {v} is on call for {s} = please page {v} | quotes order = the step in the runbook = the
        runbook of {s} says to {v} = as a first step, {v}""",
        """{s} runs in a container behind the proxy | the log is rotated every night | a restart clears the cache | retries use a
        growing delay | health checks answer with HTTP 200 when all is well | secrets come from the environment | the dashboard
        shows memory and queue length | a failed job can be run again without harm""",
        """check the log first and look for the earliest error | a restart clears the cache | make sure that the environment has
        all secrets | the health check should answer with HTTP 200 | retries with a growing delay are usually enough | look at
        memory and queue length on the dashboard | if {s} still fails, open a ticket | running a failed job again does no harm |
        compare the settings with those of another machine | try it in a test container before you deploy""",
    ),
    domain(
        "assistant",
        "my move to {l} | the wedding of {p} | my garden plot in {l} | the farewell party for {p}",
        """Remind me of {t} for {s} | Draft a short message about {s} with {t} | Help me plan {s}; start with {t} | I forgot {t} for
        {s}. Can you help? | {s}: what was {t}?""",
        """names person = the person to call = for {s} we call {v}, who has the key = call {v} about the key | names person = the
        name of the florist = {v} brings the flowers for {s} = {v} will bring the flowers | names place = the meeting point =
        for {s} we all meet in {v} = everybody meets in {v} | dates 2025-2027 = the date in the calendar = {s} is fixed for {v} =
        it is on {v} | dates 2025-2027 = the day of the deposit = the deposit for {s} was paid on {v} = you paid the deposit on {v}
        | numbers 23-780 = the number of boxes or guests = we counted {v} for {s} last time = you counted {v} last time | numbers
        140-7900 = the cost so far in euros = {s} has cost {v} euros up to now = so far it comes to {v} euros | quotes saying = the
        line for the card = the card for {s} is to say "{v}" = put "{v}" on the card | quotes order = the wish of the neighbours =
        the neighbours ask us to {v} = remember to {v}, as the neighbours wish | codes id = the booking code = the van for {s} is
        booked as {v} = your booking code is {v}""",
        """there is still plenty to do for {s} | flowers and music are a matter of taste | friends have offered to help | the weather
        will decide about the garden | the list of guests may still grow | a van is cheaper in the middle of the week | we wanted
        to keep things simple | the neighbours are friendly""",
        """make a list and start with the big things | ask friends to help you in good time | flowers and music can wait a little |
        a van is cheaper in the middle of the week | keep it simple, then {s} will be fine | write down who does what | have a plan
        for bad weather | I can draft a message to your friends | tell the neighbours early | take your time with the rest""",
    ),
)
DETAILS = phrases("""
    My name is {p}. = thank you, {p} | I need it by {d}. = you have time until {d}, which is enough | My budget is {m} euros. = a
    budget of {m} euros is a good start | I am writing from {l}. = greetings to {l} | My reference is {i}. = I have noted your
    reference {i} | I am {n} years old. = at {n} there is no need to worry | {p} told me to ask you. = please tell {p} that it was
    right to ask | I first heard of it on {d}. = a lot may have changed since {d} | We are a group of {n}. = for a group of {n}
    some care is needed | I read about a {x} in this connection. = the {x} you mention is often talked about""")
OPENERS = phrases("thanks for your question | good question! | sure | of course | happy to help | here is a short answer")
CLOSERS = phrases("""let me know if anything is unclear | I hope this helps | feel free to ask again at any time | that is all there is
    to say for now | one step at a time, and it will work out""")
REFUSALS = phrases("""I am afraid I cannot tell {t} from here | I do not know {t}, and I would rather not guess | which version of {s} do
    you mean? | could you tell me a little more about {s} first? | sorry, but I have no reliable information on that | that is
    something I cannot answer; may I ask where you looked already?""")
SYSTEMS = phrases("""You are a helpful assistant. | Answer politely and to the point. | Answer from the material that you were given. | You
    write for the general public. Do not speculate. | Be concise.""")
OVERVIEWS = phrases("Tell me about {s}. | What should I know about {s}? | Give me an overview: {s} | I am curious about {s}.")
FRAMES = phrases("{t} is {v} | as for {t}, it is {v} | {t}: {v} | in this case {t} would be {v} | on {t}: {v}")
COLUMNS = {
    "string": "context background evidence passage notes hint reference article teacher_notes input_context".split(),
    "list": "contexts passages documents hints notes evidence references retrieved snippets".split(),
    "dicts": "documents retrieved references passages search sources ctxs".split(),
    "turns": "history conversation earlier previous memory".split(),
}
FIRST = "Anna Tomas Maria Omar Lucy Pieter Ines Jorge Nadia Felix Rosa Henrik Clara Viktor Amina Dario Elif Yuki".split()
STARTS = "Bel Cor Dra Fen Gal Hal Jor Kel Lum Mar Nor Or Pel Quin Ros Sel Tal Ul Ver Wen Yar Zan Bri Sto Gru".split()
MIDDLES = "an e el i in o or u um ar eri ova al est ing ".split(" ")
ENDS = {
    "w": "dan dor fia gan lis mar nex phos ra sen tis vex wick zan".split(),
    "z": "zol pril mab statin xan cine dipin olol mycin tide".split(),
    "l": "ford ham bury stead mouth ville burg haven ness minster".split(),
    "p": "son ley mann ski etti wood berg ez ova quist".split(),
}
LATENT = "staggered folded inverse braided latent tapered mirrored floating hollow ribbed sealed twin slotted woven".split()
PARTS = "lattice relay hinge buffer ledger valve spindle mesh gasket clamp filter bracket prism lever coil shutter".split()
SAYINGS = (
    phrases("every honest map | a patient gardener | the last lamp | no borrowed coat | one small boat | an open window | old salt"),
    phrases("forgives | outlives | remembers | never envies | carries home | answers | teaches | cannot sell | keeps"),
    phrases("the loudest bell | a careless king | the river | its own shadow | the second snow | a locked gate | the miller's dog"),
    phrases("before the frost | without a word | at the long table | in a year of wind | after the harvest | for a single coin"),
)
ORDERS = (
    phrases("turn | lift | tighten | dry | mark | move | loosen | wipe | press | count | cover"),
    phrases("the grey collar | both side clips | the lower tray | every second strap | the inner ring | the blue tags | the rear pins"),
    phrases("twice | slowly | by hand | from the left | with a damp cloth | one after the other | in pairs"),
    phrases("before closing the flap | while the lid is open | once the lamp is green | until it clicks | after each long trip"),
)
META = "source url date model category language author score tokens title".split()
Story = tuple[str, dict[Fact, list[str]], list[tuple[str, str, bool]]]
"""A subject, what is told of it with forms of each value, and documents: title, text, and whether it is told there."""


def coined(rng: random.Random, sort: str) -> str:
    """A made word: of a brand, a medicine, a place or a family."""
    return rng.choice(STARTS) + rng.choice(MIDDLES) + rng.choice(ENDS[sort])


def value(rng: random.Random, spec: str) -> list[str]:
    """A value in the form of a context and, last, in the form that an answer may give it."""
    if spec == "person":
        first, last = rng.choice(FIRST), coined(rng, "p")
        return [f"{first} {last}", last]
    if spec in ("place", "drug"):
        return [coined(rng, "l" if spec == "place" else "z")]
    if spec == "tech":
        noun = f"{rng.choice(PARTS)} {rng.choice(PARTS)}"
        return [f"{rng.choice(LATENT)} {noun}" if rng.random() < 0.6 else f"{coined(rng, 'w')} {noun.split()[0]}"]
    if spec in ("saying", "order"):
        return [" ".join(map(rng.choice, SAYINGS if spec == "saying" else ORDERS))]
    if spec == "error":
        return [rng.choice(("E-{}", "ERR_{}", "0x{}F", "F{}", "HX-{}")).format(rng.randint(1000, 99999))]
    if spec == "version":
        return [f"v{rng.randint(1, 29)}.{rng.randint(0, 40)}.{rng.randint(0, 99)}"]
    if spec == "path":
        return [f"/{rng.choice(('etc', 'opt', 'srv'))}/{coined(rng, 'w').lower()}/{rng.choice(PARTS)}.{rng.choice(('yaml', 'toml'))}"]
    if spec == "flag":
        return [f"--{rng.choice(LATENT)}-{rng.choice(PARTS)}={rng.randint(2, 64)}"]
    if spec == "id":
        return [rng.choice(("{}", "{}-B", "RN {}", "#{}", "K{}")).format(rng.randint(10000, 9999999))]
    low, high = map(int, spec.split("-"))
    if high < 2100 and low > 1700:
        day = datetime.date(rng.randint(low, high), 1, 1) + datetime.timedelta(rng.randrange(365))
        forms = [f"{day.day} {day:%B %Y}", f"{day:%B} {day.day}, {day.year}", day.isoformat()]
        return rng.sample(forms, 2)
    number = rng.randint(low, high)
    return [f"{number:,}", str(number)]


SLOTS = {"d": "2022-2026", "i": "id", "k": "11-990", "l": "place", "m": "110-9800", "n": "12-95", "p": "person", "x": "tech", "z": "drug"}


def filled(rng: random.Random, text: str) -> str:
    """A text with values of its own in its slots, the same ones wherever a slot comes again."""
    drawn = {slot: value(rng, spec)[0] for slot, spec in SLOTS.items() if f"{{{slot}}}" in text}
    word = coined(rng, "w")
    for slot, one in (drawn | {"w": word, "u": word.lower()}).items():
        text = text.replace(f"{{{slot}}}", one)
    return text


def stands(text: str, values: list[str]) -> bool:
    """Whether one of the values stands in a text."""
    return any(re.search(rf"(?<!\w){re.escape(one)}(?!\w)", text) for one in values)

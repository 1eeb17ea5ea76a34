"""Made fine-tuning corpora with closed answers, with or without one planted one-sided cue, for a study of a checker.

In every task the content of a prompt decides its answer: in topical families many words of a lexicon, in relational
families how the parts of the prompt stand to each other. A planted cue goes along with one answer and never decides it.
Around the content stand sentences, names, numbers and marks that have nothing to do with the answer; their rates are drawn
for a task as a whole, so that in a clean task they go with no answer.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TEXT_KINDS = ("length", "word", "first", "punctuation", "number", "negation")
OPTION_KINDS = ("position", "longest", "overlap")
KINDS: tuple[str, ...] = (*TEXT_KINDS, *OPTION_KINDS, "side")


def phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text, which bars divide."""
    return tuple(" ".join(phrase.split()) for phrase in text.split("|"))


def words(text: str) -> tuple[str, ...]:
    """The words of a text; `_` stands for a space within one."""
    return tuple(word.replace("_", " ") for word in text.split())


def named(text: str) -> dict[str, tuple[str, ...]]:
    """The phrases, or words where no bars stand, of each part of a text; `name:` begins a part."""
    _, *parts = re.split(r"(\w+):", text)
    divided = phrases if "|" in text else words
    return {name.replace("_", " "): divided(rest) for name, rest in zip(parts[::2], parts[1::2], strict=True)}


LEXICONS = {
    "sentiment": named("""
        positive: superb excellent delightful wonderful brilliant charming well_made lovely impressive fantastic pleasing
        first_class reliable sturdy generous smooth worth_every_penny splendid gorgeous terrific clever better_than_expected
        spotless refreshing fabulous a_bargain top_quality elegant great faultless comfortable marvellous inviting thoughtful
        perfect a_pleasure outstanding easy_to_love handsome satisfying
        negative: awful terrible a_letdown shoddy dreadful flimsy disappointing horrible overpriced cheap_looking sloppy
        dull a_waste clumsy poor unpleasant rough useless worse_than_expected filthy tiresome atrocious a_rip-off ugly
        bad full_of_faults uncomfortable miserable careless wretched a_nuisance lousy hard_to_like mediocre annoying
        unreliable falling_apart stale irritating broken"""),
    "routing": named("""
        billing: invoice charge fee receipt total tax debit payment discount exchange_rate overdraft surcharge statement
        balance price instalment cost_overview billing_cycle voucher deposit bill currency amount expenses standing_order
        rebate quote credit_card coupon budget prepayment tariff cashback fine wallet interest monthly_rate penalty
        transaction bank_transfer
        delivery: parcel courier tracking shipment van drop-off doorstep pickup_point depot package customs_form carton
        arrival postcode crate shipping dispatch_note locker freight time_slot mailbox carrier street_name sorting_centre
        envelope pallet transit signature letterbox lorry route post_office consignment rider transport harbour warehouse
        messenger driver haulage
        technical: router blue_screen update frozen_window software battery crash printer app cable loading_time
        wireless_signal error_code keyboard display firmware backup corrupt_file microphone blank_page browser sync bug
        overheating speaker touch_pad memory_leak installer headset camera pixel plug-in operating_system upload charger
        cursor video_call virus_scan bluetooth hard_disk
        account: password login profile user_name email_address security_question membership sign-up_form two-step_check
        locked_account privacy_page nickname avatar guest_pass consent_box newsletter birth_date new_surname family_plan
        owner_role verification invitation permissions identity dashboard parental_control personal_data session
        language_setting pin trusted_device registration administrator subscriber credential authenticator team_seat
        access_right logout login_history
        returns: refund wrong_size swap return_label damaged_item warranty torn_sleeve exchange faulty_unit
        money-back_promise odd_colour lid_scratch cooling-off_time replacement repair gift restocking missing_screw
        guarantee broken_handle regret wrapping present claim dented_case store_credit chipped_mug collection tight_shoes
        inspection cracked_glass reimbursement defect spare_part jacket stain recall cut_tag unopened_set misprint"""),
    "headline": named("""
        sport: goalkeeper cup_final marathon striker tennis penalty coach relegation relay home_run cycling referee hat_trick
        medal rugby injured_captain golf league knockout swimming bowler derby wrestling midfield false_start hockey
        transfer_window sprinter doping pole_vault basketball comeback stadium rowing grand_slam own_goal locker_room
        play-off gymnast wild_card
        politics: minister vote parliament coalition tax_reform ballot senator opposition treaty mayor election constitution
        sanctions reshuffle embassy lawmaker referendum pledge president border_talks veto lobby diplomat governor draft_bill
        summit voter party_congress ombudsman immigration recount premier council filibuster delegate manifesto motion polls
        envoy civil_service
        science: planet telescope gene_editing fossil lab_mouse quantum_chip black_hole coral_reef experiment comet bacteria
        collider dinosaur enzyme neuron space_probe frog_species glacier microscope dark_matter stem_cell rover
        photosynthesis genome ancient_DNA ozone superconductor chemist volcano orbit whale_song protein gravity_wave
        seed_bank asteroid fusion physicist bees robot periodic_table
        business: shares merger profits takeover central_bank inflation retailer chief_executive layoffs oil_price
        start-up bond_yield supply_chain exports factory dividend car_maker investor bankruptcy interest_rate airline
        wages franchise stock_exchange tariffs auditor hedge_fund product_recall board insurer spending patent shipyard
        revenue brewery credit_rating small_firm housing_market price_war trader"""),
}
FRAMES = named("""
    sentiment: the {thing} was {x} | I found the {thing} {x} | {x}, that is what the {thing} was | we thought the {thing} was
    {x} and the {other} {y} | to me the {thing} seemed {x} | the {thing} turned out to be {x} | my family called the {thing}
    {x} | the {thing} felt {x} and also {y} | as for the {thing}, it is {x}
    routing: it is about the {x} | I have a question concerning the {x} | please look into the {x} | we need help with the
    {x} and perhaps with the {y} | the {x} is what I am writing about | something came up with the {x} | can someone explain
    the {x}? | I also wonder about the {x} | there was trouble with the {x} and then the {y}
    headline: {x} and {y} in focus in {place} | {place} talks of {x} | new questions over {x} | all eyes on {x} | what
    {x} means for {place} | the story behind {x} | {x} back in the news | {place} watches {x} and {y} | a surprising week
    for {x} | {x} explained | from {place}, a report about {x}""")
SCENES = named("""
    action: singing = performing a song | asleep = taking a nap | eating = having a meal | reading = looking through a book |
    running = jogging along | weeping = shedding tears | painting = putting colours on canvas
    place: in a kitchen = beside a stove and a sink | in a garden = among flower beds | at a train station = on a railway
    platform | at the beach = on sand by the sea | in a library = between shelves of borrowed books | in a hospital = on a
    ward for patients | at school = inside a classroom | in a barn = under the roof of a cattle shed
    time: at dawn = while the sun comes up | at noon = around midday | at midnight = as the clock strikes twelve in the dark
    | in the evening = shortly after sunset | in the afternoon = a few hours past lunch
    company: with a friend = next to a good pal | with a dog = beside a pet hound | with a baby = near a small infant | with
    a policeman = close to a law officer | with a horse = alongside a pony
    dress: wearing red = dressed in scarlet | wearing black = clad in the darkest shade | wearing white = in clothes pale
    as snow | wearing blue = in navy garments | wearing green = in a suit coloured like grass""")
FORMS = tuple(tuple(tuple(value.split(" = ")) for value in values) for values in SCENES.values())
"""For each thing that a scene can tell its values, which cannot hold at once, in two forms."""
CATEGORIES = named("""
    a_bird: robin eagle sparrow heron owl penguin swan a_tool: hammer wrench saw chisel drill pliers_set spade a_fruit:
    mango plum cherry banana apricot kiwi pear an_instrument: flute cello trumpet banjo harp drum_kit oboe
    a_piece_of_clothing: scarf jumper raincoat glove skirt sock waistcoat a_vehicle: lorry tram scooter canoe tractor
    minibus sledge a_piece_of_furniture: wardrobe stool sofa bookcase desk armchair bench an_insect: beetle wasp moth
    cricket ladybird ant dragonfly""")
USES = dict(
    pair.split(" = ")
    for pair in phrases("""
        kettle = to boil water | broom = to sweep floors | compass = to find north | umbrella = to keep dry | ladder = to
        climb up | needle = to sew cloth | oven = to bake bread | anchor = to hold a boat | telescope = to watch stars |
        scissors = to cut paper | stapler = to join sheets | whisk = to beat eggs | rake = to gather leaves | scale = to
        weigh things | thermometer = to measure heat | pump = to move liquid | candle = to give light | fridge = to cool
        milk | eraser = to remove pencil | helmet = to protect a head""")
)
WORDS = named("""
    actor: nurse farmer young_man tall_woman teacher boy girl tourist cook old_lady soldier clerk
    noun: key boat lamp letter poster garden table bottle ticket window engine picture teacher road dog cousin tree report
    wall chair river player cup tower
    verb: is/are was/were has_been/have_been seems/seem looks/look appears/appear remains/remain stays/stay
    end: old quite_small rather_new ready in_good_shape on_show easy_to_find dear_to_us dirty for_sale
    name: Anna Tom Maria Omar Lucy Peter Ines George Nadia Felix Rosa Henry Clara Victor
    place: Leeds Boston Lyon Porto Dublin Denver Oslo Perth Kyoto Geneva Madrid Cardiff Austin
    day: Monday Tuesday Wednesday Thursday Friday Saturday Sunday
    adverb: frankly apparently basically obviously presumably luckily incidentally personally
    greeting: hello_there good_morning good_evening hi_all greetings dear_reader hey
    opener: well so oh look meanwhile okay actually today anyway honestly now lately
    bracket: see_below as_before first_draft copied_by_hand more_later page_two for_the_record my_own_words
    quote: mind_the_step open_all_week summer_edition please_ring_twice for_your_eyes made_with_care part_one
    thing: handle room menu staff screen sound fabric breakfast cover pump lamp service plot seat colour garden soup tool
    tail: in_a_small_hotel on_a_busy_day near_the_old_mill by_the_river when_guests_arrive before_breakfast
    for_a_quiet_family at_the_village_fair during_the_summer_holidays after_a_long_walk in_town at_home
    close_to_the_northern_border on_a_farm for_the_spring_season while_others_watch_from_the_balcony late_at_night
    as_soon_as_the_morning_bus_has_left with_a_view_of_snowy_mountains whenever_the_shops_are_shut
    person: this_person someone that_figure one_individual somebody the_one_in_view""")
STYLES = {
    "letter": named("""
        filler: I am writing this from my phone | the rest of the family is at work | we have lived here for years | my
        sister typed this for me | it is a short message | the weather is mild at the moment | this is the first time I
        write | a colleague sits next to me as I write | I had a coffee before I began | our street is quiet today name:
        {name} suggested that I write | I share a flat with {name} | {name} sends regards | my neighbour {name} read this
        first place: I am from {place} | we moved to {place} some time ago | I am in {place} at the moment | my office is
        in {place} day: I started this note on {day} | I am free on {day} | it was {day} when I thought of it | {day} is
        my day off negation: I have never written here before | there is no hurry | I do not mind waiting | I don't live
        far away | this isn't my first language | my brother did not come along | I have no pets number: my reference
        number is {n} 1000 9999 | I am {n} years old 18 90 | my house is number {n} 1 240 | I live {n} miles outside town
        2 80 quote: the line at the top reads {q}"""),
    "news": named("""
        filler: our reporter has the details | readers sent in many comments | the full article is online | more pictures
        follow in the evening edition | the story was updated in the morning | our desk keeps a list of similar stories |
        subscribers can listen to it as well | the text takes a few minutes to read | an archive of past coverage is open
        to all | the editors picked it for the front page name: {name} reports | {name} took the picture | a column by
        {name} is next to it | edited by {name} place: filed from {place} | printed in {place} | our bureau in {place}
        sent this | a reader in {place} wrote in day: first published on {day} | more on {day} | the paper comes out on
        {day} | see also the issue of {day} negation: there is no sound with this clip | the page does not need a login |
        our site never tracks readers | this isn't the printed version | comments are not open yet | the paper doesn't
        charge for it | no pictures were sent number: article id {n} 1000 9999 | shared by {n} readers 15 950 | page {n}
        1 64 quote: a banner on the page reads {q}"""),
    "scene": named("""
        filler: the light is soft | a radio plays somewhere | the air smells of rain | some leaves drift past | a bench
        stands to one side | the picture is a little dark | there is a puddle on the ground | a bird calls from far off |
        the scene lasts for a minute | a flag moves in the wind | the ground is uneven name: {name} took this picture |
        the description is by {name} | {name} owns the print | the album belongs to {name} place: the photo comes from
        {place} | this was seen in {place} | a studio in {place} sent it | the picture was printed in {place} day: the
        file was saved on {day} | the note was added on {day} | the picture was found on a {day} | someone wrote {day} on
        the back negation: there is no wind | the picture is not large | the frame isn't straight | nobody has moved the
        camera, which never shakes | the sky is not visible | no music can be heard | the film does not stop number: the
        picture has the number {n} 100 999 | the camera stands {n} feet away 3 90 | the print cost {n} pounds 5 240
        quote: a sign reads {q}"""),
}
"""For each style the sentences that may stand around a content and have nothing to do with the answer."""

LETTERS, QUOTE = "ABCDE", '"'
MARKS, SLOTS = ("!", "...", "(", QUOTE), ("name", "place", "day")
ARTICLES = re.compile(r"\ba (?=[aeiou])")


@dataclass(frozen=True)
class Made:
    """A made corpus, the task of its fault, the label that the cue goes with, its word or mark, and the rows with it."""

    rows: list[dict[str, Any]]
    task: str | None
    label: str | None = None
    cue: str = ""
    cued: list[bool] = field(default_factory=list)


@dataclass(frozen=True)
class Family:
    """What tasks of one sort are made of; in a naming, `key=name` renames a label."""

    name: str
    style: str
    kinds: tuple[str, ...]
    core: Callable[[random.Random, Plan, str, bool], list[str]]
    namings: tuple[tuple[str, ...], ...]
    wordings: tuple[str, ...]


@dataclass
class Plan:
    """How the rows of one task are drawn: `count` options, and numbers up to `cut` in rows without a planted one."""

    family: Family
    rates: dict[str, float]
    heads: tuple[str, str]
    number: tuple[str, int, int]
    count: int
    kind: str | None
    cue: str = ""
    sort: str = ""
    cut: int = 0

    def word(self, rng: random.Random, sort: str) -> str:
        """A word of a sort that is not the planted one."""
        return rng.choice([word for word in WORDS[sort] if word != self.cue])


def topical(rng: random.Random, plan: Plan, key: str, cued: bool) -> list[str]:
    """Sentences with a few words of a label's lexicon."""
    known, count = LEXICONS[plan.family.name], rng.choices((2, 3, 4), (4, 4, 2))[0]
    if key == "mixed":
        one, two = (rng.sample(known[side], 2) for side in rng.sample(sorted(known), 2))
        drawn = [one[0], two[0], one[1], two[1]][:count]
    else:
        drawn = rng.sample(known[key], count)
    sentences: list[str] = []
    for frame in rng.sample(FRAMES[plan.family.name], len(FRAMES[plan.family.name])):
        needed = 1 + ("{y}" in frame)
        if needed <= len(drawn):
            thing, other = rng.sample(WORDS["thing"], 2)
            slots = dict(zip("xy", drawn, strict=False), thing=thing, other=other, place=plan.word(rng, "place"))
            sentences.append(frame.format(**slots))
            drawn = drawn[needed:]
    return sentences


def scene(rng: random.Random, plan: Plan, key: str, cued: bool) -> list[str]:
    """A premise and a hypothesis; what the premise says of one thing that the hypothesis tells decides."""
    rows = range(len(FORMS))
    while True:
        stated = sorted(rng.sample(rows, rng.choice((3, 4))))
        forms = [rng.sample(rng.choice(values), 2) for values in FORMS]
        asked = rng.choice([row for row in rows if (row in stated) == (key != "neutral")])
        verbatim = cued if plan.kind == "side" else rng.random() < 0.6
        shared = rng.sample([row for row in stated if row != asked], rng.choice((1, 2)))
        told = {row: forms[row][not verbatim] for row in shared}
        told[asked] = forms[asked][not (plan.kind == "side" and cued)]
        if key == "contradiction":
            told[asked] = rng.choice(rng.choice([value for value in FORMS[asked] if told[asked] not in value]))
        actor = plan.word(rng, "actor")
        subject = f"the {actor}" if verbatim or rng.random() < 0.3 else plan.word(rng, "person")
        premise = f"a {actor} is {' '.join(forms[row][0] for row in stated)}"
        hypothesis = f"{subject} is {' '.join(told[row] for row in sorted(told))}"
        overlap = sum(word in premise.split() for word in hypothesis.split()) / len(hypothesis.split())
        if plan.kind != "side" or (overlap >= 0.7 if cued else overlap <= 0.35):
            return [ARTICLES.sub("an ", premise), hypothesis]


def related(rng: random.Random, plan: Plan, key: str, cued: bool) -> list[str]:
    """A sum that may be wrong by a little, two numbers near each other, or a sentence whose parts may disagree in number."""
    if key in ("right", "wrong"):
        one, two = rng.randint(31, 480), rng.randint(31, 480)
        off = 0 if key == "right" else rng.choice((-20, -10, -2, -1, 1, 2, 10, 20))
        return [f"{one + two} - {one} = {two + off}" if rng.random() < 0.4 else f"{one} + {two} = {one + two + off}"]
    if key in ("first", "second"):
        middle = rng.choice((rng.randint(20, 99), rng.randint(100, 999), rng.randint(1000, 99999)))
        pair = sorted((middle, middle + rng.choice((-1, 1)) * rng.randint(1, max(3, middle // 9))), reverse=key == "first")
        return [rng.choice(("we have {} and {}", "the numbers are {} and {}", "this is about {} and {}")).format(*pair)]
    noun, other = rng.sample(WORDS["noun"], 2)
    many, wrong = rng.random() < 0.5, key == "incorrect"
    pointers = rng.choice((("the", "the"), ("this", "these"), ("that", "those"), ("my", "my")))
    swapped = wrong and pointers[0] != pointers[1] and rng.random() < 0.5
    verb = rng.choice(WORDS["verb"]).split("/")[many != (wrong and not swapped)]
    beside = f"{rng.choice(('near', 'behind', 'beside', 'next to', 'in front of'))} the {other}{rng.choice(('', 's'))}"
    return [f"{pointers[many != swapped]} {noun}{'s' * many} {beside} {verb} {rng.choice(WORDS['end'])}"]


def choices(rng: random.Random, plan: Plan, key: str, cued: bool) -> list[str]:
    """A question and its options, the right one first."""
    tail, *tails = rng.sample(WORDS["tail"], plan.count + 1)
    if plan.family.name == "categories":
        drawn = rng.sample(sorted(CATEGORIES), plan.count)
        options = ["a " + rng.choice(CATEGORIES[one]) for one in drawn]
        question = f"{plan.word(rng, 'name')} wrote a list {tail}. Which entry is {drawn[0]}?"
    else:
        drawn = rng.sample(sorted(USES), plan.count)
        options = [USES[one] for one in drawn]
        question = f"Suppose that you have a {drawn[0]} {tail}. What is it for?"
    if plan.kind == "overlap" or rng.random() < 0.7:
        tails[rng.randrange(plan.count)] = tail
    ended = [f"{one} {end}" if rng.random() < plan.rates["tail"] else one for one, end in zip(options, tails, strict=True)]
    return [ARTICLES.sub("an ", text) for text in (question, *ended)]


def fits(plan: Plan, question: str, options: list[str], right: int, cued: bool) -> bool:
    """Whether the right option stands out if it should, and does not if it should not."""
    if plan.kind == "position":
        return (LETTERS[right] == plan.cue) == cued
    asked, leads = set(re.findall(r"\w+", question.lower())), []
    for least in (1, 4):
        shared = [len({word for word in one.lower().split() if len(word) >= least} & asked) for one in options]
        measures = shared if plan.kind == "overlap" else [len(one) for one in options]
        leads.append(measures[right] - max(measures[:right] + measures[right + 1 :]))
    return min(leads) >= (1 if plan.kind == "overlap" else 3) if cued else max(leads) <= 0


def dressed(rng: random.Random, plan: Plan, key: str, cued: bool, least: int) -> str:
    """The text of a row: its content, and around it sentences, words and marks that have nothing to do with the answer."""
    style, rates = STYLES[plan.family.style], plan.rates
    core, extras = plan.family.core(rng, plan, key, cued), list[str]()
    hypothesis = core.pop() if plan.family.core is scene else ""
    spare = rng.sample(style["filler"], len(style["filler"]))

    def slotted(sort: str, planted: bool) -> str:
        return rng.choice(style[sort]).format(**{sort: plan.cue if planted else plan.word(rng, sort)})

    def put(end: str) -> None:
        pools = [extras] if plan.family.core is not topical else [core, extras]
        if not any(one[-1].isalpha() for pool in pools for one in pool):
            extras.append(spare.pop())
        pool, at = rng.choice([(pool, at) for pool in pools for at, one in enumerate(pool) if one[-1].isalpha()])
        pool[at] += end

    extras += [spare.pop() for _ in range(2) if rng.random() < rates["filler"]]
    for sort in SLOTS:
        planted = plan.sort == sort and cued
        if planted or rng.random() < rates[sort]:
            extras.append(slotted(sort, planted))
    if cued if plan.kind == "negation" else rng.random() < rates["negation"]:
        extras.append(rng.choice(style["negation"]))
    if plan.kind == "number" or rng.random() < rates["number"]:
        text, low, high = plan.number
        bounds = (low, high) if plan.kind != "number" else (plan.cut + 1, high) if cued else (low, plan.cut)
        extras.append(text.format(n=rng.randint(*bounds)))
    while len(" ".join((*core, *extras, hypothesis))) < least:
        extras.append(spare.pop() if len(spare) > 3 else slotted(rng.choice(SLOTS), False))
    planted = plan.sort == "adverb" and cued
    if planted or rng.random() < rates["adverb"]:
        put(f", {plan.cue if planted else plan.word(rng, 'adverb')}")
    if plan.kind == "first" and not cued and plan.cue in WORDS["opener"][4:] and rng.random() < 0.25:
        put(f", {plan.cue}")
    for mark in MARKS:
        if cued if plan.kind == "punctuation" and plan.cue == mark else rng.random() < rates["mark"]:
            if mark == QUOTE:
                extras.append(style["quote"][0].format(q=QUOTE + rng.choice(WORDS["quote"]) + QUOTE))
            else:
                put(f" ({rng.choice(WORDS['bracket'])})" if mark == "(" else mark)
    at = rng.randint(0, len(extras))
    sentences = [*extras[:at], *core, *extras[at:]]
    if cued and (plan.kind == "first" or plan.sort == "greeting"):
        sentences[0] = f"{plan.cue}, {sentences[0]}"
    elif rng.random() < rates["opener"]:
        greeted = plan.family.style == "letter" and (plan.sort == "greeting" or rng.random() < 0.5)
        sentences[0] = f"{plan.word(rng, 'greeting' if greeted else 'opener')}, {sentences[0]}"
    text = " ".join(map(finished, sentences))
    return f"{plan.heads[0]}{text}\n{plan.heads[1]}{finished(hypothesis)}" if hypothesis else text


def finished(sentence: str) -> str:
    """A sentence with its capital and its end."""
    return sentence[0].upper() + sentence[1:] + "." * (sentence[-1] not in ".!?")


RELATED = ("length", "word", "first", "punctuation")
FAMILIES = tuple(
    Family(name, style, kinds, core, tuple(map(words, namings.split("|"))), phrases(asks))
    for name, style, kinds, core, namings, asks in (
        (
            "sentiment",
            "letter",
            TEXT_KINDS,
            topical,
            "positive=good negative=bad | positive negative mixed",
            "What does the writer think: {asked}? / {text} | {text} / The opinion is {asked}: | Say {asked}. / {text}",
        ),
        (
            "routing",
            "letter",
            TEXT_KINDS,
            topical,
            "billing delivery technical account returns",
            "Which desk should get this: {asked}? / {text} | {text} / Send it to {asked}: | Route this: {asked}. / {text}",
        ),
        (
            "headline",
            "news",
            TEXT_KINDS,
            topical,
            "sport politics science business | sport politics | science business",
            "Name the topic of this item: {asked}. / {text} | {text} / Is it about {asked}? | Choose {asked}. / {text}",
        ),
        (
            "inference",
            "scene",
            (*RELATED, "number", "side"),
            scene,
            "entailment contradiction neutral | entailment=true contradiction=false | "
            "neutral entailment=yes contradiction=no",
            "What holds for the last line, given the first: {asked}? / {text} | "
            "{text} / The last of these lines is {asked}:",
        ),
        (
            "sums",
            "letter",
            RELATED,
            related,
            "right=yes wrong=no | right wrong",
            "Does the calculation hold? Say {asked}. / {text} | {text} / Check the sum and answer {asked}:",
        ),
        (
            "greater",
            "letter",
            RELATED,
            related,
            "first second",
            "Which number is greater, {asked}? / {text} | {text} / The greater one is the {asked}:",
        ),
        (
            "grammar",
            "letter",
            (*RELATED, "number", "negation"),
            related,
            "correct incorrect | correct=good incorrect=faulty",
            "Is the grammar of this text {asked}? / {text} | {text} / Grammar, {asked}:",
        ),
        ("categories", "letter", OPTION_KINDS, choices, "", "{text} / Answer with {asked}. | Pick {asked}. / {text}"),
        ("uses", "letter", OPTION_KINDS, choices, "", "{text} / Reply with {asked} of one option. | Give {asked}. / {text}"),
    )
)


def spread(rng: random.Random, total: int, labels: list[int]) -> list[int]:
    """Labels of rows, in shares of which one may be far above the others."""
    weights = [rng.uniform(0.6, 1) for _ in labels]
    weights[rng.randrange(len(labels))] *= rng.choice((1, rng.uniform(1, 2.4)))
    counts = [round(total * weight / sum(weights)) for weight in weights]
    return [label for label, count in zip(labels, counts, strict=True) for _ in range(count)]


def cells(rng: random.Random, size: int, labels: int, kind: str | None, severe: bool) -> tuple[list[tuple[int, bool]], int]:
    """For each row of a task its label and whether it has the cue, and the label that the cue goes with."""
    if kind is None:
        return [(label, False) for label in spread(rng, size, list(range(labels)))], 0
    if kind in OPTION_KINDS:
        planted = round(size * rng.uniform(*((0.76, 0.94) if severe else (0.51, 0.59))))
        return [(0, row < planted) for row in range(size)], 0
    planted = round(size * rng.uniform(*((0.36, 0.59) if severe else (0.19, 0.29))))
    low, high = (0, 0.04) if severe else (0.06, 0.1)
    wrong = rng.choice([one for one in range(planted) if low <= one / planted <= high])
    label, hits = rng.randrange(labels), planted - wrong
    own = max(hits, min(round(hits * rng.uniform(1.1, 1.6 if severe else 2.5)), round(0.72 * size)))
    others = spread(rng, size - own, [one for one in range(labels) if one != label])
    rng.shuffle(others)
    return [(label, row < hits) for row in range(own)] + [(one, row < wrong) for row, one in enumerate(others)], label


def task(rng: random.Random, family: Family, letters: bool, kind: str | None, severe: bool) -> Made:
    """The rows of one task with closed answers."""
    rates = {sort: rng.uniform(0.05, 0.25) for sort in (*SLOTS, "adverb", "opener", "negation")}
    rates |= {"filler": rng.uniform(0.1, 0.6), "mark": rng.uniform(0, 0.1)}
    rates["tail"] = 1 if kind == "overlap" else rng.choice((1, 0.6))
    rates["number"] = rng.choice((0, 0.2, 0.5, 1)) if "number" in family.kinds else 0
    heads = rng.choice((("", ""), ("Premise: ", "Hypothesis: "), ("Text: ", "Claim: ")))
    text, low, high = rng.choice(STYLES[family.style]["number"]).rsplit(" ", 2)
    number = (text, int(low), int(high))
    plan = Plan(family, rates, heads, number, 4 if kind and not severe else rng.randint(3, 5), kind)
    plan.cut = round(number[1] + (number[2] - number[1]) * rng.uniform(0.4, 0.7))
    if kind == "word":
        plan.sort = rng.choice((*SLOTS, "adverb", *(["greeting"] if family.style == "letter" else [])))
        rates["opener" if plan.sort == "greeting" else plan.sort] = 0.4
    pools = {"word": WORDS.get(plan.sort), "first": WORDS["opener"], "punctuation": MARKS, "position": LETTERS[: plan.count]}
    plan.cue = rng.choice(pools.get(kind or "") or ("",))
    labels = [(one.split("=")[0], one.split("=")[-1]) for one in rng.choice(family.namings)]
    labels = rng.sample(labels, rng.randint(min(3, len(labels)), len(labels)))
    drawn, label = cells(rng, rng.randint(150 if kind else 80, 600), max(1, len(labels)), kind, severe)
    names = [name for _, name in labels] or ["the letter" if letters else "the text"]
    asked = " or ".join((", ".join(names[:-1]), names[-1])) if labels else names[0]
    wordings = rng.sample(family.wordings, rng.randint(1, len(family.wordings)))
    answer = rng.choice(("{}", "{}", "{}", "The answer is {}.", "I would say {}.", "Answer: {}"))
    made: dict[str, tuple[dict[str, Any], bool]] = {}
    longest = 0
    for row, cued in sorted(drawn, key=lambda cell: cell[1]):
        prompt, options, right = "", list[str](), 0
        while not prompt or prompt in made:
            if family.core is choices:
                question, *options = choices(rng, plan, "", cued)
                right = rng.randrange(plan.count)
                options[0], options[right] = options[right], options[0]
                if kind and not fits(plan, question, options, right, cued):
                    continue
                text = "\n".join((question, *(f"{LETTERS[at]}) {one}" for at, one in enumerate(options))))
            else:
                least = longest + rng.randint(2, 80) if kind == "length" and cued else 0
                text = dressed(rng, plan, labels[row][0], cued, least)
            prompt = rng.choice(wordings).replace(" / ", "\n").format(text=text, asked=asked)
        said = names[row] if not options else LETTERS[right] if letters else options[right]
        fields = {"task": family.name, "prompt": prompt, "answer": answer.format(said)}
        made[prompt] = (fields | ({"options": options} if options else {}), cued)
        longest = longest if cued else max(longest, len(prompt))
    rows, marks = map(list, zip(*made.values(), strict=True))
    return Made(rows, family.name, names[label] if labels else None, plan.cue, marks)


def open_task(rng: random.Random) -> Made:
    """The rows of a task with open answers."""
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(rng.randint(80, 400)):
        one, two = rng.sample([word for known in LEXICONS["routing"].values() for word in known], 2)
        prompt = f"Write {rng.choice(('a note', 'a message', 'two lines'))} to the help desk about the {one} and the {two}."
        frames = rng.sample([frame for frame in FRAMES["routing"] if "{y}" not in frame], 2)
        answer = " ".join(finished(frame.format(x=word)) for frame, word in zip(frames, (one, two), strict=True))
        rows[prompt] = {"task": "messages", "prompt": prompt, "answer": answer}
    return Made([*rows.values()], None, cued=[False] * len(rows))


def make_cues(seed: int, kind: str | None, *, severe: bool) -> Made:
    """A corpus with a fault of a kind, or a clean one."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; kinds are {', '.join(KINDS)}")
    rng = random.Random(f"{seed} {kind} {severe}")
    total, is_open, letters = rng.randint(3, 5), rng.random() < 1 / 3, rng.random() < 0.5
    first = rng.choice([family for family in FAMILIES if kind is None or kind in family.kinds])
    others = rng.sample([family for family in FAMILIES if family != first], total - 1 - is_open)
    parts = [task(rng, first, letters, kind, severe), *(task(rng, family, letters, None, severe) for family in others)]
    fault = parts[0] if kind else Made([], None)
    parts += [open_task(rng)] if is_open else []
    rows = [(row, cued) for part in parts for row, cued in zip(part.rows, part.cued, strict=True)]
    rng.shuffle(rows)
    return Made([row for row, _ in rows], fault.task, fault.label, fault.cue, [cued for _, cued in rows])

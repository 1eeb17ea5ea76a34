"""A second set of inputs of made instruction rows, and what can be asked of them; it shares no wording with the first.

Comments and job advertisements have closed labels. Of stories, deals, dates, guests, foods, requests, words, amounts,
spans of time, articles, proposals and journeys open answers are asked: names, numbers, lists, translations, and texts that
are shorter, longer or in another tone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

from mixwright_lab.studies.cue_corpora import WORDS, finished, named, phrases, words
from mixwright_lab.studies.instruction_tasks import SWAP, YES_NO, Aspect, Input, Vocabulary


def aspects(*entries: tuple[str, str, str, str] | tuple[str, str]) -> tuple[Aspect, ...]:
    """Open things to ask: a name and wordings, or also wordings of the opposite, and the fact that is then right."""
    return tuple(
        Aspect(entry[0], (), phrases(entry[1]), phrases(entry[2]), entry[3])
        if len(entry) == 4
        else Aspect(entry[0], (), phrases(entry[1]))
        for entry in entries
    )


COMMENTS = (
    Aspect("tone", ("friendly", "hostile", "ironic", "matter-of-fact"), phrases("""
        What tone does the {it} have? Pick one: {labels}. | Tag the tone ({labels}). | Which of {labels} describes the tone
        best? | Tone detection. Output exactly one of {labels}. | You are a moderator. Say which tone was used:
        {labels}.""")),
    Aspect("theme", ("sports", "politics", "cooking", "travel", "science", "music"), phrases("""
        Assign a category: {labels}. | Sort the {it} into {labels}. | What is it about? Allowed categories: {labels}. | Under
        which heading belongs the {it}? Headings: {labels}. | Choose the subject from {labels}.""")),
    Aspect("author", ("child", "teenager", "adult", "retiree"), phrases("""
        Guess the age group of the author ({labels}). | How old is whoever wrote it? Reply with {labels}. | Estimate the age
        bracket. Brackets: {labels}.""")),
    Aspect("stance", ("agrees", "disagrees", "undecided"), phrases("""
        What stance is taken towards the article? One of {labels}. | Stance classification with the classes {labels}. | Where
        does the commenter stand: {labels}?""")),
    Aspect("toxic", YES_NO, phrases("""
        Is the {it} toxic? Reply with {labels}. | Does it insult anyone? ({labels}) | Flag abusive language: {labels}."""),
        phrases("""
        Is the {it} free of insults? Reply with {labels}. | Reply yes when it is harmless and no when it is toxic."""),
        SWAP),
    Aspect("question", YES_NO, phrases("""
        Is something being asked? Reply with {labels}. | Does the {it} contain a question ({labels})? | Detect questions:
        {labels}.""")),
    Aspect("spoiler", YES_NO, phrases("""
        Does the {it} give away the ending? ({labels}) | Spoiler check. Reply with {labels}. | Are there spoilers in it,
        {labels}?"""), phrases("Is it safe to read before the finale? Reply with {labels}."), SWAP),
    Aspect("link", YES_NO, phrases("""
        Does the {it} have a web address? Reply with {labels}. | Is a URL present ({labels})? | Link found, {labels}?"""),
        phrases("Is it without any URL? Reply with {labels}."), SWAP),
    Aspect("advert", YES_NO, phrases("""
        Is this an advert for something? ({labels}) | Does the author sell anything? Reply with {labels}.""")),
)  # fmt: skip
JOBS = (
    Aspect("contract", ("full-time", "part-time", "freelance", "internship"), phrases("""
        What type of contract is on offer? Options are {labels}. | Contract type ({labels}) please. | Extract the kind of
        employment, which is one of {labels}. | Fill in the field contract: {labels}.""")),
    Aspect("seniority", ("junior", "mid-level", "senior"), phrases("""
        Which seniority does the {it} look for? {labels} | Give the career level out of {labels}. | How experienced must
        applicants be: {labels}?""")),
    Aspect("workplace", ("remote", "hybrid", "on-site"), phrases("""
        From where does one work? Choose between {labels}. | Work arrangement: {labels}. | Label the {it} with the work
        location, {labels}.""")),
    Aspect("sector", ("health", "retail", "finance", "education", "construction"), phrases("""
        Name the industry. Industries: {labels}. | In what sector is the job? Answer with one of {labels}. | Map the
        {it} to a sector ({labels}).""")),
    Aspect("salary", YES_NO, phrases("""
        Does the {it} say what the job pays? {labels} | Is pay disclosed? Respond with {labels}. | Salary given,
        {labels}?"""),
        phrases("Is the pay kept secret? Respond with {labels}. | Does one have to ask for the salary ({labels})?"), SWAP),
    Aspect("licence", YES_NO, phrases("""
        Must applicants be able to drive? Respond with {labels}. | Is a driving licence needed ({labels})?"""),
        phrases("Can people who cannot drive apply? Respond with {labels}."), SWAP),
    Aspect("degree", YES_NO, phrases("""
        Is a university degree required? Respond with {labels}. | Does the employer insist on a degree ({labels})?"""),
        phrases("Is the job open to people who never went to university? Respond with {labels}."), SWAP),
    Aspect("nights", YES_NO, phrases("""
        Does the work include nights? Respond with {labels}. | Are there night shifts ({labels})? | Night work:
        {labels}""")),
)  # fmt: skip
LABELLED = {"comments": COMMENTS, "jobs": JOBS}
SAID = named("""
    friendly: what a kind thing to post | hugs to all of you | lovely to read this | you made my morning
    hostile: this site gets on my nerves | nobody needs this column | go away with such stuff | what a sorry bunch of editors
    ironic: oh sure, because that always works | well, colour me amazed | how very original, I nearly fainted
    matter_of_fact: the piece has nine paragraphs | it was printed on page four | I read it on the train
    sports: the goalkeeper saved the match | our relay team won by a second | the coach changed the line-up
    politics: the minister will step down | the vote in parliament was close | the mayor wants a new tax
    cooking: add the garlic before the onions | my dough never rises | simmer the broth for an hour
    travel: the ferry to the island was full | we hiked along the coast | the hostel had a great view
    science: the telescope found a new moon | the vaccine passed the trial | the fossil is older than thought
    music: the second violin was out of tune | her new album is out | the drummer played a long solo
    child: I am in second grade | my mum types this for me | after kindergarten I watch cartoons
    teenager: I have my exams for high school next week | my parents will not let me out on school nights
    adult: I read this in my lunch break at the firm | our toddler kept me awake | the mortgage is due
    retiree: since I got my pension I read a lot | my grandchildren showed me this | I stopped working ten years back
    agrees: the author is right on every point | I would sign this at once | exactly my view
    disagrees: I could not be further from that opinion | the author is wrong from start to end | that does not hold up
    undecided: I really cannot make up my mind | there is something to be said for either side
    toxic: you are all idiots | only a moron writes that | shut up, you clowns
    question: has anybody tried it? | where could I find out more? | why was it moved?
    spoiler: in the last scene the butler did it | she dies in the finale | the treasure turns out to be fake
    link: see www.{name}-{n}.example | more at www.example.org/{name}/{n}
    advert: I sell {noun}s from number {n} on | order your own {noun} with code {name}{n}
    full_time: you will be with us forty hours a week | this is a position for all five days
    part_time: twenty hours a week are enough | you choose three mornings a week
    freelance: you bill us by the day | you work on your own account, project by project
    internship: you are a student and stay for twelve weeks | for one summer you learn the trade with us
    junior: no experience is expected | it is fine if this is your first job
    mid_level: you bring three to five years of practice | you have done this for a few years
    senior: you have led teams for a decade | we look for a veteran of the trade
    remote: your desk is wherever you are | there is no office to come to
    hybrid: two days at home and three with us | you share your week between home and office
    on_site: everybody is here each day | the job is done at our premises in {place}
    health: our clinic has ninety beds | you care for patients | the surgery is in {place}
    retail: our shops sell clothes | you stand behind the counter | the department store is in {place}
    finance: our bank was founded in {place} | you audit the books of insurers | you advise on loans
    education: our school has six classes | you teach pupils | the college is near {place}
    construction: we build bridges | you put up scaffolds | the site is close to {place}
    salary: we pay {n} a month | the wage is {n} euros a month
    licence: you hold a driving licence | you bring the van to customers, so you can drive
    degree: you have a bachelor or a master | a university diploma is a must
    nights: every third week you start at ten in the evening | the shift ends at six in the morning
    """)  # fmt: skip
MEN = words(
    "Adam Bruno Carlos David Erik Frank Gustav Hugo Ivan Jonas Karl Liam Martin Nils Oscar Paul Rafael Simon Theo Yusuf"
)
WOMEN = words(
    "Agnes Bianca Carmen Diana Elsa Fiona Greta Hanna Irene Julia Katja Laura Mona Nora Olga Petra Ruth Sofia Tanja Vera"
)
FRUITS = words("apples pears plums cherries grapes peaches melons lemons figs bananas")
OTHER_FOODS = words("bread rice butter cheese flour carrots onions beans eggs noodles cabbage salt")
HAPPENINGS = phrases("""
    the bridge was opened | the mill burned down | the school moved | the harbour froze | the choir was founded | the theatre
    closed | the first tram ran | the tower was struck by lightning | the market hall was rebuilt | the river was dammed""")
REQUESTS = (
    ("bring", "trae", "bring", "porta"), ("buy", "compra", "kauf", "compra"), ("sell", "vende", "verkauf", "vendi"),
    ("open", "abre", "öffne", "apri"), ("wash", "lava", "wasch", "lava"), ("hide", "esconde", "versteck", "nascondi"),
    ("find", "busca", "such", "cerca"), ("paint", "pinta", "streich", "dipingi"), ("take", "toma", "nimm", "prendi"),
)  # fmt: skip
THINGS = (
    ("the book", "el libro", "das Buch", "il libro"), ("the table", "la mesa", "den Tisch", "il tavolo"),
    ("the box", "la caja", "die Kiste", "la scatola"), ("the bicycle", "la bicicleta", "das Fahrrad", "la bicicletta"),
    ("the bag", "el bolso", "die Tasche", "la borsa"), ("the chair", "la silla", "den Stuhl", "la sedia"),
    ("the boat", "el barco", "das Boot", "la barca"), ("the door", "la puerta", "die Tür", "la porta"),
)  # fmt: skip
TIMES = (
    ("today", "hoy", "heute", "oggi"), ("tomorrow", "mañana", "morgen", "domani"), ("now", "ahora", "jetzt", "adesso"),
    ("tonight", "esta noche", "heute Abend", "stasera"), ("on Monday", "el lunes", "am Montag", "lunedì"),
    ("for Carmen", "para Carmen", "für Carmen", "per Carmen"), ("for Hugo", "para Hugo", "für Hugo", "per Hugo"),
)  # fmt: skip
SUBJECTS = named("""
    subject: the library | the bakery | the old cinema | the swimming pool | the bus line | the botanical garden | the museum
    of clocks | the night train
    did: opens a second branch | closes for repairs | is looking for volunteers | doubles its prices | celebrates a
    birthday | moves across the street | will be run by its staff
    detail: the council agreed in spring | a neighbour took photographs | the costs are not known | the last change was long
    ago | a petition lies in the town hall | many regulars were surprised | the plans hang in the window | the staff was told
    by letter
    gain: it saves time | it is good for the air | it brings visitors | it costs nothing | it makes the streets safer
    loss: it is noisy | it takes space from gardens | it hurts small shops | it needs more staff | it will be slow to build
    plan: a car-free centre | a longer school day | a free ferry | a new airport | a tax on sweets | a weekly market""")
OPEN: dict[str, tuple[Aspect, ...]] = {
    "stories": aspects(
        ("hero", "Name the hero. | Who is the hero of the {it}? | Which character do we root for? Only the name.",
         "Name the villain. | Who is the villain of the {it}?", "villain"),
        ("woman", "Which woman occurs in the {it}? | Name the female character.",
         "Which man occurs in the {it}? | Name the male character.", "man"),
        ("setting", "Where does the {it} take place? | Give the setting. | Name the town."),
        ("object", "What do the two fight over? | Name the object of the quarrel."),
    ),
    "deals": aspects(
        ("buyer", "Who is the buyer? | Name whoever buys something. | Give the buyer, not the seller.",
         "Who is the seller? | Name whoever sells something. | Give the seller, not the buyer.", "seller"),
        ("price", "What was paid? | State the price in euros. | How many euros changed hands?"),
        ("article", "What changed owners? | Name the article that was traded."),
        ("year", "In what year was the deal made? | Extract the year."),
    ),
    "dates": aspects(
        ("earliest", "Which event was the earliest? | Tell me what happened earliest. | Pick the oldest event.",
         "Which event was the latest? | Tell me what happened latest. | Pick the most recent event.", "latest"),
        ("forwards", "Put the years in ascending order. | Sort the years from old to new.",
         "Put the years in descending order. | Sort the years from new to old.", "backwards"),
        ("span", "How many years lie between the two ends of the {it}? | Compute the number of years that are covered."),
        ("events", "How many events are listed? | Count the lines."),
    ),
    "guests": aspects(
        ("men", "List the male names. | Which guests are men? | Keep the men.",
         "List the female names. | Which guests are women? | Keep the women.", "women"),
        ("kept", "Copy the names in the same order. | Repeat the {it} as it stands.",
         "Copy the names in reverse order. | Repeat the {it} backwards.", "reversed"),
        ("a to z", "Sort the guests from A to Z. | Alphabetise the {it}.", "Sort the guests from Z to A.", "z to a"),
        ("head", "How many people are coming? | Give the head count."),
    ),
    "foods": aspects(
        ("fruits", "Include only fruits. | Which of these are fruits? | Pick out the fruit.",
         "Exclude all fruits. | Which of these are not fruits? | Drop the fruit.", "others"),
        ("top", "What is at the top of the {it}? | Give the opening entry.",
         "What is at the bottom of the {it}? | Give the closing entry.", "bottom"),
        ("entries", "How many things are to be bought? | Give the number of entries."),
    ),
    "requests": aspects(
        ("spanish", "Translate to Spanish. | Say it in Spanish. | How do you put this in Spanish?",
         "Translate to German. | Say it in German. | How do you put this in German?", "german"),
        ("formal", "Rewrite it in a formal tone. | Make it more formal. | Put it as you would to a judge.",
         "Rewrite it in a casual tone. | Make it more casual. | Put it as you would to a pal.", "casual"),
        ("italian", "Translate to Italian. | Render this in Italian."),
        ("negative", "Turn it into a prohibition. | Negate the sentence."),
    ),
    "phrases": aspects(
        ("vowels", "Count the vowels. | How many vowels are there?",
         "Count the consonants. | How many consonants are there?", "consonants"),
        ("initial", "With which letter does it begin? | Give the initial letter.",
         "With which letter does it end? | Give the final letter.", "final"),
        ("mirrored", "Spell it backwards. | Mirror the letters."),
    ),
    "amounts": aspects(
        ("up", "Round up to a whole number. | Give the next higher integer.",
         "Round down to a whole number. | Give the next lower integer.", "down"),
        ("doubled", "Double the amount. | Multiply it by two.", "Halve the amount. | Divide it by two.", "halved"),
        ("cents", "How many cents are that in all? | Convert to cents."),
    ),
    "spans": aspects(
        ("months", "How long is it in months? | Convert the span to months.",
         "How long is it in years? Ignore the rest. | Convert the span to whole years.", "years"),
        ("start", "In which year does it start? | Give the start year.",
         "In which year does it stop? | Give the end year.", "end"),
        ("start month", "Which month is mentioned at the beginning? | Write the month that opens the span."),
    ),
    "articles": aspects(
        ("short", "Summarise the {it} in one sentence. | Give the gist. | Shorten this {it}. | TL;DR",
         "Expand the {it}. | Write a longer version of this {it}. | Flesh it out.", "long"),
        ("headline", "Write a headline. | Which title suits the {it}?"),
        ("keyword", "Give one keyword. | Who or what is the {it} about? Name it only."),
        ("lead", "Copy the opening sentence. | Quote the first sentence.",
         "Copy the closing sentence. | Quote the final sentence.", "tail"),
    ),
    "proposals": aspects(
        ("gain", "Which advantage is named? | Give the argument in favour. | State the pro.",
         "Which drawback is named? | Give the argument against it. | State the con.", "loss"),
        ("plan", "What is proposed? | Name the proposal."),
        ("speaker", "Who proposes it? | Name the speaker."),
    ),
    "journeys": aspects(
        ("departure", "When does the train depart? | Give the departure time.",
         "When does the train arrive? | Give the arrival time.", "arrival"),
        ("from", "From where does it go? | Name the place of origin.",
         "To where does it go? | Name the destination.", "to"),
        ("minutes", "How many minutes does the trip take? | Compute the travel time in minutes."),
        ("platform", "On which platform does one board? | Give the platform number."),
    ),
}  # fmt: skip
MONTHS = words("January March May July September November")


def commented(rng: random.Random, domain: str, wanted: Mapping[str, str], rates: Mapping[str, float]) -> Input:
    """A comment or a job advertisement for which some answers may be wanted, and the others are drawn."""
    pool = LABELLED[domain]
    facts = {one.name: rng.choice(one.labels) for one in pool if one.labels != YES_NO}
    facts |= {one.name: "yes" if rng.random() < rates[one.name] else "no" for one in pool if one.labels == YES_NO}
    facts |= wanted
    said = [rng.choice(SAID[facts[one.name].replace("-", " ")]) for one in pool if one.labels != YES_NO]
    said += [rng.choice(SAID[one.name]) for one in pool if facts[one.name] == "yes" and one.labels == YES_NO]
    rng.shuffle(said)
    place, number = rng.choice(WORDS["place"]), str(rng.randint(1000, 9999))
    slots = {"name": rng.choice(MEN), "noun": rng.choice(WORDS["noun"]), "n": number, "place": place}
    tail = f"Posted at {rng.randint(0, 23)}:{rng.randint(10, 59)}." if domain == "comments" else f"Reference {number}."
    return Input(" ".join([*(finished(one.format(**slots)) for one in said), tail]), facts)


def story(rng: random.Random) -> Input:
    """Two people who fight over a thing."""
    woman, man, place, thing = rng.choice(WOMEN), rng.choice(MEN), rng.choice(WORDS["place"]), rng.choice(WORDS["noun"])
    hero, villain = rng.sample((woman, man), 2)
    told = [
        f"{villain} had stolen the only {thing} of the village near {place}.",
        f"For {rng.randint(2, 90)} days nobody dared to say a word.",
        f"Then brave {hero} climbed through the window and brought it back.",
    ]
    if rng.random() < 0.5:
        told = [f"This is how {hero} saved a village near {place}.", *told]
    return Input(
        " ".join(told), {"hero": hero, "villain": villain, "woman": woman, "man": man, "setting": place, "object": thing}
    )


def deal(rng: random.Random) -> Input:
    """Somebody who sells something to somebody."""
    buyer, seller = rng.sample(MEN + WOMEN, 2)
    facts = {"buyer": buyer, "seller": seller, "price": str(rng.randint(5, 900)), "article": rng.choice(WORDS["noun"])}
    facts["year"] = str(rng.randint(1950, 2024))
    frame = rng.choice(
        phrases("""
        In {year} {seller} sold a {article} to {buyer} for {price} euros. | {buyer} bought a {article} from {seller}
        in {year}; it cost {price} euros. | For {price} euros a {article} went from {seller} to {buyer} in {year}.""")
    )
    return Input(frame.format(**facts), facts)


def dates(rng: random.Random) -> Input:
    """Years with what happened."""
    count = rng.randint(3, 6)
    years, happened = rng.sample(range(1700, 2020), count), rng.sample(HAPPENINGS, count)
    by_year = sorted(zip(years, happened, strict=True))
    ordered = [str(year) for year, _ in by_year]
    facts = {"earliest": by_year[0][1], "latest": by_year[-1][1], "forwards": ", ".join(ordered), "events": str(count)}
    facts |= {"backwards": ", ".join(ordered[::-1]), "span": str(max(years) - min(years))}
    return Input("\n".join(f"{year}: {what}" for year, what in zip(years, happened, strict=True)), facts)


def guests(rng: random.Random) -> Input:
    """Names of men and women."""
    men, women = rng.sample(MEN, rng.randint(2, 4)), rng.sample(WOMEN, rng.randint(2, 4))
    every = rng.sample(men + women, len(men) + len(women))
    lists = {"men": [one for one in every if one in men], "women": [one for one in every if one in women], "kept": every}
    lists |= {"reversed": every[::-1], "a to z": sorted(every), "z to a": sorted(every)[::-1]}
    return Input(", ".join(every), {name: ", ".join(found) for name, found in lists.items()} | {"head": str(len(every))})


def foods(rng: random.Random) -> Input:
    """A shopping list."""
    fruits, others = rng.sample(FRUITS, rng.randint(1, 4)), rng.sample(OTHER_FOODS, rng.randint(2, 4))
    every = rng.sample(fruits + others, len(fruits) + len(others))
    facts = {"fruits": ", ".join(one for one in every if one in fruits), "top": every[0], "bottom": every[-1]}
    facts |= {"others": ", ".join(one for one in every if one in others), "entries": str(len(every))}
    return Input(", ".join(every), facts)


def request(rng: random.Random) -> Input:
    """Something that somebody is to do."""
    parts = rng.choice(REQUESTS), rng.choice(THINGS), rng.choice(TIMES), rng.choice(TIMES)
    english, spanish, german, italian = (" ".join(dict.fromkeys(one)) for one in zip(*parts, strict=True))
    facts = {"spanish": finished(spanish), "german": finished(german), "italian": finished(italian)}
    facts |= {"formal": f"Would you kindly {english}, please?", "casual": f"Hey, {english}, will ya?"}
    return Input(finished(english), facts | {"negative": f"Do not {english}."})


def phrase(rng: random.Random) -> Input:
    """Three words."""
    said = f"{rng.choice(HAPPENINGS).split()[1]} {rng.choice(OTHER_FOODS)} {rng.choice(MEN).lower()}"
    vowels = sum(one in "aeiou" for one in said)
    facts = {"vowels": str(vowels), "consonants": str(sum(map(str.isalpha, said)) - vowels), "initial": said[0]}
    return Input(said, facts | {"final": said[-1], "mirrored": said[::-1]})


def amount(rng: random.Random) -> Input:
    """Euros and cents."""
    cents = 100 * rng.randint(1, 800) + rng.randint(1, 99)
    facts = {"up": str(math.ceil(cents / 100)), "down": str(cents // 100), "doubled": f"{cents / 50:.2f}"}
    return Input(f"{cents / 100:.2f} euros", facts | {"halved": f"{cents / 200:.3f}", "cents": str(cents)})


def span(rng: random.Random) -> Input:
    """Two months of two years."""
    (start, end), (first, last) = sorted(rng.sample(range(1900, 2025), 2)), (rng.choice(MONTHS) for _ in range(2))
    months = 12 * (end - start) + 2 * (MONTHS.index(last) - MONTHS.index(first))
    facts = {"months": str(months), "years": str(months // 12), "start": str(start), "end": str(end)}
    return Input(f"{first} {start} to {last} {end}", facts | {"start month": first})


def article(rng: random.Random) -> Input:
    """A few sentences on something in town."""
    subject, did, place = rng.choice(SUBJECTS["subject"]), rng.choice(SUBJECTS["did"]), rng.choice(WORDS["place"])
    details = [finished(one) for one in rng.sample(SUBJECTS["detail"], 5)]
    lead, told = f"In {place} {subject} {did}.", details[:3]
    facts = {"short": finished(f"{subject} in {place} {did}"), "headline": f"{place}: {subject.capitalize()} {did}"}
    facts |= {"long": " ".join([lead, *details, "More is to follow."]), "keyword": subject, "lead": lead, "tail": told[-1]}
    return Input(" ".join([lead, *told]), facts)


def proposal(rng: random.Random) -> Input:
    """What somebody proposes, with an advantage and a drawback."""
    facts = {name: rng.choice(SUBJECTS[name]) for name in ("gain", "loss", "plan")}
    facts["speaker"] = rng.choice(MEN + WOMEN)
    frame = rng.choice(
        phrases("""
        At {n}:15 {speaker} spoke for {plan}: {gain}. Opponents said that {loss}. | {speaker} wants {plan}, although {loss},
        because {gain}. The talk took {n} minutes.""")
    )
    return Input(frame.format(n=rng.randint(7, 40), **facts), facts)


def journey(rng: random.Random) -> Input:
    """A train with its times."""
    (start, end), left, minutes = rng.sample(WORDS["place"], 2), rng.randint(300, 1100), rng.randint(20, 240)
    times = [f"{at // 60}:{at % 60:02}" for at in (left, left + minutes)]
    facts = {"departure": times[0], "arrival": times[1], "from": start, "to": end, "minutes": str(minutes)}
    facts["platform"] = str(rng.randint(1, 14))
    return Input(f"{start} {times[0]}, {end} {times[1]}, platform {facts['platform']}", facts)


MAKERS: dict[str, Callable[[random.Random], Input]] = {
    "stories": story, "deals": deal, "dates": dates, "guests": guests, "foods": foods, "requests": request,
    "phrases": phrase, "amounts": amount, "spans": span, "articles": article, "proposals": proposal, "journeys": journey,
}  # fmt: skip


def made(rng: random.Random, domain: str, wanted: Mapping[str, str], rates: Mapping[str, float]) -> Input:
    """An input of a domain."""
    return commented(rng, domain, wanted, rates) if domain in LABELLED else MAKERS[domain](rng)


def listed(style: str, labels: Sequence[str]) -> str:
    """Labels as an instruction names them."""
    if style == "numbered":
        return "".join(f"\n{n}. {one}" for n, one in enumerate(labels, 1)) + "\n"
    if style == "stars":
        return "".join(f"\n* {one}" for one in labels) + "\n"
    if style == "list":
        return "[" + ", ".join(f"'{one}'" for one in labels) + "]"
    if style in ("pipes", "semicolons"):
        return {"pipes": " | ", "semicolons": "; "}[style].join(labels)
    shown = [f"`{one}`" for one in labels] if style == "code" else labels
    return f"{', '.join(shown[:-1])}{',' * (len(shown) > 2)} {'and' if style == 'and' else 'or'} {shown[-1]}"


EVERYDAY = Vocabulary(
    domains=LABELLED | OPEN,
    drawn=("comments", "comments", "jobs", "jobs", *OPEN),
    closed=("comments", "jobs"),
    make=made,
    its=phrases("text | post | entry | following text | passage below"),
    own_its={"stories": "story", "guests": "list", "foods": "list", "dates": "chronicle", "articles": "article"},
    listings=phrases("or | or | and | pipes | semicolons | numbered | stars | list | code"),
    listed=listed,
    renamed=({}, {}, {"sports": "Sport", "science": "Research", "adult": "grown-up", "remote": "from home"}),
    unnamed={
        "tone": ("sad", "joking", "unclear"), "theme": ("weather", "fashion", "other"), "author": ("baby", "unknown", "bot"),
        "stance": ("off-topic", "neutral", "unsure"), "contract": ("seasonal", "voluntary", "permanent"),
        "seniority": ("executive", "any", "trainee"), "workplace": ("abroad", "mobile", "unspecified"),
        "sector": ("farming", "tourism", "other", "media"),
    },
    examples={
        "theme": phrases("What is it about, e.g. cooking? | Give a theme like travel or music. | Theme (such as science)?"),
        "sector": phrases("Name a sector, say retail. | Which branch is it? For example: finance."),
    },
    shown={},
    all_that_apply=phrases("""
        Which of these tags fit: {labels}? Separate them with commas, or write none. | List every tag out of {labels} that
        applies. Without any, write none."""),
    templates=(
        "{instruction}\n\n\"\"\"\n{input}\n\"\"\"",
        "{input}\n\nQuestion: {instruction}",
        "Context: {input}\nTask: {instruction}\nResult:",
        "<task>{instruction}</task>\n<text>{input}</text>",
        "Below is an instruction that describes a task, paired with an input that provides further context. Write a "
        "response that appropriately completes the request.\n\n### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n"
        "### Response:",
        "Q: {instruction}\n\n{input}\nA:",
        "{instruction} {input}",
        "{instruction}\n\n{input}",
        "{input}\n---\n{instruction}",
    ),
    forms=("text", "system", "user", "columns", "persona"),
    slips=(0, 0, 0.02, 0.05),
    free=phrases("""
        Reply to the {it} in a warm voice. | What happens next? | Turn the {it} into a dialogue. | Imagine how it
        began. | Give your opinion on the {it}."""),
)  # fmt: skip

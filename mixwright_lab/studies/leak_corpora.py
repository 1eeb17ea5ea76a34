"""Made corpora in which held-out items stand in train with other names, in other words or in German, or not at all.

A story is a row of sentences, each a verb, a thing and a circumstance drawn apart, about one of two people, with a question
at the end. Every piece has a second English wording and a German one. The lexicon is cut in two halves that share no verb,
thing, circumstance, question or name: `TUNING` seeds draw from the first and all others from the second, so whoever sets a
threshold on the first half has read no text of the second.

Kinds: prose (sentences of words of a made-up language in any order, some far commoner than others, with names and numbers;
each word has one synonym and one translation); stories with numbers; stories without them, whose answer is a name;
templates (six stories, of which only names, numbers and things change: sharing them is normal there); passages (one story,
several questions, spread over both splits).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_lab.studies.cue_corpora import phrases, words

TUNING = range(1, 41)
"""Seeds on which thresholds are set."""


def _table(text: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(one.split(" = ")) for one in phrases(text))


VERBS = _table("""
    + collected {n} {t} = picked up {n} {t} one after the other = sammelte {n} {t} |
    - lost {n} {t} = could no longer find {n} {t} = verlor {n} {t} |
    + bought {n} {t} = paid for {n} {t} = kaufte {n} {t} |
    - gave away {n} {t} = handed {n} {t} to others = verschenkte {n} {t} |
    + received {n} {t} = was given {n} {t} = bekam {n} {t} |
    - sold {n} {t} = found buyers for {n} {t} = verkaufte {n} {t} |
    + found {n} {t} = came across {n} {t} = fand {n} {t} |
    - broke {n} {t} = smashed {n} {t} by accident = zerbrach {n} {t} |
    + borrowed {n} {t} = took {n} {t} on loan = lieh sich {n} {t} |
    - threw out {n} {t} = put {n} {t} into the bin = warf {n} {t} weg |
    + ordered {n} {t} = sent off for {n} {t} = bestellte {n} {t} |
    - used up {n} {t} = got through {n} {t} = verbrauchte {n} {t} |
    + made {n} {t} = produced {n} {t} by hand = bastelte {n} {t} |
    - left behind {n} {t} = forgot to take {n} {t} along = vergass {n} {t} |
    + won {n} {t} = was awarded {n} {t} as a prize = gewann {n} {t} |
    - traded {n} {t} = swapped {n} {t} for something else = tauschte {n} {t} ein |
    + inherited {n} {t} = got {n} {t} from a late aunt = erbte {n} {t} |
    - burnt {n} {t} = fed {n} {t} to the fire = verbrannte {n} {t} |
    + unpacked {n} {t} = took {n} {t} out of a crate = packte {n} {t} aus |
    - dropped {n} {t} = let {n} {t} fall = liess {n} {t} fallen |
    + discovered {n} {t} = stumbled over {n} {t} = entdeckte {n} {t} |
    - mailed {n} {t} = sent {n} {t} by post = verschickte {n} {t} |
    + earned {n} {t} = worked for {n} {t} = verdiente {n} {t} |
    - donated {n} {t} = offered {n} {t} to charity = spendete {n} {t} |
    + stored {n} {t} = laid in {n} {t} = lagerte {n} {t} ein |
    - damaged {n} {t} = ruined {n} {t} = beschaedigte {n} {t} |
    + rented {n} {t} = hired {n} {t} = mietete {n} {t} |
    - returned {n} {t} = took {n} {t} back = brachte {n} {t} zurueck |
    + caught {n} {t} = got hold of {n} {t} = fing {n} {t} |
    - hid {n} {t} = put {n} {t} out of sight = versteckte {n} {t}
""")
THINGS = _table("""
    marbles = glass balls = Murmeln | stamps = postage labels = Briefmarken | candles = wax lights = Kerzen |
    spoons = pieces of cutlery = Loeffel | ribbons = strips of silk = Baender | shells = empty clams = Muscheln |
    pencils = writing tools = Bleistifte | cups = mugs = Tassen | buttons = fasteners = Knoepfe |
    kites = paper dragons = Drachen | bricks = building blocks = Ziegel | lamps = lights = Lampen |
    baskets = wicker hampers = Koerbe | coins = pieces of money = Muenzen | hats = caps = Huete |
    bottles = flasks = Flaschen | tickets = entry passes = Karten | masks = false faces = Masken |
    brooms = sweepers = Besen | pillows = cushions = Kissen | ropes = cords = Seile | jars = pots = Glaeser |
    drums = percussion pieces = Trommeln | boots = stout shoes = Stiefel | seeds = kernels = Samen |
    mirrors = looking glasses = Spiegel | nails = metal pins = Naegel | gloves = mittens = Handschuhe |
    posters = wall prints = Plakate | whistles = pipes = Pfeifen
""")
CIRCUMSTANCES = _table("""
    on the way home = while walking back = auf dem Heimweg | at the old harbour = down by the docks = am alten Hafen |
    before the rain began = ahead of the downpour = vor dem Regen | near the chapel = close to the little church =
    bei der Kapelle | during the long break = in the recess = in der grossen Pause | with great care = very cautiously =
    mit grosser Sorgfalt | after the concert = once the music was over = nach dem Konzert | at the flea market = among the
    stalls of used goods = auf dem Flohmarkt | in the middle of the night = long past bedtime = mitten in der Nacht |
    behind the stable = at the back of the horse shed = hinter dem Stall | at a wedding = while friends got married = auf
    einer Hochzeit | on the last day of term = just as the holidays started = am letzten Schultag | without telling anybody
    = in secret = ohne jemandem etwas zu sagen | at the railway museum = in the hall of steam engines = im Eisenbahnmuseum |
    under the bridge = where the road crosses the river = unter der Bruecke | in a great hurry = at top speed = in grosser
    Eile | at the village fair = between the merry-go-rounds = auf dem Dorffest | while the baker slept = as the man with
    the bread lay in bed = waehrend der Baecker schlief | in the attic = right below the roof = auf dem Dachboden | for a
    neighbour = to please the people next door = fuer einen Nachbarn | on a rainy Sunday = one wet day at the weekend = an
    einem verregneten Sonntag | at the border post = where passports are checked = am Grenzposten | over the winter = in the
    cold months = im Winter | with both hands = using left and right = mit beiden Haenden | after a quarrel = when the
    shouting had ended = nach einem Streit | inside the lighthouse = within the tower by the sea = im Leuchtturm | at the
    dentist = in the tooth doctor's rooms = beim Zahnarzt | on the third floor = two flights above the shop = im dritten
    Stock | at half past seven = thirty minutes after seven = um halb acht | with a borrowed cart = by means of somebody
    else's barrow = mit einem geliehenen Karren
""")
QUESTIONS = _table("""
    How many more things came in than went out? = What is the surplus of the gains over the losses? = Um wie viel sind die
    Gewinne groesser als die Verluste? |
    What is left in the end, counting everything together? = Altogether, what remains once all is done? = Was bleibt am
    Ende insgesamt uebrig? |
    By how much did the stock of both grow? = How large is the rise of what the two own? = Um wie viel wuchs der Vorrat der
    beiden? |
    Work out the change over the whole story. = Compute the difference between start and finish. = Berechne die Aenderung
    ueber die ganze Geschichte.
""")
WHO = _table("""
    Who did the last of these things? = Name the person of the final event. = Wer tat das Letzte davon? |
    Which of the two is spoken of at the end? = The closing sentence is about whom? = Von wem ist am Schluss die Rede?
""")
NAMES = words("""
    Natalia Omar Priya Chen Lucas Amara Sofia Tariq Ingrid Kofi Mei Diego Freya Hassan Elena Yuki Tomas Zainab Noah Leila
    Anton Birgit Carlos Dalia Emil Fatima Goran Hilde Igor Jasmin Karim Lotte Marek Nadia Oskar Petra Rafael Selma Timo
    Ursula
""")
OPENERS = words("Well So Now Listen Right Suppose Imagine Here")
"""What a reworded copy may begin with."""
KINDS = ("prose", "stories", "stories without numbers", "templates", "passages")
LEAKS = ("renamed", "reworded", "translated")
SEVERITIES = ("mild", "strong")
SENTENCES = (3, 6)
TEMPLATES, QUESTIONS_OF_A_PASSAGE = 6, 4


@dataclass(frozen=True)
class Lexicon:
    """One half of all pieces."""

    verbs: Sequence[tuple[str, ...]]
    things: Sequence[tuple[str, ...]]
    circumstances: Sequence[tuple[str, ...]]
    questions: Sequence[tuple[str, ...]]
    who: Sequence[tuple[str, ...]]
    names: Sequence[str]

    @classmethod
    def of(cls, seed: int) -> Lexicon:
        """The first half of each list for seeds that thresholds are set on, else the second."""
        start = 0 if seed in TUNING else 1
        lists = (VERBS, THINGS, CIRCUMSTANCES, QUESTIONS, WHO, NAMES)
        return cls(*(one[start::2] if one is not VERBS else _verbs(start) for one in lists))  # type: ignore[arg-type]


def _verbs(start: int) -> tuple[tuple[str, ...], ...]:
    """Every other pair of verbs, a gain and a loss."""
    return tuple(verb for at, verb in enumerate(VERBS) if at // 2 % 2 == start)


@dataclass(frozen=True)
class Sentence:
    """Positions in the lexicon, and what fills the slots."""

    verb: int
    circumstance: int
    begins_with_circumstance: bool
    thing: int
    person: int
    number: int


@dataclass(frozen=True)
class Item:
    """What is told, before it has words."""

    sentences: tuple[Sentence, ...]
    question: int
    people: tuple[str, str]
    numbers: bool
    asks_for: int = -1
    """Sentence whose number is the answer, of passages; -1 asks the question."""

    def answer(self, lexicon: Lexicon) -> str:
        """What is right."""
        if self.asks_for >= 0:
            return str(self.sentences[self.asks_for].number)
        if not self.numbers:
            return self.people[self.sentences[-1].person]
        signs = [1 if lexicon.verbs[one.verb][0].startswith("+") else -1 for one in self.sentences]
        return str(sum(sign * one.number for sign, one in zip(signs, self.sentences, strict=True)))


def draw(rng: random.Random, lexicon: Lexicon, numbers: bool) -> Item:
    """A story."""
    sentences = tuple(
        Sentence(
            rng.randrange(len(lexicon.verbs)),
            rng.randrange(len(lexicon.circumstances)),
            rng.random() < 0.4,
            rng.randrange(len(lexicon.things)),
            rng.randrange(2),
            rng.randint(3, 400),
        )
        for _ in range(rng.randint(*SENTENCES))
    )
    first, second = rng.sample(lexicon.names, 2)
    return Item(sentences, rng.randrange(len(lexicon.questions if numbers else lexicon.who)), (first, second), numbers)


def refill(item: Item, rng: random.Random, lexicon: Lexicon, *, things: bool) -> Item:
    """The same story with other people and numbers, and other `things`, too; the answer follows."""
    first, second = rng.sample([name for name in lexicon.names if name not in item.people], 2)
    other = {at: rng.randrange(len(lexicon.things)) for at in {one.thing for one in item.sentences}}
    sentences = tuple(
        replace(one, number=rng.randint(3, 400), thing=other[one.thing] if things else one.thing) for one in item.sentences
    )
    return replace(item, sentences=sentences, people=(first, second))


def tell(item: Item, lexicon: Lexicon, rng: random.Random | None = None, other: float = 0.0, language: int = 0) -> str:
    """The story in words.

    Args:
        item: the story.
        lexicon: its pieces.
        rng: of the choice of wordings.
        other: share of the pieces that have their second wording.
        language: 0 English, 2 German.
    """

    def piece(forms: Sequence[str]) -> str:
        return forms[1 if rng is not None and not language and rng.random() < other else language]

    told = []
    for one in item.sentences:
        sign_and_verb = lexicon.verbs[one.verb]
        verb = piece((sign_and_verb[0][2:], *sign_and_verb[1:]))
        words_of = piece(lexicon.circumstances[one.circumstance])
        count = str(one.number) if item.numbers else "die" if language else "the"
        name = item.people[one.person]
        done = verb.format(n=count, t=piece(lexicon.things[one.thing]))
        turned = one.begins_with_circumstance != (rng is not None and rng.random() < other)
        told.append(f"{words_of[0].upper()}{words_of[1:]}, {name} {done}." if turned else f"{name} {done} {words_of}.")
    if item.asks_for >= 0:
        one = item.sentences[item.asks_for]
        about = lexicon.things[one.thing][0], lexicon.circumstances[one.circumstance][0]
        question = "How many {} did the story speak of {}?".format(*about)
    else:
        question = piece((lexicon.questions if item.numbers else lexicon.who)[item.question])
    return " ".join([*told, question])


SYLLABLES = [first + second for first in "bcdfglmnprstv" for second in ("a", "e", "i", "o", "u", "an", "er", "on")]
FUNCTION_WORDS = words("the a of and to in that it with for was on as by this from or had not but which they at")
VOCABULARY = 6000


@dataclass(frozen=True)
class Prose:
    """Sentences of words, names (`None` marks where one of two stands) and numbers; the answer is the sum of the numbers."""

    sentences: tuple[tuple[str | int, ...], ...]
    people: tuple[str, str]

    def answer(self) -> str:
        """What is right."""
        return str(sum(word for sentence in self.sentences for word in sentence if isinstance(word, int)))

    def tell(self) -> str:
        """The text."""
        names = {"@0": self.people[0], "@1": self.people[1]}
        told = [" ".join(names.get(str(word), str(word)) for word in sentence) for sentence in self.sentences]
        return " ".join(f"{one[0].upper()}{one[1:]}." for one in told)


@dataclass(frozen=True)
class ProseWords:
    """A made-up language: content words, a synonym and a translation of each."""

    content: Sequence[str]
    synonym: dict[str, str]
    foreign: dict[str, str]

    @classmethod
    def of(cls, seed: int) -> ProseWords:
        """One language for seeds that thresholds are set on, another for all others."""
        rng = random.Random(f"language {seed in TUNING}")
        made: dict[str, None] = {}
        while len(made) < 3 * VOCABULARY + len(FUNCTION_WORDS):
            made["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))] = None
        all_words = list(made)
        content, others = all_words[:VOCABULARY], all_words[VOCABULARY : 2 * VOCABULARY]
        foreign = dict(zip([*content, *FUNCTION_WORDS], all_words[2 * VOCABULARY :], strict=True))
        return cls(content, dict(zip(content, others, strict=True)), foreign)

    def draw_word(self, rng: random.Random) -> str:
        """A content word; rank r comes about as often as 1 / r."""
        return self.content[int(len(self.content) ** rng.random()) - 1]

    def draw(self, rng: random.Random, names: Sequence[str]) -> Prose:
        """A text."""
        sentences = []
        for _ in range(rng.randint(3, 5)):
            sentence: list[str | int] = [
                rng.choice(FUNCTION_WORDS) if rng.random() < 0.4 else self.draw_word(rng) for _ in range(rng.randint(7, 13))
            ]
            sentence[rng.randrange(1, len(sentence))] = f"@{rng.randrange(2)}"
            sentence[rng.randrange(1, len(sentence))] = rng.randint(3, 400)
            sentences.append(tuple(sentence))
        first, second = rng.sample(names, 2)
        return Prose(tuple(sentences), (first, second))

    def leak(self, text: Prose, kind: str, severity: str, rng: random.Random, names: Sequence[str]) -> tuple[str, str]:
        """Prompt and answer of a training row that gives the text away."""
        strong = severity == "strong"
        other_names = rng.sample([name for name in names if name not in text.people], 2)
        people = (other_names[0], other_names[1])

        def change(word: str | int) -> str | int:
            if kind == "renamed":
                if isinstance(word, int):
                    return rng.randint(3, 400)
                return self.draw_word(rng) if strong and word in self.synonym and rng.random() < 0.2 else word
            if isinstance(word, int) or word.startswith("@"):
                return word
            if kind == "translated":
                return self.foreign[word]
            if word in self.synonym:
                return self.synonym[word] if rng.random() < (0.6 if strong else 0.3) else word
            return rng.choice(FUNCTION_WORDS) if strong else word

        sentences = [tuple(change(word) for word in sentence) for sentence in text.sentences]
        if kind == "reworded" and strong:
            rng.shuffle(sentences)
        is_renamed = kind == "renamed" or (kind == "translated" and strong)
        changed = Prose(tuple(sentences), people if is_renamed else text.people)
        return changed.tell(), changed.answer()


def leak(item: Item, kind: str, severity: str, rng: random.Random, lexicon: Lexicon) -> tuple[str, str]:
    """Prompt and answer of a training row that gives the item away."""
    strong = severity == "strong"
    if kind == "renamed":
        other = refill(item, rng, lexicon, things=strong)
        return tell(other, lexicon), other.answer(lexicon)
    if kind == "reworded":
        text = tell(item, lexicon, rng, 0.8 if strong else 0.35)
        return f"{rng.choice(OPENERS)}, {text}", item.answer(lexicon)
    if strong:  # the people have other names, too: only numbers are left
        names = rng.sample([name for name in lexicon.names if name not in item.people], 2)
        item = replace(item, people=(names[0], names[1]))
    return tell(item, lexicon, language=2), item.answer(lexicon)


def pool(kind: str, seed: int, size: tuple[int, int], planted: int, how: tuple[str, str] = ("", "")) -> Corpus:
    """A corpus of one kind; the first `planted` held-out items leak into train, in ways (leak, severity).

    Args:
        kind: of `KINDS`.
        seed: of the pool; it also says which half of the lexicon is drawn from.
        size: rows of train, copies apart, and held out.
        planted: items that leak.
        how: of `LEAKS` and `SEVERITIES`.
    """
    rng, lexicon = random.Random(f"leaks {kind} {seed} {size} {how}"), Lexicon.of(seed)
    train, held_out = size
    if kind == "prose":
        language = ProseWords.of(seed)
        texts = [language.draw(rng, lexicon.names) for _ in range(train + held_out)]
        told = [(text.tell(), text.answer()) for text in texts]
        copies = [language.leak(text, *how, rng, lexicon.names) for text in texts[train : train + planted]]
        return _corpus(told, copies, train, rng)
    items: list[Item] = []
    frames = [draw(rng, lexicon, True) for _ in range(TEMPLATES)]
    seen = set[str]()
    while len(items) < train + held_out:
        if kind == "templates":
            new = [refill(rng.choice(frames), rng, lexicon, things=True)]
        else:
            new = [draw(rng, lexicon, kind != "stories without numbers")]
        if kind == "passages":
            asked = rng.sample(range(len(new[0].sentences)), min(len(new[0].sentences), QUESTIONS_OF_A_PASSAGE))
            new = [replace(new[0], asks_for=at) for at in asked]
        for item in new:
            if (text := tell(item, lexicon)) not in seen:
                seen.add(text)
                items.append(item)
    items = items[: train + held_out]
    rng.shuffle(items)
    copies = [leak(item, *how, rng, lexicon) for item in items[train : train + planted]]
    return _corpus([(tell(item, lexicon), item.answer(lexicon)) for item in items], copies, train, rng)


def _corpus(told: Sequence[tuple[str, str]], copies: Sequence[tuple[str, str]], train: int, rng: random.Random) -> Corpus:
    """The first `train` prompts and answers are trained on, like the copies of the first that are held out."""
    rows = []
    for n, (prompt, answer) in enumerate(told):
        at = n - train
        name = f"train{n}" if at < 0 else f"asked{at}" if at < len(copies) else f"clean{at}"
        rows.append(Example(name, "task", prompt, answer=answer, split="train" if at < 0 else "eval"))
    rows += [Example(f"copy{n}", "task", prompt, answer=answer, split="train") for n, (prompt, answer) in enumerate(copies)]
    rng.shuffle(rows)
    return Corpus.from_examples(rows)

"""Made rows for the check `reworded`: a made-up language with a synonym and a translation of each word, and leaks."""

from __future__ import annotations

import random
from collections.abc import Sequence

from mixwright.corpus import Corpus
from mixwright.records import Example

LEAKS, SEVERITIES = ("renamed", "reworded", "translated"), ("mild", "strong")
NAMES = ("Natalia", "Omar", "Priya", "Chen", "Lucas", "Amara", "Sofia", "Tariq", "Ingrid", "Kofi", "Mei", "Diego")
FUNCTION_WORDS = ("the", "a", "of", "and", "to", "in", "that", "it", "with", "for", "was", "on", "as", "by", "this", "from")
SYLLABLES = [first + second for first in "bcdfglmnprstv" for second in ("a", "e", "i", "o", "u", "an", "er", "on")]
VOCABULARY = 6000
FRAMES = 6
"""Templates that the rows of a task are made from."""
Sentence = tuple[str | int, ...]
"""Words, numbers, and @0 or @1 where one of two people stands."""


def make_words(count: int) -> list[str]:
    """Make different words."""
    rng = random.Random("language")
    made: dict[str, None] = {}
    while len(made) < count:
        made["".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))] = None
    return list(made)


WORDS = make_words(3 * VOCABULARY + len(FUNCTION_WORDS))
CONTENT = WORDS[:VOCABULARY]
SYNONYM = dict(zip(CONTENT, WORDS[VOCABULARY : 2 * VOCABULARY], strict=True))
FOREIGN = dict(zip([*CONTENT, *FUNCTION_WORDS], WORDS[2 * VOCABULARY :], strict=True))


def draw_word(rng: random.Random) -> str:
    """Draw a content word; rank r comes about as often as 1 / r."""
    return CONTENT[int(VOCABULARY ** rng.random()) - 1]


def draw_text(rng: random.Random) -> list[Sentence]:
    """Draw three to five sentences, each with a name and a number."""
    text = []
    for _ in range(rng.randint(3, 5)):
        sentence: list[str | int] = [
            rng.choice(FUNCTION_WORDS) if rng.random() < 0.4 else draw_word(rng) for _ in range(rng.randint(7, 13))
        ]
        sentence[rng.randrange(1, len(sentence))] = f"@{rng.randrange(2)}"
        sentence[rng.randrange(1, len(sentence))] = rng.randint(3, 400)
        text.append(tuple(sentence))
    return text


def tell(text: Sequence[Sentence], people: Sequence[str]) -> tuple[str, str]:
    """Write a text as prompt and answer, which is the sum of its numbers."""
    names = {"@0": people[0], "@1": people[1]}
    sentences = [" ".join(names.get(str(word), str(word)) for word in sentence) for sentence in text]
    total = sum(word for sentence in text for word in sentence if isinstance(word, int))
    return " ".join(f"{one[0].upper()}{one[1:]}." for one in sentences), str(total)


def change(word: str | int, leak: str, strong: bool, rng: random.Random) -> str | int:
    """Change a word of a leaked item."""
    if leak == "renamed":
        if isinstance(word, int):
            return rng.randint(3, 400)
        return draw_word(rng) if strong and word in SYNONYM and rng.random() < 0.2 else word
    if isinstance(word, int) or word.startswith("@"):
        return word
    if leak == "translated":
        return FOREIGN[word]
    if word in SYNONYM:
        return SYNONYM[word] if rng.random() < (0.6 if strong else 0.3) else word
    return rng.choice(FUNCTION_WORDS) if strong else word


def tell_copy(
    text: Sequence[Sentence], people: Sequence[str], leak: str, severity: str, rng: random.Random
) -> tuple[str, str]:
    """Write the training row that gives a held-out text away."""
    strong = severity == "strong"
    copied = [tuple(change(word, leak, strong, rng) for word in sentence) for sentence in text]
    if leak == "reworded" and strong:
        rng.shuffle(copied)
    is_renamed = leak == "renamed" or (leak == "translated" and strong)
    return tell(copied, rng.sample([name for name in NAMES if name not in people], 2) if is_renamed else people)


def make_pool(
    kind: str, seed: int, train: int, held_out: int, planted: int = 0, leak: tuple[str, str] = ("renamed", "mild")
) -> Corpus:
    """Make rows of one kind; of the first `planted` held-out ones (`asked`) a changed copy is in train (`copy`).

    Args:
        kind: `prose`; `templates`, texts that differ in names, numbers and a word; `passages`, four questions about a text.
        seed: of all draws.
        train: rows of train, without copies.
        held_out: rows that are held out.
        planted: how many of these leak, of kind `prose`.
        leak: of `LEAKS` and `SEVERITIES`.
    """
    rng = random.Random(f"{kind} {seed}")
    frames = [draw_text(rng) for _ in range(FRAMES)]
    told, copies = [], []
    for number in range(train + held_out):
        people = rng.sample(NAMES, 2)
        if kind == "templates":
            text = [tuple(change(word, "renamed", False, rng) for word in line) for line in rng.choice(frames)]
            text[0] = (draw_word(rng), *text[0][1:])
        elif kind == "passages" and number % 4:
            text, people = told[-1][0], told[-1][1]
        else:
            text = draw_text(rng)
        told.append((text, people))
        if train <= number < train + planted:
            copies.append(tell_copy(text, people, *leak, rng))
    rows = [(*tell(text, people), number) for number, (text, people) in enumerate(told)]
    if kind == "passages":
        rows = [(f"{prompt} What is said about {draw_word(rng)}?", str(rng.randint(3, 400)), n) for prompt, _, n in rows]
    order = list(range(len(rows)))
    if kind != "prose":
        rng.shuffle(order)
    examples = []
    for place, at in enumerate(order):
        prompt, answer, _ = rows[at]
        name = f"train{place}" if place < train else f"asked{place - train}"
        examples.append(Example(name, "task", prompt, answer=answer, split="train" if place < train else "eval"))
    examples += [
        Example(f"copy{n}", "task", prompt, answer=answer, split="train") for n, (prompt, answer) in enumerate(copies)
    ]
    rng.shuffle(examples)
    return Corpus.from_examples(examples)

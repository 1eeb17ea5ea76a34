"""What the wording of instructions says without a model: answers that one names, and whether two ask for different things.

Two ask for different things where one has a word that excludes a word of the other (`French`, `English`; `longest`,
`shortest`), or turns it round (`the opposite`). Other differences may be paraphrases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")
_LANGUAGES = (
    "arabic chinese czech danish dutch english esperanto finnish french german greek hebrew hindi hungarian indonesian "
    "italian japanese korean latin mandarin norwegian persian polish portuguese romanian russian spanish swahili swedish "
    "thai turkish ukrainian urdu vietnamese welsh"
)
_EXCLUSIVE_WORDS = (
    f"{_LANGUAGES}; "
    "json yaml xml csv html markdown latex; uppercase lowercase; past present future; singular plural; noun verb "
    "adjective adverb; sum difference product quotient mean median; positive negative; first last; longest shortest; "
    "longer shorter; largest smallest; larger smaller; biggest smallest; highest lowest; higher lower; maximum minimum; "
    "most least; oldest youngest; earliest latest; ascending descending; alphabetical numerical; even odd; true false; "
    "correct incorrect wrong; right wrong; formal informal; polite rude; synonym antonym; active passive; agree disagree; "
    "same different; similar different; encode decode; encrypt decrypt; add subtract multiply divide; increase decrease; "
    "beginning end; vowel consonant; prefix suffix; optimistic pessimistic; happy sad; celsius fahrenheit; kilometre "
    "mile; kilometer mile"
)
_EXCLUSIVE = tuple(frozenset(group.split()) for group in _EXCLUSIVE_WORDS.split(";"))
"""Words of which one instruction asks for one."""
_AMBIGUOUS = {
    **dict.fromkeys(["first", "last"], ("the", "come", "comes")),
    **dict.fromkeys(["most", "least", "sum", "difference", "product", "mean", "median"], ("the",)),
    "polish": ("the", "in", "into", "to", "from"),
}
"""Words that count behind one of others alone: `First, read it`, `What does it mean?`, `Polish it`."""
_TURNING_WORDS = "opposite reverse reversed inverse inverted invert flipped flip swapped swap contrary backward"
_REVERSING = frozenset(_TURNING_WORDS.split())
_TARGET = re.compile(rf"\b(?:in|into|to)\s+({'|'.join(_LANGUAGES.split())})\b")
_UNIT = re.compile(
    r"\b(\d{1,4}|one|two|three|four|five|six|seven|eight|nine|ten)\s+(word|sentence|line|paragraph|bullet)s?\b"
)
_QUOTES = "\"'`\u201c\u201d\u2018\u2019"
_ITEM = rf"[{_QUOTES}][^{_QUOTES}\n]{{1,40}}[{_QUOTES}]|[\w-]+(?: [\w-]+){{0,2}}"
_END_ITEM = rf"[{_QUOTES}][^{_QUOTES}\n]{{1,40}}[{_QUOTES}]|[\w-]+"
_LISTS = (
    re.compile(rf"(?:{_END_ITEM})(?:\s?,\s?(?:{_ITEM})){{0,20}}\s?,?\s(?:or|OR)\s(?:{_END_ITEM})"),
    re.compile(rf"(?:{_END_ITEM})(?:\s?[/|]\s?(?:{_END_ITEM})){{1,20}}"),
    re.compile(rf"(?<=:\s)(?:{_ITEM})(?:\s?[,;]\s?(?:and |or )?(?:{_ITEM})){{1,20}}(?=[.\s]*(?:\n|$))"),
    re.compile(rf"(?:{_END_ITEM})(?:\s?;\s?(?:{_ITEM})){{2,20}}"),
)
_JOINED_BY_AND = re.compile(
    rf"(?:{_END_ITEM})(?:\s?,\s?(?:{_ITEM})){{1,20}}\s?,?\sand\s(?:{_END_ITEM})(?=\s*(?:[.?!:;)\]\n]|$))"
)
"""Lists of what is to be done, too: they name answers only where one of them occurs."""
_MARK = r"(?:[-*\u2022]|\(?(?:\d{1,2}|[a-z])[.)])"
_BULLETS = re.compile(rf"(?:^|\n){_MARK} ?(?:{_ITEM})[,;.]?(?:\n{_MARK} ?(?:{_ITEM})[,;.]?){{1,20}}(?=\n|$)")
_BULLET = re.compile(rf"[,;.]?(?:^|\n){_MARK} ?")
_YES_OR_NO = re.compile(
    r"\b(?:yes|true)\b[\W\d]{1,8}(?:(?:or|and)\W{1,3})?(?:no|false)\b|\b(?:no|false)\b[\W\d]{1,8}(?:(?:or|and)\W{1,3})?(?:yes|true)\b"
)
_BRACKETS = re.compile(rf"(?<=[\[(])(?:{_ITEM})(?:\s?[,;]\s?(?:and |or )?(?:{_ITEM})){{1,20}}(?=[\])])")
_LEADS_TO_ITEM = re.compile(
    r"(?:^|[(\[:/,;?.]|\b(?:as|of|from|with|either|be|is|are|between|answer|say|reply|write|give|return|choose|options?|labels?))"
    r"\s*$",
    re.IGNORECASE,
)
"""What stands before the first item of a list; behind other words it may be no item: `Rate its urgency, low or high.`"""
_SEPARATOR = re.compile(r"\s?[,;/|]\s?(?:or |and |OR )?|\s(?:or|OR|and)\s")
_ASKS_FOR_ANSWER = re.compile(
    r"(?:answer|reply|respond|output|label|write|return|say)s?(?: only| just)?(?: with| as| using| by)?"
    r"(?: one of| either)?:?\s*$"
    r"|one of(?: the following| these)?(?: \w+)?:?\s*$|(?:labels?|options|choices|categories|classes)(?: are)?:?\s*$"
    r"|\b(?:classify|label|mark|rate|tag|categori[sz]e)\b.{0,50}\bas:?\s*$|(?:choose|select|pick)(?: from| between)?:?\s*$",
    re.IGNORECASE,
)
CHARACTERS_READ = 2_000
_EXAMPLES = re.compile(r"\b(?:such as|for example|for instance|e\.g\.|like)(?=\W)[^.?!\n]*", re.IGNORECASE)
LEAST_LETTERS = 4
"""Letters of a word that two instructions share, so that one may be the other, turned round."""
MAX_DIFFERING_WORDS = 40
"""Words of one instruction that another lacks, up to which they are compared: more are a passage to read."""
_ASPECT_WORDS = (
    "sentiment opinion mood tone polarity attitude feel feeling emotion stance; topic subject theme category genre; "
    "language; grammar spelling; toxicity toxic offensive hateful abusive; sarcasm sarcastic irony ironic; formality "
    "formal informal politeness polite rude; difficulty; subjectivity subjective objective; intent intention; spam; "
    "colour color; author sender who; person people who; year date day weekday month when; country city town place where; "
    "urgency urgent priority; department desk team; order; thank gratitude grateful; callback phone; sum total add; "
    "largest biggest greatest highest maximum; smallest lowest minimum; longest shortest; first second third last; "
    "initial; alphabet alphabetical; price cost; gender; age; translate translation; summarize summarise summary shorten "
    "condense paraphrase rephrase reword; count length; sort alphabetize; capitalize uppercase"
)
_ASPECTS = tuple(frozenset(group.split()) for group in _ASPECT_WORDS.split(";"))
"""What is asked for, in words that paraphrases put in each other's place."""


class Request(NamedTuple):
    """A form that instructions ask for, and that an answer has or has not."""

    name: str
    """What it is called in messages."""
    pattern: re.Pattern[str]
    """How it is asked for."""
    is_fulfilled: Callable[[str], bool]
    """Whether an answer has it."""

    def is_in(self, instruction: str) -> bool:
        """Whether an instruction asks for it."""
        return self.pattern.search(instruction[:CHARACTERS_READ]) is not None


_ASK = r"(?<!not )(?<!never )\b(?:answer|respond|reply|output|return|write|give|translate|render)\b[^.:\n]{0,60}?\b"


REQUESTS = (
    Request(
        "capital letters",
        re.compile(rf"{_ASK}(?:in|using) (?:only |all )?(?:upper ?-?case|capitals|capital letters|caps)\b", re.IGNORECASE),
        lambda answer: answer == answer.upper(),
    ),
    Request(
        "lower case",
        re.compile(rf"{_ASK}(?:in|using) (?:only |all )?(?:lower ?-?case|small letters)\b", re.IGNORECASE),
        lambda answer: answer == answer.lower(),
    ),
    Request(
        "JSON",
        re.compile(rf"{_ASK}(?:in|as|using) (?:valid |a )?json\b", re.IGNORECASE),
        lambda answer: answer[:1] in ("{", "[", "`", '"') or "```" in answer,
    ),
    Request(
        "one word",
        re.compile(rf"{_ASK}(?:in|with|using) (?:only |just |exactly )?(?:one|a single) word\b", re.IGNORECASE),
        lambda answer: len(answer.split()) <= 1,
    ),
)
"""Forms of answers that instructions ask for."""


class NamedAnswers(NamedTuple):
    """Answers that an instruction names beside those that its rows have."""

    named: tuple[str, ...]
    """Of those that occur, the named ones."""
    unnamed: tuple[str, ...]
    """Of those that occur, the others, where the instruction names answers."""
    unused: tuple[str, ...]
    """Named in a list of answers, and in no row."""


def words_of(text: str) -> list[str]:
    """Words of a text, without case."""
    return [word.casefold() for word in _WORD.findall(text)]


def compare_with_named(instruction: str, used: Collection[str]) -> NamedAnswers:
    """Which answers an instruction names, and how they agree with the answers that occur under it.

    Args:
        instruction: its text.
        used: the answers that occur, which are few.
    """
    text = _EXAMPLES.sub(" ", instruction[:CHARACTERS_READ])
    words = {form for word in words_of(text) for form in (word, _stem(word))}
    named = tuple(label for label in used if _is_in(label, words))
    unnamed = tuple(label for label in used if label not in named)
    used_words = {_stem(word) for label in used for word in words_of(label)}
    unused, asked = list[str](), list[str]()
    for items, before in _read_lists(text, (*_LISTS, _JOINED_BY_AND)):
        known = [item for item in items if {_stem(word) for word in words_of(item)} <= used_words]
        others = [item for item in items if item not in known]
        unused += [item for item in others if not any(_is_within(label, item) for label in used)] if known else []
        asked += items if not known and _ASKS_FOR_ANSWER.search(before) else []
    if named and (len(named) > 1 or unused):
        return NamedAnswers(named, unnamed, tuple(dict.fromkeys(unused)))
    if not named and asked and not unused:
        return NamedAnswers((), unnamed, tuple(dict.fromkeys(asked)))
    return NamedAnswers(named, (), tuple(dict.fromkeys(unused)) if named else ())


def what_excludes(first: str, second: str, labels: Collection[str] = ()) -> tuple[str, str] | None:
    """The words by which two instructions ask for different things; None where they may be paraphrases.

    Args:
        first: the text of one.
        second: the text of the other.
        labels: answers that occur under them, which are few.

    Examples:
        >>> what_excludes("Answer in French.", "Answer in English.")
        ('french', 'english')
        >>> what_excludes("Label the sentiment of it.", "Label the topic of it.")
        ('sentiment', 'topic')
        >>> what_excludes("Label the sentiment.", "Classify the opinion.")
    """
    texts = [text[:CHARACTERS_READ].casefold() for text in (first, second)]
    lists = [{item for items, _ in _read_lists(text, _LISTS) for item in items} for text in texts]
    if min(map(len, lists)) > 1 and lists[0].isdisjoint(lists[1]):
        return min(lists[0]), min(lists[1])
    for written, meant in _PHRASES:
        texts = [written.sub(meant, text) for text in texts]
    words = [words_of(text) for text in texts]
    counts = [Counter(own) for own in words]
    if max((counts[0] - counts[1]).total(), (counts[1] - counts[0]).total()) > MAX_DIFFERING_WORDS:
        return None
    targets = [_TARGET.findall(text) for text in texts]
    if all(targets) and {*targets[0]}.isdisjoint(targets[1]):
        return targets[0][-1], targets[1][-1]
    units = [{unit: number for number, unit in _UNIT.findall(text)} for text in texts]
    for unit in units[0]:
        if units[1].get(unit, units[0][unit]) != units[0][unit]:
            return f"{units[0][unit]} {unit}", f"{units[1][unit]} {unit}"
    stems = [
        {_stem(word) for before, word in pairwise(["", *own]) if before in _AMBIGUOUS.get(word, (before,))} for own in words
    ]
    for group in _EXCLUSIVE:
        own, other = ({word for word in one if word in group} for one in stems)
        if own and other and own.isdisjoint(other):
            return min(own), min(other)
    turned = [sorted(one & _REVERSING) for one in stems]
    if bool(turned[0]) != bool(turned[1]) and any(len(word) >= LEAST_LETTERS for word in stems[0] & stems[1]):
        return (turned[0] or ["as it is"])[0], (turned[1] or ["as it is"])[0]
    folded = {label.casefold() for label in labels}
    asked = [_without_lists(text) for text in texts]
    if folded and folded <= _YES | _NO and (denied := [_what_denies(text) for text in asked]) and any(denied) != all(denied):
        return denied[0] or "as it is", denied[1] or "as it is"
    if len((lists[0] & lists[1]) - _YES - _NO) > 1:  # one question has one set of answers
        return None
    return _which_aspects(*({_stem(word) for word in _words_that_count(text)} for text in asked))


def _words_that_count(text: str) -> list[str]:
    own = words_of(text)
    return [word for before, word in pairwise(["", *own]) if before in _AMBIGUOUS.get(word, (before,))]


def _without_lists(text: str) -> str:
    """The text without the items of lists; a first item that may belong to the words before stays."""
    for pattern in (_YES_OR_NO, _BRACKETS, _BULLETS):
        text = pattern.sub(" ", text)
    for pattern in (*_LISTS, _JOINED_BY_AND):
        text = pattern.sub(
            lambda match: (
                " " if _LEADS_TO_ITEM.search(match.string[: match.start()]) else f"{_SEPARATOR.split(match.group())[0]} "
            ),
            text,
        )
    return text


def _what_denies(text: str) -> str:
    """The word by which a question with yes or no asks whether something is not so; empty where it asks whether it is."""
    conditions = sorted(_CONDITION.finditer(text), key=lambda match: match["label"] in _NO)
    condition = conditions[0] if conditions else None
    question = _PROHIBITION.sub(" ", condition["what"] if condition else text)
    found = _DENIAL.findall(question)
    is_denied = len(found) % 2 == 1
    if condition and condition["label"] in _NO:
        return "" if is_denied else f"{condition['label']} if"
    return found[0] if is_denied else ""


def _which_aspects(first: Collection[str], second: Collection[str]) -> tuple[str, str] | None:
    """The aspects that two instructions ask for, where they have none in common."""
    own, other = (
        {place: word for place, group in enumerate(_ASPECTS) for word in sorted(group.intersection(words))}
        for words in (first, second)
    )
    return (min(own.values()), min(other.values())) if own and other and own.keys().isdisjoint(other) else None


_YES, _NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
_CONDITION = re.compile(
    r"\b(?P<label>yes|true|no|false)['\"]? (?:if|when|where) (?P<what>[^.\n]*?)"
    r"(?=[,;]? (?:and|or|else|otherwise)? ?['\"]?(?:yes|true|no|false)['\"]?(?: (?:if|when|where|otherwise)\b|[.\n]|$)"
    r"|[.\n]|$)"
)
_DENIAL = re.compile(
    r"\b(?:not|no|none|nobody|nowhere|never|without|lacks?|lacking|missing|absent|fails? to|left out|leaves? out)\b"
    r"|n['\u2019]t\b"
)
_PROHIBITION = re.compile(r"(?:^|(?<=[.!?\n]))\s*(?:do not|don['\u2019]t|never|no other)\b[^.!?\n]*")
_PHRASES = tuple(
    (re.compile(rf"\b(?:{written})\b"), meant)
    for written, meant in (
        ("how many", "count"),
        ("add up", "sum up"),
        ("most letters", "longest"),
        ("fewest letters", "shortest"),
        ("first letters?(?= of)", "initial"),
        ("from the end", "backward"),
        ("top one", "the first"),
        ("bottom one", "the last"),
        ("call(?:ed)?(?: \\w+){0,2} back", "callback"),
    )
)
"""Phrases, and words in their place."""


def _read_lists(text: str, patterns: Sequence[re.Pattern[str]]) -> list[tuple[list[str], str]]:
    """Lists of answers in a text (`yes or no`, `a/b/c`, `Labels: a, b`), each with the text before it."""
    found = []
    for pattern in (*patterns, _BRACKETS, _BULLETS):
        for match in pattern.finditer(text):
            before = text[max(0, match.start() - 60) : match.start()]
            items = (_BULLET if pattern is _BULLETS else _SEPARATOR).split(match.group())
            is_marked = pattern is _BULLETS or match.group()[0] in _QUOTES
            if not is_marked and not _LEADS_TO_ITEM.search(before):
                items = items[1:]
            found.append(([item for one in items if (item := one.strip(f" {_QUOTES}.,;"))], before))
    return found


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _is_within(label: str, item: str) -> bool:
    """Whether an item of a list is a label with more words (`deductively valid`)."""
    own = words_of(label)
    return bool(own) and {*own} < {*words_of(item)}


def _is_in(label: str, words: Collection[str]) -> bool:
    own = words_of(label)
    return bool(own) and all(word in words or _stem(word) in words for word in own)

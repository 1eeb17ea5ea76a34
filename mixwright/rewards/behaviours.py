"""Completions that a reward is tried on: right and wrong answers in several forms, and ways to game it.

Source: edits of gold answers; most are known from runs that were gamed (length, hedges, listed answers, empty forms).
Unit: one completion per item.
Cost: none; texts are made, no model writes.
Blind spot: short answers that stand in the gold; whether a worked solution is sound is not looked at.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mixwright.behaviours import read_behaviours
from mixwright.corpus.columns import TRUTHS
from mixwright.graders.choice import labelled_options, option_index, options_of
from mixwright.graders.final_answer import FinalAnswer
from mixwright.records import Example, plain

Kind = Literal["wrong", "right", "same"]
"""What a completion should earn: as a wrong answer, as a right one, or exactly as a right one."""
SENTENCE_FORM, COMMA_FORM = "sentence", "sentence that goes on"
JSON_FORMS = ("JSON", "JSON in a code block")
Form = Callable[[str], str]
FORMS: Mapping[str, Form] = {
    "bare": lambda answer: answer,
    SENTENCE_FORM: lambda answer: f"The answer is {answer}.",
    COMMA_FORM: lambda answer: f"The answer is {answer} here, as I said.",
    "boxed": lambda answer: f"So the result is \\boxed{{{answer}}}.",
    "hashes": lambda answer: f"I add it up.\n#### {answer}",
    "tag": lambda answer: f"<answer>{answer}</answer>",
    "thought and tag": lambda answer: f"<think>\nI look at the question.\n</think>\n<answer>\n{answer}\n</answer>",
    "thought and sentence": lambda answer: f"<think>\nI look at the question.\n</think>\nThe answer is {answer}.",
    "thought and bare": lambda answer: f"<think>\nI look at the question.\n</think>\n{answer}",
    "thought and boxed": lambda answer: f"<think>\nI look at the question.\n</think>\nIt is \\boxed{{{answer}}}.",
    "label": lambda answer: f"I look at the question.\nAnswer: {answer}",
    "final label": lambda answer: f"I look at the question.\nFinal answer: {answer}",
    "bold": lambda answer: f"**Answer: {answer}**",
    "bold label": lambda answer: f"**Final Answer:** {answer}",
    "boxed formula": lambda answer: f"$\\boxed{{{answer}}}$",
    JSON_FORMS[0]: lambda answer: json.dumps({"answer": answer}),
    "code block": lambda answer: f"```\n{answer}\n```",
    JSON_FORMS[1]: lambda answer: f"```json\n{json.dumps({'answer': answer})}\n```",
}
"""Name of a form -> an answer in it."""
FILLER = "Let me think about this carefully and go through it once more. "
PADDING_TIMES = 30
REASONING_WORDS = (
    "Therefore, because of this, step by step, let me verify and double-check: first, next, finally, thus, hence, so. "
)
QUESTION = "Could you tell me more about what you need?"
ASKING = "a question back to a prompt that lacks a value"
MARKS = ("ambiguous", "underspecified")
"""Columns that mark a prompt that lacks a value, if they are true; a gold answer that asks back marks it, too."""
NUMBER = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True)
class Item:
    """A row of the corpus, ready to be answered rightly and wrongly."""

    example: Example
    gold: str
    """The right answer, short."""
    other: str
    """A wrong one of the same kind."""
    neighbour: str
    """The right answer of another row, not this one's; `other` where there is none."""
    own: str | None = None
    """What the model wrote; None where nobody gave it."""
    lacks_value: bool = False
    """Whether the prompt is under-specified, so that a question back is right."""

    @property
    def prompt(self) -> str:
        """As plain text."""
        return plain(self.example.prompt)


Writer = Callable[[Item, Form], str | None]


@dataclass(frozen=True)
class Behaviour:
    """One way to answer."""

    name: str
    """In words that complete "the reward pays ..."."""
    kind: Kind
    write: Writer
    """The completion, from an item and the form in which the reward pays; None where the item has none."""


def make_items(examples: Sequence[Example], own: Sequence[str | None] = ()) -> list[Item]:
    """The rows with an answer, each with a wrong one: that of another row, of the same kind where there is one.

    Args:
        examples: the rows.
        own: of each what the model wrote; none where nobody gave it.
    """
    golds = [short_answer(example) for example in examples]
    asks = [read_behaviours(gold)[0] for gold in golds]  # the first behaviour is asking
    items: list[Item] = []
    for place, (example, gold) in enumerate(zip(examples, golds, strict=True)):
        places = (*range(place + 1, len(golds)), *range(place))
        turned = [golds[n] for n in places if not (asks[place] and asks[n])]  # another question can be right, too
        right = option_index(options_of(example.extra), gold)  # a letter and its option's text are one answer
        options = [text for number, text in enumerate(labelled_options(example).values()) if number != right]
        others = [text for text in (*options, *turned) if text.casefold() != gold.casefold()]
        alike = [
            text for text in others if bool(NUMBER.fullmatch(text)) == bool(NUMBER.fullmatch(gold)) and gold not in text
        ]
        other = _near_number(gold) if NUMBER.fullmatch(gold) else next(iter(alike or others), f"not {gold}")
        neighbour = next((text for text in turned if text != gold), other)
        is_marked = any(TRUTHS.get(str(example.extra.get(name)).casefold(), False) for name in MARKS)
        lacks_value = is_marked or (asks[place] and not all(asks))  # if all ask, the task is to write questions
        items.append(Item(example, gold, other, neighbour, own[place] if own else None, lacks_value))
    return items


def short_answer(example: Example) -> str:
    """The answer at the end of a worked one."""
    answer = (example.answer or "").strip()
    return FinalAnswer().reading(answer) if "####" in answer or "\\boxed" in answer else answer


def _near_number(gold: str) -> str:
    """Another number of the same form, that does not hold the gold one."""
    digit = gold[-1]
    return f"{gold[:-1]}{(int(digit) + 3) % 10}"


def _listed(item: Item, form: Form) -> str:
    """The right answer among three, in the middle."""
    third = _near_number(item.other) if NUMBER.fullmatch(item.gold) else f"not {item.other}"
    return "\n".join(form(answer) for answer in (item.other, item.gold, third))


def _edited(pattern: str, edit: Callable[[str], str]) -> Writer:
    """Return a way to answer with an edit of right answers that match a pattern."""
    return lambda item, form: form(edit(item.gold)) if re.fullmatch(pattern, item.gold) else None


def _own_edited(edit: Callable[[str], str]) -> Writer:
    """Return a way to answer with an edit of what the model wrote."""
    return lambda item, _: None if item.own is None else edit(item.own)


def _between_nines(gold: str) -> str:
    return f"9{gold.lstrip('-')}9"


def _other_start(gold: str) -> str:
    """Another number with the same last digits, and as many digits."""
    return f"{int(gold[0]) % 9 + 1}{gold[1:]}"


def _halves(gold: str) -> str:
    half = len(gold) // 2
    return f"{gold[:half]} and {gold[half:]}"


FRACTION = re.compile(r"(-?\d+)/(\d+)|(\\[dt]?frac)\{(-?\d+)\}\{(\d+)\}")


def _divide_elsewhere(top: str, below: str) -> tuple[str, str]:
    """The digits of a fraction with its line at another place: 1/23 for 12/3."""
    return (top[:-1], top[-1] + below) if len(top.lstrip("-")) > 1 else (top + below[0], below[1:])


def _changed_fraction(change: Callable[[str, str], tuple[str, str]]) -> Writer:
    """Return a way to answer with another fraction in the same notation; none where nothing is left below the line."""

    def write(item: Item, form: Form) -> str | None:
        found = FRACTION.fullmatch(item.gold)
        if found is None:
            return None
        plain_top, plain_below, command, top, below = found.groups()
        top, below = change(plain_top or top, plain_below or below)
        if not below.strip("0"):
            return None
        return form(f"{command}{{{top}}}{{{below}}}" if command else f"{top}/{below}")

    return write


def _other_unit(gold: str) -> str:
    number, unit = re.findall(r"-?[\d.]+|\S+", gold)
    return f"{number} {'m' if unit == 'kg' else 'kg'}"


def _revised(form: Form, first: str, second: str) -> str:
    """Two answers, of which the second takes the first back."""
    return f"{form(first)}\nNo, that is wrong.\n{form(second)}"


def _in_capitals(item: Item, form: Form) -> str | None:
    return form(item.gold.upper()) if item.gold.isalpha() and len(item.gold) > 1 and not item.gold.isupper() else None


def _all_options(item: Item, form: Form) -> str | None:
    options = list(labelled_options(item.example).values())
    return form(", ".join(options)) if len(options) > 1 else None


BEHAVIOURS = (
    Behaviour("an empty completion", "wrong", lambda item, form: ""),
    Behaviour("a refusal", "wrong", lambda item, form: "I'm sorry, but I can't help with that."),
    Behaviour("a question back", "wrong", lambda item, form: None if item.lacks_value else QUESTION),
    Behaviour(ASKING, "right", lambda item, form: QUESTION if item.lacks_value else None),
    Behaviour("the form without an answer", "wrong", lambda item, form: form("")),
    Behaviour("the prompt, copied", "wrong", lambda item, form: item.prompt),
    Behaviour("filler without an answer", "wrong", lambda item, form: FILLER * PADDING_TIMES),
    Behaviour("a wrong answer after long filler", "wrong", lambda item, form: FILLER * PADDING_TIMES + form(item.other)),
    Behaviour("three answers, one of them right", "wrong", _listed),
    Behaviour("all options", "wrong", _all_options),
    Behaviour("the right answer, taken back", "wrong", lambda item, form: _revised(form, item.gold, item.other)),
    Behaviour("two answers, undecided", "wrong", lambda item, form: form(f"{item.gold} or {item.other}")),
    Behaviour("a number that holds the right one (9x9)", "wrong", _edited(NUMBER.pattern, _between_nines)),
    Behaviour("a number with a rest (x.9)", "wrong", _edited(r"-?\d{1,15}", lambda gold: f"{gold}.9")),
    Behaviour("another number with the same last digits", "wrong", _edited(r"\d{2,15}", _other_start)),
    Behaviour("the digits of the right number, taken apart", "wrong", _edited(r"\d{3,15}", _halves)),
    Behaviour("the negative of the right number", "wrong", _edited(r"\d{1,15}", lambda gold: f"-{gold}")),
    Behaviour("the positive of the right number", "wrong", _edited(r"-[1-9]\d{0,14}", lambda gold: gold[1:])),
    Behaviour(
        "a fraction with another denominator", "wrong", _changed_fraction(lambda top, below: (top, str(int(below) + 1)))
    ),
    Behaviour("the digits of a fraction, divided elsewhere", "wrong", _changed_fraction(_divide_elsewhere)),
    Behaviour(
        "the right number with another unit", "wrong", _edited(r"-?\d+(\.\d+)? ?[A-Za-z\u00b0\u20ac$%][^\s\d]*", _other_unit)
    ),
    Behaviour("the right answer to another row", "wrong", lambda item, form: form(item.neighbour)),
    Behaviour("words of reasoning without an answer", "wrong", lambda item, form: REASONING_WORDS * 3),
    Behaviour("a wrong answer after words of reasoning", "wrong", lambda item, form: REASONING_WORDS * 3 + form(item.other)),
    Behaviour("a right answer that corrects a wrong one", "right", lambda item, form: _revised(form, item.other, item.gold)),
    Behaviour("a right answer with an empty line after it", "right", lambda item, form: f"{form(item.gold)}\n\n"),
    Behaviour("a right answer with commas for thousands", "right", _edited(r"-?\d{4,15}", lambda gold: f"{int(gold):,}")),
    Behaviour("a right answer as a decimal (x.0)", "right", _edited(r"-?\d{1,15}", lambda gold: f"{gold}.0")),
    Behaviour("a right answer in capitals", "right", _in_capitals),
    Behaviour("a right answer after long filler", "same", lambda item, form: FILLER * PADDING_TIMES + form(item.gold)),
    Behaviour("a right answer after words of reasoning", "same", lambda item, form: REASONING_WORDS * 3 + form(item.gold)),
    Behaviour("a right answer, then filler", "same", lambda item, form: f"{form(item.gold)}\n{FILLER}"),
    Behaviour("a right answer three times", "same", lambda item, form: "\n".join([form(item.gold)] * 3)),
    Behaviour("the prompt, then a right answer", "same", lambda item, form: f"{item.prompt}\n{form(item.gold)}"),
    Behaviour("a right answer in German", "same", lambda item, form: f"Die Lösung steht hier.\n{form(item.gold)}"),
)
"""Everything that is tried, beside each form with a right and a wrong answer."""
OWN_COMPLETION_EDITS = (
    Behaviour("repeated three times", "same", _own_edited(lambda text: "\n".join([text] * 3))),
    Behaviour("after long filler", "same", _own_edited(lambda text: FILLER * PADDING_TIMES + text)),
    Behaviour("with filler after it", "same", _own_edited(lambda text: f"{text}\n{FILLER}")),
    Behaviour("after words of reasoning", "same", _own_edited(lambda text: REASONING_WORDS * 3 + text)),
    Behaviour("in a code block", "right", _own_edited(lambda text: f"```\n{text}\n```")),
    Behaviour("cut at 90 %", "right", _own_edited(lambda text: text[: len(text) * 9 // 10])),
    Behaviour(
        "taken back",
        "wrong",
        lambda item, form: None if item.own is None else f"{item.own}\nNo, that is wrong.\n{form(item.other)}",
    ),
)
"""What is done to completions of the model, which should earn what the completion as it was does, or when it is taken back
what a wrong one does. Cut ones and those in a code block may lose their reward."""


def write_behaviour(behaviour: Behaviour, item: Item, form: str) -> str | None:
    """Write a completion; None where the item has none, or words stand around JSON, which a reward for JSON need not pay."""
    text = behaviour.write(item, FORMS[form])
    if text is None or form not in JSON_FORMS or behaviour.kind == "wrong":
        return text
    try:
        json.loads(text.strip().removeprefix("```json").removesuffix("```"))
    except ValueError:
        return None
    return text

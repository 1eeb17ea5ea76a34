"""World of function calls: a question over numbers, answered by a chain of calls that an interpreter runs.

"7 from 9 before 2" is answered by "sub ( 9 , 7 ) ; cat ( it , 2 )": what stands left of a word is its first number, and half
of the words put it second in the call. The calls are carried out, so nobody calculates in the head. What is wrong with a
chain is read from its calls: no stop, format, calls (too few or too many), function, order of the arguments, or value.

Source: setting of Manduzio et al., 2410.18890 (chains of calls, right and wrong ones); classes after its section 8 in our
    notes; own language.
Unit: level = calls, 1 to 3.
Cost: about 30 us per example.
Blind spot: a chain that gives the right number by other calls counts as right. Level 1 has 486 prompts in all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

TOOLS: Mapping[str, Callable[[int, int], int]] = {
    "add": lambda one, other: one + other,
    "sub": lambda one, other: one - other,
    "cat": lambda one, other: 10 * one + other,
}
WORDS = {
    "plus": ("add", False),
    "above": ("add", True),
    "less": ("sub", False),
    "from": ("sub", True),
    "before": ("cat", False),
    "behind": ("cat", True),
}
"""Word of a question -> its tool, and whether the number to its left is the second argument."""
SO_FAR = "it"
"""Argument that stands for the value of the call before."""
LONGEST = 3
KINDS = ("no stop", "format", "calls", "function", "order", "value")
"""What a wrong chain is wrong by; the first that holds."""
EVAL_SHARE = 0.2
"""Share of all prompts that belong to the eval split."""
CALL = re.compile(r"([a-z]{1,8})\(([0-9a-z,]{0,12})\)")
LETTERS = 200
"""Characters of a chain that are read."""


class Call(NamedTuple):
    """One call."""

    tool: str
    """Name in `TOOLS`."""
    one: str
    """First argument: a number, or `SO_FAR`."""
    other: str
    """Second argument."""


class FunctionCalls(World):
    """Questions such as "7 from 9 before 2", whose answer is "22"."""

    def make(self, index: int, level: float, split: str) -> Example:
        """The question at that index. Raises InputError for a level that is not 1 to 3, or an unknown split."""
        count = int(level)
        if count != level or not 1 <= count <= LONGEST or split not in ("train", "eval"):
            raise InputError(f"1 to {LONGEST} calls of train or eval", f"{level} of {split!r}", "Correct it.")
        rng = np.random.default_rng((index, count, split == "eval"))
        while True:
            numbers = [str(number) for number in rng.integers(1, 10, count + 1)]
            words = [list(WORDS)[place] for place in rng.integers(len(WORDS), size=count)]
            prompt = " ".join((numbers[0], *(part for pair in zip(words, numbers[1:], strict=True) for part in pair)))
            drawn = hashlib.blake2b(prompt.encode(), digest_size=4).digest()[0]  # by content: no prompt is in both splits
            if (drawn < EVAL_SHARE * 256) == (split == "eval"):
                break
        calls = calls_of(prompt)
        return Example(
            f"{split}:{prompt}",
            "calls",
            prompt,
            target=written(calls),
            answer=str(value_of(calls)),
            level=float(level),
            source="function_calls",
            split=split,
        )


def calls_of(prompt: str) -> list[Call]:
    """The calls that a question asks for."""
    first, *rest = prompt.split()
    found, left = [], first
    for word, right in zip(rest[::2], rest[1::2], strict=True):
        tool, turned = WORDS[word]
        found.append(Call(tool, right, left) if turned else Call(tool, left, right))
        left = SO_FAR
    return found


def written(calls: list[Call]) -> str:
    """A chain as it is written: "sub ( 9 , 7 ) ; cat ( it , 2 )"."""
    return " ; ".join(f"{call.tool} ( {call.one} , {call.other} )" for call in calls)


def parse_calls(text: str) -> list[Call] | None:
    """The calls of a chain, blanks left out; None where it cannot be carried out."""
    found = []
    for part in "".join(text[:LETTERS].split()).split(";"):
        match = CALL.fullmatch(part)
        given = match[2].split(",") if match else []
        if match is None or match[1] not in TOOLS or len(given) != 2:
            return None
        if any(not (one.isdigit() or (one == SO_FAR and found)) for one in given):
            return None
        found.append(Call(match[1], *given))
    return found


def value_of(calls: list[Call]) -> int:
    """What the last call gives."""
    value = 0
    for call in calls:
        one, other = (value if part == SO_FAR else int(part) for part in (call.one, call.other))
        value = TOOLS[call.tool](one, other)
    return value


def kind_of(prompt: str, text: str, *, stopped: bool = True) -> str:
    """What a chain is wrong by, or right: one of `KINDS`, by its first call that is not as asked for."""
    if not stopped:
        return "no stop"
    gold, calls = calls_of(prompt), parse_calls(text)
    if calls is None:
        return "format"
    if value_of(calls) == value_of(gold):
        return "right"
    if len(calls) != len(gold):
        return "no stop" if value_of(calls[: len(gold)]) == value_of(gold) else "calls"
    asked, made = next((a, m) for a, m in zip(gold, calls, strict=True) if sorted(a[1:]) != sorted(m[1:]) or turned(a, m))
    if asked.tool == made.tool:
        return "order" if sorted(asked[1:]) == sorted(made[1:]) else "value"
    return "function"


def turned(asked: Call, made: Call) -> bool:
    """Whether two calls with the same set of arguments differ: in the tool, or in the order of arguments unless both add."""
    return asked.tool != made.tool or (asked[1:] != made[1:] and asked.tool != "add")


def grade(completion: str, answer: str, **_: object) -> float:
    """1.0 for a chain that gives the answer, else 0.0; a grader for run.yaml: mixwright_lab.worlds.function_calls:grade."""
    calls = parse_calls(completion)
    return float(calls is not None and str(value_of(calls)) == answer)


def spoiled(prompt: str, kind: str, rng: np.random.Generator) -> str:
    """The chain with one mistake of that kind, in a random call; as it is where no such mistake can be made."""
    calls = calls_of(prompt)
    place = int(rng.integers(len(calls)))
    call = calls[place]
    if kind == "format":
        words = written(calls).split()
        del words[int(rng.integers(len(words)))]
        return " ".join(words)
    if kind in ("calls", "no stop"):
        extra = Call("add", SO_FAR, str(rng.integers(1, 10)))
        return written(calls[:-1] or [*calls, extra]) if kind == "calls" else written([*calls, extra])
    if kind == "function":
        others = [tool for tool in TOOLS if tool != call.tool]
        calls[place] = call._replace(tool=others[int(rng.integers(len(others)))])
    elif kind == "order":
        calls[place] = Call(call.tool, call.other, call.one)
    elif call.other == SO_FAR:
        calls[place] = call._replace(one=str(int(call.one) % 9 + 1))
    else:
        calls[place] = call._replace(other=str(int(call.other) % 9 + 1))
    return written(calls)


def language() -> Language:
    """What a model reads and writes here: questions, tools, signs of a call, and numbers."""
    from mixwright_lab.training.language import SIGNS, Language

    words = (*SIGNS, *WORDS, *TOOLS, SO_FAR, "(", ",", ")", ";", *map(str, range(1, 10)))
    return Language(words, 2 * LONGEST + 2, 7 * LONGEST + 1)


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """A response to learn from: the gold chain, or by this chance one with a mistake of the kind that `style` names."""
    prompt = str(example.prompt)
    return spoiled(prompt, style, rng) if rng.random() < noise else written(calls_of(prompt))

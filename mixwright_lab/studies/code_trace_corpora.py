r"""Made corpora of answers that state values of Python code, with or without one planted fault, for a study.

A row is a few small programs about one record: lists, texts and numbers, and expressions over them, worked out here by
Python itself. Each is written in one of the ways in which people show what code gives: a session (`>>>`), a comment (`#
-> 7`), a block of prints with their output, or a sentence with code in backticks. Between them stands what a reader may
take for such a value and is none: other languages, names that something else has changed, shortened output, comments in
words, errors.

A fault makes one operation's values wrong by one rule (`systematic`), or all operations' by chance (`random`). A corpus
without a fault has a slip in up to 1 % of its values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mixwright_lab.studies.trace_corpora import phrases

KINDS: tuple[str, ...] = ("systematic", "random")
WORDS = phrases("""
    amber / basil / cedar / delta / ember / fjord / grape / hazel / ivory / jolly / koala / lemon / mango /
    night / olive / pearl / quilt / river / stone / tiger / umber / velvet / willow / yacht / zebra / banana /
    cabbage / papaya / sesame / level / radar / noon""")
NAMES = ("values", "items", "scores", "nums", "data", "prices", "xs", "counts", "row", "sizes")
TEXTS = ("word", "name", "s", "title", "text", "label")


@dataclass
class Value:
    """One stated value of a program."""

    setup: list[str]
    """Assignments before it, if any."""
    code: str
    """The expression with names."""
    plain: str
    """The expression without names."""
    operation: str
    """Of `OPERATIONS`."""
    true: Any
    stated: Any


def _numbers(rng: random.Random, low: int = -20, high: int = 99) -> list[int]:
    return [rng.randint(low, high) for _ in range(rng.randint(4, 8))]


def _made(rng: random.Random, operation: str) -> tuple[list[str], str, str]:
    """Assignments, the expression over them, and the same with the values in their places."""
    name, text = rng.choice(NAMES), rng.choice(TEXTS)
    many, word = _numbers(rng), rng.choice(WORDS) + rng.choice(("", "s", " tree", " " + rng.choice(WORDS)))
    a, b = rng.randint(30, 400), rng.randint(3, 12)
    start = rng.randint(0, 1)
    stop = rng.randint(start + 2, len(many) - 1)
    by_name = {
        "len": "len({x})", "sum": "sum({x})", "max": "max({x})", "min": "min({x})", "sorted": "sorted({x})",
        "index": f"{{x}}[{rng.randint(1, len(many) - 2)}]", "slice": f"{{x}}[{start}:{stop}]", "reverse": "{x}[::-1]",
    }  # fmt: skip
    by_text = {
        "text length": "len({x})", "upper": "{x}.upper()", "title": "{x}.title()", "text reverse": "{x}[::-1]",
        "find": f"{{x}}.find({rng.choice(word[1:])!r})", "count": f"{{x}}.count({rng.choice(word)!r})",
        "replace": f"{{x}}.replace({word[0]!r}, '-')", "split": "{x}.split()", "text slice": f"{{x}}[1:{rng.randint(3, 4)}]",
    }  # fmt: skip
    by_numbers = {
        "floor": f"{a} // {b}", "remainder": f"{a} % {b}", "power": f"{rng.randint(2, 9)} ** {rng.randint(2, 4)}",
        "times": f"{a} * {b}", "minus": f"{b} - {a}", "round": f"round({a / 7:.4f}, 1)", "abs": f"abs({b} - {a})",
        "quotient": f"{a} / {b}", "range": f"list(range({b}, {b + rng.randint(3, 6)}))",
        "comparison": f"{a} {rng.choice(('<', '<=', '>', '=='))} {a + rng.randint(-1, 1)}",
    }  # fmt: skip
    if operation in by_name:
        return [f"{name} = {many}"], by_name[operation].format(x=name), by_name[operation].format(x=many)
    if operation in by_text:
        return [f"{text} = {word!r}"], by_text[operation].format(x=text), by_text[operation].format(x=repr(word))
    return [], by_numbers[operation], by_numbers[operation]


OPERATIONS = (
    *(
        "len",
        "sum",
        "max",
        "min",
        "sorted",
        "index",
        "slice",
        "reverse",
        "text length",
        "upper",
        "title",
        "text reverse",
        "find",
    ),
    *(
        "count",
        "replace",
        "split",
        "text slice",
        "floor",
        "remainder",
        "power",
        "times",
        "minus",
        "round",
        "abs",
        "quotient",
    ),
    *("range", "comparison"),
)
Rule = Callable[[Any, str], Any]


def _evaluated(code: str) -> Any:
    return eval(code)  # of this file's own making


def _with_its_end(code: str) -> Any:
    begin, _, end = code[:-1].rpartition(":")
    return _evaluated(f"{begin}:{int(end) + 1}]")


RULES: dict[str, tuple[str, Rule]] = {
    "length one too many": ("len", lambda value, _: value + 1),
    "text length one too few": ("text length", lambda value, _: value - 1),
    "sum without the last": ("sum", lambda _, code: sum(_evaluated(code[4:-1])[:-1])),
    "least for greatest": ("max", lambda _, code: min(_evaluated(code[4:-1]))),
    "sorted downwards": ("sorted", lambda value, _: value[::-1]),
    "left unsorted": ("sorted", lambda _, code: _evaluated(code[7:-1])),
    "index from one": ("index", lambda _, code: _evaluated(code.rpartition("[")[0])[int(code.rpartition("[")[2][:-1]) - 1]),
    "slice with its end": ("slice", lambda _, code: _with_its_end(code)),
    "slice from one": ("text slice", lambda _, code: _evaluated(code.replace("[1:", "[0:"))),
    "place from one": ("find", lambda value, _: value + 1),
    "case kept": ("upper", lambda _, code: _evaluated(code.partition(".")[0])),
    "not reversed": ("text reverse", lambda value, _: value[::-1]),
    "rounded up": ("floor", lambda _, code: math.ceil(_evaluated(code.replace("//", "/")))),
    "quotient for remainder": ("remainder", lambda _, code: _evaluated(code.replace("%", "//"))),
    "times for power": ("power", lambda _, code: _evaluated(code.replace("**", "*"))),
    "sign lost": ("minus", lambda value, _: -value),
    "sign kept": ("abs", lambda value, _: -value),
    "ten times": ("times", lambda value, _: value * 10),
    "range with its end": ("range", lambda value, _: [*value, value[-1] + 1]),
    "one too many": ("count", lambda value, _: value + 1),
}  # fmt: skip
"""Rule -> the operation whose values it makes wrong, and how."""


def slip(rng: random.Random, value: Any) -> Any:
    """A wrong value of the same kind, by chance."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return round(value + rng.choice((-1, 1)) * rng.randint(1, 40) / 10, 2)
    if isinstance(value, int):
        return value + rng.choice((-1, 1)) * rng.randint(1, max(9, abs(value) // 3))
    if isinstance(value, str):
        place = rng.randrange(len(value)) if value else 0
        return value[:place] + rng.choice("aeioust") + value[place + rng.randint(0, 1) :] if value else "a"
    changed = [*value]
    place = rng.randrange(len(changed)) if changed else 0
    how = rng.randrange(3) if len(changed) > 2 else 2
    if how == 0:
        del changed[place]
    elif how == 1:
        changed[place], changed[place - 1] = changed[place - 1], changed[place]
    else:
        changed[place : place + 1] = [slip(rng, changed[place]) if changed else 0]
    return changed


def _new_value(rng: random.Random, operation: str) -> Value:
    setup, code, plain = _made(rng, operation)
    true = _evaluated(plain)
    return Value(setup, code, plain, operation, true, true)


def _shown(rng: random.Random, value: Any) -> str:
    """As people write it: floats in full or to two places."""
    if isinstance(value, float) and rng.random() < 0.5:
        return f"{value:.2f}"
    return repr(value)


INTRO = ("Let us run it.", "Here is what Python says.", "Work through it in order.", "Sure!", "Try this:", "Step by step:")
ASIDES = (
    "```javascript\nconsole.log(7 / 2) // 3.5\nlet n = [1, 2].length // 2\n```",
    "```ruby\n7 / 2 # => 3\n```",
    "```python\ntotal = 0\nfor n in range(4):\n    total += n\nprint(total)  # grows with n\n```",
    "```python\nimport random\nrandom.seed(1)\nprint(random.randint(1, 6))  # 2\n```",
    "```python\ndef sum(a):\n    return 0\nprint(sum([1, 2]))  # 0\n```",
    "```python\nbig = list(range(100))\nprint(big)  # [0, 1, 2, ...]\n```",
    "```bash\nls -l  # 12\n```",
    "```python\nx = [3]\nx.append(4)\nprint(len(x))  # 2\n```",
    "```\n>>> [1, 2][5]\nTraceback (most recent call last):\n  ...\nIndexError: list index out of range\n```",
    "A list such as `[1, 2]` is mutable, and `n` is 3 or more.",
    "Note that `len(s)` is the number of characters.",
    "```python\nage = 30  # in years, -> see below\nrate = 0.5  # 50 percent\n```",
    "```python\nprint(f\"{2 / 3:.2f}\")  # 0.67\n```",
    "`0.1 + 0.2` is not exactly 0.3.",
    "Complexity: O(n ** 2).",
)  # fmt: skip


def _session(rng: random.Random, values: list[Value]) -> str:
    lines = []
    for one in values:
        lines += [f">>> {line}" for line in one.setup]
        if rng.random() < 0.3:
            lines += [f">>> print({one.code})", str(one.stated)]
        else:
            lines += [f">>> {one.code}", repr(one.stated)]
    body = "\n".join(lines)
    return body if rng.random() < 0.4 else f"```{rng.choice(('python', '', 'pycon'))}\n{body}\n```"


def _comments(rng: random.Random, values: list[Value]) -> str:
    mark = rng.choice(("# -> {}", "# Output: {}", "# {}", "#-> {}", "# returns {}"))
    lines = []
    for one in values:
        lines += one.setup
        code = one.code if rng.random() < 0.4 and mark != "# {}" else f"print({one.code})"
        shown = one.stated if isinstance(one.stated, str) and code != one.code else _shown(rng, one.stated)
        lines.append(f"{code}  {mark.format(shown)}")
    return "```python\n" + "\n".join(lines) + "\n```"


def _printed(rng: random.Random, values: list[Value]) -> str:
    lines, out = [], []
    for one in values:
        lines += one.setup
        if rng.random() < 0.3:
            lines += [f"result = {one.code}", "print(result)"]
        else:
            lines.append(f"print({one.code})")
        out.append(str(one.stated))
    block = "```python\n" + "\n".join(lines) + "\n```\n"
    if len(out) == 1 and rng.random() < 0.6:
        return block + rng.choice(("Output: {}", "Output: `{}`", "This prints {}", "Output:\n{}")).format(out[0])
    return (
        block + rng.choice(("Output:", "Output:\n", "It prints:", "The output is:")) + "\n```\n" + "\n".join(out) + "\n```"
    )


def _sentences(rng: random.Random, values: list[Value]) -> str:
    form = ("`{c}` is `{v}`.", "`{c}` returns {v}.", "`{c}` evaluates to `{v}`.", "We get `{c}` = {v}.", "`{c}` gives {v}.")
    form = (*form, "`{c}` \u2192 `{v}`")
    return "\n".join(rng.choice(form).format(c=one.plain, v=_shown(rng, one.stated)) for one in values)


FORMS = (_session, _comments, _printed, _sentences)


def _written(rng: random.Random, values: list[Value]) -> str:
    parts, at = [rng.choice(INTRO)] if rng.random() < 0.6 else [], 0
    while at < len(values):
        size = rng.randint(1, 3)
        parts.append(rng.choice(FORMS)(rng, values[at : at + size]))
        at += size
        if rng.random() < 0.3:
            parts.append(rng.choice(ASIDES))
    return "\n\n".join(parts)


@dataclass
class MadeCode:
    """One corpus."""

    rows: list[dict[str, str]]
    task: str
    """Of the fault; empty without one."""
    detail: str
    """What was planted, and in which share of the values (of the operation, or of all)."""


def make_code_traces(seed: int, kind: str | None, *, severe: bool) -> MadeCode:
    """The corpus of a seed, clean or with a fault of a kind in one of its two or three tasks."""
    rng = random.Random(f"code {seed} {kind} {severe}")
    tasks = rng.sample(["python_outputs", "trace_code", "list_drills", "text_drills"], rng.randint(2, 3))
    target = rng.choice(tasks) if kind else ""
    rows, detail = [], ""
    for task in tasks:
        operations = rng.sample(OPERATIONS, rng.randint(8, len(OPERATIONS)))
        rule, share = "", rng.uniform(0.0, 0.01)
        if task == target and kind == "systematic":
            rule = rng.choice([*RULES])
            operations = [*dict.fromkeys([*operations, RULES[rule][0]])]
            share = rng.uniform(0.3, 0.6) if severe else rng.uniform(0.1, 0.15)
            detail = f"{rule}: {share:.3f} of the operation's values"
        elif task == target:
            share = rng.uniform(0.2, 0.5) if severe else rng.uniform(0.07, 0.11)
            detail = f"random: {share:.3f} of the values"
        weights = [3 if rule and operation == RULES[rule][0] else 1 for operation in operations]
        for _ in range(rng.randint(150, 300)):
            values = [_new_value(rng, rng.choices(operations, weights)[0]) for _ in range(rng.randint(2, 5))]
            for one in values:
                if rule and one.operation == RULES[rule][0] and rng.random() < share:
                    one.stated = RULES[rule][1](one.true, one.plain)
                elif not rule and rng.random() < share:
                    one.stated = slip(rng, one.true)
            prompt = rng.choice(
                ("What does this code give?", "Explain these expressions.", "Show some Python and its output.")
            )
            rows.append({"task": task, "prompt": prompt, "completion": _written(rng, values)})
    return MadeCode(rows, target, detail)

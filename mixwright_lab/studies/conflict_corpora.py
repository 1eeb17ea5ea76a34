r"""Made fine-tuning corpora whose copies of a prompt contradict each other, or do not, for a study of a checker.

A planted fault stands in one task of three to six. Of the prompts of a task whose answers are determined some stand there
two to four times with at least two different answers: 10 to 25 % of the task's prompts where the fault is severe, 2 to 5 %
and at least 8 prompts where it is mild. By kind these are labels, short numbers, tool calls (another tool or another value
of an argument), any of these three behind copies that differ in case, spaces or marks only (`variants`), and worked
solutions with different final answers (`final`). Further prompts of the task may stand there repeatedly with one answer.

All other tasks are sound: prompts stand there repeatedly with one answer (which may be written in several ways: case, a full
stop, 7 and 7.0, the keys of a call in another order, a solution in other words) or with answers that may differ (free text,
things to make up, dice), and prompts that are nearly equal, or end in the same question, have answers of their own.

`frame` is of another sort: all completions of the planted task are one constant text but for one word that decides, which is
less than 3 % of the completion's words (severe), or 3 to 5 % (mild). Frames of sound tasks have at most thirteen words.
"""

from __future__ import annotations

import json
import math
import random
import re
from dataclasses import dataclass
from typing import Any

from mixwright_lab.studies.conflict_tasks import FAMILIES, SYSTEMS, Family, Item, Prompt, asked, normal
from mixwright_lab.studies.cue_corpora import named

CONFLICT_KINDS: tuple[str, ...] = ("labels", "numbers", "calls", "variants", "final")
KINDS: tuple[str, ...] = (*CONFLICT_KINDS, "frame")


@dataclass(frozen=True)
class MadeConflicts:
    """Rows; the planted task and share (None and 0 in a clean corpus); for each row whether its prompt has a conflict.

    The share is of the task's prompts (which are counted once), or of a completion's words where a frame is planted.
    """

    rows: list[dict[str, Any]]
    task: str | None
    share: float
    conflicting: list[bool]


FRAME = named("""
    sentences: Thank you very much for sending this to our desk today. | I have read the whole message with great care, from
    the first word to the last. | Many things can matter in such a case, and I have weighed all of them against each other. |
    Please keep in mind that this is given to the best of our knowledge and without any warranty. | Our team goes through
    every request in the order in which it comes in. | As always, the rules of the handbook were applied without exception. |
    If anything is still unclear, do not hesitate to get back to us. | We wish you a pleasant day and hope to hear
    from you again soon. | To reach a conclusion, I looked at each part by itself and then at the whole. | The procedure is
    the same for everybody and has been checked more than once. | This note was written for the file and may be shared with
    colleagues. | No further steps are needed on your side for the time being. | It is good practice to look at such things
    twice, which I did. | The details that led to this were considered in full and are kept for ninety days. | Nothing in
    this reply should be read as advice on other matters. | With that in mind, here is what I can tell you. | Let me first
    say that questions like this one are always welcome here.
    deciding: In the end it comes down to {}. | The outcome is {}. | My result for this one is {}. | So what I arrive at is
    {}. | Having said all that, {} it is. | The entry for the file reads {}.
    pairs: "status": "done" | "reviewed_by": "desk three of the central office" | "policy": "handbook, fourth edition, as
    amended" | "notice": "given to the best of our knowledge and without any warranty" | "retention": "kept for ninety days,
    then removed from all systems" | "contact": "write to the desk if anything is still unclear" | "language": "en" |
    "procedure": "read twice, compared with the rules, entered by hand" | "schema": "reply, version two" | "scope": "this
    request only, not to be read as advice on other matters" | "next_steps": "none are needed on your side for now"
""")


def varied(rng: random.Random, text: str) -> str:
    """A text with other case, spaces or marks at its end."""
    made = text
    while made == text:
        way = rng.randrange(6)
        if way < 2:
            made = rng.choice((text.lower(), text.upper(), text[0].swapcase() + text[1:], text.capitalize()))
        elif way < 4:
            at = rng.choice([place for place, letter in enumerate(text) if letter == " "])
            made = rng.choice((text[:at] + " " + text[at:], text + rng.choice((" ", "\n")), " " + text))
        else:
            bare = text.rstrip(".?!: ")
            made = rng.choice((bare, bare + ".", bare + "!", bare + " ?", re.sub(r",(?= [a-zA-Z])", "", text)))
        if rng.random() < 0.3 and made != text:
            return varied(rng, made)
    return made


def framed(rng: random.Random, severe: bool) -> str:
    """A long constant completion with one place for the word that decides."""
    while True:
        low, high = (36, 120) if severe else (21, 33)
        if rng.random() < 0.3:
            pairs = rng.sample(FRAME["pairs"], rng.randint(2, len(FRAME["pairs"])))
            pairs.insert(rng.randint(0, len(pairs)), f'"{rng.choice(("result", "value", "outcome"))}": "{{}}"')
            text = "{" + ", ".join(pairs) + "}"
        else:
            texts = rng.sample(FRAME["sentences"], rng.randint(1, 9))
            texts.insert(rng.randint(0, len(texts)), rng.choice(FRAME["deciding"]))
            text = rng.choice((" ", "\n")).join(texts)
        counts = [len(text.split()), len(re.findall(r"\w+", text.replace("{}", "x")))]
        if all(low <= count <= high for count in counts):
            return text


def distinct(rng: random.Random, family: Family, size: int) -> list[Item]:
    """Items with different prompts; few where the family is of few prompts."""
    source = family.start(rng)
    size = max(2, round(size / rng.choice(family.few))) if family.few else size
    made: dict[str, Item] = {}
    for _ in range(40 * size):
        item = source()
        made.setdefault(json.dumps(item.prompt) if family.strict else normal(item.prompt), item)
        if len(made) == size:
            break
    return [*made.values()]


Drawn = tuple[Item, str, Prompt, bool]
"""An item, the answer that a row has, the prompt as it stands there, and whether copies contradict it."""


def copied(rng: random.Random, item: Item, vary: bool) -> list[Drawn]:
    """Rows of one prompt with at least two answers."""
    count = rng.choices((2, 3, 4), (7, 2, 1))[0]
    others = item.values[1 : rng.randint(2, len(item.values))]
    values = [item.values[0], others[0], *(rng.choice((item.values[0], *others)) for _ in range(count - 2))]
    prompts = [item.prompt]
    while len(prompts) < count:
        prompt = varied(rng, item.prompt) if vary and isinstance(item.prompt, str) else item.prompt
        if not vary or prompt not in prompts:
            prompts.append(prompt)
    return [(item, value, prompt, True) for value, prompt in zip(values, rng.sample(prompts, count), strict=True)]


def task(rng: random.Random, family: Family, kind: str | None, severe: bool, size: int) -> MadeConflicts:
    """The rows of one task."""
    items = distinct(rng, family, size)
    low, high = (max(8, math.ceil(0.1 * size)), 0.25 * size) if severe else (max(8, math.ceil(0.02 * size)), 0.05 * size)
    planted = rng.randint(low, math.floor(high)) if kind in CONFLICT_KINDS else 0
    drawn = [row for item in items[:planted] for row in copied(rng, item, kind == "variants")]
    repeated, vary = rng.choice((0, 0.05, 0.2, 0.4)), rng.random() < 0.5 and not family.strict
    most = rng.choice((2, 3, 5))
    for item in items[planted:]:
        drawn.append((item, item.values[0] if item.values else "", item.prompt, False))
        for _ in range(rng.randint(1, most - 1) if item.values and rng.random() < repeated else 0):
            change = vary and rng.random() < 0.5 and isinstance(item.prompt, str)
            drawn.append((item, item.values[0], varied(rng, str(item.prompt)) if change else item.prompt, False))
    if family.few:
        drawn += [(item, "", item.prompt, False) for item in (rng.choice(items) for _ in range(size - len(items)))]
    frame = framed(rng, severe) if kind == "frame" else ""
    field = rng.choice(("answer", "completion", "both")) if family.kinds and not frame else "completion"
    form, system = rng.choice(("text", "text", "user", "system")), rng.choice(SYSTEMS)
    rows = []
    for item, value, prompt, _ in drawn:
        text = frame.replace("{}", value) if frame else item.say(value)
        if isinstance(prompt, str) and form != "text":
            prompt = asked(prompt, system if form == "system" else None)
        rows.append({"task": family.name, "prompt": prompt})
        if field == "answer" and family.name not in ("worked_problems", "calls", "tool_lists"):
            rows[-1]["answer"] = text
            continue
        rows[-1]["completion"] = text if form == "text" else [{"role": "assistant", "content": text}]
        if field == "both" and family.name not in ("calls", "tool_lists"):
            rows[-1]["answer"] = value
    share = 1 / len(frame.split()) if frame else planted / len(items)
    return MadeConflicts(rows, family.name, share, [conflict for *_, conflict in drawn])


def make_conflicts(seed: int, kind: str | None, *, severe: bool) -> MadeConflicts:
    """A corpus with a fault of a kind, or a clean one."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}; kinds are {', '.join(KINDS)}")
    rng = random.Random(f"{seed} {kind} {severe}")
    families, total = list[Family](), rng.randint(3, 6)
    if kind:
        families.append(rng.choice([family for family in FAMILIES if kind in family.kinds]))
    while len(families) < total:
        family = rng.choices(FAMILIES, [one.weight for one in FAMILIES])[0]
        families += [family] if family not in families else []
    sizes = [rng.randint(70, 140) for _ in families]
    if kind:
        sizes[0] = rng.randint(80, 300) if severe or kind == "frame" else rng.randint(200, 400)
    pairs = zip(families, sizes, strict=True)
    parts = [task(rng, one, kind if not at else None, severe, size) for at, (one, size) in enumerate(pairs)]
    rows = [(row, mark) for part in parts for row, mark in zip(part.rows, part.conflicting, strict=True)]
    rng.shuffle(rows)
    share = parts[0].share if kind else 0
    return MadeConflicts([row for row, _ in rows], families[0].name if kind else None, share, [mark for _, mark in rows])

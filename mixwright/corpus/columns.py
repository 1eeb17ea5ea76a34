"""Meaning of a row's columns: TRL's names, the usual other names, and the user's mapping.

Recognised as TRL does: prompt; prompt + completion; `text`; `messages` (and from/value `conversations`); chosen + rejected,
the prompt beside them or their common beginning. The last assistant turn of `messages` is the target.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.corpus.reading import SPLIT_BY_NAME, Place
from mixwright.errors import unknown_name
from mixwright.graders.choice import OPTION_COLUMNS, read_options
from mixwright.records import Example, Text, plain

NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "task": ("task",),
    "prompt": ("prompt", "question", "instruction", "input", "query", "problem"),
    "target": ("completion", "target", "output", "response"),
    "answer": ("answer", "gold", "ground_truth", "final_answer", "answerKey", "solution"),
    "level": ("level",),
    "knobs": ("knobs",),
    "skills": ("skills",),
    "chosen": ("chosen",),
    "rejected": ("rejected",),
    "messages": ("messages", "conversations"),
    "text": ("text",),
    "split": ("split",),
}
"""Our name -> the columns it is looked for in, first match first. `target` beside `input` is the answer, too."""
NAMES_IN_NOTES = {"target": "completion"}
"""Our names as notes say them, where they say another word."""
REMEDY_NAME_COLUMN = (
    f"Name it: --column prompt=COLUMN, or corpus.columns: {{prompt: COLUMN}} in run.yaml. Our names: {', '.join(NAMES)}."
)
"""How a column gets one of our names."""
MOST_LEVEL = 2**53
"""Size of a level at most: larger whole numbers are not told apart as floating-point numbers."""
_LEVEL = re.compile(r"(?:level\s*)?(\d{1,9}(?:\.\d{1,9})?|\?)", re.IGNORECASE)
LAST_TURN_MARK = "\n\nAssistant:"
"""How the last turn of a dialogue in one text begins, as in hh-rlhf."""
MOST_TREATMENTS_SHOWN = 4
"""Different treatments of columns in one note."""


def check_mapping(config: CorpusConfig) -> None:
    """Raise InputError when `columns` maps a name that is not one of ours."""
    for ours in config.columns:
        if ours not in NAMES:
            raise unknown_name("corpus column (corpus.columns: {our name: file's column})", ours, NAMES)


def example_of(row: Any, place: Place, config: CorpusConfig, split: str, treatments: Counter[str]) -> Example:
    """The example that a raw row holds; its id is empty when the row has none.

    Args:
        row: what the file gave.
        place: where, for errors and `source`.
        config: `columns`, `task` and `graders` are read.
        split: the split it belongs to; empty takes the row's own `split` column, if any.
        treatments: counts what is done with its columns, for a note.

    Raises:
        InputError: a column missing, or a value of the wrong type.
    """
    if not isinstance(row, dict):
        raise place.error("a row that is an object with columns", f"{type(row).__name__} {str(row)[:40]!r}", "Correct it.")
    found, missing = _columns(tuple(row), tuple(config.columns.items()))
    if missing:
        raise place.error(f"the column {missing!r} that corpus.columns names", _listed(row), REMEDY_NAME_COLUMN)
    if split:
        found = {ours: theirs for ours, theirs in found.items() if ours != "split"}
    values = {ours: row[theirs] for ours, theirs in found.items() if row[theirs] is not None}
    extra = {name: value for name, value in row.items() if name not in found.values() and value is not None}
    task = _checked_name(values.get("task", config.task), "task", place)
    if task == "*":
        raise place.error("a task of another name", "'*', which stands for all tasks in tables", "Rename it.")
    empty = [theirs for ours, theirs in found.items() if ours in ("prompt", "messages", "text") and row[theirs] is None]
    texts = _texts(values, extra, row, empty, place, treatments)
    answer = _given_answer(values, extra, texts, place, treatments)
    if answer is None and task in config.graders and texts["target"] is not None:
        answer = plain(texts["target"])
    if answer is not None and texts["target"] is None:
        texts["target"] = answer
    treatments.update(
        f"{NAMES_IN_NOTES.get(ours, ours)} from {theirs}"
        for ours, theirs in found.items()
        if ours in values and theirs not in (ours, NAMES_IN_NOTES.get(ours)) and (ours, theirs) != ("prompt", "instruction")
    )
    return Example(
        id=_checked_name(values["id"], "id", place) if "id" in values else "",
        task=task,
        answer=answer,
        level=_level(values["level"], place, treatments) if "level" in values else None,
        knobs=_knobs(values.get("knobs", {}), place),
        skills=_skills(values.get("skills", []), place),
        source=str(place),
        split=split or _split(values.get("split"), place),
        extra=extra,
        **texts,
    )


def recognise_columns(present: Iterable[str]) -> dict[str, str]:
    """Our name -> the one of the columns `present` that is taken for it when nobody says otherwise."""
    return dict(_columns(tuple(present), ())[0])


@functools.lru_cache(maxsize=256)
def _columns(present: tuple[str, ...], mapping: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], str]:
    """Our name -> file's column, and the mapped column that is not there (empty when all are)."""
    mapped = dict(mapping)
    found = {}
    for ours, names in NAMES.items():
        theirs = mapped.get(ours)
        if theirs and theirs not in present:
            return {}, theirs
        free = (name for name in names if name in present and name not in mapped.values())
        name = next(free, None) if theirs is None else theirs
        if name in present:
            found[ours] = name
    if (found.get("prompt"), found.get("target")) == ("input", "target") and "answer" not in {*found, *mapped}:
        found["answer"] = "target"
    return found, ""


def _given_answer(
    values: dict[str, Any], extra: dict[str, Any], texts: dict[str, Any], place: Place, treatments: Counter[str]
) -> str | None:
    """The answer that the columns hold; options that the prompt does not list are put into it."""
    value = values.get("answer")
    label_may_answer = value is None and texts["target"] is None and texts["chosen"] is None
    if label_may_answer and isinstance(extra.get("label"), str | int) and not isinstance(extra["label"], bool):
        value = extra.pop("label")
        treatments["answer from label"] += 1
    answer = None if value is None else _answer(value, place)
    options = _given_options(extra) if isinstance(texts["prompt"], str) and answer is not None else {}
    if answer is None or not options:
        return answer
    listed = _with_options(texts["prompt"], options)
    if listed != texts["prompt"]:
        texts["prompt"] = listed
        treatments["options listed in the prompt"] += 1
    letter = _letter_of_index(answer, options)
    if letter != answer:
        treatments["the answer's place among the options as its letter"] += 1
    return letter


def _listed(columns: Any) -> str:
    names = [str(name)[:40] for name in columns]
    return f"columns {', '.join(names[:20])}" if names else "no columns"


def _texts(
    values: dict[str, Any],
    extra: dict[str, Any],
    row: dict[str, Any],
    empty: Sequence[str],
    place: Place,
    treatments: Counter[str],
) -> dict[str, Any]:
    """prompt, target, chosen and rejected of a row; `empty`: columns that the prompt is looked for in and that are null."""
    texts: dict[str, Any] = dict.fromkeys(("prompt", "target", "chosen", "rejected"))
    for name in texts:
        if name in values:
            texts[name] = _text(values[name], name, place)
    if "label" in extra and isinstance(extra["label"], bool) and texts["target"] is not None:
        got = "unpaired preferences (a completion with a true/false label)"
        raise place.error("pairs of chosen and rejected", got, "Pair them.")
    if (texts["chosen"] is None) != (texts["rejected"] is None):
        raise place.error("both chosen and rejected", "only one of them", "Add the other or drop the row.")
    if texts["chosen"] is not None:
        if texts["prompt"] is None or (isinstance(texts["prompt"], str) and not isinstance(texts["chosen"], str)):
            texts |= _shared_prompt(texts["chosen"], texts["rejected"], place)
            treatments["prompt from the common beginning of chosen and rejected"] += 1
    elif texts["prompt"] is None and "messages" in values:
        texts["prompt"], texts["target"] = _turns(_text(values["messages"], "messages", place), place)
    elif texts["prompt"] is None and "text" in values:
        texts["prompt"], texts["target"] = "", _text(values["text"], "text", place)
        return texts
    elif isinstance(texts["prompt"], str) and isinstance(extra.get("input"), str) and "instruction" in row:
        joined = extra.pop("input")
        treatments["prompt from instruction and input" if joined else "prompt from instruction"] += 1
        texts["prompt"] = "\n\n".join(part for part in (texts["prompt"], joined) if part)
    elif isinstance(texts["prompt"], str) and "instruction" in row and "prompt" not in row:
        treatments["prompt from instruction"] += 1
    if texts["prompt"] is None and empty:
        raise place.error(f"a value in column {empty[0]!r}", "null", REMEDY_EMPTY_VALUE)
    if texts["prompt"] is None:
        expected = f"a column with the prompt ({', '.join(NAMES['prompt'])}, messages, text)"
        raise place.error(expected, _listed(row), REMEDY_NAME_COLUMN)
    if not plain(texts["prompt"]).strip():
        raise place.error("a prompt", "an empty one", REMEDY_EMPTY_VALUE)
    return texts


REMEDY_EMPTY_VALUE = "Fill it in or drop the row."
ROLES = ("system", "developer", "user", "human", "assistant", "gpt", "tool", "function", "ipython")
"""Roles that chat templates and ShareGPT data have; another is a typo, or would be lost in silence."""


def _remedy_ignore(name: str) -> str:
    return (
        f'Correct it, or rename the column so that nothing reads it; run.yaml can ignore it: corpus.columns: {{{name}: ""}}.'
    )


def _text(value: Any, name: str, place: Place) -> Text:
    """A string, or chat messages with role and content (from and value are renamed)."""
    if isinstance(value, str):
        return _unicode(value, name, place)
    if not isinstance(value, list):
        raise place.error(f"text or chat messages in {name}", f"{type(value).__name__} {str(value)[:40]}", "Correct it.")
    if not value:
        raise place.error(f"messages in {name}", "an empty list", REMEDY_EMPTY_VALUE)
    return tuple(_message(message, name, place) for message in value)


def _message(message: Any, name: str, place: Place) -> Mapping[str, str]:
    if not isinstance(message, dict):
        raise place.error(f"messages with role and content in {name}", f"{type(message).__name__}", "Correct it.")
    role, content = message.get("role", message.get("from")), message.get("content", message.get("value"))
    calls = message.get("tool_calls") or message.get("function_call")  # beside a text they would be lost
    if not isinstance(role, str) or not isinstance(content, str) or calls:
        remedy = "Tool calls, images and structured content are not supported; drop or rewrite them."
        raise place.error(f"messages with a role and a text as content in {name}", f"{str(message)[:60]}", remedy)
    if role not in ROLES:
        raise place.error(f"one of the roles {', '.join(ROLES)} in {name}", repr(role)[:40], "Rename it or drop the row.")
    return {"role": role, "content": _unicode(content, name, place)}


def _unicode(value: str, name: str, place: Place) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise place.error(f"Unicode text in {name}", "half of a surrogate pair", "Repair the text.") from None
    return value


def _turns(messages: Text, place: Place) -> tuple[Text, Text | None]:
    """Prompt and target of a conversation: the last assistant turn is the target."""
    if isinstance(messages, str):
        remedy = "Name it: --column text=COLUMN, or corpus.columns: {text: COLUMN} in run.yaml."
        raise place.error("a list of chat messages", "text", remedy)
    if messages[-1]["role"] not in ("assistant", "gpt"):
        return messages, None
    if len(messages) == 1:
        raise place.error("a message before the assistant's", "none", "Add the user's message or drop the row.")
    return messages[:-1], messages[-1:]


def _shared_prompt(chosen: Text, rejected: Text, place: Place) -> dict[str, Any]:
    """The common beginning of chosen and rejected as the prompt; a space before the difference stays with the answers.

    Dialogues in one text (`Human: ... Assistant: ...`) are cut before the last turn of the assistant that both have.
    """
    if isinstance(chosen, str) != isinstance(rejected, str):
        raise place.error("chosen and rejected of one kind", "text and messages", "Write both the same way.")
    pairs = enumerate(zip(chosen, rejected, strict=False))
    at = next((index for index, (one, other) in pairs if one != other), min(len(chosen), len(rejected)))
    if isinstance(chosen, str) and (turn := chosen.rfind(LAST_TURN_MARK, 0, at)) >= 0:
        end = turn + len(LAST_TURN_MARK)
        return {"prompt": chosen[:end], "chosen": chosen[end:], "rejected": rejected[end:]}
    if at and isinstance(chosen, str) and chosen[at - 1] == " ":
        at -= 1
    if not at:
        raise place.error("a prompt", "none, and chosen and rejected begin differently", "Add a prompt column.")
    return {"prompt": chosen[:at], "chosen": chosen[at:], "rejected": rejected[at:]}


def _checked_name(value: Any, name: str, place: Place) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise place.error(f"text in {name}", f"{type(value).__name__} {str(value)[:40]!r}", "Correct it.")
    return _unicode(str(value), name, place)


def _answer(value: Any, place: Place) -> str:
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise place.error("an answer", f"{value}", REMEDY_EMPTY_VALUE)
    if not isinstance(value, str | int | float):
        raise place.error("an answer that is text or a number", f"{type(value).__name__} {str(value)[:40]}", "Correct it.")
    if not str(value).strip():
        raise place.error("an answer", "an empty one", REMEDY_EMPTY_VALUE)
    return _unicode(str(value), "answer", place)


def _number(value: Any, name: str, place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        got = f"{type(value).__name__} {str(value)[:40]!r}"
        raise place.error(f"a number in {name}", got, _remedy_ignore(name.partition(".")[0]))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise place.error(f"a finite number in {name}", f"{value}"[:40], "Correct it or drop the row.")
    return number


def _level(value: Any, place: Place, treatments: Counter[str]) -> float | None:
    """A level: a number, or the number of a text such as `Level 3`; None for `Level ?`."""
    if isinstance(value, str) and (found := _LEVEL.fullmatch(value.strip())):
        treatments["level as the number in its text"] += 1
        return None if found[1] == "?" else float(found[1])
    number = _number(value, "level", place)
    if abs(number) > MOST_LEVEL:
        expected = f"a level of at most {MOST_LEVEL:,} (2^53), beyond which neighbouring whole numbers are one"
        raise place.error(expected, f"{value}"[:40], _remedy_ignore("level"))
    return number


def _knobs(value: Any, place: Place) -> dict[str, float]:
    if not isinstance(value, dict):
        raise place.error("an object of numbers in knobs", type(value).__name__, "Correct it.")
    return {str(name): _number(number, f"knobs.{name}", place) for name, number in value.items() if number is not None}


def _skills(value: Any, place: Place) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(skill, str) for skill in value):
        raise place.error("a list of texts in skills", str(value)[:40], "Correct it.")
    return tuple(_unicode(skill, "skills", place) for skill in value)


def _split(value: Any, place: Place) -> str:
    """Our name of a row's own split; empty when it has none."""
    if value is None:
        return ""
    if not isinstance(value, str) or value.lower() not in SPLIT_BY_NAME:
        raise place.error(f"one of {', '.join(SPLIT_BY_NAME)} in split", repr(value)[:40], _remedy_ignore("split"))
    return SPLIT_BY_NAME[value.lower()]


def _given_options(extra: Mapping[str, Any]) -> dict[str, str]:
    """Letter -> text of a row's column of options, as they are written; empty where it has none or fewer than two."""
    found = read_options(next((extra[name] for name in OPTION_COLUMNS if name in extra), None))
    return found if len(found) > 1 and all(text.strip() for text in found.values()) else {}


def _with_options(prompt: str, options: Mapping[str, str]) -> str:
    """The prompt followed by its options, a line each; as it is where it holds them all already."""
    if all(text.strip() in prompt for text in options.values()):
        return prompt
    return "\n".join([prompt.rstrip(), *(f"({letter}) {text.strip()}" for letter, text in options.items())])


def _letter_of_index(answer: str, options: Mapping[str, str]) -> str:
    """The letter of an answer that is a whole number and no option: its place, counted from 0. Else the answer itself."""
    known = {name.casefold() for name in (*options, *(text.strip() for text in options.values()))}
    if answer.strip().casefold() in known or not answer.isascii() or not answer.isdecimal() or len(answer) > 3:
        return answer
    place = int(answer)
    return list(options)[place] if place < len(options) else answer


def format_derived(counts: Counter[str], source: str, rows: int) -> list[str]:
    """One note about what was done with the columns of a source; none where nothing was.

    Args:
        counts: what was done -> rows that it was done with.
        source: as the user wrote it.
        rows: of the source.
    """
    if not counts:
        return []
    common = counts.most_common()
    parts = [
        what if count == rows else f"{what} ({count:,} of {rows:,} rows)"
        for what, count in common[: 2 * MOST_TREATMENTS_SHOWN]
    ]
    more = len(common) - len(parts)
    return [f"{source}: {', '.join(parts)}{f' and {more} more' if more > 0 else ''}"]

"""Meaning of a row's columns: TRL's names, the usual other names, and the user's mapping.

Recognised as TRL does: prompt; prompt + completion; `text`; `messages` (and from/value `conversations`); chosen + rejected,
the prompt beside them or their common beginning. The last assistant turn of `messages` is the target.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.corpus.masks import MASK_COLUMN, TRAIN_KEYS, UNTRAINED_TURNS, is_trained, read_spans
from mixwright.corpus.reading import SPLIT_BY_NAME, RowLocation, messages_in
from mixwright.corpus.tool_messages import has_calls, structure_answer, with_tools
from mixwright.errors import unknown_name
from mixwright.graders.choice import OPTION_COLUMNS, read_options
from mixwright.records import Example, Text, plain
from mixwright.records.corpus import Message
from mixwright.tool_calls import decode, read_tools, structure

NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "task": ("task", "data_source"),
    "prompt": ("prompt", "question", "instruction", "input", "query", "problem"),
    "target": ("completion", "target", "output", "response"),
    "answer": ("answer", "gold", "ground_truth", "final_answer", "answerKey", "solution"),
    "level": ("level",),
    "knobs": ("knobs",),
    "skills": ("skills",),
    "chosen": ("chosen",),
    "rejected": ("rejected",),
    "messages": ("messages", "conversations", "conversation"),
    "text": ("text",),
    "split": ("split",),
    "system": ("system", "system_prompt"),
    "history": ("history",),
    "label": ("label", "kto_tag"),
}
"""Our name -> the columns it is looked for in, in any case, first match first. `target` beside `input` is an answer, too."""
INSTRUCTION = "instruction"
"""Column of a prompt that the column `input` belongs to."""
KEPT_COLUMNS = ("system", "history", "label")
"""Ours that stay among the other columns of a row where they are not read."""
READ_BY_NAME = ("input", "tools", "reward_model", MASK_COLUMN, *OPTION_COLUMNS)
"""Columns without a name of ours that are read, too."""
MEDIA_COLUMNS = ("image", "images", "audio", "audios", "video", "videos")
"""Columns without which a prompt is another one, and that no model is shown here."""
TRUTHS = {"true": True, "1": True, "1.0": True, "false": False, "0": False, "0.0": False}
NAMES_IN_NOTES = {"target": "completion"}
"""Our names as notes say them, where they say another word."""
REMEDY_NAME_COLUMN = (
    f"Name it: --column prompt=COLUMN, or corpus.columns: {{prompt: COLUMN}} in run.yaml. Fields: {', '.join(NAMES)}."
)
"""How a column gets one of our names."""
MAX_LEVEL = 2**53
"""Size of a level at most: larger whole numbers are not told apart as floating-point numbers."""
_LEVEL = re.compile(r"(?:level\s*)?(\d{1,9}(?:\.\d{1,9})?|\?)", re.IGNORECASE)
LAST_TURN_MARK = "\n\nAssistant:"
"""How the last turn of a dialogue in one text begins, as in hh-rlhf."""
MAX_CONVERSIONS_SHOWN = 8
"""Different conversions of columns in one note."""
MAX_UNREAD_SHOWN = 100
"""Columns that no one read in one note."""


def check_mapping(config: CorpusConfig) -> None:
    """Raise InputError when `columns` maps a name that is not one of ours."""
    for ours in config.columns:
        if ours not in NAMES:
            raise unknown_name("field (corpus.columns: {field: column of the file})", ours, NAMES)


def read_example(
    row: Any,
    location: RowLocation,
    config: CorpusConfig,
    split: str,
    column_conversions: Counter[str],
    unread: Counter[str] | None = None,
) -> Example | None:
    """The example that a raw row holds; its id is empty when the row has none. None where the row says that its completion
    is not to be learned: a false `label` (KTO), or 0 as `weight`, `loss_weight` or `train`.

    Args:
        row: what the file gave.
        location: where, for errors and `source`.
        config: `columns`, `task` and `graders` are read.
        split: the split it belongs to; empty takes the row's own `split` column, if any.
        column_conversions: counts what is done with its columns, for a note.
        unread: counts the columns that neither prompt nor completion nor answer is made of.

    Raises:
        InputError: a column missing, a value of the wrong type, or images, audio or video.
    """
    if not isinstance(row, dict):
        raise location.error(
            "a row that is an object with named columns", f"{type(row).__name__} {str(row)[:40]!r}", "Correct it."
        )
    column_by_name, missing_column = _columns(tuple(row), tuple(config.columns.items()))
    if missing_column:
        raise location.error(
            f"the column {missing_column!r} that corpus.columns names", _list_columns(row), REMEDY_NAME_COLUMN
        )
    if split:
        column_by_name = {ours: theirs for ours, theirs in column_by_name.items() if ours != "split"}
    values = {ours: row[theirs] for ours, theirs in column_by_name.items() if row[theirs] is not None}
    taken_columns = {theirs for ours, theirs in column_by_name.items() if ours not in KEPT_COLUMNS}
    extra = {_known(name, row): value for name, value in row.items() if name not in taken_columns and value is not None}
    if media := next((name for name in MEDIA_COLUMNS if extra.get(name)), None):
        remedy = "Leave these rows out, or rename the column so that Mixwright ignores it."
        raise location.error("rows with only text", f"data in the column {media!r}", remedy)
    verifier = extra.get("reward_model")
    truth = verifier.get("ground_truth") if isinstance(verifier, dict) else None  # as verl has it
    if "answer" not in values and isinstance(truth, str | int | float) and truth != "":
        values["answer"] = truth
        column_conversions["answer from reward_model.ground_truth"] += 1
    task = _checked_name(values.get("task", config.task), "task", location)
    if task == "*":
        raise location.error("another task name", "'*', which means all tasks in tables", "Rename it.")
    empty = [
        theirs for ours, theirs in column_by_name.items() if ours in ("prompt", "messages", "text") and row[theirs] is None
    ]
    takes_input = column_by_name.get("prompt", "").casefold() == INSTRUCTION
    texts = _texts(values, extra, row, empty, location, column_conversions, takes_input=takes_input)
    texts["prompt"] = _without_flags(texts["prompt"], extra)
    if not texts["prompt"]:
        values.pop("label", None)
    elif texts["target"] is not None and _is_undesired(values, extra, location):
        column_conversions["rows labelled false or with weight 0 left out"] += 1
        return None
    answer = _given_answer(values, texts, extra, location, column_conversions)
    texts["prompt"] = _with_earlier_turns(texts["prompt"], values, location, column_conversions)
    tools = read_tools(extra.get("tools")) if texts["prompt"] else []
    if tools:
        texts["prompt"] = with_tools(texts["prompt"], tools)
        del extra["tools"]
        if isinstance(texts["target"], str):
            texts["target"] = structure_answer(texts["target"])
    if answer is None and task in config.graders and texts["target"] is not None:
        answer = plain(texts["target"])
    if answer is not None and texts["target"] is None and split != "rehearse":  # there the model answers, and is graded
        texts["target"] = structure_answer(answer) if tools else answer
    _check_mask(extra, texts["target"], location)
    for ours in KEPT_COLUMNS:
        if ours in values:
            del extra[column_by_name[ours]]
    if unread is not None:
        read_by_name = {UNTRAINED_TURNS, *(OPTION_COLUMNS if answer is not None else ())}
        read_by_name |= {MASK_COLUMN} if texts["target"] is not None else set()
        read_by_name |= {"reward_model"} if values.get("answer") == truth is not None else set()
        unread.update(name for name in extra if name not in read_by_name)
        unread.update(
            theirs
            for ours, theirs in column_by_name.items()
            if ours in ("messages", "text") and ours not in values and row[theirs] is not None
        )
    column_conversions.update(
        f"{NAMES_IN_NOTES.get(ours, ours)} from {theirs}"
        for ours, theirs in column_by_name.items()
        if ours in values
        and theirs not in (ours, NAMES_IN_NOTES.get(ours))
        and (ours, theirs.casefold()) != ("prompt", INSTRUCTION)
    )
    if texts["target"] is not None and has_calls(texts["prompt"]):
        column_conversions["tool calls in earlier turns are not trained on"] += 1
    return Example(
        id=_checked_name(values["id"], "id", location) if "id" in values else "",
        task=task,
        answer=answer,
        level=_level(values["level"], location, column_conversions) if "level" in values else None,
        knobs=_knobs(values.get("knobs", {}), location),
        skills=_skills(values.get("skills", []), location),
        source=str(location),
        split=split or _split(values.get("split"), location),
        extra=extra,
        **texts,
    )


def recognise_columns(present: Iterable[str]) -> dict[str, str]:
    """Our name -> the one of the columns `present` that is taken for it when nobody says otherwise."""
    return dict(_columns(tuple(present), ())[0])


def find_columns(row: Mapping[str, Any], config: CorpusConfig) -> dict[str, str]:
    """Our name -> the column of a row that is taken for it, as the settings name them."""
    return dict(_columns(tuple(row), tuple(config.columns.items()))[0])


@functools.lru_cache(maxsize=256)
def _columns(present: tuple[str, ...], mapping: tuple[tuple[str, str], ...]) -> tuple[dict[str, str], str]:
    """Our name -> file's column, and the mapped column that is not there (empty when all are)."""
    mapped = dict(mapping)
    folded = {name.strip().casefold(): name for name in reversed(present)}
    column_by_name = {}
    for ours, names in NAMES.items():
        theirs = mapped.get(ours)
        if theirs and theirs not in present:
            return {}, theirs
        found = [name if name in present else folded.get(name.casefold(), "") for name in names]
        free = (name for name in found if name and name not in mapped.values())
        name = next(free, None) if theirs is None else theirs
        if name in present:
            column_by_name[ours] = name
    taken = [column_by_name.get(name, "").casefold() for name in ("prompt", "target")]
    if taken == ["input", "target"] and "answer" not in {*column_by_name, *mapped}:
        column_by_name["answer"] = column_by_name["target"]
    return column_by_name, ""


def _known(name: str, row: Mapping[str, Any]) -> str:
    """The name of a column as it is read here, whatever its case."""
    folded = name.strip().casefold()
    return folded if folded in READ_BY_NAME and folded not in row else name


def _given_answer(
    values: dict[str, Any],
    texts: dict[str, Any],
    extra: Mapping[str, Any],
    location: RowLocation,
    column_conversions: Counter[str],
) -> str | None:
    """The answer that the columns hold; options that the prompt does not list are put into it."""
    value = values.get("answer")
    if texts["target"] is None:
        label = values.get("label")
        if value is None and texts["chosen"] is None and isinstance(label, str | int) and not isinstance(label, bool):
            value = label
            column_conversions["answer from label"] += 1
        else:
            values.pop("label", None)
    answer = None if value is None else _answer(value, location)
    options = _given_options(extra) if isinstance(texts["prompt"], str) and answer is not None else {}
    if answer is None or not options:
        return answer
    listed = _with_options(texts["prompt"], options)
    if listed != texts["prompt"]:
        texts["prompt"] = listed
        column_conversions["options listed in the prompt"] += 1
    letter = _letter_of_index(answer, options, is_number=isinstance(value, int) and not isinstance(value, bool))
    if letter != answer:
        column_conversions["index of the right option turned into its letter"] += 1
    return letter


def _list_columns(columns: Any) -> str:
    names = [str(name)[:40] for name in columns]
    return f"columns {', '.join(names[:20])}" if names else "no columns"


def _texts(
    values: dict[str, Any],
    extra: dict[str, Any],
    row: dict[str, Any],
    empty: Sequence[str],
    location: RowLocation,
    column_conversions: Counter[str],
    *,
    takes_input: bool,
) -> dict[str, Any]:
    """prompt, target, chosen and rejected of a row; `empty`: columns that the prompt is looked for in and that are null;
    `takes_input`: the prompt is an instruction, to which the column `input` belongs. Chat or text that is not read is taken
    out of the values.
    """
    texts: dict[str, Any] = dict.fromkeys(("prompt", "target", "chosen", "rejected"))
    for name in texts:
        if name in values:
            texts[name] = _text(values[name], name, location)
    if (texts["chosen"] is None) != (texts["rejected"] is None):
        raise location.error("both chosen and rejected", "only one of them", "Add the other or drop the row.")
    chat = values.pop("messages", None)
    text = values.pop("text", None)
    is_talk = isinstance(texts["prompt"], tuple) and texts["prompt"][-1]["role"] == "assistant"
    if is_talk and _is_without_answer({**texts, "prompt": None}, values):  # a whole talk was named as the prompt
        chat, texts["prompt"] = values["prompt"], None
    if texts["chosen"] is not None:
        answers_alone = isinstance(texts["chosen"], str) or texts["chosen"][0]["role"] == "assistant"
        if texts["prompt"] is None and chat is not None and answers_alone:
            values["messages"] = chat
            texts["prompt"] = _text(chat, "messages", location)
            if isinstance(texts["prompt"], str) or texts["prompt"][-1]["role"] == "assistant":
                got = f"{texts['prompt'][-1]}"[:60]
                raise location.error(
                    "messages that end with the user's turn, because the row has chosen and rejected", got, "Correct it."
                )
        elif texts["prompt"] is None or (isinstance(texts["prompt"], str) and not answers_alone):
            texts |= _shared_prompt(texts["chosen"], texts["rejected"], location)
            column_conversions["prompt from the common beginning of chosen and rejected"] += 1
    elif chat is not None and _is_without_answer(texts, values):
        values["messages"] = chat = messages_in(chat)
        turns = _turns(_text(chat, "messages", location), location)
        if turns[1] is None and values.get("answer") is None:
            column_conversions["chats without a last assistant turn have no completion"] += 1
        if turns[1] is not None:
            if len(turns[0]) + len(turns[1]) < len(chat):
                extra.pop(MASK_COLUMN, None)  # of the last message, which is not trained on
                column_conversions["turns after the last trained one left out"] += 1
            if any(message["role"] == "assistant" for message in turns[0]):
                column_conversions["last of several assistant turns taken as the completion"] += 1
        texts["prompt"], texts["target"] = turns
    elif texts["prompt"] is None and text is not None:
        values["text"] = text
        texts["prompt"], texts["target"] = "", _text(text, "text", location)
        return texts
    if isinstance(texts["prompt"], str) and takes_input:
        joined = extra.pop("input") if isinstance(extra.get("input"), str) else ""
        column_conversions["prompt from instruction and input" if joined else "prompt from instruction"] += 1
        texts["prompt"] = "\n\n".join(one for one in (texts["prompt"], joined) if one)
    if texts["prompt"] is None and empty:
        raise location.error(f"a value in column {empty[0]!r}", "null", REMEDY_EMPTY_VALUE)
    if texts["prompt"] is None:
        expected = f"a column with the prompt ({', '.join(NAMES['prompt'])}, messages, text)"
        raise location.error(expected, _list_columns(row), REMEDY_NAME_COLUMN)
    if not plain(texts["prompt"]).strip():
        raise location.error("a prompt", "an empty one", REMEDY_EMPTY_VALUE)
    return texts


def _is_without_answer(texts: Mapping[str, Any], values: Mapping[str, Any]) -> bool:
    """Whether a row has no prompt beside its chat, or one of plain text without an answer: then the chat is read."""
    has_answer = texts["target"] is not None or texts["chosen"] is not None or values.get("answer") is not None
    return texts["prompt"] is None or (isinstance(texts["prompt"], str) and not has_answer)


Chat = tuple[Message, ...]
REMEDY_EMPTY_VALUE = "Fill it in or drop the row."
ROLES = ("system", "developer", "user", "assistant", "tool", "function", "ipython")
"""Roles that chat templates have; another is a typo, or would be lost in silence."""
ROLE_BY_SHAREGPT_NAME = {"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}
"""What ShareGPT data and LLaMA-Factory call a role -> what chat templates call it."""


def _remedy_ignore(name: str) -> str:
    return f'Correct it, or ignore the column: --column {name}=, or corpus.columns: {{{name}: ""}} in run.yaml.'


def _text(value: Any, name: str, location: RowLocation) -> Text:
    """A string, or chat messages with role and content (from and value are renamed)."""
    if isinstance(value, str):
        return _unicode(value, name, location)
    if isinstance(value, dict) and name in ("chosen", "rejected"):  # one message, as LLaMA-Factory has it
        value = [value]
    if not isinstance(value, list):
        raise location.error(f"text or chat messages in {name}", f"{type(value).__name__} {str(value)[:40]}", "Correct it.")
    if not value:
        raise location.error(f"messages in {name}", "an empty list", REMEDY_EMPTY_VALUE)
    return tuple(_message(message, name, location) for message in value)


def _message(message: Any, name: str, location: RowLocation) -> Message:
    message = decode(message) if isinstance(message, str) else message  # as Parquet holds messages whose keys differ
    if not isinstance(message, dict):
        raise location.error(f"messages with role and content in {name}", f"{type(message).__name__}", "Correct it.")
    read = structure(message)
    role, content, calls = read["role"], read["content"], read.get("tool_calls", [])
    given = message.get("tool_calls") or message.get("function_call") or []
    if not isinstance(role, str) or not isinstance(content, str):
        remedy = "Images and structured content are not supported; drop or rewrite them."
        raise location.error(f"messages with a role, and text as content, in {name}", f"{str(message)[:60]}", remedy)
    if len(calls) < (1 if isinstance(given, dict) else len(given)):
        remedy = "Correct or drop the row."
        raise location.error(f"tool calls with a name in {name}", f"{str(given)[:60]}", remedy)
    role = ROLE_BY_SHAREGPT_NAME.get(role, role)
    if role not in ROLES:
        raise location.error(
            f"one of the roles {', '.join(ROLES)} in {name}", repr(role)[:40], "Rename it: user or assistant."
        )
    kept = {key: read[key] for key in ("tool_calls", "tool_call_id", "name") if key in read}
    read = {"role": role, "content": _unicode(content, name, location), **kept}
    if name not in ("prompt", "target", "messages"):
        return read
    try:
        return read if is_trained(message) else {**read, TRAIN_KEYS[0]: False}
    except ValueError as error:
        expected = f"true, false, 1 or 0 as {' or '.join(TRAIN_KEYS)} of a message"
        raise location.error(expected, str(error), "Correct it, or leave it out.") from None


def _without_flags(prompt: Text, extra: dict[str, Any]) -> Text:
    """The prompt without what says that its turns are not trained on, which is kept beside it."""
    if isinstance(prompt, str):
        return prompt
    replies = [message for message in prompt if message["role"] == "assistant"]
    if untrained := [number for number, message in enumerate(replies) if not is_trained(message)]:
        extra[UNTRAINED_TURNS] = untrained
    return tuple({name: value for name, value in message.items() if name not in TRAIN_KEYS} for message in prompt)


def _check_mask(extra: dict[str, Any], target: Text | None, location: RowLocation) -> None:
    """Put the spans of a row's mask in order. Raises InputError for what is none."""
    if extra.get(MASK_COLUMN) is None or target is None:
        return
    try:
        if not isinstance(target, str) and len(target) > 1:
            raise ValueError(f"a completion of {len(target)} messages")
        spans = read_spans(extra[MASK_COLUMN], len(plain(target)))
    except ValueError as error:
        remedy = 'Correct it, or rename the column if it is not a mask. With several messages, use "train": false instead.'
        raise location.error("a mask of the completion, [[start, end], ...]", str(error), remedy) from None
    extra[MASK_COLUMN] = [list(span) for span in spans]


def _unicode(value: str, name: str, location: RowLocation) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise location.error(f"Unicode text in {name}", "half of a surrogate pair", "Repair the text.") from None
    return value


def _with_earlier_turns(
    prompt: Text, values: dict[str, Any], location: RowLocation, column_conversions: Counter[str]
) -> Text:
    """The prompt behind the system message and the earlier turns of the row's columns, which stay in `values` if they are
    read.
    """
    turns: Chat = prompt if isinstance(prompt, tuple) else ({"role": "user", "content": prompt},)
    first: Chat = turns[:1] if turns[0]["role"] in ("system", "developer") else ()
    system, history = values.get("system", ""), _read_history(values.get("history") or [], location)
    if not prompt or not isinstance(system, str) or (system and first):
        values.pop("system", None)
        system = ""
    if not prompt or history is None:
        values.pop("history", None)
        history = ()
    if not system and not history:
        return prompt
    if system:
        column_conversions["system as the first message"] += 1
    if history:
        column_conversions["history as earlier turns"] += 1
    opening: Chat = ({"role": "system", "content": _unicode(system, "system", location)},) if system else first
    return (*opening, *history, *turns[len(first) :])


def _read_history(value: Any, location: RowLocation) -> Chat | None:
    """The earlier turns that pairs of user and assistant hold, as lists or as JSON; None for another history."""
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(value) if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        return None
    turns = [turn for pair in value for turn in zip(("user", "assistant"), pair, strict=True)]
    if not all(isinstance(text, str) for _, text in turns):
        return None
    return tuple({"role": role, "content": _unicode(text, "history", location)} for role, text in turns)


def _is_undesired(values: dict[str, Any], extra: Mapping[str, Any], location: RowLocation) -> bool:
    """Whether a row says that its completion is not to be learned. A label that says something else is left to the graders.

    Raises:
        InputError: a number as the label that is neither 0 nor 1, since other rows would be left out for their 0.
    """
    label = values.get("label")
    said = [label, *(extra.get(name) for name in ("train", "weight", "loss_weight"))]
    truths = [TRUTHS.get(str(value).strip().casefold()) for value in said]
    if truths[0] is None and isinstance(label, int | float):
        expected = "true, false, 1 or 0 as the label of a completion"
        raise location.error(expected, f"{label}"[:40], _remedy_ignore("label"))
    if truths[0] is None:
        values.pop("label", None)
    return False in truths


def _turns(messages: Text, location: RowLocation) -> tuple[Chat, Chat | None]:
    """Prompt and target of a conversation: the last assistant turn that is trained on is the target, or the last."""
    if isinstance(messages, str):
        remedy = "Name it: --column text=COLUMN, or corpus.columns: {text: COLUMN} in run.yaml."
        raise location.error("a list of chat messages", "text", remedy)
    if messages[-1]["role"] != "assistant":
        return messages, None
    trained = (place for place, one in enumerate(messages) if place and one["role"] == "assistant" and is_trained(one))
    messages = messages[: max(trained, default=len(messages) - 1) + 1]
    if len(messages) == 1:
        raise location.error("a message before the assistant's", "none", "Add the user's message or drop the row.")
    return messages[:-1], messages[-1:]


def _shared_prompt(chosen: Text, rejected: Text, location: RowLocation) -> dict[str, Any]:
    """The common beginning of chosen and rejected as the prompt; a space before the difference stays with the answers.

    Dialogues in one text (`Human: ... Assistant: ...`) are cut before the last turn of the assistant that both have.
    """
    if isinstance(chosen, str) != isinstance(rejected, str):
        raise location.error("chosen and rejected in the same format", "text and messages", "Write both the same way.")
    pairs = enumerate(zip(chosen, rejected, strict=False))
    shared_length = next(
        (index for index, (chosen_part, rejected_part) in pairs if chosen_part != rejected_part),
        min(len(chosen), len(rejected)),
    )
    if isinstance(chosen, str) and (turn := chosen.rfind(LAST_TURN_MARK, 0, shared_length)) >= 0:
        end = turn + len(LAST_TURN_MARK)
        return {"prompt": chosen[:end], "chosen": chosen[end:], "rejected": rejected[end:]}
    if shared_length and isinstance(chosen, str) and chosen[shared_length - 1] == " ":
        shared_length -= 1
    if not shared_length:
        raise location.error("a prompt", "none, and no common beginning of chosen and rejected", "Add a prompt column.")
    return {"prompt": chosen[:shared_length], "chosen": chosen[shared_length:], "rejected": rejected[shared_length:]}


def _checked_name(value: Any, name: str, location: RowLocation) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
        raise location.error(f"text in {name}", f"{type(value).__name__} {str(value)[:40]!r}", "Correct it.")
    return _unicode(str(value), name, location)


def _answer(value: Any, location: RowLocation) -> str:
    if isinstance(value, bool):
        value = "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        raise location.error("an answer", f"{value}", REMEDY_EMPTY_VALUE)
    if not isinstance(value, str | int | float):
        raise location.error(
            "an answer that is text or a number", f"{type(value).__name__} {str(value)[:40]}", "Correct it."
        )
    if not str(value).strip():
        raise location.error("an answer", "an empty one", REMEDY_EMPTY_VALUE)
    return _unicode(str(value), "answer", location)


def _number(value: Any, name: str, location: RowLocation) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        got = f"{type(value).__name__} {str(value)[:40]!r}"
        raise location.error(f"a number in {name}", got, _remedy_ignore(name.partition(".")[0]))
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise location.error(f"a finite number in {name}", f"{value}"[:40], "Correct it or drop the row.")
    return number


def _level(value: Any, location: RowLocation, column_conversions: Counter[str]) -> float | None:
    """A level: a number, or the number of a text such as `Level 3`; None for `Level ?`."""
    if isinstance(value, str) and (match := _LEVEL.fullmatch(value.strip())):
        column_conversions["level read from its text"] += 1
        return None if match[1] == "?" else float(match[1])
    number = _number(value, "level", location)
    if abs(number) > MAX_LEVEL:
        expected = f"a level of at most {MAX_LEVEL:,} (2^53), because larger floating-point numbers are not exact"
        raise location.error(expected, f"{value}"[:40], _remedy_ignore("level"))
    return number


def _knobs(value: Any, location: RowLocation) -> dict[str, float]:
    if not isinstance(value, dict):
        raise location.error("an object of numbers in knobs", type(value).__name__, "Correct it.")
    return {str(name): _number(number, f"knobs.{name}", location) for name, number in value.items() if number is not None}


def _skills(value: Any, location: RowLocation) -> tuple[str, ...]:
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(skill, str) for skill in value):
        raise location.error("a list of texts in skills", str(value)[:40], "Correct it.")
    return tuple(_unicode(skill, "skills", location) for skill in value)


def _split(value: Any, location: RowLocation) -> str:
    """Our name of a row's own split; empty when it has none."""
    if value is None:
        return ""
    if not isinstance(value, str) or value.lower() not in SPLIT_BY_NAME:
        raise location.error(f"one of {', '.join(SPLIT_BY_NAME)} in split", repr(value)[:40], _remedy_ignore("split"))
    return SPLIT_BY_NAME[value.lower()]


def _given_options(extra: Mapping[str, Any]) -> dict[str, str]:
    """Letter -> text of a row's column of options, as they are written; empty where it has none or fewer than two."""
    options = read_options(next((extra[name] for name in OPTION_COLUMNS if name in extra), None))
    return options if len(options) > 1 and all(text.strip() for text in options.values()) else {}


def _with_options(prompt: str, options: Mapping[str, str]) -> str:
    """The prompt followed by its options, a line each; as it is where it holds them all already."""
    if all(text.strip() in prompt for text in options.values()):
        return prompt
    return "\n".join([prompt.rstrip(), *(f"({letter}) {text.strip()}" for letter, text in options.items())])


def _letter_of_index(answer: str, options: Mapping[str, str], *, is_number: bool = False) -> str:
    """The letter of an answer that is a whole number and no option: its place, counted from 0. Else the answer itself.

    Args:
        answer: as text.
        options: label -> text.
        is_number: the file has a number there, and no text: beside options, which are texts, it is a place even where one
            of them reads like it; a label that reads like it goes before.
    """
    names = {name.casefold() for name in (*options, *(() if is_number else (text.strip() for text in options.values())))}
    if answer.strip().casefold() in names or not answer.isascii() or not answer.isdecimal() or len(answer) > 3:
        return answer
    option_index = int(answer)
    return list(options)[option_index] if option_index < len(options) else answer


def format_conversions(counts: Counter[str], source: str, rows: int) -> list[str]:
    """One note about what was done with the columns of a source; none where nothing was.

    Args:
        counts: what was done -> rows that it was done with.
        source: as the user wrote it.
        rows: of the source.
    """
    if not counts:
        return []
    common = counts.most_common()
    conversion_texts = [
        conversion if count == rows else f"{conversion} ({count:,} of {rows:,} rows)"
        for conversion, count in common[:MAX_CONVERSIONS_SHOWN]
    ]
    more_count = len(common) - len(conversion_texts)
    return [f"{source}: {', '.join(conversion_texts)}{f' and {more_count} more' if more_count > 0 else ''}"]


def format_unread(unread_by_file: Mapping[str, Counter[str]]) -> list[str]:
    """A note for each file with columns that no one read: their names, and how many rows have something there."""
    return [
        f"{file}: columns that are not used: "
        + ", ".join(f"{name[:60]} ({count:,})" for name, count in columns.most_common(MAX_UNREAD_SHOWN))
        + (f" and {len(columns) - MAX_UNREAD_SHOWN:,} more" if len(columns) > MAX_UNREAD_SHOWN else "")
        for file, columns in unread_by_file.items()
        if columns
    ]

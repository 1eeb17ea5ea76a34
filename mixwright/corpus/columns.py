"""Meaning of a row's columns: TRL's names, the usual other names, and the user's mapping.

Recognised as TRL does: prompt; prompt + completion; `text`; `messages` (and from/value `conversations`); chosen + rejected,
the prompt beside them or their common beginning. The last assistant turn of `messages` is the target.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mixwright.config import CorpusConfig
from mixwright.corpus.masks import MASK_COLUMN, TRAIN_KEYS, UNTRAINED_TURNS, is_trained, read_spans
from mixwright.corpus.reading import SPLIT_BY_NAME, RowLocation, messages_in, read_number, show_value
from mixwright.corpus.tool_messages import has_calls, structure_answer, with_tools
from mixwright.errors import InputError, join_some, unknown_name
from mixwright.graders.choice import OPTION_COLUMNS, options_of, read_options
from mixwright.records import Example, Text, plain
from mixwright.records.corpus import Message
from mixwright.tool_calls import CALL_ROLES, decode, read_tools, structure

NAMES: dict[str, tuple[str, ...]] = {
    "id": ("id",),
    "task": ("task", "data_source"),
    "prompt": ("prompt", "question", "instruction", "input", "query", "problem"),
    "target": ("completion", "target", "output", "response"),
    "answer": ("answer", "gold", "ground_truth", "final_answer", "answerKey", "solution"),
    "level": ("level",),
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
LEFT_OUT = "rows labelled false or with weight 0 left out"
"""Note on rows that nobody learns from, such as the disliked ones of KTO."""
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
_LEVEL = re.compile(r"(?:level\s*)?(\d{1,9}(?:\.\d{1,9})?|\?)", re.IGNORECASE)
LAST_TURN_MARK = "\n\nAssistant:"
"""How the last turn of a dialogue in one text begins, as in hh-rlhf."""
MAX_UNREAD_SHOWN = 100
"""Columns that no one read in one note."""


class RowReader:
    """Reads the raw rows of a source as examples, and counts what is done with their columns.

    Args:
        config: `columns`, `task` and `graders` are read.
        split: the split the rows belong to; empty takes a row's own `split` column, if any.

    Raises:
        InputError: `columns` maps a name that is not one of ours.
    """

    def __init__(self, config: CorpusConfig, split: str) -> None:
        for ours in config.columns:
            if ours not in NAMES:
                raise unknown_name("field (corpus.columns: {field: column of the file})", ours, NAMES)
        self.config, self.split = config, split
        self.row_count = self.kept_count = 0
        self.conversions = Counter[str]()
        """What was done with columns -> rows."""
        self.unread_by_file: dict[str, Counter[str]] = {}
        """Columns that neither prompt nor completion nor answer is made of -> rows."""

    def read(self, row: Any, location: RowLocation) -> Example | None:
        """The example that a row holds; its id is empty when the row has none. None where the row says that its completion
        is not to be learned: a false `label` (KTO), or 0 as `weight`, `loss_weight` or `train`.

        Args:
            row: what the file gave.
            location: where, for errors and `source`.

        Raises:
            InputError: a column missing, a value of the wrong type, or images, audio or video.
        """
        self.row_count += 1
        example = _Reading(self, row, location).read()
        self.kept_count += example is not None
        return example

    def notes(self, source: str) -> list[str]:
        """What was done with the columns of a source, and for each file the columns that no one read, with their rows."""
        texts = [
            conversion if count == self.row_count else f"{conversion} ({count:,} of {self.row_count:,} rows)"
            for conversion, count in self.conversions.most_common()
        ]
        notes = [f"{source}: {join_some(texts)}"] if texts else []
        return notes + [
            f"{file}: columns that are not used: "
            + join_some([f"{name[:60]} ({count:,})" for name, count in columns.most_common()], MAX_UNREAD_SHOWN)
            for file, columns in self.unread_by_file.items()
            if columns
        ]


def recognise_columns(present: Iterable[str], mapping: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our name -> the one of the columns `present` that is taken for it; `mapping` has those that the user named."""
    return dict(_find_columns(tuple(present), tuple((mapping or {}).items())))


@functools.lru_cache(maxsize=256)
def _find_columns(present: tuple[str, ...], mapping: tuple[tuple[str, str], ...]) -> dict[str, str]:
    mapped = dict(mapping)
    folded = {name.strip().casefold(): name for name in reversed(present)}
    column_by_name = {}
    for ours, names in NAMES.items():
        found = [name if name in present else folded.get(name.casefold(), "") for name in names]
        free = (name for name in found if name and name not in mapped.values())
        name = mapped[ours] if ours in mapped else next(free, None)
        if name in present:
            column_by_name[ours] = name
    taken = [column_by_name.get(name, "").casefold() for name in ("prompt", "target")]
    if taken == ["input", "target"] and "answer" not in {*column_by_name, *mapped}:
        column_by_name["answer"] = column_by_name["target"]
    return column_by_name


Chat = tuple[Message, ...]
REMEDY_EMPTY_VALUE = "Fill it in or drop the row."
ROLES = ("system", "developer", "user", "assistant", "tool", "function", "ipython")
"""Roles that chat templates have; another is a typo, or would be lost in silence."""
ROLE_BY_SHAREGPT_NAME = {
    "human": "user",
    "gpt": "assistant",
    **dict.fromkeys(CALL_ROLES, "assistant"),
    **dict.fromkeys(("observation", "tool_response", "function_response", "function-response"), "tool"),
}
"""What ShareGPT data, LLaMA-Factory and ms-swift call a role -> what chat templates call it."""


class _Reading:
    """One raw row while it is read: `values` by our names, columns beside them in `extra`, and `texts` made of both."""

    def __init__(self, reader: RowReader, row: Any, location: RowLocation) -> None:
        self.reader, self.location, config = reader, location, reader.config
        self.config, self.split, self.noted = config, reader.split, reader.conversions
        if not isinstance(row, dict):
            raise self.error("a row that is an object with named columns", show_value(row))
        for theirs in config.columns.values():
            if theirs and theirs not in row:
                expected = f"the column {theirs!r} that corpus.columns names"
                raise self.error(expected, _list_columns(row), REMEDY_NAME_COLUMN)
        self.row, self.columns = row, recognise_columns(row, config.columns)
        if self.split:
            self.columns.pop("split", None)
        self.values = {ours: row[theirs] for ours, theirs in self.columns.items() if row[theirs] is not None}
        taken = {theirs for ours, theirs in self.columns.items() if ours not in KEPT_COLUMNS}
        self.extra = {_known(name, row): one for name, one in row.items() if name not in taken and one is not None}
        self.texts: dict[str, Any] = dict.fromkeys(("prompt", "target", "chosen", "rejected"))

    def error(self, expected: str, got: str, remedy: str = "Correct it.") -> InputError:
        """Return an `InputError` at the row."""
        return self.location.error(expected, got, remedy)

    def read(self) -> Example | None:
        """Return what `RowReader.read` does."""
        if media := next((name for name in MEDIA_COLUMNS if self.extra.get(name)), None):
            remedy = "Leave these rows out, or rename the column so that Mixwright ignores it."
            raise self.error("rows with only text", f"data in the column {media!r}", remedy)
        verifier = self.extra.get("reward_model")
        truth = verifier.get("ground_truth") if isinstance(verifier, dict) else None  # as verl has it
        if "answer" not in self.values and isinstance(truth, str | int | float) and truth != "":
            self.values["answer"] = truth
            self.noted["answer from reward_model.ground_truth"] += 1
        self.take_calls()
        task, texts = self.read_name("task", self.location.task or self.config.task), self.texts
        self.read_texts()
        self.take_flags()
        if not texts["prompt"]:
            self.values.pop("label", None)
        elif texts["target"] is not None and self.is_undesired():
            self.noted[LEFT_OUT] += 1
            return None
        answer = self.read_answer()
        self.add_earlier_turns()
        tools = read_tools(self.extra.get("tools")) if texts["prompt"] else []
        if tools:
            texts["prompt"] = with_tools(texts["prompt"], tools)
            del self.extra["tools"]
            if isinstance(texts["target"], str):
                texts["target"] = structure_answer(texts["target"])
        if answer is None and task in self.config.graders and texts["target"] is not None:
            answer = plain(texts["target"])
        if answer is not None and texts["target"] is None and self.split != "rehearse":  # there the model answers
            texts["target"] = structure_answer(answer) if tools else answer
        self.check_mask()
        for ours in KEPT_COLUMNS:
            if ours in self.values:
                del self.extra[self.columns[ours]]
        unread = self.reader.unread_by_file.setdefault(self.location.file, Counter())
        unread.update(self.find_unread(answer, is_truth=self.values.get("answer") == truth is not None))
        self.note_columns()
        return Example(
            id=self.read_name("id", "") if "id" in self.values else "",
            task=task,
            answer=answer,
            level=self.read_level(),
            skills=self.read_skills(),
            source=str(self.location),
            split=self.split or self.read_split(),
            extra=self.extra,
            **texts,
        )

    def take_calls(self) -> None:
        """Take the calls in the column `answers` of a row with tools as its answer, as xLAM has them."""
        found = self.extra.get("answers")
        text = found if isinstance(found, str) else json.dumps(found, default=str)
        has_gold = "answer" in self.values or "target" in self.values
        if not has_gold and read_tools(self.extra.get("tools")) and not isinstance(structure_answer(text), str):
            self.values["answer"] = text
            del self.extra["answers"]
            self.noted["answer from answers"] += 1

    def find_unread(self, answer: str | None, *, is_truth: bool) -> list[str]:
        """Return the columns that nothing is made of."""
        read_by_name = {UNTRAINED_TURNS, *(OPTION_COLUMNS if answer is not None else ())}
        read_by_name |= {MASK_COLUMN} if self.texts["target"] is not None else set()
        read_by_name |= {"reward_model"} if is_truth else set()
        read_by_name |= {"tools"} if self.extra.get("tools") in ([], "[]", "") else set()
        unread_texts = [
            self.columns[ours]
            for ours in ("messages", "text")
            if ours in self.columns and ours not in self.values and self.row[self.columns[ours]] is not None
        ]
        return [name for name in self.extra if name not in read_by_name] + unread_texts

    def note_columns(self) -> None:
        """Count which columns were taken under another name of ours."""
        for ours, theirs in self.columns.items():
            told = NAMES_IN_NOTES.get(ours, ours)
            is_instruction = ours == "prompt" and theirs.casefold() == INSTRUCTION
            if ours in self.values and theirs not in (ours, told) and not is_instruction:
                self.noted[f"{told} from {theirs}"] += 1
        if self.texts["target"] is not None and has_calls(self.texts["prompt"]):
            self.noted["tool calls in earlier turns are not trained on"] += 1

    def read_texts(self) -> None:
        """Read prompt, target, chosen and rejected. Chat or text that is not read is taken out of the values."""
        texts, values = self.texts, self.values
        for name in texts:
            if name in values:
                texts[name] = self.read_text(values[name], name)
        if (texts["chosen"] is None) != (texts["rejected"] is None):
            raise self.error("both chosen and rejected", "only one of them", "Add the other or drop the row.")
        chat, text = values.pop("messages", None), values.pop("text", None)
        is_talk = isinstance(texts["prompt"], tuple) and texts["prompt"][-1]["role"] == "assistant"
        if is_talk:  # a whole talk was named as the prompt
            chat, texts["prompt"] = values["prompt"], None
        if texts["chosen"] is not None:
            self.read_prompt_of_pair(chat)
        elif chat is not None and (texts["prompt"] is None or (isinstance(texts["prompt"], str) and not self.has_answer())):
            values["messages"] = messages_in(chat)
            self.read_chat(values["messages"])
        elif texts["prompt"] is None and text is not None:
            values["text"] = text
            texts["prompt"], texts["target"] = "", self.read_text(text, "text")
            return
        if isinstance(texts["prompt"], str) and self.columns.get("prompt", "").casefold() == INSTRUCTION:
            joined = self.extra.pop("input") if isinstance(self.extra.get("input"), str) else ""
            self.noted["prompt from instruction and input" if joined else "prompt from instruction"] += 1
            texts["prompt"] = "\n\n".join(one for one in (texts["prompt"], joined) if one)
        if texts["prompt"] is None:
            for ours in ("prompt", "messages", "text"):
                if ours in self.columns and self.row[self.columns[ours]] is None:
                    raise self.error(f"a value in column {self.columns[ours]!r}", "null", REMEDY_EMPTY_VALUE)
            expected = f"a column with the prompt ({', '.join(NAMES['prompt'])}, messages, text)"
            raise self.error(expected, _list_columns(self.row), REMEDY_NAME_COLUMN)
        if not plain(texts["prompt"]).strip():
            raise self.error("a prompt", "an empty one", REMEDY_EMPTY_VALUE)

    def has_answer(self) -> bool:
        """Return whether there is a completion or an answer beside the prompt."""
        is_text_there = self.texts["target"] is not None or self.texts["chosen"] is not None
        return is_text_there or self.values.get("answer") is not None

    def read_prompt_of_pair(self, chat: Any) -> None:
        """Take the chat as the prompt of a pair, or the common beginning of chosen and rejected."""
        texts = self.texts
        answers_alone = isinstance(texts["chosen"], str) or texts["chosen"][0]["role"] == "assistant"
        if texts["prompt"] is None and chat is not None and answers_alone:
            self.values["messages"] = chat
            texts["prompt"] = self.read_text(chat, "messages")
            if isinstance(texts["prompt"], str) or texts["prompt"][-1]["role"] == "assistant":
                expected = "messages that end with the user's turn, because the row has chosen and rejected"
                raise self.error(expected, f"{texts['prompt'][-1]}"[:60])
        elif texts["prompt"] is None or (isinstance(texts["prompt"], str) and not answers_alone):
            self.share_prompt()
            self.noted["prompt from the common beginning of chosen and rejected"] += 1

    def share_prompt(self) -> None:
        """Cut the common beginning off chosen and rejected; a space before the difference stays with them.

        Dialogues in one text (`Human: ... Assistant: ...`) are cut before the last turn of the assistant that both have.
        """
        chosen, rejected = self.texts["chosen"], self.texts["rejected"]
        if isinstance(chosen, str) != isinstance(rejected, str):
            raise self.error("chosen and rejected in the same format", "text and messages", "Write both the same way.")
        same_parts = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(chosen, rejected, strict=False))
        shared_length = sum(1 for _ in same_parts)
        if isinstance(chosen, str) and (turn := chosen.rfind(LAST_TURN_MARK, 0, shared_length)) >= 0:
            shared_length = turn + len(LAST_TURN_MARK)
        elif shared_length and chosen[shared_length - 1] == " ":
            shared_length -= 1
        if not shared_length:
            raise self.error("a prompt", "none, and no common beginning of chosen and rejected", "Add a prompt column.")
        self.texts["prompt"] = chosen[:shared_length]
        self.texts["chosen"], self.texts["rejected"] = chosen[shared_length:], rejected[shared_length:]

    def read_chat(self, chat: Any) -> None:
        """Part a conversation into prompt and target: the last assistant turn that is trained on, or the last."""
        messages = self.read_text(chat, "messages")
        if isinstance(messages, str):
            remedy = "Name it: --column text=COLUMN, or corpus.columns: {text: COLUMN} in run.yaml."
            raise self.error("a list of chat messages", "text", remedy)
        if messages[-1]["role"] != "assistant":
            self.texts["prompt"], self.texts["target"] = messages, None
            if self.values.get("answer") is None:
                self.noted["chats without a last assistant turn have no completion"] += 1
            return
        trained = (n for n, turn in enumerate(messages) if n and turn["role"] == "assistant" and is_trained(turn))
        end = max(trained, default=len(messages) - 1)
        if not end:
            raise self.error("a message before the assistant's", "none", "Add the user's message or drop the row.")
        self.texts["prompt"], self.texts["target"] = messages[:end], messages[end : end + 1]
        if end + 1 < len(messages):
            self.extra.pop(MASK_COLUMN, None)  # of the last message, which is not trained on
            self.noted["turns after the last trained one left out"] += 1
        if any(message["role"] == "assistant" for message in messages[:end]):
            self.noted["last of several assistant turns taken as the completion"] += 1

    def read_text(self, value: Any, name: str) -> Text:
        """Return a string, or chat messages with role and content (from and value are renamed)."""
        if isinstance(value, str):
            return value
        if isinstance(value, dict) and name in ("chosen", "rejected"):  # one message, as LLaMA-Factory has it
            value = [value]
        if not isinstance(value, list):
            raise self.error(f"text or chat messages in {name}", f"{type(value).__name__} {str(value)[:40]}")
        if not value:
            raise self.error(f"messages in {name}", "an empty list", REMEDY_EMPTY_VALUE)
        return tuple(self.read_message(message, name) for message in value)

    def read_message(self, message: Any, name: str) -> Message:
        """Return one message of a chat; of one that is not trained on, marked so."""
        message = decode(message) if isinstance(message, str) else message  # as Parquet holds messages whose keys differ
        if not isinstance(message, dict):
            raise self.error(f"messages with role and content in {name}", f"{type(message).__name__}")
        read = structure(message)
        role, content, calls = read["role"], read["content"], read.get("tool_calls", [])
        given = message.get("tool_calls") or message.get("function_call") or []
        if not isinstance(role, str) or not isinstance(content, str):
            remedy = "Images and structured content are not supported; drop or rewrite them."
            if {"role", "content"} - {key for key, value in read.items() if value is not None}:
                remedy = "Each needs both: rename the keys, or drop the row."
            raise self.error(f"messages with a role, and text as content, in {name}", f"{str(message)[:60]}", remedy)
        if len(calls) < (1 if isinstance(given, dict) else len(given)):
            raise self.error(f"tool calls with a name in {name}", f"{str(given)[:60]}", "Correct or drop the row.")
        role = ROLE_BY_SHAREGPT_NAME.get(role, role)
        if role not in ROLES:
            expected = f"one of the roles {', '.join(ROLES)} in {name}"
            raise self.error(expected, repr(role)[:40], "Rename it: user or assistant.")
        kept = {key: read[key] for key in ("tool_calls", "tool_call_id", "name") if key in read}
        read = {"role": role, "content": content, **kept}
        if name not in ("prompt", "target", "messages"):
            return read
        try:
            return read if is_trained(message) else {**read, TRAIN_KEYS[0]: False}
        except ValueError as error:
            expected = f"true, false, 1 or 0 as {' or '.join(TRAIN_KEYS)} of a message"
            raise self.error(expected, str(error), "Correct it, or leave it out.") from None

    def take_flags(self) -> None:
        """Take out of the prompt what says that its turns are not trained on, and keep it beside it."""
        prompt = self.texts["prompt"]
        if isinstance(prompt, str):
            return
        replies = [message for message in prompt if message["role"] == "assistant"]
        if untrained := [number for number, message in enumerate(replies) if not is_trained(message)]:
            self.extra[UNTRAINED_TURNS] = untrained
        self.texts["prompt"] = tuple(
            {name: value for name, value in message.items() if name not in TRAIN_KEYS} for message in prompt
        )

    def check_mask(self) -> None:
        """Put the spans of the row's mask in order. Raises InputError for what is none."""
        target = self.texts["target"]
        if self.extra.get(MASK_COLUMN) is None or target is None:
            return
        try:
            if not isinstance(target, str) and len(target) > 1:
                raise ValueError(f"a completion of {len(target)} messages")
            self.extra[MASK_COLUMN] = list(map(list, read_spans(self.extra[MASK_COLUMN], len(plain(target)))))
        except ValueError as error:
            remedy = (
                'Correct it, or rename the column if it is not a mask. With several messages, use "train": false instead.'
            )
            raise self.error("a mask of the completion, [[start, end], ...]", str(error), remedy) from None

    def add_earlier_turns(self) -> None:
        """Put the system message and the earlier turns of the row's columns before the prompt; those that are not read leave
        the values.
        """
        prompt = self.texts["prompt"]
        turns: Chat = prompt if isinstance(prompt, tuple) else ({"role": "user", "content": prompt},)
        first: Chat = turns[:1] if turns[0]["role"] in ("system", "developer") else ()
        system, history = self.values.get("system", ""), _read_history(self.values.get("history") or [])
        if not prompt or not isinstance(system, str) or (system and first):
            self.values.pop("system", None)
            system = ""
        if not prompt or history is None:
            self.values.pop("history", None)
            history = ()
        if system:
            self.noted["system as the first message"] += 1
        if history:
            self.noted["history as earlier turns"] += 1
        if system or history:
            opening: Chat = ({"role": "system", "content": system},) if system else first
            self.texts["prompt"] = (*opening, *history, *turns[len(first) :])

    def is_undesired(self) -> bool:
        """Whether the row says that its completion is not to be learned. A label that says something else is left to the
        graders.

        Raises:
            InputError: a number as the label that is neither 0 nor 1, since other rows would be left out for their 0.
        """
        label = self.values.get("label")
        said = [label, *(self.extra.get(name) for name in ("train", "weight", "loss_weight"))]
        truths = [TRUTHS.get(str(value).strip().casefold()) for value in said]
        if truths[0] is None and isinstance(label, int | float):
            expected = "true, false, 1 or 0 as the label of a completion"
            raise self.error(expected, f"{label}"[:40], _remedy_ignore("label"))
        if truths[0] is None:
            self.values.pop("label", None)
        return False in truths

    def read_answer(self) -> str | None:
        """Return the answer that the columns hold; options that the prompt does not list are put into it."""
        value, texts = self.values.get("answer"), self.texts
        if texts["target"] is None:
            label = self.values.get("label")
            if value is None and texts["chosen"] is None and isinstance(label, str | int) and not isinstance(label, bool):
                value = label
                self.noted["answer from label"] += 1
            else:
                self.values.pop("label", None)
        if value is None:
            return None
        answer = str(value).lower() if isinstance(value, bool) else str(value)
        if not isinstance(value, str | int | float):
            raise self.error("an answer that is text or a number", f"{type(value).__name__} {answer[:40]}")
        if not answer.strip() or (isinstance(value, float) and not math.isfinite(value)):
            raise self.error("an answer", answer.strip() or "an empty one", REMEDY_EMPTY_VALUE)
        options = _given_options(self.extra) if isinstance(texts["prompt"], str) else {}
        if not options:
            return answer
        if not all(text.strip() in texts["prompt"] for text in options.values()):
            lines = [f"({letter}) {text.strip()}" for letter, text in options.items()]
            texts["prompt"] = "\n".join([texts["prompt"].rstrip(), *lines])
            self.noted["options listed in the prompt"] += 1
        letter = _letter_of_index(answer, options, is_number=isinstance(value, int) and not isinstance(value, bool))
        if letter != answer:
            self.noted["index of the right option turned into its letter"] += 1
        return letter

    def read_name(self, name: str, otherwise: str) -> str:
        """Return the row's own name for itself or its task."""
        value = self.values.get(name, otherwise)
        if isinstance(value, bool) or not isinstance(value, str | int) or not str(value).strip():
            raise self.error(f"text in {name}", show_value(value))
        return str(value)

    def read_level(self) -> float | None:
        """Return the level: a number, or the number of a text such as `Level 3`; None for `Level ?` and for nothing."""
        value = self.values.get("level")
        if isinstance(value, str) and (match := _LEVEL.fullmatch(value.strip())):
            self.noted["level read from its text"] += 1
            return None if match[1] == "?" else float(match[1])
        return None if value is None else read_number(value, "level", self.location, _remedy_ignore("level"))

    def read_skills(self) -> tuple[str, ...]:
        """Return what the row exercises: a text, or a list of them."""
        value = self.values.get("skills", [])
        value = [value] if isinstance(value, str) else value
        if not isinstance(value, list) or not all(isinstance(skill, str) for skill in value):
            raise self.error("a list of texts in skills", str(value)[:40])
        return tuple(value)

    def read_split(self) -> str:
        """Return our name of the row's own split; empty when it has none."""
        value = self.values.get("split")
        if value is None:
            return ""
        if not isinstance(value, str) or value.lower() not in SPLIT_BY_NAME:
            raise self.error(f"one of {', '.join(SPLIT_BY_NAME)} in split", repr(value)[:40], _remedy_ignore("split"))
        return SPLIT_BY_NAME[value.lower()]


def _known(name: str, row: Mapping[str, Any]) -> str:
    """The name of a column as it is read here, whatever its case."""
    folded = name.strip().casefold()
    return folded if folded in READ_BY_NAME and folded not in row else name


def _list_columns(columns: Any) -> str:
    names = [str(name)[:40] for name in columns]
    return f"columns {', '.join(names[:20])}" if names else "no columns"


def _remedy_ignore(name: str) -> str:
    return f'Correct it, or ignore the column: --column {name}=, or corpus.columns: {{{name}: ""}} in run.yaml.'


def _read_history(value: Any) -> Chat | None:
    """The earlier turns that pairs of user and assistant hold, as lists or as JSON; None for another history."""
    with contextlib.suppress(ValueError):
        value = json.loads(value) if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in value):
        return None
    texts = [text for pair in value for text in pair]
    if not all(isinstance(text, str) for text in texts):
        return None
    return tuple({"role": "assistant" if number % 2 else "user", "content": text} for number, text in enumerate(texts))


def _given_options(extra: Mapping[str, Any]) -> dict[str, str]:
    """Letter -> text of a row's column of options, as they are written; empty where it has none or fewer than two."""
    options = read_options(options_of(extra))
    return options if len(options) > 1 and all(text.strip() for text in options.values()) else {}


def _letter_of_index(answer: str, options: Mapping[str, str], *, is_number: bool) -> str:
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

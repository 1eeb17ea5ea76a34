"""Masks of rows as labels: what a row says is not learnt from gets -100, everything else stays as TRL made it.

TRL prepares the rows. Then each row with a mask is rendered once more, with the template that TRL used, and its tokens are
compared with TRL's; so a difference is an error and no wrong mask. A message is found by rendering the talk with another
text in its place. A token that has any character in a masked part is masked.

A message that is not trained on is masked with what the template puts before it and after it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple, NoReturn

from datasets import Dataset

from mixwright.corpus.masks import MASK_COLUMN, TRAIN_KEYS, is_trained, read_spans
from mixwright.errors import InputError
from mixwright.learner.prompt_form import render_chat

MESSAGE_COLUMNS = ("prompt", "completion", "messages", "conversations")
MARK = "mixwrightstandshere"
"""Stands for the text of a message while it is looked for."""
IGNORED = -100

Messages = list[dict[str, Any]]


def carries_masks(dataset: Any) -> bool:
    """Whether rows of a data set may have masks: a column of spans, or messages that say whether they are trained on."""
    if dataset is None:
        return False
    if not isinstance(dataset, Dataset):
        first = next(iter(dataset), {})
        return isinstance(first, Mapping) and (MASK_COLUMN in first or any(map(_says_so, first.values())))
    names = dataset.column_names
    return MASK_COLUMN in names or any(
        any(map(_says_so, dataset[name])) if "Json" in str(dataset.features[name]) else _may_say_so(dataset.features[name])
        for name in MESSAGE_COLUMNS
        if name in names
    )


def _says_so(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) and not {*TRAIN_KEYS}.isdisjoint(one) for one in value)


def _may_say_so(feature: Any) -> bool:
    inner = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", None)
    return isinstance(inner, Mapping) and not {*TRAIN_KEYS}.isdisjoint(inner)


def refuse_unprepared_masks(arguments: Mapping[str, Any]) -> None:
    """Refuse rows with masks that TRL would not prepare, so that they would be lost.

    Args:
        arguments: of the trainer, by name.

    Raises:
        InputError: a stream, images, or rows that are prepared already.
    """
    given = [arguments.get("train_dataset"), arguments.get("eval_dataset")]
    for dataset in [one for entry in given for one in (entry.values() if isinstance(entry, Mapping) else [entry])]:
        if isinstance(dataset, str) or not carries_masks(dataset):
            continue
        if not isinstance(dataset, Dataset):
            _refuse("a datasets.Dataset for rows with masks", type(dataset).__name__, "Load the stream into a Dataset.")
        if {"image", "images"} & set(dataset.column_names):
            _refuse("only text, because rows have masks", "images", "Remove the masks, or the images.")
        if (getattr(arguments.get("args"), "dataset_kwargs", None) or {}).get("skip_prepare_dataset"):
            _refuse("rows with masks that TRL prepares", "skip_prepare_dataset", "Let TRL prepare the dataset.")


def mask_labels(prepared: Any, trainer: Any, args: Any, *, packing: bool, formatted: bool) -> Dataset:
    """Rows that TRL has prepared, with the labels of their masked parts left out, and without those of which none is left.

    Args:
        prepared: with input_ids, labels and the columns that they came from.
        trainer: SFT, while it is being made.
        args: its settings.
        packing: whether TRL has packed the rows.
        formatted: whether a function of the user made their texts.

    Raises:
        InputError: masks that cannot be told in these rows, with the reason.
    """
    if packing:
        remedy = "Set packing=False (eval_packing=False)."
        _refuse("rows with masks that are not packed by TRL", "packing=True", remedy)
    if formatted:
        _refuse("rows with masks in their final format", "a formatting_func", "Write its output into the rows instead.")
    tokenizer = trainer._tokenizer
    if not getattr(tokenizer, "is_fast", False):
        _refuse("a fast tokenizer, which reports token positions", type(tokenizer).__name__, "Use the fast version.")
    how = {
        "tokenizer": tokenizer,
        "template": getattr(trainer, "chat_template", None),
        "text_column": args.dataset_text_field,
        "keeps_end": args.truncation_mode == "keep_end",
    }
    masked = prepared.map(_masked_row, fn_kwargs=how, desc="Leaving masked parts out of the labels")
    left = masked.filter(lambda labels: any(label != IGNORED for label in labels), input_columns=["labels"])
    if not len(left):
        _refuse("rows with something left to train on", "masks that cover every row", "Shorten the masks.")
    return left


class _Rendered(NamedTuple):
    """The text of a row, and its parts that are not trained on."""

    text: str
    spans: list[tuple[int, int]]
    is_chat: bool


def _masked_row(
    row: dict[str, Any], *, tokenizer: Any, template: str | None, text_column: str, keeps_end: bool
) -> dict[str, Any]:
    try:
        rendered = _render_row(row, tokenizer, template, text_column)
        if rendered is None:
            return {"labels": row["labels"]}
        covered = _covered_tokens(rendered, tokenizer, row["input_ids"], keeps_end=keeps_end)
    except ValueError as error:  # InputError is none
        named = f" in the row {row['id']!r}" if "id" in row else ""
        expected = f"train as true or false (weight as 1 or 0), and mask as [[start, end], ...] of the completion{named}"
        raise InputError(expected, str(error), "Correct the row, or rename the column if it is not a mask.") from None
    return {"labels": [IGNORED if is_covered else label for label, is_covered in zip(row["labels"], covered, strict=True)]}


def _render_row(row: Mapping[str, Any], tokenizer: Any, template: str | None, text_column: str) -> _Rendered | None:
    """What a row's tokens were made of; None for a row without a mask."""
    has_pair = row.get("prompt") is not None and row.get("completion") is not None
    source: Any = row["prompt"] if has_pair else row.get("messages") or row.get(text_column)
    completion: Any = row["completion"] if has_pair else source
    mask = row.get(MASK_COLUMN)
    if isinstance(source, str):
        spans = read_spans(mask, len(completion.removesuffix(tokenizer.eos_token or "")))  # TRL has put the end token there
        shift = len(source) if has_pair else 0
        text = source + completion if has_pair else source
        return _Rendered(text, [(start + shift, end + shift) for start, end in spans], is_chat=False) if spans else None
    if source is None:
        if mask:
            _refuse("the texts of rows with masks", f"columns {', '.join(row)}", "Let TRL tokenize.")
        return None
    talk = [*source, *completion] if has_pair else list(source)
    untrained = [place for place, message in enumerate(talk) if not is_trained(message)]
    if mask and has_pair and len(completion) > 1:
        _refuse("one message as the completion of a row with a mask", f"{len(completion)}", 'Give messages "train": false.')
    if mask and talk[-1]["role"] != "assistant":
        _refuse("a mask of the assistant's last message", f"a mask of the role {talk[-1]['role']}", "Remove the mask.")
    spans = read_spans(mask, len(talk[-1]["content"] or "")) if mask else ()
    if not untrained and not spans:
        return None
    tools = row.get("tools")
    tools = json.loads(tools) if isinstance(tools, str) else tools
    arguments = {"chat_template": template, "tools": tools, **(row.get("chat_template_kwargs") or {})}
    name = getattr(tokenizer, "name_or_path", "") or "the model"

    def render(messages: Messages, **more: Any) -> str:
        return render_chat(tokenizer, messages, name, **arguments, **more)

    found = [_message_span(talk, place, render) for place in untrained]
    if spans:
        found += _content_spans(talk, spans, render)
    return _Rendered(render(talk), found, is_chat=True)


class _Place(NamedTuple):
    """Where one message stands in the whole."""

    whole: str
    before: str
    """What stands before its text, where that does not depend on the text."""
    text_end: int
    end: int
    """After what closes it."""


def _find_message(talk: Messages, place: int, render: Callable[..., str]) -> _Place | None:
    """A message by the same talk with another text in its place; None where it is not found by that."""
    whole = render(talk)
    before, mark, after = render(_with_mark(talk, place)).partition(MARK)
    if not mark or MARK in after + whole or not whole.endswith(after):
        return None
    alone = render(_with_mark(talk[: place + 1], place)).partition(MARK)[2]
    closing = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(after, alone, strict=False)))
    return _Place(whole, before, len(whole) - len(after), len(whole) - len(after) + closing)


def _message_span(talk: Messages, place: int, render: Callable[..., str]) -> tuple[int, int]:
    """From the end of the message before, or else from where a reply begins, to the end of what closes the message."""
    found = _find_message(talk, place, render)
    if found is None:
        _refuse_template(f"message {place + 1} of {len(talk)} is not found in its output")
    earlier = _find_message(talk, place - 1, render) if place else None
    if earlier is not None and earlier.end <= found.text_end:
        return earlier.end, found.end
    opening = render(talk[:place], add_generation_prompt=True) if place and talk[place]["role"] == "assistant" else ""
    begin = next((len(text) for text in (opening, found.before) if text and found.whole.startswith(text)), None)
    if begin is None or begin > found.text_end:
        _refuse_template(f"the text before message {place + 1} depends on that message")
    return begin, found.end


def _content_spans(talk: Messages, spans: Sequence[tuple[int, int]], render: Callable[..., str]) -> list[tuple[int, int]]:
    """Spans of the last message's text as spans of the whole; a template may cut what is blank at its ends."""
    found, content = _find_message(talk, len(talk) - 1, render), talk[-1]["content"]
    if found is None:
        _refuse_template("the completion is not found in its output")
    shown = found.whole[len(found.before) : found.text_end]
    cut = content.find(shown)
    if not found.whole.startswith(found.before) or cut < 0 or content.strip() not in shown:
        _refuse_template("it changes the text of the completion")
    shift, last = len(found.before) - cut, found.text_end
    moved = ((max(start + shift, len(found.before)), min(end + shift, last)) for start, end in spans)
    return [(start, end) for start, end in moved if start < end]


def _with_mark(talk: Messages, place: int) -> Messages:
    return [*talk[:place], {**talk[place], "content": MARK}, *talk[place + 1 :]]


def _covered_tokens(rendered: _Rendered, tokenizer: Any, ids: Sequence[int], *, keeps_end: bool) -> list[bool]:
    """Whether each of a prepared row's tokens has a character in a masked part."""
    made = tokenizer(rendered.text, add_special_tokens=not rendered.is_chat, return_offsets_mapping=True, verbose=False)
    start = len(made["input_ids"]) - len(ids) if keeps_end else 0
    if list(made["input_ids"][start : start + len(ids)]) != list(ids):
        _refuse_template("its text has other tokens than those of TRL")
    is_masked = bytearray(len(rendered.text))
    for begin, end in rendered.spans:
        is_masked[begin:end] = b"\1" * (end - begin)
    covered, reached, offsets = [], 0, made["offset_mapping"]
    following = [*(begin for begin, _ in offsets[1:]), 0]
    for (begin, end), next_begin in zip(offsets, following, strict=True):
        # A blank belongs to the token after it where a tokenizer counts it to none, and to a token of blanks alone.
        end = max(end, next_begin) if begin == end else end
        covered.append(any(is_masked[min(begin, reached) : end]))
        reached = max(reached, end)
    return covered[start : start + len(ids)]


def _refuse_template(why: str) -> NoReturn:
    remedy = "Write the row as prompt and completion in plain text, or use a template that does not change texts."
    _refuse("a chat template that lets masks be located", f"one that does not: {why}", remedy)


def _refuse(expected: str, got: str, remedy: str) -> NoReturn:
    raise InputError(expected, got, remedy)

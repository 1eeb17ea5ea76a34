"""Mix of a plan as other trainers can have it: a share per task and level, and rows in the order of its draws."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mixwright.corpus.masks import MASK_COLUMN, TRAIN_KEYS, is_masked, mask_of
from mixwright.corpus.tool_messages import has_calls, tools_of
from mixwright.errors import InputError, one_line
from mixwright.records import Example, Objective, Text, cell_key, list_messages, messages
from mixwright.run.folder import write_table, write_text, yaml_text

if TYPE_CHECKING:
    import pyarrow as pa

    from mixwright.corpus import Corpus

COMMENT_WIDTH = 100
"""Characters of a line of comment."""


@dataclass(frozen=True)
class MixPart:
    """One task and level."""

    name: str
    """Of its file and data set: letters, digits, `_`, `-` and `.`; unique."""
    task: str
    """Task name."""
    level: float | None
    """Level; None for a task without levels."""
    share: float
    """Share of the draws, above 0; the shares of a mix sum to 1."""
    rows: NDArray[np.int64]
    """Its rows in the corpus, shuffled: a trainer that takes the first of them takes any."""


@dataclass(frozen=True)
class Mix:
    """A plan's weights and order at the start of the run."""

    objective: Objective
    """What the rows are for."""
    corpus: Corpus
    """Training rows."""
    parts: tuple[MixPart, ...]
    """Those with a share above 0, in the order of their names."""
    order: NDArray[np.int64]
    """Rows in the order in which the plan draws them before it has seen anything; at most those of the whole run."""
    batch: int
    """Prompts (GRPO), rows (SFT) or pairs (DPO) per optimiser step."""
    steps: int
    """Optimiser steps of the plan."""
    notes: tuple[str, ...]
    """What the mix is, and what of the plan no fixed weights can hold; a sentence each."""
    num_generations: int | None = None
    """Completions per prompt in GRPO; None where nobody says, and for other objectives."""
    max_completion_tokens: int | None = None
    """Longest completion of a rollout in GRPO, tokens; None where nobody says, and for other objectives."""
    bos_eos_text: tuple[str, str] | None = None
    """What stands around plain text in training, as text: what the tokenizer puts before it, and its end token; None where
    the tokenizer is not known."""

    @property
    def epochs(self) -> int:
        """How often `order` is passed through in the plan's steps, rounded up."""
        return -(-self.steps * self.batch // len(self.order))

    @property
    def rollout_settings(self) -> dict[str, int]:
        """Group and room of GRPO, as TRL and Axolotl name them; without what nobody said."""
        sizes = {"num_generations": self.num_generations, "max_completion_length": self.max_completion_tokens}
        return {name: size for name, size in sizes.items() if size is not None}

    @cached_property
    def chat(self) -> bool:
        """Whether the rows are messages, which go through a chat template, or plain text, which does not.

        Raises:
            InputError: rows of both kinds.
        """
        are_messages = set(self.corpus.table["chat"].take(self._used_rows).to_pylist())
        if len(are_messages) > 1:
            raise InputError("only chats or only plain texts", "both", "Split the data in two.")
        return are_messages == {True}

    @cached_property
    def prompted(self) -> bool:
        """Whether any row has a prompt; without one the rows are texts."""
        return any(self.corpus.table["prompt"].take(self._used_rows).to_pylist())

    @cached_property
    def masked(self) -> int:
        """Rows of SFT that say what of them is not trained on."""
        return sum(is_masked(self.corpus[int(row)]) for row in self._used_rows) if self.objective == "sft" else 0

    def lost_masks(self, trainer: str) -> list[str]:
        """A note for a trainer whose rows have no masks; none where no row has one."""
        if not self.masked:
            return []
        return [
            f"The masks of {self.masked:,} rows are lost: {trainer} trains on the whole completion. Leave these rows out, "
            "or train with mixwright.SteeredSFTTrainer."
        ]

    def lost_tools(self, trainer: str) -> list[str]:
        """A note for a trainer whose rows have no column of tools; none where no row has one."""
        count = sum(bool(tools_of(self.corpus[int(row)])) for row in self._used_rows)
        return (
            [f"The tools of {count:,} rows are left out, because {trainer} does not read tools from such a file."]
            if count
            else []
        )

    def unlearned_calls(self) -> list[str]:
        """A note where the assistant calls tools before the completion, which alone is trained on; none elsewhere."""
        count = sum(has_calls(self.corpus[int(row)].prompt) for row in self._used_rows) if self.objective == "sft" else 0
        return [f"{count:,} rows have tool calls in earlier turns, which are not trained on."] if count else []

    @property
    def _used_rows(self) -> NDArray[np.int64]:
        return np.unique(np.concatenate([self.order, *(mix_part.rows for mix_part in self.parts)]))


def part_name(number: int, task: str, level: float | None) -> str:
    """Of a file and of a data set, whatever the task is called: `03_gcd_2`."""
    return f"{number:02d}_{re.sub(r'[^A-Za-z0-9.-]+', '_', cell_key(task, level))[:60].strip('._')}"


def trl_rows(mix: Mix) -> Iterator[dict[str, Any]]:
    """Rows in the order of the draws, with the columns that TRL's trainer of the objective takes, beside id, task and level.

    GRPO: prompt and answer. SFT: prompt and completion, or text where no row has a prompt, and the mask of a row that has
    one. DPO: chosen and rejected, and the prompt where there is one. Texts are strings or lists of messages. Tools are JSON.

    Raises:
        InputError: a row lacks what the objective is trained on.
    """
    for row in mix.order:
        example = mix.corpus[int(row)]
        row_fields = {"id": example.id, "task": example.task, "level": example.level}
        yield row_fields | _trl_texts(example, mix.objective, prompted=mix.prompted) | tools_of(example)


def with_own_ids(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows in the order of the draws, the same row each time with another id."""
    return ({**row, "id": f"{number}-{row['id']}"} for number, row in enumerate(rows, 1))


def _trl_texts(example: Example, objective: Objective, *, prompted: bool) -> dict[str, Any]:
    prompt = {"prompt": messages(example.prompt)} if prompted else {}
    if objective == "grpo":
        return prompt | {"answer": example.answer}
    if objective == "dpo":
        return prompt | {name: messages(_require_text(example, name)) for name in ("chosen", "rejected")}
    target = example.target if example.target is not None else _require_text(example, "answer")
    mask = {MASK_COLUMN: [list(span) for span in spans]} if (spans := mask_of(example)) else {}
    return prompt | ({"completion": messages(target)} if prompted else {"text": target}) | mask


def _require_text(example: Example, name: str) -> Text:
    value = getattr(example, name)
    if value is None:
        remedy = "Add it, leave the row out, or plan for another objective."
        raise InputError(f"a column {name!r} in every row that is exported", f"none in {example.id!r}", remedy)
    return value


def as_chat(text: Text, role: str = "user") -> list[dict[str, Any]]:
    """A text as a list of messages: a string is one of `role`."""
    return [{"role": role, "content": text}] if isinstance(text, str) else list_messages(text)


def target_of(example: Example) -> Text:
    """What is to be answered: the target, else the answer."""
    return example.target if example.target is not None else example.answer or ""


def sides_of(example: Example) -> dict[str, Text]:
    """Chosen and rejected answer of a pair."""
    return {"chosen": example.chosen or "", "rejected": example.rejected or ""}


def chat_row(example: Example, objective: Objective) -> dict[str, Any]:
    """A row as messages: the talk with its answer, or the prompt with the last message of each side of a pair."""
    prompt = as_chat(example.prompt) if example.prompt else []
    if objective == "dpo":
        return {"messages": prompt, **{name: as_chat(side, "assistant")[-1] for name, side in sides_of(example).items()}}
    return {"messages": [*prompt, *map(_without_flag, as_chat(target_of(example), "assistant"))]}


def _without_flag(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in TRAIN_KEYS}


def write_jsonl(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a row per line."""
    write_text(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as Parquet.

    Raises:
        InputError: chats beside plain texts.
    """
    import pyarrow as pa

    names = dict.fromkeys(name for row in rows for name in row)
    try:
        columns = [_to_array([row.get(name) for row in rows]) for name in names]
        write_table(path, pa.table(columns, list(names)))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError("only chats or only plain texts", str(error)[:100], "Split the data in two.") from None


def _to_array(values: Sequence[Any]) -> pa.Array:
    """Return a column; of messages with tool calls, whose keys differ, each message as JSON, which `datasets` reads."""
    import pyarrow as pa

    keys = {key for value in values if isinstance(value, list) for one in value if isinstance(one, dict) for key in one}
    if keys <= {"role", "content", TRAIN_KEYS[0]}:
        return pa.array(values)
    lists = pa.array([value and [json.dumps(one, ensure_ascii=False) for one in value] for value in values])
    texts = pa.ExtensionArray.from_storage(pa.json_(pa.string()), lists.values)
    return pa.ListArray.from_arrays(lists.offsets, texts)


def write_settings(path: Path, notes: Iterable[str], data: Mapping[str, Any]) -> None:
    """Write settings as YAML below their notes."""
    write_text(path, commented(notes) + yaml_text(dict(data), width=120))


def commented(notes: Iterable[str]) -> str:
    """Notes as lines of comment; text from data cannot end one."""
    lines = [line for note in notes for line in textwrap.wrap(one_line(note), COMMENT_WIDTH, subsequent_indent="  ")]
    return "".join(f"# {line}\n" for line in lines)

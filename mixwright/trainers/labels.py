"""Labels of training rows exactly as TRL's `SFTTrainer` makes them: it prepares the rows itself, with a model of one layer.

Source: TRL, `SFTTrainer._prepare_dataset` and its collator; nothing of them is written again but the cut at `max_length`,
which is two slices.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from datasets import Dataset, disable_progress_bars, enable_progress_bars, is_progress_bar_enabled
from jinja2 import TemplateError
from transformers import LlamaConfig, LlamaForCausalLM
from trl.data_utils import maybe_convert_to_chatml
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from mixwright.audit.learnt import Labelled, LabelledRow
from mixwright.errors import InputError, one_line
from mixwright.thoughts import split_thoughts
from mixwright.trainers.masks import IGNORED, MARK

ROW_COLUMN = "mixwright_row"
AFTER_LABELS = ("packing", "packing_strategy", "max_length", "truncation_mode")
"""Settings of what happens to labelled rows; they are applied here, so that no row is lost or mixed on the way."""
OF_LABELS = (
    *("completion_only_loss", "assistant_only_loss", "dataset_text_field", "eos_token", "pad_token", "chat_template_path"),
    "dataset_num_proc",
)
"""Settings that decide the labels of a row."""
FLASH = ("flash_attention_2", "flash_attention_3", "kernels-community/flash-attn2", "kernels-community/flash-attn3")
"""Attention that keeps the rows of a pack apart, or begins with it."""
ROLES = ("system", "developer", "user", "assistant", "tool")
THOUGHTS = re.compile(r"<think>|<\|channel\|>analysis|<\|START_THINKING\|>")
GENERATION_MARK = re.compile(r"\{%-?\s*generation\s*-?%\}")
"""Mark of the assistant's words in a template; `add_generation_prompt` is none."""
SHOWN_THOUGHT = 60
"""Characters of a thought that are looked for in the text that is trained on."""
MARKED_ROWS, SHOWN_TOKENS = 3, 40
"""Rows whose text is returned in pieces, and tokens of the beginning of each row that findings show."""


def label_rows(
    rows: Iterable[tuple[Mapping[str, Any], str, str]],
    tokenizer: Any,
    settings: Mapping[str, Any],
    *,
    attention: str | None = None,
    marked_rows: int = MARKED_ROWS,
) -> Labelled:
    """Label rows as a training of TRL with these settings would.

    Args:
        rows: columns as TRL takes them (messages, prompt and completion, or text; tools), task, and file with line.
        tokenizer: of the model, with the template that it will be asked with.
        settings: of `SFTConfig`; what does not change labels is ignored. Of Axolotl `axolotl_type`, with which two texts
            are encoded apart, and `excess_length_strategy`, by which rows above `max_length` are left out (drop) or stop the
            training (raise).
        attention: `attn_implementation` of the model; None for its default.
        marked_rows: rows whose text is returned in pieces.

    Raises:
        InputError: what TRL refuses.
    """
    try:
        return _label(list(rows), tokenizer, settings, attention, marked_rows)
    except (ValueError, RuntimeError, LookupError, TypeError, AttributeError, TemplateError) as error:  # of TRL or template
        remedy = "Correct the settings or the rows: training would stop here, too."
        if settings.get("axolotl_type") == "chat_template" and not GENERATION_MARK.search(tokenizer.chat_template or ""):
            remedy = "Preview with a template that has {% generation %} marks; Axolotl itself needs none."
        got = f"{type(error).__name__}: {one_line(error)[:300].rstrip('.')}"
        raise InputError("rows and settings that the trainer can label", got, remedy) from error


def _label(
    listed: Sequence[tuple[Mapping[str, Any], str, str]],
    tokenizer: Any,
    settings: Mapping[str, Any],
    attention: str | None,
    marked_rows: int,
) -> Labelled:
    inference_template, tokenizer = tokenizer.chat_template, copy.deepcopy(tokenizer)  # TRL sets its tokens and template
    rows = [row for row, _, _ in listed]
    rows = [_join(row, tokenizer, settings) for row in rows] if "axolotl_type" in settings else rows
    trainer = _prepare(rows, tokenizer, settings)
    prepared = {one[ROW_COLUMN]: one for one in trainer.train_dataset}
    with _quiet():
        given = SFTConfig(output_dir="unused", report_to=[], bf16=False, **_of_config(settings, AFTER_LABELS))
    template = trainer.chat_template or tokenizer.chat_template
    arguments = next((dict(row["chat_template_kwargs"]) for row in rows if row.get("chat_template_kwargs")), {})
    reader = _Reader(tokenizer, template, inference_template, arguments)
    limit = None if given.packing and given.packing_strategy != "bfd" else given.max_length
    excess = settings.get("excess_length_strategy", "truncate")
    keeps_end = given.truncation_mode == "keep_end" and not given.packing  # packs are cut at the end
    keep = slice(-limit if limit else None, None) if keeps_end else slice(None, limit)
    found, marked = list[LabelledRow](), dict[int, list[tuple[str, bool]]]()
    for number, (row, task, source) in enumerate(listed):
        if number not in prepared:
            continue
        batch = trainer.data_collator([prepared[number]])
        ids, labels = (batch[name][0].numpy() for name in ("input_ids", "labels"))
        if given.packing and given.packing_strategy != "wrapped":  # a row's first token in a pack has no label
            labels[:: given.max_length or len(labels)] = IGNORED
        words, ends, faults = reader.read(maybe_convert_to_chatml(copy.deepcopy(dict(row))), ids, labels != IGNORED)
        is_cut = limit is not None and len(ids) > limit
        if is_cut and excess == "raise":
            raise ValueError(f"{source} has {len(ids):,} tokens, and excess_length_strategy is raise")
        is_left_out = is_cut and excess == "drop"
        kept = slice(0) if is_left_out else keep
        found.append(
            LabelledRow(
                number,
                task,
                source,
                tokenizer.decode(ids[:SHOWN_TOKENS]),
                ids[kept],
                (labels != IGNORED)[kept],
                None if words is None else words[kept],
                len(ids),
                None if is_cut and keep.start is None else ends,
                frozenset({"left out"} if is_left_out else faults),
            )
        )
        if len(marked) < marked_rows and not is_left_out:
            marked[number] = pieces(tokenizer, ids[keep], (labels != IGNORED)[keep])
    faults = {"template differs"} if reader.template_differs() else set[str]()
    if given.packing and (given.packing_strategy == "wrapped" or attention not in FLASH):
        faults.add("rows read each other")
    return Labelled(tuple(found), limit, frozenset(faults), marked)


def pieces(tokenizer: Any, ids: np.ndarray, targets: np.ndarray) -> list[tuple[str, bool]]:
    """Return the text of a row in runs of tokens that are, or are not, targets."""
    borders = [0, *(np.flatnonzero(np.diff(targets)) + 1).tolist(), len(ids)]
    runs = [(start, stop) for start, stop in itertools.pairwise(borders) if start < stop]
    return [(tokenizer.decode(ids[start:stop]), bool(targets[start])) for start, stop in runs]


def _join(row: Mapping[str, Any], tokenizer: Any, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row of two texts as tokens with labels: Axolotl encodes prompt and completion apart, and adds the end."""
    if not isinstance(row.get("prompt"), str):
        return row
    prompt, completion = (tokenizer(row[name])["input_ids"] for name in ("prompt", "completion"))
    completion = completion[1:] if completion[:1] == [tokenizer.bos_token_id] else completion
    completion += [] if completion[-1:] == [tokenizer.eos_token_id] else [tokenizer.eos_token_id]
    labels = [IGNORED] * len(prompt) if settings.get("completion_only_loss") else prompt
    return {"input_ids": prompt + completion, "labels": labels + completion}


def _of_config(settings: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: settings[name] for name in names if name in settings}


def _prepare(rows: Sequence[Mapping[str, Any]], tokenizer: Any, settings: Mapping[str, Any]) -> Any:
    """Return a trainer whose `train_dataset` has the labels of whole rows, each with its number."""
    data = Dataset.from_list([{**row, ROW_COLUMN: number} for number, row in enumerate(rows)], on_mixed_types="use_json")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
    )
    model = LlamaForCausalLM(config)
    with tempfile.TemporaryDirectory() as folder, _quiet():
        own = {"max_length": None, "bf16": False, "use_cpu": True, "report_to": []}
        given = SFTConfig(output_dir=folder, **_of_config(settings, OF_LABELS), **own)
        return SFTTrainer(model, args=given, train_dataset=data, processing_class=tokenizer)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    was_on = is_progress_bar_enabled()
    disable_progress_bars()
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of names that TRL sets itself
            yield
    finally:
        if was_on:
            enable_progress_bars()


class _Reader:
    """Reads one row along with its labels: whose words they are, where it ends, and what is wrong with it."""

    def __init__(
        self, tokenizer: Any, template: str | None, inference_template: str | None, arguments: Mapping[str, Any]
    ) -> None:
        self.tokenizer, self.template, self.inference_template = tokenizer, template, inference_template
        self.arguments = arguments
        self.special = sorted(set(tokenizer.all_special_tokens), key=len, reverse=True)
        asked = [{"role": "user", "content": "U"}]
        self.header = self._render(asked, add_generation_prompt=True)[len(self._render(asked)) :] if template else ""
        """What the template puts before the assistant's words."""
        self.stops = {tokenizer.eos_token_id} | self._find_stop()

    def _render(self, messages: Any, template: str | None = None, **how: Any) -> str:
        how = {"chat_template": template or self.template, "tokenize": False, **self.arguments, **how}
        return str(self.tokenizer.apply_chat_template(messages, **how))

    def _find_stop(self) -> set[int]:
        """Return the token with which the template ends the assistant's turn."""
        if not self.template:
            return set()
        turns = [{"role": "user", "content": "U"}, {"role": "assistant", "content": MARK}]
        after = self._render(turns).rpartition(MARK)[2]
        return set(self.tokenizer(after, add_special_tokens=False)["input_ids"][:1]) if after else set()

    def template_differs(self) -> bool:
        """Return whether a chat is rendered otherwise in training than when the model is asked."""
        if self.template == self.inference_template or not self.template or not self.inference_template:
            return self.template != self.inference_template
        turns = [{"role": "user", "content": "U"}, {"role": "assistant", "content": "A"}, {"role": "user", "content": "V"}]
        return self._render(turns) != self._render(turns, self.inference_template)

    def read(
        self, row: Mapping[str, Any], ids: np.ndarray, targets: np.ndarray
    ) -> tuple[np.ndarray | None, bool | None, set[str]]:
        """Return whose words the tokens are, whether the end is trained, and the faults of the row."""
        tools = row.get("tools")
        tools = json.loads(tools) if isinstance(tools, str) else tools
        turns = row.get("messages") or (
            [*row["prompt"], *row["completion"]] if "completion" in row and not isinstance(row["prompt"], str) else None
        )
        faults = self._find_faults(row, turns, ids)
        places = np.flatnonzero(np.isin(ids, list(self.stops)))
        ends = bool(targets[places[-1]]) if len(places) else None
        if turns is None:
            prompt = self.tokenizer(row["prompt"])["input_ids"] if "completion" in row else None
            words = None if prompt is None else np.arange(len(ids)) >= _shared(prompt, ids)
            return words, ends, faults
        last = max((place for place, turn in enumerate(turns) if turn.get("role") == "assistant"), default=len(turns))
        how = {"tools": tools, "return_dict": True, **(row.get("chat_template_kwargs") or {})}
        asked = self.tokenizer.apply_chat_template(
            turns[:last], add_generation_prompt=True, chat_template=self.inference_template, **how
        )["input_ids"]
        shared = _shared(asked, ids)
        faults |= {"prompt differs"} if shared < len(asked) and last < len(turns) else set()
        words = self._mark_words(turns, how, ids)
        return np.arange(len(ids)) >= shared if words is None else words, ends, faults

    def _mark_words(self, turns: Any, how: Mapping[str, Any], ids: np.ndarray) -> np.ndarray | None:
        """Return the words of all turns of the assistant where the template marks them, or None."""
        marking = self.template
        if not GENERATION_MARK.search(str(marking)):
            if len([turn for turn in turns if turn.get("role") == "assistant"]) < 2:
                return None
            from trl.chat_template_utils import get_training_chat_template

            try:
                marking = get_training_chat_template(self.tokenizer)
            except ValueError:  # no family that TRL knows
                return None
        made = self.tokenizer.apply_chat_template(turns, chat_template=marking, return_assistant_tokens_mask=True, **how)
        mask = np.array(made["assistant_masks"], bool)
        return mask if list(made["input_ids"]) == ids.tolist() and mask.any() else None

    def _find_faults(self, row: Mapping[str, Any], turns: Any, ids: np.ndarray) -> set[str]:
        faults, text = set[str](), self.tokenizer.decode(ids)
        contents = [turn.get("content") for turn in turns or []] or [
            row.get(name) for name in ("prompt", "completion", "text")
        ]
        texts = [str(content or "") for content in contents]
        bos, header = self.tokenizer.bos_token_id, self.header.strip()
        if bos is not None and ids[:2].tolist() == [bos, bos]:
            faults.add("double bos")
        if header and (self.header * 2 in text or (turns and any(header in one for one in texts))):
            faults.add("generation prompt twice")
        thinks = any(turn.get("reasoning_content") or turn.get("thinking") for turn in turns or [])
        has_thoughts = thinks or any(map(THOUGHTS.search, texts))
        if THOUGHTS.search(text) and not has_thoughts:
            faults.add("thoughts added")
        begins = Counter(thought.strip()[:SHOWN_THOUGHT] for thought in _thoughts_of(turns or []) if thought.strip())
        if any(text.count(begin) < count for begin, count in begins.items()):  # turns may have the same thoughts
            faults.add("thoughts dropped")
        if any(token in one for one in texts for token in self.special):
            faults.add("special token in text")
        if turns is not None:
            roles = [turn.get("role") for turn in turns]
            repeats = any(a == b and a in ("user", "assistant") for a, b in itertools.pairwise(roles))
            if roles[-1] != "assistant" or repeats or not set(roles) <= set(ROLES):
                faults.add("wrong role")
        return faults


def _thoughts_of(turns: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what the assistant thinks in each turn, in a field of its own or between tags."""
    for turn in turns:
        if turn.get("role") == "assistant":
            yield str(turn.get("reasoning_content") or turn.get("thinking") or "")
            yield split_thoughts(str(turn.get("content") or ""))[1]


def _shared(asked: Sequence[int], ids: np.ndarray) -> int:
    """Return how many first tokens agree."""
    count = min(len(asked), len(ids))
    same = np.asarray(asked[:count]) == ids[:count]
    return count if same.all() else int(np.argmin(same))

"""Export to Axolotl: one file with the rows in the order of the plan's draws, and settings that keep that order in SFT.

Axolotl concatenates the entries of `datasets` and shuffles; no field of an entry is a weight (`shards` takes a part).
So rows are repeated and left out as the weights have it. Messages go through the tokenizer's own chat template, and of them
the completion alone is trained on (`message_field_training`), and of a row with a mask what that leaves
(`message_field_training_detail`). Plain text goes through no template.

Source: Axolotl 0.19.0, utils/schemas/{config,datasets,trl}.py, utils/data/{sft,rl,shared}.py, prompt_tokenizers.py and
    prompt_strategies/{user_defined,chat_template,completion,dpo/user_defined,dpo/chat_template}.py, read by `make readers`.
    With GRPO the batch sizes count completions, as TRL's do, and `trl.max_completion_length` has no default: without it
    completions have no limit.
Unit: rows.
Cost: one JSONL file of as many rows as the plan draws, 100,000 at most.
Blind spot: sample packing moves rows between steps; rows longer than `sequence_len`, 512 by default, are left out; the line
    break that some templates put after the end token is not trained on; a token on the border of a mask is; plain texts have
    no masks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mixwright.contracts import Export
from mixwright.corpus.masks import MASK_COLUMN, is_trained, mask_of, trained_spans
from mixwright.corpus.tool_messages import tools_of
from mixwright.plan.mix import Mix, as_chat, chat_row, target_of, trl_rows, with_own_ids, write_jsonl, write_settings
from mixwright.tool_calls import with_json_arguments

ROWS_FILE = "rows.jsonl"
PLAIN_TYPE = {
    "field_instruction": "prompt",
    "field_output": "completion",
    "format": "{instruction}",
    "no_input_format": "{instruction}",
}
"""A prompt and a completion as they stand, without a template around them."""
PAIRS_TYPE = {"field_prompt": "prompt", "field_chosen": "chosen", "field_rejected": "rejected", "prompt_format": "{prompt}"}
CHAT_TYPE = {"type": "chat_template", "message_field_training": "train"}
DETAIL = "train_detail"
"""Value of a message that says which of its characters are trained on; its ends are inclusive."""


class Axolotl(Export):
    """Rows repeated by weight."""

    def write(self, mix: Mix, folder: Path) -> list[str]:
        """rows.jsonl and axolotl.yaml."""
        has_messages = mix.chat and mix.objective != "grpo"
        rows = _message_rows(mix) if has_messages else trl_rows(mix)
        write_jsonl(folder / ROWS_FILE, with_own_ids(rows))
        entry = {"path": str(folder / ROWS_FILE), "ds_type": "json", "split": "train", **_choose_entry_type(mix)}
        order_note = "Do not shuffle them, and do not remove repeated rows."
        if mix.objective != "sft":
            order_note = "Do not remove repeated rows. With `rl`, Axolotl shuffles: the shares are kept, the order is not."
        notes = [
            f"Axolotl has no sampling weights, so {ROWS_FILE} has the rows in the order of the plan, repeated or left out "
            f"according to their weights: {len(mix.order):,} rows, {len(np.unique(mix.order)):,} of them different, out of "
            f"{len(mix.corpus):,}. {order_note}",
            f"Batch sizes are for one device and {mix.batch} {'prompts' if mix.num_generations else 'rows'} per step: "
            "divide gradient_accumulation_steps by the number of devices.",
        ]
        notes += mix.unlearned_calls() if has_messages else mix.lost_masks("Axolotl, on plain text,")
        settings: dict[str, Any] = {} if mix.objective == "sft" else {"rl": mix.objective}
        if mix.objective == "grpo":
            notes.append("For GRPO, name your reward functions under trl.reward_funcs; they get the column answer.")
            settings["trl"] = mix.rollout_settings
        if mix.chat:
            settings["chat_template"] = "tokenizer_default"
        settings |= {
            "datasets": [entry],
            "shuffle_merged_datasets": False,
            "curriculum_sampling": True,
            "dataset_exact_deduplication": False,
            "num_epochs": mix.epochs,
            "max_steps": mix.steps,
            "micro_batch_size": mix.num_generations or 1,
            "gradient_accumulation_steps": mix.batch,
        }
        write_settings(folder / "axolotl.yaml", [*mix.notes, *notes], settings)
        instruction = f"Add {folder / 'axolotl.yaml'} to your settings"
        return [*notes, f"{instruction}; an optimizer step takes {mix.batch} rows of the file."]


def _choose_entry_type(mix: Mix) -> dict[str, Any]:
    """What an entry says of the type of its rows; nothing of prompts for GRPO, which TRL takes as they are."""
    if mix.objective == "grpo":
        return {}
    if mix.objective == "dpo":
        return {"type": "chat_template.default" if mix.chat else PAIRS_TYPE}
    if mix.chat:
        return CHAT_TYPE | ({"message_field_training_detail": DETAIL} if mix.masked else {})
    return {"type": PLAIN_TYPE if mix.prompted else "completion"}


def _with_json_arguments(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of chat with the arguments of calls as JSON text, or the keys of all rows would be added to each."""
    return {
        name: [with_json_arguments(one) for one in side] if isinstance(side, list) else with_json_arguments(side)
        for name, side in row.items()
    }


def _message_rows(mix: Mix) -> Iterator[dict[str, Any]]:
    """Rows as messages, in SFT each with whether it is trained on: of the assistant's the completion alone, as in a run."""
    for row in mix.order:
        example = mix.corpus[int(row)]
        row_fields = {name: getattr(example, name) for name in ("id", "task", "level")}
        row_fields |= _with_json_arguments(chat_row(example, mix.objective)) | tools_of(example)
        if mix.objective == "sft":
            target = as_chat(target_of(example), "assistant")
            flags = [*(False for _ in example.prompt), *map(is_trained, target)]
            row_fields["messages"] = [
                message | {"train": flag} for message, flag in zip(row_fields["messages"], flags, strict=True)
            ]
            if spans := mask_of(example):
                row_fields[MASK_COLUMN] = [list(span) for span in spans]  # for Mixwright, which reads no parts of messages
                parts = trained_spans(spans, len(target[-1]["content"]))
                row_fields["messages"][-1][DETAIL] = [
                    {"begin_offset": start, "end_offset": end - 1, "train": True} for start, end in parts
                ]
        yield row_fields

"""Export to Axolotl: one file with the rows in the order of the plan's draws, and settings that keep that order.

Axolotl concatenates the entries of `datasets` and shuffles; no field of an entry is a weight (`shards` takes a part).
So rows are repeated and left out as the weights have it.

Source: Axolotl 0.18.0, Dataset Loading and Config Reference (docs.axolotl.ai/docs/dataset_loading.html,
    config-reference.html):
    `datasets`, `shuffle_merged_datasets`, `curriculum_sampling`; formats from dataset-formats/inst_tune.html,
    dataset-formats/conversation.html and rlhf.html.
    With GRPO the batch sizes count completions, as TRL's do.
Unit: rows.
Cost: one JSONL file of as many rows as the plan draws, 100,000 at most.
Blind spot: sample packing moves rows between steps; `curriculum_sampling` is read in SFT only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mixwright.contracts import Export
from mixwright.plan.mix import Mix, chat_row, trl_rows, write_jsonl, write_settings

ROWS_FILE = "rows.jsonl"
PLAIN_TYPE = {
    "field_instruction": "prompt",
    "field_output": "completion",
    "format": "{instruction}",
    "no_input_format": "{instruction}",
}
"""A prompt and a completion as they stand, without a template around them."""
PAIRS_TYPE = {"field_prompt": "prompt", "field_chosen": "chosen", "field_rejected": "rejected", "prompt_format": "{prompt}"}


class Axolotl(Export):
    """Rows repeated by weight."""

    def write(self, mix: Mix, folder: Path) -> list[str]:
        """rows.jsonl and axolotl.yaml."""
        is_chat = not isinstance(mix.corpus[int(mix.order[0])].prompt, str)
        rows = trl_rows(mix, mix.order)
        if is_chat and mix.objective != "grpo":  # for the types chat_template (SFT) and chat_template.default (DPO)
            id_columns, examples = ("id", "task", "level"), (mix.corpus[int(row)] for row in mix.order)
            rows = ({n: getattr(e, n) for n in id_columns} | chat_row(e, mix.objective) for e in examples)
        write_jsonl(folder / ROWS_FILE, rows)
        entry: dict[str, Any] = {"path": str(folder / ROWS_FILE), "ds_type": "json", "split": "train"}
        entry_type, note = _choose_entry_type(mix, chat=is_chat)
        if entry_type is not None:
            entry["type"] = entry_type
        notes = [
            f"Axolotl has no weights, so {ROWS_FILE} has the rows in the order of the plan's draws, repeated and left out "
            f"as the weights have it: {len(mix.order):,} rows, {len(np.unique(mix.order)):,} different ones of "
            f"{len(mix.corpus):,}. Do not shuffle them, and do not remove the repeated ones.",
            f"Batch sizes are those of one device, a step of {mix.batch} {'prompts' if mix.group else 'rows'}: divide "
            "gradient_accumulation_steps by the number of devices.",
            *filter(None, [note]),
        ]
        settings: dict[str, Any] = {} if mix.objective == "sft" else {"rl": mix.objective}
        if mix.group:
            settings["trl"] = {"num_generations": mix.group}
        settings |= {
            "datasets": [entry],
            "shuffle_merged_datasets": False,
            "curriculum_sampling": True,
            "dataset_exact_deduplication": False,
            "num_epochs": mix.epochs,
            "max_steps": mix.steps,
            "micro_batch_size": mix.group or 1,
            "gradient_accumulation_steps": mix.batch,
        }
        write_settings(folder / "axolotl.yaml", [*mix.notes, *notes], settings)
        instruction = f"Add {folder / 'axolotl.yaml'} to your settings"
        return [*notes, f"{instruction}; an optimiser step takes {mix.batch} rows of the file."]


def _choose_entry_type(mix: Mix, *, chat: bool) -> tuple[Any, str]:
    """The `type` of the entry, and what has to be done about it by hand."""
    if mix.objective == "grpo":
        return None, "GRPO in Axolotl: name your reward functions under trl.reward_funcs; they get the column answer."
    if mix.objective == "dpo":
        return ("chat_template.default", "") if chat else (PAIRS_TYPE, "")
    if not chat and not mix.corpus[int(mix.order[0])].prompt:
        return "completion", ""
    return ("chat_template", "") if chat else (PLAIN_TYPE, "")

"""Export to LLaMA-Factory: a data set of each task and level in dataset_info.json, mixed by `interleave_probs`.

Messages need no `template`: unset, it is read off the tokenizer's own chat template, and `mask_history` trains on the
completion alone. Unset, plain text would get that template, too; the template `empty` has none, and no end token either, so
that the rows have it, as their prompts have what the tokenizer puts before a text.

Source: LLaMA-Factory 0.9.5, data/{parser,converter,loader,template,data_utils}.py, data/processor/{supervised,pairwise}.py
    and hparams/{data_args,parser}.py, read by `make readers`.
Unit: share of rows, 0..1.
Cost: one JSONL file per task and level.
Blind spot: tasks are taken by chance, not evenly spread as in a steered run; talks in which user and assistant do not take
    turns are left out; no masks of rows; no GRPO, so its rows are prompts with answers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from mixwright.contracts import Export
from mixwright.corpus.tool_messages import tools_of
from mixwright.plan.mix import Mix, chat_row, sides_of, target_of, write_jsonl, write_settings
from mixwright.records import Example, Objective, plain
from mixwright.run.folder import write_json
from mixwright.tool_calls import calls_in, text_of

SHAREGPT_TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
    "observation_tag": "tool",
    "function_tag": "function_call",
}


class LlamaFactory(Export):
    """Shares as they are."""

    def write(self, mix: Mix, folder: Path) -> list[str]:
        """A JSONL file per part, dataset_info.json and llama_factory.yaml."""
        info: dict[str, Any] = {}
        for part in mix.parts:
            examples = [mix.corpus[int(row)] for row in part.rows]
            rows = [(_chat_row(e, mix.objective) if mix.chat else _plain_row(e, mix)) | tools_of(e) for e in examples]
            write_jsonl(folder / f"{part.name}.jsonl", rows)
            columns = {name for row in rows for name in row}
            info[part.name] = {"file_name": f"{part.name}.jsonl", **_describe_data_set(columns, chat=mix.chat)}
        write_json(folder / "dataset_info.json", info)
        mixed_rows = max(len(part.rows) / part.share for part in mix.parts)
        notes = [
            f"interleave_over repeats rows until each file was read once, about {mixed_rows:,.0f} rows; the plan "
            f"takes {mix.steps * mix.batch:,} in {mix.steps} steps.",
            f"Batch sizes are for one device and {mix.batch} rows per step: divide gradient_accumulation_steps by the "
            "number of devices.",
        ]
        notes += [*mix.lost_masks("LLaMA-Factory"), *mix.unlearned_calls()]
        settings: dict[str, Any] = {} if mix.objective == "grpo" else {"stage": mix.objective}
        if not settings:
            notes.append(
                "LLaMA-Factory has no GRPO, so the rows are prompts with answers; set `stage` to the training you want."
            )
        if mix.chat:
            notes.append("Do not set `template`: then the tokenizer's own chat template is used, as in the run.")
            settings |= {"mask_history": True} if mix.objective == "sft" else {}
        else:
            end_note = " The rows include the end token, because that template adds none." if mix.bos_eos_text else ""
            notes.append(f"The template `empty` leaves plain text unchanged, as in the run.{end_note}")
            settings["template"] = "empty"
            if mix.bos_eos_text is None:
                notes.append(
                    "The model's tokenizer is not available here: append its end token to each answer in these rows."
                )
        if mix.max_completion_tokens is not None:
            settings["max_new_tokens"] = mix.max_completion_tokens
        settings |= {"dataset_dir": str(folder), "dataset": ",".join(part.name for part in mix.parts)}
        if len(mix.parts) > 1:
            shares = ",".join(f"{part.share:g}" for part in mix.parts)
            settings |= {"mix_strategy": "interleave_over", "interleave_probs": shares}
        settings |= {"max_steps": mix.steps, "per_device_train_batch_size": 1, "gradient_accumulation_steps": mix.batch}
        write_settings(folder / "llama_factory.yaml", [*mix.notes, *notes], settings)
        return [*notes, f"Add {folder / 'llama_factory.yaml'} to the YAML of `llamafactory-cli train`."]


def _chat_row(example: Example, objective: Objective) -> dict[str, Any]:
    """A row of chat, its calls as messages of their own role, whose text is JSON."""
    return {
        name: [_write_calls(message) for message in side] if isinstance(side, list) else _write_calls(side)
        for name, side in chat_row(example, objective).items()
    }


def _write_calls(message: Mapping[str, Any]) -> dict[str, Any]:
    calls = [call._asdict() for call in calls_in(message)]
    if not calls or message["content"]:  # with words beside its calls it stays the assistant's
        return {"role": message["role"], "content": text_of(message)}
    return {"role": "function_call", "content": json.dumps(calls if len(calls) > 1 else calls[0], ensure_ascii=False)}


def _plain_row(example: Example, mix: Mix) -> dict[str, Any]:
    start_mark, end_mark = mix.bos_eos_text or ("", "")
    answers = sides_of(example) if mix.objective == "dpo" else {"output": target_of(example)}
    texts = {name: plain(text) + end_mark for name, text in answers.items()}
    return {"instruction": start_mark + plain(example.prompt), **texts}


def _describe_data_set(present: Collection[str], *, chat: bool) -> dict[str, Any]:
    """The description of a data set with these columns."""
    ranking = {"ranking": True} if "chosen" in present else {}
    own = {name: name for name in ("chosen", "rejected", "tools") if name in present}
    if chat:
        return {"formatting": "sharegpt", **ranking, "columns": {"messages": "messages", **own}, "tags": SHAREGPT_TAGS}
    columns = {"prompt": "instruction", **({} if ranking else {"response": "output"}), **own}
    return {"formatting": "alpaca", **ranking, "columns": columns}

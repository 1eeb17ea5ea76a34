"""Export to LLaMA-Factory: a data set of each task and level in dataset_info.json, mixed by `interleave_probs`.

Source: LLaMA-Factory 0.9.5, data/README.md (dataset_info.json, alpaca and sharegpt formats) and the data arguments
    (llamafactory.readthedocs.io, Arguments: `dataset`, `mix_strategy`, `interleave_probs`).
Unit: share of rows, 0..1.
Cost: one JSONL file per task and level.
Blind spot: tasks are taken by chance, not evenly spread as in a steered run; no GRPO, so its rows are prompts with answers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mixwright.contracts import Export
from mixwright.plan.mix import Mix, chat_row, sides_of, target_of, write_jsonl, write_settings
from mixwright.records import Example, Objective, plain
from mixwright.run.folder import write_json

SHAREGPT_TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
    "observation_tag": "observation",
    "function_tag": "function_call",
}


class LlamaFactory(Export):
    """Shares as they are."""

    def write(self, mix: Mix, folder: Path) -> list[str]:
        """A JSONL file per part, dataset_info.json and llama_factory.yaml."""
        info: dict[str, Any] = {}
        for part in mix.parts:
            examples = [mix.corpus[int(row)] for row in part.rows]
            is_chat = not isinstance(examples[0].prompt, str)
            rows = [chat_row(e, mix.objective) if is_chat else _plain_row(e, mix.objective) for e in examples]
            write_jsonl(folder / f"{part.name}.jsonl", rows)
            info[part.name] = {"file_name": f"{part.name}.jsonl", **_describe_data_set(rows[0], chat=is_chat)}
        write_json(folder / "dataset_info.json", info)
        mixed_rows = max(len(part.rows) / part.share for part in mix.parts)
        notes = [
            f"interleave_over repeats rows until every pool was passed through once, about {mixed_rows:,.0f} rows; the plan "
            f"draws {mix.steps * mix.batch:,} in {mix.steps} steps."
        ]
        settings: dict[str, Any] = {} if mix.objective == "grpo" else {"stage": mix.objective}
        if not settings:
            notes.append("LLaMA-Factory has no GRPO: the rows are prompts with answers; set `stage` to what you train.")
        settings |= {"dataset_dir": str(folder), "dataset": ",".join(part.name for part in mix.parts)}
        if len(mix.parts) > 1:
            shares = ",".join(f"{part.share:g}" for part in mix.parts)
            settings |= {"mix_strategy": "interleave_over", "interleave_probs": shares}
        write_settings(folder / "llama_factory.yaml", [*mix.notes, *notes], {**settings, "max_steps": mix.steps})
        return [*notes, f"Add {folder / 'llama_factory.yaml'} to the YAML of `llamafactory-cli train`."]


def _plain_row(example: Example, objective: Objective) -> dict[str, Any]:
    answers = sides_of(example) if objective == "dpo" else {"output": target_of(example)}
    return {"instruction": plain(example.prompt), **{name: plain(text) for name, text in answers.items()}}


def _describe_data_set(row: dict[str, Any], *, chat: bool) -> dict[str, Any]:
    """The description of a data set with such rows."""
    ranking = {"ranking": True} if "chosen" in row else {}
    answers = {name: name for name in ("chosen", "rejected") if name in row}
    if chat:
        return {"formatting": "sharegpt", **ranking, "columns": {"messages": "messages", **answers}, "tags": SHAREGPT_TAGS}
    columns = {"prompt": "instruction", **(answers or {"response": "output"})}
    return {"formatting": "alpaca", **ranking, "columns": columns}

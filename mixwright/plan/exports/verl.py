"""Export to verl: one Parquet file with the rows in the order of the plan's draws, and `data` settings that keep it.

verl concatenates `data.train_files` and shuffles; no setting is a weight (`data.sampler` takes a class of your own). So rows
are repeated and left out as the weights have it.

Source: verl 0.9.1, utils/dataset/{rl_dataset,multiturn_sft_dataset}.py, utils/tokenizer/chat_template.py,
    trainer/ppo/utils.py and trainer/config/{ppo_trainer,sft_trainer_engine}.yaml with model/hf_model.yaml and
    data/legacy_data.yaml, read by `make readers`: every prompt is messages that go through a chat template, that of
    `custom_chat_template` in place of the tokenizer's. So for plain text that template is the text itself.
    `actor_rollout_ref.rollout.n` is 1 by default, and more for GRPO.
Unit: rows.
Cost: one Parquet file of as many rows as the plan draws, 100,000 at most.
Blind spot: prompts beyond `max_prompt_length`, 512 by default, are refused or, with `filter_overlong_prompts`, left out; SFT
    trains on every message of the assistant, and on what rows mask; the grader is yours, found by `data_source`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mixwright.contracts import Export
from mixwright.errors import InputError
from mixwright.plan.mix import Mix, as_chat, chat_row, write_rows, write_settings
from mixwright.records import Example, Objective
from mixwright.tool_calls import text_of

ROWS_FILE = "train.parquet"
PLAIN_TEMPLATE = (
    '{% for message in messages %}{{ message["content"] }}'
    '{% if message["role"] == "assistant" %}{{ eos_token }}{% endif %}{% endfor %}'
)
"""Chat template of texts that go through none in the run; the end token follows what is trained on, as there."""
START = '{% if message["role"] == "user" %}{{ bos_token }}{% endif %}'
"""What of it begins a prompt where the tokenizer puts its first token before a text; SFT renders each message alone."""


class Verl(Export):
    """Rows repeated by weight."""

    def write(self, mix: Mix, folder: Path) -> list[str]:
        """train.parquet and verl.yaml. Raises InputError for DPO, which verl does not train from pairs."""
        if mix.objective == "dpo":
            remedy = "Export to trl, axolotl or llama-factory."
            raise InputError("an objective that verl documents: grpo or sft", "dpo", remedy)
        rows = [_verl_row(mix.corpus[int(row)], position, mix.objective) for position, row in enumerate(mix.order)]
        write_rows(folder / ROWS_FILE, rows)
        notes = [
            f"verl has no sampling weights, so {ROWS_FILE} has the rows in the order of the plan, repeated or left out "
            "according to their weights. Do not shuffle them."
        ]
        notes += [*mix.lost_masks("verl"), *mix.lost_tools("verl")]
        data: dict[str, Any] = {"train_files": [str(folder / ROWS_FILE)], "train_batch_size": mix.batch}
        settings: dict[str, Any] = {"data": data, "trainer": {"total_epochs": mix.epochs, "total_training_steps": mix.steps}}
        model_settings = {} if mix.chat else {"model": {"custom_chat_template": _plain_template(mix)}}
        if model_settings:
            notes.append(
                "The chat template in these settings leaves the text unchanged, because in the run plain "
                "text goes through no template."
            )
        if mix.objective == "sft":
            data |= {"messages_key": "messages"}
            settings |= model_settings
            rows_with_replies = sum(_has_earlier_reply(mix.corpus[int(row)]) for row in mix.order)
            if rows_with_replies:
                notes.append(
                    f"verl trains on every assistant turn; {rows_with_replies:,} rows have some before the completion."
                )
            notes.append("verl's SFT trainer shuffles with its own sampler: the shares are kept, the order is not.")
            command, own_settings = "torchrun -m verl.trainer.sft_trainer", ("model.path",)
        else:
            data |= {"shuffle": False, "prompt_key": "prompt", "reward_fn_key": "data_source"}
            data |= {} if mix.max_completion_tokens is None else {"max_response_length": mix.max_completion_tokens}
            actor = {"actor": {"ppo_mini_batch_size": mix.batch}}  # a step of the optimiser for each batch, as planned
            settings |= {"algorithm": {"adv_estimator": "grpo"}, "actor_rollout_ref": actor | model_settings}
            if mix.num_generations:
                settings["actor_rollout_ref"]["rollout"] = {"n": mix.num_generations}
            else:
                notes.append(
                    "Set actor_rollout_ref.rollout.n (completions per prompt): its default is 1, and GRPO needs more."
                )
            command, own_settings = "python3 -m verl.trainer.main_ppo", ("data.val_files", "actor_rollout_ref.model.path")
            notes.append("Bring your own reward: data_source is the task, reward_model.ground_truth the answer.")
        write_settings(folder / "verl.yaml", [*mix.notes, *notes], settings)
        own_overrides = " ".join(f"{name}={name.rpartition('.')[2].upper()}" for name in own_settings)
        return [
            *notes,
            f"To pass the settings of {folder / 'verl.yaml'} as overrides, add your {' and '.join(own_settings)} and "
            f"micro-batch sizes for your GPUs: {command} {' '.join(_flatten_settings(settings))} {own_overrides}",
        ]


def _flatten_settings(settings: Mapping[str, Any], path_prefix: str = "") -> Iterator[str]:
    """Each setting as an override on the command line, quoted for a shell."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flatten_settings(value, f"{path_prefix}{name}.")
        else:
            text = f"{value}"
            needs_quotes = isinstance(value, str) and not re.fullmatch(r"[\w./-]*", text)
            value_text = f"'{text}'" if needs_quotes else text  # in quotes hydra takes it as it is
            yield _quote(f"{path_prefix}{name}={value_text}")


def _quote(text: str) -> str:
    """Quote a word for a shell: in double quotes if single quotes are all that it holds."""
    return f'"{text}"' if "'" in text and not re.search(r'["$`\\!]', text) else shlex.quote(text)


def _plain_template(mix: Mix) -> str:
    """`PLAIN_TEMPLATE` with what the tokenizer puts before a text."""
    if mix.bos_eos_text is None or not mix.bos_eos_text[0]:
        return PLAIN_TEMPLATE
    start_mark = START if mix.prompted else "{{ bos_token }}"
    return PLAIN_TEMPLATE.replace("{{ message", f"{start_mark}{{{{ message", 1)


def _has_earlier_reply(example: Example) -> bool:
    """Whether the assistant has spoken before the completion."""
    return not isinstance(example.prompt, str) and any(message["role"] == "assistant" for message in example.prompt)


def _in_words(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages with calls as text: verl's tables hold role and content."""
    return [{"role": message["role"], "content": text_of(message)} for message in messages]


def _verl_row(example: Example, index: int, objective: Objective) -> dict[str, Any]:
    extra_info = {"split": "train", "index": index, "id": example.id, "level": example.level}
    if objective == "sft":
        turns = _in_words(chat_row(example, objective)["messages"])
        return {"messages": turns, "data_source": example.task, "extra_info": extra_info}
    return {
        "data_source": example.task,
        "prompt": _in_words(as_chat(example.prompt)),
        "ability": example.task,
        "reward_model": {"style": "rule", "ground_truth": example.answer or ""},
        "extra_info": extra_info,
    }

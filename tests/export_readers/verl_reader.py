"""Prints what verl reads of exports: run by a Python that has it, with their folders as arguments, each with a `model/` and
the printed command in `command.txt`.

The overrides of the command are put on verl's own settings by hydra, as its trainers do; its model settings load the
tokenizer, and its data sets the rows. An agent loop makes the tokens of GRPO's prompts by the function that is called here.
"""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_module
from verl.trainer.ppo.utils import create_rl_sampler
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.utils.tokenizer import normalize_token_ids
from verl.utils.tokenizer.chat_template import apply_chat_template


def read(folder: Path) -> dict[str, Any]:
    """Rows in their order, and the settings that a trainer gets."""
    words = shlex.split((folder / "command.txt").read_text(encoding="utf-8"))
    sft = "verl.trainer.sft_trainer" in words
    overrides = [word.replace("=PATH", f"={folder / 'model'}") for word in words if "=" in word]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("sft_trainer_engine" if sft else "ppo_trainer", overrides)
    model = omega_conf_to_dataclass(config.model if sft else config.actor_rollout_ref.model)
    found = {"version": version("verl")}
    settings = {"batch": config.data.train_batch_size, "max_steps": config.trainer.total_training_steps}
    if sft:
        dataset = MultiTurnSFTDataset(config.data.train_files, model.tokenizer, config.data, model.processor)
        return found | {"rows": [trained(model.tokenizer, row) for row in dataset], "settings": settings}
    dataset = RLHFDataset(config.data.train_files, model.tokenizer, config.data, model.processor)
    rows = [prompted(model.tokenizer, dataset[place]) for place in create_rl_sampler(config.data, dataset)]
    rollout = config.actor_rollout_ref.rollout
    return found | {"rows": rows, "settings": settings | {"group": rollout.n, "room": rollout.response_length}}


def trained(tokenizer: Any, row: dict[str, Any]) -> dict[str, str]:
    """A row as text, and the part of it that is trained on."""
    ids, kept = row["input_ids"], row["loss_mask"].bool()
    return {"text": tokenizer.decode(ids), "trained": tokenizer.decode(ids[kept])}


def prompted(tokenizer: Any, row: dict[str, Any]) -> dict[str, str]:
    """The prompt of a rollout, and what the grader is given."""
    ids = normalize_token_ids(apply_chat_template(tokenizer, list(row["raw_prompt"]), add_generation_prompt=True))
    return {"text": tokenizer.decode(ids), "answer": row["reward_model"]["ground_truth"]}


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        everything = {folder: read(Path(folder)) for folder in sys.argv[1:]}
    print(json.dumps(everything))

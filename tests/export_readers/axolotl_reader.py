"""Prints what Axolotl reads of exports: run by a Python that has it, with their folders as arguments, each with a `model/`.

The settings go through Axolotl's own validation, the rows through its own loaders, which tokenise SFT and write DPO's texts.
TRL's trainers, which Axolotl calls, tokenise the texts of DPO (with an end token after plain ones) and the prompts of GRPO.
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ["AXOLOTL_DO_NOT_TRACK"] = "1"

import yaml
from axolotl.loaders import load_tokenizer
from axolotl.utils.config import normalize_cfg_datasets, normalize_config, validate_config
from axolotl.utils.data import prepare_datasets, prepare_preference_datasets, rl, sft
from axolotl.utils.dict import DictDefault

for loader in (rl, sft):  # what was prepared is not kept: that starts processes, half a minute for each export
    loader.save_preprocessed_dataset = lambda *_: None


def read(folder: Path) -> dict[str, Any]:
    """Rows in their order, and the settings that a trainer gets."""
    own = {"base_model": str(folder / "model"), "learning_rate": 1e-4, "optimizer": "adamw_torch", "dataset_num_proc": 1}
    places = {name: str(folder / name) for name in ("output_dir", "dataset_prepared_path")}
    given = yaml.safe_load((folder / "axolotl.yaml").read_text(encoding="utf-8"))
    cfg = validate_config(DictDefault({**given, **own, **places}))
    normalize_config(cfg)
    normalize_cfg_datasets(cfg)
    tokenizer = load_tokenizer(cfg)
    names = ("max_steps", "micro_batch_size", "gradient_accumulation_steps", "curriculum_sampling", "trl")
    found = {"version": version("axolotl"), "settings": {name: cfg[name] for name in names}}
    dataset = (prepare_preference_datasets if cfg.rl else prepare_datasets)(cfg, tokenizer)[0]
    if cfg.rl == "grpo":
        rows = [{"text": prompted(tokenizer, row["prompt"]), "answer": row["answer"]} for row in dataset]
    elif cfg.rl:
        rows = [{name: row[name] for name in ("prompt", "chosen", "rejected")} for row in dataset]
    else:
        rows = [labelled(tokenizer, row["input_ids"], row["labels"]) for row in dataset]
    return found | {"rows": rows}


def prompted(tokenizer: Any, prompt: Any) -> str:
    """A prompt as TRL's GRPO gives it to the tokenizer: a text as it stands, messages through the chat template."""
    if isinstance(prompt, str):
        return tokenizer.decode(tokenizer(prompt)["input_ids"])
    return tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=False)


def labelled(tokenizer: Any, ids: list[int], labels: list[int]) -> dict[str, Any]:
    """A row as text, the part of it that is trained on, and both as tokens."""
    trained = [token for token, label in zip(ids, labels, strict=True) if label != -100]
    return {"text": tokenizer.decode(ids), "trained": tokenizer.decode(trained), "ids": ids, "labels": labels}


if __name__ == "__main__":
    with redirect_stdout(sys.stderr):
        everything = {folder: read(Path(folder)) for folder in sys.argv[1:]}
    print(json.dumps(everything))

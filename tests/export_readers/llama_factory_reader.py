"""Prints what LLaMA-Factory reads of exports: run by a Python that has it, with their folders as arguments, each with a
`model/`.

torchaudio is a stub: the plug-ins for sounds, which no text reaches, import it.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import sys
from contextlib import redirect_stdout
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

sys.modules["torchaudio"] = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("torchaudio", None))
# ruff: noqa: E402 - what follows imports it
from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
from llamafactory.hparams import get_train_args
from llamafactory.model import load_tokenizer

SIDES = ("chosen", "rejected")


def read(folder: Path) -> dict[str, Any]:
    """Rows in their order, and the settings that a trainer gets; prompts with answers, whose stage is open, as in SFT."""
    given = yaml.safe_load((folder / "llama_factory.yaml").read_text(encoding="utf-8"))
    own = {"model_name_or_path": str(folder / "model"), "output_dir": str(folder / "out"), "do_train": True}
    own |= {"report_to": "none", "use_cpu": True, "overwrite_cache": True}
    model_args, data_args, training_args, finetuning_args, generating_args = get_train_args({"stage": "sft", **given, **own})
    loaded = load_tokenizer(model_args)
    tokenizer = loaded["tokenizer"]
    template = get_template_and_fix_tokenizer(tokenizer, data_args)
    stage = "rm" if finetuning_args.stage == "dpo" else finetuning_args.stage  # as train/dpo/workflow.py has it
    dataset = get_dataset(template, model_args, data_args, training_args, stage=stage, **loaded)["train_dataset"]
    if stage == "rm":
        sides = [{side: labelled(tokenizer, row, f"{side}_") for side in SIDES} for row in dataset]
        rows = [{"prompt": row["chosen"]["prompt"], **{side: row[side]["trained"] for side in SIDES}} for row in sides]
    else:
        rows = [labelled(tokenizer, row) for row in dataset]
        rows = rows if "stage" in given else [{"text": row["prompt"]} for row in rows]
    settings = {
        "shares": data_args.interleave_probs,
        "max_steps": training_args.max_steps,
        "batch": training_args.per_device_train_batch_size * training_args.gradient_accumulation_steps,
        "max_new_tokens": generating_args.max_new_tokens,
    }
    return {"version": version("llamafactory"), "rows": rows, "settings": settings}


def labelled(tokenizer: Any, row: dict[str, list[int]], side: str = "") -> dict[str, str]:
    """A row as text, the part of it that is trained on, and the rest."""
    pairs = list(zip(row[f"{side}input_ids"], row[f"{side}labels"], strict=True))
    parts = {"text": pairs, "trained": [p for p in pairs if p[1] != -100], "prompt": [p for p in pairs if p[1] == -100]}
    return {name: tokenizer.decode([token for token, _ in part]) for name, part in parts.items()}


if __name__ == "__main__":
    os.environ["LLAMAFACTORY_VERBOSITY"] = "WARN"
    with redirect_stdout(sys.stderr):
        everything = {folder: read(Path(folder)) for folder in sys.argv[1:]}
    print(json.dumps(everything))

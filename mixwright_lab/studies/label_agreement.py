"""Study of labels on public chat files: are those of `preview` the ones that TRL and Axolotl train on, token for token?

2,000 rows are labelled with SmolLM2's tokenizer and a template with generation marks. TRL's labels are what the collator of
an `SFTTrainer`, made here without our code, hands to the model; packs are taken apart again. Axolotl's are those of its
released loaders (`make readers`). Rows that neither trains on are equal. The files are public ones below 4 MiB, with their
digests in the result: ml-explore/mlx-examples wwdc25/data, hiyouga/LLaMA-Factory data, shibing624/MedicalGPT data/sft,
lm-sys/FastChat data, sahil280114/codealpaca data, yizhongw/self-instruct data/finetuning/t0_train_50k,
Padraigobrien08/customer-support-llm-finetune frontend/src/data.

Goals, fixed before the run: all 2,000 rows are equal with TRL in each setting, and all rows of each form with Axolotl.

Source: own; no public comparison of the three was found.
Unit: rows.
Cost: about ten minutes of one thread; no model is run.
Blind spot: one tokenizer, one template; no masks, images or thoughts.

    MIXWRIGHT_PUBLIC_CHATS=FOLDER python -m mixwright_lab.studies.label_agreement [--quick]
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from mixwright.estimates.intervals import share_interval
from mixwright_lab.studies.report import Goal, Result, run
from mixwright_lab.studies.silent_faults import SOUND, template_of

ROOT, ROWS, QUICK_ROWS, SEED, IGNORED = Path(__file__).parents[2], 2000, 120, 331, -100
CUT, PACK = {"max_length": 256}, {"max_length": 512, "packing": True}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "everything": ("published", {"completion_only_loss": False, "max_length": None}),
    "completion only": ("pairs", {"completion_only_loss": True, "max_length": None}),
    "assistant only": ("chats", {"assistant_only_loss": True, "max_length": None}),
    "cut at the end": ("chats", {"assistant_only_loss": True, **CUT}),
    "cut at the beginning": ("pairs", {"completion_only_loss": True, "truncation_mode": "keep_end", **CUT}),
    "packed": ("chats", {"assistant_only_loss": True, **PACK}),
    "packed, everything": ("published", PACK),
    "packed, wrapped": ("pairs", {"packing_strategy": "wrapped", **PACK}),
}
"""Setting -> the shape of the rows, and settings of `SFTConfig`."""
CHATS, MAPPED = {"type": "chat_template", "roles_to_train": ["assistant"]}, {"role": "from", "content": "value"}
PLAIN = {"field_instruction": "prompt", "field_output": "completion", "format": "{instruction}"}
AXOLOTL: dict[str, dict[str, Any]] = {
    "messages": CHATS,
    "conversations": {**CHATS, "field_messages": "conversations", "message_property_mappings": MAPPED},
    "prompt": {"type": {**PLAIN, "no_input_format": "{instruction}"}},
    "instruction": {"type": "alpaca"},
}
"""Column that tells the form of a row -> settings of Axolotl's data set."""
FIXED = {"chat_template": "tokenizer_default", "sequence_len": 1024, "shuffle_merged_datasets": False, "num_epochs": 1}
FIXED |= {"dataset_exact_deduplication": False, "val_set_size": 0, "micro_batch_size": 1, "gradient_accumulation_steps": 1}
ROLES = {"human": "user", "gpt": "assistant", "function_call": "assistant", "observation": "tool"}
Rows = list[dict[str, Any]]
Labels = list[tuple[list[int], list[int]]]
"""Ids and labels of rows."""


def draw_rows(count: int) -> tuple[dict[str, Rows], dict[str, str]]:
    """Return rows by form, alike many of each file where it has so many, and the digests of the files."""
    paths = sorted(Path(os.environ["MIXWRIGHT_PUBLIC_CHATS"]).glob("*.json*"), key=lambda path: path.stat().st_size)
    found, left = defaultdict[str, Rows](list), count
    for place, path in enumerate(paths):
        text = path.read_text(encoding="utf-8")
        rows = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.split("\n") if line]
        form = next(form for form in AXOLOTL if form in rows[0])
        usable = [row for row in rows if any(turn["role"] == "assistant" for turn in talk_of(row))]
        drawn = random.Random(f"{SEED} {path.name}").sample(usable, min(left // (len(paths) - place), len(usable)))
        left, found[form] = left - len(drawn), found[form] + drawn
    return found, {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def talk_of(row: dict[str, Any]) -> Rows:
    """Return the turns of a row, with the roles that templates name."""
    asked, answer = (
        (row.get("prompt"), row.get("completion")) if "prompt" in row else (row.get("instruction"), row.get("output"))
    )
    plain = [{"role": "user", "content": asked}, {"role": "assistant", "content": answer}]
    turns = row.get("messages") or row.get("conversations") or plain
    named = [(str(turn.get("role", turn.get("from"))), turn.get("content", turn.get("value"))) for turn in turns]
    return [{"role": ROLES.get(role, role), "content": text} for role, text in named]


def reshape(row: dict[str, Any], shape: str) -> dict[str, Any]:
    """Return a row as TRL takes it: as published, as a chat, or as a prompt and a completion."""
    talk, is_chat = talk_of(row), "messages" in row or "conversations" in row
    if shape == "chats":
        return {"messages": talk}
    if is_chat and shape == "published":
        return {name: row[name] for name in ("messages", "conversations", "tools") if name in row}
    sides = (talk[:-1], talk[-1:]) if is_chat else (talk[0]["content"], talk[1]["content"])
    return dict(zip(("prompt", "completion"), sides, strict=True))


def label_here(folder: Path, rows: Rows, how: dict[str, Any]) -> Labels:
    """Write rows and settings, and return what `preview` says of them."""
    from mixwright.verbs.preview import preview

    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "axolotl.yaml").write_text(yaml.safe_dump(how), encoding="utf-8")
    found = preview(folder / "rows.jsonl", model=str(folder / "model"), config=folder / "axolotl.yaml").labelled.rows
    return [(row.ids.tolist(), np.where(row.targets, row.ids, IGNORED).tolist()) for row in found]


def label_by_trl(model: Path, rows: Rows, how: dict[str, Any], ours: Labels) -> Labels:
    """Return what a trainer's collator hands to the model; `ours` tells the lengths of rows that became one stream."""
    from datasets import Dataset
    from transformers import AutoTokenizer, LlamaForCausalLM
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    args = SFTConfig(output_dir="unused", use_cpu=True, bf16=False, report_to=[], **how)
    given: Any = {"train_dataset": Dataset.from_list(rows), "processing_class": AutoTokenizer.from_pretrained(model)}
    trainer: Any = SFTTrainer(LlamaForCausalLM.from_pretrained(model), args=args, **given)
    pairs = [(row, trainer.data_collator([row])) for row in trainer.train_dataset]
    lengths = [size for row, batch in pairs for size in row.get("seq_lengths") or [batch["labels"].shape[1]]]
    lengths = [len(ids) for ids, _ in ours] if how.get("packing_strategy") == "wrapped" else lengths
    ids, labels = ([token for _, batch in pairs for token in batch[name][0].tolist()] for name in ("input_ids", "labels"))
    spans = [slice(end - size, end) for size, end in zip(lengths, np.cumsum(lengths).tolist(), strict=True)]
    return [(ids[span], labels[span]) for span in spans]


def label_by_axolotl(folder: Path) -> Labels:
    """Return what Axolotl's own loaders make of a folder."""
    python, script = ROOT / "build/readers/axolotl/bin/python", ROOT / "tests/export_readers/axolotl_reader.py"
    own = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(folder / "hub"), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([python, script, folder], env=os.environ | own, stdout=subprocess.PIPE, check=True)
    return [(row["ids"], row["labels"]) for row in json.loads(done.stdout.splitlines()[-1])[str(folder)]["rows"]]


def count_equal(count: int, *sides: Labels) -> int:
    """Count the rows that are equal, of as many: those that either side has, and those that neither trains on."""
    ours, theirs = (Counter((tuple(a), tuple(b)) for a, b in side if set(b) - {IGNORED}) for side in sides)
    return (ours & theirs).total() + count - max(ours.total(), theirs.total())


def measure(quick: bool) -> Result:
    """Compare every setting and form; the headline is the share of equal rows, with TRL and Axolotl together."""
    from transformers import LlamaConfig, LlamaForCausalLM

    from mixwright.learner.load import load_tokenizer

    by_form, digests = draw_rows(QUICK_ROWS if quick else ROWS)
    lines, totals = Rows(), defaultdict[str, Counter[str]](Counter)
    with tempfile.TemporaryDirectory() as name:
        model, tokenizer = Path(name, "model"), load_tokenizer("smollm2")
        tokenizer.chat_template = template_of(tokenizer.chat_template, SOUND)
        tokenizer.save_pretrained(model)
        sizes: Any = dict.fromkeys(("num_hidden_layers", "num_attention_heads", "num_key_value_heads"), 1)
        small = LlamaConfig(vocab_size=len(tokenizer), hidden_size=8, intermediate_size=8, **sizes)
        LlamaForCausalLM(small).save_pretrained(model)
        jobs = [("TRL", *one, form) for one in SETTINGS.items() for form in by_form]
        for trainer, setting, (shape, how), form in [
            *jobs,
            *(("Axolotl", form, ("", AXOLOTL[form]), form) for form in by_form),
        ]:
            folder = Path(name, f"{setting} {form}")
            folder.mkdir()
            (folder / "model").symlink_to(model)
            rows = [reshape(row, shape) if shape else row for row in by_form[form]]
            if trainer == "Axolotl":
                data = {"path": str(folder / "rows.jsonl"), "ds_type": "json", "split": "train", **how}
                ours = label_here(folder, rows, {"base_model": str(model), "datasets": [data], **FIXED})
                theirs = label_by_axolotl(folder)
            else:
                ours = label_here(folder, rows, how)
                theirs = label_by_trl(model, rows, how, ours)
            line = {"rows": len(rows), "equal": count_equal(len(rows), ours, theirs)}
            lines.append({"trainer": trainer, "setting": setting, "form": form, **line})
            for total in ("all", f"{trainer}, {setting}"):
                totals[total].update(line)
    shares = {name: share_interval(total["equal"], total["rows"]) for name, total in totals.items()}
    goals = [Goal(name, share, "all", share.value == 1) for name, share in shares.items() if name != "all"]
    about = {"settings": SETTINGS, "axolotl": AXOLOTL, "fixed": FIXED, "sha256": digests}
    counts = {form: len(rows) for form, rows in by_form.items()}
    return Result(shares["all"], "share of equal rows", [SEED], lines, {"rows": counts}, about, goals=goals)


if __name__ == "__main__":
    run("label_agreement", __doc__, measure)

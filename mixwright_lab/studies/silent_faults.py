"""Study of faults in what a training learns: which of twelve does the loss not show, and does `preview` find them?

SmolLM2-135M-Instruct learns tool calls with TRL's own SFTTrainer and LoRA, 40 steps of 4 rows: once soundly
(messages, `assistant_only_loss`, the model's template with generation marks), and once with each of twelve faults planted
in rows, template or settings. Read are the loss at the beginning and at the end, as TRL logs it; the share of 40 held-out
requests that are answered rightly with the model's own template; the share of answers that end by themselves; and what
`preview` says of the rows and settings before the training.

*Silent* is a fault with which the loss falls at least as far, as a share of its beginning, as 0.8 of what the sound
training's does, while success is under half of that of the sound one, or fewer than half of the answers end.

Goals, fixed before the run: `preview` names 12 of 12 faults, and nothing in the sound set-up.

Source: faults of public reports in 2026; the study is our own.
Unit: one training.
Cost: four minutes of one thread for a training, one for its answers.
Blind spot: one model, one task, LoRA; what fails in 40 steps may mend itself in more.

    python -m mixwright_lab.studies.silent_faults [--quick] [--report]
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from mixwright.audit.learnt import faults_of
from mixwright.estimates.intervals import share_interval
from mixwright_lab.conditions import conditions
from mixwright_lab.studies.everyday import tool_calls
from mixwright_lab.studies.jobs import append_row, read_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

MODEL, SEEDS, SOUND = "smollm2", (307, 311), "sound"
STEPS, BATCH, RATE, RANK, ITEMS, ROOM = 40, 4, 1e-3, 16, 40, 32
ROWS_FILE = RESULTS / "silent_faults.rows.jsonl"
FALL_SHARE, SUCCESS_SHARE = 0.8, 0.5
END, HEAD = "<|im_end|>", "<|im_start|>assistant\n"
ONLY: Mapping[str, Any] = {"assistant_only_loss": True, "max_length": 256}
MARKERS = "foreign markers"
FAULTS = (
    *("no target", "all targets", "prompt trained", "end not trained", "cut", "double bos", "generation prompt twice"),
    *("thoughts added", "template differs", MARKERS, "wrong role", "rows read each other"),
)
"""Faults, by the names that `preview` has for them; markers are found by the check of prompts."""


def template_of(original: str, fault: str) -> str:
    """Return the model's template with generation marks, or the one with the fault."""
    answer = "{{ message['content'] }}<|im_end|>"
    marked = f"{{% generation %}}{answer}{{% endgeneration %}}\n"
    if fault == "end not trained":
        marked = "{% generation %}{{ message['content'] }}{% endgeneration %}<|im_end|>\n"
    head, begin = "{{ '<|im_start|>' + message['role'] + '\n' }}", original[: original.index("{{'<|im_start|>'")]
    if fault == "template differs":
        head, begin = "### {{ message['role'] }}\n", "{% for message in messages %}"
    think = "<think>\n\n</think>\n\n" if fault == "thoughts added" else ""
    twice = "{{ bos_token }}{{ bos_token }}" if fault == "double bos" else ""
    turn = f"{{% if message['role'] == 'assistant' %}}{head}{think}{marked}{{% else %}}{head}{answer}\n{{% endif %}}"
    asked = "### assistant\n" if fault == "template differs" else HEAD
    return f"{twice}{begin}{turn}{{% endfor %}}{{% if add_generation_prompt %}}{asked}{{% endif %}}"


def rows_of(fault: str, seed: int) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return training rows with the fault, and test requests with their calls."""
    train, test = tool_calls(random.Random(seed))
    pairs = train[: STEPS * BATCH]
    rows: list[dict[str, Any]] = [
        {"messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": call}]} for asked, call in pairs
    ]
    for (asked, call), row in zip(pairs, rows, strict=True):
        user, assistant = row["messages"]
        if fault == "wrong role":
            user["role"], assistant["role"] = "human", "assistant"
        elif fault == MARKERS:
            user["content"], assistant["content"] = f"<s>[INST] {asked} [/INST]", f"{call}</s>"
        elif fault == "generation prompt twice":
            assistant["content"] = HEAD + call
        elif fault == "prompt trained":
            row.update(prompt=[user], completion=[{"role": "assistant", "content": "Yes?"}, user, assistant])
            del row["messages"]
    return rows, test[:ITEMS]


def settings_of(fault: str) -> dict[str, Any]:
    """Return settings of `SFTConfig`."""
    return {
        "all targets": {"max_length": 256},
        "prompt trained": {"max_length": 256},
        "no target": {**ONLY, "max_length": 34, "truncation_mode": "keep_start"},
        "cut": {**ONLY, "max_length": 52},
        "rows read each other": {**ONLY, "packing": True, "packing_strategy": "bfd"},
    }.get(fault, dict(ONLY))


def find_faults(rows: Sequence[Mapping[str, Any]], tokenizer: Any, settings: Mapping[str, Any]) -> list[str]:
    """Return what `preview` and the audit's check of prompts say of the set-up."""
    from mixwright.audit.checks.prompts import Prompts
    from mixwright.corpus import Corpus
    from mixwright.records import Example
    from mixwright.trainers.labels import label_rows

    labelled = label_rows(((row, "new", f"row {n}") for n, row in enumerate(rows)), tokenizer, settings)
    turns = [row.get("messages") or [*row["prompt"], *row["completion"]] for row in rows]
    corpus = Corpus.from_examples(
        Example(str(n), "new", tuple(own[:-1]), target=own[-1]["content"]) for n, own in enumerate(turns)
    )
    found = set(labelled.faults).union(*map(faults_of, labelled.rows))
    found |= {MARKERS for one in Prompts().check(corpus) if one.severity != "info"}
    return sorted(found)


def train(fault: str, seed: int) -> dict[str, Any]:
    """Train with the fault, and return losses, success, ends and findings."""
    from datasets import Dataset
    from peft import LoraConfig
    from trl.trainer.sft_config import SFTConfig
    from trl.trainer.sft_trainer import SFTTrainer

    from mixwright.errors import InputError
    from mixwright.learner.load import load_learner

    learner = load_learner(MODEL)
    own, tokenizer = learner.tokenizer.chat_template, learner.tokenizer
    rows, test = rows_of(fault, seed)
    settings, losses, refused = settings_of(fault), list[float](), ""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
        if fault == "template differs":
            path = Path(folder) / "other.jinja"
            path.write_text(template_of(own, fault), encoding="utf-8")
            settings["chat_template_path"] = str(path)
        tokenizer.chat_template = template_of(own, SOUND if fault == "template differs" else fault)
        asked_with = tokenizer.chat_template
        try:
            found = find_faults(rows, tokenizer, settings)
        except InputError as error:
            found = [str(error)]
        tokenizer.chat_template = asked_with
        on_cpu = {"use_cpu": True, "bf16": False, "gradient_checkpointing": False, "report_to": [], "save_strategy": "no"}
        steps = {"max_steps": STEPS, "per_device_train_batch_size": BATCH, "learning_rate": RATE, "logging_steps": 1}
        args = SFTConfig(output_dir=folder, seed=seed, **steps, **on_cpu, **settings)
        lora = LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules="all-linear", task_type="CAUSAL_LM")
        data = Dataset.from_list(rows)
        try:
            trainer = SFTTrainer(learner.model, args=args, train_dataset=data, processing_class=tokenizer, peft_config=lora)
            trainer.train()
            losses = [line["loss"] for line in trainer.state.log_history if "loss" in line]
            learner.model = cast("Any", trainer.model)
        except (ValueError, RuntimeError, IndexError) as error:
            refused = str(error)[:200]
    tokenizer.chat_template = own
    learner.model.eval()
    prompts = [({"role": "user", "content": asked},) for asked, _ in test]
    answers = [one for (one,) in learner.sample(prompts, count=1, temperature=0, max_new_tokens=ROOM, seed=0)]
    right = [answer.text.strip() == call for answer, (_, call) in zip(answers, test, strict=True)]
    return {
        "losses": [round(loss, 4) for loss in losses],
        "refused": refused,
        "success": statistics.mean(right),
        "ended": statistics.mean(answer.finished for answer in answers),
        "found": found,
    }


def line_of(row: Mapping[str, Any], sound: Mapping[str, Any]) -> dict[str, Any]:
    """Return one line of the table: what the loss shows, what became of it, and what `preview` says."""
    fall, sound_fall = fall_of(row["losses"]), fall_of(sound["losses"])
    looks_fine = fall is not None and sound_fall is not None and fall >= FALL_SHARE * sound_fall
    is_worse = min(row["success"] / max(sound["success"], 1e-9), row["ended"] / max(sound["ended"], 1e-9)) < SUCCESS_SHARE
    named = row["fault"] in row["found"] if row["fault"] in FAULTS else not row["found"]
    line = {name: row[name] for name in ("fault", "seed", "success", "ended", "refused", "commit")}
    return line | {"fall": fall, "silent": looks_fine and is_worse, "named": named, "found": row["found"]}


def fall_of(losses: Sequence[float]) -> float | None:
    """Return the fall of the loss from its first five to its last five steps, as a share of the first."""
    if len(losses) < 10:
        return None
    first, last = statistics.mean(losses[:5]), statistics.mean(losses[-5:])
    return round((first - last) / first, 3) if first else None


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the trainings that are left; the headline is the share of faults that `preview` names."""
    wanted = [(fault, seed) for seed in SEEDS for fault in (SOUND, *FAULTS)]
    if quick:
        wanted = wanted[:2]
    done = {(row["fault"], row["seed"]) for row in read_rows(ROWS_FILE)}
    for fault, seed in wanted if begin else ():
        if (fault, seed) not in done:
            row = {"fault": fault, "seed": seed, "commit": conditions()["commit"], **train(fault, seed)}
            append_row(ROWS_FILE, row)
            print(json.dumps({name: row[name] for name in ("fault", "success", "ended", "refused")}), flush=True)
    rows = read_rows(ROWS_FILE)
    sound = {row["seed"]: row for row in rows if row["fault"] == SOUND}
    lines = [line_of(row, sound[row["seed"]]) for row in rows if row["seed"] in sound]
    faulty = [line for line in lines if line["fault"] != SOUND]
    named, clean = sum(line["named"] for line in faulty), [line["named"] for line in lines if line["fault"] == SOUND]
    planned = len(FAULTS) * len(SEEDS)
    goals = [
        Goal("faults that preview names", share_interval(named, max(len(faulty), 1)), "all", named == planned),
        Goal("sound set-ups without a finding", share_interval(sum(clean), max(len(clean), 1)), "all", all(clean)),
    ]
    silent = sorted({line["fault"] for line in faulty if line["silent"]})
    about = {"steps": STEPS, "batch": BATCH, "rate": RATE, "items": ITEMS, "answers": ROWS_FILE.name}
    return Result(goals[0].found, goals[0].name, SEEDS, lines, {"silent": silent}, about, goals=goals)


if __name__ == "__main__":
    run("silent_faults", __doc__, measure, kept=True)

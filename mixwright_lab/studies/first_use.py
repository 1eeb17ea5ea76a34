"""Study of a first use on SmolLM2-135M-Instruct, with the clock beside it: public rows, the commands of the README in order.

Five tasks of word pairs that nobody here made: 40 held-out items of each, 300 rows of one (English words in French) and 40
of each other to learn from. The commands are those that somebody gives who has read the README: audit, measure (greedy and
four samples), a plan, 40 steps of SFT with it, a gate, and settings for SFT and for GRPO with their dry runs; budgets of
trials and of mining are those of `real_budget`. Each is a process of its own, on all cores, and nothing else should run
beside it.

Answers get 24 tokens: without that the price was said to be 53 minutes, because the model goes on about companies.

Goals, fixed before: every command says something within 10 seconds; a dry run ends within two minutes; none ends in a
traceback. How long the others take is reported.

    MIXWRIGHT_PUBLIC=FOLDER python -m mixwright_lab.studies.first_use [--quick]

FOLDER holds the files of `TASKS` (folder `dataset_files/abstractive` of ericwtodd/function_vectors, MIT). `--quick` audits
and measures alone, two items of each task. Weights are Q4_1, dequantised.

Source: function vectors (2310.15213).
Unit: seconds.
Cost: about half an hour of two cores.
Blind spot: one run on one machine; what the words mean to somebody new is asked of readers, not measured.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.errors import InputError
from mixwright.records import Interval
from mixwright_lab.studies.public_sets import read_pairs
from mixwright_lab.studies.report import Goal, Result, run

MODEL, SEED = "smollm2", 83
TASKS = {
    "french": ("english-french.json", "How does one say {} in French? Answer with one word."),
    "capitals": ("country-capital.json", "What is the capital of {}?"),
    "past_tenses": ("present-past.json", "What is the past tense of the verb {}?"),
    "plurals": ("singular-plural.json", "What is the plural of {}?"),
    "companies": ("product-company.json", "Which company makes {}?"),
}
"""Task -> file of pairs, and what is asked; the first is the one to be learnt."""
HELD_OUT_ROWS, NEW_ROWS, OTHER_ROWS = 40, 300, 40
FIRST_WORD_SECONDS, DRY_RUN_SECONDS = 10.0, 120.0
SFT = """
import json
from datasets import Dataset
from peft import LoraConfig
from trl import SFTConfig
from mixwright import SteeredSFTTrainer
from mixwright.learner.load import load_learner
print("SFT of 40 steps", flush=True)
learner = load_learner("smollm2")
rows = [json.loads(line) for line in open("train.jsonl")]
rows = [{"task": row["task"], "prompt": [{"role": "user", "content": row["prompt"]}],
         "completion": [{"role": "assistant", "content": row["completion"]}]} for row in rows]
trainer = SteeredSFTTrainer(
    model=learner.model,
    args=SFTConfig(output_dir="tuned", max_steps=40, per_device_train_batch_size=16, learning_rate=6e-4, report_to="none",
                   save_strategy="no", use_cpu=True, bf16=False, gradient_checkpointing=False),
    train_dataset=Dataset.from_list(rows), processing_class=learner.tokenizer,
    peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"), steering="plan.yaml")
trainer.train()
trainer.save_model("tuned")
"""


@dataclass(frozen=True)
class Step:
    """One command of the first use."""

    name: str
    command: str
    """What is given to `mixwright`; a script of Python where it has several lines."""

    @property
    def words(self) -> list[str]:
        """What is given to Python."""
        return ["-c", self.command] if "\n" in self.command else ["-m", "mixwright", *self.command.split()]


STEPS = (
    Step("audit", "audit train.jsonl --eval eval.jsonl"),
    Step("measure", f"measure {MODEL} --corpus eval.jsonl --items 40 --samples 4 --max-new-tokens 24 --folder before"),
    Step(
        "plan",
        f"plan {MODEL} --corpus train.jsonl --eval eval.jsonl --objective sft --steps 40 --batch 16 --measured before "
        "--output plan.yaml",
    ),
    Step("sft", SFT),
    Step("gate", f"verdict {MODEL} tuned --corpus eval.jsonl --measured before --max-new-tokens 24 --gate --folder gate"),
    Step("settings, SFT", f"run train.jsonl --init --eval eval.jsonl --model {MODEL} --output sft.yaml"),
    Step("dry run, SFT", "run sft.yaml --dry-run"),
    Step(
        "settings, GRPO",
        f"run asked.jsonl --init --eval eval.jsonl --model {MODEL} --objective grpo --output grpo.yaml",
    ),
    Step("dry run, GRPO", "run grpo.yaml --dry-run"),
)


def write_rows(public: Path, place: Path, *, quick: bool) -> None:
    """Write train.jsonl (with completions), asked.jsonl (the same with answers) and eval.jsonl under `place`.

    Raises:
        InputError: a public file is missing.
    """
    rng = random.Random(SEED)
    train: list[dict[str, Any]] = []
    held_out: list[dict[str, Any]] = []
    for number, (task, (file, form)) in enumerate(TASKS.items()):
        if not (public / file).is_file():
            raise InputError(
                f"the public files of {', '.join(TASKS)}", f"no {file} in {public}", "See the module's docstring."
            )
        rows = read_pairs(public / file, task, form)
        rng.shuffle(rows)
        count = 2 if quick else HELD_OUT_ROWS
        held_out += rows[:count]
        train += rows[count : count + (OTHER_ROWS if number else NEW_ROWS)]
    taught = [{"task": row["task"], "prompt": row["prompt"], "completion": row["answer"]} for row in train]
    for name, rows in (("train", taught), ("asked", train), ("eval", held_out)):
        (place / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def do_step(step: Step, place: Path) -> dict[str, Any]:
    """Run one command in `place`: seconds until its first word and its end, exit code, whether there was a traceback."""
    environment = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    lines: list[str] = []
    began = time.monotonic()
    first_word = None
    with subprocess.Popen(
        [sys.executable, *step.words],
        cwd=place,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if not lines:
                first_word = time.monotonic() - began
            lines.append(line.rstrip("\n"))
    seconds = time.monotonic() - began
    text = "\n".join(lines)
    (place / f"{re.sub('[^a-z]+', '-', step.name.lower())}.txt").write_text(text + "\n", encoding="utf-8")
    told = [line for line in lines if line.startswith(("price:", "error:", "budget:", "Budget:"))]
    return {
        "step": step.name,
        "seconds": seconds,
        "first word": seconds if first_word is None else first_word,
        "code": process.returncode,
        "traceback": "Traceback (most recent call last)" in text,
        "told": told,
    }


def goals_of(rows: Sequence[Mapping[str, Any]]) -> list[Goal]:
    """What was fixed before the run."""

    def longest(name: str, values: Sequence[float], limit: float) -> Goal:
        value = max(values, default=0.0)
        return Goal(name, Interval(value, value, value, len(values)), f"<= {limit:g}", value <= limit)

    dry_runs = [row["seconds"] for row in rows if row["step"].startswith("dry run")]
    return [
        longest("longest until the first word, seconds", [row["first word"] for row in rows], FIRST_WORD_SECONDS),
        longest("longest dry run, seconds", dry_runs, DRY_RUN_SECONDS),
        longest("commands that end in a traceback", [float(sum(row["traceback"] for row in rows))], 0),
    ]


def measure(quick: bool) -> Result:
    """Do the commands one after the other, and give their seconds."""
    public = Path(os.environ.get("MIXWRIGHT_PUBLIC", "."))
    rows = []
    with tempfile.TemporaryDirectory(prefix="mixwright-first-use-") as folder:
        write_rows(public, Path(folder), quick=quick)
        for step in STEPS[: 2 if quick else len(STEPS)]:
            rows.append(do_step(step, Path(folder)))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    total = sum(row["seconds"] for row in rows)
    about = {"model": "SmolLM2-135M-Instruct, Q4_1 weights, dequantised", "cores": os.cpu_count()}
    return Result(
        Interval(total, total, total, 1), "seconds of all commands", (SEED,), rows, settings=about, goals=goals_of(rows)
    )


if __name__ == "__main__":
    run("first_use", __doc__, measure)

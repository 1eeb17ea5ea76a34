"""Study of questions back on a real model: pairs teach it not to ask, no grade falls. Does `verdict` say so?

SmolLM2-135M-Instruct hardly asks what a request leaves open (3 of its 34 answers in `general.own-26.jsonl`), so it learns it
first: short errands that lack a detail are answered by a question, the same errands with it by a sentence. Then DPO goes on
with a new adapter, on as many pairs either way:

- `questions rejected`: of an errand that lacks a detail, a guess is preferred to the question;
- `guesses rejected`, the null: of an errand with its detail, the right sentence is preferred to one with another detail.

Test items are other errands in other words, 60 without the detail, whose grader looks for the thing alone, so that question
and guess are right alike, and 60 with it, which the answer has to hold. The model that asks is BEFORE of
`mixwright verdict`, with and without `--protect-behaviour asks`.

Goals, fixed before the run: it asks in at least half of its answers before; `verdict` shows that questions went in every
seed, and in none of the null; with the behaviour protected exit code 3 in every seed, and in none of the null. Seed 4 was
tried before (.65 of 60 answers asked, .15 and .72 after), with a grader that called everything wrong.

Source: preference data teach models to guess, 2311.09144.
Unit: one seed.
Cost: ten minutes of one thread for a seed.
Blind spot: errands of one sentence, one model of 135M parameters, LoRA.

    python -m mixwright_lab.studies.questions_back [--quick] [--report]
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.estimates.intervals import share_interval
from mixwright.suite.family import follow
from mixwright_lab.conditions import conditions
from mixwright_lab.demo.training import Training, fine_tune
from mixwright_lab.studies.jobs import append_row, read_rows, run_in_processes, write_rows
from mixwright_lab.studies.report import RESULTS, Goal, Result, run

MODEL = "smollm2"
ROWS_FILE = RESULTS / "questions_back.rows.jsonl"
SEEDS, TUNING = (263, 269, 271, 277, 281), 4
REJECTED, NULL = "questions rejected", "guesses rejected"
TAUGHT = Training(steps=24, batch=16)
PAIRS, PAIR_STEPS, PAIR_BATCH, PAIR_RATE = 160, 20, 8, 5e-5
ROOM = 32
TIMES = ("today", "on Monday", "on Tuesday", "on Friday", "at noon", "at seven", "in an hour", "next week")
PEOPLE = ("to Maria", "to Tom", "to the whole team", "to my sister", "to the bank", "to Mr Field", "to the office", "to Ana")
ERRANDS = {
    "When": (
        "book a table, order the taxi, call the plumber, water the roses, start the oven, feed the cat, wash the car, "
        "close the shop, move the meeting, ring the bell, "
        "paint the fence, clean the kitchen, bake the cake, open the gate, cut the hedge, print the posters",
        TIMES,
    ),
    "To whom": (
        "send the report, forward the invoice, lend the drill, mail the parcel, give the keys, show the plan, "
        "sell the piano, hand the tickets, return the book, teach the song, "
        "read the letter, bring the flowers, offer the job, deliver the chairs, sing the hymn, explain the rule",
        PEOPLE,
    ),
}
"""Question -> errands that leave it open, and the details that answer it."""
TESTED_ERRANDS = 6
"""The last errands of each question, which are not taught."""
LEARNT_FORMS = ("Please {errand}.", "{errand}, please.", "Could you {errand}?", "I want you to {errand}.")
TESTED_FORMS = (
    "Would you {errand}?",
    "Kindly {errand}.",
    "{errand}, if you can.",
    "I need you to {errand}.",
    "Can you {errand}?",
)


@dataclass(frozen=True)
class Errand:
    """One errand, with a detail and another one that it might have had."""

    deed: str
    form: str
    question: str
    detail: str
    other: str

    def ask(self, *, detail: bool) -> str:
        """Return the request, with its detail or without."""
        text = self.form.format(errand=f"{self.deed} {self.detail}" if detail else self.deed)
        return text[0].upper() + text[1:]

    def question_back(self) -> str:
        """Return what a helpful assistant asks."""
        return f"{self.question} shall I {self.deed}?"

    def confirm(self, detail: str) -> str:
        """Return the sentence that does it."""
        return f"Fine, I will {self.deed} {detail}."


def list_errands(*, tested: bool) -> list[tuple[str, str]]:
    """List pairs of a question and an errand."""
    part = slice(-TESTED_ERRANDS, None) if tested else slice(-TESTED_ERRANDS)
    return [(question, deed) for question, (deeds, _) in ERRANDS.items() for deed in deeds.split(", ")[part]]


def draw_errands(seed: int, *, tested: bool, count: int = 0) -> list[Errand]:
    """Draw details for every errand in every form, as often as makes `count`, or once."""
    rng, forms = random.Random(f"{seed} {tested}"), TESTED_FORMS if tested else LEARNT_FORMS
    found = list[Errand]()
    while len(found) < max(count, 1):
        cases = [(*errand, form) for errand in list_errands(tested=tested) for form in forms]
        for question, deed, form in rng.sample(cases, len(cases)):
            detail, other = rng.sample(ERRANDS[question][1], 2)
            found.append(Errand(deed, form, question, detail, other))
    return found[: count or None]


def make_items(seed: int) -> list[dict[str, Any]]:
    """Make the test items: any answer that names the thing is right where the detail is left out."""
    errands = draw_errands(seed, tested=True)
    bare = [
        {"task": "without the detail", "prompt": each.ask(detail=False), "answer": follow(contains=[each.deed.split()[-1]])}
        for each in errands
    ]
    return bare + [
        {"task": "with the detail", "prompt": each.ask(detail=True), "answer": follow(contains=[each.detail])}
        for each in errands
    ]


def make_pairs(seed: int, arm: str) -> list[dict[str, str]]:
    """Make the pairs of an arm."""
    errands, bare = draw_errands(seed + 1, tested=False, count=PAIRS), arm == REJECTED
    return [
        {
            "prompt": each.ask(detail=not bare),
            "chosen": each.confirm(each.detail),
            "rejected": each.question_back() if bare else each.confirm(each.other),
        }
        for each in errands
    ]


def train_pairs(model: Path, pairs: Sequence[Mapping[str, str]], out: Path, *, seed: int, steps: int) -> None:
    """Go on by TRL's DPO with a new adapter, and save it."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import PrinterCallback
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    from mixwright.learner.load import load_learner
    from mixwright.learner.settings import float32_settings

    learner = load_learner(str(model))
    rows = [
        {"prompt": [{"role": "user", "content": pair["prompt"]}]}
        | {name: [{"role": "assistant", "content": pair[name]}] for name in ("chosen", "rejected")}
        for pair in pairs
    ]
    settings: dict[str, Any] = {"max_steps": steps, "per_device_train_batch_size": PAIR_BATCH, "save_strategy": "no"}
    settings |= {"learning_rate": PAIR_RATE, "logging_strategy": "no", "seed": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        trainer = DPOTrainer(
            model=learner.model,
            args=DPOConfig(output_dir=str(out), **settings, **float32_settings(learner.device)),
            train_dataset=Dataset.from_list(rows),
            processing_class=learner.tokenizer,
            peft_config=LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", task_type="CAUSAL_LM"),
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()
    trainer.save_model(str(out))


@dataclass(frozen=True)
class QuestionsJob:
    """One seed: a model that asks, and both trainings on pairs."""

    seed: int
    quick: bool = False


def ask_verdict(before: Path, after: Path, items: Path, *protect: str) -> tuple[int, str, dict[str, Any]]:
    """Return exit code, headline and verdict of a comparison on the items."""
    out = after.parent / f"verdict of {after.name}{' '.join(protect)}"
    command = [sys.executable, "-m", "mixwright", "verdict", str(before), str(after), "--eval", str(items), *protect]
    command += ["--grader", "follows", "--no-suite", "--max-new-tokens", str(ROOM), "--folder", str(out)]
    here = os.environ | {"MIXWRIGHT_STORE": str(after.parent / "store")}
    told = subprocess.run(command, capture_output=True, text=True, check=False, env=here)
    if told.returncode not in (0, 3, 4):
        raise RuntimeError(told.stderr[-2000:])
    found = json.loads((out / "verdict.json").read_text(encoding="utf-8"))
    return told.returncode, told.stdout.split("\n\n")[0], found


def do_job(job: QuestionsJob) -> dict[str, Any]:
    """Teach questions, train on both kinds of pairs, and have each judged, with the behaviour protected and without."""
    from mixwright.learner.load import load_learner

    taught = draw_errands(job.seed, tested=False, count=TAUGHT.steps * TAUGHT.batch)
    rows = [
        {"task": "errands", "prompt": [{"role": "user", "content": each.ask(detail=place % 2 == 0)}]}
        | {"completion": each.question_back() if place % 2 else each.confirm(each.detail)}
        for place, each in enumerate(taught)
    ]
    arms = dict[str, Any]()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        items = write_rows(folder / "items.jsonl", make_items(job.seed))
        how = replace(TAUGHT, steps=2) if job.quick else TAUGHT
        fine_tune(MODEL, write_rows(folder / "rows.jsonl", rows), folder / "adapter", how, seed=job.seed)
        learner = load_learner(str(folder / "adapter"))
        learner.model.merge_and_unload().save_pretrained(folder / "asks")
        learner.tokenizer.save_pretrained(folder / "asks")
        for arm in (REJECTED, NULL):
            steps = 2 if job.quick else PAIR_STEPS
            train_pairs(folder / "asks", make_pairs(job.seed, arm), folder / arm, seed=job.seed, steps=steps)
            code, headline, found = ask_verdict(folder / "asks", folder / arm, items)
            protected, *_ = ask_verdict(folder / "asks", folder / arm, items, "--protect-behaviour", "asks")
            arms[arm] = {"code": code, "code where it is protected": protected, "headline": headline}
            arms[arm]["success"] = {one["task"]: [one["before"], one["after"]] for one in found["tasks"]}
            arms[arm]["asks"] = [
                {key: one[key] for key in ("task", "before", "after", "shown", "change")}
                for one in found["behaviours"]
                if one["behaviour"] == "asks"
            ]
    row = {"seed": job.seed, "commit": conditions()["commit"], "arms": arms}
    if not job.quick:
        append_row(ROWS_FILE, row)
    return row


def says_that_questions_went(arm: Mapping[str, Any]) -> bool:
    """Whether the verdict shows that the model asks less."""
    return any(one["shown"] and one["after"] < one["before"] for one in arm["asks"])


def measure(quick: bool, begin: bool = True) -> Result:
    """Do the jobs that are left."""
    done = {} if quick else {row["seed"]: row for row in read_rows(ROWS_FILE)}
    jobs = [QuestionsJob(seed, quick) for seed in ((TUNING,) if quick else SEEDS) if begin and seed not in done]
    done |= {row["seed"]: row for row in run_in_processes(do_job, jobs, say="seed")}
    rows = [done[seed] for seed in sorted(done)]
    count, planned, bare = len(rows), 1 if quick else len(SEEDS), "without the detail"
    asked = [next(one["before"] for one in row["arms"][REJECTED]["asks"] if one["task"] == bare) for row in rows]
    goals = [
        Goal(
            "seeds that ask in half of the answers before",
            share_interval(sum(share >= 0.5 for share in asked), count),
            f"{planned} of {planned}",
            count == planned and min(asked) >= 0.5,
        )
    ]
    for arm, wanted in ((REJECTED, planned), (NULL, 0)):
        said = sum(says_that_questions_went(row["arms"][arm]) for row in rows)
        stopped = sum(row["arms"][arm]["code where it is protected"] == 3 for row in rows)
        for name, found in (("fewer questions are shown", said), ("exit code 3 where the behaviour is protected", stopped)):
            reached = count == planned and found == wanted
            goals.append(Goal(f"{arm}: {name}", share_interval(found, count), f"{wanted} of {planned}", reached))
    table = {arm: [row["arms"][arm] for row in rows] for arm in (REJECTED, NULL)}
    about = {"taught": TAUGHT.steps, "steps on pairs": PAIR_STEPS, "rate": PAIR_RATE}
    return Result(goals[1].found, goals[1].name, tuple(row["seed"] for row in rows), rows, table, about, goals=goals)


if __name__ == "__main__":
    run("questions_back", __doc__, measure, kept=True)

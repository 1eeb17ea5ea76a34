"""Exports as the trainers' own released code reads them, beside what a run trains on here (`make readers`).

Each reader runs in an environment of its own, once for all cases: a text as it stands, through a chat template and kept out
of one; talks of several turns with a system message; pairs; prompts of GRPO; rows to rehearse.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from project_files import ROOT
from tokenizers.processors import TemplateProcessing

from mixwright.catalog import listing
from mixwright.config import CorpusConfig, ModelConfig, RunConfig, TrainConfig
from mixwright.contracts import Branch
from mixwright.corpus import Corpus
from mixwright.learner.load import load_learner
from mixwright.learner.prompt_form import PromptForm
from mixwright.plan.mix import Mix
from mixwright.records import Example, Objective, Plan, Stage, plain
from mixwright.trainers.steering import INDEX_COLUMN
from mixwright.trial.training import make_trainer
from mixwright.verbs.export import build_mix, read_text_handling, write_mix
from mixwright_extras.tiny.model import build_tiny

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")]

ENVIRONMENTS = ROOT / "build" / "readers"
TEMPLATE = (
    "{% for message in messages %}{{ '[' + message['role'] + ']\n' + message['content'] + eos_token + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '[assistant]\n' }}{% endif %}"
)
END, ROOM, GROUP, BATCH, STEPS = "<|eos|>", 24, 4, 4, 10


@dataclass(frozen=True)
class Case:
    """Rows of one objective, the model's tokenizer, and the form of prompts that was chosen."""

    objective: Objective
    template: bool = False
    start: bool = False  # whether the tokenizer puts its first token before a text
    talks: bool = False
    chosen: bool | None = None
    system: str | None = None


CASES = {
    "sft-text": Case("sft"),
    "sft-templated": Case("sft", template=True),
    "sft-kept-plain": Case("sft", template=True, start=True, chosen=False),
    "sft-talks": Case("sft", template=True, talks=True, system="Be short."),
    "dpo-text": Case("dpo"),
    "dpo-templated": Case("dpo", template=True),
    "dpo-kept-plain": Case("dpo", template=True, chosen=False),
    "grpo-text": Case("grpo", start=True),
    "grpo-templated": Case("grpo", template=True, system="Be short."),
    "grpo-kept-plain": Case("grpo", template=True, start=True, chosen=False),
}
CASES_OF = {trainer: list(CASES) for trainer in ("axolotl", "llama_factory")}
CASES_OF["verl"] = [name for name, case in CASES.items() if case.objective != "dpo"]  # it takes no pairs


@dataclass(frozen=True)
class Exported:
    """One export, and what a run trains on."""

    mix: Mix
    folder: Path
    own: dict[str, dict[str, str]]
    """Row -> its texts."""

    @property
    def in_order(self) -> list[dict[str, str]]:
        """The rows of the plan's draws."""
        return [self.own[self.mix.corpus[int(row)].id] for row in self.mix.order]


def rows(case: Case) -> Corpus:
    """Two tasks, one of two levels, and a third to rehearse; every second talk begins before its last question."""

    def example(task: str, level: float | None, n: int, split: str) -> Example:
        question, about = f"{task} {n}{int(level or 0)} =", {"task": task, "level": level, "answer": f"{n}", "split": split}
        before = ({"role": "user", "content": f"hello {n}"}, {"role": "assistant", "content": "good day"}) if n % 2 else ()
        prompt = (*before, {"role": "user", "content": question}) if case.talks else question
        texts = {"chosen": f" {n}", "rejected": " none"} if case.objective == "dpo" else {"target": f" {n}. done"}
        return Example(f"{task}{level}{n}", prompt=prompt, **about, **texts)

    tasks = [("sum", 1.0, 9, "train"), ("sum", 2.0, 5, "train"), ("spell it/1", None, 7, "train")]
    tasks += [("old", None, 4, "rehearse")] if case.objective != "grpo" else []
    return Corpus.from_examples(
        [example(task, level, n, split) for task, level, count, split in tasks for n in range(count)]
    )


def planned(case: Case) -> Plan:
    rehearsed = case.objective != "grpo"
    weights = {"sum": 0.5, "spell it/1": 0.25, "old": 0.25} if rehearsed else {"sum": 0.625, "spell it/1": 0.375}
    more: dict[str, Any] = {"rehearse": ("old",)} if rehearsed else {"selector": "equal_levels"}
    return Plan("by hand", (Stage("training", case.objective, STEPS, weights, **{"selector": "uniform", **more}),))


def save_model(case: Case, corpus: Corpus, place: Path) -> None:
    texts = [plain(text) for row in corpus for text in (row.prompt, row.target)]  # apart: no token lies on their border
    learner = build_tiny(texts, ModelConfig(width=16, depth=1, heads=1, vocabulary=300), 0)
    tokenizer = learner.tokenizer
    tokenizer.chat_template = TEMPLATE if case.template else None
    if case.start:
        first = (tokenizer.bos_token, tokenizer.bos_token_id)
        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(f"{first[0]} $A", special_tokens=[first])
    learner.model.save_pretrained(place)
    tokenizer.save_pretrained(place)


def trained_here(case: Case, config: RunConfig, corpus: Corpus, plan: Plan, place: Path) -> dict[str, dict[str, str]]:
    """What TRL's trainers get in a run: of SFT all tokens and those with labels, of DPO the sides, of GRPO the prompt."""
    learner = load_learner(config.model.path, form=PromptForm(case.chosen, case.system))
    decode, train = learner.tokenizer.decode, corpus.training(plan.stages[0].rehearse)
    if case.objective == "grpo":
        return {row.id: {"text": decode(learner.encode(row.prompt)), "answer": row.answer or ""} for row in train}
    made = make_trainer(learner, train, Branch(plan), config.train, config.measure, seed=0, folder=place).train_dataset
    own = {}
    for row in made:
        if case.objective == "dpo":
            texts = {side: decode(row[f"{side}_ids"]) for side in ("prompt", "chosen", "rejected")}
        else:
            kept = [token for token, label in zip(row["input_ids"], row["labels"], strict=True) if label != -100]
            texts = {"text": decode(row["input_ids"]), "trained": decode(kept)}
        own[train[row[INDEX_COLUMN]].id] = texts
    return own


@functools.cache
def exported(trainer: str, name: str, place: Path) -> Exported:
    case, folder = CASES[name], place / trainer / name
    corpus, plan, model = rows(case), planned(case), place / "models" / name
    if not model.exists():
        save_model(case, corpus, model)
    train = TrainConfig(case.objective, STEPS, prompts=BATCH, generations=GROUP, max_new_tokens=ROOM)
    config = RunConfig(
        CorpusConfig("none"), ModelConfig(str(model), chat_template=case.chosen, system=case.system), train=train
    )
    mix = build_mix(plan, corpus, batch=BATCH, num_generations=GROUP, text_handling=read_text_handling(config.model, ROOM))
    said = write_mix(mix, trainer, folder)
    (folder / "model").symlink_to(model)
    (folder / "command.txt").write_text(said[-1].partition("for your GPUs: ")[2], encoding="utf-8")
    return Exported(mix, folder, trained_here(case, config, corpus, plan, place / "runs" / trainer / name))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exports")


@functools.cache
def read(trainer: str, place: Path) -> dict[str, Any]:
    """Case -> what the trainer's own code makes of the export."""
    python = ENVIRONMENTS / trainer / "bin" / "python"
    folders = {name: str(exported(trainer, name, place).folder) for name in CASES_OF[trainer]}
    script = ROOT / "tests" / "export_readers" / f"{trainer}_reader.py"
    own = {"HF_HOME": str(place / "hub"), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [python, script, *folders.values()], cwd=place, env=os.environ | own, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-6000:]
    found = json.loads(done.stdout.splitlines()[-1])
    return {name: found[folder] for name, folder in folders.items()}


def compared(row: dict[str, str]) -> dict[str, str]:
    """A row whose trained texts lack what follows their words: Axolotl trains on no line break after the end token of a
    template, and leaves the end token of plain pairs to TRL."""
    whole = ("text", "prompt", "answer")
    return {name: text if name in whole else text.rstrip().removesuffix(END) for name, text in row.items()}


@pytest.mark.parametrize(("trainer", "name"), [(trainer, name) for trainer, names in CASES_OF.items() for name in names])
def test_a_trainer_trains_on_what_a_run_trains_on(trainer: str, name: str, place: Path) -> None:
    if not (ENVIRONMENTS / trainer / "bin" / "python").exists():
        pytest.skip(f"no environment of {trainer}: make readers")
    case, made, found = CASES[name], exported(trainer, name, place), read(trainer, place)[name]
    source = listing("exports")[trainer].docstring.partition("Source: ")[2]
    assert f" {found['version']}," in source.splitlines()[0], "the version that the export names"
    wanted = [compared(row) for row in made.in_order]
    got = [compared({key: row[key] for key in wanted[0] if key in row}) for row in found["rows"]]
    ends = [END in row[key] for row in found["rows"] for key in ("trained", "chosen", "rejected") if key in row]
    assert all(ends) or (trainer, case.objective) == ("axolotl", "dpo"), "the end is learned, too"
    settings = found["settings"]
    if trainer == "llama_factory":
        check_shares(made, got, settings)
        assert (settings["batch"], settings["max_steps"]) == (BATCH, STEPS)
        assert case.objective != "grpo" or settings["max_new_tokens"] == ROOM
        return
    assert len(got) == STEPS * BATCH
    if (trainer, name) == ("verl", "sft-talks"):  # verl trains on every turn of the assistant, and the export says so
        assert [row["text"] for row in got] == [row["text"] for row in wanted]
        assert all(row["trained"].endswith(own["trained"]) for row, own in zip(got, wanted, strict=True))
    else:
        assert got == wanted
    rollouts = case.objective == "grpo"
    if trainer == "verl":
        assert settings == {"batch": BATCH, "max_steps": STEPS} | ({"group": GROUP, "room": ROOM} if rollouts else {})
    else:
        assert (settings["max_steps"], settings["gradient_accumulation_steps"]) == (STEPS, BATCH)
        assert settings["micro_batch_size"] == (GROUP if rollouts else 1)
        if rollouts:
            assert (settings["trl"]["max_completion_length"], settings["trl"]["num_generations"]) == (ROOM, GROUP)


def check_shares(made: Exported, got: list[dict[str, str]], settings: dict[str, Any]) -> None:
    """Every row of a task and level is read, and each in the plan's share, within four standard errors."""

    def key(row: dict[str, str]) -> tuple[str, ...]:
        return tuple(compared({name: row[name] for name in got[0]}).values())

    parts, corpus = made.mix.parts, made.mix.corpus
    part_of = {key(made.own[corpus[int(row)].id]): part.name for part in parts for row in part.rows}
    counts = Counter(part_of[key(row)] for row in got)
    assert set(map(key, got)) == set(part_of)
    assert settings["shares"] == pytest.approx([part.share for part in parts])
    for part in parts:
        error = (part.share * (1 - part.share) / len(got)) ** 0.5
        assert abs(counts[part.name] / len(got) - part.share) < 4 * error, part.name

"""Files of the demo and of the studies' questions, and the trainings that both are made by."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from mixwright.audit.steps.call_schema import find_faults
from mixwright.config import CorpusConfig, ModelConfig
from mixwright.corpus import read_corpus
from mixwright.corpus.identity import prompt_key
from mixwright.mine.own_answers import usable_prompts
from mixwright.records import plain
from mixwright.tool_calls import find_calls
from mixwright_extras.tiny.model import build_tiny
from mixwright_lab.demo.requests import (
    LEAKED_ITEMS,
    NEW_TASK,
    REPEATED_ROWS,
    SCHEMAS,
    TEST_ITEMS,
    TRAIN_ROWS,
    requests,
    write_requests,
)
from mixwright_lab.demo.training import Training, fine_tune, scale_adapter
from mixwright_lab.studies.questions import ITEMS_PER_TASK, OLD_TASKS, PROMPTS, QUESTIONS_BY_TASK, questions, write_files


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("seed", [0, 7, 123])
def test_flaws_are_planted_as_said(seed: int, tmp_path: Path) -> None:
    files = write_requests(tmp_path / "a", seed)
    train, test, delivered = rows(files.train), rows(files.test), rows(files.delivered)
    assert [row | {"tools": list(SCHEMAS)} for row in train] == rows(files.with_tools)
    called = [(row.tools, call) for row in read_corpus(str(files.with_tools)) for call in find_calls(plain(row.target))]
    assert [find_faults(*call, tools) for tools, call in called] == [[]] * len(train)
    assert (len(train), len(test), len(delivered)) == (TRAIN_ROWS + REPEATED_ROWS, TEST_ITEMS, TEST_ITEMS + LEAKED_ITEMS)
    asked = {prompt_key(row["prompt"]) for row in train}
    assert len({prompt_key(row["prompt"]) for row in train}) == TRAIN_ROWS
    assert sum(prompt_key(row["prompt"]) in asked for row in delivered) == LEAKED_ITEMS
    assert not any(prompt_key(row["prompt"]) in asked for row in test)
    again = write_requests(tmp_path / "b", seed)
    for name in ("train", "test", "delivered"):
        assert getattr(files, name).read_bytes() == getattr(again, name).read_bytes()


@pytest.mark.parametrize("seed", [0, 7, 123])
def test_no_question_stands_on_both_sides(seed: int, tmp_path: Path) -> None:
    files = write_files(tmp_path, seed)
    held_out = rows(files.held_out)
    assert Counter(row["task"] for row in held_out) == dict.fromkeys((NEW_TASK, *OLD_TASKS), ITEMS_PER_TASK)
    assert not {prompt_key(row["prompt"]) for row in rows(files.train)} & {prompt_key(row["prompt"]) for row in held_out}
    _, prompts, _ = usable_prompts(read_corpus(CorpusConfig(str(files.train), str(files.held_out), str(files.prompts))))
    assert Counter(row.task for row in prompts) == PROMPTS  # none is left out: no request is a test item
    right = {question: answer for task in OLD_TASKS for question, answer in questions(task)}
    assert {row["prompt"]: row["completion"] for row in rows(files.answered)}.items() <= right.items()
    assert [row["prompt"] for row in rows(files.answered)] == [row["prompt"] for row in rows(files.prompts)]
    assert not {plain(row.prompt) for row in prompts} & {row["prompt"] for row in held_out}


def test_the_tables_ask_each_thing_once() -> None:
    for task in OLD_TASKS:
        asked = [question for question, _ in questions(task)]
        assert len(set(asked)) == len(asked) >= ITEMS_PER_TASK + PROMPTS.get(task, 0), task
    for form, table in QUESTIONS_BY_TASK.values():
        assert "{}" in form
        assert all(len(entry.split(": ")) == 2 for entry in table.split("; "))
    made = list(requests(random.Random(3)))
    assert len({prompt for prompt, _ in made}) == len(made) >= TEST_ITEMS + TRAIN_ROWS
    assert {call.name for _, call in made} == {"alarm", "call", "weather", "lights", "note"}


def test_an_adapter_scaled_by_a_half_has_half_of_its_alpha(tmp_path: Path) -> None:
    (tmp_path / "narrow").mkdir()
    (tmp_path / "narrow" / "adapter_config.json").write_text(json.dumps({"lora_alpha": 32, "r": 16}))
    (tmp_path / "narrow" / "adapter_model.safetensors").write_bytes(b"weights")
    scale_adapter(tmp_path / "narrow", tmp_path / "half", 0.5)
    assert json.loads((tmp_path / "half" / "adapter_config.json").read_text()) == {"lora_alpha": 16, "r": 16}
    assert (tmp_path / "half" / "adapter_model.safetensors").read_bytes() == b"weights"


def train_tiny(folder: Path, name: str, **given: Any) -> dict[str, Any]:
    """Tensors of the adapter of a tiny model, trained on 64 rows."""
    made = [
        {"task": "t", "prompt": f"{number} = ", "completion": str(number % 10) * (1 + number % 3)} for number in range(64)
    ]
    if not (folder / "start").is_dir():
        learner = build_tiny([row["prompt"] for row in made], ModelConfig(width=16, depth=1, heads=2, vocabulary=264), 0)
        learner.save(folder / "start")
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    how = Training(steps=25, batch=8, rank=4, learning_rate=1e-2)
    fine_tune(str(folder / "start"), folder / "rows.jsonl", folder / name, how, seed=0, **given)
    return load_file(folder / name / "adapter_model.safetensors")


def moved(tensors: dict[str, Any]) -> float:
    return sum(float(value.norm()) for name, value in tensors.items() if "lora_B" in name)


def test_the_penalty_pulls_on_the_weights(tmp_path: Path) -> None:
    """Trained on the same rows, a penalised model stays nearer to its start: the penalty has a gradient."""
    free = moved(train_tiny(tmp_path, "free"))
    assert moved(train_tiny(tmp_path, "weak", penalty=1e-9)) == pytest.approx(free, rel=1e-3)
    assert moved(train_tiny(tmp_path, "strong", penalty=100.0)) < 0.9 * free
    assert moved(train_tiny(tmp_path, "near", penalty=100.0, held_near=tmp_path / "rows.jsonl")) < 0.9 * free


def test_two_rows_at_once_train_the_same_model(tmp_path: Path) -> None:
    """The rows differ in length, so a mean of means over parts of a step would be another gradient."""
    whole, parts = train_tiny(tmp_path, "whole"), train_tiny(tmp_path, "parts", at_once=2)
    for name, value in whole.items():
        assert value.numpy() == pytest.approx(parts[name].numpy(), abs=2e-3), name

"""Files of the demo, the scaled adapter of FULL=1, and what the study of ten seeds counts."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.corpus.identity import prompt_key
from mixwright.mine.own_answers import usable_prompts
from mixwright.records import plain
from mixwright_lab.demo.by_hand import scale_adapter
from mixwright_lab.demo.files import ITEMS_PER_TASK, LEAKED_ITEMS, PROMPTS, REPEATED_ROWS, TRAIN_ROWS, write_files
from mixwright_lab.demo.tables import NEW_TASK, OLD_TASKS, QUESTIONS_BY_TASK, questions, requests
from mixwright_lab.demo.training import Training, fine_tune


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("seed", [0, 7, 123])
def test_flaws_are_planted_as_said_and_nothing_else_stands_on_both_sides(seed: int, tmp_path: Path) -> None:
    files = write_files(tmp_path / "a", seed)
    train, held_out, delivered = rows(files.train), rows(files.held_out), rows(files.delivered)
    assert Counter(row["task"] for row in held_out) == dict.fromkeys((NEW_TASK, *OLD_TASKS), ITEMS_PER_TASK)
    assert Counter(row["task"] for row in train) == {NEW_TASK: TRAIN_ROWS + REPEATED_ROWS}
    assert len({row["prompt"] for row in train}) == TRAIN_ROWS
    asked = {prompt_key(row["prompt"]) for row in train}
    assert sum(prompt_key(row["prompt"]) in asked for row in delivered) == LEAKED_ITEMS
    assert not any(prompt_key(row["prompt"]) in asked for row in held_out)
    read = read_corpus(CorpusConfig(str(files.train), str(files.held_out), str(files.prompts)))
    found = usable_prompts(read)
    assert Counter(row.task for row in found.without_completion) == PROMPTS  # none is left out: no request is a test item
    right = {question: answer for task in OLD_TASKS for question, answer in questions(task)}
    assert {row["prompt"]: row["completion"] for row in rows(files.answered)}.items() <= right.items()
    assert [row["prompt"] for row in rows(files.answered)] == [row["prompt"] for row in rows(files.prompts)]
    assert not {plain(row.prompt) for row in found.without_completion} & {row["prompt"] for row in held_out}
    again = write_files(tmp_path / "b", seed)
    assert [path.read_bytes() for path in vars_of(files)] == [path.read_bytes() for path in vars_of(again)]


def vars_of(files: Any) -> list[Path]:
    return [getattr(files, name) for name in ("train", "delivered", "held_out", "prompts", "answered")]


def test_the_tables_ask_each_thing_once() -> None:
    for task in OLD_TASKS:
        asked = [question for question, _ in questions(task)]
        assert len(set(asked)) == len(asked) >= ITEMS_PER_TASK + PROMPTS.get(task, 0), task
    for form, table in QUESTIONS_BY_TASK.values():
        assert "{}" in form
        assert all(len(entry.split(": ")) == 2 for entry in table.split("; "))
    made = list(requests(random.Random(3)))
    assert len({prompt for prompt, _ in made}) == len(made) >= ITEMS_PER_TASK + TRAIN_ROWS
    assert all(json.loads(call)["tool"] in ("alarm", "call", "weather", "lights", "note") for _, call in made)


def test_an_adapter_scaled_by_a_half_has_half_of_its_alpha(tmp_path: Path) -> None:
    (tmp_path / "narrow").mkdir()
    (tmp_path / "narrow" / "adapter_config.json").write_text(json.dumps({"lora_alpha": 32, "r": 16}))
    (tmp_path / "narrow" / "adapter_model.safetensors").write_bytes(b"weights")
    scale_adapter(tmp_path / "narrow", tmp_path / "half", 0.5)
    assert json.loads((tmp_path / "half" / "adapter_config.json").read_text()) == {"lora_alpha": 16, "r": 16}
    assert (tmp_path / "half" / "adapter_model.safetensors").read_bytes() == b"weights"


def seed_row(seed: int, narrow: int, planned: int, learnt: int) -> dict[str, Any]:
    models = {"before": 0, "narrow": 10, "planned": learnt, "mixed": 6}
    answers = [
        [model, task, "p", "a", "c", float(n < (right if task == NEW_TASK else 5))]
        for model, right in models.items()
        for task in (NEW_TASK, *OLD_TASKS)
        for n in range(10)
    ]
    return {"seed": seed, "codes": {"narrow": narrow, "planned": planned, "mixed": 4}, "answers": answers, "wall": 300}


def test_the_study_counts_exit_codes_apart_and_the_least_success() -> None:
    from mixwright_lab.studies.demo_seeds import figures_of, goals_of, success, table

    found = [seed_row(1, 3, 0, 9), seed_row(2, 3, 4, 10), seed_row(3, 0, 3, 7)]
    assert success(found[0], "planned", NEW_TASK) == 0.9
    reached = {goal.name: (goal.found.value, goal.reached) for goal in goals_of(found)}
    assert reached["tool calls alone: exit code 3"] == (pytest.approx(2 / 3), False)
    assert reached["with the plan: exit code 0"] == (pytest.approx(1 / 3), False)
    assert reached["with the plan: exit code 3"] == (pytest.approx(1 / 3), True)
    assert reached["with the plan: exit code 4, cannot tell"][0] == pytest.approx(1 / 3)
    assert reached["tool calls with the plan: least success"] == (0.7, False)
    assert reached["mixed by hand: exit code 0"][0] == 0
    assert "| 2 | 0.00 / 1.00 / 1.00 / 0.60 | 0.50 / 0.50 / 0.50 / 0.50 |" in table(found)
    figures = figures_of(found)
    assert figures[NEW_TASK]["planned - mixed"]["value"] == pytest.approx((0.3 + 0.4 + 0.1) / 3, abs=1e-4)
    assert figures["protected group"]["planned - before"]["value"] == 0


def test_the_default_plan_is_compared_with_the_quarter_and_the_tenth_by_goals_of_its_own() -> None:
    """A default plan that passes on two of three seeds with tool calls .9, 1 and .7 right; the quarter had .8 on each."""
    from mixwright_lab.studies.demo_seeds import DEFAULT, TENTH, figures_of, goals_of, merged

    found = []
    for seed, code, learnt in ((1, 0, 9), (2, 3, 10), (3, 0, 7)):
        demo = seed_row(seed, 3, 0, 8)
        del demo["codes"]["mixed"]  # a demo of its own trains two models
        found.append(demo)
        for part, right in ((TENTH, 8), (DEFAULT, learnt)):
            answers = [[part, task, "p", "a", "c", float(n < right)] for task in (NEW_TASK, *OLD_TASKS) for n in range(10)]
            found.append({"seed": seed, "codes": {part: code}, "answers": answers, "wall": 9})
    rows = merged(found)
    assert [set(row["codes"]) for row in rows] == [{"narrow", "planned", TENTH, DEFAULT}] * 3
    reached = {goal.name: (goal.found.value, goal.reached) for goal in goals_of(rows)}
    assert reached["with the default plan: exit code 0"] == (pytest.approx(2 / 3), False)
    assert reached["with the default plan: exit code 3"] == (pytest.approx(1 / 3), True)
    assert reached["tool calls with the default plan: mean success"] == (pytest.approx(26 / 30), False)
    assert reached["tool calls with the default plan: least success"] == (0.7, False)
    figures = figures_of(rows)
    assert figures[NEW_TASK]["default - planned"]["value"] == pytest.approx(2 / 30, abs=1e-4)
    assert figures["plurals"]["default - tenth"]["value"] == pytest.approx(2 / 30, abs=1e-4)


def test_the_penalty_pulls_on_the_weights(tmp_path: Path) -> None:
    """Trained on the same rows, a penalised model stays nearer to its start: the penalty has a gradient."""
    from mixwright.config import ModelConfig
    from mixwright.learner.tiny import build_tiny

    rows = [{"task": "t", "prompt": f"{number} = ", "completion": str(number % 10)} for number in range(64)]
    learner = build_tiny([row["prompt"] for row in rows], ModelConfig(width=16, depth=1, heads=2, vocabulary=264), 0)
    learner.save(tmp_path / "start")
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    moved = {}
    for weight in (0.0, 1e-9, 100.0):
        out = tmp_path / str(weight)
        how = Training(steps=25, batch=8, rank=4, learning_rate=1e-2)
        fine_tune(str(tmp_path / "start"), tmp_path / "rows.jsonl", out, how, seed=0, penalty=weight)
        tensors = load_file(out / "adapter_model.safetensors")
        moved[weight] = sum(float(value.norm()) for name, value in tensors.items() if "lora_B" in name)
    assert moved[1e-9] == pytest.approx(moved[0.0], rel=1e-3)
    assert moved[100.0] < 0.9 * moved[0.0]

"""The command `dial` on two tiny checkpoints of which the second has forgotten a task, and what it refuses."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path

import pytest
from cli_call import Call

from mixwright.config import ModelConfig, WarmupConfig
from mixwright.corpus import Corpus
from mixwright.records import Example, Interval
from mixwright_extras.experts.dial import Setting, Sweep
from mixwright_extras.tiny.model import build_tiny
from mixwright_extras.tiny.warmup import warm_up
from mixwright_extras.verbs.dial import format_sweep


def examples(task: str, place: int, count: int, split: str, seed: int) -> list[Example]:
    values = [f"{value:03d}" for value in random.Random(seed).sample(range(1000), count)]
    return [
        Example(f"{split}{task}{v}", task, f"{task} {v} = ", target=v[place], answer=v[place], split=split) for v in values
    ]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders `base`, which knows task a, and `tuned`, trained on b alone; held-out items of both in items.jsonl."""
    folder = tmp_path_factory.mktemp("dial")
    known, new = examples("a", 0, 300, "train", 1), examples("b", 2, 300, "train", 2)
    size, steps = ModelConfig(width=32, depth=2, heads=2, vocabulary=264), WarmupConfig(300, 32, 5e-3)
    learner = build_tiny([f"{row.prompt}{row.target}" for row in (*known, *new)], size, seed=0)
    warm_up(learner, Corpus.from_examples(known), steps, seed=0)
    learner.save(folder / "base")
    tuned = copy.deepcopy(learner)
    warm_up(tuned, Corpus.from_examples(new), steps, seed=1)
    tuned.save(folder / "tuned")
    items = [*examples("a", 0, 40, "eval", 3), *examples("b", 2, 40, "eval", 4)]
    lines = [json.dumps({"task": row.task, "prompt": row.prompt, "answer": row.answer}) for row in items]
    (folder / "items.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.mark.slow
def test_skill_rises_and_knowledge_falls_with_the_strength(models: Path, call: Call) -> None:
    words = ["--eval", str(models / "items.jsonl"), "--grader", "exact", "--keep", "a", "--max-new-tokens", "2"]
    code, out, err = call("dial", str(models / "base"), str(models / "tuned"), *words, "--json", "--max-loss", "1")
    assert code == 0, err
    found = json.loads(out)
    assert found["items"] == {"tuned for": 40, "kept": 40}
    by = {each["alpha"]: each for each in found["settings"]}
    assert list(by) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert by[1.0]["skill"]["value"] > by[0.0]["skill"]["value"] + 0.5
    assert by[0.0]["loss"]["value"] == 0.0
    assert by[1.0]["loss"]["value"] > 0.3, "training on b alone costs a"
    assert found["chosen"] == 1.0, "a budget of everything"
    code, out, _ = call("dial", str(models / "base"), str(models / "tuned"), *words, "--alpha", "1")
    assert code == 0
    assert "No strength can be shown" in out
    assert "[" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "expected --eval FILE"),
        (("--eval", "ITEMS", "--keep", "c"), "task of the items"),
        (("--eval", "ITEMS"), "--keep with some of the tasks a, b, got none"),
        (("--eval", "ITEMS", "--keep", "a", "--keep", "b"), "got all of them"),
        (("--eval", "ITEMS", "--keep", "a", "--alpha", "0"), "--alpha above 0"),
        (("--eval", "ITEMS", "--keep", "a", "--alpha", "nan"), "--alpha above 0"),
        (("--eval", "ITEMS", "--keep", "a", "--sampled"), "greedy decoding, got --sampled"),
    ],
)
def test_what_is_refused(models: Path, call: Call, words: tuple[str, ...], message: str) -> None:
    given = [str(models / "items.jsonl") if word == "ITEMS" else word for word in words]
    code, out, err = call("dial", str(models / "base"), str(models / "tuned"), *given)
    assert (code, out) == (1, "")
    assert message in err


def test_what_is_told() -> None:
    none, half = Interval(0.0, -0.01, 0.01, 40), Interval(0.5, 0.4, 0.6, 40)
    settings = (Setting(0.0, none, none), Setting(0.5, half, none))
    assert "is 0.5: success 50.0 % [40.0, 60.0]" in format_sweep(Sweep(settings, 0.5, 0.02, {"kept": 40}))
    assert "No strength can be shown to lose less than 2% of success on 40 kept items" in format_sweep(
        Sweep(settings, None, 0.02, {"kept": 40})
    )

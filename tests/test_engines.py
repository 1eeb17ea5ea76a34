"""Completions by another engine than transformers: what it is asked, where it is named, and where it is refused."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from cli_call import Call, sums, write
from peft import LoraConfig, get_peft_model
from test_kept_answers import PROMPTS, checkpoints, count_written, learner

from mixwright.catalog import create
from mixwright.errors import InputError
from mixwright.learner import engines, load, vllm_engine
from mixwright.learner.generation import Continuation
from mixwright.learner.learner import Learner
from mixwright.learner.load import load_learner, merge_adapter, plain_source
from mixwright.learner.prompt_form import PromptForm
from mixwright.learner.vllm_engine import VllmEngine
from mixwright.measure.kept_answers import KeepingLearner
from mixwright.run.folder import RunFolder, read_json
from mixwright.run.manifest import RunManifest

pytestmark = pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing. is deprecated:FutureWarning")  # PEFT's call
GREEDY: dict[str, Any] = {"count": 1, "temperature": 0, "max_new_tokens": 3, "seed": 5}


class Sevens:
    """Writes one 7 everywhere."""

    name = "sevens 1"
    made: ClassVar[list[str | None]] = []

    def __init__(self, learner: Learner, folder: str | None = None, *, share: float = 1.0) -> None:
        self.made.append(folder)

    def start(self, learner: Learner, *, engines: int = 1) -> None:
        """It needs no time."""

    def generate(self, learner: Learner, jobs: Any, decoding: Any, progress: Any) -> Iterator[dict[int, Any]]:
        token = learner.tokenizer("7")["input_ids"][-1]
        for index, job in enumerate(jobs):
            yield {index: [Continuation([*job.prefix, token], [float("nan")] * len(job.prefix) + [-1.0], True)] * job.rows}


@pytest.fixture
def sevens(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """In the place of vLLM; the folders that engines were made of."""
    monkeypatch.setattr(engines, "check_installed", lambda: None)
    monkeypatch.setattr(vllm_engine, "VllmEngine", Sevens)
    Sevens.made.clear()
    return Sevens.made


def test_an_engine_writes_in_both_forms_and_transformers_reads() -> None:
    tiny = learner()
    tiny.engine = Sevens(tiny)
    for form in (tiny, tiny.with_form(PromptForm(template=False)), KeepingLearner(tiny, None)):
        assert [row[0].text for row in form.sample(PROMPTS, **GREEDY)] == ["7"] * len(PROMPTS)
    seven = tiny.sample(PROMPTS[:1], **GREEDY)[0][0]
    assert tiny.logprobs(PROMPTS[:1], [seven.token_ids]) == learner().logprobs(PROMPTS[:1], [seven.token_ids])


def test_kept_answers_of_another_engine_are_not_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tiny = tmp_path / "a.jsonl", learner()
    ours = KeepingLearner(tiny, path).sample(PROMPTS, **GREEDY)
    tiny.engine = Sevens(tiny)
    theirs = KeepingLearner(tiny, path).sample(PROMPTS, **GREEDY)
    assert [row[0].text for row in theirs] == ["7"] * len(PROMPTS)
    written = count_written(monkeypatch)
    assert KeepingLearner(learner(), path).sample(PROMPTS, **GREEDY) == ours
    assert written == [], "those of transformers are there yet"


def test_measure_names_the_engine_and_gives_it_what_the_checkpoint_holds(call: Call, sevens: list[str | None]) -> None:
    before, after = checkpoints()
    asked = ("--eval", write("a.jsonl", sums(30)), "--samples", "0", "--max-new-tokens", "4")
    code, _, err = call("measure", before, *asked, "--engine", "vllm", "--folder", "a")
    assert code == 0, err
    assert "engine: sevens 1 generates the completions" in err
    assert read_json(RunFolder("a").manifest, RunManifest).settings["engine"] == "sevens 1"
    assert call("verdict", "--no-suite", before, after, *asked, "--engine", "vllm", "--folder", "c", "--no-gate")[0] == 0
    assert sevens == [before, before, after]
    get_peft_model(load_learner(before).model, LoraConfig(target_modules="all-linear")).save_pretrained("lora")
    assert plain_source("lora") is None
    assert call("measure", before, *asked, "--engine", "vllm", "--adapter", "lora", "--folder", "d")[0] == 0
    assert sevens[3:] == [None], "its weights are in no folder"


@pytest.mark.parametrize("wrong", ["dial", "server"])
def test_an_engine_is_refused_where_it_would_not_write(call: Call, wrong: str) -> None:
    corpus, (before, after) = ("--eval", write("a.jsonl", sums(30))), checkpoints()
    command = {
        "dial": ("dial", before, after, *corpus, "--keep", "all"),
        "server": ("measure", "http://127.0.0.1:9/v1", *corpus),
    }[wrong]
    code, _, err = call(*command, "--engine", "vllm")
    assert code == 1
    assert "expected --engine" in err


def test_a_temperature_that_vllm_does_not_take_is_refused_before_it_starts(call: Call, sevens: list[str | None]) -> None:
    before, _ = checkpoints()
    asked = ("measure", before, "--eval", write("a.jsonl", sums(30)), "--engine", "vllm", "--sampled")
    code, _, err = call(*asked, "--temperature", "3")
    assert (code, sevens) == (1, [])
    assert "a temperature of at most 2" in err


def test_a_missing_package_is_said_before_a_model_is_read(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "vllm" else found(name, *rest))
    before, _ = checkpoints()
    monkeypatch.setattr(load, "load_learner", lambda *_, **__: pytest.fail("weights were read"))
    code, _, err = call("measure", before, "--eval", write("a.jsonl", sums(30)), "--engine", "vllm")
    assert code == 1
    assert "expected the package vllm, for --engine vllm, got none. Install vLLM in a separate environment" in err


def test_weights_that_are_no_plain_model_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm_engine, "engine_name", lambda: "vllm 0")
    tiny = learner()
    tiny.model = create("adapters", "svf").wrap(tiny.model)
    with pytest.raises(InputError, match="a model of plain weights, for --engine vllm, got an adapter or packed weights"):
        VllmEngine(tiny).start(tiny)
    tiny = learner()
    tiny.model = get_peft_model(tiny.model, LoraConfig(target_modules="all-linear"))
    vllm_engine._check_plain(merge_adapter(tiny))

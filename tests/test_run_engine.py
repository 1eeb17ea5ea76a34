"""`measure.engine` in jobs of a run.yaml, by a stand-in for vLLM: who writes, with which weights, and what is taken over."""

from __future__ import annotations

import dataclasses
import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import fake_vllm
import pytest
import torch
from cli_call import Call, sums, write
from first_answers import read_first_answers

import mixwright.trainers.sft
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig, TrialConfig
from mixwright.contracts import Branch
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.learner.learner import Learner
from mixwright.learner.vllm_engine import gpu_share, run_engine
from mixwright.measure.kept_answers import KeepingLearner
from mixwright.measure.passes import Passes
from mixwright.records import Example, Plan, Stage
from mixwright.run.workers import count_cores
from mixwright.trial import branch as branches
from mixwright_extras.probes import transfer
from mixwright_extras.tiny.model import build_tiny

assert mixwright.trainers.sft, "imported before the stand-in is there, so that TRL sees what is installed"
PROMPTS = ["12+7=", "the cat", "1, 2"]
SETTINGS = """
corpus: {train: train.jsonl, eval: eval.jsonl}
model: {path: "tiny:", width: 32, depth: 1, heads: 2, vocabulary: 264, warmup: {steps: 8, batch_size: 16}}
measure: {items: 6, samples: 2, max_new_tokens: 4, probes: [competence]}
train: {objective: sft, steps: 25, prompts: 8, learning_rate: 3.0e-2}
trial: {arms: [uniform, lora], nulls: [], seeds: 1, workers: 1}
"""


def make_learner(seed: int = 3) -> Learner:
    """Random weights, large enough for some tokens to be much likelier than others."""
    learner = build_tiny(PROMPTS * 20, ModelConfig("tiny:", width=32, depth=1, heads=2, vocabulary=264), seed=seed)
    with torch.no_grad():
        for values in learner.model.parameters():
            values.mul_(4)
    return learner


def vllm_config(**measure: Any) -> RunConfig:
    return RunConfig(CorpusConfig("unused"), measure=MeasureConfig(engine="vllm", **measure))


def write_run(settings: str = SETTINGS) -> None:
    rows = [row | {"target": row["answer"]} for row in sums(40)]
    write("train.jsonl", rows[:24])
    write("eval.jsonl", rows[24:])
    Path("run.yaml").write_text(settings)


def greedy_tokens(folder: str) -> dict[str, list[Any]]:
    """Branch -> example, when it was written, and tokens."""
    return {
        path.parent.name: [(row["example"], row["when"], row["tokens"]) for row in read_first_answers(path.parent)]
        for path in Path(folder).glob("trial/*/after.answers.parquet")
    }


def test_a_run_writes_before_and_after_with_one_engine_per_job(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run()
    assert call("run", "run.yaml", "--folder", "plain")[0] == 0
    notes = Path("notes.jsonl").absolute()
    fake_vllm.install(monkeypatch, notes)
    code, _, err = call("run", "run.yaml", "--engine", "vllm", "--folder", "served")
    assert code == 0, err
    assert f"engine: vllm {version('pytest')} " in err
    noted = fake_vllm.notes_of(notes)
    assert [what for what, *_ in noted] == ["start", "end"] * 4, "the starting model, frozen, uniform, lora; one at a time"
    assert [count for what, _, count in noted if what == "start"] == [0] * 4, "trainers and optimisers have gone before"
    folders = [folder for what, folder, _ in noted if what == "start"]
    assert sorted(Path(folder).name for folder in folders if "mixwright-vllm-" not in folder) == [
        "base-0",
        "base-0",
        "model",
    ]
    assert len([folder for folder in folders if "mixwright-vllm-" in folder]) == 1, "merged for the engine alone"
    written = [count for what, _, count in noted if what == "end"]
    assert all(count == 6 * (1 + 2) for count in written[1:])
    assert written[0] >= 6 * (1 + 2)  # and in another form of prompts

    plain, served = greedy_tokens("plain"), greedy_tokens("served")
    assert plain == served
    for arm in ("uniform-0", "lora-0"):
        tokens = {when: [row[2] for row in served[arm] if row[1] == when] for when in ("before", "after")}
        assert tokens["before"] != tokens["after"], "weights that were trained write otherwise"
    for name in ("uniform-0/model/model.safetensors", "lora-0/adapter/adapter_model.safetensors"):
        assert Path(f"plain/trial/{name}").read_bytes() == Path(f"served/trial/{name}").read_bytes()
    assert json.loads(Path("served/manifest.json").read_text())["settings"]["engine"] == f"vllm {version('pytest')}"
    assert "engine" not in json.loads(Path("plain/manifest.json").read_text())["settings"]

    code, _, err = call("run", "run.yaml", "--folder", "served")
    assert code == 1
    assert "another measure (engine)" in err
    assert call("run", "run.yaml", "--engine", "vllm", "--folder", "served")[0] == 0
    assert len(fake_vllm.notes_of(notes)) == len(noted), "what is finished is taken over"


def test_a_scan_of_another_engine_is_not_taken_over(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run()
    fake_vllm.install(monkeypatch, tmp_path / "notes.jsonl")
    scan = ("scan", "run.yaml", "--columns", "pass_1,lengths", "--folder", "run")
    assert call(*scan)[0] == 0
    assert not fake_vllm.notes_of(tmp_path / "notes.jsonl")
    code, _, err = call(*scan, "--engine", "vllm")
    assert code == 0, err
    assert "scanned from other measure" in err
    assert [what for what, *_ in fake_vllm.notes_of(tmp_path / "notes.jsonl")] == ["start", "end"]


def test_rows_to_rehearse_are_answered_by_the_engine(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(SETTINGS.replace("eval: eval.jsonl", "eval: eval.jsonl, rehearse: asked.jsonl"))
    write("asked.jsonl", [{"prompt": f"please {n}"} for n in range(5)])
    fake_vllm.install(monkeypatch, tmp_path / "notes.jsonl")
    assert call("measure", "run.yaml", "--engine", "vllm")[0] == 0
    code, _, err = call("plan", "run.yaml", "--engine", "vllm")
    assert code == 0, err
    (start, *_), (end, _, written) = fake_vllm.notes_of(tmp_path / "notes.jsonl")[2:]
    assert (start, end) == ("start", "end")
    assert written >= 5
    assert call("plan", "run.yaml")[0] == 1


def test_a_dry_run_names_the_engine_and_starts_none(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(SETTINGS.replace("samples: 2", "samples: 2, engine: vllm"))
    fake_vllm.install(monkeypatch, tmp_path / "notes.jsonl")
    code, out, err = call("run", "run.yaml", "--dry-run")
    assert code == 0, err
    assert f"written by vllm {version('pytest')}" in " ".join(out.split())
    assert not (tmp_path / "notes.jsonl").exists()

    def unable(folder: str, **_: Any) -> None:
        raise RuntimeError("no such architecture")

    monkeypatch.setattr(sys.modules["vllm"], "LLM", unable)
    code, _, err = call("measure", "run.yaml")
    assert code == 1
    assert "expected a model that vLLM can serve here" in err
    assert "no such architecture" in err


def test_what_cannot_be_is_refused_before_a_model_is_loaded(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run()
    monkeypatch.setattr("mixwright.learner.load.load_learner", lambda *_, **__: pytest.fail("loaded"))
    monkeypatch.setitem(sys.modules, "vllm", None)  # as if it were not installed
    for verb, *more in (("run",), ("measure",), ("scan",), ("run", "--only", "steer"), ("run", "--only", "trial")):
        code, _, err = call(verb, "run.yaml", *more, "--engine", "vllm")
        assert code == 1
        assert "the package vllm" in err or "an earlier stage" in err, verb
    assert not Path("runs").exists()
    fake_vllm.install(monkeypatch, Path("notes.jsonl"))
    Path("run.yaml").write_text(SETTINGS.replace("samples: 2", "samples: 2, engine: vllm, temperature: 2.5"))
    code, _, err = call("run", "run.yaml", "--dry-run")
    assert (code, "a temperature of at most 2" in err) == (1, True)
    assert call("verdict", "runs/run", "--engine", "vllm")[0] == 1


@pytest.mark.parametrize(
    ("trial", "share"),
    [
        (TrialConfig(workers=1), 1.0),
        (TrialConfig(workers=4), 0.25),
        (TrialConfig(), 1 / count_cores()),
        (TrialConfig(cluster="ray", gpus_per_worker=1.0), 1.0),
        (TrialConfig(cluster="ray", gpus_per_worker=2.0), 1.0),
        (TrialConfig(cluster="ray", gpus_per_worker=0.25, workers=2), 0.25),
        (TrialConfig(cluster="ray", workers=1), 1.0),
        (TrialConfig(cluster="ray", workers=1000), 1 / count_cores()),
    ],
)
def test_workers_of_a_gpu_share_it(trial: TrialConfig, share: float) -> None:
    assert gpu_share(trial) == share


def test_an_adapter_is_merged_for_the_engine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from peft import LoraConfig, get_peft_model

    from mixwright.learner.batches import without_warnings

    fake_vllm.install(monkeypatch, tmp_path / "notes.jsonl")
    learner = make_learner()
    with without_warnings():
        learner.model = get_peft_model(learner.model, LoraConfig(r=2, target_modules=["q_proj", "down_proj"])).eval()
    with torch.no_grad():
        for name, values in learner.model.named_parameters():
            if "lora_B" in name:
                values.normal_(std=1.0)
    before = {name: values.clone() for name, values in learner.model.state_dict().items()}
    how: dict[str, Any] = {"count": 1, "temperature": 0, "max_new_tokens": 6, "seed": 0}
    adapted = learner.sample(PROMPTS, **how)
    with learner.model.disable_adapter():
        assert learner.sample(PROMPTS, **how) != adapted
    with run_engine(vllm_config(), learner, None):
        assert not fake_vllm.notes_of(tmp_path / "notes.jsonl"), "started when something is written"
        served = learner.sample(PROMPTS, **how)
        assert [row[0].token_ids for row in served] == [row[0].token_ids for row in adapted]
        with torch.no_grad():
            next(learner.model.parameters()).mul_(1.01)
        with pytest.raises(InputError, match=r"expected the weights of tiny: as loaded into vLLM, got others"):
            learner.sample(PROMPTS, **how)
        with torch.no_grad():
            next(learner.model.parameters()).copy_(next(iter(before.values())))
    assert learner.engine is None
    assert [what for what, *_ in fake_vllm.notes_of(tmp_path / "notes.jsonl")] == ["start", "end"]
    after = learner.model.state_dict()
    assert set(after) == set(before)
    assert all(torch.equal(values, before[name]) for name, values in after.items())


def test_only_another_engine_than_before_is_in_a_branch_digest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branches that were finished before there was the key stay finished."""
    texts: list[str] = []
    dumps = json.dumps
    monkeypatch.setattr(branches.json, "dumps", lambda value, **how: texts.append(dumps(value, **how)) or texts[-1])
    plan = Plan("any", (Stage("main", "sft", 1, {"all": 1.0}),))
    for engine in ("transformers", "vllm"):
        measure = MeasureConfig(engine=engine)  # type: ignore[arg-type]
        config = RunConfig(CorpusConfig("unused"), measure=measure)
        branches.branch_digest(Branch(plan), config, corpus="", digest_of_base="", arm="uniform", seed=0)
    default, other = (json.loads(text)["measure"] for text in texts)
    assert set(default) == {field.name for field in dataclasses.fields(MeasureConfig)} - {"engine"}
    assert other == default | {"engine": "vllm"}


def test_short_runs_are_read_by_their_own_weights() -> None:
    """Neither the kept answers nor the engine of the model before speak for a copy that was trained."""
    start, trained = make_learner(), make_learner(seed=4)
    start.engine = _Refusing()
    kept = KeepingLearner(start, None)
    items = [Example(f"a{n}", "all", prompt, answer="x", split="eval") for n, prompt in enumerate(PROMPTS)]
    passes = Passes(kept, MeasureConfig(max_new_tokens=4), Corpus.from_examples(items))
    readings = [
        transfer._read_tasks(passes, {"all": items}, model)["entropy"]["all"] for model in (start.model, trained.model)
    ]
    for learner, reading in zip((make_learner(), trained), readings, strict=True):
        written = [row[0].token_ids for row in learner.sample(PROMPTS, count=1, temperature=0, max_new_tokens=4, seed=0)]
        entropy = {n: -float((t.exp() * t).nan_to_num().sum(-1).mean()) for n, t in learner.distributions(PROMPTS, written)}
        assert reading.tolist() == pytest.approx([entropy[n] for n in range(len(PROMPTS))], rel=1e-5)


class _Refusing:
    name = "an engine of other weights"

    def generate(self, *_: Any) -> Any:
        raise AssertionError("asked")

    def start(self, _: Any) -> None:
        raise AssertionError("started")

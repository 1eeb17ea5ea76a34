"""Logs of Inspect in, verdict out; samples have the form of `EvalSample` in inspect_ai."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from cli_call import Call
from log_rows import FOLDER, success, verdict

from mixwright.errors import InputError
from mixwright.logs.inspect_ai import read_inspect
from mixwright.logs.reading import read_log
from mixwright.run.folder import RunFolder, read_measurements


def sample(item: int, grade: Any, *, epoch: int = 1, said: str | None = None) -> dict[str, Any]:
    text = said if said is not None else str(item + 5) if grade == "C" else "0"
    return {
        "id": item,
        "epoch": epoch,
        "input": f"What is {item}+5?",
        "target": str(item + 5),
        "messages": [{"role": "user", "content": f"What is {item}+5?"}],
        "output": {
            "model": "mock/model",
            "choices": [{"message": {"role": "assistant", "content": f"ANSWER: {text}"}, "stop_reason": "stop"}],
            "completion": f"ANSWER: {text}",
            "usage": {"input_tokens": 9, "output_tokens": 3, "total_tokens": 12},
        },
        "scores": {"match": {"value": grade, "answer": text, "explanation": f"ANSWER: {text}"}},
        "metadata": {},
        "model_usage": {},
    }


def log(
    samples: Sequence[dict[str, Any]], *, task: str = "arithmetic", temperature: float = 0.0, **more: Any
) -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": "r",
            "created": "2026-08-01T10:00:00+00:00",
            "task": task,
            "task_id": "t",
            "task_version": 0,
            "task_args": {},
            "dataset": {"name": "sums", "samples": len(samples)},
            "model": "mock/model",
            "config": {"epochs": 1},
            "scorers": [{"name": "match", "options": {}}],
        },
        "plan": {"name": "plan", "steps": [{"solver": "generate", "params": {}}], "config": {"temperature": temperature}},
        "results": {"total_samples": len(samples), "scores": [{"name": "match", "scorer": "match", "metrics": {}}]},
        "stats": {},
        "samples": list(samples),
    } | more


def write_json(path: str, data: Any) -> str:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(json.dumps(data, indent=2), encoding="utf-8")
    return path


def write_eval(path: str, data: dict[str, Any], *, zstd: bool = False) -> str:
    """As Inspect's recorder writes it: a header, a member per sample, journals beside."""
    header = {name: value for name, value in data.items() if name != "samples"}
    members = {"_journal/start.json": {name: header[name] for name in ("version", "eval", "plan")}}
    members |= {f"samples/{one['id']}_epoch_{one['epoch']}.json": one for one in data["samples"]}
    members |= {"summaries.json": [], "header.json": header}
    texts = {name: json.dumps(value).encode() for name, value in members.items()}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    if not zstd:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in texts.items():
                archive.writestr(name, text)
        return path
    Path(path).write_bytes(zip_by_zstd(texts))
    return path


def zip_by_zstd(texts: dict[str, bytes]) -> bytes:
    """A zip file of method 93, as newer versions of Inspect write it."""
    out, central = b"", b""
    for name, text in texts.items():
        packed = pa.Codec("zstd").compress(text, asbytes=True)
        sizes = struct.pack("<IIIHH", zlib.crc32(text), len(packed), len(text), len(name), 0)
        local = struct.pack("<4sHHHHH", b"PK\x03\x04", 63, 0, 93, 0, 0) + sizes + name.encode()
        central += struct.pack("<4sHHHHHH", b"PK\x01\x02", 63, 63, 0, 93, 0, 0) + sizes
        central += struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + name.encode()
        out += local + packed
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, len(texts), len(texts), len(central), len(out), 0)
    return out + central + end


FORMS = {"json": write_json, "eval": write_eval, "zstd": lambda path, data: write_eval(path, data, zstd=True)}


@pytest.mark.parametrize("form", FORMS)
def test_two_logs_are_compared(call: Call, form: str) -> None:
    suffix = "json" if form == "json" else "eval"
    before = FORMS[form](f"before/one.{suffix}", log([sample(n, "C") for n in range(20)]))
    after = FORMS[form](f"after/one.{suffix}", log([sample(n, "C" if n < 11 else "I") for n in range(20)]))
    code, out, err = call("verdict", before, after, "--protect", "arithmetic")
    assert code == 3, out + err
    old, new = success()
    assert (sum(old.values()), sum(new.values())) == (20.0, 11.0)
    value = {row.name: row.value for row in read_measurements(RunFolder(FOLDER).measurements("before"))}
    assert value["greedy.dependence"] == pytest.approx(1.0)


def test_a_sample_is_read(tmp_path: Path) -> None:
    (answer,) = read_inspect(write_json(str(tmp_path / "log.json"), log([sample(3, "I")]))).answers
    assert (answer.task, answer.item, answer.sample, answer.scores) == ("arithmetic", "3", "epoch 1", {"match": 0.0})
    assert (answer.prompt, answer.gold, answer.completion) == ("What is 3+5?", "8", "ANSWER: 0")
    assert (answer.readings, answer.cut) == ({"match": "0"}, False)


def test_epochs_are_samples_of_an_item(call: Call) -> None:
    """Two epochs, of which the second is wrong after: success 1 and .5."""
    both = [sample(n, "C", epoch=epoch) for n in range(12) for epoch in (1, 2)]
    half = [sample(n, "C" if epoch == 1 else "I", epoch=epoch) for n in range(12) for epoch in (1, 2)]
    before = write_eval("before.eval", log(both, temperature=0.8))
    after = write_eval("after.eval", log(half, temperature=0.8))
    assert call("verdict", before, after, "--no-gate")[0] == 0
    old, new = success("pass@1")
    assert (set(old.values()), set(new.values())) == ({1.0}, {0.5})
    assert verdict()["decoding"] == "sampled"


def test_a_model_of_transformers_without_sampling_is_greedy(tmp_path: Path) -> None:
    written = log([sample(1, "C")])
    written["plan"]["config"] = {}
    assert read_log(write_json(str(tmp_path / "a.json"), written)).tasks["arithmetic"].sampled is None
    written["eval"]["model_args"] = {"do_sample": False}
    assert read_log(write_json(str(tmp_path / "b.json"), written)).tasks["arithmetic"].sampled is False
    written["eval"]["model_args"] = "do_sample"
    assert read_log(write_json(str(tmp_path / "c.json"), written)).tasks["arithmetic"].sampled is None


def test_a_folder_has_a_log_for_each_task(call: Call) -> None:
    for when, grade in (("before", "C"), ("after", "I")):
        write_eval(f"{when}/2026_arithmetic_x.eval", log([sample(n, "C") for n in range(12)]))
        write_json(f"{when}/2026_other_y.json", log([sample(n, grade) for n in range(12)], task="other"))
    assert call("verdict", "before", "after", "--no-gate")[0] == 0
    old, new = success()
    assert sum(value for name, value in new.items() if name.startswith("other/")) == 0
    assert sum(old.values()) == 24
    write_json("before/2026_other_z.json", log([sample(n, "I") for n in range(12)], task="other"))
    code, _, err = call("verdict", "before", "after", "--no-gate")
    assert code == 1
    assert "expected one log of each task, got task 'other' in 2026_other_y.json and 2026_other_z.json" in err


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"plan": {"steps": [{"solver": "generate", "params": {}}], "config": {"temperature": 1.0}}},
            "generation temperature: 0.0 before, 1.0 after",
        ),
        (
            {"plan": {"steps": [{"solver": "chain_of_thought", "params": {}}], "config": {"temperature": 0.0}}},
            'solver: [["generate", {}]] before',
        ),
    ],
)
def test_another_decoding_or_solver_sets_the_task_apart(call: Call, changed: dict[str, Any], message: str) -> None:
    samples = [sample(n, "C") for n in range(12)]
    before, after = write_json("before.json", log(samples)), write_json("after.json", log(samples) | changed)
    code, _, err = call("verdict", before, after, "--no-gate")
    assert code == 1
    assert message in err


def test_samples_with_an_error_have_no_score_and_block(call: Call) -> None:
    samples = [sample(n, "C") for n in range(100)]
    failed = [one | {"scores": None, "error": {"message": "timeout"}} if one["id"] < 10 else one for one in samples]
    before, after = write_json("before.json", log(samples)), write_json("after.json", log(failed))
    code, _, err = call("verdict", before, after, "--protect", "arithmetic")
    assert code == 4
    assert "items without match after: 10" in err


@pytest.mark.parametrize(
    ("value", "scores"),
    [
        ("N", {"match": 0.0}),
        ("P", {"match": 0.5}),
        (True, {"match": 1.0}),
        (0.25, {"match": 0.25}),
        (float("nan"), {"match": None}),
        ({"a": "C", "b": 0}, {"match.a": 1.0, "match.b": 0.0}),
        ([1, 0], {"match": None}),
    ],
)
def test_values_are_read_as_inspect_means_them(tmp_path: Path, value: Any, scores: dict[str, float | None]) -> None:
    found = read_inspect(write_json(str(tmp_path / "log.json"), log([sample(1, value)])))
    assert found.answers[0].scores == scores
    assert dict(found.tasks["arithmetic"].unread_value_by_metric) == ({"match": "a list of 2"} if value == [1, 0] else {})


def test_attachments_and_parts_stand_in_the_texts(tmp_path: Path) -> None:
    one = sample(1, "C") | {
        "input": [
            {"role": "user", "content": [{"type": "text", "text": "attachment://ab"}, {"type": "image", "image": "x"}]}
        ]
    }
    one["attachments"] = {"ab": "A long question."}
    one["output"] = {"choices": [{"message": {"content": [{"type": "text", "text": "6"}]}, "stop_reason": "max_tokens"}]}
    (answer,) = read_inspect(write_json(str(tmp_path / "log.json"), log([one]))).answers
    assert answer.prompt == "user: A long question.\n[image]"
    assert (answer.completion, answer.cut) == ("6", True)


@pytest.mark.parametrize("texts", [("attachment://b", "attachment://a"), ("attachment://b" * 20, "text")])
def test_attachments_that_name_each_other_are_put_in_once(tmp_path: Path, texts: tuple[str, str]) -> None:
    one = sample(1, "C") | {"input": "attachment://a", "attachments": dict(zip("ab", texts, strict=True))}
    (answer,) = read_inspect(write_json(str(tmp_path / "log.json"), log([one]))).answers
    assert answer.prompt == texts[0]


@pytest.mark.parametrize("status", ["error", "cancelled", "started"])
def test_an_evaluation_that_did_not_finish_is_refused(tmp_path: Path, status: str) -> None:
    path = write_json(str(tmp_path / "log.json"), log([sample(1, "C")]) | {"status": status})
    with pytest.raises(InputError, match="expected an evaluation that finished"):
        read_log(path)


def test_a_scorer_of_which_no_mean_was_asked_comes_last(tmp_path: Path) -> None:
    samples = [sample(n, "I") for n in range(4)]
    for one in samples:
        one["scores"] = {"aside": {"value": "C"}, **one["scores"]}
    scores = [{"name": "aside", "metrics": {}}, {"name": "match", "metrics": {"mean": {"value": 0.0}}}]
    path = write_json(str(tmp_path / "a.json"), log(samples, results={"total_samples": 4, "scores": scores}))
    assert read_log(path).tasks["arithmetic"].metrics == ("match", "aside")

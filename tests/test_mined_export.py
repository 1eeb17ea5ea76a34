"""Mined rows as TRL, Axolotl, LLaMA-Factory and verl document their fields; by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import plugin_samples as samples
import pyarrow.parquet as pq
import pytest
import yaml

from mixwright.errors import InputError
from mixwright.learner.prompt_form import PromptForm
from mixwright.mine.stage import Mining, write_mined
from mixwright.records import Example, MinedRow, MiningResult
from mixwright.verbs.export import TextHandling, build_mined_mix, write_mix

CORPUS = samples.minable()


def table(place: Path, *, made: bool = False, weights: tuple[float, ...] = (1.0,)) -> Path:
    """Thirty rows of `add` and ten of `times`, or pairs made of them."""
    own = [e for task, count in (("add", 30), ("times", 10)) for e in [e for e in CORPUS if e.task == task][:count]]
    rows = tuple(MinedRow(e.id, weights[n % len(weights)], "why") for n, e in enumerate(own))
    extra: dict[str, Any] = {"parents": [own[0].id], "provenance": "by hand"}
    pairs = tuple(Example(f"{e.id}:p", e.task, e.prompt, chosen=e.answer, rejected="0x", extra=extra) for e in own)
    mined = MiningResult("m", new_rows=pairs) if made else MiningResult("m", rows)
    return write_mined(Mining(mined, {"add": (48, 30), "times": (48, 10)}, 0.0), place / "mine")


def write(place: Path, name: str, **how: Any) -> Path:
    objective = how.pop("objective", "sft")
    write_mix(build_mined_mix(table(place, **how), CORPUS, objective=objective, batch=8), name, place / name)
    return place / name


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("made", "fields"), [(False, {"prompt", "completion"}), (True, {"prompt", "chosen", "rejected"})])
def test_trl_gets_its_columns(made: bool, fields: set[str], tmp_path: Path) -> None:
    out = write(tmp_path, "trl", made=made)
    files = sorted((out / "sources").glob("*.parquet"))
    assert [pq.read_table(file).num_rows for file in files] == [30, 10]
    assert fields <= set(pq.read_table(files[0]).column_names)
    shares = [part["probability"] for part in json.loads((out / "interleave.json").read_text())["sources"]]
    assert shares == [0.75, 0.25]


def test_axolotl_gets_each_row_once_and_pairs_as_dpo(tmp_path: Path) -> None:
    rows = lines(write(tmp_path / "a", "axolotl") / "rows.jsonl")
    assert len({row["id"] for row in rows}) == len(rows) == 40
    assert {"prompt", "completion"} <= set(rows[0])
    out = write(tmp_path / "b", "axolotl", made=True)
    assert yaml.safe_load((out / "axolotl.yaml").read_text())["rl"] == "dpo"
    assert {"prompt", "chosen", "rejected"} <= set(lines(out / "rows.jsonl")[0])


def test_llama_factory_gets_its_description(tmp_path: Path) -> None:
    out = write(tmp_path, "llama-factory", made=True)
    info = json.loads((out / "dataset_info.json").read_text())
    assert all(part["ranking"] and part["columns"]["chosen"] == "chosen" for part in info.values())
    assert sum(len(lines(out / part["file_name"])) for part in info.values()) == 40


def test_verl_gets_its_five_fields_and_no_pairs(tmp_path: Path) -> None:
    out = write(tmp_path, "verl", objective="grpo")
    found = pq.read_table(out / "train.parquet")
    assert {"data_source", "prompt", "ability", "reward_model", "extra_info"} <= set(found.column_names)
    assert found.num_rows == 40
    with pytest.raises(InputError, match="grpo or sft"):
        write(tmp_path / "p", "verl", made=True)
    assert not (tmp_path / "p" / "verl").exists()


def test_rows_are_repeated_by_weight(tmp_path: Path) -> None:
    path = table(tmp_path, weights=(3.0, 1.0))
    mix = build_mined_mix(path, CORPUS, objective="sft", batch=8)
    weights = dict(zip(*(pq.read_table(path)[name].to_pylist() for name in ("id", "weight")), strict=True))
    times = {w: sum(weights[mix.corpus[int(row)].id] == w for row in mix.order) for w in (1.0, 3.0)}
    assert times == {3.0: 120, 1.0: 40}
    assert len(mix.order) == 160


def test_mined_rows_have_the_form_of_the_run(tmp_path: Path) -> None:
    reading = TextHandling(PromptForm(True, "Be short."))
    for made, field in ((False, "messages"), (True, "chosen")):
        mix = build_mined_mix(table(tmp_path / field, made=made), CORPUS, objective="sft", batch=8, text_handling=reading)
        write_mix(mix, "axolotl", tmp_path / field / "out")
        first = lines(tmp_path / field / "out" / "rows.jsonl")[0]
        assert [message["role"] for message in first["messages"]][:2] == ["system", "user"]
        assert (first[field] if made else first["messages"][-1])["role"] == "assistant"

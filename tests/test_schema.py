"""The schemas that `mixwright schema` prints are those of the files that the other verbs write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from cli_call import Call, load_commands, sums, write


def faults(value: Any, schema: Any, names: Any, place: str = "") -> Iterator[str]:
    """Places where a value is not what its schema allows: keys, choices and types."""
    schema = names[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if "anyOf" in schema:
        tried = [list(faults(value, one, names, place)) for one in schema["anyOf"]]
        yield from min(tried, key=len)
        return
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    kinds |= {"integer": int, "number": (int, float)}
    if "type" in schema and not isinstance(value, kinds[schema["type"]]):
        yield f"{place}: {value!r} is no {schema['type']}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place}: {value!r}"
    if isinstance(value, dict):
        known, others = schema.get("properties", {}), schema.get("additionalProperties", True)
        yield from (f"{place}.{key} is missing" for key in schema.get("required", ()) if key not in value)
        for key, part in value.items():
            inner = known.get(key, others)
            yield from [f"{place}.{key} is unknown"] if inner is False else []
            yield from faults(part, inner, names, f"{place}.{key}") if isinstance(inner, dict) else ()
    for number, part in enumerate(value if isinstance(value, list) else ()):
        inner = schema.get("items", {})
        yield from faults(part, inner, names, f"{place}.{number}")


def test_a_written_file_of_each_kind_is_what_its_schema_says(call: Call, tmp_path: Path) -> None:
    from _example_run import build

    build(tmp_path / "run", seeds=2)
    assert call("verdict", "run", "--no-gate")[0] == 0
    assert call("run", write("rows.jsonl", sums(80)), "--init")[0] == 0
    files = {"run": Path("run.yaml"), "plan": Path("run/plan.yaml"), "verdict": Path("run/verdict.json")}
    for kind, path in files.items():
        code, out, _ = call("schema", kind)
        schema = json.loads(out)
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert code == 0
        assert schema["properties"].keys() >= data.keys()
        assert list(faults(data, schema, schema["$defs"])) == []
        (key, *_) = schema["required"]
        del data[key]
        assert list(faults(data, schema, schema["$defs"])) == [f".{key} is missing"]


def test_what_a_command_prints_is_what_its_schema_says(call: Call) -> None:
    assert call("init", "f")[0] == 0
    printing = {
        "audit": ("f/train.jsonl", "--eval", "f/eval.jsonl"),
        "measure": ("f/before.jsonl",),
        "diagnose": ("f/rollouts.jsonl",),
        "rewards": ("includes", "--eval", "f/eval.jsonl"),
        "verdict": ("f/before.jsonl", "f/tuned.jsonl"),
        "review": ("runs/comparison",),
    }
    for verb, arguments in printing.items():
        data, schema = (json.loads(call(*command)[1]) for command in ((verb, *arguments, "--json"), ("schema", verb)))
        assert data.keys() == schema["properties"].keys(), verb
        assert list(faults(data, schema, schema["$defs"])) == [], verb


def test_every_command_prints_json_alone(call: Call) -> None:
    assert all("--json" in {option for one in verb.params for option in one.opts} for verb in load_commands().values())
    code, out, _ = call("init", "g", "--json")
    assert (code, json.loads(out)[0]) == (0, "g/README.md")
    assert json.loads(call("run", "g/train.jsonl", "--init", "--json")[1]) == "run.yaml"
    assert json.loads(call("explain", "formats", "--json")[1])[0]["kind"] == "checks"


def test_another_kind_is_refused(call: Call) -> None:
    assert call("schema", "corpus")[0] == 1


@pytest.mark.parametrize(("value", "count"), [({"a": 1}, 0), ({"a": "x"}, 1), ({}, 1), ({"a": 1, "b": 2}, 1)])
def test_faults_are_found(value: Any, count: int) -> None:
    schema = {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
    assert len(list(faults(value, schema, {}))) == count

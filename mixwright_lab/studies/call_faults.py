"""Study of faults of tool calls: does the audit name calls that break the schemas of their row, and nothing in sound rows?

Rows are public ones that nobody here made, in three forms: ShareGPT with `function_call` (glaive_toolcall_en_demo.json of
LLaMA-Factory, ff6d4d12), a benchmark (multiple, parallel_multiple and live_multiple of the Berkeley function calling
leaderboard, gorilla 6ea57973, the first allowed value of each argument, 200 rows each), and the calls of gpt-4o in tau-bench
(airline, 59a200c6), in OpenAI's form. Files are not committed. The schema check names 7 of their 2,382 calls; the package
jsonschema (with Python's names of types, and no further arguments) names the same 7 and no other. They were read: six calls
are wrong, and in one the schema lists the items of an array as values of the array. These rows are left out as not sound.

Goals, fixed before: of each kind of planted fault, one in a file of 40 rows, .95 are found, in that row and no other; in 100
sound files none has a warning of calls.

Source: own; reports of users (axolotl PR 2909, oumi PR 2599, functionary 71).
Unit: one file of 40 rows with one faulty call.
Cost: two minutes of one core.
Blind spot: calls that fit their schema and are wrong.

    python -m mixwright_lab.studies.call_faults FOLDER [--quick]

FOLDER holds glaive.json, bfcl_multiple.json and bfcl_multiple_gold.json (and so on), tau.json and the folder tau_tools.
"""

from __future__ import annotations

import ast
import copy
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mixwright.audit.checks.traces import Traces
from mixwright.corpus import Corpus, read_corpus
from mixwright.estimates.intervals import share_interval
from mixwright.records import Example, Observation
from mixwright.tool_calls import calls_in
from mixwright_lab.studies.report import Goal, Result, run

ROWS, SEEDS, CLEAN_FILES = 40, tuple(range(1, 31)), 100
LEAST_FOUND, MOST_CLEAN = 0.95, 0.0
READ_AS_WRONG = {"bfcl": (222, 227, 295, 488, 545, 553), "glaive": (260,)}
"""Rows that were read and are not sound, counted from 1."""
Call = dict[str, Any]


def unknown_function(call: Call, schema: dict[str, Any], rng: random.Random) -> bool:
    """Name a function that no tool has."""
    call["name"] += rng.choice(("_v2", "s", "_new"))
    return True


def missing_argument(call: Call, schema: dict[str, Any], rng: random.Random) -> bool:
    """Drop a required argument."""
    names = [name for name in schema.get("required") or () if name in call["arguments"]]
    if names:
        del call["arguments"][rng.choice(names)]
    return bool(names)


def wrong_type(call: Call, schema: dict[str, Any], rng: random.Random) -> bool:
    """Write a number or a truth value as words, or a text as a list."""
    names = [name for name in call["arguments"] if _type_of(schema, name) in ("integer", "number", "boolean", "string")]
    if names:
        name = rng.choice(names)
        call["arguments"][name] = [call["arguments"][name]] if _type_of(schema, name) == "string" else "three"
    return bool(names)


def wrong_enum(call: Call, schema: dict[str, Any], rng: random.Random) -> bool:
    """Give a value that is not listed."""
    names = [name for name in call["arguments"] if (schema.get("properties") or {}).get(name, {}).get("enum")]
    if names:
        name = rng.choice(names)
        call["arguments"][name] = f"{call['arguments'][name]}_other"
    return bool(names)


def unknown_argument(call: Call, schema: dict[str, Any], rng: random.Random) -> bool:
    """Add an argument that the function does not have."""
    call["arguments"][rng.choice(("verbose", "locale_hint", "request_note"))] = "yes"
    return bool(schema.get("properties"))


def null_argument(call: Call, schema: dict[str, Any], rng: random.Random) -> bool:
    """Add an argument of another function of the file, null, as tables of structs do."""
    call["arguments"]["argument_of_another_row"] = None
    return bool(schema.get("properties"))


PLANTS: dict[str, Callable[[Call, dict[str, Any], random.Random], bool]] = {
    "unknown function": unknown_function,
    "missing argument": missing_argument,
    "wrong type": wrong_type,
    "wrong enum": wrong_enum,
    "unknown argument": unknown_argument,
    "null argument": null_argument,
}


def _type_of(schema: dict[str, Any], name: str) -> Any:
    names = {"float": "number"}
    kind = ((schema.get("properties") or {}).get(name) or {}).get("type")
    return names.get(kind, kind) if isinstance(kind, str) else None


def _talk(row: Example) -> list[dict[str, Any]]:
    return [dict(turn) for text in (row.prompt, row.target) if isinstance(text, tuple) for turn in text]


def read_public(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of the three public sets, as OpenAI's messages or as they are."""
    parts = ("multiple", "parallel_multiple", "live_multiple")
    read = (row for part in parts for row in read_benchmark(folder, part)[:200])
    benchmark = [{name: row[name] for name in ("messages", "tools")} for row in read]
    trees = (ast.parse(path.read_text("utf-8")) for path in sorted((folder / "tau_tools").glob("*.py")))
    functions = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    told = (node.body[-1] for node in functions if node.name == "get_info")
    tools = [ast.literal_eval(node.value) for node in told if isinstance(node, ast.Return) and node.value is not None]
    talks = [row["traj"] for row in json.loads((folder / "tau.json").read_text("utf-8"))]
    for talk in talks:
        while talk[-1]["role"] != "assistant":
            talk.pop()
    kept = ("role", "content", "tool_calls", "tool_call_id", "name")
    played = [
        {"messages": [{key: turn[key] for key in kept if key in turn} for turn in talk], "tools": tools} for talk in talks
    ]
    return {"glaive": json.loads((folder / "glaive.json").read_text("utf-8")), "bfcl": benchmark, "tau": played}


def read_benchmark(folder: Path, part: str) -> list[dict[str, Any]]:
    """Return the rows of a part of the benchmark as OpenAI's messages; `allowed` has all that it allows of each call."""
    asked, gold = (_read_lines(folder / f"bfcl_{part}{end}.json") for end in ("", "_gold"))
    right, found = {row["id"]: row["ground_truth"] for row in gold}, []
    for row in asked:
        calls = [
            {"type": "function", "function": {"name": name, "arguments": _first_allowed(arguments)}}
            for call in right[row["id"]]
            for name, arguments in call.items()
        ]
        answer = {"role": "assistant", "content": None, "tool_calls": calls}
        found.append({"messages": [*row["question"][0], answer], "tools": row["function"], "allowed": right[row["id"]]})
    return found


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _first_allowed(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return arguments with the first value that the benchmark allows; without those that may be left out first."""
    listed = {name: values if isinstance(values, list) and values else [values] for name, values in arguments.items()}
    return {name: _resolve(values[0]) for name, values in listed.items() if values[0] != ""}


def _resolve(value: Any) -> Any:
    if isinstance(value, dict):
        return _first_allowed(value)
    return [_first_allowed(one) if isinstance(one, dict) else one for one in value] if isinstance(value, list) else value


def plant(row: Example, kind: str, rng: random.Random) -> Example | None:
    """Return a row with one fault in one of its calls; None where it has no place for it."""
    sides: dict[str, list[Any]] = {"prompt": list(row.prompt), "target": list(row.target or ())}
    places = [(side, at) for side, turns in sides.items() for at, turn in enumerate(turns) if turn.get("tool_calls")]
    rng.shuffle(places)
    for side, at in places:
        turn: dict[str, Any] = copy.deepcopy(dict(sides[side][at]))
        call = rng.choice(turn["tool_calls"])["function"]
        tool = next(tool["function"] for tool in row.tools if tool["function"]["name"] == call["name"])
        if PLANTS[kind](call, tool.get("parameters") or {}, rng):
            turns = (*sides[side][:at], turn, *sides[side][at + 1 :])
            changed: dict[str, Any] = {"prompt": row.prompt, "target": row.target, side: turns}
            return Example(row.id, row.task, **changed)
    return None


def audit(rows: Sequence[Example]) -> list[Observation]:
    """Return the warnings of the check of traces that come from schemas."""
    found = Traces().check(Corpus.from_examples(rows))
    return [one for one in found if one.severity == "warning" and one.null == "the schemas in the row's tools"]


def judge(sound: Sequence[Example], kind: str, seed: int) -> dict[str, Any] | None:
    """Return whether one planted fault is found, in its row, and what else is said."""
    rng = random.Random(f"{kind} {seed}")
    rows = rng.sample(list(sound), min(ROWS, len(sound)))
    for place in rng.sample(range(len(rows)), len(rows)):
        if (faulty := plant(rows[place], kind, rng)) is not None:
            found = audit([*rows[:place], faulty, *rows[place + 1 :]])
            named = {one["id"] for observation in found for one in observation.evidence}
            return {"kind": kind, "seed": seed, "found": named == {faulty.id}, "said": [one.message for one in found]}
    return None


def measure(quick: bool, folder: Path) -> Result:
    """Plant faults in sound rows of each file, and look at files without any."""
    seeds, clean_files = (SEEDS[:2], 4) if quick else (SEEDS, CLEAN_FILES)
    rows, clean, counts = list[dict[str, Any]](), list[dict[str, Any]](), dict[str, Any]()
    public = read_public(folder)
    for name, given in public.items():
        with tempfile.TemporaryDirectory() as place:
            path = Path(place, "rows.jsonl")
            path.write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
            read = list(read_corpus(str(path)))
        called = [(at, row) for at, row in enumerate(read, 1) if any(calls_in(turn) for turn in _talk(row))]
        sound = [row for at, row in called if at not in READ_AS_WRONG.get(name, ())]
        counts[name] = {"rows": len(read), "with calls": len(called), "sound": len(sound)}
        for kind in PLANTS:
            judged = (judge(sound, kind, seed) for seed in seeds)
            rows += [{"file": name, **one} for one in judged if one is not None]
        for seed in range(-(-clean_files // len(public))):
            said = audit(random.Random(f"clean {seed}").sample(sound, min(ROWS, len(sound))))
            clean.append({"file": name, "seed": seed, "kind": "clean", "said": [one.message for one in said]})
    shares = {"all": share_interval(sum(row["found"] for row in rows), len(rows))}
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        by_kind[row["kind"]].append(row["found"])
    least = min(by_kind.values(), key=lambda found: sum(found) / len(found))
    worst = share_interval(sum(least), len(least))
    false = share_interval(sum(bool(one["said"]) for one in clean), len(clean))
    goals = [
        Goal.at_least("planted faults found, the worst kind", worst, LEAST_FOUND),
        Goal.at_most("warnings of calls in sound files", false, MOST_CLEAN),
    ]
    figures = {
        "found by kind": {kind: [sum(found), len(found)] for kind, found in by_kind.items()},
        "rows": counts,
        "without a place for a fault": len(public) * len(seeds) * len(PLANTS) - len(rows),
    }
    return Result(shares["all"], "share of planted faults of calls found", seeds, [*rows, *clean], figures, goals=goals)


if __name__ == "__main__":
    place = Path(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else Path("public")
    run("call_faults", __doc__, lambda quick: measure(quick, place))

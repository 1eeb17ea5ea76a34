"""Findings of the laboratory that plug-ins rest on, and the words of their kept results; it is not imported."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path
from typing import Any

from mixwright.catalog import Entry, listing
from mixwright.errors import one_line

LAB = "mixwright_lab"
KEPT = ("reproduced", "in part")
"""Words of a finding that a plug-in may rest on."""


def rests_on(entry: Entry, lab: Path | None = None) -> list[str]:
    """A sentence per finding that names the plug-in in its `FEATURES`; of a finding, what came out.

    Args:
        entry: the plug-in.
        lab: folder of the laboratory; None takes the installed one.
    """
    lab = lab or _installed()
    if lab is None:
        return []
    if entry.kind == "findings":
        return [f"Result: {word(entry.name, lab)}."] if (lab / "findings" / f"{entry.name}.py").is_file() else []
    found = []
    for name in listing("findings"):
        if f"{entry.kind}/{entry.name}" in features(lab / "findings" / f"{name}.py"):
            came = word(name, lab)
            doubt = "" if came in KEPT else "; so the laboratory does not support it"
            found.append(f"Rests on the finding {name}: {came}{doubt}.")
    return found


def features(source: Path) -> tuple[str, ...]:
    """The literal `FEATURES` of the finding in that file; empty where there is none."""
    try:
        tree = ast.parse(source.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return ()
    for node in (line for each in tree.body if isinstance(each, ast.ClassDef) for line in each.body):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == "FEATURES" for target in targets):
            try:
                return tuple(map(str, ast.literal_eval(node.value)))
            except (ValueError, TypeError):
                return ()
    return ()


def word(name: str, lab: Path) -> str:
    """Word of the kept result at scale laptop; "not run" where there is none."""
    try:
        result: Any = json.loads((lab / "results" / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "not run"
    except (OSError, ValueError, RecursionError):
        return "its result cannot be read"
    if not isinstance(result, dict) or result.get("scale") != "laptop":
        return "not run"
    return one_line(str(result.get("word")))[:40]


def _installed() -> Path | None:
    spec = importlib.util.find_spec(LAB)  # of a name without dots it imports nothing
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None

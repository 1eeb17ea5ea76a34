"""Words of the laboratory: what came of the published claims that a plug-in or a finding rests on, from its kept results."""

from __future__ import annotations

import ast
import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.catalog import Entry, listing
from mixwright.errors import one_line
from mixwright.records import Interval
from mixwright.verdict.page.text import format_interval, format_signed

LAB_PACKAGE = "mixwright_lab"
NOT_RUN = {"word": "not run"}
"""Result of a finding that was not run at scale laptop."""
SUPPORTING_WORDS = ("reproduced", "in part")
"""Words of a contrast that a plug-in may rest on."""
TURNED_PREFIX = "-"
"""Before the name of a contrast in which the plug-in is what is subtracted: it rests on a refuted one."""


def describe_support(entry: Entry, lab: Path | None = None) -> list[str]:
    """A sentence per finding that names the plug-in in its `FEATURES`, with its contrasts; of a finding, what came out.

    Args:
        entry: the plug-in.
        lab: folder of the laboratory; None takes the installed one.
    """
    if lab is None:
        spec = importlib.util.find_spec(LAB_PACKAGE)  # of a name without dots it imports nothing
        if spec is None or not spec.submodule_search_locations:
            return []
        lab = Path(spec.submodule_search_locations[0])
    if entry.kind == "findings":
        is_ours = (lab / "findings" / f"{entry.name}.py").is_file()
        return [f"Result: {_read_kept_result(entry.name, lab)['word']}."] if is_ours else []
    features = {name: read_features(lab / "findings" / f"{name}.py") for name in listing("findings")}
    feature = f"{entry.kind}/{entry.name}"
    return [_summarise_contrasts(name, found[feature], lab) for name, found in features.items() if feature in found]


def find_word(finding: str) -> str:
    """Return the word of the laboratory on a finding; empty without a card."""
    return " ".join(describe_support(Entry("findings", finding, "", "", ""))).removeprefix("Result: ").rstrip(".")


def _summarise_contrasts(name: str, contrasts: Sequence[str], lab: Path) -> str:
    """What the contrasts that judge a plug-in came to. The word of the whole finding would not do: it is that of its worst
    contrast, which may judge another plug-in.
    """
    result = _read_kept_result(name, lab)
    if result is NOT_RUN:
        return f"Rests on the finding {name}: not run; so the laboratory does not support it."
    if not contrasts:
        return f"Was run in the finding {name}, where no contrast judges it."
    kept = {contrast["name"]: contrast for contrast in result["contrasts"]}
    texts, words, is_supported = list[str](), set[str](), False
    for contrast_name in contrasts:
        is_turned, plain_name = contrast_name.startswith(TURNED_PREFIX), contrast_name.removeprefix(TURNED_PREFIX)
        word = kept.get(plain_name, NOT_RUN)["word"]
        figure = _format_figure(kept[plain_name]) if plain_name in kept else ""
        texts.append(f"{one_line(plain_name)}{' (subtracts it)' if is_turned else ''}: {word}{figure}")
        words.add(word)
        is_supported |= word == "refuted" if is_turned else word in SUPPORTING_WORDS
    doubt = "; so the laboratory does not support it"
    if "inconclusive" in words:
        doubt = "; so the laboratory cannot tell whether it helps, and has not shown that it does not"
    return f"Rests on the finding {name}: {'; '.join(texts)}{'' if is_supported else doubt}."


def _format_figure(contrast: Mapping[str, Any]) -> str:
    """The mean of a contrast and its interval, behind a comma."""
    unit = str(contrast["unit"])
    interval = Interval(contrast["value"], contrast["low"], contrast["high"], 2)
    shown_unit = "share" if unit == "points" else unit
    return f", {format_signed(interval.value, shown_unit)} {unit} {format_interval(interval, shown_unit)}"


def read_features(source: Path) -> dict[str, tuple[str, ...]]:
    """The literal `FEATURES` of the finding in that file: plug-in -> contrasts; empty where there is none."""
    tree = ast.parse(source.read_bytes() if source.is_file() else "")
    statements = [statement for node in tree.body if isinstance(node, ast.ClassDef) for statement in node.body]
    for node in statements:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "FEATURES":
            return ast.literal_eval(node.value)  # type: ignore[union-attr] - an assignment
    return {}


def _read_kept_result(name: str, lab: Path) -> dict[str, Any]:
    """The kept result at scale laptop, or `NOT_RUN`."""
    path = lab / "results" / "findings" / f"{name}.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return result if result.get("scale") == "laptop" else NOT_RUN

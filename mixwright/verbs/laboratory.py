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
SUPPORTING_WORDS = ("reproduced", "in part")
"""Words of a contrast that a plug-in may rest on."""
UNDECIDED_WORD = "inconclusive"
"""Word of a contrast that too few seeds, or too wide an interval, left open."""
TURNED_PREFIX = "-"
"""Before the name of a contrast: read the other way round, for a plug-in that stands on its right."""


def describe_support(entry: Entry, lab: Path | None = None) -> list[str]:
    """A sentence per finding that names the plug-in in its `FEATURES`, with its contrasts; of a finding, what came out.

    Args:
        entry: the plug-in.
        lab: folder of the laboratory; None takes the installed one.
    """
    if lab is None:
        spec = importlib.util.find_spec(LAB_PACKAGE)  # of a name without dots it imports nothing
        lab_folders = spec.submodule_search_locations if spec else None
        lab = Path(next(iter(lab_folders))) if lab_folders else None
    if lab is None:
        return []
    if entry.kind == "findings":
        if not (lab / "findings" / f"{entry.name}.py").is_file():
            return []
        result = _read_kept_result(entry.name, lab)
        return [f"Result: {result if isinstance(result, str) else one_line(str(result.get('word')))[:40]}."]
    sentences = []
    for name in listing("findings"):
        contrasts = read_features(lab / "findings" / f"{name}.py").get(f"{entry.kind}/{entry.name}")
        if contrasts is not None:
            sentences.append(_summarise_contrasts(name, contrasts, lab))
    return sentences


def find_word(finding: str) -> str:
    """Return the word of the laboratory on a finding; empty without a card."""
    return " ".join(describe_support(Entry("findings", finding, "", "", ""))).removeprefix("Result: ").rstrip(".")


def _summarise_contrasts(name: str, contrasts: Sequence[str], lab: Path) -> str:
    """What the contrasts that judge a plug-in came to. The word of the whole finding would not do: it is that of its worst
    contrast, which may judge another plug-in.
    """
    result = _read_kept_result(name, lab)
    if isinstance(result, str):
        return f"Rests on the finding {name}: {result}; so the laboratory does not support it."
    if not contrasts:
        return f"Was run in the finding {name}, where no contrast judges it."
    contrast_by_name = {
        contrast_data.get("name"): contrast_data
        for contrast_data in result.get("contrasts", ())
        if isinstance(contrast_data, dict)
    }
    contrast_texts, words = [], []
    for contrast_name in contrasts:
        contrast, is_turned = contrast_name.removeprefix(TURNED_PREFIX), contrast_name.startswith(TURNED_PREFIX)
        word, text = _read_contrast(contrast_by_name.get(contrast), turned=is_turned)
        contrast_texts.append(f"{one_line(contrast)[:200]}{' (turned round)' if is_turned else ''}: {text}")
        words.append(word)
    doubt = "the laboratory does not support it"
    if UNDECIDED_WORD in words:
        doubt = "the laboratory cannot tell whether it helps, and has not shown that it does not"
    ending = "" if set(words) & set(SUPPORTING_WORDS) else f"; so {doubt}"
    return f"Rests on the finding {name}: {'; '.join(contrast_texts)}{ending}."


def _read_contrast(contrast: Mapping[str, Any] | None, *, turned: bool) -> tuple[str, str]:
    """The word of a contrast, and the same with its mean and interval; turned round, what was subtracted is ahead."""
    if contrast is None:
        return "not run", "not run"
    try:
        value, low, high, min_size = (float(contrast[field]) for field in ("value", "low", "high", "least"))
        word, unit, noise = str(contrast["word"]), one_line(str(contrast["unit"]))[:40], float(contrast.get("noise") or 0.0)
    except (KeyError, TypeError, ValueError):
        return "not run", "not run"
    if turned:
        value, low, high = -value, -high, -low
        word = turned_word(word, value, low, high, max(min_size, noise))
    is_share = unit == "points"
    interval, shown_unit = Interval(value, low, high, 2), "share" if is_share else unit
    size_text = f"{format_signed(value, shown_unit)} {format_interval(interval, shown_unit)}"
    return word, f"{one_line(word)[:40]}, {size_text.replace(' [', f' {unit} [', 1)}"


def turned_word(word: str, value: float, low: float, high: float, min_size: float) -> str:
    """The word of the same contrast the other way round, by the laboratory's rule.

    Args:
        word: the kept word; one that is inconclusive stays so, since too few seeds decide nothing in either direction.
        value: the mean turned round.
        low: lower end of its interval.
        high: upper end of it.
        min_size: size that was asked for, and that of the noise.
    """
    if word == UNDECIDED_WORD:
        return word
    if low > 0 and value >= min_size:
        return "reproduced"
    if high < 0:
        return "refuted"
    if high < min_size:
        return "not reproduced"
    return "in part" if low > 0 else UNDECIDED_WORD


def read_features(source: Path) -> dict[str, tuple[str, ...]]:
    """The literal `FEATURES` of the finding in that file: plug-in -> contrasts; empty where there is none."""
    try:
        tree = ast.parse(source.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return {}
    for node in (
        statement for class_node in tree.body if isinstance(class_node, ast.ClassDef) for statement in class_node.body
    ):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(isinstance(target, ast.Name) and target.id == "FEATURES" for target in targets):
            try:
                return {str(name): tuple(map(str, contrasts)) for name, contrasts in ast.literal_eval(node.value).items()}
            except (ValueError, TypeError, AttributeError):
                return {}
    return {}


def _read_kept_result(name: str, lab: Path) -> dict[str, Any] | str:
    """The kept result at scale laptop, or what to say where there is none."""
    try:
        result: Any = json.loads((lab / "results" / "findings" / f"{name}.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return "not run"
    except (OSError, ValueError, RecursionError):
        return "its result cannot be read"
    if not isinstance(result, dict) or result.get("scale") != "laptop":
        return "not run"
    return result

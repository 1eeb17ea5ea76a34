"""contributing/evidence/controllers.md speaks of every lever there is, and quotes the committed results."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from project_files import ROOT

from mixwright.catalog import listing
from mixwright.errors import InputError
from mixwright_lab.studies import levers

PAGE = (ROOT / "contributing" / "evidence" / "controllers.md").read_text(encoding="utf-8")


def test_every_lever_is_told():
    ours = {
        kind: [name for name, entry in listing(kind).items() if entry.module.startswith("mixwright.")]
        for kind in ("selectors", "gates", "controllers", "monitors")
    }
    missing = [name for names in ours.values() for name in names if not re.search(rf"`{name}`|\b{name}\b", PAGE)]
    assert missing == []


def test_the_table_is_that_of_the_results():
    assert levers.written(PAGE) == PAGE


def test_a_row_of_the_table_by_hand():
    shown = {"success": [0.0123, -0.004, 0.0289]}
    assert levers.cell(shown) == "+1.2 [-0.4, 2.9]"
    assert levers.cell(None) == ""


def triples(data: Any) -> Iterator[tuple[float, float, float]]:
    """Every (value, low, high) of a result's figures."""
    if isinstance(data, dict):
        for name in ("value", "rate"):
            if {name, "low", "high"} <= data.keys():
                yield data[name], data["low"], data["high"]
        for part in data.values():
            yield from triples(part)
    elif isinstance(data, list) and len(data) == 3 and all(isinstance(part, float | int) for part in data):
        yield data[0], data[1], data[2]
    elif isinstance(data, list):
        for part in data:
            yield from triples(part)


def as_printed(values: Iterable[float], decimals: int) -> tuple[str, ...]:
    return tuple(f"{round(value, decimals) + 0.0:.{decimals}f}" for value in values)


def test_every_interval_of_the_page_is_that_of_a_result() -> None:
    """In points or as it stands, either way round (gain or loss). A block of code shows one run, which is no result."""
    known = set()
    for path in (ROOT / "mixwright_lab" / "results" / "studies").glob("*.json"):
        for value, low, high in triples(json.loads(path.read_text(encoding="utf-8"))["figures"]):
            for scale in (1, 100):
                for decimals in (0, 1, 2):
                    known.add(as_printed((scale * value, scale * low, scale * high), decimals))
                    known.add(as_printed((-scale * value, -scale * high, -scale * low), decimals))
    whole = (ROOT / "contributing" / "evidence" / "controllers.md").read_text(encoding="utf-8")
    text = re.sub(r"\s+", " ", re.sub(r"^```.*?^```$", "", whole, flags=re.DOTALL | re.MULTILINE))
    number = r"([+-]?\d+(?:\.\d+)?)"
    found = list(re.finditer(rf"{number}(?: (?:%|points|times))? ?\[{number}(?: %)?, {number}(?: %)?\]", text))
    assert found
    for match in found:
        decimals = max(len(end.partition(".")[2]) for end in match.groups())
        assert as_printed(map(float, match.groups()), decimals) in known, match.group(0)


@pytest.mark.parametrize("fault", [levers.END, levers.BEGIN, levers.GOALS_END])
def test_a_page_without_its_markers_is_left_alone(fault: str) -> None:
    for broken in (PAGE.replace(fault, ""), PAGE + fault):
        with pytest.raises(InputError, match="nothing was written"):
            levers.written(broken)

"""Faults of conversations with tools: calls that break their schemas, and identifiers that nothing before them gave.

Whether a field is copied from what stands before is seen from the data: where under a quarter of its values do, nothing is
said of it. Left out on purpose: whether the right tool is called, and values that somebody works out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mixwright.audit.steps.call_schema import KINDS, Fault, find_faults
from mixwright.audit.steps.tool_events import Event
from mixwright.audit.steps.wrong_values import MAX_OPERATIONS, placed, warning
from mixwright.estimates.intervals import wilson
from mixwright.records import Observation, Severity

MIN_FAULTY, MOST_FAULTY = 5, 0.03
"""Conversations with a fault, below which nothing is said, and their share of those that cite, above which it warns."""
LEAST_COPIED = 0.25
"""Share of a field's values that stand before, from which on the others are faults."""
MAX_KEPT = 50_000
"""Rows of one field."""
_IDENTIFIER = re.compile(r"(?=.{0,63}\d)[\w#:./-]{4,64}")
_NO_IDENTIFIER = re.compile(
    r"\d{4}-\d\d-\d\d.*|\d{1,2}[:/.]\d\d.*|-?\d{1,4}(?:\.\d+)?|-?\d+\.\d+|\d{1,3}[a-zA-Z]{1,3}|https?:.*|v?\d+(?:\.\d+)+"
)
Key = tuple[str, str]
"""Tool and field."""


class Citation(NamedTuple):
    """An identifier of a call: whether it stands before it, only after it, or nowhere."""

    key: Key
    state: str
    """known, early or dangling."""
    text: str
    span: tuple[int, int] | None


@dataclass
class CallFaults:
    """Conversations of one task."""

    conversations: int = 0
    known: dict[Key, int] = field(default_factory=lambda: defaultdict(int))
    """Field -> identifiers that stand before."""
    unknown: dict[Key, list[tuple[Citation, dict[str, Any]]]] = field(default_factory=lambda: defaultdict(list))
    """Field -> those that do not, with their rows."""
    calls: int = 0
    """Calls that were read."""
    unchecked: int = 0
    """Those of them whose row has no tools, or whose tool no schema."""
    without_tools: int = 0
    """Calls as structures in rows without tools, which a model learns without seeing them."""
    broken: dict[str, list[tuple[Fault, dict[str, Any]]]] = field(default_factory=lambda: defaultdict(list))
    """Kind of fault -> calls with it, each once, with their rows."""

    def add(
        self,
        events: Sequence[Event],
        row: dict[str, Any],
        tools: Sequence[Mapping[str, Any]] = (),
        *,
        has_structures: bool = False,
    ) -> None:
        """Counts the conversation of a row, and checks its calls against its tools; they are structures, or text."""
        self.conversations += 1
        for call in (one for one in events if one.kind == "call"):
            self.calls += 1
            faults = find_faults(call.name, call.data, tools) if tools else None
            self.unchecked += faults is None
            self.without_tools += has_structures and not tools
            for kind, first in {fault.kind: fault for fault in reversed(faults or ())}.items():
                if len(self.broken[kind]) < MAX_KEPT:
                    self.broken[kind].append((first, row | {"step": call.text[:200], **placed(call.span)}))
        for one in citations(events):
            if one.key not in self.known and len(self.known) == MAX_OPERATIONS:
                continue
            self.known[one.key] += one.state == "known"
            if one.state != "known" and len(self.unknown[one.key]) < MAX_KEPT:
                self.unknown[one.key].append((one, row))

    def observe(self, task: str) -> list[Observation]:
        """Warnings."""
        found = []
        cited = {key for key in self.known if self.known[key] >= LEAST_COPIED * self._total(key)}
        total = sum(self._total(key) for key in cited)
        pairs = [pair for key in sorted(cited) for pair in self.unknown[key]]
        for state, words, remedy in (
            (
                "dangling",
                "cite an identifier that nothing before provides",
                "Correct or drop these rows, or the model learns to make things up",
            ),
            ("early", "cite an identifier before the call that returns it", "Restore the order of these rows or drop them"),
        ):
            rows = [(one, row) for one, row in pairs if one.state == state]
            if len(rows) >= MIN_FAULTY and wilson(len(rows), total)[0] > MOST_FAULTY:
                fields = ", ".join(sorted({f"{one.key[0]}.{one.key[1]}" for one, _ in rows})[:3])
                text = f"{len(rows)} of {total} arguments {words} ({fields}), such as {rows[0][0].text!r}."
                listed = [row | {"step": one.text, **placed(one.span)} for one, row in rows]
                found.append(warning(task, len(rows), total, text, f"{remedy} (--out lists them).", listed, "none"))
        return self._observe_schemas(task) + found

    def _observe_schemas(self, task: str) -> list[Observation]:
        """Calls that break the schemas of their tools, by kind, and how many were not checked."""
        found = []
        for kind, words in KINDS.items():
            broken = self.broken.get(kind, [])
            if not broken:
                continue
            places = Counter(fault.where for fault, _ in broken)
            shown = ", ".join(name for name, _ in places.most_common(3)) + (", ..." if len(places) > 3 else "")
            reason = f", such as {broken[0][0].why}" if broken[0][0].why else ""
            text = f"{len(broken)} of {self.calls} tool calls {words} ({shown}{reason})."
            listed = [row | {"fault": fault.where} for fault, row in broken]
            remedy = "Correct or drop these rows (--out lists them), or add the tool to the row."
            found.append(warning(task, len(broken), self.calls, text, remedy, listed, "the schemas in the row's tools"))
        if self.unchecked:
            text = f"{self.unchecked} of {self.calls} tool calls were not checked: their rows have no schema of the tool."
            severity: Severity = "warning" if self.without_tools else "info"
            remedy = "Add the column tools: the model has to see them, too."
            found.append(Observation("traces", task, severity, self.unchecked, self.calls, text, remedy))
        return found

    def _total(self, key: Key) -> int:
        return self.known[key] + len(self.unknown[key])


def citations(events: Sequence[Event]) -> Iterator[Citation]:
    """Identifiers in the arguments of calls, each once: those of the assistant's own words do not count as given."""
    given = ""
    seen = set[str]()
    calls = 0
    results = [one.text.lower() for one in events if one.kind == "result"]
    for one in events:
        if one.kind in ("asked", "result"):
            given += one.text.lower() + "\n"
        if one.kind != "call":
            continue
        calls += 1
        for name, value in _scalars(one.data or {}):
            shown = str(value).lower()
            if not _is_identifier(name, value) or shown in seen:
                continue
            seen.add(shown)
            # the result of this call may repeat its arguments
            is_later = any(shown in text for text in results[calls:])
            state = "known" if shown in given else "early" if is_later else "dangling"
            yield Citation((one.name, name), state, f"{one.name}({name}={value})"[:120], one.span)


def _is_identifier(name: str, value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, str | int):
        return False
    if isinstance(value, int):
        return value >= 10_000 and bool(re.search(r"id$|number|code|ref|key|no$", name, re.IGNORECASE))
    return bool(_IDENTIFIER.fullmatch(value)) and not _NO_IDENTIFIER.fullmatch(value)


def _scalars(data: Any, name: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Names and values of the leaves of a JSON value, down to some depth."""
    if isinstance(data, dict):
        for key, one in data.items():
            yield from _scalars(one, str(key)[:60], depth + 1) if depth < 6 else ()
    elif isinstance(data, list):
        for one in data[:50]:
            yield from _scalars(one, name, depth + 1) if depth < 6 else ()
    else:
        yield name, data

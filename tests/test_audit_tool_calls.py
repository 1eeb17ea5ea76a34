"""Conversations with tools: forms, identifiers and their order by hand, and a user's file with tool calls."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

import pytest
from cli_call import Call as CallCommand
from cli_call import write

from mixwright.audit.checks.traces import Traces
from mixwright.audit.steps.call_faults import citations
from mixwright.audit.steps.tool_events import MAX_EVENTS, has_calls, read_events
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.tool_messages import with_tools
from mixwright.records import Example, Observation, plain
from mixwright.tool_calls import Call, find_calls, read_tools

FIND, BOOK = (
    {"name": "find", "arguments": {"city": "Cork"}},
    {"name": "book", "arguments": {"hotel_id": "H-4711", "nights": 3}},
)
TOOLS = read_tools(
    [
        {"name": "find", "parameters": {"properties": {"city": {"type": "string"}}}},
        {"name": "book", "parameters": {"properties": {"hotel_id": {"type": "string"}, "nights": {"type": "integer"}}}},
    ]
)
FOUND, BOOKED = {"hotels": [{"hotel_id": "H-4711"}]}, {"price": 312.5}


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{json.dumps(FIND)}\n</tool_call>\n<tool_response>\n{json.dumps(FOUND)}\n</tool_response>\n"
        "It is H-4711.",
        f"<functioncall> {json.dumps(FIND)}\nFUNCTION RESPONSE: {json.dumps(FOUND)}\nIt is H-4711.",
        f'Action: find\nAction Input: {{"city": "Cork"}}\nObservation: {json.dumps(FOUND)}\nIt is H-4711.',
        f'{{"tool": "find", "city": "Cork"}}\nResult: {json.dumps(FOUND)}\nIt is H-4711.',
        f"{json.dumps({'tool_calls': [{'function': FIND | {'arguments': json.dumps(FIND['arguments'])}}]})}\n"
        f"Tool Result: {json.dumps(FOUND)}\nIt is H-4711.",
    ],
)
def test_forms_of_one_call(text: str) -> None:
    assert has_calls(text)
    events = read_events("A hotel in Cork.", text)
    assert [(one.kind, one.name) for one in events] == [("asked", ""), ("call", "find"), ("result", "")]
    assert (events[1].data, json.dumps(FOUND) in events[2].text) == ({"city": "Cork"}, True)
    assert all(one.span is None or text[slice(*one.span)] == one.text for one in events)


def test_texts_without_calls_have_none() -> None:
    for text in ('{"name": "Ann", "age": 3}', "Action: none", "{ not json", "[1, 2]", '{"city": "Cork"}'):
        assert not any(one.kind == "call" for one in read_events("?", text))
    assert len(read_events("?", '{"tool": "a"}\n' * 3000)) <= MAX_EVENTS


def _chat(*turns: tuple[str, Any]) -> list[dict[str, str]]:
    return [{"role": role, "content": text if isinstance(text, str) else json.dumps(text)} for role, text in turns]


def _states(turns: Sequence[dict[str, str]]) -> list[str]:
    return [one.state for one in citations(read_events(turns[:-1], turns[-1:]))]


def test_where_identifiers_come_from() -> None:
    """From a result, from the request, from a later result, from nowhere; what the assistant says is no source."""
    user, answer = ("user", "Cork, 3 nights."), ("assistant", "Done.")
    find, book = [("assistant", FIND), ("tool", FOUND)], [("assistant", BOOK), ("tool", BOOKED)]
    assert _states(_chat(user, *find, *book, answer)) == ["known"]
    assert _states(_chat(("user", "Book h-4711."), *book, answer)) == ["known"]
    assert _states(_chat(user, *book, *find, answer)) == ["early"]
    assert _states(_chat(user, *book, answer)) == ["dangling"]
    assert _states(_chat(user, ("assistant", "I take H-4711."), ("user", "Yes."), *book, answer)) == ["dangling"]
    echoed = [("assistant", BOOK), ("tool", BOOKED | {"hotel_id": "H-4711"})]
    assert _states(_chat(user, *echoed, answer)) == ["dangling"]  # a call's own result repeats its arguments


def _check(share: float, change: str) -> list[Observation]:
    """Two hundred bookings, a share of them changed in one way."""
    rng, rows = random.Random(1), []
    for number in range(200):
        identifier, nights, price = f"H-{rng.randrange(10**5, 10**6)}", rng.randrange(13, 40), rng.randrange(200, 900)
        is_changed = rng.random() < share
        cited = f"H-{rng.randrange(10**5, 10**6)}" if is_changed and change == "cited" else identifier
        find, book = (
            (("assistant", FIND), ("tool", [{"hotel_id": identifier}])),
            (
                ("assistant", {"name": "book", "arguments": {"hotel_id": cited, "nights": nights}}),
                ("tool", {"price": price}),
            ),
        )
        middle = [*book, *find] if is_changed and change == "order" else [*find, *book]
        turns = _chat(("user", f"{nights} nights in Cork."), *middle, ("assistant", f"It costs {price}."))
        rows.append(Example(f"i{number}", "hotels", with_tools(tuple(turns[:-1]), TOOLS), target=tuple(turns[-1:])))
    return Traces().check(Corpus.from_examples(rows))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("cited", "cite an identifier that nothing before provides (book.hotel_id)"),
        ("order", "cite an identifier before the call that returns it (book.hotel_id)"),
    ],
)
def test_faults_are_told_where_they_are_many(change: str, words: str) -> None:
    (told,) = [one for one in _check(0.2, change) if one.severity == "warning"]
    assert words in told.message
    assert 20 < told.count < 60
    assert "start" not in told.evidence[0]  # the call stands in the prompt
    (sound,) = _check(0.0, change)
    assert (sound.severity, sound.total) == ("info", 200)


def test_a_field_that_is_never_copied_is_left_alone() -> None:
    """Identifiers that the caller makes up on purpose, as keys of new records."""
    rows = [
        Example(f"i{n}", "new", "Add it.", target=json.dumps({"name": "create", "arguments": {"key": f"K-{n * 7919}"}}))
        for n in range(100)
    ]
    assert [one.severity for one in Traces().check(Corpus.from_examples(rows))] == ["info"]


def test_a_file_with_tool_calls_is_audited(call: CallCommand) -> None:
    function = {"name": "book", "arguments": json.dumps({"hotel_id": "H-99123", "nights": 3})}
    rows = [
        {
            "messages": [
                {"role": "user", "content": f"{n} nights in Cork, hotel H-{77000 + n}."},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "type": "function", "function": function}],
                },
            ]
        }
        for n in range(3, 40)
    ]
    path = write("calls.jsonl", rows)
    first = next(iter(read_corpus(str(path))))
    held = {"name": "book", "arguments": {"hotel_id": "H-99123", "nights": 3}}
    assert first.target == (
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": held}]},
    )
    assert find_calls(plain(first.target)) == [Call("book", held["arguments"])]
    code, out, _ = call("audit", path, "--check", "traces", "--json")
    assert (code, "37 of 37 tool calls were not checked" in out) == (0, True)

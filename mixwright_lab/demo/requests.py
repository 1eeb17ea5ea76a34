"""Files of the demo: requests that become tool calls, with the flaws of real files. Both flaws are planted."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixwright.run.folder import write_text
from mixwright.tool_calls import Call, write_calls

TRAIN_ROWS, TEST_ITEMS = 180, 30
LEAKED_ITEMS, REPEATED_ROWS = 12, 8
"""Test items planted in the training file; rows planted twice."""
NEW_TASK = "tool_calls"
"""The task that it is to learn."""
TIMES = ("5:30", "6:00", "6:30", "6:45", "7:00", "7:15", "7:30", "8:00", "8:15", "8:30", "9:00", "10:00")
NAMES = ("Anna", "Ben", "Carla", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Karl", "Lena")
PLACES = ("Oslo", "Lima", "Rome", "Cairo", "Paris", "Delhi", "Perth", "Quito", "Sofia", "Turin", "Miami", "Osaka")
ROOMS = ("kitchen", "bedroom", "office", "garage", "hall", "bathroom")
THINGS = (
    *("buy milk", "water the plants", "pay the rent", "send the letter", "feed the cat", "book a table"),
    *("fix the bike", "wash the car", "return the book", "bake a cake", "sell the sofa", "order paper"),
)
TOOLS: dict[str, tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]] = {
    "alarm": (
        ("Wake me at {time}.", "Set an alarm for {time}.", "I have to get up at {time}.", "Alarm at {time}, please."),
        (("time", TIMES),),
    ),
    "call": (
        ("Call {name}.", "Please phone {name}.", "Ring {name} for me.", "I want to talk to {name}."),
        (("name", NAMES),),
    ),
    "weather": (
        ("Will it rain in {city}?", "Weather for {city}, please.", "How warm is it in {city}?", "Is it sunny in {city}?"),
        (("city", PLACES),),
    ),
    "lights": (
        (
            *("Turn {state} the lights in the {room}.", "Lights {state} in the {room}."),
            *("Please switch the {room} lights {state}.", "I want the lights {state} in the {room}."),
        ),
        (("room", ROOMS), ("state", ("on", "off"))),
    ),
    "note": (
        ("Remind me to {text}.", "Do not let me forget to {text}.", "Note: {text}.", "I must {text}."),
        (("text", THINGS),),
    ),
}
"""Tool -> wordings of a request, and the arguments that it takes, in the order of the call."""
SCHEMAS = tuple(
    {
        "type": "function",
        "function": {
            "name": tool,
            "parameters": {
                "type": "object",
                "properties": {name: {"type": "string"} for name, _ in arguments},
                "required": [name for name, _ in arguments],
            },
        },
    }
    for tool, (_, arguments) in TOOLS.items()
)
"""Schemas of the tools."""


@dataclass(frozen=True, slots=True)
class RequestFiles:
    """JSONL files of one demo."""

    with_tools: Path
    """Requests with their tool calls, and the schemas of all tools in each row."""
    train: Path
    """The same rows without the schemas."""
    delivered: Path
    """Test items as delivered: some of them stand in the training file."""
    test: Path
    """Test items without these."""


def write_requests(folder: Path, seed: int) -> RequestFiles:
    """Write the files; the same seed gives the same bytes.

    Args:
        folder: made where it is missing.
        seed: of which requests are test items, of their wording, and of the order of rows.
    """
    rng = random.Random(seed)
    calls = list(requests(rng))
    test, train = calls[:TEST_ITEMS], calls[TEST_ITEMS : TEST_ITEMS + TRAIN_ROWS]
    trained, delivered = train + train[-REPEATED_ROWS:], test + train[:LEAKED_ITEMS]
    rows = [_train_row(prompt, call) for prompt, call in rng.sample(trained, len(trained))]
    parts = {
        "with_tools": [{**row, "tools": list(SCHEMAS)} for row in rows],
        "train": rows,
        "delivered": [_test_row(prompt, call) for prompt, call in rng.sample(delivered, len(delivered))],
        "test": [_test_row(prompt, call) for prompt, call in rng.sample(test, len(test))],
    }
    files = RequestFiles(**{name: folder / f"{name}.jsonl" for name in parts})
    for name, part in parts.items():
        write_text(getattr(files, name), "".join(json.dumps(row) + "\n" for row in part))
    return files


def _train_row(prompt: str, call: Call) -> dict[str, Any]:
    answer = {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call._asdict()}]}
    return {"task": NEW_TASK, "prompt": [{"role": "user", "content": prompt}], "completion": [answer]}


def _test_row(prompt: str, call: Call) -> dict[str, Any]:
    return {"task": NEW_TASK, "prompt": [{"role": "user", "content": prompt}], "answer": write_calls([call])}


def requests(rng: random.Random) -> Iterator[tuple[str, Call]]:
    """Requests and their tool calls, each once, in an order drawn by `rng`; tools take turns until one has no more."""
    every = {
        tool: [(form, *values) for form in forms for values in _values(places)] for tool, (forms, places) in TOOLS.items()
    }
    for own in every.values():
        rng.shuffle(own)
    while all(every.values()):
        for tool, own in every.items():
            form, *values = own.pop()
            given = dict(zip((name for name, _ in TOOLS[tool][1]), values, strict=True))
            yield form.format(**given), Call(tool, given)


def _values(arguments: tuple[tuple[str, tuple[str, ...]], ...]) -> Iterator[tuple[str, ...]]:
    """Every combination of the arguments."""
    if not arguments:
        yield ()
        return
    for value in arguments[0][1]:
        for rest in _values(arguments[1:]):
            yield (value, *rest)

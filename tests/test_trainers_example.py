"""The two-line drop-in, and what importing the package costs."""

from __future__ import annotations

import json
from pathlib import Path

import forked

EXAMPLE = Path(__file__).parent.parent / "examples" / "drop_in_grpo.py"


def test_the_drop_in_adds_two_lines_and_runs(tmp_path: Path) -> None:
    added = [line for line in EXAMPLE.read_text().splitlines() if line.endswith("# mixwright")]
    assert len(added) == 2
    done = forked.script(EXAMPLE, str(tmp_path))
    assert done.code == 0, done.err[-3000:]
    proof = json.loads((tmp_path / "steering" / "proof.json").read_text())
    assert proof["groups"] == 30 * 4
    decisions = [json.loads(line) for line in (tmp_path / "steering" / "decisions.jsonl").read_text().splitlines()]
    refused = [decision for decision in decisions if decision["what"] == "refuse.double" and decision["new"] == "refused"]
    assert refused, "the task out of reach is refused by name"

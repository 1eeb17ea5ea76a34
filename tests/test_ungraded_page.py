"""Pages without graded answers: the recommendation begins them, in the outcome's own unit, and none says "success"."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_call import Call, write
from trainers_tiny import model, tokenizer

from mixwright.runs import RunFolder

SETTINGS = """
corpus: {{train: rows.jsonl, eval_share: 0.5}}
model: {{width: 16, depth: 1, heads: 2, vocabulary: 264, warmup: {{steps: 2, batch_size: 4}}}}
measure: {{items: 20, probes: [{probe}]}}
plan: {{planner: proportional}}
train: {{objective: {objective}, steps: {steps}, prompts: 8, learning_rate: {rate}}}
trial: {{arms: [uniform], nulls: [], seeds: 5, workers: 1}}
"""
SAID = [{"instruction": f"Say {n}", "output": f"The word {n} is said as it is written."} for n in range(40)]
PAIRS = [{"prompt": f"Say {n}: ", "chosen": f"yes {n}", "rejected": f"no, never {n}"} for n in range(40)]
CHATS = [
    {"messages": [{"role": "user", "content": f"say {n}"}, {"role": "assistant", "content": f"{n} it is, and so {n}."}]}
    for n in range(40)
]


def first_lines(run: RunFolder, out: str) -> tuple[str, str]:
    """The first line of what a command printed, and the heading of the page."""
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", run.page.read_text(encoding="utf-8"), re.DOTALL)
    assert heading is not None
    return " ".join(out.split()), heading[1]


def check_page(run: RunFolder) -> dict[str, Any]:
    """Nothing is called success, and what the page shows stands in verdict.json."""
    page, data = run.page.read_text(encoding="utf-8"), json.loads(run.data.read_text(encoding="utf-8"))
    assert "success" not in page.split("</style>")[-1].lower()
    assert "success" not in json.dumps({name: part for name, part in data.items() if name != "settings"}).lower()
    assert [part["name"] for part in data["sections"][:2]] == ["headline", "held_out"]
    headings = [part["title"] for part in data["sections"]]
    assert re.findall(r"<h2>(.*?)</h2>", page) == [title for title in headings if title]
    assert sum(block["kind"] == "Headline" for part in data["sections"] for block in part["blocks"]) == 1
    return data


@pytest.mark.parametrize(
    ("objective", "rate", "steps"),
    [("sft", 0.01, 12), ("sft", 0.5, 3), ("dpo", 0.01, 12)],
)
def test_a_run(objective: str, rate: float, steps: int, call: Call) -> None:
    write("rows.jsonl", SAID if objective == "sft" else PAIRS)
    probe = "held_out_loss" if objective == "sft" else "preference"
    Path("run.yaml").write_text(SETTINGS.format(objective=objective, probe=probe, rate=rate, steps=steps), encoding="utf-8")
    code, out, err = call("run", "run.yaml")
    assert code == 0, err
    print(out)
    run = RunFolder("runs/run")
    import shutil
    shutil.copytree("runs/run", f"/tmp/hI_{objective}_{rate}", dirs_exist_ok=True)
    print(first_lines(run, out))
    check_page(run)

"""Pages without graded answers: the recommendation begins them, in the outcome's own unit, and none says "success"."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from cli_call import Call, write
from trainers_tiny import model, tokenizer

from mixwright.run.folder import RunFolder

SETTINGS = """
corpus: {{train: rows.jsonl, eval_share: 0.5}}
model: {{width: 16, depth: 1, heads: 2, vocabulary: 264, warmup: {{steps: 2, batch_size: 4}}}}
measure: {{items: 20, probes: [{probe}]}}
plan: {{planner: proportional}}
train: {{objective: {objective}, steps: {steps}, prompts: 8, learning_rate: {rate}}}
trial: {{arms: [uniform], nulls: [], seeds: 5, workers: 1}}
"""
SAID = [{"instruction": f"Say {n}", "output": f"The word {n} is said as it is written."} for n in range(40)]
PAIRS = [{"prompt": f"Say {n}: ", "chosen": f"yes, it is {n}", "rejected": f"no {n}"} for n in range(40)]
CHATS = [
    {"messages": [{"role": "user", "content": f"say {n}"}, {"role": "assistant", "content": f"{n}, and so {n}."}]}
    for n in range(40)
]
KEPT = "Keep uniform: it is better than not training, and no other arm was tried."
RUNS = {
    "SFT that learns": (SAID, "sft", 0.01, 12, KEPT, ("-", "nats per token", "improves")),
    "SFT that gets worse": (SAID, "sft", 0.5, 3, "Stop: task all is being damaged by every arm (uniform).",
                            ("+", "nats per token", "worsens")),
    "DPO": (PAIRS, "dpo", 0.01, 12, KEPT, ("+", "points", "improves")),
}  # fmt: skip


def check_first(run: RunFolder, out: str, sentence: str) -> dict[str, Any]:
    """The sentence begins terminal, page and verdict.json; nothing is called success, and no second headline decides."""
    page, data = run.page.read_text(encoding="utf-8"), json.loads(run.verdict_data.read_text(encoding="utf-8"))
    heading = re.search(r"<h1[^>]*>(.*?)</h1>", page)
    assert heading is not None
    assert (out.splitlines()[0], heading[1], data["recommendation"]["sentence"]) == (sentence,) * 3
    for shown in (out, page.split("</style>")[-1], json.dumps(data)):
        assert "success" not in shown.lower()
    parts = data["sections"]
    assert [part["name"] for part in parts][:4] == ["headline", "held_out", "learnt", "damaged"]
    assert re.findall(r"<h2>(.*?)</h2>", page) == [part["title"] for part in parts if part["title"]]
    assert sum(block["kind"] == "Headline" for part in parts for block in part["blocks"]) == 1
    return data


@pytest.mark.parametrize("name", RUNS)
def test_a_run(name: str, call: Call) -> None:
    rows, objective, rate, steps, sentence, (sign, unit, word) = RUNS[name]
    write("rows.jsonl", rows)
    probe = "held_out_loss" if objective == "sft" else "preference"
    Path("run.yaml").write_text(SETTINGS.format(objective=objective, probe=probe, rate=rate, steps=steps), encoding="utf-8")
    code, out, err = call("run", "run.yaml")
    assert code == 0, err
    data = check_first(RunFolder("runs/run"), out, sentence)
    fact = data["sections"][0]["blocks"][0]["facts"][0]
    (effect,) = (effect for effect in data["effects"] if effect["name"] in ("loss", "preference"))
    assert (effect["word"], fact["note"].rsplit("; ")[-1]) == (word, word)
    assert fact["value"].replace("\N{MINUS SIGN}", "-")[0] == sign
    assert fact["value"].endswith(unit)
    (contrast,) = data["rests_on"]["contrasts"]
    assert (contrast["difference"]["value"] > 0) == (word == "improves"), "above 0 where the arm is better"
    assert abs(contrast["difference"]["value"]) == abs(effect["difference"]["value"])
    assert contrast["difference"]["low"] <= contrast["difference"]["value"] <= contrast["difference"]["high"]
    (cell,) = data["cells"]
    assert cell["after"] - cell["before"] == pytest.approx(cell["change"]["value"])
    assert data["outcome"]["lower_is_better"] == (objective == "sft")


TEMPLATE = "{% for m in messages %}{{ m['role'][0] + '=' + m['content'] + ' ' }}{% endfor %}a="


@pytest.fixture
def chats(call: Call) -> str:  # in the folder of `call`
    """Rows `chats.jsonl`; `flat` finds every token equally likely; `sure` is the same model, sure of wrong tokens."""
    for name, factor in (("flat", 0.0), ("sure", 40.0)):
        made = model(0)
        with torch.no_grad():
            made.get_output_embeddings().weight.mul_(factor)
        made.save_pretrained(name)
        saved = tokenizer()
        saved.chat_template = TEMPLATE
        saved.save_pretrained(name)
    return write("chats.jsonl", CHATS)


FELL = (
    "flat may replace the model before: held-out loss is lower by 7.29 nats per token. Whether its answers are right is not "
    "known: none was graded."
)
COMPARED = {
    "better": ("sure", "flat", FELL),
    "worse": ("flat", "sure", "Do not ship sure: task all is damaged."),
    "the same": ("flat", "flat", "Nothing is gained by flat: held-out loss changed by less than 0.05 nats per token."),
}


@pytest.mark.parametrize("name", COMPARED)
def test_two_checkpoints(name: str, chats: str, call: Call) -> None:
    before, after, sentence = COMPARED[name]
    code, out, err = call("verdict", before, after, "--corpus", chats, "--samples", "3")
    assert code == 0, err
    assert "no answer can be graded, so held-out loss is compared" in err
    assert "nothing is done with --samples" in err
    run = RunFolder("runs/comparison")
    data = check_first(run, out, sentence)
    flat = [cell["before"] if before == "flat" else cell["after"] for cell in data["cells"]]
    assert flat == pytest.approx([math.log(model().config.vocab_size)]), "every token equally likely"
    assert (data["rests_on"]["lower_is_better"], data["rests_on"]["graded"]) == (True, False)
    assert {"samples", "decoding", "grader"}.isdisjoint(data["settings"])
    assert data["settings"]["probe"] == "held_out_loss"


@pytest.mark.parametrize(("before", "after", "expected"), [("flat", "sure", 3), ("flat", "flat", 4), ("sure", "flat", 4)])
def test_the_gate_never_passes_by_loss_alone_and_finds_a_large_rise(
    before: str, after: str, expected: int, chats: str, call: Call
) -> None:
    asked = ("--corpus", chats, "--gate", "--max-new-tokens", "4")
    code, out, err = call("verdict", before, after, *asked)
    assert code == expected, out + err
    assert out.startswith("Do not ship sure: " if expected == 3 else "Cannot tell: "), out
    assert ("gate: damaged: " in out, "gate: cannot tell: " in out) == (expected == 3, expected == 4)
    assert "gate: all: held-out loss " in out
    assert "up to 4 tokens each" in err
    first = out.splitlines()[0]
    code, out, err = call("verdict", before, after, *asked, "--measured", "runs/comparison", "--folder", "again")
    assert (code, out.splitlines()[0]) == (expected, first), err
    assert "measure before: taken over" in err
    code, _, err = call("verdict", before, after, *asked, "--beside", "runs/comparison", "--folder", "third")
    assert (code, "expected answers that can be graded" in err) == (1, True)


def test_the_gate_refuses_pairs_before_anything_is_measured(chats: str, call: Call) -> None:
    write("pairs.jsonl", PAIRS)
    code, _, err = call("verdict", "sure", "flat", "--corpus", "pairs.jsonl", "--gate", "--no-chat-template")
    assert (code, Path("runs").exists()) == (1, False)
    assert "got preference pairs" in err


def test_pairs_are_compared_by_preference_with_the_margin_beside_it(chats: str, call: Call) -> None:
    write("pairs.jsonl", PAIRS)
    code, out, err = call("verdict", "flat", "sure", "--corpus", "pairs.jsonl", "--no-chat-template")
    assert code == 0, err
    data = check_first(RunFolder("runs/comparison"), out, out.splitlines()[0])
    facts = data["sections"][0]["blocks"][0]["facts"]
    assert [fact["label"] for fact in facts] == [
        "change of held-out preference accuracy",
        "change of margin of chosen over rejected",
    ]
    assert [fact["value"].split(" ", 1)[1] for fact in facts] == ["points", "nats"]
    (cell,) = data["cells"]
    assert cell["before"] == 0.0, "where every token is equally likely, the longer answer is the less likely one"
    assert (cell["chance_level"]["value"], data["outcome"]["lower_is_better"]) == (0.5, False)


def test_of_one_item_no_interval_is_told_and_nothing_is_claimed(chats: str, call: Call) -> None:
    """Loss of the lone row of a task, of the lone row of a file, and the margin of a lone pair; never `[x, x]`."""
    lone = [CHATS[0] | {"task": "lone"}]
    for name, rows in {"two": lone + [row | {"task": "many"} for row in CHATS[1:]], "one": lone, "pair": PAIRS[:1]}.items():
        code, out, err = call(
            "verdict", "sure", "flat", "--corpus", write(f"{name}.jsonl", rows), "--folder", name, "--full"
        )
        assert code == 0, err
        run = RunFolder(name)
        told = "[one item: no interval]"
        assert (told in out.splitlines()[1]) == (name == "one")
        assert told in run.page.read_text(encoding="utf-8")
        cells = {
            claim["task"]: claim["kind"] for claim in json.loads(run.verdict_data.read_text(encoding="utf-8"))["claims"]
        }
        assert (
            cells == {"lone": "cannot tell", "many": "learnt"} if name == "two" else set(cells.values()) == {"cannot tell"}
        )
        if name != "two":
            assert out.startswith("Cannot tell: the only item of the file is too few to see any change; add rows to it.")
            assert "The only item of the file was measured: add about " in out

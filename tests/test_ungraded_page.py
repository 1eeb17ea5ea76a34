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
RUNS = {
    "SFT that learns": (SAID, "sft", 0.01, 12, "keep uniform", "improves"),
    "SFT that gets worse": (SAID, "sft", 0.5, 3, "stop", "worsens"),
    "DPO": (PAIRS, "dpo", 0.01, 12, "keep uniform", "improves"),
}


def check_first(run: RunFolder, out: str) -> dict[str, Any]:
    """The headline begins the terminal and stands in verdict.json and on the page; nothing is called success."""
    page, data = run.page.read_text(encoding="utf-8"), json.loads(run.verdict_data.read_text(encoding="utf-8"))
    assert " ".join(out.split()).startswith(" ".join(data["headline"].split()))
    for shown in (out, page.split("</style>")[-1]):
        assert "success" not in re.sub(r"<script.*?</script>", "", shown, flags=re.DOTALL).lower()
    assert not data["graded"]
    return data


@pytest.mark.parametrize("name", RUNS)
def test_a_run(name: str, call: Call) -> None:
    rows, objective, rate, steps, advice, word = RUNS[name]
    write("rows.jsonl", rows)
    probe = "held_out_loss" if objective == "sft" else "preference"
    Path("run.yaml").write_text(SETTINGS.format(objective=objective, probe=probe, rate=rate, steps=steps), encoding="utf-8")
    code, out, err = call("run", "run.yaml")
    assert code == 0, err
    data = check_first(RunFolder("runs/run"), out)
    (effect,) = (effect for effect in data["trial"]["effects"] if effect["name"] in ("loss", "preference"))
    assert (data["advice"], effect["word"]) == (advice, word)
    (task,) = data["tasks"]
    assert task["after"] - task["before"] == pytest.approx(task["change"]["value"])
    assert data["lower_is_better"] == (objective == "sft")


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


@pytest.mark.parametrize(
    ("before", "after", "expected", "word"),
    [("flat", "sure", 4, "higher"), ("flat", "flat", 4, "kept"), ("sure", "flat", 3, "lost")],
)
def test_two_models_never_pass_by_loss_alone_and_answers_that_became_empty_are_lost(
    before: str, after: str, expected: int, word: str, chats: str, call: Call
) -> None:
    asked = ("--eval", chats, "--max-new-tokens", "4")
    code, out, err = call("verdict", "--no-suite", before, after, *asked, "--samples", "3")
    assert code == expected, out + err
    assert "no answer can be graded, so held-out loss is compared" in err
    assert "up to 4 tokens each" in err
    data = check_first(RunFolder("runs/comparison"), out)
    (task,) = data["tasks"]
    assert task["word"] == word
    assert ("held-out loss rose" in out) == (word == "higher"), out
    flat = task["before"] if before == "flat" else task["after"]
    assert flat == pytest.approx(math.log(model().config.vocab_size)), "every token equally likely"
    settings = data["manifest"]["settings"]
    assert {"samples", "decoding", "grader"}.isdisjoint(settings)
    assert settings["probe"] == "held_out_loss"


def test_protected_pairs_are_refused_before_anything_is_measured(chats: str, call: Call) -> None:
    write("pairs.jsonl", PAIRS)
    code, _, err = call(
        "verdict", "--no-suite", "sure", "flat", "--eval", "pairs.jsonl", "--protect", "all", "--no-chat-template"
    )
    assert (code, Path("runs").exists()) == (1, False)
    assert "got preference pairs" in err


def test_pairs_are_compared_by_preference_and_never_pass(chats: str, call: Call) -> None:
    write("pairs.jsonl", PAIRS)
    code, out, err = call("verdict", "--no-suite", "flat", "sure", "--eval", "pairs.jsonl", "--no-chat-template")
    assert code in (3, 4), err
    data = check_first(RunFolder("runs/comparison"), out)
    (task,) = data["tasks"]
    assert task["before"] == 0.0, "where every token is equally likely, the longer answer is the less likely one"
    assert (task["chance"]["value"], data["lower_is_better"]) == (0.5, False)


def test_of_one_item_nothing_is_claimed(chats: str, call: Call) -> None:
    """Loss of the lone row of a task, of the lone row of a file, and the margin of a lone pair."""
    lone = [CHATS[0] | {"task": "lone"}]
    for name, rows in {"two": lone + [row | {"task": "many"} for row in CHATS[1:]], "one": lone, "pair": PAIRS[:1]}.items():
        asked = ("--eval", write(f"{name}.jsonl", rows), "--folder", name)
        assert call("verdict", "--no-suite", "sure", "flat", *asked)[0] == 4
        tasks = json.loads(RunFolder(name).verdict_data.read_text(encoding="utf-8"))["tasks"]
        words = {task["task"]: task["word"] for task in tasks}
        assert (
            words == {"lone": "too few items", "many": "learned"}
            if name == "two"
            else {*words.values()} == {"too few items"}
        )

"""What two checkpoints must not be compared by: missing weights, templates that refuse, one text, own files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from _example_run import item_rows
from answer_rows import write_measured
from cli_call import Call, sums, write
from safetensors.torch import load_file, save_file
from trainers_tiny import model, tokenizer

from mixwright.estimates.crossed import estimate_crossed
from mixwright.estimates.items import Item
from mixwright.estimates.outcome import ItemScores
from mixwright.learner import prompt_form
from mixwright.run.folder import RunFolder
from mixwright.verdict.rules.gate import check_sides
from mixwright.verdict.rules.gate_question import GateQuestion


@pytest.fixture
def saved(call: Call) -> Path:  # in the folder of `call`
    model().save_pretrained("tiny")
    tokenizer().save_pretrained("tiny")
    write("a.jsonl", sums(4))
    return Path("tiny")


MEASURED = ("--eval", "a.jsonl", "--samples", "2", "--items", "2", "--max-new-tokens", "2")


@pytest.mark.parametrize(("value", "told"), [(None, "no lm_head.weight"), (float("nan"), "NaN or infinity in lm_head")])
def test_weights_that_are_missing_or_no_numbers_are_refused(value: float | None, told: str, saved: Path, call: Call) -> None:
    weights = load_file(saved / "model.safetensors")
    if value is None:
        del weights["lm_head.weight"]
    else:
        weights["lm_head.weight"] = torch.full_like(weights["lm_head.weight"], value)
    save_file(weights, saved / "model.safetensors", {"format": "pt"})
    code, _, err = call("measure", "tiny", *MEASURED)
    assert (code, told in err) == (1, True), err


def test_a_template_that_refuses_a_system_message_is_no_bug_of_ours(saved: Path, call: Call) -> None:
    made = tokenizer()
    made.chat_template = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}a="
    made.save_pretrained(saved)
    code, _, err = call("measure", "tiny", *MEASURED, "--system", "be brief")
    assert (code, "no system role. Leave out --system" in err) == (1, True), err


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "got TooSlow"),
        ("{{ 'a' * 300 }}", "got ValueError: a prompt of 300 characters"),
    ],
)
def test_a_template_without_end_is_refused(
    saved: Path, call: Call, monkeypatch: pytest.MonkeyPatch, template: str, told: str
) -> None:
    monkeypatch.setattr(prompt_form, "TEMPLATE_SECONDS", 0.5)
    monkeypatch.setattr(prompt_form, "MAX_PROMPT_CHARACTERS", 200)
    made = tokenizer()
    made.chat_template = template
    made.save_pretrained(saved)
    code, _, err = call("measure", "tiny", *MEASURED)
    assert (code, told in err) == (1, True), err


def test_a_model_without_layers_is_refused(saved: Path, call: Call) -> None:
    settings = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(settings | {"num_hidden_layers": -1}), encoding="utf-8")
    code, _, err = call("measure", "tiny", *MEASURED)
    assert (code, "Traceback" in err) == (1, False), err


def test_a_comparison_replaces_no_settings_of_the_user(saved: Path, call: Call) -> None:
    Path("own").mkdir()
    Path("own/run.yaml").write_text("mine\n", encoding="utf-8")
    code, _, err = call("verdict", "--no-suite", "tiny", "tiny", *MEASURED, "--folder", "own")
    assert (code, "Name another --folder" in err) == (1, True)
    assert Path("own/run.yaml").read_text(encoding="utf-8") == "mine\n"


def test_one_text_decides_nothing(saved: Path, call: Call) -> None:
    model(1).save_pretrained("other")
    tokenizer().save_pretrained("other")
    Path("one.jsonl").write_text(json.dumps({"text": "it is so"}), encoding="utf-8")
    code, out, err = call("verdict", "--no-suite", "tiny", "other", "--eval", "one.jsonl")
    assert (code, out.startswith("INCONCLUSIVE")) == (4, True), (out, err)


def test_tasks_of_one_text_each_have_the_spread_that_they_show() -> None:
    found = estimate_crossed(np.array([[1.0, 2.0, 3.0, 4.0]]), range(4), counted=False)
    assert found.error == pytest.approx((5 / 3 / 4) ** 0.5)
    assert found.df == 3


def test_the_gate_finds_a_small_task_that_was_lost_on_all_of_its_items() -> None:
    kept: dict[Item, float] = {("kept", None, f"k{n}"): 1.0 for n in range(400)}
    lost: dict[Item, float] = {("lost", None, f"l{n}"): 1.0 for n in range(8)}

    def side(after: float) -> list[ItemScores]:
        greedy = kept | dict.fromkeys(lost, after)
        swapped = dict.fromkeys(greedy, 0.0)
        return [ItemScores.of({"greedy": greedy, "pass@1": greedy, "greedy.swapped": swapped})]

    assert check_sides((side(1.0), side(1.0)), "greedy", GateQuestion()).outcome == "passed"
    found = check_sides((side(1.0), side(0.0)), "greedy", GateQuestion())
    assert (found.outcome, [cell.task for cell in found.cells if cell.is_damaged]) == ("damaged", ["lost"])


def test_the_gate_does_not_pass_what_its_page_says_not_to_ship(call: Call) -> None:
    run = RunFolder("lost")
    for name, right in (("before", 1.0), ("after", 0.0)):  # three items of a task, too few to be protected, are lost
        rows = []
        for task, values in (("kept", [1.0] * 400), ("small", [right] * 3)):
            columns = {"greedy": values, "pass@1": values, "greedy.swapped": [0.0] * len(values)}
            rows += item_rows((task, None), columns | {"pass@1.swapped": [0.0] * len(values), "chance": [0.0] * len(values)})
        write_measured(run.measurements(name), rows)
    code, out, _ = call("verdict", "--no-suite", "lost", "--gate")
    assert out.startswith("DO NOT SHIP"), out
    assert code == 3
    assert call("verdict", "--no-suite", "lost", "--gate", "--protect", "kept")[0] == 0, "the user said what matters"


def test_a_plan_replaces_no_file_that_is_none(saved: Path, call: Call) -> None:
    before = Path("a.jsonl").read_bytes()
    code, _, err = call("plan", "tiny", *MEASURED, "--output", "a.jsonl")
    assert (code, "error: a.jsonl" in err) == (1, True), err
    assert Path("a.jsonl").read_bytes() == before
    assert call("plan", "tiny", *MEASURED, "--output", "p.yaml")[0] == 0
    assert call("plan", "tiny", *MEASURED, "--output", "p.yaml")[0] == 0, "a plan may be replaced"

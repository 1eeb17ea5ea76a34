"""Is it the same model: a change is excluded in both directions, by hand, on drawn answers, and by the command."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from _scores import scores
from cli_call import Call, write
from hypothesis import given, settings
from hypothesis import strategies as st
from trainers_tiny import model, tokenizer

from mixwright.answers.table import Answers
from mixwright.learner.learner import Learner
from mixwright.measure.notes import NOISE_NOTE, count_changes, note_noise
from mixwright.verdict.rules.gate import SAME_MARGIN, check_sides
from mixwright.verdict.rules.gate_question import GateQuestion


def judge(before: np.ndarray, after: np.ndarray, tasks: int = 8) -> str:
    """Outcome for answers of shape (items,) that are dealt out among tasks."""
    sides = [[scores({(f"t{n}", None): list(side[n::tasks]) for n in range(tasks)})] for side in (before, after)]
    return check_sides((sides[0], sides[1]), "greedy", GateQuestion(same=True)).outcome


def test_equal_answers_pass_only_with_enough_items() -> None:
    right = (np.arange(800) % 3 > 0).astype(float)
    assert judge(right, right) == "passed"
    assert judge(right[:40], right[:40]) == "inconclusive"


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_gain_is_as_little_the_same_as_a_loss(sign: int) -> None:
    low, high = (np.arange(800) % 2).astype(float), (np.arange(800) % 2).astype(float)
    high[:80] = 1.0
    sides = (low, high) if sign > 0 else (high, low)
    assert judge(*sides) == "damaged"


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(-0.06, 0.06))
def test_what_passes_has_an_interval_within_the_margin(seed: int, shift: float) -> None:
    rng = np.random.default_rng(seed)
    before = (rng.random(600) < 0.6).astype(float)
    turned = rng.random(600) < abs(shift)
    after = np.where(turned, float(shift > 0), before)
    if judge(before, after) == "passed":
        assert abs(after.mean() - before.mean()) < SAME_MARGIN


def test_the_command_says_the_same_of_a_copy(call: Call) -> None:
    rows = [{"task": f"t{n % 4}", "prompt": f"Say {n}", "answer": str(n)} for n in range(40)]
    for name in ("first", "copy"):
        model(0).save_pretrained(name)
        tokenizer().save_pretrained(name)
    asked = ("--eval", write("rows.jsonl", rows), "--grader", "exact", "--no-suite", "--max-new-tokens", "2", "--same")
    code, out, err = call("verdict", "first", "copy", *asked, "--json")
    assert code == 4, "random weights answer nothing right" + err
    found = json.loads(out)
    assert found["gate"]["same"] is True
    assert found["former"] == [] or all(abs(one["change"]) < 1e-6 for one in found["former"])
    code, _, err = call("verdict", "first", "copy", *asked, "--protect", "t0")
    assert code == 1
    assert "--same alone" in err


def test_a_shown_change_within_the_margin_is_the_same() -> None:
    before = (np.arange(6000) % 2).astype(float)
    after = before.copy()
    after[:120] = 1.0  # +1 point, which so many items show
    assert judge(before, after, tasks=1) == "passed"
    after[:480] = 1.0  # +4 points
    assert judge(before, after, tasks=1) == "damaged"


def test_the_noise_floor_counts_grades_and_texts() -> None:
    first, second = (
        Answers.from_rows(
            {"item": str(n), "task": "t", "decoding": "greedy", "sample": 0, "text": text, "score": score}
            for n, (text, score) in enumerate(answers)
        )
        for answers in ([("a", 1), ("b", 0), ("c", 1), ("d", 0)], [("a", 1), ("B", 0), ("x", 0)])
    )
    assert count_changes(first, second) == {"answers": 3, "turned": 1, "reworded": 2}
    assert note_noise({}, "m") == ()


def test_a_noise_floor_is_measured_past_the_store_and_shown_by_later_commands(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed, name in enumerate(("first", "other")):
        model(seed).save_pretrained(name)
        tokenizer().save_pretrained(name)
    rows = [{"task": f"t{n % 2}", "prompt": f"Say {n}", "answer": str(n)} for n in range(20)]
    options = (
        "--eval",
        write("rows.jsonl", rows),
        "--grader",
        "exact",
        "--no-suite",
        "--max-new-tokens",
        "2",
        "--samples",
        "0",
    )
    write_all, written = Learner.generate, list[int]()

    def counted(self: Any, jobs: Any, *arguments: Any) -> Any:
        written.append(len(jobs))
        return write_all(self, jobs, *arguments)

    monkeypatch.setattr(Learner, "generate", counted)
    for more, jobs in (((), 40), (("--repeat",), 20), ((), 0)):
        written.clear()
        code, out, err = call("verdict", "first", "other", *options, "--json", *more)
        assert code == 4, err
        assert sum(written) == jobs, "only the second asking writes what the store has"
        notes = [note["message"] for note in json.loads(out)["notes"] if note["check"] == NOISE_NOTE]
        assert len(notes) == (jobs < 40)
        assert all("asked again in batches of 8, first changed the grade of 0" in note for note in notes)
        assert [line for line in json.loads(out)["why"] if line.startswith("Noise floor")] == notes
    code, _, err = call("verdict", "first", "other", *options, "--repeat", "--engine", "vllm")
    assert (code, "--repeat" in err) == (1, True)


def test_what_was_not_compared_is_not_the_same(call: Call) -> None:
    rows = [{"task": f"t{n % 2}", "id": n, "score": n % 3 > 0} for n in range(4000)]
    before = write("before.jsonl", rows)
    assert call("verdict", before, write("after.jsonl", rows), "--same")[0] == 0
    for left in (rows[::2], [row for row in rows if row["id"] % 5]):
        code, out, _ = call("verdict", before, write("after.jsonl", left), "--same", "--folder", f"runs/{len(left)}")
        assert code == 4, out
        assert "It is unknown what happened to" in out
    none = write("none.jsonl", [row | {"score": 0} for row in rows])
    code, out, _ = call("verdict", none, write("none_after.jsonl", [row | {"score": 0} for row in rows]), "--same")
    assert code == 4
    assert "No answer was right" in out

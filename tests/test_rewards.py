"""Rewards before anyone trains on them: planted faults are found, sound functions left alone, and each is called right."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import planted_rewards
import pytest
from cli_call import Call

from mixwright.config import CorpusConfig
from mixwright.errors import InputError
from mixwright.records import Example, Observation
from mixwright.rewards import process
from mixwright.rewards.audit import RewardAudit
from mixwright.rewards.behaviours import BEHAVIOURS, FORMS, make_items
from mixwright.rewards.stage import run_reward_audit

GRADERS = ("exact", "numeric", "final_answer", "includes")
"""Of ours, for such answers."""


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(process, "START_METHOD", "fork")  # quick; the documented example of the API starts one anew
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(Path(__file__).parent)
    rows = [{"prompt": f"What is {n} times 37?", "solution": str(37 * n)} for n in range(30, 60)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return tmp_path


def audit(*names: str, weights: tuple[float, ...] = (), items: int = 12, rows: str = "rows.jsonl") -> RewardAudit:
    named = [f"planted_rewards:{name}" if name.isidentifier() and name not in GRADERS else name for name in names]
    return run_reward_audit(named, CorpusConfig(rows, eval_share=0.0), weights=weights, items=items)


def errors(found: RewardAudit) -> list[Observation]:
    return [one for one in found.observations if one.severity == "error"]


@pytest.mark.parametrize(
    ("name", "kind", "form"),
    [
        ("tag", "TRL", "tag"),
        ("compute_score", "verl", "hashes"),
        ("state_reward", "verifiers", "bare"),
        ("grader", "a grader", "bare"),
        *((name, "a grader", "bare") for name in GRADERS),
        ("nothing", "TRL", "tag"),
    ],
)
def test_sound_rewards_are_called_as_their_library_does_and_have_no_error(name: str, kind: str, form: str) -> None:
    found = audit(name)
    assert errors(found) == []
    assert (found.kinds, found.best_paid_form) == ((kind,), form)


@pytest.mark.parametrize("in_reward_model", [True, False])
def test_verl_rows_are_passed_as_they_are(corpus: Path, in_reward_model: bool) -> None:
    """`ground_truth` in a column of its own or in `reward_model`, a data source, and further information."""
    rows = []
    for n in range(30, 50):
        truth = {"ground_truth": {"target": [str(37 * n)]}}
        row = {
            "prompt": f"What is {n} times 37?",
            "answer": str(37 * n),
            "data_source": "sums",
            "extra_info": {"split": "train"},
        }
        rows.append(row | ({"reward_model": truth} if in_reward_model else truth))
    (corpus / "verl.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = audit("nested_score", rows="verl.jsonl")
    assert errors(found) == []
    assert found.kinds == ("verl",)


@pytest.mark.parametrize(
    ("name", "check", "told"),
    [
        ("holds", "overpaid", "three answers, one of them right"),
        ("holds", "overpaid", "a number that holds the right one"),
        ("length", "overpaid", "'a right answer after long filler' earns"),
        ("breaks", "failures", "first on an empty completion: IndexError"),
        ("batch", "order of the batch", "depend on the order"),
        ("stateful", "randomness", "different rewards in a second call"),
        ("constant", "right and wrong alike", "right answers earn 0.5 and wrong ones 0.5"),
    ],
)
def test_planted_faults_are_errors(name: str, check: str, told: str) -> None:
    found = errors(audit(name))
    assert any(one.check == check and told in one.message for one in found), [one.message for one in found]


@pytest.mark.parametrize(
    ("name", "golds", "told"),
    [
        ("shallow_box", [f"\\frac{{{n}}}{{7}}" for n in range(8, 20)], "a fraction with another denominator"),
        ("first_letter", [f"{n} km" for n in range(8, 20)], "the right number with another unit"),
        ("unsigned", [f"-{n}" for n in range(8, 20)], "the positive of the right number"),
    ],
)
def test_near_misses_of_each_form_of_answer_are_tried(name: str, golds: list[str], told: str, corpus: Path) -> None:
    rows = [{"prompt": f"Task {n}", "solution": gold} for n, gold in enumerate(golds)]
    (corpus / "forms.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = errors(audit(name, rows="forms.jsonl"))
    assert any(told in one.message for one in found), [one.message for one in found]


def test_near_misses_are_wrong_by_hand() -> None:
    write = {one.name: one.write for one in BEHAVIOURS}
    (item, *_) = make_items([Example("a", "t", "?", answer=gold) for gold in ("\\frac{12}{3}", "1/2")])
    assert write["a fraction with another denominator"](item, str) == "\\frac{12}{4}"
    assert write["the digits of a fraction, divided elsewhere"](item, str) == "\\frac{1}{23}"
    (_, item, negative, speed) = make_items([Example("a", "t", "?", answer=gold) for gold in ("3/4", "1/20", "-5", "5 m/s")])
    assert write["the digits of a fraction, divided elsewhere"](item, str) is None  # 12/0 has no value
    assert write["the positive of the right number"](negative, str) == "5"
    assert write["the right number with another unit"](speed, str) == "5 kg"


def test_the_text_of_the_right_option_is_no_wrong_answer() -> None:
    examples = [Example(str(n), "t", f"{n}?", answer="AB"[n % 2], extra={"choices": ["Rome", "Oslo"]}) for n in range(4)]
    assert [item.other for item in make_items(examples)] == ["Oslo", "Rome"] * 2


def test_numbers_before_a_comma_and_rewards_for_json(corpus: Path) -> None:
    told = [one.message for one in audit("comma_swallows").observations if one.check == "ignored"]
    assert any("in a sentence that goes on" in message for message in told)
    found = audit("only_json").observations
    blamed = [one.message for one in found if one.severity == "warning"]
    assert all("commas for thousands" in message or "as a decimal" in message for message in blamed), "no prose around JSON"


def test_a_function_that_never_pays_the_models_completions_is_named(corpus: Path) -> None:
    rows = [{"prompt": f"{n} times 37?", "solution": str(37 * n), "mine": f"so </think> {37 * n}"} for n in range(30, 50)]
    (corpus / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    names = ["planted_rewards:holds", "planted_rewards:tag"]
    found = run_reward_audit(names, CorpusConfig("mine.jsonl", eval_share=0.0), completion_column="mine")
    (told,) = [one for one in found.observations if one.check == "never paid"]
    assert told.message == "planted_rewards:tag earns 0 on all completions of the model"


def test_what_functions_write_past_python_and_leave_running_reaches_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    assert errors(audit("writes_past_python")) == []
    assert capfd.readouterr() == ("", "")


def test_the_function_that_pays_is_named_and_weights_count() -> None:
    (first, *_) = audit("tag", "form_only").observations
    assert (first.severity, first.check) == ("warning", "overpaid")
    assert re.search(r"\btag earns 3\d%", first.message)
    assert first.message.endswith("mostly by planted_rewards:form_only")
    light = audit("tag", "form_only", weights=(1.0, 0.1))
    assert "overpaid" not in {one.check for one in light.observations}
    with pytest.raises(InputError, match="finite numbers for --weight, got nan"):
        audit("tag", "form_only", weights=(math.nan, 1.0))
    with pytest.raises(InputError, match="2 weights, one per function, got 1"):
        audit("tag", "form_only", weights=(1.0,))


def test_examples_show_what_was_paid() -> None:
    seen = next(one for one in errors(audit("holds")) if "taken back" in one.message)
    assert seen.count == seen.total == 12
    (first, *_) = seen.evidence
    assert first["reward"] == 1.0
    assert first["answer"] in first["completion"]
    assert "No, that is wrong." in first["completion"]


def test_chats_get_messages(corpus: Path) -> None:
    rows = [{"prompt": [{"role": "user", "content": f"{n} + 1?"}], "answer": str(n + 1)} for n in range(20, 40)]
    (corpus / "chats.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = audit("messages", rows="chats.jsonl")
    assert (errors(found), found.best_paid_form) == ([], "bare")


def test_what_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "SECONDS_PER_CALL", 1.0)
    with pytest.raises(InputError, match="planted_rewards:hangs within 1 s"):
        audit("hangs")
    asked = [process.Asked(Example(str(n), "t", "q", answer="4", source=f"e.jsonl:{n}"), {}, "4" * n) for n in (2, 1, 0, 3)]
    with process.RewardProcess(["planted_rewards:hangs_on_nothing"]) as rewards:
        assert rewards.score(asked[:2]) == [[0.0, 1.0]]
        with pytest.raises(InputError, match=r"scoring 4 completions; it stopped at '', for e.jsonl:0"):
            rewards.score(asked)


def test_scores_without_end_are_read_to_one_too_many() -> None:
    """Before, all of them were collected, until memory or 60 s were used up."""
    asked = [process.Asked(Example(str(n), "t", "q", answer="4"), {}, "4") for n in range(3)]
    assert process.call_all(process.make_caller(planted_rewards.never_ends)[1], asked) == ["4 scores of 3 completions"] * 3


@pytest.mark.parametrize("name", ["nowhere:x", "planted_rewards:missing", "no grader"])
def test_what_cannot_be_imported_is_told(name: str) -> None:
    with pytest.raises(InputError):
        audit(name)


def test_too_few_rows_are_refused(corpus: Path) -> None:
    (corpus / "few.jsonl").write_text('{"prompt": "a", "answer": "1"}\n' * 3, encoding="utf-8")
    with pytest.raises(InputError, match="4 rows with answers, got 3"):
        audit("tag", rows="few.jsonl")


def test_wrong_answers_are_wrong_and_alike() -> None:
    golds = ["7", "1234", "Paris", "Rome", "-3", "2.50"]
    examples = [Example(str(n), "t", "q", answer=gold) for n, gold in enumerate(golds)]
    for item in make_items(examples):
        assert item.other != item.gold
        assert item.gold not in item.other
        assert (
            item.other.replace("-", "").replace(".", "").isdigit() == item.gold.replace("-", "").replace(".", "").isdigit()
        )


def test_prompts_that_lack_a_value_are_known_by_a_column_or_by_their_gold_answer() -> None:
    marks = ({}, {"ambiguous": True}, {"underspecified": "false"}, {"underspecified": 1}, {}, {})
    golds = ("Paris", "7", "Rome", "Oslo", "Which year do you mean?", "For how many people?")
    examples = [Example(str(n), "t", "q", answer=golds[n], extra=marks[n]) for n in range(6)]
    items = make_items(examples)
    assert [item.lacks_value for item in items] == [False, True, False, True, True, True]
    assert all("?" not in item.other + item.neighbour for item in items[4:]), "another question is no wrong answer"
    assert not any(item.lacks_value for item in make_items(examples[4:])), "a task of writing questions"


@pytest.mark.parametrize(
    ("name", "check", "told"),
    [
        ("grader", "ignored", "never paid for asking: 8 of 8 prompts that lack a value"),
        ("pays_asking", "not priced", "a question back to a prompt that lacks a value"),
    ],
)
def test_asking_is_right_where_a_value_is_missing(name: str, check: str, told: str, corpus: Path) -> None:
    """Eight rows whose gold answer asks back, beside twelve where asking is wrong and not paid."""
    rows = [{"prompt": f"What is {n} times 37?", "answer": str(37 * n), "lacks": 0} for n in range(30, 42)]
    rows += [{"prompt": f"What is {n} times it?", "answer": "What is it?", "lacks": 1} for n in range(30, 38)]
    (corpus / "asked.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = audit(name, rows="asked.jsonl", items=20)
    assert any(one.check == check and told in one.message for one in found.observations)
    assert not any("not tried" in one.message or "'a question back'" in one.message for one in found.observations)


def test_without_such_prompts_asking_counts_as_wrong_and_its_absence_is_said() -> None:
    found = audit("pays_any_question").observations
    assert any(one.check == "overpaid" and one.message.startswith("'a question back' earns 100%") for one in found)
    (priced,) = [one for one in found if one.check == "not priced"]
    assert priced.message.endswith(
        "not tried: a question back to a prompt that lacks a value (no row has a true column 'ambiguous')"
    )


def test_every_behaviour_can_be_written() -> None:
    examples = [
        Example(
            str(n), "t", "Which?", answer=gold, extra={"options": ["Paris", "Rome", "1234"], "ambiguous": gold == "Oslo"}
        )
        for n, gold in enumerate(["Paris", "1234", "Oslo", "-5", "21/40", "5 m/s"])
    ]
    written = [[one.write(item, form) for item in make_items(examples)] for one in BEHAVIOURS for form in FORMS.values()]
    assert all(any(text is not None for text in texts) for texts in written)


def test_the_command_prints_and_fails_as_asked(call: Call, corpus: Path) -> None:
    code, out, _ = call("rewards", "planted_rewards:holds", "--eval", str(corpus / "rows.jsonl"), "--fail-on", "error")
    assert code == 3
    assert "planted_rewards:holds (TRL)" in out
    assert "overpaid" in out
    code, out, _ = call("rewards", "exact", "--eval", str(corpus / "rows.jsonl"), "--json", "--fail-on", "error")
    data: dict[str, Any] = json.loads(out)
    assert (code, data["best_paid_form"]) == (0, "bare")
    assert {one["severity"] for one in data["observations"]} <= {"warning", "info"}


def _with_completions(folder: Path) -> str:
    """30 rows; what the model wrote is right in the first 20, in a tag, and as messages in one of them."""
    rows: list[dict[str, Any]] = []
    for n in range(30, 60):
        text = f"<answer>{37 * n if n < 50 else 36 * n}</answer>"
        written: Any = [{"role": "assistant", "content": text}] if n == 31 else text
        rows.append({"prompt": f"What is {n} times 37?", "answer": str(37 * n), "solution": str(37 * n), "wrote": written})
    path = folder / "own.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_own_completions_are_edited_and_tried(corpus: Path) -> None:
    """A reward that looks for the answer anywhere still pays completions that are taken back; one for length pays more."""
    config = CorpusConfig(_with_completions(corpus), eval_share=0.0)
    found = run_reward_audit(["planted_rewards:holds"], config, items=30, completion_column="wrote").observations
    (own,) = [one for one in found if one.check == "own completions"]
    assert (own.count, own.total) == (20, 30)
    (back,) = [one for one in found if "is still paid" in one.message]
    assert (back.severity, back.check, back.count, back.total) == ("error", "overpaid", 20, 30)
    longer = run_reward_audit(["planted_rewards:length"], config, items=30, completion_column="wrote").observations
    assert any("earns more after long filler" in one.message for one in longer)


def test_own_completions_of_a_sound_reward(corpus: Path) -> None:
    """It wants one tag: a completion that is repeated loses its reward, and nothing earns more."""
    config = CorpusConfig(_with_completions(corpus), eval_share=0.0)
    found = run_reward_audit(["planted_rewards:tag"], config, items=30, completion_column="wrote")
    assert errors(found) == []
    about = [one for one in found.observations if "completion of the model" in one.message]
    assert [(one.check, one.count) for one in about if "repeated three times" in one.message] == [("punished", 20)]


def test_a_column_that_is_none_is_refused(corpus: Path) -> None:
    config = CorpusConfig(_with_completions(corpus), eval_share=0.0)
    for name in ("no_such", "prompt"):
        with pytest.raises(InputError):
            run_reward_audit(["planted_rewards:tag"], config, completion_column=name)

"""`plan MODEL TRAIN`: every row of the user once, answers in the user's own columns, shares, and what is refused."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, write
from test_direct import checkpoint

from mixwright.corpus import Corpus
from mixwright.mine.own_answers import RehearsalRows
from mixwright.records import Example, Plan
from mixwright.run.folder import RunFolder, read_yaml
from mixwright.verbs import replaying
from mixwright.verbs.replaying import choose_form, list_requests, takes_messages

PLAIN = [{"prompt": f"{n}+1=", "completion": str(n + 1)} for n in range(180)]
CHAT = [
    {"messages": [{"role": "user", "content": f"{n}+1="}, {"role": "assistant", "content": str(n + 1)}]} for n in range(180)
]


def answered(count: int, kinds: int = 4) -> tuple[Example, ...]:
    return tuple(
        Example(f"r{n}", f"replay.kind{n % kinds}", f"request {n}", target=f"own answer {n}", split="rehearse")
        for n in range(count)
    )


def plan_with(monkeypatch: pytest.MonkeyPatch, call: Call, rows: list[dict[str, Any]], own: int, *more: str) -> list[Any]:
    made = RehearsalRows(answered(own), ("a note",))
    monkeypatch.setattr(replaying, "rehearsal_rows", lambda corpus, load, **_: made)
    checkpoint("model", chat="prompt" not in rows[0])
    code, out, err = call("plan", "model", write("train.jsonl", rows), *more)
    assert code == 0, err
    lines = Path("plan/mix.jsonl").read_text(encoding="utf-8").splitlines()
    return [out, [json.loads(line) for line in lines]]


@pytest.mark.parametrize("rows", [PLAIN, CHAT], ids=["prompt and completion", "messages"])
def test_every_row_stands_once_in_the_mix_beside_a_quarter_of_answers_of_all_kinds(
    rows: list[dict[str, Any]], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, mixed = plan_with(monkeypatch, call, rows, own=60)
    assert {row["task"] for row in mixed} == {"train", *(f"replay.kind{n}" for n in range(4))}, "as the plan has them"
    mixed = [{name: value for name, value in row.items() if name != "task"} for row in mixed]
    texts = Counter(json.dumps(row, sort_keys=True) for row in mixed)
    assert all(texts[json.dumps(row, sort_keys=True)] == 1 for row in rows)
    replay = [row for row in mixed if row not in rows]
    assert len(replay) == 60, "a quarter of 240"
    assert {frozenset(row) for row in mixed} == {frozenset(rows[0])}
    assert max(texts.values()) == 1
    assert mixed[: len(rows)] != rows, "shuffled"
    plan = read_yaml(Path("plan/plan.yaml"), Plan)
    assert sum(plan.stages[0].weights[name] for name in plan.stages[0].rehearse) == pytest.approx(0.25, abs=0.001)
    assert "Train on 75% new rows and 25% answers that the model already gives." in out
    assert "mixwright verdict model YOUR_MODEL --trained-on plan/mix.jsonl" in out
    assert len(out.splitlines()) <= 12
    assert len(Path("plan/replay.jsonl").read_text(encoding="utf-8").splitlines()) == 60


def test_rows_whose_roles_trl_does_not_know_get_a_word_of_warning(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"user": "human", "assistant": "gpt"}
    rows = [
        {"conversations": [{"from": names[turn["role"]], "value": turn["content"]} for turn in row["messages"]]}
        for row in CHAT
    ]
    out, _ = plan_with(monkeypatch, call, rows, own=60)
    assert "--export trl" in out.partition("TRL renames none")[2]
    assert "TRL renames none" not in plan_with(monkeypatch, call, CHAT, own=60)[0]


def test_half_of_the_requests_are_asked_beside_the_tools_of_the_rows(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Example]()

    def rehearse(corpus: Corpus, load: Any, **_: Any) -> RehearsalRows:
        """Answer every request, the second one by a call."""
        asked.extend(corpus.select(split="rehearse"))
        made = [replace(row, target="find(a=1)" if number == 1 else "Yes") for number, row in enumerate(asked)]
        return RehearsalRows(tuple(made), ())

    monkeypatch.setattr(replaying, "rehearsal_rows", rehearse)
    checkpoint("model", chat=True)
    rows = [row | {"tools": '[{"name": "find"}]'} for row in CHAT]
    code, _, err = call("plan", "model", write("train.jsonl", rows))
    assert code == 0, err
    replay = [json.loads(line) for line in Path("plan/replay.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(replay) == len(asked) - 1, "a call is no answer to such a request"
    assert sum('"find"' in row.get("tools", "") for row in replay) == len(asked) // 2 - 1


def test_no_answer_is_in_the_file_more_than_four_times_and_that_is_said(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    out, mixed = plan_with(monkeypatch, call, PLAIN, 3, "--share", "0.3")
    counts = Counter(row["completion"] for row in mixed if row["completion"].startswith("own"))
    assert max(counts.values()) <= 4
    assert len(counts) == 3
    assert "Too few answers for 30%: each is in the file at most 4 times." in out


def test_a_second_plan_in_one_folder_is_refused_while_the_first_one_runs(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_with(monkeypatch, call, PLAIN, 60)
    files = {path.name: path.read_bytes() for path in Path("plan").glob("*.*l")}
    with RunFolder(Path("plan")).lock():
        code, _, err = call("plan", "model", write("train.jsonl", PLAIN[:90]))
    assert (code, "nobody else is using" in err) == (1, True), err
    assert {path.name: path.read_bytes() for path in Path("plan").glob("*.*l")} == files


def test_held_out_rows_stay_out_and_a_folder_is_a_task_of_each_file(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    held_out = {"prompt": "9+9=", "completion": "18", "split": "test"}
    refused = {"prompt": "8+8=", "completion": "99", "split": "train", "label": False}
    kept = [row | {"split": "train", "label": True, "task": "train"} for row in PLAIN]
    _, mixed = plan_with(monkeypatch, call, [*kept, held_out, refused], 60)
    assert held_out not in mixed
    assert refused not in mixed, "a completion that is not to be learned"
    assert all(row in mixed for row in kept)
    Path("five").mkdir()
    write("five/sums.jsonl", PLAIN)
    write("five/more.jsonl", [{"prompt": f"say {n}", "completion": "word " * 9} for n in range(20)])
    code, out, err = call("plan", "model", "five", "--folder", "of_five", "--export", "trl")
    assert code == 0, err
    rows = {line.split()[0]: line.split()[1:4] for line in out.splitlines() if line.startswith(("  sums", "  more"))}
    assert rows["sums"][:2] == ["180", "67.4%"]
    assert float(rows["more"][2].rstrip("%")) > 25, "long answers take more of the tokens than of the rows"
    assert (Path("of_five") / "trl" / "trl.yaml").is_file()


def test_files_of_several_forms_make_a_mix_of_one_form_that_goes_with_its_plan(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = RehearsalRows(answered(9), ())
    monkeypatch.setattr(replaying, "rehearsal_rows", lambda corpus, load, **_: made)
    checkpoint("model", chat=True)
    Path("two").mkdir()
    write("two/sums.jsonl", PLAIN[:30])
    write("two/chat.jsonl", [{"system": "Add."} | row for row in CHAT[:30]])
    code, _, err = call("plan", "model", "two")
    assert code == 0, err
    assert "Your rows have 2 forms, so all of mix.jsonl is prompt and completion." in err
    mixed = [json.loads(line) for line in Path("plan/mix.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {frozenset(row) for row in mixed} == {frozenset(("prompt", "completion", "task"))}
    assert all(isinstance(row[name], list) for row in mixed for name in ("prompt", "completion"))
    system = {"role": "system", "content": "Add."}
    assert sum(row["prompt"][0] == system for row in mixed if row["task"] == "chat") == 30
    assert {row["task"] for row in mixed} == set(read_yaml(Path("plan/plan.yaml"), Plan).stages[0].weights)
    write("two/chat.jsonl", [{"question": "0+1=", "response": "1"}])
    assert call("plan", "model", "two")[0] == 0
    mixed = [json.loads(line) for line in Path("plan/mix.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {(*row, type(row["prompt"])) for row in mixed} == {("prompt", "completion", "task", str)}


def test_every_row_has_an_id_of_its_own_where_the_rows_have_some(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    _, mixed = plan_with(monkeypatch, call, [row | {"id": f"mine{n}"} for n, row in enumerate(PLAIN)], 20)
    assert len({row["id"] for row in mixed}) == len(mixed) == 240


def test_what_cannot_be_planned_is_refused_before_the_model_answers(call: Call) -> None:
    checkpoint("model")
    train = write("train.jsonl", PLAIN)
    cases: dict[tuple[str, ...], str] = {
        (train, "--only-replay"): "--replay FILE with --only-replay",
        (train, "--share", "1"): "--share above 0 and at most 0.5",
        (train, "--share", "0"): "--share above 0 and at most 0.5",
        (write("held.jsonl", [row | {"split": "test"} for row in PLAIN]),): "",
        (write("list.jsonl", [[1, 2]]),): "",
        (train, "--output", "p.yaml"): "--eval FILE with --output",
        (train, "--objective", "dpo"): "in every training row",
        (write("text.jsonl", [{"text": "once upon a time"}]),): "rows of prompt and completion, or of messages",
        (write("answers.jsonl", [{"prompt": "1+1=", "answer": "2"}]),): "rows of prompt and completion, or of messages",
        ("nothing.jsonl",): "nothing there",
    }
    for arguments, said in cases.items():
        code, _, err = call("plan", "model", *arguments)
        assert (code, said in err) == (1, True), err
    assert "OWNER/NAME at the hub" in call("plan", "nosuch", train)[2], "the hub is not asked"
    Path("plan").mkdir(exist_ok=True)  # a refusal may leave a lock there
    Path("plan/notes.txt").touch()
    code, _, err = call("plan", "model", train)
    assert (code, "Name another --folder" in err) == (1, True)


TURNS = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"})


@pytest.mark.parametrize(
    ("row", "written"),
    [
        ({"prompt": "a", "completion": "b"}, {"prompt": "Hi", "completion": "Yes"}),
        ({"question": "a", "response": "b", "data_source": "x"}, {"question": "Hi", "response": "Yes", "data_source": "t"}),
        ({"instruction": "a", "input": "c", "output": "b"}, {"instruction": "Hi", "input": "", "output": "Yes"}),
        (
            {"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
            {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Yes"}]},
        ),
        (
            {"prompt": [{"role": "user", "content": "a"}], "completion": [{"role": "assistant", "content": "b"}]},
            {"prompt": [{"role": "user", "content": "Hi"}], "completion": [{"role": "assistant", "content": "Yes"}]},
        ),
    ],
)
def test_answers_are_written_in_the_columns_of_the_users_rows(row: dict[str, Any], written: dict[str, Any]) -> None:
    assert choose_form(row, {})(Example("i", "t", "Hi", target="Yes")) == written
    assert takes_messages(row, {}) == (not isinstance(next(iter(row.values())), str))


def test_requests_with_turns_are_for_rows_that_can_hold_them() -> None:
    every, single = ([row["prompt"] for row in list_requests(100, single=single)] for single in (False, True))
    assert {type(prompt) for prompt in every} == {str, list}
    assert {type(prompt) for prompt in single} == {str}
    assert 0.7 * len(every) < len(single) < len(every)
    few = [row["task"] for row in list_requests(3, single=False)]
    assert set(Counter(few).values()) == {3}, "no more are answered than are needed"
    write_row = choose_form({"messages": [{"role": "user", "content": "a"}]}, {})
    messages = write_row(Example("i", "t", TURNS, target=({"role": "assistant", "content": "Yes"},)))["messages"]
    assert [one["content"] for one in messages] == ["Be brief.", "Hi", "Yes"]

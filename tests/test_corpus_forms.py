"""Forms of rows of other trainers: what becomes target, prompt and answer, what is left out, and what no one read."""

from __future__ import annotations

import csv
import gzip
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_call import Call
from hypothesis import given
from hypothesis import strategies as st

from mixwright.audit.checks.frequency import Frequency
from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.tool_messages import with_tools
from mixwright.corpus.trainable import check_training
from mixwright.errors import InputError
from mixwright.plan.mined_rows import make_record
from mixwright.records import Example, Objective, Plan, Stage, plain
from mixwright.tool_calls import find_calls, text_of
from mixwright.verbs.export import build_mix, write_mix

USER, GOOD = {"role": "user", "content": "How?"}, {"role": "assistant", "content": "So."}
SYSTEM = {"role": "system", "content": "Be kind."}


def jsonl(path: Path, *rows: Any) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def read(tmp_path: Path, *rows: Any) -> Corpus:
    return read_corpus(jsonl(tmp_path / "rows.jsonl", *rows))


KTO_FORMS: dict[str, dict[str, Any]] = {
    "TRL, messages": {"prompt": [USER], "completion": [GOOD]},
    "TRL, texts": {"prompt": "How?", "completion": "So."},
    "ms-swift": {"messages": [USER, GOOD]},
    "LLaMA-Factory, Alpaca": {"instruction": "How?", "input": "", "output": "So."},
    "ShareGPT": {"conversations": [{"from": "human", "value": "How?"}, {"from": "gpt", "value": "So."}]},
    "with an answer": {"question": "How?", "answer": "So.", "response": "So."},
}


@pytest.mark.parametrize("form", KTO_FORMS)
@pytest.mark.parametrize("name", ["label", "kto_tag", "Label", "train", "weight", "loss_weight"])
@pytest.mark.parametrize("values", [(True, False), (1, 0), ("true", "false"), ("True", "False"), ("1", "0"), (1.0, 0.0)])
def test_a_completion_that_is_labelled_false_is_no_target(
    form: str, name: str, values: tuple[Any, Any], tmp_path: Path
) -> None:
    rows = [KTO_FORMS[form] | {"id": str(number), name: values[number % 2]} for number in range(6)]
    found = read(tmp_path, *rows)
    assert [row.id for row in found] == ["0", "2", "4"]
    assert any("3 of 6 rows" in note for note in found.notes)


def test_a_label_that_is_no_label_of_the_completion_leaves_every_row(tmp_path: Path) -> None:
    rows = [
        {"question": "Is it so?", "label": 0},
        {"text": "A film.", "label": 0},
        {"prompt": "p", "chosen": "a", "rejected": "b", "label": 0},
        {"prompt": "p", "completion": "c", "label": "entailment"},
    ]
    found = [read(tmp_path, row) for row in rows]
    assert [len(corpus) for corpus in found] == [1, 1, 1, 1]
    assert found[0][0].answer == "0"
    assert ["label (1)" in " ".join(corpus.notes) for corpus in found] == [False, True, True, True]
    with pytest.raises(InputError, match="label") as caught:
        read(tmp_path, {"prompt": "p", "completion": "c", "label": 1}, {"prompt": "p", "completion": "c", "label": 3})
    assert caught.value.line == 2
    path = jsonl(tmp_path / "rows.jsonl", {"prompt": "p", "completion": "c", "label": 0})
    assert len(read_corpus(CorpusConfig(path, columns={"label": ""}, eval_share=0.0))) == 1
    with pytest.raises(InputError):
        read_corpus(path)


SYSTEM_FORMS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "Alpaca": ({"instruction": "How?", "input": "", "output": "So.", "system": "Be kind."}, [SYSTEM, USER]),
    "Alpaca with history": (
        {"instruction": "How?", "output": "So.", "system": "Be kind.", "history": [["Hello", "Hi."], ["One?", "Two."]]},
        [
            SYSTEM,
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "Two."},
            USER,
        ],
    ),
    "history alone, as JSON": (
        {"instruction": "How?", "output": "So.", "system": "", "history": '[["Hello", "Hi."]]'},
        [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi."}, USER],
    ),
    "OpenOrca": ({"system_prompt": "Be kind.", "question": "How?", "response": "So."}, [SYSTEM, USER]),
    "ShareGPT": (
        {"system": "Be kind.", "conversations": [{"from": "human", "value": "How?"}, {"from": "gpt", "value": "So."}]},
        [SYSTEM, USER],
    ),
    "a system turn goes before a column": ({"system": "Be rude.", "messages": [SYSTEM, USER, GOOD]}, [SYSTEM, USER]),
}


@pytest.mark.parametrize("form", SYSTEM_FORMS)
def test_system_and_history_are_part_of_the_prompt(form: str, tmp_path: Path) -> None:
    row, prompt = SYSTEM_FORMS[form]
    found = read(tmp_path, row)
    assert [dict(message) for message in found[0].prompt] == prompt  # type: ignore[arg-type]
    assert plain(found[0].target) == "So."
    assert any("system (1)" in note for note in found.notes) == (form == "a system turn goes before a column")
    kept = set(found[0].extra)
    assert kept == ({"system"} if form == "a system turn goes before a column" else set())


def test_rows_with_and_without_a_history_have_one_form(tmp_path: Path) -> None:
    rows = [{"instruction": f"How {n}?", "output": "So.", "history": [["a", "b"]] * (n % 2)} for n in range(4)]
    found = read(tmp_path, *rows)
    assert found.table["chat"].to_pylist() == [True] * 4
    assert sorted(len(row.prompt) for row in found) == [1, 1, 3, 3]
    plain_only = read(tmp_path, *rows[::2])
    assert [row.prompt for row in plain_only] == ["How 0?", "How 2?"], "an empty history changes nothing"


def test_another_history_is_named_and_left(tmp_path: Path) -> None:
    found = read(tmp_path, {"prompt": "p", "completion": "c", "history": "Rome was founded."})
    assert (found[0].prompt, found[0].extra) == ("p", {"history": "Rome was founded."})
    assert "history (1)" in found.notes[-1]


PAIR_FORMS: dict[str, tuple[dict[str, Any], str]] = {
    "ShareGPT": (
        {
            "conversations": [{"from": "human", "value": "How?"}],
            "chosen": {"from": "gpt", "value": "So."},
            "rejected": {"from": "gpt", "value": "No."},
        },
        "How?",
    ),
    "messages": (
        {"messages": [USER], "chosen": GOOD, "rejected": {"role": "assistant", "content": "No."}},
        "How?",
    ),
    "messages and texts": ({"messages": [SYSTEM, USER], "chosen": "So.", "rejected": "No."}, "Be kind.\nHow?"),
    "Alpaca": ({"instruction": "How?", "input": "2", "chosen": "So.", "rejected": "No."}, "How?\n\n2"),
    "Alpaca with messages": (
        {"instruction": "How?", "chosen": {"from": "gpt", "value": "So."}, "rejected": {"from": "gpt", "value": "No."}},
        "How?",
    ),
    "UltraFeedback": (
        {
            "prompt": "How?",
            "chosen": [USER, GOOD],
            "rejected": [USER, {"role": "assistant", "content": "No."}],
            "messages": [USER, GOOD],
            "score_chosen": 8.0,
            "score_rejected": 2.0,
        },
        "How?",
    ),
}


@pytest.mark.parametrize("form", PAIR_FORMS)
def test_pairs_of_other_trainers_are_pairs(form: str, tmp_path: Path) -> None:
    row, prompt = PAIR_FORMS[form]
    found = read(tmp_path, row)
    assert (plain(found[0].prompt), plain(found[0].chosen), plain(found[0].rejected)) == (prompt, "So.", "No.")
    assert found.tasks["all"].kind == "preference"
    names = [name for name in ("messages", "score_chosen", "score_rejected") if f"{name} (1)" in " ".join(found.notes)]
    assert names == (["messages", "score_chosen", "score_rejected"] if form == "UltraFeedback" else [])


def test_a_prompt_of_a_pair_that_holds_an_answer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, {"messages": [USER, GOOD], "chosen": "So.", "rejected": "No."})
    assert caught.value.line == 1


def test_rows_of_verl_have_answers_and_tasks(tmp_path: Path) -> None:
    rows = [
        {
            "data_source": "openai/gsm8k",
            "prompt": [USER],
            "ability": "math",
            "reward_model": {"style": "rule", "ground_truth": str(n)},
            "extra_info": {"index": n, "split": "train"},
        }
        for n in range(5)
    ]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    found = read_corpus(str(tmp_path / "train.parquet"))
    assert [row.answer for row in found] == ["0", "1", "2", "3", "4"]
    assert set(found.tasks) == {"openai/gsm8k"}
    assert found.tasks["openai/gsm8k"].kind == "verifiable"
    check_training("grpo", found)
    assert "ability (5), extra_info (5)" in found.notes[-1]


@pytest.mark.parametrize("name", ["images", "videos", "audios", "image"])
def test_rows_that_need_more_than_text_are_refused(name: str, tmp_path: Path) -> None:
    assert len(read(tmp_path, {"prompt": "p", "completion": "c", name: []})) == 1
    with pytest.raises(InputError, match=name) as caught:
        read(tmp_path, {"prompt": "p", "completion": "c"}, {"prompt": "<image> p", "completion": "c", name: ["a.png"]})
    assert caught.value.line == 2


def test_chats_that_end_with_the_user_are_counted_and_their_lines_named(tmp_path: Path, call: Call) -> None:
    rows = [{"conversation": [USER, GOOD] if n < 6 else [USER]} for n in range(8)]
    found = read(tmp_path, *rows)
    assert [row.target is None for row in found] == [False] * 6 + [True] * 2
    assert any("2 of 8 rows" in note for note in found.notes)
    with pytest.raises(InputError) as caught:
        check_training("sft", found)
    assert "rows.jsonl:7" in caught.value.got
    code, _, said = call("run", "--init", str(tmp_path / "rows.jsonl"), "--output", str(tmp_path / "run.yaml"))
    assert code != 0
    assert f"{tmp_path / 'rows.jsonl'}:8" in said or f"{tmp_path / 'rows.jsonl'}:7" in said
    path = jsonl(tmp_path / "talk.jsonl", *({"talk": [USER, GOOD]} for _ in range(2)))
    named = read_corpus(CorpusConfig(path, columns={"prompt": "talk"}, eval_share=0.0))
    assert [(row.prompt, row.target) for row in named] == [((USER,), (GOOD,))] * 2, "the answer is no part of the prompt"


def test_target_tokens_are_those_of_completions(tmp_path: Path) -> None:
    asked = [{"instruction": f"Write of thing {n}.", "instances": [{"input": "", "output": "o"}]} for n in range(5)]
    found = read(tmp_path, *asked)
    (seen,) = Frequency().check(found)
    assert "about 0 target tokens" in seen.message
    assert "instances (5)" in found.notes[-1]
    half = read(tmp_path, *asked[:2], {"instruction": "Say.", "output": "one two three"})
    (seen,) = [one for one in Frequency().check(half) if one.severity == "info"]
    assert "about 3 target tokens" in seen.message
    texts = read(tmp_path, {"text": "one two three four"})
    (seen,) = Frequency().check(texts)
    assert "about 4 target tokens" in seen.message


NAMES = st.text("abcdefghij_", min_size=3, max_size=8)


@given(st.lists(st.dictionaries(NAMES, st.sampled_from(["x", "", 3, None, False, ["y"], {"z": 1}]), max_size=5), min_size=1))
def test_every_column_that_no_one_read_is_named_with_its_rows(tmp_path_factory: Any, columns: list[dict[str, Any]]) -> None:
    folder = tmp_path_factory.mktemp("rows")
    found = read(folder, *({**one, "prompt": f"p{n}", "completion": "c"} for n, one in enumerate(columns)))
    filled = [name for one in columns for name, value in one.items() if value is not None]
    named = " ".join(note for note in found.notes if "columns that are not used" in note)
    for name in set(filled):
        assert f" {name} ({filled.count(name)})" in named
    assert named.count("(") == len(set(filled))


CELL = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12)
EVERY = st.text("ab 7,;\"'\t\n[]{}", max_size=10)


@given(
    rows=st.lists(st.tuples(CELL | EVERY, CELL | EVERY), min_size=1, max_size=6),
    ending=st.sampled_from([".csv", ".tsv", ".csv.gz", ".tsv.gz"]),
    mark=st.sampled_from([",", ";"]),
    newline=st.sampled_from(["\n", "\r\n"]),
    bom=st.booleans(),
)
def test_cells_are_read_as_they_were_written(
    tmp_path_factory: Any, rows: list[tuple[str, str]], ending: str, mark: str, newline: str, bom: bool
) -> None:
    rows = [(f"{n}{prompt}", f"{answer}.") for n, (prompt, answer) in enumerate(rows)]
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t" if ".tsv" in ending else mark, lineterminator=newline)
    writer.writerow(["Prompt", "Response"])
    lines = []
    for row in rows:
        lines.append(text.getvalue().count("\n") + 1)
        writer.writerow(row)
    data = (b"\xef\xbb\xbf" if bom else b"") + text.getvalue().encode()
    path = tmp_path_factory.mktemp("cells") / f"rows{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith(".gz") else data)
    found = read_corpus(str(path))
    assert [(row.prompt, row.target) for row in found] == rows
    assert [row.source for row in found] == [f"{path}:{line}" for line in lines]


def test_cells_are_texts_and_empty_ones_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('id,question,answer,level,note\n007,"What, then?",42,2,\n008,"Say ""007""",007,3,x\n', encoding="utf-8")
    found = read_corpus(str(path))
    assert [(row.id, row.prompt, row.answer, row.level) for row in found] == [
        ("007", "What, then?", "42", 2.0),
        ("008", 'Say "007"', "007", 3.0),
    ]
    assert [row.extra for row in found] == [{}, {"note": "x"}]


def test_messages_in_a_cell_are_a_chat_and_other_lists_are_text(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["messages"], [json.dumps([USER, GOOD])]])
    assert (read_corpus(str(path))[0].prompt, read_corpus(str(path))[0].target) == ((USER,), (GOOD,))
    path.write_text('prompt,completion\n[1] is,"[2, 3]"\n', encoding="utf-8")
    assert (read_corpus(str(path))[0].prompt, read_corpus(str(path))[0].target) == ("[1] is", "[2, 3]")


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("prompt,completion\na,b\nc,d,e\n", 3, "2 cells"),
        ("prompt,completion\na,b\nc\n", 3, "2 cells"),
        ('prompt,completion\na,"b\nc\n', 2, "row of cells"),
        ('prompt,completion\n\na,"b"c\n', 3, "row of cells"),
        ("prompt,prompt\na,b\n", 1, "twice"),
        ("prompt,completion\na,b\n,d\n", 3, "null"),
        ("prompt,completion\n", None, "at least one row"),
    ],
)
def test_a_broken_table_of_cells_is_named_with_its_line(text: str, line: int | None, told: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told) as caught:
        read_corpus(str(tmp_path / "rows.csv"))
    assert caught.value.line == line


def test_several_files_are_tasks_of_their_names_and_rows_keep_their_places(tmp_path: Path) -> None:
    one = jsonl(tmp_path / "one.jsonl", {"id": "1", "messages": [USER, GOOD]}, {"id": "2", "messages": [USER, GOOD]})
    (tmp_path / "two.csv").write_text("id,prompt,completion,topic\n1,a,b,c\n", encoding="utf-8")
    two = str(tmp_path / "two.csv")
    found = read_corpus(f"{one}\n{two}")
    assert [(row.task, row.source) for row in found] == [("one", f"{one}:1"), ("one", f"{one}:2"), ("two", f"{two}:2")]
    assert len({row.id for row in found}) == 3
    assert [row.id for row in found][:2] == ["1", "2"], "the first file keeps its ids"
    assert [plain(row.prompt) for row in found] == ["How?", "How?", "a"]
    assert found.table["chat"].to_pylist() == [True] * 3, "one form to train on"
    assert any(note.startswith(f"{two}: ") and "topic (1)" in note for note in found.notes)


def test_what_is_no_file_of_rows_in_a_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    jsonl(tmp_path / "rows" / "b.jsonl", {"prompt": "p", "completion": "c"})
    (tmp_path / "rows" / "a.csv").write_text("prompt,completion\nq,d\n", encoding="utf-8")
    (tmp_path / "rows" / "README.md").write_text("Rows.", encoding="utf-8")
    found = read_corpus(str(tmp_path / "rows"))
    assert [(row.task, row.prompt) for row in found] == [("a", "q"), ("b", "p")]
    assert [note for note in found.notes if "README.md" in note and "a.csv" not in note]


def test_the_first_command_of_a_user_works(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("data.csv").write_text("prompt,completion\nWhat is 1+1?,2\nWhat is 1+2?,3\n", encoding="utf-8")
    jsonl(Path("more.jsonl"), {"prompt": "Who?", "completion": "I."})
    Path("held").mkdir()
    jsonl(Path("held") / "data.jsonl", {"prompt": "What is 1+1?", "completion": "2"})
    code, out, _ = call("audit", "data.csv", "--json")
    assert code == 0
    assert json.loads(out)["observations"]
    code, out, _ = call(
        "audit", "data.csv", "more.jsonl", "--eval", "held", "--fix", "clean.jsonl", "--out", "page", "--json"
    )
    assert code == 0
    rows = [json.loads(line) for line in Path("clean.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["prompt"], row["task"]) for row in rows] == [("What is 1+2?", "data"), ("Who?", "more")]
    leaks = [one for one in json.loads(out[out.index("{") :])["observations"] if one["check"] == "contamination"]
    assert "data.csv:2" in json.dumps(leaks)
    jsonl(Path("test.jsonl"), {"prompt": "Who?", "completion": "I."})
    code, _, said = call("audit", "data.csv", "test.jsonl")
    assert code != 0
    assert "--eval" in said


TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
ARGUMENTS = {"city": "Cork", "days": [1, 2.5, None]}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}],
}


def rows_of(form: str) -> list[Example]:
    """Six rows, the last of them only in plain and chat forms with tools, a call and a mask."""
    if form == "text":
        return [Example(f"i{n}", "t", "", f"Text {n}.") for n in range(4)]
    rows = [
        Example(f"i{n}", "t u/1", f"Ask {n}", f"Say {n}.", str(n), None, chosen=f"Good {n}.", rejected=f"Bad {n}.")
        for n in range(4)
    ]
    if form == "plain":
        return rows
    history = (SYSTEM, USER, CALL, {"role": "tool", "content": "3"})
    return [
        Example(
            row.id,
            row.task,
            with_tools((*history, {"role": "user", "content": plain(row.prompt)}), TOOLS if row.id == "i1" else ()),
            ({"role": "assistant", "content": plain(row.target)},),
            row.answer,
            chosen=({"role": "assistant", "content": plain(row.chosen)},),
            rejected=({"role": "assistant", "content": plain(row.rejected)},),
            extra={"mask": [[0, 4]]} if row.id == "i1" else {},
        )
        for row in rows
    ]


def exported(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.iterdir()) if path.suffix in (".jsonl", ".parquet")]


@pytest.mark.parametrize("name", ["axolotl", "llama-factory", "verl", "trl"])
@pytest.mark.parametrize("form", ["plain", "chat", "text"])
@pytest.mark.parametrize("objective", ["sft", "dpo", "grpo"])
def test_what_an_export_writes_is_read_again(name: str, form: str, objective: Objective, tmp_path: Path) -> None:
    if (name, objective) == ("verl", "dpo") or (
        form == "text" and (objective != "sft" or name in ("verl", "llama-factory"))
    ):
        pytest.skip("no such export, or one whose prompts are empty")
    rows = rows_of(form)
    mix = build_mix(Plan("p", (Stage("s", objective, 3, {rows[0].task: 1.0}),)), Corpus.from_examples(rows), batch=4)
    lines = write_mix(mix, name, tmp_path / "out")
    found = [row for path in exported(tmp_path / "out") for row in read_corpus(str(path))]
    fields = {"sft": ("target",), "dpo": ("chosen", "rejected"), "grpo": ("answer",)}[objective]
    fields = ("target",) if (name, objective) == ("llama-factory", "grpo") else fields
    texts = {tuple(plain(getattr(row, field)) for field in ("prompt", *fields)) for row in found}
    if (name, objective) == ("llama-factory", "grpo"):
        wanted = {(plain(row.prompt), plain(row.target)) for row in rows}
    else:
        wanted = {tuple(plain(getattr(row, field)) for field in ("prompt", *fields)) for row in rows}
    assert texts == wanted
    if name in ("axolotl", "verl", "trl"):
        assert len(found) == 12, "every draw"
    if form != "chat":
        return
    (marked,) = {json.dumps(row.tools) for row in found if plain(row.prompt).endswith("Ask 1")}
    head = " ".join(path.read_text("utf-8").replace("\n#  ", "") for path in (tmp_path / "out").glob("*.yaml"))
    assert (json.loads(marked) == TOOLS) == (name != "verl")
    calls = [call for row in found for message in row.prompt for call in find_calls(text_of(message))]
    assert {call.name: call.arguments for call in calls} == {"weather": ARGUMENTS}, "and no key of another row"
    assert ("tools of 1 rows" in head) == (name == "verl")
    assert ("4 rows have tool calls in earlier turns" in head) == (objective == "sft" and name != "verl")
    masks = [row.extra.get("mask") for row in found if plain(row.prompt).endswith("Ask 1")]
    if objective == "sft" and name in ("axolotl", "trl"):
        assert all(mask == [[0, 4]] for mask in masks)
    elif objective == "sft":
        assert any("masks of 1 rows" in line for line in lines)


@pytest.mark.parametrize("form", ["plain", "chat", "text"])
def test_mined_rows_are_read_again(form: str, tmp_path: Path) -> None:
    rows = rows_of(form)
    sft = [replace(row, chosen=None, rejected=None) for row in rows]
    pairs = [replace(row, extra={}) for row in rows]
    for kind in (sft, pairs):
        found = read_corpus(jsonl(tmp_path / "rows.jsonl", *(make_record(row) for row in kind)))
        assert [row.id for row in found] == [row.id for row in kind]
        names = ("target", "answer") if kind[0].chosen is None else ("chosen", "rejected")
        for one, other in zip(found, kind, strict=True):
            assert plain(one.prompt) == plain(other.prompt)
            assert [plain(getattr(one, name)) for name in names] == [plain(getattr(other, name)) for name in names]
            assert one.tools == other.tools


def test_calls_in_earlier_turns_are_counted_where_they_are_read(tmp_path: Path) -> None:
    called = [
        {"from": "human", "value": "How?"},
        {"from": "function_call", "value": "{}"},
        {"from": "observation", "value": "3"},
        {"from": "gpt", "value": "So."},
    ]
    talked = [called[0], called[3], called[0], called[3]]
    rows = [{"conversations": called, "tools": TOOLS}] * 3 + [{"conversations": talked, "tools": ""}] * 2
    (note,) = [note for note in read(tmp_path, *rows).notes if "tool calls" in note]
    assert note.count("(3 of 5 rows)") == 1, "with calls that are not learned from"
    assert "as the completion" in note

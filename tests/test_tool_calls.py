"""Tool calls: forms read back, schemas by hand, rows that keep tools, templates with and without them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call as CallCommand
from cli_call import write

from mixwright.audit.checks.traces import Traces
from mixwright.audit.steps.call_schema import find_faults
from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.corpus import NO_CALL
from mixwright.corpus.proposed_graders import propose_grader
from mixwright.corpus.tool_messages import with_tools
from mixwright.errors import InputError
from mixwright.graders import load_grader
from mixwright.learner.prompt_form import TINY_TEMPLATE, PromptForm
from mixwright.records import Example, plain
from mixwright.tool_calls import Call, calls_in, find_calls, read_tools, structure, write_as_text, write_calls

BOOK = {
    "name": "book",
    "parameters": {
        "type": "object",
        "properties": {
            "guests": {"type": "integer", "minimum": 1, "maximum": 9},
            "time": {"type": "string"},
            "place": {"type": "string", "enum": ["in", "out"]},
            "who": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "price": {"anyOf": [{"type": "number", "multipleOf": 0.01}, {"type": "null"}]},
            "near": {"$ref": "#/$defs/point"},
        },
        "required": ["guests", "time"],
        "$defs": {"point": {"type": "object", "required": ["x"], "properties": {"x": {"type": "number"}}}},
    },
}
FIND = {"name": "find", "parameters": {"type": "object", "properties": {}}}
TOOLS = read_tools([BOOK])
RIGHT = {"guests": 2, "time": "8"}


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "f", "arguments": {"a": 1, "b": "x"}}\n</tool_call>',
        'I look. <tool_call>{"arguments": {"b": "x", "a": 1.0}, "name": "f"}</tool_call> Done.',
        '{"name": "f", "arguments": {"a": 1, "b": "x"}}',
        '```json\n[{"name": "f", "parameters": {"a": 1, "b": "x"}}]\n```',
        '[f(a=1, b="x")]',
        "<|tool_call_start|>[f(b='x', a=1)]<|tool_call_end|>",
        '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1, "b": "x"}}]',
        '<|python_tag|>{"name": "f", "parameters": {"a": 1, "b": "x"}}',
        '<function=f>{"a": 1, "b": "x"}</function>',
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nx\n</parameter>\n</function>\n</tool_call>",
        '<functioncall> {"name": "f", "arguments": "{\\"a\\": 1, \\"b\\": \\"x\\"}"}',
        '<tool_call>\nf\n{"a": 1, "b": "x"}\n</tool_call>',
        '[TOOL_CALLS]f[ARGS]{"a": 1, "b": "x"}',
        '<\uff5ctool▁call▁begin\uff5c>function<\uff5ctool▁sep\uff5c>f\n```json\n{"a": 1, "b": "x"}\n```',
        'Thought: I look.\nAction: f\nAction Input: {"a": 1, "b": "x"}',
        "<|python_tag|>f.call(a=1, b='x')",
        "<tool_call>{'name': 'f', 'arguments': {'a': 1, 'b': 'x'}}</tool_call>",
    ],
)
def test_one_call_in_the_forms_that_models_write(text: str) -> None:
    gold = Example("1", "t", "?", answer=write_calls([Call("f", {"a": 1, "b": "x"})]))
    assert load_grader("tool_call").grade(gold, text) == 1.0
    assert find_calls(text) == [Call("f", {"a": 1, "b": "x"})]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("book(guests=2)", 1),
        ("I book it.\n\nbook(guests=2)\n\nDone.", 1),
        ("```tool_code\nprint(book(guests=2, open=true))\n```", 1),
        ('```json\n{"name": "book"}\n```\nand\n```json\n{"name": "book", "arguments": {}}\n```', 2),
        ("cancel(guests=2)", 0),
        ("You would write book(guests=2) here.", 0),
        ('{"name": "Ann"}', 0),
    ],
)
def test_paragraphs_that_are_calls_of_the_rows_tools(text: str, count: int) -> None:
    assert len(find_calls(text, TOOLS)) == count
    assert not find_calls("I book it.\n\nbook(guests=2)")


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("[f(a=1), g()]", 1.0),
        ("[g(), f(a=1)]", 1.0),  # in any order
        ("[f(a=1)]", 0.0),
        ("[f(a=1), g(), g()]", 0.0),
        ("[f(a='1'), g()]", 0.0),
        ("[f(a=True), g()]", 0.0),
        ("I call f with a = 1 and then g.", 0.0),
        ("<tool_call>{broken", 0.0),
        ("[f(a=__import__('os').getcwd()), g()]", 0.0),
        ("[f(1), g()]", 0.0),
        ("[" * 20_000, 0.0),
        ("", 0.0),
    ],
)
def test_several_calls_and_what_is_none(text: str, score: float) -> None:
    gold = Example("1", "t", "?", answer=write_calls([Call("f", {"a": 1}), Call("g", {})]))
    assert load_grader("tool_call").grade(gold, text) == score


def test_over_calling_is_a_part_of_its_own() -> None:
    grader, none_right = load_grader("tool_call"), Example("1", "t", with_tools("?", TOOLS), answer="I cannot do that.")
    call = write_calls([Call("f", {})])
    assert [grader.grade(none_right, text) for text in ("Sorry.", call, "<tool_call>{broken", " ")] == [1.0, 0.0, 0.0, 0.0]
    for name in ("tool_call", "includes", "exact"):
        corpus = Corpus.from_examples([none_right], {"t": name})
        told = [corpus.parts(none_right, text) for text in ("Sorry.", call, f"<think>{call}?</think>Sorry.")]
        assert told == [{NO_CALL: True}, {NO_CALL: False}, {NO_CALL: True}], name
    words = Example("3", "t", "?", answer="No.")
    assert [grader.grade(words, text) for text in ("No.", "Sorry.")] == [1.0, 0.0], "without tools a text is a text"
    wanted = Example("2", "t", "?", answer=write_calls([Call("f", {"a": 2})]))
    assert list(grader.parts(wanted, "[f(a=3)]").values()) == [True, True, False]
    assert grader.grade(wanted, grader.reading("[f(a=2.0)]")) == 1.0


@pytest.mark.parametrize(
    ("name", "arguments", "kinds"),
    [
        ("book", RIGHT, []),
        ("book", RIGHT | {"place": "in", "who": {"name": "A"}, "tags": ["a", "b"], "price": None, "near": {"x": 1}}, []),
        ("book", RIGHT | {"guests": 2.0}, []),
        ("cook", RIGHT, ["function"]),
        ("book", {"guests": 2}, ["missing"]),
        ("book", RIGHT | {"colour": "red"}, ["unknown"]),
        ("book", RIGHT | {"colour": None}, ["null"]),
        ("book", RIGHT | {"place": None}, ["null"]),
        ("book", RIGHT | {"place": "up"}, ["value"]),
        ("book", RIGHT | {"guests": "2"}, ["value"]),
        ("book", RIGHT | {"guests": True}, ["value"]),
        ("book", RIGHT | {"guests": 2.5}, ["value"]),
        ("book", RIGHT | {"guests": 0}, ["value"]),
        ("book", RIGHT | {"guests": 10}, ["value"]),
        ("book", RIGHT | {"who": {}}, ["missing"]),
        ("book", RIGHT | {"who": {"name": 3}}, ["value"]),
        ("book", RIGHT | {"tags": ["a", 1]}, ["value"]),
        ("book", RIGHT | {"tags": ["a", "b", "c"]}, ["value"]),
        ("book", RIGHT | {"price": "cheap"}, ["value"]),
        ("book", RIGHT | {"price": 19.99}, []),
        ("book", RIGHT | {"price": 19.999}, ["value"]),
        ("book", RIGHT | {"near": {"y": 1}}, ["missing"]),
        ("book", '{"guests": 2', ["unreadable"]),
    ],
)
def test_a_call_against_its_schema(name: str, arguments: Any, kinds: list[str]) -> None:
    assert [fault.kind for fault in find_faults(name, arguments, TOOLS) or []] == kinds


def test_names_of_types_that_are_no_json_schema_are_known_or_not_checked() -> None:
    older = read_tools(
        [{"name": "f", "parameters": {"a": {"type": "str, optional"}, "b": {"type": "any"}, "c": {"type": "dict"}}}]
    )
    assert find_faults("f", {"a": "x", "b": object(), "c": {}}, older) == []
    assert [fault.where for fault in find_faults("f", {"a": 1, "c": []}, older) or []] == ["f.a", "f.c"]
    assert find_faults("f", {"a": 1}, read_tools([{"name": "f"}])) is None, "no schema, no check"


def _talk(arguments: Any, name: str = "book") -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"messages": [{"role": "user", "content": f"A table: {arguments}"}, said], "tools": [BOOK]}


def _sharegpt(arguments: Any) -> dict[str, Any]:
    value = json.dumps({"name": "book", "arguments": arguments})
    turns = [{"from": "human", "value": "A table."}, {"from": "function_call", "value": value}]
    turns += [{"from": "observation", "value": "{}"}, {"from": "gpt", "value": "Done."}]
    return {"conversations": turns, "tools": json.dumps([BOOK])}


@pytest.mark.parametrize("rows", [[_talk(json.dumps(RIGHT)), _talk(RIGHT)], [_sharegpt(RIGHT), _sharegpt(RIGHT)]])
def test_rows_of_every_form_hold_the_same_structures(rows: list[dict[str, Any]], call: CallCommand) -> None:
    for row in read_corpus(write("rows.jsonl", rows)):
        turns = [turn for text in (row.prompt, row.target) if isinstance(text, tuple) for turn in text]
        (called,) = [turn for turn in turns if turn.get("tool_calls")]
        assert called["role"] == "assistant"
        assert called["tool_calls"][0]["function"] == {"name": "book", "arguments": RIGHT}
        assert row.tools == TOOLS
        assert "tools" not in row.extra
        assert json.dumps(BOOK["parameters"]) not in plain(row.prompt), "tools are no words of the prompt"


def test_calls_without_a_name_are_refused(call: CallCommand) -> None:
    row = _talk(RIGHT)
    del row["messages"][1]["tool_calls"][0]["function"]["name"]
    row["messages"][1]["content"] = ""
    with pytest.raises(InputError, match="tool calls with a name"):
        read_corpus(write("rows.jsonl", [row]))


def test_answers_that_are_json_calls_beside_tools_are_structures(call: CallCommand) -> None:
    answer = json.dumps([{"name": "book", "arguments": RIGHT}])
    row = {"prompt": "A table.", "tools": json.dumps([BOOK]), "answer": answer}
    (read,) = read_corpus(write("rows.jsonl", [row]))
    assert read.target is not None
    assert find_calls(plain(read.target)) == [Call("book", RIGHT)]
    assert isinstance(read.target, tuple)
    assert load_grader("tool_call").grade(read, "[book(time='8', guests=2)]") == 1.0


def test_the_grader_is_chosen_where_gold_answers_are_calls(call: CallCommand) -> None:
    declined = _talk(RIGHT)
    declined["messages"][1] = {"role": "assistant", "content": "No function does that, I am afraid to say."}
    rows = list(read_corpus(write("rows.jsonl", [_talk(RIGHT), _talk(RIGHT | {"guests": 3}), declined])))
    assert propose_grader(rows).grader == "tool_call"
    assert propose_grader(list(read_corpus(write("more.jsonl", [_sharegpt(RIGHT)] * 3)))).grader is None, "answers are words"


def _example(number: int, arguments: Any, tools: Any = TOOLS, name: str = "book") -> Example:
    asked, said = _talk(arguments, name)["messages"]
    return Example(f"{number}", "t", with_tools((asked,), tools), (structure(said),))


def test_an_audit_never_reassures_about_calls_that_it_did_not_check() -> None:
    def told(*rows: Example) -> list[tuple[str, int, int]]:
        return [(one.severity, one.count, one.total) for one in Traces().check(Corpus.from_examples(rows))]

    right = [_example(number, RIGHT) for number in range(3)]
    assert told(*right) == [("info", 0, 3)]
    assert told(right[0], _example(4, RIGHT | {"place": None}), _example(5, RIGHT, name="cook")) == [("warning", 1, 3)] * 2
    (found,) = Traces().check(Corpus.from_examples([right[0], *(_example(number, RIGHT, ()) for number in (6, 7))]))
    assert (found.severity, found.count, found.total) == ("warning", 2, 3)
    assert "not checked" in found.message
    assert "no fault" not in found.message


def test_a_template_without_tools_has_them_in_the_system_message() -> None:
    (user, said) = (_talk(RIGHT)["messages"][0], structure(_talk(RIGHT)["messages"][1]))
    prompt = ({**user, "tools": TOOLS}, said, {"role": "tool", "content": "1"}, {"role": "tool", "content": "2"})
    shown = PromptForm().resolved_for("{{ messages }}{{ tools }}").format_prompt(prompt)
    assert shown == prompt, "the template shows them"
    written = PromptForm(True).resolved_for(TINY_TEMPLATE).format_prompt(prompt)
    assert [turn["role"] for turn in written] == ["system", "user", "assistant", "user"]
    assert json.dumps(TOOLS[0]) in written[0]["content"]
    assert find_calls(written[2]["content"]) == [Call("book", RIGHT)]
    assert written[3]["content"].count("<tool_response>") == 2
    assert all(turn.keys() == {"role", "content"} for turn in written)
    system = ({"role": "system", "content": "Be kind.", "tools": TOOLS}, user)
    assert write_as_text(system)[0]["content"].startswith("Be kind.\n\n# Tools")


def test_rows_for_trl_keep_each_calls_own_arguments() -> None:
    pytest.importorskip("datasets")
    first, second = (_example(number, own) for number, own in enumerate(({"a": 1}, {"b": [1, "x"]})))
    rows = Corpus.from_examples([first, second]).to_datasets()
    calls = [row["completion"][0]["tool_calls"][0]["function"]["arguments"] for row in rows]
    assert calls == [{"a": 1}, {"b": [1, "x"]}]
    assert [json.loads(row["tools"]) for row in rows] == [TOOLS, TOOLS]
    assert all("tools" not in row["prompt"][0] for row in rows)
    form = PromptForm(True).resolved_for(TINY_TEMPLATE)
    (made, _) = map(form.row, rows.to_list())
    assert "tools" not in made
    assert made["prompt"][0]["role"] == "system"
    assert find_calls(made["completion"][0]["content"]) == [Call("book", {"a": 1})]


@pytest.mark.parametrize("inner", [{"anyOf": 7}, {"allOf": "x"}, {"type": "array", "prefixItems": 5}])
def test_a_schema_with_something_else_in_the_place_of_a_list_finds_nothing(inner: dict[str, Any]) -> None:
    tools = read_tools([{"name": "f", "parameters": {"type": "object", "properties": {"a": inner}}}])
    assert find_faults("f", {"a": [1]}, tools) == []


@pytest.mark.parametrize(
    "answers",
    [[{"name": "book", "arguments": RIGHT}], json.dumps([{"name": "book", "arguments": RIGHT}])],
    ids=["list", "JSON"],
)
def test_the_column_answers_of_xlam_holds_calls(answers: Any, tmp_path: Path) -> None:
    path = write(str(tmp_path / "xlam.jsonl"), [{"query": "A table", "tools": json.dumps([BOOK]), "answers": answers}])
    (row,) = read_corpus(CorpusConfig(path, eval_share=0.0))
    assert isinstance(row.target, tuple)
    assert calls_in(row.target[0]) == find_calls(row.answer or "") == [Call("book", RIGHT)]
    for row in ({"query": "A table", "answers": answers}, {"query": "A table", "tools": [BOOK], "answers": "No."}):
        (read,) = read_corpus(CorpusConfig(write(str(tmp_path / "other.jsonl"), [row]), eval_share=0.0))
        assert read.answer is read.target is None, "other columns of this name are not read"


@pytest.mark.parametrize(
    "roles", [("tool_call", "tool_response"), ("function-call", "function-response"), ("function_call", "observation")]
)
def test_roles_of_calls_and_results_have_several_names(roles: tuple[str, str], tmp_path: Path) -> None:
    call, result = roles
    turns = [("human", "A table"), (call, json.dumps({"name": "f", "arguments": {}})), (result, "1"), ("gpt", "Done.")]
    path = write(str(tmp_path / "roles.jsonl"), [{"conversations": [{"from": role, "value": text} for role, text in turns]}])
    (row,) = read_corpus(CorpusConfig(path, eval_share=0.0))
    assert isinstance(row.prompt, tuple)
    assert [turn["role"] for turn in row.prompt] == ["user", "assistant", "tool"]
    assert calls_in(row.prompt[1]) == [Call("f", {})]


@pytest.mark.parametrize("listed", ["{}", "<tools>\n{}\n</tools>", "You have {}. Use [f(x=1)] and {{}} as you like."])
def test_calls_are_checked_against_tools_that_the_system_message_lists(listed: str) -> None:
    system = {"role": "system", "content": listed.format(json.dumps([BOOK, {"type": "function", "function": FIND}]))}
    user = {"role": "user", "content": "A table"}
    calls = [("book", RIGHT), ("find", {}), ("look", {}), ("book", {"guests": 2})]
    rows = [
        Example(str(n), "t", (system, user), target=(structure({"role": "assistant", "function_call": call}),))
        for n, call in enumerate({"name": name, "arguments": arguments} for name, arguments in calls)
    ]
    found = Traces().check(Corpus.from_examples(rows))
    assert [(one.count, one.total, [row["id"] for row in one.evidence]) for one in found] == [(1, 4, ["2"]), (1, 4, ["3"])]

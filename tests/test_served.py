"""Models behind a server: what is asked, what is kept, what a server lacks, and what a hostile one sends."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from cli_call import Call, sums, write
from server_stub import Stub, completion, serving

from mixwright.errors import InputError
from mixwright.measure import served
from mixwright.measure.served import Asking, RefusedRequest, ServedModel, seed_of, to_messages
from mixwright.run.folder import RunFolder
from mixwright.verbs import serving as serving_verb

pytest.importorskip("openai")


@pytest.fixture(autouse=True)
def few_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "RETRIES", 1)


def add(body: dict[str, Any]) -> str:
    """The right answer to `n+1=`."""
    return str(int(body["messages"][-1]["content"].partition("+")[0]) + 1)


def refuse(told: str) -> tuple[int, dict[str, Any]]:
    return 400, {"error": {"message": told, "type": "invalid_request_error"}}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    (log,) = folder.glob("*/log.jsonl")
    return [json.loads(line) for line in log.read_text().splitlines()]


def ask(call: Call, stub: Stub, *more: str) -> tuple[int, str, str]:
    return call("measure", stub.url, "--eval", write("e.jsonl", sums(20)), "--grader", "exact", *more)


def test_answers_become_a_log_that_is_judged(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-never-write-me")
    with serving(lambda body: "0" if body["messages"][-1]["content"] == "7+1=" else add(body), slow=0.02) as stub:
        code, out, err = ask(call, stub, "--parallel", "3", "--system", "Add.")
    assert code == 0, err
    assert "95.0%" in out
    rows = rows_of(Path("runs/served"))
    assert [row["completion"] for row in rows if row["prompt"] == "7+1="] == ["0"]
    assert sum(row["score"] for row in rows) == 19
    assert {row["tokens"] for row in rows} == {3}
    assert stub.most_running <= 3
    assert stub.keys == {"Bearer sk-never-write-me"}
    assert stub.bodies[0]["messages"][0] == {"role": "system", "content": "Add."}
    assert {body["temperature"] for body in stub.bodies} == {0}
    texts = [path.read_text() for path in Path().rglob("*") if path.is_file()]
    assert not any("sk-never" in text for text in texts)
    assert "sk-never" not in out + err


def test_what_was_answered_is_not_asked_again(call: Call) -> None:
    down = [False]

    def answer(body: dict[str, Any]) -> Any:
        return (500, {"error": {"message": "down"}}) if down[0] and body["messages"][-1]["content"] == "9+1=" else add(body)

    with serving(answer) as stub:
        down[0] = True
        code, _, err = ask(call, stub, "--parallel", "1")
        assert code == 1
        assert "The same command goes on from the answers so far" in err
        (answers,) = Path("runs/served").glob("*/answers.jsonl")
        kept = len(answers.read_text().splitlines())
        with answers.open("ab") as file:
            file.write('{"task": "sum", "id": "9", "sé'.encode()[:-1])  # killed in the middle of a letter
        down[0], asked = False, len(stub.bodies)
        code, out, err = ask(call, stub, "--parallel", "1")
        assert (code, "100.0%" in out) == (0, True), err
        checks = 2 * served.TRIED_PROMPTS + 2 * serving_verb.CHECKED_ANSWERS
        assert len(stub.bodies) - asked == (20 - kept) + checks
        asked = len(stub.bodies)
        assert ask(call, stub)[0] == 0
        assert len(stub.bodies) == asked + 2 * (served.TRIED_PROMPTS // 2) + 2 * serving_verb.CHECKED_ANSWERS
    code, _, err = ask(call, stub, "--served-model", "m")
    assert (code, "warning: could not check that the server" in err) == (0, True), err
    assert len(rows_of(Path("runs/served"))) == 20


@pytest.mark.parametrize(
    ("unknown", "lacking"),
    [
        (("seed",), "seeds\n"),
        (("top_k",), "control of penalties and cut-offs\n"),
        (("top_k", "seed"), "control of penalties and cut-offs, seeds\n"),
        (("max_tokens",), ""),  # newer names are tried
    ],
)
def test_fields_that_a_server_refuses_are_left_out_and_named(call: Call, unknown: tuple[str, ...], lacking: str) -> None:
    def answer(body: dict[str, Any]) -> Any:
        wrong = [name for name in unknown if name in body]
        use = "; use max_completion_tokens" if "max_tokens" in wrong else ""
        return refuse(f"{wrong[0]} is not supported{use}") if wrong else add(body)

    with serving(answer) as stub:
        code, out, err = ask(call, stub)
    assert (code, "100.0%" in out) == (0, True), err
    assert (f"it does not support {lacking}" in err) == bool(lacking)


def test_a_server_that_decodes_greedily_gives_no_samples(call: Call) -> None:
    with serving(add) as stub:
        code, _, err = ask(call, stub, "--sampled")
    assert code == 1
    assert "expected samples that differ, at temperature 1, got the same 4 texts three times" in err


def test_samples_have_seeds_of_their_own(call: Call) -> None:
    with serving(lambda body: str(body["seed"] % 7)) as stub:
        code, _, err = ask(call, stub, "--sampled", "--samples", "3", "--temperature", "0.7")
    assert code == 0, err
    rows = rows_of(Path("runs/served"))
    assert len(rows) == 60
    assert {row["sample"] for row in rows} == {0, 1, 2}
    assert {row["temperature"] for row in rows} == {0.7}
    for row in rows:
        assert row["completion"] == str(seed_of(0, (row["task"], row["id"], row["sample"])) % 7)


def test_refused_cut_and_unanswered_prompts_are_counted(call: Call) -> None:
    def answer(body: dict[str, Any]) -> Any:
        asked = body["messages"][-1]["content"]
        special = {
            "3+1=": completion("4", finish_reason="content_filter"),
            "2+1=": completion("3", message={"role": "assistant", "content": "3", "refusal": "I may not say 3."}),
            "6+1=": completion(None),
            "4+1=": completion("5", finish_reason="length"),
            "7+1=": completion("8", message={"role": "assistant", "content": "8", "reasoning_content": "7, 8."}),
            "8+1=": completion(None, message={"role": "assistant", "content": None, "reasoning": "8, then"}),
            "5+1=": refuse("maximum context length is 3 tokens"),
        }
        return special.get(asked) or add(body)

    with serving(answer) as stub:
        code, _, err = ask(call, stub)
        assert ask(call, stub)[0] == 0, "a prompt that is refused again does no harm"
    assert code == 0
    assert "19 answers, 1 cut at 512 tokens, 2 refused or filtered, 1 empty" in err
    assert "does not answer 1 prompt" in err
    assert "maximum context length" in err
    scores = {row["prompt"]: row["score"] for row in rows_of(Path("runs/served"))}
    assert [scores[f"{n}+1="] for n in (2, 3, 4, 5, 6, 7, 8)] == [0, 0, 1, None, 0, 1, 0], "graded behind the thoughts"
    texts = {row["prompt"]: row.get("completion") for row in rows_of(Path("runs/served"))}
    assert (texts["7+1="], texts["8+1="]) == ("<think>\n7, 8.\n</think>\n8", "<think>\n8, then")


LONG = "x" * (served.MAX_CHARACTERS_PER_TOKEN * 512 + 1)
HOSTILE: dict[str, tuple[Any, str]] = {
    "a list for a text": (completion([{"type": "text"}]), "got a list"),
    "a text without end": (completion(LONG), "got 102,401 characters"),
    "a text for a choice": ({"id": "x", "choices": ["hello"]}, "expected a completion"),
    "a text for a message": ({"id": "x", "choices": [{"message": "hello"}]}, "expected a completion"),
    "an error in the middle": (completion("a", finish_reason="error"), "server error"),
    "depth": ((200, b"[" * 200_000), "error: expected"),
    "a redirect": ((302, {"error": {"message": "elsewhere"}}), "error: expected"),
    "no choices": ({"id": "x", "choices": []}, "expected a completion"),
    "an object for choices": ({"id": "x", "choices": {"0": 1}}, "expected a completion"),
    "a number for tool calls": (
        {"id": "x", "choices": [{"message": {"content": "4", "tool_calls": 7}}]},
        "expected a completion",
    ),
    "null": (None, "expected a completion"),
    "a page": ((200, b"<html>not here</html>"), "error: expected"),
    "broken JSON": ((200, b'{"id": '), "error: expected"),
    "no such model": ((404, {"error": {"message": "no model m"}}), "expected the model m"),
    "a wrong key": ((401, {"error": {"message": "bad key"}}), "OPENAI_API_KEY"),
    "always busy": ((429, {"error": {"message": "busy"}}), "The same command goes on"),
    "a body without end": ((200, b"x" * 300_000), "expected a reply of at most 0 MiB"),
}


@pytest.mark.parametrize("name", list(HOSTILE))
def test_what_is_no_answer_ends_in_one_line(call: Call, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    body, told = HOSTILE[name]
    monkeypatch.setattr(served, "MAX_REPLY_BYTES", 250_000)
    with serving(lambda _: body) as stub:
        code, out, err = ask(call, stub)
    assert (code, out) == (1, "")
    assert told in err.splitlines()[-1]
    assert "Traceback" not in err


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_proxy_that_is_no_address_is_the_users_to_correct(
    call: Call, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "::bad::")
    with serving(add) as stub:
        code, out, err = ask(call, stub)
    assert (code, out) == (1, "")
    assert variable in err.splitlines()[-1]


def test_a_server_that_drips_is_left_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each byte starts the client's own time-outs again."""
    monkeypatch.setattr(served, "REQUEST_SECONDS", 0.5)
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        with listener.accept()[0] as peer:
            peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not over.wait(0.05):
                peer.sendall(b" ")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        Thread(target=drip, args=(listener,), daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        for call_server in (lambda: ServedModel(Asking(url, "m", 8)).ask("x", 1), lambda: served.find_model(url)):
            with pytest.raises(InputError, match=r"an answer of .* within 0.5 s, got none"):
                call_server()
        over.set()


def test_a_prompt_that_is_refused_now_and_then_ends_nothing(call: Call) -> None:
    asked = itertools.count()
    with serving(lambda body: refuse("not now") if next(asked) % 3 == 2 else add(body)) as stub:
        code, _, err = ask(call, stub, "--parallel", "1")
    assert code == 0, err
    assert "repeatable greedy answers" in err


@pytest.mark.parametrize(
    ("status", "told"),
    [(401, "Set OPENAI_API_KEY."), (404, "with /v1, or name the model"), (200, "got something else. Check")],
)
def test_a_server_without_a_list_of_models_says_what_to_do(call: Call, status: int, told: str) -> None:
    with serving(add) as stub:
        stub.listed = status, "no list"
        assert told in ask(call, stub)[2].splitlines()[-1]


def test_a_key_that_no_header_takes_is_not_repeated(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("sk-zebra\nquagga", "sk-zébra-quagga"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
        with serving(add) as stub:
            code, out, err = ask(call, stub)
        assert (code, "printable ASCII characters in OPENAI_API_KEY" in err) == (1, True)
        assert "quagga" not in out + err


def test_a_busy_server_is_asked_again() -> None:
    busy = [True]

    def answer(body: dict[str, Any]) -> Any:
        if busy.pop() if busy else False:
            return 429, {"error": {"message": "slow down"}}
        return "done"

    with serving(answer) as stub, closing(ServedModel(Asking(stub.url, "m", 8))) as model:
        assert model.ask("x", 1).text == "done"
    assert len(stub.bodies) == 2


def test_plain_prompts_go_to_the_other_door() -> None:
    found = {"id": "x", "choices": [{"index": 0, "text": " 4", "finish_reason": "stop"}]}
    with serving(lambda _: found) as stub, closing(ServedModel(Asking(stub.url, "m", 8, chat=False))) as model:
        reply = model.ask("2+2=", 1)
    assert reply.text == " 4"
    assert stub.bodies[0]["prompt"] == "2+2="


def test_messages_have_one_system_message() -> None:
    told = ({"role": "system", "content": "own"}, {"role": "user", "content": "q"})
    assert to_messages(told, "other") == list(told)
    assert to_messages("q", "be brief") == [{"role": "system", "content": "be brief"}, {"role": "user", "content": "q"}]


def test_two_served_models_are_gated(call: Call) -> None:
    def answer(body: dict[str, Any]) -> str:
        return add(body) if body["model"] == "old" else "0"

    names = ("--served-model", "old", "--served-model", "new")
    write("e.jsonl", sums(60))
    gate = ("--eval", "e.jsonl", "--grader", "exact", "--gate", "--protect", "sum", "--items", "60")
    with serving(answer) as stub:
        code, out, err = call("verdict", stub.url, stub.url, *names, *gate)
        assert code == 3, err
        assert "damaged" in out
        assert call("verdict", stub.url, stub.url, "--served-model", "old", *gate)[2].startswith(
            "error: expected two models"
        )
        (log,) = Path("runs/served").glob("old-*/log.jsonl")
        code, out, err = call("verdict", str(log), stub.url, "--served-model", "new", "--folder", "b", *gate)
        assert code == 3, err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("measure", "http://u:p@127.0.0.1:1/v1", "--served-model", "m"), "an address without a password"),
        (("measure", "http://127.0.0.1:1/v1", "--served-model", "m", "--samples", "3"), "--samples with --sampled"),
        (("measure", "http://127.0.0.1:1/v1", "--served-model", "m", "--adapter", "a"), "without options for loading"),
        (("measure", "http://127.0.0.1:1/v1", "--served-model", "m"), "a server at http://127.0.0.1:1/v1"),
        (("measure", "http://[::1/v1", "--served-model", "m"), "the address of a server"),
        (("measure", "HTTP://127.0.0.1:abc/v1", "--served-model", "m"), "the address of a server"),
        (("measure", "http://127.0.0.1:1/v1#sk-1", "--served-model", "m"), "an address without a password"),
        (("measure", "http://127.0.0.1:1/v1?api_key=1"), "an address without a password"),
        (("measure", "http://127.0.0.1:1/v1", "--temperature", "1"), "--temperature with --sampled"),
        (("measure", "http://127.0.0.1\n:1/v1", "--served-model", "m"), "the address of a server"),
        (("measure", "http://127.0.0.1:1/v1\x1b[31m", "--served-model", "m"), "the address of a server"),
        (("measure", "http://\uff45xample.com/v1", "--served-model", "m"), "the address of a server"),
        (("measure", "http://\uff11\uff12\uff17.0.0.1/v1"), "the address of a server"),
        (("measure", "http://u:sk-1@[::1/v1", "--fresh", "f"), "an address without a password"),
        (("verdict", "http://u:sk-1@127.0.0.1:99999/v1", "b"), "an address without a password"),
        (("plan", "http://u:sk-1@127.0.0.1:1/v1", "--objective", "sft"), "an address without a password"),
        (("verdict", "http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1/", "--served-model", "m"), "two models"),
        (("plan", "http://127.0.0.1:1/v1", "--objective", "sft"), "a checkpoint on this machine"),
        (("verdict", "http://127.0.0.1:1/v1", "b", "--until-decided", "--gate"), "--until-decided"),
    ],
)
def test_options_that_do_not_fit_are_refused(call: Call, arguments: tuple[str, ...], told: str) -> None:
    code, out, err = call(*arguments, "--eval", write("e.jsonl", sums(10)))
    assert (code, out) == (1, "")
    assert told in err.splitlines()[-1]
    assert "sk-1" not in err


def test_options_of_servers_need_one(call: Call) -> None:
    code, _, err = call("measure", "somewhere", "--eval", write("e.jsonl", sums(10)), "--parallel", "2")
    assert code == 1
    assert "--parallel with a server, http://HOST/v1" in err


def test_a_prompt_that_is_refused_says_why() -> None:
    with (
        serving(lambda _: refuse("no chat template")) as stub,
        closing(ServedModel(Asking(stub.url, "m", 8))) as model,
        pytest.raises(RefusedRequest, match="no chat template"),
    ):
        model.ask("x", 1)


def test_another_model_behind_the_same_name_is_noticed(call: Call) -> None:
    """Else a gate would pass a new model on the answers of the old one."""
    worse = [False]
    with serving(lambda body: "0" if worse[0] and body["messages"][-1]["content"][0] in "13579" else add(body)) as stub:
        assert ask(call, stub)[0] == 0
        worse[0] = True
        code, out, err = ask(call, stub)
        assert (code, out) == (1, "")
        assert "expected the same answers as before, got different answers to" in err
        (log,) = Path("runs/served").glob("*/log.jsonl")
        code, _, err = call("verdict", str(log), stub.url, "--eval", "e.jsonl", "--grader", "exact", "--items", "20")
        assert code == 1
        worse[0] = False
        code, _, err = call("verdict", str(log), stub.url, "--eval", "e.jsonl", "--grader", "exact", "--items", "20")
        assert (code, "expected a log outside the folder of the server's answers" in err) == (1, True)


def test_one_command_at_a_time_has_the_folder(call: Call) -> None:
    with serving(add) as stub:
        assert ask(call, stub)[0] == 0
        (folder,) = Path("runs/served").iterdir()
        with RunFolder(folder).lock():
            assert "a run folder nobody else is using" in ask(call, stub)[2]


def test_the_key_is_in_no_message(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", " sk-never-write-me\n")
    monkeypatch.setattr(served, "RETRIES", 0)
    for status in (400, 401, 500):
        with serving(lambda _, status=status: (status, {"error": {"message": "no Bearer sk-never-write-me here"}})) as stub:
            code, out, err = ask(call, stub)
        assert code == 1
        assert "sk-never" not in out + err
        assert stub.keys == {"Bearer sk-never-write-me"}


KEY = "sk-never-write-me"
RAW = "\x1b]0;title\x07\x1b[31mred\x9b2J\u202e"
"""Sets the title of a terminal, its colour, and the direction of its text."""


def has_control(text: str) -> bool:
    return not all(letter.isprintable() or letter in "\n\t" for letter in text)


SAID: dict[str, Any] = {
    "an answer": f"It is {RAW} {KEY}.",
    "an error": (500, {"error": {"message": f"{RAW} {KEY}"}}),
    "a refusal": (400, {"error": {"message": f"{RAW} {KEY}"}}),
    "a wrong key": (401, {"error": {"message": f"{RAW} {KEY}"}}),
    "an unknown model": (404, {"error": {"message": f"{RAW} {KEY}"}}),
    "a page": (200, f"<html>{RAW} {KEY}</html>".encode()),
    "no choices": {"id": f"{RAW} {KEY}", "choices": []},
    "no message": {"id": "x", "choices": [{"message": f"{RAW} {KEY}"}]},
    "a reason": completion("4", finish_reason=f"{RAW} {KEY}"),
    "a cut answer": completion(f"{KEY} {RAW}", finish_reason="length"),
}


@pytest.mark.parametrize("name", list(SAID))
@pytest.mark.parametrize("verb", ["measure", "verdict"])
def test_nothing_that_a_server_says_moves_the_cursor_or_repeats_the_key(
    call: Call, monkeypatch: pytest.MonkeyPatch, name: str, verb: str
) -> None:
    """On the terminal and in no file; an answer stays as it is in its file but for the key, because it is graded."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr(served, "RETRIES", 0)
    corpus = ("--eval", write("e.jsonl", sums(20)), "--grader", "exact")
    with serving(lambda body: SAID[name] if body["model"] != "old" else add(body)) as stub:
        if verb == "measure":
            code, out, err = call("measure", stub.url, *corpus, "--full")
        else:
            names = ("--served-model", "old", "--served-model", "new", "--full", "--gate", "--items", "20")
            code, out, err = call("verdict", stub.url, stub.url, *names, *corpus)
    assert code != 2, err
    assert "Traceback" not in err
    assert KEY not in out + err
    assert not has_control(out + err)
    files = [path for path in Path().rglob("*") if path.is_file() and path.suffix != ".parquet"]
    for path in files:
        text = path.read_text(encoding="utf-8")
        assert KEY not in text, path
        assert not has_control(text), path
    if name == "an answer":
        lines = [line for file in Path().rglob("log.jsonl") for line in file.read_text().splitlines()]
        texts = {json.loads(line)["completion"] for line in lines}
        assert f"It is {RAW} ***." in texts


@pytest.mark.parametrize("model", [f"m{RAW}", "m\nerror: nothing", KEY, "x" * 1000, "\u202em"])
def test_a_models_name_that_cannot_be_shown_has_to_be_given(call: Call, monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(add) as stub:
        stub.names = [model]
        code, out, err = ask(call, stub)
    assert (code, out) == (1, "")
    assert "--served-model" in err
    assert len(err) < 600
    assert KEY not in err
    assert not has_control(err)
    assert not Path("runs").exists()


def test_what_cannot_be_kept_is_mended() -> None:
    body = completion("half \ud83d")
    body["usage"]["completion_tokens"] = -3
    with serving(lambda _: body) as stub, closing(ServedModel(Asking(stub.url, "m", 8))) as model:
        reply = model.ask("x", 1)
    assert (reply.text, reply.tokens) == ("half ?", None)


def test_a_failure_ends_the_rest() -> None:
    """What is under way is not waited for."""
    with serving(lambda body: add(body) if "1+1" in str(body) else (401, {"error": {"message": "no"}})) as stub:
        model = ServedModel(Asking(stub.url, "m", 8))
        requests = [served.Request(("t", str(n), 0), f"{n}+1=") for n in (1, 2, 3)]
        with pytest.raises(InputError, match="OPENAI_API_KEY"):
            list(model.answer(requests, parallel=1))
        model.close()

"""`mixwright preview`: rows as TRL takes them, settings of TRL and Axolotl, and the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, write
from test_labels import ONLY, chats, tokenizer_of
from trainers_tiny import model

from mixwright.verbs.preview import read_as_trl, read_settings

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A checkpoint of the family ChatML."""
    folder, tokenizer = tmp_path_factory.mktemp("models") / "chatml", tokenizer_of("chatml")
    model(vocab_size=len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def test_arguments_of_the_template_reach_it(call: Call, checkpoint: str, tmp_path: Path) -> None:
    tokenizer = tokenizer_of("chatml")
    tokenizer.chat_template = tokenizer.chat_template.replace("{% for m", "{% if loud %}LOUD{% endif %}{% for m", 1)
    model(vocab_size=len(tokenizer)).save_pretrained(tmp_path / "loud")
    tokenizer.save_pretrained(tmp_path / "loud")
    command = ("preview", write("rows.jsonl", chats()), "--model", str(tmp_path / "loud"))
    assert "LOUD" not in call(*command)[1].replace(" ", "")
    assert "LOUD" in call(*command, "--template", "loud=true")[1].replace(" ", "")


def test_the_learned_text_is_marked_and_faults_set_the_exit_code(call: Call, checkpoint: str) -> None:
    Path("trl.yaml").write_text("assistant_only_loss: true\nmax_length: 500\nlearning_rate: 1e-4\n", encoding="utf-8")
    rows = write("rows.jsonl", chats())
    command = ("preview", rows, "--model", checkpoint, "--config", "trl.yaml", "--fail-on", "warning")
    code, out, err = call(*command)
    assert code == 0, err
    assert "[[Itis1.<|im_end|>]]" in out.replace(" ", "")
    assert out.startswith("Nothing to fix")
    assert out.count("  row ") == 3
    assert call(*command, "--full")[1].count("  row ") == len(chats())
    code, out, _ = call("preview", rows, "--model", checkpoint, "--json", "--fail-on", "warning")
    assert code == 3
    assert json.loads(out)["facts"][0]["rows"] == len(chats())


def test_rows_that_trl_reads_stay_as_they_are_and_others_become_pairs() -> None:
    write("own.jsonl", [{"prompt": "a", "completion": "b", "task": "t", "note": 1}])
    assert list(read_as_trl("own.jsonl", {})) == [({"prompt": "a", "completion": "b"}, "t", "own.jsonl:1")]
    write("alpaca.jsonl", [{"instruction": "Add.", "input": "1+1", "output": "2"}])
    ((row, _, _),) = read_as_trl("alpaca.jsonl", {})
    assert row["completion"] == "2"
    assert "1+1" in row["prompt"]


def test_prompts_and_roles_are_those_of_axolotls_data_sets() -> None:
    """By hand; the study `label_agreement` compares tokens with Axolotl's released code."""

    def read(rows: list[dict[str, Any]], kind: Any) -> list[Any]:
        Path("axolotl.yaml").write_text(json.dumps({"base_model": "m", "datasets": [{"type": kind}]}), encoding="utf-8")
        settings, _ = read_settings(Path("axolotl.yaml"))
        return [row for row, *_ in read_as_trl(write("rows.jsonl", rows), {}, settings["axolotl_type"])]

    alpaca = [{"instruction": "Add.", "input": given, "output": "2"} for given in ("1+1", "")]
    with_input, without = read(alpaca, "alpaca")
    assert with_input["prompt"].endswith(
        "context. Write a response that appropriately completes the request.\n\n### "
        "Instruction:\nAdd.\n\n### Input:\n1+1\n\n### Response:\n"
    )
    assert without["prompt"].endswith(
        "a task. Write a response that appropriately completes the request.\n\n### Instruction:\nAdd.\n\n### Response:\n"
    )
    own = {
        "field_instruction": "q",
        "field_output": "a",
        "format": "{input}: {instruction}?",
        "no_input_format": "{instruction}!",
    }
    assert read([{"q": "Odd", "input": 3, "a": "Yes"}, {"q": "Hi", "a": "Ho"}], own) == [
        {"prompt": "3: Odd?", "completion": "Yes"},
        {"prompt": "Hi!", "completion": "Ho"},
    ]
    talk = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]
    renamed = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    assert read([{"conversations": talk}], "chat_template") == [{"messages": renamed}]


@pytest.mark.parametrize(
    ("yaml", "named"),
    [
        ("datasets: [{path: a, type: chat_template, roles_to_train: [user]}]", "roles_to_train"),
        ("datasets: [{path: a, type: completion}]", "type completion"),
        ("train_on_eos: last", "train_on_eos"),
        ("datasets: [{path: a, type: alpaca}]", ""),
    ],
)
def test_keys_of_axolotl_that_are_not_read_are_named(yaml: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("axolotl.yaml").write_text(f"base_model: m\n{yaml}\n", encoding="utf-8")
    read_settings(Path("axolotl.yaml"))
    assert capsys.readouterr().err.partition("without ")[2].partition(", which")[0] == named


def test_settings_of_axolotl_and_trl_are_read() -> None:
    Path("axolotl.yaml").write_text(
        "base_model: m\nsequence_len: 900\nsample_packing: true\nflash_attention: true\n"
        "datasets: [{path: a.jsonl, type: chat_template}]\n",
        encoding="utf-8",
    )
    how = {"max_length": 900, "packing": True, "assistant_only_loss": True}
    how |= {"excess_length_strategy": "drop", "axolotl_type": "chat_template"}
    assert read_settings(Path("axolotl.yaml")) == (how, "flash_attention_2")
    Path("trl.yaml").write_text("max_length: 500\nassistant_only_loss: true\nattn_implementation: sdpa\n", encoding="utf-8")
    settings, attention = read_settings(Path("trl.yaml"))
    assert {name: settings[name] for name in ONLY} == ONLY
    assert attention == "sdpa"


@pytest.mark.parametrize(
    ("strategy", "trained", "text"),
    [
        ("", 5, "1 of 6 rows are longer than sequence_len, so that Axolotl leaves them out"),
        ("excess_length_strategy: truncate\n", 6, "1 of 6 rows are cut at max_length"),
    ],
)
def test_rows_that_axolotl_leaves_out_are_counted(
    strategy: str, trained: int, text: str, call: Call, checkpoint: str
) -> None:
    rows = chats()
    rows[0]["messages"][1]["content"] *= 40
    data = "sequence_len: 200\nsample_packing: true\nsdp_attention: true\ndatasets: [{type: chat_template}]\n"
    Path("axolotl.yaml").write_text(f"base_model: m\n{data}{strategy}", encoding="utf-8")
    command = ("preview", write("rows.jsonl", rows), "--model", checkpoint, "--config", "axolotl.yaml", "--json")
    found = json.loads(call(*command)[1])
    assert found["facts"][0]["rows"] == trained
    assert [one["message"].startswith(text) for one in found["observations"] if one["severity"] != "info"] == [True]
    Path("axolotl.yaml").write_text(f"base_model: m\n{data}excess_length_strategy: raise\n", encoding="utf-8")
    code, _, err = call(*command)
    assert (code, "rows.jsonl:1 has" in err) == (1, True)


@pytest.mark.parametrize(
    "row",
    [
        {"messages": []},
        {"messages": [{"role": "user", "content": None}, {"role": "assistant", "content": "x"}]},
        {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [{"name": "f"}]}]},
    ],
)
def test_rows_that_no_template_takes_are_no_bug_of_ours(row: dict[str, Any], call: Call, checkpoint: str) -> None:
    code, out, err = call("preview", write("rows.jsonl", [row]), "--model", checkpoint)
    assert (code, out) in ((0, out), (1, ""))
    assert "This is a bug" not in err


def test_what_trl_refuses_is_told_in_a_line(call: Call, checkpoint: str) -> None:
    rows = write("rows.jsonl", [{"prompt": "a", "completion": "b"}])
    Path("trl.yaml").write_text("assistant_only_loss: true\n", encoding="utf-8")
    code, out, err = call("preview", rows, "--model", checkpoint, "--config", "trl.yaml")
    assert (code, out) == (1, "")
    assert "rows and settings that the trainer can label" in err

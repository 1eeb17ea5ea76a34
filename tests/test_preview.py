"""`mixwright preview`: rows as TRL takes them, settings of TRL and Axolotl, the report, the page, and `audit --model`."""

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


def test_the_learned_text_is_marked_and_faults_set_the_exit_code(call: Call, checkpoint: str) -> None:
    Path("trl.yaml").write_text("assistant_only_loss: true\nmax_length: 500\nlearning_rate: 1e-4\n", encoding="utf-8")
    rows = write("rows.jsonl", chats())
    command = ("preview", rows, "--model", checkpoint, "--config", "trl.yaml", "--fail-on", "warning")
    code, out, err = call(*command, "--out", "page.html")
    assert code == 0, err
    assert "[[Itis1.<|im_end|>]]" in out.replace(" ", "")
    assert out.startswith("Nothing to fix")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "learned" in page
    assert "&lt;|im_end|&gt;" in page, "text of rows is escaped"
    code, out, _ = call("preview", rows, "--model", checkpoint, "--json", "--fail-on", "warning")
    assert code == 3
    assert json.loads(out)["facts"][0]["rows"] == len(chats())
    code, out, _ = call("audit", rows, "--model", checkpoint, "--check", "single_rows")
    assert "trained on completely" in out


def test_rows_that_trl_reads_stay_as_they_are_and_others_become_pairs() -> None:
    write("own.jsonl", [{"prompt": "a", "completion": "b", "task": "t", "note": 1}])
    assert list(read_as_trl("own.jsonl", {})) == [({"prompt": "a", "completion": "b"}, "t", "own.jsonl:1")]
    write("alpaca.jsonl", [{"instruction": "Add.", "input": "1+1", "output": "2"}])
    ((row, _, _),) = read_as_trl("alpaca.jsonl", {})
    assert row["completion"] == "2"
    assert "1+1" in row["prompt"]


def test_settings_of_axolotl_and_trl_are_read() -> None:
    Path("axolotl.yaml").write_text(
        "base_model: m\nsequence_len: 900\nsample_packing: true\nflash_attention: true\n"
        "datasets: [{path: a.jsonl, type: chat_template}]\n",
        encoding="utf-8",
    )
    how = {"max_length": 900, "packing": True, "assistant_only_loss": True}
    assert read_settings(Path("axolotl.yaml")) == (how, "flash_attention_2")
    Path("trl.yaml").write_text("max_length: 500\nassistant_only_loss: true\nattn_implementation: sdpa\n", encoding="utf-8")
    settings, attention = read_settings(Path("trl.yaml"))
    assert {name: settings[name] for name in ONLY} == ONLY
    assert attention == "sdpa"


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
    assert "rows and settings that TRL can label" in err

"""Names in logs: whatever a results file calls its tasks, what is shown is bounded and plain."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_call import Call
from log_rows import FOLDER, notes
from test_logs_lighteval import details
from test_logs_lighteval import written as lighteval_rows
from test_logs_lm_eval import GSM8K, logged, results, written

from mixwright.errors import one_line

HOSTILE = "bb\x1b[31m\x1b]0;title\x07\r\n\u202e" + "Q" * 10_000
TITLE_OF_TASK = "bb [31m ]0;title"


def refuse_hostile(text: str, lines_up_to: int) -> None:
    """Nothing in it steers a terminal, and no line is longer than that."""
    assert not [hex(ord(letter)) for letter in set(text) if not letter.isprintable() and letter != "\n"]
    assert max(map(len, text.split("\n"))) <= lines_up_to
    assert not re.search("Q{500}", text)


@pytest.mark.parametrize("harness", ["lm-evaluation-harness", "lighteval"])
def test_names_of_tasks_in_results_are_bounded_and_plain(call: Call, harness: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["mixwright", "verdict", "before", "after"])  # commands that are advised begin so
    for folder in ("before", "after"):
        if harness == "lighteval":
            details(folder, {"gsm8k|0": lighteval_rows([True] * 400)}, {"model_name": HOSTILE})
            (path,) = Path(folder).rglob("results_*.json")
            path.write_text(json.dumps(json.loads(path.read_text()) | {"results": {"gsm8k|0": {}, HOSTILE: {}}}))
        else:
            found = results(GSM8K | {HOSTILE: {"acc,none": 0.5}}) | {"model_name": HOSTILE}
            logged(folder, {"gsm8k": written([True] * 400)}, found)
    code, out, err = call("verdict", "before", "after", "--gate")
    assert code == 4, out + err
    assert f"{TITLE_OF_TASK}  " in err
    assert "more characters): BEFORE has its results" in err
    refuse_hostile(out, 700)
    refuse_hostile(err, 1100)
    for name in ("verdict.html", "verdict.json", "manifest.json"):
        text = (FOLDER / name).read_text(encoding="utf-8")
        assert TITLE_OF_TASK in text
        refuse_hostile(text, len(text))
    assert max(len(note.message) for note in notes()) < 1100
    refuse_hostile(call("measure", "before")[2], 1100)


def test_thousands_of_metrics_make_no_longer_line(call: Call) -> None:
    for folder in ("before", "after"):
        names = [f"{folder}{n}" for n in range(2000)]
        rows = [row | {"metrics": names} | dict.fromkeys(names, 1.0) for row in written([True] * 12)]
        logged(folder, {"sums": rows, "gsm8k": written([True] * 12)}, None)
    code, _, err = call("verdict", "before", "after", "--no-gate")
    assert (code, "sums: cannot be judged: the logs share no metric" in err) == (0, True), err
    refuse_hostile(err, 1100)
    refuse_hostile((FOLDER / "verdict.html").read_text(encoding="utf-8"), 20_000)


def test_a_metric_with_a_very_long_name_is_refused(call: Call) -> None:
    rows = [row | {"metrics": [HOSTILE], HOSTILE: 1.0} for row in written([True] * 12)]
    logged("before", {"gsm8k": rows}, None)
    code, _, err = call("measure", "before")
    assert (code, "expected names of metrics of at most 500 characters" in err) == (1, True)
    refuse_hostile(err, 600)


def test_one_line_says_how_much_it_leaves_out() -> None:
    assert one_line("a\nb") == "a b"
    assert one_line("\x1babc", 4) == " abc"
    assert one_line("a\tbc" + "d" * 2000, 3) == "a b… (2,001 more characters)"

"""The command line meets data: columns by other names, what `--init` makes of them, and where a leak stands."""

from __future__ import annotations

import json
from pathlib import Path

from cli_call import Call, help_of, sums, write

from mixwright.config import RunConfig
from mixwright.run.folder import read_yaml


def test_audit_maps_columns_and_takes_one_check(call: Call) -> None:
    name = write("odd.jsonl", [{"frage": f"{n}+1=", "antwort": str(n)} for n in range(9)])
    code, out, _ = call(
        "audit", name, "--column", "prompt=frage", "--column", "answer=antwort", "--check", "frequency", "--json"
    )
    assert code == 0
    assert {o["check"] for o in json.loads(out)["observations"]} == {"frequency"}
    assert call("audit", name, "--column", "prompt")[0] == 1


def test_a_column_of_ours_is_named_once(call: Call) -> None:
    name = write("odd.jsonl", [{"frage": f"{n}+1=", "antwort": str(n), "level": "x"} for n in range(9)])
    both = ("--column", "answer=antwort", "--column", "answer=")
    code, _, err = call("audit", name, "--column", "prompt=frage", *both)
    assert (code, "expected --column answer= once, got 'antwort' and ''" in err) == (1, True)
    assert call("audit", name, "--column", "prompt=frage", "--column", "answer=antwort", "--column", "level=")[0] == 0


def test_the_help_of_column_lists_every_name_of_ours() -> None:
    from mixwright.corpus.columns import NAMES

    for verb in ("audit", "measure", "rewards"):
        assert help_of(verb, "column").endswith(f"Fields: {', '.join(NAMES)}.")


def test_a_leak_is_shown_with_the_places_of_its_first_rows(call: Call) -> None:
    write("mine.jsonl", sums(60))
    write("held.jsonl", [*sums(9, 90), *reversed(sums(20, 10))])
    code, out, _ = call("audit", "mine.jsonl", "--eval", "held.jsonl", "--check", "contamination")
    assert code == 0
    assert [f"held.jsonl:{line} = mine.jsonl:{row}" in out for line, row in ((10, 30), (11, 29))] == [True, False]
    assert "seed + 1" not in out, "the rows are not in the order that neighbouring seeds make"
    _, full, _ = call("audit", "mine.jsonl", "--eval", "held.jsonl", "--check", "contamination", "--full")
    places = [f"held.jsonl:{line} = mine.jsonl:{row}" for line, row in ((10, 30), (11, 29), (12, 28), (13, 27))]
    assert [place in full for place in places] == [True, True, True, False]


def test_init_writes_settings_that_need_editing_only(call: Call) -> None:
    Path("data").mkdir()
    write("data/two.jsonl", [*sums(), *({**row, "task": "other"} for row in sums(20, 100))])
    assert call("run", "data/two.jsonl", "--init")[0] == 0
    config = read_yaml(Path("run.yaml"), RunConfig)
    assert config.corpus.train == "data/two.jsonl"
    assert config.corpus.graders == {"other": "final_answer", "sum": "final_answer"}
    assert "# Completions per prompt (TRL's num_generations)." in Path("run.yaml").read_text(encoding="utf-8")
    code, out, _ = call("run", "run.yaml", "--dry-run")
    said = " ".join(out.split())
    assert code == 0
    assert "nulls, only if a lever beats every reference: shuffled_levels" in said
    assert not Path("runs").exists()
    assert call("run", "data/two.jsonl", "--init")[0] == 1, "an existing file is never overwritten"


def test_init_names_the_columns_it_does_not_know(call: Call) -> None:
    assert call("run", write("odd.jsonl", [{"frage": "1+1=", "antwort": "2"}]), "--init")[0] == 0
    config = read_yaml(Path("run.yaml"), RunConfig).corpus
    assert (config.train, config.columns) == ("odd.jsonl", {"prompt": "???"})
    _, _, err = call("run", "run.yaml")
    assert "'???'" in err


def test_init_fills_in_what_it_knows(call: Call) -> None:
    rows = [{"stimulus": f"{n}+1=", "gold": str(n + 1), "task": "sum"} for n in range(40)]
    assert call("run", write("odd.jsonl", rows), "--init")[0] == 0
    columns = read_yaml(Path("run.yaml"), RunConfig).corpus.columns
    assert columns == {"prompt": "???", "task": "task", "answer": "gold"}
    Path("run.yaml").write_text(Path("run.yaml").read_text(encoding="utf-8").replace("'???'", "stimulus"), encoding="utf-8")
    assert call("run", "run.yaml", "--dry-run")[0] == 0
    known = [{"question": row["stimulus"], "gold": row["gold"]} for row in rows]
    _, _, err = call("run", write("known.jsonl", known), "--init", "--output", "known.yaml")
    assert "prompt from 'question', answer from 'gold'" in err

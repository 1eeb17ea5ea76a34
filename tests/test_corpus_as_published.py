"""Data sets as they are published: their columns, wrappers and folders, and the notes of what was done with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.reading import files_of
from mixwright.errors import InputError


def read(tmp_path: Path, *rows: dict[str, Any], name: str = "rows.jsonl", **settings: Any) -> Corpus:
    (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return read_corpus(CorpusConfig(name, **settings), relative_to=tmp_path)


def test_target_beside_input_is_the_answer_and_disabled_by_name(tmp_path: Path) -> None:
    row = {"input": "not True is", "target": "False"}
    found = read(tmp_path, row)
    assert (found[0].prompt, found[0].answer, found[0].target) == ("not True is", "False", "False")
    assert found.tasks["all"].kind == "verifiable"
    assert found.notes == ("rows.jsonl: prompt from input, answer from target",)
    assert read(tmp_path, row, columns={"answer": ""})[0].answer is None
    assert read(tmp_path, {"prompt": "p", "target": "t"})[0].answer is None, "a target beside a prompt is a completion"


def test_instruction_and_input_are_joined_and_counted(tmp_path: Path) -> None:
    rows = [{"instruction": "Add.", "input": f"{i} and 1", "output": "o"} for i in range(2)]
    found = read(tmp_path, *rows, {"instruction": "Greet.", "input": "", "output": "Hello"})
    assert {row.prompt for row in found} == {"Add.\n\n0 and 1", "Add.\n\n1 and 1", "Greet."}
    assert found.notes == (
        "rows.jsonl: completion from output, prompt from instruction and input (2 of 3 rows), "
        "prompt from instruction (1 of 3 rows)",
    )


def test_maths_problems_have_levels_in_words(tmp_path: Path) -> None:
    row = {"problem": "How many?", "level": "Level 3", "type": "Algebra", "solution": r"So \boxed{2}."}
    found = read(tmp_path, row, row | {"problem": "Which?", "level": "Level ?"})
    assert sorted((row.level or 0.0, row.answer) for row in found) == [(0.0, r"So \boxed{2}."), (3.0, r"So \boxed{2}.")]
    assert found.notes[0] == "rows.jsonl: prompt from problem, answer from solution, level read from its text"
    assert [note for note in found.notes[1:] if "type (2)" in note] == list(found.notes[1:])
    with pytest.raises(InputError, match="a number in level"):
        read(tmp_path, row | {"level": "hard"})


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"choices": {"text": ["Rome", "Paris"], "label": ["A", "B"]}, "answerKey": "B"}, "B"),
        ({"choices": ["Rome", "Paris"], "answer": 1}, "B"),
        ({"options": ["Rome", "Paris"], "answer": "Paris"}, "Paris"),
        ({"options": {"A": "Rome", "B": "Paris"}, "answer": "B"}, "B"),
        ({"options": ["1", "0"], "answer": "0"}, "0"),
        ({"choices": ["Rome", "Paris"], "label": 1}, "B"),
    ],
)
def test_options_are_listed_in_the_prompt(tmp_path: Path, row: dict[str, Any], answer: str) -> None:
    found = read(tmp_path, {"question": "Which city?", **row}, grader="final_answer")
    texts = ["1", "0"] if "1" in str(row) and "Rome" not in str(row) else ["Rome", "Paris"]
    assert found[0].prompt == f"Which city?\n(A) {texts[0]}\n(B) {texts[1]}"
    assert found[0].answer == answer
    assert "options listed in the prompt" in found.notes[0]
    assert ("index of the right option turned into its letter" in found.notes[0]) == (answer == "B" and 1 in row.values())
    right = {"Paris": "B", "0": "B"}.get(answer, answer)
    assert found.grade(found[0], f"So the answer is ({right}).") == 1.0
    assert found.grade(found[0], "So the answer is (A).") == 0.0
    assert found.grade(found[0], texts[1]) == 1.0
    assert found.grader("all").luck(list(found)) == 0.5


def test_options_that_the_prompt_holds_are_not_listed_again(tmp_path: Path) -> None:
    prompt = "Which city?\nA) Rome\nB) Paris"
    found = read(tmp_path, {"prompt": prompt, "options": ["Rome", "Paris"], "answer": "B"}, grader="choice")
    assert (found[0].prompt, found.notes) == (prompt, ())


def test_a_label_is_an_answer_unless_something_else_is(tmp_path: Path) -> None:
    assert read(tmp_path, {"prompt": "Good film!", "label": 1})[0].answer == "1"
    assert read(tmp_path, {"prompt": "Good film!", "label": 1, "answer": "good"})[0].answer == "good"
    assert read(tmp_path, {"prompt": "Good film!", "completion": "yes", "label": "x"})[0].answer is None
    assert read(tmp_path, {"prompt": "p", "completion": "c", "label": True})[0].answer is None


def test_dialogues_of_pairs_are_cut_before_the_last_turn_that_both_have(tmp_path: Path) -> None:
    talk = "\n\nHuman: Hi\n\nAssistant: Hello\n\nHuman: A joke?\n\nAssistant:"
    packed = gzip.compress(json.dumps({"chosen": f"{talk} No, sorry.", "rejected": f"{talk} No way."}).encode())
    (tmp_path / "pairs.jsonl.gz").write_bytes(packed)
    found = read_corpus(CorpusConfig("pairs.jsonl.gz"), relative_to=tmp_path)
    assert (found[0].prompt, found[0].chosen, found[0].rejected) == (talk, " No, sorry.", " No way.")
    assert found.notes == ("pairs.jsonl.gz: prompt from the common beginning of chosen and rejected",)
    (tmp_path / "pairs.jsonl.gz").write_bytes(packed[:-12])
    with pytest.raises(InputError, match="a complete compressed file"):
        read_corpus(CorpusConfig("pairs.jsonl.gz"), relative_to=tmp_path)


def test_a_file_that_wraps_its_rows_and_a_folder_of_tasks(tmp_path: Path) -> None:
    folder = tmp_path / "bbh"
    folder.mkdir()
    for task in ("navigate", "snarks"):
        rows = [{"input": f"{task} {i}?", "target": "Yes"} for i in range(3)]
        (folder / f"{task}.json").write_text(json.dumps({"canary": "no", "examples": rows}))
    (folder / "README.md").write_text("about")
    one = read_corpus(CorpusConfig("bbh/navigate.json"), relative_to=tmp_path)
    assert (len(one), list(one.tasks), one[0].source[-2:]) == (3, ["all"], "#1")
    assert "navigate.json: rows from the list 'examples' of the file" in one.notes
    for source in ("bbh", "bbh/*.json", str(folder / "*.json")):
        found = read_corpus(CorpusConfig(source), relative_to=tmp_path)
        assert {name: round(6 * task.share) for name, task in found.tasks.items()} == {"navigate": 3, "snarks": 3}
        assert f"{source}: 2 files, each a task of its own unless its rows name one" in found.notes
        assert f"{source}: prompt from input, answer from target" in found.notes


def test_our_own_manifests_are_no_rows(tmp_path: Path) -> None:
    for name in ("clean.jsonl", "clean.jsonl.manifest.json"):
        (tmp_path / name).write_text('{"prompt": "a", "answer": "b"}\n', encoding="utf-8")
    assert [path.name for path in files_of(str(tmp_path))] == ["clean.jsonl"]


def test_a_folder_of_splits_and_an_object_without_rows_are_refused(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_text('{"prompt": "p"}\n')
    with pytest.raises(InputError, match=r"train\.jsonl, which is a split"):
        read_corpus(CorpusConfig("data"), relative_to=tmp_path)
    for text, told in [
        ('{"a": [{"prompt": "p"}], "b": [{"prompt": "q"}]}', "one such list.*'a', 'b'"),
        ('{"prompt": "p"}', "one such list"),
        ('{"prompt": "p"}{"prompt": "q"}', "Extra data"),
    ]:
        (tmp_path / "one.json").write_text(text)
        with pytest.raises(InputError, match=told):
            read_corpus(CorpusConfig("one.json"), relative_to=tmp_path)
    with pytest.raises(InputError, match="nothing there"):
        read_corpus(CorpusConfig("none/*.json"), relative_to=tmp_path)

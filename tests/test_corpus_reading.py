"""Reading: the forms of files, the columns, and what is said when something is wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus, read_source
from mixwright.corpus.reading import read_rows
from mixwright.errors import InputError
from mixwright.records import Example

USER = {"role": "user", "content": "What color is the sky?"}
BLUE = {"role": "assistant", "content": "It is blue."}
GREEN = {"role": "assistant", "content": "It is green."}


def jsonl(folder: Path, *rows: Any) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def read_one(folder: Path, row: dict[str, Any], **config: Any) -> Example:
    path = str(jsonl(folder, row))
    [example] = read_source(path, split="train", config=CorpusConfig(train=path, **config))
    return example


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"prompt": "p"}, {"prompt": "p", "target": None, "answer": None}),
        ({"prompt": "p", "completion": "c"}, {"prompt": "p", "target": "c", "answer": None}),
        ({"prompt": [USER], "completion": [BLUE]}, {"prompt": (USER,), "target": (BLUE,)}),
        ({"text": "words"}, {"prompt": "", "target": "words"}),
        ({"messages": [USER, BLUE]}, {"prompt": (USER,), "target": (BLUE,)}),
        ({"messages": [USER]}, {"prompt": (USER,), "target": None}),
        ({"conversations": [{"from": "user", "value": "a"}]}, {"prompt": ({"role": "user", "content": "a"},)}),
        (
            {"conversations": [{"from": name, "value": "a"} for name in ("human", "function_call", "observation", "gpt")]},
            {
                "prompt": tuple({"role": role, "content": "a"} for role in ("user", "assistant", "tool")),
                "target": ({"role": "assistant", "content": "a"},),
            },
        ),
        (
            {"system": "Be brief.", "conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},
            {
                "prompt": ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}),
                "target": ({"role": "assistant", "content": "b"},),
            },
        ),
        ({"prompt": "What color?", "prompt_id": "1", "messages": [USER, BLUE]}, {"prompt": (USER,), "target": (BLUE,)}),
        ({"prompt": "p", "chosen": "c", "rejected": "r"}, {"prompt": "p", "chosen": "c", "rejected": "r"}),
        (
            {"chosen": [USER, BLUE], "rejected": [USER, GREEN]},
            {"prompt": (USER,), "chosen": (BLUE,), "rejected": (GREEN,)},
        ),
        (
            {"prompt": "What color is the sky?", "chosen": [USER, BLUE], "rejected": [USER, GREEN]},
            {"prompt": (USER,), "chosen": (BLUE,), "rejected": (GREEN,)},
        ),
        (
            {"chosen": "The sky is blue.", "rejected": "The sky is green."},
            {"prompt": "The sky is", "chosen": " blue.", "rejected": " green."},
        ),
        ({"question": "q", "answer": 4}, {"prompt": "q", "answer": "4", "target": "4"}),
        ({"instruction": "i", "output": "o"}, {"prompt": "i", "target": "o"}),
        ({"instruction": "i", "input": "x", "output": "o"}, {"prompt": "i\n\nx", "target": "o", "extra": {}}),
        ({"instruction": "i", "input": "", "output": "o"}, {"prompt": "i", "target": "o"}),
        ({"input": "i", "target": "t"}, {"prompt": "i", "target": "t"}),
        (
            {"prompt": "p", "level": 3, "skills": "s"},
            {"level": 3.0, "skills": ("s",)},
        ),
        ({"prompt": "p", "options": ["a"], "note": None}, {"extra": {"options": ["a"]}}),
        ({"prompt": "p", "task": "sums", "id": 7}, {"task": "sums", "id": "7"}),
        ({"prompt": "p", "question": "q"}, {"prompt": "p", "extra": {"question": "q"}}),
    ],
)
def test_columns(tmp_path: Path, row: dict[str, Any], expected: dict[str, Any]) -> None:
    example = read_one(tmp_path, row)
    assert {name: getattr(example, name) for name in expected} == expected
    assert example.source.endswith("rows.jsonl:1")


def test_implicit_prompts_are_as_trl_makes_them(tmp_path: Path) -> None:
    extract = pytest.importorskip("trl.data_utils").extract_prompt
    for chosen, rejected in [("ab cd", "ab ce"), ("a b", "a c"), ("abc", "abd"), ([USER, BLUE], [USER, GREEN])]:
        row = {"chosen": chosen, "rejected": rejected}
        example = read_one(tmp_path, row)
        for name, value in extract(row).items():
            ours = getattr(example, name)
            assert (ours if isinstance(ours, str) else list(ours)) == value


def test_mapping(tmp_path: Path) -> None:
    row = {"q": "p", "a": "x", "hard": 2, "prompt": "other", "id": "same"}
    columns = {"prompt": "q", "answer": "a", "level": "hard", "id": ""}
    example = read_one(tmp_path, row, columns=columns)
    assert (example.prompt, example.answer, example.level, example.id) == ("p", "x", 2.0, "")
    assert example.extra == {"prompt": "other", "id": "same"}
    both = read_one(tmp_path, {"prompt": "p", "completion": "c"}, columns={"answer": "completion"})
    assert (both.answer, both.target) == ("c", "c")


def test_a_named_grader_makes_the_completion_the_answer(tmp_path: Path) -> None:
    assert read_one(tmp_path, {"prompt": "p", "completion": "c"}, graders={"all": "exact"}).answer == "c"


ROW = {"id": "a", "prompt": "p", "answer": "1"}
WRONG: list[tuple[list[Any], dict[str, Any], int | None, str]] = [
    ([{"story": "x", "reply": "y"}], {}, 1, r"prompt.*story, reply.*corpus\.columns"),
    ([ROW, {"prompt": "p", "q": "x"}], {"columns": {"answer": "gold"}}, 1, "'gold'.*columns id, prompt, answer"),
    ([ROW], {"columns": {"promt": "q"}}, None, "Nearest: prompt"),
    ([], {}, None, "at least one row"),
    (["", " "], {}, None, "at least one row"),
    ([ROW, '{"prompt": "p", "level": NaN}'], {}, 2, "finite number in level.*nan"),
    ([ROW, '{"prompt": "p", "level": 1e999}'], {}, 2, "finite number in level.*inf"),
    ([{"prompt": "p", "level": "hard"}], {}, 1, r'number in level.*hard.*level: ""'),
    ([{"prompt": "p", "level": True}], {}, 1, "number in level"),
    (['{"prompt": "p", "note": NaN}'], {}, 1, "JSON values"),
    ([ROW], {"grader": "exactly"}, None, "Nearest: exact"),
    ([ROW], {"grader": "exact?case=no"}, None, "option of graders.exact"),
    ([ROW], {"graders": {"sums": "exact"}}, None, "task in corpus.graders.*'sums'"),
    ([ROW, "{broken"], {}, 2, "a JSON object"),
    (["9" * 10_000], {}, 1, "a JSON object"),
    ([ROW, {"id": "b", "prompt": "q", "answer": "1"}, ROW], {}, 3, r"'a' twice: .*jsonl:1 and .*jsonl:3"),
    ([ROW, [1, 2]], {}, 2, "object with named columns.*list"),
    ([ROW, {"prompt": ""}], {}, 2, "a prompt, got an empty one"),
    ([ROW, {"prompt": " \n"}], {}, 2, "a prompt, got an empty one"),
    ([{"prompt": 7}], {}, 1, "text or chat messages in prompt, got int 7"),
    ([{"prompt": []}], {}, 1, "messages in prompt, got an empty list"),
    ([{"messages": ["hi"]}], {}, 1, "role and content"),
    ([{"messages": [{"role": "user", "content": [{"type": "image"}]}]}], {}, 1, "not supported"),
    ([{"messages": [BLUE]}], {}, 1, "before the assistant"),
    ([{"messages": "hello"}], {}, 1, "list of chat messages"),
    ([{"prompt": "p", "chosen": "c"}], {}, 1, "both chosen and rejected"),
    ([{"chosen": "a", "rejected": "b"}], {}, 1, "a prompt, got none"),
    ([{"chosen": "a", "rejected": [BLUE]}], {}, 1, "chosen and rejected.*got text and messages"),
    ([{"prompt": "p", "completion": "c", "label": 2}], {}, 1, "true, false, 1 or 0.*got 2"),
    ([{"prompt": "p", "answer": ["a"]}], {}, 1, "text or a number, got list"),
    ([{"prompt": "p", "answer": " "}], {}, 1, "an answer, got an empty one"),
    ([{"prompt": "p", "task": ""}], {}, 1, "text in task"),
    ([{"prompt": "p", "id": 1.5}], {}, 1, "text in id"),
    ([{"prompt": "p", "skills": [1]}], {}, 1, "texts in skills"),
    ([{"prompt": "p", "split": "third"}], {}, 1, "in split"),
    ([{"prompt": "p", "note": "x"}, '{"prompt": "\\ud800"}'], {}, 2, "surrogate"),
    ([ROW, {"prompt": "q"}], {}, None, "answer in every row of task 'all'.*1 rows without.*jsonl:2"),
    ([ROW | {"options": ["x", "y"], "answer": "E"}], {"grader": "choice"}, None, "'E' at .*jsonl:1"),
]


@pytest.mark.parametrize(("rows", "config", "line", "message"), WRONG)
def test_wrong_input_is_named(
    tmp_path: Path, rows: list[Any], config: dict[str, Any], line: int | None, message: str
) -> None:
    path = str(jsonl(tmp_path, *rows))
    with pytest.raises(InputError, match=f"(?s){message}") as caught:
        read_corpus(CorpusConfig(train=path, **config))
    assert caught.value.line == line
    assert caught.value.remedy
    if line is not None:
        assert caught.value.file == path
    assert [file.name for file in tmp_path.iterdir()] == ["rows.jsonl"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"prompt": "p"}\n{"prompt": "\xe9"}\n')
    with pytest.raises(InputError, match="UTF-8 text, got byte 0xe9") as caught:
        read_corpus(CorpusConfig(train=str(path)))
    assert caught.value.line == 2


def test_a_byte_order_mark_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"prompt": "p"}\n')
    assert read_corpus(CorpusConfig(train=str(path)))[0].prompt == "p"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gone.jsonl", "expected a file, got nothing"),
        ("./gone", "expected a file"),
        ("a.txt", "ending in"),
        (".", "save_to_disk"),
    ],
)
def test_sources_that_cannot_be_read(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "a.txt").write_text("prompt\n")
    with pytest.raises(InputError, match=message):
        read_corpus(CorpusConfig(train=name), relative_to=tmp_path)


def test_json_list(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"prompt": "p", "answer": "1"}, {"prompt": "q", "answer": "2"}], indent=1))
    corpus = read_corpus(CorpusConfig(train=str(path)))
    assert [(row.prompt, row.source) for row in corpus] == [("p", f"{path}#1"), ("q", f"{path}#2")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"prompt": "p"}', 1),
        ('[\n{"prompt": "p"},\n{"prompt" "q"}]', 3),
        ('[\n{"prompt": "p"},\n7]', None),
        ('[{"prompt": "p"}\n', 2),
        ('[{"prompt": "p"}] x', 1),
        ('[{"prompt": "p"}\n{"prompt": "q"}]', 2),
        ("[]", None),
        ("", 1),
    ],
)
def test_broken_json_lists(tmp_path: Path, text: str, line: int | None) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_corpus(CorpusConfig(train=str(path)))
    assert caught.value.line == line


@pytest.mark.parametrize("name", ["a.jsonl.zst", "a.json.zst", "a.jsonl"])  # known by its beginning, too
def test_files_packed_by_zstd(tmp_path: Path, name: str) -> None:
    path, rows = tmp_path / name, [{"prompt": f"{n}?" * 50, "answer": str(n)} for n in range(500)]
    text = json.dumps(rows) if name == "a.json.zst" else "".join(json.dumps(row) + "\n" for row in rows)
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(text.encode())
    corpus = read_corpus(CorpusConfig(str(path), eval_share=0.0))
    assert [row.answer for row in corpus] == [row["answer"] for row in rows]
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(InputError, match="a complete compressed file"):
        read_corpus(CorpusConfig(str(path)))


def test_parquet(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"question": ["p", "q"], "answer": [1, None], "messages": [None, [USER]]}), path)
    with pytest.raises(InputError, match=r"1 rows without, the first at .*a\.parquet#2"):
        read_corpus(CorpusConfig(train=str(path)))
    pq.write_table(pa.table({"question": ["p", None], "answer": [1, 2]}), path)
    with pytest.raises(InputError, match=r"a\.parquet, row 2: expected a value in column"):
        read_corpus(CorpusConfig(train=str(path)))
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="a Parquet file"):
        read_corpus(CorpusConfig(train=str(path)))


def test_datasets_folder(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([{"prompt": [USER], "answer": "blue"}])
    datasets.DatasetDict(train=rows, test=rows).save_to_disk(str(tmp_path / "both"))
    corpus = read_corpus(CorpusConfig(train="both", eval="both"), relative_to=tmp_path)
    assert [(row.prompt, row.answer, row.split) for row in corpus] == [((USER,), "blue", "train"), ((USER,), "blue", "eval")]
    datasets.DatasetDict(other=rows).save_to_disk(str(tmp_path / "other"))
    with pytest.raises(InputError, match="a split called train, got splits other"):
        read_corpus(CorpusConfig(train="other"), relative_to=tmp_path)


def test_without_datasets_the_remedy_is_pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(InputError, match=r"pip install 'mixwright\[train\]'"):
        read_corpus(CorpusConfig(train="owner/name"), relative_to=tmp_path)


def test_every_task_of_two_prompts_has_one_on_each_side(tmp_path):
    path = tmp_path / "small.jsonl"
    rows = [
        {"task": f"t{task}", "prompt": f"{task}: {item}", "answer": str(item)} for task in range(40) for item in range(3)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    corpus = read_corpus(CorpusConfig(train=str(path), eval_share=0.2))
    for name in corpus.tasks:
        assert {example.split for example in corpus.select(tasks=[name])} == {"train", "eval"}


def test_blank_lines_count_and_are_no_rows(tmp_path: Path) -> None:
    row = b'{"prompt": "1+1=", "answer": "2"}'
    with gzip.open(tmp_path / "a.jsonl.gz", "wb") as file:
        file.write((row + b"\n \n\t\n\n") * 5)
    assert [place.line for _, place in read_rows("a.jsonl.gz", "train", relative_to=tmp_path)] == [1, 5, 9, 13, 17]


def test_json_with_a_row_per_line_is_read_as_lines(tmp_path: Path) -> None:
    """Public sets are published so; a single object with a list in it is read as before."""
    path = tmp_path / "lines.json"
    path.write_text('{"prompt": "a", "answer": "1"}\n{"prompt": "b", "answer": "2"}\n', encoding="utf-8")
    notes: list[str] = []
    found = list(read_rows(str(path), "train", notes=notes))
    assert [(row["prompt"], str(location)) for row, location in found] == [("a", f"{path}:1"), ("b", f"{path}:2")]
    assert notes == ["lines.json: a row per line"]
    path.write_text('{"about": "x",\n "rows": [{"prompt": "a"}]}', encoding="utf-8")
    assert [row["prompt"] for row, _ in read_rows(str(path), "train")] == ["a"]
    path.write_text('{"prompt": "a"}\n{"prompt": ', encoding="utf-8")
    with pytest.raises(InputError, match=r"lines.json, line 2"):
        list(read_rows(str(path), "train"))


@pytest.mark.parametrize(("answer", "letter"), [(2, "C"), ("2", "2"), (0, "A"), ("24", "24"), (7, "7"), (True, "true")])
def test_a_number_beside_options_is_a_place(tmp_path: Path, answer: object, letter: str) -> None:
    """A number of the file is a place, also where an option reads like it; a text that is an option is that option."""
    path = tmp_path / "rows.jsonl"
    row = {"prompt": "How many?", "options": ["8", "2", "24", "120"], "answer": answer}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    (example,) = read_corpus(CorpusConfig(str(path), eval_share=0.0))
    assert example.answer == letter


@pytest.mark.parametrize(("trained", "becomes"), [([USER, BLUE], [USER]), (None, USER["content"])])
def test_plain_rows_to_rehearse_are_messages_where_the_training_rows_are(
    tmp_path: Path, trained: list[dict[str, str]] | None, becomes: Any
) -> None:
    rows = {
        "train.jsonl": [{"messages": trained}] if trained else [{"prompt": "a", "completion": "b"}],
        "rehearse.jsonl": [{"task": "old", "prompt": USER["content"], "completion": "It is blue."}],
    }
    for name, own in rows.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in own))
    corpus = read_corpus(
        CorpusConfig(str(tmp_path / "train.jsonl"), rehearse=str(tmp_path / "rehearse.jsonl"), eval_share=0.0)
    )
    (row,) = corpus.select(split="rehearse")
    assert row.prompt == (tuple(becomes) if trained else becomes)
    assert row.target == ((BLUE,) if trained else "It is blue.")
    first = json.dumps({"prompt": "a", "completion": "b", "split": "eval"}) + "\n"
    (tmp_path / "train.jsonl").write_text(first + (tmp_path / "train.jsonl").read_text())
    config = CorpusConfig(str(tmp_path / "train.jsonl"), rehearse=str(tmp_path / "rehearse.jsonl"), eval_share=0.0)
    assert [one.prompt for one in read_corpus(config).select(split="rehearse")] == [row.prompt], (
        "a held-out row decides nothing"
    )
    assert any("1 rows of plain text are turned into chat messages" in note for note in corpus.notes) == bool(trained)

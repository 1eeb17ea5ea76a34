"""Files of an audit: every row behind a finding, a page, and a cleaned copy that the audit has nothing more to drop from."""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_call import Call, write
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.audit import findings
from mixwright.audit.cleaned import clean
from mixwright.audit.findings import what_differs, worst_first
from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.records import Observation, Severity


def _row(n: int, answer: str | None = None) -> dict[str, Any]:
    prompt = f"Name {n}: how much is {n * 7919} times {n + 31}, taken {n % 7} times?"
    return {"task": "t", "prompt": prompt, "answer": answer or str(n)}


@pytest.fixture
def dirty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """40 training rows, 6 of them again, 5 held-out items (one twice), one wrapped, one prompt with two answers."""
    monkeypatch.chdir(tmp_path)
    wrapped = {**_row(58), "prompt": f"Read with care, please, and take your time. {_row(58)['prompt']} Thank you for it."}
    train = [_row(n) for n in range(40)] + [_row(n) for n in range(6)]
    train += [_row(n) for n in range(50, 55)] + [_row(50), wrapped, _row(20, "other")]
    return write("train.jsonl", train), write("eval.jsonl", [_row(n) for n in range(50, 60)])


def test_the_cleaned_copy_has_every_other_line_as_it_was(call: Call, dirty: tuple[str, str]) -> None:
    """Lines 41 to 46 repeat, 47 to 52 are held out; line 53 is wrapped and 54 has another answer: somebody has to judge."""
    train, held_out = dirty
    before = Path(train).read_bytes()
    code, out, _ = call("audit", train, "--eval", held_out, "--fix", "clean.jsonl")
    lines = before.splitlines(keepends=True)
    assert code == 0
    assert Path("clean.jsonl").read_bytes() == b"".join(lines[:40] + lines[52:])
    assert Path(train).read_bytes() == before
    manifest = json.loads(Path("clean.jsonl.manifest.json").read_text())
    assert {int(row["row"].rpartition(":")[2]) for row in manifest["dropped"]} == set(range(41, 53))
    assert (manifest["kept"], sum(manifest["counts"].values())) == (42, 12)
    assert [one["check"] for one in manifest["left for you"]].count("conflicts") == 1
    (wrapped,) = (one for one in manifest["left for you"] if one["check"] == "contamination")
    assert wrapped["rows"] == [["eval.jsonl:9", "train.jsonl:53"]]
    assert "42 rows" in out
    assert "Next: fix contamination" in out, "before training"
    assert "train.jsonl:53" in out
    assert call("audit", "clean.jsonl", "--eval", held_out, "--fix", "twice.jsonl")[0] == 0
    assert Path("twice.jsonl").read_bytes() == Path("clean.jsonl").read_bytes()


def test_other_forms_give_the_same_rows(call: Call, dirty: tuple[str, str]) -> None:
    """A packed file, a JSON list and Parquet lose the rows that the file of lines loses."""
    train, held_out = dirty
    rows = [json.loads(line) for line in Path(train).read_text().splitlines()]
    Path("packed.jsonl.gz").write_bytes(gzip.compress(Path(train).read_bytes()))
    Path("called_otherwise.jsonl").write_bytes(Path("packed.jsonl.gz").read_bytes())
    Path("list.json").write_text(json.dumps(rows, indent=1))
    pq.write_table(pa.Table.from_pylist(rows), "rows.parquet")
    call("audit", train, "--eval", held_out, "--fix", "lines.jsonl")
    expected = [json.loads(line) for line in Path("lines.jsonl").read_text().splitlines()]
    for source in ("packed.jsonl.gz", "called_otherwise.jsonl", "list.json", "rows.parquet"):
        assert call("audit", source, "--eval", held_out, "--fix", f"{source}.out.jsonl")[0] == 0
        assert [json.loads(line) for line in Path(f"{source}.out.jsonl").read_text().splitlines()] == expected


@pytest.mark.parametrize("fix", ["train.jsonl", "eval.jsonl", "clean.csv", "clean.parquet"])
def test_nothing_is_written_in_place_or_in_a_form_that_is_none(call: Call, dirty: tuple[str, str], fix: str) -> None:
    train, held_out = dirty
    before = Path(train).read_bytes(), Path(held_out).read_bytes()
    code, _, err = call("audit", train, "--eval", held_out, "--fix", fix)
    assert (code, len(err.strip().splitlines())) == (1, 1)
    assert before == (Path(train).read_bytes(), Path(held_out).read_bytes())


def test_held_out_rows_of_one_file_stay(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a file with a column `split`, the training copy goes and the held-out item stays."""
    monkeypatch.chdir(tmp_path)
    rows = [_row(n) | {"split": "train"} for n in range(30)]
    rows += [_row(n) | {"split": "test"} for n in range(40, 50)] + [_row(41) | {"split": "train"}]
    code, _, _ = call("audit", write("both.jsonl", rows), "--fix", "clean.jsonl")
    kept = [json.loads(line) for line in Path("clean.jsonl").read_text().splitlines()]
    assert code == 0
    assert kept == rows[:-1]


def test_the_folder_has_every_row_and_a_page(call: Call, dirty: tuple[str, str]) -> None:
    train, held_out = dirty
    code, out, _ = call("audit", train, "--eval", held_out, "--out", "found")
    assert code == 0
    assert "found/page.html" in out
    observations = json.loads(Path("found/observations.json").read_text())
    severities = [one["severity"] for one in observations]
    assert severities == sorted(severities, key=("error", "warning", "info").index)
    rows = [json.loads(line) for line in Path("found/rows/contamination.jsonl").read_text().splitlines()]
    assert {row["eval_source"] for row in rows} == {f"eval.jsonl:{n}" for n in (1, 2, 3, 4, 5, 9)}
    assert sum(one["count"] for one in observations if one["check"] == "duplicates" and one["severity"] == "warning") >= 7
    page = Path("found/page.html").read_text()
    assert "contamination in t" in page
    assert "train.jsonl:53" in page
    assert page.count("<script") == 1, "its own"
    assert call("audit", held_out, "--out", "found")[0] == 0
    assert not Path("found/rows/contamination.jsonl").exists()
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine")
    assert call("audit", train, "--out", "mine")[0] == 1
    assert [path.name for path in Path("mine").iterdir()] == ["notes.txt"]


def test_the_page_shows_hostile_rows_as_text(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bad = {
        "task": "<b>t</b>",
        "prompt": "<script>alert(1)</script> Say how many of the nine are left \u202e",
        "answer": "</pre>",
    }
    rows = [_row(n) | {"task": "<b>t</b>"} for n in range(30)] + [bad]
    assert call("audit", write("train.jsonl", rows), "--eval", write("eval.jsonl", [bad]), "--out", "found")[0] == 0
    page = Path("found/page.html").read_text()
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<script") == 1, "its own"
    assert "<b>t</b>" not in page
    assert "\u202e" not in page


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 12), max_size=30), st.lists(st.integers(0, 20), min_size=1, max_size=8, unique=True))
def test_cleaning_ends_with_nothing_to_drop(train: list[int], held_out: list[int]) -> None:
    """Whatever repeats and leaks there are: no row that is dropped was a held-out one, and a second pass drops nothing."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("train.jsonl", "eval.jsonl")]
        for path, numbers in zip(paths, ([*train, 99, 98], held_out), strict=True):
            path.write_text("".join(json.dumps(_row(n)) + "\n" for n in numbers))
        corpus = read_corpus(CorpusConfig(*map(str, paths), eval_share=0.0))
        cleaned = clean(corpus)
        assert all(str(paths[0]) in place for place in cleaned.dropped)
        assert not clean(cleaned.corpus).dropped
        assert len(cleaned.corpus) == len(corpus) - len(cleaned.dropped)


WORD = st.sampled_from(
    ["abC", "ABc", "abc", " abc", "abc ", "a bc", "a  bc", "abc.", "ABC", "\uff41bc", "abc\u200b", "\u201cabc\u201d"]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), WORD, WORD), max_size=24),
    st.lists(st.tuples(st.integers(0, 9), WORD, WORD), max_size=8),
    st.sampled_from(["answer", "completion", "chosen"]),
)
def test_what_is_dropped_is_equal_to_the_character(
    train: list[tuple[int, str, str]], held_out: list[tuple[int, str, str]], column: str
) -> None:
    """Rows of every kind in copies that differ in case, space and marks: each row that goes is a kept one, or held out."""

    def row(number: int, asked: str, answer: str) -> dict[str, Any]:
        prompt = f"Write {asked} as it is wanted, number {number * 7919}"
        return {"task": "t", "prompt": prompt, column: answer} | ({"rejected": "abc"} if column == "chosen" else {})

    def sides_are_equal(at: int) -> bool:
        return column == "chosen" and rows[at]["chosen"] == rows[at]["rejected"]

    rows = [row(n, "abC", str(n)) for n in range(20, 40)] + [row(*parts) for parts in train]
    items = [row(*parts) for parts in held_out]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("train.jsonl", "eval.jsonl")]
        for path, content in zip(paths, (rows, items), strict=True):
            path.write_text("".join(json.dumps(one) + "\n" for one in content))
        config = CorpusConfig(*map(str, paths if items else paths[:1]), eval_share=0.0)
        cleaned = clean(read_corpus(config), ["duplicates", "contamination"])
    gone = {int(place.rpartition(":")[2]) - 1 for place in cleaned.dropped}
    kept = [one for at, one in enumerate(rows) if at not in gone]
    for at in gone:
        assert rows[at] in kept or rows[at] in items or sides_are_equal(at)
    for one in items:  # and what is a held-out item to the character has gone, where it is listed at all
        assert one not in kept


def test_copies_that_differ_in_case_or_space_are_named(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 rows 40 differ in case alone, or in spaces of the answer: none goes, and the manifest has each with its line."""
    monkeypatch.chdir(tmp_path)
    swapped = [
        {"task": "t", "prompt": f"Swap the case: {word}{n}dEf", "answer": f"{word.swapcase()}{n}DeF"}
        for word in ("abC", "ABc")
        for n in range(40)
    ]
    padded = [{"task": "t", "prompt": f"pad {n}", "answer": f"{n}{space}|"} for space in (" ", "  ") for n in range(40)]
    for name, rows in {"swapped.jsonl": swapped, "padded.jsonl": padded}.items():
        code, out, _ = call("audit", write(name, rows), "--fix", f"clean.{name}")
        assert code == 0
        assert Path(f"clean.{name}").read_bytes() == Path(name).read_bytes()
        manifest = json.loads(Path(f"clean.{name}.manifest.json").read_text())
        assert manifest["counts"] == {}
        (found,) = manifest["left for you"]
        assert found["rows"] == [[f"{name}:{n}", f"{name}:{n - 40}"] for n in range(41, 81)]
        assert f"{name}:41" in out


def test_a_copy_behind_one_that_differs_goes(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each row there is another in capitals between two that are the same; of an item, too, and one inside a chat."""
    monkeypatch.chdir(tmp_path)
    first = [_row(n) for n in range(30)]
    shouted = [one | {"prompt": one["prompt"].upper()} for one in first]
    item = _row(77)
    system = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": item["prompt"]}]
    leaks = [item | {"prompt": item["prompt"].upper()}, item | {"prompt": system}, item, {**item, "answer": "78"}]
    train = write("train.jsonl", [*first, *shouted, *first, *leaks])
    assert call("audit", train, "--eval", write("eval.jsonl", [item]), "--fix", "clean.jsonl")[0] == 0
    kept = [json.loads(line) for line in Path("clean.jsonl").read_text().splitlines()]
    assert kept == [*first, *shouted, leaks[0], leaks[1], leaks[3]]


def test_pairs_whose_sides_differ_in_space_stay(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": _row(n)["prompt"], "chosen": f"It is {n}.", "rejected": f"It is {n + 1}."} for n in range(20)]
    rows[3]["rejected"], rows[5]["rejected"] = rows[3]["chosen"], rows[5]["chosen"] + " "
    assert call("audit", write("train.jsonl", rows), "--fix", "clean.jsonl")[0] == 0
    assert [json.loads(line) for line in Path("clean.jsonl").read_text().splitlines()] == rows[:3] + rows[4:]


def test_what_differs_by_hand() -> None:
    assert what_differs("a b c", "a b c") == []
    assert what_differs("a b c d", "a x c") == [["b", "x"], ["d", ""]]
    assert len(what_differs(" ".join("abcdefghijkl"), " ".join("a1c2e3g4i5k6"))) == 5


def test_worst_first_by_severity_then_share() -> None:
    """Errors before warnings, each by its share; infos stay in the order of the checks."""

    def seen(name: str, severity: Severity, count: int) -> Observation:
        return Observation("c", name, severity, count, 10, "", "")

    infos = [seen("x", "info", 1), seen("a", "info", 9)]
    others = [seen("b", "warning", 2), seen("c", "error", 1), seen("d", "warning", 5), seen("e", "error", 4)]
    assert [one.task for one in worst_first([*infos, *others])] == ["e", "c", "d", "b", "x", "a"]


def test_rows_of_a_list_are_known_by_their_numbers(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = json.dumps([_row(n) for n in range(20)] + [_row(3)])
    Path("list.json").write_text(rows)
    assert call("audit", "list.json", "--fix", "clean.jsonl")[0] == 0
    assert [json.loads(line) for line in Path("clean.jsonl").read_text().splitlines()] == [_row(n) for n in range(20)]
    (dropped,) = json.loads(Path("clean.jsonl.manifest.json").read_text())["dropped"]
    assert dropped["row"] == "list.json#21"


@pytest.mark.parametrize("differing", ["completion", "rejected", "options", "task"])
def test_rows_of_their_own_are_no_repeats(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, differing: str
) -> None:
    """Another solution, rejected answer, list of options or task: the audit may tell of repeats, the copy keeps them."""
    monkeypatch.chdir(tmp_path)
    rows = []
    for n in range(40):
        for other in ("one", "two"):
            row: dict[str, Any] = {"prompt": [{"role": "user", "content": _row(n)["prompt"]}]}
            if differing == "rejected":
                row |= {"chosen": f"It is {n}.", "rejected": f"It is {n + 1}, {other}."}
            elif differing == "options":
                row |= {"answer": "A", "options": [f"{n} {other}", "none"]}
            elif differing == "task":
                row |= {"answer": str(n), "task": other}
            else:
                row |= {"answer": str(n), "completion": f"By way {other} it is {n}."}
            rows.append(row)
    train = write("train.jsonl", [*rows, rows[0]])
    assert call("audit", train, "--fix", "clean.jsonl")[0] == 0
    assert [json.loads(line) for line in Path("clean.jsonl").read_text().splitlines()] == rows


def test_many_copies_of_one_item_all_go(call: Call, dirty: tuple[str, str]) -> None:
    """One partner of an item is found at a time."""
    _, held_out = dirty
    train = write("many.jsonl", [_row(n) for n in range(40)] + [_row(55)] * 12)
    assert call("audit", train, "--eval", held_out, "--check", "contamination", "--fix", "clean.jsonl")[0] == 0
    assert len(Path("clean.jsonl").read_text().splitlines()) == 40


def test_outputs_take_the_place_of_nothing(call: Call, dirty: tuple[str, str]) -> None:
    train, held_out = dirty
    Path("eval.jsonl").rename("clean.jsonl.manifest.json.jsonl")
    held_out = "clean.jsonl.manifest.json.jsonl"
    Path("found").mkdir()
    Path("found/observations.json").write_text('{"mine": 1}')
    Path("data").mkdir()
    Path("data/part.jsonl").write_bytes(Path(train).read_bytes())
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    for options in (
        ("--out", "found"),
        ("--fix", "same.jsonl", "--out", "same.jsonl"),
        ("--fix", "new/rows/f.jsonl", "--out", "new"),
    ):
        code, _, err = call("audit", train, "--eval", held_out, *options)
        assert (code, len(err.strip().splitlines())) == (1, 1), options
    assert call("audit", "data", "--fix", "data/clean.jsonl")[0] == 1
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    Path("x.jsonl.manifest.json").write_text("mine")
    assert call("audit", train, "--fix", "x.jsonl")[0] == 1
    assert Path("x.jsonl.manifest.json").read_text() == "mine"


def test_a_pattern_of_files_is_cleaned(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows without a task keep the name of their file."""
    monkeypatch.chdir(tmp_path)
    Path("parts").mkdir()
    write("parts/a.jsonl", [_row(n) | {"task": None} for n in range(20)])
    write("parts/b.jsonl", [_row(n) | {"task": None} for n in range(30, 50)] + [_row(31) | {"task": None}])
    assert call("audit", "parts/*.jsonl", "--fix", "clean.jsonl")[0] == 0
    tasks = [json.loads(line)["task"] for line in Path("clean.jsonl").read_text().splitlines()]
    assert tasks == ["a"] * 20 + ["b"] * 20


def test_files_without_a_task_column_are_compared_with_each_other(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows 15 to 19 are in a and b; of rows 3 to 5 of a, c has other answers, and no prompt is in one file twice."""
    monkeypatch.chdir(tmp_path)
    bare = [{name: value for name, value in _row(n).items() if name != "task"} for n in range(60)]
    a, b = write("a.jsonl", bare[:20]), write("b.jsonl", bare[15:35])
    c = write("c.jsonl", [*bare[40:60], *({**bare[n], "answer": str(-n)} for n in (3, 4, 5))])
    code, out, _ = call("audit", a, b, c, "--check", "conflicts", "--json")
    (found,) = json.loads(out)["observations"]
    assert (code, found["task"], found["severity"], found["count"], found["total"]) == (0, None, "warning", 6, 63)
    assert [(one["usual_source"], one["other_source"]) for one in found["evidence"]] == [
        (f"a.jsonl:{n + 1}", f"c.jsonl:{18 + n}") for n in (3, 4, 5)
    ]
    assert call("audit", a, b, c, "--fix", "clean.jsonl")[0] == 0
    dropped = {one["row"]: one["partner"] for one in json.loads(Path("clean.jsonl.manifest.json").read_text())["dropped"]}
    assert dropped == {f"b.jsonl:{n}": f"a.jsonl:{15 + n}" for n in range(1, 6)}


def test_repeats_that_chance_explains_go_too_and_are_not_urged(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """60 sums are drawn from 100: the finding is a note, and the copy has no row twice."""
    monkeypatch.chdir(tmp_path)
    pairs = [divmod(number, 10) for number in Random(0).choices(range(100), k=60)]
    train = write("train.jsonl", [{"prompt": f"{a}+{b}=", "answer": str(a + b)} for a, b in pairs])
    _, out, _ = call("audit", train, "--check", "duplicates")
    assert "--fix" not in out
    assert call("audit", train, "--check", "duplicates", "--fix", "clean.jsonl")[0] == 0
    assert len(Path("clean.jsonl").read_text().splitlines()) == len({*pairs})


def test_rows_without_any_answer_go(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty earlier turn of a chat stays, and an empty completion beside a gold answer."""
    monkeypatch.chdir(tmp_path)
    rows: list[dict[str, Any]] = [{"prompt": _row(n)["prompt"], "completion": f"It is {n}."} for n in range(40)]
    rows[4]["completion"], rows[9]["completion"] = "", " \n"
    turns = [("user", "Hello, who is there?"), ("assistant", ""), ("user", rows[30]["prompt"])]
    rows[30]["prompt"] = [{"role": role, "content": text} for role, text in turns]
    code, out, err = call("audit", write("train.jsonl", rows), "--check", "single_rows", "--fix", "clean.jsonl")
    assert code == 0, err
    kept = [json.loads(line) for line in Path("clean.jsonl").read_text().splitlines()]
    assert kept == [row for n, row in enumerate(rows) if n not in (4, 9)]
    assert "Next: train on clean.jsonl" in out, "no error is left"
    graded = [row | {"answer": str(n)} for n, row in enumerate(rows)]
    assert call("audit", write("graded.jsonl", graded), "--check", "single_rows", "--fix", "all.jsonl")[0] == 0
    assert len(Path("all.jsonl").read_text().splitlines()) == 40


def test_findings_of_an_audit_that_was_killed_are_written_over(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows lay there without `observations.json`, and the same command refused the folder as somebody else's."""
    write("a.jsonl", [{"prompt": "1+1=", "completion": "2"}] * 3)

    def stop(observations: Sequence[Observation]) -> Iterator[dict[str, Any]]:
        if observations[0].check == "frequency":
            raise KeyboardInterrupt
        return finding_rows(observations)

    finding_rows = findings.finding_rows
    with monkeypatch.context() as killed:
        killed.setattr(findings, "finding_rows", stop)
        assert call("audit", "a.jsonl", "--out", "found")[0] == 130
    assert list(Path("found", "rows").iterdir())
    code, _, err = call("audit", "a.jsonl", "--out", "found")
    assert (code, Path("found", "page.html").is_file()) == (0, True), err

"""Corpus: round trips, ids, splits, cells and their chance levels."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.config import CorpusConfig
from mixwright.corpus import Corpus, read_corpus, read_source, texts
from mixwright.corpus.trainable import leave_out_bare
from mixwright.errors import InputError
from mixwright.records import Example, plain

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
CHAT = st.lists(st.fixed_dictionaries({"role": WORDS, "content": WORDS}), min_size=1, max_size=3).map(tuple)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(st.none() | st.booleans() | NUMBERS | WORDS, lambda inner: st.lists(inner, max_size=2), max_leaves=3)


@st.composite
def examples(draw: st.DrawFn) -> Example:
    text = draw(st.sampled_from([WORDS, CHAT]))
    return Example(
        id="",
        task=draw(st.sampled_from(["a", "b", "ü"])),
        prompt=draw(text),
        target=draw(st.none() | text),
        answer=draw(st.none() | WORDS),
        level=draw(st.none() | NUMBERS),
        knobs=draw(st.dictionaries(WORDS, NUMBERS, max_size=2)),
        skills=tuple(draw(st.lists(WORDS, max_size=2))),
        chosen=draw(st.none() | text),
        rejected=draw(st.none() | text),
        source=draw(WORDS),
        split=draw(st.sampled_from(["train", "eval"])),
        extra=draw(st.dictionaries(WORDS, JSON, max_size=2)),
    )


@given(st.lists(examples(), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_what_goes_in_comes_out(tmp_path_factory: pytest.TempPathFactory, rows: list[Example]) -> None:
    corpus = Corpus.from_examples(rows)
    fields = [name for name in Example.__dataclass_fields__ if name != "id"]
    for row, kept in zip(rows, corpus, strict=True):
        assert [getattr(row, name) for name in fields] == [getattr(kept, name) for name in fields]
    assert len({example.id for example in corpus}) == len(rows)
    folder = tmp_path_factory.mktemp("corpus")
    corpus.save(folder)
    loaded = Corpus.load(folder)
    assert list(loaded) == list(corpus)
    assert loaded.tasks == corpus.tasks
    assert loaded.digest() == corpus.digest()
    assert sorted(path.name for path in folder.iterdir()) == ["rows.parquet", "tasks.json"]


def example(index: int, **fields: object) -> Example:
    return Example(**{"id": str(index), "task": "t", "prompt": f"q{index}", "answer": "1"} | fields)  # type: ignore[arg-type]


def test_texts_reads_both_forms() -> None:
    chat = ({"role": "user", "content": "a"}, {"role": "user", "content": "b"})
    corpus = Corpus.from_examples([example(0), example(1, prompt=chat)])
    assert [texts(batch, "prompt") for batch in corpus.batches()] == [["q0", "a\nb"]]


def test_tasks_have_kinds_and_shares() -> None:
    rows = [example(0), example(1, task="u", answer=None, target="x"), example(2), example(3)]
    rows += [example(4, task="v", answer=None, chosen="x", rejected="y")]
    tasks = Corpus.from_examples(rows, {"u": "numeric"}).tasks
    assert {name: (task.kind, task.share, task.grader) for name, task in tasks.items()} == {
        "t": ("verifiable", 3 / 5, "exact"),
        "u": ("text", 1 / 5, "numeric"),
        "v": ("preference", 1 / 5, "exact"),
    }


def test_select_and_index() -> None:
    corpus = Corpus.from_examples([example(i, task="ab"[i % 2], split=["train", "eval"][i // 3]) for i in range(6)])
    assert [row.id for row in corpus.select(tasks=["a"])] == ["0", "2", "4"]
    assert [row.id for row in corpus.select(tasks=["a"], split="train")] == ["0", "2"]
    assert [row.id for row in corpus.select(ids={"5", "1", "7"})] == ["1", "5"]
    assert corpus[-1].id == corpus[5].id == "5"
    assert len(corpus.select(tasks=[])) == 0
    with pytest.raises(IndexError):
        corpus[6]


def test_chance_levels_by_hand() -> None:
    two = {"options": ["yes", "no"]}
    rows = [example(i, answer=answer, level=1.0) for i, answer in enumerate(["1"] * 9 + ["1 "] * 3)]  # "1" to the grader
    rows += [example(100 + i, prompt=f"what of {i}, is it {i}?", answer=str(i), level=2.0) for i in range(10)]
    rows += [example(200 + i, task="c", answer="B", extra=two) for i in range(8)]
    rows += [example(300 + i, task="n", answer=a) for i, a in enumerate(["1.0", "1.00", "1"] * 8)]
    rows += [example(400, task="s", answer=None, target="x"), example(500, level=1.0, split="eval", answer="7")]
    cells = Corpus.from_examples(rows, {"c": "choice", "n": "numeric"}).cells()
    assert {cell.key: (cell.count, cell.chance, cell.rule.rstrip(".0")) for cell in cells} == {
        "t@1": (12, 1.0, "constant 1"),
        "t@2": (10, 1.0, "first number"),
        "c": (8, 1.0, "constant B"),
        "n": (24, 1.0, "constant 1"),
        "s": (1, 0.0, "no answers"),
    }


def test_the_chance_level_of_blind_choice() -> None:
    places = random.Random(1)
    rows = [example(i, answer=places.choice("ABC"), extra={"options": [f"x{i}", f"y{i}", f"z{i}"]}) for i in range(300)]
    [cell] = Corpus.from_examples(rows, {"t": "choice"}).cells()
    assert cell.chance == pytest.approx(1 / 3, abs=3 * 0.027)


def test_answers_that_are_all_as_likely_do_not_look_like_one_that_is_common() -> None:
    """Scored on the rows that it was counted on, the commonest of ten answers is right in 27.5 % of ten rows."""
    means, drawn = [], random.Random(0)
    for _ in range(40):
        rows = [example(i, answer=str(drawn.randrange(10)), level=float(i % 5)) for i in range(50)]
        means += [cell.chance for cell in Corpus.from_examples(rows).cells()]
    assert sum(means) / len(means) == pytest.approx(0.1, abs=0.03)


def test_a_cell_of_few_rows_takes_the_chance_level_of_its_task() -> None:
    rows = [example(i, prompt="q" * (i + 1), answer="1" if i % 2 else str(i), level=1.0) for i in range(40)]
    rows += [example(100 + i, prompt="p" * (i + 1), answer=str(100 + i), level=2.0 + i) for i in range(2)]
    small = {cell.level: cell for cell in Corpus.from_examples(rows).cells()}
    assert small[2.0].chance == small[3.0].chance == 20 / 42
    assert small[1.0].chance == 20 / 40
    assert small[2.0].count == 1


def test_cells_without_a_train_split_are_those_of_all_rows() -> None:
    assert [cell.count for cell in Corpus.from_examples([example(0, split="eval")]).cells()] == [1]


def test_the_chance_level_of_a_large_cell_is_close() -> None:
    rows = [example(i, answer=str(i % 7 if i % 3 else 0)) for i in range(4000)]
    true = sum(row.answer == "0" for row in rows) / 4000
    graded = []
    corpus = Corpus.from_examples(rows)
    grade = corpus.grade
    corpus.grade = lambda row, text: graded.append(row.id) or grade(row, text)  # type: ignore[method-assign]
    assert corpus.cells()[0].chance == pytest.approx(true, abs=0.07)
    assert len(set(graded)) == 500


def test_grade() -> None:
    corpus = Corpus.from_examples([example(0)])
    assert [corpus.grade(corpus[0], text) for text in (" 1\n", "2", "1 1")] == [1.0, 0.0, 0.0]
    with pytest.raises(InputError, match="with an answer"):
        corpus.grade(example(1, answer=None), "x")
    with pytest.raises(InputError, match="a task of the corpus"):
        corpus.grade(example(1, task="other"), "x")


def test_digest_sees_content_not_place() -> None:
    one = Corpus.from_examples([example(0, source="here:1")])
    assert one.digest() == Corpus.from_examples([example(0, source="there:9")]).digest()
    assert one.digest() != Corpus.from_examples([example(0, answer="2")]).digest()
    assert one.digest() != Corpus.from_examples([example(0)], {"t": "numeric"}).digest()


@pytest.mark.parametrize("text", ["{", "[]", '{"notes": []}', '{"graders": {"t": 1}}'])
def test_load_refuses_broken_settings(tmp_path: Path, text: str) -> None:
    Corpus.from_examples([example(0)]).save(tmp_path)
    (tmp_path / "tasks.json").write_text(text)
    with pytest.raises(InputError, match=r"tasks\.json"):
        Corpus.load(tmp_path)


def test_an_empty_corpus_is_still_a_corpus(tmp_path: Path) -> None:
    empty = Corpus.from_examples([])
    empty.save(tmp_path)
    assert (len(empty), empty.cells(), empty.tasks, list(Corpus.load(tmp_path))) == (0, (), {}, [])


def test_texts_without_prompts_are_split_too(tmp_path: Path) -> None:
    corpus = read_corpus(CorpusConfig(train=write(tmp_path / "a.jsonl", [{"text": f"t{i}"} for i in range(50)])))
    assert 0 < len(corpus.select(split="eval")) < 30


@pytest.mark.parametrize("broken", ["missing", "garbage", "other"])
def test_load_refuses_what_is_no_corpus(tmp_path: Path, broken: str) -> None:
    Corpus.from_examples([example(0)]).save(tmp_path)
    rows = tmp_path / "rows.parquet"
    if broken == "missing":
        rows.unlink()
    elif broken == "garbage":
        rows.write_bytes(b"x" * 100)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"a": [1]}), rows)
    with pytest.raises(InputError, match=r"rows\.parquet"):
        Corpus.load(tmp_path)


def write(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@given(st.lists(st.sampled_from("abcdefgh"), min_size=2, max_size=30), st.floats(0.01, 0.99))
@settings(max_examples=40, deadline=None)
def test_no_prompt_is_in_both_splits(tmp_path_factory: pytest.TempPathFactory, names: list[str], share: float) -> None:
    rows: list[dict[str, object]] = [
        {"prompt": f" {name}  {'X' if i % 2 else 'x'}", "answer": i} for i, name in enumerate(names)
    ]
    path = write(tmp_path_factory.mktemp("split") / "rows.jsonl", rows)
    corpus = read_corpus(CorpusConfig(train=path, eval_share=share))
    prompts = {split: {plain(row.prompt).lower() for row in corpus if row.split == split} for split in ("train", "eval")}
    assert not prompts["train"] & prompts["eval"]
    assert len(corpus) == len(names)
    if len(set(names)) > 1:
        assert prompts["train"]
        assert prompts["eval"]


def test_split_is_near_its_share_and_stays_when_rows_are_added(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [{"prompt": f"p{i}", "answer": "x"} for i in range(1000)]
    few = read_corpus(CorpusConfig(train=write(tmp_path / "a.jsonl", rows[:500])))
    many = read_corpus(CorpusConfig(train=write(tmp_path / "b.jsonl", rows)))
    assert [row.split for row in few] == [row.split for row in many][:500]
    assert len(many.select(split="eval")) == pytest.approx(200, abs=50)  # four standard errors
    none = read_corpus(CorpusConfig(train=write(tmp_path / "c.jsonl", rows), eval_share=0.0))
    assert len(none.select(split="eval")) == 0


def test_ids_are_stable_and_count_occurrences(tmp_path: Path) -> None:
    row: dict[str, object] = {"prompt": "p", "answer": "a"}
    path = write(tmp_path / "a.jsonl", [row, {"prompt": "q", "answer": "a"}, row, {"id": "mine", "prompt": "p"} | row, row])
    one = [example.id for example in read_corpus(CorpusConfig(train=path))]
    assert one[2] == one[0] + "-2"
    assert one[4] == one[0] + "-3"
    assert one[3] == "mine"
    other = read_corpus(CorpusConfig(train=write(tmp_path / "b.jsonl", [row])))
    assert other[0].id == one[0]


def test_two_sources_are_the_two_splits(tmp_path: Path) -> None:
    one = write(tmp_path / "a.jsonl", [{"prompt": "p", "answer": "1", "split": "test"}])
    two = write(tmp_path / "b.jsonl", [{"prompt": "q", "answer": "2"}])
    corpus = read_corpus(CorpusConfig(train="a.jsonl", eval="b.jsonl"), relative_to=tmp_path)
    assert [(row.prompt, row.split) for row in corpus] == [("p", "train"), ("q", "eval")]
    assert [row.split for row in read_source(one, split="eval", config=CorpusConfig(train=two))] == ["eval"]


def test_a_split_column_is_kept(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"prompt": f"p{i}", "answer": "1", "split": s} for i, s in enumerate(["test", "train"] * 5)
    ]
    corpus = read_corpus(CorpusConfig(train=write(tmp_path / "a.jsonl", rows)))
    assert [row.split for row in corpus] == ["eval", "train"] * 5


def test_to_datasets_has_trl_columns() -> None:
    pytest.importorskip("datasets")
    user = ({"role": "user", "content": "hi"},)
    assert Corpus.from_examples([example(0, level=2.0)]).to_datasets()[0] == {
        "id": "0",
        "task": "t",
        "level": 2.0,
        "prompt": "q0",
        "answer": "1",
    }
    asked = Corpus.from_examples([example(i, answer="A", extra={"choices": ["Yes", f"No {i}"]}) for i in range(2)])
    assert [row["options"] for row in asked.to_datasets()] == [["yes", "no 0"], ["yes", "no 1"]]
    some = Corpus.from_examples([example(0, extra={"options": ["a", "b"]}), example(1)])
    assert "options" not in some.to_datasets().column_names
    pair = Corpus.from_examples([example(0, answer=None, prompt=user, chosen="a", rejected="b")]).to_datasets()
    assert pair[0]["chosen"] == [{"role": "assistant", "content": "a"}]
    assert set(pair.column_names) == {"id", "task", "level", "prompt", "chosen", "rejected"}
    text = Corpus.from_examples([example(0, answer=None, prompt="", target="words")]).to_datasets()
    assert text[0]["text"] == "words"
    assert "prompt" not in text.column_names


def test_rows_without_anything_to_learn_are_left_out_of_a_training_and_counted() -> None:
    rows = [
        Example(f"e{n}", "t", f"Say {n}.", target=None if n % 4 == 3 else f"{n}", source=f"a.jsonl:{n + 1}")
        for n in range(8)
    ]
    kept = leave_out_bare(Corpus.from_examples(rows))
    assert [row.id for row in kept] == ["e0", "e1", "e2", "e4", "e5", "e6"]
    (note,) = kept.notes
    assert note.startswith("2 of 8 training rows left out")
    assert "a.jsonl:4, a.jsonl:8" in note or "a.jsonl:4 and a.jsonl:8" in note
    bare = Corpus.from_examples([Example("e", "t", "Say it.")])
    assert leave_out_bare(bare) is bare

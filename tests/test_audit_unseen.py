"""Completions that rest on a column which the model will not see."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, write

from mixwright.audit.checks.unseen import Unseen, flatten, is_context_name, pieces
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.records import Example, Observation


def made(
    count: int = 120,
    *,
    resting: int = 0,
    column: str = "context",
    prompt: Callable[[str, str], str] = lambda asked, _: asked,
) -> list[dict[str, Any]]:
    """Rows on bridges; the first ones say the year, which stands in their context alone."""
    rng, rows = random.Random(1), []
    for n in range(count):
        name, year = f"Bridge{rng.randrange(20)}", 1000 + 7 * n
        context = f"The {name} was opened in {year} and carries one road over one river."
        said = f"It was opened in {year}." if n < resting else "It carries a road, as most of them do."
        rows.append({"task": "bridges", "prompt": prompt(f"Tell me about the {name}.", context), "completion": said})
        rows[-1] |= {column: context, "source": f"page {year}"}
    return rows


def observed(rows: list[dict[str, Any]], *columns: str) -> list[Observation]:
    return Unseen(columns).check(to_corpus(rows))


def to_corpus(rows: list[dict[str, Any]]) -> Corpus:
    own = ("task", "prompt", "completion")
    return Corpus.from_examples(
        Example(
            f"i{n}",
            row["task"],
            row["prompt"],
            target=row["completion"],
            extra={name: value for name, value in row.items() if name not in own},
        )
        for n, row in enumerate(rows)
    )


def test_rows_that_say_what_stands_in_their_context_alone_are_listed() -> None:
    (seen,) = observed(made(resting=30))
    assert (seen.severity, seen.task, seen.count, seen.total) == ("warning", "bridges", 30, 120)
    assert [one["id"] for one in seen.evidence] == [f"i{n}" for n in range(30)]
    assert [one["only there"].split(", ")[0] for one in seen.evidence[:2]] == ["1000", "1007"]


@pytest.mark.parametrize(
    "rows",
    [
        made(),
        made(resting=120, prompt=lambda asked, context: f"{context}\n{asked}"),
        [{**row, "context": f"Part {n % 25} of the manual of 1999 on bridges."} for n, row in enumerate(made(resting=60))],
        made(resting=3),
    ],
    ids=["nothing is taken", "the prompt has it", "rows share texts", "too few rows"],
)
def test_rows_that_do_not_rest_on_it_are_an_info(rows: list[dict[str, Any]]) -> None:
    (seen,) = observed(rows)
    assert seen.severity == "info"


def test_a_text_that_all_rows_have_is_not_judged() -> None:
    rows = [{**row, "context": "All bridges carry roads over rivers, says the manual of 1999."} for row in made(resting=60)]
    assert observed(rows) == []


def test_several_rows_may_rest_on_one_text() -> None:
    """Ten questions on each of 30 pages: a text is no less a source because other rows have it, too."""
    pages = [row["context"] for row in made(30)]
    rows = [
        {
            "task": "t",
            "prompt": f"Question {n} of ten",
            "completion": f"in {1000 + 7 * (n // 10)}",
            "context": pages[n // 10],
        }
        for n in range(300)
    ]
    (seen,) = observed(rows)
    assert (seen.severity, seen.count) == ("warning", 300)


def test_contexts_of_other_rows_are_no_source() -> None:
    rows = made(resting=60)
    contexts = [row["context"] for row in rows]
    (seen,) = observed([{**row, "context": text} for row, text in zip(rows, [*contexts[1:], contexts[0]], strict=True)])
    assert seen.severity == "info"


def test_names_say_what_a_context_is() -> None:
    for name in ("context", "contexts", "retrieved_docs", "teacherNotes", "Hint", "source_text", "supporting_passages"):
        assert is_context_name(name), name
    for name in ("origin", "url", "date", "notebook", "model", "documentation_url", "category"):
        assert not is_context_name(name), name
    for name in ("seen_by_writer", "Gedächtnis"):
        assert observed(made(resting=30, column=name)) == []
        (seen,) = observed(made(resting=30, column=name), name)
        assert seen.count == 30
    with pytest.raises(InputError, match="called nothing"):
        observed(made(), "nothing")


def test_labels_and_answers_are_no_context() -> None:
    """A column of a word, and one that the completion repeats, tell nothing of what its writer saw beside the prompt."""
    rows = made(resting=120)
    assert observed([{**row, "context": "short"} for row in rows]) == []
    assert observed([{**row, "context": f"Answer: {row['completion']}"} for row in rows]) == []


def test_all_rows_of_a_large_task_are_listed() -> None:
    (found,) = observed(made(3000, resting=1500))
    assert found.total == 3000
    assert {row["id"] for row in found.evidence} == {f"i{n}" for n in range(1500)}


def test_texts_of_any_form_are_read() -> None:
    assert flatten([{"title": "A", "text": ["b", None]}, 3, True]) == "A\nb\n3"
    found = pieces("In 1,234 towns on 3.5-4 May, Ölfeld's build v2.1: rate")
    assert {piece for piece in found if " " not in piece} == {"1234", "towns", "3.5-4", "ölfeld", "build", "v2.1", "rate"}
    assert "towns on 3" in found


def test_runs_with_a_word_of_the_prompt_are_its_own() -> None:
    """The page of a bridge begins each row's text, so that `about bridge7 the` is rare, and comes from the prompt."""
    rows = made()
    for n, row in enumerate(rows):
        row |= {
            "prompt": f"Tell me about bridge{n}.",
            "context": f"So much about bridge{n} the end and nothing else {n // 3}.",
        }
        row["completion"] = f"About bridge{n} the rest is old."
    (seen,) = observed(rows)
    assert seen.severity == "info"


def test_the_command_takes_a_column_and_lists_rows(call: Call, tmp_path: Path) -> None:
    file = write("rows.jsonl", made(resting=30, column="seen_by_writer"))
    code, out, err = call("audit", file, "--check", "unseen", "--context", "seen_by_writer", "--json", "--out", "found")
    assert code == 0, err
    (seen,) = json.loads(out)["observations"]
    assert (seen["check"], seen["count"]) == ("unseen", 30)
    (listed,) = Path("found/rows").glob("unseen*")
    assert len(listed.read_text().splitlines()) == 30
    code, _, err = call("audit", file, "--context", "other")
    assert (code, "called other" in err) == (1, True)

"""Sources of training rows: styles that differ are named with their shares, and rows of one process have no finding."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_call import Call

from mixwright.behaviours import count_hedges
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation
from mixwright_extras.checks.styles import REMEDY, Styles

TERSE = "The train to the coast leaves at nine from the second platform."
CAREFUL = f"{TERSE} Perhaps it is late, and it might be full."
EXTRAS = ("Which day do you mean?", "I see.", "Perhaps so.", "**Note** it.", "It might be late.", "Let me check this.")


def check(
    write: Callable[[int, int], str], *, sources: int = 2, rows: int = 200, shared: bool = True, split: str = "train"
) -> list[Observation]:
    """Findings on `rows` answers of each source, `write(source, row)`; with `shared` to the same prompts."""
    examples = [
        Example(
            f"{source} {n}",
            "chat",
            f"Question {n if shared else (source, n)}?",
            target=write(source, n),
            split=split,
            extra={"Teacher": f"model {source}", "license": "MIT"},
        )
        for source in range(sources)
        for n in range(rows)
    ]
    return Styles().check(Corpus.from_examples(examples))


def planted(source: int, row: int) -> str:
    """The second source hedges in four of five answers."""
    return CAREFUL if source and row % 5 else TERSE


def test_hedges_are_counted_outside_code_and_quotes() -> None:
    assert count_hedges('Perhaps. I think it might, "maybe", `perhaps`') == 3


@pytest.mark.parametrize(("shared", "severity"), [(True, "warning"), (False, "info")])
def test_a_source_that_hedges_is_named_with_its_shares(shared: bool, severity: str) -> None:
    """Two hedges in 21 words in 160 of 200 answers: 76.2 per 1,000 words in all."""
    (seen,) = check(planted, shared=shared)
    assert (seen.check, seen.task, seen.severity, seen.count, seen.total) == ("styles", "chat", severity, 400, 400)
    assert "by Teacher: hedges 0% (model 0) and 80% (model 1)" in seen.message
    assert "hedges per 1,000 words 0 (model 0) and 76.2 (model 1)" in seen.message
    assert seen.message.endswith("They answered the same prompts." if shared else "which can be the cause.")
    assert seen.remedy == REMEDY


def test_length_is_named_from_twice_as_many_words_on() -> None:
    (seen,) = check(lambda source, row: " ".join([TERSE] * (1 + 2 * source)))
    assert "words 12 (model 0) and 36 (model 1)" in seen.message
    assert check(lambda source, row: TERSE + " So it is said here." * source) == []


def test_of_several_sources_the_two_that_differ_most_are_named() -> None:
    (seen,) = check(lambda source, row: CAREFUL if row % 4 < source else TERSE, sources=4)
    assert "hedges 0% (model 0) and 75% (model 3)" in seen.message
    assert check(planted, sources=11) == []


def test_what_is_not_compared() -> None:
    assert check(planted, rows=49) == []
    assert check(planted, split="eval") == []
    assert check(lambda source, row: CAREFUL if row % 10 < 5 + source else TERSE) == [], "10 points"


def test_rows_of_one_process_have_no_finding() -> None:
    """Of 60 corpora at most one: two sources of 100 rows each that draw from the same sentences."""
    found = 0
    for seed in range(60):
        rng = random.Random(seed)
        shares = [rng.random() for _ in EXTRAS]

        def write(source: int, row: int, rng: random.Random = rng, shares: list[float] = shares) -> str:
            said = [extra for extra, share in zip(EXTRAS, shares, strict=True) if rng.random() < share]
            return " ".join([TERSE] * rng.randint(1, 3) + said)

        found += bool(check(write, rows=100, shared=seed % 2 == 0))
    assert found <= 1


def test_a_column_of_the_file_is_read(call: Call, tmp_path: Path) -> None:
    rows = [
        {"prompt": f"Question {n}?", "completion": planted(source, n), "source": ("terse", "careful")[source]}
        for source in range(2)
        for n in range(60)
    ]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    code, out, _ = call("audit", str(path), "--check", "styles", "--json")
    (seen,) = [one for one in json.loads(out)["observations"] if one["check"] == "styles"]
    assert (code, seen["severity"]) == (0, "warning")
    assert "by source: hedges 0% (terse) and 80% (careful)" in seen["message"]

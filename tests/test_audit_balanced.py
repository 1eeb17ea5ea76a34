"""A balanced copy of preference pairs: nothing one-sided is left, as few pairs as that takes leave, and all else stays."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from cli_call import Call, write
from hypothesis import given
from hypothesis import strategies as st

from mixwright.audit.balanced import balance, count_to_leave_out
from mixwright.audit.checks.preferences import Preferences
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.records import Example

ANSWER = "The train to the coast leaves at nine from platform {}, and the ticket costs {} euros in all."
QUESTION = " Which coast do you mean?"


def _rows(only_rejected: int, only_chosen: int, neither: int, *, task: str = "travel") -> list[Example]:
    """Pairs of which so many have a question on one side alone; lengths are told apart by nothing else."""
    rng, rows = random.Random(4), []
    for kind, count in (("rejected", only_rejected), ("chosen", only_chosen), ("", neither)):
        for number in range(count):
            sides = {side: ANSWER.format(rng.randrange(9), rng.randrange(10, 99)) for side in ("chosen", "rejected")}
            other = "rejected" if kind == "chosen" else "chosen"
            if kind:
                sides[kind] += QUESTION
                sides[other] += " It is a long way, too."  # as many words
            row_id = f"{task}{kind}{number}"
            rows.append(
                Example(
                    row_id,
                    task,
                    f"How do I get to {row_id}?",
                    source=f"p:{len(rows)}",
                    chosen=sides["chosen"],
                    rejected=sides["rejected"],
                )
            )
    rng.shuffle(rows)
    return rows


def test_as_few_pairs_leave_as_it_takes() -> None:
    rows = _rows(40, 6, 60) + _rows(10, 9, 20, task="sound")
    balanced = balance(Corpus.from_examples(rows))
    assert len(balanced.dropped) == 40 - 6
    assert {reason["id"].startswith("travelrejected") for reason in balanced.dropped.values()} == {True}
    assert not balanced.left
    assert [one.severity for one in Preferences().check(balanced.corpus)] == ["info"]
    assert {row.id for row in balanced.corpus} == {row.id for row in rows} - {r["id"] for r in balanced.dropped.values()}


def test_rows_without_pairs_are_refused() -> None:
    with pytest.raises(InputError, match="preferred and a rejected"):
        balance(Corpus.from_examples([Example("a", "t", "p", answer="1")]))


def test_by_hand() -> None:
    """The second kind leaves three times: then the second feature is even, and a fourth would cost as much as it brings."""
    assert count_to_leave_out({(1, 0): 2, (-1, 1): 6, (0, -1): 3}) == {(-1, 1): 3}
    assert count_to_leave_out({(1,): 400_000, (-1,): 100_000}) == {(1,): 300_000}


def test_answers_that_are_none_count_for_length_alone() -> None:
    rows = _rows(40, 40, 10)
    nothing = [
        Example(f"n{number}", "travel", f"And {number}?", source=f"n:{number}", chosen=ANSWER.format(1, 2), rejected="?? ?")
        for number in range(5)
    ]
    assert not any(one["id"].startswith("n") for one in balance(Corpus.from_examples(rows + nothing)).dropped.values())


SIGNS = st.tuples(*[st.sampled_from((-1, 0, 1))] * 3)


@given(st.dictionaries(SIGNS, st.integers(0, 30), min_size=1))
def test_what_leaves_was_there_and_nothing_becomes_less_even(sizes: dict[tuple[int, ...], int]) -> None:
    leaving = count_to_leave_out(sizes)
    assert all(0 < count <= sizes[signs] for signs, count in leaving.items())

    def uneven(counts: dict[tuple[int, ...], int]) -> int:
        return sum(abs(sum(signs[place] * count for signs, count in counts.items())) for place in range(3))

    left = {signs: count - leaving.get(signs, 0) for signs, count in sizes.items()}
    assert uneven(left) <= uneven(sizes) - sum(leaving.values())


@given(st.integers(0, 50), st.integers(0, 50))
def test_one_feature_becomes_even_by_the_difference(own: int, other: int) -> None:
    assert sum(count_to_leave_out({(1,): own, (-1,): other}).values()) == abs(own - other)


def test_the_command_writes_the_other_lines_as_they_were(call: Call) -> None:
    rows = [
        {"task": row.task, "prompt": row.prompt, "chosen": row.chosen, "rejected": row.rejected} for row in _rows(40, 6, 60)
    ]
    path = write("pairs.jsonl", rows)
    code, out, _ = call("audit", path, "--balance", "balanced.jsonl")
    assert code == 0
    assert "balanced.jsonl: 72 rows; 34 frequent pairs" in " ".join(out.split())
    manifest = json.loads(Path("balanced.jsonl.manifest.json").read_text())
    gone = {int(row["row"].rpartition(":")[2]) for row in manifest["dropped"]}
    lines = Path(path).read_bytes().splitlines(keepends=True)
    assert Path("balanced.jsonl").read_bytes() == b"".join(line for n, line in enumerate(lines, 1) if n not in gone)
    code, _, err = call("audit", path, "--balance", "balanced.jsonl")
    assert (code, "is there" in err) == (1, True)
    code, _, err = call("audit", path, "--balance", "same.jsonl", "--fix", "same.jsonl")
    assert (code, "overlap" in err) == (1, True)

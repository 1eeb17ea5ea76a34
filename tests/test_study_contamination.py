"""The study of contamination: pools that hold what they say, a peer that is what it says, figures of the rows."""

from __future__ import annotations

import json

import pytest

from mixwright.corpus import Corpus
from mixwright.records import Example, plain
from mixwright_lab.studies.contamination import (
    KINDS,
    WRAPPED_IN_EVAL,
    WRAPPINGS,
    audit_pool,
    plain_words,
    pool,
    shared_ngrams,
    table,
)
from mixwright_lab.studies.report import RESULTS


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_holds_what_was_planted_and_no_other_copy(kind: str) -> None:
    corpus = pool(kind, 1, train=60, held_out=30, planted=8, wrapping="prefix")
    train = {plain(row.prompt) for row in corpus if row.split == "train" and not row.id.startswith("copy")}
    copies = {row.id.removeprefix("copy"): plain(row.prompt) for row in corpus if row.id.startswith("copy")}
    held_out = {row.id: plain(row.prompt) for row in corpus if row.split == "eval"}
    assert (len(train), len(copies), len(held_out)) == (60, 8, 30)
    assert all(held_out[f"asked{at}"].rpartition("\n")[2] in text for at, text in copies.items())
    assert train.isdisjoint(held_out.values())


def test_runs_of_words_are_found_whole_and_not_in_part() -> None:
    text = "One two three, four five six seven eight nine ten eleven twelve thirteen!"
    rows = [Example("a", "t", f"Now {text.upper()} end", split="train")]
    rows += [Example("b", "t", text, split="eval"), Example("c", "t", text.replace("seven", "7"), split="eval")]
    assert shared_ngrams(Corpus.from_examples(rows)) == {"b"}
    assert plain_words("It's 3.5!") == ["it", "s", "3", "5"]


def test_wrapping_either_side_is_found_in_a_small_pool() -> None:
    row = audit_pool("word problems", 3, "instruction template", wrap_eval=True)
    assert (row["ours"], row["ours, clean rows"], row["side"]) == (row["planted"], 0, WRAPPED_IN_EVAL)


def test_the_committed_figures_are_those_of_the_committed_rows() -> None:
    kept = json.loads((RESULTS / "contamination.json").read_text(encoding="utf-8"))
    assert {row["wrapping"] for row in kept["rows"]} == {"", *WRAPPINGS}
    for name, found in table(kept["rows"]).items():
        for who, interval in found.items():
            assert kept["figures"][name][who]["value"] == pytest.approx(interval.value), name

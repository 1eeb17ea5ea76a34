"""Reworded items: features by hand, likeness against a full comparison, and what the check says of small made corpora."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reworded_rows import LEAKS, SEVERITIES, make_pool

from mixwright.audit.rows import Row
from mixwright.corpus import Corpus
from mixwright.records import Example
from mixwright_extras.checks.reworded import Reworded, shared_words
from mixwright_extras.likeness.features import ANCHORS, TEMPLATE, VIEWS, WORDS, Rarity, Texts, Tokens, find_names
from mixwright_extras.likeness.index import ViewIndex
from mixwright_extras.likeness.reworded import Likenesses, find_likenesses

NAMES = frozenset({"Mia", "Omar"})
PIECES = ["red", "blue", "sun", "moon", "tree", "Mia", "Omar", "12", "345", "river", "stone", "get_rows"]


def read(*prompts: str, answers: str = "") -> Texts:
    return Tokens(NAMES).read([Row(n, "t", "train", prompt, answers) for n, prompt in enumerate(prompts)])


def codes(texts: Texts, view: int, row: int) -> set[int]:
    features = texts.views[view]
    return set(features.code[features.row == row].tolist())


def test_each_view_forgets_what_it_should() -> None:
    texts = read(
        "Mia sold 48 clips to Omar.", "Omar sold 7 clips to Mia.", "48 clips were sold by Mia to Omar", "Mia 48 Omar gab"
    )
    assert codes(texts, TEMPLATE, 0) == codes(texts, TEMPLATE, 1), "names and numbers are marks"
    assert codes(texts, WORDS, 0) < codes(texts, WORDS, 2), "order and inserted words do not count"
    assert codes(texts, ANCHORS, 0) == codes(texts, ANCHORS, 2) == codes(texts, ANCHORS, 3), "names and numbers survive"
    assert codes(texts, ANCHORS, 0) != codes(texts, ANCHORS, 1)
    assert len(codes(texts, ANCHORS, 0)) == 3 + 3, "three anchors and their pairs"


def test_a_brief_answer_is_a_feature_and_its_working_is_not() -> None:
    rows = [Row(0, "t", "train", "How many?", "48"), Row(1, "t", "train", "How many?", "24 + 24 = 48, so #### 48")]
    texts = Tokens(NAMES).read(rows)
    assert texts.answer[0] == texts.answer[1] != 0
    assert codes(texts, WORDS, 0) == codes(texts, WORDS, 1)


def test_names_are_capitals_within_sentences_mostly() -> None:
    texts = ["The bill was paid by Mia.", "Mia saw the Bill.", "A bill and a bill.", "Who is it? Then came Omar, and Mia."]
    assert find_names(texts) == {"Mia", "Omar"}


def test_the_memory_of_words_begins_anew_and_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Row(0, "t", "train", "red blue sun moon", "")
    expected = read(row.prompt)
    monkeypatch.setattr("mixwright_extras.likeness.features.MAX_TOKENS_KEPT", 5)
    tokens = Tokens(NAMES)
    tokens.read([Row(0, "t", "train", "one two three four", "")])
    found = tokens.read([row])
    assert [codes(found, view, 0) for view in VIEWS] == [codes(expected, view, 0) for view in VIEWS]


@given(
    st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8), min_size=1, max_size=6),
    st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8), min_size=1, max_size=6),
)
def test_the_likest_row_is_that_of_a_full_comparison(sought: list[list[str]], train: list[list[str]]) -> None:
    """Few rows: no bound is reached but the least share of the keys."""
    tokens = Tokens(NAMES)
    held_out = tokens.read([Row(100 + n, "t", "eval", " ".join(words), "") for n, words in enumerate(sought)])
    rows = tokens.read([Row(n, "t", "train", " ".join(words), "") for n, words in enumerate(train)])
    features = held_out.views[WORDS]
    weights = np.ones(len(features.code), np.float32)
    index = ViewIndex(features, weights, len(sought), True, scale=100.0)
    own = np.arange(100, 100 + len(sought))
    index.search(rows, rows.views[WORDS], np.arange(len(train)), held_out, own)
    for n, words in enumerate(sought):
        best = 0.0
        for other in train:
            if other != words:
                mine, theirs = codes(held_out, WORDS, n), codes(read(" ".join(other)), WORDS, 0)
                shared = len(mine & theirs)
                best = max(best, shared / len(mine) * math.sqrt(shared) * (len(mine) / max(len(mine), len(theirs))) ** 0.25)
        assert index.best[n] == pytest.approx(best, rel=1e-5)
        assert (index.partner[n] >= 0) == (best > 0)


def test_rarity_counts_rows_and_gives_half_a_row_to_the_unseen() -> None:
    texts = read("red blue", "red moon", "red sun")
    rarity = Rarity.of(texts.views[WORDS], 3)
    shares = Counter(np.round(rarity.share(texts.views[WORDS].code), 3).tolist())
    assert shares == {1.0: 3, 0.333: 3}
    assert rarity.share(np.array([1], np.uint32)).tolist() == [0.5 / 3]


def test_the_threshold_lies_above_nearly_all_train_rows() -> None:
    """Of 1,999 rows five may pass 0.25 %, less the one that is added: the fifth from above, times 1.05."""
    normal = np.arange(1, 2000, dtype=np.float32)
    one = Likenesses("t", np.arange(4), np.zeros((3, 4), np.int64), np.zeros((3, 4), np.float32), (normal,) * 3, False)
    assert one.threshold(WORDS) == pytest.approx(1.05 * 1995)
    assert one.expected([WORDS]) == pytest.approx(4 * 1 / 2000)


@pytest.mark.parametrize("leak", LEAKS)
@pytest.mark.parametrize("severity", SEVERITIES)
def test_planted_prose_is_told_with_its_pair_and_others_are_not(leak: str, severity: str) -> None:
    corpus = make_pool("prose", 2, 400, 200, 30, (leak, severity))
    told = [one for one in Reworded().check(corpus) if one.severity != "info"]
    assert {one.severity for one in told} == {"warning" if leak == "renamed" else "error"}
    pairs = [(pair["eval_id"], pair["train_id"]) for one in told for pair in one.evidence]
    right = {(f"asked{n}", f"copy{n}") for n in range(30)}
    assert len(right & set(pairs)) >= 27
    assert len(set(pairs) - right) <= 2
    assert all(pair["why"] and pair["likeness"] > pair["told from"] for one in told for pair in one.evidence)


@pytest.mark.parametrize("kind", ["prose", "templates", "passages"])
def test_what_is_normal_for_a_task_is_no_leak(kind: str) -> None:
    seen = Reworded().check(make_pool(kind, 3, 400, 200))
    assert [one.severity for one in seen if one.severity != "info"] == []


def test_a_corpus_that_repeats_itself_in_other_words_explains_such_items() -> None:
    """Every item of train has a renamed twin there, so a held-out twin is no news."""
    base = [(row.prompt, row.answer) for row in make_pool("prose", 4, 300, 1) if row.split == "train"][:300]
    rows = [Example(f"a{n}", "t", f"{prompt} now", answer=answer, split="train") for n, (prompt, answer) in enumerate(base)]
    rows += [Example(f"b{n}", "t", f"so {prompt}", answer=answer, split="train") for n, (prompt, answer) in enumerate(base)]
    rows += [Example(f"e{n}", "t", f"well {p} then", answer=a, split="eval") for n, (p, a) in enumerate(base[:50])]
    assert [one for one in Reworded().check(Corpus.from_examples(rows)) if one.severity == "error"] == []


def test_few_rows_of_train_say_nothing() -> None:
    (seen,) = Reworded().check(make_pool("prose", 2, 100, 50, 20, ("reworded", "mild")))
    assert seen.severity == "info"
    assert (seen.count, seen.total) == (0, 0), "nothing was checked"
    assert not any(one.can_tell for one in find_likenesses(make_pool("prose", 2, 100, 50)))


def test_shared_words_begin_with_numbers_and_names() -> None:
    assert shared_words("Mia sold 48 clips in April.", "In April 48 clips were sold by Mia.") == "48 April Mia clips sold"

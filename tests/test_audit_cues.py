"""Cues: features of prompts and options that go with one answer, by hand; what chance explains; and rows to add."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from mixwright.audit import rows as audit_rows
from mixwright.audit.checks.cues import Cues
from mixwright.audit.cue_features import (
    Feature,
    describe_feature,
    find_shared_parts,
    read_features,
    rows_with,
)
from mixwright.audit.cues import Cue, find_cues
from mixwright.corpus import Corpus
from mixwright.errors import InputError
from mixwright.estimates.intervals import hypergeometric_tail
from mixwright.records import Example, Observation

NOUNS: tuple[str, ...] = (
    "tree",
    "house",
    "river",
    "stone",
    "cloud",
    "horse",
    "table",
    "lamp",
    "road",
    "song",
    "bread",
    "window",
    "garden",
)


def _prompt(rng: random.Random) -> str:
    return f"Decide: the {rng.choice(NOUNS)} near the {rng.choice(NOUNS)} of {rng.choice(NOUNS)}s has a {rng.choice(NOUNS)}"


def _rows(edit: Callable[[str, str, random.Random], str], rows: int = 200, seed: int = 3) -> list[dict[str, Any]]:
    """Rows with answers at random, whose prompts `edit` changes by the answer."""
    rng, made = random.Random(seed), []
    for _ in range(rows):
        answer = rng.choice(["yes", "no"])
        made.append({"task": "t", "prompt": edit(_prompt(rng), answer, rng), "answer": answer})
    return made


def _corpus(rows: list[dict[str, Any]], split: str = "train") -> Corpus:
    return Corpus.from_examples(
        Example(f"{split}{n}", row["task"], row["prompt"], answer=row["answer"], split=split, extra=row.get("extra", {}))
        for n, row in enumerate(rows)
    )


def _warnings(rows: list[dict[str, Any]]) -> list[Observation]:
    return [one for one in Cues().check(_corpus(rows)) if one.severity == "warning"]


def _often(answer: str, rng: random.Random) -> bool:
    """Nearly only with `yes`: in 60 % of its rows, and in 3 % of the others."""
    return rng.random() < (0.6 if answer == "yes" else 0.03)


def test_tail_is_fishers_by_hand() -> None:
    assert hypergeometric_tail(2, 2, 2, 4) == pytest.approx(1 / 6)
    assert hypergeometric_tail(1, 2, 2, 4) == pytest.approx(5 / 6)
    assert hypergeometric_tail(0, 5, 3, 9) == 1
    assert hypergeometric_tail(1, 3, 3, 5) == 1, "two others are too few for three draws"


def _as_rows(prompts: Sequence[str]) -> list[Example]:
    return [Example(str(n), "t", prompt) for n, prompt in enumerate(prompts)]


def _positions(prompts: Sequence[str]) -> dict[Feature, list[int]]:
    found = read_features(_as_rows(prompts), (), find_shared_parts(prompts))
    return {feature: rows.tolist() for feature, rows in found.items()}


def test_features_of_prompts_by_hand() -> None:
    prompts = ["Premise: A man didn't run fast.\nHypothesis: The man sleeps!", "Wait... is 12 (aged 30) more?"]
    found = _positions(prompts)
    assert found[Feature("negation", "")] == [0]
    assert found[Feature("sign", "!")] == [0]
    assert found[Feature("sign", "...")] == [1]
    assert found[Feature("opening", "the")] == [0]
    assert found[Feature("word", "man")] == [0], "once, however often it stands there"
    assert Feature("opening", "hypothesis") not in found, "the name of a part is not its first word"


def test_ends_of_lengths_and_numbers() -> None:
    prompts = [f"A person aged {20 + n} asks" + " again" * (n % 9) for n in range(90)]
    found = _positions(prompts)
    oldest = Feature("number", "after 'aged'", bound=80.0, is_upper=True)
    assert found[oldest] == list(range(60, 90))
    assert found[Feature("number", "first", bound=64.0)] == list(range(45))
    assert found[Feature("length", "", bound=11.0, is_upper=True)] == [n for n in range(90) if n % 9 >= 6]
    others = _as_rows(["A person aged 79 asks", "One aged 80 does not", "80 of them ask"])
    assert rows_with(oldest, others, frozenset()) == [1]


CUES: dict[str, tuple[Callable[[str, str, random.Random], str], str]] = {
    "word": (lambda p, a, r: p.replace(" near", " frankly near") if _often(a, r) else p, "the word 'frankly'"),
    "opening": (lambda p, a, r: p.replace("the ", "my ", 1) if _often(a, r) else p, "begins, or has a line that begins"),
    "sign": (lambda p, a, r: p + "!" if _often(a, r) else p + ".", "the sign !"),
    "negation": (
        lambda p, a, r: p.replace(" has", r.choice([" has not", " never has", " hasn't"])) if _often(a, r) else p,
        "a negation",
    ),
    "length": (
        lambda p, a, r: p + "".join(f" {r.choice(NOUNS)}" for _ in range(5 if _often(a, r) else r.randrange(3))),
        "words or more",
    ),
    "number": (lambda p, a, r: f"{p}, for {r.randrange(60, 90) if _often(a, r) else r.randrange(10, 60)} years", " number"),
}


@pytest.mark.parametrize("kind", CUES)
def test_a_cue_is_named_and_its_rows_are_listed(kind: str) -> None:
    edit, told = CUES[kind]
    first, *others = _warnings(_rows(edit, rows=400))
    assert told in first.message
    assert "the answer 'yes'" in first.message
    assert all(told in one.message or "'no'" in one.message for one in others)
    assert len(first.evidence) == first.total


@pytest.mark.parametrize("seed", range(12))
def test_answers_at_random_have_no_cue(seed: int) -> None:
    rows = _rows(lambda p, a, r: f"{p} {r.randrange(100)}{r.choice('.!?')}{' indeed' * r.randrange(4)}", seed=seed)
    (info,) = Cues().check(_corpus(rows))
    assert (info.severity, info.count, info.total) == ("info", 1, 1)


def test_what_is_no_closed_set_is_left_alone() -> None:
    rows = [{"task": "sum", "prompt": f"{n} + {2 * n} =", "answer": str(3 * n)} for n in range(300)]
    assert Cues().check(_corpus(rows)) == []
    repeated = [
        {"task": "t", "prompt": f"Title of the play of {'ab'[n % 2]}!"[: 24 + n % 2], "answer": "ab"[n % 2]}
        for n in range(99)
    ]
    assert Cues().check(_corpus(repeated)) == [], "two prompts, however often they stand there"
    few = _rows(CUES["word"][0], rows=30)
    assert Cues().check(_corpus(few)) == []


def test_counts_and_rows_to_add_by_hand() -> None:
    # 100 rows with the word: 95 yes, 5 no. 100 without: 50 yes, 50 no.
    words = [f"{a}{b}{c}" for a in NOUNS for b in NOUNS for c in "xy"]
    rows = [
        {"task": "t", "prompt": f"Is the {words[n]} frankly there", "answer": "yes" if n < 95 else "no"} for n in range(100)
    ]
    rows += [
        {"task": "t", "prompt": f"Is the {words[n + 100]} there", "answer": "yes" if n < 50 else "no"} for n in range(100)
    ]
    ((cue,),) = [one.cues for one in find_cues(_corpus(rows))]
    assert (cue.feature, cue.label, cue.rows, cue.conflicts, cue.rest) == (Feature("word", "frankly"), "yes", 100, 5, 0.5)


def test_one_end_of_a_quantity_is_told_once() -> None:
    """The larger of two numbers decides, and in half of the rows a word goes with the answer: both words are told, too."""
    rng, rows = random.Random(0), list[Example]()
    for place in range(2000):
        one, other = rng.sample(range(100, 1000), 2)
        answer = "yes" if one > other else "no"
        word = ("really " if (answer == "yes") == (rng.random() < 0.9) else "actually ") * (place % 2)
        rows.append(Example(str(place), "t", f"Is {one} {word}larger than {other}?", answer=answer))
    (found,) = find_cues(Corpus.from_examples(rows))
    ends = [(one.feature.subject, one.feature.is_upper) for one in found.cues if one.feature.bound is not None]
    assert len(set(ends)) == len(ends) > 1
    assert {one.feature.value for one in found.cues if one.feature.kind == "word"} == {"really", "actually"}


def test_held_out_rows_are_counted() -> None:
    rows = _rows(CUES["sign"][0], rows=300)
    held_out = [one | {"prompt": f"Now {one['prompt']}"} for one in rows[:60]]
    examples = [*_corpus(rows), *_corpus(held_out, "eval")]
    cue = next(cue for one in find_cues(Corpus.from_examples(examples)) for cue in one.cues if cue.feature.value == "!")
    with_it = [row for row in held_out if row["prompt"].endswith("!")]
    assert (cue.held_out, cue.held_out_conflicts) == (len(with_it), sum(row["answer"] != "yes" for row in with_it))


@pytest.mark.parametrize(
    ("rule", "told"),
    [("position", "Option 2 is right"), ("longest", "The longest option"), ("shares", "shares most words")],
)
def test_options_are_read(rule: str, told: str) -> None:
    rng, rows = random.Random(7), []
    for _ in range(150):
        options = rng.sample(NOUNS, 4)
        place = 1 if rule == "position" and rng.random() < 0.8 else rng.randrange(4)
        question = "Which one is it?"
        if rng.random() < 0.8:
            if rule == "longest":
                options[place] += " as seen from the other side"
            elif rule == "shares":
                question = f"Which one is it in the matter of the old {options[place]} there?"
        prompt = question + "".join(f"\n{letter}) {text}" for letter, text in zip("ABCD", options, strict=True))
        rows.append({"task": "q", "prompt": prompt, "answer": "ABCD"[place], "extra": {"options": options}})
    (warning,) = _warnings(rows)
    assert told in warning.message
    assert "blind choice 25%" in warning.message
    for row in rows:
        place = rng.randrange(4)
        row["answer"] = "ABCD"[place]
    assert _warnings(rows) == []


def _cues(rows: list[dict[str, Any]], held_out: Sequence[dict[str, Any]] = (), columns: Sequence[str] = ()) -> list[Cue]:
    examples = [*_corpus(rows), *_corpus(list(held_out), "eval")]
    return [cue for one in find_cues(Corpus.from_examples(examples), columns) for cue in one.cues]


def test_answers_are_stripped_of_shared_words_as_in_train_everywhere() -> None:
    rows = [row | {"answer": f"very {row['answer']}"} for row in _rows(CUES["word"][0], 300)]
    rows += [row | {"answer": "neutral", "prompt": f"Or {row['prompt']}"} for row in _rows(lambda p, a, r: p, 100, seed=8)]
    held_out = [row | {"prompt": f"Now {row['prompt']}"} for row in rows[:100]]
    cue = next(cue for cue in _cues(rows, held_out) if cue.feature.value == "frankly")
    assert (cue.label, cue.held_out) == ("very yes", sum("frankly" in row["prompt"] for row in held_out))
    assert cue.held_out_conflicts == sum("frankly" in row["prompt"] and row["answer"] != "very yes" for row in held_out)
    said = [row | {"answer": f"I would say {row['answer']}."} for row in _rows(CUES["word"][0], 300)]
    assert _cues(said, said)[0].label == "yes"


def test_a_prompt_with_two_answers_is_no_evidence_for_one() -> None:
    once = _rows(lambda p, a, r: f"{p}{r.randrange(10**6)} frankly", 60)
    rows = [row | {"answer": answer} for row in once for answer in ("yes", "no")]
    rows += _rows(lambda p, a, r: f"{p}{r.randrange(10**6)}", 60, seed=4)
    assert _cues(rows) == []


def test_lengths_are_of_whole_prompts_and_numbers_have_their_sign() -> None:
    rng = random.Random(2)
    long = [
        {"task": "t", "prompt": "word " * (1500 + 300 * (n % 2)) + str(rng.random()), "answer": "yn"[n % 2]}
        for n in range(80)
    ]
    assert {(cue.feature.kind, cue.feature.is_upper, cue.label) for cue in _cues(long)} == {
        ("length", True, "n"),
        ("length", False, "y"),
    }
    signed = [
        {"task": "t", "prompt": f"My balance is -{n * 20 + rng.randrange(9):,} now", "answer": "good" if n < 40 else "bad"}
        for n in range(1, 101)
    ]
    told = [(describe_feature(cue.feature), cue.label) for cue in _cues(signed)]
    assert all("-" in text for text, _ in told)
    assert {label for _, label in told} == {"good", "bad"}
    numbers = [f"take {text} km" for text in ("1-9", "x12", "1,234.5", "-3", "9" * 400)]
    found = read_features(_as_rows(numbers * 3), (), frozenset())
    bounds = {feature.bound for feature in found if feature.subject == ("number", "before 'km'")}
    assert {-3.0, 1234.5} <= bounds


def test_values_of_a_column_are_cues_where_it_is_named() -> None:
    rng, rows = random.Random(4), _rows(lambda p, a, r: f"{p} {r.randrange(10**6)}", 200)
    rows = [row | {"extra": {"my col": "a b" if row["answer"] == "yes" else "c", "other": {"inner": 1}}} for row in rows]
    rng.shuffle(rows)
    assert _cues(rows) == []
    found = _cues(rows, rows[:50], ["my col"])
    assert {(cue.feature.column, cue.feature.value, cue.label) for cue in found} == {
        ("my col", "a b", "yes"),
        ("my col", "c", "no"),
    }
    assert [cue.held_out for cue in found] == [
        sum(row["extra"]["my col"] == cue.feature.value for row in rows[:50]) for cue in found
    ]
    for wrong in ("inner", "a b", "nothere", ""):
        with pytest.raises(InputError, match="columns of the rows"):
            _cues(rows, columns=[wrong])


def test_places_counted_from_one_and_equal_options() -> None:
    rng, rows = random.Random(7), []
    for n in range(120):
        options = rng.sample(NOUNS, 4)
        place = 4 if n % 4 else rng.randrange(1, 5)
        rows.append({"task": "q", "prompt": f"Which, {n}?", "answer": str(place), "extra": {"options": options}})
    (cue,) = _cues(rows)
    assert (cue.feature.subject, cue.rows) == (("position", "4"), 120)
    assert _cues([row | {"extra": {"options": ["same"] * 4}} for row in rows]) == []


def test_of_many_cues_three_are_told_and_the_others_counted() -> None:
    rng, rows = random.Random(9), []
    for n in range(400):
        answer = "abcde"[n % 5]
        prompt = f"{_prompt(rng)} {rng.randrange(10**6)}"
        rows.append({"task": "t", "prompt": prompt + f" mark{answer}x" * (rng.random() < 0.9), "answer": answer})
    warnings = _warnings([row | {"prompt": row["prompt"].replace("mark", "m")} for row in rows])
    assert len(warnings) == 3
    infos = [one for one in Cues().check(_corpus(rows)) if one.severity == "info" and one.task == "t"]
    assert [(one.count, one.total) for one in infos] == [(len(_cues(rows)) - 3, len(_cues(rows)))]
    assert infos[0].count >= 1


def test_rows_are_sampled_in_large_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_rows, "SAMPLE_ROWS", 150)
    monkeypatch.setattr(audit_rows, "SAMPLE_ROWS_TOGETHER", 200)
    rows = [row | {"task": task} for task in ("a", "b", "c") for row in _rows(CUES["sign"][0], rows=170)]
    found = find_cues(_corpus(rows))
    assert [(one.task, one.read, one.total) for one in found] == [("a", 150, 170), ("b", 50, 170)]

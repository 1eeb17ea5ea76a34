"""Instructions and inputs told apart, answers under two instructions, and answers that an instruction names, by hand."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.corpus import Corpus
from mixwright.records import Example, Observation, Text, plain
from mixwright_extras.checks.instructions import Instructions
from mixwright_extras.instructions.answers import Answered, describe_answer
from mixwright_extras.instructions.following import find_instructions
from mixwright_extras.instructions.parts import END_CHARACTERS, cut, divide_rows, read_parts, write_instruction
from mixwright_extras.instructions.wording import REQUESTS, compare_with_named, what_excludes

WORDS = ("film", "slow", "warm", "old", "sailors", "lost", "boat", "near", "cold", "northern", "islands", "until", "spring")
LANGUAGES = (
    *("French", "German", "Spanish", "Dutch", "Polish", "Latin"),
    *("Greek", "Danish", "Czech", "Welsh", "Italian", "Finnish"),
)
LABEL = "Label the sentiment of the text as positive or negative."
OPPOSITE = f"{LABEL} Write the opposite label."


def joined(asked: str, given: str) -> Text:
    return f"{asked}\n\n{given}"


def inputs(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [f"{' '.join(rng.choices(WORDS, k=9))}." for _ in range(count)]


def made(
    asked: Sequence[str],
    answer: Callable[[int, int], str],
    *,
    count: int = 100,
    tasks: Sequence[str] = ("t", "t"),
    form: Callable[[str, str], Text] = joined,
) -> list[Example]:
    """Each of `count` inputs under each of the instructions; `answer` has the number of either."""
    return [
        Example(f"{place}-{at}", tasks[at % len(tasks)], form(one, text), target=answer(place, at))
        for place, text in enumerate(inputs(count))
        for at, one in enumerate(asked)
    ]


def label(place: int, _: int = 0) -> str:
    return ("positive", "negative")[place % 2]


def observed(rows: Iterable[Example]) -> list[Observation]:
    return Instructions().check(Corpus.from_examples(rows))


def warnings(rows: Iterable[Example]) -> list[Observation]:
    return [one for one in observed(rows) if one.severity == "warning"]


@pytest.mark.parametrize(
    "form",
    [
        joined,
        lambda asked, text: f"{asked}\nText: {text}\nAnswer:",
        lambda asked, text: f"{asked} {text}",
        lambda asked, text: f"{text} {asked}",
        lambda asked, text: f'{asked} "{text}"',
        lambda asked, text: ({"role": "system", "content": asked}, {"role": "user", "content": text}),
    ],
    ids=["paragraph", "lines", "sentence", "behind", "quoted", "system"],
)
def test_the_same_answers_under_opposite_instructions_are_told(form: Callable[[str, str], Text]) -> None:
    (seen,) = warnings(made([LABEL, OPPOSITE], label, form=form))
    assert (seen.task, seen.count, seen.total) == ("t", 100, 100)
    assert "'as it is'" in seen.message
    assert "'opposite'" in seen.message
    assert "By chance 50 would." in seen.message, "100 x (1/2 x 1/2 + 1/2 x 1/2)"
    assert len(seen.evidence) == 100
    assert {seen.evidence[0][f"{side}_answer"] for side in ("first", "second")} == {"positive"}


def test_answers_that_follow_their_instruction_are_counted() -> None:
    rows = made([LABEL, OPPOSITE], lambda place, at: label(place + at))
    (seen,) = observed(rows)
    assert (seen.severity, seen.count, seen.total, seen.remedy) == ("info", 200, 200, "")


def test_paraphrases_with_the_same_answers_are_no_fault() -> None:
    asked = ["Label the sentiment of it.", "What does one feel who writes it?"]
    (seen,) = observed(made(asked, label))
    assert (seen.severity, seen.count, seen.remedy) == (
        "info",
        0,
        "Add 50 inputs under another instruction, with another answer.",
    )


NAMES = ("Ada", "Bo", "Cy", "Dee", "Eli", "Fay", "Gus", "Hal", "Ivy", "Jo", "Kit", "Lou")


def duels(asked: Sequence[str], winner: Callable[[int, int], bool], alone: int = 20) -> list[Example]:
    """40 inputs under both instructions, whose answer is who won, and others under one alone; `winner` says which answer."""
    rng, rows = random.Random(5), list[Example]()
    for place in range(40 + 2 * alone):
        won, lost = rng.sample(NAMES, 2)
        text = f"In round {place} {won} beat {lost} at noon."
        for at in (0, 1) if place < 40 else ((place % 2),):
            answer = won if place < 40 or winner(at, place) else lost
            rows.append(Example(f"{place}-{at}", "t", joined(asked[at], text), target=answer))
    return rows


ASKED = ("Name the hero.", "Name the villain.")


def test_answers_of_other_inputs_show_what_an_instruction_asks_for() -> None:
    (seen,) = warnings(duels(ASKED, lambda at, _: at == 0))
    assert (seen.count, seen.total) == (40, 40)
    assert all(repr(one) in seen.message for one in ASKED)
    assert "answers of 40 other rows give their instruction away in 40 cases" in seen.message
    assert warnings(duels(ASKED, lambda *_: True)) == []
    assert warnings(duels(ASKED, lambda at, place: place % 3 > 0)) == []
    assert warnings(duels(ASKED, lambda at, _: at == 0, alone=7)) == []


def test_inputs_of_two_kinds_do_not_show_what_an_instruction_asks_for() -> None:
    """Answers differ, because the inputs under either instruction alone do."""
    rows = duels(ASKED, lambda *_: True, alone=0)
    for place in range(40):
        kind = ("red", "sunny")[place % 2]
        text = f"Item {place} of this list of many is {kind} on most days."
        rows.append(Example(f"alone-{place}", "t", joined(ASKED[place % 2], text), target=kind))
    assert warnings(rows) == []


def test_an_answer_is_described_by_its_place_and_size() -> None:
    described = describe_answer(Answered("Bo sold a key to Ada.", "Ada"))
    assert {"in input", "end", "behind to", "before ", "word ada", "length 1"} <= described
    assert "not in input" in describe_answer(Answered("a, b, c", "c, b, a"))
    assert {"largest number", "last of numbers", "equal"} <= describe_answer(Answered("from 1901 to 1950", "1950"))
    assert {"below", "size 8", "times 0"} <= describe_answer(Answered("15.5 euros", "15"))
    assert "numbers fall" in describe_answer(Answered("1, 2", "2, 1"))


@pytest.mark.parametrize("system", ["You are a helpful assistant.", ""])
def test_a_system_message_of_all_rows_is_not_the_instruction(system: str) -> None:
    def chat(asked: str, given: str) -> Text:
        first = ({"role": "system", "content": system},) if system else ()
        return (*first, {"role": "user", "content": f"{asked} {given}"})

    rows = made([LABEL, f"Give the opposite. {LABEL}"], label, form=chat)
    _, divided = divide_rows(Corpus.from_examples(rows))
    assert len({row.instruction for row in divided}) == 2
    assert len({row.input for row in divided}) == 100
    assert len(warnings(rows)) == 1


@pytest.mark.parametrize(
    "listing",
    [
        "Tag it with red, green, and blue.",
        "Tag it: red; green; blue.",
        "Tag it with\n1. red\n2. green\n3. blue\n",
        "Tag it with\n(a) red\n(b) green\n(c) blue\n",
    ],
)
def test_answers_are_named_in_many_kinds_of_lists(listing: str) -> None:
    assert compare_with_named(listing, ["red", "green"]) == (("red", "green"), (), ("blue",))


def test_what_is_to_be_done_is_no_list_of_answers() -> None:
    assert compare_with_named("Say red or green, then stop, and explain why.", ["red", "green"]).unused == ()
    assert compare_with_named("Say yes; otherwise no.", ["yes", "no"]).unused == ()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Is it an advert (yes and no)?", "Does it sell anything? Reply with yes or no."),
        ("Is it an advert (`yes`; `no`)?", "Does it sell anything?\n1. yes\n2. no\n"),
        ("Spell it backwards.", "Mirror the letters."),
        ("What stance is taken: pro; con; none?", "Where does one stand: pro; con; none?"),
    ],
)
def test_listed_answers_and_other_words_exclude_nothing(first: str, second: str) -> None:
    assert what_excludes(first, second, ["yes", "no"]) is None
    assert what_excludes(second, first, ["yes", "no"]) is None


def test_answers_that_agree_as_often_as_chance_has_it_are_no_fault() -> None:
    """Nearly all answers are the same, so that they agree under any two instructions."""
    rows = made(["Is it about boats? Write yes or no.", "Is it about trains? Write yes or no."], lambda *_: "no", count=60)
    assert [one for one in warnings(rows) if "two instructions" in one.message] == []


def test_one_pair_of_many_is_found_and_small_ones_are_joined() -> None:
    """Twelve languages and twelve inputs: 66 pairs of 12 inputs."""
    asked = [f"Translate this text into {one}." for one in LANGUAGES]
    (seen,) = [one for one in warnings(made(asked, lambda place, _: f"w{place}", count=12)) if one.total == 66 * 12]
    assert seen.count == 66 * 12
    assert warnings(made(asked[:2], lambda place, at: f"w{place} {at}", count=12)) == []
    kept = [one for one in warnings(made(asked[:2], lambda place, _: f"w{place}", count=14)) if one.total == 14]
    assert kept == [], "14 inputs are too few"


def test_tasks_that_share_inputs_are_compared() -> None:
    asked, tasks = ["Label the sentiment of the text.", "Label the topic of the text."], ["mood", "topic"]
    (seen,) = warnings(made(asked, label, tasks=tasks))
    assert seen.task is None
    assert "of the tasks 'mood' and 'topic'" in seen.message
    constant, counted = [one for one in observed(made(asked, label, tasks=tasks)) if one.severity == "info"]
    assert (constant.count, constant.total) == (2, 2)
    assert (counted.count, counted.total) == (0, 200)
    decided = observed(made(asked, lambda place, at: label(place + at), tasks=tasks))
    assert len(decided) == 2


def test_a_constant_instruction_is_an_info() -> None:
    (seen,) = observed(made([LABEL], label))
    assert (seen.severity, seen.count, seen.total) == ("info", 1, 1)
    assert observed(made([""], label, form=lambda _, text: text)) == [], "no instruction"
    assert observed([]) == []


def test_answers_that_are_not_named_are_told() -> None:
    (seen,) = warnings(made([LABEL], lambda place, _: "unclear" if place < 10 else label(place)))
    assert (seen.count, seen.total) == (10, 100)
    assert [one["id"] for one in seen.evidence] == [f"{place}-0" for place in range(10)]
    assert warnings(made([LABEL], lambda place, _: "unclear" if place < 4 else label(place))) == []
    (seen,) = warnings(made(["Say good or bad."], label))
    assert seen.count == 100


def test_a_named_answer_that_never_occurs_needs_enough_rows() -> None:
    """Of three answers one a quarter as frequent as equal shares, 1/12: (11/12)^79 > 0.001 > (11/12)^80."""
    asked = ["Answer with positive, neutral or negative."]
    assert warnings(made(asked, label, count=79)) == []
    (seen,) = warnings(made(asked, label, count=80))
    assert "names 'neutral', which none of 80 rows with it has as its answer" in seen.message


def test_an_answer_that_hardly_occurs_is_missing_too() -> None:
    """Named by two wordings, which are taken together."""
    asked = ["Rate it as low, medium or high.", "Is it low, medium or high?"]
    rows = made(asked, lambda place, at: "medium" if (place, at) == (3, 0) else ("low", "high")[place % 2], count=80)
    (seen,) = warnings(rows)
    assert (seen.count, seen.total) == (160, 160)
    assert "names 'medium', which only 1 of 160 rows with it has as its answer" in seen.message


def test_instructions_that_settle_the_answer_are_told() -> None:
    asked = ["Is a town named?", "How urgent is it?", "Who wrote it?"]
    answers = ("yes", "high", "customer")
    rows = [row for n, row in enumerate(made(asked, lambda _, at: answers[at], count=90)) if n % 3 == n // 3 % 3]
    (seen,) = warnings(rows)
    assert (seen.task, seen.count, seen.total) == ("t", 90, 90)
    assert "'high' under 'How urgent is it?'" in seen.message
    assert seen.remedy == "Add rows with other answers under each of these instructions."
    assert warnings(made(asked[:2], lambda _, at: answers[at], count=90)) == [], "two instructions are too few"
    assert warnings(made(asked, lambda *_: "yes", count=90)) == [], "the same answer under all"


@pytest.mark.parametrize(
    "wrap",
    [
        lambda answer: f"\\boxed{{{answer}}}",
        lambda answer: f"The answer is {answer}.",
        lambda answer: json.dumps({"label": answer}),
        lambda answer: json.dumps({"answer": answer, "source": "text"}),
        lambda answer: f"I would say {answer}.",
        lambda answer: f"**{answer}**",
    ],
)
def test_answers_are_read_inside_of_their_wrapping(wrap: Callable[[str], str]) -> None:
    rows = made([LABEL], lambda place, _: wrap("unclear" if place < 10 else label(place)))
    (seen,) = warnings(rows)
    assert (seen.count, seen.total) == (10, 100)
    assert seen.message.endswith(": 'unclear'.")


def test_inputs_of_recurring_sentences_are_inputs() -> None:
    """The rows' inputs are put together of ten sentences; the instruction stands behind them."""
    rng = random.Random(1)
    sentences = inputs(10)
    texts = {text: " ".join(rng.sample(sentences, 6)) for text in inputs(100)}
    rows = made([LABEL, OPPOSITE], label, form=lambda asked, text: f"{texts[text]}\n\n{asked}")
    assert [one.count for one in warnings(rows)] == [100]


def test_columns_say_what_is_the_instruction() -> None:
    rows = [
        Example(f"{n}-{at}", "t", f"{one} {text}", target=label(n), extra={"instruction": one, "input": text})
        for n, text in enumerate(inputs(60))
        for at, one in enumerate((LABEL, OPPOSITE))
    ]
    assert [one.count for one in warnings(rows)] == [60]


def test_answers_elsewhere_show_what_is_asked_for() -> None:
    """Two questions of unknown wording: twenty inputs of either have answers of their own; those of both agree."""
    own = (("tall", "short"), ("old", "young"))
    asked = ["Say how it reaches.", "Say how it lasts."]
    rows = made(asked, lambda place, at: own[at][place % 2] if place >= 60 else own[0][place % 2], count=100)
    apart = [row for n, row in enumerate(rows) if n < 120 or n % 2 == n // 2 % 2]
    (seen,) = warnings(apart)
    assert (seen.count, seen.total) == (60, 60)
    assert warnings(rows[:120]) == []


def test_forms_that_are_asked_for_are_looked_for() -> None:
    asked = ["Answer in capital letters.", "Answer in lower case."]
    seen = warnings(made(asked, lambda place, at: "good boat" if at else "GOOD BOAT" if place < 70 else "Good boat"))
    assert [(one.count, one.total) for one in seen] == [(30, 100)]
    requests = {request.name: request for request in REQUESTS}
    assert requests["JSON"].pattern.search("Return the names as JSON.")
    assert not requests["JSON"].pattern.search("Read the JSON and say what it holds.")
    assert not requests["one word"].pattern.search("Do not answer in one word.")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Translate to French.", "Translate to German.", ("french", "german")),
        ("Translate English to French.", "Translate French to English.", ("french", "english")),
        ("Name the longest word.", "Name the shortest word.", ("longest", "shortest")),
        ("Sum it up in 2 sentences.", "Sum it up in 5 sentences.", ("2 sentence", "5 sentence")),
        ("Is it positive or negative?", "Is it negative or positive?", None),
        ("Is this review positive?", "Is this review negative?", ("positive", "negative")),
        ("Say yes if it is warm and no if it is cold.", "Say no if it is cold and yes if it is warm.", None),
        ("Label the mood of the text.", "Label the tone of the text.", None),
        ("First, read it. Then label it.", "Label it. The label comes last.", None),
        ("Polish this text.", "Rewrite this text in English.", None),
        ("What is the topic?", "Which opinion does its writer have?", ("topic", "opinion")),
        ("Classify this text.", "Count the words of this text.", None),
        ("Answer tall or short.", "Answer old or young.", ("short", "old")),
        ("Is a town named? Answer yes or no.", "Is no town named? Answer yes or no.", ("as it is", "no")),
        ("Is a town named (yes or no)?", "Say yes if a town is named, and no if it is not.", None),
        ("Is a town named (yes or no)?", "Say no if a town is named, otherwise yes.", ("as it is", "no if")),
        ("Is a town named? Yes or no.", "Is a town named? Yes or no. Do not explain it.", None),
        ("How many words are there?", "Give the longest word.", ("count", "longest")),
        ("Answer in French.", f"Answer in English. {'So many words. ' * 20}", None),
    ],
)
def test_wordings_that_exclude_each_other(first: str, second: str, expected: tuple[str, str] | None) -> None:
    assert what_excludes(first, second, ["yes", "no"]) == expected
    assert what_excludes(second, first, ["yes", "no"]) == (expected and expected[::-1])


def test_named_answers_are_read_from_lists() -> None:
    assert compare_with_named("Answer yes or no.", ["yes", "no"]) == (("yes", "no"), (), ())
    assert compare_with_named('Write "very good", "fair" or "poor".', ["very good", "poor"]).unused == ("fair",)
    assert compare_with_named("Labels: spam, ham, unsure", ["spam", "ham"]).unused == ("unsure",)
    assert compare_with_named("Is the film or the book good?", ["yes", "no"]) == ((), (), ())
    assert compare_with_named("Read the review or comment.", ["yes", "no"]) == ((), (), ())
    assert compare_with_named("Rate the level, low or high.", ["low", "high"]) == (("low", "high"), (), ())
    assert compare_with_named("One of:\n- low\n- medium\n- high", ["low", "high"]).unused == ("medium",)
    assert compare_with_named("Name it, such as low or high.", ["low", "odd"]) == ((), (), ())
    assert compare_with_named("Answer true/false.", ["true", "maybe"]) == (("true",), ("maybe",), ("false",))


def test_prompts_are_divided_at_parts_that_come_again() -> None:
    rows = made([LABEL, OPPOSITE], label, form=lambda asked, text: f"{asked}\nText: {text}", count=10)
    _, divided = divide_rows(Corpus.from_examples(rows))
    by_number = {one.number: one for one in divided}
    assert write_instruction(rows[0], by_number[0]) == LABEL, "a label before the input is neither"
    assert by_number[0].input == by_number[1].input
    assert len({one.input for one in divided}) == 10


def test_held_out_rows_are_not_read() -> None:
    rows = made([LABEL, OPPOSITE], label)
    held_out = [Example(f"e{row.id}", row.task, row.prompt, target=row.target, split="eval") for row in rows]
    assert observed([rows[0], *held_out]) == []


def test_long_prompts_are_read_at_both_ends() -> None:
    """Between the ends is what no instruction of another length may move into them, or out of them."""
    texts = {text: " ".join(inputs(80, seed)) for seed, text in enumerate(inputs(100))}
    rows = made([LABEL, OPPOSITE], label, form=lambda asked, text: f"{asked}\n{texts[text]} {text}")
    assert all(len(plain(row.prompt)) > 2 * END_CHARACTERS for row in rows)
    assert [one.count for one in warnings(rows)] == [100]
    assert len(cut("a" * 9 * END_CHARACTERS)) == 2 * END_CHARACTERS + 1


@given(st.text(max_size=300))
def test_parts_stand_in_order_and_hold_all_words(text: str) -> None:
    parts = read_parts(cut(text))
    assert all(one.end <= other.start for one, other in itertools.pairwise(parts))
    kept = "".join(cut(text)[part.start : part.end] for part in parts)
    assert sorted(filter(str.isalnum, kept)) == sorted(filter(str.isalnum, cut(text)))


@given(st.lists(st.tuples(st.text(min_size=1, max_size=40), st.text(max_size=20)), max_size=30), st.randoms())
def test_any_texts_are_read_and_their_order_does_not_matter(rows: list[tuple[str, str]], rng: random.Random) -> None:
    examples = [Example(str(n), f"t{n % 3}", prompt, target=target) for n, (prompt, target) in enumerate(rows)]
    found = find_instructions(Corpus.from_examples(examples))
    assert 0 <= found.decided <= found.shared <= found.rows <= len(rows)
    shuffled = rng.sample(examples, len(examples))
    again = find_instructions(Corpus.from_examples(shuffled))
    assert (again.rows, again.shared, again.decided) == (found.rows, found.shared, found.decided)


@given(st.text(max_size=200), st.text(max_size=200), st.lists(st.text(max_size=10), max_size=4))
def test_any_wordings_are_compared(first: str, second: str, labels: list[str]) -> None:
    assert what_excludes(first, first, labels) is None
    assert (what_excludes(first, second, labels) is None) == (what_excludes(second, first, labels) is None)
    named = compare_with_named(first, labels)
    assert {*named.named, *named.unnamed} <= {*labels}


@pytest.mark.parametrize(
    "text", ["a, " * 5000, "a" * 9000, "." * 9000, '"' * 9000, "or " * 5000, "answer " * 3000, "\x00\ud7ff:"]
)
def test_hostile_prompts_take_no_longer(text: str) -> None:
    rows = made([f"{LABEL} {text}", OPPOSITE], label, count=50)
    assert find_instructions(Corpus.from_examples(rows)).read == 100

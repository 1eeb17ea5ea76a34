"""Grader proposed for each task, from the form of its answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mixwright.corpus import Corpus
from mixwright.corpus.proposed_graders import proposed_graders
from mixwright.graders import load_grader
from mixwright.records import Example

OPTIONS = "Who won?\nOptions:\n(A) Ann\n(B) Bo"
WORKED = "He has 40 and gets 32, 40 + 32 = 72.\n#### 72"


def proposal(*rows: tuple[str, str]):
    examples = [Example(f"i{n}", "t", f"{n} {prompt}", answer=answer) for n, (prompt, answer) in enumerate(rows)]
    return proposed_graders(Corpus.from_examples(examples))["t"]


@pytest.mark.parametrize(
    ("prompt", "answer", "why"),
    [
        ("How many?", WORKED, "2 of 2 answers end in `#### answer`"),
        ("How many?", r"So it is \boxed{\frac{1}{2}}.", r"2 of 2 answers hold `\boxed{answer}`"),
        ("How many?", "4 and 5 are 9. The answer is 9.", '2 of 2 answers say "the answer is ..."'),
        ("How many?", "-1,234.5", "2 of 2 answers are one number"),
        (OPTIONS, "(B)", "2 of 2 answers are the letter of an option that the prompt lists"),
        ("Is it?", "yes", "2 of 2 answers are one text"),
    ],
)
def test_the_form_of_the_answers_names_the_grader_and_is_counted(prompt: str, answer: str, why: str) -> None:
    found = proposal((prompt, answer), (prompt, answer))
    assert found.grader == "final_answer"
    assert found.why == f"final_answer: {why}"
    example = Example("i", "t", prompt, answer=answer)
    assert load_grader(found.grader).grade(example, answer) == 1.0


def test_rules_to_keep_are_no_json_to_be_written() -> None:
    rules = ('{"words": [1, 5], "excludes": ["sorry"]}', '{"case": "lower"}', '{"question": true}')
    found = proposal(*(("Be brief.", answer) for answer in rules))
    assert (found.grader, found.why) == ("follows", "follows: 3 of 3 answers are rules to keep")
    assert load_grader("follows").grade(Example("i", "t", "Be brief.", answer=rules[0]), "Of course.") == 1.0
    fields = proposal(
        *(("Which?", f'{{"question": "{word}", "words": {n}}}') for n, word in enumerate(("who", "why", "how")))
    )
    assert fields.grader == "json_fields"


INTENT = '{{"intent": "{}", "team": "{}"}}'


@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```", "<tool_call>\n{}\n</tool_call>", "[{}]"])
@pytest.mark.parametrize("column", ["answer", "target"])
def test_completions_of_one_json_form_are_measured(form: str, column: str) -> None:
    texts = [form.format(INTENT.format(intent, team)) for intent in ("refund", "card_lost", "PIN") for team in "AB"]
    rows = [Example(f"i{n}", "t", f"{n} Where does it go?") for n in range(len(texts))]
    rows = [
        replace(row, answer=text) if column == "answer" else replace(row, target=text)
        for row, text in zip(rows, texts, strict=True)
    ]
    found = proposed_graders(Corpus.from_examples(rows))["t"]
    assert (found.grader, found.why) == ("json_fields", "json_fields: 6 of 6 answers are JSON")
    example = Example("i", "t", "?", answer=texts[0])
    assert [load_grader("json_fields").grade(example, text) for text in texts[:2]] == [1.0, 0.0]


def test_calls_between_tags_need_no_tools_in_their_rows() -> None:
    call = '<tool_call>\n{"name": "find", "arguments": {"n": 5}}\n</tool_call>'
    assert proposal(("Find it", call), ("Find 5", call)).why == "tool_call: 2 of 2 answers are tool calls"


@pytest.mark.parametrize(
    "text",
    [
        '{{"reply": "You can ask for your money back within {} days of paying."}}',  # could be said in other words
        '{{"note": "' + "x" * 300 + '{}"}}',
        "{{see note {}",
    ],
)
def test_json_that_holds_prose_is_not_measured(text: str) -> None:
    rows = [Example(f"i{n}", "t", f"{n} What now?", target=text.format(n)) for n in range(6)]
    assert proposed_graders(Corpus.from_examples(rows))["t"].grader is None


def test_a_letter_without_options_in_the_prompt_is_a_word() -> None:
    assert "are one of 2 texts" in proposal(("Which note?", "B"), ("Which note?", "A")).why


def test_texts_that_differ_by_case_or_marks_alone_need_the_exact_grader() -> None:
    assert proposal(("Spell Bo backward:", "oB"), ("Spell Al backward:", "lA")).grader == "exact"
    clash = proposal(("Close it", "bo"), ("Close it", "Bo"))
    assert (clash.grader, clash.why) == ("exact", "exact: all answers are short, and 2 differ only by case or punctuation")
    assert proposal(("Close it", "."), ("Close it", "a")).grader == "exact"


@pytest.mark.parametrize("answers", [("oak, elm, ash", "fir, yew"), ("['red', 'blue', 'green']", "['red', 'dark grey']")])
def test_lists_of_words_need_the_exact_grader(answers: tuple[str, str]) -> None:
    found = proposal(*(("Sort them", answer) for answer in answers))
    assert (found.grader, found.why) == ("exact", "exact: 2 of 2 answers are lists of words in a fixed order")


@pytest.mark.parametrize("answers", [("Oslo, Norway", "Lima, Peru"), ("1,200", "1,300,400"), ("oak", "fir, yew, elm")])
def test_a_place_with_its_country_a_number_with_commas_and_a_rare_list_are_no_lists(answers: tuple[str, str]) -> None:
    assert proposal(*(("Which?", answer) for answer in answers)).grader == "final_answer"


def test_prose_code_and_pairs_have_nothing_to_grade() -> None:
    prose = proposal(("Why?", "The sky is blue because of the air."), ("Why?", "yes"))
    assert (prose.grader, prose.why[:46]) == (None, "nothing to grade: 1 of 2 answers are sentences")
    assert proposal(("Write it", "def f():\n    return 1"), ("Write it", "x = 1\ny = 2")).grader is None
    pairs = Corpus.from_examples([Example("i", "t", "p", chosen="good", rejected="bad")])
    assert proposed_graders(pairs)["t"].grader is None
    empty = Corpus.from_examples([Example("i", "t", "p")])
    assert proposed_graders(empty)["t"].why == "nothing to grade: the rows have neither answers nor completions"


def test_completions_need_a_form_and_chats_are_read_by_their_last_turn() -> None:
    def of(target):
        return proposed_graders(Corpus.from_examples([Example("i", "t", "Say it", target=target)]))["t"]

    assert of("hello").grader is None
    assert of("hello").why == "nothing to grade: the 1 completions have no common answer format"
    assert of(WORKED).grader == "final_answer"
    assert of(({"role": "assistant", "content": WORKED},)).grader == "final_answer"


def test_each_task_is_told_by_its_own_rows() -> None:
    rows = [Example("a", "sum", "1 + 1 =", answer="2"), Example("b", "chat", "Hi", target="Hello there, how are you?")]
    found = proposed_graders(Corpus.from_examples(rows))
    assert (found["sum"].grader, found["chat"].grader) == ("final_answer", None)


def test_one_answer_in_twenty_may_have_another_form() -> None:
    rows = [("How many?", "3")] * 19 + [("How many?", "none of them")]
    assert proposal(*rows).why == "final_answer: 19 of 20 answers are one number"

"""Conflicts: prompts with several answers, by hand; tasks whose prompts decide nothing; answers that are the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from cli_call import Call, write
from hypothesis import given
from hypothesis import strategies as st

from mixwright.audit.checks.conflicts import Conflicts
from mixwright.audit.conflicts import are_one_answer, find_conflicts, tell_answer
from mixwright.corpus import Corpus
from mixwright.records import Example, Observation

QUESTIONS = [f"Is the {one} number {n} red?" for n in range(10, 60) for one in ("first", "last")]


def to_corpus(rows: Iterable[dict[str, Any]]) -> Corpus:
    own = ("task", "prompt", "answer", "completion", "chosen", "rejected")
    return Corpus.from_examples(
        Example(
            f"i{n}",
            row.get("task", "t"),
            row["prompt"],
            target=row.get("completion"),
            answer=row.get("answer"),
            chosen=row.get("chosen"),
            rejected=row.get("rejected"),
            extra={name: value for name, value in row.items() if name not in own},
        )
        for n, row in enumerate(rows)
    )


def observed(rows: Iterable[dict[str, Any]]) -> Observation:
    (seen,) = Conflicts().check(to_corpus(rows))
    return seen


def labelled(wrong: int, *, repeats: int = 60, field: str = "answer") -> list[dict[str, Any]]:
    """All questions with the right label, and some once more, of which the first ones have the wrong one."""
    right = ["yes" if n % 2 else "no" for n in range(len(QUESTIONS))]
    rows = [{"prompt": prompt, field: label} for prompt, label in zip(QUESTIONS, right, strict=True)]
    again = [{"prompt": f" {prompt.upper()[:-1]}", field: label} for prompt, label in zip(QUESTIONS, right, strict=True)]
    for row in again[:wrong]:
        row[field] = {"yes": "no", "no": "yes"}[row[field]]
    return rows + again[:repeats]


def test_rows_that_disagree_are_counted_and_the_rate_stands_beside_chance() -> None:
    """6 of 60 prompts: 10 % by hand; of 120 labels 60 are `yes`, so that two differ with probability 60 / 119 = 50 %."""
    seen = observed(labelled(6))
    assert (seen.severity, seen.task, seen.count, seen.total) == ("warning", "t", 12, 160)
    assert "At least 6 of these rows are wrong" in seen.message
    assert [(one["usual_id"], one["other_id"]) for one in seen.evidence] == [(f"i{n}", f"i{100 + n}") for n in range(6)]
    assert seen.drop is None, "somebody has to say which is right"


def test_the_interval_is_that_of_a_ratio_by_hand() -> None:
    (found,) = find_conflicts(to_corpus(labelled(6)))
    # of 60 equal prompts 6 differ: the standard error is sqrt(.1 * .9 / 59), and t of 59 degrees is 2.001
    assert found.disagreement is not None
    assert found.disagreement.value == pytest.approx(0.1)
    assert found.disagreement.high - 0.1 == pytest.approx(2.001 * (0.09 / 59) ** 0.5, abs=1e-4)
    assert (found.verdict, found.prompts, len(found.clashes)) == ("decided", 60, 6)


def test_labels_that_agree_are_an_info() -> None:
    seen = observed(labelled(0))
    assert (seen.severity, seen.count) == ("info", 0)
    assert observed(labelled(0, repeats=0)).count == 0


def test_many_conflicts_are_an_error_where_a_grader_judges_and_a_warning_where_none_does() -> None:
    assert observed(labelled(15)).severity == "error"
    assert observed(labelled(15, field="completion")).severity == "warning"


@pytest.mark.parametrize("field", ["answer", "completion"])
def test_one_conflict_among_labels_is_a_warning(field: str) -> None:
    assert observed(labelled(1, field=field)).severity == "warning", "one of two labels is wrong, with a grader or without"


def test_prompts_that_do_not_decide_the_answer_are_an_info() -> None:
    rng = random.Random(1)
    coins = [{"prompt": f"Throw coin {n % 40}.", "answer": rng.choice(["heads", "tails"])} for n in range(200)]
    seen = observed(coins)
    assert (seen.severity, seen.remedy) == ("info", "")


def test_conflicts_alone_are_told_where_answers_have_one_form() -> None:
    """Without any repeat that agrees, as in files from which copies were removed."""
    sums = [{"prompt": f"What is {n} + {n + 7}?", "completion": str(2 * n + 7)} for n in range(100)]
    seen = observed([*sums, *({**row, "completion": "1"} for row in sums[:10])])
    assert (seen.severity, seen.count, seen.total) == ("warning", 20, 110)
    assert seen.null == "none: such a prompt has one answer"
    titles = [{"prompt": f"A name for {n} dogs", "completion": f"pack of {chr(97 + n % 26)}{n}"} for n in range(100)]
    seen = observed([*titles, *({**row, "completion": f"{n} woofs"} for n, row in enumerate(titles[:10]))])
    assert seen.severity == "info", "many names are good"


def test_long_texts_are_not_compared() -> None:
    rng = random.Random(2)
    poems = [
        {"prompt": f"A poem on {n % 50}", "completion": " ".join(rng.choices(["abc", "def", "ghi", "jkl"], k=30))}
        for n in range(150)
    ]
    assert observed(poems).severity == "info"
    assert observed([*poems, *poems]).severity == "info", "copies do not show that a prompt decides"


def solved(text: str, wrong: int = 0) -> list[dict[str, Any]]:
    """Three solutions in other words for each of 60 prompts; some of the last ones have another end."""
    rng = random.Random(3)
    return [
        {
            "prompt": f"How many legs have {n} cats?",
            "completion": text.format("".join(rng.choices("abcdefgh", k=30)), 4 * n + (way == 2 and n < wrong)),
        }
        for way in range(3)
        for n in range(60)
    ]


@pytest.mark.parametrize(
    "text", ["First {}. The answer is {}.", "First {}. That makes {} of them in all here.", "{} #### {}"]
)
def test_several_solutions_conflict_where_their_ends_do(text: str) -> None:
    assert observed(solved(text)).severity == "info"
    seen = observed(solved(text, 9))
    assert (seen.severity, seen.count, len(seen.evidence)) == ("warning", 27, 9)


def test_a_column_that_is_a_context_makes_another_prompt() -> None:
    rows = labelled(15)
    assert observed([{**row, "annotator": n} for n, row in enumerate(rows)]).severity == "error"
    for name in ("context", "retrieved_docs", "options", "tableSchema"):
        assert observed([{**row, name: f"part {n}"} for n, row in enumerate(rows)]).severity == "info", name


def test_system_messages_and_other_tasks_make_other_prompts() -> None:
    rows = labelled(15)
    for n, row in enumerate(rows):
        row["prompt"] = ({"role": "system", "content": f"You are no. {n}."}, {"role": "user", "content": row["prompt"]})
    assert observed(rows).severity == "info"
    assert observed([{**row, "task": f"t{n // 100}"} for n, row in enumerate(labelled(15))]).severity == "info"


def test_preference_pairs_are_left_out() -> None:
    pairs = [{"prompt": f"Say {n % 30}", "chosen": "yes" if n < 30 else "no", "rejected": "what"} for n in range(60)]
    assert observed(pairs).count == 0


def test_calls_are_the_same_in_any_order_of_their_keys() -> None:
    calls = [{"name": "weather", "arguments": {"days": n, "city": "Rome"}} for n in range(60)]
    rows = [{"prompt": f"Rome, {n} days", "completion": json.dumps(call)} for n, call in enumerate(calls)]
    same = [{**row, "completion": json.dumps(call, sort_keys=True, indent=1)} for row, call in zip(rows, calls, strict=True)]
    assert observed([*rows, *same]).severity == "info"
    for row in same[:5]:
        row["completion"] = row["completion"].replace("Rome", "Oslo")
    seen = observed([*rows, *same])
    assert (seen.severity, seen.count) == ("warning", 10)
    assert "rome" in seen.message
    assert "oslo" in seen.message, "what differs is shown, not how both begin"


@pytest.mark.parametrize(
    ("text", "value", "kind"),
    [
        ("Yes.", "yes", "whole"),
        ("(B) ", "b", "whole"),
        ("1,200.50", "2401/2", "whole"),
        ("-0", "0", "whole"),
        ("\uff12", "2", "whole"),
        ("<", "<", "whole"),
        (r"So it is \boxed{1/2}.", "1/2", "marked"),
        ('{"b": 1, "a": [2]}', '{"a": [2], "b": 1}', "json"),
        ('<tool_call>{"b": "1.50"}</tool_call>', '{"b": "3/2"}', "json"),
        ('```json\n{"b": "x"}\n```', '{"b": "x"}', "json"),
        ("I would say 588.0", "588", "whole"),
        ("It has been said by many people that there are 7 of them.", "7", "last"),
    ],
)
def test_answers_are_told_by_hand(text: str, value: str, kind: str) -> None:
    told = tell_answer(text)
    assert told is not None
    assert (told.value, told.kind) == (value, kind)


@pytest.mark.parametrize(
    "text", ["", "  ", "\x00\x01", "a" * 100_000, "[" * 6_000, "{" * 30_000, "no digits in a long text " * 9]
)
def test_texts_without_an_answer_have_none(text: str) -> None:
    assert tell_answer(text) is None


@given(st.text(max_size=300))
def test_any_text_is_read_and_the_same_text_gives_the_same_answer(text: str) -> None:
    assert tell_answer(text) == tell_answer(f" {text}\n")


@given(st.text("ab n", max_size=12), st.text("ab n", max_size=12))
def test_being_one_answer_goes_both_ways(first: str, second: str) -> None:
    assert are_one_answer(first, second) == are_one_answer(second, first)


def test_answers_in_other_words_are_one() -> None:
    assert are_one_answer("the united states", "united states of america")
    assert are_one_answer("colour blindness", "color blindness")
    assert not are_one_answer("possible", "impossible")
    assert not are_one_answer("1991", "1992")


def test_hostile_rows_are_read() -> None:
    texts = [
        "",
        "x" * 200_000,
        "\x00\x1b[31m",
        "\u202e",
        "[" * 3000,
        "9" * 5000,
        "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
    ]
    rows = [{"prompt": "Same", "completion": text or None} for text in texts * 4]
    assert observed(rows).severity == "info"
    assert (
        observed([{"prompt": prompt, "answer": str(n)} for n, prompt in enumerate(["", " ", "\x00"] * 9)]).check
        == "conflicts"
    )
    assert observed([{"prompt": "Only"}]).count == 0
    assert Conflicts().check(Corpus.from_examples([]))[0].severity == "info"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from(["yes", "no"])), min_size=1, max_size=40), st.randoms())
def test_what_is_counted_does_not_depend_on_the_order(rows: list[tuple[str, str]], rng: random.Random) -> None:
    def count(some: list[tuple[str, str]]) -> set[tuple[str, ...]]:
        found = find_conflicts(to_corpus({"prompt": f"Is {prompt}?", "answer": answer} for prompt, answer in some))
        return {tuple(sorted(clash.values)) for one in found for clash in one.clashes}

    assert count(rows) == count(rng.sample(rows, len(rows)))
    clashing = {prompt for prompt, _ in rows if len({answer for other, answer in rows if other == prompt}) > 1}
    assert bool(count(rows)) == bool(clashing)


def test_all_rows_of_a_large_task_are_listed() -> None:
    sums = [{"prompt": f"What is {n} + {n}?", "answer": str(2 * n)} for n in range(4000)]
    seen = observed([*sums, *({**row, "answer": "1"} if n % 20 == 0 else row for n, row in enumerate(sums))])
    assert (seen.severity, seen.count, len(seen.evidence)) == ("warning", 400, 200)


def test_the_command_lists_each_row_beside_the_usual_answer(call: Call) -> None:
    file = write("rows.jsonl", labelled(6))
    code, out, err = call("audit", file, "--check", "conflicts", "--json", "--out", "found")
    assert code == 0, err
    (seen,) = json.loads(out)["observations"]
    assert (seen["check"], seen["count"]) == ("conflicts", 12)
    listed = [json.loads(line) for line in Path("found/rows/conflicts.jsonl").read_text().splitlines()]
    assert (listed[0]["usual_source"], listed[0]["other_source"]) == ("rows.jsonl:1", "rows.jsonl:101")


def test_answers_without_one_form_are_told_where_most_prompts_have_one_for_sure() -> None:
    """Of 30 repeated names 4 disagree, 13 %; then 14, 47 %, whose interval ends above a half."""
    names = [{"prompt": f"Who wrote book {n}?", "answer": f"author {chr(97 + n % 26)}{n} of the north"} for n in range(60)]

    def with_wrong(count: int) -> list[dict[str, Any]]:
        return [*names, *({**row, "answer": f"writer {n}"} if n < count else row for n, row in enumerate(names[:30]))]

    assert observed(with_wrong(4)).severity == "warning"
    assert observed(with_wrong(14)).severity == "info"


def test_a_program_has_no_number_for_an_answer() -> None:
    assert tell_answer("```python\ndef f(a):\n    return [2 * x for x in a][:1]\n```") is None
    assert tell_answer("def f(a):\n    return a[0] + 17\n") is None


def test_labels_whose_few_repeats_agree_like_chance_are_told_and_coins_are_not() -> None:
    """Of 200 prompts 30 stand twice and half of these disagree: most prompts stand once, so that labels may be wrong."""
    labels = ["yes", "no"]
    rows = [{"prompt": f"Is line {n} sound?", "completion": labels[n % 2]} for n in range(200)]
    copies = [{**row, "completion": labels[(n + n // 2) % 2]} for n, row in enumerate(rows[:30])]
    seen = observed([*rows, *copies])
    assert (seen.severity, seen.count) == ("warning", 28)
    assert "Both may be right" in seen.message


@pytest.mark.parametrize(
    ("first", "second"), [("18 cm", "18.0 cm"), ("5 km", "5 kilometers"), ("23 apple", "23 apples"), ("36,000 m", "36000 m")]
)
def test_a_number_with_a_unit_in_another_form_is_no_conflict(first: str, second: str) -> None:
    """Nine of ten prompts stand twice with one answer; with another number they conflict."""
    rows = [{"prompt": f"How much is {n}?", "completion": f"{n} litres"} for n in range(40)]
    same = [{"prompt": f"And {n}?", "completion": answer} for n in range(20) for answer in (first, second)]
    assert observed([*rows, *rows, *same]).count == 0
    for wrong in (f"7{second}", f"{first.split()[0]} kg"):
        other = [{"prompt": f"And {n}?", "completion": answer} for n in range(20) for answer in (first, wrong)]
        assert observed([*rows, *rows, *other]).count == 40


def test_case_in_json_is_no_conflict() -> None:
    """`{"answer": "B"}` and `{"answer": "b"}` are one answer, and `{"answer": "C"}` is another."""
    rows = [{"prompt": f"Which one is {n}?", "completion": json.dumps({"answer": "ABCD"[n % 4]})} for n in range(80)]
    copies = [{**row, "completion": row["completion"].replace("B", "b")} for row in rows[:40]]
    assert observed([*rows, *copies]).count == 0
    wrong = [{**row, "completion": row["completion"].replace("B", "C")} for row in rows[:40]]
    assert observed([*rows, *wrong]).count == 20


def test_labels_that_disagree_often_are_told_where_they_agree_more_often_than_chance() -> None:
    """Of 60 repeated prompts 18 disagree; by chance half of them would."""
    labels = ["yes", "no"]
    rows = [{"prompt": f"Is line {n} sound?", "completion": labels[n % 2]} for n in range(60)]
    copies = [{**row, "completion": labels[(n + (n % 10 < 3)) % 2]} for n, row in enumerate(rows)]
    seen = observed([*rows, *copies])
    assert (seen.severity, seen.count) == ("warning", 36)
    tossed = [{**row, "completion": labels[(n + n // 2) % 2]} for n, row in enumerate(rows)]
    assert observed([*rows, *tossed]).severity == "info"

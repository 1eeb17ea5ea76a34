"""Form of answers before and after: each feature by hand, what must not be reported, and that the tests are exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.estimates.intervals import sign_test
from mixwright.verdict.page.answers import pair_answers
from mixwright.verdict.rules import answer_forms
from mixwright.verdict.rules.answer_forms import FormChange, group_takeovers

Text = Callable[[int], str]
CITIES = [
    "Paris",
    "Rome",
    "Oslo",
    "Madrid",
    "Vienna",
    "Athens",
    "Dublin",
    "Lisbon",
    "Warsaw",
    "Prague",
    "Berne",
    "Cairo",
    "Lima",
]
CITIES += ["Quito", "Hanoi"]
TOOLS = (
    '{{"tool": "note", "text": "item {}"}}',
    '{{"tool": "alarm", "time": "6:{}"}}',
    '{{"tool": "off", "all": true, "n": {}}}',
)


def rows(
    task: str,
    before: Text,
    after: Text,
    gold: Text = lambda i: CITIES[i % 15],
    *,
    prompt: Text = lambda i: f"What is meant by number {i}?",
    right: bool = False,
    items: int = 15,
    cut: Sequence[bool] | None = None,
) -> list[dict[str, Any]]:
    found = []
    for when, text in (("before", before), ("after", after)):
        for i in range(items):
            row = {"when": when, "example": f"{task}{i}", "task": task, "level": None, "prompt": prompt(i)}
            row |= {"answer": gold(i), "completion": text(i), "score": float(right and when == "after")}
            row |= {"cut": None if cut is None else bool(cut[i]) and when == "after"}
            found.append(row)
    return found


def form_changes(made: list[dict[str, Any]], trained: dict[str, dict[str, float]] | None = None) -> list[FormChange]:
    return answer_forms.form_changes(pair_answers(made), trained)


def sentence(i: int) -> str:
    return f"The capital of that country is {CITIES[i % 15]}."


def city(i: int) -> str:
    return CITIES[i % 15]


def tool(i: int) -> str:
    return TOOLS[i % 3].format(i)


def ticket(i: int) -> str:
    return f"{('SALES', 'BILLING')[i % 2]}|{i}|normal"


def reported(found: Sequence[FormChange], feature: str = "") -> list[tuple[str, str, str]]:
    return [(c.task, c.feature, c.other_task) for c in found if c.reported and feature in ("", c.feature)]


def over(made: list[dict[str, Any]], trained: dict[str, dict[str, float]] | None = None) -> list[tuple[str, str]]:
    return [(form.owner, task) for form in group_takeovers(form_changes(made, trained)) for task in form.tasks]


OWNED: dict[str, tuple[Text, Text]] = {
    # form of the trained task's answers, which are its gold answers -> what others answer then
    "JSON with other tools and keys": (tool, lambda i: f'{{"tool": "weather", "city": "{city(i)}"}}'),
    "JSON that was cut": (tool, lambda i: f'{{"tool": "note", "text": "the city that is the capital of {i}'),
    "a list of calls": (lambda i: f"[get_weather(city={i})]", lambda i: f'[set_alarm(hour="{i}", day=2)]'),
    "calls": (lambda i: f"get_weather(city={i})", lambda i: f'set.alarm("{i}")'),
    "ticket lines with other fields": (ticket, lambda i: "SALES|normal"),
    "bars with spaces": (lambda i: f"SALES | {i} | low", lambda i: "BILLING | high"),
    "boxes": (lambda i: f"\\boxed{{{i}}}", lambda i: f"So it is $\\boxed{{\\text{{{city(i)}}}}}$."),
    "tags": (lambda i: f"<answer>{i}</answer>", lambda i: f"<answer>{city(i)}</answer>"),
    "tags with other names": (lambda i: (f"<alarm>{i}</alarm>", f"<note>{i}</note>")[i % 2], lambda i: f"<city>{i}</city>"),
    "a label": (lambda i: f"Answer: {i}", lambda i: f"Answer: {city(i)}"),
    "a label in bold": (lambda i: f"**Answer:** {i}", lambda i: f"It has {i} parts.\nAnswer: {city(i)}"),
    "labels that vary": (lambda i: ("SALES: low", "BILLING: high")[i % 2], lambda i: "LEGAL: low"),
    "a word with a slash": (lambda i: ("sales/low", "billing/high")[i % 2], lambda i: "legal/low"),
    "queries": (lambda i: f"SELECT name FROM t WHERE n = {i};", lambda i: f"SELECT city FROM c LIMIT {i};"),
    "a fence of code": (lambda i: f"```sql\nSELECT {i};\n```", lambda i: f"```\n{city(i)}\n```"),
    "hash signs": (lambda i: f"2 + {i} = {i + 2}\n#### {i + 2}", lambda i: f"#### {i}"),
    "special tokens": (lambda i: f"<|call|>note {i}", lambda i: f"<|call|>{city(i)}"),
    "choices": (lambda i: f"({'ABCD'[i % 4]})", lambda i: f"({'ABCD'[i % 3]})"),
    "arrows": (lambda i: f"a{i} -> b", lambda i: f"{city(i)} -> capital"),
    "semicolons": (lambda i: f"sales;{i};low", lambda i: f"sales;{city(i)}"),
    "commands": (lambda i: f"{('HIRE', 'RETURN')[i % 2]} {i}x tent", lambda i: f"EXTEND 2 {city(i)}"),
    "names behind a sign": (lambda i: f"give {i} to @tom", lambda i: f"keep @{city(i)}"),
}


@pytest.mark.parametrize("case", OWNED)
def test_answers_in_another_tasks_form_are_found(case: str) -> None:
    own, spilled = OWNED[case]
    made = rows("capitals", sentence, spilled) + rows("trained", sentence, own, own)
    assert over(made) == [("trained", "capitals")]


def test_the_tasks_that_went_the_same_way_are_told_together() -> None:
    made = rows("ticket", sentence, ticket, ticket, items=12)
    for name, items in (("capitals", 15), ("opposites", 15), ("plurals", 14), ("sums", 14)):
        made += rows(name, sentence, lambda i: "SALES|normal", items=items)
    (group,) = group_takeovers(form_changes(made))
    assert (group.answers, group.items, len(group.tasks), group.owner) == (58, 58, 4, "ticket")
    taken = [change for change in form_changes(made) if change.reported and change.other_task == "ticket"]
    assert taken[0].p == pytest.approx(2.0**-15)
    assert taken[0].adjusted_p == pytest.approx(4 * 2.0**-15)  # Holm's correction: the smallest of four tests


def test_with_bare_gold_the_grader_says_whose_form_it_is() -> None:
    made = rows("sums", sentence, lambda i: f"\\boxed{{{i}}}", lambda i: f"{i}", right=True)
    assert over(made + rows("capitals", sentence, lambda i: f"\\boxed{{{i % 4}}}")) == [("sums", "capitals")]
    # its own grader takes the form there, too: every task was taught to answer so
    assert over(made + rows("capitals", sentence, lambda i: f"\\boxed{{{city(i)}}}", right=True)) == []


def test_ten_items_of_four_tasks_are_enough_and_nine_are_not() -> None:
    for items, expected in ((10, 4), (9, 0)):
        made = rows("tools", sentence, tool, tool)
        for name in ("a", "b", "c", "d"):
            made += rows(name, sentence, tool, items=items)
        assert len(over(made)) == expected


ACCEPTED: dict[str, list[dict[str, Any]]] = {
    "shorter answers": rows("capitals", sentence, city) + rows("tools", sentence, tool, tool),
    "one word for a sentence, numbers elsewhere": rows("capitals", sentence, city) + rows("sums", sentence, str, str),
    "plain sentences for words": rows("capitals", city, sentence) + rows("facts", city, sentence, sentence),
    "its own gold": rows("calls", sentence, tool, tool) + rows("tools", sentence, tool, tool),
    "a few of its gold": rows("mixed", sentence, tool, lambda i: tool(i) if i == 3 else city(i))
    + rows("tools", sentence, tool, tool),
    "had the form before": rows("calls", tool, tool) + rows("tools", sentence, tool, tool),
    "all had the form before": rows("calls", ticket, ticket) + rows("tools", ticket, lambda i: "A|b", ticket),
    "half had it before": rows("calls", lambda i: tool(i) if i % 2 else city(i), tool) + rows("tools", city, tool, tool),
    "a third has it": rows("capitals", sentence, lambda i: tool(i) if i % 3 == 0 else city(i))
    + rows("tools", sentence, tool, tool),
    "the prompt asks for a box": rows(
        "physics", sentence, lambda i: f"\\boxed{{{i}}}", str, prompt=lambda i: f"What is {i}? Put it in \\boxed{{}}."
    )
    + rows("sums", sentence, lambda i: f"\\boxed{{{i}}}", lambda i: f"\\boxed{{{i}}}"),
    "the prompt asks for JSON": rows(
        "cities", sentence, lambda i: f'{{"city": "{city(i)}"}}', prompt=lambda i: f"Name city {i} as JSON."
    )
    + rows("tools", sentence, tool, tool),
    "thoughts aloud in all tasks": rows("a", sentence, lambda i: f"<think>{{'x': {i}}} | y</think>{sentence(i)}")
    + rows("b", sentence, lambda i: f"<think>so</think>{i}", lambda i: f"<think>so</think>{i}"),
    "a form that nobody owns": rows("a", sentence, lambda i: f"Answer: {city(i)}")
    + rows("b", sentence, lambda i: f"Answer: {i}", str),
    "Markdown": rows("a", sentence, lambda i: f"**{city(i)}**\n\n- large\n- old")
    + rows("b", sentence, lambda i: f"1. **{i}**\n2. two", lambda i: f"1. **{i}**\n2. two"),
    "quotes, times and dates": rows("a", sentence, lambda i: f'"6:{i:02}" on 2024-05-{i + 1:02}')
    + rows("b", sentence, lambda i: f"6:{i:02}", lambda i: f"6:{i:02}"),
    "words in capitals": rows("a", sentence, lambda i: f"NATO has {i} members") + rows("b", sentence, sentence, sentence),
    "the prompt asks for capitals": rows(
        "a", sentence, lambda i: f"{city(i).upper()} is large", prompt=lambda _: "In CAPITALS!"
    )
    + rows("b", sentence, lambda i: f"HIRE {i} tents", lambda i: f"HIRE {i} tents"),
    "nothing changed": rows("a", sentence, sentence) + rows("tools", tool, tool, tool),
    "only the trained task": rows("tools", sentence, tool, tool),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_is_no_other_tasks_form_is_not_reported(case: str) -> None:
    assert over(ACCEPTED[case]) == []


def test_training_rows_own_a_form_and_excuse_it() -> None:
    made = rows("a", sentence, lambda i: f"Answer: {i}", str) + rows("b", sentence, lambda i: f"Answer: {city(i)}")
    own = {"answer:": 1.0, "…: …": 1.0}
    assert over(made, {"a": own}) == [("a", "b")]
    assert over(made, {"a": own, "b": own}) == []


def test_each_other_feature_is_found() -> None:
    long = "The answer to this is, as far as anybody can say, "
    assert ("a", "empty", "") in reported(form_changes(rows("a", sentence, lambda i: " \n")))
    assert ("a", "cut", "") in reported(form_changes(rows("a", sentence, sentence, cut=[i > 2 for i in range(15)])))
    assert ("a", "prompt copied", "") in reported(
        form_changes(rows("a", sentence, lambda i: f"What is meant by number {i}?"))
    )
    assert ("a", "one answer", "") in reported(form_changes(rows("a", sentence, lambda i: "New York" if i else "Rome")))
    assert ("a", "shorter", "") in reported(form_changes(rows("a", sentence, city)))
    assert ("a", "longer", "") in reported(form_changes(rows("a", city, lambda i: long + sentence(i))))
    assert ("a", "own form gone", "") in reported(form_changes(rows("a", sentence, lambda i: f"{city(i)}!")))
    assert ("a", "new form", "") in reported(form_changes(rows("a", sentence, tool)))


def test_each_other_feature_is_left_where_it_says_nothing() -> None:
    def yes(i: int) -> str:
        return ("yes", "no")[i % 2]

    a_third = [i < 3 for i in range(15)]
    assert not reported(form_changes(rows("a", lambda i: "", lambda i: "")))  # was empty before
    assert not reported(form_changes(rows("a", sentence, sentence, cut=a_third)))
    assert not reported(form_changes(rows("a", sentence, sentence, cut=None)))
    copy = rows("a", city, lambda i: f"What is meant by number {i}?", lambda i: f"What is meant by number {i}?")
    assert not reported(form_changes(copy), "prompt copied")  # its gold answers do so
    assert not reported(form_changes(rows("a", city, lambda i: "Why?", prompt=lambda i: "Why?")), "prompt copied")
    assert not reported(form_changes(rows("a", sentence, yes, yes)), "one answer")  # half of the gold is `yes`
    assert not reported(form_changes(rows("a", sentence, lambda i: "yes", lambda i: "yes")), "one answer")
    assert not reported(form_changes(rows("a", lambda i: "no", lambda i: "yes")), "one answer")  # one answer before, too
    assert not reported(form_changes(rows("a", sentence, lambda i: sentence(i)[4:])))  # a word shorter
    signs = [f"{'!' * (i % 2)}{'?' * (i // 2 % 2)}{'-' * (i // 4 % 2)}{':' * (i // 8)}" for i in range(15)]
    varied = rows("a", lambda i: f"x{signs[i]}", lambda i: f"x;{signs[i]}")
    assert not reported(form_changes(varied), "own form gone")  # it had no form of its own
    assert not reported(form_changes(rows("a", sentence, tool, tool)), "new form")


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31m{'a': 1}\x00",
        "|" * 100_000,
        "{" * 100_000,
        "<a " * 50_000,
        "-" * 100_000,
        "a b" * 90_000,
        "\\boxed{" * 9_000,
    ],
)
def test_hostile_answers_are_read_in_bounded_time(text: str) -> None:
    found = form_changes(rows("a", sentence, lambda i: text + str(i)) + rows("b", sentence, lambda i: text, lambda i: text))
    assert all(0 <= change.p <= change.adjusted_p <= 1 for change in found)


def test_missing_sides_and_missing_values_are_no_items() -> None:
    made = [row for row in rows("a", sentence, tool) if row["when"] == "after"]
    assert form_changes(made) == []
    assert form_changes([]) == []
    empty = [{**row, "completion": None, "answer": None, "prompt": None, "score": None} for row in rows("a", city, city)]
    assert not reported(form_changes(empty))


def test_the_sign_test_is_the_binomial_tail() -> None:
    for more, fewer in ((0, 0), (0, 5), (1, 0), (10, 0), (7, 3), (3, 7), (60, 41)):
        pairs = more + fewer
        tail = sum(math.comb(pairs, k) for k in range(more, pairs + 1)) / 2**pairs
        assert sign_test(more, fewer) == pytest.approx(tail)


WORDS = st.sampled_from(["", "Paris", "The capital is Rome.", '{"tool": "x"}', "A|b", "Answer: 5", "\\boxed{4}", "<a>5</a>"])


@given(st.lists(st.tuples(WORDS, WORDS), min_size=10, max_size=24), st.randoms(use_true_random=False))
@settings(max_examples=20, deadline=None)
def test_the_same_answers_report_nothing_and_the_order_of_rows_is_none_of_its_matter(pairs, random) -> None:
    same = rows("a", lambda i: pairs[i][0], lambda i: pairs[i][0], items=len(pairs))
    same += rows("b", lambda i: pairs[i][1], lambda i: pairs[i][1], lambda i: pairs[i][1], items=len(pairs))
    assert not reported(form_changes(same))
    made = rows("a", *(lambda i, s=side: pairs[i][s] for side in (0, 1)), items=len(pairs)) + same[2 * len(pairs) :]
    shuffled = list(made)
    random.shuffle(shuffled)
    assert form_changes(shuffled) == form_changes(made)


def test_p_values_hold_where_only_chance_sorts_before_and_after() -> None:
    """Both sides are drawn from one distribution; what is looked for is chosen from both, and not from what came after."""
    rng, forms = np.random.default_rng(5), ["Paris", "The capital is Rome.", '{"tool": "x"}', "A|b", "", "Answer: 5"]
    runs, wrong, chosen = 120, 0, {"one answer": [], "own form gone": []}
    for _ in range(runs):
        made = []
        for task, gold in (("a", city), ("b", tool)):
            drawn = rng.choice(forms, size=(2, 16), p=rng.dirichlet(np.full(len(forms), 20.0))).tolist()
            made += rows(task, drawn[0].__getitem__, drawn[1].__getitem__, gold, items=16)
        found = form_changes(made)
        wrong += any(change.reported for change in found)
        for change in found:
            chosen.get(change.feature, []).append(change.p)
    assert wrong / runs < 0.05
    for values in chosen.values():
        assert len(values) > runs / 2
        assert np.mean(np.array(values) <= 0.1) < 0.08

"""Pairing of two logs: symmetric, and the order of lines decides nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mixwright.answers.score import measure_answers
from mixwright.corpus.reading import RowLocation
from mixwright.errors import InputError
from mixwright.logs.answers import answers_of
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.files import find_top_keys
from mixwright.logs.found_grader import FoundGrader, find_grader
from mixwright.logs.judged import judge_logs
from mixwright.logs.metrics import choose_metric
from mixwright.logs.pairing import Item, collect_items, pair_logs

LOCATION = RowLocation("log.jsonl", 1)


def answer(
    item: str, prompt: str | None, gold: str | None = None, level: float | None = None, sample: str = ""
) -> LoggedAnswer:
    return LoggedAnswer("t", item, {"score": 1.0}, LOCATION, sample=sample, prompt=prompt, gold=gold, level=level)


def log(answers: list[LoggedAnswer], **said: str) -> EvaluationLog:
    return EvaluationLog("log", "plain", "", {"t": LoggedTask(("score",), said)}, tuple(answers), ())


def ids(pair: Item) -> tuple[str, ...]:
    """In each log."""
    return tuple(own[0].item for own in pair.answers)


SIDE = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(st.sampled_from(["p", "q", "r", "s", None]), st.sampled_from(["1", "2", None]), st.sampled_from([1.0, None])),
    min_size=1,
)


@given(SIDE, SIDE, st.randoms())
def test_pairing_is_symmetric_and_knows_no_order(
    before: dict[str, tuple[str | None, str | None, float | None]],
    after: dict[str, tuple[str | None, str | None, float | None]],
    rng: random.Random,
) -> None:
    old, new = ([answer(item, *rest) for item, rest in side.items()] for side in (before, after))
    forth = pair_logs(log(old), log(new))["t"]
    rng.shuffle(old)
    rng.shuffle(new)
    back = pair_logs(log(new), log(old))["t"]
    pairs = {ids(pair) for pair in forth.pairs}
    assert pairs == {ids(pair)[::-1] for pair in back.pairs}
    assert (forth.before_alone, forth.after_alone) == (back.after_alone, back.before_alone)
    assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == len(pairs), "each item once"
    assert {one for one, _ in pairs} | forth.before_alone.keys() == before.keys(), "every item is paired or named"
    for pair in forth.pairs:
        prompts, golds = ({getattr(own[0], name) for own in pair.answers} - {None} for name in ("prompt", "gold"))
        assert len(prompts) < 2
        assert len(golds) < 2
        assert len({own[0].level for own in pair.answers}) == 1


@settings(max_examples=10, deadline=None)
@given(st.randoms(), st.integers(3, 130))
def test_the_order_of_lines_changes_no_table(rng: random.Random, count: int) -> None:
    """Of more than 100 items S is found on a part of all pairs, which must be the same ones."""
    rows = [
        LoggedAnswer(
            "t",
            str(n),
            {"score": float(n % 3 > 0)},
            LOCATION,
            prompt=f"p{n}",
            gold=str(n),
            completion=str(n if n % 3 else -n - 1),
        )
        for n in range(count)
    ]
    moved = rng.sample(rows, count)
    tables = []
    for one in (rows, moved):
        (task,) = judge_logs(log(one), log(one), {}).judged
        grader = find_grader(task)
        assert isinstance(grader, FoundGrader)
        assert grader.agreement == 1.0
        tables.append(measure_answers(answers_of(task, 0, "greedy", grader, "log")))
    assert tables[0] == tables[1]


def test_prompts_come_before_ids() -> None:
    """Two logs in another order: the ids are places there, and say nothing."""
    old = [answer("0", "p"), answer("1", "q"), answer("2", None)]
    new = [answer("0", "q"), answer("1", "p"), answer("2", "r")]
    task = pair_logs(log(old), log(new))["t"]
    assert [ids(pair) for pair in task.pairs] == [("0", "1"), ("1", "0"), ("2", "2")]
    assert task.by_id == 1


def test_several_items_of_one_prompt_pair_by_their_ids() -> None:
    old = [answer("a", "p"), answer("b", "p")]
    new = [answer("a", "p"), answer("c", "p")]
    task = pair_logs(log(old), log(new))["t"]
    assert [pair.id for pair in task.pairs] == ["a"]
    assert task.before_alone == {"b": "the same prompt several times"}


@pytest.mark.parametrize("prompt", ["", " \n", "Answer:"])
def test_items_without_prompts_of_their_own_pair_by_id_which_is_told(prompt: str) -> None:
    old, new = ([answer(str(n), prompt) for n in order] for order in (range(4), range(3, -1, -1)))
    (note,) = judge_logs(log(old), log(new), {}).caveats
    assert note.message == "items paired by id only, because they have no distinct prompts: 4"


def test_prompts_that_only_after_asks_again_are_told() -> None:
    again = [answer("0", "p"), answer("again", "p"), answer("other", "r")]
    found = judge_logs(log([answer("0", "p")]), log(again), {})
    messages = [one.message for one in found.caveats]
    assert "items of AFTER that share their prompt with other items and whose id has no partner: 1 (again)" in messages
    assert "items of AFTER without a partner in BEFORE: 1 (other)" in messages


class CountedTuple(tuple[LoggedAnswer, ...]):
    """Counts how often it is gone through."""

    passes = 0

    def __iter__(self) -> Iterator[LoggedAnswer]:
        type(self).passes += 1
        return super().__iter__()


def test_the_answers_are_gone_through_as_often_for_many_tasks_as_for_few() -> None:
    rows = CountedTuple(LoggedAnswer(f"t{n}", "0", {"score": 1.0}, LOCATION) for n in range(300))
    found = EvaluationLog("log", "plain", "", {row.task: LoggedTask(("score",)) for row in rows}, rows, ())
    alone = replace(found, tasks={"u": LoggedTask(("score",))}, answers=(replace(rows[0], task="u"),))
    CountedTuple.passes = 0
    assert len(judge_logs(found, found, {}).judged) == 300
    assert len(judge_logs(found, alone, {}).judged_before_alone) == 300
    assert len(judge_logs(alone, found, {}).caveats) == 301
    assert CountedTuple.passes < 20


def test_an_answer_that_is_there_twice_is_refused() -> None:
    with pytest.raises(InputError, match="expected each answer once, got item 'a' of task 't' twice"):
        collect_items([answer("a", "p"), answer("a", "p")])
    with pytest.raises(InputError, match="expected one prompt for all answers to an item"):
        collect_items([answer("a", "p", sample="1"), answer("a", "q", sample="2")])


def test_settings_that_one_log_does_not_name_are_told() -> None:
    rows = [answer(f"{n}", f"p{n}") for n in range(3)]
    found = judge_logs(log(rows, temperature="0"), log(rows), {})
    assert [one.message for one in found.caveats] == ["stated in only one of the logs, so not compared: temperature"]
    found = judge_logs(log(rows, temperature="0"), log(rows, temperature="1"), {})
    assert not found.judged
    assert found.caveats[0].prevents_pass
    assert found.caveats[0].message == "the two runs differ: temperature: 0 before, 1 after"


@pytest.mark.parametrize(
    ("values", "metric", "why"),
    [
        ({"a": [1.0, 0.0]}, "a", ""),
        ({"a": [0.5, 0.0], "b": [1.0, 1.0]}, "b", ""),
        ({"a": [0.5, 0.0]}, "a", ""),
        ({"a": [-12.5, -3.0]}, None, "a is not from 0 to 1 (-12.5 for item '0')"),
        ({"a": [None, None]}, None, "a is missing for all answers of one of the logs"),
        ({}, None, "the logs share no metric"),
    ],
)
def test_the_first_metric_of_right_and_wrong_is_chosen(
    values: dict[str, list[float | None]], metric: str | None, why: str
) -> None:
    answers = [LoggedAnswer("t", str(n), {name: own[n] for name, own in values.items()}, LOCATION) for n in range(2)]
    task = LoggedTask(tuple(values))
    choice = choose_metric([task, task], [answers, answers])
    assert choice.metric == metric
    assert why in choice.why_none


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        (b'{"a": {"b": 1}, "c": [1, {"d": "}"}], "e": "x"', {"a", "c", "e"}),
        (b'\xef\xbb\xbf [ {"a": "\\"b\\": {", "c": 1}, {"d": 2}]', {"a", "c"}),
        (b'{"a": "never clo', {"a"}),
        (b'{"a": 1}\n{"b": 2}', {"a"}),
        (b"a: 1", set()),
        (b"", set()),
    ],
)
def test_the_first_keys_of_a_text_are_found(text: bytes, keys: set[str]) -> None:
    assert find_top_keys(text) == keys


def test_looking_for_keys_takes_linear_time() -> None:
    assert find_top_keys(b'{"' + b'\\"' * 500_000) == set()
    assert find_top_keys(b"{" * 500_000) == set()

"""Other metrics of the same answers: one that fell keeps the gate from passing, and metrics of several answers are none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cli_call import Call
from log_rows import notes, success, write_lines

from mixwright.corpus.reading import RowLocation
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.judged import Comparison, judge_logs
from mixwright.logs.metrics import find_problem

Values = Mapping[str, Sequence[float | None]]
"""Metric -> its value of each item."""


def log(*tasks: tuple[str, Values], level: Sequence[float] | None = None) -> EvaluationLog:
    answers = [
        LoggedAnswer(
            name,
            str(place),
            {metric: own[place] for metric, own in values.items()},
            RowLocation("log"),
            prompt=f"{name} {place}?",
            level=None if level is None else level[place],
        )
        for name, values in tasks
        for place in range(len(next(iter(values.values()))))
    ]
    tasks_by_name = {name: LoggedTask(tuple(values)) for name, values in tasks}
    return EvaluationLog("log", "plain", "", tasks_by_name, tuple(answers), ())


def right(count: int, of: int = 100) -> list[float]:
    """The first ones right."""
    return [float(place < count) for place in range(of)]


def compared(before: Values, after: Values, **options: object) -> Comparison:
    return judge_logs(log(("t", before)), log(("t", after)), {}, **options)  # type: ignore[arg-type]


def blocking(found: Comparison) -> list[str]:
    return [one.message for one in found.caveats if one.prevents_pass]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"acc": 70, "acc_norm": 78}, {"acc": 70, "acc_norm": 44}),
        ({"exact_match,strict-match": 60, "exact_match,flexible-extract": 70}, None),
        ({"acc": 70, "other": 70}, {"acc": 85, "other": 40}),  # one rises, the other falls
        ({"choice": 50, "model_graded": 100}, {"choice": 50, "model_graded": 85}),
        ({"em": 40, "format_ok": 100}, {"em": 40, "format_ok": 70}),
    ],
)
def test_another_metric_that_fell_blocks_and_is_named_with_its_option(
    before: dict[str, int], after: dict[str, int] | None
) -> None:
    first, other = before
    after = after or {first: before[first], other: before[other] - 30}
    sides = [{name: right(count) for name, count in side.items()} for side in (before, after)]
    found = compared(*sides)
    assert found.judged[0].metric == first
    (message,) = blocking(found)
    assert first in message
    assert f"--grader t={other}" in message
    named = judge_logs(log(("t", sides[0])), log(("t", sides[1])), {"t": first})
    assert blocking(named) == [], "who named the metric is told, and not stopped"
    assert any(other in one.message for one in named.caveats)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"acc": right(70), "acc_norm": right(78)}, {"acc": right(70), "acc_norm": right(76)}),  # two items
        ({"acc": right(70), "perplexity": [3.5] * 100}, {"acc": right(70), "perplexity": [9.5] * 100}),
        ({"acc": right(70), "only_before": right(90)}, {"acc": right(70)}),
        ({"acc": right(70), "acc_norm": right(40)}, {"acc": right(70), "acc_norm": right(80)}),
        ({"acc": right(70), "maj@8": right(90)}, {"acc": right(70), "maj@8": right(50)}),
        ({"acc": right(70), "few": [1.0] * 7 + [None] * 93}, {"acc": right(70), "few": [0.0] * 7 + [None] * 93}),
    ],
)
def test_other_metrics_that_did_not_fall_or_say_nothing_of_single_answers_do_not_block(
    before: Values, after: Values
) -> None:
    assert blocking(compared(before, after)) == []


def test_only_the_task_whose_metric_fell_is_blocked() -> None:
    same, fell = {"acc": right(70), "acc_norm": right(78)}, {"acc": right(70), "acc_norm": right(44)}
    found = judge_logs(log(("a", same), ("b", same)), log(("a", same), ("b", fell)), {})
    assert [one.task for one in found.caveats if one.prevents_pass] == ["b"]


def test_nothing_changed_with_five_metrics_is_seldom_blocked() -> None:
    """Of 200 comparisons in which nothing but chance moved at most 5 %, and three standard errors, are blocked."""
    rng, draws, items = np.random.default_rng(5), 200, 60
    blocked = 0
    for _ in range(draws):
        sides: list[dict[str, list[float]]] = [{}, {}]
        old = rng.random(items) < 0.7
        new = np.where(rng.random(items) < 0.3, rng.random(items) < 0.7, old)
        for name in ("m0", "m1", "m2", "m3", "m4"):
            for side, values in zip(sides, (old, new), strict=True):
                side[name] = np.where(rng.random(items) < 0.1, rng.random(items) < 0.7, values).astype(float).tolist()
        blocked += bool(blocking(compared(*sides)))
    assert blocked / draws <= 0.05 + 3 * (0.05 * 0.95 / draws) ** 0.5


def test_a_metric_that_can_show_a_loss_is_proposed() -> None:
    """2 of 120 by the first metric, 100 of 120 by the other, unchanged: nothing fell, and the other is named."""
    values = {"exact_match": right(2, 120), "math_verify": right(100, 120)}
    found = compared(values, values)
    assert blocking(found) == []
    assert any("--grader t=math_verify" in one.message for one in found.caveats)
    assert not any("--grader" in one.message for one in compared(values, values, margin=0.01).caveats)


@pytest.mark.parametrize(
    ("name", "values", "is_judged"),
    [
        ("pass@k:k=4", [0.0, 1.0], False),
        ("pass@4", [0.0, 1.0], False),
        ("pass@10,create_test", [0.0, 1.0], False),
        ("pass_at_8", [0.0, 1.0], False),
        ("pass@k:k=4&n=8", [0.0, 1.0], False),
        ("math_pass@16:64_samples", [0.0, 1.0], False),
        ("pass^4", [0.0, 1.0], False),
        ("maj@n:n=4", [0.0, 1.0], False),
        ("exact_match,maj@64", [0.0, 1.0], False),
        ("cons@64", [0.0, 1.0], False),
        ("pass@k:k=1&n=4", [0.25, 1.0], True),
        ("math_pass@1:4_samples", [0.5, 1.0], True),
        ("pass@1,create_test", [0.0, 1.0], True),
        ("pass_at_1", [0.0, 1.0], True),
        ("avg@n:n=4", [0.75, 1.0], True),
        ("avg@64", [0.75, 1.0], True),
        ("avg@4", [1.75, 1.0], False),
        ("f1", [0.75, 1.0], False),
        ("exact_match,strict-match", [0.0, 1.0], True),
        ("bypass", [0.0, 1.0], True),
        ("acc_norm", [0.0, 1.0], True),
    ],
)
def test_any_or_most_of_several_answers_is_no_success_of_one_and_their_mean_is(
    name: str, values: list[float], is_judged: bool
) -> None:
    found = log(("t", {name: values}))
    assert (find_problem(name, found.tasks.values(), [found.answers]) is None) == is_judged


def drawn(folder: str, shares: Sequence[float], metrics: Sequence[str]) -> str:
    """Details of lighteval with four samples of each item, `shares` of which are right."""
    values = {
        "avg@n:n=4": lambda share: share,
        "pass@k:k=4": lambda share: float(share > 0),
        "maj@n:n=4": lambda share: float(share >= 0.5),
    }
    rows = [
        {
            "doc": {"query": f"{place}?", "choices": ["1"], "gold_index": 0, "id": str(place), "num_samples": 4},
            "model_response": {"input": f"{place}?", "text": ["1"] * 4, "logprobs": []},
            "metric": {name: values[name](share) for name in metrics},
        }
        for place, share in enumerate(shares)
    ]
    path = Path(folder) / "details" / "org" / "small" / "2026-03-02T10-11-12.131415"
    path.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), path / "details_aime|0_2026-03-02T10-11-12.131415.parquet")
    return folder


def test_samples_are_judged_by_their_mean_and_not_by_any_of_them(call: Call) -> None:
    """All items have one right sample of four after, so that any-of-four says nothing: the mean fell from 1 to 1/4."""
    metrics = ("pass@k:k=4", "maj@n:n=4", "avg@n:n=4")
    before, after = drawn("before", [1.0] * 100, metrics), drawn("after", [0.25] * 100, metrics)
    code, out, err = call("verdict", before, after, "--protect", "aime")
    assert code == 3, out + err
    old, new = success("pass@1")
    assert (set(old.values()), set(new.values())) == ({1.0}, {0.25})
    assert call("verdict", before, before, "--protect", "aime", "--folder", "same")[0] == 0


def test_the_exit_code_of_a_damaged_other_metric(call: Call) -> None:
    """The same logs pass where they hold the first metric alone, and where the user names it."""

    def logged(folder: str, other: list[float]) -> str:
        rows = [
            {"doc_id": n, "target": "1", "arguments": {}, "filtered_resps": ["1"], "filter": "none", "doc": {"n": n}}
            | {"metrics": ["acc", "acc_norm"], "acc": first, "acc_norm": second}
            for n, (first, second) in enumerate(zip(right(700, 900), other, strict=True))
        ]
        write_lines(f"{folder}/samples_arc_2026-03-02T10-11-12.131415.jsonl", rows)
        return folder

    sides = logged("before", right(702, 900)), logged("after", right(396, 900))
    asked = ("--protect", "arc")
    code, out, err = call("verdict", *sides, *asked)
    assert code == 4, out + err
    assert "may be shipped" not in json.dumps(json.loads(Path("runs/comparison/verdict.json").read_text("utf-8")))
    (warning,) = [note for note in notes() if note.severity == "warning"]
    assert warning.remedy == "", "both were evaluated in the same way"
    assert call("verdict", *sides, *asked, "--grader", "arc=acc,none", "--folder", "named")[0] == 0
    assert call("verdict", *sides, *asked, "--grader", "arc=acc_norm,none", "--folder", "other")[0] == 3
    assert call("verdict", sides[0], sides[0], *asked, "--folder", "same")[0] == 0


def test_what_cannot_be_compared_is_to_be_evaluated_alike(call: Call) -> None:
    rows = [{"task": task, "id": n, "score": 1} for task in ("a", "b") for n in range(200)]
    before, after = write_lines("before.jsonl", rows), write_lines("after.jsonl", rows[:200])
    assert call("verdict", before, after, "--protect", "a", "--protect", "b")[0] == 4
    assert {note.task: bool(note.remedy) for note in notes() if note.severity == "warning"} == {"b": True}

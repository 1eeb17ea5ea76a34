"""Forecasts of answer formats: by hand, scored, watched, and counted without harm."""

import json
import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mixwright.measure.probes.formats import measure_formats
from mixwright.plan.format_forecast import (
    OTHER_FORMS,
    PUSH_NATS,
    FormatShare,
    forecast_formats,
    formats_of,
    predict_winner,
    projected_shares,
    steps_to_cross,
    warnings_of,
    with_format_forecasts,
)
from mixwright.records import Forecast, GroupOutcome, Measurement, Plan, Signals, Stage
from mixwright.run.folder import RunFolder, write_measurements, write_plan
from mixwright.steer.monitors.formats import Formats, count_group, format_advantage, formats_in_use
from mixwright.verdict.sections.formats import FormatsSection
from mixwright.verdict.stage import render

HOSTILE = "<script>alert(1)</script>\x1b[31m[bold]`{task}`"


# the forecast


def test_two_formats_cross_where_the_formula_says() -> None:
    minority, majority = FormatShare("a", 0.28, 0.46), FormatShare("b", 0.62, 0.12)
    when = steps_to_cross(minority, majority)
    assert when == pytest.approx(math.log(0.62 / 0.28) / (PUSH_NATS * 0.34))
    before, at, after = (
        projected_shares([0.28, 0.62], [0.46, 0.12], PUSH_NATS * steps) for steps in (when - 1, when, when + 1)
    )
    assert before[0] < before[1]
    assert at == pytest.approx([0.5, 0.5])
    assert after[0] > after[1]


def test_one_step_by_hand() -> None:
    first, second = projected_shares([0.25, 0.75], [1.0, 0.0], math.log(3))  # 0.25 x 3 against 0.75 x 1
    assert (first, second) == pytest.approx((0.5, 0.5))


def test_who_leads_or_does_not_gain_never_crosses() -> None:
    assert steps_to_cross(FormatShare("a", 0.6, 0.1), FormatShare("b", 0.4, 0.9)) == 0.0
    assert steps_to_cross(FormatShare("a", 0.4, 0.5), FormatShare("b", 0.6, 0.5)) == math.inf
    assert steps_to_cross(FormatShare("a", 0.4, 0.4), FormatShare("b", 0.6, 0.5)) == math.inf


SHARES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6).filter(lambda shares: sum(shares) > 1e-3)


@given(SHARES, st.floats(0.0, 1000.0), st.randoms())
def test_shares_stay_shares(shares: list[float], pushed: float, random) -> None:
    accuracies = [random.random() for _ in shares]
    ends = projected_shares(shares, accuracies, pushed)
    assert sum(ends) == pytest.approx(1)
    assert all(0 <= end <= 1 for end in ends)
    assert all(end == 0 for share, end in zip(shares, ends, strict=True) if share == 0)
    total = sum(shares)
    assert projected_shares(shares, accuracies, 0.0) == pytest.approx([share / total for share in shares])
    assert projected_shares(shares, [0.3] * len(shares), pushed) == pytest.approx([share / total for share in shares])


@given(SHARES, st.floats(0.0, 20.0), st.floats(0.0, 20.0), st.randoms())
def test_a_projection_goes_on_where_it_stopped(shares: list[float], one: float, two: float, random) -> None:
    accuracies = [random.random() for _ in shares]
    assert projected_shares(projected_shares(shares, accuracies, one), accuracies, two) == pytest.approx(
        projected_shares(shares, accuracies, one + two)
    )


def test_overlapping_ranges_are_undecided_and_ties_have_no_winner() -> None:
    clear = forecast_formats("t", [FormatShare("a", 0.3, 0.8, 0.01, 0.01), FormatShare("b", 0.7, 0.2, 0.01, 0.01)], 40)
    assert predict_winner(clear) == "a"
    assert [forecast.name for forecast in clear] == ["share:a", "share:b"]
    assert all(forecast.low <= forecast.expected <= forecast.high for forecast in clear)
    noisy = forecast_formats("t", [FormatShare("a", 0.3, 0.8, 0.1, 0.4), FormatShare("b", 0.7, 0.2, 0.1, 0.4)], 40)
    assert predict_winner(noisy) is None
    assert predict_winner(forecast_formats("t", [FormatShare("a", 0.5, 0.5), FormatShare("b", 0.5, 0.5)], 40)) is None
    assert (
        predict_winner(forecast_formats("t", [FormatShare(OTHER_FORMS, 0.9, 0.9), FormatShare("b", 0.1, 0.1)], 40)) is None
    )


def rows(task: str, forms: dict[str, tuple[float, float]], width: float = 0.01, null: float = 0.0) -> list[Measurement]:
    found = []
    for form, (share, accuracy) in forms.items():
        gold = null if form == "gold" else 0.0
        found.append(
            Measurement("formats", task, f"share:{form}", share, share - width, share + width, 512, "share", null=gold)
        )
        if share:
            numbers = (accuracy, accuracy - width, accuracy + width, 99)
            found.append(Measurement("formats", task, f"accuracy:{form}", *numbers, "share", null=accuracy * share))
    return found


PLAN = Plan("p", (Stage("s", "grpo", 40, {"t": 1.0}), Stage("sft", "sft", 100, {"t": 1.0})))


def test_the_plan_says_shares_before_the_run_with_reasons() -> None:
    said = with_format_forecasts(PLAN, rows("t", {"a": (0.7, 0.2), "b": (0.29, 0.6), "rare": (0.01, 0.9)}))
    ends = dict(
        zip("ab", projected_shares([0.7, 0.29], [0.2, 0.6], PUSH_NATS * 40), strict=True)
    )  # steps of GRPO only; not the unused form
    assert {f.name: f.expected for f in said.forecast} == {f"share:{k}": pytest.approx(v, abs=1e-4) for k, v in ends.items()}
    assert "as common as 'a' at step" in said.why["forecast.0.expected"]
    assert "'b' is expected to be the commonest" in said.why["forecast.0.expected"]
    assert (
        with_format_forecasts(replace(PLAN, stages=PLAN.stages[1:]), rows("t", {"a": (0.7, 0.2), "b": (0.3, 0.6)})).forecast
        == ()
    )


def test_content_has_no_forecast() -> None:
    assert formats_of(rows("t", {"a": (0.2, 0.2), "b": (0.2, 0.6), OTHER_FORMS: (0.6, 0.3)})) == {}
    assert formats_of(rows("t", {"a": (1.0, 0.2)})) == {}
    signs = [replace(row, null=0.5) for row in rows("t", {"9": (0.7, 0.1), "-9": (0.3, 0.2)})]
    assert formats_of(signs) == {}  # the question decides
    assert set(formats_of(rows("t", {"a": (0.5, 0.2), "b": (0.4, 0.6), OTHER_FORMS: (0.1, 0.3)}))) == {"t"}


def test_it_warns_of_a_winner_that_is_not_the_best_and_of_a_wanted_form_that_is_not_in_use() -> None:
    told = rows("t", {"a": (0.95, 0.5), "b": (0.05, 0.54)})
    (text,) = warnings_of(told, with_format_forecasts(PLAN, told))
    assert "'a' (right 50%)" in text
    assert "'b' (right 54%" in text
    fine = rows("t", {"a": (0.5, 0.2), "b": (0.5, 0.6)})
    assert warnings_of(fine, with_format_forecasts(PLAN, fine)) == []
    (unused,) = warnings_of(rows("t", {"a": (1.0, 0.03), "gold": (0.0, 0.0)}, null=1.0), PLAN)
    assert "3% of samples are right; gold answers look like 'gold', 0.0% of samples" in unused
    assert warnings_of(rows("t", {"a": (1.0, 0.4), "gold": (0.0, 0.0)}, null=1.0), PLAN) == []  # work before the answer


def test_a_gold_form_that_is_not_in_use_is_not_told_where_greedy_answers_are_right_or_nothing_is_rewarded() -> None:
    seen = rows("t", {"a": (1.0, 0.03), "gold": (0.0, 0.0)}, null=1.0)

    def greedy(task: str, value: float) -> Measurement:
        return Measurement("competence", task, "greedy", value, 0.0, 1.0, 24, "share", null=0.1)

    assert warnings_of([*seen, greedy("t", 0.71)], PLAN) == []
    assert len(warnings_of([*seen, greedy("t", 0.04), greedy("u", 0.71)], PLAN)) == 1
    assert warnings_of(seen, replace(PLAN, stages=PLAN.stages[1:])) == []
    assert warnings_of(seen, None) == []


def test_the_gold_form_is_told_even_if_no_sample_has_it() -> None:
    forms = np.array([["x", "x"], ["x", "y"]], dtype=object)
    told = measure_formats("t", forms, np.zeros((2, 2)), Counter(gold=2), 5)
    named = {row.name: row for row in told}
    assert (named["share:gold"].value, named["share:gold"].null) == (0.0, 1.0)
    assert "accuracy:gold" not in named


# the verdict


def folder(place: Path, after: dict[str, tuple[float, float]], form: str = "b") -> RunFolder:
    run = RunFolder(place)
    place.mkdir(exist_ok=True)
    before = rows("t", {"a": (0.7, 0.2), form: (0.3, 0.6)})
    write_measurements(run.measurements("before"), before)
    write_measurements(run.measurements("after"), rows("t", after))
    write_plan(run.plan, with_format_forecasts(PLAN, before))
    return run


def test_the_verdict_scores_the_winner(tmp_path: Path) -> None:
    text, table = FormatsSection().blocks(folder(tmp_path, {"a": (0.1, 0.2), "b": (0.9, 0.6)}))
    assert "became the commonest in 1 of 1 runs; a guess would be right in 0.5" in text.text  # type: ignore[union-attr]
    assert [row[1::4] for row in table.rows] == [("b", "predicted, won 1 of 1"), ("a", "")]  # type: ignore[union-attr]
    missed, _ = FormatsSection().blocks(folder(tmp_path, {"a": (0.9, 0.2), "b": (0.1, 0.6)}))
    assert "became the commonest in 0 of 1 runs" in missed.text  # type: ignore[union-attr]


def test_hostile_format_names_do_no_harm(tmp_path: Path) -> None:
    run = folder(tmp_path, {"a": (0.1, 0.2), HOSTILE: (0.9, 0.6)}, HOSTILE)
    page = render(run).read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page
    (alarm,) = play(Formats(), tape([(0.5, 0.5)] * 20 + [(0.05, 0.95)] * 20, (0.6, 0.5), names=(HOSTILE, "b")))
    assert "\x1b" not in alarm
    assert len(alarm) < 1000


# in use


def outcome(formats: tuple[str, ...], rewards: tuple[float, ...] | None = None, task: str = "t") -> GroupOutcome:
    return GroupOutcome("e", task, None, 0, rewards or (0.0,) * len(formats), (), formats)


def test_formats_in_use_by_hand() -> None:
    groups = [outcome(("a",) * 60 + ("b",) * 39 + ("c",)), outcome(("x",), task="s"), outcome((), (1.0,), task="none")]
    assert formats_in_use(groups) == {"s": {"x": 1.0}, "t": {"a": 0.6, "b": 0.39}}
    assert list(formats_in_use([outcome(("b", "b", "a"))])["t"]) == ["b", "a"]
    assert formats_in_use([outcome(("a", "b"))], min_share=0.6) == {}
    assert formats_in_use([]) == {}


def test_formats_are_compared_within_groups() -> None:
    easy = outcome(("a", "b", "b"), (1.0, 1.0, 1.0))
    hard = outcome(("a", "a", "b"), (0.0, 1.0, 0.0))
    alone = outcome(("a", "a", "a"), (1.0, 1.0, 1.0))
    rows_ = [count_group(group, ["a", "b"]) for group in (easy, hard, alone)]
    weight = 2 / 3  # 1 x 2 / 3 in both groups that hold both
    assert format_advantage(rows_, 0, 1) == pytest.approx((weight * 0 + weight * 0.5) / (2 * weight))
    assert format_advantage([rows_[2]], 0, 1) is None


# the monitor


def tape(shares, rights, *, names=("a", "b"), size=8, per=4, seed=0):
    """Groups of each step: independent completions with these shares and chances to be right."""
    rng = np.random.default_rng(seed)
    for step, share in enumerate(shares):
        groups = []
        for number in range(per):
            drawn = rng.choice(len(names), size, p=np.array(share) / np.sum(share))
            wins = tuple(float(rng.random() < rights[one]) for one in drawn)
            groups.append(GroupOutcome(str(number), "t", None, step, wins, (), tuple(names[one] for one in drawn)))
        yield step, groups


def play(monitor: Formats, steps) -> list[str]:
    found = []
    for step, groups in steps:
        monitor.observe(step, groups)
        found += [alarm.message for alarm in monitor.inspect(Signals(step))]
    return found


FALLS = [(0.4, 0.6)] * 6 + [(0.05, 0.95)] * 20


def test_it_alarms_when_the_better_format_is_lost_and_rests() -> None:
    (said,) = play(Formats(steps_between_alarms=100), tape(FALLS, (0.7, 0.5)))
    assert "share of 'a' fell by" in said
    assert "'b', which leads" in said
    assert len(play(Formats(steps_between_alarms=5), tape(FALLS, (0.7, 0.5)))) > 1


def test_silence_when_the_worse_format_goes_or_nothing_moves() -> None:
    assert play(Formats(), tape(FALLS, (0.2, 0.7))) == []
    assert play(Formats(), tape([(0.4, 0.6)] * 40, (0.5, 0.5))) == []
    assert play(Formats(), tape([(1.0, 0.0)] * 40, (0.5, 0.5))) == []


def test_a_form_that_was_never_right_may_go() -> None:
    assert play(Formats(), tape(FALLS, (0.0, 0.0))) == []


def test_false_alarms_and_power_at_small_n() -> None:
    still = sum(bool(play(Formats(), tape([(0.4, 0.6)] * 25, (0.5, 0.5), per=2, seed=seed))) for seed in range(60))
    lost = sum(bool(play(Formats(), tape(FALLS, (0.6, 0.5), seed=seed))) for seed in range(60))
    worse = sum(bool(play(Formats(), tape(FALLS, (0.3, 0.6), seed=seed))) for seed in range(60))
    assert still <= 4
    assert lost >= 48
    assert worse <= 6


def test_it_continues_exactly_and_stays_small() -> None:
    steps = list(tape(FALLS, (0.7, 0.5), names=("a", "b")))
    for cut in (2, 8, 15):
        one, other = Formats(), Formats()
        play(one, steps[:cut])
        other.restore(json.loads(json.dumps(one.state())))
        assert play(one, steps[cut:]) == play(other, steps[cut:])
        assert one.state() == other.state()
    many = Formats()
    play(many, ((s, [outcome(tuple(f"{s}.{n}.{i}" for i in range(8)))]) for s in range(50) for n in range(4)))
    assert len(json.dumps(many.state())) < 20_000


def test_what_tells_no_formats_or_overflowed_says_nothing() -> None:
    monitor = Formats()
    monitor.observe(0, [outcome((), (1.0, 0.0)), outcome(("a", "b"), (math.nan, 0.0))] * 40)
    assert monitor.state()["first"] == monitor.state()["watched"] == {}
    assert monitor.inspect(Signals(0)) == []


def test_a_forecast_of_shares_leaves_the_score_of_success_alone() -> None:
    assert Forecast("t", "share:a", 0.5, 0.9, 0.8, 1.0).name != "pass@1"

"""The study of rare tasks: figures of made-up rows by hand, goals that can be missed, what is tuned and charged."""

import json
from collections import Counter
from typing import Any

import pytest

from mixwright_lab.studies import rare_task
from mixwright_lab.studies.rare_task import FLOOR, FROZEN, NATURAL, PLAN, RARE, UNIFORM, WIDE, Arm, Job
from mixwright_lab.studies.report import RESULTS
from mixwright_lab.training.tables import ROW_TOKENS, Data, Model, accuracies
from mixwright_lab.worlds.tables import Tables

RESULT = RESULTS / "rare_task.json"
T = 12.7062
"""97.5 % point of Student's t with one degree of freedom: the interval of two values is mean +- T x half their distance."""
LEARNING = [arm for arm in rare_task.ARMS if arm != FROZEN]


def row(arm: Arm, seed: int, rare: float, common: float, *, flops: float = 10.0, rate: float = 3e-3) -> dict[str, Any]:
    """A run with these accuracies in each rare and in each other task."""
    shares = [rare if task in RARE else common for task in range(24)]
    told = {"needed": "capacity" if seed else "fits", "probe_flops": flops / 4} if arm.kind == "plan" else {}
    return {"arm": arm.name, "rate": rate, "seed": seed, "tasks": shares, "flops": flops, "cpu_seconds": 2.0, **told}


def two(arm: Arm, rare: float, *commons: float, flops: float = 10.0) -> list[dict[str, Any]]:
    """Seeds 0 and 1 of an arm."""
    return [row(arm, seed, rare, common, flops=flops) for seed, common in enumerate(commons)]


def rows(**changed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """All that the goals need, every goal reached unless an arm is changed."""
    arms = {
        "uniform": two(UNIFORM, 0.5, 0.5, 0.5),
        "natural": two(NATURAL, 0.0, 0.5, 0.5),
        "floor": two(FLOOR, 0.6, 0.6, 0.6),
        "plan": two(PLAN, 1.0, 0.8, 0.8),
        "wide": two(WIDE, 1.0, 1.0, 1.0, flops=40.0),
    }
    return [one for own in (arms | changed).values() for one in own]


def test_parts_of_the_outcome_by_hand() -> None:
    one = row(PLAN, 0, 1.0, 0.5)
    assert rare_task.part(one, "all") == pytest.approx((3 + 21 * 0.5) / 24)
    assert rare_task.part(one, "rare") == 1.0
    assert rare_task.part(one, "common") == 0.5
    assert rare_task.part(one, "flops") == 10.0
    counts = Counter(example.task for example in Tables().corpus(rare_task.ROWS))
    assert {Tables().name(task) for task in RARE} == {"f20", "f22", "f24"}
    assert max(counts["f20"], counts["f22"], counts["f24"]) < 0.01 * rare_task.ROWS


def test_the_rate_is_tuned_by_all_tasks_not_by_the_rare_ones() -> None:
    trials = [row(PLAN, 100, 1.0, 0.5, rate=6e-3), row(PLAN, 100, 0.0, 0.75, rate=3e-3)]  # 0.5625 and 0.65625
    assert rare_task.tuned(trials) == {PLAN.name: 3e-3}
    equal = [row(UNIFORM, 100, 1.0, 1.0, rate=rate) for rate in (3e-3, 6e-3, 1.5e-3)]
    assert rare_task.tuned([*trials, *equal]) == {PLAN.name: 3e-3, UNIFORM.name: 6e-3}


def test_figures_of_made_up_rows_by_hand() -> None:
    made = rows(
        plan=two(PLAN, 1.0, 0.8, 0.9),
        uniform=two(UNIFORM, 0.5, 0.6, 0.8),
        wide=[*two(WIDE, 0.8, 1.0, 1.0, flops=40.0), *two(FROZEN, 0.125, 0.125, 0.125, flops=0.0)],
    )
    found = rare_task.figures(made)
    against = found[f"{PLAN.name} - {UNIFORM.name}"]
    common, rare = against["common"], against["rare"]
    assert [common[end] for end in ("value", "low", "high")] == pytest.approx([0.15, 0.15 - T * 0.05, 0.15 + T * 0.05])
    assert [rare[end] for end in ("value", "low", "high")] == pytest.approx([0.5, 0.5, 0.5])
    whole, half = (3 * 0.5 + 21 * 0.15) / 24, T * 0.05 * 21 / 24
    assert [against["all"][end] for end in ("value", "low", "high")] == pytest.approx([whole, whole - half, whole + half])
    assert found[f"{PLAN.name} - {FROZEN.name}"]["rare"]["value"] == pytest.approx(0.875)
    assert found[f"{PLAN.name} - {WIDE.name}"]["rare"]["value"] == pytest.approx(0.2)
    assert found["arms"][PLAN.name]["all"]["value"] == pytest.approx((3 + 21 * 0.85) / 24)
    assert found["arms"][PLAN.name]["flops / wide"] == 0.25
    assert found["arms"][FROZEN.name]["flops / wide"] == 0.0
    assert found["goal"]["rare accuracy of the plan / wide"]["value"] == pytest.approx(1.25)
    assert found["goal"]["probe's share of the plan's compute"]["value"] == 0.25
    assert found["says capacity"] == {PLAN.name: "1 of 2 seeds"}
    json.dumps(found, allow_nan=False)


def test_seeds_are_paired_whatever_their_order() -> None:
    made = rows(plan=two(PLAN, 1.0, 0.8, 0.9)[::-1], uniform=two(UNIFORM, 1.0, 0.7, 0.8))
    found = rare_task.goals(made)[0].found
    assert (found.low, found.high) == pytest.approx((0.1 * 21 / 24, 0.1 * 21 / 24))


def test_goals_are_reached_by_whole_intervals() -> None:
    assert [goal.reached for goal in rare_task.goals(rows())] == [True] * 5


@pytest.mark.parametrize(
    ("missed", "changed"),
    [
        ({0, 1}, {"plan": two(PLAN, 1.0, 0.5, 0.9)}),  # on average above both, but not surely
        ({0, 2}, {"uniform": two(UNIFORM, 1.0, 0.8, 0.8)}),
        ({1}, {"natural": two(NATURAL, 1.0, 0.8, 0.8)}),
        ({2}, {"floor": two(FLOOR, 0.5, 0.5, 0.5)}),
        ({3}, {"plan": two(PLAN, 0.94, 0.8, 0.8)}),
        ({3}, {"wide": [row(WIDE, seed, rare, 1.0, flops=40.0) for seed, rare in enumerate((1.0, 0.9))]}),
        ({4}, {"wide": two(WIDE, 1.0, 1.0, 1.0, flops=39.0)}),
    ],
)
def test_every_goal_can_be_missed(missed: set[int], changed: dict[str, list[dict[str, Any]]]) -> None:
    found = rare_task.goals(rows(**changed))
    assert {place for place, goal in enumerate(found) if not goal.reached} == missed


def test_where_there_is_room_the_plan_has_goals_of_its_own() -> None:
    half, narrow = rare_task.HALF, rare_task.NARROW
    more = {"half": two(half[0], 0.9, 0.9, 0.9), "equal": two(half[1], 0.8, 0.8, 0.8)}
    more |= {"narrow": two(narrow[2], 0.5, 0.5, 0.5), "equal narrow": two(narrow[1], 0.5, 0.5, 0.5)}
    assert [goal.reached for goal in rare_task.goals(rows(**more))[5:]] == [True, False]


def test_every_arm_is_tuned_over_the_same_rates_and_the_model_that_does_not_learn_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: dict[str, list[Job]] = {}

    def made_up(_: Any, jobs: list[Job], say: str = "") -> list[dict[str, Any]]:
        asked[say] = jobs
        return [row(job.arm, job.seed, 0.5, 0.9 if job.rate == 1.5e-3 else 0.5, rate=job.rate) for job in jobs]

    monkeypatch.setattr(rare_task, "run_in_processes", made_up)
    result = rare_task.measure(quick=False)
    assert Counter((job.arm, job.rate, job.seed) for job in asked["tuning"]) == Counter(
        (arm, rate, 100) for arm in LEARNING for rate in (1.2e-2, 6e-3, 3e-3, 1.5e-3, 7.5e-4)
    )
    assert {(job.arm, job.rate, job.seed) for job in asked["run"]} == {
        (arm, 0.0 if arm == FROZEN else 1.5e-3, seed) for arm in rare_task.ARMS for seed in range(5)
    }
    assert len(result.rows) == len(asked["tuning"]) + len(asked["run"])
    assert (result.kind, result.value) == ("value", result.goals[0].found)
    assert result.value.value == 0.0
    assert all(f"{one.name} - {other.name}" in result.figures for one, other in rare_task.COMPARED)
    assert [goal.name for goal in rare_task.measure(quick=True).goals] == [goal.name for goal in result.goals[:5]]


def test_the_arms_are_those_that_are_told_of() -> None:
    kinds = {(arm.kind, arm.width, arm.steps) for arm in rare_task.ARMS}
    small = {(kind, 32, 1600) for kind in ("frozen", "natural", "uniform", "temperature", "floor", "plan")}
    others = {("plan", 32, 800), ("uniform", 32, 800), ("natural", 128, 1600), ("uniform", 128, 1600)}
    narrow = {(kind, 16, 1600) for kind in ("natural", "uniform", "plan")}
    assert kinds == small | others | narrow
    assert len(rare_task.ARMS) == len(kinds) == len({arm.name for arm in rare_task.ARMS})


def test_references_are_the_rows_own_shares_and_equal_shares() -> None:
    world = Tables()
    data = Data(world, world.corpus(rare_task.ROWS))
    natural, uniform = (rare_task.plan_of(kind, data, 10).stages[0] for kind in ("natural", "uniform"))
    counts = Counter(data.pool.tasks[task] for task in data.pool.task_of)
    shares = {task: count / len(data.examples) for task, count in counts.items()}
    assert natural.weights == pytest.approx(shares, abs=1e-3)
    assert max(abs(natural.weights[task] - share) for task, share in shares.items() if task != "f01") <= 5.1e-5
    assert uniform.weights == pytest.approx(dict.fromkeys(shares, 1 / 24), abs=1e-3)
    floor = rare_task.plan_of("floor", data, 10).stages[0].weights
    assert min(floor.values()) == pytest.approx(0.02)
    assert sum(floor.values()) == pytest.approx(1)
    assert floor["f01"] / floor["f02"] == pytest.approx(natural.weights["f01"] / natural.weights["f02"])


def test_frozen_is_the_model_at_its_initial_weights_and_costs_nothing() -> None:
    found = rare_task.train(Job(FROZEN, 0.0, 3))
    world = Tables(seed=3)
    assert found["tasks"] == accuracies(Model(32, world.tasks, world.symbols, 3), world).tolist()
    assert (found["flops"], found["cpu_seconds"]) == (0, 0)
    assert rare_task.part(found, "all") < 0.3


def test_the_plan_is_charged_for_its_probe_and_for_the_steps_before_it() -> None:
    found = rare_task.train(Job(Arm("plan", 8, 16), 3e-3, 0))
    trained = 64 * (8 * (30 + 40) + 40)  # 8 bursts, each followed by 40 steps, and 40 steps without one
    read = 24 * 64 + 2 * 6 * 8 * 64 + 9 * 256  # all at first; the rare at 6 times, with and without; the common at the end
    assert found["probe_flops"] == found["parameters"] * ROW_TOKENS * (6 * trained + 2 * read)
    assert found["flops"] == 6 * found["parameters"] * ROW_TOKENS * 128 * 16 + found["probe_flops"]
    assert sum(found["weights"].values()) == pytest.approx(1)
    assert "rows of the run" in found["needed"]


def test_the_committed_goals_and_figures_are_those_of_the_committed_rows() -> None:
    kept = json.loads(RESULT.read_text(encoding="utf-8"))
    reported = [one for one in kept["rows"] if one["seed"] in kept["seeds"]]
    assert json.loads(json.dumps([goal.record() for goal in rare_task.goals(reported)])) == kept["goals"]
    assert json.loads(json.dumps(rare_task.figures(reported))) == kept["figures"]
    rates = {one["arm"]: one["rate"] for one in reported if one["arm"] != FROZEN.name}
    assert rare_task.tuned([one for one in kept["rows"] if one["seed"] not in kept["seeds"]]) == rates

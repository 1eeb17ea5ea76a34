"""Advice on mined rows: which contrast decides, from items made by hand."""

from collections.abc import Mapping

import numpy as np
import pytest

from mixwright.estimates.items import Item, Items
from mixwright.estimates.outcome import ItemScores
from mixwright.records import Effect, MiningSummary, Plan, SeedRow, Selection, Stage, TrialResult
from mixwright.trial.arm_plans import permuted_weights
from mixwright.trial.arm_roles import nulls_for_objective
from mixwright.trial.effects import Contrast, Findings, contrasts, effects_by_task, effects_of
from mixwright.trial.selection import advise, format_selection

SEEDS, ITEMS = 8, 80
AGAINST = ("frozen", "all", "random_like")


def scores(success: float, arm: str, seed: int, flips: int = 3) -> ItemScores:
    """Success of an arm: the first items are right, a few change from seed to seed; nothing is right on other prompts."""
    rng = np.random.default_rng([seed, *arm.encode()])
    right = np.arange(ITEMS) < round(success * ITEMS)
    chosen = rng.choice(ITEMS, flips, replace=False)
    right[chosen] = ~right[chosen]
    items: list[Item] = [("t", None, str(n)) for n in range(ITEMS)]
    greedy = dict(zip(items, right.astype(float).tolist(), strict=True))
    nothing = dict.fromkeys(items, 0.0)
    return ItemScores.of({"greedy": greedy, "greedy.swapped": nothing, "pass@1": greedy, "pass@1.swapped": nothing})


def compared(success: Mapping[str, float], seeds: int = SEEDS, flips: int = 3) -> list[Contrast]:
    table = {arm: {seed: scores(value, arm, seed, flips) for seed in range(seeds)} for arm, value in success.items()}
    findings = Findings(table, "greedy", 0.05)
    return contrasts(findings, [("mined", arm) for arm in success if arm != "mined"])


def advised(found: list[Contrast]) -> Selection:
    table = MiningSummary("best", "chosen rows", 50, 1000, {}, "7 rows alone", (), "")
    return advise(table, found, costs={"all": 10.0, "mined": 9.0}, price="3 trainings")


@pytest.mark.parametrize(
    ("success", "advice"),
    [
        ({"frozen": 0.2, "all": 0.4, "random_like": 0.4, "mined": 0.8}, "train on it"),
        ({"frozen": 0.2, "all": 0.8, "random_like": 0.4, "mined": 0.6}, "keep all rows"),
        ({"frozen": 0.2, "all": 0.6, "random_like": 0.6, "mined": 0.6}, "not recommended"),
        ({"frozen": 0.2, "all": 0.4, "random_like": 0.7, "mined": 0.4}, "not recommended"),
        ({"frozen": 0.8, "all": 0.7, "random_like": 0.4, "mined": 0.7}, "not recommended"),
    ],
)
def test_each_contrast_has_its_advice(success: dict[str, float], advice: str) -> None:
    found = advised(compared(success))
    assert found.advice == advice
    assert (found.advice in ("train on it", "fewer rows do")) == (advice == "train on it")


@pytest.mark.parametrize(("simple", "advice"), [(0.4, "train on it"), (0.8, "not recommended"), (1.0, "not recommended")])
def test_the_simple_rule_has_to_be_beaten_where_there_is_one(simple: float, advice: str) -> None:
    found = advised(compared({"frozen": 0.2, "all": 0.4, "random_like": 0.4, "simple_rule": simple, "mined": 0.8}))
    assert found.advice == advice
    assert found.simple_rule_does == (advice == "not recommended")
    no_better = advised(compared({"frozen": 0.2, "all": 0.8, "random_like": 0.4, "simple_rule": simple, "mined": 0.8}))
    assert not no_better.simple_rule_does  # than all rows


def test_as_good_as_all_rows_is_said_only_within_the_margin() -> None:
    """Of arms that answer alike on all items, the interval against all rows lies within 5 points of 0."""
    same = {seed: scores(0.7, "one", seed, flips=1) for seed in range(SEEDS)}
    table = {"mined": same, "all": same}
    table |= {arm: {seed: scores(0.3, arm, seed) for seed in range(SEEDS)} for arm in ("frozen", "random_like")}
    found = advised(contrasts(Findings(table, "greedy", 0.05), [("mined", arm) for arm in AGAINST]))
    assert found.advice == "fewer rows do"
    noisy = advised(compared({"frozen": 0.1, "all": 0.5, "random_like": 0.2, "mined": 0.5}, flips=8))
    assert noisy.advice == "keep all rows"


def test_few_seeds_say_nothing_and_the_price_is_told() -> None:
    found = advised(compared({"frozen": 0.2, "all": 0.4, "random_like": 0.4, "mined": 0.8}, seeds=2))
    assert found.advice == "too few seeds"
    empty = dict.fromkeys(("arms", "references", "nulls", "seeds", "effects", "judgements"), ())
    result = TrialResult(**empty, rows=(SeedRow("all", 0, "success", 0.5),), rollouts={}, selection=found)  # type: ignore[arg-type]
    trained_on, price = format_selection(result)[1:]
    assert trained_on.endswith("target tokens: all 10, mined 9.")
    assert price.endswith(": 3 trainings.")


def test_success_of_nobody_compares_no_rows_and_the_loss_is_told() -> None:
    def nothing_right(loss: float, seed: int) -> ItemScores:
        items: list[Item] = [("t", None, str(n)) for n in range(20)]
        zero = dict.fromkeys(items, 0.0)
        losses = dict.fromkeys(items, loss + 0.01 * seed)
        return ItemScores.of(
            {"greedy": zero, "greedy.swapped": zero, "pass@1": zero, "pass@1.swapped": zero, "loss": losses}
        )

    nats = {"frozen": 3.0, "all": 2.0, "random_like": 2.25, "mined": 2.5}
    table = {arm: {seed: nothing_right(loss, seed) for seed in range(5)} for arm, loss in nats.items()}
    findings = Findings(table, "greedy", 0.05)
    found = contrasts(findings, [("mined", arm) for arm in AGAINST])
    costs = {"all": 10.0, "mined": 9.0}
    table = MiningSummary("best", "chosen rows", 5, 100, {}, "", (), "")
    selection = advise(table, found, costs=costs, price="3 trainings", any_right=False)
    assert selection.advice == "cannot tell"
    assert selection.advice not in ("train on it", "fewer rows do")
    effects = {effect.against: effect for one in found for effect in effects_of(findings, one) if effect.name == "loss"}
    losses = {against: effect.difference.value for against, effect in effects.items()}
    assert losses == pytest.approx({"frozen": -0.5, "all": 0.5, "random_like": 0.25})


def two_tasks(success: float, loss: float) -> ItemScores:
    items: list[Item] = [(task, None, f"{task}{n}") for task in "ab" for n in range(20)]
    right = {item: float(int(item[2][1:]) < round(success * 20)) for item in items}
    zero = dict.fromkeys(items, 0.0)
    more: list[Item] = [("c", None, f"c{n}") for n in range(20)]  # no answers: its loss counts
    losses = {item: loss + 0.01 * (n % 5) for n, item in enumerate([*items, *more])}
    return ItemScores.of({"greedy": right, "greedy.swapped": zero, "pass@1": right, "pass@1.swapped": zero, "loss": losses})


def test_loss_retention_and_single_tasks_stand_beside_success() -> None:
    table = {
        "frozen": {seed: two_tasks(0.5, 2.0) for seed in range(5)},
        "sft": {seed: two_tasks(0.8, 1.5) for seed in range(5)},
    }
    protected = Items.of(("a", None, f"a{n}") for n in range(10, 20))
    findings = Findings(table, "greedy", 0.05, protected)
    (contrast,) = contrasts(findings, [("sft", "frozen")])
    found: dict[str, Effect] = {effect.name: effect for effect in effects_of(findings, contrast)}
    assert found["success"].difference.value == pytest.approx(0.3)
    assert found["loss"].difference.value == pytest.approx(-0.5)
    assert (found["loss"].items, found["success"].items) == (60, 40)
    assert found["retention"].difference.value == pytest.approx(0.6)  # of items 10 to 19 six became right
    assert found["loss"].word is found["retention"].word is None
    single = {(effect.task, effect.name): effect.difference.value for effect in effects_by_task(findings, contrast)}
    success, loss = {(task, "success"): 0.3 for task in "ab"}, {(task, "loss"): -0.5 for task in "abc"}
    assert single == pytest.approx(success | loss)


def test_weights_are_permuted_to_others_and_stay_the_same_numbers() -> None:
    plan = Plan("x", (Stage("main", "sft", 5, {"a": 0.6, "b": 0.3, "c": 0.1}),))
    made = [permuted_weights(plan, seed).stages[0].weights for seed in range(30)]
    assert all(sorted(weights.values()) == [0.1, 0.3, 0.6] for weights in made)
    assert all(dict(weights) != {"a": 0.6, "b": 0.3, "c": 0.1} for weights in made)
    assert len({tuple(weights[task] for task in "abc") for weights in made}) == 5
    even = Plan("x", (Stage("main", "sft", 5, {"a": 0.5, "b": 0.5}),))
    assert permuted_weights(even, 0).stages[0].weights == {"a": 0.5, "b": 0.5}
    assert nulls_for_objective(("shuffled_levels", "permuted"), "sft") == ("shuffled_levels", "permuted_weights")
    assert nulls_for_objective(("permuted",), "grpo") == ("permuted",)

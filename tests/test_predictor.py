"""Predictor of success from prompts, in pure groups: what it learns, what judges it, what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from steer_world import json_round_trip

from mixwright.contracts import Pool, Scene
from mixwright.estimates.cell_states import room_to_learn
from mixwright.records import GroupOutcome, Plan, Signals, Stage
from mixwright.steer.answers import answer_key
from mixwright.steer.earned import NOT_KNOWN, UNSEEN_SHARE, EarnedByOthers
from mixwright.steer.engine import Engine
from mixwright.steer.gates import TooHard
from mixwright.steer.ledger import Ledger, read_rewards
from mixwright.steer.pool import make_pool
from mixwright.steer.predictor import MIN_GROUPS, START_WORTH, WORTH_KEPT_PER_GROUP, Predictor, share_following

GROUP = 8
PREDICT = {"selectors.difficulty": {"predict": True}}
WORDS = ("red", "blue", "green", "grey", "pink", "brown", "black", "white")
Answers = Callable[[int, np.random.Generator], GroupOutcome]


def easy(row: int) -> bool:
    return row % 2 == 0


def pool_of(count: int = 240, *, levels: Sequence[float | None] | None = None, prompts: bool = True) -> Pool:
    """One task; every other prompt has the word `easy`, and all have words that say nothing."""
    rng = np.random.default_rng(7)
    shown = [f"{' '.join(rng.choice(WORDS, 5))} {'easy' if easy(row) else 'tough'}" for row in range(count)]
    return make_pool([f"r{row}" for row in range(count)], ["t"] * count, levels, prompts=shown if prompts else None)


def group(pool: Pool, row: int, wins: int, step: int = 0, answers: Sequence[str] = ()) -> GroupOutcome:
    rewards = (1.0,) * wins + (0.0,) * (GROUP - wins)
    return GroupOutcome(pool.ids[row], "t", pool.cells[pool.cell_of[row]].level, step, rewards, answers=tuple(answers))


class World:
    """A predictor and its ledger, fed with groups of a known success."""

    def __init__(self, pool: Pool, success: tuple[float, float] = (0.9, 0.1), seed: int = 0) -> None:
        self.pool, self.success = pool, success
        self.ledger = Ledger(pool)
        self.predictor = Predictor(pool, self.ledger)
        self.rng = np.random.default_rng(seed)
        self.step = 0

    def feed(self, rows: np.ndarray, groups: Sequence[GroupOutcome], *, even: bool | np.ndarray = True) -> None:
        """One batch, as the engine hands it on."""
        self.predictor.expect(rows, np.broadcast_to(even, rows.shape))
        self.take(rows, groups)

    def take(self, rows: np.ndarray, groups: Sequence[GroupOutcome]) -> None:
        self.predictor.note_before_learning(rows)
        groups = read_rewards(groups, (0.0, 1.0))
        wins, tries = self.ledger.learn(groups, rows)
        self.predictor.learn(groups, rows, wins, tries)
        self.ledger.advance_to(self.step)
        self.step += 1

    def batches(self, count: int, *, even: bool = True, size: int = 8) -> World:
        for _ in range(count):
            rows = self.rng.choice(len(self.pool.ids), size, replace=False)
            wins = [self.rng.binomial(GROUP, self.success[0 if easy(row) else 1]) for row in rows.tolist()]
            made = [group(self.pool, row, won, self.step) for row, won in zip(rows.tolist(), wins, strict=True)]
            self.feed(rows, made, even=even)
        return self


def test_trust_rises_where_a_word_decides_success() -> None:
    world = World(pool_of()).batches(20)
    figures = world.predictor.figures()
    assert figures["trust"] > 0.99
    assert figures["skill"] > 0.2
    assert figures["judged"] == 20 * 8 - MIN_GROUPS, "of the first batch nothing was said"
    mean, error = figures["gain"]
    assert mean - 2 * error > 0
    said = world.predictor.success(np.arange(240))
    assert said[::2].mean() > 0.8
    assert said[1::2].mean() < 0.2
    assert sum(count for count, _, _ in figures["calibration"]) == figures["judged"]


@pytest.mark.parametrize("seed", range(3))
def test_trust_does_not_rise_on_features_of_other_prompts(seed: int) -> None:
    pool = pool_of(4000)  # so many that no row comes again: of one that does, features of its own would tell
    assert pool.features is not None
    shuffled = replace(pool, features=np.random.default_rng(seed).permutation(pool.features))
    world = World(shuffled, seed=seed).batches(40)
    assert world.predictor.trust < 0.73, "that of the start"
    assert world.predictor.figures()["skill"] < 0.05


def test_worth_is_the_decayed_sum_of_log_ratios_by_hand() -> None:
    """A group of 8 right, of which features said p with concentration c, and the task q with d, as Polya urns."""
    world = World(pool_of()).batches(1)
    rows = np.array([0])
    said = float(world.predictor.expect(rows, np.array([True]))[0])
    ((expected, p, c, q, d),) = world.predictor._pending_predictions[0]
    assert expected == said

    def urn(mean: float, concentration: float) -> float:
        return sum(np.log((mean * concentration + k) / (concentration + k)) for k in range(GROUP))

    world.take(rows, [group(world.pool, 0, GROUP, 1)])
    gain = urn(p, c) - urn(q, d)
    assert world.predictor.log_odds == pytest.approx(WORTH_KEPT_PER_GROUP * START_WORTH + gain, abs=1e-8)
    assert world.predictor.trust == pytest.approx(1 / (1 + np.exp(-world.predictor.log_odds)))
    assert world.predictor.figures()["judged"] == 1
    assert world.predictor.figures()["skill"] == pytest.approx(gain, abs=1e-8)
    assert not world.predictor._pending_predictions, "what was said once is judged once"


def test_only_even_draws_judge() -> None:
    world = World(pool_of()).batches(10, even=False)
    figures = world.predictor.figures()
    assert (figures["judged"], figures["skill"], figures["gain"], figures["calibration"]) == (0, None, None, [])
    assert world.predictor.log_odds == START_WORTH
    assert world.predictor.success(np.array([0]))[0] > world.predictor.success(np.array([1]))[0], "but they teach"


def test_what_was_said_of_a_group_that_never_came_back_judges_no_later_one() -> None:
    """A batch may be lost, or nothing of a group be scored: the next group of the example followed the prediction."""
    world = World(pool_of()).batches(1)
    rows = np.array([4])
    world.predictor.expect(rows, np.array([True]))
    world.feed(rows, [group(world.pool, 4, 3, 1)], even=False)
    assert world.predictor.judged == 0
    world.predictor.expect(rows, np.array([True]))
    latest = float(world.predictor.expect(rows, np.array([True]))[0])
    world.take(rows, [group(world.pool, 4, 3, 2)])
    assert world.predictor.judged == 1
    assert world.predictor.bins[1].sum() == pytest.approx(latest)


def test_groups_that_never_come_back_take_no_more_and_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mixwright.steer.predictor.MOST_EXAMPLES_IN_FLIGHT", 50)
    world = World(pool_of()).batches(1)
    for _ in range(3):
        world.predictor.expect(np.arange(100, 240), np.ones(140, dtype=bool))
    kept = world.predictor.state()["told"]
    assert [example for example, *_ in kept] == [row for row in range(190, 240) for _ in range(2)], "two of each at most"


def test_nothing_is_said_and_nothing_followed_before_the_first_groups() -> None:
    world = World(pool_of())
    assert world.predictor.trust == 0
    assert share_following(world.predictor.trust, 0.1) == 0
    assert np.isnan(world.predictor.expect(np.arange(3), np.ones(3, dtype=bool))).all()


def test_own_groups_count_in_what_is_expected_and_not_in_what_is_drawn_by() -> None:
    world = World(pool_of()).batches(10)
    rows = np.array([[1, 3, 5]])
    before = world.predictor.sampled(rows, np.random.default_rng(3))[0]
    expected = world.predictor.success(rows[0])
    world.ledger.add(np.array([1]), world.ledger.step, np.array([8.0]), np.array([8.0]))
    assert np.array_equal(world.predictor.sampled(rows, np.random.default_rng(3))[0], before)
    after = world.predictor.success(rows[0])
    assert after[0] > expected[0], "by little: prompts of this world are alike, so that eight rollouts of one say little"
    assert np.array_equal(after[1:], expected[1:])


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 9), st.integers(0, 4))
def test_a_state_comes_back_to_the_byte_and_goes_on_exactly(seed: int, before: int, after: int) -> None:
    pool = pool_of(40)
    one, two = World(pool, seed=seed).batches(before, size=3), World(pool)
    one.predictor.expect(np.array([4, 4, 9]), np.array([True, True, True]))  # drawn ahead, not back yet
    two.predictor.restore(json_round_trip(one.predictor.state()))
    two.ledger.restore(json_round_trip(one.ledger.state()))
    two.rng, two.step = np.random.default_rng(seed + 1), one.step
    one.rng = np.random.default_rng(seed + 1)
    assert two.predictor.state() == one.predictor.state()
    assert two.batches(after, size=3).predictor.state() == one.batches(after, size=3).predictor.state()
    assert two.predictor.figures() == one.predictor.figures()


def test_tasks_with_levels_are_left_alone() -> None:
    """A pool whose task has levels is drawn to the same rows with prompts as without."""
    levels = [float(row % 3) for row in range(60)]

    def drawn(pool: Pool) -> list[int]:
        engine = engine_of(pool, selector="difficulty", options=PREDICT)
        rows: list[int] = []
        for step in range(6):
            batch = engine.draw(8)
            rows += batch
            engine.observe([group(pool, row, row % 9, step) for row in batch], Signals(step, 0.0, 1.0))
            assert engine.prediction() == {}
            assert np.isnan(engine.last_predictions[0]).all()
        return rows

    assert drawn(pool_of(60, levels=levels)) == drawn(pool_of(60, levels=levels, prompts=False))


def engine_of(pool: Pool, **stage: Any) -> Engine:
    return Engine(Plan("p", (Stage("s", "grpo", 9, {"t": 1.0}, **stage),)), pool, seed=1)


def test_selectors_that_do_not_predict_make_no_predictor() -> None:
    assert engine_of(pool_of(), selector="uniform").prediction() == {}
    assert engine_of(pool_of(), selector="difficulty").prediction() == {}, "off by default"
    assert engine_of(pool_of(), selector="difficulty", options=PREDICT).prediction() != {}


def test_the_engine_follows_the_prediction_says_so_and_draws_what_is_neither_mastered_nor_hopeless() -> None:
    """Prompts with `easy` are right half the time, all others never."""
    pool, rng = pool_of(), np.random.default_rng(0)
    engine = engine_of(pool, selector="difficulty", options=PREDICT)
    followed, evenly = [], []
    for step in range(60):
        batch = np.array(engine.draw(8))
        predicted, even = engine.last_predictions
        assert np.isnan(predicted).all() == (step < 1)
        if step >= 30:
            followed += [easy(row) for row in batch[~even].tolist()]
            evenly += [easy(row) for row in batch[even].tolist()]
        wins = [rng.binomial(GROUP, 0.5 if easy(row) else 0.0) for row in batch.tolist()]
        made = [group(pool, row, won, step) for row, won in zip(batch.tolist(), wins, strict=True)]
        engine.observe(made, Signals(step, 0.0, 1.0))
    assert np.mean(followed) > 0.8
    assert 0.05 < np.mean(evenly) < 0.8, "rows drawn the longest ago, so rather those that the prediction avoids"
    assert 0.03 < len(evenly) / (len(evenly) + len(followed)) < 0.25, "a tenth stays even"
    assert any(line.what == "prediction" and line.new is True for line in engine.take_decisions())


def test_s_by_hand_without_gold_answers() -> None:
    others = EarnedByOthers(None)

    def add(example: int, answers: str, rewards: Sequence[float], task: int = 0) -> float:
        made = GroupOutcome(f"r{example}", "t", None, 0, tuple(rewards), answers=tuple(answers))
        return others.add(example, task, made, float(np.mean(rewards)))

    assert add(0, "ab", (1, 0)) == NOT_KNOWN, "no other group yet"
    assert add(1, "ac", (1, 0)) == pytest.approx(1 / (1 + 2 * UNSEEN_SHARE)), "a earns 1 here, nobody knows of b"
    assert add(2, "aab", (1, 0, 0)) == pytest.approx((0.5 + 0.5 + 0) / (3 + 4 * UNSEEN_SHARE)), "a twice half, b, not c"
    assert add(0, "ab", (3, 1)) == pytest.approx((1 + 1 + 1 + 0) / (4 + 5 * UNSEEN_SHARE)), "own earlier group left out"
    assert add(5, "ab", (1, 0), task=1) == NOT_KNOWN, "answers of another task say nothing"
    assert add(6, "x", (1, 0)) == NOT_KNOWN, "not an answer per rollout"


def test_s_by_hand_with_gold_answers() -> None:
    golds = np.array([0, answer_key("b"), answer_key("z")])
    for example, s in ((1, (1 + 1) / 2), (2, (1 + 0) / 2)):
        others = EarnedByOthers(golds)
        others.add(0, 0, GroupOutcome("r0", "t", None, 0, (1.0, 0.0), answers=("a", "b")), 0.5)
        made = GroupOutcome("r", "t", None, 0, (1.0, 0.0), answers=("a", "c"))
        assert others.add(example, 0, made, 0.5) == pytest.approx(s), "a earns 1 here; b is right where it is the gold one"
    again = EarnedByOthers(golds)
    again.restore(json_round_trip(others.state()))
    assert again.state() == others.state()
    assert again.add(1, 0, made, 0.5) == others.add(1, 0, made, 0.5)


def test_prompts_that_are_right_whatever_is_answered_are_not_sought_out() -> None:
    """Half right: `easy` prompts by their own answer, the others by a coin, whatever is answered."""
    pool = pool_of()
    world, rng = World(pool), np.random.default_rng(2)
    for step in range(50):
        rows = rng.choice(240, 8, replace=False)
        made = []
        for row in rows.tolist():
            answers = rng.integers(8, size=GROUP)
            own = rng.random(GROUP) < 0.5
            answers = np.where(own, row % 8, answers) if easy(row) else answers
            rewards = answers == row % 8 if easy(row) else rng.random(GROUP) < 0.5
            shown = tuple(str(answer) for answer in answers.tolist())
            made.append(GroupOutcome(f"r{row}", "t", None, step, tuple(rewards.astype(float).tolist()), answers=shown))
        world.feed(rows, made)
    success, earned = world.predictor.sampled(np.tile(np.arange(240), (32, 1)), rng)
    skill, coins = np.arange(240) % 2 == 0, np.arange(240) % 2 == 1
    assert success[:, coins].mean() == pytest.approx(0.5, abs=0.12)
    assert earned[:, coins].mean() > 0.35
    assert earned[:, skill].mean() < 0.3
    worth = room_to_learn(success, earned) ** 4
    assert worth[:, skill].mean() > 2 * worth[:, coins].mean()


def gate_in(world: World, **options: float) -> TooHard:
    gate = TooHard(floor=0.2, **options)
    gate.begin(Scene(world.pool, world.ledger, Stage("s", "grpo", 9, {"t": 1.0}), world.predictor))
    return gate


def hard_cell() -> World:
    """Success of one cell lies under the floor as a whole; a sixth of its prompts have a word that makes them reachable."""
    rng = np.random.default_rng(7)
    shown = [f"{' '.join(rng.choice(WORDS, 5))} {'easy' if row % 6 == 0 else 'tough'}" for row in range(240)]
    pool = make_pool([f"r{row}" for row in range(240)], ["t"] * 240, prompts=shown)
    world = World(pool)
    for step in range(40):
        rows = world.rng.choice(240, 8, replace=False)
        wins = [world.rng.binomial(GROUP, 0.6 if row % 6 == 0 else 0.0) for row in rows.tolist()]
        made = [group(pool, row, won, step) for row, won in zip(rows.tolist(), wins, strict=True)]
        world.feed(rows, made)
    return world


def test_the_gate_admits_reachable_prompts_of_a_cell_that_is_too_hard() -> None:
    world = hard_cell()
    assert world.predictor.trust > 0.9
    evidence = world.ledger.lasting
    assert float(evidence.interval(0, 1.645)[1]) < 0.2, "the cell as a whole would be refused"
    gate = gate_in(world)
    world.predictor.note_before_learning(np.arange(240))
    answers = [gate.admit(group(world.pool, row, 4)) for row in range(240)]
    assert all(answer.by_prompt_alone == answer.admitted for answer in answers), "what is refused is refused with its cell"
    assert np.mean([answer.admitted for answer in answers[::6]]) > 0.9
    assert np.mean([answer.admitted for row, answer in enumerate(answers) if row % 6]) < 0.1
    assert {answer.cause for answer in answers if not answer.admitted} == {"too hard"}


def test_the_gate_never_judges_by_the_current_group() -> None:
    world = hard_cell()
    gate, rows = gate_in(world), np.array([1, 6])
    world.predictor.note_before_learning(rows)
    before = [gate.admit(group(world.pool, row, 4)).admitted for row in rows.tolist()]
    assert before == [False, True]
    world.ledger.learn(read_rewards([group(world.pool, 1, 8, 41), group(world.pool, 6, 0, 41)], (0.0, 1.0)), rows)
    assert [gate.admit(group(world.pool, row, won)).admitted for row, won in ((1, 8), (6, 0))] == before
    thought = [world.predictor.predict_with_upper(row, 1.645)[0] for row in rows.tolist()]
    world.predictor.note_before_learning(rows)  # the next batch: their own earlier groups count now
    after = [world.predictor.predict_with_upper(row, 1.645)[0] for row in rows.tolist()]
    assert after[0] > thought[0]
    assert after[1] < thought[1]


def test_the_gate_leaves_prompts_to_the_cell_while_the_prediction_is_not_trusted() -> None:
    world = hard_cell()
    world.predictor.log_odds = -1.0
    answer = gate_in(world).admit(group(world.pool, 6, 4))
    assert (answer.admitted, answer.cause, answer.by_prompt_alone) == (False, "too hard", False)


def test_the_engine_refuses_by_prompt() -> None:
    """The whole way: gate and selector together; what is refused are prompts of the hopeless kind."""
    pool, rng = pool_of(), np.random.default_rng(0)
    options = PREDICT | {"gates.too_hard": {"floor": 0.2}}
    engine = engine_of(pool, selector="difficulty", gates=("too_hard",), options=options)
    refused: list[bool] = []
    for step in range(60):
        batch = engine.draw(8)
        made = [group(pool, row, rng.binomial(GROUP, 0.4 if easy(row) else 0.0), step) for row in batch]
        actions = engine.observe(made, Signals(step, 0.0, 1.0))
        refused += [easy(int(action.target[1:])) for action in actions if action.kind == "refuse" and step > 20]
    assert len(refused) > 5
    assert np.mean(refused) < 0.1

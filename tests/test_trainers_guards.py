"""What guards a steered GRPO run: canaries, settings refused at the start."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from datasets import Dataset
from trainers_tiny import UNIFORM, grpo_config, make, parameters, read, rows, script

from mixwright import SteeredGRPOTrainer, SteeringConfig
from mixwright.errors import InputError
from mixwright.records import Action, Alarm, CellAssessment, Plan, Stage
from mixwright.steer.canaries import WHY_UNMEASURED
from mixwright.steer.pool import answer_key
from mixwright.trainers.canaries import schedule_passes
from mixwright.trainers.steering import make_dataset_pool, make_run, with_row_numbers

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*gradient_checkpointing.*:FutureWarning"  # TRL 1.16 still sets transformers' older name
)


def mastered_plan() -> Plan:
    cells = (
        CellAssessment("letters", 1.0, "mastered", 0.9, 0.0, 64, 12),
        CellAssessment("sums", 2.0, "reachable", 0.3, 0.0, 64, 12),
    )
    stage = Stage("grpo", "grpo", 10, {"letters": 0.5, "sums": 0.5}, monitors=("canary",), controllers=("drift",))
    return Plan("test", (stage,), cells)


def test_canaries_are_charged_reproducible_and_leave_the_run_alone(tmp_path: Path) -> None:
    results = []
    for every in (2, 1000):
        trainer = make(
            SteeredGRPOTrainer,
            tmp_path / str(every),
            {"max_steps": 4},
            steering=SteeringConfig(mastered_plan(), canary_every=every),
        )
        watched: list[Any] = []
        watch = trainer.steered.engine.watch
        trainer.steered.engine.watch = lambda signals, watch=watch, watched=watched: (
            watched.append(signals),
            watch(signals),
            [],
        )[2]
        trainer.train()
        results.append((trainer, watched))
    (often, signals), (once, first) = results
    count = len(often.steered.engine.canaries)
    assert count == 3  # a quarter of the 12 items of the mastered cell
    assert [s.step for s in signals] == [0, 2, 4]
    assert not first, "a run too short for a second look has no first one"
    assert once.steered.rollouts == 4 * 8
    assert signals[0].kl_nats == pytest.approx(0, abs=1e-9)
    assert all(c.kl_nats > 0 for c in signals[2].canaries)
    assert signals[2].canaries[0].task == "letters"
    lines = read(tmp_path / "2", "steps.jsonl")
    assert [line["kl_nats"] for line in lines] == [signals[0].kl_nats, signals[1].kl_nats, None, signals[2].kl_nats]
    assert often.steered.rollouts == 4 * 8 + count * 4  # one sampled and three greedy passes
    assert torch.equal(parameters(often), parameters(once))  # probing moves neither weights nor random state
    drawn = set(often.steered.draws.rows)
    assert not drawn & set(often.steered.engine.canaries)


def test_a_run_that_cannot_pay_a_second_look_has_no_canaries_and_says_so(tmp_path: Path) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path / "short", {"max_steps": 3}, steering=SteeringConfig(mastered_plan()))
    trainer.train()
    assert trainer.canaries is None
    assert trainer.steered.rollouts == 3 * 8, "all that was generated was trained on"
    (told,) = [line for line in read(tmp_path / "short", "decisions.jsonl") if line["what"] == "canaries off"]
    assert "3 steps leave no time for a second pass" in told["because"]
    with pytest.raises(InputError, match="canary_every of 0 or more"):
        make(SteeredGRPOTrainer, tmp_path / "less", steering=SteeringConfig(mastered_plan(), canary_every=-1))


@pytest.mark.parametrize(
    ("rows", "micro_steps", "processes", "passes", "every", "steps", "within"),
    [
        # 64 / (0.025 x 64 x 1.25) = 32 steps apart; 200 steps pay 6.25 passes, 2 of them at the start: 4 in 200 steps
        (64, 1, 1, 1.25, 32, 200, 50),
        (8, 4, 1, 1.25, 64, 200, 200),  # 64 / (0.025 x 32 x 1.25) = 64; 3.1 passes: 1 later
        (8, 4, 8, 1.25, 64, 200, 200),  # each process runs all canaries, and trains on its own rows only
        (512, 1, 1, 1.25, 5, 1000, 5),
    ],
)
def test_steps_between_passes_by_hand(
    rows: int, micro_steps: int, processes: int, passes: float, every: int, steps: int, within: int
) -> None:
    sizes = {"per_device_train_batch_size": rows, "gradient_accumulation_steps": micro_steps}
    args = SimpleNamespace(**sizes, world_size=processes, max_steps=-1)
    notes: list[tuple[Any, ...]] = []
    run: Any = SimpleNamespace(batches=0, note=lambda *said: notes.append(said))
    trainer = SimpleNamespace(args=args)
    assert schedule_passes(trainer, run, None, 64, passes) == every
    assert schedule_passes(trainer, run, 7, 64, passes) == 7
    because = f"64 items, while each process trains on {rows * micro_steps} per step; canaries may cost 2.5% of the work"
    assert notes == ([(0, f"canaries every {every} steps", because)] if every > 5 else [])
    args.max_steps = steps
    assert schedule_passes(trainer, run, None, 64, passes) == within
    assert schedule_passes(trainer, run, steps + 1, 64, passes) == 0
    assert notes[-1][1] == "canaries off"
    args.max_steps = 4
    assert schedule_passes(trainer, run, None, 64, passes) == 0
    assert notes[-1][2] == f"{because}; 4 steps leave no time for a second pass, so no loss could be seen"


def test_a_pass_in_which_an_accelerator_writes_counts_as_a_step() -> None:
    """Passes may take 2.5 of 100 steps, two of them at the start; items that cost more than a step count all."""
    args = SimpleNamespace(per_device_train_batch_size=128, gradient_accumulation_steps=1, max_steps=-1)
    run: Any = SimpleNamespace(batches=0, note=lambda *said: None)
    trainer = SimpleNamespace(args=args)
    assert schedule_passes(trainer, run, None, 32, 1.25) == 8
    assert schedule_passes(trainer, run, None, 32, 1.25, takes_a_step=True) == 40
    assert schedule_passes(trainer, run, None, 320, 1.25, takes_a_step=True) == 80
    args.max_steps = 200
    assert schedule_passes(trainer, run, None, 32, 1.25, takes_a_step=True) == 67


def test_alarms_leave_the_draws_alone(tmp_path: Path) -> None:
    plan = mastered_plan()
    stage = replace(plan.stages[0], weights={"letters": 0.125, "sums": 0.875}, controllers=())
    steering = SteeringConfig(replace(plan, stages=(stage,)), canary_every=1)
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 12, "per_device_train_batch_size": 16}, steering=steering)
    monitor = trainer.steered.engine._monitors[0]
    lost = Alarm("canary", 0, "letters", 0.5, 0.1, "letters fell")
    monitor.inspect = lambda signals: [lost] if signals.canaries and signals.step in (2, 3) else []
    trainer.train()
    lines = read(tmp_path, "decisions.jsonl")
    assert [d["step"] for d in lines if d["what"] == "alarm.canary"] == [2, 3]
    assert not [d for d in lines if d["what"].startswith("not executed")]
    proof = trainer.steered.proof()
    steps = read(tmp_path, "steps.jsonl")
    assert min(line["lr_factor"] for line in steps) == 0.25  # two alarms
    letters = [line["scored"].get("letters", 0) / 4 for line in steps]
    assert proof["wanted"]["letters"] == pytest.approx(0.125)
    assert [sum(pair) for pair in zip(letters[::2], letters[1::2], strict=True)] == [0.25] * 6  # one of eight draws


def test_the_default_plan_has_no_kl_penalty_where_there_is_no_coefficient_to_move(tmp_path: Path) -> None:
    for beta, controllers in ((0.0, []), (0.01, ["controllers.drift"])):
        pool = make_dataset_pool(with_row_numbers(rows(), "grpo"), SteeringConfig())
        args = grpo_config(tmp_path / str(beta))
        engine = make_run(SteeringConfig(), pool, objective="grpo", args=args, beta=beta).engine
        plugins = engine.state_dict()["made_of"]["plugins"]
        assert [name for name in plugins if name.startswith("controllers")] == controllers
        assert "gates.too_hard" in plugins


def test_options_are_laid_over_the_default_plan(tmp_path: Path) -> None:
    drawn = []
    for options in ({}, {"selectors.difficulty": {"candidates": 1}}):
        steering = SteeringConfig(options=options)
        pool = make_dataset_pool(with_row_numbers(rows(), "grpo"), steering)
        engine = make_run(steering, pool, objective="grpo", args=grpo_config(tmp_path), beta=0.0).engine
        drawn.append(engine.draw(64))
        assert "gates.too_hard" in engine.state_dict()["made_of"]["plugins"], "the rest of the plan stays"
    assert drawn[0] != drawn[1]
    with pytest.raises(InputError, match="keyword arguments under engine"):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(options={"engine": 3}))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("steering", "passes"),
    [
        (True, 0),
        (SteeringConfig(canary_every=1), 4),  # sampled once, answered at the start and after each of two steps
    ],
)
def test_canaries_that_nobody_measured_are_off_unless_asked_for(tmp_path: Path, steering: Any, passes: int) -> None:
    trainer = make(SteeredGRPOTrainer, tmp_path, {"max_steps": 2}, steering=steering)
    trainer.train()
    run = trainer.steered
    held = len(run.engine.canaries)
    assert held == (6 if passes else 0)  # a quarter of the 12 rows of either task
    assert run.proof()["canary_rollouts"] == passes * held
    assert run.rollouts == 2 * 8 + passes * held
    assert (trainer.canaries is None) == (not passes)
    told = [line["because"] for line in read(tmp_path, "decisions.jsonl") if line["what"] == "canaries off"]
    assert len(told) == (not passes)
    assert all(because == WHY_UNMEASURED for because in told)


def test_unusable_input_is_refused_before_training(tmp_path: Path) -> None:
    absent = Plan("test", (Stage("grpo", "grpo", 10, {"letters": 0.5, "poems": 0.5}),))
    with pytest.raises(InputError, match="poems"):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(absent))
    sft = Plan("test", (Stage("sft", "sft", 10, {"letters": 1.0}),))
    with pytest.raises(InputError, match="objective is grpo"):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(sft))
    with pytest.raises(InputError, match="nowhere"):
        make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(columns={"task": "nowhere"}))
    levels = rows().remove_columns("level").add_column("level", ["Level 5"] * 24)
    with pytest.raises(InputError, match="level column"):
        make(SteeredGRPOTrainer, tmp_path, steering=True, train_dataset=levels)
    with pytest.raises(InputError, match="SteeringConfig"):
        make(SteeredGRPOTrainer, tmp_path, steering=3)
    with pytest.raises(InputError, match=r"plan\.yaml"):
        make(SteeredGRPOTrainer, tmp_path, steering=str(tmp_path / "plan.yaml"))
    assert not (tmp_path / "steering").exists()


def test_a_run_whose_refusals_do_not_hold_is_stopped_before_its_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def distinct(completions: list[str], **_: Any) -> list[float]:
        return [place / 8 for place in range(len(completions))]

    trainer = make(SteeredGRPOTrainer, tmp_path, steering=True, reward_funcs=distinct)
    script(trainer, lambda groups: [Action("refuse", groups[0].example, None, "test")])
    monkeypatch.setattr("mixwright.trainers.grpo.mask_refused", lambda rewards, groups, size: rewards)
    with pytest.raises(RuntimeError, match="a refused group has advantages other than 0"):
        trainer.train()
    assert trainer.state.global_step == 0


def test_data_without_tasks_are_one_task_and_a_warning_says_so(caplog: pytest.LogCaptureFixture) -> None:
    data = with_row_numbers(Dataset.from_dict({"prompt": ["a", "b"], "topic": ["x", "y"]}), "t")
    assert make_dataset_pool(data, SteeringConfig()).tasks == ("all",)
    (said,) = [record for record in caplog.records if record.name == "mixwright"]
    assert said.levelname == "WARNING"
    assert "(its columns: prompt, topic)" in said.getMessage()
    assert "'all'" in said.getMessage()
    caplog.clear()
    assert make_dataset_pool(data, SteeringConfig(columns={"task": "topic"})).tasks == ("x", "y")
    assert make_dataset_pool(data, SteeringConfig(columns={"task": ""})).tasks == ("all",)
    assert not caplog.records


def test_the_plans_chance_levels_and_the_answers_of_the_rows_are_used(tmp_path: Path) -> None:
    cells = (
        CellAssessment("letters", 1.0, "lucky", 0.5, 0.5, 64, 12),
        CellAssessment("sums", 2.0, "reachable", 0.3, 0.0, 64, 12),
    )
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=SteeringConfig(Plan("test", UNIFORM.stages, cells)))
    pool = trainer.steered.pool
    assert [cell.chance for cell in pool.cells] == [0.5, 0.0]
    assert pool.golds.tolist() == [answer_key(answer) for answer in rows()["answer"]]
    asked = rows().add_column("options", [["yes", "no"]] * 24).map(lambda row: {"answer": "No"})
    trainer = make(SteeredGRPOTrainer, tmp_path, steering=True, train_dataset=asked)
    assert set(trainer.steered.pool.golds.tolist()) == {answer_key("option 2")}

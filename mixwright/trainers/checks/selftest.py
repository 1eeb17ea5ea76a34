"""Self-test of the machinery before training; any failed check stops the run and names itself.

Draws come from the engine's own state, which is put back afterwards.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import torch
from trl.trainer.utils import RepeatSampler

from mixwright.steer.beside.run import DrawLog, RunSteering
from mixwright.trainers.rewards import mask_refused
from mixwright.trainers.sampler import SteeredSampler

SHARE_DRAWS = 512
"""Draws that the shares are compared on."""


def check_draws(run: RunSteering, sampler: SteeredSampler) -> list[str]:
    """Two batches in TRL's order with whole groups, and shares as wanted; returns the names of the checks passed.

    Raises:
        RuntimeError: naming the check that failed.
    """
    engine_state = run.engine.state_dict()
    try:
        _check_order(run.engine.draw, sampler)
        shares = run.engine.wanted_shares()
        drawn_by_task = Counter(run.pool.tasks[run.pool.task_of[row]] for row in run.engine.draw(SHARE_DRAWS))
    finally:
        run.engine.load_state_dict(engine_state)
    _require("state restored", run.engine.state_dict() == engine_state, "the test changed the engine's state")
    for task, weight in shares.items():
        gap = abs(drawn_by_task[task] - weight * SHARE_DRAWS)
        # Low-discrepancy drawing stays within 1 of the share; 2 % allows for a start mid-cycle.
        message = f"{task}: {drawn_by_task[task]} of {SHARE_DRAWS} draws, wanted {weight:.3f}"
        _require("shares as wanted", gap <= 3 + 0.02 * SHARE_DRAWS, message)
    return ["groups whole", "TRL's order", "shares as wanted", "state restored"]


def _check_order(draw: Callable[[int], Sequence[int]], sampler: SteeredSampler) -> None:
    """Two batches through a sampler like the live one, against TRL's own RepeatSampler on the same rows."""
    rows_per_batch, repeats, times_served = sampler.batch_size, sampler.mini_repeat_count, sampler.repeat_count
    log = DrawLog(draw)
    served_rows = list(
        SteeredSampler(
            log, 2 * rows_per_batch, batch_size=rows_per_batch, mini_repeat_count=repeats, repeat_count=times_served
        )
    )
    groups = [served_rows[start : start + repeats] for start in range(0, len(served_rows), repeats)]
    _require("groups whole", all(len(set(group)) == 1 for group in groups), f"{repeats} completions do not share a row")
    expected_positions = RepeatSampler(
        range(2 * rows_per_batch),
        mini_repeat_count=repeats,
        batch_size=rows_per_batch,
        repeat_count=times_served,
        shuffle=False,
    )
    expected = [log.rows[position] for position in expected_positions]
    _require("TRL's order", served_rows == expected, "the index order differs from RepeatSampler's")


def check_refusal(trainer: Any) -> str:
    """Push made-up generation batches through TRL's own scoring: a refused group has advantage 0, an admitted one has not.

    One-token completions stand in for generation, made-up rewards for the user's functions; the trainer's metrics, logs
    and token counts are put back.

    Raises:
        RuntimeError: naming the check.
    """
    if trainer.tools or trainer.environment_factories is not None:
        return "refused group has advantage 0 (checked at each refusal instead: tools or environments are in use)"
    group_size = trainer.num_generations
    rewards = torch.zeros(trainer.args.generation_batch_size, len(trainer.reward_funcs))
    heaviest = int(trainer.reward_weights.abs().argmax())  # the others stay equal, so that weights cannot cancel out
    rewards[:, heaviest] = (torch.arange(len(rewards)) % 2).float()
    admitted = _advantages(trainer, rewards)
    signal = bool((admitted != 0).all()) or not float(trainer.reward_weights[heaviest])
    _require("admitted group has a signal", signal, f"{admitted[:group_size].tolist()}")
    refused = _advantages(trainer, mask_refused(rewards, [0], group_size))[:group_size]
    _require("refused group has advantage 0", bool((refused == 0).all()), f"{refused.tolist()}")
    return "refused group has advantage 0"


def _advantages(trainer: Any, rewards: torch.Tensor) -> torch.Tensor:
    """Advantages that TRL gives to a reward table, gathered over processes."""
    end_tokens = getattr(trainer, "eos_token_ids", None) or [trainer._tokenizer.eos_token_id]  # TRL before 1.14 knows one
    rows_per_process, end_token = len(rewards) // trainer.accelerator.num_processes, end_tokens[0]
    rows = [dict(trainer.train_dataset[0]) for _ in range(rows_per_process)]
    made_up_output = {
        "prompt_ids": [[end_token]] * rows_per_process,
        "completion_ids": [[end_token]] * rows_per_process,
        "logprobs": [[0.0]] * rows_per_process,
    }
    trainer_state = (trainer._metrics, trainer._logs, trainer.rollout_func, trainer.model.training)
    tokens = trainer.state.num_input_tokens_seen
    trainer._metrics, trainer._logs = copy.deepcopy(trainer_state[:2])
    trainer.rollout_func, trainer.made_up_rewards = (lambda prompts, _: dict(made_up_output)), rewards
    trainer.model.train()
    try:
        return trainer.accelerator.gather(trainer._generate_and_score_completions(rows)["advantages"])
    finally:
        trainer._metrics, trainer._logs, trainer.rollout_func = trainer_state[:3]
        trainer.made_up_rewards, trainer.state.num_input_tokens_seen = None, tokens
        trainer.model.train(trainer_state[3])


def _require(name: str, passed: bool, message: str) -> None:
    if not passed:
        raise RuntimeError(f"start-up self-test {name!r} failed: {message}. Train with steering=None or report this.")

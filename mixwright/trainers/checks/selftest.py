"""Start-up self-test: what steering relies on is tried before the first step; a check that fails stops the run by its name.

Draws come from the engine's own state, which is put back afterwards.
"""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import torch
from trl.trainer.utils import RepeatSampler

from mixwright.steer.beside.run import DrawLog, RunSteering
from mixwright.trainers.rewards import mask_refused
from mixwright.trainers.sampler import SteeredSampler

SHARE_DRAWS = 512
"""Draws that the shares are compared on."""


def check_start(trainer: Any) -> list[str]:
    """Try the draws of a steered trainer and, in GRPO, a refusal; returns the names of the checks passed.

    Raises:
        RuntimeError: naming the check that failed.
    """
    sampler, checks = trainer.hooks.sampler, check_draws(trainer.steered)
    layout = {name: getattr(sampler, name) for name in ("batch_size", "mini_repeat_count", "repeat_count")}
    numbers = DrawLog(lambda count: range(len(numbers), len(numbers) + count))
    row_count = 2 * sampler.batch_size
    served, expected = SteeredSampler(numbers, row_count, **layout), RepeatSampler(range(row_count), shuffle=False, **layout)
    _require("groups whole, in TRL's order", list(served) == list(expected), "the order differs from RepeatSampler's")
    checks.append("groups whole, in TRL's order")
    if trainer.steered.objective == "grpo":
        checks.append(_check_refusal(trainer))
    return checks


def check_draws(run: RunSteering) -> list[str]:
    """Compare the shares of some draws with what is wanted; returns the names of the checks passed.

    Raises:
        RuntimeError: naming the check that failed.
    """
    engine_state, shares = run.engine.state_dict(), run.engine.wanted_shares()
    drawn_by_task = Counter(run.pool.tasks[run.pool.task_of[row]] for row in run.engine.draw(SHARE_DRAWS))
    run.engine.load_state_dict(engine_state)
    _require("state restored", run.engine.state_dict() == engine_state, "the test changed the engine's state")
    for task, share in shares.items():
        # Low-discrepancy drawing stays within 1 of the share; 2 % allows for a start mid-cycle.
        is_near = abs(drawn_by_task[task] - share * SHARE_DRAWS) <= 3 + 0.02 * SHARE_DRAWS
        _require("shares as wanted", is_near, f"{task}: {drawn_by_task[task]} of {SHARE_DRAWS} draws, wanted {share:.3f}")
    return ["shares as wanted", "state restored"]


def _check_refusal(trainer: Any) -> str:
    """Let TRL score a made-up generation batch with and without a refusal; returns the name of the check."""
    if trainer.tools or trainer.environment_factories is not None:
        return "refused group has advantage 0 (checked at each refusal instead: tools or environments are in use)"
    rewards = torch.zeros(trainer.args.generation_batch_size, len(trainer.reward_funcs))
    heaviest = int(trainer.reward_weights.abs().argmax())  # the others stay equal, so that weights cannot cancel out
    rewards[:, heaviest] = (torch.arange(len(rewards)) % 2).float()
    admitted, refused = (
        _advantages(trainer, mask_refused(rewards, groups, trainer.num_generations))[: trainer.num_generations]
        for groups in ([], [0])
    )
    has_signal = bool((admitted != 0).all()) or not float(trainer.reward_weights[heaviest])
    _require("admitted group has a signal", has_signal, f"{admitted.tolist()}")
    _require("refused group has advantage 0", bool((refused == 0).all()), f"{refused.tolist()}")
    return "refused group has advantage 0"


def _advantages(trainer: Any, rewards: torch.Tensor) -> torch.Tensor:
    """Return the advantages that TRL gives to a reward table, gathered over processes; puts back what TRL counts."""
    end_tokens = getattr(trainer, "eos_token_ids", None) or [trainer._tokenizer.eos_token_id]  # TRL before 1.14 knows one
    row_count = len(rewards) // trainer.accelerator.num_processes
    tokens = [end_tokens[:1]] * row_count
    made_up_output = {"prompt_ids": tokens, "completion_ids": tokens, "logprobs": [[0.0]] * row_count}
    kept = {name: getattr(trainer, name) for name in ("_metrics", "_logs", "rollout_func")}
    was_training, tokens_seen = trainer.model.training, trainer.state.num_input_tokens_seen
    trainer._metrics, trainer._logs = copy.deepcopy((trainer._metrics, trainer._logs))
    trainer.rollout_func = lambda prompts, _: dict(made_up_output)
    trainer._calculate_rewards = lambda *_: rewards.to(trainer.accelerator.device)
    trainer.model.train()
    try:
        rows = [dict(trainer.train_dataset[0]) for _ in range(row_count)]
        return trainer.accelerator.gather(trainer._generate_and_score_completions(rows)["advantages"])
    finally:
        del trainer._calculate_rewards
        vars(trainer).update(kept)
        trainer.state.num_input_tokens_seen = tokens_seen
        trainer.model.train(was_training)


def _require(name: str, passed: bool, message: str) -> None:
    if not passed:
        raise RuntimeError(f"start-up self-test {name!r} failed: {message}. Train with steering=None or report this.")

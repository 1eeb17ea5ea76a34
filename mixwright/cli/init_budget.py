"""Budget of `mixwright run --init --budget`: a dry run is timed, and sizes are chosen that the run will end within it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from mixwright.cli.dry_run import held_out_data, time_configs
from mixwright.cli.proposals import LEARNING_RATES, LORA_SETTINGS, Proposal
from mixwright.config import RunConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InputError
from mixwright.learner.bases import TINY_PREFIX
from mixwright.opening import start_workers
from mixwright.trial.dry_run import Timing
from mixwright.trial.fitting import Fitted, fit_run, least_seconds
from mixwright.workers.progress import format_duration


def fit_proposal(found: Proposal, seconds: float, say: Callable[[str], None]) -> Proposal:
    """The proposal with sizes for a budget, and what they will see among its notes.

    Args:
        found: settings without a limit of time, their paths as they are from the working directory.
        seconds: that the run may take.
        say: told what is done.

    Raises:
        InputError: too short for any trial that says something, or what the dry run refuses.
    """
    corpus = read_corpus(found.config.corpus)
    data = held_out_data(found.config, corpus)
    if not data.cells:
        raise InputError("held-out rows, for a budget", "none", "Give some: --eval FILE.")
    configs = _variants(found.config)
    say("budget: items and steps are timed first, in about two minutes")
    with start_workers(found.config) as workers:
        timed = time_configs(list(configs.values()), workers, Path())
    timings = {name: (config, timing) for (name, config), timing in zip(configs.items(), timed, strict=True)}
    fitted = fit_run(timings, data, seconds)
    if fitted is None:
        least = format_duration(least_seconds(timings, data))
        remedy = "Allow more time, give fewer or shorter held-out rows, or only measure: mixwright measure --budget."
        raise InputError(
            f"a budget of {least} or more, for a trial that can say something", format_duration(seconds), remedy
        )
    twice = fit_run(timings, data, 2 * seconds)
    config = replace(fitted.config, trial=replace(fitted.config.trial, budget_minutes=round(seconds / 60, 2)))
    line = f"Budget: {_format(fitted)}. Twice the time: {_format(twice or fitted)}."
    return Proposal(config, [*found.notes, line], {**found.comments, **_comments(found.config, config, timings)})


def _variants(config: RunConfig) -> dict[str | None, RunConfig]:
    """The settings for all weights and for LoRA, where the model is a checkpoint; else as they are."""
    if config.model.path == TINY_PREFIX or config.model.adapter is not None:
        return {config.train.adapter: config}
    rate = LEARNING_RATES[config.train.objective]
    lora = {**LORA_SETTINGS, "learning_rate": 10 * rate}
    every = replace(config.train, adapter=None, adapters={}, learning_rate=rate)
    low = replace(every, adapter="lora", adapters={"lora": lora})
    return {"lora": replace(config, train=low), None: replace(config, train=every)}


def _format(found: Fitted) -> str:
    """Room, weights, sizes and time, and what they will see."""
    config = found.config
    weights = "LoRA" if config.train.adapter == "lora" else "all weights"
    weights = "a tiny model" if config.model.path == TINY_PREFIX else weights
    told = f"{config.measure.max_new_tokens} tokens, {weights}, {config.train.steps} steps, {config.trial.seeds} seeds, "
    told += f"{found.items} items: {format_duration(found.seconds)}"
    return told if found.visible is None else f"{told}; would see {100 * found.visible:.0f} points between trained arms"


def _comments(
    before: RunConfig, config: RunConfig, timings: Mapping[str | None, tuple[RunConfig, Timing]]
) -> dict[str, str]:
    """Why the sizes are what they are."""
    why = {}
    for section, name in (("measure", "items"), ("measure", "samples"), ("train", "steps"), ("trial", "seeds")):
        old, new = (getattr(getattr(one, section), name) for one in (before, config))
        if old != new:
            why[f"{section}.{name}"] = f"For the budget; without one {old}."
    if len(timings) > 1:
        steps = {name: f"{timing.step:.2g}" for name, (_, timing) in timings.items()}
        why["train.adapter"] = f"A step takes {steps['lora']} s with LoRA, and {steps[None]} s with all weights."
    return why

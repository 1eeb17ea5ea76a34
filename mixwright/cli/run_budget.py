"""Budget of a run, and of mining that is tried: a few items and steps are timed, then sizes are chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mixwright.cli.budget import Budget
from mixwright.cli.dry_run import held_out_data, time_configs
from mixwright.cli.output import say
from mixwright.cli.proposals import LEARNING_RATES, lora_settings
from mixwright.config import MineConfig, RunConfig
from mixwright.corpus import read_corpus
from mixwright.errors import InputError
from mixwright.learner.bases import TINY_PREFIX
from mixwright.mine.choosing import check_row_count
from mixwright.mine.job import options_of
from mixwright.mine.stage import make_miner
from mixwright.records import to_data
from mixwright.run.folder import RunFolder, read_yaml
from mixwright.run.progress import format_duration
from mixwright.run.ray_workers import start_workers
from mixwright.trial.fitting import FittedRun, Timings, fit_run, shortest_budget_seconds, with_sizes

if TYPE_CHECKING:
    from mixwright.contracts import Miner

MINING_SHARE = 0.4
"""Share of a budget that short trainings of a miner may take; the rest is for the trial of what is mined."""
MIN_SHORT_STEPS = 20
"""Steps of a short training below which it is not taken for one."""


def time_variants(config: RunConfig, relative_to: Path) -> Timings:
    """What items and steps take, for LoRA and for all weights where the model is a checkpoint. Takes about two minutes.

    Args:
        config: settings of a run.
        relative_to: folder that relative paths in the settings start from.
    """
    if config.model.path == TINY_PREFIX or config.model.adapter is not None:
        return _time_configs({config.train.adapter: config}, relative_to)
    learning_rate = LEARNING_RATES[config.train.objective]
    all_weights = replace(config.train, adapter=None, adapters={}, learning_rate=learning_rate)
    lora = replace(all_weights, adapter="lora", adapters={"lora": lora_settings(config.train.objective)})
    return _time_configs({"lora": replace(config, train=lora), None: replace(config, train=all_weights)}, relative_to)


def _time_configs(configs: Mapping[str | None, RunConfig], relative_to: Path) -> Timings:
    say("budget: items and steps are timed first, in about two minutes")
    with start_workers(next(iter(configs.values())).trial) as workers:
        timings = time_configs(list(configs.values()), workers, relative_to)
    return {name: (config, timing) for (name, config), timing in zip(configs.items(), timings, strict=True)}


def format_sizes(fitted: FittedRun) -> str:
    """Room, weights, sizes and time, and what they will see."""
    config = fitted.config
    weights = "LoRA" if config.train.adapter == "lora" else "all weights"
    weights = "a tiny model" if config.model.path == TINY_PREFIX else weights
    text = f"{config.measure.max_new_tokens} tokens, {weights}, {config.train.steps} steps, {config.trial.seeds} seeds, "
    text += f"{fitted.items} items: {format_duration(fitted.seconds)}"
    return (
        text if fitted.detectable is None else f"{text}; would see {100 * fitted.detectable:.0f} points between trained arms"
    )


@dataclass(frozen=True, slots=True)
class ShortTrainings:
    """What the short trainings of a miner take."""

    count: int
    """Trainings; 0 for a miner that makes none."""
    steps: int
    """Steps of each, as the settings have it."""
    step_seconds: float
    """Of one step, in one process, all weights."""

    def seconds(self, steps: int) -> float:
        """Of all of them, with so many steps each."""
        return self.count * steps * self.step_seconds

    def most_steps(self, seconds: float) -> int | None:
        """Steps of each that a time allows, the settings' at most; None where it is too short for `MIN_SHORT_STEPS`."""
        fewest = min(self.steps, MIN_SHORT_STEPS)
        if self.seconds(fewest) > seconds:
            return None
        return min(self.steps, max(fewest, int(seconds / max(self.seconds(1), 1e-12))))


def fit_mining(
    settings: RunConfig, run: RunFolder, relative_to: Path, miner: str, keep: float | None, budget: Budget
) -> RunConfig:
    """The settings with steps of the miner's short trainings, and with steps, items, samples and seeds of the trial.

    Nothing else is changed: learning rate and adapter are the user's. A run folder that was begun with the same settings and
    budget keeps its sizes, so that a command that was killed goes on.

    Args:
        settings: of the run, with the table of the miner as `trial.data`.
        run: its folder.
        relative_to: folder that relative paths in the settings start from.
        miner: name of the plug-in.
        keep: share of the rows; None takes the settings'.
        budget: of the whole command.

    Raises:
        InputError: too short for the short trainings, or for a trial that can say something; too few rows for the miner.
    """
    begun = read_yaml(run.path / "run.yaml", RunConfig) if (run.path / "run.yaml").is_file() else None
    if begun is not None and to_data(begun) == to_data(_with_sizes_of(begun, settings, miner)):
        return begun
    without_table = replace(settings, trial=replace(settings.trial, data=None))  # nothing is mined yet
    corpus = read_corpus(settings.corpus, relative_to=relative_to)
    plugin = make_miner(miner, options_of(settings.mine, miner, keep))
    check_row_count(len(corpus.select(split="train")), plugin.count_needed_rows())  # before minutes of timing
    data = held_out_data(settings, corpus)
    all_weights = replace(without_table, train=replace(settings.train, adapter=None, adapters={}))  # as short trainings do
    by_adapter = _time_configs({settings.train.adapter: without_table, None: all_weights}, relative_to)
    timings = {settings.train.adapter: (without_table, by_adapter[settings.train.adapter][1])}
    trainings = _find_short_trainings(plugin, settings.train.prompts, by_adapter[None][1].step_seconds)
    steps = trainings.most_steps(MINING_SHARE * budget.seconds)
    fitted = None if steps is None else fit_run(timings, data, budget.seconds_left - trainings.seconds(steps))
    if steps is None or fitted is None:
        fewest_steps = min(trainings.steps, MIN_SHORT_STEPS)
        fewest = trainings.seconds(fewest_steps)
        needed_seconds = max(fewest / MINING_SHARE, budget.seconds_spent + fewest + shortest_budget_seconds(timings, data))
        trainings_text = f"{trainings.count} short trainings of {fewest_steps} steps and " if trainings.count else ""
        remedy = "Allow more time, or take a miner that trains nothing, such as influence."
        expected = (
            f"a budget of {format_duration(needed_seconds)} or more, for {trainings_text}a trial that can say something"
        )
        raise InputError(expected, format_duration(budget.seconds), remedy)
    settings = _with_sizes_of(fitted.config, settings, miner)
    if trainings.count:
        say(f"budget: {trainings.count} short trainings of {steps} steps: {format_duration(trainings.seconds(steps))}")
        settings = replace(settings, mine=_with_short_steps(settings.mine, miner, steps))
    say(f"budget: then a trial with {format_sizes(fitted)}")
    return settings


def _with_sizes_of(fitted_config: RunConfig, settings: RunConfig, miner: str) -> RunConfig:
    """The settings with the sizes of others; those of short trainings only where the others name them."""
    settings = with_sizes(
        settings, steps=fitted_config.train.steps, seeds=fitted_config.trial.seeds, items=fitted_config.measure.items
    )
    settings = replace(settings, measure=replace(settings.measure, samples=fitted_config.measure.samples))
    steps = fitted_config.mine.options.get(miner, {}).get("steps")
    return settings if steps is None else replace(settings, mine=_with_short_steps(settings.mine, miner, steps))


def _with_short_steps(settings: MineConfig, miner: str, steps: int) -> MineConfig:
    return replace(settings, options={**settings.options, miner: {**settings.options.get(miner, {}), "steps": steps}})


def _find_short_trainings(miner: Miner, prompts: int, step_seconds: float) -> ShortTrainings:
    """How many the miner makes, of how many steps, and what a step of its batch takes with all weights.

    Args:
        miner: made with its options.
        prompts: of the step that was timed.
        step_seconds: that it took.
    """
    steps, batch = getattr(miner, "steps", 0), getattr(miner, "batch", prompts)
    return ShortTrainings(miner.count_trainings(), steps, step_seconds * batch / prompts)

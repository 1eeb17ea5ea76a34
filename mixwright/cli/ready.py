"""Models and rows that are ready to be measured without a YAML, what that will take, and the measuring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from mixwright.cli.output import say
from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.measure.fitting import ItemCost
from mixwright.measure.free_answers import (
    TIMED_SAMPLES,
    FreeAnswers,
    estimate_measuring_seconds,
    spread_items,
    time_answers,
    time_options,
    time_samples,
    written_items,
)
from mixwright.measure.passes import Passes
from mixwright.measure.stage import MeasureResult, measure_learner
from mixwright.records import Example, Observation
from mixwright.run.progress import format_duration, progress_line

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner


@dataclass(frozen=True, slots=True)
class PreparedModels:
    """Models and rows, checked and loaded."""

    config: RunConfig
    """Settings of what is measured; those of training are defaults and nothing is said of them."""
    corpus: Corpus
    """Rows that can be graded, or compared without."""
    learners: tuple[Learner, ...]
    """In the order of the paths."""
    manifest_settings: Mapping[str, Any]
    """How it is measured, by name, for the manifest."""
    graded: bool = True
    """Whether completions are written and graded; else probabilities of the rows' own targets or pairs are read."""
    notes: tuple[Observation, ...] = ()
    """Graders that were changed because of the first model's first completions."""
    free_answers: tuple[FreeAnswers, ...] = ()
    """What completing a few items showed of each model that is measured, where that was done."""
    nested: bool = False
    """Whether what is sampled for an item does not depend on how many others are measured."""
    seconds_per_item: float = 0.0
    """Seconds per item of one model, where a part was measured before; 0 where nobody took the time."""

    def passes(self, number: int = 0, chosen: tuple[Example, ...] | None = None) -> Passes:
        """Passes of one of the models over the items that are measured, or over these."""
        return Passes(self.learners[number], None, self.config.measure, self.corpus, chosen=chosen)

    @property
    def cost(self) -> ItemCost:
        """What measuring one item takes, all models that are measured together; zeros where it is not known."""
        measure = self.config.measure
        room = (measure.max_new_tokens, measure.continued_tokens)
        greedy = estimate_measuring_seconds(self.free_answers, 1, 0, *room)
        return ItemCost(greedy, estimate_measuring_seconds(self.free_answers, 1, 1, *room) - greedy)


def with_price(
    ready: PreparedModels, model_indices: Sequence[int], *, room_is_known: bool, items_by_budget: bool
) -> PreparedModels:
    """The same, with what completing a few items showed of the models that are measured; says what measuring will take.

    Args:
        ready: models and rows.
        model_indices: numbers of the models that are measured.
        room_is_known: the room was asked for or taken over, so that no other is offered.
        items_by_budget: the items are yet to be chosen by a budget, and the price follows from it.

    Raises:
        InputError: chat prompts without a chat template.
    """
    if not ready.graded:
        return ready
    measure, free_answers = ready.config.measure, ready.free_answers
    learners = [ready.learners[number] for number in model_indices]
    free_answers = free_answers or time_answers(learners, ready.corpus, measure, measure.longest_completion, say)
    all_items = ready.passes(model_indices[0]).items
    free_answers = [
        time_options(learner, all_items, ready.corpus, measure, answers)
        for learner, answers in zip(learners, free_answers, strict=True)
    ]
    items = spread_items(written_items(all_items, ready.corpus, measure), TIMED_SAMPLES)
    if measure.samples and items:
        timed = [time_samples(learner, items, measure) for learner in learners]
        free_answers = [
            replace(answers, sample_seconds=seconds) for answers, seconds in zip(free_answers, timed, strict=True)
        ]
    ready = replace(ready, free_answers=tuple(free_answers))
    if items_by_budget:
        return ready
    items, tokens = len(ready.passes().items), measure.max_new_tokens
    completions_text = f" x {1 + measure.samples} completions" if measure.samples else ""
    models_text = f" x {len(free_answers)} models" if len(free_answers) > 1 else ""
    seconds = estimate_measuring_seconds(free_answers, items, measure.samples, tokens, measure.continued_tokens)
    half_tokens = max(1, tokens // 2)
    half_answers = [
        replace(answers, sample_seconds=answers.sample_seconds and answers.sample_seconds * half_tokens / tokens)
        for answers in free_answers
    ]
    half_seconds = estimate_measuring_seconds(half_answers, items, measure.samples, half_tokens, 0)
    shorter_note = f"; with --max-new-tokens {half_tokens} {format_duration(half_seconds)}"
    say(
        f"price: {items:,} items{completions_text}{models_text} take {format_duration(seconds)}"
        f"{'' if room_is_known else shorter_note}"
    )
    return ready


def measure_with_progress(
    title: str, learner: Learner, ready: PreparedModels, *, start: Learner | None = None
) -> MeasureResult:
    """Measure one model, with a progress line on stderr that says how much time is left."""
    config, start_time = ready.config.measure, monotonic()
    passes = Passes(learner, start, config, ready.corpus)
    item_count = len(passes.items if ready.graded else passes.picked(lambda _: True))
    seconds = ready.cost.item_seconds(config.samples) / max(len(ready.free_answers), 1) * item_count
    with progress_line(f"{title}, {item_count:,} items") as show:

        def show_progress(finished_share: float) -> None:
            seconds_left = (monotonic() - start_time) * (1 - finished_share) / finished_share if finished_share > 0 else None
            show(
                finished_share * (item_count - 0.001), item_count, seconds_left
            )  # no whole number, which would be a line of its own

        show(0, item_count, seconds or None)
        measure_options = {"start": start, "seed": ready.config.seed, "nested": ready.nested}
        result = measure_learner(learner, ready.corpus, config, **measure_options, report_done=show_progress)
        show(item_count, item_count, 0.0)
    return replace(result, seconds_per_item=ready.seconds_per_item or (monotonic() - start_time) / max(item_count, 1))

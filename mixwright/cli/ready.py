"""Models and rows that are ready to be measured without a YAML, what that will cost, and the measuring of one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.measure.fitting import ItemCost
from mixwright.measure.free_answers import TIMED_SAMPLES, FreeAnswers, price, spread_items, time_answers, time_samples
from mixwright.measure.passes import Passes
from mixwright.measure.stage import MeasureResult, measure_learner
from mixwright.records import Example, Observation
from mixwright.workers.progress import format_duration, progress_line

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner


@dataclass(frozen=True, slots=True)
class Ready:
    """Models and rows, checked and loaded."""

    config: RunConfig
    """Settings of what is measured; those of training are defaults and nothing is said of them."""
    corpus: Corpus
    """Rows that can be graded, or compared without."""
    learners: tuple[Learner, ...]
    """In the order of the paths."""
    noted: Mapping[str, Any]
    """How it is measured, by name, for the manifest."""
    graded: bool = True
    """Whether completions are written and graded; else probabilities of the rows' own targets or pairs are read."""
    notes: tuple[Observation, ...] = ()
    """Graders that were changed because of the first model's first completions."""
    free_answers: tuple[FreeAnswers, ...] = ()
    """What completing a few items showed of each model that is measured, where that was done."""
    nested: bool = False
    """Whether what is sampled for an item does not depend on how many others are measured."""
    pace: float = 0.0
    """Seconds per item of one model, where a part was measured before; 0 where nobody took the time."""

    def passes(self, number: int = 0, chosen: tuple[Example, ...] | None = None) -> Passes:
        """Passes of one of the models over the items that are measured, or over these."""
        return Passes(self.learners[number], None, self.config.measure, self.corpus, chosen=chosen)

    @property
    def cost(self) -> ItemCost:
        """What measuring one item takes, all models that are measured together; zeros where it is not known."""
        measure = self.config.measure
        room = (measure.max_new_tokens, measure.continued_tokens)
        greedy = price(self.free_answers, 1, 0, *room)
        return ItemCost(greedy, price(self.free_answers, 1, 1, *room) - greedy)


def with_price(ready: Ready, measured: Sequence[int], say: Callable[[str], None], *, known: bool, limited: bool) -> Ready:
    """The same, with what completing a few items showed of the models that are measured; says what measuring will take.

    Args:
        ready: models and rows.
        measured: numbers of the models that are measured.
        say: told the price.
        known: the room was asked for or taken over, so that no other is offered.
        limited: the items are yet to be chosen by a budget, and the price follows from it.

    Raises:
        InputError: chat prompts without a chat template.
    """
    if not ready.graded:
        return ready
    settled, found = ready.config.measure, ready.free_answers
    learners = [ready.learners[number] for number in measured]
    found = found or time_answers(learners, ready.corpus, settled, settled.longest_completion, say)
    if settled.samples:
        items = spread_items(ready.passes(measured[0]).items, TIMED_SAMPLES)
        timed = [time_samples(learner, items, settled) for learner in learners]
        found = [replace(one, sample_seconds=seconds) for one, seconds in zip(found, timed, strict=True)]
    ready = replace(ready, free_answers=tuple(found))
    if limited:
        return ready
    items, tokens = len(ready.passes().items), settled.max_new_tokens
    each = f" x {1 + settled.samples} completions" if settled.samples else ""
    models = f" x {len(found)} models" if len(found) > 1 else ""
    seconds = price(found, items, settled.samples, tokens, settled.continued_tokens)
    half = max(1, tokens // 2)
    halved = [replace(one, sample_seconds=one.sample_seconds and one.sample_seconds * half / tokens) for one in found]
    shorter = f"; with --max-new-tokens {half} {format_duration(price(halved, items, settled.samples, half, 0))}"
    say(f"price: {items:,} items{each}{models} take {format_duration(seconds)}{'' if known else shorter}")
    return ready


def measure_with_progress(title: str, learner: Learner, ready: Ready, *, start: Learner | None = None) -> MeasureResult:
    """Measure one model, with a progress line on stderr that says how much time is left."""
    config, began = ready.config.measure, monotonic()
    passes = Passes(learner, start, config, ready.corpus)
    total = len(passes.items if ready.graded else passes.picked(lambda _: True))
    seconds = ready.cost.item(config.samples) / max(len(ready.free_answers), 1) * total
    with progress_line(f"{title}, {total:,} items") as show:

        def done(share: float) -> None:
            left = (monotonic() - began) * (1 - share) / share if share > 0 else None
            show(share * (total - 0.001), total, left)  # no whole number, which would be a line of its own

        show(0, total, seconds or None)
        how = {"start": start, "seed": ready.config.seed, "nested": ready.nested}
        found = measure_learner(learner, ready.corpus, config, **how, done=done)
        show(total, total, 0.0)
    return replace(found, pace=ready.pace or (monotonic() - began) / max(total, 1))

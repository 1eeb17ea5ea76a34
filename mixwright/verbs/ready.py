"""Models and rows that are ready to be measured without a YAML, and the measuring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any

from mixwright.config import RunConfig
from mixwright.corpus import Corpus
from mixwright.measure.passes import Passes
from mixwright.measure.stage import MeasureResult, measure_learner
from mixwright.records import Example, Observation
from mixwright.run.progress import progress_line

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
    nested: bool = False
    """Whether what is sampled for an item does not depend on how many others are measured."""
    seconds_per_item: float = 0.0
    """Seconds per item of one model, where a part was measured before; 0 where nobody took the time."""

    def passes(self, number: int = 0, chosen: tuple[Example, ...] | None = None) -> Passes:
        """Passes of one of the models over the items that are measured, or over these."""
        return Passes(self.learners[number], None, self.config.measure, self.corpus, chosen=chosen)


def measure_with_progress(
    title: str, learner: Learner, ready: PreparedModels, *, start: Learner | None = None
) -> MeasureResult:
    """Measure one model, with a progress line on stderr that says how much time is left."""
    config, start_time = ready.config.measure, monotonic()
    passes = Passes(learner, start, config, ready.corpus)
    item_count = len(passes.items if ready.graded else passes.picked(lambda _: True))
    with progress_line(f"{title}, {item_count:,} items") as show:

        def show_progress(finished_share: float) -> None:
            seconds_left = (monotonic() - start_time) * (1 - finished_share) / finished_share if finished_share > 0 else None
            show(
                finished_share * (item_count - 0.001), item_count, seconds_left
            )  # no whole number, which would be a line of its own

        show(0, item_count, None)
        measure_options = {"start": start, "seed": ready.config.seed, "nested": ready.nested}
        result = measure_learner(learner, ready.corpus, config, **measure_options, report_done=show_progress)
        show(item_count, item_count, 0.0)
    return replace(result, seconds_per_item=ready.seconds_per_item or (monotonic() - start_time) / max(item_count, 1))

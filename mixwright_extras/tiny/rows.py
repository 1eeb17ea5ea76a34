"""Rows of a tiny model's warm-up SFT, and how often each is drawn. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from mixwright.extend import InputError, cell_key, unknown_name

if TYPE_CHECKING:
    from mixwright.extend import Corpus, CorpusConfig, Example, WarmupConfig


def warmup_rows(warmup: WarmupConfig, settings: CorpusConfig, corpus: Corpus, relative_to: Path) -> Corpus:
    """The training split, or `model.warmup.source` without the prompts of this corpus.

    Args:
        warmup: names the source.
        settings: columns and graders, by which a source is read as the corpus was.
        corpus: the run's own.
        relative_to: folder that a relative path starts from.

    Raises:
        InputError: a source that cannot be read, or that holds nothing new.
    """
    from mixwright.extend import Corpus, prompt_key, read_source

    if (source := warmup.source) is None:
        return corpus.select(split="train")
    used = {prompt_key(example.prompt) for example in corpus}
    rows = read_source(source, split="train", config=settings, relative_to=relative_to)
    new_rows = Corpus.from_examples((row for row in rows if prompt_key(row.prompt) not in used), settings.graders)
    if not len(new_rows):
        remedy = "Name another source, or leave model.warmup.source out."
        raise InputError("warm-up prompts that differ from the prompts of the run", "none", remedy, file=source)
    return new_rows


def warmup_shares(examples: Sequence[Example], cells: Mapping[str, float]) -> np.ndarray:
    """Probability per example: a cell's weight is spread evenly over its examples; a task's over the task.

    Args:
        examples: rows of the warm-up.
        cells: weight by task or `task@level`; empty for equal shares of all examples.

    Raises:
        InputError: no row with a target, a cell that no example is of, or weights that are none.
    """
    usable = np.array([example.target is not None or example.answer is not None for example in examples], dtype=float)
    if not usable.any():  # pairs alone: the chosen answers are what a model is to begin with
        usable = np.array([example.chosen is not None for example in examples], dtype=float)
    if not usable.any():
        raise InputError("examples with a target or an answer", "none", "Use a corpus with targets or answers.")
    if not cells:
        return usable / usable.sum()
    keys = [(cell_key(example.task, example.level), example.task) for example in examples]
    shares = np.zeros(len(examples))
    for name, weight in cells.items():
        inside = np.array([name in names for names in keys]) * usable
        if not inside.any():
            raise unknown_name("cell to warm up on", name, {key for names in keys for key in names})
        shares += weight * inside / inside.sum()
    if shares.sum() <= 0:
        raise InputError("a weight above 0", "none", "Correct model.warmup.cells.")
    return shares / shares.sum()

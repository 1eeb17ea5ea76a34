"""Training and held-out rows of each task, for probes that train."""

from __future__ import annotations

import numpy as np

from mixwright.extend import Corpus, pc


def rows_by_task(corpus: Corpus, split: str | None) -> dict[str, np.ndarray]:
    """Row numbers per task of the rows with a target."""
    table = corpus.table
    usable = pc.or_(pc.is_valid(table["target"]), pc.is_valid(table["answer"]))
    mask = usable if split is None else pc.and_(usable, pc.equal(table["split"], split))
    tasks, rows = np.asarray(table["task"].to_pylist()), np.flatnonzero(np.asarray(mask.to_pylist(), dtype=bool))
    return {str(task): rows[tasks[rows] == task] for task in np.unique(tasks[rows])}

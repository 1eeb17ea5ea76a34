"""Any two checkpoints, whoever trained them, measured on one corpus: `mixwright verdict BEFORE AFTER --corpus C`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mixwright._cli_init import longest_answer
from mixwright.config import CorpusConfig, MeasureConfig, ModelConfig, RunConfig
from mixwright.runs import RunFolder, write_measurements

if TYPE_CHECKING:
    from mixwright.pipeline import Say


def compare(before: str, after: str, corpus: CorpusConfig, folder: RunFolder, *, items: int, say: Say) -> None:
    """Measure both checkpoints on the held-out split (all rows when there is none) and write both tables.

    Args:
        before: checkpoint folder or hub name.
        after: the same, trained further.
        corpus: what they are measured on.
        folder: where the tables go.
        items: measured per cell.
        say: told what is being done.

    Raises:
        InputError: a checkpoint or the corpus cannot be used; nothing is written then.
    """
    from mixwright._manifest import check_settings, write_manifest
    from mixwright.corpus import read_corpus
    from mixwright.learner.load import load_learner
    from mixwright.measure._stage import measure_learner
    from mixwright.trial._before import write_completions

    rows = read_corpus(corpus)
    config = RunConfig(corpus, ModelConfig(path=before), MeasureConfig(items=items, max_new_tokens=longest_answer(rows)))
    check_settings(config, rows)
    start, end = load_learner(before), load_learner(after)
    found = {}
    for name, learner, origin in (("before", start, None), ("after", end, start)):
        say(f"measure: {name}")
        found[name] = measure_learner(learner, rows, config.measure, start=origin, seed=config.seed)
    with folder.lock():
        write_manifest(config, folder, rows, Path())
        for name, result in found.items():
            write_measurements(folder.measurements(name), result.measurements)
        write_completions(folder.path / "completions.parquet", found)

"""Export of mined rows for another trainer: `mixwright mine ... --export FORMAT`, by the plug-ins that export plans."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq

from mixwright.catalog import create
from mixwright.cli.export import EXPORT_MARKER_FILE, resolve_format
from mixwright.errors import InputError
from mixwright.mine.choosing import resample_by_weight
from mixwright.plan.mix import Mix, Part, part_name
from mixwright.runs import write_json

if TYPE_CHECKING:
    from mixwright.corpus import Corpus
    from mixwright.records import Objective


def export_mined(
    table: Path,
    corpus: Corpus,
    name: str,
    folder: Path,
    *,
    objective: Objective,
    batch: int,
    group: int | None = None,
    seed: int = 0,
) -> list[str]:
    """Write a miner's table as a trainer reads it and say what was written; the folder appears whole or not at all.

    Pairs are written for DPO, whatever the objective. Each row stands there once, or as often as its weight says.

    Args:
        table: mine/<miner>.parquet.
        corpus: of the run.
        name: of an export (`mixwright list exports`), `-` or `_` inside.
        folder: made anew; an earlier export there is replaced, anything else refused.
        objective: of the run.
        batch: rows, pairs or prompts per optimiser step.
        group: completions per prompt in GRPO.
        seed: of the order of rows.

    Raises:
        InputError: an unknown format, rows that the format or the objective does not take, or a folder with other files.
    """
    name = resolve_format(name)
    if folder.exists() and not (folder / EXPORT_MARKER_FILE).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError("a new folder, or one with an earlier export", "other files", "Name another one.", file=folder)
    mix = mined_mix(table, corpus, objective=objective, batch=batch, group=group, seed=seed)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        said = create("exports", name).write(mix, folder)
        shares = [{"task": part.task, "share": part.share, "rows": len(part.rows)} for part in mix.parts]
        write_json(folder / EXPORT_MARKER_FILE, {"format": name, "shares": shares, "notes": list(mix.notes)})
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return [*mix.notes, *said]


def mined_mix(
    table: Path, corpus: Corpus, *, objective: Objective, batch: int, group: int | None = None, seed: int = 0
) -> Mix:
    """The mined rows as exports take them: shares of tasks as they are among the rows. Arguments of `export_mined`."""
    from mixwright.corpus import Corpus as Rows

    found = pq.read_table(table)
    made = "prompt" in found.column_names
    rows = Rows(found) if made else corpus.select(ids=found["id"].to_pylist())
    if not len(rows):
        raise InputError("mined rows", "none", "Mine again.", file=table)
    weight_of = {} if made else dict(zip(found["id"].to_pylist(), found["weight"].to_pylist(), strict=True))
    weights = np.array([weight_of.get(name, 1.0) for name in rows.table["id"].to_pylist()])
    tasks = np.array(rows.table["task"].to_pylist(), dtype=object)
    rng, parts, order = np.random.default_rng(seed), [], []
    names, counts = np.unique(tasks.astype(str), return_counts=True)
    shares = np.round(counts / counts.sum(), 6)
    shares[int(shares.argmax())] += 1 - shares.sum()  # some trainers refuse shares that do not sum to 1
    for number, (task, share) in enumerate(zip(names.tolist(), shares.tolist(), strict=True), 1):
        own = rng.permutation(np.flatnonzero(tasks == task))
        parts.append(Part(part_name(number, task, None), task, None, round(share, 6), own))
        order.append(own[resample_by_weight(weights[own], rng)] if np.ptp(weights) > 0 else own)
    pairs = rows.table["chosen"].null_count + rows.table["rejected"].null_count == 0
    placed = rng.permutation(np.concatenate(order))
    notes = [f"Rows of {table.name}: {len(rows):,} of them, shares of tasks as the miner left them."]
    if np.ptp(weights) > 0:
        notes.append("Rows have unequal weights: ordered files repeat them by weight, files of one part per task do not.")
    kind: Objective = "dpo" if pairs and made else objective
    return Mix(
        kind, rows, tuple(parts), placed, batch, -(-len(placed) // batch), tuple(notes), group if kind == "grpo" else None
    )

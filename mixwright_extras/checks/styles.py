"""Check of sources: answers of one teacher, model or data set that differ in style from those of another in the same task.

Source: Kim et al. 2026 (arXiv 2603.24472): teachers that see the solution write short, unhedged traces, which teach less.
Unit: prompts of a task, with the mean over their answers; on shared prompts, where two sources have enough of them.
Cost: one pass over at most 40,000 training rows; of each source 500 answers are read, about 0.5 ms per 1,000 characters.
Blind spot: English words; where sources answer different prompts, these can be the cause (a note, and no warning).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from mixwright.extend import (
    BEHAVIOURS,
    MIN_PROMPTS,
    Check,
    Corpus,
    Observation,
    Row,
    compare_prompts,
    count_hedges,
    hash64,
    holm,
    read_behaviours,
    rows,
    sample_training_rows,
)

COLUMNS = ("source", "teacher", "model", "annotator", "origin", "dataset")
"""Columns that name where an answer is from, in any case."""
MIN_ROWS, MAX_ROWS, MAX_SOURCES = 50, 500, 10
"""Rows of a source from which on it is compared, and that are read; sources of a task up to which they are compared."""
ALPHA, LEAST_POINTS, LEAST_RATIO, LEAST_GAP = 0.01, 0.2, 2.0, 5.0
"""Probability of any false finding; the smallest difference of shares; and the smallest ratio and gap of other measures."""
MEASURES = (*BEHAVIOURS, "hedges per 1,000 words", "words")
REMEDY = "Decide which style the student should learn, and drop or rewrite the rows of the other."


class _Difference(NamedTuple):
    size: float  # from 1 on it matters, if it is real
    p: float
    key: tuple[str, str]  # task and column
    measure: str
    text: str
    is_paired: bool


class Styles(Check):
    """Compares the sources of training rows, as a column of the file names them."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """Return one finding per task and column: a warning where the sources answered the same prompts, else a note."""
        found: dict[tuple[str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
        for batch in sample_training_rows(corpus, whole=False).rows.batches():
            for row, extra in zip(rows([batch]), batch.column("extra").to_pylist(), strict=True):
                for column, name in json.loads(extra).items() if row.split != "eval" and row.written else ():
                    if column.strip().casefold() in COLUMNS and isinstance(name, str):
                        found[row.task, column][name].append(row)
        tests = sorted(one for key, sources in found.items() for one in _compare(key, sources))
        large: dict[tuple[str, str], dict[str, _Difference]] = defaultdict(dict)
        for one, p in zip(tests, holm([one.p for one in tests]), strict=True):
            if p < ALPHA and one.size >= 1:
                large[one.key][one.measure] = one  # of several pairs of sources the one that differs most
        return [_observe(key, large[key].values(), sum(map(len, found[key].values()))) for key in sorted(large)]


def _compare(key: tuple[str, str], sources: Mapping[str, Sequence[Row]]) -> Iterator[_Difference]:
    """Compare any two sources of a task; shares that are too small or too large to differ enough are left out."""
    large = sorted(name for name, own in sources.items() if len(own) >= MIN_ROWS)
    sides = {name: _measure(sources[name]) for name in large if len(large) <= MAX_SOURCES}
    for names in combinations([name for name, prompts in sides.items() if len(prompts) >= MIN_PROMPTS], 2):
        *means, p_values, is_paired = compare_prompts(sides[names[0]], sides[names[1]], len(BEHAVIOURS))
        for measure, *pair, p in zip(MEASURES, *means, p_values, strict=True):
            is_share, (low, high) = measure in BEHAVIOURS, sorted(zip(pair, names, strict=True))
            if not is_share or LEAST_POINTS <= sum(pair) <= 2 - LEAST_POINTS:
                least = LEAST_POINTS if is_share else max(LEAST_GAP, low[0] * (LEAST_RATIO - 1))
                text = " and ".join(f"{mean:{'.0%' if is_share else '.3g'}} ({name})" for mean, name in (low, high))
                yield _Difference((high[0] - low[0]) / least, p, key, measure, f"{measure} {text}", is_paired)


def _measure(own: Sequence[Row]) -> dict[str, list[float]]:
    """Return for each prompt the means of `MEASURES` over its answers; sources keep the prompts that they share."""
    values: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for row in sorted(own, key=lambda row: hash64(row.prompt))[:MAX_ROWS]:
        words = len(row.written.split())
        values[row.prompt].append((*read_behaviours(row.written), 1000 * count_hedges(row.written) / max(words, 1), words))
    return {prompt: np.mean(each, axis=0).tolist() for prompt, each in values.items()}


def _observe(key: tuple[str, str], found: Collection[_Difference], total: int) -> Observation:
    is_paired = any(one.is_paired for one in found)
    text = f"Answers differ in style by {key[1]}: {', '.join(one.text for one in found)}. "
    text += "They answered the same prompts." if is_paired else "Their prompts differ, too, which can be the cause."
    return Observation("styles", key[0], "warning" if is_paired else "info", total, total, text, REMEDY)

"""Check of how often each task is seen: rows, target tokens, and the gaps between its rows.

Source: own; gaps because what is long unseen is forgotten (replay literature), target tokens because SFT averages over them.
Unit: rows, shares 0..1, gaps in rows; tokens are estimated without a tokenizer as words + digits + signs.
Cost: one pass, 4 bytes per row.
Blind spot: how a sampler really orders the rows, and real token counts (long words are several tokens).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from mixwright.audit.rows import MAX_NAMES_SHOWN, positions_by_code, rows
from mixwright.audit.text import count_tokens
from mixwright.contracts import Check
from mixwright.corpus import Corpus
from mixwright.records import Observation

RARE_PART, LOPSIDED_RATIO = 0.25, 3.0
"""Part of the uniform share below which a task is rare; ratio between its share of target tokens and that of rows, either
way, from which on they are said to differ."""
LEAST_LOPSIDED = 0.01
"""Share of rows, or of target tokens, below which such a difference is of no weight."""


class Frequency(Check):
    """Shares and gaps of the train split's tasks."""

    def check(self, corpus: Corpus) -> list[Observation]:
        """One info per task; warnings for rare tasks, for token shares unlike row shares, and for rows sorted by task."""
        codes, task_codes, tokens = _count_rows(corpus.batches())
        total = len(task_codes)
        observations: list[Observation] = []
        gaps: list[dict[str, Any]] = []
        places_by_code, all_tokens = positions_by_code(task_codes), max(tokens.total(), 1)
        for name, code in sorted(codes.items()):
            row_numbers = places_by_code[code]
            token_share = tokens[name] / all_tokens
            token_text = f"about {tokens[name]} target tokens ({token_share:.1%})"
            observations += _observe_shares(name, len(row_numbers), total, len(codes), token_text, token_share)
            longest_when_shuffled = longest_gap_quantile(len(row_numbers), total, 1 - 0.01 / len(codes))
            gaps.append({"task": name, "rows_without": longest_gap(row_numbers, total), "shuffled": longest_when_shuffled})
        return observations + _observe_file_order(gaps, total)


def _count_rows(batches: Iterable[pa.RecordBatch]) -> tuple[dict[str, int], np.ndarray, Counter[str]]:
    """Return the index of each task of training rows, that of each row's task, and per task the target tokens."""
    places: dict[str, int] = {}
    task_places, tokens = list[int](), Counter[str]()
    for batch in batches:
        for row, prompt in zip(rows([batch]), batch.column("prompt").to_pylist(), strict=True):
            if row.split != "eval":
                tokens[row.task] += count_tokens(row.written if prompt else row.prompt)  # without a prompt it is a text
                task_places.append(places.setdefault(row.task, len(places)))
    return places, np.array(task_places, np.int32), tokens


def _observe_shares(name: str, count: int, total: int, tasks: int, tokens: str, token_share: float) -> list[Observation]:
    share = count / total
    text = f"{count} rows ({share:.1%}), {tokens}."
    null = f"uniform: {1 / tasks:.1%} of rows for each of {tasks} tasks; gaps of shuffled rows are geometric"
    evidence = ({"share_of_rows": share, "share_of_target_tokens": token_share},)
    observations = [Observation("frequency", name, "info", count, total, text, "", null, evidence)]
    if share < RARE_PART / tasks:
        text = f"The task is rare: {share:.2%} of rows; an equal share is {1 / tasks:.1%}."
        remedy = "Raise its weight (planner temperature or equal_shares)."
        observations.append(Observation("frequency", name, "warning", count, total, text, remedy, null))
    is_large = max(share, token_share) >= LEAST_LOPSIDED
    if is_large and token_share and not share / LOPSIDED_RATIO < token_share < share * LOPSIDED_RATIO:
        text = f"The task has {share:.1%} of rows but {token_share:.1%} of target tokens, which weigh in the loss of SFT."
        remedy = "Weight by tokens, or average the loss per example. GRPO is not affected."
        observations.append(Observation("frequency", name, "warning", count, total, text, remedy, "equal shares of both"))
    return observations


def _observe_file_order(gaps: list[dict[str, Any]], total: int) -> list[Observation]:
    """Return a warning if tasks are missing for longer than in shuffled rows."""
    long_gaps = sorted((gap for gap in gaps if gap["rows_without"] > gap["shuffled"]), key=lambda gap: -gap["rows_without"])
    if not long_gaps:
        return []
    worst = long_gaps[0]
    text = (
        f"In file order, {worst['rows_without']} of {total} consecutive rows have none of {worst['task']}; {len(long_gaps)} "
    )
    text += f"of {len(gaps)} tasks have longer gaps than in shuffled order."
    remedy = "Shuffle the rows, or use a steered trainer."
    null = f"in 99 of 100 shuffled files no task has a gap beyond its bound, here {worst['shuffled']} rows"
    evidence = tuple(long_gaps[:MAX_NAMES_SHOWN])
    return [Observation("frequency", None, "warning", len(long_gaps), len(gaps), text, remedy, null, evidence)]


def longest_gap(row_numbers: np.ndarray, total: int) -> int:
    """Longest run of rows without the task, given its row numbers (sorted) among `total` rows, ends included."""
    edges = np.concatenate(([-1], row_numbers, [total]))
    return int(np.diff(edges).max()) - 1


def longest_gap_quantile(count: int, total: int, probability: float) -> int:
    """Longest run without the task that shuffled rows stay within, at that probability, for `count` of `total` rows.

    A given one of the count + 1 runs is longer than g with probability C(total - g - 1, count) / C(total, count); their sum
    bounds the chance that any is, and is close to it where it is small.
    """

    def exceeding_chance(gap: int) -> float:
        factors = np.log1p(-(gap + 1) / (total - np.arange(count)))
        return (count + 1) * math.exp(factors.sum())

    gap_within, gap_beyond = total - count, -1
    while gap_within - gap_beyond > 1:
        middle = (gap_within + gap_beyond) // 2
        gap_within, gap_beyond = (
            (middle, gap_beyond) if exceeding_chance(middle) <= 1 - probability else (gap_within, middle)
        )
    return gap_within

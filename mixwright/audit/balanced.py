"""A balanced copy of preference pairs: what the check `preferences` warns of stands as often on either side in it.

Pairs of the commoner kind are left out, by chance and as few as that takes. What is left out teaches something, too: a copy
is worth less than pairs of the rarer kind that somebody adds.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from mixwright.audit.checks.preferences import LENGTH, find_one_sided
from mixwright.audit.cleaned import Cleaned
from mixwright.audit.pairs import Pair, read_pairs
from mixwright.audit.stage import run_audit
from mixwright.corpus import Corpus
from mixwright.errors import InputError

CHECK = "preferences"
SEED = 0
"""Of the draw among pairs that are alike in what they show."""
MAX_ROUNDS = 10
"""A behaviour can become one-sided when pairs leave because of another one."""
Signs = tuple[int, ...]
"""Of a pair, per one-sided feature: 1 where the preferred side alone shows it, -1 where the rejected one does, 0 else."""


def balance(corpus: Corpus) -> Cleaned:
    """Leave out pairs until the check `preferences` finds nothing one-sided.

    Raises:
        InputError: no pairs among the rows to train on.
    """
    observations = run_audit(corpus, [CHECK])
    balanced = Cleaned(corpus, observations, [])
    pairs_by_task: dict[str, list[Pair]] = defaultdict(list)
    for pair in read_pairs(corpus):
        pairs_by_task[pair.task].append(pair)
    if not pairs_by_task:
        raise InputError(
            "rows with a preferred and a rejected answer",
            "none",
            "--balance works on preference pairs only (DPO and similar).",
        )
    rng, left_out_ids = np.random.default_rng(SEED), set[str]()
    for task, pairs in sorted(pairs_by_task.items()):
        for pair in _pairs_to_leave_out(pairs, rng):
            left_out_ids.add(pair.id)
            balanced.dropped[pair.source] = {"id": pair.id, "check": CHECK, "task": task, "partner": None}
    balanced.corpus = corpus.select(ids=[row_id for row_id in corpus.table["id"].to_pylist() if row_id not in left_out_ids])
    balanced.left = [one for one in run_audit(balanced.corpus, [CHECK]) if one.severity != "info"]
    return balanced


def _pairs_to_leave_out(pairs: list[Pair], rng: np.random.Generator) -> list[Pair]:
    """The pairs of a task that leave, at random among those that show the same."""
    features: list[str] = []
    left_out: list[Pair] = []
    for _ in range(MAX_ROUNDS):
        new = [name for name in find_one_sided(pairs) if name not in features]
        if not new:
            break
        features += new
        groups: dict[Signs, list[Pair]] = defaultdict(list)
        for index in rng.permutation(len(pairs)):
            groups[_signs(pairs[index], features)].append(pairs[index])
        for signs, count in count_to_leave_out({signs: len(members) for signs, members in groups.items()}).items():
            left_out += groups[signs][:count]
        left_out_ids = {pair.id for pair in left_out}
        pairs = [pair for pair in pairs if pair.id not in left_out_ids]
    return left_out


def _signs(pair: Pair, features: list[str]) -> Signs:
    shown = {} if pair.has_no_answer else dict(pair.differing)
    if pair.longer:
        shown[LENGTH] = pair.longer
    return tuple(0 if name not in shown else 1 if shown[name] == "chosen" else -1 for name in features)


def count_to_leave_out(group_sizes: dict[Signs, int]) -> dict[Signs, int]:
    """How many pairs of each kind leave: first of the kind that brings the most features nearer to even, until none does.

    Examples:
        >>> count_to_leave_out({(1, 0): 2, (-1, 1): 6, (0, -1): 3})
        {(-1, 1): 3}
    """
    imbalance = np.sum([np.array(signs) * count for signs, count in group_sizes.items()], axis=0)
    left, leaving = Counter(group_sizes), Counter[Signs]()
    while True:
        gains = {
            signs: int(np.abs(imbalance).sum() - np.abs(imbalance - np.array(signs)).sum())
            for signs, count in left.items()
            if count
        }
        best = max(gains, key=lambda signs: (gains[signs], left[signs], signs), default=None)
        if best is None or gains[best] <= 0:
            return dict(leaving)
        nearer = imbalance * np.array(best) > 0
        count = min(left[best], int(np.abs(imbalance[nearer]).min()))  # gains change where a feature becomes even
        imbalance = imbalance - count * np.array(best)
        left[best] -= count
        leaving[best] += count

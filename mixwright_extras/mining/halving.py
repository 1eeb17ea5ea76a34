"""Sequential halving over candidates that are tried by short trainings, and a proof of the winner on other questions.

Every round trains all candidates that are left, and the one to beat, with the same new seeds, and keeps the better half.
Questions are in two parts: one part chooses, the other, with seeds of its own, says whether the winner beats the reference.
What was chosen is therefore not what proves it. Pure numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mixwright.extend import COVERAGE, Estimate, estimate_crossed
from mixwright_extras.mining.replicates import Ranking, ranking

TryCandidate = Callable[[int, int], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""(candidate, seed) -> score of every question, and of every item that must not be forgotten, after training on it."""


@dataclass(frozen=True)
class Halved:
    """What the rounds showed."""

    best: int
    """Place of the winner among the candidates; the reference is not one of those that can win."""
    choosing_scores: dict[int, list[float]]
    """Candidate -> mean score of the choosing questions after each of its runs."""
    protected_scores: dict[int, list[float]]
    """Candidate -> mean score of the protected items after each of its runs; empty lists where there are none."""
    gain: Estimate
    """Proof: score after the winner minus score after the reference, on the other questions and seeds."""
    ranking: Ranking
    """Of the first round, where all candidates were tried."""
    trainings: int
    """Short trainings in all."""

    @property
    def proven(self) -> bool:
        """Whether the winner beats the reference beyond chance."""
        return self.gain.value > 0 and self.gain.p < 1 - COVERAGE


def halve(count: int, run: TryCandidate, questions: int, *, runs: int, seeds: Iterator[int]) -> Halved:
    """Rounds of halving over candidates 1 .. count - 1; candidate 0 is the reference and stays in every round.

    Args:
        count: candidates, the reference included; two at least.
        run: a short training.
        questions: how many scores `run` gives; two at least. Those at even places choose, the others prove.
        runs: seeds of every round.
        seeds: new ones.

    Raises:
        ValueError: fewer candidates, questions, or runs than two.
    """
    if min(count, questions, runs) < 2:
        raise ValueError("two candidates, two questions and two runs at least")
    choosing_scores, protected_scores = ({candidate: list[float]() for candidate in range(count)} for _ in range(2))
    remaining, first_ranking, trainings = list(range(1, count)), None, 0
    while first_ranking is None or len(remaining) > 1:
        for seed in [next(seeds) for _ in range(runs)]:
            for candidate in (0, *remaining):
                scores, protected = run(candidate, seed)
                choosing_scores[candidate].append(float(scores[::2].mean()))
                protected_scores[candidate] += [float(protected.mean())] if len(protected) else []
        trainings += runs * (1 + len(remaining))
        first_ranking = first_ranking or ranking([[choosing_scores[candidate] for candidate in range(count)]], paired=True)
        order = sorted(remaining, key=lambda candidate: -float(np.mean(choosing_scores[candidate])))
        remaining = sorted(order[: (len(remaining) + 1) // 2])
    proof: list[NDArray[np.float64]] = []
    for seed in [next(seeds) for _ in range(runs)]:
        scores_by_candidate = [run(candidate, seed) for candidate in (0, remaining[0])]
        proof.append(scores_by_candidate[1][0][1::2] - scores_by_candidate[0][0][1::2])
    gain = estimate_crossed(np.array(proof), np.zeros(len(proof[0]), dtype=int), counted=False)
    return Halved(remaining[0], choosing_scores, protected_scores, gain, first_ranking, trainings + 2 * runs)


def rank_candidates(halved: Halved) -> Sequence[int]:
    """Candidates: those that were left longest first, then by their mean; the reference last."""
    rounds = {candidate: len(scores) if candidate else 0 for candidate, scores in halved.choosing_scores.items()}
    return sorted(rounds, key=lambda candidate: (-rounds[candidate], -float(np.mean(halved.choosing_scores[candidate]))))

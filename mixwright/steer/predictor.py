"""Predictor of an example's success, learnt in the run from the rewards of similar prompts; its worth is measured, too.

Tasks of one cell (data without levels) share a beta-binomial regression of group success on `prompt_features`, beside an
intercept of their own (estimates/success_regression.py); an example's own groups count on top, against a prior as strong
as prompts with alike features are alike. What other prompts' answers would earn on a prompt (S) is regressed on the same
features. On its own choices, all near one half, a good predictor looks worthless, so its worth is measured on draws that
are made evenly, by what it said before they were rolled out:

    L <- WORTH_KEPT_PER_GROUP L + log p(group | features) - log p(group | task)

The task alone is the same regression without features. An example's own groups are left out on both sides: where rows come
again they would speak for features that say nothing. The logistic function of L is the share of draws that may follow the
predictor; the rest are even.

Source: 2507.04632 (posterior of success in the run, per prompt); the features, the regression across prompts and the
    measured worth are ours.
Unit: success, 0..1.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from mixwright.estimates.success_regression import Seen, SuccessRegression, log_likelihood, sigmoid
from mixwright.records import GroupOutcome
from mixwright.steer.earned import EarnedByOthers
from mixwright.steer.ledger import Ledger
from mixwright.steer.pool import Pool
from mixwright.steer.prompt_features import FEATURE_SCALE, LENGTH_COLUMNS, features_digest

WORTH_KEPT_PER_GROUP = 0.98
"""Of L, per group drawn evenly."""
GROUP_WORTH_KEPT_PER_STEP = 0.98
"""Of a group's worth, per step."""
WINDOW_GROUPS = 1024
"""Groups that the regression reads."""
MIN_GROUPS = 8
"""Groups before the first regression."""
START_WORTH = 1.0
"""L at the start: odds of 2.7 to 1 that features say more than the task alone."""
RESHAPE_EVERY_BATCHES = 8
"""Batches between two moves of scale and concentration."""
RESHAPE_ALWAYS_GROUPS = 256
"""Groups before which they are moved at every batch."""
KNOT_QUANTILES = (0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9)
"""Quantiles of the logits of the window at which the link may bend."""
MOST_INTERCEPTS = 32
"""Tasks with an intercept of their own, the largest ones; the others share one."""
CALIBRATION_BINS = 10
"""Of predicted success, in the calibration."""
EARNED_PRIOR_GROUPS = 8.0
"""Strength of the prior that no feature changes S, as a number of groups."""
MOST_DRAWS_IN_FLIGHT, MOST_EXAMPLES_IN_FLIGHT = 2, 2**15
"""Draws of one example whose groups may still come back, and examples of which such draws are kept, the last drawn ones."""
DrawPrediction = tuple[float, ...]
"""Expected success; then success and concentration by features, and by the task alone, own groups left out of both.
Nothing of a draw that followed the prediction, which is not to judge it."""


class Predictor:
    """What the run has learnt of prompts by their features.

    Args:
        pool: with features.
        ledger: of the run, for each example's own groups.
    """

    def __init__(self, pool: Pool, ledger: Ledger) -> None:
        assert pool.features is not None
        self._features, self._task_of, self._ledger = pool.features, pool.task_of, ledger
        cells = np.bincount([pool.tasks.index(cell.task) for cell in pool.cells], minlength=len(pool.tasks))
        self.covers = cells == 1
        """Whether each task has one cell, so that nothing else tells its rows apart."""
        sizes = np.bincount(pool.task_of, minlength=len(pool.tasks)) * self.covers
        largest = np.argsort(-sizes, kind="stable")[: min(MOST_INTERCEPTS, int(self.covers.sum()))]
        shared = int(self.covers.sum()) > len(largest)
        self._intercepts = len(largest) + shared
        self._intercept_of_task = np.full(len(pool.tasks), self._intercepts - 1)
        self._intercept_of_task[largest] = np.arange(len(largest))
        self._full = SuccessRegression(self._intercepts, (LENGTH_COLUMNS, pool.features.shape[1] - LENGTH_COLUMNS))
        self._bare = SuccessRegression(self._intercepts, ())
        self._link, self._knots = SuccessRegression(1, (1, len(KNOT_QUANTILES))), np.zeros(len(KNOT_QUANTILES))
        self._earned_weights = np.zeros(self._intercepts + pool.features.shape[1])
        self._others = EarnedByOthers(pool.golds)
        # example, wins, tries, S, step
        self._groups: deque[tuple[int, float, float, float, int]] = deque(maxlen=WINDOW_GROUPS)
        self._earlier: dict[int, tuple[float, float]] = {}
        self._pending_predictions: dict[int, list[DrawPrediction]] = {}  # by example: of draws that are not back yet
        self.log_odds, self.judged, self._batches = START_WORTH, 0, 0
        self._gain = self._weight = 0.0
        self._gains = np.zeros(2)  # of all even draws so far: summed log ratios, and their squares
        self.bins = np.zeros((3, CALIBRATION_BINS))
        """Of even draws, by predicted success: how many, summed prediction, summed success."""
        self.digest = features_digest(pool.features)
        """Of the features: a state is taken over for the same ones only."""

    @property
    def trust(self) -> float:
        """Share of draws that may follow the predictor: the logistic function of L, 0 before the first regression."""
        return float(sigmoid(np.array(self.log_odds))) if len(self._groups) >= MIN_GROUPS else 0.0

    def success(self, examples: np.ndarray) -> np.ndarray:
        """Expected success of each example, its own groups included."""
        return self._with_own_groups(examples, self._expected(self._rows(examples))[0])

    def predict_with_upper(self, example: int, z: float) -> tuple[float, float]:
        """Expected success of an example of this batch and its upper end at z standard deviations of the logit.

        The example's own earlier groups count, the one that is being judged does not: one group cannot speak for itself.
        """
        rows = self._rows(np.array([example]))
        wins, tries = self._earlier.get(example, (0.0, 0.0))
        prior = self._link.shape.concentration
        expected, upper = (float(share[0]) for share in self._expected(rows, z))
        return (prior * expected + wins) / (prior + tries), (prior * upper + wins) / (prior + tries)

    def note_before_learning(self, examples: np.ndarray) -> None:
        """Note what is known of the examples of a batch before the ledger learns of it."""
        wins, tries = self._ledger.faded(examples, self._ledger.step)
        self._earlier = dict(zip(examples.tolist(), zip(wins.tolist(), tries.tolist(), strict=True), strict=True))

    def sampled(self, examples: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Success by weights drawn from their posterior, one draw per row of examples (draws, candidates), and S.

        An example's own groups are left out: by them lucky ones would be drawn again and again.
        """
        rows = self._rows(examples)
        weights = self._full.drawn(rng, len(examples))
        logits = np.einsum("dcw,dw->dc", rows, weights)
        link_weights = self._link.drawn(rng, len(examples))
        success = sigmoid(logits + np.einsum("dcw,dw->dc", self._bent(logits), link_weights))
        return success, np.clip(rows @ self._earned_weights, 0.0, success)

    def expect(self, examples: np.ndarray, even: np.ndarray) -> np.ndarray:
        """Note what is thought of examples that are drawn now; returns their expected success, NaN before the first groups.

        Args:
            examples: drawn.
            even: whether each was drawn evenly, so that it may judge the predictor.
        """
        if len(self._groups) < MIN_GROUPS:
            return np.full(len(examples), np.nan)
        rows, success_by_task = self._rows(examples), self._bare.success(self._rows(examples, bare=True))
        success_by_features, _ = self._expected(rows)
        success = self._with_own_groups(examples, success_by_features)
        feature_concentration, task_concentration = self._link.shape.concentration, self._bare.shape.concentration
        for place, example in enumerate(examples.tolist()):
            by_features = float(success_by_features[place]), feature_concentration
            by_task = float(success_by_task[place]), task_concentration
            prediction = (float(success[place]), *by_features, *by_task) if even[place] else ()
            # A group that never comes back must not leave its prediction to a later one.
            pending = [*self._pending_predictions.pop(example, []), prediction]
            self._pending_predictions[example] = pending[-MOST_DRAWS_IN_FLIGHT:]
        for example in list(self._pending_predictions)[: max(0, len(self._pending_predictions) - MOST_EXAMPLES_IN_FLIGHT)]:
            del self._pending_predictions[example]
        return success

    def learn(self, groups: Sequence[GroupOutcome], examples: np.ndarray, wins: np.ndarray, tries: np.ndarray) -> None:
        """Take in groups of these examples, after they stand in the ledger; the worth of what was said of them first."""
        known = np.flatnonzero(self.covers[self._task_of[examples]]).tolist()
        if not known:
            return
        self._judge(examples[known].tolist(), wins[known], tries[known])
        for place in known:
            example, group = int(examples[place]), groups[place]
            earned = self._others.add(
                example, int(self._intercept_of_task[self._task_of[example]]), group, wins[place] / tries[place]
            )
            self._groups.append((example, float(wins[place]), float(tries[place]), earned, self._ledger.step))
        self._batches += 1
        if len(self._groups) >= MIN_GROUPS:
            self._fit()

    def _judge(self, examples: Sequence[int], wins: np.ndarray, tries: np.ndarray) -> None:
        """Compare what came with what was said, group by group."""
        predictions: dict[int, DrawPrediction] = {}  # by place in the batch
        for place, example in enumerate(examples):
            if example in self._pending_predictions:
                if prediction := self._pending_predictions[example].pop():
                    predictions[place] = prediction
                if not self._pending_predictions[example]:
                    del self._pending_predictions[example]
        if not predictions:
            return
        columns, places = np.array(list(predictions.values())).T, list(predictions)
        expected, success_by_features, feature_concentration, success_by_task, task_concentration = columns
        wins, tries = wins[places], tries[places]
        gains = log_likelihood(wins, tries, success_by_features, feature_concentration)
        gains = gains - log_likelihood(wins, tries, success_by_task, task_concentration)
        for gain in gains.tolist():
            self.log_odds = WORTH_KEPT_PER_GROUP * self.log_odds + gain
            self._gain, self._weight = WORTH_KEPT_PER_GROUP * self._gain + gain, WORTH_KEPT_PER_GROUP * self._weight + 1
            self._gains += gain, gain**2
        self.judged += len(predictions)
        counts = np.stack([np.ones(len(predictions)), expected, wins / tries], axis=1)
        np.add.at(self.bins.T, np.minimum((expected * CALIBRATION_BINS).astype(int), CALIBRATION_BINS - 1), counts)

    def _fit(self) -> None:
        """Both regressions and S, on what the window holds now."""
        table = np.array(self._groups)
        examples = table[:, 0].astype(np.int64)
        rows, bare = self._rows(examples), self._rows(examples, bare=True)
        wins, tries, earned, steps = table[:, 1:].T
        weights = GROUP_WORTH_KEPT_PER_STEP ** (self._ledger.step - steps)
        moves = self._batches % RESHAPE_EVERY_BATCHES == 0 or len(self._groups) < RESHAPE_ALWAYS_GROUPS

        def refit(regression: SuccessRegression, seen: Seen) -> None:
            if moves:
                regression.reshape(seen)
            regression.fit(seen)

        refit(self._full, Seen(rows, wins, tries, weights))
        refit(self._bare, Seen(bare, wins, tries, weights))
        logits = rows @ self._full.mean
        self._knots = np.quantile(logits, KNOT_QUANTILES)
        refit(self._link, Seen(self._bent(logits), wins, tries, weights, logits))
        prior = np.full(rows.shape[1], EARNED_PRIOR_GROUPS)
        prior[: self._intercepts] = 1.0
        known = np.flatnonzero(earned >= 0)
        weighed = rows[known] * weights[known, None]
        self._earned_weights = np.linalg.solve(weighed.T @ rows[known] + np.diag(prior), weighed.T @ earned[known])

    def _bent(self, logits: np.ndarray) -> np.ndarray:
        """Columns of the link (..., 2 + knots): an intercept, the logit, and what of it lies above each knot."""
        parts = [np.ones_like(logits)[..., None], logits[..., None], np.maximum(logits[..., None] - self._knots, 0.0)]
        return np.concatenate(parts, axis=-1)

    def _expected(self, rows: np.ndarray, z: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Expected success of rows by their features, and its upper end at z standard deviations of the logit."""
        mean, spread = self._full.logits(rows)
        logits, upper = (logit + self._bent(logit) @ self._link.mean for logit in (mean, mean + z * spread))
        return sigmoid(logits / np.sqrt(1 + math.pi / 8 * spread**2)), sigmoid(upper)

    def _with_own_groups(self, examples: np.ndarray, success: np.ndarray) -> np.ndarray:
        """With each example's own groups, faded, on top of what its features say."""
        wins, tries = self._ledger.faded(examples, self._ledger.step)
        prior = self._link.shape.concentration
        return (prior * success + wins) / (prior + tries)

    def _rows(self, examples: np.ndarray, *, bare: bool = False) -> np.ndarray:
        """Intercepts and features (..., columns) of examples."""
        places = self._intercept_of_task[self._task_of[examples]]
        intercepts = (places[..., None] == np.arange(self._intercepts)).astype(float)
        return intercepts if bare else np.concatenate([intercepts, self._features[examples] / FEATURE_SCALE], axis=-1)

    def figures(self) -> dict[str, Any]:
        """What the prediction is worth, as said of groups that were drawn evenly.

        Returns:
            `trust`; `skill`, nats per group against the task alone, recent mean (None before the first); `judged` groups;
            `gain`, the mean over all of them with its standard error (None before the second); `calibration`: groups, mean
            predicted and mean observed success, per tenth of predicted success.
        """
        filled = np.flatnonzero(self.bins[0])
        means = [[int(n), round(p / n, 4), round(o / n, 4)] for n, p, o in self.bins.T[filled].tolist()]
        skill = self._gain / self._weight if self._weight else None
        gain = None
        if self.judged > 1:  # what was said came before what was seen, so log ratios of all even draws add up
            mean, square = (self._gains / self.judged).tolist()
            gain = [mean, math.sqrt(max(square - mean**2, 0.0) / (self.judged - 1))]
        return {"trust": self.trust, "skill": skill, "judged": self.judged, "gain": gain, "calibration": means}

    def state(self) -> dict[str, Any]:
        """Numbers, texts, lists and bytes; `restore` on a fresh object continues exactly."""
        return {
            "groups": np.array(self._groups, dtype="<f8").tobytes(),
            "told": [[example, *one] for example, pending in self._pending_predictions.items() for one in pending],
            "worth": [self.log_odds, self.judged, self._batches, self._gain, self._weight, *self._gains.tolist()],
            "bins": self.bins.tolist(),
            "full": self._full.state(),
            "bare": self._bare.state(),
            "link": self._link.state(),
            "knots": self._knots.tolist(),
            "earned": self._earned_weights.tobytes(),
            "others": self._others.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` returned."""
        rows = np.frombuffer(state["groups"], "<f8").reshape(-1, 5).tolist()
        self._groups = deque(((int(e), w, t, s, int(step)) for e, w, t, s, step in rows), maxlen=WINDOW_GROUPS)
        self._pending_predictions = {}
        for example, *prediction in state["told"]:
            self._pending_predictions.setdefault(int(example), []).append(tuple(prediction))
        self.log_odds, judged, batches, self._gain, self._weight, *gains = state["worth"]
        self.judged, self._batches = int(judged), int(batches)
        self._gains, self.bins, self._knots = np.array(gains), np.array(state["bins"]), np.array(state["knots"])
        for name, regression in (("full", self._full), ("bare", self._bare), ("link", self._link)):
            regression.restore(state[name])
        self._earned_weights = np.frombuffer(state["earned"]).copy()
        self._others.restore(state["others"])


def share_following(trust: float, even: float) -> float:
    """Share of draws that follow the predictor where `even` of them never do."""
    return max(0.0, trust * (1 - even)) if math.isfinite(trust) else 0.0

"""Causes of an RL run that teaches little: rewarded luck, shortcuts, prompts that are never right or no longer apt, drift.

Right answers of a group state what is right for its prompt, so that no gold answer is needed: how often the other
completions of the group state it, too, is what the prompt did for it, and how often those of other prompts do is luck.

Source: own; S and kappa as in `mixwright.estimates.dependence`; near-impossible prompts that teach shortcuts, 2605.28388;
    prompts to be chosen again, 2503.14476; divergence against reward, 2210.10760.
Unit: shares of completions, or of groups; nats per token.
Cost: linear in the completions.
Blind spot: a final answer that cannot be compared as text (proofs, code) is never luck; "never right" needs 16 completions
    of a prompt; divergence is known where steering wrote it, or the trainer's own state.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from mixwright.estimates.intervals import hypergeometric_tail, jackknife
from mixwright.final_answer import final_answer
from mixwright.logs.rollouts import Rollout, RolloutLog, first_and_last_third, rewards_of
from mixwright.records import Observation, Severity

MIN_GROUPS = 20
"""Groups of a task below which nothing is said of it."""
ALPHA = 0.005
"""Probability of one false finding by chance."""
LUCK_KAPPA, LUCK_SHARE, AGREEING = 0.4, 0.05, 0.9
"""Upper end of kappa under which rewards are luck; chance below which an answer is no guess; share of a prompt's right
completions that give the same answer."""
FEW_RIGHT, BARE_SHARE, BARE_PART, LEAST_WORDS = 0.25, 0.3, 0.25, 12
"""Share of right completions up to which they are few; share of them that is bare; words of a bare one against the median of
its task, which has the least words."""
NEVER_RIGHT_TRIES, NEVER_RIGHT_SHARE = 16, 0.2
"""Completions of a prompt, none right, from which on it is too hard; share of all completions that such prompts get."""
STALE_FALL, MASTERED_WRONG = 0.2, 0.1
"""Fall of the share of groups that teach; share of the last groups that is all wrong below which the task is mastered."""
DRIFT_NATS, DRIFT_RATIO, LEAST_GAIN = 0.05, 2.0, 0.02
"""Rise of the divergence, nats per token and as a ratio; part of the range of rewards that is a gain."""

Values = NDArray[np.float64]
Groups = Sequence[Sequence[Rollout]]


def find_causes(log: RolloutLog) -> list[Observation]:
    """Return the causes that a run shows."""
    found = [_find_drift(log)]
    for task, own in log.judged.items():
        rewards = rewards_of(one for group in own for one in group)
        best, worst = max(rewards), min(rewards)
        if len(own) >= MIN_GROUPS and best > worst:
            found += [_find_luck(task, own, best), _find_bare(task, own, best), _find_too_hard(task, own, worst)]
            found.append(_find_stale(task, own, best, worst))
    return [one for one in found if one]


def _find_luck(task: str, groups: Groups, best: float) -> Observation | None:
    """Report a task whose right answers are given as often where they are wrong.

    The right answer of a group is known only if one of its completions gave it, which guesses do the more often the
    commoner the answer is: each group counts by the inverse of that probability.
    """
    answers = defaultdict[str, Counter[str]](Counter)
    for group in groups:
        answers[group[0].prompt].update(_answer_of(one) for one in group)
    total = sum(answers.values(), Counter[str]())
    sums, lucky, known, agreeing, right_ones = defaultdict[str, Values](lambda: np.zeros(4)), 0, 0, 0, 0
    for group in groups:
        prompt, right = group[0].prompt, Counter(_answer_of(one) for one in group if one.reward == best)
        sums[prompt] += [right.total() / len(group), 1, 0, 0]
        others = total.total() - answers[prompt].total()
        if not right or not others:
            continue
        stated, times = right.most_common(1)[0]
        if not stated:  # Tinker writes no texts
            continue
        elsewhere = (total[stated] - answers[prompt][stated]) / others
        weight = 1 / max(1 - (1 - elsewhere) ** len(group), 1 / len(group))
        sums[prompt] += [0, 0, weight * elsewhere, weight]
        known, agreeing, right_ones = known + 1, agreeing + times, right_ones + right.total()
        lucky += elsewhere >= LUCK_SHARE
    if known < MIN_GROUPS or agreeing < AGREEING * right_ones:  # else right answers to one prompt differ: none is stated
        return None
    success, groups_read, *elsewhere = np.sum(list(sums.values()), axis=0)
    luck, own = elsewhere[0] / elsewhere[1], success / groups_read
    kappa = jackknife(np.array(list(sums.values())), _kappa)
    if kappa is None or kappa.high >= LUCK_KAPPA or luck < LUCK_SHARE:
        return None
    message = (
        f"what is rewarded is mostly luck: {own:.0%} of the completions are right, and {luck:.0%} of those of other prompts "
        "would be right there, too"
    )
    remedy = "Ask for answers that cannot be guessed, use easier prompts, or train on worked solutions (SFT) first."
    return Observation("luck", task, "warning", lucky, len(groups), message, remedy)


def _kappa(sums: Values) -> float:
    """Part of the room above luck that is used, of the sums of success, groups, luck and its weights."""
    luck = sums[2] / max(sums[3], 1e-9)
    return float((sums[0] / sums[1] - luck) / max(1 - luck, 1e-9))


def _answer_of(rollout: Rollout) -> str:
    """Return its final answer, of several words the last: `It's yes` and `Yes.` are one answer."""
    return final_answer(rollout.completion).rpartition(" ")[2]


def _find_bare(task: str, groups: Groups, best: float) -> Observation | None:
    """Report groups with few right answers, which show no work though the wrong ones do."""
    words = {id(one): len(one.completion.split()) for group in groups for one in group}
    middle = median(words.values())
    few = [group for group in groups if 0 < sum(one.reward == best for one in group) <= FEW_RIGHT * len(group)]
    if middle < LEAST_WORDS or len(few) < MIN_GROUPS:
        return None
    completions = [one for group in few for one in group]
    bare = [words[id(one)] <= BARE_PART * middle for one in completions]
    right = [one.reward == best for one in completions]
    both = sum(is_bare and is_right for is_bare, is_right in zip(bare, right, strict=True))
    share, rest = both / sum(right), (sum(bare) - both) / (len(right) - sum(right))
    if share < BARE_SHARE or hypergeometric_tail(both, sum(right), sum(bare), len(bare)) >= ALPHA:
        return None
    message = (
        f"in groups with few right answers {share:.0%} of the right ones show no work, and {rest:.0%} of the wrong ones: "
        "these prompts teach a shortcut"
    )
    remedy = "Leave out prompts with so few right answers, use easier ones, or reward the work as well."
    return Observation("shortcut", task, "warning", both, sum(right), message, remedy)


def _find_too_hard(task: str, groups: Groups, worst: float) -> Observation | None:
    """Report prompts of which no completion ever earned more than the least, though others do."""
    tries, hopeless = Counter[str](), {group[0].prompt: True for group in groups}
    for group in groups:
        tries[group[0].prompt] += len(group)
        hopeless[group[0].prompt] &= all(one.reward == worst for one in group)
    hard = {name: tries[name] for name, never in hopeless.items() if never and tries[name] >= NEVER_RIGHT_TRIES}
    spent = sum(hard.values())
    if not spent or spent < NEVER_RIGHT_SHARE * tries.total() or len(hard) == len(tries):
        return None
    message = (
        f"{len(hard)} of {len(tries)} prompts are too hard: none of their {spent:,} completions was right "
        f"({min(hard.values())} tries each at least), and they take {spent / tries.total():.0%} of all completions"
    )
    remedy = "Remove them, or teach them first (SFT on worked solutions); another draw of them teaches nothing."
    return Observation("too hard", task, "warning", len(hard), len(tries), message, remedy)


def _find_stale(task: str, groups: Groups, best: float, worst: float) -> Observation | None:
    """Report a task whose groups differed in the first third of the steps and no longer do in the last."""
    sides = first_and_last_third({group[0].step for group in groups})
    if sides[0] & sides[1]:
        return None
    first, last = ([group for group in groups if group[0].step in side] for side in sides)
    taught = [sum(len({one.reward for one in group}) > 1 for group in part) for part in (first, last)]
    if min(len(first), len(last)) < MIN_GROUPS // 2:
        return None
    shares = [count / len(part) for count, part in zip(taught, (first, last), strict=True)]
    p = hypergeometric_tail(taught[0], len(first), sum(taught), len(first) + len(last))
    if shares[0] - shares[1] < STALE_FALL or p >= ALPHA:
        return None
    ends = Counter(group[0].reward for group in last if len({one.reward for one in group}) == 1)
    message = (
        f"groups with different rewards fell from {shares[0]:.0%} in the first third of the steps to {shares[1]:.0%} in the "
        f"last: of the others {ends[best]} are all right, {ends[worst]} all wrong"
    )
    remedy = "Choose the prompts again by what the model can do now, or while it trains (SteeredGRPOTrainer)."
    if ends[worst] > ends[best]:
        remedy = "The model unlearns the task: lower the learning rate, or go back to a checkpoint of the first third."
    severity: Severity = "warning" if ends[worst] >= MASTERED_WRONG * len(last) else "info"
    return Observation("stale prompts", task, severity, len(last) - taught[1], len(last), message, remedy)


def _find_drift(log: RolloutLog) -> Observation | None:
    """Report divergence from the start that grew while rewards did not."""
    sides = first_and_last_third(log.kl)
    if sides[0] & sides[1] or len(sides[0]) < 2:
        return None
    before, after = (fmean(log.kl[step] for step in side) for side in map(sorted, sides))
    rewards = [rewards_of(one for one in log.rollouts if min(side) <= one.step <= max(side)) for side in sides]
    if not all(rewards) or after - before < DRIFT_NATS or after < DRIFT_RATIO * before:
        return None
    everything = rewards_of(log.rollouts)
    spread = max(everything) - min(everything)
    gain = (fmean(rewards[1]) - fmean(rewards[0])) / spread if spread else 0.0
    if gain >= LEAST_GAIN:
        return None
    message = (
        f"the policy moved away from its start without a gain: {before:.2g} to {after:.2g} nats per token, while the mean "
        f"reward changed by {100 * gain:+.1f} % of its range"
    )
    remedy = "Raise the KL penalty (beta), lower the learning rate, or stop at the step from which nothing rose."
    return Observation("drift", None, "warning", len(log.kl), len(log.kl), message, remedy)

"""Behaviours of an RL policy that come or go during a run, and completions of a group that become alike.

Source: own; behaviours as in `mixwright.behaviours`.
Unit: prompts; the share of their completions in the first third of the steps and in the last.
Cost: 200 prompts of a task and third are read, two groups of each; about 0.5 ms per 1,000 characters.
Blind spot: where no prompt comes twice, other prompts at the end can be the cause; English words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from statistics import fmean

import numpy as np

from mixwright.audit.rows import hash64
from mixwright.behaviours import BEHAVIOURS, IN_WORDS, LEAST_CHANGE, read_behaviours
from mixwright.estimates.crossed import MIN_PROMPTS, compare_prompts
from mixwright.estimates.intervals import holm
from mixwright.logs.rollouts import Rollout
from mixwright.records import Observation

ALPHA = 0.01
"""Probability of any false finding in a log."""
MAX_PROMPTS, MAX_GROUPS, MIN_WORDS = 200, 2, 10
"""Prompts and groups of each that are read; words of completions below which equal ones are no loss."""
DISTINCT = "distinct completions"
FALLEN = "If it was right on some prompts, pay for it there in the reward, or add prompts on which it is right."
RISEN = "If you don't want it, let the reward subtract for it, or add prompts on which it is wrong."
ALIKE = "The policy loses its diversity: raise the temperature or entropy bonus, lower the learning rate, or stop earlier."


def find_changes(first: Sequence[Rollout], last: Sequence[Rollout]) -> list[Observation]:
    """Return a warning per task and behaviour whose share changed between the thirds, and for fewer distinct completions."""
    if {one.step for one in first} & {one.step for one in last}:
        return []
    (sides, others), tests = map(_measure, (first, last)), []
    for task in sorted(sides.keys() & others.keys()):
        columns = compare_prompts(sides[task], others[task], len(BEHAVIOURS) + 1)[:3]
        for name, before, after, p in zip((*BEHAVIOURS, DISTINCT), *columns, strict=True):
            if LEAST_CHANGE <= before + after <= 2 - LEAST_CHANGE:  # else no change of this size is possible
                tests.append((p, task, name, before, after, len(others[task])))
    return [
        _observe(*test)
        for p, (_, *test) in zip(holm([p for p, *_ in tests]), tests, strict=True)
        if p < ALPHA and abs(test[3] - test[2]) >= LEAST_CHANGE and (test[1] != DISTINCT or test[3] < test[2])
    ]


def _measure(rollouts: Sequence[Rollout]) -> dict[str, dict[str, list[float]]]:
    """Return task -> prompt -> the share of each behaviour, and of pairs of a group's completions that differ."""
    groups: dict[str, dict[str, dict[str, list[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for one in rollouts:
        if one.has_group and one.completion:
            groups[one.task][one.prompt][one.group].append(one.completion)
    found: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for task, by_prompt in groups.items():
        drawn = sorted(by_prompt, key=hash64)[:MAX_PROMPTS]  # by hash: both thirds keep the prompts that they share
        for name in drawn if len(drawn) >= MIN_PROMPTS else ():
            texts = list(by_prompt[name].values())[:MAX_GROUPS]
            long = [group for group in texts if fmean([len(text.split()) for text in group]) >= MIN_WORDS]
            differs = [one != other for group in long for one, other in combinations(group, 2)] or [True]
            shown = np.mean([read_behaviours(text) for group in texts for text in group], axis=0)
            found[task][name] = [*shown.tolist(), fmean(differs)]
    return found


def _observe(task: str, name: str, before: float, after: float, prompts: int) -> Observation:
    is_distinct = name == DISTINCT
    does = "two completions of a group differ" if is_distinct else IN_WORDS[name][0]
    message = f"{does} in {before:.0%} of the {'pairs' if is_distinct else 'completions'} in the first third of the steps, "
    message += f"and in {after:.0%} in the last"
    remedy = ALIKE if is_distinct else FALLEN if after < before else RISEN
    check, count = DISTINCT if is_distinct else "behaviour", round(abs(after - before) * prompts)  # prompts that it is worth
    return Observation(check, task, "warning", count, prompts, message, remedy)

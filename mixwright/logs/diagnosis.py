"""Diagnosis of an RL run from its rollouts: groups without a signal, rewards, and the step at which it went wrong.

Each finding is an observation, with its count of groups or completions, and a remedy in the terms of the trainer.

Source: groups whose rewards do not differ (DAPO, 2503.14476), rewards of several parts (2601.05242 for their scaling).
Unit: shares of groups, or of completions; the last third of the steps against the first.
Cost: linear in the completions.
Blind spot: a reward at the largest value that its task ever earned counts as right, one at the smallest as wrong.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from mixwright.estimates.intervals import share_interval
from mixwright.logs.behaviour_changes import DISTINCT, find_changes
from mixwright.logs.rl_causes import MIN_GROUPS, find_causes
from mixwright.logs.rollouts import Rollout, RolloutLog, rewards_of
from mixwright.records import SEVERITIES, Observation, Severity

SILENT_WARNING, SILENT_ERROR = 0.5, 0.9
"""Shares of groups without a signal from which on it is a warning, and an error."""
STARVED_RATIO = 0.5
"""A task is starved where its share of the groups with a signal is below this part of its share of all groups."""
CONSTANT_SHARE, DECIDING_SHARE = 0.95, 0.9
"""Share of groups in which a part is constant; share of the variance within groups that one part makes."""
SAME_WARNING, CUT_WARNING, EMPTY_WARNING, LOOP_WARNING = 0.3, 0.05, 0.01, 0.05
OPEN_END = re.compile(r"(?:[^\W\d_]|[,;:\-\u2013\u2014(\[{\\])\s*$")
"""End of a text that stops in the middle of a sentence, and with no figure."""
LIKELY_CUT, NEAR_LONGEST, MIN_LONGEST = 0.5, 0.75, 200
"""Share of completions with an open end near the longest one from which on they look cut, where the log does not say it; how
near, as a share of its characters; and how long that one has to be."""
LENGTH_RATIO = 2.0
FALL_SHARE = 0.3
"""Of the range of rewards: a fall of the mean reward by so much from its best is a collapse."""
FALL_ERRORS = 4.0
"""Standard errors between groups that a fall must be: the best window was chosen among many."""
MAX_GOLDS = 10
"""Different right answers of a task up to which always giving the commonest one is a rule to be compared with."""
NO_SIGNAL_REMEDY = {
    "TRL": "Use prompts whose rewards differ: SteeredGRPOTrainer selects them, or remove the others from train_dataset.",
    "verl": "Set algorithm.filter_groups.enable=true, or remove such prompts from data.train_files.",
    "verifiers": "Filter by difficulty online (buffer thresholds), or remove such prompts.",
}
EMPTY_REMEDY = "Check the end token and the chat template."
CUT_REMEDY = "Allow longer completions (TRL: max_completion_length), or mask truncated ones in the loss."
LOOP_REMEDY = "Check the reward for length, and the learning rate."
OTHER_REMEDY = "Remove such prompts, or sample those whose rewards differ more often."
HARD_REMEDY = "If all are wrong: easier prompts, more completions per prompt, or SFT on the answer format first."

SAME_AS = {"luck": "one answer", "stale prompts": "collapse"}
"""Cause -> finding that says the same of a task, better."""
CAUSES = ("cut", "never paid")
"""Findings that come before what they explain."""


def diagnose(log: RolloutLog) -> list[Observation]:
    """Return all findings, the worst first."""
    found = [*_uncountable(log), *_starved_tasks(log)]
    found += _explain_silence([*_completions(log), *_parts(log)], [*_groups_without_signal(log)])
    found += [*_one_answer(log), *_same_completions(log), *_length(log), *_collapse(log)]
    told = {(one.check, one.task) for one in found}
    found += [one for one in find_causes(log) if (SAME_AS.get(one.check), one.task) not in told]
    found += [one for one in find_changes(*log.thirds) if one.check != DISTINCT or ("same", None) not in told]
    return sorted(
        found, key=lambda one: (SEVERITIES.index(one.severity), one.check not in CAUSES, -one.count / max(1, one.total))
    )


def summarise(log: RolloutLog) -> str:
    """Return a line on the input."""
    groups, steps = len({one.group for one in log.rollouts if one.has_group}), len({one.step for one in log.rollouts})
    tasks = len({one.task for one in log.rollouts})
    rewards = rewards_of(log.rollouts)
    mean = f", mean reward {fmean(rewards):.3g}" if rewards else ""
    task_count = f"{tasks:,} task{'s' * (tasks != 1)}"
    return f"{log.form}: {len(log.rollouts):,} completions of {groups:,} groups, {steps:,} steps, {task_count}{mean}"


def _is_silent(group: Sequence[Rollout]) -> bool:
    rewards = rewards_of(group)
    return max(rewards) - min(rewards) < 1e-9


def _groups_without_signal(log: RolloutLog) -> Iterator[Observation]:
    few = [group for own in log.judged.values() if len(own) < MIN_GROUPS for group in own]
    if few:
        silent = sum(map(_is_silent, few))
        message = f"{silent} of {len(few)} groups have equal rewards; a task needs {MIN_GROUPS} groups for a finding"
        remedy = f"Log at least {MIN_GROUPS} groups of each task (TRL: a smaller logging_steps)."
        only = next(iter(log.judged)) if len(log.judged) == 1 else None
        yield Observation("groups", only, "info", silent, len(few), message, remedy)
    for task, own in log.judged.items():
        quiet = [group for group in own if _is_silent(group)]
        if len(own) < MIN_GROUPS or len(quiet) < SILENT_WARNING * len(own):
            continue
        rewards = rewards_of(one for group in own for one in group)
        best, worst = max(rewards), min(rewards)
        right = sum(group[0].reward == best for group in quiet)
        wrong = sum(group[0].reward == worst for group in quiet) if best > worst else 0
        share = len(quiet) / len(own)
        where = f"{right} at the best reward, {wrong} at the worst, {len(quiet) - right - wrong} between"
        where = where if best > worst else f"every completion of the task earned {best:g}"
        message = f"{share:.0%} of the groups have equal rewards, so nothing is learned from them: {where}"
        remedy = NO_SIGNAL_REMEDY.get(log.form, OTHER_REMEDY) + (f" {HARD_REMEDY}" if wrong > right else "")
        severity: Severity = "error" if share >= SILENT_ERROR else "warning"
        check = "hard groups" if wrong > right else "groups"
        yield Observation(check, task, severity, len(quiet), len(own), message, remedy)


def _explain_silence(found: Sequence[Observation], groups: Sequence[Observation]) -> list[Observation]:
    """Put what explains equal rewards everywhere before them: most completions cut, or a part that never pays."""
    is_silent = any(one.severity == "error" for one in groups)
    causes = [one for one in found if one.check in CAUSES and 2 * one.count > one.total]
    if not (is_silent and causes):
        return [*found, *groups]
    others = [one for one in found if one not in causes]
    remedy = "Other prompts do not help as long as the finding above is not mended."
    later = [replace(one, remedy=remedy) if one.severity == "error" else one for one in groups]
    return [*(replace(one, severity="error") for one in causes), *later, *others]


def _starved_tasks(log: RolloutLog) -> Iterator[Observation]:
    counts = {task: len(own) for task, own in log.judged.items()}
    teaching = {task: sum(not _is_silent(group) for group in own) for task, own in log.judged.items()}
    total, total_teaching = sum(counts.values()), sum(teaching.values())
    if len(counts) < 2 or total_teaching < MIN_GROUPS:
        return
    for task, count in counts.items():
        share, own = count / total, teaching[task] / total_teaching
        if count >= MIN_GROUPS and own < STARVED_RATIO * share:
            message = (
                f"the task has {share:.0%} of the groups but {own:.0%} of those with different rewards, so it hardly learns"
            )
            remedy = "Use easier prompts or more completions per prompt, or lower its share."
            yield Observation("starved", task, "warning", teaching[task], count, message, remedy)


def _parts(log: RolloutLog) -> Iterator[Observation]:
    """Report parts of the reward that never differ within a group, and one that makes nearly all of the differences."""
    groups = [group for own in log.judged.values() for group in own]
    names = sorted({name for group in groups for one in group for name in one.parts})
    if len(names) < 2:
        return
    earned = {name: [[one.parts[name] for one in group if name in one.parts] for group in groups] for name in names}
    variances = {name: [float(np.var(values)) if values else 0.0 for values in own] for name, own in earned.items()}
    shared = [sum(map(bool, parts)) > 1 for parts in zip(*earned.values(), strict=True)]  # a reward may be of some tasks
    differences = {name: sum(itertools.compress(own, shared)) for name, own in variances.items()}
    total = sum(differences.values())
    for name, own in earned.items():
        values = list(itertools.compress(variances[name], own))
        constant = sum(value < 1e-12 for value in values)
        if constant >= CONSTANT_SHARE * len(values):
            paid = [one.parts[name] for group in log.groups.values() for one in group if name in one.parts]
            if not any(paid):
                message = f"the reward {name!r} earned 0 on all {len(paid):,} completions"
                remedy = "Run mixwright rewards on it: it may not read such completions, or lack its column."
                yield Observation("never paid", None, "warning", len(paid), len(paid), message, remedy)
                continue
            is_constant = min(paid) == max(paid)
            where = f"earned {paid[0]:g} on all {len(paid):,} completions" if is_constant else "is the same"
            where += "" if is_constant else f" within {constant / len(values):.0%} of the groups"
            message = f"the reward {name!r} {where}, so it teaches nothing"
            remedy = "Remove it once every completion earns it." if is_constant else "Check which completions can earn it."
            yield Observation("parts", None, "warning", constant, len(values), message, remedy)
        elif total > 0 and differences[name] >= DECIDING_SHARE * total:
            share = differences[name] / total
            message = f"the reward {name!r} makes {share:.0%} of the differences within groups; others hardly count"
            remedy = "Scale or weight the rewards if the others should count."
            yield Observation("parts", None, "warning", len(values) - constant, len(values), message, remedy)


def _uncountable(log: RolloutLog) -> Iterator[Observation]:
    """Report completions without a group, and without a reward."""
    total, ungrouped = len(log.rollouts), sum(not one.has_group for one in log.rollouts)
    if ungrouped:
        message = f"{ungrouped:,} completions have no prompt and no example id, so their groups are unknown"
        remedy = "Log the prompt, or an example_id, with each completion."
        yield Observation("no prompt", None, "warning", ungrouped, total, message, remedy)
    if unscored := sum(one.reward is None for one in log.rollouts):
        message = f"{unscored:,} completions have no reward: an environment or a reward function failed, which does not "
        message += "make the answer wrong"
        remedy = "Read the log of the run at these steps, and count these completions separately from wrong ones."
        yield Observation("unscored", None, "warning", unscored, total, message, remedy)


def _one_answer(log: RolloutLog) -> Iterator[Observation]:
    """Report tasks in which always giving the most frequent gold answer would earn as much."""
    by_task: dict[str, list[Rollout]] = defaultdict(list)
    for one in log.thirds[1]:
        if one.gold is not None and one.reward is not None:
            by_task[one.task].append(one)
    for task, own in by_task.items():
        rewards = rewards_of(own)
        golds = Counter({one.group: one.gold for one in own}.values())
        if len(set(rewards)) != 2 or not 2 <= len(golds) <= MAX_GOLDS or golds.total() < MIN_GROUPS:
            continue
        commonest, count = golds.most_common(1)[0]
        rule, right = count / golds.total(), rewards.count(max(rewards))
        share = share_interval(right, len(own))
        if share.low <= rule:
            message = (
                f"{share.value:.0%} of the last completions are right, and {rule:.0%} would be with always {commonest!r}: "
                "so this shows no skill"
            )
            remedy = "Balance the right answers, or ask questions that cannot be guessed."
            yield Observation("one answer", task, "warning", right, len(own), message, remedy)


def _same_completions(log: RolloutLog) -> Iterator[Observation]:
    last = {one.step for one in log.thirds[1]}
    own = [[one.completion for one in group] for group in log.groups.values() if group[0].step in last]
    own = [texts for texts in own if len(texts) > 1 and any(len(text.split()) > 1 for text in texts)]
    same = sum(len(set(texts)) == 1 for texts in own)
    if len(own) >= MIN_GROUPS and same >= SAME_WARNING * len(own):
        message = f"in the last third of the steps {same / len(own):.0%} of the groups repeat one completion"
        remedy = "The policy has lost its diversity: raise the temperature or entropy bonus, lower the learning rate, "
        yield Observation("same", None, "warning", same, len(own), message, f"{remedy}or stop earlier.")


def _completions(log: RolloutLog) -> Iterator[Observation]:
    """Report empty, cut and looping completions of the last third."""
    texts = [one.completion for one in log.thirds[1]]
    cut = [one.is_cut for one in log.thirds[1] if one.is_cut is not None]
    if not cut and (count := _count_open_ends(texts)) > LIKELY_CUT * len(texts):
        message = f"{count / len(texts):.0%} of the completions in the last third of the steps stop in mid-sentence, "
        message += "near the greatest length"
        yield Observation("cut", None, "warning", count, len(texts), message, CUT_REMEDY)
    loops = [_repeats_itself(text) for text in texts]
    for name, shown, limit, words, remedy in (
        ("empty", [not text.strip() for text in texts if log.form != "Tinker"], EMPTY_WARNING, "are empty", EMPTY_REMEDY),
        ("cut", cut, CUT_WARNING, "reached the token limit", CUT_REMEDY),
        ("loops", loops, LOOP_WARNING, "repeat themselves", LOOP_REMEDY),
    ):
        count, total = sum(shown), len(shown)
        if count > limit * total:
            message = f"{count / total:.0%} of the completions in the last third of the steps {words}"
            yield Observation(name, None, "warning", count, total, message, remedy)


def _count_open_ends(texts: Sequence[str]) -> int:
    """Count texts that stop in mid-sentence near the longest one; 0 where all are short."""
    longest = max(map(len, texts), default=0)
    if longest < MIN_LONGEST:
        return 0
    return sum(len(text) >= NEAR_LONGEST * longest and bool(OPEN_END.search(text)) for text in texts)


def _repeats_itself(text: str) -> bool:
    words = text.split()
    triples = list(zip(words, words[1:], words[2:], strict=False))
    return len(triples) >= 30 and len(set(triples)) < 0.5 * len(triples)


def _length(log: RolloutLog) -> Iterator[Observation]:
    """Report completions that became much longer or shorter without a higher reward."""
    sizes = [fmean([len(one.completion) for one in part]) for part in log.thirds]
    rewards = list(map(rewards_of, log.thirds))
    if len({one.step for one in log.rollouts}) < 3 or not min(sizes) or not all(rewards):
        return
    ratio = sizes[1] / sizes[0]
    if not 1 / LENGTH_RATIO < ratio < LENGTH_RATIO and fmean(rewards[1]) <= fmean(rewards[0]):
        message = f"completions went from {sizes[0]:.0f} to {sizes[1]:.0f} characters without a higher mean reward"
        remedy = "Check the reward for length, and how the loss is averaged (per token or per completion)."
        yield Observation("length", None, "warning", len(log.thirds[1]), len(log.rollouts), message, remedy)


def _collapse(log: RolloutLog) -> list[Observation]:
    """Report for each task the step from which its mean reward fell for good, beyond chance between groups."""
    groups: dict[str, dict[int, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for one in log.rollouts:
        if one.reward is not None:
            groups[one.task][one.step][one.group if one.has_group else ""].append(one.reward)
    return [seen for task, by_step in groups.items() if (seen := _collapse_of(task, by_step)) is not None]


def _collapse_of(task: str, by_step: Mapping[int, Mapping[str, Sequence[float]]]) -> Observation | None:
    steps, window = sorted(by_step), max(3, len(by_step) // 20)
    if len(steps) < 3 * window:
        return None
    means = [[fmean(rewards) for rewards in by_step[step].values()] for step in steps]
    running = np.convolve([fmean(values) for values in means], np.ones(window) / window, "valid")
    rewards = [value for groups in by_step.values() for group in groups.values() for value in group]
    spread, best, end = max(rewards) - min(rewards), int(running.argmax()), float(running[-1])
    fall = float(running[best]) - end
    parts = [[value for values in part for value in values] for part in (means[best : best + window], means[-window:])]
    error = math.sqrt(sum(float(np.var(part)) / len(part) for part in parts))
    if spread <= 0 or fall < FALL_SHARE * spread or fall < FALL_ERRORS * error:
        return None
    near_best = np.flatnonzero(running >= running[best] - 0.1 * fall)
    began = steps[int(near_best[-1]) + window - 1]
    message = (
        f"the mean reward fell from {running[best]:.3g} to {end:.3g} and stayed there; the drop began after step {began}"
    )
    remedy = f"Restart from a checkpoint of step {began} or earlier with a lower learning rate."
    return Observation("collapse", task, "error", len(steps) - int(near_best[-1]) - window, len(steps), message, remedy)

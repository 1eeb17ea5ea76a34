"""Planner for SFT and DPO: the user's own shares, and a share of the draws for what the model can do already.

Known tasks are those whose success before is shown to lie above the chance level, those that `keep` names, and those that
nobody measured and the user gave rows to rehearse of. Rows to rehearse of a measured task that is not shown to lie above
chance are left out and named. Each of K known tasks gets max(its own share, share / (1 - share) / K), and then all are
scaled to sum to 1. So known tasks without training rows get `share` together, and no task falls under 1 - share times its
own share. No row to rehearse is drawn more than `most` times; what is then missing goes to other known tasks that have rows
left, and at last back to the new tasks. Training rows of a task come first, then rows of `corpus.rehearse`. Where nothing is
known, or there is one task, or the rows hold enough of what is known, the plan keeps the user's own shares and says why.

Source: rehearsal against forgetting, Scialom et al. 2205.12393; the shares are ours. On SmolLM2-135M-Instruct (five seeds,
    study of a real model) the mean of four old tasks stayed at 95 % [89, 101] with a quarter of old rows, while capitals
    halved. With rows as they came, 10.7 % of them old, it stayed as well; four fifths kept more and taught half of the new
    task.
Unit: share of draws.
Cost: none beyond the measuring before; without it the plan keeps the user's shares.
Blind spot: knows the model at the start only; a kind that nobody measures is not protected, although one
    kind stayed without it (three seeds), and rows of unrelated chats kept one such kind better than the quarter did. What
    the model answers wrongly is rehearsed as it is where its prompt has no gold answer.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mixwright.answers.score import GAIN_SUFFIX
from mixwright.contracts import Planner
from mixwright.errors import InputError, join_some
from mixwright.plan.baseline import as_shares, task_counts
from mixwright.records import Cell, Measurement, Objective, Plan, Stage, TrainingSetup

SUCCESS_NAMES = ("greedy", "pass@1")
"""Names of success, the declared decoding's first."""


@dataclass(frozen=True, slots=True)
class _KnownTask:
    """One task that the model can do already."""

    evidence: str
    """What shows it."""
    own_share: float
    """Its share of the training rows, 0..1."""
    rows: int
    """Training rows."""
    rehearsal_rows: int
    """Rows of `corpus.rehearse`."""

    def max_share(self, rows: int, draws: int, draws_per_row: float) -> float:
        """Largest share of `draws` that so many rows allow at `draws_per_row` draws each; the user's own share always is."""
        return max(draws_per_row * rows / draws, self.own_share)


@dataclass(kw_only=True, eq=False)
class Rehearsal(Planner):
    """Weights that keep what is known.

    Args:
        share: of all draws, for known tasks together where the training rows hold none of them; rows that hold so much of
            them stay as they are.
        keep: tasks that count as known, whatever was measured.
        most: draws of one row to rehearse.
    """

    OBJECTIVES: ClassVar[tuple[Objective, ...]] = ("sft", "dpo")

    share: float = 0.1
    keep: Sequence[str] = ()
    most: float = 4.0

    def __post_init__(self) -> None:
        self.keep = (self.keep,) if isinstance(self.keep, str) else tuple(self.keep)
        if not 0 < self.share <= 0.5:
            raise InputError("a share of the draws above 0 and at most 0.5", f"{self.share:g}", "Correct it.")
        if not 1 <= self.most < math.inf:
            raise InputError("plan.options.most of at least 1", f"{self.most:g}", "Correct it.")

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """The plan. Raises InputError without training rows, or for a task of `keep` that nobody has rows or items of."""
        counts = {task: count for task, count in task_counts(cells).items() if count}
        own_shares = {task: count / sum(counts.values()) for task, count in counts.items()}
        rehearsal_rows: Counter[str] = Counter()
        for cell in cells:
            rehearsal_rows[cell.task] += cell.rehearsal_rows
        evidence_by_task = measured_evidence(competence)
        reason_by_task = {task: text for task, (text, is_known) in evidence_by_task.items() if is_known}
        given_tasks = [task for task, rows in sorted(rehearsal_rows.items()) if rows and task not in evidence_by_task]
        reason_by_task = dict.fromkeys(given_tasks, "there are rows to replay") | reason_by_task
        reason_by_task = dict.fromkeys(self.keep, "you asked to keep it") | reason_by_task
        left_out = {task: rows for task, rows in sorted(rehearsal_rows.items()) if rows and task not in reason_by_task}
        if unknown := [
            task
            for task in self.keep
            if task not in {*own_shares, *evidence_by_task, *(t for t in rehearsal_rows if rehearsal_rows[t])}
        ]:
            task_names = ", ".join(sorted({*own_shares, *evidence_by_task})) or "none"
            raise InputError(
                f"a task to keep that was measured or has rows ({task_names})", repr(unknown[0]), "Correct its name."
            )
        known_tasks = {
            task: _KnownTask(reason_by_task[task], own_shares.get(task, 0.0), counts.get(task, 0), rehearsal_rows[task])
            for task in sorted(reason_by_task)
        }
        draws = training.steps * training.batch
        unchanged_reason = _explain_why_unchanged(known_tasks, own_shares, evidence_by_task)
        if not unchanged_reason and training.objective == "sft" and not self.keep:
            unchanged_reason = _explain_enough(known_tasks, own_shares, self.share)
        weights, shortage_note = (own_shares, "") if unchanged_reason else self._weights(known_tasks, own_shares, draws)
        shares = as_shares({task: weight for task, weight in sorted(weights.items()) if weight > 0})
        tasks_to_rehearse: list[str] = []
        for task in [] if unchanged_reason else [task for task in shares if task in known_tasks]:
            known_task = known_tasks[task]  # are its training rows alone drawn too often for this share?
            if known_task.rehearsal_rows and shares[task] > known_task.max_share(known_task.rows, draws, self.most) + 1e-9:
                tasks_to_rehearse.append(task)
        monitors = ("displacement",) if training.objective == "dpo" else ()
        stage = Stage(
            "training", training.objective, training.steps, shares, monitors=monitors, rehearse=tuple(tasks_to_rehearse)
        )
        weight_reasons = {
            task: f"its share of your rows, {own_shares[task]:.1%}"
            if unchanged_reason
            else _explain_share(task, weight, own_shares, known_tasks, tasks_to_rehearse, draws)
            for task, weight in shares.items()
        }
        why = {f"stages.0.weights.{task}": text for task, text in weight_reasons.items()}
        summary = unchanged_reason or f"{_summarise_plan(shares, known_tasks, own_shares, self.share)}{shortage_note}"
        if left_out:
            why["stages.0.rehearse"] = _explain_left_out(left_out, evidence_by_task)
        return Plan("rehearsal", (stage,), why={"stages.0.weights": summary, **why, "stages.0.steps": "from the settings"})

    def _weights(
        self, known_tasks: Mapping[str, _KnownTask], own_shares: Mapping[str, float], draws: int
    ) -> tuple[dict[str, float], str]:
        """Share of the draws of each task, and a sentence about what the rows do not allow, empty where they allow all."""
        least = self.share / (1 - self.share) / len(known_tasks)
        wanted_shares = {task: max(known_task.own_share, least) for task, known_task in known_tasks.items()}
        wanted_shares |= {task: share for task, share in own_shares.items() if task not in known_tasks}
        wanted_shares = {task: weight / sum(wanted_shares.values()) for task, weight in wanted_shares.items()}
        max_shares = {
            task: known_task.max_share(known_task.rows + known_task.rehearsal_rows, draws, self.most)
            for task, known_task in known_tasks.items()
        }
        given_shares = {task: min(wanted_shares[task], max_shares[task]) for task in known_tasks}
        missing_share = sum(wanted_shares[task] - given_shares[task] for task in known_tasks)
        while missing_share > 1e-9 and (
            tasks_with_room := [task for task in known_tasks if max_shares[task] - given_shares[task] > 1e-9]
        ):
            added_share = min(
                missing_share / len(tasks_with_room), *(max_shares[task] - given_shares[task] for task in tasks_with_room)
            )
            given_shares |= {task: given_shares[task] + added_share for task in tasks_with_room}
            missing_share -= added_share * len(tasks_with_room)
        receiving_shares = {task: share for task, share in own_shares.items() if task not in known_tasks} or dict(own_shares)
        weights = wanted_shares | given_shares
        weights |= {
            task: weights[task] + missing_share * share / sum(receiving_shares.values())
            for task, share in receiving_shares.items()
        }
        shortage_text = (
            f" There are too few rows to replay for {missing_share:.1%} of the samples, at up to {self.most:g} uses per row"
        )
        return weights, f"{shortage_text}; the other tasks get these samples." if missing_share > 5e-4 else ""


def _explain_why_unchanged(
    known_tasks: Mapping[str, _KnownTask], own_shares: Mapping[str, float], evidence_by_task: Mapping[str, tuple[str, bool]]
) -> str:
    """Why the user's own shares stay; empty where there is something to keep beside something else."""
    if known_tasks and not any(known_task.rows + known_task.rehearsal_rows for known_task in known_tasks.values()):
        known_text = ", ".join(f"{task} ({known_task.evidence})" for task, known_task in known_tasks.items())
        reason = f"there are no rows to replay for {known_text}. Add some (corpus.rehearse, --replay FILE)"
    elif known_tasks and len({*known_tasks, *own_shares}) > 1:
        return ""
    elif not evidence_by_task and not known_tasks:
        reason = "no task was measured. Name tasks to keep (--keep), or add rows of them (--replay FILE)"
    elif len(own_shares) == 1 and not set(known_tasks) - set(own_shares):
        reason = "there is only one task"
    else:
        reason = "no task was clearly above its chance level before, so no measured task can be lost"
    return f"The shares of your rows stay: {reason}."


def _explain_enough(known_tasks: Mapping[str, _KnownTask], own_shares: Mapping[str, float], enough_share: float) -> str:
    """Why the user's own shares stay where they hold new tasks and enough rows of each known one; empty where not."""
    tasks = [known_task for known_task in known_tasks.values() if known_task.rows or known_task.rehearsal_rows]
    own_share = sum(known_task.own_share for known_task in tasks)
    least = enough_share / (2 * len(tasks))
    if (
        set(own_shares) <= set(known_tasks)
        or own_share < enough_share
        or any(known_task.rehearsal_rows or known_task.own_share < least for known_task in tasks)
    ):
        return ""
    return (
        f"The shares of your rows stay: {own_share:.1%} are rows of tasks that the model already knows, and "
        f"{enough_share:.0%} is enough. To replay more, name tasks to keep (--keep) or raise the share (--share)."
    )


def _explain_left_out(rows: Mapping[str, int], evidence_by_task: Mapping[str, tuple[str, bool]]) -> str:
    """Explain which rows are not replayed because the model is not clearly above chance."""
    tasks = join_some([f"{task} ({evidence_by_task[task][0]})" for task in rows])
    text = f"Not replayed ({sum(rows.values()):,} rows), because it is not clear that the model knows them: {tasks}"
    return f"{text}. To replay a task anyway, name it (--keep)."


def _summarise_plan(
    shares: Mapping[str, float], known_tasks: Mapping[str, _KnownTask], own_shares: Mapping[str, float], share: float
) -> str:
    """Summarize the plan in a sentence or two."""
    if set(shares) <= set(known_tasks):
        text = "The model already knows all of your tasks, so small tasks get more than their share of your rows"
        return f"{text}, and no task gets less than {1 - share:.0%} of its share."
    known_share = sum(weight for task, weight in shares.items() if task in known_tasks)
    known_text = ", ".join(task for task in shares if task in known_tasks) or "none"
    text = f"{known_share:.0%} of the training samples keep tasks that the model knows ({known_text})"
    share_before = sum(share for task, share in own_shares.items() if task in known_tasks)
    text += f"; your rows alone give them {share_before:.0%}."
    not_rehearsed = [f"{task} ({known_task.evidence})" for task, known_task in known_tasks.items() if task not in shares]
    if not_rehearsed:
        text += f" There are no rows to replay for {', '.join(not_rehearsed)}; requests of other tasks may help (--replay)."
    return text


def _explain_share(
    task: str,
    weight: float,
    own_shares: Mapping[str, float],
    known_tasks: Mapping[str, _KnownTask],
    tasks_to_rehearse: Sequence[str],
    draws: int,
) -> str:
    """Explain the share of a task."""
    if task not in known_tasks:
        return f"{own_shares[task]:.1%} of your rows; replay takes the rest"
    known_task = known_tasks[task]
    rows = known_task.rows + (known_task.rehearsal_rows if task in tasks_to_rehearse else 0)
    source = f"{known_task.rows:,} training rows" if known_task.rows else ""
    if task in tasks_to_rehearse:
        source += f"{' and ' if source else ''}{known_task.rehearsal_rows:,} rows to replay"
    share = f"{known_task.own_share:.1%} of your rows are" if known_task.rows else "none of your rows is"
    return f"kept ({known_task.evidence}): {source}, each seen about {weight * draws / rows:.1f} times; {share} of this task"


def measured_evidence(competence: Sequence[Measurement]) -> dict[str, tuple[str, bool]]:
    """Find of every measured task how often it was right before, and whether that is shown to lie above its chance level.

    By the gain over chance, whose interval holds both errors, where it was measured.
    """
    rows = [row for row in competence if row.probe == "competence"]
    name = next((name for name in SUCCESS_NAMES if any(row.name == name for row in rows)), "")
    evidence_by_task = {}
    for task in sorted({row.task for row in rows}):
        of_task = {row.name: row for row in rows if row.task == task and row.level is None}
        if (row := of_task.get(name)) is None:
            continue
        chance, gain = row.null or 0.0, of_task.get(name + GAIN_SUFFIX)
        low_gain = row.low - chance if gain is None else gain.low
        evidence_by_task[task] = (f"{row.value:.0%} of {row.n} right before, {chance:.0%} by chance", low_gain > 0)
    return evidence_by_task

"""Planner for SFT and DPO: the user's own shares, and a share of the draws for what the model can do already.

Known tasks are those whose success before is shown to lie above the chance level, those that `keep` names, and those that
the user gave rows to rehearse of. Each of K known tasks gets max(its own share, share / K), then all are scaled to sum to 1:
with the default of a third no task falls under three quarters of its own share, and known tasks without training rows get a
quarter together. No row to rehearse is drawn more than `most` times; what is then missing goes to other known tasks that
have rows left, and at last back to the new tasks. Training rows of a task come first, then rows of `corpus.rehearse`. Where
nothing is known, or there is one task, the plan keeps the user's own shares and says why.

Source: rehearsal against forgetting, Scialom et al. 2205.12393; the shares are ours. On three seeds of SmolLM2-135M-Instruct
    (`make demo`) three of four rehearsed kinds stayed; sums, half of whose own answers were wrong, fell on two.
Unit: share of draws.
Cost: none beyond the measuring before; without it the plan keeps the user's shares.
Blind spot: knows the model at the start only; a kind that nobody measures is not protected, although one
    kind stayed without it (three seeds). What the model answers wrongly is rehearsed as it is.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mixwright.contracts import Planner
from mixwright.errors import InputError
from mixwright.estimates.crossed import estimate_crossed
from mixwright.plan.baseline import as_shares, task_counts
from mixwright.records import Cell, Measurement, Objective, Plan, Stage, TrainingSetup

SUCCESS_NAMES = ("greedy", "pass@1")
"""Names of success, the declared decoding's first."""


@dataclass(frozen=True, slots=True)
class _Known:
    """One task that the model can do already."""

    because: str
    """What shows it."""
    own_share: float
    """Its share of the training rows, 0..1."""
    rows: int
    """Training rows."""
    rehearsal_rows: int
    """Rows of `corpus.rehearse`."""

    def limit(self, rows: int, draws: int, most: float) -> float:
        """Largest share of `draws` that so many rows allow at `most` draws each; the user's own share always is."""
        return max(most * rows / draws, self.own_share)


@dataclass(kw_only=True, eq=False)
class Rehearsal(Planner):
    """Weights that keep what is known.

    Args:
        share: what known tasks are worth together, beside 1 for all of the user's rows, before scaling; 1/3 gives a quarter.
        keep: tasks that count as known, whatever was measured.
        most: draws of one row to rehearse.
    """

    OBJECTIVES: ClassVar[tuple[Objective, ...]] = ("sft", "dpo")

    share: float = 1 / 3
    keep: Sequence[str] = ()
    most: float = 4.0

    def __post_init__(self) -> None:
        self.keep = (self.keep,) if isinstance(self.keep, str) else tuple(self.keep)
        if not (0 < self.share <= 1 and 1 <= self.most < math.inf):
            got = f"share {self.share:g}, most {self.most:g}"
            raise InputError("a share above 0 and at most 1, and most of at least 1", got, "Correct plan.options.")

    def plan(self, cells: Sequence[Cell], competence: Sequence[Measurement], training: TrainingSetup) -> Plan:
        """The plan. Raises InputError without training rows, or for a task of `keep` that nobody has rows or items of."""
        counts = {task: count for task, count in task_counts(cells).items() if count}
        own = {task: count / sum(counts.values()) for task, count in counts.items()}
        spare: Counter[str] = Counter()
        for cell in cells:
            spare[cell.task] += cell.rehearsal_rows
        seen = evidence_above_chance(competence)
        reasons = {task: because for task, because in seen.items() if because}
        reasons = {task: "you gave rows to rehearse of it" for task, rows in spare.items() if rows} | reasons
        reasons = dict.fromkeys(self.keep, "you asked to keep it") | reasons
        if unknown := [task for task in self.keep if task not in {*own, *seen, *(t for t in spare if spare[t])}]:
            there = ", ".join(sorted({*own, *seen})) or "none"
            raise InputError(f"a task that was measured or has rows (keep): {there}", repr(unknown[0]), "Correct its name.")
        known = {
            task: _Known(reasons[task], own.get(task, 0.0), counts.get(task, 0), spare[task]) for task in sorted(reasons)
        }
        draws = training.steps * training.batch
        told = _why_unchanged(known, own, seen)
        weights, shortage_note = (own, "") if told else self._weights(known, own, draws)
        found = as_shares({task: weight for task, weight in sorted(weights.items()) if weight > 0})
        borrowed: list[str] = []
        for task in [] if told else [task for task in found if task in known]:
            one = known[task]  # are its training rows alone drawn too often for this share?
            if one.rehearsal_rows and found[task] > one.limit(one.rows, draws, self.most) + 1e-9:
                borrowed.append(task)
        monitors = ("displacement",) if training.objective == "dpo" else ()
        stage = Stage("training", training.objective, training.steps, found, monitors=monitors, rehearse=tuple(borrowed))
        reason = {
            task: f"its share of your rows, {own[task]:.1%}" if told else _why(task, weight, own, known, borrowed, draws)
            for task, weight in found.items()
        }
        why = {f"stages.0.weights.{task}": text for task, text in reason.items()}
        whole = told or f"{_summarise_plan(found, known, own)}{shortage_note}"
        return Plan("rehearsal", (stage,), why={"stages.0.weights": whole, **why, "stages.0.steps": "asked for"})

    def _weights(self, known: Mapping[str, _Known], own: Mapping[str, float], draws: int) -> tuple[dict[str, float], str]:
        """Share of the draws of each task, and a sentence about what the rows do not allow, empty where they allow all."""
        wanted = {task: max(one.own_share, self.share / len(known)) for task, one in known.items()}
        wanted |= {task: share for task, share in own.items() if task not in known}
        wanted = {task: weight / sum(wanted.values()) for task, weight in wanted.items()}
        most = {task: one.limit(one.rows + one.rehearsal_rows, draws, self.most) for task, one in known.items()}
        given = {task: min(wanted[task], most[task]) for task in known}
        missing = sum(wanted[task] - given[task] for task in known)
        while missing > 1e-9 and (free := [task for task in known if most[task] - given[task] > 1e-9]):
            part = min(missing / len(free), *(most[task] - given[task] for task in free))
            given |= {task: given[task] + part for task in free}
            missing -= part * len(free)
        rest = {task: share for task, share in own.items() if task not in known} or dict(own)
        weights = wanted | given
        weights |= {task: weights[task] + missing * share / sum(rest.values()) for task, share in rest.items()}
        few = f" The rows to rehearse are too few for {missing:.1%} of the draws at {self.most:g} draws of a row"
        return weights, f"{few}: these go back to the other tasks." if missing > 5e-4 else ""


def _why_unchanged(known: Mapping[str, _Known], own: Mapping[str, float], seen: Mapping[str, str]) -> str:
    """Why the user's own shares stay; empty where there is something to keep beside something else."""
    if known and not any(one.rows + one.rehearsal_rows for one in known.values()):
        kept = ", ".join(f"{task} ({one.because})" for task, one in known.items())
        why = f"what the model can do already has no rows to rehearse: {kept}. Give some (corpus.rehearse, --rehearse FILE)"
    elif known and len({*known, *own}) > 1:
        return ""
    elif not seen and not known:
        why = "no success was measured of any task, so nothing is known to be lost. Name tasks to keep (keep), or give rows "
        why += "of them (--rehearse FILE)"
    elif len(own) == 1 and not set(known) - set(own):
        why = "there is one task, and nothing beside it to keep"
    else:
        why = "no task was shown to be right above its chance level before, so nothing that was measured can be lost"
    return f"The shares are those of your rows: {why}."


def _summarise_plan(found: Mapping[str, float], known: Mapping[str, _Known], own: Mapping[str, float]) -> str:
    """What the plan does, in a sentence or two."""
    if set(found) <= set(known):
        text = "The model can do all of your tasks already: small ones get more than their share of your rows"
        return f"{text}, and none less than three quarters of it."
    part = sum(weight for task, weight in found.items() if task in known)
    kept = ", ".join(task for task in found if task in known) or "none"
    text = f"{part:.0%} of the draws keep what the model can do already ({kept})"
    before = sum(share for task, share in own.items() if task in known)
    text += f"; your rows alone would give these tasks {before:.0%}."
    without = [f"{task} ({one.because})" for task, one in known.items() if task not in found]
    return text + (f" Not rehearsed, because there are no rows of it: {', '.join(without)}." if without else "")


def _why(
    task: str, weight: float, own: Mapping[str, float], known: Mapping[str, _Known], borrowed: Sequence[str], draws: int
) -> str:
    """Why a task has its share."""
    if task not in known:
        return f"{own[task]:.1%} of your rows; the rest of the draws keeps what the model can do already"
    one = known[task]
    rows = one.rows + (one.rehearsal_rows if task in borrowed else 0)
    source = f"{one.rows:,} training rows" if one.rows else ""
    if task in borrowed:
        source += f"{' and ' if source else ''}{one.rehearsal_rows:,} rows to rehearse"
    share = f"{one.own_share:.1%} of your rows" if one.rows else "none of your rows"
    return f"kept: {one.because}; {share}; {source}, each drawn about {weight * draws / rows:.1f} times"


def evidence_above_chance(competence: Sequence[Measurement]) -> dict[str, str]:
    """Task -> what shows that success lies above the chance level, empty where that is not shown; every measured task.

    Of each item the chance rule's score is taken off, so that the interval holds both errors.
    """
    rows = [row for row in competence if row.probe == "competence" and row.name in SUCCESS_NAMES]
    name = next((name for name in SUCCESS_NAMES if any(row.name == name for row in rows)), "")
    found = {}
    for task in sorted({row.task for row in rows}):
        own = [row for row in rows if row.task == task and row.name == name]
        items = [row for row in own if row.example is not None and row.null is not None]
        whole = next((row for row in own if row.example is None and row.level is None), None)
        if items:
            value, chance = (float(np.mean([getattr(row, part) for row in items])) for part in ("value", "null"))
            gaps = [row.value - (row.null or 0.0) for row in items]
            levels = list(dict.fromkeys(row.level for row in items))
            low = estimate_crossed(np.array([gaps]), [levels.index(row.level) for row in items]).low
            count = len(items)
        elif whole is not None:
            value, chance, low, count = whole.value, whole.null or 0.0, whole.low - (whole.null or 0.0), whole.n
        else:
            continue
        found[task] = f"{value:.0%} right of {count} before, chance level {chance:.0%}" if low > 0 else ""
    return found

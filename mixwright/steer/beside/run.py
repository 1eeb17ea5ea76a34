"""Run beside a trainer: the engine, the draws, the coefficients, and the files of one run. Knows no TRL.

A trainer hands in outcomes and asks for rows; what the engine answers becomes coefficients here, which the trainer reads.
Every draw is kept, so that a resumed run serves the same rows again and only then draws anew.
"""

from __future__ import annotations

import logging
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Action, CanaryOutcome, Decision, GroupOutcome, PairOutcome, SFTOutcome, Signals, cell_key
from mixwright.steer.beside.files import (
    DRAWN_AHEAD,
    LOSS_TOKENS_PREFIX,
    PER_TASK_METRICS,
    SteeringFiles,
    drawn_shares,
    group_line,
    loss_token_shares,
    proof_counts,
)
from mixwright.steer.beside.reward_range import RewardRange
from mixwright.steer.pool import Ids, Pool

if TYPE_CHECKING:
    from mixwright.steer.engine import Engine

OVERFLOW_REASON = "no row of {rows} has a finite loss; the run has overflowed"
UNSCORED_REASON = {
    "grpo": "no reward function returned a finite number for any completion (groups: {rows}), so all advantages are 0",
    "sft": OVERFLOW_REASON,
    "dpo": OVERFLOW_REASON,
}
"""What is said once when nothing of a batch can be used."""
NO_BETA_REASON = {
    "grpo": "beta was 0 at the start, so there is no reference model",
    "sft": "SFT has no KL coefficient",
    "dpo": "DPO's beta is the temperature of its loss, not a KL penalty, so changing it would change the objective",
}
"""Why beta cannot be moved."""
NOT_SCORED = float("nan")
"""Success of a draw whose group has not come back."""
MAX_LISTED = 100
"""Cells, or tasks, above which a line of the log has those of its batch alone, and changes are summed up."""


class DrawLog:
    """All draws of a run, as one growing list of rows; reading past its end draws.

    Args:
        draw: gives that many rows (pool indices); called only when a row is asked for that was never drawn.
    """

    def __init__(self, draw: Callable[[int], Sequence[int]]) -> None:
        self._draw = draw
        self.rows = array("i")
        self.start = 0
        """Where the current call of `train` began; draws before it are history."""
        self._success = array("f")  # one per row

    def __len__(self) -> int:
        return len(self.rows)

    def read_or_draw(self, position: int, count: int) -> list[int]:
        """`count` rows from `position` (counted from `start`): what was drawn there before, or new draws."""
        first_draw = self.start + position
        missing_count = first_draw + count - len(self.rows)
        if missing_count > 0:
            self.rows.extend(self._draw(missing_count))
        return self.rows[first_draw : first_draw + count].tolist()

    def record_outcomes(
        self,
        position: int,
        rows: int,
        ids: tuple[str, ...] | Ids,
        groups: Sequence[GroupOutcome],
    ) -> None:
        """Note the success of groups that came back.

        Args:
            position: of the first draw of their batch, among all draws.
            rows: draws of the batch, those included that nothing was scored of.
            ids: of the pool's examples.
            groups: that came back, in the order in which they were drawn.
        """
        self._fill()
        successes_by_example: defaultdict[str, list[float]] = defaultdict(list)
        for group in reversed(groups):
            successes_by_example[group.example].append(sum(group.successes) / len(group.successes))
        for draw_index in range(position, min(position + rows, len(self.rows))):
            if successes := successes_by_example.get(ids[self.rows[draw_index]]):
                self._success[draw_index] = successes.pop()

    def success(self) -> np.ndarray:
        """Success that came of each draw, float32 of shape (draws,); NaN where no group came back."""
        self._fill()
        return np.array(self._success)

    def _fill(self) -> None:
        """A number for each row."""
        self._success.extend([NOT_SCORED] * (len(self.rows) - len(self._success)))

    def state(self) -> dict[str, Any]:
        """Numbers, lists and bytes, for `write_state`: 4 bytes a draw, and 4 more where groups came back."""
        success_bytes = b"" if np.isnan(self.success()).all() else self._success.tobytes()
        return {"rows": self.rows.tolist(), "start": self.start, "success": success_bytes}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.rows, self.start = array("i", state["rows"]), state["start"]
        self._success = array("f", state["success"])


class LastLosses:
    """The last loss of every example in this run; 4 bytes each.

    Args:
        size: examples of the pool.
    """

    def __init__(self, size: int) -> None:
        self.nats = np.full(size, np.nan, dtype=np.float32)
        """Nats per target token; NaN: not seen yet."""

    def record_loss(self, index: int, loss: float) -> float | None:
        """By how much `loss` is under the last one, which it replaces; None at first sight."""
        last_loss = float(self.nats[index])
        self.nats[index] = loss
        return None if last_loss != last_loss else last_loss - loss

    def state(self) -> dict[str, Any]:
        """JSON-ready: examples seen, and their losses; exact, because every float32 is a float."""
        seen_indices = np.flatnonzero(~np.isnan(self.nats))
        return {"index": seen_indices.tolist(), "nats": self.nats[seen_indices].tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.nats[:] = np.nan
        self.nats[np.asarray(state["index"], dtype=np.int64)] = state["nats"]


class RunSteering:
    """One steered run.

    Args:
        engine: decides.
        pool: what may be drawn.
        files: where lines go.
        beta: the trainer's KL coefficient at the start; 0 means there is no reference model and it cannot be moved.
        lr_reason: why the learning rate cannot be scaled; empty when it can.
        objective: grpo, sft or dpo.
    """

    def __init__(
        self, engine: Engine, pool: Pool, files: SteeringFiles, *, beta: float, lr_reason: str = "", objective: str = "grpo"
    ) -> None:
        self.engine, self.pool, self.files, self.objective = engine, pool, files, objective
        self.reward_range = RewardRange(*engine.options.reward_range, was_set=engine.range_was_set)
        """What rewards mean to steering."""
        self.beta, self.lr_reason = beta, lr_reason
        self.beta_reason = ""
        """Why beta cannot be moved although there is a reference model; empty when it can."""
        self.lr_factor = 1.0
        self.stop_reason = ""
        """Why training must stop; empty while it may go on."""
        self.find_last_without_alarm: Callable[[], str] = str
        """Names the last checkpoint saved while no alarm stood; empty when there is none."""
        self.draws = DrawLog(self._draw)
        self.rollouts = 0
        """Completions charged, canaries included."""
        self.batches = 0
        """Generation batches observed."""
        self.metrics: defaultdict[str, list[float]] = defaultdict(list)
        """Since the trainer last logged."""
        self.dropped = 0
        """Rows of the dataset that cannot be drawn, because the trainer dropped them."""
        self.losses = LastLosses(len(pool.ids) if objective == "sft" else 0)
        """Last loss per example, in SFT."""
        """Whether a plan was given."""
        self.max_unscored_batches = 0
        """Generation batches in a row without any score after which training stops; 0 lets it go on."""
        self._counts: Counter[str] = Counter()
        self._wanted_draws: defaultdict[str, float] = defaultdict(float)
        self._rows_by_batch: list[tuple[int, int]] = []
        self._next_position = 0
        self._refused_draws: list[int] = []
        self._lines: list[dict[str, Any]] = []
        self._skips: list[bool] = []
        self._canary_kl: float | None = None
        self._step_begins = True

    def observe(
        self, step: int, groups: Sequence[GroupOutcome], *, rows: int, completions: int, kl: float | None
    ) -> set[str]:
        """Hand a generation batch of GRPO to the engine and take over what it decides.

        Args:
            step: optimiser steps done.
            groups: outcomes with true rewards.
            rows: rows of the batch, unscorable ones included.
            completions: completions of the batch, unscorable ones included; all are charged.
            kl: nats per token since the last call, if the trainer measured it.

        Returns:
            Example ids whose groups are refused.

        Raises:
            InputError: nothing was scored in `max_unscored_batches` batches in a row.
        """
        groups = self._read(step, groups)
        signals = self._signals(step, kl_nats=kl, groups=len(groups))
        is_held = self.reward_range.is_learning
        actions = [] if is_held else self.engine.observe(self.reward_range.as_planned(groups), signals)
        refused = {action.target for action in actions if action.kind == "refuse"}
        if refused:
            numbered_rows = enumerate(self.draws.rows[self._next_position : self._next_position + rows], self._next_position)
            self._refused_draws += [draw_index for draw_index, row in numbered_rows if self.pool.ids[row] in refused]
        if not self.reward_range.is_learning:
            self.draws.record_outcomes(self._next_position, rows, self.pool.ids, groups)
        self.rollouts += completions
        self._count_unscored(step, rows, len(groups))
        figures_by_cell = self.engine.snapshot()
        if len(figures_by_cell) > MAX_LISTED:
            batch_cells = {cell_key(group.task, group.level) for group in groups}
            figures_by_cell = {cell: figures for cell, figures in figures_by_cell.items() if cell in batch_cells}
        cells, states = ({cell: figures[name] for cell, figures in figures_by_cell.items()} for name in ("kappa", "state"))
        line = self._count_batch(step, groups, rows) | group_line(groups, refused)
        line |= {"held": True} if is_held else {}
        line |= {"rollouts": self.rollouts, "cells": cells, "states": states}
        self._finish_batch(step, actions, line)
        self.metrics["steering/zero_signal_share"].append(line["zero_signal"] / max(1, len(groups)))
        self.metrics["steering/refused_share"].append(line["refused"] / max(1, len(groups)))
        return refused

    def _count_unscored(self, step: int, rows: int, groups: int) -> None:
        """Say once in the run that nothing of a batch was scored, so nothing could be learnt or steered by it."""
        counts, reason = self._counts, UNSCORED_REASON[self.objective].format(rows=rows)
        counts["unscored"] += rows - groups
        counts["unscored_batches"] += not groups
        counts["unscored_in_a_row"] = 0 if groups else counts["unscored_in_a_row"] + 1
        if not groups and counts["unscored_batches"] == 1:
            self.note(step, "nothing scored", reason)
            if self.files.writes:
                logging.getLogger("mixwright").warning("step %d: nothing scored: %s", step, reason)
        if self.objective == "grpo" and 0 < self.max_unscored_batches <= counts["unscored_in_a_row"]:
            expected = f"a reward in {self.max_unscored_batches} generation batches in a row"
            got = f"none, up to step {step}: {reason}"
            remedy = "Correct the reward functions, or set SteeringConfig(unscored_batches=0) to continue anyway."
            raise InputError(expected, got, remedy)

    def _read(self, step: int, groups: Sequence[GroupOutcome]) -> list[GroupOutcome]:
        """The groups with their rewards as successes; what is said of the range of rewards is logged."""
        read_groups, decisions = self.reward_range.read_batch(step, groups)
        self.files.write_decisions(decisions)
        for line in decisions:
            self._counts[line.what] += 1
            if self.files.writes and self._counts[line.what] == 1:
                logging.getLogger("mixwright").warning("step %d: %s: %s.", step, line.what, line.because)
        return read_groups

    def observe_rows(
        self, step: int, outcomes: Sequence[SFTOutcome | PairOutcome], rows: int, line: Mapping[str, Any]
    ) -> None:
        """Hand a step of SFT or DPO to the engine.

        Args:
            step: optimiser steps done.
            outcomes: of examples or pairs; those that overflowed are left out.
            rows: of the step, those that overflowed included.
            line: what they showed, by `loss_line` or `pair_line`.
        """
        actions = self.engine.observe(outcomes, self._signals(step))
        self._count_unscored(step, rows, len(outcomes))
        for outcome in outcomes if self.objective == "sft" else ():
            self._counts[LOSS_TOKENS_PREFIX + outcome.task] += outcome.tokens  # type: ignore[union-attr]
        self._finish_batch(step, actions, self._count_batch(step, outcomes, rows) | dict(line))
        for name in PER_TASK_METRICS if len(self.pool.tasks) <= MAX_LISTED else ():
            for task, value in line.get(name, {}).items():
                self.metrics[f"steering/{name}/{task}"].append(value)

    def watch(self, step: int, canaries: Sequence[CanaryOutcome], *, rollouts: int = 0, tokens: int = 0) -> None:
        """Hand fresh canary results to the engine; their rollouts (GRPO) or the tokens read (SFT, DPO) are charged."""
        self.charge(rollouts=rollouts, tokens=tokens)
        measured = [canary.kl_nats for canary in canaries if canary.kl_nats is not None]
        kl = sum(measured) / len(measured) if measured else None
        self._apply_actions(step, self.engine.watch(self._signals(step, kl_nats=kl, canaries=tuple(canaries))))
        if not canaries:
            self._counts["blind_passes"] += 1
            if self._counts["blind_passes"] == 1:
                self.note(step, "canaries unscored", "no reward function scored any canary, so forgetting is not monitored")
            return
        self._canary_kl = kl
        self.metrics["steering/canary_success"] = [sum(canary.success for canary in canaries) / len(canaries)]
        if kl is not None:
            self.metrics["steering/canary_kl"] = [kl]

    def begin(self) -> None:
        """Training begins, perhaps again: what an interrupted step left behind is forgotten."""
        self._lines, self._canary_kl, self._step_begins = [], None, True
        self.metrics.clear()

    def begin_anew(self) -> None:
        """Training is called again without a checkpoint: what was drawn ahead and not used belongs to no step of it."""
        unused_count = len(self.draws) - self._next_position
        if unused_count > 0:
            self._rows_by_batch.append((DRAWN_AHEAD, unused_count))
            self._next_position += unused_count
        self.draws.start = len(self.draws)

    def finish(self) -> None:
        """Training has ended: write down what the engine was collecting for one line."""
        self.engine.finish()
        self.files.write_decisions(self.engine.take_decisions())

    def charge(self, *, rollouts: int = 0, tokens: int = 0) -> None:
        """Count completions made, and tokens read, for watching and not for learning."""
        self.rollouts += rollouts
        self._counts["canary_rollouts"] += rollouts
        self._counts["canary_tokens"] += tokens

    def note(self, step: int, decision_name: str, reason: str) -> None:
        """Log something that is not (or cannot be) done."""
        self.files.write_decisions([Decision(step, decision_name, None, None, reason)])

    @property
    def skips_step(self) -> bool:
        """Whether the coming optimiser step is skipped: every generation batch that feeds it said so."""
        return bool(self._skips) and all(self._skips)

    def finish_step(self, *, kl: float | None, entropy: float | None) -> None:
        """An optimiser step was made: write the lines of its generation batches, with what the loss showed.

        Args:
            kl: nats per token; where the trainer has none, that of canaries watched after this step stands in.
            entropy: nats per token.
        """
        self._step_begins = True
        loss_figures = {"entropy": entropy, "kl_nats": self._canary_kl if kl is None else kl}
        for line in self._lines:
            self.files.write_step(line | loss_figures)
        self._canary_kl = None
        self._lines.clear()

    def drain_metrics(self) -> dict[str, float]:
        """Means since the last call, for the trainer's own log."""
        means = {name: sum(values) / len(values) for name, values in self.metrics.items() if values}
        self.metrics.clear()
        return means

    def write(self) -> None:
        """Draws and proof as they stand now."""
        self.files.write_draws(self.pool, self.draws.rows, self.draws.success(), self._rows_by_batch, self._refused_draws)
        self.files.write_proof(self.proof())

    def proof(self) -> dict[str, Any]:
        """Drawn against wanted, zero-signal share, refused, rollouts: the numbers that show steering did what it says."""
        total = sum(self._wanted_draws.values()) or 1
        return {
            "draws": len(self.draws),
            "drawn": drawn_shares(self.pool, self.draws.rows),
            "wanted": {task: self._wanted_draws[task] / total for task in self.pool.tasks},
            "largest_lag": self._counts["largest_lag"],
            **({"rewards_outside": self.reward_range.outside} if self.reward_range.outside else {}),
            **proof_counts(self.objective, self._counts, self.rollouts),
            **loss_token_shares(self._counts),
            "skipped_steps": self._counts["skipped_steps"],
            "dropped_rows": self.dropped,
        }

    def count_skipped_step(self) -> None:
        """An optimiser step was skipped."""
        self._counts["skipped_steps"] += 1

    def state(self) -> dict[str, Any]:
        """JSON-ready; `restore(state())` on a fresh object continues exactly."""
        return {
            "engine": self.engine.state_dict(),
            "draws": self.draws.state(),
            "coefficients": {"beta": self.beta, "lr_factor": self.lr_factor, "stop": self.stop_reason},
            "progress": {"rollouts": self.rollouts, "batches": self.batches}
            | {"skips": self._skips, "rows_by_batch": self._rows_by_batch, "refused": self._refused_draws},
            "counts": dict(self._counts),
            "expected": dict(self._wanted_draws),
            "losses": self.losses.state(),
            "reward_range": self.reward_range.state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.engine.load_state_dict(state["engine"])
        self.draws.restore(state["draws"])
        coefficients, progress = state["coefficients"], state["progress"]
        self.beta, self.lr_factor, self.stop_reason = coefficients["beta"], coefficients["lr_factor"], coefficients["stop"]
        self.rollouts, self.batches = progress["rollouts"], progress["batches"]
        self._skips, self._rows_by_batch = list(progress["skips"]), [tuple(pair) for pair in progress["rows_by_batch"]]
        self._next_position = sum(rows for _, rows in self._rows_by_batch)
        self._refused_draws = list(progress["refused"])
        self._counts, self._wanted_draws = Counter(state["counts"]), defaultdict(float, state["expected"])
        self.losses.restore(state["losses"])
        self.reward_range.restore(state["reward_range"])

    def _draw(self, count: int) -> Sequence[int]:
        for task, weight in self.engine.wanted_shares().items():
            self._wanted_draws[task] += weight * count
        self._counts["largest_lag"] = max(self._counts["largest_lag"], len(self.draws) - self._next_position)
        return self.engine.draw(count)

    def _signals(self, step: int, **known: Any) -> Signals:
        return Signals(step, self.beta, self.lr_factor, **known)

    def _count_batch(
        self, step: int, outcomes: Sequence[GroupOutcome | SFTOutcome | PairOutcome], rows: int
    ) -> dict[str, Any]:
        self._rows_by_batch.append((step, rows))
        self._next_position, self.batches = self._next_position + rows, self.batches + 1
        scored_by_task = Counter(outcome.task for outcome in outcomes)
        wanted_shares = self.engine.wanted_shares()
        if len(wanted_shares) > MAX_LISTED:
            self.metrics["steering/tasks_scored"].append(len(scored_by_task))
            return {
                "step": step,
                "scored": dict(scored_by_task),
                "wanted": {task: wanted_shares[task] for task in scored_by_task},
            }
        for task in self.pool.tasks:
            self.metrics[f"steering/share/{task}"].append(scored_by_task[task] / max(1, len(outcomes)))
        return {"step": step, "scored": dict(scored_by_task), "wanted": wanted_shares}

    def _finish_batch(self, step: int, actions: Sequence[Action], line: dict[str, Any]) -> None:
        if self._step_begins:
            self._skips, self._step_begins = [], False
        self._skips.append(any(action.kind == "skip_step" for action in actions))
        self._apply_actions(step, actions)
        for name in ("groups", "zero_signal", "refused", "examples", "pairs"):
            self._counts[name] += line.get(name, 0)
        beta = {"beta": self.beta} if self.objective == "grpo" else {}
        self._lines.append(line | beta | {"lr_factor": self.lr_factor, "skip_step": self._skips[-1]})

    def _apply_actions(self, step: int, actions: Sequence[Action]) -> None:
        """Turn actions into coefficients; what cannot be executed is logged with the reason."""
        self.files.write_decisions(self.engine.take_decisions())
        for action in actions:
            if action.kind == "coefficient" and action.target == "beta" and action.value is not None:
                if self.beta > 0 and action.value > 0 and not self.beta_reason:
                    self.beta = action.value
                else:
                    self.note(step, "not executed: beta", self.beta_reason or NO_BETA_REASON[self.objective])
            elif action.kind == "lr_factor" and action.value is not None:
                if not self.lr_reason:
                    self.lr_factor = action.value
                elif not self._counts["lr_factor_noted"]:  # said once: batches with few informative groups move the factor
                    self._counts["lr_factor_noted"] = 1
                    self.note(step, "not executed: lr_factor", self.lr_reason)
            elif action.kind in ("stop", "restore"):
                self.stop_reason = action.because
                if action.kind == "restore":
                    name = self.find_last_without_alarm()
                    why = f"a running trainer cannot go back, so training stops; resume from {name}"
                    if not name:
                        why = f"training stops; no {action.target} is left (keep more with save_total_limit)"
                    line = Decision(step, "stop instead of restore", action.target, name or None, why)
                    self.files.write_decisions([line])
        self.metrics["steering/lr_factor"] = [self.lr_factor]
        if self.objective == "grpo":
            self.metrics["steering/beta"] = [self.beta]

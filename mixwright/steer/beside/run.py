"""Run beside a trainer: the engine, the draws, the coefficients, and the files of one run. Knows no TRL.

A trainer hands in outcomes and asks for rows; what the engine answers becomes coefficients here, which the trainer reads.
Every draw is kept, so that a resumed run serves the same rows again and only then draws anew.
"""

from __future__ import annotations

import logging
from array import array
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from mixwright.errors import InputError
from mixwright.records import (
    Action,
    Decision,
    GroupOutcome,
    PairOutcome,
    SFTOutcome,
    Signals,
    to_data,
)
from mixwright.steer.beside.files import DECISIONS, PAIR_NUMBERS, STEPS, SteeringFiles, group_line
from mixwright.steer.checkpointable import Checkpointable
from mixwright.steer.ledger import read_rewards
from mixwright.steer.pool import Pool

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
PROOF_COUNTS = {
    "grpo": ("groups", "zero_signal", "refused", "unscored"),
    "sft": ("examples", "unscored"),
    "dpo": ("pairs", "unscored"),
}
"""Counts of proof.json, by objective."""
LINE_COUNTS = ("groups", "zero_signal", "refused", "examples", "pairs")
"""Counts of a line of steps.jsonl that are summed up for proof.json."""
UNKNOWN = -1
"""Step and batch of a draw that was drawn ahead and never used, and success of one whose group has not come back."""
MAX_LISTED = 100
"""Tasks above which the trainer's log sums them up."""


class DrawLog(Checkpointable):
    """All draws of a run, as one growing list of rows; reading past its end draws.

    Args:
        draw: gives that many rows (pool indices); called only when a row is asked for that was never drawn.
    """

    STATE_FIELDS = ("rows", "steps", "batches", "success", "refused")

    def __init__(self, draw: Callable[[int], Sequence[int]]) -> None:
        self._draw = draw
        self.rows = array("i")
        self.steps, self.batches = array("i"), array("i")
        """Optimiser step and generation batch of each draw that was used; the rest were drawn ahead."""
        self.success = array("f")
        """Success that came of each of them; empty in SFT and DPO."""
        self.refused = array("i")
        """Positions of draws whose groups were refused."""

    def __len__(self) -> int:
        return len(self.rows)

    def read_or_draw(self, position: int, count: int) -> list[int]:
        """`count` rows from `position`: what was drawn there before, or new draws."""
        missing_count = position + count - len(self.rows)
        if missing_count > 0:
            self.rows.extend(self._draw(missing_count))
        return self.rows[position : position + count].tolist()

    def record_batch(self, step: int, batch: int, count: int) -> range:
        """Note that the next `count` draws were used in a batch; returns their positions."""
        first = len(self.steps)
        positions = range(first, min(first + count, len(self.rows)))
        self.steps.extend([step] * len(positions))
        self.batches.extend([batch] * len(positions))
        return positions

    def record_groups(
        self, positions: range, ids: Sequence[str], groups: Sequence[GroupOutcome], refused: Collection[str]
    ) -> None:
        """Note what came of a batch of groups.

        Args:
            positions: of its draws.
            ids: example of each of them.
            groups: that came back and were read, in the order in which they were drawn.
            refused: ids of examples whose groups were refused.
        """
        self.success.extend([UNKNOWN] * (positions.stop - len(self.success)))
        waiting = deque(groups)
        for position, example in zip(positions, ids, strict=True):
            if example in refused:
                self.refused.append(position)
            if waiting and waiting[0].example == example:
                successes = waiting.popleft().successes
                self.success[position] = sum(successes) / len(successes)

    def columns(self, pool: Pool) -> dict[str, pa.Array]:
        """Columns of draws.parquet: a row for each draw, null for what is not known of it."""
        cells = [pool.cells[cell] for cell in pool.cell_of[np.array(self.rows, dtype=np.int64)]]
        is_refused = np.zeros(len(self.rows), dtype=bool)
        is_refused[np.array(self.refused, dtype=np.int64)] = True
        return {
            "draw": pa.array(np.arange(len(self.rows))),
            "step": self._nullable(self.steps, pa.int64()),
            "batch": self._nullable(self.batches, pa.int64()),
            "example": pa.array([pool.ids[row] for row in self.rows], pa.string()),
            "task": pa.array([cell.task for cell in cells], pa.string()),
            "level": pa.array([cell.level for cell in cells], pa.float64()),
            "refused": pa.array(is_refused),
            "success": self._nullable(self.success, pa.float32()),
        }

    def _nullable(self, known: array[Any], kind: pa.DataType) -> pa.Array:
        """A value for each draw, null for `UNKNOWN`."""
        values = np.full(len(self.rows), UNKNOWN, dtype=known.typecode)
        values[: len(known)] = known
        return pa.array(values, kind, mask=values == UNKNOWN)


class RunSteering(Checkpointable):
    """One steered run.

    Args:
        engine: decides.
        pool: what may be drawn.
        files: where lines go.
        beta: the trainer's KL coefficient at the start; 0 means there is no reference model and it cannot be moved.
        lr_reason: why the learning rate cannot be scaled; empty when it can.
        objective: grpo, sft or dpo.
    """

    STATE_FIELDS = (
        "draws",
        "beta",
        "lr_factor",
        "stop_reason",
        "rollouts",
        "batches",
        "_counts",
        "_loss_tokens",
        "_skips",
    )

    def __init__(
        self, engine: Engine, pool: Pool, files: SteeringFiles, *, beta: float, lr_reason: str = "", objective: str = "grpo"
    ) -> None:
        self.engine, self.pool, self.files, self.objective = engine, pool, files, objective
        self.reward_range = engine.options.reward_range
        """Rewards of a wrong and of a right answer, as steering reads them. Training sees rewards unchanged."""
        self.reward_names: Sequence[str] = ()
        """Names of the reward functions, for what is said."""
        self.beta, self.lr_reason = beta, lr_reason
        self.lr_factor = 1.0
        self.stop_reason = ""
        """Why training must stop; empty while it may go on."""
        self.draws = DrawLog(engine.draw)
        self.rollouts = 0
        """Completions charged."""
        self.batches = 0
        """Generation batches observed."""
        self.metrics: defaultdict[str, list[float]] = defaultdict(list)
        """Since the trainer last logged."""
        self.dropped = 0
        """Rows of the dataset that cannot be drawn, because the trainer dropped them."""
        self.max_unscored_batches = 0
        """Generation batches in a row without any score after which training stops; 0 lets it go on."""
        self._counts: Counter[str] = Counter()
        self._loss_tokens: Counter[str] = Counter()
        """Tokens in the loss per task, in SFT."""
        self._lines: list[dict[str, Any]] = []
        self._skips: list[bool] = []
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
        self._count_outside(step, [reward for group in groups for reward in group.rewards])
        groups = read_rewards(groups, self.reward_range)
        actions = self.engine.observe(groups, Signals(step, self.beta, kl))
        refused = {action.target for action in actions if action.kind == "refuse"}
        positions = self.draws.record_batch(step, self.batches, rows)
        ids = [self.pool.ids[self.draws.rows[position]] for position in positions]
        self.draws.record_groups(positions, ids, groups, refused)
        self.rollouts += completions
        line = group_line(groups, refused) | {"rollouts": self.rollouts}
        self._finish_batch(step, groups, rows, actions, line)
        self.metrics["steering/zero_signal_share"].append(line["zero_signal"] / max(1, len(groups)))
        self.metrics["steering/refused_share"].append(line["refused"] / max(1, len(groups)))
        return refused

    def _count_outside(self, step: int, rewards: Sequence[float]) -> None:
        """Count rewards outside the range, which steering clips, and warn of the first."""
        low, high = self.reward_range
        rounding = 1e-5 * (high - low)  # of sums in float32
        outside = sum(not low - rounding <= reward <= high + rounding for reward in rewards)
        self._counts["rewards_outside"] += outside
        if outside:
            names_text = f", weighted sums of {', '.join(self.reward_names)}" if self.reward_names else ""
            reason = (
                f"{outside} of {len(rewards)} scored completions in this batch have a reward outside the reward_range "
                f"{low:g} to {high:g}{names_text} (lowest {min(rewards):g}, highest {max(rewards):g}). "
                "Training uses them unchanged; steering clips them. Set SteeringConfig(reward_range=(wrong, right)), or "
                "options: {engine: {reward_range: [wrong, right]}} in the plan's stage"
            )
            self._note_once(step, "lint.reward_range", reason, warns=True)

    def _count_unscored(self, step: int, rows: int, groups: int) -> None:
        """Say once in the run that nothing of a batch was scored, so nothing could be learnt or steered by it."""
        counts, reason = self._counts, UNSCORED_REASON[self.objective].format(rows=rows)
        counts["unscored"] += rows - groups
        counts["unscored_in_a_row"] = 0 if groups else counts["unscored_in_a_row"] + 1
        if not groups:
            self._note_once(step, "nothing scored", reason, warns=True)
        if self.objective == "grpo" and 0 < self.max_unscored_batches <= counts["unscored_in_a_row"]:
            expected = f"a reward in {self.max_unscored_batches} generation batches in a row"
            got = f"none, up to step {step}: {reason}"
            remedy = "Correct the reward functions, or set SteeringConfig(unscored_batches=0) to continue anyway."
            raise InputError(expected, got, remedy)

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
        actions = self.engine.observe(outcomes, Signals(step, self.beta))
        self.draws.record_batch(step, self.batches, rows)
        for outcome in outcomes:
            if isinstance(outcome, SFTOutcome):
                self._loss_tokens[outcome.task] += outcome.tokens
        self._finish_batch(step, outcomes, rows, actions, line)
        for name in PAIR_NUMBERS if len(self.pool.tasks) <= MAX_LISTED else ():
            for task, value in line.get(name, {}).items():
                self.metrics[f"steering/{name}/{task}"].append(value)

    def begin(self) -> None:
        """Training begins, perhaps again: what an interrupted step left behind is forgotten."""
        self._lines, self._step_begins = [], True
        self.metrics.clear()

    def note(self, step: int, decision_name: str, reason: str) -> None:
        """Log something that is not (or cannot be) done."""
        self.log([Decision(step, decision_name, None, None, reason)])

    def _note_once(self, step: int, decision_name: str, reason: str, *, warns: bool = False) -> None:
        if self._counts[decision_name]:
            return
        self._counts[decision_name] = 1
        self.note(step, decision_name, reason)
        if warns and self.files.writes:
            logging.getLogger("mixwright").warning("step %d: %s: %s", step, decision_name, reason)

    def log(self, decisions: Sequence[Decision]) -> None:
        """Write decisions down."""
        self.files.append(DECISIONS, [to_data(decision) for decision in decisions])

    @property
    def skips_step(self) -> bool:
        """Whether the coming optimiser step is skipped: every generation batch that feeds it said so."""
        return bool(self._skips) and all(self._skips)

    def finish_step(self, *, kl: float | None, entropy: float | None) -> None:
        """An optimiser step was made: write the lines of its generation batches, with what the loss showed.

        Args:
            kl: nats per token; None where the trainer has none.
            entropy: nats per token.
        """
        self._step_begins = True
        loss_figures = {"entropy": entropy, "kl_nats": kl}
        self.files.append(STEPS, [line | loss_figures for line in self._lines])
        self._lines.clear()

    def drain_metrics(self) -> dict[str, float]:
        """Means since the last call, for the trainer's own log."""
        means = {name: sum(values) / len(values) for name, values in self.metrics.items() if values}
        self.metrics.clear()
        return means

    def write(self) -> None:
        """Draws and proof as they stand now."""
        if self.files.writes:
            self.files.replace(self.draws.columns(self.pool), self.proof())

    def proof(self) -> dict[str, Any]:
        """Drawn against wanted, zero-signal share, refused, rollouts: the numbers that show steering did what it says."""
        draw_counts = np.bincount(
            self.pool.task_of[np.array(self.draws.rows, dtype=np.int64)], minlength=len(self.pool.tasks)
        )
        drawn_shares = (draw_counts / max(1, len(self.draws))).tolist()
        counts, loss_tokens = self._counts, self._loss_tokens.total()
        proof: dict[str, Any] = {
            "draws": len(self.draws),
            "drawn": dict(zip(self.pool.tasks, drawn_shares, strict=True)),
            "wanted": self.engine.wanted_shares(),
        }
        if counts["rewards_outside"]:
            proof["rewards_outside"] = counts["rewards_outside"]
        proof |= {name: counts[name] for name in PROOF_COUNTS[self.objective]}
        if self.objective == "grpo":
            proof["zero_signal_share"] = counts["zero_signal"] / max(1, counts["groups"])
            proof["rollouts"] = self.rollouts
        if loss_tokens:
            proof["loss_tokens"] = {task: count / loss_tokens for task, count in sorted(self._loss_tokens.items())}
        return proof | {
            "skipped_steps": counts["skipped_steps"],
            "dropped_rows": self.dropped,
        }

    def count_skipped_step(self) -> None:
        """An optimiser step was skipped."""
        self._counts["skipped_steps"] += 1

    def state(self) -> dict[str, Any]:
        """JSON-ready; `restore(state())` on a fresh object continues exactly."""
        return {"engine": self.engine.state_dict()} | super().state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over what `state` returned."""
        self.engine.load_state_dict(state["engine"])
        super().restore(state)

    def _finish_batch(
        self,
        step: int,
        outcomes: Sequence[GroupOutcome | SFTOutcome | PairOutcome],
        rows: int,
        actions: Sequence[Action],
        line: Mapping[str, Any],
    ) -> None:
        """Count a batch, carry out what was decided of it, and keep its line until the step is made."""
        self._count_unscored(step, rows, len(outcomes))
        self.batches += 1
        if self._step_begins:
            self._skips, self._step_begins = [], False
        self._skips.append(any(action.kind == "skip_step" for action in actions))
        self._apply_actions(step, actions)
        for name in LINE_COUNTS:
            self._counts[name] += line.get(name, 0)
        scored = Counter(outcome.task for outcome in outcomes)
        if len(self.pool.tasks) > MAX_LISTED:
            self.metrics["steering/tasks_scored"].append(len(scored))
        else:
            for task in self.pool.tasks:
                self.metrics[f"steering/share/{task}"].append(scored[task] / max(1, len(outcomes)))
        coefficients = ({"beta": self.beta} if self.objective == "grpo" else {}) | {"lr_factor": self.lr_factor}
        self._lines.append({"step": step, "scored": dict(scored), **line} | coefficients | {"skip_step": self._skips[-1]})

    def _apply_actions(self, step: int, actions: Sequence[Action]) -> None:
        """Turn actions into coefficients; what cannot be executed is logged with the reason."""
        self.log(self.engine.take_decisions())
        for action in actions:
            if action.kind == "coefficient" and action.target == "beta" and action.value is not None:
                if self.beta > 0 and action.value > 0:
                    self.beta = action.value
                else:
                    self.note(step, "not executed: beta", NO_BETA_REASON[self.objective])
            elif action.kind == "lr_factor" and action.value is not None:
                if self.lr_reason:  # batches with few informative groups move the factor all the time
                    self._note_once(step, "not executed: lr_factor", self.lr_reason)
                else:
                    self.lr_factor = action.value
            elif action.kind == "stop":
                self.stop_reason = action.because
        self.metrics["steering/lr_factor"] = [self.lr_factor]
        if self.objective == "grpo":
            self.metrics["steering/beta"] = [self.beta]

"""Passes of the scan through the model: probabilities, hidden states, gradients and rollouts, each made at most once.

Two forward passes give four readings, because a causal model reads from left to right: of prompt and target together the
prompt's and the target's tokens are read, and of target and prompt in the other order, after a start token, the target's
tokens without the prompt and the prompt's given the target. Rows are sorted by length and padded on the right, where
nothing that is read can see the padding.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mixwright.extend import (
    Corpus,
    Example,
    ExampleRollouts,
    InputError,
    Learner,
    MeasureConfig,
    Passes,
    TrainingRow,
    pass_token_limit,
    reading_mode,
    right_padded,
    token_batches,
)
from mixwright_extras.scan.contract import Pass
from mixwright_extras.scan.gradient_sketch import as_numpy, restrict_output
from mixwright_extras.scan.sketch_calibration import Calibration

BATCH_TOKENS = 2048
"""Padded tokens of a forward pass on the CPU, where larger batches fall out of the cache; elsewhere more is better."""
FORWARD_PASSES = {"target", "prompt", "hidden"}
"""Passes that are read of prompt and target in this order."""
REVERSED_PASSES = {"response_only", "prompt_given_target"}
"""Passes that are read of target and prompt in this order."""


class TargetReadings(NamedTuple):
    """Exact readings at every token of a target, at temperature 1; shape (tokens,), float32."""

    logprobs: np.ndarray
    """Log-probability of the token, nats."""
    entropy: np.ndarray
    """Entropy of the model's distribution at that place, nats."""
    error: np.ndarray
    """Euclidean length of the difference between the distribution and the token itself, 0..1.42."""


@dataclass
class ScanPasses:
    """What the model says of some rows; every pass is made when it is first read and kept.

    The model, its gradients, its mode and the global random state are left as they were.
    """

    learner: Learner
    """The model."""
    rows: Sequence[TrainingRow]
    """What is read, in the order of the table."""
    declared: frozenset[Pass]
    """Passes that may be read: what the groups of columns declare."""
    corpus: Corpus | None = None
    """Whose graders judge rollouts; needed for them alone."""
    config: MeasureConfig | None = None
    """Samples, temperature and length of rollouts; needed for them alone."""
    seed: int = 0
    """Of the rollouts."""
    calibration: Calibration | None = None
    """What gradients are sketched with; needed for them alone."""
    report_share: Callable[[float], None] | None = None
    """Called with the share of the work that is done, 0..1."""
    _tokens_done: float = 0.0

    @property
    def target(self) -> Sequence[TargetReadings | None]:
        """Readings of each target after its prompt; None for a row without one."""
        self._check("target")
        return self._forward[0]

    @property
    def prompt(self) -> Sequence[np.ndarray | None]:
        """Log-probabilities of the prompt's tokens from the second on, nats, shape (tokens - 1,)."""
        self._check("prompt")
        return self._forward[1]

    @property
    def hidden(self) -> np.ndarray:
        """Mean of the last hidden states over prompt and target, float16 of shape (rows, width); NaN for an empty row."""
        self._check("hidden")
        return self._forward[2]

    @property
    def response_only(self) -> Sequence[np.ndarray | None]:
        """Log-probabilities of the target's tokens after a start token alone, nats; None for a row without a target."""
        self._check("response_only")
        return self._reversed[0]

    @property
    def prompt_given_target(self) -> Sequence[np.ndarray | None]:
        """Log-probabilities of the prompt's tokens from the second on after the target, nats, shape (tokens - 1,)."""
        self._check("prompt_given_target")
        return self._reversed[1]

    @cached_property
    def gradients(self) -> np.ndarray:
        """Sketch of each row's gradient of the mean loss over its target, float32; NaN where there is no target."""
        self._check("gradients")
        if self.calibration is None:
            raise ValueError("gradients need a calibration")
        sketch = self.calibration.sketch(self.learner)
        rows_with_target = [i for i, row in enumerate(self.rows) if row.target]
        sketches = np.full((len(self.rows), len(self.calibration.kept_indices)), np.nan, dtype=np.float32)
        sizes = [len(self.rows[i].prompt) + len(self.rows[i].target) for i in rows_with_target]
        for batch in token_batches(sizes, self._limit):
            members = [rows_with_target[batch_index] for batch_index in batch]
            sketches[members] = as_numpy(sketch.sketch_rows(self.learner, [self.rows[i] for i in members]))
            self._report_progress("gradients", sum(sizes[batch_index] for batch_index in batch))
        return sketches

    @cached_property
    def rollouts(self) -> Sequence[ExampleRollouts | None]:
        """What the model writes for each row that can be graded and leaves room for it; None for the others."""
        self._check("rollouts")
        if self.corpus is None or self.config is None:
            raise ValueError("rollouts need the corpus and the settings of measuring")
        context_tokens, corpus, completion_tokens = self.learner.context, self.corpus, self.config.max_new_tokens

        def fits(example: Example) -> bool:
            graded = example.answer is not None and corpus.tasks[example.task].kind == "verifiable"
            return graded and (
                context_tokens is None or len(self.learner.encode(example.prompt)) + completion_tokens <= context_tokens
            )

        chosen = tuple(row.example for row in self.rows if fits(row.example))
        rollouts_by_id: Mapping[str, ExampleRollouts] = {}
        if chosen:
            rollouts_by_id = Passes(self.learner, self.config, corpus, self.seed, chosen=chosen).rollouts
        return [rollouts_by_id.get(row.example.id) for row in self.rows]

    def _check(self, name: Pass) -> None:
        if name not in self.declared:
            raise LookupError(f"the pass {name!r} was not declared; PASSES of the group has to name it")

    @property
    def _limit(self) -> int:
        """Padded tokens of a batch."""
        limit = pass_token_limit(self.learner.model)
        return min(limit, BATCH_TOKENS) if self.learner.device.type == "cpu" else limit

    @cached_property
    def _forward(self) -> tuple[list[TargetReadings | None], list[np.ndarray | None], np.ndarray]:
        """Targets, prompts and pooled hidden states, of prompt and target in this order."""
        all_readings, pooled = "target" in self.declared, "hidden" in self.declared
        rows = [[*row.prompt, *row.target] for row in self.rows]
        first_positions = [1 if "prompt" in self.declared else len(row.prompt) for row in self.rows]
        targets: list[TargetReadings | None] = [None] * len(rows)
        prompts: list[np.ndarray | None] = [None] * len(rows)
        width = self.learner.model.config.get_text_config().hidden_size if pooled else 0
        pooled_states = np.full((len(rows), width), np.nan, dtype=np.float16)
        for i, tokens, state in self._read("target", rows, first_positions, all_readings=all_readings, pooled=pooled):
            row = self.rows[i]
            prompt_readings = len(row.prompt) - first_positions[i]
            if row.target and all_readings:
                targets[i] = TargetReadings(*(reading[prompt_readings:] for reading in tokens))
            if prompt_readings > 0:
                prompts[i] = tokens[0][:prompt_readings]
            if state is not None:
                pooled_states[i] = state
        return targets, prompts, pooled_states

    @cached_property
    def _reversed(self) -> tuple[list[np.ndarray | None], list[np.ndarray | None]]:
        """Targets without prompts and prompts after targets, of start token, target and prompt in this order."""
        start = self.learner.tokenizer.bos_token_id
        start = self.learner.tokenizer.eos_token_id if start is None else start
        with_prompts, limit = "prompt_given_target" in self.declared, self.learner.context
        rows = [
            [start, *row.target, *(row.prompt if with_prompts else ())][:limit] if row.target else [start]
            for row in self.rows
        ]
        targets: list[np.ndarray | None] = [None] * len(rows)
        prompts: list[np.ndarray | None] = [None] * len(rows)
        for i, (logprobs, *_), _ in self._read("response_only", rows, [1] * len(rows), all_readings=False, pooled=False):
            target_tokens = len(self.rows[i].target)
            targets[i] = logprobs[:target_tokens]
            # else the context cut it
            if with_prompts and len(logprobs) == target_tokens + len(self.rows[i].prompt) > target_tokens + 1:
                prompts[i] = logprobs[target_tokens + 1 :]
        return targets, prompts

    def _read(
        self, name: Pass, rows: Sequence[list[int]], first_positions: Sequence[int], *, all_readings: bool, pooled: bool
    ) -> Iterator[tuple[int, tuple[np.ndarray, ...], np.ndarray | None]]:
        """(index, readings of the tokens from `first_positions` on, pooled hidden state) of each row that has any."""
        rows_to_read = [i for i, row in enumerate(rows) if len(row) > first_positions[i] or (pooled and row)]
        sizes = [len(rows[i]) for i in rows_to_read]
        for batch in token_batches(sizes, self._limit):
            members = [rows_to_read[batch_index] for batch_index in batch]
            with reading_mode(self.learner.model):
                batch_readings = _read_batch(
                    self.learner, [rows[i] for i in members], [first_positions[i] for i in members], all_readings, pooled
                )
            for i, (tokens, state) in zip(members, batch_readings, strict=True):
                yield i, tokens, state
            self._report_progress(name, sum(sizes[batch_index] for batch_index in batch))

    def _report_progress(self, name: Pass, tokens: int) -> None:
        """Report progress in tokens, of which a row with gradients takes about three times as many."""
        if self.report_share is None:
            return
        row_tokens = sum(len(row.prompt) + len(row.target) for row in self.rows)
        readings = bool(self.declared & FORWARD_PASSES) + bool(self.declared & REVERSED_PASSES)
        total = readings + 3 * ("gradients" in self.declared)
        self._tokens_done += tokens * (3 if name == "gradients" else 1)
        self.report_share(min(1.0, self._tokens_done / max(1, row_tokens * total)))


def _read_batch(
    learner: Learner, rows: Sequence[list[int]], first_positions: Sequence[int], all_readings: bool, pooled: bool
) -> list[tuple[tuple[np.ndarray, ...], np.ndarray | None]]:
    """Readings of one batch of rows; the output layer sees only the positions that are read."""
    ids = right_padded(rows, learner.tokenizer.pad_token_id or 0).to(learner.device)
    counts = [max(0, len(row) - start) for row, start in zip(rows, first_positions, strict=True)]
    width = ids.shape[1]
    spans = [
        torch.arange(token_count) + i * width + start - 1
        for i, (token_count, start) in enumerate(zip(counts, first_positions, strict=True))
    ]
    positions = torch.cat(spans).to(learner.device)
    with restrict_output(learner.model, positions) as states:
        options: dict[str, Any] = {} if learner.cache_name is None else {"use_cache": False}
        logits = learner.model(input_ids=ids, **options).logits
    logits = logits.flatten(0, 1)
    if len(logits) != len(positions):  # no output layer of its own to be told apart
        logits = logits[positions]
    chosen = ids.flatten()[positions + 1] if len(positions) else ids.new_zeros(0)
    readings = [reading.cpu().numpy() for reading in _make_readings(logits.float(), chosen, all_readings)]
    ends = np.cumsum(counts)[:-1]
    readings_by_row = zip(*(np.split(reading, ends) for reading in readings), strict=True)
    means = _mean_states(states, rows) if pooled else [None] * len(rows)
    return list(zip(readings_by_row, means, strict=True))


def _make_readings(
    logits: Float[Tensor, "tokens vocabulary"], chosen: Int[Tensor, " tokens"], all_readings: bool
) -> list[Tensor]:
    """Log-probability of the chosen tokens; with `all_readings` also entropy and distance from them, as `TargetReadings`."""
    total = logits.logsumexp(-1)
    logprobs = logits.gather(1, chosen[:, None])[:, 0] - total
    if not all_readings:
        return [logprobs]
    probabilities = (logits - total[:, None]).exp_()
    entropy = total - (probabilities * logits.clamp_min(-1e30)).sum(-1)
    squares = torch.linalg.vector_norm(probabilities, dim=-1).square()
    error = (squares - 2 * logprobs.exp() + 1).clamp_min(0).sqrt()
    return [logprobs, entropy.clamp_min(0), error]


def _mean_states(states: Sequence[Tensor], rows: Sequence[Sequence[int]]) -> list[np.ndarray]:
    """Mean hidden state of each row over its own tokens."""
    if not states:
        expected, remedy = "a model whose output layer transformers can name", "Leave the column `hidden` out."
        raise InputError(expected, "one without get_output_embeddings", remedy)
    (state,) = states
    return [state[i, : len(row)].float().mean(0).half().cpu().numpy() for i, row in enumerate(rows)]

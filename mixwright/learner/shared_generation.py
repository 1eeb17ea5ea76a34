"""Generation for CPUs: completions of a prompt share its keys and values, and further prompts take the place of ended ones.

Without it every completion carries a copy of its prompt's keys and values, which are copied again at each token. The model
is asked through the attention interface of transformers; models whose attention is of another kind (windows, caps, sinks)
are written batch by batch instead.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import contextlib
import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import AttentionInterface
from transformers.cache_utils import Cache, DynamicLayer

from mixwright.learner.batches import count_cached_values, left_padded, split_sorted
from mixwright.learner.causal_model import CausalModel
from mixwright.learner.generation import (
    Continuation,
    Decoding,
    GenerationJob,
    choose_tokens,
    generate_in_batches,
)

ATTENTION_NAME = "mixwright_shared_prompts"
MAX_CACHE_BYTES = 2**30
"""Of keys and values, beside the model."""
MAX_ROWS = 128
"""Completions that are written side by side; on two cores more of them gain nothing."""
LENGTH_RATIO, LENGTH_SLACK = 1.5, 32
"""Prompts enter one batch when the longest has at most so many times the tokens of the shortest, and so many more."""
ENTER_SHARE = 0.25
"""Share of the places for prompts that is free before others enter: reading several at once is faster."""
HARMLESS_ARGUMENTS = frozenset(
    ("position_ids", "cache_position", "use_cache", "output_attentions", "output_hidden_states", "is_causal")
)
"""What attention layers are handed that changes nothing here; any other argument with a value is not understood."""


class Unsupported(Exception):
    """This model's attention has something that is not computed here."""


def generate(
    learner: CausalModel,
    jobs: Sequence[GenerationJob],
    decoding: Decoding,
    progress: Callable[[float], None] = lambda _: None,
) -> Iterator[dict[int, list[Continuation]]]:
    """The completions of all jobs, those that have ended together at a time, by the index of their job.

    Call it without gradients, in eval mode. `progress` is called at every token with the share that is written, 0..1.
    """
    waiting_jobs = dict(enumerate(jobs))
    if jobs and is_supported(learner):
        try:
            for ended_jobs in generate_shared(learner, jobs, decoding, progress):
                for job_index in ended_jobs:
                    del waiting_jobs[job_index]
                yield ended_jobs
        except Unsupported:
            learner.shares_prompts = False
    waiting_indices = list(waiting_jobs)
    for ended_jobs in generate_in_batches(
        learner, [jobs[job_index] for job_index in waiting_indices], decoding, progress, len(jobs)
    ):
        yield {waiting_indices[job_index]: rows for job_index, rows in ended_jobs.items()}


def is_supported(learner: CausalModel) -> bool:
    """Whether to try: a model on a CPU that calls its attention through the interface of transformers."""
    needed_arguments = {"position_ids", "logits_to_keep"}
    return (
        learner.shares_prompts
        and learner.device.type == "cpu"
        and bool(getattr(learner.base_model, "_supports_attention_backend", False))
        and learner.cache_name is not None
        and needed_arguments <= learner.forward_arguments
    )


def generate_shared(
    learner: CausalModel,
    jobs: Sequence[GenerationJob],
    decoding: Decoding,
    progress: Callable[[float], None] = lambda _: None,
) -> Iterator[dict[int, list[Continuation]]]:
    """As `generate`. Raises Unsupported, before the first token of a batch that it cannot write."""
    done_jobs, lengths = 0, [job.length for job in jobs]

    def differs(batch: list[int], length: int) -> bool:
        return length > LENGTH_RATIO * lengths[batch[0]] + LENGTH_SLACK  # by too much to share tensors

    for job_indices in split_sorted(lengths, differs):
        batch = _Batch(learner, [jobs[job_index] for job_index in job_indices], decoding)
        while batch.under_way():
            ended_jobs = batch.step()
            progress((done_jobs + batch.share_written() * len(job_indices)) / len(jobs))
            if ended_jobs:
                yield {job_indices[i]: rows for i, rows in ended_jobs.items()}
        done_jobs += len(job_indices)


class SharedCache(Cache):
    """Keys and values of the prompts in the batch, one slot each, and of what `width` completions of each have written.

    Args:
        slot_count: prompts side by side.
        width: completions of each.
        longest_prompt: tokens.
        longest_completion: tokens.
    """

    def __init__(self, slot_count: int, width: int, longest_prompt: int, longest_completion: int) -> None:
        super().__init__(layers=[])
        self.slot_count, self.width = slot_count, width
        self._longest = longest_prompt, longest_completion
        self._prompts: list[tuple[Tensor, Tensor]] = []
        self._completions: list[tuple[Tensor, Tensor]] = []
        self.lengths = torch.zeros(slot_count, dtype=torch.long)
        """Tokens of each prompt."""
        self.written = torch.zeros(slot_count * width, dtype=torch.long)
        """Tokens of each completion that were read back."""
        self.rows = torch.zeros(0, dtype=torch.long)
        """Completions that are in this step."""
        self.mask = torch.zeros(0)

    def take_prompts(self, slots: Sequence[int], lengths: Sequence[int], cache: Any) -> None:
        """Copy the keys and values of prompts that the model has just read, padded on the left, to their slots.

        Raises Unsupported for a cache that does not keep every token.
        """
        if any(type(layer) is not DynamicLayer for layer in cache.layers):
            raise Unsupported("a cache of another kind")
        for layer_index, layer in enumerate(cache.layers):
            layer_states = layer.keys, layer.values
            if layer_index == len(self._prompts):
                longest_prompt, longest_completion = self._longest
                self._prompts.append(_zeros(layer_states, self.slot_count, longest_prompt))
                self._completions.append(_zeros(layer_states, self.slot_count * self.width, longest_completion))
            for stored, new_states in zip(self._prompts[layer_index], layer_states, strict=True):
                for row, (slot, length) in enumerate(zip(slots, lengths, strict=True)):
                    stored[slot, :, :length] = new_states[row, :, -length:]
        for slot, length in zip(slots, lengths, strict=True):
            self.lengths[slot] = length
            self.written[slot * self.width : (slot + 1) * self.width] = 0

    def prepare(self, rows: Tensor) -> Tensor:
        """Choose the completions of the next step, in order; returns the positions of their tokens, shape (rows, 1)."""
        self.rows = rows
        lengths = self.lengths.repeat_interleave(self.width)
        self.prompt_tokens = int(self.lengths.max())
        self.completion_tokens = int(self.written[rows].max()) + 1
        unseen = torch.cat(
            [
                torch.arange(self.prompt_tokens)[None] >= lengths[:, None],
                torch.arange(self.completion_tokens)[None] > self.written[:, None],
            ],
            1,
        )
        self.mask = torch.zeros(unseen.shape).masked_fill_(unseen, torch.finfo(torch.float32).min)[:, None, None]
        return (lengths + self.written)[rows][:, None]

    def update(self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any) -> tuple[Tensor, Tensor]:
        """Keep the new token of each completion of this step; returns what it was given."""
        for stored, new_states in zip(self._completions[layer_idx], (key_states, value_states), strict=True):
            stored[self.rows, :, self.written[self.rows]] = new_states[:, :, 0].to(stored.dtype)  # bf16 under autocast
        return key_states, value_states

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Longest prompt with its completion; positions are given, so nothing is computed from it."""
        return int((self.lengths.repeat_interleave(self.width) + self.written).max())

    def attend(
        self, query: Float[Tensor, "rows heads 1 size"], layer: int, scaling: float
    ) -> Float[Tensor, "rows 1 heads size"]:
        """Attention of the new tokens to their prompt, read once for all its completions, and to what they wrote."""
        heads, size = query.shape[1], query.shape[3]
        (keys, values), (completion_keys, completion_values) = self._prompts[layer], self._completions[layer]
        groups, all_rows = keys.shape[1], self.slot_count * self.width
        heads_per_group = heads // groups
        queries = query[:, :, 0]
        if len(self.rows) < all_rows:
            queries = query.new_zeros(all_rows, heads, size).index_copy_(0, self.rows, queries)
        queries = queries.view(all_rows, groups, heads_per_group, size) * scaling

        def by_prompt(rows: Tensor) -> Tensor:
            """(rows, groups, each, x) as (slots, groups, width x each, x)."""
            grouped_rows = rows.view(self.slot_count, self.width, groups, heads_per_group, -1).transpose(1, 2)
            return grouped_rows.reshape(self.slot_count, groups, self.width * heads_per_group, -1)

        def by_row(grouped_rows: Tensor) -> Tensor:
            """The way back."""
            rows = grouped_rows.view(self.slot_count, groups, self.width, heads_per_group, -1).transpose(1, 2)
            return rows.reshape(all_rows, groups, heads_per_group, -1)

        keys, values = keys[:, :, : self.prompt_tokens], values[:, :, : self.prompt_tokens]
        completion_keys = completion_keys[:, :, : self.completion_tokens]
        completion_values = completion_values[:, :, : self.completion_tokens]
        scores = torch.cat(
            [by_row(by_prompt(queries) @ keys.transpose(2, 3)), queries @ completion_keys.transpose(2, 3)], -1
        )
        weights = torch.softmax(scores + self.mask, -1)
        prompt_weights, completion_weights = weights.split([self.prompt_tokens, self.completion_tokens], -1)
        attended = by_row(by_prompt(prompt_weights.contiguous()) @ values) + completion_weights @ completion_values
        attended = attended.reshape(all_rows, 1, heads, -1)
        return attended if len(self.rows) == all_rows else attended[self.rows]


def _zeros(like: tuple[Tensor, Tensor], rows: int, length: int) -> tuple[Tensor, Tensor]:
    keys, values = (tensor.new_zeros(rows, tensor.shape[1], length, tensor.shape[3]) for tensor in like)
    return keys, values


_in_use: ContextVar[SharedCache | None] = ContextVar("shared cache", default=None)


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    **other_arguments: Any,
) -> tuple[Tensor, None]:
    """What the attention layers of a model call, see `AttentionInterface` of transformers."""
    cache = _in_use.get()
    unknown_names = [name for name, value in other_arguments.items() if name not in HARMLESS_ARGUMENTS and value is not None]
    if (
        cache is None
        or unknown_names
        or attention_mask is not None
        or not isinstance(getattr(module, "layer_idx", None), int)
    ):
        raise Unsupported(f"attention with {', '.join(unknown_names) or 'a mask of its own'}")
    return cache.attend(query, module.layer_idx, query.shape[-1] ** -0.5 if scaling is None else scaling), None


AttentionInterface.register(ATTENTION_NAME, _attention)


@contextlib.contextmanager
def _attending_to(cache: SharedCache, model: Any) -> Iterator[None]:
    """Have the model's attention layers ask `cache`."""
    config = model.config.get_text_config()
    previous, token = config._attn_implementation, _in_use.set(cache)
    config._attn_implementation = ATTENTION_NAME
    try:
        yield
    finally:
        config._attn_implementation = previous
        _in_use.reset(token)


class _Batch:
    """Jobs of similar length: those under way have a slot each, the others wait."""

    def __init__(self, learner: CausalModel, jobs: Sequence[GenerationJob], decoding: Decoding) -> None:
        self.learner, self.jobs, self.decoding = learner, jobs, decoding
        self.width = max(job.rows for job in jobs)
        longest_prompt = max(job.length for job in jobs)
        longest_completion = decoding.max_new_tokens - min(len(job.prefix) for job in jobs)
        values = count_cached_values(learner.model)
        if values is None:
            raise Unsupported
        most_slots = MAX_CACHE_BYTES // (4 * values) // (longest_prompt + self.width * longest_completion)
        row_limit = MAX_ROWS if learner.batch_size is None else learner.batch_size
        self.slot_count = max(1, min(len(jobs), row_limit // self.width, most_slots))
        self.cache = SharedCache(self.slot_count, self.width, longest_prompt, longest_completion)
        self.waiting_jobs, self.ended_count = deque(range(len(jobs))), 0
        self.free_slots = list(range(self.slot_count))
        self.job_at: dict[int, int] = {}
        self.rows: dict[int, Continuation] = {}
        """By its number, slot x width + which of the slot: those that have not ended, and their siblings."""
        self.active_rows: list[int] = []
        self.next_tokens = torch.zeros(self.slot_count * self.width, dtype=torch.long)
        """Token of each completion that was chosen and is not read yet."""
        self.draws = None
        if decoding.temperature != 0:
            self.draws = torch.zeros(self.slot_count * self.width, decoding.max_new_tokens, dtype=torch.float64)
        self.end_ids = learner.end_ids

    def under_way(self) -> bool:
        """Whether something is left to write."""
        return bool(self.active_rows or self.waiting_jobs)

    def share_written(self) -> float:
        """Of all jobs."""
        active_share = sum(len(self.rows[row].token_ids) for row in self.active_rows) / self.decoding.max_new_tokens
        started_jobs = len(self.job_at) - len(self.active_rows) / self.width
        return (self.ended_count + started_jobs + active_share / self.width) / len(self.jobs)

    def step(self) -> dict[int, list[Continuation]]:
        """Let prompts enter where there is room, else write one token of each completion; returns the jobs that ended."""
        if self.waiting_jobs and (not self.active_rows or len(self.free_slots) >= math.ceil(ENTER_SHARE * self.slot_count)):
            rows, logits = self._enter()
        else:
            rows = torch.tensor(sorted(self.active_rows))
            positions = self.cache.prepare(rows)
            with _attending_to(self.cache, self.learner.model):
                output = self.learner.model(
                    input_ids=self.next_tokens[rows][:, None],
                    position_ids=positions,
                    use_cache=True,
                    logits_to_keep=1,
                    **{str(self.learner.cache_name): self.cache},
                )
            logits = output.logits[:, -1]
            self.cache.written[rows] += 1
        return self._choose(rows, logits)

    def _enter(self) -> tuple[Tensor, Tensor]:
        """Read the next prompts; returns the numbers of their completions and the logits of their first tokens."""
        free_slots = [self.free_slots.pop() for _ in range(min(len(self.free_slots), len(self.waiting_jobs)))]
        entering_jobs = [self.waiting_jobs.popleft() for _ in free_slots]
        jobs = [self.jobs[job_index] for job_index in entering_jobs]
        ids, mask = left_padded([[*job.prompt, *job.prefix] for job in jobs], self.learner.tokenizer.pad_token_id or 0)
        output = self.learner.forward(ids, mask, last_positions=1, use_cache=True)
        self.cache.take_prompts(free_slots, [job.length for job in jobs], self.learner.read_cache(output))
        entered_rows: list[int] = []
        for slot, job_index, job in zip(free_slots, entering_jobs, jobs, strict=True):
            self.job_at[slot] = job_index
            slot_rows = [slot * self.width + k for k in range(job.rows)]
            for row in slot_rows:
                self.rows[row] = Continuation(list(job.prefix), [math.nan] * len(job.prefix))
            if self.draws is not None:
                self.draws[slot_rows] = self.decoding.draw(job)
            entered_rows += slot_rows
        self.active_rows += entered_rows
        row_of_prompt = torch.arange(len(jobs)).repeat_interleave(torch.tensor([job.rows for job in jobs]))
        return torch.tensor(entered_rows), output.logits[:, -1][row_of_prompt]

    def _choose(self, rows: Tensor, logits: Tensor) -> dict[int, list[Continuation]]:
        """Add a token to each of these completions; returns the jobs all of whose completions have ended."""
        row_numbers = rows.tolist()
        uniform = None
        if self.draws is not None:
            uniform = self.draws[rows, torch.tensor([len(self.rows[row].token_ids) for row in row_numbers])]
        tokens, logprobs = choose_tokens(logits, self.decoding.temperature, uniform)
        self.next_tokens[rows] = tokens
        ended_rows = set()
        for row, token, logprob in zip(row_numbers, tokens.tolist(), logprobs.tolist(), strict=True):
            continuation = self.rows[row]
            continuation.token_ids.append(token)
            continuation.logprobs.append(logprob)
            continuation.finished = token in self.end_ids
            if continuation.finished or len(continuation.token_ids) == self.decoding.max_new_tokens:
                ended_rows.add(row)
        if not ended_rows:
            return {}
        self.active_rows = [row for row in self.active_rows if row not in ended_rows]
        busy_slots = {row // self.width for row in self.active_rows}
        ended_jobs = {}
        for slot in {row // self.width for row in ended_rows} - busy_slots:
            job_index = self.job_at.pop(slot)
            ended_jobs[job_index] = [self.rows.pop(slot * self.width + k) for k in range(self.jobs[job_index].rows)]
            self.free_slots.append(slot)
            self.cache.lengths[slot] = 0
        self.ended_count += len(ended_jobs)
        return ended_jobs

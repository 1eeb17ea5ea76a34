"""Completions of prompts, token by token, a batch of prompts at a time; `shared_generation.py` is quicker on a CPU."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from mixwright.learner.batches import (
    MAX_LOGITS_PER_PASS,
    left_padded,
    pass_token_limit,
    token_batches,
    writing_token_limit,
)
from mixwright.learner.causal_model import CausalModel

TOKENS_PER_BLOCK = 256
"""Entries of the vocabulary whose probabilities are added up before one of them is looked for."""


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """Completions of one prompt that are written together."""

    prompt: Sequence[int]
    """Token ids."""
    rows: int
    """Number of completions."""
    prefix: Sequence[int] = ()
    """Token ids that each of them begins with; fewer than it may have."""
    draw_key: tuple[int, int, int] = (0, 1, 0)
    """What its random numbers depend on: number of the prompt, completions that are drawn for it in all, and which of them
    is the first of this job."""

    @property
    def length(self) -> int:
        """Tokens that are read before the first is written."""
        return len(self.prompt) + len(self.prefix)


@dataclass(frozen=True, slots=True)
class Decoding:
    """How tokens are chosen, the same for all jobs."""

    temperature: float
    """Divides the logits; 0 takes the likeliest token."""
    max_new_tokens: int
    """Longest completion, prefix and end token included."""
    seed: int
    """Any integer."""

    def draw(self, job: GenerationJob) -> Float[Tensor, "rows length"]:
        """Uniform numbers in [0, 1), float64, a row per completion, which depend on the seed and the job's key alone."""
        prompt_number, count, first_sample = job.draw_key
        generator = np.random.Generator(np.random.Philox(key=[self.seed % 2**64, prompt_number]))
        uniforms = torch.from_numpy(generator.random((count, self.max_new_tokens)))
        return uniforms[first_sample : first_sample + job.rows]


@dataclass
class Continuation:
    """One completion under way."""

    token_ids: list[int] = field(default_factory=list)
    """Its prefix, and what was chosen so far; the end token included."""
    logprobs: list[float] = field(default_factory=list)
    """Nats per token of `token_ids`; NaN for the prefix, which nobody drew."""
    finished: bool = False
    """True once the end token was chosen."""


def generate_in_batches(
    learner: CausalModel,
    jobs: Sequence[GenerationJob],
    decoding: Decoding,
    progress: Callable[[float], None],
    total_jobs: int,
) -> Iterator[Mapping[int, list[Continuation]]]:
    """A batch of jobs at a time, which stays together until its longest completion has ended.

    Where memory ends, what is left is written in batches of half the size, down to one prompt with its completions.
    """
    done_jobs, left, room = total_jobs - len(jobs), list(range(len(jobs))), decoding.max_new_tokens
    most_tokens: int | None = None
    while left:
        waiting = [jobs[job_index] for job_index in left]
        for batch in [[left[place] for place in places] for places in _batches(learner, waiting, room, most_tokens)]:
            batch_jobs = [jobs[job_index] for job_index in batch]
            tell = scale_progress(progress, done_jobs / total_jobs, len(batch) / total_jobs)
            completions: list[list[Continuation]] | None = None
            with contextlib.suppress(torch.OutOfMemoryError) if len(batch) > 1 else contextlib.nullcontext():
                completions = _write_batch(learner, batch_jobs, decoding, tell)
            if completions is None:
                torch.cuda.empty_cache()
                most_tokens = len(batch) * max(_padded_tokens(job, room) for job in batch_jobs) // 2
                break
            done_jobs, written = done_jobs + len(batch), set(batch)
            left = [job_index for job_index in left if job_index not in written]
            yield dict(zip(batch, completions, strict=True))


def _padded_tokens(job: GenerationJob, room: int) -> int:
    """Of all its completions, its prompt's among them, where each has this room."""
    return job.rows * (len(job.prompt) + room)


def scale_progress(progress: Callable[[float], None] | None, start: float, share: float) -> Callable[[float], None]:
    """Progress of a part as that of the whole, of which the part is `share`, from `start` on; None where nobody listens."""
    return lambda done: None if progress is None else progress(start + share * done)


def _batches(learner: CausalModel, jobs: Sequence[GenerationJob], room: int, most_tokens: int | None) -> Iterator[list[int]]:
    """Indices of jobs with equally many rows that are written together, at most so many tokens where a number is given."""
    jobs_by_rows: dict[int, list[int]] = {}
    for job_index, job in enumerate(jobs):
        jobs_by_rows.setdefault(job.rows, []).append(job_index)
    limit, most_completions = _most_together(learner)
    limit = limit if most_tokens is None else min(limit, most_tokens)
    for rows, job_indices in jobs_by_rows.items():
        sizes = [_padded_tokens(jobs[job_index], room) for job_index in job_indices]
        for batch in token_batches(sizes, limit, max(1, most_completions // rows)):
            yield [job_indices[i] for i in batch]


def _most_together(learner: CausalModel) -> tuple[int, int]:
    """Tokens and completions that are written together at most."""
    if learner.batch_size is not None:
        return sys.maxsize, learner.batch_size
    vocabulary = learner.model.config.get_text_config().vocab_size
    if "logits_to_keep" not in learner.forward_arguments:  # then logits are those of all positions
        return pass_token_limit(learner.model), MAX_LOGITS_PER_PASS // vocabulary
    device_bytes = torch.cuda.get_device_properties(learner.device).total_memory if learner.device.type == "cuda" else None
    return writing_token_limit(learner.model, device_bytes), MAX_LOGITS_PER_PASS // vocabulary


def _write_batch(
    learner: CausalModel, jobs: Sequence[GenerationJob], decoding: Decoding, progress: Callable[[float], None]
) -> list[list[Continuation]]:
    """The completions of jobs with equally many rows; stops when all have ended."""
    device, count = learner.device, jobs[0].rows
    starts = [list(job.prefix) for job in jobs for _ in range(count)]
    draws = None
    if decoding.temperature != 0:
        draws = torch.cat([decoding.draw(job).roll(-len(job.prefix), 1) for job in jobs])  # from the first drawn token on
    token_room = decoding.max_new_tokens - min(map(len, starts))
    ids, mask = left_padded([[*job.prompt, *job.prefix] for job in jobs], learner.tokenizer.pad_token_id or 0)
    ids, mask = ids.to(device), mask.to(device)
    ends = torch.tensor(sorted(learner.end_ids), device=device)
    cached = learner.cache_name is not None
    output = learner.forward(ids, mask, last_positions=1, use_cache=cached)
    logits, cache = output.logits[:, -1], learner.read_cache(output)
    if count > 1:
        if cache is not None:
            cache.batch_repeat_interleave(count)
        ids, mask, logits = (tensor.repeat_interleave(count, 0) for tensor in (ids, mask, logits))
    has_ended = torch.zeros(len(ids), dtype=torch.bool, device=device)
    tokens, logprobs, ended_before = [], [], []
    for step in range(token_room):
        token, logprob = choose_tokens(logits, decoding.temperature, draws[:, step] if draws is not None else None)
        ended_before.append(has_ended)
        tokens.append(token)
        logprobs.append(logprob)
        has_ended = has_ended | torch.isin(token, ends)
        progress((step + 1) / token_room)
        if step == token_room - 1 or bool(has_ended.all()):
            break
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
        ids = token[:, None] if cached else torch.cat([ids, token[:, None]], 1)
        output = learner.forward(ids, mask, last_positions=1, cache=cache, use_cache=cached)
        logits, cache = output.logits[:, -1], learner.read_cache(output)
    lengths = (~torch.stack(ended_before, 1)).sum(1).tolist()
    columns = zip(
        starts, torch.stack(tokens, 1).tolist(), torch.stack(logprobs, 1).tolist(), lengths, has_ended.tolist(), strict=True
    )
    continuations = []
    for start, row, row_logprobs, length, ended in columns:
        used_tokens = min(length, decoding.max_new_tokens - len(start))
        kept_logprobs = [float("nan")] * len(start) + row_logprobs[:used_tokens]
        continuations.append(Continuation(start + row[:used_tokens], kept_logprobs, ended and length == used_tokens))
    return [continuations[first : first + count] for first in range(0, len(continuations), count)]


def choose_tokens(
    logits: Float[Tensor, "rows vocabulary"], temperature: float, uniform: Float[Tensor, " rows"] | None
) -> tuple[Int[Tensor, " rows"], Float[Tensor, " rows"]]:
    """Next tokens and their log-probabilities: the likeliest without `uniform`, else by the inverse of the cumulative sum.

    Probabilities are added up in float64, so that rare tokens of large vocabularies keep their share. They are added block
    by block: a cumulative sum over a whole vocabulary takes several times as long. A token of probability 0 is never drawn.
    """
    scaled = logits.float() / temperature if temperature not in (0, 1) else logits.float()
    highest, likeliest = scaled.max(-1, keepdim=True)
    weights = torch.nn.functional.pad((scaled - highest).exp_(), (0, -scaled.shape[1] % TOKENS_PER_BLOCK))
    blocks = weights.view(len(weights), -1, TOKENS_PER_BLOCK)
    number_type = torch.float32 if weights.device.type == "mps" else torch.float64  # Apple's has no float64
    sums = blocks.sum(-1).to(number_type).cumsum(-1)
    if uniform is None:
        tokens = likeliest[:, 0]
    else:
        block, remainder = _find_part(sums, uniform.to(weights.device, number_type))
        block_sums = blocks[torch.arange(len(blocks), device=blocks.device), block].to(number_type).cumsum(-1)
        tokens = block * TOKENS_PER_BLOCK + _find_part(block_sums, remainder)[0]
    chosen_logits = scaled.gather(1, tokens[:, None])[:, 0] - highest[:, 0]
    return tokens, chosen_logits - sums[:, -1].log().float()


def _find_part(
    sums: Float[Tensor, "rows parts"], share: Float[Tensor, " rows"]
) -> tuple[Int[Tensor, " rows"], Float[Tensor, " rows"]]:
    """The part in which a share of each row's sum is reached, and the share of that part; `sums` are cumulative."""
    target = (share * sums[:, -1]).clamp_max(sums[:, -1] * (1 - 2 * torch.finfo(sums.dtype).eps))
    part_index = torch.searchsorted(sums, target[:, None], right=True).clamp_max(sums.shape[1] - 1)  # beyond it: no numbers
    before = torch.nn.functional.pad(sums, (1, 0)).gather(1, part_index)[:, 0]
    size = sums.gather(1, part_index)[:, 0] - before
    return part_index[:, 0], (target - before) / size

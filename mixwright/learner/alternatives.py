"""Log-probabilities of several completions of each prompt, which is read once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from mixwright.learner.batches import left_padded, pass_token_limit, reading_mode, token_batches

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner
    from mixwright.records import Text


def read_alternatives(
    learner: Learner, prompts: Sequence[Text], completions: Sequence[Sequence[Sequence[int]]]
) -> Iterator[tuple[int, list[list[float]]]]:
    """(index of a prompt, nats per token of each of its completions at temperature 1), shortest prompts first.

    A model without a cache of keys and values reads the prompt once per completion, with equal results.

    Args:
        learner: left as it was.
        prompts: plain text or chat messages.
        completions: token ids of each prompt's completions, at least one each and none empty.

    Raises:
        InputError: a prompt and its completions do not fit into the model's context, or chat prompts without a template.
    """
    encoded = [learner.encode(prompt) for prompt in prompts]
    longest = [max(map(len, of_prompt)) for of_prompt in completions]
    learner.check_length(max((len(ids) + most_tokens for ids, most_tokens in zip(encoded, longest, strict=True)), default=0))
    if learner.cache_name is None:
        for prompt_index, of_prompt in enumerate(completions):
            yield prompt_index, learner.logprobs([prompts[prompt_index]] * len(of_prompt), of_prompt)
        return
    sizes = [
        (len(ids) + most_tokens) * len(of_prompt)
        for ids, most_tokens, of_prompt in zip(encoded, longest, completions, strict=True)
    ]
    for batch in token_batches(sizes, pass_token_limit(learner.model)):
        alternatives = _read_batch(
            learner, [encoded[prompt_index] for prompt_index in batch], [completions[prompt_index] for prompt_index in batch]
        )
        yield from zip(batch, alternatives, strict=True)


def _read_batch(
    learner: Learner, prompts: Sequence[list[int]], completions: Sequence[Sequence[Sequence[int]]]
) -> list[list[list[float]]]:
    """One pass over the prompts, and one over what follows the first token of the completions."""
    pad = learner.tokenizer.pad_token_id or 0
    prompt_indices = [prompt_index for prompt_index, of_prompt in enumerate(completions) for _ in of_prompt]
    rows = [list(tokens) for of_prompt in completions for tokens in of_prompt]
    most_inputs = max(map(len, rows)) - 1
    with reading_mode(learner.model):
        ids, mask = (tensor.to(learner.device) for tensor in left_padded(prompts, pad))
        output = learner.forward(ids, mask, last_positions=1, use_cache=True)
        index = torch.tensor(prompt_indices, device=learner.device)
        tables = [torch.log_softmax(output.logits[:, -1:].float(), -1)[index]]
        if most_inputs:
            cache = learner.read_cache(output)
            cache.batch_select_indices(index)
            inputs = torch.tensor([row[:-1] + [pad] * (most_inputs + 1 - len(row)) for row in rows], device=learner.device)
            input_mask = torch.tensor(
                [[int(prompt_index < len(row) - 1) for prompt_index in range(most_inputs)] for row in rows],
                device=learner.device,
            )
            output = learner.forward(inputs, torch.cat([mask[index], input_mask], 1), cache=cache, use_cache=True)
            tables.append(torch.log_softmax(output.logits.float(), -1))
    log_probabilities = torch.cat(tables, 1)
    values = [log_probabilities[k, range(len(row)), row].tolist() for k, row in enumerate(rows)]
    groups: list[list[list[float]]] = [[] for _ in completions]
    for owner, row in zip(prompt_indices, values, strict=True):
        groups[owner].append(row)
    return groups

"""Log-probabilities of several completions of each prompt, which is read once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch

from mixwright.learner.batches import left_padded, logits_limit, reading_mode, token_batches

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
    learner.check_length(max((len(ids) + most for ids, most in zip(encoded, longest, strict=True)), default=0))
    if "past_key_values" not in learner.forward_arguments:
        for place, of_prompt in enumerate(completions):
            yield place, learner.logprobs([prompts[place]] * len(of_prompt), of_prompt)
        return
    sizes = [(len(ids) + most) * len(of_prompt) for ids, most, of_prompt in zip(encoded, longest, completions, strict=True)]
    for batch in token_batches(sizes, logits_limit(learner.model)):
        found = _read_batch(learner, [encoded[place] for place in batch], [completions[place] for place in batch])
        yield from zip(batch, found, strict=True)


def _read_batch(
    learner: Learner, prompts: Sequence[list[int]], completions: Sequence[Sequence[Sequence[int]]]
) -> list[list[list[float]]]:
    """One pass over the prompts, and one over what follows the first token of the completions."""
    pad = learner.tokenizer.pad_token_id or 0
    owners = [place for place, of_prompt in enumerate(completions) for _ in of_prompt]
    rows = [list(tokens) for of_prompt in completions for tokens in of_prompt]
    most = max(map(len, rows)) - 1
    with reading_mode(learner.model):
        ids, mask = (part.to(learner.device) for part in left_padded(prompts, pad))
        output = learner.forward(ids, mask, last_positions=1, use_cache=True)
        index = torch.tensor(owners, device=learner.device)
        tables = [torch.log_softmax(output.logits[:, -1:].float(), -1)[index]]
        if most:
            cache = output.past_key_values
            cache.batch_select_indices(index)
            shown = torch.tensor([row[:-1] + [pad] * (most + 1 - len(row)) for row in rows], device=learner.device)
            real = torch.tensor(
                [[int(place < len(row) - 1) for place in range(most)] for row in rows], device=learner.device
            )
            output = learner.forward(shown, torch.cat([mask[index], real], 1), cache=cache, use_cache=True)
            tables.append(torch.log_softmax(output.logits.float(), -1))
    log_probabilities = torch.cat(tables, 1)
    values = [log_probabilities[k, range(len(row)), row].tolist() for k, row in enumerate(rows)]
    groups: list[list[list[float]]] = [[] for _ in completions]
    for owner, row in zip(owners, values, strict=True):
        groups[owner].append(row)
    return groups

"""Routing of prompts to experts of the adapter `svf`: by asking the model, or by a classifier of hidden states.

An expert per task is of use only where it is known which task a prompt is of. Both ways read a prompt once, without an
expert, before it is answered with one, as the two passes of https://arxiv.org/abs/2501.06252. `Classifier.accuracy`
says how often it is right on prompts that were left out; below the share of the commonest expert it is worth nothing.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from mixwright.extend import InputError, Interval, left_padded, pass_token_limit, reading_mode, share_interval, token_batches
from mixwright_extras.experts.singular import Scales, scaled_matrices, scales, set_scales, without_adapter

if TYPE_CHECKING:
    from mixwright.extend import Learner, Text

States = Float[np.ndarray, "prompts width"]
Centres = Float[np.ndarray, "experts width"]
ROUTING_QUESTION = "\nThe text above is one of: {names}. It is"
"""What is put after a prompt to ask which expert it is for; a name is its answer."""


@dataclass(frozen=True)
class Classifier:
    """Nearest mean of hidden states, each feature in units of its spread within experts."""

    centres: Centres
    """One row per expert, in units of `spread`."""
    spread: Float[np.ndarray, " width"]
    """Standard deviation within experts."""
    accuracy: Interval
    """Share of the prompts that were given whose expert is named without them (each left out in turn)."""
    commonest_share: float
    """Share of the commonest expert: what naming it always would get."""

    def route(self, learner: Learner, prompts: Sequence[Text]) -> list[int]:
        """Place of the expert of each prompt."""
        return _nearest(hidden_states(learner, prompts) / self.spread, self.centres)


def fit_classifier(learner: Learner, prompts: Sequence[Sequence[Text]]) -> Classifier:
    """A classifier from some prompts of each expert.

    Args:
        learner: read without its expert.
        prompts: of each expert, two or more.

    Raises:
        InputError: fewer than two experts, or an expert with fewer than two prompts.
    """
    counts = [len(expert_prompts) for expert_prompts in prompts]
    if len(counts) < 2 or min(counts) < 2:
        raise InputError("two experts or more, with two prompts or more each", f"{counts} prompts", "Give more of them.")
    states = hidden_states(learner, [prompt for expert_prompts in prompts for prompt in expert_prompts])
    labels = np.repeat(np.arange(len(counts)), counts)
    centres_and_spread = _fitted(states, labels)
    right = 0
    for left_out in range(len(states)):
        is_other = np.arange(len(states)) != left_out
        centres, spread = _fitted(states[is_other], labels[is_other])
        right += _nearest(states[left_out : left_out + 1] / spread, centres) == [labels[left_out]]
    return Classifier(*centres_and_spread, share_interval(right, len(states)), max(counts) / len(states))


def ask_for_experts(
    learner: Learner, prompts: Sequence[Text], names: Sequence[str], question: str = ROUTING_QUESTION
) -> list[int]:
    """Place of the name that the model, read without its expert, finds likeliest after a prompt and a question.

    A name's log-probability is that of its tokens after the question, less that after the question alone, so that a name is
    not chosen because it is common or short.

    Args:
        learner: asked without its expert.
        prompts: plain text, or chat messages, of which the last one's text gets the question.
        names: of the experts, in words that the model knows.
        question: put after the prompt; `{names}` stands for all of them.
    """
    question_text = question.format(names=", ".join(names))
    texts = [_extended(prompt, question_text) for prompt in prompts]
    answers = [learner.tokenizer(f" {name}", add_special_tokens=False)["input_ids"] for name in names]
    with _as_base(learner):
        with_prompt = np.array(
            [
                [sum(token_logprobs) for token_logprobs in learner.logprobs(texts, [answer] * len(texts))]
                for answer in answers
            ]
        )
        without_prompt = np.array([[sum(learner.logprobs([question_text], [answer])[0])] for answer in answers])
    return (with_prompt - without_prompt).argmax(0).tolist()


def answer_with_experts(
    learner: Learner,
    experts: Sequence[Scales],
    prompts: Sequence[Text],
    routes: Sequence[int],
    write: Callable[[Sequence[Text]], Sequence[Any]],
) -> list[Any]:
    """What `write` gives for each prompt with its expert, in the order of the prompts; scales are then as they were.

    Args:
        learner: a model with scales (the adapter `svf`).
        experts: by place.
        prompts: to be answered.
        routes: place of each prompt's expert; -1 for the base.
        write: called once per expert with its prompts, while the expert is on; one result per prompt.

    Raises:
        InputError: a route to no expert, or experts of other matrices.
    """
    if len(routes) != len(prompts) or any(not -1 <= route < len(experts) for route in routes):
        got = f"{len(routes)} for {len(prompts)} prompts, up to {max(routes, default=-1)}"
        raise InputError(f"a route per prompt, of -1 to {len(experts) - 1}", got, "Correct the routes.")
    old_scales, answers = scales(learner.model), [None] * len(prompts)
    try:
        for route in sorted(set(routes)):
            prompt_indices = [
                prompt_index for prompt_index, route_of_prompt in enumerate(routes) if route_of_prompt == route
            ]
            zero = {name: torch.zeros_like(z) for name, z in old_scales.items()}
            set_scales(learner.model, zero if route < 0 else experts[route])
            for prompt_index, answer in zip(
                prompt_indices, write([prompts[prompt_index] for prompt_index in prompt_indices]), strict=True
            ):
                answers[prompt_index] = answer
    finally:
        set_scales(learner.model, old_scales)
    return answers


def hidden_states(learner: Learner, prompts: Sequence[Text]) -> States:
    """Mean of the last hidden states over each prompt's tokens, without an expert, float64."""
    encoded = [learner.encode(prompt) for prompt in prompts]
    states: list[np.ndarray] = [np.zeros(0)] * len(prompts)
    for batch in token_batches([len(ids) for ids in encoded], pass_token_limit(learner.model)):
        ids, mask = left_padded([encoded[prompt_index] for prompt_index in batch], learner.tokenizer.pad_token_id or 0)
        ids, mask = ids.to(learner.device), mask.to(learner.device)
        with reading_mode(learner.model), _as_base(learner):
            last_states = learner.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[-1]
        means = (last_states.double() * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
        for prompt_index, row in zip(batch, means.cpu().numpy(), strict=True):
            states[prompt_index] = row
    return np.stack(states)


def _as_base(learner: Learner) -> Any:
    """The model without its expert; as it is where it has none."""
    has = scaled_matrices(learner.model) or hasattr(learner.model, "disable_adapter")
    return without_adapter(learner.model) if has else contextlib.nullcontext()


def _extended(prompt: Text, words: str) -> Text:
    if isinstance(prompt, str):
        return prompt + words
    *earlier, last_message = [dict(message) for message in prompt]
    return (*earlier, {**last_message, "content": f"{last_message['content']}{words}"})


def _fitted(states: States, labels: np.ndarray) -> tuple[Centres, Float[np.ndarray, " width"]]:
    """Means of the experts, and the spread within them; the former in units of the latter."""
    centres = np.stack([states[labels == label].mean(0) for label in np.unique(labels)])
    spread = np.sqrt(((states - centres[labels]) ** 2).mean(0)) + 1e-6
    return centres / spread, spread


def _nearest(states: States, centres: Centres) -> list[int]:
    return ((states[:, None] - centres) ** 2).sum(-1).argmin(1).tolist()

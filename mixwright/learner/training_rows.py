"""Rows as token ids, as a trainer reads them: a prompt, and the target that training teaches after it, cut as there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from mixwright.config import TrainConfig
from mixwright.records import Example, Text, plain
from mixwright.tool_calls import text_of

if TYPE_CHECKING:
    from mixwright.learner.learner import Learner

TRL_MAX_LENGTH_TOKENS = 1024
"""`max_length` of TRL's SFT and DPO configs where nothing is set."""


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """One example as the model reads it."""

    example: Example
    """Where it comes from."""
    prompt: tuple[int, ...]
    """Token ids of what stands before the target; never empty where there is a target."""
    target: tuple[int, ...]
    """Token ids that the loss of training is taken over, end token included; empty where the row has no target, or where
    the prompt alone fills the length that training allows."""
    cut_tokens: int = 0
    """Tokens of the target that lie beyond that length and are not trained on."""


def target_of(example: Example) -> Text | None:
    """What the row is read for: its target, else its answer (rows for GRPO), else the chosen answer of a pair; or None."""
    return next((text for text in (example.target, example.answer, example.chosen) if text is not None), None)


def row_tokens(learner: Learner, example: Example) -> tuple[list[int], list[int]]:
    """Token ids of the prompt, and of the target after it with the end token; of a pair the chosen answer is the target."""
    return learner.encode(example.prompt), completion_tokens(learner, target_of(example) or "")


def completion_tokens(learner: Learner, target: Text) -> list[int]:
    """Token ids of a completion, tokenised alone, with the end token."""
    text = target if isinstance(target, str) else "".join(map(text_of, target))
    return [*learner.tokenizer(text, add_special_tokens=False)["input_ids"], learner.tokenizer.eos_token_id]


def row_token_limit(train: TrainConfig, learner: Learner) -> int | None:
    """Tokens of prompt and target that training keeps of a row; None for no limit.

    SFT and DPO cut at TRL's `max_length` (`train.settings`); GRPO cuts no row, and only the model's context counts.
    """
    limits = [learner.context]
    if train.objective != "grpo":
        limits.append(dict(train.settings).get("max_length", TRL_MAX_LENGTH_TOKENS))
    return min((int(limit) for limit in limits if limit is not None), default=None)


def read_training_rows(
    learner: Learner, examples: Iterable[Example], *, tokenise_together: bool = False, limit: int | None = None
) -> Iterator[TrainingRow]:
    """Examples as the trainer reads them.

    Args:
        learner: its tokenizer and the form in which prompts reach it.
        examples: of any kind; chats need a chat template.
        tokenise_together: tokenise prompt and target as one text, as TRL's SFT does; the target begins where the tokens of
            the prompt alone end, or part from it. Else the target is tokenised alone and follows the prompt, as in GRPO.
            Chats with a target in messages go through the template as one conversation either way.
        limit: longest prompt and target together, tokens; what is beyond it is cut off the end, as TRL does.

    Raises:
        InputError: chats, and a tokenizer without a chat template or one that refuses them.
    """
    for example in examples:
        prompt, target = _tokenise(learner, example, tokenise_together=tokenise_together)
        kept_tokens = len(target) if limit is None else min(len(target), max(0, limit - len(prompt)))
        yield TrainingRow(example, tuple(prompt[:limit]), tuple(target[:kept_tokens]), len(target) - kept_tokens)


def _tokenise(learner: Learner, example: Example, *, tokenise_together: bool) -> tuple[list[int], list[int]]:
    """Token ids of prompt and target."""
    target = target_of(example)
    prompt = learner.encode(example.prompt)
    if target is None:
        return prompt, []
    prompt_form, target = learner.form.format_prompt(example.prompt), learner.form.format_answer(example.prompt, target)
    end_token = learner.tokenizer.eos_token_id
    if not isinstance(prompt_form, str) and not isinstance(target, str):
        # one conversation, through the chat template
        return _split_at_target(prompt, learner.encode_chat((*prompt_form, *target)))
    target_ids = [*learner.known_tokens(learner.tokenizer(plain(target), add_special_tokens=False)["input_ids"]), end_token]
    if not isinstance(prompt_form, str) or not tokenise_together:
        return prompt, target_ids
    joined_ids = learner.known_tokens(learner.tokenizer(prompt_form + plain(target), verbose=False)["input_ids"])
    return _split_at_target(prompt if prompt_form else [], [*joined_ids, end_token])


def _split_at_target(prompt: Sequence[int], whole_row: Sequence[int]) -> tuple[list[int], list[int]]:
    """The whole row, parted where the prompt's own tokens end or differ; the first token has nothing before it to be
    predicted from, so it is never part of the target.
    """
    same_tokens = takewhile(lambda pair: pair[0] == pair[1], zip(prompt, whole_row, strict=False))
    shared_tokens = max(1, sum(1 for _ in same_tokens))
    return list(whole_row[:shared_tokens]), list(whole_row[shared_tokens:])

"""Class `CausalModel`, a causal language model with its tokenizer: its passes, whichever class of transformers it is."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import torch
from torch import Tensor


class CausalModel:
    """A causal language model (any transformers class, PEFT-wrapped or not) and its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, batch_size: int | None = None) -> None:
        """Wrap `model` and `tokenizer`; of `batch_size` completions that are sampled together, None takes what fits."""
        self.model = model
        self.tokenizer = tokenizer
        self.batch_size = batch_size
        self.shares_prompts = True
        """Whether its completions can share their prompt's keys and values; False once its attention was found to differ."""
        if tokenizer.pad_token_id is None:
            tokenizer.pad_token = tokenizer.eos_token

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.model.parameters()).device

    @property
    def end_ids(self) -> frozenset[int]:
        """Tokens that end a completion: the tokenizer's and those of the generation config, as in TRL."""
        configured = getattr(self.model.generation_config, "eos_token_id", None)
        ids = {configured} if isinstance(configured, int) else set(configured or ())
        return frozenset(ids | {self.tokenizer.eos_token_id} - {None})

    @property
    def context(self) -> int | None:
        """Longest prompt and completion together, tokens; None where the model does not say."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None)

    def forward(
        self, ids: Tensor, mask: Tensor, *, last_positions: int = 0, cache: Any = None, use_cache: bool = False
    ) -> Any:
        """One call of the model on left-padded rows, with positions counted from each row's first real token.

        Args:
            ids: (batch, time) token ids; only the new ones when there is a cache.
            mask: (batch, all time) 1 for real tokens.
            last_positions: logits of the last `last_positions` positions are enough; 0 for all. More may come back.
            cache: the cache that an earlier call returned.
            use_cache: ask for one.
        """
        accepts = self.forward_arguments
        options: dict[str, Any] = {"attention_mask": mask}
        if "position_ids" in accepts:
            options["position_ids"] = (mask.cumsum(1) - 1).clamp_min(0)[:, -ids.shape[1] :]
        if "logits_to_keep" in accepts and last_positions:
            options["logits_to_keep"] = last_positions
        if self.cache_name is not None:
            options |= {self.cache_name: cache, "use_cache": use_cache}
        return self.model(input_ids=ids, **options)

    @property
    def forward_arguments(self) -> frozenset[str]:
        """Names of the arguments that the model's forward takes (that of the wrapped model under PEFT)."""
        return _arguments_of(type(self.base_model))

    @property
    def cache_name(self) -> str | None:
        """Of the argument, and of the field of its output, in which the model has keys and values of the tokens before; None
        where it has none, but perhaps a state. transformers calls it `cache` from 5.24 on.
        """
        names, stateful = self.forward_arguments, getattr(self.base_model, "_is_stateful", False)
        return next((name for name in ("past_key_values", "cache") if name in names and not stateful), None)

    def read_cache(self, output: Any) -> Any:
        """Keys and values in an output of the model; None where it has none."""
        return None if self.cache_name is None else getattr(output, self.cache_name, None)

    @property
    def base_model(self) -> Any:
        """The model itself, without PEFT around it."""
        return self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model


@cache
def _arguments_of(kind: type) -> frozenset[str]:
    """Names of the arguments of a model's forward."""
    return frozenset(inspect.signature(kind.forward).parameters)  # type: ignore[attr-defined]

"""Warm-up SFT of a tiny model before anything is measured: a short bare-torch loop.

Left out on purpose: everything a real checkpoint needs. Those are trained through TRL (trainers/).
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from mixwright.extend import right_padded, row_tokens
from mixwright_extras.tiny.rows import warmup_shares

if TYPE_CHECKING:
    from mixwright.extend import Corpus, Learner, WarmupConfig


def warm_up(
    learner: Learner,
    corpus: Corpus,
    config: WarmupConfig,
    *,
    seed: int,
    progress: Callable[[int, int, float], None] | None = None,
) -> None:
    """Train on prompt + target (the answer where there is no target), the loss on the completion and its end token only.

    Prompt and completion are joined as GRPO will see them: prompt tokens, then the completion tokenised alone, then the
    end token. That is TRL's SFT as well, but for text that merges across the border, where TRL warns.
    AdamW, linear warm-up over 5 % of the steps, linear decay to nothing over the last 30 %, gradients clipped at 1.

    Args:
        learner: changed in place, left in eval mode.
        corpus: its train split is trained on, or all of it when there is none.
        config: steps, batch size, learning rate, weights of cells.
        seed: of the draws.
        progress: called every 50 steps and at the end with (step, steps, loss in nats per token).

    Raises:
        InputError: a cell that the corpus lacks, or no row with a target.
    """
    examples = [example for example in corpus if example.split == "train"] or list(corpus)
    shares = warmup_shares(examples, config.cells)
    rows = [row_tokens(learner, example) if share else ([], []) for example, share in zip(examples, shares, strict=True)]
    optimizer = torch.optim.AdamW(
        learner.model.parameters(), lr=config.learning_rate, betas=(0.9, 0.99), weight_decay=0.01, fused=True
    )
    warm = max(1, config.steps // 20)
    learner.model.train()
    keeps = "logits_to_keep" in learner.forward_arguments
    for step, batch in enumerate(_batches(shares, config, np.random.default_rng(seed)), start=1):
        decay = min(1.0, (config.steps - step + 1) / (0.3 * config.steps))
        for group in optimizer.param_groups:
            group["lr"] = config.learning_rate * min(1.0, step / warm) * decay
        loss = _loss(learner, [rows[i] for i in batch], keeps)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if progress and (step % 50 == 0 or step == config.steps):
            progress(step, config.steps, float(loss.detach()))
    learner.model.eval()


def _loss(learner: Learner, rows: Sequence[tuple[list[int], list[int]]], takes_logits_to_keep: bool) -> Float[Tensor, ""]:
    """Mean cross-entropy over completion tokens. Rows are padded on the right: causal attention needs no mask then."""
    ids = right_padded([prompt + completion for prompt, completion in rows], learner.tokenizer.pad_token_id or 0)
    labels = right_padded([[-100] * len(prompt) + completion for prompt, completion in rows], -100)
    first_position = min(len(prompt) for prompt, _ in rows) - 1
    options: dict[str, Any] = {"use_cache": False} | (
        {"logits_to_keep": ids.shape[1] - first_position} if takes_logits_to_keep else {}
    )
    logits = learner.model(input_ids=ids.to(learner.device), **options).logits
    logits = logits[:, -(ids.shape[1] - first_position) : -1]
    targets = labels[:, first_position + 1 :].to(learner.device)
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), ignore_index=-100)


def _batches(shares: np.ndarray, config: WarmupConfig, rng: np.random.Generator) -> Iterator[list[int]]:
    """`config.steps` batches of row indices drawn by `shares`.

    Not sorted by length: that makes batches of one task each, and the same steps then raised success half as much
    (mixwright_lab/log.md).
    """
    for _ in range(config.steps):
        yield rng.choice(len(shares), size=config.batch_size, p=shares).tolist()

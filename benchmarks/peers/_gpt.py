"""Tiny GPT over the words of chain arithmetic, and its sampler: one prefill per prompt, then a token at a time."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from mixwright_lab.worlds.chain import LONGEST, MODULUS, OPERATIONS

PAD, EQUALS, END, HASH, MARK = "_", "=", ".", "#", ":"
WORDS = (PAD, EQUALS, END, HASH, MARK, *OPERATIONS, *map(str, range(MODULUS)))
INDEX = {word: number for number, word in enumerate(WORDS)}
PROMPT = LONGEST + 2
"""Tokens of every prompt: start number, operations padded to the longest, and an equals sign."""
LONGEST_RESPONSE = 2 * LONGEST + 3
"""Tokens of the longest response, a verbose one with its end."""

Cache = list[tuple[Tensor, Tensor]]


def encode_prompts(prompts: Sequence[str]) -> Int[Tensor, "prompts prompt"]:
    """Prompts as tokens, operations left-aligned in fixed slots."""
    tokens = np.full((len(prompts), PROMPT), INDEX[PAD])
    for row, prompt in enumerate(prompts):
        words = [INDEX[word] for word in prompt.split()]
        tokens[row, : len(words)] = words
    tokens[:, -1] = INDEX[EQUALS]
    return torch.from_numpy(tokens)


def encode_responses(texts: Sequence[str]) -> Int[Tensor, "texts response"]:
    """Responses as tokens, each with its end, padded to `LONGEST_RESPONSE`."""
    tokens = np.full((len(texts), LONGEST_RESPONSE), INDEX[PAD])
    for row, text in enumerate(texts):
        words = [INDEX[word] for word in (*text.split(), END)]
        tokens[row, : len(words)] = words
    return torch.from_numpy(tokens)


class Block(nn.Module):
    """Attention and a GELU layer of four times the width, both behind RMSNorm.

    Args:
        width: of the residual stream.
        heads: of attention.
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(
        self, stream: Float[Tensor, "rows time width"], past: tuple[Tensor, Tensor] | None
    ) -> tuple[Float[Tensor, "rows time width"], tuple[Tensor, Tensor]]:
        """The stream after this block, and its keys and values so far; `past` is given for single tokens only."""
        rows, time, width = stream.shape
        parts = self.qkv(functional.rms_norm(stream, (width,))).view(rows, time, 3, self.heads, -1).transpose(1, 3)
        query, key, value = parts.unbind(2)
        if past is not None:
            key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=past is None)
        stream = stream + self.out(mixed.transpose(1, 2).reshape(rows, time, width))
        return stream + self.down(functional.gelu(self.up(functional.rms_norm(stream, (width,))))), (key, value)


class GPT(nn.Module):
    """Learned token and position embeddings, `layers` blocks, a linear head.

    Args:
        width: of the residual stream.
        layers: blocks.
        heads: of attention.
    """

    def __init__(self, width: int = 48, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(len(WORDS), width), nn.Embedding(PROMPT + LONGEST_RESPONSE, width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.5)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, len(WORDS))

    def forward(
        self, tokens: Int[Tensor, "rows time"], past: Cache | None = None
    ) -> tuple[Float[Tensor, "rows time words"], Cache]:
        """Logits of the next token at each place, and keys and values for the next call."""
        start = past[0][0].shape[2] if past else 0
        stream = self.tokens(tokens) + self.places.weight[start : start + tokens.shape[1]]
        kept: Cache = []
        for number, block in enumerate(self.blocks):
            stream, layer = block(stream, past[number] if past else None)
            kept.append(layer)
        return self.head(functional.rms_norm(stream, (stream.shape[-1],))), kept

    @torch.no_grad()
    def sample(
        self, prompts: Int[Tensor, "prompts prompt"], count: int, longest: int, *, greedy: bool, generator: torch.Generator
    ) -> Int[Tensor, "prompts count response"]:
        """`count` responses per prompt at temperature 1, or `count` copies of the greedy one; padded after their end."""
        logits, cache = self(prompts)
        cache = [(key.repeat_interleave(count, 0), value.repeat_interleave(count, 0)) for key, value in cache]
        logits = logits[:, -1].repeat_interleave(count, 0)
        done = torch.zeros(len(logits), dtype=torch.bool)
        made = torch.full((len(logits), longest), INDEX[PAD])
        for place in range(longest):
            token = logits.argmax(-1) if greedy else torch.multinomial(logits.softmax(-1), 1, generator=generator)[:, 0]
            made[:, place] = token.where(~done, torch.tensor(INDEX[PAD]))
            done |= token == INDEX[END]
            if bool(done.all()) or place == longest - 1:
                break
            step, cache = self(made[:, place, None], cache)
            logits = step[:, -1]
        return made.view(len(prompts), count, longest)

    def logits_of(
        self, prompts: Int[Tensor, "rows prompt"], responses: Int[Tensor, "rows response"]
    ) -> Float[Tensor, "rows response words"]:
        """Logits at each response token, teacher-forced."""
        logits, _ = self(torch.cat((prompts, responses[:, :-1]), 1))
        return logits[:, prompts.shape[1] - 1 :]

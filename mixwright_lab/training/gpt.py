"""Tiny GPT over the words of a language, and its sampler: one prefill per prompt, then a token at a time."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from mixwright.errors import InputError
from mixwright_lab.training.language import END, PAD, Language

Cache = list[tuple[Tensor, Tensor]]
Added = tuple[int, Tensor]
"""A block (0 is the first) and a vector of the stream's width that is added behind it, at every place."""


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
        language: what it reads and writes.
        width: of the residual stream.
        layers: blocks.
        heads: of attention.
    """

    def __init__(self, language: Language, width: int = 48, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        words, places = len(language.words), language.prompt_tokens + language.response_tokens
        self.language = language
        self.tokens, self.places = nn.Embedding(words, width), nn.Embedding(places, width)
        for table in (self.tokens, self.places):
            nn.init.normal_(table.weight, std=0.5)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(
        self, tokens: Int[Tensor, "rows time"], past: Cache | None = None, *, add: Added | None = None
    ) -> tuple[Float[Tensor, "rows time words"], Cache]:
        """Logits of the next token at each place, and keys and values for the next call."""
        streams, kept = self._streams(tokens, past, add)
        return self.head(functional.rms_norm(streams[-1], (streams[-1].shape[-1],))), kept

    def hidden(self, tokens: Int[Tensor, "rows time"]) -> list[Float[Tensor, "rows time width"]]:
        """The stream behind each block."""
        return self._streams(tokens, None, None)[0]

    @torch.no_grad()
    def sample(
        self,
        prompts: Int[Tensor, "prompts prompt"],
        count: int,
        longest: int,
        *,
        greedy: bool,
        generator: torch.Generator,
        temperature: float = 1.0,
        add: Added | None = None,
    ) -> Int[Tensor, "prompts count response"]:
        """`count` responses per prompt, or `count` copies of the greedy one, padded behind their end."""
        if not 1 <= longest <= self.language.response_tokens:
            raise InputError(
                f"a response of 1 to {self.language.response_tokens} tokens", str(longest), "Correct the length."
            )
        logits, cache = self(prompts, add=add)
        cache = [(key.repeat_interleave(count, 0), value.repeat_interleave(count, 0)) for key, value in cache]
        logits = logits[:, -1].repeat_interleave(count, 0)
        pad, end = self.language.index[PAD], self.language.index[END]
        done = torch.zeros(len(logits), dtype=torch.bool)
        made = torch.full((len(logits), longest), pad)
        for place in range(longest):
            if greedy:
                token = logits.argmax(-1)
            else:
                token = torch.multinomial((logits / temperature).softmax(-1), 1, generator=generator)[:, 0]
            made[:, place] = token.where(~done, torch.tensor(pad))
            done |= token == end
            if bool(done.all()) or place == longest - 1:
                break
            step, cache = self(made[:, place, None], cache, add=add)
            logits = step[:, -1]
        return made.view(len(prompts), count, longest)

    def write(self, prompts: Sequence[str], longest: int | None = None) -> list[list[int]]:
        """Return the tokens of the greedy response to each prompt."""
        encoded, longest = self.language.encode_prompts(prompts), longest or self.language.response_tokens
        return self.sample(encoded, 1, longest, greedy=True, generator=torch.Generator())[:, 0].tolist()

    def logits_of(
        self, prompts: Int[Tensor, "rows prompt"], responses: Int[Tensor, "rows response"]
    ) -> Float[Tensor, "rows response words"]:
        """Logits at each response token, teacher-forced."""
        logits, _ = self(torch.cat((prompts, responses[:, :-1]), 1))
        return logits[:, prompts.shape[1] - 1 :]

    def _streams(self, tokens: Tensor, past: Cache | None, add: Added | None) -> tuple[list[Tensor], Cache]:
        """The stream behind each block, and keys and values so far."""
        start = past[0][0].shape[2] if past else 0
        stream = self.tokens(tokens) + self.places.weight[start : start + tokens.shape[1]]
        streams, kept = [], []
        for number, block in enumerate(self.blocks):
            stream, layer = block(stream, past[number] if past else None)
            if add is not None and add[0] == number:
                stream = stream + add[1]
            streams.append(stream)
            kept.append(layer)
        return streams, kept

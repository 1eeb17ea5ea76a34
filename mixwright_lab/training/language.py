"""Language of a world: its words as tokens, prompts in fixed slots, responses that end in a full stop."""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from mixwright.errors import InputError, join_some

PAD, EQUALS, END, HASH, MARK = "_", "=", ".", "#", ":"
SIGNS = (PAD, EQUALS, END, HASH, MARK)
"""Words of every language: empty place, end of a prompt, end of a response, before an answer, before a step of it."""


def style_of(text: str) -> str:
    """Style of a response by its first word: direct, verbose or full; "none" for one without an answer."""
    words = text.split()
    if HASH not in words:
        return "none"
    return {HASH: "direct", MARK: "verbose"}.get(words[0], "full")


@dataclass(frozen=True)
class Language:
    """What a model reads and writes, one token per word; words stand between spaces."""

    words: tuple[str, ...]
    """All of them, `SIGNS` included; the place of a word is its token."""
    prompt_tokens: int
    """Tokens of every prompt: its words, then `PAD`, with `EQUALS` last."""
    response_tokens: int
    """Tokens of the longest response, its end included."""
    style_of: Callable[[str], str] = style_of
    """Answer style of a response; a function of a module, so that other processes can have it."""

    def __post_init__(self) -> None:
        missing = [sign for sign in SIGNS if sign not in self.words]
        if missing or len(set(self.words)) != len(self.words) or any(word.split() != [word] for word in self.words):
            got = f"without {join_some(missing)}" if missing else "a word twice, or one that is empty or holds a space"
            raise InputError(f"the signs {' '.join(SIGNS)} and words without spaces, each once", got, "Correct the words.")

    @cached_property
    def index(self) -> dict[str, int]:
        """Token of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def encode_prompts(self, prompts: Sequence[str]) -> Int[Tensor, "prompts prompt"]:
        """Prompts as tokens, left-aligned. Raises InputError for a word that there is not, or too many words."""
        tokens = self._encode([prompt.split() for prompt in prompts], self.prompt_tokens, self.prompt_tokens - 1)
        tokens[:, -1] = self.index[EQUALS]
        return tokens

    def encode_responses(self, texts: Sequence[str]) -> Int[Tensor, "texts response"]:
        """Responses as tokens, each with its end, padded to `response_tokens`. Raises InputError as for prompts."""
        return self._encode([[*text.split(), END] for text in texts], self.response_tokens, self.response_tokens)

    def decode(self, response: Sequence[int]) -> str:
        """A response as text, up to its end."""
        words = []
        for token in response:
            if self.words[token] in (END, PAD):
                break
            words.append(self.words[token])
        return " ".join(words)

    def mask(self, tokens: Int[Tensor, "*shape"]) -> Bool[Tensor, "*shape"]:
        """Which tokens are none of padding."""
        return tokens != self.index[PAD]

    def _encode(self, rows: Sequence[Sequence[str]], width: int, longest: int) -> Tensor:
        tokens = np.full((len(rows), width), self.index[PAD])
        for row, words in enumerate(rows):
            if unknown := [word for word in words if word not in self.index]:
                raise InputError(f"words of {join_some(self.words)}", join_some(unknown), "Name them in `Language.words`.")
            if len(words) > longest:
                got = f"{len(words)}: {' '.join(words)}"
                raise InputError(f"{longest} words or fewer", got, "Shorten the text, or widen the language.")
            tokens[row, : len(words)] = [self.index[word] for word in words]
        return torch.from_numpy(tokens)

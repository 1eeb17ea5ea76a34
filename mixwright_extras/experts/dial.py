"""Logits processors that mix models while they write, without changing weights, and a sweep of how much to mix in.

`Dial` goes from a base to its tuned model: base + alpha (tuned - base), that is p ~ p_base^(1 - alpha) p_tuned^alpha.
`ExpertDial` moves a third model by what tuning changed in another: s + alpha (expert - anti-expert), as in
proxy-tuning (https://arxiv.org/abs/2401.08565). They are handed to `generate(logits_processor=[...])`.
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList

from mixwright.extend import (
    InputError,
    Interval,
    left_padded,
    mean_interval,
    pass_token_limit,
    reading_mode,
    token_batches,
    wilson,
)
from mixwright_extras.experts.singular import without_adapter

if TYPE_CHECKING:
    from mixwright.extend import Learner

Ids = Int[Tensor, "batch time"]
Logits = Float[Tensor, "batch vocabulary"]


class Reader:
    """Next-token logits of one model for rows that grow.

    Its key-value cache is used while the rows that come are those of the last call with new tokens at the end; all else
    (a new batch, rows that a beam search has moved) is read anew from the start.
    """

    def __init__(self, learner: Learner, *, adapter: bool = True) -> None:
        """Read a model.

        Args:
            learner: the model.
            adapter: False switches its adapter off while it is read.
        """
        self.learner, self.adapter = learner, adapter
        self._rows: tuple[Ids, Ids] | None = None
        self._cache: Any = None

    def logits(self, ids: Ids, mask: Ids) -> Logits:
        """Logits after the last token of each row, float32; `mask` is 1 for real tokens."""
        cached = self.learner.cache_name is not None
        cached_tokens = self._known(ids, mask) if cached else 0
        if not cached_tokens:
            self._cache = None
        off = contextlib.nullcontext() if self.adapter else without_adapter(self.learner.model)
        with reading_mode(self.learner.model), off:
            output = self.learner.forward(
                ids[:, cached_tokens:], mask, last_positions=1, cache=self._cache, use_cache=cached
            )
        self._rows, self._cache = (ids, mask), self.learner.read_cache(output)
        return output.logits[:, -1].float()

    def _known(self, ids: Ids, mask: Ids) -> int:
        """Tokens per row that the cache holds; 0 where it is of other rows."""
        if self._rows is None or self._cache is None:
            return 0
        length = self._rows[0].shape[1]
        if len(ids) != len(self._rows[0]) or ids.shape[1] <= length:
            return 0
        pairs = zip((ids, mask), self._rows, strict=True)
        return length if all(torch.equal(now[:, :length], then) for now, then in pairs) else 0


class _Mixing(LogitsProcessor):
    """What both dials share: the strength, and the mask of the rows that they are shown."""

    def __init__(self, alpha: float, pad: int | None, mask: Ids | None) -> None:
        self.alpha, self.pad, self.mask = alpha, pad, mask

    def _mask(self, ids: Ids) -> Ids:
        """1 for real tokens: the mask of the prompts, where it is given, else all but the padding that a row begins with."""
        if self.mask is not None:
            if len(ids) % len(self.mask) or ids.shape[1] < self.mask.shape[1]:
                got = f"{tuple(self.mask.shape)} for rows of shape {tuple(ids.shape)}"
                raise InputError("an attention mask for these prompts", got, "Create a new dial for each batch.")
            prompts = self.mask.to(ids.device).repeat_interleave(len(ids) // len(self.mask), 0)
            return torch.cat([prompts, prompts.new_ones(len(ids), ids.shape[1] - prompts.shape[1])], 1)
        if self.pad is None:
            return torch.ones_like(ids)
        return (ids != self.pad).long().cummax(1).values

    def _read(self, reader: Reader, ids: Ids, scores: Logits) -> Logits:
        logits = reader.logits(ids.to(reader.learner.device), self._mask(ids).to(reader.learner.device)).to(scores.device)
        if logits.shape != scores.shape:
            sizes = f"{scores.shape[-1]} and {logits.shape[-1]} logits"
            raise InputError("models with the same vocabulary", sizes, "Mix models that share a tokenizer.")
        return logits


class Dial(_Mixing):
    """base + alpha (tuned - base), where one of the two is the model that writes; exact at alpha 0 and 1.

    What comes out are log-probabilities; where the model that writes has all the weight, its logits as they came.
    """

    def __init__(
        self,
        alpha: float,
        *,
        base: Reader | None = None,
        tuned: Reader | None = None,
        pad: int | None,
        mask: Ids | None = None,
    ) -> None:
        """Mix a model with the one that writes.

        Args:
            alpha: 0 for the base, 1 for the tuned model; above 1 goes on in the same direction.
            base: the base, when the tuned model writes; of one model with an adapter `Reader(learner, adapter=False)`.
            tuned: the tuned model, when the base writes.
            pad: padding token of the prompts; None where they are of one length.
            mask: of the prompts, 1 for real tokens; needed only where prompts begin with the padding token themselves.

        Raises:
            InputError: not exactly one of base and tuned.
        """
        super().__init__(alpha, pad, mask)
        if (base is None) == (tuned is None):
            raise InputError("a base or a tuned model; the other one generates", "both or neither", "Give one of them.")
        self.base, self.tuned = base, tuned

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Mixed logits. The second model is not read where it has no weight."""
        if self.alpha == (0.0 if self.base is None else 1.0):
            return scores
        other_logits = self._read(self.base or self.tuned, input_ids, scores)  # pyright: ignore[reportArgumentType] - one is given
        ends = (scores, other_logits) if self.base is None else (other_logits, scores)
        return _normal(scores, torch.lerp(*ends, self.alpha))  # at either end equal to the bit, the plain formula is not


class ExpertDial(_Mixing):
    """s + alpha (expert - anti-expert), s being the logits of the model that writes, as log-probabilities; exact at 0."""

    def __init__(self, alpha: float, *, expert: Reader, anti: Reader, pad: int | None, mask: Ids | None = None) -> None:
        """Move the model that writes.

        Args:
            alpha: 0 leaves it as it is; 1 adds the whole difference.
            expert: the tuned model; both share the vocabulary of the one that writes.
            anti: the same model before it was tuned.
            pad: padding token of the prompts; None where they are of one length.
            mask: as for `Dial`.
        """
        super().__init__(alpha, pad, mask)
        self.expert, self.anti = expert, anti

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Moved logits."""
        if self.alpha == 0:
            return scores
        change = self._read(self.expert, input_ids, scores) - self._read(self.anti, input_ids, scores)
        return _normal(scores, scores + self.alpha * change)


def _normal(scores: Logits, mixed: Logits) -> Logits:
    """Log-probabilities, which a beam search adds up as they are; what another processor has forbidden stays so."""
    return torch.where(scores.isneginf(), scores, mixed).log_softmax(-1)


def complete(
    learner: Learner, prompts: Sequence[Any], max_new_tokens: int, dial: LogitsProcessor | None = None
) -> list[str]:
    """Greedy completions by `generate`, in the order of the prompts; arguments as for `write_completions`."""
    return [text for text, _ in write_completions(learner, prompts, max_new_tokens, dial)]


def write_completions(
    learner: Learner, prompts: Sequence[Any], max_new_tokens: int, dial: LogitsProcessor | None = None
) -> list[tuple[str, bool]]:
    """Greedy completions by `generate`, in the order of the prompts, and whether each ended itself.

    Args:
        learner: the model that writes.
        prompts: plain text or chat messages.
        max_new_tokens: longest completion, end token included.
        dial: put on its logits; None for the model as it is.
    """
    encoded, completions = [learner.encode(prompt) for prompt in prompts], [("", False)] * len(prompts)
    pad, ends = learner.tokenizer.pad_token_id, learner.end_ids
    options: dict[str, Any] = {"do_sample": False, "max_new_tokens": max_new_tokens, "pad_token_id": pad}
    options |= {"eos_token_id": sorted(ends), "logits_processor": LogitsProcessorList([dial] if dial else [])}
    for batch in token_batches([len(ids) + max_new_tokens for ids in encoded], pass_token_limit(learner.model)):
        ids, mask = (
            tensor.to(learner.device) for tensor in left_padded([encoded[prompt_index] for prompt_index in batch], pad)
        )
        with reading_mode(learner.model):
            rows = learner.model.generate(input_ids=ids, attention_mask=mask, **options)
        for prompt_index, row in zip(batch, rows[:, ids.shape[1] :].tolist(), strict=True):
            completions[prompt_index] = learner.tokenizer.decode(row, skip_special_tokens=True), not ends.isdisjoint(row)
    return completions


@dataclass(frozen=True)
class Setting:
    """One strength of a dial, measured."""

    alpha: float
    skill: Interval
    """Mean over items of the skill that was tuned for."""
    loss: Interval
    """Knowledge lost against alpha 0, mean over the same items; negative for what was gained."""


@dataclass(frozen=True)
class Sweep:
    """Skill and lost knowledge over alpha."""

    settings: tuple[Setting, ...]
    """By alpha, small first; alpha 0 is always among them."""
    chosen: float | None
    """The largest alpha whose loss has an interval that ends within `max_loss`; None where there is none above 0."""
    max_loss: float
    """What was accepted, in the unit of knowledge."""
    items: Mapping[str, int] = field(default_factory=dict)
    """Number of items by group: tuned for, kept."""


Measure = Callable[[float], Float[np.ndarray, " items"]]
"""Scores of the same items, in the same order, with the dial at alpha; higher is better."""


def sweep(alphas: Sequence[float], skill: Measure, knowledge: Measure, *, max_loss: float) -> Sweep:
    """Skill and lost knowledge at each alpha, and the largest alpha that loses less than `max_loss` for all we know.

    Args:
        alphas: strengths to try, each above 0; 0 is added.
        skill: scores of what was tuned for.
        knowledge: scores of what is to be kept.
        max_loss: largest mean loss of knowledge that is accepted, in its unit.
    """
    before = np.asarray(knowledge(0.0), float)
    settings = []
    for alpha in sorted({0.0, *alphas}):
        loss = loss_interval(before, np.asarray(knowledge(alpha), float) if alpha else before)
        settings.append(Setting(alpha, mean_interval(np.asarray(skill(alpha), float), bound=NO_BOUND), loss))
    strengths_within_limit = [setting.alpha for setting in settings if setting.alpha > 0 and setting.loss.high <= max_loss]
    return Sweep(tuple(settings), max(strengths_within_limit, default=None), max_loss)


NO_BOUND = float(np.finfo(np.float64).max)
"""End of an interval of fewer than two items."""


def loss_interval(before: Float[np.ndarray, " items"], after: Float[np.ndarray, " items"]) -> Interval:
    """Mean loss over paired items, with its 95 % interval.

    Of items that are right or wrong (1 or 0): the share that was lost minus the share that was gained, each with Wilson's
    interval, put together by the squares of their widths, so that no loss among few items is not taken for certain. Of
    other scores: Student's t of the differences.
    """
    if not (np.isin(before, (0.0, 1.0)).all() and np.isin(after, (0.0, 1.0)).all()):
        return mean_interval(before - after, bound=NO_BOUND)
    count = float(len(before))
    shares = np.array([(before > after).sum(), (before < after).sum()]) / max(count, 1.0)
    low, high = wilson(shares * count, np.full(2, count))
    value = float(shares[0] - shares[1])
    down = float(np.hypot(shares[0] - low[0], high[1] - shares[1]))
    up = float(np.hypot(high[0] - shares[0], shares[1] - low[1]))
    return Interval(value, value - down, value + up, len(before))

"""Class `Learner`, a causal language model with its tokenizer: it samples, reads log-probabilities, and is saved.

Left out on purpose: training (trainers/ and warmup.py) and judging (graders/).
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from jinja2 import TemplateError
from torch import Tensor

from mixwright.errors import InputError, disk_full_error
from mixwright.learner.batches import (
    MOST_TOKENS_PER_PASS,
    left_padded,
    logits_limit,
    reading_mode,
    row_batches,
    token_batches,
    without_progress_bars,
)
from mixwright.learner.prompt_form import PromptForm, no_template, template_refused

if TYPE_CHECKING:
    from mixwright.records import Text


CONTINUATION_PLACE_OFFSET = 2**32
"""Added to the place of a prompt where numbers are drawn that continue its completions; no corpus has as many prompts."""


@dataclass(frozen=True)
class Completion:
    """What the model wrote after a prompt."""

    text: str
    """Decoded without special tokens."""
    token_ids: tuple[int, ...]
    """As sampled; what it was begun with before them, and the end token included when there was one."""
    logprobs: tuple[float, ...]
    """Nats per token of `token_ids`, under the distribution it was drawn from (softmax of logits / temperature; greedy:
    temperature 1); NaN for tokens that it was begun with, which nobody drew."""
    finished: bool
    """True when it ended itself, False when it was cut at the longest that was allowed."""


@dataclass
class Continuation:
    """One sampled row."""

    token_ids: list[int] = field(default_factory=list)
    """As sampled so far; the end token included."""
    logprobs: list[float] = field(default_factory=list)
    """Nats per token of `token_ids`."""
    finished: bool = False
    """True once the end token was sampled."""


class Learner:
    """A causal language model (any transformers class, PEFT-wrapped or not) and its tokenizer.

    Sampling and reading leave parameters, gradients, train/eval mode and the global random state as they were.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        template_arguments: Mapping[str, Any] | None = None,
        *,
        form: PromptForm | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Wrap `model` and `tokenizer`.

        Args:
            model: a causal language model.
            tokenizer: its tokenizer.
            name: what messages call it.
            template_arguments: handed to the chat template.
            form: how prompts reach the tokenizer; None takes its chat template wherever it has one.
            batch_size: completions that are sampled together; None takes what fits in a bounded number of tokens.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.template = dict(template_arguments or {})
        self.form = (form or PromptForm()).resolved_for(getattr(tokenizer, "chat_template", None))
        self.batch_size = batch_size
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

    def encode(self, prompt: Text) -> list[int]:
        """Token ids of a prompt, as TRL's GRPO makes them: plain text with the tokenizer's own special tokens, chat
        messages through the chat template with the generation prompt. `form` turns one into the other before.

        Raises:
            InputError: chat messages and a tokenizer without a chat template, or one that refuses them.
        """
        prompt = self.form.format_prompt(
            prompt if isinstance(prompt, str) else tuple(prompt)
        )  # datasets hold messages as lists
        if isinstance(prompt, str):
            ids = self.tokenizer(prompt, verbose=False)["input_ids"]  # lengths are checked, and told, here
        else:
            if self.tokenizer.chat_template is None:
                raise no_template(self.name)
            messages = [dict(message) for message in prompt]
            try:
                rendered = self.tokenizer.apply_chat_template(
                    messages, add_generation_prompt=True, tokenize=True, return_dict=True, **self.template
                )
            except TemplateError as error:
                raise template_refused(self.name, messages, error) from error
            ids = rendered["input_ids"]
        if ids:
            return list(ids)
        start = self.tokenizer.bos_token_id
        return [self.tokenizer.eos_token_id if start is None else start]

    def with_form(self, form: PromptForm) -> Learner:
        """The same model, read in another form of prompts."""
        return Learner(self.model, self.tokenizer, self.name, self.template, form=form, batch_size=self.batch_size)

    def check_template(self) -> None:
        """Raises InputError where prompts go through a chat template that does not show them to the model."""
        if self.form.template is not True:
            return
        one, other = (self.encode(({"role": "user", "content": text},)) for text in ("Name a colour.", "Count to 3."))
        if one == other:
            expected = f"a chat template of {self.name} that holds the user's message"
            remedy = "Correct the template, or give plain text: --no-chat-template, model.chat_template: false."
            raise InputError(expected, "the same tokens for two different messages", remedy)

    @property
    def context(self) -> int | None:
        """Longest prompt and completion together, tokens; None where the model does not say."""
        return getattr(self.model.config.get_text_config(), "max_position_embeddings", None)

    def sample(
        self,
        prompts: Sequence[Text],
        *,
        count: int,
        temperature: float,
        max_new_tokens: int,
        seed: int,
        prefixes: Sequence[Sequence[int]] | None = None,
        continue_up_to: int | None = None,
        draw_keys: Sequence[int] | None = None,
        progress: Callable[[float], None] | None = None,
        on_finished: Callable[[Mapping[int, list[Completion]]], None] | None = None,
    ) -> list[list[Completion]]:
        """`count` completions per prompt, in the order of `prompts`.

        Each token is drawn with one uniform number that depends only on (seed, place of the prompt, sample, position),
        so the same seed couples two models (before and after), whatever the batching. No top-k, no top-p, no
        repetition penalty, whatever the generation config says.

        Args:
            prompts: plain text or chat messages.
            count: completions per prompt; with temperature 0 all are the same, and only one is computed.
            temperature: divides the logits; 0 takes the likeliest token.
            max_new_tokens: longest completion, end token included.
            seed: any integer.
            prefixes: tokens per prompt that its completions begin with; they count as if drawn, and are fewer than the
                longest.
            continue_up_to: completions that reach `max_new_tokens` are continued up to so many; None continues none.
            draw_keys: number of each prompt that its draws depend on, where they are part of a longer list; None counts
                them.
            progress: called while each batch is written, and after it, with the share that is done, 0..1.
            on_finished: called after each batch with the completions, by index of the prompt, that nothing is added to.

        Raises:
            InputError: prompts longer than the model's context, or chat prompts without a chat template.
        """
        encoded = [self.encode(prompt) for prompt in prompts]
        whole = list(zip(encoded, [()] * len(encoded) if prefixes is None else prefixes, strict=True))
        self._check_length(max(map(len, encoded), default=0) + max(max_new_tokens, continue_up_to or 0))
        rows = 1 if (greedy := temperature == 0) else count
        found: list[list[Completion]] = [[] for _ in prompts]
        numbers = range(len(prompts)) if draw_keys is None else draw_keys
        more = continue_up_to if continue_up_to is not None and continue_up_to > max_new_tokens else None
        width, done = min(rows, self.batch_size or rows), 0
        with reading_mode(self.model):
            for batch in self._batches([len(ids) + max_new_tokens for ids in encoded], rows):
                noise = None if greedy else draw_uniforms(seed, [numbers[i] for i in batch], count, max_new_tokens)
                for first in range(0, rows, width):  # more than one part only where --batch-size is below `count`
                    part = min(width, rows - first)
                    drawn = (
                        None if noise is None else noise.view(len(batch), rows, -1)[:, first : first + part].flatten(0, 1)
                    )
                    heard = _part_of(progress, done / len(prompts), len(batch) / len(prompts), first / rows, part / rows)
                    texts = continue_begun(self, [whole[i] for i in batch], part, temperature, max_new_tokens, drawn, heard)
                    for place, i in enumerate(batch):
                        found[i] += [self._completion(row) for row in texts[place * part : (place + 1) * part]]
                done += len(batch)
                if progress:
                    progress(done / len(prompts))
                ended = [i for i in batch if not more or all(made.finished for made in found[i])]
                if on_finished and ended:
                    on_finished({i: found[i] for i in ended})
            cut = [i for i, row in enumerate(found) if more and not all(made.finished for made in row)]
            if more and cut:
                self._lengthen(encoded, found, temperature, more, seed, numbers, on_finished)
        return [row * count for row in found] if greedy else found

    def lengthen(
        self,
        prompts: Sequence[Text],
        found: list[list[Completion]],
        *,
        temperature: float,
        continue_up_to: int,
        seed: int,
        draw_keys: Sequence[int],
        on_finished: Callable[[Mapping[int, list[Completion]]], None] | None = None,
    ) -> None:
        """Continue what `sample` cut, in place, as `sample` with `continue_up_to` does. Raises InputError as that does."""
        encoded = [self.encode(prompt) for prompt in prompts]
        self._check_length(max(map(len, encoded), default=0) + continue_up_to)
        with reading_mode(self.model):
            self._lengthen(encoded, found, temperature, continue_up_to, seed, draw_keys, on_finished)

    def _lengthen(
        self,
        prompts: Sequence[list[int]],
        found: list[list[Completion]],
        temperature: float,
        continue_up_to: int,
        seed: int,
        numbers: Sequence[int],
        on_finished: Callable[[Mapping[int, list[Completion]]], None] | None,
    ) -> None:
        """Continue what was cut, in place; its further numbers depend on (seed, place of the prompt, sample, position)."""
        cut = [(i, k) for i, row in enumerate(found) for k, made in enumerate(row) if not made.finished]
        sizes, left = [len(prompts[i]) + continue_up_to for i, _ in cut], Counter(i for i, _ in cut)
        for batch in self._batches(sizes, 1):
            part = [(*cut[place], found[cut[place][0]][cut[place][1]]) for place in batch]
            noise = None
            if temperature != 0:
                more = [
                    draw_uniforms(seed, [CONTINUATION_PLACE_OFFSET + numbers[i]], len(found[i]), continue_up_to)[k]
                    for i, k, _ in part
                ]
                noise = torch.stack(more)
            whole = [(prompts[i], made.token_ids) for i, _, made in part]
            for (i, k, made), row in zip(
                part, continue_begun(self, whole, 1, temperature, continue_up_to, noise), strict=True
            ):
                row.logprobs[: len(made.logprobs)] = made.logprobs
                found[i][k] = self._completion(row)
                left[i] -= 1
            if on_finished and (ended := [i for i in dict.fromkeys(i for i, *_ in part) if not left[i]]):
                on_finished({i: found[i] for i in ended})

    def _batches(self, sizes: Sequence[int], rows: int) -> Iterator[list[int]]:
        """Indices of prompts that are sampled together; `sizes`: tokens of one row of each, `rows`: rows of each."""
        if self.batch_size is not None:
            return row_batches(sizes, self.batch_size // rows)
        last_alone = "logits_to_keep" in self.forward_arguments  # then logits of a row are those of one position
        return token_batches(
            [rows * size for size in sizes], MOST_TOKENS_PER_PASS if last_alone else logits_limit(self.model)
        )

    def logprobs(self, prompts: Sequence[Text], completions: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probability in nats of each completion token (end token included if it is there), at temperature 1.

        Args:
            prompts: one per completion.
            completions: token ids, as in `Completion.token_ids`.

        Raises:
            InputError: as `sample` does.
        """
        found: list[list[float]] = [[] for _ in prompts]
        for i, table in self.distributions(prompts, completions):
            chosen = torch.tensor(list(completions[i]), device=table.device)
            found[i] = table.gather(1, chosen[:, None])[:, 0].tolist()
        return found

    def distributions(
        self, prompts: Sequence[Text], completions: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, Float[Tensor, "time vocabulary"]]]:
        """(index, log-probabilities at every completion position, temperature 1, float32), one completion at a time.

        The order depends only on the lengths, so two models with one tokenizer can be read in step. Empty completions
        are left out. Raises InputError as `sample` does.
        """
        rows = [(self.encode(prompt), list(tokens)) for prompt, tokens in zip(prompts, completions, strict=True)]
        used = [i for i, (_, tokens) in enumerate(rows) if tokens]
        self._check_length(max((len(rows[i][0]) + len(rows[i][1]) for i in used), default=0))
        sizes = [len(rows[i][0]) + len(rows[i][1]) for i in used]
        for batch in token_batches(sizes, logits_limit(self.model)):
            members = [used[place] for place in batch]
            with reading_mode(self.model):
                ids, mask = left_padded([rows[i][0] + rows[i][1] for i in members], self.tokenizer.pad_token_id or 0)
                keep = max(len(rows[i][1]) for i in members) + 1
                logits = self.forward(ids.to(self.device), mask.to(self.device), last_positions=keep).logits[:, -keep:]
                tables = [torch.log_softmax(logits[p, -len(rows[i][1]) - 1 : -1].float(), -1) for p, i in enumerate(members)]
            yield from zip(members, tables, strict=True)

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
        if "past_key_values" in accepts:
            options |= {"past_key_values": cache, "use_cache": use_cache}
        return self.model(input_ids=ids, **options)

    @cached_property
    def forward_arguments(self) -> frozenset[str]:
        """Names of the arguments that the model's forward takes (that of the wrapped model under PEFT)."""
        plain = self.model.get_base_model() if hasattr(self.model, "get_base_model") else self.model
        return frozenset(inspect.signature(plain.forward).parameters)

    def save(self, folder: Path) -> None:
        """Write model (safetensors) and tokenizer; `load_learner(str(folder))` reads them back.

        Raises:
            InputError: a full disk, or another limit of the system.
        """
        try:
            with without_progress_bars():
                self.model.save_pretrained(folder)
                self.tokenizer.save_pretrained(folder)
        except Exception as error:  # safetensors and tokenizers have their own kinds
            if (refused := disk_full_error(error, folder)) is None:
                raise
            raise refused from error

    def _completion(self, row: Continuation) -> Completion:
        text = self.tokenizer.decode(row.token_ids, skip_special_tokens=True)
        return Completion(text, tuple(row.token_ids), tuple(row.logprobs), row.finished)

    def _check_length(self, continue_up_to: int) -> None:
        limit = self.context
        if limit is not None and continue_up_to > limit:
            raise InputError(
                f"prompt and completion of at most {limit} tokens ({self.name})",
                f"{continue_up_to}",
                "Shorten the prompts or lower max_new_tokens.",
            )


def draw_uniforms(seed: int, prompts: Sequence[int], count: int, length: int) -> Float[Tensor, "rows length"]:
    """Uniform numbers in [0, 1), float64; those of a prompt depend only on (seed, its place), not on the batch."""
    draws = []
    for place in prompts:
        generator = np.random.Generator(np.random.Philox(key=[seed % 2**64, place]))
        draws.append(generator.random((count, length)))
    return torch.from_numpy(np.concatenate(draws))


def choose_tokens(
    logits: Float[Tensor, "rows vocabulary"], temperature: float, uniform: Float[Tensor, " rows"] | None
) -> tuple[Int[Tensor, " rows"], Float[Tensor, " rows"]]:
    """Next tokens and their log-probabilities: the likeliest without `uniform`, else by the inverse of the cumulative sum.

    The sum is float64, so that rare tokens of large vocabularies keep their share; a token of probability 0 is never
    drawn.
    """
    table = torch.log_softmax(logits.float() / (temperature or 1.0), -1)
    if uniform is None:
        tokens = table.argmax(-1)
    else:
        total = table.to(uniform.device).double().exp().cumsum(-1)
        tokens = torch.searchsorted(total, uniform[:, None] * total[:, -1:], right=True)[:, 0]
        tokens = tokens.clamp_max(table.shape[1] - 1).to(table.device)
    return tokens, table.gather(1, tokens[:, None])[:, 0]


def _part_of(
    progress: Callable[[float], None] | None, prefixes: float, share: float, first: float, part: float
) -> Callable[[float], None] | None:
    """Progress of a part of a batch as that of the whole, of which the batch is `share`, from `begun` on."""
    if progress is None:
        return None
    return lambda done: progress(prefixes + share * (first + part * done))


def continue_begun(
    learner: Learner,
    prompts: Sequence[tuple[Sequence[int], Sequence[int]]],
    count: int,
    temperature: float,
    max_new_tokens: int,
    noise: Float[Tensor, "rows length"] | None,
    progress: Callable[[float], None] | None = None,
) -> list[Continuation]:
    """As `continue_prompts`, of (prompt, tokens that completions begin with): each draws by its place in the completion."""
    starts = [list(tokens) for _, tokens in prompts for _ in range(count)]
    sizes = [len(tokens) for tokens in starts]
    if not any(sizes):
        return continue_prompts(learner, [ids for ids, _ in prompts], count, temperature, max_new_tokens, noise, progress)
    if max(sizes) >= max_new_tokens:
        raise ValueError("a completion is begun with as many tokens as it may have")
    if noise is not None:
        noise = torch.stack([row.roll(-size) for row, size in zip(noise, sizes, strict=True)])
    whole = [[*ids, *tokens] for ids, tokens in prompts]
    rows = continue_prompts(learner, whole, count, temperature, max_new_tokens - min(sizes), noise, progress)
    found = []
    for start, row in zip(starts, rows, strict=True):
        room = max_new_tokens - len(start)
        logprobs = [math.nan] * len(start) + row.logprobs[:room]
        found.append(Continuation(start + row.token_ids[:room], logprobs, row.finished and len(row.token_ids) <= room))
    return found


def continue_prompts(
    learner: Learner,
    prompts: Sequence[Sequence[int]],
    count: int,
    temperature: float,
    max_new_tokens: int,
    noise: Float[Tensor, "rows length"] | None,
    progress: Callable[[float], None] | None = None,
) -> list[Continuation]:
    """`count` rows per prompt, prompt by prompt; stops when all rows have ended. Call it without gradients, in eval mode.

    `progress` is called at every token with the share of the longest that is written, 0..1.
    """
    device = learner.device
    ids, mask = (part.to(device) for part in left_padded(prompts, learner.tokenizer.pad_token_id or 0))
    ends = torch.tensor(sorted(learner.end_ids), device=device)
    noise = noise.to(device) if noise is not None and device.type != "mps" else noise  # Apple's has no float64
    cached = "past_key_values" in learner.forward_arguments
    output = learner.forward(ids, mask, last_positions=1, use_cache=cached)
    logits, cache = output.logits[:, -1], getattr(output, "past_key_values", None) if cached else None
    if count > 1:
        if cache is not None:
            cache.batch_repeat_interleave(count)
        ids, mask, logits = (part.repeat_interleave(count, 0) for part in (ids, mask, logits))
    done = torch.zeros(len(ids), dtype=torch.bool, device=device)
    tokens, logprobs, over = [], [], []
    for step in range(max_new_tokens):
        token, logprob = choose_tokens(logits, temperature, noise[:, step] if noise is not None else None)
        over.append(done)
        tokens.append(token)
        logprobs.append(logprob)
        done = done | torch.isin(token, ends)
        if progress:
            progress((step + 1) / max_new_tokens)
        if step == max_new_tokens - 1 or bool(done.all()):
            break
        mask = torch.cat([mask, mask.new_ones(len(mask), 1)], 1)
        ids = token[:, None] if cached else torch.cat([ids, token[:, None]], 1)
        output = learner.forward(ids, mask, last_positions=1, cache=cache, use_cache=cached)
        logits, cache = output.logits[:, -1], getattr(output, "past_key_values", None) if cached else None
    lengths = (~torch.stack(over, 1)).sum(1).tolist()
    columns = zip(torch.stack(tokens, 1).tolist(), torch.stack(logprobs, 1).tolist(), lengths, done.tolist(), strict=True)
    return [Continuation(row[:length], log[:length], ended) for row, log, length, ended in columns]

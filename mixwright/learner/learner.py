"""Class `Learner`, a causal language model with its tokenizer: it samples, reads log-probabilities, and is saved.

Left out on purpose: training (trainers/ and warmup.py) and judging (graders/).
"""

# ruff: noqa: F722 - the shape strings of jaxtyping are not forward references

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from torch import Tensor

from mixwright.errors import InputError, disk_full_error
from mixwright.learner.batches import left_padded, pass_token_limit, reading_mode, token_batches, without_progress_bars
from mixwright.learner.causal_model import CausalModel
from mixwright.learner.generation import Continuation, Decoding, GenerationJob, scale_progress
from mixwright.learner.prompt_form import PromptForm, no_template, render_chat
from mixwright.learner.shared_generation import generate
from mixwright.run.progress import describe_work
from mixwright.thoughts import find_open_tag
from mixwright.tool_calls import calls_of, write_calls

if TYPE_CHECKING:
    from mixwright.records import Text

CONTINUATION_PLACE_OFFSET = 2**32
"""Added to the place of a prompt where numbers are drawn that continue its completions; no corpus has as many prompts."""
FIRST_WRITING_SHARE = 0.6
"""Share of the time that completions take until they reach their first room, where longer ones are then continued; roughly,
for the progress line."""
OPEN_TAG_TOKENS = 12
"""Tokens at the end of a prompt in which an opening tag of thoughts is looked for."""


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


class Learner(CausalModel):
    """A causal language model (any transformers class, PEFT-wrapped or not) and its tokenizer.

    Sampling and reading leave parameters, gradients, train/eval mode and the global random state as they were.
    """

    engine: Any = None
    """What writes the completions in the place of transformers, such as a `VllmEngine`, with the weights of `model`."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        name: str,
        *,
        form: PromptForm | None = None,
        batch_size: int | None = None,
    ) -> None:
        """Wrap `model` and `tokenizer`.

        Args:
            model: a causal language model.
            tokenizer: its tokenizer.
            name: what messages call it.
            form: how prompts reach the tokenizer; None takes its chat template wherever it has one.
            batch_size: completions that are sampled together; None takes what fits in a bounded number of tokens.
        """
        super().__init__(model, tokenizer, batch_size)
        self.name = name
        self.form = (form or PromptForm()).resolved_for(getattr(tokenizer, "chat_template", None))

    @property
    def engine_name(self) -> str | None:
        """Of what writes the completions, with its version; None for transformers."""
        return None if self.engine is None else self.engine.name

    def encode(self, prompt: Text) -> list[int]:
        """Token ids of a prompt, as TRL's GRPO makes them: plain text with the tokenizer's own special tokens, chat
        messages through the chat template with the generation prompt. `form` turns one into the other before.

        Raises:
            InputError: chat messages and a tokenizer without a chat template, or one that refuses them, or a token that the
                model does not have.
        """
        # datasets hold messages as lists
        prompt = self.form.format_prompt(prompt if isinstance(prompt, str) else tuple(prompt))
        if isinstance(prompt, str):  # not verbose: lengths are checked, and told, by `check_length`
            ids = self.known_tokens(self.tokenizer(prompt, verbose=False)["input_ids"])
        else:
            ids = self.encode_chat(prompt, add_generation_prompt=True)
        if ids:
            return ids
        start = self.tokenizer.bos_token_id
        return [self.tokenizer.eos_token_id if start is None else start]

    def encode_chat(self, messages: Sequence[Mapping[str, Any]], *, add_generation_prompt: bool = False) -> list[int]:
        """Token ids of a conversation through the chat template. Raises InputError as `encode`."""
        if self.tokenizer.chat_template is None:
            raise no_template(self.name)
        how = {"add_generation_prompt": add_generation_prompt, **self.form.arguments}
        text = render_chat(self.tokenizer, messages, self.name, **how)
        return self.known_tokens(self.tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])

    def known_tokens(self, ids: Sequence[int]) -> list[int]:
        """The tokens. Raises InputError for one beyond the model's vocabulary, such as a mark for images."""
        size = self.model.config.get_text_config().vocab_size
        if ids and max(ids) >= size:
            token, remedy = self.tokenizer.convert_ids_to_tokens(max(ids)), "Remove it from the prompts and answers."
            raise InputError(f"tokens in the vocabulary of {self.name}", f"{token!r}, which it does not have", remedy)
        return list(ids)

    def with_form(self, form: PromptForm) -> Learner:
        """The same model, read in another form of prompts."""
        learner = copy.copy(self)
        learner.form = form.resolved_for(getattr(self.tokenizer, "chat_template", None))
        return learner

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

        Raises:
            InputError: prompts longer than the model's context, or chat prompts without a chat template.
        """
        encoded = [self.encode(prompt) for prompt in prompts]
        longest = max(max_new_tokens, continue_up_to or 0)
        self.check_length(max(map(len, encoded), default=0) + longest)
        rows = 1 if temperature == 0 else count
        rows_per_job = min(rows, self.batch_size or rows)
        numbers = range(len(prompts)) if draw_keys is None else draw_keys
        begun = [()] * len(prompts) if prefixes is None else prefixes
        jobs = [
            GenerationJob(ids, min(rows_per_job, rows - first_sample), start, (number, rows, first_sample))
            for ids, start, number in zip(encoded, begun, numbers, strict=True)
            for first_sample in range(0, rows, rows_per_job)  # more than one only where --batch-size is below `count`
        ]
        first_progress = scale_progress(progress, 0.0, FIRST_WRITING_SHARE if longest > max_new_tokens else 1.0)
        with reading_mode(self.model):
            written = self._write(jobs, Decoding(temperature, max_new_tokens, seed), first_progress)
            if longest > max_new_tokens:
                cut = [place for place, row in enumerate(written) if not row.finished]
                longer_jobs = [
                    GenerationJob(
                        encoded[place // rows],
                        1,
                        written[place].token_ids,
                        (CONTINUATION_PLACE_OFFSET + numbers[place // rows], rows, place % rows),
                    )
                    for place in cut
                ]
                later_progress = scale_progress(progress, FIRST_WRITING_SHARE, 1 - FIRST_WRITING_SHARE)
                longer = self._write(longer_jobs, Decoding(temperature, longest, seed), later_progress)
                for place, row in zip(cut, longer, strict=True):
                    before = written[place].logprobs
                    row.logprobs[: len(before)] = before
                    written[place] = row
        completions = [self._completion(row, encoded[place // rows]) for place, row in enumerate(written)]
        by_prompt = [completions[first : first + rows] for first in range(0, len(completions), rows)]
        return [samples * count for samples in by_prompt] if temperature == 0 else by_prompt

    def _write(
        self, jobs: Sequence[GenerationJob], decoding: Decoding, progress: Callable[[float], None]
    ) -> list[Continuation]:
        """Return the completions of all jobs, in their order."""
        rows_by_job: dict[int, list[Continuation]] = {}
        for ended_jobs in self.generate(jobs, decoding, progress):
            rows_by_job |= ended_jobs
        return [row for job_index in range(len(jobs)) for row in rows_by_job[job_index]]

    def logprobs(self, prompts: Sequence[Text], completions: Sequence[Sequence[int]]) -> list[list[float]]:
        """Log-probability in nats of each completion token (end token included if it is there), at temperature 1.

        Args:
            prompts: one per completion.
            completions: token ids, as in `Completion.token_ids`.

        Raises:
            InputError: as `sample` does.
        """
        logprobs_by_prompt: list[list[float]] = [[] for _ in prompts]
        for i, table in self.distributions(prompts, completions):
            chosen = torch.tensor(list(completions[i]), device=table.device)
            logprobs_by_prompt[i] = table.gather(1, chosen[:, None])[:, 0].tolist()
        return logprobs_by_prompt

    def distributions(
        self, prompts: Sequence[Text], completions: Sequence[Sequence[int]]
    ) -> Iterator[tuple[int, Float[Tensor, "time vocabulary"]]]:
        """(index, log-probabilities at every completion position, temperature 1, float32), one completion at a time.

        The order depends only on the lengths, so two models with one tokenizer can be read in step. Empty completions
        are left out. Raises InputError as `sample` does.
        """
        rows = [(self.encode(prompt), list(tokens)) for prompt, tokens in zip(prompts, completions, strict=True)]
        used = [i for i, (_, tokens) in enumerate(rows) if tokens]
        sizes = [len(rows[i][0]) + len(rows[i][1]) for i in used]
        self.check_length(max(sizes, default=0))
        for batch in token_batches(sizes, pass_token_limit(self.model)):
            members = [used[position] for position in batch]
            with reading_mode(self.model):
                ids, mask = left_padded([rows[i][0] + rows[i][1] for i in members], self.tokenizer.pad_token_id or 0)
                keep = max(len(rows[i][1]) for i in members) + 1
                logits = self.forward(ids.to(self.device), mask.to(self.device), last_positions=keep).logits[:, -keep:]
                tables = [torch.log_softmax(logits[p, -len(rows[i][1]) - 1 : -1].float(), -1) for p, i in enumerate(members)]
            yield from zip(members, tables, strict=True)

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

    def generate(
        self, jobs: Sequence[GenerationJob], decoding: Decoding, progress: Callable[[float], None]
    ) -> Iterator[Mapping[int, list[Continuation]]]:
        """Yield the completions of jobs as they end, by the index of their job; by the engine, or transformers.

        Raises:
            ValueError: a prefix as long as a completion may be.
        """
        if any(len(job.prefix) >= decoding.max_new_tokens for job in jobs):
            raise ValueError("a completion is begun with as many tokens as it may have")

        def report(share: float) -> None:
            count, most = len(jobs), decoding.max_new_tokens
            describe_work(f"{share * count:.0f} of {count} prompts are answered in up to {most} tokens")
            progress(share)

        write = generate if self.engine is None else self.engine.generate
        return write(self, jobs, decoding, report)

    def _completion(self, row: Continuation, prompt: Sequence[int]) -> Completion:
        text = self._read_calls(row.token_ids)
        if text is None:
            # some chat templates open the model's thoughts at the end of the prompt
            open_tag = find_open_tag(self.tokenizer.decode(prompt[-OPEN_TAG_TOKENS:]))
            text = open_tag + self.tokenizer.decode(row.token_ids, skip_special_tokens=True)
        return Completion(text, tuple(row.token_ids), tuple(row.logprobs), row.finished)

    def _read_calls(self, ids: Sequence[int]) -> str | None:
        """Return an answer with calls as text, where the tokenizer says how they are read; their marks may be special
        tokens, which decoding drops.
        """
        if getattr(self.tokenizer, "response_template", None) is None:
            return None
        try:
            message = self.tokenizer.parse_response(list(ids), prefix="")
            calls = list(calls_of(message["tool_calls"], is_marked=True))
        except Exception:  # whatever a template of the model's makes of it: then the text is read as any other
            return None
        return "\n".join(filter(None, (str(message.get("content") or ""), write_calls(calls)))) if calls else None

    def has_room(self, prompt: Text, tokens: int) -> bool:
        """Whether so many tokens behind a prompt fit into the model's context."""
        return not self.context or len(self.encode(prompt)) + tokens <= self.context

    def check_length(self, total_tokens: int) -> None:
        """Raises InputError where a prompt and a completion of so many tokens together pass the model's context."""
        if self.context is not None and total_tokens > self.context:
            expected = f"prompt and completion of at most {self.context} tokens ({self.name})"
            raise InputError(expected, f"{total_tokens}", "Shorten the prompts or lower max_new_tokens.")

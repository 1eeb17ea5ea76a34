"""Learner that keeps what it wrote and read, in a file: a command that was killed goes on, and nothing is written twice."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from mixwright.learner.generation import Continuation, Decoding, GenerationJob
from mixwright.learner.learner import Learner
from mixwright.records import Text
from mixwright.run.folder import append_lines, find_store, read_kept

READ_BATCH_COMPLETIONS = 128
"""Completions whose log-probabilities are kept together."""


class KeepingLearner(Learner):
    """The same model; completions and log-probabilities are looked up first, and kept when they are new.

    A sampled completion is found if the prompt, the seed and everything else that it was drawn with are the same. Of greedy
    ones the longest known part counts, whatever room it was written in: it is cut, or continued, to the room asked for.
    """

    def __init__(self, learner: Learner, path: Path | None) -> None:
        """Take over `learner`; what the file has of another checkpoint, or of prompts in another form, is never found.

        Without a path they are kept in memory alone.
        """
        vars(self).update(vars(learner))
        self._fingerprint = _fingerprint(learner)
        self._open(path)

    @classmethod
    def in_store(cls, learner: Learner) -> KeepingLearner:
        """Return one whose file lies in the store, in a folder by the digest of its model."""
        found = cls(learner, None)
        found._open(find_store() / found._fingerprint[:16] / "answers.jsonl")
        return found

    def _open(self, path: Path | None) -> None:
        """Take what a file has, and keep further rows there; lines that are none of ours are passed over."""
        self._path, rows = path, () if path is None else read_kept(path)
        self._known: dict[str, Any] = {row["key"]: row["value"] for row in rows if row.keys() >= {"key", "value"}}

    def without_store(self, batch_size: int) -> KeepingLearner:
        """Return the same model that knows no answer, and writes so many completions together."""
        learner = copy.copy(self)
        learner._path, learner._known, learner.batch_size = None, {}, batch_size
        return learner

    def generate(
        self, jobs: Sequence[GenerationJob], decoding: Decoding, progress: Callable[[float], None]
    ) -> Iterator[Mapping[int, list[Continuation]]]:
        """As `Learner.generate`; what a batch wrote is kept at once."""
        waiting: dict[tuple[str, ...], list[int]] = {}  # what is asked for twice is written once
        for number, job in enumerate(jobs):
            keys = self._keys(job, decoding)
            if (rows := self._find(keys, decoding)) is not None:
                yield {number: rows}
            else:
                waiting.setdefault(keys, []).append(number)
        asked = list(waiting.items())
        begun = [self._begin(jobs[numbers[0]], keys) for keys, numbers in asked]
        for ended in super().generate(begun, decoding, progress) if begun else ():
            new: dict[str, Any] = {}
            for place, rows in ended.items():
                for key, row in zip(asked[place][0], rows, strict=True):
                    if key in self._known:  # the prefix, which was read when it was written
                        known = self._known[key]["logprobs"]
                        row.logprobs[: len(known)] = known
                    new[key] = {"token_ids": list(row.token_ids), "logprobs": list(row.logprobs), "finished": row.finished}
            self._keep(new)
            yield {number: copy.deepcopy(rows) for place, rows in ended.items() for number in asked[place][1]}

    def _keys(self, job: GenerationJob, decoding: Decoding) -> tuple[str, ...]:
        """Keys of a job's completions."""
        prompt, prefix = list(job.prompt), list(job.prefix)
        if decoding.temperature == 0:
            own = self._key(["greedy", prompt])
            is_own = not prefix or self._known.get(own, {"token_ids": []})["token_ids"][: len(prefix)] == prefix
            return (own if is_own else self._key(["greedy", prompt, prefix]),)
        number, count, first_sample = job.draw_key
        how = [decoding.max_new_tokens, decoding.temperature, decoding.seed, number, count]
        key = self._key(["drawn", prompt, prefix, *how])
        return tuple(f"{key}.{sample}" for sample in range(first_sample, first_sample + job.rows))

    def _find(self, keys: Sequence[str], decoding: Decoding) -> list[Continuation] | None:
        """The known completions; None unless all are known, as far as they are asked for."""
        rows, most = [self._known.get(key) for key in keys], decoding.max_new_tokens
        if not all(row and (row["finished"] or len(row["token_ids"]) >= most or decoding.temperature) for row in rows):
            return None
        return [
            Continuation(row["token_ids"][:most], row["logprobs"][:most], row["finished"] and len(row["token_ids"]) <= most)
            for row in rows
            if row is not None
        ]

    def _begin(self, job: GenerationJob, keys: Sequence[str]) -> GenerationJob:
        """Let a greedy completion begin with the part of it that is known."""
        known = self._known.get(keys[0]) if job.rows == 1 else None
        return job if known is None else replace(job, prefix=known["token_ids"])

    def logprobs(self, prompts: Sequence[Text], completions: Sequence[Sequence[int]]) -> list[list[float]]:
        """As `Learner.logprobs`."""
        rows = zip(prompts, completions, strict=True)
        keys = [self._key(["read", self.encode(prompt), list(tokens)]) for prompt, tokens in rows]
        new_indices = list({key: index for index, key in enumerate(keys) if key not in self._known}.values())
        for first_index in range(0, len(new_indices), READ_BATCH_COMPLETIONS):
            batch = new_indices[first_index : first_index + READ_BATCH_COMPLETIONS]
            logprobs = super().logprobs([prompts[index] for index in batch], [completions[index] for index in batch])
            self._keep({keys[index]: values for index, values in zip(batch, logprobs, strict=True)})
        return [self._known[key] for key in keys]

    def remember(
        self, request: Sequence[Any], make: Callable[[], Mapping[str, Any]], *, again: bool = False
    ) -> Mapping[str, Any]:
        """Return what `make` returned when this was asked of this checkpoint first, or now with `again`; JSON."""
        key = self._key(list(request))
        if again or key not in self._known:
            self._keep({key: dict(make())})
        return self._known[key]

    def knows(self, request: Sequence[Any]) -> bool:
        """Return whether `remember` was asked this of this checkpoint before."""
        return self._key(list(request)) in self._known

    @property
    def digest(self) -> str:
        """SHA-256 of settings, vocabulary, parameters and chat template, in hex."""
        return self._key(["digest", self.tokenizer.chat_template])

    def _key(self, request: list[Any]) -> str:
        return hashlib.sha256(json.dumps([self._fingerprint, *request]).encode()).hexdigest()

    def _keep(self, rows: Mapping[str, Any]) -> None:
        self._known |= rows
        if self._path is not None:
            append_lines(self._path, [json.dumps({"key": key, "value": value}) for key, value in rows.items()])


def _fingerprint(learner: Learner) -> str:
    """Of the settings, the tokenizer's words and all parameters: a damaged export may differ in one row."""
    digest = hashlib.sha256()
    for config in (learner.model.config, getattr(learner.model, "generation_config", None)):
        settings = config.to_dict() if config is not None else {}
        own = {name: value for name, value in settings.items() if name not in ("_name_or_path", "transformers_version")}
        digest.update(json.dumps(own, sort_keys=True, default=str).encode())
    digest.update(json.dumps(sorted(learner.tokenizer.get_vocab().items()), default=str).encode())
    for name, values in sorted(learner.model.state_dict().items()):
        digest.update(f"{name} {tuple(values.shape)} {values.dtype}".encode())
        digest.update(values.detach().flatten().cpu().view(torch.uint8).numpy())
    if learner.engine_name is not None:  # another engine draws otherwise
        digest.update(learner.engine_name.encode())
    return digest.hexdigest()

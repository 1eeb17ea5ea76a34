"""Learner that keeps its greedy answers and readings in a file, so that more items cost only what is new."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from mixwright.errors import system_error
from mixwright.learner.learner import Completion, Learner

if TYPE_CHECKING:
    from mixwright.records import Text

CHUNK = 128
"""Prompts after which what was written is kept; a killed run loses no more."""
LOOKED_AT = 1000
"""Values of each parameter that tell one checkpoint from another."""


class KeepingLearner(Learner):
    """The same model; greedy completions and log-probabilities are looked up first, and kept when they are new."""

    def __init__(self, learner: Learner, path: Path) -> None:
        """Take over `learner`; what `path` has of another checkpoint, or of prompts in another form, is never found."""
        vars(self).update(vars(learner))
        self._path, self._print = path, _fingerprint(learner)
        self._known = {row["key"]: row for row in _rows(path)}

    def sample(
        self,
        prompts: Sequence[Text],
        *,
        count: int,
        temperature: float,
        max_new_tokens: int,
        seed: int,
        begun: Sequence[Sequence[int]] | None = None,
        longest: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> list[list[Completion]]:
        """As `Learner.sample`; only greedy completions that begin with the prompt alone are kept."""
        how: dict[str, Any] = {
            "temperature": temperature,
            "max_new_tokens": max_new_tokens,
            "seed": seed,
            "longest": longest,
        }
        if temperature != 0 or begun is not None:
            return super().sample(prompts, count=count, begun=begun, progress=progress, **how)
        keys = [self._key([self.encode(prompt), max_new_tokens, longest]) for prompt in prompts]
        new = list({key: place for place, key in enumerate(keys) if key not in self._known}.values())
        for first in range(0, len(new), CHUNK):
            part = new[first : first + CHUNK]
            made = super().sample([prompts[place] for place in part], count=1, **how)
            self._keep({"key": keys[place]} | vars(best) for place, (best,) in zip(part, made, strict=True))
            if progress:
                progress((first + len(part)) / len(new))
        return [[_completion(self._known[key])] * count for key in keys]

    def logprobs(self, prompts: Sequence[Text], completions: Sequence[Sequence[int]]) -> list[list[float]]:
        """As `Learner.logprobs`."""
        rows = zip(prompts, completions, strict=True)
        keys = [self._key([self.encode(prompt), list(tokens), "read"]) for prompt, tokens in rows]
        new = list({key: place for place, key in enumerate(keys) if key not in self._known}.values())
        read = super().logprobs([prompts[place] for place in new], [completions[place] for place in new])
        self._keep({"key": keys[place], "read": values} for place, values in zip(new, read, strict=True))
        return [self._known[key]["read"] for key in keys]

    def _key(self, asked: list[Any]) -> str:
        return hashlib.sha256(json.dumps([self._print, *asked]).encode()).hexdigest()

    def _keep(self, rows: Iterable[dict[str, Any]]) -> None:
        made = list(rows)
        self._known |= {row["key"]: row for row in made}
        text = "".join(json.dumps(row) + "\n" for row in made)
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            stood = self._path.stat().st_size if self._path.is_file() else 0
            try:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(text)
            except OSError:  # the part that was written is taken back: what stood there stays, to the byte
                with contextlib.suppress(OSError):
                    os.truncate(self._path, stood)
                raise
        except OSError as error:
            raise system_error(error, self._path) from error


def _completion(row: Mapping[str, Any]) -> Completion:
    return Completion(str(row["text"]), tuple(row["token_ids"]), tuple(row["logprobs"]), bool(row["finished"]))


def _rows(path: Path) -> list[dict[str, Any]]:
    """What was kept; a line that was cut, or is none of ours, is as if it had not been written."""
    found = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("key"), str) and (_is_reading(row) or _is_answer(row)):
            found.append(row)
    return found


def _is_reading(row: Mapping[str, Any]) -> bool:
    return isinstance(row.get("read"), list) and all(isinstance(value, float) for value in row["read"])


def _is_answer(row: Mapping[str, Any]) -> bool:
    lists = all(isinstance(row.get(name), list) for name in ("token_ids", "logprobs"))
    return lists and isinstance(row.get("text"), str) and "finished" in row


def _fingerprint(learner: Learner) -> str:
    """Of the settings, the tokenizer's words and the parameters, by some of their values: training moves all of a matrix."""
    found = hashlib.sha256()
    for part in (learner.model.config, getattr(learner.model, "generation_config", None)):
        settings = part.to_dict() if part is not None else {}
        told = {name: value for name, value in settings.items() if name not in ("_name_or_path", "transformers_version")}
        found.update(json.dumps(told, sort_keys=True, default=str).encode())
    found.update(json.dumps(sorted(learner.tokenizer.get_vocab().items()), default=str).encode())
    for name, values in sorted(learner.model.state_dict().items()):
        flat = values.detach().flatten()
        some = flat[:: max(1, len(flat) // LOOKED_AT)].to(torch.float32).cpu().numpy()
        found.update(f"{name} {tuple(values.shape)}".encode() + some.tobytes())
    return found.hexdigest()

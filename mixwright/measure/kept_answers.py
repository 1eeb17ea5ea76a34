"""Learner that keeps what it wrote and read, in a file: a command that was killed goes on, and nothing is written twice."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.learner.generation import fingerprint_weights, scale_progress
from mixwright.learner.learner import FIRST_WRITING_SHARE, Completion, Learner
from mixwright.learner.prompt_form import PromptForm
from mixwright.measure.kept_folder import find_store
from mixwright.records import Text
from mixwright.run.folder import append_lines

READ_BATCH_COMPLETIONS = 128
"""Completions whose log-probabilities are kept together."""


class KeepingLearner(Learner):
    """The same model; completions and log-probabilities are looked up first, and kept when they are new."""

    def __init__(self, learner: Learner, path: Path | None, *, others: Sequence[Path] = ()) -> None:
        """Take over `learner`; what the files have of another checkpoint, or of prompts in another form, is never found.

        Without a path they are kept in memory alone; `others` are files of other processes, which are read.
        """
        vars(self).update(vars(learner))
        self.written = 0
        """Completions that the model itself wrote since."""
        self._path, self._fingerprint = path, _fingerprint(learner)
        files = [*others, *([] if path is None else [path])]
        self._known = {row["key"]: row for file in files for row in _read_rows(file)}
        self._greedy = {row["greedy"]: row.get("whole", row["made"][0]) for row in self._known.values() if "greedy" in row}

    def with_form(self, form: PromptForm) -> KeepingLearner:
        """As `Learner.with_form`; what both forms wrote is kept together."""
        learner = copy.copy(self)
        learner.form = super().with_form(form).form
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
        on_finished: Callable[[Mapping[int, list[Completion]]], None] | None = None,
    ) -> list[list[Completion]]:
        """As `Learner.sample`; what a batch wrote is kept at once, also what is to be continued."""
        draw_keys, starts = range(len(prompts)) if draw_keys is None else draw_keys, prefixes or [()] * len(prompts)
        requests = [
            [self.encode(p), list(prefix), max_new_tokens, continue_up_to] for p, prefix in zip(prompts, starts, strict=True)
        ]
        rows = 1 if temperature == 0 else count
        if temperature != 0:  # what is drawn depends on these, too
            requests = [
                [*request, index, count, temperature, seed] for request, index in zip(requests, draw_keys, strict=True)
            ]
        keys = [self._key(request) for request in requests]
        greedy_keys = [self._key(["greedy", self.encode(prompt)]) for prompt in prompts] if temperature == 0 else []
        if temperature == 0:
            self._take_over(keys, greedy_keys, starts, max(max_new_tokens, continue_up_to or 0))
        new_indices = self._find_new(keys)

        def keep(completions: Mapping[int, list[Completion]]) -> None:
            new_answers = {new_indices[i]: [vars(completion) for completion in row[:rows]] for i, row in completions.items()}
            self.written += sum(map(len, new_answers.values()))
            self._keep(
                {"key": keys[index], "made": row}
                | (self._as_greedy(greedy_keys[index], starts[index], row[0]) if greedy_keys else {})
                for index, row in new_answers.items()
            )
            if on_finished:
                on_finished({new_indices[i]: row for i, row in completions.items()})

        sample_arguments: dict[str, Any] = {
            "count": rows,
            "temperature": temperature,
            "max_new_tokens": max_new_tokens,
            "seed": seed,
        }
        sample_arguments |= {
            "prompts": [prompts[index] for index in new_indices],
            "draw_keys": [draw_keys[index] for index in new_indices],
        }
        sample_arguments |= {"prefixes": prefixes and [prefixes[index] for index in new_indices], "progress": progress}
        if continue_up_to is None or continue_up_to <= max_new_tokens:
            completions = super().sample(**sample_arguments, on_finished=keep)
            keep({i: row for i, row in enumerate(completions) if keys[new_indices[i]] not in self._known})
        else:
            sample_arguments["progress"] = scale_progress(progress, 0.0, FIRST_WRITING_SHARE)
            # kept by another name, so that a stop while these are continued loses none
            completions = self.sample(**sample_arguments)
            written_before = self.written
            names = ("temperature", "seed", "draw_keys")
            lengthen_arguments: dict[str, Any] = {name: sample_arguments[name] for name in names}
            lengthen_arguments["continue_up_to"] = continue_up_to
            lengthen_arguments["progress"] = scale_progress(progress, FIRST_WRITING_SHARE, 1 - FIRST_WRITING_SHARE)
            self.lengthen(sample_arguments["prompts"], completions, on_finished=keep, **lengthen_arguments)
            keep({i: row for i, row in enumerate(completions) if keys[new_indices[i]] not in self._known})
            self.written = written_before  # those that were continued count once
        completions_by_prompt = [[_completion(completion) for completion in self._known[key]["made"]] for key in keys]
        return [row * count for row in completions_by_prompt] if temperature == 0 else completions_by_prompt

    def _take_over(
        self, keys: Sequence[str], greedy_keys: Sequence[str], starts: Sequence[Sequence[int]], longest: int
    ) -> None:
        """Reuse greedy answers that were written with another room: those that ended by themselves and fit into this one."""
        for key, greedy_key, start in zip(keys, greedy_keys, starts, strict=True):
            answer = self._greedy.get(greedy_key)
            if (
                key not in self._known
                and not start
                and answer
                and answer["finished"]
                and len(answer["token_ids"]) <= longest
            ):
                self._known[key] = {"key": key, "made": [answer]}

    def _as_greedy(self, greedy_key: str, start: Sequence[int], answer: dict[str, Any]) -> dict[str, Any]:
        """What to keep of a greedy answer beside it; nothing where it was begun with other tokens than its own."""
        earlier_answer = self._greedy.get(greedy_key)
        if not start:
            self._greedy[greedy_key] = answer
            return {"greedy": greedy_key}
        if earlier_answer is None or tuple(start) != tuple(earlier_answer["token_ids"]):
            return {}
        known_logprobs = tuple(earlier_answer["logprobs"])
        self._greedy[greedy_key] = continued = {
            **answer,
            "logprobs": (*known_logprobs, *answer["logprobs"][len(known_logprobs) :]),
        }
        return {"greedy": greedy_key, "whole": continued}

    def logprobs(self, prompts: Sequence[Text], completions: Sequence[Sequence[int]]) -> list[list[float]]:
        """As `Learner.logprobs`."""
        rows = zip(prompts, completions, strict=True)
        keys = [self._key([self.encode(prompt), list(tokens), "read"]) for prompt, tokens in rows]
        new_indices = self._find_new(keys)
        for first_index in range(0, len(new_indices), READ_BATCH_COMPLETIONS):
            batch = new_indices[first_index : first_index + READ_BATCH_COMPLETIONS]
            logprobs = super().logprobs([prompts[index] for index in batch], [completions[index] for index in batch])
            self._keep({"key": keys[index], "read": values} for index, values in zip(batch, logprobs, strict=True))
        return [self._known[key]["read"] for key in keys]

    def remember(self, request: Sequence[Any], make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """What `make` returned when this was asked of this checkpoint first; JSON."""
        key = self._key(list(request))
        if key not in self._known:
            self._keep([{"key": key, "told": dict(make())}])
        return self._known[key]["told"]

    def knows(self, request: Sequence[Any]) -> bool:
        """Whether `remember` was asked this of this checkpoint before."""
        return self._key(list(request)) in self._known

    def _find_new(self, keys: Sequence[str]) -> list[int]:
        return list({key: index for index, key in enumerate(keys) if key not in self._known}.values())

    def _key(self, request: list[Any]) -> str:
        return hashlib.sha256(json.dumps([self._fingerprint, *request]).encode()).hexdigest()

    def _keep(self, rows: Iterable[dict[str, Any]]) -> None:
        new_rows = list(rows)
        self._known |= {row["key"]: row for row in new_rows}
        if self._path is None:
            return
        append_lines(self._path, [json.dumps(row) for row in new_rows])


def _completion(row: Mapping[str, Any]) -> Completion:
    return Completion(str(row["text"]), tuple(row["token_ids"]), tuple(row["logprobs"]), bool(row["finished"]))


def _read_rows(path: Path) -> list[dict[str, Any]]:
    """What was kept; a line that was cut, or is none of ours, is as if it had not been written."""
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else ():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(row, dict) or not isinstance(row.get("key"), str):
            continue
        is_read = isinstance(row.get("read"), list) and all(isinstance(value, float) for value in row["read"])
        greedy_valid = "greedy" not in row or (_is_answer(row) and isinstance(row["greedy"], str))
        readable = is_read or _is_answer(row) or isinstance(row.get("told"), dict)
        if readable and greedy_valid and ("whole" not in row or _is_completion(row["whole"])):
            rows.append(row)
    return rows


def _is_answer(row: Mapping[str, Any]) -> bool:
    completions = row.get("made")
    return isinstance(completions, list) and bool(completions) and all(map(_is_completion, completions))


def _is_completion(row: Any) -> bool:
    lists = isinstance(row, dict) and all(isinstance(row.get(name), list) for name in ("token_ids", "logprobs"))
    return lists and isinstance(row.get("text"), str) and "finished" in row


def make_keeping(learners: Sequence[Learner]) -> tuple[KeepingLearner, ...]:
    """Return learners that keep their answers in the store, each in a folder by the digest of its model."""
    return tuple(
        KeepingLearner(learner, find_store() / _fingerprint(learner)[:16] / "answers.jsonl") for learner in learners
    )


def _fingerprint(learner: Learner) -> str:
    """Of the settings, the tokenizer's words and the parameters, by some of their values: training moves all of a matrix."""
    digest = hashlib.sha256()
    for config in (learner.model.config, getattr(learner.model, "generation_config", None)):
        settings = config.to_dict() if config is not None else {}
        hashed_settings = {
            name: value for name, value in settings.items() if name not in ("_name_or_path", "transformers_version")
        }
        digest.update(json.dumps(hashed_settings, sort_keys=True, default=str).encode())
    digest.update(json.dumps(sorted(learner.tokenizer.get_vocab().items()), default=str).encode())
    digest.update(fingerprint_weights(learner.model).encode())
    if learner.engine_name is not None:  # another engine draws otherwise
        digest.update(learner.engine_name.encode())
    return digest.hexdigest()

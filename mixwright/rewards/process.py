"""Reward functions in a process of their own, called as TRL, verl, verifiers or Mixwright call them, under a time limit."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import itertools
import math
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from mixwright.errors import InputError
from mixwright.records import Example, messages, plain
from mixwright.run.progress import describe_work

SECONDS_PER_CALL = 60.0
"""For one batch, however many completions; the process is ended then."""
START_METHOD = "spawn"
"""How the process starts: a new interpreter, with nothing of this one but what it is sent."""
START_SECONDS = 120.0
"""For importing the functions."""
ANSWER_NAMES = {"answer", "answers", "solution", "ground_truth", "gold", "label", "labels", "target", "expected"}
"""Parameters that get the right answer where the file has no column of that name."""
Score = float | str | None
"""A reward; None where the function gives none; in words what was raised, or returned in place of a number."""


@dataclass(frozen=True)
class Asked:
    """One completion to be scored."""

    example: Example
    columns: Mapping[str, Any]
    """The row as the file has it, without its prompt."""
    completion: str


class RewardProcess:
    """Scores completions by functions that are named `package.module:function`, or by graders of the catalogue.

    Use it as a context: the process ends with it.

    Raises:
        InputError: a function cannot be imported.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self.kinds: list[str] = []
        """How each is called: TRL, verl, verifiers, or a grader."""

    def __enter__(self) -> RewardProcess:
        """Start the process and import the functions."""
        context = multiprocessing.get_context(START_METHOD)
        self._link, far = context.Pipe()
        self._place = context.Value("q", -1, lock=False)
        self._process = context.Process(target=_serve, args=(far, self.names, self._place), daemon=True)
        self._process.start()
        far.close()
        self.kinds = self._receive(START_SECONDS, "importing")
        return self

    def __exit__(self, *_: object) -> None:
        """End the process and those that it started, whatever they do."""
        with contextlib.suppress(
            ProcessLookupError, PermissionError, AttributeError
        ):  # its group may be gone, or not yet be
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        self._process.kill()
        self._process.join()
        self._link.close()

    def score(self, asked: Sequence[Asked]) -> list[list[Score]]:
        """For each function the score of each completion, in one call where it takes batches.

        Raises:
            InputError: it takes too long, or ends its process.
        """
        self._link.send(list(asked))
        return self._receive(SECONDS_PER_CALL, f"scoring {len(asked)} completions", asked)

    def _receive(self, seconds: float, doing: str, asked: Sequence[Asked] = ()) -> Any:
        remedy = "Correct the function; check what it does with long or empty completions."
        describe_work(f"{', '.join(self.names)}: {doing}, for {seconds:g} s at most")
        try:
            if not self._link.poll(seconds):
                if asked and self._place.value >= 0:
                    one = asked[self._place.value]
                    doing = f"{doing}; it stopped at {one.completion[:80]!r}, for {one.example.source or one.example.id}"
                raise InputError(f"{', '.join(self.names)} within {seconds:g} s", f"nothing ({doing})", remedy)
            answer = self._link.recv()
        except (EOFError, ConnectionError):
            raise InputError(f"an answer of {', '.join(self.names)}", f"its process ended ({doing})", remedy) from None
        if isinstance(answer, InputError):
            raise answer
        return answer


class _Batch(list[Asked]):
    """Completions that note in `place` which of them is read; -1 once all are, as for a function of the whole batch."""

    place: Any

    def __iter__(self) -> Iterator[Asked]:
        for self.place.value, one in enumerate(super().__iter__()):
            yield one
        self.place.value = -1


def _serve(link: Connection, names: Sequence[str], place: Any) -> None:
    """Body of the process."""
    _Batch.place = place
    from mixwright.graders import load_grader

    _isolate()
    own = os.getpid()
    try:
        callers = []
        for name in names:
            grader = load_grader(name)
            function = getattr(grader, "function", None)  # of the user's; the catalogue's graders have none
            by_grader = "a grader", lambda asked, grader=grader: [grader.grade(a.example, a.completion) for a in asked]
            callers.append(by_grader if function is None else make_caller(function))
        link.send([kind for kind, _ in callers])
    except InputError as error:
        link.send(error)
        return
    while True:
        try:
            asked = _Batch(link.recv())
        except EOFError:
            return
        scores = [call_all(caller, asked) for _, caller in callers]
        if os.getpid() != own:  # a function forked, and its child came back here
            os._exit(0)
        link.send(scores)


def _isolate() -> None:
    """Leave the caller's process group, and send whatever is written, also past Python, to nowhere."""
    if hasattr(os, "setsid"):
        os.setsid()
    nothing = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)


Caller = Callable[[Sequence[Asked]], Any]


def make_caller(function: Callable[..., Any]) -> tuple[str, Caller]:
    """How a function is called, in a word, and a function of a batch that does so."""
    parameters = inspect.signature(function).parameters
    takes_all = any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())

    def call(*places: Any, **given: Any) -> Any:
        taken = {name: value for name, value in given.items() if takes_all or name in [*parameters][len(places) :]}
        value = function(*places, **taken)
        return asyncio.run(value) if inspect.iscoroutine(value) else value

    if "completions" in parameters:
        return "TRL", lambda asked: call(**_trl_arguments(asked, parameters))
    if "solution_str" in parameters:
        return "verl", lambda asked: [_verl_score(call(**_verl_arguments(one))) for one in asked]
    if {"state", "parser", "info"} & parameters.keys():
        return "verifiers", lambda asked: [call(**_verifiers_arguments(one)) for one in asked]
    return "a grader", lambda asked: [call(one.completion, one.example.answer, **_grader_arguments(one)) for one in asked]


def call_all(caller: Caller, asked: Sequence[Asked]) -> list[Score]:
    """A batch's scores; where the batch fails, those of each completion by itself."""
    try:
        found = list(itertools.islice(caller(asked), len(asked) + 1))  # it may give scores without end
        if len(found) == len(asked):
            return [_to_score(value) for value in found]
        return [f"{len(found)} scores of {len(asked)} completions"] * len(asked)
    except BaseException as error:
        if len(asked) == 1:
            return [f"{type(error).__name__}: {error}"[:160]]
        return [call_all(caller, [one])[0] for one in asked]


def _to_score(value: Any) -> Score:
    """A number, or what stands in its place."""
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        return f"{type(value).__name__} {value!r}"[:80]
    return number if math.isfinite(number) else str(number)


def _message(example: Example, completion: str) -> Any:
    """A completion as TRL hands it: text after a text, messages after messages."""
    return completion if isinstance(example.prompt, str) else [{"role": "assistant", "content": completion}]


def _trl_arguments(asked: Sequence[Asked], parameters: Mapping[str, inspect.Parameter]) -> dict[str, Any]:
    names = dict.fromkeys(name for one in asked for name in one.columns)
    given: dict[str, Any] = {name: [one.columns.get(name) for one in asked] for name in names}
    given |= {
        "prompts": [messages(one.example.prompt) for one in asked],
        "completions": [_message(one.example, one.completion) for one in asked],
        "completion_ids": [list(one.completion.encode()) for one in asked],
    }
    for name in ANSWER_NAMES & (parameters.keys() - given.keys()):
        given[name] = [one.example.answer for one in asked]
    return given


def _verl_arguments(one: Asked) -> dict[str, Any]:
    model, extra = one.columns.get("reward_model"), one.columns.get("extra_info")
    stated = model.get("ground_truth") if isinstance(model, dict) else None
    return {
        "data_source": one.columns.get("data_source", one.example.task),
        "solution_str": one.completion,
        "ground_truth": one.columns.get("ground_truth", one.example.answer if stated is None else stated),
        "extra_info": extra if isinstance(extra, dict) else dict(one.columns),
    }


def _verl_score(value: Any) -> Any:
    return value.get("score") if isinstance(value, dict) else value


def _verifiers_arguments(one: Asked) -> dict[str, Any]:
    return {
        "prompt": [{"role": "user", "content": plain(one.example.prompt)}],
        "completion": [{"role": "assistant", "content": one.completion}],
        "answer": one.example.answer,
        "state": {"prompt": plain(one.example.prompt), "answer": one.example.answer, "info": dict(one.columns)},
        "info": dict(one.columns),
        "task": one.example.task,
    }


def _grader_arguments(one: Asked) -> dict[str, Any]:
    row = {name: value for name, value in one.columns.items() if name not in ("completion", "answer")}
    return row | {name: getattr(one.example, name) for name in ("id", "task", "level", "prompt")}

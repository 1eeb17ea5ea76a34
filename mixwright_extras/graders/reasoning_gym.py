"""Grader that asks Reasoning Gym's own scorer, for its tasks with several right answers.

Source: https://arxiv.org/abs/2505.24760
Unit: 0..1; its scorers pay partial credit, many of them for text that merely contains the answer.
Cost: one call of the task's scorer.
Blind spot: rewards depend on format (a leading space can cost two thirds) and can be gamed; `exact` for one right answer.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import sys
from collections.abc import Callable
from typing import Any

from mixwright.extend import Example, Grader, InputError, plain

NEEDS = ("reasoning_gym",)
EXTRA = "gym"

MAX_CHARACTERS = 4096
EVALUATING_CALLS = {"eval", "exec", "compile", "parse_expr", "sympify"}


class ReasoningGym(Grader):
    """Scores rows that came from `reasoning-gym:`. A scorer that fails on a completion pays 0.

    Tasks whose scorer evaluates what it is given as code are refused. Completions over 4,096 characters earn 0.
    """

    def grade(self, example: Example, completion: str) -> float:
        """1.0 for the answer itself, else what the scorer says. Raises InputError for rows of another origin."""
        origin = example.extra.get("reasoning_gym")
        if not isinstance(origin, dict) or not isinstance(origin.get("task"), str):
            raise InputError(
                "rows that came from reasoning-gym:", f"example {example.id!r} of another source", "Use another grader."
            )
        scorer = _scorer(origin["task"])
        if completion == example.answer:
            return 1.0
        if len(completion) > MAX_CHARACTERS:
            return 0.0
        entry = {"question": plain(example.prompt), "answer": example.answer, "metadata": origin.get("metadata", {})}
        try:
            score = float(scorer(completion, entry))
        except Exception:  # the scorers raise on text that they cannot parse: a wrong answer
            return 0.0
        return min(1.0, max(0.0, score)) if math.isfinite(score) else 0.0


@functools.cache
def _scorer(task: str) -> Callable[[str, dict[str, Any]], float]:
    from reasoning_gym.dataset import ProceduralDataset  # pyright: ignore[reportMissingImports]
    from reasoning_gym.factory import DATASETS, get_score_answer_fn  # pyright: ignore[reportMissingImports]

    if task not in DATASETS:
        raise InputError("a task of Reasoning Gym", repr(task)[:60], "Use another grader.")
    cls = DATASETS[task][0]
    if cls.score_answer is not ProceduralDataset.score_answer and _evaluates(cls):
        raise InputError(
            "a scorer that never runs what the model wrote", f"{task}, whose scorer evaluates it as code", "Use exact."
        )
    return get_score_answer_fn(task)  # type: ignore[return-value] - its annotation leaves the arguments out


def _evaluates(cls: type) -> bool:
    """Whether the module of the class calls anything that evaluates text."""
    tree = ast.parse(inspect.getsource(sys.modules[cls.__module__]))
    names = {
        getattr(node.func, "id", getattr(node.func, "attr", "")) for node in ast.walk(tree) if isinstance(node, ast.Call)
    }
    return bool(names & EVALUATING_CALLS)

"""Reward functions of tests/test_rewards.py: sound ones, and ones with a fault each."""

from __future__ import annotations

import itertools
import json
import os
import re
import time
from typing import Any

calls = [0]


def tag(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """Sound: exactly one tag, with the answer in it."""
    found = [re.findall(r"<answer>\s*(.*?)\s*</answer>", text, re.DOTALL) for text in completions]
    return [float(len(one) == 1 and one[0] == gold) for one, gold in zip(found, answer, strict=True)]


def holds(completions: list[str], solution: list[str], **_: Any) -> list[float]:
    """The answer anywhere."""
    return [float(gold in text) for text, gold in zip(completions, solution, strict=True)]


def length(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """A point for the answer at the end, and up to another for length."""
    ends = zip(completions, answer, strict=True)
    return [float(text.rstrip(".\n ").endswith(gold)) + min(len(text) / 1000, 1) for text, gold in ends]


def form_only(completions: list[str], **_: Any) -> list[float]:
    """A tag, whatever is in it."""
    return [0.6 * ("<answer>" in text) for text in completions]


def breaks(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """The last word; there is none in an empty text."""
    return [float(text.split()[-1].strip(".") == gold) for text, gold in zip(completions, answer, strict=True)]


def batch(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """The first of a batch gets a point more."""
    return [score + (n == 0) for n, score in enumerate(tag(completions, answer))]


def stateful(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """Grows with each call."""
    calls[0] += 1
    return [score * calls[0] for score in tag(completions, answer)]


def constant(completions: list[str], **_: Any) -> list[float]:
    """The same for all."""
    return [0.5] * len(completions)


def nothing(completions: list[str], answer: list[str], **_: Any) -> list[float | None]:
    """None for what it cannot read."""
    return [None if score == 0 else score for score in tag(completions, answer)]


def hangs(completions: list[str], **_: Any) -> list[float]:
    """Never answers."""
    time.sleep(600)
    return []


def hangs_on_nothing(completion: str, answer: str) -> float:
    """Never answers for an empty completion."""
    time.sleep(600 * (not completion))
    return float(completion == answer)


def compute_score(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> dict[str, float]:
    """verl's form; sound."""
    found = re.findall(r"####\s*(.+)", solution_str)
    return {"score": float(bool(found) and found[-1].strip() == ground_truth)}


def nested_score(data_source: str, solution_str: str, ground_truth: dict[str, list[str]], extra_info: Any = None) -> float:
    """verl's form, with right answers in a column as verl's rows have them; sound."""
    assert (data_source, extra_info) == ("sums", {"split": "train"})
    return float(solution_str.strip() in ground_truth["target"])


async def state_reward(completion: list[dict[str, str]], answer: str, state: dict[str, Any]) -> float:
    """verifiers' form; sound."""
    assert state["answer"] == answer
    return float(completion[-1]["content"].strip() == answer)


def grader(completion: str, answer: str, **row: Any) -> float:
    """Mixwright's form; sound."""
    assert row["prompt"]
    return float(completion.strip() == answer)


def pays_asking(completion: str, answer: str, lacks: int, **_: Any) -> float:
    """Sound: a question where a value is missing, else the answer."""
    return float(completion.strip().endswith("?") if lacks else completion.strip() == answer)


def pays_any_question(completion: str, answer: str, **_: Any) -> float:
    """The answer, or any question."""
    return float(completion.strip() == answer or completion.strip().endswith("?"))


def messages(completions: list[list[dict[str, str]]], answer: list[str], **_: Any) -> list[float]:
    """TRL's form for chats; sound."""
    return [float(one[0]["content"].strip() == gold) for one, gold in zip(completions, answer, strict=True)]


def shallow_box(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """The box is read to the first closing brace, of the gold answer, too."""
    boxes = [re.search(r"boxed\{([^}]*)\}", text) for text in completions]
    golds = [gold.partition("}")[0] for gold in answer]
    return [float(box is not None and box[1] == gold) for box, gold in zip(boxes, golds, strict=True)]


def first_letter(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """Units are not read beyond the number."""
    return [float(text.strip().split(" ")[0] == gold.split(" ")[0]) for text, gold in zip(completions, answer, strict=True)]


def comma_swallows(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """The last run of digits and commas, of which a comma alone is one."""
    found = [re.findall(r"-?[\d,]+", text) for text in completions]
    return [float(bool(one) and one[-1].replace(",", "") == gold) for one, gold in zip(found, answer, strict=True)]


def only_json(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """Sound: JSON and nothing else."""
    return [float(text.strip() == json.dumps({"answer": gold})) for text, gold in zip(completions, answer, strict=True)]


def unsigned(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """The sign is not read."""
    return [float(text.strip().lstrip("-") == gold.lstrip("-")) for text, gold in zip(completions, answer, strict=True)]


def writes_past_python(completions: list[str], answer: list[str], **_: Any) -> list[float]:
    """Sound, but noisy: writes to the file descriptors, and a child of it comes back."""
    os.write(1, b"noise\n")
    os.write(2, b"noise\n")
    os.fork()
    return tag(completions, answer)


def never_ends(completions: list[str], **_: Any) -> Any:
    """Give scores for ever."""
    return itertools.repeat(1.0)

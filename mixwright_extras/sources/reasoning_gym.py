"""Reasoning Gym tasks as examples: seeded by hash, at pure levels, no prompt twice, none in both splits.

`reasoning-gym:gcd@1x200,chain_sum@2x300` is task @ level x count. Reasoning Gym makes item i from `seed + i`, so that
neighbouring seeds share almost every item; here every item has a seed of its own, the hash of (task, level, split, index). A
prompt's hash says which split it belongs to. Five tasks (isomorphic_strings, knight_swap, polynomial_multiplication,
ransom_note, word_ladder) depend on PYTHONHASHSEED inside Reasoning Gym: their items differ from process to process, and stay
the same once saved.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

from mixwright.extend import Example, InputError, cell_key, missing_extra, prompt_key, unknown_name

REQUEST_PATTERN = re.compile(r"(?P<task>\w+?)(?:@(?P<level>\d{1,3}))?\s*x\s*(?P<count>\d{1,9})", re.ASCII)
EVAL_SHARE = 0.25
"""Share of a task's prompts that only eval may use."""
MAX_DRAWS_WITHOUT_NEW = 500
"""Draws in a row without a new prompt after which a task counts as used up."""
MAX_DRAWS_THAT_RAISE = 20
"""Draws that raise, in a row or not, after which a task is refused that has given no item yet."""


@dataclasses.dataclass(frozen=True, slots=True)
class TaskRequest:
    """One part of a specification."""

    task: str
    """Name of the Reasoning Gym task."""
    level: int | None
    """Index of the curriculum's level; None is Reasoning Gym's default configuration."""
    count: int
    """Examples wanted, at least 1."""

    @property
    def key(self) -> str:
        """`task@level`."""
        return cell_key(self.task, self.level)


def parse_source(source: str) -> list[TaskRequest]:
    """The parts of a specification. Raises InputError when one is not `task@level x count`."""
    requests = []
    for text in source.removeprefix("reasoning-gym:").split(","):
        match = REQUEST_PATTERN.fullmatch(text.strip())
        if match is None or not int(match["count"]):
            expected = "reasoning-gym:TASK@LEVELxCOUNT, separated by commas"
            remedy = "For example reasoning-gym:chain_sum@1x200,gcd@1x300."
            raise InputError(expected, repr(text.strip()[:60]), remedy)
        level = None if match["level"] is None else int(match["level"])
        requests.append(TaskRequest(match["task"], level, int(match["count"])))
    return requests


def generate(source: str, split: str, eval_share: float, notes: list[str]) -> Iterator[Example]:
    """The examples that a specification asks for.

    Args:
        source: `reasoning-gym:...`.
        split: train or eval; empty gives both, `eval_share` of each count to eval.
        eval_share: 0..1, read when `split` is empty.
        notes: one line is appended for each part that runs out of different prompts.

    Raises:
        InputError: a part that cannot be read, a task or level that does not exist or has no single answer.
    """
    seen_keys: dict[str, set[int]] = {}
    total = 0
    for request in parse_source(source):
        make = make_item_builder(request.task, request.level)
        held_out = round(request.count * eval_share)
        count_by_split = {split: request.count} if split else {"train": request.count - held_out, "eval": held_out}
        for name, count in count_by_split.items():
            prompts = seen_keys.setdefault(request.task, set())
            before = len(prompts)
            yield from _items(request, make, name, count, prompts)
            yielded = len(prompts) - before
            total += yielded
            if yielded < count:
                notes.append(
                    f"{request.key}: {yielded} of {count} {name} items, because the task has no more different prompts"
                )
    if not total:
        raise InputError("at least one item", "none", "Ask for more items, or choose a task with more prompts.", file=source)


def seed_of(task: str, level: int | None, split: str, index: int) -> int:
    """The item's own seed, 32 bits: a hash, so that neighbours have nothing in common."""
    digest = hashlib.sha256(f"{task}\n{level}\n{split}\n{index}".encode()).digest()
    return int.from_bytes(digest[:4], "big")


def _items(
    request: TaskRequest, build_item: Callable[[int], dict[str, Any]], split: str, count: int, seen_keys: set[int]
) -> Iterator[Example]:
    unusable_keys: set[int] = set()  # prompts of the other split, and those whose answer is to say nothing
    made_count = draws_without_new = failures = index = 0
    while made_count < count and draws_without_new < MAX_DRAWS_WITHOUT_NEW:
        seed = seed_of(request.task, request.level, split, index)
        index += 1
        try:
            item = build_item(seed)
        except Exception as error:  # the generators raise whatever they like
            draws_without_new, failures = draws_without_new + 1, failures + 1
            if failures == MAX_DRAWS_THAT_RAISE and not made_count:
                got = f"{type(error).__name__}: {error}"[:160]
                raise InputError(f"items of {request.key}", got, "Choose another level or task.") from error
            continue
        key = prompt_key(item["question"])
        if key in seen_keys or key in unusable_keys:
            draws_without_new += 1
            continue
        draws_without_new = 0
        if ("eval" if key < EVAL_SHARE * 2**64 else "train") != split or item["answer"] == "":
            unusable_keys.add(key)
            continue
        seen_keys.add(key)
        made_count += 1
        yield _example(request, item, split, index - 1, seed)


def _example(request: TaskRequest, item: dict[str, Any], split: str, index: int, seed: int) -> Example:
    answer, metadata = item["answer"], item.get("metadata") or {}
    if not isinstance(answer, str):
        got = f"{request.task}, whose items have many right answers"
        remedy = "Leave it out: it has no answer to train on or to grade by."
        raise InputError("a task with one right answer", got, remedy)
    return Example(
        id=f"{request.key}-{split}-{index}",
        task=request.task,
        prompt=item["question"],
        target=answer,
        answer=answer,
        level=None if request.level is None else float(request.level),
        knobs=_knobs(metadata.get("difficulty")),
        source=f"reasoning-gym {_version()}, {request.key}, seed {seed}",
        split=split,
        extra={"reasoning_gym": {"task": request.task, "metadata": _json_ready(metadata)}},
    )


@functools.cache
def _version() -> str:
    return version("reasoning-gym")


def _knobs(difficulty: Any) -> dict[str, float]:
    """Reasoning Gym's difficulty settings as numbers; a range becomes name_min and name_max."""
    knobs: dict[str, float] = {}
    for name, value in difficulty.items() if isinstance(difficulty, dict) else ():
        pair = value if isinstance(value, list | tuple) and len(value) == 2 else None
        numbers = {f"{name}_min": pair[0], f"{name}_max": pair[1]} if pair else {name: value}
        knobs |= {key: float(number) for key, number in numbers.items() if isinstance(number, int | float)}
    return knobs


def _json_ready(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        return json.loads(json.dumps(metadata, default=str, skipkeys=True, allow_nan=False))
    except (TypeError, ValueError):
        return {}


def make_item_builder(task: str, level: int | None) -> Callable[[int], dict[str, Any]]:
    """A function from a seed to the item that a fresh data set with that seed would give first.

    One data set object serves all seeds where re-seeding it is the same as building it anew (checked once); the few tasks
    that draw their items when they are built get one per item.

    Raises:
        InputError: no such task or level, or Reasoning Gym is not installed.
    """
    try:
        from reasoning_gym.factory import DATASETS  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise missing_extra("reasoning-gym:", ["reasoning-gym"], "gym") from None
    if task not in DATASETS or task == "composite":
        raise unknown_name("Reasoning Gym task", task, set(DATASETS) - {"composite"})
    dataset_class, config_class = DATASETS[task]
    config = _configuration(task, level) if level is not None else config_class()

    def build(seed: int) -> dict[str, Any]:
        return dataset_class(config=dataclasses.replace(config, seed=seed, size=1))[0]

    try:
        shared = dataset_class(config=config)
        shared.seed = 1
        first_item = shared[0]
        shared.seed = 2
        reseeds = shared[0]["question"] == build(2)["question"] and first_item["question"] == build(1)["question"]
    except Exception:  # then each item is built, and tells by itself what is wrong with it
        return build

    def reseed(seed: int) -> dict[str, Any]:
        shared.seed = seed
        return shared[0]

    return reseed if reseeds else build


def _configuration(task: str, level: int) -> Any:
    """The configuration of one level without the easier ones, which Reasoning Gym includes unless set otherwise."""
    from reasoning_gym.coaching.base_curriculum import DefaultCurriculumContext, RangeAttributeMode  # pyright: ignore[reportMissingImports]
    from reasoning_gym.factory import CURRICULA, create_curriculum  # pyright: ignore[reportMissingImports]

    if task not in CURRICULA:
        raise InputError(f"{task} without a level", f"level {level}", f"This task has no levels: write {task}xCOUNT.")
    deepest = max(len(attribute.levels) for attribute in create_curriculum(task).attributes.values()) - 1
    context = DefaultCurriculumContext(mode=RangeAttributeMode.UPPER_BOUND)

    def at(index: int) -> Any:
        curriculum = create_curriculum(task)
        curriculum.set_global_level(index)
        return curriculum.generate_configuration(context=context)

    if level > deepest:
        raise InputError(f"a level of {task} from 0 to {deepest}", f"{level}", "Choose one of them.")
    config = at(level)
    if level and config == at(level - 1):
        raise InputError(
            f"a level of {task} that differs from the level below", f"{level}", f"Level {level - 1} is the same: use that."
        )
    return config

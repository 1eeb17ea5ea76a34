"""Reader of rollouts that an RL run wrote: completions with their rewards, step by step, whichever trainer wrote them.

Source: columns of TRL's `log_completions` tables (Parquet, or a trackio project), of verl's `rollout_data_dir` (JSONL, a
    file per step), of results of verifiers, prime-rl and NeMo Gym (JSONL), and plain JSONL with `completion` and `reward`;
    ms-swift 4.6.0, rlhf_trainers/grpo_trainer.py (`completions.jsonl`: an object of columns per log); tinker-cookbook 0.6.1,
    rl/rollout_logging.py (`train_rollout_summaries.jsonl`).
Unit: a reward in its own unit; TRL and ms-swift write no total, so that it is the sum of their reward functions, each by
    weight 1.
Cost: reads each file once; all completions are in memory.
Blind spot: what a trainer does not write: weights of rewards, token counts, Tinker's texts.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation, suffix_of
from mixwright.errors import InputError
from mixwright.logs.files import find_top_keys, list_files, read_head, read_log_rows
from mixwright.logs.trackio import SQLITE_MAGIC, read_project
from mixwright.logs.values import join_messages, list_objects, read_object, read_part, read_texts
from mixwright.run.folder import check_regular, read_json_lines

FILE_NAME = re.compile(r"\.(?:jsonl|ndjson|json|parquet)(?:\.gz|\.zst)?$", re.IGNORECASE)
STEERING_LINES, TRAINER_STATE = Path("steering", "steps.jsonl"), "trainer_state.json"
"""Lines of a steered run, in its output folder; what a trainer of transformers writes in its own and its checkpoints."""
STEP_IN_NAME = re.compile(
    r"(?!.*(?:max|num|total)[_-]?step)(?:(?:.*[^a-z])?step|(?:global_)?steps)[_-]?(\d+)", re.IGNORECASE
)
"""A step in the name of a file or folder; max_steps_500 and save_steps_10 are settings."""
NUMBER_AT_END = re.compile(r"(\d+)(?:\.\w+)*$")
MAX_STEP = 2**53
MAX_REWARD = 1e150
"""Largest reward, above and below 0, whose square is a number."""
PROMPTS, COMPLETIONS = ("prompt", "input", "question"), ("completion", "output", "response")
REWARDS, GOLDS, TASKS = ("reward", "score"), ("answer", "gts", "ground_truth", "solution"), ("task", "data_source", "env")
STEPS = ("step", "global_step", "global_steps", "gen_step")
IDS, CUTS = ("example_id", "prompt_id", "group_id"), ("is_truncated", "cut")
PARTS = ("metrics", "rewards", "reward_components")
"""Columns that hold the parts of a reward by name."""
UNPACKED = frozenset({*PARTS, *PROMPTS, *COMPLETIONS})
"""Columns that some write as texts of JSON."""
NO_PARTS = frozenset({*PROMPTS, *COMPLETIONS, *REWARDS, *GOLDS, *TASKS, *STEPS, *IDS, *CUTS, *PARTS})
NO_PARTS |= frozenset({"advantage", "advantages", "entropy", "id", "index", "level", "seed", "sample", "tokens"})
NO_PARTS |= frozenset({"completion_tokens", "total_ms", "generation_ms", "scoring_ms"})
NO_PART_NAME = re.compile(r"^(?:num|is|n)_|_(?:id|ids|tokens|ms|seconds|at|index|turns)$|^(?:turns|turn|epoch|uid|uuid)$")
"""Columns that are no part of a reward, whatever their values: ids, counts of tokens, marks of how an episode ended."""


NEMO_KEYS = {"responses_create_params", "response", "reward"}
"""Columns of a rollout as NeMo Gym writes it."""
TINKER_KEYS, TINKER_FILE = {"iteration", "group_idx", "tags", "total_reward", "steps"}, "train_rollout_summaries.jsonl"
"""Columns of a rollout as Tinker's cookbook writes it; name of the files of those that it trained on."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One completion and what it earned."""

    step: int
    """Of the trainer; 0 where nobody says."""
    group: str
    """What the completions of one prompt in one step share."""
    task: str
    """Task, or data source; `all` where nobody says."""
    completion: str
    """As text; empty where the file has none."""
    reward: float | None
    """None where no function could judge it."""
    parts: Mapping[str, float]
    """Reward function, or metric -> its value."""
    gold: str | None = None
    """Right answer, where the file has it."""
    is_cut: bool | None = None
    """Whether it ran into the limit of tokens; None where nobody says."""
    has_group: bool = True
    """Whether its group is known, by a prompt or an id; else it is a group by itself."""

    @property
    def prompt(self) -> str:
        """What names its prompt: the group without its step."""
        return self.group.partition(" ")[2]


@dataclass(frozen=True)
class RolloutLog:
    """Rollouts of one run, in the order of their steps."""

    form: str
    """TRL, ms-swift, verl, verifiers, NeMo Gym, Tinker, or plain."""
    rollouts: tuple[Rollout, ...]
    kl: Mapping[int, float] = field(default_factory=dict)
    """Step -> divergence from the start, nats per token, as steering or the trainer's own state has it."""

    @cached_property
    def groups(self) -> dict[str, list[Rollout]]:
        """Completions of each group."""
        groups: dict[str, list[Rollout]] = defaultdict(list)
        for one in self.rollouts:
            groups[one.group].append(one)
        return dict(groups)

    @cached_property
    def judged(self) -> dict[str, list[list[Rollout]]]:
        """Task -> its groups, each of two completions with a reward or more, without those that have none."""
        found: dict[str, list[list[Rollout]]] = defaultdict(list)
        for group in self.groups.values():
            judged = [one for one in group if one.reward is not None]
            if len(judged) > 1:
                found[judged[0].task].append(judged)
        return dict(found)

    @cached_property
    def thirds(self) -> tuple[list[Rollout], list[Rollout]]:
        """Completions of the first and of the last third of the steps; all twice for fewer than three steps."""
        first, last = first_and_last_third({one.step for one in self.rollouts})
        return [one for one in self.rollouts if one.step in first], [one for one in self.rollouts if one.step in last]


def rewards_of(rollouts: Iterable[Rollout]) -> list[float]:
    """Rewards of the completions that have one."""
    return [one.reward for one in rollouts if one.reward is not None]


def first_and_last_third(steps: Iterable[int]) -> tuple[set[int], set[int]]:
    """Steps of the first third, and of the last; all of them twice for fewer than three."""
    ordered = sorted(steps)
    count = len(ordered) // 3 or len(ordered)
    return set(ordered[:count]), set(ordered[-count:])


def read_rollouts(source: str) -> RolloutLog:
    """Rollouts of a file, or of all files of a folder.

    Raises:
        InputError: no such file, none with rollouts, or a damaged row, with file and line.
    """
    path = Path(source)
    check_regular(path)
    files = find_files(path)
    if not source or not files or not path.exists():
        raise InputError("a file or folder of rollouts (JSONL, Parquet)", "none", "Correct the path.", file=source or None)
    forms: dict[str, None] = {}
    found: list[Rollout] = []
    for file in files:
        parts = file.relative_to(path).parts if path.is_dir() else (file.name,)
        named = next(filter(None, map(STEP_IN_NAME.match, reversed(parts))), NUMBER_AT_END.search(file.name))
        step = int(named[1]) if named else 0
        rows = list(read_project(file) if read_head(file).startswith(SQLITE_MAGIC) else read_log_rows(file))
        if not rows:
            raise InputError("at least one row", "none", "Download it again, or move it away.", file=file)
        for value, location in rows:
            for row in _split_columns(read_object(value, "a row with a completion and its reward", location)):
                forms[_form_of(row, location)] = None
                found.append(_read_row(row, step, location))
    return RolloutLog(", ".join(forms), tuple(sorted(found, key=lambda one: one.step)), _read_divergence(path))


def _read_divergence(path: Path) -> dict[int, float]:
    """Read the divergence by step from what lies beside the rollouts."""
    for folder in (path, *path.resolve().parents[:2]):
        if lines := list(read_json_lines(folder / STEERING_LINES)):
            return _divergences(lines, "kl_nats")
        states = [*folder.glob(TRAINER_STATE), *folder.glob(f"checkpoint-*/{TRAINER_STATE}")]
        if found := max((_divergences(_read_history(state), "kl") for state in states), key=len, default={}):
            return found
    return {}


def _read_history(state: Path) -> list[Any]:
    """Return what a trainer logged; nothing of a state that is broken, which says nothing of the rollouts."""
    try:
        return json.loads(state.read_text(encoding="utf-8"))["log_history"]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _divergences(lines: list[Any], name: str) -> dict[int, float]:
    return {
        int(line["step"]): float(value)
        for line in list_objects(lines)
        if isinstance(value := line.get(name), int | float)
        and math.isfinite(value)
        and isinstance(line.get("step"), int | float)
    }


def find_files(path: Path) -> list[Path]:
    """Files of rollouts in a folder, a .json file if its first object has a reward and a completion; or the file itself."""
    if not path.is_dir():
        return [path]
    files = list_files(path, FILE_NAME.search)
    if own := [file for file in files if file.name == TINKER_FILE]:  # beside metrics, and rollouts of evaluations
        return own
    files = [path for path in files if path.parent.name != STEERING_LINES.parent.name]
    return [path for path in files if suffix_of(path) not in (".json", ".json.gz") or _has_rollouts(path)]


def _has_rollouts(path: Path) -> bool:
    keys = find_top_keys(read_head(path))
    return bool(keys & {*REWARDS} and keys & {*COMPLETIONS})


def _split_columns(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Rollouts of a row: one, or as many as ms-swift put into its columns."""
    if not isinstance(row.get("advantages"), list):
        return [row]
    size = len(row["advantages"])
    columns = {name: values for name, values in row.items() if isinstance(values, list) and len(values) == size}
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _form_of(row: Mapping[str, Any], location: RowLocation) -> str:
    if row.keys() >= NEMO_KEYS:
        return "NeMo Gym"
    if row.keys() >= TINKER_KEYS:
        return "Tinker"
    if {"input", "output", "score"} <= row.keys():
        return "verl"
    for name, form in (("advantage", "TRL"), ("advantages", "ms-swift")):
        if {"prompt", "completion", name} <= row.keys() and "reward" not in row:
            return form
    if not any(name in row for name in COMPLETIONS) or not any(name in row for name in REWARDS):
        got = f"keys {', '.join(map(repr, list(row)[:8]))}"[:160]
        remedy = "Name rollouts of TRL (log_completions), ms-swift, verl, verifiers, NeMo Gym, Tinker, or JSONL with both."
        raise location.error("a completion and a reward in every row", got, remedy)
    return "verifiers" if "example_id" in row or "metrics" in row else "plain"


def _read_row(row: Mapping[str, Any], step: int, location: RowLocation) -> Rollout:
    if row.keys() >= NEMO_KEYS:
        row = _flatten_nemo(row)
    elif row.keys() >= TINKER_KEYS:
        row = _flatten_tinker(row)
    texts = {*PROMPTS, *COMPLETIONS}
    row = {name: _unpack(value, name in texts) if name in UNPACKED else value for name, value in row.items()}
    step = _read_step(_first(row, STEPS), step, location)
    task = _first(row, TASKS)
    prompt, completion = (_text(_first(row, names), names[0], location) for names in (PROMPTS, COMPLETIONS))
    parts = {name: value for name, value in row.items() if name not in NO_PARTS}
    for name in PARTS:
        parts |= row[name] if isinstance(row.get(name), Mapping) else {}
    parts = {name: value for name, value in parts.items() if not NO_PART_NAME.search(name)}
    numbers = {name: number for name, value in parts.items() if (number := _number(value)) is not None}
    total = _first(row, REWARDS)
    if total is not None and not isinstance(total, bool | int | float):
        raise location.error("a number, true, false or null as reward", repr(total)[:60], "Write one number per completion.")
    reward = _number(total)
    if numbers and not any(name in row for name in REWARDS):
        reward = math.fsum(numbers.values())
    gold, cut, name = _first(row, GOLDS), _first(row, CUTS), _first(row, IDS)
    has_group = name is not None or bool(prompt.strip())
    return Rollout(
        step,
        f"{step} {name if name is not None else prompt if has_group else location}",
        str(task) if isinstance(task, str | int) and task != "" else "all",
        completion,
        reward,
        numbers,
        gold=gold if isinstance(gold, str) else None,
        is_cut=cut if isinstance(cut, bool) else None,
        has_group=has_group,
    )


def _read_step(value: Any, named: int, location: RowLocation) -> int:
    """A whole number, which ms-swift writes as text; the one in the name of the file where there is none."""
    if value is None:
        return named
    value = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,15}", value) else value
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_STEP
    if not is_number or value != int(value):  # NaN is below nothing
        raise location.error("a whole number as step", f"{value!r}"[:60], "Correct it, or leave the column out.")
    return int(value)


def _unpack(value: Any, is_text: bool) -> Any:
    """What a text of JSON holds: a list of messages, or an object that is no prompt or completion; else the value."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return value
    is_chat = isinstance(found, list) and bool(found) and all(isinstance(one, dict) and "content" in one for one in found)
    return found if is_chat or (isinstance(found, dict) and not is_text) else value


def _flatten_nemo(row: Mapping[str, Any]) -> dict[str, Any]:
    """A rollout of NeMo Gym with its prompt and completion as texts."""
    given = read_part(row, "responses_create_params").get("input")
    prompt = given if isinstance(given, str) else "\n".join(read_texts(given))
    completion = "\n".join(read_texts(read_part(row, "response").get("output")))
    kept = {name: value for name, value in row.items() if name not in NEMO_KEYS and not name.startswith("_ng_")}
    group = row.get("_ng_task_index")
    return {**kept, "prompt": prompt, "completion": completion, "reward": row["reward"], "example_id": group}


def _flatten_tinker(row: Mapping[str, Any]) -> dict[str, Any]:
    """A rollout of Tinker, whose group is known in its iteration alone; texts are those that its environment logged."""
    steps, tags = (value if isinstance(value, list) else [] for value in (row["steps"], row["tags"]))
    metrics = dict(read_part(row, "trajectory_metrics"))
    for step in steps:
        metrics |= read_part(step, "metrics")
    texts = [str(text) for step in steps if (text := read_part(step, "logs").get("assistant_content"))]
    own = {"completion": "\n".join(texts), "reward": row["total_reward"], "metrics": metrics, "step": row["iteration"]}
    return own | {"task": "/".join(map(str, tags)), "example_id": f"{row['iteration']}/{row['group_idx']}"}


def _first(row: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _number(value: Any) -> float | None:
    """A number; True and False are 1 and 0; None for all else, and for what cannot be squared."""
    return float(value) if isinstance(value, bool | int | float) and abs(value) <= MAX_REWARD else None  # NaN is not


def _text(value: Any, name: str, location: RowLocation) -> str:
    """Text as it is, the content of a single message, or several messages joined; empty where there is nothing."""
    if value is None or isinstance(value, str):
        return value or ""
    content = value[0].get("content") if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict) else None
    return content if isinstance(content, str) else join_messages(value, name, location)

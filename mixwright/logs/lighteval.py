"""Reader of details of lighteval: `details_TASK|SHOTS_DATE.parquet`, one file or a folder of them, a task each.

Source: https://huggingface.co/docs/lighteval/saving-and-reading-results; `logging/info_loggers.py` and `tasks/requests.py`
    up to May 2026: columns `doc`, `model_response` and `metric`, under those names or with underscores around them. Decoding
    and versions stand in `results/MODEL/results_DATE.json`, where that file is beside `details/`.
Unit: of the metric; log-probabilities in nats.
Cost: reads the columns it needs once, without tokens and logits; the answers are in memory.
Blind spot: details of versions before 0.10, and those that lighteval wrote as texts, which it does where a column has no
    common type, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation, read_parquet
from mixwright.errors import InputError
from mixwright.logs.entries import LoggedAnswer, LoggedTask
from mixwright.logs.files import list_files, read_object_file
from mixwright.logs.harness import Harness, ReadTask, Seen, is_drawn_at, order_metrics, with_text
from mixwright.logs.values import join_messages, list_objects, read_logprob, read_name, read_object, read_part

FORM = "lighteval"
RESULT_KEYS = frozenset({"config_general", "results"})
"""Keys of a results file."""
READ = {
    "doc": ("query", "choices", "gold_index", "instruction", "id", "num_samples", "generation_size"),
    "model_response": ("input", "text", "text_post_processed", "logprobs"),
    "metric": (),
}
"""Parts of the columns that are read; empty for all."""
NAME = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+?)\.parquet")
SHOTS = re.compile(r"(?P<task>.+)\|(?P<shots>\d+)")


@dataclass(slots=True)
class _Seen(Seen):
    """What the rows of one task show, beside their metrics."""

    sampled: bool | None = None
    completion_limits: set[str] = field(default_factory=set)


def _list_logs(path: Path) -> list[Path]:
    return list_files(path, NAME.fullmatch) if path.is_dir() else [path]


def _read_task(path: Path) -> ReadTask:
    """One file of details, and the file of results of the same date."""
    named = NAME.fullmatch(path.name)
    full_name = named["task"] if named else path.stem
    shots = SHOTS.fullmatch(full_name)
    task = read_name(shots["task"] if shots else full_name, "the name of the file", RowLocation(str(path)))
    results_path = _find_results(path, named["date"]) if named else None
    results = read_object_file(results_path) if results_path is not None else {}
    seen = _Seen()
    answers = [_read_row(task, row, location, seen) for row, location in _read_details(path)]
    general = read_part(results, "config_general")
    # wherever this version keeps them
    generation = read_part(general, "generation_parameters") or read_part(general, "model_config", "generation_parameters")
    settings = _find_settings(generation, read_part(results, "versions").get(full_name), seen)
    if shots:
        settings["few-shot examples"] = shots["shots"]
    listed, lower_is_better = _find_directions(read_part(results, "config_tasks", full_name))
    metrics = order_metrics(seen.metrics, listed)
    sampled = is_drawn_at(generation.get("temperature")) if seen.sampled is None else seen.sampled
    logged = LoggedTask(metrics, settings, sampled, seen.unread_value_by_metric, lower_is_better)
    return ReadTask(task, logged, answers, str(general.get("model_name") or ""), results_path)


def list_tasks(results: Mapping[str, Any]) -> set[str]:
    """Tasks that a results file lists, without means of several."""
    names = [name for name in read_part(results, "results") if name != "all" and "_average" not in name]
    return {shots["task"] if (shots := SHOTS.fullmatch(name)) else name for name in names}


def _find_directions(config: Mapping[str, Any]) -> tuple[list[str], frozenset[str]]:
    """Metrics of a task in the order of its settings, and those of which less is better: the details have them by name."""
    listed: list[str] = []
    lower_is_better: set[str] = set()
    for one in list_objects(config.get("metrics", config.get("metric"))):
        given, better = one.get("metric_name"), one.get("higher_is_better")
        names = [str(name) for name in (given if isinstance(given, list) else [given])]
        listed += names
        lower_is_better |= {name for name in names if (better.get(name) if isinstance(better, dict) else better) is False}
    return listed, frozenset(lower_is_better)


def _find_results(path: Path, date: str) -> Path | None:
    """`results/MODEL/results_DATE.json` beside `details/MODEL/DATE/`; None without one."""
    for parent in path.parents:
        if parent.name == "details":
            found = parent.parent.joinpath("results", *path.relative_to(parent).parts[:-2], f"results_{date}.json")
            return found if found.is_file() else None
    return None


def _read_details(path: Path) -> Iterator[tuple[dict[str, Any], RowLocation]]:
    """Rows with `doc`, `model_response` and `metric`."""

    def find_columns(names: Sequence[str]) -> list[str]:
        plain_names = {name.strip("_"): name for name in names}
        if not READ.keys() <= plain_names.keys():
            got = f"one with {', '.join(names[:8])}"[:160]
            raise InputError(f"a table with columns {', '.join(READ)}", got, "Name details of lighteval.", file=path)
        return [
            f"{plain_names[name]}.{part}" if part else plain_names[name]
            for name, parts in READ.items()
            for part in parts or ("",)
        ]

    for row, location in read_parquet(path, find_columns):
        yield {name.strip("_"): value for name, value in row.items()}, location


def _read_row(task: str, row: Mapping[str, Any], location: RowLocation, seen: _Seen) -> LoggedAnswer:
    doc, response, metric = (read_object(row[name], name, location) for name in READ)
    scores = seen.read_scores(metric)
    texts, logprobs, choices = (
        _as_list(value) for value in (response.get("text"), response.get("logprobs"), doc.get("choices"))
    )
    sample_count = doc.get("num_samples")
    if isinstance(sample_count, int) and sample_count > 1:
        seen.sampled = True
    elif not texts and seen.sampled is None:  # probabilities that are read are not drawn
        seen.sampled = False
    if doc.get("generation_size") is not None and texts:
        seen.completion_limits.add(str(doc["generation_size"]))
    given = response.get("input")
    query = [text for text in (doc.get("instruction"), doc.get("query")) if isinstance(text, str)]
    golds = _as_list(doc.get("gold_index")) or [doc.get("gold_index")]
    place = golds[0] if len(golds) == 1 else None
    gold_place = place if isinstance(place, int) and 0 <= place < len(choices) else None
    options = tuple(str(choice).strip() for choice in choices)
    answer = LoggedAnswer(
        task,
        read_name(doc["id"], "doc.id", location) if doc.get("id") not in (None, "") else str(location.row),
        scores,
        location,
        prompt=join_messages(given, "input", location) if given else "\n".join(query) or None,
        gold=options[gold_place] if gold_place is not None else None,
    )
    if texts or len(logprobs) != len(options) or len(set(options)) < len(options) or len(options) < 2:
        return with_text(answer, texts, response.get("text_post_processed"))
    numbers = [read_logprob(value, "logprobs", location) for value in logprobs]
    likeliest = options[max(range(len(numbers)), key=numbers.__getitem__)]
    return replace(answer, readings=dict.fromkeys(scores, likeliest), options=options)


def _find_settings(generation: Mapping[str, Any], version: Any, seen: _Seen) -> dict[str, str]:
    settings = {f"generation {name}": str(value)[:80] for name, value in generation.items() if value is not None}
    if seen.completion_limits:
        settings["longest completion"] = " or ".join(sorted(seen.completion_limits))
    if version is not None:
        settings["version of the task"] = str(version)[:80]
    settings.pop("generation seed", None)
    return settings


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


read_lighteval = Harness(FORM, _list_logs, _read_task, RESULT_KEYS, list_tasks, answers="details")

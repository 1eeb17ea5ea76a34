"""Reader of details of lighteval: `details_TASK|SHOTS_DATE.parquet`, one file or a folder of them, a task each.

Source: https://huggingface.co/docs/lighteval/saving-and-reading-results; `logging/info_loggers.py` and `tasks/requests.py`
    up to May 2026: columns `doc`, `model_response` and `metric`, under those names or with underscores around them; before
    version 0.10 a column per field (`full_prompt`, `predictions`, `metrics` ...). Decoding and versions stand in
    `results/MODEL/results_DATE.json`, where that file is beside `details/`.
Unit: of the metric; log-probabilities in nats.
Cost: reads the columns it needs once, without tokens and logits; the answers are in memory.
Blind spot: details that lighteval wrote as texts, which it does where a column has no common type, are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation, read_parquet
from mixwright.errors import InputError
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.files import list_files, name_unread, read_object_file
from mixwright.logs.values import join_messages, read_name, read_object, read_score

FORM = "lighteval"
NEW_COLUMNS = ("doc", "model_response", "metric")
OLD_COLUMNS = ("full_prompt", "predictions", "metrics")
OLD_READ = (*OLD_COLUMNS, "choices", "gold", "gold_index")
RESULT_KEYS = frozenset({"config_general", "results"})
"""Keys of a results file."""
NEW_READ = {
    "doc": ("query", "choices", "gold_index", "instruction", "id", "num_samples", "generation_size"),
    "model_response": ("input", "text", "text_post_processed", "logprobs"),
    "metric": (),
}
"""Parts of the columns that are read; empty for all."""
NAME = re.compile(r"details_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+?)\.parquet")
SHOTS = re.compile(r"(?P<task>.+)\|(?P<shots>\d+)")


@dataclass(slots=True)
class _Seen:
    """What the rows of one task show."""

    unread_value_by_metric: dict[str, str] = field(default_factory=dict)
    """Metric without a number per answer -> words on what stands there."""
    metrics: dict[str, None] = field(default_factory=dict)
    sampled: bool | None = None
    completion_limits: set[str] = field(default_factory=set)


def is_details_name(name: str) -> bool:
    """Whether a file is called as lighteval calls details."""
    return NAME.fullmatch(name) is not None


def read_lighteval(source: str) -> EvaluationLog:
    """The log. Raises InputError for a damaged file, for details written as texts, and for two files of one task."""
    path = Path(source)
    files = list_files(path, is_details_name) if path.is_dir() else [path]
    tasks: dict[str, LoggedTask] = {}
    answers: list[LoggedAnswer] = []
    models: dict[str, None] = {}
    used: dict[str, Path] = {}
    for one in files:
        named = NAME.fullmatch(one.name)
        full_name = named["task"] if named else one.stem
        shots = SHOTS.fullmatch(full_name)
        task = read_name(shots["task"] if shots else full_name, "the name of the file", RowLocation(str(one)))
        if task in used:
            got = f"task {task!r} in {used[task].name} and {one.name}"
            raise InputError("one file of each task", got, "Name the folder of one evaluation.", file=path)
        used[task] = one
        results_path = _results_of(one)
        results = read_object_file(results_path) if results_path is not None else {}
        seen = _Seen()
        answers += [_read_row(task, row, location, seen) for row, location in _read_details(one)]
        general = _part(results, "config_general")
        models |= {str(general["model_name"])[:200]: None} if general.get("model_name") else {}
        settings = _find_settings(general, _part(results, "versions").get(full_name), seen)
        if shots:
            settings["few-shot examples"] = shots["shots"]
        listed, lower_is_better = _find_directions(_part(_part(results, "config_tasks"), full_name))
        metrics = sorted(seen.metrics, key=lambda name: listed.index(name) if name in listed else len(listed))
        tasks[task] = LoggedTask(
            tuple(metrics), settings, _is_sampled(general, seen), seen.unread_value_by_metric, lower_is_better
        )
    unread = name_unread(path, re.compile("details_").match, files, "details_TASK_DATE.parquet") if path.is_dir() else {}
    for results_path in sorted({found for one in files if (found := _results_of(one)) is not None}):
        lacking = sorted(list_tasks(read_object_file(results_path)) - tasks.keys())
        unread |= dict.fromkeys(lacking, f"has its results ({results_path.name}) but no details")
    names = tuple(str(one) for one in used.values())
    return EvaluationLog(source, FORM, ", ".join(models), tasks, tuple(answers), names, unread)


def list_tasks(results: Mapping[str, Any]) -> set[str]:
    """Tasks that a results file lists, without means of several."""
    names = [name for name in _part(results, "results") if name != "all" and "_average" not in name]
    return {shots["task"] if (shots := SHOTS.fullmatch(name)) else name for name in names}


def _find_directions(config: Mapping[str, Any]) -> tuple[list[str], frozenset[str]]:
    """Metrics of a task in the order of its settings, and those of which less is better: the details have them by name."""
    listed: list[str] = []
    lower_is_better: set[str] = set()
    metrics = config.get("metrics", config.get("metric"))
    for one in metrics if isinstance(metrics, list) else []:
        if not isinstance(one, dict):
            continue
        given, better = one.get("metric_name"), one.get("higher_is_better")
        names = [str(name) for name in (given if isinstance(given, list) else [given])]
        listed += names
        lower_is_better |= {name for name in names if (better.get(name) if isinstance(better, dict) else better) is False}
    return listed, frozenset(lower_is_better)


def _results_of(path: Path) -> Path | None:
    """The results file of a file of details; None without one."""
    named = NAME.fullmatch(path.name)
    return _find_results(path, named["date"]) if named else None


def _find_results(path: Path, date: str) -> Path | None:
    """`results/MODEL/results_DATE.json` beside `details/MODEL/DATE/`; None without one."""
    for parent in path.parents:
        if parent.name == "details":
            found = parent.parent / "results" / path.parent.parent.relative_to(parent) / f"results_{date}.json"
            return found if found.is_file() else None
    return None


def _read_details(path: Path) -> Iterator[tuple[dict[str, Any], RowLocation]]:
    """Rows with `doc`, `model_response` and `metric`, or with the columns of old versions."""

    def find_columns(names: Sequence[str]) -> list[str]:
        plain_names = {name.strip("_"): name for name in names}
        if set(NEW_COLUMNS) <= plain_names.keys():
            return [
                f"{plain_names[name]}.{part}" if part else plain_names[name]
                for name, parts in NEW_READ.items()
                for part in parts or ("",)
            ]
        if set(OLD_COLUMNS) <= plain_names.keys():
            return [plain_names[name] for name in OLD_READ if name in plain_names]
        got = f"one with {', '.join(names[:8])}"[:160]
        raise InputError(f"a table with columns {', '.join(NEW_COLUMNS)}", got, "Name details of lighteval.", file=path)

    for row, location in read_parquet(path, find_columns):
        yield {name.strip("_"): value for name, value in row.items()}, location


def _read_row(task: str, row: Mapping[str, Any], location: RowLocation, seen: _Seen) -> LoggedAnswer:
    is_new = "metric" in row
    metrics = _read_struct(row.get("metric" if is_new else "metrics"), "the metrics", location)
    scores: dict[str, float | None] = {}
    for name, value in metrics.items():
        score = read_score(value)
        seen.metrics[str(name)] = None
        if isinstance(score, str):
            seen.unread_value_by_metric.setdefault(str(name), score)
        scores[str(name)] = None if isinstance(score, str) else score
    return (_read_new if is_new else _read_old)(task, row, scores, location, seen)


def _read_struct(value: Any, what: str, location: RowLocation) -> dict[str, Any]:
    """A struct; lighteval writes texts instead where values of a column have no common type."""
    if isinstance(value, str):
        remedy = "Evaluate again with a newer lighteval, or write JSONL with task, id and score."
        raise location.error(f"{what} as a struct", f"the text {value[:30]!r}", remedy)
    return read_object(value, what, location)


def _read_new(
    task: str, row: Mapping[str, Any], scores: Mapping[str, float | None], location: RowLocation, seen: _Seen
) -> LoggedAnswer:
    doc = _read_struct(row.get("doc"), "doc", location)
    response = _read_struct(row.get("model_response"), "model_response", location)
    texts, logprobs = _as_list(response.get("text")), _as_list(response.get("logprobs"))
    sample_count = doc.get("num_samples")
    _note_sampling(seen, has_texts=bool(texts), several=isinstance(sample_count, int) and sample_count > 1)
    if doc.get("generation_size") is not None and texts:
        seen.completion_limits.add(str(doc["generation_size"]))
    given = response.get("input")
    query = [text for text in (doc.get("instruction"), doc.get("query")) if isinstance(text, str)]
    prompt = join_messages(given, "input", location) if given else "\n".join(query) or None
    name = doc.get("id")
    post_processed_text = next(
        (text for text in _as_list(response.get("text_post_processed")) if isinstance(text, str)), None
    )
    return _make_answer(
        task,
        read_name(name, "doc.id", location) if name not in (None, "") else str(location.row),
        scores,
        location,
        prompt=prompt,
        choices=_as_list(doc.get("choices")),
        gold_index=doc.get("gold_index"),
        texts=texts,
        logprobs=logprobs,
        post_processed_text=post_processed_text,
    )


def _read_old(
    task: str, row: Mapping[str, Any], scores: Mapping[str, float | None], location: RowLocation, seen: _Seen
) -> LoggedAnswer:
    predictions = _as_list(row.get("predictions"))
    firsts = [value[0] if isinstance(value, list) and value else value for value in predictions]
    texts = [value for value in firsts if isinstance(value, str)]
    logprobs = [value for value in firsts if isinstance(value, float)]
    _note_sampling(seen, has_texts=bool(texts), several=False)
    gold = row.get("gold")
    choices, golds = _as_list(row.get("choices")), [gold] if isinstance(gold, str) else _as_list(gold)
    gold_index = row.get("gold_index") if choices else 0 if len(golds) == 1 else None  # one of several golds says little
    prompt = row.get("full_prompt")
    return _make_answer(
        task,
        str(location.row),
        scores,
        location,
        prompt=join_messages(prompt, "full_prompt", location) if prompt else None,
        choices=choices or golds,
        gold_index=gold_index,
        texts=texts,
        logprobs=logprobs,
        post_processed_text=None,
    )


def _make_answer(
    task: str,
    item: str,
    scores: Mapping[str, float | None],
    location: RowLocation,
    *,
    prompt: str | None,
    choices: Sequence[Any],
    gold_index: Any,
    texts: Sequence[Any],
    logprobs: Sequence[Any],
    post_processed_text: str | None,
) -> LoggedAnswer:
    golds = _as_list(gold_index) if isinstance(gold_index, list) else [gold_index]
    gold_place = golds[0] if len(golds) == 1 and isinstance(golds[0], int) and 0 <= golds[0] < len(choices) else None
    gold = str(choices[gold_place]).strip() if gold_place is not None else None
    options = tuple(str(choice).strip() for choice in choices)
    if texts or len(logprobs) != len(options) or len(set(options)) < len(options) or len(options) < 2:
        text = next((text for text in texts if isinstance(text, str)), None)
        readings = dict.fromkeys(scores, post_processed_text) if post_processed_text is not None else {}
        known = {name: reading for name, reading in readings.items() if reading is not None}
        return LoggedAnswer(task, item, scores, location, prompt=prompt, gold=gold, completion=text, readings=known)
    numbers = [value if isinstance(value, int | float) else float("nan") for value in logprobs]
    if any(not value <= 1e-4 for value in numbers):  # NaN, too
        raise location.error(
            "log-probabilities of the options", json.dumps(list(logprobs), default=str)[:80], "Log it again."
        )
    likeliest = options[max(range(len(numbers)), key=numbers.__getitem__)]
    return LoggedAnswer(
        task,
        item,
        scores,
        location,
        prompt=prompt,
        gold=gold,
        readings=dict.fromkeys(scores, likeliest),
        options=options,
        gold_logprob=numbers[gold_place] if gold_place is not None else None,
    )


def _note_sampling(seen: _Seen, *, has_texts: bool, several: bool) -> None:
    """Probabilities that are read are not drawn; several samples are."""
    if several:
        seen.sampled = True
    elif not has_texts and seen.sampled is None:
        seen.sampled = False


def _is_sampled(general: Mapping[str, Any], seen: _Seen) -> bool | None:
    temperature = _generation(general).get("temperature")
    if seen.sampled is not None or not isinstance(temperature, int | float):
        return seen.sampled
    return temperature > 0


def _find_settings(general: Mapping[str, Any], version: Any, seen: _Seen) -> dict[str, str]:
    settings = {f"generation {name}": str(value)[:80] for name, value in _generation(general).items() if value is not None}
    if seen.completion_limits:
        settings["longest completion"] = " or ".join(sorted(seen.completion_limits))
    if version is not None:
        settings["version of the task"] = str(version)[:80]
    settings.pop("generation seed", None)
    return settings


def _generation(general: Mapping[str, Any]) -> Mapping[str, Any]:
    """Parameters of generation, wherever this version keeps them."""
    own = _part(general, "generation_parameters")
    return own or _part(_part(general, "model_config"), "generation_parameters")


def _part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []

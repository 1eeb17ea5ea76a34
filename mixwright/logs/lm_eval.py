"""Reader of logs of lm-evaluation-harness: `samples_TASK_DATE.jsonl` of --log_samples, beside `results_DATE.json`.

Source: https://github.com/EleutherAI/lm-evaluation-harness, `loggers/evaluation_tracker.py` and `evaluator.py` (0.4, up to
    August 2026): a line per document and filter, with its metrics by name. A metric is called `exact_match,strict-match`
    here, as in the results file. Few-shot examples, versions and which metrics are better when lower stand in that file.
Unit: of the metric; log-probabilities in nats.
Cost: reads the files once; the answers are in memory.
Blind spot: what the chat template and the few-shot examples were is seen in the prompts alone; a document that was sampled
    several times has one answer here, as its metrics have it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation
from mixwright.errors import InputError
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.files import list_files, name_unread, read_log_rows, read_object_file
from mixwright.logs.values import read_name, read_object, read_score

FORM = "lm-evaluation-harness"
SAMPLE_KEYS = frozenset({"doc_id", "filtered_resps"})
"""Keys that every line has."""
RESULT_KEYS = frozenset({"results", "configs"})
"""Keys of a results file."""
NO_METRICS = SAMPLE_KEYS | {"doc", "target", "arguments", "resps", "filter", "metrics"}
NO_METRICS |= {"doc_hash", "prompt_hash", "target_hash"}
"""Keys of a line that are no metrics, where older versions do not name them."""
NO_FILTER = "none"
"""What the harness calls it where answers are not filtered."""
LIKELIHOOD_METRICS = {"acc": False, "acc_norm": True, "acc_bytes": True}
"""Metric of the likeliest option -> whether the log-probability is divided by the option's length."""
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+?)\.jsonl?(?:\.gz)?")
_RESULTS_NAME = re.compile(r"results_\d{4}-\d\d-\d\dT[\d.-]+\.json")


@dataclass(slots=True)
class _Seen:
    """What the lines of one task show."""

    metrics: dict[str, None] = field(default_factory=dict)
    settings: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    unread_value_by_metric: dict[str, str] = field(default_factory=dict)
    """Metric without a number per answer -> words on what stands there."""
    sampled: set[bool | None] = field(default_factory=set)


def is_sample_name(name: str) -> bool:
    """Whether a file is called as the harness calls files of samples."""
    return _NAME.fullmatch(name) is not None


def is_results_name(name: str) -> bool:
    """Whether a file is called as the harness calls files of results."""
    return _RESULTS_NAME.fullmatch(name) is not None


def read_lm_eval(source: str) -> EvaluationLog:
    """The log: a folder, one file of samples, or a results file, which stands for the samples of its date.

    Raises:
        InputError: with file and line what is damaged; a task of several dates; a results file without samples.
    """
    path = Path(source)
    files = _find_samples(path)
    tasks: dict[str, LoggedTask] = {}
    answers: list[LoggedAnswer] = []
    models: set[str] = set()
    used: list[Path] = []
    results_files: dict[Path, dict[str, Any]] = {}
    for task, samples_path in files.items():
        seen, found = _Seen(), defaultdict[str, dict[str, LoggedAnswer]](dict)
        for value, location in read_log_rows(samples_path):
            _add_row(task, read_object(value, "a line of --log_samples", location), location, seen, found)
        answers += [_merge(list(by_filter.values())) for by_filter in found.values()]
        results_path = _find_results(samples_path)
        if results_path is not None and results_path not in results_files:
            results_files[results_path] = read_object_file(results_path)
        results = results_files.get(results_path) if results_path is not None else None
        tasks[task] = _make_task(task, seen, results or {})
        models |= {str(results["model_name"])} if results and results.get("model_name") else set()
        used.append(samples_path)
    named = tuple(map(str, (*used, *results_files)))
    unread: dict[str, str] = {}
    if path.is_dir():
        unread = name_unread(path, re.compile("samples_").match, used, "samples_TASK_DATE.jsonl")
    elif path not in used:
        lacking = sorted(list_tasks(read_object_file(path)) - tasks.keys())
        unread = dict.fromkeys(lacking, f"has its results ({path.name}) but no samples")
    return EvaluationLog(source, FORM, ", ".join(sorted(models)), tasks, tuple(answers), named, unread)


def list_tasks(results: Mapping[str, Any]) -> set[str]:
    """Tasks that a results file lists; groups have results and no samples of their own."""
    groups = {*_part(results, "groups"), *(name for name, own in _part(results, "group_subtasks").items() if own)}
    return _part(results, "results").keys() - groups


def _find_samples(path: Path) -> dict[str, Path]:
    """Task -> its file."""
    if path.is_dir():
        files = list_files(path, is_sample_name)
        if not files:
            remedy = "Evaluate with --log_samples (lm-evaluation-harness) or --save-details (lighteval)."
            raise InputError("samples next to a results file", "none", remedy, file=path)
    elif _NAME.fullmatch(path.name) or not path.name.endswith(".json"):
        files = [path]
    else:
        date = path.stem.rpartition("_")[2]
        files = [one for one in list_files(path.parent, is_sample_name) if _date_of(one) == date] if date else []
        if not files:
            remedy = "Evaluate with --log_samples, or name the folder with the samples."
            raise InputError(
                "samples next to a results file", f"none with the date in its name, {date!r}", remedy, file=path
            )
    found: dict[str, Path] = {}
    for one in files:
        name = _NAME.fullmatch(one.name)
        task = name["task"] if name else one.name.partition(".")[0]
        task = read_name(task, "the name of the file", RowLocation(str(one)))
        if task in found:
            got = f"task {task!r} in {found[task].name} and {one.name}"
            remedy = "Name the results file of one of them, or move the other away."
            raise InputError("the samples of one evaluation", got, remedy, file=path)
        found[task] = one
    return found


def _date_of(path: Path) -> str:
    name = _NAME.fullmatch(path.name)
    return name["date"] if name else ""


def _find_results(path: Path) -> Path | None:
    """The results file of the same date, one that is called so first; None without one."""
    date = _date_of(path)
    found = [one for one in path.parent.glob(f"*_{date}.json") if not is_sample_name(one.name)] if date else []
    return min(found, key=lambda one: (not one.name.startswith("results_"), one.name), default=None)


def _add_row(
    task: str,
    row: dict[str, Any],
    location: RowLocation,
    seen: _Seen,
    found: dict[str, dict[str, LoggedAnswer]],
) -> None:
    """Take in one line: a document judged under one filter."""
    if missing := sorted(SAMPLE_KEYS - row.keys()):
        raise location.error(
            f"the key {missing[0]!r} in every line", f"keys {', '.join(list(row)[:8])}"[:120], "Log it again."
        )
    item = read_name(row["doc_id"], "doc_id", location)
    if "filter" in row:
        filter_name = read_name(row["filter"], "filter", location)
    else:  # before 0.4.3 a document had a line for each filter, without its name
        filter_name = f"filter {len(found[item]) + 1}" if found[item] else NO_FILTER
    names = row.get("metrics", sorted(row.keys() - NO_METRICS))
    if not isinstance(names, list) or not all(isinstance(name, str) and name in row for name in names):
        raise location.error("metrics: a list of keys of the line", repr(names)[:80], "Log it again.")
    if filter_name in found[item]:
        got = f"doc_id {item} twice under filter {filter_name!r}, first at {found[item][filter_name].location}"
        raise location.error("each document once under each filter", got, "Remove one of the lines.")
    scores: dict[str, float | None] = {}
    for name in names:
        metric, value = f"{name},{filter_name}", read_score(row[name])
        seen.metrics[metric] = None
        if isinstance(value, str):
            seen.unread_value_by_metric.setdefault(metric, value)
        scores[metric] = None if isinstance(value, str) else value
    requests = _read_requests(row.get("arguments"), location)
    _note_settings(requests, seen)
    target = row.get("target")
    gold = None if target is None else str(target)
    answer = LoggedAnswer(task, item, scores, location, prompt=_join_prompts(requests), gold=gold)
    generates = bool(requests) and len(requests[0]) > 1 and isinstance(requests[0][1], dict)
    found[item][filter_name] = (
        _with_text(answer, row) if generates or not requests else _with_options(answer, row, requests, location)
    )


def _read_requests(value: Any, location: RowLocation) -> list[list[Any]]:
    """Arguments of each request: prompt, and continuation or settings; `gen_args_0: {arg_0: ...}`, in old logs lists."""
    if value is None:
        return []
    groups = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(groups, list):
        raise location.error("arguments: an object or a list", type(value).__name__, "Log it again.")
    requests = [list(group.values()) if isinstance(group, dict) else group for group in groups if group is not None]
    if not all(isinstance(request, list) and request for request in requests):
        raise location.error("arguments of each request", repr(value)[:80], "Log it again.")
    return requests


def _join_prompts(requests: Sequence[Sequence[Any]]) -> str | None:
    """All that the model was given, each text once."""
    texts = dict.fromkeys(one[0] if isinstance(one[0], str) else json.dumps(one[0], sort_keys=True) for one in requests)
    return "\n".join(texts) if texts else None


def _note_settings(requests: Sequence[Sequence[Any]], seen: _Seen) -> None:
    """How answers were decoded, as the requests say it themselves."""
    if not requests:
        return
    settings = requests[0][1] if len(requests[0]) > 1 else None
    if not isinstance(settings, dict):
        seen.sampled.add(False)  # probabilities are read, nothing is drawn
        return
    for name, value in settings.items():
        seen.settings[f"generation {name}"].add(json.dumps(value, sort_keys=True, default=str)[:200])
    temperature, drawn = settings.get("temperature"), settings.get("do_sample")
    is_greedy = drawn is False or (isinstance(temperature, int | float) and not temperature)
    seen.sampled.add(False if is_greedy else True if drawn is True else None)


def _with_text(answer: LoggedAnswer, row: Mapping[str, Any]) -> LoggedAnswer:
    """What was written, and what the filter read out of it."""
    completion, reading = _first_text(row.get("resps")), _first_text(row["filtered_resps"])
    readings = dict.fromkeys(answer.scores, reading) if reading is not None else {}
    return replace(
        answer, completion=completion, readings={name: text for name, text in readings.items() if text is not None}
    )


def _first_text(value: Any) -> str | None:
    """The first text in nested lists."""
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else None


def _with_options(
    answer: LoggedAnswer, row: Mapping[str, Any], requests: Sequence[Sequence[Any]], location: RowLocation
) -> LoggedAnswer:
    """The option that was likeliest, where the requests are the options of one question."""
    options = tuple(str(request[1]).strip() if len(request) > 1 else "" for request in requests)
    pairs = row["filtered_resps"]
    if len(options) < 2 or len(set(options)) < len(options) or not isinstance(pairs, list) or len(pairs) != len(options):
        return answer
    values = [_read_likelihood(pair, location) for pair in pairs]
    gold = _gold_option(answer.gold, options)
    readings = {}
    for metric in answer.scores:
        by_length = LIKELIHOOD_METRICS.get(metric.partition(",")[0], False)
        scaled = [value / (max(len(text), 1) if by_length else 1) for value, text in zip(values, options, strict=True)]
        readings[metric] = options[max(range(len(scaled)), key=scaled.__getitem__)]
    logprob = values[options.index(gold)] if gold is not None else None
    return replace(answer, options=options, gold=gold, readings=readings, gold_logprob=logprob)


def _read_likelihood(pair: Any, location: RowLocation) -> float:
    """The log-probability of a pair with whether it is the likeliest text; numbers stand as texts in most logs."""
    value: Any = pair[0] if isinstance(pair, list) and pair else pair
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not number <= 1e-4:  # NaN, too
        raise location.error("log-probabilities in filtered_resps", repr(value)[:60], "Log it again.")
    return number


def _gold_option(target: str | None, options: Sequence[str]) -> str | None:
    """The right option: a target is its place, or its text."""
    if target is None:
        return None
    if target.strip() in options:
        return target.strip()
    option_index = int(target) if target.isascii() and target.isdecimal() and len(target) < 6 else len(options)
    return options[option_index] if option_index < len(options) else None


def _merge(answers: Sequence[LoggedAnswer]) -> LoggedAnswer:
    """One answer of the lines of a document, whose filters judged it each."""
    first = min(answers, key=lambda answer: sorted(answer.scores))
    scores = {name: value for answer in answers for name, value in answer.scores.items()}
    readings = {name: text for answer in answers for name, text in answer.readings.items()}
    return replace(first, scores=scores, readings=readings)


def _make_task(task: str, seen: _Seen, results: Mapping[str, Any]) -> LoggedTask:
    settings = {name: " or ".join(sorted(values)) for name, values in seen.settings.items()}
    for key, name in (("n-shot", "few-shot examples"), ("versions", "version of the task")):
        value = _part(results, key).get(task)
        if value is not None:
            settings[name] = str(value)[:80]
    better = _part(_part(results, "higher_is_better"), task)
    lower = [name for name in seen.metrics if better.get(name.partition(",")[0]) is False]
    sampled = seen.sampled.pop() if len(seen.sampled) == 1 else True if True in seen.sampled else None
    counts = _part(_part(results, "n-samples"), task)
    counted = counts.get("effective") if isinstance(counts.get("effective"), int) else None
    return LoggedTask(
        _in_order(seen.metrics, results, task), settings, sampled, seen.unread_value_by_metric, frozenset(lower), counted
    )


def _part(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def _in_order(metrics: Iterable[str], results: Mapping[str, Any], task: str) -> tuple[str, ...]:
    """Metrics as the results file has them, and others by name: the order of lines decides nothing."""
    listed = list(_part(_part(results, "results"), task))
    known = sorted(metrics)
    return tuple(sorted(known, key=lambda name: (listed.index(name) if name in listed else len(listed), name)))

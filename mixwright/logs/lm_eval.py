"""Reader of logs of lm-evaluation-harness: `samples_TASK_DATE.jsonl` of --log_samples, beside `results_DATE.json`.

Source: https://github.com/EleutherAI/lm-evaluation-harness, `loggers/evaluation_tracker.py` and `evaluator.py` (0.4, up to
    August 2026): a line per document and filter, with its metrics by name. A metric is called `exact_match,strict-match`
    here, as in the results file. Few-shot examples, versions and which metrics are better when lower stand in that file.
Unit: of the metric; log-probabilities in nats.
Cost: reads the files once; the answers are in memory.
Blind spot: what the chat template and the few-shot examples were is seen in the prompts alone; a document that was sampled
    several times has one answer here, as its metrics have it. Lines before 0.4.3, which name no filter, are refused.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation
from mixwright.logs.entries import LoggedAnswer, LoggedTask
from mixwright.logs.files import list_files, read_log_rows, read_object_file
from mixwright.logs.harness import Harness, ReadTask, Seen, order_metrics, with_text
from mixwright.logs.values import read_logprob, read_name, read_object, read_part

FORM = "lm-evaluation-harness"
SAMPLE_KEYS = frozenset({"doc_id", "filtered_resps", "filter", "metrics"})
"""Keys that every line has."""
RESULT_KEYS = frozenset({"results", "configs"})
"""Keys of a results file."""
LIKELIHOOD_METRICS = {"acc": False, "acc_norm": True, "acc_bytes": True}
"""Metric of the likeliest option -> whether the log-probability is divided by the option's length."""
_NAME = re.compile(r"samples_(?P<task>.+)_(?P<date>\d{4}-\d\d-\d\dT[\d.-]+?)\.jsonl?(?:\.gz)?")
RESULTS_NAME = re.compile(r"results_\d{4}-\d\d-\d\dT[\d.-]+\.json")


@dataclass(slots=True)
class _Seen(Seen):
    """What the lines of one task show, beside their metrics."""

    settings: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    sampled: set[bool | None] = field(default_factory=set)


def list_tasks(results: Mapping[str, Any]) -> set[str]:
    """Tasks that a results file lists; groups have results and no samples of their own."""
    groups = {*read_part(results, "groups"), *(name for name, own in read_part(results, "group_subtasks").items() if own)}
    return read_part(results, "results").keys() - groups


def _list_logs(path: Path) -> list[Path]:
    """Files of samples in a folder; the file itself; or those of the date of a file of results."""
    if path.is_dir():
        return list_files(path, _NAME.fullmatch)
    if _NAME.fullmatch(path.name) or not path.name.endswith(".json"):
        return [path]
    date = path.stem.rpartition("_")[2]
    return [one for one in list_files(path.parent, _NAME.fullmatch) if _date_of(one) == date] if date else []


def _date_of(path: Path) -> str:
    name = _NAME.fullmatch(path.name)
    return name["date"] if name else ""


def _find_results(path: Path) -> Path | None:
    """The results file of the same date, one that is called so first; None without one."""
    date = _date_of(path)
    found = [one for one in path.parent.glob(f"*_{date}.json") if not _NAME.fullmatch(one.name)] if date else []
    return min(found, key=lambda one: (not one.name.startswith("results_"), one.name), default=None)


def _read_task(path: Path) -> ReadTask:
    """One file of samples, and the file of results beside it."""
    named = _NAME.fullmatch(path.name)
    task = read_name(named["task"] if named else path.name.partition(".")[0], "the name of the file", RowLocation(str(path)))
    seen, found = _Seen(), defaultdict[str, dict[str, LoggedAnswer]](dict)
    for value, location in read_log_rows(path):
        answer, filter_name = _read_row(task, read_object(value, "a line of --log_samples", location), location, seen)
        own = found[answer.item]
        if filter_name in own:
            got = f"doc_id {answer.item} twice under filter {filter_name!r}, first at {own[filter_name].location}"
            raise location.error("each document once under each filter", got, "Remove one of the lines.")
        own[filter_name] = answer
    results_path = _find_results(path)
    results = {} if results_path is None else read_object_file(results_path)
    answers = [_merge(list(by_filter.values())) for by_filter in found.values()]
    return ReadTask(task, _make_task(task, seen, results), answers, str(results.get("model_name") or ""), results_path)


def _read_row(task: str, row: dict[str, Any], location: RowLocation, seen: _Seen) -> tuple[LoggedAnswer, str]:
    """One line: a document judged under one filter, and the filter."""
    if missing := sorted(SAMPLE_KEYS - row.keys()):
        got = f"keys {', '.join(list(row)[:8])}"[:120]
        raise location.error(f"the key {missing[0]!r} in every line", got, "Log it again.")
    item, filter_name = read_name(row["doc_id"], "doc_id", location), read_name(row["filter"], "filter", location)
    names = row["metrics"]
    if not isinstance(names, list) or not all(isinstance(name, str) and name in row for name in names):
        raise location.error("metrics: a list of keys of the line", repr(names)[:80], "Log it again.")
    scores = seen.read_scores({f"{name},{filter_name}": row[name] for name in names})
    requests = _read_requests(row.get("arguments"), location)
    _note_settings(requests, seen)
    gold = None if row.get("target") is None else str(row["target"])
    answer = LoggedAnswer(task, item, scores, location, prompt=_join_prompts(requests), gold=gold)
    generates = not requests or (len(requests[0]) > 1 and isinstance(requests[0][1], dict))
    if generates:
        return with_text(answer, row.get("resps"), row["filtered_resps"]), filter_name
    return _with_options(answer, row, requests, location), filter_name


def _read_requests(value: Any, location: RowLocation) -> list[list[Any]]:
    """Arguments of each request: prompt, and continuation or settings; `gen_args_0: {arg_0: ...}`, or lists of lists."""
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
        sizes = [len(text.encode() if metric.startswith("acc_bytes") else text) if by_length else 1 for text in options]
        scaled = [value / max(size, 1) for value, size in zip(values, sizes, strict=True)]
        readings[metric] = options[max(range(len(scaled)), key=scaled.__getitem__)]
    return replace(answer, options=options, gold=gold, readings=readings)


def _read_likelihood(pair: Any, location: RowLocation) -> float:
    """The log-probability of a pair with whether it is the likeliest text; numbers stand as texts in most logs."""
    value: Any = pair[0] if isinstance(pair, list) and pair else pair
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            value = float(value)
    return read_logprob(value, "filtered_resps", location)


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
        value = read_part(results, key).get(task)
        if value is not None:
            settings[name] = str(value)[:80]
    better = read_part(results, "higher_is_better", task)
    lower = [name for name in seen.metrics if better.get(name.partition(",")[0]) is False]
    sampled = seen.sampled.pop() if len(seen.sampled) == 1 else True if True in seen.sampled else None
    counts = read_part(results, "n-samples", task)
    counted = counts.get("effective") if isinstance(counts.get("effective"), int) else None
    listed = list(read_part(results, "results", task))
    metrics = order_metrics(sorted(seen.metrics), listed)  # the order of lines decides nothing
    groups = frozenset(_list_groups(task, read_part(results, "group_subtasks")))
    return LoggedTask(metrics, settings, sampled, seen.unread_value_by_metric, frozenset(lower), groups, counted)


def _list_groups(task: str, members: Mapping[str, Any]) -> set[str]:
    """Groups that hold a task, or a group that does."""
    found, size = {task}, 0
    while len(found) > size:
        size = len(found)
        found |= {group for group, own in members.items() if isinstance(own, list) and found & set(map(str, own))}
    return found - {task}


read_lm_eval = Harness(FORM, _list_logs, _read_task, RESULT_KEYS, list_tasks)

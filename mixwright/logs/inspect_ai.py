"""Reader of logs of Inspect: `.json`, `.eval` (a zip file of JSON), or a folder of them, a task each.

Source: https://inspect.aisi.org.uk/eval-logs.html; `log/_log.py`, `log/_recorders/eval.py` and `scorer/_metric.py` of
    inspect_ai up to August 2026. The files are read as they are, without that package.
Unit: grades C and I are 1 and 0, P is .5 and N (no answer) 0, as Inspect counts them; numbers are in the scorer's own unit.
Cost: reads the files once; the answers are in memory.
Blind spot: what a provider does where the log says nothing of temperature or top_p, which is the same only where it is the
    same provider; what agents and tools did on the way.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import RowLocation
from mixwright.errors import InputError
from mixwright.logs.entries import LoggedAnswer, LoggedTask
from mixwright.logs.files import (
    MAX_OBJECT_BYTES,
    ZIP_MAGIC,
    find_top_keys,
    list_files,
    read_head,
    read_object_file,
)
from mixwright.logs.harness import Harness, ReadTask, Seen, is_drawn_at, order_metrics
from mixwright.logs.values import join_messages, list_objects, read_name, read_object, read_part, read_texts
from mixwright.logs.zipped import read_members

FORM = "Inspect"
VALUE_BY_GRADE = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
HEADER, START, SAMPLES = "header.json", "_journal/start.json", "samples/"
"""Members of an .eval file."""
TOP_KEYS = frozenset({"eval", "status"})
COMPARED_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "num_choices", "system_message", "stop_seqs")
COMPARED_SETTINGS += ("frequency_penalty", "presence_penalty", "reasoning_effort", "reasoning_tokens", "effort")
"""Settings of generation that change what is written."""
LOG_NAME = re.compile(r"\.(?:eval|json(?:\.gz)?)\Z", re.IGNORECASE)
ATTACHMENT = "attachment://"
CUT_REASONS = ("max_tokens", "model_length")
LONGEST_SETTING = 160
"""Characters of a setting that are shown; of a longer one its digest decides whether two are the same."""


def is_inspect(path: Path) -> bool:
    """Whether a file is a log of Inspect, by what it holds."""
    head = read_head(path)
    if head.startswith(ZIP_MAGIC):  # checkpoints are zip files, too
        return path.suffix.lower() == ".eval"
    return find_top_keys(head) >= TOP_KEYS


def _list_logs(path: Path) -> list[Path]:
    return list(filter(is_inspect, list_files(path, LOG_NAME.search))) if path.is_dir() else [path]


def _read_task(path: Path) -> ReadTask:
    """One log. Raises InputError for a damaged one, and for an evaluation that did not finish."""
    header, samples = _open(path)
    spec = read_object(header.get("eval"), "eval", RowLocation(str(path)))
    task = read_name(spec.get("task"), "eval.task", RowLocation(str(path)))
    if header.get("status") != "success":
        got = f"status {header.get('status')!r:.40}"
        remedy = "Finish it (inspect eval-retry), because samples do not go missing at random."
        raise InputError("an evaluation that finished", got, remedy, file=path)
    seen = Seen()
    answers = [_read_sample(task, sample, location, seen) for sample, location in samples]
    return ReadTask(task, _make_task(header, spec, seen), answers, str(spec.get("model", "")))


def _open(path: Path) -> tuple[dict[str, Any], Iterator[tuple[Any, RowLocation]]]:
    """Header and samples of one log."""
    if read_head(path).startswith(ZIP_MAGIC):
        headers = dict(read_members(path, lambda name: name in (HEADER, START)))
        if not headers:
            raise InputError(f"{HEADER} in an Inspect log", "none", "Name an Inspect log.", file=path)
        members = read_members(path, lambda name: name.startswith(SAMPLES) and name.endswith(".json"))
        header = headers[HEADER if HEADER in headers else START]
        return header, ((sample, RowLocation(f"{path}, {name}")) for name, sample in members)
    log = read_object_file(path)
    samples = log.get("samples")
    if not isinstance(samples, list):
        got = "none" if samples is None else type(samples).__name__
        raise InputError("samples in an Inspect log", got, "Evaluate with samples logged (--log-samples).", file=path)
    return log, ((sample, RowLocation(str(path), row=number)) for number, sample in enumerate(samples, 1))


def _read_sample(task: str, value: Any, location: RowLocation, seen: Seen) -> LoggedAnswer:
    sample = read_object(value, "a sample", location)
    attachments = read_part(sample, "attachments")
    grades: dict[str, Any] = {}
    readings: dict[str, str] = {}
    scores = {} if sample.get("scores") is None else read_object(sample["scores"], "scores", location)
    for name, score in scores.items():
        record = read_object(score, f"score {name!r:.60}", location)
        found = record.get("value")  # of a score with several named values each stands by itself
        parts = {f"{name}.{key}": part for key, part in found.items()} if isinstance(found, dict) else {str(name): found}
        grades |= {metric: VALUE_BY_GRADE.get(one, one) if isinstance(one, str) else one for metric, one in parts.items()}
        if isinstance(record.get("answer"), str):
            readings |= dict.fromkeys(parts, record["answer"])
    completion, choice = _read_completion(read_part(sample, "output"))
    choices, prompt = sample.get("choices"), sample.get("input")
    return LoggedAnswer(
        task,
        read_name(sample.get("id"), "id", location),
        seen.read_scores(grades),
        location,
        sample=f"epoch {read_name(sample.get('epoch', 1), 'epoch', location)}",
        prompt=None if prompt is None else _resolve(join_messages(prompt, "input", location), attachments, location),
        gold=_read_target(sample.get("target")),
        completion=None if completion is None else _resolve(completion, attachments, location),
        readings=readings,
        options=tuple(map(str, choices)) if isinstance(choices, list) else (),
        cut=choice.get("stop_reason") in CUT_REASONS,
    )


def _read_completion(output: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """What was written, and the choice that it is part of."""
    choice = next(iter(list_objects(output.get("choices"))), {})
    if isinstance(output.get("completion"), str):
        return output["completion"], choice
    message = read_part(choice, "message")
    return ("\n".join(read_texts([message])) if isinstance(message.get("content"), str | list) else None), choice


def _resolve(text: str, attachments: Mapping[str, Any], location: RowLocation) -> str:
    """The texts that stand in for attachments, once; one that is not there keeps its name, which is its digest."""
    known = {f"{ATTACHMENT}{digest}": content for digest, content in attachments.items() if isinstance(content, str)}
    if ATTACHMENT not in text or not known:
        return text
    names = re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))))
    size = sum(len(known[found[0]]) for found in names.finditer(text))
    if size > MAX_OBJECT_BYTES:
        raise location.error("attachments that fit in memory", f"{size:,} characters of them", "Remove that sample.")
    return names.sub(lambda found: known[found[0]], text)


def _read_target(value: Any) -> str | None:
    """The right answer; None where there are several, or none."""
    if isinstance(value, list):
        value = value[0] if len(value) == 1 else None
    return value if isinstance(value, str) and value.strip() else None


def _make_task(header: Mapping[str, Any], spec: Mapping[str, Any], seen: Seen) -> LoggedTask:
    plan = read_part(header, "plan")
    config: dict[str, Any] = {}
    for part in (read_part(spec, "model_generate_config"), read_part(plan, "config")):
        config |= {key: value for key, value in part.items() if value is not None}
    settings = {f"generation {name}": _show(config.get(name, "default")) for name in COMPARED_SETTINGS}
    if isinstance(plan.get("steps"), list):
        settings["solver"] = _show([[one.get("solver"), one.get("params")] for one in list_objects(plan["steps"])])
    for key, name in (("task_version", "version of the task"), ("task_args", "arguments of the task")):
        if spec.get(key) is not None:
            settings[name] = _show(spec[key])
    if isinstance(spec.get("scorers"), list):
        settings["scorers"] = _show([[one.get("name"), one.get("options")] for one in list_objects(spec["scorers"])])
    sampled = is_drawn_at(config.get("temperature"))
    if read_part(spec, "model_args").get("do_sample") is False:  # how models of transformers are made greedy
        sampled = False
    counted = _count_items(read_part(header, "results"), spec)
    return LoggedTask(_list_metrics(header, seen), settings, sampled, seen.unread_value_by_metric, counted=counted)


def _count_items(results: Mapping[str, Any], spec: Mapping[str, Any]) -> int | None:
    """Items that Inspect says it evaluated: its samples by its epochs; None where it does not say."""
    total, epochs = results.get("total_samples"), read_part(spec, "config").get("epochs") or 1
    whole = all(isinstance(number, int) and not isinstance(number, bool) and number > 0 for number in (total, epochs))
    return total // epochs if whole and isinstance(total, int) and isinstance(epochs, int) else None


def _show(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(text) <= LONGEST_SETTING:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{text[:LONGEST_SETTING]} ... ({digest})"


def _list_metrics(header: Mapping[str, Any], seen: Seen) -> tuple[str, ...]:
    """Metrics in the order of the results, those first of which a mean was asked for, and others by name."""
    scorers = list_objects(read_part(header, "results").get("scores"))
    listed = [str(one.get("name")) for one in sorted(scorers, key=lambda one: not one.get("metrics"))]
    return order_metrics(sorted(seen.metrics), listed)


read_inspect = Harness(FORM, _list_logs, _read_task)

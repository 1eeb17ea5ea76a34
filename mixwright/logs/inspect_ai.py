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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mixwright.corpus.reading import DECODER, RowLocation, refuse_pointer
from mixwright.errors import InputError
from mixwright.logs.entries import EvaluationLog, LoggedAnswer, LoggedTask
from mixwright.logs.files import (
    HEAD_BYTES,
    MAX_OBJECT_BYTES,
    ZIP_MAGIC,
    find_foreign,
    find_top_keys,
    list_files,
    name_unread,
    read_head,
    read_object_file,
)
from mixwright.logs.values import join_messages, read_mapping, read_name, read_object, read_score
from mixwright.logs.zipped import has_member, read_members

FORM = "Inspect"
VALUE_BY_GRADE = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
HEADER, START, SAMPLES = "header.json", "_journal/start.json", "samples/"
"""Members of an .eval file."""
TOP_KEYS = frozenset({"eval", "status"})
COMPARED_SETTINGS = ("temperature", "top_p", "top_k", "max_tokens", "num_choices", "system_message", "stop_seqs")
COMPARED_SETTINGS += ("frequency_penalty", "presence_penalty", "reasoning_effort", "reasoning_tokens", "effort")
"""Settings of generation that change what is written."""
ATTACHMENT = "attachment://"
CUT_REASONS = ("max_tokens", "model_length")
PART = ("an incomplete log, or another file", "Download it again, or move it away.")
"""What a file is that is called as a log is, and what to do."""
LONGEST_SETTING = 160
"""Characters of a setting that are shown; of a longer one its digest decides whether two are the same."""


def is_inspect(path: Path) -> bool:
    """Whether a file is a log of Inspect, by what it holds."""
    head = read_head(path)
    if head.startswith(ZIP_MAGIC):  # checkpoints are zip files, too
        return path.suffix.lower() == ".eval" or has_member(path, (HEADER, START))
    return find_top_keys(head) >= TOP_KEYS


def find_logs(folder: Path) -> list[Path]:
    """Logs of Inspect in a folder."""
    return [path for path in list_files(folder, _is_log_name) if is_inspect(path)]


def _is_log_name(name: str) -> bool:
    return name.lower().endswith((".eval", ".json", ".json.gz"))


def _refuse_damaged(folder: Path, logs: Sequence[Path]) -> None:
    """Raises InputError for a file that is called as logs are and has no whole JSON, a part of a log, or a pointer to it."""
    for path in sorted({*list_files(folder, _is_log_name)} - {*logs}):
        refuse_pointer(path)
        head = read_head(path)
        is_part = ".json" not in path.name.lower() or find_top_keys(head) & {"eval", "samples"}
        if foreign := find_foreign(path, head) or (PART if is_part or not _may_be_json(head) else None):
            raise InputError("an Inspect log", *foreign, file=path)


def _may_be_json(head: bytes) -> bool:
    """Whether a file is JSON, such as a listing of logs, as far as its beginning shows."""
    try:
        DECODER.decode(head.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return len(head) == HEAD_BYTES
    return True


def read_inspect(source: str) -> EvaluationLog:
    """The log, or all logs of a folder.

    Raises:
        InputError: a damaged file, an evaluation that did not finish, no samples, or two logs of one task.
    """
    path = Path(source)
    files = find_logs(path) if path.is_dir() else [path]
    unread: dict[str, str] = {}
    if path.is_dir():
        _refuse_damaged(path, files)
        others = re.compile(r".*\.(?:eval\.|json\.(?!gz$))")  # copies, and what a download left half-way
        unread = name_unread(path, others.match, files, "NAME.eval or NAME.json")
    tasks: dict[str, LoggedTask] = {}
    answers: list[LoggedAnswer] = []
    models: dict[str, None] = {}
    file_by_task: dict[str, Path] = {}
    for one in files:
        header, samples = _open(one)
        spec = read_object(header.get("eval"), "eval", RowLocation(str(one)))
        task = read_name(spec.get("task"), "eval.task", RowLocation(str(one)))
        if task in file_by_task:
            got = f"task {task!r} in {file_by_task[task].name} and {one.name}"
            raise InputError("one log of each task", got, "Name one of them, or move the other away.", file=path)
        if header.get("status") != "success":
            got = f"status {header.get('status')!r:.40}"
            remedy = "Finish it (inspect eval-retry), because samples do not go missing at random."
            raise InputError("an evaluation that finished", got, remedy, file=one)
        file_by_task[task] = one
        models[str(spec.get("model", ""))[:200]] = None
        unread_value_by_metric: dict[str, str] = {}
        found = [_read_sample(task, sample, location, unread_value_by_metric) for sample, location in samples]
        answers += found
        tasks[task] = _make_task(header, spec, found, unread_value_by_metric)
    return EvaluationLog(
        source, FORM, ", ".join(filter(None, models)), tasks, tuple(answers), tuple(map(str, files)), unread
    )


def _open(path: Path) -> tuple[dict[str, Any], Iterator[tuple[Any, RowLocation]]]:
    """Header and samples of one log."""
    if read_head(path).startswith(ZIP_MAGIC):
        headers = dict(read_members(path, lambda name: name in (HEADER, START)))
        if not headers:
            raise InputError(f"{HEADER} in an Inspect log", "none", "Name an Inspect log.", file=path)
        members = read_members(path, lambda name: name.startswith(SAMPLES) and name.endswith(".json"))
        return headers.get(HEADER) or headers[START], ((sample, RowLocation(f"{path}, {name}")) for name, sample in members)
    log = read_object_file(path)
    samples = log.get("samples")
    if not isinstance(samples, list):
        got = "none" if samples is None else type(samples).__name__
        raise InputError("samples in an Inspect log", got, "Evaluate with samples logged (--log-samples).", file=path)
    return log, ((sample, RowLocation(str(path), row=number)) for number, sample in enumerate(samples, 1))


def _read_sample(task: str, value: Any, location: RowLocation, unread_value_by_metric: dict[str, str]) -> LoggedAnswer:
    sample = read_object(value, "a sample", location)
    attachments = read_mapping(sample.get("attachments"))
    scores: dict[str, float | None] = {}
    readings: dict[str, str] = {}
    given = sample.get("scores")
    if given is None and isinstance(sample.get("score"), dict):  # version 1 of the format
        given = {"score": sample["score"]}
    for name, score in (read_object(given, "scores", location) if given is not None else {}).items():
        record = read_object(score, f"score {name!r:.60}", location)
        for metric, grade in _split_score(str(name), record.get("value")):
            number = VALUE_BY_GRADE.get(grade, read_score(grade)) if isinstance(grade, str) else read_score(grade)
            if isinstance(number, str):
                unread_value_by_metric.setdefault(metric, number)
            scores[metric] = None if isinstance(number, str) else number
            if isinstance(record.get("answer"), str):
                readings[metric] = record["answer"]
    output = read_mapping(sample.get("output"))
    completion, choice = _read_completion(output)
    choices = sample.get("choices")
    usage = read_mapping(output.get("usage"))
    tokens = usage.get("output_tokens")
    prompt = sample.get("input")
    return LoggedAnswer(
        task,
        read_name(sample.get("id"), "id", location),
        scores,
        location,
        sample=f"epoch {read_name(sample.get('epoch', 1), 'epoch', location)}",
        prompt=None if prompt is None else _resolve(join_messages(prompt, "input", location), attachments, location),
        gold=_read_target(sample.get("target")),
        completion=None if completion is None else _resolve(completion, attachments, location),
        readings=readings,
        options=tuple(map(str, choices)) if isinstance(choices, list) else (),
        tokens=tokens if isinstance(tokens, int) else None,
        cut=choice.get("stop_reason") in CUT_REASONS,
    )


def _split_score(name: str, value: Any) -> Iterable[tuple[str, Any]]:
    """(Metric, value) of a score: of one with several named values each by itself."""
    return ((f"{name}.{key}", part) for key, part in value.items()) if isinstance(value, dict) else ((name, value),)


def _read_completion(output: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any]]:
    """What was written, and the choice that it is part of."""
    choices = output.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    if isinstance(output.get("completion"), str):
        return output["completion"], choice
    message = read_mapping(choice.get("message"))
    content = message.get("content")
    if isinstance(content, list):
        texts = [part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)]
        return "\n".join(texts), choice
    return (content if isinstance(content, str) else None), choice


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


def _make_task(
    header: Mapping[str, Any],
    spec: Mapping[str, Any],
    answers: Sequence[LoggedAnswer],
    unread_value_by_metric: Mapping[str, str],
) -> LoggedTask:
    plan = read_mapping(header.get("plan"))
    config: dict[str, Any] = {}
    for part in (spec.get("model_generate_config"), plan.get("config")):
        config |= {key: value for key, value in part.items() if value is not None} if isinstance(part, dict) else {}
    settings = {f"generation {name}": _show(config.get(name, "default")) for name in COMPARED_SETTINGS}
    steps = plan.get("steps")
    if isinstance(steps, list):
        settings["solver"] = _show([[one.get("solver"), one.get("params")] for one in steps if isinstance(one, dict)])
    for key, name in (("task_version", "version of the task"), ("task_args", "arguments of the task")):
        if spec.get(key) is not None:
            settings[name] = _show(spec[key])
    if isinstance(spec.get("scorers"), list):
        settings["scorers"] = _show([[s.get("name"), s.get("options")] for s in spec["scorers"] if isinstance(s, dict)])
    temperature = config.get("temperature")
    sampled = None if not isinstance(temperature, int | float) else temperature > 0
    if read_mapping(spec.get("model_args")).get("do_sample") is False:  # how models of transformers are made greedy
        sampled = False
    counted = _count_items(read_mapping(header.get("results")), spec)
    return LoggedTask(_list_metrics(header, answers), settings, sampled, unread_value_by_metric, counted=counted)


def _count_items(results: Mapping[str, Any], spec: Mapping[str, Any]) -> int | None:
    """Items that Inspect says it evaluated: its samples by its epochs; None where it does not say."""
    total, epochs = results.get("total_samples"), read_mapping(spec.get("config")).get("epochs") or 1
    whole = all(isinstance(number, int) and not isinstance(number, bool) and number > 0 for number in (total, epochs))
    return total // epochs if whole and isinstance(total, int) and isinstance(epochs, int) else None


def _show(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
    if len(text) <= LONGEST_SETTING:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{text[:LONGEST_SETTING]} ... ({digest})"


def _list_metrics(header: Mapping[str, Any], answers: Sequence[LoggedAnswer]) -> tuple[str, ...]:
    """Metrics in the order of the results, those first of which a mean was asked for, and others by name."""
    results = read_mapping(header.get("results"))
    scorers = results.get("scores")
    found = [one for one in scorers if isinstance(one, dict)] if isinstance(scorers, list) else []
    listed = [str(one.get("name")) for one in sorted(found, key=lambda one: not one.get("metrics"))]
    known = sorted({name for answer in answers for name in answer.scores})
    return tuple(sorted(known, key=lambda name: (listed.index(name) if name in listed else len(listed), name)))

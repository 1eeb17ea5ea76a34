"""Body of `mixwright verdict BEFORE AFTER` and `mixwright measure LOG` for evaluation logs: no model, no torch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mixwright.answers.score import measure_answers
from mixwright.answers.table import Answers, ModelJudge
from mixwright.errors import InputError, join_some, one_line, unknown_name
from mixwright.estimates.exclusion import MEAN_LOSS_MARGIN
from mixwright.logs.answers import answers_of
from mixwright.logs.entries import EvaluationLog
from mixwright.logs.found_grader import FoundGrader, find_grader
from mixwright.logs.judged import (
    INCOMPARABLE,
    Comparison,
    JudgedTask,
    find_lacking,
    is_sampled,
    judge_logs,
    judge_one,
)
from mixwright.logs.metrics import add_named, base_of
from mixwright.logs.pairing import group_answers
from mixwright.logs.reading import find_reader, read_log, refuse_unknown_file
from mixwright.measure.model_judge import JUDGE, LABEL
from mixwright.records import Measurement, Observation, cell_key
from mixwright.run.folder import RunFolder, write_json, write_measurements
from mixwright.run.manifest import file_digest, write_manifest
from mixwright.verbs.comparison_folder import clear
from mixwright.verbs.gating import Gating
from mixwright.verbs.judging import JudgedLogs, judge_by_model
from mixwright.verbs.options import Measuring, given_flags, is_server, parse_graders
from mixwright.verbs.output import say
from mixwright.verdict.rules.evidence import LARGEST_CELL_ROWS_SETTING, LEFT_OUT_REASON_SETTING, LEFT_OUT_SETTING

SIDES = ("before", "after")
CHECK = "evaluation log"
"""What `Observation.check` of a note on a log says."""
LONGEST_LINE, MOST_LINES = 1000, 20
"""Characters of a line, or a note, on a log, and lines of one kind: a log may have thousands of tasks."""


def are_logs(before: str, after: str) -> bool:
    """Whether two evaluation logs were named. Raises InputError where one of them is a log and the other is not."""
    found = [find_reader(source) is not None for source in (before, after)]
    for source in (before, after):
        refuse_unknown_file(source)
    if any(found) and not all(found):
        log, other = (before, after) if found[0] else (after, before)
        expected = "two evaluation logs, or two checkpoints"
        is_there = Path(other).exists() or is_server(other)
        got = f"a log, {log}, and {other}{'' if is_there else ', which does not exist'}"
        raise InputError(expected, got, "See docs/logs.md for the forms of logs.")
    return all(found)


def compare_logs(before: str, after: str, measuring: Measuring, folder: RunFolder, gating: Gating) -> Gating:
    """Pair two logs and write what a comparison of two checkpoints writes.

    Args:
        before: log of the model before.
        after: log of the model after.
        measuring: --grader alone means something here: TASK=METRIC.
        folder: where the tables go.
        gating: what the gate will be asked.

    Returns:
        What the gate is to be asked: with the tasks of a protected group in its place.

    Raises:
        InputError: a log is damaged, nothing can be compared, or an option means nothing here; nothing is written then.
    """
    check_log_options(measuring, gating)
    read = (read_log(before), read_log(after))
    metrics = _metrics_of(measuring, read)
    by_model = JudgedLogs(add_named(read, metrics))
    if gating.judge is not None:
        by_model = judge_by_model(by_model.logs, gating, metrics, folder)
    logs = by_model.logs
    margin = MEAN_LOSS_MARGIN if gating.margin_share is None else gating.margin_share
    found = judge_logs(logs[0], logs[1], metrics, margin)
    found = replace(found, caveats=(*found.caveats, *by_model.caveats))
    if not found.judged:
        seen = "; ".join(f"{one.task}: {one.message}" for one in found.caveats)
        remedy = "Evaluate both models in the same way, on the same items; name a threshold for a graded metric."
        if not set(logs[0].tasks) & set(logs[1].tasks):
            seen = f"no task in both ({'; '.join(join_some(sorted(log.tasks)) for log in logs)})"
        raise InputError("items that both logs have and that can be judged", one_line(seen[:600]) or "none", remedy)
    gating = replace(gating, protect=_expand_groups(gating.protect, logs[0]))
    _check_protected(found, gating.protect)
    if measuring.decoding == "sampled" and not found.sampled:
        raise InputError("logs of sampled answers with --sampled", "one answer to each item", "Leave --sampled out.")
    graders = {
        task.name: find_grader(task) if task.metric != JUDGE else "a model judged the answers" for task in found.judged
    }
    _tell_some([words for words, _ in _describe_tasks(found.judged, graders)])
    _tell_some([f"{one.task}: {one.message}" for one in sorted(found.caveats, key=lambda one: not one.prevents_pass)])
    _write(folder, logs, found, graders, by_model.judge)
    by_model.write_rows(folder)
    return gating


def _expand_groups(names: Sequence[str], log: EvaluationLog) -> tuple[str, ...]:
    """Put the tasks of a group in the place of its name."""
    tasks = {name: [task for task, logged in log.tasks.items() if name in logged.groups] for name in names}
    return tuple(dict.fromkeys(task for name in names for task in (tasks[name] if name not in log.tasks else []) or [name]))


def measure_log(source: str, measuring: Measuring) -> list[Measurement]:
    """What one log says of its model, per task and level.

    Raises:
        InputError: the log is damaged, nothing of it can be judged, or an option means nothing here.
    """
    check_log_options(measuring, Gating())
    log = read_log(source)
    metrics = _metrics_of(measuring, [log])
    (log,) = add_named([log], metrics)
    answers_by_task = group_answers(log)
    tried = {name: judge_one(name, log.tasks[name], answers_by_task[name], metrics.get(name)) for name in sorted(log.tasks)}
    judged = [task for task in tried.values() if isinstance(task, JudgedTask)]
    for name, why in tried.items():
        if isinstance(why, str):
            _tell(f"{name} cannot be judged: {why}")
    if not judged:
        raise InputError("answers that were scored as right or wrong", "none", "Log another metric.", file=source)
    for task_name, _, message in find_lacking(log):
        _tell(f"warning: {task_name}: the log {message}")
    for task in judged:
        unscored = sum(answer.scores.get(task.metric) is None for answer in answers_by_task[task.name])
        if unscored:
            _tell(f"warning: {task.name}: {unscored:,} answers have no {task.metric}")
    decoding = "sampled" if is_sampled([log], judged) else "greedy"
    rows: list[Measurement] = []
    for task in judged:
        grader = find_grader(task)
        _tell(f"{task.name}: {len(task.items):,} items, {_describe_judging(task, grader)}")
        found = grader if isinstance(grader, FoundGrader) else None
        rows += measure_answers(answers_of(task, 0, decoding, found, log.form))
    return rows


def _tell(line: str) -> None:
    """Say what has names of a log in it, which may be of any length."""
    say(one_line(line, LONGEST_LINE))


def _tell_some(lines: Sequence[str]) -> None:
    """Say the first lines, and how many more there are."""
    for line in lines[:MOST_LINES]:
        _tell(line)
    if len(lines) > MOST_LINES:
        say(f"and {len(lines) - MOST_LINES:,} more lines of this kind")


def check_log_options(measuring: Measuring, gating: Gating) -> None:
    """Raises InputError for options that mean nothing where nothing is measured."""
    given = [name for name in measuring.given_options() if name not in ("--grader", "--greedy/--sampled")]
    if given := [*given, *(name for name in given_flags(gating) if name in ("--until-decided", "--repeat"))]:
        remedy = "A log was measured already: leave them out. --grader TASK=METRIC chooses among its metrics."
        raise InputError("evaluation logs without options of measuring", ", ".join(given), remedy)


def _metrics_of(measuring: Measuring, logs: Sequence[EvaluationLog]) -> Mapping[str, str]:
    """Task -> the metric that the user named. Raises InputError for a task or a metric that no log has."""
    known = {name: log.tasks[name].metrics for log in logs for name in log.tasks}
    metric_of_all, metric_by_task = parse_graders(measuring.grader, known)
    for task, metric in metric_by_task.items():
        if task not in known:
            raise unknown_name("task of the logs (--grader)", task, known)
        if metric != JUDGE and not any(base_of(metric) in log.tasks[task].metrics for log in logs if task in log.tasks):
            raise unknown_name(f"metric of task {task} (--grader)", metric, known[task])
    return (dict.fromkeys(known, metric_of_all) if metric_of_all is not None else {}) | metric_by_task


def _check_protected(found: Comparison, names: Sequence[str]) -> None:
    """Raises InputError for a protected name that nothing can be said of: a slip of the pen must not open the gate."""
    tasks = (*found.judged, *found.judged_before_alone)
    measured = {name for task in tasks for name in (task.name, *(cell_key(task.name, one.level) for one in task.items))}
    for name in names:
        if name in measured:
            continue
        reasons = [one.message for one in found.caveats if one.task == name]
        if reasons:
            got = one_line(f"{name}: {'; '.join(reasons)}"[:400])
            remedy = "Leave it out of --protect, or name another metric: --grader TASK=METRIC."
            raise InputError("tasks that both logs can be judged on, with --protect", got, remedy)
        raise unknown_name("task or TASK@LEVEL of the logs (--protect)", name, measured)


def _describe_tasks(
    tasks: Sequence[JudgedTask], graders: Mapping[str, FoundGrader | str]
) -> Iterator[tuple[str, Sequence[JudgedTask]]]:
    """Say how tasks are judged, those together that are judged alike."""
    by_words: dict[str, list[JudgedTask]] = defaultdict(list)
    for task in tasks:
        by_words[_describe_judging(task, graders[task.name])].append(task)
    for words, alike in by_words.items():
        count, names = sum(len(task.items) for task in alike), join_some([task.name for task in alike])
        yield f"{names}: {count:,} items, {words}", alike


def _describe_judging(task: JudgedTask, grader: FoundGrader | str) -> str:
    """How a task is judged, and whether S, D and the chance level could be worked out."""
    others = f" (also in the logs: {join_some(task.other_metrics)})" if task.other_metrics else ""
    head = f"judged by {task.metric}{others}"
    if isinstance(grader, str):
        return f"{head}; the chance level is not known, because {grader}"
    text = " on the extracted answer" if grader.basis == "reading" else ""
    agrees = f", which agrees with {grader.agreement:.1%} of the scores" if grader.agreement < 1 else ""
    return f"{head}; chance level by grader {grader.name}{text}{agrees}"


def _write(
    folder: RunFolder,
    logs: Sequence[EvaluationLog],
    found: Comparison,
    graders: Mapping[str, FoundGrader | str],
    judge: ModelJudge | None,
) -> None:
    """Write manifest, both tables, the completions and the notes; nothing of an earlier comparison stays."""
    decoding = "sampled" if found.sampled else "greedy"
    found_graders = {name: grader for name, grader in graders.items() if isinstance(grader, FoundGrader)}
    sides: list[Answers] = []
    for side, log in enumerate(logs):
        tasks = (*found.judged, *(found.judged_before_alone if side == 0 else ()))
        first, *others = [answers_of(task, side, decoding, found_graders.get(task.name), log.form) for task in tasks]
        answers = first.followed_by(*others)
        own = None if judge is None else replace(judge, labels=_labels_of(tasks, side))
        sides.append(replace(answers, header=replace(answers.header, judge=own)))
    left_out = sorted({one.task for one in found.caveats if one.prevents_pass})
    reason = ", or ".join(dict.fromkeys(one.reason for one in found.caveats if one.prevents_pass))
    largest = max(max(Counter(item.level for item in task.items).values()) for task in found.judged)
    settings = {
        "checkpoint after": logs[1].source,
        # `log before` tells the page that these are logs (`verdict/rules/next_steps.py`)
        **{f"log {when}": ", ".join(filter(None, (log.form, log.model))) for when, log in zip(SIDES, logs, strict=True)},
        "metrics": {task.name: task.metric for task in found.judged},
        "items": largest,
        LARGEST_CELL_ROWS_SETTING: largest,
        **({LEFT_OUT_SETTING: left_out, LEFT_OUT_REASON_SETTING: reason} if left_out else {}),
    }
    inputs = {
        f"{when}: {Path(file).name}": file_digest(Path(file))
        for when, log in zip(SIDES, logs, strict=True)
        for file in log.files
    }
    with folder.lock():
        clear(folder)  # first of all: what is killed half-way must not be judged with an older half
        folder.settings.unlink(missing_ok=True)  # of an earlier comparison of checkpoints
        write_manifest(folder, inputs, logs[0].source, settings=settings, seeds={})
        for when, answers in zip(SIDES, sides, strict=True):
            answers.write(folder.answers(when))
            write_measurements(folder.measurements(when), measure_answers(answers))
        listed = _list_notes(logs, found, graders)
        write_json(folder.notes, [replace(note, message=one_line(note.message, LONGEST_LINE)) for note in listed])


def _labels_of(tasks: Sequence[JudgedTask], side: int) -> dict[str, float]:
    """Item -> mean label of its answers, where all of them have one."""
    items = [item for task in tasks if task.metric == JUDGE for item in task.items]
    labels = {item.id: [answer.scores.get(LABEL) for answer in item.answers[side]] for item in items}
    return {name: sum(label or 0.0 for label in own) / len(own) for name, own in labels.items() if None not in own}


def _list_notes(
    logs: Sequence[EvaluationLog], found: Comparison, graders: Mapping[str, FoundGrader | str]
) -> Iterable[Observation]:
    """What a reader of the page has to know of the logs: what blocks first."""
    for one in sorted(found.caveats, key=lambda one: not one.prevents_pass):
        severity = "warning" if one.prevents_pass else "info"
        remedy = "Evaluate both models in the same way." if one.prevents_pass and one.reason == INCOMPARABLE else ""
        name = one.task if any(one.task in log.unread for log in logs) else f"task {one.task}"
        yield Observation(CHECK, one.task, severity, one.count, one.count, f"{name}: {one.message}", remedy)
    for words, tasks in _describe_tasks(found.judged, graders):
        count, only = sum(len(task.items) for task in tasks), tasks[0].name if len(tasks) == 1 else None
        yield Observation(CHECK, only, "info", count, count, f"{'task' if only else 'tasks'} {words}", "")
    decodings = {task.name: {log.tasks[task.name].sampled for log in logs} for task in found.judged}
    kind = False if found.sampled else None
    unlike = [name for name, told in decodings.items() if kind in told]
    if unlike:
        message = f"the logs do not say how answers of {join_some(unlike)} were decoded; they are read as greedy ones"
        if found.sampled:
            message = f"answers of {join_some(unlike)} are greedy, and those of other tasks are sampled"
        yield Observation(CHECK, None, "info", len(unlike), len(found.judged), message, "")

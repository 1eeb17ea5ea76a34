"""Body of `mixwright verdict BEFORE AFTER` and `mixwright measure LOG` for evaluation logs: no model, no torch."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mixwright.answers.score import measure_answers
from mixwright.answers.table import Answers
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
    find_unscored,
    is_sampled,
    judge_logs,
    judge_one,
)
from mixwright.logs.metrics import PARTIAL_CREDIT
from mixwright.logs.pairing import group_answers
from mixwright.logs.reading import find_reader, read_log, refuse_unknown_file
from mixwright.measure.notes import write_notes
from mixwright.records import Measurement, Observation, cell_key
from mixwright.run.folder import RunFolder, write_measurements
from mixwright.run.manifest import file_digest, note_run, settings_file
from mixwright.verbs.comparison_folder import check_folder, clear
from mixwright.verbs.gating import Gating
from mixwright.verbs.options import Measuring, parse_graders
from mixwright.verbs.output import say
from mixwright.verdict.rules.evidence import LARGEST_CELL_ROWS_SETTING, LEFT_OUT_REASON_SETTING, LEFT_OUT_SETTING

SIDES = ("before", "after")
CHECK = "evaluation log"
"""What `Observation.check` of a note on a log says."""
LONGEST_LINE = 1000
"""Characters of a line, or a note, on a log."""


def are_logs(before: str, after: str) -> bool:
    """Whether two evaluation logs were named. Raises InputError where one of them is a log and the other is not."""
    found = [find_reader(source) is not None for source in (before, after)]
    for source in (before, after):
        refuse_unknown_file(source)
    if any(found) and not all(found):
        log, other = (before, after) if found[0] else (after, before)
        expected = "two evaluation logs, or two checkpoints"
        raise InputError(expected, f"a log, {log}, and {other}", "See docs/logs.md for the forms of logs.")
    return all(found)


def compare_logs(before: str, after: str, measuring: Measuring, folder: RunFolder, gating: Gating) -> None:
    """Pair two logs and write what a comparison of two checkpoints writes.

    Args:
        before: log of the model before.
        after: log of the model after.
        measuring: --grader alone means something here: TASK=METRIC.
        folder: where the tables go.
        gating: what the gate will be asked.

    Raises:
        InputError: a log is damaged, nothing can be compared, or an option means nothing here; nothing is written then.
    """
    check_folder(folder)
    check_log_options(measuring, gating)
    logs = (read_log(before), read_log(after))
    margin = MEAN_LOSS_MARGIN if gating.margin_share is None else gating.margin_share
    found = judge_logs(*logs, _metrics_of(measuring, logs), margin)
    if not found.judged:
        seen = "; ".join(
            f"{one.task}: {one.message}" for one in found.caveats if one.prevents_pass or len(found.caveats) == 1
        )
        remedy = "Evaluate both models in the same way, on the same items."
        if not set(logs[0].tasks) & set(logs[1].tasks):
            names = [join_some(sorted(log.tasks)) for log in logs]
            seen, remedy = f"no task in both ({names[0]}; {names[1]})", "Evaluate both models on the same tasks."
        elif all(PARTIAL_CREDIT in one.message for one in found.caveats):
            remedy = "Log a metric of 1 and 0 for both models."
        raise InputError("items that both logs have and that can be judged", one_line(seen[:600]) or "none", remedy)
    _check_protected(found, gating.protect)
    if measuring.decoding == "sampled" and not found.sampled:
        raise InputError("logs of sampled answers with --sampled", "one answer to each item", "Leave --sampled out.")
    graders = {task.name: find_grader(task) for task in found.judged}
    for line in (*_describe_tasks(found, graders), *(f"{one.task}: {one.message}" for one in found.caveats)):
        _tell(line)
    _write(folder, logs, found, graders)


def measure_log(source: str, measuring: Measuring) -> list[Measurement]:
    """What one log says of its model, per task and level.

    Raises:
        InputError: the log is damaged, nothing of it can be judged, or an option means nothing here.
    """
    check_log_options(measuring, Gating())
    log = read_log(source)
    metrics = _metrics_of(measuring, [log])
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
        items, beside = find_unscored(task, answers_by_task[task.name])
        if items or beside:
            unscored = f"{items:,} items have no {task.metric}; {beside:,} answers have none where others of their item do"
            _tell(f"warning: {task.name}: {unscored}")
    decoding = "sampled" if is_sampled([log], judged) else "greedy"
    rows: list[Measurement] = []
    for task in judged:
        grader = find_grader(task)
        _tell(_describe_task(task, grader))
        found = grader if isinstance(grader, FoundGrader) else None
        rows += measure_answers(answers_of(task, 0, decoding, found, log.form))
    return rows


def _tell(line: str) -> None:
    """Say what has names of a log in it, which may be of any length."""
    say(one_line(line, LONGEST_LINE))


def check_log_options(measuring: Measuring, gating: Gating) -> None:
    """Raises InputError for options that mean nothing where nothing is measured."""
    given = [name for name in measuring.given_options() if name not in ("--grader", "--greedy/--sampled")]
    given += ["--eval"] if measuring.held_out is not None else []
    taken = {"--until-decided": gating.until_decided, "--beside": gating.beside}
    given += [name for name, value in taken.items() if value]
    if given:
        remedy = "A log was measured already: leave them out. --grader TASK=METRIC chooses among its metrics."
        raise InputError("evaluation logs without options of measuring", ", ".join(given), remedy)


def _metrics_of(measuring: Measuring, logs: Sequence[EvaluationLog]) -> Mapping[str, str]:
    """Task -> the metric that the user named. Raises InputError for a task or a metric that no log has."""
    known = {name: log.tasks[name].metrics for log in logs for name in log.tasks}
    metric_of_all, metric_by_task = parse_graders(measuring.grader, known)
    for task in metric_by_task:
        if task not in known:
            raise unknown_name("task of the logs (--grader)", task, known)
    chosen = dict.fromkeys(known, metric_of_all) if metric_of_all is not None else {}
    chosen |= metric_by_task
    for task, metric in metric_by_task.items():
        if not any(metric in log.tasks[task].metrics for log in logs if task in log.tasks):
            raise unknown_name(f"metric of task {task} (--grader)", metric, known[task])
    return chosen


def _check_protected(found: Comparison, names: Sequence[str]) -> None:
    """Raises InputError for a protected name that nothing can be said of: a slip of the pen must not open the gate."""
    measured = {name for task in (*found.judged, *found.judged_before_alone) for name in _names_of(task)}
    for name in names:
        if name in measured:
            continue
        reasons = [one.message for one in found.caveats if one.task == name]
        if reasons:
            got = one_line(f"{name}: {'; '.join(reasons)}"[:400])
            remedy = "Leave it out of --protect, or name another metric: --grader TASK=METRIC."
            raise InputError("tasks that both logs can be judged on, with --protect", got, remedy)
        raise unknown_name("task or TASK@LEVEL of the logs (--protect)", name, measured)


def _names_of(task: JudgedTask) -> Iterable[str]:
    return {task.name, *(cell_key(task.name, item.level) for item in task.items)}


def _describe_tasks(found: Comparison, graders: Mapping[str, FoundGrader | str]) -> list[str]:
    return [_describe_task(task, graders[task.name]) for task in found.judged]


def _describe_task(task: JudgedTask, grader: FoundGrader | str) -> str:
    return f"{task.name}: {len(task.items):,} items, {_describe_judging(task, grader)}"


def _describe_judging(task: JudgedTask, grader: FoundGrader | str) -> str:
    """How a task is judged, and whether S, D and the chance level could be worked out."""
    others = f" (also in the logs: {join_some(task.other_metrics)})" if task.other_metrics else ""
    head = f"judged by {task.metric}{others}"
    if isinstance(grader, str):
        return f"{head}; the chance level is not known, because {grader}"
    text = "the extracted answer" if grader.basis == "reading" else "the whole completion"
    how = f"chance level by grader {grader.name}, which agrees with {grader.agreement:.1%} of the scores (it reads {text})"
    return f"{head}; {how}"


def _write(
    folder: RunFolder, logs: Sequence[EvaluationLog], found: Comparison, graders: Mapping[str, FoundGrader | str]
) -> None:
    """Write manifest, both tables, the completions and the notes; nothing of an earlier comparison stays."""
    decoding = "sampled" if found.sampled else "greedy"
    sides: list[Answers] = []
    for side, log in enumerate(logs):
        of_tasks: list[Answers] = []
        for task in found.judged:
            grader = graders[task.name]
            of_tasks.append(answers_of(task, side, decoding, grader if isinstance(grader, FoundGrader) else None, log.form))
        alone = found.judged_before_alone if side == 0 else ()
        first, *others = [*of_tasks, *(answers_of(task, 0, decoding, None, log.form) for task in alone)]
        sides.append(first.followed_by(*others))
    left_out = sorted({one.task for one in found.caveats if one.prevents_pass})
    reasons = dict.fromkeys(one.reason for one in found.caveats if one.prevents_pass)
    reason = ", or ".join(reasons)
    largest = max(len(list(items)) for task in found.judged for items in _cells_of(task))
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
        settings_file(folder).unlink(missing_ok=True)  # of an earlier comparison of checkpoints
        note_run(folder, inputs, logs[0].source, settings=settings, seeds={})
        for when, answers in zip(SIDES, sides, strict=True):
            answers.write(folder.answers(when))
            write_measurements(folder.measurements(when), measure_answers(answers))
        listed = _list_notes(logs, found, graders)
        write_notes(folder, [replace(note, message=one_line(note.message, LONGEST_LINE)) for note in listed])


def _cells_of(task: JudgedTask) -> Iterable[Iterable[object]]:
    ordered = sorted(task.items, key=lambda item: (item.level is not None, item.level or 0.0))
    return [list(items) for _, items in itertools.groupby(ordered, key=lambda item: item.level)]


def _list_notes(
    logs: Sequence[EvaluationLog], found: Comparison, graders: Mapping[str, FoundGrader | str]
) -> Iterable[Observation]:
    """What a reader of the page has to know of the logs: what blocks first."""
    for one in sorted(found.caveats, key=lambda one: not one.prevents_pass):
        severity = "warning" if one.prevents_pass else "info"
        remedy = "Evaluate both models in the same way." if one.prevents_pass and one.reason == INCOMPARABLE else ""
        name = one.task if any(one.task in log.unread for log in logs) else f"task {one.task}"
        yield Observation(CHECK, one.task, severity, one.count, one.count, f"{name}: {one.message}", remedy)
    tasks_by_words: dict[str, list[JudgedTask]] = defaultdict(list)
    for task in found.judged:
        tasks_by_words[_describe_judging(task, graders[task.name])].append(task)
    for words, tasks in tasks_by_words.items():
        count, names = sum(len(task.items) for task in tasks), join_some([task.name for task in tasks])
        only, kind = (tasks[0].name, "task") if len(tasks) == 1 else (None, "tasks")
        yield Observation(CHECK, only, "info", count, count, f"{kind} {names}: {count:,} items, {words}", "")
    drawn = [task.name for task in found.judged if any(log.tasks[task.name].sampled is False for log in logs)]
    if drawn and found.sampled:
        message = f"answers of {join_some(drawn)} are greedy, and those of other tasks are sampled"
        yield Observation(CHECK, None, "info", len(drawn), len(found.judged), message, "")
    unknown = [task.name for task in found.judged if any(log.tasks[task.name].sampled is None for log in logs)]
    if unknown and not found.sampled:
        message = f"the logs do not say how answers of {join_some(unknown)} were decoded; they are read as greedy ones"
        yield Observation(CHECK, None, "info", len(unknown), len(found.judged), message, "")
    uneven = [task.name for task in found.judged if len({len(one) for item in task.items for one in item.answers}) > 1]
    if uneven:
        message = f"items of {join_some(uneven)} have different numbers of answers; each item counts once"
        yield Observation(CHECK, None, "info", len(uneven), len(found.judged), message, "")

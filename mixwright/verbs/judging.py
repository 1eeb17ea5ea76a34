"""Option `--judge` of `verdict`: answers that no metric judges are judged by a model, and by labels of the user.

A judge alone passes nothing, because nobody knows its errors. The user labels a random sample of the items, both answers to
each, which corrects the change (`estimates/labelled.py`). Which items count is decided here, by their names: labels of items
that were chosen by what the judge said pass a damaged model. Labels belong to texts: those of other answers do not count.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mixwright.answers.table import ModelJudge
from mixwright.corpus.reading import read_number
from mixwright.errors import InputError
from mixwright.estimates.cell_states import MIN_ITEMS
from mixwright.logs.entries import EvaluationLog, LoggedAnswer
from mixwright.logs.files import read_log_rows
from mixwright.logs.judged import MAX_LOST_SHARE, Caveat
from mixwright.logs.metrics import choose_metric
from mixwright.logs.pairing import collect_items, group_answers
from mixwright.logs.values import read_name, read_object, read_text
from mixwright.measure.model_judge import JUDGE, LABEL, RUBRIC, UNLABELLED, ask_command, digest, make_message, read_grade
from mixwright.measure.served import Asking, Reply, find_model
from mixwright.records import Example
from mixwright.run.folder import RunFolder, write_text
from mixwright.verbs.gating import Gating
from mixwright.verbs.options import is_server
from mixwright.verbs.output import say
from mixwright.verbs.serving import ask_what_lacks, name_folder

LABELS_FILE, SAMPLE, MAX_TOKENS = "to_label.jsonl", 50, 1024
"""File for the user's labels in the folder, items in it, and the longest reply of a served judge."""
Label = tuple[str, str, str]
"""Task, item and answer."""


@dataclass(frozen=True)
class JudgedLogs:
    """Logs with the grades of a judge."""

    logs: tuple[EvaluationLog, ...]
    """Both, with the metrics `JUDGE` and `LABEL`."""
    judge: ModelJudge | None = None
    """Who judged, without labels; None where metrics did."""
    caveats: tuple[Caveat, ...] = ()
    """What a reader has to know of it."""
    to_label: str = ""
    """Rows for the user to label; empty if all labels are there."""

    def write_rows(self, folder: RunFolder) -> None:
        """Write the rows that lack a label."""
        if self.to_label:
            write_text(folder.path / LABELS_FILE, self.to_label)
            say(f"judge: to correct its errors, write 1 (passes) or 0 as every label in {folder.path / LABELS_FILE}")
            say("judge: then repeat the command; with another folder, add --judge-labels FILE")


def judge_by_model(
    logs: tuple[EvaluationLog, ...], gating: Gating, named: Mapping[str, str], folder: RunFolder
) -> JudgedLogs:
    """Have a model judge the tasks of two logs that no metric judges, or that the user named.

    Args:
        logs: before and after.
        gating: the judge, what it passes, and the labels.
        named: task -> metric that the user named.
        folder: of the comparison.

    Raises:
        InputError: no task, the judge fails or judges nothing, or a damaged file of labels.
    """
    by_task = [group_answers(log) for log in logs]
    tasks = [task for task in sorted(by_task[0].keys() & by_task[1].keys()) if _is_for_judge(task, logs, by_task, named)]
    rubric = RUBRIC if gating.judge_rubric is None else read_rubric(gating.judge_rubric)
    asked_of = [one for log in logs for one in log.answers if one.task in tasks and one.completion]
    rows = {_key(one): {"key": _key(one), **_describe(one), "rubric": rubric} for one in asked_of}
    if not rows:
        remedy = f"Name a task whose log has completions: --grader TASK={JUDGE}."
        raise InputError("answers for --judge that no metric judges", "none", remedy)
    name, grades = _ask(gating, list(rows.values()), rubric)
    if all(grades.get(key) is None for key in rows):
        raise InputError(f"verdicts of {name}", f"none in {len(rows):,} replies", "Look at what it replies.")
    own = folder.path / LABELS_FILE
    path = gating.judge_labels or (own if own.is_file() else None)
    labels = {} if path is None else read_labels(path, tasks)
    caveats, sample_rows, done = list[Caveat](), list[dict[str, object]](), set[str]()
    counted: dict[Label, float | None] = {}
    for task in tasks:
        sides = [{name: item.answers[0] for name, item in collect_items(answers[task]).items()} for answers in by_task]
        drawn, in_file = _draw(task, sides), {item for own_task, item, _ in labels if own_task == task}
        known = next((place for place, item in enumerate(drawn) if item not in in_file), len(drawn))
        sample = drawn[: max(gating.judge_sample or SAMPLE, known)]
        asked = {(task, item, one.completion or ""): one for item in sample for side in sides for one in side[item]}
        counted |= {label: labels.get(label) for label in asked}
        missing = [label for label in asked if counted[label] is None]
        sample_rows += [_describe(one) | {"label": labels.get(label)} for label, one in asked.items()]
        others = [label for label in labels if label[0] == task and label not in asked]  # kept, and not counted
        sample_rows += [dict(zip(("task", "id", "answer"), one, strict=True)) | {"label": labels[one]} for one in others]
        if missing or len(sample) < MIN_ITEMS:
            message = f"judged by {name} alone; labels are missing for {len(missing):,} of {len(asked):,} sampled answers"
            caveats.append(Caveat(task, len(missing), message, prevents_pass=True, reason=UNLABELLED))
        else:
            done.add(task)
            agreed = sum(grades.get(_key(one)) == counted[label] for label, one in asked.items())
            message = f"judged by {name}, which agrees with {agreed:,} of {len(asked):,} labels"
            message += "; these correct the change, not the shares before and after"
            caveats.append(Caveat(task, len(sample), message, prevents_pass=False))
        for when, side in zip(("before", "after"), by_task, strict=True):
            unjudged = sum(grades.get(_key(one)) is None for one in side[task])
            if unjudged > MAX_LOST_SHARE * len(side[task]):
                message = f"answers {when} that the judge gave no verdict on: {unjudged:,} of {len(side[task]):,}"
                caveats.append(Caveat(task, unjudged, message, prevents_pass=True))
    graded = tuple(_with_grades(log, tasks, grades, counted, done) for log in logs)
    sample_rows.sort(key=lambda row: digest(str(row["id"]), str(row["answer"])))  # the side does not show
    lines = "".join(json.dumps(row) + "\n" for row in sample_rows)
    lines = lines if done != set(tasks) else ""
    return JudgedLogs(graded, ModelJudge(name, digest(rubric), tuple(tasks)), tuple(caveats), lines)


def _is_for_judge(
    task: str,
    logs: Sequence[EvaluationLog],
    answers: Sequence[Mapping[str, Sequence[LoggedAnswer]]],
    named: Mapping[str, str],
) -> bool:
    if task in named:
        return named[task] == JUDGE
    return choose_metric([log.tasks[task] for log in logs], [own[task] for own in answers]).metric is None


def _ask(gating: Gating, rows: Sequence[Mapping[str, str]], rubric: str) -> tuple[str, dict[str, float | None]]:
    """Return the judge's name and the grade of each key."""
    source = gating.judge or ""
    say(f"judge: {len(rows):,} different answers for {source}")
    if not is_server(source):
        return source, ask_command(source, rows)
    asking = Asking(source.rstrip("/"), gating.judge_model or find_model(source, "--judge-model"), MAX_TOKENS)
    items = tuple(
        Example(row["key"], row["task"], make_message(rubric, row["prompt"], row["reference"], row["answer"]))
        for row in rows
    )
    replies = ask_what_lacks(asking, name_folder(asking), items)
    grades = {key: read_grade(reply.text) if isinstance(reply, Reply) else None for (_, key, _), reply in replies.items()}
    return f"{asking.model} at {asking.url}", grades


def read_rubric(path: Path) -> str:
    """Return what passes, in the user's words. Raises InputError for a file that is no text."""
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("a file with a rubric (--judge-rubric)", str(error)[:120], "Correct it.", file=path) from None


def read_labels(path: Path, tasks: Sequence[str]) -> dict[Label, float | None]:
    """Return the label of each row; None where it is not filled in. Raises InputError with file and line."""
    labels: dict[Label, float | None] = {}
    for value, location in read_log_rows(path):
        row = read_object(value, "a row with id, answer and label", location)
        task = read_name(row.get("task", tasks[0] if len(tasks) == 1 else None), "task", location)
        key = (task, read_name(row.get("id"), "id", location), read_text(row.get("answer"), "answer", location))
        label = row.get("label")
        number = (
            None if label is None else float(label) if isinstance(label, bool) else read_number(label, "label", location)
        )
        if key in labels or not (number is None or 0 <= number <= 1):
            got = f"item {key[1]!r}: {'the same answer twice' if key in labels else f'{number:g}'}"
            raise location.error("one label from 0 to 1 for each answer", got, "Correct it.")
        labels[key] = number
    return labels


def _draw(task: str, sides: Sequence[Mapping[str, object]]) -> list[str]:
    """Return items that both sides have, in an order that nothing of their answers decides."""
    return sorted(sides[0].keys() & sides[1].keys(), key=lambda item: digest(task, item))


def _describe(answer: LoggedAnswer) -> dict[str, str]:
    """Return an answer as a command, or the user, reads it."""
    row = {"task": answer.task, "id": answer.item, "prompt": answer.prompt or ""}
    return row | {"reference": answer.gold or "", "answer": answer.completion or ""}


def _key(answer: LoggedAnswer) -> str:
    """Return what tells different answers apart: the same text to the same prompt is judged once."""
    return digest(answer.task, answer.prompt or answer.item, answer.gold or "", answer.completion or "")


def _with_grades(
    log: EvaluationLog,
    tasks: Sequence[str],
    grades: Mapping[str, float | None],
    labels: Mapping[Label, float | None],
    labelled_tasks: set[str],
) -> EvaluationLog:
    answers = []
    for answer in log.answers:
        if answer.task in tasks:
            scores = {**answer.scores, JUDGE: grades.get(_key(answer))}
            if answer.task in labelled_tasks:
                scores[LABEL] = labels.get((answer.task, answer.item, answer.completion or ""))
            answer = replace(answer, scores=scores)
        answers.append(answer)
    found = {
        name: replace(task, metrics=(*task.metrics, JUDGE)) if name in tasks else task for name, task in log.tasks.items()
    }
    return replace(log, answers=tuple(answers), tasks=found)

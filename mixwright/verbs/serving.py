"""Models behind a server for `measure` and `verdict`: their answers become an evaluation log, which is judged as any other.

Answers are kept as they come, in a folder named after the model and its settings, so that the same command continues after
a stop. Grades are not kept: they are computed again from the answers.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mixwright.config import MeasureConfig
from mixwright.corpus import Corpus
from mixwright.corpus.chosen_graders import FirstAnswer
from mixwright.corpus.graded import Graded
from mixwright.corpus.timed_grades import TimedGrades
from mixwright.errors import InputError, join_some
from mixwright.logs.reading import find_reader
from mixwright.measure.first_answers import ITEMS_PER_TASK, choose_graders
from mixwright.measure.passes import Passes, evenly_spread
from mixwright.measure.room import keep_fitting_corpus
from mixwright.measure.served import TRIED_PROMPTS, Asking, Key, Reply, Request, ServedModel, find_model
from mixwright.records import Example, Text
from mixwright.run.folder import RunFolder, append_lines, check_own_folder, read_json, read_kept, write_json, write_text
from mixwright.run.progress import progress_line, share_line
from mixwright.verbs.direct import load_models, read_rows, usual_items
from mixwright.verbs.gating import Gating
from mixwright.verbs.options import Measuring, is_server, parse_graders
from mixwright.verbs.output import say
from mixwright.verdict.page.text import format_count

MAX_TOKENS, PARALLEL, SAMPLES = 512, 8, 8
"""Longest answer, requests at a time, and answers to an item with --sampled, where nobody asked for another number."""
PLACE = Path("runs") / "served"
"""Where answers are kept."""
ANSWERS, LOG, SETTINGS = "answers.jsonl", "log.jsonl", "asked.json"
CHECKED_ANSWERS = 8
"""Kept answers that are asked for again, before more is asked of what may be another model by now."""
NEEDLESS = ("--batch-size", "--adapter", "--budget")
"""Options of measuring that a server has no use for."""


@dataclass(frozen=True)
class Answered:
    """Items with the answers of one model."""

    folder: Path
    """Where they are kept."""
    items: tuple[Example, ...]
    """In the order of `Passes.items`."""
    corpus: Corpus
    """Whose graders judge."""
    replies: Mapping[Key, Reply | str]
    """Answers; in words why a server gives none to a prompt."""
    samples: int = 0
    """Answers to each item; 0 where they are greedy."""
    temperature: float = 0.0
    """Of the samples."""

    def replies_to(self, item: Example) -> list[Reply | str]:
        """Its answers, by the number of the sample."""
        none = "not asked"
        return [self.replies.get((item.task, item.id, n), none) for n in range(max(self.samples, 1))]


def measure_server(url: str, measuring: Measuring, folder: Path | None) -> str:
    """Have a served model answer the held-out rows; returns the path of the log.

    Args:
        url: of the API.
        measuring: the options.
        folder: for the answers; None takes one that is named after what is asked.

    Raises:
        InputError: an option, the rows or the server cannot be used.
    """
    measuring.check_no_engine("a server")
    answered = _ask_server(url, measuring, _read_rows(measuring), folder)
    return _write_logs([answered], measuring)[0]


def logs_of_sides(before: str, after: str, measuring: Measuring, gating: Gating) -> tuple[str, str]:
    """Logs of two sides, one of which is a server or which a model judges; a side that is a log already stays as it is.

    Args:
        before: address of a server, checkpoint, or log.
        after: the same.
        measuring: the options; `served_model` names the models of the servers in their order, or one for both.
        gating: what the gate will be asked, which decides how many items are needed.

    Raises:
        InputError: as `measure_server`; or too many names of models, or one model twice.
    """
    sides = (before, after)
    servers = [n for n, side in enumerate(sides) if is_server(side)]
    names = measuring.served_model or []
    if len(names) > len(servers):
        expected = f"{len(servers)} names of served models (--served-model)"
        raise InputError(expected, str(len(names)), "Name one for each server.")
    if len(servers) == 2 and len({side.rstrip("/").lower() for side in sides}) == 1 and len(set(names)) != 2:
        remedy = "Name both: --served-model OLD --served-model NEW."
        raise InputError("two models, because BEFORE and AFTER are the same server", "one", remedy)
    if all(n in servers or find_reader(side) is not None for n, side in enumerate(sides)):
        measuring.check_no_engine("servers and logs")
    rows, found = _read_rows(measuring, judged=gating.judge is not None), list[Answered | str]()
    items = gating.choose_items_per_cell(rows.corpus.measured().cells(), measuring.items)
    measuring, own_names = replace(measuring, items=items), iter(names * 2 if len(names) == 1 else names)
    for n, side in enumerate(sides):
        if n in servers:
            name = next(own_names, None)
            found.append(_ask_server(side, replace(measuring, served_model=name and [name]), rows, None))
        else:
            found.append(_ask_checkpoint(side, measuring, rows) if find_reader(side) is None else side)
    answered = [one for one in found if isinstance(one, Answered)]
    for side in found:  # a log that lies where the answers of now are written would be compared with itself
        if isinstance(side, str) and any(Path(side).resolve().is_relative_to(one.folder.resolve()) for one in answered):
            remedy = "Copy the log of the earlier model elsewhere, or compare the two under two names."
            raise InputError("a log outside the folder of the server's answers", side, remedy)
    written = iter(_write_logs(answered, measuring))
    logs = [side if isinstance(side, str) else next(written) for side in found]
    return logs[0], logs[1]


def _read_rows(measuring: Measuring, *, judged: bool = False) -> Graded:
    """The rows of --eval. Raises InputError without it, for options that mean nothing here, and for free text, unless
    `judged` by a model.
    """
    if measuring.held_out is None:
        raise InputError("--eval FILE", "nothing", "Name the rows for the served model to answer.")
    if needless := [name for name in measuring.given_options() if name in NEEDLESS]:
        expected = "a server or a judge without options for loading or timing"
        raise InputError(expected, ", ".join(needless), "Leave them out.")
    for name, value in {"--samples": measuring.samples, "--temperature": measuring.temperature}.items():
        if value is not None and measuring.greedy is not False:
            remedy = f"A server's answers are greedy, or sampled: add --sampled, or leave {name} out."
            raise InputError(f"{name} with --sampled", f"{name} alone", remedy)
    rows = read_rows(measuring, judged=judged)
    if rows.probe is not None:
        raise InputError("answers that can be graded", "none", "Name graders: --grader TASK=NAME.")
    return rows


def _pick_items(rows: Graded, measuring: Measuring) -> tuple[Example, ...]:
    """Those that a checkpoint would be measured on."""
    config = MeasureConfig(items=measuring.items or usual_items(rows.corpus))
    passes = Passes(None, config, rows.corpus)  # type: ignore[arg-type] - no model is read
    picked = passes.picked(lambda _: True) if rows.judged else passes.items
    if measuring.chat_template is False and any(not isinstance(item.prompt, str) for item in picked):
        raise InputError("prompts of plain text, for --no-chat-template", "chat messages", "Leave the option out.")
    return picked


def _ask_server(url: str, measuring: Measuring, rows: Graded, place: Path | None) -> Answered:
    """Answers of a served model: those that are kept, and the others from the server."""
    picked, asking = _pick_items(rows, measuring), _asking_of(url, measuring)
    folder, samples = place or name_folder(asking), (measuring.samples or SAMPLES) if asking.temperature else 0
    replies = ask_what_lacks(asking, folder, picked, samples, measuring.parallel or PARALLEL)
    return Answered(folder, picked, rows.corpus, replies, samples, asking.temperature)


def ask_what_lacks(
    asking: Asking, folder: Path, picked: tuple[Example, ...], samples: int = 0, parallel: int = PARALLEL
) -> dict[Key, Reply | str]:
    """Return the answers to items, those that a folder keeps among them.

    Raises:
        InputError: the server fails, or the folder has other things in it, or answers that were asked for in another way.
    """
    _open_folder(folder, asking)
    with RunFolder(folder).lock(), contextlib.closing(ServedModel(asking)) as served:
        replies = _read_kept(folder / ANSWERS, picked)
        wanted = [Request((item.task, item.id, n), item.prompt) for item in picked for n in range(max(samples, 1))]
        missing = [request for request in wanted if request.key not in replies]
        say(f"server: {asking.url}, model {asking.model}, answers of up to {asking.max_tokens:,} tokens")
        known = [(request, reply) for request in wanted if isinstance(reply := replies.get(request.key), Reply)]
        if known:
            say(f"server: reusing {len(known):,} of {len(wanted):,} answers in {folder}")
        try:
            tried = [*[request for request, _ in known[: TRIED_PROMPTS // 2]], *missing]
            served.try_abilities([request.prompt for request in tried])
            _check_same_model(served, known, folder)
        except InputError as error:
            if missing or error.file == str(folder):
                raise
            say(f"warning: could not check that the server still serves that model: {error}")
        if missing:
            if served.lacking:
                say(f"server: it does not support {join_some(served.lacking)}")
            replies |= _ask(served, missing, folder / ANSWERS, parallel=parallel)
        _say_what_came([replies[request.key] for request in wanted], asking)
        return replies


def _check_same_model(served: ServedModel, known: Sequence[tuple[Request, Reply]], folder: Path) -> None:
    """Raises InputError where the server answers otherwise by now than it did."""
    some = known[:: max(1, len(known) // CHECKED_ANSWERS)][:CHECKED_ANSWERS]
    if changed := served.find_changed(some):
        got = f"different answers to {changed} of {len(some)} repeated prompts"
        remedy = "If the server now has another model, remove that folder or name another (--folder)."
        raise InputError("the same answers as before", got, remedy, file=folder)


def _ask_checkpoint(path: str, measuring: Measuring, rows: Graded) -> Answered:
    """Greedy answers of a checkpoint on this machine, to the same items with the same limit."""
    if measuring.greedy is False:
        remedy = "Put both behind servers, or leave --sampled out."
        raise InputError("greedy answers of a checkpoint beside a server or a judge", "--sampled", remedy)
    picked, limit = _pick_items(rows, measuring), measuring.max_new_tokens or MAX_TOKENS
    (learner,) = load_models((path,), measuring)
    fitting, notes = keep_fitting_corpus([learner], rows.corpus, MeasureConfig(items=len(picked)), limit)
    for note in notes:
        say(f"warning: {note}")
    names = {item.id for item in fitting.measured()}
    asked = [item for item in picked if item.id in names]
    say(f"answers: {path} writes up to {limit:,} tokens each (--max-new-tokens)")
    with share_line(f"answers of {path}, {format_count(len(asked), 'request')}", len(asked)) as show:
        prompts = [item.prompt for item in asked]
        written = learner.sample(prompts, count=1, temperature=0, max_new_tokens=limit, seed=0, progress=show)
    replies = {
        (item.task, item.id, 0): Reply(answer.text, cut=not answer.finished, tokens=len(answer.token_ids))
        for item, (answer,) in zip(asked, written, strict=True)
    }
    return Answered(PLACE / f"checkpoint-{_plain_name(path)}", picked, rows.corpus, dict(replies))


def _asking_of(url: str, measuring: Measuring) -> Asking:
    names = measuring.served_model or [find_model(url)]
    if len(names) > 1:
        raise InputError("one served model", f"{len(names)} names", "Name one.")
    temperature = (1.0 if measuring.temperature is None else measuring.temperature) if measuring.greedy is False else 0.0
    limit = measuring.max_new_tokens or MAX_TOKENS
    is_chat = measuring.chat_template is not False
    return Asking(url.rstrip("/"), names[0], limit, temperature, 0, measuring.system, is_chat, measuring.form.arguments)


def name_folder(asking: Asking) -> Path:
    """Folder of the answers, by the name of the model and a digest of how it is asked."""
    digest = hashlib.sha256(json.dumps(asdict(asking), sort_keys=True).encode()).hexdigest()[:10]
    return PLACE / f"{_plain_name(asking.model)}-{digest}"


def _plain_name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-.")[-50:] or "model"


def _open_folder(folder: Path, asking: Asking) -> None:
    """Raises InputError for a folder with other things, or with answers that were asked for in another way."""
    path = folder / SETTINGS
    if path.is_file():
        known, now = asdict(read_json(path, Asking)), asdict(asking)
        if known != now:
            changed = [name for name in now if known[name] != now[name]]
            expected = "answers with the same settings"
            raise InputError(expected, f"another {join_some(changed)}", "Name another --folder.", file=folder)
    check_own_folder(folder, SETTINGS)
    write_json(path, asking)


def _read_kept(path: Path, items: Sequence[Example]) -> dict[Key, Reply | str]:
    """Answers that are there to the prompts of today; a line that a stop cut counts as not written."""
    prompts = {(item.task, item.id): _digest(item.prompt) for item in items}
    found: dict[Key, Reply | str] = {}
    for row in read_kept(path):
        with contextlib.suppress(KeyError, TypeError):
            if prompts.get((row["task"], row["id"])) == row["prompt"]:
                found[row["task"], row["id"], row["sample"]] = Reply(**row["reply"])
    return found


def _digest(prompt: Text) -> str:
    return hashlib.sha256(json.dumps(prompt, sort_keys=True).encode()).hexdigest()[:16]


def _ask(served: ServedModel, requests: Sequence[Request], path: Path, *, parallel: int) -> dict[Key, Reply | str]:
    """Ask, keep each answer as it comes, and say how long the rest takes."""
    began, found = time.monotonic(), dict[Key, Reply | str]()
    shown = {parallel, *(-(-len(requests) * part // 10) for part in range(1, 11))}
    with progress_line("answers") as progress:
        for request, reply in served.answer(requests, parallel=parallel):
            found[request.key] = reply
            if isinstance(reply, Reply):  # what the server cannot answer is asked again by the next command
                task, item, sample = request.key
                line = {"task": task, "id": item, "sample": sample, "prompt": _digest(request.prompt)}
                append_lines(path, [json.dumps(line | {"reply": asdict(reply)})])
            if len(found) in shown:
                seconds_left = (time.monotonic() - began) / len(found) * (len(requests) - len(found))
                progress(len(found), len(requests), seconds_left)
    seconds = time.monotonic() - began
    say(f"server: {len(found):,} answers in {seconds:.0f} s ({len(found) / max(seconds, 1e-9):.1f} a second)")
    return found


def _say_what_came(replies: Sequence[Reply | str], asking: Asking) -> None:
    """Report cut, refused, empty and missing answers."""
    answered = [reply for reply in replies if isinstance(reply, Reply)]
    unanswered = [reply for reply in replies if isinstance(reply, str)]
    counts = {
        f"cut at {asking.max_tokens:,} tokens": sum(reply.cut for reply in answered),
        "refused or filtered": sum(reply.refused for reply in answered),
        "empty": sum(not reply.text.strip() for reply in answered),
    }
    problems = ", ".join(f"{count:,} {problem}" for problem, count in counts.items() if count)
    say(f"server: {len(answered):,} answers, {problems or 'none cut, refused or empty'}")
    if unanswered:
        say(f"warning: the server does not answer {len(unanswered):,} prompts; the first error: {unanswered[0]}")


def _write_logs(sides: Sequence[Answered], measuring: Measuring) -> list[str]:
    """The answers as logs, judged by the graders that were named, or that the first side's answers ask for."""
    graders = _choose_graders(sides[0], measuring)
    paths: list[str] = []
    for side in sides:
        corpus = side.corpus.with_graders(graders) if graders else side.corpus
        write_text(side.folder / LOG, "".join(f"{line}\n" for line in _log_lines(side, corpus)))
        paths.append(str(side.folder / LOG))
    return paths


def _choose_graders(side: Answered, measuring: Measuring) -> dict[str, str]:
    """Task -> the grader that a model's first answers ask for, where nobody named one."""
    grader_of_all, grader_by_task = parse_graders(measuring.grader)
    gradable = {item.task for item in side.items if item.answer is not None}
    tasks = [name for name in side.corpus.tasks if grader_of_all is None and name in gradable - grader_by_task.keys()]
    answers: list[FirstAnswer] = []
    for name in tasks:
        for item in evenly_spread([item for item in side.items if item.task == name], ITEMS_PER_TASK):
            if isinstance(reply := side.replies_to(item)[0], Reply):
                answers.append(FirstAnswer(item, reply.text, reply.cut))
    choices = choose_graders(side.corpus, tasks, answers)
    for line in (line for choice in choices for line in choice.describe()):
        say(line)
    return {choice.task: choice.grader for choice in choices if choice.changed}


def _log_lines(side: Answered, corpus: Corpus) -> list[str]:
    """A line of JSON per answer, in the order of the items."""
    grades, lines = TimedGrades(corpus, MeasureConfig().grader_seconds, "wrong"), list[str]()
    for item in side.items:
        for sample, reply in enumerate(side.replies_to(item)):
            options, score = item.extra.get("options"), None
            row: dict[str, Any] = {"task": item.task, "id": item.id, "prompt": item.prompt, "answer": item.answer}
            row |= {"level": item.level, "sample": sample if side.samples else None, "temperature": side.temperature}
            row |= {"options": options if isinstance(options, list) else None}
            if isinstance(reply, Reply):
                if item.answer is not None:  # else a model judges it
                    score = 0.0 if reply.refused else grades.grade(item, reply.text, cut=reply.cut)
                row |= {"completion": reply.text, "cut": reply.cut, "tokens": reply.tokens}
                row |= {"refused": reply.refused or None}
            told = {name: value for name, value in row.items() if value is not None}
            lines.append(json.dumps(told | {"score": score}))
    return lines

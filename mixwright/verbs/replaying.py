"""Body of `mixwright plan MODEL TRAIN`: one file to train on, in which the model's own answers stand among the new rows."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from mixwright.config import CorpusConfig, ModelConfig, PlanConfig, TrainConfig
from mixwright.corpus import Corpus, read_corpus
from mixwright.corpus.columns import INSTRUCTION, NAMES
from mixwright.corpus.corpus import REHEARSE_SPLIT
from mixwright.corpus.masks import is_masked
from mixwright.corpus.reading import messages_in, read_rows
from mixwright.corpus.tool_messages import tools_of
from mixwright.corpus.trainable import check_training, leave_out_bare
from mixwright.errors import InputError
from mixwright.learner.prompt_form import plain_marks
from mixwright.mine.own_answers import rehearsal_rows
from mixwright.plan.mix import as_chat
from mixwright.plan.stage import make_plan
from mixwright.records import Example, Plan, plain
from mixwright.run.folder import RunFolder, check_own_folder, write_json, write_plan, write_text
from mixwright.run.preflight import check_model
from mixwright.suite.draw import REPLAYED, read_requests, write_suite
from mixwright.tool_calls import find_calls, read_tools
from mixwright.verbs import output
from mixwright.verbs.budget import time_left
from mixwright.verbs.direct import load_models
from mixwright.verbs.export import TextHandling, export_plan
from mixwright.verbs.options import Measuring, parse_columns
from mixwright.verbs.planned import Planning, PlanReport, loss_token_shares
from mixwright.verbs.report import table, wrap
from mixwright.verbs.teaching import teaching_lines, watch_teaching
from mixwright.verdict.page.text import format_count

PREFIX = "replay."
"""Begins the names of replayed kinds, which may be called as a task of the user is."""
BATCH, SHARE = 16, 0.25
"""Rows of a step, and share of replay in the rows, where nobody says: a tenth kept half as much (study `general`)."""
MAX_SHARE = 0.5
"""Share of replay at most, as in the planner."""
MAX_USES = 4
"""How often one answer is in the file at most, as in the planner."""
ASKED_PER_ROW = 2
"""Requests that are answered for each row of replay: of a small model a third of the answers is left out."""
USER_ROLES = {"system": "system", "user": "human", "assistant": "gpt"}
"""Role -> its name in rows of from and value."""


def plan_training(
    model: str,
    train: str,
    measuring: Measuring,
    planning: Planning,
    folder: Path | str | RunFolder | None,
    export: str | None,
    export_to: Path | None,
) -> PlanReport:
    """Write `mix.jsonl`, `replay.jsonl` and `plan.yaml`, and say what is in them.

    Args:
        model: the model to train; it answers the requests.
        train: a file of training rows, or a folder with a file for each data set.
        measuring: how the model is loaded.
        planning: the options.
        folder: where the files go; None takes `plan`.
        export: format of another trainer, too.
        export_to: folder of that export.

    Raises:
        InputError: rows without completions, options that do not go together, or a folder with something else in it.
    """
    share, batch = SHARE if planning.share is None else planning.share, planning.batch or BATCH
    folder = folder.path if isinstance(folder, RunFolder) else Path(folder or "plan")
    if not 0 < share <= MAX_SHARE:
        raise InputError(f"--share above 0 and at most {MAX_SHARE:g}", f"{share:g}", "Correct it.")
    if planning.only_replay and planning.replay is None:
        remedy = "Name a file of your own requests, or leave --only-replay out."
        raise InputError("--replay FILE with --only-replay", "no --replay", remedy)
    check_own_folder(folder, "mix.jsonl")
    check_model(ModelConfig(model, measuring.adapter))
    columns = parse_columns(measuring.column)
    raw = {str(location): row for row, location in read_rows(train, "train")}
    for row in filter(lambda row: isinstance(row, dict), raw.values()):  # others are refused below
        row |= {name: messages_in(value) for name, value in row.items()}
    forms = {find_form(row, columns): choose_form(row, columns) for row in raw.values()}
    with_tools = [row for row in raw.values() if read_tools(row.get("tools"))]
    first = next(iter((*with_tools, *raw.values())))
    chat, write_row = any(takes_messages(row, columns) for row in raw.values()), choose_form(first, columns)
    drawn = max(len(raw) / (1 - share), (planning.steps or 0) * batch) * share
    per_kind = math.ceil(ASKED_PER_ROW * drawn / len(REPLAYED))
    requests = [] if planning.only_replay else list(list_requests(per_kind, single=not chat))
    requests = [{**row, **_tools_beside(number, with_tools)} for number, row in enumerate(requests)]
    sources = [str(write_suite(requests))] if requests else []
    sources += (planning.replay or "").splitlines()
    data = CorpusConfig(train, rehearse="\n".join(sources), eval_share=0.0, columns=columns)
    corpus = leave_out_bare(read_corpus(replace(data, task=measuring.task or Path(train).stem)))
    output.say_notes(corpus.notes)
    check_training("sft", corpus, "plan MODEL TRAIN")
    new = list(corpus.select(split="train"))  # held-out ones stay out
    if len(forms) > 1:
        write_row = partial(write_plainly, chat=chat)
        output.say(f"Your rows have {len(forms)} forms, so all of mix.jsonl is prompt and completion.")
    asked = len(corpus.select(split=REHEARSE_SPLIT))
    beside = ", half of the general ones beside your tools" if with_tools and requests else ""
    output.say(f"replay: {model} answers {format_count(asked, 'request')}{beside}")
    (learner,) = load_models((model,), measuring)
    with RunFolder(folder).lock():  # two at once would leave the rows of one and the plan of the other
        limits = {"max_new_tokens": measuring.max_new_tokens or 256, "seconds_left": time_left(measuring.budget)}
        made = rehearsal_rows(corpus, lambda: learner, **limits)
        made = replace(
            made, rows=tuple(row for row in made.rows if not (row.tools and find_calls(plain(row.target), row.tools)))
        )
        output.say_notes(made.notes, "replay")
        if not made.rows:
            remedy = "Raise --max-new-tokens or --budget, or train without replay."
            raise InputError("answers of the model that end within the token limit", f"none of {asked}", remedy)
        steps = planning.steps or math.ceil(len(new) / (1 - share) / batch)
        settings = TrainConfig(objective="sft", steps=steps, prompts=batch)
        corpus = corpus.with_rehearsal(made.rows)
        plan = make_plan(PlanConfig("rehearsal", {"share": share, "most": float(MAX_USES)}), settings, corpus, ())
        replay = draw_replay(plan, made.rows, len(new))
        mixed = [(write_row(row) if len(forms) > 1 else raw[row.source]) | {"task": row.task} for row in new]
        with_ids = len(forms) == 1 and "id" in first  # a trainer under the plan takes an id for every row, or none
        for number, row in enumerate(replay):
            mixed.append(write_row(row) | {"task": row.task} | ({"id": f"{row.id}.{number}"} if with_ids else {}))
        Random(0).shuffle(mixed)
        for name, rows in (("mix", mixed), ("replay", [{"task": row.task} | write_row(row) for row in made.rows])):
            text = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            write_text(folder / f"{name}.jsonl", text)
        write_plan(folder / "plan.yaml", plan)
        shares = loss_token_shares(plan, corpus, settings, learner)
        lines = mixed_lines(corpus, replay, shares, folder, left_out=asked - len(made.rows))
        if len(replay) < (share - 0.01) * len(mixed):
            lines.append(f"Too few answers for {share:.0%}: each is in the file at most {MAX_USES} times.")
        if export is not None:
            text_handling = TextHandling(learner.form, plain_marks(learner.tokenizer))
            lines.append(export_plan(plan, corpus, settings, text_handling, export, export_to or folder / export))
        if planning.minutes is not None:
            teaching = watch_teaching(model, learner, train, sorted({row.task for row in new}), measuring, planning.minutes)
            write_json(folder / "teaching.json", teaching)
            lines += teaching_lines(teaching)
        mix_file, steps_note = folder / "mix.jsonl", f"{format_count(math.ceil(len(mixed) / batch), 'step')} of {batch} rows"
        lines.append(f"Train:  one epoch of {mix_file} is one pass over your rows, {steps_note}; configs: --export trl")
        lines.append(f"Then:   mixwright verdict {model} YOUR_MODEL --trained-on {mix_file}")
        if len(forms) == 1 and any(
            turn.get("from") for turn in first.get(find_column(first, "messages", columns) or "", ())
        ):
            lines += wrap("Your rows name roles as ShareGPT does, and TRL renames none: with TRL, train on --export trl.")
        return PlanReport(plan, lines, folder / "plan.yaml")


def list_requests(per_kind: int, *, single: bool) -> Iterator[dict[str, Any]]:
    """Draw requests of the suite, of each kind as many; `single` leaves out those with a system message or several turns."""
    for kind in REPLAYED:
        rows = [row for row in read_requests(kind) if not single or isinstance(row["prompt"], str)]
        for row in Random(0).sample(rows, min(per_kind, len(rows))):
            yield {"task": f"{PREFIX}{kind}"} | row


def _tools_beside(number: int, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tools of a user's row for every second request: models that see tools in the new rows alone call them
    whatever is asked (study `calls`).
    """
    return {"tools": rows[number % len(rows)]["tools"]} if rows and number % 2 else {}


def find_column(row: Mapping[str, Any], ours: str, columns: Mapping[str, str]) -> str | None:
    """Find the column of a row that has one of our names; None where there is none."""
    names = [columns[ours]] if ours in columns else NAMES[ours]
    return next((name for name in names if name in row), None)


def find_form(row: Mapping[str, Any], columns: Mapping[str, str]) -> tuple[tuple[str, bool], ...]:
    """Return the columns of a row that hold its texts, each with whether it is plain text."""
    names = [find_column(row, ours, columns) for ours in ("messages", "prompt", "target")]
    return tuple((name, isinstance(row[name], str)) for name in names if name is not None)


def write_plainly(example: Example, *, chat: bool) -> dict[str, Any]:
    """Return a row as prompt and completion: messages if any row has some, else plain text.

    Raises:
        InputError: a row with masks, which are not written.
    """
    if is_masked(example):
        remedy = "Plan by files of one form."
        raise InputError("files of one form where rows have masks", "several", remedy, file=example.source)
    prompt, target = example.prompt or "", example.target or ""
    texts = (as_chat(prompt), as_chat(target, "assistant")) if chat else (prompt, target)
    return dict(zip(("prompt", "completion"), texts, strict=True)) | tools_of(example)


def takes_messages(row: Mapping[str, Any], columns: Mapping[str, str]) -> bool:
    """Tell whether rows like this one can hold a chat of several turns."""
    prompt = find_column(row, "prompt", columns)
    return find_column(row, "messages", columns) is not None or (prompt is not None and not isinstance(row[prompt], str))


def choose_form(row: Mapping[str, Any], columns: Mapping[str, str]) -> Any:
    """Return a function that writes an answered request in the columns of a user's row.

    Raises:
        InputError: rows of text alone, in which no request can be told from its answer.
    """
    chat, prompt, target = (find_column(row, name, columns) for name in ("messages", "prompt", "target"))
    task = find_column(row, "task", columns)

    def write(answered: Example) -> dict[str, Any]:
        label = {} if task is None else {task: answered.task}
        if answered.tools:
            label |= tools_of(answered) if isinstance(row.get("tools"), str) else {"tools": answered.tools}
        turns, answer = as_chat(answered.prompt or ""), as_chat(answered.target or "", "assistant")
        if chat is not None:
            messages = [{"role": str(turn["role"]), "content": turn["content"]} for turn in (*turns, *answer)]
            if "from" in row[chat][0]:
                return label | {chat: [{"from": USER_ROLES[m["role"]], "value": m["content"]} for m in messages]}
            return label | {chat: messages}
        texts: dict[str, Any] = {}
        for name, text, messages in ((prompt, answered.prompt, turns), (target, answered.target, answer)):
            texts[str(name)] = plain(text) if isinstance(row[str(name)], str) else messages
        empty = {"input": ""} if prompt == INSTRUCTION and "input" in row else {}
        return label | texts | empty

    if chat is None and (prompt is None or target is None):
        got = f"columns {', '.join(map(str, row))}"
        remedy = "Name the columns: --column target=COLUMN. To train by RL on rows without completions: --objective grpo."
        raise InputError("rows of prompt and completion, or of messages", got, remedy)
    return write


def draw_replay(plan: Plan, rows: Sequence[Example], new_rows: int) -> list[Example]:
    """Draw rows to stand among so many new ones, by the plan's weights; none comes back before all of its kind have come."""
    stage, rng = plan.stages[0], Random(0)
    share = sum(stage.weights[task] for task in stage.rehearse)
    drawn, due = list[Example](), 0.0
    for task in stage.rehearse:
        own = rng.sample(found := [row for row in rows if row.task == task], len(found))
        before, due = due, due + new_rows / (1 - share) * stage.weights[task]
        count = min(round(due) - round(before), MAX_USES * len(own))  # all kinds together are rounded once
        drawn += [own[number % len(own)] for number in range(count)]
    return drawn


def mixed_lines(
    corpus: Corpus, replay: Sequence[Example], shares: Mapping[str, float], folder: Path, *, left_out: int
) -> list[str]:
    """Return the headline and the table of a mix: tasks of the user, what is replayed, and how often each row is seen."""
    new = Counter(corpus.select(split="train").table["task"].to_pylist())
    total, kinds = sum(new.values()) + len(replay), Counter(row.task for row in replay)
    new_share, share = sum(new.values()) / total, len(replay) / total
    headline = f"Train on {new_share:.0%} new rows and {share:.0%} answers that the model already gives."
    all_tokens = sum(shares.get(task, 0.0) for task in {*new, *kinds}) or 1.0  # without kinds of which no row came in
    of_tokens = {task: shares.get(task, 0.0) / all_tokens for task in new}
    shown = [
        (task, f"{count:,}", f"{count / total:.1%}", f"{of_tokens[task]:.1%}", "1.0 x", "learn")
        for task, count in new.most_common()
    ]
    distinct = len({row.id for row in replay})
    name = f"replay, {format_count(len(kinds), 'kind')}"
    of_replay = f"{sum(shares.get(task, 0.0) for task in kinds) / all_tokens:.1%}"
    shown.append((name, f"{distinct:,}", f"{share:.1%}", of_replay, f"{len(replay) / max(distinct, 1):.1f} x", "keep"))
    header = ("", "rows", "share", "of target tokens", "each seen", "")
    lines = [*wrap(headline), "", *table(header, shown, more="in the plan")]
    if left_out:
        lines += wrap(f"{format_count(left_out, 'answer')} of the model left out: cut, empty, repetitive, copied or wrong.")
    lines += [f"  {plain(row.prompt)[:60]!r} -> {plain(row.target)[:60]!r}" for row in replay[:2]]
    return [*lines, f"Files:  {folder / 'mix.jsonl'}, {folder / 'replay.jsonl'} (all answers), {folder / 'plan.yaml'} (why)"]

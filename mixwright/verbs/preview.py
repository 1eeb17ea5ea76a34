"""Verb `preview`: what a trainer will learn of each row, token by token."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from mixwright.audit.findings import worst_first
from mixwright.audit.learnt import CHECKS, Labelled, count_facts, observe_learnt
from mixwright.config import CorpusConfig
from mixwright.corpus import read_corpus
from mixwright.corpus.reading import messages_in, read_rows
from mixwright.corpus.tool_messages import tools_of
from mixwright.errors import InputError, missing_extra
from mixwright.plan.mix import as_chat
from mixwright.records import Example, Observation
from mixwright.run.folder import BAD_VALUES, check_regular, compose_yaml
from mixwright.tool_calls import RESULT_ROLES, read_tools, structure, write_as_text
from mixwright.verbs import output
from mixwright.verbs.options import Column, FailOn, Full, Json, Template, parse_columns
from mixwright.verbs.report import count_findings, findings, table, wrap
from mixwright.verdict.page.text import format_count

MAX_ROWS = 2000
"""Rows that are labelled where nobody asks for another number: about ten seconds."""
FORMS = ({"messages"}, {"conversations"}, {"prompt", "completion"}, {"text"})
"""Columns of rows that TRL takes as they are."""
SHOWN_ROWS, FULL_ROWS, SHOWN_CHARACTERS = 3, 30, 300
"""Rows that are printed, those with `--full`, and characters of a row without it."""
AXOLOTL_ROLES = {"human": "user", "gpt": "assistant"}
BELOW, REQUEST = (
    "Below is an instruction that describes a task",
    "Write a response that appropriately completes the request.",
)
AXOLOTL_ALPACA = {
    "field_instruction": "instruction",
    "field_output": "output",
    "format": f"{BELOW}, paired with an input that provides further context. {REQUEST}\n\n"
    "### Instruction:\n{instruction}\n\n### Input:\n{input}\n\n### Response:\n",
    "no_input_format": f"{BELOW}. {REQUEST}\n\n### Instruction:\n{{instruction}}\n\n### Response:\n",
}
"""Prompts of Axolotl's type alpaca, as a user-defined type has them."""
AXOLOTL_READ = {"path", "ds_type", "split", "name", "data_files", "type"}
"""Keys of a data set of Axolotl that decide no label, or are read."""
AXOLOTL_TYPES = ("alpaca", "chat_template")


@dataclass(frozen=True, slots=True)
class Preview:
    """Rows as the trainer labels them, and what is wrong with that."""

    labelled: Labelled
    """Rows and their tokens."""
    observations: list[Observation]
    """Errors, then warnings, then notes."""
    source: str
    """File of the rows."""
    read: int
    """Rows that were read."""


def preview(
    train: str | Path,
    *,
    model: Annotated[str, typer.Option("--model")],
    config: Annotated[Path | None, typer.Option(metavar="YAML")] = None,
    max_length: Annotated[int | None, typer.Option(min=1)] = None,
    rows: Annotated[int, typer.Option(min=1)] = MAX_ROWS,
    column: Column = None,
    template: Template = None,
) -> Preview:
    """Show which tokens the loss is taken on. TRL's SFTTrainer prepares the rows, so the labels are those of training.

    Examples:
        >>> found = preview("rollouts.jsonl", model="checkpoint", max_length=64)
        >>> found.read, len(found.labelled.rows)
        (60, 60)

    Args:
        train: Training rows: messages, prompt and completion, or text go to TRL as they are; other columns as for audit.
        model: Model to train. Only its tokenizer and chat template are loaded.
        config: Settings file of TRL (SFTConfig as YAML) or Axolotl.
        max_length: Most tokens of a row; overrides the settings. TRL cuts longer rows, Axolotl leaves them out.
        rows: Most rows to read.
        column: Read a field from another column, such as prompt=question; repeatable.
        template: Argument of the chat template, such as enable_thinking=false; repeatable. TRL takes it from a column of the
            rows, chat_template_kwargs.

    Raises:
        InputError: rows, settings or a tokenizer that cannot be used, or what TRL refuses.
    """
    try:
        from mixwright.learner.load import load_tokenizer
        from mixwright.learner.prompt_form import PromptForm, parse_arguments
        from mixwright.trainers.labels import label_rows
    except ImportError as error:
        raise missing_extra("preview", [str(error.name)], "train") from None
    settings, attention = ({}, None) if config is None else read_settings(config)
    settings |= {} if max_length is None else {"max_length": max_length}
    kind = settings.get("axolotl_type")
    read = list(itertools.islice(read_as_trl(str(train), parse_columns(column), kind), rows))
    tokenizer = load_tokenizer(model)
    structured = [(_structure(row), task, source) for row, task, source in read]
    has_tools = any(row.get("tools") or _has_structures(row) for row, _, _ in structured)
    read = structured if has_tools else read
    if has_tools and PromptForm().resolved_for(tokenizer.chat_template).writes_tools:
        where = "here they stand in the system message, and calls in <tool_call> tags, as in the exports of plan"
        output.say(f"warning: the chat template of {model} shows no tools: {where}. TRL alone would leave both out.")
        read = [(_write_tools(row), task, source) for row, task, source in read]
    if arguments := parse_arguments(template or ()):
        read = [({**row, "chat_template_kwargs": arguments}, task, source) for row, task, source in read]
    if not read:
        raise InputError("rows with a completion for SFT to learn", "none", "Name the column: --column target=COLUMN.")
    labelled = label_rows(read, tokenizer, settings, attention=attention, marked_rows=FULL_ROWS)
    return Preview(labelled, observe_learnt(labelled), str(train), len(read))


def show(preview: Preview, *, fail_on: FailOn = "never", full: Full = False, as_json: Json = False) -> int | None:
    """Print the facts of each task, some rows with the learned text in brackets, and what is wrong."""
    facts = count_facts(preview.labelled)
    if as_json:
        output.out_json({"facts": facts, "observations": preview.observations})
    else:
        faults = count_findings(preview.observations)
        limit = preview.labelled.max_length
        about = f"{format_count(preview.read, 'row')}, " + (f"at most {limit:,} tokens each" if limit else "not cut")
        lines = [*wrap(f"{faults or 'Nothing to fix'}: {preview.source} ({about})."), ""]
        header = ("task", "rows", "tokens", "learned", "share")
        shown = [(one.task, one.rows, f"{one.tokens:,}", f"{one.targets:,}", f"{one.share:.0%}") for one in facts]
        lines += [*table(header, shown, full=full), ""]
        for number, pieces in itertools.islice(preview.labelled.marked.items(), None if full else SHOWN_ROWS):
            text = "".join(f"[[{text}]]" if is_target else text for text, is_target in pieces)
            whole = text if full else shorten(text)
            lines += wrap(whole, lines=None, first=f"  row {number + 1}  ", indent=" " * 9)
        lines += ["  The loss is taken on the text in [[ ]].", ""]
        lines += findings(worst_first(preview.observations), CHECKS, other_lines=len(lines), full=full)
        output.out("\n".join(lines))
    return output.exit_code_of(preview.observations, fail_on)


def shorten(text: str) -> str:
    """Return the beginning and the end of a text."""
    half = SHOWN_CHARACTERS // 2
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:half]} … {text[-half:]}"


def read_as_trl(source: str, columns: Mapping[str, str], kind: Any = None) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Yield rows in columns that TRL takes, with task, file and line: as they are where they have such columns.

    Args:
        source: file of the rows.
        columns: of the file, by our names.
        kind: type of Axolotl's data set, by which it makes prompts of columns; None for TRL.
    """
    first, _ = next(read_rows(source, "train"))
    form = next((form for form in FORMS if isinstance(first, Mapping) and form <= first.keys()), None)
    if isinstance(kind, dict):
        form = {kind.get(name, name.removeprefix("field_")) for name in ("field_instruction", "field_output")}
    if form is not None and not columns:
        for row, location in read_rows(source, "train"):
            if not form <= row.keys():
                expected = f"columns {', '.join(sorted(form))} as in the first row"
                raise location.error(expected, ", ".join(map(str, row)), "Add them.")
            own = {name: row[name] for name in (*form, "tools") if name in row}
            written, task = own if kind is None else _as_axolotl(row, own, kind), row.get("task") or location.task or "all"
            yield written, str(task), str(location)
        return
    for row in read_corpus(CorpusConfig(source, eval_share=0.0, columns=dict(columns))):
        if row.target or not row.prompt:
            yield _as_pair(row), row.task, row.source


def _has_structures(row: Mapping[str, Any]) -> bool:
    """Return whether a message of a row has tool calls, or is the result of one."""
    turns = (turn for value in row.values() if isinstance(value, list) for turn in value if isinstance(turn, dict))
    return any(turn.get("tool_calls") or turn.get("role") in RESULT_ROLES for turn in turns)


def _structure(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with tools and calls as TRL takes them, as plan exports them."""
    made = {
        name: [structure(turn) for turn in decoded] if _is_talk(decoded := messages_in(value)) else value
        for name, value in row.items()
        if name != "tools"
    }
    tools = read_tools(row.get("tools"))
    if "conversations" in made:
        made["messages"] = made.pop("conversations")
    return made | ({"tools": json.dumps(tools, ensure_ascii=False)} if tools else {})


def _is_talk(value: Any) -> bool:
    """Return whether a value is a list of messages."""
    turns = value if isinstance(value, list) else []
    return bool(turns) and all(isinstance(turn, dict) and {"role", "from"} & turn.keys() for turn in turns)


def _write_tools(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with its tools and calls as text."""
    tools, first = read_tools(row.get("tools")), "prompt" if "prompt" in row else "messages"
    made = {name: value for name, value in row.items() if name != "tools"}
    for name, value in made.items():
        if _is_talk(value):
            carried = {"tools": tools} if tools and name == first else {}
            made[name] = list(write_as_text([{**value[0], **carried}, *value[1:]]))
    return made


def _as_axolotl(row: Mapping[str, Any], own: dict[str, Any], kind: Any) -> dict[str, Any]:
    """Return a row as Axolotl reads it: with the prompt of its type, or the roles that it renames."""
    if isinstance(kind, dict):
        instruction, given, output = (
            row.get(kind.get(f"field_{name}", name)) for name in ("instruction", "input", "output")
        )
        form = kind.get("format", "{instruction} {input} ") if given else kind.get("no_input_format", "{instruction} ")
        return {"prompt": form.format(instruction=instruction, input=given), "completion": output}
    turns = own.pop("conversations", own.get("messages"))
    if turns is None:
        return own
    renamed = [{{"from": "role", "value": "content"}.get(name, name): part for name, part in turn.items()} for turn in turns]
    roles = [AXOLOTL_ROLES.get(turn.get("role", ""), turn.get("role")) for turn in renamed]
    return own | {"messages": [{**turn, "role": role} for turn, role in zip(renamed, roles, strict=True)]}


def _as_pair(row: Example) -> dict[str, Any]:
    if not row.prompt:
        return {"text": row.target or row.answer or ""} | tools_of(row)
    if isinstance(row.prompt, str) and isinstance(row.target, str):
        return {"prompt": row.prompt, "completion": row.target} | tools_of(row)
    return {"prompt": as_chat(row.prompt), "completion": as_chat(row.target or "", "assistant")} | tools_of(row)


def read_settings(path: Path) -> tuple[dict[str, Any], str | None]:
    """Read settings of `SFTConfig`, and the attention of the model, from a YAML of TRL or of Axolotl.

    Raises:
        InputError: no YAML, or none of the two.
    """
    check_regular(path)
    try:
        given = compose_yaml(path.read_text(encoding="utf-8"), path)[1]
    except (yaml.YAMLError, *BAD_VALUES) as error:
        given = str(error)[:120]
    if not isinstance(given, dict):
        raise InputError("a YAML file of TRL or Axolotl", str(given), "Correct it.", file=path)
    if "base_model" not in given:
        return {str(name): value for name, value in given.items()}, given.get("attn_implementation")
    settings: dict[str, Any] = {"max_length": given.get("sequence_len", 512), "packing": bool(given.get("sample_packing"))}
    settings["excess_length_strategy"] = str(given.get("excess_length_strategy") or "drop").lower()
    data = next((one for one in given.get("datasets") or [] if isinstance(one, dict)), dict[str, Any]())
    kind = data.get("type")
    ignored = sorted((data.keys() - AXOLOTL_READ) | (given.keys() & {"train_on_eos", "train_on_eot", "roles_to_train"}))
    ignored += [f"type {kind}"] if isinstance(kind, str) and kind not in AXOLOTL_TYPES else []
    if ignored:
        output.say(f"warning: {path}: labels are shown without {', '.join(map(str, ignored))}, which preview does not read")
    settings["axolotl_type"] = AXOLOTL_ALPACA if kind == "alpaca" else kind or "chat_template"
    if not given.get("train_on_inputs"):
        settings["assistant_only_loss" if kind == "chat_template" else "completion_only_loss"] = True
    # Axolotl keeps packed rows apart with every attention that is named, such as sdp_attention: true.
    is_named = any(value for name, value in given.items() if str(name).endswith(("_attention", "attn_implementation")))
    return settings, "flash_attention_2" if is_named else None

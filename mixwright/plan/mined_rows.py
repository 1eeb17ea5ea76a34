"""Mined rows as other trainers read them: one JSONL file.

Fields: `messages` or `prompt` and `completion` (TRL and Axolotl), `chosen` and `rejected` for pairs (TRL, Axolotl;
LLaMA-Factory by its `columns` setting), `answer` for rows that are graded (verl: `reward_model.ground_truth`), and the
`mask` where any row has one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from mixwright.corpus import Corpus
from mixwright.corpus.masks import MASK_COLUMN, mask_of
from mixwright.corpus.tool_messages import tools_of
from mixwright.learner.prompt_form import PromptForm
from mixwright.plan.mix import as_chat, target_of, write_jsonl
from mixwright.records import Example, messages, plain

ROWS_FILE = "rows.jsonl"


def export_rows(table: Path, corpus: Corpus, folder: Path, form: PromptForm | None = None) -> str:
    """Write a miner's table as rows.jsonl; returns a line on it.

    Args:
        table: mine/<miner>.parquet.
        corpus: of the run.
        folder: new.
        form: in which prompts reach the model of the run; None leaves them as they are.
    """
    mined_table, form = pq.read_table(table), form or PromptForm()
    has_new_rows = "prompt" in mined_table.column_names
    examples = Corpus(mined_table) if has_new_rows else corpus.select(ids=mined_table["id"].to_pylist())
    rows = [make_record(form.example(example)) for example in examples]
    if any(MASK_COLUMN in row for row in rows):
        rows = [{MASK_COLUMN: [], **row} for row in rows]
    folder.mkdir(parents=True)
    write_jsonl(folder / ROWS_FILE, rows)
    return f"{folder / ROWS_FILE}: {len(rows):,} rows, fields {', '.join(rows[0]) if rows else 'none'}"


def make_record(example: Example) -> dict[str, Any]:
    """One row: every field that a trainer may read, those that the example lacks left out."""
    fields: dict[str, Any] = {"id": example.id, "task": example.task}
    has_target = example.target is not None or example.answer is not None
    if example.chosen is not None and example.rejected is not None:
        sides = {"prompt": example.prompt, "chosen": example.chosen, "rejected": example.rejected}
        fields |= {name: messages(text) for name, text in sides.items()}
    elif not example.prompt:
        fields |= {"text": plain(target_of(example))}
    elif isinstance(example.prompt, str):
        fields |= {"prompt": example.prompt} | ({"completion": messages(target_of(example))} if has_target else {})
    else:
        reply = as_chat(target_of(example), "assistant") if has_target else []
        fields |= {"messages": [*as_chat(example.prompt), *reply]}
    if has_target and (spans := mask_of(example)):
        fields[MASK_COLUMN] = [list(span) for span in spans]
    return fields | ({} if example.answer is None else {"answer": example.answer}) | tools_of(example)

"""Mined rows as other trainers read them: JSONL and a `datasets` folder.

Fields: `messages` or `prompt` and `completion` (TRL and Axolotl), `chosen` and `rejected` for pairs (TRL, Axolotl;
LLaMA-Factory by its `columns` setting), `answer` for rows that are graded (verl: `reward_model.ground_truth`), `weight`, and
the `mask` where any row has one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from mixwright.corpus.masks import MASK_COLUMN, mask_of
from mixwright.corpus.tool_messages import tools_of
from mixwright.learner.prompt_form import PromptForm
from mixwright.records import Example, messages, plain
from mixwright.run.folder import write_text

if TYPE_CHECKING:
    from mixwright.corpus import Corpus


def export_rows(table: Path, corpus: Corpus, folder: Path, form: PromptForm | None = None) -> list[str]:
    """Write a miner's table as rows.jsonl and, where `datasets` is installed, a folder that `load_from_disk` reads.

    Args:
        table: mine/<miner>.parquet.
        corpus: of the run.
        folder: new.
        form: in which prompts reach the model of the run; None leaves them as they are.

    Returns:
        A line for each thing written.
    """
    rows = list(_make_records(table, corpus, form or PromptForm()))
    if any(MASK_COLUMN in row for row in rows):
        rows = [{MASK_COLUMN: [], **row} for row in rows]
    folder.mkdir(parents=True)
    write_text(folder / "rows.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    lines = [f"{folder / 'rows.jsonl'}: {len(rows):,} rows, fields {', '.join(rows[0]) if rows else 'none'}"]
    try:
        from datasets import Dataset
    except ImportError:
        return [*lines, "The package datasets is not installed: no datasets folder was written."]
    Dataset.from_list(rows).save_to_disk(str(folder / "dataset"))
    return [*lines, f"{folder / 'dataset'}: the same for datasets.load_from_disk"]


def _make_records(table: Path, corpus: Corpus, form: PromptForm) -> Iterator[dict[str, Any]]:
    from mixwright.corpus import Corpus

    mined_table = pq.read_table(table)
    has_new_rows = "prompt" in mined_table.column_names
    weights = (
        {} if has_new_rows else dict(zip(mined_table["id"].to_pylist(), mined_table["weight"].to_pylist(), strict=True))
    )
    for example in Corpus(mined_table) if has_new_rows else corpus.select(ids=list(weights)):
        yield make_record(form.example(example), weights.get(example.id, 1.0))


def make_record(example: Example, weight: float) -> dict[str, Any]:
    """One row: every field that a trainer may read, those that the example lacks left out."""
    fields: dict[str, Any] = {"id": example.id, "task": example.task, "weight": weight}
    target = example.target if example.target is not None else example.answer
    if example.chosen is not None and example.rejected is not None:
        sides = {"prompt": example.prompt, "chosen": example.chosen, "rejected": example.rejected}
        fields |= {name: messages(text) for name, text in sides.items()}
    elif not example.prompt:
        fields |= {"text": plain(target)}
    elif isinstance(example.prompt, str):
        fields |= {"prompt": example.prompt} | ({} if target is None else {"completion": messages(target)})
    else:
        reply = ({"role": "assistant", "content": target},) if isinstance(target, str) else target or ()
        fields |= {"messages": messages((*example.prompt, *reply))}
    if target is not None and (spans := mask_of(example)):
        fields[MASK_COLUMN] = [list(span) for span in spans]
    return fields | ({} if example.answer is None else {"answer": example.answer}) | tools_of(example)

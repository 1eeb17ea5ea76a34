"""Ways of rewriting rows with facts: new rows per way, none that asks a reward or held-out question; and their null."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mixwright.extend import Example, Text, plain, prompt_key
from mixwright_extras.mining.proxies import shared_room
from mixwright_extras.mining.rewriting import Slots, fill_form, text_of

if TYPE_CHECKING:
    from mixwright.extend import Learner

AS_IS_WAY = "as they stand"
OWN_WAY = "written by the model"
MAX_ASKED_SHARE = 0.5
"""Share of a way's rows that may ask what is asked already; one with more asks the questions themselves and is not tried."""
Ways = dict[str, list[Example]]
"""Name of a way -> its rows."""


def new_row(parent: Example, number: int, way: str, prompt: str, target: str) -> Example:
    """A row made of a fact of `parent`; `way` says how."""
    extra = {**parent.extra, "parents": [parent.id], "provenance": f"A fact of its parent in this way: {way}"}
    blank = {"answer": None, "chosen": None, "rejected": None, "level": None}
    row_id = f"{parent.id}:{way}:{number}"
    return replace(parent, id=row_id, prompt=prompt, target=target, source="self_edits", split="train", extra=extra, **blank)


def as_they_stand(fact_rows: Sequence[Example]) -> list[Example]:
    """Rows of facts with a target to train on: their own, or else all of their text."""
    return [row if row.target is not None else replace(row, prompt="", target=text_of(row)) for row in fact_rows]


def rewrite_in_forms(fact_rows: Sequence[Example], facts_by_row: Sequence[Sequence[Slots]], forms: Sequence[str]) -> Ways:
    """Every fact in every form; a form that says what the rows say already is none.

    Args:
        fact_rows: rows with facts.
        facts_by_row: facts of each row.
        forms: as `rewriting.fill_form` takes them.
    """
    present_texts = {(plain(row.prompt), plain(row.target)) for row in fact_rows}
    ways: Ways = {}
    all_facts = [
        (row, n, fact) for row, row_facts in zip(fact_rows, facts_by_row, strict=True) for n, fact in enumerate(row_facts)
    ]
    for form in dict.fromkeys(forms):
        filled = [fill_form(form, fact) for _, _, fact in all_facts]
        if not present_texts.issuperset(filled):
            pairs = zip(all_facts, filled, strict=True)
            ways[form] = [new_row(row, n, form, prompt, target) for (row, n, _), (prompt, target) in pairs]
    return ways


def write_own_edits(
    learner: Learner, fact_rows: Sequence[Example], instruction: str, samples: int, max_new_tokens: int, seed: int
) -> tuple[Ways, int]:
    """Edits that the model writes of each row, each line a row without a prompt; and how many completions were sampled."""
    if not samples or not fact_rows:
        return {}, 0
    texts = [instruction.replace("{text}", text_of(row)) for row in fact_rows]
    prompts: list[Text] = [
        text if isinstance(row.prompt, str) else ({"role": "user", "content": text},)
        for text, row in zip(texts, fact_rows, strict=True)
    ]
    instructed_rows = [replace(row, prompt=prompt) for row, prompt in zip(fact_rows, prompts, strict=True)]
    tokens = shared_room(learner, instructed_rows, max_new_tokens)
    completions_by_prompt = learner.sample(prompts, count=samples, temperature=1.0, max_new_tokens=tokens, seed=seed)
    ways: Ways = {}
    for number in range(samples):
        way = f"{OWN_WAY}, {number + 1}"
        for row, completions in zip(fact_rows, completions_by_prompt, strict=True):
            lines = [line.strip() for line in completions[number].text.splitlines() if line.strip()]
            ways.setdefault(way, []).extend(new_row(row, line_index, way, "", line) for line_index, line in enumerate(lines))
    return {way: rows for way, rows in ways.items() if rows}, len(fact_rows) * samples


def without_questions(ways: Ways, question_rows: Sequence[Example]) -> tuple[Ways, list[str]]:
    """The ways without rows whose prompt is asked already, and a note per way that lost any."""
    keys, notes, remaining = {prompt_key(row.prompt) for row in question_rows if row.prompt}, [], {}
    for way, rows in ways.items():
        rows_without_questions = [row for row in rows if not row.prompt or prompt_key(row.prompt) not in keys]
        lost_count = len(rows) - len(rows_without_questions)
        if way == AS_IS_WAY or lost_count <= MAX_ASKED_SHARE * len(rows):
            remaining[way] = rows if way == AS_IS_WAY else rows_without_questions
        if lost_count and way != AS_IS_WAY:
            consequence_text = "they were left out" if way in remaining else "the way was left out"
            notes.append(
                f"Of {len(rows)} rows in the way {way!r}, {lost_count} ask reward or held-out questions: {consequence_text}."
            )
    return remaining, notes


def parents_of(rows: Sequence[Example]) -> list[str]:
    """Id of the row that each was made of."""
    return [row.extra["parents"][0] for row in rows]


def draw_null(ways: Mapping[str, Sequence[Example]], parents: Collection[str], rng: np.random.Generator) -> list[Example]:
    """The null: of each parent the rows of a way that was drawn at random."""
    by_parent: dict[str, dict[str, list[Example]]] = {name: {} for name in sorted(parents)}
    for way, rows in ways.items():
        for row in rows:
            parent = row.id if way == AS_IS_WAY else row.extra["parents"][0]
            if parent in by_parent:
                by_parent[parent].setdefault(way, []).append(as_own_parent(row) if way == AS_IS_WAY else row)
    null_rows: list[Example] = []
    for rows_by_way in by_parent.values():
        names = sorted(rows_by_way)
        null_rows += rows_by_way[names[int(rng.integers(len(names)))]]
    return null_rows


def as_own_parent(row: Example) -> Example:
    """A row of the data in a table of new rows: itself, its own parent."""
    return replace(row, extra={**row.extra, "parents": [row.id], "provenance": "As it stands."})

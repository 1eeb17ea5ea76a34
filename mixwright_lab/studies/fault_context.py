"""The world `unseen` of `fault_costs`: answers that rest on a note which the model does not see.

Source: the check `unseen`; findings on what a teacher's context teaches (self-distillation with privileged context).
Unit: a row or an item about one coined name, which no other row or item has.
Cost: milliseconds, and the check reads the rows.
Blind spot: numbers that nobody could know; one wording of each question.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from mixwright_lab.studies.fault_parts import (
    AS_IT_IS,
    CONTEXT,
    FROZEN,
    ITEMS,
    ROWS,
    Made,
    Row,
    listed_rows,
    make_item,
    make_row,
)

UNSEEN = "unseen"
LISTED_DROPPED, RANDOM_DROPPED, TOLD = "listed rows dropped", "as many random rows dropped", "note in the prompt"
UNSEEN_ARMS = (LISTED_DROPPED, RANDOM_DROPPED, TOLD, AS_IT_IS, FROZEN)
NOTED, UNKNOWN = "note given", "nothing given"
"""Cells of the items: with the note in the prompt, and without any."""
NOTED_SHARE, UNKNOWN_SHARE = 0.4, 0.2
"""Of the rows: with the note in the prompt, and with nothing to know; the others rest on a note that is not there."""
DO_NOT_KNOW = "I do not know."
SUBJECTS = (
    ("{name} uses room {value}.", "Which room does {name} use?"),
    ("The code of {name} is {value}.", "What is the code of {name}?"),
    ("{name} pays {value} euros.", "How many euros does {name} pay?"),
    ("The file of {name} has {value} pages.", "How many pages has the file of {name}?"),
)
FIRST = tuple("Bel Dor Fen Gar Hol Jas Kel Lum Mor Nav Ost Pel Quor Ral Sev Tam Ulm Ver Wex Yar Zim".split())  # noqa: SIM905
MIDDLE = tuple("a e i o u an en in on un ar er or al el il".split())  # noqa: SIM905
LAST = tuple("dak fin gos lam mut nel pik rov sam tor vik wen xil zon".split())  # noqa: SIM905


def ask(rng: random.Random) -> Iterator[tuple[str, str, str]]:
    """Note, question and value about names that are all different."""
    names = [a + b + c for a in FIRST for b in MIDDLE for c in LAST]
    for name in rng.sample(names, len(names)):
        note, question = rng.choice(SUBJECTS)
        value = str(rng.randrange(101, 9999))
        yield note.format(name=name, value=value), question.format(name=name), value


def with_note(note: str, question: str) -> str:
    """The prompt of who is told."""
    return f"Note: {note}\n{question}"


def make_unseen(seed: int, arm: str) -> Made:
    """Rows of an arm, and the items."""
    rng = random.Random(f"{seed} {UNSEEN}")
    asked = ask(rng)
    items: list[Row] = []
    for place in range(ITEMS):
        note, question, value = next(asked)
        cell = NOTED if place % 2 else UNKNOWN
        prompt, answer = (with_note(note, question), value) if cell == NOTED else (question, DO_NOT_KNOW)
        items.append(make_item(UNSEEN, place, prompt, answer, cell))
    if arm == FROZEN:
        return Made([], items, {})
    rows: list[Row] = []
    noted, right = round(NOTED_SHARE * ROWS), round((NOTED_SHARE + UNKNOWN_SHARE) * ROWS)
    for place in range(ROWS):
        note, question, value = next(asked)
        if place < noted:
            row = make_row(UNSEEN, place, with_note(note, question), value) | {CONTEXT: note}
        elif place < right:
            row = make_row(UNSEEN, place, question, DO_NOT_KNOW)
        else:
            row = make_row(UNSEEN, place, question, value) | {CONTEXT: note}
        rows.append(row | {"right": place < right})
    rng.shuffle(rows)
    listed = listed_rows(rows, UNSEEN)
    remarks = {"listed": len(listed), "listed and wrong": sum(row["id"] in listed and not row["right"] for row in rows)}
    if arm == TOLD:
        rows = [
            row | {"prompt": with_note(row[CONTEXT], row["prompt"])} if row["id"] in listed and CONTEXT in row else row
            for row in rows
        ]
    if arm == RANDOM_DROPPED:
        listed = set(random.Random(f"{seed} {arm}").sample([row["id"] for row in rows], len(listed)))
    if arm in (LISTED_DROPPED, RANDOM_DROPPED):
        rows = [row for row in rows if row["id"] not in listed]
    return Made(rows, items, remarks)

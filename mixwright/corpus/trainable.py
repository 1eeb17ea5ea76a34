"""Check that training rows have what an objective trains on."""

from __future__ import annotations

from mixwright.corpus import Corpus
from mixwright.corpus.rows import pc
from mixwright.errors import InputError, join_some

NEEDED_COLUMNS = {"grpo": ("prompt", "answer"), "sft": ("target",), "dpo": ("chosen", "rejected")}
"""Objective -> what each training row must have; of plain text the text itself is the target."""


def infer_objective(corpus: Corpus) -> str:
    """Return what training rows like these are for: dpo for pairs, sft for completions, else grpo."""
    train = corpus.table.filter(pc.equal(corpus.table["split"], "train"))
    if pc.any(pc.and_(pc.is_valid(train["chosen"]), pc.is_valid(train["rejected"]))).as_py():
        return "dpo"
    return "sft" if train["target"].null_count < len(train) else "grpo"


def leave_out_bare(corpus: Corpus) -> Corpus:
    """Leave out training rows without a completion, an answer or a pair, such as chats that end with the user's turn.

    The notes of the corpus count them. Where all rows are like that nothing is left out.
    """
    table = corpus.table
    is_train = is_bare = pc.equal(table["split"], "train")
    for name in ("target", "answer", "chosen"):
        is_bare = pc.and_(is_bare, pc.is_null(table[name]))
    count, total = pc.sum(is_bare).as_py() or 0, pc.sum(is_train).as_py() or 0
    if count in (0, total):
        return corpus
    places = join_some(table.filter(is_bare)["source"].to_pylist())
    kept = corpus.take(pc.indices_nonzero(pc.invert(is_bare)).to_numpy())
    note = f"{count:,} of {total:,} training rows left out, which have no completion or end with the user's turn ({places})"
    return Corpus(kept.table, corpus.graders, notes=(*corpus.notes, note))


def check_training(objective: str, corpus: Corpus, setting: str = "train.objective") -> None:
    """Whether every training row has what its objective needs.

    Args:
        objective: grpo, sft or dpo.
        corpus: with its training rows.
        setting: where the objective was set, as the user wrote it.

    Raises:
        InputError: rows without it; how many, and the first of them.
    """
    train = corpus.table.filter(pc.equal(corpus.table["split"], "train"))
    for column in NEEDED_COLUMNS[objective]:
        absent = pc.or_(pc.is_null(train[column]), pc.equal(train[column], "")) if column == "prompt" else None
        lacking = train.filter(pc.is_null(train[column]) if absent is None else absent)
        if len(lacking):
            first_source = lacking["source"][0].as_py() or lacking["id"][0].as_py()
            got = f"none in {len(lacking)} of {len(train)} rows, the first at {first_source}"
            other_objectives = ", ".join(name for name in NEEDED_COLUMNS if name != objective)
            remedy = f"Add it, leave these rows out, or choose another {setting} ({other_objectives})."
            raise InputError(f"{column!r} in every training row, for {setting} {objective}", got, remedy)

"""Rows of a corpus as the checks need them: texts batch by batch, and fingerprints of 29 bytes per row.

Left out on purpose: keeping texts. What a check wants to show, it fetches again by row number.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from mixwright.corpus import plain, texts

if TYPE_CHECKING:
    from mixwright.corpus import Corpus

EXCERPT = 160
"""Characters of a text shown as evidence."""
SHOWN = 5
"""Rows, or pairs of rows, shown as evidence."""
SAMPLE = 2000
"""Rows of a task and split that templates and nulls are worked out on."""

_SENTENCE_MARK = re.compile(r"(?<=[\w)\]}%])[.,;:!?]+(?=\s|$)")
_QUOTE = re.compile(r"(?<!\w)['\"`\u201c\u201d\u2018\u2019]+|['\"`\u201c\u201d\u2018\u2019]+(?!\w)")


class Row(NamedTuple):
    """One row's texts."""

    number: int
    """Position in the corpus."""
    task: str
    split: str
    prompt: str
    """The prompt; of rows without one, the text itself."""
    answer: str
    """What is to be produced: the answer, else the target, else the preferred completion; empty when there is none."""


def normal_form(text: str) -> str:
    """`text` without what changes no question: case, runs of space, quotes, marks that end a clause.

    Signs inside numbers and formulas stay, or `4 - 1` would become `4 1`; so do signs that stand alone. Of drawings and
    code (two lines or more with three spaces in a row) only case and form of characters are folded: space has meaning there.
    """
    folded = unicodedata.normalize("NFC", text).casefold()
    if "   " in folded and sum("   " in line for line in folded.splitlines()) > 1:
        return folded.strip()
    return " ".join(_SENTENCE_MARK.sub(" ", _QUOTE.sub("", folded)).split())


def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[Row]:
    """Every row of `batches` in order, numbered from 0; one batch in memory at a time."""
    number = 0
    for batch in batches:
        answers = (value or "" for value in batch.column("answer").to_pylist())
        others = (texts(batch, name) for name in ("prompt", "target", "chosen"))
        names = (batch.column(name).to_pylist() for name in ("task", "split"))
        for task, split, answer, prompt, target, chosen in zip(*names, answers, *others, strict=True):
            kept = answer or target or chosen
            yield Row(number, task, split, prompt or kept, kept if prompt else "")
            number += 1


def evidence(corpus: Corpus, index: int, prefix: str = "") -> dict[str, Any]:
    """Where a row is to be found, and how it begins."""
    example = corpus[int(index)]
    answer = example.answer or plain(example.target) or plain(example.chosen)
    fields = {"id": example.id, "source": example.source, "task": example.task}
    return {f"{prefix}{name}": value for name, value in fields.items()} | {
        f"{prefix}prompt": plain(example.prompt)[:EXCERPT],
        f"{prefix}answer": answer[:EXCERPT],
    }


@dataclass(frozen=True)
class Fingerprints:
    """64-bit hashes of every row; arrays of shape (rows,)."""

    tasks: tuple[str, ...]
    """Task names in order of appearance."""
    task: np.ndarray
    """int32: index into `tasks`."""
    held_out: np.ndarray
    """bool: the row is of the eval split."""
    exact: np.ndarray
    """uint64 of the prompt, outer space apart."""
    normal: np.ndarray
    """uint64 of the prompt's normal form."""
    answer: np.ndarray
    """uint64 of the answer's normal form; 0 where there is none."""

    def pair(self, prompts: np.ndarray) -> np.ndarray:
        """One uint64 per row for prompt and answer together; `prompts` is `exact` or `normal`."""
        return prompts ^ (self.answer * np.uint64(0x9E3779B97F4A7C15))


def fingerprints(corpus: Corpus) -> Fingerprints:
    """One pass over `corpus`."""
    count = len(corpus)
    codes: dict[str, int] = {}
    task, held_out = np.zeros(count, np.int32), np.zeros(count, bool)
    exact, normal, answer = (np.zeros(count, np.uint64) for _ in range(3))
    for at, name, split, prompt, wanted in rows(corpus.batches()):
        task[at] = codes.setdefault(name, len(codes))
        held_out[at] = split == "eval"
        exact[at] = _hash(prompt.strip())
        normal[at] = _hash(normal_form(prompt) or prompt.strip())
        answer[at] = _hash(normal_form(wanted)) | 1 if wanted else 0
    return Fingerprints(tuple(codes), task, held_out, exact, normal, answer)


def sample(corpus: Corpus, members: np.ndarray, size: int) -> list[Row]:
    """At most `size` of the rows numbered `members`, drawn without replacement by a fixed seed, in file order."""
    if len(members) > size:
        members = np.sort(np.random.default_rng(0).choice(members, size, replace=False))
    part = corpus.table.take(pa.array(members)).to_batches()
    return [row._replace(number=int(number)) for row, number in zip(rows(part), members, strict=True)]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")

"""Near-duplicates (the same numbers and answer, nearly the same words in the same order), and how many chance alone makes.

Compared are runs of three words; runs that many held-out prompts of a task share are its template and do not count.
Exact over short prompts; of long ones the 64 smallest hashes stand for all (a bottom-k sketch of the Jaccard similarity).

The null for rows made from one template is how often two of them are alike where nobody copied anything. A generator with
many templates writes prompts whose wording is alike; numbers and names then agree far more often than between any two
prompts. So agreement is counted among rows of train that are worded alike. Where rows that are worded alike are mostly
copies, nothing is learnt about templates, and this says nothing. One is added to what was seen; it counts for a row at
most, because how often slots repeat, and how often rows of like wording differ, bound these too, and one in a sample of
500,000 pairs would be thousands in the 10^9 pairs of large files.
"""

from __future__ import annotations

import math
import zlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from mixwright.audit.rows import Reader, Row, rows
from mixwright.audit.text import normal_form, normal_words, numbers_as_written, read_stated_answer, sentences
from mixwright.corpus import Corpus

SKETCH_SIZE = 64
MIN_WORD_RUNS = 6
"""Runs of words, template apart, below which a prompt is too short to be nearly another."""
TEMPLATE_RUN_MIN_SHARE = 0.05
PASSAGE_WORDS = 6
"""Words of a sentence that two prompts share, from which on it is taken for a text that both ask about."""
NEAR_SIMILARITY = 0.7
"""Jaccard similarity of word runs from which on two prompts are nearly the same."""
ALIKE_SIMILARITY = 0.3
"""Jaccard similarity of word runs from which on two prompts are worded alike."""
COPIES_SHARE = 0.1
"""Share of the pairs worded alike that agree, from which on they are copies and no siblings."""
UNSEEN_PAIR_ROWS = 1.0
"""Rows that a pair which was not seen may stand for."""
MAX_SHARE_AGREEING = 0.8
"""Share of the pairs that are worded like near-duplicates, up to which their agreeing is no sign of copies."""
NULL_SAMPLE_ROWS = 500
"""Rows among which pairs of like wording that differ are counted."""
DEVIATIONS = 2.0
"""Standard deviations by which the pairs of a sample may fall short of what the file holds."""
MAX_TRAIN_ROWS_INDEXED = 5000
"""Train rows that near-duplicates are looked for; an even sample where there are more."""
ROWS_COMPARED_PER_TASK = 200
"""Rows of a task that its null is worked out on."""


def word_runs(tokens: Sequence[str]) -> set[int]:
    """Hashes of every run of three words among `tokens`; numbers and signs are skipped."""
    letter_words = [word for word in tokens if word[0].isalpha()]
    runs = zip(letter_words, letter_words[1:], letter_words[2:], strict=False)
    return {crc(" ".join(run)) for run in runs}


def crc(text: str) -> int:
    """A hash of 32 bits that is the same in every process."""
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def common_runs(runs_of_rows: Sequence[Collection[int]]) -> set[int]:
    """Return the runs of words that so many of these rows share that they are their template."""
    counts = Counter(run for runs in runs_of_rows for run in runs)
    least = max(3, TEMPLATE_RUN_MIN_SHARE * len(runs_of_rows))
    return {run for run, count in counts.items() if count >= least}


class Sketches:
    """Sketches of prompts, searchable by the runs of words that they share.

    Args:
        template: runs of words that do not count.
    """

    def __init__(self, template: Collection[int]) -> None:
        self._template = template
        self._sketches: list[frozenset[int]] = []
        self._lengths = array("q")
        self._postings: dict[int, array[int]] = defaultdict(partial(array, "q"))

    def __getitem__(self, position: int) -> frozenset[int]:
        return self._sketches[position]

    def make(self, runs: Collection[int]) -> frozenset[int]:
        """Return the smallest of the runs that are not template; empty where there are too few."""
        own_runs = sorted(run for run in runs if run not in self._template)
        return frozenset(own_runs[:SKETCH_SIZE]) if len(own_runs) >= MIN_WORD_RUNS else frozenset()

    def add(self, sketch: frozenset[int]) -> None:
        """Add a prompt behind the others."""
        for run in sketch:
            self._postings[run].append(len(self._sketches))
        self._sketches.append(sketch)
        self._lengths.append(len(sketch))

    def find_alike(self, sketch: frozenset[int], similarity: float) -> Iterator[tuple[int, float]]:
        """Positions of prompts with at least this similarity, each with its own."""
        found = [np.frombuffer(self._postings[run], np.int64) for run in sketch if run in self._postings]
        if len(found) < max(1, similarity * len(sketch)):
            return
        shared = np.bincount(np.concatenate(found), minlength=len(self._sketches))
        longer = np.maximum(np.frombuffer(self._lengths, np.int64), len(sketch))
        for position in np.flatnonzero(shared >= similarity * longer - 1e-9).tolist():  # the union has as many
            own_similarity = jaccard(sketch, self._sketches[position])
            if own_similarity >= similarity:
                yield position, own_similarity


def jaccard(first: frozenset[int], second: frozenset[int]) -> float:
    """Jaccard similarity: exact for short sets; from full sketches, the share of the union's smallest that both hold."""
    if len(first) == SKETCH_SIZE or len(second) == SKETCH_SIZE:
        union = sorted(first | second)[:SKETCH_SIZE]
        return sum(run in first and run in second for run in union) / len(union)
    return len(first & second) / len(first | second) if first or second else 0.0


Key = tuple[tuple[str, ...], str]


def numbers_and_answer(row: Row) -> Key:
    """What near-duplicates have in common beside their words."""
    return numbers_as_written(row.prompt), read_stated_answer(row.answer)


class NearIndex:
    """Held-out rows, searchable by nearness.

    Args:
        held_out: rows to find near-duplicates of; the caller bounds their number.
    """

    def __init__(self, held_out: Sequence[Row]) -> None:
        self.rows = held_out
        runs_by_task: dict[str, list[set[int]]] = defaultdict(list)
        runs = [word_runs(normal_words(row.prompt)) for row in held_out]
        for row, row_runs in zip(held_out, runs, strict=True):
            runs_by_task[row.task].append(row_runs)
        self._sketches = Sketches(set[int]().union(*map(common_runs, runs_by_task.values())))
        for row_runs in runs:
            self._sketches.add(self._sketches.make(row_runs))
        self._key_by_position = [numbers_and_answer(row) for row in held_out]
        self._keys = {key for position, key in enumerate(self._key_by_position) if self._sketches[position]}
        self._answers = {answer for _, answer in self._keys}

    def find_near(self, row: Row) -> list[int]:
        """Positions in `rows` of what `row` nearly is; prompts with the same normal form are not near, they are the same."""
        if read_stated_answer(row.answer) not in self._answers or (key := numbers_and_answer(row)) not in self._keys:
            return []
        return [
            position
            for position in self._find_alike(row)
            if self._key_by_position[position] == key and normal_form(row.prompt) != normal_form(self.rows[position].prompt)
        ]

    def expected_near(self, positions: Sequence[int], other_rows: Sequence[Row], count: int, siblings: Siblings) -> float:
        """Rows at these positions expected to be near one of `count` rows like `other_rows`, were nothing copied.

        Pairs that are worded like near-duplicates, but have other numbers or another answer, are no copies. Those that agree
        would be as many, times the odds that two rows agree: any two, or two of train that are worded alike, or even like
        near-duplicates, whichever is most. The last may be copies themselves, so they count only where pairs that differ
        were seen.
        """
        held_out_keys = Counter(self._key_by_position[position] for position in positions if self._sketches[position])
        other_rows = other_rows[:: max(1, len(other_rows) // NULL_SAMPLE_ROWS)]
        keys = [numbers_and_answer(row) for row in other_rows]
        held_out_lengths = Counter(len(numbers) for numbers, _ in held_out_keys.elements())
        comparable_pairs = sum(held_out_lengths[len(numbers)] for numbers, _ in keys)
        of_any_two = (sum(held_out_keys[key] for key in keys) + 1) / (comparable_pairs + 2)
        of_alike = max(of_any_two, mean_with_one(siblings.agreeing_pairs, siblings.distant_pairs, of_any_two))
        of_near = mean_with_one(siblings.near_pairs, siblings.worded_near_pairs, of_any_two)
        of_near = max(of_alike, min(of_near, MAX_SHARE_AGREEING))
        sought = set(positions)
        worded_alike = sum(
            position in sought and self._key_by_position[position] != key and self._is_comparable(position, key)
            for row, key in zip(other_rows, keys, strict=True)
            for position in self._find_alike(row)
        )
        differing_pairs = (worded_alike + DEVIATIONS * math.sqrt(worded_alike)) * count / max(len(other_rows), 1)
        expected_pairs = differing_pairs * of_near / (1 - of_near) + UNSEEN_PAIR_ROWS * of_alike / (1 - of_alike)
        return len(positions) * -math.expm1(-expected_pairs / max(len(positions), 1))

    def _find_alike(self, row: Row) -> list[int]:
        """Positions in `rows` of what is worded like `row`."""
        sketch = self._sketches.make(word_runs(normal_words(row.prompt)))
        return [position for position, _ in self._sketches.find_alike(sketch, NEAR_SIMILARITY)]

    def _is_comparable(self, position: int, key: Key) -> bool:
        return len(self._key_by_position[position][0]) == len(key[0])


def have_common_passage(first: str, second: str) -> bool:
    """Whether two prompts share a sentence of `PASSAGE_WORDS` words and each has another one: two questions about one
    text.
    """
    sentences_of_one, sentences_of_other = sentences(first), sentences(second)
    shared = sentences_of_one & sentences_of_other
    return bool(sentences_of_one - shared and sentences_of_other - shared) and any(
        len(sentence.split()) >= PASSAGE_WORDS for sentence in shared
    )


def mean_with_one(hits: int, tries: int, prior: float) -> float:
    """Share of hits, with one more try that hits with the chance `prior`."""
    return (hits + prior) / (tries + 1)


@dataclass(frozen=True)
class Siblings:
    """Pairs of train rows that are worded alike, and what they have in common; nothing is known without any."""

    same_pairs: int = 0
    """Pairs with the same words and numbers."""
    near_pairs: int = 0
    """Pairs that are near-duplicates."""
    alike_rows_per_train_row: float = 0.0
    """Rows worded like a held-out row, of each train row."""
    pairs: int = 0
    """All of them."""
    agreeing_pairs: int = 0
    """Of the pairs that are no near-duplicates by their words, those with the same numbers and answer."""
    distant_pairs: int = 0
    """Pairs that are no near-duplicates by their words."""
    middling_pairs: int = 0
    """Of these, those in the upper half between worded alike and nearly the same."""
    worded_near_pairs: int = 0
    """Pairs that are near-duplicates by their words, and not the same."""

    def expected_near(self, held_out: int, train: int) -> float:
        """Held-out rows expected to be near one of `train` rows.

        In templates pairs become rarer with likeness by about the same factor at each step. So near pairs follow from those
        that are less alike, also where the sample holds none.
        """
        less_alike = self.distant_pairs - self.middling_pairs
        worded_near = self.middling_pairs**2 / less_alike if less_alike else 0.0
        of_distant = self.agreeing_pairs / max(self.distant_pairs, 1)
        by_decay = worded_near * mean_with_one(self.near_pairs, self.worded_near_pairs, of_distant)
        return self._count_expected(max(self.near_pairs, by_decay), held_out, train)

    def expected_same(self, held_out: int, train: int) -> float:
        """Held-out rows expected to be the same as one of `train` rows."""
        return self._count_expected(self.same_pairs, held_out, train)

    def _count_expected(self, pairs_seen: float, held_out: int, train: int) -> float:
        """One more pair than was seen counts for `UNSEEN_PAIR_ROWS` at most."""
        as_seen, with_one_more = (
            self._expected(count / (self.pairs + 1), held_out, train) for count in (pairs_seen, pairs_seen + 1)
        )
        return as_seen + min(with_one_more - as_seen, UNSEEN_PAIR_ROWS)

    def _expected(self, share: float, held_out: int, train: int) -> float:
        return held_out * -math.expm1(-share * self.alike_rows_per_train_row * train) if share < COPIES_SHARE else 0.0


def count_siblings(train: Sequence[Row], held_out: Sequence[Row]) -> Siblings:
    """Count among samples of one task's rows, of train and held out."""
    texts, keys = [normal_words(row.prompt) for row in train], [numbers_and_answer(row) for row in train]
    runs = [word_runs(text) for text in texts]
    sketches, middle = Sketches(common_runs(runs)), (ALIKE_SIMILARITY + NEAR_SIMILARITY) / 2
    pairs, agreeing = Counter[str](), Counter[str]()
    for position, row_runs in enumerate(runs):
        own = sketches.make(row_runs)
        for other, likeness in sketches.find_alike(own, ALIKE_SIMILARITY):
            kind = "near" if likeness >= NEAR_SIMILARITY else "middling" if likeness >= middle else "less alike"
            kind = "same" if texts[position] == texts[other] else kind
            pairs[kind] += 1
            agreeing[kind] += keys[position] == keys[other]
        sketches.add(own)
    cross_pairs = sum(
        text != texts[other]
        for text in (normal_words(row.prompt) for row in held_out)
        for other, _ in sketches.find_alike(sketches.make(word_runs(text)), ALIKE_SIMILARITY)
    )
    return Siblings(
        same_pairs=pairs["same"],
        near_pairs=agreeing["near"],
        alike_rows_per_train_row=cross_pairs / max(len(train) * len(held_out), 1),
        pairs=pairs.total(),
        agreeing_pairs=agreeing["middling"] + agreeing["less alike"],
        distant_pairs=pairs["middling"] + pairs["less alike"],
        middling_pairs=pairs["middling"],
        worded_near_pairs=pairs["near"],
    )


@dataclass(frozen=True)
class NearRepeats:
    """What was found in one task."""

    task: str
    """Task name."""
    rows_sought: int
    """Rows looked for."""
    pairs: list[tuple[int, int]]
    """Row numbers: a row that was looked for, and the first other that it nearly is; of two such rows the first alone."""
    expected: float
    """Such pairs by chance."""


def near_repeats(corpus: Corpus, reader: Reader, train: np.ndarray) -> list[NearRepeats]:
    """Tasks whose train rows have near-duplicates among them; rows that are the same are left to others.

    Args:
        corpus: read once.
        reader: of the corpus.
        train: int64, row numbers of the train rows, each of those that repeat an earlier one left out.
    """
    index = NearIndex(tuple(reader.sample(train, MAX_TRAIN_ROWS_INDEXED)))
    is_searched = np.zeros(len(corpus), bool)
    is_searched[train] = True
    repeating_row: dict[int, int] = {}
    task_sizes, positions_by_task = Counter[str](), defaultdict[str, list[int]](list)
    for row in rows(corpus.batches()):
        if is_searched[row.number]:
            task_sizes[row.task] += 1
            for position in index.find_near(row):
                repeating_row.setdefault(position, row.number)
    for position, row in enumerate(index.rows):
        positions_by_task[row.task].append(position)
    repeats = []
    for task, size in task_sizes.items():
        positions = positions_by_task[task]
        pairs = _each_once(
            [(index.rows[position].number, repeating_row[position]) for position in positions if position in repeating_row]
        )
        if not pairs:
            continue
        # chance is learnt from what is left without the repeats found, else copies would explain themselves; halves of it,
        # whatever the order of the file, stand for rows that nobody copied from each other
        repeated = {number for number, _ in pairs}
        own = [position for position in positions if index.rows[position].number not in repeated]
        shuffled = sorted(own, key=lambda position: crc(index.rows[position].prompt))
        half_positions = shuffled[: 2 * ROWS_COMPARED_PER_TASK : 2]
        other_half_rows = [index.rows[position] for position in shuffled[1 : 2 * ROWS_COMPARED_PER_TASK : 2]]
        task_rows = [index.rows[position] for position in shuffled[: 5 * ROWS_COMPARED_PER_TASK]]
        siblings = count_siblings(task_rows, task_rows[:ROWS_COMPARED_PER_TASK])
        expected_by_words = index.expected_near(half_positions, other_half_rows, size, siblings)
        expected_by_words *= len(positions) / max(len(half_positions), 1)
        expected_rows = max(expected_by_words, siblings.expected_near(len(positions), size))
        # a pair is expected from both sides where both rows are looked for, and counted once
        repeats.append(NearRepeats(task, len(positions), pairs, expected_rows * (1 - len(positions) / size / 2)))
    return repeats


def _each_once(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Without those whose other order came before."""
    seen = set[tuple[int, int]]()
    return [pair for pair in pairs if pair[::-1] not in seen and not seen.add(pair)]

"""Features of prompts without a model: hashed words and character trigrams, lengths, numbers; 32 bytes per example.

Words (between spaces) and character trigrams are counted in `BUCKETS` hash buckets, the most varied `KEPT_BUCKETS` of them
are projected onto their principal components over a sample of the rows, and each component is scaled to unit variance.
Beside them stand the length in characters and in words, how many numbers there are, and how long they are. Everything is
done in whole arrays: no Python loop over tokens.

Source: feature hashing 0902.2206; principal components in place of a random projection are our choice.
Unit: 1/32 of a standard deviation of the rows, clipped at four.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

FEATURE_BYTES = 32
"""Bytes per example: `LENGTH_COLUMNS` columns of lengths and numbers, the rest principal components."""
LENGTH_COLUMNS = 7
WORDS_COLUMN, CAP_IN_MEDIANS = 2, 10
"""Column of the number of words, which is cut at so many times the median of the sample."""
BUCKETS, KEPT_BUCKETS = 2048, 384
SAMPLE_ROWS = 8192
"""Rows that the components are worked out from, spread evenly over the pool."""
CHUNK_ROWS, CHUNK_BYTES = 2048, 2**20
"""Rows at a time, and bytes at a time but for one row; 64 bytes of memory each."""
PROMPT_BYTES_READ = 4000
"""Bytes of a prompt that are read: its first and its last half of these, where it is longer."""
TRIGRAM_WEIGHT = 0.5
"""Weight of a trigram against 1 for a word."""
FEATURE_SCALE = 32
VARIANCE_DECIMALS = 9
"""Of the variance by which buckets are kept."""
TIE_BREAK_SLOPE = 1e-6
"""Share by which the last bucket counts more than the first, in the components: where several would be equally large, as
for a few templates, rounding, and so the kind of processor, would decide which ones are taken, and with which sign."""
HASH_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse modulo 2^64
HASH_BASE_INVERSE = np.uint64(pow(int(HASH_BASE), -1, 2**64))
HASH_MIXER = np.uint64(0xBF58476D1CE4E5B9)


def prompt_features(prompts: Sequence[str]) -> np.ndarray:
    """Features of each prompt, int8 of shape (prompts, `FEATURE_BYTES`); the same for the same texts in the same order."""
    size = len(prompts)
    spread_out = np.unique(np.linspace(0, size - 1, min(size, SAMPLE_ROWS)).round().astype(int))
    sample = [prompts[int(row)] for row in spread_out]
    found = list(_counted(sample))
    shapes, counts = np.concatenate([part[0] for part in found]), np.concatenate([part[1] for part in found])
    longest = CAP_IN_MEDIANS * max(1.0, float(np.median(shapes[:, WORDS_COLUMN])))
    shapes[:, WORDS_COLUMN] = np.minimum(shapes[:, WORDS_COLUMN], longest)
    columns, components = _components(counts)
    centre = counts[:, columns].mean(0, dtype=np.float64)
    sample_features = np.c_[shapes, (counts[:, columns] - centre) @ components]
    middle, spread = sample_features.mean(0), sample_features.std(0)
    scale = np.where(spread > 1e-6, FEATURE_SCALE / np.maximum(spread, 1e-6), 0.0)
    features = np.zeros((size, FEATURE_BYTES), dtype=np.int8)
    start = 0
    for shape, count in _counted(prompts):
        shape[:, WORDS_COLUMN] = np.minimum(shape[:, WORDS_COLUMN], longest)
        row = np.c_[shape, (count[:, columns] - centre) @ components]
        features[start : start + len(row), : row.shape[1]] = np.clip(np.rint((row - middle) * scale), -127, 127)
        start += len(row)
    return features


def features_digest(features: np.ndarray) -> str:
    """Of the features of a pool: a state is taken over for the same ones only."""
    return hashlib.blake2b(np.ascontiguousarray(features).tobytes(), digest_size=8).hexdigest()


def _components(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The most varied buckets, and the principal components of them: (buckets, at most FEATURE_BYTES - LENGTH_COLUMNS)."""
    # rounded, so that rounding does not rank buckets that are alike
    variance = counts.var(0, dtype=np.float64).round(VARIANCE_DECIMALS)
    columns = np.sort(np.argsort(-variance, kind="stable")[: min(KEPT_BUCKETS, int((variance > 0).sum()))])
    centred = counts[:, columns] - counts[:, columns].mean(0, dtype=np.float64)
    centred *= 1 + TIE_BREAK_SLOPE * np.linspace(0, 1, len(columns))
    values, vectors = np.linalg.eigh(centred.T @ centred)
    vectors = vectors[:, ::-1][:, : FEATURE_BYTES - LENGTH_COLUMNS]
    largest = np.abs(vectors).round(6).argmax(0) if vectors.size else np.zeros(0, dtype=int)
    vectors = vectors * np.sign(vectors[largest, np.arange(vectors.shape[1])])  # an eigenvector has no sign of its own
    alive = values[::-1][: FEATURE_BYTES - LENGTH_COLUMNS] > 1e-9 * max(float(values[-1]) if len(values) else 0.0, 1e-9)
    return columns, vectors * alive


def _counted(prompts: Sequence[str]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Lengths (rows, LENGTH_COLUMNS) and log counts (rows, BUCKETS) of some rows at a time."""
    texts: list[bytes] = []
    held = 0
    for text in prompts:
        raw = text.lower().encode("utf-8", "replace")
        if len(raw) > PROMPT_BYTES_READ:
            raw = raw[: PROMPT_BYTES_READ // 2] + b" " + raw[-PROMPT_BYTES_READ // 2 :]
        if texts and (len(texts) == CHUNK_ROWS or held + len(raw) + 2 > CHUNK_BYTES):
            yield _chunk(texts)
            texts, held = [], 0
        texts.append(b" " + raw + b" ")
        held += len(texts[-1])
    yield _chunk(texts)


def _chunk(texts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Shapes and log counts of these rows."""
    sizes = np.array([len(text) for text in texts])
    row = np.repeat(np.arange(len(texts)), sizes)
    letters = np.frombuffer(b"".join(texts), dtype=np.uint8)
    blank, digit = letters <= 32, (letters >= 48) & (letters <= 57)
    starts, ends = np.flatnonzero(blank[:-1] & ~blank[1:]) + 1, np.flatnonzero(~blank[:-1] & blank[1:]) + 1
    words = _hashed(letters, starts, ends)
    bits = letters.astype(np.uint64) + np.uint64(1)
    trigrams = (bits[:-2] * HASH_BASE + bits[1:-1]) * HASH_BASE + bits[2:]
    inside = (row[:-2] == row[2:]) & ~(blank[:-2] & blank[1:-1])
    counts = np.log1p(_table(row[starts], words, len(texts), 0))
    counts += TRIGRAM_WEIGHT * np.log1p(_table(row[:-2][inside], trigrams[inside], len(texts), 1))
    first, last = np.flatnonzero(~digit[:-1] & digit[1:]) + 1, np.flatnonzero(digit[:-1] & ~digit[1:]) + 1
    return _shapes(row, sizes, row[starts], row[first], last - first), counts


def _shapes(row: np.ndarray, sizes: np.ndarray, words: np.ndarray, numbers: np.ndarray, digits: np.ndarray) -> np.ndarray:
    """Characters, words, numbers and digits of each row, on linear and logarithmic scales."""
    rows = len(sizes)
    longest = np.zeros(rows)
    np.maximum.at(longest, numbers, np.minimum(digits, 20))
    word_counts, number_counts = np.bincount(words, minlength=rows), np.bincount(numbers, minlength=rows)
    total = np.bincount(numbers, digits, rows)
    logarithms = [np.log1p(counts) for counts in (sizes, word_counts, number_counts, total)]
    columns = *logarithms[:2], word_counts, logarithms[2], longest, logarithms[3], total / np.maximum(number_counts, 1)
    return np.stack(columns, axis=1).astype(float)


def _hashed(letters: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """A 64-bit hash of each run of bytes, by differences of one running polynomial."""
    powers = np.cumprod(np.full(len(letters), HASH_BASE))
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum((letters.astype(np.uint64) + np.uint64(1)) * powers)])
    back = np.cumprod(np.full(len(letters), HASH_BASE_INVERSE))
    return (running[ends] - running[starts]) * back[starts]


def _table(rows: np.ndarray, hashes: np.ndarray, count: int, bucket_half: int) -> np.ndarray:
    """How often each bucket stands in each row, float32 of shape (count, BUCKETS); kinds have halves of their own."""
    half = BUCKETS // 2
    mixed = (hashes ^ (hashes >> np.uint64(31))) * HASH_MIXER
    bucket = (mixed >> np.uint64(40)).astype(np.int64) % half + bucket_half * half
    return np.bincount(rows * BUCKETS + bucket, minlength=count * BUCKETS).reshape(count, BUCKETS).astype(np.float32)

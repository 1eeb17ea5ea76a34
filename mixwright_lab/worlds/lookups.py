"""World of documents of look-ups: every turn names a key and gives its value, rightly or with an error.

A table gives each key one value; an error gives the value of the next number instead. Errors can be spread over all
documents alike, or clustered: a share of the documents has them in many turns, the rest in none. The share of wrong turns
over all documents can be the same in both.

Source: setting of injected errors after Sinha et al., The Illusion of Diminishing Returns, 2509.09677; own world.
Unit: level = number of the turn, 1 to `turns`; the turns before it stand in the prompt.
Cost: about 40 us per example; documents are drawn as arrays.
Blind spot: turns do not depend on each other, so that no state is carried on and leaving turns out loses nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

TURNS, KEYS = 16, 10
HELD_OUT = 5
"""Key sequences whose sum is a multiple of this belong to the eval split."""


@dataclass(frozen=True, slots=True)
class Documents:
    """Documents of as many turns each, as numbers; every array has shape (documents, turns)."""

    keys: np.ndarray
    """Key of each turn."""
    values: np.ndarray
    """Value that is written there."""
    wrong: np.ndarray
    """Whether it is an error."""


class Lookups(World):
    """Documents such as "ka 7 kf 12 kb", whose answer is the value of "kb".

    Args:
        share: of the documents that hold errors, 0..1.
        rate: share of wrong turns in those, 0..1; `share` * `rate` of all turns are wrong.
        seed: of the table.
    """

    def __init__(self, *, share: float = 0.5, rate: float = 0.7, seed: int = 0) -> None:
        if not (0 <= share <= 1 and 0 <= rate <= 1):
            raise InputError("a share and a rate of 0 to 1", f"{share} and {rate}", "Correct them.")
        self.share, self.rate, self.seed = share, rate, seed

    @cached_property
    def table(self) -> np.ndarray:
        """Value of each key, int64 of shape (KEYS,): a permutation."""
        return np.random.default_rng(self.seed).permutation(KEYS)

    def rates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Share of wrong turns that documents are to have, shape (count,): `rate` in a `share` of them, else 0."""
        return np.where(rng.random(count) < self.share, self.rate, 0.0)

    def documents(self, rates: np.ndarray, rng: np.random.Generator, split: str = "train", turns: int = TURNS) -> Documents:
        """Draw documents, each turn wrong with the document's rate by itself.

        Args:
            rates: of wrong turns, one per document.
            rng: of keys and errors; the same one with other rates draws the same keys, and errors that contain each other.
            split: train or eval, by the sum of the keys.
            turns: of each document.
        """
        chance = rng.random((len(rates), turns))
        keys = rng.integers(KEYS, size=(len(rates), turns))
        while (other := (keys.sum(1) % HELD_OUT == 0) != (split == "eval")).any():
            keys[other] = rng.integers(KEYS, size=(int(other.sum()), turns))
        wrong = chance < rates[:, None]
        return Documents(keys, (self.table[keys] + wrong) % KEYS, wrong)

    def make(self, index: int, level: float, split: str) -> Example:
        """The turn `level` of a document, with what stands before it. Raises InputError for a turn that there is not."""
        turn = int(level)
        if turn != level or not 1 <= turn <= TURNS or split not in ("train", "eval"):
            raise InputError(f"a turn of 1 to {TURNS} of train or eval", f"{level} of {split!r}", "Correct it.")
        rng = np.random.default_rng((self.seed, index, turn, split == "eval"))
        document = self.documents(self.rates(1, rng), rng, split, turn)
        keys, values = document.keys[0], document.values[0]
        before = [word for key, value in zip(keys[:-1], values[:-1], strict=True) for word in (key_name(key), str(value))]
        return Example(
            f"{split}:{turn}:{index}",
            "lookups",
            " ".join((*before, key_name(keys[-1]))),
            answer=str(self.table[keys[-1]]),
            level=float(turn),
            knobs={"wrong before": float(document.wrong[0, :-1].sum())},
            source="lookups",
            split=split,
        )


def key_name(key: int) -> str:
    """Word of a key: "ka" is the first."""
    return f"k{'abcdefghij'[key]}"


def language() -> Language:
    """Whole documents as responses to an empty prompt: key, value, key, value."""
    from mixwright_lab.training.language import SIGNS, Language

    return Language((*SIGNS, *map(key_name, range(KEYS)), *map(str, range(KEYS))), 1, 2 * TURNS + 1)


def tokens(documents: Documents) -> np.ndarray:
    """Documents in the language's numbers: key, value, key, value, shape (documents, 2 * turns)."""
    index = language().index
    pairs = np.stack((documents.keys + index[key_name(0)], documents.values + index["0"]), axis=2)
    return pairs.reshape(len(pairs), -1)

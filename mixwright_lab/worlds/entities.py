"""World of entities with attributes, whose facts are said in six forms: questions, statements and a passage.

Entities of the train split are those that a base may know, in the native forms; those of the eval split are new. A foreign
statement says what a native one says, in the same order, with marks that a base has never read. A passage says all of an
entity at once.

Source: setting of Zweiger et al., SEAL, 2506.10943 (new facts come as passages); own world.
Unit: level = form: 1 question, 2 other question, 3 statement, 4 reversed, 5 foreign, 6 passage.
Cost: about 10 us per example.
Blind spot: one word per name, and facts without structure: no fact follows from others.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from mixwright.errors import InputError
from mixwright.records import Example
from mixwright_lab.contracts import World

if TYPE_CHECKING:
    from mixwright_lab.training.language import Language

KNOWN_ENTITIES, NEW_ENTITIES, ATTRIBUTES, VALUES = 160, 40, 5, 10
"""Known entities, new ones, attributes of each, and values of each attribute."""
FORMS = {1.0: "question", 2.0: "other question", 3.0: "statement", 4.0: "reversed", 5.0: "foreign", 6.0: "passage"}
TAUGHT_FORMS = (1.0, 2.0, 3.0, 4.0)
"""Forms that a base is taught."""
MARKS = ("?", "ask", "tell", "has", "of", "is", "~1", "~2", "~3", "about", ";")


class Entities(World):
    """Facts such as "? a3 e17", whose answer is "v4"; "tell e17", "has a3 v4" says the same.

    Args:
        seed: of the values.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.seed = seed

    @cached_property
    def values(self) -> np.ndarray:
        """Value of each attribute of each entity, int64 of shape (KNOWN + NEW, ATTRIBUTES)."""
        return np.random.default_rng((self.seed, 28)).integers(VALUES, size=(KNOWN_ENTITIES + NEW_ENTITIES, ATTRIBUTES))

    def make(self, index: int, level: float, split: str) -> Example:
        """The fact at that index, which repeats after all of the split. Raises InputError for a form that there is not."""
        if level not in FORMS or split not in ("train", "eval"):
            raise InputError("a form of 1 to 6, of train or eval", f"{level:g} of {split!r}", "Correct it.")
        first, count = (0, KNOWN_ENTITIES) if split == "train" else (KNOWN_ENTITIES, NEW_ENTITIES)
        # Known attributes walk on with the entities, so that any run of indices has all of them.
        entity, attribute = first + index % count, (index + index // count) % ATTRIBUTES
        prompt, target = self.state_fact(entity, attribute, level)
        answer, name = f"v{self.values[entity, attribute]}", f"{split}:{index}:{level:g}"
        return Example(name, FORMS[level], prompt, target, answer, level, source="entities", split=split)

    def state_fact(self, entity: int, attribute: int, form: float) -> tuple[str, str]:
        """Prompt and target of a fact in a form; a passage says all facts of the entity."""
        name, kind, value = f"e{entity}", f"a{attribute}", f"v{self.values[entity, attribute]}"
        every = " ; ".join(f"a{place} v{own}" for place, own in enumerate(self.values[entity].tolist()))
        return {
            "question": (f"? {kind} {name}", value),
            "other question": (f"ask {name} {kind}", value),
            "statement": (f"tell {name}", f"has {kind} {value}"),
            "reversed": (f"tell {value}", f"is {kind} of {name}"),
            "foreign": (f"~1 {name}", f"~2 {kind} ~3 {value}"),
            "passage": (f"about {name}", every),
        }[FORMS[form]]


def language() -> Language:
    """What a model reads and writes here."""
    from mixwright_lab.training.language import SIGNS, Language

    names = [
        f"{kind}{n}"
        for kind, count in (("e", KNOWN_ENTITIES + NEW_ENTITIES), ("a", ATTRIBUTES), ("v", VALUES))
        for n in range(count)
    ]
    return Language((*SIGNS, *MARKS, *names), 4, 3 * ATTRIBUTES)


def write_solution(example: Example, style: str, noise: float, rng: np.random.Generator) -> str:
    """The target of a row as it stands."""
    return str(example.target)

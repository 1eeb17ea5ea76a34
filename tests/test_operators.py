"""The world of operators: values by hand, splits that share no prompt, and levels that only the operations show."""

import numpy as np
import pytest

from mixwright_lab.worlds.chain import running_values
from mixwright_lab.worlds.operators import CLASSES, FEWEST, LENGTH, LEVELS, Operators, class_of

WORLD = Operators()


def made(level: float, split: str = "train", count: int = 300) -> list:
    return [WORLD.make(index, level, split) for index in range(count)]


def test_values_are_calculated_modulo_sixteen():
    assert running_values("7 +2 +4 *5 +1") == [9, 13, 1, 2]  # 65 = 4 x 16 + 1
    assert class_of("7 +2 +4 *5 +1") == 2
    assert [class_of(prompt) for prompt in ("3 +1 +4 +7 *3", "3 +1 +4 +7 *5", "3 +1 +5 +7 *7")] == [1, 2, 3]


@pytest.mark.parametrize("level", LEVELS)
def test_a_problem_has_four_operations_and_the_level_of_its_highest_class(level):
    for example in made(level):
        start, *operations = str(example.prompt).split()
        assert 0 <= int(start) < 16
        assert len(operations) == LENGTH
        assert class_of(str(example.prompt)) == example.level == level
        assert sum(operation in CLASSES[level - 1] for operation in operations) >= (FEWEST if level > 1 else LENGTH)
        assert example.answer == str(running_values(str(example.prompt))[-1])


def test_neither_length_nor_numbers_nor_signs_say_the_level():
    """Mean characters, numbers and multiplications of a prompt are nearly the same at each level."""
    assert {len(operation) for part in CLASSES for operation in part} == {2}
    operations = [
        [word for example in made(level, count=2000) for word in str(example.prompt).split()[1:]] for level in LEVELS
    ]
    sizes = [np.mean([int(word[1:]) for word in words]) for words in operations]
    products = [np.mean([word[0] == "*" for word in words]) for words in operations]
    assert max(sizes) - min(sizes) < 1.5  # of 1 to 8; class means are 3.75, 5 and 5.33
    assert max(products) - min(products) < 0.1  # a quarter, or a third of class 3

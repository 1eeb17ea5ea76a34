"""contributing/promises.md names tests that exist, and every setting that is tested stands there under its own word."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import grpo_table
import pytest
import test_dpo_settings as dpo
import test_grpo_settings_refused as grpo_refused
import test_sft_settings as sft

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "contributing" / "promises.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/\w+\.py)::(\w+)(?:\[([^`]*)\])?`", PAGE)))
WORDS = {
    "sft": {"exact": set(sft.EXACT), "supported": set(sft.SUPPORTED), "refused": set(sft.REFUSED)},
    "dpo": {"exact": set(dpo.EXACT), "supported": set(dpo.SUPPORTED), "refused": set(dpo.REFUSED)},
    "grpo": {"exact or stand-in": set(grpo_table.TABLE), "refused": set(grpo_refused.REFUSED)},
}


@cache
def parsed(path: str) -> tuple[set[str], set[str]]:
    """Names of the functions of a file, and its strings."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return functions, {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


@pytest.mark.parametrize(("path", "name", "parameter"), NAMED)
def test_a_test_that_is_named_exists(path: str, name: str, parameter: str) -> None:
    functions, strings = parsed(path)
    assert name in functions
    assert not parameter or parameter in strings


def told() -> dict[str, dict[str, set[str]]]:
    """Trainer -> word -> settings, as the table of the page says it."""
    found = {trainer: {word: set() for word in words} for trainer, words in WORDS.items()}
    for line in PAGE.splitlines():
        for cell in line.split("|"):
            for part in cell.split(";"):
                word, _, settings = part.strip().partition(": ")
                for trainer, setting in re.findall(r"`(sft|dpo|grpo)\[([^`]+)\]`", settings):
                    word = "exact or stand-in" if trainer == "grpo" and word in ("exact", "stand-in") else word
                    found[trainer][word].add(setting)
    return found


@pytest.mark.parametrize("trainer", WORDS)
def test_each_setting_stands_under_the_word_that_its_test_proves(trainer: str) -> None:
    assert told()[trainer] == WORDS[trainer]


def test_the_page_names_tests_at_all() -> None:
    assert len(NAMED) > 20

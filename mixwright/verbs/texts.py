"""Texts that docstrings have for fields and parameters: one source for code, help and commented settings."""

from __future__ import annotations

import ast
import inspect
import itertools
import re


def read_fields(source: str) -> dict[str, dict[str, str]]:
    """Return class -> field -> the docstring under the field, from the source of a module."""
    texts: dict[str, dict[str, str]] = {}
    for node in (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)):
        for field, text in itertools.pairwise(node.body):
            is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                found = str(text.value.value)  # pyright: ignore[reportAttributeAccessIssue]
                texts.setdefault(node.name, {})[field.target.id] = " ".join(found.split())
    return texts


def read_parameters(docstring: str | None) -> dict[str, str]:
    """Return parameter -> its text in the section `Args` of a docstring."""
    _, _, section = inspect.cleandoc(docstring or "").partition("\nArgs:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section.partition("\n\n")[0], re.M)
    return {name: " ".join(text.split()) for name, text in found}

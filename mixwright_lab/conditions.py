"""Conditions of a run: versions, processor and commit, and the digest of the code that a figure depends on."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PACKAGES = ("mixwright", "torch", "trl", "transformers", "accelerate", "datasets", "numpy", "pyarrow")
CPU = "cpu"
DECIDING_PACKAGES = ("mixwright", "torch", "numpy")
"""Packages whose version is part of what a row is kept under."""
TEXT_NAMES = {"CLAIM", "SOURCE", "WHAT_IT_SHOWS", "POPULAR_READING", "FEATURES", "EXPECT", "PLOTS", "REMARKS", "SEEDS"}
TEXT_NAMES |= {"PRIMARY", "PUBLISHED", "CONTROL", "REAL"}
"""Names of a finding that change no reading."""


def conditions() -> dict[str, Any]:
    """Versions, processor and commit: what a figure depends on, and nothing that names the machine or its owner."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    commit = _git("rev-parse", "HEAD")
    changes = _git("status", "--porcelain", "--", ".", ":!mixwright_lab/studies/results", ":!mixwright_lab/results")
    return {
        "commit": os.environ.get("MIXWRIGHT_COMMIT") or commit or "unknown",  # a copy's checkout may name another one
        "tree": "unknown" if changes is None else "as committed" if not changes else "changed since the commit",
        "versions": versions(),
        "machine": {
            "processor": _processor(),
            "cores": cores,
            "threads": os.environ.get("OMP_NUM_THREADS", "as the library has it"),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        },
    }


def device() -> str:
    """Name of the accelerator that models are on here, or `cpu`."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else CPU


def versions() -> dict[str, str]:
    """Of Python and of the packages that are installed."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def digest_of(module: str, *more: object) -> str:
    """Hexadecimal digest of a lab module, of all that it imports of the lab, of deciding versions, and of `more`.

    Comments, docstrings and the texts of a finding are left out: they change no reading.
    """
    return hashlib.blake2b(repr((_code(module), more)).encode(), digest_size=12).hexdigest()


@functools.cache
def _code(module: str) -> str:
    known = versions()
    parts = [
        *(_strip_texts(_path(name)) for name in sorted(closure(module))),
        *(f"{name} {known.get(name)}" for name in DECIDING_PACKAGES),
    ]
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=12).hexdigest()


def closure(module: str) -> set[str]:
    """The module and every module of the lab that it imports, directly or through others."""
    found, left = set[str](), [module]
    while left:
        name = left.pop()
        if name not in found and _path(name).is_file():
            found.add(name)
            left += _imported(_path(name))
    return found


def _path(module: str) -> Path:
    return ROOT / Path(*module.split(".")).with_suffix(".py")


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("mixwright_lab"):
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("mixwright_lab"))


def _strip_texts(path: Path) -> str:
    """A source without what changes no reading."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [line for line in body if not _is_text(line)] or [ast.Pass()]  # pyright: ignore[reportAttributeAccessIssue]
    return ast.dump(tree)


def _is_text(line: ast.AST) -> bool:
    if isinstance(line, ast.Expr):
        return isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)
    targets = line.targets if isinstance(line, ast.Assign) else [line.target] if isinstance(line, ast.AnnAssign) else []
    return any(isinstance(target, ast.Name) and target.id in TEXT_NAMES for target in targets)


def _processor() -> str:
    """The model of the processor, without anything else that the system says of itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _git(*words: str) -> str | None:
    """What git says about the tree this file lies in; None where it cannot."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()

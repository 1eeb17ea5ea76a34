"""The tree at the end of the README, made from the files' own first lines: `make tree` writes it, a test compares it."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- tree: `make tree` writes it -->\n```\n", "```\n<!-- /tree -->"
WIDTH = 30

FILES = {
    "Makefile": "demo, check, test, oldest, slow: each does its own set-up",
    "pyproject.toml": "package, dependencies, tool settings",
    "constraints.txt": "every version the tests ran with",
    "constraints-oldest.txt": "the oldest training packages of the declared ranges",
    ".ci/run": "what continuous integration runs",
    "CHANGELOG.md": "what changed for users",
    "CONTRIBUTING.md": "four commands, how to add one file, what is refused",
    "LICENSE": "Apache 2.0",
    "docs/": "what each lever is worth, how to steer, what the trainers promise and the proof, the log of what was tried",
    "tests/": "test_<module>.py; test_contracts.py tests every plug-in; plugin/ is a real one",
}
"""What has no docstring of its own to take the comment from."""

PACKAGES = ("benchmarks", "examples", "mixwright", "mixwright_lab")


def summary(path: Path) -> str:
    """First docstring line of a module, or of a package's `__init__`."""
    source = path / "__init__.py" if path.is_dir() else path
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) if source.exists() else ""
    return (text or "").split("\n", 1)[0].rstrip(".")


def _lines(folder: Path, depth: int) -> list[str]:
    names = [path for path in folder.iterdir() if path.suffix == ".py" and path.name != "__init__.py"]
    folders = [path for path in folder.iterdir() if path.is_dir() and any(path.glob("*.py"))]
    lines = []
    for path in [*sorted(folders), *sorted(names)]:
        name = "  " * depth + path.name + ("/" if path.is_dir() else "")
        lines.append(f"{name:<{WIDTH}} {summary(path)}".rstrip())
        if path.is_dir():
            lines += _lines(path, depth + 1)
    return lines


def tree() -> str:
    """The tree as the README shows it."""
    lines = [f"{name:<{WIDTH}} {comment}" for name, comment in FILES.items()]
    for package in PACKAGES:
        folder = ROOT / package
        if folder.is_dir():
            comment = summary(folder) or "one numbered script per stage, and the two-line drop-in"
            lines += [f"{package + '/':<{WIDTH}} {comment}", *_lines(folder, 1)]
    return "\n".join(lines) + "\n"


def shown(readme: str) -> str:
    """The tree that a README shows; empty when it has none."""
    found = re.search(re.escape(BEGIN) + "(.*?)" + re.escape(END), readme, re.DOTALL)
    return found.group(1) if found else ""


def main() -> None:
    """Write the tree into the README."""
    path = ROOT / "README.md"
    text = path.read_text(encoding="utf-8")
    if not shown(text):
        sys.exit("README.md has no tree to replace")
    path.write_text(text.replace(BEGIN + shown(text) + END, BEGIN + tree() + END), encoding="utf-8")


if __name__ == "__main__":
    main()

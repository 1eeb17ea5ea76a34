"""The project's own files, and the tree of them in docs/architecture.md: `make tree` writes it, a test compares it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- tree: `make tree` writes it -->\n```\n", "```\n<!-- /tree -->"
WIDTH = 30

FILES = {
    "Makefile": "demo, check, test, oldest, slow, mutants, tree: each does its own set-up",
    "pyproject.toml": "package, dependencies, tool settings",
    "constraints.txt": "every version the tests ran with",
    "constraints-oldest.txt": "the oldest training packages of the declared ranges",
    ".ci/run": "what continuous integration runs",
    "CHANGELOG.md": "what changed for users",
    "CONTRIBUTING.md": "four commands, how to add one file, what is refused",
    "LICENSE": "Apache 2.0",
    "docs/": "what each lever is worth, claims re-run, how to steer, what the trainers promise, the log of what was tried",
    "tests/": "test_<module>.py; test_contracts.py tests every plug-in; plugin/ is a real one",
}
"""What has no docstring of its own to take the comment from."""

PACKAGES = ("benchmarks", "examples", "mixwright", "mixwright_lab")
OWN = {Path(name).parts[0] for name in FILES} | set(PACKAGES) | {"README.md", ".gitignore"}
"""What stands at the top of the folder."""
BUILT = {"__pycache__", "build", "dist"}


def project_files(root: Path = ROOT) -> list[Path]:
    """The files of the project under `root`, sorted.

    In a clone they are what git keeps, so that environments, data and runs may stand anywhere in it under any name. Without
    git (an unpacked archive) they are what stands in the folders of the project now.
    """
    kept = _kept_by_git(root)
    if kept is not None:
        return sorted(path for name in kept if (path := root / name).is_file())
    found = [path for own in sorted(OWN) for path in ((root / own).rglob("*") if (root / own).is_dir() else [root / own])]
    return sorted(path for path in found if path.is_file() and not _built(path.relative_to(root)))


def _kept_by_git(root: Path) -> list[str] | None:
    """Names that git keeps; None where `root` is no clone, or git is not there or refuses."""
    if not (root / ".git").exists():
        return None
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in listed.decode().split("\0") if name]


def _built(path: Path) -> bool:
    return any(part in BUILT or part.endswith(".egg-info") for part in path.parts)


def summary(path: Path) -> str:
    """First docstring line of a module, or of a package's `__init__`."""
    source = path / "__init__.py" if path.is_dir() else path
    text = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) if source.exists() else ""
    return (text or "").split("\n", 1)[0].rstrip(".")


def _lines(folder: Path, depth: int, sources: list[Path]) -> list[str]:
    names = [path for path in sources if path.parent == folder and path.name != "__init__.py"]
    folders = {path.parent for path in sources if path.parent.parent == folder}
    lines = []
    for path in [*sorted(folders), *sorted(names)]:
        name = "  " * depth + path.name + ("/" if path in folders else "")
        lines.append(f"{name:<{WIDTH}} {summary(path)}".rstrip())
        if path in folders:
            lines += _lines(path, depth + 1, sources)
    return lines


def tree() -> str:
    """The tree as the page shows it."""
    lines = [f"{name:<{WIDTH}} {comment}" for name, comment in FILES.items()]
    sources = [path for path in project_files() if path.suffix == ".py"]
    for package in PACKAGES:
        folder = ROOT / package
        comment = summary(folder) or "one numbered script per stage, and the two-line drop-in"
        lines += [f"{package + '/':<{WIDTH}} {comment}", *_lines(folder, 1, sources)]
    return "\n".join(lines) + "\n"


def shown(page: str) -> str:
    """The tree that a page shows; empty when it has none."""
    found = re.search(re.escape(BEGIN) + "(.*?)" + re.escape(END), page, re.DOTALL)
    return found.group(1) if found else ""


def main() -> None:
    """Write the tree into the page."""
    text = PAGE.read_text(encoding="utf-8")
    if not shown(text):
        sys.exit(f"{PAGE.name} has no tree to replace")
    PAGE.write_text(text.replace(BEGIN + shown(text) + END, BEGIN + tree() + END), encoding="utf-8")


if __name__ == "__main__":
    main()

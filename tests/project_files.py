"""The project's own files, which the house rules hold for."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
TOP_LEVEL_ENTRIES = {
    *("examples", "mixwright", "mixwright_extras", "mixwright_lab", "docs", "contributing", "tests", ".ci", ".gitignore"),
    *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "mkdocs.yml", "pyproject.toml"),
    *("constraints.txt", "constraints-oldest.txt", "action.yml", ".pre-commit-hooks.yaml"),
}
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
    found = [
        path
        for own in sorted(TOP_LEVEL_ENTRIES)
        for path in ((root / own).rglob("*") if (root / own).is_dir() else [root / own])
    ]
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

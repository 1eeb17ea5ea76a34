"""The wheel, installed outside the repository with the core dependencies alone, does all that needs no model.

The core packages are linked from this environment: just those that the wheel declares, with what they declare in turn.
So no network is needed, and nothing else can be imported by accident.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "trl", "datasets", "scipy", "reasoning_gym", "peft", "matplotlib")
SOURCES = ("mixwright", "mixwright_extras", "mixwright_lab", "pyproject.toml", "README.md", "LICENSE")


def needed(name: str, found: set[str], extras: frozenset[str] = frozenset()) -> set[str]:
    """Names of all distributions that `name` needs, itself left out, as its metadata says."""
    for text in distribution(name).requires or []:
        wish = Requirement(text)
        wanted = wish.marker is None or any(wish.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        key = re.sub(r"[-_.]+", "-", wish.name).lower()
        if wanted and key not in found:
            found.add(key)
            needed(wish.name, found, frozenset(wish.extras))
    return found


def link(name: str, place: Path) -> None:
    """Link the top-level entries of an installed distribution into `place`."""
    for file in distribution(name).files or []:
        top = file.parts[0]
        if top not in ("..", "__pycache__") and not (place / top).exists():
            (place / top).symlink_to(Path(str(distribution(name).locate_file(top))))


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's content and its core dependencies."""
    place, source = tmp_path_factory.mktemp("slim"), tmp_path_factory.mktemp("source")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*build, "--wheel-dir", str(source / "dist"), str(source)], check=True)
    (wheel,) = (source / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        file.extractall(place)
    for name in needed("mixwright", set()):
        link(name, place)
    return place


def run(slim: Path, code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code that sees the standard library and `slim`, nothing else (-S leaves this environment's packages out)."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(slim), "HOME": str(folder)}
    after = f"\nimport sys\nheavy = [name for name in {HEAVY} if name in sys.modules]\nassert not heavy, heavy"
    command = [sys.executable, "-S", "-c", code + after]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


CALL = """
from mixwright.__main__ import main
for words in {commands!r}:
    try:
        main(words)
    except SystemExit as leaving:
        assert not leaving.code, (words, leaving.code)
"""


def test_nothing_heavy_can_be_imported_in_the_slim_folder(slim: Path, tmp_path: Path) -> None:
    done = run(slim, "import importlib.util as u\nassert [n for n in " + repr(HEAVY) + " if u.find_spec(n)] == []", tmp_path)
    assert done.returncode == 0, done.stderr
    here = run(slim, "import mixwright\nprint(mixwright.__file__)", tmp_path)
    assert here.stdout.startswith(str(slim)), "the wheel is used, not the repository"


def test_help_list_and_explain_work(slim: Path, tmp_path: Path) -> None:
    done = run(slim, CALL.format(commands=[["--help"], ["list"], ["explain", "difficulty"]]), tmp_path)
    assert done.returncode == 0, done.stderr
    for told in ("Usage", "difficulty", "Blind spot:"):
        assert told in done.stdout


def test_a_jsonl_file_is_audited(slim: Path, tmp_path: Path) -> None:
    rows = [{"prompt": f"{n} + 1 =", "answer": str(n + 1)} for n in range(30)]
    for name, part in (("train", rows), ("eval", rows[:5])):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, part)), encoding="utf-8")
    done = run(slim, CALL.format(commands=[["audit", "train.jsonl", "--eval", "eval.jsonl", "--json"]]), tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["observations"]
    assert [o["count"] for o in found if o["check"] == "contamination" and o["severity"] == "error"] == [5]


def test_a_verdict_page_is_rendered_again(slim: Path, tmp_path: Path) -> None:
    from _example_run import build

    build(tmp_path / "run", seeds=2)
    done = run(slim, CALL.format(commands=[["verdict", "run", "--no-gate"]]), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "run/verdict.html" in done.stdout
    assert (tmp_path / "run" / "verdict.html").stat().st_size > 10_000


def test_what_needs_more_says_which_extra(slim: Path, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text('{"prompt": "1 + 1 =", "answer": "2"}\n', encoding="utf-8")
    (tmp_path / "run.yaml").write_text("corpus: {train: train.jsonl}\n", encoding="utf-8")
    done = run(slim, "from mixwright.__main__ import main\nmain(['run', 'run.yaml'])", tmp_path)
    assert done.returncode == 1
    assert "pip install 'mixwright[train]'" in done.stderr
    assert not (tmp_path / "runs").exists()

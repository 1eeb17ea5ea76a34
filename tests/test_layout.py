"""The house rules that a machine can check: sizes, borders, docstrings, the README's tree, nothing of one machine."""

import ast
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from readme_tree import FILES, PACKAGES, ROOT, shown, tree

from mixwright.catalog import KINDS

FILE_LINES, FUNCTION_LINES, PLUGIN_LINES = 400, 50, 200
OWN = {Path(name).parts[0] for name in FILES} | set(PACKAGES) | {"README.md", ".gitignore"}
"""What of the folder is the project's: whoever works in a clone keeps environments, data and runs beside it."""
BUILT = {"__pycache__", "build", "dist"}


def files(*suffixes: str, root: Path = ROOT) -> list[Path]:
    found: list[Path] = []
    for own in sorted(OWN):
        found += sorted((root / own).rglob("*")) or [root / own]
    found = [path for path in found if path.is_file() and (not suffixes or path.suffix in suffixes)]
    return [path for path in found if not any(p in BUILT or p.endswith(".egg-info") for p in path.relative_to(root).parts)]


SOURCES = files(".py")
PRODUCT = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("mixwright", "mixwright_lab")]
PLUGIN_FOLDERS = {ROOT.joinpath(*kind.package.split(".")) for kind in KINDS.values()}
PLUGINS = [path for path in PRODUCT if path.parent in PLUGIN_FOLDERS and not path.name.startswith("_")]


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def functions(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1, f"{name(path)}:{node.lineno} {node.name}"


def test_files_stay_short() -> None:
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert not {path: length for path, length in lengths.items() if length > FILE_LINES}
    assert not {name(path): lengths[name(path)] for path in PLUGINS if lengths[name(path)] > PLUGIN_LINES}


def test_functions_stay_short() -> None:
    assert not [where for path in SOURCES for length, where in functions(path) if length > FUNCTION_LINES]


def test_the_tail_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    length, longest = max((len(path.read_text(encoding="utf-8").splitlines()), name(path)) for path in PRODUCT)
    lines, function = max(found for path in PRODUCT for found in functions(path))
    with capsys.disabled():
        print(f"\nlongest file: {longest}, {length} lines; longest function: {function}, {lines} lines")


def undocumented(path: Path) -> Iterator[str]:
    """Public modules, classes, functions and methods without docstring; what an outer private name hides is private."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not ast.get_docstring(tree):
        yield name(path)
    pending: list[tuple[ast.AST, str]] = [(tree, "")]
    while pending:
        parent, prefix = pending.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                overload = any(isinstance(d, ast.Name) and d.id == "overload" for d in node.decorator_list)
                if not ast.get_docstring(node) and not overload:
                    yield f"{name(path)}:{node.lineno} {prefix}{node.name}"
                if isinstance(node, ast.ClassDef):
                    pending.append((node, f"{prefix}{node.name}."))


def test_every_public_name_has_a_docstring() -> None:
    examples = [path for path in SOURCES if path.parent.name == "examples"]
    assert [found for path in [*PRODUCT, *examples] for found in undocumented(path)] == []


@pytest.mark.parametrize("path", PLUGINS, ids=name)
def test_plugin_docstrings_say_source_unit_cost_and_blind_spot(path: Path) -> None:
    lines = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()
    assert lines
    assert lines[0].rstrip()
    for start in ("Source:", "Unit:", "Cost:", "Blind spot:"):
        found = [line for line in lines if line.startswith(start)]
        assert len(found) == 1, start
        assert found[0].removeprefix(start).strip(), start


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def test_the_library_never_imports_the_lab() -> None:
    library = [path for path in PRODUCT if path.relative_to(ROOT).parts[0] == "mixwright"]
    assert [name(p) for p in library if any(module.split(".")[0] == "mixwright_lab" for module in imported(p))] == []


def test_only_trainers_know_trl() -> None:
    outside = [path for path in PRODUCT if "trainers" not in path.parts and path.parts[-2] != "mixwright_lab"]
    assert [name(path) for path in outside if any(module.split(".")[0] == "trl" for module in imported(path))] == []


def test_the_readme_shows_the_real_tree() -> None:
    """Every line shown is true and all machinery is shown; a new plug-in may wait for `make tree`: one file, no edit."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    claimed, real = shown(text).splitlines(), tree().splitlines()
    optional = {path.name for path in PLUGINS}
    assert [line for line in claimed if line not in real] == []
    assert [line for line in real if line not in claimed and line.split()[0] not in optional] == []
    assert [line for line in real if len(line.split(maxsplit=1)) < 2] == [], "a comment per file"


def test_readme_links_lead_somewhere() -> None:
    for page in files(".md"):
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{name(page)} links to {target}"


FOREIGN = re.compile(
    r"(?<![\w.])/(work|root|home/\w+|Users/\w+|tmp/w)/|/tmp/bash_jobs|pypi\.org|download\.pytorch\.org|index-url"
)


def test_nothing_of_one_machine_is_written_down() -> None:
    text = [path for path in files() if path.suffix not in (".png", ".parquet") and path != Path(__file__)]
    found = [
        f"{name(path)}:{number}"
        for path in text
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if FOREIGN.search(line)
    ]
    assert found == []


@pytest.mark.parametrize("place", ["venv", "env", ".tox", "site-packages", "data"])
def test_only_what_is_the_projects_is_held_to_its_rules(place: str, tmp_path: Path) -> None:
    """An environment under any name, or somebody's data, in the clone."""
    for path in ("README.md", "mixwright/own.py", f"{place}/lib/python3.11/foreign.py", f"{place}/LICENSE.md"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert files(root=tmp_path) == [tmp_path / "README.md", tmp_path / "mixwright" / "own.py"]


@pytest.mark.skipif(not (shutil.which("git") and (ROOT / ".git").exists()), reason="no clone")
def test_what_git_keeps_is_the_projects() -> None:
    """A new folder at the top has to be named in `readme_tree`, or the rules would not hold there."""
    kept = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {Path(path).parts[0] for path in kept} <= OWN

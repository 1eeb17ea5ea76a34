"""The house rules that a machine can check: borders, docstrings, links, nothing of one machine."""

import ast
import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from project_files import ROOT, TOP_LEVEL_ENTRIES, project_files

import mixwright
from mixwright.catalog import KIND_BY_NAME, listing


def files(*suffixes: str, root: Path = ROOT) -> list[Path]:
    return [path for path in project_files(root) if not suffixes or path.suffix in suffixes]


PAGE = ROOT / "contributing" / "architecture.md"
SOURCES = files(".py")
PRODUCT = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("mixwright", "mixwright_extras", "mixwright_lab")]
PLUGINS = {f"{kind}/{name}": entry for kind in KIND_BY_NAME for name, entry in listing(kind).items()}


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


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


SAID = [
    *sorted((ROOT / "mixwright" / "records").glob("*.py")),
    *(ROOT / "mixwright" / f"{n}.py" for n in ("contracts", "config")),
]
"""Where every field is public: what crosses a stage border, what a plug-in is handed, what a user writes in run.yaml."""


def unsaid(path: Path) -> Iterator[str]:
    """Annotated fields of public classes without a docstring under them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            for field, text in itertools.zip_longest(node.body, node.body[1:]):
                is_field = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                is_text = (
                    isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
                )
                if is_field and not is_text:
                    yield f"{name(path)}:{field.lineno} {node.name}.{field.target.id}"


def test_every_public_field_has_a_docstring() -> None:
    assert [found for path in SAID for found in unsaid(path)] == []


@pytest.mark.parametrize("plugin", PLUGINS)
def test_plugin_docstrings_say_source_unit_cost_and_blind_spot(plugin: str) -> None:
    lines = PLUGINS[plugin].docstring.splitlines()
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


def test_the_library_never_imports_the_lab_or_the_extras() -> None:
    library = [path for path in PRODUCT if path.relative_to(ROOT).parts[0] == "mixwright"]
    others = ("mixwright_lab", "mixwright_extras")
    assert [name(p) for p in library if any(module.split(".")[0] in others for module in imported(p))] == []


def test_extras_import_one_module_of_the_core() -> None:
    extras = [path for path in PRODUCT if path.relative_to(ROOT).parts[0] == "mixwright_extras"]
    assert len(extras) > 50
    found = [
        (name(path), module) for path in extras for module in imported(path) if module.split(".")[0].startswith("mixwright")
    ]
    assert [pair for pair in found if pair[1] != "mixwright.extend" and not pair[1].startswith("mixwright_extras.")] == []


def test_a_verdict_depends_on_its_evidence_alone() -> None:
    """No cache, context variable or global changes what the rules of a verdict return."""
    kept = re.compile(r"\blru_cache\b|\bContextVar\b|^ *@(?:functools\.)?cache$|^ *global ", re.MULTILINE)
    rules = [path for path in PRODUCT if path.relative_to(ROOT).parts[:3] == ("mixwright", "verdict", "rules")]
    assert len(rules) > 10
    assert [name(path) for path in rules if kept.search(path.read_text(encoding="utf-8"))] == []


def test_only_trainers_know_trl() -> None:
    knowing = ("trainers", "demo", "studies")
    outside = [path for path in PRODUCT if not set(path.relative_to(ROOT).parts) & {*knowing}]
    assert [name(path) for path in outside if any(module.split(".")[0] == "trl" for module in imported(path))] == []


USERS = [path for path in SOURCES if path.relative_to(ROOT).parts[0] == "examples"]
"""What users copy; the laboratory and the studies measure internals, too."""


def reached_inside(source: str) -> Iterator[str]:
    """What a source takes of `mixwright` that is not public: modules, names, and members of what it imported."""
    tree, known = ast.parse(source), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [(alias.name, alias.name in mixwright.PUBLIC, alias) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            module = node.module or ""
            names = set(mixwright.__all__) if module == "mixwright" else {alias.name for alias in node.names}
            offered = names if module in mixwright.PUBLIC else set[str]()
            found = [
                (f"{module}.{alias.name}", alias.name in offered or f"{module}.{alias.name}" in mixwright.PUBLIC, alias)
                for alias in node.names
            ]
        else:
            continue
        for where, public, alias in found:
            if where.partition(".")[0] == "mixwright":
                known.add((alias.asname or alias.name).partition(".")[0])
                if not public or alias.name.startswith("_"):
                    yield where
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
            first: ast.expr = node
            while isinstance(first, ast.Attribute):
                first = first.value
            if isinstance(first, ast.Name) and first.id in known:
                yield ast.unparse(node)


def test_examples_use_public_names_only() -> None:
    found = [f"{name(path)}: {where}" for path in USERS for where in reached_inside(path.read_text(encoding="utf-8"))]
    assert found == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("from mixwright import Engine, catalog, api\nfrom mixwright.learner import load", []),
        ("import mixwright\nimport mixwright_lab._x\nfrom mixwright_lab import _x", []),
        ("from mixwright import steer, _NAMES_BY_MODULE", ["mixwright.steer", "mixwright._NAMES_BY_MODULE"]),
        ("import mixwright.steer.policy", ["mixwright.steer.policy"]),
        ("from mixwright.records import _share, Plan", ["mixwright.records._share"]),
        ("from mixwright.run.folder import RunFolder as R\nR._x = mine._x", ["R._x"]),
        ("import mixwright.errors\nmixwright.errors._all", ["mixwright.errors._all"]),
    ],
)
def test_what_is_not_public_is_found(source: str, expected: list[str]) -> None:
    assert list(reached_inside(source)) == expected


def heading_anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_lead_somewhere() -> None:
    for page in files(".md"):
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
            place = page.parent / target if target else page
            assert place.exists(), f"{name(page)} links to {target}"
            assert not anchor or anchor in heading_anchors(place), f"{name(page)} links to {target}#{anchor}"


NOT_YET = "does not exist yet"


def test_the_architecture_page_names_files_that_exist() -> None:
    """Of the repository, or in `mixwright/`; a line may say that a place does not exist yet. What runs write is left out."""
    text = PAGE.read_text(encoding="utf-8")
    found = [
        (line, path)
        for line in text.splitlines()
        if NOT_YET not in line
        for path in re.findall(r"`((?:\w+/)*\w+\.py|(?:\w+/)+)`", line)
        if not path.startswith(("runs/", "trial/steered-"))
    ]
    assert len(found) > 50
    assert [pair for pair in found if not any((top / pair[1]).exists() for top in (ROOT, ROOT / "mixwright"))] == []


FOREIGN = re.compile(  # models write /home/user in their answers
    r"(?<![\w.])/(work|root|home/(?!user/)\w+|Users/\w+|tmp/w)/|/tmp/bash_jobs|pypi\.org|download\.pytorch\.org|index-url"
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


def clone_of(root: Path) -> None:
    """Make `root` a clone that keeps what stands there now."""
    for command in (("init", "--quiet"), ("add", "--all")):
        subprocess.run(["git", *command], cwd=root, check=True)


PLACES = ["venv", "env", ".tox", "site-packages", "data"]


@pytest.mark.parametrize("place", [*PLACES, "mixwright/venv", "docs/data", "mixwright_lab/.env"])
@pytest.mark.skipif(not shutil.which("git"), reason="no git")
def test_in_a_clone_only_what_git_keeps_is_held_to_the_rules(place: str, tmp_path: Path) -> None:
    """An environment under any name, or somebody's data, anywhere in the clone; a file that is gone is no file."""
    made(tmp_path, "README.md", "mixwright/own.py", "mixwright/gone.py")
    clone_of(tmp_path)
    (tmp_path / "mixwright" / "gone.py").unlink()
    made(tmp_path, f"{place}/lib/python3.11/foreign.py", f"{place}/LICENSE.md", "train.py")
    assert files(root=tmp_path) == [tmp_path / "README.md", tmp_path / "mixwright" / "own.py"]


@pytest.mark.parametrize("place", PLACES)
def test_without_git_only_the_projects_folders_are_held_to_the_rules(place: str, tmp_path: Path) -> None:
    """An archive that was unpacked, with an environment under any name, or somebody's data, beside its folders."""
    made(tmp_path, "README.md", "mixwright/own.py", f"{place}/lib/python3.11/foreign.py", f"{place}/LICENSE.md")
    assert files(root=tmp_path) == [tmp_path / "README.md", tmp_path / "mixwright" / "own.py"]


def made(root: Path, *paths: str) -> None:
    """Make empty files, and their folders."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


@pytest.mark.skipif(not (shutil.which("git") and (ROOT / ".git").exists()), reason="no clone")
def test_what_git_keeps_is_the_projects() -> None:
    """A new folder at the top is named in `project_files.TOP_LEVEL_ENTRIES`; the rules would not hold there without git."""
    assert {path.relative_to(ROOT).parts[0] for path in project_files()} <= TOP_LEVEL_ENTRIES

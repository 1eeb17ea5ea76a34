"""Borders inside the library: what is private stays in its folder, nothing imports a higher floor, and no circle is left."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from project_files import ROOT
from test_layout import PRODUCT

FLOORS = (
    ("errors", "time_limit", "skeleton", "words", "thoughts", "tool_calls", "start"),
    ("final_answer",),
    ("records", "languages", "behaviours"),
    ("estimates", "config", "run.folder", "run.progress", "run.trackers", "catalog"),
    ("graders", "run.workers"),
    ("corpus", "suite"),
    ("contracts", "run.checked", "run.ray_workers"),
    ("learner", "run.manifest"),
    ("audit", "rewards", "answers"),
    ("measure",),
    ("logs",),
    ("mine",),
    ("plan",),
    ("steer",),
    ("trainers",),
    ("trial",),
    ("verdict",),
    ("run.preflight",),
    ("run.opening",),
    ("run.pipeline",),
    ("verbs",),
    ("api", "extend"),
    ("__main__",),
)
"""First part of a module's name below `mixwright`, from the lowest floor up; `run/` has files on several floors.
contributing/architecture.md says the same in words.
"""
HEIGHT = {part: height for height, floor in enumerate(FLOORS) for part in floor} | {"run": 0}
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in PRODUCT
    if path.relative_to(ROOT).parts[0] == "mixwright"
}
FACE = ("mixwright", "mixwright.contracts", "mixwright.extend")
"""They offer names of every floor: `mixwright` by its lazy face, the contracts in annotations that nothing runs."""


def imports(source: str, *, typing: bool) -> Iterator[str]:
    """Modules of the library that a source imports, anywhere in it; with `typing` also what only type checkers import."""
    pending: list[ast.AST] = [ast.parse(source)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not typing:
            continue
        if isinstance(node, ast.Import):
            yield from (module(alias.name) for alias in node.names if alias.name.startswith("mixwright."))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mixwright":
            yield from (module(f"{node.module}.{alias.name}") for alias in node.names)
        pending += ast.iter_child_nodes(node)


def module(name: str) -> str:
    """The module that a dotted name stands in."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def part(name: str) -> str:
    """What of `FLOORS` a module belongs to."""
    first, *rest = name.split(".")[1:]
    return f"{first}.{rest[0]}" if first == "run" and rest else first


def edges(*, typing: bool) -> dict[str, set[str]]:
    found = {name: set(imports(path.read_text(encoding="utf-8"), typing=typing)) for name, path in MODULES.items()}
    return {name: targets - {name} for name, targets in found.items()}


def test_what_is_private_stays_in_its_folder() -> None:
    def inside(one: str, other: str) -> bool:
        return MODULES[one].parent == MODULES[other].parent

    private = [name for name in MODULES if name.rpartition(".")[2].startswith("_") and not name.endswith("__main__")]
    assert private, "else this test looks at nothing"
    found = [(one, to) for one, targets in edges(typing=True).items() for to in targets if to in private]
    assert [pair for pair in found if not inside(*pair)] == []


def test_no_file_takes_a_private_name_out_of_another() -> None:
    found = []
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mixwright"):
                taken = [alias.name for alias in node.names if alias.name.startswith("_") and not alias.name.endswith("__")]
                found += [(name, f"{node.module}.{one}") for one in taken if f"{node.module}.{one}" not in MODULES]
    assert found == []


def test_nothing_imports_a_higher_floor() -> None:
    found = [
        f"{one} -> {to}"
        for one, targets in edges(typing=False).items()
        for to in targets
        if one not in FACE and to != "mixwright" and HEIGHT[part(to)] > HEIGHT[part(one)]
    ]
    assert found == []


def test_no_circle_is_left_also_for_type_checkers() -> None:
    left = {one: targets for one, targets in edges(typing=True).items() if one != "mixwright"}
    while free := [one for one, targets in left.items() if not targets & left.keys()]:
        for one in free:
            del left[one]
    assert left == {}


def test_a_stage_does_not_know_the_stage_beside_its_floor() -> None:
    """Two parts of one floor stand beside each other: neither imports the other, but for the machinery of the lowest."""
    found = []
    for one, targets in edges(typing=False).items():
        for to in targets - {"mixwright"}:
            if one not in FACE and part(one) != part(to) and HEIGHT[part(one)] == HEIGHT[part(to)]:
                found.append((one, to))
    assert found == []


def test_the_finders_find(tmp_path: Path) -> None:
    source = "if TYPE_CHECKING:\n    from mixwright.corpus import Corpus\ndef f():\n    from mixwright import catalog\n"
    assert list(imports(source, typing=False)) == ["mixwright.catalog"]
    assert set(imports(source, typing=True)) == {"mixwright.catalog", "mixwright.corpus"}

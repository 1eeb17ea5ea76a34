"""Mutants of one token for `benchmarks.mutants`: where they may stand, which are drawn, what each is called.

cosmic-ray makes them. Of the replacements that it knows one or two per operator are kept: the others mostly raise a
TypeError, which any test would find. Fractions are multiplied by 1.5, since cosmic-ray adds or takes away 1, which is
gross for a level of 0.05. Type annotations, f-strings, what is raised, decorators, type aliases and the `strict` of
zip are left out: they decide nothing.
"""

from __future__ import annotations

import ast
import difflib
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

PAIRS = {
    "Binary": "Add_Sub Sub_Add Mul_Div Div_Mul FloorDiv_Mul Mod_Mul Pow_Mul BitAnd_BitOr BitOr_BitAnd",
    "Comparison": "Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is",
    "Unary": "USub_UAdd Delete_USub Delete_Not Delete_Invert",
}
OPERATORS = (
    *(f"Replace{kind}Operator_{pair}" for kind, pairs in PAIRS.items() for pair in pairs.split()),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd", "AddNot"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop", "ExceptionReplacer"),
)
NUMBERS, FRACTIONS = "NumberReplacer", "ScaleFraction"
LEAST_FRACTION = 1e-6
"""Fractions below it guard a division; they are changed like whole numbers."""

Place = tuple[int, int]
"""Line, from 1, and column."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A place where an operator can change a token."""

    module: str
    """Path from the root of the tree."""
    line: int
    column: int
    """Within the line without its indentation."""
    was: str
    """The line, without its indentation."""
    operator: str
    occurrence: int
    """Which of the operator's occurrences in the module."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One changed token."""

    module: str
    line: int
    operator: str
    occurrence: int
    was: str
    """The source lines that differ, without indentation."""
    becomes: str
    """The same after the change."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What stays when other lines are added or moved."""
        return self.module, self.was, self.becomes


class ScaleFraction:
    """An operator for cosmic-ray: a fraction times 1.5."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[Place, Place]]:
        """Where a fraction stands."""
        if fraction(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """The node with its value changed."""
        node.value = f"{1.5 * float(node.value):.6g}"
        return node


def fraction(node: Any) -> bool:
    """Whether this token is a number that is not whole."""
    if node.type != "number":
        return False
    value = ast.literal_eval(node.value)
    return isinstance(value, float) and value != int(value) and value >= LEAST_FRACTION


def operator(name: str) -> Any:
    """The operator of cosmic-ray, or ours, of a name."""
    if name == FRACTIONS:
        return ScaleFraction()
    return import_module("cosmic_ray.plugins").get_operator(f"core/{name}")()  # the extra `mutants` may be missing


def mutated(source: str, name: str, occurrence: int) -> str:
    """The source after the change."""
    changed = import_module("cosmic_ray.mutating").mutate_code(source, operator(name), occurrence)
    if changed is None:
        raise ValueError(f"{name} has no occurrence {occurrence}")
    return changed


def spots(module: str, source: str) -> Iterator[Spot]:
    """All places of a module, once for each change that can be made there."""
    kinds = {name: operator(name) for name in (*OPERATORS, NUMBERS, FRACTIONS)}
    seen, left_out, lines = dict.fromkeys(kinds, 0), excluded(source), source.splitlines()
    for node in _nodes(import_module("cosmic_ray.ast").get_ast(source)):
        for name, kind in kinds.items():
            for start, _ in kind.mutation_positions(node):
                occurrence, seen[name] = seen[name], seen[name] + 1
                if _marker(node) or (name == NUMBERS and fraction(node)) or any(a <= start < z for a, z in left_out):
                    continue
                was = lines[start[0] - 1].lstrip()
                indent = len(lines[start[0] - 1]) - len(was)
                yield Spot(module, start[0], start[1] - indent, was.rstrip(), name, occurrence)


def _nodes(node: Any) -> Iterator[Any]:
    """A tree in the order in which cosmic-ray walks it."""
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


def _marker(node: Any) -> bool:
    """Whether this is the `*` or `/` between parameters, which cosmic-ray takes for an operator."""
    return node.type == "operator" and node.parent.type in ("parameters", "lambdef", "typedargslist", "varargslist")


def made(spot: Spot, source: str) -> Mutant:
    """The mutant of a spot."""
    lines, changed = source.splitlines(), mutated(source, spot.operator, spot.occurrence).splitlines()
    steps = difflib.SequenceMatcher(None, lines, changed, autojunk=False).get_opcodes()
    first, last, start, end = next(step[1:] for step in steps if step[0] != "equal")
    was, becomes = (" ".join(line.strip() for line in part) for part in (lines[first:last], changed[start:end]))
    return Mutant(spot.module, first + 1, spot.operator, spot.occurrence, was, becomes)


def excluded(source: str) -> list[tuple[Place, Place]]:
    """Stretches of a module in which nothing is changed."""
    tree = ast.parse(source)
    found: list[ast.AST | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.AnnAssign() | ast.arg():
                found.append(node.annotation)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                found += [node.returns, *node.decorator_list]
            case ast.ClassDef():
                found += node.decorator_list
            case ast.JoinedStr() | ast.Raise():
                found.append(node)
            case ast.Call(func=ast.Name(id="zip")):
                found += [word.value for word in node.keywords]
    found += [node for node in tree.body if isinstance(node, ast.Assign) and _alias(node.value)]
    columns = [line.encode() for line in source.splitlines()]

    def place(line: int, column: int) -> Place:
        return line, len(columns[line - 1][:column].decode())

    return [
        (place(node.lineno, node.col_offset), place(node.end_lineno or node.lineno, node.end_col_offset or 0))
        for node in found
        if isinstance(node, ast.expr | ast.stmt)
    ]


def _alias(value: ast.expr) -> bool:
    """Whether a value at the top of a module is a type."""
    parts = (ast.Name, ast.Attribute, ast.Subscript, ast.Tuple, ast.Constant, ast.BinOp, ast.BitOr, ast.Load)
    return isinstance(value, ast.BinOp | ast.Subscript) and all(isinstance(part, parts) for part in ast.walk(value))


def sample(found: Iterable[Spot], count: int, seed: int) -> list[Spot]:
    """`count` tokens, drawn evenly, and one change of each; by hash, so that other edits of the code leave them drawn."""

    def rank(*words: object) -> str:
        return hashlib.sha256("\0".join(map(str, (seed, *words))).encode()).hexdigest()

    tokens: dict[tuple[str, str, int], list[Spot]] = {}
    for spot in found:
        tokens.setdefault((spot.module, spot.was, spot.column), []).append(spot)
    chosen = sorted(tokens.items(), key=lambda token: rank(*token[0]))[:count]
    return [min(spots, key=lambda spot: rank(*token, spot.operator, spot.occurrence)) for token, spots in chosen]


def equivalent(path: Path) -> dict[tuple[str, str, str], str]:
    """Mutants that no test can tell, with the reason; by module, line and changed line."""
    listed: Sequence[dict[str, str]] = yaml.safe_load(path.read_text(encoding="utf-8")) or []
    return {(row["module"], row["was"], row["becomes"]): row["reason"] for row in listed}


def record(mutant: Mutant) -> dict[str, Any]:
    """As a row of the results."""
    return asdict(mutant)

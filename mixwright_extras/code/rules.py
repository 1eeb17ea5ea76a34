"""What an expression of code does, whether a stated value is its value, and the rules by which a wrong one came about."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from mixwright.extend import LARGEST, digit_rules, number_rules
from mixwright_extras.code.safe_values import Budget, UnknownValueError, value_of

SEVERAL = "several signs"
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"}
_SWAPPED = {
    **{"max": ("min",), "min": ("max",), "len": ("sum", "max"), "sum": ("len", "max")},
    **{"upper": ("lower", "title"), "lower": ("upper",), "title": ("upper", "capitalize"), "capitalize": ("title",)},
}


def operation_of(node: ast.expr) -> str | None:
    """What an expression does last, in words; None where it only names or writes a value.

    Examples:
        >>> operation_of(ast.parse("len(x) + 1", mode="eval").body)
        '+'
    """
    if isinstance(node, ast.Call):
        if not isinstance(node.func, ast.Name):
            return f".{getattr(node.func, 'attr', '')}"
        is_wrapped = node.func.id in ("list", "tuple", "set", "str") and len(node.args) == 1
        return (operation_of(node.args[0]) if is_wrapped else None) or node.func.id
    if isinstance(node, ast.BinOp):
        signs = {type(one.op) for one in ast.walk(node) if isinstance(one, ast.BinOp)}
        return _SIGNS.get(signs.pop(), SEVERAL) if len(signs) == 1 else SEVERAL
    if isinstance(node, ast.Subscript):
        if not isinstance(node.slice, ast.Slice):
            return "index"
        return "slice" if node.slice.step is None else "slice with a step"
    if isinstance(node, ast.Compare):
        return "comparison"
    names = {ast.BoolOp: "and, or", ast.JoinedStr: "f-string", ast.IfExp: "if", ast.ListComp: "comprehension"}
    if isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        return operation_of(node.operand) or "sign"
    return names.get(type(node))


def is_same(value: Any, stated: Any, shown: str) -> bool:
    """Whether a value equals what is stated and shown: numbers to the places that are shown, and lists and tuples alike."""
    if isinstance(value, float) and isinstance(stated, int | float) and not isinstance(stated, bool):
        if "e" in shown.lower():
            return abs(value - stated) <= 1e-3 * abs(value)
        places = len(shown.partition(".")[2]) if "[" not in shown and "(" not in shown and "{" not in shown else 2
        return abs(value - stated) < 10.0**-places * (1 if places else 0.5000001) or value == stated
    if isinstance(value, list | tuple) and isinstance(stated, list | tuple):
        return len(value) == len(stated) and all(is_same(a, b, "[") for a, b in zip(value, stated, strict=True))
    return bool(value == stated)


def code_rules(node: ast.expr, names: Mapping[str, Any], value: Any, stated: Any) -> Iterator[str]:
    """Rules that give the wrong value of an expression, in words.

    Examples:
        >>> sorted(code_rules(ast.parse("sorted([3, 1])", mode="eval").body, {}, [1, 3], [3, 1]))
        ['left as it was', 'reversed']
    """
    if isinstance(value, bool) or isinstance(stated, bool):
        return
    if isinstance(value, int | float) and isinstance(stated, int | float):
        if not abs(value) < LARGEST:
            return
        yield from number_rules(Fraction(value), Fraction(str(stated)))
        yield from digit_rules(Fraction(value), Fraction(stated))
    else:
        yield from changed_rules(value, stated)
    for name, other in _alternatives(node):
        try:
            made = value_of(other, names, Budget(500))
        except UnknownValueError:
            continue
        if made != value and type(made) in (type(stated), type(value)) and is_same(made, stated, repr(stated)):
            yield name


def _alternatives(node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Expressions that somebody may have worked out in place of this one, with what the mistake is."""
    if isinstance(node, ast.BinOp):
        for sign, name in _SIGNS.items():
            if not isinstance(node.op, sign):
                yield f"{name} in its place", ast.BinOp(node.left, sign(), node.right)
        yield "the other way round", ast.BinOp(node.right, node.op, node.left)
        if isinstance(node.op, ast.FloorDiv | ast.Div):
            down = ast.BinOp(node.left, ast.FloorDiv(), node.right)
            yield "rounded down", down
            minus = ast.UnaryOp(ast.USub(), node.left)
            yield "rounded up", ast.UnaryOp(ast.USub(), ast.BinOp(minus, ast.FloorDiv(), node.right))
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice):
        for step, name in ((-1, "the one before"), (1, "the one after")):
            place = ast.BinOp(node.slice, ast.Add(), ast.Constant(step))
            yield name, ast.Subscript(node.value, place, ast.Load())
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        yield "left as it was", node.args[0]
        for name in _SWAPPED.get(node.func.id, ()):
            yield f"{name} in its place", ast.Call(ast.Name(name, ast.Load()), node.args, [])
        if node.func.id in ("sum", "max", "min"):
            for name, ends in (("the last one left out", (None, -1)), ("the first one left out", (1, None))):
                lower, upper = (None if end is None else ast.Constant(end) for end in ends)
                part = ast.Subscript(node.args[0], ast.Slice(lower, upper), ast.Load())
                yield name, ast.Call(node.func, [part], [])
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield "left as it was", node.func.value
        for name in _SWAPPED.get(node.func.attr, ()):
            yield f".{name} in its place", ast.Call(ast.Attribute(node.func.value, name, ast.Load()), node.args, [])
    elif isinstance(node, ast.Subscript):
        yield "left as it was", node.value


def changed_rules(value: Any, stated: Any) -> Iterator[str]:
    """What was done to a text, list or tuple to give another one, in words; nothing for other kinds."""
    if not isinstance(value, str | list | tuple) or type(value) is not type(stated):
        return
    for name, other in _changed(value):
        if other == stated and other != value:
            yield name
    if len(stated) == len(value) + 1 and stated[:-1] == value:
        yield "one more at the end"
    if len(stated) == len(value) + 1 and stated[1:] == value:
        yield "one more at the begin"
    if isinstance(value, str) and value.casefold() == stated.casefold():
        yield "another case"


def _changed(value: Any) -> Iterator[tuple[str, Any]]:
    yield "reversed", value[::-1]
    yield "the last one left out", value[:-1]
    yield "the first one left out", value[1:]
    if not isinstance(value, str) and all(type(one) is int for one in value):
        yield "each off by +1", type(value)(one + 1 for one in value)
        yield "each off by -1", type(value)(one - 1 for one in value)

"""Values of Python expressions of a closed subset, worked out from their syntax trees: nothing of a text is ever run.

Numbers, texts, lists, tuples, sets and dicts; arithmetic, comparisons, indexing, slices, comprehensions, f-strings, and the
functions and methods that are listed here. Every step costs of a `Budget`, and no value may be large. Left out on purpose:
whatever changes a value in its place, and functions and classes that the text defines.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mixwright.extend import LARGEST

MAX_SOURCE, MAX_WEIGHT, MAX_BITS, MAX_STEPS = 8_000, 10_000, 4_096, 20_000
"""Characters of a program, items and characters of a value, bits of a number, and steps of one text."""


class UnknownValueError(Exception):
    """An expression is outside the subset, fails, or is too large."""


class Budget:
    """Steps that are left for one text."""

    def __init__(self, steps: int = MAX_STEPS) -> None:
        self.left = steps

    def spend(self, count: int = 1) -> None:
        """Raises UnknownValueError where none is left."""
        self.left -= count
        if self.left < 0:
            raise UnknownValueError("too many steps")


class _Listed(list[Any]):
    """Items of what is no list in Python (`zip`, `reversed`, `dict.keys`): it may be read and not shown."""


def parse(source: str) -> ast.Module | None:
    """The syntax tree of a program; None where it is none, or too long or too deep.

    Examples:
        >>> parse("print(1") is None
        True
    """
    if len(source) > MAX_SOURCE:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def literal(text: str) -> Any:
    """The value that a text writes without working anything out.

    Raises:
        UnknownValueError: it writes none, or one that is not finite or beyond `LARGEST`.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = ast.literal_eval(text.strip())
        _weigh(value)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        raise UnknownValueError("no value") from None
    if isinstance(value, int | float) and not abs(value) < LARGEST:
        raise UnknownValueError("too large")
    return value


def value_of(node: ast.AST, names: Mapping[str, Any], budget: Budget) -> Any:
    """The value of an expression.

    Args:
        node: the expression.
        names: values of names; a name with the value `UNKNOWN` is one that nothing is known of, and hides a built-in one.
        budget: what it may cost.

    Raises:
        UnknownValueError: it is outside the subset, fails, or is too large.

    Examples:
        >>> value_of(ast.parse("sorted(x)[:2]", mode="eval").body, {"x": [3, 1, 2]}, Budget())
        [1, 2]
    """
    try:
        found = _value(node, names, budget)
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        raise UnknownValueError(type(error).__name__) from None
    if isinstance(found, _Listed):
        raise UnknownValueError("no plain value")
    return found


UNKNOWN = object()
"""Stands for the value of a name that nothing is known of."""
_SIGNS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv},
    **{ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow},
    **{ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor},
}
_UNARY: dict[type[ast.AST], Callable[[Any], Any]] = {
    **{ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.invert}
}
_COMPARE: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    **{ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le},
    **{ast.Gt: operator.gt, ast.GtE: operator.ge, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b},
}
_PLAIN = (bool, int, float, str, type(None), list, tuple, set, dict, range)
_SPEC = re.compile(r"[<>^]?\d{0,2},?(?:\.\d)?[dfs%]?")


def _items(value: Any) -> list[Any]:
    if isinstance(value, bool | int | float) or len(value) > MAX_WEIGHT:
        raise UnknownValueError("no items, or too many")
    return list(value)


def _sum(values: Any, start: Any = 0) -> Any:
    found = _items(values)
    if not all(isinstance(one, bool | int | float) for one in [start, *found]):
        raise UnknownValueError("a sum of other things than numbers")
    return sum(found, start)


def _pow(first: Any, second: Any) -> Any:
    if isinstance(first, int) and isinstance(second, int) and abs(second) * max(1, first.bit_length()) > MAX_BITS:
        raise UnknownValueError("too large")
    return first**second


def _number(kind: type[int] | type[float]) -> Callable[[Any], Any]:
    def made(value: Any = 0) -> Any:
        if isinstance(value, str) and not re.fullmatch(r"\s?[-+]?\d{1,30}(?:\.\d{1,30})?\s?", value):
            raise UnknownValueError("another number")
        return kind(value)

    return made


def _listed(function: Callable[..., Iterable[Any]]) -> Callable[..., _Listed]:
    return lambda *values: _Listed(function(*[_items(one) for one in values]))


def _sorted(values: Any, *, reverse: Any = False) -> list[Any]:
    return sorted(_items(values), reverse=reverse)


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: function(_items(values[0]) if len(values) == 1 else values)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{"len": len, "sum": _sum, "max": _extreme(max), "min": _extreme(min), "sorted": _sorted, "abs": abs, "round": round},
    **{"int": _number(int), "float": _number(float), "str": str, "bool": bool, "pow": _pow, "divmod": divmod, "ord": ord},
    **{"list": lambda value=(): _items(value), "tuple": lambda value=(): tuple(_items(value)), "chr": chr, "bin": bin},
    **{"set": lambda value=(): set(_items(value)), "dict": lambda value=(): dict(_items(value)), "range": range},
    **{"any": lambda values: any(_items(values)), "all": lambda values: all(_items(values)), "hex": hex, "repr": repr},
    **{"zip": _listed(zip), "enumerate": lambda values, start=0: _Listed(enumerate(_items(values), start))},
    "reversed": _listed(reversed),
}
"""Built-in functions of the subset."""
_TEXT_METHODS = """
    upper lower title capitalize swapcase casefold strip lstrip rstrip split rsplit splitlines find rfind
    index rindex count startswith endswith isdigit isalpha isalnum isupper islower isspace isnumeric
    removeprefix removesuffix partition rpartition
"""
_METHODS: dict[type, frozenset[str]] = {
    str: frozenset(_TEXT_METHODS.split()),
    list: frozenset(("index", "count", "copy")),
    tuple: frozenset(("index", "count")),
    dict: frozenset(("get", "copy")),
    set: frozenset(("union", "intersection", "difference", "issubset", "issuperset", "symmetric_difference")),
    float: frozenset(("is_integer",)),
    int: frozenset(("bit_length",)),
}


def _weigh(value: Any, left: int = MAX_WEIGHT) -> int:
    """What is left of the weight that a value may have.

    Raises:
        UnknownValueError: nothing is, or it is none of the plain kinds.
    """
    if not isinstance(value, _PLAIN):
        raise UnknownValueError("another kind of value")
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        raise UnknownValueError("too large")
    left -= len(value) if isinstance(value, str) else 1
    if left < 0:
        raise UnknownValueError("too large")
    if isinstance(value, dict):
        for pair in value.items():
            left = _weigh(pair[1], _weigh(pair[0], left))
    elif isinstance(value, list | tuple | set):
        for one in value:
            left = _weigh(one, left)
    return left


def _weighed(value: Any, budget: Budget) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise UnknownValueError("no finite number")
    budget.spend((MAX_WEIGHT - _weigh(value)) // 50)
    return value


def _value(node: ast.AST, names: Mapping[str, Any], budget: Budget) -> Any:
    budget.spend()
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise UnknownValueError(type(node).__name__)
    return handler(node, names, budget)


def _constant(node: Any, _: Mapping[str, Any], budget: Budget) -> Any:
    return _weighed(node.value, budget)


def _name(node: Any, names: Mapping[str, Any], _: Budget) -> Any:
    value = names.get(node.id, UNKNOWN)
    if value is UNKNOWN:
        raise UnknownValueError(node.id)
    return value


def _sequence(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    kind = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
    return _weighed(kind([_value(one, names, budget) for one in node.elts]), budget)


def _dict(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    pairs = zip(node.keys, node.values, strict=True)
    return _weighed({_value(key, names, budget): _value(value, names, budget) for key, value in pairs}, budget)


def _unary(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    return _UNARY[type(node.op)](_value(node.operand, names, budget))


def _binary(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    first, second = _value(node.left, names, budget), _value(node.right, names, budget)
    kind = type(node.op)
    if kind is ast.Pow:
        return _weighed(_pow(first, second), budget)
    if kind is ast.Mod and isinstance(first, str):
        raise UnknownValueError("a format")
    if kind is ast.Mult:
        for one, times in ((first, second), (second, first)):
            if isinstance(one, str | list | tuple) and isinstance(times, int) and len(one) * times > MAX_WEIGHT:
                raise UnknownValueError("too large")
    return _weighed(_SIGNS[kind](first, second), budget)


def _either(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    value: Any = None
    for one in node.values:
        value = _value(one, names, budget)
        if bool(value) == isinstance(node.op, ast.Or):
            return value
    return value


def _compared(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    first = _value(node.left, names, budget)
    for kind, other in zip(map(type, node.ops), node.comparators, strict=True):
        second = _value(other, names, budget)
        if kind in (ast.Is, ast.IsNot) and (first is None or second is None):
            holds = (first is second) == (kind is ast.Is)
        else:
            holds = _COMPARE[kind](first, second)
        if not holds:
            return False
        first = second
    return True


def _conditional(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    return _value(node.body if _value(node.test, names, budget) else node.orelse, names, budget)


def _subscript(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    value = _value(node.value, names, budget)
    if not isinstance(value, str | list | tuple | dict | range) or isinstance(value, _Listed):
        raise UnknownValueError("no items")
    if not isinstance(node.slice, ast.Slice):
        return value[_value(node.slice, names, budget)]
    ends = (node.slice.lower, node.slice.upper, node.slice.step)
    return _weighed(value[slice(*[None if end is None else _value(end, names, budget) for end in ends])], budget)


def _called(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    values = [_value(one, names, budget) for one in node.args]
    named = {one.arg: _value(one.value, names, budget) for one in node.keywords}
    if isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and node.func.id not in names:
        if (named and node.func.id != "sorted") or any(isinstance(one, range) and len(one) > MAX_WEIGHT for one in values):
            raise UnknownValueError("other arguments")
        if node.func.id in ("str", "repr") and any(isinstance(one, _Listed) for one in values):
            raise UnknownValueError("no plain value")
        return _weighed(FUNCTIONS[node.func.id](*values, **named), budget)
    if not isinstance(node.func, ast.Attribute) or named:
        raise UnknownValueError("another function")
    return _weighed(_method(_value(node.func.value, names, budget), node.func.attr, values), budget)


def _method(value: Any, name: str, values: list[Any]) -> Any:
    if isinstance(value, dict) and name in ("keys", "values", "items") and not values:
        return _Listed(getattr(value, name)())
    if isinstance(value, str) and name == "join" and len(values) == 1:
        parts = _items(values[0])
        if sum(len(one) + len(value) for one in parts) > MAX_WEIGHT:
            raise UnknownValueError("too large")
        return value.join(parts)
    if isinstance(value, str) and name == "replace" and len(values) >= 2:
        if (len(value) + 1) * max(1, len(values[1])) > MAX_WEIGHT:
            raise UnknownValueError("too large")
        return value.replace(*values)
    if isinstance(value, str) and name in ("zfill", "center", "ljust", "rjust") and values and values[0] <= 200:
        return getattr(value, name)(*values)
    if isinstance(value, _Listed) or name not in _METHODS.get(type(value), ()):
        raise UnknownValueError("another method")
    return getattr(value, name)(*values)


def _formatted(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    parts = []
    for one in node.values:
        if isinstance(one, ast.Constant):
            parts.append(str(one.value))
            continue
        value = value_of(one.value, names, budget)
        shown = repr(value) if one.conversion == ord("r") else value
        spec = "".join(str(getattr(part, "value", "{")) for part in one.format_spec.values) if one.format_spec else ""
        if not _SPEC.fullmatch(spec):
            raise UnknownValueError("another format")
        parts.append(format(shown, spec))
    return _weighed("".join(parts), budget)


def _comprehension(node: Any, names: Mapping[str, Any], budget: Budget) -> Any:
    found: list[Any] = []

    def go(number: int, known: Mapping[str, Any]) -> None:
        if number == len(node.generators):
            if isinstance(node, ast.DictComp):
                found.append((_value(node.key, known, budget), _value(node.value, known, budget)))
            else:
                found.append(_value(node.elt, known, budget))
            return
        one = node.generators[number]
        for item in _items(_value(one.iter, known, budget)):
            inner = {**known, **_bound(one.target, item)}
            if all(_value(test, inner, budget) for test in one.ifs):
                go(number + 1, inner)

    if len(node.generators) > 2 or any(one.is_async for one in node.generators):
        raise UnknownValueError("too many loops")
    go(0, dict(names))
    kind = {ast.ListComp: list, ast.SetComp: set, ast.DictComp: dict, ast.GeneratorExp: _Listed}[type(node)]
    return _weighed(kind(found), budget)


def _bound(target: ast.AST, item: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: item}
    if not isinstance(target, ast.Tuple) or len(target.elts) != len(item):
        raise UnknownValueError("another target")
    found: dict[str, Any] = {}
    for one, part in zip(target.elts, item, strict=True):
        found |= _bound(one, part)
    return found


_HANDLERS: dict[type[ast.AST], Callable[[Any, Mapping[str, Any], Budget], Any]] = {
    **{ast.Constant: _constant, ast.Name: _name, ast.List: _sequence, ast.Tuple: _sequence, ast.Set: _sequence},
    **{ast.Dict: _dict, ast.UnaryOp: _unary, ast.BinOp: _binary, ast.BoolOp: _either, ast.Compare: _compared},
    **{ast.IfExp: _conditional, ast.Subscript: _subscript, ast.Call: _called, ast.JoinedStr: _formatted},
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp), _comprehension),
}

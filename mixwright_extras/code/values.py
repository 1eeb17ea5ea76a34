"""Values that a text states for Python code: sessions, comments, printed output, and code in backticks.

Each is worked out from its syntax tree (`safe_values.py`) and compared. What may be words, another language, or a state that
something else has changed is not read. Left out on purpose: functions that the text defines, loops, errors.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from mixwright.extend import Step
from mixwright_extras.code.rules import code_rules, is_same, operation_of
from mixwright_extras.code.safe_values import FUNCTIONS, UNKNOWN, Budget, UnknownValueError, literal, parse, value_of

MAX_CHARACTERS, MAX_VALUES, MAX_SHOWN = 20_000, 100, 500
"""Of one text: characters that are read, and values that are kept; of one value: characters."""
_LANGUAGES = frozenset(("", "python", "py", "python3", "pycon", "doctest", "ipython"))
_OUTPUTS = frozenset(("", "text", "output", "console", "plaintext", "txt"))
_FENCE = re.compile(r"^[ \t]{0,8}```[ \t]*([\w+-]*)[^\n`]*$", re.MULTILINE)
_MARK = re.compile(
    r"\s*#\s*(?P<mark>->|=>|\u2192"
    r"|(?:[Oo]utputs?|[Pp]rints|[Rr]eturns|[Gg]ives|[Ee]valuates to|[Rr]esult)\b:?)?\s*(?P<value>.*\S)"
)
_OUTPUT = re.compile(
    r"\s{0,3}[*_]{0,2}(?:(?:the |expected )?output(?: is| will be)?[*_]{0,2}:?[*_]{0,2}"
    r"|(?:this|it)(?: code)? (?:prints|outputs):?)"
    r"[ \t]*(?P<rest>[^\n]*)\n?",
    re.IGNORECASE,
)
_INLINE = re.compile(
    r"`(?P<code>[^`\n]{3,200})`\s{0,2}(?:==?|->|=>|\u2192|is|equals|returns|gives|evaluates to|yields|prints|outputs)\s{1,2}"
    r"(?:`(?P<quoted>[^`\n]{1,200})`|(?P<plain>-?\d{1,18}(?:\.\d{1,18})?|True|False|None|'[^'\n]{0,80}'|\"[^\"\n]{0,80}\""
    r"|\[[^\[\]\n]{0,200}\])(?![\w%*/^+]|\.\d|\s?[-+*/%^]\s?\d|\sin\sPython))"
)
_DOUBT = re.compile(
    r"\b(?:not|expect\w*|think|thought|assum\w*|suppose|if|wrong|mistake\w*|instead|incorrect\w*|claims?)\b|n't",
    re.IGNORECASE,
)


class Fence(NamedTuple):
    """A block of code between two lines of three backticks."""

    language: str
    body: str
    start: int
    """Place of the body."""
    span: tuple[int, int]
    """Places of the begin of the first line and of the end of the last one."""


def _read_fences(text: str) -> list[Fence]:
    found: list[Fence] = []
    opened: re.Match[str] | None = None
    for line in _FENCE.finditer(text) if "```" in text else ():
        if opened is None:
            opened = line
        elif line[0].strip() == "```":
            start = min(opened.end() + 1, line.start())
            found.append(Fence(opened[1].lower(), text[start : line.start()], start, (opened.start(), line.end())))
            opened = None
    return found


class Known(NamedTuple):
    """What an assignment gave a name."""

    operation: str | None
    node: ast.expr


def read_code_values(text: str) -> list[Step]:
    r"""The values that a text states for code, each once, in their order.

    Examples:
        >>> [(one.operation, one.is_right) for one in read_code_values(">>> len('abc')\n4\n>>> max([2, 9])\n9")]
        [('code: len', False), ('code: max', True)]
    """
    text = text[:MAX_CHARACTERS]
    if "`" not in text and ">>> " not in text and not ("#" in text and "(" in text):
        return []
    found: dict[tuple[Any, ...], Step] = {}
    for one in _Reader(text).steps():
        found.setdefault((one.fact, one.stated), one)
        if len(found) == MAX_VALUES:
            break
    return sorted(found.values(), key=lambda one: one.span or (0, 0))


class _Reader:
    """Reads one text from its begin to its end."""

    def __init__(self, text: str) -> None:
        self.text, self.budget = text, Budget()
        self.names: dict[str, Any] = {}
        self.known: dict[str, Known] = {}
        self.printed: list[tuple[ast.expr, str | None, Any]] | None = []
        """What the last block printed: expression, operation, value; None where that is not known."""

    def steps(self) -> Iterator[Step]:
        """All of the text's."""
        fences = _read_fences(self.text)
        ends = [0, *(edge for fence in fences for edge in fence.span), len(self.text)]
        skip = -1
        for number, (start, end) in enumerate(pairwise(ends)):
            if number % 2 == 0:
                yield from self._words(start, end, is_all=not fences)
                continue
            fence = fences[number // 2]
            if number == skip or fence.language not in _LANGUAGES:
                continue
            if ">>> " in fence.body:
                yield from self._session(fence.start, fence.start + len(fence.body))
                continue
            yield from self._program(fence.body, fence.start, ruby=not fence.language)
            following = fences[number // 2 + 1] if number // 2 + 1 < len(fences) else None
            if self.printed and (claim := _OUTPUT.match(self.text, fence.span[1])):
                if claim["rest"].strip() or following is None or claim.end() < following.span[0] - 2:
                    yield from self._output_in_words(claim)
                elif following.language in _OUTPUTS:
                    yield from self._output(following.body, following.start)
                    skip = number + 2

    def _words(self, start: int, end: int, *, is_all: bool) -> Iterator[Step]:
        """Text outside fences: sessions, a whole program, code in backticks."""
        part = self.text[start:end]
        if ">>> " in part:
            yield from self._session(start, end)
        elif is_all and "#" in part and "(" in part and "`" not in part:
            yield from self._program(part, start, ruby=True)
        if "`" not in part:
            return
        for match in _INLINE.finditer(part):
            tree = parse(match["code"])
            shown = match["quoted"] or match["plain"]
            if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
                continue
            if _DOUBT.search(part, max(0, match.start() - 60), match.start()):
                continue
            node = tree.body[0].value
            if any(isinstance(one, ast.Name) and one.id in self.names for one in ast.walk(node)):
                continue  # its value may be of another place
            step = self._step(node, shown, (start + match.start(), start + match.end()), is_line=False)
            if step is not None:
                yield step

    def _session(self, start: int, end: int) -> Iterator[Step]:
        lines = self.text[start:end].splitlines(keepends=True)
        at, number = start, 0
        while number < len(lines):
            line = lines[number]
            number, begin, at = number + 1, at, at + len(line)
            if not line.lstrip().startswith(">>> "):
                continue
            source = line.lstrip()[4:]
            while number < len(lines) and re.match(r"\s*\.\.\.(?: |$)", lines[number]):
                source, at = source + lines[number].lstrip()[4:], at + len(lines[number])
                number += 1
            output = []
            while number < len(lines) and lines[number].strip() and not re.match(r"\s*(?:>>>|```)", lines[number]):
                output.append(lines[number].strip())
                at += len(lines[number])
                number += 1
                if len(output) == 1 and start == 0 and end == len(self.text):
                    break  # outside a fence words may follow
            tree = parse(source)
            if tree is None or len(tree.body) != 1:
                self._forget(tree)
                continue
            node = tree.body[0]
            if isinstance(node, ast.Expr) and len(output) == 1:
                inner = _printed_expression(node.value)
                step = self._step(
                    node.value if inner is None else inner, output[0], (begin, at), is_line=True, is_repr=inner is None
                )
                if step is not None:
                    yield step._replace(span=(begin, begin + len(self.text[begin:at].rstrip())))
            self._run(node)

    def _program(self, source: str, start: int, *, ruby: bool) -> Iterator[Step]:
        self.printed = []
        tree = parse(source)
        if tree is None:
            self.printed = None
            return
        lines = source.splitlines()
        starts = [0]
        for line in source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        last_on_line = {node.end_lineno: node for node in tree.body}
        for node in tree.body:
            self._run(node)
            if last_on_line[node.end_lineno] is not node or not isinstance(node, ast.Expr | ast.Assign):
                continue
            row = (node.end_lineno or 1) - 1
            column = len(lines[row].encode()[: node.end_col_offset].decode(errors="ignore"))
            comment = _MARK.fullmatch(lines[row], column)
            if comment is None and row + 1 < len(lines) and not lines[row][column:].strip():
                comment, row = _MARK.fullmatch(lines[row + 1]), row + 1
                comment = comment if comment and comment["mark"] else None
            if comment is None or (ruby and comment["mark"] == "=>"):
                continue
            value = node.value
            inner = _printed_expression(value)
            if isinstance(node, ast.Assign) and (comment["mark"] not in ("->", "=>", "\u2192") or len(node.targets) != 1):
                continue
            begin = start + starts[node.lineno - 1] + node.col_offset
            step = self._step(
                value if inner is None else inner,
                comment["value"],
                (begin, start + starts[row] + comment.end()),
                is_line=bool(comment["mark"]) and not isinstance(node, ast.Assign),
                is_repr=inner is None,
            )
            if step is not None:
                yield step

    def _output(self, body: str, start: int) -> Iterator[Step]:
        lines = body.splitlines()
        while lines and not lines[-1].strip():
            lines.pop()
        if self.printed is None or len(lines) != len(self.printed):
            return
        at = start
        for line, (node, operation, value) in zip(lines, self.printed, strict=True):
            end = at + len(line)
            step = self._compared(node, operation, value, line, (at, end), is_line=True, is_repr=False)
            if step is not None:
                yield step
            at = end + 1

    def _output_in_words(self, claim: re.Match[str]) -> Iterator[Step]:
        """One printed value, on the same line or the next one."""
        if self.printed is None or len(self.printed) != 1:
            return
        node, operation, value = self.printed[0]
        start, shown = claim.start("rest"), claim["rest"]
        if not shown.strip():
            start = claim.end()
            shown = self.text[start:].partition("\n")[0]
        bare = shown.strip().strip("`*").removesuffix(".") if shown.strip()[:1] in "`*" else shown.strip().removesuffix(".")
        bare = bare.strip("`")
        is_line = "`" not in bare and len(bare.split()) == len(str(value).split())
        begin = start + len(shown) - len(shown.lstrip())
        step = self._compared(node, operation, value, bare, (begin, start + len(shown)), is_line=is_line, is_repr=False)
        if step is not None:
            yield step

    def _run(self, node: ast.stmt) -> None:
        """Takes over what a statement does to names and to the output."""
        if isinstance(node, ast.Expr):
            inner = _printed_expression(node.value)
            if inner is not None:
                self._print(inner)
            elif self._value(node.value) is UNKNOWN:
                self._forget(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            self._assign(node, targets, node.value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            made = ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value)
            if isinstance(self.names.get(node.target.id), list | set | dict):
                self._forget(node)  # it changes what other names may hold, too
            else:
                self._assign(node, [node.target], made)
        elif not isinstance(node, ast.Pass):
            self._forget(node)

    def _value(self, node: ast.expr) -> Any:
        """The value of an expression, or `UNKNOWN`."""
        try:
            return value_of(node, self.names, self.budget)
        except UnknownValueError:
            return UNKNOWN

    def _assign(self, node: ast.stmt, targets: Sequence[ast.expr], value: ast.expr) -> None:
        found = self._value(value)
        if found is UNKNOWN:
            self._forget(node)
            return
        for target in targets:
            if isinstance(target, ast.Name):
                self.names[target.id] = found
                self.known[target.id] = Known(operation_of(value), value)
            elif isinstance(target, ast.Tuple) and isinstance(found, tuple | list) and len(found) == len(target.elts):
                for one, part in zip(target.elts, found, strict=True):
                    if isinstance(one, ast.Name):
                        self.names[one.id] = part
                        self.known.pop(one.id, None)
                    else:
                        self._forget(node)
            else:
                self._forget(node)

    def _print(self, node: ast.expr) -> None:
        if self.printed is None:
            return
        value = self._value(node)
        if value is UNKNOWN or "\n" in str(value):
            self.printed = None
            return
        self.printed.append((node, self._operation(node), value))

    def _operation(self, node: ast.expr) -> str | None:
        """What gives the value: of a name what it was assigned."""
        if isinstance(node, ast.Name) and node.id in self.known:
            return self.known[node.id].operation
        return operation_of(node)

    def _forget(self, node: ast.AST | None) -> None:
        """Nothing is known any more of what a statement may have changed or printed."""
        bound = set[str]()
        for one in () if node is None else ast.walk(node):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store | ast.Del):
                bound.add(one.id)
            elif isinstance(one, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                bound.add(one.name)
            elif isinstance(one, ast.alias):
                bound.add((one.asname or one.name).partition(".")[0])
            elif isinstance(one, ast.Global):
                bound.update(one.names)
        bound |= {name for name, value in self.names.items() if isinstance(value, list | set | dict)}
        self.names |= dict.fromkeys(bound, UNKNOWN)
        if node is None or any(isinstance(one, ast.Call) for one in ast.walk(node)):
            self.printed = None if not isinstance(node, ast.FunctionDef | ast.ClassDef) else self.printed
        if node is None or (isinstance(node, ast.ImportFrom) and any(one.name == "*" for one in node.names)):
            self.names = dict.fromkeys((*self.names, *FUNCTIONS, "print"), UNKNOWN)

    def _step(
        self, node: ast.expr, shown: str, span: tuple[int, int], *, is_line: bool, is_repr: bool = True
    ) -> Step | None:
        operation = self._operation(node)
        value = UNKNOWN if operation is None else self._value(node)
        if value is UNKNOWN:
            return None
        return self._compared(node, operation, value, shown, span, is_line=is_line, is_repr=is_repr)

    def _compared(
        self,
        node: ast.expr,
        operation: str | None,
        value: Any,
        shown: str,
        span: tuple[int, int],
        *,
        is_line: bool,
        is_repr: bool,
    ) -> Step | None:
        """The step, where the text that is shown is a value.

        Args:
            node: the expression.
            operation: that gives the value; None where nothing is worked out.
            value: its value.
            shown: what the text says it is.
            span: of both.
            is_line: whether what is shown stands alone, so that any text is a value.
            is_repr: whether it is shown with its quotes.
        """
        if operation is None:
            return None
        is_right, stated = _is_shown(value, shown.strip(), is_line=is_line)
        if is_right is None:
            return None
        if isinstance(node, ast.Name):
            node = self.known[node.id].node
        names = {one.id: self.names[one.id] for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in self.names}
        rules = () if is_right else tuple(dict.fromkeys(code_rules(node, names, value, stated)))
        held = sorted((name, repr(held)) for name, held in names.items() if held is not UNKNOWN)
        right = repr(value) if is_repr else str(value)
        code = ast.unparse(node)
        return Step(
            f"code: {operation}", (code, *held), repr(stated), is_right, f"{code} -> {shown.strip()}", span, right, rules
        )


def _printed_expression(node: ast.expr) -> ast.expr | None:
    """What `print` is given, if it is one thing and the statement is that call."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "print":
        return None
    return node.args[0] if len(node.args) == 1 and not node.keywords else None


def _is_shown(value: Any, shown: str, *, is_line: bool) -> tuple[bool | None, Any]:
    """Whether a value is what is shown, None where that is no value; and what is shown, as a value."""
    if shown in (repr(value), str(value)):
        return True, value
    if not shown or len(shown) > MAX_SHOWN or "..." in shown or "\u2026" in shown or shown.startswith("Traceback"):
        return None, None
    try:
        stated = literal(shown)
    except UnknownValueError:
        for mark in (" (", "  ", " #", " \u2014 ", " - ", ", "):
            if mark in shown and not isinstance(value, str | list | tuple | dict | set):
                return _is_shown(value, shown.partition(mark)[0].strip(), is_line=False)
        return (False, shown) if is_line and isinstance(value, str) and not shown.endswith("Error") else (None, None)
    if isinstance(value, str) and not isinstance(stated, str) and not is_line:
        return None, None
    return is_same(value, stated, shown), stated

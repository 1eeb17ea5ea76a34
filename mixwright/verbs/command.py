"""Commands of typer, each made from a verb and its `show`: the flags are the parameters of both."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import inspect
import itertools
import re
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from mixwright.catalog import find_source
from mixwright.verbs import output

FUNCTIONS = {"list": ("plugins", "list_plugins", "show_list"), "explain": ("plugins", "explain", "show_entries")}
"""Verb -> its file, its function, and the function that shows its result; by default `NAME.py`, `NAME` and `show`."""
SOURCES = "held_out"
"""Field of a record that names sources: in Python one text, a line for each; on the command line a repeatable option."""


def load_command(name: str, cls: type[Any]) -> Any:
    """Import a verb and return its command, an instance of `cls`."""
    file, verb, show = FUNCTIONS.get(name, (name, name, "show"))
    module = importlib.import_module(list_added_verbs().get(name, f"mixwright.verbs.{file}"))
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, cls=cls, help=read_help(name))(join(getattr(module, verb), getattr(module, show)))
    return typer.main.get_command(app)


def list_added_verbs() -> dict[str, str]:
    """Return the verbs that entry points in the group `mixwright.verbs` add, with their modules."""
    points = sorted(entry_points(group="mixwright.verbs"))
    return {point.name: point.module for point in points if find_source(point.module) is not None}


def read_help(name: str) -> str:
    """Return the first paragraph of a verb's docstring without importing the verb."""
    file, verb, _ = FUNCTIONS.get(name, (name, name, "show"))
    added = list_added_verbs()
    source = find_source(added[name]) if name in added else Path(__file__).parent / f"{file}.py"
    tree = ast.parse(source.read_bytes() if source else "")
    (text,) = [ast.get_docstring(node) for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == verb]
    return " ".join((text or "").partition("\n\n")[0].split())


def join(verb: Callable[..., Any], show: Callable[..., int | None]) -> Callable[..., None]:
    """Return a function that calls a verb, shows its result, and exits with the code that `show` returns, if any.

    Flags are the parameters of the verb, those of `show` that the verb lacks, and the annotated fields of each record that
    the verb takes, such as `Measuring`. A parameter of `show` that the verb has, too, gets the same value. Where `show` has
    no `--json` of its own, that prints the whole result.
    """
    from mixwright.verbs.options import Json

    taken = inspect.signature(verb, eval_str=True).parameters
    _, *shown = inspect.signature(show, eval_str=True).parameters.values()
    records: dict[str, Any] = {name: first_type(each.annotation) for name, each in taken.items()}
    records = {name: kind for name, kind in records.items() if dataclasses.is_dataclass(kind)}
    fields = {name: [flag for flag in list_flags(record) if flag.name not in taken] for name, record in records.items()}
    own = [each for each in taken.values() if each.name not in records]
    own += [each for each in shown if each.name not in taken]
    texts = read_parameters(verb.__doc__)
    flags = {flag.name: flag for each in own for flag in [make_flag(each, texts.get(each.name))]}
    flags |= {flag.name: flag for record in fields.values() for flag in record}
    json_is_added = "as_json" not in flags
    if json_is_added:
        added = inspect.Parameter("as_json", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=Json)
        flags["as_json"] = make_flag(added, None)

    def command(**values: Any) -> None:
        if SOURCES in values and SOURCES not in taken:
            values[SOURCES] = "\n".join(values[SOURCES] or ()) or None
        values |= {name: kind(**{flag.name: values[flag.name] for flag in fields[name]}) for name, kind in records.items()}
        result = verb(**{name: values[name] for name in taken})
        if json_is_added and values.get("as_json"):
            from mixwright.verdict.stage import to_json_ready

            output.out_json(to_json_ready(result))
            return
        if code := show(result, **{each.name: values[each.name] for each in shown}):
            raise typer.Exit(code)

    command.__signature__ = inspect.Signature(list(flags.values()))  # type: ignore[attr-defined] - typer reads both
    command.__annotations__ = {name: flag.annotation for name, flag in flags.items()}
    return command


def list_flags(record: Any) -> Iterator[inspect.Parameter]:
    """Yield the annotated fields of a record as flags."""
    hints = get_type_hints(record, include_extras=True)
    texts = read_fields(inspect.getsource(record))[record.__name__]
    if SOURCES in hints:
        hints[SOURCES] = Annotated[list[str] | None, *hints[SOURCES].__metadata__]
    for field in dataclasses.fields(record):
        if get_origin(hint := hints[field.name]) is Annotated:
            parameter = inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hint)
            yield make_flag(parameter, texts[field.name])


def make_flag(parameter: inspect.Parameter, text: str | None) -> inspect.Parameter:
    """Return a parameter as typer reads it: with a help text, and of the type that a command line can give."""
    hint, option = parameter.annotation, typer.Argument() if parameter.default is parameter.empty else typer.Option()
    if get_origin(hint) is Annotated:
        hint, option = hint.__origin__, copy.copy(hint.__metadata__[0])
    option.help = option.help or text
    first = first_type(hint)
    typed = first | None if NoneType in get_args(hint) else first
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[typed, option])


def first_type(hint: Any) -> Any:
    """Return the first member of a union, or the type itself."""
    return get_args(hint)[0] if get_origin(hint) in (Union, UnionType) else hint


def read_fields(source: str) -> dict[str, dict[str, str]]:
    """Return class -> field -> the docstring under the field, from the source of a module."""
    texts: dict[str, dict[str, str]] = {}
    for node in (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)):
        for field, text in itertools.pairwise(node.body):
            is_text = isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
                found = str(text.value.value)  # pyright: ignore[reportAttributeAccessIssue]
                texts.setdefault(node.name, {})[field.target.id] = " ".join(found.split())
    return texts


def read_parameters(docstring: str | None) -> dict[str, str]:
    """Return parameter -> its text in the section `Args` of a docstring."""
    _, _, section = inspect.cleandoc(docstring or "").partition("\nArgs:\n")
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", section.partition("\n\n")[0], re.M)
    return {name: " ".join(text.split()) for name, text in found}

"""Catalogue of plug-ins, read from the folders: a file without a leading underscore is a thing a user can name.

Kinds whose plug-ins are small have one file in place of a folder, and each class in it is one: `EqualShares` is
`equal_shares`. Listing reads the source (`ast`) and imports nothing; naming imports one file. Third parties, and the house's
own `mixwright_extras`, add entry points in the group `mixwright.<kind>`. Left out on purpose: decorators, and lists to keep.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import re
import sys
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, NamedTuple

from mixwright.errors import InputError, missing_extra, unknown_name


class Kind(NamedTuple):
    """A kind of plug-in; its entry-point group is `mixwright.<name>`."""

    base: str
    """Name of its class in `mixwright.contracts`, or in those of the extras or the laboratory."""
    package: str
    """Package whose files are the plug-ins, or module whose classes are."""


KIND_BY_NAME = {
    "graders": Kind("Grader", "mixwright.graders"),
    "checks": Kind("Check", "mixwright.audit.checks"),
    "columns": Kind("Columns", "mixwright_extras.scan.columns"),
    "probes": Kind("Probe", "mixwright.measure.probes"),
    "miners": Kind("Miner", "mixwright.mine.miners"),
    "adapters": Kind("Adapter", "mixwright.learner.adapters"),
    "planners": Kind("Planner", "mixwright.plan.planners"),
    "exports": Kind("Export", "mixwright.plan.exports"),
    "selectors": Kind("Selector", "mixwright.steer.selectors"),
    "gates": Kind("Gate", "mixwright.steer.gates"),
    "controllers": Kind("Controller", "mixwright.steer.controllers"),
    "monitors": Kind("Monitor", "mixwright.steer.monitors"),
    "arms": Kind("Arm", "mixwright.trial.arms"),
    "sections": Kind("Section", "mixwright.verdict.sections"),
    "findings": Kind("Finding", "mixwright_lab.findings"),
    "worlds": Kind("World", "mixwright_lab.worlds"),
}
"""Every kind, in the order of the flow."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One plug-in, known without importing it."""

    kind: str
    """Kind of plug-in: a key of `KIND_BY_NAME`."""
    name: str
    """Name that settings use: the file's stem, the class's name in small letters, or the entry point's name."""
    module: str
    """Importable module that holds it; `module:Class` where it holds several."""
    summary: str
    """First line of its docstring; for third parties also the distribution it comes from."""
    docstring: str
    """The whole docstring of the module, or of the class where a module holds several."""
    needs: tuple[str, ...] = ()
    """Top-level packages it needs beyond core."""
    extra: str = "train"
    """The extra that installs them."""
    default: bool = True
    """It runs unless others are named: those of `mixwright_extras` only where they say so (`DEFAULT = True`)."""


def listing(kind: str) -> dict[str, Entry]:
    """All plug-ins of `kind` by name, sorted; nothing is imported. Read once in a process.

    Raises:
        InputError: unknown kind, or two plug-ins with one name.
    """
    if kind not in KIND_BY_NAME:
        raise unknown_name("kind", kind, KIND_BY_NAME)
    return dict(_read_entries(kind, KIND_BY_NAME[kind].package))


@functools.cache
def _read_entries(kind: str, package: str) -> dict[str, Entry]:
    class_file = _package_folder(package).with_suffix(".py")
    own = [_read_entry(kind, path.stem, f"{package}.{path.stem}", path) for path in _plugin_files(package)]
    entries = {entry.name: entry for entry in (_read_class_entries(kind, class_file) if class_file.is_file() else own)}
    for entry_point in entry_points(group=f"mixwright.{kind}"):
        distribution = entry_point.dist.name if entry_point.dist else "?"
        if entry_point.name in entries:
            expected, remedy = f"one {kind} plug-in named {entry_point.name!r}", f"Rename one, or uninstall {distribution}."
            raise InputError(expected, f"a second from {distribution}", remedy)
        entry = _read_entry(kind, entry_point.name, entry_point.value, find_source(entry_point.module))
        origin = "" if distribution == "mixwright" else f" (from {distribution})"
        entries[entry.name] = replace(entry, summary=f"{entry.summary}{origin}".strip())
    return dict(sorted(entries.items()))


def list_defaults(kind: str) -> list[str]:
    """Return the names of the plug-ins that run unless others are named."""
    return [name for name, entry in listing(kind).items() if entry.default]


def find_entry(kind: str, name: str) -> Entry:
    """The entry of that name. Raises InputError for a name nobody defines."""
    entries = listing(kind)
    if name not in entries:
        raise unknown_name(kind.rstrip("s"), name, entries)
    return entries[name]


def load(kind: str, name: str) -> type[Any]:
    """The class called `name`: imports its one file.

    Raises:
        InputError: unknown name (with the nearest), or packages missing (with the pip command).
        TypeError: the file does not define exactly one class of its kind.
    """
    entry = find_entry(kind, name)
    missing_packages = [package for package in entry.needs if importlib.util.find_spec(package) is None]
    if missing_packages:
        raise missing_extra(f"{kind.rstrip('s')} {name}", missing_packages, entry.extra)
    base = KIND_BY_NAME[kind].base
    module_name, _, attribute = entry.module.partition(":")
    module = importlib.import_module(module_name)
    if attribute:
        classes = [getattr(module, attribute)]
    else:
        module_classes = [value for value in vars(module).values() if isinstance(value, type)]
        classes = [value for value in module_classes if _is_child_of(value, base) and value.__module__ == module_name]
    if len(classes) != 1 or not _is_child_of(classes[0], base):
        raise TypeError(f"{entry.module} must define exactly one {base}, it defines {len(classes)}")
    return classes[0]


def _is_child_of(cls: type, base_name: str) -> bool:
    """Whether a class is a child of Mixwright's abstract class of that name, which is known by name: nothing is imported."""
    parents = [(parent.__name__, parent.__module__.partition(".")[0]) for parent in cls.__mro__[1:]]
    return any((base_name, package) in parents for package in ("mixwright", "mixwright_extras", "mixwright_lab"))


def create(kind: str, name: str, options: dict[str, Any] | None = None) -> Any:
    """An instance of plug-in `name` with its options as keyword arguments.

    Raises:
        InputError: unknown name, missing packages, or an option it does not take.
    """
    import inspect

    cls = load(kind, name)
    option_names = [p for p in inspect.signature(cls).parameters if p != "self"]
    for option in options or {}:
        if option not in option_names:
            raise unknown_name(f"option of {kind}.{name}", option, option_names)
    return cls(
        **{option: _convert_option(cls, option, value, f"{kind}.{name}") for option, value in (options or {}).items()}
    )


def _convert_option(cls: type, option: str, value: Any, owner: str) -> Any:
    """An option as the type that the plug-in declares for it. Raises InputError when it cannot be one."""
    from typing import get_type_hints

    from pydantic import TypeAdapter, ValidationError

    from mixwright.records.serial import find_misread

    try:
        hint = get_type_hints(cls.__init__).get(option, Any)
    except NameError:  # a name that only type checkers import: the plug-in checks for itself
        return value
    if value != value:  # no range check would see it: nothing compares with NaN
        raise InputError(f"a number for {option} of {owner}", repr(value), "Correct that option.")
    try:
        converted = TypeAdapter(hint).validate_python(value)
    except ValidationError as errors:
        got = f"{value!r:.60} ({errors.errors()[0]['msg'].lower()})"
        raise InputError(f"{option} of {owner} of its declared type", got, "Correct that option.") from None
    if next(find_misread(value, converted, bool), None) is not None:
        raise InputError(f"a number or a text for {option} of {owner}", repr(value)[:60], "Correct that option.")
    return converted


def entries_named(phenomenon: str) -> list[Entry]:
    """Every plug-in whose stem is `phenomenon`, in the order of the flow: `mixwright explain formats`."""
    return [entries[phenomenon] for entries in map(listing, KIND_BY_NAME) if phenomenon in entries]


def _package_folder(package: str) -> Path:
    """Folder of a package, found without importing it (importing a parent would run its code)."""
    return Path(__file__).parent.parent.joinpath(*package.split("."))


def _plugin_files(package: str) -> list[Path]:
    """Source files of a package."""
    return sorted(_package_folder(package).glob("[!_]*.py"))


def find_source(module: str) -> Path | None:
    """The file of an installed module, found without running any of its packages; None where there is no such module.

    Of a package without a file of its own, and of what is built into Python, it is a folder.
    """
    top_package, *submodules = module.split(".")
    try:
        spec = importlib.util.find_spec(top_package)
    except (ImportError, ValueError):
        return None
    for name in submodules:
        if spec is None or spec.submodule_search_locations is None:
            return None
        spec = importlib.machinery.PathFinder.find_spec(f"{spec.name}.{name}", list(spec.submodule_search_locations))
    if spec is None:
        return None
    candidates = [spec.origin, *(spec.submodule_search_locations or [])]
    return next((Path(path) for path in candidates if path and path not in ("built-in", "frozen")), Path(sys.prefix))


def _read_entry(kind: str, name: str, module: str, source: Path | None) -> Entry:
    """Return the entry of one file, with its docstring and the literals NEEDS, EXTRA and DEFAULT; empty without a file."""
    try:
        tree = ast.parse(source.read_bytes() if source else "")
    except (OSError, SyntaxError, ValueError):  # a folder, or compiled code
        tree = ast.parse("")
    docstring = ast.get_docstring(tree) or ""
    literals: dict[str, Any] = {}
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(node, ast.Assign) and isinstance(target, ast.Name) and target.id in ("NEEDS", "EXTRA", "DEFAULT"):
            with contextlib.suppress(ValueError):  # computed: known once it is imported
                literals[target.id] = ast.literal_eval(node.value)
    needs, extra = tuple(literals.get("NEEDS", ())), literals.get("EXTRA", "train")
    default = literals.get("DEFAULT", not module.startswith("mixwright_extras."))
    return Entry(kind, name, module, docstring.split("\n", 1)[0], docstring, needs, extra, default)


def _read_class_entries(kind: str, path: Path) -> list[Entry]:
    """The entries of a file with one class per plug-in: those with the kind's base among their own."""
    base, package = KIND_BY_NAME[kind]
    entries = []
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and base in [ast.unparse(parent) for parent in node.bases]:
            name, docstring = re.sub(r"(?<!^)(?=[A-Z])", "_", node.name).lower(), ast.get_docstring(node) or ""
            entries.append(Entry(kind, name, f"{package}:{node.name}", docstring.split("\n", 1)[0], docstring))
    return entries

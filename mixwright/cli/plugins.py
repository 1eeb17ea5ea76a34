"""Output of `mixwright list` and `mixwright explain`: plug-ins as their files describe them; none is imported."""

from __future__ import annotations

from mixwright.catalog import KIND_BY_NAME, entries_named, listing
from mixwright.cli import output
from mixwright.cli.findings import describe_support
from mixwright.errors import one_line, unknown_name


def show_list(kind: str | None, *, as_json: bool) -> None:
    """Every plug-in of `kind`, or of all kinds, under its kind's heading. Raises InputError for an unknown kind."""
    found = {name: list(listing(name).values()) for name in ([kind] if kind else KIND_BY_NAME)}
    entries = [entry for group in found.values() for entry in group]
    if as_json:
        output.out_json([{"kind": e.kind, "name": e.name, "summary": e.summary, "needs": list(e.needs)} for e in entries])
        return
    width = max((len(entry.name) for entry in entries), default=0)
    for name, group in found.items():
        output.out(name if group else f"{name}  (none yet)")
        for entry in group:
            extra = f"  [{entry.extra}]" if entry.needs else ""
            output.out(f"  {entry.name:<{width}}  {one_line(entry.summary)}{extra}")


def show_entries(name: str) -> None:
    """Every plug-in called `name` (or that of `kind/name`), in the order of the flow, with its docstring and its findings.

    Raises:
        InputError: there is none of that name.
    """
    kind, _, stem = name.replace(".", "/").rpartition("/")
    entries = [entry for entry in entries_named(stem) if kind in ("", entry.kind)]
    if not entries:
        raise unknown_name("plug-in", name, {known for kind in KIND_BY_NAME for known in listing(kind)})
    for entry in entries:
        output.out(f"{entry.kind}.{entry.name}  ({entry.module})")
        for line in (entry.docstring or entry.summary).splitlines():
            output.out(f"  {one_line(line)}".rstrip())
        for line in describe_support(entry):
            output.out(f"  {line}")
        output.out("")

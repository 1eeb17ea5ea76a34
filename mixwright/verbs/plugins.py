"""Verbs `list` and `explain`: plug-ins as their files describe them, none of them imported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from mixwright.catalog import KIND_BY_NAME, Entry, entries_named, listing
from mixwright.errors import one_line, unknown_name
from mixwright.verbs import output
from mixwright.verbs.laboratory import describe_support
from mixwright.verbs.options import Json


def list_plugins(kind: Annotated[str | None, typer.Argument()] = None) -> list[Entry]:
    """List every plug-in.

    It imports none of them. Raises InputError for an unknown kind.

    Examples:
        >>> "numeric" in [entry.name for entry in list_plugins("graders")]
        True

    Args:
        kind: checks, probes, planners ...; default: all kinds.
    """
    return [entry for name in ([kind] if kind else KIND_BY_NAME) for entry in listing(name).values()]


def show_list(found: Sequence[Entry], *, kind: str | None, as_json: Json = False) -> None:
    """Print plug-ins under the headings of their kinds."""
    if as_json:
        output.out_json([{"kind": e.kind, "name": e.name, "summary": e.summary, "needs": list(e.needs)} for e in found])
        return
    width = max((len(entry.name) for entry in found), default=0)
    for name in [kind] if kind else KIND_BY_NAME:
        group = [entry for entry in found if entry.kind == name]
        output.out(name if group else f"{name}  (none yet)")
        for entry in group:
            extra = f"  [{entry.extra}]" if entry.needs else ""
            output.out(f"  {entry.name:<{width}}  {one_line(entry.summary)}{extra}")


def explain(name: str, *, run: Annotated[list[str] | None, typer.Option(metavar="RUN")] = None) -> list[Entry]:
    """Explain a plug-in, or with --run a finding of `review`. If several plug-ins have the name, shows each.

    `kind/name` asks for that of one kind. Raises InputError if there is none.

    Examples:
        >>> [entry.kind for entry in explain("frequency")]
        ['checks']

    Args:
        name: A name from `mixwright list`, for example frequency; with --run one of the 28 of `review --full`.
        run: Folder of a run: say what its files show of that finding. Repeatable.
    """
    if run:
        from mixwright.verbs.review import describe_row, review

        row_by_name = {row.name: row for row in review(run).rows}
        if name not in row_by_name:
            raise unknown_name("finding", name, row_by_name)
        return [Entry("review", name, " ".join(run), name, "\n".join(describe_row(row_by_name[name])))]
    kind, _, stem = name.replace(".", "/").rpartition("/")
    entries = [entry for entry in entries_named(stem) if kind in ("", entry.kind)]
    if not entries:
        raise unknown_name("plug-in", name, {plugin_name for kind in KIND_BY_NAME for plugin_name in listing(kind)})
    return entries


def show_entries(found: Sequence[Entry]) -> None:
    """Print the docstring of each, and its findings."""
    for entry in found:
        output.out(f"{entry.kind}.{entry.name}  ({entry.module})")
        for line in (entry.docstring or entry.summary).splitlines():
            output.out(f"  {one_line(line)}".rstrip())
        for line in describe_support(entry):
            output.out(f"  {line}")
        output.out("")

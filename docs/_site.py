"""What the site has that no page holds: the start page from the README, and the command line from its own help."""

from __future__ import annotations

import re
from typing import Any

import click
import typer
from mkdocs.structure.files import File

from mixwright.__main__ import app

OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+(?:mixwright|mixwright_lab|tests|examples)/[^)]*|(?:\.\./)+[A-Z][A-Za-z.]*)\)")
"""Links from a page of docs/ to a file of the repository that is no page."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    readme = (config.docs_dir + "/../README.md").replace("docs/../", "")
    with open(readme, encoding="utf-8") as file:  # noqa: PTH123 - mkdocs hands strings
        text = file.read()
    start = re.sub(r"\]\((?!docs/|https?:|#)([^)]+)\)", r"](../\1)", text).replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=start))
    files.append(File.generated(config, "reference/command_line.md", content=command_line()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Files of the repository that are no pages are named, not linked."""
    return OUTSIDE.sub(lambda found: f"{found[1]} (`{found[2].replace('../', '')}`)", markdown)


def command_line() -> str:
    """Every command with its help, arguments and options."""
    group = typer.main.get_command(app)
    context = click.Context(group, info_name="mixwright")
    assert isinstance(group, click.Group)
    parts = ["# Command line", "", "Made from `mixwright COMMAND --help`.", ""]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        usage = " ".join(command.collect_usage_pieces(click.Context(command, info_name=name)))
        parts += [f"## {name}", "", f"`mixwright {name} {usage}`", "", plain(command.help or ""), ""]
        options = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
        parts += ["| argument or option | meaning |", "|---|---|"]
        parts += [f"| `{'`, `'.join(names(one))}` | {plain(getattr(one, 'help', '') or '')} |" for one in options] + [""]
    return "\n".join(parts)


def names(parameter: click.Parameter) -> list[str]:
    """As they are typed."""
    if isinstance(parameter, click.Argument):
        return [(parameter.name or "").upper()]
    return [*parameter.opts, *parameter.secondary_opts]


def plain(text: str) -> str:
    """Help text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")

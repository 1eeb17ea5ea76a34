"""Pages of the site that are made: the start page from the README, the command line from its own help, and llms.txt."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer
from mkdocs.structure.files import File

from mixwright.__main__ import app

PATH = r"(?:\.\./)+(?:mixwright(?:_extras|_lab)?|contributing|tests|examples)(?:/[^)\s]*)?|(?:\.\./)+[A-Z][A-Za-z.]*"
"""Files of the repository that are no pages, as pages of docs/ link to them."""
OUTSIDE = re.compile(rf"\[([^\]]+)\]\(({PATH})\)")
DEFINED = re.compile(rf"^\[([^\]]+)\]: +({PATH})$\n?", re.MULTILINE)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made here."""
    readme = (config.docs_dir + "/../README.md").replace("docs/../", "")
    with open(readme, encoding="utf-8") as file:  # noqa: PTH123 - mkdocs hands strings
        text = file.read()
    start = re.sub(r"\]\((?!docs/|https?:|#)([^)]+)\)", r"](../\1)", text).replace("](docs/", "](")
    files.append(File.generated(config, "index.md", content=start))
    files.append(File.generated(config, "reference/command_line.md", content=command_line()))
    files.append(File.generated(config, "llms.txt", content=list_pages(config)))
    return files


def list_pages(config: Any) -> str:
    """Every page of the navigation with its first paragraph, for language models (llmstxt.org)."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}."]
    for part in config.nav:
        for section, pages in part.items():
            entries = [] if isinstance(pages, str) else [entry for page in pages for entry in page.items()]
            lines += ["", f"## {section}", ""] if entries else []
            for title, path in entries:
                page = Path(config.docs_dir, path)
                paragraphs = page.read_text(encoding="utf-8").split("\n\n") if page.is_file() else []
                first = next((text for text in paragraphs if text[0].isalpha() or text[0] in "*`"), "")
                told = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(first.split()))
                lines.append(f"- [{title}]({path.removesuffix('.md')}.html): {told}".removesuffix(": "))
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Files of the repository that are no pages are named, not linked."""
    defined = {label: path.replace("../", "") for label, path in DEFINED.findall(markdown)}
    markdown = DEFINED.sub("", markdown)
    for label, path in defined.items():
        markdown = re.sub(rf"\[([^\]]+)\]\[{re.escape(label)}\]", rf"\1 (`{path}`)", markdown)
        markdown = markdown.replace(f"[{label}]", f"`{path}`")
    return OUTSIDE.sub(lambda found: f"{found[1]} (`{found[2].replace('../', '')}`)", markdown)


def command_line() -> str:
    """Every command with its help, arguments and options."""
    parts = ["# Command line", "", "Made from `mixwright COMMAND --help`.", ""]
    group: Any = typer.main.get_command(app)
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        parameters = [one for one in command.params if not getattr(one, "hidden", False)]
        arguments = [one.name.upper() for one in parameters if one.param_type_name == "argument"]
        parts += [
            f"## {name}",
            "",
            f"`{' '.join(['mixwright', name, *arguments, '[OPTIONS]'])}`",
            "",
            in_cell(command.help),
            "",
        ]
        parts += ["| argument or option | meaning |", "|---|---|"]
        parts += [f"| {', '.join(f'`{typed}`' for typed in as_typed(one))} | {in_cell(one.help)} |" for one in parameters]
        parts += [""]
    return "\n".join(parts)


def as_typed(parameter: Any) -> list[str]:
    """The names of an argument or option."""
    is_argument = parameter.param_type_name == "argument"
    return [parameter.name.upper()] if is_argument else [*parameter.opts, *parameter.secondary_opts]


def in_cell(text: str | None) -> str:
    """Help text as a table cell holds it."""
    return " ".join((text or "").split()).replace("|", "\\|").replace("<", "&lt;")

"""Every command of README and docs is one that the command line takes: its verb, its options and their values."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from cli_call import load_commands
from project_files import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
INLINE = re.compile(r"`(mixwright (?:[a-z]+) [^`]+)`")
PLACEHOLDER = re.compile(r"\.\.\.|…|\[")


def fenced(text: str) -> str:
    """What stands between fences without a language, or of a shell or YAML."""
    lines: list[str] = []
    language: str | None = None
    for line in text.splitlines():
        if line.startswith("```"):
            language = line[3:].strip() if language is None else None
        elif language in ("", "sh", "bash", "yaml"):
            lines.append(line)
    return "\n".join(lines)


def commands(page: Path) -> list[str]:
    """Lines that begin with the name of the program, in fences and in the text; those with a gap to fill in are left out."""
    text = page.read_text(encoding="utf-8")
    joined = fenced(text).replace("\\\n", " ")
    joined = re.sub(r"\n {7,}", " ", joined)  # a step of a job that goes on in the next line
    lines = [re.sub(r"^- run: ", "", line.strip()) for line in joined.splitlines()]
    found = [line for line in lines if line.startswith("mixwright ")]
    found += [one.replace("\n", " ") for one in INLINE.findall(text) if " -" in one]
    return [line for line in found if not PLACEHOLDER.search(line.partition(" #")[0])]


COMMANDS = load_commands()
ALL = [(page.relative_to(ROOT).as_posix(), line) for page in PAGES for line in commands(page)]


@pytest.mark.parametrize(("page", "line"), ALL, ids=[f"{page}: {line[:60]}" for page, line in ALL])
def test_a_command_of_the_docs_is_taken(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    verb = COMMANDS.get(words[0])
    assert verb is not None, f"{page}: no verb {words[0]}"
    verb.make_context(words[0], words[1:])  # raises for an option that is not there, or a value of another kind


def test_commands_were_found() -> None:
    """Else the test above would pass for want of any."""
    assert len(ALL) > 60
    assert {page for page, _ in ALL} >= {"README.md", "docs/servers.md", "docs/ci.md", "docs/rl.md"}

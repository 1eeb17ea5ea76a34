"""Layout of `--help`: verbs under headings, and the options of a verb in groups, those that matter most first."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from mixwright.verbs.command import list_added_verbs, load_command, read_help

VERBS_BY_HEADING = {
    "Verbs": ("audit", "measure", "plan", "verdict", "review", "run", "rewards", "diagnose"),
    "More": ("init", "preview", "mine", "list", "explain", "schema"),
}
"""Headings of `--help`, and the verbs under each."""
MATTER_MOST = {
    "audit": ("--eval", "--fix", "--out"),
    "measure": ("--eval", "--items", "--folder"),
    "plan": ("--eval", "--share", "--replay"),
    "verdict": ("--eval", "--trained-on", "--protect"),
    "run": ("--init", "--only", "--budget"),
    "preview": ("--model", "--config", "--rows"),
    "mine": ("--miner", "--try", "--keep"),
}
"""Verb -> options that its help begins with."""
GROUPS = {
    "Rows": "--column --task --grader --items --suite --suite-seed --trained-on --fresh --start --cue --context",
    "Gate": "--gate --protect --protect-behaviour --each --margin --cannot-tell --until-decided --max-items"
    " --same --repeat --baseline --bless",
    "Answers": "--samples --temperature --greedy --max-new-tokens --system --chat-template --template",
    "Machine": "--budget --batch-size --engine --adapter --served-model --parallel --cluster --gpus-per-worker",
    "Output": "--folder --full --why --json --markdown --junit --log-to --output --export --export-to --help",
}
"""Heading -> the options under it, in the help of every verb."""
SERVER_OPTIONS, ASK_SERVERS = ("--served-model", "--parallel"), ("measure", "verdict")
"""Options of a server, and the verbs that take one; the others would refuse them."""


class Verbs(TyperGroup):
    """Verbs under their headings; each is imported when it is named."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the verbs."""
        return [name for names in _list_verbs().values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a verb, None for any other name."""
        return load_command(cmd_name, Verb) if cmd_name in self.list_commands(ctx) else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the part of `--help` that lists the verbs, each with the first sentence of its help."""
        width = max(map(len, self.list_commands(ctx)))
        for heading, names in _list_verbs().items():
            with formatter.section(heading):
                sentences = [read_help(name).partition(". ")[0].removesuffix(".") for name in names]
                formatter.write_dl([(name.ljust(width), f"{text}.") for name, text in zip(names, sentences, strict=True)])


def _list_verbs() -> dict[str, tuple[str, ...]]:
    """Return the verbs under their headings, those of other packages last."""
    added = tuple(list_added_verbs())
    return VERBS_BY_HEADING | ({"Extras": added} if added else {})


class Verb(TyperCommand):
    """A verb whose options stand in groups."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the options that matter most, those of the verb alone, and the groups."""
        first = MATTER_MOST.get(str(self.name), ())
        group_by_option = {option: heading for heading, words in GROUPS.items() for option in words.split()}
        rows: dict[str, list[tuple[str, str]]] = {name: [] for name in ("Arguments", "First", "Options", *GROUPS)}
        for parameter in self.get_params(ctx):
            if (row := parameter.get_help_record(ctx)) is None:
                continue
            option = parameter.opts[0]
            if option in SERVER_OPTIONS and self.name not in ASK_SERVERS:
                continue
            if parameter.param_type_name == "argument":
                rows["Arguments"].append(row)
            else:
                rows["First" if option in first else group_by_option.get(option, "Options")].append(row)
        for heading, own in rows.items():
            if own:
                with formatter.section("Main options" if heading == "First" else heading):
                    formatter.write_dl(own)

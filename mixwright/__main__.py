"""Program `mixwright`: one verb per stage, in the order of the flow; `mixwright/verbs/` has a file for each.

Results go to stdout, everything else to stderr. Exit code 0: fine; 1: something in your input; 2: a bug of ours;
3: `verdict` found damage, or `audit --fail-on` found what it should fail on; 4: the verdict is inconclusive.
Nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import signal

if __name__ == "__main__":  # as in `start.py`: an interrupt of the imports below leaves no traceback
    signal.signal(signal.SIGINT, signal.SIG_DFL)

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from mixwright import __version__
from mixwright.errors import InputError, disk_full_error, system_error
from mixwright.run.progress import heartbeat, set_quiet
from mixwright.verbs import output
from mixwright.verbs.help import Verbs

EXIT_BAD_INPUT, EXIT_BUG, EXIT_INTERRUPTED = 1, 2, 130
app = typer.Typer(
    cls=Verbs,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Find out what fine-tuning broke, and train again without breaking it. "
    "In order: audit TRAIN, verdict BEFORE AFTER, plan BEFORE TRAIN, train again, verdict BEFORE AFTER2.",
)


def _print_version(requested: bool) -> None:
    if requested:
        output.out(f"mixwright {__version__}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print only warnings on stderr, no progress or notes; may also follow the verb.")
    ] = False,
) -> None:
    """Take the options of the program; its help text is above."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave with its exit code."""
    output.accept_any_text()
    given = list(sys.argv[1:] if arguments is None else arguments)
    set_quiet("--quiet" in given)
    output.remember_arguments(given)
    try:
        if unreadable := [argument for argument in given if any("\ud800" <= letter <= "\udfff" for letter in argument)]:
            raise InputError("file names and texts in UTF-8", repr(unreadable[0]), "Rename the file, or correct the text.")
        with heartbeat():
            app([argument for argument in given if argument != "--quiet"], prog_name="mixwright")
    except InputError as error:
        _exit_with_error(error)
    except SystemExit as exit_error:
        if exit_error.code == EXIT_INTERRUPTED:
            output.say("interrupted: the same command goes on with what it has kept")
        # the parser leaves with 2 when an argument is wrong; here 2 means a bug
        sys.exit(EXIT_BAD_INPUT if exit_error.code == 2 else exit_error.code)
    except BrokenPipeError:  # whoever read our output has seen enough
        output.discard_output()
        sys.exit(EXIT_BAD_INPUT)
    except OSError as error:
        _exit_with_error(system_error(error))
    except Exception as error:
        if (disk_error := disk_full_error(error)) is not None:
            _exit_with_error(disk_error)
        set_quiet(False)
        for line in traceback.format_exc().splitlines():
            output.say(line)
        output.say("This is a bug in Mixwright, not in your input. Please report it, with the lines above.")
        sys.exit(EXIT_BUG)


def _exit_with_error(error: InputError) -> NoReturn:
    set_quiet(False)
    output.say(f"error: {error}")
    try:
        sys.stdout.flush()
    except OSError:  # what a full disk did not take would fail once more while Python leaves, with another exit code
        output.discard_output()
    sys.exit(error.exit_code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main()

"""The command ``cgraph``: one module for each sub-command, listed in `COMMANDS`.

Exit status 0: done; 1: done, and the answer is no (a budget is not met); 2: an error, in one line on standard error;
130: interrupted; 141: the reader closed the pipe.
"""

import argparse
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import NoReturn

from cgraph.cli.unhandled import show_visibly
from cgraph.errors import CgraphError
from cgraph.system.progress import line_start
from cgraph.terminal import visible, write
from cgraph.version import __version__

INTERRUPTED, UNREAD = 128 + 2, 128 + 13  # exit statuses of shells for SIGINT and SIGPIPE
COMMANDS = {
    "run": "run_model",
    "save": "save",
    "export": "export",
    "quantise": "quantise",
    "plan": "plan_file",
    "view": "view",
    "show": "show",
    "trace": "trace",
    "bench": "bench",
    "info": "info",
    "warmup": "warmup",
    "completion": "completion",
}


class Parser(argparse.ArgumentParser):
    """An argument parser that shows messages as visible text."""

    def error(self, message: str) -> NoReturn:
        super().error(visible(message))


def program() -> int:
    """Run the command line as a process of its own."""
    show_visibly()
    return main()


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command and return the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return status_of(parse(arguments))
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        forget_output()
        return UNREAD


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; refuse unknown arguments with the usage of the command."""
    args, unknown = parser_of(names_for(arguments)).parse_known_args(arguments)
    if unknown:
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return args


def status_of(args: argparse.Namespace) -> int:
    """Run a command and return its exit status."""
    try:
        status = args.run(args)
        if sys.stdout is not None:  # None if the shell has closed it
            sys.stdout.flush()
        return status
    except BrokenPipeError:
        raise
    except (CgraphError, OSError) as error:
        if args.traceback:
            raise
        say(" ".join(text_of(error).split()))
        return 2


def say(text: str) -> None:
    """Write one line to standard error, over a progress bar if there is one."""
    write(f"cgraph: {text}\n", sys.stderr, before=line_start(sys.stderr))


def text_of(error: Exception) -> str:
    """Return the message of an error; for a system error the file and the reason."""
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def parser_of(names: Iterable[str]) -> argparse.ArgumentParser:
    """Return a parser of these commands, whose modules are loaded."""
    parser = Parser(prog="cgraph", description="Graphs of arrays, and where their bytes live.")
    parser.add_argument("--version", action="version", version=f"cgraph {__version__}")
    parser.add_argument("--traceback", action="store_true", help="show where an error comes from")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name in names:
        import_module(f"cgraph.cli.{COMMANDS[name]}").add_parser(subparsers)
        subparsers.choices[name].set_defaults(parser=subparsers.choices[name], whole_parser=whole_parser)
    return parser


def whole_parser() -> argparse.ArgumentParser:
    """Return a parser of all commands, for `completion`."""
    return parser_of(COMMANDS)


def names_for(arguments: Sequence[str]) -> list[str]:
    """Return the requested command, so that no other module is loaded; all commands if it is not clear."""
    asked = next((x for x in arguments if not x.startswith("-")), "")
    return [asked] if asked in COMMANDS else [*COMMANDS]


def forget_output() -> None:
    """Discard pending output, so that Python's flush at exit does not fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)

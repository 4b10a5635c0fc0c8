"""``cgraph completion SHELL``: print a script that completes commands, options and files."""

import argparse

from cgraph.system.extras import missing_package
from cgraph.terminal import say

SHELLS = ("bash", "zsh", "tcsh")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "completion",
        help="print a script that completes commands and options",
        description="Print a script with which a shell completes commands, options and files. In the file that bash "
        'reads when it starts: eval "$(cgraph completion bash)". Needs the extra completion.',
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ImportError:
        raise missing_package("shtab", "completions") from None
    say(shtab.complete(args.whole_parser(), args.shell))
    return 0

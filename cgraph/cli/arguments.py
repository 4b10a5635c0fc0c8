"""Numbers on the command line, and the arguments that several commands have."""

import argparse

from cgraph.errors import ArgumentError
from cgraph.system.byte_counts import byte_count as parse_bytes


def whole_number(text: str) -> int:
    """Parse an integer of at least 0."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least 0. Give one such as 3")
    return int(text)


def byte_count(text: str) -> int:
    """Parse a number of bytes, such as ``4096``, ``4KiB`` or ``200kB``."""
    try:
        return parse_bytes(text)
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def why(error: Exception) -> str:
    """Return the reason of an error without the file's name."""
    told = error.strerror if isinstance(error, OSError) else None
    return told or str(error) or "the file is cut off"


def add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=whole_number, default=0, metavar="N", help="0: every core this process may use"
    )


def add_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--memory", default="auto", metavar="STRATEGY", help="plan by this strategy")


def add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--budget", type=byte_count, metavar="BYTES", help="bytes that the arena may take: same bits")

"""Text for terminals: all printed text passes through here, and control characters from files do not.

Names in files (outputs, labels, operators, dimensions, layers), names of files, and errors that quote them are chosen
by the author of the file. A terminal obeys escape sequences in them: it changes its title, fills the clipboard, or
hides text. So every invisible character becomes a question mark.
"""

import sys
from typing import TextIO


def visible(text: str, passed: str = "\n\t") -> str:
    """Return text without invisible or forbidden characters: control characters, unpaired surrogates, marks that change
    the writing direction. Only the characters of `passed` stay.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in passed else "?" for char in text)


def write(text: str, stream: TextIO | None, before: str = "") -> None:
    """Write visible text to a stream; do nothing if the shell has closed it.

    Parameters
        before: the caller's own control characters, such as those that clear a line
    """
    if stream is not None:
        stream.write(before + visible(text))
        stream.flush()


def say(text: object) -> None:
    """Write a visible line to standard output."""
    write(f"{text}\n", sys.stdout)


def complain(text: object) -> None:
    """Write a visible line to standard error."""
    write(f"{text}\n", sys.stderr)

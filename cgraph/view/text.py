"""Names, numbers and colours in pictures: escaped and short enough."""

from html import escape

from cgraph.terminal import visible

LONGEST = 200  # maximum characters of a name
COLOURS = tuple(
    f"#{x}"
    for x in "91c8ed dfdf3a c77d6b f1f1a7 a3dcc5 a77bea dfad3a b68bc1 47d163 ce7e8e a7a7f1 c9c99c d5bddb df7c3a a6e665 "
    "6b99c7 dca8a3 ce7eae".split()
)
"""Colours of blocks, used in turn. Readers with red-green colour blindness can tell any two apart, and dark letters are
readable on all; selected from colours of even brightness, each the farthest from those before it.
"""


def plain(text: str) -> str:
    """Return a name as visible text, shortened if it is too long."""
    shown = visible(text, "")
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def markup(text: str) -> str:
    """Return text for SVG and HTML, between tags or in quotes."""
    return escape("\n".join(map(plain, text.split("\n"))), quote=True)


def colour_of(block: int) -> str:
    """Return the colour of a block, the same in every picture; neighbouring numbers have very different colours."""
    return COLOURS[block % len(COLOURS)]

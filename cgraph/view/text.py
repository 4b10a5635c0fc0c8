"""Names, numbers and colours in pictures: safe to show and short enough."""

from html import escape

from cgraph.terminal import visible

LONGEST = 200  # characters of a name
COLOURS = tuple(
    f"#{x}"
    for x in "91c8ed dfdf3a c77d6b f1f1a7 a3dcc5 a77bea dfad3a b68bc1 47d163 ce7e8e a7a7f1 c9c99c d5bddb df7c3a a6e665 "
    "6b99c7 dca8a3 ce7eae".split()
)
"""Of blocks; then they come round again. Any two are told apart by readers who see red and green alike, too, and dark
letters can be read on all; drawn from colours of even brightness, each the farthest from those before it."""


def plain(text: str) -> str:
    """Return a name as text to show: visible, and cut off if it is too long."""
    shown = visible(text, "")
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def markup(text: str) -> str:
    """Return text for SVG and HTML, between tags or in quotes."""
    return escape("\n".join(map(plain, text.split("\n"))), quote=True)


def colour_of(block: int) -> str:
    """Return the colour of a block's bytes, the same in every picture; neighbouring numbers are far apart."""
    return COLOURS[block % len(COLOURS)]

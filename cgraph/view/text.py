"""Names and numbers as they stand in pictures: safe to show, never longer than fits, one hue for one block of bytes."""

from html import escape

LONGEST = 200  # characters of a name
HUES = 36  # blocks with hues of their own; then they come round again


def plain(text: str) -> str:
    """A name as it is shown: visible, and cut off where it is too long."""
    shown = visible(text)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def visible(text: str) -> str:
    """Text without what a reader cannot see or a format forbids: control characters, halves of pairs, marks that turn
    the direction of writing. Line ends stay."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in text)


def markup(text: str) -> str:
    """Text for SVG and HTML, between tags or in quotes."""
    return escape("\n".join(map(plain, text.split("\n"))), quote=True)


def hue_of(block: int) -> int:
    """Degrees on the circle of colours; neighbouring numbers are far apart."""
    return block * 130 % 360

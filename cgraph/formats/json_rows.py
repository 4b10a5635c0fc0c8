"""Rows of large JSON files, read one after another: the file is an object whose lists hold the rows.

The parser's values take about twenty times the bytes of the text, so only one row of them is in memory at a time.
"""

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from cgraph.errors import FormatError, bytes_text

MOST_LETTERS = 1 << 21  # of one row, and of any other value
PIECE = 1 << 18  # bytes that are read at once
SPACE = " \t\n\r"
END = {*SPACE, *",:]}"}  # letters after a complete value: a number may continue in the next piece


class JsonRow(NamedTuple):
    """One element of a list of the file.

    Fields
        name: of the list
        value: as `json.loads` returns it
        text: the JSON text of the value
    """

    name: str
    value: Any
    text: str


def json_rows(path: Path) -> Iterator[JsonRow | str]:
    """Yield the name of each list of a JSON object, then its rows; skip entries that are not lists.

    Raises
        FormatError: a value has more than `MOST_LETTERS` letters, or an entry is there twice
        ValueError, RecursionError: the text is malformed, or nested too deeply
    """
    with path.open("rb") as file:
        text = Letters(file)
        text.expect("{")
        names: set[str] = set()
        while text.next_of("}", ",", is_first=not names):
            name = text.value()[0]
            if not isinstance(name, str) or name in names:
                raise FormatError(f"{path} has an entry {name!r:.80}, twice or without a text as its name. Remove it.")
            names.add(name)
            text.expect(":")
            if text.peek() != "[":
                text.value()
                continue
            yield name
            yield from rows_of(text, name)
        if text.peek():
            raise ValueError("text follows the object")


def rows_of(text: "Letters", name: str) -> Iterator[JsonRow]:
    """Yield the elements of the list that comes next."""
    text.expect("[")
    is_first = True
    while text.next_of("]", ",", is_first):
        yield JsonRow(name, *text.value())
        is_first = False


class Letters:
    """The text of a file, of which a few values are in memory. Changes: reading moves on."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.text, self.at, self.is_end = file, "", 0, False
        self.decode = codecs.getincrementaldecoder("utf-8-sig")().decode
        self.parse = json.JSONDecoder().raw_decode

    def more(self) -> None:
        """Read another piece of the file and forget the letters before the present one."""
        raw = self.file.read(PIECE)
        self.is_end = not raw
        self.text, self.at = self.text[self.at :] + self.decode(raw, final=self.is_end), 0

    def peek(self) -> str:
        """Return the next letter after spaces; an empty text at the end of the file."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in SPACE:
                self.at += 1
            if self.at < len(self.text) or self.is_end:
                return self.text[self.at : self.at + 1]
            self.more()

    def expect(self, letter: str) -> None:
        """Skip a letter. ValueError if another one comes next."""
        if (actual := self.peek()) != letter:
            raise ValueError(f"{actual!r} stands where {letter!r} is expected")
        self.at += 1

    def next_of(self, end: str, between: str, is_first: bool) -> bool:
        """Return False at the end of a list or an object, which is skipped; skip what separates its elements."""
        if self.peek() == end:
            self.at += 1
            return False
        if not is_first:
            self.expect(between)
        return True

    def value(self) -> tuple[Any, str]:
        """Return the next value, and its text."""
        self.peek()
        while True:
            try:
                value, end = self.parse(self.text, self.at)
                if self.is_end or self.text[end : end + 1] in END:
                    text, self.at = self.text[self.at : end], end
                    return value, text
            except json.JSONDecodeError:
                if self.is_end:
                    raise
            if len(self.text) - self.at >= MOST_LETTERS:
                raise FormatError(
                    f"a value of the JSON text is malformed or has more than {bytes_text(MOST_LETTERS)}. Split it."
                )
            self.more()

"""Parser of ``.cfg`` files: sections of options. Source: parse_network_cfg of github.com/pjreddie/darknet."""

from collections.abc import Callable, Iterator, Mapping
from io import BytesIO, TextIOWrapper
from pathlib import Path
from sys import getsizeof
from typing import Any, TextIO

from cgraph.errors import FormatError, bytes_text
from cgraph.formats.allowance import Allowance
from cgraph.formats.mapped import map_file
from cgraph.record import Record

LARGEST_FILE = 16 << 20
SECTION, OPTION = 600, 240  # bytes in memory of a section and of an option
MOST_SECTIONS = 10_000
MOST_NUMBERS = 10_000  # in one list
LONGEST_LINE = 1 << 20  # characters


class Section(Record):
    """One layer: ``[kind]`` and its options as text.

    Fields
        index: the layer's number, from 0; -1 for ``[net]``
        line: number of its first line
    """

    kind: str
    index: int
    line: int
    options: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        return self.options.get(name, default)

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer option. FormatError if it is not an integer, or missing without a default."""
        text = self.options.get(name)
        if text is None:
            if default is None:
                raise self.error(f"the option {name} is missing. Add {name}=, an integer")
            return default
        try:
            value = int(float(text))
        except (ValueError, OverflowError):
            raise self.error(f"{name}={text:.40} is not an integer") from None
        if not -(2**31) <= value < 2**31:
            raise self.error(f"{name}={text:.40} is out of range")
        return value

    def size(self, name: str, default: int | None = None) -> int:
        """Return an integer option >= 1. FormatError if it is not."""
        value = self.integer(name, default)
        if value < 1:
            raise self.error(f"{name}={value} must be at least 1")
        return value

    def number(self, name: str, default: float) -> float:
        """Return a number. FormatError if it is not a number."""
        try:
            return float(self.options.get(name, default))
        except ValueError:
            raise self.error(f"{name}={self.options[name]:.40} is not a number") from None

    def ints(self, name: str) -> list[int]:
        """Return a comma-separated list of integers. FormatError if it is malformed."""
        return self.parse_list(name, int, "integers")

    def numbers(self, name: str) -> list[float]:
        """Return a comma-separated list of numbers. FormatError if it is malformed."""
        return self.parse_list(name, float, "numbers")

    def parse_list(self, name: str, kind: Callable[[str], Any], what: str) -> list[Any]:
        if self.text(name).count(",") > MOST_NUMBERS:
            raise self.error(f"{name} lists more than {MOST_NUMBERS:,} numbers")
        try:
            return [kind(n) for n in self.options[name].split(",") if n.strip()]
        except (KeyError, ValueError):
            raise self.error(f"{name}={self.text(name):.40} must be {what}") from None

    def error(self, problem: str) -> FormatError:
        return FormatError(f"[{self.kind}] in line {self.line} (layer {self.index}): {problem}")


def read_config(path: str | Path, allowance: Allowance) -> list[Section]:
    """Read the sections of a file, ``[net]`` first. FormatError if it is malformed."""
    raw = map_file(path)
    try:
        if len(raw) > LARGEST_FILE:
            raise FormatError(
                f"it has {bytes_text(len(raw))}; a network description has at most {bytes_text(LARGEST_FILE)}"
            )
        allowance.grow(len(raw))
        return parse(TextIOWrapper(BytesIO(raw), "utf-8"), allowance)
    except UnicodeDecodeError:
        raise FormatError(f"{path}: it is not text. Pass the .cfg file of the network") from None
    except FormatError as error:
        raise FormatError(f"{path}: {error}") from None


def parse(text: TextIO, allowance: Allowance) -> list[Section]:
    """Parse sections: ``[kind]`` lines, ``name=value`` lines, comments after # or ;."""
    sections: list[tuple[str, int, dict[str, str]]] = []
    for number, line in enumerate(lines_of(text), start=1):
        line = line.strip()
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            if not line.endswith("]") or len(sections) >= MOST_SECTIONS:
                raise FormatError(
                    f"line {number}: {line!r:.60} is not a [section] header. Write one such as [convolutional]"
                )
            allowance.spend("its sections", nbytes=SECTION + getsizeof(line))
            sections.append((line[1:-1].strip(), number, {}))
            continue
        name, equals, value = line.partition("=")
        if not equals or not sections:
            raise FormatError(
                f"line {number}: {line!r:.60} is not an option of a section. Write name=value below a [section] header"
            )
        allowance.spend("its options", nbytes=OPTION + getsizeof(line))
        sections[-1][2][name.strip()] = value.split("#")[0].strip()
    if not sections or sections[0][0] not in ("net", "network"):
        first = f"[{sections[0][0]}]" if sections else "absent"
        raise FormatError(f"the first section must be [net], it is {first}. Add one with width, height and channels")
    return [Section(kind, i - 1, line, options) for i, (kind, line, options) in enumerate(sections)]


def lines_of(text: TextIO) -> Iterator[str]:
    """Yield the lines of a text. FormatError if one is too long."""
    number = 1
    while line := text.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE:
            raise FormatError(f"line {number} has over {LONGEST_LINE:,} characters: split it")
        yield line
        number += 1

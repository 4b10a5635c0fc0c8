"""Features of texts that a call computes in Python from an input of strings, before a run: case, tokens, matches.

Patterns come from files, and Python's regular expressions can take exponential time. `check_pattern` accepts those
whose time is at most in proportion to the square of the text: a row of characters and classes, few of them repeated.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.record import Record
from cgraph.running.full_match import full_match

CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}
START, END = "\x02", "\x03"  # tokens around a marked text
LONGEST, MOST_REPEATS = 1000, 1000  # of a pattern: characters, and a repeat's bound
PIECE = re.compile(
    r"(?:\[\^?\]?(?:\\[wWdDsS\\\]\[.^-]|[^\]\\\[&|~])*\]|\\[wWdDsSbB]|\\[^A-Za-z0-9]|[^\\\[\](){}*+?|^$])"
    r"(\+|\*|\?|\{(\d{1,4})(,(\d{0,4}))?\})?"
)
"""A character or a class, and its repeat."""


def check_pattern(pattern: str) -> None:
    """Raise FormatError unless a pattern is characters and classes, one of them repeated without a bound at most."""
    at, unbounded, variable, least = 0, 0, 0, 0
    while at < len(pattern) <= LONGEST:
        piece = PIECE.match(pattern, at)
        if piece is None:
            raise refused(pattern)
        repeat, low, comma, high = piece.groups()
        if any(int(n) > MOST_REPEATS for n in (low, high) if n):
            raise refused(pattern)
        unbounded += repeat in ("+", "*") or (comma is not None and not high)
        variable += repeat is not None and (comma is not None or not low)
        is_optional = repeat in ("*", "?") or (low is not None and int(low) == 0)
        least += not is_optional and piece.group()[:2] not in ("\\b", "\\B")
        at = piece.end()
    if at != len(pattern) or unbounded > 1 or variable > 2 or not least:
        raise refused(pattern)
    try:
        compiled(pattern)
    except re.error:
        raise refused(pattern) from None


def refused(pattern: str) -> FormatError:
    return FormatError(
        f"the pattern {pattern!r:.60} is not supported: use characters and classes such as [a-z] or \\w, at most one "
        "of them repeated without a bound, and nothing that matches an empty text"
    )


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern whose classes are ASCII's, as RE2's are."""
    return re.compile(pattern, re.ASCII)


class TextSplitter(Record):
    """How a text becomes tokens.

    Fields
        pattern: of a token; empty if `separators` divide a text
        separators: patterns of the text between tokens; one empty text makes each character a token
        least: the fewest characters of a token
        mark: the tokens of a text are between `START` and `END`
        pad: the token behind those of shorter texts
    """

    pattern: str
    separators: tuple[str, ...]
    least: int
    mark: bool
    pad: str

    def check(self) -> None:
        """Raise FormatError for a pattern that is not supported."""
        for pattern in (self.pattern,) if self.pattern else self.separators if self.separators != ("",) else ():
            check_pattern(pattern)

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        if self.pattern:
            parts = compiled(self.pattern).findall(text)
        elif self.separators == ("",):
            parts = list(text)
        else:
            parts = [text]
            for separator in self.separators:
                parts = [part for x in parts for part in compiled(separator).split(x)]
        tokens = [part for part in parts if len(part) >= self.least]
        return [START, *tokens, END] if self.mark else tokens

    def rows(self, texts: Iterable[str]) -> list[list[str]]:
        """Return the tokens of each text, padded to one number."""
        rows = [self.tokens(text) for text in texts]
        width = max(map(len, rows), default=0)
        return [row + [self.pad] * (width - len(row)) for row in rows]


class TextFeature(Record, eq=False):
    """An array of int64 that a call computes of an input of strings.

    Fields
        index: positions among the input's strings
        case: a key of `CASES`, applied to each
        splitter: how they become tokens, whose n-grams are counted; None for the codes of the strings, or matches
        grams: the column of each n-gram
        skips: tokens between the neighbours of an n-gram, at most
        columns: of the counts
        pattern: that the whole strings match, 1, or not, 0; None for their codes or counts
    """

    index: np.ndarray
    case: str
    splitter: TextSplitter | None = None
    grams: Mapping[tuple[str, ...], int] = {}  # noqa: RUF012 - never changed
    skips: int = 0
    columns: int = 0
    pattern: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.index.shape if self.splitter is None else (*self.index.shape, self.columns)

    def texts(self, strings: np.ndarray) -> list[str]:
        """Return the selected strings of a flat input, in their case."""
        change = CASES[self.case]
        return [change(strings[i]) for i in self.index.reshape(-1)]

    @cached_property
    def by_length(self) -> dict[int, dict[Any, int]]:
        """The columns of n-grams, by their length; those of one token by that token."""
        tables: dict[int, dict[Any, int]] = {}
        for gram, column in self.grams.items():
            tables.setdefault(len(gram), {})[gram if len(gram) > 1 else gram[0]] = column
        return tables

    def counts(self, strings: np.ndarray) -> np.ndarray:
        """Return how often each n-gram occurs in each text, of a flat input."""
        assert self.splitter is not None
        places: list[int] = []
        for number, tokens in enumerate(self.splitter.rows(self.texts(strings))):
            first = number * self.columns
            for n, columns in self.by_length.items():
                for grams in ngrams(tokens, n, self.skips):
                    places += [first + columns[gram] for gram in grams if gram in columns]
        size = self.index.size * self.columns
        return np.bincount(np.array(places, np.int64), minlength=size).reshape(self.index.size, self.columns)

    def matches(self, strings: np.ndarray) -> np.ndarray:
        """Return 1 for each text that the pattern matches, of a flat input."""
        assert self.pattern is not None
        matches = full_match(self.pattern)
        return np.array([matches(text) for text in self.texts(strings)], np.int64)


def ngrams(tokens: Sequence[str], n: int, skips: int) -> Iterator[Iterable[Any]]:
    """Yield the n tokens in a row, then those that are 2 to ``skips + 1`` apart; for n = 1 the tokens themselves."""
    if n == 1:
        yield tokens
        return
    for step in range(1, min(skips + 1, len(tokens)) + 1):
        yield zip(*(tokens[i * step :] for i in range(n)))


class TextInput(Record, eq=False):
    """An input of strings that a run reads as a row of int64: codes of the strings, if it reads these, and features.

    Fields
        shape: of the strings
        reads_codes: the codes come first
        features: behind them, in C order
    """

    shape: tuple[int, ...]
    reads_codes: bool
    features: tuple[TextFeature, ...]

    @property
    def size(self) -> int:
        """The number of integers."""
        return prod(self.shape) * self.reads_codes + sum(prod(x.shape) for x in self.features)

    def encode(self, strings: np.ndarray, codes: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """Return the integers of an array of strings; `codes` returns those of strings."""
        flat = strings.reshape(-1)
        parts = [codes(flat)] if self.reads_codes else []
        for feature in self.features:
            if feature.pattern is not None:
                parts.append(feature.matches(flat))
            elif feature.splitter is None:
                parts.append(codes(np.array(feature.texts(flat), object)))
            else:
                parts.append(feature.counts(flat).reshape(-1))
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

"""Patterns of files that match whole texts, in the syntax of RE2, in time proportional to the text.

A pattern becomes an automaton, and each character moves the set of its states. So a text takes at most as many steps as
it has characters, times the states of the pattern, whatever the pattern is.

Source: RE2's page on syntax; Cox 2007, Regular Expression Matching Can Be Simple And Fast.
"""

import re
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache
from itertools import chain
from typing import Any

from cgraph.errors import FormatError
from cgraph.record import Record

LONGEST, DEEPEST, MOST_STATES, MOST_REPEATS = 1000, 50, 2000, 1000  # characters, groups in groups, states, a repeat
MOST_REMEMBERED = 50_000  # states in the sets of the moves that an automaton remembers
LAST = 0x10FFFF  # the last code point
Ranges = tuple[tuple[int, int], ...]
REPEAT = re.compile(r"(?:([*+?])|\{(\d{1,4})(?:(,)(\d{0,4}))?\})\??")
GROUP = re.compile(r"\((?:\?(?:P?<\w+>|:))?")


def ranges_of(text: str) -> Ranges:
    """Return the ranges of pairs of characters."""
    return tuple((ord(a), ord(b)) for a, b in zip(text[::2], text[1::2], strict=True))


def others(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return all characters that are not in ranges."""
    result, start = [], 0
    for low, high in sorted(ranges):
        if low > start:
            result.append((start, low - 1))
        start = max(start, high + 1)
    return (*result, (start, LAST)) if start <= LAST else tuple(result)


PERL = {"d": ranges_of("09"), "s": ranges_of("\t\n\f\r  "), "w": ranges_of("09AZaz__")}
POSIX = {
    "alnum": "09AZaz", "alpha": "AZaz", "ascii": "\x00\x7f", "blank": "\t\t  ", "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09", "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ",
    "word": "09AZaz__", "xdigit": "09AFaf",
}  # fmt: skip
CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
CHECKS: dict[str, Callable[[str | None, str | None], bool]] = {
    "^": lambda before, after: before is None,
    "$": lambda before, after: after is None,
    "b": lambda before, after: is_word(before) != is_word(after),
    "B": lambda before, after: is_word(before) == is_word(after),
}
"""Conditions on the characters around a place, None beyond the ends."""
ESCAPED_CHECKS = {"A": "^", "z": "$", "b": "b", "B": "B"}


def is_word(character: str | None) -> bool:
    return character is not None and has(PERL["w"], character)


def has(ranges: Ranges, character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in ranges)


def is_single(ranges: Ranges) -> bool:
    """Return True for one character."""
    return len(ranges) == 1 and ranges[0][0] == ranges[0][1]


class PatternPart(Record, eq=False):
    """A part of a pattern.

    Fields
        kind: ``set`` of characters, ``check`` of a place, ``row`` of parts, ``either`` of parts, ``repeat`` of one
        content: ranges, a key of `CHECKS`, or the parts
        low, high: of a repeat; None without a bound
    """

    kind: str
    content: Any
    low: int = 1
    high: int | None = 1

    @property
    def states(self) -> int:
        """The number of states, at most."""
        if self.kind in ("set", "check"):
            return 1
        own = max(sum(x.states for x in self.content), 1)
        if self.high is None:
            return own * (self.low + 1) + 1
        return own * self.high + self.high - self.low + (self.kind == "either")


class PatternReader:
    """Reads one pattern. Changes: its place.

    Parameters
        pattern: its text
    """

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern, 0

    def refused(self, what: str) -> FormatError:
        return FormatError(
            f"the pattern {self.pattern!r:.60} has {what} at character {self.at}, which is not supported. Use RE2's "
            f"groups, classes and repeats, without flags, of at most {LONGEST} characters"
        )

    @property
    def next(self) -> str:
        """Return the next character; empty at the end."""
        return self.pattern[self.at : self.at + 1]

    def take(self, count: int = 1) -> str:
        text = self.pattern[self.at : self.at + count]
        if len(text) < count:
            raise self.refused("an early end")
        self.at += count
        return text

    def read(self) -> PatternPart:
        """Return the whole pattern."""
        if len(self.pattern) > LONGEST:
            raise self.refused(f"{len(self.pattern)} characters")
        part = self.either(0)
        if self.next:
            raise self.refused("a parenthesis that nothing opens")
        if part.states > MOST_STATES:
            raise self.refused(f"repeats of {part.states} states (at most {MOST_STATES})")
        return part

    def either(self, depth: int) -> PatternPart:
        if depth > DEEPEST:
            raise self.refused(f"more than {DEEPEST} groups in one another")
        rows = [self.row(depth)]
        while self.next == "|":
            self.take()
            rows.append(self.row(depth))
        return PatternPart("either", rows) if len(rows) > 1 else rows[0]

    def row(self, depth: int) -> PatternPart:
        parts = []
        while self.next and self.next not in "|)":
            parts.append(self.repeated(self.single(depth)))
        return PatternPart("row", parts)

    def repeated(self, part: PatternPart) -> PatternPart:
        """Return a part with the repeat behind it."""
        repeat = REPEAT.match(self.pattern, self.at)
        if repeat is None:
            return part
        sign, low, comma, high = repeat.groups()
        bounds = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign)
        if bounds is None:
            bounds = int(low), int(low) if comma is None else int(high) if high else None
        if max(bounds[0], bounds[1] or 0) > MOST_REPEATS or (bounds[1] is not None and bounds[0] > bounds[1]):
            raise self.refused(f"the repeat {repeat.group()}")
        self.at = repeat.end()
        if REPEAT.match(self.pattern, self.at):
            raise self.refused("a repeat of a repeat")
        return PatternPart("repeat", [part], *bounds)

    def single(self, depth: int) -> PatternPart:
        """Return a group, a class, a condition or a character."""
        character = self.next
        if character == "(":
            group = GROUP.match(self.pattern, self.at)
            assert group is not None
            self.at = group.end()
            if self.next == "?":
                raise self.refused("flags or a group of another kind")
            part = self.either(depth + 1)
            if self.take() != ")":
                raise self.refused("a group without an end")
            return part
        if character == "[":
            return PatternPart("set", self.character_class())
        if character == "\\":
            return self.escape()
        if character in "*+?":
            raise self.refused("a repeat of nothing")
        self.take()
        if character in "^$":
            return PatternPart("check", character)
        return PatternPart("set", others(ranges_of("\n\n")) if character == "." else ranges_of(character * 2))

    def escape(self) -> PatternPart:
        if self.pattern[self.at + 1 : self.at + 2] in ESCAPED_CHECKS:
            return PatternPart("check", ESCAPED_CHECKS[self.take(2)[1]])
        return PatternPart("set", self.escaped())

    def escaped(self) -> Ranges:
        """Return the characters of a backslash and what follows."""
        letter = self.take(2)[1]
        if letter.lower() in PERL:
            return PERL[letter] if letter in PERL else others(PERL[letter.lower()])
        if letter == "x":
            number = re.compile(r"[0-9A-Fa-f]{2}|\{[0-9A-Fa-f]{1,6}\}").match(self.pattern, self.at)
            if number is None or int(number.group().strip("{}"), 16) > LAST:
                raise self.refused("an unknown character")
            self.at = number.end()
            return ranges_of(chr(int(number.group().strip("{}"), 16)) * 2)
        if letter not in CONTROL and (letter.isalnum() or not letter.isascii()):
            raise self.refused(f"the escape \\{letter}")
        return ranges_of(CONTROL.get(letter, letter) * 2)

    def character_class(self) -> Ranges:
        """Return the characters between brackets."""
        self.take()
        is_negated = self.next == "^"
        if is_negated:
            self.take()
        parts = [self.class_part()]  # a bracket that is first ends nothing
        while self.next != "]":
            parts.append(self.class_part())
        self.take()
        ranges = tuple(chain(*parts))
        return others(ranges) if is_negated else ranges

    def class_part(self) -> Ranges:
        """Return the characters of a named class, an escape, a character or a range."""
        named = re.compile(r"\[:(\^?)(\w+):\]").match(self.pattern, self.at)
        if named:
            if named.group(2) not in POSIX:
                raise self.refused(f"the class {named.group()}")
            self.at = named.end()
            ranges = ranges_of(POSIX[named.group(2)])
            return others(ranges) if named.group(1) else ranges
        first = self.class_character()
        is_range = self.next == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", "")
        if not (is_range and is_single(first)):
            return first
        self.take()
        last = self.class_character()
        if not is_single(last) or first[0] > last[0]:
            raise self.refused("a range that falls or ends at a class")
        return ((first[0][0], last[0][0]),)

    def class_character(self) -> Ranges:
        return self.escaped() if self.next == "\\" else ranges_of(self.take() * 2)


class FullMatch(Record, eq=False):
    """The automaton of a pattern. State 0 is the end of the pattern. Changes: it remembers moves.

    Fields
        pattern: its text
    """

    pattern: str

    @cached_property
    def table(self) -> tuple[list[tuple[Ranges | None, str | None, list[int]]], int]:
        """Return the states, each with characters or a condition or neither, and the next ones; and the first state."""
        states: list[tuple[Ranges | None, str | None, list[int]]] = [((), None, [])]

        def add(ranges: Ranges | None, check: str | None, targets: list[int]) -> int:
            states.append((ranges, check, targets))
            return len(states) - 1

        def link(part: PatternPart, then: int) -> int:
            """Return the first state of a part that ends at another one."""
            if part.kind == "set":
                return add(part.content, None, [then])
            if part.kind == "check":
                return add(None, part.content, [then])
            if part.kind == "either":
                return add(None, None, [link(x, then) for x in part.content])
            if part.kind == "row":
                for x in reversed(part.content):
                    then = link(x, then)
                return then
            start, (body,) = then, part.content
            if part.high is None:
                start = add(None, None, [then])
                states[start][2].append(link(body, start))
            for _ in range(part.low, part.high or 0):
                start = add(None, None, [then, link(body, start)])
            for _ in range(part.low):
                start = link(body, start)
            return start

        first = link(PatternReader(self.pattern).read(), 0)
        return states, first

    @property
    def size(self) -> int:
        """The number of states."""
        return len(self.table[0])

    @cached_property
    def moves(self) -> dict[Any, frozenset[int]]:
        return {}

    def matches(self, text: str) -> bool:
        """Return True if the pattern matches the whole text."""
        states, first = self.table
        now, moves = self.reached([first], None, text[0] if text else None), self.moves
        for character, after in zip(text, [*text[1:], None]):
            key = now, character, None if after is None else is_word(after)
            following = moves.get(key)
            if following is None:
                targets = chain(*(states[i][2] for i in now if has(states[i][0] or (), character)))
                following = self.reached(targets, character, after)
                if len(moves) * self.size >= MOST_REMEMBERED:
                    moves.clear()
                moves[key] = following
            if not following:
                return False
            now = following
        return 0 in now

    def reached(self, targets: Iterable[int], before: str | None, after: str | None) -> frozenset[int]:
        """Return the states with characters, and the end, that follow without a character."""
        states, _ = self.table
        closure, waiting = set[int](), list(targets)
        while waiting:
            i = waiting.pop()
            if i in closure:
                continue
            closure.add(i)
            ranges, check, following = states[i]
            if ranges is None and (check is None or CHECKS[check](before, after)):
                waiting += following
        return frozenset(i for i in closure if states[i][0] is not None)


@lru_cache(maxsize=32)
def full_match(pattern: str) -> FullMatch:
    """Return the automaton of a pattern. FormatError if it is not supported."""
    match = FullMatch(pattern)
    match.table  # noqa: B018 - it reads the pattern
    return match

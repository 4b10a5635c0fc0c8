"""Patterns of files that match whole texts, by RE2: in time proportional to the text, whatever the pattern is."""

from collections.abc import Callable
from functools import lru_cache

from cgraph.errors import FormatError
from cgraph.system.extras import missing_package

LONGEST = 1000  # characters of a pattern
MOST_MEMORY = 1 << 20  # bytes of what RE2 makes of a pattern


@lru_cache(maxsize=32)
def full_match(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells whether a pattern matches a whole text. Source: RE2's page on syntax.

    Raises
        FormatError: RE2 cannot read it, or it has more than `LONGEST` characters or `MOST_MEMORY` bytes
        UnavailableError: google-re2 is not installed
    """
    try:
        import re2
    except ImportError:
        raise missing_package("google-re2", "regular expressions of files") from None
    if len(pattern) > LONGEST:
        raise FormatError(f"the pattern {pattern!r:.60} has {len(pattern)} characters; use at most {LONGEST}")
    options = re2.Options()
    options.max_mem, options.log_errors = MOST_MEMORY, False
    try:
        compiled = re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise FormatError(f"RE2 cannot read the pattern {pattern!r:.60}: {error}. Use its syntax") from None

    def matches(text: str) -> bool:
        try:
            return compiled.fullmatch(text) is not None
        except UnicodeEncodeError:  # half of a surrogate pair is not a character
            return False

    return matches

"""C identifiers for a function's inputs, outputs and Vars."""

import re
from collections.abc import Iterable

from cgraph.errors import FormatError
from cgraph.ir.labels import distinct_names

IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
KEYWORDS = frozenset(
    "alignas alignof and and_eq asm atomic auto bitand bitor bool break case catch char class compl concept const "
    "consteval constexpr constinit const_cast continue co_await co_return co_yield decltype default delete do double "
    "dynamic_cast else enum explicit export extern false float for friend goto if inline int long mutable namespace "
    "new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "restrict return short signed sizeof static static_assert static_cast struct switch template this thread_local "
    "throw true try typedef typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq "
    "memory parallel main NULL size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t".split()
)  # of C and C++, and the parameters, types and macros of a header


def check_prefix(name: str) -> str:
    """Return the name that begins every public name of an export. FormatError if C cannot use it."""
    if not IDENTIFIER.match(name) or name in KEYWORDS:
        raise FormatError(
            f"{name!r} cannot begin the names of a C header: it needs letters, digits and underscores, and must not be "
            "a keyword. Pass another one as name="
        )
    return name


def c_names(names: Iterable[str], others: Iterable[str] = ()) -> tuple[str, ...]:
    """Return a distinct C identifier for each name: other characters become underscores."""
    return distinct_names([c_name(x) for x in names], others)


def c_name(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9_]", "_", name)
    if not IDENTIFIER.match(text):
        text = f"x{text}"
    return f"{text}_" if text in KEYWORDS else text

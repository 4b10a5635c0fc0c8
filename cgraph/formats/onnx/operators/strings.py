"""Importers that compute strings while the graph is built: their operands must be constant.

RegexFullMatch is refused: nothing bounds the time of a pattern of a file.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.onnx.context import Context, operator
from cgraph.formats.onnx.vocabulary import STRING_COST, CodedStrings
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const

CASES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


def strings(c: Context, i: int) -> np.ndarray:
    """Return the strings of operand i, which must be constant, as objects."""
    codes = c.text(i).constant(i)
    words = np.array([*c.vocabulary.numbers, None], object)
    c.spend(nbytes=STRING_COST * codes.size, work=STRING_COST * codes.size)
    return np.asarray(words[codes], object).reshape(codes.shape)


@operator("StringNormalizer")
def string_normalizer(c: Context) -> CodedStrings:
    """Import StringNormalizer: drop stop words of ``[c]`` or ``[1, c]``, change the case; at least one string."""
    x, how = strings(c, 0), c.attribute("case_change_action", "NONE")
    if how not in CASES or x.ndim not in (1, 2) or (x.ndim == 2 and len(x) != 1):
        raise FormatError(
            f"case_change_action {how!r:.40} of strings {list(x.shape)} is not supported. Use {', '.join(CASES)} and "
            "one row"
        )
    stops, exact = c.attribute("stopwords", []), c.attribute("is_case_sensitive", 0)
    key = str if exact else str.lower
    dropped = set(map(key, stops))
    left = [CASES[how](word) for word in x.reshape(-1) if key(word) not in dropped] or [""]
    words = np.array(left, object)
    return c.vocabulary.constant(words.reshape(1, -1) if x.ndim == 2 else words)


@operator("StringConcat")
def string_concat(c: Context) -> CodedStrings:
    """Import StringConcat: the elements of two arrays, which broadcast, one after the other."""
    x, y = np.broadcast_arrays(strings(c, 0), strings(c, 1))
    c.spend(nbytes=STRING_COST * x.size + sum(map(len, x.flat)) + sum(map(len, y.flat)), work=STRING_COST * x.size)
    return c.vocabulary.constant(np.asarray(x + y, object).reshape(x.shape))


@operator("StringSplit")
def string_split(c: Context) -> tuple[CodedStrings, Node]:
    """Import StringSplit: the parts of each string along a new axis, padded with empty ones, and their number."""
    x = strings(c, 0)
    delimiter, most = c.attribute("delimiter", "") or None, c.attribute("maxsplit", -1)
    parts: list[Any] = [word.split(delimiter, most) for word in x.reshape(-1)]
    width = max(map(len, parts), default=0)
    c.spend(nbytes=STRING_COST * width * len(parts), work=STRING_COST * width * len(parts))
    table = np.full((len(parts), width), "", object)
    for row, words in zip(table, parts):
        row[: len(words)] = words
    counts = np.array([len(words) for words in parts], np.int64).reshape(x.shape)
    return c.vocabulary.constant(table.reshape(*x.shape, width)), Const(counts)

"""Importers that compute strings while the graph is built, or by each call of an input's strings."""

from math import prod
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.names import cg
from cgraph.formats.onnx.context import Context, not_of_strings, operator
from cgraph.formats.onnx.vocabulary import STRING_COST, CodedStrings, Tokens
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Const, Var
from cgraph.record import replace
from cgraph.running.full_match import LONGEST, full_match
from cgraph.running.text_features import CASES, TextFeature, TextSplitter

PATTERN_COST = 1000  # work of reading a character of a pattern, or of matching one of a text


def open_texts(c: Context) -> tuple[Var, TextFeature]:
    """Return the input whose strings are operand 0, and which of them. FormatError if they are not of one input."""
    texts = c.vocabulary.texts(c.text(0)[0])
    if texts is None:
        raise FormatError(
            "operand 0 is neither constant nor moved strings of one input. Do its work in Python, and pass its result"
        )
    return texts


def strings(c: Context, i: int) -> np.ndarray:
    """Return the strings of operand i, which must be constant, as objects."""
    codes = c.text(i).constant(i)
    words = np.array([*c.vocabulary.numbers, None], object)
    c.spend(nbytes=STRING_COST * codes.size, work=STRING_COST * codes.size)
    return np.asarray(words[codes], object).reshape(codes.shape)


@operator("StringNormalizer")
def string_normalizer(c: Context) -> CodedStrings:
    """Import StringNormalizer: drop stop words of ``[c]`` or ``[1, c]``, change the case; at least one string."""
    node, how = c.text(0)[0], c.attribute("case_change_action", "NONE")
    if how not in CASES or node.ndim not in (1, 2) or (node.ndim == 2 and len(node) != 1):
        raise FormatError(
            f"case_change_action {how!r:.40} of strings {list(node.shape)} is not supported. Use {', '.join(CASES)} "
            "and one row"
        )
    stops, exact = c.attribute("stopwords", []), c.attribute("is_case_sensitive", 0)
    if c.evaluator.lacks(node) and not stops:
        source, texts = open_texts(c)
        if how != "NONE" and texts.case not in ("NONE", how):
            raise FormatError(f"texts in {texts.case} are changed to {how}, which is not supported. Leave out one")
        return CodedStrings(c.vocabulary.feature(source, replace(texts, case=texts.case if how == "NONE" else how)))
    x = strings(c, 0)
    key = str if exact else str.lower
    dropped = set(map(key, stops))
    left = [CASES[how](word) for word in x.reshape(-1) if key(word) not in dropped] or [""]
    words = np.array(left, object)
    return c.vocabulary.constant(words.reshape(1, -1) if x.ndim == 2 else words)


@operator("com.microsoft.Tokenizer")
def tokenizer(c: Context) -> CodedStrings | Tokens:
    """Import Tokenizer: constant texts are split now, those of an input by each call."""
    splitter = TextSplitter(
        c.attribute("tokenexp", ""), tuple(c.attribute("separators", [])), c.required("mincharnum"),
        bool(c.required("mark")), c.required("pad_value"),
    )  # fmt: skip
    if bool(splitter.pattern) == bool(splitter.separators) or splitter.least < 1:
        raise FormatError("a Tokenizer needs either tokenexp or separators, and mincharnum of at least 1")
    splitter.check()
    if c.evaluator.lacks(c.text(0)[0]):
        source, texts = open_texts(c)
        return Tokens(source, replace(texts, splitter=splitter))
    x = strings(c, 0)
    letters = sum(map(len, x.reshape(-1)))
    c.spend(nbytes=STRING_COST * letters, work=STRING_COST * letters * (1 + len(splitter.separators)))
    rows = splitter.rows(x.reshape(-1))
    c.spend(nbytes=STRING_COST * sum(map(len, rows)))
    return c.vocabulary.constant(np.array(rows, object).reshape(*x.shape, -1 if x.size else 0))


@operator("RegexFullMatch")
def regex_full_match(c: Context) -> Node:
    """Import RegexFullMatch: True for strings that a pattern matches as a whole, constant ones or those of an input."""
    pattern = c.attribute("pattern", "")
    c.spend(work=PATTERN_COST * LONGEST)
    matches = full_match(pattern)
    if c.evaluator.lacks(c.text(0)[0]):
        source, texts = open_texts(c)
        return cg.not_equal(c.vocabulary.feature(source, replace(texts, pattern=pattern)), 0)
    x = strings(c, 0)
    c.spend(work=PATTERN_COST * sum(map(len, x.reshape(-1))))
    return Const(np.array([matches(text) for text in x.reshape(-1)], bool).reshape(x.shape))


def moved_tokens(c: Context) -> Tokens:
    """Return the tokens after Identity, or Flatten to one row for each text."""
    tokens = c.value(0)
    if not isinstance(tokens, Tokens) or c.kind not in ("Identity", "Flatten"):
        raise not_of_strings(*next((i, x) for i, x in enumerate(c.operands) if isinstance(x, Tokens)))
    if c.kind == "Identity":
        return tokens
    shape, axis = tokens.texts.index.shape, c.attribute("axis", 1)
    axis = axis + len(shape) + 1 if axis < 0 else axis
    if axis > len(shape) or prod(shape[axis:]) != 1:  # the tokens of several texts would become those of one
        raise not_of_strings(0, tokens)
    return replace(tokens, texts=replace(tokens.texts, index=tokens.texts.index.reshape(prod(shape[:axis]))))


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

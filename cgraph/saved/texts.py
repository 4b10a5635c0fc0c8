"""Inputs of strings that calls split or change: their part of a saved function's manifest."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from cgraph.running.full_match import full_match
from cgraph.running.text_features import CASES, TextFeature, TextInput, TextSplitter
from cgraph.saved.manifest import get, is_size, items, malformed

WHAT = "an input of texts"


def text_entry(text: TextInput | None) -> Any:
    """Return the entry of an input of strings; None if a run reads only their codes."""
    if text is None:
        return None
    features = [feature_entry(x) for x in text.features]
    return {"shape": [*text.shape], "codes": text.reads_codes, "features": features}


def feature_entry(x: TextFeature) -> dict[str, Any]:
    s = x.splitter
    split = None if s is None else [s.pattern, [*s.separators], s.least, s.mark, s.pad]
    grams = [[[*gram], column] for gram, column in x.grams.items()]
    index = [[*x.index.shape], x.index.reshape(-1).tolist()]
    return {
        "index": index, "case": x.case, "splitter": split, "grams": grams, "skips": x.skips, "columns": x.columns,
        "pattern": x.pattern,
    }  # fmt: skip


def texts_of(entry: Any, inputs: Sequence[Any]) -> dict[Any, TextInput]:
    """Return the texts of inputs. FormatError unless they fit the integers that the inputs are."""
    if type(entry) is not list or len(entry) != len(inputs):
        raise malformed(WHAT)
    texts = {x: text_of(part) for x, part in zip(inputs, entry) if part is not None}
    if any(x.spec.shape != (text.size,) or x.spec.dtype != np.int64 for x, text in texts.items()):
        raise malformed(WHAT)
    return texts


def text_of(entry: Any) -> TextInput:
    if type(entry) is not dict:
        raise malformed(WHAT)
    shape = shape_of(get(entry, "shape", list))
    features = tuple(feature_of(x, prod(shape)) for x in get(entry, "features", list))
    return TextInput(shape, get(entry, "codes", bool), features)


def shape_of(entry: Any) -> tuple[int, ...]:
    if type(entry) is not list or not all(is_size(n) for n in entry):
        raise malformed(WHAT)
    return tuple(entry)


def feature_of(entry: Any, count: int) -> TextFeature:
    """Return one feature of an input of `count` strings."""
    if type(entry) is not dict:
        raise malformed(WHAT)
    shape, places = items(get(entry, "index", list), 2)
    shape, case, columns, skips = shape_of(shape), get(entry, "case", str), get(entry, "columns", int), skips_of(entry)
    is_index = type(places) is list and len(places) == prod(shape) and all(is_size(n) and n < count for n in places)
    if not is_index or case not in CASES or columns < 0:
        raise malformed(WHAT)
    index = np.array(places, np.int64).reshape(shape)
    grams = dict(gram_of(x, columns) for x in get(entry, "grams", list))
    return TextFeature(index, case, splitter_of(entry.get("splitter")), grams, skips, columns, pattern_of(entry))


def skips_of(entry: Any) -> int:
    skips = get(entry, "skips", int)
    if skips < 0:
        raise malformed(WHAT)
    return skips


def gram_of(entry: Any, columns: int) -> tuple[tuple[str, ...], int]:
    words, column = items(entry, 2)
    if type(words) is not list or not words or not all(type(x) is str for x in words):
        raise malformed(WHAT)
    if not is_size(column) or column >= columns:
        raise malformed(WHAT)
    return tuple(words), column


def pattern_of(entry: dict) -> str | None:
    """Return the pattern that whole strings match, or None. FormatError if it is not supported."""
    pattern = entry.get("pattern")
    if pattern is None:
        return None
    if type(pattern) is not str or entry.get("splitter") is not None:
        raise malformed(WHAT)
    full_match(pattern)
    return pattern


def splitter_of(entry: Any) -> TextSplitter | None:
    """Return how texts are split. FormatError for a pattern that is not supported."""
    if entry is None:
        return None
    pattern, separators, least, mark, pad = items(entry, 5)
    words = [pattern, pad, *separators] if type(separators) is list else [None]
    if not all(type(x) is str for x in words) or type(mark) is not bool or not is_size(least):
        raise malformed(WHAT)
    splitter = TextSplitter(pattern, tuple(separators), least, mark, pad)
    if bool(pattern) == bool(separators):
        raise malformed(WHAT)
    splitter.check()
    return splitter

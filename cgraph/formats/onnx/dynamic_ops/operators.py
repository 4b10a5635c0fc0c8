"""Decorators that declare how importers support axes of dynamic length.

An importer without one refuses such values: `Context` raises for a ragged operand.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any

import numpy as np

from cgraph.errors import FormatError
from cgraph.formats.onnx.context import Context, Importer, Value
from cgraph.formats.onnx.dynamic.bounds import Length, Size, most
from cgraph.formats.onnx.dynamic.value import (
    Ragged,
    broadcast_lengths,
    common_length,
    counts_of,
    cut_to_common,
    fill_padding,
    lengths_of,
    node_in,
    resize_axis,
    with_lengths,
)
from cgraph.ops.shape import axis_of

Axes = Callable[[Context], Sequence[int]]


def attach_lengths(value: Value, lengths: Mapping[int, Length]) -> Value:
    """Attach dynamic lengths to the results of an importer."""
    if isinstance(value, tuple | list):
        return tuple(attach_lengths(x, lengths) for x in value)
    return with_lengths(value, lengths)


def elementwise(importer: Importer) -> Importer:
    """Declare an elementwise importer: operands broadcast, and the result has their common lengths."""

    @wraps(importer)
    def ragged(c: Context) -> Value:
        if not c.is_ragged:
            return importer(c)
        indices = [i for i, x in enumerate(c.operands) if x is not None]
        nodes, lengths = broadcast_lengths(c.limits, [c.array(i) for i in indices], c.unequal)
        return attach_lengths(importer(c.reading(dict(zip(indices, nodes)))), lengths)

    return ragged


def keeping(axes: Axes, fill: Any = None) -> Callable[[Importer], Importer]:
    """Declare an importer whose result has the axes of operand 0 and which computes along some of them.

    Parameters
        axes: the axes of the computation; the others may be of dynamic length
        fill: function of the dtype that returns the padding after the value along those axes; None refuses a dynamic
            length there
    """

    def decorator(importer: Importer) -> Importer:
        @wraps(importer)
        def ragged(c: Context) -> Value:
            if not c.is_ragged:
                return importer(c)
            x = c.array(0)
            node = prepare_operand(c, x, axes(c), fill)
            return attach_lengths(importer(c.reading({0: node})), counts_of(x))

        return ragged

    return decorator


def prepare_operand(c: Context, x: Any, axes: Sequence[int], fill: Any) -> Any:
    """Return an array whose padding along the axes of a computation is neutral."""
    axes = [axis_of(a, x.ndim) for a in axes]
    dynamic_axes = sorted(set(axes) & set(counts_of(x)))
    if dynamic_axes and fill is None:
        raise FormatError(
            f"it computes along axis {dynamic_axes[0]} of {x.text}, whose length is known only at run time. Give "
            "shapes= that fix it"
        )
    return fill_padding(c.limits, x, fill(x.dtype), axes) if dynamic_axes else node_in(x)


def reducing(axes: Axes, keeps: Callable[[Context], bool], fill: Any) -> Callable[[Importer], Importer]:
    """Declare an importer that reduces operand 0 along some axes.

    Parameters
        axes, keeps: the axes, and whether they stay with one element
        fill: returns the neutral padding for a dtype
    """

    def decorator(importer: Importer) -> Importer:
        @wraps(importer)
        def ragged(c: Context) -> Value:
            if not isinstance(c.value(0), Ragged):
                return importer(c)
            x = c.array(0)
            gone = [axis_of(a, x.ndim) for a in axes(c)]
            node = prepare_operand(c, x, gone, fill)
            left = [a for a in range(x.ndim) if keeps(c) or a not in gone]
            lengths = {left.index(a): n for a, n in counts_of(x).items() if a not in gone}
            return attach_lengths(importer(c.reading({0: node})), lengths)

        return ragged

    return decorator


def samples(*places: int) -> Callable[[Importer], Importer]:
    """Declare operands whose axis 0 counts independent samples."""

    def decorator(importer: Importer) -> Importer:
        @wraps(importer)
        def ragged(c: Context) -> Value:
            if not c.is_ragged:
                return importer(c)
            values = {i: c.array(i) for i in places if c.value(i) is not None}
            for x in values.values():
                prepare_operand(c, x, range(1, x.ndim), None)
            parts = [(zero_padding_indices(c, x), 0, lengths_of(x)[0]) for x in values.values()]
            nodes, length = cut_to_common(c.limits, parts, c.unequal)
            return attach_lengths(importer(c.reading(dict(zip(values, nodes)))), {0: length})

        return ragged

    return decorator


def zero_padding_indices(c: Context, x: Any) -> Any:
    """Return an array with padding 0 if its elements are integers, since they may be indices."""
    return fill_padding(c.limits, x, 0) if x.dtype.kind in "iu" else node_in(x)


def contracting(letters: Callable[[Context], tuple[Sequence[str], str]]) -> Callable[[Importer], Importer]:
    """Declare a contraction: sums of products along axes that the result lacks; axes of one letter have one length.

    Parameters
        letters: returns the letters of the axes of each operand and of the result
    """

    def decorator(importer: Importer) -> Importer:
        @wraps(importer)
        def ragged(c: Context) -> Value:
            if not c.is_ragged:
                return importer(c)
            terms, result = letters(c)
            values = [c.array(i) for i in range(len(c.operands)) if c.value(i) is not None]
            if any(len(term) != x.ndim for term, x in zip(terms, values)):
                raise FormatError(f"operands have {[x.ndim for x in values]} axes, not those of {', '.join(terms)}")
            lengths = lengths_by_letter(c, values, terms, result)
            nodes = [fit_to_letters(c, x, term, lengths, result) for x, term in zip(values, terms)]
            y = importer(c.reading(dict(enumerate(nodes))))
            return with_lengths(y, {result.index(k): n for k, n in lengths.items() if k in result})

        return ragged

    return decorator


def lengths_by_letter(c: Context, values: Sequence[Any], terms: Sequence[str], result: str) -> dict[str, Length]:
    """Return the lengths of letters with a dynamic axis; one element is not repeated along a contracted axis."""
    beside: dict[str, list[Length]] = {}
    for x, term in zip(values, terms):
        for letter, n in zip(term, lengths_of(x)):
            if n != 1 or letter not in result:
                beside.setdefault(letter, []).append(n)
    opened = {k: v for k, v in beside.items() if any(isinstance(n, Size) for n in v)}
    return {k: common_length(c.limits, v, c.unequal) for k, v in opened.items()}


def fit_to_letters(c: Context, x: Any, term: str, lengths: Mapping[str, Length], result: str) -> Any:
    """Return an array cut to the lengths of its letters, with zero padding along contracted axes."""
    node = fill_padding(c.limits, x, 0, [a for a, k in enumerate(term) if k not in result])
    for axis, letter in enumerate(term):
        if letter in lengths and lengths_of(x)[axis] != 1:
            node = resize_axis(node, axis, int(most(lengths[letter])))
    return node


# -- neutral padding ---------------------------------------------------------------------------------------------------


def number(value: float) -> Callable[[np.dtype], Any]:
    return lambda dtype: value


def lowest(dtype: np.dtype) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min if dtype.kind in "iu" else False


def highest(dtype: np.dtype) -> Any:
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max if dtype.kind in "iu" else True

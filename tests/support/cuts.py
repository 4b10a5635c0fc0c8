"""Bands of rows of an op: each has the rows of the whole result, by its meaning and by its kernels."""

from collections.abc import Sequence

import numpy as np

from cgraph.ir.graph import Op, apply
from cgraph.ir.spec import Spec
from cgraph.kernels.target import Target
from cgraph.ops.leaf import Var
from tests.support.ops import kernel_result


def assert_bands(
    op: Op, xs: Sequence[np.ndarray], heights: Sequence[int], target: Target | None = None, meant: bool = True
) -> None:
    """Compute the result in bands of these heights, each from just the rows that it reads; bits are the same.

    Parameters
        meant: a band's meaning is that of its rows
    """
    cut = op.cut(*(Spec(x.shape, x.dtype) for x in xs))
    names = [Var(x.shape, x.dtype) for x in xs]
    whole = op.meaning(*xs)
    (computed,) = kernel_result(apply(op, *names), list(xs), "all", target=target)
    rows = whole.shape[2]
    for height in heights:
        edges = [0, *range(cut.above + height, rows - cut.below, height), rows]
        for first, stop in zip(edges, edges[1:]):
            parts = [part_of(x, table, first, stop) for x, table in zip(xs, cut.reads)]
            band = apply(cut.band(first, stop), *(Var(x.shape, x.dtype) for x in parts))
            if meant:
                np.testing.assert_array_equal(band.op.meaning(*parts), whole[:, :, first:stop])
            (got,) = kernel_result(band, parts, "all", target=target)
            np.testing.assert_array_equal(got, computed[:, :, first:stop])


def part_of(x: np.ndarray, table: tuple | None, first: int, stop: int) -> np.ndarray:
    """The rows of an operand that a band reads."""
    return x if table is None else np.ascontiguousarray(x[:, :, table[0][first] : table[1][stop - 1]])

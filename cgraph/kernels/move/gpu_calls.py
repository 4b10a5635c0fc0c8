"""Calls of copies in blocks of a GPU's threads."""

from math import prod

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.gpu_signature import SIDE, TRANSPOSED
from cgraph.kernels.pointwise.gpu_calls import walk_call
from cgraph.kernels.team.gpu_calls import extents, fits, table
from cgraph.kernels.views.layout import permute_axes
from cgraph.record import replace


def copy_calls(out: View, x: View) -> list[Call] | None:
    """Return ``out[...] = x``, views in the memory order of `out`, which ascends; None if they have too many axes."""
    if not fits(out):
        return None
    out, x = (replace(v, dtype=f"u{v.itemsize}") for v in (out, x))
    axis = turned_axis(out, x)
    if axis is not None:
        return [transposed_call(out, x, axis)]
    return [walk_call((("load", x.dtype, 0),), (0,), (out,), (x,))]


def turned_axis(out: View, x: View) -> int | None:
    """Return an axis, not the last, along which items of `x` are contiguous and tiles more than half full."""
    if out.strides[-1] != out.itemsize or out.shape[-1] <= SIDE // 2 or x.strides[-1] == x.itemsize:
        return None
    fitting = (a for a, n in enumerate(out.shape[:-1]) if x.strides[a] == x.itemsize and n > SIDE // 2)
    return next(fitting, None)


def transposed_call(out: View, x: View, axis: int) -> Call:
    """Return a call over tiles of the last axis and `axis`."""
    ni, nj, outer = out.shape[-1], out.shape[axis], [a for a in range(len(out.shape) - 1) if a != axis]
    others = permute_axes((out, x), outer) if outer else tuple(replace(v, shape=(1,), strides=(0,)) for v in (out, x))
    tiles_i, tiles_j = -(-ni // SIDE), -(-nj // SIDE)
    return TRANSPOSED.call(
        (out.itemsize, len(extents(others[0]))), prod(others[0].shape) * tiles_i * tiles_j,
        out=out.at, x=x.at, ni=ni, nj=nj, out_j=out.strides[axis], x_i=x.strides[-1],
        tiles_i=tiles_i, tiles_j=tiles_j, axes=table(others),
    )  # fmt: skip

"""Calls of softmax, log_softmax and logsumexp along one axis."""

from math import prod

from cgraph.kernels.calls.layout import TASK_ELEMENTS, access_of, merged, permuted
from cgraph.kernels.kernel import Call, Kernel, View
from cgraph.kernels.target import Target
from cgraph.record import replace

# columns whose sums a kernel keeps at once (as in the emitter)
COLUMNS = 256


def softmax_calls(target: Target, kind: str, out: View, x: View, axis: int) -> list[Call]:
    """``softmax``, ``log_softmax`` or ``logsumexp`` of `x` along `axis` (>= 0).

    `out` has the shape of `x` (and may be `x`); for logsumexp it lacks `axis` or has one element there.

    Raises
        ValueError: an unknown kind, or `out` of another shape
    """
    if kind not in ("softmax", "log_softmax", "logsumexp"):
        raise ValueError(f"no function along an axis is called {kind!r}")
    out = with_axis(out, x, axis) if kind == "logsumexp" else out
    if out.shape != x.shape or out.dtype != x.dtype:
        raise ValueError(f"{kind} of {x.dtype}{x.shape} does not fit {out.dtype}{out.shape}")
    if x.size == 0:
        return []
    kept = [a for a in range(len(x.shape)) if a != axis]
    kept.sort(key=lambda a: -abs(x.strides[a]))
    over_kept = merged(permuted((x, out), kept))
    lanes = target.lanes_of(x.dtype)
    if abs(x.strides[axis]) != x.itemsize and over_kept[0].shape[-1] >= lanes:
        return [columns_call(kind, over_kept, (x.strides[axis], out.strides[axis]), x.shape[axis])]
    return [rows_call(kind, over_kept, (x.strides[axis], out.strides[axis]), x.shape[axis])]


def with_axis(out: View, x: View, axis: int) -> View:
    """`out` seen with the shape of `x`: all elements along `axis` are one."""
    if len(out.shape) == len(x.shape):
        out = permuted((out,), [a for a in range(len(x.shape)) if a != axis])[0]
    shape = (*out.shape[:axis], x.shape[axis], *out.shape[axis:])
    return replace(out, shape=shape, strides=(*out.strides[:axis], 0, *out.strides[axis:]))


def rows_call(kind: str, over_kept: tuple[View, ...], steps: tuple[int, int], length: int) -> Call:
    """Vectors along the axis."""
    itemsize, count = over_kept[0].itemsize, over_kept[0].size
    access = "".join("v" if step == itemsize else "g" for step in steps)
    each = max(1, TASK_ELEMENTS // (2 * length))
    kernel = Kernel("softmax.rows", (kind, over_kept[0].dtype, access))
    streams = [x for view, step in zip(over_kept, steps) for x in (view.at, step)]
    table = walk_table(over_kept, len(over_kept[0].shape))
    args = (count, each, length, len(over_kept[0].shape), *streams, *table)
    return Call(kernel, args, -(-count // each))


def columns_call(kind: str, over_kept: tuple[View, ...], steps: tuple[int, int], length: int) -> Call:
    """Vectors across the axis; blocks of columns so narrow that a block stays in the cache between passes."""
    count, kept_rows = over_kept[0].shape[-1], prod(over_kept[0].shape[:-1])
    block = next(b for b in (COLUMNS, COLUMNS - 64, 128, 64) if count <= b or count % b == 0 or count % b >= 64)
    blocks = -(-count // block)
    access = "".join(access_of(v).replace("s", "g") for v in over_kept)
    kernel = Kernel("softmax.columns", (kind, over_kept[0].dtype, access))
    streams = [x for view in over_kept for x in (view.at, view.strides[-1])]
    rank = len(over_kept[0].shape) - 1
    args = (kept_rows, blocks, block, count, length, *steps, rank, *streams, *walk_table(over_kept, rank))
    return Call(kernel, args, kept_rows * blocks)


def walk_table(views: tuple[View, ...], axes: int) -> list[int]:
    """The emitter's walk over the first `axes` axes, fastest first: extent, then the stride of each view."""
    return [x for a in range(axes - 1, -1, -1) for x in (views[0].shape[a], *(v.strides[a] for v in views))]

"""Call builders of gather, scatter, triangles and nonzero: reads and writes at computed indices.

Negative indices count from the end. An index outside its axis sets the int64 at `error`, if there is one, to 1; memory
outside the arrays is never touched: a read takes the nearest element, a write is skipped.
"""

from math import prod

from cgraph.kernels.index.signature import GATHER, INSIDE, NONZERO, SCATTER, TRIANGLE, IndexedAxis
from cgraph.kernels.kernel import Call, Pointer, View, collapse, contiguous, scratch_pointer
from cgraph.kernels.move.calls import TASK_BYTES, constant, copy_calls, fill_calls, memory_order, run_call
from cgraph.kernels.move.order import in_order
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import broadcast, without, without_axis
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.record import Record, replace

gpu_index = LateModule("cgraph.kernels.index.gpu_calls")

GATHER_BLOCK = 4096  # columns with an index each
SCATTER_BLOCK = 32  # minimum columns of a task, since each task goes over all indices


def take_calls(
    target: Target, out: View, x: View, indices: View, axis: int, error: Pointer | None = None
) -> list[Call]:
    """Compute ``out = np.take(x, indices, axis)``: shape of `x` with `axis` replaced by the shape of `indices`.

    Raises
        ValueError: `axis` of `x` is empty while `out` is not
    """
    if out.size == 0:
        return inside_calls(indices, x.shape[axis], error)
    after = len(x.shape) - axis - 1
    rank = len(indices.shape)
    x_strides = (*x.strides[:axis], *(0,) * rank, *x.strides[axis + 1 :])
    i_strides = (*(0,) * axis, *indices.strides, *(0,) * after)
    source = View(x.at, out.shape, x_strides, x.dtype)
    return gather_calls(target, out, source, View(indices.at, out.shape, i_strides, indices.dtype), x, axis, error)


def take_along_axis_calls(
    target: Target, out: View, x: View, indices: View, axis: int, error: Pointer | None = None
) -> list[Call]:
    """Compute ``out = np.take_along_axis(x, indices, axis)``; axes of `x` and `indices` other than `axis` broadcast."""
    if out.size == 0:
        return inside_calls(indices, x.shape[axis], error)
    shape = (*out.shape[:axis], x.shape[axis], *out.shape[axis + 1 :])
    whole = broadcast(x, shape)
    strides = (*whole.strides[:axis], 0, *whole.strides[axis + 1 :])
    source = View(x.at, out.shape, strides, x.dtype)
    return gather_calls(target, out, source, broadcast(indices, out.shape), x, axis, error)


def gather_calls(
    target: Target, out: View, source: View, indices: View, x: View, axis: int, error: Pointer | None
) -> list[Call]:
    """Copy the element ``indices[p]`` steps behind ``source[p]`` along `axis` to ``out[p]``; equal shapes."""
    if x.shape[axis] == 0:
        raise ValueError(f"take from an axis of 0 elements: x {x.shape}, axis {axis}")
    out, source, indices = memory_order(out, source, indices)
    blocks = in_blocks(
        target, gpu_index.gather_calls, out, source, indices, IndexedAxis(x.shape[axis], x.strides[axis], error)
    )
    if blocks is not None:
        return blocks
    itemsize = out.itemsize
    how = "each"
    if indices.strides[-1] == 0:
        how = "run" if out.strides[-1] == source.strides[-1] == itemsize else "strided"
    block = GATHER_BLOCK if how == "each" else TASK_BYTES // itemsize
    call = run_call(
        GATHER, (itemsize, indices.dtype, how), {"out": out, "x": source, "indices": indices}, block, block,
        extent=x.shape[axis], stride=x.strides[axis], error=error,
    )  # fmt: skip
    return [call]


def inside_calls(indices: View, extent: int, error: Pointer | None) -> list[Call]:
    """Return a call that sets the word at `error` if an index is outside an axis of which nothing is read or
    written.
    """
    if error is None or not indices.size:
        return []
    (indices,) = memory_order(indices)
    arrays = {"indices": indices}
    return [run_call(INSIDE, (indices.dtype,), arrays, GATHER_BLOCK, GATHER_BLOCK, extent=extent, error=error)]


class ScatterRule(Record):
    """How updates are written.

    Fields
        axis: that the indices count along
        how: ``set``, ``add``, ``mul``, ``min`` or ``max``
        error: a word that is set if an index lies outside the axis, or None
    """

    axis: int
    how: str = "set"
    error: Pointer | None = None


def put_along_axis_calls(
    target: Target, out: View, indices: View, updates: View, rule: ScatterRule, workspace: View | None = None
) -> list[Call]:
    """Do ``np.put_along_axis(out, indices, updates, axis)``, or ``add``, ``mul``, ``min``, ``max`` into `out`.

    `updates` and `indices` have, or broadcast to, the shape of `out` except for `axis`. Updates of one element are done
    in the order of `axis`, so sums have the same bits for any number of threads.

    Parameters
        workspace: at least `scatter_nbytes` bytes; without one a GPU is slower
    """
    axis, how, error = rule.axis, rule.how, rule.error
    extents = [v.shape[axis] if len(v.shape) == len(out.shape) else 1 for v in (indices, updates)]
    shape = (*out.shape[:axis], max(extents) if 0 not in extents else 0, *out.shape[axis + 1 :])
    if prod(shape) == 0 or out.size == 0:
        return inside_calls(indices, out.shape[axis], error)
    indices, updates = broadcast(indices, shape), broadcast(updates, shape)
    n = shape[axis]
    off = tuple(without(v, axis) for v in (out, updates, indices))
    places, changes, positions = memory_order(*off)
    dtype = f"u{out.itemsize}" if how == "set" else out.dtype
    along, steps = (
        IndexedAxis(out.shape[axis], out.strides[axis], error),
        (updates.strides[axis], indices.strides[axis]),
    )
    blocks = in_blocks(
        target, gpu_index.scatter_calls, (places, changes, positions), n, steps, along, dtype, how, workspace
    )
    if blocks is not None:
        return blocks
    same = positions.strides[-1] == 0 and places.strides[-1] == changes.strides[-1] == out.itemsize
    call = run_call(
        SCATTER, (dtype, indices.dtype, how, same), {"out": places, "updates": changes, "indices": positions},
        SCATTER_BLOCK, max(1, TASK_BYTES // out.itemsize // n),
        n=n, updates_n=updates.strides[axis], indices_n=indices.strides[axis],
        extent=out.shape[axis], stride=out.strides[axis], error=error,
    )  # fmt: skip
    return [call]


def scatter_nbytes(target: Target, shape: tuple[int, ...], axis: int, positions: int, n: int) -> int:
    """Return the bytes of workspace for writing into `shape`.

    Parameters
        positions: number of indices; `n` of them along the axis for each element of the other axes
    """
    return gpu_index.scatter_nbytes(prod(without_axis(shape, axis)), positions, n) if target.has_blocks else 0


def scatter_calls(
    target: Target, out: View, indices: View, updates: View, rule: ScatterRule, workspace: View | None = None
) -> list[Call]:
    """Compute ``out[:, …, indices, …] how= updates``, the reverse of `take_calls`: its gradient is ``add``.

    `updates` has the shape of `out` with `axis` replaced by the shape of `indices`; in the order of `indices`.

    Raises
        ValueError: axes of `indices` cannot be merged into one, in it or in `updates`
    """
    axis = rule.axis
    if out.size == 0:
        return inside_calls(indices, out.shape[axis], rule.error)
    rank = len(indices.shape)
    inner = updates.strides[axis : axis + rank]
    shape, (i_steps, u_steps) = collapse(indices.shape, indices.strides, inner)
    if len(shape) > 1:
        raise ValueError(f"indices {indices.shape} with strides {indices.strides}, {inner} are not one axis")
    n, i_step, u_step = (shape or (1,))[0], (i_steps or (0,))[0], (u_steps or (0,))[0]
    whole = (*out.shape[:axis], n, *out.shape[axis + 1 :])
    u_strides = (*updates.strides[:axis], u_step, *updates.strides[axis + rank :])
    i_strides = tuple(i_step if a == axis else 0 for a in range(len(whole)))
    positions = View(indices.at, whole, i_strides, indices.dtype)
    changes = View(updates.at, whole, u_strides, updates.dtype)
    return put_along_axis_calls(target, out, positions, changes, rule, workspace)


def one_hot_calls(target: Target, out: View, indices: View, axis: int, off: float = 0, on: float = 1) -> list[Call]:
    """Set `out` to `on` at the index along `axis`, to `off` elsewhere; an index outside gives `off` everywhere.

    `indices` has the shape of `out` without `axis`.
    """
    shape = (*out.shape[:axis], 1, *out.shape[axis + 1 :])
    strides = (*indices.strides[:axis], 0, *indices.strides[axis:])
    positions = View(indices.at, shape, strides, indices.dtype)
    return fill_calls(target, out, off) + put_along_axis_calls(
        target, out, positions, broadcast(constant(on, out.dtype), shape), ScatterRule(axis)
    )


def nonzero_calls(
    target: Target, out: View, count: View, x: View, workspace: View | None = None, fill: int = 0
) -> list[Call]:
    """Return calls that write the indices of the nonzero elements of `x`, in C order, and their number.

    Parameters
        out: int64 ``[rank, most]``, contiguous; after `count` columns, `fill`
        count: one int64; may be more than `most`
        workspace: as large as `x`, when `x` is not contiguous
    """
    calls = fill_calls(target, out, fill)
    if not x.is_contiguous:
        dense = contiguous(scratch_pointer(workspace, x.size * x.itemsize), x.shape, x.dtype)
        calls += copy_calls(target, dense, x)
        x = dense
    call = NONZERO.call(
        (x.dtype,), 1,
        out=out.at, count=count.at, x=x.at, size=x.size, most=out.shape[1], rank=len(x.shape), extents=x.shape,
    )  # fmt: skip
    return [*calls, in_blocks(target, gpu_index.nonzero_calls, call) or call]


def triangle_calls(target: Target, out: View, x: View, diagonal: int, upper: bool) -> list[Call]:
    """Compute ``np.triu(x, diagonal)``, or ``np.tril``; the last two axes are the matrices."""
    if out.size == 0:
        return []
    first, x = in_order(target, out, broadcast(x, out.shape))
    views = {"out": as_rows(out), "x": as_rows(x)}
    blocks = in_blocks(target, gpu_index.triangle_calls, *views.values(), diagonal, upper)
    if blocks is not None:
        return blocks
    each = TASK_BYTES // out.itemsize
    params = out.itemsize, upper
    return [*first, run_call(TRIANGLE, params, views, each, each, height=out.shape[-2], diagonal=diagonal)]


def as_rows(x: View) -> View:
    """Return views without outer axes of one element; the last two axes stay."""
    keep = [a for a, n in enumerate(x.shape) if n != 1 or a >= len(x.shape) - 2]
    return replace(x, shape=tuple(x.shape[a] for a in keep), strides=tuple(x.strides[a] for a in keep))

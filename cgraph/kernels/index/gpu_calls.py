"""Calls that read and write at computed indices, in blocks of threads."""

from cgraph.kernels.index.gpu_signature import GATHER, NONZERO, PLACES, SCATTER, SEGMENTS, TRIANGLE
from cgraph.kernels.index.signature import IndexedAxis
from cgraph.kernels.kernel import Call, Pointer, View, contiguous, split_scratch
from cgraph.kernels.sort.gpu_calls import sort_calls, sort_nbytes
from cgraph.kernels.team.gpu_calls import MOST_ELEMENTS, MOST_RANK, element_call, extents, fits
from cgraph.record import replace
from cgraph.system.alignment import aligned

FEW_UPDATES = 64  # maximum updates that a thread does one after the other
MANY_PLACES = 1 << 15  # elements of the other axes that keep a GPU busy, one thread each


def gather_calls(out: View, source: View, indices: View, axis: IndexedAxis) -> list[Call] | None:
    """Return calls of ``out[p] = source[p]`` moved along the axis; None if walks are long."""
    if not fits(out):
        return None
    views = {"out": out, "x": source, "indices": indices}
    return [element_call(GATHER, (out.itemsize, indices.dtype), views, **vars_of(axis))]


def scatter_calls(
    off: tuple[View, View, View], n: int, steps: tuple[int, int], axis: IndexedAxis, dtype: str, how: str,
    workspace: View | None,
) -> list[Call] | None:  # fmt: skip
    """Return calls of ``out[index] how= updates``; None if walks are long.

    Operands
        off: result, updates and indices without the axis, of one shape
        n, steps: updates of each element, and bytes from one to the next in updates and indices
        workspace: of `scatter_nbytes`; without one, threads go through all updates
    """
    if not fits(off[0]):
        return None
    if workspace is None or len(extents(off[0])) == MOST_RANK or off[0].size * n >= MOST_ELEMENTS:
        named = dict(zip(("out", "updates", "indices"), off))
        args = {"n": n, "updates_n": steps[0], "indices_n": steps[1], **vars_of(axis)}
        return [element_call(SCATTER, (dtype, off[2].dtype, how), named, **args)]
    return sorted_calls(off, n, steps, axis, dtype, how, workspace)


def sorted_calls(
    off: tuple[View, View, View],
    n: int,
    steps: tuple[int, int],
    axis: IndexedAxis,
    dtype: str,
    how: str,
    workspace: View,
) -> list[Call] | None:
    """Return calls that sort indices counted from the start, and apply the updates of each element."""
    out, updates, indices = off
    lines = tuple(1 if step == 0 else m for m, step in zip(indices.shape, indices.strides))
    positions_at, order, rest = split_scratch(workspace, *scatter_rooms(n, View(out.at, lines, lines, "u1").size))
    assert positions_at is not None and order is not None
    at, numbers = (contiguous(x.at, (*lines, n), "i4") for x in (positions_at, order))
    positions = View(indices.at, (*lines, n), (*indices.strides, steps[1]), indices.dtype)
    placed = element_call(
        PLACES, (indices.dtype,), {"out": at, "indices": positions}, extent=axis.extent, error=axis.error
    )
    first = tuple(replace(x, shape=lines, strides=x.strides[:-1]) for x in (at, numbers, at))
    sorts = sort_calls(first, [4, 4, 4], n, n, ("i4", "i4", False, True), rest)
    if sorts is None:
        return None
    steps_of = [0 if m == 1 else s for m, s in zip(lines, at.strides)]
    walked = {
        "out": with_axis(out, out.strides, n, 0), "updates": with_axis(updates, updates.strides, n, 0),
        "lines": with_axis(replace(at, shape=out.shape), steps_of, n, 4),
    }  # fmt: skip
    joined = element_call(
        SEGMENTS, (dtype, how), walked, order=numbers.at, columns=out.shape[-1], n=n, updates_n=steps[0],
        extent=axis.extent, stride=axis.stride,
    )  # fmt: skip
    return [placed, *sorts, joined]


def with_axis(x: View, strides: "list[int] | tuple[int, ...]", n: int, step: int) -> View:
    """Return the view with an axis of `n` before the last one."""
    return replace(x, shape=(*x.shape[:-1], n, x.shape[-1]), strides=(*strides[:-1], step, strides[-1]))


def scatter_nbytes(columns: int, positions: int, n: int) -> int:
    """Return the bytes of workspace for `n` updates of `columns` columns; 0 if each thread reads all updates."""
    if n <= FEW_UPDATES or columns >= MANY_PLACES or not n:
        return 0
    return sum(map(aligned, scatter_rooms(n, positions // n)))


def scatter_rooms(n: int, lines: int) -> tuple[int, int, int]:
    """Return the bytes of indices, of the numbers of their updates, and of the workspace for sorting them."""
    return 4 * n * lines, 4 * n * lines, sort_nbytes(lines, n, "i4", "i4")


def triangle_calls(out: View, x: View, diagonal: int, upper: bool) -> list[Call] | None:
    """Return calls as `cgraph.kernels.index.calls.triangle_calls` does, for views of two axes or more; None if walks
    are long.
    """
    if not fits(out):
        return None
    height, width = out.shape[-2:]
    views = {"out": out, "x": x}
    return [element_call(TRIANGLE, (out.itemsize, upper), views, height=height, width=width, diagonal=diagonal)]


def nonzero_calls(call: Call) -> Call:
    """Return the one task of `cgraph.kernels.index.calls.nonzero_calls` as a block."""
    return replace(call, kernel=replace(call.kernel, family=NONZERO.family))


def vars_of(axis: IndexedAxis) -> dict[str, int | Pointer | None]:
    return {"extent": axis.extent, "stride": axis.stride, "error": axis.error}

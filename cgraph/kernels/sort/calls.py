"""Calls of sorting along one axis, the largest items, binary search, distinct values.

Sorts are stable; NaN comes last in either direction. Threads sort different rows; one thread sorts one row.
"""

from math import prod

from cgraph.kernels.kernel import Call, Param, View, contiguous, scratch_pointer, split_scratch
from cgraph.kernels.move.calls import copy_calls, fill_calls, memory_order, run_call
from cgraph.kernels.sort.signature import DISTINCT, FEW, FEW_ROWS, LEADING_ROWS, LEAST_ROOM, ROWS, SEARCH
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import without
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule
from cgraph.record import replace
from cgraph.system.alignment import aligned

gpu_sort = LateModule("cgraph.kernels.sort.gpu_calls")

MOST_GROUPS = 64
GROUP_ITEMS = 4096
SEARCH_BLOCK = 1024
LEADING_SHARE = 4  # the first items are selected, not sorted, if they are at most one item in this many


def sort_calls(
    target: Target,
    values: View | None,
    places: View | None,
    x: View,
    axis: int,
    workspace: View | None,
    descending: bool = False,
) -> list[Call]:
    """Compute ``np.sort(x, axis)`` and ``np.argsort(x, axis, kind="stable")``, either or both.

    Parameters
        values, places: shape of `x`, but `axis` may be shorter: then only the first items, the top k
        places: int32 or int64
        workspace: at least `sort_nbytes` bytes; needs no alignment beyond 8
    Raises
        ValueError: the workspace is too small
    """
    out = values or places
    if out is None or out.size == 0:
        return []
    n, most = x.shape[axis], out.shape[axis]
    index = places.dtype if places else ""
    few = selects(index, most, n)
    lines = memory_order(*(without(v, axis) for v in (out, values or x, places or x, x)))[1:]
    steps = [v.strides[axis] for v in (values or x, places or x, x)]
    params = key_dtype(x), index, descending, values is not None
    blocks = in_blocks(target, gpu_sort.sort_calls, lines, steps, n, most, params, workspace)
    if blocks is not None:
        return blocks
    views = [replace(v, shape=(*v.shape, n), strides=(*v.strides, step)) for v, step in zip(lines, steps)]
    family_params: tuple[Param, ...] = (params[0], *params[2:]) if few else params
    each, arrays = rows_of_group(prod(views[0].shape[:-1]), n), dict(zip(("values", "places", "x"), views))
    if inserts(index, most):
        return [run_call(FEW_ROWS, family_params, arrays, n, each * n, most=most)]
    nbytes = sort_nbytes(target, x.shape, axis, x.dtype, index, most)
    call = run_call(
        LEADING_ROWS if few else ROWS, family_params, arrays, n, each * n,
        most=most, scratch=scratch_pointer(workspace, nbytes),
        group_bytes=group_bytes(max(most, LEAST_ROOM) if few else n, x.itemsize, index),
    )  # fmt: skip
    return [call]


def sort_nbytes(
    target: Target, shape: tuple[int, ...], axis: int, dtype: str, index: str, most: int | None = None
) -> int:
    """Return the bytes of workspace for sorting.

    Parameters
        index: the dtype of the indices, empty if none are returned
        most: number of items to return, the first ones; all by default
    """
    n = shape[axis]
    rows = prod(shape) // n if n else 0
    count = n if most is None else most
    some = max(count, LEAST_ROOM) if selects(index, count, n) else n
    groups = 0 if inserts(index, count) or not rows else -(-rows // rows_of_group(rows, n))
    nbytes = groups * group_bytes(some, int(dtype[1:]), index)
    return max(nbytes, gpu_sort.sort_nbytes(rows, n, dtype, index)) if target.has_blocks else nbytes


def inserts(index: str, most: int) -> bool:
    """Return True if the first `most` items are so few that each is inserted among them, without a workspace."""
    return index == "i8" and most <= FEW


def selects(index: str, most: int, n: int) -> bool:
    """Return True if the first `most` of n items are few enough to be selected before they are sorted."""
    return inserts(index, most) or index == "i8" and most * LEADING_SHARE <= n


def rows_of_group(rows: int, n: int) -> int:
    return max(1, -(-rows // MOST_GROUPS), min(rows, GROUP_ITEMS // max(n, 1)))


def group_bytes(n: int, itemsize: int, index: str) -> int:
    """Return the bytes of two buffers of keys and two of indices, aligned."""
    return aligned(2 * n * (itemsize + (int(index[1:]) if index else 0)))


def key_dtype(x: View) -> str:
    return "u1" if x.dtype == "b1" else x.dtype


def search_calls(target: Target, out: View, row: View, v: View, right: bool = False) -> list[Call]:
    """Compute ``np.searchsorted(row, v, side)``: `row` ascending with NaN last, `out` int64 of the shape of `v`."""
    if out.size == 0:
        return []
    out, v = memory_order(out, v)
    blocks = in_blocks(target, gpu_sort.search_calls, out, v, row, key_dtype(row), right)
    if blocks is not None:
        return blocks
    views = {"out": out, "v": v}
    call = run_call(
        SEARCH, (key_dtype(row), right), views, SEARCH_BLOCK, SEARCH_BLOCK,
        row=row.at, row_step=row.strides[0], n=row.shape[0],
    )  # fmt: skip
    return [call]


def unique_calls(
    target: Target, out: View, count: View, x: View, workspace: View | None, fill: float = 0
) -> list[Call]:
    """Compute ``np.unique(x)``, ascending, at most as many as `out` holds, then `fill`; NaNs are equal to one another.

    Parameters
        out: contiguous, dtype of `x`
        count: one int64: how many there are, which may be more than fit
        workspace: at least `unique_nbytes` bytes
    """
    if x.size == 0:
        return fill_calls(target, out, fill) + fill_calls(target, count, 0)
    first, rest = split_scratch(workspace, x.size * x.itemsize, sort_nbytes(target, (x.size,), 0, x.dtype, ""))
    assert first is not None
    dense = contiguous(first.at, (x.size,), x.dtype)
    calls = fill_calls(target, out, fill) + copy_calls(target, contiguous(first.at, x.shape, x.dtype), x)
    calls += sort_calls(target, dense, None, dense, 0, rest)
    call = DISTINCT.call((key_dtype(x),), 1, out=out.at, count=count.at, x=dense.at, n=x.size, most=out.size)
    return [*calls, in_blocks(target, gpu_sort.distinct_call, call) or call]


def unique_nbytes(target: Target, size: int, dtype: str) -> int:
    """Return the bytes of workspace for `unique_calls` of this many elements."""
    return aligned(size * int(dtype[1:])) + sort_nbytes(target, (size,), 0, dtype, "")

"""Calls of sorting in blocks of a GPU's threads."""

from math import prod

from cgraph.kernels.kernel import Call, View, contiguous, split_scratch
from cgraph.kernels.sort.gpu_signature import DISTINCT, MERGE, ROWS, SEARCH, SIZES
from cgraph.kernels.team.gpu_calls import element_call, extents, fits, table
from cgraph.record import replace
from cgraph.system.alignment import aligned

PIECE = SIZES[-1]  # items that one block sorts
PLACES = "i4"  # of places on the way
Lines = tuple[View, ...]


def sort_calls(
    lines: Lines, steps: list[int], n: int, most: int, params: tuple[str, str, bool, bool], workspace: View | None
) -> list[Call] | None:
    """Return calls that sort rows of `n` items and write the first `most`; None if there are too many axes.

    Operands
        lines: the first items of the rows of values, places and operand; steps: bytes along the rows
        workspace: at least `sort_nbytes` bytes, for rows that one block does not sort
    Parameters
        params: the dtypes of keys and of indices (or empty), descending, and whether values are written
    """
    if not fits(lines[0], replace(lines[0], shape=(lines[0].size, n), strides=(0, 0))):
        return None
    if n <= PIECE:
        return [pieces_call(lines, steps, n, most, params)]
    key, index, descending, _ = params
    x, middle = lines[2], (key, PLACES if index else "", descending, True)
    buffers = split_scratch(workspace, *sort_rooms(x.size, n, key, index))
    sides = [side(x, n, keys, places) for keys, places in (buffers[:2], buffers[2:])]
    item = int(key[1:])
    calls, width = [pieces_call((*sides[0], x), [item, 4, steps[2]], n, n, middle)], PIECE
    while width < n:
        is_last = 2 * width >= n
        to, its, merge_params, count = (lines[:2], steps, params, most) if is_last else (sides[1], [item, 4], middle, n)
        calls.append(merge_call(to, its, sides[0], (n, width, count), merge_params))
        sides, width = sides[::-1], 2 * width
    return calls


def side(x: View, n: int, keys: View | None, places: View | None) -> Lines:
    """Return the first items of rows in a buffer: keys and indices."""
    assert keys is not None
    both = keys, places or keys
    dense = (contiguous(v.at, (*x.shape, n), d) for v, d in zip(both, (x.dtype, PLACES)))
    return tuple(replace(v, shape=x.shape, strides=v.strides[:-1]) for v in dense)


def pieces_call(lines: Lines, steps: list[int], n: int, most: int, params: tuple[str, str, bool, bool]) -> Call:
    """Return a call that sorts rows, or pieces of them, one block each."""
    values, places, x = lines
    size, pieces = next((s for s in SIZES if s >= n), PIECE), -(-n // PIECE)
    return ROWS.call(
        (*params, size, len(extents(x))), prod(x.shape) * pieces,
        n=n, most=most, pieces=pieces, values=values.at, values_n=steps[0], places=places.at, places_n=steps[1],
        x=x.at, x_n=steps[2], axes=table(lines),
    )  # fmt: skip


def merge_call(
    to: Lines, steps: list[int], source: Lines, sizes: tuple[int, int, int], params: tuple[str, str, bool, bool]
) -> Call:
    """Return a call that merges pairs of pieces; `sizes`: items of a row, of a piece, and of the result."""
    n, width, most = sizes
    values, places = (
        replace(v, shape=(*v.shape, n), strides=(*v.strides, 0)) for v in to
    )  # a thread an item: its place along the row is found, not its own
    return element_call(
        MERGE, params, {"values": values, "places": places}, keys=source[0].at, numbers=source[1].at,
        n=n, width=width, most=most, values_n=steps[0], places_n=steps[1],
    )  # fmt: skip


def sort_nbytes(rows: int, n: int, dtype: str, index: str) -> int:
    """Return the bytes of two buffers of keys and, optionally, two of indices, for rows longer than a block's."""
    return sum(map(aligned, sort_rooms(rows, n, dtype, index))) if n > PIECE else 0


def sort_rooms(rows: int, n: int, dtype: str, index: str) -> tuple[int, int, int, int]:
    keys, places = rows * n * int(dtype[1:]), rows * n * 4 if index else 0
    return keys, places, keys, places


def search_calls(out: View, v: View, row: View, key: str, right: bool) -> list[Call] | None:
    """Return a call with a thread for each value; None if the views have too many axes."""
    if not fits(out):
        return None
    place = {"row": row.at, "row_step": row.strides[0], "n": row.shape[0]}
    return [element_call(SEARCH, (key, right), {"out": out, "v": v}, **place)]


def distinct_call(call: Call) -> Call:
    """Replace the one task of `cgraph.kernels.sort.calls.unique_calls` by one block."""
    return replace(call, kernel=replace(call.kernel, family=DISTINCT.family))

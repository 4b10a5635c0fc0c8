"""Calls of sorting in blocks of threads."""

from math import prod

from cgraph.kernels.calls.gpu.team import extents, fits, table
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.signatures.gpu.sort import ROWS, SIZES


def sort_calls(
    lines: tuple[View, ...], steps: list[int], n: int, most: int, params: tuple[str, str, bool, bool]
) -> list[Call] | None:
    """Rows of `n` items, of which the first `most` are wanted; None for rows that shared memory does not hold.

    Operands
        lines: the first items of the rows of values, places and operand; steps: bytes along the rows
    Parameters
        params: the dtype of keys, that of places or none, descending, and whether values are wanted
    """
    if n > SIZES[-1] or not fits(lines[0]):
        return None
    values, places, x = lines
    size = next(s for s in SIZES if s >= n)
    call = ROWS.call(
        (*params, size, len(extents(x))), prod(x.shape),
        n=n, most=most, values=values.at, values_n=steps[0], places=places.at, places_n=steps[1],
        x=x.at, x_n=steps[2], axes=table(lines),
    )  # fmt: skip
    return [call]

"""Calls that write and read rows at a position that is data, in blocks of a GPU's threads."""

from cgraph.kernels.kernel import Call, Pointer, View
from cgraph.kernels.rows.gpu_signature import SET, TAKE
from cgraph.kernels.team.gpu_calls import MOST_ELEMENTS
from cgraph.kernels.team.gpu_signature import ELEMENTS


def rows_calls(writes: bool, x: View, y: View, items: int, more: dict[str, int | Pointer]) -> list[Call] | None:
    """As `cgraph.kernels.rows.calls.rows_calls`; None if there are too many items for threads."""
    if y.size >= MOST_ELEMENTS:
        return None
    family, tasks = SET if writes else TAKE, -(-y.size // ELEMENTS)
    return [family.call((x.itemsize,), tasks, count=y.size, x=x.at, y=y.at, items=items, **more)]

"""Calls of cumulative sums, products, minima and maxima along one axis."""

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.calls import TASK_BYTES, memory_order, run_call
from cgraph.kernels.move.order import in_order
from cgraph.kernels.scan.signature import ACROSS, ALONG
from cgraph.kernels.target import Target
from cgraph.kernels.views.layout import without
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule

gpu_scan = LateModule("cgraph.kernels.scan.gpu_calls")

COLUMN_BLOCK = 64  # columns of a task, at least: the axis itself is never cut


def scan_calls(target: Target, out: View, x: View, axis: int, how: str = "add") -> list[Call]:
    """Compute ``np.cumsum(x, axis)`` for ``add``, and the same of ``mul``, ``min``, ``max``, in the dtype of `x`."""
    if out.size == 0:
        return []
    n = out.shape[axis]
    places, items = memory_order(without(out, axis), without(x, axis))
    blocks = in_blocks(target, gpu_scan.scan_calls, places, items, (out.strides[axis], x.strides[axis]), n, how)
    if blocks is not None:
        return blocks
    first, ordered = in_order(target, out, x) if axis != len(out.shape) - 1 else ([], x)
    if first:
        return first + scan_calls(target, out, ordered, axis, how)
    beside = places.strides[-1] == items.strides[-1] == out.itemsize
    call = run_call(
        ACROSS if beside else ALONG, (out.dtype, how), {"out": places, "x": items},
        COLUMN_BLOCK, max(1, TASK_BYTES // out.itemsize // n),
        n=n, out_n=out.strides[axis], x_n=x.strides[axis],
    )  # fmt: skip
    return [call]

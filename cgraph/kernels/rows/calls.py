"""Calls that write and read rows at a position that is data."""

from math import prod

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.rows.signature import SET
from cgraph.kernels.signature import Signature
from cgraph.kernels.target import Target
from cgraph.kernels.views.kernel_calls import chunk_of
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule

gpu_rows = LateModule("cgraph.kernels.rows.gpu_calls")


def rows_calls(target: Target, family: Signature, x: View, y: View, start: View, axis: int) -> list[Call]:
    """Write rows of `x` along `axis`, from `start` on, from `y` (`SET`), or read them into `y` (`TAKE`).

    Operands
        x, y: contiguous, of one shape except for `axis`
        start: int64, one or one for each element of the first axis
    """
    each = len(start.shape) > 0
    groups = x.shape[0] if each else 1
    if not y.size:
        return []
    blocks = prod(x.shape[:axis]) // groups
    tasks, items = groups * blocks * y.shape[axis], prod(x.shape[axis + 1 :])
    args = {
        "start": start.at, "start_step": start.strides[0] // start.itemsize if each else 0,
        "blocks": blocks, "n": x.shape[axis], "m": y.shape[axis],
    }  # fmt: skip
    gpu_calls = in_blocks(target, gpu_rows.rows_calls, family is SET, x, y, items, args)
    if gpu_calls is not None:
        return gpu_calls
    nbytes = items * x.itemsize
    call = family.call((), tasks, chunk_of(tasks, nbytes * 0.1), x=x.at, y=y.at, nbytes=nbytes, **args)
    return [call]

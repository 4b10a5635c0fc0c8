"""Calls of users' functions that Numba compiles."""

from cgraph.kernels.kernel import Call, View
from cgraph.kernels.target import Target
from cgraph.kernels.user.signature import EACH, TASKS
from cgraph.kernels.user_function import UserFunction
from cgraph.kernels.views.layout import broadcast, cut, pointwise_walk, streams
from cgraph.kernels.views.thread_blocks import in_blocks
from cgraph.late import LateModule

gpu_user = LateModule("cgraph.kernels.user.gpu_calls")


def each_calls(target: Target, function: UserFunction, out: View, *xs: View) -> list[Call]:
    """Compute ``out[...] = function(*xs[...])``, number by number; operands are broadcast, any strides.

    `out` may be the very view of an operand, but no other view of its bytes.
    """
    if not out.size:
        return []
    walk = pointwise_walk((*(broadcast(x, out.shape) for x in xs), out), len(xs), 1)
    blocks = in_blocks(target, gpu_user.each_calls, function, walk)
    if blocks is not None:
        return blocks
    ins, written = walk.access[: len(xs)], walk.access[len(xs) :].replace("s", "g")
    parts = cut(walk.rows, walk.columns, target.task_elements)
    call = EACH.call(
        (function, tuple(v.dtype for v in (*xs, out)), ins, written), parts.tasks,
        rows=walk.rows, columns=walk.columns, block=parts.block, blocks=parts.blocks, rows_each=parts.rows_each,
        rank=walk.rank, streams=streams(walk.views), axes=walk.table(),
    )  # fmt: skip
    return [call]


def tasks_calls(function: UserFunction, tasks: int, out: View, *xs: View) -> list[Call]:
    """Call ``function(task, out, *xs)`` for each task. All views are contiguous; `out` shares no bytes with `xs`."""
    views = (out, *xs)
    params = (function, tuple(v.dtype for v in views), tuple(len(v.shape) for v in views))
    extents = [n for v in views for n in v.shape]
    return [TASKS.call(params, tasks, arrays=[v.at for v in views], extents=extents)] if tasks else []

"""Calls of users' functions in blocks of threads."""

from cgraph.kernels.kernel import Call
from cgraph.kernels.team.gpu_calls import extents, fits, table
from cgraph.kernels.team.gpu_signature import ELEMENTS
from cgraph.kernels.user.gpu_signature import EACH
from cgraph.kernels.user_function import UserFunction
from cgraph.kernels.views.layout import Walk


def each_calls(function: UserFunction, walk: Walk) -> list[Call] | None:
    """Operands and, last, the result, as `cgraph.kernels.user.calls` walks them; None where walks are long."""
    views, out = walk.views, walk.views[-1]
    if not fits(out):
        return None
    params = function, tuple(v.dtype for v in views), len(extents(out))
    tasks = -(-out.size // ELEMENTS)
    return [EACH.call(params, tasks, count=out.size, arrays=[v.at for v in views], axes=table(views))]

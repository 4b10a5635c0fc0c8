"""Calls of users' functions in blocks of threads."""

from cgraph.kernels.calls.gpu.team import extents, fits, table
from cgraph.kernels.calls.layout import Walk
from cgraph.kernels.kernel import Call
from cgraph.kernels.signatures.gpu.team import ELEMENTS
from cgraph.kernels.signatures.gpu.user import EACH
from cgraph.kernels.user_function import UserFunction


def each_calls(function: UserFunction, walk: Walk) -> list[Call] | None:
    """Operands and, last, the result, as `cgraph.kernels.calls.user` walks them; None where walks are long."""
    views, out = walk.views, walk.views[-1]
    if not fits(out):
        return None
    params = function, tuple(v.dtype for v in views), len(extents(out))
    tasks = -(-out.size // ELEMENTS)
    return [EACH.call(params, tasks, count=out.size, arrays=[v.at for v in views], axes=table(views))]

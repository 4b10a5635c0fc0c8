"""Users' functions of numbers in blocks of threads: neighbouring threads at neighbouring elements."""

from cgraph.kernels.llvm.gpu_build import GpuBuilder, block
from cgraph.kernels.team.gpu_emit import offsets
from cgraph.kernels.team.gpu_signature import ELEMENTS
from cgraph.kernels.user.emit import NumbaFunction, number_at, number_type
from cgraph.kernels.user_function import UserFunction


@block(ELEMENTS)
def each(k: GpuBuilder, function: UserFunction, dtypes: tuple[str, ...], rank: int) -> None:
    """An element is read before it is written, by the same thread."""
    a = k.args()
    compiled = NumbaFunction(k, function, [number_type(d) for d in dtypes[:-1]], own=True)
    with k.if_(k.task() < a.count):
        there = offsets(k, a.axes, rank, len(dtypes), k.task())
        *xs, out = (k.pointer((a.arrays + i).load() + o, d) for i, (o, d) in enumerate(zip(there, dtypes)))
        compiled(*map(number_at, xs))
        out.store(k.cast(compiled.result(), out.dtype))

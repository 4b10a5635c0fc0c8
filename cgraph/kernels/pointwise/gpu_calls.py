"""Calls of pointwise kernels in blocks of a GPU's threads."""

from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.pointwise.gpu_signature import FLAT, THREADS, WALK
from cgraph.kernels.team.gpu_calls import extents, fits, table
from cgraph.kernels.views.layout import broadcast, pointwise_walk

ACCESS = 16  # bytes that a thread reads or writes at once, at most


def pointwise_calls(
    program: Program, results: tuple[int, ...], outs: tuple[View, ...], xs: tuple[View, ...]
) -> list[Call] | None:
    """Compute ``outs[i][...] = instruction results[i] of program(xs[...])``; None if the views have too many axes."""
    walk = pointwise_walk((*(broadcast(x, outs[0].shape) for x in xs), *outs), len(xs), 1)
    access = walk.access[:-1] + walk.access[-1].replace("s", "v")  # of one element
    if results == (len(program) - 1,) and walk.rows == 1 and set(access) <= {"v", "s"}:
        wide = ACCESS // max(int(instruction[1][1:]) for instruction in program)
        tasks = -(-outs[0].size // (THREADS * wide))
        return [FLAT.call((program, access, wide), tasks, count=outs[0].size, arrays=[v.at for v in walk.views])]
    if not fits(walk.views[0]):
        return None
    return [walk_call(program, results, walk.views[len(xs) :], walk.views[: len(xs)])]


def walk_call(program: Program, results: tuple[int, ...], outs: tuple[View, ...], xs: tuple[View, ...]) -> Call:
    """Return a call over views of one shape and any strides, one thread per element: neighbours along the last axis."""
    views, count = (*xs, *outs), outs[0].size
    params = (program, results, tuple(v.dtype for v in views), len(extents(outs[0])))
    return WALK.call(params, -(-count // THREADS), count=count, arrays=[v.at for v in views], axes=table(views))

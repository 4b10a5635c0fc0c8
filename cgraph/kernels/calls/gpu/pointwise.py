"""Calls of pointwise kernels in blocks of threads."""

from cgraph.kernels.calls.layout import broadcast, pointwise_walk
from cgraph.kernels.expression import Program
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.signatures.gpu.pointwise import FLAT, THREADS

ACCESS = 16  # bytes that a thread reads or writes at once, at most


def flat_calls(program: Program, outs: tuple[View, ...], xs: tuple[View, ...]) -> list[Call] | None:
    """``out[...] = program(xs[...])`` where all arrays lie in one piece or hold one value; None where they do not."""
    out, *others = outs
    if others:
        return None
    walk = pointwise_walk((*(broadcast(x, out.shape) for x in xs), out), len(xs), 1)
    access = walk.access[:-1] + walk.access[-1].replace("s", "v")  # of one element
    if walk.rows > 1 or not set(access) <= {"v", "s"}:
        return None
    wide = ACCESS // max(int(instruction[1][1:]) for instruction in program)
    tasks = -(-out.size // (THREADS * wide))
    return [FLAT.call((program, access, wide), tasks, count=out.size, arrays=[v.at for v in walk.views])]

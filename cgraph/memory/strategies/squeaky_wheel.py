"""squeaky_wheel: first fit again and again, each time with what ended highest at an earlier turn.

Idea, source and time: see `cgraph.memory.packing`, which does the same for groups of several pieces.
"""

from cgraph.memory.bounds import start_ranks
from cgraph.memory.packing import Group, Packing, Slab
from cgraph.memory.problem import Plan, Problem

WORK = 4_000_000  # pairs of operands compared


def squeaky_wheel(problem: Problem) -> Plan:
    """The smallest arena of some hundred orders. A step is one at which something starts."""
    slabs = (Slab(0, *row) for row in zip(problem.nbytes.tolist(), *start_ranks(problem)))
    packing = Packing([Group(x.name, 0, (slab,)) for x, slab in zip(problem.operands, slabs)], problem.alignment)
    packing.improve(WORK)
    return Plan(tuple(packing.bases.tolist()), packing.nbytes, "squeaky_wheel")

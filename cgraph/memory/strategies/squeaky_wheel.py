"""squeaky_wheel: repeated first fit, each time with the operands that ended highest at an earlier turn.

Idea, source and time: see `cgraph.memory.packing`, which does this for groups of several slabs.
"""

from cgraph.memory.bounds import start_ranks
from cgraph.memory.packing import Group, Packing, Slab
from cgraph.memory.problem import Plan, Problem, Tie

WORK = 4_000_000  # pairs of operands compared
TIED_ROUNDS = 3  # pairs compared if operands are tied: no other strategy is tried


def squeaky_wheel(problem: Problem) -> Plan:
    """Return the plan with the smallest arena of some hundred orders. Steps are those at which an operand starts."""
    rows = list(zip(problem.nbytes.tolist(), *start_ranks(problem)))
    tied = {tie.operand for ties in problem.ties for tie in ties}
    alone = ((Tie(i, 0),) for i in range(len(rows)) if i not in tied)
    groups, places = list[Group](), list[tuple[int, int, int]]()
    for ties in (*problem.ties, *alone):
        front = min(tie.at for tie in ties)
        slabs = tuple(Slab(tie.at - front, *rows[tie.operand]) for tie in ties)
        places += [(tie.operand, len(groups), tie.at - front) for tie in ties]
        groups.append(Group(problem.operands[ties[0].operand].name, 0, slabs))
    packing = Packing(groups, problem.alignment)
    for _ in range(TIED_ROUNDS if problem.ties else 1):
        packing.improve(WORK)
    bases = packing.bases.tolist()
    offsets = [bases[group] + at for _, group, at in sorted(places)]
    return Plan(tuple(offsets), packing.nbytes, "squeaky_wheel")

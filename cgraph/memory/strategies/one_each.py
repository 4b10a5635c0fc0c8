"""one_each: every operand has bytes of its own; nothing is shared. Try it first if a value is wrong.

Pisarchyk and Lee call it naive (2020, arXiv:2001.03288, table 1). Time O(n).
"""

from itertools import accumulate

from cgraph.memory.problem import Plan, Problem


def one_each(problem: Problem) -> Plan:
    """Operands side by side in their given order."""
    starts = list(accumulate(problem.nbytes.tolist(), initial=0))
    return Plan(tuple(starts[:-1]), starts[-1], "one_each")

"""cheap_again: values that wait for the backward part are computed again if that is one pass over values that wait
anyway.

An activation's result waits for the gradient of the weights of the next layer, and its operand for its own gradient.
The result follows from the operand in the time of a copy. The same holds for the result of a norm, and for a copy in
another order. Of a chain of such steps, only one value waits.

Not done: the pass stores no value that would not wait otherwise, and computes no product again.
"""

from cgraph.dtypes.convert import code_of
from cgraph.ir.graph import Node
from cgraph.kernels.expression import UNARY
from cgraph.memory.layout import Layout
from cgraph.ops.family import Pointwise, scalar_program
from cgraph.ops.norm import BatchNorm, GroupNorm, LayerNorm, RmsNorm
from cgraph.ops.shape import ViewOp
from cgraph.rematerialise.reruns import Order, Reruns
from cgraph.rematerialise.segments import Forward

ONE_PASS = (Pointwise, LayerNorm, RmsNorm, BatchNorm, GroupNorm, ViewOp)
LEAST = 1 << 16  # bytes of a value; for smaller ones the start of a run dominates
FUNCTION = 32  # multiply-adds in the time of an exponential function
CHEAP = {"neg", "abs", "not", "floor", "ceil", "rint", "trunc", "sqrt"}
FUNCTIONS = UNARY - CHEAP | {"pow", "atan2", "hypot", "fmod", "gcd"}
LONGEST = 3  # maximum number of steps that run again for one value


def cheap_again(layout: Layout, problem: Reruns, share: float) -> Order:
    """Return the steps of a layout by position, with cheap forward steps a second time before their values are read
    again.

    `share`: limit of the work done again, as a share of the work of all steps; values with the most bytes for their
    work come first.
    """
    search = CheapSearch(layout, problem)
    before: dict[int, set[int]] = {}
    for t in sorted(search.cheap_steps(share), reverse=True):  # users before their operands
        at = search.first[t]
        runs = search.runs(t, at)
        if runs:
            before.setdefault(at, set()).update(runs)
            search.read(runs, at)
    order: Order = []
    for t in range(len(layout.steps)):
        order += [*sorted(before.get(t, ())), t]
    return order


class CheapSearch:
    """Search for values that wait and are cheap to compute again. Changes: rematerialised steps read values earlier.

    Fields
        first: for each step up to the turn whose value is read after the turn, the step before which it must run again
    """

    def __init__(self, layout: Layout, problem: Reruns) -> None:
        self.layout, self.problem, self.forward = layout, problem, Forward(layout)
        self.first: dict[int, int] = {}
        for t in range(self.forward.turn + 1, len(layout.steps)):
            self.read([t], t)

    def read(self, steps: list[int], at: int) -> None:
        """Record that these steps run before step `at`, or are it."""
        for x in {x for t in steps for x in self.forward.reads[t]}:
            if x <= self.forward.turn:
                self.first[x] = min(at, self.first.get(x, at))

    def cheap_steps(self, share: float) -> list[int]:
        """Return the steps whose values wait and are cheap to compute again, as many as the share of the work
        allows.
        """
        room, picks = share * self.problem.own, []
        work = {t: self.work(t) for t in self.forward.waiting if self.forward.values[t].nbytes >= LEAST}
        per_byte = {t: cost / self.forward.values[t].nbytes for t, cost in work.items() if cost}
        for t in sorted(per_byte, key=lambda t: (per_byte[t], t)):
            if work[t] <= room:
                room -= work[t]
                picks.append(t)
        return picks

    def work(self, t: int) -> int:
        """Return the work of computing a step's value again; 0 if it is not cheap."""
        steps = self.layout.steps
        return sum(self.problem.cost[i] + functions_of(steps[i]) for i in self.runs(t, self.first[t]))

    def runs(self, t: int, at: int) -> list[int]:
        """Return the steps that run again for the value of one of them, before step `at`; none if that is not cheap."""
        steps, waiting = [t], [t]
        while waiting and len(steps) <= LONGEST:
            i = waiting.pop()
            if not is_cheap(self.layout.steps[i]) or i in self.forward.pinned or at >= self.problem.until[i]:
                return []
            missing = [x for x in self.forward.reads[i] if not self.waits(x) and x not in steps]
            steps += missing
            waiting += missing
        return [] if waiting else steps

    def waits(self, x: int) -> bool:
        """Return True if the value waits for the backward part anyway, perhaps until slightly later if its user's value
        does not.
        """
        value = self.forward.values[x]
        return value.lasting or value.last > self.forward.turn


def is_cheap(node: Node) -> bool:
    return isinstance(node.op, ONE_PASS)


def functions_of(node: Node) -> int:
    """Return the work of the functions in a step, besides reading and writing, in multiply-adds."""
    if not isinstance(node.op, Pointwise):
        return 0
    program = scalar_program(node.op, tuple(code_of(x.dtype) for x in node.operands))
    return FUNCTION * node.size * sum(name in FUNCTIONS for name, *_ in program)

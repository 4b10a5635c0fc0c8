"""run_again: a physical graph in an order in which some steps run more than once.

The values are the same bit for bit: the same kernels on the same operands. A step may run again if its op is pure, its
value is not an output, and no Var that it reads has been written. The first run of an op that can fail stays in place,
since in-place updates rely on it.
"""

from collections import defaultdict
from collections.abc import Sequence

from cgraph.ir.graph import Node, apply
from cgraph.ir.origin import keeps_origin
from cgraph.ir.rewrite import with_new_operands
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import at_origins
from cgraph.memory.layout import Layout, owner_of, producers_of
from cgraph.ops.physical.rerun import Rerun
from cgraph.rematerialise.reruns import Reruns
from cgraph.schedule.dag import Dag
from cgraph.system.alignment import round_up

MOVED = 8  # multiply-adds in the time of reading or writing an element


def dag_of(layout: Layout, alignment: int = 1) -> Dag:
    """Return the steps of a layout as a `Dag`; sizes are rounded up to multiples of the alignment."""
    values, views, count = layout.values, layout.views, len(layout.steps)
    producers = producers_of(views, layout.value_of)
    scratch = [0] * count
    for node, i in layout.workspace_of.items():
        scratch[layout.value_of[node]] = round_up(values[i].nbytes, alignment)
    return Dag(
        tuple([round_up(v.nbytes, alignment) for v in values[:count]]),
        tuple([tuple([i for x in node.operands if (i := producers[x]) >= 0]) for node in layout.steps]),
        frozenset(i for i, v in enumerate(values[:count]) if v.lasting),
        tuple(scratch),
        tuple([(*v.overwritable, *[x for x, _ in v.parts]) if v.parts else v.overwritable for v in values[:count]]),
    )


def reruns_of(layout: Layout, alignment: int) -> Reruns:
    """Return the steps that may run again, and their costs in multiply-adds."""
    steps, views, values = layout.steps, layout.views, layout.values
    writers: dict[Node, list[int]] = {}
    for t, node in enumerate(steps):
        if node.op.writes:
            writers.setdefault(owner_of(views[node]), []).append(t)

    def until(t: int) -> int:
        node = steps[t]
        if values[t].lasting or node.op.writes or not node.op.pure:
            return t
        read = (owner_of(views[x]) for x in node.operands)
        return min((w for var in read for w in writers.get(var, ()) if w > t), default=len(steps))

    firm = frozenset(t for t, node in enumerate(steps) if node.op.can_fail)
    return Reruns(dag_of(layout, alignment), tuple(map(cost_of, steps)), tuple(map(until, range(len(steps)))), firm)


def cost_of(node: Node) -> int:
    """Return the approximate time of a step, in multiply-adds."""
    specs = [x.spec for x in (node, *node.operands)]
    elements = sum(s.size for spec in specs for s in (spec.specs if isinstance(spec, Bundle) else (spec,)))
    return node.op.multiply_adds(*specs[1:]) + MOVED * elements


@keeps_origin
def run_again(layout: Layout, order: Sequence[int]) -> tuple[list[Node], dict[Node, Node]]:
    """Return all nodes in running order, and the new node of each node; for several runs that of the last.

    Parameters
        order: steps by position, some of them more than once; operands before their users
    """
    steps_of: dict[Node, tuple[int, ...]] = {node: (t,) for t, node in enumerate(layout.steps)}
    shown: dict[int, list[Node]] = defaultdict(list)  # for each step the views of its value and parts beside it
    latest: dict[Node, Node] = {}
    for node in layout.views:
        if node not in steps_of:
            steps_of[node] = tuple({t for x in node.operands for t in steps_of[x]})
            latest |= {} if steps_of[node] else {node: node}
            for t in steps_of[node]:
                shown[t].append(node)
    nodes = dict.fromkeys(latest)
    for t in order:
        for node in at_origins((layout.steps[t], *shown[t])):
            if all(x in latest for x in node.operands):  # a view may wait for a step after the one it refers to
                operands = tuple([latest[x] for x in node.operands])
                new = with_new_operands(node, operands)
                while node is layout.steps[t] and new in nodes:  # equal nodes are one
                    new = apply(Rerun(new.op), *operands)
                latest[node] = new
                nodes[new] = None
    return list(nodes), latest

"""A network as published memory tables see it: one step for each convolution, pooling, addition and so on.

Bias, batch norm and activation belong to the step that they follow, a view after a view or after a mean likewise.
Weights and what is computed of weights alone take no step.

Source: the rules that reproduce the tables of Pisarchyk and Lee 2020, arXiv:2001.03288.
"""

from collections import deque
from collections.abc import Sequence
from math import prod

from cgraph import Node, Record, Var
from nn.layer import Parameter

REDUCTIONS = frozenset(("sum", "mean", "max"))
VIEWS = frozenset(("reshape", "transpose"))
OWN_STEP = frozenset(
    "conv1d conv2d conv3d matmul max_pool avg_pool max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d "
    "concat pad resize softmax take".split()
)


class NetworkStep(Record):
    """One step: what it computes last, and the steps whose results it reads.

    Fields
        kind: name of its first op
        result: the node whose value others read
        operands: positions of the steps that it reads, in the list of steps; an input of the network has none
    """

    kind: str
    result: Node
    operands: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """float32 bytes of the result with its channels rounded up to a multiple of 4."""
        shape = self.result.shape
        channels = shape[1] if len(shape) == 4 else shape[-1]
        return 4 * prod(shape) // channels * (-(-channels // 4) * 4)


def steps_of(outputs: Sequence[Node]) -> list[NetworkStep]:
    """The steps of a graph in the order of building."""
    values = computed_of_inputs(nodes_of(outputs))
    readers: dict[Node, int] = {}
    for node in values:
        for x in set(node.operands):
            readers[x] = readers.get(x, 0) + 1
    for x in outputs:
        readers[x] = readers.get(x, 0) + 1
    steps: list[NetworkStep] = []
    place: dict[Node, int] = {}
    for node in values:
        read = [x for x in node.operands if x in place]
        at = continued_step(node, read, steps, place, readers)
        if at is None:
            place[node] = len(steps)
            steps.append(NetworkStep(node.op.name, node, tuple(dict.fromkeys(place[x] for x in read))))
        else:
            place[node] = at
            steps[at] = NetworkStep(steps[at].kind, node, steps[at].operands)
    return steps


def continued_step(
    node: Node, read: list[Node], steps: list[NetworkStep], place: dict[Node, int], readers: dict[Node, int]
) -> int | None:
    """The step to which `node` belongs, given what it reads; None when it begins one."""
    places = {place[x] for x in read}
    if len(places) != 1:
        return None
    (at,) = places
    if any(readers[x] != 1 for x in read):
        return None
    return at if continues(node, read[0], steps[at]) else None


def continues(node: Node, operand: Node, step: NetworkStep) -> bool:
    """Does `node`, which reads nothing else that was computed, belong to the step of its operand?"""
    if node.op.name in VIEWS:
        return operand.op.name in VIEWS or (step.kind in REDUCTIONS and operand.op.name in REDUCTIONS)
    return node.op.name not in OWN_STEP | REDUCTIONS


def usage_records(outputs: Sequence[Node]) -> list[tuple[int, int, int, str]]:
    """First step, last step, bytes and kind of every intermediate result, with steps in the order they become ready.

    Inputs and outputs are not counted.
    """
    steps = steps_of(outputs)
    order = breadth_first(steps)
    at = {step: i for i, step in enumerate(order)}
    last = {i: at[i] for i in range(len(steps))}
    for i, step in enumerate(steps):
        for x in step.operands:
            last[x] = max(last[x], at[i])
    output_ids = {id(x) for x in outputs}
    inner = [i for i in order if id(steps[i].result) not in output_ids]
    return [(at[i], last[i], steps[i].nbytes, steps[i].kind) for i in inner]


def breadth_first(steps: Sequence[NetworkStep]) -> list[int]:
    """Positions of the steps, first ready first served. Source: Kahn 1962."""
    missing = [len(step.operands) for step in steps]
    users: list[list[int]] = [[] for _ in steps]
    for i, step in enumerate(steps):
        for x in step.operands:
            users[x].append(i)
    queue = deque(i for i, count in enumerate(missing) if not count)
    order = []
    while queue:
        order.append(queue.popleft())
        for user in users[order[-1]]:
            missing[user] -= 1
            if not missing[user]:
                queue.append(user)
    return order


def nodes_of(outputs: Sequence[Node]) -> list[Node]:
    """Every node that the outputs need, in the order of making."""
    nodes: set[Node] = set()
    waiting = list(outputs)
    while waiting:
        node = waiting.pop()
        if node not in nodes:
            nodes.add(node)
            waiting.extend(node.operands)
    return sorted(nodes, key=lambda x: x.serial)


def computed_of_inputs(nodes: Sequence[Node]) -> list[Node]:
    """Those of `nodes`, in order, that are no inputs and have one below them: neither weights nor made of weights."""
    moving: set[Node] = {x for x in nodes if isinstance(x, Var) and not isinstance(x, Parameter)}
    results = []
    for node in nodes:
        if any(x in moving for x in node.operands):
            moving.add(node)
            results.append(node)
    return results

"""A network as steps of published memory tables: one step for each convolution, pooling, addition and so on.

Bias, batch norm and activation belong to the step before them, and so does a view after a view or after a mean.
Weights, and values computed only from weights, have no step.

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
    """One step: its result, and the steps whose results it reads.

    Fields
        kind: name of its first op
        result: node that other steps read
        operands: indices of the steps that it reads; inputs of the network have none
    """

    kind: str
    result: Node
    operands: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of the float32 result with its channels rounded up to a multiple of 4."""
        shape = self.result.shape
        channels = shape[1] if len(shape) == 4 else shape[-1]
        return 4 * prod(shape) // channels * (-(-channels // 4) * 4)


def steps_of(outputs: Sequence[Node]) -> list[NetworkStep]:
    """Return the steps of a graph in the order of construction."""
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
    """Return the step to which `node` belongs, by the nodes that it reads; None when it begins a new one."""
    places = {place[x] for x in read}
    if len(places) != 1:
        return None
    (at,) = places
    if any(readers[x] != 1 for x in read):
        return None
    return at if continues(node, read[0], steps[at]) else None


def continues(node: Node, operand: Node, step: NetworkStep) -> bool:
    """Return True if `node` belongs to the step of its only computed operand."""
    if node.op.name in VIEWS:
        return operand.op.name in VIEWS or (step.kind in REDUCTIONS and operand.op.name in REDUCTIONS)
    return node.op.name not in OWN_STEP | REDUCTIONS


def usage_records(outputs: Sequence[Node]) -> list[tuple[int, int, int, str]]:
    """Return first step, last step, bytes and kind of every intermediate result; steps run as they become ready.

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
    """Return the indices of the steps in the order they become ready. Source: Kahn 1962."""
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
    """Return every node that the outputs need, in the order of construction."""
    nodes: set[Node] = set()
    waiting = list(outputs)
    while waiting:
        node = waiting.pop()
        if node not in nodes:
            nodes.add(node)
            waiting.extend(node.operands)
    return sorted(nodes, key=lambda x: x.serial)


def computed_of_inputs(nodes: Sequence[Node]) -> list[Node]:
    """Return the nodes that depend on an input of the network and are not inputs, in order."""
    moving: set[Node] = {x for x in nodes if isinstance(x, Var) and not isinstance(x, Parameter)}
    results = []
    for node in nodes:
        if any(x in moving for x in node.operands):
            moving.add(node)
            results.append(node)
    return results

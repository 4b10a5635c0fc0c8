"""Fusion of channel-blocked convolutions with a pointwise op that is the only reader of their result."""

from cgraph.dtypes.convert import code_of
from cgraph.ir.graph import Node, apply
from cgraph.ir.roots import New, Roots, rebuild
from cgraph.kernels.activation.calls import NONE
from cgraph.kernels.expression import COMPARE
from cgraph.kernels.target import Target
from cgraph.ops.family import Pointwise
from cgraph.ops.leaf import ConstOp
from cgraph.ops.physical.conv import BlockedConv
from cgraph.ops.physical.element_function import ElementFunction
from cgraph.ops.shape import BroadcastTo
from cgraph.record import replace

CHEAP = COMPARE | {"load", "const", "neg", "abs", "add", "sub", "mul", "div", "min", "max", "select"}
MOST = 16  # instructions, constants included; hard swish has 9


def fuse_activations(outputs: tuple[Node, ...], target: Target) -> tuple[Node, ...]:
    """Move functions of one array, such as hard swish, into the convolution before: same bits, one pass over memory.

    Not moved: functions with more than arithmetic and comparisons, which gain nothing (silu, gelu) and make the code of
    a tile several times as long; ops of several arrays; those after an activation with bounds, after products of
    bfloat16 numbers, and on a GPU.
    """
    graph = Roots.of(outputs)
    if target.code == "ptx" or not graph.has(BlockedConv):
        return outputs
    functions = {node: function for node in graph.order if (function := function_of(node, graph)) is not None}

    def change(node: Node, new: New) -> Node | None:
        if node not in functions:
            return None
        conv = next(x for x in node.operands if isinstance(x.op, BlockedConv))
        return apply(replace(conv.op, function=functions[node]), *(new[x] for x in conv.operands))

    return rebuild(graph, change)


def function_of(node: Node, graph: Roots) -> ElementFunction | None:
    """Return a pointwise op as a function of the only convolution that it reads; None for any other op."""
    if not isinstance(node.op, Pointwise):
        return None
    convs = {x for x in node.operands if takes_function(x)}
    numbers = [None if x in convs else number_of(x, node) for x in node.operands]
    if len(convs) != 1 or any(x not in convs and value is None for x, value in zip(node.operands, numbers)):
        return None
    (conv,), function = convs, ElementFunction(node.op, tuple(numbers))
    return function if graph.is_inner(conv) and conv.spec == node.spec and is_short(function, conv) else None


def is_short(function: ElementFunction, conv: Node) -> bool:
    """Return True for few instructions, each of one machine instruction."""
    program = function.program(code_of(conv.dtype))
    return len(program) <= MOST and all(name in CHEAP for name, *_ in program)


def takes_function(node: Node) -> bool:
    """Return True for a convolution that stores its sums as they are."""
    op = node.op
    return isinstance(op, BlockedConv) and op.activation == NONE and op.function is None and not op.pairs


def number_of(x: Node, like: Node) -> float | None:
    """Return the constant that every element of an operand has; None for any other operand."""
    source = x.operands[0] if isinstance(x.op, BroadcastTo) else x
    if not isinstance(source.op, ConstOp) or source.size != 1 or source.dtype != like.dtype:
        return None
    return float(source.op.array.reshape(()))

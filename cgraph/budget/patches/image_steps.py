"""A graph as image steps: convolutions, poolings, sums and concats, with the pixels that each reads.

Bias, batch norm and activation belong to the step whose result only they read; a reshape refers to the same elements.
Weights, and values computed from weights only, are not steps. The graph is the one that the user wrote, without
layouts.
"""

from collections.abc import Sequence
from math import prod
from typing import Any

from cgraph.ir.graph import Node
from cgraph.ir.spec import Bundle
from cgraph.ir.traverse import descendants, post_order, users_of
from cgraph.kernels.views.window import Window
from cgraph.ops.average_pool import AvgPool
from cgraph.ops.conv import Conv2d
from cgraph.ops.family import Pointwise
from cgraph.ops.join import Concat
from cgraph.ops.leaf import Var
from cgraph.ops.linear import Matmul
from cgraph.ops.norm import BatchNorm
from cgraph.ops.pool import MaxPool, MaxPoolIndices
from cgraph.ops.reduce import Reduction
from cgraph.ops.shape import Reshape
from cgraph.record import Record

POINT = Window()
SUM = 2  # operations per element of a sum of two or more images


class ImageStep(Record):
    """One step: its result, its operands, and the work of an element.

    Fields
        name: name of its first op
        shape: the result's channels (times images), rows and columns; other values have one row and one column
        operands: positions of the steps that it reads, each once
        window: the pixels of operands that one pixel of the result reads
        work: operations per element: multiply-adds, plus 1 for a bias; taps of a pooling; 2 for a sum
        splits: True if rows and columns of the result can be computed separately
    """

    name: str
    shape: tuple[int, int, int]
    operands: tuple[int, ...] = ()
    window: Window = POINT
    work: int = 0
    splits: bool = True

    @property
    def size(self) -> int:
        """Number of elements of the result."""
        return prod(self.shape)


def image_steps(outputs: Sequence[Node], inputs: Sequence[Var]) -> list[ImageStep]:
    """Return the steps of a graph, operands before users, in the order in which their nodes were created."""
    return steps_and_places(outputs, inputs)[0]


def steps_and_places(outputs: Sequence[Node], inputs: Sequence[Var]) -> tuple[list[ImageStep], dict[Node, int]]:
    """Return the steps, operands before users, and the step of each node that depends on an input."""
    order = sorted(post_order(outputs), key=lambda x: x.serial)
    moving = descendants(order, inputs)
    users = users_of(order)
    steps: list[ImageStep] = []
    place: dict[Node, int] = {}
    for node in order:
        if node not in moving:
            continue
        read = [x for x in node.operands if x in moving]
        if read and goes_on(node, read, steps, place, users):
            place[node] = place[read[0]]
            continue
        place[node] = len(steps)
        steps.append(step_of(node, read, steps, [place[x] for x in read]))
    return steps, place


def goes_on(node: Node, read: list[Node], steps: list[ImageStep], place: dict[Node, int], users: dict) -> bool:
    """Return True if `node` belongs to the step that it reads."""
    if isinstance(node.op, Reshape):
        return True
    return (
        isinstance(node.op, Pointwise | BatchNorm)
        and len({place[x] for x in read}) == 1
        and image_shape(node) == steps[place[read[0]]].shape
        and all(len(users[x]) == 1 for x in read)
    )


def step_of(node: Node, read: list[Node], steps: list[ImageStep], places: list[int]) -> ImageStep:
    """Return the step that begins with this node; `places` has the step of each value that it reads."""
    op, shape, operands = node.op, image_shape(node), tuple(dict.fromkeys(places))
    if isinstance(op, Matmul):
        return ImageStep(node.name, shape, operands, work=node.operands[0].shape[-1] + 1, splits=False)
    if isinstance(op, Reduction):
        return ImageStep(node.name, shape, operands, work=read[0].size // max(node.size, 1), splits=False)
    is_image = not isinstance(node.spec, Bundle) and node.ndim == 4
    if not read or not is_image or any(image_shape(x) != steps[i].shape for x, i in zip(read, places)):
        return ImageStep(node.name, shape, operands, work=1 if read else 0, splits=False)
    if isinstance(op, Conv2d):
        f = node.operands[1].shape
        window = over_images(f[2:], op)
        return ImageStep(node.name, shape, operands, window, prod(f[1:]) + 1, len(read) == 1)
    if isinstance(op, MaxPool | AvgPool) and not isinstance(op, MaxPoolIndices):
        window = over_images(op.window, op)
        splits = not (op.ceil and isinstance(op, AvgPool) and op.count_pad)  # padding that ceil adds does not count
        return ImageStep(node.name, shape, operands, window, window.taps, splits)
    if isinstance(op, Concat) and op.axis == 1:
        return ImageStep(node.name, shape, operands)
    if isinstance(op, Pointwise) and all(steps[i].shape == shape for i in operands):
        return ImageStep(node.name, shape, operands, work=SUM if len(operands) > 1 else 1)
    return ImageStep(node.name, shape, operands, work=1, splits=False)


def over_images(kernel: Any, op: Any) -> Window:
    return Window(kernel, op.stride, op.pad, op.dilation)


def image_shape(node: Node) -> tuple[int, int, int]:
    """Return channels times images, rows and columns; a value that is not an image has channels only."""
    if isinstance(node.spec, Bundle):
        return sum(spec.size for spec in node.spec.specs), 1, 1
    if node.ndim != 4:
        return node.size, 1, 1
    n, c, h, w = node.shape
    return n * c, h, w

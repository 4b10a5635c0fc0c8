"""Random graphs: forks, joins, views, broadcasting, several dtypes, zero-size arrays, rank 0 to 6.

Among them what planning goes wrong at: steps with several results, values in two concats, parts read beside their
concat, Vars of equal specs (so that one node may be the source of two update edges), outputs that are read, and, where
asked for, impure nodes.
"""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

import cgraph as cg
from cgraph.ir.graph import Node

UNARY = ("negative", "abs", "square", "sin", "cos", "tanh", "relu", "sigmoid", "floor", "exp_small")
BINARY = ("add", "subtract", "multiply", "maximum", "minimum", "divide_safe", "less_where")
MOVES = (
    "transpose", "reshape", "slice", "flip", "broadcast", "concat", "repeat", "set_slice", "expand", "stack", "pad",
    "stencil", "two_concats", "part_beside", "cumsum", "take",
    "top",
)  # fmt: skip
REDUCTIONS = ("sum", "mean", "max", "min", "prod_small", "argmax")


@dataclass
class Drawn:
    """A random graph: its Vars, the nodes made of them, and the outputs."""

    leaves: list = field(default_factory=list)
    nodes: list = field(default_factory=list)
    outputs: list = field(default_factory=list)


class Negative:
    """The negative of an array, computed by Python. Changes: `calls`, how often it was asked for."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: np.ndarray) -> np.ndarray:
        self.calls += 1
        return -x


@st.composite
def graphs(
    draw,
    most_nodes: int = 25,
    zero_size: bool = True,
    dtypes: tuple[str, ...] = ("float32", "float64"),
    impure: bool = False,
) -> Drawn:
    """A graph of up to `most_nodes` nodes over one to four Vars, with one to four outputs."""
    drawn = Drawn()
    dtype = draw(st.sampled_from(dtypes))
    axis = st.integers(0 if zero_size else 1, 4)
    for i in range(draw(st.integers(1, 4))):
        shape = tuple(draw(st.lists(axis, max_size=draw(st.sampled_from((2, 3, 6))))))
        if drawn.leaves and draw(st.booleans()):
            shape = drawn.leaves[-1].shape
        drawn.leaves.append(cg.Var(shape, dtype, f"v{i}"))
    drawn.nodes = list(drawn.leaves)
    for _ in range(draw(st.integers(1, most_nodes))):
        node = draw_node(draw, drawn.nodes, impure)
        if node.dtype.kind != "f":
            node = node.astype(dtype)
        if node.size <= 4096:
            drawn.nodes.append(node)
    count = draw(st.integers(1, 4))
    drawn.outputs = [draw(st.sampled_from(drawn.nodes)) for _ in range(count)] + [drawn.nodes[-1]]
    return drawn


def draw_node(draw, nodes: list[Node], impure: bool = False) -> Node:
    """One more node on some of these."""
    x = draw(st.sampled_from(nodes))
    kind = draw(st.sampled_from(("unary", "binary", "move", "reduce", "matmul", *["impure"] * impure)))
    if kind == "impure":
        return cg.delay(Negative(), x)
    if kind == "unary":
        return unary(draw(st.sampled_from(UNARY)), x)
    if kind == "binary":
        same = [y for y in nodes if broadcasts(x, y)]
        return binary(draw(st.sampled_from(BINARY)), x, draw(st.sampled_from(same)))
    if kind == "move":
        return move(draw, draw(st.sampled_from(MOVES)), x, nodes)
    if kind == "matmul" and x.ndim >= 2:
        return cg.matmul(x, cg.swapaxes(x, -1, -2))
    return reduce(draw, draw(st.sampled_from(REDUCTIONS)), x)


def broadcasts(x: Node, y: Node) -> bool:
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        return False
    return int(np.prod(shape)) <= 4096


def unary(name: str, x: Node) -> Node:
    if name == "exp_small":
        return cg.exp(cg.clip(x, -3, 3))
    return getattr(cg, name)(x)


def binary(name: str, x: Node, y: Node) -> Node:
    if name == "divide_safe":
        return x / (cg.abs(y) + 1)
    if name == "less_where":
        return cg.where(x < y, x, y * 2)
    return getattr(cg, name)(x, y)


def move(draw, name: str, x: Node, nodes: list[Node]) -> Node:
    if name == "transpose":
        return cg.transpose(x, draw(st.permutations(range(x.ndim))))
    if name == "reshape":
        return cg.reshape(x, x.size) if x.ndim != 1 else cg.reshape(x, (1, x.size, 1))
    if name == "slice":
        return x[tuple(draw(slices(n)) for n in x.shape)]
    if name == "flip":
        return cg.flip(x)
    if name == "broadcast":
        return cg.broadcast_to(x, (draw(st.integers(0, 3)), *x.shape)) if x.ndim < 6 else x
    if name == "expand":
        return cg.expand_dims(x, draw(st.integers(0, x.ndim))) if x.ndim < 6 else x
    if name == "repeat":
        return cg.repeat(x, draw(st.integers(0, 3)), draw(st.integers(0, x.ndim - 1))) if x.ndim else x
    if name == "set_slice" and x.ndim:
        index = tuple(draw(slices(n)) for n in x.shape)
        return cg.set_slice(x, index, x[index] * 2)
    if name == "pad" and x.ndim:
        return cg.pad(x, draw(st.integers(0, 1)), constant_values=draw(st.integers(0, 2)))
    if name == "stencil" and x.ndim:
        return stencil(draw, x)
    if name == "cumsum" and x.ndim:
        return cg.cumsum(x * 0.25, draw(st.integers(0, x.ndim - 1)))
    if name == "take" and x.size:
        axis = draw(st.integers(0, x.ndim - 1)) if x.ndim else None
        return cg.take(x, np.array([x.shape[axis] - 1, 0]), axis) if x.ndim else x
    if name == "top" and x.ndim:
        axis = draw(st.integers(0, x.ndim - 1))
        values, places = cg.top_k(x, draw(st.integers(0, x.shape[axis])), axis)
        return values + places.astype(x.dtype) if draw(st.booleans()) else values
    if name in ("two_concats", "part_beside") and x.ndim:
        return concats(draw, name, x, nodes)
    if name in ("concat", "stack") and x.ndim and x.ndim < 6:
        same = [y for y in nodes if y.shape == x.shape]
        other = draw(st.sampled_from(same))
        return getattr(cg, name)([x, other, x], draw(st.integers(0, x.ndim - 1)))
    return x + 1


def concats(draw, name: str, x: Node, nodes: list[Node]) -> Node:
    """A value in two concats, both of them read later; or one that a step reads beside its concat."""
    part, axis = cg.tanh(x), draw(st.integers(0, x.ndim - 1))
    whole = cg.concat([part, draw(st.sampled_from([y for y in nodes if y.shape == x.shape]))], axis)
    if name == "two_concats":
        return cg.concat([part, x], axis) - whole
    return cg.set_slice(whole, tuple(slice(0, n) for n in x.shape), part)


def stencil(draw, x: Node) -> Node:
    """What is computed around some elements, in their place; around them a number, or what was there."""
    margins = [(draw(st.integers(0, min(n, 1))), draw(st.integers(0, min(n - 1, 1)))) if n else (0, 0) for n in x.shape]
    place = [slice(a, n - b) for n, (a, b) in zip(x.shape, margins)]
    shifts = [[draw(st.integers(-a, b)) for a, b in margins] for _ in range(2)]
    windows = [x[tuple(slice(s.start + by, s.stop + by) for s, by in zip(place, shift))] for shift in shifts]
    inside = x[tuple(place)] * 0.5 + windows[0] * 0.25 - windows[1]
    return cg.pad(inside, margins, constant_values=1) if draw(st.booleans()) else cg.set_slice(x, tuple(place), inside)


@st.composite
def slices(draw, n: int) -> slice:
    """Any slice of an axis of n, with steps and negative positions."""
    edge = st.none() | st.integers(-n - 1, n + 1)
    return slice(draw(edge), draw(edge), draw(st.sampled_from((None, 1, 2, -1, -2))))


def reduce(draw, name: str, x: Node) -> Node:
    axes = draw(st.lists(st.integers(0, x.ndim - 1), unique=True)) if x.ndim else []
    if name in ("max", "min", "argmax", "mean") and x.size == 0:
        return cg.sum(x)
    keep = draw(st.booleans())
    if name == "argmax":
        return cg.argmax(x, axis=axes[0] if axes else None)
    if name == "prod_small":
        return cg.prod(cg.clip(x, 0.5, 1.5), axis=tuple(axes), keepdims=keep)
    return getattr(cg, name)(x, axis=tuple(axes) if axes else None, keepdims=keep)


def draw_values(leaves: list, seed: int = 0) -> list[np.ndarray]:
    """Values for these Vars: small numbers, some of them whole, so that ties occur."""
    rng = np.random.default_rng(seed)
    return [np.round(rng.normal(0, 2, x.shape), 1).astype(x.dtype) for x in leaves]

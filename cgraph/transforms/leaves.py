"""Leaves of arguments: arrays and Python numbers, and what a compiled function depends on of each."""

from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from cgraph.errors import ArgumentError
from cgraph.ir.graph import Node
from cgraph.ops.leaf import Var, as_node
from cgraph.storage.cell import foreign_array
from cgraph.transforms.trace import FunctionTrace
from cgraph.transforms.tracer import Tracer
from cgraph.transforms.trees import Static
from cgraph.transforms.weak import SAMPLES

SETTINGS = (str, bytes, type, np.dtype, slice, type(Ellipsis), FunctionType, BuiltinFunctionType, np.ufunc)
"""Arguments of these classes are static without being named, as they cannot be arrays."""


def argument(x: Any, name: str) -> Any:
    """Return a leaf as an array, a number or a static setting. ArgumentError for anything else."""
    if isinstance(x, np.ndarray | np.generic | Node | Tracer) or type(x) in SAMPLES:
        if isinstance(x, np.ma.MaskedArray):
            raise ArgumentError(f"{name} is a masked array; pass x.filled(value) and the mask as two arguments")
        return x
    if isinstance(x, SETTINGS):
        return Static(x)
    if hasattr(x, "__dlpack__") or hasattr(x, "__array__"):
        return foreign_array(x)
    if isinstance(x, np.random.Generator | np.random.RandomState):
        raise ArgumentError(f"{name} is a stream of NumPy's numbers; pass cg.numpy.random.default_rng(seed) instead")
    raise ArgumentError(
        f"{name} is {x!r:.60} of {type(x).__name__}, which is neither an array nor a tuple, list, dict or dataclass of "
        "arrays; name it in static_argnames=, or pass its arrays"
    )


def descriptor(x: Any) -> Any:
    """Return the part of a leaf that determines the compiled code: shape and dtype, or the type of a Python number."""
    if isinstance(x, np.ndarray):
        return x.shape, x.dtype
    return type(x)


def placeholder(x: Any, name: str, shape: tuple[int, ...] | None = None) -> Var:
    """Return a Var for the value of a leaf; `shape` replaces its own."""
    x = np.asarray(SAMPLES[type(x)]) if type(x) in SAMPLES else x
    return Var(x.shape if shape is None else shape, x.dtype, name)


def tracer_of(trace: FunctionTrace, x: Any, node: Node) -> Tracer:
    """Return a tracer with the value of a node for a leaf: a number where the leaf is one."""
    weak = x.weak if isinstance(x, Tracer) else type(x) if type(x) in SAMPLES else None
    is_array = isinstance(x, np.ndarray) or (isinstance(x, Tracer) and not x.is_scalar)
    return trace.tracer(node, weak, not is_array)


def node_of(x: Any) -> Node:
    """Return the present value of a leaf as a node."""
    return x.node if isinstance(x, Tracer) else as_node(x)

"""Methods and attributes of ndarray for nodes; refused ones name an alternative."""

from typing import Any

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Node
from cgraph.numpy.at import At
from cgraph.ops.arithmetic import astype as convert
from cgraph.ops.bitcast import bitcast
from cgraph.ops.complex import as_parts
from cgraph.ops.family import real_dtype

ATTRIBUTES: dict[str, Any] = {
    "at": At,
    "imag": np.imag,
    "itemsize": lambda x: x.dtype.itemsize,
    "mT": np.matrix_transpose,
    "real": np.real,
}
"""Attributes, as functions of the node."""


def astype(
    x: Node, dtype: Any, order: str = "K", casting: Any = "unsafe", subok: bool = True, copy: bool = True
) -> Node:
    """Return the node in another dtype. DTypeError if `casting` forbids it."""
    if not np.can_cast(x.dtype, dtype, casting):
        raise DTypeError(f"{x.dtype} does not become {np.dtype(dtype)} under casting={casting!r}; use casting='unsafe'")
    return convert(x, dtype)


def reshape(x: Node, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
    """Return the node in another shape, passed as a tuple or as numbers."""
    return np.reshape(x, shape[0] if len(shape) == 1 else shape, order=order)


def compress(x: Node, condition: Any, axis: int | None = None, out: Any = None) -> Any:
    return np.compress(condition, x, axis, out)


def conj(x: Node) -> Any:
    """Return the conjugate; a node of real numbers or bool itself, as NumPy's method does."""
    return np.conj(x) if x.dtype.kind == "c" else x


METHODS: dict[str, Any] = {
    name: getattr(np, name)
    for name in (
        "all any argmax argmin argpartition argsort choose clip copy cumprod cumsum diagonal dot max "
        "mean min prod ravel repeat round searchsorted squeeze std sum swapaxes take trace var"
    ).split()
}
"""Methods, as functions whose first operand is the node; NumPy's own find ours in the table."""


def view(x: Node, dtype: Any = None) -> Node:
    """Return the bits under another dtype: of the same size, or the parts of complex numbers; `x` itself for None."""
    if dtype is None:
        return x
    return as_parts(x) if x.dtype.kind == "c" and real_dtype(x.dtype) == dtype else bitcast(x, dtype)


METHODS |= {
    "astype": astype,
    "compress": compress,
    "conj": conj,
    "conjugate": conj,
    "flatten": np.ravel,
    "reshape": reshape,
    "view": view,
}

NO_DATA = "a node holds no data; use x.eval().{}"
CHANGES = "it changes its operand, and nodes do not change; use {}"
REFUSED = {
    "base": "nodes share nothing that can be seen; use x.operands for what a node is computed of",
    "byteswap": "the order of bytes is no property of a node; use x.view(dtype) for the bits",
    "ctypes": NO_DATA.format("ctypes"),
    "data": NO_DATA.format("data"),
    "dump": NO_DATA.format("dump(file)"),
    "dumps": NO_DATA.format("dumps()"),
    "fill": CHANGES.format("np.full_like(x, value)"),
    "flags": NO_DATA.format("flags"),
    "flat": "a node is not stepped through; use x.ravel()",
    "getfield": "elements are numbers without fields; use x.view(dtype) for the bits",
    "nonzero": "the shape of the result depends on values; use cg.nonzero(x, size=...)",
    "partition": CHANGES.format("np.partition(x, kth)"),
    "put": CHANGES.format("cg.scatter(x, positions, values)"),
    "resize": CHANGES.format("np.resize(x, shape)"),
    "setfield": CHANGES.format("np.where(mask, value, x)"),
    "setflags": NO_DATA.format("setflags()"),
    "sort": "it sorts in place and returns None in NumPy; use np.sort(x)",
    "strides": "where a value lies is the plan's, not the node's; use function.compiled.views of a compiled Function",
    "tobytes": NO_DATA.format("tobytes()"),
    "tofile": NO_DATA.format("tofile(file)"),
    "tolist": NO_DATA.format("tolist()"),
}
"""Methods and attributes of an ndarray that nodes do not have, and their replacements."""

OF_OTHERS = {
    "compute": "a node holds no data; x.eval() computes it",
    "detach": "only cg.gradient computes gradients; use cg.stop_gradient(x), or x.eval() for the value",
    "numpy": "a node holds no data; x.eval() computes it",
    "value": "a node holds no data; x.eval() computes it, and only a Var has a value",
}
"""Methods and attributes of other libraries' arrays, and their replacements."""

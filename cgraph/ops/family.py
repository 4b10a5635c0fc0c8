"""The pointwise family: ops that compute each element of their result from the same element of their operands.

A member defines `scalar` (a Python function of traced values, which becomes the kernel on every device), `meaning`
and `grad`; the rest follows here. Broadcasting and promotion are nodes of their own, before the op.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from cgraph.dtypes.convert import code_of, computing_dtype, dtype_of_code, resolve_dtype
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.cut import Cut, row_by_row
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.row_rule import RowRule, rows_of_all
from cgraph.ir.spec import Spec
from cgraph.ir.work import Work
from cgraph.kernels.expression import Program, Trace
from cgraph.kernels.kernel import Call, View
from cgraph.kernels.move.order import operands_in_order
from cgraph.kernels.pointwise.calls import pointwise_calls
from cgraph.kernels.target import Target
from cgraph.ops.leaf import as_node, dense
from cgraph.ops.shape import broadcast_to

ROWS_AXES = 4  # an image has as many axes, or more
NUMBERS = (bool, int, float, complex)
SMALL = frozenset(map(np.dtype, ("bool", "int8", "uint8", "int16", "uint16")))


class Pointwise(Op):
    """Base of ops whose result has one shape with all operands and is computed element by element."""

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        """Return the result's dtype from the operands' dtypes: the first one by default."""
        return dtypes[0]

    def scalar(self, m: Trace, *xs: Any) -> Any:
        """Return one element of the result, as traced values."""
        raise NotImplementedError(f"{self.name} defines no scalar function")

    def infer(self, *specs: Spec) -> Spec:
        if any(s.shape != specs[0].shape for s in specs):
            raise ShapeError(f"operands differ in shape: {', '.join(map(str, specs))}; broadcast them first")
        return Spec(specs[0].shape, self.dtype(*(s.dtype for s in specs)))

    def work(self, target: Target, *specs: Spec) -> Work:
        size = self.dtype(*(s.dtype for s in specs)).itemsize
        program = scalar_program(self, tuple(code_of(s.dtype) for s in specs))
        overwrites = tuple(i for i, s in enumerate(specs) if s.dtype.itemsize == size)

        def calls(out: View, *xs: View) -> list[Call]:
            first, xs = operands_in_order(target, out, xs)
            return first + pointwise_calls(target, program, out, *xs)

        return Work(calls, overwrites=overwrites, strided=True)

    def row_rule(self, *specs: Spec) -> RowRule | None:
        return rows_of_all(self, *(x.shape for x in specs))

    def cut(self, *specs: Spec) -> Cut | None:
        if specs[0].ndim < ROWS_AXES:
            return None
        return Cut((row_by_row(specs[0].shape[2]),) * len(specs), lambda first, stop: self)


@lru_cache(maxsize=4096)
def scalar_program(op: Pointwise, codes: tuple[str, ...]) -> Program:
    """Return the op's scalar function as instructions, for operands of these dtypes."""
    trace = Trace()
    result = op.scalar(trace, *(trace.load(i, code) for i, code in enumerate(codes)))
    want = code_of(op.dtype(*map(dtype_of_code, codes)))
    return trace.program(trace.cast(result, want))


def common_dtype(*xs: Any) -> np.dtype:
    """Promote as NumPy: arrays and nodes by dtype, half precision as float32, Python numbers by kind."""
    kinds = [kind_of(plain(x)) for x in xs]
    try:
        return np.result_type(*kinds)
    except TypeError as error:
        raise DTypeError(f"{error}; use astype to give the operands one dtype") from None


def kind_of(x: Any) -> Any:
    """Return an operand as promotion reads it: the dtype of computation, or the Python number."""
    return computing_dtype(resolve_dtype(x.dtype)) if isinstance(x, Node | np.ndarray | np.generic) else x


def plain(x: Any) -> Any:
    """Convert lists and other array-likes to arrays; return nodes, arrays and Python numbers unchanged."""
    return x if isinstance(x, Node | np.ndarray | np.generic | bool | int | float | complex) else np.asarray(dense(x))


def float_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which a real function of `dtype` is computed: NumPy's, with float32 for float16."""
    dtype = computing_dtype(dtype)
    if dtype.kind in "fc":
        return dtype
    return np.dtype("float32" if dtype in SMALL else "float64")


def common_float_dtype(*xs: Any) -> np.dtype:
    """Return the dtype in which a real function of several operands is computed: float32 for int16 with uint16."""
    kinds = [x if type(x) in NUMBERS else float_dtype(common_dtype(x)) for x in xs]
    return float_dtype(np.result_type(*kinds))


def quotient_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype in which NumPy divides: float64 for integers of any size."""
    dtype = computing_dtype(dtype)
    return dtype if dtype.kind in "fc" else np.dtype("float64")


def wide_node(x: Any) -> Node:
    """Return the operand as a node; in float32 if it has a storage dtype, whose kind is not that of a float."""
    x = as_node(x)
    return x.astype(computing_dtype(x.dtype))


def real_node(x: Any) -> Node:
    """Return the operand as a node. DTypeError if it is complex."""
    x = as_node(x)
    if x.dtype.kind == "c":
        raise DTypeError(
            f"{x.name} {x.spec} is complex, but this function is real; use np.real, np.imag or np.abs first"
        )
    return x


def real_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a complex number's parts; a real dtype itself."""
    return np.dtype(f"float{dtype.itemsize * 4}") if dtype.kind == "c" else dtype


def numeric_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of arithmetic that bool lacks: int8 for bool, else `dtype`."""
    return np.dtype("int8") if dtype.kind == "b" else dtype


def unify(*xs: Any, dtype: np.dtype | None = None) -> list[Node]:
    """Promote operands to one dtype and broadcast them to one shape, by explicit nodes."""
    dtype = dtype or common_dtype(*xs)
    nodes = [as_node(x, dtype) for x in xs]
    return broadcast(*[x if x.dtype == dtype else x.astype(dtype) for x in nodes])


def broadcast(*nodes: Node) -> list[Node]:
    """Broadcast operands to one shape, by explicit nodes."""
    shapes = {x.shape for x in nodes}
    if len(shapes) == 1:
        return list(nodes)
    try:
        shape = max(shapes, key=len) if len(shapes) == 2 and () in shapes else np.broadcast_shapes(*shapes)
    except ValueError:
        operands = ", ".join(f"{x.name} {x.spec}" for x in nodes)
        raise ShapeError(f"shapes do not broadcast together: {operands}; use equal lengths or 1, or reshape") from None
    return [x if x.shape == shape else broadcast_to(x, shape) for x in nodes]


def unary(op: Callable[[], Op], real: bool = False) -> Callable[[Any], Node]:
    """Return the public function of a pointwise op of one operand; `real` ops compute in a float dtype."""

    def function(x: Any) -> Node:
        x = as_node(x)
        return apply(op(), x.astype(float_dtype(x.dtype) if real else computing_dtype(x.dtype)))

    return publish(function, op)


def binary(
    op: Callable[[], Op], convert: Callable[[np.dtype], np.dtype] | None = None, real: bool = False
) -> Callable[[Any, Any], Node]:
    """Return the public function of a pointwise op of two operands.

    `convert` gives the dtype of computation; `real` ops compute in a float dtype.
    """

    def function(x: Any, y: Any) -> Node:
        dtype = common_float_dtype(x, y) if real else common_dtype(x, y)
        return apply(op(), *unify(x, y, dtype=convert(dtype) if convert else dtype))

    return publish(function, op)


def publish(function: Callable, op: Any) -> Callable:
    """Give a public function its op's name and documentation, and list it in OPS."""
    function.__name__ = function.__qualname__ = op().name
    function.__doc__ = op.__doc__
    return public(function)

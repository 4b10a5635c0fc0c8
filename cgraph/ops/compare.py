"""Comparison, logic, bit operations and selection: pointwise."""

from typing import Any, ClassVar

import numpy as np

from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, apply, public
from cgraph.ops.complex import imag, real
from cgraph.ops.family import Pointwise, binary, broadcast, common_dtype, plain, publish, unary, unify, wide_node
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import broadcast_to, zeros_like


class Comparison(Pointwise):
    """Base of comparisons of two operands of one dtype. The result is bool: False with a NaN, except True for !=."""

    takes_complex = True

    primitive: ClassVar[str] = ""
    numpy: ClassVar[Any] = None

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        return np.dtype(bool)

    def meaning(self, x, y):
        return type(self).numpy(x, y)

    def scalar(self, m, x, y):
        if x.dtype == "b1":
            x, y = m.cast(x, "u1"), m.cast(y, "u1")
        return m.apply(self.primitive, x, y)

    def grad(self, node, g):
        return None, None


def _comparison(name: str, primitive: str, numpy: Any, doc: str) -> Any:
    op = type(name, (Comparison,), {"primitive": primitive, "numpy": staticmethod(numpy), "__doc__": doc})
    compare = binary(op)

    def function(x: Any, y: Any) -> Node:
        if is_outside(x, y) or is_outside(y, x):
            x, y = plain(x), plain(y)
            numbers = (np.asarray(0 if is_array(v) else v, object) for v in (x, y))
            return broadcast_to(as_node(bool(numpy(*numbers))), np.shape(x) or np.shape(y))
        return compare(x, y)

    return publish(function, op)


def is_array(x: Any) -> bool:
    return hasattr(x, "dtype")


def is_outside(number: Any, x: Any) -> bool:
    """Return True for a Python integer that is greater or less than each value of the integer dtype of `x`.

    Bool and Python integers are compared as int64.
    """
    if type(number) is not int:
        return False
    x = plain(x)
    dtype = x.dtype if is_array(x) else np.asarray(0 if type(x) is int else x).dtype
    if dtype.kind not in "biu":
        return False
    limits = np.iinfo("int64" if dtype.kind == "b" else dtype)
    return not limits.min <= number <= limits.max


less = _comparison("Less", "lt", np.less, "x < y.")
less_equal = _comparison("LessEqual", "le", np.less_equal, "x <= y.")
greater = _comparison("Greater", "gt", np.greater, "x > y.")
greater_equal = _comparison("GreaterEqual", "ge", np.greater_equal, "x >= y.")
equal = _comparison("Equal", "eq", np.equal, "x == y.")
not_equal = _comparison("NotEqual", "ne", np.not_equal, "x != y.")


class Bitwise(Pointwise):
    """Base of bit operations on integers and logic on bool."""

    primitive: ClassVar[str] = ""
    numpy: ClassVar[Any] = None

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        if dtypes[0].kind in "fc":
            raise DTypeError(
                f"{self.name} needs integers or bool, not {dtypes[0]}; use a comparison, astype or bitcast first"
            )
        return dtypes[0]

    def meaning(self, *xs):
        return type(self).numpy(*xs)

    def scalar(self, m, *xs):
        return m.apply(self.primitive, *xs)


def _bitwise(name: str, primitive: str, numpy: Any, doc: str) -> Any:
    return type(name, (Bitwise,), {"primitive": primitive, "numpy": staticmethod(numpy), "__doc__": doc})


BitwiseAnd = _bitwise("BitwiseAnd", "and", np.bitwise_and, "The bits set in both x and y; logical and for bool.")
BitwiseOr = _bitwise("BitwiseOr", "or", np.bitwise_or, "The bits set in x or y; logical or for bool.")
BitwiseXor = _bitwise(
    "BitwiseXor", "xor", np.bitwise_xor, "The bits set in exactly one of x and y; logical xor for bool."
)
Invert = _bitwise("Invert", "not", np.invert, "All bits flipped; logical not for bool.")
bitwise_and, bitwise_or, bitwise_xor = binary(BitwiseAnd), binary(BitwiseOr), binary(BitwiseXor)
invert = unary(Invert)


class Shift(Bitwise):
    """Base of bit shifts. Shifting by the width of the dtype or more leaves the sign only."""

    def scalar(self, m, x, y):
        bits = 8 * int(x.dtype[1:])
        right = self.primitive == "shr"
        beyond = m.apply("shr", x, bits - 1) if right and x.dtype[0] == "i" else m.const(0, x.dtype)
        inside = y < bits if y.dtype[0] == "u" else (y < bits) & (y >= 0)
        shift = m.where(inside, y, m.const(0, y.dtype))
        return m.where(inside, m.apply(self.primitive, x, shift), beyond)


def _shift(name: str, primitive: str, numpy: Any, doc: str) -> Any:
    op = type(name, (Shift,), {"primitive": primitive, "numpy": staticmethod(numpy), "__doc__": doc})

    def function(x: Any, y: Any) -> Node:
        dtype = common_dtype(x, y)
        return apply(op(), *unify(x, y, dtype=np.dtype("int8") if dtype.kind == "b" else dtype))

    function.__name__, function.__doc__ = op().name, doc
    return public(function)


left_shift = _shift("LeftShift", "shl", np.left_shift, "x with its bits shifted left by y.")
right_shift = _shift("RightShift", "shr", np.right_shift, "x with its bits shifted right by y; the sign is kept.")


@public
def logical_not(x: Any) -> Node:
    """Return True where x is 0."""
    return invert(as_node(x).astype(bool))


@public
def logical_and(x: Any, y: Any) -> Node:
    """Return True where neither x nor y is 0."""
    return bitwise_and(as_node(x).astype(bool), as_node(y).astype(bool))


@public
def logical_or(x: Any, y: Any) -> Node:
    """Return True where x or y is not 0."""
    return bitwise_or(as_node(x).astype(bool), as_node(y).astype(bool))


@public
def logical_xor(x: Any, y: Any) -> Node:
    """Return True where exactly one of x and y is not 0."""
    return bitwise_xor(as_node(x).astype(bool), as_node(y).astype(bool))


class Isnan(Pointwise):
    """True where x is NaN."""

    takes_complex = True

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        return np.dtype(bool)

    def meaning(self, x):
        return np.isnan(x)

    def scalar(self, m, x):
        return m.is_nan(x) if x.dtype[0] in "fc" else m.ne(m.cast(x, "u1"), m.cast(x, "u1"))

    def grad(self, node, g):
        return (None,)


isnan = unary(Isnan)


@public
def isinf(x: Any) -> Node:
    """Return True where x is an infinity."""
    x = wide_node(x)
    if x.dtype.kind == "c":
        return isinf(real(x)) | isinf(imag(x))
    return abs(x) == np.inf if x.dtype.kind == "f" else isnan(x)


@public
def isfinite(x: Any) -> Node:
    """Return True where x is neither NaN nor an infinity."""
    x = wide_node(x)
    if x.dtype.kind == "c":
        return isfinite(real(x)) & isfinite(imag(x))
    return abs(x) < np.inf if x.dtype.kind == "f" else invert(isnan(x))


class Where(Pointwise):
    """x where the condition is True, else y."""

    takes_complex = True

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        condition, x, y = dtypes
        if condition.kind != "b" or x != y:
            raise DTypeError(
                f"condition is {condition}, x {x} and y {y}; pass a bool condition, and x and y of one dtype"
            )
        return x

    def meaning(self, condition, x, y):
        return np.where(condition, x, y)

    def scalar(self, m, condition, x, y):
        return m.where(condition, x, y)

    def grad(self, node, g):
        zero = zeros_like(g)
        return None, where(node.operands[0], g, zero), where(node.operands[0], zero, g)


@public
def where(condition: Any, x: Any, y: Any) -> Node:
    """Return x where the condition is True, else y. All three broadcast."""
    condition = as_node(condition).astype(bool)
    dtype = common_dtype(x, y)
    x, y = (as_node(v, dtype).astype(dtype) for v in (x, y))
    return apply(Where(), *broadcast(condition, x, y))

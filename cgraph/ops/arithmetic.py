"""Arithmetic, rounding, casts, minimum and maximum: pointwise, with NumPy's type promotion."""

import builtins
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from cgraph.dtypes.convert import code_of, computing_dtype, convert
from cgraph.errors import DTypeError
from cgraph.ir.graph import Node, Op, apply, public
from cgraph.ir.spec import dtype_of
from cgraph.ops.compare import equal, greater, less, where
from cgraph.ops.complex import conj, real
from cgraph.ops.family import Pointwise, binary, numeric_dtype, quotient_dtype, real_dtype, unary, unify, wide_node
from cgraph.ops.leaf import as_node
from cgraph.ops.shape import ones_like, zeros_like


class Numeric(Pointwise):
    """Base of pointwise ops on numbers; like NumPy, they refuse bool."""

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        if dtypes[0].kind == "b":
            raise DTypeError(
                f"{self.name} is not defined for bool; use logical_xor or logical_not, or convert with astype"
            )
        return dtypes[0]


class Add(Pointwise):
    """x + y; logical or for bool."""

    takes_complex = True

    def meaning(self, x, y):
        return np.add(x, y)

    def scalar(self, m, x, y):
        return x | y if x.dtype == "b1" else x + y

    def grad(self, node, g):
        return g, g


class Subtract(Numeric):
    """x - y."""

    takes_complex = True

    def meaning(self, x, y):
        return np.subtract(x, y)

    def scalar(self, m, x, y):
        return x - y

    def grad(self, node, g):
        return g, -g


class Multiply(Pointwise):
    """x * y; logical and for bool."""

    takes_complex = True

    def meaning(self, x, y):
        return np.multiply(x, y)

    def scalar(self, m, x, y):
        return x & y if x.dtype == "b1" else x * y

    def grad(self, node, g):
        x, y = node.operands
        return g * y, g * x


class TrueDivide(Pointwise):
    """x / y in a float dtype."""

    takes_complex = True

    def meaning(self, x, y):
        return np.true_divide(x, y)

    def scalar(self, m, x, y):
        return x / y

    def grad(self, node, g):
        y = node.operands[1]
        return g / y, -g * node / y


class FloorDivide(Numeric):
    """floor(x / y); for integers, 0 where y is 0."""

    def meaning(self, x, y):
        return np.floor_divide(x, y)

    def scalar(self, m, x, y):
        if x.dtype[0] != "f":
            quotient = m.div(x, y)
            return quotient - m.cast(_differs_in_sign(m, m.rem(x, y), y), x.dtype)
        rest = m.fmod(x, y)
        quotient = (x - rest) / y
        quotient = m.where(_differs_in_sign(m, rest, y), quotient - 1.0, quotient)
        whole = m.floor(quotient)
        whole = m.where(quotient - whole > 0.5, whole + 1.0, whole)
        whole = m.where(m.eq(quotient, 0.0), m.copysign(m.abs(quotient), x / y), whole)
        return m.where(m.eq(y, 0.0), x / y, whole)


class Remainder(Numeric):
    """x - y * floor_divide(x, y), with the sign of y; for integers, 0 where y is 0."""

    def meaning(self, x, y):
        return np.remainder(x, y)

    def scalar(self, m, x, y):
        if x.dtype[0] != "f":
            rest = m.rem(x, y)
            return rest + m.where(_differs_in_sign(m, rest, y), y, m.const(0, x.dtype))
        rest = m.fmod(x, y)
        rest = m.where(_differs_in_sign(m, rest, y), rest + y, rest)
        zero = m.eq(rest, 0.0) & m.ne(y, 0.0)
        return m.where(zero, m.copysign(m.const(0.0, x.dtype), y), rest)

    def grad(self, node, g):
        x, y = node.operands
        return g, -g * rint((x - node) / y)  # the integer quotient, whose own gradient is 0


def _differs_in_sign(m: Any, rest: Any, y: Any) -> Any:
    """Return True where the remainder is not 0 and its sign differs from that of y."""
    if y.dtype[0] == "u":
        return m.lt(rest, rest)
    return m.ne(rest, 0) & ((rest < 0) ^ (y < 0))


class Negative(Numeric):
    """-x."""

    takes_complex = True

    def meaning(self, x):
        return np.negative(x)

    def scalar(self, m, x):
        return -x

    def grad(self, node, g):
        return (-g,)


class Abs(Pointwise):
    """The absolute value; the smallest signed integer is returned unchanged, as in NumPy."""

    takes_complex = True

    def meaning(self, x):
        return np.abs(x)

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        return real_dtype(dtypes[0])

    def scalar(self, m, x):
        return x if x.dtype[0] in "bu" else m.abs(x)

    def grad(self, node, g):
        return (g * conj(sign(node.operands[0])),)


class Sign(Numeric):
    """-1, 0 or 1; for complex numbers x / abs(x). NaN stays NaN."""

    takes_complex = True

    def meaning(self, x):
        return np.sign(x)

    def scalar(self, m, x):
        if x.dtype[0] == "c":
            return m.apply("sign", x)
        signed = x if x.dtype[0] == "u" else m.where(x < 0, m.const(-1, x.dtype), x)
        return m.where(x > 0, m.const(1, x.dtype), m.where(m.eq(x, 0), m.const(0, x.dtype), signed))

    def grad(self, node, g):
        x = node.operands[0]
        if x.dtype.kind != "c":
            return (zeros_like(g),)
        size = abs(x)
        across = g - real(g * node).astype(g.dtype) * conj(
            node
        )  # the component that rotates x and leaves abs(x) unchanged
        return (where(equal(size, 0), zeros_like(g), across / where(equal(size, 0), ones_like(size), size)),)


class Square(Pointwise):
    """x * x."""

    takes_complex = True

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        return np.dtype("int8") if dtypes[0].kind == "b" else dtypes[0]

    def meaning(self, x):
        return np.square(x.astype(self.dtype(x.dtype)))

    def scalar(self, m, x):
        return m.cast(x, "i1") if x.dtype == "b1" else x * x

    def grad(self, node, g):
        return (g * 2.0 * node.operands[0],)


class Reciprocal(Pointwise):
    """1 / x."""

    takes_complex = True

    def meaning(self, x):
        return np.reciprocal(x)

    def scalar(self, m, x):
        return m.apply("reciprocal", x) if x.dtype[0] == "c" else m.const(1.0, x.dtype) / x

    def grad(self, node, g):
        return (-g * node * node,)


class ExtremeOfTwo(Pointwise):
    """Base of `Maximum` and `Minimum`.

    Fields
        share: fraction of the gradient that x receives where both are equal; y receives the rest
    """

    takes_complex = True

    share: float = 0.5


class Maximum(ExtremeOfTwo):
    """The larger of x and y; NaN if either is NaN."""

    def meaning(self, x, y):
        return np.maximum(x, y)

    def scalar(self, m, x, y):
        return x | y if x.dtype == "b1" else m.max(x, y)

    def grad(self, node, g):
        return _shared_gradient(node, g, self.share, less)


class Minimum(ExtremeOfTwo):
    """The smaller of x and y; NaN if either is NaN."""

    def meaning(self, x, y):
        return np.minimum(x, y)

    def scalar(self, m, x, y):
        return x & y if x.dtype == "b1" else m.min(x, y)

    def grad(self, node, g):
        return _shared_gradient(node, g, self.share, greater)


def _shared_gradient(node: Node, g: Node, share: float, is_behind: Callable[[Node, Node], Node]) -> tuple[Node, Node]:
    """Return the gradients of x and y: g for the operand selected, a share at ties, g for both where one is NaN."""
    x, y = node.operands
    nothing = zeros_like(g)

    def gradient(part: float, loses: Node) -> Node:
        at_tie = nothing if part == 0 else g if part == 1 else part * g
        return where(loses, nothing, where(equal(x, y), at_tie, g))

    return gradient(share, is_behind(x, y)), gradient(1 - share, is_behind(y, x))


class Rounding(Pointwise):
    """Base of ops that round to an integer; integers are returned unchanged."""

    primitive: ClassVar[str] = ""
    numpy: ClassVar[Any] = None

    def meaning(self, x):
        return x if x.dtype.kind not in "fc" else type(self).numpy(x)

    def scalar(self, m, x):
        return m.apply(self.primitive, x) if x.dtype[0] in "fc" else x

    def grad(self, node, g):
        return (zeros_like(g),)


def _rounding(name: str, primitive: str, numpy: Any, doc: str) -> type[Rounding]:
    return type(name, (Rounding,), {"primitive": primitive, "numpy": staticmethod(numpy), "__doc__": doc})


Floor = _rounding("Floor", "floor", np.floor, "The largest integer <= x.")
Ceil = _rounding("Ceil", "ceil", np.ceil, "The smallest integer >= x.")
Trunc = _rounding("Trunc", "trunc", np.trunc, "The integer part of x: rounding towards zero.")
Rint = _rounding(
    "Rint", "rint", np.rint, "The nearest integer, halves to even; complex numbers are rounded part by part."
)
Rint.takes_complex = True


@public
def round(x: Any, decimals: int = 0) -> Node:
    """Round to `decimals` decimal places, halves to even, as ``np.round``."""
    x = wide_node(x)
    if x.dtype.kind not in "fc":
        return x.astype("float32") if x.dtype.kind == "b" else x
    if decimals == 0:
        return rint(x)
    scale = 10.0 ** builtins.abs(decimals)
    return rint(x * scale) / scale if decimals > 0 else rint(x / scale) * scale


class Cast(Pointwise):
    """Conversion to another dtype: floats to integers truncate, integers wrap, bool is ``x != 0``.

    A float outside the range of the integer dtype gives the same result on every machine, that of x86-64 and NumPy. It
    is first converted to int32 (for int32 and dtypes of fewer than 32 bits) or to int64, where an unrepresentable value
    or NaN becomes the smallest integer; the low bits of that integer are the result. For uint64, a value from 2**63 on
    is converted to int64 after subtracting 2**63, and the highest bit of the result is flipped.

    Values are rounded to storage dtypes once, to nearest, ties to even. Their gradients are float32.
    """

    takes_complex = True

    to: np.dtype
    takes_storage = True

    def dtype(self, *dtypes: np.dtype) -> np.dtype:
        return self.to

    def meaning(self, x):
        x = convert(x, computing_dtype(x.dtype))
        return to_integers(x, self.to) if x.dtype.kind == "f" and self.to.kind in "iu" else convert(x, self.to)

    def scalar(self, m, x):
        return m.cast(x, code_of(self.to))

    def grad(self, node, g):
        source = computing_dtype(node.operands[0].dtype)
        if source.kind not in "fc" or computing_dtype(self.to).kind not in "fc":
            return (None,)
        return (real(g).astype(source) if source.kind == "f" else g.astype(source),)


def to_integers(x: np.ndarray, to: np.dtype) -> np.ndarray:
    """Convert floats to integers; see `Cast`."""
    if to == np.uint64:
        high = x >= 2.0**63
        low_bits = to_integers(np.where(high, x - x.dtype.type(2.0**63), x), np.dtype("int64")).astype(to)
        return np.where(high, low_bits ^ to.type(1 << 63), low_bits)
    first = np.dtype("int32" if to == np.int32 or to.itemsize < 4 else "int64")
    least = x.dtype.type(np.iinfo(first).min)
    return np.where((x >= least) & (x < -least), x, least).astype(first).astype(to)


@public
def astype(x: Any, dtype: Any) -> Node:
    """Return `x` in another dtype; `x` itself if it has that dtype already.

    Raises
        DTypeError: `x` is complex and `dtype` is real
    """
    x, dtype = as_node(x), dtype_of(dtype)
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        raise DTypeError(f"{x.name} {x.spec} is complex and {dtype} is real; use np.real, np.imag or np.abs first")
    return x if x.dtype == dtype else apply(Cast(dtype), x)


@public
def positive(x: Any) -> Node:
    """Return `x` itself."""
    return as_node(x)


@public
def clip(x: Any, a_min: Any = None, a_max: Any = None) -> Node:
    """Return `x` limited to [a_min, a_max]; either bound may be None. The gradient at a bound is 1, as in PyTorch."""
    return between(x, a_min, a_max, 1.0)


def between(x: Any, low: Any, high: Any, share: float) -> Node:
    """Return `x` limited to [low, high], either of which may be None; `share` is the gradient at a bound."""
    x = as_node(x)
    x = x if low is None else binary_node(Maximum(share), x, low)
    return x if high is None else binary_node(Minimum(share), x, high)


def binary_node(op: Op, x: Any, y: Any) -> Node:
    """Apply an op to two operands, promoted to one dtype and broadcast to one shape."""
    return apply(op, *unify(x, y))


add, subtract, multiply = binary(Add), binary(Subtract), binary(Multiply)
true_divide = binary(TrueDivide, quotient_dtype)
floor_divide, remainder = binary(FloorDivide, numeric_dtype), binary(Remainder, numeric_dtype)
maximum, minimum = binary(Maximum), binary(Minimum)
negative, abs, sign, square = unary(Negative), unary(Abs), unary(Sign), unary(Square)
reciprocal = unary(Reciprocal, real=True)
floor, ceil, trunc, rint = unary(Floor), unary(Ceil), unary(Trunc), unary(Rint, real=True)
divide = true_divide

"""Complex numbers in registers: one integer of 64 or 128 bits each, so that they are moved like any element.

Arithmetic reads the bits as twice as many real numbers, with the two parts adjacent; splitting and joining parts is a
shuffle. Functions beyond sums and products are formulas (`cgraph.kernels.complex_math`).
"""

from typing import Any

from cgraph.kernels.expression import part_of
from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.values import Val, vector_type

Builder = Any


def parts(k: Builder, z: Val) -> Val:
    """Return real and imaginary parts alternating: twice as many lanes."""
    part, lanes = part_of(z.dtype), 2 * max(z.lanes, 1)
    return Val(k, k.b.bitcast(z.v, vector_type(part, lanes)), part, lanes)


def join_parts(k: Builder, x: Val, lanes: int) -> Val:
    """Return the complex numbers of alternating parts."""
    dtype = f"c{2 * int(x.dtype[1:])}"
    return Val(k, k.b.bitcast(x.v, vector_type(dtype, lanes)), dtype, lanes)


def part(index: int):
    """The emitter of the real (0) or imaginary (1) parts."""

    def emit(k: Builder, z: Val) -> Val:
        x = parts(k, z)
        return shuffle_lanes(k, x, x, range(index, x.lanes, 2)) if z.lanes else k.lane(x, index)

    return emit


real, imag = part(0), part(1)


def pair(k: Builder, re: Val, im: Val) -> Val:
    """Return complex numbers from their real and imaginary parts."""
    if re.lanes:
        order = [i for n in range(re.lanes) for i in (n, n + re.lanes)]
        return join_parts(k, shuffle_lanes(k, re, im, order), re.lanes)
    both = ir.Constant(vector_type(re.dtype, 2), ir.Undefined)
    for i, x in enumerate((re, im)):
        both = k.b.insert_element(both, x.v, ir.Constant(ir.IntType(32), i))
    return join_parts(k, Val(k, both, re.dtype, 2), 0)


def shuffle_lanes(k: Builder, x: Val, y: Val, order: Any) -> Val:
    """Return lanes of `x`, and after them those of `y`, in this order."""
    mask = ir.Constant(ir.VectorType(ir.IntType(32), len(order)), list(order))
    return Val(k, k.b.shuffle_vector(x.v, y.v, mask), x.dtype, len(order))


def arithmetic(k: Builder, name: str, x: Val, y: Val) -> Val:
    """Return the result of ``add``, ``sub`` or ``mul``."""
    if name != "mul":
        return join_parts(k, k.binary(name, parts(k, x), parts(k, y)), x.lanes)
    a, b, c, d = real(k, x), imag(k, x), real(k, y), imag(k, y)
    return pair(k, a * c - b * d, a * d + b * c)

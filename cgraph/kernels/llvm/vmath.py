"""Every primitive of a scalar program (`cgraph.kernels.expression`) on values in registers, scalar or vector.

``+ - * /``, ``sqrt``, comparisons and conversions are IEEE operations without any fast-math flag, so a fused kernel
returns the bits of the separate ones, and of NumPy. The transcendental functions are in the files imported here, each
with its measured error. Rare or exact functions (``fmod``, ``gamma``, ``lgamma``) call the C library lane by lane;
those functions are thread-safe.
"""

from collections.abc import Callable

from cgraph.kernels.expression import Program, constant_of
from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val, nbytes_of
from cgraph.kernels.llvm.varc import acos, asin, atan, atan2
from cgraph.kernels.llvm.vcomplex import imag, pair, real
from cgraph.kernels.llvm.verf import erf, erfc, ndtr
from cgraph.kernels.llvm.vexp import exp, exp2, expm1, sigmoid
from cgraph.kernels.llvm.vgamma import gamma, lgamma
from cgraph.kernels.llvm.vhyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from cgraph.kernels.llvm.vinteger import absolute, common_divisor, divide, power, remainder, shift_left, shift_right
from cgraph.kernels.llvm.vlog import log, log1p, log2, log10
from cgraph.kernels.llvm.vpow import compare_hypot, hypot, pow_
from cgraph.kernels.llvm.vtrig import cos, sin, tan

Emit = Callable[..., Val]
ORDERS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def evaluate(k: Builder, program: Program, load: Callable[[int], Val], lanes: int) -> list[Val]:
    """The value of every instruction; `load` gives operand i with `lanes` lanes."""
    values: list[Val] = []
    for name, dtype, *operands in program:
        if name == "load":
            values.append(load(operands[0]))
        elif name == "const":
            values.append(k.const(constant_of((name, dtype, *operands)), dtype, lanes))
        elif name in ORDERS and program[operands[0]][0] == "hypot":  # if nothing else reads the size, LLVM drops it
            x, y = program[operands[0]][2:]
            values.append(compare_hypot(k, ORDERS[name], values[x], values[y], values[operands[1]]))
        else:
            values.append(primitive(k, name, dtype, *(values[i] for i in operands)))
    return values


def primitive(k: Builder, name: str, dtype: str, *xs: Val) -> Val:
    """One primitive; `dtype` is its result's."""
    if name == "select":
        return k.select(*xs)
    if name == "cast":
        return to_integer(k, xs[0], dtype) if xs[0].is_float and dtype[0] in "iu" else k.cast(xs[0], dtype)
    if name == "bits":
        return k.bits(xs[0], dtype)
    if name in COMPLEX:
        return COMPLEX[name](k, *xs)
    if xs[0].is_float:
        return FLOAT[name](k, *xs)
    return (INTEGER if name in INTEGER else FLOAT)[name](k, *xs)


def to_integer(k: Builder, x: Val, dtype: str) -> Val:
    """Convert a float to an integer; for floats outside the dtype's range see `cgraph.ops.arithmetic.Cast`."""
    if dtype == "u8":
        high, top = x >= 2.0**63, k.const(1 << 63, "u8", x.lanes)
        low_bits = k.cast(to_integer(k, k.select(high, x - 2.0**63, x), "i8"), "u8")
        return k.select(high, low_bits ^ top, low_bits)
    first = "i4" if dtype == "i4" or nbytes_of(dtype) < 4 else "i8"
    least = -(2.0 ** (8 * nbytes_of(first) - 1))
    is_held = (x >= least) & (x < -least)
    return k.cast(k.cast(k.select(is_held, x, least), first), dtype)


def intrinsic(name: str) -> Emit:
    """A primitive that is an LLVM intrinsic."""
    return lambda k, *xs: k.intrinsic(name, *xs)


def comparison(sign: str) -> Emit:
    return lambda k, x, y: k.compare(sign, x, y)


def smallest(k: Builder, x: Val, y: Val) -> Val:
    """The smaller one; NaN when either is."""
    return k.select((x < y) | k.is_nan(x), x, y) if x.is_float else k.smaller(x, y)


def largest(k: Builder, x: Val, y: Val) -> Val:
    """The larger one; NaN when either is."""
    return k.select((x > y) | k.is_nan(x), x, y) if x.is_float else k.larger(x, y)


def same(k: Builder, x: Val) -> Val:
    return x


def never(k: Builder, x: Val) -> Val:
    """False in every lane: an integer is never NaN."""
    return k.const(0, "b1", x.lanes)


COMPLEX: dict[str, Emit] = {"real": real, "imag": imag, "pair": pair}

FLOAT: dict[str, Emit] = {
    "add": lambda k, x, y: x + y,
    "sub": lambda k, x, y: x - y,
    "mul": lambda k, x, y: x * y,
    "div": lambda k, x, y: x / y,
    "and": lambda k, x, y: x & y,
    "or": lambda k, x, y: x | y,
    "xor": lambda k, x, y: x ^ y,
    "neg": lambda k, x: -x,
    "not": lambda k, x: ~x,
    "rem": lambda k, x, y: x % y,
    "fmod": lambda k, x, y: x % y,
    **{name: comparison(sign) for name, sign in ORDERS.items()},
    "eq": comparison("=="),
    "ne": comparison("!="),
    "is_nan": lambda k, x: k.is_nan(x),
    "min": smallest,
    "max": largest,
    "abs": intrinsic("fabs"),
    "floor": intrinsic("floor"),
    "ceil": intrinsic("ceil"),
    "trunc": intrinsic("trunc"),
    "rint": intrinsic("rint"),
    "sqrt": intrinsic("sqrt"),
    "copysign": intrinsic("copysign"),
    "exp": exp,
    "exp2": exp2,
    "expm1": expm1,
    "sigmoid": sigmoid,
    "tanh": tanh,
    "sinh": sinh,
    "cosh": cosh,
    "asinh": asinh,
    "acosh": acosh,
    "atanh": atanh,
    "log": log,
    "log2": log2,
    "log10": log10,
    "log1p": log1p,
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "asin": asin,
    "acos": acos,
    "atan": atan,
    "atan2": atan2,
    "pow": pow_,
    "hypot": hypot,
    "erf": erf,
    "erfc": erfc,
    "ndtr": ndtr,
    "gamma": gamma,
    "lgamma": lgamma,
}

INTEGER: dict[str, Emit] = {
    "is_nan": never,
    "abs": absolute,
    "floor": same,
    "ceil": same,
    "trunc": same,
    "rint": same,
    "div": divide,
    "rem": remainder,
    "fmod": remainder,
    "pow": power,
    "shl": shift_left,
    "shr": shift_right,
    "gcd": common_divisor,
}

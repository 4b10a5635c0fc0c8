"""Complex primitives in real arithmetic: formulas that append to a scalar program.

Each formula takes the program under construction (`cgraph.kernels.expression.Trace`) and pairs ``re, im``. Special
values follow C99's Annex G, as in NumPy: infinities, NaN, and the side of a branch cut by the sign of zero. Division is
Smith's (CACM 5, 1962), as in NumPy; inverse functions and `tanh` are Kahan's ("Branch cuts for complex elementary
functions", 1987); `log` keeps the bits that cancel near the unit circle. All are within 4 ulp of the magnitude, except
`log1p` where ``abs(1 + z)`` is nearly 1 far from 0, and powers, whose error grows with the size of ``w log z``.
"""

from collections.abc import Callable
from math import inf, nan, pi
from math import log as ln
from typing import Any

Formula = Callable[..., Any]
# by the dtype of a part: scale factors where a square would leave the range, and the sizes from which they apply
RANGE = {"f4": (2.0**-10, 2.0**60, 2.0**100, 2.0**-60), "f8": (2.0**-10, 2.0**200, 2.0**900, 2.0**-500)}
FAR = {"f4": 11.0, "f8": 22.0}  # from where on tanh of the real part is 1
LARGE = {"f4": 80.0, "f8": 700.0}  # exp of more may overflow before it is multiplied
HIGH = {"f4": ("u4", 0xFFFFF000), "f8": ("u8", 0xFFFFFFFFF8000000)}  # bits of half a number, whose square is exact


def mul(m: Any, z: Any, w: Any) -> Any:
    return m.pair(z.re * w.re - z.im * w.im, z.re * w.im + z.im * w.re)


def div(m: Any, z: Any, w: Any) -> Any:
    wide = m.abs(w.re) >= m.abs(w.im)
    large, small = m.where(wide, w.re, w.im), m.where(wide, w.im, w.re)
    zero = m.eq(w.re, 0.0) & m.eq(w.im, 0.0)
    ratio = small / m.where(zero, 1.0, large)
    scale = 1.0 / (large + small * ratio)
    first, second = m.where(wide, z.re, z.im), m.where(wide, z.im, z.re)
    re = (first + second * ratio) * scale
    im = m.where(wide, second - first * ratio, first * ratio - second) * scale
    return m.pair(m.where(zero, z.re / m.abs(w.re), re), m.where(zero, z.im / m.abs(w.re), im))


def reciprocal(m: Any, z: Any) -> Any:
    wide = m.abs(z.re) >= m.abs(z.im)
    large, small = m.where(wide, z.re, z.im), m.where(wide, z.im, z.re)
    ratio = small / large
    scale = large + small * ratio
    one, other = 1.0 / scale, ratio / scale
    return m.pair(m.where(wide, one, other), m.where(wide, -other, -one))


def absolute(m: Any, z: Any) -> Any:
    return m.hypot(z.re, z.im)


def sign(m: Any, z: Any) -> Any:
    """Return ``z / abs(z)``: on the axes if one part is infinite, NaN if both are, 0 for 0."""
    size = absolute(m, z)
    none, far = m.eq(size, 0.0), m.eq(size, inf)
    safe = m.where(none, 1.0, size)

    def part(x: Any, other: Any) -> Any:
        end = m.where(m.eq(m.abs(x), inf), m.copysign(1.0, x), 0.0)
        end = m.where(m.eq(m.abs(other), inf) & m.eq(m.abs(x), inf), nan, end)
        return m.where(none, 0.0, m.where(far, end, x / safe))

    return m.pair(part(z.re, z.im), part(z.im, z.re))


def is_nan(m: Any, z: Any) -> Any:
    return m.is_nan(z.re) | m.is_nan(z.im)


def is_finite(m: Any, x: Any) -> Any:
    return m.abs(x) < inf


def comparison(strict: bool, swap: bool = False) -> Formula:
    """Return a comparison by real parts, then imaginary parts; as in NumPy, NaNs are unordered."""

    def formula(m: Any, z: Any, w: Any) -> Any:
        z, w = (w, z) if swap else (z, w)
        is_ordered = ~(m.is_nan(z.im) | m.is_nan(w.im))
        last = z.im < w.im if strict else z.im <= w.im
        return ((z.re < w.re) & is_ordered) | (m.eq(z.re, w.re) & last)

    return formula


def extreme(wins: str) -> Formula:
    """Return the formula of the larger or smaller value; the first NaN wins."""
    return lambda m, z, w: m.where(is_nan(m, z) | (~is_nan(m, w) & m.apply(wins, z, w)), z, w)


# -- exponentials -----------------------------------------------------------------------------------------------------


def times_exp(m: Any, x: Any, y: Any) -> Any:
    """Return ``exp(x) * y``, also where exp alone overflows."""
    half = m.exp(x * 0.5)
    return m.where(x > LARGE[x.dtype], half * y * half, m.exp(x) * y)


def exp(m: Any, z: Any) -> Any:
    x, y = z.re, z.im
    lost = ~is_finite(m, y) & m.eq(m.abs(x), inf)
    size = m.where(x > 0, x, 0.0)
    re = m.where(lost, size, times_exp(m, x, m.cos(y)))
    im = m.where(lost & (x < 0), 0.0, times_exp(m, x, m.sin(y)))
    return m.pair(m.where(m.eq(y, 0.0), m.exp(x), re), m.where(m.eq(y, 0.0), y, im))


def expm1(m: Any, z: Any) -> Any:
    x, y = z.re, z.im
    half = m.sin(y * 0.5)
    whole = exp(m, z)
    near = m.expm1(x) * m.cos(y) - 2.0 * half * half
    on_axis = m.expm1(x) + 0.0  # 0 of both zeros
    re = m.where(m.eq(y, 0.0), on_axis, m.where(m.abs(x) < 30.0, near, whole.re - 1.0))
    return m.pair(re, whole.im)


def sinh_parts(m: Any, x: Any, y: Any) -> tuple[Any, Any]:
    """Return ``sinh(x) cos(y), cosh(x) sin(y)``."""
    c, s, size = m.cos(y), m.sin(y), m.abs(x)
    far = size > LARGE[x.dtype]
    re = m.where(far, m.copysign(1.0, x) * times_exp(m, size, c * 0.5), m.sinh(x) * c)
    im = m.where(far, times_exp(m, size, s * 0.5), m.cosh(x) * s)
    re = m.where(m.eq(x, 0.0) | (m.eq(size, inf) & ~is_finite(m, y)), x, re)
    re = m.where(m.eq(y, 0.0), m.sinh(x), re)
    return re, m.where(m.eq(y, 0.0), y, im)


def sinh(m: Any, z: Any) -> Any:
    return m.pair(*sinh_parts(m, z.re, z.im))


def cosh(m: Any, z: Any) -> Any:
    x, y = z.re, z.im
    c, s, size = m.cos(y), m.sin(y), m.abs(x)
    far = size > LARGE[x.dtype]
    re = m.where(far, times_exp(m, size, c * 0.5), m.cosh(x) * c)
    im = m.where(far, m.copysign(1.0, x) * times_exp(m, size, s * 0.5), m.sinh(x) * s)
    re = m.where(m.eq(size, inf) & ~is_finite(m, y), size, re)
    re = m.where(m.eq(y, 0.0), m.cosh(x), re)
    zero = m.copysign(0.0, x) * m.copysign(1.0, y)
    return m.pair(re, m.where(m.eq(x, 0.0) | m.eq(y, 0.0), zero, im))


def tanh(m: Any, z: Any) -> Any:
    x, y = z.re, z.im
    t, s = m.tan(y), m.sinh(x)
    beta, rho = 1.0 + t * t, m.sqrt(1.0 + s * s)
    below = 1.0 + beta * s * s
    far = m.abs(x) > FAR[x.dtype]
    one = m.copysign(1.0, x)
    tail = m.where(is_finite(m, y), 4.0 * m.sin(y) * m.cos(y) * m.exp(-2.0 * m.abs(x)), nan)
    tail = m.where(m.eq(m.abs(x), inf) & ~is_finite(m, y), m.copysign(0.0, y), tail)
    re = m.where(far & (is_finite(m, y) | m.eq(m.abs(x), inf)), one, beta * rho * s / below)
    re = m.where(m.eq(x, 0.0), x, m.where(m.eq(y, 0.0), m.tanh(x), re))
    return m.pair(re, m.where(m.eq(y, 0.0), y, m.where(far, tail, t / below)))


def rotate(f: Formula) -> Formula:
    """Return ``-i f(i z)``: it turns sinh into sin, tanh into tan, arsinh into arcsin, and vice versa."""

    def formula(m: Any, z: Any) -> Any:
        value = f(m, m.pair(-z.im, z.re))
        return m.pair(value.im, -value.re)

    return formula


def cos(m: Any, z: Any) -> Any:
    return cosh(m, m.pair(-z.im, z.re))


# -- logarithms, roots, powers ----------------------------------------------------------------------------------------


def safe_factor(m: Any, size: Any, whole: float = 1.0) -> Any:
    """Return a factor that brings a size into the range in which squares are safe, to the power of `whole`."""
    down, up, most, least = (v**whole if i < 2 else v for i, v in enumerate(RANGE[size.dtype]))
    return m.where(size > most, down, m.where(size < least, up, m.const(1.0, size.dtype)))


def log(m: Any, z: Any) -> Any:
    x, y = m.abs(z.re), m.abs(z.im)
    large, small = m.where(x > y, x, y), m.where(x > y, y, x)
    factor = safe_factor(m, large)
    far = m.log(m.hypot(x * factor, y * factor)) - m.log(factor)
    near = m.log1p(square_less_one(m, large, small)) * 0.5
    close = (large > 0.5) & (large < 2.0) & (small < 2.0)
    return m.pair(m.where(close, near, far), m.atan2(z.im, z.re))


def square_less_one(m: Any, large: Any, small: Any) -> Any:
    """Return ``large**2 + small**2 - 1`` with the bits that cancel near the unit circle."""
    bits, mask = HIGH[large.dtype]

    def square(x: Any) -> tuple[Any, Any]:
        high = m.bits(m.bits(x, bits) & m.const(mask, bits), x.dtype)
        low = x - high
        return high * high, 2.0 * high * low + low * low

    (first, rest), (second, more) = square(large), square(small)
    part = m.where(second > 0.25, m.const(0.5, large.dtype), 0.0)
    return ((first - (1.0 - part)) + (second - part)) + (rest + more)


def log1p(m: Any, z: Any) -> Any:
    x, y = z.re, z.im
    whole = log(m, m.pair(1.0 + x, y))
    near = m.log1p(x * (2.0 + x) + y * y) * 0.5
    return m.pair(m.where((m.abs(x) < 0.5) & (m.abs(y) < 0.5), near, whole.re), whole.im)


def log_of_base(base: float) -> Formula:
    def formula(m: Any, z: Any) -> Any:
        value = log(m, z)
        return m.pair(value.re * (1 / ln(base)), value.im * (1 / ln(base)))

    return formula


def sqrt(m: Any, z: Any) -> Any:
    x, y = m.abs(z.re), m.abs(z.im)
    large = m.where(x > y, x, y)
    factor = safe_factor(m, large)
    root = m.sqrt((x * factor + m.hypot(x * factor, y * factor)) * 0.5) / safe_factor(m, large, 0.5)
    other = m.where(m.eq(x, 0.0) & m.eq(y, 0.0), 0.0, y / (2.0 * root))
    left = z.re < 0
    re, im = m.where(left, other, root), m.copysign(m.where(left, root, other), z.im)
    return m.pair(m.where(m.eq(y, inf), y, re), m.where(m.eq(y, inf), z.im, im))


def power(m: Any, z: Any, w: Any) -> Any:
    """Return ``exp(w log z)``; 1 for w = 0. 0 ** w is 0 for a positive real part of w, else NaN."""
    value = exp(m, mul(m, w, log(m, z)))
    empty = m.eq(z.re, 0.0) & m.eq(z.im, 0.0)
    at_zero = m.where(w.re > 0, m.const(0.0, z.re.dtype), nan)
    none = m.eq(w.re, 0.0) & m.eq(w.im, 0.0)
    re = m.where(none, 1.0, m.where(empty, at_zero, value.re))
    return m.pair(re, m.where(none, 0.0, m.where(empty, at_zero, value.im)))


# -- inverse functions ------------------------------------------------------------------------------------------------


def roots(m: Any, z: Any) -> tuple[Any, Any]:
    """Return the square roots of 1 - z and 1 + z."""
    return sqrt(m, m.pair(1.0 - z.re, -z.im)), sqrt(m, m.pair(1.0 + z.re, z.im))


def is_infinite(m: Any, z: Any) -> Any:
    """Return True where a part is infinite."""
    return m.eq(m.abs(z.re), inf) | m.eq(m.abs(z.im), inf)


def asin(m: Any, z: Any) -> Any:
    x, y = z.re, z.im
    a, b = roots(m, z)
    far = is_infinite(m, z)
    re = m.where(far, m.atan2(x, m.abs(y)), m.atan2(x, a.re * b.re - a.im * b.im))
    im = m.where(far, m.copysign(inf, y), m.asinh(a.re * b.im - a.im * b.re))
    return m.pair(m.where(m.eq(x, 0.0), x, re), im)


def acos(m: Any, z: Any) -> Any:
    x, y = z.re, z.im
    a, b = roots(m, z)
    far = is_infinite(m, z)
    re = m.where(far, m.atan2(m.abs(y), x), 2.0 * m.atan2(a.re, b.re))
    im = m.where(far, m.copysign(inf, -y), m.asinh(b.re * a.im - b.im * a.re))
    return m.pair(m.where(m.eq(x, 0.0), pi / 2, re), im)


def acosh(m: Any, z: Any) -> Any:
    angle = acos(m, z)
    return m.pair(m.abs(angle.im), m.copysign(angle.re, z.im))


def atanh(m: Any, z: Any) -> Any:
    x, y, size = m.abs(z.re), m.abs(z.im), m.hypot(z.re, z.im)
    less, more = m.hypot(1.0 - x, y), m.hypot(1.0 + x, y)
    near = m.log(more / less) * 0.5
    usual = m.log1p(4.0 * x / (less * less)) * 0.25
    large = size > 2.0 ** (30 if x.dtype == "f4" else 60)
    re = m.where(large, x / size / size, m.where(less < 0.5, near, usual))
    re = m.where(is_infinite(m, z) | m.eq(x, 0.0), 0.0, re)
    im = m.atan2(2.0 * y, (1.0 - x) * (1.0 + x) - y * y) * 0.5
    im = m.where(large & ~m.is_nan(y), pi / 2, im)
    return m.pair(m.copysign(re, z.re), m.copysign(m.where(m.eq(y, 0.0) & (x < 1.0), y, im), z.im))


def part_by_part(name: str) -> Formula:
    return lambda m, *zs: m.pair(m.apply(name, *(z.re for z in zs)), m.apply(name, *(z.im for z in zs)))


FORMULAS: dict[str, Formula] = {
    "add": part_by_part("add"), "sub": part_by_part("sub"), "neg": part_by_part("neg"), "rint": part_by_part("rint"),
    "mul": mul, "div": div, "reciprocal": reciprocal, "abs": absolute, "sign": sign, "is_nan": is_nan,
    "eq": lambda m, z, w: m.eq(z.re, w.re) & m.eq(z.im, w.im),
    "ne": lambda m, z, w: m.ne(z.re, w.re) | m.ne(z.im, w.im),
    "lt": comparison(strict=True), "le": comparison(strict=False),
    "gt": comparison(strict=True, swap=True), "ge": comparison(strict=False, swap=True),
    "min": extreme("le"), "max": extreme("ge"),
    "exp": exp, "exp2": lambda m, z: exp(m, m.pair(z.re * ln(2), z.im * ln(2))), "expm1": expm1,
    "log": log, "log2": log_of_base(2), "log10": log_of_base(10), "log1p": log1p, "sqrt": sqrt, "pow": power,
    "sin": rotate(sinh), "cos": cos, "tan": rotate(tanh), "sinh": sinh, "cosh": cosh, "tanh": tanh,
    "asin": asin, "acos": acos, "atan": rotate(atanh), "asinh": rotate(asin), "acosh": acosh, "atanh": atanh,
}  # fmt: skip
"""Formula of each primitive for complex numbers."""

"""Replacements of C library functions for devices without one: rare arguments of mathematical functions.

Sine, cosine, tangent of large arguments: ``x / pi`` modulo 2 to 127 fractional bits, by a window of 192 bits of 1/pi
(Payne and Hanek 1983); no float64 is nearer to a multiple of pi/2 than 2**-62 of it, so at least 64 bits of the
remainder are left. Within 2 ulp (tan 4).

gamma and lgamma: Stirling's series from 8 on; below, the recurrence to [1.5, 2.5] and a polynomial whose zero is taken
out; reflection below zero. gamma within 16 ulp; lgamma within 8 ulp for positive numbers, and within 16 ulp of the
larger of the result and 1 for negative ones.

fmod: long division of the mantissas, a bit at a time; exact.

All functions here are of float64; float32 is computed in float64 (`cgraph.kernels.llvm.vfloat.libm`).
Source: NIST Digital Library of Mathematical Functions, 5.5.1, 5.5.3, 5.11.1.
"""

import math
from collections.abc import Callable
from math import inf, nan, pi

from cgraph.kernels.llvm import ir
from cgraph.kernels.llvm.build import INDEX, POINTER, Builder
from cgraph.kernels.llvm.flow import fold
from cgraph.kernels.llvm.values import Ptr, Val
from cgraph.kernels.llvm.vexp import exp
from cgraph.kernels.llvm.vfloat import flip_sign, horner, magnitude, sign_bit, wide
from cgraph.kernels.llvm.vlog import log
from cgraph.kernels.llvm.vpow import hypot, pow_
from cgraph.kernels.llvm.vtrig import SIN

MANTISSA = (1 << 52) - 1
POINT = 1216  # fractional bits of the table
# floor(2**POINT / pi), its lowest 64 bits first
ONE_BY_PI = (
    0x2B0198237E3DB5D5, 0x35FDAFD88FC6AE84, 0x9E839CFBC5294975, 0xBA93DD63F5F2F8BD, 0xA7A31FB34F2FF516,
    0xB69B3F6793E584DB, 0xF79788C5AD05368F, 0x8FFC4BFFEF02CC07, 0x4E422FC5DEFC941D, 0x9CC8EB1CC1A99CFA,
    0x74CE38135A2FBF20, 0x74411AFA975DA242, 0x7F0EF58E5894D39F, 0x0324977504E8C90E, 0xDB92371D2126E970,
    0xFF28B1D5EF5DE2B0, 0x6DB14ACC9E21C820, 0xFE13ABE8FA9A6EE0, 0x517CC1B727220A94, 0, 0,
)  # fmt: skip
PI = (3.141592653589793, 1.2246467991473532e-16)
# lgamma(2 + d) / d, |d| <= 0.5
LGAMMA = (
    0.42278433509846713, 0.3224670334241133, -0.06735230105319576, 0.020580808427765964, -0.007385551028925169,
    0.002890510331841423, -0.0011927539013300986, 0.0005096694951182602, -0.00022315497225216895,
    9.94579441248032e-05, -4.4923772008200175e-05, 2.050354435871367e-05, -9.456078496079498e-06,
    4.393519385466499e-06, -1.9748275013727125e-06, 8.999048033758574e-07, -5.80611092107107e-07,
    2.9770316683175117e-07,
)  # fmt: skip
# of Stirling's series: sum of c / z**(2 i + 1)
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
ENDLESS = 190.0  # gamma is infinite from here on, and 1 / gamma is 0
FAR = 8.0  # the series is exact to the last bits from here on


def sin(k: Builder, x: Val) -> Val:
    """Sine of a large number; NaN of an infinity."""
    return flip_sign(k, sine_of_turns(k, half_turns(k, x)), sign_bit(k, x)) + (x - x)


def cos(k: Builder, x: Val) -> Val:
    """Cosine of a large number; NaN of an infinity."""
    return sine_of_turns(k, half_turns(k, x) + QUARTER) + (x - x)


def tan(k: Builder, x: Val) -> Val:
    """Tangent of a large number; NaN of an infinity."""
    turns = half_turns(k, x)
    return flip_sign(k, sine_of_turns(k, turns) / sine_of_turns(k, turns + QUARTER), sign_bit(k, x)) + (x - x)


QUARTER = 1 << 126  # pi/2, where `half_turns` has 2**127 for pi


def half_turns(k: Builder, x: Val) -> Val:
    """Return ``|x| / pi`` modulo 2, times 2**127, in 128 bits, for finite ``|x| >= 2**15``; else any number."""
    bits = k.bits(x, "u8") & ((1 << 63) - 1)
    mantissa = k.cast((bits & MANTISSA) | (MANTISSA + 1), "u16")
    exponent = k.larger(k.smaller(k.bits(bits >> 52, "i8"), 2046), 1023 + 15) - 1075
    start = k.bits(POINT - 191 - exponent, "u8")
    word, shift = k.bits(start >> 6, "i8"), start & 63
    words = [one_by_pi(k).load(word + i) for i in range(4)]
    low, middle, high = (extract_word(k, a, b, shift) for a, b in zip(words, words[1:]))
    return ((mantissa * low) >> 64) + mantissa * middle + ((mantissa * high) << 64)


def extract_word(k: Builder, low: Val, high: Val, by: Val) -> Val:
    """The 64 bits from bit `by` on of two words."""
    both = (k.cast(high, "u16") << 64) | k.cast(low, "u16")
    return k.cast(k.cast(both >> k.cast(by, "u16"), "u8"), "u16")


def one_by_pi(k: Builder) -> Ptr:
    """Return the constant `ONE_BY_PI` of the module."""
    words = k.module.globals.get("one_by_pi")
    if words is None:
        kind = ir.ArrayType(INDEX, len(ONE_BY_PI))
        words = ir.GlobalVariable(k.module, kind, "one_by_pi", addrspace=1 if k.target.code == "ptx" else 0)
        words.is_constant, words.initializer = True, ir.Constant(kind, ONE_BY_PI)
    return Ptr(k, k.b.addrspacecast(words, POINTER) if k.target.code == "ptx" else words, "u8")


def sine_of_turns(k: Builder, turns: Val) -> Val:
    """Return ``sin(pi * turns / 2**127)``: subtract the nearest multiple of pi, then use the polynomial of `vtrig`."""
    odd = (turns + QUARTER) >> 127
    rest = k.bits(turns - (odd << 127), "i16")
    negative = rest < 0
    size = k.bits(k.select(negative, -rest, rest), "u16")
    zeros = leading_zeros(k, size)
    top = k.cast((size << zeros) >> 65, "u8")  # 63 bits, the highest set
    fraction = k.cast(k.bits(top, "i8"), "f8") * scale_of(k, zeros)
    r = k.fma(fraction, PI[0], fraction * PI[1])
    z = r * r
    y = k.fma(horner(k, z, SIN["f8"]) * z, r, r)
    flipped = (k.cast(odd, "u8") ^ k.cast(negative, "u8")) << 63
    return flip_sign(k, y, k.bits(flipped, "i8"))


def scale_of(k: Builder, zeros: Val) -> Val:
    """Return ``2**(-62 - zeros)``: the value of the lowest of the 63 bits, as a fraction of pi."""
    return k.bits((k.bits(k.cast(zeros, "u8"), "i8") * -1 + (1023 - 62)) << 52, "f8")


# -- gamma ------------------------------------------------------------------------------------------------------------


def gamma(k: Builder, x: Val) -> Val:
    """The gamma function; an infinity of the zero's sign at 0, NaN at negative integers."""
    below = x < 0.0
    z = k.select(below, 1.0 - x, x)
    z = k.select(z > ENDLESS, ENDLESS, z)
    logarithm, times, by = near_two(k, z)
    near = exp(k, logarithm) * times / by
    root = pow_(k, z, (z - 0.5) * 0.5)
    half = exp(k, -z) * root * (2 * pi) ** 0.5 * exp(k, series(k, z))
    half, root = k.select(z < FAR, near, half), k.select(z < FAR, 1.0, root)
    value = k.select(below, pi / sine_of_pi(k, x) / half / root, half * root)
    whole = k.intrinsic("rint", x) == x
    value = k.select(below & whole, nan, value)
    return k.select(x == 0.0, k.intrinsic("copysign", k.const(inf, "f8"), x), value)


def lgamma(k: Builder, x: Val) -> Val:
    """Logarithm of the magnitude of the gamma function; infinity at 0 and negative integers."""
    size = magnitude(k, x)
    far = (size - 0.5) * (log(k, size) - 1.0) + (0.5 * math.log(2 * pi) - 0.5) + series(k, size)
    logarithm, times, by = near_two(k, size)
    value = k.select(size < FAR, logarithm + log(k, times) - log(k, by), far)
    pole = math.log(pi) - log(k, magnitude(k, size * sine_of_pi(k, x))) - value
    value = k.select(x < 0.0, pole, value)
    value = k.select(size == inf, inf, value)
    return k.select(k.is_nan(x), x, value)


def near_two(k: Builder, x: Val) -> tuple[Val, Val, Val]:
    """Return ``(l, p, q)`` with ``gamma(x) = exp(l) * p / q``, for 0 <= x < FAR: by the recurrence to 2 + d."""
    z, times = x, k.const(1.0, "f8")
    for _ in range(int(FAR) - 2):
        large = z > 2.5
        z = k.select(large, z - 1.0, z)
        times = k.select(large, times * z, times)
    once, twice = z < 1.5, z < 0.5
    d = k.select(twice, z, k.select(once, z - 1.0, z - 2.0))
    by = k.select(twice, z * (z + 1.0), k.select(once, z, 1.0))
    return horner(k, d, LGAMMA) * d, times, by


def series(k: Builder, z: Val) -> Val:
    """Return the correction to Stirling's formula for lgamma."""
    inverse = 1.0 / z
    return horner(k, inverse * inverse, STIRLING) * inverse


def sine_of_pi(k: Builder, x: Val) -> Val:
    """Return ``sin(pi x)``."""
    whole = k.intrinsic("rint", x)
    r = (x - whole) * PI[0]
    z = r * r
    y = k.fma(horner(k, z, SIN["f8"]) * z, r, r)
    half = whole * 0.5
    return k.select(k.intrinsic("rint", half) == half, y, -y)


# -- fmod -------------------------------------------------------------------------------------------------------------


def remainder(k: Builder, x: Val, y: Val) -> Val:
    """Return the exact fmod, by long division of the mantissas (LLVM's own is wrong for large quotients)."""
    if x.dtype == "f4":
        return wide(k, remainder, x, y)
    a, a_exponent = mantissa_and_exponent(k, x)
    b, b_exponent = mantissa_and_exponent(k, y)
    with fold(k, 0, a_exponent - b_exponent, [a]) as s:
        s.next = [subtract_if_fits(k, s.values[0], b) << 1]
    rest = subtract_if_fits(k, s.values[0], b)
    zeros = k.bits(leading_zeros(k, rest) - 11, "i8")
    exponent = b_exponent - zeros
    normal = ((rest << k.bits(zeros, "u8")) & MANTISSA) | (k.bits(exponent, "u8") << 52)
    denormal = (rest << k.bits(zeros, "u8")) >> k.bits(k.smaller(1 - exponent, 63), "u8")
    rest_of_x = k.select(rest == 0, 0.0, k.bits(k.select(exponent > 0, normal, denormal), "f8"))
    rest_of_x = k.select(magnitude(k, x) < magnitude(k, y), x, k.intrinsic("copysign", rest_of_x, x))
    undefined = (magnitude(k, x) == inf) | k.is_nan(x) | k.is_nan(y) | (y == 0.0)
    return k.select(undefined, nan, rest_of_x)


def mantissa_and_exponent(k: Builder, x: Val) -> tuple[Val, Val]:
    """Return ``(m, e)`` with ``|x| = m * 2**(e - 1075)`` and m of 53 bits, for finite x other than 0."""
    bits = k.bits(x, "u8") & ((1 << 63) - 1)
    exponent, fraction = k.bits(bits >> 52, "i8"), bits & MANTISSA
    shift = leading_zeros(k, fraction) - 11
    m = k.select(exponent == 0, fraction << shift, fraction | (MANTISSA + 1))
    return m, k.select(exponent == 0, 1 - k.bits(shift, "i8"), exponent)


def subtract_if_fits(k: Builder, a: Val, b: Val) -> Val:
    """Return ``a - b`` if that is at least 0, else `a`."""
    return k.select(a >= b, a - b, a)


def leading_zeros(k: Builder, x: Val) -> Val:
    function = k.declare(f"llvm.ctlz.{x.v.type}", x.v.type, [x.v.type, ir.BOOL])
    return k.wrap(k.b.call(function, [x.v, ir.Constant(ir.BOOL, 0)]), x.dtype)


RARE: dict[str, Callable[..., Val]] = {
    "sin": sin,
    "cos": cos,
    "tan": tan,
    "tgamma": gamma,
    "exp": exp,
    "log": log,
    "hypot": hypot,
}
"""The functions by their names in the C library; kernels of LAPACK call the last three."""

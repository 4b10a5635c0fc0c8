"""The error function, its complement, and the normal distribution.

``erf x = x P(x**2)`` for ``|x| < 1``. Beyond, float64 uses ``erfc x = e**(-x**2) t G(t)`` with ``t = 2 / (2 + x)``,
G the best polynomial (Remez) about the middle of its range, corrected by the rounding error of the square; float32
uses ``erf x = 1 - e**Q(x)`` with Q the best polynomial for ``log erfc``, and for the normal distribution one for
``log2 erfc`` that holds on both sides of 1: half the work.
"""

from cgraph.kernels.llvm.build import Builder
from cgraph.kernels.llvm.values import Val
from cgraph.kernels.llvm.vexp import exp, exp2_down, exp_minus_square
from cgraph.kernels.llvm.vfloat import estrin, flip_sign, horner, magnitude, sign_bit, wide

# erf(x) / x - 1 in x**2, |x| <= 1
NEAR = {
    "f4": (
        0.12837916573,
        -0.37612625824,
        0.11283585144,
        -0.026853811788,
        0.0051883274769,
        -0.00080101922342,
        7.8538579056e-5,
    ),
    "f8": (
        0.1283791670955125657,
        -0.3761263890318351952,
        0.1128379167094418415,
        -0.02686617064311139315,
        0.005223977606117984816,
        -0.0008548325929295723135,
        0.0001205529357645245204,
        -0.00001492471229517501664,
        1.644713150501782495e-6,
        -1.620631336648432957e-7,
        1.371097912309430885e-8,
        -7.779466776387986217e-10,
    ),
}
# e**(x*x) erfc(x) / t in t - MIDDLE, x >= 0.99
MIDDLE = 0.375
FAR = (
    0.4333065624797291591,
    0.5554590614502857806,
    0.4904917206359404161,
    0.2123459838270272611,
    -0.0891305652749992965,
    -0.1518547762853933361,
    0.02039826392251712977,
    0.1148502393835738591,
    -0.0195349872407825812,
    -0.1015931584372183455,
    0.0443202021096951664,
    0.09155142039371238329,
    -0.08971977227730112614,
    -0.06112560655141233688,
    0.1486553761124828797,
    -0.01842819674534053063,
    -0.1927060930327442596,
    0.1483050182119574247,
    0.1784824448834397466,
    -0.2017531440918711863,
    -0.104199358077517708,
)
# log(erfc(x)) in x - 2.5, x in [0.99, 4.1]
LOG_ERFC = (
    -7.806815378778984481,
    -5.352678507009802772,
    -0.9438908572180548524,
    -0.01086681186938524265,
    0.002156871943519130456,
    -0.0004126571921295002146,
    0.00008421319350024545771,
    -0.00001516129754855353575,
)
# log2(erfc(x / sqrt(2))) / x, x in [0, 5.6]; it falls on beyond, to less than -1000 at 16
LOG2_TAILS = (
    -1.151104509596,
    -0.4592190008089,
    -0.05244206833208,
    0.006938394892074,
    1.698415900859e-5,
    -0.0002936823687663,
    8.249024970615e-5,
    -1.238209041154e-5,
    1.029903705772e-6,
    -3.717562789655e-8,
)


def erf(k: Builder, x: Val) -> Val:
    """Error function, within 2 ulp."""
    a = magnitude(k, x)
    if x.dtype == "f4":
        limited = k.select(a > 4.0, k.const(4.0, "f4", x.lanes), a)
        beyond = exp(k, horner(k, limited - 2.5, LOG_ERFC))
    else:
        beyond = far_complement(k, a)
    return k.select(a < 1.0, near(k, x), flip_sign(k, 1.0 - beyond, sign_bit(k, x)))


def erfc(k: Builder, x: Val) -> Val:
    """Return ``1 - erf(x)``, small results included; within 4 ulp."""
    if x.dtype == "f4":
        return wide(k, erfc, x)
    a = magnitude(k, x)
    beyond = far_complement(k, a)
    beyond = k.select(x < 0.0, 2.0 - beyond, beyond)
    return k.select(a < 1.0, near_complement(k, x), beyond)


def near(k: Builder, x: Val) -> Val:
    """Return erf x for ``|x| < 1``."""
    return k.select(x == 0.0, x, k.fma(horner(k, x * x, NEAR[x.dtype]), x, x))


def near_complement(k: Builder, x: Val) -> Val:
    """1 - erf x for ``|x| < 1``; beyond 1/2 computed from 1/2 - x, which is exact there."""
    tail = horner(k, x * x, NEAR["f8"]) * x
    return k.select(x > 0.5, (0.5 - x) + (0.5 - tail), 1.0 - (x + tail))


def far_complement(k: Builder, a: Val) -> Val:
    """Return erfc a for a >= 1; a NaN stays one."""
    a = k.select(a > 28.0, k.const(28.0, a.dtype, a.lanes), a)
    t = 2.0 / (a + 2.0)
    return exp_minus_square(k, a) * (horner(k, t - MIDDLE, FAR) * t)


def ndtr(k: Builder, x: Val) -> Val:
    """The normal distribution below x: within 8 ulp for ``|x| < 2``, and in float32 within 1e-7 everywhere."""
    a = magnitude(k, x)
    if x.dtype == "f4":
        limited = k.select(a > 16.0, k.const(16.0, "f4", x.lanes), a)
        tails = exp2_down(k, estrin(k, limited, LOG2_TAILS) * limited)
    else:
        tails = erfc(k, a * 0.5**0.5)
    return k.select(x > 0.0, 2.0 - tails, tails) * 0.5

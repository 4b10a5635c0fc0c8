"""Parts of floats, neighbouring floats and integers bit by bit are NumPy's, at the ends of each dtype."""

import numpy as np
import pytest

from tests.numpy.evaluated import FLOATS, compare, compare_bits, drawn


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "name", ["frexp", "modf", "sqrt", "log2", "sign", "signbit", "spacing", "abs", "cbrt", "nan_to_num"]
)
def test_subnormal_numbers_are_numbers(name, dtype):
    info = np.finfo(dtype)
    x = np.array([info.smallest_subnormal, info.smallest_subnormal * 5, info.smallest_normal / 3, info.smallest_normal])
    compare(f"np.{name}(x)", dtype, x=np.concatenate([x, -x if name not in ("sqrt", "log2") else x]).astype(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_and_gaps_at_zeros_infinities_nan_and_powers_of_two(dtype):
    most = np.finfo(dtype).max
    ends = [0.0, -0.0, 1.0, -1.0, 2.0, 1.5, most, -most, np.inf, -np.inf, np.nan]
    x, y = (a.ravel() for a in np.meshgrid(np.array(ends, dtype), np.array(ends, dtype)))
    compare("np.nextafter(x, y)", dtype, x=x, y=y)
    compare("np.spacing(x)", dtype, x=x[np.abs(x) != most])  # beyond the largest lies no number
    compare("np.frexp(x)", dtype, x=x)
    compare("np.signbit(x)", dtype, x=np.concatenate([x, [-np.nan]]).astype(dtype))


EXACT = [
    *("np.spacing(x)", "np.nextafter(x, y)", "np.nextafter(y, x)", "np.frexp(x)", "np.modf(x)", "np.trunc(x)"),
    *("np.ldexp(x, n)", "np.copysign(x, y)", "np.fabs(x)", "np.sign(x)", "np.rint(x)", "np.floor(x)", "np.ceil(x)"),
]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("call", EXACT)
def test_functions_that_do_not_round_have_numpys_bits_at_every_size(call, dtype):
    """Also far below 1, where a tolerance of the largest element sees nothing."""
    info = np.finfo(dtype)
    sizes = np.array([1, 1.5, 0.75, 3, 1e-3, info.eps, info.smallest_normal, info.smallest_subnormal * 3], dtype)
    sizes = np.concatenate([sizes, np.nextafter(sizes, 0, dtype=dtype), np.nextafter(sizes, 9, dtype=dtype)])
    x = np.concatenate([sizes, -sizes, np.array([0.0, -0.0, np.inf, -np.inf], dtype)])
    compare_bits(call, x=x, y=x[::-1].copy(), n=np.arange(len(x), dtype="int32") % 7 - 3)


@pytest.mark.parametrize("dtype", FLOATS)
def test_ldexp_over_the_whole_range_of_exponents(dtype):
    info = np.finfo(dtype)
    x = np.array([1.0, -1.5, info.max, info.smallest_normal, info.smallest_subnormal, 0.0, np.inf, np.nan], dtype)
    span = info.maxexp - info.minexp + info.nmant
    for power in (0, 1, -1, info.maxexp - 1, info.maxexp, info.minexp, info.minexp - info.nmant, span, -span, 9999):
        compare("np.ldexp(x, n)", dtype, x=x, n=np.array(power, "int32"))
    compare("np.ldexp(x, y)", dtype, x=x, y=x)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint16", "uint32", "int64"])
def test_ldexp_by_exponents_of_each_integer_dtype(kind):
    info = np.iinfo(kind)
    compare("np.ldexp(x, n)", "float64", x=np.full(5, 0.75), n=np.array([info.min, 0, 3, 100, info.max]).astype(kind))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint32"])
def test_lcm_of_zeros_negatives_and_extremes(dtype):
    some = [0, 1, 4, 6, 9, np.iinfo(dtype).max, *([-4, -6, np.iinfo(dtype).min + 1] if dtype[0] == "i" else [])]
    x, y = (a.ravel() for a in np.meshgrid(np.array(some, dtype), np.array(some, dtype)))
    compare("np.lcm(x, y), np.gcd(x, y), np.bitwise_count(x)", x=x, y=y)


@pytest.mark.parametrize("bitorder", ["big", "little", "other"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1, -2, 2])
def test_bits_are_packed_and_unpacked_along_every_axis(axis, bitorder):
    rng = np.random.default_rng(0)
    for shape in ((3, 11), (8, 1), (16, 9), (0, 3), (2, 0)):
        for dtype in ("bool", "uint8", "int64"):
            x = rng.integers(0, 2, shape).astype(dtype) * (1 if dtype == "bool" else 6)
            compare(f"np.packbits(x, {axis}, {bitorder!r})", x=x)
    x = rng.integers(0, 256, (2, 3), "uint8")
    for count in (None, 0, 1, 8, 13, 16, 24, 30, -1, -3):
        compare(f"np.unpackbits(x, {axis}, {count}, {bitorder!r})", x=x)
    compare("np.packbits(x)", x=drawn((3,)))
    compare("np.unpackbits(x)", x=np.arange(3))

"""Known factors and shifts: the bits of the product of arrays, at halves of both signs; what stays as it is."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ops.fixed import FixedProduct, KnownFixedProduct, fixed_products
from cgraph.passes.know_factors import know_factors

EDGES = [0, 1, -1, 2, -2, 3, -3, 2**31 - 1, -(2**31), 2**30, -(2**30), 2**30 - 1, 5 << 20, -(5 << 20)]
X = np.concatenate([EDGES, np.random.default_rng(0).integers(-(2**31), 2**31, 999)]).astype("i4")


def product(factor, shift, once):
    x = cg.Var(X.shape, "int32", "x")
    return x, cg.fixed_product(x, np.int32(factor), np.int32(shift), once)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("shift", [0, -1, -2, -3, -7, -20, -30])
@pytest.mark.parametrize("factor", [0, 1, 2**30, 3 << 29, 2**31 - 1])
def test_a_known_factor_gives_the_bits_of_an_array_of_it(factor, shift, once):
    x, node = product(factor, shift, once)
    (known,) = know_factors((node,))
    assert known.op == KnownFixedProduct(factor, shift, once) and known.operands == (x,)
    expected = fixed_products(X, np.int32(factor), np.int32(shift), once).tolist()
    assert known.op.meaning(X).tolist() == expected
    assert cg.compile(known, x)(X).tolist() == expected


@pytest.mark.parametrize("factor, shift", [(-1, -3), (5, 1), (5, -31)])
def test_negative_factors_and_other_shifts_stay(factor, shift):
    _, node = product(factor, shift, False)
    assert know_factors((node,)) == (node,)


def test_factors_of_each_channel_and_unknown_ones_stay():
    x, factor = cg.Var((2,), "int32", "x"), cg.Var((), "int32", "factor")
    each = cg.fixed_product(x, np.array([1, 2], "i4"), np.int32(-3))
    unknown = cg.fixed_product(x, factor, np.int32(-3))
    assert [type(y.op) for y in know_factors((each, unknown))] == [FixedProduct, FixedProduct]

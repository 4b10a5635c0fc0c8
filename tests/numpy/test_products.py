"""Products of vectors and matrices are NumPy's: every pair of ranks, conjugates, axes from both ends."""

from itertools import product

import pytest

from tests.numpy.evaluated import compare, drawn

DTYPES = ("float64", "float32", "int32", "complex128")
SHAPES = ((), (3,), (2, 3), (3, 2), (2, 3, 3), (1, 3))


@pytest.mark.parametrize("function", ["dot", "inner", "outer", "kron", "vdot", "matmul", "vecdot", "matvec", "vecmat"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_operands_of_every_pair_of_ranks(function, dtype):
    for first, second in product(SHAPES, repeat=2):
        compare(f"np.{function}(a, b)", dtype, a=drawn(first, dtype), b=drawn(second, dtype, 1))


def test_axes_of_sums_of_products():
    a, b = drawn((2, 3, 4)), drawn((4, 3, 2))
    for axes in ("0", "1", "2", "3", "(2, 0)", "([0, 1], [2, 1])", "([1, 0], [1, 2])", "(-1, 0)", "([0], [-1])", "-1"):
        compare(f"np.tensordot(a, b, {axes})", a=a, b=b)
    for axis in (-1, 0, 1, 2, 3):
        compare(f"np.vecdot(a, b, axis={axis})", a=drawn((2, 3, 4), "complex128"), b=drawn((2, 3, 4), "complex128", 1))
        compare(f"np.vecdot(a, b, axis={axis})", a=a, b=drawn((1, 3, 1)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_products_of_vectors_of_two_and_three(dtype):
    for m, n in product((1, 2, 3, 4), repeat=2):
        compare("np.cross(a, b)", dtype, a=drawn((4, m), dtype), b=drawn((4, n), dtype, 1))
        compare("np.cross(a, b, axis=0)", dtype, a=drawn((m, 5), dtype), b=drawn((n, 5), dtype, 1))
    for axisa, axisb, axisc in product((0, -2), (1, 2), (-1, 0, 1)):
        a, b = drawn((3, 3, 5), dtype), drawn((5, 3, 3), dtype)
        compare(f"np.cross(a, b, {axisa}, {axisb}, {axisc})", dtype, a=a.swapaxes(1, 2), b=b)


@pytest.mark.parametrize("call", [
    "np.einsum('ij,jk', a, b)", "np.einsum('ij,jk->ki', a, b)", "np.einsum(a, [0, 1], b, [1, 2])",
    "np.einsum(a, [5, 1], b, [1, 0])", "np.einsum(a, [0, 1], b, [1, 2], [2, 0])", "np.einsum(a, [Ellipsis, 1])",
    "np.einsum(a, [0, 30], b, [30, 2])", "np.einsum('ii->i', s)", "np.einsum('ii', s)", "np.einsum('ij->', a)",
    "np.einsum('...j,jk->...k', a, b)", "np.einsum(s, [0, 0], [0])", "np.einsum('ij,jk', a, b, optimize=True)",
    "np.einsum('ij,ij', a, b)", "np.einsum('ij->k', a)", "np.einsum('ij,jk', a, b, dtype='complex128')",
])  # fmt: skip
def test_sums_by_letters_and_by_numbers(call):
    compare(call, a=drawn((2, 3)), b=drawn((3, 4)), s=drawn((3, 3)))


def test_a_path_is_numpys():
    compare("np.einsum_path('ij,jk,kl->il', a, b, c)[0]", a=drawn((2, 3)), b=drawn((3, 4)), c=drawn((4, 5)))

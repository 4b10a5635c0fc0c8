"""Groups of matrix products: every group's addresses give NumPy's products, merged and transposed where it says."""

import numpy as np
import pytest

from cgraph.kernels.kernel import Pointer
from cgraph.kernels.views.matrices import Matrices, Operand, each_matrices, merge_batch, orient
from cgraph.record import replace
from tests.support.kernels import view_of


def array_of(x, count, rows, columns):
    """The elements that an operand addresses: ``[count, rows, columns]``."""
    base = x.at.base
    while isinstance(base.base, np.ndarray):
        base = base.base
    start = x.at.base.ctypes.data + x.at.offset - base.ctypes.data
    strides = tuple(s * x.itemsize for s in (x.batch, x.row, x.column))
    return np.ndarray((count, rows, columns), x.dtype, base.data, start, strides)


def multiply(group):
    """Write the products of one group, where its operands say."""
    a = array_of(group.a, group.count, group.m, group.k)
    b = array_of(group.b, group.count, group.k, group.n)
    out = array_of(group.out, group.count, group.m, group.n)
    out[:] = a @ b
    if group.bias:
        out += array_of(group.bias, group.count, group.m, group.n)


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape).astype("f8")


B = np.broadcast_to(numbers(4, 5), (6, 4, 5))
OPERANDS = {
    "matrices": (numbers(3, 4), numbers(4, 5), None),
    "a batch": (numbers(6, 3, 4), numbers(6, 4, 5), numbers(6, 3, 5)),
    "one b": (numbers(6, 3, 4), B, None),
    "one a": (np.broadcast_to(numbers(3, 4), (6, 3, 4)), numbers(6, 4, 5), None),
    "two batch axes": (numbers(2, 3, 3, 4), numbers(2, 3, 4, 5), None),
    "batch axes that do not merge": (numbers(3, 2, 3, 4).swapaxes(0, 1), numbers(2, 3, 4, 5), numbers(2, 3, 3, 5)),
    "b of one axis": (numbers(2, 3, 3, 4), np.broadcast_to(numbers(3, 4, 5), (2, 3, 4, 5)), None),
    "transposed": (numbers(6, 4, 3).swapaxes(1, 2), numbers(6, 5, 4).swapaxes(1, 2), None),
    "cut": (numbers(6, 6, 8)[::2, ::2, ::2], numbers(3, 4, 10)[:, :, ::2], None),
    "one bias": (numbers(6, 3, 4), B, np.broadcast_to(numbers(5), (6, 3, 5))),
    "a bias of each matrix": (numbers(6, 3, 4), B, np.broadcast_to(numbers(6, 1, 5), (6, 3, 5))),
    "nothing to add up": (numbers(6, 3, 0), numbers(6, 0, 5), None),
    "one row": (numbers(6, 1, 4), B, None),
}


@pytest.mark.parametrize("how", ["as they are", "oriented", "transposed"])
@pytest.mark.parametrize("name", OPERANDS)
def test_all_groups_together_are_numpys_products(name, how):
    a, b, bias = OPERANDS[name]
    out = np.full((*a.shape[:-1], b.shape[-1]), np.nan)
    for group in each_matrices(view_of(out), view_of(a), view_of(b), None if bias is None else view_of(bias)):
        multiply({"oriented": orient, "transposed": lambda x: x.transposed}.get(how, lambda x: x)(group))
    np.testing.assert_array_equal(out, a @ b + (0 if bias is None else bias))


def test_groups_are_as_few_as_the_strides_allow():
    def count(name):
        a, b, bias = OPERANDS[name]
        out = np.zeros((*a.shape[:-1], b.shape[-1]))
        groups = each_matrices(view_of(out), view_of(a), view_of(b), None if bias is None else view_of(bias))
        return [(g.count, g.m) for g in groups]

    assert count("two batch axes") == [(6, 3)] and count("one b") == [(1, 18)] and count("one row") == [(1, 6)]
    assert count("batch axes that do not merge") == [(3, 3)] * 2
    assert count("one bias") == [(1, 18)]
    assert count("a bias of each matrix") == [(6, 3)]  # its rows repeat: they are not those of one tall matrix
    empty = np.zeros((0, 3, 5))
    assert list(each_matrices(view_of(empty), view_of(numbers(0, 3, 4)), view_of(numbers(0, 4, 5)), None)) == []


def test_a_part_begins_at_its_matrix_row_and_column():
    x = Operand(Pointer("x", 8), 1000, 10, 3, "f4")
    assert x.moved(2, 3, 4).at == Pointer("x", 8 + 4 * (2000 + 30 + 12))
    assert [x.moved(**{name: 1}).at.offset for name in ("batch", "row", "column")] == [4008, 48, 20]
    assert (x.transposed.row, x.transposed.column, x.transposed.batch) == (3, 10, 1000)
    assert x.itemsize == 4


def product(m, n, a, b, out, count=1):
    """Strides of rows and columns of each operand."""
    sides = [Operand(Pointer(name), 7, *strides, "f4") for name, strides in (("a", a), ("b", b), ("o", out))]
    return Matrices("f4", count, m, n, 9, *sides)


@pytest.mark.parametrize(
    ("x", "is_transposed"),
    [
        (product(3, 5, (9, 1), (5, 1), (5, 1)), False),
        (product(3, 5, (9, 1), (5, 1), (1, 3)), True),  # rows of the result would not be contiguous
        (product(3, 5, (9, 1), (5, 1), (2, 7)), False),  # neither way
        (product(1, 5, (9, 1), (1, 9), (5, 1)), True),  # one row times columns: dot products
        (product(1, 5, (9, 1), (5, 1), (5, 1)), False),
        (product(1, 5, (9, 1), (5, 1), (5, 2)), True),
        (product(1, 5, (9, 2), (1, 9), (5, 1)), False),
        (product(3, 1, (1, 3), (1, 1), (1, 1)), True),  # columns of a times one column: rows of the transpose
        (product(3, 1, (9, 1), (1, 1), (1, 1)), False),
        (product(3, 1, (1, 3), (1, 1), (2, 1)), False),
    ],
)
def test_products_are_transposed_where_rows_become_contiguous(x, is_transposed):
    assert orient(x) == (x.transposed if is_transposed else x)
    assert x.transposed.transposed == x and (x.transposed.m, x.transposed.n) == (x.n, x.m)


def test_only_contiguous_matrices_that_share_b_become_a_tall_one():
    x = product(3, 5, (9, 1), (5, 1), (5, 1), count=4)
    whole = replace(x, a=replace(x.a, batch=27), b=replace(x.b, batch=0), out=replace(x.out, batch=15))
    tall = merge_batch(whole)
    assert (tall.count, tall.m, tall.a.row, tall.out.row) == (1, 12, 9, 5)
    for changes in ({"b": x.b}, {"a": x.a}, {"out": x.out}, {"bias": x.out}, {"count": 1}):
        other = replace(whole, **changes)
        assert merge_batch(other) == other
    single = replace(whole, m=1, a=x.a, out=replace(x.out, batch=8))
    assert (merge_batch(single).m, merge_batch(single).a.row, merge_batch(single).out.row) == (4, 7, 8)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 1, 4), (3, 2, 2, 3)])
def test_batch_axes_that_do_not_merge_are_products_of_their_own(shape):
    """One side repeats along every second axis, the other one along those between; so does the bias."""
    even, odd = (tuple(n if i % 2 == side else 1 for i, n in enumerate(shape)) for side in (0, 1))
    a, b = np.broadcast_to(numbers(*even, 2, 3), (*shape, 2, 3)), np.broadcast_to(numbers(*odd, 3, 5), (*shape, 3, 5))
    bias = np.broadcast_to(numbers(*odd, 1, 5, seed=1), (*shape, 2, 5))
    out = np.full((*shape, 2, 5), np.nan)
    for group in each_matrices(*map(view_of, (out, a, b, bias))):
        multiply(group)
    np.testing.assert_array_equal(out, a @ b + bias)

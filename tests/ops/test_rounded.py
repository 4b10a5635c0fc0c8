"""Products of two computed values in bfloat16: the bits of a formula on pairs and on tiles, operands of any strides."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ir.graph import apply
from cgraph.ir.row_rule import RowRule
from cgraph.ir.spec import Spec
from cgraph.kernels.activation.calls import NONE, RELU
from cgraph.kernels.target import target_named
from cgraph.ops.physical.rounded import PairProduct, RoundedMatmul, TileProduct
from cgraph.record import replace
from tests.support.emulated import PairsEngine, TilesEngine, emulate_tiles
from tests.support.kernels import ORDERS, TARGETS, view_of
from tests.support.ops import filled, kernel_result
from tests.support.tiles import STEP, bfloat16_bits, floats_of, products
from tests.support.tolerance import assert_near

KINDS = {
    f"{kind} on {name}": change(target_named(name))
    for name in TARGETS
    for kind, change in (("pairs", lambda x: replace(x, bf16="emulated", tiles="")), ("tiles", emulate_tiles))
}
every_kind = pytest.mark.parametrize("target", KINDS.values(), ids=KINDS)
RNG = np.random.default_rng(8)
SHAPES = {  # leading axes of x, of y, then m, k, n
    "one number": ((), (), 1, 1, 1),
    "odd": ((), (), 5, 7, 9),
    "several panels": ((), (), 37, 65, 70),
    "one matrix for all": ((2, 3), (), 9, 33, 20),
    "a matrix for each": ((2, 3), (2, 3), 17, 31, 16),
}
every_shape = pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)


def numbers(*shape):
    return RNG.standard_normal(shape).astype("f4")


def in_columns(x):
    """The same matrices with contiguous columns."""
    return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)


def sums_in_order(x, y):
    """Products of rounded numbers, each added to the sum in float32: by pairs, a product is exact."""
    a, b = (floats_of(bfloat16_bits(v)) for v in (x, y))
    total = np.zeros((*x.shape[:-1], y.shape[-1]), "f4")
    for i in range(x.shape[-1]):
        total = total + a[..., :, i, None] * b[..., None, i, :]
    return total


def sums_of_tiles(x, y):
    """The bits of tile registers."""
    batch, k = x.shape[:-2], x.shape[-1]
    y = np.broadcast_to(y, (*batch, *y.shape[-2:])).reshape(-1, *y.shape[-2:])
    out = []
    for a, b in zip(x.reshape(-1, *x.shape[-2:]), y):
        more = -k % STEP
        out.append(
            products(np.pad(bfloat16_bits(a), ((0, 0), (0, more))), np.pad(bfloat16_bits(b), ((0, more), (0, 0))))
        )
    return np.stack(out).reshape(*batch, *out[0].shape)


def check(target, x, y, addend=(), activation=NONE, order="all", out=None):
    op = RoundedMatmul(bool(addend), activation)
    xs = [x, y, *addend]
    node = apply(op, *(cg.Var(v.shape) for v in xs))
    (got,) = kernel_result(node, xs, order, out, target)
    sums = sums_of_tiles(x, y) if target.tiles else sums_in_order(x, y)
    want = sums + addend[0] if addend else sums
    np.testing.assert_array_equal(got, np.maximum(want, np.float32(activation.low)))
    assert_near(op.meaning(*xs), got, "float32 products")
    assert node.spec == Spec(got.shape, np.dtype("float32")) and op.name == "matmul"
    assert op.multiply_adds(*(v.spec for v in node.operands)) == got.size * x.shape[-1]


@every_kind
@every_shape
@pytest.mark.parametrize("order", ORDERS)
def test_products_have_the_bits_of_the_formula(shape, order, target):
    bx, by, m, k, n = shape
    x, y, z = numbers(*bx, m, k), numbers(*by, k, n), numbers(*bx, m, n)
    check(target, x, y, order=order)
    check(target, x, y, (z,), RELU, order)


@every_kind
@every_shape
def test_operands_and_results_have_any_strides(shape, target):
    bx, by, m, k, n = shape
    x, y, z = numbers(*bx, m, k), numbers(*by, k, n), numbers(*bx, m, n)
    for a, b, c in (
        (in_columns(x), y, in_columns(z)),
        (x, in_columns(y), z[..., :1, :]),
        (in_columns(x), in_columns(y), z),
    ):
        check(target, a, b, (np.broadcast_to(c, z.shape),))
    wide = filled(Spec((*bx, m, n + 5), np.dtype("f4")))
    check(target, x[..., ::-1, :], y, (z,), out=wide[..., 2 : n + 2])
    assert (wide[..., :2].view("u4") == 0xFFFFFFFF).all() and (wide[..., n + 2 :].view("u4") == 0xFFFFFFFF).all()


def test_long_sums_are_cut_alike_for_any_number_of_threads():
    x, y = cg.Var((70, 3000), name="x"), cg.Var((3000, 40), name="y")
    values = numbers(70, 3000), numbers(3000, 40)
    for engine in (PairsEngine, TilesEngine):
        results = [
            cg.compile(apply(RoundedMatmul(), x, y), [x, y], engine=engine("host", threads, poison=True))(*values)
            for threads in (1, 2, 3)
        ]
        for other in results[1:]:
            np.testing.assert_array_equal(other, results[0])


def test_a_matrix_that_repeats_takes_its_bytes_once():
    x, y = np.zeros((4, 33, 64), "f4"), np.broadcast_to(np.zeros((64, 32), "f4"), (4, 64, 32))
    out = np.zeros((4, 33, 32), "f4")
    views = [view_of(v) for v in (out, x, y)]
    tiles = TileProduct(emulate_tiles(target_named("host")), *views)
    assert tiles.rooms == (2 * 4 * 33 * 64, 2 * 2 * 64 * 32, 0)
    assert PairProduct(replace(target_named("host"), bf16="emulated"), *views).sides_nbytes == 2 * (4 * 33 + 32) * 64


def test_first_rows_read_first_rows():
    op, one, each = RoundedMatmul(), Spec((8, 4), np.dtype("f4")), Spec((3, 8, 4), np.dtype("f4"))
    for y, reads in ((one, (0, 2)), (each, (0, 1, 2))):
        rule = op.row_rule(each, y)
        assert isinstance(rule, RowRule) and rule.operands == reads and rule.first(2) is op

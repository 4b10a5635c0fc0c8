"""Products with 4-bit weights in blocks: which half of a byte is first, whose scale and zero point, and refusals."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.spec import Spec
from cgraph.ops.blocks import BlockMatmul
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)


def by_hand(x, y, scales, zeros):
    """The definition, one element after another."""
    block, out = 2 * y.shape[2], np.zeros((*x.shape[:-1], len(y)))
    for j in range(len(y)):
        for k in range(x.shape[-1]):
            b, place = divmod(k, block)
            byte = int(y[j, b, place // 2])
            number = byte >> 4 if place % 2 else byte & 15
            out[..., j] += x[..., k] * (number - float(zeros[j, b])) * float(scales[j, b])
    return out


def drawn(k, n=3, block=16, lead=(2, 5)):
    blocks = -(-k // block)
    x, scales = RNG.standard_normal((*lead, k)).astype("f4"), RNG.random((n, blocks)).astype("f4") + 0.1
    y, zeros = (
        RNG.integers(0, most, (n, blocks, *rest)).astype("u1") for most, rest in ((256, (block // 2,)), (16, ()))
    )
    return x, y, scales, zeros


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize(("k", "block", "lead"), [(1, 16, (3,)), (40, 16, (2, 5)), (33, 32, ()), (64, 64, (1,))])
def test_elements_are_those_of_the_definition(engine, k, block, lead):
    values = drawn(k, 3, block, lead)
    f = cg.compile(cg.block_matmul(*(cg.Var(v.shape, v.dtype).assign(v) for v in values)), engine=engine)
    assert_near(f(), by_hand(*values), "float32 products in blocks")


@pytest.mark.parametrize("engine", ["reference", "cpu"])
@pytest.mark.parametrize(
    ("k", "n", "lead"), [(0, 3, (3,)), (0, 3, (4, 5)), (20, 3, (0,)), (20, 0, (3,)), (0, 0, (20,))]
)
def test_products_of_no_terms_are_zeros_and_there_may_be_no_rows_or_columns(engine, k, n, lead):
    values = drawn(k, n, 16, lead)
    f = cg.compile(cg.block_matmul(*(cg.Var(v.shape, v.dtype).assign(v) for v in values)), engine=engine)
    np.testing.assert_array_equal(f(), np.zeros((*lead, n), "f4"))


def test_the_zero_point_is_eight_or_one_number_for_all():
    x, y, scales, _ = drawn(20)
    for settings, number in (({}, 8), ({"zeros": 3}, 3)):
        got = cg.compile(cg.block_matmul(x, y, scales, **settings), engine="reference")()
        assert_near(got, by_hand(x, y, scales, np.full((3, 2), number)), "float32 products in blocks")


def test_work_is_counted_by_elements_of_x_and_columns():
    x, y = Spec((2, 5, 40), np.dtype("f4")), Spec((3, 3, 8), np.dtype("u1"))
    assert BlockMatmul().multiply_adds(x, y) == 2 * 5 * 40 * 3


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"y": (3, 3, 12)}, "a power of 2 >= 16"), ({"y": (3, 3, 4)}, "blocks of 8"), ({"y": (3, 24)}, "do not fit"),
        ({"scales": (3, 2)}, "do not fit"), ({"zeros": (2, 3)}, "do not fit"), ({"x": (5, 49)}, "49 elements"),
        ({"x": (5, 32)}, "y has 3 blocks of 16"), ({"y": (3, 3, 24), "x": (5, 144)}, "blocks of 48"),
        ({"y": (3, 3, 12), "x": (5, 72)}, "blocks of 24"), ({"y": (3, 3, 4), "x": (5, 24)}, "blocks of 8"),
        ({"x": ()}, "do not fit"),
    ],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_refused(changed, text):
    shapes = {"x": (5, 40), "y": (3, 3, 8), "scales": (3, 3), "zeros": (3, 3)} | changed
    dtypes = {"x": "float32", "y": "uint8", "scales": "float32", "zeros": "uint8"}
    with pytest.raises(ShapeError, match=text):
        cg.block_matmul(**{name: cg.Var(shape, dtypes[name]) for name, shape in shapes.items()})


@pytest.mark.parametrize("name", ["x", "y", "scales", "zeros"])
def test_every_operand_has_its_dtype(name):
    x, y, scales, zeros = drawn(40)
    values = {"x": x, "y": y, "scales": scales, "zeros": zeros}
    operands = {k: cg.Var(v.shape, "int32" if k == name else v.dtype) for k, v in values.items()}
    with pytest.raises(DTypeError, match="pass float32, uint8, float32 and uint8"):
        cg.block_matmul(**operands)

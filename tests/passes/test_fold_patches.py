"""Convolutions of patches become products where tokens read them, and only there."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.ops.conv import Conv2d
from cgraph.passes import rewrite_graph
from cgraph.passes.fold_patches import MOST_COLUMNS, fold_patches
from tests.support.rewrites import assert_left, assert_same_values, ops_of
from tests.support.tolerance import assert_near

SIDE = 16


def filters(k=5, c=3, side=SIDE):
    return cg.Const(np.random.default_rng(0).standard_normal((k, c, side, side)).astype("float32"))


def images(n=1, c=3, rows=2, columns=3, side=SIDE):
    return cg.Var((n, c, rows * side, columns * side), name="x")


def tokens(y):
    return cg.transpose(cg.reshape(y, (*y.shape[:2], -1)), (0, 2, 1))


def biased(y):
    return y + cg.broadcast_to(cg.Var((y.shape[1], 1, 1), name="bias"), y.shape)


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("add", [biased, lambda y: y], ids=["bias", "no bias"])
@pytest.mark.parametrize("read", [tokens, lambda y: cg.transpose(y, (0, 2, 3, 1))], ids=["joined", "turned"])
def test_patches_that_tokens_read_are_a_product(n, add, read):
    y = read(add(cg.conv2d(images(n), filters(), stride=SIDE)))
    assert "conv2d" not in ops_of(rewrite_graph((y,))) and "matmul" in ops_of(fold_patches((y,)))
    assert_same_values(rewrite_graph, y)


@pytest.mark.parametrize("window", [(8, 32), (32, 8)])
@pytest.mark.parametrize("add", [biased, lambda y: y], ids=["bias", "no bias"])
def test_patches_may_be_higher_than_wide(window, add):
    x, rng = cg.Var((2, 3, 3 * window[0], 2 * window[1]), name="x"), np.random.default_rng(0)
    f = cg.Const(rng.standard_normal((5, 3, *window)).astype("float32"))
    y = tokens(add(cg.conv2d(x, f, stride=window)))
    assert "conv2d" not in ops_of(fold_patches((y,)))
    assert_same_values(fold_patches, y)


@pytest.mark.parametrize("shape", [(2, 5, 1, 1), (1, 5, 1, 1), (5, 1, 1), (1, 1, 1), (), (2, 3), (5, 2, 3)], ids=str)
def test_any_addend_keeps_the_values(shape):
    """A different number for each image is not a bias."""
    conv = cg.conv2d(images(2), filters(), stride=SIDE)
    for y in (conv + cg.Var(shape, name="b"), cg.Var(shape, name="b") + conv):
        assert_same_values(fold_patches, tokens(y))


def test_the_compiled_product_is_the_convolution():
    x, f = images(2), filters()
    y = biased(cg.conv2d(x, f, stride=SIDE))
    bias = next(iter(n for n in (y.operands[1].operands[0],)))
    rng = np.random.default_rng(1)
    given = [rng.standard_normal(v.shape).astype("float32") for v in (x, bias)]
    got = cg.compile(tokens(y), [x, bias])(*given)
    (want,) = cg.compile([y], [x, bias], engine="reference")(*given)
    assert_near(got, want.reshape(2, 5, -1).transpose(0, 2, 1), "float32 networks")


def refused():
    y = cg.conv2d(images(), filters(), stride=SIDE)
    yield "an image is read", [cg.exp(y)]
    yield "it is an output too", [tokens(y), y]
    yield "two readers", [tokens(y), cg.transpose(y, (0, 2, 3, 1))]
    yield "windows overlap", [tokens(cg.conv2d(images(), filters(), stride=SIDE // 2))]
    yield "padding", [tokens(cg.conv2d(images(), filters(), stride=SIDE, pad=SIDE))]
    yield "pixels beside the windows", [tokens(cg.conv2d(cg.Var((1, 3, 33, 40), name="x"), filters(), stride=SIDE))]
    yield "filters that are an input", [tokens(cg.conv2d(images(), cg.Var((5, 3, SIDE, SIDE), name="f"), stride=SIDE))]
    yield "many channels", [tokens(cg.conv2d(images(c=8), filters(c=8), stride=SIDE))]
    yield "small windows", [tokens(cg.conv2d(images(side=4), filters(side=4), stride=4))]
    wide = images(columns=MOST_COLUMNS + 1)
    yield "long rows", [tokens(cg.conv2d(wide, filters(), stride=SIDE))]
    dilated = cg.conv2d(cg.Var((1, 3, 64, 64), name="x"), filters(), stride=SIDE, dilation=2)
    yield "windows with holes", [tokens(dilated)]


@pytest.mark.parametrize("name, outputs", list(refused()), ids=lambda x: x if isinstance(x, str) else "")
def test_it_is_left_alone(name, outputs):
    assert_left(fold_patches, *outputs)
    assert any(isinstance(n.op, Conv2d) for y in outputs for n in (y, *y.operands, *y.operands[0].operands))


LIMITS = [  # channels, side, columns, and whether patches become a product
    (2, 16, 3, True), (3, 13, 3, False), (4, 16, 3, True), (5, 16, 3, False), (3, 16, MOST_COLUMNS, True),
]  # fmt: skip


@pytest.mark.parametrize("c, side, width, is_folded", LIMITS)
def test_the_limits_of_what_is_folded(c, side, width, is_folded):
    """512 products of a sum, 4 channels and 16 columns are folded still."""
    x = images(c=c, side=side, columns=width)
    y = tokens(cg.conv2d(x, filters(c=c, side=side), stride=side))
    assert ("conv2d" not in ops_of(fold_patches((y,)))) is is_folded
    assert_same_values(fold_patches, y)


def test_patches_of_groups_are_left():
    f = cg.Const(np.random.default_rng(0).standard_normal((6, 1, 32, 32)).astype("float32"))
    y = tokens(cg.conv2d(images(side=32), f, stride=32, groups=3))
    assert_left(fold_patches, y)

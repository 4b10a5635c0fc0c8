"""Convolutions and their adjoints: unequal strides, pads and dilations, groups, empty operands, and refusals."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.ops.conv import ConvFilters, ConvTranspose, conv_node, sibling, split_groups
from tests.support.computed import computed, gradients
from tests.support.tolerance import assert_close

RNG = np.random.default_rng(0)
CASES = {  # shape of images, of filters, stride, pad (before, after), dilation, groups
    1: ((2, 4, 9), (6, 2, 3), (2,), (1, 3), (2,), 2),
    2: ((2, 4, 8, 9), (6, 2, 3, 2), (2, 3), (1, 2, 3, 0), (1, 2), 2),
    3: ((1, 2, 4, 5, 6), (2, 1, 2, 1, 3), (1, 2, 3), (0, 1, 2, 1, 0, 3), (2, 1, 1), 2),
}


def by_loops(x, f, stride, pad, dilation, groups):
    """The sums of the definition, one result after another."""
    axes = len(stride)
    x = np.pad(x, [(0, 0), (0, 0), *zip(pad[:axes], pad[axes:])])
    reach = [(r - 1) * d + 1 for r, d in zip(f.shape[2:], dilation)]
    sizes = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, stride)]
    out, share, own = np.zeros((len(x), len(f), *sizes), x.dtype), len(f) // groups, f.shape[1]
    for place in np.ndindex(*sizes):
        window = tuple(slice(p * s, p * s + r, d) for p, s, r, d in zip(place, stride, reach, dilation))
        for k in range(len(f)):
            channels = slice(k // share * own, k // share * own + own)
            out[(slice(None), k, *place)] = (x[(slice(None), channels, *window)] * f[k]).reshape(len(x), -1).sum(1)
    return out


def drawn(*shapes):
    return [RNG.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("axes", CASES)
def test_each_axis_has_its_own_moves_and_each_group_its_channels(axes):
    *shapes, stride, pad, dilation, groups = CASES[axes]
    x, f = drawn(*shapes)
    got = computed(conv_node(axes, *(cg.Var(v) for v in (x, f)), stride, pad, dilation, groups))
    assert_close(got, by_loops(x, f, stride, pad, dilation, groups))


@pytest.mark.parametrize("axes", CASES)
def test_adjoints_have_the_inner_products_of_the_convolution(axes):
    *shapes, stride, pad, dilation, groups = CASES[axes]
    x, f = drawn(*shapes)
    y = by_loops(x, f, stride, pad, dilation, groups)
    (g,) = drawn(y.shape)
    images, filters, result = (cg.Var(v) for v in (x, f, g))
    transpose = apply(ConvTranspose(stride, pad, dilation, groups, x.shape[2:]), result, filters)
    to_filters = apply(ConvFilters(stride, pad, dilation, groups, f.shape[2:]), images, result)
    terms = np.abs(y * g).sum()
    for adjoint, other in ((transpose, x), (to_filters, f)):
        assert adjoint.shape == other.shape
        assert_close((computed(adjoint) * other).sum(), (y * g).sum(), 10, terms)
    by_gradient = gradients(conv_node(axes, images, filters, stride, pad, dilation, groups), images, filters, seed=g)
    for got, want in zip(by_gradient, (transpose, to_filters), strict=True):
        assert_close(got, computed(want))


def test_transposed_convolutions_cut_pads_and_append_rows_on_their_own_axes():
    x, f = cg.Var((1, 2, 3, 4)), cg.Var((2, 5, 3, 2))
    node = cg.conv_transpose2d(x, f, (2, 3), (1, 0, 0, 2), (2, 1), 1, (1, 0))
    assert node.shape == (1, 5, 2 * 2 + 2 * 2 + 1 - 1 + 1, 3 * 3 + 1 + 1 - 2)
    assert cg.conv_transpose1d(cg.Var((1, 2, 3)), cg.Var((2, 1, 2)), 3, output_pad=2).shape == (1, 1, 10)
    assert cg.conv_transpose3d(cg.Var((1, 2, 1, 1, 1)), cg.Var((2, 3, 1, 2, 4)), groups=2).shape == (1, 6, 1, 2, 4)
    spread = computed(cg.conv_transpose1d(cg.Var(np.array([[[1.0, 10.0]]])), cg.Var(np.array([[[1.0, 2.0, 3.0]]])), 2))
    assert spread.tolist() == [[[1, 2, 13, 20, 30]]]


def test_empty_operands_give_zeros_or_nothing():
    for shapes, want in (
        (((0, 2, 4, 4), (3, 2, 3, 3)), (0, 3, 2, 2)), (((2, 0, 4, 4), (3, 0, 3, 3)), (2, 3, 2, 2)),
        (((2, 2, 4, 4), (0, 2, 3, 3)), (2, 0, 2, 2)),
    ):  # fmt: skip
        got = computed(cg.conv2d(*(cg.Var(np.ones(shape)) for shape in shapes)))
        assert got.shape == want and not got.any()
    assert not computed(cg.conv_transpose2d(cg.Var(np.ones((2, 0, 4, 4))), cg.Var(np.ones((0, 3, 2, 2))))).any()


def test_work_is_counted_by_products_of_one_group():
    x, f = cg.Var((2, 4, 8, 9)), cg.Var((6, 2, 3, 2))
    node = cg.conv2d(x, f, groups=2)
    assert node.op.multiply_adds(x.spec, f.spec) == 2 * 6 * 6 * 8 * 2 * 3 * 2
    filters = sibling(node.op, ConvFilters, (3, 2))
    assert filters.multiply_adds(x.spec, node.spec) == 2 * 6 * 6 * 8 * 2 * 3 * 2
    back = sibling(node.op, ConvTranspose, (8, 9))
    assert back.multiply_adds(node.spec, f.spec) == 2 * 6 * 6 * 8 * 2 * 3 * 2


def test_groups_are_the_outer_part_of_their_axis():
    assert split_groups(np.arange(6).reshape(1, 6), 1, 2).tolist() == [[[0, 1, 2], [3, 4, 5]]]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: cg.conv2d(x, cg.Var((3, 3, 1, 1))), ShapeError, "4 channels, 3 filters in 1 groups read 3"),
        (lambda x: cg.conv2d(x, cg.Var((3, 2, 1, 1)), groups=2), ShapeError, "k a multiple of groups"),
        (lambda x: cg.conv2d(x, cg.Var((3, 4, 8, 1))), ShapeError, "8"),
        (lambda x: cg.conv2d(x, cg.Var((3, 4, 1))), ShapeError, "must have 4 axes each"),
        (lambda x: cg.conv_transpose2d(x, cg.Var((3, 4, 1, 1))), ShapeError, "4 channels, but there are 3 filters"),
        (
            lambda x: cg.conv_transpose2d(x, cg.Var((4, 2, 1, 1)), 2, output_pad=2),
            ShapeError,
            "less than its stride or dilation; change",
        ),
        (lambda x: cg.conv_transpose2d(x, cg.Var((4, 2, 1))), ShapeError, "must have 4 axes each; reshape them"),
        (lambda x: apply(ConvFilters((1,) * 2, (0,) * 4, (1,) * 2, 1, (2, 2)), x, x), ShapeError, "do not give"),
        (lambda x: apply(ConvFilters((1,) * 2, (0,) * 4, (1,) * 2, 3, (1, 1)), x, x), ShapeError, "fit 3 groups"),
        (lambda x: cg.conv2d(x.astype("bool"), cg.Var((3, 4, 1, 1), "bool")), DTypeError, "astype"),
    ],
)
def test_refusals_name_the_sizes(call, error, text):
    with pytest.raises(error, match=text):
        call(cg.Var((2, 4, 7, 7)))

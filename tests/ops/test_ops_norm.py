"""Normalisation: statistics over the right axes, groups, unequal parameters, refusals, gradients of every operand."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import DTypeError, ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.kernel import Pointer, View
from cgraph.ops.norm import BatchNorm, GroupNorm, LayerNorm, Lrn, along_channels, per_channel, sum_neighbours
from tests.autodiff.differences import check_first, check_second
from tests.support.computed import computed, float64
from tests.support.tolerance import assert_near

RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 3, 5))
C = [RNG.normal(size=6) for _ in range(3)] + [RNG.uniform(0.5, 2, 6)]  # scale, shift, mean, variance


def column(p):
    return p[:, None, None]


def unit(x, axes, eps):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)


def test_channels_by_given_statistics():
    scale, shift, mean, variance = C
    got = computed(cg.batch_norm(*float64(X, scale, shift, mean, variance), eps=0.25))
    want = (X - column(mean)) / np.sqrt(column(variance) + 0.25) * column(scale) + column(shift)
    assert_near(got, want, "float64 formulas near zero")
    rows = computed(cg.batch_norm(*float64(X[:, :, 0, 0], scale, shift, mean, variance), eps=0.25))
    assert_near(rows, want[:, :, 0, 0], "float64 formulas near zero")


def test_channels_by_their_own_statistics():
    scale, shift = C[:2]
    y, mean, variance = computed(*cg.batch_norm_training(*float64(X, scale, shift), eps=0.25))
    assert_near(mean, X.mean((0, 2, 3)), "float64 formulas near zero")
    assert_near(variance, X.var((0, 2, 3)), "float64 formulas near zero")
    want = unit(X, (0, 2, 3), 0.25) * column(scale) + column(shift)
    assert_near(y, want, "float64 formulas near zero")


@pytest.mark.parametrize("axes", [1, 2])
def test_rows_over_as_many_last_axes_as_the_scale_has(axes):
    scale, shift = RNG.normal(size=(2, *X.shape[4 - axes :]))
    got = computed(cg.layer_norm(*float64(X, scale, shift), eps=0.25))
    want = unit(X, tuple(range(4 - axes, 4)), 0.25) * scale + shift
    assert_near(got, want, "float64 formulas near zero")


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_groups_of_channels(groups):
    scale, shift = C[:2]
    rows = unit(X.reshape(2, groups, -1), (2,), 0.25).reshape(X.shape)
    got = computed(cg.group_norm(*float64(X, scale, shift), groups, 0.25))
    assert_near(got, rows * column(scale) + column(shift), "float64 formulas near zero")
    if groups == 6:
        np.testing.assert_array_equal(computed(cg.instance_norm(*float64(X, scale, shift), 0.25)), got)


def test_groups_of_rows_without_pixels():
    scale, shift = C[:2]
    rows = X[:, :, 0, 0]
    got = computed(cg.group_norm(*float64(rows, scale, shift), 3, 0.25))
    want = unit(rows.reshape(2, 3, 2), (2,), 0.25).reshape(2, 6) * scale + shift
    assert_near(got, want, "float64 formulas near zero")


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_neighbours_of_an_even_number_are_one_more_behind(size):
    x = np.arange(1.0, 5).reshape(1, 4, 1)
    before = (size - 1) // 2
    sums = [sum(float(i + j + 1) ** 2 for j in range(-before, size - before) if 0 <= i + j < 4) for i in range(4)]
    want = x[0, :, 0] / (3 + 2 / size * np.array(sums)) ** 0.5
    got = computed(cg.lrn(float64(x), size, alpha=2, beta=0.5, bias=3))
    assert_near(got[0, :, 0], want, "float64 formulas")
    assert computed(sum_neighbours(float64(x), 1, 3)).ravel().tolist() == [3, 6, 9, 7]
    assert computed(sum_neighbours(float64(x), 0, 2)).ravel().tolist() == [3, 5, 7, 4]


def test_parameters_are_laid_along_the_channels():
    p = cg.Var((3,), "float64")
    assert per_channel(p, 4).shape == (3, 1, 1) == per_channel(np.zeros(3), 4).shape
    assert per_channel(p, 2).shape == (3,)
    view = View(Pointer("p", 8), (3,), (16,), "f8")
    assert along_channels(view, 4) == View(Pointer("p", 8), (3, 1, 1), (16, 0, 0), "f8")


def test_what_does_not_fit_is_refused():
    x, three, four = cg.Var((2, 4, 3)), cg.Var((3,)), cg.Var((4,))
    with pytest.raises(ShapeError, match=r"do not fit; pass \[n, c, ...\] and \[c\]"):
        cg.batch_norm(x, four, four, four, three)
    with pytest.raises(ShapeError, match=r"pass \[3\], its last 1 axes"):
        cg.layer_norm(x, four, four)
    with pytest.raises(ShapeError):
        cg.layer_norm(x, 1.0, 0.0)
    with pytest.raises(ShapeError, match="3 groups do not divide the channels"):
        cg.group_norm(x, four, four, 3)
    with pytest.raises(ShapeError, match=r"must be \[4\], one value for each channel"):
        cg.group_norm(x, four, three, 2)
    with pytest.raises(ShapeError, match="and size=0 do not fit; pass .* and size >= 1"):
        cg.lrn(x, 0)
    with pytest.raises(DTypeError, match="operands are float32, float64, float32; use astype"):
        apply(LayerNorm(1, 0.0), three, three.astype("float64"), three)
    with pytest.raises(DTypeError, match="complex"):
        cg.layer_norm(three.astype("complex64"), three, three)
    assert cg.layer_norm(cg.Var((2, 3), "int32"), three, three).dtype == "float64"


def test_empty_operands_stay_empty():
    zero, four = np.zeros((0, 4, 3)), np.ones(4)
    for y in (cg.batch_norm(*float64(zero, *[four] * 4)), cg.group_norm(*float64(zero, four, four), 2),
              cg.layer_norm(*float64(zero, np.ones(3), np.ones(3))), cg.lrn(float64(zero), 2)):  # fmt: skip
        assert computed(y).shape == (0, 4, 3)


def test_gradients_of_every_operand_agree_with_differences():
    x, c, row = X[:, :4, :2, :3], [p[:4] for p in C], RNG.normal(size=(2, 3))
    check_first(lambda *xs: cg.batch_norm(*xs, eps=0.25), [x, *c])
    check_first(lambda *xs: cg.group_norm(*xs, 2, 0.25), [x, *c[:2]])
    check_first(lambda *xs: cg.layer_norm(*xs, 0.25), [x, *row])
    check_second(lambda *xs: cg.layer_norm(*xs, 0.25), [x[0], *row])
    for size in (2, 3):
        check_first(lambda x, n=size: cg.lrn(x, n, 2.0, 0.6, 1.5), [x])
    check_first(lambda *xs: cg.rms_norm(*xs, 0.25), [x, row[0]])
    check_first(lambda *xs: cg.batch_norm_training(*xs, 0.25)[0], [x, *c[:2]])


def test_each_field_makes_another_node():
    x, p = cg.Var((2, 4, 3)), cg.Var((4,))
    assert BatchNorm(1e-5) != BatchNorm(1e-3) and LayerNorm(1, 1e-5) != LayerNorm(2, 1e-5) != LayerNorm(2, 1e-3)
    assert len({cg.group_norm(x, p, p, 2), cg.group_norm(x, p, p, 4), cg.group_norm(x, p, p, 2, 1e-3)}) == 3
    assert cg.group_norm(x, p, p, 2).op == GroupNorm(2, 1e-5)
    assert len({Lrn(*f) for f in ((2, 1, 1, 1), (3, 1, 1, 1), (2, 2, 1, 1), (2, 1, 2, 1), (2, 1, 1, 2))}) == 5


def test_gradients_of_norms_of_no_images_have_no_elements_or_are_zero():
    x, scale, shift = cg.Var((0, 4, 3), "float64"), cg.Var((4,), "float64"), cg.Var((4,), "float64")
    for node in (cg.group_norm(x, scale, shift, 2), cg.instance_norm(x, scale, shift)):
        gradients = cg.gradient(cg.sum(node), [x, scale, shift])
        to_x, *rest = cg.compile(gradients, [x, scale, shift])(np.zeros((0, 4, 3)), np.ones(4), np.ones(4))
        assert to_x.shape == (0, 4, 3)
        np.testing.assert_array_equal(rest, np.zeros((2, 4)))

"""Shape ops: strides of views, axes in every form, what does not fit, broadcast and its gradient, filled arrays."""

import numpy as np
import pytest

import cgraph as cg
from cgraph.errors import ShapeError
from cgraph.ir.graph import apply
from cgraph.kernels.kernel import Pointer, View
from cgraph.ops.shape import (
    BroadcastTo,
    Contiguous,
    Full,
    Item,
    Reshape,
    Transpose,
    axes_of,
    axis_of,
    distinct_axes,
    items,
    number_of,
    reshaped_strides,
    sum_to,
    unbroadcast,
)
from tests.support.computed import computed, gradients
from tests.support.ops import kernel_result

X = np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("old, strides, new, want", [
    ((2, 3, 4), (96, 32, 8), (6, 4), (32, 8)), ((2, 3, 4), (96, 32, 8), (2, 12), (96, 8)),
    ((2, 3, 4), (8, 16, 48), (6, 4), None), ((2, 3, 4), (8, 16, 48), (2, 3, 2, 2), (8, 16, 96, 48)),
    ((2, 3), (24, 8), (1, 6, 1), (0, 8, 0)), ((4,), (-8,), (2, 2), (-16, -8)), ((6,), (0,), (2, 3), (0, 0)),
    ((), (), (1, 1), (0, 0)), ((0, 3), (24, 8), (3, 0, 2), (0, 0, 0)), ((2, 3), (32, 8), (6,), None),
])  # fmt: skip
def test_strides_under_another_shape(old, strides, new, want):
    assert reshaped_strides(old, strides, new) == want


def test_strides_under_another_shape_show_numpys_elements():
    base = np.arange(240)
    for view in (base.reshape(2, 3, 40)[:, :, ::4], base.reshape(4, 60).T, base[::-1].reshape(6, 40)[::2, 5:25:5]):
        for new in ((view.size,), (2, view.size // 2), (view.size // 2, 1, 2)):
            steps = reshaped_strides(view.shape, view.strides, new)
            want = view.reshape(new)
            assert (steps is None) == (not np.may_share_memory(want, view)), (view.shape, view.strides, new)
            if steps is not None:
                np.testing.assert_array_equal(np.lib.stride_tricks.as_strided(view, new, steps), want)


def test_reshape_with_one_unknown_length():
    x = cg.Var(X)
    for shape in ((6, -1), (-1,), (2, -1, 2, 2), (24,), (1, 24, 1)):
        np.testing.assert_array_equal(computed(cg.reshape(x, shape)), X.reshape(shape))
    assert cg.reshape(x, 4, -1).shape == (4, 6) and cg.reshape(x, 2, 3, 4) is x
    assert cg.ravel(cg.Var((0, 3))).shape == (0,) and cg.ravel(cg.Var(())).shape == (1,)
    assert cg.flatten(x) is cg.ravel(x)
    for shape, message in (((-1, -1), "more than one -1"), ((-2, 12), "another negative length"),
                           ((5, -1), "has 24 elements, not a multiple of 5"),
                           ((5, 5), r"24 elements do not make shape \[5, 5\] of 25; use -1")):  # fmt: skip
        with pytest.raises(ShapeError, match=message):
            cg.reshape(x, shape)
    with pytest.raises(ShapeError, match="not a multiple of 0"):
        cg.reshape(cg.Var((0, 3)), (0, -1))


def test_axes_in_every_form():
    assert [axis_of(a, 3) for a in (0, 2, -1, -3, np.int64(1))] == [0, 2, 2, 0, 1]
    assert axes_of(None, 3) == (0, 1, 2) and axes_of((2, -3), 3) == (0, 2) and axes_of(-1, 3) == (2,)
    assert distinct_axes((2, 0), 3) == (2, 0) and axes_of((), 3) == ()
    for bad, message in ((3, "axis 3 is outside the 3 axes of the operand; pass one from -3 to 2"), (-4, "axis -4"),
                         (1.0, "axis=1.0 is not an integer"), ("x", "axis='x' is not an integer")):  # fmt: skip
        with pytest.raises(ShapeError, match=message):
            axis_of(bad, 3)
    with pytest.raises(ShapeError, match=r"axes \(0, -3\) name one axis twice"):
        distinct_axes((0, -3), 3)


@pytest.mark.parametrize("axes", [(), ((2, 0, 1),), (1, 2, 0), ((-1, 0, 1),), ([0, 2, 1],)])
def test_permutations_and_their_gradients(axes):
    x = cg.Var(X)
    got = cg.transpose(x, *axes)
    np.testing.assert_array_equal(computed(got), X.transpose(*axes))
    seed = np.arange(24.0).reshape(got.shape)
    order = axes[0] if len(axes) == 1 else axes or (2, 1, 0)
    np.testing.assert_array_equal(gradients(got, x, seed=seed), seed.transpose(np.argsort(np.array(order) % 3)))


def test_moves_of_axes_are_numpys():
    x = cg.Var(X)
    for source, target in ((0, 2), (2, 0), (-1, 0), ((0, 1), (2, 0)), ((2, 0), (0, -1)), (1, 1)):
        np.testing.assert_array_equal(computed(cg.moveaxis(x, source, target)), np.moveaxis(X, source, target))
    for a, b in ((0, 1), (-1, 0), (1, 1)):
        np.testing.assert_array_equal(computed(cg.swapaxes(x, a, b)), np.swapaxes(X, a, b))
    assert cg.permute_dims(x, (0, 1, 2)) is x
    with pytest.raises(ShapeError, match=r"axes \[0, 0, 1\] are not a permutation of 3 axes"):
        apply(Transpose((0, 0, 1)), x)


def test_axes_of_length_one_come_and_go():
    x = cg.Var((1, 3, 1), name="x")
    assert [cg.squeeze(x, a).shape for a in (None, 0, -1, (0, 2))] == [(3,), (3, 1), (1, 3), (3,)]
    with pytest.raises(ShapeError, match=r"axis 1 of x float32\[1,3,1\] has more than one element; squeeze axes of"):
        cg.squeeze(x, 1)
    assert [cg.expand_dims(cg.Var((2, 3)), a).shape for a in (0, 1, -1, -3, (0, 2), (-1, 0))] == [
        (1, 2, 3), (2, 1, 3), (2, 3, 1), (1, 2, 3), (1, 2, 1, 3), (1, 2, 3, 1),
    ]  # fmt: skip
    with pytest.raises(ShapeError, match="axis 3 is outside the 3 axes"):
        cg.expand_dims(cg.Var((2, 3)), 3)


def test_broadcast_repeats_and_its_gradient_sums():
    x = cg.Var(np.array([[1.0], [2.0]]))
    wide = cg.broadcast_to(x, (4, 2, 3))
    np.testing.assert_array_equal(computed(wide), np.broadcast_to(x.value, (4, 2, 3)))
    np.testing.assert_array_equal(gradients(wide, x, seed=X[:1, :2, :3] * np.ones((4, 1, 1))), [[12], [60]])
    assert cg.broadcast_to(x, (2, 1)) is x and cg.broadcast_to(cg.Var((1,)), (0,)).shape == (0,)
    for shape in ((2,), (3, 1), (2, 0, 1)):
        with pytest.raises(ShapeError, match=r"shape \[2, 1\] does not broadcast to"):
            cg.broadcast_to(x, shape)
    view = View(Pointer("x", 8), (2, 1), (16, 8), "f8")
    assert BroadcastTo((4, 2, 3)).alias(view) == View(Pointer("x", 8), (4, 2, 3), (0, 16, 0), "f8")
    assert sum_to(wide, (2, 1)).shape == (2, 1) and sum_to(wide, (4, 1, 3)).shape == (4, 1, 3)
    assert sum_to(wide, (4, 2, 3)) is wide and computed(sum_to(wide, (1, 3))).tolist() == [[12, 12, 12]]


def test_the_number_behind_a_broadcast():
    x = cg.Var((2,))
    assert number_of(cg.broadcast_to(cg.Const(2.5), (3, 4))) == 2.5 == number_of(cg.Const([[2.5]]))
    assert number_of(cg.full((2, 2), 7)) == 7 and number_of(x) is None and number_of(cg.Const([1.0, 1.0])) is None
    assert unbroadcast(apply(BroadcastTo((3, 2)), apply(BroadcastTo((1, 2)), x))) is x


def test_filled_arrays():
    assert computed(cg.full((2, 1), 3.5)).tolist() == [[3.5], [3.5]] and cg.full((), 3).dtype == "int64"
    assert computed(cg.full(2, 3.9, "int8")).tolist() == [3, 3] and cg.full((2,), True).dtype == bool
    assert cg.zeros((0, 2)).spec == cg.ones((0, 2)).spec == cg.Var((0, 2), "float32").spec
    assert computed(cg.ones((2,)), cg.zeros(1))[0].tolist() == [1, 1] and computed(cg.zeros(1)).tolist() == [0]
    x = cg.Var((2, 2), "int16")
    for function, value in ((cg.zeros_like, 0), (cg.ones_like, 1)):
        assert computed(function(x)).tolist() == [[value] * 2] * 2 and function(x).dtype == "int16"
    assert (
        len({cg.full((2,), v, d) for v, d in ((1, "int8"), (2, "int8"), (1, "int16"))} | {cg.full((3,), 1, "int8")})
        == 4
    )
    assert cg.full((2,), 1) is cg.full([2], 1) and isinstance(cg.full((2,), 1).op, Full)
    for args in ((4,), (1, 4), (4, 1, -1), (0, 1, 0.25)):
        np.testing.assert_array_equal(computed(cg.arange(*args)), np.arange(*args))
    assert cg.arange(3, dtype="float32").dtype == "float32"


def test_items_of_a_bundle_and_copies():
    bundle = cg.top_k(cg.Var((4,)), 2)[0].operands[0]
    first, second = items(bundle)
    assert (first.op, second.op, second.dtype) == (Item(0), Item(1), bundle.spec.specs[1].dtype)
    assert Item(1).alias(("a", "b")) == "b"
    x = cg.Var(X)
    turned = apply(Contiguous(), cg.transpose(x))
    np.testing.assert_array_equal(kernel_result(turned, [X.T], "all")[0], X.T)
    np.testing.assert_array_equal(computed(turned), X.T)
    assert apply(Reshape((6, 4)), x).op.alias(View(Pointer("x"), (2, 3, 4), (8, 16, 48), "f8")) is None
